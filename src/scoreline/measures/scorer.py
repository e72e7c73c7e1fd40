"""Measures as scikit-learn scorers, for two classes or averaged over several."""

from typing import Any

import numpy as np
from sklearn.utils.metadata_routing import MetadataRequest

from scoreline.measures.averages import class_average
from scoreline.measures.base import Measure
from scoreline.measures.registry import get_measure
from scoreline.runtime.checks import check_choice
from scoreline.runtime.types import AnyArray, FloatArray


class ScoreFunction:
    """A measure as a function of true labels and of predicted labels (count-based) or scores (ranking measures).

    The larger of two labels is positive. If only one label occurs, numbers above 0 are positive.
    """

    def __init__(self, measure: Measure):
        self.measure = measure
        self.__name__ = measure.name  # displayed by scikit-learn's scorers

    def __call__(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> float:
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
    """Return a scikit-learn scorer for a measure, for cross_val_score, GridSearchCV, TunedThresholdClassifierCV and so on.

    Parameters
    ----------
    measure : str or Measure
        Name or object.
    average : {None, "macro", "weighted", "micro"}, default=None
        None for two classes; otherwise the average over classes or labels, as in `class_average`.
    **params
        Parameters of a measure given by name.

    Returns
    -------
    callable
        scorer(estimator, X, y, sample_weight=None) returns the measure; larger is better. For two classes it is made by
        scikit-learn's make_scorer.
    """
    from sklearn.metrics import make_scorer

    chosen = get_measure(measure, params)
    if average is not None:
        return AverageScorer(chosen, average)
    response = ("decision_function", "predict_proba") if chosen.uses_order else "predict"
    return make_scorer(ScoreFunction(chosen), response_method=response)


class AverageScorer:
    """A measure averaged over classes, for an estimator with several classes or labels; larger is better.

    Unlike scorers of scikit-learn's make_scorer it has the classes of the estimator's columns, which a fold may lack.
    """

    def __init__(self, measure: Measure, average: str):
        check_choice("average", average, ("macro", "weighted", "micro"))  # a scorer gives one number
        self.measure = measure
        self.average = average
        self._wants_weights: bool | str | None = None

    def __call__(self, estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
        classes = None
        if self.measure.uses_order:
            response, classes = _scores(estimator, X, y, self.measure.name)
        else:
            response = estimator.predict(X)
        value = class_average(self.measure, y, response, self.average, classes, sample_weight)
        return float(value)

    def __repr__(self) -> str:
        return f"get_scorer({self.measure.name!r}, average={self.average!r})"

    def set_score_request(self, *, sample_weight: bool | str | None = None) -> "AverageScorer":
        """Set whether scikit-learn's metadata routing passes sample weights to this scorer: True, False or another name."""
        self._wants_weights = sample_weight
        return self

    def get_metadata_routing(self) -> MetadataRequest:
        """Return the request of `set_score_request`."""
        request = MetadataRequest(owner=self)
        request.score.add_request(param="sample_weight", alias=self._wants_weights)
        return request

    def _accept_sample_weight(self) -> bool:  # called by scikit-learn's multi-metric scorers
        return True


def _scores(estimator: Any, X: Any, y: Any, measure: str) -> tuple[FloatArray, AnyArray | None]:
    """Return the scores of the estimator, one column per class, and the classes (None for labels in columns)."""
    if hasattr(estimator, "decision_function"):
        scores = estimator.decision_function(X)
    elif hasattr(estimator, "predict_proba"):
        scores = estimator.predict_proba(X)
    else:
        raise TypeError(
            f"{measure} needs scores: {type(estimator).__name__} has no decision_function nor predict_proba here. "
            "MultiOutputClassifier has only the latter, if its estimator has; OneVsRestClassifier takes labels in columns too."
        )
    if isinstance(scores, list):  # a pair of columns per label, from MultiOutputClassifier
        pairs = zip(scores, estimator.classes_, strict=True)
        return np.column_stack([_of_label_1(probability, classes) for probability, classes in pairs]), None
    scores = np.asarray(scores, dtype=np.float64)
    shape = np.shape(y)
    if len(shape) == 2 and shape[1] > 1:
        return scores, None
    classes = np.asarray(estimator.classes_)
    if scores.ndim == 2 and len(classes) == 2:
        scores = scores[:, 1]  # probabilities; decision values are a vector
    return _with_new_labels(scores, classes, np.unique(np.asarray(y)))


def _of_label_1(probability: AnyArray, classes: AnyArray) -> FloatArray:
    """Return the probability of label 1, which is 0 if it did not occur in training."""
    places = np.flatnonzero(np.asarray(classes) == 1)
    return np.asarray(probability)[:, places[0]] if len(places) else np.zeros(len(probability))


def _with_new_labels(scores: FloatArray, classes: AnyArray, labels: AnyArray) -> tuple[FloatArray, AnyArray]:
    """Return scores and classes with columns for labels that did not occur in training, with the lowest score for all rows."""
    unseen = labels[~np.isin(labels, classes)]
    if len(unseen) == 0:
        return scores, classes
    if scores.ndim == 1:
        scores = np.column_stack([-scores, scores])
    lowest = np.full((len(scores), len(unseen)), scores.min())
    return np.hstack([scores, lowest]), np.concatenate([classes, unseen])
