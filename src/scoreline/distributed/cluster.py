"""The interface to a cluster, implemented by Dask and by a single process."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from scoreline.runtime.vectors import ClusterError as ClusterError

Future: TypeAlias = Any  # of Dask, or a result in this process


class Placement(NamedTuple):
    """The worker of a part of the rows, and the number of threads that work on the part."""

    worker: str
    threads: int


class Cluster(ABC):
    """Workers that call functions on their data.

    `submit` returns a future that stands for the result in later calls. Functions are pure and never change their arguments,
    so that results that are lost with a worker can be computed again.

    Attributes
    ----------
    bytes : float
        Bytes of arrays moved so far between workers, and between them and the driver.
    """

    def __init__(self) -> None:
        self.bytes = 0.0

    @abstractmethod
    def submit(self, function: Callable[..., Any], *arguments: Any, placement: Placement) -> Future:
        """Call function(*arguments) at `placement`; futures among the arguments stand for their results."""

    @abstractmethod
    def collect(self, futures: Sequence[Future]) -> list[Any]:
        """Wait for results and bring them to the driver."""

    def gather(self, futures: Sequence[Future]) -> list[Any]:
        """Bring results to the driver, and count their bytes."""
        results = self.collect(futures)
        self.count(sum(map(size_of, results)))
        return results

    def count(self, n_bytes: float) -> None:
        """Add to the number of moved bytes."""
        self.bytes += n_bytes


class InlineCluster(Cluster):
    """One process that calls every function immediately, for debugging and tests."""

    class Done(NamedTuple):
        """A result."""

        value: Any

    def submit(self, function: Callable[..., Any], *arguments: Any, placement: Placement) -> Done:
        """Call the function now."""
        return self.Done(function(*[a.value if isinstance(a, self.Done) else a for a in arguments]))

    def collect(self, futures: Sequence[Future]) -> list[Any]:
        """Return the results."""
        return [future.value for future in futures]


def size_of(value: Any) -> float:
    """Return the bytes of arrays and numbers in a value."""
    if isinstance(value, np.ndarray):
        return float(value.nbytes)
    if isinstance(value, (tuple, list)):
        return float(sum(map(size_of, value)))
    if isinstance(value, dict):
        return float(sum(map(size_of, value.values())))
    if hasattr(value, "__dict__"):
        return size_of(vars(value))
    return 0.0 if value is None or isinstance(value, str) else 8.0
