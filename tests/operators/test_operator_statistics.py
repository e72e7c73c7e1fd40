"""Column statistics where they are hard: large means, weights, duplicates, several chunks; and the scaling they feed."""

import numpy as np
from sklearn.preprocessing import MaxAbsScaler, StandardScaler
from storages import CONVERSIONS

from cases import for_each
from scoreline.operators import ScaledOperator, as_operator
from scoreline.operators.wrappers import scaled
from scoreline.runtime import parallel


def exact(A, s):
    """Return mean and variance in extended precision: 80 bits keep 1e16 * 1e-19 below 1e-2 of a rounding here."""
    A, s = A.astype(np.longdouble), s.astype(np.longdouble)
    mean = (s[:, None] * A).sum(axis=0) / s.sum()
    return mean.astype(float), ((s[:, None] * (A - mean) ** 2).sum(axis=0) / s.sum()).astype(float)


@for_each("seed", range(6))
@for_each("weighted", ["none", "integer", "fraction"])
@for_each("name", CONVERSIONS)
def test_variance_survives_a_large_mean(name, weighted, seed):
    rng = np.random.default_rng(seed)
    n = 1000
    A = 1e8 + rng.standard_normal((n, 3))
    weight = {"none": None, "integer": rng.integers(0, 4, n).astype(float), "fraction": rng.random(n)}[weighted]
    got = as_operator(CONVERSIONS[name](A)).column_statistics(weight)
    mean, variance = exact(A, np.ones(n) if weight is None else weight)
    # Entries of size 1e8 are known to 1e-8, so the variance of 1 is known to 1e-8 / sqrt(n); 1e-6 is what is asked.
    np.testing.assert_allclose(got.variance, variance, rtol=1e-6)
    np.testing.assert_allclose(got.mean, mean, rtol=1e-14)
    assert np.array_equal(got.max_abs, A[slice(None) if weight is None else weight > 0].max(axis=0))


@for_each("name", CONVERSIONS)
def test_variance_survives_a_large_mean_in_several_chunks(name):
    A = -1e8 + np.random.default_rng(0).standard_normal((6000, 100))
    got = as_operator(CONVERSIONS[name](A)).column_statistics()
    np.testing.assert_allclose(got.variance, exact(A, np.ones(6000))[1], rtol=1e-6)


@for_each("seed", range(6))
@for_each("name", CONVERSIONS)
def test_a_constant_column_has_no_spread_whatever_the_weights(name, seed):
    A = np.full((1000, 2), 1e8)
    A[:, 1] = 0.1
    weight = np.random.default_rng(seed).random(1000)
    got = as_operator(CONVERSIONS[name](A)).column_statistics(weight)
    # The mean may be off by one rounding; a spread of 8 roundings of the mean counts as none when scaling.
    assert (np.sqrt(got.variance) <= 8 * np.finfo(float).eps * np.abs(got.mean)).all()
    assert (scaled(as_operator(CONVERSIONS[name](A)), "standard", weight).scale == 0.0).all()


@for_each("name", CONVERSIONS)
def test_weighted_statistics_of_columns_with_zeros(name):
    rng = np.random.default_rng(1)
    A = np.where(rng.random((400, 5)) < 0.3, 3.0 + rng.standard_normal((400, 5)), 0.0)
    A[:, 4] = 0.0
    weight = rng.random(400)
    weight[rng.random(400) < 0.2] = 0.0
    got = as_operator(CONVERSIONS[name](A)).column_statistics(weight)
    mean, variance = exact(A, weight)
    # 400 terms of size 1: 400 roundings at worst.
    np.testing.assert_allclose(got.mean, mean, rtol=0, atol=1e-13)
    np.testing.assert_allclose(got.variance, variance, rtol=0, atol=1e-12)
    np.testing.assert_allclose(got.weight, weight.sum(), rtol=1e-14)
    assert np.array_equal(got.max_abs, np.abs(A[weight > 0]).max(axis=0))


@for_each("name", CONVERSIONS)
def test_statistics_have_the_same_bits_for_any_number_of_threads(name):
    operator = as_operator(CONVERSIONS[name](np.random.default_rng(2).standard_normal((4000, 150))))
    weight = np.random.default_rng(3).random(4000)
    results = []
    for threads in (1, 2, 3):
        with parallel.thread_limit(threads):
            results.append(operator.column_statistics(weight))
    for other in results[1:]:
        assert all(np.array_equal(a, b) for a, b in zip(results[0], other, strict=True))


@for_each("name", CONVERSIONS)
def test_scaling_equals_scikit_learn(name):
    A = np.where(np.random.default_rng(4).random((50, 6)) < 0.5, 0.0, 5 + np.random.default_rng(5).random((50, 6)))
    A[:, 2], A[:, 3] = 0.0, 0.1
    w = np.linspace(-1, 1, 6)
    largest = scaled(as_operator(CONVERSIONS[name](A)), "maxabs")
    np.testing.assert_allclose(largest.matvec(w), MaxAbsScaler().fit_transform(A) @ w, rtol=0, atol=1e-14)
    standard = scaled(as_operator(CONVERSIONS[name](A)), "standard")
    # x - mean loses nothing here (both of size 5), so only the order of 6 terms of size 1 to 10 differs.
    np.testing.assert_allclose(standard.matvec(w), StandardScaler().fit_transform(A) @ w, rtol=0, atol=1e-13)
    assert largest.scale[2] == 1.0
    assert standard.scale[2] == standard.scale[3] == 0.0


def test_no_scaling_returns_the_operator_itself():
    operator = as_operator(np.eye(3))
    assert scaled(operator, None) is operator
    assert operator.n_passes == 0
    assert isinstance(scaled(operator, "maxabs"), ScaledOperator)
    assert operator.n_passes == 1
