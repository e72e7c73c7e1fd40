"""Many alphas in turn: bounds that hold, optima of cold runs, and far fewer passes."""

import numpy as np
import pytest

from cases import crossed, for_each
from problems import overlapping_rows
from scoreline.objective import Objective
from scoreline.operators import as_operator
from scoreline.risks.registry import all_risks, get_risk
from scoreline.solvers.common.lower_bound import LowerBound
from scoreline.solvers.common.path import solve_path
from scoreline.solvers.registry import all_solvers

ALPHAS = np.logspace(0, -5, 8)
PAIRS = [
    (solver.name, name)
    for solver in all_solvers().values()
    if solver.certified and solver.name != "excessive_gap"  # minutes at small alphas
    for name, risk in all_risks().items()
    if solver.serves(risk.variants()[0])
    and name in ("roc_area", "roc_area_squared", "prbep", "hinge", "logistic", "squared_hinge")
]


def problem(n=400, p=6):
    X, y = overlapping_rows(n, p, informative=4, share=0.2, separation=1.0)
    return X, np.where(y, 1, -1)


@for_each("solver, risk", crossed(PAIRS, strength=1))
def test_every_bound_holds_and_every_optimum_is_that_of_a_cold_run(solver, risk):
    X, y = problem()
    prepared = get_risk(risk).prepare(y)
    kind = all_solvers()[solver]
    own = kind(tol=1e-2, max_iter=200)
    warm = as_operator(X)
    for alpha, result in solve_path(Objective(warm, prepared, 1.0), ALPHAS, own):
        cold = kind(tol=1e-2, max_iter=200).solve(Objective(as_operator(X), prepared, alpha))
        assert result.lower_bound <= min(result.objective, cold.objective)
        assert cold.lower_bound <= result.objective
        assert result.objective == pytest.approx(Objective(as_operator(X), prepared, alpha).value(result.w), rel=1e-12)
        assert len({len(column) for column in result.history.values()}) == 1
        assert result.history["iteration"][0] == 0


@for_each("risk, share", [("roc_area", 0.5), ("prbep", 0.75), ("hinge", 0.5)])
def test_passes_are_at_most_half_of_those_of_cold_runs(risk, share):
    """PRBEP has w = 0 as its optimum for the strong penalties, and hands nothing on from there."""
    X, y = problem(3000, 12)
    prepared, alphas = get_risk(risk).prepare(y), np.logspace(0, -6, 15)
    kind = all_solvers()["smoothed"]
    warm, cold = as_operator(X), as_operator(X)
    assert len(list(solve_path(Objective(warm, prepared, 1.0), alphas, kind(init="zero")))) == len(alphas)
    for alpha in alphas:
        kind(init="zero").solve(Objective(cold, prepared, alpha))
    assert warm.n_passes <= share * cold.n_passes


def test_a_plane_for_another_alpha_proves_what_it_says():
    rng = np.random.default_rng(0)
    for _ in range(200):
        bound = LowerBound(3, 0.1)
        for _ in range(3):
            bound.add(rng.standard_normal(3), float(rng.random()), 1e-9)
        for alpha in (1e-3, 0.1, 7.0):
            record = LowerBound.at_alpha(bound.record(), 0.1, alpha)
            if not record:
                continue
            # min over w of alpha/2 |w|^2 + <v, w> + c, at w = -v / alpha; the plane itself is a mixture with (0, 0)
            exact = record["constant"] - record["slope"] @ record["slope"] / (2 * alpha)
            assert 0.0 < record["value"] <= exact + 1e-15
            share = np.linalg.norm(record["slope"]) / max(np.linalg.norm(bound.slope), 1e-300)
            assert share <= 1.0 + 1e-12
            # Rounding of |v|^2 / (2 alpha) grows as alpha falls.
            assert record["allowance"] >= share * bound.allowance * max(1.0, 0.1 / alpha) * (1.0 - 1e-12)
    assert LowerBound.at_alpha({}, 1.0, 0.5) == {}
