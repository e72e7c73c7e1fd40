"""Named attacks by model files and checkpoints, and code that no reader runs."""

import builtins
import io
import os
import pickle
import struct
import zipfile
import zlib

import numpy as np
import pytest
from hostile_cases import fitted, peak_of, rows, with_sparse
from sklearn.exceptions import ConvergenceWarning

from cases import case
from scoreline import MeasureClassifier, load_model
from scoreline.cli.main import main
from scoreline.fitting.persist import KIND, VERSION
from scoreline.io import model_archive as archives
from scoreline.io import read_data
from scoreline.io.model_archive import HEADER, read_archive, write_archive
from scoreline.solvers import Checkpoint

# --------------------------------------------------------------------------------------------------------- model files


def test_a_small_model_file_cannot_ask_for_much_memory(tmp_path):
    """Was: as much as the machine has, by a few hundred bytes."""
    path = tmp_path / "model"

    def refused():
        with pytest.raises(ValueError, match=r"model.*need more memory than a file of its size allows"):
            read_archive(path, "x", 1)

    for shapes in ([[2**28]], [[2**31]], [[2**62]], [[2**30, 2**30]], [[2**26]] * 40):
        path.write_bytes(with_sparse(shapes))
        assert path.stat().st_size < 4000
        with case(shapes):
            assert peak_of(refused) < (1 << 30) + (64 << 20)  # SPARSE_ROOM, of pages that nobody has touched


def test_sparse_arrays_beyond_what_a_reader_takes_are_written_in_full(tmp_path, monkeypatch):
    monkeypatch.setattr(archives, "SPARSE_ROOM", 40_000)
    content = {f"a{k}": np.eye(1, 4000, k) for k in range(4)}
    write_archive(tmp_path / "file", "x", 1, content)
    assert 3 * 32_000 < (tmp_path / "file").stat().st_size < 4 * 32_000
    back = read_archive(tmp_path / "file", "x", 1)
    assert all(back[name].tobytes() == content[name].tobytes() for name in content)
    many = {"a": np.tile(np.eye(1, 50, 3), 2000)}  # a fiftieth are entries: within the factor, whatever the room
    monkeypatch.setattr(archives, "SPARSE_ROOM", 0)
    write_archive(tmp_path / "file", "x", 1, many)
    assert (tmp_path / "file").stat().st_size < 100_000
    assert read_archive(tmp_path / "file", "x", 1)["a"].tobytes() == many["a"].tobytes()


def overlapping(count=40, size=600):
    """Return a zip in which each member lies within the one before: its directory names far more bytes than there are."""
    tail, entries = b"A" * size, []
    for k in reversed(range(count)):
        name = HEADER.encode() if k == 0 else f"array{k}.npy".encode()
        check = zlib.crc32(tail)
        local = (
            struct.pack("<4sHHHHHIIIHH", b"PK\3\4", 20, 0, 0, 0, 33, check, len(tail), len(tail), len(name), 0) + name
        )
        entries.append((name, check, len(tail), len(local)))
        tail = local + tail
    directory, offset = b"", 0
    for name, check, length, local in reversed(entries):
        sizes = (check, length, length, len(name))
        directory += struct.pack("<4sHHHHHHIIIHHHHHII", b"PK\1\2", 20, 20, 0, 0, 0, 33, *sizes, 0, 0, 0, 0, 0, offset)
        directory += name
        offset += local
    end = struct.pack("<4sHHHHIIH", b"PK\5\6", 0, 0, count, count, len(directory), len(tail), 0)
    return tail + directory + end


def test_members_that_overlap_are_refused(tmp_path):
    """Was: read one after the other, n of them as n^2 / 2 bytes."""
    (tmp_path / "model").write_bytes(overlapping())
    with zipfile.ZipFile(tmp_path / "model") as archive:
        assert sum(member.file_size for member in archive.infolist()) > 10 * (tmp_path / "model").stat().st_size
    with pytest.raises(ValueError, match=r"model.*wrong size"):
        read_archive(tmp_path / "model", "x", 1)


TWO_MEANINGS = {
    "content twice": b'{"format": "x", "version": 1, "content": {"a": 1}, "content": {"a": 2}}',
    "a name twice": b'{"format": "x", "version": 1, "content": {"a": 1, "a": 1}}',
    "NaN": b'{"format": "x", "version": 1, "content": {"a": NaN}}',
    "infinity": b'{"format": "x", "version": 1, "content": {"a": Infinity}}',
    "version true": b'{"format": "x", "version": true, "content": {}}',
    "deep": b'{"format": "x", "version": 1, "content": {"a": ' + b"[" * 5000 + b"]" * 5000 + b"}}",
    "a long number": b'{"format": "x", "version": 1, "content": {"a": ' + b"1" * 10_000 + b"}}",
}


def test_headers_that_readers_could_take_in_two_ways_are_refused(tmp_path):
    for name, header in TWO_MEANINGS.items():
        with zipfile.ZipFile(tmp_path / "model", "w") as archive:
            archive.writestr(HEADER, header)
        with case(name), pytest.raises(ValueError, match="model"):
            read_archive(tmp_path / "model", "x", 1)


WRONG = {
    "calibration of three": ("trained", "calibration_", np.ones(3)),
    "calibration of text": ("trained", "calibration_", np.array(["1", "2"])),
    "a slope of 0": ("trained", "calibration_", np.zeros(2)),
    "a gap of text": ("trained", "gap_", "0.1"),
    "a gap of NaN": ("trained", "gap_", float("nan")),
    "an objective that is a list": ("trained", "objective_", [1.0]),
    "a status that is a number": ("trained", "status_", 5),
    "a solver that is a list": ("trained", "solver_", ["lbfgs"]),
    "a history that is a list": ("trained", "history_", []),
    "a trained intercept of text": ("trained", "trained_intercept_", "0"),
    "iterations of text": ("trained", "n_iter_", "5"),
    "names of other features": ("trained", "feature_names_in_", np.array(["a", "b"], dtype=object)),
    "names that are numbers": ("trained", "feature_names_in_", np.arange(3)),
    "classes of NaN": ("trained", "classes_", np.array([0.0, np.nan])),
    "classes of two kinds": ("trained", "classes_", np.array([0, "a"], dtype=object)),
    "classes that are lists": ("trained", "classes_", np.array([None, (1,)], dtype=object)),
    "features that are True": ("trained", "n_features_in_", True),
    "features beyond all bounds": ("trained", "n_features_in_", 10**400),
    "alpha of text": ("parameters", "alpha", "1"),
    "alpha that is a list": ("parameters", "alpha", [1.0]),
    "alpha beyond all bounds": ("parameters", "alpha", 10**400),
    "a scaling that is unknown": ("parameters", "scaling", "log"),
    "measure_params that are a list": ("parameters", "measure_params", [1]),
    "probability of text": ("parameters", "probability", "yes"),
    "threads of text": ("parameters", "n_jobs", "all"),
}


def test_a_model_whose_parts_have_other_types_is_refused(tmp_path, capsys):
    """Was: loaded, and predict, info or export failed later by an error that does not name the file."""
    path = tmp_path / "model.npz"
    fitted(probability=True).save(path)
    content = read_archive(path, KIND, VERSION)
    for name, (part, key, value) in WRONG.items():
        write_archive(path, KIND, VERSION, content | {part: content[part] | {key: value}})
        with case(name):
            with pytest.raises(ValueError, match=r"model\.npz is not a complete model"):
                load_model(path)
            assert main(["info", str(path)]) == 1
            assert "model.npz is not a complete model" in capsys.readouterr().err


STREAM = {
    "a seed below 0": lambda s: s | {"seed": -1},
    "a seed beyond 64 bits": lambda s: s | {"seed": 2**63},
    "blocks of text": lambda s: s | {"blocks": "3"},
    "half a block": lambda s: s | {"blocks": 2.5},
    "rows of text": lambda s: s | {"seen": ("3", 4.0)},
    "rows below 0": lambda s: s | {"seen": (-3.0, 4.0)},
    "rows of three classes": lambda s: s | {"seen": (3.0, 4.0, 5.0)},
    "a unit of 0": lambda s: s | {"unit": 0.0},
    "a unit of infinity": lambda s: s | {"unit": float("inf")},
    "a problem that is a list": lambda s: s | {"problem": [1]},
}


def test_a_stream_whose_numbers_are_wrong_is_refused(tmp_path):
    """Was: loaded, and the next block failed, or was learnt from with a weight of infinity."""
    X, y = rows()
    path = tmp_path / "model.npz"
    MeasureClassifier("f1", solver="stamp", random_state=0).partial_fit(X, y, classes=[0, 1]).save(path)
    content = read_archive(path, KIND, VERSION)
    for name, change in STREAM.items():
        write_archive(path, KIND, VERSION, content | {"stream": change(content["stream"])})
        with case(name), pytest.raises(ValueError, match=r"model\.npz is not a complete model"):
            load_model(path)


def test_a_checkpoint_with_a_false_bound_is_refused(tmp_path):
    """A lower bound above the objective proves nothing; one that was only raised cannot be told from a right one."""
    path = tmp_path / "checkpoint"

    def fit(most):
        params = {"checkpoint": Checkpoint(path, every=1, seconds=0.0)}
        return MeasureClassifier("roc_auc", solver="lbfgs", tol=1e-12, max_iter=most, solver_params=params).fit(*rows())

    with pytest.warns(ConvergenceWarning, match="max_iter"):
        fit(2)
    content = read_archive(path, "scoreline checkpoint", 1)
    for record in (content["runs"][0]["state"], content["runs"][0]["before"]):
        record["lower_bound"] = 2.0 * abs(record["best_objective"]) + 1.0
    write_archive(path, "scoreline checkpoint", 1, content)
    with pytest.raises(ValueError, match=r"checkpoint.*the lower bound of a run is above its objective"):
        fit(3)


# ------------------------------------------------------------------------------------------------------ no code is run


class Trap:
    """Makes a folder when it is unpickled."""

    def __reduce__(self):
        return os.mkdir, ("the-pickle-was-run",)


def npz_of_objects():
    file = io.BytesIO()
    np.savez(file, X=np.array([[Trap()]], dtype=object), y=np.array([1]))
    return file.getvalue()


def npy_of_objects():
    file = io.BytesIO()
    np.save(file, np.array([[Trap()]], dtype=object), allow_pickle=True)
    return file.getvalue()


def test_no_reader_unpickles_or_evaluates(tmp_path, monkeypatch):
    for kind in ("npz", "npy", "pickle as npy", "pickle as npz", "pickle as model", "npz as model"):
        folder = tmp_path / kind
        folder.mkdir()
        with case(kind):
            check_that_no_code_is_run(kind, folder, monkeypatch)


def check_that_no_code_is_run(kind, folder, monkeypatch):
    contents = {"npz": npz_of_objects, "npy": npy_of_objects, "pickle": lambda: pickle.dumps(Trap())}
    path = folder / f"rows.{'npy' if 'npy' in kind else 'npz'}"
    path.write_bytes(contents[kind.split()[0]]())

    def never(*_, **__):
        raise AssertionError("code of a file was run")

    with monkeypatch.context() as patch:
        patch.chdir(folder)
        for name in ("load", "loads", "Unpickler", "_Unpickler"):
            patch.setattr(pickle, name, never)
        for name in ("eval", "exec"):
            patch.setattr(builtins, name, never)
        with pytest.raises(ValueError, match="rows"):
            load_model(path) if kind.endswith("model") else read_data(path)
    assert list(folder.iterdir()) == [path]
