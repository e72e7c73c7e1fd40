"""MeasureClassifier(solver="moments"): one pass, blocks in any order, states that add, and whether to trust the model."""

import copy
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy import stats
from scipy.sparse.linalg import aslinearoperator
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import accuracy_score, balanced_accuracy_score, roc_auc_score

from cases import for_each
from scoreline import MeasureClassifier
from scoreline.operators import as_operator
from tiers import tiered

MEASURES = ["roc_auc", "accuracy", "balanced_accuracy"]
SCORES = {"roc_auc": roc_auc_score, "accuracy": accuracy_score, "balanced_accuracy": balanced_accuracy_score}
STORAGES = {"dense": np.asarray, "csr": sp.csr_array, "pandas": lambda X: pd.DataFrame(X, columns=list("abcdef"))}


def make_data(n=600, seed=0, share=0.3, distance=1.0):
    """Return normal classes of different covariances, columns of several sizes and away from 0."""
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < share).astype(int)
    y[:2] = 0, 1
    mixes = [np.eye(6) + 0.4 * rng.standard_normal((6, 6)) for _ in range(2)]
    rows = rng.standard_normal((n, 6))
    X = np.where(
        y[:, None] == 1, rows @ mixes[1] + distance * np.array([0.8, -0.5, 0.3, 0.0, 0.2, -0.1]), rows @ mixes[0]
    )
    return (X + 3.0) * np.array([1.0, 10.0, 0.1, 1.0, 100.0, 1.0]), y


@pytest.fixture(scope="module")
def data():
    return make_data()


def moments(measure="roc_auc", solver_params=None, **params):
    return MeasureClassifier(measure, solver="moments", solver_params=solver_params, **params)


def quiet(clf, *args, **kwargs):
    """Fit without the warning that the scores are not normal."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="solver='moments' predicts")
        return clf.fit(*args, **kwargs)


def close(got, expected, rtol):
    """Compare coefficients relative to the largest of them in units of the scores: columns have sizes 0.1 to 100."""
    got, expected = np.ravel(got), np.ravel(expected)
    size = np.array([1.0, 10.0, 0.1, 1.0, 100.0, 1.0]) if len(got) == 6 else np.ones(len(got))
    np.testing.assert_allclose(got * size, expected * size, rtol=0, atol=rtol * np.abs(expected * size).max())


# A closed form (AUC) carries the rounding of the sums times the condition of the correlations, about 100; what is found by a
# search over an angle (accuracy) is known to the square root of a rounding, because the minimum is flat.
ACCURATE = {"roc_auc": 1e-9, "accuracy": 1e-6, "balanced_accuracy": 1e-6}


def best_accuracy(y, z, weight):
    """Return the best weighted accuracy of z > t over all t."""
    predicted = z > np.r_[-np.inf, z][:, None]
    return ((predicted == (y == 1)) * weight).sum(axis=1).max() / weight.sum()


# ---- fit


@for_each("storage", STORAGES)
@for_each("measure", MEASURES)
def test_what_a_fit_leaves_behind(data, measure, storage):
    X, y = data
    given = STORAGES[storage](X)
    clf = moments(measure).fit(given, y)
    assert clf.coef_.shape == (1, 6)
    assert clf.intercept_.shape == (1,)
    assert isinstance(clf.trained_intercept_, float)
    assert clf.classes_.tolist() == [0, 1]
    assert clf.n_features_in_ == 6
    assert hasattr(clf, "feature_names_in_") == (storage == "pandas")
    assert (clf.solver_, clf.status_, clf.cost_, clf.n_iter_) == ("moments", "converged", 1.0, 1)
    assert clf.risk_ in ("roc_area", "hinge", "logistic")
    assert (clf.objective_, clf.lower_bound_, clf.gap_) == (None, None, None)
    assert clf.history_ == {}
    assert clf.n_passes_ == 2.0  # moments, then cut and diagnostics
    plain = moments(measure).fit(X, y)
    close(clf.coef_, plain.coef_, ACCURATE[measure])
    assert np.array_equal(clf.predict(given), plain.predict(X))
    expected = SCORES[measure](y, clf.decision_function(given) if measure == "roc_auc" else clf.predict(given))
    assert clf.score(given, y) == pytest.approx(expected, abs=1e-12)  # sums of 600 counts
    assert np.isfinite(clf.objective(given, y))


def test_the_direction_for_auc_is_the_closed_form(data):
    X, y = data
    clf = moments(solver_params={"ridge": 0.0}).fit(X, y)
    w = np.linalg.solve(np.cov(X[y == 1].T) + np.cov(X[y == 0].T), X[y == 1].mean(axis=0) - X[y == 0].mean(axis=0))
    variance = 0.5 * sum(np.var(X[y == k] @ w, ddof=1) for k in (0, 1))
    close(clf.coef_, w / np.sqrt(variance), 1e-9)  # two orders of summation, and a condition of 1e6 of unscaled columns


@for_each("measure", MEASURES)
def test_it_does_about_as_well_as_the_certified_fit_on_normal_data(measure):
    X, y = make_data(4000, seed=1)
    X_new, y_new = make_data(4000, seed=1)
    ours = moments(measure).fit(X, y).score(X_new, y_new)
    other = MeasureClassifier(measure, scaling="standard").fit(X, y).score(X_new, y_new)
    assert ours >= other - 0.02  # two standard errors of a share of 4000 rows


@for_each("measure", MEASURES)
def test_scaling_does_not_change_the_model(data, measure):
    """ridge="auto" is relative to the variances, so the model is free of scale: rounding is all that differs."""
    X, y = data
    fits = {scaling: moments(measure, scaling=scaling).fit(X, y) for scaling in (None, "standard", "maxabs")}
    for scaling, clf in fits.items():
        assert clf.n_passes_ == (3.0 if scaling == "maxabs" else 2.0)
        assert np.array_equal(clf.predict(X), fits[None].predict(X))
        close(clf.coef_, fits[None].coef_, ACCURATE[measure])
        np.testing.assert_allclose(clf.intercept_, fits[None].intercept_, rtol=10 * ACCURATE[measure])
        assert clf.trained_intercept_ == pytest.approx(fits[None].trained_intercept_, rel=10 * ACCURATE[measure])
        assert clf.moments_report_["ridge"] == pytest.approx(fits[None].moments_report_["ridge"], rel=1e-9)


@for_each("measure", MEASURES)
def test_units_do_not_change_the_model(data, measure):
    X, y = data
    scale, shift = 10.0 ** np.array([-6, 3, 0, 9, -2, 5]), np.array([0.0, 1e4, -3.0, 1e9, 7.0, 0.0])
    a, b = moments(measure).fit(X, y), moments(measure).fit(X * scale + shift, y)
    # Shifts of up to 10 to 100 deviations: two digits less.
    close(b.coef_ * scale, a.coef_, 100 * ACCURATE[measure])
    assert np.array_equal(a.predict(X), b.predict(X * scale + shift))


def test_the_threshold_is_the_best_on_the_training_scores(data):
    X, y = data
    for measure in ("accuracy", "balanced_accuracy", "roc_auc"):
        clf = moments(measure).fit(X, y)
        z = X @ clf.coef_[0]
        sides = np.bincount(y) if measure != "accuracy" else np.ones(2)
        best = best_accuracy(y, z, 1.0 / sides[y])
        assert accuracy_score(y, clf.predict(X), sample_weight=1.0 / sides[y]) == pytest.approx(best, abs=1e-12)  # sums
        assert clf.intercept_[0] != clf.trained_intercept_
        untuned = moments(measure, threshold="none").fit(X, y)
        assert untuned.intercept_[0] == untuned.trained_intercept_ == clf.trained_intercept_


def test_operators_that_are_made_by_the_user(data):
    X, y = data
    a, b = moments().fit(X, y), moments().fit(as_operator(X), y)
    assert np.array_equal(a.coef_, b.coef_)


def test_a_linear_operator_has_products_enough(data):
    X, y = data
    for measure in MEASURES:
        options = {"solver_params": {"ridge": 1.0}, "threshold": "none"}
        clf = moments(measure, **options).fit(aslinearoperator(X), y)
        # Conjugate gradients to 1e-6, and a local search for the least error.
        close(clf.coef_, moments(measure, **options).fit(X, y).coef_, 1e-3 if measure != "roc_auc" else 1e-4)
    with pytest.raises(ValueError, match="ridge='auto' needs the variances"):
        moments("accuracy").fit(aslinearoperator(X), y)


@for_each("make", [np.asarray, sp.csr_array])
def test_more_features_than_covariances_can_hold(data, make, monkeypatch):
    X, y = data
    options = {"scaling": "standard", "solver_params": {"ridge": 0.5}}
    explicit = moments(**options).fit(make(X), y)
    monkeypatch.setattr("scoreline.solvers.moments.EXPLICIT", 5)
    implicit = moments(**options).fit(make(X), y)
    assert implicit.n_iter_ > 1
    assert implicit.n_passes_ > 2 * implicit.n_iter_
    # Conjugate gradients stop at 1e-6 of the right-hand side; the condition with this ridge is below 10.
    close(implicit.coef_, explicit.coef_, 1e-5)
    assert implicit.moments_report_["predicted"] == pytest.approx(explicit.moments_report_["predicted"], abs=1e-6)
    automatic = moments(scaling="standard").fit(make(X), y)
    assert 0.0 < automatic.moments_report_["ridge"] < 999.0
    monkeypatch.setattr("scoreline.fitting.moments.EXPLICIT", 5)
    with pytest.raises(ValueError, match="at most 5 columns"):
        moments().partial_fit(make(X), y)


def test_threads_do_not_change_bits():
    X, y = make_data(30000)
    fits = [moments("accuracy", n_jobs=n).fit(X, y) for n in (1, 2)]
    assert np.array_equal(fits[0].coef_, fits[1].coef_)
    assert fits[0].moments_report_ == fits[1].moments_report_


# ---- the report


@for_each("measure", MEASURES)
def test_the_report_describes_the_scores(data, measure):
    X, y = data
    clf = moments(measure).fit(X, y)
    report, z = clf.moments_report_, X @ clf.coef_[0]
    assert set(report) == {"measure", "predicted", "empirical", "ridge", "positive", "negative"}
    assert report["measure"] == measure
    assert report["ridge"] > 0.0
    for name, label in (("positive", 1), ("negative", 0)):
        own, shape = z[y == label], report[name]
        assert shape["weight"] == len(own)
        # Sums of a few hundred powers of numbers of size 1 to 100.
        assert shape["mean"] == pytest.approx(own.mean(), rel=1e-10)
        assert shape["std"] == pytest.approx(own.std(ddof=1), rel=1e-9)
        assert shape["skewness"] == pytest.approx(stats.skew(own), abs=1e-9)
        assert shape["kurtosis"] == pytest.approx(stats.kurtosis(own), abs=1e-9)
        expected = stats.kstest(own, stats.norm(own.mean(), own.std(ddof=1)).cdf).statistic
        assert shape["ks"] == pytest.approx(expected, abs=1e-9)
    model = z + clf.trained_intercept_
    value = SCORES[measure](y, model if measure == "roc_auc" else model > 0)
    assert report["empirical"] == pytest.approx(value, abs=1e-12)  # counts
    m, s = (np.array([report[k][v] for k in ("positive", "negative")]) for v in ("mean", "std"))
    if measure == "roc_auc":
        predicted = stats.norm.cdf((m[0] - m[1]) / np.hypot(*s))
    else:
        prior = y.mean() if measure == "accuracy" else 0.5
        b = clf.trained_intercept_
        predicted = prior * stats.norm.cdf((m[0] + b) / s[0]) + (1 - prior) * stats.norm.cdf(-(m[1] + b) / s[1])
    assert report["predicted"] == pytest.approx(predicted, abs=1e-9)  # means and deviations as above
    # The scores have variance 1 within the classes on average.
    assert np.mean(s**2) == pytest.approx(1.0, rel=1e-9)


def test_ties_are_one_step_of_the_distribution():
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 4, (400, 1)).astype(float), rng.integers(0, 2, 400)
    clf = quiet(moments(), X, y)
    for name, label in (("positive", 1), ("negative", 0)):
        own = X[y == label, 0] * clf.coef_[0, 0]
        expected = stats.kstest(own, stats.norm(own.mean(), own.std(ddof=1)).cdf).statistic
        assert clf.moments_report_[name]["ks"] == pytest.approx(expected, abs=1e-9)  # sums of 200 numbers


def test_the_report_counts_weights_as_rows(data):
    X, y = data
    repeats = np.random.default_rng(0).integers(0, 4, len(y))
    weighted = moments().fit(X, y, repeats).moments_report_
    repeated = moments().fit(np.repeat(X, repeats, axis=0), np.repeat(y, repeats)).moments_report_
    for side in ("positive", "negative"):
        for name, value in repeated[side].items():
            # Fourth powers of sums in another order.
            assert weighted[side][name] == pytest.approx(value, rel=1e-8, abs=1e-8), name
    for name in ("predicted", "empirical", "ridge"):
        assert weighted[name] == pytest.approx(repeated[name], rel=1e-9), name


@for_each("measure", MEASURES)
def test_without_diagnostics_there_is_one_pass(data, measure):
    X, y = data
    full = moments(measure).fit(X, y)
    clf = moments(measure, {"diagnostics": False}).fit(X, y)
    assert clf.n_passes_ == 1.0
    assert np.array_equal(clf.coef_, full.coef_)
    assert clf.intercept_[0] == clf.trained_intercept_ == full.trained_intercept_
    assert clf.moments_report_["empirical"] is None
    assert clf.moments_report_["predicted"] == full.moments_report_["predicted"]
    assert set(clf.moments_report_["positive"]) == {"mean", "std"}
    # The threshold of the model is best for the normal model: where the weighted densities cross.
    prior = y.mean() if measure == "accuracy" else 0.5
    side = clf.moments_report_["positive"], clf.moments_report_["negative"]
    at = -clf.trained_intercept_
    density = [stats.norm.pdf(at, s["mean"], s["std"]) for s in side]
    assert prior * density[0] == pytest.approx((1 - prior) * density[1], rel=1e-6)  # the root of a quadratic
    assert moments(measure, {"diagnostics": False}, scaling="maxabs").fit(X, y).n_passes_ == 2.0


def gaussian_or(kind, n=4000, seed=0):
    """Return rows of one informative column and one of noise; the first is normal, bimodal or has rare large values."""
    rng = np.random.default_rng(seed)
    y = (np.arange(n) % 2).astype(int)
    x = rng.standard_normal(n)
    if kind == "bimodal":  # negatives at 0, positives at -1 and 6: AUC is far from what means and variances say
        x += np.where(y == 1, np.where(rng.random(n) < 0.5, -1.0, 6.0), 0.0)
    elif kind == "heavy":  # nearly separated, but for 2 % of rows at 30 deviations
        x += 2.0 * y
        x[rng.random(n) < 0.02] *= 30.0
    else:
        x += y
    return np.column_stack([x, rng.standard_normal(n)]), y


@for_each("kind", ["bimodal", "heavy"])
def test_a_warning_where_prediction_and_measurement_part(kind):
    X, y = gaussian_or(kind)
    with pytest.warns(UserWarning, match=r"predicts roc_auc 0\.\d{4}, the training scores have 0\.\d{4}") as caught:
        clf = moments().fit(X, y)
    report = clf.moments_report_
    assert abs(report["predicted"] - report["empirical"]) > 0.02
    assert report["empirical"] == pytest.approx(roc_auc_score(y, clf.decision_function(X)), abs=1e-12)  # counts
    assert max(report[side]["ks"] for side in ("positive", "negative")) > 0.1
    parted = [each for each in caught if "heavy tails" not in str(each.message)]
    assert len(parted) == 1
    assert all(each.filename == __file__ for each in caught), "warnings must point at the caller of fit"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "Column.* heavy tails")
        moments(solver_params={"diagnostics": False}).fit(X, y)


@for_each("seed", range(2))
@for_each("measure", MEASURES)
@for_each("n", [40, 4000])
def test_no_warning_on_normal_data(measure, n, seed):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        moments(measure).fit(*gaussian_or("normal", n, seed))
        moments(measure).fit(*make_data(max(n, 100), seed=seed))


@for_each("class_weight", ["balanced", {0: 1.0, 1: 20.0}])
@for_each("measure", MEASURES)
def test_no_warning_on_normal_data_with_class_weights(measure, class_weight):
    """Prediction and measurement must be of the same thing: both with class weights, or both without."""
    X, y = make_data(5000, share=0.1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        clf = moments(measure, class_weight=class_weight).fit(X, y)
    report = clf.moments_report_
    assert report["predicted"] == pytest.approx(
        report["empirical"], abs=0.03
    )  # 500 positives: a standard error of 0.02


# ---- weights


@for_each("scaling", [None, "standard", "maxabs"])
@for_each("measure", MEASURES)
def test_weights_are_repeated_rows(data, measure, scaling):
    X, y = data
    repeats = np.random.default_rng(0).integers(0, 4, len(y))
    weighted = moments(measure, scaling=scaling).fit(X, y, repeats)
    repeated = moments(measure, scaling=scaling).fit(np.repeat(X, repeats, axis=0), np.repeat(y, repeats))
    close(weighted.coef_, repeated.coef_, ACCURATE[measure])
    np.testing.assert_allclose(weighted.intercept_, repeated.intercept_, rtol=10 * ACCURATE[measure])
    assert np.array_equal(weighted.predict(X), repeated.predict(X))
    assert weighted.moments_report_["ridge"] == pytest.approx(repeated.moments_report_["ridge"], rel=1e-9)


@for_each("class_weight", ["balanced", {0: 1.0, 1: 0.2}, {0: 1.0, 1: 8.0}])
def test_class_weight_moves_only_the_threshold_for_auc(data, class_weight):
    X, y = data
    plain = moments().fit(X, y)
    clf = moments(class_weight=class_weight).fit(X, y)
    assert np.array_equal(clf.coef_, plain.coef_)
    assert clf.moments_report_["predicted"] == plain.moments_report_["predicted"]
    ratio = (y == 0).sum() / (y == 1).sum() if class_weight == "balanced" else class_weight[1]
    weight, z = np.where(y == 1, ratio, 1.0), X @ clf.coef_[0]
    best = best_accuracy(y, z, weight)
    assert accuracy_score(y, clf.predict(X), sample_weight=weight) == pytest.approx(best, abs=1e-12)  # sums of weights
    # The threshold of the model, where the densities times weights cross.
    bare = moments(class_weight=class_weight, solver_params={"diagnostics": False}).fit(X, y)
    at = -bare.intercept_[0]
    high, low = (
        stats.norm.pdf(at, s["mean"], s["std"]) for s in (clf.moments_report_[k] for k in ("positive", "negative"))
    )
    assert ratio * (y == 1).sum() * high == pytest.approx((y == 0).sum() * low, rel=1e-6)  # the root of a quadratic


def test_class_weight_in_blocks_is_that_of_all_rows(data):
    X, y = data
    clf = moments("accuracy", {"diagnostics": False}, class_weight="balanced")
    blocks = clone(clf)
    for rows in np.array_split(np.argsort(y, kind="stable"), 4):
        blocks.partial_fit(X[rows], y[rows], classes=[0, 1])
    batch = clf.fit(X, y)
    close(blocks.coef_, batch.coef_, ACCURATE["accuracy"])
    assert blocks.trained_intercept_ == pytest.approx(batch.trained_intercept_, rel=1e-5)  # ten times that


# ---- blocks


ORDERS = ["given", "reversed", "sorted", "shuffled"]
BLOCKS = [
    (1, "sorted", "dense"),
    (1, "shuffled", "dense"),
    *((n, o, s) for n in (137, 600) for o in ORDERS for s in STORAGES),
]


@for_each("size, order, storage", tiered(BLOCKS))
def test_blocks_in_any_order_and_size_give_the_batch(data, size, order, storage):
    X, y = data
    rng = np.random.default_rng(1)
    rows = {
        "given": np.arange(600), "reversed": np.arange(600)[::-1], "sorted": np.argsort(y, kind="stable"),
        "shuffled": rng.permutation(600),
    }[order]  # fmt: skip
    if size == 1:
        rows = rows[:250] if order != "sorted" else np.r_[rows[:125], rows[-125:]]
    clf = moments()
    for k in range(0, len(rows), size):
        block = rows[k : k + size]
        clf.partial_fit(STORAGES[storage](X[block]), y[block], classes=[0, 1])
    batch = moments(solver_params={"diagnostics": False}).fit(X[rows], y[rows])
    close(
        clf.coef_, batch.coef_, 1e-9
    )  # 250 merges round 250 times, times the condition of the correlations, about 100
    assert clf.intercept_[0] == clf.trained_intercept_ == pytest.approx(batch.trained_intercept_, rel=1e-8)
    assert clf.n_passes_ == -(-len(rows) // size)
    assert clf.moments_report_["empirical"] is None
    assert clf.moments_report_["predicted"] == pytest.approx(batch.moments_report_["predicted"], rel=1e-9)
    assert clf.status_ == "converged"
    assert (clf.objective_, clf.gap_) == (None, None)


@for_each("scaling", [None, "standard"])
@for_each("measure", MEASURES)
def test_blocks_with_weights_and_scaling(data, measure, scaling):
    X, y = data
    weight = np.random.default_rng(2).integers(0, 4, 600)
    clf = moments(measure, scaling=scaling)
    for k in range(0, 600, 200):
        clf.partial_fit(X[k : k + 200], y[k : k + 200], sample_weight=weight[k : k + 200])
    batch = moments(measure, scaling=scaling).fit(X, y, weight)
    close(clf.coef_, batch.coef_, ACCURATE[measure])
    assert clf.trained_intercept_ == pytest.approx(batch.trained_intercept_, rel=10 * ACCURATE[measure])


def test_blocks_far_from_zero(data):
    X, y = data
    X = X + 1e6 * X.std(axis=0)
    clf = moments()
    for rows in np.array_split(np.random.default_rng(0).permutation(600), 20):
        clf.partial_fit(X[rows], y[rows], classes=[0, 1])
    # Entries have 10 digits of a deviation left, covariances of merged blocks 8 of a variance, and the condition is 100.
    close(clf.coef_, moments().fit(X, y).coef_, 1e-5)


def test_blocks_of_one_class(data):
    X, y = data
    clf = moments()
    assert clf.partial_fit(X[y == 0][:50], y[y == 0][:50], classes=[1, 0]) is clf
    assert clf.classes_.tolist() == [0, 1]
    assert not hasattr(clf, "coef_")
    with pytest.raises(NotFittedError):
        clf.predict(X)
    clf.partial_fit(X[y == 0][50:], y[y == 0][50:])
    assert not hasattr(clf, "coef_")
    clf.partial_fit(X[y == 1], y[y == 1])
    close(clf.coef_, moments().fit(X, y).coef_, 1e-9)  # three merges


def test_labels_of_other_kinds_in_blocks(data):
    X, y = data
    labels = np.where(y == 1, "yes", "no")
    clf = moments()
    for rows in (y == 1, y == 0):
        clf.partial_fit(X[rows], labels[rows], classes=np.array(["yes", "no"]))
    assert clf.classes_.tolist() == ["no", "yes"]
    close(clf.coef_, moments().fit(X, y).coef_, 1e-9)
    assert set(clf.predict(X)) == {"no", "yes"}


def test_a_state_can_be_saved_and_copied(data):
    X, y = data
    clf = moments().partial_fit(X[:300], y[:300])
    saved, copied = pickle.loads(pickle.dumps(clf)), copy.deepcopy(clf)
    clf.partial_fit(X[300:], y[300:])
    for other in (saved, copied):
        assert not np.array_equal(other.coef_, clf.coef_)
        assert np.array_equal(other.partial_fit(X[300:], y[300:]).coef_, clf.coef_)
    assert not hasattr(clone(clf), "classes_")


def test_coefficients_are_not_those_of_the_state(data):
    """What the user does to coef_ must not reach the sums."""
    X, y = data
    clf = moments().partial_fit(X[:300], y[:300])
    clf.coef_[:] = np.nan
    clf.partial_fit(X[300:], y[300:])
    close(clf.coef_, moments().fit(X, y).coef_, 1e-9)


def test_merge_adds_what_others_have_seen(data):
    X, y = data
    parts = [moments().partial_fit(X[rows], y[rows], classes=[0, 1]) for rows in np.array_split(np.arange(600), 4)]
    before = parts[1].coef_.copy()
    state = parts[1]._moments.record()
    total = parts[0]
    for other in parts[1:]:
        assert total.merge(other) is total
    batch = moments().fit(X, y)
    close(total.coef_, batch.coef_, 1e-9)  # three merges
    assert total.trained_intercept_ == pytest.approx(batch.trained_intercept_, rel=1e-8)
    assert total.n_passes_ == 4.0
    assert np.array_equal(parts[1].coef_, before)
    assert np.array_equal(parts[1]._moments.record()["positive"]["scatter"], state["positive"]["scatter"])
    total.partial_fit(X[:10], y[:10])  # goes on
    assert total.n_passes_ == 5.0


def test_merge_of_two_classifiers_with_one_class_each(data):
    X, y = data
    a, b = (moments().partial_fit(X[y == k], y[y == k], classes=[0, 1]) for k in (0, 1))
    assert not hasattr(a, "coef_")
    close(a.merge(b).coef_, moments().fit(X, y).coef_, 1e-9)
    assert not hasattr(b, "coef_")


def test_fit_discards_what_blocks_have_left(data):
    X, y = data
    clf = moments().partial_fit(X[:300], -X[:300, 0] > -3.0, classes=[False, True])
    clf.fit(X, y)
    assert np.array_equal(clf.coef_, moments().fit(X, y).coef_)
    with pytest.raises(ValueError, match="this classifier has none"):
        clf.merge(moments().partial_fit(X, y))
    clf.partial_fit(X[:200], y[:200])  # again
    assert np.array_equal(clf.coef_, moments().partial_fit(X[:200], y[:200]).coef_)
    assert clf.n_passes_ == 1.0
    other = MeasureClassifier(solver="moments").partial_fit(X[:300], y[:300]).set_params(solver="lbfgs").fit(X, y)
    with pytest.raises(ValueError, match="none: call partial_fit first"):
        other.set_params(solver="moments").merge(moments().partial_fit(X, y))


def test_the_first_block_of_one_class_after_a_fit_leaves_no_model(data):
    """partial_fit: "The classifier; without `coef_` until both classes have been seen"."""
    X, y = data
    clf = moments().fit(X, y)
    clf.partial_fit(X[y == 0], y[y == 0], classes=[0, 1])
    assert not hasattr(clf, "coef_")


def test_a_refused_block_changes_nothing(data):
    X, y = data
    clf = moments().partial_fit(X[:300], y[:300])
    before = clf._moments.record()
    for block in ((X[:5, :3], y[:5]), (X[:5], y[:5] + 7), (X[:5], y[:4]), (X[:5] * np.nan, y[:5])):
        with pytest.raises(ValueError):  # noqa: PT011 - four messages
            clf.partial_fit(*block)
    with pytest.raises(ValueError, match="zero everywhere"):
        clf.partial_fit(X[:5], y[:5], sample_weight=np.zeros(5))
    clf.partial_fit(X[300:], y[300:])
    assert np.array_equal(clf._moments.positive.weight + clf._moments.negative.weight, 600.0)
    assert before["positive"]["weight"] + before["negative"]["weight"] == 300.0
    close(clf.coef_, moments().fit(X, y).coef_, 1e-9)


# ---- errors


def test_other_solvers_do_not_stream(data):
    for solver in ("auto", "lbfgs", "smoothed"):
        clf = MeasureClassifier(solver=solver)
        for name in ("partial_fit", "merge"):
            assert not hasattr(clf, name)
    assert hasattr(moments(), "partial_fit")
    assert hasattr(moments(), "merge")
    with pytest.raises(AttributeError, match="partial_fit"):
        MeasureClassifier().partial_fit(*data)


def test_errors_of_blocks(data):
    X, y = data
    with pytest.raises(ValueError, match="scaling='maxabs' needs all rows at once"):
        moments(scaling="maxabs").partial_fit(X, y)
    with pytest.raises(ValueError, match="one class only"):
        moments().partial_fit(X[y == 0], y[y == 0])
    clf = moments().partial_fit(X[:300], y[:300], classes=[0, 1])
    with pytest.raises(ValueError, match="differ from those of the first block"):
        clf.partial_fit(X, y, classes=[0, 2])
    with pytest.raises(ValueError, match="expected the classes of the fit"):
        clf.partial_fit(X, y + 1)
    with pytest.raises(ValueError, match="features"):
        clf.partial_fit(X[:, :4], y)
    with pytest.raises(ValueError, match="labels"):
        clf.partial_fit(X, y[:-1])
    with pytest.raises(ValueError, match="NaN"):
        clf.partial_fit(np.full_like(X, np.nan), y)
    with pytest.raises(ValueError, match="binary"):
        moments().partial_fit(X, y, classes=[0, 1, 2])
    named = moments().partial_fit(pd.DataFrame(X, columns=list("abcdef")), y)
    with pytest.raises(ValueError, match="feature names"):
        named.partial_fit(pd.DataFrame(X, columns=list("abcdeg")), y)
    with pytest.raises(ValueError, match="blocks"):
        moments().partial_fit(aslinearoperator(X), y)


def test_errors_of_merge(data):
    X, y = data
    clf = moments().partial_fit(X, y)
    with pytest.raises(ValueError, match="other has none: call partial_fit first"):
        clf.merge(moments())
    with pytest.raises(ValueError, match="other has none"):
        clf.merge(moments().fit(X, y))
    with pytest.raises(ValueError, match="this classifier has none"):
        moments().merge(clf)
    with pytest.raises(ValueError, match="same classes and features"):
        clf.merge(moments().partial_fit(X, y + 1))
    with pytest.raises(ValueError, match="same classes and features"):
        clf.merge(moments().partial_fit(X[:, :3], y))


def test_errors_of_fit(data):
    X, y = data
    with pytest.raises(ValueError, match="threshold='holdout' cannot be combined with solver='moments'"):
        moments(threshold="holdout").fit(X, y)
    for call in ("fit", "partial_fit"):
        with pytest.raises(ValueError, match="does not train for measure 'f1'"):
            getattr(moments("f1"), call)(X, y)
        with pytest.raises(ValueError, match="roc_area_squared"):
            getattr(moments(risk="roc_area_squared"), call)(X, y)
    for params, match in (
        ({"ridge": -1.0}, "ridge=-1.0 must be a finite number at least 0"),
        ({"ridge": "automatic"}, "ridge"),
        ({"method": "papers"}, "Did you mean 'paper'"),
        ({"diagnostics": 1}, "diagnostics=1 must be True or False"),
        ({"rigde": 1.0}, "Did you mean 'ridge'"),
        ({"abs_tol": 1.0}, "abs_tol"),
    ):
        for call in ("fit", "partial_fit"):
            with pytest.raises(ValueError, match=match):
                getattr(moments(solver_params=params), call)(X, y)


def test_a_fit_that_fails_leaves_the_model_as_it_was(data):
    X, y = data
    clf = moments().fit(X, y)
    before = clf.coef_.copy()
    with pytest.raises(ValueError, match="singular"):
        clf.set_params(solver_params={"ridge": 0.0}).fit(np.column_stack([X, X]), y)
    assert np.array_equal(clf.coef_, before)
    assert clf.n_features_in_ == 6


def test_conjugate_gradients_that_end_early_say_so(monkeypatch):
    monkeypatch.setattr("scoreline.solvers.moments.EXPLICIT", 2)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 20)) @ rng.standard_normal((20, 20))
    y = (X[:, 0] + rng.standard_normal(300) > 0).astype(int)
    clf = MeasureClassifier(
        "roc_auc", solver="moments", solver_params={"ridge": 1e-6, "diagnostics": False}, max_iter=1
    )
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        clf.fit(X, y)
    assert clf.status_ == "max_iter"


def test_a_block_or_a_merge_that_fails_leaves_the_stream_as_it_was():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 4)), np.arange(60) % 2
    start = {"solver": "moments", "solver_params": {"ridge": 0.0}}
    clf = MeasureClassifier("roc_auc", **start).partial_fit(X, y)
    before, passes = clf._moments.record(), clf.n_passes_
    with pytest.raises(ValueError, match="range of floats"):
        clf.partial_fit(1e200 * X, y)
    repeated = np.repeat(X[:, :1], 4, axis=1)
    flat = MeasureClassifier("roc_auc", solver="moments").partial_fit(repeated, y)
    singular = MeasureClassifier("roc_auc", **start)
    with pytest.raises(ValueError, match="singular"):
        singular.partial_fit(repeated, y)
    assert not hasattr(singular, "classes_"), "a first block that fails is as if it had not come"
    singular.partial_fit(repeated[y == 0], y[y == 0], classes=[0, 1])  # nothing to solve yet
    with pytest.raises(ValueError, match="singular"):
        singular.merge(flat)
    assert singular._moments.positive.weight == 0.0
    after = clf._moments.record()
    for side in ("positive", "negative"):
        for name in ("weight", "mean", "scatter"):
            np.testing.assert_array_equal(before[side][name], after[side][name])
    assert clf.n_passes_ == passes


def test_an_interrupt_while_solving_leaves_the_stream_as_it_was(monkeypatch):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 4)), np.arange(60) % 2
    clf, other = (MeasureClassifier("roc_auc", solver="moments").partial_fit(X[:30], y[:30]) for _ in range(2))

    def pressed(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("scoreline.fitting.moments._solved", pressed)
        with pytest.raises(KeyboardInterrupt):
            clf.partial_fit(X[30:], y[30:])
    np.testing.assert_array_equal(
        clf.partial_fit(X[30:], y[30:]).coef_, other.partial_fit(X[30:], y[30:]).coef_, "the block counts once"
    )
