"""Hinge loss: the support vector machine's bound of the error."""

import numpy as np

from scoreline._typing import FloatArray
from scoreline.risks.separable import SeparableRisk


class HingeRisk(SeparableRisk):
    """R(z) = sum_i s_i max(0, 1 - y_i z_i) / S; smoothed by a ramp of width mu S (Huber hinge). O(n)."""

    name = "hinge"
    loss = "hinge"
    smoothable = True

    @staticmethod
    def literal(m: FloatArray, width: float) -> tuple[FloatArray, FloatArray]:
        """Return max over beta in [0, 1] of beta (1 - m) - width beta^2 / 2, and -beta."""
        t = 1.0 - m
        beta = np.clip(t / width, 0.0, 1.0) if width > 0.0 else (t > 0.0).astype(float)
        return beta * t - 0.5 * width * beta**2, -beta
