"""Sparse rows as three arrays, whose types of index SciPy would make equal by a copy: int32 columns with int64 row starts."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from scoreline._typing import AnyArray


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
    """Return the listed rows of a CSR matrix, a copy."""
    begins, lengths = X.indptr[rows].astype(np.int64), (X.indptr[rows + 1] - X.indptr[rows]).astype(np.int64)
    starts = np.zeros(len(rows) + 1, dtype=np.int64)
    np.cumsum(lengths, out=starts[1:])
    places = np.repeat(begins - starts[:-1], lengths) + np.arange(starts[-1])
    return sp.csr_array((X.data[places], X.indices[places], starts), shape=(len(rows), X.shape[1]))
