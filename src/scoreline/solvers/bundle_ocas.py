"""Cutting planes from the best point so far, with a line search on the scores."""

from dataclasses import dataclass

import numpy as np

from scoreline import kernels
from scoreline.objective import Objective
from scoreline.runtime.types import FloatArray, Scores
from scoreline.solvers.bundle import BundleSolver, BundleState
from scoreline.solvers.common.base import State

SHARE_TOWARDS_MINIMUM = (
    0.1  # of the way from the best point to the minimum of the planes, where the next plane is added
)
LINE_GAP_SHARE = 0.02  # the search on the line ends within this share of the duality gap
MOST_IDLE_STEPS = 20  # iterations without a better point or bound after which rounding is all there is
REFRESH_ITERATIONS = 50  # iterations after which the scores of the best point are computed again: rounding adds up
MOST_TRIALS = 25
WIDENING = 4.0  # while J still falls at a trial, the next lies so many times as far
SLOW_SHRINKING = 0.7  # bisect if the bracket has not shrunk to this share


class BundleOcasSolver(BundleSolver):
    """Optimised cutting planes (OCAS; Franc and Sonnenburg 2009), for every risk.

    The minimum of the planes is a target, not the next point. J is minimised on the line from the best point so far to the
    target, within 2 % of the duality gap or 25 trials. This needs evaluations of the risk on scores but no pass over X. The
    next plane is added a little beyond that point. The objective never increases, and far fewer planes are needed than with
    `bundle`. An iteration costs two passes.

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
        ahead = SHARE_TOWARDS_MINIMUM * (1.0 - best.share) if best.share < 1.0 else 0.0
        state.w = state.best_w + ahead * d
        self._point = objective.at(state.w, space.combine(1.0, self._z_best, ahead, z_d, scratch), out=other)
        self._idle = self._idle + 1 if before == (state.best_objective, state.lower_bound) else 0
        return bool(d.any()) and self._idle < MOST_IDLE_STEPS

    def _at_best(self, objective: Objective, state: State) -> None:
        point = objective.at(state.best_w, self._z_best)
        state.best_objective, self._grad_best, self._risk_best = point.objective, point.risk.grad, point.risk.hard


@dataclass
class End:
    """One end of the bracket: where it is, R there, its slope along the line, and J."""

    share: float
    risk: float
    slope: float
    value: float


class LineMinimum:
    """Minimise J(w + s d) over s >= 0 with scores z + s z_d; J is convex, so tangents on two sides bound what is left.

    `z_trial` and `grad_trial` are written to; the subgradient at the best s is kept in `grad_best`, which may trade places
    with `grad_trial`.
    """

    def __init__(self, objective: Objective, w: FloatArray, z: Scores, d: FloatArray, z_d: Scores, risk: float):
        dot = kernels.vectors.dot
        self._objective, self._z, self._z_d = objective, z, z_d
        alpha = objective.alpha
        self._penalty = 0.5 * alpha * dot(w, w), alpha * dot(w, d), alpha * dot(d, d)
        self._risk = risk

    def search(
        self, grad_best: Scores, z_trial: Scores, grad_trial: Scores, first: float, error: float
    ) -> tuple[End, Scores, Scores]:
        """Return the best end, its subgradient, and the other buffer; within `error` of the minimum, or after MOST_TRIALS.

        Parameters
        ----------
        grad_best : scores
            Subgradient of R at s = 0.
        z_trial, grad_trial : scores
            Scratch.
        first : float
            First trial.
        error : float
            What may be left to gain.
        """
        space = self._objective.space
        low = best = self._end(0.0, self._risk, space.dot(grad_best, self._z_d))
        high: End | None = None
        trial, before = first, float("inf")
        if low.slope + self._slope(0.0) >= 0.0:  # d does not lead down
            return best, grad_best, grad_trial
        for _ in range(MOST_TRIALS):
            z = space.combine(1.0, self._z, trial, self._z_d, z_trial)
            result = self._objective.risk.evaluate(z, out=grad_trial)
            grad_trial = result.grad  # what cannot be written to is recomputed
            end = self._end(trial, result.hard, space.dot(result.grad, self._z_d))
            if end.value < best.value:
                best, grad_best, grad_trial = end, grad_trial, grad_best
            if end.slope + self._slope(trial) < 0.0:
                low = end
            else:
                high = end
            if high is None:
                trial = WIDENING * trial
                continue
            trial, bound = self._model(low, high)
            width = high.share - low.share
            if best.value - bound <= error or width <= 1e-12 * high.share:
                break
            if width > SLOW_SHRINKING * before or not low.share < trial < high.share:
                trial = 0.5 * (low.share + high.share)
            before = width
        return best, grad_best, grad_trial

    def _end(self, share: float, risk: float, slope: float) -> End:
        constant, linear, square = self._penalty
        return End(share, risk, slope, constant + share * (linear + 0.5 * share * square) + risk)

    def _slope(self, share: float) -> float:
        return self._penalty[1] + share * self._penalty[2]

    def _model(self, low: End, high: End) -> tuple[float, float]:
        """Return where the larger of the two tangents of R plus the penalty is least, and that value: a lower bound of J."""
        constant, linear, square = self._penalty
        rise = high.slope - low.slope
        if rise <= 0.0:  # one straight piece
            share = 0.5 * (low.share + high.share)
        else:
            share = (low.risk - low.slope * low.share - high.risk + high.slope * high.share) / rise
        for end, side in ((low, 1.0), (high, -1.0)):
            if square > 0.0:
                own = -(linear + end.slope) / square  # least of this tangent plus the penalty
                if side * own < side * share:
                    share = own
                    break
        share = min(max(share, low.share), high.share)
        risk = max(end.risk + end.slope * (share - end.share) for end in (low, high))
        return share, constant + share * (linear + 0.5 * share * square) + risk
