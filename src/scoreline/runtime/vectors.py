"""Vectors with an entry for every row of X that may lie on a device or on the workers of a cluster."""

import importlib
import logging
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.typing import DTypeLike

from scoreline.runtime.array_types import on_host
from scoreline.runtime.types import AnyArray

logger = logging.getLogger("scoreline")

# Decorates what computes with X and scores: what leaves the range of floats shows as infinity or NaN; callers look for that.
visible = np.errstate(over="ignore", invalid="ignore", divide="ignore", under="ignore")
LEAST_TAME, MOST_TAME = 1e-30, 1e30  # largest weight of rows whose weights are used as they are
ROOMS = {"blocks": "scoreline.distributed", "device": "scoreline.gpu"}  # where vectors of a score space are worked on


def room_module(scores: str, name: str) -> Any:
    """Return a module of the room that works on such scores; both rooms have modules of the same names."""
    return importlib.import_module(f"{ROOMS[scores]}.{name}")


class ClusterError(RuntimeError):
    """Work on a cluster that could not be finished, and what to do about it."""


class RemoteVector(NDArrayOperatorsMixin):
    """A vector on the workers of a cluster or on a device that NumPy's elementwise functions, sums and masks understand.

    `np.asarray` brings its entries to the host. Nothing changes a vector that is there: `z += 1` makes another one.

    Attributes
    ----------
    scores : str
        Name of the score space that works on such vectors.
    """

    scores: ClassVar[str]
    ndim = 1
    __hash__ = object.__hash__

    @property
    def shape(self) -> tuple[int]:
        """Its length."""
        return (len(self),)

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def like(self, rows: Any) -> Self:
        """Return an array of the host, an entry for every row, as a vector beside this one."""

    @abstractmethod
    def distinct(self, most: int = 100) -> AnyArray:
        """Return different entries, `most` of each part at most, as an array of the host."""

    @abstractmethod
    def astype(self, dtype: DTypeLike, copy: bool = True) -> Self:
        """Return the entries as another type."""

    @abstractmethod
    def sum(self) -> Any:
        """Return the sum of all entries."""

    @abstractmethod
    def _entries(self) -> AnyArray:
        """Return all entries as an array of the host."""

    @abstractmethod
    def _extreme(self, name: str, initial: float | None) -> Any:
        """Return the largest ("max") or smallest ("min") entry."""

    def mean(self) -> float:
        """Return the mean of all entries."""
        return float(self.sum()) / len(self)

    def max(self, initial: float | None = None) -> Any:
        """Return the largest entry."""
        return self._extreme("max", initial)

    def min(self, initial: float | None = None) -> Any:
        """Return the smallest entry."""
        return self._extreme("min", initial)

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> AnyArray:
        array = self._entries()
        if array.nbytes > 1 << 20:
            logger.info("brought %.3g MB of entries of a %s to the host", array.nbytes / 1e6, type(self).__name__)
        return array if dtype is None else array.astype(dtype)

    def _on_host(self, function: Callable[..., Any], arguments: Sequence[Any], options: Mapping[str, Any]) -> Any:
        """Call a function that this kind of vector does not have on arrays of the host."""
        logger.info("numpy.%s needs all entries of a %s", function.__name__, type(self).__name__)
        return function(*map(_as_host, arguments), **{name: _as_host(value) for name, value in options.items()})

    def copy(self) -> Self:
        """Return the vector itself: nothing can change it."""
        return self

    def __pow__(self, exponent: Any) -> Any:  # as that of arrays: NumPy's function rounds squares otherwise before 2.2
        return self * self if isinstance(exponent, int) and exponent == 2 else super().__pow__(exponent)

    def __setitem__(self, place: Any, value: Any) -> None:
        raise TypeError(
            "a vector on a device or a cluster cannot be changed in place; make another one, for example with numpy.where"
        )


def _as_host(value: Any) -> Any:
    if isinstance(value, RemoteVector):
        return np.asarray(value)
    return type(value)(map(_as_host, value)) if type(value) in (list, tuple) else on_host(value)


def as_vector(rows: Any, dtype: Any = None) -> Any:
    """Return entries as a vector: one on a device or a cluster stays there, anything else becomes an array."""
    if isinstance(rows, RemoteVector):
        return rows if dtype is None else rows.astype(dtype)
    if isinstance(rows, np.ma.MaskedArray) and np.ma.is_masked(rows):  # NumPy would take what the mask hides
        raise ValueError(
            "a masked array with masked entries, expected numbers throughout; drop those rows or fill them in"
        )
    return np.asarray(rows, dtype=dtype)


def tamed(weight: Any) -> tuple[Any, int]:
    """Return weights whose sums and products stay in range, and the exponent of the power of two they were multiplied with.

    Only those whose largest lies outside of 1e-30 to 1e30 change: it is brought to between 1/2 and 1. A power of two changes no
    digit, but weights beyond 1e300 times smaller become 0.
    """
    top = float(weight.max()) if len(weight) else 1.0
    if LEAST_TAME <= top <= MOST_TAME or top == 0.0:
        return weight, 0
    exponent = -int(np.frexp(top)[1])
    with np.errstate(under="ignore"):
        return as_vector(np.ldexp(weight, exponent)), exponent


def checked_mask(mask: AnyArray) -> AnyArray:
    """Return a mask, or raise if it is none."""
    if mask.dtype != bool or mask.ndim != 1:
        raise TypeError(
            f"a vector on a device or a cluster is indexed by a mask, a boolean for each row; got {mask.dtype} of shape "
            f"{mask.shape}"
        )
    return mask
