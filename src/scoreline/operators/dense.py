"""Dense NumPy arrays: C- or F-like, float32 or float64, any slice of one, never copied as a whole."""

from collections.abc import Iterator

import numpy as np
from numpy.lib.stride_tricks import as_strided

from scoreline import kernels
from scoreline.operators.base import Operator, RowArrays
from scoreline.operators.block_sums import block_spans, read_only
from scoreline.operators.statistics import ColumnStatistics, ColumnSums, merge
from scoreline.runtime import parallel
from scoreline.runtime.types import AnyArray, BoundsArray, FloatArray

SUM_CHUNKS = 16  # private accumulators of X'u


class DenseOperator(Operator):
    """A float32 or float64 array that is contiguous along rows (C-like) or along columns (F-like).

    Both products read X once at the speed of memory: C-like Xw is a dot product per row, F-like Xw adds columns tile by
    tile; X'u has `SUM_CHUNKS` private accumulators at most, added in fixed order.
    """

    capabilities = frozenset({"row_blocks", "rows", "statistics"})

    def __init__(self, X: AnyArray):
        super().__init__(X.shape)
        self._X = X
        n, p = self.shape
        item = X.itemsize
        self._by_row = p == 1 or X.strides[1] == item
        # The line that is contiguous, the distance to the next in items, and everything as one flat view.
        lines, length = (n, p) if self._by_row else (p, n)
        step = X.strides[0] if self._by_row else X.strides[1]
        stride = step // item if lines > 1 else length
        flat = as_strided(X, shape=((lines - 1) * stride + length,), strides=(item,), writeable=False)
        self._flat, self._stride = read_only(flat), np.uint64(stride)
        self._row_step = np.uint64(stride if self._by_row else 1)
        self._column_step = np.uint64(1 if self._by_row else stride)
        self._bounds = parallel.even_bounds(n, p)
        self._sum_bounds = parallel.even_bounds(n, p, SUM_CHUNKS)

    @staticmethod
    def accepts(X: AnyArray) -> bool:
        """Tell whether the kernels can walk X as it lies in memory."""
        item = X.itemsize
        if not (X.dtype in (np.float32, np.float64) and X.dtype.isnative and X.flags.aligned):
            return False
        return any(
            (X.shape[a] == 1 or X.strides[a] == item)
            and (X.shape[b] == 1 or (X.strides[b] >= item * X.shape[a] and X.strides[b] % item == 0))
            for a, b in ((1, 0), (0, 1))
        )

    def _matvec(self, w: FloatArray) -> FloatArray:
        n, p = self.shape
        out = np.empty(n)
        if self._by_row:
            return self._dots(w, None, self._bounds, out)
        arguments = (self._flat, self._stride, np.uint64(p), w, out, self._bounds)
        parallel.run_chunks(kernels.dense.tile_axpys, len(self._bounds) - 1, *arguments)
        return out

    def _rmatvec(self, u: FloatArray) -> FloatArray:
        if self._by_row:
            return self._sums(u, None, self._sum_bounds)
        partial = np.empty((len(self._sum_bounds) - 1, self.shape[1]))
        arguments = (self._flat, self._stride, np.uint64(self.shape[1]), u, partial, self._sum_bounds)
        parallel.run_chunks(kernels.dense.tile_dots, len(partial), *arguments)
        return np.asarray(partial.sum(axis=0))

    def _matvec_rows(self, w: FloatArray, lines: BoundsArray) -> FloatArray:
        out = np.empty(len(lines))
        if self._by_row:
            return self._dots(w, lines, parallel.even_bounds(len(lines), self.shape[1]), out)
        for start, stop, rows in self._row_copies(lines):
            out[start:stop] = rows._matvec(w)
        return out

    def _rmatvec_rows(self, u: FloatArray, lines: BoundsArray) -> FloatArray:
        if self._by_row:
            return self._sums(u, lines, parallel.even_bounds(len(lines), self.shape[1], SUM_CHUNKS))
        out = np.zeros(self.shape[1])
        for start, stop, rows in self._row_copies(lines):
            out += rows._rmatvec(u[start:stop])
        return out

    def _row_copies(self, lines: BoundsArray) -> Iterator[tuple[int, int, "DenseOperator"]]:
        """Yield the listed rows of an F-like matrix as C-like blocks: single rows are scattered over its memory."""
        for start, stop in block_spans(len(lines), self.shape[1]):
            yield start, stop, DenseOperator(np.ascontiguousarray(self._X[lines[start:stop]]))

    def _dots(self, w: FloatArray, lines: BoundsArray | None, bounds: BoundsArray, out: FloatArray) -> FloatArray:
        arguments = (self._flat, self._stride, np.uint64(self.shape[1]), lines, w, out, bounds)
        parallel.run_chunks(kernels.dense.line_dots, len(bounds) - 1, *arguments)
        return out

    def _sums(self, u: FloatArray, lines: BoundsArray | None, bounds: BoundsArray) -> FloatArray:
        partial = np.empty((len(bounds) - 1, self.shape[1]))
        scratch = np.empty((len(partial), kernels.dense.LISTED + 1), dtype=np.uint64)
        arguments = (self._flat, self._stride, np.uint64(self.shape[1]), lines, u, partial, scratch, bounds)
        parallel.run_chunks(kernels.dense.line_sums, len(partial), *arguments)
        return np.asarray(partial.sum(axis=0))

    def gram_passes(self) -> float:
        """Return about how many products a call of `gram` costs; float32 is widened for it and a pass reads half as much."""
        return (1.0 if self._X.dtype == np.float64 else 5.0) * super().gram_passes()

    def _block(self, start: int, stop: int) -> AnyArray:
        return self._X[start:stop]

    def _listed(self, lines: BoundsArray) -> AnyArray:
        return self._X[lines]

    @property
    def cheap_rows(self) -> bool:
        return self._by_row

    def _row_arrays(self, start: int, stop: int) -> RowArrays:
        return RowArrays(self._flat, None, None, self._row_step, self._column_step, 0)

    def _column_statistics(self, weight: FloatArray | None) -> ColumnStatistics:
        chunks, p = len(self._sum_bounds) - 1, np.uint64(self.shape[1])
        sums = ColumnSums.zeros(chunks, self.shape[1])
        rest = (p, weight, *sums.arrays(), self._sum_bounds)
        if self._by_row:
            strides = self._row_step, self._column_step
            parallel.run_chunks(kernels.columns.dense_sums, chunks, self._flat, *strides, *rest)
        else:
            parallel.run_chunks(kernels.columns.dense_column_sums, chunks, self._flat, self._column_step, *rest)
        return merge(sums.parts())

    def inspect(self) -> tuple[int, int] | None:
        lines, length = self.shape if self._by_row else self.shape[::-1]
        bounds = parallel.even_bounds(lines, length, SUM_CHUNKS)
        found = np.empty(len(bounds) - 1, dtype=np.uint64)
        largest = np.zeros((len(found) if self._by_row else 1, self.shape[1]))
        arguments = (self._flat, self._stride, np.uint64(length), self._by_row, largest, found, bounds)
        parallel.run_chunks(kernels.dense.inspect_lines, len(found), *arguments)
        self.largest = largest.max(axis=0)
        for line, end in zip(found, bounds[1:], strict=True):
            if line < end:
                values = self._X[line] if self._by_row else self._X[:, line]
                place = int(np.flatnonzero(~np.isfinite(values))[0])
                return (int(line), place) if self._by_row else (place, int(line))
        return None
