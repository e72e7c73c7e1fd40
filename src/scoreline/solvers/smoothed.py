"""L-BFGS on the smoothed risk, with the smoothing chosen and lowered by the duality gap of the risk itself."""

from typing import Any

from scoreline.objective import Objective, Point
from scoreline.risks.base import Hessian
from scoreline.runtime.checks import check_bool, check_number
from scoreline.runtime.types import Scores
from scoreline.solvers.common.base import State
from scoreline.solvers.common.hessian import has_factor
from scoreline.solvers.common.sample_start import Sampled
from scoreline.solvers.lbfgs import LbfgsSolver, LbfgsState

# Lower mu when the slack is this share of the gap, by this factor; on six sets 0.1 to 0.5 and 0.1 to 0.3 differ by 5 %.
SLACK_SHARE, MU_FACTOR = 0.3, 0.3
FIRST_WIDTH = 0.03  # of the ramp, in units of the margin. On 8 sets 0.1 took 6 % longer to 1 % of the optimum
LEAST_HESSIAN_WIDTH = 0.5  # of the ramp that the Hessian is made of. On 3 sets 0.1 took 5 % more passes
# Take the Hessian of the ramp itself where its curvature is this many times that of a ramp of LEAST_HESSIAN_WIDTH: on 25 sets a
# third fewer passes for PRBEP and 8 % fewer for the hinge (geometric means). 5 costs 20 % more on w8a, 20 gains half as much.
PILED_UP_RATIO = 10.0
# Make the first Hessian at the start if it costs no more passes: gains on covtype (4 passes), loses on 100 dense columns (8).
CHEAP_HESSIAN_PASSES, CHEAP_HESSIAN_FEATURES = 6.0, 300  # beyond, p x p sums leave the cache
CHEAP_ON_SAMPLE_PASSES = 30.0  # on a sample, whose Hessian may serve all rows
MOST_REDUCTIONS = 30  # 0.3^30 is the rounding of 1: a narrower ramp is no ramp


class SmoothedSolver(LbfgsSolver):
    """Smoothing for multivariate scores (Zhang, Saha and Vishwanathan 2012), without a smoothing constant to tune.

    R_mu is a ramp of width mu * ramp_scale away from R. The gap at a point splits into two parts that are both known:
    slack (how far the plane lies below R there, which shrinks with mu) and |grad J_mu|^2 / (2 alpha) (which shrinks as
    L-BFGS converges). When the slack is a large part of the duality gap, mu is lowered: one more product X'u, no Xw. Up to 1000
    features L-BFGS starts from a factored Hessian, which makes it far less sensitive to alpha and to the scale of features.

    Parameters
    ----------
    mu : float, optional
        Fixed smoothing; by default it is chosen and lowered.
    c_mu : float, optional
        The paper's fixed smoothing mu = c_mu abs_tol / D (`Risk.prox_bound`) (eq. paper-mu). It used 10; only up to 1/2
        is a guarantee.
    precondition : bool
        Start L-BFGS from a Hessian where there are at most 1000 features and X can be read in blocks.
    **options
        memory, tol, max_iter, max_time, abs_tol, callbacks: see LbfgsSolver and Solver.
    """

    name = "smoothed"
    reason = "the risk has kinks"
    needs = "smoothable"
    patience = 3.0  # 2551 passes in place of 4189 with 1 on dense mnist, PRBEP, alpha 1e-6, tol 1e-3

    def __init__(self, mu: float | None = None, c_mu: float | None = None, precondition: bool = True, **options: Any):
        super().__init__(**options)
        if c_mu is not None:
            check_number("c_mu", c_mu, above=0)
            if mu is not None or self.abs_tol is None:
                raise ValueError(
                    f"c_mu={c_mu!r} fixes mu = c_mu * abs_tol / D: give abs_tol, the papers' epsilon, and no mu "
                    f"(got abs_tol={self.abs_tol!r}, mu={mu!r})"
                )
        self.c_mu = c_mu
        check_bool("precondition", precondition)
        self.precondition = precondition
        if mu is not None:
            check_number("mu", mu, above=0)
        self.mu = mu

    def first_mu(self, objective: Objective) -> float:
        """Return the fixed mu, or one whose ramp is a small part of the margin."""
        if self.c_mu is not None:
            assert self.abs_tol is not None
            return self.c_mu * self.abs_tol / objective.risk.prox_bound
        return self.mu if self.mu is not None else FIRST_WIDTH / objective.risk.ramp_scale

    def continued(self, objective: Objective, sampled: Sampled) -> LbfgsState:
        """Go on with the ramp of the sample, too: its width is in units of the scores."""
        state = super().continued(objective, sampled)
        if self._cheap(objective):
            state.hessian = {}
        if not self._fixed:
            state.mu = sampled.state.mu * sampled.ramp_scale / objective.risk.ramp_scale
        return state

    @property
    def _fixed(self) -> bool:
        return self.mu is not None or self.c_mu is not None

    def resume(self, objective: Objective, state: State) -> None:
        """Compute scores and gradient at state.w; a Hessian that is not cheap waits until enough has been spent."""
        super().resume(objective, state)
        assert isinstance(state, LbfgsState)
        if self._preconditioner.factor is None and not self._cheap(objective):
            left = max(0.0, self._preconditioner.interval(objective) - state.waited)
            self._preconditioner.due = objective.operator.n_passes + left

    def _cheap(self, objective: Objective) -> bool:
        operator = objective.operator
        most = CHEAP_ON_SAMPLE_PASSES if self.eager else CHEAP_HESSIAN_PASSES
        return operator.gram_passes() <= most and operator.shape[1] <= CHEAP_HESSIAN_FEATURES

    def first_point(self, objective: Objective, state: LbfgsState, z: Scores) -> Point:
        """Return the first point; from given coefficients with the smoothing of the end, found on scores alone.

        They are near an optimum already, and a wide ramp would lead away from it first.
        """
        point = super().first_point(objective, state, z)
        if not self._fixed and state.iteration == 0 and state.w.any():
            allowed = SLACK_SHARE * (self.tol * point.objective if self.abs_tol is None else self.abs_tol)
            for _ in range(MOST_REDUCTIONS):
                if objective.slack(point) <= allowed or not self._wide(objective, state, z):
                    break
                state.mu *= MU_FACTOR
                point = objective.at(state.w, z, state.mu, out=point.risk.grad)
        return point

    def adjust(self, objective: Objective, state: LbfgsState) -> None:
        """Lower mu if the slack it causes is a large part of the gap, and the ramp stays wider than roundings of scores."""
        gap = state.best_objective - state.lower_bound
        too_wide = not self._fixed and objective.slack(self._point) >= SLACK_SHARE * gap
        if too_wide and self._wide(objective, state, self._point.z):
            state.mu *= MU_FACTOR
            self._point = objective.at(self._point.w, self._point.z, state.mu, out=self._point.risk.grad)
            self._arrive(objective, state)
        self._precondition(objective, state)

    def _wide(self, objective: Objective, state: LbfgsState, z: Scores) -> bool:
        """Tell whether the next ramp is wide enough to prove something."""
        return MU_FACTOR * state.mu * objective.risk.ramp_scale > objective.least_width(z)

    def _precondition(self, objective: Objective, state: LbfgsState) -> None:
        """Make the Hessian again if it is due (see NewtonSolver), of a ramp wide enough to hold more than a few rows."""
        # As the ramp narrows, the Hessian of the smoothed risk becomes that of the few rows on it; what L-BFGS needs is the
        # density of rows around the margin. At w = 0 all rows are on a ramp of width 2: their covariance within the classes.
        # Only for PRBEP with less than a fifth of positives these are not, and then the Hessian has to wait.
        if self.precondition and has_factor(objective):
            self._preconditioner.renew(objective, self._curvature, lambda: ramp_hessian(objective, self._point))


def ramp_hessian(objective: Objective, point: Point) -> Hessian | None:
    """Return the Hessian of a ramp that suits the point; at w = 0 only if both classes have a part in it."""
    # Near the optimum of a problem with few rows per feature, the rows around the margin pile up at the kink. They have no
    # density there: a wide ramp takes their curvature for hundreds of times too small, and L-BFGS needs thousands of
    # iterations to find it out. The Hessian of the ramp itself is right then, if it is exact: that of the ROC area takes
    # the pairs on the ramp as independent, which holds for many pairs only.
    risk, space, z = objective.risk, objective.space, point.z
    at_start = not objective.has_features(point.w)
    if at_start and point.w.any():  # a constant score, on whose ramp one class lies at the very end
        z = space.zeros(risk.labels)
    own_mu = 1.01 * point.mu  # a little wider than the ramp, on the end of which all rows may lie
    hessian = risk.hessian(z, max(own_mu, (2.0 if at_start else LEAST_HESSIAN_WIDTH) / risk.ramp_scale))
    if hessian is None:
        return None
    if not at_start:
        own = risk.hessian(z, own_mu) if hessian.exact else None
        piled_up = own is not None and space.total(own.diagonal) > PILED_UP_RATIO * space.total(hessian.diagonal)
        return own if piled_up else hessian
    sides = [space.total(space.select(hessian.diagonal, risk.labels, side)) for side in (1, -1)]
    return hessian if min(sides) > 0.0 else None
