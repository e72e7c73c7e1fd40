"""Every solver: its contract, its certificate against optima found by other means, its golden values."""

import functools
import warnings

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import crossed, for_each
from scoreline.objective import Objective
from scoreline.operators import as_operator
from scoreline.risks.registry import all_risks, get_risk
from scoreline.solvers.registry import all_solvers
from scoreline.testing import check_solver
from tiers import TIER, examples

SOLVERS = {name: solver for name, solver in all_solvers().items() if solver.certified}
RISKS = all_risks()
SUPPORTED = [(s, r) for s in SOLVERS for r in RISKS if SOLVERS[s].serves(RISKS[r])]
# Risks whose optimum is written down for cvxpy below; the others are in test_solver_bundles.py, slow solvers too.
WRITTEN = ("hinge", "squared_hinge", "logistic", "roc_area", "roc_area_squared", "prbep")
PAIRS = [(s, r) for s, r in SUPPORTED if r in WRITTEN and not SOLVERS[s].slow]
KINDS = (
    "gaussian", "ties", "duplicates", "one_positive", "mostly_positive", "float32", "integer_weights", "real_weights",
    "wide", "separable",
)  # fmt: skip


def reachable(solver, tol):
    """Return a tolerance that the solver reaches in 5000 iterations: a first-order method needs 1/sqrt(mu) of them."""
    return max(tol, 1e-2) if solver == "accelerated" else tol


def problem(kind, seed=0):
    """Return X, y in {-1, +1} and weights (or None)."""
    rng = np.random.default_rng([seed, KINDS.index(kind)])
    n, p = (12, 25) if kind == "wide" else (30, 4)
    X = rng.standard_normal((n, p))
    noise = 0.0 if kind == "separable" else 1.0
    y = np.where(X @ rng.standard_normal(p) + noise * rng.standard_normal(n) > 0.3, 1, -1)
    y[:2] = 1, -1
    weight = None
    if kind == "ties":
        X = np.round(X)
    elif kind == "duplicates":
        rows = np.r_[np.arange(n // 2), np.arange(n // 2)]
        X, y = X[rows], y[rows]
    elif kind == "one_positive":
        y = np.where(np.arange(n) == 5, 1, -1)
    elif kind == "mostly_positive":
        y = np.where(np.arange(n) < n - 4, 1, -1)
    elif kind == "float32":
        X = X.astype(np.float32)
    elif kind == "integer_weights":
        weight = rng.integers(0, 4, n).astype(float)
        weight[:2] = 1.0
    elif kind == "real_weights":
        weight = rng.uniform(0.01, 5.0, n)
    return X, y, weight


@for_each("ending, solver, risk", crossed([{"max_time": 1e-9}, {"max_iter": 1}], SUPPORTED))
def test_a_certified_solver_has_a_lower_bound_however_early_it_ends(solver, risk, ending):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((400, 3))
    y = np.where(X[:, 0] + rng.standard_normal(400) > 0.5, 1, -1)
    objective = Objective(as_operator(X), get_risk(risk).prepare(y), alpha=1e-2)
    options = {"first_rows": 20} if solver == "hybrid" else {}
    result = SOLVERS[solver](tol=1e-9, **options, **ending).solve(objective)
    assert result.lower_bound is not None
    assert 0.0 <= result.lower_bound <= result.objective
    assert result.gap == result.objective - result.lower_bound


def literal(w, X, y, weight, alpha, risk):
    """Return J(w) from the definition: no kernel, no sort, every pair visited."""
    w = np.asarray(w, dtype=float)
    value, _, _ = RISKS[risk].reference(np.asarray(X, dtype=float) @ w, y, weight)
    return 0.5 * alpha * float(w @ w) + value


def independent_optimum(X, y, weight, alpha, risk):
    """Return (J, w) of cvxpy's solution; J is evaluated here, so it is never below the true minimum."""
    X = np.asarray(X, dtype=float)
    s = np.ones(len(y)) if weight is None else weight
    w = cp.Variable(X.shape[1])
    if risk in ("roc_area", "roc_area_squared"):
        i, j = np.nonzero(np.outer(y > 0, y < 0))
        keep = s[i] * s[j] > 0
        i, j = i[keep], j[keep]
        loss, share = cp.pos(1 - (X[i] - X[j]) @ w), s[i] * s[j] / (s[y > 0].sum() * s[y < 0].sum())
        if risk == "roc_area_squared":
            loss = 0.5 * cp.square(loss)
    elif risk == "prbep":  # its dual: a hinge with a free bias
        bias, total, plus = cp.Variable(), s.sum(), s[y > 0].sum()
        loss, share = cp.pos(np.where(y > 0, total / (2 * plus), 0.0) - cp.multiply(y, X @ w + bias)), 2 * s / total
    else:
        t = 1 - cp.multiply(y, X @ w)
        loss = {
            "hinge": lambda: cp.pos(t),
            "squared_hinge": lambda: 0.5 * cp.square(cp.pos(t)),
            "logistic": lambda: cp.logistic(t - 1),
        }[risk]()
        share = s / s.sum()
    task = cp.Problem(cp.Minimize(0.5 * alpha * cp.sum_squares(w) + share @ loss))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # "may be inaccurate": 1e-12 is asked for, 1e-8 is enough here
        task.solve(solver=cp.CLARABEL, tol_gap_abs=1e-12, tol_gap_rel=1e-12, tol_feas=1e-12)
    assert task.status in ("optimal", "optimal_inaccurate")
    return literal(w.value, X, y, weight, alpha, risk), w.value


@functools.cache
def reference_case(kind, risk, alpha):
    return independent_optimum(*problem(kind), alpha, risk)


def with_few_risks(solver):
    """Return the solver, in the tier `quick` as a class that serves a few of its risks only."""

    def serves(cls, risk):
        return risk.name in ("hinge", "hinge_free_intercept", "logistic", "roc_area") and solver.serves(risk)

    return type(solver.__name__, (solver,), {"serves": classmethod(serves)}) if TIER == "quick" else solver


@for_each("name", SOLVERS)
def test_contract(name):
    check_solver(with_few_risks(SOLVERS[name]))


@for_each("name", [name for name in SOLVERS if "memory" in SOLVERS[name].options()])
def test_contract_with_a_short_memory(name):
    # memory=1 is the shortest that the two loops can have; another seed draws another problem
    check_solver(with_few_risks(SOLVERS[name]), seed=7, memory=1)


def test_every_risk_has_a_solver():
    assert {r for _, r in SUPPORTED} == set(RISKS)
    assert set(RISKS) >= {"hinge", "squared_hinge", "logistic", "roc_area"}


@for_each(
    "alpha, kind, solver, risk",
    crossed([1e-4, 1e-2, 1.0], KINDS, [p for p in PAIRS if p[1] in ("hinge", "squared_hinge", "logistic", "roc_area")]),
)
def test_certificate_brackets_the_independent_optimum(solver, risk, kind, alpha):
    X, y, weight = problem(kind)
    best, w_best = reference_case(kind, risk, alpha)
    tol = 1e-4
    objective = Objective(as_operator(X), get_risk(risk).prepare(y, weight), alpha)
    tol = reachable(solver, tol)
    result = SOLVERS[solver](tol=tol).solve(objective)
    assert result.status == "converged"
    # J of any w bounds the minimum from above: no tolerance but the rounding of 30 numbers summed here.
    assert result.lower_bound <= best * (1 + 1e-13)
    # cvxpy is accurate to about 1e-8 of quantities of size 1, so 1e-6 relative leaves room for small optima.
    assert result.objective >= best * (1 - 1e-6)
    floor = 1e-3 * RISKS[risk].reference(np.zeros(len(y)), y, weight)[0]
    assert result.objective - result.lower_bound <= tol * max(result.lower_bound, floor)
    assert result.gap == result.objective - result.lower_bound
    # The two runs cannot differ by more than what was proved, plus cvxpy's accuracy.
    assert abs(result.objective - best) <= result.gap + 1e-6 * best
    # J is alpha-strongly convex, so alpha/2 |w - w*|^2 <= J(w) - J*; cvxpy's own error comes on top for its w.
    distance = np.linalg.norm(result.w - w_best)
    assert distance <= np.sqrt(2 * result.gap / alpha) + np.sqrt(2 * 1e-6 * best / alpha)
    # Reported values are those of the definition: rounding only.
    assert result.objective == pytest.approx(literal(result.w, X, y, weight, alpha, risk), rel=1e-12)


@for_each("solver, risk", PAIRS)
def test_a_tight_run_agrees_with_cvxpy_to_its_accuracy(solver, risk):
    X, y, weight = problem("real_weights")
    best, _ = reference_case("real_weights", risk, 1e-2)
    objective = Objective(as_operator(X), get_risk(risk).prepare(y, weight), 1e-2)
    tol = reachable(solver, 1e-8)
    result = SOLVERS[solver](tol=tol).solve(objective)
    assert result.status == "converged"
    assert result.gap <= tol * result.lower_bound
    assert result.lower_bound == pytest.approx(best, rel=max(tol, 1e-6))  # cvxpy: about 1e-8
    assert result.objective == pytest.approx(best, rel=max(tol, 1e-6))


@functools.cache
def loose_and_tight(solver, risk, kind, alpha):
    X, y, weight = problem(kind, seed=1)
    runs = []
    for tol in (0.1, reachable(solver, 1e-8)):
        objective = Objective(as_operator(X), get_risk(risk).prepare(y, weight), alpha)
        runs.append(SOLVERS[solver](tol=tol, max_iter=2000).solve(objective))
    return X, y, weight, *runs


@examples(120)
@given(
    pair=st.sampled_from(PAIRS),
    kind=st.sampled_from(KINDS),
    alpha=st.sampled_from([1e-3, 1e-1]),
    seed=st.integers(0, 2**32 - 1),
    size=st.sampled_from([1e-8, 1e-4, 1e-2, 1.0, 100.0]),
    around_optimum=st.booleans(),
)
def test_no_w_lies_below_the_lower_bound(pair, kind, alpha, seed, size, around_optimum):
    solver, risk = pair
    X, y, weight, loose, tight = loose_and_tight(solver, risk, kind, alpha)
    w = size * np.random.default_rng(seed).standard_normal(X.shape[1])
    if around_optimum:
        w += tight.w
    for run in (loose, tight):
        # 1e-13: rounding of the literal sums on this side.
        assert run.lower_bound <= literal(w, X, y, weight, alpha, risk) * (1 + 1e-13)
        assert run.lower_bound <= literal(tight.w, X, y, weight, alpha, risk) * (1 + 1e-13)
    assert loose.lower_bound <= tight.objective
    assert tight.lower_bound <= loose.objective


GOLDEN = {
    "d27": {
        "X": [
            [1.0184, -0.6687, 0.5401], [0.117, 1.5187, -0.0015], [0.9902, -0.9031, -0.1849],
            [-0.0967, 1.1391, 0.5796], [-0.7518, 0.682, 0.7706], [-0.1116, -0.2577, -0.1938],
            [-1.695, 0.1887, 0.2346], [-0.8655, 0.7424, -1.373], [-0.5518, -0.4752, 1.9875],
        ],
        "y": [-1, 1, -1, -1, 1, -1, -1, 1, -1], "alpha": 0.1863, "w": [-0.1394, 0.0574, -0.2027], "mu": 0.01,
        "J": 0.7400401606248335, "J_mu": 0.6500401606248334, "dual": -4.2947736051470145, "gap": 5.0348137657718475,
        "grad": [0.3997131133333333, -1.1331563799999997, 0.65738699], "optimum": 0.28598066301100783,  # d28
    },
    "d31": {
        "X": [
            [-0.2323, -0.1988, 0.1442], [0.4342, -0.8849, -0.0094], [-1.5224, 0.2608, 0.6236],
            [0.164, 0.2859, 0.5899], [-0.6651, -0.239, 0.5109], [1.0019, 0.3949, 2.5529],
            [-0.0914, 0.9997, 1.2667], [-0.1338, -0.8205, -1.1826], [0.1623, 1.1103, 0.2717],
        ],
        "y": [1, -1, -1, 1, -1, -1, -1, 1, -1], "alpha": 0.3471, "w": [0.5875, 0.2597, -1.3076], "mu": 0.01,
        "J": 0.7557260956994445, "J_mu": 0.7208618297472196, "dual": 0.37918368964134985, "gap": 0.37654240605809464,
        "grad": [0.19583127454567906, 0.10723588388395058, -0.45890193351111125], "optimum": 0.537629149139417,  # d32
    },
}  # fmt: skip


def golden_objective(case):
    return Objective(as_operator(np.array(case["X"])), get_risk("roc_area").prepare(np.array(case["y"])), case["alpha"])


@for_each("name", GOLDEN)
def test_golden_certificate(name):
    case = GOLDEN[name]
    objective, w = golden_objective(case), np.array(case["w"])
    point = objective.at(w, objective.scores(w), case["mu"])
    slope = objective.slope(point)
    dual = point.risk.plane - slope @ slope / (2 * case["alpha"])
    # 1e-10: the tolerance stated with the golden values.
    assert point.objective == pytest.approx(case["J"], abs=1e-10)
    assert point.value == pytest.approx(case["J_mu"], abs=1e-10)
    assert dual == pytest.approx(case["dual"], abs=1e-10)
    assert point.objective - dual == pytest.approx(case["gap"], abs=1e-10)
    np.testing.assert_allclose(case["alpha"] * w + slope, case["grad"], atol=1e-10, rtol=0)
    value, gradient = objective.value_grad(w, case["mu"])
    assert value == point.value
    np.testing.assert_allclose(gradient, case["grad"], atol=1e-10, rtol=0)
    assert objective.value(w) == pytest.approx(case["J"], abs=1e-10)


@for_each("solver", [s for s, r in PAIRS if r == "roc_area"])
@for_each("name", GOLDEN)
def test_golden_optimum(name, solver):
    case = GOLDEN[name]
    tol = reachable(solver, 1e-8)
    result = SOLVERS[solver](tol=tol).solve(golden_objective(case))
    assert result.status == "converged"
    # 1e-8: the tolerance stated with the golden values.
    assert result.lower_bound <= case["optimum"] + 1e-8
    assert result.objective >= case["optimum"] - 1e-8
    assert result.objective == pytest.approx(case["optimum"], abs=1e-8 + result.gap)
    assert result.gap <= tol * result.lower_bound


@for_each("name", GOLDEN)
def test_any_start_leads_to_the_golden_optimum(name):
    case = GOLDEN[name]
    for w0 in (np.array([5.0, -3.0, 2.0]), np.array([1e-9, 0.0, 0.0]), 1e4 * np.ones(3)):
        result = SOLVERS["smoothed"](tol=1e-6).solve(golden_objective(case), w0)
        assert result.status == "converged"
        assert result.lower_bound <= case["optimum"] + 1e-8
        assert result.objective <= case["optimum"] + result.gap + 1e-8  # golden tolerance


def test_w0_of_the_wrong_length_is_refused():
    with pytest.raises(ValueError, match=r"w0 has shape \(2,\), expected \(3,\)"):
        SOLVERS["smoothed"]().solve(golden_objective(GOLDEN["d27"]), np.zeros(2))


def test_w0_is_not_changed():
    w0 = np.array([0.5, -0.25, 1.0])
    SOLVERS["smoothed"](tol=1e-3).solve(golden_objective(GOLDEN["d27"]), w0)
    assert w0.tolist() == [0.5, -0.25, 1.0]


def test_a_solver_refuses_a_risk_it_does_not_serve():
    with pytest.raises(TypeError, match="'lbfgs' needs a smooth risk, 'roc_area'"):
        SOLVERS["lbfgs"]().solve(golden_objective(GOLDEN["d27"]))
