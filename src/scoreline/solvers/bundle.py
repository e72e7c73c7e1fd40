"""Cutting planes: minimise the maximum of all planes plus the penalty, add the plane at the minimum, and repeat."""

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from scoreline import kernels
from scoreline.objective import Objective, Point
from scoreline.runtime.checks import check_bool, check_number
from scoreline.runtime.types import AnyArray, FloatArray
from scoreline.solvers.common.base import Solver, State

PLANE_BYTES = 256 * 2**20  # memory for slopes, unless max_planes says otherwise
LEAST_PLANES, MOST_PLANES = 16, 2000  # beyond 2000 the Gram matrix takes 32 MB and the small problem as long as a pass
MOST_IDLE_ITERATIONS = 30  # that a plane without weight is kept
ARRAYS = ("slopes", "constants", "sizes", "masses", "weights", "ages")  # one entry for every plane
LARGEST_SQUARE = 1e300
MIXTURE_GAP = 1e-13  # the small problem is solved to this share of its size: a rounding


@dataclass
class BundleState(State):
    """State of the cutting-plane solvers: the planes, with the weights of their best mixture."""

    planes: dict[str, Any] = field(default_factory=dict)


class BundleSolver(Solver):
    """Cutting planes (BMRM; Teo, Vishwanathan, Smola and Le 2010), with the small problem solved in full.

    Every iteration adds the plane of a subgradient at w and moves to the minimum of the largest plane plus the penalty, whose
    value is a lower bound of min J. It supports every risk, smooth or not. Two passes per iteration; memory for at most
    `max_planes` slopes. Its iterations grow like 1/(alpha eps) in the worst case, and do so on the counter-examples of
    `scoreline.io.hard_for_cutting_planes`: `smoothed` is faster if it supports the risk, and `bundle_ocas` otherwise.

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
        state.improve(state.w, self._point.objective)

    def store(self, state: State) -> None:
        assert isinstance(state, BundleState)
        state.planes = self._planes.record()

    def step(self, objective: Objective, state: State) -> bool:
        """Add the plane at w, go to the minimum of all planes."""
        assert isinstance(state, BundleState)
        target = self._target(objective, state, self._point)
        if target is None:
            return False
        still = np.array_equal(target, state.w)
        state.w = target
        self._point = objective.at(target, objective.scores(target), out=self._point.risk.grad)
        state.improve(state.w, self._point.objective)
        return not still

    def _target(self, objective: Objective, state: BundleState, point: Point) -> FloatArray | None:
        """Add the plane at a point (one pass), and return the minimum of the largest plane plus the penalty, or None."""
        planes = self._planes
        if not planes.add(objective, point, objective.slope(point)):
            return None
        planes.solve(objective.alpha)
        slope = planes.mixture()
        state.lower_bound = max(state.lower_bound, planes.bound(objective, slope))
        planes.drop_idle()
        return np.asarray(-slope / objective.alpha)


@dataclass
class Planes:
    """Planes R(Xw) >= c_i + <v_i, w>, and the mixture t that bounds min J best: max <c, t> - |V't|^2 / (2 alpha).

    The point of the mixture is w = -V't / alpha, the minimum of alpha/2 |w|^2 + max_i c_i + <v_i, w>. Memory is that of
    the slopes, 8 p bytes a plane: `most` planes at most. One without weight for MOST_IDLE_ITERATIONS goes; where all have
    weight and there is no room, the two of least weight become one, which is a plane too. Every plane stays in its slot (a
    row of `slopes`) and a slot that is free is used again, so that nothing is moved; weights of free slots are 0.
    """

    slopes: FloatArray
    constants: FloatArray
    sizes: FloatArray  # what the rounding of constants is relative to, see Objective.plane_size
    masses: FloatArray
    weights: FloatArray
    ages: AnyArray
    gram: FloatArray
    live: AnyArray
    most: int = MOST_PLANES

    @classmethod
    def empty(cls, p: int, most: int | None, zero: bool) -> "Planes":
        """Return no planes, or the plane (0, 0), which lies below every risk."""
        if most is None:
            most = int(min(MOST_PLANES, max(LEAST_PLANES, PLANE_BYTES // (8 * max(p, 1)))))
        room = min(most, 32)
        arrays = {name: np.zeros(room) for name in ("constants", "sizes", "masses", "weights")}
        ages, live = np.zeros(room, dtype=np.int64), np.zeros(room, dtype=bool)
        planes = cls(slopes=np.zeros((room, p)), **arrays, ages=ages, gram=np.zeros((room, room)), live=live, most=most)
        if zero:
            planes.live[0], planes.weights[0] = True, 1.0
        return planes

    def record(self) -> dict[str, Any]:
        """Return the planes as plain arrays and numbers."""
        slots = np.flatnonzero(self.live)
        arrays = {name: getattr(self, name)[slots] for name in ARRAYS}
        return arrays | {"gram": self.gram[np.ix_(slots, slots)], "most": self.most}

    @classmethod
    def restored(cls, record: dict[str, Any]) -> "Planes":
        """Return the planes that `record` described."""
        fields = {name: np.array(value) for name, value in record.items() if name != "most"}
        return cls(**fields, live=np.ones(len(fields["constants"]), dtype=bool), most=int(record["most"]))

    def add(self, objective: Objective, point: Point, slope: FloatArray) -> bool:
        """Add the plane of an evaluation at a point with weight 0, in O(k p).

        Return False if squares of the slope overflow: such a plane proves nothing.
        """
        if not kernels.vectors.dot(slope, slope) / objective.alpha < LARGEST_SQUARE:
            return False
        first = not self.live.any()
        slot = self._free_slot()
        self.slopes[slot] = slope
        risk = point.risk
        self.constants[slot], self.sizes[slot], self.masses[slot] = risk.plane, objective.plane_size(point), risk.mass
        self.weights[slot], self.ages[slot], self.live[slot] = (1.0 if first else 0.0), 0, True
        self._relate(slot)
        return True

    def solve(self, alpha: float) -> None:
        """Find the best mixture (eq. cutting-planes), from the one before."""
        slots = np.flatnonzero(self.live)
        gram, constants, weights = self.gram[np.ix_(slots, slots)] / alpha, self.constants[slots], self.weights[slots]
        scale = np.abs(constants).max() + gram.diagonal().max()
        kernels.simplex.maximise(gram, constants, weights, MIXTURE_GAP * scale, 20 * len(slots) + 100)
        self.weights[slots] = weights
        self.ages[slots] = np.where(weights > 0.0, 0, self.ages[slots] + 1)

    def mixture(self) -> FloatArray:
        """Return the slope V't of the mixture. O(k p)."""
        used = self._used()
        return np.asarray(self.weights[:used] @ self.slopes[:used])

    def bound(self, objective: Objective, slope: FloatArray) -> float:
        """Return the lower bound of the mixture with that slope, less what rounding may have added."""
        size, mass, constant = (float(self.weights @ a) for a in (self.sizes, self.masses, self.constants))
        value = constant - kernels.vectors.dot(slope, slope) / (2.0 * objective.alpha)
        return value - objective.mixture_allowance(slope, size, mass, terms=int(np.count_nonzero(self.live)))

    def drop_idle(self) -> None:
        """Drop planes that had no weight for MOST_IDLE_ITERATIONS."""
        self.live &= self.ages <= MOST_IDLE_ITERATIONS

    def _used(self) -> int:
        """Return one more than the last slot in use."""
        return int(np.flatnonzero(self.live)[-1]) + 1

    def keep_at_most(self, most: int) -> None:
        """Drop the planes longest without weight, and merge those of least weight, until `most` are left."""
        while np.count_nonzero(self.live) > most:
            slots = np.flatnonzero(self.live)
            oldest = int(slots[np.argmax(self.ages[slots])])
            if self.weights[oldest] > 0.0:
                self._merge(*slots[np.argsort(self.weights[slots])[:2]])
            else:
                self.live[oldest] = False

    def _free_slot(self) -> int:
        self.keep_at_most(self.most - 1)
        room = len(self.live)
        if self.live.all():
            more = min(self.most, 2 * room + 1) - room
            for name in (*ARRAYS, "live"):
                old = getattr(self, name)
                setattr(self, name, np.concatenate([old, np.zeros((more, *old.shape[1:]), dtype=old.dtype)]))
            self.gram = np.pad(self.gram, (0, more))
        return int(np.argmin(self.live))

    def _merge(self, i: int, j: int) -> None:
        """Replace two planes with weight by their mixture in slot i."""
        both = self.weights[i] + self.weights[j]
        a, b = self.weights[i] / both, self.weights[j] / both
        for name in ("slopes", "constants", "sizes", "masses"):
            array = getattr(self, name)
            array[i] = a * array[i] + b * array[j]
        self.weights[i], self.weights[j], self.live[j] = both, 0.0, False
        self._relate(i)

    def _relate(self, slot: int) -> None:
        used = self._used()
        self.gram[slot, :used] = self.gram[:used, slot] = self.slopes[:used] @ self.slopes[slot]
