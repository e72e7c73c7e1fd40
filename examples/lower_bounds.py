"""
Problems on which cutting planes are provably slow
==================================================

A theorem of Zhang, Saha and Vishwanathan says that cutting planes need of the order of 1/eps iterations on these problems.
The rate belongs to the method, not to the problems: ``smoothed`` starts from the same point and needs far fewer iterations.
"""

import matplotlib.pyplot as plt
import numpy as np

from scoreline.io import hard_for_cutting_planes
from scoreline.objective import Objective
from scoreline.operators import as_operator
from scoreline.report.axes import tidy
from scoreline.report.palette import ABOVE, BELOW, INK, MODELS, MUTED
from scoreline.risks import ContingencyRisk, HingeRisk, PrbepRisk, RocAreaRisk
from scoreline.solvers import (
    AcceleratedSolver,
    BundleLineSearchSolver,
    BundleOcasSolver,
    BundleSolver,
    SmoothedSolver,
)

N, EPS = 100, 1e-3  # size of the problems, gap of the table
MOST = 10 * N  # iterations
LEAST = 1e-12  # a gap below this counts as none
RISKS = {"prbep": PrbepRisk, "roc_area": RocAreaRisk, "hinge": HingeRisk}
WORDS = {"prbep": "break-even point", "roc_area": "ROC area", "hinge": "hinge", "contingency": "F1"}
PLANES = {"bundle": BundleSolver, "bundle_ls": BundleLineSearchSolver, "bundle_ocas": BundleOcasSolver}
SMOOTHING = {"smoothed": SmoothedSolver, "accelerated": AcceleratedSolver}
STYLES = {  # colour, width of the line, size of the dot at its end; what comes first is wider, so that it shows below the rest
    "bundle": ("#f1b5ae", 6.0, 11), "bundle_ls": (ABOVE, 2.6, 8.5), "bundle_ocas": (MODELS[2], 1.5, 6),
    "smoothed": (BELOW, 2.0, 7), "accelerated": (MODELS[0], 1.5, 6),
}  # fmt: skip

# %%
# Iterations to a small gap
# -------------------------
# As in the theorems, the oracle of the cutting planes breaks ties by the smallest change, and they start without a plane. The
# iterates w_1, w_2, ... count, but not the start w_0. F1 has no kink that can be smoothed, so only cutting planes solve it
# here.


def risk_of(example, name):
    """Return the risk of an example: for cutting planes with the ties of the theorem, for others as it is."""
    if name in SMOOTHING:
        return RISKS[example.risk]()
    if example.measure:
        return ContingencyRisk(example.measure, ties="smallest")
    return RISKS[example.risk](ties="smallest")


def gaps_of(example, name):
    """Return the smallest J(w_1..k) - min J after each iteration k, or None if the solver cannot minimise this risk."""
    if name in SMOOTHING and example.risk not in RISKS:
        return None
    options = {"zero_plane": False} if name in ("bundle", "bundle_ocas") else {}
    solver = (PLANES | SMOOTHING)[name](**options)
    objective = Objective(as_operator(example.X), risk_of(example, name).prepare(example.y), example.alpha)
    found = []
    for state in solver.iterates(objective, example.w0):
        w = state.best_w if name == "bundle_ocas" else state.w
        found.append(objective.value(w) - example.optimum)
        if found[-1] <= LEAST or len(found) >= MOST:
            break
    return np.minimum.accumulate(found)


def proved(example):
    """Return iterations and the gap that the theorem proves for them; for the line search it is a limit, from k = 4 on."""
    if example.objective is None:
        k = np.arange(4, MOST + 1)
        return k, 1 / (8 * k)
    k = np.arange(1, example.steps + 1)
    return k, np.array([example.objective(int(i)) for i in k]) - example.optimum


examples = hard_for_cutting_planes(N)
curves = [{name: gaps_of(example, name) for name in STYLES} for example in examples]


def title(example):
    """Return what the problem is and where it comes from."""
    return f"{'line search, ' if example.solver == 'bundle_ls' else ''}{WORDS[example.risk]}: {example.name}"


def needed(gaps):
    """Return in words after how many iterations the gap was at most EPS."""
    if gaps is None:
        return "-"
    arrived = np.flatnonzero(gaps <= EPS)
    return str(arrived[0] + 1) if len(arrived) else f"> {len(gaps)}"


print(f"iterations to a gap of {EPS:g}\n  {'':<50}{'proved':>7}" + "".join(f"{name:>12}" for name in STYLES))
for example, found in zip(examples, curves, strict=True):
    k, gap = proved(example)
    least = k[gap <= EPS]
    bound = f"> {k[-1]}" if not len(least) else f"{'~' if example.objective is None else '>='} {least[0]}"
    print(f"  {title(example):<50}{bound:>7}" + "".join(f"{needed(gaps):>12}" for gaps in found.values()))

# %%
# The rate belongs to the method
# ------------------------------
# ``bundle`` and ``bundle_ls`` follow the dashed curve, the proved rate, for a hundred iterations. Then they know every plane.
# On the last problem ``bundle_ls`` follows the curve for ever. ``smoothed`` starts at the same point and is much faster.

figure, panels = plt.subplots(2, 3, figsize=(12, 8), layout="constrained", sharex=True, sharey=True)
for ax, example, found in zip(panels.flat, examples, curves, strict=False):
    for name, (colour, width, size) in STYLES.items():
        if found[name] is None:
            ax.text(1.5, 1e-8, "F1 has no ramp to\nsmooth: only cutting\nplanes here", fontsize=9.5, color=INK)
            break
        gap = np.maximum(found[name], LEAST)
        ax.plot(np.arange(1, len(gap) + 1), gap, color=colour, linewidth=width, solid_capstyle="butt")
        if gap[-1] <= LEAST:
            ax.plot(len(gap), gap[-1], "o", color=colour, markersize=size, clip_on=False, zorder=5)
    ax.plot(*proved(example), color="black", linewidth=1.1, linestyle=(0, (4, 3)), zorder=6)
    ax.set(xscale="log", yscale="log", ylim=(LEAST, 10.0), xlim=(0.9, MOST), xlabel="iterations k")
    kind, _, source = title(example).partition(": ")
    ax.set_title(f"{kind[0].upper()}{kind[1:]}\n{source}", fontsize=10, loc="left")
    ax.tick_params(labelbottom=True, labelleft=True)
    tidy(ax, "both")
    # On two problems the start is better than what follows, which would puzzle a reader who does not see it.
    risk = risk_of(example, "bundle").prepare(example.y)
    start = Objective(as_operator(example.X), risk, example.alpha).value(example.w0) - example.optimum
    if example.objective is not None and start < example.objective(example.steps) - example.optimum:
        ax.axhline(start, color=MUTED, linewidth=1.0, linestyle=":", zorder=0)
        words = {"fontsize": 8.5, "color": MUTED, "ha": "right", "va": "bottom"}
        ax.text(ax.get_xlim()[1], 1.6 * start, "the start w₀,\nnot counted", **words)
for ax in panels[:, 0]:
    ax.set_ylabel("J(best of w₁ ... wₖ) - min J")
last = panels.flat[-1]
last.axis("off")
for name, (colour, width, _) in STYLES.items():
    last.plot([], [], color=colour, linewidth=width, label=name)
last.plot([], [], color="black", linewidth=1.1, linestyle=(0, (4, 3)), label="proved for cutting planes")
last.plot([], [], "o", color=MUTED, label="solved: a gap of at most 1e-12")
last.legend(loc="upper left", frameon=False, fontsize=10)
plt.show()
