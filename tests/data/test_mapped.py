"""Data that stay on disk: what `convert` writes, `open_mapped` reads, and a fit cannot tell from data in memory."""

import json
import logging
import os
import pickle
import shutil
import subprocess
import sys
from itertools import product
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from cases import case, copies
from scoreline import MeasureClassifier
from scoreline.io import convert, libsvm, open_mapped, read_data, read_libsvm
from scoreline.io import mapped_folder as mapped
from scoreline.io.sources import Source
from scoreline.operators import as_operator
from scoreline.solvers.registry import all_solvers
from scoreline.testing import check_operator
from tiers import examples, tiered


def problem(n=150, p=7, density=0.4, seed=0):
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((n, p)) < density, rng.standard_normal((n, p)), 0.0)
    y = np.where(X @ rng.standard_normal(p) + 0.5 * rng.standard_normal(n) > 0.3, 1, -1)
    return X, y


def with_long_indices(X):
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    return X


MATRICES = {
    "dense": lambda X: X,
    "dense_f": lambda X: np.asfortranarray(X),
    "integers": lambda X: np.rint(4 * X).astype(np.int16),
    "csr": sp.csr_array,
    "csr_matrix": sp.csr_matrix,
    "csc": sp.csc_array,
    "coo": sp.coo_array,
    "int64": lambda X: with_long_indices(sp.csr_array(X)),
    "empty_rows": lambda X: sp.csr_array(np.where(np.arange(len(X))[:, None] % 3 == 0, 0.0, X)),
    "all_zero": lambda X: sp.csr_array(np.zeros_like(X)),
    "one_column": lambda X: X[:, :1],
}  # fmt: skip


def test_every_matrix_comes_back_as_an_operator(tmp_path):
    given, y = problem()
    for kind, dtype in tiered(product(MATRICES, ["float64", "float32"]), strength=1):
        X = MATRICES[kind](given)
        dense = (X.toarray() if sp.issparse(X) else X).astype(dtype).astype(np.float64)
        with case((kind, dtype)):
            data = open_mapped(convert((X, y), tmp_path / f"{kind} {dtype}", dtype=dtype), verify=True)
            check_operator(data.X, dense)
            assert np.array_equal(data.y, y)
            rounded = dense.astype(dtype)
            memory = as_operator(sp.csr_array(rounded) if sp.issparse(X) else np.ascontiguousarray(rounded))
            assert np.array_equal(memory.largest, data.X.largest)


@pytest.mark.parametrize("narrow", [2**31 - 1, 100])
def test_index_types_are_as_wide_as_they_must_be(tmp_path, monkeypatch, narrow):
    monkeypatch.setattr(mapped, "INT32_MAX", narrow)
    X, y = problem(n=80, p=130)
    folder = convert((sp.csr_array(X), y), tmp_path / "set")
    indices, indptr = (np.load(folder / f"{name}.npy") for name in ("indices", "indptr"))
    assert indptr.dtype == indices.dtype == (np.int32 if narrow > 1000 else np.int64)
    monkeypatch.setattr(mapped, "INT32_MAX", 1000)  # columns fit, entries do not: a mixture that SciPy does not have
    folder = convert((sp.csr_array(X), y), tmp_path / "mixed")
    indices, indptr = (np.load(folder / f"{name}.npy") for name in ("indices", "indptr"))
    assert (indices.dtype, indptr.dtype) == (np.int32, np.int64)
    data = open_mapped(folder)
    check_operator(data.X, X)
    for solver, measure in (("moments", "roc_auc"), ("newton", "accuracy"), ("hybrid", "accuracy"), ("spade", "qmean")):
        fits = [MeasureClassifier(measure, solver=solver, random_state=0).fit(Z, y) for Z in (sp.csr_array(X), data.X)]
        assert np.array_equal(fits[0].coef_, fits[1].coef_)


@pytest.mark.filterwarnings("ignore")  # of fits that are not normal, or end early
def test_every_solver_gives_the_bits_of_data_in_memory(tmp_path):
    dense, y = problem(n=400)
    matrices = {"dense": dense, "csr": sp.csr_array(dense)}
    mapped = {storage: open_mapped(convert((X, y), tmp_path / storage)) for storage, X in matrices.items()}
    for solver, storage in tiered(product(all_solvers(), matrices), strength=1):
        X, data = matrices[storage], mapped[storage]
        measure = (all_solvers()[solver].measures or ("accuracy",))[0]
        params = {"solver": solver, "random_state": 0, "alpha": 1e-2, "scaling": "maxabs"}
        if solver == "excessive_gap":
            params["max_iter"] = 200
        with case((solver, storage)):
            fits = [MeasureClassifier(measure, **params).fit(Z, labels) for Z, labels in ((X, y), (data.X, data.y))]
            assert np.array_equal(fits[0].coef_, fits[1].coef_)
            assert np.array_equal(fits[0].intercept_, fits[1].intercept_)
            assert fits[0].lower_bound_ == fits[1].lower_bound_
            assert np.array_equal(fits[1].predict(data.X), fits[0].predict(X))


@pytest.mark.filterwarnings("ignore:solver='moments'")
def test_columns_far_from_zero_have_the_same_moments(tmp_path):
    X, y = problem(n=3000)
    X[:, 0] = 1e6 + X[:, 0]
    X = sp.csr_array(X)
    data = open_mapped(convert((X, y), tmp_path / "set"))
    fits = [MeasureClassifier(solver="moments").fit(Z, y) for Z in (X, data.X)]
    assert np.array_equal(fits[0].coef_, fits[1].coef_)
    dense = MeasureClassifier(solver="moments").fit(X.toarray(), y)
    np.testing.assert_allclose(fits[0].coef_, dense.coef_, rtol=1e-8)


LABELS = {
    "signs": [1, -1],
    "numbers": [3, 1000],
    "fractions": [0.5, 1.5],
    "words": ["spam", "ham"],
    "umlauts": ["grün", "blau"],
    "truth": [True, False],
    "many": list(range(100)),
}


def test_labels_of_any_kind_come_back(tmp_path, monkeypatch):
    monkeypatch.setattr("scoreline.io.sources.BLOCK_BYTES", 200)
    for kind, labels in LABELS.items():
        y = np.array(labels * 2 + labels[::-1])
        X = np.arange(2.0 * len(y)).reshape(-1, 2)
        assert open_mapped(convert((X, y), tmp_path / kind)).y.tolist() == y.tolist(), kind


class Parts(Source):
    """Blocks as they are given."""

    def __init__(self, *parts):
        self.parts = parts

    def blocks(self):
        return iter(self.parts)

    def width(self):
        return self.parts[0][0].shape[1], 0


def test_classes_may_come_late_but_not_of_another_kind(tmp_path):
    X = np.eye(3)
    parts = Parts((X, np.array([7, 3, 7])), (X, np.array([1, 3, 9])))
    assert open_mapped(convert(parts, tmp_path / "set")).y.tolist() == [7, 3, 7, 1, 3, 9]
    with pytest.raises(ValueError, match="labels are numbers in some rows and text in others"):
        convert(Parts((X, np.array([1, 2, 1])), (X, np.array(["a", "b", "a"]))), tmp_path / "other")
    with pytest.raises(ValueError, match="there are 3 labels for 6 rows"):
        convert(Parts((X, np.array([1, 2, 1])), (X, None)), tmp_path / "other")


def test_data_without_labels_can_be_kept(tmp_path):
    assert open_mapped(convert((np.eye(3), None), tmp_path / "set")).y is None


def write_text(path, X, y, first=1):
    lines = (
        f"{label} " + " ".join(f"{j + first}:{v!r}" for j, v in enumerate(row) if v)
        for label, row in zip(y, X.tolist(), strict=True)
    )
    path.write_text("\n".join(lines) + "\n")
    return path


def packed_as(suffix, path):
    """Return a copy of a file that is compressed as the suffix says."""
    if not suffix:
        return path
    other = path.with_name(path.name + suffix)
    with libsvm.OPENERS[suffix](other, "wb") as file:
        file.write(path.read_bytes())
    return other


def test_text_is_converted_in_pieces(tmp_path, monkeypatch):
    X, y = problem(n=60)
    X[:, 0] = 0.25  # so that the first index occurs
    for suffix, first, piece in tiered(product(["", ".gz", ".xz", ".bz2"], [0, 1], [60, 500, 1 << 26])):
        monkeypatch.setattr(libsvm, "PIECE_BYTES", piece)
        with case((suffix, first, piece)):
            path = packed_as(suffix, write_text(tmp_path / "some.svm", X, y, first))
            data = open_mapped(convert(path, tmp_path / f"set{suffix} {first} {piece}"))
            check_operator(data.X, X)
            assert data.y.tolist() == y.tolist()
            assert np.array_equal(as_operator(read_libsvm(path)[0]).largest, data.X.largest)


@examples(50)
@given(st.lists(st.lists(st.tuples(st.integers(1, 9), st.floats(-9, 9)), max_size=5), min_size=1, max_size=8))
def test_columns_named_twice_or_out_of_order_are_the_same_matrix(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("rows") / "some.svm"
    path.write_text("\n".join("1 " + " ".join(f"{j}:{v!r}" for j, v in row) for row in rows) + "\n")
    X, _ = read_libsvm(path, zero_based=False, n_features=9)
    data = open_mapped(convert(path, path.with_name("set"), zero_based=False, n_features=9))
    np.testing.assert_allclose(data.X.matvec(np.arange(9.0)), X @ np.arange(9.0), rtol=1e-12, atol=1e-12)


def test_a_table_is_converted_with_its_encoding(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"a": rng.random(90), "c": rng.choice(["x", "y", "z"], 90), "out": rng.choice(["no", "yes"], 90)}
    )
    frame.to_csv(tmp_path / "t.csv", index=False)
    memory = read_data(tmp_path / "t.csv", "out")
    for source in (tmp_path / "t.csv", frame):
        data = open_mapped(convert(source, tmp_path / "set", label="out", overwrite=True))
        assert data.names == memory.names == ["a", "c=x", "c=y", "c=z"]
        assert data.encoding == memory.encoding
        assert data.y.tolist() == memory.y.tolist()
        assert np.array_equal(data.X.matvec([1.0, 2.0, 3.0, 4.0]), memory.X @ [1.0, 2.0, 3.0, 4.0])
    data = open_mapped(convert(frame, tmp_path / "one", label="out", positive="no"))
    assert data.y.tolist() == (frame["out"] == "no").tolist()


BAD = {
    "nan": lambda X, y, t: (np.where(X == X[3, 2], np.nan, X), y),
    "infinite": lambda X, y, t: (sp.csr_array(np.where(X == X[3, 2], np.inf, X)), y),
    "labels_short": lambda X, y, t: (X, y[:-1]),
    "text": lambda X, y, t: (X.astype(str), y),
    "one_dimension": lambda X, y, t: (X[:, 0], y),
    "no_rows": lambda X, y, t: (X[:0], y[:0]),
    "measurements": lambda X, y, t: (X, np.arange(len(y)) / 7),
    "no_file": lambda X, y, t: t / "nothing.svm",
    "a_folder": lambda X, y, t: t,
    "an_object": lambda X, y, t: 7,
}


def test_bad_input_is_refused_and_leaves_nothing(tmp_path):
    X, y = problem(density=1.0)
    for kind, bad in BAD.items():
        with case(kind):
            with pytest.raises((ValueError, FileNotFoundError)):
                convert(bad(X, y, tmp_path), tmp_path / "set")
            assert os.listdir(tmp_path) == []


def test_numbers_too_large_for_float32_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"row 2, column 1 .*float32"):
        convert((np.array([[1.0, 2.0], [3.0, 1e39]]), [0, 1]), tmp_path / "set", dtype="float32")


def test_bad_options_are_refused(tmp_path):
    for options in ({"dtype": "float16"}, {"label": "a"}, {"unknown": 3}):
        with case(options), pytest.raises((ValueError, TypeError)):
            convert(problem(), tmp_path / "set", **options)
    assert os.listdir(tmp_path) == []


def test_a_folder_is_replaced_only_when_asked_and_only_by_a_whole_one(tmp_path):
    X, y = problem()
    folder = convert((X, y), tmp_path / "set")
    with pytest.raises(ValueError, match="overwrite=True"):
        convert((2 * X, y), folder)
    with pytest.raises(ValueError, match="NaN"):
        convert((X * np.nan, y), folder, overwrite=True)
    assert open_mapped(folder, verify=True).X.largest.max() == np.abs(X).max()
    convert((2 * X, y), folder, overwrite=True)
    assert open_mapped(folder).X.largest.max() == 2 * np.abs(X).max()
    assert os.listdir(tmp_path) == ["set"]
    (tmp_path / "mine").mkdir()
    with pytest.raises(ValueError, match="was not made by convert"):
        convert((X, y), tmp_path / "mine", overwrite=True)
    with pytest.raises(ValueError, match="does not exist"):
        convert((X, y), tmp_path / "no" / "set")


def test_a_file_in_place_of_the_folder_is_called_a_file(tmp_path):
    place = tmp_path / "set"
    place.write_text("mine")
    with pytest.raises(ValueError, match="is a file, which is not replaced"):
        convert(problem(), place, overwrite=True)
    (tmp_path / ".set.lock").touch()
    with pytest.raises(ValueError, match="is a file, expected a folder"):
        open_mapped(place)
    assert place.read_text() == "mine"


def test_an_interrupted_conversion_is_found_and_begun_again(tmp_path, caplog):
    X, y = problem()
    part = tmp_path / ".set.part"
    part.mkdir()
    (part / "X.npy").write_bytes(b"half of it")
    with pytest.raises(FileNotFoundError, match="interrupted"):
        open_mapped(tmp_path / "set")
    with caplog.at_level(logging.INFO, "scoreline"):
        folder = convert((X, y), tmp_path / "set")
    assert "starting again" in caplog.text
    check_operator(open_mapped(folder).X, X)
    assert os.listdir(tmp_path) == ["set"]


def test_a_folder_lost_between_two_names_is_brought_back(tmp_path):
    folder = convert(problem(), tmp_path / "set")
    folder.rename(tmp_path / ".set.old")
    with pytest.raises(FileNotFoundError, match="interrupted"):
        open_mapped(folder)
    with pytest.raises(ValueError, match="exists already"):
        convert(problem(), folder)
    open_mapped(folder, verify=True)


def test_two_conversions_to_one_folder_do_not_meet(tmp_path):
    with mapped._lock(tmp_path / "set"), pytest.raises(ValueError, match="another process"):
        convert(problem(), tmp_path / "set")


def test_conversions_lock_each_other_out_on_windows(tmp_path, monkeypatch):
    """With a stand-in for `msvcrt`, made of the locks of this system."""
    fcntl = pytest.importorskip("fcntl")

    def locking(handle, mode, size):
        assert (mode, size) == ("LK_NBLCK", 1)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise PermissionError(13, "Permission denied") from error

    monkeypatch.setitem(sys.modules, "msvcrt", SimpleNamespace(locking=locking, LK_NBLCK="LK_NBLCK"))
    monkeypatch.setitem(sys.modules, "fcntl", None)
    with mapped._lock(tmp_path / "set"), pytest.raises(ValueError, match="another process"):
        convert(problem(), tmp_path / "set")
    open_mapped(convert(problem(), tmp_path / "set"), verify=True)


@pytest.fixture
def folder(tmp_path):
    X, y = problem()
    return convert((sp.csr_array(X), y), tmp_path / "set")


def changed(folder, **values):
    header = json.loads((folder / "header.json").read_text())
    (folder / "header.json").write_text(json.dumps(header | values))


ARRAYS = ("data.npy", "indices.npy", "indptr.npy", "labels.npy", "largest.npy")
DAMAGE = {
    "no header": lambda f: (f / "header.json").unlink(),
    "empty header": lambda f: (f / "header.json").write_text(""),
    "binary header": lambda f: (f / "header.json").write_bytes(bytes(range(256))),
    "deep header": lambda f: (f / "header.json").write_text("[" * 100_000),
    "header is a list": lambda f: (f / "header.json").write_text("[]"),
    "other format": lambda f: changed(f, format="something"),
    "newer": lambda f: changed(f, version=2),
    "version is text": lambda f: changed(f, version="1"),
    "storage": lambda f: changed(f, storage="dense"),
    "storage unknown": lambda f: changed(f, storage="cubes"),
    "rows": lambda f: changed(f, shape=[151, 7]),
    "columns": lambda f: changed(f, shape=[150, 6]),
    "huge": lambda f: changed(f, shape=[2**62, 7]),
    "negative": lambda f: changed(f, shape=[-150, 7]),
    "shape is text": lambda f: changed(f, shape="150 7"),
    "no files": lambda f: changed(f, files={}),
    "classes": lambda f: changed(f, classes=[1]),
    "classes is a number": lambda f: changed(f, classes=1),
    "names": lambda f: changed(f, names=["a"]),
    "encoding": lambda f: changed(f, encoding={"columns": []}),
    "path": lambda f: changed(f, files={"../../etc/passwd": {}}),
    **{f"no {name}": lambda f, name=name: (f / name).unlink() for name in ARRAYS},
    **{f"short {name}": lambda f, name=name: os.truncate(f / name, os.path.getsize(f / name) - 4) for name in ARRAYS},
    **{f"long {name}": lambda f, name=name: (f / name).open("ab").write(b"1234") for name in ARRAYS},
}  # fmt: skip


def test_a_damaged_folder_is_an_error_that_names_it(folder):
    for kind, copy in copies(folder, DAMAGE):
        DAMAGE[kind](copy)
        with case(kind), pytest.raises(ValueError, match=copy.name):
            open_mapped(copy)


BAD_NUMBERS = [
    ("indices", 5, 7), ("indices", 0, -1), ("indices", 9, 2**31 - 1), ("indptr", 3, 10**6), ("indptr", 0, 1),
    ("indptr", 4, -5), ("indptr", -1, 0), ("labels", 2, 2), ("labels", 2, -1), ("largest", 0, np.nan),
]  # fmt: skip


def test_indices_that_lead_out_of_memory_are_refused_at_once(folder):
    for (name, place, value), copy in copies(folder, BAD_NUMBERS):
        array = np.load(copy / f"{name}.npy", mmap_mode="r+")
        array[place] = value
        with case((name, place, value)), pytest.raises(ValueError, match="damaged"):
            open_mapped(copy)


def test_any_change_is_found_by_the_checksums(folder):
    for name, copy in copies(folder, ARRAYS):
        raw = bytearray((copy / name).read_bytes())
        raw[-1] ^= 1
        (copy / name).write_bytes(raw)
        with case(name), pytest.raises(ValueError, match="damaged"):
            open_mapped(copy, verify=True)


def test_an_object_array_in_place_of_numbers_runs_no_code(folder, tmp_path):
    class Trap:
        def __reduce__(self):
            return (os.mkdir, (str(tmp_path / "trapped"),))

    np.save(folder / "data.npy", np.array([Trap()], dtype=object), allow_pickle=True)
    changed(folder, files={name: {"bytes": os.path.getsize(folder / name), "crc32": 0} for name in ARRAYS})
    with pytest.raises(ValueError, match="damaged"):
        open_mapped(folder)
    assert not (tmp_path / "trapped").exists()


def test_a_folder_can_be_moved_and_is_opened_by_read_data(folder, tmp_path):
    shutil.move(folder, tmp_path / "elsewhere")
    data = read_data(tmp_path / "elsewhere")
    assert data.X.shape == (150, 7)
    with pytest.raises(ValueError, match=r"label=\.\.\. was chosen"):
        read_data(tmp_path / "elsewhere", "a")


LIMITED = """
import resource, sys
import numpy as np
from scoreline import MeasureClassifier
from scoreline.io import convert, open_mapped
{warm}
before = next(int(l.split()[1]) for l in open("/proc/self/status") if l.startswith("VmData")) * 1024
resource.setrlimit(resource.RLIMIT_DATA, (before + {limit}, before + {limit}))
{call}
print("done")
"""


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="RLIMIT_DATA and /proc")
def test_a_conversion_needs_little_memory(tmp_path):
    """48 MB of text and 57 MB of arrays with 40 MB of data memory, most of it the working memory of one piece."""
    rng = np.random.default_rng(0)
    block = "".join(
        f"{s} " + " ".join(f"{j + 1}:{v:.3f}" for j, v in enumerate(row)) + "\n"
        for s, row in zip(rng.choice([1, -1], 500), rng.random((500, 20)), strict=True)
    )
    path = tmp_path / "large.svm"
    path.write_text(block * 480)
    warm = (
        "from pathlib import Path\nfrom scoreline.io import libsvm\nlibsvm.PIECE_BYTES = 1 << 22\n"
        "tiny = Path(sys.argv[1]).with_name('tiny.svm')\ntiny.write_text('1 1:1\\n-1 2:0.5\\n')\n"
        "open_mapped(convert(tiny, str(tiny) + '.d'))"
    )
    call = "convert(sys.argv[1], sys.argv[2])"
    code = LIMITED.format(warm=warm, limit=40 << 20, call=call)
    done = subprocess.run(
        [sys.executable, "-c", code, str(path), str(tmp_path / "set")], capture_output=True, text=True, check=False
    )
    assert done.stdout.strip() == "done", done.stderr[-2000:]
    assert open_mapped(tmp_path / "set").X.shape == (240_000, 20)


def test_rows_that_come_again_are_read_from_memory_with_the_same_bits(tmp_path):
    given, y = problem(n=5000, p=30)
    rng = np.random.default_rng(3)
    for storage, dtype, share in tiered(product(["dense", "csr"], ["float64", "float32"], [1 / 50, 1 / 4])):
        X = sp.csr_array(given.astype(dtype)) if storage == "csr" else given.astype(dtype)
        data = open_mapped(convert((X, y), tmp_path / f"{storage} {dtype} {share}", dtype=dtype))
        rows, w = rng.permutation(5000)[: int(5000 * share)], rng.standard_normal(30)
        u = rng.standard_normal(len(rows))
        part, other = data.X.on_rows(rows), as_operator(X).on_rows(rows)
        with case((storage, dtype, share)):
            for _ in range(3):
                assert np.array_equal(part.matvec(w), other.matvec(w))
                assert np.array_equal(part.rmatvec(u), other.rmatvec(u))
            assert "copy" in data.X._last_list
            another = data.X.on_rows(rows[::-1].copy())
            assert np.array_equal(another.matvec(w), part.matvec(w)[::-1])
            del part, another
            assert not data.X._last_list, "the copy goes with the rows"


@pytest.mark.parametrize("storage", ["dense", "csr"])
def test_an_operator_of_files_goes_to_another_process_as_their_names(tmp_path, storage):
    X, y = problem(n=5000, p=30)
    data = open_mapped(convert((sp.csr_array(X) if storage == "csr" else X, y), tmp_path / "set"))
    raw = pickle.dumps(data.X)
    assert len(raw) < 2000
    again = pickle.loads(raw)
    w = np.arange(30.0)
    assert np.array_equal(again.matvec(w), data.X.matvec(w))
    assert np.array_equal(again.largest, data.X.largest)


def test_folders_that_hold_something_else_are_not_replaced(tmp_path):
    (tmp_path / "web").mkdir()
    (tmp_path / "web" / "header.json").write_text("{}")
    (tmp_path / "web" / "precious.txt").write_text("mine")
    with pytest.raises(ValueError, match="was not made by convert"):
        convert(problem(), tmp_path / "web", overwrite=True)
    folder = convert(problem(), tmp_path / "set")
    (folder / "notes.txt").write_text("mine")
    with pytest.raises(ValueError, match=r"holds 'notes.txt'"):
        convert(problem(), folder, overwrite=True)
    assert (folder / "notes.txt").read_text() == "mine"


def test_blocks_without_rows_do_no_harm(tmp_path, monkeypatch):
    monkeypatch.setattr(libsvm, "PIECE_BYTES", 200)
    path = tmp_path / "some.svm"
    path.write_text("# a comment that goes on\n" * 50 + "1 1:0.5\n-1 2:3\n")
    data = open_mapped(convert(path, tmp_path / "set"))
    assert data.X.matvec([1.0, 1.0]).tolist() == [0.5, 3.0]


def test_labels_that_cannot_be_kept_are_refused_at_once(tmp_path):
    for labels in ([1.0, np.nan], [b"a", b"b"], np.array(["2020-01-01", "2020-01-02"], dtype="M8[D]")):
        with case(labels), pytest.raises(ValueError, match="label"):
            convert((np.eye(2), np.array(labels)), tmp_path / "set")


def test_an_index_beyond_all_bounds_is_named(tmp_path):
    path = tmp_path / "some.svm"
    path.write_text(f"1 1:0.5\n-1 {10**15}:3\n")
    for options in ({}, {"n_features": 10}):
        with pytest.raises(ValueError, match=f"some.svm has a feature with index {10**15}"):
            convert(path, tmp_path / "set", **options)
    assert os.listdir(tmp_path) == ["some.svm"]


def test_copies_of_rows_go_at_once_when_others_come(tmp_path):
    X, y = problem(n=3000)
    data = open_mapped(convert((X, y), tmp_path / "set"))
    first, second = (data.X.on_rows(np.arange(k, 3000, 2)) for k in (0, 1))
    w = np.ones(7)
    for part in (first, first, second):
        part.matvec(w)
    assert "copy" not in data.X._last_list


def test_rows_that_come_again_keep_the_chunks_of_the_whole(tmp_path):
    """The listed rows are far longer than the others: chunks of their own would end elsewhere, and sums have other bits."""
    rng = np.random.default_rng(5)
    X = sp.random_array((40_000, 100), density=0.01, random_state=rng, format="lil")
    rows = np.sort(rng.choice(40_000, 4000, replace=False))
    X[rows] = rng.standard_normal((4000, 100))
    X = X.tocsr()
    data = open_mapped(convert((X, np.arange(40_000) % 2), tmp_path / "set"))
    part, other, u = data.X.on_rows(rows), as_operator(X).on_rows(rows), rng.standard_normal(4000)
    for _ in range(2):
        assert np.array_equal(part.rmatvec(u), other.rmatvec(u))
    assert "copy" in data.X._last_list


def test_a_fault_in_a_later_piece_is_named_by_its_line(tmp_path, monkeypatch):
    monkeypatch.setattr(libsvm, "PIECE_BYTES", 100)
    path = tmp_path / "some.svm"
    path.write_bytes(b"1 1:0.5\n-1 2:3\n" * 40 + b"1 1:x\n" + b"1 1:2\n" * 10)
    for suffix in ("", ".gz"):
        with case(suffix), pytest.raises(ValueError, match="line 81, column 5: got 'x'"):
            convert(packed_as(suffix, path), tmp_path / "set")
