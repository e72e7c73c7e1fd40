"""A matrix with rows in parts on the workers of a cluster; only vectors of length p and numbers leave the workers."""

from collections.abc import Callable, Sequence
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from scoreline.distributed.blocks import BlockVector, Layout, Parts, Ref
from scoreline.operators.base import ROW_VECTORS, Operator
from scoreline.operators.moments import ClassMoments
from scoreline.operators.stacked import StackedOperator
from scoreline.operators.statistics import ColumnStatistics, merge
from scoreline.runtime.types import AnyArray, FloatArray


class Facts(NamedTuple):
    """Properties of a part."""

    rows: int
    columns: int
    row_bytes: float
    gram_passes: float
    stores_zeros: bool
    capabilities: frozenset[str]


class PartsOperator(Operator):
    """X in parts, each an operator on a worker. A product sends w (or returns X'u) once per part.

    Parameters
    ----------
    layout : Layout
        The place of all rows.
    refs : sequence of Ref
        The operator of each part.
    """

    scores = "blocks"

    def __init__(self, layout: Layout, refs: Sequence[Ref]):
        self.layout, self.parts = layout, Parts(refs)
        layout.anchors = list(refs)
        facts: list[Facts] = layout.gather(_facts, self.parts)
        widths = sorted({f.columns for f in facts})
        if len(widths) != 1:
            raise ValueError(f"blocks of X have {widths} columns, expected the same number in all of them")
        super().__init__((sum(f.rows for f in facts), widths[0]))
        self.facts = facts
        self.capabilities = frozenset.intersection(*(f.capabilities for f in facts)) - {"rows"}

    @property
    def traffic(self) -> float:
        """Bytes moved so far on this cluster."""
        return self.layout.cluster.bytes

    def aligned(self, rows: Any, name: str = "y") -> Any:
        """Return entries for the rows as a vector in the same blocks."""
        if isinstance(rows, Real):  # the same weight for all
            return self.layout.vector(np.full, Parts(self.layout.lengths), float(rows))
        if rows is None or np.ndim(rows) == 0:
            return rows
        if isinstance(rows, BlockVector):
            if not rows.layout.fits(self.layout):
                raise ValueError(f"{name} is divided into other blocks than X; make both from the same call")
            return rows
        array = np.asarray(rows)
        if array.ndim == 2 and array.shape[1] == 1:
            array = array.ravel()
        if array.shape != (self.shape[0],):
            raise ValueError(
                f"{name} has shape {array.shape}, expected ({self.shape[0]},), one for each row of X: inconsistent numbers of "
                "samples"
            )
        return BlockVector.of(self.layout, array)

    def in_parts(self) -> "PartsOperator":
        """Return the matrix itself."""
        return self

    def wrap_parts(self, wrap: Callable[[Operator], Operator]) -> "PartsOperator":
        """Return the matrix with a wrapper around each part."""
        return self._of_parts(self.layout.each(wrap, self.parts))

    def _of_parts(self, refs: Sequence[Ref]) -> "PartsOperator":
        """Return other columns of the same rows."""
        return PartsOperator(self.layout, refs)

    def _vector(self, v: Any, length: int, name: str) -> Any:
        return self.aligned(v, name) if name in ROW_VECTORS else super()._vector(v, length, name)

    def rmatvec(self, u: Any) -> FloatArray:
        """Return X'u, with u in the blocks of X or as an array."""
        return super().rmatvec(self.aligned(u, "u"))

    def _per_row(self, method: "PartMethod", *arguments: Any) -> BlockVector:
        return BlockVector(self.layout, self.layout.each(method, self.parts, *arguments, keep=True))

    def _matvec(self, w: FloatArray) -> BlockVector:
        return self._per_row(PartMethod("_matvec"), self.layout.broadcast(w))

    def _rmatvec(self, u: BlockVector) -> FloatArray:
        return self.layout.total(8.0 * self.shape[1], PartMethod("_rmatvec"), self.parts, u)

    def _gram(self, weight: BlockVector) -> FloatArray:
        return self.layout.total(8.0 * self.shape[1] ** 2, PartMethod("_gram"), self.parts, weight)

    def _square_rmatvec(self, u: BlockVector) -> FloatArray:
        return self.layout.total(8.0 * self.shape[1], PartMethod("_square_rmatvec"), self.parts, u)

    def _quadratics(self, matrix: FloatArray) -> BlockVector:
        return self._per_row(PartMethod("_quadratics"), self.layout.broadcast(matrix))

    def _diagonal_leverages(self, diagonal: FloatArray, weight: BlockVector) -> BlockVector:
        return self._per_row(PartMethod("_diagonal_leverages"), self.layout.broadcast(diagonal), weight)

    def row_norms(self) -> Any:
        """Return the Euclidean length of every row. One pass."""
        self._count(1.0)
        return self._per_row(PartMethod("row_norms"))

    def _column_statistics(self, weight: BlockVector | None) -> ColumnStatistics:
        return merge(self.layout.gather(PartMethod("_column_statistics"), self.parts, weight))

    def class_moments(self, sign: Any, weight: Any = None) -> ClassMoments:
        """Return weight, mean and scatter of either class, merged from the parts in a tree. One pass."""
        self.require("row_blocks", "moments of the classes")
        self.n_passes += 1.0
        size = 16.0 * (self.shape[1] ** 2 + self.shape[1])
        sign, weight = self.aligned(sign, "sign"), self.aligned(weight, "weight")
        refs = self.layout.each(_class_moments, self.parts, sign, weight)
        merged: ClassMoments = self.layout.fetch([self.layout.folded(refs, _merged_moments, size)])[0]
        return merged

    def _block(self, start: int, stop: int) -> Any:
        """Bring rows to the driver."""
        assert self.layout.spans is not None
        wanted, slices = [], Parts()
        for spans in self.layout.spans:
            own, before = [], 0
            for first, last in spans:
                low, high = max(start, first), min(stop, last)
                if low < high:
                    own.append((before + low - first, before + high - first))
                    wanted.append((low, len(slices), len(own) - 1))
                before += last - first
            slices.append(own)
        pieces = self.layout.gather(_rows, self.parts, slices)
        found = [pieces[part][k] for _, part, k in sorted(wanted)]
        return sp.vstack(found, format="csr") if any(map(sp.issparse, found)) else np.concatenate(found)

    def gram_passes(self) -> float:
        """Return about how many products a call of `gram` costs, as a mean over all rows."""
        return sum(f.gram_passes * f.rows for f in self.facts) / self.shape[0]

    @property
    def row_bytes(self) -> float:
        """Bytes of a row as `row_arrays` holds it, on average."""
        return sum(f.row_bytes * f.rows for f in self.facts) / self.shape[0]

    @property
    def stores_zeros(self) -> bool:
        """Whether blocks of rows are dense arrays."""
        return all(f.stores_zeros for f in self.facts)

    def inspect(self) -> tuple[int, int] | None:
        """Return (row, column) of a NaN or an infinity, or None, and set `largest`."""
        assert self.layout.spans is not None
        layout, refs = self.layout, self.layout.each(_inspect, self.parts)
        found = layout.fetch(layout.items(refs, 0))
        places = []
        for place, spans in zip(found, self.layout.spans, strict=True):
            if place is not None:
                row, column = place
                for start, stop in spans:
                    if row < stop - start:
                        places.append((start + row, column))
                        break
                    row -= stop - start
        if places:
            return min(places)
        largest = layout.folded(layout.items(refs, 1), _largest, 8.0 * self.shape[1])
        self.largest = layout.fetch([largest])[0]
        return None


class PartMethod:
    """A method of a part's operator, called on its worker with vectors in float64; Dask displays its name."""

    def __init__(self, name: str):
        self.name = self.__name__ = name

    def __call__(self, part: Operator, *arguments: AnyArray | None) -> Any:
        """Call the method; the memory order of matrices is not changed."""
        vectors = [a if a is None or a.ndim > 1 else np.ascontiguousarray(a, dtype=np.float64) for a in arguments]
        return getattr(part, self.name)(*vectors)


def stacked(pieces: Sequence[Operator]) -> Operator:
    """Return the rows of several operators as one."""
    return pieces[0] if len(pieces) == 1 else StackedOperator(pieces)


def _facts(part: Operator) -> Facts:
    return Facts(*part.shape, part.row_bytes, part.gram_passes(), part.stores_zeros, part.capabilities)


def _class_moments(part: Operator, sign: AnyArray, weight: FloatArray | None) -> ClassMoments:
    return part._class_moments(sign, weight)


def _merged_moments(*parts: ClassMoments) -> ClassMoments:
    total = ClassMoments.empty(len(parts[0].positive.mean))
    for part in parts:
        total.merge(part)
    return total


def _rows(part: Operator, slices: list[tuple[int, int]]) -> list[Any]:
    return [part._block(low, high) for low, high in slices]


def _largest(*parts: FloatArray | None) -> FloatArray | None:
    """Return the largest magnitudes of several parts, if all of them are known."""
    return None if any(part is None for part in parts) else np.max(np.array(parts, dtype=np.float64), axis=0)


def _inspect(part: Operator) -> tuple[tuple[int, int] | None, FloatArray | None]:
    if part.largest is not None:  # rows on disk were checked when they were written
        return None, part.largest
    return part.inspect(), part.largest
