"""The exact cut: the best threshold over all of them, in one sort and one scan."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from scoreline._typing import AnyArray, FloatArray
from scoreline.measures.base import Measure
from scoreline.measures.registry import get_measure


class Cut(NamedTuple):
    """A threshold (positive means score > threshold) and the value it reaches."""

    threshold: float
    value: float


def best_cut(
    y: AnyArray,
    scores: FloatArray,
    measure: str | Measure | Callable[..., Any],
    sample_weight: FloatArray | None = None,
) -> Cut:
    """Return the threshold with the best value of a measure over all thresholds.

    Scores are sorted once and rows of equal score move together, so there is one candidate between each two different
    scores (their midpoint) and one beyond either end. Among equal values the threshold that predicts fewer positives
    wins. O(n log n).

    Parameters
    ----------
    y : array of n labels
        Positive where y > 0.
    scores : array of n floats
        Decision values before the cut.
    measure : str, Measure or callable
        Name, object, or a vectorised function of (tp, fp, fn, tn).
    sample_weight : array of n weights, optional
        Rows count as often as their weight.

    Returns
    -------
    Cut
        threshold and value.
    """
    value_of = measure if callable(measure) else get_measure(measure).cut_value
    z = np.asarray(scores, dtype=float)
    positive = np.asarray(y) > 0
    if sample_weight is None:
        weight = np.ones(len(z))
    else:
        weight = np.asarray(sample_weight, dtype=float)
        counted = weight > 0.0  # a row of weight 0 is not there: it must not even move a midpoint
        z, weight, positive = z[counted], weight[counted], positive[counted]
    order = np.argsort(-z, kind="stable")
    z = z[order]
    tp, fp = (np.cumsum(np.where(side, weight, 0.0)[order]) for side in (positive, ~positive))
    ends = np.append(np.flatnonzero(z[1:] != z[:-1]), len(z) - 1)  # last row of each group of equal scores
    levels = z[ends]
    tp, fp = (np.concatenate([[0.0], total[ends]]) for total in (tp, fp))
    values = np.asarray(value_of(tp, fp, tp[-1] - tp, fp[-1] - fp), dtype=float)
    k = int(np.nanargmax(values))  # k groups are predicted positive
    return Cut(_between(levels, k), float(values[k]))


def _between(levels: FloatArray, k: int) -> float:
    """Return a threshold below the k highest levels and not below the next."""
    margin = 0.5 * (levels[0] - levels[-1]) / (len(levels) - 1) if len(levels) > 1 else 1.0
    margin = max(margin, np.spacing(np.abs(levels).max()))
    if k == 0:
        return float(levels[0] + margin)
    if k == len(levels):
        return float(levels[-1] - margin)
    middle = levels[k] + 0.5 * (levels[k - 1] - levels[k])
    return float(levels[k] if middle >= levels[k - 1] else middle)
