"""Ties: which scores, and which values of a measure, count as equal on every processor.

A score is a sum over features. Its last digits depend on the order of the additions, which differs between processors. Two
neighbouring scores a and b are therefore tied if

    |a - b| <= t max(|a|, |b|, m),    m = the median magnitude of all scores    (eq. ties)

No threshold is ever placed between tied scores. t is 2^-46, which is 64 roundings of one number. With the median, a few huge
scores cannot tie all others. If all scores are so close that a chain of ties would connect them, a quarter of their mean
distance replaces t m. Two values of a measure are equal if they differ by at most 2^-46 of their size.
"""

from typing import Any, NamedTuple

import numpy as np

from scoreline.runtime.types import FloatArray
from scoreline.runtime.vectors import RemoteVector
from scoreline.scores import smallest_reaching

TIE = 2.0**-46


class Ties(NamedTuple):
    """The rule for ties of scores: t and m (eq. ties)."""

    factor: float
    size: float

    @classmethod
    def of(cls, size: float, lowest: float, highest: float, rows: int) -> "Ties":
        """Return the rule for a number of scores between two ends, given their median magnitude."""
        span = 0.5 * highest - 0.5 * lowest
        if size == 0.0 or span <= 0.5 * TIE * size:
            return cls(TIE, size)
        return cls(min(TIE, span / size / (2.0 * rows)), size)

    def tied(self, a: Any, b: Any) -> Any:
        """Tell whether neighbouring scores are tied (eq. ties), for numbers or arrays of any library."""
        distance = abs(a - b)
        near = (distance <= self.factor * abs(a)) | (distance <= self.factor * abs(b))
        return (near | (distance <= self.factor * self.size)) & (distance < np.inf)


def median_size(scores: Any, weight: Any) -> float:
    """Return the median magnitude of scores of positive weight, on the host or remote.

    It takes O(n) and memory for one copy of the scores; with weights on the host, a sort and memory for four copies.
    """
    size = abs(scores)
    total = float(len(size) if weight is None else weight.sum())
    if isinstance(size, RemoteVector):
        return smallest_reaching(size, weight, 0.5 * total)
    if weight is None:
        middle = (len(size) - 1) // 2
        size.partition(middle)
        return float(size[middle])
    order = np.argsort(size)
    place = np.searchsorted(np.cumsum(weight[order]), 0.5 * total)
    return float(size[order[place]])


def first_best(values: FloatArray) -> int:
    """Return the index of the first value that is the largest up to rounding."""
    top = values.max()
    return int(np.argmax(values >= top - TIE * abs(top))) if np.isfinite(top) else int(np.argmax(values))


def clearly_above(value: float, best: float) -> bool:
    """Tell whether a value exceeds the best so far by more than rounding."""
    return bool(value > best + TIE * abs(best)) if np.isfinite(best) else bool(value > best)
