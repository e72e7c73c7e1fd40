"""Statistics of columns from partial sums, merged as Chan, Golub and LeVeque (1983) do."""

from typing import NamedTuple

import numpy as np

from scoreline.runtime.types import FloatArray, IntArray


class ColumnStatistics(NamedTuple):
    """One value per column: total weight, mean, variance (divided by the weight) and largest magnitude."""

    weight: FloatArray
    mean: FloatArray
    variance: FloatArray
    max_abs: FloatArray


class ColumnSums:
    """Arrays for `kernels/columns.py`: one line of sums per chunk, and their merging.

    Merging a part (weight b, mean m_b, squares M_b) into (a, m_a, M_a): with d = m_b - m_a and t = a + b,
    mean = m_a + d b / t and M = M_a + M_b + d^2 a b / t. Exact for any order of magnitude of the means.
    """

    def __init__(
        self, counts: FloatArray, shift: FloatArray, sums: FloatArray, squares: FloatArray, largest: FloatArray
    ):
        self.counts, self.shift, self.sums, self.squares, self.largest = counts, shift, sums, squares, largest

    @classmethod
    def zeros(cls, chunks: int, p: int) -> "ColumnSums":
        """Return five arrays of zeros."""
        return cls(*(np.zeros((chunks, p)) for _ in range(5)))

    @classmethod
    def of_table(cls, table: FloatArray) -> "ColumnSums":
        """Return the sums of a table of chunks by columns by five."""
        return cls(*np.moveaxis(table, 2, 0))

    def arrays(self) -> tuple[FloatArray, ...]:
        """Return the arrays in the order of the kernels' arguments."""
        return self.counts, self.shift, self.sums, self.squares, self.largest

    def parts(self) -> list[ColumnStatistics]:
        """Return the statistics of each chunk."""
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            means = np.where(self.counts > 0, self.shift + self.sums / self.counts, 0.0)
            # In this order a product that is taken off does not overflow before the squares do.
            squares = np.where(self.counts > 0, self.squares - self.sums * (self.sums / self.counts), 0.0)
            variances = np.where(self.counts > 0, np.maximum(squares, 0.0) / self.counts, 0.0)
        return [ColumnStatistics(*part) for part in zip(self.counts, means, variances, self.largest, strict=True)]


def merge(parts: list[ColumnStatistics]) -> ColumnStatistics:
    """Return the statistics of all parts together, merged in the given order."""
    weight, mean, variance, largest = (array.copy() for array in parts[0])
    squares = variance * weight
    for part in parts[1:]:
        total = weight + part.weight
        share = np.divide(part.weight, total, out=np.zeros_like(total), where=total > 0)
        distance = part.mean - mean
        squares += part.variance * part.weight + distance * (weight * share) * distance  # 0 where a part has no weight
        mean += distance * share
        weight = total
        np.maximum(largest, part.max_abs, out=largest)
    variance = np.divide(squares, weight, out=np.zeros_like(weight), where=weight > 0)
    return ColumnStatistics(weight, mean, variance, largest)


def with_zeros(stored: ColumnStatistics, entries: IntArray, weight: FloatArray | None, n: int) -> ColumnStatistics:
    """Return the statistics of sparse columns of n rows, of which only the stored `entries` were seen.

    Whether anything is missing is decided by counting rows: the difference of two sums of weights would leave rounding,
    which a column of mean 1e8 turns into variance.
    """
    rows, total = (n, float(n)) if weight is None else (int(np.count_nonzero(weight)), float(weight.sum()))
    missing = np.where(entries < rows, np.maximum(total - stored.weight, 0.0), 0.0)
    zeros = np.zeros_like(missing)
    return merge([stored, ColumnStatistics(missing, zeros, zeros, zeros)])
