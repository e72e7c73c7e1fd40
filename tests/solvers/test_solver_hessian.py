"""Hessians of the risks in the scores, their factor in w, and what it saves a smoothed run."""

import numpy as np
import pytest
import scipy.sparse as sp

from cases import for_each
from problems import linear_rows, made_objective
from scoreline.objective import Objective
from scoreline.operators import Operator, as_operator
from scoreline.risks.registry import get_risk
from scoreline.solvers import SmoothedSolver
from scoreline.solvers.common.hessian import factored

EXACT = ["hinge", "logistic", "prbep", "squared_hinge"]
PAIRS = ["roc_area", "roc_area_squared"]
EPS = np.finfo(float).eps
STEP = 1e-5


def prepared(name, n=40, share=0.4, seed=0, weighted=False):
    """Return a risk with labels, scores, and the smoothing of a ramp of width 1 (0 for smooth risks)."""
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(n) < share, 1, -1)
    y[:2] = 1, -1
    risk = get_risk(name).prepare(y, rng.uniform(0.2, 2.0, n) if weighted else None)
    return risk, rng.standard_normal(n) + 0.5 * y, 1.0 / risk.ramp_scale if risk.smoothable else 0.0


def dense(hessian):
    """Return diag(diagonal) + sum of the parts of rank one."""
    return np.diag(hessian.diagonal) + sum(factor * np.outer(u, u) for u, factor in hessian.rank_one)


def differences(risk, z, mu):
    """Return the matrix of central differences of the gradient in z."""
    rows = np.eye(len(z)) * STEP
    return np.array([(risk.evaluate(z + e, mu).grad - risk.evaluate(z - e, mu).grad) / (2.0 * STEP) for e in rows])


def away_from_kinks(risk, z, mu):
    """Return scores near z where no step of the differences meets a kink: the diagonal stays what it is."""
    for _ in range(20):
        diagonal = risk.hessian(z, mu).diagonal
        moves = [risk.hessian(z + e, mu).diagonal for e in np.vstack([np.eye(len(z)), -np.eye(len(z))]) * 2.0 * STEP]
        if all(np.allclose(moved, diagonal, rtol=1e-12, atol=0.0) for moved in moves):  # rounding is no kink
            return z
        z = z + 1e-3 * np.random.default_rng(1).standard_normal(len(z))
    raise AssertionError("no scores away from kinks were found")


@for_each("weighted", [False, True])
@for_each("share", [0.1, 0.4, 0.9])
@for_each("name", EXACT)
def test_the_hessian_is_the_matrix_of_differences_of_the_gradient(name, share, weighted):
    risk, z, mu = prepared(name, share=share, seed=1, weighted=weighted)
    z = z if name == "logistic" else away_from_kinks(risk, z, mu)
    hessian = risk.hessian(z, mu)
    assert hessian.diagonal.any()
    # The gradient is linear between kinks (logistic: STEP^2 = 1e-10 times a third derivative of 0.1 / n): what is left is
    # the rounding of a gradient of size 0.1, a few eps over STEP.
    np.testing.assert_allclose(dense(hessian), differences(risk, z, mu), rtol=0, atol=1e-10)


def test_only_prbep_has_a_part_of_rank_one_among_them():
    for name in EXACT:
        risk, z, mu = prepared(name)
        assert len(risk.hessian(z, mu).rank_one) == (1 if name == "prbep" else 0)


@for_each("weighted", [False, True])
@for_each("share", [0.0, 0.1, 0.4, 0.9])
@for_each("name", [*PAIRS, "prbep"])
def test_hessians_of_shift_invariant_risks_ignore_a_shift(name, share, weighted):
    for seed in range(5):
        risk, z, mu = prepared(name, share=share, seed=seed, weighted=weighted)
        matrix = dense(risk.hessian(z, mu))
        largest = np.abs(matrix).max()
        # 40 rows of terms of this size.
        assert np.linalg.eigvalsh(matrix)[0] >= -40 * EPS * largest
        np.testing.assert_allclose(matrix.sum(axis=1), 0.0, rtol=0, atol=40 * EPS * largest)
        np.testing.assert_array_equal(matrix, matrix.T)


@for_each("weighted", [False, True])
@for_each("share", [0.1, 0.4, 0.9])
@for_each("name", PAIRS)
def test_pairs_give_the_true_diagonal_and_the_true_row_sums_over_a_class(name, share, weighted):
    risk, z, mu = prepared(name, n=30, share=share, seed=2, weighted=weighted)
    z = away_from_kinks(risk, z, mu)
    hessian, true = risk.hessian(z, mu), differences(risk, z, mu)
    # As above: a gradient that is linear between kinks, rounded, over STEP.
    np.testing.assert_allclose(hessian.diagonal, np.diag(true), rtol=0, atol=1e-10)
    # The approximation is between classes: what a row has to do with the whole other class is exact. (Within a class the
    # parts of rank one cancel.)
    matrix, positive = dense(hessian), risk.labels.sign > 0
    for side in (positive, ~positive):
        np.testing.assert_allclose(matrix[:, side].sum(axis=1), true[:, side].sum(axis=1), rtol=0, atol=1e-9)
        own = matrix[np.ix_(side, side)]
        np.testing.assert_allclose(own, np.diag(np.diag(own)), rtol=0, atol=16 * EPS * np.abs(own).max())


def test_without_a_ramp_or_rows_on_it_there_is_no_hessian():
    for name in ("hinge", "prbep", "roc_area"):
        risk, z, _ = prepared(name)
        assert risk.hessian(z, 0.0) is None
    y = np.array([1, 1, -1, -1])
    for name in ("prbep", "roc_area", "roc_area_squared"):
        risk = get_risk(name).prepare(y)
        assert risk.hessian(100.0 * y, 0.1 / max(1.0, risk.ramp_scale)) is None, "every pair is ranked by far"


def objective(name, storage=np.asarray, intercept=False, weighted=False):
    X, y = linear_rows(200, 5, seed=3, shift=1.0)
    weight = np.random.default_rng(3).uniform(0.2, 2.0, 200) if weighted else None
    target = made_objective(storage(X), y, name, 1e-3, weight, intercept)
    return target, np.c_[X, np.ones(200)] if intercept else X


@for_each("weighted", [False, True])
@for_each("intercept", [False, True])
@for_each("storage", [np.asarray, sp.csr_array])
@for_each("name", [*PAIRS, "prbep", "hinge"])
def test_the_factor_is_that_of_the_dense_matrix(name, storage, intercept, weighted):
    target, X = objective(name, storage, intercept=intercept, weighted=weighted)
    z = target.scores(np.linspace(-1.0, 1.0, X.shape[1]))
    hessian = target.risk.hessian(z, 1.0 / target.risk.ramp_scale if target.risk.smoothable else 0.0)
    before = target.n_passes
    factor, is_lower = factored(target, hessian)
    assert is_lower
    # The constant column of the Gram matrix is one more product.
    assert target.n_passes - before == 1.0 + intercept + len(hessian.rank_one)
    lower = np.tril(factor)
    literal = X.T @ dense(hessian) @ X + 1e-3 * np.eye(X.shape[1])
    # Sums of 200 rows, entries of size 1.
    np.testing.assert_allclose(lower @ lower.T, literal, rtol=0, atol=1e-13)


def test_no_hessian_has_no_factor():
    assert factored(objective("prbep")[0], None) is None


def badly_scaled(name, n=1000, p=20, alpha=1e-6):
    rng = np.random.default_rng(2)
    X = rng.standard_normal((n, p))
    y = np.where(X @ rng.standard_normal(p) + rng.standard_normal(n) > 1.0, 1, -1)
    X *= np.where(np.arange(p) % 2 == 0, 1.0, 100.0)
    return Objective(as_operator(X), get_risk(name).prepare(y), alpha)


@for_each("name", ["roc_area", "prbep"])
def test_with_the_hessian_a_badly_scaled_problem_costs_few_passes(name):
    runs = [SmoothedSolver(tol=1e-2, precondition=on).solve(badly_scaled(name)) for on in (True, False)]
    assert [run.status for run in runs] == ["converged", "converged"]
    # Measured 74 against 985 (roc_area) and 109 against 2426 (prbep); a factor of 4 leaves room.
    assert 4.0 * runs[0].n_passes < runs[1].n_passes
    # Two proofs of one minimum overlap.
    assert max(run.lower_bound for run in runs) <= min(run.objective for run in runs)


@for_each("name", ["roc_area", "prbep"])
def test_a_saved_state_carries_the_factor_and_goes_on(name, monkeypatch):
    calls = []
    gram = Operator.gram
    monkeypatch.setattr(Operator, "gram", lambda self, weight: calls.append(1) or gram(self, weight))

    def run(iterations, state=None):
        calls.clear()
        result = SmoothedSolver(tol=1e-2, max_iter=iterations).solve(badly_scaled(name), state=state)
        return result, len(calls)

    uninterrupted, made = run(12)
    first, made_before = run(8)
    record = first.state.record()
    assert record["hessian"]["factor"].shape == (20, 20)
    assert 0.0 <= record["hessian"]["left"] <= 12.0  # passes that a Gram matrix of 20 columns is said to cost
    rest, made_after = run(12, record)
    assert made_before > 0
    assert made_before + made_after == made, "the factor is made again when it would have been"
    # The same directions and steps, but for the rounding of scores that are computed again: 1e-16 times the condition of
    # the Hessian, about 1e4, four times over.
    np.testing.assert_allclose(rest.history["objective"][-4:], uninterrupted.history["objective"][-4:], rtol=1e-10)
    np.testing.assert_allclose(
        rest.state.w, uninterrupted.state.w, rtol=0, atol=1e-10 * np.abs(uninterrupted.state.w).max()
    )

    end, _ = run(5000, record)
    assert end.status == "converged"
    assert end.n_passes > first.n_passes
    # Proofs of one minimum overlap.
    assert max(end.lower_bound, uninterrupted.lower_bound) <= min(end.objective, uninterrupted.objective)


def test_a_run_without_the_hessian_records_none():
    run = SmoothedSolver(tol=1e-2, max_iter=4, precondition=False).solve(badly_scaled("prbep"))
    assert run.state.record()["hessian"] == {}
    with pytest.raises(ValueError, match="precondition"):
        SmoothedSolver(precondition=1)
