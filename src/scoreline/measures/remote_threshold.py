"""The common part of the threshold searches for scores on workers (`distributed/`) and on a device (`gpu/`)."""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numpy as np

from scoreline.measures.ties import Ties, median_size
from scoreline.runtime.types import AnyArray, FloatArray

MAX_GATHERED_ROWS = 1 << 14  # rows that are brought to the host or the driver
POINTS = 1 << 16  # points per class that a part sends for a robust threshold

V = TypeVar("V", bound=Any)  # vectors on a device, or arrays of a part


class Totals(NamedTuple):
    """Lowest and highest score, number of rows of positive weight, and weights of the classes."""

    low: float
    high: float
    rows: int
    positive: float
    negative: float

    def above_all(self) -> FloatArray:
        """Return the counts of a threshold above all scores."""
        return np.array([0.0, 0.0, self.positive, self.negative])

    def checked(self) -> "Totals":
        """Return the totals, or raise if there is no threshold of such scores."""
        if not self.rows:
            raise ValueError("a threshold needs at least one row of positive weight")
        if not np.isfinite([self.low, self.high]).all():
            raise ValueError("scores must be finite, and they hold NaN or infinity")
        return self


class Level(NamedTuple):
    """The best threshold is just below `score` (infinity for one above all scores); `below` is the next lower score."""

    score: float
    below: float
    counts: FloatArray


def ties_of(z: Any, weight: Any, totals: Totals) -> Ties:
    """Return the rule for ties of remote scores."""
    return Ties.of(median_size(z, weight), totals.low, totals.high, totals.rows)


def counted(sign: V, z: V, weight: V | None) -> tuple[V, V, V | None]:
    """Return the rows of positive weight."""
    if weight is None:
        return sign, z, None
    there = weight > 0.0
    return sign[there], z[there], weight[there]


def totals_of_rows(sign: V, z: V, weight: V | None) -> Totals:
    """Return the totals of rows; the lowest and highest score are NaN if a score is not finite."""
    sign, z, weight = counted(sign, z, weight)
    if len(z) == 0:
        return Totals(np.inf, -np.inf, 0, 0.0, 0.0)
    ends = (float(z.min()), float(z.max())) if np.isfinite(z).all() else (np.nan, np.nan)
    above = sign > 0
    classes = (float(np.count_nonzero(side) if weight is None else weight[side].sum()) for side in (above, ~above))
    return Totals(*ends, len(z), *classes)


def condensed_rows(
    sign: V, z: V, weight: V | None, runs: Callable[[V, V | None], tuple[FloatArray, FloatArray | None]]
) -> tuple[AnyArray, FloatArray, FloatArray, bool]:
    """Return labels, scores and weights after `runs` has condensed each class, and whether every weight is 1."""
    sign, z, weight = counted(sign, z, weight)
    sides = [(side, sign == side) for side in (1, -1)]
    classes = [(side, *runs(z[own], None if weight is None else weight[own])) for side, own in sides]
    signs = np.concatenate([np.full(len(scores), side, dtype=np.int8) for side, scores, _ in classes])
    weights = [np.ones(len(scores)) if s is None else s for _, scores, s in classes]
    unweighted = all(s is None for _, _, s in classes)
    return signs, np.concatenate([scores for _, scores, _ in classes]), np.concatenate(weights), unweighted
