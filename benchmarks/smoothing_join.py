"""Join the JSON files of several runs of benchmarks/smoothing.py (one for each data set, say) into one table.

python benchmarks/smoothing_join.py bench-output/*.json --out benchmarks/results/smoothing.md --how "8 at a time, 2 cores each"
"""

import argparse
import json
from pathlib import Path

from common import Report
from smoothing import LEVELS, SETS, summary

SUMMARIES = ("paper / ours", "paper + products / ours", "accelerated / ours", "certificate at alpha")


def cells_of(found):
    """Return the cells with their levels as numbers again, and the longest independent run there was."""
    data = [results["results"]["smoothing"].get("data", {}) for results in found]
    cells = [dict(c) for d in data for c in d.get("cells", [])]
    alone = {(b["set"], b["risk"], b["alpha"]): b for d in data for b in d.get("bounds", [])}
    for c in cells:
        c["levels"] = {float(level): values for level, values in c["levels"].items()}
        c |= alone.get((c["set"], c["risk"], c["alpha"]), {})
    return sorted(cells, key=lambda c: (SETS.index(c["set"]), c["risk"], -c["alpha"]))


def others_of(found, cells):
    """Return the rows that belong neither to a cell nor to the summary of one file."""
    own = tuple(f"{c['set']} {c['risk']} {c['alpha']:g}, {what}" for c in cells for what in ("J", "to ", "certificate"))
    rows = [row for results in found for row in results["results"]["smoothing"]["rows"] if "label" in row]
    return [row for row in rows if not row["label"].startswith((*own, *SUMMARIES))]


def line(cell):
    """Return one row of the table: seconds (passes) of both sides to either level, ratio, certificate."""
    words = [cell["set"], cell["risk"], f"{cell['alpha']:g}"]
    for level in LEVELS:
        at = cell["levels"][level]
        for name in ("ours", "paper"):
            arrived = name in at["arrived"]
            words.append(f"{at['seconds'][name]:.3g} ({at['passes'][name]:.0f})" if arrived else "never")
        ratio = at["seconds"]["paper"] / at["seconds"]["ours"]
        words.append(
            "-"
            if not {"ours", "paper"} & set(at["arrived"])
            else f"{'> ' if 'paper' not in at['arrived'] else ''}{ratio:.2f}"
        )
    seconds, passes, iterations = cell["proof"]
    words.append("-" if passes is None else f"{seconds:.3g} ({iterations:.0f})")
    low, high = cell["bounds"]
    words.append(f"{low:.5g} .. {high:.5g}")
    words.append({"inside": f"{cell['other']:.5g}", "above": "not as low"}.get(cell["found"], "BELOW"))
    return "| " + " | ".join(words) + " |"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", type=Path, nargs="+")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--how", default="", help="a sentence on how the files were made")
    parser.add_argument("--cap", type=float, default=10.0, help="the cap they were made with")
    options = parser.parse_args()
    found = [json.loads(path.read_text()) for path in sorted(options.files)]
    cells = cells_of(found)
    report = Report("smoothing", "")
    summary(report, cells, options.cap)
    head = found[0]["header"]
    lines = ["# solver='smoothed' compared with L-BFGS-B with a fixed smoothing", "", options.how, ""]
    lines += [f"- {key}: {head[key]}" for key in ("date", "python", "versions", "revision", "cpu", "threads")]
    lines += ["", "## Summary", "", "| figure | value | note |", "|---|---:|---|"]
    lines += [f"| {r['label']} | {r['value']:.3g} {r['unit']} | {r['note']} |" for r in report.rows if "label" in r]
    lines += ["", *(f"- {r['remark']}" for r in report.rows if "remark" in r)]
    lines += [
        "",
        "## Cells",
        "",
        "Seconds (passes) until J is within 1 % and 0.1 % of J*; seconds (iterations) to the proof of 1 %,",
    ]
    lines += ["the bounds it gives, and J of an independent run of SciPy's L-BFGS-B on a narrow ramp.", ""]
    lines.append(
        "| set | risk | alpha | 1 %: ours | paper | ratio | 0.1 %: ours | paper | ratio | proof | min J in | L-BFGS-B |"
    )
    lines.append("|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
    lines += [line(c) for c in cells]
    lines += ["", "## Other figures", "", "| figure | value | target | | note |", "|---|---:|---|---|---|"]
    for r in others_of(found, cells):
        lines.append(f"| {r['label']} | {r['value']:.3g} {r['unit']} | {r['target']} | {r['verdict']} | {r['note']} |")
    options.out.write_text("\n".join(lines) + "\n")
    joined = {
        "header": head,
        "how": options.how,
        "cells": cells,
        "others": others_of(found, cells),
        "summary": report.rows,
    }
    options.out.with_suffix(".json").write_text(json.dumps(joined, indent=1) + "\n")


if __name__ == "__main__":
    main()
