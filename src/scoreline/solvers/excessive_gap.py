"""Nesterov's excessive gap technique: primal and dual iterates whose gap falls like 1/k^2."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.sparse.linalg import LinearOperator, eigsh

from scoreline.measures import CountsBasedMeasure, Measure
from scoreline.objective import Objective
from scoreline.risks import Risk
from scoreline.runtime.checks import check_number
from scoreline.runtime.types import FloatArray, Scores
from scoreline.solvers.common.base import Solver, State
from scoreline.solvers.common.lower_bound import LowerBound

LEAST_CURVATURE = 1e-30  # with less, one step takes every beta to an end of its box
LANCZOS_MARGIN = 1.05  # over the estimated Lipschitz constant, which Lanczos' method finds from below


@dataclass
class ExcessiveGapState(State):
    """State plus the dual point (as the gradient in the scores that belongs to it, and its constant), mu, L and planes."""

    dual: FloatArray = field(default_factory=lambda: np.zeros(0))
    constant: float = 0.0
    size: float = 0.0
    mu: float = 0.0
    lipschitz: float = 0.0
    point: FloatArray = field(default_factory=lambda: np.zeros(0))
    steps: int = 0
    plane: dict[str, Any] = field(default_factory=dict)


class ExcessiveGapSolver(Solver):
    """Excessive gap technique for the support vector machine with a free intercept (Nesterov 2005).

    The dual point beta lies in the box with one equality, w(beta) = X'(y s beta) / (S alpha) (eq. excessive-gap-dual).
    With t = 2 / (k + 3), iteration k computes beta^ = (1 - t) beta + t beta_mu(w), where beta_mu is the dual point of the
    smoothed risk at w. Then w becomes (1 - t) w + t w(beta^), beta becomes the projection of beta^ + (1 - y X w(beta^)) / L,
    and mu is multiplied by 1 - t. The gap is at most 4 L D / ((k + 1)(k + 2)) with D = min(S+, S-) / S
    (eq. excessive-gap-rate), on any data. A step takes two passes over X and two selections. L is the largest eigenvalue of
    X'SX / (S alpha), which Lanczos' method finds before the first step. A warm start is only a candidate for the result.

    Parameters
    ----------
    lipschitz : float, optional
        L, if it is known; by default it is estimated and multiplied by 1.05.
    **options
        tol, max_iter, max_time, abs_tol, callbacks: see Solver.
    """

    name = "excessive_gap"
    takes_base_scores = False
    automatic = "never"
    research = True
    needs = "hinge_free_intercept"
    prefers = ("hinge_free_intercept",)
    slow = True
    state_class = ExcessiveGapState

    def __init__(self, lipschitz: float | None = None, **options: Any):
        super().__init__(**options)
        if lipschitz is not None:
            check_number("lipschitz", lipschitz, above=0)
        self.lipschitz = lipschitz

    @classmethod
    def serves(cls, risk: Risk | type[Risk]) -> bool:
        return bool(risk.name == "hinge_free_intercept")

    @classmethod
    def trains(cls, measure: Measure | type[Measure]) -> bool:
        return issubclass(measure if isinstance(measure, type) else type(measure), CountsBasedMeasure)

    def start(self, objective: Objective, w0: FloatArray) -> ExcessiveGapState:
        """Return the state at w0; the method itself begins at w = 0, beta = 0."""
        p = objective.n_features
        return ExcessiveGapState(w=w0, best_w=w0, point=np.zeros(p))

    def resume(self, objective: Objective, state: State) -> None:
        """Compute scores of the primal point; at the start also L and the first dual point."""
        assert isinstance(state, ExcessiveGapState)
        self._bound = LowerBound(objective.n_features, objective.alpha)
        self._bound.restore(state.plane)
        if state.lipschitz == 0.0:
            given = objective.at(state.w, objective.scores_at_start(state.w), grad=False).objective
            state.improve(state.w, given)
            state.lipschitz = largest_curvature(objective) if self.lipschitz is None else self.lipschitz
            state.mu = 2.0 * state.lipschitz
            self._z = objective.space.zeros(objective.risk.labels)
            self._project(objective, state, 0.0 * self._z, self._z)
        else:
            self._z = objective.scores_at_start(state.point)
        state.w = state.point
        state.lower_bound = max(state.lower_bound, self._bound.value)
        self._meet(objective, state)

    def store(self, state: State) -> None:
        assert isinstance(state, ExcessiveGapState)
        state.plane = self._bound.record()

    def step(self, objective: Objective, state: State) -> bool:
        """Do one iteration (eq. excessive-gap-step)."""
        assert isinstance(state, ExcessiveGapState)
        space, alpha, t = objective.space, objective.alpha, 2.0 / (state.steps + 3.0)
        point = self._met
        dual = space.combine(1.0 - t, state.dual, t, point.risk.grad)
        constant = (1.0 - t) * state.constant + t * point.risk.plane
        size = (1.0 - t) * state.size + t * objective.plane_size(point)
        slope = objective.operator.rmatvec(dual)
        allowance = objective.mixture_allowance(slope, size, constant)  # the mass of a plane is its constant here
        state.lower_bound = max(state.lower_bound, self._bound.add(slope, constant, allowance))
        w = slope / -alpha
        z = objective.scores(w)
        state.w = (1.0 - t) * state.w + t * w
        self._z = space.combine(1.0 - t, self._z, t, z)
        state.point = state.w
        self._project(objective, state, dual, z)
        state.mu *= 1.0 - t
        state.steps += 1
        self._meet(objective, state)
        return True

    def _meet(self, objective: Objective, state: ExcessiveGapState) -> None:
        """Evaluate the primal point: J, and the dual point of the smoothed risk that the next step takes."""
        self._met = objective.at(state.w, self._z, state.mu / objective.risk.ramp_scale)
        state.improve(state.w, self._met.objective)

    def _project(self, objective: Objective, state: ExcessiveGapState, dual: Scores, z: Scores) -> None:
        """Set the dual point: the projection of beta + (1 - y z) / L onto the box with one equality."""
        # With signed beta, B = y beta = -S g / s, both classes read as one balance of z / L - B with the margins 1 / L.
        labels, space, inverse = objective.risk.labels, objective.space, 1.0 / state.lipschitz
        total = labels.total
        shifted = space.combine(inverse, z, total, space.per_weight(dual, labels))
        sums = space.balance_sums(shifted, labels, 2.0 * inverse, 1.0, 1.0 / total, None, True)
        state.dual, state.constant = sums.grad, 2.0 * sums.moved / total
        state.size = state.constant * (1.0 + space.max_abs(shifted, labels) * state.lipschitz)


def largest_curvature(objective: Objective) -> float:
    """Return an upper estimate of the largest eigenvalue of X'SX / (S alpha), S = diag(s); a few passes."""
    operator, labels, space = objective.operator, objective.risk.labels, objective.space
    p = operator.shape[1]

    def product(v: FloatArray) -> FloatArray:
        return operator.rmatvec(space.weighted(operator.matvec(np.asarray(v, dtype=np.float64).ravel()), labels))

    if p <= 2:
        matrix = np.column_stack([product(row) for row in np.eye(p)])
        largest = float(np.linalg.eigvalsh(0.5 * (matrix + matrix.T))[-1])
    else:
        start = np.cos(np.arange(p))  # any vector that is not special
        if not product(start).any():
            return 1.0  # X = 0: any constant will do
        found = eigsh(
            LinearOperator((p, p), matvec=product), k=1, which="LA", v0=start, tol=1e-2, return_eigenvectors=False
        )
        largest = float(found[0])
    # A constant that is too large does no harm, and of one that is 0, or below the roundings of beta, there is no inverse.
    return max(LANCZOS_MARGIN * largest / (labels.total * objective.alpha), LEAST_CURVATURE)
