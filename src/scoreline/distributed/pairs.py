"""ROC area of scores in blocks: the smaller class goes to all workers, everything else stays.

Every part sorts its keys (scores of the smaller class) and sends them to the other workers. There every row looks itself up
among all keys, which settles the rows of the larger class. The keys need sums over all rows of the larger class: a part makes
them for all keys from its own rows, sends them to the other workers, and the total is theirs. With k rows in the smaller class
and W workers that moves 8 k (W - 1) + 8 k W (W - 1) bytes up to FEW parts; beyond, keys and sums are merged in a tree and sent
out again, 8 k (W - 1) bytes each way for either. Weights of keys add as much as the keys.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from scoreline.distributed.blocks import BlockVector, Every, Layout, Parts, Ref
from scoreline.distributed.tasks import PartRows, Rows, added, empty
from scoreline.runtime.types import AnyArray, FloatArray
from scoreline.scores import host_pairs as pairs
from scoreline.scores.base import Labels
from scoreline.scores.host_pairs import Keys

FEW = 4  # parts up to which every one adds up what all others send


class Found(NamedTuple):
    """What a part knows after its look-up: derivatives of its queries, its key rows, and their places among all keys.

    `grad` has room for the derivatives of the keys, which `_given` fills in.
    """

    grad: FloatArray
    rows: AnyArray
    places: AnyArray


class Looked:
    """The look-ups of all parts: sums to bring to the driver, and the gradient they describe."""

    def __init__(self, rows: Rows[BlockVector], refs: list[Ref], key_scale: float, n_keys: int):
        self.rows, self.layout, self.refs = rows, rows.z.layout, refs
        self.key_scale, self.n_keys = key_scale, n_keys
        self.numbers = self._items(2)

    def _items(self, k: int) -> Parts:
        return Parts(Ref(ref.future, (*ref.path, k)) for ref in self.refs)

    def sums(self) -> tuple[float, float, float]:
        """Return the weighted sums over all pairs of (smooth, ramp, hard)."""
        smooth, ramps, hard = np.sum(self.layout.fetch(self.layout.items(self.refs, 2)), axis=0).tolist()
        return smooth, ramps, hard

    def gradient(self) -> BlockVector:
        """Describe the gradient: what queries have found, and for keys the total of what all parts have for them."""
        sums = shared(self.layout, self.layout.items(self.refs, 1), added, 8.0 * self.n_keys)
        return self.layout.vector(_given, self._items(0), self.rows.weight, self.key_scale, sums)


def look_up(
    z: BlockVector, labels: Labels, width: float, scales: tuple[float, float], shift: float, curved: bool = False
) -> Looked:
    """Let every row look itself up among the keys of all parts; see `HostSpace`."""
    key_sign = 1 if labels.n_positive <= labels.n_negative else -1
    key_scale, query_scale = scales if key_sign > 0 else scales[::-1]
    rows, layout = Rows(z, labels.sign, labels.weight), z.layout
    n_keys = min(labels.n_positive, labels.n_negative)
    size = (8.0 if labels.weight is None else 16.0) * n_keys
    keys = shared(layout, layout.each(_keys, rows, key_sign, shift), _merged, size / layout.n_parts, size)
    refs = layout.each(_look_up, rows, keys, key_sign, shift, width, query_scale, curved, keep=True)
    return Looked(rows, refs, key_scale, n_keys)


def shared(
    layout: Layout, refs: list[Ref], combine: Callable[..., Any], size: float, combined: float | None = None
) -> Every:
    """Return what every worker needs of all parts: what each has, or all combined in a tree where there are many parts.

    `size` is what one part has in bytes, `combined` what they have together, if that is not as much as one.
    """
    others = layout.n_workers - 1
    if layout.n_parts <= FEW:
        layout.cluster.count(others * layout.n_parts * size)
        return Every(refs)
    layout.cluster.count(others * (size if combined is None else combined))
    return Every([layout.folded(refs, combine, size, grows=combined is not None)])


def _keys(rows: PartRows, key_sign: int, shift: float) -> Keys:
    return pairs.sorted_keys(*rows, key_sign, int(np.count_nonzero(rows.sign == key_sign)), shift)


def _merged(*parts: Keys) -> Keys:
    """Return the keys of several parts in rising order; a stable sort merges what is sorted already."""
    scores = np.concatenate([part.scores for part in parts])
    if parts[0].weight is None:
        scores.sort(kind="stable")
        return Keys(scores, None)
    order = np.argsort(scores, kind="stable")
    return Keys(scores[order], np.concatenate([part.weight for part in parts])[order])


def _look_up(
    rows: PartRows, parts: list[Keys], key_sign: int, shift: float, width: float, scale: float, curved: bool
) -> tuple[Found, FloatArray, list[float]]:
    keys, grad = _merged(*parts), empty(len(rows.z))
    looked = pairs.look_up(*rows, keys, key_sign, shift, width, scale, grad, curved)
    first = np.searchsorted(looked.edges[: len(looked.sums)], keys.scores)  # of equal edges, which has the sum
    own = np.flatnonzero(rows.sign == key_sign)
    # Of a row's edge the key: keys rise with their edges, and equal keys share one.
    places = np.searchsorted(first, looked.places[own].astype(np.int64) - (len(looked.sums) + 1)).astype(np.uint32)
    return Found(grad, own, places), looked.sums[first], [looked.smooth, looked.ramps, looked.hard]


def _given(found: Found, weight: FloatArray | None, scale: float, sums: list[FloatArray]) -> FloatArray:
    """Put what keys get beside what queries have found; there it changes nothing if it was put there before."""
    own = scale * added(*sums)[found.places]
    grad = found.grad if found.grad.flags.writeable else found.grad.copy()  # what comes from a disk or a wire is not
    grad[found.rows] = own if weight is None else weight[found.rows] * own
    return grad
