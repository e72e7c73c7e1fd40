"""Excessive gap technique: the theorem's gap at every iteration, the optimum with a free intercept, weights, the classifier."""

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg as spla

from cases import crossed, for_each
from problems import made_objective
from scoreline import MeasureClassifier
from scoreline.objective import Objective
from scoreline.operators import InterceptOperator, RandomFourierFeatures, ScaledOperator, as_operator
from scoreline.risks import FreeInterceptHingeRisk
from scoreline.solvers import ExcessiveGapSolver


def data(n=60, p=4, seed=0, share=0.35):
    rng = np.random.default_rng([seed, n])
    X = rng.standard_normal((n, p)) + 3.0  # far from 0: the intercept matters
    z = (X - 3.0) @ rng.standard_normal(p) + rng.standard_normal(n)
    return X, np.where(z > np.quantile(z, 1.0 - share), 1, -1)


def objective(X, y, alpha, weight=None):
    return made_objective(X, y, FreeInterceptHingeRisk(), alpha, weight)


def reference(X, y, alpha, weight=None):
    """Return the optimum, w and b of the support vector machine whose intercept is not penalised."""
    s = np.ones(len(y)) if weight is None else weight
    w, b = cp.Variable(X.shape[1]), cp.Variable()
    loss = (s / s.sum()) @ cp.pos(1.0 - cp.multiply(y, X @ w + b))
    task = cp.Problem(cp.Minimize(0.5 * alpha * cp.sum_squares(w) + loss))
    task.solve(solver=cp.CLARABEL, tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
    return task.value, w.value, b.value


@for_each("seed, weighted, alpha", crossed(range(3), [False, True], [1.0, 1e-2], strength=1))
def test_the_gap_of_the_theorem_holds_at_every_iteration(seed, weighted, alpha):
    X, y = data(seed=seed)
    weight = np.random.default_rng(seed).integers(1, 5, len(y)).astype(float) if weighted else None
    s = np.ones(len(y)) if weight is None else weight
    total, worst = s.sum(), min(s[y > 0].sum(), s[y < 0].sum()) / s.sum()
    solver, problem = ExcessiveGapSolver(tol=1e-14, max_iter=300), objective(X, y, alpha, weight)
    largest = np.linalg.eigvalsh(X.T @ (X * (s / total)[:, None]))[-1] / alpha
    state = solver.start(problem, np.zeros(X.shape[1]))
    solver.resume(problem, state)
    assert largest <= state.lipschitz <= 1.1 * largest
    for k in range(300):
        dual = state.constant - np.sum((X.T @ state.dual) ** 2) / (2.0 * alpha)
        primal = problem.value(state.w)
        beta = -y * state.dual * total / s
        assert beta.min() >= -1e-12
        assert beta.max() <= 1.0 + 1e-12
        assert abs(np.sum(s * y * beta)) <= 1e-10 * total
        assert primal - dual <= 4.0 * state.lipschitz * worst / ((k + 1) * (k + 2)) + 1e-12
        assert state.lower_bound <= primal + 1e-12
        solver.step(problem, state)


@pytest.mark.slow
@for_each("seed", range(3))
@for_each("weighted", [False, True])
def test_the_optimum_is_that_with_a_free_intercept(seed, weighted):
    X, y = data(seed=seed)
    weight = np.random.default_rng(seed).integers(0, 4, len(y)).astype(float) if weighted else None
    best, w, b = reference(X, y, 0.1, weight)
    result = ExcessiveGapSolver(tol=1e-9, abs_tol=1e-7, max_iter=20_000).solve(objective(X, y, 0.1, weight))
    assert result.status == "converged"
    assert result.objective == pytest.approx(best, abs=1e-6)
    assert result.lower_bound <= best + 1e-9  # what cvxpy may lie below the minimum
    np.testing.assert_allclose(result.w, w, atol=2e-3)  # sqrt(2 gap / alpha)
    risk = FreeInterceptHingeRisk().prepare(y, weight)
    assert risk.intercept(result.z) == pytest.approx(b, abs=0.05)


def test_the_classifier_has_the_intercept_of_the_risk():
    X, y = data(n=200, seed=1)
    params = {"solver": "excessive_gap", "alpha": 0.1, "tol": 1e-4, "max_iter": 20_000}
    clf = MeasureClassifier("accuracy", threshold="none", **params).fit(X, y)
    assert clf.risk_ == "hinge_free_intercept"
    _, w, b = reference(X, y, 0.1)
    np.testing.assert_allclose(clf.decision_function(X), X @ w + b, atol=0.05)  # as the gap allows
    assert clf.intercept_[0] == clf.trained_intercept_ != 0.0
    assert clf.objective(X, y) == pytest.approx(clf.objective_, rel=1e-9)
    assert MeasureClassifier("accuracy", **params).fit(X, y).score(X, y) >= clf.score(X, y), (
        "the threshold is the best on these rows"
    )
    shifted = MeasureClassifier("accuracy", threshold="none", **params).fit(X + 0.5, y)
    assert shifted.objective_ == pytest.approx(clf.objective_, rel=2e-4), (
        "no penalty on the intercept: shifts do not matter"
    )


@for_each("p", [1, 2, 3])
def test_few_features_and_a_given_lipschitz_constant(p):
    X, y = data(p=p)
    X[:, 0] += 0.5 * y
    best = reference(X, y, 0.1)[0]
    given = float(np.linalg.eigvalsh(X.T @ X)[-1]) / (len(y) * 0.1)
    for params in ({}, {"lipschitz": given}):
        assert (
            ExcessiveGapSolver(abs_tol=1e-5, max_iter=20_000, **params).solve(objective(X, y, 0.1)).objective
            <= best + 1e-5
        )


def test_zero_columns_and_wrong_options():
    y = np.array([1, -1, -1, 1, -1])
    result = ExcessiveGapSolver().solve(objective(np.zeros((5, 3)), y, 0.1))
    assert result.objective == pytest.approx(2.0 * 2 / 5)  # two positives are given up
    with pytest.raises(ValueError, match="lipschitz=0"):
        ExcessiveGapSolver(lipschitz=0)
    with pytest.raises(ValueError, match="does not minimise risk='hinge'"):
        MeasureClassifier("accuracy", solver="excessive_gap", risk="hinge").fit(np.eye(5), y)


STORAGES = {
    "fortran": np.asfortranarray,
    "float32": lambda X: X.astype(np.float32),
    "csr": sp.csr_array,
    "csc": sp.csc_array,
    "linear_operator": spla.aslinearoperator,
    "computed_blocks": lambda X: RandomFourierFeatures(X, n_features=12, random_state=0),
    "with_a_constant": lambda X: InterceptOperator(as_operator(X), 1.0),
    "scaled": lambda X: ScaledOperator(as_operator(X), 1.0 / X.std(axis=0), X.mean(axis=0)),
}


@for_each("name", STORAGES)
def test_it_runs_on_every_operator_with_two_passes_per_step(name):
    X, y = data()
    X = X.astype(np.float32).astype(float)  # so that float32 is the same problem
    operator = as_operator(STORAGES[name](X))
    columns = np.column_stack([operator.matvec(e) for e in np.eye(operator.shape[1])])
    found, dense = (Objective(as_operator(o), FreeInterceptHingeRisk().prepare(y), 0.1) for o in (operator, columns))
    result = ExcessiveGapSolver(tol=1e-2).solve(found)
    expected = ExcessiveGapSolver(tol=1e-2).solve(dense)
    assert result.status == "converged"
    assert result.n_iter == expected.n_iter
    np.testing.assert_allclose(result.w, expected.w, rtol=1e-6, atol=1e-9)  # hundreds of steps magnify rounding
    passes = np.diff(result.history["passes"])
    assert np.allclose(passes, 2.0)
