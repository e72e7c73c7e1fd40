"""MeasureClassifier for many classes and many labels, through scikit-learn's OneVsRestClassifier and MultiOutputClassifier."""

import re
import warnings
from pathlib import Path

import joblib
import numpy as np
import pytest
import sklearn
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_digits, make_classification, make_multilabel_classification
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score, cross_validate
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier

from cases import fewer, for_each
from scoreline import MeasureClassifier, MeasureClassifierCV
from scoreline.measures import all_measures, class_average, get_measure, get_scorer
from scoreline.operators import as_operator
from scoreline.runtime import parallel

MEASURES = sorted(all_measures())


def ours(measure="f1", **options):
    return MeasureClassifier(measure, **{"scaling": "standard", "alpha": 1e-2, "random_state": 0} | options)


@pytest.fixture(scope="module")
def classes():
    X, y = make_classification(240, 6, n_informative=4, n_classes=3, weights=[0.6, 0.3], random_state=0)
    return X, np.array(["rest", "some", "few"])[y]


@pytest.fixture(scope="module")
def labels():
    return make_multilabel_classification(240, 6, n_classes=4, n_labels=2, random_state=3)


@for_each("name", fewer(MEASURES, in_quick=["f1", "roc_auc"]))
@pytest.mark.filterwarnings("ignore:.*no threshold keeps")  # operating points that these few rows do not reach
def test_every_measure_is_trained_for_classes_and_labels(name, classes, labels):
    """The macro average of labels is the mean of what each label's own classifier scores: one problem a label."""
    scorers = {average: get_scorer(name, average=average) for average in ("macro", "weighted", "micro")}
    X, y = classes
    found = cross_validate(OneVsRestClassifier(ours(name)), X, y, scoring=scorers, cv=2, error_score="raise")
    assert np.isfinite([found[f"test_{average}"] for average in scorers]).all()
    X, Y = labels
    clf = OneVsRestClassifier(ours(name)).fit(X, Y)
    own = [inner.score(X, Y[:, j]) for j, inner in enumerate(clf.estimators_)]
    assert scorers["macro"](clf, X, Y) == pytest.approx(np.mean(own), abs=1e-13)
    single = [ours(name).fit(X, Y[:, j]) for j in range(Y.shape[1])]
    np.testing.assert_array_equal([e.coef_ for e in clf.estimators_], [e.coef_ for e in single])
    np.testing.assert_array_equal(clf.predict(X), np.column_stack([e.predict(X) for e in single]))


def test_predictions_of_classes_are_the_largest_decision_value(classes):
    X, y = classes
    clf = OneVsRestClassifier(ours()).fit(X, y)
    scores = np.column_stack([ours().fit(X, y == c).decision_function(X) for c in np.unique(y)])
    np.testing.assert_array_equal(clf.decision_function(X), scores)
    np.testing.assert_array_equal(clf.predict(X), np.unique(y)[scores.argmax(axis=1)])


@pytest.mark.slow
def test_logistic_loss_without_a_threshold_is_scikit_learns_one_vs_rest():
    """The recipe for argmax: decision values are log-odds of every class, so they can be compared."""
    X, y = load_digits(return_X_y=True)
    X = X[:600] / 16.0
    y = y[:600]
    recipe = MeasureClassifier(
        "accuracy", risk="logistic", threshold="none", alpha=1e-2, tol=1e-6, intercept_scaling=100.0
    )
    clf = OneVsRestClassifier(recipe).fit(X, y)
    rival = OneVsRestClassifier(LogisticRegression(C=1 / (600 * 1e-2), tol=1e-8, max_iter=1000)).fit(X, y)
    # Gaps of 1e-6 leave 1e-3 of coefficients; the intercept is penalised a ten-thousandth part.
    np.testing.assert_allclose(clf.decision_function(X), rival.decision_function(X), atol=1e-2)
    assert (clf.predict(X) == rival.predict(X)).mean() > 0.995


@pytest.mark.slow
def test_a_threshold_for_each_label_raises_macro_f1():
    X, Y = make_multilabel_classification(4000, 30, n_classes=12, n_labels=2, length=40, random_state=0)
    train, test = slice(0, 2000), slice(2000, None)
    found = {}
    for name, inner in (
        ("f1", ours(alpha=1e-3)),
        ("plain", ours("accuracy", risk="logistic", threshold="none", alpha=1e-3)),
    ):
        clf = OneVsRestClassifier(inner).fit(X[train], Y[train])
        found[name] = class_average("f1", Y[test], clf.predict(X[test]), "macro")
    assert found["f1"] > found["plain"] + 0.05  # docs/many_classes.md: 0.51 against 0.42


@pytest.mark.slow
def test_the_largest_probability_beats_the_largest_ranking_score():
    X, y = make_classification(
        3000, 20, n_informative=8, n_redundant=4, n_classes=5, weights=[0.6, 0.2, 0.1, 0.06, 0.04], flip_y=0.05, random_state=0
    )  # fmt: skip
    train, test = slice(0, 2000), slice(2000, None)
    clf = OneVsRestClassifier(ours("roc_auc", probability=True)).fit(X[train], y[train])
    by_score = (clf.predict(X[test]) == y[test]).mean()
    by_probability = (clf.classes_[clf.predict_proba(X[test]).argmax(axis=1)] == y[test]).mean()
    assert by_probability > by_score + 0.03  # docs/many_classes.md: 0.721 against 0.657
    raw = [inner.predict_proba(X[test])[:, 1] for inner in clf.estimators_]
    assert np.array_equal(np.argmax(raw, axis=0), clf.predict_proba(X[test]).argmax(axis=1))  # shares of their sum


def test_multi_output_trains_the_same_models(labels):
    X, Y = labels
    rest, output = (wrap(ours()).fit(X, Y) for wrap in (OneVsRestClassifier, MultiOutputClassifier))
    np.testing.assert_array_equal(rest.predict(X), output.predict(X))
    for average in ("macro", "weighted", "micro"):
        score = get_scorer("f1", average=average)
        assert score(rest, X, Y) == score(output, X, Y)
        values = cross_val_score(MultiOutputClassifier(ours()), X, Y, scoring=score, cv=2, error_score="raise")
        assert np.isfinite(values).all()
    with pytest.raises(TypeError, match="OneVsRestClassifier takes labels in columns too"):
        get_scorer("roc_auc", average="macro")(output, X, Y)


def test_multi_output_ranks_by_probabilities(labels):
    X, Y = labels
    output = MultiOutputClassifier(ours("roc_auc", probability=True)).fit(X, Y)
    rest = OneVsRestClassifier(ours("roc_auc")).fit(X, Y)
    score = get_scorer("roc_auc", average="macro")
    # Probabilities rise with the score: the same order, up to ties of rounding.
    assert score(output, X, Y) == pytest.approx(score(rest, X, Y), abs=1e-6)


@for_each("form", [sparse.csr_array, sparse.csc_matrix])
def test_sparse_rows_and_sparse_labels(form, classes, labels):
    for X, y in (classes, labels):
        X = np.where(np.abs(X) < 0.5, 0.0, X)
        dense = OneVsRestClassifier(ours(scaling="maxabs", tol=1e-4)).fit(X, y)
        thin = OneVsRestClassifier(ours(scaling="maxabs", tol=1e-4)).fit(form(X), y)
        # Fits proved to 1e-4 with sums in another order.
        np.testing.assert_allclose(thin.decision_function(form(X)), dense.decision_function(X), atol=2e-2)
        for measure in ("f1", "roc_auc"):
            score = get_scorer(measure, average="macro")
            assert score(thin, form(X), y) == pytest.approx(score(dense, X, y), abs=2e-2)
    thin = OneVsRestClassifier(ours(scaling="maxabs", tol=1e-4)).fit(form(X), sparse.csr_matrix(y))
    assert sparse.issparse(thin.predict(form(X)))
    assert get_scorer("f1", average="macro")(thin, form(X), sparse.csr_matrix(y)) == pytest.approx(
        class_average("f1", y, thin.predict(form(X)).toarray()), abs=1e-15
    )


def test_every_class_reads_the_one_X(classes, monkeypatch):
    X, y = classes
    X = np.ascontiguousarray(X)
    arguments = []

    def recording(X):
        arguments.append(X)
        return as_operator(X)

    monkeypatch.setattr("scoreline.operators.convert.as_operator", recording)
    OneVsRestClassifier(ours()).fit(X, y)
    assert len(arguments) == 3
    assert all(np.shares_memory(each, X) for each in arguments)


@pytest.mark.slow
def test_parameters_of_the_inner_classifier(classes):
    X, y = classes
    outer = clone(OneVsRestClassifier(ours())).set_params(estimator__alpha=0.5, estimator__measure="jaccard")
    assert outer.get_params()["estimator__alpha"] == 0.5
    assert {e.alpha for e in outer.fit(X, y).estimators_} == {0.5}
    assert {e.measure for e in outer.estimators_} == {"jaccard"}
    grid = {"estimator__alpha": [10.0, 1e-2], "estimator__measure": ["f1", "roc_auc"]}
    for average in ("macro", "micro"):
        search = GridSearchCV(
            OneVsRestClassifier(ours()), grid, scoring=get_scorer("f1", average=average), cv=2, error_score="raise"
        ).fit(X, y)
        assert np.isfinite(search.cv_results_["mean_test_score"]).all()
        assert search.best_estimator_.estimators_[0].alpha == search.best_params_["estimator__alpha"]


@for_each("measure", ["roc_auc", "balanced_accuracy"])
def test_alpha_is_chosen_for_each_class(measure, classes):
    X, y = classes
    inner = MeasureClassifierCV(measure, alphas=[10.0, 1e-1, 1e-3], cv=3, scaling="standard", random_state=0)
    clf = OneVsRestClassifier(inner).fit(X, y)
    alone = [clone(inner).fit(X, y == c) for c in np.unique(y)]
    assert [e.alpha_ for e in clf.estimators_] == [e.alpha_ for e in alone]
    np.testing.assert_array_equal(clf.decision_function(X), np.column_stack([e.decision_function(X) for e in alone]))
    assert get_scorer(measure, average="macro")(clf, X, y) > 0.5


def test_classes_of_one_row(classes):
    """A class of one row is trained; where a method needs two, the message says so."""
    X, y = classes
    rare = np.where(np.arange(len(y)) == 7, "unique", y)
    for name in fewer(MEASURES, in_quick=["f1", "roc_auc", "prbep"]):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.filterwarnings("ignore", ".*no threshold keeps")
            warnings.filterwarnings("ignore", "measure 'recall_at_.*flags only")  # few alarms leave little recall
            warnings.filterwarnings(
                "ignore", "Degenerate fit: all rows have the same score"
            )  # prbep says that of its flat model
            clf = OneVsRestClassifier(ours(name)).fit(X, rare)
        assert np.isfinite(clf.decision_function(X)).all()
        if get_measure(name).uses_order:
            assert np.isfinite(class_average(name, rare, clf.decision_function(X), None)).all()  # one row is enough
    with pytest.raises(ValueError, match="needs two rows of each class, got 1"):
        OneVsRestClassifier(ours(threshold="holdout")).fit(X, rare)
    with (
        pytest.warns(UserWarning, match="least populated class in y has only 1 member"),
        pytest.raises(ValueError, match="has no rows of class 1 to train on"),
    ):
        OneVsRestClassifier(MeasureClassifierCV("f1", cv=3)).fit(X, rare)


def test_folds_without_a_class_are_scored(classes):
    X, y = classes
    rare = np.where(np.arange(len(y)) == 7, "unique", y)
    for measure in ("f1", "roc_auc"):
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "The least populated class")
            warnings.simplefilter("ignore", UndefinedMetricWarning)  # two of three folds have no row to judge it by
            values = cross_val_score(
                OneVsRestClassifier(ours()),
                X,
                rare,
                cv=3,
                scoring=get_scorer(measure, average="macro"),
                error_score="raise",
            )
        assert np.isfinite(values).all()


def test_labels_that_all_rows_have_or_none(labels):
    X, Y = labels
    Y = Y.copy()
    Y[:, 1], Y[:, 2] = 0, 1
    with pytest.warns(UserWarning, match=r"Label (not 1|2) is present in all training examples") as caught:
        clf = OneVsRestClassifier(ours()).fit(X, Y)
    assert len(caught) == 2
    assert not clf.predict(X)[:, 1].any()
    assert clf.predict(X)[:, 2].all()
    assert get_scorer("f1", average="macro")(clf, X, Y) > 0.25
    with pytest.raises(ValueError, match="y has one class only"):
        MultiOutputClassifier(ours()).fit(X, Y)


def test_the_bare_classifier_points_to_one_vs_rest(classes, labels):
    X, y = classes
    with pytest.raises(
        ValueError, match=r"y has 3 classes\. Wrap the classifier in sklearn\.multiclass\.OneVsRestClassifier"
    ):
        ours().fit(X, y)


@pytest.mark.slow
def test_several_processes_give_the_same_bits_and_do_not_multiply_threads(classes, monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)  # joblib sets it for its processes where nobody has
    X, y = classes
    one = OneVsRestClassifier(ours()).fit(X, y)
    two = OneVsRestClassifier(ours(), n_jobs=2).fit(X, y)
    with joblib.parallel_config("threading", n_jobs=2):
        threads = OneVsRestClassifier(ours()).fit(X, y)
    for other in (two, threads):
        np.testing.assert_array_equal(other.decision_function(X), one.decision_function(X))
    cores, inner = joblib.cpu_count(), joblib.Parallel(n_jobs=2)(joblib.delayed(_threads)() for _ in range(2))
    assert all(count <= max(1, cores // 2) for count in inner)


def _threads():

    with parallel.thread_limit(None):
        return parallel.current_threads()


def test_weights_reach_every_class_by_routing(classes):
    X, y = classes
    repeats = np.random.default_rng(0).integers(0, 3, len(y))
    index = np.repeat(np.arange(len(y)), repeats)
    with sklearn.config_context(enable_metadata_routing=True):
        inner = ours("roc_auc", tol=1e-5, solver="smoothed").set_fit_request(sample_weight=True)
        weighted = OneVsRestClassifier(inner).fit(X, y, sample_weight=repeats.astype(float))
        repeated = OneVsRestClassifier(inner).fit(X[index], y[index])
        score = get_scorer("roc_auc", average="macro").set_score_request(sample_weight=True)
        found = cross_val_score(
            OneVsRestClassifier(inner), X, y, scoring=score, cv=3, params={"sample_weight": repeats.astype(float)}
        )
    assert np.isfinite(found).all()
    # Two fits of one objective, each proved to 1e-5.
    np.testing.assert_allclose(weighted.decision_function(X), repeated.decision_function(X), atol=5e-2)
    expected = class_average("roc_auc", y[index], repeated.decision_function(X[index]))
    assert score(weighted, X, y, sample_weight=repeats.astype(float)) == pytest.approx(expected, abs=2e-3)


@pytest.mark.slow
def test_the_blocks_of_the_page_run():
    page = (Path(__file__).parents[2] / "docs" / "many_classes.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert len(blocks) == 3
    names = {}
    for block in blocks:
        exec(compile(block, "many_classes.md", "exec"), names)
    assert len(names["each"].estimators_) == 6
    assert names["search"].best_score_ > 0.5
    assert (names["predicted"] == names["y"][1::2]).mean() > 0.9
