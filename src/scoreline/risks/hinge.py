"""Hinge loss: the convex surrogate of the support vector machine."""

import numpy as np

from scoreline.risks.base import Evaluation
from scoreline.risks.separable import SeparableRisk
from scoreline.risks.ties import check_ties, smallest_change_of_rows
from scoreline.runtime.types import FloatArray, Scores


class HingeRisk(SeparableRisk):
    """R(z) = sum_i s_i max(0, 1 - y_i z_i) / S (eq. hinge); smoothed by a ramp of width mu S (Huber hinge). O(n)."""

    name = "hinge"
    at_zero = 1.0
    loss = "hinge"
    smoothable = True

    def __init__(self, ties: str = "any"):
        self.ties = check_ties(ties)

    def evaluate(self, z: Scores, mu: float = 0.0, out: Scores | None = None, grad: bool = True) -> Evaluation:
        """Return value, gradient, hard value and plane (`SeparableRisk`), at kinks by the tie rule (`scoreline.risks.ties`)."""
        if self.ties == "smallest" and grad and mu == 0.0:
            return smallest_change_of_rows(self, z, out)
        return super().evaluate(z, mu, out, grad)

    @staticmethod
    def literal(m: FloatArray, width: float) -> tuple[FloatArray, FloatArray]:
        """Return max over beta in [0, 1] of beta (1 - m) - width beta^2 / 2, and -beta."""
        t = 1.0 - m
        beta = np.clip(t / width, 0.0, 1.0) if width > 0.0 else (t > 0.0).astype(float)
        return beta * t - 0.5 * width * beta**2, -beta
