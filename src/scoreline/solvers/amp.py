"""AMP: cost-sensitive support vector machines, the cost set by the level of the measure that the last one reached."""

import logging
from typing import Any, ClassVar, NamedTuple

import numpy as np

from scoreline.measures import CountsBasedMeasure, best_threshold
from scoreline.risks.base import Risk
from scoreline.runtime.checks import check_choice, check_number
from scoreline.runtime.types import AnyArray, FloatArray
from scoreline.solvers.common.base import Result
from scoreline.solvers.common.cost_method import CostMethod, Problem, Trial
from scoreline.solvers.common.loop import Control, Timer
from scoreline.solvers.smoothed import SmoothedSolver

logger = logging.getLogger("scoreline")


class AmpSolver(CostMethod, SmoothedSolver):
    """Alternating maximisation for ratios of linear functions (Narasimhan, Kar and Jain 2015, Algorithm 2), certified.

    A classifier reaches the level v of F-beta exactly if its true positives, weighted 1 + beta^2 - v, and its true negatives,
    weighted v, do (for Jaccard the weights are 1 and v). So a hinge fit with these weights, started from the one before, gives
    a new level, until it rises no more. The first level is that of the plain fit. Gower-Legendre rises with accuracy: the plain
    fit is the answer.

    Parameters
    ----------
    level : str
        "measure": the level is the measure itself at the best threshold of the training scores. "rewards": the measure of the
        rewards 1 - hinge, less the penalty, which never falls from fit to fit and rises to the largest that any w has; that
        lies between the last of `levels_` and `level_bound_`. It is below the measure, and negatives weigh less for it.
    level_tol : float
        Stop when the level rises by no more than this.
    rounds : int
        Fits at most, beyond the first.
    **options
        mu, c_mu, precondition, memory, tol, max_iter, abs_tol, callbacks: see SmoothedSolver; they apply to every fit.
        max_time is that of all fits.
    """

    name = "amp"
    automatic = "never"
    ample: ClassVar[tuple[str, ...]] = ("f1", "fbeta", "jaccard")
    reason = "rows are ample, and the hinge cares less than the logistic loss for rows far from the threshold"
    alpha_means = "penalty alpha/2 |w|^2, against the cost-weighted mean hinge"
    trains_for = "F-beta, Jaccard or Gower-Legendre"
    measures: ClassVar[tuple[str, ...]] = ("f1", "fbeta", "gower_legendre", "jaccard")

    def __init__(self, level: str = "measure", level_tol: float = 1e-4, rounds: int = 20, **options: Any):
        super().__init__(**options)
        check_choice("level", level, ("measure", "rewards"))
        check_number("level_tol", level_tol, least=0)
        check_number("rounds", rounds, least=1, integer=True)
        self.level, self.level_tol, self.rounds = level, level_tol, rounds

    @classmethod
    def serves(cls, risk: Risk | type[Risk]) -> bool:
        """Rewards are 1 - hinge."""
        return bool(risk.name == "hinge")

    def search(
        self, problem: Problem, random_state: Any = None, w0: FloatArray | None = None, control: Control | None = None
    ) -> Trial:
        """Return the fit with the highest level; after Ctrl-C the best so far, with the exception."""
        limits = self.control() if control is None else control
        timer = Timer(limits.max_time)
        sign, weight, measure = problem.sign, problem.weight, problem.measure
        assert isinstance(measure, CountsBasedMeasure)
        base = 1.0 if weight is None else weight
        negative, positive = np.bincount((sign > 0).astype(np.int8), weight, 2).tolist()
        sums = float(positive), float(negative)

        def attempt(cost: float, start: FloatArray | None) -> Trial:
            fit = self.solve(problem.objective_at_cost(cost), start, control=limits.within(timer.left()))
            return Trial(cost, 0.0, fit)

        def level_of(trial: Trial) -> float:
            z = problem.risk.full_scores(trial.result.z)
            if self.level == "measure":
                return float(best_threshold(sign, z, measure, weight).value)
            return Losses.of(sign, z, base, sums, problem.objective(weight).penalty_value(trial.result.w)).level(
                measure
            )

        best = attempt(1.0, w0)
        try:
            if best.ended or measure.name == "gower_legendre":
                return best
            best.levels = [level_of(best)]
            at = best.levels[0] or self._constant_level(problem, measure, base, sums)
            for _ in range(self.rounds):
                if not 0.0 < at < 1.0:
                    break
                positive, negative = weights_at(measure, at)
                trial = attempt(positive / negative, best.result.w)
                if trial.ended:
                    return best.ended_by(trial)
                if self.level == "rewards":
                    bounds = best.level_bound, bound_from(measure, at, sums, trial.result)
                    best.level_bound = trial.level_bound = min((b for b in bounds if b is not None), default=None)
                level, before = level_of(trial), best.levels[-1]
                logger.info("amp: cost %.4g, %s %.5g after %.5g", trial.cost, measure.name, level, before)
                if level <= before:
                    break
                trial.levels = [*best.levels, level]
                best.result.z, best, at = None, trial, level  # z: n scores
                if level <= before + self.level_tol:
                    break
            return best
        except KeyboardInterrupt as signal:  # between two fits: the best so far stays
            best.interruption, best.result.status = signal, "interrupted"
            return best

    def _constant_level(
        self, problem: Problem, measure: CountsBasedMeasure, base: Any, sums: tuple[float, float]
    ) -> float:
        """Return the level of the best constant score, for a plain fit that has none: positives must be called so first."""
        operator, objective = problem.operator, problem.objective(problem.weight)
        w = operator.shifted(np.zeros(operator.shape[1]), 1.0)
        w *= min(1.0, 0.5 / max(1e-300, objective.penalty_value(w)))  # beyond, the penalty grows faster than the reward
        z = problem.risk.full_scores(operator.matvec(w))
        return Losses.of(problem.sign, z, base, sums, objective.penalty_value(w)).level(measure)


def weights_at(measure: CountsBasedMeasure, level: float) -> tuple[float, float]:
    """Return the weights of positives and negatives at a level of F-beta, or of Jaccard (eq. level-set)."""
    if measure.name == "jaccard":
        return 1.0, level
    return 1.0 + _beta2(measure) - level, level


class Losses(NamedTuple):
    """Sums of the hinge over positives and over negatives, the weights of the two classes, and the penalty."""

    positive: float
    negative: float
    sums: tuple[float, float]
    penalty: float

    @classmethod
    def of(cls, sign: AnyArray, z: FloatArray, weight: Any, sums: tuple[float, float], penalty: float) -> "Losses":
        """Return the sums at scores z."""
        hinge = weight * np.maximum(0.0, 1.0 - sign * z)
        return cls(float(hinge[sign > 0].sum()), float(hinge[sign < 0].sum()), sums, penalty)

    def level(self, measure: CountsBasedMeasure) -> float:
        """Return the level v where what the weighted fit maximises is 0: the measure of the rewards, less the penalty.

        For F-beta the fit at v maximises (1 + B)(1 - v) n+ - G J. Here G = (1 + B - v) n+ + v n-, and with the penalty q
        G J = (1 + B - v) L+ + v L- + G q. For Jaccard it maximises (1 - v) n+ - G J with weights 1 and v. Both are
        top - v bottom (eq. reward-level).
        """
        (plus, minus), q = self.sums, self.penalty
        if measure.name == "jaccard":
            top, bottom = plus - self.positive - plus * q, plus + self.negative + minus * q
        else:
            b = _beta2(measure)
            top = (1.0 + b) * (plus - self.positive - plus * q)
            bottom = (1.0 + b) * plus - self.positive + self.negative + (minus - plus) * q
        return top / bottom if top > 0.0 else 0.0  # bottom >= B n+ (or n+) where top is positive


def bound_from(measure: CountsBasedMeasure, level: float, sums: tuple[float, float], fit: Result) -> float | None:
    """Return an upper bound of the level of rewards over all w, from the lower bound of the fit at a level (eq. level-bound).

    Where J of that fit is at least `fit.lower_bound`, top - level * bottom is at most d = const - G * lower_bound, and the best
    level lies at most d / bottom higher, with bottom >= B n+ for F-beta and n+ for Jaccard.
    """
    if fit.lower_bound is None:
        return None
    positive, negative = weights_at(measure, level)
    (plus, minus), b = sums, 1.0 if measure.name == "jaccard" else _beta2(measure)
    const = (1.0 - level) * plus * (1.0 if measure.name == "jaccard" else 1.0 + b)
    d = const - (positive * plus + negative * minus) * fit.lower_bound
    return level + max(d, 0.0) / (b * plus)


def _beta2(measure: CountsBasedMeasure) -> float:
    return float(getattr(measure, "beta", 1.0)) ** 2
