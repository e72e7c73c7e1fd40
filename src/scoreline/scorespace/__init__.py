"""Where scores live: on the host, on a device, or in blocks on workers. Risks are written over these operations."""

from typing import Any

from scoreline.scorespace import device_selection, selection
from scoreline.scorespace.base import Labels, PairSums, PointSums, ScoreSpace
from scoreline.scorespace.blocks import BlockSpace
from scoreline.scorespace.device import DeviceSpace
from scoreline.scorespace.host import HostSpace

__all__ = [
    "BlockSpace",
    "DeviceSpace",
    "HostSpace",
    "Labels",
    "PairSums",
    "PointSums",
    "ScoreSpace",
    "smallest_reaching",
    "space_for",
    "space_of",
]

SPACES: dict[str, type[Any]] = {"host": HostSpace, "blocks": BlockSpace, "device": DeviceSpace}


def space_for(scores: str) -> ScoreSpace:
    """Return the score space that an operator's `scores` names."""
    space: ScoreSpace = SPACES[scores]()
    return space


def space_of(scores: Any) -> ScoreSpace:
    """Return the score space that scores are in."""
    return space_for(getattr(scores, "scores", "host"))


def smallest_reaching(values: Any, weight: Any, target: float) -> float:
    """Return the smallest entry v of a vector on workers or a device such that entries up to v weigh `target` together."""
    if values.scores == "device":
        return device_selection.smallest_reaching(values, weight, target)
    return selection.smallest_reaching(values, weight, target)
