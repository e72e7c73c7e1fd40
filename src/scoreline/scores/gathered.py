"""Operations that need all scores at once: brought here, done on the host, and sent back."""

import logging
from typing import Any

import numpy as np

from scoreline.runtime.vectors import RemoteVector
from scoreline.scores.base import Labels
from scoreline.scores.host import HostSpace

logger = logging.getLogger("scoreline")


def _gathered(name: str) -> Any:
    def operation(self: "Gathered", z: RemoteVector, labels: Labels, *arguments: Any, **options: Any) -> Any:
        return self.by_gathering(name, z, labels, *arguments, **options)

    operation.__name__, operation.__doc__ = name, getattr(HostSpace, name).__doc__
    return operation


class Gathered:
    """The part of `BlockSpace` and `DeviceSpace` that gathers: worst labellings and rankings, thresholds among one class.

    Labels are brought here once; every call moves n scores here, and n entries back for each vector that it returns.
    """

    def __init__(self) -> None:
        self._host = HostSpace()
        self._labels: tuple[Labels, Labels] | None = None

    def by_gathering(self, name: str, z: RemoteVector, labels: Labels, *arguments: Any, **options: Any) -> Any:
        """Call an operation of the host on all scores, and send vectors among its results back.

        Any operation works so, also those that have a better way: this is what they are compared with. A vector that is given
        to be written to is not used, because vectors elsewhere cannot be changed.
        """
        if self._labels is None or self._labels[0] is not labels:
            weight = None if labels.weight is None else np.asarray(labels.weight)
            self._labels = labels, self._host.labels(np.asarray(labels.sign), weight)
            logger.info("%s brings %d scores here in every evaluation", name, len(z))
        given = (None if isinstance(argument, RemoteVector) else argument for argument in arguments)
        options.pop("out", None)
        result = getattr(self._host, name)(np.asarray(z), self._labels[1], *given, **options)
        if isinstance(result, np.ndarray):
            return z.like(result)
        if hasattr(result, "_replace"):
            return result if result.grad is None else result._replace(grad=z.like(result.grad))
        return result

    class_scores = _gathered("class_scores")
    change_sides = _gathered("change_sides")
    worst_ranking = _gathered("worst_ranking")
    flip_chances = _gathered("flip_chances")
    top_share = _gathered("top_share")
    soft_threshold = _gathered("soft_threshold")

    def lifted(
        self, z: RemoteVector, labels: Labels, threshold: tuple[float, float]
    ) -> tuple[RemoteVector, RemoteVector]:
        lifted, lift = self.by_gathering("lifted", z, labels, threshold)
        return z.like(lifted), z.like(lift)
