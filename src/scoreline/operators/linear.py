"""Any scipy.sparse.linalg.LinearOperator: features that exist only as a product."""

from typing import Any

import numpy as np

from scoreline.operators.base import Operator
from scoreline.runtime.types import FloatArray


class LinearMapOperator(Operator):
    """A SciPy LinearOperator with `matvec` and `rmatvec`; nothing beyond the two products."""

    def __init__(self, linear: Any):
        super().__init__(linear.shape)
        self._linear = linear

    def _matvec(self, w: FloatArray) -> FloatArray:
        return np.ascontiguousarray(self._linear.matvec(w), dtype=np.float64).reshape(-1)

    def _rmatvec(self, u: FloatArray) -> FloatArray:
        return np.ascontiguousarray(self._linear.rmatvec(u), dtype=np.float64).reshape(-1)
