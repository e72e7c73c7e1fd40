"""Scores on a device, computed with functions of the Array API and, for pairs, with kernels (`gpu/kernels.py`).

Scores, labels, weights and gradients stay on the device in float64; numbers come to the host. The library determines the order
of sums, so a fit gives the same bits in every run on one device. Operations that exist only for the host (worst labellings and
rankings, `scores/gathered.py`) bring the scores there and send the gradient back.
"""

import zlib
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from scoreline import kernels
from scoreline.gpu import kernels as device_kernels
from scoreline.gpu.backend import Backend, DeviceArray
from scoreline.gpu.kernels import PairRows, Ramp, Ranked, host_floats
from scoreline.gpu.vector import DeviceVector
from scoreline.kernels.balance import Balance
from scoreline.runtime.types import FloatArray
from scoreline.scores.base import BalanceSums, Labels, PairSums, PointSums
from scoreline.scores.gathered import Gathered

# The narrowest ramp, relative to the scores: with 16 digits a row's place on it is known to 1e-7. The host has no such limit.
MIN_RAMP_WIDTH = 1e-9
SAMPLE = 1 << 16  # entries that bracket the one at which a cumulative weight reaches a target


@dataclass(frozen=True)
class DeviceLabels(Labels):
    """Labels on a device, with the numbers of the rows of either class."""

    sign: DeviceVector
    weight: DeviceVector | None
    positive_rows: DeviceArray
    negative_rows: DeviceArray
    places: list[DeviceArray]  # a cache of `PairRows.places`


class Space(Gathered[DeviceVector]):
    """Scores as `DeviceVector`s."""

    def labels(self, y: Any, sample_weight: Any = None) -> DeviceLabels:
        """Return labels +1/-1 as int8 and weights as float64 (None stays None), with their totals."""
        on_device: DeviceVector = y if isinstance(y, DeviceVector) else sample_weight
        sign = on_device.like(y).astype(np.int8)
        xp, above = sign.backend.xp, sign.array > 0
        rows = xp.nonzero(above)[0], xp.nonzero(~above)[0]
        counts = int(rows[0].shape[0]), int(rows[1].shape[0])
        if sample_weight is None:
            return DeviceLabels(sign, None, sum(counts), *counts, *counts, *rows, [])
        weight = on_device.like(sample_weight).astype(np.float64)
        positive, negative = (float(xp.sum(sign.backend.take(weight.array, r))) for r in rows)
        return DeviceLabels(sign, weight, positive + negative, positive, negative, *counts, *rows, [])

    def fingerprint(self, labels: DeviceLabels) -> float:
        """Return a checksum of labels and weights, the same as on the host."""
        check = zlib.crc32(np.asarray(labels.sign).data)
        return float(check if labels.weight is None else zlib.crc32(np.asarray(labels.weight).data, check))

    def combine(
        self, a: float, x: DeviceVector, b: float, y: DeviceVector, out: DeviceVector | None = None
    ) -> DeviceVector:
        """Return a x + b y; `out` is not used."""
        return DeviceVector(a * x.array + b * y.array if b != 0.0 else a * x.array, x.backend)

    def dot(self, x: DeviceVector, y: DeviceVector) -> float:
        """Return <x, y>."""
        return float(x.backend.xp.vecdot(x.array, y.array))

    def max_abs(self, x: DeviceVector, labels: DeviceLabels) -> float:
        """Return the largest magnitude among rows of positive weight."""
        xp, counted = x.backend.xp, _counted(x, labels)
        return float(xp.max(xp.abs(counted))) if counted.shape[0] else 0.0

    def span(self, x: DeviceVector, labels: DeviceLabels) -> float:
        """Return the distance from the smallest to the largest among rows of positive weight."""
        xp, counted = x.backend.xp, _counted(x, labels)
        return float(xp.max(counted) - xp.min(counted))

    def point_sums(
        self,
        loss: str,
        z: DeviceVector,
        labels: DeviceLabels,
        width: float = 0.0,
        scale: float = 1.0,
        out: DeviceVector | None = None,
        grad: bool = True,
    ) -> PointSums:
        """Sum a loss over the rows."""
        rows = Rows.of(z, labels)
        xp, y, s = rows.backend.xp, rows.y(), rows.weight
        smooth, falling, hard = _losses(loss, rows.backend, y * rows.z, width)
        if s is not None:
            smooth, falling, hard = smooth * s, falling * s, None if hard is None else hard * s
        totals = [xp.sum(smooth), xp.sum(falling)]
        totals.append(totals[0] if hard is None else xp.sum(hard))
        gradient = rows.vector((-float(scale) * y) * falling) if grad else None
        total, slopes, total_hard = host_floats(rows.backend, xp.stack(totals)).tolist()
        return PointSums(total, slopes, total_hard, gradient)

    def point_curvatures(
        self, loss: str, z: DeviceVector, labels: DeviceLabels, scale: float = 1.0, width: float = 0.0
    ) -> DeviceVector:
        """Return scale * s * second derivative of the loss (of its ramp, if it has one), row by row."""
        rows = Rows.of(z, labels)
        xp = rows.backend.xp
        m = rows.y() * rows.z
        if loss == "logistic":
            e = xp.exp(-xp.abs(m))
            second = e / ((1.0 + e) * (1.0 + e))
        elif loss == "squared_hinge":
            second = xp.astype(m < 1.0, xp.float64)
        else:
            t = 1.0 - m
            second = xp.astype((t > 0.0) & (t < width), xp.float64) * (1.0 / width)
        return rows.vector(scale * second if rows.weight is None else scale * second * rows.weight)

    def pair_sums(
        self,
        z: DeviceVector,
        labels: DeviceLabels,
        width: float = 0.0,
        scale: float = 1.0,
        out: DeviceVector | None = None,
        grad: bool = True,
        margin: float = 1.0,
    ) -> PairSums:
        """Sum the ramp over all pairs, and return its derivatives, by looking up every row in the sorted other class."""
        rows = Rows.of(z, labels)
        both = grad or width > 0.0  # the smooth sum needs both sides
        found = self._pairs(rows, labels, Ramp(margin, float(width), 0.0, (-scale, scale), both, False))
        if found is None:
            gathered: PairSums = self.by_gathering("pair_sums", z, labels, width, scale, None, grad, margin)
            return gathered
        derivatives, sums = found
        smooth, ramps, hard = sums.tolist()
        return PairSums(smooth, ramps, hard, rows.vector(derivatives) if grad else None)

    def pair_curvatures(self, z: DeviceVector, labels: DeviceLabels, width: float, margin: float = 1.0) -> DeviceVector:
        """Return for every row s times the weight of the rows of the other class on a ramp with it, 0 < t <= width < inf."""
        rows = Rows.of(z, labels)
        found = self._pairs(rows, labels, Ramp(margin, float(width), 0.0, (1.0, 1.0), True, True))
        if found is None:
            gathered: DeviceVector = self.by_gathering("pair_curvatures", z, labels, width, margin)
            return gathered
        return rows.vector(found[0])

    def _pairs(self, rows: "Rows", labels: DeviceLabels, ramp: Ramp) -> tuple[DeviceArray | None, FloatArray] | None:
        """Return a result for every row and three sums, or None if the ramp is too narrow for differences of sums."""
        backend, xp, own = rows.backend, rows.backend.xp, device_kernels.on(rows.backend)
        places = labels.places[0] if labels.places else None
        pairs = PairRows(rows.z, rows.weight, labels.positive_rows, labels.negative_rows, places)
        ramp = replace(ramp, centre=xp.mean(rows.z))  # distances from the middle keep running sums small

        def sorted_class(class_rows: DeviceArray, margin: float) -> Ranked:
            keys = own.class_keys(backend, rows.z, class_rows, margin)
            return own.ranked(backend, keys, rows.weight, class_rows, ramp.centre)

        # The larger class first: while a GPU sorts it, this process can submit the rest.
        negatives = None
        if ramp.both and labels.n_negative > labels.n_positive:
            negatives = sorted_class(pairs.negative_rows, 0.0)
        positives = sorted_class(pairs.positive_rows, ramp.margin)
        if ramp.both and negatives is None:
            negatives = sorted_class(pairs.negative_rows, 0.0)
        ends = None
        if negatives is not None and ramp.width > 0.0:
            scores = [side.scores[k] for side in (positives, negatives) for k in (0, len(side) - 1)]
            ends = xp.abs(xp.stack(scores) - ramp.centre)
        result = own.look_up(backend, pairs, positives, negatives, ramp)
        if pairs.places is not None and not labels.places:
            labels.places.append(pairs.places)
        # At the end, because waiting for a number earlier would leave a GPU idle.
        if ends is not None and ramp.width < MIN_RAMP_WIDTH * float(host_floats(backend, ends).max()):
            return None
        return result

    def balance_sums(
        self,
        z: DeviceVector,
        labels: DeviceLabels,
        offset: float,
        width: float = 0.0,
        scale: float = 1.0,
        out: DeviceVector | None = None,
        grad: bool = True,
    ) -> BalanceSums:
        """Find the balancing bias, then sum and return the gradient -scale y s beta."""
        rows = Rows.of(z, labels)
        backend, xp, positive, s = rows.backend, rows.backend.xp, rows.sign > 0, rows.weight
        found = _balance(rows, offset, width, labels.positive)
        moved = min(found.above, found.below)
        none, one = backend.full((), 0.0), backend.full((), 1.0)
        t = xp.where(positive, (offset - rows.z) - found.base, rows.z + found.base)
        hard = xp.maximum(t, none)
        if width > 0.0:
            t = xp.where(positive, t - found.shift, t + found.shift)
            beta = xp.minimum(xp.maximum(t / width, none), one)
            value = beta * (t - 0.5 * width * beta)
        else:
            value, part = hard, xp.where(positive, found.parts[0] * one, found.parts[1] * one)
            beta = xp.where(t > 0.0, one, xp.where(t == 0.0, part, none))
        if s is not None:
            value, hard, beta = value * s, hard * s, beta * s
        smooth, hard = host_floats(backend, xp.stack([xp.sum(value), xp.sum(hard)])).tolist()
        if not grad:
            return BalanceSums(smooth, hard, moved, None)
        above, below = (moved / side if side > 0.0 else 0.0 for side in (found.above, found.below))
        return BalanceSums(
            smooth, hard, moved, rows.vector(beta * xp.where(positive, -scale * above * one, scale * below * one))
        )

    def balance_curvatures(self, z: DeviceVector, labels: DeviceLabels, offset: float, width: float) -> DeviceVector:
        """Return the weight of every row that is on the ramp at the balancing bias, 0 for the others."""
        rows = Rows.of(z, labels)
        xp, found = rows.backend.xp, _balance(rows, offset, width, labels.positive)
        t = xp.where(rows.sign > 0, ((offset - rows.z) - found.base) - found.shift, (rows.z + found.base) + found.shift)
        active = xp.astype((t > 0.0) & (t < width), xp.float64)
        return rows.vector(active if rows.weight is None else active * rows.weight)

    def balancing_bias(self, z: DeviceVector, labels: DeviceLabels, offset: float) -> float:
        """Return the tau of `balance_sums` at width 0."""
        return _balance(Rows.of(z, labels), offset, 0.0, labels.positive).base

    def smallest_reaching(self, values: DeviceVector, weight: DeviceVector | None, target: float) -> float:
        """Return the smallest entry v such that entries up to v weigh `target` together; the largest if none does."""
        return _selected(values.backend, values.array, None if weight is None else weight.array, target)


class Rows(NamedTuple):
    """Scores in float64, labels and weights (or None) of all rows, as device arrays."""

    backend: Backend
    z: DeviceArray
    sign: DeviceArray
    weight: DeviceArray | None

    @classmethod
    def of(cls, z: Any, labels: DeviceLabels) -> "Rows":
        """Return scores with their labels on the device, or raise if the lengths differ."""
        scores = labels.sign.like(z).astype(np.float64)
        if scores.shape != labels.sign.shape:
            raise ValueError(f"scores have shape {scores.shape}, expected {labels.sign.shape}, one for each label")
        weight = None if labels.weight is None else labels.weight.array
        return cls(scores.backend, scores.array, labels.sign.array, weight)

    def y(self) -> DeviceArray:
        """Return the labels in float64."""
        return self.backend.xp.astype(self.sign, self.backend.xp.float64)

    def vector(self, array: DeviceArray) -> DeviceVector:
        """Return an array with one entry per row as a vector."""
        return DeviceVector(array, self.backend)


def _counted(x: DeviceVector, labels: DeviceLabels) -> DeviceArray:
    return x.array if labels.weight is None else x.array[labels.weight.array > 0.0]


def _losses(
    loss: str, backend: Backend, m: DeviceArray, width: float
) -> tuple[DeviceArray, DeviceArray, DeviceArray | None]:
    """Return the smoothed loss of margins, minus its slope, and the loss itself if it differs."""
    xp, none, one = backend.xp, backend.full((), 0.0), backend.full((), 1.0)
    if loss == "logistic":
        e = xp.exp(-xp.abs(m))
        return xp.log1p(e) + xp.maximum(-m, none), xp.where(m > 0.0, e, one) / (1.0 + e), None
    t = xp.maximum(1.0 - m, none)
    if loss == "squared_hinge":
        return 0.5 * t * t, t, None
    if width > 0.0:
        beta = xp.minimum(t / width, one)
        return beta * (t - 0.5 * width * beta), beta, t
    return t, xp.astype(t > 0.0, xp.float64), None


def _balance(rows: Rows, offset: float, width: float, target: float) -> Balance:
    """Return the balancing bias, as `kernels.balance.balance` does; `target` is the weight of all positives."""
    backend, xp, own = rows.backend, rows.backend.xp, kernels.balance
    positive, weight = rows.sign > 0, rows.weight
    places = xp.where(positive, offset - rows.z, -rows.z)
    base = _selected(backend, places, weight, target)
    if width == 0.0:
        above = _weight_of(backend, positive & (places > base), weight)
        below = _weight_of(backend, ~positive & (places < base), weight)
        tied_above = _weight_of(backend, positive & (places == base), weight)
        tied_below = _weight_of(backend, ~positive & (places == base), weight)
        moved = max(above, below)  # the smallest weight that balances both sides
        part_above = min(1.0, (moved - above) / tied_above) if tied_above > 0.0 else 0.0
        part_below = min(1.0, (moved - below) / tied_below) if tied_below > 0.0 else 0.0
        return Balance(
            base, 0.0, (part_above, part_below), above + part_above * tied_above, below + part_below * tied_below
        )
    distance = places - base
    near = xp.abs(distance) <= 2.0 * width
    decided_above = _weight_of(backend, positive & (distance > 2.0 * width), weight)
    decided_below = _weight_of(backend, ~positive & (distance < -2.0 * width), weight)
    distance, above_row = distance[near], positive[near]
    s = None if weight is None else weight[near]
    rounding = own.EPS * max(32.0, distance.shape[0] / 64.0)
    none, one = backend.full((), 0.0), backend.full((), 1.0)

    def sides(shift: float) -> tuple[float, float, float]:
        t = xp.where(above_row, distance - shift, shift - distance)
        beta = xp.minimum(xp.maximum(t / width, none), one)
        active = xp.astype((t > 0.0) & (t < width), xp.float64)
        beta, active = (beta, active) if s is None else (beta * s, active * s)
        sums = xp.stack([xp.sum(xp.where(above_row, beta, none)), xp.sum(beta), xp.sum(active)])
        above, both, weight_on = host_floats(backend, sums).tolist()
        return above + decided_above, (both - above) + decided_below, weight_on

    shift, total_above, total_below = own.root(sides, width, rounding)
    return Balance(base, shift, (0.0, 0.0), total_above, total_below)


def _weight_of(backend: Backend, mask: DeviceArray, weight: DeviceArray | None) -> float:
    xp = backend.xp
    if weight is None:
        return float(xp.count_nonzero(mask))
    return float(xp.sum(xp.where(mask, weight, backend.full((), 0.0))))


def _selected(backend: Backend, x: DeviceArray, weight: DeviceArray | None, target: float) -> float:
    """Return the entry at which the cumulative weight reaches a target, in O(n) and with a sort of few entries.

    A sample brackets the entry, rows below the bracket are counted, and those in it sorted. If the bracket is wrong, all rows
    are sorted.
    """
    xp = backend.xp
    if weight is not None:
        x, weight = x[weight > 0.0], weight[weight > 0.0]
    if x.shape[0] == 0:
        return float("nan")
    if x.shape[0] > 4 * SAMPLE:
        low, high = _bracket(backend, x, weight, target)
        before = _weight_of(backend, x <= low, weight)
        inside = (x > low) & (x <= high)
        if before < target <= before + _weight_of(backend, inside, weight):
            x, weight, target = x[inside], None if weight is None else weight[inside], target - before
    if weight is None:
        place = min(max(int(np.ceil(target)), 1), x.shape[0]) - 1
        return float(xp.sort(x)[place])
    order = xp.argsort(x)
    running = device_kernels.on(backend).running_sums(backend, backend.take(weight, order))
    place = int(xp.searchsorted(running, backend.full((1,), target * (1.0 - 1e-15)))[0])
    return float(x[int(order[min(place, x.shape[0] - 1)])])


def _bracket(backend: Backend, x: DeviceArray, weight: DeviceArray | None, target: float) -> tuple[float, float]:
    """Return a bracket that misses the entry about once in ten thousand cases, if rows are in random order."""
    xp, step = backend.xp, x.shape[0] // SAMPLE
    if weight is None:
        sample, count, share = xp.sort(x[::step]), x[::step].shape[0], target / x.shape[0]
        # Four standard deviations of a binomial count.
        slack = 4.0 * np.sqrt(max(share * (1.0 - share), 1.0 / count) / count)
        places = [int((share + side * slack) * count) for side in (-1.0, 1.0)]
    else:
        order = xp.argsort(x[::step])
        sample, s = backend.take(x[::step], order), backend.take(weight[::step], order)
        running, count, share = xp.cumulative_sum(s), order.shape[0], target / float(xp.sum(weight))
        total = float(running[-1])
        # The same for the effective number of rows.
        slack = 4.0 * np.sqrt(max(share * (1.0 - share), 1.0 / count) * float(xp.sum(s * s))) / total
        ends = backend.array(np.array([(share - slack) * total, (share + slack) * total]))
        places = backend.host(xp.searchsorted(running, ends)).tolist()
    low = float(np.nextafter(float(sample[places[0]]), -np.inf)) if places[0] > 0 else -np.inf
    return low, float(sample[places[1]]) if places[1] < count else np.inf
