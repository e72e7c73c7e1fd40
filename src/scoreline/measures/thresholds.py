"""Thresholds: the best one, by one sort and one scan, and a robust one that does not depend on individual rows."""

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from scoreline import kernels
from scoreline.measures.base import CountsBasedMeasure, Measure, checked_rows
from scoreline.measures.counts import values_of_counts
from scoreline.measures.ranking import AtKMeasure
from scoreline.measures.registry import get_measure
from scoreline.measures.ties import Ties, clearly_above, first_best, median_size
from scoreline.runtime.types import AnyArray, FloatArray
from scoreline.runtime.vectors import RemoteVector, as_vector, room_module
from scoreline.scores import smallest_reaching

CANDIDATES_AT_A_TIME = 1 << 16
BLUR_SPREADS = (
    3.0  # half width of the blur of `robust_threshold` over (spread of the class) * (weight of the class)^(-1/3)
)
LARGEST_FLOAT = float(np.finfo(np.float64).max)


class TunedThreshold(NamedTuple):
    """A threshold (positive means score > threshold) and the value it reaches."""

    threshold: float
    value: float


class Candidates(NamedTuple):
    """Thresholds in decreasing order, each between two scores, with the weights tp and fp above it, fn and tn below it."""

    lows: FloatArray
    highs: FloatArray
    tp: FloatArray
    fp: FloatArray
    fn: FloatArray
    tn: FloatArray


class SortedScores:
    """The scores of either class in increasing order, with their weights (None for 1)."""

    def __init__(self, y: AnyArray, scores: FloatArray, sample_weight: FloatArray | None, scale_free: bool = False):
        positive, scores, weight, _ = checked_rows(y, scores, sample_weight, scale_free)
        z = np.asarray(scores, dtype=np.float64)
        if not np.isfinite(z).all():
            row = int(np.flatnonzero(~np.isfinite(z))[0])
            raise ValueError(f"scores must be finite, got {z[row]} in row {row}")
        there = slice(None) if weight is None else weight > 0.0
        counted = z[there]
        rows = len(counted)
        if rows == 0:
            raise ValueError("a threshold needs at least one row of positive weight")
        ends = float(counted.min()), float(counted.max())
        size = median_size(counted, None if weight is None else weight[there])
        del counted  # frees memory before the classes are copied
        self.ties, (self.lowest, self.highest) = Ties.of(size, *ends, rows), ends
        self.above, self.above_weight = _sorted_side(z, weight, positive)
        self.below, self.below_weight = _sorted_side(z, weight, ~positive)
        self.positive = float(len(self.above) if self.above_weight is None else self.above_weight.sum())
        self.negative = float(len(self.below) if self.below_weight is None else self.below_weight.sum())
        self.candidates = 0

    def blocks(self) -> Iterator[Candidates]:
        """Yield all thresholds in blocks of at most CANDIDATES_AT_A_TIME; a block overwrites the arrays of the last one."""
        arrays = [np.empty(CANDIDATES_AT_A_TIME) for _ in Candidates._fields]
        state = np.array([len(self.above), len(self.below), 0.0, 0.0, np.inf])
        above_sums, below_sums = (
            None if s is None else np.append(0.0, np.cumsum(s)) for s in (self.above_weight, self.below_weight)
        )
        sides = (self.above, self.above_weight, above_sums, self.below, self.below_weight, below_sums)
        self.candidates = 0
        while True:
            count = kernels.thresholds.next_candidates(*sides, *self.ties, state, *arrays)
            if count == 0:
                return
            self.candidates += count
            yield Candidates(*(array[:count] for array in arrays))

    def best(
        self, values_of: Callable[[Candidates], FloatArray], measure: Measure | Callable[..., Any]
    ) -> tuple[float, list[float]]:
        """Return the best value of all thresholds, and the first candidate with it: low, high, tp, fp, fn, tn."""
        best, place = -np.inf, [np.nan] * len(Candidates._fields)
        for block in self.blocks():
            values = values_of(block)
            k = first_best(values)
            if clearly_above(values[k], best):
                best, place = float(values[k]), [float(column[k]) for column in block]
        return _defined(best, measure), place

    def threshold(self, low: float, high: float) -> float:
        """Return the midpoint of two neighbouring scores, or half the mean distance of two scores beyond an end."""
        return _placed(low, high, self.lowest, self.highest, self.candidates - 2)


def best_threshold(
    y: AnyArray,
    scores: FloatArray,
    measure: str | Measure | Callable[..., Any],
    sample_weight: FloatArray | None = None,
    rises: bool = False,
) -> TunedThreshold:
    """Return the threshold with the best value of a measure over all thresholds (eq. exact-threshold).

    The scores of either class are sorted once and merged in decreasing order. There is one candidate between any two
    neighbouring distinct scores (their midpoint) and one beyond either end. Among equal values the threshold that predicts
    fewer positives wins. Scores and values that differ only by rounding are equal (`scoreline.measures.ties`). It takes
    O(n log n), and memory for one copy of the scores (three with weights).

    For measures of the k highest scores, the threshold is always between the k-th score and the next. If no threshold meets
    the constraint of an operating point, the result is the closest threshold, with the value 0.

    Parameters
    ----------
    y : array of n labels
        Positive where y > 0.
    scores : array of n floats
        Decision values before the threshold.
    measure : str, Measure or callable
        Name, object, or a vectorised function of (tp, fp, fn, tn) as for `CountMeasure`.
    sample_weight : array of n weights, optional
        A row counts as often as its weight; rows of weight 0 are ignored.
    rises : bool
        Whether a callable never decreases with true positives and never increases with false ones. Scores on a cluster then
        need not be gathered.

    Returns
    -------
    TunedThreshold
        The threshold and the value.
    """
    scale_free = False
    if callable(measure):
        value_of: Callable[..., Any] = partial(values_of_counts, measure, "measure, a function of the counts,")
    else:
        measure = get_measure(measure)
        if isinstance(measure, AtKMeasure):
            return _threshold_at_k(measure, y, scores, sample_weight)
        value_of, rises = measure.threshold_objective, measure.rises
        scale_free = measure.scale_free and getattr(measure, "confidence", None) is None
    if isinstance(scores, RemoteVector):
        if rises:
            return _remote_threshold(y, scores, sample_weight, measure, value_of)
        y, scores, sample_weight = (None if v is None else np.asarray(v) for v in (y, scores, sample_weight))
    scan = SortedScores(y, scores, sample_weight, scale_free)
    best, (low, high, *counts) = scan.best(lambda block: _values_or_lowest(value_of, *block[2:]), measure)
    if isinstance(measure, CountsBasedMeasure):
        best = float(measure.from_counts(*counts))
    return TunedThreshold(scan.threshold(low, high), best)


def _defined(best: float, measure: Measure | Callable[..., Any]) -> float:
    if best == -np.inf:
        raise ValueError(f"measure={measure!r} is NaN at every threshold; it needs rows of both classes")
    return best


def _values_or_lowest(value_of: Callable[..., Any], *counts: FloatArray) -> FloatArray:
    """Return the value of each set of counts, minus infinity where it is NaN."""
    values = value_of(*counts)
    return np.where(np.isnan(values), -np.inf, values)


def _search_module(scores: RemoteVector) -> Any:
    return room_module(scores.scores, "best_threshold")


def _remote_threshold(
    y: Any, scores: RemoteVector, weight: Any, measure: Measure | Callable[..., Any], value_of: Callable[..., Any]
) -> TunedThreshold:
    """Return the threshold of remote scores; beyond an end the number of rows replaces that of distinct scores."""
    totals = _search_module(scores).totals_of(y, scores, weight)
    level, best = _search_module(scores).best_level(y, scores, weight, totals, partial(_values_or_lowest, value_of))
    best = _defined(best, measure)
    if isinstance(measure, CountsBasedMeasure):
        best = float(measure.from_counts(*level.counts))
    return TunedThreshold(_placed(level.below, level.score, totals.low, totals.high, totals.rows - 1), best)


def _placed(low: float, high: float, lowest: float, highest: float, gaps: int) -> float:
    """Return the midpoint of two neighbouring scores, or half the mean distance of two scores beyond an end."""
    lowest, highest = float(lowest), float(highest)
    margin = (0.5 * highest - 0.5 * lowest) / max(1, gaps) or 1.0
    threshold = _between(float(low), float(high), max(margin, math.ulp(max(abs(lowest), abs(highest)))))
    return in_range(threshold, low, lowest)


def in_range(threshold: float, low: float, lowest: float) -> float:
    """Return a finite threshold; one below all scores (low = -inf) must stay below the lowest."""
    clipped = min(max(float(threshold), -LARGEST_FLOAT), LARGEST_FLOAT)
    if low == -np.inf and not clipped < lowest:
        raise ValueError(
            f"the best threshold lies below all scores, and the lowest is {lowest}, the end of the range of floats; divide the "
            "scores by 2"
        )
    return clipped


def _threshold_at_k(
    measure: AtKMeasure, y: AnyArray, scores: FloatArray, sample_weight: FloatArray | None
) -> TunedThreshold:
    """Return the midpoint of the k-th highest score and the next lower one."""
    if isinstance(scores, RemoteVector):
        weight = None if sample_weight is None else as_vector(sample_weight)
        totals = _search_module(scores).totals_of(y, scores, weight)
        k = measure.weight_at_top(y, weight)
        level, lower = _search_module(scores).below_ties(scores, weight, -smallest_reaching(-scores, weight, k), totals)
        threshold = _placed(lower, level, totals.low, totals.high, totals.rows - 1)
        return TunedThreshold(threshold, measure.value(y, scores, weight))
    positive, z, weight, exponent = checked_rows(y, scores, sample_weight)
    weight = np.ones(len(z)) if weight is None else weight
    k = measure.weight_at_top(positive, weight, exponent)

    def less_than_k_and_most(tp: AnyArray, fp: AnyArray, fn: AnyArray, tn: AnyArray) -> AnyArray:
        # The weight above the candidates increases: the first with k rows wins, or the last candidate.
        return np.asarray(np.minimum(tp + fp, k))

    threshold = best_threshold(positive, z, less_than_k_and_most, weight).threshold
    return TunedThreshold(threshold, measure.value(positive, z, sample_weight))


def _sorted_side(z: FloatArray, weight: FloatArray | None, side: AnyArray) -> tuple[FloatArray, FloatArray | None]:
    """Return the scores of one class in increasing order with their weights, without rows of weight 0."""
    if weight is None:
        scores = z[side]
        scores.sort()
        return scores, None
    side = side & (weight > 0.0)
    scores, weights = z[side], weight[side]
    weights = weights[np.argsort(scores)]  # need not be stable, because rows of equal score move together
    scores.sort()  # faster than indexing by the order
    return scores, weights


def _between(low: float, high: float, margin: float) -> float:
    """Return the midpoint of low and high, below high, or a point `margin` beyond a finite end."""
    if np.isinf(high):
        return low + margin
    if np.isinf(low):
        return high - margin
    middle = 0.5 * low + 0.5 * high
    return middle if low <= middle < high else low


def condensed(sign: Any, z: RemoteVector, weight: Any) -> tuple[AnyArray, FloatArray, FloatArray | None]:
    """Return labels, scores and weights of remote scores on the host, where runs of neighbouring scores may be merged."""
    rows: tuple[AnyArray, FloatArray, FloatArray | None] = _search_module(z).condensed(sign, z, weight)
    return rows


def robust_threshold(
    y: AnyArray, scores: FloatArray, measure: CountsBasedMeasure, sample_weight: FloatArray | None = None
) -> TunedThreshold:
    """Return a threshold for held-out rows that resemble the given ones.

    The best threshold for a sample follows its noise and converges like n^(-1/3), because it depends on single rows. Blurring
    every score over +-3 s n^(-1/3), where s is the spread and n the weight of its class, averages the noise. The bias that this
    adds decreases faster than the noise. For operating points the expected value on held-out rows is maximised (see
    OperatingPoint).

    Parameters
    ----------
    y : array of n labels
        Positive where y > 0.
    scores : array of n floats
        Scores of held-out rows; a threshold for training scores is too optimistic. Of remote scores, each worker (or
        the device) sends at most 65,536 per class. If there are more, it sends means of neighbours, which are much
        closer than the blur.
    measure : CountsBasedMeasure
        The measure that the threshold is tuned for.
    sample_weight : array of n weights, optional
        A row counts as often as its weight.

    Returns
    -------
    TunedThreshold
        The threshold, and `measure.robust_value` of the counts at it, without blurring. It takes O(n log n), and memory for two
        copies of the scores (four with weights).
    """
    if isinstance(scores, RemoteVector):
        y, scores, sample_weight = condensed(y, scores, sample_weight)
    z = as_vector(scores, np.float64)
    largest = float(np.abs(z).max(initial=0.0))
    exponent = int(np.frexp(largest)[1]) if 0.0 < largest < np.inf else 0  # brings scores of any size to at most 1
    with np.errstate(under="ignore"):
        scan = SortedScores(y, np.ldexp(z, -exponent), sample_weight)
    sides = [
        _Blurred(scan.above, scan.above_weight, scan.positive),
        _Blurred(scan.below, scan.below_weight, scan.negative),
    ]
    reach = max(side.half for side in sides) or 1.0

    def blurred_values(block: Candidates) -> FloatArray:
        middles = np.clip(0.5 * block.lows + 0.5 * block.highs, scan.lowest - reach, scan.highest + reach)
        middles = np.where(
            middles >= block.highs, block.lows, middles
        )  # neighbouring floats have no float between them
        tp, fp = (side.counts(middles) for side in sides)
        fn, tn = np.maximum(scan.positive - tp, 0.0), np.maximum(scan.negative - fp, 0.0)
        return _values_or_lowest(measure.robust_value, tp, fp, fn, tn)

    _, (low, high, *_) = scan.best(blurred_values, measure)
    weight = np.ones(len(z)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    with np.errstate(over="ignore", under="ignore"):
        threshold = in_range(float(np.ldexp(scan.threshold(low, high), exponent)), low, float(z[weight > 0.0].min()))
    # From the original scores, because scaled scores over hundreds of decades have lost digits.
    tn, fp, fn, tp = np.bincount(2 * (np.asarray(y) > 0) + (z > threshold), weight, 4)
    return TunedThreshold(threshold, float(measure.robust_value(tp, fp, fn, tn)))


class _Blurred:
    """One class with its sorted scores, cumulative sums, and the half width of the blur."""

    def __init__(self, scores: FloatArray, weight: FloatArray | None, total: float):
        self.scores, self.total = scores, total
        self.weight_sums = None if weight is None else np.append(0.0, np.cumsum(weight))
        self.half = 0.0
        if len(scores) == 0:
            return
        # Sums of differences from the median, because scores may be large compared with their spread.
        self.middle = float(self._quantile(0.5))
        self.moved = scores - self.middle
        weighted = self.moved if weight is None else weight * self.moved
        self.score_sums = np.append(0.0, np.cumsum(weighted))
        mean = self.score_sums[-1] / total
        deviation = float(np.sqrt(max(float(weighted @ self.moved) / total - mean * mean, 0.0)))
        between = (
            float(self._quantile(0.75) - self._quantile(0.25)) / 1.349
        )  # the standard deviation, for a normal class
        spread = min(deviation, between) if between > 0.0 else deviation
        self.half = BLUR_SPREADS * spread * total ** (-1.0 / 3.0)
        self._state = np.array([len(scores), len(scores)])

    def _quantile(self, q: float) -> float:
        if self.weight_sums is None:
            return float(self.scores[min(int(q * len(self.scores)), len(self.scores) - 1)])
        k = int(np.searchsorted(self.weight_sums[1:], q * self.total, side="right"))
        return float(self.scores[min(k, len(self.scores) - 1)])

    def counts(self, thresholds: FloatArray) -> FloatArray:
        """Return the blurred weight above each of the decreasing thresholds; call it for consecutive blocks."""
        if not self.half > 16.0 * np.finfo(float).eps:  # below the resolution of the scores, whose size is 1
            places = np.searchsorted(self.scores, thresholds, side="right")
            sums = np.arange(len(self.scores) + 1.0) if self.weight_sums is None else self.weight_sums
            return np.asarray(sums[-1] - sums[places])
        out = np.empty(len(thresholds))
        kernels.thresholds.window_counts(
            self.moved, self.weight_sums, self.score_sums, thresholds - self.middle, self.half, self._state, out
        )
        return out
