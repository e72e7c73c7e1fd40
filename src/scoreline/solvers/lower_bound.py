"""The best lower bound on min J that planes below the risk give."""

import numpy as np

from scoreline import kernels
from scoreline._typing import FloatArray


class LowerBound:
    """max over mixtures of planes of  c - |v|^2 / (2 alpha)  <=  min J.

    A plane (v, c) satisfies R(Xw) >= c + <v, w> for all w, so J(w) >= min_w alpha/2 |w|^2 + <v, w> + c, which is the
    bound above. Mixtures of planes are planes; (0, 0) is one because risks are not negative. Three are mixed at a time,
    exactly: nothing, the best mixture so far, and the new plane. The best mixture is kept, so memory is one vector.

    Attributes
    ----------
    value : float
        The best bound so far, with the rounding allowance taken off.
    slope, constant, allowance : ndarray, float, float
        The mixture (v, c) that `value` belongs to, and the allowance that was taken off.
    """

    def __init__(self, p: int, alpha: float):
        self.alpha = alpha
        self.value = 0.0
        self.slope = np.zeros(p)
        self.constant = 0.0
        self.allowance = 0.0

    def add(self, slope: FloatArray, constant: float, allowance: float) -> float:
        """Mix in the plane (slope, constant), whose bound is uncertain by `allowance`, and return the best bound."""
        dot = kernels.vectors.dot
        own, cross, new = dot(self.slope, self.slope), dot(self.slope, slope), dot(slope, slope)
        if not np.isfinite([own, cross, new, constant, allowance]).all():
            return self.value  # squares beyond the range of floats prove nothing
        gram = np.array([[own, cross], [cross, new]])
        constants, allowances = np.array([self.constant, constant]), np.array([self.allowance, allowance])
        with np.errstate(over="ignore", invalid="ignore"):
            t = _best_mixture(gram, constants, self.alpha)
            mixed = float(t @ allowances)
            bound = float(t @ constants - t @ gram @ t / (2.0 * self.alpha)) - mixed
        if bound > self.value:
            self.value = bound
            self.slope = t[0] * self.slope + t[1] * slope
            self.constant, self.allowance = float(t @ constants), mixed
        return self.value


def _best_mixture(gram: FloatArray, constants: FloatArray, alpha: float) -> FloatArray:
    """Return t >= 0 with t_0 + t_1 <= 1 that maximises <c, t> - t'Gt / (2 alpha), by looking at every face."""

    def value(t: FloatArray) -> float:
        return float(t @ constants - t @ gram @ t / (2.0 * alpha))

    candidates: list[FloatArray] = [np.zeros(2)]
    for k in (0, 1):  # one plane, scaled
        scale = 1.0 if gram[k, k] <= 0.0 else min(1.0, max(0.0, alpha * constants[k] / gram[k, k]))
        candidates.append(np.eye(2)[k] * scale)
    # Both planes, weights adding to 1: along t = (1 - x, x).
    spread = gram[0, 0] - 2.0 * gram[0, 1] + gram[1, 1]
    if spread > 0.0:
        x = (alpha * (constants[1] - constants[0]) + gram[0, 0] - gram[0, 1]) / spread
        x = min(1.0, max(0.0, x))
        candidates.append(np.array([1.0 - x, x]))
    # Both planes, weights adding to less.
    determinant = gram[0, 0] * gram[1, 1] - gram[0, 1] ** 2
    if determinant > 1e-14 * gram[0, 0] * gram[1, 1]:
        t = alpha * np.linalg.solve(gram, constants)
        if t.min() >= 0.0 and t.sum() <= 1.0:
            candidates.append(np.asarray(t, dtype=np.float64))
    return max(candidates, key=value)
