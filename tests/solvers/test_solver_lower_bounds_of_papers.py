"""The lower bounds on cutting planes of Zhang, Saha and Vishwanathan (2010, 2012), iterate by iterate, and who escapes them."""

import itertools
from fractions import Fraction

import cvxpy as cp
import numpy as np
import pytest

from cases import for_each
from scoreline.io import hard_for_cutting_planes
from scoreline.objective import Objective
from scoreline.operators import as_operator
from scoreline.risks import ContingencyRisk, HingeRisk, PrbepRisk, RocAreaRisk
from scoreline.solvers import (
    AcceleratedSolver,
    BundleLineSearchSolver,
    BundleOcasSolver,
    BundleSolver,
    SmoothedSolver,
)

EXAMPLES = ("prbep", "roc_area", "hinge", "f1")
SIZES = (3, 5, 8, 9, 20)
# What the mixture of the first k planes proves, from the theorems' weights 1/k: <b, t> - |w_k|^2 / 2.
BOUNDS = {
    "prbep": lambda n, k: 1 / 2 - 1 / (4 * k),
    "roc_area": lambda n, k: 1 / (2 * n) - 1 / (2 * k),
    "hinge": lambda n, k: 1 / (2 * n) - 1 / (2 * k),
    "f1": lambda n, k: 1 / 6 - 1 / (2 * k),
}
every_example = for_each("name", EXAMPLES)


def example_of(name, n):
    return hard_for_cutting_planes(n)[EXAMPLES.index(name)]


def risk_of(example, ties="smallest"):
    if example.measure:
        return ContingencyRisk(example.measure, ties=ties)
    return {"hinge": HingeRisk, "roc_area": RocAreaRisk}[example.risk](ties=ties)


def objective_of(example, ties="smallest", risk=None):
    risk = risk_of(example, ties) if risk is None else risk
    return Objective(as_operator(example.X), risk.prepare(example.y), example.alpha)


def literal_risk(example, w):
    """Return R(Xw) by its definition: all rows, all pairs or all labellings."""
    X, y, n = example.X, example.y, len(example.y)
    z = X @ w
    if example.measure:
        slopes, constants = all_planes(example)
        return (constants + slopes @ z).max()
    if example.risk == "roc_area":
        return np.maximum(0.0, 1.0 - z[y > 0][:, None] + z[y < 0][None, :]).mean()
    return np.maximum(0.0, 1.0 - y * z).sum() / n


def all_planes(example):
    """Return (slopes in z, constants) of all labellings."""
    y, n = example.y, len(example.y)
    plus = int((y > 0).sum())
    slopes, constants = [], []
    for flips in itertools.product((0, 1), repeat=n):
        flips = np.array(flips)
        b, c = int(flips[y > 0].sum()), int(flips[y < 0].sum())
        if example.measure == "prbep" and b != c:
            continue
        slopes.append(-2.0 / n * flips * y)
        constants.append(b / plus if example.measure == "prbep" else 1 - 2 * (plus - b) / (2 * plus - b + c))
    return np.array(slopes), np.array(constants)


@for_each("n", SIZES)
@every_example
def test_the_theorem_iterate_by_iterate(name, n):
    example = example_of(name, n)
    assert example.solver == "bundle"
    assert example.steps in (n - 1, n)
    objective = objective_of(example)
    solver = BundleSolver(zero_plane=False)
    for k, state in enumerate(itertools.islice(solver.iterates(objective, example.w0), example.steps), 1):
        # Rounding of numbers of size 1: the small problem is solved to 1e-13.
        np.testing.assert_allclose(state.w, example.point(k), atol=1e-12, rtol=0, err_msg=f"w_{k}")
        assert objective.value(state.w) == pytest.approx(example.objective(k), abs=1e-12)
        assert state.lower_bound == pytest.approx(BOUNDS[name](n, k), abs=1e-12)
        assert state.lower_bound <= example.optimum


@for_each("n", [3, 5, 8, 9])
@every_example
def test_the_value_at_the_points_of_the_theorem_by_the_definition(name, n):
    example = example_of(name, n)
    for k in range(1, example.steps + 1):
        w = example.point(k)
        # Sums of at most 9 numbers of size 1.
        assert 0.5 * w @ w + literal_risk(example, w) == pytest.approx(example.objective(k), abs=1e-14)


@for_each("n", [3, 8])
@every_example
def test_the_optimum_is_right(name, n):
    example = example_of(name, n)
    X, y, w = example.X, example.y, cp.Variable(example.X.shape[1])
    if example.measure:
        slopes, constants = all_planes(example)
        loss = cp.max(constants + (slopes @ X) @ w)
    elif example.risk == "roc_area":
        loss = cp.sum(cp.pos(1 - (X[y > 0] - X[y < 0]) @ w)) / (y < 0).sum()
    else:
        loss = cp.sum(cp.pos(1 - (y[:, None] * X) @ w)) / n
    task = cp.Problem(cp.Minimize(0.5 * example.alpha * cp.sum_squares(w) + loss))
    task.solve(solver=cp.CLARABEL, tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
    assert task.value == pytest.approx(example.optimum, abs=1e-9)  # CLARABEL's accuracy
    # And a run that knows nothing of it proves it.
    result = BundleOcasSolver(tol=1e-9).solve(objective_of(example, "any"))
    assert result.lower_bound <= example.optimum + 1e-15
    assert result.objective >= example.optimum - 1e-15  # a rounding
    assert result.gap <= 1e-9


@for_each("n", [3, 8, 20])
@every_example
def test_what_the_example_says_of_itself(name, n):
    example = example_of(name, n)
    assert {"prbep": "Theorem 4", "roc_area": "Theorem 5", "hinge": "Theorem 5", "f1": "Theorem 6"}[
        name
    ] in example.name
    assert example.alpha == 1.0
    rows, features = example.X.shape
    assert rows == n + (name == "roc_area")
    assert len(example.y) == rows
    assert example.w0.shape == example.point(1).shape == (features,)
    # The bounds of the papers: the gap is at least 1/(4k) for PRBEP and 1/(2k) else, for k up to the number of steps.
    for k in range(1, example.steps + 1):
        assert example.objective(k) - example.optimum >= (0.25 if name == "prbep" else 0.5) / k


def test_too_small_an_example_is_refused():
    for n in (2, 3.5, "8"):
        with pytest.raises(ValueError, match=rf"n={n!r} must be an integer at least 3"):
            hard_for_cutting_planes(n)


@for_each("n", [8, 20])
@for_each("name", ["roc_area", "hinge"])
def test_the_natural_rule_ends_theorem_5_in_a_few_steps(name, n):
    """With a = 0 at ties the second plane is the optimal one: the theorem is about the tie rule."""
    example = example_of(name, n)
    for options in ({}, {"zero_plane": False}):
        result = BundleSolver(tol=1e-9, **options).solve(objective_of(example, "any"), example.w0)
        assert result.status == "converged"
        assert result.n_iter <= 3
        assert result.objective == pytest.approx(example.optimum, rel=1e-9)


@for_each("name", ["prbep", "f1"])
def test_the_others_stay_slow_with_the_natural_rule(name):
    n, k = 60, 30
    example = example_of(name, n)
    result = BundleSolver(tol=1e-9, max_iter=k).solve(objective_of(example, "any"), example.w0)
    assert result.status == "max_iter"
    assert result.gap >= 0.25 / k


@for_each("n", SIZES)
@for_each("name", ["roc_area", "hinge"])
def test_the_step_after_the_last_reaches_the_optimum(name, n):
    """All rows used up, nothing is left but the plane of slope 0."""
    example = example_of(name, n)
    solver = BundleSolver(zero_plane=False)
    *_, state = itertools.islice(solver.iterates(objective_of(example), example.w0), n + 2)
    assert objective_of(example).value(state.w) == pytest.approx(example.optimum, abs=1e-12)
    assert state.lower_bound == pytest.approx(example.optimum, abs=1e-12)


# ------------------------------------------------------------------------------------------------------ who escapes


@for_each("name", ["prbep", "roc_area", "hinge"])
def test_smoothing_is_where_cutting_planes_cannot_be(name):
    n, k = 100, 30
    example = example_of(name, n)
    slow = BundleSolver(zero_plane=False, tol=1e-9, max_iter=k).solve(objective_of(example), example.w0)
    # The theorem: J(w_k), or J(w_0) where that is less, against what k planes can prove (without J >= 0: `state`).
    start = objective_of(example).value(example.w0)
    least = min(start, example.objective(k)) - BOUNDS[name](n, k)
    assert slow.status == "max_iter"
    assert slow.objective - slow.state.lower_bound >= least - 1e-12
    assert least >= 0.5 / k * (1 - 1e-12)
    risk = PrbepRisk() if name == "prbep" else risk_of(example, "any")
    fast = SmoothedSolver(tol=1e-9, max_iter=k).solve(objective_of(example, risk=risk), example.w0)
    assert fast.gap <= 0.1 * least
    assert fast.lower_bound <= example.optimum <= fast.objective


def test_acceleration_is_where_cutting_planes_cannot_be():
    """For PRBEP; on the others the constant of its 1/k^2 is too large for so few iterations."""
    n, k = 200, 100
    example = example_of("prbep", n)
    least = example.objective(k) - BOUNDS["prbep"](n, k)
    assert least == pytest.approx(0.5 / k, rel=1e-12)
    fast = AcceleratedSolver(tol=1e-9, max_iter=k).solve(objective_of(example, risk=PrbepRisk()), example.w0)
    assert fast.gap <= 0.1 * least
    assert fast.lower_bound <= example.optimum <= fast.objective


# --------------------------------------------------------------------------- the line-search variant, 2010 Theorem 2


def exactly(count):
    """Yield (w_k, weight of the first plane, J(w_k)) of the line-search variant on Theorem 2's example, in fractions.

    Rows x and -x of opposite label are one: R(w) = (max(0, 1 - w) + max(0, 1 - w/2)) / 2, alpha = 1/16.
    """
    alpha, half = Fraction(1, 16), Fraction(1, 2)
    w = Fraction(0)
    v = c = None
    weight = Fraction(1)
    for _ in range(count):
        flipped = [x for x in (Fraction(1), half) if 1 - x * w > 0]
        a, b = -sum(flipped, Fraction(0)) / 2, Fraction(len(flipped), 2)
        if v is None:
            v, c = a, b
        else:
            share = min(Fraction(1), max(Fraction(0), (alpha * (c - b) - a * (v - a)) / (v - a) ** 2))
            v, c, weight = share * v + (1 - share) * a, share * c + (1 - share) * b, share * weight
        w = -v / alpha
        risk = (max(Fraction(0), 1 - w) + max(Fraction(0), 1 - w / 2)) / 2
        yield w, weight, alpha / 2 * w * w + risk


def line_search_run():
    example = hard_for_cutting_planes(3)[-1]
    assert (example.solver, example.alpha, example.optimum) == ("bundle_ls", 1 / 16, 1 / 8)
    return example, objective_of(example)


def test_theorem_2_iterate_by_iterate():
    example, objective = line_search_run()
    first = [Fraction(12), Fraction(4, 3), Fraction(7, 3), Fraction(37, 21), Fraction(2159, 987)]
    assert [w for w, _, _ in exactly(5)] == first
    states = itertools.islice(BundleLineSearchSolver().iterates(objective, example.w0), 12)
    for state, (w, _, value) in zip(states, exactly(12), strict=True):
        # A few roundings an iteration, none of them magnified.
        assert state.w[0] == pytest.approx(float(w), rel=1e-12)
        assert objective.value(state.w) == pytest.approx(float(value), rel=1e-12)


def test_theorem_2_has_the_rate_1_over_8k():
    """k (J(w_k) - J*) -> 1/8, k |2 - w_k| -> 1: half of what is printed, see the recursion below."""
    example, objective = line_search_run()
    states = itertools.islice(BundleLineSearchSolver().iterates(objective, example.w0), 4000)
    for k, state in enumerate(states, 1):
        if k in (1000, 2000, 4000):
            excess = k * (objective.value(state.w) - example.optimum)
            assert excess == pytest.approx(0.125, abs=4.0 / k)
            assert k * abs(2.0 - state.w[0]) == pytest.approx(1.0, abs=20.0 / k)
    assert excess == pytest.approx(0.125, abs=1e-3)
    assert state.lower_bound <= example.optimum


def test_the_recursion_of_the_first_weight_in_exact_arithmetic():
    """The printed recursion (12) of Zhang et al. (2010) lacks the factor of the even step; corrected, it holds exactly."""
    run = list(exactly(9))
    for k in range(1, 5):
        w, weight, _ = run[2 * k - 2]
        _, later, _ = run[2 * k]
        corrected = weight * (w**2 + 16 * weight**2) / (w + 4 * weight) ** 2 * 2 * (w - 4 * weight) / w**2
        assert later == corrected
    assert [weight for _, weight, _ in run[:3]] == [1, Fraction(1, 9), Fraction(5, 72)]


def test_the_optimum_of_theorem_2():
    # J(w) = w^2 / 32 + (max(0, 1 - w) + max(0, 1 - w / 2)) / 2: at w = 2 the slopes are -1/8 and 1/8, J = 1/8.
    example, objective = line_search_run()
    assert objective.value(np.array([2.0])) == example.optimum
    for w in (1.9, 1.999, 2.001, 2.1, 0.0, 5.0):
        assert objective.value(np.array([w])) > example.optimum
