"""PrbepRisk: the maximum over all labellings, its smoothed form as a quadratic program, and the projection behind it."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from cases import for_each
from scoreline.kernels import balance
from scoreline.measures import get_measure
from scoreline.risks import PrbepRisk
from tiers import examples

EPS = np.finfo(float).eps

# Scores, labels, R: the maximum over all 2^n labellings, in rational arithmetic (these scores are exact in binary).
GOLDEN = {
    "plain": ([0.5, -0.25, 1.75, 0.125, -1.5, 0.75], [1, 1, -1, -1, 1, -1], 1 + 3.875 / 3),
    "separated": ([3.0, 2.5, -3.0, -4.0, -2.5], [1, 1, -1, -1, -1], 0.0),
    "one_wrong_pair": ([4.0, -1.0, 2.0, -4.0], [1, 1, -1, -1], 2.0),
    "ties": ([0.5, 0.5, 0.5, 0.5, -0.5, -0.5], [1, -1, 1, -1, 1, -1], 1.0),
    "one_positive": ([0.25, 0.5, -1.0, -0.5, 0.0], [1, -1, -1, -1, -1], 1.1),
    "one_negative": ([1.0, -0.5, 0.25, 2.0, 0.5], [1, 1, 1, 1, -1], 0.65),
    "more_positives": ([0.0, 1.0, -1.0, 0.5, 0.5, -0.5, 2.0], [1, 1, 1, 1, 1, -1, -1], 0.4 + 5 / 7),
}


def brute_force(z, y):
    """Return max over all labellings with n+ predicted positives of FN / n+ - (2/n) (flipped positives - negatives)."""
    n, positive = len(z), np.asarray(y) > 0
    flips = (np.arange(2**n)[:, None] >> np.arange(n)) & 1
    allowed = flips[:, positive].sum(axis=1) == flips[:, ~positive].sum(axis=1)
    flips = flips[allowed]
    wrong = flips[:, positive].sum(axis=1) / positive.sum()
    return float((wrong - 2.0 / n * (flips @ (np.where(positive, 1.0, -1.0) * z))).max())


def problem(n, share=0.4, seed=0, weighted=False):
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(n) < share, 1, -1)
    y[:2] = 1, -1
    z = rng.standard_normal(n) + 0.3 * y
    return z, y, rng.uniform(0.2, 2.0, n) if weighted else np.ones(n)


def betas(grad, y, s):
    """Return beta from grad = -(2/S) y s beta."""
    return -grad * y * s.sum() / (2.0 * s)


@for_each("z, y, value", GOLDEN.values(), labels=GOLDEN)
def test_golden_values(z, y, value):
    z, y = np.array(z), np.array(y)
    # Sums of eight terms of size 1.
    assert abs(brute_force(z, y) - value) <= 16 * EPS
    result = PrbepRisk().prepare(y).evaluate(z)
    assert abs(result.value - value) <= 16 * EPS
    assert result.hard == result.value
    # The plane touches the risk where it was made.
    assert abs(result.plane + result.grad @ z - value) <= 16 * EPS


@st.composite
def small_problems(draw, most=8):
    n = draw(st.integers(2, most))
    y = np.array(
        draw(st.permutations([1, -1, *draw(st.lists(st.sampled_from([1, -1]), min_size=n - 2, max_size=n - 2))]))
    )
    entry = draw(st.sampled_from([st.floats(-3, 3), st.sampled_from([k / 4 for k in range(-8, 9)]), st.just(0.5)]))
    return np.array(draw(st.lists(entry, min_size=n, max_size=n))), y


@examples(100)
@given(small=small_problems())
def test_the_risk_is_the_maximum_over_all_labellings(small):
    z, y = small
    # Sums of eight terms up to 3.
    assert abs(PrbepRisk().prepare(y).value(z) - brute_force(z, y)) <= 64 * EPS
    assert abs(PrbepRisk.reference(z, y)[0] - brute_force(z, y)) <= 64 * EPS


@for_each("shape", [(1, 1), (1, 7), (7, 1), (4, 4), (3, 5), (5, 3)])
def test_zero_scores_cost_the_smaller_class_over_the_positives(shape):
    y = np.repeat([1, -1], shape)
    expected = min(shape) / shape[0]
    assert abs(PrbepRisk().prepare(y).value_at_zero() - expected) <= 4 * EPS  # a few roundings of 1
    assert abs(brute_force(np.zeros(len(y)), y) - expected) <= 4 * EPS


@examples(100)
@given(small=small_problems(most=20), seed=st.integers(0, 1000), weights=st.sampled_from(["none", "integers"]))
def test_the_risk_bounds_one_minus_the_break_even_point(small, seed, weights):
    z, y = small
    s = None if weights == "none" else np.random.default_rng(seed).integers(1, 4, len(z)).astype(float)
    # Sums of 20 terms up to 3.
    assert PrbepRisk().prepare(y, s).value(z) >= 1.0 - get_measure("prbep").value(y, z, s) - 64 * EPS


def through_the_bias(z, y, s, mu):
    """Return min over tau of (2/S) [sum_P s phi(S/(2 S+) - z - tau) + sum_N s phi(z + tau)], by scipy."""
    positive, total, width = y > 0, s.sum(), 0.5 * mu * s.sum()
    offset = np.where(positive, total / (2.0 * s[positive].sum()) - z, z)

    def loss(tau):
        t = offset - y * tau
        phi = np.where(t <= 0.0, 0.0, np.where(t < width, t**2 / (2.0 * width), t - 0.5 * width))
        return 2.0 / total * (s @ phi)

    reach = np.abs(offset).max() + width
    return minimize_scalar(loss, bounds=(-reach, reach), method="bounded", options={"xatol": 1e-11}).fun


def quadratic_program(z, y, s, mu):
    """Return (value, beta) of the definition of the smoothed risk."""
    import cvxpy as cp  # which takes seconds

    beta, gain = cp.Variable(len(z)), np.where(y > 0, 1.0 / s[y > 0].sum(), 0.0) - 2.0 / s.sum() * y * z
    smoothing = 0.5 * mu * cp.sum(cp.multiply(s, cp.square(beta)))
    goal = cp.Maximize(cp.sum(cp.multiply(s * gain, beta)) - smoothing)
    task = cp.Problem(goal, [beta >= 0, beta <= 1, cp.sum(cp.multiply(s * y, beta)) == 0])
    task.solve(solver="CLARABEL", tol_gap_abs=1e-12, tol_gap_rel=1e-12, tol_feas=1e-12)
    return task.value, beta.value


@for_each("weighted", [False, True])
@for_each("width", [0.1, 1.0, 10.0])
@for_each("share", [0.0, 0.4, 0.9])
def test_the_smoothed_risk_is_the_least_over_all_biases(share, width, weighted):
    for seed in range(3):
        z, y, s = problem(25, share, seed, weighted)
        prepared = PrbepRisk().prepare(y, s if weighted else None)
        mu = width / prepared.ramp_scale
        # A minimum of values known to rounding: scipy finds it to about 1e-15, 1e-12 leaves room for its last step.
        assert abs(prepared.smoothed(z, mu)[0] - through_the_bias(z, y, s, mu)) <= 1e-12


@pytest.mark.slow
@for_each("weighted", [False, True])
@for_each("width", [0.1, 1.0, 10.0])
@for_each("share", [0.0, 0.4, 0.9])
def test_the_smoothed_risk_is_the_quadratic_program(share, width, weighted):
    for seed in range(3):
        z, y, s = problem(25, share, seed, weighted)
        prepared = PrbepRisk().prepare(y, s if weighted else None)
        mu = width / prepared.ramp_scale
        value, grad, plane = prepared.smoothed(z, mu)
        program, beta = quadratic_program(z, y, s, mu)
        # Clarabel was asked for 1e-12; measured 1e-12 in the value and 5e-9 in beta, whose curvature is only mu.
        assert abs(value - program) <= 1e-7
        np.testing.assert_allclose(betas(grad, y, s), beta, rtol=0, atol=1e-7)
        assert abs(plane - (s * beta)[y > 0].sum() / s[y > 0].sum()) <= 1e-7


@for_each("mu", [10.0**k for k in range(-10, 2)])
@for_each("shape", [(1, 1), (1, 9), (9, 1), (5, 5), (3, 8)])
def test_zero_scores_have_a_closed_form(shape, mu):
    plus, minus = shape
    n, y = plus + minus, np.repeat([1, -1], shape)
    value, grad, plane = PrbepRisk().prepare(y).smoothed(np.zeros(n), mu)
    moved = min(plus, minus, minus / (mu * n))
    # Sums of n equal terms of size 1 / n.
    assert abs(value - (moved / plus - mu * moved**2 * n / (2.0 * plus * minus))) <= 2 * n * EPS
    assert abs(plane - moved / plus) <= 2 * n * EPS
    # The bias is kept as two numbers, so tied rows keep their digits on the narrowest ramp.
    np.testing.assert_allclose(grad, -2.0 / n * y * moved / np.where(y > 0, plus, minus), rtol=0, atol=4 * EPS)


@for_each("weighted", [False, True])
@for_each("width", [1e-4, 1e-2, 1.0, 30.0])
def test_the_gradient_is_that_of_central_differences(width, weighted):
    rng = np.random.default_rng(3)
    _, y, s = problem(40, 0.3, 3, weighted)
    prepared = PrbepRisk().prepare(y, s if weighted else None)
    mu, offset = width / prepared.ramp_scale, 0.5 * s.sum() / s[y > 0].sum()
    z = np.where(y > 0, offset, 0.0) + 2.0 * width * rng.standard_normal(40)  # most rows are on or next to the ramp
    _, grad, _ = prepared.smoothed(z, mu)
    step = 1e-4 * width
    assert np.count_nonzero((betas(grad, y, s) > 0.01) & (betas(grad, y, s) < 0.99)) >= 5
    for i in range(40):
        e = np.zeros(40)
        e[i] = step
        difference = (prepared.smoothed(z + e, mu)[0] - prepared.smoothed(z - e, mu)[0]) / (2.0 * step)
        # R_mu is piecewise quadratic with curvature (2/S) s / width: a kink in between costs at most half of that times
        # the step; values of size 1 are rounded.
        assert abs(difference - grad[i]) <= 0.5 * 2.0 / s.sum() * s[i] * 1e-4 + 8 * EPS * max(1.0, width) / step


@for_each("weighted", [False, True])
@for_each("scale", [0.0, 1e-300, 1e-8, 1.0, 1e8, 1e17, 1e150])
def test_everything_is_finite_for_all_ramps_and_scores(scale, weighted):
    for seed, share in enumerate([0.0, 0.6]):
        z, y, s = problem(40, share, seed, weighted)
        s[5:8] = 0.0 if weighted else 1.0
        prepared = PrbepRisk().prepare(y, s if weighted else None)
        for mu in [0.0, *10.0 ** np.arange(-10.0, 2.0)]:
            with warnings.catch_warnings(), np.errstate(all="raise", under="ignore"):
                warnings.simplefilter("error")
                result = prepared.evaluate(z * scale, mu)
            numbers = [result.value, result.hard, result.plane, result.mass, *result.grad]
            assert np.isfinite(numbers).all()
            assert abs(result.mass - np.abs(result.grad).sum()) <= 40 * EPS  # a sum of 40 terms, below 2
            assert abs(result.grad.sum()) <= 40 * EPS
            literal = PrbepRisk.reference(z * scale, y, s, mu)[0]
            # A sum of 40 terms of the size of the scores; a mean gap of 40 scores.
            assert abs(result.value - literal) <= 40 * EPS * max(1.0, 4.0 * scale)


@for_each("weighted", [False, True])
@for_each("width", [0.0, 1e-10, 1e-3, 0.3, 10.0])
def test_planes_lie_below_the_risk(width, weighted):
    rng = np.random.default_rng(0)
    for seed, share in enumerate([0.0, 0.2, 0.5, 0.9]):
        z, y, s = problem(50, share, seed, weighted)
        z = np.round(z, 1) if seed % 2 else z
        prepared = PrbepRisk().prepare(y, s if weighted else None)
        result = prepared.evaluate(z, width / prepared.ramp_scale)
        assert abs(result.grad.sum()) <= 50 * EPS  # 50 terms that add up to 2 at most
        for size in (0.0, 1e-3, 1.0, 1e3, 1e6):
            other = (z if size < 1.0 else 0.0) + size * (rng.standard_normal(50) + 5.0)
            allowed = 50 * EPS * max(1.0, np.abs(other).max())  # a sum of 50 terms
            assert prepared.value(other) >= result.plane + result.grad @ other - allowed


@examples(60)
@given(small=small_problems(most=15), seed=st.integers(0, 1000), log_width=st.floats(-6.0, 1.0), hard=st.booleans())
def test_integer_weights_equal_repeated_rows(small, seed, log_width, hard):
    z, y = small
    k = np.random.default_rng(seed).integers(0, 4, len(z))
    k[[np.argmax(y > 0), np.argmax(y < 0)]] = 1
    rows = np.repeat(np.arange(len(z)), k)
    weighted, repeated = PrbepRisk().prepare(y, k.astype(float)), PrbepRisk().prepare(y[rows])
    mu = 0.0 if hard else 10.0**log_width / weighted.ramp_scale
    a, b = weighted.evaluate(z, mu), repeated.evaluate(z[rows], mu)
    # Sums of 45 terms up to 3.
    tolerance = 256 * EPS
    assert abs(a.value - b.value) <= tolerance
    assert abs(a.hard - b.hard) <= tolerance
    # The bias, known to a few roundings of 3, is divided by the width.
    wide = tolerance / (1.0 if hard else min(1.0, 10.0**log_width))
    assert abs(a.plane - b.plane) <= wide
    np.testing.assert_allclose(a.grad, np.bincount(rows, b.grad, len(z)), rtol=0, atol=wide)


@examples(60)
@given(small=small_problems(most=15))
def test_the_smoothed_risk_lies_within_the_looseness_below_the_risk(small):
    z, y = small
    prepared = PrbepRisk().prepare(y)
    hard, looseness = prepared.value(z), 2.0 * min((y > 0).sum(), (y < 0).sum()) / len(y)
    assert abs(prepared.looseness - looseness) <= 2 * EPS  # one division
    before = -np.inf
    for width in (1e3, 1.0, 1e-3, 1e-6, 1e-12):
        result = prepared.evaluate(z, width / prepared.ramp_scale)
        allowed = 64 * EPS * max(1.0, width)  # sums of 15 terms of this size
        assert abs(result.hard - hard) <= 64 * EPS  # the same 15 terms, in an order that the processor decides
        assert hard - looseness * width - allowed <= result.value <= hard + allowed
        assert result.value >= before - allowed
        before = result.value
    assert abs(before - hard) <= 1e-12 + 64 * EPS


def projected(v, sign, weight=None):
    """Return the projection of v onto {0 <= x <= 1, sum_i weight_i sign_i x_i = 0} by the kernel."""
    z, x = np.ascontiguousarray(-sign * v), np.empty(len(v))
    found = balance.balance(z, sign, weight, 0.0, 1.0)
    ones = np.ones(len(v)) if weight is None else weight
    balance.sums(z, sign, weight, 0.0, 1.0, found, (1.0, 1.0), x)
    x /= ones  # grad is weight * beta
    # Sums of n terms up to 2.
    assert abs(found.above - (ones * x)[sign > 0].sum()) <= 4 * len(v) * EPS
    assert abs(found.below - (ones * x)[sign < 0].sum()) <= 4 * len(v) * EPS
    return x


def bisected(v, sign, weight=None):
    """Return the same by 200 halvings of the multiplier."""
    s = np.ones(len(v)) if weight is None else weight
    low, high = -np.abs(v).max() - 1.0, np.abs(v).max() + 1.0
    for _ in range(200):
        tau = 0.5 * (low + high)
        x = np.clip(v - sign * tau, 0.0, 1.0)
        low, high = (tau, high) if (s * sign) @ x > 0.0 else (low, tau)
    return x


VECTORS = {
    "random": lambda n, rng: rng.standard_normal(n),
    "wide": lambda n, rng: 100.0 * rng.standard_normal(n),
    "ties": lambda n, rng: rng.integers(-2, 3, n) / 2.0,
    "equal": lambda n, rng: np.full(n, 0.5),
    "all_active": lambda n, rng: rng.uniform(0.45, 0.55, n),
    "none_active_at_zero": lambda n, rng: -1.0 - rng.random(n),
    "none_active_at_one": lambda n, rng: 2.0 + rng.random(n),
    "zeros": lambda n, rng: np.zeros(n),
}


@for_each("weighted", [False, True])
@for_each("make", VECTORS.values(), labels=VECTORS)
def test_the_balance_is_a_projection(make, weighted):
    for n, share in ((2, 0.5), (3, 0.9), (30, 0.1), (30, 0.5), (31, 0.9)):
        rng = np.random.default_rng(n)
        sign = np.where(rng.random(n) < share, 1, -1).astype(np.int8)
        sign[:2] = 1, -1
        weight = rng.uniform(0.5, 2.0, n) if weighted else None
        v = make(n, rng)
        x = projected(v, sign, weight)
        # The multiplier is known to rounding of |v| <= 300, after a sum over 31 rows.
        tolerance = 64 * EPS * max(1.0, np.abs(v).max())
        np.testing.assert_allclose(x, bisected(v, sign, weight), rtol=0, atol=tolerance)
        ones = np.ones(n) if weight is None else weight
        assert x.min() >= 0.0
        assert x.max() <= 1.0 + 2 * EPS  # divided by the weight
        assert abs((ones * sign) @ x) <= n * tolerance
        # What is in the set already stays where it is.
        np.testing.assert_allclose(projected(x, sign, weight), x, rtol=0, atol=2 * tolerance)


@pytest.mark.slow
@for_each("seed", range(4))
def test_the_projection_is_that_of_cvxpy(seed):
    import cvxpy as cp  # which takes seconds

    rng = np.random.default_rng(seed)
    sign = np.where(rng.random(20) < (0.2, 0.5, 0.8, 0.5)[seed], 1, -1).astype(np.int8)
    sign[:2] = 1, -1
    v = rng.standard_normal(20) * 2.0
    x = cp.Variable(20)
    task = cp.Problem(cp.Minimize(cp.sum_squares(x - v)), [x >= 0, x <= 1, sign.astype(float) @ x == 0])
    task.solve(solver="CLARABEL", tol_gap_abs=1e-12, tol_gap_rel=1e-12, tol_feas=1e-12)
    # |x - x*|^2 is at most the gap of 1e-12 times the value, about 50.
    np.testing.assert_allclose(projected(v, sign), x.value, rtol=0, atol=1e-5)
