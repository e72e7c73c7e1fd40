"""ROC area of scores in blocks: the smaller class goes to all workers, everything else stays.

Every part sorts its keys (scores of the smaller class) and sends them to the other workers. There every row looks itself up
among all keys, which settles the rows of the larger class. The keys need sums over all rows of the larger class: a part makes
them for all keys from its own rows, sends them to the other workers, and the total is theirs. With k rows in the smaller class
and W workers that moves 8 k (W - 1) + 8 k W (W - 1) bytes up to FEW parts; beyond, keys and sums are merged in a tree and sent
out again, 8 k (W - 1) bytes each way for either. Weights of keys add as much as the keys.
"""

from typing import Any, NamedTuple

import numpy as np

from scoreline.distributed.blocks import BlockVector, Every, Parts, Ref
from scoreline.distributed.tasks import added, empty
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
    """The look-ups of all parts: sums to bring here, and the gradient they describe."""

    def __init__(self, z: BlockVector, labels: Labels, refs: list[Ref], key_sign: int, key_scale: float, n_keys: int):
        self.layout, self.labels, self.refs = z.layout, labels, refs
        self.key_sign, self.key_scale, self.n_keys = key_sign, key_scale, n_keys
        self.numbers = Parts(Ref(ref.future, (*ref.path, 2)) for ref in refs)

    def sums(self) -> tuple[float, float, float]:
        """Return the weighted sums over all pairs of (smooth, ramp, hard)."""
        numbers = self.layout.cluster.gather([ref.future for ref in self.layout.items(self.refs, 2)])
        smooth, ramps, hard = np.sum(numbers, axis=0).tolist()
        return smooth, ramps, hard

    def gradient(self) -> BlockVector:
        """Describe the gradient: what queries have found, and for keys the total of what all parts have for them."""
        layout, size = self.layout, 8.0 * self.n_keys
        sums = shared(layout, layout.items(self.refs, 1), added, size)
        found = Parts(Ref(ref.future, (*ref.path, 0)) for ref in self.refs)
        return layout.vector(_given, found, self.labels.weight, self.key_scale, sums)


def look_up(
    z: BlockVector, labels: Labels, width: float, scales: tuple[float, float], shift: float, curved: bool = False
) -> Looked:
    """Let every row look itself up among the keys of all parts; see `HostSpace`."""
    key_sign = 1 if labels.n_positive <= labels.n_negative else -1
    key_scale, query_scale = scales if key_sign > 0 else scales[::-1]
    rows, layout = (z, labels.sign, labels.weight), z.layout
    n_keys = min(labels.n_positive, labels.n_negative)
    size = (8.0 if labels.weight is None else 16.0) * n_keys
    keys = shared(layout, layout.each(_keys, *rows, key_sign, shift), _merged, size / layout.n_parts, size)
    refs = layout.each(_look_up, *rows, keys, key_sign, shift, width, query_scale, curved, keep=True)
    return Looked(z, labels, refs, key_sign, key_scale, n_keys)


def shared(layout: Any, refs: list[Ref], combine: Any, size: float, combined: float | None = None) -> Every:
    """Return what every worker needs of all parts: what each has, or all combined in a tree where there are many parts.

    `size` is what one part has in bytes, `combined` what they have together, if that is not as much as one.
    """
    others = layout.n_workers - 1
    if layout.n_parts <= FEW:
        layout.cluster.count(others * layout.n_parts * size)
        return Every(refs)
    layout.cluster.count(others * (size if combined is None else combined))
    return Every([layout.folded(refs, combine, size, grows=combined is not None)])


def _keys(z: FloatArray, sign: AnyArray, weight: FloatArray | None, key_sign: int, shift: float) -> Keys:
    return pairs.sorted_keys(z, sign, weight, key_sign, int(np.count_nonzero(sign == key_sign)), shift)


def _merged(*parts: Keys) -> Keys:
    """Return the keys of several parts in rising order; a stable sort merges what is sorted already."""
    scores = np.concatenate([part.scores for part in parts])
    if parts[0].weight is None:
        scores.sort(kind="stable")
        return Keys(scores, None)
    order = np.argsort(scores, kind="stable")
    return Keys(scores[order], np.concatenate([part.weight for part in parts])[order])


def _look_up(
    z: FloatArray,
    sign: AnyArray,
    weight: FloatArray | None,
    parts: list[Keys],
    key_sign: int,
    shift: float,
    width: float,
    scale: float,
    curved: bool,
) -> tuple[Found, FloatArray, list[float]]:
    keys, grad = _merged(*parts), empty(len(z))
    looked = pairs.look_up(z, sign, weight, keys, key_sign, shift, width, scale, grad, curved)
    first = np.searchsorted(looked.edges[: len(looked.sums)], keys.scores)  # of equal edges, which has the sum
    rows = np.flatnonzero(sign == key_sign)
    # Of a row's edge the key: keys rise with their edges, and equal keys share one.
    places = np.searchsorted(first, looked.places[rows].astype(np.int64) - (len(looked.sums) + 1)).astype(np.uint32)
    return Found(grad, rows, places), looked.sums[first], [looked.smooth, looked.ramps, looked.hard]


def _given(found: Found, weight: FloatArray | None, scale: float, sums: list[FloatArray]) -> FloatArray:
    """Put what keys get beside what queries have found; there it changes nothing if it was put there before."""
    own = scale * added(*sums)[found.places]
    grad = found.grad if found.grad.flags.writeable else found.grad.copy()  # what comes from a disk or a wire is not
    grad[found.rows] = own if weight is None else weight[found.rows] * own
    return grad
