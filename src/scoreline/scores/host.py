"""Scores as NumPy arrays in memory, computed with Numba kernels."""

import zlib

import numpy as np

from scoreline import kernels
from scoreline.runtime import parallel
from scoreline.runtime.types import AnyArray, FloatArray
from scoreline.runtime.vectors import visible
from scoreline.scores import host_pairs as pairs
from scoreline.scores.base import BalanceSums, Flips, Labels, Moved, PairSums, PointSums, ScoreSpace, WorstRanking

EPS = float(np.finfo(np.float64).eps)


class HostSpace(ScoreSpace):
    """Scores as float64 vectors on this machine. Every sum has the same bits for any number of threads."""

    def __init__(self) -> None:
        self._harmonic = np.zeros(1)  # 0, 1, 1 + 1/2, ...

    def labels(self, y: AnyArray, sample_weight: AnyArray | None = None) -> Labels:
        """Return labels +1/-1 as int8 and weights as float64 (None stays None), with their totals."""
        sign = np.ascontiguousarray(y, dtype=np.int8)
        positive_rows = sign > 0
        n_positive = int(np.count_nonzero(positive_rows))
        n_negative = len(sign) - n_positive
        if sample_weight is None:
            return Labels(sign, None, len(sign), n_positive, n_negative, n_positive, n_negative)
        weight = np.ascontiguousarray(sample_weight, dtype=np.float64)
        positive = float(weight[positive_rows].sum())
        negative = float(weight[~positive_rows].sum())
        return Labels(sign, weight, positive + negative, positive, negative, n_positive, n_negative)

    def zeros(self, labels: Labels) -> FloatArray:
        return np.zeros(len(labels.sign))

    def fingerprint(self, labels: Labels) -> float:
        """Return a checksum of labels and weights."""
        check = zlib.crc32(labels.sign)
        return float(check if labels.weight is None else zlib.crc32(labels.weight, check))

    @visible
    def combine(self, a: float, x: FloatArray, b: float, y: FloatArray, out: FloatArray | None = None) -> FloatArray:
        return kernels.vectors.combine(a, x, b, y, np.empty_like(x) if out is None else out)

    def dot(self, x: FloatArray, y: FloatArray) -> float:
        return kernels.vectors.dot(np.ascontiguousarray(x, dtype=np.float64), np.ascontiguousarray(y, dtype=np.float64))

    def max_abs(self, x: FloatArray, labels: Labels) -> float:
        return kernels.vectors.max_abs(x, labels.weight)

    @visible
    def significant(self, x: FloatArray, labels: Labels, negligible: float) -> FloatArray:
        """Return x >= 0 with the smallest entries per unit of weight set to 0, by one sort."""
        single = self.per_weight(x, labels)
        order = np.argsort(single)
        last = int(np.searchsorted(np.cumsum(x[order]), negligible * x.sum()))
        limit = (1.0 - 1e-9) * single[order[min(last, len(order) - 1)]]  # equal rows stay together despite rounding
        return np.where(single < limit, 0.0, x)

    def select(self, x: FloatArray, labels: Labels, side: int) -> FloatArray:
        return np.where(labels.sign == side, x, 0.0)

    @visible
    def total(self, x: FloatArray) -> float:
        return float(x.sum())

    def span(self, x: FloatArray, labels: Labels) -> float:
        counted = x if labels.weight is None else x[labels.weight > 0.0]
        return float(counted.max()) - float(counted.min())

    def is_finite(self, x: FloatArray) -> bool:
        return bool(np.isfinite(x).all())

    @visible
    def point_sums(
        self,
        loss: str,
        z: FloatArray,
        labels: Labels,
        width: float = 0.0,
        scale: float = 1.0,
        out: FloatArray | None = None,
        grad: bool = True,
    ) -> PointSums:
        z, out = checked(z, labels), checked_out(out, labels, grad)
        bounds = parallel.even_bounds(len(z), 4)
        partial = np.empty((len(bounds) - 1, 3))
        rest = (z, labels.sign, labels.weight, float(scale), out, partial, bounds)
        if loss == "logistic":
            parallel.run_chunks(kernels.pointwise.logistic_sums, len(partial), *rest)
        else:
            kind = getattr(kernels.pointwise, loss.upper())
            parallel.run_chunks(kernels.pointwise.margin_sums, len(partial), kind, float(width), *rest)
        smooth, slopes, hard = partial.sum(axis=0)
        if labels.weight is not None and not np.isfinite(smooth):
            absent = (labels.weight == 0.0) & np.isfinite(z) & (z != 0.0)
            if absent.any():  # weight 0 times a loss that overflows is NaN
                return self.point_sums(loss, np.where(absent, 0.0, z), labels, width, scale, out, grad)
        return PointSums(float(smooth), float(slopes), float(hard), out)

    def point_curvatures(
        self, loss: str, z: FloatArray, labels: Labels, scale: float = 1.0, width: float = 0.0
    ) -> FloatArray:
        z, out = checked(z, labels), np.empty(labels.sign.shape)
        kind = getattr(kernels.pointwise, loss.upper())
        bounds = parallel.even_bounds(len(z), 4)
        arguments = (kind, float(width), z, labels.sign, labels.weight, float(scale), out, bounds)
        parallel.run_chunks(kernels.pointwise.curvatures, len(bounds) - 1, *arguments)
        return out

    @visible
    def pair_sums(
        self,
        z: FloatArray,
        labels: Labels,
        width: float = 0.0,
        scale: float = 1.0,
        out: FloatArray | None = None,
        grad: bool = True,
        margin: float = 1.0,
    ) -> PairSums:
        signed, out = (-scale, scale), checked_out(out, labels, grad)
        return self._pairs(checked(z, labels), labels, float(width), signed, out, float(margin))

    @visible
    def pair_curvatures(self, z: FloatArray, labels: Labels, width: float, margin: float = 1.0) -> FloatArray:
        out = np.empty(labels.sign.shape)
        self._pairs(checked(z, labels), labels, float(width), (1.0, 1.0), out, float(margin), curved=True)
        return out

    def _pairs(
        self,
        z: FloatArray,
        labels: Labels,
        width: float,
        scales: tuple[float, float],
        out: FloatArray | None,
        shift: float,
        curved: bool = False,
    ) -> PairSums:
        """Sort the smaller class and look up every row in it (`host_pairs.py`)."""
        # out = scale of the row's class * s * sum of ramps, or with `curved` * weight on a ramp.
        key_sign = 1 if labels.n_positive <= labels.n_negative else -1
        key_scale, query_scale = scales if key_sign > 0 else scales[::-1]
        sign, weight = labels.sign, labels.weight
        keys = pairs.sorted_keys(z, sign, weight, key_sign, min(labels.n_positive, labels.n_negative), shift)
        lookup = pairs.look_up(z, sign, weight, keys, key_sign, shift, width, query_scale, out, curved)
        if out is not None:
            pairs.give(sign, weight, key_sign, lookup, key_scale, out)
        return PairSums(lookup.smooth, lookup.ramps, lookup.hard, out)

    @visible
    def balance_curvatures(self, z: FloatArray, labels: Labels, offset: float, width: float) -> FloatArray:
        z = checked(z, labels)
        found = kernels.balance.balance(z, labels.sign, labels.weight, float(offset), float(width))
        return self.on_ramp(z, labels, offset, width, found)

    @staticmethod
    @visible
    def on_ramp(
        z: FloatArray, labels: Labels, offset: float, width: float, found: "kernels.balance.Balance"
    ) -> FloatArray:
        """Return the weight of every row that is on the ramp at a bias, 0 for the others."""
        base, shift = found.base, found.shift
        t = np.where(labels.sign > 0, ((offset - z) - base) - shift, (z + base) + shift)
        return np.where((t > 0.0) & (t < width), 1.0 if labels.weight is None else labels.weight, 0.0)

    @visible
    def balance_sums(
        self,
        z: FloatArray,
        labels: Labels,
        offset: float,
        width: float = 0.0,
        scale: float = 1.0,
        out: FloatArray | None = None,
        grad: bool = True,
    ) -> BalanceSums:
        """Find the balancing bias (`kernels/balance.py`), then sum and write the gradient -scale y s beta.

        After rounding the two sums of beta differ in their last digits, so the larger is scaled down to the smaller.
        """
        kernel = kernels.balance
        z, out = checked(z, labels), checked_out(out, labels, grad)
        rows = (z, labels.sign, labels.weight, float(offset), float(width))
        found = kernel.balance(*rows)
        moved = min(found.above, found.below)
        shares = [moved / side if side > 0.0 else 0.0 for side in (found.above, found.below)]
        smooth, hard = kernel.sums(*rows, found, (-scale * shares[0], scale * shares[1]), out)
        return BalanceSums(smooth, hard, moved, out)

    @visible
    def weighted(self, x: FloatArray, labels: Labels) -> FloatArray:
        return x if labels.weight is None else labels.weight * x

    @visible
    def per_weight(self, x: FloatArray, labels: Labels) -> FloatArray:
        if labels.weight is None:
            return x
        return np.asarray(np.divide(x, labels.weight, out=np.zeros_like(x), where=labels.weight > 0.0))

    @visible
    def balancing_bias(self, z: FloatArray, labels: Labels, offset: float) -> float:
        return kernels.balance.balance(checked(z, labels), labels.sign, labels.weight, float(offset), 0.0).base

    @visible
    def top_share(self, z: FloatArray, labels: Labels, side: int, amount: float) -> FloatArray:
        z, weight = checked(z, labels), labels.weight
        rows = labels.sign == side
        threshold = _amount_from_top(z[rows], None if weight is None else weight[rows], amount)
        share = np.where(rows & (z < threshold), 0.0, 1.0)
        tied, over = rows & (z == threshold), rows & (z > threshold)
        sums = [np.count_nonzero(m) if weight is None else weight[m].sum() for m in (over, tied)]
        share[tied] = min(1.0, max(0.0, (amount - sums[0]) / sums[1])) if sums[1] > 0.0 else 0.0
        return share

    @visible
    def reweighted(self, labels: Labels, share: FloatArray) -> Labels:
        return self.labels(labels.sign, share if labels.weight is None else share * labels.weight)

    @visible
    def soft_threshold(
        self, z: FloatArray, labels: Labels, side: int, amount: float, width: float
    ) -> tuple[float, float]:
        """Return theta as (base, offset): a threshold above which the weight is `amount`, softened over `width`.

        It takes O(n) and a sort of the rows near theta. Theta is a root of a piecewise linear function with sorted kinks. It is
        then raised by a few roundings until the sum over ramps does not exceed `amount`.
        """
        z, weight = checked(z, labels), labels.weight
        rows = labels.sign == side
        scores, s = z[rows], None if weight is None else weight[rows]
        base = _amount_from_top(scores, s, amount)
        scores = scores - base  # small near theta, so that narrow ramps keep their digits
        sure, near = scores > width, (scores > -width) & (scores <= width)
        left = amount - (np.count_nonzero(sure) if s is None else s[sure].sum())
        g, s = scores[near], np.ones(np.count_nonzero(near)) if s is None else s[near]
        kinks, slopes = np.concatenate([g, g - width]), np.concatenate([s, -s])
        order = np.argsort(-kinks, kind="stable")
        kinks, slopes = kinks[order], np.cumsum(slopes[order])
        sums = np.append(0.0, np.cumsum(slopes[:-1] * -np.diff(kinks)) / width)  # at each kink
        # The function may be constant at `left` itself.
        k = min(int(np.searchsorted(sums, left * (1.0 - 1e-12))), len(kinks) - 1)
        offset = float(kinks[k])
        if k > 0 and slopes[k - 1] > 1e-12 * s.sum():
            offset += float((sums[k] - left) * width / slopes[k - 1])
        ramp, full = (g > offset) & (g < offset + width), g >= offset + width
        if s[ramp].sum() > 0.0:  # recompute it from the rows on the ramp, without the rounding of the cumulative sums
            polished = float((s[ramp] @ g[ramp] - width * (left - s[full].sum())) / s[ramp].sum())
            offset = polished if abs(polished - offset) <= 1e-9 * width else offset
        offset = max(offset, -width)  # rows further below do not contribute
        step = np.spacing(abs(offset))
        for _ in range(60):
            if s @ np.clip((g - offset) / width, 0.0, 1.0) <= left:
                break
            offset, step = offset + step, 2.0 * step
        return base, offset

    @visible
    def lifted(self, z: FloatArray, labels: Labels, threshold: tuple[float, float]) -> tuple[FloatArray, FloatArray]:
        base, offset = threshold
        z = checked(z, labels)
        there = labels.sign > 0
        if labels.weight is not None:
            there &= labels.weight > 0.0
        lowest = float(z[there].min()) - 1.0
        if lowest > base + max(0.0, offset):  # nothing is lifted, and a base far below would cost digits
            base, offset = lowest, (base - lowest) + offset
        lifted, lift = np.empty(len(z)), np.empty(len(z))
        kernels.ramps.lift(z, labels.sign, base, offset, lifted, lift)
        return lifted, lift

    def class_scores(self, z: FloatArray, labels: Labels) -> tuple[FloatArray, FloatArray]:
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
        """Sort both classes and find the place of every negative (`kernels/rankings.py`); weights are numbers of copies.

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
            precision = np.nan  # gains overflowed, so the worst ranking is unknown
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
        """Run the dynamic programme of `kernels/marginals.py`; weights are numbers of copies."""
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
        # A probability is e^x, where x was rounded in len(rows) sums of logs of at most this size.
        error = EPS * len(rows) * (reach + float(np.abs(exponents[np.isfinite(exponents)]).max()))
        rounding_error = error * reach
        # The expected flips of both classes must be equal, or no plane has this slope; rounding makes them differ.
        if np.isneginf(exponents).any():
            parts = np.split(chances, [int(labels.positive)])
            flips = [float(part.sum()) for part in parts]
            for part, own, gain in zip(parts, flips, sides, strict=True):
                share = min(flips) / own if own > 0.0 else 0.0
                rounding_error += (1.0 - share) * float(part @ np.abs(gain))
                part *= share
        out[:] = np.bincount(rows, chances, len(z))
        out *= -scale * labels.sign
        return Flips(float(log_z), scale * float(chances.sum()), scale * rounding_error / price, out)

    def _harmonic_numbers(self, n: int) -> FloatArray:
        """Return 0, 1, 1 + 1/2, ..., H_n, cached for all evaluations of a risk."""
        if len(self._harmonic) <= n:
            self._harmonic = np.append(0.0, np.cumsum(1.0 / np.arange(1, n + 1)))
        return self._harmonic


def _amount_from_top(scores: FloatArray, weight: FloatArray | None, amount: float) -> float:
    """Return the highest score at or above which the weight reaches `amount`, in O(n), or with weights by a sort."""
    if weight is None:
        k = len(scores) - int(np.ceil(amount))
        return float(np.partition(scores, k)[k])
    counted = np.flatnonzero(weight > 0.0)
    order = counted[np.argsort(-scores[counted], kind="stable")]
    sums = np.cumsum(weight[order])
    return float(scores[order[min(int(np.searchsorted(sums, amount * (1.0 - 1e-12))), len(order) - 1)]])


def _mean_of_equals(scores: FloatArray, values: AnyArray) -> AnyArray:
    """Replace the values of equal, neighbouring scores by their mean."""
    begins = np.flatnonzero(np.append(True, np.diff(scores) != 0.0))
    if len(begins) == len(scores):
        return values
    counts = np.diff(np.append(begins, len(scores)))
    return np.repeat(np.add.reduceat(values.astype(np.float64), begins) / counts, counts)


def checked(z: FloatArray, labels: Labels) -> FloatArray:
    """Return z as a contiguous float64 array, or raise for a wrong length, which kernels do not check."""
    z = np.ascontiguousarray(z, dtype=np.float64)
    if z.shape != labels.sign.shape:
        raise ValueError(f"scores have shape {z.shape}, expected {labels.sign.shape}, one for each label")
    return z


def checked_out(out: FloatArray | None, labels: Labels, grad: bool) -> FloatArray | None:
    """Return the array for the gradient: `out` if kernels can write to it, or a new array."""
    if not grad:
        return None
    if out is None:
        return np.empty(labels.sign.shape)
    if (
        out.shape != labels.sign.shape
        or out.dtype != np.float64
        or not (out.flags.c_contiguous and out.flags.writeable)
    ):
        raise ValueError(
            f"out must be a writable float64 array of shape {labels.sign.shape}, got {out.dtype} {out.shape}"
        )
    return out
