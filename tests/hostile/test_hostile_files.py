"""Named attacks by files: sizes that are lies, archives that swell, types that are others, code in disguise."""

import bz2
import gzip
import io
import lzma
import zipfile
from itertools import product

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hostile_cases import in_child, peak_of

from cases import case
from scoreline.cli.main import main
from scoreline.io import convert, read_data, read_libsvm
from scoreline.io import libsvm as libsvm_module
from scoreline.runtime import parallel

PACKED = {".gz": gzip, ".bz2": bz2, ".xz": lzma}
READERS = ("io.model_archive", "io.libsvm", "io.mapped_folder", "io.sources")


@pytest.fixture
def little_memory(monkeypatch):
    """Let readers believe that there are 64 MB."""
    for module in READERS:
        monkeypatch.setattr(f"scoreline.{module}.memory_limit", lambda: float(1 << 26))


# --------------------------------------------------------------------------------------------------------- LIBSVM text


def test_one_large_index_does_not_take_all_memory(tmp_path, little_memory):
    """Was: 16 bytes for every number up to the index, 34 GB for 2^31, and the process was killed."""
    path = tmp_path / "rows.svm"

    def refused():
        with pytest.raises(ValueError, match=r"rows\.svm"):
            convert(path, tmp_path / "mapped")
        assert main(["train", str(path), "--out", str(tmp_path / "model.npz")]) == 1

    for index in (2**31 - 1, 2**31, 2**33, 2**59):
        path.write_text(f"1 {index}:1\n-1 1:1\n")
        with case(index):
            assert read_libsvm(path)[0].nnz == 2  # by itself it costs nothing
            assert peak_of(refused) < 64 << 20
            assert list(tmp_path.iterdir()) == [path]


def test_an_index_that_no_integer_holds_is_refused(tmp_path):
    path = tmp_path / "rows.svm"
    for index in ("-1", "9223372036854775807", "9223372036854775808", "18446744073709551617", "1" + "0" * 400):
        path.write_text(f"1 {index}:1\n")
        for read in (read_libsvm, lambda path: convert(path, tmp_path / "mapped")):
            with case(index), pytest.raises(ValueError, match=r"rows\.svm, line 1, column 3"):
                read(path)


def test_a_line_without_end_is_not_unpacked_into_memory(tmp_path, monkeypatch):
    """A gigabyte of one line fits into a thousandth of that; was: unpacked as a whole, copied for every piece."""
    monkeypatch.setattr(libsvm_module, "PIECE_BYTES", 1 << 16)
    monkeypatch.setattr(libsvm_module, "MAX_LINE_BYTES", 1 << 19)
    for suffix, module in PACKED.items():
        path = tmp_path / f"rows.svm{suffix}"
        path.write_bytes(module.compress(b"1 1:1\n1 " + b" " * (1 << 23)))
        assert path.stat().st_size < 1 << 18

        def refused(path=path):
            with pytest.raises(ValueError, match=r"rows\.svm.*, line 2 is longer than 524288 bytes"):
                read_libsvm(path)

        with case(suffix):
            assert peak_of(refused) < (13 << 20 if suffix == ".xz" else 5 << 20)  # the dictionary of .xz takes 8 MB


def test_rows_that_swell_are_counted_while_they_are_unpacked(tmp_path, monkeypatch):
    monkeypatch.setattr(libsvm_module, "PIECE_BYTES", 1 << 16)
    monkeypatch.setattr(libsvm_module, "memory_limit", lambda: float(1 << 21))
    path = tmp_path / "rows.svm.gz"
    path.write_bytes(gzip.compress(b"1 1:1\n" * (1 << 18)))

    def refused():
        with pytest.raises(MemoryError, match="unpacks to more rows"):
            read_libsvm(path)

    assert peak_of(refused) < 16 << 20
    assert main(["info", str(path)]) == 1


CHANGED = [
    b"1 1:1 2:1\n2 1:1\n3 1:1\n4    \n5    \n",
    b"1\n2\n3\n4\n5\n6\n7\n8\n9\n1\n2\n3\n4\n5\n6\n7\n8 \n",
    b"\n" * 35,
]


def test_text_that_changes_after_counting_is_not_written_beyond_its_arrays(tmp_path, monkeypatch):
    """Text is mapped, and another process may write to it; was: rows and entries beyond those counted were written anyway."""
    path, content = tmp_path / "rows.svm", b"1 1:1\n2 1:1\n3 1:1\n4 1:1\n5 1:123456\n"
    original, calls = parallel.run_chunks, []
    for changed in CHANGED:
        path.write_bytes(content)
        calls.clear()

        def run_chunks(kernel, chunks, *arguments, changed=changed):
            original(kernel, chunks, *arguments)
            calls.append(kernel)
            if len(calls) == 1:  # counted
                with path.open("r+b") as file:
                    file.write(changed.ljust(len(content), b" ")[: len(content) - 1] + b"\n")

        monkeypatch.setattr(parallel, "run_chunks", run_chunks)
        with case(changed), pytest.raises(ValueError, match=r"rows\.svm.*(changed while it was read|expected)"):
            read_libsvm(path)
        assert len(calls) == 2


# ------------------------------------------------------------------------------------------------------ arrays, tables


def test_an_npz_that_swells_is_refused_before_it_is_unpacked(tmp_path, little_memory):
    np.savez_compressed(tmp_path / "rows.npz", X=np.zeros((1 << 12, 1 << 10)), y=np.zeros(1 << 12))
    assert (tmp_path / "rows.npz").stat().st_size < 1 << 18

    def refused():
        with pytest.raises(ValueError, match=r"rows\.npz.*unpack to 3.36e\+07 bytes"):
            read_data(tmp_path / "rows.npz")

    assert peak_of(refused) < 8 << 20


def test_arrays_of_an_npz_that_nobody_asked_for_are_not_unpacked(tmp_path, little_memory):
    np.savez_compressed(tmp_path / "rows.npz", X=np.eye(3), y=np.arange(3), other=np.zeros(1 << 22))
    assert peak_of(lambda: read_data(tmp_path / "rows.npz")) < 8 << 20


def test_headers_of_arrays_that_lie_allocate_nothing(tmp_path):
    lies = ("(1073741824, 3)", "(3, 4611686018427387904)", "(99999999999999999999, 1)", "(-1, 3)", "(3,")
    for shape, suffix in product(lies, (".npy", ".npz")):
        text = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}}}\n".encode()
        raw = b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + bytes(72)
        path = tmp_path / f"rows{suffix}"
        if suffix == ".npy":
            path.write_bytes(raw)
        else:
            with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
                archive.writestr("X.npy", raw)

        def refused(path=path):
            with pytest.raises(ValueError, match="rows"):
                read_data(path)

        with case((shape, suffix)):
            assert peak_of(refused) < 8 << 20


def test_a_matrix_by_columns_cannot_name_rows_without_end(tmp_path, little_memory):
    """Was: a memory of 8 bytes for each of them."""
    parts = {
        "data": np.ones(1),
        "indices": np.zeros(1, np.int32),
        "indptr": np.array([0, 1]),
        "shape": np.array([2**31, 1]),
    }
    np.savez(tmp_path / "rows.npz", format=b"csc", **parts)
    with pytest.raises(ValueError, match=r"rows\.npz.*so many rows"):
        read_data(tmp_path / "rows.npz")


def test_an_archive_named_npy_is_refused(tmp_path):
    """Was: AttributeError, since NumPy looks at the content and not at the name."""
    np.savez(tmp_path / "rows.npz", X=np.eye(3))
    (tmp_path / "rows.npz").rename(tmp_path / "rows.npy")
    with pytest.raises(ValueError, match=r"rows\.npy cannot be read"):
        read_data(tmp_path / "rows.npy")


def arrow_bytes(old, new):
    """Return an Arrow file in which some bytes, which occur in it, are others."""
    table = pa.table(
        {"word": ["a", "bc", "def"], "kind": pa.array(["x", "y", "x"]).dictionary_encode(), "y": [1, 0, 1]}
    )
    file = io.BytesIO()
    with pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)
    raw = file.getvalue()
    assert old in raw
    return raw.replace(old, new)


OUT_OF_MEMORY = {
    "offset beyond": ([0, 1, 3, 6], [0, 1, 3, 2**31 - 1]),
    "offset before": ([0, 1, 3, 6], [0, -(2**31), 3, 6]),
    "code beyond": ([0, 1, 0], [0, 2**30, 0]),
    "code before": ([0, 1, 0], [0, -5, 0]),
}


def test_arrow_files_that_lead_out_of_memory_are_refused(tmp_path):
    """In a process of its own: Arrow follows such offsets unless it is told to look at them first."""
    path = tmp_path / "table.arrow"

    def read():
        with pytest.raises(ValueError, match=r"table\.arrow cannot be read"):
            read_data(path, "y")
        with pytest.raises(ValueError, match=r"table\.arrow cannot be read"):
            convert(path, tmp_path / "mapped", label="y")
        return 0

    for name, (old, new) in OUT_OF_MEMORY.items():
        path.write_bytes(arrow_bytes(np.int32(old).tobytes(), np.int32(new).tobytes()))
        assert in_child(read) == 0, name


def test_names_of_columns_that_are_not_utf8_are_refused_by_file(tmp_path):
    """Was: an error of the decoder without the file."""
    (tmp_path / "table.arrow").write_bytes(arrow_bytes(b"word", b"wo\x89d"))
    with pytest.raises(ValueError, match=r"table\.arrow cannot be read"):
        read_data(tmp_path / "table.arrow", "y")


def test_a_parquet_file_that_lies_about_its_rows_is_refused(tmp_path, monkeypatch):
    """Was: rows that nobody wrote held what memory held before, or an array of that many rows was asked for."""
    pq.write_table(pa.table({"x": [1.0, 2.0] * 6, "y": [0, 1] * 6}), tmp_path / "table.parquet")
    encoding = read_data(tmp_path / "table.parquet", "y").encoding

    from scoreline.io.tables import ParquetTable

    original = ParquetTable.__init__
    for declared in (13, 4, 2**40):

        def lying(self, path, missing, declared=declared):
            original(self, path, missing)
            self.rows = declared

        monkeypatch.setattr(ParquetTable, "__init__", lying)
        message = r"table\.parquet: there are|1,099,511,627,776 rows"
        with case(declared), pytest.raises((ValueError, MemoryError), match=message):
            read_data(tmp_path / "table.parquet", "y", encoding=encoding)


def test_text_of_parquet_that_is_not_utf8_is_refused_by_name(tmp_path):
    """Was: an error of the decoder without the file, or no error."""
    binary = pa.array([b"a", b"\xff\xfe", b"b"], pa.binary())
    pq.write_table(
        pa.table({"word": pa.Array.from_buffers(pa.string(), 3, binary.buffers()), "y": [0, 1, 0]}),
        tmp_path / "t.parquet",
    )
    with pytest.raises(ValueError, match=r"t\.parquet cannot be read"):
        read_data(tmp_path / "t.parquet", "y")
