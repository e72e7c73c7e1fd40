"""Averages of a measure over classes as scikit-learn scorers."""

from typing import Any

import numpy as np
from sklearn.utils.metadata_routing import MetadataRequest

from scoreline.measures.averages import class_average
from scoreline.measures.base import Measure
from scoreline.runtime.checks import check_choice
from scoreline.runtime.types import AnyArray, FloatArray


class AverageScorer:
    """A measure averaged over classes, of an estimator for many classes or many labels; larger is better.

    It knows the classes of the estimator's columns, which scikit-learn's make_scorer does not tell a function: rows of a fold
    need not have all of them.
    """

    def __init__(self, measure: Measure, average: str):
        check_choice("average", average, ("macro", "weighted", "micro"))  # a scorer gives one number
        self.measure = measure
        self.average = average
        self._wants_weights: bool | str | None = None

    def __call__(self, estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the average on (X, y)."""
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
        """Say whether sample weights are for this scorer, where scikit-learn routes metadata: True, False or another name."""
        self._wants_weights = sample_weight
        return self

    def get_metadata_routing(self) -> MetadataRequest:
        """Return what `set_score_request` asked for."""
        request = MetadataRequest(owner=self)
        request.score.add_request(param="sample_weight", alias=self._wants_weights)
        return request

    def _accept_sample_weight(self) -> bool:  # asked where several scorers run together
        return True


def _scores(estimator: Any, X: Any, y: Any, measure: str) -> tuple[FloatArray, AnyArray | None]:
    """Return the scores of the estimator, one column a class, and the classes (None for labels in columns)."""
    if hasattr(estimator, "decision_function"):
        scores = estimator.decision_function(X)
    elif hasattr(estimator, "predict_proba"):
        scores = estimator.predict_proba(X)
    else:
        raise TypeError(
            f"{measure} needs scores: {type(estimator).__name__} has no decision_function nor predict_proba here. "
            "MultiOutputClassifier has only the latter, if its estimator has; OneVsRestClassifier takes labels in columns too."
        )
    if isinstance(scores, list):  # a pair of columns for each label, as MultiOutputClassifier gives
        pairs = zip(scores, estimator.classes_, strict=True)
        return np.column_stack([_of_label_1(probability, classes) for probability, classes in pairs]), None
    scores = np.asarray(scores, dtype=np.float64)
    shape = np.shape(y)
    if len(shape) == 2 and shape[1] > 1:
        return scores, None
    classes = np.asarray(estimator.classes_)
    if scores.ndim == 2 and len(classes) == 2:
        scores = scores[:, 1]  # probabilities; decision values are a vector
    return _with_unseen(scores, classes, np.unique(np.asarray(y)))


def _of_label_1(probability: AnyArray, classes: AnyArray) -> FloatArray:
    """Return the probability of label 1, which is 0 where the estimator has not seen it."""
    places = np.flatnonzero(np.asarray(classes) == 1)
    return np.asarray(probability)[:, places[0]] if len(places) else np.zeros(len(probability))


def _with_unseen(scores: FloatArray, classes: AnyArray, labels: AnyArray) -> tuple[FloatArray, AnyArray]:
    """Return scores and classes with columns for labels that training had not: all rows alike, below all others."""
    unseen = labels[~np.isin(labels, classes)]
    if len(unseen) == 0:
        return scores, classes
    if scores.ndim == 1:
        scores = np.column_stack([-scores, scores])
    lowest = np.full((len(scores), len(unseen)), scores.min())
    return np.hstack([scores, lowest]), np.concatenate([classes, unseen])
