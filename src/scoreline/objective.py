"""The objective J(w) = alpha/2 |w|^2 + R(Xw) (eq. objective): the only place where X, labels and the penalty meet."""

import math
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize_scalar

from scoreline import kernels
from scoreline.operators import as_operator
from scoreline.operators.linear_map import LinearMap
from scoreline.risks.base import Evaluation, Risk
from scoreline.risks.separable import SeparableRisk
from scoreline.runtime import parallel
from scoreline.runtime.types import FloatArray, Scores

# Roundings of the scores that a ramp must be wide: shares of a pair are then off by 1/4096 at its very end.
LEAST_RAMP_ROUNDINGS = 4096.0
NEARLY_CONSTANT_SPAN = 1e-3  # of scores, below which a fit may be no better than a constant score


@dataclass
class Point:
    """A point of the search: w, its scores z = Xw, and the evaluation of the risk there."""

    w: FloatArray
    z: Scores
    mu: float
    risk: Evaluation
    penalty: float  # alpha/2 |w|^2

    @property
    def value(self) -> float:
        """J_mu(w), what the search minimises (J itself for mu = 0 or a smooth risk)."""
        return self.penalty + self.risk.value

    @property
    def objective(self) -> float:
        """J(w) without smoothing."""
        return self.penalty + self.risk.hard


class Objective:
    """J(w) = alpha/2 |w|^2 + R(Xw), with explicit scores: nothing is computed twice behind the caller's back.

    A pass over X happens in `scores` (z = Xw), `slope` (X'u), `line` (z_d = Xd) and `compact`, nowhere else.

    Parameters
    ----------
    operator : Operator
        X, with the constant feature and the scaling already wrapped around it.
    risk : Risk
        Prepared with the labels of the rows of X.
    alpha : float
        Strength of the penalty.
    """

    def __init__(self, operator: LinearMap, risk: Risk, alpha: float):
        self.operator = operator
        self.risk = risk
        self.alpha = float(alpha)
        self.space = risk.space
        self._known: tuple[FloatArray, Scores] | None = None

    def with_alpha(self, alpha: float, w: FloatArray | None = None, z: Scores = None) -> "Objective":
        """Return the objective with another penalty; where scores z = Xw are known, a run that starts at w needs no pass."""
        other = Objective(self.operator, self.risk, alpha)
        other._known = None if w is None or z is None else (w, z)
        return other

    def compact(self) -> "Objective":
        """Return the same problem with n features in place of p > n, for small n; one pass and a dense copy of X.

        Rows with the same inner products have the same scores at the minimum; only w is another.
        """
        blocks = [block.data for block in self.operator.row_blocks()]
        rows = np.concatenate([np.asarray(block.toarray() if hasattr(block, "toarray") else block) for block in blocks])
        with parallel.one_blas_thread():
            triangle = np.asarray(np.linalg.qr(rows.astype(np.float64).T, mode="r"))
        return Objective(as_operator(np.ascontiguousarray(triangle.T)), self.risk, self.alpha)

    @property
    def n_features(self) -> int:
        """Length of w."""
        return self.operator.shape[1]

    @property
    def n_passes(self) -> float:
        """Passes over X so far."""
        return self.operator.n_passes

    def scores(self, w: FloatArray) -> Scores:
        """Return z = Xw (eq. scores); one pass."""
        return self.operator.matvec(w)

    def scores_at_start(self, w: FloatArray) -> Scores:
        """Return z = Xw; no pass at w = 0, where runs usually start, or where they are known."""
        if self._known is not None and np.array_equal(w, self._known[0]):
            return self._known[1].copy()
        return self.scores(w) if w.any() else self.space.zeros(self.risk.labels)

    def at(self, w: FloatArray, z: Scores, mu: float = 0.0, out: Scores | None = None, grad: bool = True) -> Point:
        """Return the point w with known scores z; no pass."""
        penalty = 0.5 * self.alpha * kernels.vectors.dot(w, w)
        return Point(w, z, mu, self.risk.evaluate(z, mu, out, grad), penalty)

    def slope(self, point: Point) -> FloatArray:
        """Return v = X' dR/dz, the risk's part of the gradient in w (the rest is alpha w); one pass."""
        return self.operator.rmatvec(point.risk.grad)

    def slack(self, point: Point) -> float:
        """Return how far the plane at this point lies below the risk there, the part of the gap caused by smoothing."""
        # (eq. slack)
        return float(point.risk.hard - point.risk.plane - self.space.dot(point.risk.grad, point.z))

    def value(self, w: FloatArray) -> float:
        """Return J(w); one pass."""
        return self.at(w, self.scores(w), grad=False).objective

    def value_grad(self, w: FloatArray, mu: float = 0.0) -> tuple[float, FloatArray]:
        """Return J_mu(w) and its gradient (a subgradient for mu = 0); two passes."""
        point = self.at(w, self.scores(w), mu)
        return point.value, self.alpha * w + self.slope(point)

    def best_constant(self, z: Scores) -> tuple[FloatArray, float]:
        """Return the best coefficients among those that give all rows one score, and J there; z are the scores of a fit.

        Risks that do not change with a shift of all scores, and fits without an intercept, have w = 0 only. No pass for
        risks that are a mean over rows, one for the others, and these are looked at only where z is nearly constant.
        """
        zero, at_zero = np.zeros(self.n_features), self.risk.value_at_zero()
        unit = self.operator.shifted(zero, 1.0)
        separable, span = isinstance(self.risk, SeparableRisk), self.space.span(z, self.risk.labels)
        if self.risk.shift != "needed" or not unit.any() or not (separable or span <= NEARLY_CONSTANT_SPAN):
            return zero, at_zero
        half_square = 0.5 * self.alpha * kernels.vectors.dot(unit, unit)
        ones = None if separable else self.scores(unit)

        def value(score: float) -> float:
            return self.risk.value_at_constant(score, ones) + half_square * score * score

        reach = 1.0 + abs(self.risk.best_constant())
        found = minimize_scalar(value, bounds=(-reach, reach), method="bounded", options={"xatol": 1e-9 * reach})
        best = min((found.x, -1.0, 0.0, 1.0), key=value)  # kinks lie at 1 and -1
        return self.operator.shifted(zero, float(best)), value(best)

    def line(self, point: Point, d: FloatArray) -> "Line":
        """Return J_mu restricted to w + a d; one pass for z_d = Xd, then none."""
        return Line(self, point, d)

    def rounding_allowance(self, point: Point, slope: FloatArray, terms: int = 1) -> float:
        """Return an allowance for rounding in the bound c - |v|^2 / (2 alpha) of the plane at this point.

        Infinite, so that the plane proves nothing, where the ramp is narrower than `least_width`.
        """
        z_max = self.space.max_abs(point.z, self.risk.labels)
        if 0.0 < point.mu * self.risk.ramp_scale < self.least_width(point.z, z_max):
            return math.inf
        return self.mixture_allowance(slope, self.plane_size(point, z_max), point.risk.mass, terms)

    def least_width(self, z: Scores, z_max: float | None = None) -> float:
        """Return the width of the narrowest ramp that scores like these can tell from none: LEAST_RAMP_ROUNDINGS eps max |z|.

        Sums over pairs evaluate a pair from both of its rows. If a ramp is as narrow as the rounding of the scores, the two
        evaluations disagree about the pair's share of the ramp. The slopes then do not add up to 0, so they do not belong to a
        plane below a risk that is invariant to shifts. Other risks evaluate every row once and have no such limit.
        """
        if self.risk.shift != "invariant":
            return 0.0
        z_max = self.space.max_abs(z, self.risk.labels) if z_max is None else z_max
        return LEAST_RAMP_ROUNDINGS * float(np.finfo(float).eps) * z_max

    def plane_size(self, point: Point, z_max: float | None = None) -> float:
        """Return what rounding of the constant of a plane is relative to: the magnitudes that were added up for it."""
        z_max = self.space.max_abs(point.z, self.risk.labels) if z_max is None else z_max
        size = abs(point.objective) + abs(point.risk.plane) + point.risk.mass * z_max
        return size if self.operator.largest is not None else size + point.risk.mass * z_max

    def mixture_allowance(self, slope: FloatArray, size: float, mass: float, terms: int = 1) -> float:
        """Return the same for a mixture of planes with the slope v, from the same mixture of their sizes and masses.

        Sums over n rows carry an error of at most g = summation_error(n + terms) relative to the sum of magnitudes, where
        `terms` planes were added up for the mixture (eq. rounding-allowance). For v = X'u that sum is at most
        |u|_1 max_i |x_ij| in coordinate j, which moves |v|^2 / (2 alpha) by g |u|_1 sum_j |v_j| max_i |x_ij| / alpha to first
        order; second order is added. |v|^2 is itself a sum of p squares. Where the largest magnitudes are not known (computed
        features), max |z| stands in: then large terms that cancel within a row are not covered.
        """
        dot, alpha = kernels.vectors.dot, self.alpha
        n, p = self.operator.shape
        g = summation_error(n + terms)
        squares = (g + summation_error(p)) * dot(slope, slope) / alpha
        largest = self.operator.largest
        if largest is None:
            return g * size + squares
        moved = dot(np.abs(slope), largest) / alpha
        return g * (size + mass * moved) + squares + (g * mass) * (g * mass) * dot(largest, largest) / (2.0 * alpha)


def summation_error(n: int) -> float:
    """Return what a sum of n numbers may be off by, relative to the sum of their magnitudes: (n + 8 sqrt n) eps.

    Roundings that are independent add up to sqrt n of them; 8 is a margin for sums of sums, and for few numbers. They are not
    independent where many numbers are equal, weights of classes say, and then all round to the same side: n is for those.

    Parameters
    ----------
    n : int
        How many numbers are added.

    Returns
    -------
    float
        The relative error, at most.
    """
    return float(np.finfo(float).eps) * (n + 8.0 * math.sqrt(n))


class Line:
    """J_mu along w + a d, evaluated on scores alone, z + a z_d (eq. line-objective).

    The two score vectors `z` and `grad` that trial points write to are given by the caller and reused for every trial.
    """

    def __init__(self, objective: Objective, point: Point, d: FloatArray):
        dot = kernels.vectors.dot
        self.objective, self.point, self.d = objective, point, d
        self.z_d = objective.scores(d)
        self._wd, self._dd = dot(point.w, d), dot(d, d)
        self._buffers: tuple[Scores, Scores] | tuple[None, None] = (None, None)
        self.trial: Evaluation | None = None
        self.trial_step = 0.0

    def use_buffers(self, z: Scores, grad: Scores) -> None:
        """Let trial points write their scores and gradients here instead of into new memory."""
        self._buffers = (z, grad)

    def slope_at_start(self) -> float:
        """Return the derivative at a = 0, from the gradient of the point."""
        objective = self.objective
        return objective.alpha * self._wd + objective.space.dot(self.point.risk.grad, self.z_d)

    def __call__(self, a: float) -> tuple[float, float]:
        """Return (value, derivative in a) at w + a d; no pass over X, one evaluation of the risk."""
        objective, point = self.objective, self.point
        z, grad = self._buffers
        z = self._trial_z = objective.space.combine(1.0, point.z, a, self.z_d, z)
        self._buffers = (z, grad)
        self.trial = objective.risk.evaluate(z, point.mu, grad)
        self._buffers = (z, self.trial.grad)
        self.trial_step = a
        alpha = objective.alpha
        penalty = point.penalty + alpha * a * (self._wd + 0.5 * a * self._dd)
        value = penalty + self.trial.value
        return value, alpha * (self._wd + a * self._dd) + objective.space.dot(self.trial.grad, self.z_d)

    def accept(self, a: float) -> Point:
        """Return the point w + a d; free if a was the last trial."""
        if self.trial is None or self.trial_step != a:
            self(a)
        assert self.trial is not None
        objective = self.objective
        w = self.point.w + a * self.d
        penalty = 0.5 * objective.alpha * kernels.vectors.dot(w, w)
        return Point(w, self._trial_z, self.point.mu, self.trial, penalty)
