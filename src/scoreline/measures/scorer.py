"""Measures as scikit-learn scorers."""

from typing import Any

import numpy as np

from scoreline.measures.base import Measure
from scoreline.measures.registry import get_measure


class MeasureScorer:
    """scorer(estimator, X, y): the measure of the estimator's decision values (or its probabilities around 1/2)."""

    def __init__(self, measure: Measure):
        self.measure = measure

    def __call__(self, estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the measure on (X, y); the larger of the estimator's two classes is positive."""
        if hasattr(estimator, "decision_function"):
            decision = estimator.decision_function(X)
        else:
            decision = estimator.predict_proba(X)[:, 1] - 0.5
        truth = np.asarray(y) == estimator.classes_[1]
        if not self.measure.uses_order:  # the estimator's own predictions count, wherever its threshold is
            decision = np.where(np.asarray(estimator.predict(X)) == estimator.classes_[1], 1.0, -1.0)
        return self.measure.value(truth, decision, sample_weight)

    def __repr__(self) -> str:
        return f"get_scorer({self.measure.name!r})"


def get_scorer(measure: str | Measure, **params: Any) -> MeasureScorer:
    """Return a scikit-learn scorer for a measure, for `cross_val_score`, `GridSearchCV` and the like.

    Parameters
    ----------
    measure : str or Measure
        Name or object.
    **params
        Parameters of a measure given by name.

    Returns
    -------
    MeasureScorer
        Callable as scorer(estimator, X, y, sample_weight=None).
    """
    return MeasureScorer(get_measure(measure, params))
