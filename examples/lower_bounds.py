"""The problems on which cutting planes are provably slow, solved by cutting planes and by others: a figure and a table.

    python examples/lower_bounds.py [--n 100] [--eps 1e-3] [--out lower-bounds.png]

A theorem says that cutting planes need of the order of 1/eps iterations here. It speaks of the method, not of the problem:
`smoothed` starts from the same point and is done long before. As in the theorems, the oracle of the
cutting planes breaks ties by the smallest change, they begin with no plane, and w_1, w_2, ... count, not the start w_0.
"""

import argparse

import numpy as np

from scoreline.data import hard_for_cutting_planes
from scoreline.objective import Objective
from scoreline.operators import as_operator
from scoreline.reproduce.lower_bounds import LEAST, PLANES, RISKS, SMOOTHING, WORDS, gaps_of, proved, risk_of

LOOKS = {  # colour, width of the line, size of the dot at its end; what comes first is wider, so that it shows below the rest
    "bundle": ("#f1b5ae", 6.0, 11), "bundle_ls": ("#c0392b", 2.6, 8.5), "bundle_ocas": ("#8e44ad", 1.5, 6),
    "smoothed": ("#1f6fb2", 2.0, 7), "accelerated": ("#2e9c6a", 1.5, 6),
}  # fmt: skip


def title(example):
    kind = "line search, " if example.solver == "bundle_ls" else ""
    return f"{kind}{WORDS[example.risk]}: {example.name}"


def needed(found, eps):
    """Return in words after how many iterations the gap was at most eps."""
    if found is None:
        return "-"
    arrived = np.flatnonzero(found <= eps)
    return str(arrived[0] + 1) if len(arrived) else f"> {len(found)}"


def show(examples, curves, eps, most):
    names = [*PLANES, *SMOOTHING]
    print(f"iterations to a gap of {eps:g} (-: the risk has no ramp to smooth)")
    print(f"  {'':<53}{'proved':>8}" + "".join(f"{name:>13}" for name in names))
    for example, found in zip(examples, curves, strict=True):
        k, gap = proved(example, most)
        least = k[gap <= eps]
        bound = f"> {k[-1]}" if not len(least) else f"{'~' if example.objective is None else '>='} {least[0]}"
        line = "".join(f"{needed(found[name], eps):>13}" for name in names)
        print(f"  {title(example):<53}{bound:>8}{line}")
    print()


def draw(examples, curves, n, most, path):
    import matplotlib.pyplot as plt
    from matplotlib.lines import Line2D

    figure, panels = plt.subplots(2, 3, figsize=(12, 8), layout="constrained", sharex=True, sharey=True)
    for ax, example, found in zip(panels.flat, examples, curves, strict=False):
        for name, (color, width, size) in LOOKS.items():
            if found[name] is None:
                continue
            gap = np.maximum(found[name], LEAST)
            k = np.arange(1, len(gap) + 1)
            ax.plot(k, gap, color=color, linewidth=width, solid_capstyle="butt")
            if gap[-1] <= LEAST:
                ax.plot(k[-1], gap[-1], "o", color=color, markersize=size, clip_on=False, zorder=5)
        ax.plot(*proved(example, most), color="black", linewidth=1.1, linestyle=(0, (4, 3)), zorder=6)
        ax.set(xscale="log", yscale="log", ylim=(LEAST, 10.0), xlim=(0.9, most))
        kind, _, source = title(example).partition(": ")
        ax.set_title(f"{kind[0].upper()}{kind[1:]}\n{source}", fontsize=10, loc="left")
        ax.grid(color="#eeeeee", linewidth=0.8)
        ax.spines[["top", "right"]].set_visible(False)
        ax.tick_params(labelbottom=True, labelleft=True)
    for ax in panels[:, 0]:
        ax.set_ylabel("J(best of w₁ ... wₖ) - min J")
    for ax in panels.flat:
        ax.set_xlabel("iterations k")
    note(examples, panels)
    last = panels.flat[-1]
    last.axis("off")
    lines = [Line2D([], [], color=color, linewidth=width) for color, width, _ in LOOKS.values()]
    lines.append(Line2D([], [], color="black", linewidth=1.1, linestyle=(0, (4, 3))))
    lines.append(Line2D([], [], color="#555555", marker="o", linestyle=""))
    labels = [*LOOKS, "proved for cutting planes", "solved: a gap of at most 1e-12"]
    last.legend(lines, labels, loc="upper left", frameon=False, fontsize=10)
    last.text(
        0.03, 0.0, f"n = {n}. bundle and bundle_ls follow the dashed\ncurve for n iterations, until they have met every\n"
        "plane; in the panel on the left bundle_ls follows\nit for ever. smoothed begins at the same point\n"
        "and does not: the bound is the method's, not\nthe problem's.",
        transform=last.transAxes, fontsize=10, color="#333333", va="bottom", linespacing=1.35,
    )  # fmt: skip
    figure.savefig(path, dpi=80, pil_kwargs={"optimize": True})


def note(examples, panels):
    """Say in the panels what would puzzle: where the start is better than what follows, and where nothing is smoothed."""
    for ax, example in zip(panels.flat, examples, strict=False):
        if example.risk not in RISKS:
            ax.text(1.5, 1e-8, "F1 has no ramp to\nsmooth: only cutting\nplanes here", fontsize=9.5, color="#333333")
        risk = risk_of(example, "bundle").prepare(example.y)
        start = Objective(as_operator(example.X), risk, example.alpha).value(example.w0) - example.optimum
        if example.objective is not None and start < example.objective(example.steps) - example.optimum:
            ax.axhline(start, color="#777777", linewidth=1.0, linestyle=":", zorder=0)
            ax.text(
                ax.get_xlim()[1], 1.6 * start, "the start w₀,\nnot counted", fontsize=8.5, color="#555555",
                ha="right", va="bottom",
            )  # fmt: skip


def main():
    import matplotlib

    matplotlib.use("Agg")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, default=100, help="size of the examples: slow for n iterations")
    parser.add_argument("--eps", type=float, default=1e-3, help="gap of the table")
    parser.add_argument("--out", default="lower-bounds.png")
    options = parser.parse_args()
    most = 10 * options.n
    examples = hard_for_cutting_planes(options.n)
    curves = [{name: gaps_of(example, name, most) for name in LOOKS} for example in examples]
    show(examples, curves, options.eps, most)
    draw(examples, curves, options.n, most, options.out)
    print(f"Figure: {options.out}")


if __name__ == "__main__":
    main()
