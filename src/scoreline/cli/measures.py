"""List what can be trained for, and by which solvers."""

import argparse
from typing import Any

from scoreline.cli.output import Output
from scoreline.cli.parser import add_output
from scoreline.fitting.catalog import list_measures, list_solvers

EXAMPLES = """examples:
  scoreline measures
  scoreline measures --solvers"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    parser.add_argument("--solvers", action="store_true", help="list solvers instead")
    add_output(parser)


def run(options: Any, output: Output) -> int:
    """Print the list."""
    found: list[Any] = list(list_solvers() if options.solvers else list_measures())
    output.result("solvers" if options.solvers else "measures", [info._asdict() for info in found])
    if options.solvers:
        output.table([("solver", "what it does"), *((info.name, info.summary) for info in found)])
    else:
        output.table([("measure", "what it is"), *((info.name, info.summary) for info in found)])
    return 0
