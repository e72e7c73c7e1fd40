"""Score spaces: the operations on scores that risks use, for scores on the host, on a device, or in blocks on workers.

This package has the interface and the implementation for the host; `distributed/` and `gpu/` have the others.
"""

from typing import Any

from scoreline.runtime.vectors import room_module
from scoreline.scores.base import Labels, PairSums, PointSums, ScoreSpace
from scoreline.scores.host import HostSpace

__all__ = ["HostSpace", "Labels", "PairSums", "PointSums", "ScoreSpace", "smallest_reaching", "space_for", "space_of"]


def space_for(scores: str) -> ScoreSpace:
    """Return the score space with the name in an operator's `scores`."""
    if scores == "host":
        return HostSpace()
    space: ScoreSpace = room_module(scores, "score_space").Space()
    return space


def space_of(scores: Any) -> ScoreSpace:
    """Return the score space of scores."""
    return space_for(getattr(scores, "scores", "host"))


def smallest_reaching(values: Any, weight: Any, target: float) -> float:
    """Return the smallest entry v of a remote vector such that entries up to v have at least the weight `target`."""
    remote: Any = space_of(values)
    return float(remote.smallest_reaching(values, weight, target))
