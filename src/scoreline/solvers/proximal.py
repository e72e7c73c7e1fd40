"""Proximal quasi-Newton steps for penalties with kinks and for bounds, on a working set of features."""

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from scoreline import kernels
from scoreline.objective import Objective, Point
from scoreline.penalties import BoundedPenalty
from scoreline.risks.base import Hessian, Risk
from scoreline.runtime import parallel
from scoreline.runtime.types import AnyArray, FloatArray
from scoreline.solvers.common.base import Solver, State
from scoreline.solvers.common.hessian import MAX_FEATURES, CurvatureMemory, hessian_matrix
from scoreline.solvers.common.lower_bound import PenaltyBound
from scoreline.solvers.smoothed import FIRST_WIDTH, MU_FACTOR, SLACK_SHARE, ramp_hessian

LEAST_WORKING_SET = 100  # features; twice those with a coefficient from there on
WORKING_SET_STEPS = 10  # at most, before all features are looked at
SMALLER_VIOLATION = 0.1  # of the largest one of a working set, at which all features are looked at
WIDEST_WORKING_SET = 2000  # features: its Hessian takes 32 MB
SWEEPS, ROUNDS = 10, 20  # of coordinate descent between two Newton steps, and of both on one model
ROUND_SHARE = 0.01  # of the decrease so far: a round that brings no more is the last. 0.001 and 0.1 took as long
NEWTON_SHARES = (1.0, 0.3, 0.1, 0.01)
GRADIENT_STEPS = 500  # on one model with groups
STRAIGHT = 1e-3  # share of the curvature that a model keeps along a step without any
DECREASE = 1e-4  # share of the decrease that the model promises
HALVINGS = 30  # of a step
MOST_LEVEL_STEPS = 5  # without a decrease of J beyond rounding: they still lower the gradient
RENEWALS = 2.0, 3.0  # a Hessian is recomputed after so many times the passes that it cost: smooth risks, ramps
LEAST_INTERVALS = 4.0, 12.0  # passes


@dataclass
class ProximalState(State):
    """State plus the smoothing parameter, the best mixture of planes, the pairs of L-BFGS, and the model of all features."""

    mu: float = 0.0
    plane: dict[str, Any] = field(default_factory=dict)
    memory: dict[str, Any] = field(default_factory=dict)
    model: dict[str, Any] = field(default_factory=dict)


class ProximalSolver(Solver):
    """Proximal quasi-Newton method for sparse, grouped and bounded models, certified for every penalty.

    The risk is replaced by its quadratic model, the penalty and the bounds are kept as they are, and the minimum of both
    (eq. proximal-model) is the end of the step, which a search on scores shortens where needed. Up to 1000 features the model
    starts from the Hessian and learns from every step (BFGS). With more features that is done for a working set: those with a
    coefficient and those that violate optimality most, whose columns are copied. A step then costs two passes over these, and
    two passes over X when all features are looked at again. Where rows cannot be read in blocks, or about 1800 features have a
    coefficient, L-BFGS steps on the free coefficients take over. Risks with kinks are smoothed as in `smoothed`.

    Parameters
    ----------
    memory : int
        Pairs of L-BFGS.
    **options
        tol, max_iter, max_time, abs_tol, callbacks: see Solver.
    """

    name = "proximal"
    automatic = "fallback"
    reason = "the penalty has kinks or bounds"
    needs = "smooth"
    penalties = ("l2", "weights", "elastic_net", "group", "bounds")
    alpha_means = "penalty alpha omega(w), with any omega and bounds"
    state_class = ProximalState

    def __init__(self, memory: int = 10, **options: Any):
        super().__init__(**options)
        self.memory = memory

    @classmethod
    def serves(cls, risk: Risk | type[Risk]) -> bool:
        return bool(risk.smooth or risk.smoothable)

    def start(self, objective: Objective, w0: FloatArray) -> ProximalState:
        """Return the state at w0."""
        scale = objective.risk.ramp_scale
        return ProximalState(w=w0, best_w=w0, mu=FIRST_WIDTH / scale if scale > 0.0 else 0.0)

    def onward(self, objective: Objective, state: State, alpha: float) -> ProximalState:
        """Go on from the best point with the smoothing of the end, and with the model of the risk, which knows no alpha."""
        assert isinstance(state, ProximalState)
        new = self.start(objective, state.best_w)
        new.mu, new.model = state.mu, state.model
        return new

    def resume(self, objective: Objective, state: State) -> None:
        """Compute scores and gradient at state.w."""
        assert isinstance(state, ProximalState)
        objective.forget()
        self._penalty = objective.bounded_penalty
        self._bound = PenaltyBound(objective)
        self._bound.restore(state.plane)
        self._curvature = CurvatureMemory(objective.n_features, self.memory)
        self._curvature.restore(state.memory)
        self._model, self._level_steps = _Model.restored(state.model, objective), 0
        self._objective = objective
        self._point = objective.at(state.w, objective.scores_at_start(state.w), state.mu)
        self._arrive(objective, state)

    def store(self, state: State) -> None:
        assert isinstance(state, ProximalState)
        state.plane, state.memory = self._bound.record(), dict(self._curvature.record())
        state.model = self._model.record(self._objective)

    def step(self, objective: Objective, state: State) -> bool:
        """Do one iteration: a step on all features, or several on a working set; then gradient and bound of all."""
        assert isinstance(state, ProximalState)
        self._lower_mu(objective, state)
        before, slope = self._point, self._slope
        blocks = "row_blocks" in objective.operator.capabilities
        violation = self._violation(objective, before, slope)
        if blocks and objective.n_features <= MAX_FEATURES:
            moved = self._model.step(objective, before, slope, self._enough(objective, state))
        else:
            features = self._working_set(objective, before.w, violation) if blocks else None
            if features is not None:
                moved = self._step_on(objective, before, features, violation, state)
            else:
                moved = self._lbfgs_step(objective, before, slope, violation)
        if moved is None or not moved.value <= before.value + _noise(before):
            return self._lower_mu(objective, state, force=True)
        self._level_steps = 0 if moved.value < before.value else self._level_steps + 1
        if self._level_steps > MOST_LEVEL_STEPS:
            return self._lower_mu(objective, state, force=True)
        self._point = moved
        self._arrive(objective, state)
        self._curvature.add(
            self._point.w - before.w, self._slope - slope + _quadratic(objective, self._point.w - before.w)
        )
        return True

    def _arrive(self, objective: Objective, state: ProximalState) -> None:
        """Take in a point: its gradient (one pass), the bound it proves, the best point so far."""
        state.improve(self._point.w, self._point.objective)
        self._point = objective.centred(self._point)
        point = self._point
        state.w = point.w
        self._slope = objective.slope(point)
        state.improve(point.w, point.objective)
        state.lower_bound = self._bound.add(point, self._slope, state.best_objective)

    def _lower_mu(self, objective: Objective, state: ProximalState, force: bool = False) -> bool:
        """Lower mu where smoothing makes a large part of the gap, or where nothing else is left; tell whether it was.

        At most once per step: another point may need no narrower ramp, and narrow ramps are slow.
        """
        lower = MU_FACTOR * state.mu
        if not lower * objective.risk.ramp_scale > max(objective.least_width(self._point.z), 1e-12):
            return False
        gap = state.best_objective - state.lower_bound
        if not (force or objective.slack(self._point) >= SLACK_SHARE * gap):
            return False
        state.mu = lower
        self._point = objective.at(self._point.w, self._point.z, lower)
        self._arrive(objective, state)
        return True

    def _violation(self, objective: Objective, point: Point, slope: FloatArray) -> FloatArray:
        return self._penalty.violation(point.w, slope, objective.alpha)

    def _enough(self, objective: Objective, state: ProximalState) -> float:
        """Return the change of a model by one coordinate that is not worth looking for."""
        gap = max(state.best_objective - state.lower_bound, 1e-14 * abs(state.best_objective))
        return 1e-6 * gap / objective.n_features

    def _working_set(self, objective: Objective, w: FloatArray, violation: FloatArray) -> AnyArray | None:
        """Return the features to work on: those with a coefficient, and as many that violate optimality most.

        None where there would be too many. Groups are taken as a whole, and a free intercept always.
        """
        penalty = self._penalty
        score = np.where(violation > 0.0, violation, 0.0)
        active = w != 0.0
        constant = objective.free_intercept
        if constant is not None:
            active[constant] = True
        support = int(np.count_nonzero(active))
        if support > 0.9 * WIDEST_WORKING_SET:
            return None
        size = min(WIDEST_WORKING_SET, max(LEAST_WORKING_SET, 2 * support))
        score[active] = np.inf
        order = np.argsort(-score, kind="stable")[:size]
        chosen = np.zeros(len(w), dtype=bool)
        chosen[order[score[order] > 0.0]] = True
        if penalty.groups is not None:
            chosen = np.isin(penalty.groups, np.unique(penalty.groups[chosen]))
        found = np.flatnonzero(chosen)
        return found if len(found) <= 2 * WIDEST_WORKING_SET else None

    def _step_on(
        self, objective: Objective, point: Point, features: AnyArray, violation: FloatArray, state: ProximalState
    ) -> Point | None:
        """Return the point after several steps on the working set, whose columns are copied (one pass); None if it is empty."""
        if len(features) == 0:
            return None
        part, model = objective.on_features(features), _Model()
        now = Point(point.w[features], point.z, point.mu, point.risk, point.penalty)
        slope, allowed = self._slope[features], SMALLER_VIOLATION * float(violation[features].max(initial=0.0))
        enough = self._enough(part, state)
        for _ in range(WORKING_SET_STEPS):
            moved = model.step(part, now, slope, enough)
            if moved is None or not moved.value <= now.value + _noise(now):
                break
            now = part.centred(moved)
            slope = part.slope(now)
            if part.bounded_penalty.violation(now.w, slope, part.alpha).max(initial=0.0) <= allowed:
                break
        w = np.zeros_like(point.w)
        w[features] = now.w
        if np.array_equal(w, point.w):
            return None
        return Point(w, now.z, now.mu, now.risk, now.penalty)

    def _lbfgs_step(self, objective: Objective, point: Point, slope: FloatArray, violation: FloatArray) -> Point | None:
        """Return the end of an L-BFGS step on the coefficients that may move, within their orthant and bounds (two passes)."""
        penalty, alpha, w = self._penalty, objective.alpha, point.w
        for _ in range(2):
            gradient = penalty.steepest(w, slope, alpha)
            free = gradient != 0.0
            if not free.any():
                return None
            if self._curvature.empty:
                scale = float(np.abs(gradient).max())
                target = penalty.minimum(slope - scale * w, alpha, scale)
            else:
                d = np.where(free, self._curvature.direction(gradient), 0.0)
                d = np.where((w == 0.0) & (d * gradient > 0.0), 0.0, d)
                target = penalty.nearest(w + d)
                if penalty.norms is None and penalty.absolute.any():
                    sign = np.where(w != 0.0, np.sign(w), -np.sign(gradient))
                    target = np.where((target * sign < 0.0) & (penalty.absolute > 0.0), 0.0, target)
                    target = penalty.nearest(target)
            found = _searched(objective, point, slope, target)
            if found is not None or self._curvature.empty:
                return found
            self._curvature.clear()
        return None


class _Model:
    """A quadratic model of the risk for up to about 1000 features: its Hessian, improved by BFGS from step to step."""

    def __init__(self) -> None:
        self.matrix: FloatArray | None = None
        self.due = 0.0
        self.before: tuple[FloatArray, FloatArray, float] | None = None

    def record(self, objective: Objective) -> dict[str, Any]:
        """Return what `restored` needs, as plain arrays and numbers."""
        if self.matrix is None or self.before is None:
            return {}
        w, slope, mu = self.before
        left = max(0.0, self.due - objective.operator.n_passes)
        return {"matrix": self.matrix, "left": left, "w": w, "slope": slope, "mu": mu}

    @classmethod
    def restored(cls, record: dict[str, Any], objective: Objective) -> "_Model":
        """Return the model that a record describes."""
        model = cls()
        if record:
            model.matrix = np.array(record["matrix"], dtype=np.float64)
            model.due = objective.operator.n_passes + float(record["left"])
            model.before = (np.asarray(record["w"]), np.asarray(record["slope"]), float(record["mu"]))
        return model

    def step(self, objective: Objective, point: Point, slope: FloatArray, enough: float) -> Point | None:
        """Return the end of a step from the point, whose slope is known: two passes, and what a Hessian costs."""
        self._learn(objective, point, slope)
        for _ in range(2):
            assert self.matrix is not None
            target = self._minimum(objective.bounded_penalty, objective.alpha, point.w, slope, enough)
            found = _searched(objective, point, slope, target)
            if found is not None or self.due == 0.0:
                return found
            self.due, self.before = 0.0, None
            self._learn(objective, point, slope)
            self.due = 0.0
        return None

    def _learn(self, objective: Objective, point: Point, slope: FloatArray) -> None:
        """Make the Hessian if it is due; else correct it by the last step."""
        with parallel.one_blas_thread():
            self._updated(objective, point, slope)

    def _updated(self, objective: Objective, point: Point, slope: FloatArray) -> None:
        operator, before = objective.operator, self.before
        self.before = (point.w, slope, point.mu)
        if self.matrix is None or operator.n_passes >= self.due:
            at = operator.n_passes
            found = hessian_matrix(objective, _curvature(objective, point), penalised=False)
            ridge = np.eye(objective.n_features)
            if found is None and self.matrix is None:
                reach = objective.space.max_abs(objective.scores(slope), objective.risk.labels)
                found = max(reach, 1e-12) * ridge
            if found is not None:
                trace = float(np.trace(found)) / len(found)
                self.matrix = found + 1e-10 * max(trace, 1e-300) * ridge
            cost = max(operator.n_passes - at, operator.gram_passes() if "row_blocks" in operator.capabilities else 0.0)
            kind = int(not objective.risk.smooth)
            self.due = operator.n_passes + max(LEAST_INTERVALS[kind], RENEWALS[kind] * cost)
        elif before is not None and before[2] == point.mu:
            s, y = point.w - before[0], slope - before[1]
            product, moved = float(s @ y), self.matrix @ s
            curvature = float(s @ moved)
            if 0.0 < curvature and not product > 1e-8 * curvature:
                # No row is on its ramp any more, for one: the model keeps a thousandth of its curvature (damped, Powell).
                share = (1.0 - STRAIGHT) * curvature / (curvature - product)
                y, product = share * y + (1.0 - share) * moved, STRAIGHT * curvature
            if product > 1e-10 * float(s @ s) * 1e-6 and product > 1e-8 * curvature > 0.0:
                self.matrix = self.matrix + np.outer(y, y) / product - np.outer(moved, moved) / curvature

    def _minimum(
        self, penalty: BoundedPenalty, alpha: float, w: FloatArray, slope: FloatArray, enough: float
    ) -> FloatArray:
        """Return about the minimum of the model plus the penalty."""
        matrix = self.matrix
        assert matrix is not None
        if penalty.norms is None:
            return _separable_minimum(matrix, slope, penalty, alpha, w, enough)
        # Accelerated proximal gradients, restarted where they turn. A model without curvature may have no minimum.
        with parallel.one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):
            largest = float(np.linalg.eigvalsh(matrix)[-1]) * (1.0 + 1e-9)
            u, point, t = w, w, 1.0
            for _ in range(GRADIENT_STEPS):
                gradient = slope + matrix @ (point - w)
                new = penalty.minimum(gradient - largest * point, alpha, largest)
                change = largest * float((new - u) @ (new - u))
                if not math.isfinite(change):
                    break
                if float((point - new) @ (new - u)) > 0.0:
                    t = 1.0
                following = 0.5 * (1.0 + math.sqrt(1.0 + 4.0 * t * t))
                point = new + (t - 1.0) / following * (new - u)
                u, t = new, following
                if change <= enough:
                    break
        return u


def _separable_minimum(
    matrix: FloatArray, slope: FloatArray, penalty: BoundedPenalty, alpha: float, w: FloatArray, enough: float
) -> FloatArray:
    """Return the minimum of <slope, u - w> + (u - w)'H(u - w)/2 + Omega(u) without groups.

    A few sweeps of coordinate descent find out which coefficients are 0 or at a bound; Newton steps on the others, each up to
    the first that would change sign or leave its bounds, are exact where coordinate descent creeps.
    """
    u, quadratic, absolute = w.copy(), alpha * penalty.quadratic, alpha * penalty.absolute
    ends = penalty.lower, penalty.upper
    with (
        parallel.one_blas_thread(),
        np.errstate(over="ignore", invalid="ignore"),
    ):  # a model may have next to no curvature
        gradient, start = slope.copy(), penalty.value(w, alpha)
        last = start
        for _ in range(ROUNDS):
            done = kernels.coordinate_descent.improve(matrix, gradient, u, quadratic, absolute, *ends, SWEEPS, enough)
            free = np.flatnonzero(((u != 0.0) | (absolute == 0.0)) & (u > ends[0]) & (u < ends[1]))
            now = 0.5 * float((slope + gradient) @ (u - w)) + penalty.value(u, alpha)
            if done or len(free) == 0 or last - now <= ROUND_SHARE * (start - now):
                break
            last = now
            residual = gradient[free] + quadratic[free] * u[free] + absolute[free] * np.sign(u[free])
            inner = matrix[np.ix_(free, free)] + np.diag(quadratic[free])
            try:
                d = -cho_solve(cho_factor(inner, lower=True, check_finite=False), residual, check_finite=False)
            except np.linalg.LinAlgError:
                continue
            low = np.where((u[free] > 0.0) & (absolute[free] > 0.0), np.maximum(ends[0][free], 0.0), ends[0][free])
            high = np.where((u[free] < 0.0) & (absolute[free] > 0.0), np.minimum(ends[1][free], 0.0), ends[1][free])
            for share in NEWTON_SHARES:  # what would change its sign or leave its bounds stays at the end
                step = np.clip(u[free] + share * d, low, high) - u[free]
                if float(residual @ step) + 0.5 * float(step @ (inner @ step)) < 0.0:
                    u[free] = np.clip(u[free] + step, low, high)
                    break
            gradient = slope + matrix @ (u - w)
    return u


def _curvature(objective: Objective, point: Point) -> Hessian | None:
    return objective.risk.hessian(point.z) if objective.risk.smooth else ramp_hessian(objective, point)


def _quadratic(objective: Objective, s: FloatArray) -> FloatArray:
    return objective.alpha * objective.bounded_penalty.quadratic * s


def _searched(objective: Objective, point: Point, slope: FloatArray, target: FloatArray) -> Point | None:
    """Return a point on the way to the target with a share of the decrease that the slope promises; one pass.

    The whole step first, then shorter ones by interpolation. None where there is none.
    """
    d = target - point.w
    if not (d.any() and np.isfinite(d).all()):
        return None
    space, penalty, alpha = objective.space, objective.bounded_penalty, objective.alpha
    with np.errstate(over="ignore"):
        promised = kernels.vectors.dot(slope, d) + penalty.value(target, alpha) - point.penalty
    if not promised < 0.0:
        return None
    z_d = objective.scores(d)
    step = 1.0
    for _ in range(HALVINGS):
        w = target if step == 1.0 else penalty.nearest(point.w + step * d)
        found = objective.at(w, space.combine(1.0, point.z, step, z_d), point.mu)
        if found.value <= point.value + DECREASE * step * promised + _noise(point):
            return found
        # The parabola through both values with the promised slope at the start.
        excess = found.value - point.value - step * promised
        step = min(0.5 * step, max(0.1 * step, -0.5 * step * step * promised / excess if excess > 0.0 else 0.0))
    return None


def _noise(point: Point) -> float:
    """Return what the value at a point may be off by: a decrease below drowns in rounding."""
    return 8.0 * float(np.finfo(float).eps) * abs(point.value)
