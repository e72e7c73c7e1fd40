"""Data sets on disk: a folder of .npy files and a JSON header, written by `convert`, opened by `open_mapped`."""

import json
import logging
import os
import shutil
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from scoreline.features import Additive, FittedFeatures
from scoreline.features.columns import columns_of
from scoreline.io.encoding import Encoding
from scoreline.io.files import atomic_file, check_plain, lock_file, sync_folder
from scoreline.io.libsvm import INT32_MAX
from scoreline.io.model_archive import read_archive, read_json, write_archive
from scoreline.io.sources import Dataset, SequenceSource, Source, UnfitError, open_source
from scoreline.operators.mapped import MappedCodes, MappedCsr, MappedDense, MappedSequences, advised_array
from scoreline.operators.sequences import check_alphabet
from scoreline.runtime.checks import check_choice
from scoreline.runtime.memory import memory_limit
from scoreline.runtime.npy import map_array
from scoreline.runtime.types import AnyArray, FloatArray

logger = logging.getLogger("scoreline")

FORMAT, VERSION, HEADER = "scoreline mapped data", 1, "header.json"
FLOATS, INTEGERS = ("float64", "float32"), ("int32", "int64")
TYPES = {
    "X": FLOATS, "data": FLOATS, "largest": FLOATS[:1], "indices": INTEGERS, "indptr": INTEGERS, "labels": ("int8",),
    "letters": ("uint8",), "starts": ("uint64",), "codes": ("uint8",),
}  # fmt: skip
FEATURES = "features.npz"  # of a folder of codes: what its codes stand for
FEATURES_KIND, FEATURES_VERSION = "scoreline features", 1
MAX_CLASSES = 100
REREAD_BYTES = 1 << 24  # per read of a file that was written before
COLUMN_VECTORS = 8  # vectors with one number per column that conversion and training need at least
FILES = {
    "csr": ("data", "indices", "indptr", "largest"), "dense": ("X", "largest"), "codes": ("codes",),
    "sequences": ("letters", "starts"), "sequences of one length": ("letters",),
}  # fmt: skip


def convert(
    source: Any, folder: Any, *, dtype: str = "float64", overwrite: bool = False, features: Any = None, **options: Any
) -> Path:
    """Write a data set into a folder that `open_mapped` trains from without reading it into memory.

    The source is read in blocks (.npz in one piece), so memory use stays small. The folder appears only when it is complete;
    a conversion that was interrupted starts again from the beginning.

    Parameters
    ----------
    source : path, frame, tuple (X, y) or Source
        A file as for `read_data`, a frame, arrays in memory, or a `scoreline.io.sources.Source` of your own.
    folder : path
        The folder to create; its parent folder must exist.
    dtype : {"float64", "float32"}
        Type of the numbers on disk. float32 halves the time of a pass over dense data that is read from the disk.
    overwrite : bool
        Replace an existing folder once the new one is complete. If `folder` is a symbolic link, the folder that it points
        to is replaced.
    features : "additive", Additive or FittedFeatures, optional
        Store the codes of additive features, a byte per value, and no numbers. Fits of features="additive", "pairs" or
        "auto" then begin at once. Bins are learnt from these rows; for test rows and rows to predict, pass the
        `feature_map` of the training rows, `open_mapped(folder).X.feature_map`. During the conversion the numbers take
        their place on the disk, too.
    **options
        How to read the source, as for `read_data`: label, positive, categories, drop, missing, impute, zero_based, ... For test
        rows and rows to predict, pass the `encoding` of the training rows.

    Returns
    -------
    Path
        The folder.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from sklearn.datasets import load_breast_cancer
    >>> from scoreline import MeasureClassifier
    >>> from scoreline.io import convert, open_mapped
    >>> folder = convert(load_breast_cancer(return_X_y=True), pathlib.Path(tempfile.mkdtemp(), "cancer"))
    >>> data = open_mapped(folder)
    >>> clf = MeasureClassifier("f1", scaling="standard").fit(data.X, data.y)
    """
    check_choice("dtype", dtype, ("float64", "float32"))
    learner = Additive() if isinstance(features, str) and features == "additive" else features
    if not (learner is None or isinstance(learner, FittedFeatures) or type(learner) is Additive):
        raise ValueError(
            f"features={features!r:.100} must be 'additive', an Additive object or the feature_map of a folder"
        )
    given = Path(folder).absolute()
    folder = _target(given)
    if not folder.parent.is_dir():
        raise ValueError(f"folder={str(folder)!r} is in a folder that does not exist; create it first")
    with _lock(folder):
        old, part = (folder.with_name(f".{folder.name}.{end}") for end in ("old", "part"))
        if old.exists() and not old.is_symlink() and not folder.exists():  # killed between the two renames below
            old.rename(folder)
        _remove(old)
        _check_place(folder, overwrite)
        opened = open_source(source, **options)
        if part.exists():
            logger.info("%s: an earlier conversion was interrupted; starting again", folder)
        _remove(part)
        part.mkdir()
        try:
            _fill(part, opened, dtype, learner)
            if folder.exists():
                folder.rename(old)
            part.rename(folder)
            sync_folder(folder.parent)
        finally:
            if old.exists() and not folder.exists():
                old.rename(folder)
            _remove(old)
            _remove(part)
    return given


def _target(folder: Path) -> Path:
    """Return the folder that a symbolic link points to; only that folder is replaced, as by `atomic_file`."""
    return Path(os.path.realpath(folder)) if folder.is_symlink() else folder


def _remove(path: Path) -> None:
    """Remove a folder, a file, or a link but not its target, if there is one."""
    if path.is_symlink() or path.is_file():
        path.unlink()
    else:
        shutil.rmtree(path, ignore_errors=True)


def _check_place(folder: Path, overwrite: bool) -> None:
    """Raise if the folder exists and may not be replaced: only folders that `convert` made, without other files, may."""
    if not folder.exists():
        return
    place = f"folder={str(folder)!r}"
    if not overwrite:
        raise ValueError(f"{place} exists already; pass overwrite=True to replace it, or choose another")
    if not folder.is_dir():
        raise ValueError(f"{place} is a file, which is not replaced; choose another path, or remove the file")
    try:
        _header(folder)
    except ValueError as error:
        raise ValueError(f"{place} exists and was not made by convert; it is not replaced") from error
    foreign = sorted({path.name for path in folder.iterdir()} - {HEADER, FEATURES, *(f"{name}.npy" for name in TYPES)})
    if foreign:
        raise ValueError(f"{place} holds {foreign[0]!r}, which convert did not make; it is not replaced")


def _fill(part: Path, opened: Source, dtype: str, learner: Additive | FittedFeatures | None) -> None:
    """Write the rows of a source, or their codes, and the header."""
    if learner is not None and isinstance(opened, SequenceSource):
        raise ValueError("features='additive' needs columns of numbers, got sequences")
    writer = SequencesWriter(part, "uint8") if isinstance(opened, SequenceSource) else RowsWriter(part, dtype)
    try:
        for X, labels in opened.blocks():
            writer.append(X, labels)
            logger.info("converting %s: %d rows", opened.name, writer.rows)
        header = writer.finish(*opened.width())
        if learner is not None:
            header |= _code(part, header, learner, opened.names)
    except UnfitError as error:
        raise ValueError(f"{opened.name}: {error}") from None
    encoding = None if opened.encoding is None else opened.encoding.to_json()
    header |= {"names": opened.names, "encoding": encoding, "source": opened.name, "class_names": opened.class_names}
    header["files"] = {}
    for path in sorted([*part.glob("*.npy"), *part.glob(FEATURES)]):
        header["files"][path.name] = {"bytes": path.stat().st_size, "crc32": checksum(path)}
        with path.open("r+b") as file:  # Windows flushes only files that are open for writing
            os.fsync(file.fileno())
    with atomic_file(part / HEADER) as file:
        file.write(json.dumps({"format": FORMAT, "version": VERSION, **header}, indent=1).encode())


def _code(
    part: Path, header: dict[str, Any], learner: Additive | FittedFeatures, names: list[str] | None
) -> dict[str, Any]:
    """Replace the numbers of a folder by their codes, and return what changes in the header."""
    n, p = header["shape"]
    rows = MappedCsr(part, (n, p)) if header["storage"] == "csr" else MappedDense(part)
    codes = np.lib.format.open_memmap(part / "codes.npy", mode="w+", dtype=np.uint8, shape=(p, n))
    if isinstance(learner, FittedFeatures):
        features = learner
        features.codes(rows, codes)
    else:
        table = columns_of(rows)
        table.names = names
        features = learner.learnt(table, None, (0,) * p, codes).feature_map
    codes.flush()
    del rows, codes
    for name in FILES[header["storage"]]:
        (part / f"{name}.npy").unlink()
    write_archive(part / FEATURES, FEATURES_KIND, FEATURES_VERSION, features.record())
    return {"storage": "codes", "dtype": "uint8"}


@contextmanager
def _lock(folder: Path) -> Iterator[None]:
    """Hold a lock against other conversions to the same folder; the lock ends with the process."""
    path = folder.with_name(f".{folder.name}.lock")
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)  # Windows has no such flag
    while True:
        try:  # without following a link or emptying a file that another user put there
            lock = os.fdopen(os.open(path, flags, 0o666), "r+")
        except OSError as error:
            raise OSError(
                error.errno, f"cannot write {path}: {error.strerror}; remove it, or choose another folder"
            ) from error
        try:
            lock_file(lock)
            if path.exists() and path.stat().st_ino == os.fstat(lock.fileno()).st_ino:
                break
        except BlockingIOError:
            lock.close()
            raise ValueError(
                f"another process is converting to {folder} just now; wait for it, or choose another"
            ) from None
        lock.close()  # its last owner removed the file after it was opened here, before it was locked
    try:
        yield
    finally:
        with suppress(PermissionError):  # Windows keeps a file that is open; the next conversion uses it
            path.unlink(missing_ok=True)
        lock.close()


def open_mapped(folder: Any, *, verify: bool = False, rows: tuple[int, int] | None = None) -> Dataset:
    """Open a folder that `convert` has written. X stays on the disk and is read when it is needed.

    Results have the same bits as with the same data in memory, in C order or canonical CSR. Opening reads the labels, and
    the indices of sparse rows, once.

    Parameters
    ----------
    folder : path
        The folder.
    verify : bool
        Also compare all files with their checksums, which reads them once.
    rows : (first, one past the last), optional
        Open only these rows. The largest magnitudes of the features are still those of all rows.

    Returns
    -------
    Dataset
        X as an Operator, y, names of the features, and the encoding if it was a table.

    Raises
    ------
    ValueError
        If the folder is not complete, damaged, or written by a newer version.
    """
    folder = Path(folder).absolute()
    header = _header(folder)
    try:
        storage, (n, p) = header["storage"], header["shape"]
        if type(n) is not int or type(p) is not int or min(n, p) < 1:
            raise ValueError(f"shape={header['shape']!r:.100} must be two whole numbers above 0")
        if "alphabet" in header:
            raise UnfitError("it holds sequences, which scoreline.io.open_sequences opens")
        labelled = header["classes"] is not None
        for name in (*FILES[storage], "labels") if labelled else FILES[storage]:
            _check_file(folder / f"{name}.npy", header["files"][f"{name}.npy"], verify)
        span = (0, n) if rows is None else (max(0, int(rows[0])), min(n, int(rows[1])))
        shape, bounds = (max(0, span[1] - span[0]), p), () if span == (0, n) else span
        if storage == "codes":
            operator: Any = _open_codes(folder, header, p, bounds)
            shape = (shape[0], operator.shape[1])
        else:
            operator = MappedCsr(folder, shape, *bounds) if storage == "csr" else MappedDense(folder, *bounds)
        if operator.shape != shape:
            raise ValueError(f"X has shape {operator.shape}, the header says {(n, p)}")
        if storage != "codes":
            operator.largest = np.array(advised_array(folder / "largest.npy"), dtype=np.float64)
            if operator.largest.shape != (p,) or not np.isfinite(operator.largest).all():
                raise ValueError("largest.npy does not hold a finite number for every column")
        y = _labels(folder, header["classes"], n, slice(*span)) if labelled else None
        encoding = None if header["encoding"] is None else Encoding.from_json(header["encoding"])
        if encoding is not None and encoding.n_features != p:
            raise ValueError(f"the encoding has {encoding.n_features} features, X has {p}")
        names, class_names = header["names"], header.get("class_names")
        if names is not None and not _are_texts(names, p):
            raise ValueError(f"there is not one name for each of {p} features")
        if class_names is not None and not _are_texts(class_names, 2):
            raise ValueError("class_names of the header are not two texts")
        return Dataset(operator, y, names, encoding, class_names)
    except UnfitError as error:
        raise ValueError(f"{folder}: {error}") from None
    except Exception as error:  # a damaged header can cause any kind of error
        raise _damaged(folder, error) from error


def _open_codes(folder: Path, header: dict[str, Any], p: int, rows: tuple[int, ...]) -> MappedCodes:
    """Return the codes of a folder as an operator that knows what they stand for."""
    expected = header["files"][FEATURES]
    check_plain(folder / FEATURES)
    if (folder / FEATURES).stat().st_size != expected["bytes"] or checksum(folder / FEATURES) != expected["crc32"]:
        raise ValueError(f"{FEATURES} has changed: its checksum is not that of the header")
    features = FittedFeatures.restored(read_archive(folder / FEATURES, FEATURES_KIND, FEATURES_VERSION))
    if features.n_columns != p or len(features.groups) != p:
        raise ValueError(f"{FEATURES} has functions of {features.n_columns} columns, X has {p}")
    operator = MappedCodes(folder, features.groups, *rows)
    operator.feature_map = features
    return operator


def convert_sequences(source: Any, folder: Any, *, alphabet: str = "ACGT", overwrite: bool = False) -> Path:
    """Write sequences into a folder of one byte per letter, from which `open_sequences` trains without reading it into memory.

    Parameters
    ----------
    source : tuple (sequences, y), or iterable of such tuples
        Sequences as for `StringOperator`, and their labels, None if there are none. An iterable gives the rows block by block,
        so memory stays small: a generator, or the chunks of a table.
    folder : path
        The folder to make; the folder that it lies in must exist.
    alphabet : str
        The letters; any other letter is kept as unknown.
    overwrite : bool
        Replace a folder that is there, when the new one is complete.

    Returns
    -------
    Path
        The folder.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from scoreline.io import convert_sequences, open_sequences
    >>> blocks = ((["ACGT", "TTGA"], [1, 0]) for _ in range(3))
    >>> folder = convert_sequences(blocks, pathlib.Path(tempfile.mkdtemp(), "dna"))
    >>> data = open_sequences(folder)
    >>> len(data.X), data.X.length, data.y.tolist()
    (6, 4, [1, 0, 1, 0, 1, 0])
    """
    return convert(SequenceSource(source, alphabet), folder, overwrite=overwrite)


def open_sequences(folder: Any, *, verify: bool = False, rows: tuple[int, int] | None = None) -> Dataset:
    """Open a folder that `convert_sequences` has written: letters stay on the disk, and are read during each product.

    Parameters
    ----------
    folder : path
        The folder.
    verify : bool
        Also compare all files with their checksums, which reads them once.
    rows : (first, one past the last), optional
        Only these rows.

    Returns
    -------
    Dataset
        X as Sequences, which `StringOperator(data.X, degree=...)` makes features of, and y.

    Raises
    ------
    ValueError
        If the folder is not complete, damaged, written by a newer version, or holds something else.
    """
    folder = Path(folder).absolute()
    header = _header(folder)
    try:
        if "alphabet" not in header:
            raise UnfitError("it holds rows of numbers, which scoreline.io.open_mapped opens")
        n, length, alphabet = header["shape"][0], header["length"], header["alphabet"]
        check_alphabet(alphabet)
        if type(n) is not int or n < 1 or not (length is None or (type(length) is int and length >= 0)):
            raise ValueError(f"{n!r:.50} rows of length {length!r:.50} cannot be")
        labelled = header["classes"] is not None
        for name in (*FILES[header["storage"]], "labels") if labelled else FILES[header["storage"]]:
            _check_file(folder / f"{name}.npy", header["files"][f"{name}.npy"], verify)
        start, stop = (0, n) if rows is None else (max(0, int(rows[0])), min(n, int(rows[1])))
        X = MappedSequences(folder, alphabet, length, start, stop)
        y = _labels(folder, header["classes"], n, slice(start, stop)) if labelled else None
        return Dataset(X, y, class_names=header.get("class_names"))
    except UnfitError as error:
        raise ValueError(f"{folder}: {error}") from None
    except Exception as error:  # a damaged header can cause any kind of error
        raise _damaged(folder, error) from error


def holds_sequences(folder: Any) -> bool:
    """Tell whether a folder is one that `convert_sequences` has written."""
    return "alphabet" in _header(Path(folder).absolute())


def _damaged(folder: Path, error: Exception) -> ValueError:
    return ValueError(f"{folder} is damaged ({type(error).__name__}: {error!s:.300}); convert the data again")


def _labels(folder: Path, names: Any, n: int, rows: slice) -> AnyArray:
    """Return the labels of some of the n rows; `names` are the classes as the header has them."""
    codes, classes = advised_array(folder / "labels.npy"), np.array(names)
    mixed = len({str if type(label) is str else float for label in names}) > 1
    if mixed or classes.ndim != 1 or classes.dtype.kind not in "biufU" or len(np.unique(classes)) < len(classes):
        raise ValueError("the classes of the header are not distinct numbers or texts")
    if codes.shape != (n,) or codes.min() < 0 or codes.max() >= len(classes):
        raise ValueError("labels.npy does not hold a class for every row")
    if classes.dtype == np.int64 and np.abs(classes).max() < 128:
        classes = classes.astype(np.int8)  # +1 and -1 need one byte per row, not eight
    return np.asarray(classes[codes[rows]])


def _are_texts(values: Any, count: int) -> bool:
    return isinstance(values, list) and len(values) == count and all(isinstance(value, str) for value in values)


def n_rows(folder: Any) -> int:
    """Return the number of rows of a folder, from its header alone."""
    folder = Path(folder).absolute()
    try:
        return int(_header(folder)["shape"][0])
    except (KeyError, TypeError, IndexError, OverflowError) as error:
        raise ValueError(f"{folder / HEADER} is damaged: it has no shape; convert the data again") from error


def source_name(folder: Any) -> str:
    """Return the name of the source that a folder was converted from."""
    return str(_header(Path(folder).absolute()).get("source"))


def _header(folder: Path) -> dict[str, Any]:
    """Return the header of a folder; errors say why there is none."""
    if not folder.is_dir():
        if folder.exists():
            raise ValueError(f"{folder} is a file, expected a folder made by convert; read_data reads files")
        target = _target(folder)
        left = any(target.with_name(f".{target.name}.{end}").exists() for end in ("lock", "part", "old"))
        hint = "; a conversion to it is running or was interrupted: wait for it, or run it again" if left else ""
        raise FileNotFoundError(f"there is no folder {folder}{hint}")
    try:
        check_plain(folder / HEADER)
        header = read_json((folder / HEADER).read_bytes())
    except FileNotFoundError:
        raise ValueError(f"{folder} has no {HEADER}: it was not made by convert, or is not complete") from None
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{folder / HEADER} is damaged ({error}); convert the data again") from error
    if not isinstance(header, dict) or header.get("format") != FORMAT or type(header.get("version")) is not int:
        raise ValueError(f"{folder / HEADER} was not made by convert: expected format {FORMAT!r}")
    if header["version"] < 1:
        raise ValueError(
            f"{folder / HEADER} has version={header['version']}, expected {VERSION}; convert the data again"
        )
    if header["version"] > VERSION:
        raise ValueError(
            f"{folder} was written by a newer scoreline (format {header['version']}, this one reads up to {VERSION}): upgrade"
        )
    return header


def _check_file(path: Path, expected: dict[str, Any], verify: bool) -> None:
    """Raise unless a file agrees with the header in size and type, and with `verify` also in its checksum."""
    check_plain(path)
    size = path.stat().st_size
    if size != expected["bytes"]:
        raise ValueError(f"{path.name} has {size} bytes, the header says {expected['bytes']}")
    try:
        array = map_array(path)
    except ValueError as error:
        raise ValueError(f"{path.name} is not a .npy file ({error!s:.300})") from error
    if array.dtype not in TYPES[path.stem] or not array.flags.c_contiguous:
        raise ValueError(f"{path.name} holds {array.dtype}, expected one of {', '.join(TYPES[path.stem])}")
    dimensions = 2 if path.stem in ("X", "codes") else 1
    if array.ndim != dimensions:
        raise ValueError(f"{path.name} has {array.ndim} dimensions, expected {dimensions}")
    if verify and checksum(path) != expected["crc32"]:
        raise ValueError(f"{path.name} has changed: its checksum is not that of the header")


def check_width(width: int) -> None:
    """Raise if the vectors of a fit with so many columns would not fit into memory, as after one wrong, huge index."""
    if 8.0 * width * COLUMN_VECTORS > 0.5 * memory_limit():
        raise UnfitError(
            f"there are {width:,} columns, and {COLUMN_VECTORS} vectors of coefficients for them take more than half of the "
            "memory; number the features without gaps, or correct the largest index"
        )


class GrowingArray:
    """An .npy file to which rows are appended; NumPy reserves space in the header for any number of rows."""

    def __init__(self, path: Path, dtype: Any, width: int | None = None):
        self.path, self.dtype, self.width, self.length = path, np.dtype(dtype), width, 0
        self._file = path.open("wb")
        self._write_header()

    def append(self, rows: AnyArray) -> None:
        """Write rows at the end."""
        self._file.write(np.ascontiguousarray(rows, dtype=self.dtype).data)
        self.length += len(rows)

    def close(self) -> None:
        """Write the final length into the header."""
        self._file.seek(0)
        self._write_header()
        self._file.close()

    def _write_header(self) -> None:
        shape = (self.length,) if self.width is None else (self.length, self.width)
        header = {"descr": np.lib.format.dtype_to_descr(self.dtype), "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(self._file, header)

    def converted(self, dtype: Any) -> "GrowingArray":
        """Rewrite the rows in the same file as another type, and return the open file."""
        self.close()
        other = GrowingArray(self.path.with_suffix(".new"), dtype, self.width)
        for piece in pieces(map_array(self.path)):
            other.append(piece)
        other.path = other.path.replace(self.path)
        return other


def pieces(array: AnyArray) -> Any:
    """Yield an array in pieces of at most REREAD_BYTES bytes."""
    step = max(1, REREAD_BYTES // max(1, array.itemsize * int(np.prod(array.shape[1:]))))
    for start in range(0, len(array), step):
        yield array[start : start + step]


def checksum(path: Path) -> int:
    """Return the CRC-32 of a file."""
    value = 0
    with path.open("rb") as file:
        while block := file.read(REREAD_BYTES):
            value = zlib.crc32(block, value)
    return value


class RowsWriter:
    """Appends blocks of rows and labels; `finish` returns the entries of the folder's header.

    Sparse rows become CSR with sorted, distinct indices per row: data, indices (int32 until one does not fit) and indptr.
    Dense rows become X. Labels are stored as codes of the classes. `largest` is the largest magnitude of every column.
    """

    def __init__(self, folder: Path, dtype: Any):
        self.folder, self.dtype = folder, np.dtype(dtype)
        self.rows = self.entries = 0
        self.files: dict[str, GrowingArray] = {}
        self.largest: FloatArray = np.zeros(0)
        self._codes: dict[Any, int] = {}

    def append(self, X: Any, labels: AnyArray | None) -> None:
        """Write a block; entries that are not finite are an error with their row (from 1) and column (from 0)."""
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
        if X.shape[1] > INT32_MAX + 1 and self._file("indices", np.int32).dtype == np.int32:
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
        """Return values as the type on disk, or raise if one of them is not finite in it."""
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
        if len(self._codes) > MAX_CLASSES:
            raise UnfitError(
                f"there are more than {MAX_CLASSES} different labels, which look like measured values; bin them into classes"
            )
        table = np.array([self._codes[value] for value in values.tolist()], dtype=np.int8)
        self._file("labels", np.int8).append(table[codes.ravel()])

    def finish(self, width: int, first_index: int = 0) -> dict[str, Any]:
        """Complete the files of a matrix with `width` columns, in which the first feature has index `first_index`."""
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
        if "indptr" in self.files and self.entries <= INT32_MAX:
            self.files["indptr"] = self.files["indptr"].converted(np.int32)
        if "indptr" in self.files and not self.entries:  # without any entry the files must exist all the same
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


class SequencesWriter(RowsWriter):
    """Appends blocks of Sequences and labels: letters, and where rows start unless all have the same length."""

    def __init__(self, folder: Path, dtype: Any):
        super().__init__(folder, dtype)
        self.alphabet, self.lengths = "", set[int]()

    def append(self, X: Any, labels: AnyArray | None) -> None:
        """Take in a block."""
        if labels is not None:
            self._append_labels(labels)
        if not self.rows:
            self._file("starts", np.uint64).append(np.zeros(1))
        sizes = np.full(len(X), X.length) if X.starts is None else np.diff(X.starts).astype(np.int64)
        self._file("starts", np.uint64).append(self.entries + np.cumsum(sizes))
        self._file("letters", self.dtype).append(X.letters)
        self.lengths.update({int(sizes.min()), int(sizes.max())})
        self.rows, self.entries, self.alphabet = self.rows + len(X), self.entries + len(X.letters), X.alphabet

    def finish(self, width: int, first_index: int = 0) -> dict[str, Any]:
        """Complete the files."""
        header = super().finish(width)
        (self.folder / "largest.npy").unlink()
        length = self.lengths.pop() if len(self.lengths) == 1 else None
        if length is not None:
            (self.folder / "starts.npy").unlink()
        storage = "sequences" if length is None else "sequences of one length"
        return header | {"storage": storage, "alphabet": self.alphabet, "length": length}
