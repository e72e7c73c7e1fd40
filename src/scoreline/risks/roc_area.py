"""ROC area: pairwise hinge over all (positive, negative) pairs, an upper bound of 1 - AUC."""

import math

import numpy as np

from scoreline.risks.base import Evaluation, Hessian, Reference, Risk
from scoreline.risks.ties import check_ties, smallest_change_of_pairs
from scoreline.runtime.types import AnyArray, FloatArray, Scores

MIN_RAMP_WIDTH = 1e-100  # weights divided by the width of a narrower ramp would overflow


def pair_hessian(risk: Risk, z: Scores, width: float, scale: float, margin: float = 1.0) -> Hessian | None:
    """Return an approximate Hessian of a sum over pairs with second derivative `scale` for 0 < t < width (eq. pair-hessian).

    The Hessian is D - A, where A_ij is the weight of the pair (i, j) and D has its row sums. The approximation replaces the
    weight of a pair by D_i D_j / T, where T is the weight of all pairs on a ramp. A then has rank two, and D - A consists of
    the covariance within either class and the difference of their means. It is positive semidefinite and costs one pass.
    """
    space, labels = risk.space, risk.labels
    diagonal = space.pair_curvatures(z, labels, width, margin)
    total = 0.5 * space.total(diagonal)
    if not total > 0.0:
        return None
    if not scale * total > 0.0:  # the ramp is so wide that the Hessian underflows
        return None
    difference = space.combine(scale, space.select(diagonal, labels, 1), -scale, space.select(diagonal, labels, -1))
    diagonal = space.combine(scale, diagonal, 0.0, diagonal)
    # p q' + q p' = ((p + q)(p + q)' - (p - q)(p - q)') / 2
    half = 0.5 / (scale * total)
    return Hessian(diagonal, ((diagonal, -half), (difference, half)))


def ramp_width(risk: Risk, mu: float) -> float:
    """Return mu * ramp_scale, or 0 (no ramp) below 1e-100, where R_mu and R round to the same number.

    Weights lie between 1e-130 and 1e30 (`scaled_to_safe_range`, `check_classes`), so weights divided by or multiplied
    with other widths stay in the range of floats.
    """
    width = mu * risk.ramp_scale
    return width if width >= MIN_RAMP_WIDTH else 0.0


class RocAreaRisk(Risk):
    """R(z) = sum_ij s_i s_j max(0, 1 - z_i + z_j) / (S+ S-), i positive, j negative. O(n log n), ties exact.

    R(0) = 1 and R is at least 1 - AUC (eq. roc-area). Smoothed by a ramp of width mu S+ S- on every pair. Adding a
    constant to all scores changes nothing, so there is no intercept to train. Zhang, Saha and Vishwanathan (2012),
    section 2.3.
    """

    name = "roc_area"
    at_zero = 1.0
    smoothable = True
    shift = "invariant"

    def __init__(self, ties: str = "any"):
        self.ties = check_ties(ties)

    @property
    def ramp_scale(self) -> float:
        """Ramp width over mu: the weight of all pairs, S+ S- (eq. roc-smooth)."""
        return self.labels.positive * self.labels.negative

    def evaluate(self, z: Scores, mu: float = 0.0, out: Scores | None = None, grad: bool = True) -> Evaluation:
        """Return value, gradient, hard value and plane, by one sort of the smaller class and one look-up per row.

        grad_i = -y_i s_i sum_j s_j beta_ij / (S+ S-), beta = clip(t / width, 0, 1);
        c = sum_ij s_i s_j beta_ij / (S+ S-) (eq. roc-gradient).
        """
        if self.ties == "smallest" and grad and mu == 0.0:
            return smallest_change_of_pairs(self, z, out)
        pairs = self.ramp_scale
        width = ramp_width(self, mu)
        sums = self.space.pair_sums(z, self.labels, width, scale=1.0 / pairs, out=out, grad=grad)
        plane = sums.ramps / pairs if grad else math.nan
        return Evaluation(sums.smooth / pairs, sums.grad, sums.hard / pairs, plane, 2.0 * plane)

    def hessian(self, z: Scores, mu: float = 0.0) -> Hessian | None:
        """Return the Hessian with its pairs taken as independent within the classes (`pair_hessian`)."""
        width = ramp_width(self, mu)
        return pair_hessian(self, z, width, 1.0 / (self.ramp_scale * width)) if width > 0.0 else None

    @classmethod
    def reference(
        cls, z: FloatArray, y: AnyArray, sample_weight: FloatArray | None = None, mu: float = 0.0
    ) -> Reference:
        """Return (R_mu, gradient, c) by visiting all pairs: O(n+ n-)."""
        s = np.ones(len(z)) if sample_weight is None else np.asarray(sample_weight, dtype=float)
        positive = np.asarray(y) > 0
        pair_weight = np.outer(s[positive], s[~positive])
        m = pair_weight.sum()
        shifted = z[positive] - 1.0
        shifted = np.where(shifted == z[positive], np.nextafter(z[positive], -np.inf), shifted)  # lost in rounding
        t = z[~positive][None, :] - shifted[:, None]
        beta = np.clip(t / (mu * m), 0.0, 1.0) if mu > 0.0 else (t > 0.0).astype(float)
        value = float((pair_weight * (beta * t - 0.5 * mu * m * beta**2)).sum() / m)
        grad = np.empty(len(z))
        grad[positive] = -(pair_weight * beta).sum(axis=1) / m
        grad[~positive] = (pair_weight * beta).sum(axis=0) / m
        return value, grad, float((pair_weight * beta).sum() / m)
