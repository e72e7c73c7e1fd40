"""The objective J(w) = Omega(w) + R(Xw) (eq. objective): the only place where X, labels and the penalty meet."""

import math
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp
from scipy.optimize import minimize_scalar

from scoreline import kernels
from scoreline.operators import as_operator
from scoreline.operators.linear_map import LinearMap
from scoreline.penalties import BoundedPenalty, Terms
from scoreline.risks.base import Evaluation, Risk
from scoreline.risks.separable import SeparableRisk
from scoreline.runtime import parallel
from scoreline.runtime.types import AnyArray, FloatArray, Scores

# Roundings of the scores that a ramp must be wide: shares of a pair are then off by 1/4096 at its very end.
LEAST_RAMP_ROUNDINGS = 4096.0
NEARLY_CONSTANT_SPAN = 1e-3  # of scores, below which a fit may be no better than a constant score
COPIED_BLOCK_BYTES = 64e6  # of rows that columns are taken from at a time
MOST_CENTRING_TRIALS = 40  # evaluations of the risk for one intercept; 2 to 6 are usual
LEAST_SLOPE_ROUNDINGS = 16.0  # of the risk's slope along the intercept; `_slope_rounding` allows for 32 and more
EXTREME_SCORES = (2.0, 8.0, 32.0, 128.0)  # constant scores whose planes limit the intercept


PLAIN = frozenset({"l2"})  # traits of alpha/2 |w|^2


@dataclass
class Point:
    """A point of the search: w, its scores z = Xw, and the evaluation of the risk there."""

    w: FloatArray
    z: Scores
    mu: float
    risk: Evaluation
    penalty: float  # Omega(w)

    @property
    def value(self) -> float:
        """J_mu(w), what the search minimises (J itself for mu = 0 or a smooth risk)."""
        return self.penalty + self.risk.value

    @property
    def objective(self) -> float:
        """J(w) without smoothing."""
        return self.penalty + self.risk.hard


class Objective:
    """J(w) = Omega(w) + R(Xw), with explicit scores: nothing is computed twice behind the caller's back.

    A pass over X happens in `scores` (z = Xw), `slope` (X'u), `line` (z_d = Xd) and `compact`, nowhere else.

    Parameters
    ----------
    operator : Operator
        X, with the constant feature and the scaling already wrapped around it.
    risk : Risk
        Prepared with the labels of the rows of X.
    alpha : float
        Strength of the penalty.
    penalty : BoundedPenalty, optional
        What alpha multiplies, and bounds; 1/2 |w|^2 by default.
    """

    def __init__(self, operator: LinearMap, risk: Risk, alpha: float, penalty: BoundedPenalty | None = None):
        self.operator = operator
        self.risk = risk
        self.alpha = float(alpha)
        self.penalty = None if penalty is None or penalty.uniform else penalty
        self.space = risk.space
        self._known: tuple[FloatArray, Scores] | None = None
        self._plain: BoundedPenalty | None = None
        self._unit = operator.shifted(np.zeros(operator.shape[1]), 1.0)
        self.free_intercept = self._free_intercept()
        self._shift_curvature = 0.0  # of the risk along the intercept, from the last search for it
        self._limits: tuple[float, FloatArray] | None = None

    def with_alpha(self, alpha: float, w: FloatArray | None = None, z: Scores = None) -> "Objective":
        """Return the objective with another penalty; where scores z = Xw are known, a run that starts at w needs no pass."""
        other = Objective(self.operator, self.risk, alpha, self.penalty)
        other._known = None if w is None or z is None else (w, z)
        return other

    def compact(self) -> "Objective":
        """Return the same problem with n features in place of p > n, for small n; one pass and a dense copy of X.

        Rows with the same inner products have the same scores at the minimum; only w is another.
        """
        blocks = [block.data for block in self.operator.row_blocks()]
        rows = np.concatenate([np.asarray(block.toarray() if hasattr(block, "toarray") else block) for block in blocks])
        rows = rows.astype(np.float64)
        if self.penalty is None:
            return Objective(as_operator(_triangle(rows)), self.risk, self.alpha)
        # Free coefficients stay as they are; the others are turned once their squares weigh the same.
        cost = self.penalty.quadratic
        paid = _triangle(rows[:, cost > 0.0] / np.sqrt(cost[cost > 0.0]))
        together = np.ascontiguousarray(np.hstack([paid, rows[:, cost == 0.0]]))
        weights = np.append(np.ones(paid.shape[1]), np.zeros(int(np.count_nonzero(cost == 0.0))))
        penalty = BoundedPenalty(Terms(weights, np.zeros(len(weights))))
        return Objective(as_operator(together), self.risk, self.alpha, penalty)

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
        return Point(w, z, mu, self.risk.evaluate(z, mu, out, grad), self.penalty_value(w))

    def penalty_value(self, w: FloatArray) -> float:
        """Return Omega(w)."""
        if self.penalty is None:
            return 0.5 * self.alpha * kernels.vectors.dot(w, w)
        return self.penalty.value(w, self.alpha)

    def penalty_gradient(self, w: FloatArray) -> FloatArray:
        """Return the gradient of Omega where it is smooth, else that of its quadratic part."""
        return self.alpha * w if self.penalty is None else self.alpha * self.penalty.quadratic * w

    @property
    def penalty_curvature(self) -> float | FloatArray:
        """Second derivatives of the quadratic part of Omega: alpha, or alpha times the weight of each feature."""
        return self.alpha if self.penalty is None else self.alpha * self.penalty.quadratic

    @property
    def bounded_penalty(self) -> BoundedPenalty:
        """The penalty as an object, also where it is the plain one."""
        if self.penalty is not None:
            return self.penalty
        if self._plain is None:
            self._plain = BoundedPenalty(Terms(np.ones(self.n_features), np.zeros(self.n_features)))
        return self._plain

    @property
    def traits(self) -> frozenset[str]:
        """What a solver must know of the penalty."""
        return PLAIN if self.penalty is None else self.penalty.traits

    def _free_intercept(self) -> int | None:
        """Return the number of the constant feature, if its coefficient has no penalty."""
        if self.penalty is None or not self._unit.any():
            return None
        constant = int(np.flatnonzero(self._unit)[0])
        return constant if constant in self.penalty.free else None

    def forget(self) -> None:
        """Forget what speeds up later calls: a run that goes on from its record knows nothing of them."""
        self._shift_curvature, self._limits = 0.0, None

    def nearest(self, w: FloatArray) -> FloatArray:
        """Return the point nearest to w that the bounds allow."""
        return w if self.penalty is None else self.penalty.nearest(w)

    def has_features(self, w: FloatArray) -> bool:
        """Tell whether a coefficient other than the intercept is not 0."""
        return bool(w.any()) if self.free_intercept is None else bool(w[self._unit == 0.0].any())

    def slope(self, point: Point) -> FloatArray:
        """Return v = X' dR/dz, the risk's part of the gradient in w; one pass."""
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
        return point.value, self.penalty_gradient(w) + self.slope(point)

    def best_constant(self, z: Scores) -> tuple[FloatArray, float]:
        """Return the best coefficients among those that give all rows one score, and J there; z are the scores of a fit.

        Risks that do not change with a shift of all scores, and fits without an intercept, have w = 0 only. No pass for
        risks that are a mean over rows, one for the others, and these are looked at only where z is nearly constant. J is
        infinite where bounds exclude w = 0.
        """
        zero = np.zeros(self.n_features)
        if not np.array_equal(self.nearest(zero), zero):
            return zero, math.inf  # bounds exclude 0: no constant score is known to be within them
        unit = self.operator.shifted(zero, 1.0)
        separable, span = isinstance(self.risk, SeparableRisk), self.space.span(z, self.risk.labels)
        if self.risk.shift != "needed" or not unit.any() or not (separable or span <= NEARLY_CONSTANT_SPAN):
            return zero, self.risk.value_at_zero()
        half_square = self.penalty_value(unit)
        ones = None if separable else self.scores(unit)

        def value(score: float) -> float:
            return self.risk.value_at_constant(score, ones) + half_square * score * score

        reach = 1.0 + abs(self.risk.best_constant()) + self.risk.largest_base_score
        found = minimize_scalar(value, bounds=(-reach, reach), method="bounded", options={"xatol": 1e-9 * reach})
        best = min((found.x, -1.0, 0.0, 1.0), key=value)  # kinks lie at 1 and -1
        return self.operator.shifted(zero, float(best)), value(best)

    def line(self, point: Point, d: FloatArray) -> "Line":
        """Return J_mu restricted to w + a d; one pass for z_d = Xd, then none."""
        return Line(self, point, d)

    def centred(self, point: Point) -> Point:
        """Return the point with the best intercept, where that has no penalty (eq. centring); no pass.

        The slope of the risk along the intercept is brought as near to 0 as rounding allows: a bracket, then secants by the
        Illinois rule. `lower_bound_plane` needs it there, and allows for a larger rounding than what is left.
        """
        slope, mass = float(point.risk.grad.sum()), point.risk.mass
        enough = LEAST_SLOPE_ROUNDINGS * float(np.finfo(float).eps) * mass
        if self.free_intercept is None or not 0.0 < abs(slope) < math.inf:
            return point
        # (shift, slope) on either side of the root; the slope at `low` has the sign of the first one.
        low: tuple[float, float] = (0.0, slope)
        high: tuple[float, float] | None = None
        # The logistic loss bends by a quarter of the weights at most, and by no more than the slopes of all rows together.
        far = min(1.0, max(4.0 * abs(slope), abs(slope) / mass))
        curvature = self._shift_curvature
        step = -slope / curvature if curvature > 0.0 else -math.copysign(far, slope)
        best, best_shift, best_slope = point, 0.0, slope
        shift = step
        last_side: bool | None = None
        for trial in range(MOST_CENTRING_TRIALS):
            if abs(best_slope) <= enough:
                break
            z = self.space.combine(1.0, point.z, 0.0, point.z)
            z += shift
            found = self.risk.evaluate(z, point.mu)
            own = float(found.grad.sum())
            if not math.isfinite(own):
                break
            if trial == 0 and own != slope:
                self._shift_curvature = (own - slope) / shift
            if abs(own) < abs(best_slope) and found.value <= point.risk.value + 1e-12 * abs(point.risk.value):
                best, best_shift, best_slope = Point(point.w, z, point.mu, found, point.penalty), shift, own
            if own == 0.0:
                break
            side = (own > 0.0) == (slope > 0.0)  # the product may underflow
            if side and high is None:  # no bracket yet: the secant, at least twice as far and at most ten times
                curvature = (own - low[1]) / (shift - low[0])
                wanted = shift - own / curvature if curvature > 0.0 else math.inf * step
                least, most = sorted((shift + 0.1 * (shift - low[0]), shift + 9.0 * (shift - low[0])))
                low, shift = (shift, own), min(max(wanted, least), most)
                continue
            if side:
                low = (shift, own)
            else:
                high = (shift, own)
            assert high is not None
            # An end that stays again counts half: secants alone would creep towards the root from one side.
            if side == last_side and side:
                high = (high[0], 0.5 * high[1])
            elif side == last_side:
                low = (low[0], 0.5 * low[1])
            last_side = side
            shift = (low[0] * high[1] - high[0] * low[1]) / (high[1] - low[1])
            if not min(low[0], high[0]) < shift < max(low[0], high[0]):
                shift = 0.5 * (low[0] + high[0])
            if not min(low[0], high[0]) < shift < max(low[0], high[0]):
                break
        if best is point:
            return point
        return replace(best, w=point.w + best_shift * self._unit)

    def limits(self, level: float) -> FloatArray:
        """Return a limit of |w_j| at the minimum, for every j, given that J is at most `level` somewhere (eq. reach).

        The penalty gives those of all coefficients that it knows. That of a free intercept comes from the planes of two
        constant scores: one falls as the intercept rises, the other as it falls (eq. intercept-reach). No pass where the
        largest magnitudes of the columns are known, two otherwise. The limits of an earlier, higher level stay true, and are
        computed again only where the level has halved.
        """
        assert self.penalty is not None
        if self._limits is not None and level >= 0.5 * self._limits[0]:
            return self._limits[1]
        reach = self.penalty.reach(level, self.alpha)
        constant = self.free_intercept
        if constant is not None:
            reach[constant] = abs(self._unit[constant]) * self._intercept_limit(level, reach)
        self._limits = (level, reach)
        return reach

    def _intercept_limit(self, level: float, reach: FloatArray) -> float:
        """Return a limit of the intercept at the minimum, in units of the scores.

        A plane R >= c + <u, z> with r = sum u gives t (c + u'Xw + r b) + Omega(w) <= level for every t in [0, 1]. Hence
        t r b <= level - t c - least(t X'u), where |X'u| <= |u|_1 max_i |x_ij|.
        """
        assert self.penalty is not None
        labels, largest = self.risk.labels, self.operator.largest
        rarer = min(labels.positive, labels.negative) / labels.total
        limit, g = 0.0, summation_error(self.operator.shape[0])
        inside = np.where(self._unit == 0.0, reach, 0.0)  # the intercept is the other side of the inequality
        for side in (1.0, -1.0):
            found = math.inf
            for beyond in EXTREME_SCORES:
                extreme = beyond + self.risk.largest_base_score
                z = self.space.zeros(labels)
                z += side * extreme
                plane = self.risk.evaluate(z)
                rise = side * float(plane.grad.sum()) - g * plane.mass
                if not rise > 0.0:
                    continue
                size = plane.mass * (extreme + 3.0 * self.risk.largest_base_score)
                constant = plane.plane - g * (abs(plane.plane) + plane.value + size)
                if largest is None:
                    v = np.where(self._unit == 0.0, self.operator.rmatvec(plane.grad), 0.0)
                    uncertainty = g * (np.abs(v) + plane.mass)
                else:
                    v, uncertainty = np.zeros_like(reach), plane.mass * (1.0 + g) * largest
                uncertainty = np.where(self._unit == 0.0, uncertainty, 0.0)
                for t in 4.0 ** -np.arange(0.0, 40.0):
                    least = self.penalty.least(t * v, self.alpha, t * uncertainty, inside)
                    value = (level - t * constant - least) / (t * rise)
                    if value > 2.0 * found:
                        break
                    found = min(found, value)
                if rise >= 0.5 * rarer:
                    break
            limit = max(limit, found)
        return limit * (1.0 + 1e-9)

    def lower_bound_plane(self, point: Point, slope: FloatArray, level: float) -> tuple[FloatArray, float, float]:
        """Return (slope, constant, allowance) of the plane at this point as `LowerBound` takes it.

        With weights, slopes are divided by their roots: then the bound is that of alpha/2 |w|^2 (eq. weighted-bound). The slope
        along a free intercept, nearly 0 at a centred point, costs its limit times the slope (eq. free-intercept-bound).
        """
        allowance = self.rounding_allowance(point, slope)
        if self.penalty is None:
            return slope, point.risk.plane, allowance
        cost, constant = self.penalty.quadratic, point.risk.plane
        free = cost == 0.0
        if free.any():
            moved = np.abs(slope[free]) + self._slope_rounding(point, free)
            with np.errstate(invalid="ignore"):
                constant -= float(np.sum(np.where(moved > 0.0, moved * self.limits(level)[free], 0.0))) * (1.0 + 1e-12)
        return np.where(free, 0.0, slope) / np.sqrt(np.where(free, 1.0, cost)), constant, allowance

    def mixture_bound(self, slope: FloatArray, constant: float, mass: float, size: float, level: float) -> float:
        """Return the lower bound that a mixture of planes proves, for any penalty; J is at most `level` somewhere.

        Sums over n rows are off by at most g times the sum of magnitudes (`mixture_allowance`): in coordinate j of the slope
        that is g |u|_1 max_i |x_ij|.
        """
        penalty = self.bounded_penalty
        g = 1.01 * summation_error(self.operator.shape[0] + 64)  # a mixture of mixtures adds a few roundings each time
        largest = self.operator.largest
        uncertainty = float(np.finfo(float).eps) * np.abs(slope) if largest is None else g * mass * largest
        constant_feature = self.free_intercept
        if constant_feature is not None:
            precise = g * mass * abs(1.0 / self._unit[constant_feature])
            uncertainty = uncertainty.copy()
            uncertainty[constant_feature] = precise
        reach = self.limits(level) if self.penalty is not None else penalty.reach(level, self.alpha)
        return constant - g * (size + abs(constant)) + penalty.least(slope, self.alpha, uncertainty, reach)

    def on_features(self, features: AnyArray) -> "Objective":
        """Return the objective of some features, the others 0, with a copy of their columns; one pass."""
        size = max(1, int(COPIED_BLOCK_BYTES / max(1.0, self.operator.row_bytes)))
        blocks = [block.data[:, features] for block in self.operator.row_blocks(size)]
        stack = np.concatenate if isinstance(blocks[0], np.ndarray) else (lambda each: sp.vstack(each, format="csr"))
        self.operator._count(1.0)
        part = Objective(as_operator(stack(blocks)), self.risk, self.alpha, self.bounded_penalty.on_features(features))
        part._unit = self._unit[features]
        return part

    def _slope_rounding(self, point: Point, features: AnyArray) -> FloatArray:
        """Return what the slopes of some features may be off by."""
        largest = self.operator.largest
        g = summation_error(self.operator.shape[0])
        if isinstance(point.risk.grad, np.ndarray) and (features <= (self._unit != 0.0)).all():
            # The intercept's slope is NumPy's pairwise sum: blocks of 128 numbers, and a tree over these.
            g = min(g, float(np.finfo(float).eps) * (32.0 + math.log2(self.operator.shape[0])))
        size = np.ones(self.n_features) if largest is None else largest
        return np.asarray(g * point.risk.mass * size[features])

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
        return LEAST_RAMP_ROUNDINGS * float(np.finfo(float).eps) * (z_max + self.risk.largest_base_score)

    def plane_size(self, point: Point, z_max: float | None = None) -> float:
        """Return what rounding of the constant of a plane is relative to: the magnitudes that were added up for it."""
        z_max = self.space.max_abs(point.z, self.risk.labels) if z_max is None else z_max
        # Base scores are in the constant twice: as part of the scores of the inner plane, and where that is moved by them.
        z_max = z_max + 3.0 * self.risk.largest_base_score
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
        largest = self.operator.largest
        if self.penalty is not None:
            free = self.penalty.quadratic == 0.0
            root = np.sqrt(np.where(free, 1.0, self.penalty.quadratic))
            slope = np.where(free, 0.0, slope) / root
            largest = None if largest is None else np.where(free, 0.0, largest) / root
        squares = (g + summation_error(p)) * dot(slope, slope) / alpha
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


def _triangle(rows: FloatArray) -> FloatArray:
    """Return n features with the inner products of the rows."""
    with parallel.one_blas_thread():
        return np.ascontiguousarray(np.asarray(np.linalg.qr(rows.T, mode="r")).T)


class Line:
    """J_mu along w + a d where Omega is quadratic, evaluated on scores alone, z + a z_d (eq. line-objective).

    The two score vectors `z` and `grad` that trial points write to are given by the caller and reused for every trial.
    """

    def __init__(self, objective: Objective, point: Point, d: FloatArray):
        dot = kernels.vectors.dot
        self.objective, self.point, self.d = objective, point, d
        self.z_d = objective.scores(d)
        weighted = d if objective.penalty is None else objective.penalty.quadratic * d
        self._wd, self._dd = dot(point.w, weighted), dot(d, weighted)
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
        return Point(w, self._trial_z, self.point.mu, self.trial, objective.penalty_value(w))
