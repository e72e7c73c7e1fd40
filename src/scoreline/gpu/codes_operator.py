"""Features that are functions of one-byte codes, on a device: tables are made on the host, look-ups and sums are done there."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from scoreline.gpu.backend import Backend, DeviceArray
from scoreline.gpu.operator import DeviceOperator
from scoreline.gpu.vector import DeviceVector
from scoreline.operators.codes import Group
from scoreline.runtime.types import AnyArray, FloatArray

LANES = 32  # sums of a cell that threads add to at the same time
SUM_BITS = 61  # of a whole number that holds a sum


class CodesDeviceOperator(DeviceOperator):
    """`CodesOperator` on a device: one byte per value on the device; tables are sent there, sums of cells come back.

    Sums over the rows of a cell are added as whole numbers, multiples of a power of 2, so every run gives the same bits in
    whatever order threads add. The unit is 2^-61 of what n rows of the largest entry add up to.

    Parameters
    ----------
    codes : uint8 array of shape (columns, n) on the device
        One line per column.
    groups : sequence of Group
        As of `CodesOperator`.
    backend : Backend
        Library and device of the codes.
    """

    def __init__(self, codes: DeviceArray, groups: Sequence[Group], backend: Backend):
        super().__init__((codes.shape[1], sum(group.basis.shape[1] for group in groups)), backend)
        self.codes, self.groups = codes, tuple(groups)
        self.largest = np.concatenate([np.abs(group.basis).max(axis=0, initial=0.0) for group in groups])
        self.tails_checked = True  # codes have no tails
        self._maps = [
            (backend.array(group.near.astype(np.int64)), backend.array(group.far.astype(np.int64)))
            for group in groups[codes.shape[0] :]
        ]

    def with_groups(self, groups: Sequence[Group]) -> "CodesDeviceOperator":
        """Return other functions of the same codes."""
        return CodesDeviceOperator(self.codes, groups, self.backend)

    def _cells(self, g: int, rows: DeviceArray | slice = slice(None)) -> DeviceArray:
        """Return the cells of the rows in a group, as int64."""

        def code(column: int) -> DeviceArray:
            line = self.codes[column, :]
            chosen = line[rows] if isinstance(rows, slice) else self.backend.take(line, rows)
            return self.backend.xp.astype(chosen, self.backend.xp.int64)

        one, other = self.groups[g].columns
        if other < 0:
            return code(one)
        near, far = self._maps[g - self.codes.shape[0]]
        return self.backend.take(near, code(one)) + self.backend.take(far, code(other))

    def _matvec(self, w: FloatArray) -> DeviceVector:
        z, start = self.backend.full((self.shape[0],), 0.0), 0
        for g, group in enumerate(self.groups):
            own = slice(start, start + group.basis.shape[1])
            start = own.stop
            if own.start < own.stop:
                z = z + self.backend.take(self.backend.array(group.basis @ w[own]), self._cells(g))
        return self._made(z)

    def _rmatvec(self, u: DeviceVector) -> FloatArray:
        sums = self.cell_sums(range(len(self.groups)), u.array)
        return np.concatenate([group.basis.T @ own for group, own in zip(self.groups, sums, strict=True)])

    def _square_rmatvec(self, u: DeviceVector) -> FloatArray:
        sums = self.cell_sums(range(len(self.groups)), u.array)
        return np.concatenate([np.square(group.basis).T @ own for group, own in zip(self.groups, sums, strict=True)])

    def cell_sums(self, groups: Sequence[int], u: DeviceArray) -> list[FloatArray]:
        """Return the sums of u over the rows of each cell of some groups."""
        xp, n = self.backend.xp, self.shape[0]
        largest = float(xp.max(xp.abs(u))) if n else 0.0
        sizes = [len(self.groups[g].basis) for g in groups]
        if largest == 0.0 or not np.isfinite(largest) or not sizes:
            return [np.full(size, 0.0 if largest == 0.0 else np.nan) for size in sizes]
        exponent = SUM_BITS - int(np.frexp(largest)[1]) - int(np.ceil(np.log2(n + 1.0)))
        exponent = min(exponent, 1000)  # so that the factor is finite
        multiples = xp.astype(xp.round(u * 2.0**exponent), xp.int64)
        lane = self.backend.arange(n) % LANES
        found = []
        for g, size in zip(groups, sizes, strict=True):
            places = self._cells(g) * LANES + lane
            lanes = self.backend.integer_sums(size * LANES, places, multiples)
            found.append(xp.sum(xp.reshape(lanes, (size, LANES)), axis=1))
        sums = self._host(xp.concat(found)).astype(np.float64) * 2.0**-exponent
        return np.split(sums, np.cumsum(sizes)[:-1])

    def _rows(self, start: int, stop: int, rows: DeviceArray | None = None) -> DeviceArray:
        parts = [
            self.backend.take(
                self.backend.array(group.basis), self._cells(g, slice(start, stop) if rows is None else rows)
            )
            for g, group in enumerate(self.groups)
            if group.basis.shape[1]
        ]
        return self.backend.xp.concat(parts, axis=1)

    def _block(self, start: int, stop: int) -> AnyArray:
        return self.backend.host(self._rows(start, stop))

    def _on_rows(self, rows: DeviceArray) -> "CodesDeviceOperator":
        lines = [self.backend.take(self.codes[j, :], rows) for j in range(self.codes.shape[0])]
        part = CodesDeviceOperator(self.backend.xp.stack(lines), self.groups, self.backend)
        part.feature_map = self.feature_map
        return part

    @property
    def row_bytes(self) -> float:
        """Bytes of a row."""
        return float(self.codes.shape[0])

    def host_codes(self, rows: AnyArray) -> AnyArray:
        """Return the codes of the listed rows on the host, one line per column."""
        places = self.backend.array(rows.astype(np.int64))
        return np.stack(
            [self.backend.host(self.backend.take(self.codes[j, :], places)) for j in range(self.codes.shape[0])]
        )

    def inspect(self) -> Any:
        """Return None: codes are finite."""
        return None
