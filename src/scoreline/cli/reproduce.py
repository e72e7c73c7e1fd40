"""Reproduce what the papers behind the solvers claim, and say whether it holds."""

import argparse
from pathlib import Path
from typing import Any

from scoreline.cli.output import Output, plain, writing
from scoreline.cli.parser import add_output

EXAMPLES = """examples:
  scoreline reproduce zhang2010
  scoreline reproduce zhang2012 --data datasets --out zhang2012
  scoreline reproduce zhang2012 --quick --out try"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    from scoreline.reproduce import STUDIES

    about = "; ".join(f"{name}: {study.claim}" for name, study in STUDIES.items())
    parser.add_argument("name", choices=sorted(STUDIES), help=about.replace("%", "%%"))
    parser.add_argument(
        "--data", metavar="FOLDER", help="folder of NAME.svm or NAME.svm.xz (SCORELINE_DATA, else the cache)"
    )
    parser.add_argument("--quick", action="store_true", help="small problems: seconds instead of minutes or hours")
    parser.add_argument(
        "--out",
        metavar="NAME",
        help="write NAME.json, NAME.md and pictures; NAME.jsonl keeps what is done, for going on",
    )
    parser.add_argument("--fresh", action="store_true", help="begin anew, whatever NAME.jsonl has")
    add_output(parser)


def run(options: Any, output: Output) -> int:
    """Run a study and print what the paper says beside what was found."""
    if options.out and not Path(options.out).absolute().parent.is_dir():
        raise ValueError(f"--out {options.out}: its folder does not exist; make it first")
    from scoreline.reproduce import get_study, reproduce
    from scoreline.reproduce.datasets import Datasets
    from scoreline.reproduce.pages import write

    study = get_study(options.name)(Datasets(options.data), options.quick)
    out = Path(options.out) if options.out else None
    kept = None if out is None else out.with_name(out.name + ".jsonl")
    with output.progress("running") as progress, writing(options.out or ""):
        findings, results = reproduce(study, kept, options.fresh, progress.update)
    if findings.missing:
        output.note(f"not on this machine: {', '.join(findings.missing)}; see docs/datasets.md")
    for table in findings.tables:
        output.text(table.title)
        output.table([table.head, *table.rows], right=range(1, len(table.head)))
    for claim in findings.claims:
        output.text(
            f"{claim.text}: {claim.found} (paper: {claim.paper}): {claim.verdict}"
            + (f", {claim.reason}" if claim.reason else "")
        )
    output.result("study", study.name)
    output.result("tables", [table._asdict() for table in findings.tables])
    output.result("claims", [claim._asdict() for claim in findings.claims])
    output.result("missing", findings.missing)
    output.result("reproduces", findings.reproduces)
    judged = {
        True: "All claims that were judged reproduce.",
        False: "NOT all claims reproduce.",
        None: "Nothing was judged.",
    }
    output.text(judged[findings.reproduces])
    if out is not None:
        with writing(options.out):
            notes = write(out, study, findings, plain(results))
        for note in notes:
            output.note(note)
        output.text(f"written to {options.out}.json and {options.out}.md")
    return 0
