"""What the searches for a cut of scores on workers (`distributed/`) and on a device (`gpu/`) have in common."""

from typing import Any, NamedTuple

import numpy as np

from scoreline.measures.ties import Ties, median_size
from scoreline.runtime.types import FloatArray

FEW = 1 << 14  # rows that are sent here
POINTS = 1 << 16  # of a class that a part sends for a steady cut


class Totals(NamedTuple):
    """Ends of the scores, number of rows of positive weight, weights of the classes."""

    low: float
    high: float
    rows: int
    positive: float
    negative: float

    def above_all(self) -> FloatArray:
        """Return the counts of a threshold above all scores."""
        return np.array([0.0, 0.0, self.positive, self.negative])


class Level(NamedTuple):
    """The best threshold: just below a score (infinity: above all), the next lower score, and the counts TP, FP, FN, TN."""

    score: float
    below: float
    counts: FloatArray


def ties_of(z: Any, weight: Any, totals: Totals) -> Ties:
    """Return what tells scores on workers or a device from ties."""
    return Ties.of(median_size(z, weight), totals.low, totals.high, totals.rows)
