"""Blocks of encoded rows as one matrix, in memory that is reserved from the start."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from scoreline.io.columns import TableError
from scoreline.io.encoding import Encoding
from scoreline.runtime.memory import memory_limit
from scoreline.runtime.types import AnyArray


def assembled(
    blocks: Iterator[tuple[Any, AnyArray | None]], encoding: Encoding, rows: int
) -> tuple[Any, AnyArray | None]:
    """Put blocks together, into arrays that are there from the start: beyond the result one block is in memory.

    `rows` is what the file says: where that is wrong, rows would be what memory held before.
    """
    least = 8.0 * rows * (encoding.n_features if encoding.storage == "dense" else 1)
    if least > memory_limit():
        raise MemoryError(f"{rows:,} rows of {encoding.n_features:,} features take {least:.3g} bytes")
    X: Any = np.empty((rows, encoding.n_features)) if encoding.storage == "dense" else _Rows(rows, encoding.n_features)
    labels: list[Any] = []
    row = 0
    for block, y in blocks:
        if row + block.shape[0] > rows:
            raise TableError(f"there are more than the {rows:,} rows that the file names; it is damaged")
        if isinstance(X, _Rows):
            X.append(block)
        else:
            X[row : row + len(block)] = block
        row += block.shape[0]
        labels.append(y)
    if row < rows:
        raise TableError(f"there are {row:,} rows, and the file names {rows:,}; it is damaged")
    return X.matrix() if isinstance(X, _Rows) else X, None if labels[0] is None else np.concatenate(labels)


class _Rows:
    """A CSR matrix that grows: room is made for as many entries as the rows so far let expect."""

    def __init__(self, rows: int, width: int):
        self.shape, self.row, self.entries = (rows, width), 0, 0
        self.indptr = np.zeros(rows + 1, dtype=np.int64)
        self.data, self.indices = np.empty(0), np.empty(0, dtype=np.int32)

    def append(self, block: Any) -> None:
        """Add the rows of a block."""
        start, end, row = self.entries, self.entries + block.nnz, self.row + block.shape[0]
        if end > len(self.data):
            room = max(end, int(end / row * self.shape[0] * 1.02))
            if start:  # realloc moves pages, not bytes, where arrays are large
                self.data.resize(room, refcheck=False)
                self.indices.resize(room, refcheck=False)
            else:
                self.data, self.indices = np.empty(room), np.empty(room, dtype=np.int32)
        self.data[start:end], self.indices[start:end] = block.data, block.indices
        self.indptr[self.row + 1 : row + 1] = block.indptr[1:]
        self.indptr[self.row + 1 : row + 1] += start
        self.row, self.entries = row, end

    def matrix(self) -> Any:
        """Return the matrix."""
        self.data.resize(self.entries, refcheck=False)
        self.indices.resize(self.entries, refcheck=False)
        kind = np.int32 if self.entries < 2**31 else np.int64  # SciPy wants both index arrays of one type
        arrays = (self.data, self.indices.astype(kind, copy=False), self.indptr.astype(kind, copy=False))
        return sp.csr_array(arrays, shape=self.shape)
