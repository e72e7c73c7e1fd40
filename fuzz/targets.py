"""What is fuzzed: one function of bytes for every reader of files, and one for the command line, registered in TARGETS.

A target returns where its input was read or was refused as it should be, by an error that names the file. Any other exception,
files that are left behind, and results that do not fit together are failures.
"""

import contextlib
import io
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError

from fuzz import command_line, seeds  # noqa: F401 -- the command line registers its target
from fuzz.changes import Draw, as_json, changed, changed_bytes
from fuzz.table import TARGETS, refused, target
from scoreline import load_model
from scoreline.export import to_json, to_sql
from scoreline.fitting import persist
from scoreline.io import convert, open_mapped, read_data, read_libsvm
from scoreline.io import libsvm as libsvm_module
from scoreline.io.encoding import Encoding
from scoreline.io.model_archive import write_archive
from scoreline.io.named import load_named
from scoreline.solvers.common import checkpoint as checkpoints

__all__ = ["TARGETS"]


def decisions() -> list[bytes]:
    """Return inputs for targets that take all bytes as decisions."""
    return [bytes([k * 37 % 256, k * 101 % 256, k * 7 % 256] * 6) for k in range(24)]


def check_matrix(X: Any, y: Any) -> None:
    """Raise unless a matrix and its labels fit together and hold finite numbers."""
    if sp.issparse(X):
        X.check_format(full_check=True)
    assert np.isfinite(X.data if sp.issparse(X) else np.asarray(X, dtype=float)).all()
    assert y is None or len(y) == X.shape[0]


# ------------------------------------------------------------------------------------------------------------- LIBSVM text


@target(lambda: seeds.SVM_LINES)
def libsvm(raw: bytes, folder: Path) -> None:
    """Read plain text, whole and in small chunks: the same."""
    path = folder / "rows.svm"
    path.write_bytes(raw)
    found: list[Any] = []
    for chunk in (libsvm_module.CHUNK_BYTES, 7):
        with small(libsvm_module, CHUNK_BYTES=chunk), refused(path):
            found.append(read_libsvm(path))
    assert len(found) in (0, 2), "chunks decide whether a file is read"
    if found:
        check_matrix(*found[0])
        (X, y), (other, labels) = found
        assert X.shape == other.shape
        for one, two in ((X.data, other.data), (X.indices, other.indices), (X.indptr, other.indptr), (y, labels)):
            assert one.tobytes() == two.tobytes()


@target(lambda: [bytes([k]) + text for k in range(6) for text in seeds.SVM_LINES[:3]])
def libsvm_packed(raw: bytes, folder: Path) -> None:
    """Read packed text: changed before it is packed, or after."""
    draw = Draw(raw)
    suffix, damage = draw.pick(list(seeds.PACKERS)), draw.number(2)
    path = folder / f"rows.svm{suffix}"
    text = draw.rest()
    path.write_bytes(
        changed_bytes(Draw(text), seeds.PACKERS[suffix](seeds.SVM)) if damage else seeds.PACKERS[suffix](text)
    )
    with small(libsvm_module, PIECE_BYTES=16, MAX_LINE_BYTES=4096), refused(path):
        check_matrix(*read_libsvm(path))


@target(lambda: seeds.SVM_LINES)
def libsvm_converted(raw: bytes, folder: Path) -> None:
    """Convert text in small pieces, and use what was made."""
    path = folder / "rows.svm"
    path.write_bytes(raw)
    with small(libsvm_module, PIECE_BYTES=24), refused(path, MemoryError):
        use_mapped(convert(path, folder / "mapped"))
    assert {entry.name for entry in folder.iterdir()} <= {"rows.svm", "mapped"}


@contextlib.contextmanager
def small(module: Any, **sizes: int) -> Iterator[None]:
    """Read in pieces of other sizes."""
    before = {name: getattr(module, name) for name in sizes}
    try:
        for name, size in sizes.items():
            setattr(module, name, size)
        yield
    finally:
        for name, size in before.items():
            setattr(module, name, size)


# ------------------------------------------------------------------------------------------------------------- mapped data


def use_mapped(folder: Path) -> None:
    """Open a folder and go over its rows in every way; refusing it is fine, reading beyond it is not."""
    with refused(folder):
        data = open_mapped(folder)
        n, p = data.X.shape
        with np.errstate(all="ignore"):
            data.X.matvec(np.ones(p))
            data.X.rmatvec(np.ones(n))
            data.X.matvec_rows(np.ones(p), np.array([0, n - 1]))
            for _ in data.X.row_blocks(7):
                pass
        assert data.y is None or len(data.y) == n
        assert data.names is None or len(data.names) == p


@target(lambda: [folder["header.json"] for folder in seeds.mapped_folders()])
def mapped_header(raw: bytes, folder: Path) -> None:
    """Open valid arrays with any header."""
    for files in seeds.mapped_folders():
        place = seeds.write_folder(folder / "mapped", files | {"header.json": raw})
        use_mapped(place)
        shutil.rmtree(place)


@target(decisions)
def mapped_content(raw: bytes, folder: Path) -> None:
    """Open folders whose header has other values, or whose arrays have other entries, types, shapes or bytes."""
    draw = Draw(raw)
    files = dict(draw.pick(seeds.mapped_folders()))
    header = json.loads(files["header.json"])
    if draw.number(2):
        name = draw.pick([name for name in files if name.endswith(".npy")])
        if draw.number(2):
            files[name] = changed_bytes(draw, files[name])
        else:
            array = changed(draw, [np.load(io.BytesIO(files[name]))], 1)
            buffer = io.BytesIO()
            with contextlib.suppress(OverflowError, ValueError, TypeError):
                np.save(buffer, np.asarray(array[0] if array else 0), allow_pickle=True)
            files[name] = buffer.getvalue()
        header["files"][name]["bytes"] = len(files[name])
    if draw.number(2):
        header = changed(draw, header)
    files["header.json"] = as_json(header)
    use_mapped(seeds.write_folder(folder / "mapped", files))


# ------------------------------------------------------------------------------------------------ models and checkpoints


def use_model(path: Path, measure: Any = None) -> None:
    """Load a model and do everything with it: the file is refused by name, or all the rest works or is refused."""
    clf = None
    with refused(path):
        clf = load_model(path, measure)
    if clf is None:
        return
    X, y = seeds.rows()
    X = np.resize(X, (12, clf.n_features_in_)) if clf.n_features_in_ < 1000 else X
    y = clf.classes_[y[:12]]
    calls = [lambda: clf.predict(X), lambda: clf.decision_function(X), lambda: clf.score(X, y), lambda: to_json(clf)]
    calls += [lambda: to_sql(clf, "rows"), lambda: clf.save(path.with_name("again")), lambda: repr(clf)]
    if clf.probability is True:
        calls.append(lambda: clf.predict_proba(X))
    if clf._stream is not None or clf._moments is not None:
        calls.append(lambda: clf.partial_fit(X, y))
    for call in calls:
        with contextlib.suppress(ValueError, NotFittedError), np.errstate(all="ignore"):
            call()


@target(seeds.model_files)
def model_file(raw: bytes, folder: Path) -> None:
    """Load any bytes."""
    path = folder / "model.npz"
    path.write_bytes(raw)
    use_model(path)


@target(decisions)
def model_content(raw: bytes, folder: Path) -> None:
    """Load models whose content has other values, with right checksums."""
    draw = Draw(raw)
    content = changed(draw, draw.pick(seeds.model_contents()))
    try:
        write_archive(folder / "model.npz", persist.KIND, persist.VERSION, content)
    except (UnicodeEncodeError, AttributeError, TypeError, ValueError):  # what no file can hold
        return
    use_model(folder / "model.npz")


@target(decisions)
def checkpoint_content(raw: bytes, folder: Path) -> None:
    """Go on from checkpoints whose content has other values."""
    draw, path = Draw(raw), folder / "checkpoint"
    solver, content = draw.pick(seeds.checkpoint_contents())
    try:
        write_archive(path, checkpoints.KIND, checkpoints.VERSION, changed(draw, content))
    except (UnicodeEncodeError, AttributeError, TypeError, ValueError):
        return
    with refused(path), np.errstate(all="ignore"):
        seeds.checkpointed(solver, path).fit(*seeds.rows())


@target(seeds.encodings)
def encoding_json(raw: bytes, folder: Path) -> None:
    """Use an encoding of any JSON."""
    import pyarrow as pa

    with contextlib.suppress(ValueError, RecursionError):
        content = json.loads(raw)
        encoding = Encoding.from_json(content)
        names = [column.name for column in encoding.columns]
        assert encoding.encode(pa.RecordBatch.from_pydict({name: ["1", "Graz"] for name in names})).shape[0] == 2


# ------------------------------------------------------------------------------------------------------- tables and arrays


def read_table_file(raw: bytes, folder: Path, suffix: str) -> None:
    """Read a table at once and in blocks."""
    path = folder / f"table{suffix}"
    path.write_bytes(raw)
    with refused(path, MemoryError):
        data = read_data(path, "y", impute="mean")
        check_matrix(data.X, data.y)
    with refused(path, MemoryError):
        use_mapped(convert(path, folder / "mapped", label="y", impute="zero", max_categories=50))


@target(
    lambda: [
        seeds.CSV,
        b'y\n"',
        b"a,a,y\n1,2,3\n",
        b"\xff\xfey\x00\n",
        b"a,y\n" + b"9" * 400 + b",1\n2,true\n3,1e400\n",
    ]
)
def csv(raw: bytes, folder: Path) -> None:
    """Read any bytes as CSV, plain and packed."""
    read_table_file(raw, folder, ".csv")


@target(lambda: [bytes([k]) + pack(seeds.CSV) for k, pack in enumerate(seeds.PACKERS.values())])
def csv_packed(raw: bytes, folder: Path) -> None:
    """Read any bytes as packed CSV."""
    read_table_file(raw[1:], folder, f".csv{Draw(raw).pick(list(seeds.PACKERS))}")


@target(lambda: seeds.tables()[".parquet"])
def parquet(raw: bytes, folder: Path) -> None:
    """Read any bytes as Parquet."""
    read_table_file(raw, folder, ".parquet")


@target(lambda: seeds.tables()[".arrow"])
def arrow(raw: bytes, folder: Path) -> None:
    """Read any bytes as Arrow IPC."""
    read_table_file(raw, folder, ".arrow")


@target(lambda: [bytes([k]) + raw for k in range(2) for raw in seeds.array_files()[(".npy", ".npz")[k]]])
def arrays(raw: bytes, folder: Path) -> None:
    """Read any bytes as .npy or .npz."""
    suffix = Draw(raw).pick((".npy", ".npz"))
    path = folder / f"rows{suffix}"
    path.write_bytes(raw[1:])
    for label in (None, -1) if suffix == ".npy" else (None,):
        with refused(path, MemoryError):
            data = read_data(path, label)
            if sp.issparse(data.X):
                data.X.check_format(full_check=True)
            assert data.X.ndim == 2
            assert data.y is None or len(data.y) == data.X.shape[0]


@target(lambda: [b"tiny", b"../secret", b"a/../../secret", b"secret\x00", b"/etc/passwd", b"..", b"tiny.svm", b"a9a"])
def named(raw: bytes, folder: Path) -> None:
    """Look for any name: nothing outside of the folder is read, nothing is fetched."""
    (folder / "data").mkdir()
    (folder / "data" / "tiny.svm").write_bytes(b"1 1:1\n-1 1:2\n")
    (folder / "secret.svm").write_bytes(b"1 1:77\n-1 1:77\n")
    before = os.environ.get("SCORELINE_CACHE")
    os.environ["SCORELINE_CACHE"] = str(folder / "cache")
    try:
        with contextlib.suppress(ValueError, FileNotFoundError):
            X, _ = load_named(raw.decode("utf-8", "surrogateescape"), folder=folder / "data")
            assert X.max() < 77, "a file outside of the folder was read"
    finally:
        os.environ.pop("SCORELINE_CACHE") if before is None else os.environ.update(SCORELINE_CACHE=before)
