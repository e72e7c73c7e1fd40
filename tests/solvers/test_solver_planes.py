"""The planes of cutting-plane solvers: below J for ever, few enough, merged and dropped without loss, saved and restored."""

import functools
from functools import partial

import cvxpy as cp
import numpy as np
import pytest

from cases import crossed, for_each
from problems import linear_rows, made_objective
from scoreline.objective import Objective
from scoreline.operators import as_operator
from scoreline.risks.registry import get_risk
from scoreline.solvers import BundleOcasSolver, BundleSolver
from scoreline.solvers import bundle as planes
from scoreline.solvers.bundle import MOST_IDLE_ITERATIONS, Planes

RISKS = ("hinge", "roc_area")
N, P = 30, 6


data = partial(linear_rows, N, P, seed=4, shift=0.3)


def problem(risk, alpha):
    return made_objective(*data(), risk, alpha)


@functools.cache
def optimum(risk, alpha):
    """Return J at cvxpy's solution, from the definition: never below the true minimum."""
    X, y = data()
    rows = X * y[:, None]
    if risk == "roc_area":
        i, j = np.nonzero(np.outer(y > 0, y < 0))
        rows = X[i] - X[j]
    w = cp.Variable(P)
    task = cp.Problem(cp.Minimize(0.5 * alpha * cp.sum_squares(w) + cp.sum(cp.pos(1 - rows @ w)) / len(rows)))
    task.solve(solver=cp.CLARABEL, tol_gap_abs=1e-12, tol_gap_rel=1e-12, tol_feas=1e-12)
    return 0.5 * alpha * w.value @ w.value + np.maximum(0.0, 1.0 - rows @ w.value).mean()


def add_at(bundle, objective, w):
    point = objective.at(w, objective.scores(w))
    bundle.add(objective, point, objective.slope(point))


def count(bundle):
    return len(bundle.record()["constants"])


def value(bundle, alpha):
    """Return the value of the mixture from its definition, without an allowance."""
    record = bundle.record()
    t = record["weights"]
    return t @ record["constants"] - ((t @ record["slopes"]) ** 2).sum() / (2.0 * alpha)


def check_gram(bundle):
    record = bundle.record()
    slopes = record["slopes"]
    np.testing.assert_allclose(record["gram"], slopes @ slopes.T, atol=1e-14)  # sums of 6 products of size 1


def places(bundle, slopes):
    """Return where the record has those slopes, which it must have once each."""
    found = bundle.record()["slopes"]
    where = [np.flatnonzero((found == slope).all(axis=1)).tolist() for slope in slopes]
    assert all(len(place) == 1 for place in where), where
    return [place[0] for place in where]


def run(risk, alpha, most, iterations, zero=True, seed=0):
    """Yield the planes after each iteration, the new plane being taken in turn at the minimum and at random points."""
    rng = np.random.default_rng(seed)
    objective = problem(risk, alpha)
    bundle = Planes.empty(P, most, zero)
    w = np.zeros(P)
    for k in range(iterations):
        add_at(bundle, objective, w)
        bundle.solve(alpha)
        slope = bundle.mixture()
        yield objective, bundle, bundle.bound(objective, slope)
        bundle.drop_idle()
        w = -slope / alpha if k % 3 else 10.0 ** rng.uniform(-2, 2) * rng.standard_normal(P)


@for_each("zero, most, alpha, risk", crossed([True, False], [2, 3, 5, None], [1e-1, 1e-3], RISKS, strength=1))
def test_the_bound_stays_below_the_optimum_and_never_falls(risk, alpha, most, zero):
    best, last = optimum(risk, alpha), -np.inf
    for _, bundle, bound in run(risk, alpha, most, 120, zero):
        record = bundle.record()
        size = np.abs(record["constants"]).max() + np.diag(record["gram"]).max() / alpha
        assert bound <= best * (1 + 1e-13)  # rounding of the sums on this side
        assert bound <= value(bundle, alpha)
        # The allowance for rounding is (n + 8 sqrt(n)) eps of such sums.
        assert bound == pytest.approx(value(bundle, alpha), abs=1e-11 * size)
        # The mixture before is still there, merged or not; the small problem is solved to 1e-13 of its size.
        assert bound >= last - 1e-11 * size
        last = bound
    assert last >= (0.5 if most is None else 0.05) * best, "the bound must say something"


@for_each("most", [2, 3, 7, None])
@for_each("risk", RISKS)
def test_every_plane_lies_below_the_risk_also_after_merging(risk, most):
    rng = np.random.default_rng(1)
    tests = [10.0 ** rng.uniform(-2, 2) * rng.standard_normal(P) for _ in range(60)]
    values = None
    for objective, bundle, _ in run(risk, 1e-2, most, 60):
        if values is None:
            values = np.array([objective.risk.value(objective.scores(w)) for w in tests])
        record = bundle.record()
        heights = record["constants"] + np.array(tests) @ record["slopes"].T
        # 1e-13: rounding of sums of 30 terms, relative to their size.
        assert (heights <= values[:, None] + 1e-13 * np.maximum(1.0, values)[:, None]).all()


@for_each("most", [2, 3, 7, 40, None])
def test_the_gram_matrix_follows_every_change(most):
    for _, bundle, _ in run("hinge", 1e-2, most, 90):
        check_gram(bundle)


@for_each("most", [2, 3, 5, 33, 40])
def test_there_are_never_more_planes_than_allowed(most):
    counts = []
    for _, bundle, _ in run("roc_area", 1e-4, most, 100):
        counts.append(count(bundle))
        assert counts[-1] <= most
        for name in (*planes.ARRAYS, "gram"):
            assert len(getattr(bundle, name)) <= most, "memory too"
        weights = bundle.record()["weights"]
        assert weights.sum() == pytest.approx(1.0, abs=1e-12)
        assert weights.min() >= 0.0
    if most <= 5:
        assert max(counts) == most


def test_room_grows_as_needed_and_nothing_is_lost():
    """Beyond the 32 planes that there is room for at first, all of them are kept."""
    objective, bundle = problem("logistic", 1e-3), Planes.empty(P, 100, zero=True)
    rng = np.random.default_rng(2)
    slopes, constants = [np.zeros(P)], [0.0]
    for k in range(99):
        w = rng.standard_normal(P)
        point = objective.at(w, objective.scores(w))
        slopes.append(objective.slope(point))
        constants.append(point.risk.plane)
        bundle.add(objective, point, slopes[-1])
        assert count(bundle) == k + 2
    where = places(bundle, slopes)
    assert sorted(where) == list(range(100))
    assert bundle.record()["constants"][where].tolist() == constants
    check_gram(bundle)


def full(most, weights, ages):
    """Return a full set of planes at random points, with those weights and ages."""
    objective, bundle = problem("hinge", 1e-2), Planes.empty(P, most, zero=False)
    rng = np.random.default_rng(5)
    for _ in range(most):
        add_at(bundle, objective, rng.standard_normal(P))
    return objective, Planes.restored(bundle.record() | {"weights": np.array(weights), "ages": np.array(ages)})


def test_merging_the_two_planes_of_least_weight_keeps_the_mixture():
    objective, bundle = full(4, [0.4, 0.1, 0.3, 0.2], [0, 0, 0, 0])
    before = bundle.record()
    slopes, slope, height = before["slopes"], bundle.mixture(), value(bundle, 1e-2)
    w = np.linspace(-1.0, 1.0, P)
    add_at(bundle, objective, w)
    after = bundle.record()
    assert len(after["weights"]) == 4
    # A few roundings of numbers of size 1.
    np.testing.assert_allclose(bundle.mixture(), slope, atol=1e-15)
    assert value(bundle, 1e-2) == pytest.approx(height, abs=1e-13)  # divided by alpha
    for name in ("constants", "sizes", "masses"):
        assert after["weights"] @ after[name] == pytest.approx(before["weights"] @ before[name], rel=1e-14), name
    point = objective.at(w, objective.scores(w))
    first, third, new = places(bundle, [slopes[0], slopes[2], objective.slope(point)])
    merged = ({0, 1, 2, 3} - {first, third, new}).pop()
    np.testing.assert_allclose(after["slopes"][merged], (slopes[1] + 2.0 * slopes[3]) / 3.0, atol=1e-15)
    assert after["weights"][[first, third, merged, new]].tolist() == pytest.approx([0.4, 0.3, 0.3, 0.0], rel=1e-15)
    assert after["constants"][new] == point.risk.plane
    check_gram(bundle)


@for_each("weights", [[0.25, 0.75], [0.75, 0.25]])
def test_two_planes_at_most_merge_into_one(weights):
    objective, bundle = full(2, weights, [0, 0])
    slope, height = bundle.mixture(), value(bundle, 1e-2)
    add_at(bundle, objective, np.ones(P))
    assert sorted(bundle.record()["weights"]) == [0.0, 1.0]
    np.testing.assert_allclose(bundle.mixture(), slope, atol=1e-15)
    assert value(bundle, 1e-2) == pytest.approx(height, abs=1e-13)
    check_gram(bundle)


def test_without_room_the_one_without_weight_for_longest_goes_and_no_other():
    objective, bundle = full(5, [0.2, 0.0, 0.1, 0.0, 0.7], [0, 3, 0, 8, 0])
    before = bundle.record()
    add_at(bundle, objective, np.ones(P))
    after = bundle.record()
    assert len(after["weights"]) == 5
    where = places(bundle, before["slopes"][[0, 1, 2, 4]])
    for name in ("constants", "sizes", "masses", "weights", "ages"):
        assert np.array_equal(after[name][where], before[name][[0, 1, 2, 4]]), name
    new = ({0, 1, 2, 3, 4} - set(where)).pop()
    assert (after["weights"][new], after["ages"][new]) == (0.0, 0)
    check_gram(bundle)


def test_planes_idle_for_longer_than_the_patience_go():
    _, bundle = full(
        4, [0.0, 0.0, 1.0, 0.0], [MOST_IDLE_ITERATIONS, MOST_IDLE_ITERATIONS + 1, 0, MOST_IDLE_ITERATIONS + 50]
    )
    slopes = bundle.record()["slopes"]
    bundle.drop_idle()
    assert count(bundle) == 2
    assert sorted(places(bundle, slopes[[0, 2]])) == [0, 1]
    check_gram(bundle)


def test_places_that_became_free_are_used_again():
    objective, bundle = full(
        4, [0.0, 0.0, 1.0, 0.0], [MOST_IDLE_ITERATIONS, MOST_IDLE_ITERATIONS + 1, 0, MOST_IDLE_ITERATIONS + 50]
    )
    bundle.drop_idle()
    slopes = bundle.record()["slopes"]
    for k in range(2):
        add_at(bundle, objective, np.full(P, k + 0.5))
        bundle.solve(1e-2)
        assert count(bundle) == 3 + k
        check_gram(bundle)
        places(bundle, slopes)
    assert len(bundle.constants) == 4


def test_ages_count_solutions_without_weight():
    objective, bundle = problem("hinge", 10.0), Planes.empty(P, None, zero=True)
    add_at(bundle, objective, np.zeros(P))  # so strong a penalty that this plane, J(0) = 1, takes all weight
    ages = np.zeros(2, dtype=int)
    for _ in range(5):
        bundle.solve(10.0)
        record = bundle.record()
        ages = np.where(record["weights"] > 0.0, 0, ages + 1)
        assert record["ages"].tolist() == ages.tolist()
    assert ages.max() == 5, "one of the two must have been idle, or this shows nothing"


def test_the_first_plane_has_all_weight_without_the_zero_plane():
    bundle = Planes.empty(P, None, zero=False)
    assert count(bundle) == 0
    add_at(bundle, problem("hinge", 1e-2), np.ones(P))
    for _ in range(2):
        assert bundle.record()["weights"].tolist() == [1.0]
        assert np.array_equal(bundle.mixture(), bundle.record()["slopes"][0])
        bundle.solve(1e-2)


def test_the_zero_plane_says_that_no_risk_is_negative():
    bundle = Planes.empty(P, None, zero=True)
    assert bundle.record()["weights"].tolist() == [1.0]
    objective = problem("hinge", 1e-6)
    assert bundle.bound(objective, bundle.mixture()) == 0.0
    # At a point far off the plane's own bound is far below 0: the zero plane holds it at 0 or above.
    add_at(bundle, objective, 100.0 * np.ones(P))
    record = bundle.record()
    assert (record["constants"] - np.diag(record["gram"]) / 2e-6).min() < -1e3
    bundle.solve(1e-6)
    assert bundle.bound(objective, bundle.mixture()) >= -1e-12  # less the allowance


@for_each("zero_plane, bound", [(True, 0.0), (False, -np.inf)])
def test_zero_plane_decides_what_is_proved_at_the_start(zero_plane, bound):
    result = BundleSolver(zero_plane=zero_plane, tol=1e-12, max_iter=1).solve(problem("hinge", 1e-2))
    assert result.history["lower_bound"][0] == bound
    assert len(result.state.planes["constants"]) == 1 + zero_plane


def test_without_the_zero_plane_the_first_bound_is_that_of_the_first_plane():
    alpha = 1e-3
    objective = problem("hinge", alpha)
    slope = objective.slope(objective.at(np.zeros(P), np.zeros(N)))
    result = BundleSolver(zero_plane=False, tol=1e-12, max_iter=1).solve(problem("hinge", alpha))
    planes_alone = result.state.lower_bound
    assert planes_alone == pytest.approx(1.0 - slope @ slope / (2 * alpha), rel=1e-12)  # the plane at 0 is 1 + <v, w>
    assert planes_alone < 0.0 == result.lower_bound


@for_each("most", [3, 40])
def test_a_record_brings_the_planes_back(most):
    *_, (objective, bundle, bound) = run("roc_area", 1e-3, most, 37)
    record = bundle.record()
    assert all(len(record[name]) == len(record["constants"]) for name in planes.ARRAYS)
    assert all(isinstance(entry, (np.ndarray, int)) for entry in record.values())
    again = Planes.restored(record)
    assert again.most == bundle.most
    for name, entry in again.record().items():
        assert np.array_equal(entry, record[name]), name
    assert again.bound(objective, again.mixture()) == pytest.approx(bound, rel=1e-14)  # summed in another order
    # Both go on alike, and neither changes the record.
    copy = {name: np.array(entry) for name, entry in record.items()}
    rng = np.random.default_rng(9)
    for _ in range(50):
        w = rng.standard_normal(P)
        for one in (bundle, again):
            add_at(one, objective, w)
            one.solve(1e-3)
            one.drop_idle()
        assert count(again) == count(bundle)
        # Planes may lie in another order, so rounding differs.
        np.testing.assert_allclose(again.mixture(), bundle.mixture(), atol=1e-9)
    for name, entry in copy.items():
        assert np.array_equal(record[name], entry), name


def test_memory_decides_how_many_planes_are_kept(monkeypatch):
    assert Planes.empty(P, None, zero=True).most == planes.MOST_PLANES
    monkeypatch.setattr(planes, "PLANE_BYTES", 8 * P * 100)
    assert Planes.empty(P, None, zero=True).most == 100
    assert Planes.empty(3 * P, None, zero=True).most == 33
    assert Planes.empty(100 * P, None, zero=True).most == planes.LEAST_PLANES
    assert Planes.empty(100 * P, 5, zero=True).most == 5


@for_each("solver_class", [BundleSolver, BundleOcasSolver])
def test_a_plane_whose_squares_overflow_is_not_taken_in(solver_class):
    X, y = data()
    objective = Objective(as_operator(1e160 * X), get_risk("hinge").prepare(y), 1e-3)
    bundle = Planes.empty(P, None, zero=True)
    point = objective.at(np.zeros(P), np.zeros(N))
    assert bundle.add(objective, point, objective.slope(point)) is False
    assert count(bundle) == 1
    result = solver_class().solve(objective)
    assert (result.status, result.objective, result.lower_bound) == ("stalled", 1.0, 0.0)


@for_each("max_planes", [2, 3, 10])
@for_each("risk", RISKS)
def test_a_solver_with_few_planes_converges_to_the_same_optimum(risk, max_planes):
    alpha = 1e-2
    progresses = []
    solver = BundleSolver(max_planes=max_planes, tol=0.2 if max_planes == 2 else 0.05, callbacks=[progresses.append])
    result = solver.solve(problem(risk, alpha))
    assert result.status == "converged"
    assert len(result.state.planes["constants"]) <= max_planes
    best = optimum(risk, alpha)
    for progress in progresses:
        assert progress.lower_bound <= best * (1 + 1e-13)  # as above
        assert progress.objective >= best * (1 - 1e-9)  # cvxpy's accuracy
