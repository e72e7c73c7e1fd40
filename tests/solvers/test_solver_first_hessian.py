"""When `smoothed` makes its first Hessian (at w = 0 where it is cheap and holds both classes), and of which ramp it is."""

import numpy as np
from sklearn.datasets import load_breast_cancer

from cases import for_each
from scoreline.objective import Objective
from scoreline.operators import as_operator
from scoreline.risks.registry import get_risk
from scoreline.solvers import SmoothedSolver


def passes_of_hessians(monkeypatch, risk, share, p=8, n=2000):
    """Return the passes spent before each Gram matrix of a run of a few iterations."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, p))
    score = X @ rng.standard_normal(p) + rng.standard_normal(n)
    y = np.where(score > np.quantile(score, 1.0 - share), 1, -1)
    objective = Objective(as_operator(X), get_risk(risk).prepare(y), 1e-3)
    passes, gram = [], objective.operator.gram

    def counted(weight):
        passes.append(objective.n_passes)
        return gram(weight)

    monkeypatch.setattr(objective.operator, "gram", counted)
    SmoothedSolver(tol=1e-12, max_iter=25).solve(objective)
    return passes


@for_each("risk, share", [("roc_area", 0.05), ("roc_area", 0.4), ("prbep", 0.4), ("hinge", 0.4)])
def test_a_cheap_one_is_made_at_the_start(monkeypatch, risk, share):
    assert passes_of_hessians(monkeypatch, risk, share)[0] <= 2.0  # X'u at w = 0, and once more if mu was lowered


def test_few_positives_are_not_on_the_first_ramp_of_prbep(monkeypatch):
    assert passes_of_hessians(monkeypatch, "prbep", 0.1)[0] >= 12.0


def test_one_that_costs_more_waits(monkeypatch):
    assert passes_of_hessians(monkeypatch, "roc_area", 0.4, p=120)[0] >= 12.0  # 120 / 13 passes are more than CHEAP


@for_each("positive", [0, 1])
@for_each("alpha", [1e-4, 1e-6])
def test_rows_that_pile_up_at_the_kink_get_the_hessian_of_their_ramp(positive, alpha):
    """Without it PRBEP takes 2100 to more than 5000 iterations here, because a wide ramp takes the curvature for too small."""
    X, y = load_breast_cancer(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    objective = Objective(as_operator(X), get_risk("prbep").prepare(np.where(y == positive, 1, -1)), alpha)
    result = SmoothedSolver(tol=1e-2, max_iter=500).solve(objective)
    assert result.status == "converged"  # measured 80 to 170 iterations
