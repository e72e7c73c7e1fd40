"""Promises of classifiers: about the final model, from rows that it has not seen, and never broken knowingly."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold, ShuffleSplit, StratifiedKFold, StratifiedShuffleSplit

from scoreline import MeasureClassifier, MeasureClassifierCV, ThresholdClassifier, check_promise, load_model
from scoreline.fitting import promise as promise_module
from scoreline.measures import get_measure, promised_threshold

RNG = np.random.default_rng(0)
X = RNG.standard_normal((3000, 3))
SIGN = np.where(X[:, 0] + 0.5 * RNG.standard_normal(3000) > 0.7, 1, -1)
POINTS = [
    ("recall_at_precision", {"precision": 0.8, "guarantee": 0.9}),
    ("precision_at_recall", {"recall": 0.7, "guarantee": 0.9}),
    ("tpr_at_fpr", {"fpr": 0.05, "guarantee": 0.9}),
    ("recall_at_alarms", {"alarms": 0.2, "guarantee": 0.9}),
    ("recall_at_cost", {"cost": 0.4, "cost_fn": 3.0, "guarantee": 0.9}),
]


def test_a_promise_is_that_of_the_held_out_rows(monkeypatch):
    given = []

    def recorded(measure, *rows, design):
        given.append((rows, design))
        return promised_threshold(measure, *rows, design=design)

    monkeypatch.setattr(promise_module, "promised_threshold", recorded)
    for name, params in POINTS:
        clf = MeasureClassifier(name, params, random_state=3, scaling="standard").fit(X, SIGN)
        order = np.random.RandomState(3).permutation(3000)
        if name in ("precision_at_recall", "tpr_at_fpr"):  # a rate of one class is proved by rows of this class
            order = order[SIGN[order] == (1 if name == "precision_at_recall" else -1)]
        held = np.zeros(3000, dtype=bool)
        held[order[: len(order) // 2]] = True
        plain = {key: value for key, value in params.items() if key != "guarantee"}
        alone = MeasureClassifier(name, plain, random_state=3, scaling="standard")
        alone.fit(X, SIGN, sample_weight=np.where(held, 0.0, 1.0))
        np.testing.assert_allclose(clf.coef_, alone.coef_, rtol=1e-9)
        raw = X @ clf.coef_[0] + clf.trained_intercept_
        (sign, scores, _), design = given.pop()
        np.testing.assert_array_equal(sign, SIGN[held])
        np.testing.assert_allclose(scores, raw[held], atol=1e-12)
        np.testing.assert_array_equal(design[0], SIGN[~held])
        moved = np.abs(design[1] - raw[~held])  # leave-one-out scores of the training rows
        assert 0.0 < np.median(moved) < 0.05
        expected = promised_threshold(get_measure(name, params), SIGN[held], raw[held], design=tuple(design))
        assert clf.promise_ == expected.promise, name
        assert clf.promise_.holds, name
        assert clf.intercept_[0] == pytest.approx(clf.trained_intercept_ - expected.threshold, abs=1e-9)
        assert clf.predict(X).min() < clf.predict(X).max()


def test_out_of_reach_nothing_is_flagged(tmp_path):
    point = {"precision": 0.95, "guarantee": 0.95}
    noise = np.where(np.random.default_rng(1).random(3000) < 0.2, 1, -1)
    for clf in (
        MeasureClassifier("recall_at_precision", point),
        ThresholdClassifier(LogisticRegression(), "recall_at_precision", point, random_state=0),
    ):
        with pytest.warns(UserWarning, match=r"not promised.*No row is flagged"):
            clf.fit(X, noise)
        assert not clf.promise_.holds
        assert (clf.predict(1e6 * X) == -1).all()
        assert clf.score(X, noise) == 0.0
    clf = MeasureClassifier("precision_at_recall", {"recall": 0.9999, "guarantee": 0.95})
    with pytest.warns(UserWarning, match="All rows are flagged"):
        clf.fit(X, noise)
    assert (clf.predict(X) == 1).all()
    clf.save(tmp_path / "model.npz")
    assert load_model(tmp_path / "model.npz").promise_ == clf.promise_


def test_a_threshold_classifier_keeps_the_model_that_was_tested():
    for name, params in POINTS:
        model = LogisticRegression().fit(X[:1500], SIGN[:1500])
        clf = ThresholdClassifier(model, name, params, cv="prefit", random_state=5).fit(X[1500:], SIGN[1500:])
        scores = model.predict_proba(X[1500:])[:, 1]
        expected = promised_threshold(get_measure(name, params), SIGN[1500:], scores, random_state=5)
        assert (clf.best_threshold_, clf.promise_) == expected
        own = ThresholdClassifier(LogisticRegression(), name, params, cv=0.4, random_state=5).fit(X, SIGN)
        assert own.promise_.holds
        assert not np.array_equal(own.estimator_.coef_, LogisticRegression().fit(X, SIGN).coef_)
    assert ThresholdClassifier(LogisticRegression(), "tpr_at_fpr").fit(X, SIGN).promise_ is None


def test_a_threshold_classifier_refuses_splits_that_prove_nothing():
    """Of several folds each has its own model, and stratified rows have a fixed share of positives."""
    precision, rate = POINTS[0], next(each for each in POINTS if each[0] == "tpr_at_fpr")
    assert precision[0] == "recall_at_precision"
    for cv, message in (
        (StratifiedKFold(5), "needs a single split, cv=.* has 5"),
        (KFold(2), "needs a single split, cv=.* has 2"),
        (StratifiedShuffleSplit(1, test_size=0.5), "stratified by class.*cv=0.5"),
    ):
        with pytest.raises(ValueError, match=message):
            ThresholdClassifier(LogisticRegression(), *precision, cv=cv).fit(X, SIGN)
    half = ShuffleSplit(1, test_size=0.5, random_state=0)
    for point, cv in (
        (precision, half),
        (precision, list(half.split(X))),
        (rate, StratifiedShuffleSplit(1, test_size=0.5, random_state=0)),
    ):
        clf = ThresholdClassifier(LogisticRegression(), *point, cv=cv).fit(X, SIGN)
        assert clf.promise_.holds
        train = next(iter(cv if isinstance(cv, list) else cv.split(X, SIGN)))[0]
        np.testing.assert_array_equal(clf.estimator_.coef_, LogisticRegression().fit(X[train], SIGN[train]).coef_)


def test_new_rows_give_a_promise_and_another_threshold_ends_it():
    clf = MeasureClassifier("roc_auc").fit(X[:1000], SIGN[:1000])
    assert not hasattr(clf, "promise_")
    clf.tune_threshold(X[1000:], SIGN[1000:], *POINTS[0])
    assert clf.promise_.holds
    clf.tune_threshold(X[1000:], SIGN[1000:], "f1")
    assert not hasattr(clf, "promise_")
    clf.set_params(measure=POINTS[2][0], measure_params=POINTS[2][1]).fit(X, SIGN)
    assert clf.promise_.holds
    clf.set_params(measure="f1", measure_params=None).fit(X, SIGN)
    assert not hasattr(clf, "promise_")


def test_what_cannot_promise_says_so():
    name, params = POINTS[0]
    lonely = np.where(
        np.arange(10) == np.random.RandomState(0).permutation(10)[0], 1, -1
    )  # a positive that is held out
    for error, message, call in (
        (
            ValueError,
            "MeasureClassifierCV cannot",
            lambda: MeasureClassifierCV(name, measure_params=params).fit(X, SIGN),
        ),
        (
            ValueError,
            "partial_fit cannot",
            lambda: MeasureClassifier(name, params, solver="spade").partial_fit(X, SIGN),
        ),
        (ValueError, "leave threshold='auto'", lambda: MeasureClassifier(name, params, threshold="none").fit(X, SIGN)),
        (ValueError, "of one class", lambda: MeasureClassifier(name, params, random_state=0).fit(X[:10], lonely)),
        (ValueError, "whole numbers", lambda: MeasureClassifier(name, params).fit(X, SIGN, np.full(3000, 0.5))),
    ):
        with pytest.raises(error, match=message):
            call()


def test_new_rows_test_a_promise(tmp_path):
    shift = np.where(np.random.default_rng(4).random(3000) < 0.5, SIGN, -1)  # half of the positives are gone
    for name, params in (POINTS[0], POINTS[4]):
        for clf in (
            MeasureClassifier(name, params, random_state=0),
            ThresholdClassifier(LogisticRegression(), name, params, random_state=0),
        ):
            clf.fit(X, SIGN)
            fresh = check_promise(clf, X, SIGN)
            assert fresh.constraint == clf.promise_.constraint
            assert not fresh.broken
        assert check_promise(clf, X, shift).broken
        twice = check_promise(clf, X, SIGN, np.full(3000, 2))
        assert twice.rows == 2 * fresh.rows
        assert twice.value == pytest.approx(fresh.value)
    clf = MeasureClassifier(*POINTS[0], random_state=0).fit(X, SIGN)
    clf.save(tmp_path / "model.npz")
    assert check_promise(load_model(tmp_path / "model.npz"), X, shift).broken
    with pytest.raises(ValueError, match="no promise"):
        check_promise(MeasureClassifier("f1").fit(X, SIGN), X, SIGN)
    with pytest.raises(ValueError, match="must be below 1"):
        check_promise(clf, X, SIGN, level=1.0)
