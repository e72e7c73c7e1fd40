"""HostSpace against NumPy, from one element to a million, the same bits for one and two threads."""

import math

import numba
import numpy as np
import pytest
from packaging.version import Version

from cases import for_each
from scoreline.runtime import parallel
from scoreline.scores import HostSpace, host_pairs

OLD_NUMBA = Version(numba.__version__) < Version("0.62")
LENGTHS = [1, 2, 3, 7, 64, 1001, 1_000_000]
SPACE = HostSpace()


def vectors(n):
    rng = np.random.default_rng(n)
    return rng.standard_normal(n), rng.standard_normal(n)


@for_each("n", LENGTHS)
def test_combine_is_exactly_numpy(n):
    x, y = vectors(n)
    for a, b in ((1.0, 0.3), (0.0, -2.0), (-1.5, 1.0)):
        # No reordering and no fused operations in this kernel: the bits are NumPy's.
        assert np.array_equal(SPACE.combine(a, x, b, y), a * x + b * y)


@for_each("n", [1, 7, 300_000])
@for_each("place", ["new", "x", "y"])
def test_combine_writes_where_it_is_told(n, place):
    x, y = vectors(n)
    expected = 2.0 * x - 3.0 * y
    out = {"new": np.full(n, np.nan), "x": x, "y": y}[place]
    assert SPACE.combine(2.0, x, -3.0, y, out) is out
    assert np.array_equal(out, expected)


@for_each("n", LENGTHS)
def test_dot_is_numpy_to_rounding(n):
    x, y = vectors(n)
    # 4 roundings of sum |x y|: the worst case is n of them, but random signs cancel most, even for a million terms.
    exact = math.fsum(x * y)
    assert abs(SPACE.dot(x, y) - exact) <= 4 * np.finfo(float).eps * np.abs(x * y).sum()
    assert SPACE.dot(x, x) > 0.0


@for_each("n", LENGTHS)
def test_max_abs_is_exactly_numpy(n):
    x, _ = vectors(n)
    signs = np.where(np.arange(n) % 2, -1, 1)
    labels = SPACE.labels(signs)
    assert SPACE.max_abs(x, labels) == np.abs(x).max()
    for place in {0, n // 2, n - 1}:
        spike = x.copy()
        spike[place] = -99.0
        assert SPACE.max_abs(spike, labels) == 99.0
        weight = np.ones(n)
        weight[place] = 0.0  # a row of weight 0 is not there
        others = np.delete(np.abs(x), place)
        assert SPACE.max_abs(spike, SPACE.labels(signs, weight)) == others.max(initial=0.0)


def test_empty_vectors():
    nothing = np.empty(0)
    assert SPACE.dot(nothing, nothing) == 0.0
    assert SPACE.max_abs(nothing, SPACE.labels(nothing)) == 0.0
    assert SPACE.combine(1.0, nothing, 1.0, nothing).shape == (0,)


def test_a_million_elements_have_the_same_bits_for_one_and_two_threads():
    x, y = vectors(1_000_000)
    z = x * 1e3
    labels = SPACE.labels(np.where(y > 1, 1, -1), np.abs(x))
    results = []
    for threads in (1, 2):
        with parallel.thread_limit(threads):
            pairs, points = SPACE.pair_sums(z, labels, 0.1, 1e-6), SPACE.point_sums("hinge", z, labels, 0.1, 1e-6)
            scalars = (SPACE.dot(x, y), SPACE.max_abs(x, labels), *pairs[:3], *points[:3])
            results.append((scalars, SPACE.combine(0.1, x, 0.7, y), pairs.grad, points.grad))
    assert results[0][0] == results[1][0]
    assert all(np.array_equal(a, b) for a, b in zip(results[0][1:], results[1][1:], strict=True))


def test_labels_hold_the_totals():
    y, s = np.array([1, -1, -1, 1, -1]), np.array([0.5, 1.0, 2.0, 0.25, 0.0])
    plain, weighted = SPACE.labels(y), SPACE.labels(y, s)
    assert plain.weight is None
    assert (plain.total, plain.positive, plain.negative) == (5, 2, 3)
    assert (weighted.total, weighted.positive, weighted.negative) == (3.75, 0.75, 3.0)
    assert (weighted.n_positive, weighted.n_negative) == (2, 3)
    assert SPACE.zeros(weighted).tolist() == [0.0] * 5


@for_each("loss", ["hinge", "squared_hinge", "logistic"])
def test_sums_without_gradient_equal_those_with(loss):
    z, y = vectors(1001)
    labels = SPACE.labels(np.where(y > 0, 1, -1), np.abs(y))
    with_grad, without = (SPACE.point_sums(loss, z, labels, 0.3, 1.0, None, grad) for grad in (True, False))
    # Numba 0.61 vectorises the logarithms of one of the two loops only: then the last digit of 1001 terms is another.
    assert with_grad[:3] == (pytest.approx(without[:3], rel=1e-15) if OLD_NUMBA else without[:3])
    assert without.grad is None
    pairs, bare = (SPACE.pair_sums(z, labels, 0.3, 1.0, None, grad) for grad in (True, False))
    assert pairs[:3] == bare[:3]
    assert bare.grad is None


SIGNS = np.array([1, -1, 1, -1, -1, 1])
SCORES = np.array([0.5, 2.0, -1.0, 0.5, 2.0, 0.5])
COPIES = np.array([1.0, 2.0, 0.0, 1.0, 3.0, 2.0])


def test_class_scores_rise_and_repeat_by_weight():
    above, below = SPACE.class_scores(SCORES, SPACE.labels(SIGNS))
    assert above.tolist() == [-1.0, 0.5, 0.5]
    assert below.tolist() == [0.5, 2.0, 2.0]
    above, below = SPACE.class_scores(SCORES, SPACE.labels(SIGNS, COPIES))
    assert above.tolist() == [0.5, 0.5, 0.5]
    assert below.tolist() == [0.5, 2.0, 2.0, 2.0, 2.0, 2.0]
    assert SCORES.tolist() == [0.5, 2.0, -1.0, 0.5, 2.0, 0.5]  # sorted elsewhere


def test_change_sides_moves_what_is_beyond_and_so_much_of_the_equals():
    labels = SPACE.labels(SIGNS)
    moved = SPACE.change_sides(SCORES, labels, 0.5, 1.0, 2.0, 1.0, 0.25)
    assert (moved.above, moved.below, moved.above_sum, moved.below_sum) == (2.0, 1.0, -0.5, 2.0)
    assert moved.grad.tolist() == [-0.25, 0.25, -0.25, 0.0, 0.0, 0.0]  # of equals the first
    moved = SPACE.change_sides(SCORES, labels, 0.5, 0.0, 0.5, 0.0, 1.0)
    assert moved.grad.tolist() == [0.0, 1.0, -1.0, 0.0, 1.0, 0.0]
    nothing = SPACE.change_sides(SCORES, labels, -np.inf, 0.0, np.inf, 0.0, 1.0)
    assert nothing[:4] == (0.0, 0.0, 0.0, 0.0)
    assert not nothing.grad.any()
    everything = SPACE.change_sides(SCORES, labels, np.inf, 0.0, -np.inf, 0.0, 1.0)
    assert everything[:4] == (3.0, 3.0, 0.0, 4.5)
    assert everything.grad.tolist() == (-SIGNS).tolist()


def test_change_sides_splits_the_weight_of_equals_in_their_order():
    labels = SPACE.labels(SIGNS, COPIES)
    moved = SPACE.change_sides(SCORES, labels, 0.5, 2.0, 2.0, 4.0, 0.5)
    assert (moved.above, moved.below, moved.above_sum, moved.below_sum) == (2.0, 4.0, 1.0, 8.0)
    assert moved.grad.tolist() == [-0.5, 1.0, 0.0, 0.0, 1.0, -0.5]
    out = np.full(6, np.nan)
    again = SPACE.change_sides(SCORES, labels, 0.5, 2.0, 2.0, 4.0, 0.5, out)
    assert again.grad is out
    assert np.array_equal(out, moved.grad)
    bare = SPACE.change_sides(SCORES, labels, 0.5, 2.0, 2.0, 4.0, 0.5, None, False)
    assert bare.grad is None
    assert bare[:4] == moved[:4]


@for_each("weighted", [False, True])
def test_change_sides_of_many_rows_is_numpy_for_one_and_two_threads(weighted):
    z, y = vectors(300_000)
    z, sign = np.round(8.0 * z) / 8.0, np.where(y > 0.5, 1, -1)
    s = np.random.default_rng(0).integers(0, 4, size=len(z)).astype(float) if weighted else np.ones(len(z))
    labels = SPACE.labels(sign, s if weighted else None)
    results = []
    for threads in (1, 2):
        with parallel.thread_limit(threads):
            results.append(SPACE.change_sides(z, labels, -0.25, 7.0, 0.5, 11.0, 0.5))
    assert results[0][:4] == results[1][:4]
    assert np.array_equal(results[0].grad, results[1].grad)
    moved = np.where(sign > 0, np.where(z < -0.25, s, 0.0), np.where(z > 0.5, s, 0.0))
    for side, level, amount in ((1, -0.25, 7.0), (-1, 0.5, 11.0)):  # whole numbers: exact
        tied = np.flatnonzero((sign == side) & (z == level))
        before = np.cumsum(s[tied]) - s[tied]
        moved[tied] = np.clip(amount - before, 0.0, s[tied])
    assert np.array_equal(results[0].grad, -0.5 * sign * moved)
    expected = [moved[sign > 0].sum(), moved[sign < 0].sum(), (moved * z)[sign > 0].sum(), (moved * z)[sign < 0].sum()]
    assert list(results[0][:4]) == expected  # multiples of 1/8: exact


def test_worst_ranking_of_a_few_rows():
    """A negative between two positives: above the second it lowers AP by 1/6, above the first by 1/4 more."""
    labels = SPACE.labels(np.array([1, -1, 1]))
    z = np.array([1.2, 0.9, 0.0])
    worst = SPACE.worst_ranking(z, labels, 1.0)  # above the first costs 0.3
    assert worst.precision == pytest.approx((1.0 + 2.0 / 3.0) / 2.0, abs=1e-15)  # a few roundings of 1
    assert worst.grad.tolist() == [0.0, 1.0, -1.0]
    assert worst.mass == 2.0
    out = np.full(3, np.nan)
    worst = SPACE.worst_ranking(np.array([0.95, 0.9, 0.0]), labels, 1.0, out)  # above the first costs 0.05
    assert worst.precision == pytest.approx((1.0 / 2.0 + 2.0 / 3.0) / 2.0, abs=1e-15)
    assert worst.grad is out
    assert out.tolist() == [-1.0, 2.0, -1.0]
    none = SPACE.worst_ranking(np.array([9.0, 0.0, 9.0]), labels, 1.0)
    assert (none.precision, none.mass) == (1.0, 0.0)
    copies = SPACE.worst_ranking(z, SPACE.labels(np.array([1, -1, 1]), np.array([0.0, 2.0, 3.0])), 1.0)
    assert copies.grad.tolist() == [0.0, 6.0, -6.0]
    assert copies.precision == pytest.approx((1.0 / 3.0 + 2.0 / 4.0 + 3.0 / 5.0) / 3.0, abs=1e-15)


def test_top_share_splits_equals_alike():
    labels = SPACE.labels(SIGNS)
    assert SPACE.top_share(SCORES, labels, -1, 1.0).tolist() == [1.0, 0.5, 1.0, 0.0, 0.5, 1.0]
    assert SPACE.top_share(SCORES, labels, -1, 2.0).tolist() == [1.0, 1.0, 1.0, 0.0, 1.0, 1.0]
    assert SPACE.top_share(SCORES, labels, -1, 2.5).tolist() == [1.0, 1.0, 1.0, 0.5, 1.0, 1.0]
    assert SPACE.top_share(SCORES, labels, -1, 3.0).tolist() == [1.0] * 6
    assert SPACE.top_share(SCORES, labels, 1, 1.0).tolist() == [0.5, 1.0, 0.0, 1.0, 1.0, 0.5]
    weighted = SPACE.labels(SIGNS, COPIES)
    assert SPACE.top_share(SCORES, weighted, -1, 2.0).tolist() == [1.0, 0.4, 1.0, 0.0, 0.4, 1.0]
    assert SPACE.top_share(SCORES, weighted, -1, 5.5).tolist() == [1.0, 1.0, 1.0, 0.5, 1.0, 1.0]
    share = SPACE.top_share(np.arange(6.0), SPACE.labels(SIGNS, np.array([1.0, 1.0, 1.0, 2.0, 0.0, 1.0])), -1, 2.0)
    assert share[[1, 3]].tolist() == [0.0, 1.0]  # the highest has no weight


def test_top_share_has_the_weight_asked_for():
    rng = np.random.default_rng(0)
    for trial in range(60):
        n = int(rng.integers(2, 40))
        y, z = np.where(rng.random(n) < 0.4, 1, -1), np.round(rng.standard_normal(n), trial % 3)
        y[:2] = 1, -1
        s = (None, rng.integers(1, 4, size=n), rng.random(n) + 0.1)[trial % 3]
        labels = SPACE.labels(y, s)
        s = np.ones(n) if s is None else s
        amount = float(rng.random() * s[y < 0].sum())
        share = SPACE.top_share(z, labels, -1, amount)
        assert abs((s * share)[y < 0].sum() - amount) <= 40 * np.finfo(float).eps * s.sum()  # sums of up to 40 terms
        assert (share[y > 0] == 1.0).all()
        inside = z[(y < 0) & (share > 0.0)].min()
        assert (share[(y < 0) & (z > inside)] == 1.0).all()
        assert not share[(y < 0) & (z < inside)].any()


def test_reweighted_labels_have_new_totals():
    share = np.array([1.0, 0.5, 1.0, 0.0, 0.5, 1.0])
    plain = SPACE.reweighted(SPACE.labels(SIGNS), share)
    assert plain.weight.tolist() == share.tolist()
    assert (plain.total, plain.positive, plain.negative) == (4.0, 3.0, 1.0)
    weighted = SPACE.reweighted(SPACE.labels(SIGNS, COPIES), share)
    assert weighted.weight.tolist() == [1.0, 1.0, 0.0, 0.0, 1.5, 2.0]
    assert (weighted.total, weighted.positive, weighted.negative) == (5.5, 3.0, 2.5)
    assert weighted.sign.tolist() == SIGNS.tolist()


@for_each("width", [1e-9, 1e-3, 0.25, 1.0, 50.0])
def test_soft_threshold_takes_the_amount_and_not_more(width):
    rng = np.random.default_rng(1)
    for trial in range(80):
        n = int(rng.integers(2, 40))
        y, z = np.where(rng.random(n) < 0.4, 1, -1), rng.standard_normal(n)
        y[:2] = 1, -1
        if trial % 2:
            z = np.round(2.0 * z) / 2.0
        s = (None, rng.integers(0, 4, size=n).astype(float), rng.random(n) + 0.1)[trial % 3]
        if s is not None:
            s[1] = 1.0
        labels = SPACE.labels(y, s)
        s = np.ones(n) if s is None else s
        total = s[y < 0].sum()
        amount = min(total, (1.0, float(np.ceil(rng.random() * total)), total)[trial % 3])
        base, offset = SPACE.soft_threshold(z, labels, -1, amount, width)
        taken = (s * np.clip(((z - base) - offset) / width, 0.0, 1.0))[y < 0].sum()
        # z - base is exact near the threshold, so that the ramps are known to a few roundings.
        size = 40 * np.finfo(float).eps * total * (1.0 + 4.0 / width if width < 1.0 else 4.0)
        assert amount - size <= taken <= amount + 8 * np.finfo(float).eps * total


@for_each("width", [1e-9, 1e-3, 0.25, 1.0])
def test_soft_threshold_with_a_flat_piece_at_the_amount(width):
    """Rows at 4 and rows at 0 and 1: the weight of the first is the amount, but for the rounding of sums of tenths."""
    rng = np.random.default_rng(3)
    for _ in range(200):
        n = int(rng.integers(3, 14))
        z = np.where(np.arange(n) < rng.integers(1, n), 4.0, rng.integers(0, 2, size=n)) + 0.1 * rng.integers(
            0, 3, size=n
        )
        s = rng.integers(1, 20, size=n) / 10.0
        amount = float(s[z >= 4.0].sum())
        base, offset = SPACE.soft_threshold(z, SPACE.labels(-np.ones(n), s), -1, amount, width)
        ramp = np.clip(((z - base) - offset) / width, 0.0, 1.0)
        # Few tenths: their sums differ by some roundings, which a ramp of 13 rows spreads over one row at worst.
        assert ramp[z >= 4.0].min() >= 1.0 - 1e-9
        assert ramp[z < 4.0].max() <= 1e-9


FLAT = {  # the weight of the highest rows is the amount, with kinks of rows without weight and gaps of about one width
    "four_rows": ([0.2, 0.1, 6.1, 3.1], [0, 1, 3, 1], 4.0, 3.0),
    "thirteen_rows": (
        [0.0, 0.1, 0.7, 0.25, 0.25, 0.35, 0.1, 0.75, 0.85, 0.2, 0.6, 0.95, 0.95],
        [3, 0, 1, 0, 0, 1, 3, 0, 2, 1, 2, 1, 0],
        3.0,
        0.1,
    ),
}


@for_each("z, s, amount, width", FLAT.values(), labels=FLAT)
def test_soft_threshold_where_rounding_tilts_a_flat_piece(z, s, amount, width):
    z, s = np.array(z), np.array(s, dtype=float)
    base, offset = SPACE.soft_threshold(z, SPACE.labels(-np.ones(len(z)), s), -1, amount, width)
    taken = s @ np.clip(((z - base) - offset) / width, 0.0, 1.0)
    assert abs(taken - amount) <= 64 * np.finfo(float).eps * s.sum()  # ramps of gaps that are rounded to the width


def test_soft_threshold_of_a_few_rows():
    labels = SPACE.labels(np.array([1, -1, -1, -1]))
    z = np.array([9.0, 3.0, 2.0, 1.0])
    # One row's worth, ramps of 2: (3 - theta) / 2 + (2 - theta) / 2 = 1 at theta = 1.5, where the third has no part.
    assert sum(SPACE.soft_threshold(z, labels, -1, 1.0, 2.0)) == 1.5
    # Two rows' worth: 1 + (2 - theta) / 2 + (1 - theta) / 2 = 2 at theta = 0.5.
    assert sum(SPACE.soft_threshold(z, labels, -1, 2.0, 2.0)) == 0.5
    assert sum(SPACE.soft_threshold(z, labels, -1, 3.0, 2.0)) <= -1.0
    assert 2.0 <= sum(SPACE.soft_threshold(z, labels, -1, 1.0, 0.5)) <= 2.5  # a flat piece: any of it


def test_lifted_scores_are_no_lower_than_the_threshold():
    labels = SPACE.labels(np.array([1, 1, -1, -1]))
    z = np.array([5.0, 1.0, 4.0, -7.0])
    lifted, lift = SPACE.lifted(z, labels, (2.0, 0.5))
    assert lifted.tolist() == [2.0, 0.5, 2.0, -9.0]
    assert lift.tolist() == [0.0, 2.5, 0.0, 0.0]
    large = SPACE.lifted(np.array([1e17, -5.0, 1e17, 0.0]), labels, (0.0, 0.0))[0]
    assert large[0] < large[2]  # a margin that rounding swallows is still a margin
    assert z.tolist() == [5.0, 1.0, 4.0, -7.0]


def check_pair_sums(z, y, s, width, margin):
    """Compare sums, gradient and curvatures with the matrix of all pairs."""
    positive = y > 0
    t = margin - z[positive][:, None] + z[~positive][None, :]
    own = np.ones(len(z)) if s is None else s
    weight = np.outer(own[positive], own[~positive])
    beta = np.clip(t / width, 0.0, 1.0) if width else (t > 0.0).astype(float)
    got = SPACE.pair_sums(z, SPACE.labels(y, s), width, 2.0, margin=margin)
    # Sums of n terms, and ramps of differences of up to twice the largest score.
    size = len(z) * np.finfo(float).eps * weight.sum() * 2.0 * max(5.0, np.abs(z).max()) / (width or 1.0)
    assert abs(got.smooth - (weight * (beta * t - 0.5 * width * beta**2)).sum()) <= size
    assert abs(got.hard - (weight * np.maximum(t, 0.0)).sum()) <= size
    assert abs(got.ramps - (weight * beta).sum()) <= size
    np.testing.assert_allclose(got.grad[positive], -2.0 * (weight * beta).sum(axis=1), rtol=0, atol=size)
    np.testing.assert_allclose(got.grad[~positive], 2.0 * (weight * beta).sum(axis=0), rtol=0, atol=size)
    if width:
        # Rounding decides whether a pair at an end of the ramp is on it.
        least, most = (weight * ((t > end) & (t < width - end)) for end in (1e-9, -1e-9))
        got = SPACE.pair_curvatures(z, SPACE.labels(y, s), width, margin)
        for rows, axis in ((positive, 1), (~positive, 0)):
            assert (got[rows] >= least.sum(axis=axis) - size).all()
            assert (got[rows] <= most.sum(axis=axis) + size).all()


@for_each("margin", [0.0, 1.0, -0.5, 3.0])
@for_each("width", [0.0, 0.3])
def test_pair_sums_take_any_margin(width, margin):
    rng = np.random.default_rng(2)
    for share in (0.2, 0.8):
        y, z, s = np.where(rng.random(30) < share, 1, -1), rng.standard_normal(30), rng.random(30)
        y[:2] = 1, -1
        check_pair_sums(z, y, s, width, margin)


@pytest.fixture
def many_edges(monkeypatch):
    """Let 300 rows take the way of millions: many parts, and several chunks."""
    for name, value in {"BINS_IN_CACHE": 0, "EDGES_PER_PART": 4, "GROUP_BITS": 5}.items():
        monkeypatch.setattr(host_pairs, name, value)
    monkeypatch.setattr(parallel, "MIN_CHUNK_WORK", 500)


def scores_of_any_kind(rng, n):
    """Return normal scores, ties, equal scores, groups with gaps, and one outlier."""
    z = rng.standard_normal(n)
    outlier = z.copy()
    outlier[n // 2] = 1e4
    return [z, np.round(z, 1), np.zeros(n), np.round(z) + 1e-3 * z, outlier]


@for_each("width", [0.0, 0.3, 40.0])
@for_each("weighted", [False, True])
def test_pair_sums_by_parts_are_those_of_all_pairs(width, weighted, many_edges):
    rng = np.random.default_rng(3)
    for share in (0.1, 0.5, 0.9):
        y, s = np.where(rng.random(300) < share, 1, -1), rng.random(300) if weighted else None
        for z in scores_of_any_kind(rng, 300):
            check_pair_sums(z, y, s, width, 1.0)


def test_pair_sums_by_parts_have_the_same_bits_for_any_number_of_threads(many_edges):
    rng = np.random.default_rng(4)
    labels = SPACE.labels(np.where(rng.random(300) < 0.4, 1, -1), rng.random(300))
    for z in scores_of_any_kind(rng, 300):
        found = []
        for threads in (1, 2, 3):
            with parallel.thread_limit(threads):
                found.append(SPACE.pair_sums(z, labels, 0.1))
        assert found[0][:3] == found[1][:3] == found[2][:3]
        assert np.array_equal(found[0].grad, found[1].grad)
        assert np.array_equal(found[0].grad, found[2].grad)
        assert SPACE.pair_sums(z, labels, 0.1, grad=False)[:3] == found[0][:3]


@for_each("side", [1, -1])
def test_a_missing_score_makes_pair_sums_by_parts_missing(side, many_edges):
    z, y = np.linspace(-2.0, 2.0, 300), np.where(np.arange(300) % 3, -1, 1)
    z[np.flatnonzero(y == side)[7]] = np.nan
    assert np.isnan(SPACE.pair_sums(z, SPACE.labels(y), 0.1)[:3]).all()


@for_each("operation", ["class_scores", "change_sides", "worst_ranking", "top_share", "soft_threshold", "lifted"])
def test_scores_of_the_wrong_length_are_refused(operation):
    rest = {
        "class_scores": (),
        "change_sides": (0.0, 0.0, 0.0, 0.0, 1.0, None, True),
        "worst_ranking": (1.0,),
        "top_share": (-1, 1.0),
        "soft_threshold": (-1, 1.0, 0.5),
        "lifted": ((0.0, 0.0),),
    }[operation]
    with pytest.raises(ValueError, match=r"scores have shape \(2,\), expected \(6,\)"):
        getattr(SPACE, operation)(np.zeros(2), SPACE.labels(SIGNS), *rest)


def test_gradients_go_only_where_kernels_can_write():
    for bad in (np.empty(5), np.empty(6, dtype=np.float32), np.empty(12)[::2]):
        with pytest.raises(ValueError, match="out must be a writable float64 array"):
            SPACE.change_sides(SCORES, SPACE.labels(SIGNS), 0.0, 0.0, 0.0, 0.0, 1.0, bad)
        with pytest.raises(ValueError, match="out must be a writable float64 array"):
            SPACE.worst_ranking(SCORES, SPACE.labels(SIGNS), 1.0, bad)
