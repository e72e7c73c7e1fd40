"""The columns of a table as numbers, whatever holds them: NaN is a missing value, a category is the position of its text."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator

from scoreline import kernels
from scoreline.operators import Operator, as_operator
from scoreline.operators.convert import categorical_columns, frame_columns, is_frame
from scoreline.runtime import parallel
from scoreline.runtime.array_types import is_dask, library_of
from scoreline.runtime.types import AnyArray, FloatArray

SAMPLE_ROWS = 100_000  # that bins are learnt from
MOST_COLUMNS = 5000  # of a table whose values are coded: a byte each, zeros of a sparse matrix included
TEXT_KINDS = "OUST"
MISSING_TYPES = ("NAType", "NaTType")  # of pandas


class ColumnSample(NamedTuple):
    """Values of a column, NaN where they are missing, and the weight of each."""

    values: FloatArray
    weight: FloatArray


def sampled_rows(weight: FloatArray) -> AnyArray:
    """Return the rows of positive weight, or as many of them as bins are learnt from, evenly spread."""
    rows = np.flatnonzero(weight > 0.0)
    return rows if len(rows) <= SAMPLE_ROWS else rows[np.linspace(0, len(rows) - 1, SAMPLE_ROWS).astype(np.intp)]


class Columns(ABC):
    """Access to the columns of a table.

    Attributes
    ----------
    shape : tuple of int
        Rows and columns.
    names : list of str or None
        Names of the columns, if they have any.
    """

    shape: tuple[int, int]
    names: list[str] | None = None

    def texts(self, column: int) -> tuple[str, ...] | None:
        """Return the distinct texts of a column of categories, sorted; None for a column of numbers."""
        return None

    def is_category(self, column: int) -> bool:
        """Tell whether the values of a column are known to be categories."""
        return False

    @abstractmethod
    def sample(self, rows: AnyArray) -> list[FloatArray]:
        """Return the values of each column in the listed rows."""

    def codes(self, values: list[FloatArray], exact: AnyArray, out: AnyArray | None = None) -> AnyArray:
        """Return the code of every value (see `kernels.codes.code_rows`), one line per column, perhaps in `out`."""
        found = np.empty(self.shape[::-1], dtype=np.uint8) if out is None else out
        self._write_codes(values, exact, found)
        return found

    @abstractmethod
    def _write_codes(self, values: list[FloatArray], exact: AnyArray, out: AnyArray) -> None:
        """Write the code of every value."""


def _coded(X: AnyArray, values: list[FloatArray], exact: AnyArray, out: AnyArray) -> None:
    """Write the codes of the rows of X to the lines of `out`."""
    starts = np.concatenate([[0], np.cumsum([len(each) for each in values])])
    bounds = parallel.even_bounds(len(X), 16.0 * X.shape[1])
    arguments = (X, np.concatenate(values), starts, exact, out, bounds)
    parallel.run_chunks(kernels.codes.code_rows, len(bounds) - 1, *arguments)


class ArrayColumns(Columns):
    """A dense array of numbers."""

    def __init__(self, X: AnyArray):
        self.X = X
        self.shape = X.shape

    def sample(self, rows: AnyArray) -> list[FloatArray]:
        """Return the values of each column in the listed rows."""
        return list(np.asarray(self.X[rows], dtype=np.float64).T)

    def _write_codes(self, values: list[FloatArray], exact: AnyArray, out: AnyArray) -> None:
        _coded(self.X, values, exact, out)


class FrameColumns(Columns):
    """A frame whose columns are numbers, or texts that stand for categories."""

    def __init__(self, X: Any, known: Sequence[tuple[str, ...] | None] | None = None):
        self.names, self.columns = [], []
        self.known: list[tuple[str, ...] | None] = []
        self.categorical = categorical_columns(X)
        for k, (name, column) in enumerate(frame_columns(X)):
            trained = known is not None and k < len(known)
            before = known[k] if trained else None  # type: ignore[index]  # columns that were fitted have them
            numbers, texts = _numbers_of(name, column, before, trained)
            self.names.append(name)
            self.columns.append(numbers)
            self.known.append(texts)
        self.shape = (len(self.columns[0]), len(self.columns))

    def texts(self, column: int) -> tuple[str, ...] | None:
        """Return the distinct texts of a column, if it holds texts."""
        return self.known[column]

    def is_category(self, column: int) -> bool:
        """Tell whether the values of a column are categories: texts, or values of a type for categories."""
        return self.known[column] is not None or self.categorical[column]

    def sample(self, rows: AnyArray) -> list[FloatArray]:
        """Return the values of each column in the listed rows."""
        return [column[rows] for column in self.columns]

    def _write_codes(self, values: list[FloatArray], exact: AnyArray, out: AnyArray) -> None:
        for j, column in enumerate(self.columns):
            _coded(column[:, None], values[j : j + 1], exact[j : j + 1], out[j : j + 1])


class BlockColumns(Columns):
    """The rows of an operator, read block by block: sparse matrices, folders on disk."""

    def __init__(self, operator: Operator):
        operator.require("row_blocks", "features of bins, which read blocks of rows")
        self.operator, self.shape = operator, operator.shape

    def sample(self, rows: AnyArray) -> list[FloatArray]:
        """Return the values of each column in the listed rows."""
        block = self.operator._listed(rows.astype(np.uint64))
        return list(np.asarray(block.toarray() if sp.issparse(block) else block, dtype=np.float64).T)

    def _write_codes(self, values: list[FloatArray], exact: AnyArray, out: AnyArray) -> None:
        step = max(1, (1 << 20) // self.shape[1])
        for block in self.operator.row_blocks(step):
            rows = block.data.toarray() if hasattr(block.data, "toarray") else block.data
            part = np.empty((self.shape[1], block.stop - block.start), dtype=np.uint8)
            _coded(np.asarray(rows), values, exact, part)
            out[:, block.start : block.stop] = part


def place_of(X: Any) -> str:
    """Return the name of the scores of X: "host", "blocks" on a cluster, "device"."""
    if isinstance(X, Operator):
        return X.scores
    return "blocks" if is_dask(X) else "host" if library_of(X) is None else "device"


def columns_of(X: Any, known: Sequence[tuple[str, ...] | None] | None = None) -> Columns:
    """Return the columns of a table.

    Parameters
    ----------
    X : array, frame, sparse matrix or Operator that can be read in blocks
        Rows are examples. NaN is allowed.
    known : sequence, optional
        The texts of the columns of categories of the training rows, None for columns of numbers.
    """
    if place_of(X) != "host" or isinstance(X, LinearOperator):
        raise TypeError(
            f"The values of the columns are needed in this process, got {type(X).__name__}. Pass a NumPy array, a frame, a "
            "sparse matrix or a folder made by scoreline.io.convert. Only features='linear' trains on products alone."
        )
    found: Columns
    if isinstance(X, Operator) or sp.issparse(X):
        found = BlockColumns(as_operator(X, check_finite=False))
    elif is_frame(X):
        found = FrameColumns(X, known)
    else:
        operator = as_operator(X, check_finite=False)
        block = operator._block(0, operator.shape[0])
        found = ArrayColumns(np.asarray(block))
    if found.shape[1] > MOST_COLUMNS:
        raise ValueError(
            f"features='additive' and 'pairs' take at most {MOST_COLUMNS} columns, X has {found.shape[1]}: each value is "
            "stored in one byte, zeros included. Use features='linear', or select columns."
        )
    return found


def _numbers_of(
    name: str, column: Any, known: tuple[str, ...] | None, trained: bool
) -> tuple[FloatArray, tuple[str, ...] | None]:
    """Return a column of a frame as numbers; of texts, their positions among the known ones, and these.

    `trained` says that the type of the column is known: `known` has its texts, or is None for numbers.
    """
    values = np.asarray(column)
    texts = known is not None
    if values.dtype.kind in TEXT_KINDS:
        entries = values.ravel().tolist()
        missing = np.array([_is_missing(value) for value in entries], dtype=bool)
        text = any(isinstance(value, str) for value in entries)
        if text and trained and not texts:
            raise ValueError(
                f"X: column {name!r} holds texts, but it held numbers in the training rows. Convert it to numbers."
            )
        if not (text or texts):
            entries = [np.nan if gone else value for gone, value in zip(missing, entries, strict=True)]
            values = np.array(entries, dtype=object)
        texts = text or texts
    elif texts:
        entries, missing = values.ravel().tolist(), np.isnan(np.asarray(values, dtype=np.float64))
    if not texts:
        try:
            return np.asarray(values, dtype=np.float64), None
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"X: column {name!r} of type {getattr(column, 'dtype', values.dtype)} holds neither numbers nor texts "
                f"({error}). Convert it to numbers or to texts, or drop it."
            ) from None
    words = ["" if gone else str(value) for gone, value in zip(missing, entries, strict=True)]
    if known is None:
        known = tuple(sorted({word for gone, word in zip(missing, words, strict=True) if not gone}))
    places = {word: float(k) for k, word in enumerate(known)}
    numbers = np.array([places.get(word, float(len(known))) for word in words])
    numbers[missing] = np.nan
    return numbers, known


def _is_missing(value: Any) -> bool:
    """Tell whether an entry of a column is None, NaN, NaT or the NA of pandas."""
    return value is None or type(value).__name__ in MISSING_TYPES or (isinstance(value, float) and value != value)
