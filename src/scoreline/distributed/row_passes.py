"""One pass of a row-by-row method over rows in parts on workers, with the results averaged."""

import copy
from collections.abc import Callable
from typing import Any

import numpy as np

from scoreline import kernels
from scoreline.distributed.blocks import BlockVector, Parts
from scoreline.distributed.cluster import size_of
from scoreline.distributed.parts_operator import PartsOperator
from scoreline.distributed.score_space import checksum
from scoreline.measures import Measure
from scoreline.operators.base import Operator
from scoreline.runtime.types import AnyArray, FloatArray
from scoreline.solvers.common.row_method import RowMethod
from scoreline.solvers.common.row_passes import SEEDS, RowPasses, RowProblem
from scoreline.solvers.common.row_state import RowState


class PartPasses(RowPasses):
    """Passes over rows in parts: every part processes its own rows from the same start, then the results are averaged.

    The result differs from one pass over all rows: with K parts a pass has K times fewer steps, of averaged directions. Parts
    are weighted by their rows, and iterates by their weight within their own pass. Rows should be distributed at random: a
    part without rows of one class learns nothing about that class in its pass.
    """

    operator: PartsOperator
    sign: BlockVector
    weight: BlockVector | None

    def __init__(self, method: RowMethod, problem: RowProblem):
        outer: Any = problem.operator  # a PartsOperator, perhaps inside of a scaling
        self.method, self.problem, self.outer = copy.copy(method), problem, outer
        self.operator = outer.in_parts()
        self.method.callbacks, self.method.journal = (), None  # these are used on the driver only
        self.sign, self.weight = problem.sign, problem.weight  # type: ignore[assignment]  # vectors in blocks, not arrays
        self.constant = problem.constant
        self.shares = np.bincount((problem.sign > 0).astype(np.int8), problem.weight, 2) / self.rows

    def checksum(self) -> int:
        """Return a checksum of the labels and weights."""
        return checksum(self.sign, self.weight)

    def learn_units(self, state: RowState) -> None:
        """Update the units of the columns by the sums of all parts."""
        if state.squares is None or state.counts is None:
            return
        self.outer._count(1.0)
        size = 16.0 * len(state.v)
        sums = self.operator.layout.total(size, _squares, self.operator.parts, self.weight, len(state.v))
        state.set_units(state.squares + sums[0], state.counts + sums[1], self.constant)

    def process_rows(self, state: RowState, seed: int, in_time: Callable[[], bool]) -> bool:
        """Process all rows once, in all parts at the same time; the time limit is checked before and after a pass."""
        if not in_time():
            return False
        self.outer._count(1.0)
        layout, numbers, places = self.operator.layout, state.numbers, kernels.point_updates
        weights = layout.gather(_weight, self.sign, self.weight)
        starts, seeds = [], np.random.default_rng(seed).integers(SEEDS, size=layout.n_parts)
        total = sum(weights)
        for own in weights:
            start = RowState.restored(state.record(), len(state.v) - 1)
            # Step counts and step sizes are those of the part, and sums of iterates start from zero.
            share, begin = own / total, numbers.copy()
            begin[[places.TOTAL, places.WEIGHT]] = 0.0
            begin[[places.TIME, places.HORIZON]] *= share
            begin[places.RAMP] /= share
            if numbers[places.TIME] > 0.0 and start.kind <= places.GMEAN:
                begin[[places.NEGATIVE, places.POSITIVE]] = begin[places.TIME] * self.shares
            start.numbers, start.behind = begin, np.zeros_like(start.behind)
            starts.append(start)
        layout.cluster.count(sum(size_of(start.record()) for start in starts))
        arguments = self.sign, self.weight, self.problem.measure, self.problem.alpha, self.constant
        ends = layout.gather(_local_pass, self.method, self.operator.parts, *arguments, Parts(seeds), Parts(starts))
        self._average(state, ends, np.array(weights) / total)
        return in_time()

    def _average(self, state: RowState, ends: list[RowState], shares: FloatArray) -> None:
        """Set the state to the mean of the parts' final states, and add the iterates of this pass to the sum of all."""
        before, places = state.numbers.copy(), kernels.point_updates
        table = np.array([end.numbers for end in ends])
        numbers = shares @ table
        # Iterates are weighted by the fourth power of the rows of a part (equally with the paper's steps).
        power = 1.0 if self.method.step == "paper" else 4.0
        scales = shares ** (1.0 - power)
        sums = [end.numbers[places.TOTAL] * end.v - end.behind for end in ends]
        numbers[places.WEIGHT] = before[places.WEIGHT] + float(scales @ table[:, places.WEIGHT])
        gained = np.tensordot(scales, np.array(sums), axes=1)
        behind = state.behind - before[places.TOTAL] * state.v - gained
        state.v = np.tensordot(shares, np.array([end.numbers[places.SCALE] * end.v for end in ends]), axes=1)
        numbers[places.SCALE], numbers[places.TOTAL] = 1.0, 0.0
        numbers[places.NORM2] = float((state.v**2 / state.units).sum())
        numbers[places.REACH] = float(table[:, places.REACH].max())
        numbers[places.TIME] = before[places.TIME] + self.rows
        numbers[[places.HORIZON, places.RAMP]] = before[[places.HORIZON, places.RAMP]]
        state.behind, state.numbers = behind, numbers


def _weight(sign: AnyArray, weight: FloatArray | None) -> float:
    return float(len(sign)) if weight is None else float(weight.sum())


def _squares(part: Operator, weight: FloatArray | None, length: int) -> FloatArray:
    state = RowState.new(length - 1, (0.0, 0.0))
    state.add_squares(part, weight)
    return np.array([state.squares, state.counts])


def _local_pass(
    method: RowMethod,
    part: Operator,
    sign: AnyArray,
    weight: FloatArray | None,
    measure: Measure,
    alpha: float,
    constant: float,
    seed: int,
    state: RowState,
) -> RowState:
    """Process the rows of a part once, from a copy of the state."""
    state = copy.deepcopy(state)
    problem = RowProblem(part, sign, weight, measure, alpha, constant)
    RowPasses(method, problem).process_rows(state, int(seed), lambda: True)
    return state
