"""Scores as NumPy arrays in memory, worked on by Numba kernels."""

import zlib
from typing import Any

import numpy as np

from scoreline import kernels
from scoreline.runtime import parallel
from scoreline.runtime.types import AnyArray, FloatArray
from scoreline.runtime.vectors import visible
from scoreline.scores import host_pairs as pairs
from scoreline.scores.base import BalanceSums, Labels, PairSums, PointSums
from scoreline.scores.host_checks import checked, checked_out
from scoreline.scores.host_worst_cases import WorstCases


class HostSpace(WorstCases):
    """Scores as float64 vectors on this machine. Every sum has the same bits for any number of threads."""

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
        """Return the scores of w = 0."""
        return np.zeros(len(labels.sign))

    def fingerprint(self, labels: Labels) -> float:
        """Return a checksum of labels and weights; one read of them."""
        check = zlib.crc32(labels.sign)
        return float(check if labels.weight is None else zlib.crc32(labels.weight, check))

    @visible
    def combine(self, a: float, x: FloatArray, b: float, y: FloatArray, out: FloatArray | None = None) -> FloatArray:
        """Return a x + b y."""
        return kernels.vectors.combine(a, x, b, y, np.empty_like(x) if out is None else out)

    def dot(self, x: FloatArray, y: FloatArray) -> float:
        """Return <x, y>."""
        return kernels.vectors.dot(np.ascontiguousarray(x, dtype=np.float64), np.ascontiguousarray(y, dtype=np.float64))

    def max_abs(self, x: FloatArray, labels: Labels) -> float:
        """Return the largest magnitude among rows of positive weight."""
        return kernels.vectors.max_abs(x, labels.weight)

    @visible
    def significant(self, x: FloatArray, labels: Labels, negligible: float) -> FloatArray:
        """Return x >= 0 with its smallest entries per unit of weight set to 0; one sort."""
        single = self.per_weight(x, labels)
        order = np.argsort(single)
        last = int(np.searchsorted(np.cumsum(x[order]), negligible * x.sum()))
        limit = (1.0 - 1e-9) * single[
            order[min(last, len(order) - 1)]
        ]  # equal rows stay together, whatever rounding did
        return np.where(single < limit, 0.0, x)

    def select(self, x: FloatArray, labels: Labels, side: int) -> FloatArray:
        """Return x on the rows of one class (+1 or -1), 0 on the others."""
        return np.where(labels.sign == side, x, 0.0)

    @visible
    def total(self, x: FloatArray) -> float:
        """Return the sum of all rows."""
        return float(x.sum())

    def span(self, x: FloatArray, labels: Labels) -> float:
        """Return the distance from the smallest to the largest among rows of positive weight."""
        counted = x if labels.weight is None else x[labels.weight > 0.0]
        return float(counted.max()) - float(counted.min())

    def is_finite(self, x: FloatArray) -> bool:
        """Return whether there is neither NaN nor infinity."""
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
        """Sum a loss of `kernels/pointwise.py` over the rows; one read of z, one write of the gradient."""
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
        return PointSums(float(smooth), float(slopes), float(hard), out)

    def point_curvatures(
        self, loss: str, z: FloatArray, labels: Labels, scale: float = 1.0, width: float = 0.0
    ) -> FloatArray:
        """Return scale * s * second derivative of the loss (of its ramp, if it has one), row by row."""
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
        """Sum the ramp over all pairs, and write its derivatives: `_pairs`."""
        signed, out = (-scale, scale), checked_out(out, labels, grad)
        return self._pairs(checked(z, labels), labels, float(width), signed, out, float(margin))

    @visible
    def pair_curvatures(self, z: FloatArray, labels: Labels, width: float, margin: float = 1.0) -> FloatArray:
        """Return for every row s times the weight of the other class that it is on a ramp with, 0 < t <= width < inf."""
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
        """Sort the smaller class, let every row look itself up (`host_pairs.py`).

        out = scale of its class * s * sum of ramps, or with `curved` the weight on a ramp in place of that sum.
        """
        key_sign = 1 if labels.n_positive <= labels.n_negative else -1
        key_scale, query_scale = scales if key_sign > 0 else scales[::-1]
        sign, weight = labels.sign, labels.weight
        keys = pairs.sorted_keys(z, sign, weight, key_sign, min(labels.n_positive, labels.n_negative), shift)
        looked = pairs.look_up(z, sign, weight, keys, key_sign, shift, width, query_scale, out, curved)
        if out is not None:
            pairs.give(sign, weight, key_sign, looked, key_scale, out)
        return PairSums(looked.smooth, looked.ramps, looked.hard, out)

    @visible
    def balance_curvatures(self, z: FloatArray, labels: Labels, offset: float, width: float) -> FloatArray:
        """Return the weight of every row that is on the ramp at the balancing bias, 0 for the others."""
        z = checked(z, labels)
        found = kernels.balance.balance(z, labels.sign, labels.weight, float(offset), float(width))
        return self.on_ramp(z, labels, offset, width, found)

    @staticmethod
    @visible
    def on_ramp(z: FloatArray, labels: Labels, offset: float, width: float, found: Any) -> FloatArray:
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

        Rounding leaves the two sums of beta apart by a few last digits; the larger is scaled down to the smaller.
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
        """Return s_i x_i."""
        return x if labels.weight is None else labels.weight * x

    @visible
    def per_weight(self, x: FloatArray, labels: Labels) -> FloatArray:
        """Return x_i / s_i, 0 for rows of weight 0."""
        if labels.weight is None:
            return x
        return np.asarray(np.divide(x, labels.weight, out=np.zeros_like(x), where=labels.weight > 0.0))

    @visible
    def balancing_bias(self, z: FloatArray, labels: Labels, offset: float) -> float:
        """Return the tau of `balance_sums` at width 0."""
        return kernels.balance.balance(checked(z, labels), labels.sign, labels.weight, float(offset), 0.0).base

    @visible
    def top_share(self, z: FloatArray, labels: Labels, side: int, amount: float) -> FloatArray:
        """Return the share of every row of a class in the highest `amount` of weight, 1 for the other class."""
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
        """Return the labels with every weight times a share."""
        return self.labels(labels.sign, share if labels.weight is None else share * labels.weight)

    @visible
    def soft_threshold(
        self, z: FloatArray, labels: Labels, side: int, amount: float, width: float
    ) -> tuple[float, float]:
        """Return theta as base + offset: the highest `amount` of weight, softened over `width`.

        O(n), and a sort of the rows near theta. The sum over ramps is exactly `amount` at a root of a piecewise linear
        function, whose kinks are sorted; the root is then raised by roundings until the sum does not exceed `amount`.
        """
        z, weight = checked(z, labels), labels.weight
        rows = labels.sign == side
        scores, s = z[rows], None if weight is None else weight[rows]
        base = _amount_from_top(scores, s, amount)
        scores = scores - base  # small near theta, so that a narrow ramp keeps its digits
        sure, near = scores > width, (scores > -width) & (scores <= width)
        left = amount - (np.count_nonzero(sure) if s is None else s[sure].sum())
        g, s = scores[near], np.ones(np.count_nonzero(near)) if s is None else s[near]
        kinks, slopes = np.concatenate([g, g - width]), np.concatenate([s, -s])
        order = np.argsort(-kinks, kind="stable")
        kinks, slopes = kinks[order], np.cumsum(slopes[order])
        sums = np.append(0.0, np.cumsum(slopes[:-1] * -np.diff(kinks)) / width)  # at each kink
        # A flat piece may lie at `left` itself.
        k = min(int(np.searchsorted(sums, left * (1.0 - 1e-12))), len(kinks) - 1)
        offset = float(kinks[k])
        if k > 0 and slopes[k - 1] > 1e-12 * s.sum():
            offset += float((sums[k] - left) * width / slopes[k - 1])
        ramp, full = (g > offset) & (g < offset + width), g >= offset + width
        if s[ramp].sum() > 0.0:  # once more from the rows on the ramp: the running sums carry roundings
            polished = float((s[ramp] @ g[ramp] - width * (left - s[full].sum())) / s[ramp].sum())
            offset = polished if abs(polished - offset) <= 1e-9 * width else offset
        offset = max(offset, -width)  # rows further down have no part
        step = np.spacing(abs(offset))
        for _ in range(60):
            if s @ np.clip((g - offset) / width, 0.0, 1.0) <= left:
                break
            offset, step = offset + step, 2.0 * step
        return base, offset

    @visible
    def lifted(self, z: FloatArray, labels: Labels, threshold: tuple[float, float]) -> tuple[FloatArray, FloatArray]:
        """Return scores less the base, for positives less 1 and at least the offset, and by how much they were lifted."""
        base, offset = threshold
        z = checked(z, labels)
        there = labels.sign > 0
        if labels.weight is not None:
            there &= labels.weight > 0.0
        lowest = float(z[there].min()) - 1.0
        if lowest > base + max(0.0, offset):  # nothing is lifted: a threshold far below must not cost digits
            base, offset = lowest, (base - lowest) + offset
        lifted, lift = np.empty(len(z)), np.empty(len(z))
        kernels.ramps.lift(z, labels.sign, base, offset, lifted, lift)
        return lifted, lift


def _amount_from_top(scores: FloatArray, weight: FloatArray | None, amount: float) -> float:
    """Return the score at which the weight of rows at or above it reaches `amount`: O(n), with weights a sort."""
    if weight is None:
        k = len(scores) - int(np.ceil(amount))
        return float(np.partition(scores, k)[k])
    counted = np.flatnonzero(weight > 0.0)
    order = counted[np.argsort(-scores[counted], kind="stable")]
    sums = np.cumsum(weight[order])
    return float(scores[order[min(int(np.searchsorted(sums, amount * (1.0 - 1e-12))), len(order) - 1)]])
