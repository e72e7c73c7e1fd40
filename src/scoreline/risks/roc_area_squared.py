"""ROC area with the squared hinge over pairs: RankSVM's smooth objective."""

import math

import numpy as np

from scoreline.risks.base import Evaluation, Hessian, Reference, Risk
from scoreline.risks.roc_area import pair_hessian
from scoreline.runtime.types import AnyArray, FloatArray, Scores


class SquaredRocAreaRisk(Risk):
    """R(z) = sum_ij s_i s_j max(0, 1 - z_i + z_j)^2 / (2 S+ S-), i positive, j negative. O(n log n).

    Smooth, so it needs no mu (eq. roc-area-squared); R(0) = 1/2. RankSVM's 1/2 |w|^2 + C sum_ij max(0, t_ij)^2 is the
    same with C = 1/(2 alpha n+ n-). With a ramp that is wider than every t, the smoothed ROC area becomes t^2 / (2 width), so
    the same spline computes it.
    """

    name = "roc_area_squared"
    at_zero = 0.5
    smooth = True
    shift = "invariant"

    def evaluate(self, z: Scores, mu: float = 0.0, out: Scores | None = None, grad: bool = True) -> Evaluation:
        """Return value, gradient and plane: one sort of the smaller class, one look-up per row."""
        pairs = self.labels.positive * self.labels.negative
        width = self._all(z)
        sums = self.space.pair_sums(z, self.labels, width=width, scale=width / pairs, out=out, grad=grad)
        value = width / pairs * sums.smooth
        plane = mass = math.nan
        if grad:
            plane, mass = value - self.space.dot(sums.grad, z), 2.0 * (width / pairs) * sums.ramps
        return Evaluation(value, sums.grad, value, plane, mass)

    def hessian(self, z: Scores, mu: float = 0.0) -> Hessian | None:
        """Return the Hessian with its pairs taken as independent within the classes (`pair_hessian`)."""
        return pair_hessian(self, z, self._all(z), 1.0 / (self.labels.positive * self.labels.negative))

    def _all(self, z: Scores) -> float:
        """Return a width that exceeds every t, so that all pairs are on the ramp."""
        return 2.0 + 2.0 * self.space.span(z, self.labels)

    @classmethod
    def reference(
        cls, z: FloatArray, y: AnyArray, sample_weight: FloatArray | None = None, mu: float = 0.0
    ) -> Reference:
        """Return (R, gradient, c) by visiting all pairs: O(n+ n-)."""
        s = np.ones(len(z)) if sample_weight is None else np.asarray(sample_weight, dtype=float)
        positive = np.asarray(y) > 0
        weight = np.outer(s[positive], s[~positive])
        t = np.maximum(0.0, 1.0 - (z[positive][:, None] - z[~positive][None, :]))
        value = float((weight * t**2).sum() / (2.0 * weight.sum()))
        grad = np.empty(len(z))
        grad[positive] = -(weight * t).sum(axis=1) / weight.sum()
        grad[~positive] = (weight * t).sum(axis=0) / weight.sum()
        return value, grad, value - float(grad @ z)
