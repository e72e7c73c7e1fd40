"""Matrices whose rows are made block by block: odd memory layouts, computed features."""

from abc import abstractmethod
from collections.abc import Iterator

import numpy as np

from scoreline.operators.base import Operator
from scoreline.operators.block_sums import block_spans
from scoreline.operators.dense import DenseOperator
from scoreline.operators.statistics import ColumnStatistics, merge
from scoreline.runtime.types import AnyArray, BoundsArray, FloatArray


class BlockOperator(Operator):
    """An operator that only knows how to make a dense block of its rows; at most one block is in memory.

    A subclass writes `_block(start, stop)`, returning float32 or float64 of shape (stop - start, p), and gains both
    products, products restricted to rows, and column statistics.
    """

    capabilities = frozenset({"row_blocks", "rows", "statistics"})

    @abstractmethod
    def _block(self, start: int, stop: int) -> AnyArray: ...

    @property
    def cheap_rows(self) -> bool:
        """Whether the subclass writes `_listed`, so that it makes some rows at once."""
        return type(self)._listed is not Operator._listed

    def _matvec(self, w: FloatArray) -> FloatArray:
        out = np.empty(self.shape[0])
        for start, stop, operator in self._dense_blocks():
            out[start:stop] = operator._matvec(w)
        return out

    def _rmatvec(self, u: FloatArray) -> FloatArray:
        out = np.zeros(self.shape[1])
        for start, stop, operator in self._dense_blocks():
            if u[start:stop].any():
                out += operator._rmatvec(u[start:stop])
        return out

    def _matvec_rows(self, w: FloatArray, lines: BoundsArray) -> FloatArray:
        parts = [dense._matvec(w) for _, _, dense in self._dense_rows(lines)]
        return np.concatenate(parts) if parts else np.empty(0)

    def _rmatvec_rows(self, u: FloatArray, lines: BoundsArray) -> FloatArray:
        out = np.zeros(self.shape[1])
        for start, stop, dense in self._dense_rows(lines):
            out += dense._rmatvec(u[start:stop])
        return out

    def _column_statistics(self, weight: FloatArray | None) -> ColumnStatistics:
        return merge(
            [
                dense._column_statistics(None if weight is None else weight[start:stop])
                for start, stop, dense in self._dense_blocks()
            ]
        )

    def _dense_blocks(self) -> Iterator[tuple[int, int, DenseOperator]]:
        for start, stop in block_spans(*self.shape):
            yield start, stop, DenseOperator(np.ascontiguousarray(self._block(start, stop)))

    def _dense_rows(self, lines: BoundsArray) -> Iterator[tuple[int, int, DenseOperator]]:
        for start, stop in block_spans(len(lines), self.shape[1]):
            yield start, stop, DenseOperator(np.ascontiguousarray(self._listed(lines[start:stop])))


class StridedOperator(BlockOperator):
    """An array that the kernels cannot walk (both axes strided, reversed, foreign byte order): block by block."""

    def __init__(self, X: AnyArray):
        super().__init__(X.shape)
        self._X = X
        self._dtype = np.float32 if X.dtype.itemsize == 4 else np.float64

    def _block(self, start: int, stop: int) -> AnyArray:
        return np.ascontiguousarray(self._X[start:stop], dtype=self._dtype)

    def _listed(self, lines: BoundsArray) -> AnyArray:
        return np.ascontiguousarray(self._X[lines], dtype=self._dtype)

    def inspect(self) -> tuple[int, int] | None:
        largest = np.zeros(self.shape[1])
        for start, _, block in self._dense_blocks():
            place = block.inspect()
            if place is not None:
                return start + place[0], place[1]
            largest = np.maximum(largest, np.asarray(block.largest))
        self.largest = largest
        return None
