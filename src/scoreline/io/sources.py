"""Sources of rows, block by block: text files, tables and arrays. Only `open_source` asks for the kind of a source."""

import zipfile
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from scoreline.io.columns import TableError, label_values, listed, names_of
from scoreline.io.encoding import MIN_CATEGORY_ROWS, Encoding
from scoreline.io.files import check_plain
from scoreline.io.libsvm import as_integers, check_indices, index_columns, libsvm_pieces, read_libsvm
from scoreline.io.model_archive import read_npy
from scoreline.io.tables import TABLES, CsvTable, Table, open_table, unpacked_suffix
from scoreline.operators.convert import frame_values
from scoreline.operators.sequences import Sequences, check_alphabet
from scoreline.runtime.checks import check_number
from scoreline.runtime.memory import memory_limit
from scoreline.runtime.messages import warn_user
from scoreline.runtime.npy import map_array
from scoreline.runtime.registry import unknown_name
from scoreline.runtime.types import AnyArray

BLOCK_BYTES = 1 << 25
ARRAYS = (".npy", ".npz")
NPZ_PARTS = ("X", "y", "data", "indices", "indptr", "shape", "format")  # the arrays of an .npz file that are read
LISTS_OF_NAMES = ("categories", "drop", "missing")
LEARNT = {"impute": "mean", "indicators": True, "min_category_rows": MIN_CATEGORY_ROWS}  # options with their defaults
Block = tuple[Any, AnyArray | None]


class UnfitError(ValueError):
    """Rows or labels that cannot be used; a caller that knows the source adds its name."""


class Dataset(NamedTuple):
    """A data set: `clf.fit(data.X, data.y)`.

    Attributes
    ----------
    X : ndarray, scipy.sparse.csr_array or Operator
        One example per row; an Operator if the data stay on disk.
    y : ndarray or None
        The labels, or None for a table to predict.
    names : list of str or None
        Names of the features, if they have any.
    encoding : Encoding or None
        How columns of a table became features; `MeasureClassifier.save` keeps it with a model.
    class_names : list of str or None
        The names of the classes False and True, if the source was read with `positive`.
    """

    X: Any
    y: AnyArray | None
    names: list[str] | None = None
    encoding: Encoding | None = None
    class_names: list[str] | None = None


class Source(ABC):
    """Rows with labels. A subclass has `blocks` and `width`, and `all_rows` if there is a better way than joining blocks.

    Attributes
    ----------
    name : str
        Its name in messages.
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
        """Return the number of features and the index of the first feature; valid after all blocks have been read."""

    def all_rows(self) -> Block:
        """Return all rows and labels in one block."""
        matrices, labels = zip(*self.blocks(), strict=True)
        X: Any = sp.vstack(matrices, format="csr") if sp.issparse(matrices[0]) else np.concatenate(matrices)
        return X, None if labels[0] is None else np.concatenate(labels)


def open_source(source: Any, *, label: Any = None, positive: Any = None, **options: Any) -> Source:
    """Return the source of a path, a frame or a tuple (X, y); see `read_data` for the options."""
    if isinstance(source, Source):
        _only(options, label, "a Source")
        opened: Source = source
    elif isinstance(source, tuple) and len(source) == 2:
        opened = ArraySource(*source, **_only(options, label, "arrays"))
    elif not isinstance(source, (str, Path)):
        opened = TableSource(source, label, **options)
    else:
        path = Path(source)
        if not path.exists():
            raise FileNotFoundError(f"{path} does not exist")
        if path.is_dir():
            raise ValueError(f"{path} is a folder, expected a file; open_mapped opens folders made by convert")
        if unpacked_suffix(path) in TABLES:
            opened = TableSource(path, label, **options)
        elif path.suffix.lower() in ARRAYS:
            _only(options, None, "an array file", ("label",))
            try:
                opened = _array_file(path, label)
            except UnfitError as error:
                raise ValueError(f"{path}: {error}") from error.__cause__
        else:
            opened = LibsvmSource(path, **_only(options, label, "LIBSVM text", ("zero_based", "n_features")))
        opened.name = str(path)
    return opened if positive is None else OneAgainstRest(opened, positive)


def given_options(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options that were given: not None, and not a list of no names."""
    return {name: value for name, value in options.items() if value is not None and not _names_nothing(name, value)}


def _names_nothing(option: str, value: Any) -> bool:
    return option in LISTS_OF_NAMES and not isinstance(value, str) and hasattr(value, "__len__") and len(value) == 0


def _only(options: dict[str, Any], label: Any, what: str, known: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return the given options, or raise if one of them is not `known` for this kind of source."""
    given = given_options({**options, "label": label})
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

    def all_rows(self) -> Block:
        """Return all rows and labels."""
        X, y = read_libsvm(self.path, zero_based=self.zero_based, n_features=self.n_features)
        return X, as_integers(y)

    def blocks(self) -> Iterator[Block]:
        """Yield blocks; indices as they are written."""
        for piece in libsvm_pieces(self.path, self.n_features, self.zero_based):
            self._index_range = piece.lowest, piece.highest
            parts = (piece.data, piece.indices, piece.indptr)
            yield sp.csr_array(parts, shape=(len(piece.labels), piece.highest + 1)), as_integers(piece.labels)

    def width(self) -> tuple[int, int]:
        """Return the number of features and the index of the first."""
        first, width = index_columns(self.path, *self._index_range, self.zero_based, self.n_features)
        return width, first


class SequenceSource(Source):
    """Sequences of letters: a tuple (sequences, y), or an iterable of such tuples; `mapped_folder.convert_sequences`."""

    name = "the sequences"

    def __init__(self, source: Any, alphabet: str):
        self.source, self.alphabet = source, alphabet
        check_alphabet(alphabet)

    def blocks(self) -> Iterator[Block]:
        """Yield Sequences with their labels."""
        # A tuple of two tuples is taken as sequences and labels: an iterable of blocks is rarely a tuple.
        single = isinstance(self.source, tuple) and len(self.source) == 2
        for block in [self.source] if single else self.source:
            if not (isinstance(block, tuple) and len(block) == 2):
                raise UnfitError(f"a block is a {type(block).__name__}, expected a tuple (sequences, labels or None)")
            rows, labels = Sequences(block[0], self.alphabet), block[1]
            if labels is not None and np.shape(labels) != (len(rows),):
                raise UnfitError(
                    f"labels have shape {np.shape(labels)}, expected one for each of {len(rows)} sequences"
                )
            yield rows, None if labels is None else np.asarray(labels)

    def width(self) -> tuple[int, int]:
        """Return 1: the features of sequences are chosen when they are opened."""
        return 1, 0


class TableSource(Source):
    """A table: CSV, Parquet, Arrow, or a frame; see `read_data` for the options."""

    def __init__(
        self,
        source: Any,
        label: Any,
        *,
        categories: Iterable[str] = (),
        drop: Iterable[str] = (),
        missing: Iterable[str] = (),
        encoding: Encoding | None = None,
        separator: str | None = None,
        **options: Any,
    ):
        for name in ("zero_based", "n_features"):
            if options.pop(name, None) not in (None, "auto"):
                raise ValueError(f"{name} is for LIBSVM text, and the source is a table")
        self.source, self.label, self.separator, self.options = source, label, separator, options
        self.categories, self.drop = names_of("categories", categories), names_of("drop", drop)
        self.missing = names_of("missing", missing or ())
        self.learns, self.encoding = encoding is None, encoding
        if encoding is not None:
            self._check_encoding(encoding)
            self.missing += encoding.missing
        if not isinstance(source, (str, Path)):
            self.name = "the table"

    def all_rows(self) -> Block:
        """Return all rows and labels; CSV is parsed once, other formats are read twice."""
        table, encoding = self._opened(load=True)
        rows = encoding.rows if self.learns else table.rows
        if not rows:
            raise ValueError(f"{table.name} holds no rows, expected at least one")
        with table.named():
            X, y = assembled(self._encoded(table, encoding), encoding, rows)
        self._warn_unseen(encoding, rows)
        return X, y

    def blocks(self) -> Iterator[Block]:
        """Yield blocks; an unknown encoding is learnt in a first pass."""
        table, encoding = self._opened(load=False)
        rows = 0
        for X, y in self._encoded(table, encoding):
            rows += X.shape[0]
            yield X, y
        self._warn_unseen(encoding, rows)

    def width(self) -> tuple[int, int]:
        """Return the number of features and the index of the first."""
        assert self.encoding is not None
        return self.encoding.n_features, 0

    def _opened(self, load: bool) -> tuple[Table, Encoding]:
        """Return the table and its encoding, learnt if necessary; `load` reads the table into memory."""
        table, label = open_table(self.source, missing=self.missing, separator=self.separator), self.label
        if self.learns:
            if label is None:
                names = listed(table.columns)
                raise ValueError(f"{table.name}: label=None, expected the column of labels: one of {names}")
            self._check_names(table)
            dropped = set(self.drop)
            columns, text = [name for name in table.columns if name not in dropped], self.categories
        else:
            columns, text = self._needed(table, self.encoding)
        if load:
            table = table.loaded(columns, text)
        if self.learns:
            with table.named():
                self.encoding = Encoding.learn(
                    lambda: table.batches(columns, exact=[label], text=text),
                    label=label,
                    categories=text,
                    missing=self.missing,
                    **self.options,
                )
        assert self.encoding is not None
        self.names = self.encoding.names
        self.encoding.forget_unseen()
        return table, self.encoding

    def _encoded(self, table: Table, encoding: Encoding) -> Iterator[Block]:
        columns, text = self._needed(table, encoding)
        row, label = 0, self.label
        with table.named():
            for batch in table.batches(columns, exact=[] if label is None else [label], text=text):
                y = None if label is None else label_values(label, batch.column(label), row)
                yield encoding.encode(batch, row), y
                row += batch.num_rows

    def _needed(self, table: Table, encoding: Any) -> tuple[list[str], list[str]]:
        """Return the columns to read for an encoding, and which of them as text."""
        names, label = [column.name for column in encoding.columns], self.label
        absent = [name for name in names if not table.has(name)]
        if absent:
            raise ValueError(
                f"{table.name}: column(s) {listed(absent)} are not there, the encoding was learnt with them; got the columns "
                f"{listed(table.columns)}"
            )
        if label is not None:
            _check_name(table, "label", label)
        if label in names:
            raise ValueError(f"label={label!r} is a feature of the encoding; pass the column of labels, or None")
        text = [column.name for column in encoding.columns if column.kind == "category"]
        return names + ([] if label is None else [label]), text

    def _check_encoding(self, encoding: Any) -> None:
        """Raise unless it is an encoding, and no other option contradicts it."""
        if not isinstance(encoding, Encoding):
            raise ValueError(f"encoding is a {type(encoding).__name__}, expected an Encoding")
        changed = [name for name, default in LEARNT.items() if self.options.get(name, default) != default]
        if self.categories or self.drop or changed:
            raise ValueError(
                "categories, drop, impute, indicators and min_category_rows are part of encoding=...; pass them when it is "
                "learnt"
            )

    def _check_names(self, table: Table) -> None:
        """Raise if the name of a column is unknown or used twice."""
        given = {"label": [self.label], "categories": self.categories, "drop": self.drop}
        for argument, names in given.items():
            for name in names:
                _check_name(table, argument, name)
        both = set(self.drop) & {self.label, *self.categories} or {self.label} & set(self.categories)
        if both:
            raise ValueError(
                f"column {both.pop()!r} is named more than once among label, categories and drop; choose one"
            )

    def _warn_unseen(self, encoding: Encoding, rows: int) -> None:
        """Warn about values that did not occur in the training rows, with their counts."""
        if self.learns:
            return
        for counts, what, done in (
            (encoding.unseen, "unseen categories", "they count as none of the known ones"),
            (encoding.filled, "missing values in columns without an indicator feature", "filled as in training"),
        ):
            if counts:
                shown = ", ".join(f"{column} {count} of {rows} rows" for column, count in counts.items())
                warn_user(f"{self.name}: {what}: {shown}; {done}")


def _check_name(table: Table, argument: str, name: Any) -> None:
    """Raise unless the table has a column of this name."""
    if table.has(name):
        return
    error = unknown_name(argument, name, table.columns)
    only = table.columns[0] if len(table.columns) == 1 and isinstance(table, CsvTable) else ""
    marks = [mark for mark in ";\t|," if mark in only]
    hint = f" The header is one name; pass separator={marks[0]!r}?" if marks else ""
    raise ValueError(f"{table.name}: {error}{hint}")


def assembled(
    blocks: Iterator[tuple[Any, AnyArray | None]], encoding: Encoding, rows: int
) -> tuple[Any, AnyArray | None]:
    """Copy blocks into arrays allocated in advance, so that memory holds the result and one block.

    `rows` is the count that the file names. A wrong count is an error, because some rows would be uninitialised memory.
    """
    least = 8.0 * rows * (encoding.n_features if encoding.storage == "dense" else 1)
    if least > memory_limit():
        raise MemoryError(f"{rows:,} rows of {encoding.n_features:,} features take {least:.3g} bytes")
    X: Any = np.empty((rows, encoding.n_features)) if encoding.storage == "dense" else _Rows(rows, encoding.n_features)
    labels: list[Any] = []
    row = 0
    for block, y in blocks:
        if row + block.shape[0] > rows:
            raise TableError(f"there are more than the {rows:,} rows that the file names; it is damaged")
        if isinstance(X, _Rows):
            X.append(block)
        else:
            X[row : row + len(block)] = block
        row += block.shape[0]
        labels.append(y)
    if row < rows:
        raise TableError(f"there are {row:,} rows, and the file names {rows:,}; it is damaged")
    return X.matrix() if isinstance(X, _Rows) else X, None if labels[0] is None else np.concatenate(labels)


class _Rows:
    """A CSR matrix that grows; the number of entries to come is estimated from the rows so far."""

    def __init__(self, rows: int, width: int):
        self.shape, self.row, self.entries = (rows, width), 0, 0
        self.indptr = np.zeros(rows + 1, dtype=np.int64)
        self.data, self.indices = np.empty(0), np.empty(0, dtype=np.int32)

    def append(self, block: Any) -> None:
        """Add the rows of a block."""
        start, end, row = self.entries, self.entries + block.nnz, self.row + block.shape[0]
        if end > len(self.data):
            room = max(end, int(end / row * self.shape[0] * 1.02))
            if start:  # for large arrays realloc moves pages rather than bytes
                self.data.resize(room, refcheck=False)
                self.indices.resize(room, refcheck=False)
            else:
                self.data, self.indices = np.empty(room), np.empty(room, dtype=np.int32)
        self.data[start:end], self.indices[start:end] = block.data, block.indices
        self.indptr[self.row + 1 : row + 1] = block.indptr[1:]
        self.indptr[self.row + 1 : row + 1] += start
        self.row, self.entries = row, end

    def matrix(self) -> Any:
        """Return the matrix."""
        self.data.resize(self.entries, refcheck=False)
        self.indices.resize(self.entries, refcheck=False)
        kind = np.int32 if self.entries < 2**31 else np.int64  # SciPy needs the same type for both index arrays
        arrays = (self.data, self.indices.astype(kind, copy=False), self.indptr.astype(kind, copy=False))
        return sp.csr_array(arrays, shape=self.shape)


class ArraySource(Source):
    """Arrays: X dense or sparse, and labels or None."""

    def __init__(self, X: Any, y: Any = None, label: int | None = None):
        self.label = label  # the column of a dense X that holds the labels
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

    def all_rows(self) -> Block:
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


def _array_file(path: Path, label: Any) -> ArraySource:
    """Return the arrays of an .npz file (X or a SciPy matrix, and y) or of an .npy file, where `label` is a column number."""
    suffix = path.suffix.lower()
    try:
        check_plain(path)
        arrays: Any = map_array(path) if suffix == ".npy" else _npz_arrays(path)
    except (FileNotFoundError, PermissionError):
        raise
    except Exception as error:  # zipfile, zlib and NumPy can fail in many ways on damaged bytes
        raise ValueError(
            f"{path} cannot be read as {suffix} ({error!s:.300}); it is damaged, or holds objects"
        ) from error
    if suffix == ".npz":
        if label is not None:
            raise ValueError(f"label={label!r} is for tables; an .npz file has the labels in its array y")
        return ArraySource(arrays["X"] if "X" in arrays else _npz_matrix(path, arrays), arrays.get("y"))
    if arrays.ndim != 2:
        raise ValueError(f"{path} has {arrays.ndim} dimension(s), expected 2: rows and columns")
    if label is None:
        return ArraySource(arrays)
    check_number("label", label, least=-arrays.shape[1], integer=True)
    if label >= arrays.shape[1]:
        raise ValueError(f"label={label!r} is not a column of {path}, which has {arrays.shape[1]}")
    return ArraySource(arrays, arrays[:, label], int(label) % arrays.shape[1])


def _npz_matrix(path: Path, arrays: dict[str, AnyArray]) -> Any:
    """Return the matrix that `scipy.sparse.save_npz` wrote."""
    try:
        parts = arrays["data"], arrays["indices"], arrays["indptr"]
        columns = np.asarray(arrays.get("format", b"csr")).item() in (b"csc", "csc")
        shape = tuple(arrays["shape"].tolist())
        if columns and 8.0 * shape[0] > 0.25 * memory_limit():  # the size of indptr after the conversion to CSR
            raise ValueError(f"shape={shape}: so many rows take more than a quarter of the memory")
        matrix = (sp.csc_array if columns else sp.csr_array)(parts, shape=shape)
        matrix.check_format(full_check=True)  # with indices out of range SciPy would read foreign memory
        return matrix
    except (KeyError, ValueError, TypeError, AttributeError, IndexError, OverflowError) as error:
        raise ValueError(
            f"{path} holds {sorted(arrays)}, expected arrays X and y, or data, indices, indptr, shape and y ({error})"
        ) from error


def _npz_arrays(path: Path) -> dict[str, AnyArray]:
    """Return the arrays of an .npz file that are known; together they may take a quarter of the memory."""
    with zipfile.ZipFile(path) as archive:
        members = {member.filename.removesuffix(".npy"): member for member in archive.infolist()}
        known = {name: member for name, member in members.items() if name in NPZ_PARTS}
        n_bytes = sum(member.file_size for member in known.values())
        if n_bytes > 0.25 * memory_limit():
            raise ValueError(
                f"its arrays unpack to {n_bytes:.3g} bytes, more than a quarter of the memory; save X as .npy"
            )
        found = {name: read_npy(archive.read(member), "biufSU") for name, member in known.items()}
    return found | {name: np.zeros(0) for name in members if name not in known}  # messages only need their names


class OneAgainstRest(Source):
    """A source with labels True for the positive class and False for all others."""

    def __init__(self, inner: Source, positive: Any):
        self.inner, self.positive, self.name = inner, positive, inner.name

    def all_rows(self) -> Block:
        """Return all rows, and whether they are positive."""
        (block,) = self._labelled(iter([self.inner.all_rows()]))
        return block

    def blocks(self) -> Iterator[Block]:
        """Yield blocks, and whether their rows are positive."""
        return self._labelled(self.inner.blocks())

    def width(self) -> tuple[int, int]:
        """Return the number of features and the index of the first."""
        return self.inner.width()

    def _labelled(self, blocks: Iterator[Block]) -> Iterator[Block]:
        others, found = set[Any](), False
        for X, y in blocks:
            self.names, self.encoding = self.inner.names, self.inner.encoding
            truth = None if y is None else self._is_positive(y)
            if y is not None and truth is not None:
                others.update(np.unique(y[~truth]).tolist())
            found = found or truth is None or bool(truth.any())
            yield X, truth
        if not found:
            labels = sorted(others)
            shown = ", ".join(map(repr, labels[:10])) + (", ..." if len(labels) > 10 else "")
            raise ValueError(f"positive={self.positive!r} is not a label of {self.name}, which has {shown}")
        self.class_names = [str(others.pop()) if len(others) == 1 else f"not {self.positive}", str(self.positive)]

    def _is_positive(self, y: AnyArray) -> AnyArray:
        positive = self.positive
        if y.dtype.kind in "biuf" and isinstance(positive, str):  # from a command line
            try:
                positive = {"true": True, "false": False}[positive.lower()] if y.dtype.kind == "b" else float(positive)
            except (KeyError, ValueError):
                return np.zeros(len(y), dtype=bool)
        return np.asarray(y == (str(positive) if y.dtype.kind == "U" else positive))
