"""Compare new rows with those that a model or a scorecard was trained on: drift of columns, scores, measure and promise."""

import argparse
import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from scoreline.classifier import load_model
from scoreline.cli.evaluate import positive_rows
from scoreline.cli.output import Output
from scoreline.cli.parser import add_reading
from scoreline.cli.promises import print_promise_test
from scoreline.cli.reading import is_table, read
from scoreline.io import Dataset, Encoding, read_columns
from scoreline.io.columns import Column
from scoreline.measures import Measure, Promise, get_measure
from scoreline.measures.intervals import intervals_of
from scoreline.monitoring import Drift
from scoreline.scorecards import Scorecard

EXAMPLES = """examples:
  scoreline monitor model.npz today.csv
  scoreline monitor card.json today.csv --label default --json"""
LITTLE, MUCH = 0.1, 0.25  # population stability indices from which columns changed somewhat, and much


class Watched(NamedTuple):
    """New rows and what a model says of them."""

    data: Dataset
    drift: Drift
    scores: Any
    classes: Any
    measure: Measure
    expected: list[float] | None
    evaluated_on: str
    promise: Promise | None = None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument(
        "model", metavar="MODEL_OR_CARD", help="a model that train saved from a table, or a card.json of scorecard"
    )
    parser.add_argument("file", metavar="FILE", help="new data, with labels or without")
    add_reading(parser, encoded=False)


def run(options: Any, output: Output) -> None:
    """Load, read, compare, print."""
    found = (_card if Path(options.model).suffix.lower() == ".json" else _model)(options, output)
    drift = found.drift
    output.results(
        rows=drift.rows, reference_rows=drift.reference_rows, columns=drift.columns, scores=drift.scores,
        changed=[name for name, index in drift.columns.items() if index >= MUCH],
    )  # fmt: skip
    output.text(
        f"{drift.rows:,} rows against {drift.reference_rows:,} training rows, by the population stability index"
    )
    indices = [("scores", drift.scores), *drift.columns.items()]
    output.table([("", "index", ""), *((name, f"{index:.3f}", _word(index)) for name, index in indices)], right=(1,))
    if found.data.y is not None:
        _print_measure(options, output, found)


def _word(index: float) -> str:
    return "changed much" if index >= MUCH else "changed" if index >= LITTLE else "stable"


def _print_measure(options: Any, output: Output, found: Watched) -> None:
    """Print the measure on the new rows with its interval, and that at the time of training."""
    truth = positive_rows(found.data.y, found.classes, options.positive is not None or Path(options.file).is_dir())
    (now,) = intervals_of([found.measure], truth, found.scores)
    values: dict[str, Any] = {"value": now.value, "interval": [now.low, now.high]}
    text = f"{found.measure.label}: {now.value:.4f} (95 % interval {now.low:.4f} to {now.high:.4f})"
    if found.expected is not None:
        value, low, high = found.expected
        verdict = "lower" if now.high < low else "higher" if now.low > high else "no clear change"
        values |= {"expected": value, "expected_interval": [low, high], "verdict": verdict}
        text += f"; on {found.evaluated_on} it was {value:.4f} ({low:.4f} to {high:.4f}): {verdict}"
    output.results(measure=found.measure.name, **values)
    output.text(text)
    print_promise_test(output, found.promise, truth, found.scores)


def _model(options: Any, output: Output) -> Watched:
    """Read the rows as a model needs them, and compare them with its reference."""
    clf = load_model(options.model)
    reference, encoding = getattr(clf, "reference_", None), getattr(clf, "encoding_", None)
    if reference is None:
        raise ValueError(
            f"{options.model} does not know its training rows; train it again with this version from a table, or set "
            "clf.reference_ = Reference.of(X, scores) before clf.save"
        )
    data = read(options, output, encoding=encoding, n_features=clf.n_features_in_, like=options.model)
    columns = data.X
    if is_table(options.file) and encoding is not None:
        columns = read_columns(options.file, encoding, missing=options.missing, separator=options.separator)
    elif encoding is not None:
        raise ValueError(f"{options.file} holds encoded features; give the table itself, whose columns are compared")
    scores = clf.decision_function(data.X)
    measure = get_measure(clf.measure, clf.measure_params)
    drift = reference.drift(columns, scores)
    promise = getattr(clf, "promise_", None)
    return Watched(data, drift, scores, clf.classes_, measure, reference.measure, reference.evaluated_on, promise)


def _card(options: Any, output: Output) -> Watched:
    """Read the rows as a scorecard needs them, and compare them with its lines."""
    try:
        card = Scorecard.from_json(options.model)
    except (KeyError, TypeError, AttributeError, json.JSONDecodeError) as error:
        raise ValueError(f"{options.model} is no scorecard: {type(error).__name__} {error}") from None
    if is_table(options.file):
        encoding = encoding_of(card, options.label)
        data = read(options, output, encoding=encoding, notes=False)
        columns = read_columns(options.file, encoding, missing=options.missing, separator=options.separator)
    else:
        data = read(options, output, n_features=card.n_columns)
        columns = data.X
    drift = card.drift(columns)
    scores, reference = card.decision(card.predict(columns)), card.reference
    measure = get_measure(card.measure, card.measure_params)
    return Watched(
        data, drift, scores, np.array(card.classes), measure, reference["measure"], reference["evaluated_on"]
    )


def encoding_of(card: Scorecard, label: str | None) -> Encoding:
    """Return how the columns of a card are read from a table."""
    columns = []
    for column in card.columns:
        if column.bins.kind == "number":
            columns.append(Column(column.name, "number", fill=0.0, indicator=True))
            continue
        texts = column.bins.texts
        known = tuple(texts) if texts is not None else tuple(f"{value:.15g}" for value in column.bins.values.tolist())
        columns.append(Column(column.name, "category", known, other=True))
    return Encoding(columns, label=label, labels=sorted(card.classes, key=str), impute="mean")
