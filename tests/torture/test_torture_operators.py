"""Every storage and wrapper of X at scales from 1e-320 to 1e300, against sums of fractions.

The contract: a finite result is right, up to the rounding of a sum (n roundings of the sum of magnitudes) and of numbers below
2.2e-308 (5e-324 each, times what they are multiplied with). Sums whose magnitudes stay within the range of floats are finite.
What leaves the range shows as infinity or NaN, which solvers look for, and nothing warns.
"""

import tempfile
import warnings
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse.linalg import aslinearoperator
from torture_data import (
    LARGEST,
    TINY,
    as_float64,
    dense_matrices,
    float_matrices,
    matrices,
    shapes,
)

from cases import for_each
from scoreline.distributed import Layout, Ref
from scoreline.distributed.cluster import InlineCluster, Placement
from scoreline.distributed.parts_operator import PartsOperator
from scoreline.operators import BlockOperator, InterceptOperator, ScaledOperator, as_operator
from scoreline.operators.mapped import MappedCsr, MappedDense
from scoreline.operators.stacked import StackedOperator
from scoreline.operators.wrappers import scaled
from tiers import TIER, examples

EPS = Fraction(float(np.finfo(float).eps))
LEAST, MOST = Fraction(TINY), Fraction(1e300)


def exact(array):
    """Return an array of fractions."""
    out = np.empty(np.shape(array), dtype=object)
    for place, value in np.ndenumerate(np.asarray(array, dtype=np.float64)):
        out[place] = Fraction(float(value))
    return out


def exact_entries(X):
    """Return what a matrix stands for as fractions: integers beyond 2^53 become floats, entries named twice are added."""
    if not sp.issparse(X):
        return exact(np.asarray(X).astype(np.float64))
    coo, out = X.tocoo(), exact(np.zeros(X.shape))
    for i, j, value in zip(coo.row.tolist(), coo.col.tolist(), coo.data.astype(np.float64).tolist(), strict=True):
        out[i, j] += Fraction(value)
    return out


def check(got, expected, size, terms, reach, what, held=0):
    """Compare numbers with fractions: `size` sums magnitudes, `reach` is what a number below floats was multiplied with."""
    assert np.shape(got) == np.shape(expected), what
    # `held` is the largest product on the way, which may leave the range although the result would not.
    for place, value in np.ndenumerate(np.asarray(got)):
        if not np.isfinite(value):
            assert max(size[place], held) >= MOST, (
                f"{what}{list(place)} is {value}, expected {float(expected[place]):.3g}"
            )
            continue
        allowed = 4 * (terms + 2) * (EPS * size[place] + LEAST * max(1, reach))
        assert abs(Fraction(float(value)) - expected[place]) <= allowed, f"{what}{list(place)} is {value}"


def vectors(rng, n, p):
    """Return coefficients and row weights: plain ones, or over hundreds of decades."""
    w, u = rng.standard_normal(p), rng.standard_normal(n)
    if rng.random() < 0.4:
        w, u = w * 10.0 ** rng.uniform(-300, 300, p), u * 10.0 ** rng.uniform(-300, 300, n)
    u[rng.random(n) < 0.3] = 0.0
    return w, u


def largest(array):
    return max((abs(v) for v in array.ravel()), default=Fraction(0))


def check_products(operator, A, rng):
    """Check both products, and those of some rows."""
    n, p = A.shape
    S = np.abs(A)
    w, u = vectors(rng, n, p)
    W, U = exact(w), exact(u)
    reach = max(largest(S), largest(W), largest(U))
    check(operator.matvec(w), A @ W, S @ np.abs(W), p, reach, "Xw")
    check(operator.rmatvec(u), A.T @ U, S.T @ np.abs(U), n, reach, "X'u")
    if "rows" in operator.capabilities:
        rows = rng.integers(0, n, max(1, n // 2))
        check(operator.matvec_rows(w, rows), A[rows] @ W, S[rows] @ np.abs(W), p, reach, "Xw of rows")
        v = u[: len(rows)]
        V = exact(v)
        check(operator.rmatvec_rows(v, rows), A[rows].T @ V, S[rows].T @ np.abs(V), n, reach, "X'u of rows")


def check_statistics(operator, A, rng):
    """Check weight, mean, variance and largest magnitude of the columns, with weights of any size."""
    n = len(A)
    weight = None
    if rng.random() < 0.6:
        scale = 10.0 ** float(rng.choice([0, 0, -300, 300, 20]))
        weight = rng.integers(0, 4, n) * scale * (0.5 + rng.random(n))
        weight[rng.integers(n)] = scale
    s = exact(np.ones(n) if weight is None else weight)
    got, total = operator.column_statistics(weight), s.sum()
    mean = (A.T @ s) / total
    spread = np.abs(A - mean).max(axis=0)
    there = s > 0
    for j in range(A.shape[1]):
        size, top = max((abs(v) for v in A[there, j]), default=Fraction(0)), LEAST * 4
        allowed = 16 * n * EPS * size + n * top
        if size * n < MOST:
            assert abs(Fraction(float(got.weight[j])) - total) <= 4 * n * EPS * total
            assert abs(Fraction(float(got.mean[j])) - mean[j]) <= allowed
        assert Fraction(float(got.max_abs[j])) == size
        variance = (s * (A[:, j] - mean[j]) ** 2).sum() / total
        value = float(got.variance[j])
        if spread[j] ** 2 * n * n < MOST:
            assert np.isfinite(value)
        if np.isfinite(value):
            # Differences from the first entry are right to a rounding of entries; squares lose twice that times the spread.
            lost = 64 * n * EPS * (spread[j] + 4 * n * EPS * size) * spread[j] + (8 * n * EPS * size) ** 2 + n * n * top
            assert abs(Fraction(value) - variance) <= lost + 16 * n * EPS * spread[j] ** 2


def check_second_order(operator, A, rng):
    """Check X'DX, quadratic forms, sums of squares and lengths of rows."""
    n, p = A.shape
    weight = rng.integers(0, 3, n) * 10.0 ** float(rng.choice([0, 0, -100, 100]))
    D, S = exact(weight), np.abs(A)
    top = max(largest(S), Fraction(1))
    reach = top * max(largest(D), 1)
    check(operator.gram(weight), (A.T * D) @ A, (S.T * D) @ S, n, reach * top, "X'DX", reach)
    # Blocks of rows are squared before they are weighted, so squares may leave the range although the sum would not.
    check(operator.square_rmatvec(weight), (A.T**2) @ D, (S.T**2) @ D, n, reach * top, "sums of squares", top**2)
    root = rng.integers(-2, 3, (p, p)).astype(float)
    M = exact(root @ root.T)
    size = np.array([row @ np.abs(M) @ row for row in S], dtype=object)
    forms = np.array([row @ M @ row for row in A], dtype=object)
    found = operator.quadratics(root @ root.T)
    check(found, forms, size, p * p, top * largest(M) + 1, "x'Mx", p * top * largest(M))
    squares = (A**2).sum(axis=1)
    for i, norm in enumerate(operator.row_norms()):
        if squares[i] < MOST**2:
            # The square of a norm of d digits has d - 1; a norm below 2.2e-308 has an absolute error of the least float.
            found = Fraction(float(norm))
            assert abs(found**2 - squares[i]) <= 16 * (p + 2) * EPS * squares[i] + 4 * LEAST * (found + LEAST)


def quiet_operator(X):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return as_operator(X)


def check_everything(operator, A, seed):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rng = np.random.default_rng(seed)
        check_products(operator, A, rng)
        if "statistics" in operator.capabilities:
            check_statistics(operator, A, rng)
        if "row_blocks" in operator.capabilities:
            check_second_order(operator, A, rng)


seeds = st.integers(0, 10**6)


@examples(250)
@given(X=matrices(shapes(12, 6)) if TIER == "quick" else matrices(), seed=seeds)
def test_storages_at_any_scale(X, seed):
    check_everything(quiet_operator(X), exact_entries(X), seed)


class MadeRows(BlockOperator):
    """Rows that exist only block by block."""

    def __init__(self, X):
        super().__init__(X.shape)
        self.X = X

    def _block(self, start, stop):
        return self.X[start:stop]


def rows_in_parts(X):
    """Return X as parts of a cluster in this process."""
    spans = [[(0, len(X) // 2)], [(len(X) // 2, len(X))]]
    layout = Layout(InlineCluster(), [Placement(f"worker-{k}", 1) for k in range(2)], spans)
    refs = []
    for ((a, b),), placement in zip(spans, layout.placements, strict=True):
        part = as_operator(X[a:b])
        refs.append(Ref(layout.cluster.submit(lambda part=part: part, placement=placement)))
    return PartsOperator(layout, refs)


def mapped_dense(X):
    folder = tempfile.TemporaryDirectory()
    np.save(Path(folder.name) / "X.npy", X)
    operator = MappedDense(Path(folder.name))
    operator.temporary_folder = folder  # goes with the operator
    return operator


def mapped_csr(X):
    folder, rows = tempfile.TemporaryDirectory(), sp.csr_array(X)
    for name in ("data", "indices", "indptr"):
        np.save(Path(folder.name) / f"{name}.npy", getattr(rows, name))
    operator = MappedCsr(Path(folder.name), X.shape)
    operator.temporary_folder = folder
    return operator


MADE = {
    "stacked": lambda X: StackedOperator([as_operator(X[: len(X) // 2]), as_operator(X[len(X) // 2 :])]),
    "stacked_sparse": lambda X: StackedOperator([as_operator(X[:1]), as_operator(sp.csr_array(X[1:]))]),
    "rows_of_dense": lambda X: as_operator(np.vstack([X, X[:1]])).on_rows(np.arange(len(X))),
    "rows_of_csr": lambda X: as_operator(sp.csr_array(np.vstack([X[:1], X]))).on_rows(np.arange(1, len(X) + 1)),
    "rows_of_csc": lambda X: as_operator(sp.csc_matrix(X)).on_rows(np.arange(len(X))),
    "made": MadeRows,
    "linear": lambda X: as_operator(aslinearoperator(X)),
    "mapped_dense": mapped_dense,
    "mapped_csr": mapped_csr,
    "pandas": lambda X: as_operator(pd.DataFrame(X)),
    "polars": lambda X: as_operator(pl.DataFrame(X)),
    "float32": lambda X: as_operator(X.astype(np.float32)),
}


@for_each("name", list(MADE))
@examples(6)
@given(X=float_matrices(shapes(9, 5)), seed=seeds)
def test_other_operators_at_any_scale(name, X, seed):
    if name == "float32":
        X = np.clip(X, -3e38, 3e38).astype(np.float32).astype(np.float64)
    check_everything(MADE[name](X), exact(X), seed)


@examples(6)
@given(X=float_matrices(shapes(9, 5)), seed=seeds)
def test_rows_in_parts_at_any_scale(X, seed):
    """Scores in blocks come here to be compared; weights are taken there first."""
    rng, A = np.random.default_rng(seed), exact(X)
    operator, S = rows_in_parts(X), np.abs(A)
    w, u = vectors(rng, *X.shape)
    reach = max(largest(S), largest(exact(w)), largest(exact(u)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        z, g = np.asarray(operator.matvec(w)), operator.rmatvec(operator.aligned(u))
    check(z, A @ exact(w), S @ np.abs(exact(w)), X.shape[1], reach, "Xw")
    check(g, A.T @ exact(u), S.T @ np.abs(exact(u)), len(X), reach, "X'u")


@examples(100)
@given(X=float_matrices(shapes(9, 5)), seed=seeds, centred=st.booleans(), sparse=st.booleans())
def test_wrappers_at_any_scale(X, seed, centred, sparse):
    """(X - c) s and a constant column: rounding is relative to |X| + |c|, which `largest` says to solvers."""
    rng, (n, p) = np.random.default_rng(seed), X.shape
    scale = 10.0 ** rng.choice([0.0, 0.0, -200.0, 200.0, -5.0], p)
    center = 10.0 ** rng.choice([0.0, -300.0, 150.0], p) if centred else None
    value = float(rng.choice([1.0, 0.1, 1e-200, 1e200]))
    C = exact(np.zeros(p) if center is None else center)
    A = (exact(X) - C) * exact(scale)
    S = (np.abs(exact(X)) + np.abs(C)) * exact(scale)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        operator = InterceptOperator(
            ScaledOperator(quiet_operator(sp.csr_array(X) if sparse else X), scale, center), value
        )
        last = exact(np.full((n, 1), value))
        top = np.hstack([S, last])
        # What is scaled last was rounded, or lost below the least float, before.
        w, u = vectors(rng, n, p + 1)
        W, U = exact(w), exact(u)
        reach = max(largest(top), largest(exact(scale)), largest(exact(X))) * max(Fraction(1), largest(W), largest(U))
        held = np.hstack([(np.abs(exact(X)) + np.abs(C)) * np.maximum(1, exact(scale)), last])
        scaled = largest(exact(scale) * np.abs(W[:p]))  # Xs w = X (s w): s w may leave the range although X is 0
        for got, expected, size, terms, on_the_way in (
            (operator.matvec(w), np.hstack([A, last]) @ W, held @ np.abs(W), p, scaled),
            (operator.rmatvec(u), np.hstack([A, last]).T @ U, held.T @ np.abs(U), n, 0),
        ):
            check(got, expected, size, terms, reach, "product", on_the_way)


@examples(100)
@given(X=dense_matrices(shapes(9, 5)), name=st.sampled_from(["maxabs", "standard"]))
def test_scaling_brings_columns_to_one_or_refuses(X, name):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            operator = scaled(as_operator(X), name)
        except ValueError as error:
            words = str(error)
        else:
            words = ""
        dense = as_float64(X)
        if words:
            column = int(words.split("column ")[1].split(":")[0])
            top = np.abs(dense[:, column]).max()
            assert not 1e-140 < top < 1e140
            return
        columns = np.column_stack([operator.matvec(e) for e in np.eye(dense.shape[1])])
    assert np.isfinite(columns).all()
    if name == "maxabs":
        np.testing.assert_allclose(
            np.abs(columns).max(axis=0), (np.abs(dense).max(axis=0) > 0).astype(float), rtol=4e-16
        )
        return
    deviation = columns.std(axis=0)
    # A column is constant (and 0 now) or has deviation 1, as far as differences of its entries have digits.
    spread = np.abs(dense - dense.mean(axis=0)).max(axis=0) / np.maximum(np.abs(dense).max(axis=0), TINY)
    clear = spread > 1e-8
    np.testing.assert_allclose(deviation[clear], 1.0, rtol=1e-6)
    assert (deviation[(dense == dense[0]).all(axis=0)] == 0.0).all()


def test_a_coefficient_out_of_range_in_units_of_x_names_its_column():
    operator = scaled(as_operator(np.array([[1.0, 1e-300], [2.0, 3e-300]])), "maxabs")
    with pytest.raises(ValueError, match=r"column 1 leaves the range of floats"):
        operator.unwrap(np.array([1.0, 1e10]), 0.0)
    coef, _ = operator.unwrap(np.array([1.0, 1.0]), 0.0)
    assert np.isfinite(coef).all()


@for_each("kind", [sp.coo_matrix, sp.coo_array])
@for_each("dtype", [np.int8, np.uint8, np.bool_, np.int16])
def test_small_integers_that_name_a_place_twice_do_not_wrap_around(kind, dtype):
    """SciPy adds duplicates in the type of the entries: 100 + 100 of int8 was -56."""
    entries = np.array([100, 100, 3]).astype(dtype)
    X = kind((entries, (np.array([0, 0, 1]), np.array([0, 0, 0]))), shape=(2, 1))
    expected = [float(entries[0]) + float(entries[1]), float(entries[2])]
    assert as_operator(X).matvec(np.ones(1)).tolist() == expected


def test_masked_entries_are_refused_and_masks_that_hide_nothing_are_not():
    X = np.ma.masked_array(np.arange(6.0).reshape(3, 2), mask=[[0, 0], [0, 1], [0, 0]])
    with pytest.raises(ValueError, match=r"masked entries.*filled"):
        as_operator(X)
    assert as_operator(np.ma.masked_array(X.data)).matvec([1.0, 1.0]).tolist() == [1.0, 5.0, 9.0]


def test_numbers_beyond_float64_are_refused_without_warnings():
    with pytest.raises(ValueError, match="too large for float64"):
        quiet_operator(np.array([[10**400, 1]], dtype=object))
    with pytest.raises(ValueError, match="NaN or infinity"):
        quiet_operator(np.full((2, 1), np.finfo(np.longdouble).max))
    with pytest.raises(ValueError, match="not numeric"):
        quiet_operator(pd.DataFrame({"a": pd.Series([10**400, 1], dtype=object)}))


def test_integers_beyond_2_to_53_are_those_of_float64():
    X = np.array([[2**53 + 1, 2**63 - 1], [-(2**63), 3]])
    assert as_operator(X).matvec([1.0, 0.0]).tolist() == [float(2**53), -float(2**63)]
    U = np.array([[2**64 - 1], [1]], dtype=np.uint64)
    assert as_operator(U).matvec([1.0]).tolist() == [float(2**64), 1.0]


def test_lengths_of_rows_neither_overflow_nor_vanish():
    X = np.array([[3e200, 4e200], [3e-200, -4e-200], [3.0, 4.0], [0.0, 0.0], [15 * TINY, 20 * TINY]])
    for storage in (X, sp.csr_array(X), np.asfortranarray(X), X[:, ::-1]):
        np.testing.assert_allclose(as_operator(storage).row_norms(), [5e200, 5e-200, 5.0, 0.0, 25 * TINY], rtol=1e-15)


def test_rows_of_weight_zero_may_have_squares_beyond_floats():
    X = np.array([[1.0, 7e199], [2.0, 0.5]])
    assert as_operator(X).square_rmatvec(np.array([0.0, 1.0])).tolist() == [4.0, 0.25]


def test_a_constant_column_of_any_size_has_variance_zero():
    for size in (1e-310, 1e-200, 1e200, LARGEST / 8):
        for X in (np.full((5, 1), size), sp.csr_array(np.full((5, 1), size)), sp.csc_array(np.full((5, 1), size))):
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                found = as_operator(X).column_statistics()
            assert (found.mean[0], found.variance[0], found.max_abs[0]) == (size, 0.0, size)


def test_weights_of_any_size_give_the_same_variance():
    X, weight = np.array([[1e-10], [3e-10], [2e-10]]), np.array([1.0, 2.0, 1.0])
    expected = as_operator(X).column_statistics(weight)
    for factor in (2.0**-1000, 2.0**1000):
        got = as_operator(X).column_statistics(factor * weight)
        assert got.weight[0] == factor * expected.weight[0]
        assert (got.mean[0], got.variance[0]) == (expected.mean[0], expected.variance[0])


@for_each("make", [np.asarray, sp.csr_array, sp.csc_matrix, lambda X: X[:, ::-1]])
def test_a_quadratic_form_of_another_size_is_refused(make):
    """Kernels of sparse rows read past the end of a matrix that was too small."""
    operator = as_operator(make(np.eye(3)))
    for shape in ((1, 1), (2, 2), (4, 4), (3,), (3, 1)):
        with pytest.raises(ValueError, match="matrix has shape"):
            operator.quadratics(np.ones(shape))
    assert operator.quadratics(np.ones((3, 3), dtype=np.int8)).tolist() == [1.0, 1.0, 1.0]


@for_each("make", [sp.csr_array, sp.csc_array])
@for_each("index", [np.int16, ">i4", ">i8", np.uint32])
def test_indices_of_any_type_of_integer(make, index):
    """Those of two bytes failed in a view of memory, foreign byte orders were called malformed."""
    X = make(np.array([[1.0, 0.0, 2.0], [0.0, 0.0, 3.0]]))
    X.indices, X.indptr = X.indices.astype(index), X.indptr.astype(index)
    assert as_operator(X).matvec([1.0, 10.0, 100.0]).tolist() == [201.0, 300.0]


@for_each("weight", [[np.nan, 1.0], [-1.0, 1.0], [np.inf, 1.0]])
@for_each("make", [np.asarray, sp.csr_array])
def test_statistics_with_weights_that_are_none_are_refused(make, weight):
    """A mean of 0 came out."""
    with pytest.raises(ValueError, match="weight must hold finite numbers"):
        as_operator(make(np.eye(2))).column_statistics(weight)


def test_a_memory_map_that_cannot_be_written(tmp_path):
    X = np.arange(12.0).reshape(4, 3) * 1e-310
    np.save(tmp_path / "X.npy", X)
    check_everything(quiet_operator(np.load(tmp_path / "X.npy", mmap_mode="r")), exact(X), 5)
