"""Nesterov's accelerated gradient method with an adaptive Lipschitz constant: the first-order rival of L-BFGS."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from scoreline import kernels
from scoreline.objective import Objective, Point
from scoreline.risks import Risk
from scoreline.runtime.checks import check_bool, check_number
from scoreline.runtime.types import FloatArray, Scores
from scoreline.solvers.common.base import Solver, State
from scoreline.solvers.common.lower_bound import LowerBound
from scoreline.solvers.smoothed import MU_FACTOR, SLACK_SHARE

LIPSCHITZ_GROWTH, LIPSCHITZ_DECAY = 2.0, 0.9  # after a step that was too long, and after any other step
LEAST_RAMP_WIDTH = 1e-12  # in units of the margin; a narrower ramp is lost in rounding


@dataclass
class AcceleratedState(State):
    """State plus the smoothing parameter, the estimate sequence (centre, sum of slopes, weight), L and the best plane."""

    mu: float = 0.0
    lipschitz: float = 0.0
    weight: float = 0.0
    center: FloatArray = field(default_factory=lambda: np.zeros(0))
    slopes: FloatArray = field(default_factory=lambda: np.zeros(0))
    constants: float = 0.0
    allowances: float = 0.0
    plane: dict[str, Any] = field(default_factory=dict)


class AcceleratedSolver(Solver):
    """Accelerated gradient steps on the (smoothed) risk, the penalty treated exactly; certified like `smoothed`.

    It uses the estimate sequence of Nesterov (2007) with similar triangles, which has a weight A and points x and v. Let a
    solve L a^2 = (A + a)(1 + alpha A), and let g be the slope of the risk at y = (A x + a v) / (A + a). Then
    v+ = (x0 - sum a_i g_i) / (1 + alpha (A + a)) and x+ = (A x + a v+) / (A + a) (eq. accelerated-step). A step is accepted
    if the risk at x+ is below its parabola of curvature L at y. After a rejected step L is multiplied by 2, after an accepted
    one by 0.9. Scores of y, v+ and x+ are combinations of known scores, so an iteration costs X'u and Xg, and extrapolation
    costs no pass. The planes of all steps, mixed with weights a_i, give the lower bound. mu is lowered by the gap, as in
    `smoothed`; the sequence then restarts from x.

    Parameters
    ----------
    mu : float, optional
        Fixed smoothing; by default it is chosen and lowered.
    strongly_convex : bool
        Use that the penalty is alpha-strongly convex (linear convergence); False is the plain variant with rate 1/k^2.
    **options
        tol, max_iter, max_time, abs_tol, callbacks: see Solver.
    """

    name = "accelerated"
    needs = "smoothable"
    automatic = "never"
    research = True
    row_vectors = 18.0  # scores of the point, of the estimate sequence and of its slopes
    state_class = AcceleratedState

    def __init__(self, mu: float | None = None, strongly_convex: bool = True, **options: Any):
        super().__init__(**options)
        if mu is not None:
            check_number("mu", mu, above=0)
        check_bool("strongly_convex", strongly_convex)
        self.mu, self.strongly_convex = mu, strongly_convex

    @classmethod
    def serves(cls, risk: Risk | type[Risk]) -> bool:
        return bool(risk.smooth or risk.smoothable)

    def start(self, objective: Objective, w0: FloatArray) -> AcceleratedState:
        """Return the state at w0."""
        scale = objective.risk.ramp_scale
        mu = 0.0 if scale == 0.0 else (self.mu if self.mu is not None else 1.0 / scale)
        p = objective.n_features
        return AcceleratedState(w=w0, best_w=w0, mu=mu, center=w0.copy(), slopes=np.zeros(p))

    def resume(self, objective: Objective, state: State) -> None:
        """Compute the scores of x and of the estimate sequence (one pass at w = 0, up to four otherwise)."""
        assert isinstance(state, AcceleratedState)
        self._bound = LowerBound(objective.n_features, objective.alpha)
        self._bound.restore(state.plane)
        self._z = objective.scores_at_start(state.w)
        self._z_center = self._z if np.array_equal(state.center, state.w) else objective.scores_at_start(state.center)
        self._z_slopes = objective.scores_at_start(state.slopes)
        point = objective.at(state.w, self._z, state.mu)
        slope = objective.slope(point)
        self._prove(objective, state, point, slope)
        self._slack = objective.slack(point)
        if state.lipschitz == 0.0:  # a first guess: the step that moves scores by a margin
            reach = objective.space.max_abs(
                objective.scores_at_start(slope + objective.alpha * state.w), objective.risk.labels
            )
            state.lipschitz = max(reach, 1e-12)

    def store(self, state: State) -> None:
        assert isinstance(state, AcceleratedState)
        state.plane = self._bound.record()

    def step(self, objective: Objective, state: State) -> bool:
        """Do one iteration: extrapolate, slope at y, step as long as L allows, bound."""
        assert isinstance(state, AcceleratedState)
        too_wide = self._slack >= SLACK_SHARE * (state.best_objective - state.lower_bound)
        if self.mu is None and state.mu > 0.0 and too_wide and self._wide(objective, state):
            state.mu *= MU_FACTOR
            self._restart(state)
        alpha, space = objective.alpha, objective.space
        convexity = alpha if self.strongly_convex else 0.0
        for _ in range(100):
            a, total = _weights(state.weight, state.lipschitz, convexity)
            if not 0.0 < total < np.inf:  # beyond the range of floats, as with alpha = 1e100 and scores of 1e-98
                return False
            share = a / total
            v, z_v = self._estimate(objective, state, state.weight)
            y, z_y = state.w + share * (v - state.w), space.combine(1.0 - share, self._z, share, z_v)
            point = objective.at(y, z_y, state.mu)
            slope = objective.slope(point)
            own = slope if self.strongly_convex else slope + alpha * y  # what is linearised
            z_own = objective.scores(own)
            with np.errstate(over="ignore", invalid="ignore"):
                slopes = state.slopes + a * own
                v_new = (state.center - slopes) / (1.0 + convexity * total)
            if not np.isfinite(v_new).all():
                return False
            z_slopes = space.combine(1.0, self._z_slopes, a, z_own)
            scale = 1.0 / (1.0 + convexity * total)
            z_v_new = space.combine(scale, self._z_center, -scale, z_slopes)
            x, z_x = state.w + share * (v_new - state.w), space.combine(1.0 - share, self._z, share, z_v_new)
            new = objective.at(x, z_x, state.mu, grad=False)
            self._prove(objective, state, point, slope)
            moved = x - y
            square = kernels.vectors.dot(moved, moved)
            rise = new.risk.value - point.risk.value
            if not self.strongly_convex:
                rise += new.penalty - point.penalty
            allowed = kernels.vectors.dot(own, moved) + 0.5 * state.lipschitz * square
            rounding = 1e-14 * (abs(new.risk.value) + abs(point.risk.value))
            if rise <= allowed + rounding or not np.isfinite(state.lipschitz):
                break
            state.lipschitz *= LIPSCHITZ_GROWTH
        else:
            return False
        still = square == 0.0
        state.w, self._z = x, z_x
        state.weight, state.slopes, self._z_slopes = total, slopes, z_slopes
        state.lipschitz *= LIPSCHITZ_DECAY
        state.improve(x, new.objective)
        # The planes met, in the proportions of the estimate sequence, are one plane.
        state.constants += a * (point.risk.plane if self.strongly_convex else 0.0)
        state.allowances += a * objective.rounding_allowance(point, slope, terms=state.iteration + 1)
        if self.strongly_convex:
            bound = self._bound.add(slopes / total, state.constants / total, state.allowances / total)
            state.lower_bound = max(state.lower_bound, bound)
        self._slack = objective.slack(point)
        narrower = state.mu * objective.risk.ramp_scale > LEAST_RAMP_WIDTH and self._wide(objective, state)
        if still and self.mu is None and narrower:
            state.mu *= MU_FACTOR  # the minimum of J_mu itself: only a narrower ramp leads on
            self._restart(state)
            return True
        return not still

    def _wide(self, objective: Objective, state: AcceleratedState) -> bool:
        """Tell whether the next ramp is wide enough to prove something."""
        return MU_FACTOR * state.mu * objective.risk.ramp_scale > objective.least_width(self._z)

    def _restart(self, state: AcceleratedState) -> None:
        """Begin the estimate sequence again at x: the function has changed."""
        state.weight, state.constants, state.allowances = 0.0, 0.0, 0.0
        state.center, self._z_center = state.w.copy(), self._z
        state.slopes = np.zeros_like(state.w)
        self._z_slopes = 0.0 * self._z

    def _estimate(self, objective: Objective, state: AcceleratedState, total: float) -> tuple[FloatArray, Scores]:
        """Return v = (x0 - sum a_i g_i) / (1 + alpha A) and its scores."""
        scale = 1.0 / (1.0 + (objective.alpha if self.strongly_convex else 0.0) * total)
        z = objective.space.combine(scale, self._z_center, -scale, self._z_slopes)
        return scale * (state.center - state.slopes), z

    def _prove(self, objective: Objective, state: AcceleratedState, point: Point, slope: FloatArray) -> None:
        bound = self._bound.add(slope, point.risk.plane, objective.rounding_allowance(point, slope))
        state.lower_bound = max(state.lower_bound, bound)
        state.improve(point.w, point.objective)


def _weights(weight: float, lipschitz: float, convexity: float) -> tuple[float, float]:
    """Return a with L a^2 = (A + a)(1 + convexity A), and A + a."""
    c = (1.0 + convexity * weight) / lipschitz
    a = 0.5 * (c + np.sqrt(c * c + 4.0 * c * weight))
    return float(a), float(weight + a)
