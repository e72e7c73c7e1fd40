"""Operations over whole labellings and rankings of the rows, on scores in memory: the worst one, or all of them weighed."""

import numpy as np

from scoreline import kernels
from scoreline.runtime import parallel
from scoreline.runtime.types import AnyArray, FloatArray
from scoreline.runtime.vectors import visible
from scoreline.scores.base import Flips, Labels, Moved, WorstRanking
from scoreline.scores.host_checks import checked, checked_out

EPS = float(np.finfo(np.float64).eps)


class WorstCases:
    """The part of `HostSpace` that risks over labellings and rankings use."""

    def __init__(self) -> None:
        self._harmonic = np.zeros(1)

    def class_scores(self, z: FloatArray, labels: Labels) -> tuple[FloatArray, FloatArray]:
        """Return the scores of either class in rising order, as often as their weight; one copy and one sort of each."""
        z = checked(z, labels)
        if labels.weight is None:
            above, below = np.empty(labels.n_positive + 1), np.empty(labels.n_negative + 1)
            kernels.contingency.split(z, labels.sign, above, below)
            above, below = above[:-1], below[:-1]
        else:
            sides = [labels.sign > 0, labels.sign < 0]
            above, below = (np.repeat(z[rows], labels.weight[rows].astype(np.int64)) for rows in sides)
        above.sort()
        below.sort()
        return above, below

    @visible
    def change_sides(
        self,
        z: FloatArray,
        labels: Labels,
        low: float,
        low_ties: float,
        high: float,
        high_ties: float,
        scale: float = 1.0,
        out: FloatArray | None = None,
        grad: bool = True,
    ) -> Moved:
        """Move rows by their scores: one read of z, one write of the gradient (`kernels/contingency.py`)."""
        z, out = checked(z, labels), checked_out(out, labels, grad)
        bounds = parallel.even_bounds(len(z), 4)
        partial = np.empty((len(bounds) - 1, 4))
        rows = z, labels.sign, labels.weight
        kernel = kernels.contingency.change_sides
        parallel.run_chunks(kernel, len(partial), *rows, low, high, float(scale), out, partial, bounds)
        above, below, above_sum, below_sum = map(float, partial.sum(axis=0))
        if low_ties > 0.0:
            above, above_sum = above + low_ties, above_sum + low_ties * low
        if high_ties > 0.0:
            below, below_sum = below + high_ties, below_sum + high_ties * high
        if out is not None:
            for side, level, amount in ((1, low, low_ties), (-1, high, high_ties)):
                if amount > 0.0:
                    kernels.contingency.change_ties(*rows, side, level, amount, float(scale), out)
        return Moved(above, below, above_sum, below_sum, out)

    @visible
    def worst_ranking(self, z: FloatArray, labels: Labels, scale: float, out: FloatArray | None = None) -> WorstRanking:
        """Sort both classes, find the place of every negative (`kernels/rankings.py`); copies of a row one by one.

        Rows of equal score get the mean of their places, so that the gradient does not depend on the order of rows.
        """
        z, out = checked(z, labels), checked_out(out, labels, True)
        assert out is not None
        orders, scores = [], []
        for side in (1, -1):
            rows = np.flatnonzero(labels.sign == side)
            rows = rows[np.argsort(-z[rows])]
            if labels.weight is not None:
                rows = np.repeat(rows, labels.weight[rows].astype(np.int64))
            orders.append(rows)
            scores.append(z[rows])
        n_above, n_below = map(len, orders)
        starts, ranked = np.empty(n_below, dtype=np.int64), np.empty(n_above)
        harmonic = self._harmonic_numbers(n_above + n_below)
        kernels.rankings.worst_ranking(*scores, harmonic, float(scale), np.empty(n_above + 1), starts)
        precision = kernels.rankings.ranks_of(starts, n_above, ranked)
        if not np.isfinite(n_above * sum(max(abs(float(own[0])), abs(float(own[-1]))) for own in scores)):
            precision = np.nan  # gains were infinities or their differences: no ranking is known to be the worst
        slopes = -scale * _mean_of_equals(scores[0], ranked), scale * _mean_of_equals(scores[1], n_above - starts)
        out[:] = 0.0
        for rows, slope in zip(orders, slopes, strict=True):
            if labels.weight is None:
                out[rows] = slope
            else:
                np.add.at(out, rows, slope)
        return WorstRanking(float(precision), 2.0 * scale * float(ranked.sum()), out)

    @visible
    def flip_chances(
        self,
        z: FloatArray,
        labels: Labels,
        exponents: FloatArray,
        price: float,
        scale: float,
        out: FloatArray | None = None,
        grad: bool = True,
    ) -> Flips:
        """Run the dynamic programme of `kernels/marginals.py`, copies of a row one by one."""
        z, out = checked(z, labels), checked_out(out, labels, grad)
        rows = np.concatenate([np.flatnonzero(labels.sign == side) for side in (1, -1)])
        if labels.weight is not None:
            rows = np.repeat(rows, labels.weight[rows].astype(np.int64))
        gains, chances = -price * labels.sign[rows] * z[rows], np.empty(len(rows))
        sides = np.split(gains, [int(labels.positive)])
        reach = float(np.abs(gains).sum())
        if not reach < np.inf:  # logs of sums would be differences of infinities
            if out is not None:
                out[:] = np.nan
            return Flips(np.nan, np.nan, np.nan, out)
        log_z = kernels.marginals.flip_chances(exponents, *sides, chances, grad)
        if out is None:
            return Flips(float(log_z), np.nan, np.nan, None)
        # A chance is e^x with an x that len(rows) sums of logs of at most this size have made: that often it was rounded.
        error = EPS * len(rows) * (reach + float(np.abs(exponents[np.isfinite(exponents)]).max()))
        doubt = error * reach
        # As many flips in either class, or no plane has this slope, whatever rounding did.
        if np.isneginf(exponents).any():
            parts = np.split(chances, [int(labels.positive)])
            flips = [float(part.sum()) for part in parts]
            for part, own, gain in zip(parts, flips, sides, strict=True):
                kept = min(flips) / own if own > 0.0 else 0.0
                doubt += (1.0 - kept) * float(part @ np.abs(gain))
                part *= kept
        out[:] = np.bincount(rows, chances, len(z))
        out *= -scale * labels.sign
        return Flips(float(log_z), scale * float(chances.sum()), scale * doubt / price, out)

    def _harmonic_numbers(self, n: int) -> FloatArray:
        """Return 0, 1, 1 + 1/2, ..., H_n; made once for all evaluations of a risk."""
        if len(self._harmonic) <= n:
            self._harmonic = np.append(0.0, np.cumsum(1.0 / np.arange(1, n + 1)))
        return self._harmonic


def _mean_of_equals(scores: FloatArray, values: AnyArray) -> AnyArray:
    """Return values with those of equal scores, which are neighbours, replaced by their mean."""
    begins = np.flatnonzero(np.append(True, np.diff(scores) != 0.0))
    if len(begins) == len(scores):
        return values
    counts = np.diff(np.append(begins, len(scores)))
    return np.repeat(np.add.reduceat(values.astype(np.float64), begins) / counts, counts)
