"""An objective for CatBoost, which shows the rows to a custom objective in small blocks, and a metric."""

from typing import Any, NamedTuple

import numpy as np

from scoreline.measures import Measure
from scoreline.objectives.surrogate import Surrogate, best_value
from scoreline.runtime.checks import check_number
from scoreline.runtime.types import AnyArray, FloatArray

MOST_REPEATS = 100  # of the first block without a call of the metric; one tree shows it at most about ten times


class Slopes(NamedTuple):
    """Derivatives per unit of weight as functions of the score, for one class: at increasing scores."""

    scores: FloatArray
    first: FloatArray
    second: FloatArray

    def at(self, z: FloatArray) -> FloatArray:
        """Return both derivatives at scores, interpolated where a score is between two of the population."""
        return np.stack([np.interp(z, self.scores, self.first), np.interp(z, self.scores, self.second)], axis=1)


class CatBoostMetric:
    """A measure as a metric of CatBoost: larger is better."""

    no_jit = True  # CatBoost would try to compile the methods, and warn

    def __init__(self, measure: str | Measure, measure_params: dict[str, Any] | None, threshold: Any = "best"):
        self.measure = Surrogate(measure, measure_params).measure
        if threshold != "best":
            check_number("threshold", threshold, least=-np.inf)
        self.threshold = threshold

    def is_max_optimal(self) -> bool:
        """Tell CatBoost that larger values are better."""
        return True

    def evaluate(self, approxes: Any, target: Any, weight: Any) -> tuple[float, float]:
        """Return the measure of all rows, and 1."""
        y, scores, weights = np.asarray(target), np.asarray(approxes[0]), _array(weight)
        return best_value(self.measure, y, scores, weights, self.threshold), 1.0

    def get_final_error(self, error: float, weight: float) -> float:
        """Return the measure."""
        return error

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.measure.label})"


class CatBoostObjective(CatBoostMetric):
    """A surrogate as both `loss_function` and `eval_metric` of CatBoost.

    CatBoost shows the rows to an objective in blocks of at most a thousand, and all rows at once to a metric, after
    every tree. The derivatives of our risks depend on a row's own score, label and weight, given the scores of all
    rows. So the metric keeps the derivatives as a function of the score, and the objective looks them up. Before the
    first tree all scores are equal, and the counts of the classes so far are enough.
    """

    def __init__(self, surrogate: Surrogate):
        super().__init__(surrogate.measure, None)
        self.surrogate = surrogate
        self._start()

    def _start(self) -> None:
        self._slopes: dict[int, Slopes] = {}
        self._totals = {1: 0.0, -1: 0.0}
        self._rows = self._repeats = 0
        self._first: AnyArray | None = None

    def calc_ders_range(self, approxes: Any, targets: Any, weights: Any) -> FloatArray:
        """Return the derivatives of the objective that CatBoost maximises: minus gradient, minus curvature."""
        z, sign = np.asarray(approxes), np.where(np.asarray(targets) > 0, 1, -1)
        weight = np.ones(len(z)) if weights is None else np.asarray(weights)
        if self._slopes and self._rows == 0 and not z.any():
            self._start()  # a new fit with the same object
        self._count(z, sign, weight)
        slopes = self._slopes or self._at_equal_scores(float(z[0]))
        out = np.empty((len(z), 2))
        for side in (1, -1):
            rows = sign == side
            out[rows] = -slopes[side].at(z[rows])
        return out * weight[:, None]

    def evaluate(self, approxes: Any, target: Any, weight: Any) -> tuple[float, float]:
        """Return the measure; of the training rows, keep the derivatives."""
        y, z, weights = np.asarray(target), np.asarray(approxes[0]), _array(weight)
        if self._rows > 0:  # the training rows come first
            if self._rows % len(z):
                raise ValueError(
                    f"CatBoost evaluated {len(z)} rows after derivatives of {self._rows}, expected all training rows. "
                    "Use boosting_type='Plain' and metric_period=1."
                )
            self._slopes = self._of_population(y, z, weights)
            self._rows = self._repeats = 0
        return super().evaluate(approxes, target, weight)

    def _count(self, z: FloatArray, sign: AnyArray, weight: FloatArray) -> None:
        """Count the rows since the last call of the metric, and before the first one the classes."""
        self._rows += len(z)
        if not self._slopes:
            for side in (1, -1):
                self._totals[side] += float(weight[sign == side].sum())
        if self._first is None:
            self._first = sign
        elif self._first.shape == sign.shape and (self._first == sign).all():
            self._repeats += 1
            if self._repeats > MOST_REPEATS:
                raise ValueError(
                    "CatBoost does not call the metric of this objective. Pass the same object as loss_function and as "
                    "eval_metric."
                )

    def _at_equal_scores(self, score: float) -> dict[int, Slopes]:
        """Return the derivatives at equal scores, from the weights of the classes seen so far."""
        total = sum(self._totals.values())
        weights = np.array([max(self._totals[side], 0.5 * total / self._rows) for side in (1, -1)])
        if not self.surrogate.risk.real_weights:
            weights = np.maximum(np.rint(weights * (self._rows / total)), 1.0)
        return self._of_population(np.array([1, -1]), np.full(2, score), weights)

    def _of_population(self, y: AnyArray, z: FloatArray, weight: FloatArray | None) -> dict[int, Slopes]:
        grad, curvature = (np.asarray(v) for v in self.surrogate.prepare(y, weight).for_boosting(z))
        found = {}
        for side in (1, -1):
            rows = (y > 0) == (side > 0)
            rows = rows if weight is None else rows & (weight > 0.0)
            s = 1.0 if weight is None else weight[rows]
            scores, first = np.unique(z[rows], return_index=True)
            found[side] = Slopes(scores, (grad[rows] / s)[first], (curvature[rows] / s)[first])
        return found

    def __getstate__(self) -> dict[str, Any]:
        return {"surrogate": self.surrogate}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["surrogate"])  # type: ignore[misc]  # how its objects are restored

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.measure.label}, risk={self.surrogate.risk.name!r})"


def catboost_objective(
    measure: str | Measure = "roc_auc",
    measure_params: dict[str, Any] | None = None,
    *,
    risk: str = "auto",
    ramp: float = 1.0,
    cost: Any = "auto",
) -> CatBoostObjective:
    """Return an objective that trains CatBoost for a measure.

    Pass the same object as `loss_function` and as `eval_metric`. As a metric it returns the measure, and early
    stopping uses it. As an objective it needs the metric's calls, because CatBoost shows the rows to an objective in
    small blocks. The metric must be evaluated after every tree (`metric_period=1`), with `boosting_type="Plain"`, on
    the CPU; these are the defaults for a custom objective. Use one object for one fit at a time.

    Parameters
    ----------
    measure : str or Measure, default="roc_auc"
        What you report. `list_measures()` returns the names.
    measure_params : dict, default=None
        Parameters of a measure given by name, for example {"beta": 2.0} for "fbeta".
    risk : str, default="auto"
        The convex surrogate. "auto" is `Surrogate`'s choice; "roc_area" is the hinge over pairs.
    ramp : float, default=1.0
        Width of the ramp that smooths a risk with kinks, in margins; 0 for none.
    cost : "auto" or float, default="auto"
        For count-based measures: cost of an error on a positive relative to one on a negative. "auto" is
        `cost_of_errors` of the training scores in every round.

    Returns
    -------
    CatBoostObjective
        The object for `loss_function` and `eval_metric`.
    """
    return CatBoostObjective(Surrogate(measure, measure_params, risk, ramp, cost))


def catboost_metric(
    measure: str | Measure = "roc_auc", measure_params: dict[str, Any] | None = None, *, threshold: Any = "best"
) -> CatBoostMetric:
    """Return a metric of CatBoost for `eval_metric` or `custom_metric`, with any objective.

    Parameters
    ----------
    measure : str or Measure, default="roc_auc"
        What you report. `list_measures()` returns the names.
    measure_params : dict, default=None
        Parameters of a measure given by name.
    threshold : "best" or float, default="best"
        Threshold of the scores for count-based measures. "best" is the best one for the rows that are evaluated.

    Returns
    -------
    CatBoostMetric
        The object for `eval_metric`.
    """
    return CatBoostMetric(measure, measure_params, threshold)


def _array(weight: Any) -> FloatArray | None:
    return None if weight is None else np.asarray(weight, dtype=np.float64)
