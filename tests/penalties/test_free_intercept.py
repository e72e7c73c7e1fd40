"""An intercept without penalty: the same model as scikit-learn's, and a lower bound that is one."""

import warnings
from fractions import Fraction

import cvxpy as cp
import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from cases import for_each
from scoreline.objective import Objective
from scoreline.operators import InterceptOperator, as_operator
from scoreline.penalties import BoundedPenalty, L2Penalty
from scoreline.risks.registry import all_risks, get_risk
from scoreline.solvers.registry import all_solvers
from tiers import TIER

TRAINED = sorted(n for n, r in all_risks().items() if (r.smooth or r.smoothable) and get_risk(n).shift == "needed")


def problem(seed, n=40, p=3, share=0.3, offset=0.0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) + offset
    y = np.where(
        (X - offset) @ rng.standard_normal(p) + rng.standard_normal(n)
        > np.quantile(rng.standard_normal(99), 1 - share),
        1,
        -1,
    )
    y[:2] = 1, -1
    return X, y


def objective(X, y, risk, alpha, value=1.0, weight=None):
    penalty = BoundedPenalty.of(L2Penalty(), X.shape[1]).with_constant(0.0)
    return Objective(InterceptOperator(as_operator(X), value), get_risk(risk).prepare(y, weight), alpha, penalty)


def solver_for(risk):
    return all_solvers()["lbfgs" if all_risks()[risk].smooth else "smoothed"]


def losses(risk, margins):
    return {
        "hinge": cp.pos(1 - margins), "squared_hinge": 0.5 * cp.square(cp.pos(1 - margins)), "logistic": cp.logistic(-margins),
    }[risk]  # fmt: skip


@for_each("risk", ["hinge", "squared_hinge", "logistic"])
def test_optimum_is_that_of_cvxpy(risk):
    for alpha in (1e-3, 0.1, 10.0):
        X, y = problem(1, offset=3.0)
        w, b = cp.Variable(3), cp.Variable()
        R = cp.sum(losses(risk, cp.multiply(y, X @ w + b))) / len(y)
        factor = (
            1.0 / np.log(2.0)
            if get_risk(risk).prepare(y).value(np.zeros(len(y))) == pytest.approx(1.0) and risk == "logistic"
            else 1.0
        )
        task = cp.Problem(cp.Minimize(0.5 * alpha * cp.sum_squares(w) + factor * R))
        task.solve(solver=cp.CLARABEL)
        result = solver_for(risk)(tol=1e-8, max_iter=3000).solve(objective(X, y, risk, alpha))
        assert result.objective == pytest.approx(task.value, rel=1e-6)
        assert result.lower_bound <= task.value * (1 + 1e-7)  # Clarabel's own error
        assert result.status == "converged"


@for_each("risk", TRAINED)
def test_bounds_lie_below_j_everywhere(risk):
    """Also with weights, rare classes, features far from 0 and a constant other than 1; J at other points is brute force."""
    rng = np.random.default_rng(3)
    for seed in range(4):
        n = 20 if risk == "contingency_entropy" else 60
        X, y = problem(seed, n, share=[0.5, 0.05][seed % 2], offset=[0.0, 30.0][seed // 2])
        weight = None if seed % 2 or not get_risk(risk).real_weights else rng.uniform(0.1, 3.0, n)
        alpha = float(10.0 ** rng.uniform(-5, 0))
        J = objective(X, y, risk, alpha, [1.0, 0.1, 10.0, 1.0][seed], weight)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            runs = [solver_for(risk)(tol=10.0**-k, max_iter=60).solve(J) for k in (1, 3, 8)]
        best = runs[-1].w
        for w in [
            *(run.w for run in runs),
            *(best + 10.0**-k * rng.standard_normal(4) * (1.0 + abs(best)) for k in range(5)),
        ]:
            value = J.value(w)
            # The bound is a proof, J here is a sum of rounded terms.
            assert all(run.lower_bound <= value * (1.0 + 1e-12) for run in runs)
        assert runs[-1].lower_bound > 0.5 * runs[-1].objective, "otherwise it proves little"


@for_each("risk", TRAINED)
def test_the_theorem_limits_the_intercept_of_every_point_of_the_level(risk):
    """Points with J <= level, found by following random rays out of the minimum, have their intercept within the limit."""
    rng = np.random.default_rng(4)
    for seed in range(3):
        n = 20 if risk == "contingency_entropy" else 50
        X, y = problem(seed, n, share=[0.5, 0.1, 0.9][seed])
        J = objective(X, y, risk, float(10.0 ** rng.uniform(-3, 0)))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            w = solver_for(risk)(tol=1e-3, max_iter=50).solve(J).w
        level = max(J.value(np.zeros(4)), J.value(w))
        limits = J.limits(level)
        assert np.isfinite(limits).all()
        for k in range(20):
            ray = rng.standard_normal(4) if k > 1 else np.array([0.0, 0.0, 0.0, 1.0 - 2.0 * k])
            far = 1e-3
            while far < 1e6 and J.value(w + 2.0 * far * ray) <= level:
                far *= 2.0
            assert (np.abs(w + far * ray) <= limits).all()


@for_each("risk", TRAINED)
def test_centring_finds_the_best_intercept(risk):
    rng = np.random.default_rng(5)
    n = 20 if risk == "contingency_entropy" else 50
    X, y = problem(2, n)
    J = objective(X, y, risk, 1e-2)
    mu = 0.0 if J.risk.smooth else 0.1 / J.risk.ramp_scale
    for scale in (0.1, 1.0, 30.0):
        w = scale * rng.standard_normal(4)
        point = J.at(w, J.scores(w), mu)
        found = J.centred(point)
        assert np.array_equal(found.w[:3], w[:3])
        np.testing.assert_allclose(found.z, J.scores(found.w), rtol=1e-12, atol=1e-12 * (1 + abs(found.z).max()))

        def along(b, z=point.z):
            return J.risk.evaluate(z + b, mu, grad=False).value

        best = minimize_scalar(along, bounds=(-200.0, 200.0), method="bounded", options={"xatol": 1e-9}).fun
        assert found.risk.value <= best + 1e-9 * (1.0 + abs(best))
        assert abs(found.risk.grad.sum()) <= 1e-12


def test_the_bound_is_a_proof_in_exact_arithmetic():
    """Hinge, in fractions: J of the best point known, and of points around it, is at least the bound."""
    rng = np.random.default_rng(6)
    for seed in range(5 if TIER == "quick" else 100):
        X, y = problem(seed, 12, 2, offset=float(rng.choice([0.0, 100.0])))
        alpha = float(10.0 ** rng.uniform(-6, 1))
        J = objective(X, y, "hinge", alpha)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = solver_for("hinge")(tol=float(10.0 ** rng.uniform(-12, -1)), max_iter=200).solve(J)
            tight = solver_for("hinge")(tol=1e-13, max_iter=400).solve(J)
        for w in (tight.w, result.w, 0.5 * (tight.w + result.w)):
            exact = [Fraction(float(v)) for v in w]
            terms = [
                max(
                    Fraction(0),
                    1 - int(s) * (sum(Fraction(float(x)) * v for x, v in zip(row, exact[:2], strict=True)) + exact[2]),
                )
                for row, s in zip(X, y, strict=True)
            ]
            value = Fraction(alpha) / 2 * sum(v * v for v in exact[:2]) + sum(terms) / len(y)
            assert Fraction(result.lower_bound) <= value
            assert Fraction(tight.lower_bound) <= value


@for_each("risk", ["logistic", "squared_hinge"])
def test_slopes_of_a_deep_tail_do_not_underflow_into_a_bracket(risk):
    """Products of two slopes of 1e-200 are 0: their signs were compared by it, and the secant divided by 0."""
    X, y = problem(0)
    target = objective(X * 1e-3, y, risk, 1e-4)
    rows = np.where(y > 0, 600.0, -600.0)  # logistic losses of exp(-600)
    rows[0] = 1.0 if risk == "squared_hinge" else 500.0
    point = target.at(np.zeros(4), rows)
    centred = target.centred(point)
    assert np.isfinite(centred.z).all()
    assert abs(centred.risk.grad.sum()) <= abs(point.risk.grad.sum())
