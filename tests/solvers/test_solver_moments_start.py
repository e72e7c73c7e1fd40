"""init="moments": every solver can begin where the class moments point, at the best length, and proves the same."""

import numpy as np
import pytest
import scipy.sparse as sp

from cases import crossed, for_each
from problems import made_objective
from scoreline.objective import Objective
from scoreline.operators import as_operator
from scoreline.risks.registry import all_risks, get_risk
from scoreline.solvers.common.moments_start import ACCURACY, moments_start
from scoreline.solvers.registry import all_solvers

SOLVERS = {name: solver for name, solver in all_solvers().items() if solver.certified}
PAIRS = [(s, r) for s in SOLVERS for r in all_risks() if SOLVERS[s].serves(all_risks()[r])]


def problem(risk, alpha=1e-3, storage=np.asarray, n=400, p=6, weighted=False, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) @ rng.standard_normal((p, p)) + 2.0
    score = X @ rng.standard_normal(p) + 2.0 * rng.standard_normal(n)
    y = np.where(score > np.quantile(score, 0.7), 1, -1)
    weight = rng.integers(1, 4, n).astype(float) if weighted else None
    return made_objective(storage(X), y, risk, alpha, weight, intercept=None)


@for_each("solver, risk", crossed(PAIRS, strength=1))
def test_it_proves_the_same_optimum(solver, risk):
    plain = SOLVERS[solver](tol=1e-3, max_iter=1000).solve(problem(risk))
    begun = SOLVERS[solver](tol=1e-3, max_iter=1000, init="moments").solve(problem(risk))
    assert begun.status == "converged" or SOLVERS[solver].slow
    assert begun.lower_bound <= plain.objective
    assert plain.lower_bound <= begun.objective


@for_each(
    "storage, weighted, risk",
    crossed([np.asarray, sp.csr_array, sp.csc_array], [False, True], sorted(all_risks()), strength=1),
)
def test_the_length_is_the_best_along_the_direction(risk, weighted, storage):
    objective = problem(risk, weighted=weighted, storage=storage)
    w = moments_start(objective)
    assert w.any()
    at = objective.value(w)
    assert at < objective.value(0.0 * w)
    lengths = np.linspace(0.5, 1.5, 41)
    best = min(objective.value(a * w) for a in lengths)
    # The length is known to ACCURACY on either side; J is convex along the line, so it rises by no more than that part of
    # what it rises over half of the length.
    slack = 2.0 * ACCURACY * (max(objective.value(0.5 * w), objective.value(1.5 * w)) - best)
    assert at <= best + slack + 1e-12


def test_it_costs_two_passes_and_serves_few_iterations():
    objective = problem("roc_area", alpha=1e-4)
    before = objective.n_passes
    moments_start(objective)
    assert objective.n_passes - before == 2.0


def test_useless_features_begin_at_zero():
    X = np.zeros((20, 3))
    y = np.where(np.arange(20) % 2, 1, -1)
    objective = Objective(as_operator(X), get_risk("roc_area").prepare(y), 1e-3)
    assert not moments_start(objective).any()


def test_other_words_are_refused():
    with pytest.raises(ValueError, match="init"):
        SOLVERS["smoothed"](init="null")
