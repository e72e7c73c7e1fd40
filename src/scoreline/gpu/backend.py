"""The library and device of an array (PyTorch, CuPy, other Array API libraries), and copies to the device and back.

A library is imported only for an array of that library or for the name of a device.
"""

import sys
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import DTypeLike

from scoreline.runtime.array_types import library_of, on_host
from scoreline.runtime.optional import require
from scoreline.runtime.types import AnyArray

DeviceArray: TypeAlias = Any  # of PyTorch, CuPy or another Array API library

PURPOSE = "training on a device"
DEVICES = "'cuda', 'cuda:1', 'cupy' or 'cpu'"
INSTALL = "pip install 'scoreline[gpu]' torch (see pytorch.org for your CUDA version), or cupy-cuda12x or cupy-cuda13x"


@dataclass(frozen=True)
class Backend:
    """A namespace of array functions and a device.

    Attributes
    ----------
    library : str
        "torch", "cupy" or "array_api".
    xp : module
        Its functions with the names of the Array API standard.
    device : object
        The device for new arrays.
    """

    library: str
    xp: Any
    device: Any

    @cached_property
    def is_cuda(self) -> bool:
        """Whether the device runs CUDA kernels."""
        return self.library == "cupy" or (self.library == "torch" and self.device.type == "cuda")

    def dtype(self, like: DTypeLike) -> Any:
        """Return this library's type of the same name as one of NumPy's."""
        name = np.dtype(like).name
        return getattr(self.xp, name if hasattr(self.xp, name) else f"{name}_")

    def numpy_dtype(self, x: DeviceArray) -> np.dtype[Any]:
        """Return NumPy's type of an array's entries."""
        return np.dtype(str(x.dtype).rpartition(".")[2])

    def array(self, rows: Any, dtype: DTypeLike | None = None) -> DeviceArray:
        """Copy an array of the host or of the library to the device; `dtype` is one of NumPy's."""
        kind = None if dtype is None else self.dtype(dtype)
        if library_of(rows) is None:
            rows = np.asarray(rows, dtype=dtype)
            if not (rows.flags.writeable and rows.flags.c_contiguous) and self.library == "torch":
                rows = np.array(rows)  # PyTorch warns about read-only arrays
        elif library_of(rows) == "torch":
            rows = rows.detach()
        return self.xp.asarray(rows, dtype=kind, device=self.device)

    def contiguous(self, x: DeviceArray) -> DeviceArray:
        """Return a contiguous array, as kernels need it; a copy only if necessary."""
        if self.library == "torch":
            return x.contiguous()
        return sys.modules["cupy"].ascontiguousarray(x) if self.library == "cupy" else x

    def full(self, shape: tuple[int, ...], value: float, dtype: DTypeLike = np.float64) -> DeviceArray:
        """Return an array of equal entries."""
        return self.xp.full(shape, value, dtype=self.dtype(dtype), device=self.device)

    def arange(self, *ends: int) -> DeviceArray:
        """Return a range of integers."""
        return self.xp.arange(*ends, device=self.device)

    def take(self, x: DeviceArray, places: DeviceArray) -> DeviceArray:
        """Return the entries, or rows, at some places."""
        if self.library == "torch":
            return x.index_select(0, places)  # array_api_compat would first check for negative places
        return self.xp.take(x, places, axis=0)

    def host(self, x: DeviceArray) -> AnyArray:
        """Copy an array to the host."""
        if self.library in ("torch", "cupy"):
            return np.asarray(on_host(x))
        from array_api_compat import to_device

        cpu = getattr(self.xp, "Device", None)  # array-api-strict names its own
        return np.asarray(np.from_dlpack(x if cpu is None else to_device(x, cpu("CPU_DEVICE"))))

    def scattered(self, kind: str, size: int, places: DeviceArray, values: DeviceArray) -> DeviceArray:
        """Return `size` zeros with values added at their places ("add"), or with the maximum of values >= 0 there ("max").

        The standard has no such function. Values with the same place are added in an order that is not fixed.
        """
        if self.library == "torch":
            out = self.xp.zeros(size, dtype=values.dtype, device=self.device)
            return out.scatter_reduce_(0, places.long(), values, "sum" if kind == "add" else "amax")
        if self.library == "cupy":
            cupy = sys.modules["cupy"]
            if kind == "add":
                out = cupy.zeros(size, dtype=values.dtype)
                cupy.add.at(out, places, values)
                return out
            # CuPy rounds the maximum of float64 to float32 here, but numbers >= 0 have the order of their bits.
            integer = f"int{8 * values.dtype.itemsize}"
            bits = cupy.zeros(size, dtype=integer)
            cupy.maximum.at(bits, places, values.view(integer))
            return bits.view(values.dtype)
        total = np.zeros(size, dtype=self.numpy_dtype(values))
        (np.add if kind == "add" else np.maximum).at(total, self.host(places), self.host(values))
        return self.array(total)

    def integer_sums(self, size: int, places: DeviceArray, values: DeviceArray) -> DeviceArray:
        """Return `size` sums of int64 values by their place; the same bits in any order."""
        if self.library != "cupy":
            return self.scattered("add", size, places, values)
        # CuPy adds to unsigned numbers only; negative ones wrap around.
        return self.scattered("add", size, places, values.view("uint64")).view("int64")

    def free_bytes(self) -> int | None:
        """Return the free memory of the device, None if unknown."""
        if self.library == "torch" and self.is_cuda:
            torch = sys.modules["torch"]
            cached = torch.cuda.memory_reserved(self.device) - torch.cuda.memory_allocated(self.device)
            return int(torch.cuda.mem_get_info(self.device)[0] + cached)
        if self.library == "cupy":
            cupy = sys.modules["cupy"]
            return int(cupy.cuda.runtime.memGetInfo()[0] + cupy.get_default_memory_pool().free_bytes())
        return None


def backend_of(X: DeviceArray) -> Backend:
    """Return the library and device of an array."""
    library = library_of(X)
    assert library is not None
    compat = require("array_api_compat", "gpu", PURPOSE)
    if library == "cupy" and not isinstance(X, sys.modules["cupy"].ndarray):
        X = X.data  # of a sparse matrix
    return Backend(library, compat.array_namespace(X), X.device)


def named_device(device: object) -> Backend:
    """Return the backend of a device by its name: "cuda", "cuda:1", "cpu" (PyTorch), "cupy".

    "cupy", and "cuda" without PyTorch, mean CuPy's current device.
    """
    device = str(device) if type(device).__module__ == "torch" else device
    if not isinstance(device, str) or not device:
        raise ValueError(f"device={device!r} must be the name of a device: {DEVICES}")
    kind, colon, number = device.partition(":")
    if kind not in ("cuda", "cpu", "cupy") or (colon and (kind != "cuda" or not number.isdigit())):
        raise ValueError(f"device={device!r} is not known; expected {DEVICES}")
    require("array_api_compat", "gpu", PURPOSE)
    for library in ("cupy",) if kind == "cupy" else ("torch", "cupy"):
        try:
            module = __import__(library)
        except ImportError:
            continue
        if library == "cupy":
            if kind == "cpu":
                continue
            if number:
                raise ValueError(
                    f"device={device!r} needs PyTorch, which is not installed; with CuPy enter cupy.cuda.Device({number}) and "
                    "pass device='cupy'"
                )
            return backend_of(module.empty(0))
        if kind == "cuda" and not module.cuda.is_available():
            raise ValueError(
                f"device={device!r}: PyTorch {module.__version__} sees no CUDA device (a build for CPUs, or no driver). "
                "Train without device=, or install a build for your CUDA version."
            )
        return backend_of(module.empty(0, device=device))
    missing = {"cupy": "CuPy", "cpu": "PyTorch"}.get(kind, "PyTorch or CuPy")
    raise ImportError(f"device={device!r} needs {missing}, which is not installed. Install it: {INSTALL}")
