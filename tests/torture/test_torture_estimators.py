"""Both estimators with every measure and option on data that break numerical code: a model that can be used, or a clear error.

coef_ and intercept_ are finite, the bound lies below the objective, the objective is J of the coefficients by an exact
evaluation, scores are finite or refused, probabilities lie in [0, 1], and no RuntimeWarning escapes.
"""

import warnings
from contextlib import suppress

import numpy as np
import pytest
import scipy.sparse as sp
from exact_objectives import exact_features, exact_risk, fraction
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning
from torture_data import as_float64, problems, slowly_drawn

from cases import for_each
from scoreline import MeasureClassifier, MeasureClassifierCV
from scoreline.fitting.checks import check_weights
from scoreline.measures import get_measure
from scoreline.measures.registry import all_measures
from scoreline.operators import as_operator
from scoreline.risks.registry import all_risks, get_risk
from scoreline.solvers.registry import all_solvers

EPS = float(np.finfo(float).eps)
MEASURES = sorted(name for name in all_measures())
# An error for users says what to do about it, or what is expected.
HINTS = (
    "scal", "expected", "Multiply", "alpha", "use ", "Use ", "give", "Give", "need", "must", "lower", "raise", "leave", "takes",
)  # fmt: skip


class RefusedError(Exception):
    """A clear error of the library."""


def clearly(action, *arguments):
    """Return what the action returns; its errors must be of the kinds that users can act on, and say how."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", UserWarning)
        warnings.simplefilter("error", RuntimeWarning)
        try:
            return action(*arguments)
        except (ValueError, TypeError, OverflowError) as error:
            words = str(error)
            if len(words) < 30 or not any(hint in words for hint in HINTS):
                raise AssertionError(f"not a clear error: {type(error).__name__}: {words}") from error
            raise RefusedError(words) from error


def exact_scores(X, coef, intercept):
    rows, coef = exact_features(None, as_float64(X)), [fraction(v) for v in coef]
    return [sum((x * c for x, c in zip(row, coef, strict=True) if x and c), fraction(intercept)) for row in rows]


def check_certificate(clf, X, y, weight):
    """Objective, bound and gap of a certified fit, J by exact scores of the coefficients."""
    assert np.isfinite(clf.objective_)
    assert clf.lower_bound_ is None or clf.lower_bound_ <= clf.objective_
    assert clf.gap_ is None or clf.gap_ == clf.objective_ - clf.lower_bound_
    _, training = check_weights(weight, clf.class_weight, clf.classes_, y)
    if clf.cost_ != 1.0:
        training = np.where(y > 0, clf.cost_, 1.0) * (1.0 if training is None else training)
    risk = get_risk(clf.risk_, get_measure(clf.measure, clf.measure_params))
    z = exact_scores(X, clf.coef_[0], clf.trained_intercept_)
    value = fraction(clf._penalty) + exact_risk(risk, z, y, training)
    reach = abs(fraction(clf.trained_intercept_)) + sum(
        abs(fraction(c)) * fraction(m) for c, m in zip(clf.coef_[0], np.abs(as_float64(X)).max(axis=0), strict=True)
    )
    steep = 2 * (1 + 2 * reach) if "squared" in risk.name else 4
    # Scores carry roundings of their terms (of scaled and centred ones twice), which the slope of the risk magnifies.
    allowed = fraction(8 * EPS) * (len(y) + max(X.shape)) * (fraction(clf.objective_) + steep * (1 + reach))
    assert abs(fraction(clf.objective_) - value) <= allowed + fraction(1e-290), "objective_ is not J of coef_"


def check_model(clf, case):
    """What every fitted model promises."""
    assert np.isfinite(clf.coef_).all()
    assert np.isfinite(clf.intercept_).all()
    if clf.objective_ is not None:
        X = case.X if clf.column_map_ is None else clf.column_map_.transform(as_operator(case.X)._block(0, len(case.y)))
        check_certificate(clf, X, case.y, case.weight)
    try:
        decision = clearly(clf.decision_function, case.X)
        assert np.isfinite(decision).all()
        assert set(clf.predict(case.X)) <= set(clf.classes_)
    except RefusedError:
        return
    low, high = get_measure(clf.measure, clf.measure_params).range
    with suppress(RefusedError):  # weights of two classes whose counts floats cannot hold together
        assert low - 1e-12 <= clearly(clf.score, case.X, case.y, case.weight) <= high + 1e-12
    if getattr(clf, "probability", False):
        chances = clf.predict_proba(case.X)
        assert ((chances >= 0.0) & (chances <= 1.0)).all()
        assert np.allclose(chances.sum(axis=1), 1.0, rtol=0, atol=4 * EPS)


@st.composite
def settings_of(draw, name):
    """Draw parameters of MeasureClassifier for a measure, most of which fit together."""
    measure = get_measure(name)
    risk = draw(st.sampled_from(["auto", "auto", *measure.risks]))
    fitting = [s for s, kind in all_solvers().items() if kind.trains(measure)]
    if risk != "auto":
        fitting = [s for s in fitting if all_solvers()[s].serves(get_risk(risk, measure))]
    elif not draw(st.booleans()):
        fitting = []
    return {
        "measure": name,
        "risk": risk,
        "solver": draw(st.sampled_from(["auto", *fitting])),
        "scaling": draw(st.sampled_from([None, "maxabs", "standard", "robust", "quantile"])),
        "threshold": draw(st.sampled_from(["auto", "auto", "train", "holdout", "none"])),
        "fit_intercept": draw(st.booleans()),
        "intercept_scaling": draw(st.sampled_from([1.0, 1.0, 1e-3, 1e6, 1e50])),
        "class_weight": draw(st.sampled_from([None, None, "balanced", {1: 3.0, -1: 0.5}, {1: 1e300, -1: 1e-300}])),
        "probability": draw(st.sampled_from([False, False, True])),
        "warm_start": draw(st.booleans()),
        "tol": draw(st.sampled_from([1e-2, 1e-8])),
        "max_iter": draw(st.sampled_from([3, 40])),
        "random_state": 0,
    }


@for_each("name", MEASURES)
@slowly_drawn(50)
@given(data=st.data(), case=problems(max_rows=12, max_columns=4))
def test_a_fit_is_sound_or_refused(name, data, case):
    clf = MeasureClassifier(alpha=case.alpha, **data.draw(settings_of(name)))
    try:
        clearly(clf.fit, case.X, case.y, case.weight)
    except RefusedError:
        assert not hasattr(clf, "coef_"), "a fit that failed must leave nothing behind"
        return
    check_model(clf, case)
    if clf.warm_start:
        try:
            clearly(clf.fit, case.X, case.y, case.weight)
        except RefusedError:
            return
        check_model(clf, case)


STREAMED = {
    name: [
        m
        for m in MEASURES
        if solver.trains(get_measure(m)) and any(solver.serves(all_risks()[r]) for r in get_measure(m).risks)
    ]
    for name, solver in all_solvers().items()
    if solver.streams
}


@for_each("solver", list(STREAMED))
@slowly_drawn(100)
@given(data=st.data(), case=problems(max_rows=12, max_columns=4), blocks=st.integers(1, 4))
def test_a_stream_is_sound_or_refused(solver, data, case, blocks):
    measure = data.draw(st.sampled_from(STREAMED[solver]))
    clf = MeasureClassifier(measure, solver=solver, alpha=case.alpha, random_state=0)
    X = case.X.tocsr() if sp.issparse(case.X) else case.X
    for rows in np.array_split(np.arange(len(case.y)), blocks):
        if len(rows):
            weight = None if case.weight is None else case.weight[rows]
            before = None if not hasattr(clf, "coef_") else clf.coef_.copy()
            try:
                clearly(lambda r=rows, s=weight: clf.partial_fit(X[r], case.y[r], classes=[-1, 1], sample_weight=s))
            except RefusedError:
                assert before is None or np.array_equal(clf.coef_, before), "a block that failed must change nothing"
            if hasattr(clf, "coef_"):
                assert np.isfinite(clf.coef_).all()
                assert np.isfinite(clf.intercept_).all()


@slowly_drawn(200)
@given(
    st.sampled_from(MEASURES),
    problems(max_rows=24, max_columns=3),
    st.sampled_from([None, "maxabs", "standard"]),
    st.booleans(),
    st.booleans(),
)
def test_a_search_is_sound_or_refused(name, case, scaling, probability, weighted):
    clf = MeasureClassifierCV(
        name, alphas=[1.0, 1e-3], cv=2, scaling=scaling, probability=probability, max_iter=20, random_state=0
    )
    weight = case.weight if weighted else None
    try:
        clearly(clf.fit, case.X, case.y, weight)
    except RefusedError:
        assert not hasattr(clf, "coef_")
        return
    assert np.isfinite(clf.coef_).all()
    assert np.isfinite(clf.intercept_).all()
    assert clf.alpha_ in (1.0, 1e-3)
    try:
        assert np.isfinite(clearly(clf.decision_function, case.X)).all()
    except RefusedError:
        return
    if probability:
        chances = clf.predict_proba(case.X)
        assert ((chances >= 0.0) & (chances <= 1.0)).all()


@pytest.mark.slow
@for_each("measure", ["roc_auc", "f1", "prbep", "average_precision", "partial_roc_auc", "gmean"])
def test_one_positive_among_a_million(measure):
    """The largest imbalance that a million rows have: a proof, finite coefficients, and the positive found if it is far out."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1_000_000, 3))
    y = np.zeros(len(X), dtype=int)
    X[777], y[777] = [8.0, -8.0, 0.0], 1
    clf = MeasureClassifier(measure, alpha=1e-4, tol=1e-2, max_iter=60)
    clearly(clf.fit, X, y)
    assert np.isfinite(clf.coef_).all()
    assert clf.lower_bound_ <= clf.objective_
    assert clf.objective_ == pytest.approx(clf.objective(X, y), rel=1e-9)
    decision = clf.decision_function(X)
    assert np.isfinite(decision).all()
    if clf.status_ == "converged" and np.ptp(decision) > 0.0:
        assert decision[777] == decision.max()


@for_each("measure", ["accuracy", "roc_auc", "balanced_accuracy"])
def test_moments_of_one_row_per_class(measure):
    """Without any spread the direction was divided by 1e-300 before it was brought to length 1: an overflow."""
    X, y = np.array([[0.12573022, 0.64042265], [-0.13210486, 0.10490012]]), np.array([-1, 1])
    clf = MeasureClassifier(measure, solver="moments")
    clearly(clf.fit, X, y)
    assert np.isfinite(clf.coef_).all()
    assert clf.decision_function(X)[1] > clf.decision_function(X)[0]


def test_folds_that_a_class_is_too_small_for():
    """scikit-learn's words named neither the argument nor the repair."""
    with pytest.raises(ValueError, match=r"cv=3 cannot split 4 rows, 2 of them of the rarer class: .* Use fewer folds"):
        MeasureClassifierCV(cv=3).fit(np.arange(4.0)[:, None], [0, 0, 1, 1])


def test_class_weights_at_the_ends_of_floats():
    """Their product with sample weights overflowed (a RuntimeWarning, then weights of infinity); only ratios matter."""
    rng = np.random.default_rng(0)
    X, y, weight = rng.standard_normal((30, 2)), np.arange(30) % 2, rng.uniform(1.0, 1e20, 30)
    plain = MeasureClassifier("f1", solver="plugin", class_weight={0: 0.5, 1: 1.0}).fit(X, y, weight)
    huge = MeasureClassifier("f1", solver="plugin", class_weight={0: 2.0**999, 1: 2.0**1000})
    clearly(huge.fit, X, y, weight)
    assert np.array_equal(huge.coef_, plain.coef_)
    with pytest.raises(ValueError, match=r"class_weight=.* use weights that differ less"):
        MeasureClassifier("f1", class_weight={0: 1e-300, 1: 1e300}).fit(X, y)


def test_a_fold_that_fails_leaves_no_half_of_a_model():
    """The model was set and its probabilities were not, where only a fold without some rows had weights too far apart."""
    X, y = np.arange(12.0)[:, None], np.arange(12) % 2
    weight = np.where(y > 0, 1e-150, 1.0)
    weight[1] = 1.0  # without this row nothing is left of its class
    clf = MeasureClassifier("accuracy", risk="hinge", probability=True)
    with pytest.raises(ValueError, match="differ less"):
        clf.fit(X, y, weight)
    assert not hasattr(clf, "coef_")
    clf.fit(X, y)
    before = clf.predict_proba(X)
    with pytest.raises(ValueError, match="differ less"):
        clf.fit(X, y, weight)
    assert np.array_equal(clf.predict_proba(X), before)


@for_each("scale", [1e-155, 1e-100, 1e100, 1e154])
@for_each("measure", ["accuracy", "roc_auc"])
def test_moments_of_columns_whose_fourth_powers_leave_the_range_of_floats(scale, measure):
    """They were RuntimeWarnings, and a ridge of 0 or infinity."""
    rng = np.random.default_rng(0)
    X, y = scale * rng.standard_normal((20, 2)), np.arange(20) % 2
    with pytest.raises(RefusedError, match="squares of X leave the range of floats"):
        clearly(MeasureClassifier(measure, solver="moments").fit, X, y)
    clf = MeasureClassifier(measure, solver="moments", scaling="maxabs")
    if not 1e-140 < scale < 1e140:  # their squares have lost digits already
        with pytest.raises(RefusedError, match=r"range of floats|cannot scale column"):
            clearly(clf.fit, X, y)
        return
    clearly(clf.fit, X, y)
    assert np.isfinite(clf.coef_).all()
