"""The concave quadratic over the simplex: against an interior-point solver, against all supports, from every start."""

import functools
import itertools

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import for_each
from scoreline.kernels.simplex import maximise
from tiers import TIER, examples

SMALL = 1e-13  # what `Planes` asks for, relative to the scale: a few hundred roundings
ROUNDING = 1e-14  # of sums of terms of the size of the scale


def scale_of(gram, c):
    return np.abs(c).max() + gram.diagonal().max()


def value(t, gram, c):
    return c @ t - 0.5 * t @ gram @ t


def vertex(k, i):
    return np.eye(k)[i]


def solve(gram, c, start, most_changes=None):
    """Return the mixture and the gap, after checking all that must hold at any end."""
    t, before = start.copy(), (gram.copy(), c.copy())
    k, scale = len(c), scale_of(gram, c)
    gap = maximise(gram, c, t, SMALL * scale, 20 * k + 100 if most_changes is None else most_changes)
    assert np.isfinite(t).all()
    assert np.isfinite(gap)
    assert t.min() >= 0.0
    assert abs(t.sum() - 1.0) <= 1e-12
    assert np.array_equal(gram, before[0])
    assert np.array_equal(c, before[1])
    slopes = c - gram @ t
    assert abs(gap - (slopes.max() - t @ slopes)) <= ROUNDING * scale, "the gap must be that of the mixture returned"
    assert value(t, gram, c) >= value(start, gram, c) - ROUNDING * scale, "it must not get worse"
    return t, gap


def independent_optimum(planes, c):
    """Return (from below, from above) the largest value, by CLARABEL on the scaled problem with the factor V of V V'."""
    scale = scale_of(planes @ planes.T, c)
    t = cp.Variable(len(c), nonneg=True)
    square = cp.sum_squares((planes / np.sqrt(scale)).T @ t)
    task = cp.Problem(cp.Maximize((c / scale) @ t - 0.5 * square), [cp.sum(t) == 1])
    task.solve(solver=cp.CLARABEL, tol_gap_abs=1e-12, tol_gap_rel=1e-12, tol_feas=1e-12)
    mixture = np.maximum(t.value, 0.0)
    mixture /= mixture.sum()
    best = c @ mixture - 0.5 * ((planes.T @ mixture) ** 2).sum()
    assert abs(best - scale * task.value) <= 1e-10 * scale, "the reference must be good enough to compare with"
    return best


def gaussian(k, p, seed=0):
    rng = np.random.default_rng([seed, k, p])
    return rng.standard_normal((k, p)), rng.standard_normal(k)


def below_a_risk(k, p, seed=0):
    """Return planes that touch one convex function, as a solver collects them: many matter, and they are nearly dependent."""
    rng = np.random.default_rng([seed, k, p])
    points = rng.standard_normal((k, p)) * np.logspace(0, -3, k)[:, None]
    slopes = np.tanh(points) + 0.2 * points  # gradient of sum log cosh + |.|^2 / 10
    heights = np.log(np.cosh(points)).sum(axis=1) + 0.1 * (points**2).sum(axis=1)
    return slopes, heights - (slopes * points).sum(axis=1)


def changed(planes, c, **changes):
    planes, c = planes.copy(), c.copy()
    for place, row in changes.get("rows", {}).items():
        planes[place] = row
    for place, constant in changes.get("constants", {}).items():
        c[place] = constant
    return planes, c


V, C = gaussian(12, 5)
PARALLEL = V[0] + 1e-7 * V
PROBLEMS = {
    "one plane": gaussian(1, 3),
    "one plane, one feature": gaussian(1, 1),
    "two planes": gaussian(2, 3),
    "two planes, one feature": gaussian(2, 1),
    "sixty planes": gaussian(60, 80),
    "sixty planes of rank 10": gaussian(60, 10),
    "sixty planes of rank 1": gaussian(60, 1),
    "sixty tangents": below_a_risk(60, 6),
    "two planes twice": changed(V, C, rows={3: V[7], 4: V[8]}),
    "two planes twice, with their constants": changed(V, C, rows={3: V[7], 4: V[8]}, constants={3: C[7], 4: C[8]}),
    "a zero plane": changed(V, C, rows={0: 0 * V[0]}, constants={0: 0.0}),
    "three zero planes": changed(V, C, rows={0: 0 * V[0], 5: 0 * V[0], 6: 0 * V[0]}),
    "zero planes only": (0 * V, C),
    "zero planes with one constant": (0 * V, np.ones(12)),
    "all planes equal": (np.tile(V[0], (12, 1)), C),
    "all planes and constants equal": (np.tile(V[0], (12, 1)), np.full(12, 0.3)),
    "constants equal": (V, np.full(12, 0.3)),
    "constants zero": (V, np.zeros(12)),
    "constants huge": (V, 1e6 * C),
    "slopes small": (1e-4 * V, C),
    "slopes large": (1e4 * V, C),
    "all small": (1e-4 * V, 1e-8 * C),
    "all large": (1e4 * V, 1e8 * C),
    "nearly parallel": (PARALLEL, C),
    "nearly parallel, constants as near": (PARALLEL, 0.3 + 1e-7 * C),
    "nearly parallel, constants nearer": (PARALLEL, 0.3 + 1e-14 * C),
    "opposite": (np.concatenate([V, -V]), np.concatenate([C, C])),
    "whole numbers": (np.round(2 * V), np.round(2 * C)),
}  # fmt: skip


@functools.cache
def reference(name):
    return independent_optimum(*PROBLEMS[name])


def starts(k, seed=0):
    """Return every vertex, the middle, random mixtures of all planes and of some."""
    rng = np.random.default_rng(seed)
    yield from np.eye(k)
    yield np.full(k, 1.0 / k)
    for share in (1.0, 1.0, 0.5, 0.5, 0.2):
        t = rng.exponential(size=k) * (rng.random(k) < share)
        t[rng.integers(k)] += 0.1
        yield t / t.sum()


@for_each("name", PROBLEMS)
def test_the_value_is_that_of_an_interior_point_solver_from_every_start(name):
    planes, c = PROBLEMS[name]
    gram = planes @ planes.T
    scale, best = scale_of(gram, c), reference(name)
    for start in starts(len(c)):
        t, gap = solve(gram, c, start)
        # 1e-9 of the scale: CLARABEL's 1e-12 on well-conditioned problems, with room for the others.
        assert abs(value(t, gram, c) - best) <= 1e-9 * scale
        assert best - value(t, gram, c) <= gap + ROUNDING * scale, "the gap must bound what is left to gain"
        assert gap <= SMALL * scale, "it must not stop before that"


@for_each("factor", [1e-8, 1e8])
@for_each("name", ["two planes", "sixty planes", "sixty planes of rank 10", "a zero plane"])
def test_a_gram_of_another_size(name, factor):
    planes, c = PROBLEMS[name]
    planes = np.sqrt(factor) * planes
    gram = planes @ planes.T
    best = independent_optimum(planes, c)
    for start in (vertex(len(c), 0), vertex(len(c), len(c) - 1), np.full(len(c), 1.0 / len(c))):
        t, gap = solve(gram, c, start)
        assert abs(value(t, gram, c) - best) <= 1e-9 * scale_of(gram, c)  # as above
        assert gap <= SMALL * scale_of(gram, c)


def test_the_size_of_the_problem_does_not_matter():
    """All numbers times a power of two: every step is the same, to the last bit."""
    planes, c = PROBLEMS["sixty planes of rank 10"]
    gram = planes @ planes.T
    plain, gap = solve(gram, c, vertex(60, 3))
    for power in (-40, 40):
        t, other = solve(np.ldexp(gram, power), np.ldexp(c, power), vertex(60, 3))
        assert np.array_equal(t, plain)
        assert other == np.ldexp(gap, power)


@pytest.mark.slow
@for_each(("kind", "p"), [(gaussian, 40), (below_a_risk, 40)])
def test_a_thousand_planes(kind, p):
    planes, c = kind(1000, p)
    gram = planes @ planes.T
    scale, best = scale_of(gram, c), independent_optimum(planes, c)
    for start in (vertex(1000, 17), np.full(1000, 1e-3)):
        t, gap = solve(gram, c, start)
        assert abs(value(t, gram, c) - best) <= 1e-9 * scale  # as above
        assert gap <= SMALL * scale


def test_planes_that_come_one_by_one_from_the_mixture_before():
    """What a solver does: the factor is made again for each, and the optimum must be found each time."""
    planes, c = below_a_risk(80, 7, seed=3)
    weights = np.array([1.0])
    last = -np.inf
    for k in range(1, 81):
        gram = planes[:k] @ planes[:k].T
        t, gap = solve(gram, c[:k], weights)
        assert gap <= SMALL * scale_of(gram, c[:k])
        assert value(t, gram, c[:k]) >= last - ROUNDING * scale_of(gram, c[:k]), "one more plane is never worse"
        last = value(t, gram, c[:k])
        weights = np.append(t, 0.0)
    assert abs(last - independent_optimum(planes, c)) <= 1e-9 * scale_of(planes @ planes.T, c)  # as above


@for_each("changes", [0, 1, 2, 5, 10])
def test_a_run_cut_short_says_what_is_left(changes):
    planes, c = PROBLEMS["sixty planes of rank 10"]
    gram = planes @ planes.T
    best = reference("sixty planes of rank 10")
    t, gap = solve(gram, c, vertex(60, 0), changes)
    assert gap > SMALL * scale_of(gram, c), "choose a problem that needs more changes"
    assert best - value(t, gram, c) <= gap
    further, _ = solve(gram, c, t)
    assert abs(value(further, gram, c) - best) <= 1e-9 * scale_of(gram, c)  # as above


def test_the_optimum_is_left_alone():
    for name in ("two planes", "sixty planes of rank 10", "sixty tangents", "a zero plane"):
        planes, c = PROBLEMS[name]
        gram = planes @ planes.T
        t, _ = solve(gram, c, vertex(len(c), 0))
        again, _ = solve(gram, c, t)
        assert abs(value(again, gram, c) - value(t, gram, c)) <= ROUNDING * scale_of(gram, c)
        np.testing.assert_allclose(
            planes.T @ again, planes.T @ t, atol=1e-7
        )  # sqrt(ROUNDING): the point of the mixture


def test_two_planes_by_hand():
    # max over s of c0 (1 - s) + c1 s - |v0 (1 - s) + v1 s|^2 / 2 with v0 = 1, v1 = -2: s = (c1 - c0 + 3) / 9.
    gram = np.array([[1.0, -2.0], [-2.0, 4.0]])
    for lead, share in ((0.0, 1 / 3), (3.0, 2 / 3), (-3.0, 0.0), (-4.0, 0.0), (6.0, 1.0), (9.0, 1.0)):
        for start in np.eye(2):
            t, _ = solve(gram, np.array([5.0, 5.0 + lead]), start)
            # One division of numbers of size 10, of which 3 to 15 are left.
            np.testing.assert_allclose(t, [1.0 - share, share], atol=1e-14)


def test_nearly_parallel_planes_of_large_slope_by_hand():
    # One feature, slopes 1000 and 1000 (1 - 1e-7): moving all weight to the second costs 0.07 and gains 0.1.
    planes, c = np.array([[1000.0], [1000.0 * (1 - 1e-7)]]), np.array([0.0, -0.07])
    for constants, best in ((c, 1), (c[::-1].copy(), 1), (np.array([0.0, -0.13]), 0)):
        for start in (*np.eye(2), np.array([0.5, 0.5])):
            t, gap = solve(planes @ planes.T, constants, start)
            assert gap <= SMALL * 1e6
            assert t[best] == pytest.approx(1.0, abs=1e-6)


def test_nothing_is_left_but_rounding_where_less_than_that_is_asked_for():
    """With a tolerance of 0 it ends where rounding does not let it go on, and as near."""
    rng = np.random.default_rng(5)
    for _ in range(300):
        k, p = int(rng.integers(2, 7)), int(rng.integers(1, 4))
        planes, c = rng.integers(-2, 3, (k, p)) / 3.0, rng.integers(-3, 4, k) / 7.0
        gram = planes @ planes.T
        t = rng.integers(0, 3, k).astype(float)
        t[rng.integers(k)] += 1.0
        t /= t.sum()
        maximise(gram, c, t, 0.0, 20 * k + 100)
        slopes = c - gram @ t
        assert t.min() >= 0.0
        assert abs(t.sum() - 1.0) <= 1e-12
        assert slopes.max() - t @ slopes <= SMALL * max(1.0, scale_of(gram, c))


def over_all_supports(gram, c):
    """Return the largest value, by the equations of every support: equal slopes, weights that sum to 1."""
    k, best = len(c), -np.inf
    for size in range(1, k + 1):
        for support in itertools.combinations(range(k), size):
            rows = np.array(support)
            system = np.ones((size + 1, size + 1))
            system[:size, :size], system[size, size] = gram[np.ix_(rows, rows)], 0.0
            solution = np.linalg.lstsq(system, np.append(c[rows], 1.0), rcond=None)[0][:size]
            if solution.min() < -1e-9 or not solution.sum() > 0.5:
                continue
            t = np.zeros(k)
            t[rows] = np.maximum(solution, 0.0)
            best = max(best, value(t / t.sum(), gram, c))
    return best


@st.composite
def small_problems(draw):
    k, p = draw(st.integers(1, 6)), draw(st.integers(1, 4))
    size = draw(st.sampled_from([1e-3, 1.0, 1e3]))
    number = st.one_of(st.integers(-3, 3).map(float), st.floats(-3, 3, width=16))
    planes = np.array(draw(st.lists(st.lists(number, min_size=p, max_size=p), min_size=k, max_size=k)))
    c = np.array(draw(st.lists(number, min_size=k, max_size=k)))
    start = np.array(draw(st.lists(st.integers(0, 3), min_size=k, max_size=k)), dtype=float)
    start[draw(st.integers(0, k - 1))] += 1.0
    return size * planes, c, start / start.sum()


@examples(400)
@given(small_problems())
def test_no_support_is_better(problem):
    planes, c, start = problem
    gram = planes @ planes.T
    scale = max(scale_of(gram, c), 1e-300)
    t, gap = solve(gram, c, start)
    assert gap <= SMALL * scale
    # lstsq on singular systems: rounding times the condition of what it does not cut off, 1e-9 covers small integers.
    assert abs(value(t, gram, c) - over_all_supports(gram, c)) <= 1e-9 * scale


@for_each("seed", range(1 if TIER == "quick" else 6))
def test_many_small_problems_end_at_their_optimum(seed):
    """Two hundred each of many shapes: rounding meets every branch sooner or later."""
    rng = np.random.default_rng(seed)
    for trial in range(200):
        k, p = int(rng.integers(1, 9)), int(rng.integers(1, 6))
        planes = rng.standard_normal((k, p)) * 10.0 ** rng.uniform(-3, 3)
        c = rng.standard_normal(k) * 10.0 ** rng.uniform(-3, 3)
        kind = trial % 7
        if kind == 1:
            planes, c = np.round(planes), np.round(c)
        elif kind == 2:
            planes[rng.integers(k)] = planes[rng.integers(k)]
        elif kind == 3:
            planes = planes[0] + 1e-7 * planes
        elif kind == 4:
            planes[:] = planes[0]
        elif kind == 5:
            c[:] = c[0]
        elif kind == 6:
            planes[rng.integers(k)] = 0.0
        gram = planes @ planes.T
        start = vertex(k, rng.integers(k))
        if trial % 3 == 0:
            start = rng.exponential(size=k) * (rng.random(k) < 0.6)
            start[rng.integers(k)] += 0.1
            start /= start.sum()
        _, gap = solve(gram, c, start)
        assert gap <= SMALL * scale_of(gram, c)


@for_each("tiny", [2.0**-24, 1e-7, 1e-6, 3e-9])
def test_planes_that_are_nearly_dependent(tiny):
    """Rounding moves the sum of the weights by 1e-9 there: the gap must be that of the weights after they were put right."""
    planes = np.array([[-1.0, 0.0, 0.0, 0.0], [-1.0, -1.0, tiny, 0.0], [-1.0, 2.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0]])
    gram, c = planes @ planes.T, np.array([0.0, 0.0, 1.0, 0.0])
    _, gap = solve(gram, c, vertex(4, 0))
    assert gap <= SMALL * scale_of(gram, c)
