"""Which rows lie where, and calls of a function for every part of them."""

import weakref
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from scoreline.distributed.cluster import Cluster, Home, size_of
from scoreline.distributed.tasks import Every, Parts, Ref, Task, Vector, added, pick, run, same
from scoreline.runtime.types import AnyArray

SMALL = 1 << 18  # bytes that are sent along with every task; more goes to a worker first
DIRECT = 4  # parts whose arrays are added here

Spans = tuple[tuple[int, int], ...]


class Layout:
    """Which rows lie where: part k holds the rows of `spans[k]`, in this order, at `homes[k]`.

    `spans` is None for a selection of rows, of which only the parts are known.
    """

    def __init__(self, cluster: Cluster, homes: Sequence[Home], spans: Sequence[Spans] | None):
        self.cluster, self.homes = cluster, tuple(homes)
        self.spans = None if spans is None else tuple(tuple(s) for s in spans)
        self.anchors: list[Ref] | None = None  # what new vectors are put beside
        self._selection: Layout | None = None
        self._read: dict[int, weakref.ref[Vector]] = {}  # described vectors that a task has computed once

    @property
    def n_parts(self) -> int:
        """Number of parts."""
        return len(self.homes)

    @property
    def n_workers(self) -> int:
        """Number of workers that hold parts."""
        return len({home.worker for home in self.homes})

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
            self._selection = Layout(self.cluster, self.homes, None)
        return self._selection

    def split(self, rows: AnyArray) -> Parts:
        """Return an array with an entry for every row of X as pieces for the parts; their bytes are counted."""
        if self.spans is None or len(rows) != sum(self.lengths):
            raise ValueError(f"an array of {len(rows)} entries does not fit the rows of {self.n_parts} parts")
        self.cluster.count(rows.nbytes)
        return Parts(_joined([rows[start:stop] for start, stop in spans]) for spans in self.spans)

    def joined(self, pieces: Sequence[AnyArray]) -> AnyArray:
        """Return arrays of the parts as one, rows in the order of X."""
        if self.spans is None:
            return np.concatenate(pieces)
        pieces = [np.asarray(piece) for piece in pieces]
        n = sum(self.lengths)
        out = np.empty(n, dtype=np.result_type(*pieces))
        for piece, spans in zip(pieces, self.spans, strict=True):
            done = 0
            for start, stop in spans:
                out[start:stop] = piece[done : done + stop - start]
                done += stop - start
        return out

    def each(self, function: Callable[..., Any], *arguments: Any, keep: bool = False) -> list[Ref]:
        """Call the function for every part: BlockVectors and Parts give it their own piece, other arguments all of it.

        With `keep` the task also leaves behind the described vectors that it reads, and those that others have read.
        """
        kept = self._to_keep(arguments) if keep else []
        literal = sum(size_of(a) for a in arguments if not isinstance(a, (Vector, Parts, Every, Ref)))
        self.cluster.count(literal * self.n_parts)
        futures = []
        for k, home in enumerate(self.homes):
            task = Task(k)
            nodes = [task.node(a) for a in arguments]
            slots = [task.node(vector) for vector in kept]
            program = (function, nodes, slots, home.threads)
            futures.append(self.cluster.submit(run, program, *task.inputs, home=home))
        if not kept:
            self._note_read(arguments)
            return [Ref(future) for future in futures]
        for j, vector in enumerate(kept):
            vector.refs, vector.recipe = [Ref(future, (1 + j,)) for future in futures], None
        return [Ref(future, (0,)) for future in futures]

    def vector(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Return the BlockVector that the function makes of the arguments' pieces; described only."""
        from scoreline.distributed.vector import BlockVector

        return BlockVector(self, recipe=(function, arguments))

    def gather(self, function: Callable[..., Any], *arguments: Any) -> list[Any]:
        """Call the function for every part and bring what it returns here: one round."""
        return self.cluster.gather([ref.future for ref in self.each(function, *arguments)])

    def broadcast(self, value: AnyArray) -> Any:
        """Return an array that every part will read: itself, or once it is large a copy on a worker, which others fetch."""
        if value.nbytes <= SMALL or self.n_parts == 1:
            return value
        self.cluster.count(value.nbytes * self.n_workers)
        return Ref(self.cluster.submit(same, value, home=self.homes[0]))

    def total(self, size: float, function: Callable[..., Any], *arguments: Any) -> Any:
        """Return the sum of what the function returns for every part, `size` bytes each; of many parts in a tree."""
        refs = self.each(function, *arguments)
        if self.n_parts > DIRECT:
            refs = [self.folded(refs, added, size)]
        return added(*self.cluster.gather([ref.future for ref in refs]))

    def items(self, refs: Sequence[Ref], *path: int) -> list[Ref]:
        """Return parts of results as results of their own, so that the rest of them stays where it is."""
        submit = self.cluster.submit
        return [
            Ref(submit(pick, ref.future, (*ref.path, *path), home=home))
            for ref, home in zip(refs, self.homes, strict=True)
        ]

    def folded(
        self, refs: Sequence[Ref], combine: Callable[..., Any], size: float, fan_in: int = 8, grows: bool = False
    ) -> Ref:
        """Combine results of all parts at workers: those of a worker first, then `fan_in` of them at a time.

        `size` is what one part's result takes in bytes; with `grows` combined ones take as much as what they are made of.
        """
        assert not any(ref.path for ref in refs), "combine results of their own"
        by_worker: dict[str, list[tuple[Ref, Home, float]]] = {}
        for ref, home in zip(refs, self.homes, strict=True):
            by_worker.setdefault(home.worker, []).append((ref, home, size))
        groups = list(by_worker.values())
        while True:
            level = [self._combined(group, combine, grows) for group in groups]
            if len(level) == 1:
                return level[0][0]
            groups = [level[i : i + fan_in] for i in range(0, len(level), fan_in)]

    def _combined(self, group: list[tuple[Ref, Home, float]], combine: Any, grows: bool) -> tuple[Ref, Home, float]:
        _, home, size = group[0]
        if len(group) == 1:
            return group[0]
        self.cluster.count(sum(each[2] for each in group if each[1].worker != home.worker))
        future = self.cluster.submit(combine, *[each[0].future for each in group], home=home)
        return Ref(future), home, sum(each[2] for each in group) if grows else size

    def _to_keep(self, arguments: Sequence[Any]) -> list[Vector]:
        """Return described vectors among the arguments, and those that tasks have computed for themselves before."""
        read = [reference() for reference in self._read.values()]
        self._read.clear()
        found = {id(v): v for v in (*arguments, *read) if isinstance(v, Vector) and v.refs is None and v.layout is self}
        return list(found.values())

    def _note_read(self, arguments: Sequence[Any]) -> None:
        """Remember described vectors that a task has computed for itself: whoever leaves vectors behind next keeps them."""
        for vector in arguments:
            if isinstance(vector, Vector) and vector.refs is None and vector.layout is self:
                self._read[id(vector)] = weakref.ref(vector, partial(_forget, self._read, id(vector)))


def _forget(read: dict[int, Any], key: int, _: Any) -> None:
    read.pop(key, None)


def _joined(pieces: Sequence[AnyArray]) -> AnyArray:
    return pieces[0] if len(pieces) == 1 else np.concatenate(pieces)
