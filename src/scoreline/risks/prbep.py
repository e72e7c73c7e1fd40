"""Precision-recall break-even point: the multivariate hinge of the error among the n+ highest scores."""

import math

import numpy as np

from scoreline._typing import AnyArray, FloatArray, Scores
from scoreline.risks.base import Evaluation, Hessian, Risk


class PrbepRisk(Risk):
    """R(z) = max over beta in [0,1]^n with sum_P s beta = sum_N s beta of sum_P s beta / S+ - (2/S) sum_i s_i y_i z_i beta_i.

    beta says which rows change sides, as many positives as negatives: R is the hinge over all labellings with n+ positives,
    an upper bound of 1 - PRBEP; R(0) = min(S+, S-) / S+. Its dual is a hinge with a free bias tau,
    R(z) = (2/S) min_tau sum_P s max(0, S/(2 S+) - z - tau) + sum_N s max(0, z + tau), so one selection computes it: O(n), with
    weights O(n log n). Smoothed by a ramp of width mu S/2. Adding a constant to all scores changes nothing.
    Zhang, Saha and Vishwanathan (2012), sections 2.2 and 3.1.
    """

    name = "prbep"
    smoothable = True
    shift = "invariant"

    @property
    def ramp_scale(self) -> float:
        """Ramp width over mu: S / 2."""
        return 0.5 * self.labels.total

    @property
    def prox_bound(self) -> float:
        """The paper's D, S / 2; min(S+, S-) would do."""
        return 0.5 * self.labels.total

    @property
    def looseness(self) -> float:
        """R - R_mu is at most mu min(S+, S-), in widths of the ramp 2 min(S+, S-) / S."""
        return 2.0 * min(self.labels.positive, self.labels.negative) / self.labels.total

    def evaluate(self, z: Scores, mu: float = 0.0, out: Scores | None = None, grad: bool = True) -> Evaluation:
        """Return value, gradient, hard value and plane.

        grad_i = -(2/S) y_i s_i beta_i; c = sum_P s beta / S+. The two sums of beta are made equal to the last bit that rounding
        allows, so that the plane lies below the risk.
        """
        labels = self.labels
        scale = 2.0 / labels.total
        sums = self.space.balance_sums(
            z,
            labels,
            offset=0.5 * labels.total / labels.positive,
            width=mu * self.ramp_scale,
            scale=scale,
            out=out,
            grad=grad,
        )
        plane = sums.moved / labels.positive if grad else math.nan
        mass = 2.0 * scale * sums.moved if grad else math.nan
        return Evaluation(scale * sums.smooth, sums.grad, scale * sums.hard, plane, mass)

    def hessian(self, z: Scores, mu: float = 0.0) -> Hessian | None:
        """Return the exact Hessian: (2/S) / width on the ramp, less its mean there, because the bias follows."""
        labels, width = self.labels, mu * self.ramp_scale
        if not width > 0.0:
            return None
        active = self.space.balance_curvatures(z, labels, 0.5 * labels.total / labels.positive, width)
        weight = self.space.total(active)
        if not weight > 0.0:
            return None
        scale = 2.0 / (labels.total * width)
        diagonal = self.space.combine(scale, active, 0.0, active)
        return Hessian(diagonal, ((diagonal, -1.0 / (scale * weight)),))

    @classmethod
    def reference(
        cls, z: FloatArray, y: AnyArray, sample_weight: FloatArray | None = None, mu: float = 0.0
    ) -> tuple[float, FloatArray, float]:
        """Return (R_mu, gradient, c) by the paper's formula: sorted classes for mu = 0, bisection of the bias otherwise.

        In extended precision, because the bias is needed to a small part of a narrow ramp.
        """
        s = np.ones(len(z)) if sample_weight is None else np.asarray(sample_weight, dtype=float)
        positive = np.asarray(y) > 0
        total, plus = s.sum(), s[positive].sum()
        t0 = np.where(positive, total / (2.0 * plus) - z, z).astype(np.longdouble)
        width = np.longdouble(0.5 * mu * total)

        if mu > 0.0:
            low, high = -np.abs(t0).max() - width - 1.0, np.abs(t0).max() + width + 1.0
            for _ in range(300):
                tau = 0.5 * (low + high)
                t = t0 - np.where(positive, tau, -tau)
                beta = np.clip(t / width, 0.0, 1.0)
                if (s * beta)[positive].sum() > (s * beta)[~positive].sum():
                    low = tau
                else:
                    high = tau
        else:
            t, beta = t0, _greedy(t0.astype(np.float64), s, positive)
        # The bias cancels out of sum s beta t, as the sums of beta are equal; with it, terms stay small.
        value = 2.0 / total * float((s * beta * (t - 0.5 * width * beta)).sum())
        grad = -2.0 / total * np.where(positive, 1.0, -1.0) * s * beta
        return value, grad.astype(np.float64), float((s * beta)[positive].sum() / plus)


def _greedy(t0: FloatArray, s: FloatArray, positive: AnyArray) -> FloatArray:
    """Return beta by moving the worst positives and negatives to the other side while a pair of them gains."""
    beta = np.zeros(len(t0))
    above = [i for i in np.argsort(-t0) if positive[i] and s[i] > 0.0]
    below = [i for i in np.argsort(-t0) if not positive[i] and s[i] > 0.0]
    left = s.copy()
    i = j = 0
    while i < len(above) and j < len(below) and t0[above[i]] + t0[below[j]] > 0.0:
        moved = min(left[above[i]], left[below[j]])
        for row in (above[i], below[j]):
            left[row] -= moved
        i, j = i + (left[above[i]] <= 0.0), j + (left[below[j]] <= 0.0)
    moved_rows = s > 0.0
    beta[moved_rows] = 1.0 - left[moved_rows] / s[moved_rows]
    return beta
