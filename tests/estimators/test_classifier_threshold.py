"""threshold="holdout" and tune_threshold: where the threshold comes from."""

import numpy as np
import pytest

from cases import for_each
from scoreline import MeasureClassifier
from scoreline.fitting.threshold import held_out_rows
from scoreline.measures import best_threshold, get_measure


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((900, 5))
    y = (X[:, 0] - X[:, 1] + 1.5 * rng.standard_normal(900) > 2.0).astype(int)
    return X, y


def test_held_out_rows_are_a_stratified_fifth():
    sign = np.r_[np.ones(50), -np.ones(500)].astype(int)
    weight = np.ones(550)
    weight[:10] = 0.0
    held = held_out_rows(sign, weight, 3)
    assert held[sign > 0].sum() == 8
    assert held[sign < 0].sum() == 100
    assert not held[:10].any(), "rows of weight 0 are not there"
    assert np.array_equal(held, held_out_rows(sign, weight, 3))
    assert not np.array_equal(held, held_out_rows(sign, weight, 4))
    with pytest.raises(ValueError, match="threshold='holdout' needs two rows of each class"):
        held_out_rows(np.array([1, -1, -1]), None, 0)


@for_each("measure", ["f1", "roc_auc", "accuracy", "precision_at_k"])
def test_holdout_takes_the_threshold_from_rows_that_the_fit_did_not_see(data, measure):
    X, y = data
    options = {"solver": "cost_search" if measure == "f1" else "auto", "tol": 1e-6}
    clf = MeasureClassifier(measure, threshold="holdout", random_state=1, **options).fit(X, y)
    held = held_out_rows(np.where(y, 1, -1), None, 1)
    part = MeasureClassifier(measure, threshold="none", **options).fit(X[~held], y[~held])
    expected = best_threshold(y[held], part.decision_function(X[held]), get_measure(measure)).threshold
    # The first fit is the fit of the other rows, up to tol.
    assert clf.trained_intercept_ - clf.intercept_[0] == pytest.approx(expected, abs=0.02)
    on_all_rows = MeasureClassifier(measure, threshold="train", **options).fit(X, y)
    # The coefficients are those of all rows.
    assert clf.objective_ == pytest.approx(on_all_rows.objective_, rel=2e-6)
    assert clf.n_passes_ > clf.history_["passes"][-1] + 2  # those of the fit that was kept, and of the one before it
    other = MeasureClassifier(measure, threshold="holdout", random_state=2, **options).fit(X, y)
    assert other.intercept_[0] != clf.intercept_[0]


def test_tune_threshold_takes_other_rows_and_other_measures(data):
    X, y = data
    clf = MeasureClassifier("f1").fit(X[:600], y[:600])
    coef = clf.coef_.copy()
    scores = X[600:] @ coef[0] + clf.trained_intercept_
    assert clf.tune_threshold(X[600:], y[600:]) is clf
    assert np.array_equal(clf.coef_, coef)
    reached = clf.score(X[600:], y[600:])
    best = max(get_measure("f1").value(y[600:], scores - t) for t in np.r_[scores - 1e-9, scores + 1e-9])
    assert reached == pytest.approx(best, abs=1e-12)

    clf.tune_threshold(X[600:], y[600:], "recall_at_precision", {"precision": 0.8})
    predicted = clf.predict(X[600:])
    assert y[600:][predicted == 1].mean() >= 0.8
    assert clf.measure == "f1", "tune_threshold must not change parameters"
    k = MeasureClassifier("roc_auc").fit(X, y).tune_threshold(X, y, "precision_at_k", {"k": 25})
    assert k.predict(X).sum() == 25


def test_tune_threshold_checks_its_arguments(data):
    X, y = data
    clf = MeasureClassifier("f1").fit(X, y)
    before = clf.intercept_.copy()
    with pytest.raises(ValueError, match="expected the classes of the fit"):
        clf.tune_threshold(X, y + 5)
    with pytest.raises(ValueError, match="Did you mean 'f1'"):
        clf.tune_threshold(X, y, "f11")
    with pytest.raises(ValueError, match="labels"):
        clf.tune_threshold(X, y[:-1])
    assert np.array_equal(clf.intercept_, before)


@for_each("scale", [1e-6, 1 / 800, 0.5])
def test_relative_weights_do_not_blunt_the_threshold(data, scale):
    """Weights below 1 are no counts: they are brought to a mean of about 1 before a threshold asks how many rows there are."""
    X, y = data
    plain = MeasureClassifier("f1").fit(X, y)
    scaled = MeasureClassifier("f1").fit(X, y, np.full(len(y), scale))
    assert scaled.score(X, y) == pytest.approx(plain.score(X, y), abs=0.02)  # the mean is 1 up to a factor of sqrt(2)


def test_a_fit_whose_threshold_flags_nearly_nothing_gives_one_warning():
    """Labels that are mostly noise, and a few positives that stand out: a precision of 0.9 is kept by these alone."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((4000, 3)), rng.random(4000) < 0.3
    rare = np.flatnonzero(y)[:4]
    X[rare] += 8.0
    with pytest.warns(
        UserWarning, match="flags only . of .* positives .* at a recall of 0.1, the best possible is precision 0"
    ) as caught:
        clf = MeasureClassifier("recall_at_precision", {"precision": 0.9}, threshold="train", scaling="standard").fit(
            X, y
        )
    assert sum("flags only" in str(w.message) for w in caught) == 1
    assert clf.predict(X).sum() < 10
