"""Scores in blocks on workers: the same operations as on the host, in rounds that move little data.

A round sends a function to every part and returns numbers. Sums over rows take one round. ROC area sends the sorted scores of
the smaller class to all workers, and their partial sums back (`pairs.py`). The balance of PRBEP is found by k-section
(`balance.py`). Other operations bring all scores to the driver, compute on the host and send the gradient back
(`scores/gathered.py`), which moves n scores over the network.
"""

import weakref
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from scoreline import kernels
from scoreline.distributed import balance as block_balance
from scoreline.distributed import pairs as block_pairs
from scoreline.distributed import selection
from scoreline.distributed.blocks import BlockVector, Parts, Spans
from scoreline.distributed.tasks import PartRows, Rows, empty, labels_of
from scoreline.kernels.balance import Balance
from scoreline.runtime.types import AnyArray, FloatArray
from scoreline.runtime.vectors import visible
from scoreline.scores.base import BalanceSums, Labels, PairSums, PointSums
from scoreline.scores.gathered import Gathered
from scoreline.scores.host import HostSpace

HOST = HostSpace()


@dataclass(frozen=True)
class BlockLabels(Labels):
    """Labels and weights in blocks."""

    sign: BlockVector
    weight: BlockVector | None

    def rows(self, z: BlockVector) -> Rows[BlockVector]:
        """Return scores with the labels and weights of their rows."""
        return Rows(z, self.sign, self.weight)


class Space(Gathered[BlockVector]):
    """Scores as `BlockVector`s; labels, weights and gradients stay on the workers of their rows."""

    def labels(self, y: BlockVector, sample_weight: BlockVector | None = None) -> BlockLabels:
        """Return labels +1/-1 as int8 and weights as float64 (None stays None), with their totals, in one round."""
        sign = y.astype(np.int8).computed()
        weight = None if sample_weight is None else sample_weight.astype(np.float64).computed()
        n_positive, n_negative, positive, negative = map(
            sum, zip(*sign.layout.gather(_totals, sign, weight), strict=True)
        )
        if weight is None:
            positive, negative = n_positive, n_negative
        return BlockLabels(sign, weight, positive + negative, positive, negative, n_positive, n_negative)

    def fingerprint(self, labels: BlockLabels) -> float:
        """Return a checksum of labels and weights that does not depend on the parts."""
        return float(checksum(labels.sign, labels.weight))

    @visible
    def combine(
        self, a: float, x: BlockVector, b: float, y: BlockVector, out: BlockVector | None = None
    ) -> BlockVector:
        """Return a x + b y; `out` is not used, because vectors are immutable."""
        total = x.layout.vector(_combine, float(a), x, float(b), y)
        total.parents = (x, y)
        x.parents = y.parents = ()  # or the scores of an iteration would keep those of all earlier iterations alive
        return total

    @visible
    def dot(self, x: BlockVector, y: BlockVector) -> float:
        """Return <x, y>, without a round if an evaluation has computed it."""
        for one, other in ((x, y), (y, x)):
            for reference, value in one.known_products:
                if reference() is other:
                    return value
        return float(sum(x.layout.gather(kernels.vectors.dot, x, y)))

    def max_abs(self, x: BlockVector, labels: BlockLabels) -> float:
        """Return the largest magnitude among rows of positive weight, without a round if an evaluation has computed it."""
        known = x.known_largest
        if known is None or known[0] is not labels:
            known = labels, float(max(x.layout.gather(kernels.vectors.max_abs, x, labels.weight)))
            x.known_largest = known
        return known[1]

    @visible
    def span(self, x: BlockVector, labels: BlockLabels) -> float:
        """Return the distance from the smallest to the largest among rows of positive weight."""
        lows, highs = zip(*x.layout.gather(_ends, x, labels.weight), strict=True)
        return float(np.max(highs) - np.min(lows))  # NaN stays NaN

    @visible
    def point_sums(
        self,
        loss: str,
        z: BlockVector,
        labels: BlockLabels,
        width: float = 0.0,
        scale: float = 1.0,
        out: BlockVector | None = None,
        grad: bool = True,
    ) -> PointSums:
        """Sum a loss over the rows in one round, together with the numbers that a line search needs next."""
        arguments = loss, labels.rows(z), float(width), float(scale)
        sums, extras = _split(z.layout.gather(_point_numbers, *arguments, grad, *z.parents), 3)
        gradient = z.layout.vector(_point_grad, *arguments) if grad else None
        if gradient is not None:
            note(gradient, z, labels, extras)
        return PointSums(sums[0], sums[1], sums[2], gradient)

    def point_curvatures(
        self, loss: str, z: BlockVector, labels: BlockLabels, scale: float = 1.0, width: float = 0.0
    ) -> BlockVector:
        """Return scale * s * second derivative of the loss (of its ramp, if it has one), row by row."""
        return z.layout.vector(_point_curvatures, loss, labels.rows(z), float(scale), float(width))

    @visible
    def pair_sums(
        self,
        z: BlockVector,
        labels: BlockLabels,
        width: float = 0.0,
        scale: float = 1.0,
        out: BlockVector | None = None,
        grad: bool = True,
        margin: float = 1.0,
    ) -> PairSums:
        """Sum the ramp over all pairs: the sorted keys are sent to all workers, and partial sums back."""
        lookup = block_pairs.look_up(z, labels, float(width), (-scale, scale), float(margin))
        if not grad:
            return PairSums(*lookup.sums(), None)
        gradient = lookup.gradient()
        sums, extras = _split(z.layout.gather(_pair_numbers, lookup.numbers, gradient, z, labels.weight, *z.parents), 3)
        note(gradient, z, labels, extras)
        return PairSums(sums[0], sums[1], sums[2], gradient)

    @visible
    def pair_curvatures(self, z: BlockVector, labels: BlockLabels, width: float, margin: float = 1.0) -> BlockVector:
        """Return for every row s times the weight of the rows of the other class on a ramp with it."""
        return block_pairs.look_up(z, labels, float(width), (1.0, 1.0), float(margin), curved=True).gradient()

    @visible
    def balance_sums(
        self,
        z: BlockVector,
        labels: BlockLabels,
        offset: float,
        width: float = 0.0,
        scale: float = 1.0,
        out: BlockVector | None = None,
        grad: bool = True,
    ) -> BalanceSums:
        """Find the balancing bias by k-section, then the sums and the lazy gradient -scale y s beta."""
        arguments = labels.rows(z), float(offset), float(width)
        found = block_balance.balance(*arguments, labels.positive)
        numbers = z.layout.gather(_balance_numbers, *arguments, found, *z.parents)
        (smooth, hard, above, below), extras = _split(numbers, 4)
        moved = min(above, below)
        if not grad:
            return BalanceSums(smooth, hard, moved, None)
        shares = [moved / side if side > 0.0 else 0.0 for side in (above, below)]
        scales = -scale * shares[0], scale * shares[1]
        gradient = z.layout.vector(_balance_grad, *arguments, found, scales)
        largest, by_class = extras[0], np.reshape(extras[1:], (2, -1))
        note(gradient, z, labels, [largest, *(np.array(scales) @ by_class)])
        return BalanceSums(smooth, hard, moved, gradient)

    @visible
    def balance_curvatures(self, z: BlockVector, labels: BlockLabels, offset: float, width: float) -> BlockVector:
        """Return the weight of every row that is on the ramp at the balancing bias, 0 for the others."""
        arguments = labels.rows(z), float(offset), float(width)
        return z.layout.vector(_on_ramp, *arguments, block_balance.balance(*arguments, labels.positive))

    @visible
    def balancing_bias(self, z: BlockVector, labels: BlockLabels, offset: float) -> float:
        """Return the tau of `balance_sums` at width 0."""
        return block_balance.base_of(labels.rows(z), float(offset), labels.positive)

    def smallest_reaching(self, values: BlockVector, weight: BlockVector | None, target: float) -> float:
        """Return the smallest entry v such that entries up to v weigh `target` together; the largest if none does."""
        return selection.smallest_reaching(values, weight, target)


def note(grad: BlockVector, z: BlockVector, labels: Labels, extras: Sequence[float]) -> None:
    """Store numbers of an evaluation: max |z|, the sum of the gradient, and its products with z and the parents of z."""
    z.known_largest = labels, float(extras[0])
    grad.known_sum = float(extras[1])
    grad.known_products = [(weakref.ref(v), float(x)) for v, x in zip((z, *z.parents), extras[2:], strict=True)]


def _split(parts: list[list[float]], count: int) -> tuple[list[float], list[float]]:
    """Return the sums of the parts' first `count` numbers, and of the rest, whose first number is a maximum."""
    table = np.array(parts)
    totals = table.sum(axis=0)
    rest = totals[count:].tolist()
    if rest:
        rest[0] = float(table[:, count].max())
    return totals[:count].tolist(), rest


def _extras(grad: FloatArray, z: FloatArray, weight: FloatArray | None, along: tuple[FloatArray, ...]) -> list[float]:
    return [kernels.vectors.max_abs(z, weight), float(grad.sum()), *(kernels.vectors.dot(grad, v) for v in (z, *along))]


def _totals(sign: AnyArray, weight: FloatArray | None) -> tuple[int, int, float, float]:
    positive = sign > 0
    count = int(np.count_nonzero(positive))
    sums = (0.0, 0.0) if weight is None else (float(weight[positive].sum()), float(weight[~positive].sum()))
    return count, len(sign) - count, *sums


def checksum(sign: BlockVector, weight: BlockVector | None) -> int:
    """Return a checksum of labels and weights in the order of the rows of X."""
    spans = sign.layout.spans
    assert spans is not None
    return int(sum(sign.layout.gather(_checksum, sign, weight, Parts(spans))) % 2**32)


def _checksum(sign: AnyArray, weight: FloatArray | None, spans: Spans) -> int:
    """Return a sum over rows of hashes of a row's index, label and weight, which does not depend on the order."""
    rows = np.concatenate([np.arange(start, stop, dtype=np.uint64) for start, stop in spans])
    mixed = (rows + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    mixed ^= mixed >> np.uint64(29)
    mixed *= (np.asarray(sign, dtype=np.int64) + 2).view(np.uint64)
    if weight is not None:
        mixed *= np.ascontiguousarray(weight, dtype=np.float64).view(np.uint64) ^ np.uint64(0xD1B54A32D192ED03)
    mixed ^= mixed >> np.uint64(32)
    return int(mixed.sum(dtype=np.uint64) % np.uint64(2**32))


def _combine(a: float, x: FloatArray, b: float, y: FloatArray) -> FloatArray:
    return kernels.vectors.combine(a, x, b, y, empty(len(x)))


def _ends(x: FloatArray, weight: FloatArray | None) -> tuple[float, float]:
    counted = x if weight is None else x[weight > 0.0]
    return (float(counted.min()), float(counted.max())) if len(counted) else (np.inf, -np.inf)


def _point_numbers(
    loss: str, rows: PartRows, width: float, scale: float, grad: bool, *along: FloatArray
) -> list[float]:
    out = empty(len(rows.z)) if grad else None
    sums = HOST.point_sums(loss, rows.z, labels_of(rows), width, scale, out, grad)
    return [sums.smooth, sums.slopes, sums.hard, *(_extras(sums.grad, rows.z, rows.weight, along) if grad else ())]


def _point_grad(loss: str, rows: PartRows, width: float, scale: float) -> FloatArray:
    return np.asarray(HOST.point_sums(loss, rows.z, labels_of(rows), width, scale, empty(len(rows.z))).grad)


def _point_curvatures(loss: str, rows: PartRows, scale: float, width: float) -> FloatArray:
    return HOST.point_curvatures(loss, rows.z, labels_of(rows), scale, width)


def _pair_numbers(
    sums: list[float], grad: FloatArray, z: FloatArray, weight: FloatArray | None, *along: FloatArray
) -> list[float]:
    return [*sums, *_extras(grad, z, weight, along)]


def _balance_numbers(rows: PartRows, offset: float, width: float, found: Balance, *along: FloatArray) -> list[float]:
    """Return the sums of both classes, and per class the numbers of s beta that `note` needs before they are scaled."""
    z, sign, weight = rows
    moved = empty(len(z))
    smooth, hard = kernels.balance.sums(z, sign, weight, offset, width, found, (1.0, 1.0), moved)
    dot = kernels.brackets.class_dot
    above, below = zip(*(dot(moved, sign, v) for v in (np.broadcast_to(1.0, len(z)), z, *along)), strict=True)
    return [smooth, hard, above[0], below[0], kernels.vectors.max_abs(z, weight), *above, *below]


def _balance_grad(
    rows: PartRows, offset: float, width: float, found: Balance, scales: tuple[float, float]
) -> FloatArray:
    out = empty(len(rows.z))
    kernels.balance.sums(*rows, offset, width, found, scales, out)
    return out


def _on_ramp(rows: PartRows, offset: float, width: float, found: Balance) -> FloatArray:
    return HostSpace.on_ramp(rows.z, labels_of(rows), offset, width, found)
