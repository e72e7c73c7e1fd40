"""Sums over a block of rows, dense or CSR: X'DX, class moments, quadratic forms and products with squares."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from scoreline import kernels
from scoreline.operators.moments import ClassMoments, Moments
from scoreline.runtime import parallel
from scoreline.runtime.types import AnyArray, Block, FloatArray
from scoreline.runtime.vectors import visible

LOOKUP_ENTRIES = 1 << 20  # entries that are looked up at a time
GRAM_BYTES = 1 << 26  # of private sums at most, whatever the number of threads
MOMENT_CHUNK_BYTES = 1 << 29  # of private sums at most, whatever the number of threads: two chunks at 4096 columns
CANCELLATION_RATIO = 1e-6  # scatter over n mean^2 below which a sum of squares has lost digits that matter
# Rows handed to BLAS at a time: with fewer, p x p sums are read too often.
LEAST_BLAS_ROWS, BLAS_ROWS_BYTES = 512, 1 << 21
ORIGIN_ROWS = 64  # rows whose mean is the origin of a chunk
BLOCK_ENTRIES = 1 << 22  # of sparse rows that are copied at a time


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


def is_sparse(block: Block) -> bool:
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
    """Return the listed rows of a CSR matrix, a copy; beyond it memory for LOOKUP_ENTRIES entries."""
    lengths = (X.indptr[rows + 1] - X.indptr[rows]).astype(np.int64)
    starts = np.zeros(len(rows) + 1, dtype=np.int64)
    np.cumsum(lengths, out=starts[1:])
    total = int(starts[-1])
    data, indices = np.empty(total, dtype=X.data.dtype), np.empty(total, dtype=X.indices.dtype)
    first = 0
    while first < len(rows):
        last = max(first + 1, int(np.searchsorted(starts, starts[first] + LOOKUP_ENTRIES, side="right")) - 1)
        begin, end = int(starts[first]), int(starts[last])
        shifts = X.indptr[rows[first:last]].astype(np.int64) - starts[first:last]
        places = np.repeat(shifts, lengths[first:last]) + np.arange(begin, end)
        data[begin:end], indices[begin:end] = X.data[places], X.indices[places]
        first = last
    kind = np.int32 if max(total, X.shape[1]) < 2**31 else np.int64
    parts = (data, indices.astype(kind, copy=False), starts.astype(kind))
    return sp.csr_array(parts, shape=(len(rows), X.shape[1]))


def gram_of_blocks(block_of: Callable[[int, int], Block], shape: tuple[int, int], weight: FloatArray) -> FloatArray:
    """Return X'DX of a matrix that `block_of(start, stop)` gives rows of: chunks on our threads, sums in fixed order."""
    n, p = shape
    step = default_block_rows(n, p)
    chunks = max(1, min(16, GRAM_BYTES // (8 * p * p), -(-n // step)))
    edges = np.linspace(0, n, chunks + 1).astype(int)
    partial = np.zeros((chunks, p, p))

    @visible  # other threads do not inherit the caller's
    def work(first: int, last: int) -> None:
        for c in range(first, last):
            for start in range(edges[c], edges[c + 1], step):
                stop = min(start + step, edges[c + 1])
                partial[c] += block_gram(block_of(start, stop), weight[start:stop])

    with parallel.one_blas_thread():
        parallel.run_chunks(work, chunks)
    return np.asarray(partial.sum(axis=0))


def quadratics_of_blocks(
    block_of: Callable[[int, int], Block], shape: tuple[int, int], matrix: FloatArray
) -> FloatArray:
    """Return x_i' M x_i for every row of a matrix that `block_of(start, stop)` gives rows of, on our threads."""
    spans = list(block_spans(*shape))
    out = np.empty(shape[0])

    @visible
    def work(first: int, last: int) -> None:
        for start, stop in spans[first:last]:
            out[start:stop] = block_quadratics(block_of(start, stop), matrix)

    with parallel.one_blas_thread():
        parallel.run_chunks(work, len(spans))
    return out


def block_gram(block: Block, weight: FloatArray) -> FloatArray:
    """Return X'DX with D = diag(weight >= 0): p x p. Dense: n p^2 flops by BLAS. CSR: half the squared row lengths."""
    if not is_sparse(block):
        root = np.sqrt(weight)[:, None] * block
        return np.asarray(root.T @ root)
    data, indices, indptr = csr_arrays(block)
    p = block.shape[1]
    chunks = max(1, min(16, GRAM_BYTES // (8 * p * p)))
    bounds = parallel.even_bounds(block.shape[0], _square_length(block), chunks)
    partial = np.empty((len(bounds) - 1, p, p))
    parallel.run_chunks(
        kernels.gram.csr_gram, len(partial), data, indices, indptr, np.ascontiguousarray(weight), partial, bounds
    )
    total = partial.sum(axis=0)
    return np.asarray(total + total.T)


def block_sums(block: Block, weight: FloatArray) -> FloatArray:
    """Return X'weight of a CSR block."""
    n, p = block.shape
    per_row = 4.0 * block.nnz / max(1, n)
    bounds = parallel.even_bounds(n, per_row, max(1, min(16, block.nnz // (4 * p))))
    partial = np.empty((len(bounds) - 1, p))
    arguments = (*csr_arrays(block), None, np.ascontiguousarray(weight), partial, bounds)
    parallel.run_chunks(kernels.csr.scatter, len(partial), *arguments)
    return np.asarray(partial.sum(axis=0))


def block_quadratics(block: Block, matrix: FloatArray) -> FloatArray:
    """Return x_i' M x_i for every row i, M symmetric. As costly as `block_gram`."""
    if not is_sparse(block):
        return np.asarray(np.einsum("ij,ij->i", block @ matrix, block))
    data, indices, indptr = csr_arrays(block)
    out = np.empty(block.shape[0])
    bounds = parallel.even_bounds(block.shape[0], _square_length(block))
    parallel.run_chunks(
        kernels.gram.csr_quadratics, len(bounds) - 1, data, indices, indptr, np.ascontiguousarray(matrix), out, bounds
    )
    return out


def block_leverages(block: Block, diagonal: FloatArray, weight: FloatArray) -> FloatArray:
    """Return sum_j x_ij^2 / (diagonal_j - weight_i x_ij^2) for every row i."""
    if not is_sparse(block):
        squares = np.square(block, dtype=np.float64)
        rest = np.maximum(diagonal - weight[:, None] * squares, 1e-12 * diagonal)  # rounding must not make it 0
        return np.asarray((squares / rest).sum(axis=1))
    if not block.has_canonical_format:
        block = block.copy()
        block.sum_duplicates()
    out = np.empty(block.shape[0])
    bounds = parallel.even_bounds(block.shape[0], 8.0 * block.nnz / max(1, block.shape[0]))
    arguments = (*csr_arrays(block), diagonal, np.ascontiguousarray(weight), out, bounds)
    parallel.run_chunks(kernels.gram.csr_leverages, len(bounds) - 1, *arguments)
    return out


def block_squares(block: Block) -> Block:
    """Return the block with every entry squared: a copy of one block, never of X."""
    if not is_sparse(block):
        return np.square(block, dtype=np.float64)
    squared = block.astype(np.float64, copy=True)
    squared.sum_duplicates()
    squared.data **= 2
    return squared


def block_norms(block: Block) -> FloatArray:
    """Return the Euclidean length of every row; rows whose squares leave the range of floats are scaled first."""
    squares = np.asarray(block_squares(block).sum(axis=1)).ravel()
    norms = np.sqrt(squares)
    far = np.flatnonzero(~((squares > 1e-280) & (squares < 1e280)))
    if len(far):
        rows = np.abs(block[far].toarray() if is_sparse(block) else np.asarray(block)[far]).astype(np.float64)
        exponent = np.frexp(rows.max(axis=1))[1]
        norms[far] = np.ldexp(np.sqrt(np.square(np.ldexp(rows, -exponent[:, None])).sum(axis=1)), exponent)
    return np.asarray(norms)


def csr_arrays(block: Block) -> tuple[AnyArray, AnyArray, AnyArray]:
    """Return data, indices and row starts as kernels take them: read-only, indices unsigned."""
    indices, indptr = (a.view(f"u{a.dtype.itemsize}") for a in (block.indices, block.indptr))
    return read_only(block.data), read_only(indices), read_only(indptr)


def _square_length(block: Block) -> float:
    """Return the mean work of a row: about half its squared length."""
    return 1.0 + 0.5 * float(block.nnz / max(1, block.shape[0])) ** 2


def moments_of_blocks(
    block_of: Callable[[int, int], Block], shape: tuple[int, int], sign: AnyArray, weight: FloatArray | None
) -> ClassMoments:
    """Return the class moments of a dense matrix that `block_of(start, stop)` gives rows of: chunks on our threads.

    Each chunk sums around an origin of its own, the mean of its first rows, so that columns far from 0 lose no digits; chunks
    are merged in order, so the bits do not depend on the number of threads. n p^2 flops by BLAS; float32 rows are widened.
    """
    n, p = shape
    step = default_block_rows(n, p)
    # Not so many that making and merging p x p sums takes as long as filling them.
    chunks = max(1, min(16, MOMENT_CHUNK_BYTES // (16 * p * p), -(-n // step), max(2, n // (8 * p))))
    edges = np.linspace(0, n, chunks + 1).astype(int)
    parts: list[ClassMoments | None] = [None] * chunks

    @visible  # other threads do not inherit the caller's
    def work(first: int, last: int) -> None:
        for c in range(first, last):
            sums = {1: _Sums(p), -1: _Sums(p)}
            for start in range(edges[c], edges[c + 1], step):
                stop = min(start + step, edges[c + 1])
                block = np.ascontiguousarray(block_of(start, stop))
                for side, own in sums.items():
                    chosen = sign[start:stop] == side
                    if weight is not None:
                        chosen &= weight[start:stop] > 0.0  # rows that do not count must not shape the origin
                    rows = np.flatnonzero(chosen)
                    own.add(block, rows, None if weight is None else weight[start:stop][rows])
            parts[c] = ClassMoments(sums[1].moments(), sums[-1].moments())

    with parallel.one_blas_thread():
        parallel.run_chunks(work, chunks)
    total = ClassMoments.empty(p)
    for part in parts:
        assert part is not None
        total.merge(part)
    return total


class _Sums:
    """Sums of x - origin and its squares over dense rows, which are collected until there are enough for BLAS."""

    def __init__(self, p: int):
        self.weight = 0.0
        self.origin: FloatArray | None = None
        self.sums = np.zeros(p)
        self.squares = np.zeros((p, p))
        self.rows = np.empty((max(LEAST_BLAS_ROWS, min(2 * LEAST_BLAS_ROWS, p), BLAS_ROWS_BYTES // (8 * p)), p))
        self.filled = 0

    def add(self, block: FloatArray, rows: AnyArray, weight: FloatArray | None) -> None:
        """Add some rows of a block."""
        self.weight += float(len(rows) if weight is None else weight.sum())
        start = 0
        while start < len(rows):
            stop = start + min(len(rows) - start, len(self.rows) - self.filled)
            if self.origin is None:
                self.origin = np.asarray(block[rows[:ORIGIN_ROWS]], dtype=np.float64).mean(axis=0)
            own = None if weight is None else weight[start:stop]
            part = self.rows[self.filled : self.filled + stop - start]
            kernels.gram.centred_rows(block, rows[start:stop], own, self.origin, part, self.sums)
            self.filled += stop - start
            if self.filled == len(self.rows):
                self._flush()
            start = stop

    def _flush(self) -> None:
        part = self.rows[: self.filled]
        self.squares += part.T @ part  # SciPy's dsyrk would add in place, but it holds the GIL
        self.filled = 0

    def moments(self) -> Moments:
        """Return the moments of all rows added."""
        if self.origin is None or self.weight <= 0.0:
            return Moments.empty(len(self.sums))
        self._flush()
        offset = self.sums / self.weight
        self.squares -= np.outer(self.weight * offset, offset)
        return Moments(self.weight, self.origin + offset, self.squares)


def moments_of_sparse(X: Any, sign: AnyArray, weight: FloatArray | None) -> ClassMoments:
    """Return the class moments of a CSR matrix: half the squared row lengths in multiplications, p x p memory."""
    parts = []
    for side in (1, -1):
        own = np.where(sign == side, 1.0 if weight is None else weight, 0.0)
        parts.append(_sparse_side(X, own))
    return ClassMoments(*parts)


def _sparse_side(X: Any, weight: FloatArray) -> Moments:
    """Return the moments with these weights; columns far from 0 that have no zeros are summed around an origin."""
    # A column with a zero among n rows has a variance of at least mean^2 / n, so its sum of squares loses no more than the
    # rounding of n terms. One without zeros can be moved without filling X in, a block of rows at a time.
    p, total = X.shape[1], float(weight.sum())
    if total <= 0.0:
        return Moments.empty(p)
    scatter, mean, origin = block_gram(X, weight), block_sums(X, weight) / total, np.zeros(p)
    squares = np.diag(scatter)
    full = squares - total * mean**2 < CANCELLATION_RATIO * squares
    if full.any():
        present = sum(np.bincount(block.indices, minlength=p) for _, block in _sparse_blocks(X, weight))
        full &= present == np.count_nonzero(weight)
    if full.any():
        origin = np.where(full, mean, 0.0)
        scatter, sums = np.zeros((p, p)), np.zeros(p)
        for own, block in _sparse_blocks(X, weight):
            block.data = block.data - origin[block.indices]
            scatter += block_gram(block, own)
            sums += block_sums(block, own)
        mean = sums / total
    scatter -= total * np.outer(mean, mean)
    return Moments(total, origin + mean, scatter)


def _sparse_blocks(X: Any, weight: FloatArray) -> Iterator[tuple[FloatArray, sp.csr_array]]:
    """Yield the weights and the rows of blocks of about BLOCK_ENTRIES entries, without rows of weight 0, each column once."""
    n = X.shape[0]
    step = max(1, int(BLOCK_ENTRIES * n / max(1, int(X.indptr[-1]))))
    for start in range(0, n, step):
        own = weight[start : start + step]
        rows = np.flatnonzero(own)
        block = csr_listed(X, start + rows)
        if not X.has_canonical_format:
            block.sum_duplicates()
        yield own[rows], block


def default_block_rows(n: int, p: int) -> int:
    """Return how many rows of p float64 make about 8 MB: enough to amortise a call, small enough for any memory."""
    return max(1, min(n, (1 << 20) // max(1, p)))


def block_spans(n: int, p: int) -> Iterator[tuple[int, int]]:
    """Yield the first row of each block of `default_block_rows` rows, and the one after its last."""
    step = default_block_rows(n, p)
    for start in range(0, n, step):
        yield start, min(start + step, n)


def read_only(array: AnyArray) -> AnyArray:
    """Return a read-only view: kernels then compile once, whether or not the caller's array is writable."""
    view = array.view()
    view.flags.writeable = False
    return view
