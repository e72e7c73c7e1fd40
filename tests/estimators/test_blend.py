"""Blend: cross-fitted scores, the linear model of them, its place in scikit-learn, and its errors."""

import pickle

import joblib
import numpy as np
import pytest
import sklearn
from scipy.special import logit
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import GroupKFold, StratifiedKFold, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import check_estimator

from scoreline import Blend, MeasureClassifier
from scoreline.measures import all_measures, best_threshold, get_measure
from scoreline.risks import SquaredRocAreaRisk

X, Y = make_classification(400, 6, n_informative=4, weights=[0.8], flip_y=0.05, random_state=0)
SIGN = np.where(Y > 0, 1, -1)
MEMBERS = [("logistic", LogisticRegression()), ("ridge", RidgeClassifier()), ("bayes", GaussianNB())]


def log_odds(probabilities):
    """Return the log-odds of probabilities of the 400 rows, with half a row of either class added."""
    rounding = 0.5 / len(Y)
    return logit((probabilities + rounding) / (1.0 + 2.0 * rounding))


def test_members_are_scored_by_models_that_have_not_seen_the_rows():
    clf = Blend(MEMBERS, cv=4).fit(X, Y)
    held = np.empty((400, 3))
    for train, test in StratifiedKFold(4).split(X, Y):
        logistic, ridge, bayes = (clone(model).fit(X[train], Y[train]) for _, model in MEMBERS)
        response = ridge.decision_function(X)
        held[test, 0] = log_odds(logistic.predict_proba(X[test])[:, 1])
        held[test, 1] = ((response - response.mean()) / response.std())[test]
        held[test, 2] = log_odds(bayes.predict_proba(X[test])[:, 1])
    auc = get_measure("roc_auc")
    assert clf.member_values_ == pytest.approx([auc.value(SIGN, each) for each in held.T])
    assert clf.names_ == ["logistic", "ridge", "bayes"]
    expected = [
        log_odds(LogisticRegression().fit(X, Y).predict_proba(X)[:, 1]),
        RidgeClassifier().fit(X, Y).decision_function(X),
    ]
    scores = clf.member_scores(X)
    np.testing.assert_allclose(scores[:, 0], expected[0])
    np.testing.assert_allclose(scores[:, 1], (expected[1] - expected[1].mean()) / expected[1].std())
    np.testing.assert_allclose(clf.decision_function(X), scores @ clf.blend_.coef_[0] + clf.blend_.intercept_[0])
    np.testing.assert_array_equal(clf.predict(X), clf.classes_[(clf.decision_function(X) > 0).astype(int)])
    assert clf.score(X, Y) == pytest.approx(auc.value(SIGN, clf.decision_function(X)))


def test_no_blend_on_a_grid_is_better_than_the_certified_one():
    """The objective is recomputed from the definition: alpha / 2 |w|^2 + risk, for members fitted elsewhere."""
    members = [(name, clone(each).fit(X[:200], Y[:200])) for name, each in MEMBERS[:2]]
    clf = Blend(members, risk="roc_area_squared", alphas=[0.1], cv="prefit", tol=1e-6).fit(X[200:], Y[200:])
    scores = clf.member_scores(X[200:])
    scaled = (scores - scores.mean(axis=0)) / scores.std(axis=0)
    risk = SquaredRocAreaRisk().prepare(SIGN[200:])

    def objective(w):
        return 0.05 * float(np.dot(w, w)) + risk.value(scaled @ w)

    steps = np.linspace(0.0, 2.0, 41)
    best = min(objective(np.array([a, b])) for a in steps for b in steps)
    own = objective(clf.blend_.coef_[0] * scores.std(axis=0))
    assert own == pytest.approx(clf.objective_, rel=1e-9)
    assert clf.lower_bound_ <= own <= best * (1.0 + 2e-6)
    assert clf.gap_ == pytest.approx(clf.objective_ - clf.lower_bound_)


def test_coefficients_are_not_negative_and_useless_members_get_little():
    against = RidgeClassifier().fit(X[:200], 1 - Y[:200])  # scores the wrong way round
    noise = DummyClassifier(strategy="prior").fit(X[:200], Y[:200])
    good = LogisticRegression().fit(X[:200], Y[:200])
    clf = Blend([("against", against), ("noise", noise), ("good", good)], cv="prefit").fit(X[200:], Y[200:])
    assert (clf.blend_.coef_ >= 0.0).all()
    np.testing.assert_allclose(clf.weights_, [0.0, 0.0, 1.0])
    assert clf.member_values_[0] < 0.5
    with pytest.warns(UserWarning, match="Degenerate"):
        all_wrong = Blend([("against", against)], cv="prefit").fit(X[200:], Y[200:])
    np.testing.assert_array_equal(all_wrong.weights_, [1.0])


def test_a_single_member_keeps_its_order():
    for name, model in MEMBERS:
        alone = Blend([(name, model)], cv=3).fit(X, Y)
        response = clone(model).fit(X, Y)
        response = response.predict_proba(X)[:, 1] if name != "ridge" else response.decision_function(X)
        assert alone.score(X, Y) == pytest.approx(get_measure("roc_auc").value(SIGN, response))
        np.testing.assert_allclose(alone.weights_, [1.0])


@pytest.mark.filterwarnings("ignore")  # operating points out of reach, few rows
def test_every_measure():
    members = [(name, clone(each).fit(X[:200], Y[:200])) for name, each in MEMBERS[:2]]
    for name, cls in all_measures().items():
        if not cls.research:
            clf = Blend(members, name, cv="prefit", alphas=[0.1]).fit(X[200:], Y[200:])
            assert (clf.blend_.coef_ >= 0.0).all(), name
            assert np.isfinite(clf.score(X[200:], Y[200:])), name


def test_count_based_measures_of_members_are_at_the_best_threshold():
    members = [(name, clone(each).fit(X[:200], Y[:200])) for name, each in MEMBERS[:2]]
    clf = Blend(members, "f1", cv="prefit").fit(X[200:], Y[200:])
    expected = [best_threshold(SIGN[200:], each, "f1").value for each in clf.member_scores(X[200:]).T]
    assert clf.member_values_ == pytest.approx(expected)


def test_members_of_the_folds_are_averaged_without_a_refit():
    clf = Blend(MEMBERS[:1], cv=3, refit=False).fit(X, Y)
    (models,) = clf.estimators_
    assert len(models) == 3
    scores = [log_odds(model.predict_proba(X)[:, 1]) for model in models]
    np.testing.assert_allclose(clf.member_scores(X)[:, 0], np.mean(scores, axis=0))
    single = Blend(MEMBERS[:2], cv=0.3, refit=False, random_state=0).fit(X, Y)
    assert [len(each) for each in single.estimators_] == [1, 1]
    with joblib.parallel_config("threading"):
        parallel = Blend(MEMBERS[:2], cv=0.3, refit=False, random_state=0, n_jobs=2).fit(X, Y)
    np.testing.assert_array_equal(single.decision_function(X), parallel.decision_function(X))


def test_weights_equal_repeated_rows_for_members_that_are_fitted():
    weight = np.random.default_rng(0).integers(1, 4, 200)
    members = [(name, clone(each).fit(X[:200], Y[:200])) for name, each in MEMBERS[:2]]
    rows = np.repeat(np.arange(200, 400), weight)
    # One alpha, because its folds would differ, and decision values, because log-odds round by the number of rows.
    clf = Blend(members, cv="prefit", alphas=[0.1], response_method="decision_function", tol=1e-6)
    weighted = clone(clf).set_params(estimators=members).fit(X[200:], Y[200:], sample_weight=weight)
    repeated = clf.fit(X[rows], Y[rows])
    assert weighted.member_values_ == pytest.approx(repeated.member_values_)
    assert weighted.objective_ == pytest.approx(repeated.objective_, abs=weighted.gap_ + repeated.gap_)


def test_weights_reach_the_members_that_take_them():
    weight = np.where(Y > 0, 3.0, 1.0)
    clf = Blend(MEMBERS, cv=2).fit(X, Y, sample_weight=weight)
    np.testing.assert_allclose(clf.named_estimators_["logistic"].coef_, LogisticRegression().fit(X, Y, weight).coef_)


def test_metadata_are_routed():
    weight, groups = np.where(Y > 0, 3.0, 1.0), np.arange(len(Y)) % 7
    with sklearn.config_context(enable_metadata_routing=True):
        model = LogisticRegression().set_fit_request(sample_weight=True)
        clf = Blend([("one", model)], cv=GroupKFold(3)).set_fit_request(sample_weight=True)
        clf.fit(X, Y, sample_weight=weight, groups=groups)
        np.testing.assert_allclose(clf.estimators_[0].coef_, LogisticRegression().fit(X, Y, weight).coef_)
    with pytest.raises(ValueError, match="enable_metadata_routing"):
        Blend(MEMBERS).fit(X, Y, groups=groups)


def test_labels_of_any_kind_and_probabilities():
    names = np.array(["no", "yes"])[Y]
    clf = Blend(MEMBERS, "gmean", cv=2, probability=True).fit(X, names)
    assert clf.classes_.tolist() == ["no", "yes"]
    assert set(clf.predict(X)) == {"no", "yes"}
    p = clf.predict_proba(X)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    order = np.argsort(clf.decision_function(X), kind="stable")
    assert (np.diff(p[order, 1]) >= 0.0).all()
    assert not hasattr(Blend(MEMBERS), "predict_proba")


def test_it_is_a_scikit_learn_estimator():
    clf = Blend(MEMBERS, "fbeta", {"beta": 2.0}, cv=3)
    copy = pickle.loads(pickle.dumps(clone(clf).fit(X, Y)))
    np.testing.assert_array_equal(copy.predict(X), clf.fit(X, Y).predict(X))
    assert len(cross_val_score(clf, X, Y, cv=2)) == 2
    assert clf.n_features_in_ == 6
    clf.set_params(logistic__C=0.1, bayes="drop", ridge=DecisionTreeClassifier(max_depth=2))
    assert clf.get_params()["logistic__C"] == 0.1
    assert clf.fit(X, Y).names_ == ["logistic", "ridge"]
    assert clf.named_estimators_["ridge"].get_depth() == 2


@pytest.mark.parametrize("method", ["predict", "decision_function", "member_scores", "score"])
def test_before_fit_every_method_says_that_it_is_not_fitted(method):
    arguments = (X, Y) if method == "score" else (X,)
    with pytest.raises(NotFittedError, match="not fitted"):
        getattr(Blend(MEMBERS), method)(*arguments)


OWN_THRESHOLD = "predict uses the threshold that serves the measure, which is not a probability of 1/2."
FOLDS = "Folds of weighted and of repeated rows differ, so their cross-fitted scores do."


@pytest.mark.slow
@pytest.mark.parametrize("probability", [False, True])
def test_it_passes_the_checks_of_scikit_learn(probability):
    reasons = {f"check_sample_weight_equivalence_on_{kind}_data": FOLDS for kind in ("dense", "sparse")}
    if probability:
        reasons["check_classifiers_train"] = OWN_THRESHOLD
    clf = Blend([("logistic", LogisticRegression()), ("ridge", RidgeClassifier())], cv=2, probability=probability)
    results = check_estimator(clf, expected_failed_checks=reasons, on_fail=None, on_skip=None)
    wrong = {each["check_name"]: each["exception"] for each in results if each["status"] == "failed"}
    assert not wrong


def test_errors_say_what_to_do():
    cases = {
        "must be a list of": lambda: Blend(LogisticRegression()).fit(X, Y),
        "different strings without": lambda: Blend([("a", GaussianNB()), ("a", GaussianNB())]).fit(X, Y),
        "no parameters of Blend": lambda: Blend([("cv", GaussianNB())]).fit(X, Y),
        "has no classifier": lambda: Blend([("a", "drop")]).fit(X, Y),
        "has no fit": lambda: Blend([("a", "bayes")]).fit(X, Y),
        "needs fitted members": lambda: Blend(MEMBERS, cv="prefit").fit(X, Y),
        "expected the same two": lambda: Blend(
            [("a", GaussianNB().fit(X, Y)), ("b", GaussianNB().fit(X, Y + 1))], cv="prefit"
        ).fit(X, Y),
        "cv=1.5 must be a share": lambda: Blend(MEMBERS, cv=1.5).fit(X, Y),
        "Only binary": lambda: Blend(MEMBERS).fit(X, np.arange(400) % 3),
        "training rows of one class": lambda: Blend(MEMBERS, cv=[(np.flatnonzero(Y == 0), np.arange(9))]).fit(X, Y),
        "response_method": lambda: Blend(MEMBERS, response_method="scores").fit(X, Y),
        "is unknown": lambda: Blend(MEMBERS, "f2").fit(X, Y),
        "Blend": lambda: Blend(MEMBERS, "recall_at_precision", {"guarantee": 0.9}).fit(X, Y),
    }
    for message, call in cases.items():
        with pytest.raises((ValueError, TypeError, NotFittedError), match=message):
            call()
    infinite = MeasureClassifier("roc_auc").fit(X, Y)
    infinite.intercept_[:] = np.inf
    with pytest.raises(ValueError, match="not finite"):
        Blend([("infinite", infinite)], cv="prefit").fit(X, Y)
