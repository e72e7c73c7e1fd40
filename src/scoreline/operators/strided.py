"""Arrays that kernels cannot walk as they lie in memory."""

import numpy as np

from scoreline.operators.blocks import BlockOperator
from scoreline.runtime.types import AnyArray, BoundsArray


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
        """Return (row, column) of a NaN or an infinity, or None, and learn `largest`; one read of X."""
        largest = np.zeros(self.shape[1])
        for start, _, block in self._dense_blocks():
            place = block.inspect()
            if place is not None:
                return start + place[0], place[1]
            largest = np.maximum(largest, np.asarray(block.largest))
        self.largest = largest
        return None
