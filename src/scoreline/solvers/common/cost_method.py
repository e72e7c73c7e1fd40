"""The base of methods that choose the weight of a positive by several fits."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from scoreline.measures import CountsBasedMeasure, Measure, TunedThreshold
from scoreline.objective import Objective
from scoreline.operators.linear_map import LinearMap
from scoreline.penalties import BoundedPenalty
from scoreline.risks.base import Risk
from scoreline.runtime.types import AnyArray, FloatArray
from scoreline.scores import ScoreSpace
from scoreline.solvers.common.base import Result
from scoreline.solvers.common.loop import Control
from scoreline.solvers.common.method import Method


@dataclass(frozen=True)
class Problem:
    """What is trained: rows, labels and weights, the risk, the measure, and the measure that the threshold is tuned for.

    `weight` is what rows weigh (class weights included), `copies` how often they are there (sample weights alone).
    """

    operator: LinearMap
    space: ScoreSpace
    sign: AnyArray
    weight: FloatArray | None
    copies: FloatArray | None
    risk: Risk
    alpha: float
    measure: Measure
    threshold_measure: Measure
    penalty: BoundedPenalty | None = None

    def objective(self, weight: FloatArray | None) -> Objective:
        """Return J with these weights."""
        return Objective(self.operator, self.risk.prepare(self.sign, weight, self.space), self.alpha, self.penalty)

    def objective_at_cost(self, cost: float) -> Objective:
        """Return J where a positive weighs `cost` times its own weight."""
        if cost == 1.0:
            return self.objective(self.weight)
        return self.objective(np.where(self.sign > 0, cost, 1.0) * (1.0 if self.weight is None else self.weight))


@dataclass
class Trial:
    """One cost: the best constant score, the fit, the predictions for held-out rows, their threshold and, if asked for, scores.

    These three are None if Ctrl-C came before. `levels` and what bounds the best of them belong to `amp`.
    """

    cost: float
    constant: float
    result: Result
    positive: AnyArray | None = None
    tuned: TunedThreshold | None = None
    unseen: FloatArray | None = None
    interruption: BaseException | None = None
    levels: list[float] | None = None
    level_bound: float | None = None

    def __post_init__(self) -> None:
        self.interruption = self.result.interruption

    @property
    def ended(self) -> bool:
        """Whether the search is to end with this fit: Ctrl-C, a callback, or no time left."""
        return self.interruption is not None or self.result.status in ("interrupted", "max_time")

    def ended_by(self, last: "Trial") -> "Trial":
        """Return this trial as the end of a search whose last fit did not come to its own end."""
        self.interruption, self.result.status = last.interruption, last.result.status
        return self


class CostMethod(Method):
    """A method that chooses what a positive weighs, by several fits."""

    @abstractmethod
    def search(
        self, problem: Problem, random_state: Any = None, w0: FloatArray | None = None, control: Control | None = None
    ) -> Trial:
        """Return the trial that is best; after Ctrl-C the best so far, with the exception. `control` is that of all fits."""


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

        return np.asarray(measure.robust_value(total(1, 1), total(0, 1), total(1, 0), total(0, 0)), dtype=np.float64)

    with np.errstate(invalid="ignore"):  # a function of the user's may be infinite: then the gain is NaN, which is none
        gains = value(1) - value(0)
        changes = gains[1:9] - gains[9:]
    parts = np.where(np.isfinite(changes), changes, 0.0) / 2.0
    return float(gains[0]), float(np.sqrt((parts**2).sum()))
