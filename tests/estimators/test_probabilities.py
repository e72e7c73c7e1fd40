"""Probabilities: a sigmoid of left-out scores that never changes a ranking, checked by other ways to the same numbers."""

import warnings
from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.sparse.linalg import aslinearoperator
from scipy.special import expit, log_expit
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import GroupKFold, StratifiedKFold

from cases import fewer, for_each
from problems import overlapping_rows
from scoreline import MeasureClassifier, MeasureClassifierCV, list_measures, list_solvers, load_model
from scoreline.fitting.sigmoid import fit_robust_sigmoid, fit_sigmoid, gain_over_constant
from scoreline.measures import RankingMeasure, get_measure
from scoreline.measures.registry import all_measures
from tiers import examples, tiered

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
MEASURES = [info.name for info in list_measures()]
MEASURE = {info.name: "roc_auc" if "roc_auc" in info.measures else info.measures[0] for info in list_solvers()}


def problem(n=300, p=6, seed=0):
    return overlapping_rows(n, p, seed)


def with_probability(measure="roc_auc", **options):
    return MeasureClassifier(measure, **{"probability": True, "scaling": "standard", "random_state": 0, **options})


def scores(n=200, seed=0, slope=2.0):
    rng = np.random.default_rng(seed)
    z = rng.standard_normal(n)
    return np.where(rng.random(n) < expit(slope * z - 1.0), 1, -1), z


def loss(sign, z, weight, slope, offset):
    """Platt's loss, written down once more."""
    n_positive, n_negative = weight[sign > 0].sum(), weight[sign < 0].sum()
    target = np.where(sign > 0, (n_positive + 1) / (n_positive + 2), 1 / (n_negative + 2))
    odds = slope * z + offset
    return -(weight * (target * log_expit(odds) + (1 - target) * log_expit(-odds))).sum() / weight.sum()


@for_each("seed", fewer(range(5), in_quick=[0]))
def test_the_sigmoid_is_the_one_of_the_largest_likelihood(seed):
    """Against Nelder and Mead, who know no gradients, and against scikit-learn's regression on every row twice."""
    sign, z = scores(seed=seed)
    weight = np.random.default_rng(seed).integers(1, 4, len(z)).astype(float)
    found = fit_sigmoid(sign, z, weight)
    simplex = minimize(
        lambda ab: loss(sign, z, weight, *ab), [1.0, 0.0], method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-14}
    )
    np.testing.assert_allclose([found.slope, found.offset], simplex.x, rtol=1e-5, atol=1e-6)
    n_positive, n_negative = weight[sign > 0].sum(), weight[sign < 0].sum()
    target = np.where(sign > 0, (n_positive + 1) / (n_positive + 2), 1 / (n_negative + 2))
    rows, labels = np.concatenate([z, z]).reshape(-1, 1), np.repeat([1, 0], len(z))
    twice = LogisticRegression(C=1e12, solver="newton-cholesky", tol=1e-12).fit(
        rows, labels, np.concatenate([weight * target, weight * (1 - target)])
    )
    np.testing.assert_allclose([found.slope, found.offset], [twice.coef_[0, 0], twice.intercept_[0]], rtol=1e-6)


def test_weights_are_repeats_and_units_do_not_matter():
    sign, z = scores()
    times = np.random.default_rng(0).integers(0, 4, len(z))
    one, other = fit_sigmoid(sign, z, times.astype(float)), fit_sigmoid(np.repeat(sign, times), np.repeat(z, times))
    np.testing.assert_allclose(one[:2], other[:2], rtol=1e-7)
    plain = fit_sigmoid(sign, z)
    for unit, shift in ((1e-200, 0.0), (1e150, 0.0), (3.0, 1e4)):
        moved = fit_sigmoid(sign, unit * z + shift)
        np.testing.assert_allclose(
            moved.slope * (unit * z + shift) + moved.offset, plain.slope * z + plain.offset, atol=1e-6
        )


def test_scores_that_separate_that_mislead_that_are_equal():
    sign = np.repeat([1, -1], [10, 30])
    found = fit_sigmoid(sign, 1.0 * sign)
    np.testing.assert_allclose(found.probability(np.array([-1.0, 1.0]))[:, 1], [1 / 32, 11 / 12], rtol=1e-6)
    for z in (-1.0 * sign, np.zeros(40), np.full(40, 7.0)):
        flat = fit_sigmoid(sign, z)
        assert flat.slope > 0.0
        assert not flat.ranks
        assert flat.probability(z)[:, 1].mean() == pytest.approx(0.25, abs=0.03)  # the targets draw it to the middle


@examples(50)
@given(st.integers(2, 60), st.integers(0, 1000), st.floats(-300, 300))
def test_any_scores_give_a_rising_finite_sigmoid(n, seed, exponent):
    rng = np.random.default_rng(seed)
    sign = np.where(rng.random(n) < 0.3, 1, -1)
    sign[:2] = 1, -1
    z = rng.choice(rng.standard_normal(4), n) * 10.0 ** min(exponent, 150)
    found = fit_sigmoid(sign, z)
    assert found.slope > 0.0
    assert np.isfinite(found[:2]).all()
    P = found.probability(z)
    assert ((P >= 0) & (P <= 1)).all()
    np.testing.assert_allclose(P.sum(axis=1), 1.0, rtol=1e-15)


@for_each("measure", fewer(MEASURES, in_quick=["roc_auc", "f1", "prbep"]))
def test_every_measure_has_probabilities_that_rank_as_its_scores(measure):
    X, y = problem()
    clf = with_probability(measure).fit(X, y)
    P, z = clf.predict_proba(X), clf.decision_function(X)
    order = np.argsort(z, kind="stable")
    gaps = np.diff(z[order]) > 1e-12 * np.abs(z).max()
    assert (np.diff(P[order, 1])[gaps] > 0).all()
    np.testing.assert_allclose(P.sum(axis=1), 1.0, rtol=1e-15)
    np.testing.assert_allclose(np.log(P), clf.predict_log_proba(X), rtol=1e-9, atol=1e-12)
    for name, kind in all_measures().items():
        if issubclass(kind, RankingMeasure):
            own = get_measure(name)
            assert own.value(y > 0, P[:, 1]) == own.value(y > 0, z), name
    plain = with_probability(measure, probability=False).fit(X, y)
    np.testing.assert_array_equal(plain.predict(X), clf.predict(X))
    np.testing.assert_array_equal(plain.coef_, clf.coef_)


@for_each("solver", fewer(MEASURE, in_quick=["smoothed", "amp", "moments", "spade"]))
def test_every_solver_has_probabilities(solver):
    X, y = problem()
    clf = with_probability(MEASURE[solver], solver=solver, alpha=0.1, tol=0.1).fit(X, y)
    assert clf.calibration_[0] > 0.0
    nothing = log_loss(y, np.full(len(y), y.mean()))
    assert log_loss(y, clf.predict_proba(X)) < nothing + (1e-6 if solver == "excessive_gap" else 0.0)  # flat there


@for_each("measure", fewer(["roc_auc", "prbep", "average_precision"], in_quick=["roc_auc"]))
def test_scores_come_from_fits_without_their_rows(measure):
    """Five fits of copies of their rows, and the sigmoid of their scores, to the accuracy of fits proved within 1e-5."""
    X, y = problem()
    risk = "prbep" if measure == "prbep" else "roc_area"
    clf = with_probability(measure, tol=1e-5, scaling=None, risk=risk).fit(X, y)
    z = np.empty(len(y))
    for train, test in StratifiedKFold(5, shuffle=True, random_state=0).split(X, y):
        part = MeasureClassifier(measure, tol=1e-5, random_state=0, threshold="none", risk=risk).fit(X[train], y[train])
        z[test] = (X[test] - X[train].mean(axis=0)) @ part.coef_[0]  # these risks do not care for a shift
    found = fit_sigmoid(np.where(y > 0, 1, -1), z)
    expected = [found.slope, found.offset - found.slope * float(X.mean(axis=0) @ clf.coef_[0])]
    np.testing.assert_allclose(clf.calibration_, expected, rtol=0.02, atol=0.02)


@for_each(
    "estimator, measure", tiered(product([MeasureClassifier, MeasureClassifierCV], ["roc_auc", "prbep"]), strength=1)
)
def test_features_far_from_the_origin_do_not_matter_to_a_ranking(estimator, measure):
    """A shift of a feature moves the scores of each fold's model by another amount; probabilities and cut must not see it."""
    X, y = problem(1000)
    risk = {"roc_auc": "roc_area", "prbep": "prbep"}[measure]
    options = {"tol": 1e-6, "probability": True, "random_state": 0, "risk": risk}
    near, far = (estimator(measure, **options).fit(X + shift, y) for shift in (0.0, 100.0))
    np.testing.assert_allclose(far.predict_proba(X + 100.0), near.predict_proba(X), atol=5e-3)
    assert np.mean(far.predict(X + 100.0) == near.predict(X)) > 0.99


@pytest.mark.slow
def test_nothing_to_learn_is_not_called_certain():
    """As many features as rows, and labels at random: training scores separate the classes, left-out ones do not."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((200, 150)), rng.random(200) < 0.3
    for measure in ("roc_auc", "accuracy", "f1"):
        P = (
            with_probability(measure, alpha=1e-2, scaling=None)
            .fit(X, y)
            .predict_proba(rng.standard_normal((500, 150)))[:, 1]
        )
        assert abs(P.mean() - 0.3) < 0.1
        assert P.std() < 0.1


@pytest.mark.slow
def test_true_probabilities_are_found():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20_000, 4))
    truth = expit(X @ [1.0, -2.0, 0.5, 0.0] - 2.0)
    y = rng.random(20_000) < truth
    for measure in ("roc_auc", "f1", "prbep", "gmean", "accuracy"):  # f1: amp with a cost, gmean: cost_search
        P = with_probability(measure).fit(X, y).predict_proba(X)[:, 1]
        assert np.abs(P - truth).mean() < 0.01


@for_each("risk", ["logistic", "squared_hinge"])
def test_curved_losses_need_no_further_fit(risk):
    X, y = problem()
    passes = [with_probability("accuracy", risk=risk, probability=flag).fit(X, y).n_passes_ for flag in (False, True)]
    assert passes[1] == passes[0]  # the threshold has them already
    times = np.random.default_rng(0).integers(1, 4, len(y))
    one = with_probability("accuracy", risk=risk, tol=1e-8).fit(X, y, times)
    other = with_probability("accuracy", risk=risk, tol=1e-8).fit(np.repeat(X, times, 0), np.repeat(y, times))
    np.testing.assert_allclose(one.calibration_, other.calibration_, rtol=1e-5)


@for_each("measure", fewer(["roc_auc", "accuracy", "f1"], in_quick=["roc_auc"]))
def test_the_search_has_the_scores_already(measure):
    X, y = problem()
    options = {"alphas": [1e-1, 1e-3], "scaling": "standard", "random_state": 0}
    plain = MeasureClassifierCV(measure, **options).fit(X, y)
    clf = MeasureClassifierCV(measure, **options, probability=True).fit(X, y)
    assert (clf.cv_passes_, clf.alpha_) == (plain.cv_passes_, plain.alpha_)
    if measure != "f1":  # whole fits a fold: probabilities are those of the final fit
        assert clf.n_passes_ == plain.n_passes_
    assert not hasattr(plain, "predict_proba")
    own = with_probability(measure, alpha=clf.alpha_, risk=clf.risk_, solver=clf.solver_).fit(X, y)
    np.testing.assert_allclose(clf.predict_proba(X), own.predict_proba(X), atol=0.06)
    assert log_loss(y, clf.predict_proba(X)) < log_loss(y, np.full(len(y), y.mean()))


def test_present_only_when_asked_for(tmp_path):
    X, y = problem()
    clf = MeasureClassifier().fit(X, y)
    assert not hasattr(clf, "predict_proba")
    assert not hasattr(clf, "predict_log_proba")
    with pytest.raises(AttributeError) as error:
        clf.predict_proba(X)
    assert "probability=True" in str(error.value)
    clf.set_params(probability=True).fit(X, y)
    clf.save(tmp_path / "model.npz")
    np.testing.assert_array_equal(load_model(tmp_path / "model.npz").predict_proba(X), clf.predict_proba(X))
    MeasureClassifierCV(alphas=[1e-2], cv=3, probability=True).fit(X, y).save(tmp_path / "model.npz")
    assert load_model(tmp_path / "model.npz").predict_proba(X).shape == (len(y), 2)
    clf.set_params(probability=False).fit(X, y)
    assert not hasattr(clf, "calibration_")
    assert clone(clf).probability is False


def test_a_new_threshold_does_not_move_probabilities():
    X, y = problem()
    clf = with_probability("f1").fit(X, y)
    before = clf.predict_proba(X)
    clf.tune_threshold(X, y, "recall_at_precision")
    np.testing.assert_array_equal(clf.predict_proba(X), before)


@pytest.mark.slow
def test_storages_agree():
    X, y = problem()
    for measure in ("roc_auc", "accuracy"):
        dense = with_probability(measure, scaling=None, tol=1e-6).fit(X, y)
        for rows in (sp.csr_matrix(X), aslinearoperator(X)):
            other = with_probability(measure, scaling=None, tol=1e-6).fit(rows, y)
            np.testing.assert_allclose(other.predict_proba(X), dense.predict_proba(X), atol=2e-3)


def test_weights_and_rows_of_weight_zero():
    X, y = problem()
    weight = np.where(np.arange(len(y)) % 3 == 0, 0.0, 1.0)
    one = with_probability("roc_auc", tol=1e-5).fit(X, y, weight)
    other = with_probability("roc_auc", tol=1e-5).fit(X[weight > 0], y[weight > 0])
    np.testing.assert_allclose(one.predict_proba(X), other.predict_proba(X), atol=1e-3)


def test_refusals_and_warnings():
    X, y = problem()
    with pytest.raises(ValueError, match="probability='yes' must be True or False"):
        with_probability(probability="yes").fit(X, y)
    with pytest.raises(ValueError, match="probability='yes' must be True or False"):
        MeasureClassifierCV(probability="yes").fit(X, y)
    with pytest.raises(ValueError, match="two rows of each class"):
        with_probability(scaling=None).fit(X[:5], [0, 0, 0, 0, 1])
    with pytest.raises(ValueError, match="which a stream does not have"):
        MeasureClassifier(solver="moments", probability=True).partial_fit(X, y)
    rng = np.random.default_rng(1)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with_probability("accuracy").fit(rng.standard_normal((60, 50)), np.arange(60) % 2)
    assert all(w.filename == __file__ for w in caught), [w.filename for w in caught]


@pytest.mark.slow
def test_as_good_as_scikit_learn_around_the_same_classifier():
    X, y = load_breast_cancer(return_X_y=True)
    train, test = np.arange(len(y)) % 2 == 0, np.arange(len(y)) % 2 == 1
    own = with_probability("roc_auc").fit(X[train], y[train]).predict_proba(X[test])
    around = CalibratedClassifierCV(with_probability("roc_auc", probability=False), ensemble=False).fit(
        X[train], y[train]
    )
    assert log_loss(y[test], own) < log_loss(y[test], around.predict_proba(X[test])) + 0.02


def test_an_interrupted_fit_has_no_probabilities_of_an_earlier_one():
    X, y = problem()
    clf = with_probability("roc_auc").fit(X, y)

    def stop(progress):
        raise KeyboardInterrupt

    clf.set_params(solver_params={"callbacks": [stop]})
    with pytest.raises(KeyboardInterrupt):
        clf.fit(1000.0 * X, y)
    with pytest.raises(NotFittedError, match="interrupted"):
        clf.predict_proba(X)
    plain = MeasureClassifier().fit(X, y).set_params(probability=True)
    with pytest.raises(NotFittedError, match="fit it again"):
        plain.predict_proba(X)


def test_too_few_rows_leave_the_earlier_model():
    X, y = problem()
    clf = with_probability("roc_auc").fit(X, y)
    before = clf.coef_.copy(), clf.calibration_.copy()
    with pytest.raises(ValueError, match="two rows of each class"):
        clf.fit(X, np.arange(len(y)) == 5)
    np.testing.assert_array_equal(clf.coef_, before[0])
    np.testing.assert_array_equal(clf.calibration_, before[1])


@for_each("measure", ["roc_auc", "f1", "gmean"])
def test_groups_are_kept_together_for_probabilities(measure):
    """Ten near-copies of each row: folds that part them would be far too sure."""
    rng = np.random.default_rng(0)
    base, label = rng.standard_normal((60, 30)), rng.random(60) < 0.4
    X, y = np.repeat(base, 10, 0) + 1e-3 * rng.standard_normal((600, 30)), np.repeat(label, 10)
    groups = np.repeat(np.arange(60), 10)
    clf = MeasureClassifierCV(measure, alphas=[1e-3], cv=GroupKFold(5), probability=True, random_state=0).fit(
        X, y, groups=groups
    )
    P = clf.predict_proba(rng.standard_normal((500, 30)))[:, 1]
    assert log_loss(rng.random(500) < 0.4, P) < 0.9


def test_one_number_and_tables_of_decision_values():
    X, y = problem()
    clf = with_probability("f1").fit(X, y)
    z = clf.decision_function(X)
    assert clf.probability_of(z[3]) == pytest.approx(clf.predict_proba(X)[3, 1], rel=1e-12)
    table = clf.probability_of(z[:10].reshape(2, 5))
    np.testing.assert_allclose(table.ravel(), clf.predict_proba(X)[:10, 1], rtol=1e-12)


@pytest.mark.slow
@for_each("risk", ["logistic", "squared_hinge"])
def test_leave_one_out_is_not_used_where_the_optimum_is_not_proved(risk):
    """At alpha = 1e-9 a fit ends by J(0)/1000, far above its minimum: leave-one-out would lose 0.08 to 0.29 in log loss."""
    rng = np.random.default_rng(0)
    X = 0.3 * rng.standard_normal((1500, 300))
    y = (6.0 * X[:, :20] @ rng.standard_normal(20) + rng.logistic(size=1500) > 1.0).astype(int)
    clf = with_probability("accuracy", risk=risk, alpha=1e-9, scaling=None).fit(X[:700], y[:700])
    assert clf.gap_ > clf.lower_bound_
    z, truth = X[700:] @ clf.coef_[0], y[700:]
    ideal = fit_sigmoid(np.where(truth > 0, 1, -1), z).probability(z)
    assert log_loss(truth, clf.predict_proba(X[700:])) < log_loss(truth, ideal) + 0.04


def heavy_tails(n=8000, seed=0, share=0.03):
    """Cauchy features whose ranks decide the label: scores of a linear model have outliers that say little."""
    rng = np.random.default_rng(seed)
    X = rng.standard_cauchy((n, 6))
    ranks = np.argsort(np.argsort(X, axis=0), axis=0) / n - 0.5
    odds = ranks @ [9.0, -9.0, 6.0, -6.0, 0.0, 0.0]
    return X, rng.random(n) < expit(odds - np.quantile(odds, 1.0 - share))


@for_each("measure", ["f1", "average_precision"])
def test_outlying_scores_do_not_flatten_the_sigmoid(measure):
    X, y = heavy_tails()
    train, test = slice(None, None, 2), slice(1, None, 2)
    clf = with_probability(measure).fit(X[train], y[train])
    P, constant = clf.predict_proba(X[test])[:, 1], log_loss(y[test], np.full(len(y) // 2, y[train].mean()))
    assert np.isfinite(clf.calibration_range_).all()
    assert log_loss(y[test], P) < 0.9 * constant
    assert 0.1 * constant < clf.calibration_gain_ < constant
    order = np.argsort(clf.decision_function(X[test]))
    assert (np.diff(P[order]) >= 0.0).all()


def test_scores_without_outliers_are_not_clipped(tmp_path):
    X, y = problem()
    clf = with_probability("accuracy").fit(X, y)
    np.testing.assert_array_equal(clf.calibration_range_, [-np.inf, np.inf])
    X, y = heavy_tails(2000)
    clf = with_probability("roc_auc").fit(X, y)
    clf.save(tmp_path / "model.npz")
    loaded = load_model(tmp_path / "model.npz")
    np.testing.assert_array_equal(loaded.predict_proba(X), clf.predict_proba(X))
    assert loaded.calibration_gain_ == clf.calibration_gain_
    z = X @ clf.coef_[0]
    a, b = clf.calibration_
    np.testing.assert_allclose(
        clf.predict_proba(X)[:, 1], expit(a * np.clip(z, *clf.calibration_range_) + b), rtol=1e-9
    )
    np.testing.assert_allclose(clf.probability_of(clf.decision_function(X)), clf.predict_proba(X)[:, 1], rtol=1e-6)


@pytest.mark.filterwarnings("default")
@for_each("estimator", [with_probability, lambda m: MeasureClassifierCV(m, probability=True, alphas=[1e-2])])
def test_probabilities_no_better_than_a_constant_give_a_warning(estimator):
    rng = np.random.default_rng(3)
    X, y = rng.standard_normal((2000, 4)), rng.random(2000) < 0.03
    with pytest.warns(UserWarning, match="probability=True: on .* share of positives") as caught:
        clf = estimator("roc_auc").fit(X, y)
    assert clf.calibration_gain_ < 1e-3
    assert sum("share of positives" in str(w.message) for w in caught) == 1
    assert all(w.filename == __file__ for w in caught)
    X, y = problem(1000)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert estimator("roc_auc").fit(X, y).calibration_gain_ > 0.05


@for_each("size", [1e-309, 1e300])
def test_scores_at_the_limits_of_floats_give_a_warning_and_no_error(size):
    sign = np.array([-1, -1, 1, 1] * 5)
    z = size * np.tile([0.0, 1.0, 1.0, 0.0], 5)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        found = fit_robust_sigmoid(sign, z)
        gain, error, constant = gain_over_constant(sign, z, None, found)
        extreme = found._replace(slope=1e308)
        assert gain_over_constant(sign, z, None, extreme)[0] <= 1.0
    assert np.isfinite([gain, error, constant]).all()
