"""Predict rows with a saved model: the class and score of each row, as CSV."""

import argparse
from typing import Any

from scoreline.classifier import load_model
from scoreline.cli.output import Output, finish_stdout, write_stdout, writing
from scoreline.cli.parser import add_reading, check_outputs, names
from scoreline.cli.reading import read
from scoreline.io.files import atomic_file
from scoreline.io.tables import open_table

EXAMPLES = """examples:
  scoreline predict model.npz today.csv > scores.csv
  scoreline predict model.npz today.parquet --keep customer,day --out scores.csv --quiet"""
ROWS = 100_000  # converted to text at once


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("model", help="a model saved by train")
    parser.add_argument("file", help="data to predict")
    parser.add_argument("--out", metavar="CSV", help="output file (default: standard output)")
    parser.add_argument(
        "--keep",
        type=names,
        default=(),
        metavar="A,B",
        help="columns of the input to copy to the output, such as a key",
    )
    parser.add_argument(
        "--label", type=lambda text: int(text) if text.lstrip("-").isdigit() else text, help=argparse.SUPPRESS
    )
    add_reading(parser, label=False)


def run(options: Any, output: Output) -> None:
    """Load, read, predict, write."""
    check_outputs(options, ("out",), ("model", "file"))
    clf = load_model(options.model)
    encoding = getattr(clf, "encoding_", None)
    data = read(options, output, encoding=encoding, n_features=clf.n_features_in_, like=options.model)
    scores = clf.decision_function(data.X)
    likely = clf.probability_of(scores) if hasattr(clf, "calibration_") else None
    classes = [str(label) for label in clf.classes_.tolist()]
    copied = _copied_columns(options, len(scores))
    output.results(rows=len(scores))
    if options.out:
        with writing(options.out), atomic_file(options.out) as file:
            for text in _lines(scores, classes, likely, copied):
                file.write(text.encode())
        output.results(out=options.out)
        output.note(f"{len(scores):,} predictions in {options.out}")
    elif output.json:
        output.results(predictions=[classes[int(score > 0)] for score in scores], scores=scores)
        if likely is not None:
            output.results(probabilities=likely)
        output.results(**copied)
    else:
        for text in _lines(scores, classes, likely, copied):
            write_stdout(text)
        finish_stdout()
        called = int((scores > 0).sum())
        output.note(f"{len(scores):,} predictions, {called:,} of them {classes[1]}")


def _copied_columns(options: Any, rows: int) -> dict[str, list[str]]:
    """Return the columns that --keep names, as text."""
    if not options.keep:
        return {}
    try:
        table = open_table(options.file, missing=options.missing, separator=options.separator)
    except ValueError as error:
        raise ValueError(f"--keep copies columns of a table: {error}") from None
    taken = sorted({"prediction", "score", "probability"} & set(options.keep))
    if taken:
        raise ValueError(f"--keep {taken[0]} is the name of a column that predict writes; rename it in the table")
    found: dict[str, list[str]] = {name: [] for name in options.keep}
    for batch in table.batches(options.keep, exact=options.keep, text=options.keep):
        for name, values in found.items():
            values += ["" if value is None else str(value) for value in batch.column(name).to_pylist()]
    lengths = {len(values) for values in found.values()}
    if lengths != {rows}:
        raise ValueError(f"{options.file} changed while it was read: {rows:,} rows, then {lengths.pop():,}")
    return found


def _quoted(text: str) -> str:
    return f'"{text.replace(chr(34), 2 * chr(34))}"' if set(text) & set(',"\n\r') else text


def _lines(scores: Any, classes: list[str], likely: Any, copied: dict[str, list[str]]) -> Any:
    """Yield CSV with the copied columns, prediction, score, and the probability if the model has one."""
    head = [*copied, "prediction", "score", *([] if likely is None else ["probability"])]
    yield ",".join(map(_quoted, head)) + "\n"
    quoted = [_quoted(name) for name in classes]
    for start in range(0, len(scores), ROWS):
        part = slice(start, start + ROWS)
        values = scores[part].tolist()
        columns: list[Any] = [[_quoted(text) for text in column[part]] for column in copied.values()]
        columns += [[quoted[score > 0] for score in values], map(repr, values)]
        if likely is not None:
            columns.append(map(repr, likely[part].tolist()))
        yield "".join(",".join(row) + "\n" for row in zip(*columns, strict=True))
