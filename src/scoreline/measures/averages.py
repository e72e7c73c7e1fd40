"""Averages of a measure over classes, each against the rest, or over the columns of an indicator matrix."""

import warnings
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.exceptions import UndefinedMetricWarning

from scoreline.measures.base import CountsBasedMeasure, Measure, check_total
from scoreline.measures.registry import get_measure
from scoreline.runtime.checks import check_choice
from scoreline.runtime.types import AnyArray, FloatArray
from scoreline.runtime.vectors import scaled_to_safe_range

AVERAGES = ("macro", "weighted", "micro", "none", None)
MAX_NAMED_CLASSES = 5  # in a warning


class OneVsRest(NamedTuple):
    """Two-class problems, one per class: which rows are of class j, and their predicted labels or scores."""

    classes: AnyArray
    truth: Callable[[int], AnyArray]
    response: Callable[[int], AnyArray]


def class_average(
    measure: str | Measure,
    y_true: Any,
    y_pred: Any,
    average: str | None = "macro",
    classes: Any = None,
    sample_weight: Any = None,
    **params: Any,
) -> float | FloatArray:
    """Return a measure for several classes, each against the rest, averaged as in scikit-learn.

    Count-based measures use predictions, ranking measures use scores. The value of a ranking measure for a class without a
    row in y_true is NaN, and averages ignore it with an UndefinedMetricWarning. Count-based measures are 0 if their
    denominator is 0.

    Parameters
    ----------
    measure : str or Measure
        Name or object.
    y_true : array of n labels, or indicator matrix of shape (n, L)
        Classes of the rows; or, for rows with any number of labels, a matrix (which may be sparse) of 0 and 1.
    y_pred : array of n labels or of shape (n, C)
        For count-based measures the output of `predict`: labels, or an indicator matrix. For ranking measures scores, one
        column per class: decision values or probabilities. With two classes, a vector of scores of the larger one (or the
        second of `classes`) is enough.
    average : {"macro", "weighted", "micro", "none", None}, default="macro"
        "macro" is the mean over classes, and "weighted" the mean weighted by their rows. "micro" is one value for all pairs of
        a row and a class, with counts summed over classes. "none" or None returns the values of all classes.
    classes : array of C labels, optional
        Ranking measures: the classes of the columns, by default the sorted labels of y_true. Count-based measures: the
        classes to average over, by default all that occur in y_true or y_pred. Indicator matrices: names of the columns,
        for warnings.
    sample_weight : array of n weights, optional
        A row counts as often as its weight; rows of weight 0 are ignored.
    **params
        Parameters of a measure given by name.

    Returns
    -------
    float or ndarray of C floats
        The average, or the value of each class.

    Examples
    --------
    >>> from scoreline.measures import class_average
    >>> class_average("f1", ["a", "b", "c", "a"], ["a", "b", "b", "a"], average="none").round(3)
    array([1.   , 0.667, 0.   ])
    """
    chosen = get_measure(measure, params)
    check_choice("average", average, AVERAGES)
    truth = _labels(y_true, "y_true")
    response = _labels(y_pred, "y_pred")
    if truth.shape[0] != response.shape[0] or truth.shape[0] == 0:
        raise ValueError(
            f"y_true has {truth.shape[0]} rows and y_pred {response.shape[0]}, expected as many, at least one"
        )
    counted = isinstance(
        getattr(chosen, "k", None), (int, np.integer)
    )  # k is a weight, so weights must not be rescaled
    weight = _weights(sample_weight, truth.shape[0], chosen.scale_free and not counted)
    if weight is not None and not weight.all():
        there = np.flatnonzero(weight)
        truth, response, weight = truth[there], response[there], weight[there]
    make = _of_indicators if truth.ndim == 2 else _of_scores if chosen.uses_order else _of_labels
    problem = make(chosen, truth, response, None if classes is None else np.asarray(classes))
    pooled = average == "micro"
    if isinstance(chosen, CountsBasedMeasure):
        values, support = _values_of_counts(chosen, problem, weight, pooled)
    else:
        values, support = _values_of_rankings(chosen, problem, weight, pooled)
    if average in ("none", None):
        return values
    return _mean(chosen, values, support if average == "weighted" else None, problem.classes)


def _values_of_counts(
    measure: CountsBasedMeasure, problem: OneVsRest, weight: FloatArray | None, pooled: bool
) -> tuple[FloatArray, FloatArray]:
    """Return the values and the rows of the classes, or the single value for the sum of their counts."""
    kinds = (2 * problem.truth(j) + problem.response(j) for j in range(len(problem.classes)))
    counts = np.array([np.bincount(kind, weight, 4) for kind in kinds], dtype=np.float64).T
    tn, fp, fn, tp = counts.sum(axis=1, keepdims=True) if pooled else counts
    return np.asarray(measure.from_counts(tp, fp, fn, tn), dtype=np.float64), tp + fn


def _values_of_rankings(
    measure: Measure, problem: OneVsRest, weight: FloatArray | None, pooled: bool
) -> tuple[FloatArray, FloatArray]:
    """Return the values and the rows of the classes, or the single value for all pairs of a row and a class."""
    count = len(problem.classes)
    parts: Iterable[Any] = ((problem.truth(j), problem.response(j), weight) for j in range(count))
    if pooled:
        truths, scores, _ = zip(*parts, strict=True)
        weights = None if weight is None else np.tile(weight, count)
        parts = [(np.concatenate(truths), np.concatenate(scores), weights)]
    values, support = [], []
    for truth, score, rows in parts:
        support.append(float(truth.sum() if rows is None else rows[truth > 0].sum()))
        values.append(measure.value(truth, score, rows) if support[-1] > 0 else np.nan)
    return np.array(values), np.array(support)


def _mean(measure: Measure, values: FloatArray, support: FloatArray | None, classes: AnyArray) -> float:
    """Return the mean of the defined values, weighted by support if it is given; warn about the others."""
    known = ~np.isnan(values)
    if not known.all():
        undefined = classes[~known].tolist() if len(values) == len(classes) else classes.tolist()
        more = "" if len(undefined) <= MAX_NAMED_CLASSES else f" and {len(undefined) - MAX_NAMED_CLASSES} more"
        rest = f"the average is over the other {known.sum()}" if known.any() else "there is no average"
        warnings.warn(
            f"{measure.name} is not defined for class {', '.join(map(repr, undefined[:MAX_NAMED_CLASSES]))}{more} "
            f"(y_true has no row of the class, or no other row): {rest}",
            UndefinedMetricWarning,
            stacklevel=3,
        )
    if not known.any():
        return float("nan")
    by = None if support is None or not support[known].any() else support[known]  # without rows, classes count equally
    return float(np.average(values[known], weights=by))


def _of_labels(measure: Measure, truth: AnyArray, predicted: AnyArray, classes: AnyArray | None) -> OneVsRest:
    if predicted.ndim != 1:
        raise ValueError(
            f"{measure.name} needs predicted labels, one per row; y_pred has shape {predicted.shape}: pass what predict "
            "gives"
        )
    if (truth.dtype.kind in "biuf") != (predicted.dtype.kind in "biuf"):
        raise ValueError(f"y_true holds {truth[0]!r} and y_pred {predicted[0]!r}: labels of both must be of one type")
    found = _distinct(np.concatenate([truth, predicted])) if classes is None else _checked(classes)
    return OneVsRest(
        found, lambda j: (truth == found[j]).astype(np.int8), lambda j: (predicted == found[j]).astype(np.int8)
    )


def _of_scores(measure: Measure, truth: AnyArray, scores: AnyArray, classes: AnyArray | None) -> OneVsRest:
    """Return the problems of labels and a column of scores per class; a vector has the scores of the second of two."""
    scores, found = _numbers(scores), _distinct(truth) if classes is None else _checked(classes)
    if scores.ndim == 1 and len(found) == 2:
        scores, columns = scores[:, None], found[1:]
    else:
        columns = found
    if scores.ndim != 2 or scores.shape[1] != len(columns):
        raise ValueError(
            f"{measure.name} needs scores, one column per class; y_pred has shape {scores.shape} and there are "
            f"{len(found)} classes: pass decision values or probabilities, and classes= (an estimator's classes_) where y_true "
            "does not hold all of them"
        )
    unknown = ~np.isin(truth, found)
    if unknown.any():
        raise ValueError(f"y_true holds {truth[unknown][0]!r}, which is none of the classes {found.tolist()}")
    return OneVsRest(columns, lambda j: (truth == columns[j]).astype(np.int8), lambda j: scores[:, j])


def _of_indicators(measure: Measure, truth: Any, response: Any, classes: AnyArray | None) -> OneVsRest:
    if response.ndim != 2 or response.shape != truth.shape:
        raise ValueError(
            f"y_true is a matrix of shape {truth.shape}, expected y_pred of that shape, got {response.shape}"
        )
    if not _is_indicator(truth):
        raise ValueError(
            "y_true is a matrix of other numbers than 0 and 1: score outputs of several classes one by one"
        )
    if measure.uses_order:
        response = _numbers(response)
    elif not _is_indicator(response):
        raise ValueError(
            f"{measure.name} needs predictions, 0 or 1; y_pred holds other numbers: pass the output of predict"
        )
    found = np.arange(truth.shape[1]) if classes is None else _checked(classes)
    if len(found) != truth.shape[1]:
        raise ValueError(
            f"there are {len(found)} classes, expected one for each of the {truth.shape[1]} columns of y_true"
        )
    numbers = np.float64 if measure.uses_order else np.int8
    return OneVsRest(found, lambda j: _column(truth, j).astype(np.int8), lambda j: _column(response, j).astype(numbers))


def _labels(y: Any, name: str) -> Any:
    """Return labels or scores as an array, sparse ones by columns; a matrix of one column is a vector."""
    if sparse.issparse(y):
        y = y.tocsc()
        return y if y.shape[1] > 1 else y.toarray().ravel()
    try:
        array = np.asarray(y)
    except ValueError as error:
        raise ValueError(f"{name} must be a vector or a matrix ({error})") from None
    if array.ndim == 2 and array.shape[1] == 1:
        array = array.ravel()
    if array.ndim not in (1, 2):
        raise ValueError(f"{name} has shape {array.shape}, expected a vector or a matrix with a column for each class")
    return array


def _numbers(scores: Any) -> FloatArray:
    try:
        array = np.asarray(scores.toarray() if sparse.issparse(scores) else scores, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"scores must be numbers, not labels ({error})") from None
    if not np.isfinite(array).all():
        raise ValueError("scores must be finite to be ranked; they hold NaN or infinity")
    return array


def _column(matrix: Any, j: int) -> AnyArray:
    return np.asarray(matrix[:, [j]].toarray().ravel() if sparse.issparse(matrix) else matrix[:, j])


def _is_indicator(matrix: Any) -> bool:
    entries = matrix.data if sparse.issparse(matrix) else matrix
    return bool(np.isin(entries, (0, 1)).all())


def _distinct(labels: AnyArray) -> AnyArray:
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise ValueError("labels hold NaN or infinity; drop rows without a label")
    try:
        return np.unique(labels)
    except TypeError:
        raise ValueError("labels cannot be compared with each other, expected labels of one type") from None


def _checked(classes: AnyArray) -> AnyArray:
    if classes.ndim != 1 or len(set(classes.tolist())) != len(classes) or len(classes) == 0:
        raise ValueError(f"classes={classes.tolist()!r} must be different labels, one for each class")
    return classes


def _weights(sample_weight: Any, n: int, scale_free: bool) -> FloatArray | None:
    if sample_weight is None:
        return None
    weight = np.asarray(sample_weight, dtype=np.float64)
    if weight.shape != (n,):
        raise ValueError(f"sample_weight has shape {weight.shape}, expected {(n,)}, one for each row")
    if not np.isfinite(weight).all() or weight.min() < 0.0 or not weight.any():
        raise ValueError("sample_weight must be finite, non-negative and positive somewhere")
    if not scale_free:
        return check_total(weight)
    scaled: FloatArray = scaled_to_safe_range(weight)[0]
    if np.count_nonzero(scaled) < np.count_nonzero(weight):  # a class might lose all of its rows
        raise ValueError(
            f"sample_weight lies between {weight[weight > 0.0].min():.3g} and {weight.max():.3g}: floats cannot hold sums "
            "of both; use weights that differ less"
        )
    return scaled
