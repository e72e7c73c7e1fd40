"""A benchopt solver around an adapter of `benchmarks/rivals`, with the protocol of `benchmarks/rivals/protocol.py`."""

import warnings
from typing import Any

import numpy as np
from benchopt import BaseSolver
from benchopt.stopping_criterion import INFINITY, StoppingCriterion

from rivals.base import Linear, Rival
from rivals.protocol import Rows, choose_alphas, warm_up, with_threshold
from rivals.registry import all_rivals

CHOICE_LIMIT = 60.0  # seconds for choosing alpha; strengths that are not reached do not take part


class AllEfforts(StoppingCriterion):
    """Stop after the tightest stopping rule of the library."""

    def __init__(self, strategy: str | None = None, key_to_monitor: str | None = None, minimize: bool = True):
        super().__init__(strategy=strategy, key_to_monitor=key_to_monitor, minimize=minimize)

    def check_convergence(self, objective_list: list[dict[str, Any]]) -> tuple[bool, float]:
        """Return whether every effort was evaluated; the first evaluation is that of the empty model."""
        done, wanted = len(objective_list) - 1, len(self.solver.efforts)
        return done >= wanted, done / wanted


class AdapterSolver(BaseSolver):
    """Fits at each effort of the adapter. The strength of the penalty is chosen beforehand, off the clock.

    A solver is this class with `adapters`: what the parameter `variant` stands for, as a name in `all_rivals()`.
    """

    sampling_strategy = "tolerance"
    stopping_criterion = AllEfforts(strategy="tolerance")
    adapters: dict[str, str]
    efforts: tuple[float, ...] = (1.0,)  # those of the adapter, from `set_objective` on

    @property
    def rival(self) -> Rival:
        """The adapter."""
        return all_rivals()[self.adapters[self.variant]]

    def skip(self, rows: Rows, measure: str) -> tuple[bool, str | None]:
        """Say why the adapter is not for this measure or these data."""
        if measure not in self.rival.measures:
            return True, f"{self.rival.name} is not for {measure}"
        why = self.rival.refuses(*rows.X.shape)
        return why is not None, why

    def set_objective(self, rows: Rows, measure: str) -> None:
        """Choose the strength of the penalty on inner rows, and make the rows that the library wants."""
        warnings.simplefilter("ignore")  # loose tolerances are among the efforts
        self.rows, self.measure = rows, measure
        warm_up(self.rival, rows, [measure])
        self.efforts = self.rival.efforts
        self.alpha = choose_alphas(self.rival, rows, [[measure]], CHOICE_LIMIT)[measure]
        self.data = self.rival.prepare(rows.X, rows.y)

    def get_next(self, stop_val: float) -> float:
        """Return the next tighter effort."""
        return next((effort for effort in self.efforts if effort < stop_val), self.efforts[-1])

    def run(self, stop_val: float) -> None:
        """Fit at this effort, with a threshold where the measure needs one; benchopt begins with the empty model."""
        if stop_val == INFINITY:
            self.model = Linear(np.zeros(self.rows.X.shape[1]))
            return
        model = self.rival.fit(self.data, self.alpha, stop_val, self.measure)
        self.model = with_threshold(model, self.measure, self.rows.X, self.rows.y)

    def get_result(self) -> dict[str, Any]:
        """Return the model."""
        return {"model": self.model}
