"""Matrices on a device; only vectors of length p and numbers come back to the host."""

import copy
from abc import abstractmethod
from collections.abc import Iterable, Iterator
from numbers import Real
from typing import Any

import numpy as np

from scoreline.gpu import kernels as device_kernels
from scoreline.gpu.backend import Backend, DeviceArray
from scoreline.gpu.vector import DeviceVector
from scoreline.operators.base import ROW_VECTORS, Operator, RowArrays
from scoreline.operators.moments import ClassMoments, Moments
from scoreline.operators.statistics import ColumnStatistics, merge
from scoreline.runtime.array_types import library_of
from scoreline.runtime.types import AnyArray, BoundsArray, FloatArray, Scores

ON_DEVICE = (
    "X is on a device, and solver={solver!r} reads single rows on the host: pass X as a NumPy array or SciPy matrix, "
    "without device=, or choose another solver (solver='auto')"
)
# Entries of X that are converted to float64 at once: enough to use a GPU fully, and little of its memory.
BLOCK_ON_GPU, BLOCK = 1 << 26, 1 << 21


class DeviceOperator(Operator):
    """X on a device. Each product copies w to it or X'u from it, p numbers; scores and gradients stay on the device.

    A subclass implements the two products, and rows as dense float64 blocks for second-order computations.

    Attributes
    ----------
    backend : Backend
        Its library and device.
    """

    scores = "device"
    capabilities = frozenset({"row_blocks", "rows", "statistics"})

    def __init__(self, shape: tuple[int, int], backend: Backend):
        super().__init__(shape)
        self.backend = backend
        self._scale: DeviceArray | None = None
        self._center: DeviceArray | None = None

    @abstractmethod
    def _rows(self, start: int, stop: int, rows: DeviceArray | None = None) -> DeviceArray:
        """Return rows start..stop, or a list of rows, as a dense float64 array on the device."""

    def rescaled(self, scale: FloatArray, center: FloatArray | None) -> "DeviceOperator":
        """Return (X - 1 center') diag(scale) for second-order computations, which centre rows before squaring them."""
        moved = copy.copy(self)
        moved._scale = self.backend.array(scale)
        moved._center = None if center is None else self.backend.array(center)
        return moved

    def aligned(self, rows: Any, name: str = "y") -> Any:
        """Return entries for the rows as a vector on the device; text and objects stay on the host."""
        return self._aligned(rows, self.shape[0], name)

    def _aligned(self, rows: Any, length: int, name: str) -> Any:
        if isinstance(rows, Real) and name != "y":  # the same weight for all
            return self._made(self.backend.full((length,), float(rows)))
        if rows is None:
            return None
        if not isinstance(rows, DeviceVector):
            array = self._native(rows, name)
            if array is None:
                return rows
            if name == "y" and array.ndim == 2 and array.shape[1] == 1:
                array = array.reshape(-1) if isinstance(array, np.ndarray) else self.backend.xp.reshape(array, (-1,))
            rows = self._made(self.backend.array(array))
        if rows.array.shape != (length,):
            raise ValueError(
                f"{name} has shape {tuple(rows.array.shape)}, expected ({length},), one for each row of X: inconsistent "
                "numbers of samples"
            )
        return rows

    def _native(self, rows: Any, name: str) -> AnyArray | DeviceArray | None:
        """Return entries as an array of a type that devices support, None if there is none."""
        array: Any = rows if library_of(rows) is not None else np.asarray(rows)
        if not isinstance(array, np.ndarray):
            if "complex" in str(array.dtype):
                raise ValueError(f"{name} holds complex numbers, expected real ones")
            half = str(array.dtype).endswith("float16")  # too inaccurate for sums
            return self.backend.xp.astype(array, self.backend.xp.float32) if half else array
        if array.dtype.kind not in "bif" and array.dtype != np.uint8:  # checked on the host
            return None
        other = {"f2": np.float32, "f16": np.float64}.get(array.dtype.str[1:], array.dtype.newbyteorder("="))
        return array.astype(other, copy=False)

    def _vector(self, v: Any, length: int, name: str) -> Any:
        if name not in ROW_VECTORS:
            return super()._vector(v, length, name)
        vector = self._aligned(v, length, name)
        return vector if name == "sign" else vector.astype(np.float64)

    def rmatvec(self, u: Any) -> FloatArray:
        """Return X'u, with u on the device or as an array."""
        return super().rmatvec(self._vector(u, self.shape[0], "u"))

    def _host(self, x: DeviceArray) -> FloatArray:
        found = self.backend.host(x)  # before NumPy 2.1 arrays of other libraries are read-only
        return found if found.flags.writeable else found.copy()

    def _made(self, x: DeviceArray) -> DeviceVector:
        return DeviceVector(x, self.backend)

    @abstractmethod
    def _on_rows(self, rows: DeviceArray) -> "DeviceOperator":
        """Return a copy of the listed rows."""

    def on_rows(self, rows: AnyArray) -> "DeviceOperator":
        """Return a copy of the listed rows, on the device."""
        own = self._on_rows(self.backend.array(self._row_list(rows).astype(np.int64)))
        own.largest = self.largest  # those of all rows are upper bounds
        return own

    def _matvec_rows(self, w: FloatArray, lines: BoundsArray) -> DeviceVector:
        scores: DeviceVector = self._on_rows(self.backend.array(lines.astype(np.int64)))._matvec(w)
        return scores

    def _rmatvec_rows(self, u: DeviceVector, lines: BoundsArray) -> FloatArray:
        return self._on_rows(self.backend.array(lines.astype(np.int64)))._rmatvec(u)

    def _blocks(self, rows: DeviceArray | None = None) -> Iterator[tuple[int, int, DeviceArray]]:
        """Yield all rows, or a list of rows, as dense float64 blocks, centred and scaled."""
        count = self.shape[0] if rows is None else rows.shape[0]
        step = max(1, (BLOCK_ON_GPU if self.backend.is_cuda else BLOCK) // self.shape[1])
        for start in range(0, count, step):
            stop = min(start + step, count)
            block = self._rows(start, stop, None if rows is None else rows[start:stop])
            if self._center is not None:
                block = block - self._center[None, :]
            yield start, stop, block if self._scale is None else block * self._scale[None, :]

    def _joined(self, parts: Iterable[DeviceArray]) -> DeviceVector:
        return self._made(self.backend.xp.concat([self.backend.full((0,), 0.0), *parts]))

    def _gram(self, weight: DeviceVector) -> FloatArray:
        xp, total = self.backend.xp, self.backend.full((self.shape[1],) * 2, 0.0)
        rows, s = None, weight.array
        counted = int(xp.count_nonzero(s))
        if counted < 0.7 * self.shape[0]:  # skip rows of weight 0 if there are many
            rows = xp.nonzero(s)[0]
            s = self.backend.take(s, rows)
        for start, stop, block in self._blocks(rows):
            total = total + xp.matmul((block * s[start:stop, None]).T, block)
        return self._host(total)

    def _quadratics(self, matrix: FloatArray) -> DeviceVector:
        xp, m = self.backend.xp, self.backend.array(matrix, np.float64)
        return self._joined(xp.sum(xp.matmul(b, m) * b, axis=1) for _, _, b in self._blocks())

    def _square_rmatvec(self, u: DeviceVector) -> FloatArray:
        xp, total = self.backend.xp, self.backend.full((self.shape[1],), 0.0)
        for start, stop, block in self._blocks():
            total = total + xp.matmul((block * block).T, u.array[start:stop])
        return self._host(total)

    def _diagonal_leverages(self, diagonal: FloatArray, weight: DeviceVector) -> DeviceVector:
        xp, d = self.backend.xp, self.backend.array(diagonal)
        blocks = ((start, stop, block * block) for start, stop, block in self._blocks())
        return self._joined(
            xp.sum(squares / (d[None, :] - weight.array[start:stop, None] * squares), axis=1)
            for start, stop, squares in blocks
        )

    def row_norms(self) -> Scores:
        """Return the Euclidean length of every row. One pass."""
        self._count(1.0)
        xp = self.backend.xp
        return self._joined(xp.sqrt(xp.sum(b * b, axis=1)) for _, _, b in self._blocks())

    def _column_statistics(self, weight: DeviceVector | None) -> ColumnStatistics:
        xp, parts = self.backend.xp, []
        for start, stop, block in self._blocks():
            s = self.backend.full((stop - start,), 1.0) if weight is None else weight.array[start:stop]
            total = xp.sum(s)
            mean = xp.matmul(block.T, s) / xp.where(total > 0.0, total, self.backend.full((), 1.0))
            moved = block - mean[None, :]
            squares = xp.matmul((moved * moved).T, s)
            there = block if weight is None else block * xp.astype(s > 0.0, xp.float64)[:, None]
            sums = self._host(xp.stack([mean, squares, xp.max(xp.abs(there), axis=0)]))
            w = np.full(self.shape[1], float(total))
            variance = np.divide(sums[1], w, out=np.zeros_like(w), where=w > 0.0)
            parts.append(ColumnStatistics(w, sums[0], variance, sums[2]))
        return merge(parts)

    def class_moments(self, sign: Any, weight: Any = None) -> ClassMoments:
        """Return weight, mean and scatter of either class, by matrix products in float64. One pass."""
        self.n_passes += 1.0
        sign = self._vector(sign, self.shape[0], "sign")
        return self._class_moments(sign, None if weight is None else self._vector(weight, self.shape[0], "weight"))

    def _class_moments(self, sign: Scores, weight: Scores) -> ClassMoments:
        xp, sides = self.backend.xp, []
        for side in (1, -1):
            chosen = sign.array == side
            rows = xp.nonzero(chosen if weight is None else chosen & (weight.array > 0.0))[0]
            s = None if weight is None else self.backend.take(weight.array, rows)
            sides.append(self._moments(rows, s))
        return ClassMoments(*sides)

    def _moments(self, rows: DeviceArray, s: DeviceArray | None) -> Moments:
        """Return the moments of listed rows, summed around the mean of the first block."""
        xp, p, total = self.backend.xp, self.shape[1], 0.0
        if rows.shape[0] == 0:
            return Moments.empty(p)
        origin, sums, squares = None, self.backend.full((p,), 0.0), self.backend.full((p, p), 0.0)
        for start, stop, block in self._blocks(rows):
            origin = xp.mean(block, axis=0) if origin is None else origin
            moved = block - origin[None, :]
            weighted = moved if s is None else moved * s[start:stop, None]
            total += float(stop - start) if s is None else float(xp.sum(s[start:stop]))
            sums, squares = sums + xp.sum(weighted, axis=0), squares + xp.matmul(weighted.T, moved)
        offset = self._host(sums) / total
        return Moments(total, self._host(origin) + offset, self._host(squares) - total * np.outer(offset, offset))

    def _row_arrays(self, start: int, stop: int) -> RowArrays:
        raise TypeError(ON_DEVICE.format(solver="one that works row by row"))


class DenseDeviceOperator(DeviceOperator):
    """A dense float32 or float64 array on a device, in any memory order, without a copy."""

    def __init__(self, X: DeviceArray, backend: Backend):
        super().__init__(tuple(X.shape), backend)
        self._X = X
        self._kernels = device_kernels.on(self.backend)

    def _matvec(self, w: FloatArray) -> DeviceVector:
        if self.shape[0] == 0:
            return self._made(self.backend.full((0,), 0.0))
        return self._made(self._kernels.row_dots(self.backend, self._X, self.backend.array(w)))

    def _rmatvec(self, u: DeviceVector) -> FloatArray:
        if self.shape[0] == 0:
            return np.zeros(self.shape[1])
        return self._host(self._kernels.column_sums(self.backend, self._X, u.array))

    def _rows(self, start: int, stop: int, rows: DeviceArray | None = None) -> DeviceArray:
        xp = self.backend.xp
        return xp.astype(self._X[start:stop, :] if rows is None else self.backend.take(self._X, rows), xp.float64)

    def _block(self, start: int, stop: int) -> AnyArray:
        return self.backend.host(self._X[start:stop, :])

    def _on_rows(self, rows: DeviceArray) -> "DenseDeviceOperator":
        return DenseDeviceOperator(self.backend.take(self._X, rows), self.backend)

    @property
    def row_bytes(self) -> float:
        """Bytes of a row."""
        return float(self.backend.numpy_dtype(self._X).itemsize * self.shape[1])

    def inspect(self) -> tuple[int, int] | None:
        """Return (row, column) of a NaN or an infinity, or None, and set `largest`, in one pass over X."""
        xp = self.backend.xp
        self.largest = largest = self._host(self._kernels.column_largest(self.backend, self._X)).astype(np.float64)
        if np.isfinite(largest).all():
            return None
        columns = np.flatnonzero(~np.isfinite(largest)).tolist()
        return min((int(xp.nonzero(~xp.isfinite(self._X[:, c]))[0][0]), c) for c in columns)
