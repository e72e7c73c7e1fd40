"""Random problems with penalties, bounds and free intercepts: `run(number)` as in `certificate_trials`.

The number says which penalty, which bounds and which risk; the rest is drawn. Used by test_certificates_are_proofs.py and
`benchmarks/certificates.py --penalties`.
"""

from itertools import product

import certificate_trials as trials
import numpy as np

from scoreline.objective import Objective
from scoreline.operators import as_operator
from scoreline.penalties import BoundedPenalty, ElasticNetPenalty, GroupPenalty, L2Penalty
from scoreline.risks.registry import all_risks

PENALTIES = ("l2", "weights", "elastic_net", "lasso", "group", "group_lasso")
BOUNDS = ("none", "signs", "box", "some", "no_zero", "free_in_box")
RISKS = [name for name, risk in all_risks().items() if trials.SOLVERS["proximal"].serves(risk)]
CASES = list(product(PENALTIES, BOUNDS, RISKS))  # problem k is case k of these, in turn
PROXIMAL_SHARE = 0.7  # where another solver takes the penalty, too
WRAPS = ("none", "maxabs", "standard")


def penalty_of(rng, kind, bounds, p):
    """Return the penalty of p coefficients with its bounds."""
    weights = 10.0 ** rng.uniform(-2, 2, p) if rng.random() < 0.5 or kind == "weights" else np.ones(p)
    lower, upper = np.full(p, -np.inf), np.full(p, np.inf)
    size = 10.0 ** rng.uniform(-3, 1, p)
    if bounds == "signs":
        lower = np.zeros(p)
    elif bounds == "box":
        lower, upper = -size * rng.random(p), size * rng.random(p)
    elif bounds == "some":
        chosen = rng.random(p) < 0.5
        lower, upper = np.where(chosen, -size, lower), np.where(rng.random(p) < 0.5, 0.0, upper)
    elif bounds == "no_zero":
        chosen = np.arange(p) == rng.integers(p)
        chosen |= rng.random(p) < 0.3
        up = rng.random(p) < 0.5
        far = np.where(rng.random(p) < 0.5, np.inf, size * (1.0 + rng.random(p)))
        lower = np.where(chosen, np.where(up, size, -far), lower)
        upper = np.where(chosen, np.where(up, far, -size), upper)
    elif bounds == "free_in_box":  # weight 0 needs two finite bounds
        lower, upper = -size, 2.0 * size
        weights = np.where(rng.random(p) < 0.5, 0.0, weights)
    ratio = 1.0 if "lasso" in kind else float(rng.uniform(0.05, 0.95))
    if "group" in kind:
        count = int(rng.integers(1, p + 1))
        own = rng.permutation(np.append(np.arange(count), rng.integers(0, count, p - count)))
        penalty = GroupPenalty([np.flatnonzero(own == g).tolist() for g in range(count)], ratio, weights)
    elif kind in ("elastic_net", "lasso"):
        penalty = ElasticNetPenalty(ratio, weights)
    else:
        penalty = L2Penalty(weights if kind == "weights" or bounds == "free_in_box" else None)
    return BoundedPenalty.of(penalty, p, None, (lower, upper))


def make(number):
    """Return (Trial, Objective) of that number."""
    rng = np.random.default_rng([trials.SEED, 34, number])
    kind, bounds, name = CASES[number % len(CASES)]
    variants = [risk for risk in all_risks()[name].variants() if trials.SOLVERS["proximal"].serves(risk)]
    risk = variants[int(rng.integers(len(variants)))]
    n, p = int(rng.integers(3, 11 if name == "contingency_entropy" else 18)), int(rng.integers(1, 7))
    if rng.random() < 0.1:
        p = int(rng.integers(n, 3 * n))
    rows = trials.KINDS[int(rng.integers(len(trials.KINDS)))]
    X, y = trials.data(rng, rows, n, p)
    weight = trials.row_weights(rng, risk, n)
    penalty, wrap = penalty_of(rng, kind, bounds, p), str(rng.choice(WRAPS))
    if risk.shift == "needed" and rng.random() < 0.7:
        wrap, penalty = wrap + "+intercept", penalty.with_constant(0.0)
    operator = trials.with_wrapper(as_operator(X), wrap, weight, rng)
    alpha = float(10.0 ** rng.uniform(-7, 2))
    objective = Objective(operator, risk.prepare(y, weight), alpha, penalty)
    known = [s for s in trials.SOLVERS if trials.SOLVERS[s].serves(risk) and trials.SOLVERS[s].takes(objective.traits)]
    others = [s for s in known if s != "proximal"]
    solver = str(rng.choice(others)) if others and rng.random() > PROXIMAL_SHARE else "proximal"
    how = str(rng.choice(["run", "run", "run", "state", "path"]))
    options = trials.options_of(rng, solver, risk, objective)
    w0 = rng.standard_normal(operator.shape[1]) * 10.0 ** rng.integers(-3, 3) if rng.random() < 0.2 else None
    kinds = f"{rows}, {kind}, {bounds}"
    return trials.Trial(number, solver, risk, kinds, wrap, X, y, weight, alpha, how, options, w0), objective


def run(number, exact=True, points=4):
    """Return the outcome of a trial, as `certificate_trials.run` does."""
    return trials.run(number, exact, points, make)
