"""What the curves of benchmarks/rows.py say: its tables, and figures of the test measure against seconds.

    python benchmarks/rows_figures.py bench-output/rows-curves.json [--to docs/figures] [--sets ijcnn1,letter] [--measures f1]

One figure for each measure, as figures 1 to 4 of Narasimhan, Kar and Jain (2015), "Optimizing non-decomposable performance
measures: a tale of two classes", and one panel for each data set: lines for methods that were watched on their way (the first
and the last point are marked), a single marker for those that show themselves at their end alone. A dotted line is 0.01 below
the best end of a batch method. Panels begin where the curves get interesting; what lies below is cut off.
"""

import argparse
import json
from pathlib import Path

from rivals_rows import BATCH, METHODS, ROW_METHODS, SPADE, STAMP

SETS = ("ijcnn1", "covtype", "mnist", "kddcup99", "letter")
MEASURES = (*SPADE, *STAMP)
WITHIN = 0.01
TITLES = {
    "qmean": "Q-mean", "min_tpr_tnr": "min(TPR, TNR)", "hmean": "H-mean", "gmean": "G-mean", "f1": "F1", "jaccard": "Jaccard",
}  # fmt: skip
STYLES = {  # label, colour, marker
    "spade": ("SPADE, row by row", "#c0392b", "o"),
    "stamp": ("STAMP, row by row", "#c0392b", "o"),
    "1pmb": ("1PMB, buffers of 500", "#e08e2b", "s"),
    "amp": ("AMP", "#8e44ad", "P"),
    "cost_search": ("cost_search", "#1e8449", "D"),
    "plugin": ("plugin", "#1f6fb2", "^"),
    "bundle_ocas": ("bundle_ocas", "#555555", "v"),
    "logistic": ("LogisticRegression", "#d63384", "X"),
}
COLUMNS, SHOWN = 3, 3.0  # panels in a row; how many times the spread of the ends a panel reaches below the best of them


def grouped(runs):
    """Return {(set, measure): {method: run}} of the runs that did not fail, sets and measures in our order."""
    groups = {}
    for run in runs.values():
        if "failed" not in run:
            groups.setdefault((run["set"], run["measure"]), {})[run["method"]] = run
    order = sorted(groups, key=lambda pair: (place(SETS, pair[0]), pair[0], place(MEASURES, pair[1])))
    return {pair: groups[pair] for pair in order}


def first_at(curve, level):
    """Return the seconds of the first point at the level, None if there is none, and whether all later ones stay there."""
    for k, (seconds, value) in enumerate(curve):
        if value >= level:
            return seconds, all(later >= level for _, later in curve[k:])
    return None, False


def compare(runs, passes):
    """Return one row of the table from the runs of one set and measure {method: run}; None without ours or batch runs."""
    mine = next((m for m in ROW_METHODS if m in runs), None)
    ends = {m: runs[m]["curve"][-1][1] for m in BATCH if m in runs}
    if mine is None or not ends:
        return None
    best = max(ends, key=ends.get)
    level, curve = ends[best] - WITHIN, runs[mine]["curve"][:passes]
    at, stays = first_at(curve, level)
    times = {m: first_at(run["curve"], level)[0] for m, run in runs.items() if m != mine}
    times = {m: seconds for m, seconds in times.items() if seconds is not None}
    quickest = min(times, key=times.get)
    within = curve[-1][1] >= level
    ratio = None if at is None else times[quickest] / at
    fastest = within and ratio > 1.0
    verdict = "within, fastest" if fastest else f"within, {quickest} is faster" if within else "NOT within"
    return {
        "set": runs[mine]["set"], "measure": runs[mine]["measure"], "batch": best, "best": ends[best], "mine": mine,
        "end": curve[-1][1], "highest": max(value for _, value in curve), "at": at, "stays": stays, "other": quickest,
        "other_at": times[quickest], "ratio": ratio, "within": within, "fastest": fastest, "verdict": verdict,
    }  # fmt: skip


def place(names, name):
    return names.index(name) if name in names else len(names)


def table_lines(pairs):
    """Return the table of pairs in Markdown."""
    lines = [
        f"Level: {WITHIN:g} below the best end of a batch method. Seconds: to the first point there (* later it falls below).",
        "Ratio: seconds of the quickest other method over ours.", "",
        "| set | measure | best batch | value | ours | end | highest | end - best | seconds | other | seconds | ratio | |",
        "|---|---|---|---:|---|---:|---:|---:|---:|---|---:|---:|---|",
    ]  # fmt: skip
    for r in pairs:
        at = "never" if r["at"] is None else f"{r['at']:.3g}{'' if r['stays'] else '*'}"
        cells = [
            r["set"],
            r["measure"],
            r["batch"],
            f"{r['best']:.4f}",
            r["mine"],
            f"{r['end']:.4f}",
            f"{r['highest']:.4f}",
        ]
        cells += [f"{r['end'] - r['best']:+.4f}", at, r["other"], f"{r['other_at']:.3g}"]
        cells += ["-" if r["ratio"] is None else f"{r['ratio']:.2f}", r["verdict"]]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def end_lines(groups):
    """Return the table of what every method reaches at its end, in Markdown."""
    names = [m for m in METHODS if any(m in runs for runs in groups.values())]
    lines = ["Test measure at the end of every method, seconds of the fit, alpha.", ""]
    lines += ["| set | measure | " + " | ".join(names) + " |", "|---|---" + "|---:" * len(names) + "|"]
    for pair, runs in groups.items():
        cells = []
        for m in names:
            run = runs.get(m)
            late = " (cap)" if run and run["status"] == "max_time" else ""
            end = run["curve"][-1] if run else None
            cells.append(f"{end[1]:.4f}, {end[0]:.3g} s{late}, {run['alpha']:g}" if end else "")
        lines.append(f"| {pair[0]} | {pair[1]} | " + " | ".join(cells) + " |")
    return lines


def panel(ax, runs, title):
    """Draw the curves of one set and measure."""
    ends = {m: run["curve"][-1][1] for m, run in runs.items()}
    reached = [value for run in runs.values() for _, value in run["curve"]]
    compared = [value for m, value in ends.items() if m != "1pmb"] or list(ends.values())
    spread = max(max(reached) - min(compared), 3.0 * WITHIN)
    bottom = max(min(reached) - 0.05 * spread, max(reached) - SHOWN * spread)
    ax.set_ylim(bottom, max(reached) + 0.1 * spread)
    for method in reversed([m for m in METHODS if m in runs]):  # ours on top
        _, colour, marker = STYLES[method]
        seconds, values = zip(*runs[method]["curve"], strict=True)
        mine = method in ROW_METHODS
        ax.plot(
            seconds, values, color=colour, linewidth=2.4 if mine else 1.5, marker=marker, markeredgecolor="white",
            markersize=8 if len(seconds) == 1 else 6, markevery=[0, len(seconds) - 1], zorder=5 if mine else 3,
        )  # fmt: skip
    batch = [value for m, value in ends.items() if m in BATCH]
    if batch:
        ax.axhline(max(batch) - WITHIN, color="#888888", linewidth=0.9, linestyle=":")
    for k, method in enumerate(m for m in METHODS if m in ends and ends[m] < bottom):
        label, colour, _ = STYLES[method]
        text = f"{label.partition(',')[0]} ends at {ends[method]:.2f} after {runs[method]['curve'][-1][0]:.2g} s"
        box = {"facecolor": "white", "edgecolor": "none", "pad": 1.0}
        ax.text(
            0.98,
            0.03 + 0.07 * k,
            text,
            color=colour,
            ha="right",
            transform=ax.transAxes,
            fontsize=8.5,
            bbox=box,
            zorder=6,
        )
    log_seconds(ax, [seconds for run in runs.values() for seconds, value in run["curve"] if value >= bottom])
    ax.set_title(title, loc="left")
    ax.grid(color="#e4e4e4", linewidth=0.6)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)


def log_seconds(ax, shown):
    """Make the axis of seconds logarithmic, with plain numbers as labels: 1, 2 and 5 where it is short."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    ax.set_xscale("log")
    low, high = min(shown) / 1.3, max(shown) * 1.3
    ax.set_xlim(low, high)
    ax.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if high < 60.0 * low else (1.0,)))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda seconds, _: f"{seconds:g}"))
    ax.xaxis.set_minor_formatter(NullFormatter())


def draw(measure, panels, path):
    """Draw one measure, {set: {method: run}}, and write the picture."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt
    from PIL import Image  # matplotlib needs it, too

    plt.rcParams.update({"font.size": 9.5, "axes.titlesize": 10.5})
    columns = min(COLUMNS, len(panels) + 1)
    rows = -(-(len(panels) + 1) // columns)  # one more for the legend
    fig, axes = plt.subplots(rows, columns, figsize=(4.1 * columns, 3.2 * rows), layout="constrained", squeeze=False)
    fig.get_layout_engine().set(w_pad=0.1, h_pad=0.08)
    flat = axes.ravel()
    for ax, (name, runs) in zip(flat, panels.items(), strict=False):
        some = next(iter(runs.values()))
        panel(ax, runs, f"{name}: {some['rows']:,} rows, {100 * some['positives'] / some['rows']:.2g} % positive")
        ax.set_xlabel("seconds")
        ax.set_ylabel(f"{TITLES.get(measure, measure)}, test rows")
    for ax in flat[len(panels) :]:
        ax.set_axis_off()
    used = [m for m in METHODS if any(m in runs for runs in panels.values())]
    handles, labels = [], []
    for method in used:
        label, colour, marker = STYLES[method]
        line = any(len(runs[method]["curve"]) > 1 for runs in panels.values() if method in runs)
        width = 2.4 if method in ROW_METHODS else 1.5
        handles.append(
            plt.Line2D(
                [], [], color=colour, marker=marker, linestyle="-" if line else "", linewidth=width, markersize=7
            )
        )
        labels.append(label if line else f"{label}, at its end")
    handles.append(plt.Line2D([], [], color="#888888", linestyle=":"))
    labels.append(f"{WITHIN:g} below the best batch method")
    flat[len(panels)].legend(handles, labels, loc="center left", frameon=False, fontsize=10, labelspacing=0.8)
    fig.savefig(path, dpi=100)
    plt.close(fig)
    few = Image.open(path).convert("RGB").quantize(256, dither=Image.Dither.NONE)  # colours: half the size
    few.save(path, optimize=True)


def draw_all(runs, folder, sets=None, measures=None):
    """Draw every measure that there are curves of; return the paths."""
    folder.mkdir(parents=True, exist_ok=True)
    groups, paths = grouped(runs), []
    for measure in measures or MEASURES:
        panels = {s: found for (s, m), found in groups.items() if m == measure and (not sets or s in sets)}
        if panels:
            paths.append(folder / f"rows-{measure.replace('_', '-')}.png")
            draw(measure, panels, paths[-1])
    return paths


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = lambda text: text.split(",")
    parser.add_argument("curves", type=Path, help="the file of rows.py that ends in -curves.json")
    parser.add_argument("--to", type=Path, default=Path("bench-output"), help="folder")
    parser.add_argument("--sets", type=names, help="all by default")
    parser.add_argument("--measures", type=names, help="all by default")
    options = parser.parse_args()
    runs = json.loads(options.curves.read_text())["runs"]
    for path in draw_all(runs, options.to, options.sets, options.measures):
        print(path)


if __name__ == "__main__":
    main()
