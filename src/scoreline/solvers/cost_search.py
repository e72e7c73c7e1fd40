"""Search over the cost of the two errors: the measure chooses how much a missed positive weighs."""

import logging
from typing import Any

import numpy as np

from scoreline.measures import CountsBasedMeasure, Measure, OperatingPoint, robust_threshold
from scoreline.runtime.checks import check_number
from scoreline.runtime.types import AnyArray, FloatArray
from scoreline.solvers.common.cost_method import CostMethod, Problem, Trial, paired_gain
from scoreline.solvers.common.leave_one_out import leave_one_out
from scoreline.solvers.common.loop import Control, Timer
from scoreline.solvers.newton import NewtonSolver

logger = logging.getLogger("scoreline")

SAME = 0.05  # of the logarithm of the ratio of the classes: all costs are nearly 1
THIN = 6  # with fewer rows in a class there is no evidence to choose by


class CostSearchSolver(CostMethod, NewtonSolver):
    """Cost-sensitive fits, the cost and the threshold chosen on leave-one-out scores.

    Positives weigh c = r^e, r = S- / S+ being the ratio of the classes (eq. cost-search): e = 0 is the plain fit
    (`plugin`), e = 1 the balanced one. Each fit starts from the one before; every row is scored as by the model without
    it (`leave_one_out`), and the threshold on those scores gives the value of the cost. The balanced fit is tried first;
    unless it is clearly worse than the plain one, so is e = 1/2. The best replaces the plain fit only if its gain is
    larger than the standard error of the gain, and where a class has fewer than 6 rows, or both are equally large,
    nothing is tried.

    Parameters
    ----------
    cost : float, optional
        Weight of a positive relative to a negative. With a number there is one fit and no search.
    **options
        memory, tol, max_iter, max_time, abs_tol, callbacks: see LbfgsSolver and Solver; they apply to every fit.
    """

    name = "cost_search"
    row_vectors, feature_vectors = 22.0, 150.0  # the states of two fits
    automatic = "per_measure"
    reason = "the measure is count-based, so cost and threshold are chosen on leave-one-out scores"
    alpha_means = "penalty alpha/2 |w|^2, against the cost-weighted mean loss"

    def __init__(self, cost: float | None = None, **options: Any):
        super().__init__(**options)
        if cost is not None:
            check_number("cost", cost, above=0)
        self.cost = cost

    @classmethod
    def trains(cls, measure: Measure | type[Measure]) -> bool:
        """Tell whether the measure is one of predictions at a threshold."""
        return issubclass(measure if isinstance(measure, type) else type(measure), CountsBasedMeasure)

    def search(
        self, problem: Problem, random_state: Any = None, w0: FloatArray | None = None, control: Control | None = None
    ) -> Trial:
        """Return the trial that leave-one-out scores favour; after Ctrl-C the best so far, with the exception."""
        sign, weight, measure = problem.sign, problem.weight, problem.measure
        assert isinstance(measure, CountsBasedMeasure)
        limits = self.control() if control is None else control
        timer = Timer(limits.max_time)

        def attempt(cost: float, before: Trial | None) -> Trial:
            objective = problem.objective_at_cost(cost)
            start, constant = w0, objective.risk.best_constant()
            if before is not None:  # what a cost changes most is the constant
                start = problem.operator.shifted(before.result.w, constant - before.constant)
            trial = Trial(cost, constant, self.solve(objective, start, control=limits.within(timer.left())))
            if trial.interruption is not None or self.cost is not None or (before is not None and trial.ended):
                return trial
            try:
                unseen = leave_one_out(objective, trial.result.z, problem.copies, random_state)
                trial.tuned = robust_threshold(sign, unseen, measure, weight)
            except KeyboardInterrupt as signal:
                trial.interruption = signal
                return trial
            trial.positive = unseen > trial.tuned.threshold
            trial.unseen = unseen if isinstance(measure, OperatingPoint) else None
            logger.info(
                "cost_search: cost %.4g, %s of leave-one-out scores %.4g", cost, measure.name, trial.tuned.value
            )
            return trial

        plain = best = last = attempt(1.0 if self.cost is None else self.cost, None)
        if plain.ended or self.cost is not None:
            return plain
        for cost in costs_to_try(sign, weight, problem.copies):
            if timer.over:  # another fit would not get beyond its start
                best.result.status = "max_time"
                return best
            trial = attempt(cost, last)
            if trial.ended:
                return best.ended_by(trial)
            assert plain.positive is not None
            assert trial.positive is not None
            gain, error = paired_gain(measure, sign, weight, trial.positive, plain.positive)
            logger.info("cost_search: gain over cost 1: %.4g, standard error %.4g", gain, error)
            better = gain > error and trial.tuned.value > best.tuned.value  # type: ignore[union-attr]  # both are tuned
            loser, best = (best, trial) if better else (trial, best)
            loser.result.z = loser.unseen = None  # n scores each
            if gain < -error:
                break
            last = trial
        return best


def costs_to_try(sign: AnyArray, weight: FloatArray | None, copies: FloatArray | None) -> list[float]:
    """Return the costs other than 1: the ratio r of the classes and its root. None where r is near 1 or a class is tiny."""
    positive = (sign > 0).astype(np.int8)
    sums, rows = np.bincount(positive, weight, 2), np.bincount(positive, copies, 2)
    ratio = float(sums[0] / sums[1])
    if min(rows) < THIN or abs(np.log(ratio)) < SAME:
        return []
    return [ratio, ratio**0.5]
