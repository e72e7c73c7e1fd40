"""What a trained classifier says of rows: scores, classes, the measure, J, and a new cut."""

import warnings
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted, validate_data

from scoreline.fitting.training import Judged, cut_on, unreached, with_cost
from scoreline.fitting.validation import check_labels, check_sample_weight, check_truth, check_weights, seen
from scoreline.measures import Measure, get_measure
from scoreline.operators import as_operator
from scoreline.operators.column_maps import ColumnMap, mapped_like
from scoreline.operators.convert import checked_scores
from scoreline.risks.registry import get_risk
from scoreline.runtime import parallel
from scoreline.runtime.array_types import is_dask, library_of
from scoreline.runtime.memory import memory_advice
from scoreline.runtime.types import AnyArray, FloatArray
from scoreline.runtime.vectors import RemoteVector, room_module
from scoreline.scores import space_of


class Scoring:
    """The part of MeasureClassifier that looks at rows without training."""

    def decision_function(self: Any, X: Any) -> FloatArray:
        """Return the score of each row: X coef_ + intercept_, positive where `predict` says classes_[1].

        Parameters
        ----------
        X : as in `fit`, of shape (m, p)
            Examples in rows.

        Returns
        -------
        ndarray of shape (m,)
            The scores; one pass over X. Of X in Dask a Dask array, which is not computed yet; of X on a device an array there.
        """
        check_is_fitted(self, "coef_")
        if is_dask(X):
            validate_data(self, seen(X), reset=False, skip_check_array=True)
            return room_module("blocks", "dask_operator").lazy_scores(
                X, self.coef_[0], float(self.intercept_[0]), self._column_map
            )
        z = self._scored(X)[0]
        if getattr(z, "scores", None) == "device":
            return z.array + float(self.intercept_[0])
        return np.asarray(z) + float(self.intercept_[0])

    def predict(self: Any, X: Any) -> AnyArray:
        """Return the class of each row: classes_[1] where decision_function > 0.

        Parameters
        ----------
        X : as in `fit`, of shape (m, p)
            Examples in rows.

        Returns
        -------
        ndarray of shape (m,)
            The classes; of X in Dask a Dask array, which is not computed yet; of X on a
            device an array there, if they are numbers.
        """
        decision = self.decision_function(X)
        if is_dask(decision):
            return room_module("blocks", "dask_operator").lazy_classes(decision, self.classes_)
        if library_of(decision) is not None:
            positive = room_module("device", "vector").DeviceVector(decision) > 0.0
            if self.classes_.dtype.kind in "biuf":
                return np.where(positive, self.classes_[1], self.classes_[0]).array
            decision = np.asarray(positive)
        return self.classes_.take(decision > 0)

    def score(self: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the measure on (X, y).

        Parameters
        ----------
        X : as in `fit`, of shape (m, p)
            Examples in rows.
        y : array of m labels
            Their classes.
        sample_weight : array of m weights, optional
            Rows count as often as their weight.

        Returns
        -------
        float
            The measure itself, larger is better.
        """
        z, y, sample_weight = self._scored(X, y, sample_weight)
        decision = z + float(self.intercept_[0])
        truth = check_truth(y, self.classes_, len(decision))
        weight = check_sample_weight(sample_weight, len(decision))
        return get_measure(self.measure, self.measure_params).value(truth, decision, weight)

    def objective(self: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return J = alpha/2 |w|^2 + R of the trained coefficients on (X, y); on the training data it is objective_.

        Parameters
        ----------
        X : as in `fit`, of shape (m, p)
            Examples in rows.
        y : array of m labels
            Their classes, both of them.
        sample_weight : array of m weights, optional
            As in `fit`; class_weight is applied too.

        Returns
        -------
        float
            J of `risk_`, without smoothing; one pass over X.
        """
        z, y, sample_weight = self._scored(X, y, sample_weight)
        z = z + self.trained_intercept_
        check_labels(y, len(z))  # both classes must be there
        sign = _beside(z, np.where(check_truth(y, self.classes_, len(z)), 1, -1))
        _, weight = check_weights(sample_weight, self.class_weight, self.classes_, sign)
        weight = with_cost(weight, sign, self.cost_)
        measure = get_measure(self.measure, self.measure_params)
        return self._penalty + get_risk(self.risk_, measure).prepare(sign, weight, space_of(z)).value(z)

    def recut(
        self: Any,
        X: Any,
        y: Any,
        measure: str | Measure | None = None,
        measure_params: dict[str, Any] | None = None,
        sample_weight: Any = None,
    ) -> Any:
        """Set the intercept anew: the best cut on these rows, for the classifier's measure or for another one.

        The coefficients stay. Rows that the fit has not seen give a cut that is less optimistic; another operating point
        (`measure="recall_at_precision", measure_params={"precision": 0.95}`) costs one pass over X and no training.

        Parameters
        ----------
        X : as in `fit`, of shape (m, p)
            Examples in rows.
        y : array of m labels
            Their classes.
        measure : str or Measure, default=None
            What the cut is to serve; None keeps the classifier's own measure. `score` goes on reporting that one.
        measure_params : dict, default=None
            Parameters of a measure given by name.
        sample_weight : array of m weights, optional
            As in `fit`; class_weight is applied too.

        Returns
        -------
        MeasureClassifier
            The classifier with the new `intercept_`.
        """
        scores, y, sample_weight = self._scored(X, y, sample_weight)
        scores = scores + self.trained_intercept_
        chosen = (
            get_measure(self.measure, self.measure_params) if measure is None else get_measure(measure, measure_params)
        )
        sign = _beside(scores, np.where(check_truth(y, self.classes_, len(scores)), 1, -1))
        _, weight = check_weights(sample_weight, self.class_weight, self.classes_, sign)
        served = self._cut_measure(chosen)
        threshold = cut_on(served, Judged(sign, scores, weight))
        self.intercept_ = np.array([self.trained_intercept_ - threshold])
        missed = unreached(served, Judged(sign, scores, weight))
        if missed is not None:
            warnings.warn(missed, UserWarning, stacklevel=2)
        return self

    @property
    def _column_map(self: Any) -> ColumnMap | None:
        return getattr(self, "column_map_", None)

    def _scored(self: Any, X: Any, *rows: Any) -> tuple[Any, ...]:
        """Return X coef_, and labels and weights where the rows are."""
        check_is_fitted(self, "coef_")
        with parallel.thread_limit(self.n_jobs), memory_advice():
            if is_dask(X):  # blocks are scored one by one and let go: X need not fit the memory of the workers
                validate_data(self, seen(X), reset=False, skip_check_array=True)
                dask = room_module("blocks", "dask_operator")
                operator: Any = dask.from_dask(dask.lazy_scores(X, self.coef_[0], 0.0, self._column_map)[:, None])
                z = operator.matvec(np.ones(1))
            else:
                operator = as_operator(X, check_finite=False)
                validate_data(self, X, reset=False, skip_check_array=True)
                operator = mapped_like(operator, self._column_map)
                z = checked_scores(X, operator, self.coef_[0])
            return z, *(operator.aligned(each) for each in rows)


def _beside(z: Any, sign: Any) -> Any:
    """Return labels where the scores are; those that were text have stayed here."""
    return z.like(sign) if isinstance(z, RemoteVector) else sign
