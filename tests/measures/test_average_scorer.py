"""Scorers of averages over classes: in scikit-learn's searches, with its routing, and with every kind of estimator."""

import pickle
import warnings

import numpy as np
import pytest
import sklearn
from sklearn import metrics
from sklearn.datasets import load_iris, make_multilabel_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import UndefinedMetricWarning, UnsetMetadataPassedError
from sklearn.inspection import permutation_importance
from sklearn.linear_model import LogisticRegression, Perceptron
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score, cross_validate
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from cases import for_each
from scoreline.measures import all_measures, class_average, get_measure, get_scorer

AVERAGES = ["macro", "weighted", "micro"]
LOGISTIC = LogisticRegression(C=0.1)


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    return X[order, :2], np.array(["setosa", "versicolor", "virginica"])[y[order]]


@pytest.fixture(scope="module")
def labels():
    return make_multilabel_classification(150, 6, n_classes=4, n_labels=2, random_state=1)


def test_every_measure_scores_classes_and_labels(iris, labels):
    scorers = {(name, average): get_scorer(name, average=average) for name in all_measures() for average in AVERAGES}
    for X, y in (iris, labels):
        clf = OneVsRestClassifier(LOGISTIC).fit(X, y)
        scores, predicted = clf.decision_function(X), clf.predict(X)
        weight = np.random.default_rng(1).uniform(0.0, 2.0, len(y))
        for (name, average), score in scorers.items():
            response = scores if get_measure(name).uses_order else predicted
            assert score(clf, X, y) == class_average(name, y, response, average), (name, average)
            weighted = class_average(name, y, response, average, sample_weight=weight)
            assert score(clf, X, y, sample_weight=weight) == weighted, (name, average)
        named = {f"{name} {average}": score for (name, average), score in scorers.items()}
        found = cross_validate(clf, X, y, scoring=named, cv=3, error_score="raise")
        assert [name for name in named if not np.isfinite(found[f"test_{name}"]).all()] == []


def test_the_same_as_scikit_learns_scorers(iris, labels):
    X, y = iris
    theirs = {
        ("f1", "macro"): "f1_macro",
        ("f1", "micro"): "f1_micro",
        ("f1", "weighted"): "f1_weighted",
        ("jaccard", "macro"): "jaccard_macro",
        ("roc_auc", "macro"): "roc_auc_ovr",
        ("roc_auc", "weighted"): "roc_auc_ovr_weighted",
    }
    ours = {rival: get_scorer(name, average=average) for (name, average), rival in theirs.items()}
    # Without decision_function both look at probabilities.
    mine = cross_validate(GaussianNB(), X, y, scoring=ours, cv=4, error_score="raise")
    rivals = cross_validate(GaussianNB(), X, y, scoring=list(ours), cv=4, error_score="raise")
    for name in ours:
        np.testing.assert_allclose(mine[f"test_{name}"], rivals[f"test_{name}"], rtol=0, atol=1e-13)
    X, Y = labels
    for name, rival in (("roc_auc", "roc_auc"), ("average_precision", "average_precision"), ("f1", "f1_macro")):
        clf, score = OneVsRestClassifier(LOGISTIC), get_scorer(name, average="macro")
        got = cross_val_score(clf, X, Y, scoring=score, cv=3)
        np.testing.assert_allclose(got, cross_val_score(clf, X, Y, scoring=rival, cv=3), rtol=0, atol=1e-13)


@for_each(
    "clf",
    [
        MultiOutputClassifier(LOGISTIC),
        ClassifierChain(LOGISTIC),
        RandomForestClassifier(10, random_state=0),
        make_pipeline(StandardScaler(), OneVsRestClassifier(LOGISTIC)),
        MLPClassifier((4,), solver="lbfgs", max_iter=20, random_state=0),
    ],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_estimators_of_many_labels(clf, labels):
    X, Y = labels
    clf.fit(X, Y)
    if hasattr(clf, "decision_function"):
        scores = clf.decision_function(X)
    else:
        scores = clf.predict_proba(X)
        scores = np.column_stack([p[:, 1] for p in scores]) if isinstance(scores, list) else scores
    for average in AVERAGES:
        expected = metrics.average_precision_score(Y, scores, average=average)
        assert get_scorer("average_precision", average=average)(clf, X, Y) == pytest.approx(expected, abs=1e-13)
        expected = metrics.f1_score(Y, clf.predict(X), average=average)
        assert get_scorer("f1", average=average)(clf, X, Y) == pytest.approx(expected, abs=1e-13)


def test_two_labels_are_two_columns(labels):
    """scikit-learn's own scorers take the classes 0, 1 of two labels for those of a two-class problem."""
    X, Y = labels
    for clf in (OneVsRestClassifier(LOGISTIC), OneVsRestClassifier(GaussianNB()), MultiOutputClassifier(LOGISTIC)):
        clf.fit(X, Y[:, :2])
        values = [get_scorer("roc_auc", average=average)(clf, X, Y[:, :2]) for average in AVERAGES]
        assert np.isfinite(values).all()
        assert min(values) > 0.6


def test_a_label_that_is_missing_from_training(labels):
    X, Y = labels
    known = Y.copy()
    known[:, 1] = 0
    forest = RandomForestClassifier(10, random_state=0).fit(X, known)  # probabilities with one column for label 1
    values = class_average("roc_auc", Y, np.column_stack([p[:, -1] for p in forest.predict_proba(X)]), None)
    values[1] = 0.5  # it says the same of all rows
    assert get_scorer("roc_auc", average="macro")(forest, X, Y) == pytest.approx(values.mean(), abs=1e-15)


def test_two_classes_are_scored_as_scikit_learn_scores_them(iris):
    X, y = iris
    two = y != "setosa"
    X, y = X[two], y[two]
    for clf in (LOGISTIC, GaussianNB(), OneVsRestClassifier(LOGISTIC)):
        clf = clf.fit(X, y)
        for average in AVERAGES:
            assert get_scorer("roc_auc", average=average)(clf, X, y) == get_scorer("roc_auc")(clf, X, y)
            expected = metrics.f1_score(y, clf.predict(X), average=average)
            assert get_scorer("f1", average=average)(clf, X, y) == pytest.approx(expected, abs=1e-15)


def test_folds_without_a_class(iris):
    """Rows in the order of their classes: each fold holds one class that training has not seen, and no other."""
    X, y = iris
    order = np.argsort(y)
    X, y = X[order], y[order]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        values = cross_val_score(
            LOGISTIC, X, y, cv=KFold(3), scoring=get_scorer("f1", average="macro"), error_score="raise"
        )
    assert values.tolist() == [0.0, 0.0, 0.0]
    scored = np.r_[0:40, 50:90, 100:103]
    clf = LOGISTIC.fit(X[scored], y[scored])
    rest = np.r_[40:50, 90:100]  # no virginica
    with pytest.warns(UndefinedMetricWarning, match="class 'virginica'"):
        value = get_scorer("roc_auc", average="macro")(clf, X[rest], y[rest])
    area = [
        metrics.roc_auc_score(y[rest] == c, z)
        for c, z in zip(clf.classes_[:2], clf.decision_function(X[rest]).T, strict=False)
    ]
    assert value == pytest.approx(np.mean(area), abs=1e-15)


@for_each("average", AVERAGES)
def test_a_class_that_is_missing_from_training_is_ranked_by_chance(iris, average):
    X, y = iris
    known = y != "versicolor"
    clf = LOGISTIC.fit(X[known], y[known])
    z = clf.decision_function(X)
    scores = np.column_stack([-z, z, np.full(len(z), -np.abs(z).max())])
    Y = y[:, None] == np.array(["setosa", "virginica", "versicolor"])
    expected = metrics.roc_auc_score(Y, scores, average=average)
    assert get_scorer("roc_auc", average=average)(clf, X, y) == pytest.approx(expected, abs=1e-13)


def test_grid_search_over_the_inner_estimator(iris):
    X, y = iris
    grid = {"estimator__C": [1e-3, 1.0]}
    ours = GridSearchCV(OneVsRestClassifier(LOGISTIC), grid, scoring=get_scorer("f1", average="macro"), cv=3).fit(X, y)
    rival = GridSearchCV(OneVsRestClassifier(LOGISTIC), grid, scoring="f1_macro", cv=3).fit(X, y)
    np.testing.assert_allclose(
        ours.cv_results_["mean_test_score"], rival.cv_results_["mean_test_score"], rtol=0, atol=1e-14
    )
    assert ours.best_params_ == rival.best_params_
    assert ours.score(X, y) == get_scorer("f1", average="macro")(ours.best_estimator_, X, y)
    assert get_scorer("roc_auc", average="macro")(ours, X, y) > 0.7  # a search has the classes of its best


def test_weights_are_routed_where_they_are_asked_for(iris):
    X, y = iris
    weight = np.random.default_rng(2).integers(0, 3, len(y)).astype(float)
    with sklearn.config_context(enable_metadata_routing=True):
        clf = OneVsRestClassifier(LogisticRegression().set_fit_request(sample_weight=True))
        score = get_scorer("roc_auc", average="macro").set_score_request(sample_weight=True)
        plain = get_scorer("roc_auc", average="macro").set_score_request(sample_weight=False)
        folds = KFold(3, shuffle=True, random_state=0)
        params = {"sample_weight": weight}
        both = cross_validate(clf, X, y, scoring={"w": score, "1": plain}, cv=folds, params=params, error_score="raise")
        alone = cross_val_score(clf, X, y, scoring=score, cv=folds, params=params, error_score="raise")
        search = GridSearchCV(clf, {"estimator__C": [0.1, 1.0]}, scoring=score, cv=folds).fit(X, y, **params)
        unset = get_scorer("roc_auc", average="macro")
        with pytest.raises(UnsetMetadataPassedError, match="sample_weight"):
            cross_validate(clf, X, y, scoring=unset, cv=folds, params=params, error_score="raise")
    for k, (train, test) in enumerate(folds.split(X)):
        fitted = OneVsRestClassifier(LOGISTIC)
        fitted.estimators_ = [
            LogisticRegression().fit(X[train], y[train] == c, sample_weight=weight[train]) for c in np.unique(y)
        ]
        scores = np.column_stack([e.decision_function(X[test]) for e in fitted.estimators_])
        Y = y[test][:, None] == np.unique(y)
        assert both["test_w"][k] == pytest.approx(
            metrics.roc_auc_score(Y, scores, sample_weight=weight[test]), abs=1e-13
        )
        assert both["test_1"][k] == pytest.approx(metrics.roc_auc_score(Y, scores), abs=1e-13)
    np.testing.assert_array_equal(alone, both["test_w"])
    assert search.best_score_ >= alone.mean()


def test_several_scorers_share_weights_without_routing(iris):
    X, y = iris
    clf = LOGISTIC.fit(X, y)
    scoring = {"f1": get_scorer("f1", average="macro"), "area": get_scorer("roc_auc", average="macro")}
    found = permutation_importance(
        clf, X, y, scoring=scoring, n_repeats=2, random_state=0, sample_weight=np.ones(len(y))
    )
    assert found["f1"].importances_mean.max() > 0.1


def test_a_scorer_is_an_object_like_others(iris):
    X, y = iris
    score = get_scorer("fbeta", average="macro", beta=2.0)
    assert repr(score) == "get_scorer('fbeta', average='macro')"
    clf = LOGISTIC.fit(X, y)
    assert pickle.loads(pickle.dumps(score))(clf, X, y) == score(clf, X, y)
    expected = metrics.fbeta_score(y, clf.predict(X), beta=2.0, average="macro")
    assert score(clf, X, y) == pytest.approx(expected, abs=1e-15)
    assert "make_scorer" in repr(get_scorer("fbeta", beta=2.0))  # for two classes nothing has changed


def test_wrong_arguments_are_refused(iris, labels):
    X, y = iris
    with pytest.raises(ValueError, match="average='none' is unknown; expected one of 'macro', 'weighted', 'micro'"):
        get_scorer("f1", average="none")
    with pytest.raises(ValueError, match=r"two classes, got 3 labels; get_scorer\(..., average='macro'\) takes more"):
        get_scorer("f1")(LOGISTIC.fit(X, y), X, y)
    X, Y = labels
    with pytest.raises(TypeError, match="roc_auc needs scores: MultiOutputClassifier has no decision_function"):
        get_scorer("roc_auc", average="macro")(MultiOutputClassifier(Perceptron()).fit(X, Y), X, Y)
