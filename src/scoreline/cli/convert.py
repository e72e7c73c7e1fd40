"""Convert data to a folder that is trained from disk, whatever its size."""

import argparse
from pathlib import Path
from typing import Any

from scoreline.cli.output import Output, reported, writing
from scoreline.cli.parser import UsageError, add_output, add_reading
from scoreline.data import convert, open_mapped

EXAMPLES = """examples:
  scoreline convert clicks.parquet clicks --label clicked --float32
  scoreline convert kdda.bz2 kdda"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    parser.add_argument("file", help="data: CSV, Parquet, LIBSVM text, ...")
    parser.add_argument("folder", help="the folder to make")
    parser.add_argument("--float32", action="store_true", help="numbers of four bytes")
    parser.add_argument("--overwrite", action="store_true", help="replace a folder that is there")
    add_reading(parser)
    add_output(parser)


def run(options: Any, output: Output) -> int:
    """Convert, and open what was made."""
    if Path(options.folder).exists() and not options.overwrite:
        raise ValueError(f"{options.folder} exists already; choose another folder, or replace it with --overwrite")
    if options.overwrite and Path(options.folder).resolve() == Path(options.file).resolve():
        raise UsageError(f"{options.folder} is also the file that is read; choose another folder")
    names = ("label", "positive", "categories", "drop", "missing", "impute", "separator", "zero_based")
    given = {name: getattr(options, name) for name in names}
    given = {name: value for name, value in given.items() if value is not None and value != ()}
    dtype = "float32" if options.float32 else "float64"
    with (
        output.progress(f"converting {options.file}") as progress,
        reported(progress),
        output.messages(),
        writing(options.folder),
    ):
        folder = convert(options.file, options.folder, dtype=dtype, overwrite=options.overwrite, **given)
    data = open_mapped(folder)
    size = sum(path.stat().st_size for path in folder.iterdir())
    for name, value in (
        ("folder", str(folder)),
        ("rows", data.X.shape[0]),
        ("features", data.X.shape[1]),
        ("bytes", size),
    ):
        output.result(name, value)
    output.text(f"{data.X.shape[0]:,} rows, {data.X.shape[1]:,} features, {size / 1e6:.1f} MB in {options.folder}")
    return 0
