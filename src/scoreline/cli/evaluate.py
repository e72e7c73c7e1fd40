"""Evaluate a saved model on labelled rows: its own measure, other measures, and the confusion counts."""

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from scoreline.classifier import load_model
from scoreline.cli.output import Output
from scoreline.cli.parser import add_reading
from scoreline.cli.promises import print_promise, print_promise_test
from scoreline.cli.reading import labels_of, read
from scoreline.measures import Interval, Measure, OperatingPoint, all_measures, get_measure
from scoreline.measures.intervals import RATES, intervals_of
from scoreline.report.wording import joined

EXAMPLES = """examples:
  scoreline evaluate model.npz holdout.csv --label outcome
  scoreline evaluate a9a.npz a9a.t.svm --json"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("model", help="a model saved by train")
    parser.add_argument("file", help="data with labels, which the model was not trained on")
    add_reading(parser)


def run(options: Any, output: Output) -> None:
    """Load, read, score, print."""
    clf = load_model(options.model)
    encoding = getattr(clf, "encoding_", None)
    if options.label is None and encoding is not None:
        options.label = encoding.label
    data = read(options, output, encoding=encoding, n_features=clf.n_features_in_, like=options.model)
    marked = options.positive is not None or Path(options.file).is_dir()
    truth = positive_rows(labels_of(data), clf.classes_, marked)
    scores = clf.decision_function(data.X)
    own = get_measure(clf.measure, clf.measure_params)
    predicted = scores > 0
    cells = {"tp": truth & predicted, "fp": ~truth & predicted, "fn": truth & ~predicted, "tn": ~truth & ~predicted}
    counts = {name: int(np.count_nonzero(rows)) for name, rows in cells.items()}
    flagged = counts["tp"] + counts["fp"]
    measures = {own.name: own, **{name: kind() for name, kind in all_measures().items() if name != own.name}}
    rates = {
        "precision": counts["tp"] / flagged if flagged else float("nan"),
        "recall": counts["tp"] / (counts["tp"] + counts["fn"]),
    }
    others = {name: measure.value(truth, scores) for name, measure in measures.items()}
    values = {own.name: others.pop(own.name), **rates, **others}
    ends = _intervals(measures, truth, scores)
    labels = {name: measures[name].label if name in measures else name for name in values}
    output.results(
        rows=len(truth), measure=own.name, target=own.label, values=values, counts=counts, flagged=flagged,
        labels={name: label for name, label in labels.items() if label != name},
        intervals={name: [each.low, each.high] for name, each in ends.items()},
    )  # fmt: skip
    output.text(
        f"{own.label} (trained for): {values[own.name]:.4f} on {len(truth):,} rows, {truth.mean():.2%} positive"
    )
    table = [
        (labels[name], "not defined" if np.isnan(value) else f"{value:.4f}", _shown(ends.get(name)))
        for name, value in values.items()
    ]
    head = ("value", "95 % interval")
    output.table([("at the model's threshold", *head), *table[:3]], right=(1,))
    output.text(
        f"{flagged:,} rows flagged: {counts['tp']:,} true positives, {counts['fp']:,} false; not flagged: {counts['fn']:,} "
        f"missed positives, {counts['tn']:,} true negatives"
    )
    if isinstance(own, OperatingPoint) and not own.is_met(**counts):
        output.text(f"the target is missed: {own.constraint()} does not hold on these rows, so {own.name} is 0")
    promise = getattr(clf, "promise_", None)
    print_promise(output, promise)
    print_promise_test(output, promise, truth, scores)
    if np.ptp(scores) == 0.0:
        output.text("All rows have the same score, so roc_auc and other ranking measures are those of a random order.")
    output.table([("other measures", *head), *table[3:]], right=(1,))
    missed = [
        each.label
        for name, each in measures.items()
        if name != own.name and isinstance(each, OperatingPoint) and not each.is_met(**counts)
    ]
    if missed:
        output.text(
            f"A value of 0 means that this threshold misses the target: {joined(missed)}. To reach a target, train for that "
            "measure."
        )


def _intervals(measures: dict[str, Measure], truth: Any, scores: Any) -> dict[str, Interval]:
    """Return the intervals of measures, of precision and of recall; none where a class has a single row."""
    if min(np.count_nonzero(truth), np.count_nonzero(~truth)) < 2:
        return {}
    named = {**measures, "precision": RATES["precision"], "recall": RATES["recall"]}
    return dict(zip(named, intervals_of(list(named.values()), truth, scores), strict=True))


def _shown(each: Interval | None) -> str:
    return "" if each is None or np.isnan(each.value) else f"{each.low:.4f} to {each.high:.4f}"


def positive_rows(labels: Any, classes: Any, marked: bool) -> Any:
    """Return which rows are of the positive class of a model, for labels of any type.

    `marked` says that labels True and False refer to the class named by --positive, now or when the rows were converted.
    """
    labels = np.asarray(labels)
    marked = marked and labels.dtype == bool
    negative, positive = words_of(classes).tolist()
    words = words_of(labels)
    truth = labels if marked else words == positive
    unknown = ~truth & (words != negative)
    if unknown.any() and not marked and not negative.startswith("not "):
        row = int(np.argmax(unknown))
        hint = "; name the positive class with --positive" if (negative, positive) == ("False", "True") else ""
        raise ValueError(
            f"row {row + 1} has the label {str(words[row])!r}, the model knows {negative!r} and {positive!r}{hint}"
        )
    if not truth.any() or truth.all():
        raise ValueError(
            f"the rows have one class only, expected {positive!r} and {negative!r}: no measure can be computed"
        )
    return truth


def words_of(labels: Any) -> Any:
    """Return labels as texts: 1.0 is the same as 1."""
    if labels.dtype.kind == "f" and np.array_equal(labels, np.rint(labels)):
        labels = labels.astype(np.int64)
    return labels.astype(str)
