"""Convert data of any size to a folder for training from disk."""

import argparse
from pathlib import Path
from typing import Any

from scoreline.classifier import load_model
from scoreline.cli.output import Output, reported, writing
from scoreline.cli.parser import UsageError, add_reading
from scoreline.cli.reading import LEARNT_OPTIONS, is_text, reading_options, width_of
from scoreline.io import convert, open_mapped
from scoreline.io.tables import open_table

EXAMPLES = """examples:
  scoreline convert clicks.parquet clicks --label clicked --float32
  scoreline convert kdda.bz2 kdda
  scoreline convert clicks.parquet codes --label clicked --features additive
  scoreline convert clicks_test.parquet clicks_test --like clicks"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("file", help="data: CSV, Parquet, LIBSVM text and others")
    parser.add_argument("folder", help="the folder to create")
    parser.add_argument("--float32", action="store_true", help="store numbers in four bytes instead of eight")
    parser.add_argument(
        "--features",
        choices=("additive",),
        help="store the codes of additive features, one byte per value, for train --features additive, pairs or auto",
    )
    parser.add_argument(
        "--like",
        metavar="FOLDER_OR_MODEL",
        help="encode columns as in this converted folder or saved model; needed for test data and data to predict",
    )
    parser.add_argument("--overwrite", action="store_true", help="replace the folder if it exists")
    add_reading(parser)


def run(options: Any, output: Output) -> None:
    """Convert, and report the shape of the folder."""
    if Path(options.folder).exists() and not options.overwrite:
        raise ValueError(f"{options.folder} exists already; choose another folder, or replace it with --overwrite")
    if options.overwrite and Path(options.folder).resolve() == Path(options.file).resolve():
        raise UsageError(f"{options.folder} is also the file that is read; choose another folder")
    given = reading_options(options)
    if options.features:
        given["features"] = options.features
    if options.like:
        given |= _like(options)
    dtype = "float32" if options.float32 else "float64"
    with (
        output.progress(f"converting {options.file}") as progress,
        reported(progress.update),
        output.messages(),
        writing(options.folder),
    ):
        folder = convert(options.file, options.folder, dtype=dtype, overwrite=options.overwrite, **given)
    data = open_mapped(folder)
    size = sum(path.stat().st_size for path in folder.iterdir())
    rows, features = data.X.shape[0], width_of(data.X)
    output.results(folder=str(folder), rows=rows, features=features, bytes=size)
    output.text(f"{rows:,} rows, {features:,} features, {size / 1e6:.1f} MB in {options.folder}")


def _like(options: Any) -> dict[str, Any]:
    """Return the options of reading that the folder or the model of --like determines."""
    conflicts = [name for name in LEARNT_OPTIONS if getattr(options, name) not in (None, ())]
    if conflicts:
        option = "--no-indicators" if conflicts[0] == "indicators" else f"--{conflicts[0].replace('_', '-')}"
        raise UsageError(f"{option} and --like both say how columns become features; leave one of them out")
    known = None
    if Path(options.like).is_dir():
        folder = open_mapped(options.like)
        encoding, width, class_names = folder.encoding, width_of(folder.X), folder.class_names
        known = folder.X.feature_map
        if known is not None and options.features:
            raise UsageError("--features and --like both say how values become codes; leave one of them out")
    else:
        model = load_model(options.like)
        encoding, width, class_names = getattr(model, "encoding_", None), model.n_features_in_, None
    if encoding is None:
        if is_text(options.file):
            return {"n_features": width} | ({} if known is None else {"features": known})
        raise ValueError(f"--like {options.like} was not made from a table and has no encoding; leave --like out")
    found: dict[str, Any] = {"encoding": encoding}
    if known is not None:
        found["features"] = known
    if options.label is None and open_table(options.file, separator=options.separator).has(encoding.label):
        found["label"] = encoding.label  # rows to predict have no label
    if options.positive is None and class_names is not None and (options.label or "label" in found):
        found["positive"] = class_names[1]
    return found
