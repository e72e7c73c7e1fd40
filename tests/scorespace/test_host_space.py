"""HostSpace against NumPy, from one element to a million, the same bits for one and two threads."""

import math

import numpy as np
import pytest

from scoreline import kernels
from scoreline.scorespace import HostSpace

LENGTHS = [1, 2, 3, 7, 64, 1001, 1_000_000]
SPACE = HostSpace()


def vectors(n):
    rng = np.random.default_rng(n)
    return rng.standard_normal(n), rng.standard_normal(n)


@pytest.mark.parametrize("n", LENGTHS)
def test_combine_is_exactly_numpy(n):
    x, y = vectors(n)
    for a, b in ((1.0, 0.3), (0.0, -2.0), (-1.5, 1.0)):
        # No reordering and no fused operations in this kernel: the bits are NumPy's.
        assert np.array_equal(SPACE.combine(a, x, b, y), a * x + b * y)


@pytest.mark.parametrize("n", [1, 7, 300_000])
@pytest.mark.parametrize("place", ["new", "x", "y"])
def test_combine_writes_where_it_is_told(n, place):
    x, y = vectors(n)
    expected = 2.0 * x - 3.0 * y
    out = {"new": np.full(n, np.nan), "x": x, "y": y}[place]
    assert SPACE.combine(2.0, x, -3.0, y, out) is out
    assert np.array_equal(out, expected)


@pytest.mark.parametrize("n", LENGTHS)
def test_dot_is_numpy_to_rounding(n):
    x, y = vectors(n)
    # 4 roundings of sum |x y|: the worst case is n of them, but random signs cancel most, even for a million terms.
    exact = math.fsum(x * y)
    assert abs(SPACE.dot(x, y) - exact) <= 4 * np.finfo(float).eps * np.abs(x * y).sum()
    assert SPACE.dot(x, x) > 0.0


@pytest.mark.parametrize("n", LENGTHS)
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
        with kernels.parallel.thread_limit(threads):
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


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic"])
def test_sums_without_gradient_equal_those_with(loss):
    z, y = vectors(1001)
    labels = SPACE.labels(np.where(y > 0, 1, -1), np.abs(y))
    with_grad, without = (SPACE.point_sums(loss, z, labels, 0.3, 1.0, None, grad) for grad in (True, False))
    assert with_grad[:3] == without[:3]
    assert without.grad is None
    pairs, bare = (SPACE.pair_sums(z, labels, 0.3, 1.0, None, grad) for grad in (True, False))
    assert pairs[:3] == bare[:3]
    assert bare.grad is None
