"""as_operator: the only place that asks what kind of data it was given."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator

from scoreline.operators.base import Operator
from scoreline.operators.blocks import StridedOperator
from scoreline.operators.dense import DenseOperator
from scoreline.operators.sequences import Sequences
from scoreline.operators.sparse import CompressedOperator, to_compressed
from scoreline.operators.wrappers import LinearMapOperator
from scoreline.runtime.array_types import is_dask, library_of
from scoreline.runtime.optional import require
from scoreline.runtime.types import AnyArray, FloatArray

logger = logging.getLogger("scoreline")
MOST_NAMED = 5  # columns that an error names
CATEGORY_TYPES = ("CategoricalDtype", "Categorical", "Enum", "DictionaryType")  # of pandas, polars and pyarrow


def as_operator(X: Any, *, check_finite: bool = True) -> Operator:
    """Return X as an operator: Xw, X'u and a count of passes, without copying X where its storage allows.

    Parameters
    ----------
    X : Operator, ndarray, sparse matrix or array, pandas, polars or Dask frame, pyarrow table, Dask array, LinearOperator, \
            PyTorch tensor, CuPy array or sparse matrix, other Array API array, or nested lists
        Rows are examples. float32 and float64 are used as they lie in memory, in any order and slice; COO and other
        sparse formats, frames of several blocks, integers and float16 are copied once (logged at level INFO).
    check_finite : bool
        Look for NaN and infinity first (one read of X).

    Returns
    -------
    Operator
        The operator; an Operator is returned as it is.

    Raises
    ------
    ValueError
        If X is not two-dimensional, has no rows or columns, is not numeric or holds NaN or infinity. A column of a frame
        with dates, times or durations is not numeric.

    Examples
    --------
    >>> import numpy as np
    >>> from scoreline.operators import as_operator
    >>> operator = as_operator(np.array([[1.0, 2.0], [3.0, 4.0]]))
    >>> operator.matvec([1.0, 1.0])
    array([3., 7.])
    """
    if isinstance(X, Operator):
        return X
    if isinstance(X, Sequences):
        raise ValueError("X holds sequences of letters; make features of them first: StringOperator(X, degree=8)")
    if isinstance(X, LinearOperator):
        _check_shape(X.shape)
        return LinearMapOperator(X)
    operator = _from_matrix(X)
    if check_finite:
        refuse_infinite(operator)
    return operator


def _from_matrix(X: Any) -> Operator:
    if is_dask(X):
        from scoreline.distributed.dask_operator import from_dask

        return from_dask(X)
    if library_of(X) is not None:
        from scoreline.gpu.convert import from_device

        _check_shape(X.shape if len(X.shape) == 2 else (1, 1))
        return from_device(X)
    array = X if sp.issparse(X) else frame_values(X) if is_frame(X) else _from_array(X)
    if sp.issparse(array):
        return _from_sparse(array)
    return DenseOperator(array) if DenseOperator.accepts(array) else StridedOperator(array)


@contextmanager
def own_operator(X: Any) -> Iterator[Operator]:
    """Yield X as an operator that counts the passes of this context; at the end they are added to a user's own operator.

    Fits that share an operator on several threads therefore depend only on their own passes, and give the same bits as alone.
    """
    found = as_operator(X)
    if found is not X or found.scores != "host":
        yield found
        return
    own = found.with_own_passes()
    try:
        yield own
    finally:
        found._count(own.n_passes)


def _from_sparse(X: Any) -> Operator:
    if X.ndim != 2:
        raise ValueError(f"X has {X.ndim} dimension(s), expected 2 (rows, columns)")
    _check_shape(X.shape)
    _check_kind(X.dtype)
    compressed, copied = to_compressed(X)
    if copied:
        logger.info("copied X once: %s", copied)
    return CompressedOperator(compressed)


def _library(X: Any) -> str:
    return type(X).__module__.partition(".")[0]


def is_frame(X: Any) -> bool:
    """Recognise frames of pandas and polars and tables of pyarrow without importing these libraries."""
    return _library(X) in ("pandas", "polars", "pyarrow") and hasattr(type(X), "columns")


def frame_values(X: Any) -> Any:
    """Return the values of a frame: a view where it is one block, a sparse matrix where all columns are sparse.

    Anything that is not a frame is returned as it is.
    """
    if not is_frame(X):
        return X
    if type(X).__name__ == "LazyFrame":
        raise ValueError("X is a LazyFrame, expected a frame with values; call X.collect() first")
    _check_shape(X.shape)
    columns = _columns(X)
    if _library(X) == "pandas" and all(type(dtype).__name__ == "SparseDtype" for _, dtype in columns):
        return X.sparse.to_coo()
    for name, dtype in columns:
        if _is_temporal(dtype):
            raise _temporal(name, dtype)
    try:
        array = X.to_numpy() if hasattr(X, "to_numpy") else np.asarray(X)
        if array.dtype == object:  # nullable or mixed columns; what is missing becomes NaN, which is looked for later
            _refuse_other_objects(array)
            nullable = _library(X) == "pandas"
            array = X.to_numpy(dtype=np.float64, na_value=np.nan) if nullable else array.astype(np.float64)
    except MemoryError:
        raise
    except Exception as error:  # pyarrow and polars have errors of their own, which are not imported here
        raise ValueError(_not_numeric(X, error)) from None
    if not np.may_share_memory(array, _column(X, 0)):
        logger.info("copied X once: frame of several blocks to one array")
    return _from_array(array)


def frame_columns(X: Any) -> list[tuple[str, Any]]:
    """Return name and values of each column of a frame; the values are an array, or what NumPy makes one of."""
    if type(X).__name__ == "LazyFrame":
        raise ValueError("X is a LazyFrame, expected a frame with values; call X.collect() first")
    _check_shape(X.shape)
    for name, dtype in _columns(X):
        if _is_temporal(dtype):
            raise _temporal(name, dtype)
    return [(name, _column(X, k)) for k, (name, _) in enumerate(_columns(X))]


def categorical_columns(X: Any) -> list[bool]:
    """Tell for each column of a frame whether its type is one for categories."""
    return [type(getattr(dtype, "pyarrow_dtype", dtype)).__name__ in CATEGORY_TYPES for _, dtype in _columns(X)]


def _columns(X: Any) -> list[tuple[str, Any]]:
    if _library(X) == "pyarrow":
        return [(field.name, field.type) for field in X.schema]
    return [(str(name), dtype) for name, dtype in zip(X.columns, X.dtypes, strict=True)]


def _column(X: Any, k: int) -> Any:
    column = X.iloc[:, k] if _library(X) == "pandas" else X.to_series(k) if _library(X) == "polars" else X.column(k)
    if type(getattr(column, "type", None)).__name__ == "DictionaryType":  # pyarrow 16 cannot convert unsigned indices
        column = column.cast(column.type.value_type)
    return np.asarray(column)


def _is_temporal(dtype: Any) -> bool:
    """Tell whether a column type is a date, a time or a duration: as numbers they depend on the unit of their storage."""
    dtype = getattr(dtype, "pyarrow_dtype", dtype)  # pandas holds columns of pyarrow too
    if type(dtype).__module__.startswith("pyarrow"):
        types = require("pyarrow", "io", "reading tables of pyarrow").types
        return bool(types.is_temporal(dtype.value_type if types.is_dictionary(dtype) else dtype))
    if hasattr(dtype, "is_temporal"):  # polars
        return bool(dtype.is_temporal())
    categories = getattr(dtype, "categories", None)
    return getattr(dtype if categories is None else categories.dtype, "kind", "O") in ("m", "M")


def _temporal(name: str, dtype: Any) -> ValueError:
    return ValueError(
        f"X: column {name!r} holds dates, times or durations ({dtype}). Convert it to numbers, for example to days "
        "since a fixed date, or drop it."
    )


def _not_numeric(X: Any, error: Exception) -> str:
    """Return the message of a frame with columns that do not become numbers: their names, and how to encode them."""
    found = []
    for k, (name, dtype) in enumerate(_columns(X)):
        try:
            values = _column(X, k)
            _refuse_other_objects(values)
            numeric = values.astype(np.float64).ndim == 1  # a struct of polars has two dimensions
        except Exception:  # whatever the library raises
            numeric = False
        if not numeric:
            found.append(f"{name!r} of type {dtype}")
    more = f" and {len(found) - MOST_NAMED} more" if len(found) > MOST_NAMED else ""
    have = "1 column that is" if len(found) == 1 else f"{len(found) or 'some'} columns that are"
    return (
        f"X is a frame with {have} not numeric: {', '.join(found[:MOST_NAMED])}{more} ({error}). To encode text, read the "
        "frame with scoreline.io.read_data(frame, label=...) for fit, and with its encoding=... for predict, or use "
        "OneHotEncoder. Convert any other column to numbers, or drop it."
    )


def _refuse_other_objects(array: AnyArray) -> None:
    """Raise if an array of objects holds dates, durations or lists, which NumPy may turn into numbers silently."""
    for kind in {type(value) for value in array.flat} if array.dtype == object else ():
        collection = issubclass(kind, (list, tuple, np.ndarray))
        if collection or issubclass(kind, (np.datetime64, np.timedelta64)):
            raise TypeError(f"it holds {kind.__name__}, expected numbers")


def _from_array(X: Any) -> AnyArray:
    if isinstance(X, np.ma.MaskedArray) and np.ma.is_masked(X):
        raise ValueError(
            "X is a masked array with masked entries, expected numbers throughout. Fill them in first, for example with "
            "X.filled(0), or drop the rows."
        )
    array = np.asarray(X)
    if array.ndim != 2:
        raise ValueError(
            f"X has {array.ndim} dimension(s) (shape={array.shape}), expected 2D array (rows, columns). Reshape your data "
            "using X.reshape(-1, 1) if it is one feature, X.reshape(1, -1) if it is one row."
        )
    _check_shape(array.shape)
    if array.dtype.kind in "US":
        raise ValueError(
            f"X has dtype {array.dtype}: text, not numbers (it begins with {array.flat[0]!r}), expected float or integer. "
            "Encode text columns first, for example with OneHotEncoder, or call X.astype(float). Sequences of letters become "
            "features by scoreline.operators.StringOperator."
        )
    _check_kind(array.dtype)
    if array.dtype.kind in "Obiu" or array.dtype.itemsize == 2:
        try:
            _refuse_other_objects(array)
            converted = array.astype(np.float64)
        except OverflowError as error:
            raise ValueError(
                f"X has dtype {array.dtype} with entries too large for float64 ({error}); divide them by a number first"
            ) from None
        except (TypeError, ValueError) as error:
            raise type(error)(
                f"X has dtype {array.dtype} with entries that are not numbers ({error}), expected float or integer. "
                "Encode text columns first, for example with OneHotEncoder."
            ) from None
        logger.info("copied X once: %s to float64", array.dtype)
        return converted
    if array.dtype.itemsize > 8:
        logger.info("copied X once: %s to float64", array.dtype)
        with np.errstate(over="ignore"):  # infinities are looked for later
            return array.astype(np.float64)
    return array


def _check_kind(dtype: Any) -> None:
    if np.dtype(dtype).kind == "c":
        raise ValueError(
            f"Complex data not supported: X has dtype {dtype}, expected float; pass X.real, X.imag or abs(X)"
        )
    if np.dtype(dtype).kind not in "Obiuf":
        raise ValueError(f"X has dtype {dtype}, expected float or integer")


def _check_shape(shape: tuple[int, ...]) -> None:
    for size, what in ((shape[0], "sample"), (shape[1], "feature")):
        if size < 1:
            raise ValueError(f"X has {size} {what}(s) (shape={tuple(shape)}) while a minimum of 1 is required.")


def refuse_infinite(operator: Operator) -> None:
    """Raise if X holds NaN or infinity, and say where; one read of X, from which the operator learns `largest`."""
    place = operator.inspect()
    if place is not None:
        raise ValueError(
            f"Input X contains NaN or infinity, first seen in row {place[0]}, column {place[1]}; expected finite numbers. "
            "Drop such rows or fill them in, for example with SimpleImputer."
        )


def checked_scores(X: Any, operator: Operator, w: FloatArray) -> Any:
    """Return Xw; NaN and infinity in X are an error, found in the scores without another read of X.

    An entry that is not finite makes the score of its row not finite, whatever it is multiplied with. Products by columns
    (CSC) do not read columns of coefficient 0, so there X is looked at first, as it is on a device.

    Parameters
    ----------
    X : as in `as_operator`
        What the operator was made of, with check_finite=False; an operator of the user is not looked at.
    operator : Operator
        X as an operator.
    w : array of p coefficients
        Finite.
    """
    ready = isinstance(X, (Operator, LinearOperator))
    first = not ready and (operator.scores != "host" or not operator.reads_all)
    if first:
        refuse_infinite(operator)
    z = operator.matvec(w)
    if operator.scores == "host" and not np.isfinite(z).all():
        if not (ready or first):
            refuse_infinite(operator)
        row = int(np.flatnonzero(~np.isfinite(np.asarray(z)))[0])
        raise ValueError(
            f"the score of row {row} is not finite: its entries are too large for the coefficients; scale X"
        )
    return z
