"""Matrices in every storage that `as_operator` takes, and wrappers of operators: one dictionary each, name to function."""

from itertools import product

import numpy as np
import pandas as pd
import polars as pl
import scipy.sparse as sp
from scipy.sparse.linalg import aslinearoperator

from scoreline.operators import (
    BlockOperator,
    InterceptOperator,
    RandomFourierFeatures,
    ScaledOperator,
    StringOperator,
    as_operator,
)
from tiers import tiered

N, P = 37, 23  # neither is a multiple of 4, so the remainders of the unrolled kernels are used
CSR = {"matrix": sp.csr_matrix, "array": sp.csr_array}
CSC = {"matrix": sp.csc_matrix, "array": sp.csc_array}


def gaussian(n=N, p=P, dtype=np.float64, order="C"):
    return np.asarray(np.random.default_rng(7).standard_normal((n, p)), dtype=dtype, order=order)


def mostly_zero(n=N, p=P, density=0.2, dtype=np.float64):
    rng = np.random.default_rng(8)
    return np.where(rng.random((n, p)) < density, rng.standard_normal((n, p)), 0.0).astype(dtype)


def read_only(X):
    X.flags.writeable = False
    return X


def unaligned(X):
    """Return X in memory that starts at an odd address."""
    buffer = np.empty(X.nbytes + 1, dtype=np.uint8)
    out = buffer[1:].view(X.dtype).reshape(X.shape)
    out[...] = X
    return out


def record_field(X):
    """Return X as a field of records of 12 bytes: the distance between entries is no multiple of their size."""
    records = np.zeros(X.shape, dtype=[("value", np.float64), ("other", np.int32)])
    records["value"] = X
    return records["value"]


DENSE = {
    "c": lambda: gaussian(),
    "f": lambda: gaussian(order="F"),
    "c32": lambda: gaussian(dtype=np.float32),
    "f32": lambda: gaussian(dtype=np.float32, order="F"),
    "read_only": lambda: read_only(gaussian()),
    "every_second_row": lambda: gaussian()[::2],
    "every_second_row_f": lambda: gaussian(order="F")[::2],
    "every_third_column": lambda: gaussian()[:, ::3],
    "every_third_column_f": lambda: gaussian(order="F")[:, ::3],
    "both_strided": lambda: gaussian()[::2, ::3],
    "columns_3_to_9": lambda: gaussian()[:, 3:9],
    "columns_3_to_9_32": lambda: gaussian(dtype=np.float32)[:, 3:9],
    "rows_3_to_9_f": lambda: gaussian(order="F")[3:9],
    "reversed_rows": lambda: gaussian()[::-1],
    "reversed_columns": lambda: gaussian()[:, ::-1],
    "transposed": lambda: gaussian().T,
    "transposed_slice": lambda: gaussian()[:, 3:9].T,
    "transposed_strided": lambda: gaussian()[::2, ::3].T,
    "big_endian": lambda: gaussian().astype(">f8"),
    "big_endian_32": lambda: gaussian().astype(">f4"),
    "unaligned": lambda: unaligned(gaussian()),
    "record_field": lambda: record_field(gaussian()),
    "broadcast_row": lambda: np.broadcast_to(np.round(8 * gaussian(1)) / 8, (N, P)),
    "broadcast_column": lambda: np.broadcast_to(gaussian(N, 1), (N, P)),
    "sliding_window": lambda: np.lib.stride_tricks.sliding_window_view(gaussian(1, 60)[0], 7),
    "sliding_window_apart": lambda: np.lib.stride_tricks.sliding_window_view(gaussian(1, 60)[0], 7)[::7],
    "one_row": lambda: gaussian(1),
    "one_row_of_many": lambda: gaussian()[5:6],
    "one_row_strided": lambda: gaussian()[:, :1].T,
    "one_row_reversed": lambda: gaussian(1)[:, ::-1],
    "one_column": lambda: gaussian(N, 1),
    "one_column_of_many": lambda: gaussian()[:, 4:5],
    "one_column_of_many_f": lambda: gaussian(order="F")[:, 4:5],
    "one_column_reversed": lambda: gaussian(N, 1)[::-1],
    "one_entry": lambda: gaussian(1, 1),
    "one_entry_of_many": lambda: gaussian()[5:6, 4:5],
    "int8": lambda: np.random.default_rng(0).integers(-100, 100, (N, P)).astype(np.int8),
    "int64": lambda: np.random.default_rng(0).integers(-(2**52), 2**52, (N, P)),
    "uint64": lambda: np.random.default_rng(0).integers(0, 2**52, (N, P)).astype(np.uint64),
    "bool": lambda: gaussian() > 0,
    "float16": lambda: gaussian().astype(np.float16),
    "longdouble": lambda: gaussian().astype(np.longdouble),
    "object": lambda: np.array([[1, 2.5, True], [np.float32(0.5), -3, 0]], dtype=object),
    "lists": lambda: [[1, 2.5, 3], [4, 5, 6]],
    "denormal": lambda: gaussian() * 1e-310,
    "zeros": lambda: np.zeros((N, P)),
}


def with_index_type(X, indices, indptr=None):
    X.indices, X.indptr = X.indices.astype(indices), X.indptr.astype(indptr or indices)
    assert (X.indices.dtype, X.indptr.dtype) == (np.dtype(indices), np.dtype(indptr or indices))
    return X


def shuffled_lines(X):
    rng = np.random.default_rng(3)
    for lo, hi in zip(X.indptr[:-1], X.indptr[1:], strict=True):
        order = rng.permutation(hi - lo) + lo
        X.data[lo:hi], X.indices[lo:hi] = X.data[order], X.indices[order]
    X.has_sorted_indices = False
    assert not X.has_canonical_format
    return X


def with_duplicates(kind):
    """Return a matrix that names most places two or three times, lines unsorted."""
    rng = np.random.default_rng(4)
    lines, width = (N, P) if kind(np.eye(2)).format == "csr" else (P, N)
    indptr = np.arange(lines + 1) * 40
    X = kind((rng.standard_normal(40 * lines), rng.integers(0, width, 40 * lines), indptr), shape=(N, P))
    assert X.nnz == 40 * lines
    assert not X.has_canonical_format
    return X


def with_explicit_zeros(X):
    X.data[::3] = 0.0
    return X


def with_slack(X):
    """Append room to the arrays, as SciPy itself does when it over-allocates; what stands there must not be read."""
    X.data = np.append(X.data, [np.nan] * 5)
    X.indices = np.append(X.indices, np.full(5, 10**6, dtype=X.indices.dtype))
    assert len(X.data) > X.indptr[-1]
    return X


def with_empty_lines():
    A = mostly_zero(density=0.5)
    A[[0, 5, 6, N - 1]] = 0.0
    A[:, [0, 7, P - 1]] = 0.0
    return A


SPARSE = {}
for kind in ("matrix", "array"):
    for fmt in ("csr", "csc", "coo", "lil", "dok", "dia"):
        SPARSE[f"{fmt}_{kind}"] = lambda name=f"{fmt}_{kind}": getattr(sp, name)(mostly_zero())
    SPARSE[f"bsr_{kind}"] = lambda name=f"bsr_{kind}": getattr(sp, name)(mostly_zero(36, 20), blocksize=(4, 5))
    for fmt, make in (("csr", CSR[kind]), ("csc", CSC[kind])):
        SPARSE |= {
            f"{fmt}_{kind}_32": lambda make=make: make(mostly_zero(dtype=np.float32)),
            f"{fmt}_{kind}_int32": lambda make=make: with_index_type(make(mostly_zero()), np.int32),
            f"{fmt}_{kind}_int64": lambda make=make: with_index_type(make(mostly_zero()), np.int64),
            f"{fmt}_{kind}_int32_int64": lambda make=make: with_index_type(make(mostly_zero()), np.int32, np.int64),
            f"{fmt}_{kind}_unsorted": lambda make=make: shuffled_lines(make(mostly_zero())),
            f"{fmt}_{kind}_duplicates": lambda make=make: with_duplicates(make),
            f"{fmt}_{kind}_explicit_zeros": lambda make=make: with_explicit_zeros(make(mostly_zero())),
            f"{fmt}_{kind}_slack": lambda make=make: with_slack(make(mostly_zero())),
            f"{fmt}_{kind}_empty_lines": lambda make=make: make(with_empty_lines()),
            f"{fmt}_{kind}_zeros": lambda make=make: make((N, P)),
            f"{fmt}_{kind}_full": lambda make=make: make(gaussian()),
            f"{fmt}_{kind}_one_row": lambda make=make: make(mostly_zero(1)),
            f"{fmt}_{kind}_one_column": lambda make=make: make(mostly_zero(N, 1)),
            f"{fmt}_{kind}_one_entry": lambda make=make: make(gaussian(1, 1)),
            f"{fmt}_{kind}_int8": lambda make=make: make(np.round(10 * mostly_zero()).astype(np.int8)),
            f"{fmt}_{kind}_bool": lambda make=make: make(mostly_zero() > 0),
            f"{fmt}_{kind}_longdouble": lambda make=make: make(mostly_zero().astype(np.longdouble)),
        }


# In the quick tier, each variant of each format as a matrix or as an array, not both.
SPARSE_NAMES = ["_".join(parts) for parts in tiered(tuple(name.split("_", 2)) for name in SPARSE)]


def sparse_frame():
    return pd.DataFrame.sparse.from_spmatrix(sp.csr_matrix(mostly_zero()))


FRAMES = {
    "pandas_one_block": lambda: pd.DataFrame(gaussian()),
    "pandas_float32": lambda: pd.DataFrame(gaussian(dtype=np.float32)),
    "pandas_mixed": lambda: pd.DataFrame({"a": [1, 2, 3], "b": [0.5, -1.5, 2.5], "c": np.float32([1, 2, 4])}),
    "pandas_bool_and_float": lambda: pd.DataFrame({"a": [True, False, True], "b": [0.5, -1.5, 2.5]}),
    "pandas_nullable": lambda: pd.DataFrame({"a": pd.array([1, 2, 3], "Int64"), "b": pd.array([0.5, 1, 2], "Float64")}),
    "pandas_sparse": sparse_frame,
    "pandas_sparse_and_dense": lambda: pd.DataFrame({"a": pd.arrays.SparseArray([0.0, 0.0, 2.0]), "b": [1.0, 2, 3]}),
    "polars_float": lambda: pl.DataFrame(gaussian()),
    "polars_mixed": lambda: pl.DataFrame({"a": [1, 2, 3], "b": [0.5, -1.5, 2.5], "c": [True, False, True]}),
    "polars_one_column": lambda: pl.DataFrame({"a": [1.0, 2.0, 4.0]}),
}


class SquaredColumns(BlockOperator):
    """The least that a block operator must write."""

    def __init__(self, X):
        super().__init__(X.shape)
        self._rows = X

    def _block(self, start, stop):
        return self._rows[start:stop] ** 2


def fourier_features(operator, rows):
    """Compute the features as the class docstring writes them, one entry at a time."""
    n, D = operator.shape
    return np.array(
        [
            [np.sqrt(2.0 / D) * np.cos(rows[i] @ operator._directions[:, k] + operator._phases[k]) for k in range(D)]
            for i in range(n)
        ]
    )


def fourier_case(dtype):
    rows = gaussian(N, 5, dtype=dtype)
    operator = RandomFourierFeatures(rows, n_features=31, gamma=0.3, random_state=2)
    return operator, fourier_features(operator, rows.astype(np.float64))


def kmer_features(rows, degree, kind, alphabet="ACGT", min_degree=None, norm=None):
    """Compute the features of StringOperator as its docstring writes them, one k-mer at a time."""
    columns, positional = [], kind == "weighted_degree"
    for k in range(min_degree or (1 if positional else degree), degree + 1):
        value = np.sqrt(2.0 * (degree - k + 1) / (degree * (degree + 1))) if positional else 1.0
        for position in range(len(rows[0]) - k + 1) if positional else [None]:
            for kmer in map("".join, product(alphabet, repeat=k)):
                at = [[position] if positional else range(len(row) - k + 1) for row in rows]
                columns.append([value * sum(r[i : i + k] == kmer for i in a) for r, a in zip(rows, at, strict=True)])
    dense = np.array(columns, dtype=np.float64).T
    if norm is not None:
        size = dense.sum(axis=1) if norm == "l1" else np.sqrt((dense**2).sum(axis=1))
        dense = np.divide(dense, size[:, None], out=np.zeros_like(dense), where=size[:, None] > 0.0)
    return dense


def random_rows(alphabet="ACGT", shortest=9, longest=9, n=40, seed=0):
    """Return rows of random letters, a tenth of them "." and so outside of the alphabet."""
    rng = np.random.default_rng(seed)
    share = [*[0.9 / len(alphabet)] * len(alphabet), 0.1]
    lengths = rng.integers(shortest, longest + 1, size=n)
    return ["".join(rng.choice([*alphabet, "."], size=length, p=share)) for length in lengths]


def string_case(rows, **options):
    return StringOperator(rows, **options), kmer_features(rows, **options)


COMPUTED = {
    "weighted_degree": lambda: string_case(random_rows(), degree=3, kind="weighted_degree"),
    "weighted_degree_l2": lambda: string_case(
        random_rows("xyz"), degree=3, kind="weighted_degree", alphabet="xyz", norm="l2"
    ),
    "spectrum": lambda: string_case(random_rows("ACGT", 0, 30), degree=3, kind="spectrum", min_degree=1),
    "spectrum_l2": lambda: string_case(random_rows("ACGT", 0, 30), degree=2, kind="spectrum", norm="l2"),
    "linear_operator": lambda: (as_operator(aslinearoperator(gaussian())), gaussian()),
    "linear_operator_sparse": lambda: (as_operator(aslinearoperator(sp.csr_array(mostly_zero()))), mostly_zero()),
    "fourier": lambda: fourier_case(np.float64),
    "fourier32": lambda: fourier_case(np.float32),
    "block_operator": lambda: (SquaredColumns(gaussian()), gaussian() ** 2),
    "block_operator32": lambda: (SquaredColumns(gaussian(dtype=np.float32)), gaussian(dtype=np.float32) ** 2),
}


def inner_operators():
    return {
        "dense": (lambda: as_operator(gaussian()), gaussian()),
        "dense_f": (lambda: as_operator(gaussian(order="F")), gaussian()),
        "csr": (lambda: as_operator(sp.csr_matrix(mostly_zero())), mostly_zero()),
        "csc": (lambda: as_operator(sp.csc_array(mostly_zero())), mostly_zero()),
        "strided": (lambda: as_operator(gaussian()[:, ::-1]), gaussian()[:, ::-1]),
        "linear": (lambda: as_operator(aslinearoperator(gaussian())), gaussian()),
    }


SCALE = np.random.default_rng(5).uniform(0.5, 2.0, P)
SCALE[3] = 0.0
CENTER = np.random.default_rng(6).standard_normal(P)
WRAPPERS = {
    "intercept": (lambda o: InterceptOperator(o), lambda A: np.hstack([A, np.ones((N, 1))])),
    "intercept_tenth": (lambda o: InterceptOperator(o, 0.1), lambda A: np.hstack([A, np.full((N, 1), 0.1)])),
    "scaled": (lambda o: ScaledOperator(o, SCALE), lambda A: A * SCALE),
    "centred": (lambda o: ScaledOperator(o, SCALE, CENTER), lambda A: (A - CENTER) * SCALE),
    "intercept_of_scaled": (
        lambda o: InterceptOperator(ScaledOperator(o, SCALE), 2.0),
        lambda A: np.hstack([A * SCALE, np.full((N, 1), 2.0)]),
    ),
    "intercept_of_centred": (
        lambda o: InterceptOperator(ScaledOperator(o, SCALE, CENTER), 2.0),
        lambda A: np.hstack([(A - CENTER) * SCALE, np.full((N, 1), 2.0)]),
    ),
    "centred_intercept": (
        lambda o: ScaledOperator(InterceptOperator(o), np.append(SCALE, 3.0), np.append(CENTER, 0.5)),
        lambda A: (np.hstack([A, np.ones((N, 1))]) - np.append(CENTER, 0.5)) * np.append(SCALE, 3.0),
    ),
    "centred_twice": (
        lambda o: ScaledOperator(ScaledOperator(o, SCALE, CENTER), SCALE + 1, CENTER - 1),
        lambda A: ((A - CENTER) * SCALE - (CENTER - 1)) * (SCALE + 1),
    ),
}


def large(order="C", dtype=np.float64, n=6000, p=200):
    return gaussian(n, p, dtype, order)


def large_sparse(make):
    X = sp.random(
        6000, 200, density=0.3, random_state=1, format="csr", data_rvs=np.random.default_rng(0).standard_normal
    )
    return make(X)


LARGE = {
    "c": lambda: large(),
    "f": lambda: large(order="F"),
    "f_36000_rows": lambda: large(order="F", n=36000, p=50),  # several tiles of 2048 rows in one chunk
    "c32": lambda: large(dtype=np.float32),
    "sliced": lambda: large(n=18000)[::2, 3:180],
    "csr": lambda: large_sparse(sp.csr_matrix),
    "csc": lambda: large_sparse(sp.csc_matrix),
    "csr_uneven": lambda: sp.vstack([large_sparse(sp.csr_array)] * 2 + [sp.csr_array((3000, 200))], format="csr"),
    "strided_several_blocks": lambda: large(n=11000)[:, ::-1],
}


def dense_array(X):
    """Return X as a dense array of float64."""
    return (X.toarray() if sp.issparse(X) else np.asarray(X)).astype(np.float64)


def duplicated(X):
    """Return the same matrix with every entry stored as two quarters and a half (exact in binary)."""
    share = np.tile([0.25, 0.25, 0.5], X.nnz)
    parts = (np.repeat(X.data, 3) * share, np.repeat(X.indices, 3), X.indptr * 3)
    out = type(X)(parts, shape=X.shape)
    assert not out.has_canonical_format
    return out


CONVERSIONS = {  # of an array to storages whose statistics are computed in different ways
    "c": np.asarray,
    "f": np.asfortranarray,
    "strided": lambda A: np.repeat(A, 2, axis=1)[:, ::2],
    "csr": sp.csr_matrix,
    "csc": sp.csc_matrix,
    "csr_duplicates": lambda A: duplicated(sp.csr_matrix(A)),
    "csc_duplicates": lambda A: duplicated(sp.csc_matrix(A)),
}
