"""Cutting planes: minimise the largest of all planes met, plus the penalty; add the plane there; repeat."""

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from scoreline.objective import Objective, Point
from scoreline.runtime.checks import check_bool, check_number
from scoreline.runtime.types import FloatArray
from scoreline.solvers.common.base import Solver, State
from scoreline.solvers.common.planes import Planes


@dataclass
class BundleState(State):
    """State of the cutting-plane solvers: the planes, with the weights of their best mixture."""

    planes: dict[str, Any] = field(default_factory=dict)


class BundleSolver(Solver):
    """Cutting planes (BMRM; Teo, Vishwanathan, Smola and Le 2010), with the small problem solved in full.

    Every iteration adds the plane of a subgradient at w and moves to the minimum of the largest plane plus the penalty, whose
    value is a lower bound of min J. It serves every risk, smooth or not. Two passes an iteration; memory for at most
    `max_planes` slopes. Its iterations grow like 1/(alpha eps) in the worst case, and do so on the counter-examples of
    `scoreline.io.hard_for_cutting_planes`: `smoothed` is faster wherever it applies, `bundle_ocas` elsewhere.

    Parameters
    ----------
    max_planes : int, optional
        Planes kept at most, 8 p bytes each; by default as many as 256 MiB hold, between 16 and 2000.
    zero_plane : bool
        Begin with the plane R >= 0. The papers do not.
    **options
        tol, max_iter, max_time, abs_tol, callbacks, init: see Solver.
    """

    name = "bundle"
    automatic = "never"
    research = True
    needs = "convex"
    prefers = ("prbep", "partial_roc", "average_precision", "contingency")  # risks made for the measure
    state_class: ClassVar[type[State]] = BundleState

    def __init__(self, max_planes: int | None = None, zero_plane: bool = True, **options: Any):
        super().__init__(**options)
        if max_planes is not None:
            check_number("max_planes", max_planes, least=2, integer=True)
        check_bool("zero_plane", zero_plane)
        self.max_planes, self.zero_plane = max_planes, zero_plane

    def start(self, objective: Objective, w0: FloatArray) -> BundleState:
        """Return the state at w0."""
        return BundleState(w=w0, best_w=w0, lower_bound=0.0 if self.zero_plane else -np.inf)

    def resume(self, objective: Objective, state: State) -> None:
        """Compute the scores at w (no pass at w = 0) and bring the planes back."""
        assert isinstance(state, BundleState)
        if state.planes:
            self._planes = Planes.restored(state.planes)
            if self.max_planes is not None:
                self._planes.most = self.max_planes
                self._planes.keep_at_most(self.max_planes)
        else:
            self._planes = Planes.empty(objective.n_features, self.max_planes, self.zero_plane)
        self._point = objective.at(state.w, objective.scores_at_start(state.w))
        self._see(state, self._point)

    def store(self, state: State) -> None:
        assert isinstance(state, BundleState)
        state.planes = self._planes.record()

    def release(self) -> None:
        for name in ("_planes", "_point"):
            self.__dict__.pop(name, None)

    def step(self, objective: Objective, state: State) -> bool:
        """Add the plane at w, go to the minimum of all planes."""
        assert isinstance(state, BundleState)
        target = self._target(objective, state, self._point)
        if target is None:
            return False
        still = np.array_equal(target, state.w)
        state.w = target
        self._point = objective.at(target, objective.scores(target), out=self._point.risk.grad)
        self._see(state, self._point)
        return not still

    def _target(self, objective: Objective, state: BundleState, point: Point) -> FloatArray | None:
        """Take in the plane at a point (one pass), and return where the largest plane plus the penalty is least, if it can."""
        planes = self._planes
        if not planes.add(objective, point, objective.slope(point)):
            return None
        planes.solve(objective.alpha)
        slope = planes.mixture()
        state.lower_bound = max(state.lower_bound, planes.bound(objective, slope))
        planes.drop_idle()
        return np.asarray(-slope / objective.alpha)

    def _see(self, state: State, point: Point) -> None:
        if point.hard < state.best_objective:
            state.best_objective, state.best_w = point.hard, point.w
