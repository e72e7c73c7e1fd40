"""Costs by row: the same as weights in the loss, in the threshold and in the measure; everywhere the classifier goes."""

import numpy as np
import pytest

from cases import for_each
from scoreline import MeasureClassifier, MeasureClassifierCV
from scoreline.measures import best_threshold, get_measure, interval, robust_threshold, row_costs

RNG = np.random.default_rng(0)
X = RNG.standard_normal((600, 4))
Y = (X[:, 0] + RNG.standard_normal(600) > 0.8).astype(int)
AMOUNT = RNG.lognormal(3.0, 1.0, 600)
COSTS = {"cost_fp": 5.0, "cost_fn": AMOUNT}


def saved(y, flagged, costs):
    """Return the savings of a prediction from its definition."""
    cost = sum(c for c, truth, found in zip(costs, y, flagged, strict=True) if truth != found)
    none, everything = sum(costs[y == 1]), sum(costs[y == 0])
    return 1.0 - cost / min(none, everything)


def test_costs_of_rows():
    found = row_costs(Y, 5.0, AMOUNT)
    np.testing.assert_array_equal(found, np.where(Y == 1, AMOUNT, 5.0))
    np.testing.assert_array_equal(row_costs(Y), 1.0)
    flagged = X[:, 0] > 0.5
    value = get_measure("savings").value(Y, X[:, 0] - 0.5, found)
    assert value == pytest.approx(saved(Y, flagged, found))
    assert interval("savings", Y, X[:, 0] - 0.5, sample_weight=found).value == pytest.approx(value)


def test_loss_threshold_and_measure_have_the_costs():
    costs = row_costs(Y, **COSTS)
    clf = MeasureClassifier("savings", random_state=0).fit(X, Y, **COSTS)
    assert clf.score(X, Y, **COSTS) == pytest.approx(saved(Y, clf.predict(X), costs))
    assert clf.objective(X, Y, **COSTS) == pytest.approx(clf.objective_, rel=1e-10)
    plain = MeasureClassifier("savings", random_state=0).fit(X, Y)
    assert saved(Y, clf.predict(X), costs) > saved(Y, plain.predict(X), costs)
    # The same as weights of rows, whose scale changes nothing here.
    exact = {"solver": "newton", "risk": "logistic", "threshold": "train", "tol": 1e-10}
    one = MeasureClassifier("savings", **exact).fit(X, Y, **COSTS)
    other = MeasureClassifier("savings", **exact).fit(X, Y, costs)
    np.testing.assert_allclose(one.coef_, other.coef_, rtol=1e-6)
    np.testing.assert_allclose(one.intercept_, other.intercept_, rtol=1e-6)
    threshold = best_threshold(Y, X @ one.coef_[0] + one.trained_intercept_, "savings", costs)
    assert one.score(X, Y, **COSTS) == pytest.approx(threshold.value)
    moved = MeasureClassifier("roc_auc").fit(X, Y).tune_threshold(X, Y, "savings", **COSTS)
    best = best_threshold(Y, X @ moved.coef_[0] + moved.trained_intercept_, "savings", costs)
    assert saved(Y, moved.predict(X), costs) == pytest.approx(best.value)


def test_sample_weights_multiply_costs():
    twice = np.concatenate([np.arange(600), np.arange(0, 600, 2)])
    weight = np.bincount(twice).astype(float)
    options = {"threshold": "train", "tol": 1e-8, "risk": "logistic", "solver": "newton"}
    one = MeasureClassifier("savings", **options).fit(X, Y, weight, **COSTS)
    two = MeasureClassifier("savings", **options).fit(X[twice], Y[twice], cost_fp=5.0, cost_fn=AMOUNT[twice])
    np.testing.assert_allclose(one.coef_, two.coef_, rtol=1e-5)
    assert one.score(X, Y, weight, **COSTS) == pytest.approx(
        one.score(X[twice], Y[twice], cost_fp=5.0, cost_fn=AMOUNT[twice])
    )


def test_cross_validation_judges_by_costs():
    train, test = np.arange(400), np.arange(400, 600)
    exact = {"risk": "logistic", "solver": "newton", "tol": 1e-9}
    search = MeasureClassifierCV("savings", alphas=[0.1], cv=[(train, test)], probability=True, **exact)
    search.fit(X, Y, **COSTS)
    costs = row_costs(Y, **COSTS)
    one = MeasureClassifier("savings", alpha=0.1, threshold="none", **exact)
    scores = one.fit(X[train], Y[train], cost_fp=5.0, cost_fn=AMOUNT[train]).decision_function(X[test])
    weight = costs[test] * (600 / costs.sum())
    flagged = scores > robust_threshold(Y[test], scores, get_measure("savings"), weight).threshold
    assert search.cv_results_["mean_test_score"][0] == pytest.approx(saved(Y[test], flagged, costs[test]))
    assert search.predict_proba(X).shape == (600, 2)
    default = MeasureClassifierCV("savings", alphas=[1.0, 1e-3], cv=3).fit(X, Y, **COSTS)
    assert saved(Y, default.predict(X), costs) > 0.2


@pytest.mark.slow
def test_dask_has_the_same_costs():
    da = pytest.importorskip("dask.array")
    distributed = pytest.importorskip("distributed")
    rows, labels, amount = (da.from_array(each, chunks=200) for each in (X, Y, AMOUNT))
    with distributed.Client(processes=False, n_workers=2, threads_per_worker=1, dashboard_address=None):
        there = MeasureClassifier("savings", threshold="train").fit(rows, labels, cost_fp=5.0, cost_fn=amount)
        value = there.score(rows, labels, cost_fp=5.0, cost_fn=amount)
    assert value == pytest.approx(there.score(X, Y, **COSTS))
    here = MeasureClassifier("savings", threshold="train").fit(X, Y, **COSTS)
    np.testing.assert_allclose(there.coef_, here.coef_, rtol=1e-6)
    np.testing.assert_allclose(there.intercept_, here.intercept_, rtol=1e-6)


@for_each(
    ("measure", "options", "costs", "words"),
    [
        ("f1", {}, {"cost_fn": AMOUNT}, "measure='savings'"),
        ("savings", {"measure_params": {"cost_fn": 3.0}}, {"cost_fn": AMOUNT}, "without costs of its own"),
        ("savings", {}, {"cost_fn": AMOUNT[:5]}, r"cost_fn has shape \(5,\), expected \(600,\)"),
        ("savings", {}, {"cost_fp": -AMOUNT}, "negative costs"),
        ("savings", {}, {"cost_fp": np.where(AMOUNT > 20, np.nan, 1.0)}, "NaN or infinity"),
        ("savings", {}, {"cost_fp": "high"}, "must be a number, or one per row"),
        ("savings", {}, {"cost_fp": 0.0}, "costs something"),
        ("savings", {"solver_params": {"early_stopping": 0.2}}, {"cost_fn": AMOUNT}, "early_stopping knows no costs"),
    ],
)
def test_wrong_costs_are_refused(measure, options, costs, words):
    with pytest.raises(ValueError, match=words):
        MeasureClassifier(measure, **options).fit(X, Y, **costs)
