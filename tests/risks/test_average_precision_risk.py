"""AveragePrecisionRisk against all rankings, all merges of the two classes, exact arithmetic, and a table of all places."""

import itertools
from fractions import Fraction

import numpy as np
from random_labels import labels
from sklearn.metrics import average_precision_score

from cases import for_each
from scoreline.risks import AveragePrecisionRisk

EPS = np.finfo(float).eps
RISK = AveragePrecisionRisk()


def scores(rng, y, kind):
    """Return Gaussian, tied, nearly tied or zero scores of the size where losses and costs are alike: h z about 1 / n."""
    n = len(y)
    what, scale = kind % 7, (0.05, 0.5, 2.0)[kind % 3]
    if what in (0, 1):
        return rng.standard_normal(n) * scale + 0.3 * y * what
    if what == 2:
        return np.zeros(n)
    z = rng.integers(-2, 3, size=n) * (0.25, 1.0 / n, 0.5)[kind % 3]
    return z + (0.0, 1e-9, 1e-15, 0.5)[what - 3] * (rng.standard_normal(n) if what < 6 else y)


def literal(order, z, positive):
    """Return 1 - AP of a ranking less what its wrong pairs cost: the definition, with any kind of number."""
    n, m = int(positive.sum()), int(positive.sum() * (~positive).sum())
    value, above, n_above = 0, [], 0
    for place, row in enumerate(order, start=1):
        if positive[row]:
            n_above += 1
            value += (1 - Fraction(n_above, place)) / n if isinstance(z[row], Fraction) else (1 - n_above / place) / n
            value -= sum(z[row] - z[j] for j in above) * 2 / m
        else:
            above.append(row)
    return value


def merges(z, y):
    """Yield all rankings that keep the order of scores within either class."""
    order = np.argsort(-z, kind="stable")
    above, below = order[y[order] > 0], order[y[order] < 0]
    for places in itertools.combinations(range(len(y)), len(above)):
        ranking = np.empty(len(y), dtype=int)
        taken = np.zeros(len(y), dtype=bool)
        taken[list(places)] = True
        ranking[taken], ranking[~taken] = above, below
        yield ranking


def check_plane(z, y, got, size):
    """The gradient belongs to a ranking that keeps the order of scores within the classes, and the plane is its 1 - AP."""
    n_above, n_below = int((y > 0).sum()), int((y < 0).sum())
    wrong = -y * got.grad * n_above * n_below / 2.0  # pairs of each row in the wrong order
    rounding = 8 * len(y) * EPS * max(1.0, wrong.max())
    assert abs(wrong[y > 0].sum() - wrong[y < 0].sum()) <= len(y) * rounding
    assert abs(got.mass - np.abs(got.grad).sum()) <= 8 * len(y) * EPS
    assert wrong.min() >= 0.0
    assert wrong[y > 0].max() <= n_below + rounding
    for side in (1, -1):  # lower positives and higher negatives have more pairs wrong, equals as many as each other
        order = np.argsort(side * z[y == side], kind="stable")
        assert (np.diff(wrong[y == side][order]) <= rounding).all()
        equal = np.diff(z[y == side][order]) == 0.0
        assert np.abs(np.diff(wrong[y == side][order])[equal]).max(initial=0.0) <= rounding
    assert abs(got.plane + got.grad @ z - got.value) <= size
    if len(np.unique(z[y > 0])) == n_above:  # rows of equal score share their places
        assert np.abs(wrong[y > 0] - np.rint(wrong[y > 0])).max() <= rounding
        place, negatives_above = np.arange(1, n_above + 1), np.sort(np.rint(wrong[y > 0]))
        assert abs(got.plane - (1.0 - (place / (place + negatives_above)).mean())) <= 4 * len(y) * EPS


def test_the_risk_is_the_worst_of_all_rankings():
    rng = np.random.default_rng(1)
    for trial in range(42):
        y = labels(rng, 2 + trial % 4 if trial % 7 else 6, trial)
        z = scores(rng, y, trial)
        expected = max(literal(order, z, y > 0) for order in itertools.permutations(range(len(y))))
        got = RISK.prepare(y).evaluate(z)
        size = 16 * EPS * (1.0 + 2.0 * np.abs(z).max())  # nine pairs and three precisions, a few roundings each
        assert abs(got.value - expected) <= size, f"{got.value} instead of {expected} for z={z!r}, y={y!r}"
        assert got.hard == got.value
        check_plane(z, y, got, size)


def test_the_risk_is_the_worst_of_all_merges_of_the_classes():
    rng = np.random.default_rng(2)
    for trial in range(56):
        y = labels(rng, 3 + trial % 8, trial)
        z = scores(rng, y, trial)
        expected = max(literal(order, z, y > 0) for order in merges(z, y))
        got = RISK.prepare(y).evaluate(z)
        size = 32 * EPS * (1.0 + 2.0 * np.abs(z).max())  # up to 25 pairs
        assert abs(got.value - expected) <= size, f"{got.value} instead of {expected} for z={z!r}, y={y!r}"
        assert abs(RISK.reference(z, y)[0] - expected) <= size
        check_plane(z, y, got, size)


def test_the_risk_equals_the_reference_with_weights_and_ties():
    rng = np.random.default_rng(3)
    for trial in range(56):
        y = labels(rng, int(rng.integers(11, 61)), trial)
        z = scores(rng, y, trial)
        s = rng.integers(0, 3, size=len(y)).astype(float) if trial % 2 else None
        if s is not None:
            s[np.flatnonzero(y > 0)[0]] = s[np.flatnonzero(y < 0)[0]] = 1.0
        got = RISK.prepare(y, s).evaluate(z)
        value, _, plane = RISK.reference(z, y, s)
        size = 120 * EPS * (1.0 + 2.0 * np.abs(z).max())  # running sums of up to 120 terms
        assert abs(got.value - value) <= size
        assert abs(got.plane + got.grad @ z - value) <= size
        if trial % 7 < 2:  # Gaussian scores: one ranking is the worst
            assert abs(got.plane - plane) <= size
        if s is None:
            check_plane(z, y, got, size)
        else:
            assert not got.grad[s == 0.0].any()


@for_each("shape", [(1, 1), (1, 9), (9, 1), (5, 5), (3, 8)])
def test_zero_scores_have_all_negatives_first(shape):
    y = np.repeat([1, -1], shape)
    place = np.arange(1, shape[0] + 1)
    expected = 1.0 - (place / (place + shape[1])).mean()
    assert abs(RISK.prepare(y).value_at_zero() - expected) <= 4 * EPS


def test_separated_scores_cost_nothing_and_reversed_ones_all():
    y = np.repeat([1, -1], (4, 6))
    z = np.linspace(9.0, -9.0, 10)
    got = RISK.prepare(y).evaluate(100.0 * z)
    assert (got.value, got.plane, got.mass) == (0.0, 0.0, 0.0)
    assert not got.grad.any()
    got = RISK.prepare(y).evaluate(-100.0 * z)
    # All pairs are wrong: 2 / m times their differences, which are 1000 on average, on top of the loss of the worst ranking.
    expected = 1.0 - np.mean([k / (k + 6) for k in range(1, 5)]) + 2000.0
    assert abs(got.value - expected) <= 24 * EPS * expected


def test_the_risk_bounds_one_minus_average_precision():
    rng = np.random.default_rng(4)
    for trial in range(60):
        y = labels(rng, int(rng.integers(2, 60)), trial)
        z = rng.standard_normal(len(y)) * (0.01, 1.0)[trial % 2]  # no ties: scikit-learn takes tied rows together
        s = rng.integers(1, 4, size=len(y)) if trial % 3 == 0 else None
        rows = np.arange(len(y)) if s is None else np.repeat(np.arange(len(y)), s)
        assert RISK.prepare(y, s).value(z) >= 1.0 - average_precision_score(y[rows], z[rows]) - 60 * EPS
        if s is None:
            # By the ranking of the scores itself no pair costs anything: the literal loss is scikit-learn's.
            ranking = np.argsort(-z)
            place = np.arange(1, len(y) + 1)
            ours = 1.0 - (np.cumsum(y[ranking] > 0) / place)[y[ranking] > 0].mean()
            assert abs(ours - (1.0 - average_precision_score(y, z))) <= 60 * EPS


def test_weights_are_copies_with_ties_and_zeros():
    rng = np.random.default_rng(5)
    for trial in range(42):
        y = labels(rng, int(rng.integers(2, 40)), trial)
        z = scores(rng, y, trial)
        s = rng.integers(0, 4, size=len(y))
        s[np.flatnonzero(y > 0)[-1]], s[np.flatnonzero(y < 0)[-1]] = 2, 1
        rows = np.repeat(np.arange(len(y)), s)
        weighted, repeated = RISK.prepare(y, s).evaluate(z), RISK.prepare(y[rows]).evaluate(z[rows])
        size = 120 * EPS * (1.0 + 2.0 * np.abs(z).max())  # running sums of up to 120 terms
        assert abs(weighted.value - repeated.value) <= size
        assert abs(weighted.plane - repeated.plane) <= size
        summed = np.zeros(len(y))
        np.add.at(summed, rows, repeated.grad)
        np.testing.assert_allclose(weighted.grad, summed, rtol=0, atol=64 * EPS)


def test_rows_of_equal_score_have_equal_slopes_in_any_order_of_the_rows():
    rng = np.random.default_rng(11)
    for trial in range(40):
        y = labels(rng, int(rng.integers(3, 30)), trial)
        z = rng.integers(-2, 3, size=len(y)) * 0.25
        s = rng.integers(1, 4, size=len(y)) if trial % 2 else np.ones(len(y), dtype=int)
        got, order = RISK.prepare(y, s).evaluate(z), rng.permutation(len(y))
        permuted = RISK.prepare(y[order], s[order]).evaluate(z[order])
        np.testing.assert_allclose(permuted.grad, got.grad[order], rtol=0, atol=64 * EPS)  # means of other sums
        for side, level in itertools.product((1, -1), np.unique(z)):
            slopes = (got.grad / s)[(y == side) & (z == level)]
            assert np.ptp(slopes) <= 64 * EPS if len(slopes) else True


def test_planes_lie_below_the_risk_everywhere():
    rng = np.random.default_rng(6)
    for trial in range(70):
        y = labels(rng, int(rng.integers(2, 50)), trial)
        prepared = RISK.prepare(y)
        got = prepared.evaluate(scores(rng, y, trial))
        for other in (np.zeros(len(y)), scores(rng, y, trial + 1), 0.2 * y, -30.0 * y, rng.standard_normal(len(y))):
            size = 100 * EPS * (1.0 + 2.0 * np.abs(other).max())  # 50 terms whose weights add up to 2
            assert got.plane + got.grad @ other <= prepared.value(other) + size


def test_a_shift_of_all_scores_changes_nothing():
    rng = np.random.default_rng(7)
    y = labels(rng, 50, 0)
    z = rng.integers(-40, 40, size=50) / 64.0  # so that the shifts below are exact
    plain = RISK.prepare(y).evaluate(z)
    for shift in (3.0, -1000.0, 2.0**20):
        moved = RISK.prepare(y).evaluate(z + shift)
        # Sums of up to 50 shifted scores are rounded.
        assert abs(moved.value - plain.value) <= 100 * EPS * (1.0 + abs(shift))
        assert abs(moved.plane + moved.grad @ z - plain.value) <= 100 * EPS * (1.0 + abs(shift))


@for_each("outlier", [1e4, 1e12, 1e20])
@for_each("side", [1, -1])
def test_an_outlier_does_not_spoil_the_other_pairs(side, outlier):
    rng = np.random.default_rng(8)
    for trial in range(12):
        y = labels(rng, 3 + trial % 4, trial)
        z = rng.standard_normal(len(y)) * (0.1, 1.0)[trial % 2]
        row = np.flatnonzero(y == side)[0]
        for sign in (side, -side):
            z[row] = sign * outlier
            exact = np.array([Fraction(x) for x in z])
            expected = max(literal(order, exact, y > 0) for order in merges(z, y))
            got = RISK.prepare(y).evaluate(z)
            # Relative to the largest score in a wrong pair: where the outlier is in none, a few roundings of 1.
            size = 16 * EPS * (1.0 + np.abs(z[got.grad != 0.0]).max(initial=0.0))
            assert abs(Fraction(got.value) - expected) <= size


@for_each("scale", [1e-150, 1e-16, 1e16, 1e150])
def test_scores_of_any_size(scale):
    rng = np.random.default_rng(9)
    for trial in range(14):
        y = labels(rng, 2 + trial % 5, trial)
        z = (rng.standard_normal(len(y)) if trial % 2 else rng.integers(-2, 3, size=len(y))) * scale
        exact = np.array([Fraction(x) for x in z])
        expected = max(literal(order, exact, y > 0) for order in merges(z, y))
        with np.errstate(over="raise", invalid="raise"):
            got = RISK.prepare(y).evaluate(z)
        # Up to nine differences of scores, a few roundings each.
        assert abs(Fraction(got.value) - expected) <= 16 * EPS * (1.0 + np.abs(z).max())


@for_each("share", [0.01, 0.4, 0.9])
@for_each("kind", ["gaussian", "separated", "near_ties"])
def test_three_thousand_rows_equal_the_table_of_all_places(kind, share):
    """Negative number a + 1 above the positives i, i + 1, ...: the gain of every start, by sums over the table."""
    rng = np.random.default_rng(10)
    n, plus = 3000, int(3000 * share)
    y = np.repeat([1, -1], (plus, n - plus))[rng.permutation(n)]
    z = rng.standard_normal(n) * 0.3
    if kind == "separated":
        z += 0.5 * y
    if kind == "near_ties":
        z = np.rint(8.0 * z) / 8.0 + 0.1 * y + 1e-9 * rng.standard_normal(n)
    f, g = np.sort(z[y > 0])[::-1], np.sort(z[y < 0])[::-1]
    pairs = plus * (n - plus)
    place, before = np.arange(1.0, plus + 1.0)[:, None], np.arange(float(n - plus))[None, :]
    gain = place / ((place + before) * (place + before + 1.0) * plus) - 2.0 / pairs * (f[:, None] - g[None, :])
    starts = np.cumsum(gain[::-1], axis=0)
    expected = np.maximum(0.0, starts.max(axis=0)).sum()
    got = RISK.prepare(y).evaluate(z)
    # Sums of up to 3000 terms, then of 3000 of them: eps sqrt(n) of the total, n eps / 10 allowed.
    assert abs(got.value - expected) <= 300 * EPS * (1.0 + expected)
    assert abs(got.plane + got.grad @ z - expected) <= 300 * EPS * (1.0 + expected)
    assert 0.0 < got.mass < 4.0
    check_plane(z, y, got, 300 * EPS * (1.0 + expected))
