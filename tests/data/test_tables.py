"""Tables of every format give the matrix of a plain reference; errors say file, column and row."""

import bz2
import gzip
import lzma
import os
import time
import tracemalloc
import warnings
from datetime import date, timedelta
from decimal import Decimal
from itertools import product

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.preprocessing import OneHotEncoder

from cases import case
from scoreline.io import read_data, tables
from scoreline.io.columns import is_text
from scoreline.io.encoding import Encoding
from scoreline.io.sources import open_source
from tiers import examples, tiered

COLORS = ["red", "green", "blue, dark", 'say "hi"', "two\nlines", "zoë", "日本"]


def read_table(source, label=None, **options):
    data = read_data(source, label, **options)
    return data.X, data.y, data.encoding


def frame(rows=500, seed=0, width=4):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "größe": rng.normal(size=rows),
            "farbe": rng.choice(COLORS, rows),
            "count": rng.integers(-5, 5, rows),
            "flag": rng.random(rows) < 0.5,
            "code": rng.choice([f"k{j}" for j in range(width)], rows),
            "label": rng.integers(0, 3, rows),
        }
    )


def reference(data):
    """Return X and names by scikit-learn, in the order of the columns."""
    parts, names = [], []
    for name in data.columns.drop("label"):
        if data[name].dtype.kind in "bif":
            parts.append(data[[name]].to_numpy(dtype=float))
            names.append(name)
        else:
            encoder = OneHotEncoder(sparse_output=False).fit(data[[name]])
            parts.append(encoder.transform(data[[name]]))
            names += [f"{name}={text}" for text in encoder.categories_[0]]
    return np.hstack(parts), names


def dense(X):
    return X.toarray() if sp.issparse(X) else X


def csv_text(data, separator=","):
    return data.to_csv(index=False, sep=separator).encode()


def arrow_stream(data, path):
    table = pa.Table.from_pandas(data, preserve_index=False)
    with pa.ipc.new_stream(path, table.schema) as writer:
        writer.write_table(table, max_chunksize=100)


def arrow_file(data, path):
    table = pa.Table.from_pandas(data, preserve_index=False)
    with pa.ipc.new_file(path, table.schema) as writer:
        writer.write_table(table, max_chunksize=70)


def string_view(data):
    table = pa.Table.from_pandas(data, preserve_index=False)
    types = [pa.string_view() if is_text(field.type) else field.type for field in table.schema]
    try:
        return table.cast(pa.schema(list(zip(table.column_names, types, strict=True))))
    except pa.ArrowNotImplementedError:
        return table  # this pyarrow cannot make string_view


def zstd(text, path):
    with pa.CompressedOutputStream(str(path), "zstd") as file:
        file.write(text)


WRITERS = {
    "x.csv": lambda d, p: p.write_bytes(csv_text(d)),
    "bom.csv": lambda d, p: p.write_bytes(b"\xef\xbb\xbf" + csv_text(d)),
    "crlf.csv": lambda d, p: p.write_bytes(d.to_csv(index=False, lineterminator="\r\n").encode()),
    "x.tsv": lambda d, p: p.write_bytes(csv_text(d, "\t")),
    "x.CSV": lambda d, p: p.write_bytes(csv_text(d)),
    "x.csv.gz": lambda d, p: p.write_bytes(gzip.compress(csv_text(d))),
    "x.csv.bz2": lambda d, p: p.write_bytes(bz2.compress(csv_text(d))),
    "x.csv.xz": lambda d, p: p.write_bytes(lzma.compress(csv_text(d))),
    "x.tsv.zst": lambda d, p: zstd(csv_text(d, "\t"), p),
    "x.parquet": lambda d, p: d.to_parquet(p, index=False, row_group_size=64),
    "x.y.pq": lambda d, p: d.to_parquet(p, index=False),
    "x.arrow": lambda d, p: arrow_file(d, p),
    "x.ipc": lambda d, p: arrow_stream(d, p),
    "x.feather": lambda d, p: d.to_feather(p),
}
FRAMES = {
    "pandas": lambda d: d,
    "pandas categorical": lambda d: d.astype({"farbe": "category"}),
    "pandas nullable": lambda d: d.convert_dtypes(),
    "polars": pl.from_pandas,
    "polars categorical": lambda d: pl.from_pandas(d).with_columns(pl.col("farbe").cast(pl.Categorical)),
    "arrow": lambda d: pa.Table.from_pandas(d),
    "string_view": string_view,
    "batch": lambda d: pa.RecordBatch.from_pandas(d, preserve_index=False),
}


def test_every_file_gives_the_reference(tmp_path):
    for name, width in tiered(product(WRITERS, [4, 60]), strength=1):
        data = frame(width=width)
        WRITERS[name](data, tmp_path / name)
        expected, names = reference(data)
        with case((name, width)):
            X, y, encoding = read_table(tmp_path / name, "label", min_category_rows=1)
            assert encoding.storage == ("dense" if width == 4 else "csr")
            assert sp.issparse(X) == (width == 60)
            np.testing.assert_array_equal(dense(X), expected)
            assert encoding.names == names
            assert y.dtype == np.int64
            np.testing.assert_array_equal(y, data["label"])
            again, none, _ = read_table(str(tmp_path / name), encoding=encoding)
            np.testing.assert_array_equal(dense(again), expected)
            assert none is None


def test_every_frame_gives_the_reference():
    data = frame()
    expected, names = reference(data)
    for name, converted in FRAMES.items():
        with case(name):
            X, y, encoding = read_table(converted(data), "label")
            np.testing.assert_array_equal(dense(X), expected)
            assert encoding.names == names
            np.testing.assert_array_equal(y, data["label"])
            assert encoding.rows == len(data)
            assert encoding.labels == [0, 1, 2]


def test_streamed_blocks_are_the_matrix(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "CSV_BLOCK_BYTES", 3000)
    monkeypatch.setattr(tables, "MAX_BATCH_ROWS", 50)
    data = frame(width=60)
    for name in ("x.csv", "x.csv.xz", "x.parquet", "x.arrow", "x.ipc"):
        WRITERS[name](data, tmp_path / name)
        with case(name):
            check_stream(tmp_path / name)


def check_stream(path):
    source = open_source(path, label="label")
    blocks = list(source.blocks())
    assert len(blocks) >= 10
    assert max(X.shape[0] for X, _ in blocks) <= 50
    assert all(X.has_canonical_format and X.indices.dtype == np.int32 and (X.data != 0).all() for X, _ in blocks)
    full, y, same = read_table(path, "label")
    assert same.names == source.names
    np.testing.assert_array_equal(sp.vstack([X for X, _ in blocks]).toarray(), full.toarray())
    assert full.has_canonical_format
    assert full.indices.dtype == full.indptr.dtype == np.int32
    np.testing.assert_array_equal(np.concatenate([block for _, block in blocks]), y)
    table = tables.open_table(path)
    assert [b.num_rows for b in table.batches()] == [b.num_rows for b in table.batches()]


LATE = {
    "float": ("1", "2.5", "number"),
    "text": ("1", "abc", "category"),
    "numbers after nothing": ("", "2", "number"),
    "text after nothing": ("", "abc", "category"),
    "truth after nothing": ("", "true", "number"),
    "text after truth": ("true", "maybe", "category"),
    "code after date": ("2020-01-01", "never", "category"),
}


def test_types_that_change_late(tmp_path, monkeypatch):
    path = tmp_path / "late.csv"
    for late, (first, last, kind) in LATE.items():
        lines = [f"{first},1,0\n" * 300, f"{last},2,1.5\n", f"{first},3,1\n" * 300, f"{first},x,q\n"]
        path.write_text("v,w,y\n" + "".join(lines))
        options = {"impute": "zero", "drop": ["w"]} | ({"categories": ["v"]} if late == "code after date" else {})
        with case(late):
            full, y, encoding = read_table(path, "y", **options)
            assert encoding.columns[0].kind == kind
            with monkeypatch.context() as patch:
                patch.setattr(tables, "CSV_BLOCK_BYTES", 200)
                source = open_source(path, label="y", **options)
                blocks = list(source.blocks())
            assert source.encoding == encoding
            np.testing.assert_array_equal(np.vstack([dense(X) for X, _ in blocks]), dense(full))
            np.testing.assert_array_equal(np.concatenate([block for _, block in blocks]), y)
            assert y.dtype.kind == "U"


def test_text_in_a_column_of_numbers_is_found_in_a_stream(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "CSV_BLOCK_BYTES", 200)
    (tmp_path / "a.csv").write_text("v,y\n" + "1,0\n2,1\n" * 300)
    (tmp_path / "b.csv").write_text("v,y\n" + "1,0\n" * 400 + "oops,1\n")
    encoding = read_data(tmp_path / "a.csv", "y").encoding
    for read in (
        lambda p: list(open_source(p, label="y", encoding=encoding).blocks()),
        lambda p: read_table(p, encoding=encoding),
    ):
        with pytest.raises(ValueError, match=r"b\.csv, line 402: column 'v', row 401: got 'oops', expected a number"):
            read(tmp_path / "b.csv")


def test_a_test_table_may_have_other_columns_and_order(tmp_path):
    data = frame()
    X, _, encoding = read_table(data, "label")
    other = data[["code", "label", "flag", "farbe", "größe", "count"]].assign(when=date(2020, 1, 1), junk="x")
    for name in ("x.csv", "x.parquet", "x.arrow"):
        WRITERS[name](other, tmp_path / name)
        again, y, _ = read_table(tmp_path / name, "label", encoding=encoding)
        np.testing.assert_array_equal(dense(again), dense(X))
        np.testing.assert_array_equal(y, data["label"])


def test_unseen_categories_warn_once_with_counts():
    train = pd.DataFrame({"a": ["x", "y", "z"], "b": ["u", "v", "u"], "n": [1, 2, 3], "y": [0, 1, 0]})
    test = pd.DataFrame({"a": ["x", "new", None, "z"], "b": ["u", "u", "w", "v"], "n": [1, 2, 3, 4]})
    _, _, encoding = read_table(train, "y", impute="mean")
    with pytest.warns(UserWarning, match="unseen categories: a 2 of 4 rows, b 1 of 4 rows; they count") as caught:
        X, _, _ = read_table(test, encoding=encoding)
    assert len(caught) == 1
    assert X.tolist() == [[1, 0, 0, 1, 0, 1], [0, 0, 0, 1, 0, 2], [0, 0, 0, 0, 0, 3], [0, 0, 1, 0, 1, 4]]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read_table(train, encoding=encoding)


LABELS = [
    ([3, 1, 2], np.int64),
    (np.array([1, 0, 1], dtype=np.uint8), np.int64),
    ([True, False, True], np.bool_),
    ([0.5, 1.5, 0.5], np.float64),
    (np.array([0.5, 1.5, 0.5], dtype=np.float32), np.float64),
    (["yes", "no", "vielleicht ä"], np.dtype("U12")),
    (pd.Categorical(["b", "a", "b"]), np.dtype("U1")),
    ([Decimal("1.5"), Decimal("2"), Decimal("1.5")], np.float64),
]


def test_labels_of_each_type(tmp_path):
    for values, dtype in LABELS:
        data = pd.DataFrame({"v": [1, 2, 3], "y": values})
        expected = np.array(list(values), dtype=dtype)
        data.to_parquet(tmp_path / "x.parquet")
        data.to_csv(tmp_path / "x.csv", index=False)
        for source in (data, tmp_path / "x.parquet", tmp_path / "x.csv"):
            with case((values, source)):
                _, y, encoding = read_table(source, "y")
                assert y.dtype == dtype
                np.testing.assert_array_equal(y, expected)
                assert encoding.labels == sorted(set(expected.tolist()))


def test_missing_markers_are_kept_for_later_tables(tmp_path):
    text = "age,city,y\n31,A,0\n?,B,1\n45,?,1\n"
    (tmp_path / "a.csv").write_text(text)
    X, _, encoding = read_table(tmp_path / "a.csv", "y", missing=["?"], impute="mean")
    assert encoding.names == ["age", "age is missing", "city=A", "city=B", "city=?"]
    assert X.tolist() == [[31, 0, 1, 0, 0], [38, 1, 0, 1, 0], [45, 0, 0, 0, 1]]
    again = Encoding.from_json(encoding.to_json())
    assert read_table(tmp_path / "a.csv", encoding=again)[0].tolist() == X.tolist()
    texts = pd.read_csv(tmp_path / "a.csv", dtype=str, keep_default_na=False)
    assert read_table(texts, encoding=again)[0].tolist() == X.tolist()
    assert read_table(texts.astype({"city": "category"}), encoding=again)[0].tolist() == X.tolist()


def test_usual_markers_of_csv(tmp_path):
    (tmp_path / "a.csv").write_text("v,c,y\n1,a,0\nNA,,1\nnull,b,1\n,N/A,0\n3,a,0\n")
    X, _, encoding = read_table(tmp_path / "a.csv", "y", impute="zero")
    assert encoding.names == ["v", "v is missing", "c=a", "c=b", "c=?"]
    assert X[:, 0].tolist() == [1, 0, 0, 0, 3]
    assert X[:, 1].tolist() == [0, 1, 1, 1, 0]
    assert X[:, 4].tolist() == [0, 1, 0, 1, 0]


def test_numbers_as_categories_are_the_same_in_every_format(tmp_path):
    (tmp_path / "i.csv").write_text("k,y\n3,0\n10,1\n-2,0\n")
    (tmp_path / "f.csv").write_text("k,y\n3.0,0\n10.00,1\n-2.0,0\n")
    sources = [tmp_path / "i.csv", tmp_path / "f.csv"]
    sources += [pd.DataFrame({"k": np.array([3, 10, -2], dtype=t), "y": [0, 1, 0]}) for t in ("i8", "i4", "f8", "f4")]
    sources += [pd.DataFrame({"k": [Decimal(3), Decimal("10.0"), Decimal(-2)], "y": [0, 1, 0]})]
    for source in sources:
        X, _, encoding = read_table(source, "y", categories=["k"])
        assert encoding.names == ["k=-2", "k=3", "k=10"]
        for other in sources:
            np.testing.assert_array_equal(read_table(other, encoding=encoding)[0], X)


DICTIONARIES = {
    "integers": [3, 1, 3, 10],
    "floats": [0.5, 2.0, 0.5, 1.0],
    "truth values": [True, False, True, True],
    "dates": [date(2024, 1, k) for k in (1, 2, 1, 3)],
    "texts": ["b", "a", "b", "c"],
    "missing values": [3, None, 3, 10],
}


def test_a_dictionary_is_a_category_from_memory_and_from_every_file(tmp_path):
    paths = [tmp_path / name for name in ("x.parquet", "x.feather", "pandas.parquet")]
    for name, values in DICTIONARIES.items():
        table = pa.table({"v": pa.array(values).dictionary_encode(), "n": pa.array([1, 2, 3, 4]), "y": [0, 1, 0, 1]})
        pq.write_table(table, paths[0])
        pyarrow.feather.write_feather(table, paths[1])
        table.to_pandas().to_parquet(paths[2])
        with case(name):
            expected, _, encoding = read_table(table, "y", impute="mean")
            assert [column.kind for column in encoding.columns] == ["category", "number"]
            for source in (*paths, table.to_pandas()):
                X, _, found = read_table(source, "y", impute="mean")
                assert found == encoding
                np.testing.assert_array_equal(X, expected)


def test_a_parquet_file_without_types_of_arrow_has_numbers(tmp_path):
    table = pa.table({"v": pa.array([3, 1]).dictionary_encode(), "y": [0, 1]})
    pq.write_table(table, tmp_path / "x.parquet", store_schema=False)
    assert read_table(tmp_path / "x.parquet", "y")[2].names == ["v"]
    assert read_table(tmp_path / "x.parquet", "y", categories=["v"])[2].names == ["v=1", "v=3"]


def test_codes_with_leading_zeros_stay_text(tmp_path):
    (tmp_path / "a.csv").write_text("zip,y\n01234,0\n98101,1\n1234,1\n")
    (tmp_path / "b.csv").write_text("zip\n98101\n1234\n")
    _, _, encoding = read_table(tmp_path / "a.csv", "y", categories=["zip"])
    assert encoding.names == ["zip=01234", "zip=1234", "zip=98101"]
    assert read_table(tmp_path / "b.csv", encoding=encoding)[0].tolist() == [[0, 0, 1], [0, 1, 0]]


def test_long_integers_stay_distinct(tmp_path):
    (tmp_path / "a.csv").write_text("k,y\n9007199254740993,9007199254740993\n9007199254740992,9007199254740992\n")
    _, y, encoding = read_table(tmp_path / "a.csv", "y", categories=["k"])
    assert encoding.names == ["k=9007199254740992", "k=9007199254740993"]
    assert y.tolist() == [9007199254740993, 9007199254740992]


def test_dates_can_be_categories():
    data = pd.DataFrame({"d": [date(2020, 1, 2), date(2020, 1, 1)], "y": [0, 1]})
    assert read_table(data, "y", categories=["d"])[2].names == ["d=2020-01-01", "d=2020-01-02"]


@pytest.mark.skipif(not hasattr(pa, "decimal32"), reason="this pyarrow has no short decimals")
def test_short_decimals_can_be_categories():
    table = pa.table({"v": pa.array([Decimal("0.5"), Decimal("2")], pa.decimal32(5, 2)), "y": [0, 1]})
    assert read_table(table, "y", categories=["v"])[2].names == ["v=0.5", "v=2"]


def test_a_dropped_column_is_not_looked_at(tmp_path):
    data = frame().assign(when=date(2020, 1, 1), lists=[[1]] * 500)
    data.to_parquet(tmp_path / "x.parquet")
    X, _, encoding = read_table(tmp_path / "x.parquet", "label", drop=["when", "lists"])
    np.testing.assert_array_equal(dense(X), reference(frame())[0])
    assert "when" not in [c.name for c in encoding.columns]


def test_names_with_dots_in_parquet(tmp_path):
    data = pd.DataFrame({"a.b": [1.0, 2], "a": ["x", "y"], "y": [0, 1]})
    data.to_parquet(tmp_path / "x.parquet")
    assert read_table(tmp_path / "x.parquet", "y")[2].names == ["a.b", "a=x", "a=y"]


def test_a_csr_matrix_grows_where_later_rows_hold_more(monkeypatch):
    monkeypatch.setattr(tables, "MAX_BATCH_ROWS", 50)
    codes, values = np.arange(400) % 40, np.where(np.arange(400) < 200, 0.0, 1.5)
    table = pa.table({"c": [f"c{k:02d}" for k in codes], "v": values, "w": values, "y": codes % 2})
    X, _, _ = read_table(table, "y")
    assert X.has_canonical_format
    assert X.nnz == len(X.data) == len(X.indices) == 800
    np.testing.assert_array_equal(X.toarray(), np.column_stack([np.eye(40)[codes], values, values]))


@pytest.mark.slow
def test_a_parquet_stream_takes_little_memory(tmp_path):
    rng = np.random.default_rng(0)
    with pq.ParquetWriter(
        tmp_path / "x.parquet", pa.schema([*((f"f{k}", pa.float64()) for k in range(10)), ("y", "int64")])
    ) as w:
        for _ in range(20):
            columns = [pa.array(rng.normal(size=20_000)) for _ in range(10)]
            w.write_table(pa.table([*columns, pa.array(rng.integers(0, 2, 20_000))], schema=w.schema))
    encoding = read_data(tmp_path / "x.parquet", "y").encoding
    arrow_before, arrow_most = pa.total_allocated_bytes(), 0
    tracemalloc.start()
    rows = 0
    for X, _ in open_source(tmp_path / "x.parquet", label="y", encoding=encoding).blocks():
        rows += len(X)
        arrow_most = max(arrow_most, pa.total_allocated_bytes() - arrow_before)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert rows == 400_000  # 32 MB of features
    # a block is 65,536 rows of 11 columns, 5.8 MB: one in Arrow (and what is being decoded), two in NumPy
    assert arrow_most < 20e6
    assert most < 16e6


texts = st.text(st.characters(codec="utf-8", exclude_characters="\r\0"), min_size=1, max_size=8)


@examples(60)
@given(
    st.lists(
        st.tuples(st.floats(allow_nan=False, allow_infinity=False), texts.map("c".__add__), st.booleans()),
        min_size=1,
        max_size=20,
    )
)
def test_round_trips(tmp_path_factory, rows):
    data = pd.DataFrame(rows, columns=["v", "c", "y"])
    results, tmp_path = [], tmp_path_factory.mktemp("trip")
    for name in ("x.csv", "x.parquet", "x.arrow"):
        WRITERS[name](data, tmp_path / name)
        results.append(read_table(tmp_path / name, "y"))
    results.append(read_table(pl.from_pandas(data), "y"))
    known = sorted({c for _, c, _ in rows})
    expected = np.array([[v, *(c == text for text in known)] for v, c, _ in rows])
    for X, y, encoding in results:
        np.testing.assert_array_equal(dense(X), expected)
        assert encoding.names == ["v", *(f"c={text}" for text in known)]
        assert y.tolist() == [label for _, _, label in rows]


def saved(name, content):
    def make(folder):
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
        return folder / name

    return make


def columns(**data):
    return lambda _: pa.table(data)


SMALL = columns(v=[1.0, 2.0], c=["a", "b"], y=[0, 1])
MIXED = "v,y\n" + "".join(f"{k},1\n" for k in range(30))
# (source, arguments, what the message says)
BAD = {
    "packed parquet": (saved("x.parquet.gz", "a"), {}, r"is not a readable file"),
    "empty csv": (saved("x.csv", ""), {}, r"x\.csv is empty, expected a line with the names"),
    "blank lines": (saved("x.csv", "\n\n"), {}, r"x\.csv is empty, expected a line with the names"),
    "header only": (saved("x.csv", "v,y\n"), {}, r"x\.csv: there are no rows"),
    "long line": (saved("x.csv", 'v,y\n1,0\n"a\nb",1\n1,2,3\n'), {}, r"x\.csv, line 5: got 3 values, expected 2"),
    "short line": (saved("x.csv", "v,y\n1,0\n\n1\n"), {}, r"x\.csv, line 4: got 1 values, expected 2"),
    "latin-1": (saved("x.csv", "v,y\nzo\xeb,0\n".encode("latin-1")), {}, r"x\.csv is not UTF-8 text.*save it as UTF-8"),
    "latin-1 header": (saved("x.csv", "\xeb,y\n1,0\n".encode("latin-1")), {}, r"x\.csv is not UTF-8"),
    "utf-16": (saved("x.csv", "v,y\n1,0\n".encode("utf-16")), {}, r"x\.csv is not UTF-8"),
    "damaged gz": (saved("x.csv.gz", "v,y\n1,0\n"), {}, r"x\.csv\.gz cannot be read as CSV .*damaged"),
    "cut gz": (saved("x.csv.gz", gzip.compress(MIXED.encode())[:40]), {}, r"x\.csv\.gz cannot be read as CSV"),
    "damaged xz": (saved("x.csv.xz", "v,y\n1,0\n"), {}, r"x\.csv\.xz cannot be read as CSV"),
    "damaged parquet": (saved("x.parquet", "PAR1"), {}, r"x\.parquet cannot be read as Parquet .*damaged"),
    "damaged arrow": (saved("x.arrow", "hello hello hello"), {}, r"x\.arrow cannot be read as Arrow"),
    "csv column twice": (saved("x.csv", "v,v,y\n1,2,0\n"), {}, r"x\.csv: column 'v' occurs more than once; rename"),
    "table column twice": (
        lambda _: pa.table([[1], [2], [0]], names=["v", "v", "y"]),
        {},
        r"column 'v' occurs more than",
    ),
    "frame column twice": (lambda _: pd.DataFrame([[1, 2, 0]], columns=["v", "v", "y"]), {}, r"'v' more than once"),
    "no columns": (lambda _: pd.DataFrame(index=[0, 1]), {}, r"has no columns"),
    "no features": (columns(y=[0, 1]), {}, r"no column is left for features: got columns 'y'"),
    "no rows": (columns(v=pa.array([], "int64"), y=pa.array([], "int64")), {}, r"no rows"),
    "wrong separator": (saved("x.csv", "v;y\n1;0\n"), {}, r"label='y' is unknown.*separator=';'"),
    "long separator": (
        saved("x.csv", "v,y\n1,0\n"),
        {"separator": "::"},
        r"separator='::' must be one ASCII character",
    ),
    "separator of a frame": (SMALL, {"separator": ","}, r"separator=',' is for CSV files"),
    "separator of parquet": (saved("x.parquet", ""), {"separator": ","}, r"separator=',' is for CSV files"),
    "no label": (SMALL, {"label": None}, r"label=None, expected the column of labels: one of 'v', 'c', 'y'"),
    "misspelt label": (columns(price=[1.0], label=[0]), {"label": "lable"}, r"label='lable' is unknown.*mean 'label'"),
    "label is a number": (SMALL, {"label": 2}, r"label=2 is unknown"),
    "unknown category": (SMALL, {"categories": ["d"]}, r"categories='d' is unknown; expected one of 'v', 'c', 'y'"),
    "unknown drop": (SMALL, {"drop": ["d"]}, r"drop='d' is unknown"),
    "string for a list": (SMALL, {"drop": "c"}, r"drop='c' must be a list of strings, like \['c'\]"),
    "missing as a string": (SMALL, {"missing": "?"}, r"missing='\?' must be a list of strings"),
    "numbers for names": (SMALL, {"categories": [1]}, r"categories holds 1, expected strings"),
    "label dropped": (SMALL, {"drop": ["y"]}, r"column 'y' is named more than once"),
    "category dropped": (SMALL, {"drop": ["c"], "categories": ["c"]}, r"column 'c' is named more than once"),
    "label a category": (SMALL, {"categories": ["y"]}, r"column 'y' is named more than once"),
    "impute": (SMALL, {"impute": "men"}, r"impute='men' is unknown.*'mean'"),
    "max_categories": (SMALL, {"max_categories": 0}, r"max_categories=0 must be an integer at least 1"),
    "encoding": (SMALL, {"encoding": {"columns": []}}, r"encoding is a dict, expected an Encoding"),
    "empty dict": (SMALL, {"encoding": {}}, r"encoding is a dict, expected an Encoding"),
    "null number": (
        columns(v=[1.0, None], y=[0, 1]),
        {"impute": None},
        r"the table: column 'v', row 2: the value is missing.*impute='m",
    ),
    "nan": (
        columns(v=[1.0, 2.0, float("nan")], y=[0, 1, 0]),
        {"impute": None},
        r"column 'v', row 3: the value is missing.*drop=\['v'\]",
    ),
    "null text": (columns(v=["a", None], y=[0, 1]), {"impute": None}, r"column 'v', row 2: the value is missing"),
    "null integer": (
        columns(v=pa.array([None, 1]), y=[0, 1]),
        {"impute": "none"},
        r"column 'v', row 1: the value is missing",
    ),
    "missing in csv": (
        saved("x.csv", 'v,w,y\n"a\nb",1,0\nc,,1\n'),
        {"impute": None},
        r"x\.csv, line 4: column 'w', row 2: the value is mis",
    ),
    "infinity": (
        columns(v=[1.0, float("-inf")], y=[0, 1]),
        {"impute": "mean"},
        r"column 'v', row 2: got -inf, expected a fin",
    ),
    "infinite category": (
        columns(v=[1, float("inf")], y=[0, 1]),
        {"categories": ["v"]},
        r"column 'v', row 2: got infinity",
    ),
    "too large": (saved("x.csv", "v,y\n1e400,0\n"), {}, r"line 2: column 'v', row 1: got inf"),
    "no mean": (
        columns(v=pa.array([None, None], "float64"), y=[0, 1]),
        {"impute": "mean"},
        r"no column is left for features: 'v' hold no values at all",
    ),
    "huge mean": (columns(v=[1e308, 1e308, None], y=[0, 1, 0]), {"impute": "mean"}, r"column 'v' has no mean: the sum"),
    "all null": (
        columns(v=pa.nulls(2), y=[0, 1]),
        {"impute": "mean"},
        r"no column is left for features: 'v' hold no values at all",
    ),
    "dates": (columns(v=[date(2020, 1, 1)], y=[0]), {}, r"column 'v' holds dates or times .*number or drop it"),
    "timestamps": (
        lambda _: pd.DataFrame({"v": pd.to_datetime(["2020"]), "y": [0]}),
        {},
        r"column 'v' holds dates or times",
    ),
    "dates in csv": (saved("x.csv", "v,y\n2020-01-01,0\n"), {}, r"x\.csv: column 'v' holds dates or times"),
    "intervals as categories": (
        columns(v=pa.array([(1, 2, 3)], pa.month_day_nano_interval()), y=[0]),
        {"categories": ["v"]},
        r"column 'v' holds dates or times",
    ),
    "durations": (columns(v=[timedelta(1)], y=[0]), {}, r"column 'v' holds dates or times .duration"),
    "lists": (
        columns(v=[[1], [2]], y=[0, 1]),
        {},
        r"column 'v' has type list.*, expected numbers, truth values or text; drop",
    ),
    "structs": (columns(v=[{"a": 1}], y=[0]), {"categories": ["v"]}, r"column 'v' has type struct"),
    "binary": (columns(v=[b"a"], y=[0]), {}, r"column 'v' has type binary"),
    "periods": (
        lambda _: pd.DataFrame({"v": pd.period_range("2020", periods=1), "y": [0]}),
        {},
        r"column 'v' has type ext",
    ),
    "sparse": (
        lambda _: pd.DataFrame({"v": pd.arrays.SparseArray([0, 1]), "y": [0, 1]}),
        {},
        r"column 'v' has dtype Sparse",
    ),
    "complex": (lambda _: pd.DataFrame({"v": [1j], "y": [0]}), {}, r"column 'v' has dtype complex128"),
    "mixed": (lambda _: pd.DataFrame({"v": [1, "x"], "y": [0, 1]}), {}, r"column 'v' mixes types or holds objects"),
    "mixed text": (lambda _: pd.DataFrame({"v": ["x", 1.5], "y": [0, 1]}), {}, r"column 'v' mixes types"),
    "polars objects": (lambda _: pl.DataFrame({"v": [object()], "y": [0]}), {}, r"'?v'?|object"),
    "lazy frame": (lambda _: pl.LazyFrame({"v": [1], "y": [0]}), {}, r"source is a LazyFrame.*collect\(\) first"),
    "series": (lambda _: pd.Series([1]), {}, r"source is a Series, expected a path"),
    "array": (lambda _: np.eye(2), {}, r"source is a ndarray, expected a path, a pandas or polars frame"),
    "missing label": (columns(v=[1, 2], y=["a", None]), {}, r"column 'y', row 2: the label is missing"),
    "nan label": (columns(v=[1, 2], y=[float("nan"), 1]), {}, r"column 'y', row 1: the label is missing"),
    "infinite label": (columns(v=[1, 2], y=[1.0, float("inf")]), {}, r"column 'y', row 2: the label is infinite"),
    "date label": (columns(v=[1], y=[date(2020, 1, 1)]), {}, r"column 'y' has type date32"),
    "long label": (columns(v=[1], y=pa.array([2**63], "uint64")), {}, r"column 'y': a label does not fit"),
    "many labels": (
        columns(v=[1, 2, 3], y=[0.1, 0.2, 0.3]),
        {"max_categories": 2},
        r"column 'y' holds more than 2 distinct lab",
    ),
    "many categories": (
        columns(v=["a", "b", "c"], y=[0, 1, 0]),
        {"max_categories": 2},
        r"column 'v' holds more than max_categories=2 distinct values \(3 in the first 3 rows\); pass drop=\['v'\]",
    ),
    "slip": (
        saved("x.csv", MIXED + "n.a.,0\n"),
        {},
        r"line 32: column 'v', row 31: got 'n\.a\.'.*missing=\['n\.a\.'\].*categories=\['v'\]",
    ),
    "slip in a frame": (
        columns(v=[*map(str, range(20)), "?"], y=[0] * 21),
        {},
        r"column 'v', row 21: got '\?' in a column of",
    ),
    "numbers as text": (
        columns(v=["1", "2"], y=[0, 1]),
        {},
        r"column 'v' is text, but all its values are numbers, like '1'",
    ),
    "same feature": (columns(v=["a"], **{"v=a": [1]}, y=[0]), {}, r"feature 'v=a' occurs more than once"),
}


def test_bad_tables(tmp_path):
    for number, (name, (source, arguments, message)) in enumerate(BAD.items()):
        folder = tmp_path / str(number)
        folder.mkdir()
        with case(name), pytest.raises(ValueError, match=f"(?s){message}"):
            read_table(source(folder), **{"label": "y", **arguments})


def test_files_that_are_no_tables(tmp_path):
    (tmp_path / "folder").mkdir()
    for name in ("x.xlsx", "x", "folder"):
        if name != "folder":
            (tmp_path / name).write_text("a")
        with pytest.raises(ValueError, match=rf"{name} is not a readable file; .* ends in '\.csv'.*'\.parquet'"):
            tables.open_table(tmp_path / name)


LEARNT = {"v": [1.0, 2.0], "c": ["a", "b"], "y": [0, 1]}
BAD_LATER = {
    "columns": ({"w": [1]}, {}, r"column\(s\) 'v', 'c' are not there.*got the columns 'w'"),
    "text": ({"v": ["3", "x"], "c": ["a", "a"]}, {}, r"column 'v', row 2: got 'x', expected a number"),
    "empty text": ({"v": [""], "c": ["a"]}, {}, r"column 'v', row 1: got ''"),
    "date": ({"v": [date(2020, 1, 1)], "c": ["a"]}, {}, r"column 'v', row 1: got date32.*expected numbers"),
    "list": ({"v": [[1]], "c": ["a"]}, {}, r"column 'v' has type list"),
    "list of categories": ({"v": [1], "c": [["a"]]}, {}, r"column 'c' has type list"),
    "infinite": ({"v": [np.inf], "c": ["a"]}, {}, r"column 'v', row 1: got inf"),
    "label": ({"v": [1], "c": ["a"]}, {"label": "y"}, r"label='y' is unknown"),
    "label is a feature": ({"v": [1], "c": ["a"]}, {"label": "v"}, r"label='v' is a feature"),
    "drop": (
        {"v": [1], "c": ["a"]},
        {"drop": ["v"]},
        r"categories, drop, impute, indicators and min_category_rows are ",
    ),
    "impute": ({"v": [1], "c": ["a"]}, {"impute": "zero"}, r"part of encoding"),
    "indicators": ({"v": [1], "c": ["a"]}, {"indicators": False}, r"part of encoding"),
    "min_category_rows": ({"v": [1], "c": ["a"]}, {"min_category_rows": 2}, r"part of encoding"),
    "no rows": ({"v": pa.array([], "int64"), "c": pa.array([], "string")}, {}, r"no rows"),
}


def test_bad_later_tables():
    _, _, encoding = read_table(pa.table(LEARNT), "y")
    for name, (data, arguments, message) in BAD_LATER.items():
        with case(name), pytest.raises(ValueError, match=f"(?s){message}"):
            read_table(pa.table(data), encoding=encoding, **arguments)


def test_a_later_table_without_a_value_that_training_always_had():
    later = pa.table({"v": [None, 1.0], "c": ["a", "a"]})
    _, _, strict = read_table(pa.table(LEARNT), "y", impute=None)
    with pytest.raises(ValueError, match="column 'v', row 1: the value is missing"):
        read_table(later, encoding=strict)
    _, _, encoding = read_table(pa.table(LEARNT), "y")
    with pytest.warns(
        UserWarning, match="missing values in columns without an indicator feature: v 1 of 2 rows; filled"
    ):
        X, _, _ = read_table(later, encoding=encoding)
    assert X.tolist() == [[1.5, 1, 0], [1, 1, 0]]


def test_a_file_name_that_is_not_unicode_is_named(tmp_path):
    for suffix in (".csv", ".csv.xz", ".parquet", ".feather"):
        path = tmp_path / os.fsdecode(b"f\xfcnf" + suffix.encode())
        try:
            path.write_text("v,y\n1,0\n2,1\n")
        except OSError:
            pytest.skip("this file system has no such names")
        with case(suffix), pytest.raises(ValueError, match=r"f\udcfcnf.*not valid Unicode.*rename the file"):
            read_table(path, "y")


def test_a_marker_that_is_not_unicode_is_named():
    with pytest.raises(ValueError, match=r"missing holds '\\udcfc', which is not valid Unicode"):
        read_table(pa.table({"v": [1.0, 2.0], "y": [0, 1]}), "y", missing=["\udcfc"])


def test_a_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nowhere\.csv does not exist"):
        read_table(tmp_path / "nowhere.csv", "y")


def test_a_quote_that_is_not_closed(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "CSV_BLOCK_BYTES", 100)
    (tmp_path / "x.csv").write_text('v,y\n"a,1\n' + "b,1\n" * 100)
    with pytest.raises(ValueError, match=r"x\.csv: a value is longer than 100 bytes; a double quote"):
        read_table(tmp_path / "x.csv", "y")


def test_without_pyarrow(monkeypatch, tmp_path):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    monkeypatch.setitem(__import__("sys").modules, "pyarrow.csv", None)
    (tmp_path / "x.csv").write_text("v,y\n1,0\n")
    for source in (tmp_path / "x.csv", pd.DataFrame({"v": [1], "y": [0]})):
        with pytest.raises(ImportError, match=r"pip install 'scoreline\[io\]'"):
            read_table(source, "y")


class CountedName(str):
    """A name of a column that counts how often it is compared or hashed."""

    work = 0

    def __eq__(self, other):
        CountedName.work += 1
        return str.__eq__(self, other)

    def __hash__(self):
        CountedName.work += 1
        return str.__hash__(self)


class CountedBatch:
    """A batch of rows whose schema counts the names that it hands out."""

    def __init__(self, batch):
        self.batch, self.num_rows, self.schema = batch, batch.num_rows, self
        self.types, self.field, self.column = batch.schema.types, batch.schema.field, batch.column

    @property
    def names(self):
        CountedName.work += self.batch.num_columns
        return [CountedName(name) for name in self.batch.schema.names]


class CountedTable(tables.MemoryTable):
    """A table in memory that counts the names that are read from it."""

    def __init__(self, table, *given):
        super().__init__(table, *given)
        self.columns = [CountedName(name) for name in self.columns]
        self._known = frozenset(self.columns)

    def _read(self, columns, exact, text):
        yield from map(CountedBatch, super()._read([str(name) for name in columns], exact, text))


def test_reading_takes_work_linear_in_the_number_of_columns(monkeypatch):
    def work(width, role, known):
        names = [f"c{k}" for k in range(width)]
        table = pa.table({"kept": [1.0, 2.0], **{name: [0.0, 1.0] for name in names}, "y": [0, 1]})
        options = {} if role == "numbers" else {role: [CountedName(name) for name in names]}
        if known:
            options = {"encoding": read_table(table, "y", **options)[2]}
        CountedName.work = 0
        with monkeypatch.context() as patch:
            patch.setattr("scoreline.io.tables.MemoryTable", CountedTable)
            read_table(table, CountedName("y"), **options)
        return CountedName.work

    for role, known in tiered(product(["numbers", "categories", "drop"], [False, True]), strength=1):
        narrow, wide = work(100, role, known), work(400, role, known)
        assert 100 < narrow < wide < 5 * narrow, (role, known)


def test_a_reader_of_xz_text_that_stops_early_leaves_no_thread_reading(tmp_path, monkeypatch):
    """Arrow's threads read .xz text through Python, and one that is still at it when Python exits aborts the process."""
    path = tmp_path / "rows.csv.xz"
    with lzma.open(path, "wt") as file:
        file.write("a,y\n" + "0.25,1\n0.5,0\n" * 5000)
    opened, real_open = [], lzma.open

    def slow_open(*given):
        file = real_open(*given)
        read = file.read
        file.read = lambda size=-1: (time.sleep(0.02), read(min(size, 1000)))[1]
        opened.append(file)
        return file

    monkeypatch.setattr(tables.lzma, "open", slow_open)
    monkeypatch.setattr(tables, "CSV_BLOCK_BYTES", 4000)
    table = tables.CsvTable(path, ",", [])
    assert all(file.closed for file in opened)
    batches = table.batches(["a", "y"])
    next(batches)
    batches.close()
    assert len(opened) == 3
    assert all(file.closed for file in opened)


def test_an_xz_file_that_cannot_be_parsed_is_closed(tmp_path):
    path = tmp_path / "rows.csv.xz"
    with lzma.open(path, "wt") as file:
        file.write("a,y\n1,2\n1,2,3\n")
    with pytest.raises(ValueError, match="line 3: got 3 values, expected 2"):
        tables.CsvTable(path, ",", []).loaded(["a", "y"], ())


def test_a_damaged_xz_file_is_refused_without_waiting(tmp_path, monkeypatch):
    """The error keeps the file object alive, and nothing else reads it: waiting for its end would be in vain."""
    monkeypatch.setattr("scoreline.io.tables.MAX_RELEASE_SECONDS", 1e6)
    content = lzma.compress(b"a,b,y\n" + b"1,2,0\n3,4,1\n" * 5000)
    (tmp_path / "cut.csv.xz").write_bytes(content[: len(content) // 2])
    with pytest.raises(ValueError, match=r"cut\.csv\.xz"):
        read_data(tmp_path / "cut.csv.xz", "y")
