"""The planes below the risk that cutting-plane solvers collect, and the point where their maximum plus the penalty is least."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from scoreline import kernels
from scoreline._typing import AnyArray, FloatArray
from scoreline.objective import Objective, Point

PLANE_BYTES = 256 * 2**20  # memory for slopes, unless max_planes says otherwise
LEAST_PLANES, MOST_PLANES = 16, 2000  # beyond 2000 the Gram matrix takes 32 MB and the small problem as long as a pass
PATIENCE = 30  # a plane without weight is kept for so many iterations
ARRAYS = ("slopes", "constants", "sizes", "masses", "weights", "ages")  # one entry for every plane
LARGEST_SQUARE = 1e300
SMALL_GAP = 1e-13  # the small problem is solved to this share of its size: a rounding


@dataclass
class Planes:
    """Planes R(Xw) >= c_i + <v_i, w>, and the mixture t that bounds min J best: max <c, t> - |V't|^2 / (2 alpha).

    The point of the mixture is w = -V't / alpha, the minimum of alpha/2 |w|^2 + max_i c_i + <v_i, w>. Memory is that of
    the slopes, 8 p bytes a plane: `most` planes at most. One that had no weight for PATIENCE iterations goes; where all have
    weight and there is no room, the two of least weight become one, which is a plane too.
    """

    slopes: FloatArray
    constants: FloatArray
    sizes: FloatArray  # what the rounding of constants is relative to, see Objective.plane_size
    masses: FloatArray
    weights: FloatArray
    ages: AnyArray
    gram: FloatArray
    count: int = 0
    most: int = MOST_PLANES

    @classmethod
    def empty(cls, p: int, most: int | None, zero: bool) -> "Planes":
        """Return no planes, or the plane (0, 0), which lies below every risk."""
        if most is None:
            most = int(min(MOST_PLANES, max(LEAST_PLANES, PLANE_BYTES // (8 * max(p, 1)))))
        room = min(most, 32)
        arrays = {name: np.zeros(room) for name in ("constants", "sizes", "masses", "weights")}
        ages = np.zeros(room, dtype=np.int64)
        planes = cls(slopes=np.zeros((room, p)), **arrays, ages=ages, gram=np.zeros((room, room)), count=0, most=most)
        if zero:
            planes.count, planes.weights[0] = 1, 1.0
        return planes

    def record(self) -> dict[str, Any]:
        """Return the planes as plain arrays and numbers."""
        k = self.count
        arrays = {
            name: getattr(self, name)[:k].copy()
            for name in ("slopes", "constants", "sizes", "masses", "weights", "ages")
        }
        return arrays | {"gram": self.gram[:k, :k].copy(), "most": self.most}

    @classmethod
    def restored(cls, record: dict[str, Any]) -> "Planes":
        """Return the planes that `record` described."""
        fields = {name: np.array(value) for name, value in record.items() if name != "most"}
        return cls(**fields, count=len(fields["constants"]), most=int(record["most"]))

    def add(self, objective: Objective, point: Point, slope: FloatArray) -> bool:
        """Take in the plane of an evaluation at a point, and give it no weight yet. O(k p).

        False if squares of the slope leave the range of floats: such a plane proves nothing.
        """
        if not kernels.vectors.dot(slope, slope) / objective.alpha < LARGEST_SQUARE:
            return False
        self._make_room()
        k = self.count
        self.slopes[k] = slope
        self.constants[k], self.sizes[k], self.masses[k] = (
            point.risk.plane,
            objective.plane_size(point),
            point.risk.mass,
        )
        self.weights[k], self.ages[k] = (1.0 if k == 0 else 0.0), 0
        self._relate(k)
        self.count += 1
        return True

    def solve(self, alpha: float) -> None:
        """Find the best mixture, from the one before."""
        k = self.count
        gram, weights = self.gram[:k, :k] / alpha, self.weights[:k]
        scale = np.abs(self.constants[:k]).max() + gram.diagonal().max()
        kernels.simplex.maximise(gram, self.constants[:k], weights, SMALL_GAP * scale, 20 * k + 100)
        self.ages[:k] = np.where(weights > 0.0, 0, self.ages[:k] + 1)

    def mixture(self) -> FloatArray:
        """Return the slope V't of the mixture."""
        return np.asarray(self.weights[: self.count] @ self.slopes[: self.count])

    def bound(self, objective: Objective, slope: FloatArray) -> float:
        """Return the lower bound of the mixture with that slope, less what rounding may have added."""
        k, t = self.count, self.weights[: self.count]
        size, mass = float(t @ self.sizes[:k]), float(t @ self.masses[:k])
        value = float(t @ self.constants[:k]) - kernels.vectors.dot(slope, slope) / (2.0 * objective.alpha)
        return value - objective.mixture_allowance(slope, size, mass)

    def drop_idle(self) -> None:
        """Let go of planes that had no weight for PATIENCE iterations."""
        k = self.count
        keep = np.flatnonzero(self.ages[:k] <= PATIENCE)
        if len(keep) < k:
            self._keep(keep)

    def _make_room(self) -> None:
        if self.count < len(self.constants):
            return
        if self.count < self.most:
            room = min(self.most, 2 * self.count + 1)
            more = room - self.count
            for name in ARRAYS:
                old = getattr(self, name)
                setattr(self, name, np.concatenate([old, np.zeros((more, *old.shape[1:]), dtype=old.dtype)]))
            self.gram = np.pad(self.gram, (0, more))
            return
        oldest = int(np.argmax(self.ages[: self.count]))
        if self.weights[oldest] > 0.0:
            self._merge(*np.argsort(self.weights[: self.count])[:2])
            return
        self._keep(np.delete(np.arange(self.count), oldest))

    def _merge(self, i: int, j: int) -> None:
        """Replace two planes with weight by their mixture."""
        i, j = min(i, j), max(i, j)
        both = self.weights[i] + self.weights[j]
        a, b = self.weights[i] / both, self.weights[j] / both
        for name in ("slopes", "constants", "sizes", "masses"):
            array = getattr(self, name)
            array[i] = a * array[i] + b * array[j]
        self.weights[i] = both
        self._keep(np.delete(np.arange(self.count), j))
        self._relate(i)

    def _keep(self, places: AnyArray) -> None:
        k = len(places)
        for name in ARRAYS:
            array = getattr(self, name)
            array[:k] = array[places]
        self.gram[:k, :k] = self.gram[np.ix_(places, places)]
        self.count = k

    def _relate(self, i: int) -> None:
        """Fill row and column i of the Gram matrix."""
        k = max(self.count, i + 1)
        self.gram[i, :k] = self.gram[:k, i] = self.slopes[:k] @ self.slopes[i]
