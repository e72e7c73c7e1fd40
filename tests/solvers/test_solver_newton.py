"""Newton's method: the minimum that others find, in fewer passes, with a Hessian that is what it should be."""

import warnings
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize
from scipy.sparse.linalg import aslinearoperator
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from cases import crossed, for_each
from problems import linear_rows, made_objective
from scoreline import MeasureClassifier
from scoreline.operators import Operator
from scoreline.risks.registry import get_risk
from scoreline.solvers import LbfgsSolver, NewtonSolver
from scoreline.solvers.common.hessian import NEGLIGIBLE_CURVATURE_SHARE, factored, hessian_diagonal

STORAGES = [np.asarray, sp.csr_array]


problem = partial(linear_rows, n=300, p=6, shift=1.0)


def objective(X, y, alpha, risk="logistic", weight=None, intercept=True):
    return made_objective(X, y, risk, alpha, weight, intercept)


@for_each("storage, alpha", crossed(STORAGES, [1e-4, 1e-2, 1.0], strength=1))
def test_it_finds_the_minimum_of_scikit_learn_s_logistic_regression(alpha, storage):
    X, y = problem()
    result = NewtonSolver(tol=1e-10).solve(objective(storage(X), y, alpha))
    assert result.status == "converged"
    constant = np.c_[X, np.ones(len(y))]
    other = LogisticRegression(C=1.0 / (len(y) * alpha), fit_intercept=False, tol=1e-10, max_iter=10000)
    w = other.fit(constant, y).coef_[0]
    # J is alpha-strongly convex: alpha/2 |w - w*|^2 <= gap; scikit-learn stops at a gradient of 1e-10 n, n = 300.
    assert np.linalg.norm(result.w - w) <= np.sqrt(2.0 * result.gap / alpha) + 3e-8 / alpha
    value = objective(X, y, alpha).value(w)
    assert result.lower_bound <= value
    assert result.objective <= value + result.gap


@for_each("weighted", [False, True])
@for_each("risk", ["logistic", "squared_hinge"])
def test_it_finds_the_minimum_that_scipy_finds(risk, weighted):
    X, y = problem(n=120, p=4, seed=1)
    s = np.random.default_rng(1).uniform(0.1, 5.0, len(y)) if weighted else None

    def literal(w):
        value, grad, _ = type(get_risk(risk)).reference(X @ w, y, s)
        return 0.5e-2 * w @ w + value, 1e-2 * w + X.T @ grad

    best = minimize(literal, np.zeros(4), jac=True, method="BFGS", options={"gtol": 1e-10})
    result = NewtonSolver(tol=1e-10).solve(objective(X, y, 1e-2, risk, s, intercept=False))
    assert result.status == "converged"
    assert result.lower_bound <= best.fun * (1.0 + 1e-13)  # rounding of the literal sums
    assert result.objective <= best.fun + result.gap
    # alpha/2 |w - w*|^2 <= gap, and gtol / alpha on the other side.
    assert np.linalg.norm(result.w - best.x) <= np.sqrt(2.0 * result.gap / 1e-2) + 1e-8


@for_each("tol", [1e-2, 1e-6])
def test_columns_of_different_size_cost_few_passes(tol):
    X, y = problem(n=1000, p=20, seed=2)
    X *= np.where(np.arange(20) % 2 == 0, 1.0, 1000.0)
    newton, lbfgs = (s(tol=tol).solve(objective(X, y, 1e-6)) for s in (NewtonSolver, LbfgsSolver))
    assert newton.status == lbfgs.status == "converged"
    # Measured 28 against 557 (tol 1e-2) and 31 against 1440 (1e-6); a factor of 5 leaves room.
    assert 5.0 * newton.n_passes < lbfgs.n_passes
    # Two certified minima of one J.
    assert abs(newton.objective - lbfgs.objective) <= max(newton.gap, lbfgs.gap)


def test_with_the_same_columns_scaled_it_takes_the_same_steps():
    """Newton steps do not depend on the units of the features, where the penalty is negligible."""
    X, y = problem(n=500, p=5, seed=3)
    plain, scaled = (NewtonSolver(tol=1e-8).solve(objective(M, y, 1e-12)) for M in (X, X * [1.0, 1e3, 1e-2, 1e2, 1.0]))
    first = [run.history["objective"][:7] for run in (plain, scaled)]
    # The penalty is 1e-12 |w|^2 / 2 with a coefficient of 130 in the small column: 3e-8 of J. The bound, and so the end of
    # the run, does depend on units.
    np.testing.assert_allclose(first[0], first[1], rtol=1e-7)


@for_each("risk", ["logistic", "squared_hinge"])
def test_it_starts_from_the_best_constant(risk):
    X, _ = problem(n=500, p=3)
    y = np.where(np.arange(500) < 10, 1, -1)
    target = objective(X, y, 1e-8, risk)
    start = NewtonSolver().solve(target).history["objective"][0]
    constant = min(
        get_risk(risk).prepare(y).value(np.full(500, c)) for c in np.linspace(-6.0, 0.0, 601)
    )  # steps of 0.01 around a flat minimum: 1e-4 of it at most
    assert start == pytest.approx(constant, rel=1e-4)
    assert start < 0.2 * target.risk.value_at_zero()
    # Without a constant column there is nothing to start from but 0.
    plain = NewtonSolver().solve(objective(X, y, 1e-8, risk, intercept=False)).history["objective"][0]
    assert plain == pytest.approx(target.risk.value_at_zero(), rel=1e-15)  # the same sum


def test_a_given_start_is_used():
    X, y = problem()
    w0 = np.linspace(-1.0, 1.0, 7)
    result = NewtonSolver(tol=1e-6).solve(objective(X, y, 1e-2), w0)
    # The same sums, but for the order of the penalty.
    assert result.history["objective"][0] == pytest.approx(objective(X, y, 1e-2).value(w0), rel=1e-14)
    assert np.array_equal(w0, np.linspace(-1.0, 1.0, 7))


def forbid(monkeypatch, name):
    def refuse(self, *args):
        raise AssertionError(f"{name} must not be called here")

    monkeypatch.setattr(Operator, name, refuse)


def test_above_a_thousand_features_only_the_hessian_diagonal_is_used(monkeypatch):
    rng = np.random.default_rng(4)
    X = rng.standard_normal((60, 1001))
    X[:, ::2] *= 100.0
    y = np.where(X[:, 1] + X[:, 0] / 100.0 + 0.5 * rng.standard_normal(60) > 0.5, 1, -1)
    with monkeypatch.context() as patch:
        forbid(patch, "square_rmatvec")
        few = NewtonSolver(tol=1e-6).solve(objective(X[:, :999], y, 1e-2))
    with monkeypatch.context() as patch:
        forbid(patch, "gram")
        many = NewtonSolver(tol=1e-6).solve(objective(X, y, 1e-2))
    assert few.status == many.status == "converged"
    lbfgs = LbfgsSolver(tol=1e-6).solve(objective(X, y, 1e-2))
    # Two certified minima of one J.
    assert abs(many.objective - lbfgs.objective) <= max(many.gap, lbfgs.gap)


@for_each("storage", STORAGES)
def test_the_diagonal_evens_out_columns_of_different_size(monkeypatch, storage):
    monkeypatch.setattr("scoreline.solvers.common.hessian.MAX_FEATURES", 10)
    X, y = problem(n=600, p=30, seed=5)
    X *= np.where(np.arange(30) % 2 == 0, 1.0, 1000.0)
    newton, lbfgs = (s(tol=1e-4).solve(objective(storage(X), y, 1e-6)) for s in (NewtonSolver, LbfgsSolver))
    assert newton.status == lbfgs.status == "converged"
    # Measured 58 against 3589; columns are nearly independent, so the diagonal says most of the Hessian.
    assert 5.0 * newton.n_passes < lbfgs.n_passes


def test_an_operator_of_products_only_gets_plain_lbfgs():
    X, y = problem(n=80)
    runs = [
        s(tol=1e-6).solve(objective(aslinearoperator(X), y, 1e-2, intercept=False)) for s in (NewtonSolver, LbfgsSolver)
    ]
    assert np.array_equal(runs[0].w, runs[1].w)
    assert runs[0].n_passes == runs[1].n_passes


@for_each("storage", STORAGES)
@for_each("risk", ["logistic", "squared_hinge"])
def test_the_factor_omits_one_percent_of_the_curvature(risk, storage):
    X, y = problem(n=200, seed=6)
    target = objective(storage(X), y, 1e-3, risk)
    z = 3.0 * target.scores(np.ones(7))
    lower = np.tril(factored(target, target.risk.hessian(z))[0])
    d = np.sort(target.risk.curvature(z))
    least = d[np.searchsorted(np.cumsum(d), NEGLIGIBLE_CURVATURE_SHARE * d.sum())]
    d = target.risk.curvature(z)
    large = np.where(d >= least, d, 0.0)
    assert large.sum() >= (1.0 - NEGLIGIBLE_CURVATURE_SHARE) * d.sum()
    constant = np.c_[X, np.ones(len(y))]
    literal = constant.T @ (large[:, None] * constant) + 1e-3 * np.eye(7)
    # Sums of 200 rows, entries of size 0.1.
    np.testing.assert_allclose(lower @ lower.T, literal, rtol=0, atol=1e-14)
    diagonal = np.diag(constant.T @ (d[:, None] * constant)) + 1e-3
    np.testing.assert_allclose(hessian_diagonal(target, target.risk.curvature(z)), diagonal, rtol=1e-13)  # as above


def test_integer_weights_equal_repeated_rows_step_by_step():
    X, y = problem(n=150, seed=7)
    k = np.random.default_rng(7).integers(0, 5, len(y))
    rows = np.repeat(np.arange(len(y)), k)
    weighted = NewtonSolver(tol=1e-4).solve(objective(X, y, 1e-4, weight=k.astype(float)))
    repeated = NewtonSolver(tol=1e-4).solve(objective(X[rows], y[rows], 1e-4))
    assert weighted.n_iter == repeated.n_iter
    # Every step is the same but for rounding, 1e-16 times the condition of the Hessian (about 1e4).
    np.testing.assert_allclose(weighted.w, repeated.w, rtol=1e-10)


@for_each(
    "max_features, storage, solver, scale",
    crossed([1000, 2], STORAGES, ["newton", "plugin", "cost_search"], [1e100, 1e200, 1e300], strength=1),
)
def test_data_that_overflow_end_with_a_model_or_a_value_error(solver, storage, max_features, scale, monkeypatch):
    monkeypatch.setattr("scoreline.solvers.common.hessian.MAX_FEATURES", max_features)
    X, y = problem(n=50, p=3, seed=8)
    clf = MeasureClassifier("f1", solver=solver, risk="logistic")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", RuntimeWarning)  # overflow is what this is about
        try:
            clf.fit(storage(X * scale), y)
        except ValueError as error:
            assert "finite" in str(error)  # noqa: PT017 - either end is right
        else:
            assert np.isfinite(clf.coef_).all()
            assert np.isfinite(clf.objective_)


def test_a_hessian_that_overflows_has_no_factor():
    X, y = problem(n=30, p=2)
    target = objective(X * 1e200, y, 1e-3)
    assert factored(target, target.risk.hessian(np.zeros(30))) is None
