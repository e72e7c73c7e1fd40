"""Cutting planes, their line-search variant and OCAS: optima, brackets, iterates, passes, lines, every risk, the classifier."""

import functools
import itertools
import warnings

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize_scalar
from sklearn.exceptions import ConvergenceWarning

from cases import crossed, for_each
from problems import linear_rows, made_objective
from scoreline import MeasureClassifier, list_solvers
from scoreline.io import hard_for_cutting_planes
from scoreline.objective import Objective
from scoreline.operators import as_operator
from scoreline.risks import ContingencyRisk, HingeRisk, RocAreaRisk
from scoreline.risks.registry import all_risks, get_risk
from scoreline.solvers import (
    AcceleratedSolver,
    BundleLineSearchSolver,
    BundleOcasSolver,
    BundleSolver,
    LbfgsSolver,
    bundle_ocas,
)
from scoreline.solvers.bundle_ocas import MOST_TRIALS, LineMinimum
from scoreline.solvers.common import loop as solver_loop

SOLVERS = (BundleSolver, BundleLineSearchSolver, BundleOcasSolver)
WITH_PLANES = (BundleSolver, BundleOcasSolver)
ALPHAS = (1e-1, 1e-2, 1e-3, 1e-4)
every_solver = for_each("solver_class", SOLVERS)


def data(n=8, p=3, seed=0):
    return linear_rows(n, p, [seed, n, p], shift=0.3)


RISKS = {
    "hinge": HingeRisk(),
    "roc_area": RocAreaRisk(),
    "prbep": ContingencyRisk("prbep"),
    "f1": ContingencyRisk("f1"),
    "min_tpr_tnr": ContingencyRisk("min_tpr_tnr"),
}


def problem(risk, alpha, n=8, p=3, seed=0):
    return made_objective(*data(n, p, seed), RISKS[risk], alpha)


def all_planes(risk, X, y):
    """Return (slopes, constants) of all planes of a risk that is a maximum over labellings, from its definition."""
    n, plus, minus = len(y), int((y > 0).sum()), int((y < 0).sum())
    slopes, constants = [], []
    for flips in itertools.product((0, 1), repeat=n):
        flips = np.array(flips)
        b, c = int(flips[y > 0].sum()), int(flips[y < 0].sum())
        if risk == "prbep" and b != c:
            continue
        loss = {
            "prbep": b / plus,
            "f1": 1 - 2 * (plus - b) / (2 * plus - b + c),
            "min_tpr_tnr": max(b / plus, c / minus),
        }[risk]
        slopes.append(-2.0 / n * (flips * y) @ X)
        constants.append(loss)
    return np.array(slopes), np.array(constants)


@functools.cache
def optimum(risk, alpha, n=8, p=3, seed=0):
    """Return (J, w) of cvxpy's solution, J from the definition: never below the true minimum."""
    X, y = data(n, p, seed)
    w = cp.Variable(p)
    if risk in ("hinge", "roc_area"):
        rows = X * y[:, None]
        if risk == "roc_area":
            i, j = np.nonzero(np.outer(y > 0, y < 0))
            rows = X[i] - X[j]
        loss = cp.sum(cp.pos(1 - rows @ w)) / len(rows)
    else:
        slopes, constants = all_planes(risk, X, y)
        loss = cp.max(constants + slopes @ w)
    task = cp.Problem(cp.Minimize(0.5 * alpha * cp.sum_squares(w) + loss))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # "may be inaccurate": 1e-12 is asked for, 1e-9 is enough here
        task.solve(solver=cp.CLARABEL, tol_gap_abs=1e-12, tol_gap_rel=1e-12, tol_feas=1e-12)
    w = w.value
    if risk in ("hinge", "roc_area"):
        return 0.5 * alpha * w @ w + np.maximum(0.0, 1.0 - rows @ w).mean(), w
    return 0.5 * alpha * w @ w + (constants + slopes @ w).max(), w


# ---------------------------------------------------------------------------------------------------------- optima


@for_each("seed, alpha, risk, solver_class", crossed([0, 1], ALPHAS, RISKS, SOLVERS))
def test_the_optimum_lies_between_bound_and_objective_at_every_iteration(solver_class, risk, alpha, seed):
    best, w_best = optimum(risk, alpha, seed=seed)
    recorded = []
    solver = solver_class(tol=1e-6, max_iter=400, callbacks=[recorded.append])
    result = solver.solve(problem(risk, alpha, seed=seed))
    assert len(recorded) == result.n_iter
    assert (np.diff(result.history["lower_bound"]) >= 0.0).all()
    assert (np.diff(result.history["objective"]) <= 0.0).all()
    for progress in recorded:
        # 1e-13: rounding of the literal sums; 1e-9: what cvxpy may lie above the minimum.
        assert progress.lower_bound <= best * (1 + 1e-13) + 1e-15
        assert progress.objective >= best - 1e-9
    assert abs(result.objective - best) <= result.gap + 1e-9
    if solver_class is not BundleLineSearchSolver:  # that one takes of the order of 1 / (alpha eps) iterations
        assert result.status == "converged"
        assert result.gap <= 1e-6 * max(
            result.lower_bound, 1e-3 * RISKS[risk].prepare(data(seed=seed)[1]).value_at_zero()
        )
    # J is alpha-strongly convex: alpha/2 |w - w*|^2 <= J(w) - J*; cvxpy's own error comes on top.
    assert np.linalg.norm(result.w - w_best) <= np.sqrt(2 * result.gap / alpha) + np.sqrt(2e-9 / alpha)
    assert problem(risk, alpha, seed=seed).value(result.w) == pytest.approx(result.objective, rel=1e-12)


@for_each("risk, alpha, solver_class", crossed(["logistic", "squared_hinge"], [1e-1, 1e-2], SOLVERS))
def test_smooth_risks_lead_to_the_optimum_of_lbfgs(solver_class, risk, alpha):
    X, y = data(60, 4)

    def objective():
        return Objective(as_operator(X), get_risk(risk).prepare(y), alpha)

    tight = LbfgsSolver(tol=1e-10).solve(objective())
    assert tight.status == "converged"
    tol = 1e-3 if solver_class.slow else 1e-6
    recorded = []
    result = solver_class(tol=tol, callbacks=[recorded.append]).solve(objective())
    assert result.status == "converged"
    assert result.objective == pytest.approx(tight.objective, rel=tol)
    assert result.objective >= tight.lower_bound
    assert all(progress.lower_bound <= tight.objective for progress in recorded)


# -------------------------------------------------------------------------------- iterates against the definition


def watched(solver, monkeypatch, look):
    """Let `look(objective, state)` see every state after a step; return the list of what it says."""
    step, recorded = solver.step, []

    def recording_step(objective, state):
        moved = step(objective, state)
        recorded.append(look(objective, state))
        return moved

    monkeypatch.setattr(solver, "step", recording_step)
    return recorded


def subgradient(risk, X, y, w):
    """Return R and a subgradient in w, and the constant of the plane, from the definition."""
    rows = X * y[:, None]
    if risk == "roc_area":
        i, j = np.nonzero(np.outer(y > 0, y < 0))
        rows = X[i] - X[j]
    t = 1.0 - rows @ w
    a = -(rows * (t > 0.0)[:, None]).mean(axis=0)
    value = np.maximum(t, 0.0).mean()
    return value, a, value - a @ w


@for_each("zero_plane, alpha, risk", crossed([True, False], [3e-2, 3e-3], ["hinge", "roc_area"], strength=1))
def test_bundle_goes_from_minimum_to_minimum_of_its_planes(monkeypatch, risk, alpha, zero_plane):
    X, y = data(20, 4)
    solver = BundleSolver(tol=1e-12, max_iter=10, zero_plane=zero_plane)
    recorded = watched(solver, monkeypatch, lambda objective, state: (state.w.copy(), state.lower_bound))
    result = solver.solve(problem(risk, alpha, 20, 4))
    assert result.n_iter == 10
    slopes, constants = ([np.zeros(4)], [0.0]) if zero_plane else ([], [])
    w, best = np.zeros(4), np.inf
    bound = 0.0 if zero_plane else -np.inf
    for k, (w_k, bound_k) in enumerate(recorded):
        value, a, b = subgradient(risk, X, y, w)
        best = min(best, value + 0.5 * alpha * w @ w)
        slopes.append(a)
        constants.append(b)
        v = cp.Variable(4)
        model = cp.max(np.array(constants) + np.array(slopes) @ v)
        task = cp.Problem(cp.Minimize(0.5 * alpha * cp.sum_squares(v) + model))
        task.solve(solver=cp.CLARABEL, tol_gap_abs=1e-13, tol_gap_rel=1e-13, tol_feas=1e-13)
        w = v.value
        bound = max(bound, task.value)
        # CLARABEL's 1e-13 in the value is sqrt(2e-13 / alpha), about 5e-6, in w at the worst; it does better.
        np.testing.assert_allclose(w_k, w, atol=1e-6, err_msg=f"iteration {k + 1}")
        assert bound_k == pytest.approx(bound, abs=1e-9)
    best = min(best, subgradient(risk, X, y, w)[0] + 0.5 * alpha * w @ w)
    assert result.objective == pytest.approx(best, abs=1e-6)


def reference_mixtures(risk, X, y, alpha, iterations):
    """Yield (w_k, slope, constant, share before clipping) of the line-search variant, from its definition."""
    w, v, c = np.zeros(X.shape[1]), None, None
    for _ in range(iterations):
        _, a, b = subgradient(risk, X, y, w)
        raw = np.nan
        if v is None:
            v, c = a, b
        else:
            raw = (alpha * (c - b) - a @ (v - a)) / ((v - a) @ (v - a))
            share = min(1.0, max(0.0, raw))
            v, c = share * v + (1 - share) * a, share * c + (1 - share) * b
        w = -v / alpha
        yield w, v, c, raw


@for_each("alpha", [1e-1, 1e-2, 1e-3])
@for_each("risk", ["hinge", "roc_area"])
def test_the_line_search_variant_mixes_as_in_the_formula(monkeypatch, risk, alpha):
    X, y = data(20, 4)
    solver = BundleLineSearchSolver(tol=1e-12, max_iter=25)
    recorded = watched(
        solver,
        monkeypatch,
        lambda objective, state: (state.w, state.slope, state.mixture["constant"], state.lower_bound),
    )
    solver.solve(problem(risk, alpha, 20, 4))
    proved = -np.inf
    for (w, slope, constant, bound), (w_k, v, c, _) in zip(
        recorded, reference_mixtures(risk, X, y, alpha, 25), strict=True
    ):
        # Rounding, divided by alpha: the steps do not magnify it.
        np.testing.assert_allclose(slope, v, atol=1e-12)
        np.testing.assert_allclose(w, w_k, atol=1e-10)
        assert constant == pytest.approx(c, abs=1e-12)
        proved = max(proved, c - v @ v / (2 * alpha))
        assert bound <= proved
        size = 1.0 + v @ v / alpha
        assert bound == pytest.approx(proved, abs=1e-11 * size)  # less the allowance for rounding


@for_each(
    "old, new, share",
    [
        # v, c and a, b in one dimension, alpha = 1: eta = (c - b - a (v - a)) / (v - a)^2, then clipped.
        ((1.0, 0.0), (-1.0, 0.0), 0.5),
        ((1.0, 0.5), (-1.0, 0.0), 0.625),
        ((1.0, 3.0), (-1.0, 0.0), 1.0),  # 1.25
        ((1.0, 0.0), (-1.0, 9.0), 0.0),  # -1.75
        ((2.0, 0.0), (1.0, 0.0), 0.0),  # -1
        ((1.0, 0.0), (2.0, 0.0), 1.0),  # 2
        ((1.0, 0.5), (1.0, 0.25), 1.0),  # the same slope: the larger constant
        ((1.0, 0.25), (1.0, 0.25), 1.0),
        ((1.0, 0.25), (1.0, 0.5), 0.0),
    ],
)
def test_shares_of_two_planes(old, new, share):
    objective = Objective(as_operator(np.eye(2)), HingeRisk().prepare(np.array([1, -1])), 1.0)
    solver = BundleLineSearchSolver()
    state = solver.start(objective, np.zeros(2))
    solver.resume(objective, state)
    for slope, constant in (old, new):
        grad = np.array([slope, 0.0])
        point = solver._point
        solver._point = type(point)(
            point.w, point.z, 0.0, point.risk._replace(grad=grad, plane=constant), point.penalty
        )
        solver.step(objective, state)
    expected = share * old[0] + (1 - share) * new[0]
    # All these numbers are exact.
    assert state.slope.tolist() == [expected, 0.0]
    assert state.mixture["constant"] == share * old[1] + (1 - share) * new[1]
    assert state.w.tolist() == [-expected, 0.0]


def test_the_bound_printed_for_the_line_search_is_none_and_ours_is_one():
    """Zhang et al. (2010), Theorem 2's example: the largest plane plus the penalty at w_k exceeds min J at k = 3 to 12."""
    example = hard_for_cutting_planes(3)[-1]
    assert example.solver == "bundle_ls"
    objective = Objective(as_operator(example.X), HingeRisk(ties="smallest").prepare(example.y), example.alpha)
    solver, printed, ours = BundleLineSearchSolver(tol=1e-12), [], []
    state = solver.start(objective, example.w0)
    solver.resume(objective, state)
    slopes, constants = [], []
    for _ in range(12):
        _, a, b = subgradient("hinge", example.X, example.y, state.w)
        slopes.append(a[0])
        constants.append(b)
        solver.step(objective, state)
        w = state.w[0]
        printed.append(0.5 * example.alpha * w * w + (np.array(constants) + np.array(slopes) * w).max())
        ours.append(state.lower_bound)
    exceeds = [k for k, value in enumerate(printed, 1) if value > example.optimum + 1e-9]
    assert exceeds == list(range(3, 13))
    assert max(ours) <= example.optimum
    assert ours[-1] > 0.9 * example.optimum


# ------------------------------------------------------------------------------------------------------------ OCAS


class Tally:
    """Counts products with X."""

    def __init__(self, monkeypatch, operator):
        self.order = []
        for name in ("matvec", "rmatvec"):
            self._count(monkeypatch, operator, name)

    def _count(self, monkeypatch, operator, name):
        original = getattr(operator, name)

        def counted(vector):
            self.order.append(name)
            return original(vector)

        monkeypatch.setattr(operator, name, counted)


@for_each("max_iter, solver_class", crossed([1, 7, 49, 50, 51, 120], SOLVERS, strength=1))
def test_two_passes_per_iteration(monkeypatch, solver_class, max_iter):
    objective = problem("roc_area", 1e-6, 400, 20)
    tally = Tally(monkeypatch, objective.operator)
    result = solver_class(tol=1e-14, max_iter=max_iter).solve(objective)
    assert result.n_iter == max_iter, "choose a harder problem"
    refreshes = max_iter // bundle_ocas.REFRESH_ITERATIONS if solver_class is BundleOcasSolver else 0
    # X'u for the plane, Xw at the target; none at w0 = 0; the final proof.
    assert tally.order.count("rmatvec") == max_iter
    assert tally.order.count("matvec") == max_iter + refreshes + 1
    assert result.n_passes == len(tally.order) == objective.n_passes
    refreshed = [solver_class is BundleOcasSolver and k % 50 == 49 for k in range(max_iter)]
    assert np.diff(result.history["passes"]).tolist() == [2 + fresh for fresh in refreshed]
    assert result.history["passes"][0] == 0.0


@every_solver
def test_another_start_costs_one_pass_more(solver_class):
    result = solver_class(tol=1e-14, max_iter=3).solve(problem("roc_area", 1e-4, 50, 5), np.full(5, 0.1))
    assert result.n_passes == 1 + 2 * 3 + 1


@for_each("alpha, risk", crossed([1e-2, 1e-4], RISKS, strength=1))
def test_the_objective_of_ocas_never_rises_and_is_that_of_its_best_point(monkeypatch, risk, alpha):
    solver = BundleOcasSolver(tol=1e-9, max_iter=120)
    fresh = problem(risk, alpha, 60, 5)
    recorded = watched(solver, monkeypatch, lambda objective, state: (state.best_objective, fresh.value(state.best_w)))
    result = solver.solve(problem(risk, alpha, 60, 5))
    carried, values = np.array(recorded).T
    assert (np.diff(carried) <= 0.0).all()
    np.testing.assert_allclose(carried, values, rtol=1e-12)  # carried scores drift by rounding only
    assert result.objective == pytest.approx(carried[-1], rel=1e-12)


def exact_line_minimum(objective, w, d):
    """Return (s, J) at the minimum over s >= 0 of J(w + s d), bracketed by doubling and found by golden section and Brent."""

    def along(s):
        return objective.value(w + s * d)

    high = 1.0
    while along(high) < along(0.5 * high) and high < 1e9:
        high *= 2.0
    grid = np.linspace(0.0, high, 41)
    values = [along(s) for s in grid]
    i = int(np.argmin(values))
    low, high = grid[max(i - 1, 0)], grid[min(i + 1, 40)]
    found = minimize_scalar(along, bounds=(low, high), method="bounded", options={"xatol": 1e-10 * max(high, 1e-3)})
    return min((values[i], grid[i]), (found.fun, found.x))[::-1]


@for_each("alpha, risk", crossed([1e-1, 1e-3], RISKS, strength=1))
def test_ocas_minimises_on_every_line_to_its_share_of_the_gap(monkeypatch, risk, alpha):
    fresh = problem(risk, alpha, 40, 4)
    lines, errors = [], []
    search = LineMinimum.search

    def recording_search(line, grad_best, z_trial, grad_trial, first, error):
        best, *buffers = search(line, grad_best, z_trial, grad_trial, first, error)
        errors.append((best.share, best.value, error))
        return best, *buffers

    monkeypatch.setattr(LineMinimum, "search", recording_search)
    solver = BundleOcasSolver(tol=1e-7, max_iter=30)
    target, step = BundleOcasSolver._target, solver.step

    def recording_target(own, objective, state, point):
        lines.append([state.best_w.copy(), target(own, objective, state, point)])
        return lines[-1][1]

    def recording_step(objective, state):
        moved = step(objective, state)
        lines[-1] += [state.best_w.copy(), state.w.copy(), state.best_objective, state.lower_bound]
        return moved

    monkeypatch.setattr(BundleOcasSolver, "_target", recording_target)
    monkeypatch.setattr(solver, "step", recording_step)
    solver.solve(problem(risk, alpha, 40, 4))
    assert len(lines) >= 5
    before = fresh.value(np.zeros(4))
    for (w, goal, best_w, ahead, value, bound), (share, found, error) in zip(lines, errors, strict=True):
        d = goal - w
        assert error == pytest.approx(bundle_ocas.LINE_GAP_SHARE * (before - bound), rel=1e-9)
        s, least = exact_line_minimum(fresh, w, d)
        # scipy's minimum is within a rounding of a kink, or within (1e-10 of the line)^2 of a smooth one.
        assert found <= least + error + 1e-9 * before
        assert found >= least - 1e-9 * before
        assert value == pytest.approx(min(found, before), rel=1e-12)
        np.testing.assert_allclose(best_w, w + share * d, atol=1e-12 * np.abs(d).max())
        assert s >= 0.0
        # The next plane is taken a tenth of the way from there to the target; beyond the target, at the point itself.
        expected = best_w + 0.1 * (goal - best_w) if share < 1.0 else best_w
        np.testing.assert_allclose(ahead, expected, atol=1e-12 * np.abs(d).max())
        before = value


# ----------------------------------------------------------------------------------------------------- LineMinimum


def piecewise(rows, alpha, w, d):
    """Return (s, J) at the minimum over s >= 0 of alpha/2 |w + s d|^2 + mean max(0, 1 - rows (w + s d)), exactly."""
    margins, speeds = rows @ w, rows @ d

    def value(s):
        return 0.5 * alpha * ((w + s * d) ** 2).sum() + np.maximum(0.0, 1.0 - margins - s * speeds).mean()

    with np.errstate(divide="ignore", invalid="ignore"):
        kinks = (1.0 - margins) / speeds
    kinks = np.unique(np.append(kinks[np.isfinite(kinks) & (kinks > 0.0)], 0.0))
    candidates = list(kinks)
    for low, high in zip(kinks, np.append(kinks[1:], np.inf), strict=True):
        inside = 0.5 * (low + high) if np.isfinite(high) else low + 1.0
        slope = -(speeds * (1.0 - margins - inside * speeds > 0.0)).mean()
        own = -(alpha * w @ d + slope) / (alpha * d @ d)
        if low < own < high:
            candidates.append(own)
    values = [value(s) for s in candidates]
    return candidates[int(np.argmin(values))], min(values)


def search(X, y, alpha, w, d, first=1.0, error=0.0):
    """Return (best, the subgradient at best, evaluations of the risk) of a search with fresh scratch."""
    objective = Objective(as_operator(X), HingeRisk().prepare(y), alpha)
    z, z_d = X @ w, X @ d
    point = objective.at(w, z)
    evaluate, calls = objective.risk.evaluate, []

    def counted(*args, **options):
        calls.append(1)
        return evaluate(*args, **options)

    objective.risk.evaluate = counted
    line = LineMinimum(objective, w, z, d, z_d, point.risk.hard)
    grad = point.risk.grad.copy()
    best, carried, other = line.search(grad, np.empty(len(y)), np.empty(len(y)), first, error)
    assert carried is not other
    at = objective.at(w + best.share * d, z + best.share * z_d)
    # The subgradient that is kept belongs to the best point: the next search starts from it.
    np.testing.assert_array_equal(carried, at.risk.grad)
    assert best.value == pytest.approx(at.objective, rel=1e-13)
    assert best.risk == at.risk.hard
    assert best.slope == pytest.approx(at.risk.grad @ z_d, rel=1e-12, abs=1e-15)
    return best, carried, len(calls) - 1


@for_each("first, error, alpha", crossed([1e-3, 0.3, 1.0, 50.0], [0.0, 1e-3, 1e-1], [1.0, 1e-2, 1e-5], strength=1))
def test_a_quadratic_and_straight_pieces(alpha, error, first):
    rng = np.random.default_rng(7)
    for trial in range(12):
        X, y = data(30, 3, seed=trial)
        w, d = rng.standard_normal(3), 10.0 ** rng.uniform(-1, 1) * rng.standard_normal(3)
        s, least = piecewise(X * y[:, None], alpha, w, d)
        best, _, trials = search(X, y, alpha, w, d, first, error)
        start = 0.5 * alpha * w @ w + np.maximum(0.0, 1.0 - y * (X @ w)).mean()
        assert best.value >= least - 1e-13 * start  # the exact minimum, up to rounding
        assert best.value <= least + error + 1e-9 * start  # the bracket is narrowed to 1e-12 of its end
        assert best.value <= start * (1 + 1e-15)
        assert trials <= MOST_TRIALS
        if s == 0.0:
            assert best.share == 0.0
            assert trials == 0


@for_each("alpha", [10.0, 1.0, 1e-2])
def test_two_tangents_and_the_penalty_bound_what_is_left(alpha):
    rng = np.random.default_rng(11)
    for trial in range(30):
        X, y = data(10, 2, seed=trial)
        w, d = rng.standard_normal(2), 3.0 * rng.standard_normal(2)
        objective = Objective(as_operator(X), HingeRisk().prepare(y), alpha)
        line = LineMinimum(objective, w, X @ w, d, X @ d, objective.risk.value(X @ w))
        shares = np.sort(rng.uniform(0.0, 2.0, 2))
        ends = []
        for s in shares:
            risk = objective.risk.evaluate(X @ (w + s * d))
            ends.append(line._end(s, risk.hard, risk.grad @ (X @ d)))
        share, bound = line._model(*ends)
        grid = np.linspace(*shares, 2001)
        tangents = np.max([end.risk + end.slope * (grid - end.share) for end in ends], axis=0)
        model = 0.5 * alpha * ((w + grid[:, None] * d) ** 2).sum(axis=1) + tangents
        assert shares[0] <= share <= shares[1]
        assert bound <= model.min() + 1e-12 * (1.0 + abs(bound))  # rounding
        # The model's slope is at most this, so a step of the grid cannot hide more.
        slope = alpha * np.abs(w + shares[1] * d) @ np.abs(d) + alpha * np.abs(w) @ np.abs(d) + np.abs(X @ d).mean()
        assert bound >= model.min() - slope * (shares[1] - shares[0]) / 2000.0
        assert bound <= min(objective.value(w + s * d) for s in grid[::100]) + 1e-12 * (1.0 + abs(bound))


def test_a_loose_search_is_content_sooner():
    X, y = data(200, 3)
    d = np.array([1.0, 0.5, -0.5])
    d = d if (X @ d * y).mean() > 0 else -d
    trials = [search(X, y, 1e-3, np.zeros(3), d, 1.0, error)[2] for error in (0.0, 1e-6, 1e-3, 1e9)]
    assert trials == sorted(trials, reverse=True)
    assert trials[-1] < trials[0]


ONE = np.array([[1.0], [-1.0]]), np.array([1, -1])  # R(w) = max(0, 1 - w)


@for_each("length", [0.001, 0.01, 0.3, 0.999, 1.0])
def test_the_minimum_may_lie_beyond_the_first_trial_and_beyond_1(length):
    # alpha small: the minimum is the kink at w = 1, which is 1 / length steps of d away.
    best, _, _ = search(*ONE, 1e-3, np.zeros(1), np.array([length]), 1.0)
    assert best.share == pytest.approx(1.0 / length, rel=1e-9)
    assert best.value == pytest.approx(0.5e-3, rel=1e-9)


def test_the_minimum_of_the_quadratic_inside_one_piece():
    # alpha = 4: J = 2 w^2 + 1 - w on the first piece, least at w = 1/4.
    for length, first in ((1.0, 1.0), (10.0, 1.0), (0.1, 1.0), (1.0, 0.25), (1.0, 1e-4)):
        best, _, trials = search(*ONE, 4.0, np.zeros(1), np.array([length]), first)
        assert best.share * length == pytest.approx(0.25, rel=1e-9)
        assert best.value == pytest.approx(0.875, rel=1e-12)
        assert trials <= MOST_TRIALS


@for_each("w, d", [(0.0, -1.0), (1.0, 1.0), (0.25, 1.0), (0.25, -1.0), (0.3, 1.0), (0.0, 0.0)])
def test_a_direction_that_does_not_lead_down_is_not_followed(w, d):
    best, _, trials = search(*ONE, 4.0, np.array([w]), np.array([d]))
    assert best.share == 0.0
    assert trials == 0
    assert best.value == 2.0 * w * w + max(0.0, 1.0 - w)


def test_a_flat_piece_ends_where_the_penalty_says():
    # From w = (3, 0) to (1, 0) and on to (-1, 0) the risk is 0 until w_1 < 1: only the penalty leads down, to the kink.
    X, y = np.array([[1.0, 0.0], [-1.0, 0.0]]), np.array([1, -1])
    best, _, _ = search(X, y, 1e-2, np.array([3.0, 0.0]), np.array([-1.0, 0.0]))
    assert best.share == pytest.approx(2.0, rel=1e-9)
    # Along (0, 1) the scores do not change at all: the quadratic alone, least at 0.
    for first in (0.1, 1.0, 7.0):
        best, _, trials = search(X, y, 1e-2, np.array([3.0, 5.0]), np.array([0.0, -2.0]), first)
        assert best.share == pytest.approx(2.5, rel=1e-9)
        assert best.value == pytest.approx(0.5e-2 * 9.0, rel=1e-12)
        assert trials <= 6, "one straight piece: the first bracket says where"


def test_a_flat_bottom_is_recognised():
    # With hardly any penalty J is 0 from w = 1 on: any point of the bottom will do.
    best, _, trials = search(*ONE, 1e-300, np.zeros(1), np.array([1.0]), 0.1, 1e-12)
    assert best.value <= 1e-12
    assert trials <= 10


# --------------------------------------------------------------------------------------------------- every risk


VARIANTS = [risk for kind in all_risks().values() for risk in kind.variants()]


@for_each("risk", VARIANTS)
def test_every_risk_is_served_and_the_three_agree(risk):
    X, y = data(40, 4)
    results = {}
    for solver_class in SOLVERS:
        assert solver_class.serves(risk)
        tol = 0.05 if solver_class.slow else 1e-4
        result = solver_class(tol=tol).solve(Objective(as_operator(X), risk.prepare(y), 0.1))
        assert result.status == "converged"
        objective = 0.05 * result.w @ result.w + risk.reference(X @ result.w, y)[0]
        # Not the kernels but the literal definition: rounding of 40 rows.
        assert result.objective == pytest.approx(objective, rel=1e-10, abs=1e-12)
        results[solver_class] = result
    for one, other in itertools.permutations(results.values(), 2):
        assert one.lower_bound <= other.objective


def test_the_solvers_are_listed_with_every_risk():
    table = {info.name: info for info in list_solvers()}
    for solver_class in SOLVERS:
        assert set(table[solver_class.name].risks) == set(all_risks())
        assert table[solver_class.name].alpha == "penalty alpha/2 |w|^2"


@for_each("solver_class", WITH_PLANES)
@for_each(
    "options, message",
    [
        ({"max_planes": 1}, "max_planes=1 must be an integer at least 2"),
        ({"max_planes": 2.5}, "max_planes=2.5 must be an integer"),
        ({"max_planes": "many"}, "max_planes='many' must be an integer"),
        ({"max_planes": True}, "max_planes=True must be an integer"),
        ({"zero_plane": 1}, "zero_plane=1 must be True or False"),
        ({"zero_plane": None}, "zero_plane=None must be True or False"),
        ({"zero_plane": "yes"}, "zero_plane='yes' must be True or False"),
    ],
)
def test_wrong_options_are_refused(solver_class, options, message):
    with pytest.raises(ValueError, match=message):
        solver_class(**options)
    X, y = data(20, 3)
    with pytest.raises(ValueError, match=message):
        MeasureClassifier(measure="f1", risk="contingency", solver=solver_class.name, solver_params=options).fit(X, y)


def test_the_line_search_variant_has_no_planes_to_limit():
    X, y = data(20, 3)
    with pytest.raises(ValueError, match=r"does not fit solver 'bundle_ls'.*'max_planes'"):
        MeasureClassifier(solver="bundle_ls", solver_params={"max_planes": 5}).fit(X, y)


class Clock:
    """A clock that moves one second with every reading."""

    now = 0.0

    def perf_counter(self):
        self.now += 1.0
        return self.now


@every_solver
def test_max_time_ends_a_run_with_what_was_found(monkeypatch, solver_class):
    result = solver_class(tol=1e-12, max_time=1e-12).solve(problem("f1", 1e-4, 60, 5))
    assert (result.status, result.n_iter) == ("max_time", 0)
    assert not result.w.any()
    monkeypatch.setattr(solver_loop, "time", Clock())
    result = solver_class(tol=1e-14, max_time=5.5).solve(problem("f1", 1e-4, 60, 5))
    assert result.status == "max_time"
    assert result.history["seconds"] == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    assert result.lower_bound <= result.objective <= result.history["objective"][0]
    assert problem("f1", 1e-4, 60, 5).value(result.w) == pytest.approx(result.objective, rel=1e-12)


@every_solver
def test_a_run_goes_on_from_its_record(solver_class):
    straight = solver_class(tol=1e-14, max_iter=30).solve(problem("roc_area", 1e-3, 60, 5))
    first = solver_class(tol=1e-14, max_iter=12).solve(problem("roc_area", 1e-3, 60, 5))
    rest = solver_class(tol=1e-14, max_iter=30).solve(problem("roc_area", 1e-3, 60, 5), state=first.state.record())
    # 30 iterations, or fewer where rounding lets nothing be gained any more.
    assert 12 < min(rest.n_iter, straight.n_iter) <= max(rest.n_iter, straight.n_iter) <= 30
    if solver_class is BundleOcasSolver:  # its line search begins again: another path to the same place
        assert rest.objective == pytest.approx(straight.objective, rel=1e-2)
        assert rest.lower_bound >= first.lower_bound
    else:
        np.testing.assert_allclose(rest.w, straight.w, atol=1e-9)  # rounding, divided by alpha
        assert rest.lower_bound == pytest.approx(straight.lower_bound, rel=1e-9)
    assert rest.lower_bound <= straight.objective
    assert straight.lower_bound <= rest.objective


@every_solver
def test_a_record_is_not_continued_on_another_risk_or_other_labels(solver_class):
    """Shape, alpha and J(0) are the same, the planes are not below the other risk: the bound would be false."""
    X, y = data(60, 4, 0)
    first, other = (Objective(as_operator(X), ContingencyRisk(name).prepare(y), 1e-2) for name in ("jaccard", "f1"))
    record = solver_class(tol=1e-3, max_iter=20).solve(first).state.record()
    with pytest.raises(ValueError, match="another problem"):
        solver_class().solve(other, state=record)
    swapped = Objective(as_operator(X), ContingencyRisk("jaccard").prepare(y[::-1]), 1e-2)
    with pytest.raises(ValueError, match="another problem"):
        solver_class().solve(swapped, state=record)


def test_a_resumed_run_keeps_to_its_own_number_of_planes():
    X, y = data(60, 4, 0)
    objective = Objective(as_operator(X), ContingencyRisk("f1").prepare(y), 1e-3)
    first = BundleSolver(tol=1e-9, max_iter=30, max_planes=50).solve(objective).state.record()
    assert len(first["planes"]["constants"]) > 4
    rest = BundleSolver(tol=1e-9, max_iter=31, max_planes=4).solve(objective, state=first)
    assert len(rest.state.planes["constants"]) <= 4
    best = BundleOcasSolver(tol=1e-6).solve(objective)
    assert rest.lower_bound <= best.objective


def test_accelerated_goes_on_where_the_smoothed_minimum_is_reached_exactly():
    """There no step moves; only a narrower ramp leads on."""
    example = hard_for_cutting_planes(400)[1]
    objective = Objective(as_operator(example.X), RocAreaRisk().prepare(example.y), example.alpha)
    result = AcceleratedSolver(tol=1e-2).solve(objective)
    assert result.status == "converged"
    assert result.lower_bound <= example.optimum <= result.objective


def test_where_only_rounding_is_left_the_run_stalls():
    X, y = data(60, 4, 0)
    objective = Objective(as_operator(X), ContingencyRisk("f1").prepare(y), 1e-2)
    result = BundleOcasSolver(tol=1e-15, max_iter=5000).solve(objective)
    assert result.status in ("stalled", "converged")
    assert result.n_iter < 1000


# ----------------------------------------------------------------------------------------------- the classifier


MEASURES = [
    ("f1", {}), ("fbeta", {"beta": 2.0}), ("fbeta", {"beta": 0.3}), ("jaccard", {}), ("gower_legendre", {"sigma": 2.0}),
    ("gmean", {}), ("hmean", {}), ("qmean", {}), ("min_tpr_tnr", {}), ("accuracy", {}), ("balanced_accuracy", {}),
    ("prbep", {}), ("precision_at_k", {"k": 7}), ("recall_at_k", {"k": 0.25}),
]  # fmt: skip


def fitted(measure="f1", measure_params=None, n=60, seed=0, weight=None, X=None, y=None, **options):
    if X is None:
        X, y = data(n, 4, seed)
    options = {"alpha": 1e-2, "risk": "contingency", **options}
    clf = MeasureClassifier(measure=measure, measure_params=measure_params, **options)
    return clf.fit(X, y, sample_weight=weight)


@for_each("measure, params", MEASURES)
def test_auto_takes_ocas_for_contingency_risks_and_proves_it(measure, params):
    X, y = data(60, 4)
    clf = fitted(measure, params)
    assert (clf.solver_, clf.risk_, clf.status_) == ("bundle_ocas", "contingency", "converged")
    assert clf.gap_ == clf.objective_ - clf.lower_bound_
    assert clf.objective(X, y) == pytest.approx(clf.objective_, rel=1e-12)  # scores with the intercept added: rounding
    # From the definition: the risk of that measure with its parameters, at the trained coefficients.
    risk = ContingencyRisk(measure, params)
    z = X @ clf.coef_[0] + clf.trained_intercept_
    penalty = 0.5e-2 * (clf.coef_[0] @ clf.coef_[0] + clf.trained_intercept_**2)
    assert clf.objective_ == pytest.approx(penalty + risk.reference(z, y)[0], rel=1e-10)
    other = fitted(measure, params, solver="bundle", tol=1e-4)
    assert clf.lower_bound_ <= other.objective_
    assert other.lower_bound_ <= clf.objective_


def test_the_parameters_of_the_measure_reach_the_risk():
    X, y = data(60, 4)
    values = [fitted("fbeta", {"beta": beta}, tol=1e-6).objective_ for beta in (0.5, 1.0, 2.0)]
    assert len({round(value, 4) for value in values}) == 3
    assert fitted("f1", tol=1e-6).objective_ == pytest.approx(
        values[1], rel=1e-12
    )  # the same labellings, the same planes
    clf = fitted("fbeta", {"beta": 2.0}, tol=1e-6)
    assert clf.objective(X, y) == pytest.approx(clf.objective_, rel=1e-12)
    assert clf.set_params(measure_params={"beta": 0.5}).objective(X, y) != pytest.approx(clf.objective_, rel=1e-3)


def test_an_intercept_is_trained_where_the_risk_needs_one():
    for measure in ("f1", "jaccard", "gmean", "min_tpr_tnr", "accuracy"):
        assert fitted(measure).trained_intercept_ != 0.0
        assert fitted(measure, fit_intercept=False).trained_intercept_ == 0.0
    for measure, params in (("prbep", {}), ("precision_at_k", {"k": 7}), ("recall_at_k", {"k": 7})):
        assert fitted(measure, params).trained_intercept_ == 0.0


@for_each(
    "measure, risk, solver",
    [
        ("average_precision", "average_precision", "bundle_ocas"),
        ("partial_roc_auc", "partial_roc", "smoothed"),
        ("roc_auc", "roc_area", "smoothed"),
        ("prbep", "prbep", "smoothed"),
        ("f1", "logistic", "newton"),
    ],
)
def test_auto_takes_cutting_planes_only_where_nothing_else_serves(measure, risk, solver):
    X, y = data(60, 4)
    clf = fitted(measure, risk=risk, fit_intercept=False)  # whose coefficient cutting planes penalise
    assert (clf.solver_, clf.risk_, clf.status_) == (solver, risk, "converged")
    assert clf.objective(X, y) == pytest.approx(clf.objective_, rel=1e-12)
    other = fitted(measure, risk=risk, solver="bundle", tol=1e-3, fit_intercept=False)
    assert clf.lower_bound_ <= other.objective_
    assert other.lower_bound_ <= clf.objective_


@for_each("max_fpr", [0.05, 0.3])
def test_partial_roc_follows_its_measure(max_fpr):
    X, y = data(60, 4)
    clf = fitted("partial_roc_auc", {"max_fpr": max_fpr}, risk="partial_roc", tol=1e-5)
    top = int(max_fpr * (y < 0).sum())
    z = X @ clf.coef_[0]
    worst = np.sort(z[y < 0])[::-1][: max(1, top)]
    literal = np.maximum(0.0, 1.0 - z[y > 0][:, None] + worst[None, :]).mean()
    assert clf.objective_ == pytest.approx(literal + 0.5e-2 * clf.coef_[0] @ clf.coef_[0], rel=1e-10)
    for solver in ("bundle", "bundle_ocas"):
        other = fitted("partial_roc_auc", {"max_fpr": max_fpr}, risk="partial_roc", solver=solver, tol=1e-5)
        assert other.objective_ == pytest.approx(clf.objective_, rel=2e-5)


@for_each("measure, solver", crossed(["f1", "gmean", "min_tpr_tnr", "prbep"], ["bundle_ocas", "bundle"], strength=1))
def test_whole_weights_are_repeated_rows(measure, solver):
    X, y = data(40, 4)
    weight = np.random.default_rng(3).integers(0, 4, 40)
    weight[:2] = 1
    rows = np.repeat(np.arange(40), weight)
    one = fitted(measure, X=X, y=y, weight=weight, solver=solver, tol=1e-6)
    other = fitted(measure, X=X[rows], y=y[rows], solver=solver, tol=1e-6)
    assert one.objective_ == pytest.approx(other.objective_, abs=max(one.gap_, other.gap_))
    assert one.objective(X[rows], y[rows]) == pytest.approx(one.objective_, rel=1e-12)
    assert one.objective(X, y, weight) == pytest.approx(one.objective_, rel=1e-12)


def test_average_precision_takes_whole_weights_too():
    X, y = data(40, 4)
    weight = 1 + np.arange(40) % 3
    rows = np.repeat(np.arange(40), weight)
    options = {"measure": "average_precision", "risk": "average_precision", "tol": 1e-5}
    one, other = fitted(X=X, y=y, weight=weight, **options), fitted(X=X[rows], y=y[rows], **options)
    assert one.objective_ == pytest.approx(other.objective_, abs=max(one.gap_, other.gap_))


@for_each("measure, risk", [("f1", "contingency"), ("average_precision", "average_precision")])
def test_balanced_class_weights_are_refused_with_advice(measure, risk):
    X, y = data(61, 4)
    with pytest.raises(ValueError, match=f"risk '{risk}'.*whole numbers.*class_weight=None.*another risk"):
        fitted(measure, risk=risk, X=X, y=y, class_weight="balanced")
    with pytest.raises(ValueError, match=r"whole numbers.*got 0\.5 in row 3"):
        fitted(measure, risk=risk, X=X, y=y, weight=np.where(np.arange(61) == 3, 0.5, 1.0))
    # The separable losses take any.
    assert fitted("min_tpr_tnr", X=X, y=y, class_weight="balanced").status_ == "converged"


def test_a_measure_without_a_worst_labelling_is_refused_with_advice():
    with pytest.raises(ValueError, match=r"no way to find the worst labelling for measure 'mcc'.*Use risk='auto'"):
        fitted("mcc")


@for_each("solver, measure", crossed(["bundle_ocas", "bundle", "bundle_ls"], ["f1", "prbep"], strength=1))
def test_sparse_and_single_precision_data(measure, solver):
    X, y = data(60, 4)
    X = np.round(4.0 * X) / 4.0 * (np.abs(X) > 0.3)  # the same numbers in single precision
    options = {"solver": solver, "alpha": 0.1, "tol": 0.05}
    plain = fitted(measure, X=X, y=y, **options)
    for other in (X.astype(np.float32), sp.csr_matrix(X), sp.csr_matrix(X.astype(np.float32))):
        clf = fitted(measure, X=other, y=y, **options)
        assert clf.status_ == "converged"
        # Both runs prove an interval that holds the same minimum; sums in another order may lead along another path.
        assert clf.lower_bound_ <= plain.objective_
        assert plain.lower_bound_ <= clf.objective_
        assert clf.objective(X, y) == pytest.approx(clf.objective_, rel=1e-12)


def test_max_time_and_max_iter_warn_and_say_what_was_asked():
    X, y = data(60, 4)
    with pytest.warns(ConvergenceWarning, match="max_time.*0 iterations"):
        fitted(X=X, y=y, max_time=1e-12)
    with pytest.warns(ConvergenceWarning, match="max_iter.*2 iterations"):
        clf = fitted(X=X, y=y, max_iter=2, tol=1e-6)
    assert clf.status_ == "max_iter"
    assert clf.lower_bound_ <= fitted(X=X, y=y).objective_


@for_each("max_planes", [2, 5])
def test_few_planes_through_the_classifier(max_planes):
    X, y = data(60, 4)
    few = fitted(X=X, y=y, alpha=0.1, solver_params={"max_planes": max_planes}, tol=0.05)
    many = fitted(X=X, y=y, alpha=0.1, tol=1e-4)
    assert few.status_ == "converged"
    assert few.lower_bound_ <= many.objective_
    assert many.lower_bound_ <= few.objective_
