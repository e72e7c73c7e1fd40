"""Input that must be refused, with a message that says what and where."""

from datetime import datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from scipy.sparse.linalg import aslinearoperator

from cases import for_each
from scoreline.io.sources import ArraySource
from scoreline.operators import CompressedOperator, InterceptOperator, RandomFourierFeatures, as_operator
from scoreline.operators.wrappers import scaled

REFUSED = {
    "scalar": (lambda: 3.0, "0 dimension"),
    "one_dimension": (lambda: np.ones(3), "1 dimension.*reshape"),
    "three_dimensions": (lambda: np.ones((2, 2, 2)), "3 dimension"),
    "sparse_one_dimension": (lambda: sp.coo_array(np.ones(3)), "1 dimension"),
    "no_rows": (lambda: np.ones((0, 3)), "0 sample"),
    "no_columns": (lambda: np.ones((3, 0)), "0 feature"),
    "sparse_no_rows": (lambda: sp.csr_array((0, 3)), "0 sample"),
    "sparse_no_columns": (lambda: sp.csc_matrix((3, 0)), "0 feature"),
    "linear_no_rows": (lambda: aslinearoperator(np.ones((0, 3))), "0 sample"),
    "frame_no_rows": (lambda: pd.DataFrame({"a": np.empty(0)}), "0 sample"),
    "arrow_no_columns": (lambda: pa.table({}), "0 sample"),
    "frame_no_columns": (lambda: pd.DataFrame(index=range(3)), "0 feature"),
    "complex": (lambda: np.ones((2, 2)) * 1j, "[Cc]omplex"),
    "sparse_complex": (lambda: sp.csr_array(np.ones((2, 2)) * 1j), "[Cc]omplex"),
    "text": (lambda: np.array([["a", "b"]]), "not numbers.*Encode"),
    "bytes": (lambda: np.array([[b"a", b"b"]]), "not numbers.*Encode"),
    "object_text": (lambda: np.array([[1, "a"]], dtype=object), "not numbers.*Encode"),
    "datetime": (lambda: np.ones((2, 2), dtype="M8[s]"), "datetime64"),
    "frame_text": (
        lambda: pd.DataFrame({"a": ["x", "y"], "b": [1, 2]}),
        "1 column that is not numeric: 'a'.*read_data",
    ),
    "polars_text": (
        lambda: pl.DataFrame({"a": ["x", "y"], "b": [1, 2]}),
        "not numeric: 'a' of type String.*OneHotEncoder",
    ),
    "fourier_one_dimension": (lambda: RandomFourierFeatures(np.ones(3)), "1 dimension"),
}


@for_each("name", REFUSED)
def test_unusable_input_is_refused(name):
    make, message = REFUSED[name]
    with pytest.raises(ValueError, match=f"(?s){message}"):
        as_operator(make())


DAYS = [datetime(2024, 1, 1), datetime(2024, 2, 3)]
UNUSABLE = {  # values of a column that no measure of magnitude fits, and part of the type that the message names
    "timestamps": (pa.array(DAYS), "timestamp|datetime64|Datetime"),
    "timestamps in a zone": (pa.array(DAYS, pa.timestamp("us", "UTC")), "UTC"),
    "categories of timestamps": (pa.array(DAYS).dictionary_encode(), "timestamp|category|Datetime"),
    "dates": (pa.array([day.date() for day in DAYS]), "date32|object|Date"),
    "times": (pa.array([day.time() for day in DAYS]), "time64|object|Time"),
    "durations": (pa.array([day - DAYS[0] for day in DAYS]), "duration|timedelta64|Duration"),
    "lists": (pa.array([[1], [2]]), "list|object|List"),
    "structs": (pa.array([{"a": 1}, {"a": 2}]), "struct|object|Struct"),
    "binary": (pa.array([b"a", b"b"]), "binary|object|Binary"),
}
FRAMES = {
    "arrow": lambda table: table,
    "batch": lambda table: table.to_batches()[0],
    "pandas": lambda table: table.to_pandas(),
    "pandas of arrow": lambda table: table.to_pandas(types_mapper=pd.ArrowDtype),
    "polars": pl.from_arrow,
}


@for_each("alone", [False, True])
@for_each("frame", FRAMES)
@for_each("name", UNUSABLE)
def test_a_column_that_is_not_numeric_is_named_with_its_type(name, frame, alone):
    values, kind = UNUSABLE[name]
    numbers = {} if alone else {"a": [1.0, 2.0]}
    X = FRAMES[frame](pa.table({**numbers, "when": values}))
    with pytest.raises(ValueError, match=rf"column.*'when'.*\b({kind}).*drop it"):
        as_operator(X)
    with pytest.raises(ValueError, match="'when'"):
        ArraySource(X)


@for_each("frame", FRAMES)
def test_decimals_and_truth_values_of_frames_are_numbers(frame):
    table = pa.table({"a": [Decimal("0.5"), Decimal("2.5")], "b": [True, False]})
    assert as_operator(FRAMES[frame](table)).matvec([1.0, 10.0]).tolist() == [10.5, 2.5]


def test_a_lazy_frame_says_how_to_collect_it():
    for use in (as_operator, ArraySource):
        with pytest.raises(ValueError, match=r"LazyFrame.*call X.collect\(\)"):
            use(pl.DataFrame({"a": [1.0]}).lazy())


@for_each("entry", [np.datetime64("2024-01-01"), np.timedelta64(3, "s")])
def test_dates_among_objects_do_not_become_numbers(entry):
    with pytest.raises(TypeError, match=type(entry).__name__):
        as_operator(np.array([[entry], [1.0]], dtype=object))


@for_each("entry", [1j, None, {}, [1]])
def test_objects_that_are_not_numbers_are_refused(entry):
    X = np.empty((2, 2), dtype=object)
    X[:] = 1.0
    X[1, 1] = entry
    # None becomes NaN, everything else fails to convert (TypeError, as scikit-learn's own checks expect).
    with pytest.raises((TypeError, ValueError), match=r"not numbers|NaN"):
        as_operator(X)


STORAGES = {
    "c": np.array,
    "f": np.asfortranarray,
    "c32": lambda A: A.astype(np.float32),
    "transposed": lambda A: np.ascontiguousarray(A.T).T,
    "every_second_column": lambda A: np.repeat(A, 2, axis=1)[:, ::2],
    "every_second_row": lambda A: np.repeat(A, 2, axis=0)[::2],
    "sliced": lambda A: np.hstack([A, A])[:, : A.shape[1]],
    "reversed": lambda A: A[::-1, ::-1].copy()[::-1, ::-1],
    "big_endian": lambda A: A.astype(">f8"),
    "longdouble": lambda A: A.astype(np.longdouble),
    "float16": lambda A: A.astype(np.float16),
    "object": lambda A: A.astype(object),
    "csr": sp.csr_matrix,
    "csc": sp.csc_matrix,
    "csr_array": sp.csr_array,
    "coo": sp.coo_matrix,
    "lil": sp.lil_matrix,
    "csr_of_zeros": lambda A: sp.csr_matrix(np.where(np.isfinite(A), 0.0, A)),
    "csc_of_zeros": lambda A: sp.csc_matrix(np.where(np.isfinite(A), 0.0, A)),
    "pandas": pd.DataFrame,
    "pandas_two_blocks": lambda A: pd.concat([pd.DataFrame(A[:, :1]), pd.DataFrame(A[:, 1:])], axis=1),
    "polars": pl.DataFrame,
}


@for_each("value", [np.nan, np.inf, -np.inf])
@for_each("place", [(0, 0), (0, 8), (12, 0), (12, 8), (7, 3)])
@for_each("name", STORAGES)
def test_the_place_of_a_nonfinite_entry_is_named(name, place, value):
    A = np.random.default_rng(0).standard_normal((13, 9))
    A[place] = value
    with pytest.raises(ValueError, match=rf"NaN or infinity.*row {place[0]}, column {place[1]};"):
        as_operator(STORAGES[name](A))
    assert as_operator(STORAGES[name](A), check_finite=False).shape == A.shape


@for_each("name", ["c", "f", "every_second_column", "csr", "csc"])
@for_each("place", [(0, 0), (1499, 100), (2999, 199)])
def test_the_place_is_right_in_matrices_of_several_chunks(name, place):
    A = np.random.default_rng(0).standard_normal((3000, 200))
    A[place] = np.nan
    assert as_operator(STORAGES[name](A), check_finite=False).inspect() == place


@for_each("name", STORAGES)
def test_finite_matrices_pass_the_check(name):
    largest = {"c32": 3e38, "float16": 6e4}.get(name, 1.7e308)
    A = np.full((13, 9), largest)
    A[::2] *= -1
    assert as_operator(STORAGES[name](A)).inspect() is None


def test_a_missing_value_in_a_nullable_frame_is_named_like_any_other():
    X = pd.DataFrame({"a": pd.array([1, 2, 3], "Int64"), "b": pd.array([0.5, None, 2.0], "Float64")})
    with pytest.raises(ValueError, match=r"NaN or infinity.*row 1, column 1;"):
        as_operator(X)


def set_entry(array, place, value):
    array[place] = value


MALFORMED = {
    "index_too_large": lambda X: set_entry(X.indices, 3, X.shape[1] if X.format == "csr" else X.shape[0]),
    "index_negative": lambda X: set_entry(X.indices, 3, -1),
    "indptr_falls": lambda X: set_entry(X.indptr, 2, X.indptr[1] - 1),
    "indptr_starts_late": lambda X: set_entry(X.indptr, 0, 1),
    "indptr_negative": lambda X: set_entry(X.indptr, 0, -1),
    "indptr_ends_beyond_the_data": lambda X: set_entry(X.indptr, -1, X.indptr[-1] + 1),
    "indptr_too_short": lambda X: setattr(X, "indptr", X.indptr[:-1]),
    "indptr_too_long": lambda X: setattr(X, "indptr", np.append(X.indptr, X.indptr[-1])),
    "data_too_short": lambda X: setattr(X, "data", X.data[:-1]),
    "indices_too_short": lambda X: setattr(X, "indices", X.indices[:-1]),
}


@for_each("make", [sp.csr_matrix, sp.csc_matrix, sp.csr_array, sp.csc_array])
@for_each("name", MALFORMED)
def test_malformed_compressed_matrices_are_refused(name, make):
    X = make(np.random.default_rng(0).standard_normal((5, 4)))
    MALFORMED[name](X)
    with pytest.raises(ValueError, match=r"not a valid CS[RC] matrix"):
        as_operator(X)


def test_compressed_operator_takes_only_compressed_matrices():
    with pytest.raises(TypeError, match="coo"):
        CompressedOperator(sp.coo_matrix(np.eye(2)))


OPERATORS = {
    "dense": lambda: as_operator(np.ones((5, 3))),
    "dense_f": lambda: as_operator(np.ones((5, 3), order="F")),
    "strided": lambda: as_operator(np.ones((5, 6))[:, ::2]),
    "csr": lambda: as_operator(sp.csr_matrix(np.ones((5, 3)))),
    "csc": lambda: as_operator(sp.csc_matrix(np.ones((5, 3)))),
    "wrapped": lambda: InterceptOperator(as_operator(np.ones((5, 2)))),
}
WRONG_CALLS = {
    "matvec_short": (lambda o: o.matvec(np.ones(2)), ValueError, r"w has shape \(2,\), expected \(3,\)"),
    "matvec_matrix": (lambda o: o.matvec(np.ones((3, 1))), ValueError, "w has shape"),
    "rmatvec_long": (lambda o: o.rmatvec(np.ones(6)), ValueError, r"u has shape \(6,\), expected \(5,\)"),
    "matvec_rows_short": (lambda o: o.matvec_rows(np.ones(2), [0]), ValueError, "w has shape"),
    "rmatvec_rows_long": (lambda o: o.rmatvec_rows(np.ones(3), [0, 1]), ValueError, "u has shape"),
    "rows_negative": (lambda o: o.matvec_rows(np.ones(3), [0, -1]), IndexError, r"0\.\.4, got -1\.\.0"),
    "rows_too_large": (lambda o: o.matvec_rows(np.ones(3), [5]), IndexError, r"0\.\.4, got 5"),
    "rmatvec_rows_too_large": (lambda o: o.rmatvec_rows(np.ones(1), [5]), IndexError, r"0\.\.4, got 5"),
    "rows_mask": (lambda o: o.matvec_rows(np.ones(3), np.ones(5, dtype=bool)), ValueError, "row numbers, got bool"),
    "rows_float": (lambda o: o.matvec_rows(np.ones(3), [0.5]), ValueError, "row numbers, got float64"),
    "rows_matrix": (lambda o: o.matvec_rows(np.ones(3), [[0]]), ValueError, "1-D"),
    "block_size_zero": (lambda o: list(o.row_blocks(0)), ValueError, "size=0"),
    # Too long rather than too short: a kernel that trusts the length then stays inside of memory.
    "weight_long": (lambda o: o.column_statistics(np.ones(6)), ValueError, "weight"),
}


@for_each("operator", OPERATORS)
@for_each("name", WRONG_CALLS)
def test_wrong_lengths_and_rows_are_refused_before_a_pass(name, operator):
    call, error, message = WRONG_CALLS[name]
    X = OPERATORS[operator]()
    with pytest.raises(error, match=message):
        call(X)
    assert X.n_passes == 0


def test_weights_of_columns_may_be_any_sequence_of_numbers():
    expected = as_operator(np.eye(3)).column_statistics(np.array([1.0, 2.0, 3.0]))
    for make in (np.asarray, sp.csr_matrix, sp.csc_matrix):
        for weight in (np.array([1, 2, 3]), np.array([1.0, 9, 2.0, 9, 3.0, 9])[::2], np.float32([1, 2, 3])):
            got = as_operator(make(np.eye(3))).column_statistics(weight)
            for a, b in zip(got, expected, strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-15)


MISSING = {
    "matvec_rows": lambda o: o.matvec_rows(np.ones(o.shape[1]), [0]),
    "rmatvec_rows": lambda o: o.rmatvec_rows(np.ones(1), [0]),
    "row_blocks": lambda o: list(o.row_blocks()),
    "column_statistics": lambda o: o.column_statistics(),
    "standard_scaling": lambda o: scaled(o, "standard"),
}


@for_each("with_intercept", [False, True])
@for_each("name", MISSING)
def test_a_missing_capability_is_refused_before_a_pass(name, with_intercept):
    inner = as_operator(aslinearoperator(np.eye(3)))
    operator = InterceptOperator(inner) if with_intercept else inner
    with pytest.raises(TypeError, match=r"cannot do .* products"):
        MISSING[name](operator)
    assert operator.n_passes == inner.n_passes == 0
