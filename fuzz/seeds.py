"""Valid content that is then changed: data, models, checkpoints, folders, tables, made once a process."""

import bz2
import gzip
import io
import json
import lzma
import shutil
import tempfile
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from scoreline import MeasureClassifier
from scoreline.fitting import persist
from scoreline.io import convert
from scoreline.io.encoding import Column, Encoding
from scoreline.io.model_archive import read_archive
from scoreline.solvers.common import checkpoint as checkpoints
from scoreline.solvers.common.checkpoint import Checkpoint
from scoreline.solvers.registry import all_solvers

SVM = (
    b"+1 1:0.5 3:2 # first\n-1 2:1e-3\n+1 qid:7 1:1 2:12345678 4:-0.125\n-1\n-1 3:1.5\n1 2:2 3:17976931348623157e292\n"
)
SVM_LINES = (
    SVM,
    b"1 0:1\n0 1:2\n",
    b"1 2147483647:1\n-1 1:1\n",
    b"1 2147483648:1\n-1 1:1\n",
    b"1 9223372036854775807:1\n",
    b"1 9223372036854775808:1\n",
    b"1 18446744073709551617:1\n",
    b"1 -1:1\n",
    b"\r\n\n# all\n1.5e3\t1:1e-400 2:1e400\r\n",
    b"-1 1:2.2250738585072011e-308 2:9007199254740993 3:0.1000000000000000055511151231257827\n",
    b"1 qid:\n1 qid:x 1:1",
)
CSV = b'age,city,y\n31,Graz,yes\n,Wien,no\n4.5,Graz,no\n7,"a,b",yes\n1e3,NA,no\n'
PACKERS = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}
STREAMED = {"moments": "roc_auc", "spade": "gmean", "stamp": "f1"}


@cache
def rows() -> tuple[Any, Any]:
    """Return 40 rows of 3 features with labels 0 and 1."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 3)).round(3)
    return X, (X[:, 0] + 0.7 * rng.standard_normal(40) > 0.3).astype(int)


def encoding() -> Encoding:
    """Return an encoding of 3 features."""
    return Encoding(
        [Column("age", "number", fill=1.5), Column("city", "category", ("Graz", "?"), "?")], label="y", impute="mean"
    )


@cache
def model_contents() -> list[dict[str, Any]]:
    """Return what model files hold: a fit with an encoding, one with probabilities, and the streams."""
    X, y = rows()
    found = []
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = Path(folder, "model")
        options: dict[str, Any] = {"max_iter": 5, "random_state": 0}
        for k in range(3):
            measure = ("f1", "roc_auc", "recall_at_k")[k]
            clf = MeasureClassifier(measure, probability=k == 1, **options).fit(X, y)
            clf.save(path, encoding() if k == 0 else None)
            found.append(read_archive(path, persist.KIND, persist.VERSION))
        for solver, measure in STREAMED.items():
            MeasureClassifier(measure, solver=solver, random_state=0).partial_fit(X, y).save(path)
            found.append(read_archive(path, persist.KIND, persist.VERSION))
    return found


@cache
def model_files() -> list[bytes]:
    """Return the bytes of model files."""
    from scoreline.io.model_archive import write_archive

    found = []
    with tempfile.TemporaryDirectory() as folder:
        for content in model_contents():
            write_archive(Path(folder, "model"), persist.KIND, persist.VERSION, content)
            found.append(Path(folder, "model").read_bytes())
    return found


def checkpointed(solver: str, path: Any) -> Any:
    """Return a classifier of few iterations that writes or reads a checkpoint."""
    measure = {"spade": "gmean", "stamp": "f1", "amp": "f1", "plugin": "f1", "cost_search": "f1"}.get(solver, "roc_auc")
    settings = Checkpoint(path, every=2, seconds=0.0)
    known = all_solvers()[solver].options()
    params = {"checkpoint": settings} | ({"passes": 3} if "passes" in known else {})
    return MeasureClassifier(measure, solver=solver, max_iter=6, tol=1e-9, random_state=0, solver_params=params)


@cache
def checkpoint_contents() -> list[tuple[str, dict[str, Any]]]:
    """Return (solver, what its checkpoint holds when it is stopped in the middle) for every solver that writes one."""
    X, y = rows()
    found = []
    for solver, kind in all_solvers().items():
        if "checkpoint" not in kind.options():
            continue
        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            path = Path(folder, "checkpoint")
            try:
                checkpointed(solver, path).fit(X, y)
            except ValueError:  # another measure is needed: other solvers serve as well
                continue
            if path.exists():
                found.append((solver, read_archive(path, checkpoints.KIND, checkpoints.VERSION)))
    return found


@cache
def mapped_folders() -> list[dict[str, bytes]]:
    """Return the files of folders of mapped data: sparse, dense, of a table."""
    import scipy.sparse as sp

    X, y = rows()
    sparse = sp.csr_array(np.where(np.abs(X) > 0.5, X, 0.0))
    found = []
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder, "table.csv")
        table.write_bytes(CSV)
        for k, (source, options) in enumerate(
            [((sparse, y), {}), ((X, y), {"dtype": "float32"}), (table, {"label": "y", "impute": "mean"})]
        ):
            place = convert(source, Path(folder, str(k)), **options)
            found.append({path.name: path.read_bytes() for path in sorted(place.iterdir())})
            shutil.rmtree(place)
    return found


@cache
def tables() -> dict[str, list[bytes]]:
    """Return files of tables by suffix."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table(
        {
            "age": pa.array([31.0, None, 4.5, 7.0] * 3),
            "city": pa.array(["Graz", "Wien", "Graz", None] * 3).dictionary_encode(),
            "word": pa.array(["a", "bc", "", "def"] * 3),
            "y": pa.array(["yes", "no", "no", "yes"] * 3),
        }
    )
    found: dict[str, list[bytes]] = {".parquet": [], ".arrow": []}
    for compression in ("none", "snappy", "gzip"):
        buffer = io.BytesIO()
        pq.write_table(table, buffer, compression=compression)
        found[".parquet"].append(buffer.getvalue())
    for opener in (pa.ipc.new_file, pa.ipc.new_stream):
        buffer = io.BytesIO()
        with opener(buffer, table.schema) as writer:
            writer.write_table(table)
        found[".arrow"].append(buffer.getvalue())
    return found


@cache
def array_files() -> dict[str, list[bytes]]:
    """Return .npy and .npz files: dense, sparse, compressed."""
    import scipy.sparse as sp

    X, y = rows()
    found: dict[str, list[bytes]] = {".npy": [], ".npz": []}
    for array in (X, X.astype(np.float32), np.column_stack([X, y])):
        buffer = io.BytesIO()
        np.save(buffer, array[:6])
        found[".npy"].append(buffer.getvalue())
    matrix = sp.csr_array(X[:6])
    parts = {
        "data": matrix.data,
        "indices": matrix.indices,
        "indptr": matrix.indptr,
        "shape": matrix.shape,
        "format": b"csr",
    }
    for save, arrays in (
        (np.savez, {"X": X[:6], "y": y[:6]}),
        (np.savez_compressed, {"X": X[:6]}),
        (np.savez, parts | {"y": y[:6]}),
    ):
        buffer = io.BytesIO()
        save(buffer, **arrays)
        found[".npz"].append(buffer.getvalue())
    return found


def encodings() -> list[bytes]:
    """Return encodings as JSON."""
    return [json.dumps(encoding().to_json()).encode()]


def write_folder(folder: Path, files: dict[str, bytes]) -> Path:
    """Write the files of a folder."""
    folder.mkdir()
    for name, raw in files.items():
        (folder / name).write_bytes(raw)
    return folder
