"""The search over costs: it finds what helps, keeps the plain fit where nothing does, and says what it did."""

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from scoreline import MeasureClassifier, list_solvers
from scoreline.data import make_imbalanced
from scoreline.measures import get_measure
from scoreline.solvers import cost_search


def two_kinds(n=6000, seed=0):
    """5 % positives of two kinds on opposite sides: the plain fit follows the frequent kind only."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 4))
    y = (rng.random(n) < 0.05).astype(int)
    rare = rng.random(n) < 0.4
    X[(y == 1) & ~rare, 0] += 2.5
    X[(y == 1) & rare, 1] += 1.5
    X[(y == 1) & rare, 0] -= 1.0
    return X, y


@pytest.mark.parametrize("seed", [0, 1])
def test_it_chooses_a_cost_for_the_geometric_mean_and_gains_on_new_rows(seed):
    """Digit 1 against the rest, 10 % positive: one and two points on these splits."""
    X, digit = load_digits(return_X_y=True)
    y = (digit == 1).astype(int)
    train, test, y_train, y_test = train_test_split(X / 16.0, y, test_size=0.5, stratify=y, random_state=seed)
    search = MeasureClassifier("gmean", solver="cost_search", alpha=1e-3, random_state=0).fit(train, y_train)
    plain = MeasureClassifier("gmean", solver="plugin", alpha=1e-3).fit(train, y_train)
    assert search.cost_ > 1.0
    assert plain.cost_ == 1.0
    assert search.score(test, y_test) > plain.score(test, y_test)


def test_the_plain_fit_stays_where_costs_do_not_help():
    """Gaussian classes of equal spread: log-odds are linear, so plain logistic regression is right for any cut."""
    rng = np.random.default_rng(1)
    y = (rng.random(4000) < 0.3).astype(int)
    X = rng.standard_normal((4000, 2)) + y[:, None]
    chosen = [MeasureClassifier("accuracy", solver="cost_search", random_state=s).fit(X, y).cost_ for s in range(5)]
    assert chosen.count(1.0) >= 3


def test_thin_evidence_falls_back_to_plug_in():
    rng = np.random.default_rng(2)
    X, y = rng.standard_normal((200, 3)), np.zeros(200, dtype=int)
    y[:5] = 1
    X[:5] += 1.0
    search = MeasureClassifier("f1", solver="cost_search").fit(X, y)
    plain = MeasureClassifier("f1", solver="plugin").fit(X, y)
    assert search.cost_ == 1.0
    assert search.intercept_[0] - search.trained_intercept_ == pytest.approx(
        plain.intercept_[0] - plain.trained_intercept_, abs=0.05
    )


def test_the_result_is_certified_and_repeatable():
    X, y = make_imbalanced(n_samples=3000, positive_share=0.05, random_state=4)
    fits = [
        MeasureClassifier("f1", solver="cost_search", scaling="standard", random_state=s).fit(X, y) for s in (0, 0, 1)
    ]
    assert np.array_equal(fits[0].coef_, fits[1].coef_)
    assert fits[0].intercept_ == fits[1].intercept_
    for clf in fits:
        assert clf.status_ == "converged"
        assert clf.lower_bound_ <= clf.objective_
        assert clf.objective(X, y) == pytest.approx(clf.objective_, rel=1e-10)  # the cost is part of J


def test_weights_and_zero_weight_rows():
    X, y = two_kinds(n=2000)
    weight = np.ones(len(y))
    weight[::7] = 0.0
    X_wild = X.copy()
    X_wild[::7] *= 100.0
    one, other = (MeasureClassifier("f1", solver="cost_search", random_state=0).fit(M, y, weight) for M in (X, X_wild))
    assert one.cost_ == other.cost_
    np.testing.assert_allclose(one.coef_, other.coef_, rtol=1e-9)


def test_ranking_measures_are_refused_with_what_to_use():
    with pytest.raises(ValueError, match=r"does not train for measure 'roc_auc'.*solver='auto'"):
        MeasureClassifier("roc_auc", solver="cost_search").fit(np.eye(4), [0, 1, 0, 1])
    info = {i.name: i for i in list_solvers()}["cost_search"]
    assert "f1" in info.measures
    assert "roc_auc" not in info.measures


def test_auto_does_not_choose_it():
    X, y = two_kinds(n=500)
    assert MeasureClassifier("f1").fit(X, y).solver_ == "lbfgs"


def test_the_gain_is_judged_as_resampling_rows_would():
    rng = np.random.default_rng(5)
    n = 400
    sign = np.where(rng.random(n) < 0.2, 1, -1)
    old = sign + 1.5 * rng.standard_normal(n)
    measure = get_measure("f1")
    weight = np.ones(n)
    agreement = 0
    for trial in range(20):
        new = old + 0.3 * rng.standard_normal(n) + 0.02 * trial * (sign > 0)
        gains = []
        for _ in range(300):
            rows = rng.integers(0, n, n)
            gains.append(measure.value(sign[rows], new[rows]) - measure.value(sign[rows], old[rows]))
        slow = np.mean(gains) > np.std(gains)
        fast = cost_search._gain_is_clear(measure, sign, weight, new, old, np.random.RandomState(trial))
        agreement += slow == fast
    # Two random judgements of the same quantity differ only where the gain is close to its standard error.
    assert agreement >= 17


def test_plugin_is_logistic_regression_with_the_cut():
    X, y = two_kinds(n=1000)
    plugin = MeasureClassifier("f1", solver="plugin").fit(X, y)
    same = MeasureClassifier("f1", solver="lbfgs", risk="logistic").fit(X, y)
    assert plugin.risk_ == "logistic"
    assert np.array_equal(plugin.coef_, same.coef_)
    with pytest.raises(ValueError, match="does not minimise"):
        MeasureClassifier("f1", solver="plugin", risk="hinge").fit(X, y)
