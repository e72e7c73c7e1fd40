"""Products and look-ups on a device: the interface of the kernels, their arguments, and the choice of a module.

Triton kernels (`kernels_triton.py`) run on CUDA devices, for tensors of PyTorch and, through DLPack, arrays of CuPy. All other
devices use functions of the Array API (`kernels_generic.py`). The shape determines the order of all sums, which gives the same
bits in every run if the library's own cumulative sums do.
"""

import importlib
import logging
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cache, cached_property
from typing import Any, NamedTuple, Protocol, cast

import numpy as np

from scoreline.gpu.backend import Backend, DeviceArray
from scoreline.runtime.types import FloatArray

logger = logging.getLogger("scoreline")

PADDED = 1 << 22  # entries of a table of segments, with padding


class Kernels(Protocol):
    """The functions that a module of kernels has."""

    def row_dots(self, backend: Backend, X: DeviceArray, w: DeviceArray) -> DeviceArray:
        """Return Xw in float64, whatever the type of X."""

    def column_sums(self, backend: Backend, X: DeviceArray, u: DeviceArray) -> DeviceArray:
        """Return X'u in float64."""

    def column_largest(self, backend: Backend, X: DeviceArray) -> DeviceArray:
        """Return the largest magnitude of each column; a column with NaN or infinity gets no finite number."""

    def segment_dots(self, segments: "Segments", vector: DeviceArray) -> DeviceArray:
        """Return the sum of values times vector[indices] over each segment."""

    def running_sums(self, backend: Backend, x: DeviceArray) -> DeviceArray:
        """Return the sums of the first 1, 2, ... entries."""

    def class_keys(self, backend: Backend, z: DeviceArray, rows: DeviceArray, margin: float) -> DeviceArray:
        """Return the scores of some rows minus the margin, or the next lower number if rounding loses the margin."""

    def ranked(
        self, backend: Backend, scores: DeviceArray, weight: DeviceArray | None, rows: DeviceArray, centre: DeviceArray
    ) -> "Ranked":
        """Return the scores of a class sorted, with running sums; `weight` is that of all rows, `rows` are the class's."""

    def look_up(
        self, backend: Backend, rows: "PairRows", positives: "Ranked", negatives: "Ranked | None", ramp: "Ramp"
    ) -> tuple[DeviceArray | None, FloatArray]:
        """Return a result for every row and three sums over pairs; the generic module has the formulas."""


class DlpackLibrary(NamedTuple):
    """The array class of a library, and its function that imports an array of another library without a copy."""

    array: type
    from_dlpack: Callable[[DeviceArray], DeviceArray]


class DlpackKernels:
    """Kernels of another library; arrays and results are exchanged by DLPack."""

    def __init__(self, kernels: Any, own: DlpackLibrary, theirs: DlpackLibrary):
        self.kernels, self.own, self.theirs = kernels, own, theirs

    def __getattr__(self, name: str) -> Callable[..., Any]:
        function = getattr(self.kernels, name)

        def call(*arguments: Any) -> Any:
            imported = [_exchanged(value, self.own.array, self.theirs.from_dlpack) for value in arguments]
            return _exchanged(function(*imported), self.theirs.array, self.own.from_dlpack)

        return call


def _exchanged(value: Any, array: type, from_dlpack: Callable[[DeviceArray], DeviceArray]) -> Any:
    """Return a value with all arrays of one class imported by another library, also inside of records and tuples."""
    if isinstance(value, array):
        return from_dlpack(value)
    if isinstance(value, (Segments, Ranked, PairRows, Ramp)):
        return type(value)(*(_exchanged(getattr(value, f.name), array, from_dlpack) for f in fields(value)))
    return tuple(_exchanged(each, array, from_dlpack) for each in value) if type(value) is tuple else value


@cache
def _has_triton() -> bool:
    try:
        torch = importlib.import_module("torch")
        importlib.import_module("triton")
        found = bool(torch.cuda.is_available())
    except ImportError:
        found = False
    if not found:
        logger.info(
            "PyTorch with CUDA and Triton is not installed: products on the device by the library's own functions, several "
            "times slower"
        )
    return found


def on(backend: Backend) -> Kernels:
    """Return the kernels that run on this device."""
    if not (backend.is_cuda and _has_triton()):
        return cast(Kernels, importlib.import_module("scoreline.gpu.kernels_generic"))
    triton = importlib.import_module("scoreline.gpu.kernels_triton")
    if backend.library == "torch":
        return cast(Kernels, triton)
    torch, cupy = importlib.import_module("torch"), importlib.import_module("cupy")
    own, theirs = DlpackLibrary(cupy.ndarray, cupy.from_dlpack), DlpackLibrary(torch.Tensor, torch.from_dlpack)
    return cast(Kernels, DlpackKernels(triton, own, theirs))


@dataclass(frozen=True)
class Segments:
    """Runs of (value, index) pairs on a device: the rows of a CSR matrix, or pieces of its columns.

    Attributes
    ----------
    starts, stops : device arrays of int64
        The bounds of each segment.
    values : device array
        float32 or float64.
    indices : device array of int32 or int64, or None
        The entries of the vector that the values are multiplied by; None to add the values themselves.
    """

    backend: Backend
    starts: DeviceArray
    stops: DeviceArray
    values: DeviceArray
    indices: DeviceArray | None

    def __len__(self) -> int:
        return int(self.starts.shape[0])

    @cached_property
    def mean_length(self) -> float:
        """Entries of a segment on average."""
        return float(self.values.shape[0]) / max(1, len(self))

    @cached_property
    def tables(self) -> tuple[list[tuple[DeviceArray, int]], DeviceArray]:
        """Groups of segments of similar length, each with the largest length, and the place of each segment in the groups.

        The generic kernels turn a group into a table with one row per segment.
        """
        lengths = self.backend.host(self.stops - self.starts)
        order = np.argsort(lengths, kind="stable")
        rising = lengths[order]
        groups, start = [], 0
        while start < len(order):
            most = 2 * int(rising[start]) + 8
            stop = int(np.searchsorted(rising, most, side="right"))
            stop = min(stop, start + max(1, PADDED // max(1, most)))
            length = int(rising[stop - 1])
            groups.append((self.backend.array(order[start:stop], np.int64), length))
            start = stop
        places = np.empty(len(order), dtype=np.int64)
        places[order] = np.arange(len(order))
        return groups, self.backend.array(places)


@dataclass(frozen=True)
class Ranked:
    """The sorted scores of one class, with cumulative sums of their weights (None for weights of 1) and weighted distances.

    `sums[k]` is the sum of weight * (score - centre) over the first k + 1; `rows` has the index of each score before sorting,
    or is None.
    """

    scores: DeviceArray
    weights: DeviceArray | None
    sums: DeviceArray
    rows: DeviceArray | None = None

    def __len__(self) -> int:
        return int(self.scores.shape[0])


@dataclass
class PairRows:
    """The rows of a look-up: scores, weights (or None), and the row numbers of either class."""

    z: DeviceArray
    weight: DeviceArray | None
    positive_rows: DeviceArray
    negative_rows: DeviceArray
    places: DeviceArray | None = None  # the place of each row among positives followed by negatives


@dataclass(frozen=True)
class Ramp:
    """The function of t = margin - z_i + z_j that a look-up computes: ramps of a width, or with `curved` the weight on a ramp.

    The results are multiplied by `scales` of positives and negatives; `both` requests those of positives too.
    """

    margin: float
    width: float
    centre: DeviceArray  # a number of the device
    scales: tuple[float, float]
    both: bool
    curved: bool


def host_floats(backend: Backend, numbers: DeviceArray) -> FloatArray:
    """Copy a few numbers of the device to the host."""
    return backend.host(numbers).astype(np.float64)
