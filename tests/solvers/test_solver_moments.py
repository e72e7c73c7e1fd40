"""solver="moments": the closed form by NumPy, conjugate gradients next to it, and data that covariances do not like."""

import math

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize
from scipy.special import ndtr
from scipy.stats import norm

from cases import crossed, for_each
from scoreline.measures import all_measures, get_measure
from scoreline.operators import InterceptOperator, ScaledOperator, as_operator
from scoreline.operators.moments import ClassMoments, Moments
from scoreline.risks.registry import all_risks
from scoreline.solvers import MomentsSolver, Solver
from scoreline.solvers.common.method import Method
from scoreline.solvers.moments import (
    LEAST_RIDGE,
    BothClasses,
    ImplicitCovariance,
    OneClass,
    effective_rows,
    shrinkage,
)
from scoreline.solvers.registry import all_solvers, get_solver

MEASURES = ["roc_auc", "accuracy", "balanced_accuracy"]
PLAIN = (1.0, 1.0)


def make_data(n=300, p=5, seed=0, share=0.4):
    rng = np.random.default_rng(seed)
    sign = np.where(rng.random(n) < share, 1, -1)
    sign[:4] = 1, 1, -1, -1
    X = rng.standard_normal((n, p)) @ (np.eye(p) + 0.3 * rng.standard_normal((p, p)))
    X[sign > 0] = 1.3 * X[sign > 0] + np.linspace(1.0, -0.5, p)
    return X, sign


def trained(X, sign, measure="roc_auc", weight=None, weights=PLAIN, **options):
    return MomentsSolver(**options).train(as_operator(X), sign, weight, measure, weights)


def pieces(X, sign, weight=None):
    """Return means and covariances of the positive and the negative rows by NumPy; weights are counts."""
    s = np.ones(len(sign), dtype=int) if weight is None else weight.astype(int)
    rows = [X[sign == side] for side in (1, -1)]
    counts = [s[sign == side] for side in (1, -1)]
    means = [np.average(r, axis=0, weights=c) for r, c in zip(rows, counts, strict=True)]
    return *means, *(np.atleast_2d(np.cov(r.T, fweights=c)) for r, c in zip(rows, counts, strict=True))


def cosine(a, b):
    return float(a @ b / (np.linalg.norm(a) * np.linalg.norm(b)))


def aligned(a, b, rtol):
    """Compare directions: both of length 1."""
    np.testing.assert_allclose(a / np.linalg.norm(a), b / np.linalg.norm(b), rtol=0, atol=rtol)


# ---- the closed form


@for_each("weighted", [False, True])
@for_each("ridge", [0.0, 0.3, 100.0])
def test_auc_is_the_closed_form(ridge, weighted):
    X, sign = make_data()
    weight = np.random.default_rng(1).integers(0, 4, len(sign)).astype(float) if weighted else None
    got = trained(X, sign, weight=weight, ridge=ridge)
    a, b, plus, minus = pieces(X, sign, weight)
    w = np.linalg.solve(plus + minus + ridge * np.eye(5), a - b)
    w /= math.sqrt(0.5 * (w @ plus @ w + w @ minus @ w))
    # Sums of 300 rows in another order, times a condition of about 100.
    np.testing.assert_allclose(got.w, w, rtol=0, atol=1e-11 * np.abs(w).max())
    assert got.ridge == ridge
    assert got.n_iter == 1
    values = (a @ w, b @ w, math.sqrt(w @ plus @ w), math.sqrt(w @ minus @ w))
    np.testing.assert_allclose(got.scores, values, rtol=1e-10)
    assert got.predicted == pytest.approx(float(ndtr((values[0] - values[1]) / math.hypot(*values[2:]))), rel=1e-10)
    # The threshold of a ranking is the balanced one: where the densities cross.
    high, low = (norm.pdf(-got.intercept, values[k], values[k + 2]) for k in (0, 1))
    assert high == pytest.approx(low, rel=1e-8)  # a root of a quadratic


@for_each("weights", [PLAIN, (4.0, 1.0)])
@for_each("measure", ["accuracy", "balanced_accuracy"])
def test_accuracy_is_not_beaten_by_searches(measure, weights):
    X, sign = make_data(seed=2)
    got = trained(X, sign, measure, weights=weights, ridge=0.0)
    a, b, plus, minus = pieces(X, sign)
    n = (sign > 0).sum() * weights[0], (sign < 0).sum() * weights[1]
    prior = 0.5 if measure == "balanced_accuracy" else n[0] / sum(n)

    def error(x):
        w, c = x[:-1], x[-1]
        missed = ndtr(-(a @ w + c) / math.sqrt(w @ plus @ w))
        return prior * missed + (1.0 - prior) * ndtr((b @ w + c) / math.sqrt(w @ minus @ w))

    assert got.predicted == pytest.approx(1.0 - error(np.append(got.w, got.intercept)), abs=1e-10)  # sums of 300 rows
    starts = np.random.default_rng(0).standard_normal((10, 6))
    best = min(minimize(error, start, method="BFGS").fun for start in starts)
    # Without a ridge 1e-10 of the variances is added all the same, which moves the error by less than that.
    assert 1.0 - got.predicted <= best + 1e-9


def test_the_ridge_is_absolute_if_given_and_relative_if_automatic():
    X, sign = make_data()
    scale = 10.0 ** np.arange(-2, 3)
    aligned(trained(X * scale, sign).w * scale, trained(X, sign).w, 1e-10)  # free of scale; rounding
    assert cosine(trained(X * scale, sign, ridge=1.0).w * scale, trained(X, sign, ridge=1.0).w) < 0.99
    got = trained(X, sign)
    a, b, plus, minus = pieces(X, sign)
    both = plus + minus
    aligned(got.w, np.linalg.solve(both + got.ridge * np.diag(np.diag(both)), a - b), 1e-11)


def test_the_automatic_ridge_is_oracle_approximating_shrinkage():
    """By the formula of Chen et al. on the correlations, with the rows that make one covariance as certain."""
    X, sign = make_data()
    _, _, plus, minus = pieces(X, sign)
    both = plus + minus
    d = np.sqrt(np.diag(both))
    R = both / np.outer(d, d)
    n, p = ((sign > 0).sum(), (sign < 0).sum()), 5
    shares = [np.mean(np.diag(plus) / d**2), np.mean(np.diag(minus) / d**2)]
    rows = 1.0 / sum(share**2 / (m - 1) for share, m in zip(shares, n, strict=True))
    t1, t2 = np.trace(R @ R), np.trace(R) ** 2
    rho = min(1.0, ((1 - 2 / p) * t1 + t2) / ((rows + 1 - 2 / p) * (t1 - t2 / p)))
    assert trained(X, sign).ridge == pytest.approx(rho / (1.0 - rho), rel=1e-9)  # sums of 25 squares


def test_moments_alone_are_enough():
    X, sign = make_data()
    moments = as_operator(X).class_moments(sign)
    before = moments.record()
    for measure in MEASURES:
        got = MomentsSolver().from_moments(moments, measure, PLAIN)
        assert np.array_equal(got.w, trained(X, sign, measure).w)
    assert np.array_equal(before["positive"]["scatter"], moments.positive.scatter), "the moments were changed"


# ---- the paper's procedure


@for_each("measure", MEASURES)
@for_each("seed", range(2))
def test_the_papers_procedure_arrives_at_the_same_value(measure, seed):
    X, sign = make_data(seed=seed)
    exact, paper = (trained(X, sign, measure, method=method) for method in ("exact", "paper"))
    # It stops at a gradient of 1e-4, which the paper took for standardised columns as these.
    assert paper.predicted == pytest.approx(exact.predicted, abs=1e-3)
    assert paper.n_iter > 1
    assert cosine(paper.w, exact.w) > 0.99
    if measure == "roc_auc":
        free = [trained(X, sign, method=method, ridge=0.0).predicted for method in ("exact", "paper")]
        assert free[1] <= free[0] + 1e-12, "the closed form is the maximum"


# ---- without covariances


@pytest.fixture
def implicit(monkeypatch):
    """Let covariances be written down for two columns at most."""
    monkeypatch.setattr("scoreline.solvers.moments.EXPLICIT", 2)


STORAGES = {"dense": np.asarray, "csr": sp.csr_array, "csc": sp.csc_array}


def both_ways(X, sign, monkeypatch, **options):
    explicit = trained(X, sign, **options)
    monkeypatch.setattr("scoreline.solvers.moments.EXPLICIT", 2)
    return explicit, trained(X, sign, **options)


def check_both_ways(explicit, implicit, rtol=1e-5):
    """Conjugate gradients stop at 1e-6 of the right-hand side, and the condition with a ridge of 0.3 is about 10."""
    assert implicit.n_iter > 1
    np.testing.assert_allclose(implicit.w, explicit.w, rtol=0, atol=rtol * np.abs(explicit.w).max())
    assert implicit.ridge == explicit.ridge
    assert implicit.predicted == pytest.approx(explicit.predicted, abs=rtol)
    spread = abs(explicit.scores.mean_positive - explicit.scores.mean_negative)
    assert implicit.intercept == pytest.approx(explicit.intercept, abs=rtol * (abs(explicit.intercept) + spread))


@for_each("weighted", [False, True])
@for_each("name", STORAGES)
def test_conjugate_gradients_give_the_closed_form(name, weighted, monkeypatch):
    X, sign = make_data(p=8)
    X[np.random.default_rng(2).random(X.shape) < 0.3] = 0.0
    weight = np.random.default_rng(1).integers(0, 4, len(sign)).astype(float) if weighted else None
    check_both_ways(*both_ways(STORAGES[name](X), sign, monkeypatch, weight=weight, ridge=0.3))


@for_each("weighted", [False, True])
@for_each("name", STORAGES)
def test_conjugate_gradients_far_from_zero(name, weighted, monkeypatch):
    X, sign = make_data(p=8)
    X += 1e6 * X.std(axis=0) * np.where(np.arange(8) % 2, -1.0, 1.0)
    weight = np.random.default_rng(1).integers(0, 4, len(sign)).astype(float) if weighted else None
    explicit, implicit = both_ways(STORAGES[name](X), sign, monkeypatch, weight=weight, ridge=0.3)
    # Scores of size 1e6 have 10 digits of a deviation.
    check_both_ways(explicit, implicit)
    aligned(explicit.w, trained(X - np.round(X.mean(axis=0)), sign, weight=weight, ridge=0.3).w, 1e-5)


def test_conjugate_gradients_under_wrappers(monkeypatch):
    X, sign = make_data(p=8)
    operator = ScaledOperator(as_operator(X), 1.0 / X.std(axis=0), X.mean(axis=0))
    check_both_ways(*both_ways(operator, sign, monkeypatch, ridge=0.3))


def test_conjugate_gradients_estimate_the_automatic_ridge(monkeypatch):
    p = 60
    X, sign = make_data(n=200, p=p, seed=3)
    explicit, implicit = both_ways(X, sign, monkeypatch)
    _, _, plus, minus = pieces(X, sign)
    d = np.diag(plus + minus)
    square = (plus + minus) @ ((plus + minus) / d[:, None])
    R2 = square / np.sqrt(np.outer(d, d))
    trace = np.trace(R2)
    # A probe of signs estimates tr R^2 with variance 2 (|R^2|^2 - that of its diagonal); eight of them, three errors.
    off = 3.0 * math.sqrt(2.0 * (np.sum(R2**2) - np.sum(np.diag(R2) ** 2)) / 8.0)
    shares = [float((np.diag(S) / d).mean()) for S in (plus, minus)]
    rows = effective_rows(shares, ((sign > 0).sum(), (sign < 0).sum()))
    assert explicit.ridge == pytest.approx(shrinkage(p, trace, p, rows), rel=1e-9)  # sums of 3600 squares
    low, high = shrinkage(p, trace + off, p, rows), shrinkage(p, max(trace - off, 1.01 * p), p, rows)
    assert low <= implicit.ridge <= high
    assert cosine(implicit.w, explicit.w) > 0.95  # another ridge by a factor of up to 3


@for_each("name", STORAGES)
def test_more_columns_than_rows_without_covariances(name, monkeypatch):
    X, sign = make_data(n=40, p=200, seed=4)
    check_both_ways(*both_ways(STORAGES[name](X), sign, monkeypatch, ridge=30.0))


def test_passes_of_conjugate_gradients(implicit):
    X, sign = make_data(p=8)
    operator = as_operator(X)
    got = MomentsSolver(ridge=0.3).train(operator, sign, None, "roc_auc", PLAIN)
    # Two means, two variances, two a step (and the first residual at most), one for the scores.
    assert operator.n_passes <= 5 + 2 * (got.n_iter + 1)
    stopped = MomentsSolver(ridge=0.3, max_iter=1).train(as_operator(X), sign, None, "roc_auc", PLAIN)
    assert stopped.n_iter == 1


@for_each("name", STORAGES)
def test_products_with_the_covariance_of_a_class(name):
    X, sign = make_data(p=8)
    X += 1e4 * np.where(np.arange(8) % 2, -1.0, 1.0)
    weight = np.random.default_rng(1).integers(0, 4, len(sign)).astype(float)
    *_, plus, minus = pieces(X, sign, weight)
    S, extra = ImplicitCovariance(as_operator(STORAGES[name](X)), sign, weight), np.linspace(0.0, 1.0, 8)
    for v in np.random.default_rng(2).standard_normal((2, 8)):
        for side, covariance in enumerate((plus, minus)):
            # Scores of size 1e4 have 12 digits of a deviation.
            np.testing.assert_allclose(S.product_of(v, side), covariance @ v, rtol=0, atol=1e-9)
            np.testing.assert_allclose(OneClass(S, side, extra) @ v, covariance @ v + extra * v, rtol=0, atol=1e-9)
        np.testing.assert_allclose(BothClasses(S, extra) @ v, (plus + minus) @ v + extra * v, rtol=0, atol=1e-9)


@for_each("measure, name, weighted", crossed(MEASURES, STORAGES, [False, True], strength=1))
def test_the_papers_procedure_needs_no_covariances(measure, name, weighted, monkeypatch):
    X, sign = make_data(p=8)
    X[np.random.default_rng(2).random(X.shape) < 0.3] = 0.0
    weight = np.random.default_rng(1).integers(0, 4, len(sign)).astype(float) if weighted else None
    explicit, implicit = both_ways(
        STORAGES[name](X), sign, monkeypatch, measure=measure, weight=weight, ridge=0.3, method="paper"
    )
    # The same steps by other sums: roundings grow over some twenty of them, and it stops at a gradient of 1e-4.
    assert implicit.predicted == pytest.approx(explicit.predicted, abs=1e-8)
    aligned(implicit.w, explicit.w, 1e-5)
    assert implicit.intercept == pytest.approx(explicit.intercept, abs=1e-4)
    assert implicit.n_iter == pytest.approx(explicit.n_iter, abs=1)


@for_each("weights, measure", [(PLAIN, "accuracy"), ((4.0, 1.0), "accuracy"), (PLAIN, "balanced_accuracy")])
def test_the_least_error_without_covariances(measure, weights, monkeypatch):
    for seed in range(3):
        X, sign = make_data(p=8, seed=seed)
        explicit, implicit = both_ways(X, sign, monkeypatch, measure=measure, weights=weights, ridge=0.3)
        # A local search against the global one: here they agree; a gradient of 1e-7 leaves the error alone.
        assert implicit.predicted == pytest.approx(explicit.predicted, abs=1e-6), seed
        aligned(implicit.w, explicit.w, 1e-3)
        monkeypatch.undo()


def test_passes_of_a_search_for_the_least_error(implicit):
    X, sign = make_data(p=8)
    operator = as_operator(X)
    got = MomentsSolver(ridge=0.3, method="paper").train(operator, sign, None, "accuracy", PLAIN)
    # Two means, two variances, one for the start and one for the scores, three for a gradient; a step takes two at most.
    assert operator.n_passes <= 6 + 3 * (2 * got.n_iter + 1)
    stopped = MomentsSolver(ridge=0.3, max_iter=1).train(as_operator(X), sign, None, "accuracy", PLAIN)
    assert not stopped.solved


@for_each("ridge", ["auto", 0.3])
def test_constant_columns_without_covariances(implicit, ridge):
    X, sign = make_data(p=6)
    wide = np.column_stack([X, np.zeros(len(X)), np.full(len(X), 0.1)])
    a, b = trained(wide, sign, ridge=ridge), trained(X, sign, ridge=ridge)
    # Their means differ by a rounding of 0.1, 1e-17, over a ridge of 0.01 or more.
    assert np.abs(a.w[6:]).max() <= 1e-12 * np.abs(a.w).max(), "constant columns tell nothing"
    if ridge != "auto":  # which is estimated by other probes
        aligned(a.w[:6], b.w, 1e-5)  # conjugate gradients to 1e-6


# ---- data that covariances do not like


AWKWARD = {
    "repeated_columns": lambda X, s: np.column_stack([X, X[:, :2], -X[:, 0]]),
    "sum_of_columns": lambda X, s: np.column_stack([X, X.sum(axis=1)]),
    "constant_columns": lambda X, s: np.column_stack([X, np.zeros(len(X)), np.full(len(X), 0.1), np.full(len(X), 1e8)]),
    "constant_within_the_classes": lambda X, s: np.column_stack([X, np.where(s > 0, 2.0, -1.0)]),
    "constant_within_one_class": lambda X, s: np.column_stack([X, np.where(s > 0, X[:, 0], 0.5)]),
    "more_columns_than_rows": lambda X, s: np.random.default_rng(5).standard_normal((len(X), 80)) + 0.1 * s[:, None],
    "all_constant": lambda X, s: np.ones_like(X),
    "one_column": lambda X, s: X[:, :1],
    "only_the_class": lambda X, s: s[:, None].astype(float),
}


@for_each(
    "measure, make, name",
    crossed([*((m, np.asarray) for m in MEASURES), ("roc_auc", sp.csr_array)], AWKWARD, strength=1),
)
def test_awkward_data_give_a_finite_model(name, measure, make):
    X, sign = make_data(n=60)
    Z = AWKWARD[name](X, sign)
    got = trained(make(Z), sign, measure)
    assert np.isfinite(got.w).all()
    assert math.isfinite(got.intercept)
    assert 0.0 <= got.predicted <= 1.0
    plain = trained(X, sign, measure).predicted
    if name not in ("all_constant", "one_column", "more_columns_than_rows"):
        # More columns do not harm much (the ridge differs); a column that is the class gives it away.
        assert got.predicted >= plain - 0.02
    if name in ("constant_within_the_classes", "only_the_class"):
        assert got.predicted == pytest.approx(1.0, abs=1e-6)
        assert ((Z @ got.w + got.intercept > 0) == (sign > 0)).all()
    if name == "all_constant":
        assert got.predicted <= 0.5 if measure != "accuracy" else np.mean(sign < 0) + 1e-12


CONSTANTS = {"zero": [0.0], "several": [0.1, 1e8, 1.0 / 3.0]}


@for_each("weighted, constants, measure", crossed([False, True], CONSTANTS, MEASURES, strength=1))
def test_constant_columns_get_no_coefficient(measure, constants, weighted):
    X, sign = make_data()
    weight = np.random.default_rng(0).random(len(X)) + 0.5 if weighted else None
    wide = np.column_stack([X, *(np.full(len(X), c) for c in CONSTANTS[constants])])
    got, plain = (trained(Z, sign, measure, weight, ridge=0.3) for Z in (wide, X))
    # Their share of a score is far below a deviation of the scores, which is 1.
    assert np.abs(got.w[5:] * CONSTANTS[constants]).max() <= 1e-6
    # An angle is known to the root of a rounding, 1e-8; the prediction is made without the ridge, so it is not at its own
    # maximum there and moves as much.
    aligned(got.w[:5], plain.w, 1e-6)
    assert got.predicted == pytest.approx(plain.predicted, abs=1e-7)


@for_each("constants", CONSTANTS)
def test_constant_columns_do_not_change_the_automatic_ridge(constants):
    """They carry no information, nor do they make the correlations of the others more or less certain."""
    X, sign = make_data()
    wide = np.column_stack([X, *(np.full(len(X), c) for c in CONSTANTS[constants])])
    assert trained(wide, sign).ridge == pytest.approx(trained(X, sign).ridge, rel=1e-9)  # sums of 25 squares


def test_repeated_columns_share_their_coefficient():
    X, sign = make_data()
    got = trained(np.column_stack([X, X[:, :2]]), sign)
    # A ridge makes equal columns equal.
    np.testing.assert_allclose(got.w[:2], got.w[5:], rtol=1e-8)


@for_each("shift, side, measure", crossed([0.0, 1e6], [1, -1], MEASURES, strength=1))
def test_a_class_of_one_row(measure, side, shift):
    X, _ = make_data()
    sign = np.where(np.arange(len(X)) == 7, side, -side)
    X[7] += 2.0
    got, plain = trained(X + shift, sign, measure), trained(X, sign, measure)
    # Entries of size 1e6 have 10 digits of a deviation; an angle is known to the root of a rounding.
    aligned(got.w, plain.w, 1e-4)
    assert got.predicted == pytest.approx(plain.predicted, abs=1e-4)
    assert got.predicted > 0.9, "a row 2 deviations away in every column"
    if measure != "accuracy":  # for accuracy one row of 300 may be given up
        assert (X[7] + shift) @ got.w * side + got.intercept * side > 0.0, (
            "the row is on its side of the model's threshold"
        )


SINGULAR = ["repeated_columns", "sum_of_columns", "more_columns_than_rows"]


@for_each("seed, name", crossed(range(8), SINGULAR, strength=1))
def test_no_ridge_on_singular_data_is_an_error(name, seed):
    X, sign = make_data(n=60, seed=seed)
    with pytest.raises(
        ValueError, match=r"'ridge': 0.*: the covariance is singular.*use ridge='auto' or a larger number"
    ):
        trained(AWKWARD[name](X, sign), sign, ridge=0.0)


@for_each("name", SINGULAR)
def test_a_little_ridge_on_singular_data_is_enough(name):
    X, sign = make_data(n=60)
    got = trained(AWKWARD[name](X, sign), sign, ridge=1e-6)
    assert got.predicted >= trained(X, sign, ridge=1e-6).predicted - 1e-3 or name == "more_columns_than_rows"


def test_weights_are_repeated_rows():
    X, sign = make_data()
    repeats = np.random.default_rng(6).integers(0, 4, len(sign))
    for measure in MEASURES:
        weighted = trained(X, sign, measure, repeats.astype(float))
        repeated = trained(np.repeat(X, repeats, axis=0), np.repeat(sign, repeats), measure)
        aligned(weighted.w, repeated.w, 1e-6)  # accuracy: an angle known to the root of a rounding
        assert weighted.ridge == pytest.approx(repeated.ridge, rel=1e-10)
        assert weighted.predicted == pytest.approx(repeated.predicted, abs=1e-10)


def test_an_intercept_column_changes_nothing():
    X, sign = make_data()
    got = MomentsSolver(ridge=0.3).train(InterceptOperator(as_operator(X)), sign, None, "roc_auc", PLAIN)
    np.testing.assert_allclose(got.w[:-1], trained(X, sign, ridge=0.3).w, rtol=1e-10)  # one more column in the system
    assert got.w[-1] == 0.0


def test_no_class_is_worth_predicting():
    """Classes that differ in nothing, one of them rare: the threshold is beyond every score, and finite."""
    rng = np.random.default_rng(7)
    X, sign = rng.standard_normal((2000, 3)), np.where(np.arange(2000) % 50 == 0, 1, -1)
    got = trained(X, sign, "accuracy")
    assert math.isfinite(got.intercept)
    assert (X @ got.w + got.intercept < 0.0).all()
    assert got.predicted == pytest.approx(0.98, abs=1e-9)


# ---- shrinkage


def test_shrinkage_between_its_limits():
    p = 10
    # tr(S) = p, so tr(S^2) lies between p (no correlation) and p^2 (all columns are one).
    for n in (2.0, 10.0, 1e3, 1e6):
        for square in (p * 1.001, 2.0 * p, 0.5 * p**2, float(p**2)):
            value = shrinkage(p, square, float(p), n)
            rho = ((1 - 2 / p) * square + p**2) / ((n + 1 - 2 / p) * (square - p))
            assert value == pytest.approx(rho / (1.0 - rho) if rho < 0.999 else 999.0, rel=1e-12)  # the formula
            assert LEAST_RIDGE <= value <= 999.0
    assert shrinkage(p, 30.0, 10.0, 1e12) < 1e-10 * 100, "many rows need no ridge"
    assert shrinkage(p, 30.0, 10.0, 2.0) == 999.0, "few rows give nearly the diagonal"
    values = [shrinkage(p, 30.0, 10.0, n) for n in (20.0, 50.0, 100.0, 1e3, 1e6)]
    assert values == sorted(values, reverse=True)
    assert shrinkage(p, float(p), float(p), 100.0) == LEAST_RIDGE, "uncorrelated: nothing to shrink"
    assert shrinkage(1, 1.0, 1.0, 100.0) == LEAST_RIDGE
    assert shrinkage(3, 0.0, 0.0, 100.0) == LEAST_RIDGE


def test_effective_rows():
    assert effective_rows([0.5, 0.5], (11.0, 11.0)) == pytest.approx(
        20.0, rel=1e-15
    )  # two equal classes: all their rows
    assert effective_rows([1.0, 0.0], (11.0, 1e9)) == pytest.approx(10.0, rel=1e-15)  # all variance from one class
    assert effective_rows([0.5, 0.5], (11.0, 1e12)) == pytest.approx(40.0, rel=1e-9)  # a quarter of the variance of S
    assert effective_rows([2.0, 2.0], (11.0, 11.0)) == pytest.approx(20.0, rel=1e-15)  # shares are relative
    assert effective_rows([0.0, 0.0], (11.0, 11.0)) == 1.0
    assert effective_rows([0.0, 1.0], (1.0, 31.0)) == pytest.approx(30.0, rel=1e-15)  # one positive
    assert math.isfinite(effective_rows([0.5, 0.5], (1.0, 1.0)))


# ---- what it is


def test_what_it_serves_and_trains():
    assert [name for name, risk in all_risks().items() if MomentsSolver.serves(risk)] == [
        "hinge",
        "logistic",
        "roc_area",
    ]
    assert sorted(m.name for m in all_measures().values() if MomentsSolver.trains(m)) == sorted(MEASURES)
    assert MomentsSolver.trains(get_measure("roc_auc"))
    assert not MomentsSolver.trains(get_measure("f1"))


def test_it_is_a_method_without_a_certificate():
    assert get_solver("moments") is MomentsSolver
    assert issubclass(MomentsSolver, Method)
    assert not issubclass(MomentsSolver, Solver)
    assert not MomentsSolver.certified
    assert MomentsSolver.automatic == "never"
    assert all(solver.certified == issubclass(solver, Solver) for solver in all_solvers().values())
    assert {"ridge", "method", "diagnostics", "max_iter"} <= set(MomentsSolver.options())
    assert "abs_tol" not in MomentsSolver.options()


@for_each(
    "options, match",
    [
        ({"ridge": -1e-9}, "ridge=-1e-09 must be a finite number at least 0"),
        ({"ridge": math.nan}, "ridge=nan"),
        ({"ridge": math.inf}, "ridge=inf"),
        ({"ridge": "Auto"}, "ridge='Auto'"),
        ({"ridge": None}, "ridge=None"),
        ({"ridge": True}, "ridge=True"),
        ({"method": "exakt"}, "Did you mean 'exact'"),
        ({"method": None}, "method"),
        ({"diagnostics": "yes"}, "diagnostics='yes' must be True or False"),
        ({"diagnostics": 0}, "diagnostics=0 must be True or False"),
        ({"max_iter": 0}, "max_iter=0"),
        ({"tol": 0.0}, "tol=0.0"),
    ],
)
def test_bad_options(options, match):
    with pytest.raises(ValueError, match=match):
        MomentsSolver(**options)


def test_unknown_options():
    with pytest.raises(TypeError, match="abs_tol"):
        MomentsSolver(abs_tol=1.0)


def test_moments_of_normal_classes_predict_new_rows():
    """The whole chain, with moments that are known: the prediction is the AUC of rows drawn from them."""
    rng = np.random.default_rng(8)
    mean, plus, minus = np.array([1.0, -0.5, 0.2]), np.diag([1.0, 2.0, 0.5]), np.diag([0.5, 1.0, 3.0])
    n = 1e6
    moments = ClassMoments(Moments(n, mean, plus * (n - 1)), Moments(n, np.zeros(3), minus * (n - 1)))
    got = MomentsSolver(ridge=0.0).from_moments(moments, "roc_auc", PLAIN)
    draws = 100_000
    high = rng.multivariate_normal(mean, plus, draws) @ got.w
    low = rng.multivariate_normal(np.zeros(3), minus, draws) @ got.w
    # Four standard errors of independent pairs.
    assert np.mean(high > low) == pytest.approx(got.predicted, abs=4.0 * math.sqrt(0.25 / draws))
