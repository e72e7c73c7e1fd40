"""The search over costs: it finds what helps, keeps the plain fit where nothing does, and says what it did."""

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from cases import for_each
from scoreline import MeasureClassifier, list_solvers
from scoreline.io import make_imbalanced
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


@for_each("seed", [0, 1])
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
    """Gaussian classes of equal spread: log-odds are linear, so plain logistic regression is right for any threshold."""
    rng = np.random.default_rng(1)
    y = (rng.random(4000) < 0.3).astype(int)
    X = rng.standard_normal((4000, 2)) + y[:, None]
    assert MeasureClassifier("accuracy", solver="cost_search").fit(X, y).cost_ == 1.0


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


def test_auto_chooses_it_for_count_based_measures_only():
    X, y = two_kinds(n=500)
    assert MeasureClassifier("gmean").fit(X, y).solver_ == "cost_search"
    assert MeasureClassifier("f1", risk="logistic").fit(X, y).solver_ == "newton", (
        "a risk that was asked for is trained"
    )
    assert MeasureClassifier("roc_auc").fit(X, y).solver_ == "smoothed"


@for_each("name", ["f1", "mcc", "gmean", "recall_at_precision"])
def test_the_error_of_the_gain_is_that_of_resampled_rows(name):
    rng = np.random.default_rng(5)
    n, measure = 2000, get_measure(name, {"precision": 0.5} if name == "recall_at_precision" else None)
    sign = np.where(rng.random(n) < 0.2, 1, -1)
    old = sign + 1.5 * rng.standard_normal(n) - 1.0
    new = old + 0.3 * rng.standard_normal(n)

    def value(decision, rows):
        truth, predicted = sign[rows] > 0, decision[rows] > 0
        counts = [(truth == t) & (predicted == q) for t, q in ((1, 1), (0, 1), (1, 0), (0, 0))]
        return float(measure.robust_value(*(c.sum() for c in counts)))

    gain, error = cost_search.paired_gain(measure, sign, np.ones(n), new > 0, old > 0)
    assert gain == pytest.approx(value(new, slice(None)) - value(old, slice(None)), abs=1e-12)
    resampled = [value(new, rows) - value(old, rows) for rows in rng.integers(0, n, (1000, n))]
    # 1000 resamples know a deviation to 2 %; the linearisation costs a few more, where the value bends within one
    # deviation (the chance to keep a constraint does) up to a third.
    assert error == pytest.approx(np.std(resampled), rel=0.35 if name == "recall_at_precision" else 0.15)
    doubled = cost_search.paired_gain(measure, sign, np.full(n, 2.0), new > 0, old > 0)
    repeated = cost_search.paired_gain(measure, *(np.repeat(a, 2) for a in (sign, np.ones(n), new > 0, old > 0)))
    np.testing.assert_allclose(doubled, repeated, rtol=1e-12)


def test_plugin_is_logistic_regression_with_the_best_threshold():
    X, y = two_kinds(n=1000)
    plugin = MeasureClassifier("f1", solver="plugin").fit(X, y)
    same = MeasureClassifier("f1", solver="lbfgs", risk="logistic").fit(X, y)
    assert plugin.risk_ == "logistic"
    # Two certified minima of the same J lie within each other's gaps.
    assert abs(plugin.objective_ - same.objective_) <= max(plugin.gap_, same.gap_)
    with pytest.raises(ValueError, match="does not minimise"):
        MeasureClassifier("f1", solver="plugin", risk="hinge").fit(X, y)


class Interrupting:
    """A callback that presses Ctrl-C in the first iteration of one of the fits."""

    def __init__(self, fit):
        self.fit, self.fits = fit, 0

    def __call__(self, progress):
        self.fits += progress.iteration == 1
        if self.fits == self.fit:
            raise KeyboardInterrupt


def digits():
    X, digit = load_digits(return_X_y=True)
    return X[::2] / 16.0, (digit[::2] == 1).astype(int)


def test_ctrl_c_in_the_second_fit_keeps_the_plain_model():
    X, y = digits()
    settings = {"measure": "gmean", "alpha": 1e-2, "random_state": 0}
    assert MeasureClassifier(solver="cost_search", **settings).fit(X, y).cost_ > 1.0, (
        "otherwise this test shows nothing"
    )
    callback = Interrupting(fit=2)
    clf = MeasureClassifier(solver="cost_search", solver_params={"callbacks": [callback]}, **settings)
    with pytest.raises(KeyboardInterrupt):
        clf.fit(X, y)
    assert callback.fits == 2
    assert clf.status_ == "interrupted"
    plain = MeasureClassifier(solver="plugin", **settings).fit(X, y)
    assert clf.cost_ == 1.0
    assert np.array_equal(clf.coef_, plain.coef_)
    assert np.array_equal(clf.intercept_, plain.intercept_), "its threshold is that of held-out rows, too"
    assert clf.objective_ == plain.objective_
    assert np.array_equal(clf.predict(X), plain.predict(X))


def test_ctrl_c_in_the_third_fit_keeps_the_better_of_the_first_two():
    X, y = digits()
    callback = Interrupting(fit=3)
    clf = MeasureClassifier("gmean", solver="cost_search", alpha=1e-2, solver_params={"callbacks": [callback]})
    with pytest.raises(KeyboardInterrupt):
        clf.fit(X, y)
    assert clf.status_ == "interrupted"
    assert clf.cost_ == pytest.approx(np.sum(y == 0) / np.sum(y == 1), rel=1e-15)  # the balanced fit: one division
    assert clf.objective(X, y) == pytest.approx(clf.objective_, rel=1e-10)  # the same sums from unwrapped coefficients


def test_ctrl_c_in_the_first_fit_leaves_a_usable_model():
    X, y = digits()
    clf = MeasureClassifier("gmean", solver="cost_search", solver_params={"callbacks": [Interrupting(fit=1)]})
    with pytest.raises(KeyboardInterrupt):
        clf.fit(X, y)
    assert clf.status_ == "interrupted"
    assert clf.cost_ == 1.0
    assert np.isfinite(clf.decision_function(X)).all()


@for_each("measure", ["f1", "gmean"])
@for_each("tol", [1e-2, 1e-6])
def test_integer_weights_equal_repeated_rows(measure, tol):
    X, y = two_kinds(n=1500, seed=3)
    k = np.random.default_rng(3).integers(0, 4, len(y))
    rows = np.repeat(np.arange(len(y)), k)
    weighted = MeasureClassifier(measure, solver="cost_search", tol=tol).fit(X, y, k)
    repeated = MeasureClassifier(measure, solver="cost_search", tol=tol).fit(X[rows], y[rows])
    # The same steps but for the order of sums: rounding times the condition of the Hessian.
    assert weighted.cost_ == pytest.approx(repeated.cost_, rel=1e-6)
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-6)
    np.testing.assert_allclose(weighted.intercept_, repeated.intercept_, rtol=1e-6)


def test_random_state_does_not_matter_up_to_a_thousand_features():
    X, y = two_kinds(n=1500, seed=4)
    fits = [MeasureClassifier("gmean", solver="cost_search", random_state=s).fit(X, y) for s in (0, 1, 2, None)]
    for clf in fits[1:]:
        assert clf.cost_ == fits[0].cost_
        assert np.array_equal(clf.coef_, fits[0].coef_)
        assert np.array_equal(clf.intercept_, fits[0].intercept_)


def test_random_state_repeats_the_probes_of_many_features(monkeypatch):
    monkeypatch.setattr("scoreline.solvers.common.hessian.MAX_FEATURES", 2)
    X, y = two_kinds(n=600, seed=5)
    fits = [MeasureClassifier("gmean", solver="cost_search", random_state=s).fit(X, y) for s in (0, 0, 1)]
    assert np.array_equal(fits[0].coef_, fits[1].coef_)
    assert fits[0].intercept_ == fits[1].intercept_
    assert fits[0].intercept_ != fits[2].intercept_, "other probes, other left-out scores"


def test_a_gain_within_its_error_changes_nothing(monkeypatch):
    X, digit = load_digits(return_X_y=True)
    y = (digit == 1).astype(int)
    clf = MeasureClassifier("gmean", solver="cost_search", alpha=1e-3)
    assert clf.fit(X / 16.0, y).cost_ > 1.0
    gain = cost_search.paired_gain
    monkeypatch.setattr(cost_search, "paired_gain", lambda *rows: (gain(*rows)[0], 2.0 * abs(gain(*rows)[0])))
    assert clf.fit(X / 16.0, y).cost_ == 1.0


def test_a_given_cost_is_one_fit_with_that_weight_of_positives():
    X, y = two_kinds(2000)
    given = MeasureClassifier("f1", solver="cost_search", solver_params={"cost": 3.0}).fit(X, y)
    weighted = MeasureClassifier("f1", risk="logistic", solver="newton", class_weight={0: 1.0, 1: 3.0}).fit(X, y)
    assert given.cost_ == 3.0
    np.testing.assert_allclose(given.coef_, weighted.coef_, rtol=1e-6)
    assert given.n_passes_ < MeasureClassifier("f1", solver="cost_search").fit(X, y).n_passes_


@for_each("cost", [0.0, -1.0, "high"])
def test_a_cost_must_be_a_positive_number(cost):
    X, y = two_kinds(200)
    with pytest.raises(ValueError, match="cost"):
        MeasureClassifier("f1", solver="cost_search", solver_params={"cost": cost}).fit(X, y)
