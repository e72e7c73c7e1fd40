"""Monotone functions of columns: exact in every bin, optimal among all of them, and refused where there is no order."""

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize

from scoreline import MeasureClassifier, MeasureClassifierCV, load_model
from scoreline.features import Additive, Pairs


def table(n=500, seed=0):
    """Return rows of three columns, one with missing values, and labels that depend on all of them."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, size=(n, 3))
    score = X[:, 0] + np.sin(4 * X[:, 0]) + X[:, 1] ** 2 - 0.5 * X[:, 2] + 0.5 * rng.standard_normal(n)
    X[rng.random(n) < 0.1, 1] = np.nan
    return X, score > 1.0


def differences(clf, column):
    """Return the differences of the function of a column from bin to bin, without the bin of missing values."""
    return np.diff(clf.feature_map_.tables(clf.coef_[0])[column][1:])


@pytest.mark.parametrize("measure", ["roc_auc", "f1"])
@pytest.mark.parametrize("bins", [2, 24])
def test_functions_are_monotone_in_every_bin_and_in_the_scores(measure, bins):
    X, y = table()
    clf = MeasureClassifier(measure, features=Additive(max_bins=bins), monotone={0: 1, 1: 1, 2: -1}, alpha=1e-3)
    clf.fit(X, y)
    assert clf.status_ == "converged"
    assert clf.gap_ <= 1e-2 * max(clf.lower_bound_, 1e-3)
    for column, sign in ((0, 1), (1, 1), (2, -1)):
        assert (sign * differences(clf, column) >= 0.0).all()
        line = np.full((200, 3), np.nan)
        line[:, column] = np.linspace(-3, 3, 200)
        assert (sign * np.diff(clf.decision_function(line)) >= 0.0).all()


def test_the_optimum_is_that_of_a_general_solver():
    X, y = table(300)
    clf = MeasureClassifier("accuracy", risk="logistic", features=Additive(max_bins=6), monotone={0: 1, 2: -1})
    clf.set_params(alpha=0.01, tol=1e-8).fit(X, y)
    features, (lower, upper) = clf.feature_map_, clf.feature_map_.bounds()
    codes = features.codes(X)
    rows = np.hstack([group.basis[codes[group.columns[0]]] for group in features.groups])
    sign = np.where(y, 1.0, -1.0)

    def objective(w):
        margins = sign * (rows @ w[:-1] + w[-1])
        slope = -sign / (1.0 + np.exp(margins)) / len(y)
        value = np.logaddexp(0.0, -margins).mean() + 0.005 * w[:-1] @ w[:-1]
        return value, np.append(rows.T @ slope + 0.01 * w[:-1], slope.sum())

    ends = [*zip(lower, upper, strict=True), (None, None)]
    found = minimize(
        objective, np.zeros(rows.shape[1] + 1), jac=True, bounds=ends, options={"ftol": 1e-15, "gtol": 1e-9}
    )
    assert clf.lower_bound_ <= found.fun + 1e-12
    assert clf.objective_ <= found.fun * (1.0 + 1e-6)


def test_any_monotone_function_can_be_learnt():
    """Bounds on steps and on a line do not exclude a function that is monotone: here one with a single jump."""
    x = np.linspace(0, 1, 400)
    clf = MeasureClassifier("accuracy", features=Additive(max_bins=20), monotone={0: 1}, alpha=1e-3)
    clf.fit(x[:, None], x > 0.75)
    assert clf.score(x[:, None], x > 0.75) > 0.99


def test_a_sign_against_the_data_gives_a_constant():
    x = np.linspace(0, 1, 100)
    clf = MeasureClassifier("accuracy", features="additive", monotone={"b": 1}, alpha=1e-2)
    with pytest.warns(UserWarning, match="same score"):
        clf.fit(pd.DataFrame({"b": -x}), x > 0.5)
    assert np.ptp(clf.feature_map_.tables(clf.coef_[0])[0]) == 0.0


def test_linear_features_have_bounds_of_their_sign():
    X, y = table()
    rows = np.nan_to_num(X)
    clf = MeasureClassifier("roc_auc", monotone={0: -1, 2: -1}, scaling="standard").fit(rows, y)
    assert clf.coef_[0, 0] == 0.0 > clf.coef_[0, 2]
    same = MeasureClassifier("roc_auc", bounds={0: (None, 0), 2: (None, 0)}, scaling="standard").fit(rows, y)
    assert np.array_equal(clf.coef_, same.coef_)
    both = MeasureClassifier("roc_auc", bounds={2: (-0.1, 3)}, monotone={2: -1}).fit(rows, y)
    assert -0.1 <= both.coef_[0, 2] <= 0.0


def test_pairs_leave_monotone_columns_out():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(1500, 4))
    y = X[:, 0] * X[:, 1] + X[:, 2] * X[:, 3] + 0.3 * X[:, 0] > 0
    clf = MeasureClassifier("roc_auc", features=Pairs(max_bins=16), monotone={0: 1}, alpha=0.01).fit(X, y)
    assert clf.feature_map_.pairs
    assert all(0 not in pair for pair in clf.feature_map_.pairs)
    assert (differences(clf, 0) >= 0.0).all()


def test_search_and_saved_models_keep_the_signs(tmp_path):
    X, y = table()
    clf = MeasureClassifierCV("roc_auc", features="auto", monotone={0: 1, 1: -1}, alphas=[0.1, 0.01], cv=2).fit(X, y)
    assert (differences(clf, 0) >= 0.0).all()
    assert (differences(clf, 1) <= 0.0).all()
    clf.save(tmp_path / "model.npz")
    read = load_model(tmp_path / "model.npz")
    assert read.monotone == {0: 1, 1: -1}
    assert read.feature_map_.signs == clf.feature_map_.signs
    assert np.array_equal(read.decision_function(X), clf.decision_function(X))


def test_weights_are_copies():
    X, y = table(200)
    weight = np.random.default_rng(1).integers(0, 3, len(y))
    clf = MeasureClassifier("roc_auc", features=Additive(max_bins=8), monotone={0: 1}, alpha=0.01, tol=1e-6)
    copied = clf.fit(np.repeat(X, weight, axis=0), np.repeat(y, weight)).objective_
    assert clf.fit(X, y, sample_weight=weight).objective_ == pytest.approx(copied, rel=1e-5)


@pytest.mark.parametrize(
    ("monotone", "words"),
    [
        ({"zip": 1}, "names column 'zip'"),
        ({5: 1}, "0 to 2"),
        ({0: 2}, r"\+1 .* or -1"),
        ([1, 0, 0], "must be a dict"),
    ],
)
@pytest.mark.parametrize("features", ["linear", "additive"])
def test_wrong_signs_are_refused(monotone, words, features):
    X, y = table(60)
    with pytest.raises(ValueError, match=words):
        MeasureClassifier("roc_auc", features=features, monotone=monotone).fit(np.nan_to_num(X), y)


def test_categories_have_no_order():
    rows = pd.DataFrame({"age": [1.0, 2.0, 3.0, 4.0] * 10, "city": ["a", "b", "c", "d"] * 10})
    with pytest.raises(ValueError, match="'city', which holds categories"):
        MeasureClassifier("roc_auc", features="additive", monotone={"city": 1}).fit(rows, [0, 1, 1, 0] * 10)


def test_known_features_must_have_been_learnt_with_the_same_directions():
    X, y = table()
    clf = MeasureClassifier("roc_auc", features="additive", monotone={0: 1}, alpha=0.01)
    with pytest.raises(ValueError, match=r"learn\(rows, monotone="):
        clf.fit(Additive().learn(X), y)
    clf.fit(Additive().learn(X, monotone={0: 1}), y)
    assert (differences(clf, 0) >= 0.0).all()
