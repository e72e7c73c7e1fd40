"""Vectors with one entry for every row of X, next to the rows, on the workers that have them."""

import logging
from collections.abc import Sequence
from typing import Any

import numpy as np

from scoreline import kernels
from scoreline.distributed.layout import Layout
from scoreline.distributed.tasks import Ref, Vector, same
from scoreline.runtime.types import AnyArray
from scoreline.runtime.vectors import RemoteVector, checked_mask

logger = logging.getLogger("scoreline")


class BlockVector(Vector, RemoteVector):
    """A vector in blocks that NumPy's elementwise functions, sums and masks understand.

    Sums, extremes and tests wait for a round and bring numbers here. A function that needs all entries at once, and
    `np.asarray`, bring all of them here: correct, but n entries over the network, which is logged. Nothing changes a vector
    that is there.

    Attributes
    ----------
    layout : Layout
        Where its entries lie.
    refs : list of Ref or None
        The parts, if they are there.
    recipe : (function, arguments) or None
        How to make them, if not.
    known : dict
        Numbers that came with the round that made it, by name.
    """

    scores = "blocks"

    def __init__(self, layout: Layout, refs: Sequence[Ref] | None = None, recipe: Any = None):
        self.layout, self.recipe = layout, recipe
        self.refs = None if refs is None else list(refs)
        self.known: dict[str, Any] = {}
        self.parents: tuple[BlockVector, ...] = ()  # what a sum of scores was made of

    @classmethod
    def of(cls, layout: Layout, rows: Any) -> "BlockVector":
        """Return an array of this process as a vector in blocks."""
        pieces, submit = layout.split(np.asarray(rows)), layout.cluster.submit
        beside = [[ref.future] for ref in layout.anchors] if layout.anchors else [[] for _ in pieces]
        calls = zip(pieces, beside, layout.homes, strict=True)
        return cls(layout, [Ref(submit(same, piece, *anchor, home=home)) for piece, anchor, home in calls])

    def there(self) -> "BlockVector":
        """Return the vector with its parts on the workers."""
        if self.refs is None:
            self.layout.each(_nothing, self, keep=True)
        return self

    @property
    def n_parts(self) -> int:
        """Number of parts."""
        return self.layout.n_parts

    def __len__(self) -> int:
        if self.layout.spans is not None:
            return sum(self.layout.lengths)
        return int(sum(self.layout.gather(len, self)))

    def __getitem__(self, mask: Any) -> "BlockVector":
        """Return the entries where a mask is true."""
        if not isinstance(mask, BlockVector):
            mask = checked_mask(np.asarray(mask))
            mask = BlockVector.of(self.layout, mask)
        return self._common((self, mask)).selection.vector(_masked, self, mask)

    def __array__(self, dtype: Any = None, copy: Any = None) -> AnyArray:
        pieces = self.layout.gather(same, self)
        array = self.layout.joined(pieces)
        if array.nbytes > 1 << 20:
            logger.info("brought %.3g MB of entries from %d blocks here", array.nbytes / 1e6, len(pieces))
        return array if dtype is None else array.astype(dtype)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        out = options.pop("out", ())
        if method != "__call__" or options or ufunc.nout != 1:
            return NotImplemented
        if ufunc is np.matmul:
            return self._dot(*inputs)
        made = self._common(inputs).vector(ufunc, *map(self._operand, inputs))
        if out and out[0] is not self and not isinstance(out[0], BlockVector):
            raise TypeError("results of a vector in blocks do not fit an array of this process")
        return made  # x += 1 makes another vector

    def __array_function__(self, function: Any, types: Any, arguments: Any, options: Any) -> Any:
        single = function is np.where and len(arguments) == 1  # places, not entries
        if function in ELEMENTWISE and not options and not single:
            return self._common(arguments).vector(function, *map(self._operand, arguments))
        if function in SUMMED and not any(np.ndim(v) for v in options.values()):
            return _summed(self._common(arguments).gather(_called, function, *map(self._operand, arguments), options))
        if function in (np.shape, np.ndim):
            return getattr(arguments[0], function.__name__)
        logger.info("numpy.%s needs all entries of a vector in blocks", function.__name__)
        return function(*map(_here, arguments), **{name: _here(value) for name, value in options.items()})

    def _operand(self, value: Any) -> Any:
        value = np.asarray(value) if isinstance(value, (list, tuple)) else value
        if isinstance(value, np.ndarray):
            return value[()] if value.ndim == 0 else self.layout.split(value)
        return value

    def _common(self, values: Sequence[Any]) -> Layout:
        """Return the layout of an elementwise result."""
        layouts = [v.layout for v in values if isinstance(v, BlockVector)]
        first = layouts[0]
        if any(each is not first and (each.homes != first.homes or each.spans != first.spans) for each in layouts):
            raise ValueError(
                "vectors lie in different blocks: they belong to different matrices, or one to some of the rows"
            )
        return first

    def _dot(self, x: Any, y: Any) -> float:
        return float(sum(self._common((x, y)).gather(kernels.vectors.dot, self._operand(x), self._operand(y))))

    def astype(self, dtype: Any, copy: bool = True) -> "BlockVector":
        """Return the entries as another type."""
        return self.layout.vector(_astype, self, np.dtype(dtype))

    def like(self, rows: Any) -> "BlockVector":
        """Return an array of this process as a vector in the same blocks."""
        return rows if isinstance(rows, BlockVector) else BlockVector.of(self.layout, rows)

    def distinct(self, most: int = 100) -> AnyArray:
        """Return different entries, `most` of each part at most, here."""
        return np.concatenate(self.layout.gather(_distinct, self, most))

    def sum(self) -> Any:
        """Return the sum of all entries."""
        if "sum" not in self.known:
            self.known["sum"] = float(sum(self.layout.gather(_sum, self)))
        return self.known["sum"]

    def mean(self) -> float:
        """Return the mean of all entries."""
        return float(self.sum()) / len(self)

    def max(self, initial: float | None = None) -> Any:
        """Return the largest entry."""
        return self._extreme(np.max, initial)

    def min(self, initial: float | None = None) -> Any:
        """Return the smallest entry."""
        return self._extreme(np.min, initial)

    def _extreme(self, function: Any, initial: float | None) -> Any:
        found = [x for x in self.layout.gather(_extreme, function, self) if x is not None]
        return function(found if initial is None else [*found, initial])

    def any(self) -> bool:
        """Tell whether an entry is true."""
        return any(self.layout.gather(_any, self))

    def all(self) -> bool:
        """Tell whether all entries are true."""
        return all(self.layout.gather(_all, self))

    def __repr__(self) -> str:
        return f"BlockVector({self.n_parts} parts on {self.layout.n_workers} workers)"


ELEMENTWISE = {np.where, np.clip, np.zeros_like, np.ones_like, np.full_like, np.nan_to_num}
SUMMED = {np.count_nonzero, np.bincount}


def _called(function: Any, *arguments: Any) -> Any:
    return function(*arguments[:-1], **arguments[-1])


def _summed(counts: Sequence[Any]) -> Any:
    """Return the sum of numbers, or of arrays whose lengths depend on what a part has."""
    if np.ndim(counts[0]) == 0:
        return np.sum(counts)
    longest = max(map(len, counts))
    return np.sum([np.pad(c, (0, longest - len(c))) for c in counts], axis=0)


def _here(value: Any) -> Any:
    if isinstance(value, BlockVector):
        return np.asarray(value)
    return type(value)(map(_here, value)) if type(value) in (list, tuple) else value


def _distinct(entries: AnyArray, most: int) -> AnyArray:
    try:
        return np.unique(entries)[:most]
    except TypeError:  # entries that cannot be compared
        return np.array(list(dict.fromkeys(entries.tolist()))[:most], dtype=object)


def _masked(x: AnyArray, mask: AnyArray) -> AnyArray:
    return np.asarray(x[checked_mask(mask)])


def _nothing(_: Any) -> None:
    return None


def _astype(x: AnyArray, dtype: Any) -> AnyArray:
    return x.astype(dtype)


def _sum(x: AnyArray) -> float:
    return float(np.sum(x))


def _extreme(function: Any, x: AnyArray) -> Any:
    return function(x) if len(x) else None


def _any(x: AnyArray) -> bool:
    return bool(np.any(x))


def _all(x: AnyArray) -> bool:
    return bool(np.all(x))
