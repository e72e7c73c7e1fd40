"""AMP: the weights of a level, the levels, their bound and optimum, the fits behind them, ends and refusals."""

import itertools
import pickle
import warnings
from types import SimpleNamespace

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import brentq
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from cases import crossed, for_each
from scoreline import MeasureClassifier, list_solvers
from scoreline.fitting.threshold import held_out_rows
from scoreline.io import make_imbalanced
from scoreline.measures import get_measure
from scoreline.solvers import amp as amp_module
from scoreline.solvers.amp import AmpSolver, Losses, bound_from, weights_at
from scoreline.solvers.cost_search import CostSearchSolver

MEASURES = [("f1", None), ("fbeta", {"beta": 0.5}), ("fbeta", {"beta": 2.0}), ("jaccard", None)]
every_measure = for_each("measure, params", MEASURES)
both_levels = for_each("level", ["measure", "rewards"])
both_shares = for_each("share", [0.2, 0.7])
TOL, LEVEL_TOL, ALPHA = 1e-8, 1e-9, 1e-2
# Two runs that differ in the order of sums only: with tol=1e-2 they take some dozen steps, each of which may make a rounding
# ten times as large. (With tol=1e-8 there are hundreds, and only what is proved stays the same.)
SAME_STEPS = {"rtol": 1e-7, "atol": 1e-9}


def data(n=150, p=3, share=0.2, seed=0):
    rng = np.random.default_rng([seed, n, p])
    y = (rng.random(n) < share).astype(int)
    y[:2] = 0, 1
    X = rng.standard_normal((n, p))
    X[:, 0] += 1.5 * y
    X[:, 1] -= y
    return X, y


def few_positives():
    """Rows on which the levels of either kind rise several times."""
    return data(n=600, share=0.05, seed=23)


def classifier(measure="f1", params=None, level="measure", tol=TOL, **options):
    own = {"level": level, "level_tol": LEVEL_TOL, **options.pop("solver_params", {})}
    return MeasureClassifier(measure, params, solver="amp", solver_params=own, tol=tol, **{"alpha": ALPHA} | options)


def assert_same_model(one, other):
    np.testing.assert_allclose(other.levels_, one.levels_, **SAME_STEPS)
    np.testing.assert_allclose(other.coef_, one.coef_, **SAME_STEPS)
    np.testing.assert_allclose(other.intercept_, one.intercept_, **SAME_STEPS)
    assert other.cost_ == pytest.approx(one.cost_, rel=SAME_STEPS["rtol"])
    assert other.objective_ == pytest.approx(one.objective_, rel=SAME_STEPS["rtol"])
    assert (one.level_bound_ is None) == (other.level_bound_ is None)
    if one.level_bound_ is not None:
        assert other.level_bound_ == pytest.approx(one.level_bound_, rel=SAME_STEPS["rtol"])


def beta2(params):
    """Return the square of beta; Jaccard has the same part as F1 in all that follows, but for the weights."""
    return 1.0 if params is None else params["beta"] ** 2


def recall_weight(measure, params):
    """Return what a true positive counts in the numerator of the measure."""
    return 1.0 if measure == "jaccard" else 1.0 + beta2(params)


# ------------------------------------------------------------------------------------------------ ratios and their weights


def counts_of_rewards(sign, z, weight):
    """Return tp, fp, fn, tn with rewards 1 - hinge in place of right predictions."""
    reward = weight * (1.0 - np.maximum(0.0, 1.0 - sign * z))
    tp, tn = reward[sign > 0].sum(), reward[sign < 0].sum()
    return tp, weight[sign < 0].sum() - tn, weight[sign > 0].sum() - tp, tn


def random_scores(seed):
    rng = np.random.default_rng(seed)
    sign = np.where(rng.random(40) < rng.uniform(0.1, 0.9), 1, -1)
    sign[:2] = 1, -1
    weight = np.where(rng.random(40) < 0.2, 0.0, rng.uniform(0.0, 3.0, 40))
    weight[:2] = 1.0
    z = sign * rng.uniform(-0.3, 1.5) + rng.uniform(0.1, 1.0) * rng.standard_normal(40)
    return sign, z, weight, (float(weight[sign > 0].sum()), float(weight[sign < 0].sum()))


@every_measure
def test_the_level_without_penalty_is_the_measure_of_the_rewards(measure, params):
    measure, positive = get_measure(measure, params), 0
    for seed in range(100):
        sign, z, weight, sums = random_scores(seed)
        tp, fp, fn, tn = counts_of_rewards(sign, z, weight)
        expected = float(measure.from_counts(tp, fp, fn, tn)) if tp > 0.0 else 0.0
        positive += tp > 0.0
        # Sums of 40 terms in another order: some roundings, relative to counts that may nearly cancel to tp.
        assert Losses.of(sign, z, weight, sums, 0.0).level(measure) == pytest.approx(expected, rel=1e-12, abs=1e-14)
    assert 30 < positive < 100, "both cases must be seen"


@every_measure
def test_at_the_level_the_penalised_fit_has_nothing_left(measure, params):
    """The level is the zero of top - v bottom, and that falls through it: above the level there is less than nothing."""
    score, b, a = get_measure(measure, params), beta2(params), recall_weight(measure, params)
    n_checked = 0
    for seed in range(100):
        sign, z, weight, (plus, minus) = random_scores(seed)
        penalty = np.random.default_rng(seed).uniform(0.0, 0.3)
        hinge = weight * np.maximum(0.0, 1.0 - sign * z)
        level = Losses.of(sign, z, weight, (plus, minus), penalty).level(score)

        def left(v, hinge=hinge, sign=sign, plus=plus, minus=minus, penalty=penalty):
            positive, negative = (1.0, v) if measure == "jaccard" else (1.0 + b - v, v)
            loss = positive * hinge[sign > 0].sum() + negative * hinge[sign < 0].sum()
            return a * (1.0 - v) * plus - loss - (positive * plus + negative * minus) * penalty

        if level == 0.0:
            assert left(0.0) <= 1e-12 * plus
            continue
        n_checked += 1
        assert abs(left(level)) <= 1e-12 * (plus + minus) * (1.0 + b)  # roundings of the sums
        for v in np.linspace(0.01, 0.99, 7):
            assert (left(v) > 0.0) == (v < level)
    assert n_checked > 30


@every_measure
def test_a_bound_is_the_level_where_only_the_denominator_is_at_its_least(measure, params):
    """Of a fit with J = its bound, level - v is d over its denominator, and the bound takes B n+ (n+) for that."""
    score, b = get_measure(measure, params), beta2(params)
    rng = np.random.default_rng(3)
    for _ in range(100):
        plus, minus = rng.uniform(1.0, 50.0, 2)
        reward = plus * rng.choice([1e-3, 0.1, 1.0]) * rng.random()  # little of it is where the denominator is small
        penalty = rng.choice([0.0, 0.5]) * rng.random() * (1.0 - reward / plus)
        losses = Losses(
            plus * (1.0 - penalty) - reward, rng.choice([0.0, minus]) * rng.random(), (plus, minus), penalty
        )
        level = losses.level(score)
        v = rng.random() * level
        positive, negative = weights_at(score, v)
        loss = positive * losses.positive + negative * losses.negative
        J = loss / (positive * plus + negative * minus) + penalty
        bottom = recall_weight(measure, params) * reward / level
        bound = bound_from(score, v, losses.sums, SimpleNamespace(lower_bound=J))
        assert bound >= level - 1e-12
        # Differences of sums of this size: relative to the smallest rise their roundings count a thousand times.
        assert bound - v == pytest.approx((level - v) * bottom / (b * plus), rel=1e-8, abs=1e-13)
    assert bound_from(score, 0.5, (10.0, 20.0), SimpleNamespace(lower_bound=None)) is None


@for_each(
    "measure, params, table, value, valuation, ratio",
    [
        ("fbeta", {"beta": 1.0}, (4, 3, 9, 9), 0.4, 0.4, 0.25),
        ("fbeta", {"beta": 2.0}, (33, 38, 33, 34), 0.4925373134328358, 0.49226190476190473, 0.08695652173913045),
        ("jaccard", None, (33, 1, 23, 29), 0.5789473684210527, 0.5186046511627908, 0.4),
    ],
)
def test_weights_at_a_level_are_those_of_worked_examples(measure, params, table, value, valuation, ratio):
    """Level 0.4; the valuation is the linear function of TPR and TNR that the fit at that level maximises."""
    v, (tp, fp, fn, tn) = 0.4, table
    score, b, plus, minus = get_measure(measure, params), beta2(params), tp + fn, fp + tn
    positive, negative = weights_at(score, v)
    assert negative / positive == pytest.approx(ratio, rel=1e-14)
    assert float(score.from_counts(*table)) == pytest.approx(value, rel=1e-14)
    # Over b0 = (b n+ + n-) / n+: what the rewards are counted in there.
    assert (positive * tp + negative * tn) / (b * plus + minus) == pytest.approx(valuation, rel=1e-14)


@every_measure
def test_a_level_is_reached_exactly_if_the_weighted_counts_reach_it(measure, params):
    rng, score, reached = np.random.default_rng(1), get_measure(measure, params), 0
    for _ in range(300):
        tp, fp, fn, tn = rng.uniform(0.0, 10.0, 4)
        v = rng.uniform(0.0, 1.0)
        value, (positive, negative) = float(score.from_counts(tp, fp, fn, tn)), weights_at(score, v)
        valuation = (positive * tp + negative * tn) / (beta2(params) * (tp + fn) + fp + tn)
        assert abs(value - v) > 1e-6, "no ties among these numbers"
        assert (value >= v) == (valuation >= v)
        reached += value >= v
    assert 30 < reached < 270


# ------------------------------------------------------------------------------------------------ finite problems


def finite_levels(measure, points, p, start=0.0):
    """Return the levels of the iteration over a finite set of classifiers, points being their TPR and TNR."""
    tpr, tnr = np.asarray(points).T
    values = np.asarray(measure.from_counts(p * tpr, (1.0 - p) * (1.0 - tnr), p * (1.0 - tpr), (1.0 - p) * tnr))
    levels = [start]
    while len(levels) < 1000:
        positive, negative = weights_at(measure, levels[-1])
        best = int(np.argmax(positive * p * tpr + negative * (1.0 - p) * tnr))
        if values[best] <= levels[-1] + 1e-14:  # a few roundings of the value
            return levels, values
        levels.append(float(values[best]))
    raise AssertionError("the levels do not end")


def test_levels_of_a_worked_example():
    points = [
        [0.5525, 0.1696], [0.9402, 0.9566], [0.5375, 0.1481], [0.855, 0.7675], [0.9741, 0.1066], [0.4919, 0.3554],
        [0.1969, 0.7616], [0.4071, 0.1351], [0.2203, 0.8254], [0.6453, 0.2935], [0.7264, 0.2174], [0.7059, 0.6895],
    ]  # fmt: skip
    levels, _ = finite_levels(get_measure("f1"), points, p=0.2)  # four negatives to a positive
    np.testing.assert_allclose(levels, [0.0, 0.35117255799700775, 0.8895827419812661], rtol=1e-12)


@every_measure
def test_levels_of_finite_problems_rise_to_the_optimum_at_the_proved_rate(measure, params):
    """Rewards in [0, 1]: the distance to the optimum shrinks by (1 + t) / (1 + B + t), for Jaccard by t / (1 + t)."""
    rng, score, b, longest = np.random.default_rng(2), get_measure(measure, params), beta2(params), 0
    for _ in range(300):
        p = rng.uniform(0.02, 0.98)
        points = rng.random((rng.integers(2, 40), 2)) ** rng.uniform(0.3, 3.0)
        theta = (1.0 - p) / p
        rate = theta / (1.0 + theta) if measure == "jaccard" else (1.0 + theta) / (1.0 + b + theta)
        levels, values = finite_levels(score, points, p)
        distance = values.max() - np.array(levels)
        assert (np.diff(levels) > 0.0).all()
        assert abs(distance[-1]) <= 1e-13  # the optimum itself, unless two values agree to rounding
        assert (distance[1:] <= rate * distance[:-1] + 1e-14).all()
        longest = max(longest, len(levels))
    assert longest >= 4, "otherwise one step would do"


# ------------------------------------------------------------------------------------------------ the level of rewards


def rewards_level(measure, params, w, A, y, weight, alpha):
    """Return the level of w, written as what a bisection would find, and its denominator."""
    features = w[np.ptp(A, axis=0) > 0.0]  # all but the intercept
    b, sign, q = beta2(params), np.where(y == 1, 1, -1), 0.5 * alpha * float(features @ features)
    hinge = weight * np.maximum(0.0, 1.0 - sign * (A @ w))
    (lost, called), (plus, minus) = ((x[y == 1].sum(), x[y == 0].sum()) for x in (hinge, weight))
    reward = plus - lost - q * plus
    # Jaccard: reward / (n+ + L- + q n-); F-beta in terms of the same: (1 + B) r / (r + B n+ + L- + q n-).
    bottom = plus + called + q * minus if measure == "jaccard" else reward + b * plus + called + q * minus
    return (recall_weight(measure, params) * reward / bottom if reward > 0.0 else 0.0), bottom


def best_level(measure, params, A, y, weight, alpha):
    """Return the highest level of all w and a w that has it: where the optimum of the weighted fit is 0, by bisection."""
    b, (plus, minus) = beta2(params), (weight[y == 1].sum(), weight[y == 0].sum())
    w, positive, negative, total = cp.Variable(A.shape[1]), *(cp.Parameter(nonneg=True) for _ in range(3))
    hinge = cp.multiply(weight, cp.pos(1.0 - cp.multiply(np.where(y == 1, 1.0, -1.0), A @ w)))
    loss = (
        positive * (hinge @ (y == 1))
        + negative * (hinge @ (y == 0))
        + total * cp.sum_squares(w[np.flatnonzero(np.ptp(A, axis=0))])
    )
    task = cp.Problem(cp.Minimize(loss))

    def left(v):
        positive.value, negative.value = (1.0, v) if measure == "jaccard" else (1.0 + b - v, v)
        total.value = 0.5 * alpha * (positive.value * plus + negative.value * minus)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            task.solve(solver=cp.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
        return recall_weight(measure, params) * (1.0 - v) * plus - task.value

    return brentq(left, 1e-6, 1.0 - 1e-6, xtol=1e-12, rtol=1e-12), w.value


@pytest.fixture
def fits(monkeypatch):
    """The fits of the solver: where each began, how much time it had, and what came out."""
    solves, solve = [], AmpSolver.solve

    def watched(self, objective, w0=None, state=None, control=None):
        start = None if w0 is None else np.array(w0)
        result = solve(self, objective, w0, state, control)
        solves.append({"w0": start, "max_time": control.max_time, "w": result.w.copy(), "passes": result.n_passes})
        solves[-1]["z"], solves[-1]["objective"] = np.array(result.z), objective
        return result

    monkeypatch.setattr(AmpSolver, "solve", watched)
    return solves


def widest(measure, params, plus, minus, bottom):
    """Return what level_bound_ may lie above the last level.

    The last fit at the level v has J within TOL of its minimum (J(0) is 1), so what no w exceeds is G TOL more than what the
    fit itself has there, which is at most LEVEL_TOL times its denominator; and denominators are at least B n+ (n+).
    """
    return (LEVEL_TOL * bottom + TOL * (recall_weight(measure, params) * plus + minus)) / (beta2(params) * plus)


@for_each(
    "measure, params, share, fit_intercept, weighted",
    crossed(MEASURES, [0.2, 0.7], [True, False], [False, True], strength=1),
)
def test_levels_of_rewards_rise_to_the_highest_of_all(measure, params, share, fit_intercept, weighted, fits):
    fits.clear()
    X, y = data(share=share)
    rng = np.random.default_rng(5)
    weight = rng.integers(0, 4, len(y)).astype(float) if weighted else np.ones(len(y))
    clf = classifier(measure, params, "rewards", fit_intercept=fit_intercept)
    clf.fit(X, y, weight if weighted else None)
    A = np.hstack([X, np.ones((len(y), 1))]) if fit_intercept else X
    setting = measure, params, A, y, weight, ALPHA
    plus, minus = weight[y == 1].sum(), weight[y == 0].sum()

    def level(w):
        return rewards_level(measure, params, w, A, y, weight, ALPHA)[0]

    w = np.append(clf.coef_[0], clf.trained_intercept_) if fit_intercept else clf.coef_[0]
    levels, bottom = np.array(clf.levels_), rewards_level(measure, params, w, A, y, weight, ALPHA)[1]
    width = widest(measure, params, plus, minus, bottom)
    assert len(levels) > 1
    # The level is that of the model, from the same sums in another order.
    assert levels[-1] == pytest.approx(level(w), rel=1e-12)
    np.testing.assert_allclose(levels, [level(fit["w"]) for fit in fits[: len(levels)]], rtol=1e-12)
    # They rise; the last fit, which is thrown away where it has no higher level, falls by what its gap explains at most.
    assert (np.diff(levels) > 0.0).all()
    assert len(fits) <= len(levels) + 1
    assert level(fits[-1]["w"]) >= levels[-1] - width
    # The bound is one, and close.
    assert levels[-1] <= clf.level_bound_ <= levels[-1] + width
    best, best_w = best_level(*setting)
    # cvxpy: sums that are exact to 1e-10 of themselves, divided by denominators of their size; 1e-8 is a hundred times that.
    assert levels[-1] - 1e-8 <= best <= clf.level_bound_ + 1e-8
    assert level(best_w) <= clf.level_bound_ + 1e-15
    for scale in 10.0 ** rng.uniform(-6.0, 1.0, 200):
        assert level(scale * rng.standard_normal(len(w))) <= clf.level_bound_
        assert level(w + 0.1 * scale * rng.standard_normal(len(w))) <= clf.level_bound_


@every_measure
def test_a_bound_from_loose_fits_holds_as_well(measure, params):
    """With a tolerance of 10 % and few rounds the level stays behind: the bound says by how much at most."""
    X, y = data(seed=3)
    A, weight, widths = np.hstack([X, np.ones((len(y), 1))]), np.ones(len(y)), []
    best, _ = best_level(measure, params, A, y, weight, ALPHA)
    for tol, rounds in ((0.3, 1), (0.1, 1), (0.1, 20), (1e-3, 1)):
        clf = classifier(measure, params, "rewards", tol=tol, solver_params={"rounds": rounds}).fit(X, y)
        assert clf.levels_[-1] - 1e-8 <= best <= clf.level_bound_ + 1e-8  # as above, cvxpy's 1e-8
        widths.append(clf.level_bound_ - clf.levels_[-1])
    assert max(widths) > 1e-3, "otherwise these fits were not loose"


@for_each("share, fit_intercept, level", crossed([0.2, 0.7], [True, False], ["measure", "rewards"]))
def test_f1_and_jaccard_are_trained_alike(share, fit_intercept, level):
    """The cost of a level is the same, (2 - F)/F = 1/J, and so is that of rewards less the penalty: J = F/(2 - F)."""
    X, y = data(share=share, seed=1)
    options = {"level": level, "fit_intercept": fit_intercept, "tol": 1e-2, "solver_params": {"level_tol": 0.0}}
    f1, jaccard = (classifier(m, **options).fit(X, y) for m in ("f1", "jaccard"))
    levels = np.array(f1.levels_)
    np.testing.assert_allclose(jaccard.levels_, levels / (2.0 - levels), **SAME_STEPS)
    np.testing.assert_allclose(jaccard.coef_, f1.coef_, **SAME_STEPS)
    assert jaccard.cost_ == pytest.approx(f1.cost_, rel=SAME_STEPS["rtol"])


@for_each("measure, params, level", crossed(MEASURES, ["measure", "rewards"], strength=1))
def test_integer_weights_equal_copies(measure, params, level):
    X, y = data(seed=2)
    k = np.random.default_rng(2).integers(0, 4, len(y))
    rows = np.repeat(np.arange(len(y)), k)
    weighted = classifier(measure, params, level, tol=1e-2).fit(X, y, k)
    copies = classifier(measure, params, level, tol=1e-2).fit(X[rows], y[rows])
    assert_same_model(weighted, copies)


def test_rows_of_weight_zero_have_no_influence():
    X, y = data(seed=4)
    weight = np.ones(len(y))
    weight[2::5] = 0.0
    wild, flipped = X.copy(), y.copy()
    wild[2::5] *= 100.0
    flipped[2::5] = 1 - flipped[2::5]
    for level in ("measure", "rewards"):
        one, other = (classifier(level=level, tol=1e-2).fit(M, t, weight) for M, t in ((X, y), (wild, flipped)))
        assert_same_model(one, other)


# ------------------------------------------------------------------------------------------------ the level of the measure


def best_by_thresholds(measure, params, z, y, weight=None):
    """Return the best value of the measure over all thresholds, by trying each."""
    score = get_measure(measure, params)
    cuts = np.concatenate([[-np.inf], np.unique(z)])
    return max(score.value(y, np.where(z > threshold, 1.0, -1.0), weight) for threshold in cuts)


@for_each("measure, params, share, weighted", crossed(MEASURES, [0.1, 0.7], [False, True], strength=1))
def test_levels_are_the_measure_at_the_best_threshold_and_rise(measure, params, share, weighted, fits):
    rising = 0
    for seed in range(6):
        X, y = data(n=100, share=share, seed=seed)
        weight = np.random.default_rng(seed).integers(0, 4, len(y)).astype(float) if weighted else None
        fits.clear()
        clf = classifier(measure, params).fit(X, y, weight)
        rising += len(clf.levels_) > 1
        for level, fit in zip(clf.levels_, fits, strict=False):
            # Counts are sums of integers: exact but for the division.
            assert level == pytest.approx(best_by_thresholds(measure, params, fit["z"], y, weight), rel=1e-14)
        assert (np.diff(clf.levels_) > 0.0).all()
        assert clf.score(X, y, weight) == pytest.approx(clf.levels_[-1], rel=1e-14)
        assert clf.level_bound_ is None
        # The model is that of the last level; a further fit was no better, and is thrown away.
        chosen = fits[len(clf.levels_) - 1]
        assert np.array_equal(np.append(clf.coef_[0], clf.trained_intercept_), chosen["w"])
        for fit in fits[len(clf.levels_) :]:
            assert best_by_thresholds(measure, params, fit["z"], y, weight) <= clf.levels_[-1] + 1e-14
        if clf.levels_[-1] < 1.0 and len(clf.levels_) <= 20:
            assert len(fits) == len(clf.levels_) + 1
    assert rising, "otherwise only plain fits were seen"


@for_each("measure, params, level", crossed(MEASURES, ["measure", "rewards"], strength=1))
def test_the_cost_is_that_of_the_level_before(measure, params, level):
    several = 0
    for seed in range(8):
        X, y = data(share=0.3, seed=seed)
        clf = classifier(measure, params, level).fit(X, y)
        if len(clf.levels_) == 1:
            assert clf.cost_ == 1.0
            continue
        several += 1
        v = clf.levels_[-2]
        expected = 1.0 / v if measure == "jaccard" else (1.0 + beta2(params) - v) / v
        assert clf.cost_ == pytest.approx(expected, rel=1e-15)
    assert several


@for_each("measure, params, level, tol", crossed(MEASURES, ["measure", "rewards"], [1e-2, 1e-8], strength=1))
def test_the_model_is_certified_and_repeatable(measure, params, level, tol):
    X, y = data(seed=1)
    one, same = (classifier(measure, params, level, tol=tol).fit(X, y) for _ in range(2))
    assert np.array_equal(one.coef_, same.coef_)
    assert np.array_equal(one.intercept_, same.intercept_)
    assert one.levels_ == same.levels_
    assert one.level_bound_ == same.level_bound_
    assert one.status_ == "converged"
    assert 0.0 <= one.gap_ <= tol * max(one.lower_bound_, 1e-3)  # J(0) is 1
    # The same sums, with scores from unwrapped coefficients: the cost is part of J.
    assert one.objective(X, y) == pytest.approx(one.objective_, rel=1e-12)
    sign, w = np.where(y == 1, 1, -1), np.append(one.coef_[0], one.trained_intercept_)
    weight = np.where(y == 1, one.cost_, 1.0)
    hinge = weight @ np.maximum(0.0, 1.0 - sign * (X @ w[:-1] + w[-1])) / weight.sum()
    assert one.objective_ == pytest.approx(hinge + 0.5 * ALPHA * w[:-1] @ w[:-1], rel=1e-12)


@both_levels
def test_every_fit_starts_from_the_best_one_and_their_passes_add_up(level, fits):
    fits.clear()
    X, y = few_positives()
    clf = classifier(level=level).fit(X, y)
    assert len(fits) >= 3
    assert fits[0]["w0"] is None
    for before, fit in itertools.pairwise(fits):
        assert np.array_equal(fit["w0"], before["w"])
    # The plain fit has no level of rewards here; that of a constant takes one more product.
    once_more = 1.0 if level == "rewards" else 0.0
    assert clf.n_passes_ == pytest.approx(sum(fit["passes"] for fit in fits) + once_more, rel=1e-12)
    chosen = fits[len(clf.levels_) - 1]
    assert clf.history_["passes"][-1] <= chosen["passes"] < clf.n_passes_


def test_a_warm_start_begins_with_the_last_model(fits):
    X, y = few_positives()
    clf = classifier(warm_start=True).fit(X, y)
    w = np.append(clf.coef_[0], clf.trained_intercept_)
    fits.clear()
    clf.fit(X, y)
    assert np.array_equal(fits[0]["w0"], w)


# ------------------------------------------------------------------------------------------------ special data


@for_each("tol", [1e-2, 1e-6])
@both_levels
def test_gower_legendre_is_the_plain_fit(tol, level):
    X, y = data()
    clf = classifier("gower_legendre", level=level, tol=tol).fit(X, y)
    plain = MeasureClassifier("accuracy", solver="smoothed", risk="hinge", alpha=ALPHA, tol=tol).fit(X, y)
    assert np.array_equal(clf.coef_, plain.coef_)
    assert np.array_equal(clf.intercept_, plain.intercept_)  # it rises with accuracy, so the threshold is the same
    assert clf.n_passes_ == plain.n_passes_
    assert clf.cost_ == 1.0
    assert not hasattr(clf, "levels_")
    assert not hasattr(clf, "level_bound_")


@for_each("measure, params, level", crossed(MEASURES, ["measure", "rewards"], strength=1))
def test_the_first_level_is_that_of_the_plain_fit(measure, params, level):
    X, y = data()
    clf = classifier(measure, params, level).fit(X, y)
    plain = MeasureClassifier("accuracy", solver="smoothed", risk="hinge", alpha=ALPHA, tol=TOL).fit(X, y)
    w = np.append(plain.coef_[0], plain.trained_intercept_)
    A = np.hstack([X, np.ones((len(y), 1))])
    if level == "measure":
        expected = best_by_thresholds(measure, params, A @ w, y)
    else:
        expected, _ = rewards_level(measure, params, w, A, y, np.ones(len(y)), ALPHA)
    assert clf.levels_[0] == pytest.approx(expected, rel=1e-12)  # the same bits, and sums in another order


@every_measure
def test_separable_data_need_one_fit(measure, params, fits):
    fits.clear()
    X, y = data()
    X[:, 0] = np.where(y == 1, 3.0, -3.0) + 0.1 * X[:, 1]
    clf = classifier(measure, params).fit(X, y)
    assert clf.levels_ == [1.0]
    assert len(fits) == 1
    assert clf.score(X, y) == 1.0


@for_each("measure, params, level, shift", crossed(MEASURES, ["measure", "rewards"], [0.0, 6.0]))
def test_one_positive_is_enough(measure, params, level, shift):
    X, y = data()
    y = np.zeros_like(y)
    y[7] = 1
    clf = classifier(measure, params, level, tol=1e-6).fit(X + shift * y[:, None], y)
    assert clf.status_ == "converged"
    assert 0.0 < clf.levels_[-1] <= 1.0
    assert np.isfinite(clf.decision_function(X)).all()
    if shift and level == "measure":
        assert clf.levels_[-1] == 1.0


@both_shares
def test_scores_that_are_all_equal_call_everything_positive_and_warn(share):
    """A matrix of zeros: the best that F1 can have is all positive, 2 n+ / (2 n+ + n-), with or without an intercept."""
    X, y = data(share=share)
    for fit_intercept in (True, False):
        clf = classifier(fit_intercept=fit_intercept)
        with pytest.warns(UserWarning, match="Degenerate fit: all rows have the same score"):
            clf.fit(np.zeros_like(X), y)
        assert clf.levels_ == pytest.approx([2.0 * y.sum() / (y.sum() + len(y))], rel=1e-14)
        assert clf.predict(X).all()
        assert not clf.coef_.any()


@both_shares
def test_without_helpful_columns_the_rewards_level_is_that_of_a_constant(share):
    X, y = data(share=share)
    with pytest.warns(UserWarning, match="Degenerate fit: all rows have the same score"):
        clf = classifier(level="rewards").fit(np.zeros_like(X), y)
    # All rows scored 1: no loss of positives, 2 for every negative, the penalty of w = 1. No other constant is better.
    ones, weight = np.ones((len(y), 1)), np.ones(len(y))
    expected, bottom = rewards_level("f1", None, np.ones(1), ones, y, weight, ALPHA)
    width = widest("f1", None, y.sum(), (1 - y).sum(), bottom)
    assert clf.levels_[-1] == pytest.approx(expected, abs=width)
    assert clf.levels_[-1] <= clf.level_bound_ <= clf.levels_[-1] + width
    with pytest.warns(UserWarning, match="Degenerate fit: all rows have the same score"):
        nothing = classifier(level="rewards", fit_intercept=False).fit(np.zeros_like(X), y)
    assert nothing.levels_ == [0.0]
    assert nothing.level_bound_ is None


def test_few_positives_that_the_plain_fit_ignores_get_a_level_of_rewards(fits):
    """The plain fit calls all rows negative, which has no level; that of a constant leads on to a better one."""
    X, y = data(n=400, share=0.05, seed=1)
    X *= 0.5
    clf = classifier(level="rewards").fit(X, y)
    A, weight = np.hstack([X, np.ones((len(y), 1))]), np.ones(len(y))
    plain, constant = fits[0]["w"], np.append(np.zeros(3), 1.0)
    assert rewards_level("f1", None, plain, A, y, weight, ALPHA)[0] == 0.0, "otherwise this test shows nothing"
    first, _ = rewards_level("f1", None, constant, A, y, weight, ALPHA)
    assert clf.levels_[0] == 0.0
    assert clf.levels_[1] > first > 0.0
    best, _ = best_level("f1", None, A, y, weight, ALPHA)
    assert len(clf.levels_) > 2
    assert clf.levels_[-1] == pytest.approx(best, abs=1e-6)  # as bounds and cvxpy's 1e-8 allow with 20 positives
    assert clf.levels_[-1] - 1e-8 <= best <= clf.level_bound_ + 1e-8


# ------------------------------------------------------------------------------------------------ ends


class Callback:
    """Presses Ctrl-C, or asks to stop, in the first iteration of one of the fits."""

    def __init__(self, fit, signal):
        self.fit, self.signal, self.fits = fit, signal, 0

    def __call__(self, progress):
        self.fits += progress.iteration == 1
        if self.fits < self.fit:
            return False
        if self.signal:
            raise KeyboardInterrupt
        return True


def stopped(fit, signal, rows=few_positives, **options):
    callback = Callback(fit, signal)
    clf = classifier(solver_params={"callbacks": [callback]}, **options)
    X, y = rows()
    if signal:
        with pytest.raises(KeyboardInterrupt):
            clf.fit(X, y)
    else:
        clf.fit(X, y)
    assert callback.fits == fit
    assert clf.status_ == "interrupted"
    assert np.isfinite(clf.decision_function(X)).all()
    return clf


@both_levels
@for_each("signal", [True, False])
def test_a_stop_in_the_first_fit_leaves_a_model_without_levels(level, signal):
    clf = stopped(1, signal, level=level)
    assert clf.cost_ == 1.0
    assert not hasattr(clf, "levels_")


@both_levels
@for_each("signal", [True, False])
def test_a_stop_in_the_second_fit_leaves_the_first(level, signal):
    def rows():
        return data(n=600, share=0.25, seed=2)

    X, y = rows()
    assert len(classifier(level=level).fit(X, y).levels_) > 1, "otherwise this test shows nothing"
    clf = stopped(2, signal, rows, level=level)
    plain = MeasureClassifier("f1", solver="smoothed", risk="hinge", alpha=ALPHA, tol=TOL).fit(X, y)
    assert clf.cost_ == 1.0
    assert len(clf.levels_) == 1
    assert np.array_equal(clf.coef_, plain.coef_)
    assert np.array_equal(clf.intercept_, plain.intercept_), "the threshold is set after Ctrl-C as well"
    assert clf.objective_ == plain.objective_
    assert clf.gap_ == plain.gap_


@both_levels
def test_ctrl_c_in_the_second_fit_after_a_degenerate_one_leaves_a_model(level):
    X, y = few_positives()
    clf = stopped(2, True, level=level)
    assert clf.coef_.any()
    assert clf.gap_ is None
    assert clf.score(X, y) > 0.3


@both_levels
@for_each("signal", [True, False])
def test_a_stop_in_the_third_fit_leaves_the_second(level, signal):
    X, y = few_positives()
    clf = stopped(3, signal, level=level)
    second = classifier(level=level, solver_params={"rounds": 1}).fit(X, y)
    assert clf.cost_ == second.cost_ > 1.0
    assert clf.levels_ == second.levels_
    assert clf.level_bound_ == second.level_bound_
    assert np.array_equal(clf.coef_, second.coef_)


@both_levels
def test_rounds_limit_the_fits_beyond_the_first(level, fits):
    X, y = few_positives()
    full = classifier(level=level).fit(X, y)
    assert len(full.levels_) > 2
    fits.clear()
    clf = classifier(level=level, solver_params={"rounds": 1}).fit(X, y)
    assert len(fits) == 2
    assert clf.levels_ == full.levels_[:2]


def test_a_rise_within_level_tol_is_the_last(fits):
    X, y = few_positives()
    levels = classifier(level="rewards").fit(X, y).levels_
    assert len(levels) > 3
    for k in (1, 2):
        fits.clear()
        limit = levels[k] - levels[k - 1]
        clf = classifier(level="rewards", solver_params={"level_tol": 1.01 * limit}).fit(X, y)
        assert clf.levels_ == levels[: k + 1]
        assert len(fits) == k + 1


@both_levels
def test_without_time_there_is_a_model_and_a_warning(level):
    X, y = data()
    clf = classifier(level=level, max_time=1e-9)
    with pytest.warns(ConvergenceWarning, match="max_time"):
        clf.fit(X, y)
    assert clf.status_ == "max_time"
    assert not hasattr(clf, "levels_")
    assert clf.predict(X).shape == y.shape


def test_time_is_that_of_all_fits(fits):
    X, y = data(seed=1)
    classifier(level="rewards", max_time=1000.0, threshold="holdout", random_state=0).fit(X, y)
    given = [fit["max_time"] for fit in fits]
    assert len(given) > 3
    assert (np.diff([500.0, *given[:-1]]) < 0.0).all(), "half of it, and each what the others have left"
    assert 490.0 < given[-1] < 500.0, "the held-out fit has half of the rest"


@both_levels
def test_time_that_ends_in_a_later_fit_leaves_the_fits_before(level, fits, monkeypatch):
    fits.clear()
    X, y = few_positives()
    solve = AmpSolver.solve

    def late(self, objective, w0=None, state=None, control=None):
        return solve(self, objective, w0, state, control.within(1e-9) if len(fits) == 2 else control)

    monkeypatch.setattr(AmpSolver, "solve", late)
    with pytest.warns(ConvergenceWarning, match="max_time"):
        clf = classifier(level=level, max_time=1000.0).fit(X, y)
    assert len(fits) == 3
    assert len(clf.levels_) == 2
    assert clf.status_ == "max_time", "what is kept has converged, the search has not"
    assert np.array_equal(clf.coef_[0], fits[1]["w"][:-1])


# ------------------------------------------------------------------------------------------------ refusals


@for_each(
    "params, match",
    [
        ({"level": "x"}, "level='x' is unknown; expected one of 'measure', 'rewards'"),
        ({"level_tol": -1}, "level_tol=-1 must be a finite number at least 0"),
        ({"level_tol": np.nan}, "level_tol=nan must be"),
        ({"rounds": 0}, "rounds=0 must be an integer at least 1"),
        ({"rounds": 2.5}, r"rounds=2\.5 must be an integer"),
        ({"levels": 3}, r"'levels' is unknown.*Did you mean 'level'"),
    ],
)
def test_wrong_options_are_refused_by_name(params, match):
    X, y = data()
    with pytest.raises(ValueError, match=match):
        classifier(solver_params=params).fit(X, y)


@for_each("measure", ["mcc", "accuracy", "gmean", "roc_auc"])
def test_other_measures_are_refused_with_what_is_needed(measure):
    X, y = data()
    with pytest.raises(ValueError, match=rf"'amp' does not train for measure '{measure}'.*F-beta, Jaccard.*'auto'"):
        classifier(measure).fit(X, y)


@for_each("risk", ["logistic", "squared_hinge", "contingency"])
def test_other_risks_are_refused_with_the_one_that_is_served(risk):
    X, y = data()
    with pytest.raises(ValueError, match=rf"'amp' does not minimise risk='{risk}'; it minimises \['hinge'\]"):
        classifier(risk=risk).fit(X, y)


def test_the_list_of_solvers_says_what_it_trains_and_auto_does_not_take_it():
    info = {i.name: i for i in list_solvers()}["amp"]
    assert set(info.measures) == {"f1", "fbeta", "gower_legendre", "jaccard"}
    assert info.risks == ("hinge",)
    X, y = data()
    for risk in ("auto", "hinge"):
        assert MeasureClassifier("f1", risk=risk).fit(X, y).solver_ != "amp"


# ------------------------------------------------------------------------------------------------ estimator


@for_each("solver", ["smoothed", "cost_search", "stamp", "spade", "moments"])
def test_a_later_fit_with_another_solver_has_no_levels(solver):
    X, y = data(seed=1)
    clf = classifier(level="rewards").fit(X, y)
    assert clf.levels_
    assert clf.level_bound_ is not None
    measure = {"spade": "gmean", "moments": "accuracy"}.get(solver, "f1")
    clf.set_params(measure=measure, solver=solver, solver_params=None, tol=1e-2).fit(X, y)
    assert not hasattr(clf, "levels_")
    assert not hasattr(clf, "level_bound_")


def test_a_later_fit_without_bound_forgets_the_bound():
    X, y = data(seed=1)
    clf = classifier(level="rewards").fit(X, y)
    assert clf.level_bound_ is not None
    clf.set_params(solver_params={"level": "measure"}).fit(X, y)
    assert clf.level_bound_ is None


@both_levels
def test_clones_and_pickles_are_the_same(level):
    X, y = data(seed=1)
    clf = classifier(level=level).fit(X, y)
    again = pickle.loads(pickle.dumps(clf))
    assert np.array_equal(again.decision_function(X), clf.decision_function(X))
    assert again.levels_ == clf.levels_
    assert again.level_bound_ == clf.level_bound_
    copy = clone(clf)
    assert not hasattr(copy, "levels_")
    assert np.array_equal(copy.fit(X, y).coef_, clf.coef_)


@both_levels
def test_the_threshold_changes_the_intercept_only(level, fits):
    fits.clear()
    X, y = few_positives()
    auto, train, none, holdout = (
        classifier(level=level, threshold=rule, random_state=0).fit(X, y)
        for rule in ("auto", "train", "none", "holdout")
    )
    for clf in (train, none, holdout):
        assert np.array_equal(clf.coef_, auto.coef_)
        assert clf.levels_ == auto.levels_
        assert clf.cost_ == auto.cost_
    assert np.array_equal(auto.intercept_, train.intercept_), "the hinge has no scores of held-out rows"
    assert none.intercept_[0] == none.trained_intercept_
    assert train.score(X, y) >= max(none.score(X, y), holdout.score(X, y))
    assert holdout.intercept_[0] not in (none.intercept_[0], train.intercept_[0])
    # One more fit, of the same cost, on four fifths of the rows; its J is that of the weighted hinge of these.
    sign, w = np.where(y == 1, 1, -1), fits[-1]["w"]
    assert holdout.cost_ > 1.0
    weight = np.where(held_out_rows(sign, None, 0), 0.0, np.where(y == 1, holdout.cost_, 1.0))
    hinge = weight @ np.maximum(0.0, 1.0 - sign * fits[-1]["z"]) / weight.sum()
    assert fits[-1]["objective"].value(w) == pytest.approx(
        hinge + 0.5 * ALPHA * w[:-1] @ w[:-1], rel=1e-12
    )  # the same sums
    assert holdout.n_passes_ == pytest.approx(train.n_passes_ + fits[-1]["passes"], rel=1e-12)


@both_levels
def test_class_weights_multiply_sample_weights(level):
    X, y = data(seed=1)
    weight = np.random.default_rng(1).uniform(0.5, 2.0, len(y))
    by_class = classifier(level=level, class_weight={0: 1.0, 1: 3.0}, tol=1e-2).fit(X, y, weight)
    by_row = classifier(level=level, tol=1e-2).fit(X, y, np.where(y == 1, 3.0, 1.0) * weight)
    assert_same_model(by_class, by_row)
    assert by_class.objective(X, y, weight) == pytest.approx(by_class.objective_, rel=1e-12)  # the same sums
    balanced = classifier(level=level, class_weight="balanced", tol=1e-2).fit(X, y)
    assert balanced.levels_[0] != pytest.approx(by_row.levels_[0], rel=1e-3)


@for_each("level, stored", crossed(["measure", "rewards"], [sp.csr_array, sp.csc_array, np.asfortranarray], strength=1))
def test_storages_give_the_same_model(level, stored):
    X, y = data(seed=1)
    X[np.abs(X) < 0.3] = 0.0
    assert_same_model(*(classifier(level=level, tol=1e-2).fit(M, y) for M in (X, stored(X))))


@both_levels
@for_each("scaling", ["standard", "maxabs"])
def test_scaling_equals_scaled_columns(level, scaling):
    X, y = data(seed=1)
    X = X * np.array([10.0, 0.1, 1.0]) + (np.array([5.0, 0.0, -1.0]) if scaling == "standard" else 0.0)
    Z = (X - X.mean(axis=0)) / X.std(axis=0) if scaling == "standard" else X / np.abs(X).max(axis=0)
    scaled = classifier(level=level, scaling=scaling, tol=1e-2).fit(X, y)
    by_hand = classifier(level=level, tol=1e-2).fit(Z, y)
    np.testing.assert_allclose(scaled.levels_, by_hand.levels_, **SAME_STEPS)
    np.testing.assert_allclose(scaled.decision_function(X), by_hand.decision_function(Z), **SAME_STEPS)
    assert scaled.objective(X, y) == pytest.approx(scaled.objective_, rel=1e-12)  # the same sums
    if level == "rewards":
        assert scaled.levels_[-1] <= scaled.level_bound_


def test_labels_of_any_kind_and_a_measure_object_are_taken():
    X, y = data(seed=1)
    expected = classifier("fbeta", {"beta": 2.0}).fit(X, y)
    named = classifier(get_measure("fbeta", {"beta": 2.0})).fit(X, np.where(y == 1, "yes", "no"))
    assert np.array_equal(named.coef_, expected.coef_)
    assert named.levels_ == expected.levels_
    assert set(named.predict(X)) == {"no", "yes"}


@for_each("n, share, scale", [(150, 0.2, 0.05), (400, 0.05, 0.1)])
def test_the_last_level_is_the_model_s_where_a_constant_is_hard_to_beat(n, share, scale):
    y = data(n=n, share=share)[1]
    X = scale * np.random.default_rng(0).standard_normal((n, 3))
    clf = classifier(level="rewards", tol=1e-6).fit(X, y)
    w = np.append(clf.coef_[0], clf.trained_intercept_)
    own = rewards_level("f1", None, w, np.hstack([X, np.ones((n, 1))]), y, np.ones(n), ALPHA)[0]
    assert clf.levels_[-1] == pytest.approx(own, rel=1e-9, abs=1e-9)  # the same sums in another order


@for_each("at", [1, 2])
def test_an_interrupt_between_two_fits_leaves_the_best_so_far(at, monkeypatch):
    X, y = few_positives()
    original, calls = amp_module.best_threshold, []

    def pressed(*arguments):
        calls.append(1)
        if len(calls) == at:
            raise KeyboardInterrupt
        return original(*arguments)

    monkeypatch.setattr(amp_module, "best_threshold", pressed)
    clf = classifier()
    with pytest.raises(KeyboardInterrupt):
        clf.fit(X, y)
    assert clf.status_ == "interrupted"
    assert clf.coef_.shape == (1, X.shape[1])


def first_method(clf):
    """Return what "auto" trained first, kept or not."""
    return clf.solver_ if clf.rejected_ is None else clf.rejected_.split()[0]


@for_each("measure", ["f1", "fbeta", "jaccard"])
@for_each("n, p, solver", [(300, 3, "amp"), (299, 3, "cost_search")])
def test_auto_chooses_it_from_a_hundred_rows_per_feature(measure, n, p, solver):
    X, y = np.random.default_rng(0).standard_normal((n, p)), np.arange(n) % 3 == 0
    X[y] += 1.0
    assert first_method(MeasureClassifier(measure).fit(X, y)) == solver
    assert MeasureClassifier(measure, risk="logistic").fit(X, y).solver_ == "newton", (
        "a risk that was asked for is trained"
    )
    assert MeasureClassifier("gower_legendre").fit(X, y).solver_ == "cost_search"


@for_each("alpha", [3.0, 10.0])
@for_each("measure", ["f1", "jaccard"])
def test_a_strong_penalty_leaves_a_level_of_rewards_all_the_same(measure, alpha):
    """The score 1 for all rows costs too much there, a smaller constant has a level."""
    X, y = data()
    clf = MeasureClassifier(
        measure, solver="amp", solver_params={"level": "rewards"}, alpha=alpha, tol=1e-6, max_iter=10**5
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # all rows may have the same score
        clf.fit(X, y)
    assert 0.0 < clf.levels_[-1] <= clf.level_bound_
    best, _ = best_level(measure, None, np.hstack([X, np.ones((len(y), 1))]), y, np.ones(len(y)), alpha)
    assert clf.levels_[-1] <= best + 1e-6
    assert best <= clf.level_bound_ + 1e-6


def test_the_lowest_of_all_bounds_is_kept(monkeypatch):
    bounds = itertools.chain([0.93, 0.91], itertools.repeat(0.95))
    monkeypatch.setattr(amp_module, "bound_from", lambda *_: next(bounds))
    X, y = few_positives()
    clf = classifier(level="rewards").fit(X, y)
    assert len(clf.levels_) >= 3
    assert clf.level_bound_ == 0.91


WEAK = {"alpha": 1e-3, "scaling": "standard", "random_state": 0}


@pytest.fixture(scope="module")
def weak():
    """One positive in a hundred and light tails: the hinge is far behind the logistic loss, by three standard errors."""
    return make_imbalanced(80_000, 5, tail=30.0, positive_share=0.01, label_noise=0.0, random_state=1)


def test_auto_keeps_the_method_that_held_out_rows_favour(weak):
    X, y = weak
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        auto = MeasureClassifier("f1", probability=True, **WEAK).fit(X, y)
    assert auto.rejected_ == "amp with risk hinge had a lower f1 on held-out rows"
    assert (auto.solver_, auto.risk_) == ("cost_search", "logistic")
    named = MeasureClassifier("f1", solver="cost_search", **WEAK).fit(X, y)
    assert np.array_equal(auto.coef_, named.coef_)
    assert auto.intercept_ == named.intercept_
    assert auto.calibration_ is not None


def test_levels_of_an_earlier_fit_do_not_stay(weak):
    X, y = make_imbalanced(5_000, 5, tail=30.0, positive_share=0.3, label_noise=0.0, random_state=0)
    clf = MeasureClassifier("f1", alpha=1e-3, scaling="standard").fit(X, y)
    assert clf.levels_
    clf.set_params(**WEAK).fit(*weak)
    assert clf.solver_ == "cost_search"
    assert not hasattr(clf, "levels_")
    assert not hasattr(clf, "level_bound_")


def test_amp_by_name_stays(weak):
    clf = MeasureClassifier("f1", solver="amp", **WEAK).fit(*weak)
    assert (clf.solver_, clf.rejected_) == ("amp", None)


def test_auto_stays_with_amp_where_it_learns():
    X, y = make_imbalanced(5_000, 5, tail=30.0, positive_share=0.3, label_noise=0.0, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert MeasureClassifier("f1", alpha=1e-3, scaling="standard").fit(X, y).solver_ == "amp"


def test_the_second_solver_has_the_time_that_is_left(weak):
    X, y = weak
    limits = []
    with pytest.MonkeyPatch.context() as patch:
        solve = CostSearchSolver.search

        def search(self, problem, random_state, w0, control):
            limits.append(control.max_time)
            return solve(self, problem, random_state, w0, control)

        patch.setattr(CostSearchSolver, "search", search)
        MeasureClassifier("f1", max_time=100.0, **WEAK).fit(X, y)
    assert 0.0 < limits[0] < 100.0
