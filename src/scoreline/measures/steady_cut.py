"""A cut for new rows: the best threshold of counts that are blurred a little, so that single rows do not decide."""

import numpy as np

from scoreline import kernels
from scoreline.measures.base import CountsBasedMeasure
from scoreline.measures.cut import Cut, SortedScores, condensed, in_range
from scoreline.measures.ties import clearly_above, first_best
from scoreline.runtime.types import AnyArray, FloatArray
from scoreline.runtime.vectors import RemoteVector, as_vector

BLUR_SPREADS = 3.0  # half widths of the blur, in spreads of the class times (weight of the class)^(-1/3)


def steady_cut(
    y: AnyArray, scores: FloatArray, measure: CountsBasedMeasure, sample_weight: FloatArray | None = None
) -> Cut:
    """Return a threshold that serves the measure on rows like these, rather than on these.

    The best threshold of a sample follows its noise: it converges like n^(-1/3), because single rows decide. Blurring every
    score over +-3 s n^(-1/3), with s the spread and n the weight of its class, averages that noise, at the price of a bias
    that falls faster than it. For operating points the expected value on new rows is maximised (see OperatingPoint).

    Parameters
    ----------
    y : array of n labels
        Positive where y > 0.
    scores : array of n floats
        Scores of rows that their model has not seen; the threshold of training scores is too optimistic. Of scores on workers
        (or a device) each sends at most 65,536 of a class: beyond, means of neighbours, far closer than the blur is wide.
    measure : CountsBasedMeasure
        What the threshold is to serve.
    sample_weight : array of n weights, optional
        Rows count as often as their weight.

    Returns
    -------
    Cut
        The threshold, and what `measure.steady_value` says of the counts at it, not blurred. O(n log n), memory for two copies
        of the scores (four with weights).
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
    best, place = -np.inf, (np.nan, np.nan)
    for block in scan.blocks():
        middles = np.clip(0.5 * block.lows + 0.5 * block.highs, scan.lowest - reach, scan.highest + reach)
        middles = np.where(middles >= block.highs, block.lows, middles)  # neighbouring floats have no middle
        tp, fp = (side.counts(middles) for side in sides)
        values = scan.blurred(measure.steady_value, tp, fp)
        k = first_best(values)
        if clearly_above(values[k], best):
            best, place = float(values[k]), (float(block.lows[k]), float(block.highs[k]))
    if best == -np.inf:
        raise ValueError(f"measure={measure!r} is NaN at every threshold; it needs rows of both classes")
    weight = np.ones(len(z)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    with np.errstate(over="ignore", under="ignore"):
        threshold = in_range(float(np.ldexp(scan.threshold(*place), exponent)), place[0], float(z[weight > 0.0].min()))
    # Of the scores as they are: those that lie over hundreds of decades have lost digits above.
    tn, fp, fn, tp = np.bincount(2 * (np.asarray(y) > 0) + (z > threshold), weight, 4)
    return Cut(threshold, float(measure.steady_value(tp, fp, fn, tn)))


class _Blurred:
    """One class: its sorted scores, running sums, and the half width of the blur."""

    def __init__(self, scores: FloatArray, weight: FloatArray | None, total: float):
        self.scores, self.total = scores, total
        self.weight_sums = None if weight is None else np.append(0.0, np.cumsum(weight))
        self.half = 0.0
        if len(scores) == 0:
            return
        # Sums of differences from the middle of the scores: they may be large compared with their spread.
        self.middle = float(self._quantile(0.5))
        self.moved = scores - self.middle
        weighted = self.moved if weight is None else weight * self.moved
        self.score_sums = np.append(0.0, np.cumsum(weighted))
        mean = self.score_sums[-1] / total
        deviation = float(np.sqrt(max(float(weighted @ self.moved) / total - mean * mean, 0.0)))
        between = float(self._quantile(0.75) - self._quantile(0.25)) / 1.349  # of a normal distribution: its deviation
        spread = min(deviation, between) if between > 0.0 else deviation
        self.half = BLUR_SPREADS * spread * total ** (-1.0 / 3.0)
        self._state = np.array([len(scores), len(scores)])

    def _quantile(self, q: float) -> float:
        if self.weight_sums is None:
            return float(self.scores[min(int(q * len(self.scores)), len(self.scores) - 1)])
        k = int(np.searchsorted(self.weight_sums[1:], q * self.total, side="right"))
        return float(self.scores[min(k, len(self.scores) - 1)])

    def counts(self, thresholds: FloatArray) -> FloatArray:
        """Return the blurred weight above each of the falling thresholds; call it for consecutive blocks."""
        if not self.half > 16.0 * np.finfo(float).eps:  # less than the scores, of size 1, resolve
            return self.counts_above(thresholds)
        out = np.empty(len(thresholds))
        kernels.cuts.window_counts(
            self.moved, self.weight_sums, self.score_sums, thresholds - self.middle, self.half, self._state, out
        )
        return out

    def counts_above(self, thresholds: FloatArray) -> FloatArray:
        """Return the weight above each threshold, not blurred."""
        places = np.searchsorted(self.scores, thresholds, side="right")
        sums = np.arange(len(self.scores) + 1.0) if self.weight_sums is None else self.weight_sums
        return np.asarray(sums[-1] - sums[places])
