"""Objectives and metrics for LightGBM and XGBoost, in the form of their own callables."""

from typing import Any

import numpy as np

from scoreline.measures import Measure
from scoreline.objectives.surrogate import Surrogate, best_value
from scoreline.runtime.checks import check_number
from scoreline.runtime.types import AnyArray, FloatArray


class BoostingObjective:
    """A surrogate as a callable objective: of (y, scores, weight), or of (scores, data) with a data set of the library.

    Labels and weights are prepared once and reused as long as they stay the same.
    """

    def __init__(self, surrogate: Surrogate):
        self.surrogate = surrogate
        self._last: tuple[AnyArray, AnyArray | None, Surrogate] | None = None

    def __call__(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> tuple[FloatArray, FloatArray]:
        """Return gradient and curvature of every row, given labels, scores and weights, or scores and a data set."""
        y, scores, weight = _rows(y_true, y_pred, sample_weight)
        grad, curvature = self._prepared(y, weight).for_boosting(scores)
        return np.asarray(grad), np.asarray(curvature)

    def _prepared(self, y: AnyArray, weight: AnyArray | None) -> Surrogate:
        last = self._last
        if last is None or not (np.array_equal(last[0], y) and _same(last[1], weight)):
            last = y.copy(), None if weight is None else weight.copy(), self.surrogate.prepare(y, weight)
            self._last = last
        return last[2]

    def __getstate__(self) -> dict[str, Any]:
        return {"surrogate": self.surrogate, "_last": None}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.surrogate.measure.label}, risk={self.surrogate.risk.name!r})"


class BoostingMetric:
    """A measure as a callable metric for early stopping."""

    def __init__(self, measure: str | Measure, measure_params: dict[str, Any] | None, threshold: Any):
        self.measure = Surrogate(measure, measure_params).measure
        if threshold != "best":
            check_number("threshold", threshold, least=-np.inf)
        self.threshold = threshold

    def _value(self, y_true: Any, y_pred: Any, sample_weight: Any) -> float:
        y, scores, weight = _rows(y_true, y_pred, sample_weight)
        return best_value(self.measure, y, scores, weight, self.threshold)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.measure.label})"


class LightGBMMetric(BoostingMetric):
    """A metric of LightGBM: (name, value, True), where larger values are better."""

    def __call__(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> tuple[str, float, bool]:
        """Return name, value and True, given labels, scores and weights, or scores and a `lightgbm.Dataset`."""
        return self.measure.name, self._value(y_true, y_pred, sample_weight), True


class XGBoostMetric(BoostingMetric):
    """A metric of XGBoost. It returns minus the measure, because XGBoost minimises metrics that it does not know."""

    @property
    def __name__(self) -> str:
        return f"minus_{self.measure.name}"

    def __call__(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Any:
        """Return minus the measure, and for scores and a `DMatrix` also the name."""
        value = -self._value(y_true, y_pred, sample_weight)
        return (self.__name__, value) if hasattr(y_pred, "get_label") else value


def lightgbm_objective(
    measure: str | Measure = "roc_auc",
    measure_params: dict[str, Any] | None = None,
    *,
    risk: str = "auto",
    ramp: float = 1.0,
    cost: Any = "auto",
) -> BoostingObjective:
    """Return an objective that trains LightGBM for a measure.

    It goes into `LGBMClassifier(objective=...)` and into the parameter "objective" of `lightgbm.train`. The model then
    predicts scores: `predict` and `predict_proba` return them as they are. Labels are 1 and 0, or +1 and -1.

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
    callable
        Maps labels, scores and weights (or scores and a `lightgbm.Dataset`) to gradient and curvature.

    Examples
    --------
    >>> import numpy as np
    >>> from scoreline.objectives import lightgbm_objective
    >>> objective = lightgbm_objective("roc_auc")
    >>> gradient, curvature = objective(np.array([0, 0, 1]), np.zeros(3))
    >>> gradient.round(3)
    array([ 0.333,  0.333, -0.667])
    """
    return BoostingObjective(Surrogate(measure, measure_params, risk, ramp, cost))


def xgboost_objective(
    measure: str | Measure = "roc_auc",
    measure_params: dict[str, Any] | None = None,
    *,
    risk: str = "auto",
    ramp: float = 1.0,
    cost: Any = "auto",
) -> BoostingObjective:
    """Return an objective that trains XGBoost for a measure.

    It goes into `XGBClassifier(objective=...)` and into `xgboost.train(..., obj=...)`. The model then predicts scores;
    take them with `output_margin=True`. Labels are 1 and 0, or +1 and -1.

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
    callable
        Maps labels, scores and weights (or scores and a `xgboost.DMatrix`) to gradient and curvature.
    """
    return BoostingObjective(Surrogate(measure, measure_params, risk, ramp, cost))


def lightgbm_metric(
    measure: str | Measure = "roc_auc", measure_params: dict[str, Any] | None = None, *, threshold: Any = "best"
) -> LightGBMMetric:
    """Return a metric of LightGBM, for early stopping by a measure.

    It goes into `fit(eval_metric=...)` of the scikit-learn classes and into `lightgbm.train(..., feval=...)`. Leave
    out LightGBM's own metric (`metric="None"`), or early stopping looks at both.

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
    callable
        Maps labels, scores and weights (or scores and a `lightgbm.Dataset`) to (name, value, True).
    """
    return LightGBMMetric(measure, measure_params, threshold)


def xgboost_metric(
    measure: str | Measure = "roc_auc", measure_params: dict[str, Any] | None = None, *, threshold: Any = "best"
) -> XGBoostMetric:
    """Return a metric of XGBoost, for early stopping by a measure: minus the measure, which XGBoost minimises.

    It goes into `XGBClassifier(eval_metric=...)` and into `xgboost.train(..., custom_metric=...)`. Also pass
    `disable_default_eval_metric=True`, or XGBoost shows its own metric as well.

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
    callable
        Maps labels, scores and weights to minus the measure, or scores and a `xgboost.DMatrix` to (name, minus the
        measure).
    """
    return XGBoostMetric(measure, measure_params, threshold)


def _rows(first: Any, second: Any, weight: Any) -> tuple[AnyArray, FloatArray, AnyArray | None]:
    """Return labels, scores and weights (None for 1) from either form of a call."""
    if hasattr(second, "get_label"):  # (scores, data set), the form of the native interfaces
        first, second, weight = second.get_label(), first, second.get_weight()
    y, scores = np.asarray(first), np.asarray(second, dtype=np.float64)
    if scores.ndim == 2 and scores.shape[1] == 1:
        scores = scores[:, 0]
    if scores.shape != y.shape or y.ndim != 1:
        raise ValueError(f"scores have shape {scores.shape}, expected {y.shape}: one score per row, for two classes.")
    weight = None if weight is None or np.size(weight) == 0 else np.asarray(weight)
    return y, scores, weight


def _same(first: AnyArray | None, second: AnyArray | None) -> bool:
    if first is None or second is None:
        return first is second
    return np.array_equal(first, second)
