"""Predict rows with a saved model: class and score of each, as CSV."""

import argparse
import sys
from typing import Any

from scoreline._files import whole_file
from scoreline.cli.output import Output, writing
from scoreline.cli.parser import add_output, add_reading, check_outputs
from scoreline.cli.reading import read
from scoreline.estimators import load_model

EXAMPLES = """examples:
  scoreline predict model.npz today.csv > scores.csv
  scoreline predict model.npz today.parquet --out scores.csv --quiet"""
ROWS = 100_000  # that are turned into text at a time


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    parser.add_argument("model", help="a model that train has saved")
    parser.add_argument("file", help="rows to predict")
    parser.add_argument("--out", metavar="CSV", help="where to write (by default to standard output)")
    parser.add_argument("--label", metavar="COLUMN", type=_number, help=argparse.SUPPRESS)
    add_reading(parser, label=False)
    add_output(parser)


def _number(text: str) -> Any:
    return int(text) if text.lstrip("-").isdigit() else text


def run(options: Any, output: Output) -> int:
    """Load, read, predict, write."""
    check_outputs(options, ("out",), ("model", "file"))
    if not options.out and sys.stdout is None:
        raise ValueError("standard output is closed; name a file with --out")
    clf = load_model(options.model)
    data = read(options, output, encoding=getattr(clf, "encoding_", None), n_features=clf.n_features_in_)
    scores = clf.decision_function(data.X)
    likely = clf.probability_of(scores) if hasattr(clf, "calibration_") else None
    classes = [str(label) for label in clf.classes_.tolist()]
    output.result("rows", len(scores))
    if options.out:
        with writing(options.out), whole_file(options.out) as file:
            for text in _lines(scores, classes, likely):
                file.write(text.encode())
        output.result("out", options.out)
        output.note(f"{len(scores):,} predictions in {options.out}")
    elif output.json:
        output.result("predictions", [classes[int(score > 0)] for score in scores])
        output.result("scores", scores)
        if likely is not None:
            output.result("probabilities", likely)
    else:
        for text in _lines(scores, classes, likely):
            sys.stdout.write(text)
    return 0


def _lines(scores: Any, classes: list[str], likely: Any = None) -> Any:
    """Yield CSV, quoted where it must be; with probabilities of the second class where the model has them."""
    quoted = [f'"{name.replace(chr(34), 2 * chr(34))}"' if set(name) & set(',"\n\r') else name for name in classes]
    yield "prediction,score\n" if likely is None else "prediction,score,probability\n"
    for start in range(0, len(scores), ROWS):
        values = scores[start : start + ROWS].tolist()
        if likely is None:
            yield "".join(f"{quoted[score > 0]},{score!r}\n" for score in values)
        else:
            pairs = zip(values, likely[start : start + ROWS].tolist(), strict=True)
            yield "".join(f"{quoted[score > 0]},{score!r},{each!r}\n" for score, each in pairs)
