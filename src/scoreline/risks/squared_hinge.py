"""Squared hinge loss: the smooth support vector machine."""

import numpy as np

from scoreline.risks.separable import SeparableRisk
from scoreline.runtime.types import FloatArray


class SquaredHingeRisk(SeparableRisk):
    """R(z) = sum_i s_i max(0, 1 - y_i z_i)^2 / (2 S) (eq. squared-hinge). O(n).

    scikit-learn's LinearSVC(loss="squared_hinge") minimises the same with C = 1 / (2 n alpha).
    """

    name = "squared_hinge"
    at_zero = 0.5
    loss = "squared_hinge"
    smooth = True
    curved = True

    def best_constant(self) -> float:
        """Return (S+ - S-) / S."""
        return (self.labels.positive - self.labels.negative) / self.labels.total

    @staticmethod
    def literal(m: FloatArray, width: float) -> tuple[FloatArray, FloatArray]:
        """Return 1/2 max(0, 1 - m)^2 and -max(0, 1 - m)."""
        t = np.maximum(0.0, 1.0 - m)
        return 0.5 * t**2, -t
