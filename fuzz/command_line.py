"""The command line as a target: any words, on good and bad files, end with an exit code and no traceback."""

import argparse
import contextlib
import io
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from unittest import mock

from fuzz import seeds
from fuzz.changes import ODD_TEXTS, Draw
from fuzz.table import target
from scoreline.cli.main import DONE, FAILED, INTERRUPTED, USAGE, main
from scoreline.cli.parser import COMMANDS, make_parser

FILES = (
    "rows.svm", "rows.svm.gz", "table.csv", "model.npz", "stream.npz", "mapped", "empty", "bad.npz", "bad.svm", "bad.csv",
    "rows.npy", "link", "nowhere", "folder", "no/where", ".", "demo:nothing",
)  # fmt: skip
VALUES = (
    "y", "yes", "1", "0", "-1", "0.5", "1e-3", "1e999", "nan", "1" + "0" * 400, "9" * 5000, "f1", "roc_auc", "fbeta", "beta=2",
    "beta=nan", "beta=1" + "0" * 400, "k=0.5", "=", "a,b", ",", "auto", "lbfgs", "spade", "moments", "newton", "mean", "sql",
    "json", "onnx", "ansi", "float32", "out.npz", "out.html", "t", "none", "cuda:0", "cuda:x", "٣", "bash", *ODD_TEXTS,
)  # fmt: skip


@cache
def options() -> dict[str, list[str]]:
    """Return the options of every command."""
    found = {}
    for command in COMMANDS:
        parser = make_parser([command])
        subparsers = next(a for a in parser._actions if isinstance(a, argparse._SubParsersAction))
        found[command] = [
            text for text in subparsers.choices[command]._option_string_actions if text not in ("-h", "--help")
        ]
    return found


def words(draw: Draw) -> list[str]:
    """Return a command line."""
    if draw.number(12) == 0:
        return [draw.text() for _ in range(draw.number(4))]
    command = draw.pick([name for name in COMMANDS if name != "compare"] if draw.number(8) else list(COMMANDS))
    found = [command, *(draw.pick(FILES[:6] if draw.number(3) else FILES) for _ in range(draw.number(3)))]
    if command in ("predict", "evaluate", "export") and draw.number(4):
        found.insert(1, "model.npz")
    if command == "convert" and draw.number(2):
        found.append("made")
    for _ in range(draw.number(6)):
        name = draw.pick(options()[command])
        value = draw.pick((draw.pick(VALUES), draw.pick(FILES), draw.text()))
        found += [f"{name}={value}"] if draw.number(4) == 0 else [name] if draw.number(4) == 0 else [name, value]
    return found


def safe(word: str) -> str:
    """Return a word that is no path out of the working folder, and names no data that take long."""
    word = word.replace("/", "") if word not in FILES else word
    return "x" if word.startswith(("demo:", "--dask", "--dev")) and word != "demo:nothing" else word


def furnish(folder: Path) -> None:
    """Write good and bad files."""
    (folder / "rows.svm").write_bytes(b"+1 1:0.5 3:2\n-1 2:1\n+1 1:1 3:1\n-1 2:0.5 3:-1\n" * 3)
    (folder / "rows.svm.gz").write_bytes(seeds.PACKERS[".gz"](seeds.SVM))
    (folder / "table.csv").write_bytes(seeds.CSV)
    (folder / "model.npz").write_bytes(seeds.model_files()[0])
    (folder / "stream.npz").write_bytes(seeds.model_files()[4])
    seeds.write_folder(folder / "mapped", seeds.mapped_folders()[0])
    (folder / "empty").write_bytes(b"")
    (folder / "bad.npz").write_bytes(seeds.model_files()[0][:-30] + bytes(30))
    (folder / "bad.svm").write_bytes(b"1 1:x\n")
    (folder / "bad.csv").write_bytes(b"a,y\n1\n")
    (folder / "rows.npy").write_bytes(seeds.array_files()[".npy"][0])
    (folder / "link").symlink_to("nowhere")
    (folder / "folder").mkdir()


@contextlib.contextmanager
def inside(folder: Path) -> Iterator[None]:
    """Work in a folder, without what takes long: comparisons, clusters, devices."""

    def too_long(*_: object, **__: object) -> None:
        raise ValueError("not while fuzzing")

    before = Path.cwd()
    os.chdir(folder)
    try:
        with (
            mock.patch("scoreline.cli.compare.compare", too_long),
            mock.patch("scoreline.cli.reading.connected", too_long),
            mock.patch("scoreline.gpu.backend.named_device", too_long),
        ):
            yield
    finally:
        os.chdir(before)


@target(lambda: [bytes([k * 73 % 251, k * 29 % 256, k * 11 % 256, k] * 8) for k in range(40)])
def arguments(raw: bytes, folder: Path) -> None:
    """Run any words."""
    given = [safe(word) for word in words(Draw(raw))]
    furnish(folder)
    out, err = io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True), io.StringIO()
    with inside(folder), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(given)
    assert code in (DONE, FAILED, USAGE, INTERRUPTED), f"exit code {code} of {given}"
    assert (code == DONE) or "error" in err.getvalue() or not given or "usage" in err.getvalue(), (
        f"{given}: no word on why"
    )
    assert "Traceback" not in err.getvalue(), err.getvalue()
