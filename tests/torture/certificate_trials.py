"""Random problems, each solved by a random solver, and the checks that its certificate is a proof.

One trial is a number: data, risk, solver, tolerance, start and options all follow from it. `run(number)` solves it, solves it
again tightly by another solver, and compares the bound with J at several points, in floating point and (with exact=True)
without rounding. Used by test_certificates_are_proofs.py (hundreds) and benchmarks/certificates.py (ten thousand).
"""

import warnings
from dataclasses import dataclass, field

import numpy as np
import scipy.sparse as sp
from exact_objectives import exact_features, exact_objective, fraction

from scoreline.objective import Objective
from scoreline.operators import InterceptOperator, as_operator
from scoreline.operators.wrappers import scaled
from scoreline.risks.registry import all_risks
from scoreline.solvers.common.path import solve_path
from scoreline.solvers.registry import all_solvers

SEED = 20261116
EPS = float(np.finfo(float).eps)
SOLVERS = {name: solver for name, solver in all_solvers().items() if solver.certified}
PAIRS = [(s, r) for r, risk in all_risks().items() for s in SOLVERS if SOLVERS[s].serves(risk)]
# The solvers to compare with, best first: the first that serves the risk and is not the one under trial.
TIGHT = ("newton", "lbfgs", "smoothed", "bundle_ocas", "bundle", "proximal")
KINDS = (
    "plain",
    "rounded",
    "float32",
    "sparse",
    "scales",
    "offset",
    "duplicates",
    "separable",
    "constant",
    "zero_rows",
)
POINTS = ("other", "own", "between", "more", "less", "zero")
WRAPS = ("none", "none", "intercept", "maxabs", "standard", "standard+intercept", "maxabs+intercept")


@dataclass
class Trial:
    """A problem and how it is solved."""

    number: int
    solver: str
    risk: object
    kind: str
    wrap: str
    X: object
    y: np.ndarray
    weight: np.ndarray | None
    alpha: float
    how: str  # "run", "state", "path"
    options: dict
    w0: np.ndarray | None = None


@dataclass
class Outcome:
    """What came out: what was wrong (nothing, one hopes), how far the bound lies below the least J, how far J was off."""

    trial: Trial
    status: str = ""
    wrong: list = field(default_factory=list)
    slack: float = np.inf  # (least J - bound) / J(0), J exact where that was asked for
    error: float = 0.0  # |objective - exact J| over its bound
    gap: float = np.inf  # (least J - best bound of both solvers) / J(0): how sharp the trial is
    exact: bool = False


def data(rng, kind, n, p):
    """Return X and y."""
    X = rng.standard_normal((n, p))
    noise = 0.0 if kind == "separable" else rng.choice([0.3, 1.0, 5.0])
    y = np.where(X @ rng.standard_normal(p) + noise * rng.standard_normal(n) > rng.choice([0.0, 0.7]), 1, -1)
    if rng.random() < 0.15:
        y = np.full(n, -1)
    y[:2] = 1, -1
    if kind == "rounded":
        X = np.round(X)
    elif kind == "float32":
        X = X.astype(np.float32)
    elif kind == "sparse":
        X = sp.csr_matrix(np.where(rng.random((n, p)) < 0.4, X, 0.0))
    elif kind == "scales":
        X = X * 10.0 ** rng.integers(-4, 5, p)
    elif kind == "offset":
        X = X + 10.0 ** rng.integers(0, 9, p)
    elif kind == "duplicates":
        X = X[np.arange(n) // 2]
    elif kind == "constant":
        X[:, 0] = rng.choice([0.1, 1.0, 1e6])
        X[:, -1] = X[:, 0] if p > 1 else X[:, -1]
    elif kind == "zero_rows":
        X[rng.random(n) < 0.5] = 0.0
    return X, y


def row_weights(rng, risk, n):
    """Return weights of the rows, or None."""
    if not rng.random() < 0.5:
        return None
    is_integer = rng.random() < 0.5 or not risk.real_weights
    weight = rng.integers(0, 4, n).astype(float) if is_integer else rng.random(n) * 10.0 ** rng.integers(-3, 4, n)
    weight[:2] = 1.0
    return weight


def options_of(rng, solver, risk, objective):
    """Return options that the solver takes, some of them drawn."""
    known = SOLVERS[solver].options()
    options = {"tol": float(10.0 ** rng.uniform(-12, -2)), "max_iter": int(rng.choice([3, 20, 60, 120]))}
    options["init"] = str(rng.choice(["auto", "zero", "samples"] + ["moments"] * bool(risk.shift != "linear")))
    drawn = {
        "memory": lambda: int(rng.integers(1, 12)),
        "precondition": lambda: bool(rng.random() < 0.5),
        "max_planes": lambda: int(rng.integers(2, 30)),
        "zero_plane": lambda: bool(rng.random() < 0.5),
        "strongly_convex": lambda: bool(rng.random() < 0.7),
        "first_rows": lambda: int(rng.integers(1, 10)),
        "growth": lambda: str(rng.choice(["variance", "paper"])),
        "mu": lambda: float(10.0 ** rng.uniform(-6, 0)) / max(objective.risk.ramp_scale, 1e-3),
    }
    for name, draw in drawn.items():
        if name in known and rng.random() < (0.15 if name == "mu" else 0.4):
            options[name] = draw()
    if "shrink" in known and risk.name == "squared_hinge" and objective.operator.cheap_rows:
        options["shrink"] = str(rng.choice(["none", *shrinkings()]))
    return options


def shrinkings():
    """Return the ways to skip rows."""
    from scoreline.solvers.shrinking import SHRINKINGS

    return sorted(set(SHRINKINGS) - {"none"})


def with_wrapper(operator, wrap, weight, rng):
    """Return the operator with scaling and constant feature around it, as an estimator wraps it."""
    for part in wrap.split("+"):
        if part in ("maxabs", "standard"):
            operator = scaled(operator, part, weight)
        elif part == "intercept":
            operator = InterceptOperator(operator, float(rng.choice([1.0, 1.0, 10.0, 0.1])))
    return operator


def make(number):
    """Return (Trial, Objective) of that number."""
    rng = np.random.default_rng([SEED, number])
    solver, risk_name = PAIRS[number % len(PAIRS)]
    variants = [risk for risk in all_risks()[risk_name].variants() if SOLVERS[solver].serves(risk)]
    risk = variants[int(rng.integers(len(variants)))]
    small = risk_name in ("contingency", "contingency_entropy")  # exact J takes a table of n+ n- losses
    n, p = int(rng.integers(3, 11 if small else 18)), int(rng.integers(1, 7))
    if rng.random() < 0.1:
        p = int(rng.integers(n, 3 * n))
    kind = KINDS[int(rng.integers(len(KINDS)))]
    X, y = data(rng, kind, n, p)
    weight = row_weights(rng, risk, n)
    wrap = str(rng.choice(WRAPS))
    if p > 10 and kind == "constant":
        kind = "plain"
    operator = with_wrapper(as_operator(X), wrap, weight, rng)
    alpha = float(10.0 ** rng.uniform(-7, 2))
    total = n if weight is None else weight.sum()
    if getattr(getattr(risk, "measure", None), "k", None) == 1 and total < 1:
        weight = None
    objective = Objective(operator, risk.prepare(y, weight), alpha)
    how = str(rng.choice(["run", "run", "run", "state", "path"]))
    options = options_of(rng, solver, risk, objective)
    w0 = rng.standard_normal(operator.shape[1]) * 10.0 ** rng.integers(-3, 3) if rng.random() < 0.2 else None
    return Trial(number, solver, risk, kind, wrap, X, y, weight, alpha, how, options, w0), objective


def solved(trial, objective):
    """Return the result: of one run, of one that went on from a saved state, or of the end of a path of penalties."""
    made = SOLVERS[trial.solver](**trial.options)
    if trial.how == "path":
        alphas = [100.0 * trial.alpha, 7.0 * trial.alpha, trial.alpha]
        return list(solve_path(objective, alphas, made))[-1][1]
    if trial.how == "state":
        first = SOLVERS[trial.solver](**trial.options | {"max_iter": 4}).solve(objective, trial.w0)
        return made.solve(objective, state=first.state.record())
    return made.solve(objective, trial.w0)


def tight(trial, objective):
    """Return the result of another solver, as exact as it gets."""
    names = [s for s in TIGHT if SOLVERS[s].serves(trial.risk) and SOLVERS[s].takes(objective.traits)]
    name = next((s for s in names if s != trial.solver), names[0])
    return SOLVERS[name](tol=1e-12, max_iter=100, init="zero").solve(objective)


def value_error(objective, w, value):
    """Return what |computed J - J| may be at w: rounding of scores, magnified by the slope of the risk, and of the sum.

    Scores are off by g m with g = 8 eps sqrt(max(n, p)) and m = sum_j |w_j| max_i |x_ij|; risks change by at most 4 times that
    (4 for average precision, 2 or 1 for the others), squared ones by at most 2 (1 + 2 max |z|) times that.
    """
    n, p = objective.operator.shape
    g = 8.0 * EPS * np.sqrt(max(n, p))
    reach = float(np.abs(w) @ objective.operator.largest)
    steep = 2.0 * (1.0 + 2.0 * reach) if "squared" in objective.risk.name else 4.0
    return g * (value + steep * (1.0 + reach))


def run(number, exact=True, points=4, make=make):
    """Return the outcome of a trial; with exact=True J is computed without rounding at up to `points` points."""
    trial, objective = make(number)
    outcome = Outcome(trial, exact=exact)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result, other = solved(trial, objective), tight(trial, objective)
    check(outcome, objective, result, other, exact, points)
    return outcome


def check(outcome, objective, result, other, exact, points):
    """Compare a result and that of another solver with J at their points and around them."""
    trial, at_zero = outcome.trial, objective.risk.value_at_zero()
    outcome.status = result.status
    bound = -np.inf if result.lower_bound is None else result.lower_bound
    if not np.isfinite(result.w).all():
        outcome.wrong.append("w is not finite")
    if not bound <= result.objective:
        outcome.wrong.append(f"bound {bound!r} above objective {result.objective!r}")
    if np.isfinite(bound) and bound < 0.0 and trial.options.get("zero_plane", trial.solver != "bundle_ls"):
        outcome.wrong.append(f"bound {bound!r} is negative: J >= 0 is known")
    if result.status == "converged" and "abs_tol" not in trial.options:
        allowed_gap = trial.options["tol"] * max(bound, 1e-3 * at_zero)
        if result.objective - bound > allowed_gap:
            outcome.wrong.append(f"converged with gap {result.objective - bound!r}, asked for {allowed_gap!r}")
    if not np.array_equal(objective.nearest(result.w), result.w):
        outcome.wrong.append("w is not within the bounds")
    candidates = [other.w, result.w, 0.5 * (result.w + other.w), 1.1 * result.w, 0.9 * other.w, 0.0 * result.w]
    candidates = [objective.nearest(w) for w in candidates]
    values = [objective.value(w) for w in candidates]
    for name, value, w in zip(POINTS, values, candidates, strict=True):
        if bound > value + value_error(objective, w, value):
            outcome.wrong.append(f"bound {bound!r} above J {value!r} at {name!r}")
    least = min(values)
    if exact:
        rows = exact_features(objective.operator, trial.X)
        known = [
            exact_objective(trial.risk, rows, trial.y, trial.weight, w, objective.alpha, objective.penalty)
            for w in candidates[:points]
        ]
        for value in known:
            if np.isfinite(bound) and fraction(bound) > value:
                outcome.wrong.append(
                    f"bound {bound!r} above exact J {float(value)!r} by {float(fraction(bound) - value)!r}"
                )
        if other.lower_bound is not None and fraction(other.lower_bound) > min(known):
            outcome.wrong.append(f"bound {other.lower_bound!r} of the other solver above exact J {float(min(known))!r}")
        off = abs(float(fraction(result.objective) - known[1]))
        outcome.error = off / value_error(objective, result.w, result.objective)
        if outcome.error > 1.0:
            outcome.wrong.append(
                f"objective {result.objective!r} is off by {off!r}, {outcome.error!r} of what is allowed"
            )
        least = min(known)
    at_zero = at_zero if at_zero > 0.0 else 1.0  # recall of the n highest of n scores is 1 whatever they are
    if np.isfinite(bound):
        outcome.slack = float((fraction(least) - fraction(bound)) / fraction(at_zero))
    proved = max(bound, -np.inf if other.lower_bound is None else other.lower_bound)
    if np.isfinite(proved):
        outcome.gap = float((fraction(least) - fraction(proved)) / fraction(at_zero))
