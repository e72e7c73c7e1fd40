"""Risks that are a weighted mean of a loss of each margin: the common part."""

import math
from abc import abstractmethod
from typing import ClassVar

import numpy as np

from scoreline.risks.base import Evaluation, Hessian, Reference, Risk
from scoreline.runtime.types import AnyArray, FloatArray, Scores


class SeparableRisk(Risk):
    """R(z) = sum_i s_i loss(y_i z_i) / S with S = sum s. O(n).

    `loss` names the formula in `kernels/pointwise.py`; `literal` is the same formula in NumPy.
    """

    loss: ClassVar[str]

    @property
    def ramp_scale(self) -> float:
        """Ramp width over mu: S, 0 where the loss is smooth."""
        return self.labels.total if self.smoothable else 0.0

    def evaluate(self, z: Scores, mu: float = 0.0, out: Scores | None = None, grad: bool = True) -> Evaluation:
        """Return value, gradient, hard value and plane in one read of z.

        For the smoothed hinge c = sum s beta / S exactly (eq. hinge-smooth); for smooth losses c = R(z) - <grad, z>.
        """
        total = self.labels.total
        sums = self.space.point_sums(
            self.loss, z, self.labels, width=mu * self.ramp_scale, scale=1.0 / total, out=out, grad=grad
        )
        value = sums.smooth / total
        plane = mass = math.nan
        if grad:
            mass = sums.slopes / total
            plane = mass if self.smoothable else value - self.space.dot(sums.grad, z)
        return Evaluation(value, sums.grad, sums.hard / total, plane, mass)

    def value_at_constant(self, score: float, ones: Scores) -> float:
        """Return R where all rows have the same score, from the weights of the classes alone."""
        positive, negative = self.literal(np.array([score, -score]), 0.0)[0].tolist()
        return float((self.labels.positive * positive + self.labels.negative * negative) / self.labels.total)

    def curvature(self, z: Scores) -> Scores:
        """Return s_i loss''(y_i z_i) / S, row by row."""
        if not self.curved:
            return super().curvature(z)
        return self.space.point_curvatures(self.loss, z, self.labels, 1.0 / self.labels.total)

    def hessian(self, z: Scores, mu: float = 0.0) -> Hessian | None:
        """Return the second derivatives of the loss, or of its ramp."""
        width = mu * self.ramp_scale
        if not (self.smooth or width > 0.0):
            return None
        curvatures = self.space.point_curvatures(self.loss, z, self.labels, 1.0 / self.labels.total, width)
        return Hessian(curvatures, exact=True)

    @staticmethod
    @abstractmethod
    def literal(m: FloatArray, width: float) -> tuple[FloatArray, FloatArray]:
        """Return loss and derivative at margins m, as the formula is written."""

    @classmethod
    def reference(
        cls, z: FloatArray, y: AnyArray, sample_weight: FloatArray | None = None, mu: float = 0.0
    ) -> Reference:
        """Return (R_mu, gradient, c) from the literal loss."""
        s = np.ones(len(z)) if sample_weight is None else np.asarray(sample_weight, dtype=float)
        loss, slope = cls.literal(y * z, mu * s.sum())
        value, grad = float(s @ loss / s.sum()), y * s * slope / s.sum()
        plane = float(-(s @ slope) / s.sum()) if cls.smoothable else value - float(grad @ z)
        return value, grad, plane
