"""Rows that provably lie beyond the margin, from their margins at an earlier point and how far w has gone since."""

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np

from scoreline import kernels
from scoreline.runtime.types import AnyArray, FloatArray

MOST_POINTS = 32  # earlier points of "path"; rows that were computed at none of them are computed again


class Shrinking(ABC):
    """Which rows of a batch need a product at a new point. A row with y_i z_i >= 1 has neither loss nor slope.

    |y_i x_i.w' - y_i x_i.w| <= |x_i| |w' - w| (eq. shrinking), so a row with a margin g_i at w stays beyond 1 while
    |x_i| |w' - w| <= g_i - 1. Rounding is allowed for, by 1e-9 of the margin. Rows of norm 0 are never skipped.
    """

    name: ClassVar[str]

    def __init__(self, norms: FloatArray):
        self.norms = norms

    @abstractmethod
    def needed(self, w: FloatArray, step: float) -> AnyArray | None:
        """Return which rows need a product at w, which is `step` away from the last point; None for all."""

    def update(self, rows: AnyArray | None, w: FloatArray, margins: FloatArray) -> None:
        """Store margins of all rows of the batch, of which those in the mask `rows` (None for all) were computed at w."""
        return

    def moved(self, length: float) -> None:
        """Record a step of this length."""
        return

    def grown(self, places: AnyArray, norms: FloatArray) -> None:
        """Switch to a larger batch, in which the old rows are at `places`; the others have no margins yet."""
        self.norms = norms


class NoShrinking(Shrinking):
    """Every row is looked at every time."""

    name = "none"

    def needed(self, w: FloatArray, step: float) -> AnyArray | None:
        return None


class SumShrinking(Shrinking):
    """The distance is at most the sum of the lengths of all steps since: one number for all rows, one comparison per row.

    With C the length of the way so far, a row computed at C_j with margin g is skipped while C <= T = (g - 1) / |x| + C_j
    (eq. shrinking-sum).
    """

    name = "sum"

    def __init__(self, norms: FloatArray):
        super().__init__(norms)
        self.way = 0.0
        self.until = np.full(len(norms), -np.inf)

    def needed(self, w: FloatArray, step: float) -> AnyArray | None:
        return np.asarray((self.way + step) * (1.0 + 1e-12) > self.until)  # a sum of many steps, rounded

    def update(self, rows: AnyArray | None, w: FloatArray, margins: FloatArray) -> None:
        mask = slice(None) if rows is None else rows
        self.until[mask] = safe_distance(margins[mask], self.norms[mask]) + self.way

    def moved(self, length: float) -> None:
        self.way += length

    def grown(self, places: AnyArray, norms: FloatArray) -> None:
        until = np.full(len(norms), -np.inf)
        until[places] = self.until
        self.until, self.norms = until, norms


class PathShrinking(Shrinking):
    """The distance itself, from the point where a row was last computed; the last points are kept, one vector each."""

    name = "path"

    def __init__(self, norms: FloatArray):
        super().__init__(norms)
        self.points: list[FloatArray] = []
        self.first = 0  # number of the oldest point kept
        self.safe = np.full(len(norms), -np.inf)  # distance from the point where the row was computed
        self.where = np.full(len(norms), -1, dtype=np.int32)

    def needed(self, w: FloatArray, step: float) -> AnyArray | None:
        if not self.points:
            return None
        distances = [float(np.sqrt(kernels.vectors.dot(w - point, w - point))) for point in self.points]
        index = self.where - self.first
        far = np.append(distances, np.inf)[np.where(index < 0, len(distances), index)]
        return np.asarray(far > self.safe)

    def update(self, rows: AnyArray | None, w: FloatArray, margins: FloatArray) -> None:
        mask = slice(None) if rows is None else rows
        self.points.append(w)
        self.where[mask] = self.first + len(self.points) - 1
        self.safe[mask] = safe_distance(margins[mask], self.norms[mask])
        if len(self.points) > MOST_POINTS:
            self.points.pop(0)
            self.first += 1

    def grown(self, places: AnyArray, norms: FloatArray) -> None:
        safe, where = np.full(len(norms), -np.inf), np.full(len(norms), -1, dtype=np.int32)
        safe[places], where[places] = self.safe, self.where
        self.safe, self.where, self.norms = safe, where, norms


SHRINKINGS: dict[str, type[Shrinking]] = {kind.name: kind for kind in (NoShrinking, SumShrinking, PathShrinking)}


def safe_distance(margins: FloatArray, norms: FloatArray) -> FloatArray:
    """Return how far w may go before a row can come within its margin; -inf where it is within already, or has no norm."""
    spare = margins - 1.0 - 1e-9 * (1.0 + np.abs(margins))
    distance = np.divide(spare, norms, out=np.full_like(margins, -np.inf), where=norms > 0.0)
    return np.where(spare > 0.0, distance, -np.inf)
