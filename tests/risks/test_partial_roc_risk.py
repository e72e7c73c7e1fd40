"""PartialRocRisk against all sets of negatives, exact arithmetic, a quadratic programme, and finite differences."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from random_labels import labels

from cases import for_each
from scoreline.risks import PartialRocRisk, RocAreaRisk
from tiers import TIER

EPS = np.finfo(float).eps
WIDTHS = [1e-6, 1e-3, 0.3, 2.0]


def scores(rng, y, kind):
    """Return Gaussian, rounded, nearly tied or zero scores, and scores with a gap below the highest negatives."""
    n, what = len(y), kind % 6
    z = rng.standard_normal(n)
    if what == 1:
        return np.round(z)
    if what == 2:
        return np.round(4.0 * z) / 4.0 + 1e-9 * rng.standard_normal(n)
    if what == 3:
        return np.zeros(n)
    if what == 4:  # a plateau: the ramps of the negatives above and below it do not meet
        return np.where(rng.random(n) < 0.4, 4.0, 0.0) + (0.0, 0.1)[kind % 2] * z
    return z


def weights(rng, y):
    """Return whole numbers with zeros."""
    s = rng.integers(0, 4, size=len(y)).astype(float)
    s[np.flatnonzero(y > 0)[0]] = s[np.flatnonzero(y < 0)[0]] = 1.0
    return s


def clip(x):
    return min(max(x, Fraction(0)), Fraction(1))


def exactly(z, y, s, top, width):
    """Return (R, gradient, c) in exact arithmetic: the share of every negative from the kinks, then all pairs."""
    s = np.ones(len(z)) if s is None else s
    f, g = ([(row, Fraction(z[row]), Fraction(s[row])) for row in np.flatnonzero(y == side)] for side in (1, -1))
    top, width = Fraction(top), Fraction(width)
    if width > 0:

        def taken(theta):
            return sum(weight * clip((x - theta) / width) for _, x, weight in g)

        kinks = sorted({x - shift for _, x, weight in g if weight for shift in (Fraction(0), width)}, reverse=True)
        lower = next((k for k, kink in enumerate(kinks) if taken(kink) >= top), len(kinks) - 1)
        theta = kinks[lower]
        if lower and taken(kinks[lower - 1]) < taken(theta):
            slope = (taken(theta) - taken(kinks[lower - 1])) / (kinks[lower - 1] - theta)
            theta += max(Fraction(0), taken(theta) - top) / slope
        share = {row: clip((x - theta) / width) for row, x, _ in g}
    else:
        share, left = {}, top
        for _, group in itertools.groupby(sorted(g, key=lambda entry: -entry[1]), key=lambda entry: entry[1]):
            tied = list(group)
            weight = sum(entry[2] for entry in tied)
            part = clip(left / weight) if weight else Fraction(0)
            share.update({row: part for row, _, _ in tied})
            left -= part * weight
    grad, value, total = np.zeros(len(z), dtype=object), Fraction(0), Fraction(0)
    pairs = sum(weight for _, _, weight in f) * top
    for (i, a, s_a), (j, b, s_b) in itertools.product(f, g):
        t = 1 - a + b
        beta = clip(t / width) if width > 0 else Fraction(t > 0)
        beta = min(beta, share[j])
        value += s_a * s_b * (beta * t - width * beta * beta / 2) / pairs
        total += s_a * s_b * beta / pairs
        grad[i] -= s_a * s_b * beta / pairs
        grad[j] += s_a * s_b * beta / pairs
    return value, grad, total


def difference(a, b):
    """Return the largest difference of floats and fractions."""
    return float(max(abs(Fraction(x) - y) for x, y in zip(a, b, strict=True)))


def check_exactly(z, y, s, max_fpr, width, magnified=1.0):
    """Compare value, gradient and plane; `magnified` is how much more than 1 / width rounding of scores may grow."""
    prepared = PartialRocRisk(max_fpr).prepare(y, s)
    mu = width / prepared.ramp_scale
    got = prepared.evaluate(z, mu)
    value, grad, plane = exactly(z, y, s, prepared.top, Fraction(mu) * Fraction(prepared.ramp_scale))
    # Sums of n terms of the size of the scores that count; a ramp is known to the rounding of scores over its width.
    size = 4 * len(z) * EPS * (1.0 + np.abs(z[got.grad != 0.0]).max(initial=0.0))
    ramps = 4 * len(z) * EPS * (1.0 + magnified / width if width else 1.0)
    assert abs(Fraction(got.value) - value) <= size
    assert difference(got.grad, grad) <= ramps, (
        f"{got.grad} instead of {grad.astype(float)} for z={z!r}, y={y!r}, s={s!r}"
    )
    assert abs(Fraction(got.plane) - plane) <= ramps
    assert abs(got.grad.sum()) <= ramps
    assert abs(got.mass - np.abs(got.grad).sum()) <= ramps
    return got


def test_the_risk_is_the_worst_of_all_sets_of_negatives():
    rng = np.random.default_rng(1)
    for trial in range(120):
        y = labels(rng, 2 + trial % 9, trial)
        z, positive = scores(rng, y, trial), y > 0
        for max_fpr in (1e-6, 0.3, 0.5, 1.0):
            prepared = PartialRocRisk(max_fpr).prepare(y)
            top = max(1, int(max_fpr * (~positive).sum()))
            assert prepared.top == top
            hinges = np.maximum(0.0, 1.0 - z[positive][:, None] + z[~positive][None, :]).sum(axis=0)
            expected = max(hinges[list(chosen)].sum() for chosen in itertools.combinations(range(len(hinges)), top))
            got = prepared.evaluate(z)
            size = 16 * EPS * (1.0 + 2.0 * np.abs(z).max())  # a mean of up to 25 pairs
            assert abs(got.value - expected / (positive.sum() * top)) <= size
            assert got.hard == got.value == prepared.value(z)
            assert abs(got.plane + got.grad @ z - got.value) <= size


@for_each("width", [0.0, *WIDTHS])
def test_value_and_gradient_equal_exact_arithmetic(width):
    rng = np.random.default_rng(2)
    for trial in range(60):
        y = labels(rng, 2 + trial % 8, trial)
        s = (None, weights(rng, y), rng.random(len(y)) * 3.0 + 0.1)[trial % 3]
        check_exactly(scores(rng, y, trial), y, s, (1e-6, 0.3, 0.5, 0.7)[trial % 4], width, magnified=4.0)


def check_against_reference(z, y, s, width):
    partial, area = PartialRocRisk(1.0).prepare(y, s), RocAreaRisk().prepare(y, s)
    assert abs(partial.ramp_scale - area.ramp_scale) <= 4 * EPS * area.ramp_scale
    got, expected = (risk.evaluate(z, width / area.ramp_scale) for risk in (partial, area))
    size = len(y) * EPS * (1.0 + 2.0 * np.abs(z).max())  # sums over n rows
    assert abs(got.value - expected.value) <= size
    assert abs(got.hard - expected.hard) <= size
    # A narrow ramp magnifies the rounding of 1 - z_i + z_j.
    np.testing.assert_allclose(got.grad, expected.grad, rtol=0, atol=size / min(1.0, width or 1.0))
    assert abs(got.plane - expected.plane) <= size / min(1.0, width or 1.0)


@for_each("width", [0.0, *WIDTHS])
def test_the_whole_of_the_negatives_is_the_roc_area(width):
    rng = np.random.default_rng(3)
    for trial in range(36):
        y = labels(rng, int(rng.integers(2, 60)), trial)
        check_against_reference(scores(rng, y, trial), y, weights(rng, y) if trial % 2 else None, width)


@for_each("width", [0.0, 1e-3, 0.3])
def test_the_whole_of_the_negatives_is_the_roc_area_with_real_weights(width):
    rng = np.random.default_rng(3)
    for trial in range(12):
        y = labels(rng, int(rng.integers(2, 60)), trial)
        check_against_reference(scores(rng, y, trial), y, rng.random(len(y)) * 3.0 + 0.1, width)


def test_the_whole_of_the_negatives_has_the_curvature_of_the_roc_area():
    rng = np.random.default_rng(4)
    for _ in range(6):
        y = labels(rng, 40)
        z = rng.standard_normal(40)
        partial, area = PartialRocRisk(1.0).prepare(y), RocAreaRisk().prepare(y)
        got, expected = (risk.hessian(z, 0.5 / risk.ramp_scale) for risk in (partial, area))
        # Counts of pairs on a ramp, none of them within rounding of its ends.
        np.testing.assert_allclose(got.diagonal, expected.diagonal, rtol=8 * EPS)
        assert got.rank_one[0][1] == pytest.approx(expected.rank_one[0][1], rel=8 * EPS)
        assert partial.hessian(z) is None


@pytest.mark.slow
@for_each("weighted", [False, True])
@for_each("width", [0.1, 1.0, 4.0])
def test_the_smoothed_risk_solves_its_quadratic_programme(width, weighted):
    import cvxpy as cp  # which takes seconds

    rng = np.random.default_rng(5)
    for trial in range(3):
        y = labels(rng, 9, (0, 4, 2)[trial])
        z, positive = scores(rng, y, (0, 2, 4)[trial]), y > 0
        s = weights(rng, y) if weighted else np.ones(9)
        prepared = PartialRocRisk(0.5).prepare(y, s)
        pairs, weight = prepared.ramp_scale, np.outer(s[positive], s[~positive])
        t = 1.0 - z[positive][:, None] + z[~positive][None, :]
        q, beta = cp.Variable(t.shape[1]), cp.Variable(t.shape)
        ones = np.ones((t.shape[0], 1))
        limits = [beta >= 0, beta <= ones @ cp.reshape(q, (1, t.shape[1]), order="C"), q >= 0, q <= 1]
        gain = cp.sum(cp.multiply(weight * t, beta)) - width / 2.0 * cp.sum(cp.multiply(weight, beta**2))
        problem = cp.Problem(cp.Maximize(gain / pairs), [*limits, s[~positive] @ q <= prepared.top])
        problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-12, tol_gap_rel=1e-12, tol_feas=1e-12)
        value, grad, plane = prepared.smoothed(z, width / pairs)
        # The solver is asked for 1e-12 in value, which leaves beta to about its root over the curvature.
        assert abs(value - problem.value) <= 1e-10
        taken = weight * beta.value / pairs
        np.testing.assert_allclose(grad[positive], -taken.sum(axis=1), rtol=0, atol=1e-5)
        np.testing.assert_allclose(grad[~positive], taken.sum(axis=0), rtol=0, atol=1e-5)
        assert abs(plane - taken.sum()) <= 1e-5


@for_each("max_fpr", [1e-6, 0.25, 0.5, 0.9])
def test_gradients_match_differences_with_flat_pieces_and_zero_weights(max_fpr):
    """Rounded scores and whole weights often make the highest weight exactly J, where the threshold is not unique."""
    rng = np.random.default_rng(6)
    for trial in range(28 if TIER == "quick" else 100):
        y = labels(rng, int(rng.integers(3, 14)), trial)
        z = scores(rng, y, trial)
        prepared = PartialRocRisk(max_fpr).prepare(y, weights(rng, y) if trial % 4 else None)
        width = (0.1, 0.25, 1.0, 3.0)[trial % 4]
        mu = width / prepared.ramp_scale
        grad = prepared.evaluate(z, mu).grad
        step = 1e-6 * width
        for row in range(len(z)):
            ends = [prepared.evaluate(z + side * step * (np.arange(len(z)) == row), mu).value for side in (1, -1)]
            # The slope changes by at most step / width next to a kink; rounding of the values over the step adds 1e-8.
            assert abs((ends[0] - ends[1]) / (2 * step) - grad[row]) <= 2e-6, f"trial {trial}, row {row}"


@for_each("width", [0.1, 1.0])
@for_each("weighted", [False, True])
def test_a_plateau_of_exactly_the_weight_that_counts(weighted, width):
    """Three negatives at 4, the others at 0: for J = 3 all thresholds between the ramps serve, and only those three count."""
    y = np.array([1, -1, -1, -1, -1, 1, -1, -1, -1, -1])
    z = np.array([4.2, 4.0, 0.0, 4.0, 0.0, 6.0, 4.0, 0.0, 0.0, 0.0])
    s = None
    if weighted:  # 2 + 0 + 1 at the top of 8
        s = np.array([1.0, 2.0, 1.0, 0.0, 2.0, 2.0, 1.0, 1.0, 0.0, 1.0])
    got = check_exactly(z, y, s, 3.0 / 8.0, width)
    assert PartialRocRisk(3.0 / 8.0).prepare(y, s).top == 3.0
    assert not got.grad[(y < 0) & (z == 0.0)].any()
    slope = min(1.0, 0.8 / width)  # of the first positive, the second being more than 1 above
    expected = (
        [slope / 3.0 / (3.0 if weighted else 2.0)] * 3 * np.array([2.0, 0.0, 1.0] if weighted else [1.0, 1.0, 1.0])
    )
    np.testing.assert_allclose(got.grad[[1, 3, 6]], expected, rtol=0, atol=32 * EPS / width)


@for_each("max_fpr", [0.1, 0.5])
def test_many_rows_equal_the_reference(max_fpr):
    rng = np.random.default_rng(7)
    for trial, width in itertools.product(range(12), (0.0, 1e-3, 0.3)):
        y = labels(rng, int(rng.integers(100, 300)), trial)
        z = scores(rng, y, trial)
        s = (None, weights(rng, y), rng.random(len(y)) + 0.1)[trial % 3]
        risk = PartialRocRisk(max_fpr)
        prepared = risk.prepare(y, s)
        mu = width / prepared.ramp_scale
        got, (value, grad, plane) = prepared.evaluate(z, mu), risk.reference(z, y, s, mu)
        size = len(y) * EPS * (1.0 + 2.0 * np.abs(z).max())  # sums over n rows
        assert abs(got.value - value) <= size
        assert abs(got.hard - risk.reference(z, y, s)[0]) <= size
        if width:  # without a ramp, tied negatives may be chosen in another way
            np.testing.assert_allclose(got.grad, grad, rtol=0, atol=size / min(1.0, width))
            assert abs(got.plane - plane) <= size / min(1.0, width)


@for_each(
    "max_fpr, negatives, top",
    [(0.1, 30, 3), (0.29, 100, 29), (0.7, 10, 7), (0.1, 9, 1), (0.1, 19, 1), (0.1, 20, 2), (1e-6, 50, 1), (1.0, 7, 7)],
)
def test_the_number_of_negatives_that_count(max_fpr, negatives, top):
    y = np.repeat([1, -1], (2, negatives))
    prepared = PartialRocRisk(max_fpr).prepare(y)
    assert prepared.top == top
    assert prepared.ramp_scale == 2 * top
    z = np.arange(len(y), dtype=float)
    assert np.count_nonzero(prepared.evaluate(z).grad[2:]) == top
    doubled = PartialRocRisk(max_fpr).prepare(np.repeat(y, 2))
    assert PartialRocRisk(max_fpr).prepare(y, np.full(len(y), 2)).top == doubled.top


def test_the_risk_bounds_one_minus_the_partial_area():
    rng = np.random.default_rng(8)
    for trial in range(60):
        y = labels(rng, int(rng.integers(2, 60)), trial)
        z = rng.standard_normal(len(y)) * (0.01, 1.0)[trial % 2]  # no ties
        prepared = PartialRocRisk((0.05, 0.3, 0.8, 1.0)[trial % 4]).prepare(y)
        highest = np.sort(z[y < 0])[::-1][: int(prepared.top)]
        missed = np.mean([np.mean(z[y > 0] < x) for x in highest])
        assert prepared.value(z) >= missed - len(y) * EPS


def test_weights_are_copies_with_ties_and_zeros():
    rng = np.random.default_rng(9)
    for trial in range(48):
        y = labels(rng, int(rng.integers(2, 30)), trial)
        z, s = scores(rng, y, trial), weights(rng, y)
        rows = np.repeat(np.arange(len(y)), s.astype(int))
        risk = PartialRocRisk((0.05, 0.3, 0.8)[trial % 3])
        weighted, repeated = risk.prepare(y, s), risk.prepare(y[rows])
        assert weighted.top == repeated.top
        for width in (0.0, 1e-3, 0.5):
            a = weighted.evaluate(z, width / weighted.ramp_scale)
            b = repeated.evaluate(z[rows], width / weighted.ramp_scale)
            size = 90 * EPS * (1.0 + 2.0 * np.abs(z).max())  # up to 90 rows
            assert abs(a.value - b.value) <= size
            summed = np.zeros(len(y))
            np.add.at(summed, rows, b.grad)
            np.testing.assert_allclose(a.grad, summed, rtol=0, atol=size / min(1.0, width or 1.0))


@for_each("width", [1e-6, 1e-3])
def test_large_scores_and_narrow_ramps_keep_their_digits(width):
    """Scores of 1e6 that differ by less than a ramp: the differences are exact, so the ramps are known to their rounding."""
    rng = np.random.default_rng(10)
    for trial in range(30):
        y = labels(rng, 3 + trial % 8, trial)
        z = 1e6 + (y > 0) + rng.standard_normal(len(y)) * width
        s = weights(rng, y) if trial % 2 else None
        prepared = PartialRocRisk(0.4).prepare(y, s)
        mu = width / prepared.ramp_scale
        got = prepared.evaluate(z, mu)
        value, grad, _ = exactly(z, y, s, prepared.top, Fraction(mu) * Fraction(prepared.ramp_scale))
        # Ramps of differences d are known to eps (1 + |d|) / width and |d| is at most 1: the size of scores does not matter.
        assert difference(got.grad, grad) <= 4 * len(y) * EPS / width
        assert abs(Fraction(got.value) - value) <= 4 * len(y) * EPS


@for_each("outlier", [1e4, 1e12, 1e150])
@for_each("side", [1, -1])
@for_each("width", [0.0, 1e-3, 0.5])
def test_an_outlier_does_not_spoil_the_other_pairs(width, side, outlier):
    rng = np.random.default_rng(11)
    for trial in range(8):
        y = labels(rng, 5 + trial % 5, trial)
        z = (y > 0) + rng.standard_normal(len(y)) * max(width, 0.1)
        row = np.flatnonzero(y == side)[0]
        for sign in (side, -side):
            z[row] = sign * outlier
            check_exactly(z, y, None, 0.5, width, magnified=4.0)


@for_each("outlier", [1e4, 1e8, 1e12])
@for_each("width", [1e-3, 0.5])
def test_the_last_negative_that_counts_may_be_far_below_the_others(width, outlier):
    """It loses every pair, but it decides the threshold; the ramps of the other pairs must not be measured from there."""
    rng = np.random.default_rng(13)
    for trial in range(8):
        y = labels(rng, 6 + trial % 5, trial)
        z = (y > 0) + rng.standard_normal(len(y)) * width
        z[np.flatnonzero(y < 0)[0]] = -outlier
        check_exactly(z, y, None, 1.0, width, magnified=4.0)


def test_planes_lie_below_the_risk_everywhere():
    rng = np.random.default_rng(12)
    for trial, width in itertools.product(range(30), (0.0, 1e-6, 0.5)):
        y = labels(rng, int(rng.integers(2, 40)), trial)
        prepared = PartialRocRisk((0.05, 0.3, 0.8)[trial % 3]).prepare(y, weights(rng, y) if trial % 2 else None)
        got = prepared.evaluate(scores(rng, y, trial), width / prepared.ramp_scale)
        others = (np.zeros(len(y)), scores(rng, y, trial + 1), 1.0 * y, -30.0 * y, 1e3 * rng.standard_normal(len(y)))
        for other in others:
            # The sum of ramps of the negatives must not exceed J by more than rounding: 40 terms.
            size = 40 * EPS * (1.0 + 2.0 * np.abs(other).max())
            assert got.plane + got.grad @ other <= prepared.value(other) + size


@for_each("max_fpr", [0, -0.1, 1.5, np.nan, np.inf, "0.1", None, True])
def test_a_max_fpr_that_is_no_rate_is_refused(max_fpr):
    with pytest.raises(ValueError, match=r"^max_fpr.* must be"):
        PartialRocRisk(max_fpr)
