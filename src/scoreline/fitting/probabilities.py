"""Probabilities beside the scores: a sigmoid learnt on rows that were left out."""

import warnings
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import StratifiedKFold
from sklearn.utils.validation import check_is_fitted

from scoreline.fitting.available import available_if
from scoreline.fitting.catalog import choose
from scoreline.fitting.sigmoid import Sigmoid, fit_robust_sigmoid, gain_over_constant
from scoreline.fitting.validation import class_weights
from scoreline.measures import get_measure
from scoreline.operators import Operator
from scoreline.runtime.types import AnyArray, FloatArray
from scoreline.solvers.cost_search import CostMethod
from scoreline.solvers.registry import get_solver

FOLDS = 5
CALIBRATION = ("calibration_", "calibration_range_", "calibration_gain_")  # what a fit with probability=True sets


def _has_probabilities(estimator: Any) -> None:
    """Raise unless the classifier was asked for probabilities."""
    if not estimator.probability:
        raise AttributeError(
            "predict_proba needs MeasureClassifier(probability=True): scores are no probabilities, and calibrating them takes "
            "scores of rows left out of a fit"
        )


class Probabilities:
    """The part of MeasureClassifier that speaks of probabilities."""

    calibration_: FloatArray
    calibration_range_: FloatArray
    calibration_gain_: float

    @available_if(_has_probabilities)
    def predict_proba(self: Any, X: Any) -> FloatArray:
        """Return the probabilities of both classes, with `probability=True`.

        P(classes_[1]) = 1 / (1 + exp(-(a z + b))), (a, b) = calibration_, a > 0, where z is X coef_ clipped to
        calibration_range_. Probabilities never contradict the ranking of the scores: scores outside of the range, and those
        that round to the same number, have equal ones. `predict` goes by the threshold that serves the measure, not by 1/2.

        Parameters
        ----------
        X : as in `fit`, of shape (m, p)
            Examples in rows.

        Returns
        -------
        ndarray of shape (m, 2)
            P(classes_[0]) and P(classes_[1]); here, wherever X is.
        """
        return self._sigmoid().probability(self._raw_scores(X))

    @available_if(_has_probabilities)
    def predict_log_proba(self: Any, X: Any) -> FloatArray:
        """Return the logarithms of `predict_proba`, which differ also where probabilities round to 1.

        Parameters
        ----------
        X : as in `fit`, of shape (m, p)
            Examples in rows.

        Returns
        -------
        ndarray of shape (m, 2)
            log P(classes_[0]) and log P(classes_[1]).
        """
        return self._sigmoid().log_probability(self._raw_scores(X))

    def probability_of(self: Any, decision: Any) -> FloatArray:
        """Return P(classes_[1]) of rows whose decision values are known, with `probability=True`.

        Parameters
        ----------
        decision : array of m numbers
            What `decision_function` gave.

        Returns
        -------
        ndarray of shape (m,)
            The probabilities.
        """
        _has_probabilities(self)
        raw = np.asarray(decision, dtype=np.float64) - float(self.intercept_[0])
        return self._sigmoid().probability(raw.ravel())[:, 1].reshape(raw.shape)

    def _raw_scores(self: Any, X: Any) -> FloatArray:
        return np.asarray(self._scored(X)[0], dtype=np.float64)

    def _sigmoid(self: Any) -> Sigmoid:
        check_is_fitted(self, "coef_")
        if not hasattr(self, "calibration_"):
            raise NotFittedError(
                "trained without probability=True, or interrupted before probabilities were learnt: fit it again"
            )
        slope, offset = self.calibration_.tolist()
        low, high = getattr(self, "calibration_range_", np.array([-np.inf, np.inf])).tolist()  # older models have none
        return Sigmoid(slope, offset, True, low, high)

    def _calibrate(
        self: Any, sign: AnyArray, scores: FloatArray, weight: FloatArray | None, center: float = 0.0
    ) -> None:
        """Learn the sigmoid from scores of left-out rows, their trained intercept included and their center taken off."""
        rows = np.asarray(sign), np.asarray(scores), None if weight is None else np.asarray(weight)
        found = fit_robust_sigmoid(*rows)
        gain, error, constant = gain_over_constant(*rows, found)
        shift = self.trained_intercept_ - center
        self.calibration_ = np.array([found.slope, found.offset + found.slope * shift])
        self.calibration_range_ = np.array([found.low - shift, found.high - shift])
        self.calibration_gain_ = gain
        if not found.ranks:
            warnings.warn(
                "probability=True: on rows left out, higher scores were not more often positive; all probabilities are near "
                "the share of positives. Choose another alpha or other features.",
                UserWarning,
                stacklevel=3,
            )
        elif gain <= error:
            warnings.warn(
                "probability=True: on held-out rows the probabilities are not clearly better than the share of positives for "
                f"every row (log loss {constant - gain:.4g} against {constant:.4g}, standard error of the difference "
                f"{error:.2g}). Do not rely on them: use scaling='robust' or 'quantile' for heavy tails, choose another "
                "alpha, or train on more rows.",
                UserWarning,
                stacklevel=3,
            )


def center_of(scores: Any, weight: Any, risk: Any) -> float:
    """Return the mean score where a risk does not care for a shift of all scores, so that models can be compared; else 0."""
    if risk.shift == "needed":
        return 0.0
    z = np.asarray(scores)
    return float(z.mean() if weight is None else np.average(z, weights=np.asarray(weight)))


def check_enough_rows(sign: AnyArray, weight: FloatArray | None) -> None:
    """Raise before the fit where no row of a class can be left out."""
    counted = sign if weight is None else sign[weight > 0.0]
    least = int(min(np.count_nonzero(counted > 0), np.count_nonzero(counted < 0)))
    if least < 2:
        raise ValueError(f"probability=True needs two rows of each class to leave one out, got {least} of one class")


def cross_fitted_scores(
    clf: Any, operator: Operator, y: Any, sign: AnyArray, weight: FloatArray | None, risk: Any, tests: Any = None
) -> tuple[FloatArray, AnyArray, float]:
    """Return a score of every row from a fit without it, which rows have one, and the center of the model's own scores.

    Five fits, each without a fifth of the rows, or one for each list of rows in `tests`. The scores of each have their own
    center taken off (`center_of`).

    Rows left out weigh 0, which every storage can do. Fits begin at zero: one that began at the model of all rows, and ended at
    1 % of the optimum, would still know them. The cost of a positive stays that of the model: a fold that chose another would
    have other scores.
    """
    positive, counted = np.asarray(sign) > 0, None if weight is None else np.asarray(weight) > 0.0
    there = np.arange(len(positive)) if counted is None else np.flatnonzero(counted)
    if tests is None:
        least = int(min(np.count_nonzero(positive[there]), np.count_nonzero(~positive[there])))
        seed = clf.random_state if isinstance(clf.random_state, (int, np.integer)) else 0
        folds = StratifiedKFold(min(FOLDS, least), shuffle=True, random_state=seed)
        tests = [there[test] for _, test in folds.split(np.zeros(len(there)), positive[there])]
    own = _fold_classifier(clf, operator, positive, weight)
    scores, unproved, seen = np.zeros(len(positive)), 0, np.zeros(len(positive), dtype=bool)
    for rows in tests:
        kept = np.ones(len(positive)) if weight is None else np.array(weight, dtype=np.float64)
        kept[rows] = 0.0
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # told once, below
            own.fit(operator, y, operator.aligned(kept, "sample_weight"))
        z = np.asarray(operator.matvec(own.coef_[0])) + own.trained_intercept_
        scores[rows] = z[rows] - center_of(z, kept, risk)
        seen[rows] = True
        unproved += own.gap_ is not None and own.status_ in ("max_iter", "max_time", "stalled")
    if unproved:
        warnings.warn(
            f"probability=True: {unproved} of {len(tests)} fits without some rows stopped before their gap was proved; "
            "raise max_iter, max_time or tol",
            ConvergenceWarning,
            stacklevel=3,
        )
    z = np.asarray(operator.matvec(clf.coef_[0])) + clf.trained_intercept_
    return scores, there[seen[there]], center_of(z, weight, risk)


def _fold_classifier(clf: Any, operator: Operator, positive: AnyArray, weight: FloatArray | None) -> Any:
    """Return a classifier that trains as `clf` has, with the cost that it has chosen."""
    # "train", not "none": stamp chooses among starts by the cut.
    own = clone(clf).set_params(
        probability=False, cut="none" if clf.cut == "none" else "train", warm_start=False, verbose=0
    )
    options = {name: value for name, value in clf._options().items() if name != "checkpoint"}
    # What "auto" took for all rows is named: a fold of fewer rows might take another.
    own.set_params(risk=clf.risk_, solver=clf.solver_)
    if issubclass(get_solver(clf.solver_), CostMethod):
        sums = [
            float(side.sum() if weight is None else np.asarray(weight)[side].sum()) for side in (positive, ~positive)
        ]
        of_positive, of_negative = class_weights(clf.class_weight, clf.classes_, *sums)
        low, high = clf.classes_.tolist()
        measure = get_measure(clf.measure, clf.measure_params)
        solver = choose(measure, clf.risk_, "auto", operator.shape)[1]
        options = {name: value for name, value in options.items() if name in solver.options() or name == "device"}
        own.set_params(solver=solver.name, class_weight={low: of_negative, high: of_positive * clf.cost_})
    return own.set_params(solver_params=options or None)
