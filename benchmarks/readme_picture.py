"""The picture of the README: docs/figures/readme.png, from files of results and one fit.

Left: F1 on test rows against LogisticRegression with a tuned threshold (results/tuned_threshold.md). Middle: seconds until
the test AUC is reached, against LogisticRegression (results/rivals_one_pass.jsonl). Right: the bounds of one fit. No number
is typed in: after a change of the results, run it again.

    python benchmarks/readme_picture.py [--out docs/figures/readme.png]
"""

import argparse
import re
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from rivals.summary import NOTABLE, OURS, compare, points_of
from scoreline import MeasureClassifier
from scoreline.io import make_imbalanced
from scoreline.report.palette import ABOVE, BELOW, INK, MUTED
from side_by_side import done_before

ROOT = Path(__file__).resolve().parents[1]
PLAIN = "LogisticRegression lbfgs"
LINE = re.compile(r"^  (\S+) +rival ([\d.]+) +auto ([+-][\d.]+)", re.MULTILINE)


def dumbbells(ax, names, grey, blue, labels):
    places = np.arange(len(names))
    ax.hlines(places, grey, blue, color=MUTED, linewidth=1.2, alpha=0.5)
    ax.scatter(grey, places, s=28, color=MUTED, label=labels[0], zorder=3)
    ax.scatter(blue, places, s=34, color=BELOW, label=labels[1], zorder=4)
    ax.set_yticks(places, names, fontsize=8)
    ax.set_ylim(-0.7, len(names) + 1.6)  # room for the legend
    ax.legend(frameon=False, fontsize=8, loc="upper left", ncols=2, handletextpad=0.2, columnspacing=1.0)
    ax.grid(axis="x", color="#e3e3e3", linewidth=0.6)


def scores(ax, path):
    part = path.read_text().partition('as "auto" trains them now')[2]
    found = LINE.findall(part[part.index("\nf1:") : part.index("\njaccard:")])
    rows = sorted((float(lead), name, float(rival)) for name, rival, lead in found)
    dumbbells(
        ax, [name for _, name, _ in rows], [rival for *_, rival in rows], [rival + lead for lead, _, rival in rows],
        ("logistic regression, tuned threshold", "scoreline"),
    )  # fmt: skip
    higher, lower = (sum(sign * lead > NOTABLE for lead, *_ in rows) for sign in (1, -1))
    ax.set_title(
        f"F1 on test rows: higher on {higher}, lower on {lower} of {len(rows)}", fontsize=10, color=INK, loc="left"
    )
    ax.set_xlabel("test F1", fontsize=9, color=MUTED)


def times(ax, entries):
    rows = compare(points_of(entries, OURS, "roc_auc"), points_of(entries, PLAIN, "roc_auc"))
    if not rows:
        raise SystemExit(f"no data set has both {OURS} and {PLAIN} for AUC: run side_by_side.py with both")
    names = sorted(rows, key=lambda name: rows[name]["ratio"])
    mean = {side: [np.exp(np.mean(np.log(rows[n][side]))) for n in names] for side in ("mine", "its")}
    dumbbells(ax, names, mean["its"], mean["mine"], ("logistic regression", "scoreline"))
    ax.set_xscale("log")
    overall = np.exp(np.mean([np.log(row["ratio"]) for row in rows.values()]))
    ax.set_title(f"The same AUC, {overall:.1f} times faster", fontsize=10, color=INK, loc="left")
    ax.xaxis.set_major_formatter("{x:g}")
    ax.set_xlabel("seconds of training, one thread", fontsize=9, color=MUTED)


def proof(ax):
    X, y = make_imbalanced(random_state=0)
    clf = MeasureClassifier("roc_auc", alpha=1e-3, scaling="standard", tol=1e-4).fit(X, y)
    passes, objective, bound = (
        np.asarray(clf.history_[key], dtype=float) for key in ("passes", "objective", "lower_bound")
    )
    ax.plot(passes, objective, color=ABOVE, linewidth=2, drawstyle="steps-post", label="objective of the model")
    ax.plot(passes, bound, color=BELOW, linewidth=2, drawstyle="steps-post", label="lower bound")
    ax.fill_between(passes, bound, objective, color=MUTED, alpha=0.15, step="post", linewidth=0)
    ax.set_ylim(bottom=max(0.0, clf.lower_bound_ - 0.5 * (1.0 - clf.lower_bound_)))
    ax.legend(frameon=False, fontsize=8, loc="upper right")
    ax.set_title("A certificate with every fit", fontsize=10, color=INK, loc="left")
    ax.set_xlabel("passes over the data", fontsize=9, color=MUTED)
    ax.grid(color="#e3e3e3", linewidth=0.6)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    results = ROOT / "benchmarks" / "results"
    parser.add_argument("--counts", type=Path, default=results / "tuned_threshold.md")
    parser.add_argument("--ranking", type=Path, default=results / "rivals_one_pass.jsonl")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "figures" / "readme.png")
    options = parser.parse_args()
    figure = Figure(figsize=(12.5, 4.6), layout="constrained")
    left, middle, right = figure.subplots(1, 3, width_ratios=[1.15, 1.15, 0.9])
    scores(left, options.counts)
    times(middle, done_before(options.ranking)[1])
    proof(right)
    for ax in (left, middle, right):
        ax.spines[["top", "right"]].set_visible(False)
        ax.tick_params(labelsize=8, color=MUTED)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(options.out, dpi=110)
    print(f"wrote {options.out}")


if __name__ == "__main__":
    main()
