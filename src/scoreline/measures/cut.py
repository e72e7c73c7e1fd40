"""The exact cut: the best threshold over all of them, in one sort and one scan."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from scoreline import kernels
from scoreline._typing import AnyArray, FloatArray
from scoreline.measures.at_k import AtKMeasure
from scoreline.measures.base import Measure
from scoreline.measures.registry import get_measure

BLOCK = 1 << 16  # candidates judged at a time


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

    The scores of either class are sorted once and merged from the top; rows of equal score move together. So there is one
    candidate between each two different scores (their midpoint) and one beyond either end. Among equal values the
    threshold that predicts fewer positives wins. O(n log n); memory for one copy of the scores (two with weights).

    Measures of the k highest scores have no choice: their threshold lies between the k-th score and the next.

    Parameters
    ----------
    y : array of n labels
        Positive where y > 0.
    scores : array of n floats
        Decision values before the cut.
    measure : str, Measure or callable
        Name, object, or a vectorised function of (tp, fp, fn, tn).
    sample_weight : array of n weights, optional
        Rows count as often as their weight; a row of weight 0 is not there.

    Returns
    -------
    Cut
        The threshold and the value.
    """
    if callable(measure):
        value_of = measure
    else:
        measure = get_measure(measure)
        if isinstance(measure, AtKMeasure):
            return _cut_at_k(measure, y, scores, sample_weight)
        value_of = measure.cut_value
    z = np.asarray(scores, dtype=np.float64)
    weight = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    positive = np.asarray(y) > 0
    if not (z.ndim == 1 and z.shape == positive.shape and (weight is None or weight.shape == z.shape)):
        shapes = (positive.shape, z.shape, None if weight is None else weight.shape)
        raise ValueError(f"y, scores and sample_weight must be vectors of one length, got shapes {shapes}")
    if not np.isfinite(z).all():
        row = int(np.flatnonzero(~np.isfinite(z))[0])
        raise ValueError(f"scores must be finite, got {z[row]} in row {row}")
    above, above_weight = _sorted_side(z, weight, positive)
    below, below_weight = _sorted_side(z, weight, ~positive)
    if len(above) + len(below) == 0:
        raise ValueError("best_cut needs at least one row of positive weight")
    all_positive = float(len(above) if above_weight is None else above_weight.sum())
    all_negative = float(len(below) if below_weight is None else below_weight.sum())

    # `lows` and `highs` are the scores on either side of a candidate: it predicts positive from `highs` upwards.
    lows, highs, tp, fp = (np.empty(BLOCK) for _ in range(4))
    state = np.array([len(above), len(below), 0.0, 0.0, np.inf])
    best, place, candidates = -np.inf, (np.nan, np.nan), 0
    while True:
        count = kernels.cuts.next_candidates(above, above_weight, below, below_weight, state, lows, highs, tp, fp)
        if count == 0:
            break
        candidates += count
        t, f = tp[:count], fp[:count]
        values = np.asarray(value_of(t, f, np.maximum(all_positive - t, 0.0), np.maximum(all_negative - f, 0.0)))
        values = np.where(np.isnan(values), -np.inf, values)
        k = int(np.argmax(values))
        if values[k] > best:
            best, place = float(values[k]), (float(lows[k]), float(highs[k]))
    if best == -np.inf:
        raise ValueError(f"measure={measure!r} is NaN at every threshold; it needs rows of both classes")
    ends = [side[k] for side in (above, below) if len(side) for k in (0, -1)]
    margin = (0.5 * max(ends) - 0.5 * min(ends)) / max(1, candidates - 2) or 1.0  # half the mean distance of two levels
    return Cut(_between(*place, max(margin, np.spacing(max(map(abs, ends))))), best)


def _cut_at_k(measure: AtKMeasure, y: AnyArray, scores: FloatArray, sample_weight: FloatArray | None) -> Cut:
    """Return the threshold below the k-th highest score: midway to the next lower one."""
    z = np.asarray(scores, dtype=np.float64)
    weight = np.ones(len(z)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    k = measure.weight_at_top(y, weight)

    def less_than_k_and_most(tp: AnyArray, fp: AnyArray, fn: AnyArray, tn: AnyArray) -> AnyArray:
        # Candidates come with rising weight above them: the first that holds k rows wins, or the last of all.
        return np.minimum(tp + fp, k)

    threshold = best_cut(y, z, less_than_k_and_most, weight).threshold
    return Cut(threshold, measure.value(y, z, sample_weight))


def _sorted_side(z: FloatArray, weight: FloatArray | None, side: AnyArray) -> tuple[FloatArray, FloatArray | None]:
    """Return the scores of one class in rising order, with their weights; rows of weight 0 left out."""
    if weight is None:
        scores = z[side]
        scores.sort()
        return scores, None
    side = side & (weight > 0.0)
    scores, weights = z[side], weight[side]
    order = np.argsort(scores, kind="stable")
    return scores[order], weights[order]


def _between(low: float, high: float, margin: float) -> float:
    """Return the midpoint of low and high, not reaching high; beyond the ends, `margin` away."""
    if np.isinf(high):
        return low + margin
    if np.isinf(low):
        return high - margin
    middle = 0.5 * low + 0.5 * high
    return middle if low <= middle < high else low
