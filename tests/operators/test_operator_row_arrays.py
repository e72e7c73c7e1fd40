"""Rows as they lie in memory: every storage and wrapper gives arrays from which the same matrix can be read back."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.linalg import aslinearoperator

from scoreline.operators import InterceptOperator, RandomFourierFeatures, ScaledOperator, as_operator

N, P = 37, 11


def gaussian(dtype=np.float64, order="C"):
    return np.asarray(np.random.default_rng(7).standard_normal((N, P)), dtype=dtype, order=order)


def mostly_zero(dtype=np.float64):
    rng = np.random.default_rng(8)
    return np.where(rng.random((N, P)) < 0.3, rng.standard_normal((N, P)), 0.0).astype(dtype)


def with_index_type(X, index):
    X.indices, X.indptr = X.indices.astype(index), X.indptr.astype(index)
    return X


def with_slack(X):
    X.data = np.append(X.data, [np.nan] * 5)
    X.indices = np.append(X.indices, np.full(5, 10**6, dtype=X.indices.dtype))
    return X


STORAGES = {
    "c": gaussian,
    "f": lambda: gaussian(order="F"),
    "c32": lambda: gaussian(np.float32),
    "f32": lambda: gaussian(np.float32, "F"),
    "every_second_row": lambda: gaussian()[::2],
    "every_second_row_f": lambda: gaussian(order="F")[::2],
    "columns_3_to_9": lambda: gaussian()[:, 3:9],
    "rows_3_to_9_f": lambda: gaussian(order="F")[3:9],
    "both_strided": lambda: gaussian()[::2, ::3],
    "reversed_rows": lambda: gaussian()[::-1],
    "reversed_columns": lambda: gaussian()[:, ::-1],
    "transposed": lambda: gaussian().T,
    "big_endian": lambda: gaussian().astype(">f8"),
    "int8": lambda: np.round(10 * gaussian()).astype(np.int8),
    "one_row": lambda: gaussian()[:1],
    "one_column": lambda: gaussian()[:, :1],
    "csr_int32": lambda: with_index_type(sp.csr_array(mostly_zero()), np.int32),
    "csr_int64": lambda: with_index_type(sp.csr_array(mostly_zero()), np.int64),
    "csr32": lambda: sp.csr_matrix(mostly_zero(np.float32)),
    "csr_slack": lambda: with_slack(sp.csr_matrix(mostly_zero())),
    "csr_empty": lambda: sp.csr_array((N, P)),
    "coo": lambda: sp.coo_array(mostly_zero()),
}


def dense(X):
    return X.toarray().astype(np.float64) if sp.issparse(X) else np.asarray(X).astype(np.float64)


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


@pytest.mark.parametrize("name", STORAGES)
def test_rows_can_be_read_back_and_passes_count_their_share(name):
    X = STORAGES[name]()
    check(as_operator(X), dense(X))


@pytest.mark.parametrize("name", ["c", "f", "c32", "every_second_row", "columns_3_to_9", "csr_int32", "csr_int64"])
def test_matrices_that_lie_row_by_row_are_not_copied(name):
    X = STORAGES[name]()
    arrays = as_operator(X).row_arrays(2, 5)
    assert arrays.first == 0
    assert np.shares_memory(arrays.values, X.data if sp.issparse(X) else X)


WRAPPERS = {
    "intercept": (lambda o: InterceptOperator(o, 0.5), lambda A: np.hstack([A, np.full((len(A), 1), 0.5)])),
    "scaled": (lambda o: ScaledOperator(o, np.linspace(0.5, 2.0, P)), lambda A: A * np.linspace(0.5, 2.0, P)),
    "centred": (
        lambda o: ScaledOperator(o, np.linspace(0.5, 2.0, P), np.linspace(-1.0, 1.0, P)),
        lambda A: (A - np.linspace(-1.0, 1.0, P)) * np.linspace(0.5, 2.0, P),
    ),
}


@pytest.mark.parametrize("storage", ["c", "f", "c32", "reversed_columns", "csr_int32", "csr_int64", "csr32"])
@pytest.mark.parametrize("name", WRAPPERS)
def test_wrapped_rows_can_be_read_back(name, storage):
    wrap, apply = WRAPPERS[name]
    X = STORAGES[storage]()
    operator = wrap(as_operator(X))
    check(operator, apply(dense(X)), atol=1e-14)  # products and differences may be taken in another order


@pytest.mark.parametrize("name", WRAPPERS)
def test_rows_of_a_wrapper_count_on_both_operators(name):
    inner = as_operator(gaussian())
    outer = WRAPPERS[name][0](inner)
    outer.row_arrays(0, 10)
    outer.row_arrays(10, N)
    assert outer.n_passes == pytest.approx(1.0, rel=1e-12)
    assert inner.n_passes == pytest.approx(1.0, rel=1e-12)


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
