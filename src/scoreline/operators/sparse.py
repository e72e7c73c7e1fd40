"""SciPy CSR and CSC matrices and arrays, int32 or int64 indices, sorted or not, duplicates summed by the products."""

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np

from scoreline import kernels
from scoreline.operators import block_sums
from scoreline.operators.base import Operator, RowArrays, RowBlock
from scoreline.operators.moments import ClassMoments
from scoreline.operators.statistics import ColumnStatistics, ColumnSums, merge, with_zeros
from scoreline.runtime import parallel
from scoreline.runtime.types import AnyArray, Block, BoundsArray, FloatArray, IntArray, Scores

SCATTER_CHUNKS = 16

CHEAP_GRAM_ENTRIES = 100_000  # entries: below, no Gram matrix takes long


class CompressedOperator(Operator):
    """A CSR or CSC matrix; the arrays of the matrix are used as they are.

    Along the compressed axis a product gathers (one dot product per line); across it, it scatters into private
    accumulators, of which there are at most one per 4 stored entries of output, added in fixed order. Chunks hold equal
    numbers of stored entries.
    """

    capabilities = frozenset({"row_blocks", "rows", "statistics"})

    def __init__(self, X: Any):
        super().__init__(X.shape)
        if X.format not in ("csr", "csc"):
            raise TypeError(f"CompressedOperator takes CSR or CSC, got {X.format}; call as_operator instead")
        self._X = X
        self._by_row = bool(X.format == "csr")
        self._summed: CompressedOperator | None = None
        self._data, self._indices, self._indptr = block_sums.csr_arrays(X)
        self._check_structure()
        n_out = self.shape[1] if self._by_row else self.shape[0]
        stored = int(X.indptr[-1])
        self._line_work = 4 * len(self._data) / max(1, len(self._indptr) - 1)
        self._bounds = self._line_bounds(stored, parallel.MAX_CHUNKS)
        self._scatter_bounds = self._line_bounds(stored, max(1, min(SCATTER_CHUNKS, stored // (4 * n_out))))

    def _check_structure(self) -> None:
        """Refuse indices that would make kernels read or write outside of memory."""
        indptr, indices = self._X.indptr, self._X.indices
        lines, width = self.shape if self._by_row else self.shape[::-1]
        stored = int(indptr[-1]) if len(indptr) == lines + 1 else -1
        if not (
            stored >= 0
            and indptr[0] == 0
            and np.all(indptr[1:] >= indptr[:-1])
            and stored <= min(len(indices), len(self._data))
            and (stored == 0 or self._indices[:stored].max() < width)  # unsigned: what was negative is large
        ):
            raise ValueError(
                f"X is not a valid {self._X.format.upper()} matrix of shape {self.shape}: indptr must rise from 0 and "
                f"indices must lie in 0..{width - 1}. X.check_format() says more."
            )

    def _line_bounds(self, stored: int, max_chunks: int) -> BoundsArray:
        targets = parallel.even_bounds(stored, 4, max_chunks)
        lines = len(self._indptr) - 1
        bounds = np.searchsorted(self._X.indptr, targets.astype(self._X.indptr.dtype)).astype(np.uint64)
        bounds[0], bounds[-1] = 0, lines
        return np.minimum(bounds, np.uint64(lines))

    def _matvec(self, w: FloatArray) -> FloatArray:
        return self._gather(w) if self._by_row else self._scatter(w, self.shape[0])

    def _rmatvec(self, u: FloatArray) -> FloatArray:
        return self._scatter(u, self.shape[1]) if self._by_row else self._gather(u)

    def _matvec_rows(self, w: FloatArray, lines: BoundsArray) -> FloatArray:
        if not self._by_row:
            return self._matvec(w)[lines]
        return self._gather(w, lines)

    def _rmatvec_rows(self, u: FloatArray, lines: BoundsArray) -> FloatArray:
        if not self._by_row:
            spread = np.zeros(self.shape[0])
            np.add.at(spread, lines.astype(np.intp), u)
            return self._gather(spread)
        return self._scatter(u, self.shape[1], lines)

    def _gather(self, v: FloatArray, lines: BoundsArray | None = None, kernel: Any = None) -> FloatArray:
        bounds = self._bounds if lines is None else self._list_bounds(lines, parallel.MAX_CHUNKS)
        out = np.empty(int(bounds[-1]))
        arguments = (self._data, self._indices, self._indptr, lines, v, out, bounds)
        parallel.run_chunks(kernel or kernels.csr.gather, len(bounds) - 1, *arguments)
        return out

    def _scatter(self, u: FloatArray, n_out: int, lines: BoundsArray | None = None, kernel: Any = None) -> FloatArray:
        bounds = self._scatter_bounds
        if lines is not None:
            bounds = self._list_bounds(lines, max(1, min(SCATTER_CHUNKS, len(lines) // 64)))
        partial = np.empty((len(bounds) - 1, n_out))
        arguments = (self._data, self._indices, self._indptr, lines, u, partial, bounds)
        parallel.run_chunks(kernel or kernels.csr.scatter, len(partial), *arguments)
        return np.asarray(partial[0] if len(partial) == 1 else partial.sum(axis=0))

    def _list_bounds(self, lines: BoundsArray, max_chunks: int) -> BoundsArray:
        return parallel.even_bounds(len(lines), self._line_work, max_chunks)

    def _block(self, start: int, stop: int) -> Block:
        return block_sums.csr_between(self._X, start, stop) if self._by_row else self._X[start:stop].tocsr()

    def _listed(self, lines: BoundsArray) -> Block:
        rows = lines.astype(np.intp)
        if self._by_row:
            return block_sums.csr_listed(self._X, rows)
        X, stored = self._X, int(self._X.indptr[-1])
        if len(X.data) > stored or len(X.indices) > stored:  # SciPy would read the room at the end
            X = type(X)((X.data[:stored], X.indices[:stored], X.indptr), shape=X.shape, copy=False)
        return X[rows].tocsr()

    @property
    def cheap_rows(self) -> bool:
        return self._by_row

    @property
    def stores_zeros(self) -> bool:
        return False

    @property
    def row_bytes(self) -> float:
        return (self._data.itemsize + self._indices.itemsize) * int(self._X.indptr[-1]) / self.shape[0]

    def _row_arrays(self, start: int, stop: int) -> RowArrays:
        if self._by_row:
            if not self._X.has_canonical_format:  # an entry named twice would be measured twice: summed in a copy, once
                if self._summed is None:
                    X = self._X.copy()
                    X.sum_duplicates()
                    self._summed = CompressedOperator(X)
                return self._summed._row_arrays(start, stop)
            return RowArrays(self._data, self._indices, self._indptr, np.uint64(0), np.uint64(0), 0)
        raise ValueError("training row by row cannot read a sparse matrix in CSC format; pass X.tocsr()")

    def _sum_blocks(self) -> Iterator[RowBlock]:
        """Yield 16 blocks: rows of a CSC matrix are scattered over its memory, each block costs a read of all entries."""
        return self._row_blocks(max(1, self.shape[0] // 16))

    def gram_passes(self) -> float:
        return self._gram_passes

    @cached_property
    def _gram_passes(self) -> float:
        """The pairs of entries of each row (as measured), and sums of chunks."""
        # Columns are first sliced into rows, which takes far longer, but for a small matrix nobody minds.
        X, p = self._X, self.shape[1]
        nnz = max(1, int(X.indptr[-1]))
        fixed = (16.0 * p * p + p**3 / 30.0) / nnz if nnz > CHEAP_GRAM_ENTRIES else 0.0
        if self._by_row:
            lengths = np.diff(X.indptr).astype(np.float64)
        elif nnz > CHEAP_GRAM_ENTRIES:
            return fixed + 40.0
        else:
            lengths = np.bincount(X.indices[:nnz], minlength=self.shape[0]).astype(np.float64)
        return fixed + 0.35 * float(lengths @ lengths) / nnz

    def _class_moments(self, sign: AnyArray, weight: FloatArray | None) -> ClassMoments:
        if self._by_row:
            return block_sums.moments_of_sparse(self._X, sign, weight)
        return super()._class_moments(sign, weight)

    def _gram(self, weight: FloatArray) -> FloatArray:
        if self._by_row:
            return block_sums.block_gram(self._X, weight)
        return np.asarray(sum(block_sums.block_gram(b.data, weight[b.start : b.stop]) for b in self._sum_blocks()))

    def _quadratics(self, matrix: FloatArray) -> FloatArray:
        if self._by_row:
            return block_sums.block_quadratics(self._X, matrix)
        return np.concatenate([block_sums.block_quadratics(b.data, matrix) for b in self._sum_blocks()])

    def _diagonal_leverages(self, diagonal: FloatArray, weight: Scores) -> Scores:
        if self._by_row and self._X.has_canonical_format:
            return block_sums.block_leverages(self._X, diagonal, weight)
        return super()._diagonal_leverages(diagonal, weight)

    def _square_rmatvec(self, u: FloatArray) -> FloatArray:
        if not self._X.has_canonical_format:
            return super()._square_rmatvec(u)
        gather, scatter = kernels.gram.gather_squares, kernels.gram.scatter_squares
        return self._scatter(u, self.shape[1], kernel=scatter) if self._by_row else self._gather(u, kernel=gather)

    def _column_statistics(self, weight: FloatArray | None) -> ColumnStatistics:
        n, p = self.shape
        if self._X.has_canonical_format:
            stored, entries = self._stored_statistics(weight)
            return with_zeros(stored, entries, weight, n)
        parts, entries = [], np.zeros(p, dtype=np.intp)  # entries of one place must be summed first: block by block
        for start, stop, block in self.row_blocks(max(1, n // 16)):
            rows = block.copy()
            rows.sum_duplicates()
            part, count = CompressedOperator(rows)._stored_statistics(None if weight is None else weight[start:stop])
            parts.append(part)
            entries += count
        return with_zeros(merge(parts), entries, weight, n)

    def _stored_statistics(self, weight: FloatArray | None) -> tuple[ColumnStatistics, IntArray]:
        bounds = self._scatter_bounds
        chunks = len(bounds) - 1
        table = np.zeros((chunks if self._by_row else 1, self.shape[1], 5))
        entries = np.zeros(table.shape[:2], dtype=np.intp)
        arguments = (self._data, self._indices, self._indptr, weight, entries, table, bounds)
        kernel = kernels.columns.row_sums if self._by_row else kernels.columns.stored_column_sums
        parallel.run_chunks(kernel, chunks, *arguments)
        sums = ColumnSums.of_table(table)
        if self._by_row and weight is None:
            entries = sums.counts.astype(np.intp)
        return merge(sums.parts()), entries.sum(axis=0)

    @property
    def reads_all(self) -> bool:
        """Whether Xw reads every entry: by rows it does, by columns those of coefficient 0 are skipped."""
        return bool(self._by_row)

    def inspect(self) -> tuple[int, int] | None:
        bounds = self._scatter_bounds
        found = np.empty(len(bounds) - 1, dtype=np.int64)
        largest = np.zeros((len(found) if self._by_row else 1, self.shape[1]))
        twice = not self._X.has_canonical_format
        arguments = (self._data, self._indices, self._indptr, self._by_row, twice, largest, found, bounds)
        parallel.run_chunks(kernels.csr.inspect_entries, len(found), *arguments)
        with np.errstate(over="ignore"):
            self.largest = largest.sum(axis=0) if twice else largest.max(axis=0)
        places = found[found >= 0]
        if len(places) == 0:
            return None
        line = int(np.searchsorted(self._X.indptr, places[0], side="right")) - 1
        index = int(self._X.indices[places[0]])
        return (line, index) if self._by_row else (index, line)


def to_compressed(X: Any) -> tuple[Any, str]:
    """Return X as CSR or CSC with float data, and what had to be copied for that ("" if nothing)."""
    copied = ""
    with np.errstate(over="ignore", invalid="ignore"):  # infinities are looked for later
        if X.format not in ("csr", "csc"):
            copied = f"{X.format.upper()} to CSR"
            # Widened first: entries that name a place twice are added, and small integers would wrap around.
            X = (X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)).tocsr()
        if X.dtype not in (np.float32, np.float64):
            values: AnyArray = X.data.astype(np.float64)
            copied = copied or f"{X.dtype} values to float64"
            X = type(X)((values, X.indices, X.indptr), shape=X.shape, copy=False)
    if any(index.dtype not in (np.int32, np.int64) for index in (X.indices, X.indptr)):
        copied = copied or f"{X.indices.dtype} indices to int64"
        X = type(X)((X.data, X.indices.astype(np.int64), X.indptr.astype(np.int64)), shape=X.shape, copy=False)
    return X, copied
