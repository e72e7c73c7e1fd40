"""Upper bounds of Zhang, Saha and Vishwanathan (2010, 2012): iterations of cutting planes, and their dependence on alpha."""

import itertools
import math

import numpy as np

from scoreline.objective import Objective
from scoreline.operators import as_operator
from scoreline.risks import HingeRisk, PrbepRisk, RocAreaRisk
from scoreline.solvers import AcceleratedSolver, BundleLineSearchSolver, BundleSolver, SmoothedSolver

ALPHAS = (1e-1, 1e-2, 1e-3)


def problem(risk, alpha, seed=0, rows=60):
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(rows) % 3 == 0, 1, -1)
    X = rng.standard_normal((rows, 5)) + 0.3 * y[:, None]
    return Objective(as_operator(X), risk.prepare(y), alpha)


def test_iterations_of_cutting_planes_are_bounded():
    """Theorem 3 of 2012 and theorem 1 of 2010: an eps-accurate solution after log2(alpha J(0) / G^2) + 8 G^2 / (alpha eps) - 1.

    G is the largest norm of the subgradients that were met, which is enough for the proof (2010, section 4.2).
    """
    for solver in (BundleSolver, BundleLineSearchSolver):
        for kind in (HingeRisk, RocAreaRisk, PrbepRisk):
            if solver is BundleLineSearchSolver and kind is not HingeRisk:
                continue  # the line search is of the hinge in the paper
            for alpha in ALPHAS:
                objective = problem(kind(), alpha)
                optimum = SmoothedSolver(tol=1e-9, max_iter=10_000, init="zero").solve(problem(kind(), alpha)).objective
                start = np.zeros(objective.n_features)
                steepest, gaps, best = 0.0, [], math.inf
                for state in solver(tol=1e-6, max_iter=2000).iterates(objective, start):
                    z = objective.operator.matvec(state.w)
                    slope = objective.operator.rmatvec(objective.risk.value_grad(z)[1])
                    steepest = max(steepest, float(np.linalg.norm(slope)))
                    best = min(best, objective.value(state.w))
                    gaps.append(best - optimum)
                    if gaps[-1] <= 1e-4:
                        break
                at_zero = objective.value(start)
                for eps in (0.1, 0.01, 1e-3, 1e-4):
                    if eps >= 4.0 * steepest**2 / alpha:
                        continue
                    allowed = math.log2(alpha * at_zero / steepest**2) + 8.0 * steepest**2 / (alpha * eps) - 1.0
                    needed = 1 + next(k for k, gap in enumerate(gaps) if gap <= eps)
                    assert needed <= allowed, (solver.name, kind.__name__, alpha, eps, needed, allowed)


def iterations_to(solver, objective, level):
    for state in solver.iterates(objective, np.zeros(objective.n_features)):
        if objective.value(state.best_w) <= level or state.iteration >= 5000:
            return state.iteration
    return 5000


def test_iterations_of_accelerated_gradients_do_not_follow_alpha():
    """(7) of 2012: of the order of min(1/eps, 1/sqrt(alpha eps)), where cutting planes have 1/(alpha eps).

    So a hundredth of alpha costs at most ten times the iterations, and below alpha = eps nothing more.
    """
    eps, needed, planes = 1e-2, [], []
    for alpha in (1e-2, 1e-4, 1e-6, 1e-8):
        risk = RocAreaRisk()
        optimum = SmoothedSolver(tol=1e-7, max_iter=10_000, init="zero").solve(problem(risk, alpha)).objective
        objective = problem(risk, alpha)
        mu = 0.5 * eps / objective.risk.prox_bound
        needed.append(iterations_to(AcceleratedSolver(mu=mu, tol=1e-9), objective, optimum + eps))
        planes.append(iterations_to(BundleSolver(tol=1e-9), problem(risk, alpha), optimum + eps))
    for first, second in itertools.pairwise(needed):
        assert second <= 10 * first + 10, needed
    assert needed[-1] <= needed[-2] + 2, needed  # min(1/eps, ...) is 1/eps by now
    assert planes[1] / planes[0] > needed[1] / needed[0], (planes, needed)
