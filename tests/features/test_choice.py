"""The kind of features chosen by cross-validation."""

import numpy as np
import pytest
from sklearn.model_selection import StratifiedKFold

from scoreline import MeasureClassifier, MeasureClassifierCV, load_model
from scoreline.features import Pairs


def rows(n=1200, seed=0):
    rng = np.random.default_rng(seed)
    X, noise = rng.uniform(-2, 2, (n, 3)), 0.4 * rng.standard_normal(n)
    labels = {
        "linear": X[:, 0] + X[:, 1] + noise > 0,
        "additive": np.abs(X[:, 0]) + X[:, 1] + noise > 1,
        "pairs": X[:, 0] * X[:, 2] + 0.5 * X[:, 1] + noise > 0,
    }
    return X, labels


def test_auto_takes_the_simplest_kind_that_is_as_good(tmp_path):
    X, labels = rows()
    alphas = [1.0, 0.1, 0.01]
    for kind, y in labels.items():
        clf = MeasureClassifierCV("roc_auc", features="auto", alphas=alphas, cv=3, probability=True).fit(X, y)
        assert clf.features_ == kind
        assert clf.status_ == "converged"
        assert clf.n_features_in_ == 3
        table = clf.cv_results_
        assert [list(table["features"]).count(each) for each in ("linear", "additive", "pairs")] == [3, 3, 3]
        best = table["mean_test_score"].max()
        own = table["mean_test_score"][table["features"] == kind].max()
        assert own >= best - table["std_test_score"].max(), kind
        assert np.mean((clf.predict_proba(X)[:, 1] > 0.5) == y) > 0.85
        clf.save(tmp_path / "model.npz")
        loaded = load_model(tmp_path / "model.npz")
        assert loaded.features == kind
        assert np.array_equal(loaded.decision_function(X), clf.decision_function(X))


def test_the_final_model_is_that_of_its_alpha_and_features():
    X, labels = rows(600)
    y, options = labels["pairs"], Pairs(max_bins=16, max_pairs=1)
    clf = MeasureClassifierCV("roc_auc", features=options, alphas=[0.1, 0.01], cv=3).fit(X, y)
    assert clf.features_ == "pairs"
    assert clf.feature_map_.pairs == [(0, 2)]
    plain = MeasureClassifier("roc_auc", features=options, alpha=clf.alpha_, threshold="none").fit(X, y)
    assert np.array_equal(clf.coef_, plain.coef_)


def test_count_based_measures_whose_folds_make_whole_fits():
    X, labels = rows(600)
    clf = MeasureClassifierCV("f1", features="auto", alphas=[0.1, 0.01], cv=3).fit(X, labels["pairs"])
    assert clf.features_ == "pairs"
    assert clf.score(X, labels["pairs"]) > 0.8


def test_own_grid_of_alphas_reaches_to_10():
    X, labels = rows(300)
    clf = MeasureClassifierCV("roc_auc", features="additive", cv=2).fit(X, labels["additive"])
    assert clf.cv_results_["alpha"].max() >= 10.0
    assert set(clf.cv_results_["features"]) == {"additive"}


def test_auto_needs_cross_validation():
    X, labels = rows(100)
    with pytest.raises(ValueError, match="MeasureClassifierCV"):
        MeasureClassifier(features="auto").fit(X, labels["linear"])
    with pytest.raises(ValueError, match="Leave scaling=None"):
        MeasureClassifierCV(features="auto", scaling="standard").fit(X, labels["linear"])


def test_folds_are_repeated_where_positives_are_few():
    X, labels = rows(400)
    y, weight = labels["additive"], np.ones(400)
    weight[::5] = 0.0
    search = MeasureClassifierCV("roc_auc", features="auto", alphas=[0.1], cv=2)
    few = search.fit(X, y, weight).cv_results_
    assert sum(name.startswith("split") for name in few) == 6
    given = search.set_params(cv=StratifiedKFold(2)).fit(X, y).cv_results_
    assert sum(name.startswith("split") for name in given) == 2, "folds that the user gives stay"
    one = search.set_params(cv=2, features="additive").fit(X, y).cv_results_
    assert sum(name.startswith("split") for name in one) == 2, "nothing is compared with other features"


def test_thresholds_and_probabilities_of_repeated_folds():
    X, labels = rows(300)
    for measure in ("f1", "roc_auc"):
        clf = MeasureClassifierCV(measure, features="auto", alphas=[0.1], cv=2, probability=True, random_state=0)
        clf.fit(X, labels["additive"])
        assert clf.score(X, labels["additive"]) > 0.8
        assert np.mean((clf.predict_proba(X)[:, 1] > 0.5) == labels["additive"]) > 0.8
