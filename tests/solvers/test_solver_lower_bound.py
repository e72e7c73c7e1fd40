"""The bound from planes: the best mixture, and that every plane stays below."""

import cvxpy as cp
import numpy as np
import pytest

from cases import for_each
from scoreline.objective import Objective
from scoreline.operators import as_operator
from scoreline.risks.registry import get_risk
from scoreline.solvers.common.lower_bound import LowerBound, _best_mixture


def mixtures():
    """Pairs of planes (v0, v1, c, alpha): general, parallel, opposite, zero, negative constants, extreme sizes."""
    rng = np.random.default_rng(3)
    for _ in range(30):
        p = int(rng.integers(1, 5))
        scale = 10.0 ** rng.uniform(-2, 2, 2)
        yield (
            scale[0] * rng.standard_normal(p),
            scale[1] * rng.standard_normal(p),
            rng.normal(0.5, 1, 2),
            10 ** rng.uniform(-3, 1),
        )
    v = rng.standard_normal(3)
    for a, b in ((v, v), (v, 2 * v), (v, -v), (v, 0 * v), (0 * v, v), (0 * v, 0 * v), (v, v * (1 + 1e-9))):
        for c in ((0.3, 0.7), (0.7, 0.3), (-0.2, 0.5), (-0.1, -0.4), (0.0, 0.0), (0.5, 0.5)):
            yield a, b, np.array(c), 0.5


CASES = list(mixtures())


def dual(t, gram, c, alpha):
    return np.asarray(t) @ c - np.einsum("...i,ij,...j", t, gram, t) / (2 * alpha)


def best_mixture(gram, c, alpha):
    return np.array(_best_mixture(gram[0, 0], gram[0, 1], gram[1, 1], tuple(c), alpha))


@for_each("case", range(len(CASES)))
def test_best_mixture_beats_a_grid(case):
    v0, v1, c, alpha = CASES[case]
    gram = np.array([[v0 @ v0, v0 @ v1], [v0 @ v1, v1 @ v1]])
    t = best_mixture(gram, c, alpha)
    assert t.min() >= 0.0
    assert t.sum() <= 1.0 + 1e-15  # a mixture, up to one rounding
    a, b = np.meshgrid(np.linspace(0, 1, 101), np.linspace(0, 1, 101))
    grid = np.column_stack([a.ravel(), b.ravel()])
    values = dual(grid[grid.sum(axis=1) <= 1.0], gram, c, alpha)
    size = np.abs(c).max() + gram.max() / alpha
    assert dual(t, gram, c, alpha) >= values.max() - 1e-14 * size  # rounding of terms of this size


@for_each("case", range(0, len(CASES), 3))
def test_best_mixture_against_the_simplex_qp(case):
    v0, v1, c, alpha = CASES[case]
    gram = np.array([[v0 @ v0, v0 @ v1], [v0 @ v1, v1 @ v1]])
    t = cp.Variable(2, nonneg=True)
    planes = np.column_stack([v0, v1])
    task = cp.Problem(cp.Maximize(c @ t - cp.sum_squares(planes @ t) / (2 * alpha)), [cp.sum(t) <= 1])
    task.solve(solver=cp.CLARABEL)
    got = dual(best_mixture(gram, c, alpha), gram, c, alpha)
    # CLARABEL stops at 1e-8, relative to the larger of 1 and the value; a factor 10 for its conditioning.
    assert got == pytest.approx(task.value, rel=1e-7, abs=1e-7)


def test_one_plane_is_scaled_as_in_the_formula():
    v, c, alpha = np.array([3.0, 4.0]), 0.5, 0.2
    bound = LowerBound(2, alpha)
    t = min(1.0, alpha * c / 25.0)
    # A handful of operations: 1e-15.
    assert bound.add(v, c, 0.0) == pytest.approx(t * c - t * t * 25.0 / (2 * alpha), rel=1e-15)
    np.testing.assert_allclose(bound.slope, t * v, rtol=1e-15)
    assert bound.constant == pytest.approx(t * c, rel=1e-15)


def test_a_flat_plane_gives_its_constant_less_the_allowance():
    bound = LowerBound(2, 1.0)
    assert bound.add(np.zeros(2), 0.75, 0.0) == 0.75
    assert LowerBound(2, 1.0).add(np.zeros(2), 0.75, 0.25) == 0.5


def test_zero_is_a_bound_from_the_start_and_bad_planes_do_no_harm():
    bound = LowerBound(2, 1.0)
    assert bound.value == 0.0
    assert bound.add(np.array([1.0, 0.0]), -3.0, 0.0) == 0.0
    bound.add(np.zeros(2), 0.5, 0.0)
    assert bound.add(np.array([100.0, 0.0]), 0.1, 0.0) == 0.5
    assert bound.slope.tolist() == [0.0, 0.0]
    assert bound.constant == 0.5


def test_two_planes_are_better_than_each():
    # R(w) = max(1 - w, 1 + w) >= 1: each plane alone says 1 - 1/(2 alpha), their mean says 1.
    bound = LowerBound(1, 1.0)
    first = bound.add(np.array([-1.0]), 1.0, 0.0)
    assert first == 0.5
    assert bound.add(np.array([1.0]), 1.0, 0.0) == pytest.approx(1.0, abs=1e-15)  # one rounding


@for_each("risk", ["hinge", "roc_area", "logistic", "squared_hinge"])
@for_each("alpha", [1e-3, 1e-1])
def test_planes_from_a_risk_stay_below(risk, alpha):
    rng = np.random.default_rng(5)
    X = rng.standard_normal((25, 3))
    y = np.where(rng.random(25) < 0.4, 1, -1)
    objective = Objective(as_operator(X), get_risk(risk).prepare(y), alpha)
    bound, last = LowerBound(3, alpha), 0.0
    tests = [10.0 ** rng.uniform(-2, 2) * rng.standard_normal(3) for _ in range(100)]
    values = np.array([objective.value(w) for w in tests])
    penalties = np.array([0.5 * alpha * w @ w for w in tests])
    for mu in (0.5, 0.05, 0.005):
        for _ in range(10):
            w = rng.standard_normal(3)
            width = mu / objective.risk.ramp_scale if objective.risk.ramp_scale else 0.0
            point = objective.at(w, objective.scores(w), width)
            slope = objective.slope(point)
            now = bound.add(slope, point.risk.plane, objective.rounding_allowance(point, slope))
            assert now >= last
            last = now
            assert now <= values.min()
            planes = np.array([bound.constant + bound.slope @ w for w in tests])
            # 1e-13: rounding of sums of 25 terms, relative to their size.
            assert (planes <= (values - penalties) + 1e-13 * np.maximum(1.0, values)).all()
    assert last > 0.0, "the bound must say something"
