"""One pass of a row-by-row method over all rows; `distributed/row_passes.py` makes it on workers."""

import zlib
from collections.abc import Callable
from typing import Any

import numpy as np

from scoreline.measures import Measure
from scoreline.runtime.types import AnyArray, FloatArray
from scoreline.solvers.common.row_blocks import blocks_in_random_order
from scoreline.solvers.common.row_state import RowState


class RowPasses:
    """Passes over rows that can be read here, block by block, each block in random order."""

    def __init__(
        self,
        method: Any,
        operator: Any,
        sign: AnyArray,
        weight: FloatArray | None,
        measure: Measure,
        alpha: float,
        constant: float,
    ):
        self.method, self.operator, self.measure, self.constant = method, operator, measure, constant
        self.sign, self.weight, self.alpha = np.ascontiguousarray(sign, dtype=np.int8), weight, alpha

    @property
    def rows(self) -> float:
        """Weight of all rows."""
        return float(self.operator.shape[0]) if self.weight is None else float(self.weight.sum())

    def checksum(self) -> int:
        """Return a number that tells one set of labels and weights from another."""
        return _checksum(self.sign, self.weight)

    def learn_units(self, state: RowState) -> None:
        """Take in all rows as to the units of their columns."""
        state.learn_units(self.operator, self.weight, self.constant)

    def take_in(self, state: RowState, seed: int, in_time: Callable[[], bool]) -> bool:
        """Take in all rows once; False if time was up before."""
        for start, stop, block_seed in blocks_in_random_order(self.operator, np.random.default_rng(seed)):
            self.method.take_in_block(
                self.operator, start, stop, self.sign, self.weight, self.measure, self.alpha, self.constant, block_seed,
                state,
            )  # fmt: skip
            if not in_time():
                return False
        return True


def _checksum(sign: AnyArray, weight: FloatArray | None) -> int:
    parts = [sign] if weight is None else [sign, weight]
    return zlib.crc32(b"".join(zlib.crc32(np.ascontiguousarray(part).data).to_bytes(4, "big") for part in parts))
