"""Where scores live: on the host, on a device, or in blocks on workers. Risks are written over these operations.

This room has the score space of the host and the contract of all; `distributed/` and `gpu/` have their own.
"""

from typing import Any

from scoreline.runtime.vectors import room_module
from scoreline.scores.base import Labels, PairSums, PointSums, ScoreSpace
from scoreline.scores.host import HostSpace

__all__ = ["HostSpace", "Labels", "PairSums", "PointSums", "ScoreSpace", "smallest_reaching", "space_for", "space_of"]


def space_for(scores: str) -> ScoreSpace:
    """Return the score space that an operator's `scores` names."""
    if scores == "host":
        return HostSpace()
    space: ScoreSpace = room_module(scores, "score_space").Space()
    return space


def space_of(scores: Any) -> ScoreSpace:
    """Return the score space that scores are in."""
    return space_for(getattr(scores, "scores", "host"))


def smallest_reaching(values: Any, weight: Any, target: float) -> float:
    """Return the smallest entry v of a vector on workers or a device such that entries up to v weigh `target` together."""
    where: Any = space_of(values)
    return float(where.smallest_reaching(values, weight, target))
