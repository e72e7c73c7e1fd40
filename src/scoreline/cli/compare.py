"""Compare scoreline with logistic regression and boosted trees on one data set, and tell whether it pays."""

import argparse
import shlex
import statistics
from typing import Any

import numpy as np

from scoreline.cli.output import Output, as_options
from scoreline.cli.parser import (
    UsageError,
    add_reading,
    add_training,
    check_measure,
    check_outputs,
    names,
    number,
)
from scoreline.cli.reading import read, scaling_of, two_classes
from scoreline.fitting.plan import Request, Shape, plan
from scoreline.model_selection.baselines import check_rival
from scoreline.model_selection.trials import Comparison, compare

EXAMPLES = """examples:
  scoreline compare payments.csv --label outcome --positive fraud --measure average_precision --report compare.html
  scoreline compare a9a.svm --measure f1 --solvers amp,cost_search --splits 20
  scoreline compare demo:fraud"""
SAME_NAMES = (
    "solvers",
    "features",
    "rivals",
    "splits",
    "test_share",
    "alphas",
    "max_rows",
    "max_time",
)  # options that are arguments of `compare`


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument(
        "file",
        help="data: CSV, Parquet, LIBSVM text and others, a folder made by convert, "
        "or demo:fraud, demo:breast-cancer, demo:digits",
    )
    parser.add_argument("--report", metavar="HTML", help="also write an HTML page with plots and explanations")
    add_training(parser)
    add = parser.add_argument_group("comparison").add_argument
    add(
        "--solvers",
        type=names,
        metavar="A,B",
        help="scoreline solvers to compare in addition to auto (default: those made for the measure)",
    )
    add("--features", choices=("additive", "pairs", "auto"), help="also compare a scoreline model with these features")
    add(
        "--with",
        dest="rivals",
        type=names,
        default=(),
        metavar="A,B",
        help="boosted trees of other packages, if installed: lightgbm, xgboost, ebm",
    )
    add(
        "--splits",
        type=number(least=2, integer=True),
        help="number of random splits into training and test rows (default: 10, or 5 for large data)",
    )
    add("--test-share", type=number(above=0), default=0.3, help="share of the rows to test on (default: 0.3)")
    add(
        "--alphas",
        type=_numbers,
        metavar="A,B",
        help="penalty strengths to choose from (default: the grid of train --alpha auto)",
    )
    add(
        "--max-rows",
        type=number(least=8, integer=True),
        default=200_000,
        help="use a random sample of this size if there are more rows (default: 200000)",
    )
    add(
        "--max-time",
        type=number(above=0),
        metavar="SECONDS",
        help="time limit: start no further split after it; at least two splits are run",
    )
    add_reading(parser)


def _numbers(text: str) -> tuple[float, ...]:
    return tuple(number(above=0)(part) for part in text.split(","))


def run(options: Any, output: Output) -> None:
    """Read, compare, print the table and the verdict."""
    check_measure(options, options.solvers or ())
    if options.test_share >= 1.0:
        raise UsageError(f"--test-share {options.test_share:g} must be below 1: it is the share of the rows to test on")
    for name in options.rivals:
        try:
            check_rival(name)
        except ValueError as error:
            raise UsageError(str(error)) from None
    check_outputs(options, ("report",))
    data = read(options, output)
    y = two_classes(data)
    with output.progress("comparing", repeat=True) as progress:
        found = compare(
            data.X,
            y,
            options.measure,
            dict(options.measure_param) or None,
            scaling=scaling_of(options, data.X),
            random_state=options.seed,
            **{name: getattr(options, name) for name in SAME_NAMES},
            progress=lambda done, total, what: progress.update(what, done, total),
            note=lambda line: output.note(as_options(line)),
        )
    _print(found, options, output, data.X.shape)
    if options.report:
        from scoreline.cli.pages import comparison_page

        comparison_page(options, output, found, data)


def _print(found: Comparison, options: Any, output: Output, shape: Any) -> None:
    shown = ("name", "kind", "solver", "risk", "value", "values", "seconds", "alphas", "costs", "difference", "failure")
    output.results(
        verdict=found.verdict, kind=found.kind, best=found.best.name, tree_verdict=found.tree_verdict,
        trees_win=found.trees_win, measure=found.measure.name, rows=found.rows, rows_used=found.rows_used,
        splits=found.splits, splits_planned=found.splits_planned, notes=[as_options(line) for line in found.notes],
        contenders=[{name: getattr(each, name) for name in shown} for each in found.contenders],
    )  # fmt: skip
    used = f" ({found.rows_used:,} used)" if found.rows_used < found.rows else ""
    output.text(
        f"{options.file}: {shape[0]:,} rows{used}, {shape[1]:,} features; {found.splits} splits of "
        f"{found.train_rows:,} training and {found.test_rows:,} test rows"
    )
    output.table(table(found), right=(1, 4))
    for contender in found.contenders:
        if contender.failure:
            output.note(f"{contender.name} failed: {as_options(contender.failure)}")
    output.text(found.verdict)
    if found.tree_verdict:
        more = " Add --features auto to compare them with a scoreline model of curves and pairs of columns."
        output.text(found.tree_verdict + (more if found.trees_win and not options.features else ""))
    command = train_command(options, found, shape)
    output.results(train=command)
    output.text(f"on all rows: {command}")


def train_command(options: Any, found: Comparison, shape: tuple[int, int]) -> str:
    """Return the command that trains the method of the verdict on all rows, with the median of the chosen alphas.

    If folds have chosen a cost together with alpha, the command lets folds choose both again.
    """
    given = {name: getattr(options, name) for name in ("label", "positive", "categories", "drop", "missing", "impute")}
    rows = options.min_category_rows
    given |= {"min-category-rows": rows and str(rows), "separator": options.separator, "measure": options.measure}
    words = ["scoreline", "train", options.file]
    for name, value in given.items():
        if value:
            words += _option(name, value if isinstance(value, str) else ",".join(value))
    if options.indicators is False:
        words.append("--no-indicators")
    if options.zero_based is not None:
        words.append("--zero-based" if options.zero_based else "--no-zero-based")
    for name, value in options.measure_param:
        words += _option("measure-param", f"{name}={value}")
    best = found.best
    if best.features is not None:
        same = len(set(best.kinds)) == 1
        words += ["--features", best.kinds[0] if same else best.features]
        words += _option("alpha", str(statistics.median_high(best.alphas)) if same else "auto")
        return shlex.join([*words, "--out", "model.npz"])
    if not best.automatic:
        words += ["--solver", str(best.solver)]
        default = plan(Request(solver=str(best.solver)), found.measure, Shape(*shape)).risk
        if default.name != best.risk:
            words += ["--risk", str(best.risk)]
    if options.scaling != "auto":
        words += _option("scaling", options.scaling)
    if options.seed != 0:
        words += _option("seed", str(options.seed))
    words += _option("alpha", "auto" if best.costs else str(statistics.median_high(best.alphas)))
    return shlex.join([*words, "--out", "model.npz"])


def _option(name: str, value: str) -> list[str]:
    """Return an option as words; a value like -x needs an equals sign, or it would be read as an option."""
    return [f"--{name}={value}"] if value.startswith("-") else [f"--{name}", value]


def table(found: Comparison) -> list[tuple[str, ...]]:
    """Return the rows of the table: the header, the method of the verdict, then the others."""
    rows: list[tuple[str, ...]] = [("model", found.measure.name, "difference", "95 % interval", "seconds")]
    for c in sorted(found.contenders, key=lambda c: c is not found.best):
        if c.failure is not None:
            rows.append((c.name, "failed", "", "", ""))
            continue
        mean, interval = "best baseline", ""
        if c.difference is not None:
            mean, interval = f"{c.difference[0]:+.4f}", f"{c.difference[1]:+.4f} to {c.difference[2]:+.4f}"
        rows.append((c.name, f"{c.value:.4f}", mean, interval, f"{np.mean(c.seconds):.3f}"))
    return rows
