"""Features by name."""

from typing import Any

from scoreline.features.additive import Additive
from scoreline.operators import Operator
from scoreline.runtime.checks import check_choice

NAMED = {"additive": Additive}


def check_features(features: Any) -> None:
    """Raise unless `features` is a name, or an object that learns features."""
    if isinstance(features, Additive):
        features.check()
    elif isinstance(features, str):
        check_choice("features", features, ("linear", *NAMED))
    else:
        raise ValueError(f"features={features!r} must be 'linear', {', '.join(map(repr, NAMED))} or an Additive object")


def is_linear(features: Any) -> bool:
    """Tell whether the features are the columns of X themselves."""
    return isinstance(features, str) and features == "linear"


def featured(features: Any, X: Any, weight: Any = None) -> Any:
    """Return X, or its features as an operator where they are others than the columns of X."""
    check_features(features)
    if is_linear(features) or (isinstance(X, Operator) and X.feature_map is not None):
        return X
    return (NAMED[features]() if isinstance(features, str) else features).learn(X, weight)
