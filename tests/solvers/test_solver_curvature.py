"""L-BFGS's memory against the dense BFGS formula."""

import numpy as np

from cases import for_each
from scoreline.solvers.common.hessian import CurvatureMemory


def dense_inverse_hessian(pairs, p):
    """Nocedal and Wright (7.16), (7.20): H = V'HV + rho s s', from H0 = (s'y / y'y) I of the newest pair."""
    H = np.eye(p)
    if pairs:
        s, y = pairs[-1]
        H *= (s @ y) / (y @ y)
    for s, y in pairs:
        rho = 1.0 / (s @ y)
        V = np.eye(p) - rho * np.outer(y, s)
        H = V.T @ H @ V + rho * np.outer(s, s)
    return H


@for_each("size", [1, 2, 3, 5])
def test_direction_is_that_of_the_dense_formula(size):
    rng = np.random.default_rng(size)
    p = 7
    A = rng.standard_normal((p, p))
    A = A @ A.T + np.eye(p)
    memory, pairs = CurvatureMemory(p, size), []
    for _ in range(9):  # more than `size`: the ring goes round
        g = rng.standard_normal(p)
        np.testing.assert_allclose(
            memory.direction(g), -dense_inverse_hessian(pairs[-size:], p) @ g, rtol=1e-10, atol=1e-10
        )  # condition about 1e2, 9 updates: 1e-10 is several digits above rounding
        s = rng.standard_normal(p)
        pairs.append((s, A @ s))
        assert memory.add(*pairs[-1])
    assert memory.count == size


def test_the_gradient_is_not_changed():
    memory, g = CurvatureMemory(3, 2), np.array([1.0, 2.0, 3.0])
    memory.add(np.ones(3), np.array([1.0, 2.0, 3.0]))
    memory.direction(g)
    assert g.tolist() == [1.0, 2.0, 3.0]


def test_without_pairs_the_direction_is_the_negative_gradient():
    assert CurvatureMemory(2, 4).direction(np.array([1.0, -2.0])).tolist() == [-1.0, 2.0]


@for_each(
    "s, y",
    [
        ([1.0, 0.0], [-1.0, 0.0]),
        ([1.0, 0.0], [0.0, 1.0]),
        ([1.0, 0.0], [0.0, 0.0]),
        ([0.0, 0.0], [1.0, 0.0]),
        ([1.0, 0.0], [1e-11, 0.0]),
        ([1.0, 0.0], [np.nan, 0.0]),
    ],
)
def test_pairs_without_positive_curvature_are_refused(s, y):
    memory = CurvatureMemory(2, 3)
    memory.add(np.array([1.0, 1.0]), np.array([2.0, 3.0]))
    before = memory.direction(np.array([1.0, -2.0]))
    assert memory.add(np.array(s), np.array(y)) is False
    assert memory.count == 1
    assert np.array_equal(memory.direction(np.array([1.0, -2.0])), before)


def test_clear_forgets_everything():
    memory = CurvatureMemory(2, 3)
    for k in range(5):
        memory.add(np.array([1.0, k]), np.array([2.0, 3.0 * k]))
    memory.clear()
    assert memory.count == 0
    assert memory.direction(np.array([1.0, -2.0])).tolist() == [-1.0, 2.0]
    # and what is added afterwards counts alone
    s, y = np.array([1.0, 2.0]), np.array([3.0, 1.0])
    memory.add(s, y)
    g = np.array([0.5, -1.0])
    np.testing.assert_allclose(memory.direction(g), -dense_inverse_hessian([(s, y)], 2) @ g, rtol=1e-14)


def test_the_secant_equation_holds():
    rng = np.random.default_rng(0)
    memory = CurvatureMemory(5, 3)
    for _ in range(6):
        s = rng.standard_normal(5)
        y = s * rng.uniform(0.5, 2.0, 5)
        memory.add(s, y)
    np.testing.assert_allclose(-memory.direction(y), s, rtol=1e-12, atol=1e-14)  # H y = s, up to rounding
