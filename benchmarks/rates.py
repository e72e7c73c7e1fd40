"""Iterations to a proved gap of eps: cutting planes, smoothing, acceleration and the excessive gap technique on one problem.

    SCORELINE_DATA=folder python benchmarks/rates.py [--alphas 1e-2,1e-3] [--most 3000] [--figure rates.png]

The problem is the support vector machine whose intercept is not penalised, on a9a. Every solver starts at w = 0 and may take
--most iterations or 60 seconds. For each: iterations until its own proved gap is at most eps, and the exponent of 1/eps in
between (1 is the rate of cutting planes, 1/2 that of the optimal methods, 0 a linear rate).
"""

import argparse
import types
import warnings

import numpy as np

from common import standalone
from scoreline.objective import Objective
from scoreline.operators import as_operator
from scoreline.risks import FreeInterceptHingeRisk
from scoreline.solvers import (
    AcceleratedSolver,
    BundleLineSearchSolver,
    BundleSolver,
    ExcessiveGapSolver,
    SmoothedSolver,
)
from smoothing_data import VARIABLE, read

NAME, TITLE = "rates", "iterations to a proved gap of eps, hinge with a free intercept"
SOLVERS = (BundleSolver, BundleLineSearchSolver, SmoothedSolver, AcceleratedSolver, ExcessiveGapSolver)
LEVELS = 10.0 ** -np.arange(1.0, 5.1, 0.5)
LOOKS = {
    "bundle": "#c0392b",
    "bundle_ls": "#e67e22",
    "smoothed": "#1f6fb2",
    "accelerated": "#2e9c6a",
    "excessive_gap": "#8e44ad",
}


def problems(alphas):
    found = read("a9a")
    if found is None:
        print(f"  a9a is MISSING: neither a9a.svm nor a9a.svm.xz in the folder that {VARIABLE} names")
        return
    for alpha in alphas:
        yield f"a9a, alpha {alpha:g}", found[0], np.where(found[1] > 0, 1, -1), alpha


def arrivals(solver_class, X, y, alpha, most):
    """Return {eps: first iteration with a proved gap of at most eps}, and all (iteration, gap)."""
    objective = Objective(as_operator(X), FreeInterceptHingeRisk().prepare(y), alpha)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = solver_class(abs_tol=float(LEVELS[-1]), max_iter=most, max_time=60.0).solve(objective)
    gaps = np.array(result.history["objective"]) - np.array(result.history["lower_bound"])
    iterations = np.array(result.history["iteration"])
    first = {float(eps): int(iterations[np.argmax(gaps <= eps)]) for eps in LEVELS if (gaps <= eps).any()}
    return first, (iterations, gaps)


def main(report, alphas=(1e-2, 1e-3), most=3000, figure=None):
    curves = {}
    for name, X, y, alpha in problems(alphas):
        for solver_class in SOLVERS:
            first, curves[name, solver_class.name] = arrivals(solver_class, X, y, alpha, most)
            reached = [(eps, k) for eps, k in first.items() if k >= 3]
            slope = np.nan
            if len(reached) >= 3:
                eps, k = np.array(reached).T
                slope = float(np.polyfit(-np.log(eps), np.log(k), 1)[0])
            note = (
                ", ".join(f"{eps:.0e}: {k}" for eps, k in first.items() if np.log10(eps) % 1 == 0) or "no level reached"
            )
            report.add(
                f"{name}, {solver_class.name}: exponent of 1/eps", None if np.isnan(slope) else slope, "", "", note
            )
    if figure is not None:
        draw(curves, figure)
        report.say(f"figure: {figure}")


def draw(curves, path):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    names = list(dict.fromkeys(name for name, _ in curves))
    _, axes = plt.subplots(1, len(names), figsize=(4.2 * len(names), 3.6), squeeze=False, layout="constrained")
    for axis, name in zip(axes[0], names, strict=True):
        for solver, colour in LOOKS.items():
            iterations, gaps = curves[name, solver]
            axis.loglog(
                np.maximum(iterations, 1), np.maximum(gaps, LEVELS[-1] / 3), color=colour, label=solver, linewidth=1.8
            )
        axis.set(title=name, xlabel="iterations", ylabel="proved gap", ylim=(LEVELS[-1] / 2, 2.0))
        axis.grid(alpha=0.3)
    axes[0][0].legend(frameon=False, fontsize=9)
    plt.savefig(path, dpi=110)
    plt.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--alphas", type=lambda text: [float(a) for a in text.split(",")], default=[1e-2, 1e-3])
    parser.add_argument("--most", type=int, default=3000)
    parser.add_argument("--figure", default=None)
    options = parser.parse_args()
    run = lambda report: main(report, options.alphas, options.most, options.figure)  # noqa: E731
    standalone(types.SimpleNamespace(NAME=NAME, TITLE=TITLE, main=run))
