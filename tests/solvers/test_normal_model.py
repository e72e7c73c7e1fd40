"""The model of normal scores: derivatives, closed forms against many searches, cuts against grids, Monte Carlo."""

import math

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import ndtr

from cases import for_each, seeds
from scoreline.solvers.normal_model import (
    Penalised,
    Projected,
    Term,
    best_error_direction,
    best_intercept,
    best_ranking_direction,
    error,
    paper_start,
    ranking_error,
    ratio_cdf,
)

SEEDS = seeds(30)


def covariance(rng, d, spread=1.0):
    """Return a random covariance with eigenvalues over about `spread` decades."""
    Q = np.linalg.qr(rng.standard_normal((d, d)))[0]
    return (Q * 10.0 ** (spread * rng.uniform(-0.5, 0.5, d))) @ Q.T


def problem(seed, d=3, spread=1.0):
    """Return means, covariances and the share of positives, from .02 to .97."""
    rng = np.random.default_rng(seed)
    mean = rng.standard_normal(d) * rng.choice([0.3, 1.0, 2.0])
    return (
        mean,
        0.3 * rng.standard_normal(d),
        covariance(rng, d, spread),
        covariance(rng, d, spread),
        rng.uniform(0.02, 0.97),
    )


def projected(w, mean_positive, mean_negative, positive, negative):
    return Projected(
        float(w @ mean_positive), float(w @ mean_negative), math.sqrt(w @ positive @ w), math.sqrt(w @ negative @ w)
    )


def literal_error(x, mean_positive, mean_negative, positive, negative, prior):
    """Return F_n01 of x = (w, b) as the docstring writes it."""
    w, b = x[:-1], x[-1]
    missed = ndtr(-(mean_positive @ w + b) / math.sqrt(w @ positive @ w))
    return prior * missed + (1.0 - prior) * ndtr((mean_negative @ w + b) / math.sqrt(w @ negative @ w))


# ---- derivatives


def random_functions(seed):
    """Return a Term and a Penalised sum of two, with a point."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 7))
    terms = [(rng.uniform(0.1, 1.0), Term(rng.standard_normal(d), covariance(rng, d))) for _ in range(2)]
    return [terms[0][1], Penalised(terms, rng.uniform(1e-3, 1.0))], rng.standard_normal(d)


@for_each("seed", SEEDS)
def test_gradients_are_finite_differences(seed):
    functions, w = random_functions(seed)
    w /= np.linalg.norm(w)
    step = 1e-5 * np.eye(len(w))
    for function in functions:
        grad = function.value_grad(w)[1]
        numeric = [(function.value_grad(w + e)[0] - function.value_grad(w - e)[0]) / 2e-5 for e in step]
        # Central differences: third derivatives of size 100 at most times 1e-10 / 6, and roundings of 1e-16 over 1e-5.
        np.testing.assert_allclose(grad, numeric, rtol=0, atol=1e-8)
        if isinstance(function, Term):
            assert grad @ w == pytest.approx(0.0, abs=1e-14)  # T does not change along w


def test_ratio_cdf():
    assert ratio_cdf(1.0, 2.0) == pytest.approx(float(ndtr(0.5)), abs=0.0)
    assert (ratio_cdf(3.0, 0.0), ratio_cdf(-3.0, 0.0), ratio_cdf(0.0, 0.0)) == (1.0, 0.0, 0.5)
    assert ratio_cdf(-0.0, 0.0) == 0.5
    assert ratio_cdf(1e-300, 0.0) == 1.0
    assert (ratio_cdf(math.inf, 1.0), ratio_cdf(-math.inf, 1.0)) == (1.0, 0.0)
    assert (ratio_cdf(math.inf, 0.0), ratio_cdf(-math.inf, 0.0)) == (1.0, 0.0)


# ---- the best direction for ranking


@for_each("seed", seeds(5))
def test_no_direction_ranks_better_than_the_closed_form(seed):
    rng = np.random.default_rng(seed)
    mean_positive, mean_negative, positive, negative, _ = problem(seed, d=4)
    delta, S = mean_positive - mean_negative, positive + negative

    def value(w):
        return ranking_error(projected(w, mean_positive, mean_negative, positive, negative))

    w = best_ranking_direction(delta, S)
    np.testing.assert_allclose(S @ w, delta, rtol=0, atol=1e-12)  # a system of condition 10 to 100
    best = value(w)
    assert best == pytest.approx(float(ndtr(-math.sqrt(delta @ np.linalg.solve(S, delta)))), rel=1e-10)
    term = Term(-delta, S)
    starts = rng.standard_normal((40, 4))
    found = [minimize(term.value_grad, start, jac=True, method="BFGS").fun for start in starts]
    # The global minimum: nothing is below it but by rounding.
    assert min(found) >= best - 1e-13
    assert min(found) == pytest.approx(best, rel=1e-5)  # and the searches do arrive there
    assert min(value(v) for v in rng.standard_normal((2000, 4))) >= best - 1e-13


# ---- the best direction and intercept for the error


def searches(arguments, rng, starts=40):
    """Return the least F_n01 of BFGS runs from random starts; gradients by the class that the test above checks."""
    mean_positive, mean_negative, positive, negative, prior = arguments
    d = len(mean_positive)
    terms = [
        (prior, Term(-np.append(mean_positive, 1.0), np.pad(positive, (0, 1)))),
        (1.0 - prior, Term(np.append(mean_negative, 1.0), np.pad(negative, (0, 1)))),
    ]
    function = Penalised(terms, 0.0)
    found = []
    for scale in rng.choice([0.3, 1.0, 3.0], starts):
        x = np.append(rng.standard_normal(d), scale * rng.standard_normal())
        run = minimize(function.value_grad, x, jac=True, method="BFGS", options={"gtol": 1e-6, "maxiter": 100})
        found.append(literal_error(run.x, *arguments))
    return min(found)


def angle_weights(w, b, arguments):
    """Return (p, q) with (p S+ + q S-) w = delta: what the stationarity in w and b says of the optimum."""
    mean_positive, mean_negative, positive, negative, _ = arguments
    columns = np.column_stack([positive @ w, negative @ w])
    solution, *_ = np.linalg.lstsq(columns, mean_positive - mean_negative)
    return solution, np.linalg.norm(columns @ solution - (mean_positive - mean_negative))


@for_each("seed", seeds(20))
def test_no_search_finds_a_smaller_error(seed):
    arguments = problem(seed, spread=1.5)
    w, b, value = best_error_direction(*arguments)
    # At an infinite intercept every direction is as good.
    reached = error(projected(w, *arguments[:4]), b, arguments[-1])
    assert value == pytest.approx(reached, abs=1e-12)  # the same sums in the coordinates of the eigenvectors
    assert value <= min(arguments[-1], 1.0 - arguments[-1]) + 1e-15
    # BFGS stops at or above a minimum (a gradient of 1e-6 is 1e-11 above one); a global minimum is not beaten by more than
    # rounding.
    assert value <= searches(arguments, np.random.default_rng(seed)) + 1e-9


NEGATIVE = [  # one class is much wider in the direction of the other's narrow axis, and one class is rare
    (np.array([1.0, 0.3]), np.zeros(2), np.diag([1.0, 30.0]), np.diag([1.0, 0.5]), 0.3),
    (np.array([1.0, 0.3]), np.zeros(2), np.diag([1.0, 0.5]), np.diag([1.0, 30.0]), 0.7),
    (np.array([0.5, 0.2, -0.1]), np.zeros(3), np.diag([1.0, 40.0, 1.0]), np.diag([1.0, 0.2, 2.0]), 0.5),
    (np.array([0.3, 0.1]), np.zeros(2), np.diag([4.0, 25.0]), np.diag([1.0, 1.0]), 0.5),
]


@for_each("k", range(len(NEGATIVE)))
def test_optima_with_a_negative_angle_weight(k):
    arguments = NEGATIVE[k]
    w, b, value = best_error_direction(*arguments)
    weights, rest = angle_weights(w, b, arguments)
    assert weights.min() < 0.0 < weights.max(), "this test is about weights of both signs"
    assert rest <= 1e-5 * np.linalg.norm(arguments[0])  # stationary: an angle known to the root of a rounding
    assert value <= searches(arguments, np.random.default_rng(k)) + 1e-9


HARD = {  # the means do not differ along the axis that tells the classes apart: the matrix is singular at the optimum
    "orthogonal": (np.array([0.1, 0.0]), np.zeros(2), np.diag([1.0, 100.0]), np.eye(2), 0.5),
    "nearly": (np.array([0.1, 1e-10]), np.zeros(2), np.diag([1.0, 100.0]), np.eye(2), 0.5),
    "equal_means": (np.zeros(2), np.zeros(2), np.diag([1.0, 100.0]), np.eye(2), 0.5),
}


@for_each("name", HARD)
def test_the_hard_case(name):
    """A wide and a narrow class with one mean: cutting the wide one off on one side beats the difference of the means."""
    arguments = HARD[name]
    along = projected(np.array([0.0, 1.0]), *arguments[:4])
    there = error(along, best_intercept(along, 0.5), 0.5)
    assert there == pytest.approx(0.3004, abs=1e-4)  # by hand
    _, _, value = best_error_direction(*arguments)
    assert value <= there + 1e-9  # as above


@for_each("seed", seeds(5))
def test_equal_covariances_give_fisher(seed):
    rng = np.random.default_rng(seed)
    S, a, b = covariance(rng, 5), rng.standard_normal(5), rng.standard_normal(5)
    w, intercept, value = best_error_direction(a, b, S, S, 0.5)
    fisher = np.linalg.solve(S, a - b)
    cosine = w @ fisher / (np.linalg.norm(w) * np.linalg.norm(fisher))
    assert cosine == pytest.approx(1.0, abs=1e-10)  # an angle known to 1e-5
    assert intercept == pytest.approx(-0.5 * w @ (a + b), abs=1e-6 * np.linalg.norm(w))
    assert value == pytest.approx(float(ndtr(-0.5 * math.sqrt((a - b) @ fisher))), abs=1e-12)


# ---- the best intercept


@for_each("seed", SEEDS)
def test_the_intercept_against_a_fine_grid(seed):
    rng = np.random.default_rng(seed)
    scores = Projected(*rng.standard_normal(2), *10.0 ** rng.uniform(-1.0, 1.0, 2))
    prior = rng.uniform(0.02, 0.97)
    b = best_intercept(scores, prior)
    grid = np.linspace(-60.0, 60.0, 120001)
    values = prior * ndtr(-(scores.mean_positive + grid) / scores.std_positive)
    values += (1.0 - prior) * ndtr((scores.mean_negative + grid) / scores.std_negative)
    assert error(scores, b, prior) <= values.min() + 1e-15
    # A grid of 1e-3 misses a minimum of curvature below 10 by 1e-5 at most.
    assert error(scores, b, prior) >= min(values.min(), prior, 1.0 - prior) - 1e-5


def test_intercepts_at_infinity():
    # The wide class is common: no threshold is worth it.
    assert best_intercept(Projected(0.0, 0.0, 1.0, 2.0), 0.05) == -math.inf
    assert best_intercept(Projected(0.0, 0.0, 2.0, 1.0), 0.95) == math.inf
    assert best_intercept(Projected(-1.0, 1.0, 1.0, 1.0), 0.3) == -math.inf
    assert best_intercept(Projected(-1.0, 1.0, 1.0, 1.0), 0.7) == math.inf
    assert error(Projected(0.0, 0.0, 1.0, 2.0), -math.inf, 0.05) == 0.05
    assert error(Projected(0.0, 0.0, 1.0, 2.0), math.inf, 0.05) == pytest.approx(0.95, abs=1e-15)


@for_each("middle", [0.0, 1e3, -1e6, 1e9])
def test_the_intercept_far_from_zero(middle):
    scores = Projected(1.0, -0.5, 0.7, 1.3)
    shifted = Projected(1.0 + middle, -0.5 + middle, 0.7, 1.3)
    # Means of this size have that many digits left.
    assert best_intercept(shifted, 0.3) + middle == pytest.approx(
        best_intercept(scores, 0.3), abs=1e-14 + 4e-16 * abs(middle)
    )


@for_each("middle", [0.0, 1.0, 1e3, 1e6])
@for_each("stds", [(0.0, 1.0), (1.0, 0.0), (0.0, 0.0)])
def test_the_intercept_where_a_class_is_one_point(stds, middle):
    """The point is on its own side of the threshold, however far from 0 the scores are."""
    scores = Projected(3.0 + middle, middle, *stds)
    for prior in (0.01, 0.3, 0.5):
        b = best_intercept(scores, prior)
        # At 3 deviations the best error is that of cutting just next to the point, or anywhere between two points.
        assert error(scores, b, prior) <= max(prior, 1.0 - prior) * float(ndtr(-3.0)) * 1.01


# ---- the paper's procedure


@for_each("seed", seeds(10))
def test_the_penalty_sets_the_length_and_leaves_the_direction(seed):
    mean_positive, mean_negative, positive, negative, _ = problem(seed, d=4)
    delta, S = mean_positive - mean_negative, positive + negative
    function = Penalised([(1.0, Term(-delta, S))], 1e-3)
    start = paper_start(mean_positive, mean_negative)
    options = {"gtol": 1e-12, "ftol": 0.0, "maxiter": 5000}
    w = minimize(function.value_grad, start, jac=True, method="L-BFGS-B", options=options).x
    # The gradient of 1e-10 or so that the line search can reach, over a curvature of 8e-3 along w.
    assert np.linalg.norm(w) == pytest.approx(1.0, abs=1e-6)
    best = best_ranking_direction(delta, S)
    cosine = w @ best / np.linalg.norm(best)
    assert cosine == pytest.approx(1.0, abs=1e-6)


@for_each("seed", SEEDS)
def test_the_paper_starts_at_no_worse_than_chance(seed):
    mean_positive, mean_negative, positive, negative, _ = problem(seed, d=4)
    w = paper_start(mean_positive, mean_negative)
    assert np.linalg.norm(w) == pytest.approx(1.0, abs=1e-14)
    assert w @ mean_negative == pytest.approx(0.0, abs=1e-13)  # orthogonal to mu-, so mu+ is ahead
    assert ranking_error(projected(w, mean_positive, mean_negative, positive, negative)) <= 0.5


def test_the_paper_start_in_special_cases():
    e = np.array([3.0, 4.0])
    np.testing.assert_allclose(paper_start(e, np.zeros(2)), e / 5.0, rtol=1e-15)  # mu- = 0: mu+
    np.testing.assert_allclose(paper_start(2.0 * e, e), e / 5.0, rtol=1e-15)  # collinear: the difference
    np.testing.assert_allclose(paper_start(0.5 * e, e), -e / 5.0, rtol=1e-15)
    np.testing.assert_allclose(paper_start(np.zeros(2), e), -e / 5.0, rtol=1e-15)
    for means in ((2.0 * e, e), (0.5 * e, e), (np.zeros(2), e), (-e, e)):
        assert (means[0] - means[1]) @ paper_start(*means) > 0.0, "positives are ahead"
    assert np.linalg.norm(paper_start(e, e)) == pytest.approx(1.0, abs=1e-15)  # equal means: anything of length 1


# ---- Monte Carlo


@for_each("seed", seeds(3))
def test_the_model_is_what_normal_rows_do(seed):
    mean_positive, mean_negative, positive, negative, prior = arguments = problem(seed)
    rng = np.random.default_rng(100 + seed)
    n = 200_000
    a = rng.multivariate_normal(mean_positive, positive, n)
    b = rng.multivariate_normal(mean_negative, negative, n)
    w = best_ranking_direction(mean_positive - mean_negative, positive + negative)
    ranked = np.mean(a @ w < b @ w)  # independent pairs
    expected = ranking_error(projected(w, *arguments[:4]))
    # Four standard errors of a share of n pairs.
    assert ranked == pytest.approx(expected, abs=4.0 * math.sqrt(expected * (1.0 - expected) / n))
    v, intercept, value = best_error_direction(*arguments)
    missed, alarms = np.mean(a @ v + intercept <= 0.0), np.mean(b @ v + intercept > 0.0)
    spread = math.sqrt((prior**2 * missed * (1.0 - missed) + (1.0 - prior) ** 2 * alarms * (1.0 - alarms)) / n)
    assert prior * missed + (1.0 - prior) * alarms == pytest.approx(value, abs=4.0 * spread + 1e-12)
