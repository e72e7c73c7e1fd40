"""Logistic loss: log-loss of a linear model."""

import math

import numpy as np

from scoreline.risks.separable import SeparableRisk
from scoreline.runtime.types import FloatArray


class LogisticRisk(SeparableRisk):
    """R(z) = sum_i s_i log(1 + exp(-y_i z_i)) / S (eq. logistic). O(n).

    scikit-learn's LogisticRegression minimises the same with C = 1 / (n alpha).
    """

    name = "logistic"
    at_zero = math.log(2.0)
    loss = "logistic"
    smooth = True
    curved = True

    def best_constant(self) -> float:
        """Return the log-odds of the classes, log(S+ / S-)."""
        return float(np.log(self.labels.positive) - np.log(self.labels.negative))

    @staticmethod
    def literal(m: FloatArray, width: float) -> tuple[FloatArray, FloatArray]:
        """Return log(1 + exp(-m)) and -1 / (1 + exp(m))."""
        return np.logaddexp(0.0, -m), -np.exp(-np.logaddexp(0.0, m))
