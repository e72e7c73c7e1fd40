"""Search over the cost of the two errors: the measure chooses how much a missed positive weighs."""

import logging
import time
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from scoreline.measures import CountsBasedMeasure, Cut, Measure, OperatingPoint, steady_cut
from scoreline.objective import Objective
from scoreline.risks.base import Risk
from scoreline.runtime.checks import check_number
from scoreline.runtime.types import AnyArray, FloatArray
from scoreline.scores import ScoreSpace
from scoreline.solvers.common.base import Result
from scoreline.solvers.common.leave_one_out import leave_one_out
from scoreline.solvers.common.method import Method
from scoreline.solvers.newton import NewtonSolver

logger = logging.getLogger("scoreline")

SAME = 0.05  # of the logarithm of the ratio of the classes: all costs are nearly 1
OVER = 1e-9  # seconds: no time is left
THIN = 6  # with fewer rows in a class there is no evidence to choose by


@dataclass(frozen=True)
class Problem:
    """What is trained: rows, labels and weights, the risk, the measure, and the measure that the cut serves.

    `weight` is what rows weigh (class weights included), `copies` how often they are there (sample weights alone).
    """

    operator: Any
    space: ScoreSpace
    sign: AnyArray
    weight: FloatArray | None
    copies: FloatArray | None
    risk: Risk
    alpha: float
    measure: Measure
    cut_measure: Measure

    def objective(self, weight: FloatArray | None) -> Objective:
        """Return J with these weights."""
        return Objective(self.operator, self.risk.prepare(self.sign, weight, self.space), self.alpha)


@dataclass
class Trial:
    """One cost: the best constant score, the fit, what left-out rows are called, their cut and, if they are asked for, scores.

    These three are None if Ctrl-C came before. `levels` and what bounds the best of them belong to `amp`.
    """

    cost: float
    constant: float
    result: Result
    positive: AnyArray | None = None
    cut: Cut | None = None
    unseen: FloatArray | None = None
    interruption: BaseException | None = None
    levels: list[float] | None = None
    level_bound: float | None = None


class CostMethod(Method):
    """A method that chooses what a positive weighs, by several fits."""

    @abstractmethod
    def search(self, problem: Problem, random_state: Any = None, w0: FloatArray | None = None) -> Trial:
        """Return the trial that is best; after Ctrl-C the best so far, with the exception."""


class CostSearchSolver(CostMethod, NewtonSolver):
    """Cost-sensitive fits, the cost and the cut chosen on scores of left-out rows.

    Positives weigh c = r^e, r = S- / S+ being the ratio of the classes (eq. cost-search): e = 0 is the plain fit
    (`plugin`), e = 1 the balanced one. Each fit starts from the one before; every row is scored as by the model without
    it (`leave_one_out`), and the cut on those scores gives the value of the cost. The balanced fit is tried first;
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
    automatic = "measure"
    reason = "the measure is one of counts, so cost and cut are chosen on left-out rows"
    alpha_means = "penalty alpha/2 |w|^2, against the cost-weighted mean loss"

    def __init__(self, cost: float | None = None, **options: Any):
        super().__init__(**options)
        if cost is not None:
            check_number("cost", cost, above=0)
        self.cost = cost

    @classmethod
    def trains(cls, measure: Any) -> bool:
        """Tell whether the measure is one of predictions at a cut."""
        return issubclass(measure if isinstance(measure, type) else type(measure), CountsBasedMeasure)

    def search(self, problem: Problem, random_state: Any = None, w0: FloatArray | None = None) -> Trial:
        """Return the trial that left-out rows favour; after Ctrl-C the best so far, with the exception."""
        sign, weight, measure = problem.sign, problem.weight, problem.measure
        assert isinstance(measure, CountsBasedMeasure)
        base = 1.0 if weight is None else weight
        asked, begin = self.max_time, time.perf_counter()

        def left() -> float | None:
            return None if asked is None else max(OVER, asked - (time.perf_counter() - begin))

        def attempt(cost: float, before: Trial | None) -> Trial:
            objective = problem.objective(weight if cost == 1.0 else np.where(sign > 0, cost, 1.0) * base)
            start, constant = w0, objective.risk.best_constant()
            if before is not None:  # what a cost changes most is the constant
                start = problem.operator.shifted(before.result.w, constant - before.constant)
            self.max_time = left()
            trial = Trial(cost, constant, self.solve(objective, start))
            trial.interruption = trial.result.interruption
            if trial.interruption is not None or self.cost is not None or (before is not None and ended(trial)):
                return trial
            try:
                unseen = leave_one_out(objective, trial.result.z, problem.copies, random_state)
                trial.cut = steady_cut(sign, unseen, measure, weight)
            except KeyboardInterrupt as signal:
                trial.interruption = signal
                return trial
            trial.positive = unseen > trial.cut.threshold
            trial.unseen = unseen if isinstance(measure, OperatingPoint) else None
            logger.info("cost_search: cost %.4g, %s of left-out rows %.4g", cost, measure.name, trial.cut.value)
            return trial

        try:
            plain = best = last = attempt(1.0 if self.cost is None else self.cost, None)
            if ended(plain) or self.cost is not None:
                return plain
            for cost in costs_to_try(sign, weight, problem.copies):
                if left() == OVER:  # another fit would not get beyond its start
                    best.result.status = "max_time"
                    return best
                trial = attempt(cost, last)
                if ended(trial):
                    best.interruption = trial.interruption
                    best.result.status = trial.result.status
                    return best
                assert plain.positive is not None
                assert trial.positive is not None
                gain, error = paired_gain(measure, sign, weight, trial.positive, plain.positive)
                logger.info("cost_search: gain over cost 1: %.4g, standard error %.4g", gain, error)
                better = gain > error and trial.cut.value > best.cut.value  # type: ignore[union-attr]
                loser, best = (best, trial) if better else (trial, best)
                loser.result.z = loser.unseen = None  # n scores each
                if gain < -error:
                    break
                last = trial
            return best
        finally:
            self.max_time = asked


def costs_to_try(sign: AnyArray, weight: FloatArray | None, copies: FloatArray | None) -> list[float]:
    """Return the costs beside 1: the ratio r of the classes and its root. None where r is near 1 or a class is tiny."""
    positive = (sign > 0).astype(np.int8)
    sums, rows = np.bincount(positive, weight, 2), np.bincount(positive, copies, 2)
    ratio = float(sums[0] / sums[1])
    if min(rows) < THIN or abs(np.log(ratio)) < SAME:
        return []
    return [ratio, ratio**0.5]


def ended(trial: Trial) -> bool:
    """Tell whether the search is to end with this fit: Ctrl-C, a callback, or no time left."""
    return trial.interruption is not None or trial.result.status in ("interrupted", "max_time")


def paired_gain(
    measure: CountsBasedMeasure, sign: AnyArray, weight: FloatArray | None, new: AnyArray, old: AnyArray
) -> tuple[float, float]:
    """Return how much better the new predictions are than the old ones, and the standard error (eq. paired-gain).

    A row matters only through its class and its two predictions, so there are eight kinds of rows. Their weights are taken
    as independent counts; moving each by its deviation, the root of the count, gives its part of the variance.
    """
    kind = 4 * (sign > 0).astype(np.int8) + 2 * new.astype(np.int8) + old
    weights = np.bincount(kind, weight, 8).astype(np.float64)
    moved = np.tile(weights, (17, 1))
    deviation = np.sqrt(weights)
    moved[1:9] += np.diag(deviation)
    moved[9:] -= np.diag(np.minimum(deviation, weights))

    def value(bit: int) -> FloatArray:
        def total(positive: int, predicted: int) -> FloatArray:
            columns = [k for k in range(8) if k >> 2 == positive and (k >> bit) & 1 == predicted]
            return np.asarray(moved[:, columns].sum(axis=1))

        return np.asarray(measure.steady_value(total(1, 1), total(0, 1), total(1, 0), total(0, 0)), dtype=np.float64)

    with np.errstate(invalid="ignore"):  # a function of the user's may be infinite: then the gain is NaN, which is none
        gains = value(1) - value(0)
        changes = gains[1:9] - gains[9:]
    parts = np.where(np.isfinite(changes), changes, 0.0) / 2.0
    return float(gains[0]), float(np.sqrt((parts**2).sum()))
