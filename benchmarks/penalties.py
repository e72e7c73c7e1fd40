"""Sparse and sign-constrained models to a certified 1e-3: time against scikit-learn's saga and LIBLINEAR, and SciPy's L-BFGS-B.

    SCORELINE_DATA=folder python benchmarks/penalties.py [--sets sector,hiva] [--limit 60] [--out FILE]

Objectives are equal: alpha |w|_1 + mean log loss without an intercept, or alpha/2 |w|^2 + mean log loss with w >= 0. A rival is
run with tolerances 1e-2, 1e-3, ..., and its time is that of the first run whose J is within 1e-3 of our proved lower bound; our
time includes the proof. No rival minimises the ROC area with absolute values: its line is ours alone.
"""

import argparse
import time
import warnings
from pathlib import Path

import numpy as np
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression

from common import header
from scoreline import MeasureClassifier
from tuned_threshold import load

SETS = ("sector", "farm-ads", "reuters-mfx", "hiva", "mnist")
ALPHA, WITHIN = 1e-3, 1e-3
OUT = Path(__file__).resolve().parent / "results" / "penalties.md"


def timed(call):
    """Return what a call gives, and the seconds it took."""
    begin = time.perf_counter()
    found = call()
    return found, time.perf_counter() - begin


def log_loss(X, y, w):
    """Return the mean log loss of labels +1 and -1."""
    return float(np.logaddexp(0.0, -y * (X @ w)).mean())


def until(runs, value, goal, limit):
    """Return the time of the first run whose value is at most `goal`, or None."""
    spent = 0.0
    for run in runs:
        w, seconds = timed(run)
        spent += seconds
        if value(w) <= goal:
            return seconds
        if spent > limit:
            return None
    return None


def sparse(X, y, solver, tol):
    """Return what fits scikit-learn's lasso by a solver."""
    options = {"solver": solver, "C": 1.0 / (len(y) * ALPHA), "tol": tol, "max_iter": 300, "fit_intercept": False}
    return lambda: LogisticRegression(penalty="l1", random_state=0, **options).fit(X, y).coef_[0]


def bounded(X, y, tol):
    """Return what fits w >= 0 by SciPy's L-BFGS-B."""

    def value(w):
        z = y * (X @ w)
        return np.logaddexp(0.0, -z).mean() + 0.5 * ALPHA * w @ w, X.T @ (-y / (1.0 + np.exp(z))) / len(y) + ALPHA * w

    p, options = X.shape[1], {"gtol": tol, "ftol": 0.0, "maxiter": 2000, "maxfun": 4000}
    return lambda: (
        minimize(value, np.zeros(p), jac=True, method="L-BFGS-B", bounds=[(0.0, None)] * p, options=options).x
    )


def shown(seconds):
    return "not reached" if seconds is None else f"{seconds:.2f}"


def rows_of(name, limit):
    """Return the lines of the table for a data set."""
    X, y = load(name)[:2]
    y = np.where(y > 0, 1.0, -1.0)
    common = {"alpha": ALPHA, "tol": WITHIN, "fit_intercept": False, "threshold": "none", "max_time": limit}
    lasso = {"penalty": "elastic_net", "penalty_params": {"l1_ratio": 1.0}}
    lines = []
    for title, options in (
        ("sparse logistic", {"measure": "accuracy", "risk": "logistic", **lasso}),
        ("sparse AUC", {"measure": "roc_auc", **lasso}),
        ("w >= 0, logistic", {"measure": "accuracy", "risk": "logistic", "bounds": (0.0, None)}),
    ):
        clf, seconds = timed(lambda options=options: MeasureClassifier(**options, **common).fit(X, y))
        goal = clf.lower_bound_ + WITHIN * clf.lower_bound_
        tols, rivals = [10.0**-k for k in range(2, 7)], ["", "", ""]
        if title == "sparse logistic":

            def value(w):
                return log_loss(X, y, w) + ALPHA * np.abs(w).sum()

            rivals[0] = shown(until([sparse(X, y, "liblinear", tol) for tol in tols], value, goal, limit))
            rivals[1] = shown(until([sparse(X, y, "saga", tol) for tol in tols], value, goal, limit))
        elif title.startswith("w"):

            def value(w):
                return log_loss(X, y, w) + 0.5 * ALPHA * w @ w

            rivals[2] = shown(until([bounded(X, y, tol * 1e-2) for tol in tols], value, goal, limit))
        lines.append(
            f"| {name} | {X.shape[0]} x {X.shape[1]} | {title} | {clf.status_} | {seconds:.2f} | {' | '.join(rivals)} "
            f"| {clf.gap_ / clf.objective_:.1e} | {np.count_nonzero(clf.coef_)} | {clf.n_passes_:.0f} |"
        )
        print(lines[-1], flush=True)
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for each side of a line")
    parser.add_argument("--out", type=Path, default=OUT)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(0)  # compiled before the clock starts
    X, y = rng.standard_normal((50, 5)), np.arange(50) % 2
    for measure in ("roc_auc", "accuracy"):
        for options in ({"penalty": "elastic_net"}, {"bounds": (0.0, None)}):
            MeasureClassifier(measure, risk="auto" if measure == "roc_auc" else "logistic", **options).fit(X, y)
    lines = [line for name in arguments.sets.split(",") for line in rows_of(name, arguments.limit)]
    text = [
        "# Sparse and sign-constrained models",
        "",
        f"Made by `python benchmarks/penalties.py --sets {arguments.sets} --limit {arguments.limit:g}`. Seconds to within "
        f"{WITHIN:g} of the optimum, alpha {ALPHA:g}, columns divided by max|x|; ours with the proof. At most 50,000 rows.",
        "",
        *(f"- {key}: {value}" for key, value in header().items()),
        "",
        "| data | shape | problem | status | scoreline | LIBLINEAR | saga | L-BFGS-B | duality gap | features | passes |",
        "|---|---|---|---|---:|---:|---:|---:|---:|---:|---:|",
        *lines,
    ]
    arguments.out.write_text("\n".join(text) + "\n")


if __name__ == "__main__":
    main()
