"""MeasureClassifier: what is fitted, the threshold, weights, scaling, starts, threads, labels."""

import logging
import pickle
import subprocess
import sys
import warnings
from itertools import product

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator, aslinearoperator
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import accuracy_score, roc_auc_score
from sklearn.preprocessing import MaxAbsScaler, StandardScaler

from cases import fewer, for_each
from scoreline import MeasureClassifier
from scoreline.measures import all_measures, get_measure
from scoreline.operators import RandomFourierFeatures, as_operator
from scoreline.risks.registry import all_risks
from tiers import tiered

MEASURES = ["roc_auc", "accuracy"]
# measure, risk: every kind of risk, smooth and not, with and without intercept
KINDS = [("roc_auc", "roc_area"), ("accuracy", "hinge"), ("accuracy", "logistic"), ("accuracy", "squared_hinge")]


def make_data(n=120, p=5, seed=0, rounded=False):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) * np.arange(1, p + 1) + 0.5
    y = (X @ rng.standard_normal(p) + 3 * rng.standard_normal(n) > 4).astype(int)
    return (np.round(X) if rounded else X), y


@pytest.fixture(scope="module")
def data():
    return make_data()


def quiet_fit(clf, *args, **kwargs):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return clf.fit(*args, **kwargs)


# ---- what a fit leaves behind


@for_each(("measure", "risk"), KINDS)
def test_fitted_attributes(data, measure, risk):
    X, y = data
    clf = MeasureClassifier(measure=measure, risk=risk, tol=1e-3).fit(X, y)
    assert clf.coef_.shape == (1, X.shape[1])
    assert clf.intercept_.shape == (1,)
    assert isinstance(clf.trained_intercept_, float)
    assert clf.classes_.tolist() == [0, 1]
    assert clf.n_features_in_ == X.shape[1]
    assert not hasattr(clf, "feature_names_in_")
    assert clf.risk_ == risk
    expected = {"curved": "newton", "smooth": "lbfgs"}  # up to 1000 features
    traits = [solver for trait, solver in expected.items() if getattr(all_risks()[risk], trait)]
    assert clf.solver_ == [*traits, "smoothed"][0]
    assert clf.status_ == "converged"
    assert clf.gap_ == clf.objective_ - clf.lower_bound_
    assert 0 <= clf.gap_ <= 1e-3 * max(clf.lower_bound_, 1e-3)
    assert isinstance(clf.n_passes_, float)
    assert clf.n_passes_ >= 2 * clf.n_iter_


def test_auto_takes_the_risk_made_for_the_measure(data):
    assert MeasureClassifier().fit(*data).risk_ == "roc_area"
    assert MeasureClassifier(measure="accuracy").fit(*data).risk_ == "hinge"
    assert MeasureClassifier(solver="lbfgs").fit(*data).risk_ == "roc_area_squared"
    assert MeasureClassifier(measure="prbep").fit(*data).risk_ == "prbep"
    assert MeasureClassifier(solver="lbfgs", measure="accuracy").fit(*data).risk_ == "logistic"
    assert MeasureClassifier(risk="squared_hinge").fit(*data).solver_ == "newton"
    assert MeasureClassifier(measure=get_measure("accuracy")).fit(*data).risk_ == "hinge"


@for_each(("measure", "risk"), KINDS)
def test_history(data, measure, risk):
    clf = MeasureClassifier(measure=measure, risk=risk, tol=1e-4, threshold="train").fit(*data)
    assert set(clf.history_) == {"iteration", "seconds", "passes", "objective", "lower_bound"}
    assert {len(column) for column in clf.history_.values()} == {clf.n_iter_ + 1}
    assert clf.history_["iteration"] == list(range(clf.n_iter_ + 1))
    # The last row is the solution, before its scores were computed afresh: rounding.
    assert clf.history_["objective"][-1] == pytest.approx(clf.objective_, rel=1e-12)
    assert clf.history_["lower_bound"][-1] == clf.lower_bound_
    assert clf.history_["passes"][-1] == clf.n_passes_ - 1
    assert clf.history_["objective"][-1] - clf.history_["lower_bound"][-1] == pytest.approx(clf.gap_, abs=1e-14)


@for_each(("measure", "risk"), KINDS)
@for_each("scaling", [None, "maxabs", "standard"])
def test_the_model_has_the_objective_it_reports(data, measure, risk, scaling):
    """J from coef_, trained_intercept_ and the definition of the risk, in original units."""
    X, y = data
    weight = np.random.default_rng(1).uniform(0.1, 3, len(y))
    clf = MeasureClassifier(measure=measure, risk=risk, scaling=scaling).fit(X, y, weight)
    size = {None: np.ones(X.shape[1]), "maxabs": np.abs(X).max(axis=0)}.get(scaling)
    center = np.zeros(X.shape[1])
    if scaling == "standard":
        center = np.average(X, axis=0, weights=weight)
        size = np.sqrt(np.average((X - center) ** 2, axis=0, weights=weight))
    w = clf.coef_[0] * size
    z = X @ clf.coef_[0] + clf.trained_intercept_
    value = all_risks()[risk].reference(z, np.where(y, 1, -1), weight)[0]
    # A few hundred sums: rounding.
    assert 0.5 * clf.alpha * (w @ w) + value == pytest.approx(clf.objective_, rel=1e-10)
    assert clf.objective(X, y, weight) == pytest.approx(clf.objective_, rel=1e-11)


@for_each("scaling", [None, "maxabs", "standard"])
@for_each("measure", MEASURES)
@for_each("class_weight", [None, "balanced", {0: 1.0, 1: 3.0}])
def test_objective_on_the_training_data_is_objective_(data, measure, scaling, class_weight):
    X, y = data
    clf = MeasureClassifier(measure=measure, scaling=scaling, class_weight=class_weight).fit(X, y)
    assert clf.objective(X, y) == pytest.approx(clf.objective_, rel=1e-11)  # scores by another route: rounding
    assert clf.objective(X[:60], y[:60]) != pytest.approx(clf.objective_, rel=1e-3)


def test_n_passes_counts_the_column_statistics_as_documented(data):
    """`n_passes_`: "Products with X (and its column statistics, if scaled)"."""
    X, y = data
    for scaling in (None, "maxabs", "standard"):
        operator = as_operator(X)
        clf = MeasureClassifier(measure="accuracy", scaling=scaling).fit(operator, y)
        assert clf.n_passes_ == operator.n_passes, scaling


def test_refitting_forgets_the_first_fit(data):
    X, y = data
    fresh = MeasureClassifier(measure="accuracy").fit(X, y)
    again = MeasureClassifier(measure="accuracy").fit(X[:, :2], 1 - y).fit(X, y)
    assert np.array_equal(again.coef_, fresh.coef_)
    assert again.n_iter_ == fresh.n_iter_
    assert again.history_["objective"] == fresh.history_["objective"]


def test_fit_does_not_change_its_arguments(data):
    X, y = data
    weight = np.linspace(0.5, 2, len(y))
    copies = X.copy(), y.copy(), weight.copy()
    params = {"callbacks": []}
    clf = MeasureClassifier(solver_params=params, scaling="standard", class_weight="balanced").fit(X, y, weight)
    for now, before in zip((X, y, weight), copies, strict=True):
        assert np.array_equal(now, before)
    assert clf.solver_params is params
    assert params == {"callbacks": []}


# ---- prediction and score


@for_each(("measure", "risk"), KINDS)
def test_decision_function_and_predict(data, measure, risk):
    X, y = data
    clf = MeasureClassifier(measure=measure, risk=risk).fit(X, y)
    decision = clf.decision_function(X)
    np.testing.assert_allclose(decision, X @ clf.coef_[0] + clf.intercept_[0], rtol=1e-12, atol=1e-12)  # rounding
    assert np.array_equal(clf.predict(X), clf.classes_[(decision > 0).astype(int)])
    assert decision.dtype == np.float64


@for_each("weighted", [False, True])
def test_score_is_the_measure(data, weighted):
    X, y = data
    test, truth = make_data(seed=5)
    weight = np.random.default_rng(0).uniform(0, 2, len(truth)) if weighted else None
    ranking = MeasureClassifier().fit(X, y)
    expected = roc_auc_score(truth, ranking.decision_function(test), sample_weight=weight)
    assert ranking.score(test, truth, weight) == pytest.approx(expected, abs=1e-12)  # sums of 120 weights
    counting = MeasureClassifier(measure="accuracy").fit(X, y)
    expected = accuracy_score(truth, counting.predict(test), sample_weight=weight)
    assert counting.score(test, truth, sample_weight=weight) == pytest.approx(expected, abs=1e-13)


CLASSES = [[0, 1], [-1, 1], [1, 2], [False, True], ["no", "yes"], [0.0, 1.0], [-7, 300]]


@for_each("classes, kind", tiered(product(CLASSES, ["array", "list", "series", "object"]), strength=1))
def test_labels_of_every_kind(data, classes, kind):
    X, y = data
    reference = MeasureClassifier(measure="accuracy").fit(X, y)
    labels = np.array(classes)[y]
    given = {"array": labels, "list": labels.tolist(), "series": pd.Series(labels), "object": labels.astype(object)}[
        kind
    ]
    clf = MeasureClassifier(measure="accuracy").fit(X, given)
    assert clf.classes_.tolist() == classes
    assert np.array_equal(clf.coef_, reference.coef_)
    assert np.array_equal(clf.intercept_, reference.intercept_)
    predictions = clf.predict(X)
    assert set(predictions.tolist()) <= set(classes)
    assert np.array_equal(predictions == classes[1], reference.predict(X) == 1)
    assert clf.score(X, given) == reference.score(X, y)
    assert clf.objective(X, given) == pytest.approx(clf.objective_, rel=1e-11)  # rounding


def test_the_second_class_in_sorted_order_is_positive(data):
    X, y = data
    clf = MeasureClassifier().fit(X, np.where(y, "a", "b"))
    assert clf.classes_.tolist() == ["a", "b"]
    np.testing.assert_allclose(clf.coef_, -MeasureClassifier().fit(X, y).coef_, rtol=1e-6)  # mirrored: same iterations


def test_float32(data):
    X, y = data
    single, double = X.astype(np.float32), X.astype(np.float32).astype(float)
    a, b = (MeasureClassifier(measure="accuracy").fit(Z, y) for Z in (single, double))
    assert a.coef_.dtype == np.float64
    assert a.decision_function(single).dtype == np.float64
    np.testing.assert_allclose(
        a.coef_, b.coef_, rtol=1e-6
    )  # the same numbers, summed in another order over all iterations


# ---- the threshold


def brute_force_best(y, z, weight, value):
    best = -np.inf
    for threshold in [-np.inf, *np.unique(z)]:
        predicted = z > threshold
        counts = [weight[(y == t) & (predicted == q)].sum() for t, q in ((1, 1), (0, 1), (1, 0), (0, 0))]
        best = max(best, value(*counts))
    return best


def balanced(tp, fp, fn, tn):
    return 0.5 * (tp / (tp + fn) + tn / (tn + fp))


def accuracy(tp, fp, fn, tn):
    return (tp + tn) / (tp + fp + fn + tn)


@for_each(
    "measure, weighted, rounded, scaling, threshold",
    tiered(product(MEASURES, [False, True], [False, True], [None, "maxabs", "standard"], ["auto", "train"])),
)
def test_the_threshold_is_the_best_on_the_training_data(measure, weighted, rounded, scaling, threshold):
    for seed in range(3):
        X, y = make_data(n=40, p=3, seed=seed, rounded=rounded)
        weight = np.random.default_rng(seed).integers(1, 4, 40).astype(float) if weighted else np.ones(40)
        risk = (
            "hinge" if measure == "accuracy" else "auto"
        )  # the logistic loss takes its threshold from leave-one-out scores
        clf = MeasureClassifier(measure=measure, risk=risk, threshold=threshold, scaling=scaling, tol=0.1)
        clf.fit(X, y, weight if weighted else None)
        value = accuracy if measure == "accuracy" else balanced
        best = brute_force_best(y, X @ clf.coef_[0], weight, value)
        predicted = clf.predict(X)
        counts = [weight[(y == t) & (predicted == q)].sum() for t, q in ((1, 1), (0, 1), (1, 0), (0, 0))]
        assert value(*counts) == pytest.approx(best, abs=1e-14)  # counts are integers


def test_class_weight_only_moves_the_threshold_of_a_ranking_measure(data):
    X, y = data
    plain = MeasureClassifier().fit(X, y)
    for ratio in (0.2, 8.0):
        clf = MeasureClassifier(class_weight={0: 1.0, 1: ratio}).fit(X, y)
        np.testing.assert_allclose(clf.coef_, plain.coef_, rtol=1e-6)  # weights cancel; pair sums round differently
        weight = np.where(y, ratio, 1.0)
        best = brute_force_best(y, X @ clf.coef_[0], weight, accuracy)
        assert accuracy_score(y, clf.predict(X), sample_weight=weight) == pytest.approx(best, abs=1e-14)


@for_each(("measure", "risk"), KINDS)
def test_threshold_none_keeps_the_trained_intercept(data, measure, risk):
    X, y = data
    clf = MeasureClassifier(measure=measure, risk=risk, threshold="none").fit(X, y)
    with_threshold = MeasureClassifier(measure=measure, risk=risk).fit(X, y)
    assert clf.intercept_[0] == clf.trained_intercept_ == with_threshold.trained_intercept_
    assert np.array_equal(clf.coef_, with_threshold.coef_)
    assert (clf.trained_intercept_ == 0.0) == (risk == "roc_area")


# ---- the intercept


@for_each("risk", ["hinge", "logistic", "squared_hinge"])
@for_each("value", [0.5, 1.0, 10.0])
def test_a_penalised_intercept_is_the_coefficient_of_a_constant(data, risk, value):
    X, y = data
    options = {"measure": "accuracy", "risk": risk, "solver": "bundle", "tol": 1e-9, "max_iter": 10}
    clf = quiet_fit(MeasureClassifier(intercept_scaling=value, **options), X, y)
    wide = np.column_stack([X, np.full(len(y), value)])
    other = quiet_fit(MeasureClassifier(fit_intercept=False, **options), wide, y)
    # The same problem, its sums in another order over ten iterations.
    np.testing.assert_allclose(clf.coef_[0], other.coef_[0, :-1], rtol=1e-6)
    assert clf.trained_intercept_ == pytest.approx(value * other.coef_[0, -1], rel=1e-6)
    assert clf.objective_ == pytest.approx(other.objective_, rel=1e-9)


def test_the_free_intercept_follows_the_features_wherever_they_lie(data):
    X, y = data
    near, far = (
        MeasureClassifier(measure="accuracy", risk="logistic", alpha=1.0, tol=1e-9).fit(Z, y) for Z in (X, X + 100.0)
    )
    # The same minimum; tol is what the objectives may differ by, and scores of 100 are rounded.
    assert far.objective_ == pytest.approx(near.objective_, rel=2e-9)
    np.testing.assert_allclose(far.coef_, near.coef_, rtol=1e-3)
    for clf in (near, far):
        assert clf.objective_ - clf.lower_bound_ <= 1e-9 * clf.lower_bound_


def test_a_larger_intercept_scaling_penalises_the_intercept_less(data):
    X, y = data
    X = X + 100.0  # far from the origin: a large intercept is wanted
    values = [
        MeasureClassifier(measure="accuracy", solver="accelerated", risk="logistic", alpha=1.0, intercept_scaling=v)
        .fit(X, y).objective_ for v in (1.0, 100.0)
    ]  # fmt: skip
    assert values[1] < 0.995 * values[0]


@for_each("risk", ["hinge", "logistic", "squared_hinge"])
def test_without_an_intercept(data, risk):
    clf = MeasureClassifier(measure="accuracy", risk=risk, fit_intercept=False, threshold="none").fit(*data)
    assert clf.trained_intercept_ == 0.0
    assert clf.intercept_.tolist() == [0.0]
    assert clf.coef_.shape == (1, 5)


# ---- weights


@for_each("scaling", [None, "standard", "maxabs"])
@for_each(("measure", "risk"), KINDS)
def test_weights_are_repeated_rows(measure, risk, scaling):
    X, y = make_data(seed=3)
    repeats = np.random.default_rng(0).integers(0, 4, len(y))
    clf = MeasureClassifier(measure=measure, risk=risk, scaling=scaling, tol=1e-3, alpha=1e-2)
    weighted = clone(clf).fit(X, y, sample_weight=repeats)
    repeated = clone(clf).fit(np.repeat(X, repeats, axis=0), np.repeat(y, repeats))
    assert weighted.n_iter_ == repeated.n_iter_
    # The same iterations up to rounding, magnified by all of them.
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(weighted.intercept_, repeated.intercept_, rtol=1e-6, atol=1e-6)
    assert weighted.objective_ == pytest.approx(repeated.objective_, rel=1e-9)
    assert weighted.score(X, y, repeats) == pytest.approx(
        repeated.score(np.repeat(X, repeats, axis=0), np.repeat(y, repeats)), abs=1e-12
    )


@for_each("kind, scaling, sparse", tiered(product(KINDS, [None, "standard", "maxabs"], [False, True])))
def test_weight_zero_is_absence(kind, scaling, sparse):
    measure, risk = kind
    X, y = make_data(seed=4)
    weight = np.random.default_rng(1).uniform(0.2, 2.0, len(y))
    gone = np.arange(len(y)) % 5 == 0
    weight[gone] = 0.0
    make = sp.csr_array if sparse else np.asarray
    clf = MeasureClassifier(measure=measure, risk=risk, scaling=scaling, tol=1e-3, alpha=1e-2)
    weighted = clone(clf).fit(make(X), y, sample_weight=weight)
    without = clone(clf).fit(make(X[~gone]), y[~gone], sample_weight=weight[~gone])
    np.testing.assert_allclose(weighted.coef_, without.coef_, rtol=1e-6, atol=1e-6)  # same iterations up to rounding
    np.testing.assert_allclose(weighted.intercept_, without.intercept_, rtol=1e-6, atol=1e-6)
    assert weighted.objective_ == pytest.approx(without.objective_, rel=1e-9)


def outlier_without_weight():
    """Return data, weights and a mask of rows of weight zero that would change everything if they counted."""
    X, y = make_data(seed=4)
    weight = np.random.default_rng(1).uniform(0.2, 2.0, len(y))
    gone = np.arange(len(y)) % 5 == 0
    weight[gone] = 0.0
    X[gone] *= 1000.0
    return X, y, weight, ~gone


@for_each("sparse", [False, True])
@for_each("scaling", [None, "standard", "maxabs"])
@for_each("measure", MEASURES)
def test_outliers_of_weight_zero_leave_the_problem_alone(measure, scaling, sparse):
    X, y, weight, there = outlier_without_weight()
    make = sp.csr_array if sparse else np.asarray
    clf = MeasureClassifier(measure=measure, scaling=scaling, tol=1e-5, alpha=1e-2)
    weighted = clone(clf).fit(make(X), y, sample_weight=weight)
    without = clone(clf).fit(make(X[there]), y[there], sample_weight=weight[there])
    assert abs(weighted.objective_ - without.objective_) <= weighted.gap_ + without.gap_
    assert weighted.lower_bound_ <= without.objective_
    assert without.lower_bound_ <= weighted.objective_


@for_each(("measure", "risk"), KINDS)
def test_outliers_of_weight_zero_leave_the_iterations_alone(measure, risk):
    X, y, weight, there = outlier_without_weight()
    clf = MeasureClassifier(measure=measure, risk=risk, tol=1e-3, alpha=1e-2)
    weighted = clone(clf).fit(X, y, sample_weight=weight)
    without = clone(clf).fit(X[there], y[there], sample_weight=weight[there])
    np.testing.assert_allclose(weighted.coef_, without.coef_, rtol=1e-6, atol=1e-6)  # same iterations up to rounding


@for_each(("measure", "risk"), KINDS)
def test_the_scale_of_weights_does_not_matter(data, measure, risk):
    """Neither for the fit nor for a threshold on training scores; for held-out rows a weight of 2 is a second copy."""
    X, y = data
    weight = np.random.default_rng(2).uniform(0.2, 2.0, len(y))
    clf = MeasureClassifier(measure=measure, risk=risk, threshold="train")
    for factor in (1e-6, 2.0, 1e6):
        a, b = clone(clf).fit(X, y, weight), clone(clf).fit(X, y, factor * weight)
        np.testing.assert_allclose(a.coef_, b.coef_, rtol=1e-6)  # same iterations up to rounding
        np.testing.assert_allclose(a.intercept_, b.intercept_, rtol=1e-6, atol=1e-9)
    ones, scalar, none = (clone(clf).fit(X, y, w) for w in (np.ones(len(y)), 1.0, None))
    assert np.array_equal(ones.coef_, none.coef_)
    assert np.array_equal(scalar.coef_, none.coef_)


@for_each(("measure", "risk"), KINDS)
def test_class_weights_are_sample_weights(data, measure, risk):
    X, y = data
    base = np.random.default_rng(2).uniform(0.2, 2.0, len(y))
    share = base[y == 1].sum() / base.sum()
    cases = [
        ({0: 1.0, 1: 3.0}, None, np.where(y, 3.0, 1.0)),
        ({0: 0.5, 1: 2.0}, base, base * np.where(y, 2.0, 0.5)),
        ("balanced", None, np.where(y, 1 / (2 * y.mean()), 1 / (2 * (1 - y.mean())))),
        ("balanced", base, base * np.where(y, 1 / (2 * share), 1 / (2 * (1 - share)))),
    ]
    for class_weight, sample_weight, equivalent in cases:
        clf = MeasureClassifier(measure=measure, risk=risk, threshold="train")
        a = clone(clf).set_params(class_weight=class_weight).fit(X, y, sample_weight)
        b = clone(clf).fit(X, y, equivalent)
        np.testing.assert_allclose(a.coef_, b.coef_, rtol=1e-6)  # same iterations up to rounding
        assert a.objective_ == pytest.approx(b.objective_, rel=1e-9)
        if measure == "accuracy":
            np.testing.assert_allclose(a.intercept_, b.intercept_, rtol=1e-6, atol=1e-9)


def test_class_weights_by_string_labels(data):
    X, y = data
    a = MeasureClassifier(measure="accuracy", class_weight={"no": 1, "yes": 4}).fit(X, np.where(y, "yes", "no"))
    b = MeasureClassifier(measure="accuracy", class_weight={0: 1, 1: 4}).fit(X, y)
    assert np.array_equal(a.coef_, b.coef_)


# ---- scaling


@for_each("sparse", [False, True])
@for_each(("scaling", "scaler"), [("maxabs", MaxAbsScaler()), ("standard", StandardScaler())])
@for_each(("measure", "risk"), KINDS)
def test_scaling_is_fitting_scaled_data(data, measure, risk, scaling, scaler, sparse):
    X, y = data
    X = np.column_stack([X, np.zeros(len(y)), np.full(len(y), 7.3), 1e6 * X[:, 0] ** 2])  # zero, constant, huge
    explicit = scaler.fit_transform(X)
    options = {"measure": measure, "risk": risk, "alpha": 1e-2, "tol": 1e-3}
    inside = MeasureClassifier(scaling=scaling, **options).fit(sp.csr_array(X) if sparse else X, y)
    outside = MeasureClassifier(**options).fit(explicit, y)
    assert inside.n_iter_ == outside.n_iter_
    # The same problem; products are rounded differently in every iteration.
    assert inside.objective_ == pytest.approx(outside.objective_, rel=1e-8)
    assert inside.lower_bound_ == pytest.approx(outside.lower_bound_, rel=1e-6)
    np.testing.assert_allclose(inside.decision_function(X), outside.decision_function(explicit), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(
        inside.coef_[0] * scaler.scale_, outside.coef_[0], rtol=1e-5, atol=1e-7
    )  # original units
    assert inside.coef_[0, -3] == 0.0  # the zero column
    if scaling == "standard":
        assert inside.coef_[0, -2] == 0.0  # the constant column
    assert np.isfinite(inside.coef_).all()


@for_each(
    "measure, scaling, mostly, level",
    tiered(product(MEASURES, [None, "maxabs", "standard"], [0, 1], [3.0, 0.1, 1e5, -0.7])),
)
def test_nothing_but_constant_columns(measure, scaling, mostly, level):
    X, y = np.tile([0.0, level], (20, 1)), np.where(np.arange(20) % 4 == 0, 1 - mostly, mostly)
    clf = MeasureClassifier(measure=measure, scaling=scaling).fit(X, y)
    assert np.isfinite(clf.coef_).all()
    assert clf.coef_[0, 0] == 0.0
    assert clf.status_ == "converged"
    # The best threshold of equal scores puts all rows in the larger class.
    assert clf.score(X, y) == {"roc_auc": 0.5, "accuracy": 0.75}[measure]


def test_scaling_makes_units_irrelevant(data):
    X, y = data
    units = 10.0 ** np.arange(-2, 3)
    for scaling in ("maxabs", "standard"):
        a = MeasureClassifier(measure="accuracy", scaling=scaling).fit(X, y)
        b = MeasureClassifier(measure="accuracy", scaling=scaling).fit(X * units, y)
        np.testing.assert_allclose(b.coef_ * units, a.coef_, rtol=1e-6)  # same iterations up to rounding


# ---- operators as X


@for_each("measure", MEASURES)
def test_linear_operators(data, measure):
    X, y = data
    for operator in (
        aslinearoperator(X),
        LinearOperator(X.shape, matvec=X.dot, rmatvec=X.T.dot, dtype=float),
        as_operator(X),
    ):
        plain = MeasureClassifier(
            measure=measure, solver_params={"precondition": False}
        )  # a Hessian needs blocks of rows
        clf, dense = clone(plain).fit(operator, y), clone(plain).fit(X, y)
        np.testing.assert_allclose(clf.coef_, dense.coef_, rtol=1e-6)  # same iterations up to rounding
        np.testing.assert_allclose(clf.decision_function(operator), clf.decision_function(X), rtol=1e-12, atol=1e-12)
        assert np.array_equal(clf.predict(operator), clf.predict(X))
        assert clf.score(operator, y) == clf.score(X, y)
        assert clf.objective(operator, y) == pytest.approx(clf.objective_, rel=1e-11)  # rounding
        assert clf.n_features_in_ == X.shape[1]


def test_scaling_a_bare_linear_operator_is_refused_before_the_first_pass(data):
    X, y = data
    calls = []

    def matvec(w):
        calls.append(1)
        return X @ w

    operator = LinearOperator(X.shape, matvec=matvec, rmatvec=lambda u: calls.append(1) or X.T @ u, dtype=float)
    calls.clear()
    with pytest.raises(TypeError, match="cannot do scaling='maxabs'"):
        MeasureClassifier(scaling="maxabs").fit(operator, y)
    assert calls == []


@for_each("measure", fewer(MEASURES, in_quick=["roc_auc"]))
def test_random_fourier_features(measure):
    rng = np.random.default_rng(0)
    points = rng.standard_normal((400, 2))
    y = (np.linalg.norm(points, axis=1) < 1.1).astype(int)  # a disc: no line separates it
    features = {"n_features": 200, "gamma": 1.0, "random_state": 3}
    train, test = RandomFourierFeatures(points[:300], **features), RandomFourierFeatures(points[300:], **features)
    clf = MeasureClassifier(measure=measure, random_state=0).fit(train, y[:300])
    assert clf.coef_.shape == (1, 200)
    assert clf.score(test, y[300:]) > 0.95
    assert (
        MeasureClassifier(measure=measure, random_state=0).fit(points[:300], y[:300]).score(points[300:], y[300:])
        < 0.75
    )
    explicit = np.vstack([block.data for block in train.row_blocks()])
    dense = MeasureClassifier(measure=measure, random_state=0).fit(explicit, y[:300])
    assert abs(dense.objective_ - clf.objective_) <= dense.gap_ + clf.gap_
    scaled = MeasureClassifier(measure=measure, random_state=0, scaling="standard").fit(train, y[:300])
    assert scaled.score(test, y[300:]) > 0.9
    with pytest.raises(ValueError, match="X has 50 features, but MeasureClassifier is expecting 200"):
        clf.predict(RandomFourierFeatures(points, n_features=50))


# ---- starts, threads, endings


@for_each("scaling", [None, "standard"])
@for_each(("measure", "risk"), KINDS)
def test_warm_start(data, measure, risk, scaling):
    """At 1e-3: on 120 rows a proof of 1e-4 takes most iterations from anywhere, and how many depends on last digits."""
    X, y = data
    clf = MeasureClassifier(measure=measure, risk=risk, scaling=scaling, tol=1e-3, warm_start=True).fit(X, y)
    first = clf.n_iter_
    objective = clf.objective_
    clf.fit(X, y)
    assert clf.n_iter_ < first
    assert clf.history_["objective"][0] == pytest.approx(objective, rel=1e-11)  # it starts where it ended: rounding
    assert clf.status_ == "converged"
    cold = MeasureClassifier(measure=measure, risk=risk, scaling=scaling, tol=1e-3).fit(X, y).fit(X, y)
    assert cold.n_iter_ == first
    clf.fit(X[:, :3], y)  # another number of features: from zero again
    assert clf.coef_.shape == (1, 3)
    assert clf.status_ == "converged"


@for_each(
    "measure, make", tiered(product(MEASURES, [np.asarray, np.asfortranarray, sp.csr_array, sp.csc_array]), strength=1)
)
def test_the_number_of_threads_does_not_change_a_bit(measure, make):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30000, 12))  # several chunks for every kernel
    y = X[:, 0] + rng.standard_normal(30000) > 1
    fits = [
        quiet_fit(MeasureClassifier(measure=measure, n_jobs=n, scaling="standard", max_iter=8, tol=1e-9), make(X), y)
        for n in (1, 2, None, -1)
    ]
    for other in fits[1:]:
        assert np.array_equal(other.coef_, fits[0].coef_)
        assert np.array_equal(other.intercept_, fits[0].intercept_)
        assert other.lower_bound_ == fits[0].lower_bound_


def test_not_converged_is_said_with_the_gap_and_advice(data):
    with pytest.warns(ConvergenceWarning) as caught:
        clf = MeasureClassifier(max_iter=2, tol=1e-6).fit(*data)
    assert clf.status_ == "max_iter"
    assert clf.n_iter_ == 2
    text = str(caught[0].message)
    assert f"gap {clf.gap_:.3g}" in text
    assert "Raise max_iter" in text
    assert caught[0].filename == __file__, "the warning must point at the caller of fit"


def test_max_time(data):
    with pytest.warns(ConvergenceWarning, match="max_time"):
        clf = MeasureClassifier(max_time=1e-12, tol=1e-9).fit(*data)
    assert (clf.status_, clf.n_iter_) == ("max_time", 0)
    assert MeasureClassifier(max_time=1e6).fit(*data).status_ == "converged"


def test_a_converged_fit_is_silent(data):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        MeasureClassifier().fit(*data)


def test_abs_tol(data):
    clf = MeasureClassifier(tol=1e-9, solver_params={"abs_tol": 0.05}).fit(*data)
    assert clf.gap_ <= 0.05
    assert clf.status_ == "converged"
    assert clf.n_iter_ < MeasureClassifier(tol=1e-6).fit(*data).n_iter_


def test_ctrl_c_leaves_the_best_model_so_far_and_goes_on_up(data):
    X, y = data

    def press(progress):
        if progress.iteration == 4:
            raise KeyboardInterrupt("enough")

    clf = MeasureClassifier(measure="accuracy", tol=1e-9, scaling="standard", solver_params={"callbacks": [press]})
    with pytest.raises(KeyboardInterrupt, match="enough"):
        clf.fit(X, y)
    assert clf.status_ == "interrupted"
    assert clf.n_iter_ == 4
    assert {len(column) for column in clf.history_.values()} == {5}
    assert clf.objective_ < 1.0  # better than w = 0
    assert clf.gap_ == clf.objective_ - clf.lower_bound_
    assert clf.objective(X, y) == pytest.approx(clf.objective_, rel=1e-11)
    assert set(clf.predict(X)) <= {0, 1}
    assert clf.score(X, y) > 0.5


def test_ctrl_c_in_the_first_product(data):
    X, y = data

    def interrupted(vector):
        if not failures:
            failures.append(1)
            raise KeyboardInterrupt
        return X.T @ vector

    failures = [1]
    operator = LinearOperator(X.shape, matvec=X.dot, rmatvec=interrupted, dtype=float)
    failures.clear()
    clf = MeasureClassifier()
    with pytest.raises(KeyboardInterrupt):
        clf.fit(operator, y)
    assert clf.status_ == "interrupted"
    assert (clf.gap_, clf.lower_bound_) == (1.0, 0.0)
    assert clf.objective_ == 1.0
    assert clf.predict(X).shape == y.shape


def test_a_callback_that_stops_ends_the_fit_quietly(data):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        clf = MeasureClassifier(tol=1e-9, solver_params={"callbacks": [lambda p: p.iteration == 3]}).fit(*data)
    assert (clf.status_, clf.n_iter_) == ("interrupted", 3)


def test_callbacks_see_progress(data):
    calls = []
    clf = MeasureClassifier(solver_params={"callbacks": [calls.append]}).fit(*data)
    assert [p.objective for p in calls] == clf.history_["objective"][1:]


# ---- copies and files


@for_each(("measure", "risk"), KINDS)
def test_clone_and_pickle(data, measure, risk):
    X, y = data
    clf = MeasureClassifier(measure=measure, risk=risk, scaling="standard", class_weight="balanced", alpha=1e-2).fit(
        X, y
    )
    copy = pickle.loads(pickle.dumps(clf))
    assert np.array_equal(copy.predict(X), clf.predict(X))
    assert np.array_equal(copy.decision_function(X), clf.decision_function(X))
    assert copy.history_ == clf.history_
    assert copy.objective(X, y) == clf.objective(X, y)
    assert copy.get_params() == clf.get_params()
    bare = clone(clf)
    assert bare.get_params() == clf.get_params()
    assert not [name for name in vars(bare) if name.endswith("_") and not name.startswith("__")]
    with pytest.raises(NotFittedError):
        bare.predict(X)
    assert np.array_equal(bare.fit(X, y).coef_, clf.coef_)


def test_pickle_of_a_warm_start_goes_on(data):
    X, y = data
    clf = MeasureClassifier(warm_start=True, risk="logistic").fit(X, y)
    first = clf.n_iter_
    assert pickle.loads(pickle.dumps(clf)).fit(X, y).n_iter_ < first


# ---- messages


SCRIPT = """
import logging, sys
import numpy as np
from scoreline import MeasureClassifier
logger = logging.getLogger("scoreline")
logger.setLevel(logging.ERROR)
rng = np.random.default_rng(0)
X = rng.standard_normal((60, 3))
y = X[:, 0] + rng.standard_normal(60) > 0
for verbose in (0, 1, 2):
    clf = MeasureClassifier(verbose=verbose).fit(X, y)
    print(clf.n_iter_, logger.level == logging.ERROR, len(logger.handlers))
    print("fitted", verbose, file=sys.stderr, flush=True)
    try:
        MeasureClassifier(verbose=verbose).fit(X, np.zeros(60))
    except ValueError:
        print("error", logger.level == logging.ERROR, len(logger.handlers))
"""


@pytest.mark.slow
def test_verbose_in_a_script_without_logging_set_up():
    """pytest has handlers of its own everywhere, so this runs outside of it."""
    run = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    out = run.stdout.splitlines()
    n_iter = out[0].split()[0]
    assert out == [f"{n_iter} True 0", "error True 0"] * 3  # level and handlers are as before, also after an error
    silent, one, two = (part.splitlines() for part in run.stderr.split("fitted")[:3])
    assert silent == []
    one, two = one[1:], two[1:]  # the rest of the line "fitted 0", "fitted 1"
    assert all(line.startswith("[scoreline] ") for line in one + two)
    assert len(one) == 2
    assert "plan for roc_auc: smoothed minimises the roc_area risk because the risk has kinks" in one[0]
    assert f"converged after {n_iter} iterations" in one[1]
    assert len([line for line in two if " iteration " in line]) == int(n_iter) + 1
    assert two[-1] == one[-1]


def test_verbose_0_says_nothing(data, caplog, capfd):
    MeasureClassifier(verbose=0).fit(*data)
    assert caplog.records == []
    assert capfd.readouterr() == ("", "")


@for_each(("verbose", "lowest"), [(1, logging.INFO), (2, logging.DEBUG), (5, logging.DEBUG)])
def test_verbose_uses_the_users_handlers(data, caplog, verbose, lowest):
    logger = logging.getLogger("scoreline")
    before = logger.level, list(logger.handlers)
    clf = MeasureClassifier(verbose=verbose).fit(*data)
    assert min(r.levelno for r in caplog.records) == lowest
    assert {r.name for r in caplog.records} == {"scoreline"}
    assert len([r for r in caplog.records if r.levelno == logging.DEBUG]) == (clf.n_iter_ + 1 if verbose > 1 else 0)
    assert (logger.level, logger.handlers) == before


def test_the_level_is_restored_after_an_error(data):
    logger, (X, _) = logging.getLogger("scoreline"), data
    before = logger.level
    with pytest.raises(ValueError, match="one class"):
        MeasureClassifier(verbose=2).fit(X, np.zeros(len(X)))
    assert logger.level == before


def test_copies_are_said(data, caplog):
    X, y = data
    MeasureClassifier(verbose=1).fit(X.round().astype(int), y)
    assert any("copied X once" in r.message and "int64" in r.message for r in caplog.records)
    caplog.clear()
    MeasureClassifier(verbose=1).fit(X, y)
    assert not any("copied" in r.message for r in caplog.records)


@for_each(
    ("measure", "risk", "alpha"),
    [
        ("partial_roc_auc", "partial_roc", 1e-2),
        ("f1", "contingency", 1e9),
    ],
)
def test_a_model_that_ranks_nothing_says_so(measure, risk, alpha):
    """The bound of a hard measure may be least where all scores are equal, which is proved at once and helps nobody."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((200, 3)), np.arange(200) % 10 == 0
    with pytest.warns(UserWarning, match=r"all rows have the same score.*choose another"):
        clf = MeasureClassifier(measure, risk=risk, alpha=alpha, intercept_scaling=100.0).fit(X, y)
    assert np.ptp(clf.decision_function(X)) <= 1e-9
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        MeasureClassifier("roc_auc").fit(X, y)


@for_each(
    "measure, p", fewer(product(all_measures(), [3, 1100]), in_quick=[("f1", 3), ("prbep", 3), ("roc_auc", 1100)])
)
def test_no_default_is_a_constant_where_a_feature_helps(measure, p):
    """A tenth of positives, one feature of many that helps: w = 0 is within 1 % of the optimum of some risks."""
    rng = np.random.default_rng(0)
    y = rng.random(2000) < 0.1
    X = sp.random(2000, p, density=min(1.0, 20 / p), random_state=0, data_rvs=rng.standard_normal, format="csr")
    X = sp.hstack([X, rng.standard_normal((2000, 1)) + 1.2 * y[:, None]], format="csr")
    for alpha in (1e-4, 1e-1):
        clf = MeasureClassifier(measure, alpha=alpha).fit(X, y)
        assert roc_auc_score(y, clf.decision_function(X)) > 0.7


def test_cutting_planes_for_measures_at_k_warn_of_shifted_columns():
    rng = np.random.default_rng(1)
    X = np.c_[rng.standard_normal((400, 3)), 50 + 10 * rng.standard_normal(400)]
    y = 1.5 * X[:, 0] + rng.standard_normal(400) > 0.8
    options = {"measure": "precision_at_k", "measure_params": {"k": 20}}
    assert MeasureClassifier(**options, solver="bundle_ocas").fit(X, y).risk_ == "logistic"
    with pytest.warns(UserWarning, match=r"unbounded under a common shift.*scaling='standard'"):
        shifted = MeasureClassifier(**options, risk="contingency").fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        centred = MeasureClassifier(**options, risk="contingency", scaling="standard").fit(X, y)
    assert centred.score(X, y) > 0.8 > shifted.score(X, y)
    with pytest.raises(ValueError, match=r"k=500.*exceeds the 400 rows.*share"):
        MeasureClassifier("recall_at_k", {"k": 500}, risk="contingency", scaling="standard").fit(X, y)


@for_each("bad", [np.nan, np.inf, -np.inf])
@for_each("coef", [0.0, 1.0])
@for_each("kind", [np.array, np.asfortranarray, sp.csr_matrix, sp.csc_matrix, sp.coo_matrix, lambda X: X[::1, ::-1]])
def test_what_is_not_finite_is_found_when_rows_are_scored(data, kind, coef, bad):
    """Found in the scores, also where its coefficient is 0."""
    X, y = data
    clf = MeasureClassifier().fit(X, y)
    clf.coef_ = np.full_like(clf.coef_, coef)
    X = X.copy()
    X[7, 1] = bad
    for method in (clf.predict, clf.decision_function):
        with pytest.raises(ValueError, match=r"NaN or infinity, first seen in row 7"):
            method(kind(X))
    with pytest.raises(ValueError, match="first seen in row 7"):
        clf.score(kind(X), y)


def test_scores_that_overflow_are_refused(data):
    X, y = data
    clf = MeasureClassifier().fit(X, y)
    clf.coef_ = np.full_like(clf.coef_, 10.0)
    X = X.copy()
    X[3, :2] = 1e308, -1e308
    with pytest.raises(ValueError, match="score of row 3 is not finite"):
        clf.predict(X)


@for_each(("p", "solver"), [(999, "newton"), (1000, "lbfgs")])
def test_newton_is_taken_where_its_hessian_will_be_there(p, solver):
    X = sp.random(60, p, 0.05, random_state=0, format="csr")
    clf = MeasureClassifier("f1", risk="squared_hinge", alpha=1e-3).fit(X, np.arange(60) % 2)
    assert (clf.solver_, clf.status_) == (solver, "converged")
