"""Writes a matrix block by block to .npy files, in bounded memory, without knowing how many rows will come."""

import zlib
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from scoreline.io.libsvm import NARROW
from scoreline.runtime.memory import memory_limit
from scoreline.runtime.npy import map_array
from scoreline.runtime.types import AnyArray, FloatArray

PIECE = 1 << 24  # bytes that are read at a time when a file is gone through again
MOST_CLASSES = 100
VECTORS = 8  # of one number for every column that conversion and training need at least, in half of the memory


class UnfitError(ValueError):
    """Rows or labels that cannot be written; whoever knows the source adds its name."""


def check_width(width: int) -> None:
    """Raise where so many columns cannot be: one index that is far too large would take all memory."""
    if 8.0 * width * VECTORS > 0.5 * memory_limit():
        raise UnfitError(
            f"there are {width:,} columns, and {VECTORS} vectors of coefficients for them take more than half of the memory; "
            "number the features without gaps, or correct the largest index"
        )


class GrowingArray:
    """An .npy file that rows are appended to; NumPy leaves room in its header for any number of them."""

    def __init__(self, path: Path, dtype: Any, width: int | None = None):
        self.path, self.dtype, self.width, self.length = path, np.dtype(dtype), width, 0
        self._file = path.open("wb")
        self._write_header()

    def append(self, rows: AnyArray) -> None:
        """Write rows at the end."""
        self._file.write(np.ascontiguousarray(rows, dtype=self.dtype).data)
        self.length += len(rows)

    def close(self) -> None:
        """Put the length into the header; the file is complete."""
        self._file.seek(0)
        self._write_header()
        self._file.close()

    def _write_header(self) -> None:
        shape = (self.length,) if self.width is None else (self.length, self.width)
        header = {"descr": np.lib.format.dtype_to_descr(self.dtype), "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(self._file, header)

    def converted(self, dtype: Any) -> "GrowingArray":
        """Return the same rows as another type, in the same file, open for more."""
        self.close()
        other = GrowingArray(self.path.with_suffix(".new"), dtype, self.width)
        for piece in pieces(map_array(self.path)):
            other.append(piece)
        other.path = other.path.replace(self.path)
        return other


def pieces(array: AnyArray) -> Any:
    """Yield an array in pieces of at most PIECE bytes."""
    step = max(1, PIECE // max(1, array.itemsize * int(np.prod(array.shape[1:]))))
    for start in range(0, len(array), step):
        yield array[start : start + step]


def checksum(path: Path) -> int:
    """Return the CRC-32 of a file."""
    value = 0
    with path.open("rb") as file:
        while block := file.read(PIECE):
            value = zlib.crc32(block, value)
    return value


class RowsWriter:
    """Appends blocks of rows and labels; `finish` returns what the header of the folder needs.

    Sparse rows become CSR with sorted indices and each column once: data, indices (int32 until one does not fit) and indptr.
    Dense rows become X. Labels are kept as codes of the classes. `largest` is the largest magnitude of every column.
    """

    def __init__(self, folder: Path, dtype: Any):
        self.folder, self.dtype = folder, np.dtype(dtype)
        self.rows = self.entries = 0
        self.files: dict[str, GrowingArray] = {}
        self.largest: FloatArray = np.zeros(0)
        self._codes: dict[Any, int] = {}

    def append(self, X: Any, labels: AnyArray | None) -> None:
        """Take in a block; raises ValueError for entries that are not finite, with their row (from 1) and column (from 0)."""
        if labels is not None:
            self._append_labels(np.asarray(labels))
        if sp.issparse(X):
            self._append_sparse(X.tocsr())
        else:
            self._append_dense(np.asarray(X))
        self.rows += X.shape[0]

    def _file(self, name: str, dtype: Any, width: int | None = None) -> GrowingArray:
        if name not in self.files:
            self.files[name] = GrowingArray(self.folder / f"{name}.npy", dtype, width)
        return self.files[name]

    def _append_sparse(self, X: Any) -> None:
        if not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
        check_width(X.shape[1])
        values = self._checked(
            X.data, lambda at: (int(np.searchsorted(X.indptr, at, side="right")) - 1, int(X.indices[at]))
        )
        if len(self.largest) < X.shape[1]:
            self.largest = np.append(self.largest, np.zeros(X.shape[1] - len(self.largest)))
        np.maximum.at(self.largest, X.indices, np.abs(values, dtype=np.float64))
        if "indptr" not in self.files:
            self._file("indptr", np.int64).append(np.zeros(1))
        self._file("indptr", np.int64).append(self.entries + X.indptr[1:].astype(np.int64))
        if X.shape[1] > NARROW + 1 and self._file("indices", np.int32).dtype == np.int32:
            self.files["indices"] = self.files["indices"].converted(np.int64)
        self._file("indices", np.int32).append(X.indices)
        self._file("data", self.dtype).append(values)
        self.entries += len(values)

    def _append_dense(self, X: AnyArray) -> None:
        values = self._checked(X, lambda at: divmod(at, X.shape[1]))
        largest = np.abs(values).max(axis=0, initial=0.0).astype(np.float64)
        self.largest = np.maximum(self.largest, largest) if len(self.largest) else largest
        self._file("X", self.dtype, X.shape[1]).append(values)

    def _checked(self, values: AnyArray, place: Any) -> AnyArray:
        """Return values of the type that is written, or raise if one of them is not finite there."""
        with np.errstate(over="ignore", under="ignore"):
            values = values.astype(self.dtype, copy=False)
        if not np.isfinite(values).all():
            row, column = place(int(np.argmin(np.isfinite(values))))
            raise UnfitError(
                f"row {self.rows + row + 1}, column {column} holds NaN, infinity or a number too large for {self.dtype}; "
                "expected finite numbers"
            )
        return values

    def _append_labels(self, labels: AnyArray) -> None:
        if labels.dtype == object:
            labels = labels.astype(str)
        if labels.dtype.kind not in "biufU":
            raise UnfitError(f"labels are {labels.dtype}, expected numbers, text or truth values")
        if labels.dtype.kind == "f" and not np.isfinite(labels).all():
            raise UnfitError(
                f"row {self.rows + int(np.argmin(np.isfinite(labels))) + 1} has the label NaN or infinity; drop it"
            )
        values, codes = np.unique(labels, return_inverse=True)
        for value in values.tolist():
            self._codes.setdefault(value, len(self._codes))
        if len(self._codes) > MOST_CLASSES:
            raise UnfitError(
                f"there are more than {MOST_CLASSES} different labels: measured values, it seems; expected classes, bin them"
            )
        table = np.array([self._codes[value] for value in values.tolist()], dtype=np.int8)
        self._file("labels", np.int8).append(table[codes.ravel()])

    def finish(self, width: int, first_index: int = 0) -> dict[str, Any]:
        """Complete the files for a matrix with so many columns, whose indices were written from `first_index` on."""
        if not self.rows:
            raise UnfitError("there are no rows, expected at least one")
        check_width(width)
        if len({isinstance(label, str) for label in self._codes}) > 1:
            raise UnfitError("labels are numbers in some rows and text in others; make them of one kind")
        labelled = "labels" in self.files
        if labelled and self.files["labels"].length != self.rows:
            raise UnfitError(
                f"there are {self.files['labels'].length} labels for {self.rows} rows, expected one for each"
            )
        if "indptr" in self.files and self.entries <= NARROW:
            self.files["indptr"] = self.files["indptr"].converted(np.int32)
        if "indptr" in self.files and not self.entries:  # no entry at all: the files must be there
            self._file("indices", np.int32), self._file("data", self.dtype)
        for file in self.files.values():
            file.close()
        if first_index:
            for piece in pieces(map_array(self.folder / "indices.npy", "r+")):
                piece -= first_index
        largest = np.zeros(width)
        known = self.largest[first_index:]
        largest[: len(known)] = known
        file = GrowingArray(self.folder / "largest.npy", np.float64)
        file.append(largest)
        file.close()
        storage, classes = "csr" if "indptr" in self.files else "dense", list(self._codes) if labelled else None
        header = {"storage": storage, "shape": [self.rows, width], "entries": self.entries, "dtype": str(self.dtype)}
        return header | {"classes": classes}
