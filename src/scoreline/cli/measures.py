"""List the measures, or the solvers."""

import argparse
from typing import Any

from scoreline.cli.output import Output
from scoreline.fitting.catalog import list_measures, list_solvers

EXAMPLES = """examples:
  scoreline measures
  scoreline measures --solvers"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("--solvers", action="store_true", help="list solvers instead of measures")


def run(options: Any, output: Output) -> None:
    """Print the list."""
    found: list[Any] = list(list_solvers() if options.solvers else list_measures())
    output.results(**{"solvers" if options.solvers else "measures": [info._asdict() for info in found]})
    head = ("solver", "what it does") if options.solvers else ("measure", "what it is")
    usual, research = ([(info.name, info.summary) for info in found if info.research is flag] for flag in (False, True))
    output.table([head, *usual, ("", ""), ("research", "only of scientific interest"), *research])
