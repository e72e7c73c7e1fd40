"""The figure of benchmarks/hybrid.py: objective, test error and rows skipped against passes, for the squared hinge.

After figures 1 and 2 of the paper behind solver="hybrid" (docs/batches.md), on sets with many rows, 80 % of them for training.
A product Xw or X'u with all rows is one pass, with a part of them that part; an epoch of stochastic gradient (the one of
studies/stochastic.py) counts as two. J and the error are computed off the count.
"""

import sys
from pathlib import Path

import numpy as np
from sklearn.model_selection import train_test_split

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # studies/ is not installed

from common import SEED
from scoreline.objective import Objective
from scoreline.operators import as_operator
from scoreline.risks import SquaredHingeRisk
from scoreline.solvers import HybridSolver, LbfgsSolver, NewtonSolver
from smoothing_data import VARIABLE, load
from studies.stochastic import stochastic as by_stochastic_gradient

SETS = ("covtype", "kddcup99", "census-income")
ALPHA = 1e-4
MOST_PASSES, CLOSE = 300.0, 1e-8  # where curves end
WINDOW = 9  # iterations that the share of skipped rows is averaged over
PAPER = {"growth": "paper", "precondition": False, "first_rows": 1}
STEPS = (0.1, 0.01, 0.001)  # over the mean of |x|^2; the study has larger ones, too
STYLES = {  # colour, width, style
    "L-BFGS, all rows": ("#444444", 1.8, "-"),
    "stochastic gradient, step 0.1": ("#f0b27a", 1.5, "-"),
    "stochastic gradient, step 0.01": ("#e67e22", 1.5, "-"),
    "stochastic gradient, step 0.001": ("#935116", 1.5, "-"),
    "hybrid, as in the paper": ("#1f6fb2", 4.0, "-"),
    "the same, skipping by 'sum'": ("#2ecc71", 1.8, "-"),
    "the same, skipping by 'path'": ("#8e44ad", 1.8, "--"),
    "hybrid, default": ("#c0392b", 2.4, "-"),
}


class Watch:
    """Looks at w off the count: relative excess of J, share of wrong signs on test rows."""

    def __init__(self, X, y, X_test, y_test):
        self.X, self.y, self.X_test, self.y_test = X, y, X_test, y_test
        self.evaluator = self.problem()
        best = NewtonSolver(tol=1e-10, max_time=60.0, init="zero").solve(self.problem())
        self.best = best.objective

    def problem(self):
        return Objective(as_operator(self.X), SquaredHingeRisk().prepare(self.y), ALPHA)

    def row(self, passes, w, skipped=None):
        with np.errstate(all="ignore"):
            excess = self.evaluator.value(w) / self.best - 1.0
            wrong = float(np.mean((self.X_test @ w > 0) != (self.y_test > 0)))
        return passes, excess, wrong, skipped


def deterministic(watch, solver):
    """Return the rows of one of our solvers, from w = 0."""
    objective = watch.problem()
    rows = [watch.row(0.0, np.zeros(objective.n_features))]
    for state in solver.iterates(objective, np.zeros(objective.n_features)):
        passes = objective.n_passes
        if passes < 5e-4 and state.iteration % 8:  # batches of a few rows
            continue
        skipped = state.history["skipped"][-1] if "skipped" in state.history else None
        rows.append(watch.row(passes, state.w, skipped))
        if rows[-1][1] < CLOSE or passes > MOST_PASSES:
            break
    return rows


def stochastic(watch, step):
    """Return the rows of stochastic gradient with a fixed step; a run that diverges ends there."""
    rows = [watch.row(0.0, np.zeros(watch.X.shape[1]))]

    def look(passes, w):
        rows.append(watch.row(passes, w))
        return np.isfinite(rows[-1][1]) and rows[-1][1] <= 1e6

    by_stochastic_gradient(watch.X, watch.y, "squared_hinge", ALPHA, step, look)
    return rows


def curves_of(name):
    """Return {method: rows} and the shape, or None without the data."""
    data = load(name)
    if data is None:
        return None
    X, X_test, y, y_test = train_test_split(data.X, data.y, test_size=0.2, random_state=SEED)
    watch = Watch(X, y, X_test, y_test)
    size = float(X.multiply(X).sum()) / X.shape[0]
    solvers = {
        "L-BFGS, all rows": LbfgsSolver(init="zero"),
        "hybrid, as in the paper": HybridSolver(**PAPER),
        "the same, skipping by 'sum'": HybridSolver(shrink="sum", **PAPER),
        "the same, skipping by 'path'": HybridSolver(shrink="path", **PAPER),
        "hybrid, default": HybridSolver(),
    }
    curves = {method: deterministic(watch, solver) for method, solver in solvers.items()}
    curves |= {f"stochastic gradient, step {e:g}": stochastic(watch, e / size) for e in STEPS}
    optimum = NewtonSolver(tol=1e-8, max_time=60.0, init="zero").solve(watch.problem())
    return {"rows": X.shape[0], "features": X.shape[1], "error": watch.row(0.0, optimum.w)[2], "curves": curves}


def figure(report, names, folder, cap):
    """Compute the curves of the sets among `names`, draw hybrid.png, return the curves."""
    found = {}
    for name in (n for n in SETS if n in names):
        panel = curves_of(name)
        if panel is None:
            report.say(f"{name} is MISSING: neither {name}.svm nor {name}.svm.xz in the folder that {VARIABLE} names")
            continue
        found[name] = panel
        for method, rows in panel["curves"].items():
            passes = next((r[0] for r in rows if r[1] <= 1e-4), None)
            shares = [r[3] for r in rows if r[3] is not None]
            note = f"ends at {rows[-1][1]:.1e} after {rows[-1][0]:.1f}, test error {rows[-1][2]:.4f}"
            note += f", {np.mean(shares):.0%} of rows skipped" if shares and max(shares) > 0.0 else ""
            report.add(f"{name}, {method}: to 1e-4", passes, "passes", "", note)
    if found:
        folder.mkdir(parents=True, exist_ok=True)
        draw(found, folder / "hybrid.png")
        report.say(f"figure: {folder / 'hybrid.png'}")
    return found


def smooth(values):
    """Return means over the WINDOW iterations around each, over fewer at the ends: single ones jump up and down."""
    ones = np.ones(min(WINDOW, len(values)))
    return np.convolve(values, ones, "same") / np.convolve(np.ones(len(values)), ones, "same")


def draw(found, path):
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.ticker import FuncFormatter
    from PIL import Image  # matplotlib needs it, too

    plt.rcParams.update({"font.size": 9.5, "axes.titlesize": 10.5})
    fig, axes = plt.subplots(
        3, len(found), figsize=(4.1 * len(found), 9.0), layout="constrained", squeeze=False, sharex=True,
        gridspec_kw={"height_ratios": [1.25, 1.0, 0.8]},
    )  # fmt: skip
    for column, (name, panel) in zip(axes.T, found.items(), strict=True):
        for method, (colour, width, style) in STYLES.items():
            rows = panel["curves"][method][1:]
            passes, excess, wrong = (np.array([r[k] for r in rows], dtype=float) for k in range(3))
            look = {"color": colour, "linewidth": width, "linestyle": style}
            column[0].plot(passes, np.maximum(excess, 0.5 * CLOSE), **look)
            column[1].plot(passes, 100.0 * wrong, **look)
            if "skipping" in method:
                column[2].plot(passes, 100.0 * smooth([r[3] or 0.0 for r in rows]), **look)
        column[0].set(yscale="log", ylim=(CLOSE, 30.0))
        column[0].set_title(f"{name}: {panel['rows']:,} rows, {panel['features']} features", loc="left")
        ends = [100.0 * rows[-1][2] for rows in panel["curves"].values()]
        error = 100.0 * panel["error"]
        top = max(100.0 * r[2] for r in panel["curves"]["L-BFGS, all rows"][1:])
        spread = max(top - error, 0.25 * error)
        column[1].set_ylim(min([error, *ends]) - 0.1 * spread, error + 1.2 * spread)
        column[1].axhline(error, color="#888888", linewidth=0.9, linestyle=":")
        column[2].set_ylim(0.0, 100.0)
        column[2].set(xscale="log", xlim=(1e-2, MOST_PASSES), xlabel="passes over all rows")
        column[2].xaxis.set_major_formatter(FuncFormatter(lambda passes, _: f"{passes:g}"))
    for ax, label in zip(
        axes[:, 0], ("J / J* - 1", "test error, %", f"rows skipped, %, mean of {WINDOW}"), strict=True
    ):
        ax.set_ylabel(label)
    for ax in axes.flat:
        ax.grid(color="#e4e4e4", linewidth=0.6)
        ax.set_axisbelow(True)
        ax.spines[["top", "right"]].set_visible(False)
    handles = [plt.Line2D([], [], color=c, linewidth=w, linestyle=s) for c, w, s in STYLES.values()]
    handles.append(plt.Line2D([], [], color="#888888", linewidth=0.9, linestyle=":"))
    labels = [f"{m} / mean |x|²" if "step" in m else m for m in STYLES]
    fig.legend(handles, [*labels, "test error at the optimum"], loc="outside lower center", ncols=3, frameon=False)
    fig.savefig(path, dpi=100)
    plt.close(fig)
    few = Image.open(path).convert("RGB").quantize(256, dither=Image.Dither.NONE)  # colours: half the size
    few.save(path, optimize=True)
