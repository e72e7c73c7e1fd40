"""What the row-by-row methods share: passes over shuffled blocks of rows, and the averaged iterate."""

import time
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.utils import check_random_state

from scoreline import kernels
from scoreline._checks import check_choice, check_number
from scoreline._typing import AnyArray, FloatArray
from scoreline.measures import Measure
from scoreline.solvers.base import Method

BLOCK_BYTES = (
    8 << 20
)  # rows are shuffled within blocks of about this size (as if dense), and the blocks among themselves


@dataclass
class RowState:
    """Where a run stands: coefficients v (times a scale; the last is the constant feature's), and what their mean needs.

    `units` are inverse squares of the largest magnitudes of columns met so far (0 before), `numbers` those of
    `kernels/point_updates.py`: dual variables, counts, lengths.
    """

    v: FloatArray
    behind: FloatArray
    units: FloatArray
    numbers: FloatArray

    @classmethod
    def new(cls, p: int) -> "RowState":
        """Return the start, w = 0, for p features."""
        module = kernels.point_updates
        numbers = np.zeros(module.STATE)
        numbers[[module.ALPHA, module.BETA]], numbers[module.SCALE] = 0.5, 1.0
        numbers[module.REACH] = module.FIRST_REACH
        return cls(np.zeros(p + 1), np.zeros(p + 1), np.zeros(p + 1), numbers)

    def average(self) -> FloatArray:
        """Return the mean of all iterates, (total v - behind) / time."""
        module = kernels.point_updates
        total, t = self.numbers[module.TOTAL], self.numbers[module.TIME]
        return (total * self.v - self.behind) / t if t > 0.0 else np.zeros_like(self.v)


@dataclass
class RowRun:
    """The end of a run: averaged coefficients, the constant feature's last; passes, seconds after each, why it ended."""

    w: FloatArray
    passes: int
    seconds: list[float]
    status: str
    interruption: BaseException | None = None


class RowMethod(Method):
    """A method that changes the coefficients after every row; the mean of all iterates is the result.

    Parameters
    ----------
    passes : int
        Passes over the rows.
    step : str
        "adaptive": distance over gradients, in units of the largest magnitude of each column; nothing to tune. "paper":
        1/sqrt(t), which wants scaled features.
    **options
        max_time ends the run after the block at hand; tol and max_iter are not used.
    """

    automatic = "never"
    certified = False
    alpha_means = "coefficients stay within |w| <= sqrt(2 / alpha), which holds the minimum of the penalised hinge"
    measures: ClassVar[tuple[str, ...]] = ()

    def __init__(self, passes: int = 25, step: str = "adaptive", **options: Any):
        super().__init__(**options)
        check_number("passes", passes, least=1, integer=True)
        check_choice("step", step, ("adaptive", "paper"))
        self.passes, self.step = passes, step

    @classmethod
    def serves(cls, risk: Any) -> bool:
        """Rewards are 1 - hinge."""
        return bool(risk.name == "hinge")

    @classmethod
    def trains(cls, measure: Any) -> bool:
        """Tell whether the method knows the measure."""
        return getattr(measure, "name", "") in cls.measures

    @abstractmethod
    def take_in(self, rows: Any, measure: Measure, radius: float, state: RowState) -> None:
        """Update the state by rows; `rows` are the first arguments of the kernel."""

    def train(
        self,
        operator: Any,
        sign: AnyArray,
        weight: FloatArray | None,
        measure: Measure,
        alpha: float,
        constant: float,
        random_state: Any,
    ) -> RowRun:
        """Return the averaged coefficients after `passes` passes, or at Ctrl-C or max_time those so far.

        Rows are shuffled within blocks of 8 MB and blocks among themselves, so that rows are read where they lie and close
        to each other; X is not copied.
        """
        n, p = operator.shape
        state, rng, begin = RowState.new(p), check_random_state(random_state), time.perf_counter()
        size = max(1, min(n, BLOCK_BYTES // (8 * max(1, p))))
        radius, run = float(np.sqrt(2.0 / alpha)), RowRun(np.zeros(p + 1), 0, [], "max_iter")
        sign = np.ascontiguousarray(sign, dtype=np.int8)
        try:
            for _ in range(self.passes):
                for start in rng.permutation(np.arange(0, n, size)):
                    stop = min(int(start) + size, n)
                    arrays = operator.row_arrays(int(start), stop)
                    first = arrays.first
                    order = (rng.permutation(stop - int(start)) + (int(start) - first)).astype(np.uint64)
                    own = None if weight is None else weight[first:]
                    self.take_in((*arrays[:5], order, sign[first:], own, constant), measure, radius, state)
                    if self.max_time is not None and time.perf_counter() - begin > self.max_time:
                        run.status = "max_time"
                        break
                if run.status == "max_time":
                    break
                run.passes += 1
                run.seconds.append(time.perf_counter() - begin)
        except KeyboardInterrupt as signal:
            run.status, run.interruption = "interrupted", signal
        run.w = state.average()
        return run
