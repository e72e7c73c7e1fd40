"""Class moments in one pass: blocks of rows through BLAS, or outer products of sparse rows."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from scoreline import kernels
from scoreline.operators.base import default_block_rows
from scoreline.operators.csr_rows import csr_listed
from scoreline.operators.moments import ClassMoments, Moments
from scoreline.operators.second_order import block_gram, block_sums
from scoreline.runtime import parallel
from scoreline.runtime.types import AnyArray, FloatArray
from scoreline.runtime.vectors import visible

CHUNK_BYTES = 1 << 29  # of private sums at most, whatever the number of threads: two chunks at 4096 columns
FAR = 1e-6  # scatter over n mean^2 below which a sum of squares has lost digits that matter
LEAST_ROWS, ROWS_BYTES = 512, 1 << 21  # rows handed to BLAS at a time: fewer, and p x p sums are read too often
FIRST_ROWS = 64  # rows whose mean is the origin of a chunk
BLOCK_ENTRIES = 1 << 22  # of sparse rows that are copied at a time


def moments_of_blocks(
    block_of: Callable[[int, int], Any], shape: tuple[int, int], sign: AnyArray, weight: FloatArray | None
) -> ClassMoments:
    """Return the class moments of a dense matrix that `block_of(start, stop)` gives rows of: chunks on our threads.

    Each chunk sums around an origin of its own, the mean of its first rows, so that columns far from 0 lose no digits; chunks
    are merged in order, so the bits do not depend on the number of threads. n p^2 flops by BLAS; float32 rows are widened.
    """
    n, p = shape
    step = default_block_rows(n, p)
    # Not so many that making and merging p x p sums takes as long as filling them.
    chunks = max(1, min(16, CHUNK_BYTES // (16 * p * p), -(-n // step), max(2, n // (8 * p))))
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
        self.rows = np.empty((max(LEAST_ROWS, min(2 * LEAST_ROWS, p), ROWS_BYTES // (8 * p)), p))
        self.filled = 0

    def add(self, block: FloatArray, rows: AnyArray, weight: FloatArray | None) -> None:
        """Add some rows of a block."""
        self.weight += float(len(rows) if weight is None else weight.sum())
        start = 0
        while start < len(rows):
            stop = start + min(len(rows) - start, len(self.rows) - self.filled)
            if self.origin is None:
                self.origin = np.asarray(block[rows[:FIRST_ROWS]], dtype=np.float64).mean(axis=0)
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
    """Return the moments with these weights; columns far from 0 that have no zeros are summed around an origin.

    A column with at least one zero among n rows has a variance of at least mean^2 / n, so its sum of squares loses no more than
    the rounding of n terms. One without zeros can be moved without filling X in, a block of rows at a time.
    """
    p, total = X.shape[1], float(weight.sum())
    if total <= 0.0:
        return Moments.empty(p)
    scatter, mean, origin = block_gram(X, weight), block_sums(X, weight) / total, np.zeros(p)
    squares = np.diag(scatter)
    full = squares - total * mean**2 < FAR * squares
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
