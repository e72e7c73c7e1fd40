"""What the score spaces of a device and of blocks on workers share.

Operations by NumPy's functions run where the scores are. Those that need all scores at once bring them to the host, and send
the result back.
"""

import logging
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import numpy as np

from scoreline.runtime.types import FloatArray, Scores
from scoreline.runtime.vectors import RemoteVector, visible
from scoreline.scores.base import Flips, Labels, Moved, WorstRanking
from scoreline.scores.host import HostSpace

logger = logging.getLogger("scoreline")

V = TypeVar("V", bound=RemoteVector)
# Of vectors these functions make vectors, which NumPy's annotations do not know.
where: Callable[..., Any] = np.where
zeros_like: Callable[..., Any] = np.zeros_like


class Gathered(Generic[V]):
    """The base of both spaces; worst labellings and rankings and thresholds among one class are gathered.

    Labels are brought to the host once; every call moves n scores there, and n entries back for each vector that it returns.
    """

    def __init__(self) -> None:
        self._host = HostSpace()
        self._labels: tuple[Labels, Labels] | None = None

    def by_gathering(self, name: str, z: V, labels: Labels, *arguments: Any) -> Any:
        """Call an operation of the host on all scores, and send vectors among its results back.

        Any operation works so, also those that have a better way: this is what they are compared with.
        """
        if self._labels is None or self._labels[0] is not labels:
            weight = None if labels.weight is None else np.asarray(labels.weight)
            self._labels = labels, self._host.labels(np.asarray(labels.sign), weight)
            logger.info("%s brings %d scores to the host in every evaluation", name, len(z))
        result = getattr(self._host, name)(np.asarray(z), self._labels[1], *arguments)
        if isinstance(result, np.ndarray):
            return z.like(result)
        if hasattr(result, "_replace"):
            return result if result.grad is None else result._replace(grad=z.like(result.grad))
        return result

    def labels(self, y: Any, sample_weight: Any = None) -> Labels:
        """Return labels and weights as vectors, with their totals."""
        raise NotImplementedError

    def smallest_reaching(self, values: V, weight: V | None, target: float) -> float:
        """Return the smallest entry v such that entries up to v weigh `target` together; the largest if none does."""
        raise NotImplementedError

    def zeros(self, labels: Labels) -> V:
        """Return the scores of w = 0."""
        found: V = zeros_like(labels.sign, np.float64)
        return found

    def is_finite(self, x: V) -> bool:
        """Return whether there is neither NaN nor infinity."""
        return bool(np.isfinite(x).all())

    @visible
    def total(self, x: V) -> float:
        """Return the sum of all rows."""
        return float(x.sum())

    def select(self, x: V, labels: Labels, side: int) -> V:
        """Return x on the rows of one class (+1 or -1), 0 on the others."""
        found: V = where(labels.sign == side, x, 0.0)
        return found

    @visible
    def weighted(self, x: V, labels: Labels) -> V:
        """Return s_i x_i."""
        found: V = x if labels.weight is None else labels.weight * x
        return found

    @visible
    def per_weight(self, x: V, labels: Labels) -> V:
        """Return x_i / s_i, 0 for rows of weight 0."""
        if labels.weight is None:
            return x
        there = labels.weight > 0.0
        found: V = where(there, x / where(there, labels.weight, 1.0), 0.0)
        return found

    @visible
    def significant(self, x: V, labels: Labels, negligible: float) -> V:
        """Return x >= 0 with its smallest entries per unit of weight, a share `negligible` of the sum together, set to 0."""
        single = self.per_weight(x, labels)
        limit = (1.0 - 1e-9) * self.smallest_reaching(single, x, negligible * self.total(x))  # equal rows stay together
        found: V = where(single < limit, 0.0, x)
        return found

    @visible
    def reweighted(self, labels: Labels, share: V) -> Labels:
        """Return the labels with every weight times a share."""
        return self.labels(labels.sign, share if labels.weight is None else share * labels.weight)

    def class_scores(self, z: V, labels: Labels) -> tuple[FloatArray, FloatArray]:
        """Return the scores of either class in rising order, on the host."""
        found: tuple[FloatArray, FloatArray] = self.by_gathering("class_scores", z, labels)
        return found

    def change_sides(
        self,
        z: V,
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
        found: Moved = self.by_gathering("change_sides", z, labels, low, low_ties, high, high_ties, scale, None, grad)
        return found

    def worst_ranking(self, z: V, labels: Labels, scale: float, out: Scores | None = None) -> WorstRanking:
        """Find the worst ranking."""
        found: WorstRanking = self.by_gathering("worst_ranking", z, labels, scale)
        return found

    def flip_chances(
        self,
        z: V,
        labels: Labels,
        exponents: FloatArray,
        price: float,
        scale: float,
        out: Scores | None = None,
        grad: bool = True,
    ) -> Flips:
        """Sum over all labellings."""
        found: Flips = self.by_gathering("flip_chances", z, labels, exponents, price, scale, None, grad)
        return found

    def top_share(self, z: V, labels: Labels, side: int, amount: float) -> V:
        """Return the share of every row of a class in the highest `amount` of weight, 1 for the other class."""
        found: V = self.by_gathering("top_share", z, labels, side, amount)
        return found

    def soft_threshold(self, z: V, labels: Labels, side: int, amount: float, width: float) -> tuple[float, float]:
        """Return theta as base + offset: the highest `amount` of weight, softened over `width`."""
        found: tuple[float, float] = self.by_gathering("soft_threshold", z, labels, side, amount, width)
        return found

    def lifted(self, z: V, labels: Labels, threshold: tuple[float, float]) -> tuple[V, V]:
        """Return scores less the base, for positives at least the offset, and by how much they were lifted."""
        lifted, lift = self.by_gathering("lifted", z, labels, threshold)
        return z.like(lifted), z.like(lift)
