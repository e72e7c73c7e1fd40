"""Reproduce what the papers behind the solvers claim, and say whether it holds: `python -m studies [NAME]`."""

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from scoreline.cli.main import entry, exit_code_of
from scoreline.cli.output import Output, plain, writing
from scoreline.cli.parser import Parser, add_output
from studies import STUDIES, get_study, reproduce
from studies.datasets import Datasets
from studies.pages import write

EXAMPLES = """examples:
  make reproduce ARGS="--out all"
  make reproduce NAME=zhang2010
  make reproduce NAME=zhang2012 ARGS="--data datasets --out zhang2012"
  make reproduce NAME=zhang2012 ARGS="--quick --out try"

exit codes: 0 done, 1 failed, 2 wrong usage, 130 interrupted"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a study from the command line; return the exit code."""
    return exit_code_of(lambda: _parse_and_run(list(sys.argv[1:] if arguments is None else arguments)))


def _parse_and_run(arguments: list[str]) -> int:
    try:
        options = make_parser().parse_args(arguments)
    except SystemExit as ended:
        return int(ended.code or 0)
    output = Output(options.json, options.quiet)
    run(options, output)
    output.finish()
    return 0


def make_parser() -> Parser:
    """Return the parser of the arguments."""
    parser = Parser(
        prog="python -m studies",
        description="Reproduce what the papers behind the solvers claim.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    about = "; ".join(f"{name}: {study.claim}" for name, study in STUDIES.items())
    parser.add_argument(
        "name",
        nargs="?",
        choices=sorted(STUDIES),
        help=f"the study, or all of them where it is left out. {about.replace('%', '%%')}",
    )
    parser.add_argument(
        "--data", metavar="FOLDER", help="folder of NAME.svm or NAME.svm.xz (SCORELINE_DATA, else the cache)"
    )
    parser.add_argument("--quick", action="store_true", help="small problems: seconds instead of minutes or hours")
    parser.add_argument(
        "--out",
        metavar="NAME",
        help="write NAME.json, NAME.md and pictures (all studies: NAME-STUDY.md); NAME.jsonl keeps what is done, for going on",
    )
    parser.add_argument(
        "--minutes",
        type=float,
        metavar="N",
        help="begin nothing new after N minutes; the same command goes on from there",
    )
    parser.add_argument(
        "--limit",
        type=float,
        metavar="SECONDS",
        help="limit of one fit, instead of that of the study: a run with a smaller one says less about slow rivals",
    )
    parser.add_argument(
        "--jobs",
        type=int,
        default=1,
        metavar="N",
        help="so many parts at a time, each on one core; they disturb each other's times",
    )
    parser.add_argument("--fresh", action="store_true", help="begin anew, whatever NAME.jsonl has")
    add_output(parser)
    return parser


def run(options: Any, output: Output) -> None:
    """Run one study, or all of them, and print what the paper says beside what was found."""
    if options.out and not Path(options.out).absolute().parent.is_dir():
        raise ValueError(f"--out {options.out}: its folder does not exist; make it first")
    out = Path(options.out) if options.out else None
    if options.name is not None:
        results, _ = _run_study(options.name, out, options.minutes, options, output)
        output.results(**results)
        return
    begin, every, seconds = time.perf_counter(), [], 0.0
    for name in STUDIES:
        left = None if options.minutes is None else max(0.0, options.minutes - (time.perf_counter() - begin) / 60.0)
        own = None if out is None else out.with_name(f"{out.name}-{name}")
        output.text(f"== {name}")
        results, took = _run_study(name, own, left, options, output)
        every.append(results)
        seconds += took
    output.results(studies=every, seconds=seconds)
    output.text(f"The parts of all {len(STUDIES)} studies took {seconds / 60.0:.1f} minutes, one after the other.")


def _run_study(
    name: str, out: Path | None, minutes: float | None, options: Any, output: Output
) -> tuple[dict[str, Any], float]:
    """Run and print one study; return its results for the JSON object, and the seconds that its parts took."""
    study = get_study(name)(Datasets(options.data), options.quick, options.limit)
    record = None if out is None else out.with_name(out.name + ".jsonl")
    with output.progress("running") as progress, writing(out or ""):
        findings, results = reproduce(study, record, options.fresh, progress.update, minutes, options.jobs)
    if findings.missing:
        output.note(f"not on this machine: {', '.join(findings.missing)}; see docs/datasets.md")
    if findings.left:
        output.note(f"not run, for lack of time: {'; '.join(findings.left)}")
    for table in findings.tables:
        output.text(table.title)
        output.table([table.head, *table.rows], right=range(1, len(table.head)))
    for claim in findings.claims:
        output.text(
            f"{claim.text}: {claim.found} (paper: {claim.paper}): {claim.verdict}"
            + (f", {claim.reason}" if claim.reason else "")
        )
    tables, claims = ([each._asdict() for each in group] for group in (findings.tables, findings.claims))
    full = {
        True: "All claims that were judged reproduce.",
        False: "NOT all claims reproduce.",
        None: "Nothing was judged.",
    }
    output.text(full[findings.reproduces])
    if out is not None:
        with writing(out):
            notes = write(out, study, findings, plain(results))
        for note in notes:
            output.note(note)
        output.text(f"written to {out}.json and {out}.md")
    content = {"study": study.name, "tables": tables, "claims": claims, "missing": findings.missing}
    return content | {"reproduces": findings.reproduces}, findings.seconds


if __name__ == "__main__":
    entry(main)
