"""Features by name."""

import dataclasses
from typing import Any

from scoreline.features.additive import Additive
from scoreline.features.pairs import Pairs
from scoreline.operators import Operator
from scoreline.runtime.checks import check_choice, column_signs

NAMED: dict[str, type[Additive]] = {"additive": Additive, "pairs": Pairs}
AUTO = "auto"  # what MeasureClassifierCV chooses among


def check_features(features: Any) -> None:
    """Raise unless `features` is a name, or an object that learns features."""
    if isinstance(features, Additive):
        features.check()
    elif isinstance(features, str):
        if features == AUTO:
            raise ValueError(
                "features='auto' needs cross-validation: use MeasureClassifierCV, or name 'linear', 'additive' or 'pairs'"
            )
        check_choice("features", features, ("linear", *NAMED))
    else:
        raise ValueError(
            f"features={features!r} must be 'linear', {', '.join(map(repr, NAMED))}, an Additive or a Pairs object"
        )


def feature_kinds(features: Any) -> list[str | None]:
    """Return the kinds of features that cross-validation trains, the simplest first; None for the columns of X themselves."""
    if is_linear(features):
        return [None]
    if isinstance(features, str) and features == AUTO:
        return ["linear", "additive", "pairs"]
    return ["additive", "pairs"] if isinstance(feature_options(features), Pairs) else ["additive"]


def is_linear(features: Any) -> bool:
    """Tell whether the features are the columns of X themselves."""
    return isinstance(features, str) and features == "linear"


def feature_options(features: Any) -> Additive:
    """Return the object that learns the features of this name."""
    if isinstance(features, str):
        return NAMED["pairs" if features == AUTO else features]()
    options: Additive = features
    return options


def featured(features: Any, X: Any, weight: Any = None, monotone: Any = None, names: Any = None) -> Any:
    """Return X, or its features as an operator where they are others than the columns of X; pairs are added later."""
    if not (isinstance(features, str) and features == AUTO):
        check_features(features)
    if is_linear(features):
        return X
    if isinstance(X, Operator) and X.feature_map is not None:
        check_signs(X.feature_map, monotone, names)
        return X
    return feature_options(features).learn(X, weight, monotone, names)


def check_signs(known: Any, monotone: Any, names: Any) -> None:
    """Raise if functions that are known already are not monotone in the columns that `monotone` names."""
    own = [column.name for column in known.columns] if names is None else names
    if monotone is not None and column_signs(monotone, known.n_columns, own) != known.signs:
        raise ValueError(
            f"monotone={monotone!r:.100} is not what the features of X were learnt with: pass the rows themselves, or "
            "Additive().learn(rows, monotone=...)"
        )


def pair_options(features: Any, operator: Operator) -> Pairs | None:
    """Return how pairs are to be added to the additive features of an operator, None if they are not."""
    options = None if is_linear(features) else feature_options(features)
    additive = operator.feature_map is not None and operator.feature_map.kind == "additive"
    return options if isinstance(options, Pairs) and additive else None


def features_record(features: Any) -> Any:
    """Return the parameter `features` as plain values."""
    if not isinstance(features, Additive):
        return features
    options = dataclasses.asdict(features)
    options = {name: _lists(value) if isinstance(value, (tuple, list)) else value for name, value in options.items()}
    return {"kind": features.kind, "options": options}


def restored_features(record: Any) -> Any:
    """Return the parameter of a record."""
    if not isinstance(record, dict):
        return record
    options = record["options"]
    return NAMED[record["kind"]](**{**options, "categories": tuple(options["categories"])})


def _lists(value: Any) -> Any:
    return [_lists(each) if isinstance(each, (tuple, list)) else each for each in value]
