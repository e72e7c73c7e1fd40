"""Headers of .npy files are read as NumPy reads them, and without parsing Python."""

import ast
import io
import warnings
from contextlib import suppress
from itertools import product
from tokenize import TokenError

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import (
    array_shapes,
    arrays,
    boolean_dtypes,
    floating_dtypes,
    integer_dtypes,
    unicode_string_dtypes,
)

from cases import case
from scoreline import MeasureClassifier, load_model
from scoreline.io import convert, open_mapped, read_data
from scoreline.runtime.npy import map_array, read_header
from tiers import examples

TYPES = st.one_of(
    boolean_dtypes(),
    integer_dtypes(),
    floating_dtypes(),
    unicode_string_dtypes(),
    st.sampled_from(["S3", "M8[ns]", "c16"]),
)
HEADER = "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), }"
MALFORMED = "expected type, order and shape"


def written(text, version=1):
    """Return bytes of an .npy file with a header of any text, and six numbers."""
    raw = text.encode("latin1")
    return (
        b"\x93NUMPY"
        + bytes([version, 0])
        + len(raw).to_bytes(2 if version == 1 else 4, "little")
        + raw
        + np.arange(6.0).tobytes()
    )


@examples(100)
@given(
    TYPES, array_shapes(min_dims=0, max_dims=4, min_side=0), st.booleans(), st.sampled_from([(1, 0), (2, 0), (3, 0)])
)
def test_what_numpy_writes_is_read(dtype, shape, fortran, version):
    array = np.zeros(shape, dtype, order="F" if fortran else "C")
    file = io.BytesIO()
    np.lib.format.write_array(file, array, version=version)
    begin = file.tell() - array.nbytes
    file.seek(0)
    found = read_header(file)
    assert found[0] == array.shape
    assert found[2] == array.dtype
    assert found[1] == (array.flags.f_contiguous and not array.flags.c_contiguous)
    assert file.tell() == begin


@examples(100)
@given(data=st.data())
def test_mapped_arrays_are_those_that_were_saved(data, tmp_path_factory):
    array = data.draw(
        arrays(data.draw(st.one_of(integer_dtypes(), floating_dtypes())), array_shapes(max_dims=3, min_side=0))
    )
    path = tmp_path_factory.mktemp("npy") / "array.npy"
    np.save(path, np.asfortranarray(array) if data.draw(st.booleans()) else array)
    found = map_array(path)
    assert found.dtype == array.dtype
    np.testing.assert_array_equal(found, array)
    assert not found.flags.writeable


@st.composite
def changed_headers(draw):
    """Return a header of which some characters are others."""
    text = HEADER
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(text)))
        put = draw(st.text(alphabet="{}'\"():,<>|f8i4 TrueFalseL0123\n\t\xa0[]", max_size=4))
        text = text[:start] + put + text[start + draw(st.integers(0, 4)) :]
    return text


@examples(2000)
@given(changed_headers() | st.binary(max_size=80).map(lambda raw: raw.decode("latin1")))
def test_other_headers_are_refused_or_mean_what_they_mean_to_numpy(text):
    """What NumPy does not take and this does (02 for 2) is not misread either way."""
    raw = written(text)
    try:
        found = read_header(io.BytesIO(raw))
    except ValueError:
        return
    with warnings.catch_warnings(), suppress(ValueError, SyntaxError, TokenError):
        warnings.simplefilter("ignore")  # NumPy warns of headers that Python 2 wrote
        assert found == np.lib.format.read_array_header_1_0(io.BytesIO(raw[8:]))


OTHER_WRITERS = [
    '{"shape": (2, 3), "fortran_order": False, "descr": "<f8"}',
    "{'fortran_order':False,'shape':(2,3),'descr':'<f8'}\n",
    "  {'descr': '<f8', 'fortran_order': False, 'shape': (2L, 3L), }",
    "{'descr': 'float64', 'fortran_order': False, 'shape': (2, 3), }",
]


def test_headers_of_other_writers(tmp_path):
    path = tmp_path / "array.npy"
    for text, version in product(OTHER_WRITERS, (1, 2, 3)):
        path.write_bytes(written(text, version))
        with case((text, version)):
            np.testing.assert_array_equal(map_array(path), np.arange(6.0).reshape(2, 3))


WRONG_HEADERS = [
    (HEADER.replace("(2, 3)", "(2, -3)"), MALFORMED),
    (HEADER.replace("(2, 3)", "(6)"), MALFORMED),
    (HEADER.replace("(2, 3)", "6"), MALFORMED),
    (HEADER.replace("(2, 3)", "'<f8'"), MALFORMED),
    (HEADER.replace("False", "0"), MALFORMED),
    (HEADER.replace("'<f8'", "[('a', '<f8')]"), MALFORMED),
    (HEADER.replace("'<f8'", "__import__('os')"), MALFORMED),
    (HEADER[:-1], MALFORMED),
    (HEADER[1:], MALFORMED),
    (HEADER + "}", MALFORMED),
    (HEADER.replace("fortran_order", "descr"), MALFORMED),
    (HEADER.replace("}", "'descr': '<f4'}"), MALFORMED),
    (HEADER.replace("'fortran_order': False, ", ""), MALFORMED),
    (HEADER.replace("<f8", "<f7"), "NumPy does not support"),
    (HEADER.replace("<f8", "O"), "Python objects"),
    (HEADER.replace("<f8", "object"), "Python objects"),
    (HEADER.replace("(2, 3)", "(2, 4)"), "asks for"),
    (HEADER.replace("(2, 3)", f"(0, {2**63})"), "larger than any array"),
    (HEADER.replace("(2, 3)", f"({2**62}, {2**62}, 0)"), "larger than any array"),
    ("", "ends within"),
    (" " * 10001, "at most 10000"),
]


def test_wrong_headers_say_what_is_wrong(tmp_path):
    path = tmp_path / "array.npy"
    for text, message in WRONG_HEADERS:
        path.write_bytes(written(text))
        with case(text[:100]), pytest.raises(ValueError, match=message):
            map_array(path)


def test_types_by_any_of_their_names():
    for name in [
        "float32",
        "double",
        "uint8",
        "bool",
        "?",
        "|?",
        "<i2",
        ">f4",
        "=i8",
        "|b1",
        "|u1",
        "e",
        "datetime64[ns]",
    ]:
        assert read_header(io.BytesIO(written(HEADER.replace("<f8", name))))[2] == np.dtype(name), name


@pytest.mark.parametrize("shape", ["(2, 3)", "(0, 3)"])  # without entries its end is that of the header
def test_every_beginning_of_a_file_is_refused(shape, tmp_path):
    path, content = tmp_path / "array.npy", written(HEADER.replace("(2, 3)", shape) + "   \n")
    content = content if shape == "(2, 3)" else content[: -6 * 8]
    for length in range(len(content)):
        path.write_bytes(content[:length])
        with pytest.raises(ValueError):  # noqa: PT011 - each says something else
            map_array(path)
    for start in (b"\x92NUMPY\x01\x00", b"\x93NUMPY\x04\x00", b"\x93NUMPY\x01\x01"):
        path.write_bytes(start + content[8:])
        with pytest.raises(ValueError, match=r"begin as|version"):
            map_array(path)


@pytest.fixture
def no_parser(monkeypatch):
    """Python's parser fails, as it may on CPython 3.11 when two threads use it at once."""

    def refuse(*_, **__):
        raise SystemError("AST constructor recursion depth mismatch")

    monkeypatch.setattr(ast, "parse", refuse)


@pytest.mark.parametrize("sparse", [False, True])
def test_files_of_the_package_are_read_without_the_parser(sparse, tmp_path, no_parser):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 5)), np.where(rng.random(60) < 0.3, 1, -1)
    X = sp.csr_array(np.where(X > 0, X, 0)) if sparse else X
    convert((X, y), tmp_path / "folder")
    data = open_mapped(tmp_path / "folder")
    model = MeasureClassifier().fit(data.X, data.y)
    model.save(tmp_path / "model.scoreline")
    assert load_model(tmp_path / "model.scoreline").coef_.tobytes() == model.coef_.tobytes()
    if sparse:
        sp.save_npz(tmp_path / "X.npz", sp.csr_matrix(X))
        assert read_data(tmp_path / "X.npz").X.shape == (60, 5)
    else:
        np.save(tmp_path / "X.npy", X)
        assert read_data(tmp_path / "X.npy").X.shape == (60, 5)
