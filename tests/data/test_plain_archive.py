"""Plain values in a file: what comes back, what is refused; a damaged or hostile file does no more than raise ValueError."""

import io
import json
import math
import os
import pickle
import stat
import tracemalloc
import warnings
import zipfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hn

from cases import case
from scoreline.io.files import atomic_file
from scoreline.io.model_archive import HEADER, SPARSE_SIZE, read_archive, write_archive
from tiers import TIER, examples

KIND = "test file"


@pytest.fixture(autouse=True, scope="module")
def _no_waiting_for_the_disk():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda handle: None)
        yield


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder that the examples of property tests share."""
    return tmp_path_factory.mktemp("archives")


def same(one, other):
    """Equal in type, order and bits."""
    if type(one) is not type(other):
        return False
    if isinstance(one, np.ndarray):
        alike = (one.dtype, one.shape) == (other.dtype, other.shape)
        if one.dtype == object:
            return alike and same(one.ravel().tolist(), other.ravel().tolist())
        return alike and one.tobytes() == other.tobytes() and (one.flags.f_contiguous == other.flags.f_contiguous)
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return same(list(one), list(other)) and same(list(one.values()), list(other.values()))
    return repr(one) == repr(other)


def round_trip(path, content):
    write_archive(path, KIND, 1, content)
    return read_archive(path, KIND, 1)


# ---------------------------------------------------------------------------------------------------------- there and back

text = st.text(st.characters(exclude_categories=["Cs"]), max_size=8) | st.sampled_from(
    ["$array", "$dict", "$float", "é→😀"]
)
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_subnormal=True) | text
keys = text | st.integers() | st.floats(allow_nan=False) | st.tuples(text, st.integers()) | st.none()
dtypes = (
    hn.boolean_dtypes()
    | hn.integer_dtypes(endianness="?")
    | hn.unsigned_integer_dtypes(endianness="?")
    | hn.floating_dtypes(endianness="?")
    | hn.unicode_string_dtypes(min_len=1, max_len=5)
)
shapes = hn.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)
plain_arrays = st.tuples(hn.arrays(dtypes, shapes), st.sampled_from("CF")).map(
    lambda pair: np.asarray(*pair[:1], order=pair[1])
)
object_arrays = hn.arrays(object, shapes, elements=text | st.integers(), fill=st.nothing())
values = st.recursive(
    scalars | plain_arrays | object_arrays,
    lambda inner: (
        st.lists(inner, max_size=3) | st.lists(inner, max_size=3).map(tuple) | st.dictionaries(keys, inner, max_size=3)
    ),
    max_leaves=8,
)


@examples(100)
@given(content=st.dictionaries(text | st.integers(), values, max_size=4))
def test_nested_values_come_back_as_they_were(content, folder):
    assert same(round_trip(folder / "file", content), content)


@examples(100)
@given(content=st.dictionaries(text, values, max_size=3))
def test_the_same_content_gives_the_same_bytes(content, folder):
    for name in ("one", "other"):
        write_archive(folder / name, KIND, 1, content)
    write_archive(folder / "third", KIND, 1, read_archive(folder / "one", KIND, 1))
    assert len({(folder / name).read_bytes() for name in ("one", "other", "third")}) == 1


@examples(100)
@given(
    sides=st.lists(st.integers(1, 60), min_size=1, max_size=3).filter(lambda sides: math.prod(sides) >= SPARSE_SIZE),
    entries=st.lists(
        st.tuples(st.floats(0, 1, exclude_max=True), st.floats(allow_subnormal=True) | st.just(-0.0)), max_size=30
    ),
    order=st.sampled_from("CF"),
)
def test_sparse_arrays_keep_every_bit(sides, entries, order, folder):
    flat = np.zeros(math.prod(sides))
    for share, value in entries:
        flat[int(share * len(flat))] = value
    array = np.asarray(flat.reshape(sides), order=order)
    back = round_trip(folder / "file", {"a": array})["a"]
    assert (back.dtype, back.shape, back.tobytes()) == (array.dtype, array.shape, array.tobytes())
    assert back.flags.writeable
    assert (folder / "file").stat().st_size < 2500 + 20 * len(entries)


def test_a_nan_keeps_its_payload_in_arrays(tmp_path):
    bits = np.array([0x7FF8000000000001, 0xFFF8000000000000, 0x7FF0000000000001, 1], dtype=np.uint64)
    for array in (bits.view(np.float64), np.concatenate([bits, np.zeros(2000, np.uint64)]).view(np.float64)):
        assert round_trip(tmp_path / "file", {"a": array})["a"].tobytes() == array.tobytes()


def test_numpy_scalars_come_back_as_python_numbers(tmp_path):
    content = {"a": np.float64(0.1), "b": np.int32(-3), "c": np.bool_(True), "d": np.str_("é"), "e": np.float32(np.inf)}
    back = round_trip(tmp_path / "file", content)
    assert back == content
    assert [type(value) for value in back.values()] == [float, int, bool, str, float]


def test_arrays_of_odd_shapes_come_back(tmp_path):
    strided = np.arange(12.0).reshape(3, 4)[:, ::2]
    fortran = np.zeros((3, 0), order="F")
    for array in (np.zeros(()), np.array("é"), np.zeros((0, 3)), fortran, np.array([], dtype="U3"), strided):
        back = round_trip(tmp_path / "file", {"a": array})["a"]
        assert (back.dtype, back.shape, back.tobytes()) == (array.dtype, array.shape, array.tobytes()), array


def test_integers_of_any_size_and_objects_of_any_plain_kind_come_back(tmp_path):
    objects = np.empty(3, dtype=object)
    objects[:] = [(1, 2), (3, 4), (5, 6)]
    content = {"large": -(10**4000), "tuples": objects}
    assert same(round_trip(tmp_path / "file", content), content)


def test_numpy_opens_the_arrays(tmp_path):
    write_archive(tmp_path / "file.npz", KIND, 1, {"a": np.arange(3)})
    with np.load(tmp_path / "file.npz", allow_pickle=False) as file:
        assert any(np.array_equal(file[name], np.arange(3)) for name in file.files if name.startswith("array"))


# ------------------------------------------------------------------------------------------------------------ what is code


def a_function():
    """Something that a file without code cannot hold."""


NOT_PLAIN = [
    ({"a": {"deep": [1, a_function]}}, r"a\.deep\[1\]"),
    ({"a": ({"b": dict},)}, r"a\[0\]\.b"),
    ({"labels": np.array([1, a_function], dtype=object)}, "labels"),
    ({"when": np.array(["2020-01-01"], dtype="M8[D]")}, "when"),
    ({"z": 1j}, "z"),
    ({"z": np.array([1j])}, "z"),
    ({"s": {1, 2}}, "s"),
    ({"b": b"bytes"}, "b"),
    ({"r": np.random.RandomState(0)}, "r"),
    ({"v": np.zeros(2, dtype=[("x", float)])}, "v"),
    ({"keys": {a_function: 1}}, "keys"),
]


def test_what_is_not_plain_is_refused_by_its_place_and_the_old_file_stays(tmp_path):
    path = tmp_path / "file"
    for content, place in NOT_PLAIN:
        with case(content):
            with pytest.raises(TypeError, match=place):
                write_archive(path, KIND, 1, content)
            assert list(tmp_path.iterdir()) == []
            write_archive(path, KIND, 1, {"old": 1})
            with pytest.raises(TypeError, match=place):
                write_archive(path, KIND, 1, content)
            assert list(tmp_path.iterdir()) == [path]
            assert read_archive(path, KIND, 1) == {"old": 1}
        path.unlink()


def test_a_failing_disk_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "file"
    write_archive(path, KIND, 1, {"old": 1})

    def full(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_archive(path, KIND, 1, {"new": np.arange(100)})
    assert list(tmp_path.iterdir()) == [path]
    assert read_archive(path, KIND, 1) == {"old": 1}


def test_two_writers_of_one_process_leave_the_file_of_one_of_them(tmp_path):
    """One begins, the other begins and ends, the first ends."""
    with atomic_file(tmp_path / "file") as first:
        first.write(b"first")
        with atomic_file(tmp_path / "file") as second:
            second.write(b"second, longer")
        assert (tmp_path / "file").read_bytes() == b"second, longer"
    assert (tmp_path / "file").read_bytes() == b"first"
    assert list(tmp_path.iterdir()) == [tmp_path / "file"]


def test_a_folder_that_cannot_be_written_to_is_named(tmp_path):
    with pytest.raises(OSError, match=r"nowhere.*choose a folder"):
        write_archive(tmp_path / "nowhere" / "file", KIND, 1, {})


# ---------------------------------------------------------------------------------------------------------------- damage

CONTENT = {
    "text": "é$",
    "numbers": [1, -0.0, math.inf],
    "array": np.arange(3),
    "$key": (True, None),
    "sparse": np.eye(1, 1200, 7),
}


@pytest.fixture(scope="module")
def small_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("small") / "file"
    write_archive(path, KIND, 1, CONTENT)
    return path.read_bytes()


def fails_well_or_gives_the_content(path, raw, expected=CONTENT):
    """True if the bytes are refused; they must not give other content, nor another exception."""
    path.write_bytes(raw)
    try:
        found = read_archive(path, KIND, 1)
    except ValueError as error:
        message = str(error)
    else:
        assert same(found, expected)
        return False
    assert str(path) in message
    return True


PLACE_STEP = 7 if TIER == "quick" else 1  # which bytes of a file are changed, and where it is cut off


def test_no_changed_byte_gives_other_content(small_file, tmp_path):
    places = range(0, len(small_file), PLACE_STEP)
    for change in (0xFF, 0x01, 0x20):
        refused = 0
        for place in places:
            raw = bytearray(small_file)
            raw[place] ^= change
            with case((change, place)):
                refused += fails_well_or_gives_the_content(tmp_path / "file", bytes(raw))
        assert refused > 0.7 * len(places), change


def test_no_part_of_a_file_gives_other_content(small_file, tmp_path):
    for length in range(0, len(small_file), PLACE_STEP):
        assert fails_well_or_gives_the_content(tmp_path / "file", small_file[:length]), length


@examples(100)
@given(data=st.data())
def test_no_garbled_stretch_gives_other_content(data, small_file, folder):
    start = data.draw(st.integers(0, len(small_file) - 1))
    new = data.draw(st.binary(max_size=30))
    removed = data.draw(st.integers(0, 30))
    fails_well_or_gives_the_content(folder / "file", small_file[:start] + new + small_file[start + removed :])


# --------------------------------------------------------------------------------------------------------- hostile files


def npy(array, **options):
    file = io.BytesIO()
    np.lib.format.write_array(file, array, **options)
    return file.getvalue()


def npy_claiming(header, body=b""):
    """Return an .npy file with any text as its header."""
    raw = header.encode("latin1") + b"\n"
    return b"\x93NUMPY\x01\x00" + len(raw).to_bytes(2, "little") + raw + body


def header_with(content, kind=KIND, version=1):
    return json.dumps({"format": kind, "version": version, "content": content}).encode()


def pack(*members, compression=zipfile.ZIP_STORED):
    file = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(file, "w", compression) as archive:
        warnings.simplefilter("ignore")  # names that occur twice
        for name, raw in members:
            archive.writestr(name, raw)
    return file.getvalue()


def with_array(raw):
    return pack((HEADER, header_with({"a": {"$array": "array0"}})), ("array0.npy", raw))


def with_sparse(shape, places=(0,), entries=(1.0,)):
    content = {"a": {"$sparse": ["array0", "array1"], "shape": shape}}
    return pack(
        (HEADER, header_with(content)), ("array0.npy", npy(np.array(places))), ("array1.npy", npy(np.array(entries)))
    )


def with_header(raw):
    return pack((HEADER, raw))


class Trap:
    """Makes a folder when it is unpickled."""

    def __reduce__(self):
        return os.mkdir, ("the-pickle-was-run",)


HUGE = "{'descr': '<f8', 'fortran_order': False, 'shape': (%s), }"
HOSTILE = {
    "nothing": b"",
    "text": b"not a zip file",
    "pickle": pickle.dumps(Trap()),
    "compressed": pack((HEADER, header_with({})), compression=zipfile.ZIP_DEFLATED),
    "a bomb": pack((HEADER, header_with({})), ("array0.npy", bytes(1 << 24)), compression=zipfile.ZIP_DEFLATED),
    "bzip2": pack((HEADER, header_with({})), compression=zipfile.ZIP_BZIP2),
    "lzma": pack((HEADER, header_with({})), compression=zipfile.ZIP_LZMA),
    "a header twice": pack((HEADER, header_with({})), (HEADER, header_with({"a": 1}))),
    "an array twice": pack((HEADER, header_with({})), ("array0.npy", npy(np.ones(2))), ("array0.npy", npy(np.ones(3)))),
    "no member": pack(),
    "no header": pack(("array0.npy", npy(np.ones(2)))),
    "a huge shape": with_array(npy_claiming(HUGE % "2305843009213693952,")),
    "a huge shape in two": with_array(npy_claiming(HUGE % "4294967296, 4294967296")),
    "a huge shape with nothing": with_array(npy_claiming(HUGE % "0, 99999999999999999999")),
    "a negative shape": with_array(npy_claiming(HUGE % "-1, -1", bytes(8))),
    "a negative side": with_array(npy_claiming(HUGE % "-1,", bytes(8))),
    "no shape": with_array(npy_claiming("{'descr': '<f8', 'fortran_order': False}", bytes(8))),
    "an unknown type": with_array(npy_claiming("{'descr': 'nonsense', 'fortran_order': False, 'shape': (1,)}", bytes(8))),
    "a type that is a call": with_array(npy_claiming("{'descr': exit(), 'fortran_order': False, 'shape': (1,)}", bytes(8))),
    "an unclosed header": with_array(npy_claiming("{'descr': '<f8', 'shape': (", bytes(8))),
    "an unclosed text": with_array(npy_claiming("{'descr': '''", bytes(8))),
    "an indented header": with_array(npy_claiming("a:\n    b\n  c", bytes(8))),
    "a nested header": with_array(npy_claiming("(" * 9000, bytes(8))),
    "a long header": with_array(npy_claiming("1" * 60000, bytes(8))),
    "a parallel type": with_array(npy_claiming("{'descr': 'f8,(', 'fortran_order': False, 'shape': (1,)}", bytes(8))),
    "records": with_array(npy(np.zeros(2, dtype=[("x", float)]))),
    "dates": with_array(npy(np.zeros(2, dtype="M8[s]"))),
    "complex": with_array(npy(np.zeros(2, dtype=complex))),
    "objects": with_array(npy(np.array([Trap()], dtype=object), allow_pickle=True)),
    "a pickle as array": with_array(pickle.dumps(Trap())),
    "an array cut off": with_array(npy(np.ones(100))[:-1]),
    "an array too long": with_array(npy(np.ones(100)) + b"x"),
    "an empty array file": with_array(b""),
    "deep nesting": with_header(b"[" * 100_000),
    "deep nesting, closed": with_header(b"[" * 100_000 + b"]" * 100_000),
    "deep content": with_header(header_with({"a": 1}).replace(b"1}", b'{"a":' * 20_000 + b"1" + b"}" * 20_001)),
    "a newer version": with_header(header_with({}, version=2)),
    "version 0": with_header(header_with({}, version=0)),
    "a version that is text": with_header(header_with({}, version="1")),
    "no version": with_header(b'{"format": "test file", "content": {}}'),
    "another kind": with_header(header_with({}, kind="scoreline model")),
    "a list": with_header(b"[]"),
    "a number": with_header(b"1"),
    "no JSON": with_header(b"{"),
    "not UTF-8": with_header(b'{"format": "\xff\xfe"}'),
    "a number without end": with_header(b"1" * 100_000),
    "no content": with_header(b'{"format": "test file", "version": 1}'),
    "content that is a list": with_header(header_with([])),
    "content that is text": with_header(header_with("a")),
    "a missing array": with_header(header_with({"a": {"$array": "array0"}})),
    "an array named by a list": with_header(header_with({"a": {"$array": [1]}})),
    "an unknown float": with_header(header_with({"a": {"$float": "1"}})),
    "a float of lists": with_header(header_with({"a": {"$float": []}})),
    "a tuple of nothing": with_header(header_with({"a": {"$tuple": 5}})),
    "keys that are lists": with_header(header_with({"a": {"$dict": [[[1], 2]]}})),
    "a dict of triples": with_header(header_with({"a": {"$dict": [[1, 2, 3]]}})),
    "objects without a shape": with_header(header_with({"a": {"$objects": [1]}})),
    "objects of another shape": with_header(header_with({"a": {"$objects": [1], "shape": [2]}})),
    "objects of text as shape": with_header(header_with({"a": {"$objects": [1], "shape": "a"}})),
    "a sparse array of 2**62": with_sparse([2**62]),
    "a sparse array of 2**31 by 2**31": with_sparse([2**31, 2**31]),
    "a sparse array of -5": with_sparse([-5]),
    "a sparse array of -5 by -5": with_sparse([-5, -5]),
    "a sparse array of text": with_sparse("2000"),
    "a sparse array of 1e300": with_sparse([1e300]),
    "a sparse array of 2000.0": with_sparse([2000.0]),
    "a sparse array of null": with_sparse(None),
    "a place beyond the end": with_sparse([2000], [2000]),
    "a negative place": with_sparse([2000], [-1]),
    "places that are floats": with_sparse([2000], [1.0]),
    "places without entries": with_sparse([2000], [1, 2]),
    "entries that are text": with_sparse([2000], [1], ["a"]),
    "a missing sparse array": with_header(header_with({"a": {"$sparse": ["array0", "array1"], "shape": [2000]}})),
    "three sparse arrays": with_header(header_with({"a": {"$sparse": ["a", "b", "c"], "shape": [2000]}})),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:Reading `.npy`:UserWarning")
def test_a_hostile_file_is_refused_by_name_without_much_memory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "hostile"
    for name, raw in HOSTILE.items():
        path.write_bytes(raw)
        tracemalloc.start()
        try:
            with case(name), pytest.raises(ValueError, match="hostile"):
                read_archive(path, KIND, 1)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert peak < 64 << 20, name
        assert list(tmp_path.iterdir()) == [path], f"something was run: {name}"


def test_a_newer_file_asks_for_an_upgrade_and_another_kind_is_named(tmp_path):
    write_archive(tmp_path / "new", KIND, 3, {})
    with pytest.raises(ValueError, match=r"newer scoreline \(format 3, this one reads up to 2\); upgrade"):
        read_archive(tmp_path / "new", KIND, 2)
    assert read_archive(tmp_path / "new", KIND, 4) == {}
    with pytest.raises(ValueError, match="expected a model file, got 'test file'"):
        read_archive(tmp_path / "new", "model", 3)


def test_a_file_that_is_not_there_is_an_os_error(tmp_path):
    with pytest.raises(FileNotFoundError, match="nothing"):
        read_archive(tmp_path / "nothing", KIND, 1)


def test_a_device_is_written_to_and_stays_one():
    with atomic_file(os.devnull) as file:
        file.write(b"gone")
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)
