"""The state of a row-by-row method, as plain arrays and numbers."""

import copy
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from scoreline import kernels
from scoreline.operators.linear_map import LinearMap
from scoreline.runtime.types import FloatArray

# Rows are shuffled within blocks of about this size as if dense, so that the order is the same for every storage (but for more
# than 8192 dense features), of so many rows at least, unless these take more memory.
BLOCK_BYTES, BLOCK_ROWS, LARGE_BLOCK = 8 << 20, 4096, 256 << 20
OUT_OF_RANGE = "squares of X or of Xw leave the range of floats; divide its columns by their largest magnitude first"


@dataclass
class RowState:
    """Where a run stands: coefficients v (times a scale; the last is the constant feature's), and what their mean needs.

    `kind` is the kernel's number of the measure, `units` are inverse mean squares of the columns' entries other than 0, made
    of `squares` and `counts` (None where all are 1), `numbers` those of `kernels/point_updates.py`: weights of the classes,
    counts, lengths.
    """

    v: FloatArray
    behind: FloatArray
    units: FloatArray
    numbers: FloatArray
    kind: int = 0
    squares: FloatArray | None = None
    counts: FloatArray | None = None

    @classmethod
    def new(
        cls, p: int, weights: tuple[float, float], epoch: float = np.inf, kind: int = 0, paper: bool = False
    ) -> "RowState":
        """Return the start, w = 0, for p features, with the first weights of the classes and the length of the first epoch."""
        module = kernels.point_updates
        numbers = np.zeros(module.STATE)
        numbers[module.ALPHA], numbers[module.BETA] = weights
        numbers[module.SCALE], numbers[module.REACH], numbers[module.EPOCH] = 1.0, module.FIRST_REACH, epoch
        numbers[module.HORIZON], numbers[module.RAMP] = np.inf, 1.0
        sums = (None, None) if paper else (np.zeros(p + 1), np.zeros(p + 1))
        return cls(np.zeros(p + 1), np.zeros(p + 1), np.ones(p + 1), numbers, kind, *sums)

    def learn_units(self, operator: LinearMap, weight: FloatArray | None, constant: float) -> None:
        """Update the units of the columns by all rows; |w| is measured in the new units. One pass, and O(p)."""
        if self.squares is None or self.counts is None:
            return
        self.add_squares(operator, weight)
        self.set_units(self.squares, self.counts, constant)

    def add_squares(self, operator: LinearMap, weight: FloatArray | None) -> None:
        """Add the squares and counts of the entries of all rows to those of their columns; one pass."""
        for start, stop in blocks(operator):
            arrays = operator.row_arrays(start, stop)
            own = None if weight is None else weight[arrays.first :]
            bounds = start - arrays.first, stop - arrays.first
            kernels.point_updates.add_squares(*arrays[:5], *bounds, own, self.squares, self.counts)

    def set_units(self, squares: FloatArray, counts: FloatArray, constant: float) -> None:
        """Set squares and counts of the columns, and the units that follow from them."""
        if not np.isfinite(squares).all() or ((squares == 0.0) & (counts > 0.0)).any():
            raise ValueError(OUT_OF_RANGE)
        self.squares, self.counts = squares, counts
        self.squares[-1], self.counts[-1] = constant**2, float(constant != 0.0)
        known = self.squares > 0.0
        self.units = np.where(known, self.counts, 1.0) / np.where(known, self.squares, 1.0)
        module = kernels.point_updates
        self.numbers[module.NORM2] = self.numbers[module.SCALE] ** 2 * float((self.v**2 / self.units).sum())

    def record(self) -> dict[str, Any]:
        """Return a copy as a dict of arrays and numbers."""
        return {f.name: copy.copy(getattr(self, f.name)) for f in fields(self)}

    @classmethod
    def restored(cls, record: Mapping[str, Any], p: int) -> "RowState":
        """Return the state that `record` described, for p features; kernels do not check bounds, so this does."""
        state = cls(**{name: copy.copy(value) for name, value in record.items()})
        lengths = {"v": p + 1, "behind": p + 1, "units": p + 1, "numbers": kernels.point_updates.STATE}
        lengths |= {name: p + 1 for name in ("squares", "counts") if getattr(state, name) is not None}
        for name, length in lengths.items():
            array = getattr(state, name)
            if not isinstance(array, np.ndarray) or array.dtype != np.float64 or array.shape != (length,):
                raise ValueError(f"{name} of the state is not an array of {length} numbers")
        if not isinstance(state.kind, int):
            raise ValueError(f"kind={state.kind!r} of the state must be a number")
        return state

    def fade(self, after: float, until: float) -> None:
        """Let steps fade to 0 from `after` rows on until `until`."""
        module = kernels.point_updates
        self.numbers[module.HORIZON], self.numbers[module.RAMP] = until, 1.0 / (until - after)

    def check(self) -> None:
        """Raise if numbers left the range of floats, where what follows would not be what it seems."""
        module = kernels.point_updates
        sums = [module.TOTAL, module.NORM2, module.SQUARES]
        if not (np.isfinite(self.numbers[sums]).all() and np.isfinite(self.units).all() and self.units.all()):
            raise ValueError(OUT_OF_RANGE)

    def average(self) -> FloatArray:
        """Return the weighted mean of all iterates, (total v - behind) / sum of their weights."""
        module = kernels.point_updates
        total, weight = self.numbers[module.TOTAL], self.numbers[module.WEIGHT]
        return (total * self.v - self.behind) / weight if weight > 0.0 else np.zeros_like(self.v)


def blocks(operator: LinearMap) -> list[tuple[int, int]]:
    """Return (first row, one past the last row) of blocks that cover all rows."""
    n, p = operator.shape
    least = min(BLOCK_ROWS, LARGE_BLOCK / max(1.0, operator.row_bytes))
    size = int(max(1.0, min(n, max(least, BLOCK_BYTES / (8.0 * max(1, p))))))
    return [(start, min(start + size, n)) for start in range(0, n, size)]
