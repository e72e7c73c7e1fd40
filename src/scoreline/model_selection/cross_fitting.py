"""Scores of rows that their model has not seen, for any scikit-learn classifiers: training on folds, responses, routing."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.base import clone
from sklearn.utils import Bunch, _safe_indexing
from sklearn.utils.metadata_routing import process_routing
from sklearn.utils.validation import has_fit_parameter

from scoreline.runtime.types import AnyArray, FloatArray

RESPONSES = ("predict_proba", "decision_function")


def check_rows(X: Any, y: Any) -> None:
    """Raise unless there are labels, rows and columns."""
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None: pass one label per row.")
    if len(y) == 0 or (hasattr(X, "shape") and 0 in X.shape):
        shape = getattr(X, "shape", (len(y),))
        raise ValueError(f"X has 0 sample(s) or 0 feature(s) (shape={shape}) while a minimum of 1 is required.")


def routed_arguments(owner: Any, estimators: Mapping[str, Any], sample_weight: Any, params: dict[str, Any]) -> Bunch:
    """Return the arguments of `fit` of each estimator, and of `split` of the splitter."""
    if get_config()["enable_metadata_routing"]:
        given = params if sample_weight is None else params | {"sample_weight": sample_weight}
        return process_routing(owner, "fit", **given)
    if params:
        raise ValueError(
            f"fit got {sorted(params)}, expected X, y and sample_weight. Other arguments need "
            "sklearn.set_config(enable_metadata_routing=True)."
        )

    def own(estimator: Any) -> Bunch:
        takes = sample_weight is not None and has_fit_parameter(estimator, "sample_weight")
        return Bunch(fit={"sample_weight": sample_weight} if takes else {})

    return Bunch(**{name: own(each) for name, each in estimators.items()}, splitter=Bunch(split={}))


def check_share(cv: Any) -> None:
    """Raise if `cv` is a float that is no share of the rows."""
    if isinstance(cv, float) and not 0.0 < cv < 1.0:
        raise ValueError(f"cv={cv!r} must be a share between 0 and 1, or a whole number of folds.")


def splits_of(
    cv: Any, X: Any, y: AnyArray, arguments: dict[str, Any], random_state: Any
) -> list[tuple[AnyArray, AnyArray]]:
    """Return training rows and held-out rows of each fold, or of a single split if `cv` is a share of the rows."""
    from sklearn.model_selection import StratifiedShuffleSplit, check_cv

    check_share(cv)
    if isinstance(cv, float):
        splitter: Any = StratifiedShuffleSplit(1, test_size=cv, random_state=random_state)
    else:
        splitter = check_cv(cv, y, classifier=True)
    return list(splitter.split(X, y, **arguments))


def trained(estimator: Any, X: Any, y: AnyArray, arguments: dict[str, Any], rows: AnyArray | None = None) -> Any:
    """Return a new model of some rows, or of all."""
    if rows is None:
        return clone(estimator).fit(X, y, **arguments)
    if len(np.unique(y[rows])) < 2:
        raise ValueError("a fold has training rows of one class only; use fewer folds, cv=2.")
    count = len(y)
    part = {name: _safe_indexing(each, rows) if _is_per_row(each, count) else each for name, each in arguments.items()}
    return clone(estimator).fit(_safe_indexing(X, rows), y[rows], **part)


def response_method_of(model: Any, wanted: str) -> str:
    """Return the name of the method that scores rows: the wanted one, or with "auto" the first that the model has."""
    names = RESPONSES if wanted == "auto" else (wanted,)
    for name in names:
        if hasattr(model, name):
            return name
    raise AttributeError(f"{type(model).__name__} has no {' nor '.join(names)}, expected a classifier with scores.")


def response_of(model: Any, method: str, X: Any) -> FloatArray:
    """Return the scores of the positive class."""
    response = np.asarray(getattr(model, method)(X), dtype=np.float64)
    if response.ndim == 2 and response.shape[1] == 2:
        response = response[:, 1]
    if response.ndim != 1:
        raise ValueError(
            f"{method} of {type(model).__name__} returned shape {response.shape}, expected scores of two classes."
        )
    return response


def are_probabilities(method: str, scores: FloatArray) -> bool:
    """Tell whether responses are probabilities: boosted trees with a custom objective return scores in their place."""
    return bool(method == "predict_proba" and 0.0 <= scores.min() and scores.max() <= 1.0)


def _is_per_row(given: Any, count: int) -> bool:
    """Tell whether an argument of `fit` has an entry for each row."""
    return given is not None and hasattr(given, "__len__") and not isinstance(given, str) and len(given) == count
