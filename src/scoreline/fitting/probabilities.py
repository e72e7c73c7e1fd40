"""Probabilities: a sigmoid of the scores, learnt on held-out rows."""

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils.validation import check_is_fitted

from scoreline.features.fitted import with_features
from scoreline.fitting.checks import class_totals, class_weights
from scoreline.fitting.penalty import names_of_columns
from scoreline.fitting.plan import Request, Shape, plan
from scoreline.fitting.rows import TrainingRows
from scoreline.fitting.sigmoid import Sigmoid, fit_robust_sigmoid, gain_over_constant
from scoreline.fitting.threshold import ScoredRows
from scoreline.measures import get_measure
from scoreline.operators import Operator
from scoreline.risks.base import Risk
from scoreline.runtime.messages import warn_user
from scoreline.runtime.types import AnyArray, FloatArray
from scoreline.solvers.common.cost_method import CostMethod
from scoreline.solvers.registry import get_solver

FOLDS = 5


def has_probabilities(estimator: Any) -> None:
    """Raise unless the classifier was asked for probabilities."""
    if not estimator.probability:
        raise AttributeError(
            "predict_proba needs MeasureClassifier(probability=True): scores are not probabilities, and calibrating them needs "
            "the scores of held-out rows"
        )


def sigmoid_of(clf: Any) -> Sigmoid:
    """Return the sigmoid of a fitted classifier."""
    check_is_fitted(clf, "coef_")
    if not hasattr(clf, "calibration_"):
        raise NotFittedError(
            "trained without probability=True, or interrupted before probabilities were learnt: fit it again"
        )
    slope, offset = clf.calibration_.tolist()
    low, high = getattr(clf, "calibration_range_", np.array([-np.inf, np.inf])).tolist()  # older models have none
    return Sigmoid(slope, offset, True, low, high)


def calibration(rows: ScoredRows, shift: float) -> dict[str, Any]:
    """Return the attributes of the sigmoid that scores of held-out rows give; these lie by `shift` above X coef_."""
    arrays = np.asarray(rows.sign), np.asarray(rows.scores), None if rows.weight is None else np.asarray(rows.weight)
    found = fit_robust_sigmoid(*arrays)
    gain, error, constant = gain_over_constant(*arrays, found)
    if not found.ranks:
        warn_user(
            "probability=True: on held-out rows, higher scores were not more often positive; all probabilities are near "
            "the share of positives. Choose another alpha or other features."
        )
    elif gain <= error:
        warn_user(
            "probability=True: on held-out rows the probabilities are not clearly better than the share of positives for "
            f"every row (log loss {constant - gain:.4g} against {constant:.4g}, standard error of the difference "
            f"{error:.2g}). Do not rely on them: use scaling='robust' or 'quantile' for heavy tails, choose another "
            "alpha, or train on more rows."
        )
    return {
        "calibration_": np.array([found.slope, found.offset + found.slope * shift]),
        "calibration_range_": np.array([found.low - shift, found.high - shift]),
        "calibration_gain_": gain,
    }


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
    clf: Any, rows: TrainingRows, y: Any, risk: Risk, tests: Sequence[AnyArray] | None = None
) -> tuple[ScoredRows, float]:
    """Return a score of every row from a fit without it, and the center of the model's own scores.

    Five fits, each without a fifth of the rows, or one for each list of rows in `tests`. The scores of each have their own
    center taken off (`center_of`).

    Held-out rows have weight 0, which every storage supports. Fits start at zero, because a fit that starts at the model of all
    rows and ends within 1 % of the optimum would still depend on the held-out rows. The cost of a positive is that of the
    model, because a fold with another cost would have other scores.
    """
    from sklearn.model_selection import StratifiedKFold

    operator, positive = rows.operator, np.asarray(rows.sign) > 0
    weight = None if rows.copies is None else np.asarray(rows.copies, dtype=np.float64)
    counted = np.arange(len(positive)) if weight is None else np.flatnonzero(weight > 0.0)
    if tests is None:
        least = int(min(np.count_nonzero(positive[counted]), np.count_nonzero(~positive[counted])))
        seed = clf.random_state if isinstance(clf.random_state, (int, np.integer)) else 0
        folds = StratifiedKFold(min(FOLDS, least), shuffle=True, random_state=seed)
        tests = [counted[test] for _, test in folds.split(np.zeros(len(counted)), positive[counted])]
    own = _fold_classifier(clf, operator, np.asarray(rows.sign), weight)
    scores, unproved, scored = np.zeros(len(positive)), 0, np.zeros(len(positive), dtype=bool)
    for test in tests:
        training = np.ones(len(positive)) if weight is None else weight.copy()
        training[test] = 0.0
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # told once, below
            costs = dict.fromkeys(("cost_fp", "cost_fn"), rows.costs)
            own.fit(operator, y, operator.aligned(training, "sample_weight"), rows.base_scores, **costs)
        z = np.asarray(rows.full_scores(with_features(operator, own.feature_map_).matvec(own.coef_[0])))
        z = z + own.trained_intercept_
        scores[test] = z[test] - center_of(z, training, risk)
        scored[test] = True
        unproved += own.gap_ is not None and own.status_ in ("max_iter", "max_time", "stalled")
    if unproved:
        warn_user(
            f"probability=True: {unproved} of {len(tests)} fits without some rows stopped before they converged; "
            "raise max_iter, max_time or tol",
            ConvergenceWarning,
        )
    z = np.asarray(rows.full_scores(with_features(operator, clf.feature_map_).matvec(clf.coef_[0])))
    z = z + clf.trained_intercept_
    counted = counted[scored[counted]]
    found = ScoredRows(np.asarray(rows.sign)[counted], scores[counted], None if weight is None else weight[counted])
    return found, center_of(z, rows.copies, risk)


def _fold_classifier(clf: Any, operator: Operator, sign: AnyArray, weight: FloatArray | None) -> Any:
    """Return a classifier that trains as `clf` has, with the cost that it has chosen."""
    # "train", not "none": stamp chooses among starts by the threshold.
    own = clone(clf).set_params(
        probability=False, threshold="none" if clf.threshold == "none" else "train", warm_start=False, verbose=0
    )
    options = {name: value for name, value in (clf.solver_params or {}).items() if name != "checkpoint"}
    # What "auto" took for all rows is named: a fold of fewer rows might take another.
    own.set_params(risk=clf.risk_, solver=clf.solver_)
    own._column_names = names_of_columns(clf)
    if issubclass(get_solver(clf.solver_), CostMethod):
        of_positive, of_negative = class_weights(clf.class_weight, clf.classes_, *class_totals(sign, weight))
        low, high = clf.classes_.tolist()
        measure = get_measure(clf.measure, clf.measure_params)
        solver = plan(Request(clf.risk_), measure, Shape(*operator.shape)).solver
        options = {name: value for name, value in options.items() if name in solver.options() or name == "device"}
        own.set_params(solver=solver.name, class_weight={low: of_negative, high: of_positive * clf.cost_})
    return own.set_params(solver_params=options or None)
