"""Every storage that `as_operator` takes, and every wrapper, through `check_operator`."""

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import aslinearoperator
from storages import (
    COMPUTED,
    DENSE,
    FRAMES,
    LARGE,
    SCALE,
    SPARSE,
    SPARSE_NAMES,
    WRAPPERS,
    N,
    P,
    dense_array,
    gaussian,
    inner_operators,
    mostly_zero,
)

from cases import for_each
from scoreline.operators import (
    DenseOperator,
    InterceptOperator,
    LinearMapOperator,
    RandomFourierFeatures,
    ScaledOperator,
    as_operator,
)
from scoreline.operators.blocks import StridedOperator
from scoreline.testing import check_operator
from tiers import TIER


@for_each("name", DENSE)
def test_dense_storage_keeps_the_contract(name):
    X = DENSE[name]()
    # An error of 1e-12 relative to sum |x w| is 60 roundings per term: other orders of summation pass, float32 sums fail.
    # Denormal numbers have an absolute spacing of 5e-324 instead: 1e-310 has 13 digits.
    check_operator(as_operator(X), np.asarray(X).astype(np.float64), rtol=1e-11 if name == "denormal" else 1e-12)


@for_each(
    ("name", "expected"),
    [
        ("c", DenseOperator),
        ("f32", DenseOperator),
        ("columns_3_to_9", DenseOperator),
        ("every_second_row", DenseOperator),
        ("every_third_column_f", DenseOperator),
        ("transposed_slice", DenseOperator),
        ("sliding_window_apart", DenseOperator),
        ("sliding_window", StridedOperator),
        ("both_strided", StridedOperator),
        ("every_third_column", StridedOperator),
        ("reversed_rows", StridedOperator),
        ("big_endian", StridedOperator),
        ("unaligned", StridedOperator),
        ("record_field", StridedOperator),
        ("broadcast_row", StridedOperator),
    ],
)
def test_layouts_that_kernels_can_walk_use_the_fast_operator(name, expected):
    assert type(as_operator(DENSE[name]())) is expected


def test_the_contract_accepts_constant_columns():
    """The reference variance of a constant 0.1 is the rounding of its mean squared, 1e-33; 0 must pass as equal."""
    X = np.full((N, 3), 0.1)
    assert (as_operator(X).column_statistics().variance == 0.0).all()
    check_operator(as_operator(X), X)


@for_each("name", SPARSE_NAMES)
def test_sparse_storage_keeps_the_contract(name):
    X = SPARSE[name]()
    original = X.copy() if X.format in ("csr", "csc") else None
    check_operator(as_operator(X), X.astype(np.float64).toarray())
    if original is not None:
        arrays = ((X.data, original.data), (X.indices, original.indices), (X.indptr, original.indptr))
        for now, before in arrays:
            size = len(now) if len(now) == len(before) else X.indptr[-1]
            assert np.array_equal(now[:size], before[:size]), "the caller's matrix was changed"


def test_read_only_sparse_arrays_are_accepted():
    X = sp.csr_matrix(mostly_zero())
    for array in (X.data, X.indices, X.indptr):
        array.flags.writeable = False
    check_operator(as_operator(X), X.toarray())


@for_each("name", FRAMES)
def test_frames_keep_the_contract(name):
    X = FRAMES[name]()
    check_operator(as_operator(X), np.asarray(X.to_numpy()).astype(np.float64))


@for_each("name", COMPUTED)
def test_computed_matrices_keep_the_contract(name):
    operator, dense = COMPUTED[name]()
    # The features themselves are sums computed by BLAS and by a dot product: a few roundings of angles of size 10.
    check_operator(operator, dense, rtol=1e-11 if name.startswith("fourier") else 1e-12)


def test_linear_operator_and_operator_are_recognised():
    assert type(as_operator(aslinearoperator(gaussian()))) is LinearMapOperator
    operator = as_operator(gaussian())
    assert as_operator(operator) is operator


def test_fourier_features_approximate_the_gaussian_kernel():
    rows = np.random.default_rng(0).standard_normal((6, 3))
    D, gamma = 20_000, 0.4
    features = next(RandomFourierFeatures(rows, n_features=D, gamma=gamma, random_state=1).row_blocks()).data
    distances = ((rows[:, None] - rows[None]) ** 2).sum(axis=2)
    # One term 2 cos cos has variance at most 1.5, so 5 standard deviations of the mean of D terms.
    assert np.abs(features @ features.T - np.exp(-gamma * distances)).max() <= 5 * np.sqrt(1.5 / D)


def test_fourier_features_of_new_rows_are_those_of_training():
    rows = gaussian(N, 5)
    train = RandomFourierFeatures(rows, n_features=16, random_state=3)
    new = RandomFourierFeatures(rows[4:9], n_features=16, random_state=3)
    other = RandomFourierFeatures(rows[4:9], n_features=16, random_state=4)
    w = np.arange(16.0)
    # BLAS may sum in another order for another number of rows.
    np.testing.assert_allclose(new.matvec(w), train.matvec(w)[4:9], rtol=1e-13, atol=1e-12)
    assert np.abs(other.matvec(w) - new.matvec(w)).max() > 0.1


@for_each("inner", inner_operators())
@for_each("name", WRAPPERS)
def test_wrappers_keep_the_contract(name, inner):
    make, dense = inner_operators()[inner]
    wrap, apply = WRAPPERS[name]
    operator = wrap(make())
    # Centring subtracts <c, s w> after the sum: the error is relative to |X||w| + |c||s w|, a few times |Xs||w| here.
    check_operator(operator, apply(dense), rtol=1e-12)
    assert operator.capabilities == operator.inner.capabilities


@for_each("make", [np.asarray, sp.csr_matrix, sp.csc_array])
@for_each("name", WRAPPERS)
def test_wrappers_over_float32_keep_float64_accuracy(name, make):
    A = mostly_zero(dtype=np.float32)
    wrap, apply = WRAPPERS[name]
    check_operator(wrap(as_operator(make(A))), apply(A.astype(np.float64)))


def test_wrappers_count_passes_on_both_operators():
    inner = as_operator(gaussian())
    outer = InterceptOperator(ScaledOperator(inner, SCALE))
    outer.matvec(np.ones(P + 1))
    outer.rmatvec(np.ones(N))
    outer.matvec_rows(np.ones(P + 1), np.arange(N // 2))
    assert inner.n_passes == outer.inner.n_passes == outer.n_passes == 2 + (N // 2) / N


@for_each("name", WRAPPERS)
def test_unwrap_gives_the_same_scores_on_the_inner_matrix(name):
    inner = as_operator(gaussian())
    operator = WRAPPERS[name][0](inner)
    w, b = np.random.default_rng(0).standard_normal(operator.shape[1]), 0.7
    coef, intercept, layer = w, b, operator
    while layer is not inner:
        coef, intercept = layer.unwrap(coef, intercept)
        layer = layer.inner
    # Sums of 24 terms of size 1 to 10 in two orders.
    np.testing.assert_allclose(inner.matvec(coef) + intercept, operator.matvec(w) + b, rtol=0, atol=1e-12)


@for_each("name", ("f", "csr") if TIER == "quick" else LARGE)
def test_several_chunks_and_threads_keep_the_contract(name):
    X = LARGE[name]()
    operator = as_operator(X)
    if hasattr(operator, "_bounds"):
        assert len(operator._bounds) >= 3, "this test is about several chunks"
    check_operator(operator, dense_array(X))


@for_each("inner", ["c", "csr"])
def test_wrappers_over_several_chunks(inner):
    X = LARGE[inner]()
    dense = dense_array(X)
    scale, center = np.linspace(0.5, 2, 200), np.linspace(-1, 1, 200)
    operator = InterceptOperator(ScaledOperator(as_operator(X), scale, center))
    w, u = np.linspace(-1, 1, 201), np.sin(np.arange(6000.0))
    full = np.hstack([(dense - center) * scale, np.ones((6000, 1))])
    # 1e-12 of the sum of magnitudes (about 200 and 6000 here).
    np.testing.assert_allclose(operator.matvec(w), full @ w, rtol=0, atol=2e-10)
    np.testing.assert_allclose(operator.rmatvec(u), full.T @ u, rtol=0, atol=3e-9)
