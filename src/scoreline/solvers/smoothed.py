"""L-BFGS on the smoothed risk, with the smoothing chosen and lowered by the proved gap of the risk itself."""

from typing import Any

from scoreline._checks import check_number
from scoreline._typing import Scores
from scoreline.objective import Objective, Point
from scoreline.solvers.lbfgs import LbfgsSolver, LbfgsState

# Lower mu when the slack is this share of the gap, by this factor. From a grid over six data sets, two risks, two alphas
# and two tolerances: shares of 0.1 to 0.5 and factors of 0.1 and 0.3 differ by 5 % in passes on average.
SHARE, FACTOR = 0.3, 0.3
MOST_REDUCTIONS = 30  # 0.3^30 is the rounding of 1: a narrower ramp is no ramp


class SmoothedSolver(LbfgsSolver):
    """Smoothing for multivariate scores (Zhang, Saha and Vishwanathan 2012), without a smoothing constant to tune.

    R_mu is a ramp of width mu * ramp_scale away from R. The gap at a point splits into two parts that are both known:
    slack (how far the plane lies below R there, which shrinks with mu) and |grad J_mu|^2 / (2 alpha) (which shrinks as
    L-BFGS converges). When the slack is a large part of the proved gap, mu is lowered: one more product X'u, no Xw.

    Parameters
    ----------
    mu : float, optional
        Fixed smoothing; by default it is chosen and lowered.
    **options
        memory, tol, max_iter, max_time, abs_tol, callbacks: see LbfgsSolver and Solver.
    """

    name = "smoothed"
    needs = "smoothable"

    def __init__(self, mu: float | None = None, **options: Any):
        super().__init__(**options)
        if mu is not None:
            check_number("mu", mu, above=0)
        self.mu = mu

    def first_mu(self, objective: Objective) -> float:
        """Return the fixed mu, or one whose ramp is as wide as the margin."""
        return self.mu if self.mu is not None else 1.0 / objective.risk.ramp_scale

    def first_point(self, objective: Objective, state: LbfgsState, z: Scores) -> Point:
        """Return the first point; from given coefficients with the smoothing of the end, found on scores alone.

        They are near an optimum already, and a wide ramp would lead away from it first.
        """
        point = super().first_point(objective, state, z)
        if self.mu is None and state.iteration == 0 and state.w.any():
            aim = SHARE * (self.tol * point.hard if self.abs_tol is None else self.abs_tol)
            for _ in range(MOST_REDUCTIONS):
                if self._slack(objective, point) <= aim:
                    break
                state.mu *= FACTOR
                point = objective.at(state.w, z, state.mu, out=point.risk.grad)
        return point

    def adjust(self, objective: Objective, state: LbfgsState) -> None:
        """Lower mu if the slack it causes is a large part of the gap."""
        if self.mu is not None:
            return
        gap = state.best_objective - state.lower_bound
        if self.slack < SHARE * gap:
            return
        state.mu *= FACTOR
        self._point = objective.at(self._point.w, self._point.z, state.mu, out=self._point.risk.grad)
        self._arrive(objective, state)

    def _slack(self, objective: Objective, point: Point) -> float:
        return point.risk.hard - point.risk.plane - objective.space.dot(point.risk.grad, point.z)
