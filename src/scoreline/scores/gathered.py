"""The common base of the score spaces for devices and for blocks on workers.

Operations that consist of NumPy functions run where the scores are. Those that need all scores at once bring them to the
host, and send the result back.
"""

import logging
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import numpy as np

from scoreline.runtime.vectors import RemoteVector, visible
from scoreline.scores.base import Labels
from scoreline.scores.host import HostSpace

logger = logging.getLogger("scoreline")

V = TypeVar("V", bound=RemoteVector)
# These functions return vectors for vectors, which NumPy's annotations do not express.
where: Callable[..., Any] = np.where
zeros_like: Callable[..., Any] = np.zeros_like


def _on_host(name: str) -> Callable[..., Any]:
    """Return an operation of the host as a method that gathers the scores."""

    def operation(space: "Gathered[Any]", z: Any, labels: Labels, *arguments: Any) -> Any:
        return space.by_gathering(name, z, labels, *arguments)

    return operation


class Gathered(Generic[V]):
    """The base of both spaces, in which worst labellings, worst rankings and thresholds within a class are gathered.

    Labels are copied to the host once. Every call moves n scores there, and n entries back for each vector that it returns.
    """

    def __init__(self) -> None:
        self._host = HostSpace()
        self._labels: tuple[Labels, Labels] | None = None

    def by_gathering(self, name: str, z: V, labels: Labels, *arguments: Any) -> Any:
        """Call an operation of the host on all scores, and send vectors among its results back.

        Tests compare the other operations with this one.
        """
        if self._labels is None or self._labels[0] is not labels:
            weight = None if labels.weight is None else np.asarray(labels.weight)
            self._labels = labels, self._host.labels(np.asarray(labels.sign), weight)
            logger.info("%s brings %d scores to the host in every evaluation", name, len(z))
        # An array for the gradient (`out`) is not on the host, so the host makes a new one.
        own = (None if isinstance(argument, RemoteVector) else argument for argument in arguments)
        result = getattr(self._host, name)(np.asarray(z), self._labels[1], *own)
        if isinstance(result, np.ndarray):
            return z.like(result)
        if hasattr(result, "_replace"):
            return result if result.grad is None else result._replace(grad=z.like(result.grad))
        return result

    def labels(self, y: Any, sample_weight: Any = None) -> Labels:
        """Return labels and weights as vectors, with their totals."""
        raise NotImplementedError

    def smallest_reaching(self, values: V, weight: V | None, target: float) -> float:
        """Return the smallest entry v such that entries up to v have at least the weight `target`, or the largest entry."""
        raise NotImplementedError

    def zeros(self, labels: Labels) -> V:
        """Return the scores of w = 0."""
        found: V = zeros_like(labels.sign, np.float64)
        return found

    def is_finite(self, x: V) -> bool:
        """Tell whether all entries are finite."""
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
        """Return x >= 0 with the smallest entries per unit of weight, in total a share `negligible` of the sum, set to 0."""
        single = self.per_weight(x, labels)
        limit = (1.0 - 1e-9) * self.smallest_reaching(single, x, negligible * self.total(x))  # equal rows stay together
        found: V = where(single < limit, 0.0, x)
        return found

    @visible
    def reweighted(self, labels: Labels, share: V) -> Labels:
        """Return the labels with every weight times a share."""
        return self.labels(labels.sign, share if labels.weight is None else share * labels.weight)

    class_scores = _on_host("class_scores")
    change_sides = _on_host("change_sides")
    worst_ranking = _on_host("worst_ranking")
    flip_chances = _on_host("flip_chances")
    top_share = _on_host("top_share")
    soft_threshold = _on_host("soft_threshold")

    def lifted(self, z: V, labels: Labels, threshold: tuple[float, float]) -> tuple[V, V]:
        """Return z - base, where positives are at least 1 + offset, and the amount by which they were lifted."""
        lifted, lift = self.by_gathering("lifted", z, labels, threshold)
        return z.like(lifted), z.like(lift)
