"""Operations that need all scores at once: brought here, done on the host, and sent back."""

import logging
from typing import Any

import numpy as np

from scoreline.runtime.types import FloatArray, Scores
from scoreline.runtime.vectors import RemoteVector
from scoreline.scores.base import Flips, Labels, Moved, WorstRanking
from scoreline.scores.host import HostSpace

logger = logging.getLogger("scoreline")


class Gathered:
    """The part of `BlockSpace` and `DeviceSpace` that gathers: worst labellings and rankings, thresholds among one class.

    Labels are brought here once; every call moves n scores here, and n entries back for each vector that it returns.
    """

    def __init__(self) -> None:
        self._host = HostSpace()
        self._labels: tuple[Labels, Labels] | None = None

    def by_gathering(self, name: str, z: RemoteVector, labels: Labels, *arguments: Any) -> Any:
        """Call an operation of the host on all scores, and send vectors among its results back.

        Any operation works so, also those that have a better way: this is what they are compared with.
        """
        if self._labels is None or self._labels[0] is not labels:
            weight = None if labels.weight is None else np.asarray(labels.weight)
            self._labels = labels, self._host.labels(np.asarray(labels.sign), weight)
            logger.info("%s brings %d scores here in every evaluation", name, len(z))
        result = getattr(self._host, name)(np.asarray(z), self._labels[1], *arguments)
        if isinstance(result, np.ndarray):
            return z.like(result)
        if hasattr(result, "_replace"):
            return result if result.grad is None else result._replace(grad=z.like(result.grad))
        return result

    def class_scores(self, z: RemoteVector, labels: Labels) -> tuple[FloatArray, FloatArray]:
        """Return the scores of either class in rising order, here."""
        return self.by_gathering("class_scores", z, labels)

    def change_sides(
        self,
        z: RemoteVector,
        labels: Labels,
        low: float,
        low_ties: float,
        high: float,
        high_ties: float,
        scale: float = 1.0,
        out: Scores | None = None,
        grad: bool = True,
    ) -> Moved:
        """Move rows by their scores."""
        return self.by_gathering("change_sides", z, labels, low, low_ties, high, high_ties, scale, None, grad)

    def worst_ranking(self, z: RemoteVector, labels: Labels, scale: float, out: Scores | None = None) -> WorstRanking:
        """Find the worst ranking."""
        return self.by_gathering("worst_ranking", z, labels, scale)

    def flip_chances(
        self,
        z: RemoteVector,
        labels: Labels,
        exponents: FloatArray,
        price: float,
        scale: float,
        out: Scores | None = None,
        grad: bool = True,
    ) -> Flips:
        """Sum over all labellings."""
        return self.by_gathering("flip_chances", z, labels, exponents, price, scale, None, grad)

    def top_share(self, z: RemoteVector, labels: Labels, side: int, amount: float) -> RemoteVector:
        """Return the share of every row of a class in the highest `amount` of weight, 1 for the other class."""
        return self.by_gathering("top_share", z, labels, side, amount)

    def soft_threshold(
        self, z: RemoteVector, labels: Labels, side: int, amount: float, width: float
    ) -> tuple[float, float]:
        """Return theta as base + offset: the highest `amount` of weight, softened over `width`."""
        return self.by_gathering("soft_threshold", z, labels, side, amount, width)

    def lifted(
        self, z: RemoteVector, labels: Labels, threshold: tuple[float, float]
    ) -> tuple[RemoteVector, RemoteVector]:
        """Return scores less the base, for positives at least the offset, and by how much they were lifted."""
        lifted, lift = self.by_gathering("lifted", z, labels, threshold)
        return z.like(lifted), z.like(lift)
