"""SquaredRocAreaRisk: its O(n log n) sums against all pairs, and RankSVM's minimum."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from cases import for_each
from scoreline import MeasureClassifier
from scoreline.risks import SquaredRocAreaRisk
from tiers import examples

EPS = np.finfo(float).eps


def problem(n=60, share=0.4, seed=0, weighted=False):
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(n) < share, 1, -1)
    y[:2] = 1, -1
    return rng.standard_normal(n) + 0.5 * y, y, rng.uniform(0.2, 2.0, n) if weighted else None


def all_pairs(z, y, s=None):
    """Return (R, gradient) by visiting all pairs, one at a time, in extended precision."""
    s = np.ones(len(z)) if s is None else s
    z, s = z.astype(np.longdouble), s.astype(np.longdouble)
    value, grad, pairs = np.longdouble(0.0), np.zeros(len(z), dtype=np.longdouble), s[y > 0].sum() * s[y < 0].sum()
    for i in np.flatnonzero(y > 0):
        for j in np.flatnonzero(y < 0):
            t = max(1.0 - z[i] + z[j], np.longdouble(0.0))
            value += s[i] * s[j] * t**2 / 2.0
            grad[i] -= s[i] * s[j] * t
            grad[j] += s[i] * s[j] * t
    return float(value / pairs), (grad / pairs).astype(float)


def check_against_pairs(z, y, s, size):
    """Compare with all pairs; t is known to a few roundings of `size`, and the sums have n terms."""
    n = len(z)
    got = SquaredRocAreaRisk().prepare(y, s).evaluate(z)
    value, grad = all_pairs(z, y, s)
    # t^2 / 2 moves by t times the rounding of t, so R by sqrt(2 R) of it; R itself is a sum.
    assert abs(got.value - value) <= n * EPS * (value + np.sqrt(2.0 * value) * size)
    assert got.hard == got.value >= 0.0
    # Row i has the share s_i / S of all pairs.
    share = np.ones(n) if s is None else s
    share = share / np.where(y > 0, share[y > 0].sum(), share[y < 0].sum())
    allowed = n * EPS * (np.abs(grad) + share * size)
    assert (np.abs(got.grad - grad) <= allowed).all(), f"off by {np.abs(got.grad - grad).max():.3g}"
    assert abs(got.mass - np.abs(grad).sum()) <= allowed.sum()
    assert abs(got.plane - (got.value - got.grad @ z)) <= n * EPS * (value + got.mass * np.abs(z).max())


@examples(100)
@given(data=st.data())
def test_the_risk_equals_the_sum_over_pairs(data):
    n = data.draw(st.integers(2, 25))
    _, y, s = problem(n, data.draw(st.sampled_from([0.0, 0.1, 0.5, 0.95])), data.draw(st.integers(0, 999)), True)
    entry = data.draw(st.sampled_from([st.floats(-3, 3), st.sampled_from([k / 4 for k in range(-8, 9)]), st.just(1.0)]))
    z = np.array(data.draw(st.lists(entry, min_size=n, max_size=n)))
    s[2::5] = 0.0
    check_against_pairs(z, y, data.draw(st.sampled_from([None, s])), 7.0)  # 1 + 2 max |z|


@for_each("weighted", [False, True])
@for_each("share", [0.05, 0.5, 0.95])
def test_the_literal_reference_is_the_sum_over_pairs(share, weighted):
    z, y, s = problem(40, share, 1, weighted)
    value, grad, plane = SquaredRocAreaRisk.reference(z, y, s)
    expected, expected_grad = all_pairs(z, y, s)
    # 400 terms of size 1.
    assert abs(value - expected) <= 400 * EPS
    np.testing.assert_allclose(grad, expected_grad, rtol=0, atol=400 * EPS)
    assert abs(plane - (value - grad @ z)) <= 400 * EPS


@for_each("shape", [(1, 1), (1, 9), (9, 1), (3, 8)])
def test_zero_scores_cost_one_half(shape):
    y = np.repeat([1, -1], shape)
    result = SquaredRocAreaRisk().prepare(y).evaluate(np.zeros(len(y)))
    # Sums of up to ten equal terms.
    assert abs(result.value - 0.5) <= 8 * EPS
    np.testing.assert_allclose(result.grad, -y / np.where(y > 0, shape[0], shape[1]), rtol=8 * EPS)
    assert abs(SquaredRocAreaRisk().prepare(y, np.linspace(0.1, 2.0, len(y))).value_at_zero() - 0.5) <= 8 * EPS


@for_each("weighted", [False, True])
@for_each("share", [0.1, 0.5, 0.9])
def test_the_gradient_is_that_of_central_differences(share, weighted):
    z, y, s = problem(50, share, 2, weighted)
    prepared = SquaredRocAreaRisk().prepare(y, s)
    _, grad = prepared.value_grad(z)
    step = 1e-5
    for i in range(50):
        e = np.zeros(50)
        e[i] = step
        difference = (prepared.value(z + e) - prepared.value(z - e)) / (2.0 * step)
        # Values of size 1 are rounded; a pair whose kink lies within the step costs at most half of it, few pairs do.
        assert abs(difference - grad[i]) <= 32 * EPS / step + 0.01 * step


def test_integer_weights_equal_repeated_rows():
    z, y, _ = problem(60, seed=3)
    k = np.random.default_rng(3).integers(0, 4, 60)
    k[:2] = 1
    rows = np.repeat(np.arange(60), k)
    a = SquaredRocAreaRisk().prepare(y, k.astype(float)).evaluate(z)
    b = SquaredRocAreaRisk().prepare(y[rows]).evaluate(z[rows])
    # Sums of about 90 terms.
    assert abs(a.value - b.value) <= 90 * EPS * a.value
    np.testing.assert_allclose(a.grad, np.bincount(rows, b.grad, 60), rtol=0, atol=90 * EPS)


@for_each("offset", [0.0, 1e6, -1e9])
@for_each("spread", [1e-3, 1.0, 1e3, 1e6])
@for_each("share", [0.1, 0.5, 0.9])
def test_large_spreads_and_offsets_keep_relative_accuracy(share, spread, offset):
    z, y, _ = problem(40, share, 4)
    z = z * spread + offset  # what rounding does to z here is part of the problem
    # Differences of scores are exact next to an offset, or rounded at the size of the spread.
    check_against_pairs(z, y, None, 1.0 + np.ptp(z))


@for_each("outlier", [1e4, 1e6, 1e8])
@for_each("shape", [(15, 25), (25, 15)])
def test_outliers_on_their_right_side_cost_no_digits(shape, outlier):
    y = np.repeat([1, -1], shape)
    z = np.random.default_rng(5).standard_normal(40)
    expected, expected_grad = all_pairs(z[1:-1], y[1:-1])
    z[0], z[-1] = outlier, -outlier
    result = SquaredRocAreaRisk().prepare(y).evaluate(z)
    share = (shape[0] - 1) * (shape[1] - 1) / (shape[0] * shape[1])
    # The sums of the other pairs alone, of size 1, 40 terms in a row.
    assert abs(result.value - share * expected) <= 40 * EPS
    np.testing.assert_allclose(result.grad[1:-1], share * expected_grad, rtol=0, atol=40 * EPS)
    assert abs(result.grad[[0, -1]]).max() == 0.0


def test_the_plane_lies_below_the_risk_and_a_shift_changes_nothing():
    z, y, s = problem(50, seed=6, weighted=True)
    prepared = SquaredRocAreaRisk().prepare(y, s)
    result = prepared.evaluate(z)
    rng = np.random.default_rng(6)
    for size in (0.0, 0.1, 1.0, 100.0):
        other = z + size * rng.standard_normal(50)
        value = prepared.value(other)
        assert value >= result.plane + result.grad @ other - 50 * EPS * max(1.0, value)  # sums of 50 terms
    assert abs(result.grad.sum()) <= 50 * EPS
    assert abs(prepared.value(z + 3.0) - result.value) <= 50 * EPS * result.value


@for_each("alpha", [1e-3, 1e-1])
def test_the_classifier_finds_the_minimum_of_ranksvm(alpha):
    rng = np.random.default_rng(7)
    X = rng.standard_normal((80, 4))
    y = np.where(X @ [1.0, -1.0, 0.5, 0.0] + rng.standard_normal(80) > 0.5, 1, -1)
    clf = MeasureClassifier(risk="roc_area_squared", solver="lbfgs", alpha=alpha, tol=1e-8).fit(X, y)
    assert clf.status_ == "converged"
    w = clf.coef_[0]

    differences = (X[y > 0][:, None, :] - X[y < 0][None, :, :]).reshape(-1, 4)
    C = 1.0 / (2.0 * alpha * len(differences))

    def ranksvm(w):
        t = np.maximum(0.0, 1.0 - differences @ w)
        return 0.5 * w @ w + C * (t @ t), w - 2.0 * C * differences.T @ t

    # J is smooth with L = alpha + max |x_i - x_j|^2, so |grad J|^2 <= 2 L gap.
    largest = alpha + (differences**2).sum(axis=1).max()
    gradient = alpha * w + X.T @ all_pairs(X @ w, y)[1]
    assert np.linalg.norm(gradient) <= np.sqrt(2.0 * largest * clf.gap_)
    # RankSVM's objective is J / alpha: sums over 1500 pairs.
    value, slope = ranksvm(w)
    assert alpha * value == pytest.approx(clf.objective_, rel=1e-13)
    np.testing.assert_allclose(alpha * slope, gradient, rtol=0, atol=1e-13)
    best = minimize(ranksvm, np.zeros(4), jac=True, method="BFGS", options={"gtol": 1e-9 / alpha})
    assert clf.lower_bound_ <= alpha * best.fun * (1.0 + 1e-13)
    # alpha/2 |w - w*|^2 <= gap, and scipy stops at a gradient of J of 1e-9.
    assert np.linalg.norm(w - best.x) <= np.sqrt(2.0 * clf.gap_ / alpha) + 4e-9 / alpha
