"""Reading LIBSVM text: exact decimals, the same matrix as scikit-learn, every kind of line, and errors that say where."""

import bz2
import gzip
import lzma
import random
import re
import struct
from decimal import Decimal
from itertools import pairwise, product

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from cases import case
from scoreline import MeasureClassifier
from scoreline.io import libsvm, libsvm_kernels, read_libsvm
from tiers import TIER, examples, tiered

COMPRESSORS = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress, "": lambda text: text}


def written(folder, text, suffix=""):
    path = folder / f"file.svm{suffix}"
    path.write_bytes(COMPRESSORS[suffix](text.encode() if isinstance(text, str) else text))
    return path


def decimal(text):
    """Return (value, bytes read, state) of the kernel."""
    data, bits = np.frombuffer(text.encode(), dtype=np.uint8), np.empty(1, dtype=np.uint64)
    return libsvm_kernels.decimal(data, 0, len(data), libsvm_kernels.FIVE_POWERS, bits)


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
    uncertain, count = 0, 4_000 if TIER == "quick" else 40_000
    for text in numerals(count, seed=0):
        value, end, state = decimal(text)
        assert end == len(text)
        assert state != libsvm_kernels.NOT_A_NUMBER
        if state == libsvm_kernels.INEXACT:
            uncertain += 1
            continue
        expected = float(text)
        assert struct.pack("<d", value) == struct.pack("<d", expected), text
    # The halfway cases, one in eight, have more than 19 digits; hardly any other number is unsure.
    assert 0.125 * count <= uncertain < 0.13 * count


def test_short_decimals_are_the_nearest_floats():
    rng = random.Random(2)
    for _ in range(4_000 if TIER == "quick" else 20_000):
        is_integer = rng.random() < 0.3
        number = rng.randrange(10 ** rng.randrange(1, 17)) if is_integer else rng.uniform(0, 10 ** rng.randrange(-3, 8))
        text = rng.choice(["", "-", "+"]) + (str(number) if is_integer else f"{number:.{rng.randrange(0, 12)}f}")
        data = np.frombuffer(text.encode(), dtype=np.uint8)
        value, end, fine = libsvm_kernels.short_decimal(data, 0, len(data))
        assert fine == (sum(c.isdigit() for c in text) < 16)
        if fine:
            assert end == len(text)
            assert struct.pack("<d", value) == struct.pack("<d", float(text)), text


def test_text_that_is_not_a_number_is_recognised():
    for text, read in {
        "": 0, "-": 1, ".": 1, "e5": 0, "1e": 2, "1e+": 3, "abc": 0, "+-1": 1, "--1": 1, "\n": 0,
    }.items():  # fmt: skip
        _, end, state = decimal(text)
        assert (end, state) == (read, libsvm_kernels.NOT_A_NUMBER), text


def test_unusual_spellings():
    for text, value in {"0": 0.0, "-0": -0.0, ".5": 0.5, "5.": 5.0, "00012": 12.0, "1e3x": 1e3}.items():
        assert struct.pack("<d", decimal(text)[0]) == struct.pack("<d", value), text


ROWS = st.lists(
    st.tuples(
        st.sampled_from([-1.0, 1.0, 0.0, 2.5]),
        st.dictionaries(st.integers(0, 50), st.floats(allow_nan=False, allow_infinity=False), max_size=6),
    ),
    min_size=1,
    max_size=12,
)


@examples(60)
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


@pytest.mark.parametrize("base", [0, 1])
def test_it_is_the_matrix_that_scikit_learn_reads(tmp_path, monkeypatch, base):
    monkeypatch.setattr(libsvm, "PIECE_BYTES", 7000)
    rng = np.random.default_rng(0)
    matrix = sp.random_array((300, 40), density=0.2, format="csr", random_state=1, data_sampler=rng.standard_normal)
    # SciPy before 1.15 makes them int64.
    matrix.indices, matrix.indptr = matrix.indices.astype(np.int32), matrix.indptr.astype(np.int32)
    plain = tmp_path / "plain.svm"
    dump_svmlight_file(matrix, rng.choice([-1, 1], 300), str(plain), zero_based=base == 0)
    expected, labels = load_svmlight_file(str(plain), zero_based="auto")
    for suffix, chunk in tiered(product(COMPRESSORS, [40, 1000, 1 << 20])):
        monkeypatch.setattr(libsvm, "CHUNK_BYTES", chunk)
        with case((suffix, chunk)):
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


def test_indices_of_many_digits(tmp_path):
    X, _ = read_libsvm(written(tmp_path, f"1 00000000000000000000000003:1 {2**60 - 1}:2\n"))
    assert X.shape == (1, 2**60 - 1)
    assert X.indices.tolist() == [2, 2**60 - 2]


def test_whole_numbers_of_all_lengths(tmp_path, monkeypatch):
    rng = random.Random(3)
    rows = [
        [
            (rng.randrange(10 ** rng.randrange(1, 9)), rng.randrange(-99, 10 ** rng.randrange(1, 9)))
            for _ in range(k % 7)
        ]
        for k in range(60)
    ]
    endings = ["\n", "\r\n", " \n", "# c q 1:1\n", "\n \n\r\n\n"]
    for separator, ending, chunk in tiered(product([" ", "\t", "  "], endings, [1, 30, 1 << 20])):
        monkeypatch.setattr(libsvm, "CHUNK_BYTES", chunk)
        lines = [separator.join(["+1", *(f"{i}:{v}" for i, v in row)]) for row in rows]
        for last in ("", ending):  # the last line ends, or the text does
            with case((separator, ending, chunk, last)):
                X, y = read_libsvm(written(tmp_path, ending.join(lines) + last), zero_based=True)
                assert y.tolist() == [1.0] * 60
                assert X.indptr.tolist() == [0, *np.cumsum([len(row) for row in rows])]
                pairs = list(zip(X.indices.tolist(), X.data.tolist(), strict=True))
                assert pairs == [pair for row in rows for pair in row]


NUMBER = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
LINE = re.compile(rf"[ \t\r]*({NUMBER})(?:[ \t\r]+qid:[0-9]+)?((?:[ \t\r]+[0-9]+:{NUMBER})*)[ \t\r]*(?:#.*)?")


def slowly_read(text):
    """Return (labels, entries of each row), or None if the text is malformed, by a regular expression."""
    labels, rows = [], []
    for line in text.split("\n"):
        if not line.split("#")[0].strip(" \t\r"):
            continue
        found = LINE.fullmatch(line)
        if not found:
            return None
        pairs = [word.split(":") for word in found[2].replace("\r", " ").split()]
        labels.append(float(found[1]))
        rows.append([(int(i), float(v)) for i, v in pairs])
        if not np.isfinite([labels[-1], *(v for _, v in rows[-1])]).all() or any(i >= 2**60 for i, _ in rows[-1]):
            return None
    return (labels, rows) if labels else None


def test_changed_texts_are_read_as_a_regular_expression_reads_them(tmp_path, monkeypatch):
    monkeypatch.setattr(libsvm, "CHUNK_BYTES", 40)
    rng, refused, number = random.Random(0), 0, 200 if TIER == "quick" else 1800
    for _ in range(number):
        text = (
            "+1 1:3 25:-12 117:255 1024:0.5\n-1 qid:3 2:1e-3 33:7\n# c 1:1\n\n1 4:123456 5:1 6:-0.125#c\n2 1:1 8:88\n"
        )
        for _ in range(rng.randrange(1, 5)):
            at = rng.randrange(len(text))
            text = text[:at] + rng.choice("0159:.-+e #q\n\t\r\v\0x,") + text[at + rng.randrange(2) :]
        text = text[: len(text) - rng.randrange(2)]
        path, expected = written(tmp_path, text), slowly_read(text)
        if expected is None:
            refused += 1
            with pytest.raises(ValueError, match=r"line \d, column \d+: got .*, expected"):
                read_libsvm(path)
        else:
            X, y = read_libsvm(path, zero_based=True)
            assert y.tolist() == expected[0], text
            found = list(zip(X.indices.tolist(), X.data.tolist(), strict=True))
            assert [found[b:e] for b, e in pairwise(X.indptr.tolist())] == expected[1], text
    assert 0.1 * number < refused < 0.9 * number


LABELS = (
    "x", "\u00e9", "\ufeff1", "\u22121", "\u0661", "nan", "NaN", "inf", "-inf", "+inf", "Infinity", "1e999", "-1e999",
    "1.7976931348623158079372897140531e308", "0x1", "1_0", "1,2", "1;", "1/2", "+", "-", "--1", "+-1", "1-", ".",
    "1.2.3", "1e", "1e+", "e5", "1x", "True", "None", "'1'", "1\x00", "\x00", "1\u00a01", "1:2", "qid:3", "%", "//",
    "<html>", '{"y":1}', "1,0.5,3", "a,b,c", "BZh91AY", "PK\x03\x04", "\x7fELF",
)  # fmt: skip
ENTRIES = (
    "2", "-1", "+1", "a:4", ":3", "-2:3", "+2:3", "-0:1", "2.5:3", "2.:3", "1e3:2", "0x1:2", "1_0:2", "1,5", "1=2",
    "1;2", "1-2", "nan:1", "qid:", "qid:x", "qid:1:2", "qid:-1", "qid", "Qid:1", "qid1:1", "q", "\u0662:1",
    "\u22122:1", "2\u003b:1", "2\x00:1", "\x00", "'2':1", "(2,1)", "[2]:1", "//", "%c", "2\uff1a1", "x2:1",
)  # fmt: skip
VALUES = (
    "nan", "NaN", "-nan", "inf", "-inf", "+inf", "Infinity", "1e400", "-1e400", "1e99999999999", "9e308", "1e309",
    "1.7976931348623158079372897140531e308", "3:4", ":4", "3x", "x", "3e", "3e+", "3e-", "3e1.5", "e5", "3,4:5",
    "3,5", "3;5", "1_0", "0x1F", "1d5", "1/2", "1%", "--1", "+-1", "-+1", "-", "+", ".", "-.", "1.2.3", "1..2", "1-",
    "1+1", "\u0663", "\u22121", "1\u00a0", "1\x00", "\x001", "true", "None", "NA", "?", "null", '"1"', "(1)", "1f",
    "1L", "1j", "1\\", "\ufb01",
)  # fmt: skip
WIDE = ("1152921504606846976", "9223372036854775808", "18446744073709551617", "99999999999999999999", "1" + 30 * "0")
MALFORMED = {
    **{f"{word!r} 1:2": (f"{word} 1:2", 1, repr(word), "a label") for word in LABELS},
    **{f"1 {word!r} 9:1": (f"1 {word} 9:1", 3, repr(word), "index:value") for word in ENTRIES},
    **{f"1 2:{word!r} 9:1": (f"1 2:{word} 9:1", 5, repr(word), "a finite number") for word in VALUES},
    **{f"1 3:1 {word}:1": (f"1 3:1 {word}:1", 7, f"'{word}:1'", "an index below") for word in WIDE},
    "no value": ("1 2:", 5, "the end of the line", "a finite number"), "space": ("1 2: 3", 5, "'3'", "a finite number"),
    "comment": ("1 2:# 3", 5, "'#'", "a finite number"), "space before": ("1 2 :3", 3, "'2'", "index:value"),
    "qid last": ("1 2:1 qid:3", 7, "'qid:3'", "index:value"),
    "two qids": ("1 qid:3 qid:3", 9, "'qid:3'", "index:value"),
    "two labels": ("1 -1 2:1", 3, "'-1'", "index:value"), "columns": ("1 0.5 0.25", 3, "'0.5'", "index:value"),
    "old ends of lines": ("1 2:1\r-1 2:1\r", 7, "'-1'", "index:value"),
    "form feed": ("1 2:1\f3:1", 5, "'1'", "a finite number"),
    "vertical tab": ("1\v2:1", 1, "'1'", "a label"), "last": ("1 2:1 3:1 4:1 5:1 6", 19, "'6'", "index:value"),
    "last value": ("1 2:1 3:1 4:1 5:1 6:a", 21, "'a'", "a finite number"),
    "short": ("1 2:1 3:1a", 9, "'1a'", "a finite number"),
}  # fmt: skip
PLACES = {  # lines before, what follows, and how it is packed
    "first": (0, "\n" + "-1 2:1\n" * 20, ""), "second": (1, "\r\n" + "-1 2:1\r\n" * 20, ".gz"),
    "middle": (30, "\n-1 2:1\n", ".xz"),
    "last": (30, "", ""), "alone": (0, "", ".bz2"),
}  # fmt: skip


def test_malformed_lines_are_named_with_file_line_and_column(tmp_path, monkeypatch):
    monkeypatch.setattr(libsvm, "CHUNK_BYTES", 50)
    monkeypatch.setattr(libsvm, "PIECE_BYTES", 64)
    for name, place in tiered(product(MALFORMED, PLACES), strength=1):
        (line, column, got, expected), (before, after, suffix) = MALFORMED[name], PLACES[place]
        path = written(tmp_path, "+1 1:0.25 7:1e-3\n" * before + line + after, suffix)
        message = f"line {before + 1}, column {column}: got .*expected {expected}"
        with case((name, place)):
            with pytest.raises(ValueError, match=message) as caught:
                read_libsvm(path)
            assert str(path) in str(caught.value)
            assert got in str(caught.value)


def damaged():
    """Yield (name, suffix, bytes, what the error says) of files that are damaged, or not what their names say."""
    text = b"".join(b"%d %d:%d.%d\n" % (k % 2, k % 7 + 1, k * 7919 % 1000, k) for k in range(3000))
    for suffix, other in ((".gz", ".bz2"), (".bz2", ".xz"), (".xz", ".gz")):
        packed = COMPRESSORS[suffix](text)
        for name, part in {"10": 10, "half": len(packed) // 2, "all but 9": -9, "all but 1": -1}.items():
            yield f"{name} of {suffix}", suffix, packed[:part], "cannot be unpacked"
        yield f"sum of {suffix}", suffix, packed[:-6] + bytes([packed[-6] ^ 85]) + packed[-5:], "cannot be unpacked"
        yield f"text as {suffix}", suffix, text, "cannot be unpacked"
        yield f"zeros as {suffix}", suffix, bytes(100), "cannot be unpacked"
        yield f"{other} as {suffix}", suffix, COMPRESSORS[other](text), "cannot be unpacked"
        yield f"{suffix} as text", "", packed, "line 1, column 1: got"
        yield f"{suffix} twice", suffix, COMPRESSORS[suffix](packed), "line 1, column 1: got"
        yield f"nothing in {suffix}", suffix, COMPRESSORS[suffix](b""), "holds no rows"
    for coding in ("utf-16", "utf-16-le", "utf-16-be", "utf-32"):
        yield coding, "", "1 1:2\n-1 2:1\n".encode(coding), "line 1, column 1: got"
    yield "zeros", "", bytes(1000), "line 1, column 1: got"
    yield "all bytes", "", bytes(range(256)), "line 1, column 1: got"
    yield "bytes above 127", "", bytes(range(128, 256)) * 9, "line 1, column 1: got"
    yield "arrays", "", b"\x93NUMPY" + np.arange(1.0, 9.0).tobytes(), "line 1, column 1: got"
    yield "table", "", b"label,a,b\n1,0.5,3\n-1,2,4\n", "line 1, column 1: got 'label,a,b'"
    yield "table without head", "", b"1,0.5,3\n-1,2,4\n", "line 1, column 1: got '1,0.5,3'"
    yield "columns", "", b"1 0.5 3\n-1 2 4\n", "line 1, column 3: got '0.5'"
    yield "cut in an index", "", b"1 1:1\n-1 2:1 3", "line 2, column 8: got '3'"
    yield "cut after a colon", "", b"1 1:1\n-1 2:1 3:", "line 2, column 10: got 'the end of the line'"
    yield "cut in an exponent", "", b"1 1:1\n-1 2:1e", "line 2, column 6: got '1e'"
    for name, nothing in {
        "empty": b"",
        "lines": b"\n\n",
        "blanks": b" \t ",
        "ends": b"\r\n\r\n",
        "comments": b"# 1 1:1\n#",
    }.items():
        yield name, "", nothing, "holds no rows"


def test_damaged_files_are_refused(tmp_path):
    for name, suffix, content, message in damaged():
        path = tmp_path / f"file.svm{suffix}"
        path.write_bytes(content)
        with case(name):
            with pytest.raises(ValueError, match=message) as caught:
                read_libsvm(path)
            assert str(path) in str(caught.value)


def test_wrong_arguments_and_files(tmp_path):
    path = written(tmp_path, "1 0:1 4:2\n")
    with pytest.raises(ValueError, match=r"index 0.*zero_based=False"):
        read_libsvm(path, zero_based=False)
    with pytest.raises(ValueError, match=r"index 4, n_features=3 is too small"):
        read_libsvm(path, n_features=3)
    for options in ({"zero_based": "yes"}, {"n_features": 0}, {"n_features": 2.5}):
        with pytest.raises(ValueError, match=next(iter(options))):
            read_libsvm(path, **options)
    with pytest.raises(FileNotFoundError):
        read_libsvm(tmp_path / "missing.svm")


def test_the_result_trains(tmp_path):
    rng = np.random.default_rng(0)
    X = np.round(rng.standard_normal((200, 5)), 3)
    y = np.where(X[:, 0] + 0.5 * rng.standard_normal(200) > 0, 1, -1)
    path = tmp_path / "train.svm"
    dump_svmlight_file(X, y, str(path), zero_based=False)
    read, labels = read_libsvm(path)
    clf = MeasureClassifier("roc_auc").fit(read, labels)
    assert np.array_equal(clf.coef_, MeasureClassifier("roc_auc").fit(sp.csr_array(X), y).coef_)
