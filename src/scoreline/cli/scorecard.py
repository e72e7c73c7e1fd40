"""Make a scorecard of a table: train an additive model, choose bins and points, write the card.

Every output format is chosen by the suffix of its file.
"""

import argparse
import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from scoreline.cli.evaluate import words_of
from scoreline.cli.output import Output, writing
from scoreline.cli.parser import UsageError, add_reading, check_measure, check_outputs, number, pair
from scoreline.cli.reading import is_table, labels_of, read, two_classes
from scoreline.cli.train import direction, monotone_of, test_rows
from scoreline.export import to_onnx, to_python, to_sql
from scoreline.export.as_sql import DIALECTS
from scoreline.io import Dataset, read_columns
from scoreline.io.files import atomic_file
from scoreline.measures import get_measure
from scoreline.measures.intervals import intervals_of
from scoreline.model_selection import MeasureClassifierCV
from scoreline.report.wording import gap_in_words, relative_gap
from scoreline.scorecards import Scorecard

EXAMPLES = """examples:
  scoreline scorecard loans.csv --label default --monotone income:- --max-features 10 --out card.html
  scoreline scorecard loans.csv --label default --edges age:25,30,35 --test new.csv --out card.html --out card.json
  scoreline scorecard loans.csv --label default --out card.sql --table loans --out card.py"""
SCALE = ("points", "pdo", "base", "max_bins", "min_share", "max_features")  # as arguments of `scorecard`
FEW_ROWS, FOLDS_OF_FEW, FOLDS = 20_000, 5, 3
ONE_LINE = 60  # letters of a list of columns


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("file", help="training data: CSV, Parquet, LIBSVM text and others, or demo:fraud")
    parser.add_argument(
        "--out",
        metavar="CARD",
        action="append",
        help="file to write; its suffix chooses the format: .html, .md, .tex, .csv, .json, .sql, .onnx or .py "
        "(default: card.html); repeat for more",
    )
    parser.add_argument("--test", metavar="FILE", help="test data to evaluate the card on")
    parser.add_argument("--title", default="Scorecard", help="title of the page (default: Scorecard)")
    add = parser.add_argument_group("model").add_argument
    add("--measure", default="roc_auc", help="measure to train for (default: roc_auc)")
    add(
        "--measure-param",
        type=pair,
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="parameter of the measure, such as beta=2; repeat for more",
    )
    add(
        "--alpha",
        type=number(above=0),
        help="penalty strength: larger is smoother (default: chosen by cross-validation)",
    )
    add(
        "--monotone",
        action="append",
        type=direction,
        metavar="COLUMN:-",
        help="the risk never falls (COLUMN:+) or never rises (COLUMN:-) with this column; repeat for more",
    )
    add(
        "--max-features",
        type=number(least=1, integer=True),
        metavar="COLUMNS",
        help="largest number of columns, chosen by a path of certified fits (default: all)",
    )
    add("--seed", type=number(least=0, integer=True), default=0, help="random seed (default: 0)")
    add = parser.add_argument_group("card").add_argument
    add(
        "--points",
        type=number(least=-1e9),
        default=600.0,
        help="points of a row with the odds of --base (default: 600)",
    )
    add(
        "--pdo",
        type=number(least=-1e6),
        default=20.0,
        help="points that double the odds; with a negative number more points mean a higher risk (default: 20)",
    )
    add("--base", type=number(above=0), default=50.0, help="odds of the negative class at --points (default: 50)")
    add(
        "--max-bins",
        type=number(least=2, integer=True),
        default=15,
        metavar="BINS",
        help="largest number of bins of a column (default: 15)",
    )
    add(
        "--min-share",
        type=number(least=0),
        default=0.01,
        metavar="SHARE",
        help="least share of the rows in a bin (default: 0.01)",
    )
    add(
        "--edges",
        action="append",
        type=edges_of,
        metavar="COLUMN:25,30,35",
        help="edges of the bins of a column of numbers; repeat for more columns (default: found)",
    )
    add = parser.add_argument_group("sql").add_argument
    add("--table", metavar="NAME", help="table to score with the .sql file; SCHEMA.NAME if it is in a schema")
    add("--dialect", choices=tuple(DIALECTS), help="SQL dialect (default: ansi)")
    add_reading(parser, encoded=False)


def run(options: Any, output: Output) -> None:
    """Read, train, make the card, write it."""
    outputs = [Path(path) for path in options.out or ["card.html"]]
    _check(options, outputs)
    data = read(options, output, notes=not is_table(options.file))
    y = two_classes(data)
    tested = test_rows(options, output, data)
    rows = _columns(options, data, options.file)
    clf = _classifier(options, len(y))
    with output.progress("training"), output.messages():
        clf._column_names = None if is_table(options.file) else data.names
        clf.fit(rows, y)
    with output.messages():
        card: Scorecard = clf.scorecard(
            rows, y, edges=dict(options.edges or ()), **{name: getattr(options, name) for name in SCALE}
        )
    if data.class_names is not None:
        card = card.with_classes(data.class_names)
    if tested is not None:
        card = _tested(options, output, card, clf, data, tested)
    _summarize(output, clf, card)
    for path in outputs:
        with writing(path), atomic_file(str(path)) as file:
            file.write(WRITERS[path.suffix.lower()](card, options))
    output.results(out=[str(path) for path in outputs])
    output.text(f"card in {', '.join(map(str, outputs))}")


def search_options(rows: int) -> dict[str, Any]:
    """Return options of the search for alpha: more folds for few rows, where the choice depends on few of them."""
    return {"cv": FOLDS_OF_FEW if rows < FEW_ROWS else FOLDS, "selection": "paired"}


def edges_of(text: str) -> tuple[str, list[float]]:
    """Return a column and the edges after it."""
    column, _, edges = text.rpartition(":")
    try:
        found = [float(edge) for edge in edges.split(",")]
    except ValueError:
        found = []
    if not column or not found:
        raise argparse.ArgumentTypeError(f"{text!r} must be COLUMN:EDGE,EDGE, such as age:25,30,35")
    return column, found


def _classifier(options: Any, rows: int) -> Any:
    common = {
        "measure": options.measure, "measure_params": dict(options.measure_param) or None, "features": "additive",
        "monotone": monotone_of(options), "random_state": options.seed,
    }  # fmt: skip
    if options.alpha is None:
        return MeasureClassifierCV(**common, **search_options(rows))
    from scoreline.classifier import MeasureClassifier

    return MeasureClassifier(**common, alpha=options.alpha)


def _columns(options: Any, data: Dataset, path: str) -> Any:
    """Return the columns of a table as they are, or the features of other files."""
    if not is_table(path):
        return data.X
    assert data.encoding is not None, "a table has an encoding"
    return read_columns(path, data.encoding, missing=options.missing, separator=options.separator)


def _tested(options: Any, output: Output, card: Scorecard, clf: Any, data: Dataset, tested: Dataset) -> Scorecard:
    """Print the measure of the card on test rows, and return the card with it."""
    labels = np.asarray(labels_of(tested))
    truth = labels if labels.dtype == bool else words_of(labels) == words_of(np.array(card.classes))[1]
    measure = get_measure(options.measure, dict(options.measure_param) or None)
    (interval,) = intervals_of([measure], truth, card.decision(card.predict(_columns(options, data, options.test))))
    output.results(test=interval.value, test_interval=[interval.low, interval.high])
    output.text(
        f"{card.measure} of the card on {options.test}: {interval.value:.4f} (95 % interval {interval.low:.4f} to "
        f"{interval.high:.4f})"
    )
    return card.evaluated([interval.value, interval.low, interval.high], "test rows")


def _summarize(output: Output, clf: Any, card: Scorecard) -> None:
    """Print what was trained, the path, and what bins and rounding cost."""
    values, objective = card.loss["measure"], card.loss["objective"]
    lines = sum(len(column.lines) for column in card.columns)
    output.results(
        columns=[column.name for column in card.columns], lines=lines, alpha=clf.alpha, measure=card.measure,
        loss=card.loss, path=list(card.path), base_points=card.base_points, cutoff=card.cutoff,
    )  # fmt: skip
    if clf.gap_ is not None:
        output.text(
            f"model: alpha {getattr(clf, 'alpha_', clf.alpha):g}, objective {clf.objective_:.6g}, lower bound "
            f"{clf.lower_bound_:.6g} ({gap_in_words(relative_gap(clf))})"
        )
    if card.path:
        head = ("alpha", "columns", "objective", "lower bound", card.measure, "entering")
        before: set[str] = set()
        rows = [head]
        for step in card.path:
            entering = ", ".join(name for name in step["columns"] if name not in before)
            before |= set(step["columns"])
            rows.append(
                (
                    f"{step['alpha']:.3g}", str(len(step["columns"])), f"{step['objective']:.5g}",
                    f"{step['lower_bound']:.5g}", f"{step['measure']:.4f}",
                    entering if len(entering) <= ONE_LINE else f"{entering[:ONE_LINE]} ...",
                )
            )  # fmt: skip
        output.table(rows, right=(1,))
    output.text(
        f"card: {len(card.columns)} columns, {lines} lines; {card.measure} on the training rows {values['card']:.4f}, "
        f"unrounded {values['bins']:.4f}, model {values['model']:.4f}"
    )
    output.text(
        f"rounding: objective {objective['card']:.6g}, unrounded {objective['bins']:.6g}, and no points for these bins have "
        f"less than {card.loss['lower_bound']:.6g}"
    )


def _sql(card: Scorecard, options: Any) -> bytes:
    given = {} if options.dialect is None else {"dialect": options.dialect}
    return f"{to_sql(card, options.table.split('.'), **given)};\n".encode()


WRITERS: dict[str, Callable[[Scorecard, Any], bytes]] = {
    ".html": lambda card, options: card.to_html(title=options.title).encode(),
    ".md": lambda card, options: card.to_markdown().encode(),
    ".tex": lambda card, options: card.to_latex().encode(),
    ".csv": lambda card, options: card.to_csv().encode(),
    ".json": lambda card, options: (
        json.dumps(card.to_json(), indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    ).encode(),
    ".sql": _sql,
    ".onnx": lambda card, options: bytes(to_onnx(card).SerializeToString()),
    ".py": lambda card, options: to_python(card).encode(),
}


def _check(options: Any, outputs: list[Path]) -> None:
    """Raise before anything is read if options contradict each other, or a file cannot be written."""
    check_measure(options)
    suffixes = [path.suffix.lower() for path in outputs]
    for path, suffix in zip(outputs, suffixes, strict=True):
        if suffix not in WRITERS:
            raise UsageError(f"--out {path}: the suffix chooses the format, expected one of {', '.join(WRITERS)}")
        check_outputs(argparse.Namespace(**{**vars(options), "out": str(path)}), ("out",), ("file", "test"))
    if len(set(outputs)) < len(outputs):
        raise UsageError(f"--out {shlex.join(map(str, outputs))} names a file twice")
    if ".sql" in suffixes and not options.table:
        raise UsageError("--out with .sql needs the table whose rows are scored: --table NAME")
    for name in ("table", "dialect"):
        if getattr(options, name) and ".sql" not in suffixes:
            raise UsageError(f"--{name} is for a file that ends in .sql; add --out card.sql, or leave it out")
    if options.pdo == 0:
        raise UsageError("--pdo 0: give the points that double the odds, a number other than 0")
    if options.min_share > 0.5:
        raise UsageError(f"--min-share {options.min_share:g} must be a share of the rows, at most 0.5")
