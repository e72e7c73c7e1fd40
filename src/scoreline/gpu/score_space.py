"""Scores on a device, worked on by functions of the Array API and, for pairs, by kernels (`gpu/kernels.py`).

Scores, labels, weights and gradients stay there in float64; numbers come back. Everything is added up in an order that the
library fixes, so that a fit gives the same bits in every run on one device. What is written for the host alone (worst
labellings and rankings, `gathered.py`) brings the scores to the host and sends the gradient back.
"""

import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from scoreline.gpu import balance as device_balance
from scoreline.gpu import kernels as device_kernels
from scoreline.gpu import points as device_points
from scoreline.gpu.kernels import PairRows, Ramp
from scoreline.gpu.vector import DeviceVector
from scoreline.runtime.types import Scores
from scoreline.scores.base import BalanceSums, Labels, PairSums, PointSums
from scoreline.scores.gathered import Gathered

# A ramp on which a row's place is known to 1e-7, given scores of 16 digits; the host's kernels need no such limit.
FINEST = 1e-9


@dataclass(frozen=True)
class DeviceLabels(Labels):
    """Labels on a device, with the numbers of the rows of either class."""

    positive_rows: Any
    negative_rows: Any
    places: list[Any]  # kept by look-ups that need it


class Space(Gathered):
    """Scores as `DeviceVector`s."""

    def labels(self, y: Any, sample_weight: Any = None) -> Labels:
        """Return labels +1/-1 as int8 and weights as float64 (None stays None), with their totals."""
        beside = y if isinstance(y, DeviceVector) else sample_weight
        sign = beside.like(y).astype(np.int8)
        xp = sign.backend.xp
        above = sign.array > 0
        positive_rows, negative_rows = (xp.nonzero(mask)[0] for mask in (above, ~above))
        n_positive, n_negative = int(positive_rows.shape[0]), int(negative_rows.shape[0])
        counts, rows = (n_positive, n_negative), (positive_rows, negative_rows)
        if sample_weight is None:
            return DeviceLabels(sign, None, n_positive + n_negative, *counts, *counts, *rows, [])
        weight = beside.like(sample_weight).astype(np.float64)
        positive, negative = (float(xp.sum(sign.backend.take(weight.array, r))) for r in rows)
        return DeviceLabels(sign, weight, positive + negative, positive, negative, *counts, *rows, [])

    def zeros(self, labels: Labels) -> DeviceVector:
        """Return the scores of w = 0."""
        backend = labels.sign.backend
        return DeviceVector(backend.full((len(labels.sign),), 0.0), backend)

    def fingerprint(self, labels: Labels) -> float:
        """Return a checksum of labels and weights, the same as on the host."""
        check = zlib.crc32(np.asarray(labels.sign).data)
        return float(check if labels.weight is None else zlib.crc32(np.asarray(labels.weight).data, check))

    def combine(self, a: float, x: DeviceVector, b: float, y: DeviceVector, out: Scores | None = None) -> DeviceVector:
        """Return a x + b y; `out` is not used."""
        return DeviceVector(a * x.array + b * y.array if b != 0.0 else a * x.array, x.backend)

    def dot(self, x: DeviceVector, y: DeviceVector) -> float:
        """Return <x, y>."""
        return float(x.backend.xp.vecdot(x.array, y.array))

    def max_abs(self, x: DeviceVector, labels: Labels) -> float:
        """Return the largest magnitude among rows of positive weight."""
        xp, counted = x.backend.xp, _counted(x, labels)
        return float(xp.max(xp.abs(counted))) if counted.shape[0] else 0.0

    def span(self, x: DeviceVector, labels: Labels) -> float:
        """Return the distance from the smallest to the largest among rows of positive weight."""
        xp, counted = x.backend.xp, _counted(x, labels)
        return float(xp.max(counted) - xp.min(counted))

    def is_finite(self, x: DeviceVector) -> bool:
        """Return whether there is neither NaN nor infinity."""
        return bool(x.backend.xp.all(x.backend.xp.isfinite(x.array)))

    def select(self, x: DeviceVector, labels: Labels, side: int) -> DeviceVector:
        """Return x on the rows of one class (+1 or -1), 0 on the others."""
        return np.where(labels.sign == side, x, 0.0)  # type: ignore[return-value]

    def total(self, x: DeviceVector) -> float:
        """Return the sum of all rows."""
        return float(x.sum())

    def weighted(self, x: DeviceVector, labels: Labels) -> DeviceVector:
        """Return s_i x_i."""
        return x if labels.weight is None else labels.weight * x

    def per_weight(self, x: DeviceVector, labels: Labels) -> DeviceVector:
        """Return x_i / s_i, 0 for rows of weight 0."""
        if labels.weight is None:
            return x
        there = labels.weight > 0.0
        return np.where(there, x / np.where(there, labels.weight, 1.0), 0.0)  # type: ignore[return-value]

    def reweighted(self, labels: Labels, share: DeviceVector) -> Labels:
        """Return the labels with every weight times a share."""
        return self.labels(labels.sign, share if labels.weight is None else share * labels.weight)

    def significant(self, x: DeviceVector, labels: Labels, negligible: float) -> DeviceVector:
        """Return x >= 0 with its smallest entries per unit of weight set to 0; one sort."""
        backend, xp, single = x.backend, x.backend.xp, self.per_weight(x, labels)
        order = xp.argsort(single.array)
        running = device_kernels.on(backend).running_sums(backend, backend.take(x.array, order))
        last = int(xp.searchsorted(running, negligible * running[-1:])[0])
        limit = (1.0 - 1e-9) * float(single.array[int(order[min(last, len(x) - 1)])])  # equal rows stay together
        return np.where(single < limit, 0.0, x)  # type: ignore[return-value]

    def point_sums(
        self,
        loss: str,
        z: DeviceVector,
        labels: Labels,
        width: float = 0.0,
        scale: float = 1.0,
        out: Scores | None = None,
        grad: bool = True,
    ) -> PointSums:
        """Sum a loss over the rows."""
        z = checked(z, labels)
        sums, made = device_points.sums(loss, z.backend, *_rows(z, labels), float(width), float(scale), grad)
        smooth, slopes, hard = sums
        return PointSums(smooth, slopes, hard, None if made is None else DeviceVector(made, z.backend))

    def point_curvatures(
        self, loss: str, z: DeviceVector, labels: Labels, scale: float = 1.0, width: float = 0.0
    ) -> DeviceVector:
        """Return scale * s * second derivative of the loss (of its ramp, if it has one), row by row."""
        z = checked(z, labels)
        made = device_points.curvatures(loss, z.backend, *_rows(z, labels), float(scale), float(width))
        return DeviceVector(made, z.backend)

    def pair_sums(
        self,
        z: DeviceVector,
        labels: Labels,
        width: float = 0.0,
        scale: float = 1.0,
        out: Scores | None = None,
        grad: bool = True,
        margin: float = 1.0,
    ) -> PairSums:
        """Sum the ramp over all pairs, and return its derivatives: both classes sorted, every row looks itself up."""
        z = checked(z, labels)
        both = grad or width > 0.0  # the smooth sum needs both sides
        made, sums = self._pairs(z, labels, Ramp(margin, width, 0.0, (-scale, scale), both, False))
        if sums is None:
            gathered: PairSums = self.by_gathering("pair_sums", z, labels, width, scale, None, grad, margin)
            return gathered
        smooth, ramps, hard = map(float, sums)
        return PairSums(smooth, ramps, hard, DeviceVector(made, z.backend) if grad else None)

    def pair_curvatures(self, z: DeviceVector, labels: Labels, width: float, margin: float = 1.0) -> DeviceVector:
        """Return for every row s times the weight of the other class that it is on a ramp with, 0 < t <= width < inf."""
        z = checked(z, labels)
        made, sums = self._pairs(z, labels, Ramp(margin, width, 0.0, (1.0, 1.0), True, True))
        if sums is None:
            gathered: DeviceVector = self.by_gathering("pair_curvatures", z, labels, width, margin)
            return gathered
        return DeviceVector(made, z.backend)

    def _pairs(self, z: DeviceVector, labels: Any, ramp: Ramp) -> tuple[Any, Any]:
        """Return a result for every row and three sums, or None where a ramp is too fine for differences of running sums."""
        backend, xp = z.backend, z.backend.xp
        weight = None if labels.weight is None else labels.weight.array
        rows = PairRows(z.array, weight, labels.positive_rows, labels.negative_rows)
        rows.places = labels.places[0] if labels.places else None
        # Distances from the middle, so that running sums stay small.
        ramp = Ramp(ramp.margin, float(ramp.width), xp.mean(z.array), ramp.scales, ramp.both, ramp.curved)
        own = device_kernels.on(backend)

        def sorted_class(class_rows: Any, margin: float) -> Any:
            keys = own.class_keys(backend, z.array, class_rows, margin)
            return own.ranked(backend, keys, weight, class_rows, ramp.centre)

        # The larger class first: while a GPU sorts it, this process has time to ask for the rest.
        negatives = None
        if ramp.both and labels.n_negative > labels.n_positive:
            negatives = sorted_class(rows.negative_rows, 0.0)
        positives = sorted_class(rows.positive_rows, ramp.margin)
        if ramp.both and negatives is None:
            negatives = sorted_class(rows.negative_rows, 0.0)
        ends = None
        if negatives is not None and ramp.width > 0.0:
            scores = [side.scores[k] for side in (positives, negatives) for k in (0, len(side) - 1)]
            ends = xp.abs(xp.stack(scores) - ramp.centre)
        result = own.look_up(backend, rows, positives, negatives, ramp)
        if rows.places is not None and not labels.places:
            labels.places.append(rows.places)
        # Asked for last: waiting for a number in between would leave a GPU idle.
        if ends is not None and ramp.width < FINEST * float(device_kernels.host_floats(backend, ends).max()):
            return None, None
        return result

    def balance_sums(
        self,
        z: DeviceVector,
        labels: Labels,
        offset: float,
        width: float = 0.0,
        scale: float = 1.0,
        out: Scores | None = None,
        grad: bool = True,
    ) -> BalanceSums:
        """Find the balancing bias, then sum and return the gradient -scale y s beta."""
        z = checked(z, labels)
        arrays = _rows(z, labels)
        rows = (arrays[0], arrays[1] > 0, arrays[2], float(offset), float(width))
        found = device_balance.balance(z.backend, *rows, labels.positive)
        moved = min(found.above, found.below)
        shares = [moved / side if side > 0.0 else 0.0 for side in (found.above, found.below)]
        smooth, hard, made = device_balance.sums(z.backend, *rows, found, (-scale * shares[0], scale * shares[1]))
        return BalanceSums(smooth, hard, moved, DeviceVector(made, z.backend) if grad else None)

    def balance_curvatures(self, z: DeviceVector, labels: Labels, offset: float, width: float) -> DeviceVector:
        """Return the weight of every row that is on the ramp at the balancing bias, 0 for the others."""
        z = checked(z, labels)
        arrays = _rows(z, labels)
        rows = (arrays[0], arrays[1] > 0, arrays[2], float(offset), float(width))
        found = device_balance.balance(z.backend, *rows, labels.positive)
        return DeviceVector(device_balance.on_ramp(z.backend, *rows, found), z.backend)

    def balancing_bias(self, z: DeviceVector, labels: Labels, offset: float) -> float:
        """Return the tau of `balance_sums` at width 0."""
        arrays = _rows(checked(z, labels), labels)
        rows = (arrays[0], arrays[1] > 0, arrays[2], float(offset), 0.0)
        return float(device_balance.balance(z.backend, *rows, labels.positive).base)


def checked(z: Any, labels: Labels) -> DeviceVector:
    """Return scores as float64 on the device of the labels, one for each."""
    scores: DeviceVector = labels.sign.like(z).astype(np.float64)
    if scores.shape != labels.sign.shape:
        raise ValueError(f"scores have shape {scores.shape}, expected {labels.sign.shape}, one for each label")
    return scores


def _rows(z: DeviceVector, labels: Labels) -> tuple[Any, Any, Any]:
    return z.array, labels.sign.array, None if labels.weight is None else labels.weight.array


def _counted(x: DeviceVector, labels: Labels) -> Any:
    return x.array if labels.weight is None else x.array[labels.weight.array > 0.0]
