"""roc_auc and accuracy against scikit-learn, with weights and ties; scorers; the catalog."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, balanced_accuracy_score, roc_auc_score
from sklearn.model_selection import cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from cases import for_each
from scoreline import list_measures, list_solvers
from scoreline.measures import Measure, all_measures, get_measure, get_scorer
from scoreline.measures.scorer import ScoreFunction
from scoreline.risks.registry import all_risks
from scoreline.solvers.registry import all_solvers
from tiers import examples


@st.composite
def scored_rows(draw):
    """Labels, scores with many ties, and weights of which some are zero."""
    n = draw(st.integers(2, 30))
    y = np.array(draw(st.lists(st.booleans(), min_size=n, max_size=n)))
    assume(y.any() and not y.all())
    level = st.one_of(st.integers(-3, 3).map(float), st.floats(-1e6, 1e6))
    z = np.array(draw(st.lists(level, min_size=n, max_size=n)))
    weight = np.array(
        draw(st.lists(st.one_of(st.just(0.0), st.just(1.0), st.floats(0.01, 10)), min_size=n, max_size=n))
    )
    assume(weight[y].any() and weight[~y].any())
    return y, z, weight


@examples(200)
@given(scored_rows())
def test_roc_auc_is_that_of_scikit_learn(rows):
    y, z, weight = rows
    measure = get_measure("roc_auc")
    # sums of 30 weights: rounding
    assert measure.value(y, z) == pytest.approx(roc_auc_score(y, z), abs=1e-13)
    assert measure.value(y, z, weight) == pytest.approx(roc_auc_score(y, z, sample_weight=weight), abs=1e-12)
    assert measure.value(np.where(y, 1, -1), z) == measure.value(y, z)


@examples(200)
@given(scored_rows())
def test_accuracy_is_that_of_scikit_learn(rows):
    y, z, weight = rows
    measure = get_measure("accuracy")
    assert measure.value(y, z) == pytest.approx(accuracy_score(y, z > 0), abs=1e-15)
    assert measure.value(y, z, weight) == pytest.approx(accuracy_score(y, z > 0, sample_weight=weight), abs=1e-13)


@examples(100)
@given(scored_rows(), st.sampled_from(sorted(all_measures())))
def test_integer_weights_are_repeats_and_zero_weights_are_absence(rows, name):
    y, z, weight = rows
    repeats = np.ceil(weight).astype(int)
    index = np.repeat(np.arange(len(y)), repeats)
    measure = get_measure(name)
    assert measure.value(y, z, repeats.astype(float)) == pytest.approx(measure.value(y[index], z[index]), abs=1e-13)
    present = weight > 0
    assert measure.value(y, z, weight) == pytest.approx(
        measure.value(y[present], z[present], weight[present]), abs=1e-13
    )


@for_each("name", sorted(all_measures()))
def test_range_and_perfection(name):
    measure = get_measure(name, {"alarms": 0.4} if name == "recall_at_alarms" else {})  # room for both positives
    low, high = measure.range
    y = np.array([1, 0, 1, 0, 0])
    assert measure.value(y, np.where(y, 1.0, -1.0)) == high
    wrong = measure.value(y, np.where(y, -1.0, 1.0))
    # Everything wrong is the worst for most; chance-corrected and curve measures reach their infimum on other data only.
    assert wrong == low or (name in {"average_precision", "kappa", "partial_roc_auc", "savings"} and low < wrong < 0.5)


def test_roc_auc_by_hand():
    y, z = np.array([1, 0, 1, 0]), np.array([2.0, 2.0, 1.0, 0.0])
    # pairs: (2, 2) tie 1/2, (2, 0) 1, (1, 2) 0, (1, 0) 1
    assert get_measure("roc_auc").value(y, z) == 2.5 / 4
    assert get_measure("roc_auc").value(y, np.zeros(4)) == 0.5
    # weights 1, 2, 3, 1: (1 + 1) / ... pair weights 2, 1, 6, 3 -> (1 + 1 + 3) / 12
    assert get_measure("roc_auc").value(y, z, np.array([1.0, 2.0, 3.0, 1.0])) == pytest.approx(5 / 12, abs=1e-16)


def test_roc_auc_without_a_class_is_nan():
    assert np.isnan(get_measure("roc_auc").value(np.ones(3), np.arange(3.0)))
    assert np.isnan(get_measure("roc_auc").value(np.zeros(3), np.arange(3.0)))


def test_roc_auc_sees_neighbouring_floats():
    a = 0.1 + 0.2
    assert get_measure("roc_auc").value(np.array([1, 0]), np.array([np.nextafter(a, 1), a])) == 1.0
    assert get_measure("roc_auc").value(np.array([1, 0]), np.array([np.nextafter(a, 0), a])) == 0.0


def test_the_threshold_of_a_ranking_measure_is_balanced_accuracy():
    tp, fp, fn, tn = 3.0, 1.0, 2.0, 8.0
    y = np.repeat([1, 0, 1, 0], [3, 1, 2, 8])
    predicted = np.repeat([1, 1, 0, 0], [3, 1, 2, 8])
    got = get_measure("roc_auc").threshold_objective(tp, fp, fn, tn)
    assert got == pytest.approx(balanced_accuracy_score(y, predicted), abs=1e-15)
    assert get_measure("roc_auc").threshold_objective(0.0, 0.0, 0.0, 4.0) == 0.5  # no positives: that half counts 0


@pytest.fixture(scope="module")
def data():
    X, y = make_classification(200, 6, weights=[0.7], flip_y=0.1, random_state=0)
    return X, np.array(["bad", "good"])[y]


@for_each("estimator", [LogisticRegression(), GaussianNB(), make_pipeline(StandardScaler(), LogisticRegression())])
def test_scorers_work_in_cross_val_score(data, estimator):
    X, y = data
    assert hasattr(estimator, "decision_function") != isinstance(estimator, GaussianNB)
    for name, rival in (("roc_auc", "roc_auc"), ("accuracy", "accuracy")):
        ours = cross_val_score(estimator, X, y == "good", scoring=get_scorer(name), cv=3)
        theirs = cross_val_score(estimator, X, y == "good", scoring=rival, cv=3)
        np.testing.assert_allclose(ours, theirs, atol=1e-13)  # the same counts, other sums
        # string labels: the larger class is positive
        np.testing.assert_allclose(cross_val_score(estimator, X, y, scoring=get_scorer(name), cv=3), ours, atol=1e-15)


def test_scorers_take_weights(data):
    X, y = data
    weight = np.random.default_rng(0).uniform(0, 3, len(y))
    for estimator in (LogisticRegression().fit(X, y), GaussianNB().fit(X, y)):
        score = get_scorer("accuracy")(estimator, X, y, sample_weight=weight)
        assert score == pytest.approx(accuracy_score(y, estimator.predict(X), sample_weight=weight), abs=1e-13)
        score = get_scorer("roc_auc")(estimator, X, y, sample_weight=weight)
        expected = roc_auc_score(y, estimator.predict_proba(X)[:, 1], sample_weight=weight)
        assert score == pytest.approx(expected, abs=1e-12)


def test_the_accuracy_scorer_counts_the_estimators_own_predictions(data):
    """An estimator that predicts at another threshold is judged by its predictions, not by decision_function > 0."""

    class Shifted(LogisticRegression):
        def predict(self, X):
            return self.classes_[(self.decision_function(X) > 1.5).astype(int)]

    X, y = data
    shifted = Shifted().fit(X, y)
    assert get_scorer("accuracy")(shifted, X, y) == pytest.approx(np.mean(shifted.predict(X) == y), abs=1e-15)
    assert np.mean(shifted.predict(X) == y) != np.mean(LogisticRegression().fit(X, y).predict(X) == y)


def test_scorers_take_objects_and_refuse_what_does_not_fit():
    measure = get_measure("roc_auc")
    assert "roc_auc" in repr(get_scorer(measure))
    words, scores = np.array(["no", "yes", "yes"]), np.array([0.0, 1.0, 2.0])
    function = ScoreFunction(get_measure("accuracy"))
    assert function(words, np.array(["no", "no", "yes"])) == pytest.approx(2 / 3)
    assert ScoreFunction(measure)(words, scores) == 1.0
    with pytest.raises(ValueError, match="two classes, got 3"):
        function(np.array([0, 1, 2]), np.array([0, 1, 2]))
    assert function(np.ones(2), np.ones(2)) == 1.0
    with pytest.raises(ValueError, match=r"measure='rocauc' is unknown.*Did you mean 'roc_auc'"):
        get_scorer("rocauc")
    with pytest.raises(ValueError, match=r"measure_params=\{'beta': 2\} does not fit measure 'roc_auc'"):
        get_scorer("roc_auc", beta=2)
    with pytest.raises(ValueError, match="a Measure object has its own"):
        get_scorer(measure, beta=2)


def test_list_measures():
    table = {info.name: info for info in list_measures()}
    assert list(table) == sorted(all_measures())
    assert {"roc_auc", "accuracy"} <= set(table)
    assert table["roc_auc"].risks[0] == "roc_area"
    assert table["accuracy"].risks[0] == "hinge"
    for name, info in table.items():
        measure = get_measure(name)
        assert isinstance(measure, Measure)
        assert info.summary == measure.summary
        assert info.range == measure.range
        assert info.risks == measure.risks
        assert set(info.risks) <= set(all_risks())
        supporting = [
            s
            for s, solver in all_solvers().items()
            if solver.trains(measure) and any(solver.serves(all_risks()[r]) for r in info.risks)
        ]
        assert list(info.solvers) == supporting
        assert info.solvers


def test_list_solvers():
    table = {info.name: info for info in list_solvers()}
    assert list(table) == sorted(all_solvers())
    assert {"logistic", "squared_hinge"} <= set(table["lbfgs"].risks)
    assert not {"hinge", "roc_area"} & set(table["lbfgs"].risks)
    assert {"hinge", "roc_area"} <= set(table["smoothed"].risks)
    assert not {"logistic", "squared_hinge"} & set(table["smoothed"].risks)
    for info in table.values():
        trained = {
            m.name
            for m in all_measures().values()
            if all_solvers()[info.name].trains(m) and set(m.risks) & set(info.risks)
        }
        assert set(info.measures) == trained
        assert "accuracy" in trained or info.name in ("amp", "spade", "stamp")  # made for other measures
        assert ("roc_auc" in info.measures) == all_solvers()[info.name].trains(get_measure("roc_auc"))
        assert "alpha" in info.alpha
        assert info.summary.endswith(".")
