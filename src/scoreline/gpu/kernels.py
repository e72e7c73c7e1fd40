"""Products and look-ups on a device: one set of functions, by Triton, by CUDA C or by the Array API.

`on(backend)` returns the module to use: `kernels_triton.py` for PyTorch on CUDA (Triton comes with it), `kernels_cuda.py` for
CuPy, `kernels_generic.py` for anything else, and for PyTorch where Triton is missing. Each has

    row_dots(backend, X, w)         z = Xw, float64, whatever the type of X
    column_sums(backend, X, u)      X'u, float64
    column_largest(backend, X)      largest magnitude of each column, infinity where there is NaN
    segment_dots(segments, v)       for each segment the sum of values times v[indices]
    running_sums(backend, x)        sums of the first 1, 2, ... entries
    class_keys(...)                 the scores of a class of rows, less the margin
    ranked(...)                     the same, sorted
    look_up(...)                    sums over pairs, see `look_up` of the generic module

All sums have an order that the shape fixes: the same bits in every run.
"""

import importlib
import logging
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np

from scoreline.gpu.backend import Backend
from scoreline.runtime.types import AnyArray

logger = logging.getLogger("scoreline")

PADDED = 1 << 22  # entries of a table of segments, those that only fill it up included


@cache
def _has_triton() -> bool:
    try:
        importlib.import_module("triton")
    except ImportError:
        logger.info("Triton is not installed: products on the device by PyTorch's own functions, several times slower")
        return False
    return True


def on(backend: Backend) -> Any:
    """Return the module whose functions run on this device."""
    name = "generic"
    if backend.library == "cupy":
        name = "cuda"
    elif backend.library == "torch" and backend.is_cuda and _has_triton():
        name = "triton"
    return importlib.import_module(f"scoreline.gpu.kernels_{name}")


@dataclass(frozen=True)
class Segments:
    """Runs of (value, index) pairs on a device: the rows of a CSR matrix, or pieces of its columns.

    Attributes
    ----------
    starts, stops : device arrays of int64
        Where each segment begins and ends.
    values : device array
        float32 or float64.
    indices : device array of int32 or int64, or None
        What each value is multiplied by; None to add up the values themselves.
    """

    backend: Backend
    starts: Any
    stops: Any
    values: Any
    indices: Any

    def __len__(self) -> int:
        return int(self.starts.shape[0])

    @cached_property
    def mean_length(self) -> float:
        """Entries of a segment on average."""
        return float(self.values.shape[0]) / max(1, len(self))

    @cached_property
    def tables(self) -> tuple[list[tuple[Any, int]], Any]:
        """Segments of similar length, as lists of numbers with the largest length, and where to find each afterwards.

        For libraries without kernels of their own: a list becomes a table with a row for each segment.
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
    """The scores of one class, sorted, with running sums of their weights (None: 1 each) and of weight times distance.

    `sums[k]` is the sum of weight * (score - centre) over the first k + 1; `rows` has the place of each score before
    sorting, where that is kept.
    """

    scores: Any
    weights: Any
    sums: Any
    rows: Any = None

    def __len__(self) -> int:
        return int(self.scores.shape[0])


@dataclass
class PairRows:
    """All rows as a look-up reads them: scores, labels, weights (or None), and the numbers of either class's rows."""

    z: Any
    sign: Any
    weight: Any
    positive_rows: Any
    negative_rows: Any
    places: Any = None  # of each row among positives followed by negatives


@dataclass(frozen=True)
class Ramp:
    """What a look-up computes of t = margin - z_i + z_j: ramps of a width, or with `curved` the weight on a ramp.

    The results are multiplied by `scales` of positives and negatives; `both` asks for those of positives too.
    """

    margin: float
    width: float
    centre: Any  # a number of the device
    scales: tuple[float, float]
    both: bool
    curved: bool


def host_floats(backend: Backend, numbers: Any) -> AnyArray:
    """Return a few numbers of the device here, in one go."""
    return backend.host(numbers).astype(np.float64)
