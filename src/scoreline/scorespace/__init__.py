"""Where scores live: on the host, on a device, or in blocks on workers. Risks are written over these operations."""

from typing import Any

from scoreline.scorespace.base import Labels, PairSums, PointSums, ScoreSpace
from scoreline.scorespace.blocks import BlockSpace
from scoreline.scorespace.host import HostSpace

__all__ = ["BlockSpace", "HostSpace", "Labels", "PairSums", "PointSums", "ScoreSpace", "space_for"]

SPACES: dict[str, type[Any]] = {"host": HostSpace, "blocks": BlockSpace}


def space_for(scores: str) -> ScoreSpace:
    """Return the score space that an operator's `scores` names."""
    space: ScoreSpace = SPACES[scores]()
    return space
