"""Cutting planes with one mixture instead of all planes: the line-search variant."""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from scoreline import kernels
from scoreline.objective import Objective
from scoreline.runtime.types import FloatArray
from scoreline.solvers.bundle import LARGEST_SQUARE, BundleSolver
from scoreline.solvers.common.base import Solver, State


@dataclass
class MixtureState(State):
    """State of `bundle_ls`: the mixture of planes (slope, constant), and what its rounding is relative to."""

    slope: FloatArray = field(default_factory=lambda: np.zeros(0))
    mixture: dict[str, float] = field(default_factory=dict)


class BundleLineSearchSolver(Solver):
    """Line-search variant of BMRM: every new plane is mixed into one plane by an exact step, memory is one vector.

    With v, c the mixture so far and a, b the new plane, the share of the old mixture is
    eta = clip((alpha (c - b) - <a, v - a>) / |v - a|^2, 0, 1) (eq. line-search-share). The bound is the value of the
    mixture, c - |v|^2 / (2 alpha); the value of the planes at w, which is printed in Zhang, Saha and Vishwanathan
    (2010) as the gap's other end, is none. Two passes per iteration. Slower than `bundle`; here as the papers' baseline.
    Options: those of Solver.
    """

    name = "bundle_ls"
    automatic = "never"
    research = True
    needs = "convex"
    prefers = BundleSolver.prefers
    slow = True
    state_class: ClassVar[type[State]] = MixtureState

    def start(self, objective: Objective, w0: FloatArray) -> MixtureState:
        """Return the state at w0."""
        return MixtureState(w=w0, best_w=w0)

    def resume(self, objective: Objective, state: State) -> None:
        """Compute the scores at w (no pass at w = 0)."""
        self._point = objective.at(state.w, objective.scores_at_start(state.w))
        state.improve(state.w, self._point.objective)

    def step(self, objective: Objective, state: State) -> bool:
        """Mix in the plane at w, and go to the mixture's minimum."""
        assert isinstance(state, MixtureState)
        point, alpha, dot = self._point, objective.alpha, kernels.vectors.dot
        slope = objective.slope(point)
        if not dot(slope, slope) / alpha < LARGEST_SQUARE:
            return False  # squares beyond the range of floats prove nothing, and lead nowhere
        new = {"constant": point.risk.plane, "size": objective.plane_size(point), "mass": point.risk.mass}
        if not state.mixture:
            state.slope, state.mixture = slope, new
        else:
            difference = state.slope - slope
            square, lead = dot(difference, difference), state.mixture["constant"] - new["constant"]
            if square > 0.0:
                share = min(1.0, max(0.0, (alpha * lead - dot(slope, difference)) / square))
            else:
                share = 1.0 if lead >= 0.0 else 0.0
            state.slope = share * state.slope + (1.0 - share) * slope
            state.mixture = {key: share * state.mixture[key] + (1.0 - share) * new[key] for key in new}
        bound = state.mixture["constant"] - dot(state.slope, state.slope) / (2.0 * alpha)
        terms = state.iteration + 1  # planes mixed so far, one after the other
        bound -= objective.mixture_allowance(state.slope, state.mixture["size"], state.mixture["mass"], terms)
        state.lower_bound = max(state.lower_bound, bound)
        w = -state.slope / alpha
        still = np.array_equal(w, state.w)
        state.w = w
        self._point = objective.at(w, objective.scores(w), out=point.risk.grad)
        state.improve(w, self._point.objective)
        return not still
