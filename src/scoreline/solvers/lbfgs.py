"""L-BFGS whose line search never touches X: two passes per iteration, whatever the search does."""

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from scoreline.objective import Objective, Point
from scoreline.runtime.checks import check_number
from scoreline.runtime.types import FloatArray, Scores
from scoreline.solvers.common.base import Solver, State
from scoreline.solvers.common.hessian import CurvatureMemory, Preconditioner
from scoreline.solvers.common.linesearch import strong_wolfe
from scoreline.solvers.common.lower_bound import LowerBound
from scoreline.solvers.common.sample_start import Sampled

REFRESH_ITERATIONS = 50  # iterations between fresh z = Xw: scores are carried along by z + a z_d and drift by rounding


@dataclass
class LbfgsState(State):
    """State plus the smoothing parameter, the curvature pairs, the Hessian they improve and the best plane.

    `waited` are passes of earlier runs along a path that have gone by without a Hessian.
    """

    mu: float = 0.0
    memory: dict[str, Any] = field(default_factory=dict)
    plane: dict[str, Any] = field(default_factory=dict)
    hessian: dict[str, Any] = field(default_factory=dict)
    waited: float = 0.0


class LbfgsSolver(Solver):
    """Limited-memory BFGS for smooth risks, with a certificate from convex duality.

    An iteration costs two passes: z_d = Xd for the line search, X'u for the new gradient. Every gradient is also a plane
    below the risk, so the duality gap is known at no extra pass. Nocedal and Wright (2006), Algorithm 7.5.

    Parameters
    ----------
    memory : int
        Pairs of curvature kept.
    **options
        tol, max_iter, max_time, abs_tol, callbacks: see Solver.
    """

    name = "lbfgs"
    reason = "the risk is smooth"
    needs = "smooth"
    penalties = ("l2", "weights")
    state_class = LbfgsState
    starts_on_samples = True
    patience = 2.0  # of `Preconditioner`
    eager = False  # make the Hessian early: `sample_start` sets it for its runs

    def __init__(self, memory: int = 10, **options: Any):
        super().__init__(**options)
        check_number("memory", memory, least=1, integer=True)
        self.memory = memory

    def start(self, objective: Objective, w0: FloatArray) -> LbfgsState:
        """Return the state at w0."""
        return LbfgsState(w=w0, best_w=w0, mu=self.first_mu(objective))

    def continued(self, objective: Objective, sampled: Sampled) -> LbfgsState:
        """Go on with the Hessian and the pairs of the sample: a risk is a mean, its curvature about that of all rows."""
        state = self.start(objective, sampled.w)
        state.memory = sampled.state.memory
        if sampled.state.hessian:
            left = Preconditioner(self.patience).interval(objective)
            state.hessian = {"factor": sampled.state.hessian["factor"], "left": left}
        return state

    def onward(self, objective: Objective, state: State, alpha: float) -> LbfgsState:
        """Go on with the best plane, which is one for any alpha, and with the pairs, changed by alpha times the step."""
        assert isinstance(state, LbfgsState)
        new = self.start(objective, state.best_w)
        if objective.free_intercept is None:  # what its slope costs grows as alpha falls
            new.plane = LowerBound.at_alpha(state.plane, alpha, objective.alpha)
        steps, changes = (np.asarray(state.memory.get(name, ())) for name in ("steps", "changes"))
        if len(steps):
            weighted = steps if objective.penalty is None else steps * objective.penalty.quadratic
            new.memory = {"steps": steps, "changes": changes + (objective.alpha - alpha) * weighted}
        new.hessian = state.hessian  # of the other alpha, which preconditions all the same
        new.waited = 0.0 if state.hessian else state.waited + state.passes
        return new

    def first_mu(self, objective: Objective) -> float:
        """Return the smoothing to begin with: none for smooth risks."""
        return 0.0

    def resume(self, objective: Objective, state: State) -> None:
        """Compute scores and gradient at state.w (two passes, one at w = 0) and restore memory and plane."""
        assert isinstance(state, LbfgsState)
        objective.forget()
        p = objective.n_features
        self._curvature = CurvatureMemory(p, self.memory)
        self._bound = LowerBound(p, objective.alpha)
        self._curvature.restore(state.memory)
        self._preconditioner = Preconditioner(self.patience)
        self._objective = objective
        self._bound.restore(state.plane)
        self._point = self.first_point(objective, state, objective.scores_at_start(state.w))
        if (
            state.iteration == 0
            and math.isfinite(state.best_objective)
            and self._point.objective > state.best_objective
        ):
            # Samples have led to worse than w = 0, past a row that they did not hold, say: forget them.
            fresh = self.start(objective, np.zeros(p))
            state.w, state.mu, state.hessian = fresh.w, fresh.mu, {}
            self._curvature.clear()
            self._point = self.first_point(objective, state, objective.scores_at_start(state.w))
        self._spare: Scores = None  # a score vector that trial points may write to
        self._since_refresh = 0
        self._arrive(objective, state)
        self._preconditioner.restore(state.hessian, objective, self._curvature)  # its passes count from here

    def first_point(self, objective: Objective, state: LbfgsState, z: Scores) -> Point:
        """Return the point that the run begins or goes on with."""
        return objective.at(state.w, z, state.mu)

    def store(self, state: State) -> None:
        assert isinstance(state, LbfgsState)
        state.memory = dict(self._curvature.record())
        state.hessian = self._preconditioner.record(self._objective)
        state.plane = self._bound.record()

    def step(self, objective: Objective, state: State) -> bool:
        """Do one iteration: direction, line search on scores, new gradient, new bound."""
        assert isinstance(state, LbfgsState)
        self.adjust(objective, state)
        for _ in range(2):
            if self._move(objective, state):
                return True
            if self._curvature.empty:
                return False
            self._curvature.clear()  # a direction that does not descend: once more from the gradient alone
        return False

    def adjust(self, objective: Objective, state: LbfgsState) -> None:
        """Change the smoothing before an iteration; nothing to do for smooth risks."""

    def _move(self, objective: Objective, state: LbfgsState) -> bool:
        point = self._point
        d = self._curvature.direction(self._gradient)
        line = objective.line(point, d)
        slope = line.slope_at_start()
        line.use_buffers(self._spare, point.risk.grad)  # the gradient in z has done its work: trials reuse its memory
        first = 1.0
        if self._curvature.empty:
            reach = objective.space.max_abs(line.z_d, objective.risk.labels)
            first = 1.0 / reach if reach > 0.0 else 1.0  # let the scores move by a margin, whatever their scale
        step = strong_wolfe(line, point.value, slope, first)
        if step <= 0.0:
            self._point = objective.at(point.w, point.z, state.mu)  # the trials have overwritten its gradient
            self._spare = None
            return False
        new = line.accept(step)
        self._spare = point.z
        self._since_refresh += 1
        if self._since_refresh >= REFRESH_ITERATIONS:
            self._since_refresh = 0
            del line
            new = objective.at(new.w, objective.scores(new.w), state.mu, out=new.risk.grad)
        gradient = self._gradient
        self._point = new
        self._arrive(objective, state)
        self._curvature.add(self._point.w - point.w, self._gradient - gradient)
        return True

    def _arrive(self, objective: Objective, state: LbfgsState) -> None:
        """Move to a new point: compute its gradient (one pass), and update the bound and the best point."""
        if objective.free_intercept is not None:
            # The best intercept of a smoothed risk may be none of the risk.
            state.improve(self._point.w, self._point.objective)
            self._point = objective.centred(self._point)
        point = self._point
        state.w = point.w
        slope = objective.slope(point)
        self._gradient = objective.penalty_gradient(point.w) + slope
        level = min(state.best_objective, point.objective)
        state.lower_bound = self._bound.add(*objective.lower_bound_plane(point, slope, level))
        state.improve(point.w, point.objective)
