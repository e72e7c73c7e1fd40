"""A vector on a device that works with NumPy's functions, so that code for NumPy arrays runs on the device."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from scoreline.gpu.backend import Backend, DeviceArray, backend_of
from scoreline.runtime.types import AnyArray
from scoreline.runtime.vectors import RemoteVector, checked_mask

# NumPy's elementwise functions that have another name in the Array API.
NAMES = {
    "true_divide": "divide",
    "rint": "round",
    "absolute": "abs",
    "invert": "bitwise_invert",
    "power": "pow",
}
OF_FLOATS = {"true_divide", "divide", "sqrt", "exp", "log", "log1p", "expm1", "cos", "logaddexp"}
TESTS = {"isfinite", "isnan", "signbit"}  # one argument, and the result has another type


class DeviceVector(RemoteVector):
    """An array of a device library as scores, labels or weights.

    A function that the library does not have (`np.unique` and the like) brings all entries to the host, which is logged.

    Attributes
    ----------
    array : device array
        The entries.
    backend : Backend
        Its library and device.
    """

    scores = "device"

    def __init__(self, array: DeviceArray, backend: Backend | None = None):
        self.backend = backend_of(array) if backend is None else backend
        self.array = self.backend.contiguous(array)

    def _made(self, array: DeviceArray) -> "DeviceVector":
        return DeviceVector(array, self.backend)

    def like(self, rows: Any) -> "DeviceVector":
        """Return entries as a vector on the same device."""
        return rows if isinstance(rows, DeviceVector) else self._made(self.backend.array(rows))

    def distinct(self, most: int = 100) -> AnyArray:
        """Return distinct entries, on the host."""
        return self.backend.host(self.backend.xp.unique_values(self.array))[: 100 * most]

    @property
    def dtype(self) -> np.dtype[Any]:
        """NumPy's type of its entries."""
        return self.backend.numpy_dtype(self.array)

    @property
    def size(self) -> int:
        """Its length."""
        return len(self)

    def __len__(self) -> int:
        return int(self.array.shape[0])

    def __getitem__(self, place: Any) -> Any:
        """Return the entries of a slice, a mask or a list of rows, or one entry."""
        if isinstance(place, slice):
            return self._made(self.array[place])
        if isinstance(place, (int, np.integer)):
            return self.backend.host(self.array[int(place)])[()]
        chosen: Any = place if isinstance(place, DeviceVector) else np.asarray(place)
        if chosen.dtype.kind in "iu":
            rows = chosen.array if isinstance(chosen, DeviceVector) else self.backend.array(chosen, np.int64)
            return self._made(self.backend.take(self.array, rows))
        return self._made(self.array[self.like(checked_mask(chosen)).array])

    def _entries(self) -> AnyArray:
        return self.backend.host(self.array)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        out = options.pop("out", ())  # x += 1 makes another vector
        if out and not isinstance(out[0], DeviceVector):
            raise TypeError("results of a vector on a device do not fit into a host array")
        if method != "__call__" or options or ufunc.nout != 1:
            return NotImplemented
        xp, name = self.backend.xp, ufunc.__name__
        if name == "matmul":
            x, y = (self.like(v).astype(np.float64).array for v in inputs)
            return float(xp.vecdot(x, y))
        if name == "ldexp":
            return inputs[0] * 2.0 ** int(inputs[1])
        if name in TESTS:
            return self._made(getattr(xp, name)(self.array))
        if name in ("logical_and", "logical_or", "logical_not"):
            inputs = tuple(v != 0 for v in inputs)
        function = getattr(xp, NAMES.get(name, name), None)
        if function is None:
            return self._on_host(ufunc, inputs, {})
        return self._made(function(*self._operands(inputs, name in OF_FLOATS)))

    def __array_function__(
        self, function: Callable[..., Any], types: Any, arguments: Sequence[Any], options: Mapping[str, Any]
    ) -> Any:
        own = getattr(self, f"_np_{function.__name__}", None)
        if own is not None:
            result = own(*arguments, **options)
            if result is not NotImplemented:
                return result
        return self._on_host(function, arguments, options)

    def _np_where(self, condition: Any, *choices: Any) -> Any:
        if len(choices) != 2:
            return NotImplemented  # places, not entries
        return self._made(self.backend.xp.where(self.like(condition).array, *self._operands(choices)))

    def _np_clip(self, x: Any, a_min: Any = None, a_max: Any = None) -> Any:
        x = x if a_min is None else np.maximum(x, a_min)
        return x if a_max is None else np.minimum(x, a_max)

    def _np_zeros_like(self, x: "DeviceVector", dtype: DTypeLike | None = None) -> "DeviceVector":
        return self._np_full_like(x, 0, dtype)

    def _np_ones_like(self, x: "DeviceVector", dtype: DTypeLike | None = None) -> "DeviceVector":
        return self._np_full_like(x, 1, dtype)

    def _np_full_like(self, x: "DeviceVector", value: float, dtype: DTypeLike | None = None) -> "DeviceVector":
        return self._made(self.backend.full((len(x),), value, x.dtype if dtype is None else dtype))

    def _np_count_nonzero(self, x: "DeviceVector") -> int:
        return int(self.backend.xp.count_nonzero(x.array))

    def _np_flatnonzero(self, x: "DeviceVector") -> "DeviceVector":
        return self._made(self.backend.xp.nonzero(x.array)[0])

    def _np_shape(self, x: "DeviceVector") -> tuple[int]:
        return x.shape

    def _np_ndim(self, x: "DeviceVector") -> int:
        return 1

    def _np_bincount(self, x: "DeviceVector", weights: Any = None, minlength: int = 0) -> Any:
        """Count the entries of each kind in a pass per kind, if there are few kinds."""
        kinds = max(minlength, int(x.max()) + 1)
        if kinds > 64:
            return NotImplemented
        if weights is None:
            return np.array([np.count_nonzero(x == k) for k in range(kinds)])
        return np.array([np.where(x == k, weights, 0.0).sum() for k in range(kinds)])

    def _operands(self, values: Sequence[Any], floats: bool = False) -> list[DeviceArray]:
        """Return operands as arrays of the common type by NumPy's rules."""
        values = [np.asarray(v) if isinstance(v, (list, tuple)) else v for v in values]
        kinds = [v.dtype if isinstance(v, (DeviceVector, np.ndarray, np.generic)) else v for v in values]
        dtype = np.result_type(*kinds)
        dtype = np.dtype(np.float64) if floats and dtype.kind in "biu" else dtype
        return [v.astype(dtype).array if isinstance(v, DeviceVector) else self.backend.array(v, dtype) for v in values]

    def astype(self, dtype: DTypeLike, copy: bool = True) -> "DeviceVector":
        """Return the entries as another type."""
        if self.dtype == np.dtype(dtype):
            return self
        return self._made(self.backend.xp.astype(self.array, self.backend.dtype(dtype)))

    def sum(self) -> int | float:
        """Return the sum of all entries, floats in float64."""
        xp, kind = self.backend.xp, self.dtype.kind
        if kind == "f":
            return float(xp.sum(self.array, dtype=xp.float64))
        return int(xp.count_nonzero(self.array) if kind == "b" else xp.sum(self.array))

    def _extreme(self, name: str, initial: float | None) -> Any:
        if initial is not None and len(self) == 0:
            return initial
        if self.dtype.kind == "b":
            return bool(self.astype(np.int8)._extreme(name, None))
        found = self.backend.host(getattr(self.backend.xp, name)(self.array))[()]
        return found if initial is None else getattr(np, name)([found, initial])

    def any(self) -> bool:
        """Tell whether an entry is true."""
        return bool(self.backend.xp.any(self.array != 0 if self.dtype.kind != "b" else self.array))

    def all(self) -> bool:
        """Tell whether all entries are true."""
        return bool(self.backend.xp.all(self.array != 0 if self.dtype.kind != "b" else self.array))

    def __repr__(self) -> str:
        return f"DeviceVector({len(self)} entries of {self.dtype} on {self.backend.device})"
