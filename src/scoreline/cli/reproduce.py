"""Reproduce what the papers behind the solvers claim, and say whether it holds.

zhang2010: the lower bounds of cutting planes.
"""

import argparse
import json
from pathlib import Path
from typing import Any

from scoreline._files import whole_file
from scoreline.cli.output import Output, plain, writing
from scoreline.cli.parser import add_output

EXAMPLES = """examples:
  scoreline reproduce zhang2010
  scoreline reproduce zhang2010 --quick --out zhang2010"""
PAPERS = {
    "zhang2010": "Zhang, Saha and Vishwanathan 2010 and 2012: cutting planes need of the order of 1/eps iterations",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    parser.add_argument(
        "name", choices=sorted(PAPERS), help="; ".join(f"{name}: {what}" for name, what in PAPERS.items())
    )
    parser.add_argument("--quick", action="store_true", help="small problems")
    parser.add_argument("--out", metavar="NAME", help="write NAME.json and NAME.md")
    add_output(parser)


def run(options: Any, output: Output) -> int:
    """Run the solvers and print what the paper says beside what happened."""
    if options.out and not Path(options.out).absolute().parent.is_dir():
        raise ValueError(f"--out {options.out}: its folder does not exist; make it first")
    from scoreline.report.zhang2010 import PLANES, SMOOTHING, lower_bound_cases

    n, eps = (30, 1e-2) if options.quick else (100, 1e-3)
    with output.progress("running") as progress:
        progress.update(f"five theorems with {n} rows")
        cases = lower_bound_cases(n, most=10 * n)
    solvers = [*PLANES, *SMOOTHING]
    rows = [("theorem", "proved", *solvers, "holds")]
    content = []
    for case in cases:
        least = case.least(eps)
        needed = {name: case.needed(name, eps) for name in solvers}
        last = int(case.proved[0][-1])
        cells = [
            "-" if case.gaps[name] is None else str(k) if k is not None else f"> {10 * n}" for name, k in needed.items()
        ]
        rows.append((case.title, f">= {least}" if least else f"> {last}", *cells, "yes" if case.holds else "NO"))
        content.append({"theorem": case.title, "proved": least, "iterations": needed, "holds": case.holds})
    output.result("eps", eps)
    output.result("theorems", content)
    output.text(f"iterations to a gap of {eps:g}, {n} rows (-: the risk has no smoothed version)")
    output.table(rows, right=range(1, len(rows[0])))
    good = all(case.holds for case in cases)
    verdict = (
        "The claim reproduces: on every example cutting planes stay above their bound."
        if good
        else "NOT all bounds hold."
    )
    output.result("reproduces", good)
    output.text(verdict)
    if options.out:
        with writing(options.out):
            _write(Path(options.out), rows, {"eps": eps, "rows": n, "theorems": content}, verdict)
        output.text(f"written to {options.out}.json and {options.out}.md")
    return 0


def _write(path: Path, rows: list[Any], content: dict[str, Any], verdict: str) -> None:
    with whole_file(path.with_name(path.name + ".json")) as file:
        file.write(json.dumps(plain(content), indent=1).encode())
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    lines.insert(1, "|" + " --- |" * len(rows[0]))
    with whole_file(path.with_name(path.name + ".md")) as file:
        file.write(("\n".join(lines) + f"\n\n{verdict}\n").encode())
