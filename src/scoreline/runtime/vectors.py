"""Vectors with one entry per row of X, on a device or on the workers of a cluster."""

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

# Decorates arithmetic with X and scores. Overflow becomes infinity or NaN, which callers check for.
visible = np.errstate(over="ignore", invalid="ignore", divide="ignore", under="ignore")
MIN_SAFE_WEIGHT, MAX_SAFE_WEIGHT = 1e-30, 1e30  # weights are rescaled if the largest is outside of this range
ROOMS = {"blocks": "scoreline.distributed", "device": "scoreline.gpu"}  # the package for each kind of scores


def room_module(scores: str, name: str) -> Any:
    """Return a module of the package for such scores; both packages have modules of the same names."""
    return importlib.import_module(f"{ROOMS[scores]}.{name}")


class ClusterError(RuntimeError):
    """Work on a cluster failed; the message says what to do."""


class RemoteVector(NDArrayOperatorsMixin):
    """A vector on a cluster or a device that works with NumPy's elementwise functions, sums and masks.

    `np.asarray` brings its entries to the host. Vectors are immutable: `z += 1` makes another one.

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
        """Return a host array with one entry per row as a vector in the same place as this one."""

    @abstractmethod
    def distinct(self, most: int = 100) -> AnyArray:
        """Return distinct entries, at most `most` per part, as a host array."""

    @abstractmethod
    def astype(self, dtype: DTypeLike, copy: bool = True) -> Self:
        """Return the entries as another type."""

    @abstractmethod
    def sum(self) -> Any:
        """Return the sum of all entries."""

    @abstractmethod
    def _entries(self) -> AnyArray:
        """Return all entries as a host array."""

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
        """Call a function that this kind of vector does not support on host arrays."""
        logger.info("numpy.%s needs all entries of a %s", function.__name__, type(self).__name__)
        return function(*map(_as_host, arguments), **{name: _as_host(value) for name, value in options.items()})

    def copy(self) -> Self:
        """Return the vector itself, which is immutable."""
        return self

    def __pow__(self, exponent: Any) -> Any:  # squares as arrays do; before NumPy 2.2 np.power rounds differently
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
    """Return entries as a vector: a vector on a device or a cluster stays there, anything else becomes an array."""
    if isinstance(rows, RemoteVector):
        return rows if dtype is None else rows.astype(dtype)
    if isinstance(rows, np.ma.MaskedArray) and np.ma.is_masked(rows):  # NumPy would use the hidden values
        raise ValueError(
            "a masked array with masked entries, expected numbers throughout; drop those rows or fill them in"
        )
    return np.asarray(rows, dtype=dtype)


def scaled_to_safe_range(weight: Any) -> tuple[Any, int]:
    """Return weights whose sums and products do not overflow, and the exponent k of the factor 2^k that they were scaled by.

    If the largest weight is outside of 1e-30 to 1e30, it is scaled to between 1/2 and 1. A power of two does not change the
    digits, but weights that are more than 1e300 times smaller become 0.
    """
    top = float(weight.max()) if len(weight) else 1.0
    if MIN_SAFE_WEIGHT <= top <= MAX_SAFE_WEIGHT or top == 0.0:
        return weight, 0
    exponent = -int(np.frexp(top)[1])
    with np.errstate(under="ignore"):
        return as_vector(np.ldexp(weight, exponent)), exponent


def checked_mask(mask: AnyArray) -> AnyArray:
    """Return a mask, or raise if it is not a Boolean vector."""
    if mask.dtype != bool or mask.ndim != 1:
        raise TypeError(
            f"a vector on a device or a cluster is indexed by a mask, a boolean for each row; got {mask.dtype} of shape "
            f"{mask.shape}"
        )
    return mask
