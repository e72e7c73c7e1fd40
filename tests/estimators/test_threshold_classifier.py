"""ThresholdClassifier: its threshold against brute force, its place in scikit-learn, and its errors."""

import pickle

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import GroupKFold, StratifiedKFold, cross_val_predict, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from scoreline import CountMeasure, MeasureClassifier, ThresholdClassifier
from scoreline.measures import all_measures, best_threshold, get_measure, robust_threshold

X, Y = make_classification(400, 6, n_informative=4, weights=[0.8], flip_y=0.05, random_state=0)
SIGN = np.where(Y > 0, 1, -1)


@pytest.mark.filterwarnings("ignore:measure")
def test_the_threshold_is_that_of_cross_fitted_scores():
    model = LogisticRegression()
    probabilities = cross_val_predict(model, X, Y, cv=5, method="predict_proba")[:, 1]
    decisions = cross_val_predict(model, X, Y, cv=5, method="decision_function")
    for name in ("f1", "mcc", "roc_auc", "recall_at_precision"):
        found = ThresholdClassifier(model, name, threshold="exact").fit(X, Y)
        expected = best_threshold(SIGN, probabilities, name)
        assert found.best_threshold_ == pytest.approx(expected.threshold, abs=1e-12), name
        if name != "roc_auc":
            assert found.best_score_ == pytest.approx(expected.value), name
    robust = robust_threshold(SIGN, decisions, get_measure("f1")).threshold
    by_decision = ThresholdClassifier(model, "f1", response_method="decision_function").fit(X, Y)
    assert by_decision.best_threshold_ == pytest.approx(robust, abs=1e-9)
    # Logits of probabilities are decision values, so both responses say the same.
    by_probability = ThresholdClassifier(model, "f1").fit(X, Y)
    assert by_probability.best_threshold_ == pytest.approx(1.0 / (1.0 + np.exp(-robust)), abs=1e-9)
    np.testing.assert_array_equal(by_probability.predict(X), by_decision.predict(X))


@pytest.mark.filterwarnings("ignore:measure")
def test_every_measure_and_every_kind_of_classifier():
    profit = CountMeasure(lambda tp, fp, fn, tn: 5.0 * tp - fp, name="profit")
    for measure in [*all_measures(), profit]:
        clf = ThresholdClassifier(GaussianNB(), measure, cv=2)
        clf.fit(X, Y)
        assert clf.score(X, Y) == pytest.approx(
            get_measure(measure).value(
                SIGN, clf.predict_proba(X)[:, 1] - (0 if get_measure(measure).uses_order else clf.best_threshold_)
            )
        ), measure
    models = [RidgeClassifier(), RandomForestClassifier(10, random_state=0), MeasureClassifier("roc_auc")]
    models += [make_pipeline(StandardScaler(), LogisticRegression()), CalibratedClassifierCV(RidgeClassifier(), cv=2)]
    names = np.array(["no", "yes"])[Y]
    for model in models:
        clf = ThresholdClassifier(model, "gmean", cv=2).fit(X, names)
        response = clf.predict_proba(X)[:, 1] if hasattr(clf, "predict_proba") else clf.decision_function(X)
        np.testing.assert_array_equal(clf.predict(X) == "yes", response > clf.best_threshold_)
        assert clf.n_features_in_ == 6


def test_prefit_and_a_single_split_keep_their_model():
    model = LogisticRegression().fit(X[:200], Y[:200])
    clf = ThresholdClassifier(model, "f1", cv="prefit", threshold="exact").fit(X[200:], Y[200:])
    assert clf.estimator_ is model
    held = model.predict_proba(X[200:])[:, 1]
    assert clf.best_threshold_ == best_threshold(SIGN[200:], held, "f1").threshold
    single = ThresholdClassifier(LogisticRegression(), cv=0.3, refit=False, random_state=0).fit(X, Y)
    refitted = ThresholdClassifier(LogisticRegression(), cv=0.3, random_state=0).fit(X, Y)
    assert single.best_threshold_ == refitted.best_threshold_
    assert not np.array_equal(single.estimator_.coef_, refitted.estimator_.coef_)
    np.testing.assert_array_equal(refitted.estimator_.coef_, LogisticRegression().fit(X, Y).coef_)


def test_values_of_all_thresholds_are_kept_if_asked_for():
    weight = np.random.default_rng(0).integers(1, 4, len(Y)).astype(float)
    assert not hasattr(ThresholdClassifier(LogisticRegression(), "f1").fit(X, Y), "cv_results_")
    for measure in ("f1", "roc_auc"):
        clf = ThresholdClassifier(LogisticRegression(), measure, threshold="exact", store_cv_results=True)
        found = clf.fit(X, Y, weight).cv_results_
        thresholds, scores = found["thresholds"], found["scores"]
        assert (np.diff(thresholds) > 0).all()
        # The best threshold lies between two scores, and flags the rows above the lower one.
        best = thresholds[np.argmax(scores)]
        assert best == thresholds[thresholds <= clf.best_threshold_].max()
        if measure == "f1":
            assert scores.max() == pytest.approx(clf.best_score_)
    assert not hasattr(clf.set_params(store_cv_results=False).fit(X, Y), "cv_results_")


@pytest.mark.parametrize("package", ["lightgbm", "xgboost"])
def test_boosted_trees(package):
    module = pytest.importorskip(package)
    settings = {"n_estimators": 10, "n_jobs": 1, "random_state": 0}
    trees = module.LGBMClassifier(verbose=-1, **settings) if package == "lightgbm" else module.XGBClassifier(**settings)
    for measure, params in (("f1", None), ("tpr_at_fpr", {"fpr": 0.2, "guarantee": 0.9})):
        clf = ThresholdClassifier(trees, measure, params, cv=0.4 if params else 3, random_state=0).fit(X, Y)
        assert not hasattr(trees, "feature_importances_") or package == "xgboost"  # the estimator itself stays unfitted
        np.testing.assert_array_equal(clf.predict(X), clf.predict_proba(X)[:, 1] > clf.best_threshold_)
        np.testing.assert_array_equal(clf.predict_proba(X), clf.estimator_.predict_proba(X))
        assert (clf.promise_ is not None) == (params is not None)
    model = clone(trees).fit(X[:200], Y[:200])
    before = model.predict_proba(X)
    prefit = ThresholdClassifier(model, "f1", cv="prefit", threshold="exact").fit(X[200:], Y[200:])
    assert prefit.estimator_ is model
    np.testing.assert_array_equal(model.predict_proba(X), before)
    assert prefit.best_threshold_ == best_threshold(SIGN[200:], before[200:, 1], "f1").threshold


def test_weights_reach_the_estimator_and_the_threshold():
    weight = np.random.default_rng(0).integers(1, 4, len(Y)).astype(float)
    model = LogisticRegression()
    clf = ThresholdClassifier(model, "f1", threshold="exact").fit(X, Y, sample_weight=weight)
    np.testing.assert_allclose(clf.estimator_.coef_, LogisticRegression().fit(X, Y, weight).coef_)
    scores = np.empty(len(Y))
    for train, test in StratifiedKFold(5).split(X, Y):
        scores[test] = LogisticRegression().fit(X[train], Y[train], weight[train]).predict_proba(X[test])[:, 1]
    assert clf.best_threshold_ == pytest.approx(best_threshold(SIGN, scores, "f1", weight).threshold, abs=1e-12)


def test_metadata_are_routed():
    weight, groups = np.where(Y > 0, 3.0, 1.0), np.arange(len(Y)) % 7
    with sklearn.config_context(enable_metadata_routing=True):
        model = LogisticRegression().set_fit_request(sample_weight=True)
        clf = ThresholdClassifier(model, "f1", cv=GroupKFold(3)).set_fit_request(sample_weight=True)
        clf.fit(X, Y, sample_weight=weight, groups=groups)
        np.testing.assert_allclose(clf.estimator_.coef_, LogisticRegression().fit(X, Y, weight).coef_)
    with pytest.raises(ValueError, match="enable_metadata_routing"):
        ThresholdClassifier(LogisticRegression()).fit(X, Y, groups=groups)


def test_it_is_a_scikit_learn_estimator():
    clf = ThresholdClassifier(LogisticRegression(), "fbeta", {"beta": 2.0}, cv=3)
    copy = pickle.loads(pickle.dumps(clone(clf).fit(X, Y)))
    np.testing.assert_array_equal(copy.predict(X), clf.fit(X, Y).predict(X))
    assert len(cross_val_score(clf, X, Y, cv=2)) == 2
    assert not hasattr(ThresholdClassifier(RidgeClassifier()), "predict_proba")


OWN_THRESHOLD = "predict uses the threshold that serves the measure, which is not a probability of 1/2."
FOLDS = "Folds of weighted and of repeated rows differ, so their cross-fitted scores do."


@pytest.mark.slow
def test_it_passes_the_checks_of_scikit_learn():
    reasons = {"check_classifiers_train": OWN_THRESHOLD}
    reasons |= {f"check_sample_weight_equivalence_on_{kind}_data": FOLDS for kind in ("dense", "sparse")}
    clf = ThresholdClassifier(LogisticRegression(), cv=2)
    failed = check_estimator(clf, expected_failed_checks=reasons, on_fail=None, on_skip=None)
    wrong = {each["check_name"]: each["exception"] for each in failed if each["status"] == "failed"}
    assert not wrong


def test_an_operating_point_out_of_reach_is_told():
    noise = np.random.default_rng(0).standard_normal((200, 2))
    y = np.arange(200) % 10 == 0
    with pytest.warns(UserWarning, match="no threshold keeps precision >= 0.9"):
        ThresholdClassifier(LogisticRegression(), "recall_at_precision").fit(noise, y)


def test_errors_say_what_to_do():
    good = LogisticRegression()
    cases = {
        "cv='prefit' needs a fitted": lambda: ThresholdClassifier(good, cv="prefit").fit(X, Y),
        "refit=False needs a single": lambda: ThresholdClassifier(good, refit=False).fit(X, Y),
        "cv=1.5 must be a share": lambda: ThresholdClassifier(good, cv=1.5).fit(X, Y),
        "Only binary": lambda: ThresholdClassifier(good).fit(X, np.arange(400) % 3),
        "is for count-based": lambda: ThresholdClassifier(good, "roc_auc", threshold="robust").fit(X, Y),
        "'best' is unknown": lambda: ThresholdClassifier(good, threshold="best").fit(X, Y),
        "is unknown": lambda: ThresholdClassifier(good, "f2").fit(X, Y),
        "has no fit": lambda: ThresholdClassifier("logistic").fit(X, Y),
    }
    for message, call in cases.items():
        with pytest.raises((ValueError, TypeError), match=message):
            call()
    with pytest.raises(AttributeError, match="has no predict_proba"):
        ThresholdClassifier(RidgeClassifier(), response_method="predict_proba").fit(X, Y)
