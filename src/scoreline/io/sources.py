"""Where rows come from, block by block: files of text, tables, arrays. `open_source` is the only place that asks which."""

import zipfile
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from scoreline.io.columns import listed
from scoreline.io.encoding import Encoding
from scoreline.io.files import check_plain
from scoreline.io.libsvm import OPENERS, check_indices, libsvm_pieces, read_libsvm, whole_numbers
from scoreline.io.mapped_writer import UnfitError
from scoreline.io.model_archive import read_npy
from scoreline.io.tables import (
    ARROW,
    PARQUET,
    SEPARATORS,
    Table,
    check_encoding,
    learn_table,
    load_table,
    table_blocks,
    warn_unseen,
)
from scoreline.operators.convert import frame_values
from scoreline.runtime.checks import check_number
from scoreline.runtime.memory import memory_limit
from scoreline.runtime.npy import map_array
from scoreline.runtime.types import AnyArray

BLOCK_BYTES = 1 << 25
TABLES, ARRAYS = (*SEPARATORS, *PARQUET, *ARROW), (".npy", ".npz")
NPZ_PARTS = ("X", "y", "data", "indices", "indptr", "shape", "format")  # what an .npz file may have for us
Block = tuple[Any, AnyArray | None]


class Source(ABC):
    """Rows with labels; a subclass writes `blocks` and `width`, and `whole` where all rows are had in a better way.

    Attributes
    ----------
    name : str
        What messages call it.
    names : list of str or None
        Names of the features.
    encoding : Encoding or None
        How columns of a table became features.
    class_names : list of str or None
        What labels False and True stand for.
    """

    name = "the arrays"
    names: list[str] | None = None
    encoding: Encoding | None = None
    class_names: list[str] | None = None

    @abstractmethod
    def blocks(self) -> Iterator[Block]:
        """Yield blocks of rows, dense or CSR, with their labels, in bounded memory."""

    @abstractmethod
    def width(self) -> tuple[int, int]:
        """Return the number of features, and the index of the first one in the blocks; known when all have been read."""

    def whole(self) -> Block:
        """Return all rows and labels: the blocks put together."""
        matrices, labels = zip(*self.blocks(), strict=True)
        X: Any = sp.vstack(matrices, format="csr") if sp.issparse(matrices[0]) else np.concatenate(matrices)
        return X, None if labels[0] is None else np.concatenate(labels)


def open_source(source: Any, *, label: Any = None, positive: Any = None, **options: Any) -> Source:
    """Return the source of a path, a frame or a tuple (X, y); see `read_data` for the options."""
    if isinstance(source, Source):
        _no(options, label, "a Source")
        opened: Source = source
    elif isinstance(source, tuple) and len(source) == 2:
        opened = ArraySource(*source, **_no(options, label, "arrays"))
    elif not isinstance(source, (str, Path)):
        opened = TableSource(source, label, **options)
    else:
        path = Path(source)
        if not path.exists():
            raise FileNotFoundError(f"{path} does not exist")
        if path.is_dir():
            raise ValueError(f"{path} is a folder, expected a file; open_mapped opens folders that convert has made")
        suffix = Path(path.stem).suffix.lower() if path.suffix.lower() in (*OPENERS, ".zst") else path.suffix.lower()
        if suffix in TABLES:
            opened = TableSource(path, label, **options)
        elif path.suffix.lower() in ARRAYS:
            opened = array_file(path, label, **options)
        else:
            opened = LibsvmSource(path, **_no(options, label, "LIBSVM text", ("zero_based", "n_features")))
        opened.name = str(path)
    return opened if positive is None else OneAgainstRest(opened, positive)


def is_empty(value: Any) -> bool:
    """Tell whether an option was left out, or names nothing."""
    return value is None or (hasattr(value, "__len__") and not isinstance(value, str) and len(value) == 0)


def _no(options: dict[str, Any], label: Any, what: str, known: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return options, or raise if one of them is for tables."""
    given = {name: value for name, value in {**options, "label": label}.items() if not is_empty(value)}
    for name in given:
        if name not in known:
            raise ValueError(
                f"{name}={given[name]!r} does not go with {what}, which takes {', '.join(known) or 'no options'}"
            )
    return given


class LibsvmSource(Source):
    """A file of LIBSVM text."""

    def __init__(self, path: Path, zero_based: bool | str = "auto", n_features: int | None = None):
        self.path, self.zero_based, self.n_features = path, zero_based, n_features
        check_indices(zero_based, n_features)
        self._lowest, self._highest = 2**62, -1

    def whole(self) -> Block:
        """Return all rows and labels."""
        X, y = read_libsvm(self.path, zero_based=self.zero_based, n_features=self.n_features)
        return X, whole_numbers(y)

    def blocks(self) -> Iterator[Block]:
        """Yield blocks; indices as they are written."""
        self._lowest, self._highest = 2**62, -1
        for piece in libsvm_pieces(self.path, self.n_features, self.zero_based):
            self._lowest, self._highest = min(self._lowest, piece.lowest), max(self._highest, piece.highest)
            parts = (piece.data, piece.indices, piece.indptr)
            yield sp.csr_array(parts, shape=(len(piece.labels), self._highest + 1)), whole_numbers(piece.labels)

    def width(self) -> tuple[int, int]:
        """Return the number of features and the index of the first."""
        first = int(self._lowest > 0) if self.zero_based == "auto" else int(not self.zero_based)
        return (max(1, self._highest + 1 - first) if self.n_features is None else self.n_features), first


class TableSource(Source):
    """A table: CSV, Parquet, Arrow, or a frame."""

    def __init__(self, source: Any, label: Any, **options: Any):
        for name in ("zero_based", "n_features"):
            if options.pop(name, None) not in (None, "auto"):
                raise ValueError(f"{name} is for LIBSVM text, and the source is a table")
        self.source, self.label, self.options = source, label, options
        self.encoding = options.get("encoding")
        if self.encoding is not None:
            check_encoding(self.encoding, options)
        if not isinstance(source, (str, Path)):
            self.name = "the table"

    def whole(self) -> Block:
        """Return all rows and labels."""
        X, y, self.encoding = load_table(self.source, self.label, **self.options)
        self.names = self.encoding.names
        return X, y

    def blocks(self) -> Iterator[Block]:
        """Yield blocks; unless the encoding is known, it is learnt first, in a pass of its own."""
        options = {
            name: value for name, value in self.options.items() if name not in ("encoding", "separator", "missing")
        }
        known = self.options.get("encoding")
        missing = [*(self.options.get("missing") or ()), *(known.missing if known is not None else ())]
        table = Table.open(self.source, missing=missing, separator=self.options.get("separator"))
        if known is None:
            if self.label is None:
                raise ValueError(
                    f"{table.name}: label=None, expected the column of labels: one of {listed(table.columns)}"
                )
            self.encoding = learn_table(table, self.label, **options)
        assert self.encoding is not None
        self.names, rows = self.encoding.names, 0
        self.encoding.forget_unseen()
        for X, y in table_blocks(table, self.encoding, self.label):
            rows += X.shape[0]
            yield X, y
        if known is not None:
            warn_unseen(self.encoding, self.source, rows)

    def width(self) -> tuple[int, int]:
        """Return the number of features and the index of the first."""
        assert self.encoding is not None
        return self.encoding.n_features, 0


class ArraySource(Source):
    """Arrays: X dense or sparse, and labels or None."""

    def __init__(self, X: Any, y: Any = None, label: int | None = None):
        self.label = label  # column of a dense X that holds the labels and is left out
        if sp.issparse(X) and X.format in ("csr", "csc"):
            X.check_format(full_check=True)
        X = frame_values(X)
        self.X = X.tocsr() if sp.issparse(X) else np.asarray(X)
        self.y = None if y is None else np.asarray(y)
        if self.X.ndim != 2 or min(self.X.shape) < 1:
            raise UnfitError(f"X has shape {self.X.shape}, expected rows and columns")
        if self.X.dtype.kind not in "biuf":
            raise UnfitError(f"X has dtype {self.X.dtype}, expected numbers; encode text first, or pass a frame")
        if self.y is not None and self.y.shape != (self.X.shape[0],):
            raise UnfitError(f"y has shape {self.y.shape}, expected one label for each of {self.X.shape[0]} rows")

    def whole(self) -> Block:
        """Return X and y."""
        return self._features(self.X), self.y

    def blocks(self) -> Iterator[Block]:
        """Yield blocks of about 32 MB."""
        n = self.X.shape[0]
        stored: Any = self.X.data if sp.issparse(self.X) else self.X
        step = max(1, int(BLOCK_BYTES * n / max(1, stored.nbytes)))
        for start in range(0, n, step):
            y = None if self.y is None else self.y[start : start + step]
            yield self._features(self.X[start : start + step]), y

    def width(self) -> tuple[int, int]:
        """Return the number of columns, 0."""
        return self.X.shape[1] - (self.label is not None), 0

    def _features(self, X: Any) -> Any:
        return X if self.label is None else np.delete(X, self.label, axis=1)


def array_file(path: Path, label: Any, **options: Any) -> ArraySource:
    """Return the arrays of an .npz file (X and y, or a SciPy matrix and y) or of an .npy file (`label`: number of a column)."""
    _no(options, None, "an array file", ("label",))
    try:
        return _array_file(path, label)
    except UnfitError as error:
        raise ValueError(f"{path}: {error}") from error.__cause__


def _array_file(path: Path, label: Any) -> ArraySource:
    suffix = path.suffix.lower()
    try:
        check_plain(path)
        if suffix == ".npy":
            arrays: Any = map_array(path)
        else:
            arrays = _npz_arrays(path)
    except (FileNotFoundError, PermissionError):
        raise
    except Exception as error:  # zipfile, zlib and NumPy have many ways to fail on bytes that are not theirs
        raise ValueError(
            f"{path} cannot be read as {suffix} ({error!s:.300}); it is damaged, or holds objects"
        ) from error
    if suffix == ".npz":
        if label is not None:
            raise ValueError(f"label={label!r} is for tables; an .npz file has the labels in its array y")
        if "X" in arrays:
            return ArraySource(arrays["X"], arrays.get("y"))
        try:
            parts = arrays["data"], arrays["indices"], arrays["indptr"]
            columns = np.asarray(arrays.get("format", b"csr")).item() in (b"csc", "csc")
            shape = tuple(arrays["shape"].tolist())
            if columns and 8.0 * shape[0] > 0.25 * memory_limit():  # which CSR needs for the starts of so many rows
                raise ValueError(f"shape={shape}: so many rows take more than a quarter of the memory")
            matrix = (sp.csc_array if columns else sp.csr_array)(parts, shape=shape)
            matrix.check_format(full_check=True)  # indices out of range would lead SciPy out of memory
            return ArraySource(matrix, arrays.get("y"))
        except (KeyError, ValueError, TypeError, AttributeError, IndexError, OverflowError) as error:
            raise ValueError(
                f"{path} holds {sorted(arrays)}, expected arrays X and y, or data, indices, indptr, shape and y ({error})"
            ) from error
    if arrays.ndim != 2:
        raise ValueError(f"{path} has {arrays.ndim} dimension(s), expected 2: rows and columns")
    if label is None:
        return ArraySource(arrays)
    check_number("label", label, least=-arrays.shape[1], integer=True)
    if label >= arrays.shape[1]:
        raise ValueError(f"label={label!r} is not a column of {path}, which has {arrays.shape[1]}")
    return ArraySource(arrays, arrays[:, label], int(label) % arrays.shape[1])


def _npz_arrays(path: Path) -> dict[str, AnyArray]:
    """Return the arrays of an .npz file that are looked at: none larger than it says, together no more than memory holds."""
    with zipfile.ZipFile(path) as archive:
        members = {member.filename.removesuffix(".npy"): member for member in archive.infolist()}
        known = {name: member for name, member in members.items() if name in NPZ_PARTS}
        asked, room = sum(member.file_size for member in known.values()), 0.25 * memory_limit()
        if asked > room:
            raise ValueError(
                f"its arrays unpack to {asked:.3g} bytes, more than a quarter of the memory; save X as .npy"
            )
        found = {name: read_npy(archive.read(member), "biufSU") for name, member in known.items()}
    return found | {name: np.zeros(0) for name in members if name not in known}  # for messages their names are enough


class OneAgainstRest(Source):
    """A source whose labels become True where they are `positive`, and False elsewhere."""

    def __init__(self, inner: Source, positive: Any):
        self.inner, self.positive, self.name = inner, positive, inner.name
        self.names, self.encoding = inner.names, inner.encoding

    def whole(self) -> Block:
        """Return all rows, and whether they are positive."""
        X, y = self.inner.whole()
        self.names, self.encoding = self.inner.names, self.inner.encoding
        truth, others = self._truth(y), set[Any]()
        if truth is not None and y is not None:
            others.update(np.unique(y[~truth]).tolist())
            if not truth.any():
                raise self._never(sorted(others))
        self._name(others)
        return X, truth

    def blocks(self) -> Iterator[Block]:
        """Yield blocks, and whether their rows are positive."""
        others: set[Any] = set()
        found = False
        for X, y in self.inner.blocks():
            self.names, self.encoding = self.inner.names, self.inner.encoding
            truth = self._truth(y)
            if truth is not None and y is not None:
                others.update(np.unique(y[~truth]).tolist())
            found = found or truth is None or bool(truth.any())
            yield X, truth
        if not found:
            raise self._never(sorted(others))
        self._name(others)

    def _name(self, others: set[Any]) -> None:
        """Say what False and True stand for."""
        self.class_names = [str(others.pop()) if len(others) == 1 else f"not {self.positive}", str(self.positive)]

    def width(self) -> tuple[int, int]:
        """Return the number of features and the index of the first."""
        return self.inner.width()

    def _truth(self, y: AnyArray | None) -> AnyArray | None:
        if y is None:
            return None
        positive = self.positive
        if y.dtype.kind in "biuf" and isinstance(positive, str):  # from a command line
            try:
                positive = {"true": True, "false": False}[positive.lower()] if y.dtype.kind == "b" else float(positive)
            except (KeyError, ValueError):
                return np.zeros(len(y), dtype=bool)
        return np.asarray(y == (str(positive) if y.dtype.kind == "U" else positive))

    def _never(self, labels: list[Any]) -> ValueError:
        shown = ", ".join(map(repr, labels[:10])) + (", ..." if len(labels) > 10 else "")
        return ValueError(f"positive={self.positive!r} is not a label of {self.name}, which has {shown}")
