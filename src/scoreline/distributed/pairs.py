"""ROC area of scores in blocks: the scores of the smaller class are sent to all workers.

Every part sorts its keys, the scores of the smaller class, and sends them to the other workers. There every row of the larger
class is lookup up among all keys. The keys need sums over all rows of the larger class: every part computes them from its own
rows and sends them to the other workers, which add them.

With k rows in the smaller class and W workers that moves 8 k (W - 1) + 8 k W (W - 1) bytes for up to MAX_DIRECT_PARTS parts.
With more parts, keys and sums are merged in a tree and sent out again, 8 k (W - 1) bytes each way for either. Weights of keys
take as much as the keys.
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

MAX_DIRECT_PARTS = 4  # with more parts, results are merged in a tree


class PartLookup(NamedTuple):
    """The result of a part's look-up: derivatives of its queries, its key rows, and their places among all keys.

    `grad` also has entries for the keys, which `_with_key_sums` sets.
    """

    grad: FloatArray
    rows: AnyArray
    places: AnyArray


class BlockLookup:
    """The look-ups of all parts, with the sums over all pairs and the gradient."""

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
        """Return the lazy gradient: the derivatives of queries, and for keys the total of all parts' sums."""
        sums = shared(self.layout, self.layout.items(self.refs, 1), added, 8.0 * self.n_keys)
        return self.layout.vector(_with_key_sums, self._items(0), self.rows.weight, self.key_scale, sums)


def look_up(
    z: BlockVector, labels: Labels, width: float, scales: tuple[float, float], shift: float, curved: bool = False
) -> BlockLookup:
    """Look up every row among the keys of all parts; see `HostSpace`."""
    key_sign = 1 if labels.n_positive <= labels.n_negative else -1
    key_scale, query_scale = scales if key_sign > 0 else scales[::-1]
    rows, layout = Rows(z, labels.sign, labels.weight), z.layout
    n_keys = min(labels.n_positive, labels.n_negative)
    size = (8.0 if labels.weight is None else 16.0) * n_keys
    keys = shared(layout, layout.each(_keys, rows, key_sign, shift), _merged, size / layout.n_parts, size)
    refs = layout.each(_look_up, rows, keys, key_sign, shift, width, query_scale, curved, keep=True)
    return BlockLookup(rows, refs, key_scale, n_keys)


def shared(
    layout: Layout, refs: list[Ref], combine: Callable[..., Any], size: float, combined: float | None = None
) -> Every:
    """Return the results of all parts for every worker, separately or, if there are many parts, combined in a tree.

    `size` is the size of one part's result in bytes, and `combined` that of the combined result, by default the same.
    """
    others = layout.n_workers - 1
    if layout.n_parts <= MAX_DIRECT_PARTS:
        layout.cluster.count(others * layout.n_parts * size)
        return Every(refs)
    layout.cluster.count(others * (size if combined is None else combined))
    return Every([layout.folded(refs, combine, size, grows=combined is not None)])


def _keys(rows: PartRows, key_sign: int, shift: float) -> Keys:
    return pairs.sorted_keys(*rows, key_sign, int(np.count_nonzero(rows.sign == key_sign)), shift)


def _merged(*parts: Keys) -> Keys:
    """Return the keys of several parts in increasing order; a stable sort merges sorted arrays fast."""
    scores = np.concatenate([part.scores for part in parts])
    if parts[0].weight is None:
        scores.sort(kind="stable")
        return Keys(scores, None)
    order = np.argsort(scores, kind="stable")
    return Keys(scores[order], np.concatenate([part.weight for part in parts])[order])


def _look_up(
    rows: PartRows, parts: list[Keys], key_sign: int, shift: float, width: float, scale: float, curved: bool
) -> tuple[PartLookup, FloatArray, list[float]]:
    keys, grad = _merged(*parts), empty(len(rows.z))
    lookup = pairs.look_up(*rows, keys, key_sign, shift, width, scale, grad, curved)
    first = np.searchsorted(
        lookup.edges[: len(lookup.sums)], keys.scores
    )  # the first of equal edges, which has the sum
    own = np.flatnonzero(rows.sign == key_sign)
    # From a row's edge to its key: edges increase with the keys, and equal keys share an edge.
    places = np.searchsorted(first, lookup.places[own].astype(np.int64) - (len(lookup.sums) + 1)).astype(np.uint32)
    return PartLookup(grad, own, places), lookup.sums[first], [lookup.smooth, lookup.ramps, lookup.hard]


def _with_key_sums(found: PartLookup, weight: FloatArray | None, scale: float, sums: list[FloatArray]) -> FloatArray:
    """Return the gradient with the entries of the keys set; setting them twice does no harm."""
    own = scale * added(*sums)[found.places]
    grad = found.grad if found.grad.flags.writeable else found.grad.copy()  # arrays from a disk or the network are not
    grad[found.rows] = own if weight is None else weight[found.rows] * own
    return grad
