"""Rows in parts on workers: their layout, calls of a function for every part, and vectors next to the rows."""

import weakref
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import DTypeLike

from scoreline import kernels
from scoreline.distributed.cluster import Cluster, Future, Placement, size_of
from scoreline.distributed.tasks import Call, Input, Listed, Node, Program, Rows, Value, added, pick, run, same
from scoreline.runtime.types import AnyArray
from scoreline.runtime.vectors import RemoteVector, checked_mask
from scoreline.scores.base import Labels

MAX_TASK_BYTES = 1 << 18  # a larger array is sent to one worker, from which the others fetch it
MAX_DIRECT_PARTS = 4  # arrays of more parts are added in a tree on the workers

R = TypeVar("R")
Spans: TypeAlias = tuple[tuple[int, int], ...]
Recipe: TypeAlias = tuple[Callable[..., Any], tuple[Any, ...]]


class Ref(NamedTuple):
    """An item of a task's result: its future, and the indices that lead to the item."""

    future: Future
    path: tuple[int, ...] = ()


class Parts(list[Any]):
    """One value or Ref for every part."""


class Every(list[Ref]):
    """Refs that every part receives all of."""


class Task:
    """The inputs of one part's task, and its arguments as nodes that are computed from the inputs."""

    def __init__(self, part: int):
        self.part = part
        self.inputs: list[Future] = []
        self._numbers: dict[int, int] = {}
        self._slots: dict[int, Call] = {}

    def node(self, value: Any) -> Node:
        """Return the node of an argument."""
        if isinstance(value, BlockVector):
            if value.refs is not None:
                return self.node(value.refs[self.part])
            if id(value) not in self._slots:
                assert value.recipe is not None
                function, arguments = value.recipe
                nodes = [self.node(a) for a in arguments]  # before counting the slots, because they take slots too
                self._slots[id(value)] = Call(len(self._slots), function, nodes)
            return self._slots[id(value)]
        if isinstance(value, Rows):
            nodes = [self.node(each) for each in value]
            return self._slots.setdefault(id(value), Call(len(self._slots), Rows, nodes))
        if isinstance(value, Ref):
            number = self._numbers.setdefault(id(value.future), len(self.inputs))
            if number == len(self.inputs):
                self.inputs.append(value.future)
            return Input(number, value.path)
        if isinstance(value, Every):
            return Listed([self.node(ref) for ref in value])
        return self.node(value[self.part]) if isinstance(value, Parts) else Value(value)


class Layout:
    """The place of all rows: part k has the rows of `spans[k]`, in this order, at `placements[k]`.

    `spans` is None for a selection of rows, for which only the parts are known.
    """

    def __init__(self, cluster: Cluster, placements: Sequence[Placement], spans: Sequence[Spans] | None):
        self.cluster, self.placements = cluster, tuple(placements)
        self.spans = None if spans is None else tuple(tuple(s) for s in spans)
        self.anchors: list[Ref] | None = None  # results on the workers, next to which new vectors are placed
        self._selection: Layout | None = None
        self._read: dict[
            int, weakref.ref[BlockVector]
        ] = {}  # lazy vectors that a task has computed without storing them

    @property
    def n_parts(self) -> int:
        """Number of parts."""
        return len(self.placements)

    @property
    def n_workers(self) -> int:
        """Number of workers that hold parts."""
        return len({placement.worker for placement in self.placements})

    @property
    def lengths(self) -> list[int]:
        """Rows of each part."""
        assert self.spans is not None, "a selection does not know its rows"
        return [sum(stop - start for start, stop in spans) for spans in self.spans]

    @property
    def selection(self) -> "Layout":
        """The same parts for some of their rows."""
        if self.spans is None:
            return self
        if self._selection is None:
            self._selection = Layout(self.cluster, self.placements, None)
        return self._selection

    def fits(self, other: "Layout") -> bool:
        """Tell whether vectors of both have the same rows in the same parts."""
        return self is other or (self.placements == other.placements and self.spans == other.spans)

    def split(self, rows: AnyArray) -> Parts:
        """Split an array with one entry per row of X into pieces for the parts, and count their bytes."""
        if self.spans is None or len(rows) != sum(self.lengths):
            raise ValueError(f"an array of {len(rows)} entries does not fit the rows of {self.n_parts} parts")
        self.cluster.count(rows.nbytes)
        pieces = ([rows[start:stop] for start, stop in spans] for spans in self.spans)
        return Parts(piece[0] if len(piece) == 1 else np.concatenate(piece) for piece in pieces)

    def joined(self, pieces: Sequence[AnyArray]) -> AnyArray:
        """Return the arrays of the parts as one array in the order of X."""
        if self.spans is None:
            return np.concatenate(pieces)
        pieces = [np.asarray(piece) for piece in pieces]
        out = np.empty(sum(self.lengths), dtype=np.result_type(*pieces))
        for piece, spans in zip(pieces, self.spans, strict=True):
            done = 0
            for start, stop in spans:
                out[start:stop] = piece[done : done + stop - start]
                done += stop - start
        return out

    def each(self, function: Callable[..., Any], *arguments: Any, keep: bool = False) -> list[Ref]:
        """Call the function for every part, with the part's own piece of BlockVectors and Parts, and all of other arguments.

        With `keep` the task also stores the lazy vectors that it reads, and those that earlier tasks have read.
        """
        single = [each for a in arguments for each in (a if isinstance(a, Rows) else (a,))]
        lazy = [a for a in single if isinstance(a, BlockVector) and a.refs is None and a.layout is self]
        stored = self._to_keep(lazy) if keep else []
        literal = sum(size_of(a) for a in single if not isinstance(a, (BlockVector, Parts, Every, Ref)))
        self.cluster.count(literal * self.n_parts)
        futures = []
        for k, placement in enumerate(self.placements):
            task = Task(k)
            nodes = [task.node(a) for a in arguments]
            program = Program(function, nodes, [task.node(vector) for vector in stored], placement.threads)
            futures.append(self.cluster.submit(run, program, *task.inputs, placement=placement))
        if not stored:
            for vector in lazy:  # the next task with `keep` stores them
                self._read[id(vector)] = weakref.ref(vector, partial(_forget, self._read, id(vector)))
            return [Ref(future) for future in futures]
        for j, vector in enumerate(stored):
            vector.refs, vector.recipe = [Ref(future, (1 + j,)) for future in futures], None
        return [Ref(future, (0,)) for future in futures]

    def _to_keep(self, lazy: Sequence["BlockVector"]) -> list["BlockVector"]:
        """Return the lazy vectors of a call, and those that earlier tasks have computed without storing them."""
        read = [reference() for reference in self._read.values()]
        self._read.clear()
        return list({id(v): v for v in (*lazy, *read) if v is not None and v.refs is None}.values())

    def vector(self, function: Callable[..., Any], *arguments: Any) -> "BlockVector":
        """Return the lazy BlockVector that the function computes from the arguments' pieces."""
        return BlockVector(self, recipe=(function, arguments))

    def fetch(self, refs: Sequence[Ref]) -> list[Any]:
        """Bring complete results to the driver."""
        return self.cluster.gather([ref.future for ref in refs])

    def gather(self, function: Callable[..., R], *arguments: Any) -> list[R]:
        """Call the function for every part and bring the results to the driver, in one round."""
        return self.fetch(self.each(function, *arguments))

    def broadcast(self, value: AnyArray) -> AnyArray | Ref:
        """Return an array for every part to read: itself, or a reference to a copy on a worker if it is large."""
        if value.nbytes <= MAX_TASK_BYTES or self.n_parts == 1:
            return value
        self.cluster.count(value.nbytes * self.n_workers)
        return Ref(self.cluster.submit(same, value, placement=self.placements[0]))

    def total(self, size: float, function: Callable[..., AnyArray], *arguments: Any) -> AnyArray:
        """Return the sum of the function's results for all parts, `size` bytes each, added in a tree if there are many."""
        refs = self.each(function, *arguments)
        if self.n_parts > MAX_DIRECT_PARTS:
            refs = [self.folded(refs, added, size)]
        return added(*self.fetch(refs))

    def items(self, refs: Sequence[Ref], *path: int) -> list[Ref]:
        """Return items of results as separate results, so that the remaining items need not be moved."""
        submit = self.cluster.submit
        return [
            Ref(submit(pick, ref.future, (*ref.path, *path), placement=placement))
            for ref, placement in zip(refs, self.placements, strict=True)
        ]

    def folded(
        self, refs: Sequence[Ref], combine: Callable[..., Any], size: float, fan_in: int = 8, grows: bool = False
    ) -> Ref:
        """Combine the results of all parts on the workers: first within a worker, then `fan_in` at a time.

        `size` is the size of one part's result in bytes. With `grows` a combined result is as large as its parts together.
        """
        assert not any(ref.path for ref in refs), "only complete results can be combined"
        by_worker: dict[str, list[_Sized]] = {}
        for ref, placement in zip(refs, self.placements, strict=True):
            by_worker.setdefault(placement.worker, []).append(_Sized(ref, placement, size))
        groups = list(by_worker.values())
        while True:
            level = [self._combined(group, combine, grows) for group in groups]
            if len(level) == 1:
                return level[0].ref
            groups = [level[i : i + fan_in] for i in range(0, len(level), fan_in)]

    def _combined(self, group: "list[_Sized]", combine: Callable[..., Any], grows: bool) -> "_Sized":
        placement = group[0].placement
        if len(group) == 1:
            return group[0]
        self.cluster.count(sum(each.size for each in group if each.placement.worker != placement.worker))
        future = self.cluster.submit(combine, *[each.ref.future for each in group], placement=placement)
        return _Sized(Ref(future), placement, sum(each.size for each in group) if grows else group[0].size)


class _Sized(NamedTuple):
    ref: Ref
    placement: Placement
    size: float


def _forget(read: dict[int, Any], key: int, _: Any) -> None:
    read.pop(key, None)


class BlockVector(RemoteVector):
    """A vector in blocks that works with NumPy's elementwise functions, sums and masks.

    It has one entry per row of X, on the worker that has the row. Sums, extremes and tests need a round and bring
    numbers to the driver. Functions that need all entries at once, and `np.asarray`, move n entries to the driver,
    which is logged. Vectors are immutable.

    Attributes
    ----------
    layout : Layout
        The place of its entries.
    refs : list of Ref or None
        The stored parts, or None if the vector is lazy.
    recipe : (function, arguments) or None
        How to compute a lazy vector.
    known_sum, known_largest, known_products
        Numbers computed in the same round as the vector: the sum of all entries, the largest magnitude among rows whose weight
        is positive by some labels, and the products with other vectors.
    """

    scores = "blocks"

    def __init__(self, layout: Layout, refs: Sequence[Ref] | None = None, recipe: Recipe | None = None):
        self.layout, self.recipe = layout, recipe
        self.refs = None if refs is None else list(refs)
        self.known_sum: float | None = None
        self.known_largest: tuple[Labels, float] | None = None
        self.known_products: list[tuple[weakref.ref[BlockVector], float]] = []
        self.parents: tuple[BlockVector, ...] = ()  # the terms of a sum of scores

    @classmethod
    def of(cls, layout: Layout, rows: Any) -> "BlockVector":
        """Return an array of the driver as a vector in blocks."""
        pieces, submit = layout.split(np.asarray(rows)), layout.cluster.submit
        anchors = [[ref.future] for ref in layout.anchors] if layout.anchors else [[] for _ in pieces]
        calls = zip(pieces, anchors, layout.placements, strict=True)
        return cls(
            layout, [Ref(submit(same, piece, *anchor, placement=placement)) for piece, anchor, placement in calls]
        )

    def like(self, rows: Any) -> "BlockVector":
        """Return an array of the driver as a vector in the same blocks."""
        return rows if isinstance(rows, BlockVector) else BlockVector.of(self.layout, rows)

    def computed(self) -> "BlockVector":
        """Compute a lazy vector and return it."""
        if self.refs is None:
            self.layout.each(len, self, keep=True)
        return self

    def __len__(self) -> int:
        if self.layout.spans is not None:
            return sum(self.layout.lengths)
        return int(sum(self.layout.gather(len, self)))

    def __getitem__(self, mask: Any) -> "BlockVector":
        """Return the entries where a mask is true."""
        if not isinstance(mask, BlockVector):
            mask = BlockVector.of(self.layout, checked_mask(np.asarray(mask)))
        return self._common((self, mask)).selection.vector(_masked, self, mask)

    def _entries(self) -> AnyArray:
        return self.layout.joined(self.layout.gather(same, self))

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        out = options.pop("out", ())
        if method != "__call__" or options or ufunc.nout != 1:
            return NotImplemented
        layout, operands = self._common(inputs), list(map(self._operand, inputs))
        if ufunc is np.matmul:
            return float(sum(layout.gather(kernels.vectors.dot, *operands)))
        if out and out[0] is not self and not isinstance(out[0], BlockVector):
            raise TypeError("results of a vector in blocks do not fit into a host array")
        return layout.vector(ufunc, *operands)  # x += 1 makes another vector

    def __array_function__(
        self, function: Callable[..., Any], types: Any, arguments: Sequence[Any], options: Mapping[str, Any]
    ) -> Any:
        single = function is np.where and len(arguments) == 1  # places, not entries
        if function in ELEMENTWISE and not options and not single:
            return self._common(arguments).vector(function, *map(self._operand, arguments))
        if function in SUMMED and not any(np.ndim(v) for v in options.values()):
            return _summed(self._common(arguments).gather(_called, function, *map(self._operand, arguments), options))
        if function in (np.shape, np.ndim):
            return getattr(arguments[0], function.__name__)
        return self._on_host(function, arguments, options)

    def _operand(self, value: Any) -> Any:
        value = np.asarray(value) if isinstance(value, (list, tuple)) else value
        if isinstance(value, np.ndarray):
            return value[()] if value.ndim == 0 else self.layout.split(value)
        return value

    def _common(self, values: Sequence[Any]) -> Layout:
        """Return the layout of an elementwise result."""
        first, *others = [v.layout for v in values if isinstance(v, BlockVector)]
        if not all(first.fits(other) for other in others):
            raise ValueError("vectors are in different blocks: they belong to different matrices, or to different rows")
        return first

    def astype(self, dtype: DTypeLike, copy: bool = True) -> "BlockVector":
        """Return the entries as another type."""
        return self.layout.vector(np.ndarray.astype, self, np.dtype(dtype))

    def distinct(self, most: int = 100) -> AnyArray:
        """Return distinct entries, at most `most` per part, on the driver."""
        return np.concatenate(self.layout.gather(_distinct, self, most))

    def sum(self) -> float:
        """Return the sum of all entries."""
        if self.known_sum is None:
            self.known_sum = float(sum(self.layout.gather(_sum, self)))
        return self.known_sum

    def _extreme(self, name: str, initial: float | None) -> Any:
        function = getattr(np, name)
        found = [x for x in self.layout.gather(_extreme, function, self) if x is not None]
        return function(found if initial is None else [*found, initial])

    def any(self) -> bool:
        """Tell whether an entry is true."""
        return any(self.layout.gather(np.any, self))

    def all(self) -> bool:
        """Tell whether all entries are true."""
        return all(self.layout.gather(np.all, self))

    def __repr__(self) -> str:
        return f"BlockVector({self.layout.n_parts} parts on {self.layout.n_workers} workers)"


ELEMENTWISE = {np.where, np.clip, np.zeros_like, np.ones_like, np.full_like, np.nan_to_num}
SUMMED = {np.count_nonzero, np.bincount}


def _called(function: Callable[..., Any], *arguments: Any) -> Any:
    return function(*arguments[:-1], **arguments[-1])


def _summed(counts: Sequence[Any]) -> Any:
    """Return the sum of numbers, or of arrays of different lengths."""
    if np.ndim(counts[0]) == 0:
        return np.sum(counts)
    longest = max(map(len, counts))
    return np.sum([np.pad(c, (0, longest - len(c))) for c in counts], axis=0)


def _distinct(entries: AnyArray, most: int) -> AnyArray:
    try:
        return np.unique(entries)[:most]
    except TypeError:  # entries that cannot be compared
        return np.array(list(dict.fromkeys(entries.tolist()))[:most], dtype=object)


def _masked(x: AnyArray, mask: AnyArray) -> AnyArray:
    return np.asarray(x[checked_mask(mask)])


def _sum(x: AnyArray) -> float:
    return float(np.sum(x))


def _extreme(function: Callable[[AnyArray], Any], x: AnyArray) -> Any:
    return function(x) if len(x) else None
