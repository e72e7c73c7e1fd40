"""From a problem to coefficients and a cut: the order of search, held-out fit, fit and cut."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_random_state

from scoreline._typing import AnyArray, FloatArray
from scoreline.measures import CountsBasedMeasure, Measure, best_cut
from scoreline.objective import Objective
from scoreline.operators import Operator
from scoreline.risks.base import Risk
from scoreline.scorespace import ScoreSpace
from scoreline.solvers import CostSearchSolver, Result, Solver


@dataclass(frozen=True)
class Problem:
    """What is trained: rows, labels and weights, the risk, the measure, and the measure that the cut serves."""

    operator: Operator
    space: ScoreSpace
    sign: AnyArray
    weight: FloatArray | None
    risk: Risk
    alpha: float
    measure: Measure
    cut_measure: Measure

    def objective(self, weight: FloatArray | None) -> Objective:
        """Return J with these weights."""
        return Objective(self.operator, self.risk.prepare(self.sign, weight, self.space), self.alpha)


class Trained(NamedTuple):
    """What came out: the run, the cost of positives, the cut, and Ctrl-C if it was pressed."""

    result: Result
    cost: float
    threshold: float
    interruption: BaseException | None


def train(problem: Problem, solver: Solver, cut: str, random_state: Any, w0: FloatArray | None) -> Trained:
    """Train and cut.

    A cost search comes first, where the solver is one; then, for cut="holdout", a fit without a fifth of the rows; then
    the fit of all rows, from the coefficients at hand; then the cut, on held-out scores if there are any.
    """
    cost, threshold, held_out_cut = 1.0, 0.0, None
    if isinstance(solver, CostSearchSolver):
        assert isinstance(problem.measure, CountsBasedMeasure)
        cost, held_out_cut, w0 = solver.search(
            problem.operator, problem.risk, problem.sign, problem.weight, problem.alpha, problem.space, problem.measure,
            random_state, w0,
        )  # fmt: skip
    weight = with_cost(problem.weight, problem.sign, cost)
    if cut == "holdout":
        held = held_out_rows(problem.sign, weight, random_state)
        part = solver.solve(problem.objective(np.where(held, 0.0, 1.0 if weight is None else weight)), w0)
        if part.interruption is not None:
            raise part.interruption  # nothing to keep yet: this model knows only a part of the rows
        held_weight = None if problem.weight is None else problem.weight[held]
        held_out_cut = best_cut(problem.sign[held], part.z[held], problem.cut_measure, held_weight).threshold
        w0 = part.w
    result = solver.solve(problem.objective(weight), w0)
    interruption = result.interruption
    try:
        if cut in ("auto", "holdout") and held_out_cut is not None:
            threshold = held_out_cut
        elif cut != "none" and result.z is not None:
            threshold = best_cut(problem.sign, result.z, problem.cut_measure, problem.weight).threshold
    except KeyboardInterrupt as signal:
        interruption = signal
    return Trained(result, cost, threshold, interruption)


def with_cost(weight: FloatArray | None, sign: AnyArray, cost: float) -> FloatArray | None:
    """Return the weights with those of positives multiplied by the cost."""
    if cost == 1.0:
        return weight
    return np.where(sign > 0, cost, 1.0) * (1.0 if weight is None else weight)


def held_out_rows(sign: AnyArray, weight: FloatArray | None, random_state: Any) -> AnyArray:
    """Return a mask of a stratified fifth of the rows of positive weight, at least one of each class on either side."""
    rng = check_random_state(random_state)
    held = np.zeros(len(sign), dtype=bool)
    for side in (-1, 1):
        rows = np.flatnonzero((sign == side) & (True if weight is None else weight > 0.0))
        if len(rows) < 2:
            raise ValueError(
                f"cut='holdout' needs two rows of each class, got {len(rows)}; use cut='train' for data as small as this"
            )
        held[rng.permutation(rows)[: max(1, len(rows) // 5)]] = True
    return held
