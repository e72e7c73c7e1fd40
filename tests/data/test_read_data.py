"""read_data: every kind of file, the same matrix; labels of any kind; options where they belong."""

import gzip
import warnings
from itertools import product

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file

from cases import case
from scoreline import MeasureClassifier, load_model
from scoreline.cli.main import main
from scoreline.io import Dataset, open_mapped, read_data
from scoreline.io.mapped_folder import convert
from scoreline.io.sources import Source

rng = np.random.default_rng(0)
X = rng.standard_normal((40, 3))
Y = np.where(np.arange(40) % 3 == 0, 1, -1)
FRAME = pd.DataFrame(X, columns=list("abc")).assign(out=Y)
SPARSE = sp.csr_array(np.where(np.abs(X) > 0.7, X, 0.0))


def changed_byte(raw, place):
    return raw[:place] + bytes([raw[place] ^ 255]) + raw[place + 1 :]


def libsvm(path):
    dump_svmlight_file(X, Y, str(path), zero_based=False)


FILES = {
    "t.svm": libsvm,
    "no_suffix": libsvm,
    "set.t": libsvm,
    "t.csv": lambda path: FRAME.to_csv(path, index=False),
    "t.tsv": lambda path: FRAME.to_csv(path, index=False, sep="\t"),
    "t.csv.gz": lambda path: FRAME.to_csv(path, index=False),
    "t.parquet": lambda path: FRAME.to_parquet(path),
    "t.feather": lambda path: FRAME.to_feather(path),
    "t.npz": lambda path: np.savez(path, X=X, y=Y),
    "t.npy": lambda path: np.save(path, np.column_stack([X, Y])),
    "folder": lambda path: convert((X, Y), path),
}
OPTIONS = {"t.csv": "out", "t.tsv": "out", "t.csv.gz": "out", "t.parquet": "out", "t.feather": "out", "t.npy": -1}


def test_every_file_is_the_same_data_read_or_converted(tmp_path):
    w = np.array([1.0, -2.0, 0.5])
    for name, write in FILES.items():
        with case(name):
            write(tmp_path / name)
            data = read_data(tmp_path / name, OPTIONS.get(name))
            assert isinstance(data, Dataset)
            z = data.X.matvec(w) if hasattr(data.X, "matvec") else data.X @ w
            np.testing.assert_allclose(z, X @ w, rtol=1e-12, atol=1e-12)
            assert data.y.tolist() == Y.tolist()
            assert data.names == (["a", "b", "c"] if OPTIONS.get(name) == "out" else None)
            MeasureClassifier().fit(data.X, data.y)
            if name == "folder":
                continue
            folder = convert(tmp_path / name, tmp_path / f"{name} converted", label=OPTIONS.get(name))
            mapped = open_mapped(folder, verify=True)
            np.testing.assert_allclose(mapped.X.matvec(w), data.X @ w, rtol=1e-12, atol=1e-12)
            assert mapped.y.tolist() == Y.tolist()
            assert mapped.names == data.names


def test_frames_are_tables_in_memory():
    for frame in (FRAME, pl.from_pandas(FRAME), pa.Table.from_pandas(FRAME)):
        with case(type(frame)):
            data = read_data(frame, "out")
            np.testing.assert_array_equal(data.X, X)
            assert data.y.tolist() == Y.tolist()


def sparse_parts(matrix):
    """Return the arrays of a file that SciPy writes."""
    return {"data": matrix.data, "indices": matrix.indices, "indptr": matrix.indptr, "shape": matrix.shape}


def test_scipy_files_with_labels_are_read(tmp_path):
    for kind in ("csr", "csc"):
        matrix = SPARSE.asformat(kind)
        np.savez(tmp_path / "t.npz", **sparse_parts(matrix), format=kind.encode(), y=Y)
        with case(kind):
            data = read_data(tmp_path / "t.npz")
            np.testing.assert_array_equal(data.X.toarray(), SPARSE.toarray())
            sp.save_npz(tmp_path / "plain.npz", matrix)
            assert read_data(tmp_path / "plain.npz").y is None


POSITIVE = {
    "words": (["fraud", "fine", "fine", "fraud"], "fraud"),
    "numbers": ([0, 3, 3, 0], 0),
    "text for a number": ([0, 3, 3, 0], "0"),
    "fractions": ([0.5, 1.5, 1.5, 0.5], 0.5),
    "truth": ([False, True, True, False], "false"),
    "number for text": (["1", "2", "2", "1"], 1),
    "many": ([7, 1, 2, 7], 7),
}


def test_the_positive_class_is_named(tmp_path):
    for name, (labels, positive) in POSITIVE.items():
        frame = pa.table({"a": [1.0, 2.0, 3.0, 4.0], "out": pa.array(labels)})
        with case(name):
            folder = convert(frame, tmp_path / "set", label="out", positive=positive, overwrite=True)
            for data in (read_data(frame, "out", positive=positive), open_mapped(folder)):
                assert data.y.tolist() == [True, False, False, True]
                assert data.encoding.n_features == 1


def test_a_positive_class_that_does_not_occur_is_refused(tmp_path):
    frame = pa.table({"a": [1.0, 2.0], "out": ["fraud", "fine"]})
    for positive in ("frau", 7, "True"):
        with case(positive), pytest.raises(ValueError, match=r"is not a label of .*'fine', 'fraud'"):
            read_data(frame, "out", positive=positive)
        with case(positive), pytest.raises(ValueError, match="is not a label of"):
            convert(frame, tmp_path / "set", label="out", positive=positive)


def test_any_two_labels_of_libsvm_text_can_be_trained(tmp_path):
    for labels in ([0.5, 1.5], [1, 2], [0, 1], [-1, 1], [3, -7]):
        dump_svmlight_file(X, np.where(Y > 0, *labels[::-1]), str(tmp_path / "t.svm"), zero_based=False)
        data = read_data(tmp_path / "t.svm")
        assert MeasureClassifier().fit(data.X, data.y).classes_.tolist() == sorted(labels)


def test_a_model_keeps_the_encoding_and_counts_what_it_has_not_seen(tmp_path):
    frame = pd.DataFrame({"a": X[:, 0], "c": np.where(X[:, 1] > 0, "x", "y"), "out": Y})
    data = read_data(frame, "out")
    clf = MeasureClassifier().fit(data.X, data.y)
    clf.save(tmp_path / "m.npz", data.encoding)
    loaded = load_model(tmp_path / "m.npz")
    assert loaded.encoding_ == data.encoding
    loaded.save(tmp_path / "again.npz")
    assert load_model(tmp_path / "again.npz").encoding_ == data.encoding
    new = frame.drop(columns="out").assign(c="z", other=1)[["other", "c", "a"]]
    with pytest.warns(UserWarning, match="c 40 of 40 rows") as caught:
        table = read_data(new, encoding=loaded.encoding_)
    assert caught[0].filename == __file__
    assert table.y is None
    assert loaded.encoding_.unseen == {"c": 40}
    assert loaded.decision_function(table.X).shape == (40,)


WRONG = {
    "no label": ("t.csv", {}, "label=None"),
    "label of text": ("t.svm", {"label": "out"}, "label='out' does not go with LIBSVM text"),
    "unknown label": ("t.csv", {"label": "oot"}, "Did you mean 'out'"),
    "zero_based of a table": ("t.csv", {"label": "out", "zero_based": True}, "zero_based is for LIBSVM"),
    "n_features of a table": ("t.csv", {"label": "out", "n_features": 3}, "n_features is for LIBSVM"),
    "impute of text": ("t.svm", {"impute": "zero"}, "impute='zero' does not go with LIBSVM text"),
    "zero_based": ("t.svm", {"zero_based": "maybe"}, "zero_based"),
    "n_features": ("t.svm", {"n_features": 2}, "n_features=2 is too small"),
    "column of npy": ("t.npy", {"label": 4}, "label=4"),
    "column by name of npy": ("t.npy", {"label": "out"}, "label='out'"),
    "label of npz": ("t.npz", {"label": "out"}, "array y"),
    "impute of npz": ("t.npz", {"impute": "zero"}, "does not go with an array file"),
}


def test_options_that_do_not_fit_are_refused(tmp_path):
    for kind, (name, options, message) in WRONG.items():
        FILES[name](tmp_path / name)
        for call in (read_data, lambda source, **rest: convert(source, tmp_path / "set", **rest)):
            with case((kind, call)), pytest.raises(ValueError, match=message):
                call(tmp_path / name, **options)


DAMAGED = [
    ("t.npz", b"", "cannot be read as .npz"),
    ("t.npz", b"PK\x03\x04 not a zip", "cannot be read as .npz"),
    ("t.npy", b"\x93NUMPY", "cannot be read as .npy"),
    ("t.npy", np.array([{}], dtype=object).dumps(), "cannot be read as .npy"),
    ("t.xlsx", b"PK\x03\x04\x00", "t.xlsx, line 1, column 1"),
    ("t.parquet", b"PAR1", "t.parquet"),
    ("t.csv", b"", "t.csv is empty"),
    ("t.svm.gz", gzip.compress(b"1 1:1\n-1 1:2\n" * 50, mtime=0)[:-20], "cannot be unpacked"),
    ("t.svm.gz", changed_byte(gzip.compress(rng.bytes(999), mtime=0), 20), "cannot be unpacked"),
]


def test_files_that_are_not_what_they_seem_are_refused(tmp_path):
    for name, raw, message in DAMAGED:
        (tmp_path / name).write_bytes(raw)
        with case((name, raw[:20])), pytest.raises(ValueError, match=message):
            read_data(tmp_path / name, "out" if name.endswith((".csv", ".parquet")) else None)


def test_arrays_that_are_not_there_or_have_other_shapes_are_named(tmp_path):
    np.savez(tmp_path / "a.npz", features=X)
    with pytest.raises(ValueError, match=r"holds \['features'\], expected arrays X and y"):
        read_data(tmp_path / "a.npz")
    np.save(tmp_path / "v.npy", Y)
    with pytest.raises(ValueError, match="expected 2"):
        read_data(tmp_path / "v.npy")
    np.savez(tmp_path / "b.npz", X=X, y=Y[:3])
    with pytest.raises(ValueError, match="one label for each of 40 rows"):
        read_data(tmp_path / "b.npz")
    with pytest.raises(FileNotFoundError, match="does not exist"):
        read_data(tmp_path / "nothing.csv", "out")
    with pytest.raises(ValueError, match="expected a path"):
        read_data(7, "out")


def test_reading_twice_gives_no_warning(tmp_path):
    libsvm(tmp_path / "t.svm")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read_data(tmp_path / "t.svm")
        read_data(FRAME, "out")


def test_sparse_files_with_indices_out_of_range_are_refused(tmp_path):
    for kind, index in product(("csr", "csc"), (-1, 7, 10**6)):
        matrix = SPARSE.asformat(kind, copy=True)
        matrix.indices[3] = 10**6 if index == 7 and kind == "csc" else index  # row 7 exists
        np.savez(tmp_path / "t.npz", **sparse_parts(matrix), format=kind.encode(), y=Y)
        with case((kind, index)), pytest.raises(ValueError, match=r"t\.npz"):
            read_data(tmp_path / "t.npz")


def test_the_suffix_may_be_in_capitals(tmp_path):
    np.save(tmp_path / "t.npy", np.column_stack([X, Y]))
    (tmp_path / "t.npy").rename(tmp_path / "T.NPY")
    assert read_data(tmp_path / "T.NPY", -1).y.tolist() == Y.tolist()
    np.savez(tmp_path / "t.npz", **sparse_parts(SPARSE), y=Y)  # no format: CSR
    (tmp_path / "t.npz").rename(tmp_path / "T.NPZ")
    assert read_data(tmp_path / "T.NPZ").X.shape == SPARSE.shape
    (tmp_path / "T.SVM.GZ").write_bytes(gzip.compress(b"1 1:2\n-1 2:3\n"))
    assert read_data(tmp_path / "T.SVM.GZ").X.shape == (2, 2)


def test_the_command_line_takes_files_for_what_read_data_takes_them(tmp_path, capsys):
    """Was: rows.csv.svm was LIBSVM text to `read_data` and a table to `predict`, which then read too few columns."""
    (tmp_path / "train.svm").write_text("1 1:2\n-1 2:3\n1 1:1 3:1\n-1 2:1\n")
    (tmp_path / "rows.csv.svm").write_text("1 1:2\n-1 2:3\n")
    model = str(tmp_path / "model.npz")
    assert main(["train", str(tmp_path / "train.svm"), "--out", model]) == 0
    assert main(["predict", model, str(tmp_path / "rows.csv.svm")]) == 0, capsys.readouterr().err


def test_a_real_question_mark_next_to_missing_values_is_one_category(tmp_path):
    (tmp_path / "t.csv").write_text("c,out\n1.0,a\n2.0,b\n?,a\n,b\n1.0,a\n")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        data = read_data(tmp_path / "t.csv", "out", categories=["c"], impute="mean")
    assert data.names == ["c=1", "c=2", "c=?"]
    dense = data.X.toarray() if sp.issparse(data.X) else data.X
    assert dense.tolist() == [[1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0, 1], [1, 0, 0]]


def test_a_missing_category_is_an_error_unless_it_was_imputed():
    frame = pa.table({"c": ["x", "y"], "out": [0, 1]})
    new = pa.table({"c": pa.array(["x", None])})
    with pytest.raises(ValueError, match="column 'c', row 2: the value is missing"):
        read_data(new, encoding=read_data(frame, "out", impute=None).encoding)
    with pytest.warns(UserWarning, match="c 1 of 2 rows"):
        read_data(new, encoding=read_data(frame, "out", impute="mean").encoding)


def test_what_an_encoding_has_settled_is_refused(tmp_path):
    encoding = read_data(FRAME, "out").encoding
    for options in ({"drop": ["a"]}, {"impute": "zero"}, {"impute": None}, {"categories": ["a"]}):
        with pytest.raises(ValueError, match="part of encoding"):
            convert(FRAME, tmp_path / "set", label="out", encoding=encoding, **options)
    with pytest.raises(ValueError, match="expected an Encoding"):
        convert(FRAME, tmp_path / "set", label="out", encoding={"columns": []})


def test_classes_keep_their_names(tmp_path):
    for other in ("fine", "a"):
        frame = pa.table({"a": [1.0, 2.0, 3.0], "out": ["fraud", other, "fraud"]})
        folder = convert(frame, tmp_path / "set", label="out", positive="fraud", overwrite=True)
        for data in (read_data(frame, "out", positive="fraud"), open_mapped(folder)):
            assert data.class_names == [other, "fraud"]
    three = pa.table({"a": [1.0, 2.0, 3.0], "out": ["fraud", "x", "y"]})
    assert read_data(three, "out", positive="fraud").class_names == ["not fraud", "fraud"]
    assert read_data(frame, "out").class_names is None


@pytest.mark.parametrize("storage", ["dense", "csr"])
def test_a_source_of_ones_own_is_read_whole_and_converted(tmp_path, storage):
    class Own(Source):
        def blocks(self):
            for start in range(0, 40, 15):
                block = X[start : start + 15]
                yield (sp.csr_array(block) if storage == "csr" else block), Y[start : start + 15]

        def width(self):
            return 3, 0

    data = read_data(Own())
    np.testing.assert_array_equal(data.X.toarray() if storage == "csr" else data.X, X)
    assert data.y.tolist() == open_mapped(convert(Own(), tmp_path / "set")).y.tolist() == Y.tolist()
    with pytest.raises(TypeError, match="abstract"):
        Source()
