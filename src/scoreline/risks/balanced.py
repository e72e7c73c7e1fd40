"""Hinges with a free bias that balances the classes: the common part."""

import math
from abc import abstractmethod
from typing import Any

import numpy as np

from scoreline.risks.base import Evaluation, Hessian, Reference, Risk, check_classes, checked_labels
from scoreline.runtime.checks import check_number
from scoreline.runtime.types import AnyArray, FloatArray, Scores
from scoreline.scores.host import HostSpace


class BalancedRisk(Risk):
    """R(z) = scale min_tau [sum_P s max(0, offset - z - tau) + sum_N s max(0, z + tau)] (eq. prbep-dual).

    That is the largest value over beta in [0,1]^n with sum_P s beta = sum_N s beta of scale (offset sum_P s beta - sum_i s_i
    y_i z_i beta_i). One selection computes it: O(n), with weights O(n log n). Smoothed by a ramp of width mu / scale. Adding a
    constant to all scores changes nothing.
    """

    smoothable = True
    shift = "invariant"

    @staticmethod
    @abstractmethod
    def shape(positive: float, total: float) -> tuple[float, float]:
        """Return (offset, scale), given the weight of positives and of all rows."""

    @property
    def offset(self) -> float:
        """Sum of the two margins."""
        return self.shape(self.labels.positive, self.labels.total)[0]

    @property
    def scale(self) -> float:
        """Factor of the sum of hinges."""
        return self.shape(self.labels.positive, self.labels.total)[1]

    @property
    def ramp_scale(self) -> float:
        """Ramp width over mu."""
        return 1.0 / self.scale

    @property
    def looseness(self) -> float:
        """R - R_mu is at most mu min(S+, S-), in widths of the ramp scale * min(S+, S-) (eq. prbep-smooth)."""
        return self.scale * min(self.labels.positive, self.labels.negative)

    def evaluate(self, z: Scores, mu: float = 0.0, out: Scores | None = None, grad: bool = True) -> Evaluation:
        """Return value, gradient, hard value and plane.

        grad_i = -scale y_i s_i beta_i; c = scale * offset * sum_P s beta (eq. prbep-gradient). The two sums of beta are made
        equal up to rounding, so that the plane lies below the risk.
        """
        offset, scale = self.shape(self.labels.positive, self.labels.total)
        sums = self.space.balance_sums(z, self.labels, offset, mu * self.ramp_scale, scale, out, grad)
        plane = scale * offset * sums.moved if grad else math.nan
        mass = 2.0 * scale * sums.moved if grad else math.nan
        return Evaluation(scale * sums.smooth, sums.grad, scale * sums.hard, plane, mass)

    def hessian(self, z: Scores, mu: float = 0.0) -> Hessian | None:
        """Return the exact Hessian: scale / width on the ramp, minus its mean there, because the bias moves with the scores."""
        width = mu * self.ramp_scale
        if not width > 0.0:
            return None
        active = self.space.balance_curvatures(z, self.labels, self.offset, width)
        weight = self.space.total(active)
        if not weight > 0.0:
            return None
        factor = self.scale / width
        if not factor * weight > 0.0:  # the ramp is so wide that the Hessian underflows
            return None
        diagonal = self.space.combine(factor, active, 0.0, active)
        return Hessian(diagonal, ((diagonal, -1.0 / (factor * weight)),), exact=True)

    @classmethod
    def reference(
        cls, z: FloatArray, y: AnyArray, sample_weight: FloatArray | None = None, mu: float = 0.0
    ) -> Reference:
        """Return (R_mu, gradient, c) by the definition: sorted classes for mu = 0, bisection of the bias otherwise.

        It uses extended precision, because the bias must be accurate compared with a narrow ramp.
        """
        s = np.ones(len(z)) if sample_weight is None else np.asarray(sample_weight, dtype=float)
        positive = np.asarray(y) > 0
        offset, scale = cls.shape(float(s[positive].sum()), float(s.sum()))
        t0 = np.where(positive, offset - z, z).astype(np.longdouble)
        width = np.longdouble(mu / scale)
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
        # The bias cancels out of sum s beta t, because the sums of beta are equal, but it keeps the terms small.
        value = scale * float((s * beta * (t - 0.5 * width * beta)).sum())
        grad = -scale * np.where(positive, 1.0, -1.0) * s * beta
        return value, grad.astype(np.float64), float(scale * offset * (s * beta)[positive].sum())


def _greedy(t0: FloatArray, s: FloatArray, positive: AnyArray) -> FloatArray:
    """Return beta by moving pairs of the worst positives and negatives to the other side while that increases the value."""
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


def project_balanced(v: Any, y: Any, weight: Any = None, high: float = 1.0) -> FloatArray:
    """Return the point nearest to v of {0 <= x <= high, sum_P s x = sum_N s x}, distances weighted by s.

    x = clip(v - nu y, 0, high) with the nu that balances the two sums (eq. balanced-projection): a selection finds the
    piece at the scale of v, Newton's method on a piecewise linear function the exact nu. Expected O(n) without weights,
    O(n log n) with.

    Parameters
    ----------
    v : array of n numbers
        The point to project.
    y : array of n labels
        +1 and -1, or 1 and 0, or booleans; both classes must occur.
    weight : array of n weights, optional
        s in the formula; 1 for all by default.
    high : float
        Upper end of the box.

    Returns
    -------
    ndarray of n numbers
        The projection.
    """
    check_number("high", high, above=0)
    point, space = np.asarray(v, dtype=np.float64), HostSpace()
    labels = check_classes(space.labels(*checked_labels(y, weight)))
    if point.shape != (len(labels.sign),) or not np.isfinite(point).all():
        raise ValueError(f"v must be {len(labels.sign)} finite numbers, one for each label, got shape {point.shape}")
    # Positives need v - nu, negatives v + nu: the balance of -y v without a margin and with a ramp as wide as the box.
    sums = space.balance_sums(-labels.sign * point, labels, 0.0, high, 1.0)
    assert sums.grad is not None
    return np.asarray(-high * labels.sign * space.per_weight(sums.grad, labels)) + 0.0  # no minus zero
