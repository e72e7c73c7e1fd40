"""The rows of a row-by-row method, the order in which it reads them, and one pass over all of them.

`distributed/row_passes.py` makes a pass over rows on workers.
"""

import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from scoreline.measures import Measure
from scoreline.operators.linear_map import LinearMap
from scoreline.runtime.types import AnyArray, FloatArray
from scoreline.solvers.common.row_state import RowState, blocks

SEEDS = 1 << 62


@dataclass
class RowProblem:
    """What a row method trains on: rows, labels +1 and -1, relative weights, the measure, alpha and the constant feature.

    `base_scores` are added to the scores of the rows.
    """

    operator: LinearMap
    sign: AnyArray
    weight: FloatArray | None
    measure: Measure
    alpha: float
    constant: float
    base_scores: FloatArray | None = None

    def passing(self, method: Any) -> "RowPasses":
        """Return what makes passes over these rows, here or on the workers that have them."""
        if self.operator.scores == "blocks":
            from scoreline.distributed.row_passes import PartPasses

            return PartPasses(method, self)
        return RowPasses(method, self)


class RowPasses:
    """Passes over rows that can be read here, block by block, each block in random order."""

    def __init__(self, method: Any, problem: RowProblem):
        self.method, self.problem, self.operator = method, problem, problem.operator
        problem.sign = np.ascontiguousarray(problem.sign, dtype=np.int8)

    @property
    def rows(self) -> float:
        """Weight of all rows."""
        weight = self.problem.weight
        return float(self.operator.shape[0]) if weight is None else float(weight.sum())

    def checksum(self) -> int:
        """Return a checksum of labels and weights."""
        sign, weight = self.problem.sign, self.problem.weight
        parts = [part for part in (sign, weight, self.problem.base_scores) if part is not None]
        return zlib.crc32(b"".join(zlib.crc32(np.ascontiguousarray(part).data).to_bytes(4, "big") for part in parts))

    def learn_units(self, state: RowState) -> None:
        """Update the units of the columns by all rows."""
        state.learn_units(self.operator, self.problem.weight, self.problem.constant)

    def process_rows(self, state: RowState, seed: int, in_time: Callable[[], bool]) -> bool:
        """Process all rows once; return False if the time limit was reached before."""
        for block in blocks_in_random_order(self.operator, np.random.default_rng(seed)):
            self.method.process_block(self.problem, block, state)
            if not in_time():
                return False
        return True


def blocks_in_random_order(operator: LinearMap, rng: np.random.Generator) -> Iterator[tuple[int, int, int]]:
    """Yield (first row, one past the last row, seed of the order within) of blocks that cover all rows."""
    there = blocks(operator)
    for k in rng.permutation(len(there)).tolist():
        yield *there[k], int(rng.integers(SEEDS))
