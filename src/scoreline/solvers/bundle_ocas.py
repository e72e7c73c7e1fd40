"""Cutting planes from the best point so far, with a line search on the scores."""

import numpy as np

from scoreline.objective import Objective
from scoreline.runtime.types import Scores
from scoreline.solvers.bundle import BundleSolver, BundleState
from scoreline.solvers.common.base import State
from scoreline.solvers.common.line_minimum import LineMinimum

SHARE_AHEAD = 0.1  # of the way from the best point to the minimum of the planes, where the next plane is added
LINE_GAP_SHARE = 0.02  # the search on the line ends within this share of the proved gap
MOST_IDLE_STEPS = 20  # iterations without a better point or bound after which rounding is all there is
REFRESH_ITERATIONS = 50  # iterations after which the scores of the best point are computed anew: rounding adds up


class BundleOcasSolver(BundleSolver):
    """Optimised cutting planes (OCAS; Franc and Sonnenburg 2009), for every risk.

    The minimum of the planes is a target, not the next point: J is minimised on the line from the best point so far to it
    (within 2 % of the proved gap, or 25 trials), which costs evaluations of the risk on scores but no pass over X, and the
    next plane is taken a little beyond that point. The objective never rises, and far fewer planes are needed than with
    `bundle`. Two passes an iteration.

    Parameters
    ----------
    **options
        max_planes, zero_plane: see BundleSolver. tol, max_iter, max_time, abs_tol, callbacks, init: see Solver.
    """

    name = "bundle_ocas"
    automatic = "fallback"
    research = False
    reason = "the risk has no smoothed version"
    _risk_best: float
    _grad_best: Scores

    def resume(self, objective: Objective, state: State) -> None:
        """Compute scores and subgradients at w and at the best point (one and the same at the start)."""
        super().resume(objective, state)
        space, z = objective.space, self._point.z
        own = np.array_equal(state.best_w, state.w)
        self._z_best = space.combine(1.0, z, 0.0, z) if own else objective.scores(state.best_w)
        self._at_best(objective, state)
        self._share, self._idle = 1.0, 0

    def release(self) -> None:
        super().release()
        for name in ("_z_best", "_grad_best", "_risk_best"):
            self.__dict__.pop(name, None)

    def step(self, objective: Objective, state: State) -> bool:
        """Plane at the point ahead, minimum of the planes, line search from the best point (eq. ocas-step)."""
        assert isinstance(state, BundleState)
        space, before = objective.space, (state.best_objective, state.lower_bound)
        target = self._target(objective, state, self._point)
        if target is None:
            return False
        if state.iteration % REFRESH_ITERATIONS == REFRESH_ITERATIONS - 1:
            self._z_best = objective.scores(state.best_w)
            self._at_best(objective, state)
        scratch = objective.scores(target)
        d, z_d = target - state.best_w, space.combine(1.0, scratch, -1.0, self._z_best)
        line = LineMinimum(objective, state.best_w, self._z_best, d, z_d, self._risk_best)
        error = LINE_GAP_SHARE * (state.best_objective - state.lower_bound)
        best, self._grad_best, other = line.search(self._grad_best, scratch, self._point.risk.grad, self._share, error)
        if best.share > 0.0:
            state.best_objective, state.best_w, self._risk_best = best.value, state.best_w + best.share * d, best.risk
            self._z_best = space.combine(1.0, self._z_best, best.share, z_d, self._z_best)
            self._share = min(1.0, best.share)
        ahead = SHARE_AHEAD * (1.0 - best.share) if best.share < 1.0 else 0.0
        state.w = state.best_w + ahead * d
        self._point = objective.at(state.w, space.combine(1.0, self._z_best, ahead, z_d, scratch), out=other)
        self._idle = self._idle + 1 if before == (state.best_objective, state.lower_bound) else 0
        return bool(d.any()) and self._idle < MOST_IDLE_STEPS

    def _at_best(self, objective: Objective, state: State) -> None:
        point = objective.at(state.best_w, self._z_best)
        state.best_objective, self._grad_best, self._risk_best = point.hard, point.risk.grad, point.risk.hard
