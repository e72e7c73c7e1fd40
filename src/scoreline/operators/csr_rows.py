"""Sparse rows as three arrays, whose types of index SciPy would make equal by a copy: int32 columns with int64 row starts."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from scoreline.runtime.types import AnyArray

LISTED = 1 << 20  # entries that are looked up at a time


@dataclass(frozen=True)
class CsrRows:
    """The arrays of a CSR matrix, for kernels and for `CompressedOperator`; rows are sorted and name no column twice."""

    data: AnyArray
    indices: AnyArray
    indptr: AnyArray
    shape: tuple[int, int]

    format = "csr"
    has_canonical_format = True

    @property
    def nnz(self) -> int:
        """Number of stored entries."""
        return int(self.indptr[-1])


def is_sparse(block: Any) -> bool:
    """Tell whether a block of rows is stored as CSR (or CSC), by SciPy or as CsrRows."""
    return sp.issparse(block) or isinstance(block, CsrRows)


def csr_between(X: Any, start: int, stop: int) -> sp.csr_array:
    """Return rows start..stop of a CSR matrix: slices of its arrays (SciPy copies those that are less than half of theirs)."""
    indptr = X.indptr
    first, last = int(indptr[start]), int(indptr[stop])
    starts = (indptr[start : stop + 1] - indptr[start]).astype(X.indices.dtype, copy=False)  # a block has few entries
    parts = (X.data[first:last], X.indices[first:last], starts)
    return sp.csr_array(parts, shape=(stop - start, X.shape[1]), copy=False)


def csr_listed(X: Any, rows: AnyArray) -> sp.csr_array:
    """Return the listed rows of a CSR matrix, a copy; beyond it memory for LISTED entries."""
    lengths = (X.indptr[rows + 1] - X.indptr[rows]).astype(np.int64)
    starts = np.zeros(len(rows) + 1, dtype=np.int64)
    np.cumsum(lengths, out=starts[1:])
    total = int(starts[-1])
    data, indices = np.empty(total, dtype=X.data.dtype), np.empty(total, dtype=X.indices.dtype)
    first = 0
    while first < len(rows):
        last = max(first + 1, int(np.searchsorted(starts, starts[first] + LISTED, side="right")) - 1)
        begin, end = int(starts[first]), int(starts[last])
        shifts = X.indptr[rows[first:last]].astype(np.int64) - starts[first:last]
        places = np.repeat(shifts, lengths[first:last]) + np.arange(begin, end)
        data[begin:end], indices[begin:end] = X.data[places], X.indices[places]
        first = last
    kind = np.int32 if max(total, X.shape[1]) < 2**31 else np.int64
    parts = (data, indices.astype(kind, copy=False), starts.astype(kind))
    return sp.csr_array(parts, shape=(len(rows), X.shape[1]))
