"""Iterations to a gap of eps against 1/eps: cutting planes, smoothing, acceleration and the excessive gap technique.

    SCORELINE_DATA=folder python benchmarks/rates.py [--alphas 1e-2,1e-3] [--most 3000] [--seconds 60] [--figure rates.png]

Zhang, Saha and Vishwanathan (2010), Table 1, measured. On their counter-examples, one of 1/(4 eps) rows for every eps (the
line search has a single one, of four rows), counted is the first of w_1, w_2, ... with J(w_k) - min J <= eps from the start of
the theorem, whose tie rule the cutting planes take. The hinge has a free intercept for `excessive_gap`; 0 is its best value. F1
is also smoothed by entropy to within eps / 2, for `lbfgs`. On a9a, the support vector machine with a free intercept, every
solver begins at w = 0, and its own duality gap counts.

The exponent of 1/eps is 1 at the rate of cutting planes, 1/2 at that of the optimal methods, 0 at a linear rate.
"""

import argparse
import time
import types
import warnings

import numpy as np

from common import standalone
from scoreline.io import hard_for_cutting_planes
from scoreline.objective import Objective
from scoreline.operators import as_operator
from scoreline.risks import (
    ContingencyRisk,
    EntropyContingencyRisk,
    FreeInterceptHingeRisk,
    HingeRisk,
    PrbepRisk,
    RocAreaRisk,
)
from scoreline.solvers import (
    AcceleratedSolver,
    BundleLineSearchSolver,
    BundleSolver,
    ExcessiveGapSolver,
    LbfgsSolver,
    SmoothedSolver,
)
from smoothing_data import VARIABLE, read

NAME, TITLE = "rates", "iterations to a gap of eps against 1/eps"
PLANES = {"bundle": BundleSolver, "bundle_ls": BundleLineSearchSolver}
SOLVERS = PLANES | {"smoothed": SmoothedSolver, "accelerated": AcceleratedSolver, "excessive_gap": ExcessiveGapSolver}
SMOOTHED_F1 = "lbfgs, F1 smoothed by entropy"
RISKS = {"prbep": PrbepRisk, "roc_area": RocAreaRisk, "hinge": HingeRisk}
TITLES = {"prbep": "break-even", "roc_area": "ROC area", "hinge": "hinge", "contingency": "F1"}
LEVELS = 10.0 ** -np.arange(1.0, 5.1, 0.5)  # of the duality gap on a9a
SIZES = (10, 32, 100, 316, 1000)  # rows of the counter-examples, even, so that the classes of the hinge are equal
STYLES = {
    "bundle": ("#e7968c", 5.0),
    "bundle_ls": ("#c0392b", 2.0),
    "smoothed": ("#1f6fb2", 1.8),
    "accelerated": ("#2e9c6a", 1.8),
    "excessive_gap": ("#8e44ad", 1.8),
    SMOOTHED_F1: ("#444444", 1.8),
}


def solver_for(name, example, eps):
    """Return (solver, risk) for a counter-example, or None where the solver does not serve its risk."""
    if name == SMOOTHED_F1:
        return (LbfgsSolver(), EntropyContingencyRisk("f1", within=eps / 2)) if example.measure == "f1" else None
    if name in PLANES:
        options = {"zero_plane": False} if name == "bundle" else {}
        risk = ContingencyRisk(example.measure, ties="smallest") if example.measure else None
        return PLANES[name](**options), risk or RISKS[example.risk](ties="smallest")
    if name == "excessive_gap":
        return (ExcessiveGapSolver(), FreeInterceptHingeRisk()) if example.risk == "hinge" else None
    return (SOLVERS[name](), RISKS[example.risk]()) if example.risk in RISKS else None


def steps_to(name, example, eps, most, seconds):
    """Return the first k with J(w_k) - min J <= eps, J without any smoothing, or None."""
    solver, risk = solver_for(name, example, eps)
    objective = Objective(as_operator(example.X), risk.prepare(example.y), example.alpha)
    hard = objective
    if name == SMOOTHED_F1:
        hard = Objective(as_operator(example.X), ContingencyRisk("f1").prepare(example.y), example.alpha)
    begin = time.perf_counter()
    for k, state in enumerate(solver.iterates(objective, example.w0), 1):
        if hard.value(state.w) - example.optimum <= eps:
            return k
        if k >= most or time.perf_counter() - begin > seconds:
            break
    return None


def counter_examples(most, seconds):
    """Yield (title, solver, {eps: iterations}) of every counter-example and every solver that serves it."""
    for index, first in enumerate(hard_for_cutting_planes(SIZES[0])):
        title = f"{'line search' if first.solver == 'bundle_ls' else TITLES[first.risk]}, {first.name}"
        for name in STYLES:
            if solver_for(name, first, 1.0) is None:
                continue
            found = {}
            for n in SIZES:
                eps = 1.0 / (4.0 * n)
                k = steps_to(name, hard_for_cutting_planes(n)[index], eps, most, seconds)
                if k is None:
                    break
                found[eps] = k
            yield title, name, found


def on_a9a(alphas, most, seconds):
    """Yield the same for a9a, by the gap that each solver proves."""
    data = read("a9a")
    if data is None:
        print(f"  a9a is MISSING: neither a9a.svm nor a9a.svm.xz in the folder that {VARIABLE} names")
        return
    X, y = data[0], np.where(data[1] > 0, 1, -1)
    for alpha in alphas:
        for name, solver_class in SOLVERS.items():
            objective = Objective(as_operator(X), FreeInterceptHingeRisk().prepare(y), alpha)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # stopped by max_iter or max_time
                options = {"abs_tol": float(LEVELS[-1]), "max_iter": most, "max_time": seconds}
                history = solver_class(**options).solve(objective).history
            gaps = np.array(history["objective"]) - np.array(history["lower_bound"])
            first = {
                float(eps): int(history["iteration"][np.argmax(gaps <= eps)]) for eps in LEVELS if gaps.min() <= eps
            }
            yield f"a9a, alpha {alpha:g}", name, first


def exponent(found):
    """Return the slope of log iterations over log 1/eps, or None with fewer than three levels after a single iteration."""
    reached = [(eps, k) for eps, k in found.items() if k >= 2]
    if len(reached) < 3:
        return None
    eps, k = np.array(reached).T
    return float(np.polyfit(-np.log(eps), np.log(k), 1)[0])


def main(report, alphas=(1e-2, 1e-3), most=3000, seconds=60.0, figure=None):
    curves = {}
    for source in (counter_examples(most, seconds), on_a9a(alphas, most, seconds)):
        for title, name, found in source:
            curves.setdefault(title, {})[name] = found
            note = ", ".join(f"{eps:.1e}: {k}" for eps, k in found.items()) or "no level reached"
            report.add(f"{title}, {name}: exponent of 1/eps", exponent(found), "", "", note)
    report.data = {
        title: {name: list(found.items()) for name, found in those.items()} for title, those in curves.items()
    }
    if figure is not None:
        draw(curves, figure)
        report.say(f"figure: {figure}")


def draw(curves, path):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.lines import Line2D

    columns = 4
    lines = -(-(len(curves) + 1) // columns)
    _, axes = plt.subplots(lines, columns, figsize=(3.3 * columns, 3.3 * lines), layout="constrained")
    for axis, (title, found) in zip(axes.flat, curves.items(), strict=False):
        for name, (colour, width) in STYLES.items():
            levels = found.get(name, {})
            if levels:
                eps, k = np.array(list(levels.items())).T
                axis.plot(1.0 / eps, np.maximum(k, 1), color=colour, linewidth=width, marker="o", markersize=width + 2)
        axis.set(xscale="log", yscale="log", ylim=(0.7, 5000))
        x = np.array(axis.get_xlim())
        for power, style in ((1.0, "--"), (0.5, ":")):
            axis.plot(x, 2.0 * (x / x[0]) ** power, color="black", linewidth=0.9, linestyle=style, zorder=0)
        axis.set_xlim(x)
        head, _, rest = title.partition(", ")
        axis.set_title(f"{head[0].upper() if head != 'a9a' else 'a'}{head[1:]}\n{rest}", fontsize=10, loc="left")
        axis.grid(alpha=0.25)
        axis.spines[["top", "right"]].set_visible(False)
        axis.set(xlabel="1/eps", ylabel="iterations")
    handles = [Line2D([], [], color=colour, linewidth=width, marker="o") for colour, width in STYLES.values()]
    handles += [Line2D([], [], color="black", linewidth=0.9, linestyle=style) for style in ("--", ":")]
    for axis in axes.flat[len(curves) :]:
        axis.axis("off")
    axes.flat[len(curves)].legend(
        handles, [*STYLES, "slope of 1/eps", "slope of 1/sqrt(eps)"], frameon=False, fontsize=9
    )
    plt.savefig(path, dpi=90, pil_kwargs={"optimize": True})
    plt.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--alphas", type=lambda text: [float(a) for a in text.split(",")], default=[1e-2, 1e-3])
    parser.add_argument("--most", type=int, default=3000)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--figure", default=None)
    options = parser.parse_args()
    arguments = options.alphas, options.most, options.seconds, options.figure
    run = lambda report: main(report, *arguments)
    standalone(types.SimpleNamespace(NAME=NAME, TITLE=TITLE, main=run))
