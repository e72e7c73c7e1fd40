"""Reading LIBSVM text: exact decimals, the same matrix as scikit-learn, every kind of line, and errors that say where."""

import bz2
import gzip
import lzma
import random
import struct
from decimal import Decimal

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from scoreline import MeasureClassifier, kernels
from scoreline.data import libsvm, read_libsvm

COMPRESSORS = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress, "": lambda text: text}


def written(folder, text, suffix=""):
    path = folder / f"file.svm{suffix}"
    path.write_bytes(COMPRESSORS[suffix](text.encode() if isinstance(text, str) else text))
    return path


def decimal(text):
    """Return (value, bytes read, state) of the kernel."""
    data, bits = np.frombuffer(text.encode(), dtype=np.uint8), np.empty(1, dtype=np.uint64)
    return kernels.decimals.decimal(data, 0, len(data), kernels.decimals.FIVE_POWERS, bits)


def numerals(count, seed):
    """Yield decimal numbers of all sizes: short, long, halfway between two floats, subnormal, out of range."""
    rng = random.Random(seed)
    for k in range(count):
        kind = k % 8
        if kind == 0:
            value = struct.unpack("<d", struct.pack("<Q", rng.getrandbits(64)))[0]
            yield repr(value) if np.isfinite(value) else "1e999"
        elif kind == 1:
            yield f"{rng.uniform(-1, 1):.17g}"
        elif kind == 2:
            yield f"{rng.getrandbits(64)}e{rng.randrange(-345, 312)}"
        elif kind == 3:
            yield f"{rng.uniform(0, 1e5):.{rng.randrange(0, 25)}f}"
        elif kind == 4:
            yield f"-{2 * rng.getrandbits(53) + 1}e{rng.randrange(-5, 5)}"
        elif kind == 5:
            yield f"{rng.getrandbits(70)}E+{rng.randrange(0, 250)}"
        elif kind == 6:
            low = rng.uniform(1e-3, 1e6)
            yield str((Decimal(low) + Decimal(float(np.nextafter(low, np.inf)))) / 2)
        else:
            yield f"{rng.randrange(1, 10 ** rng.randrange(1, 19))}e-{rng.randrange(300, 345)}"


def test_decimals_are_the_nearest_floats_or_known_to_be_unsure():
    unsure = 0
    for text in numerals(40_000, seed=0):
        value, end, state = decimal(text)
        assert end == len(text)
        assert state != kernels.decimals.NOT_A_NUMBER
        if state == kernels.decimals.UNSURE:
            unsure += 1
            continue
        expected = float(text)
        assert struct.pack("<d", value) == struct.pack("<d", expected), text
    assert 5000 <= unsure < 5200  # the 5000 halfway cases, which have more than 19 digits, and hardly any other


def test_short_decimals_are_the_nearest_floats():
    rng = random.Random(2)
    for _ in range(20_000):
        whole = rng.random() < 0.3
        number = rng.randrange(10 ** rng.randrange(1, 17)) if whole else rng.uniform(0, 10 ** rng.randrange(-3, 8))
        text = ("-" if rng.random() < 0.3 else "") + (str(number) if whole else f"{number:.{rng.randrange(0, 12)}f}")
        data = np.frombuffer(text.encode(), dtype=np.uint8)
        value, end, fine = kernels.decimals.short_decimal(data, 0, len(data))
        assert fine == (sum(c.isdigit() for c in text) < 16)
        if fine:
            assert end == len(text)
            assert struct.pack("<d", value) == struct.pack("<d", float(text)), text


@pytest.mark.parametrize(
    ("text", "read"),
    [("", 0), ("-", 1), (".", 1), ("e5", 0), ("1e", 2), ("1e+", 3), ("abc", 0), ("+-1", 1), ("--1", 1), ("\n", 0)],
)
def test_what_is_no_number_is_said_to_be_none(text, read):
    _, end, state = decimal(text)
    assert state == kernels.decimals.NOT_A_NUMBER
    assert end == read


@pytest.mark.parametrize(
    ("text", "value"), [("0", 0.0), ("-0", -0.0), (".5", 0.5), ("5.", 5.0), ("00012", 12.0), ("1e3x", 1e3)]
)
def test_unusual_spellings(text, value):
    found = decimal(text)[0]
    assert struct.pack("<d", found) == struct.pack("<d", value)


ROWS = st.lists(
    st.tuples(
        st.sampled_from([-1.0, 1.0, 0.0, 2.5]),
        st.dictionaries(st.integers(0, 50), st.floats(allow_nan=False, allow_infinity=False), max_size=6),
    ),
    min_size=1,
    max_size=12,
)


@settings(max_examples=60, deadline=None)
@given(
    rows=ROWS,
    base=st.sampled_from([0, 1]),
    separator=st.sampled_from([" ", "\t", "  "]),
    ending=st.sampled_from(["\n", "\r\n"]),
)
def test_what_is_written_is_read(tmp_path_factory, rows, base, separator, ending):
    lines = [
        separator.join([repr(label), *(f"{i + base}:{v!r}" for i, v in sorted(row.items()))]) for label, row in rows
    ]
    path = written(tmp_path_factory.mktemp("trip"), ending.join(lines))
    X, y = read_libsvm(path, zero_based=base == 0, n_features=60)
    assert y.tolist() == [label for label, _ in rows]
    assert X.shape == (len(rows), 60)
    for k, (_, row) in enumerate(rows):
        part = slice(X.indptr[k], X.indptr[k + 1])
        assert X.indices[part].tolist() == sorted(row)
        assert X.data[part].tolist() == [v for _, v in sorted(row.items())]


@pytest.mark.parametrize("chunk", [40, 1000, 1 << 20])
@pytest.mark.parametrize("suffix", COMPRESSORS)
@pytest.mark.parametrize("base", [0, 1])
def test_it_is_the_matrix_that_scikit_learn_reads(tmp_path, monkeypatch, suffix, base, chunk):
    monkeypatch.setattr(libsvm, "CHUNK", chunk)
    monkeypatch.setattr(libsvm, "PIECE", 7000)
    rng = np.random.default_rng(0)
    matrix = sp.random_array((300, 40), density=0.2, format="csr", random_state=1, data_sampler=rng.standard_normal)
    plain = tmp_path / "plain.svm"
    dump_svmlight_file(matrix, rng.choice([-1, 1], 300), str(plain), zero_based=base == 0)
    expected, labels = load_svmlight_file(str(plain), zero_based="auto")
    X, y = read_libsvm(written(tmp_path, plain.read_bytes(), suffix))
    assert X.shape == expected.shape
    assert np.array_equal(X.indptr, expected.indptr)
    assert np.array_equal(X.indices, expected.indices)
    assert X.data.tobytes() == expected.data.tobytes()
    assert np.array_equal(y, labels)


def test_comments_empty_lines_empty_rows_qids_and_a_missing_last_line_end(tmp_path, caplog):
    text = "# head\n\n+1 qid:7 1:0.5 # tail 9:9\n   \n-1\n1 3:2#c\n\t-1 2:1e-3"
    with caplog.at_level("INFO", "scoreline"):
        X, y = read_libsvm(written(tmp_path, text))
    assert X.toarray().tolist() == [[0.5, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 2.0], [0.0, 0.001, 0.0]]
    assert y.tolist() == [1.0, -1.0, 1.0, -1.0]
    assert len(X.data) == len(X.indices) == X.indptr[-1] == 3  # a qid takes no room
    assert "1 qid:... were skipped" in caplog.text


def test_indices_beyond_32_bits_are_kept(tmp_path):
    X, _ = read_libsvm(written(tmp_path, "1 1:1 5000000000:2\n-1 3:1\n"))
    assert X.shape == (2, 5_000_000_000)
    assert X.indices.tolist() == [0, 4_999_999_999, 2]
    assert read_libsvm(written(tmp_path, "1 2147483647:2\n"))[0].indices.dtype == np.int32


MALFORMED = {
    "label": ("x 1:2", 1, "'x'", "a label"), "no label": ("1:2 3:4", 1, "'1:2'", "a label"),
    "two labels": ("1,2 3:4", 1, "'1,2'", "a label"), "no colon": ("1 2 3:4", 3, "'2'", "index:value"),
    "no index": ("1 :3", 3, "':3'", "index:value"), "word": ("1 a:4", 3, "'a:4'", "index:value"),
    "negative index": ("1 -2:3", 3, "'-2:3'", "index:value"), "fraction": ("1 2.5:3", 3, "'2.5:3'", "index:value"),
    "no value": ("1 2:", 5, "the end of the line", "a finite number"), "space": ("1 2: 3", 5, "'3'", "a finite number"),
    "nan": ("1 2:nan", 5, "'nan'", "a finite number"), "overflow": ("1 2:1e400", 5, "'1e400'", "a finite number"),
    "two colons": ("1 2:3:4", 5, "'3:4'", "a finite number"), "trailing": ("1 2:3x", 5, "'3x'", "a finite number"),
    "half exponent": ("1 2:3e 4:1", 5, "'3e'", "a finite number"), "comma": ("1 2:3,4:5", 5, "'3,4:5'", "a finite number"),
    "huge index": ("1 99999999999999999999:1", 3, "'99999999999999999999:1'", "an index below"),
    "bytes": ("\u00e9 1:1", 1, "'\u00e9'", "a label"),
}  # fmt: skip


@pytest.mark.parametrize("suffix", ["", ".gz"])
@pytest.mark.parametrize("before", [0, 1, 30])
@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_lines_are_named_with_file_line_column_and_what_was_expected(
    tmp_path, monkeypatch, name, before, suffix
):
    monkeypatch.setattr(libsvm, "CHUNK", 50)
    monkeypatch.setattr(libsvm, "PIECE", 64)
    line, column, got, expected = MALFORMED[name]
    path = written(tmp_path, "+1 1:0.25 7:1e-3\n" * before + line + "\n" + "-1 2:1\n" * 20, suffix)
    with pytest.raises(ValueError, match=f"line {before + 1}, column {column}: got .*expected {expected}") as caught:
        read_libsvm(path)
    assert str(path) in str(caught.value)
    assert got in str(caught.value)


def test_wrong_arguments_and_files(tmp_path):
    path = written(tmp_path, "1 0:1 4:2\n")
    with pytest.raises(ValueError, match=r"index 0.*zero_based=False"):
        read_libsvm(path, zero_based=False)
    with pytest.raises(ValueError, match=r"index 4, n_features=3 is too small"):
        read_libsvm(path, n_features=3)
    for options in ({"zero_based": "yes"}, {"n_features": 0}, {"n_features": 2.5}):
        with pytest.raises(ValueError, match=next(iter(options))):
            read_libsvm(path, **options)
    for text in ("", "\n\n# nothing\n"):
        with pytest.raises(ValueError, match="holds no rows"):
            read_libsvm(written(tmp_path, text))
    with pytest.raises(FileNotFoundError):
        read_libsvm(tmp_path / "missing.svm")
    for suffix in (".gz", ".bz2", ".xz"):
        whole = COMPRESSORS[suffix](b"1 1:1\n" * 1000)
        for wrong in (b"1 1:1\n", whole[: len(whole) // 2]):
            (tmp_path / f"wrong.svm{suffix}").write_bytes(wrong)
            with pytest.raises(ValueError, match="cannot be unpacked"):
                read_libsvm(tmp_path / f"wrong.svm{suffix}")


def test_the_result_trains(tmp_path):
    rng = np.random.default_rng(0)
    X = np.round(rng.standard_normal((200, 5)), 3)
    y = np.where(X[:, 0] + 0.5 * rng.standard_normal(200) > 0, 1, -1)
    path = tmp_path / "train.svm"
    dump_svmlight_file(X, y, str(path), zero_based=False)
    read, labels = read_libsvm(path)
    clf = MeasureClassifier("roc_auc").fit(read, labels)
    assert np.array_equal(clf.coef_, MeasureClassifier("roc_auc").fit(sp.csr_array(X), y).coef_)
