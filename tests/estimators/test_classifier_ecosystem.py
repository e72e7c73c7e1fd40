"""MeasureClassifier among scikit-learn's tools: pipelines, searches, frames, metadata routing."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from packaging.version import Version
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_classification
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from cases import for_each
from problems import overlapping_rows
from scoreline import MeasureClassifier
from scoreline.measures import get_scorer

NAMES = ["age", "income", "debts", "height", "children"]
POLARS = Version(sklearn.__version__) >= Version("1.9")  # since then scikit-learn reads the names of its columns
FRAMES = {"pandas": lambda X, names: pd.DataFrame(X, columns=names)}
FRAMES |= {"polars": lambda X, names: pl.DataFrame(X, schema=names)} if POLARS else {}


@pytest.fixture(scope="module")
def data():
    return overlapping_rows(200, 5, seed=1, separation=1.0)


@for_each("library", FRAMES)
@for_each("measure", ["roc_auc", "accuracy"])
def test_pipeline_of_frames(data, library, measure):
    X, y = data
    frame = FRAMES[library](X, NAMES)
    pipe = make_pipeline(StandardScaler().set_output(transform=library), MeasureClassifier(measure=measure)).fit(
        frame, y
    )
    clf = pipe[-1]
    assert clf.feature_names_in_.tolist() == NAMES
    plain = make_pipeline(StandardScaler(), MeasureClassifier(measure=measure)).fit(X, y)
    # The same numbers in column order: sums in another order over all iterations.
    np.testing.assert_allclose(clf.coef_, plain[-1].coef_, rtol=1e-6)
    assert np.array_equal(pipe.predict(frame), plain.predict(X))
    assert pipe.score(frame, y) == pytest.approx(plain.score(X, y), abs=1e-12)


@for_each("library", FRAMES)
def test_feature_names_are_set_and_checked(data, library):
    X, y = data
    make = FRAMES[library]
    clf = MeasureClassifier().fit(make(X, NAMES), y)
    assert clf.feature_names_in_.tolist() == NAMES
    with pytest.raises(ValueError, match="feature names should match those that were passed during fit"):
        clf.predict(make(X[:, ::-1], NAMES[::-1]))
    with pytest.raises(ValueError, match="feature names"):
        clf.decision_function(make(X, ["a", "b", "c", "d", "e"]))
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        clf.predict(X)
    clf.fit(X, y)
    assert not hasattr(clf, "feature_names_in_")


def test_grid_search_over_alpha(data):
    X, y = data
    alphas = [1e-4, 1e-2, 1.0]
    for measure in ("roc_auc", "accuracy"):
        ours = GridSearchCV(
            MeasureClassifier(measure=measure), {"alpha": alphas}, scoring=get_scorer(measure), cv=3
        ).fit(X, y)
        theirs = GridSearchCV(MeasureClassifier(measure=measure), {"alpha": alphas}, scoring=measure, cv=3).fit(X, y)
        assert not np.isnan(ours.cv_results_["mean_test_score"]).any()
        np.testing.assert_allclose(
            ours.cv_results_["mean_test_score"], theirs.cv_results_["mean_test_score"], atol=1e-13
        )  # the same counts
        assert ours.best_params_ == theirs.best_params_
        default = GridSearchCV(MeasureClassifier(measure=measure), {"alpha": alphas}, cv=3).fit(X, y)  # its own score
        np.testing.assert_allclose(
            default.cv_results_["mean_test_score"], ours.cv_results_["mean_test_score"], atol=1e-13
        )


@pytest.mark.slow
def test_grid_search_over_everything_by_name(data):
    X, y = data
    grid = [
        {"measure": ["roc_auc", "accuracy"], "scaling": [None, "maxabs"]},
        {"measure": ["accuracy"], "risk": ["hinge", "logistic"], "class_weight": [None, "balanced"]},
    ]
    search = GridSearchCV(MeasureClassifier(), grid, scoring="roc_auc", cv=2, error_score="raise").fit(X, y)
    assert (search.cv_results_["mean_test_score"] > 0.6).all()


def test_cross_val_score_and_predict(data):
    X, y = data
    scores = cross_val_score(MeasureClassifier(), X, y, cv=4, error_score="raise")
    assert scores.shape == (4,)
    rival = cross_val_score(MeasureClassifier(), X, y, cv=4, scoring="roc_auc")
    np.testing.assert_allclose(scores, rival, atol=1e-13)  # the same pairs
    decision = cross_val_predict(MeasureClassifier(), X, y, cv=4, method="decision_function")
    assert decision.shape == y.shape


@pytest.mark.slow
def test_several_processes_give_the_same_bits(data):
    X, y = data
    one = cross_val_score(MeasureClassifier(), X, y, cv=3)
    assert np.array_equal(cross_val_score(MeasureClassifier(), X, y, cv=3, n_jobs=2), one)


def test_more_than_two_classes_through_one_vs_rest():
    X, y = make_classification(300, 6, n_informative=4, n_classes=3, random_state=0)
    clf = OneVsRestClassifier(MeasureClassifier(scaling="standard")).fit(X, y)
    assert set(clf.predict(X)) == {0, 1, 2}
    assert clf.score(X, y) > 0.5


def test_calibration_gives_probabilities(data):
    X, y = data
    proba = CalibratedClassifierCV(MeasureClassifier(), cv=3).fit(X, y).predict_proba(X)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0, atol=1e-15)


def test_metadata_routing_of_weights_through_a_pipeline(data):
    X, y = data
    weight = np.random.default_rng(0).uniform(0.1, 3.0, len(y))
    with sklearn.config_context(enable_metadata_routing=True):
        clf = (
            MeasureClassifier(measure="accuracy")
            .set_fit_request(sample_weight=True)
            .set_score_request(sample_weight=True)
        )
        pipe = Pipeline([("scale", StandardScaler().set_fit_request(sample_weight=False)), ("clf", clf)])
        pipe.fit(X, y, sample_weight=weight)
        score = pipe.score(X, y, sample_weight=weight)
        unasked = Pipeline([("scale", StandardScaler()), ("clf", MeasureClassifier())])
        with pytest.raises((TypeError, ValueError), match="sample_weight"):
            unasked.fit(X, y, sample_weight=weight)
    scaled = StandardScaler().fit_transform(X)
    by_hand = MeasureClassifier(measure="accuracy").fit(scaled, y, sample_weight=weight)
    assert np.array_equal(pipe["clf"].coef_, by_hand.coef_)
    assert score == by_hand.score(scaled, y, weight)
    assert not np.array_equal(by_hand.coef_, MeasureClassifier(measure="accuracy").fit(scaled, y).coef_)


def test_weights_through_a_pipeline_the_old_way(data):
    X, y = data
    weight = np.random.default_rng(0).uniform(0.1, 3.0, len(y))
    pipe = make_pipeline(StandardScaler(), MeasureClassifier()).fit(X, y, measureclassifier__sample_weight=weight)
    by_hand = MeasureClassifier().fit(StandardScaler().fit_transform(X), y, weight)
    assert np.array_equal(pipe[-1].coef_, by_hand.coef_)


def test_params_and_repr():
    clf = MeasureClassifier(measure="accuracy", alpha=0.5)
    assert "measure='accuracy'" in repr(clf)
    assert clf.set_params(tol=0.1).get_params()["tol"] == 0.1
    with pytest.raises(ValueError, match="Invalid parameter"):
        clf.set_params(lam=1)
    with pytest.raises(TypeError):
        MeasureClassifier(lam=1)
