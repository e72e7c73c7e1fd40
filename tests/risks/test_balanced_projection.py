"""The projection onto a box with one equality: cvxpy, the conditions of optimality, ties, scales, all or none active."""

import numpy as np
import pytest

from cases import for_each
from scoreline.risks import project_balanced


def nearest(v, y, s, high):
    import cvxpy as cp  # which takes seconds

    x = cp.Variable(len(v))
    task = cp.Problem(
        cp.Minimize(cp.sum_squares(cp.multiply(np.sqrt(s), x - v))), [x >= 0, x <= high, (s * y) @ x == 0]
    )
    task.solve(solver=cp.CLARABEL, tol_gap_abs=1e-13, tol_gap_rel=1e-13, tol_feas=1e-13)
    return x.value


def case(seed):
    """Return a random problem: normal, tied, on the ends of the box, far outside, nearly equal, one row of a class."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 15))
    y = np.where(rng.random(n) < rng.uniform(0.1, 0.9), 1, -1)
    y[:2] = 1, -1
    if seed % 5 == 4:
        y[1:] = -1
    kind = seed % 6
    v = rng.standard_normal(n)
    if kind == 1:
        v = np.round(2.0 * v) / 2.0
    elif kind == 2:
        v = rng.integers(0, 2, n).astype(float)
    elif kind == 3:
        v = 5.0 * v + rng.choice([-5.0, 5.0])
    elif kind == 4:
        v = 0.3 + 1e-3 * v
    elif kind == 5:
        v = np.full(n, rng.choice([-2.0, 0.0, 0.5, 1.0, 3.0]))
    s = rng.integers(1, 5, n).astype(float) if seed % 2 else np.ones(n)
    return v, y, s, float(rng.choice([1.0, 0.25, 1.0 / n]))


def multiplier_gap(x, v, y, high):
    """Return by how much no nu fits x = clip(v - nu y, 0, high): 0 exactly if x is the projection (and balances)."""
    tight = 1e-12 * high  # the sums of the two classes are made equal by factors that differ from 1 by rounding
    free, low, top = (x > tight) & (x < high - tight), x <= tight, x >= high - tight
    least, most = [-np.inf], [np.inf]
    for side in (1, -1):
        own = y == side
        least += [*(side * (v - x))[own & free], *((v if side > 0 else high - v)[own & (low if side > 0 else top)])]
        most += [*(side * (v - x))[own & free], *((v - high if side > 0 else -v)[own & (top if side > 0 else low)])]
    return max(0.0, max(least) - min(most))


@for_each("seed", range(1000))
def test_projections_keep_the_conditions_of_optimality(seed):
    v, y, s, high = case(seed)
    got = project_balanced(v, y, s, high)
    assert got.min() >= 0.0
    assert got.max() <= high
    assert abs(np.sum(s * y * got)) <= 1e-13 * (1.0 + np.sum(s * got))
    assert multiplier_gap(got, v, y, high) <= 1e-9


@pytest.mark.slow
@for_each("seed", range(1000))
def test_projections_are_those_of_cvxpy(seed):
    v, y, s, high = case(seed)
    got, other = project_balanced(v, y, s, high), nearest(v, y, s, high)
    # An interior point method stops 1e-7 short of the corners where several constraints meet: there ours is the nearer one.
    close = np.abs(got - other).max() <= 1e-9
    assert close or (np.abs(got - other).max() <= 1e-5 and s @ (got - v) ** 2 <= s @ (other - v) ** 2 + 1e-12)


@for_each("scale", [1e-150, 1e-8, 1.0, 1e8, 1e150])
@for_each("weighted", [False, True])
def test_projections_of_any_scale_keep_the_conditions_of_optimality(scale, weighted):
    rng = np.random.default_rng(0)
    n, high = 1000, scale
    v, y = scale * (0.5 + rng.standard_normal(n)), np.where(rng.random(n) < 0.3, 1, -1)
    s = rng.uniform(0.1, 3.0, n) if weighted else np.ones(n)
    x = project_balanced(v, y, s if weighted else None, high)
    assert abs(np.sum(s * y * x)) <= 1e-12 * np.sum(s * x)  # sums of a thousand terms
    assert multiplier_gap(x, v, y, high) <= 1e-11 * scale


@for_each("v, expected", [(-3.0, 0.0), (5.0, None), (0.0, 0.0)])
def test_all_or_none_active(v, expected):
    y = np.array([1, 1, -1, -1, -1])
    x = project_balanced(np.full(5, v), y)
    if expected is None:  # both classes want more than there is: two positives at 1, three negatives share 2
        np.testing.assert_allclose(x, [1.0, 1.0, 2.0 / 3.0, 2.0 / 3.0, 2.0 / 3.0], atol=1e-15)
    else:
        np.testing.assert_array_equal(x, expected)


def test_wrong_input_is_refused_by_name():
    with pytest.raises(ValueError, match="v must be 2 finite numbers"):
        project_balanced([1.0, 2.0, 3.0], [1, -1])
    with pytest.raises(ValueError, match="v must be 2 finite numbers"):
        project_balanced([1.0, np.inf], [1, -1])
    with pytest.raises(ValueError, match="high=0"):
        project_balanced([1.0, 2.0], [1, -1], high=0)
