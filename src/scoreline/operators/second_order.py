"""What second-order methods need of a block of rows: X'DX, the quadratic forms of its rows, products with squares."""

from collections.abc import Callable
from typing import Any

import numpy as np

from scoreline import kernels
from scoreline.operators.base import default_block_rows, read_only
from scoreline.operators.csr_rows import is_sparse
from scoreline.runtime import parallel
from scoreline.runtime.types import FloatArray
from scoreline.runtime.vectors import visible

GRAM_BYTES = 1 << 26  # of private sums at most, whatever the number of threads


def gram_of_blocks(block_of: Callable[[int, int], Any], shape: tuple[int, int], weight: FloatArray) -> FloatArray:
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


def quadratics_of_blocks(block_of: Callable[[int, int], Any], shape: tuple[int, int], matrix: FloatArray) -> FloatArray:
    """Return x_i' M x_i for every row of a matrix that `block_of(start, stop)` gives rows of, on our threads."""
    n, p = shape
    step = default_block_rows(n, p)
    starts = range(0, n, step)
    out = np.empty(n)

    @visible
    def work(first: int, last: int) -> None:
        for start in starts[first:last]:
            stop = min(start + step, n)
            out[start:stop] = block_quadratics(block_of(start, stop), matrix)

    with parallel.one_blas_thread():
        parallel.run_chunks(work, len(starts))
    return out


def block_gram(block: Any, weight: FloatArray) -> FloatArray:
    """Return X'DX with D = diag(weight >= 0): p x p. Dense: n p^2 flops by BLAS. CSR: half the squared row lengths."""
    if not is_sparse(block):
        root = np.sqrt(weight)[:, None] * block
        return np.asarray(root.T @ root)
    data, indices, indptr = _arrays(block)
    p = block.shape[1]
    chunks = max(1, min(16, GRAM_BYTES // (8 * p * p)))
    bounds = parallel.even_bounds(block.shape[0], _square_length(block), chunks)
    partial = np.empty((len(bounds) - 1, p, p))
    parallel.run_chunks(
        kernels.gram.csr_gram, len(partial), data, indices, indptr, np.ascontiguousarray(weight), partial, bounds
    )
    total = partial.sum(axis=0)
    return np.asarray(total + total.T)


def block_sums(block: Any, weight: FloatArray) -> FloatArray:
    """Return X'weight of a CSR block."""
    n, p = block.shape
    per_row = 4.0 * block.nnz / max(1, n)
    bounds = parallel.even_bounds(n, per_row, max(1, min(16, block.nnz // (4 * p))))
    partial = np.empty((len(bounds) - 1, p))
    arguments = (*_arrays(block), None, np.ascontiguousarray(weight), partial, bounds)
    parallel.run_chunks(kernels.csr.scatter, len(partial), *arguments)
    return np.asarray(partial.sum(axis=0))


def block_quadratics(block: Any, matrix: FloatArray) -> FloatArray:
    """Return x_i' M x_i for every row i, M symmetric. As costly as `block_gram`."""
    if not is_sparse(block):
        return np.asarray(np.einsum("ij,ij->i", block @ matrix, block))
    data, indices, indptr = _arrays(block)
    out = np.empty(block.shape[0])
    bounds = parallel.even_bounds(block.shape[0], _square_length(block))
    parallel.run_chunks(
        kernels.gram.csr_quadratics, len(bounds) - 1, data, indices, indptr, np.ascontiguousarray(matrix), out, bounds
    )
    return out


def block_leverages(block: Any, diagonal: FloatArray, weight: FloatArray) -> FloatArray:
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
    arguments = (*_arrays(block), diagonal, np.ascontiguousarray(weight), out, bounds)
    parallel.run_chunks(kernels.gram.csr_leverages, len(bounds) - 1, *arguments)
    return out


def block_squares(block: Any) -> Any:
    """Return the block with every entry squared: a copy of one block, never of X."""
    if not is_sparse(block):
        return np.square(block, dtype=np.float64)
    squared = block.astype(np.float64, copy=True)
    squared.sum_duplicates()
    squared.data **= 2
    return squared


def block_norms(block: Any) -> FloatArray:
    """Return the Euclidean length of every row; rows whose squares leave the range of floats are scaled first."""
    squares = np.asarray(block_squares(block).sum(axis=1)).ravel()
    norms = np.sqrt(squares)
    far = np.flatnonzero(~((squares > 1e-280) & (squares < 1e280)))
    if len(far):
        rows = np.abs(block[far].toarray() if is_sparse(block) else np.asarray(block)[far]).astype(np.float64)
        exponent = np.frexp(rows.max(axis=1))[1]
        norms[far] = np.ldexp(np.sqrt(np.square(np.ldexp(rows, -exponent[:, None])).sum(axis=1)), exponent)
    return np.asarray(norms)


def _arrays(block: Any) -> tuple[Any, Any, Any]:
    unsigned = np.uint32 if block.indices.dtype.itemsize == 4 else np.uint64
    pointers = np.uint32 if block.indptr.dtype.itemsize == 4 else np.uint64
    return read_only(block.data), read_only(block.indices.view(unsigned)), read_only(block.indptr.view(pointers))


def _square_length(block: Any) -> float:
    """Return the mean work of a row: about half its squared length."""
    return 1.0 + 0.5 * (block.nnz / max(1, block.shape[0])) ** 2
