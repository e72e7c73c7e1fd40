"""What operators may not do: copy X, read rows that do not count, treat equal rows differently."""

import logging

import numpy as np
import pandas as pd
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from storages import gaussian

from cases import for_each
from scoreline.operators import as_operator
from tiers import examples

VIEWS = {
    "c": lambda X: X,
    "transposed": lambda X: X.T,
    "every_second_row": lambda X: X[::2],
    "every_third_column": lambda X: X[:, ::3],
    "columns_3_to_9": lambda X: X[:, 3:9],
    "reversed_rows": lambda X: X[::-1],
    "reversed_both": lambda X: X[::-1, ::-1],
    "strided_transposed": lambda X: X[::2, ::3].T,
    "one_column": lambda X: X[:, 4:5],
    "one_row": lambda X: X[4:5],
}


@for_each("dtype", ["<f4", "<f8", ">f4", ">f8"])
@for_each("name", VIEWS)
def test_float_arrays_are_not_copied(name, dtype, caplog):
    X = VIEWS[name](gaussian(dtype=dtype))
    with caplog.at_level(logging.INFO, logger="scoreline"):
        operator = as_operator(X)
    assert np.shares_memory(operator._X, X)
    if hasattr(operator, "_flat"):
        assert np.shares_memory(operator._flat, X)
        assert operator._flat.dtype == X.dtype
    assert "copied" not in caplog.text


def test_dense_operators_see_later_changes_of_the_array():
    """A stronger form of "no copy", through the products alone."""
    for view in VIEWS.values():
        X = gaussian()
        operator = as_operator(view(X))
        X[:] = 2.0
        assert (operator.matvec(np.ones(operator.shape[1])) == 2.0 * operator.shape[1]).all()


@for_each("dtype", [np.float32, np.float64])
@for_each("index", [np.int32, np.int64])
@for_each("make", [sp.csr_matrix, sp.csc_matrix, sp.csr_array, sp.csc_array])
def test_compressed_matrices_are_not_copied(make, index, dtype, caplog):
    X = make(np.where(gaussian() > 0, gaussian(), 0.0).astype(dtype))
    X.indices, X.indptr = X.indices.astype(index), X.indptr.astype(index)
    with caplog.at_level(logging.INFO, logger="scoreline"):
        operator = as_operator(X)
    for held, given_array in ((operator._data, X.data), (operator._indices, X.indices), (operator._indptr, X.indptr)):
        assert np.shares_memory(held, given_array)
    assert "copied" not in caplog.text
    if X.format == "csr":
        # SciPy itself copies a view of less than half of an array, so only a large block shows that we do not.
        block = next(operator.row_blocks(30)).data
        assert np.shares_memory(block.data, X.data)


def test_a_frame_of_one_block_is_not_copied():
    frame = pd.DataFrame(gaussian())
    operator = as_operator(frame)
    assert np.shares_memory(operator._flat, frame.to_numpy())


def test_a_copy_is_logged_once(caplog):
    copied = {
        "float16": gaussian().astype(np.float16),
        "bool": gaussian() > 0,
        "longdouble": gaussian().astype(np.longdouble),
        "coo": sp.coo_matrix(gaussian()),
        "csr_bool": sp.csr_matrix(gaussian() > 0),
        "frame_of_two_blocks": pd.DataFrame({"a": [1, 2], "b": [0.5, 1.5]}),
    }
    for name, X in copied.items():
        caplog.clear()
        with caplog.at_level(logging.INFO, logger="scoreline"):
            as_operator(X)
        assert caplog.text.count("copied X once") == 1, name


def test_operators_do_not_write_to_their_input():
    X, w, u = gaussian(), np.ones(23), np.ones(37)
    original = X.copy()
    for storage in (X, sp.csr_matrix(X), sp.csc_matrix(X)):
        operator = as_operator(storage)
        operator.matvec(w)
        operator.rmatvec(u)
        operator.column_statistics(u)
    assert np.array_equal(X, original)
    assert (w == 1).all()
    assert (u == 1).all()


SKIPPING = {
    "c": lambda X: X,
    "c32": lambda X: X.astype(np.float32),
    "columns_3_to_9": lambda X: X[:, 3:9],
    "every_second_row": lambda X: X[::2],
    "reversed_rows": lambda X: X[::-1],
    "one_column": lambda X: X[:, 4:5],
    "csr": sp.csr_matrix,
    "csr32": lambda X: sp.csr_array(X.astype(np.float32)),
}


@for_each("n", [1, 5, 37, 3001])
@for_each("name", SKIPPING)
def test_rows_of_multiplier_zero_are_not_read(name, n):
    rng = np.random.default_rng(n)
    A = rng.standard_normal((n, 100))
    A[rng.random(n) < 0.5] = np.nan
    X = SKIPPING[name](A)
    dense = X.toarray() if sp.issparse(X) else X.astype(np.float64)
    bad = np.isnan(dense).any(axis=1)
    u = np.where(bad, 0.0, rng.standard_normal(len(dense)))
    operator = as_operator(X, check_finite=False)
    good = np.flatnonzero(~bad)
    expected = dense[good].T @ u[good]
    # Sums of n terms in another order.
    tolerance = {"rtol": 0, "atol": 1e-13 * max(1, n)}
    np.testing.assert_allclose(operator.rmatvec(u), expected, **tolerance)
    rows = rng.permutation(len(dense))
    np.testing.assert_allclose(operator.rmatvec_rows(u[rows], rows), expected, **tolerance)
    # The test can see a row that is read: a multiplier other than 0 brings the NaN in.
    if bad.any():
        assert np.isnan(operator.rmatvec(np.ones(len(dense)))).any()


EQUAL_ROWS = {
    "c": lambda X: X,
    "c32": lambda X: X.astype(np.float32),
    "f": np.asfortranarray,
    "f32": lambda X: np.asfortranarray(X, dtype=np.float32),
    "sliced": lambda X: np.hstack([X, X])[:, : X.shape[1]],
    "reversed": lambda X: X[:, ::-1],
    "csr": sp.csr_matrix,
    "csc": sp.csc_matrix,
}


@for_each("name", EQUAL_ROWS)
@examples(30)
@given(n=st.integers(1, 40), p=st.integers(1, 70), seed=st.integers(0, 1000))
def test_equal_rows_have_equal_scores_to_the_bit(name, n, p, seed):
    """Ties between equal examples are ties in AUC: one bit of difference would break them."""
    rng = np.random.default_rng(seed)
    operator = as_operator(EQUAL_ROWS[name](np.tile(rng.standard_normal(p), (n, 1))))
    w = rng.standard_normal(p)
    assert len(np.unique(operator.matvec(w))) == 1
    assert len(np.unique(operator.matvec_rows(w, rng.integers(0, n, n + 3)))) == 1


@for_each("name", EQUAL_ROWS)
@for_each("n", [1999, 3001, 3002, 3003, 9001])
def test_equal_rows_have_equal_scores_across_chunks(name, n):
    rng = np.random.default_rng(n)
    operator = as_operator(EQUAL_ROWS[name](np.tile(rng.standard_normal(203), (n, 1))))
    assert len(np.unique(operator.matvec(rng.standard_normal(203)))) == 1
