"""Measures as scikit-learn scorers."""

from typing import Any

import numpy as np
from sklearn.metrics import make_scorer

from scoreline.measures.average_scorer import AverageScorer
from scoreline.measures.base import Measure
from scoreline.measures.registry import get_measure
from scoreline.runtime.types import AnyArray


class ScoreFunction:
    """A measure as a function of true labels and of predicted labels (count measures) or scores (ranking measures).

    The larger of the labels that occur is positive; where only one label occurs, numbers above 0 are.
    """

    def __init__(self, measure: Measure):
        self.measure = measure
        self.__name__ = measure.name  # scikit-learn's scorers show it

    def __call__(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> float:
        """Return the measure."""
        y_true, y_pred = np.asarray(y_true), np.asarray(y_pred)
        labels = np.unique(y_true if self.measure.uses_order else np.concatenate([y_true, y_pred]))
        if len(labels) > 2:
            raise ValueError(
                f"{self.measure.name} is for two classes, got {len(labels)} labels; get_scorer(..., average='macro') takes more"
            )
        decision = y_pred if self.measure.uses_order else np.where(_positive(y_pred, labels), 1.0, -1.0)
        return self.measure.value(_positive(y_true, labels), decision, sample_weight)


def _positive(y: AnyArray, labels: AnyArray) -> AnyArray:
    if len(labels) == 1 and labels.dtype.kind in "biuf":
        return y > 0
    return np.asarray(y == labels[-1])


def get_scorer(measure: str | Measure, average: str | None = None, **params: Any) -> Any:
    """Return a scikit-learn scorer for a measure: for cross_val_score, GridSearchCV, TunedThresholdClassifierCV and the like.

    Parameters
    ----------
    measure : str or Measure
        Name or object.
    average : {None, "macro", "weighted", "micro"}, default=None
        None for two classes; otherwise the average over classes or labels, as `class_average` takes it.
    **params
        Parameters of a measure given by name.

    Returns
    -------
    callable
        scorer(estimator, X, y, sample_weight=None) is the measure, larger is better. For two classes it is made by
        scikit-learn's make_scorer.
    """
    chosen = get_measure(measure, params)
    if average is not None:
        return AverageScorer(chosen, average)
    response = ("decision_function", "predict_proba") if chosen.uses_order else "predict"
    return make_scorer(ScoreFunction(chosen), response_method=response)
