"""Checks of what users pass in: argument, what was given, what is expected, how to repair it."""

import numbers
from collections.abc import Callable
from functools import partial
from types import MethodType
from typing import Any

import numpy as np
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import type_of_target

from scoreline.measures import Measure, row_costs
from scoreline.measures.counts import Savings
from scoreline.risks.base import safe_weights
from scoreline.runtime.array_types import is_dask
from scoreline.runtime.checks import check_choice, is_finite
from scoreline.runtime.types import AnyArray, FloatArray
from scoreline.runtime.vectors import RemoteVector, as_vector


def check_labels(y: Any, n: int) -> tuple[AnyArray, AnyArray]:
    """Return (classes, sign) with sign +1 for the second class; exactly two classes, one label per row."""
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None: pass one label per row")
    if isinstance(y, RemoteVector):
        labels: Any = y
        if y.scores == "device" and labels.dtype.kind == "f":
            _check_finite(labels)
        found = y.distinct()
        named, _ = check_labels(found, len(found))
        return named, np.where(y == named[1], 1, -1).astype(np.int8)
    labels = _unmasked(y)
    _check_length(labels, n)
    if labels.dtype.kind == "f":
        _check_finite(labels)
    if labels.dtype == object and all(isinstance(label, numbers.Real) for label in labels):
        labels = np.array(labels.tolist())  # numbers kept as objects: scikit-learn's type_of_target would refuse them
    classes = _two_numbers(labels)
    if classes is None:
        classes = _distinct_labels(labels)
    return classes, np.where(labels == classes[1], 1, -1).astype(np.int8)


def _check_length(labels: Any, n: int) -> None:
    if len(labels) != n:
        raise ValueError(
            f"y has {len(labels)} labels, expected {n}, one for each row of X: inconsistent numbers of samples"
        )


def _check_finite(labels: Any) -> None:
    finite = np.isfinite(labels)
    if not finite.all():
        row = int(np.flatnonzero(~finite)[0])
        raise ValueError(f"Input y contains NaN or infinity, first seen in row {row}; drop rows without a label")


def _unmasked(y: Any) -> AnyArray:
    """Return labels as a vector; scikit-learn would take what a mask hides."""
    if np.ma.is_masked(y):
        raise ValueError("y has masked labels, expected one for each row; drop those rows of X and y")
    labels: AnyArray = column_or_1d(y, warn=True)
    return labels


def feature_source(X: Any) -> Any:
    """Return what scikit-learn looks at for the names and number of features: of a Dask dataframe one without rows."""
    return X._meta if is_dask(X) and hasattr(X, "columns") else X


def check_string_features(estimator: Any, X: Any) -> None:
    """Raise if X has other k-mers as columns than those that the estimator was trained on."""
    known, found = getattr(estimator, "string_features_", None), getattr(X, "string_features", None)
    if known is None or found is None or known == found:
        return
    names = [name for name in known if known[name] != found.get(name)]
    here, there = (", ".join(f"{name}={record.get(name)!r}" for name in names) for record in (found, known))
    raise ValueError(
        f"X is a StringOperator with {here}, and the model was trained with {there}. Make X with the features of the model: "
        "StringOperator(sequences, **clf.string_features_)."
    )


def _two_numbers(labels: AnyArray) -> AnyArray | None:
    """Return the two values of numeric labels, or None if that is not what they are; no sort, little memory."""
    if labels.dtype.kind not in "biuf" or len(labels) == 0:
        return None
    low, high = labels.min(), labels.max()
    if low == high or not ((labels == low) | (labels == high)).all():
        return None
    return np.array([low, high], dtype=labels.dtype)


def _distinct_labels(labels: AnyArray) -> AnyArray:
    """Return the two distinct labels of any type, or raise and say what y holds instead."""
    try:
        kind = type_of_target(labels, input_name="y", raise_unknown=True)
    except TypeError:
        raise ValueError("y mixes labels that cannot be compared, expected two classes of one type") from None
    if kind.startswith("continuous"):
        raise ValueError(f"Unknown label type: {kind}. y holds measured values, expected two classes; bin y first.")
    classes = np.unique(labels)
    if len(classes) > 2:
        raise ValueError(
            "Only binary classification is supported. The type of the target is "
            f"{kind}: y has {len(classes)} classes. Wrap the classifier in sklearn.multiclass.OneVsRestClassifier."
        )
    if len(classes) < 2:
        raise ValueError(f"y has one class only ({classes[0]!r}), expected two classes: both kinds of rows are needed")
    return classes


def check_truth(y: Any, classes: AnyArray, n: int) -> AnyArray:
    """Return which rows are of the positive class; labels must be among the two classes of the fit, one for each row."""
    labels: Any = y if isinstance(y, RemoteVector) else _unmasked(y)
    _check_length(labels, n)
    if getattr(labels, "scores", None) == "device" and classes.dtype.kind not in "biuf":
        raise ValueError(f"y holds {labels[0]!r} in row 0, expected the classes of the fit: {classes.tolist()}")
    positive: AnyArray = labels == classes[1]
    known = positive | (labels == classes[0])
    if not known.all():
        row = int(np.flatnonzero(~known)[0])
        raise ValueError(
            f"y holds {np.asarray(labels)[row]!r} in row {row}, expected the classes of the fit: {classes.tolist()}"
        )
    return positive


def check_weights(
    sample_weight: Any, class_weight: Any, classes: AnyArray, sign: AnyArray, costs: FloatArray | None = None
) -> tuple[FloatArray | None, FloatArray | None]:
    """Return (sample weights as counts, the same times class weights and costs), each None where it is all ones."""
    weight = check_sample_weight(sample_weight, len(sign))
    if weight is not None and not (weight[sign > 0].any() and weight[sign < 0].any()):
        raise ValueError(
            "sample_weight is zero for all rows of a class, or is negligible in one class; both classes need a positive "
            "weight, expected a ratio of at most 1e100"
        )
    weight = as_counts(weight)
    if class_weight is None and costs is None:
        return weight, weight
    positive, negative = class_weights(class_weight, classes, *class_totals(sign, weight))
    shift = -int(np.frexp(max(positive, negative))[1])  # only their ratio matters, and products must not overflow
    positive, negative = float(np.ldexp(positive, shift)), float(np.ldexp(negative, shift))
    matters = np.where(sign > 0, positive, negative)
    if costs is not None:
        matters = matters * safe_weights(costs)
    combined = safe_weights(matters * (1.0 if weight is None else weight))
    if not (combined[sign > 0].any() and combined[sign < 0].any()):
        what = f"class_weight={class_weight!r}" if costs is None else "cost_fp or cost_fn"
        raise ValueError(
            f"{what} makes the weight of one class negligible, expected a "
            "ratio of at most 1e100; use weights that differ less"
        )
    # Class weights and costs say how much a row matters, not how often it is there: the total stays that of the rows.
    total = float(len(sign) if weight is None else weight.sum())
    return weight, combined * (total / float(combined.sum()))


def class_totals(sign: AnyArray, weight: FloatArray | None) -> list[float]:
    """Return what all rows of the positive and of the negative class weigh together."""
    return [float(np.count_nonzero(side) if weight is None else weight[side].sum()) for side in (sign > 0, sign < 0)]


def class_weights(class_weight: Any, classes: AnyArray, positive: float, negative: float) -> tuple[float, float]:
    """Return the weights of the positive and the negative class, whose rows weigh `positive` and `negative` together."""
    if class_weight is None:
        return 1.0, 1.0
    if isinstance(class_weight, str):
        check_choice("class_weight", class_weight, ("balanced",))
        total = positive + negative
        return total / (2.0 * positive), total / (2.0 * negative)
    if not isinstance(class_weight, dict):
        raise ValueError(f"class_weight={class_weight!r} must be None, 'balanced' or a dict of class to weight")
    if not all(_is_positive(value) for value in class_weight.values()):
        raise ValueError(f"class_weight={class_weight!r} must give both classes a positive weight")
    if not set(class_weight) <= set(classes.tolist()):
        raise ValueError(f"class_weight={class_weight!r} names classes that y does not have: {classes.tolist()}")
    low, high = (float(class_weight.get(label, 1.0)) for label in classes.tolist())
    return high, low


def column_names(names: Any, columns: Any) -> str:
    """Return the beginning of a sentence about columns: "Columns 'age', 'income' and 3 more have". `names` may be None."""
    words = [repr(str(names[k])) if names is not None else str(k) for k in np.asarray(columns).tolist()[:5]]
    if len(words) == 1:
        return f"Column {words[0]} has"
    more = f" and {len(columns) - 5} more" if len(columns) > 5 else ""
    shown = ", ".join(words) if more else f"{', '.join(words[:-1])} and {words[-1]}"
    return f"Columns {shown}{more} have"


def as_counts(weight: FloatArray | None) -> FloatArray | None:
    """Return weights that can be read as numbers of rows: relative ones, with a part below 1, brought to a mean of about 1.

    A fit does not depend on the scale of the weights, but how far a threshold may follow the data does. The factor
    is a power of two, so that no digit changes.
    """
    if weight is None:
        return None
    counted = weight[weight > 0.0]
    if len(counted) == 0 or counted.min() >= 1.0:
        return weight
    if counted.min() == counted.max():
        return (weight > 0.0).astype(np.float64)
    weight = safe_weights(weight)
    exponent = -int(np.rint(np.log2(weight[weight > 0.0].mean())))
    counts: FloatArray = as_vector(np.ldexp(weight, exponent))
    return counts


def _is_positive(value: Any) -> bool:
    return isinstance(value, numbers.Real) and is_finite(value) and float(value) > 0.0


def check_sample_weight(sample_weight: Any, n: int) -> FloatArray | None:
    """Return the weights as finite, non-negative floats, not all zero; None where they are all 1."""
    if sample_weight is None:
        return None
    if isinstance(sample_weight, numbers.Real):
        weight = np.full(n, float(sample_weight) if is_finite(sample_weight) else np.inf)
    else:
        try:
            weight = as_vector(sample_weight, np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"sample_weight must be numbers, one per row ({error})") from None
    if weight.ndim != 1:
        raise ValueError(f"Sample weights must be 1D array or scalar, got shape {weight.shape}")
    if weight.shape != (n,):
        raise ValueError(f"sample_weight.shape == {weight.shape}, expected {(n,)}!")
    if not np.isfinite(weight).all():
        raise ValueError(
            "sample_weight contains NaN or infinity; expected finite, non-negative numbers; drop those rows"
        )
    if weight.min() < 0:
        raise ValueError(
            f"sample_weight has negative values (smallest {weight.min():g}); expected non-negative numbers"
        )
    if not weight.any():
        raise ValueError("sample_weight is zero everywhere; give at least one row of each class a positive weight")
    return None if (weight == 1.0).all() else safe_weights(weight)


def check_base_scores(base_scores: Any, n: int) -> FloatArray | None:
    """Return the scores of an existing model as finite floats, one for each of n rows; None where there are none."""
    if base_scores is None:
        return None
    try:
        found = as_vector(base_scores, np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"base_scores must be numbers, one per row ({error})") from None
    if found.shape != (n,):
        raise ValueError(f"base_scores have shape {found.shape}, expected ({n},), one for each row of X")
    if not np.isfinite(found).all():
        raise ValueError("base_scores contain NaN or infinity; drop those rows, or score them by another model")
    checked: FloatArray = found
    return checked


def check_costs(measure: Measure, sign: AnyArray, cost_fp: Any, cost_fn: Any) -> FloatArray | None:
    """Return what an error on each row costs, for a measure that takes costs by row; None where there are none."""
    if cost_fp is None and cost_fn is None:
        return None
    if not isinstance(measure, Savings) or (measure.cost_fp, measure.cost_fn) != (1.0, 1.0):
        raise ValueError(
            f"cost_fp and cost_fn by row need measure='savings' without costs of its own, got {measure!r}. Leave "
            "measure_params out, or pass sample_weight for another measure."
        )
    return row_costs(sign, cost_fp, cost_fn)


def check_same_use(uses_base_scores: bool, base_scores: Any) -> None:
    """Raise if a model that was trained on base scores gets none, or gets some where it was not."""
    if uses_base_scores and base_scores is None:
        raise ValueError("the model adds its scores to base_scores: pass base_scores of these rows")
    if base_scores is not None and not uses_base_scores:
        raise ValueError(
            "base_scores were given, and the model was trained without them: leave them out, or fit it with base_scores"
        )


class _ConditionalMethod:
    """A method that raises the AttributeError of its check where it is not available."""

    def __init__(self, check: Callable[[Any], None], function: Callable[..., Any]):
        self.check, self.function = check, function
        self.__doc__ = function.__doc__

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return self.function
        self.check(instance)
        return MethodType(self.function, instance)


def available_if(check: Callable[[Any], None]) -> Callable[[Callable[..., Any]], Any]:
    """Return a decorator for a method that an estimator has unless `check` raises an AttributeError.

    scikit-learn's decorator of this name raises "has no attribute" and leaves the reason to the cause of the exception.
    """
    return partial(_ConditionalMethod, check)
