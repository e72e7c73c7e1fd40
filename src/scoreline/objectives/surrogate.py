"""The risk that stands for a measure in the training of any model: value, gradient and a positive curvature."""

import copy
from typing import Any, NamedTuple, Self

import numpy as np

from scoreline.measures import CountsBasedMeasure, Measure, OperatingPoint, best_threshold, get_measure
from scoreline.risks.balanced import BalancedRisk
from scoreline.risks.base import Risk, checked_labels
from scoreline.risks.contingency import ContingencyRisk
from scoreline.risks.contingency_entropy import EntropyContingencyRisk
from scoreline.risks.registry import get_risk
from scoreline.risks.separable import SeparableRisk
from scoreline.runtime.checks import check_number
from scoreline.runtime.types import AnyArray, FloatArray, Scores
from scoreline.runtime.vectors import as_vector
from scoreline.scores import HostSpace, Labels, ScoreSpace

# Risks of the ranking measures, where they differ from the first risk that MeasureClassifier trains.
RISKS = {
    "roc_auc": "roc_area_squared",
    "partial_roc_auc": "partial_roc",
    "average_precision": "average_precision",
    "prbep": "prbep",
}
LEAST_CURVATURE = 1e-3  # share of the curvature of the logistic loss at the share of positives, s pi (1 - pi)
STEP = 0.01  # of finite differences: share of the positives, or of the rows that are called positive
COST_RANGE = 10.0  # costs may exceed the range from 1 to the ratio of the classes by this factor


class SurrogateValue(NamedTuple):
    """Value, gradient in the scores, curvature of each row (None unless requested), cost, and total weight with it."""

    value: float
    grad: Scores
    curvature: Scores
    cost: float
    total: float


class Surrogate:
    """The convex risk of a measure as a function of scores, for models that are trained by gradients.

    Ranking measures have risks of their own: the squared ROC area for `roc_auc`, the partial ROC area, the structural
    hinges of average precision and of the break-even point. Count-based measures are trained by the logistic loss in
    which an error on a positive costs as much as the measure says at the best threshold (`cost_of_errors`). Risks with
    kinks are smoothed by a ramp.

    Scores are in units of the margin. That matters for `prbep`, whose margin grows as positives become rare: its risk
    is evaluated at the margin times the scores.

    Parameters
    ----------
    measure : str or Measure
        What the model is trained for.
    measure_params : dict, optional
        Parameters of a measure given by name.
    risk : str
        "auto", or the name of a risk, for example "roc_area" for the hinge over pairs.
    ramp : float
        Width of the ramp that smooths a risk with kinks, in margins; 0 for none. A wider ramp is smoother and less
        exact.
    cost : "auto" or float
        Cost of an error on a positive relative to one on a negative, for count-based measures with a loss of each row.
        "auto" estimates it in every evaluation.
    """

    labels: Labels
    space: ScoreSpace

    def __init__(
        self,
        measure: str | Measure = "roc_auc",
        measure_params: dict[str, Any] | None = None,
        risk: str = "auto",
        ramp: float = 1.0,
        cost: Any = "auto",
    ):
        self.measure = get_measure(measure, measure_params)
        check_number("ramp", ramp, least=0)
        if cost != "auto":
            check_number("cost", cost, above=0)
        if risk == "auto":
            risk = RISKS.get(self.measure.name, "logistic" if _is_count_based(self.measure) else self.measure.risks[0])
        self.risk = get_risk(risk, self.measure)
        self.ramp, self.cost = float(ramp), cost
        if cost != "auto" and not isinstance(self.risk, SeparableRisk):
            raise ValueError(
                f"cost={cost!r} is for losses of single rows, and risk {self.risk.name!r} has none. "
                "Use risk='logistic', or give sample weights."
            )

    @property
    def estimates_cost(self) -> bool:
        """Whether the cost of errors is estimated from the scores."""
        return self.cost == "auto" and isinstance(self.risk, SeparableRisk) and _is_count_based(self.measure)

    def prepare(self, y: Any, sample_weight: Any = None, space: ScoreSpace | None = None) -> Self:
        """Return a copy with labels and weights.

        Parameters
        ----------
        y : array of n labels
            +1 and -1, or 1 and 0, or booleans; both classes must occur.
        sample_weight : array of n weights, optional
            Non-negative; an integer weight equals that many copies of the row.
        space : ScoreSpace, optional
            Where the scores are; the host by default.

        Returns
        -------
        Surrogate
            The prepared copy.
        """
        prepared = copy.copy(self)
        prepared.space = HostSpace() if space is None else space
        prepared._y, prepared._weight = checked_labels(y, sample_weight)
        prepared._risk = self.risk.prepare(y, sample_weight, prepared.space)
        prepared.labels = prepared._risk.labels
        if self.cost not in ("auto", 1.0):
            prepared._risk = prepared._with_cost(float(self.cost))
        return prepared

    _y: Any
    _weight: Any
    _risk: Risk

    def evaluate(self, z: Scores, curvature: bool = False) -> SurrogateValue:
        """Return the value, its gradient and, if requested, the curvature at scores z.

        The value is that of the risk, smoothed if it has kinks; the gradient is exact. An estimated cost counts as a
        constant. The curvature is the diagonal of the Hessian where the risk is smooth. Otherwise it is the larger of
        that of the smoothed risk and of |gradient| per margin.

        Parameters
        ----------
        z : array of n scores
            In the score space that was prepared.
        curvature : bool
            Whether to return the curvature.

        Returns
        -------
        SurrogateValue
            Its fields are value, grad, curvature, and the cost of errors with the total weight of the rows at that
            cost.
        """
        cost = self.cost_at(z)
        risk = self._with_cost(cost) if self.estimates_cost else self._risk
        unit, mu = self._unit(risk), self._mu(risk)
        scaled = z if unit == 1.0 else self.space.combine(unit, z, 0.0, z)
        found = risk.evaluate(scaled, mu)
        grad = found.grad if unit == 1.0 else self.space.combine(unit, found.grad, 0.0, found.grad)
        if not curvature:
            return SurrogateValue(found.value, grad, None, cost, risk.labels.total)
        hessian = risk.hessian(scaled, mu)
        second = None if hessian is None else self.space.combine(unit * unit, hessian.diagonal, 0.0, hessian.diagonal)
        if second is None or not risk.smooth:
            slope = np.abs(grad)
            second = slope if second is None else np.maximum(second, slope)
        return SurrogateValue(found.value, grad, second, cost, risk.labels.total)

    def for_boosting(self, z: Scores) -> tuple[Scores, Scores]:
        """Return gradient and curvature on the scale of a sum over rows, as boosted trees expect them.

        Learning rates, penalties of leaves and least sums of curvatures then mean what they mean for the logistic loss. At
        equal scores, the curvatures of either class sum to S pi (1 - pi). S is the weight of all rows, and pi the share of
        positives.

        Parameters
        ----------
        z : array of n scores
            In the score space that was prepared.

        Returns
        -------
        tuple of arrays
            Gradient and curvature; the curvature is positive where the weight is.
        """
        found = self.evaluate(z, curvature=True)
        labels = self.labels
        balance = labels.positive * labels.negative / labels.total
        if isinstance(self.risk, SeparableRisk):
            scale = found.total
        elif isinstance(self.risk, (BalancedRisk, ContingencyRisk, EntropyContingencyRisk)):
            scale = 0.5 * labels.total / self._unit(self._risk)
        else:
            scale = balance
        least = LEAST_CURVATURE * balance / labels.total
        floor = least if labels.weight is None else least * labels.weight
        return scale * found.grad, np.maximum(scale * found.curvature, floor)

    def cost_at(self, z: Scores) -> float:
        """Return the cost of errors that belongs to scores z (`cost_of_errors`), or the one that was given.

        Parameters
        ----------
        z : array of n scores
            In the score space that was prepared.

        Returns
        -------
        float
            Cost of an error on a positive relative to one on a negative.
        """
        if not self.estimates_cost:
            return 1.0 if self.cost == "auto" else float(self.cost)
        return cost_of_errors(self.labels.sign, z, self.measure, self.labels.weight)

    def _with_cost(self, cost: float) -> Risk:
        """Return the risk with the weights of positives multiplied by a cost."""
        factor = np.where(self._y > 0, cost, 1.0)
        return self.risk.prepare(self._y, factor if self._weight is None else factor * self._weight, self.space)

    def _unit(self, risk: Risk) -> float:
        """Return the margin of the risk, which is the unit of the scores."""
        return float(risk.offset) if isinstance(risk, BalancedRisk) else 1.0

    def _mu(self, risk: Risk) -> float:
        if not risk.smoothable or self.ramp == 0.0:
            return 0.0
        return self.ramp * self._unit(risk) / risk.ramp_scale


def cost_of_errors(y: Any, scores: Any, measure: Any, sample_weight: Any = None) -> float:
    """Return what an error on a positive costs, in errors on negatives, at the best threshold of a count-based measure.

    That is (dM/dFN) / (dM/dFP), by finite differences of the measure M in its counts. A loss with these costs has the
    same best threshold as the measure, as long as the counts stay. Where M does not fall with one of the errors, as on
    one side of a kink, the cost is the ratio of the classes. It is limited to ten times the range from 1 to that
    ratio. Operating points have the cost 1: their threshold meets the constraint.

    Parameters
    ----------
    y : array of n labels
        Positive where y > 0.
    scores : array of n floats
        Scores before the threshold.
    measure : str or Measure
        A measure of the confusion counts.
    sample_weight : array of n weights, optional
        A row counts as often as its weight.

    Returns
    -------
    float
        The cost.
    """
    measure = get_measure(measure)
    if not isinstance(measure, CountsBasedMeasure):
        raise ValueError(f"measure {measure.name!r} is a ranking measure, expected one of the confusion counts.")
    if isinstance(measure, OperatingPoint):
        return 1.0
    threshold = best_threshold(y, scores, measure, sample_weight).threshold
    positive, flagged = (as_vector(y) > 0).astype(np.int8), (as_vector(scores) > threshold).astype(np.int8)
    tn, fp, fn, tp = np.bincount(2 * positive + flagged, sample_weight, 4).astype(np.float64).tolist()
    ratio = (fp + tn) / (tp + fn)
    step = STEP * (tp + fn)
    of_positives = _slope(lambda d: measure.from_counts(tp - d, fp, fn + d, tn), min(step, fn), min(step, tp))
    step = STEP * max(tp + fp, min(tp + fn, fp + tn))
    of_negatives = _slope(lambda d: measure.from_counts(tp, fp + d, fn, tn - d), min(step, fp), min(step, tn))
    cost = of_positives / of_negatives if of_positives < 0.0 and of_negatives < 0.0 else ratio
    return float(np.clip(cost, min(1.0, ratio) / COST_RANGE, max(1.0, ratio) * COST_RANGE))


def _slope(function: Any, down: float, up: float) -> float:
    """Return the slope of a function of a change between -down and up, NaN if there is no room."""
    if not down + up > 0.0:
        return float("nan")
    ends = [float(np.asarray(function(change))) for change in (-down, up)]
    return (ends[1] - ends[0]) / (down + up)


def _is_count_based(measure: Measure) -> bool:
    return isinstance(measure, CountsBasedMeasure)


def best_value(
    measure: Measure, y: AnyArray, scores: FloatArray, sample_weight: FloatArray | None = None, threshold: Any = "best"
) -> float:
    """Return a measure of scores; one of the confusion counts at a threshold, the best one by default."""
    sign, weight = checked_labels(y, sample_weight)
    if measure.uses_order:
        return float(measure.value(sign, scores, weight))
    if threshold == "best":
        return float(best_threshold(sign, scores, measure, weight).value)
    return float(measure.value(sign, as_vector(scores) - threshold, weight))
