"""CSR matrices on a device, with a second copy sorted by column in tiles of rows for products with the transpose."""

import logging
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from scoreline.gpu import kernels as device_kernels
from scoreline.gpu.backend import Backend, DeviceArray
from scoreline.gpu.kernels import Segments
from scoreline.gpu.operator import DeviceOperator
from scoreline.gpu.vector import DeviceVector
from scoreline.operators.statistics import ColumnStatistics, merge
from scoreline.runtime.types import FloatArray, Scores

logger = logging.getLogger("scoreline")

# Rows of a tile: 32 MB of float64, which stay in the cache of a GPU while the columns of the tile are added.
TILE_ROWS = 1 << 22
PIECE = 16384  # entries of a column that one group of threads adds


class CsrDeviceOperator(DeviceOperator):
    """A CSR matrix on a device.

    Xw adds along rows. X'u adds along the columns of a copy that is sorted by tile of rows and column, made for the first such
    product. A column then reads neighbouring entries of u. No two threads add to the same place, so every run gives the same
    bits. The copy doubles the memory of the matrix.
    """

    def __init__(
        self, values: DeviceArray, indices: DeviceArray, starts: DeviceArray, shape: tuple[int, int], backend: Backend
    ):
        super().__init__(shape, backend)
        arrays = values, indices, backend.xp.astype(starts, backend.xp.int64)
        self.values, self.indices, self.starts = (backend.contiguous(a) for a in arrays)
        self._kernels = device_kernels.on(backend)
        self._by_row = Segments(backend, self.starts[:-1], self.starts[1:], self.values, self.indices)

    @property
    def stores_zeros(self) -> bool:
        """Whether blocks of rows are dense arrays."""
        return False

    @property
    def row_bytes(self) -> float:
        """Bytes of a row, on average."""
        entry = self.backend.numpy_dtype(self.values).itemsize + self.backend.numpy_dtype(self.indices).itemsize
        return float(entry * self.values.shape[0] / max(1, self.shape[0]))

    @cached_property
    def _summed(self) -> "CsrDeviceOperator":
        """The matrix with duplicate entries summed, as squares and magnitudes of entries require."""
        backend, xp, (n, p) = self.backend, self.backend.xp, self.shape
        size = self.values.shape[0]
        if size < 2:
            return self
        # If columns increase within rows, every decrease is at the start of a row, and there are no duplicates.
        descents = xp.nonzero(~(self.indices[1:] > self.indices[:-1]))[0] + 1
        begins = xp.searchsorted(self.starts, descents) != xp.searchsorted(self.starts, descents, side="right")
        if bool(xp.all(begins)):
            return self
        keys = self._row_numbers() * p + xp.astype(self.indices, xp.int64)
        order = xp.argsort(keys, stable=True)
        keys = backend.take(keys, order)
        changes = xp.nonzero(keys[1:] != keys[:-1])[0] + 1
        if changes.shape[0] == size - 1:
            return self
        logger.info("summed entries that occur more than once in a row")
        ends = [backend.full((1,), 0, np.int64), changes, backend.full((1,), size, np.int64)]
        bounds = xp.concat(ends)
        values = backend.take(self.values, order)
        sums = self._kernels.segment_dots(Segments(backend, bounds[:-1], bounds[1:], values, None), values)
        distinct = backend.take(keys, bounds[:-1])
        starts = xp.searchsorted(distinct // p, backend.arange(n + 1))
        indices = xp.astype(distinct % p, self.indices.dtype)
        return CsrDeviceOperator(xp.astype(sums, self.values.dtype), indices, starts, self.shape, backend)

    def _row_numbers(self) -> DeviceArray:
        """Return the row of every entry."""
        xp, entries = self.backend.xp, self.backend.arange(self.values.shape[0])
        return xp.searchsorted(self.starts, entries, side="right") - 1

    @cached_property
    def _by_column(self) -> tuple[Segments, Segments]:
        """Pieces of columns within tiles, and for each column the pieces to add."""
        backend, xp, (n, p) = self.backend, self.backend.xp, self.shape
        rows = self._row_numbers()
        tiles = -(-n // TILE_ROWS)
        keys = rows // TILE_ROWS * p + xp.astype(self.indices, xp.int64)
        if tiles * p < 2**31:
            keys = xp.astype(keys, xp.int32)
        order = xp.argsort(keys, stable=True)
        keys, values = backend.take(keys, order), backend.take(self.values, order)
        rows = backend.take(rows, order)
        del order
        if n < 2**31:
            rows = xp.astype(rows, xp.int32)
        bounds = backend.arange(tiles * p + 1)
        edges = xp.astype(xp.searchsorted(keys, xp.astype(bounds, keys.dtype)), xp.int64)
        del keys
        # Long columns are split into pieces, ordered by tile, so that pieces that run together read the same entries of u.
        counts = (edges[1:] - edges[:-1] + (PIECE - 1)) // PIECE
        ends = xp.cumulative_sum(counts)
        piece = backend.arange(int(ends[-1]))
        owner = xp.searchsorted(ends, piece, side="right")
        begin = backend.take(edges, owner) + (piece - backend.take(ends - counts, owner)) * PIECE
        stop = xp.minimum(begin + PIECE, backend.take(edges, owner + 1))
        pieces = Segments(backend, begin, stop, values, rows)
        # The pieces of a column are in different tiles, so each column has a list of their indices.
        self._column_of_piece = owner % p
        by_column = xp.argsort(self._column_of_piece, stable=True)
        bounds = xp.searchsorted(backend.take(self._column_of_piece, by_column), backend.arange(p + 1))
        bounds = xp.astype(bounds, xp.int64)
        ones = backend.full((piece.shape[0],), 1.0, np.float32)
        logger.info("sorted %d entries by column on the device, for products with the transpose", self.values.shape[0])
        return pieces, Segments(backend, bounds[:-1], bounds[1:], ones, by_column)

    def _column_dots(self, u: DeviceArray, values: DeviceArray | None = None) -> DeviceArray:
        """Return the sum of values times u over every column; `values` must be in the order of the sorted copy."""
        if self.values.shape[0] == 0:
            return self.backend.full((self.shape[1],), 0.0)
        pieces, columns = self._by_column
        partial = self._kernels.segment_dots(pieces if values is None else replace(pieces, values=values), u)
        return self._kernels.segment_dots(columns, partial)

    def _matvec(self, w: FloatArray) -> DeviceVector:
        return self._made(self._row_dots(self._by_row, self.backend.array(w)))

    def _rmatvec(self, u: DeviceVector) -> FloatArray:
        return self._host(self._column_dots(u.array))

    def _square_rmatvec(self, u: DeviceVector) -> FloatArray:
        if self._scale is not None or self.values.shape[0] == 0:
            return super()._square_rmatvec(u)
        if self._summed is not self:
            return self._summed._square_rmatvec(u)
        xp, values = self.backend.xp, self._by_column[0].values
        squares = xp.astype(values, xp.float64)
        return self._host(self._column_dots(u.array, squares * squares))

    def _entry_sums(self, entries: DeviceArray) -> DeviceArray:
        """Return the sum over each row of numbers given per entry."""
        return self._row_dots(replace(self._by_row, values=entries, indices=None), entries)

    def _row_dots(self, rows: Segments, vector: DeviceArray) -> DeviceArray:
        if self.values.shape[0] == 0:
            return self.backend.full((self.shape[0],), 0.0)
        return self._kernels.segment_dots(rows, vector)

    def _diagonal_leverages(self, diagonal: FloatArray, weight: DeviceVector) -> DeviceVector:
        if self._scale is not None:
            return super()._diagonal_leverages(diagonal, weight)
        if self._summed is not self:
            return self._summed._diagonal_leverages(diagonal, weight)
        xp = self.backend.xp
        squares = xp.astype(self.values, xp.float64)
        squares = squares * squares
        take = self.backend.take
        below = take(self.backend.array(diagonal), self.indices) - take(weight.array, self._row_numbers()) * squares
        return self._made(self._entry_sums(squares / below))

    def row_norms(self) -> Scores:
        """Return the Euclidean length of every row. One pass."""
        self._count(1.0)
        own = self._summed
        values = self.backend.xp.astype(own.values, self.backend.xp.float64)
        return self._made(self.backend.xp.sqrt(own._entry_sums(values * values)))

    def _column_statistics(self, weight: DeviceVector | None) -> ColumnStatistics:
        """Return statistics of the stored entries, in two passes for accuracy, merged with those of the implicit zeros."""
        if self.values.shape[0] == 0:
            return super()._column_statistics(weight)
        if self._summed is not self:
            return self._summed._column_statistics(weight)
        xp, (n, p) = self.backend.xp, self.shape
        pieces, _ = self._by_column
        s = self.backend.full((n,), 1.0) if weight is None else weight.array
        ones = self.backend.full((self.values.shape[0],), 1.0)
        stored = self._column_dots(s, ones)
        safe = xp.where(stored > 0.0, stored, xp.ones_like(stored))
        mean = self._column_dots(s) / safe
        columns = self._columns_sorted()
        moved = xp.astype(pieces.values, xp.float64) - self.backend.take(mean, columns)
        squares = self._column_dots(s, moved * moved)
        there = xp.abs(xp.astype(pieces.values, xp.float64))
        if weight is not None:
            there = xp.where(self.backend.take(s, pieces.indices) > 0.0, there, xp.zeros_like(there))
        largest = self.backend.scattered("max", p, columns, there)
        entries = ColumnStatistics(*self._host(xp.stack([stored, mean, squares / safe, largest])))
        counted = self._column_dots(xp.astype(s > 0.0, xp.float64), ones)
        rows, total = int(xp.count_nonzero(s > 0.0)), float(xp.sum(s))
        # Counts of rows decide whether there are implicit zeros, because a difference of weights has rounding errors.
        missing = np.where(self._host(counted) < rows, np.maximum(total - entries.weight, 0.0), 0.0)
        zeros = np.zeros(p)
        return merge([entries, ColumnStatistics(missing, zeros, zeros, zeros)])

    def _columns_sorted(self) -> DeviceArray:
        """Return the column of every entry of the sorted copy."""
        pieces, _ = self._by_column
        place = self.backend.xp.searchsorted(pieces.starts, self.backend.arange(self.values.shape[0]), side="right") - 1
        return self.backend.take(self._column_of_piece, place)

    def _rows(self, start: int, stop: int, rows: DeviceArray | None = None) -> DeviceArray:
        part = self._on_rows(self.backend.arange(start, stop) if rows is None else rows)
        xp, (count, p) = self.backend.xp, part.shape
        values = xp.astype(part.values, xp.float64)
        if values.shape[0] == 0:
            return self.backend.full((count, p), 0.0)
        places = part._row_numbers() * p + xp.astype(part.indices, xp.int64)
        return xp.reshape(self.backend.scattered("add", count * p, places, values), (count, p))

    def _on_rows(self, rows: DeviceArray) -> "CsrDeviceOperator":
        xp = self.backend.xp
        begin, end = self.backend.take(self.starts, rows), self.backend.take(self.starts, rows + 1)
        stops = xp.cumulative_sum(end - begin)
        starts = xp.concat([self.backend.full((1,), 0, np.int64), stops])
        entries = self.backend.arange(int(starts[-1]))
        owner = xp.searchsorted(stops, entries, side="right")
        entries = entries - self.backend.take(starts, owner) + self.backend.take(begin, owner)
        values, indices = self.backend.take(self.values, entries), self.backend.take(self.indices, entries)
        return CsrDeviceOperator(values, indices, starts, (int(rows.shape[0]), self.shape[1]), self.backend)

    def _block(self, start: int, stop: int) -> Any:
        host = self.backend.host
        a, b = int(self.starts[start]), int(self.starts[stop])
        starts = host(self.starts[start : stop + 1]) - a
        return sp.csr_array(
            (host(self.values[a:b]), host(self.indices[a:b]), starts), shape=(stop - start, self.shape[1])
        )

    def inspect(self) -> tuple[int, int] | None:
        """Return (row, column) of a NaN or an infinity, or None, and set `largest`, in one pass over X."""
        xp = self.backend.xp
        if self.values.shape[0] == 0:
            self.largest = np.zeros(self.shape[1])
            return None
        low, high = int(xp.min(self.indices)), int(xp.max(self.indices))
        if low < 0 or high >= self.shape[1]:
            raise ValueError(
                f"X has column numbers from {low} to {high}, expected 0 to {self.shape[1] - 1}: it is not a valid CSR matrix"
            )
        finite = xp.isfinite(self.values)
        if not bool(xp.all(finite)):
            entry = int(xp.nonzero(~finite)[0][0])
            place = xp.searchsorted(self.starts, self.backend.full((1,), entry, np.int64), side="right")
            return int(place[0]) - 1, int(self.indices[entry])
        own = self._summed
        largest = self.backend.scattered("max", self.shape[1], own.indices, xp.abs(own.values))
        self.largest = self._host(largest).astype(np.float64)
        return None
