"""Rows as they lie in memory: every storage and wrapper gives arrays from which the same matrix can be read back."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.linalg import aslinearoperator
from storages import DENSE, SPARSE, WRAPPERS, N, dense_array, gaussian, mostly_zero

from cases import for_each
from scoreline.operators import RandomFourierFeatures, as_operator

SOME_WRAPPERS = ("intercept_tenth", "scaled", "centred")
STORAGES = DENSE | {name: make for name, make in SPARSE.items() if not name.startswith("csc")}


def read_back(arrays, rows, p):
    """Return the rows as `RowArrays` says that they lie, one entry at a time."""
    out = np.zeros((len(rows), p))
    for line, i in enumerate(int(row) - arrays.first for row in rows):
        if arrays.indices is None:
            for k in range(p):
                out[line, k] = arrays.values[i * int(arrays.row_step) + k * int(arrays.column_step)]
        else:
            for k in range(int(arrays.starts[i]), int(arrays.starts[i + 1])):
                out[line, int(arrays.indices[k])] += arrays.values[k]
    return out


def check(operator, expected, atol=0.0):
    n, p = operator.shape
    for start, stop in {(0, n), (0, 1), (n - 1, n), (n // 3, max(n // 2, n // 3 + 1))}:
        before = operator.n_passes
        arrays = operator.row_arrays(start, stop)
        assert operator.n_passes - before == pytest.approx((stop - start) / n, rel=1e-12)
        assert 0 <= arrays.first <= start
        assert not arrays.values.flags.writeable
        np.testing.assert_allclose(read_back(arrays, range(start, stop), p), expected[start:stop], rtol=0, atol=atol)


@for_each("name", STORAGES)
def test_rows_can_be_read_back_and_passes_count_their_share(name):
    X = STORAGES[name]()
    # Entries that name the same place are added in the order in which they are stored, or in another one.
    check(as_operator(X), dense_array(X), atol=1e-14 if "duplicates" in name else 0.0)


@for_each("name", ["c", "f", "c32", "every_second_row", "columns_3_to_9", "csr_array_int32", "csr_array_int64"])
def test_matrices_that_lie_row_by_row_are_not_copied(name):
    X = STORAGES[name]()
    arrays = as_operator(X).row_arrays(2, 5)
    assert arrays.first == 0
    assert np.shares_memory(arrays.values, X.data if sp.issparse(X) else X)


@for_each("storage", ["c", "f", "c32", "reversed_columns", "csr_array_int32", "csr_array_int64", "csr_array_32"])
@for_each("name", SOME_WRAPPERS)
def test_wrapped_rows_can_be_read_back(name, storage):
    wrap, apply = WRAPPERS[name]
    X = STORAGES[storage]()
    operator = wrap(as_operator(X))
    check(operator, apply(dense_array(X)), atol=1e-14)  # products and differences may be taken in another order


@for_each("name", WRAPPERS)
def test_rows_of_a_wrapper_count_on_both_operators(name):
    inner = as_operator(gaussian())
    outer = WRAPPERS[name][0](inner)
    outer.row_arrays(0, 10)
    outer.row_arrays(10, N)
    assert outer.n_passes == pytest.approx(1.0, rel=1e-12)
    assert inner.n_passes == pytest.approx(1.0, rel=1e-12)


@for_each("storage", ["c", "f", "csr_array_int32"])
@for_each("name", ["intercept", "intercept_tenth", "centred", "intercept_of_centred", "centred_intercept"])
def test_row_bytes_are_those_of_the_arrays(name, storage):
    operator = WRAPPERS[name][0](as_operator(STORAGES[storage]()))
    arrays = operator.row_arrays(0, N)
    stored = arrays.values.nbytes + (0 if arrays.indices is None else arrays.indices.nbytes)
    assert operator.row_bytes * N == pytest.approx(stored, rel=1e-12)


def test_computed_rows_can_be_read_back():
    operator = RandomFourierFeatures(gaussian(), n_features=13, gamma=0.3, random_state=2)
    features = next(operator.row_blocks()).data
    check(operator, features, atol=1e-13)  # BLAS may sum in another order for another number of rows


def test_columns_are_refused_with_the_way_out():
    operator = as_operator(sp.csc_array(mostly_zero()))
    with pytest.raises(ValueError, match=r"X\.tocsr\(\)"):
        operator.row_arrays(0, N)


def test_an_operator_without_rows_is_refused():
    with pytest.raises(TypeError, match="row by row"):
        as_operator(aslinearoperator(gaussian())).row_arrays(0, N)
