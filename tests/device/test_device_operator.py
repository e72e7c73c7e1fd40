"""Matrices of a device: the contract of an operator for every library, order of memory and type."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from device_arrays import LIBRARIES, sent
from scipy.sparse.linalg import aslinearoperator

from cases import for_each
from scoreline.gpu import convert as device_convert
from scoreline.gpu import csr_operator as device_csr
from scoreline.gpu import operator as device
from scoreline.io import convert, open_mapped
from scoreline.operators import InterceptOperator, ScaledOperator, as_operator
from scoreline.operators.wrappers import scaled
from scoreline.testing import check_operator

N, P = 41, 7


def dense(dtype=np.float64, n=N, p=P):
    return np.random.default_rng(0).standard_normal((n, p)).astype(dtype)


def sparse(dtype=np.float64, n=N, p=P):
    rng = np.random.default_rng(1)
    X = np.where(rng.random((n, p)) < 0.3, rng.standard_normal((n, p)), 0.0)
    X[3], X[:, 2] = 0.0, 0.0
    return sp.csr_matrix(X.astype(dtype))


STORAGES = {
    "C": lambda: dense(),
    "F": lambda: np.asfortranarray(dense()),
    "float32": lambda: dense(np.float32),
    "F float32": lambda: np.asfortranarray(dense(np.float32)),
    "one row": lambda: dense(n=1),
    "one column": lambda: dense(p=1),
    "CSR": lambda: sparse(),
    "CSR float32": lambda: sparse(np.float32),
    "CSR of zeros": lambda: sp.csr_matrix((5, 4)),
}


@pytest.fixture(params=LIBRARIES)
def library(request):
    return request.param


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Blocks, tiles and pieces that these matrices fill more than once."""
    for module, name, value in (
        (device, "BLOCK", 40), (device_csr, "TILE_ROWS", 9), (device_csr, "PIECE", 3), (device_convert, "MOVED_BYTES", 200),
    ):  # fmt: skip
        monkeypatch.setattr(module, name, value)


def entries(X):
    return X.toarray() if sp.issparse(X) else X


@for_each("storage", STORAGES)
def test_contract(storage, library):
    X = STORAGES[storage]()
    operator = as_operator(sent(X, library))
    assert operator.scores == "device"
    check_operator(operator, entries(X))
    check_operator(InterceptOperator(operator, 2.0), np.hstack([entries(X), np.full((X.shape[0], 1), 2.0)]))


@for_each("far", [0.0, 1e6])
@for_each("storage", ["C", "float32", "CSR"])
def test_scaled_columns(storage, far, library):
    """Columns of mean 1e6 are centred before they are squared."""
    X = entries(STORAGES[storage]()).astype(np.float64) + far
    if storage == "CSR":
        X = sp.csr_matrix(X)
    operator = scaled(as_operator(sent(X, library)), "standard")
    center, scale = entries(X).mean(axis=0), entries(X).std(axis=0)
    scale = np.divide(1.0, scale, out=np.zeros(P), where=scale > 1e-9)
    if not far:  # products of columns that far away are known to 1e-10 only
        moved = ScaledOperator(as_operator(sent(X, library)), scale, center)
        check_operator(moved, (entries(X) - center) * scale, rtol=1e-11)
    host = scaled(as_operator(X), "standard")
    np.testing.assert_allclose(operator.scale, host.scale, rtol=1e-8 if far else 1e-12)
    weight = np.random.default_rng(2).integers(0, 3, N).astype(float)
    np.testing.assert_allclose(operator.gram(weight), host.gram(weight), rtol=1e-7, atol=1e-7)
    diagonal = np.full(P, 1e3)
    for name, arguments in (
        ("quadratics", (np.eye(P),)),
        ("diagonal_leverages", (diagonal, weight)),
        ("row_norms", ()),
    ):
        got, wanted = (np.asarray(getattr(o, name)(*arguments)) for o in (operator, host))
        np.testing.assert_allclose(got, wanted, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(operator.square_rmatvec(weight), host.square_rmatvec(weight), rtol=1e-6, atol=1e-6)


@for_each("storage", ["C", "F float32", "CSR", "CSR float32"])
def test_statistics_and_moments(storage, library):
    X = STORAGES[storage]()
    operator, host = as_operator(sent(X, library)), as_operator(entries(X).astype(np.float64))
    y = np.where(np.arange(N) % 3 == 0, 1, -1)
    for weight in (None, np.arange(N) % 4 * 0.5):
        for got, wanted in zip(operator.column_statistics(weight), host.column_statistics(weight), strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-12, atol=1e-14)
        got, wanted = operator.class_moments(y, weight), host.class_moments(y, weight)
        for side in ("positive", "negative"):
            a, b = getattr(got, side), getattr(wanted, side)
            assert a.weight == pytest.approx(b.weight, rel=1e-14)
            np.testing.assert_allclose(a.mean, b.mean, rtol=1e-12, atol=1e-14)
            np.testing.assert_allclose(a.scatter, b.scatter, rtol=1e-11, atol=1e-12)
    np.testing.assert_array_equal(operator.largest, np.abs(entries(X)).max(axis=0))


def test_some_rows(library):
    for X in (dense(), sparse()):
        operator = as_operator(sent(X, library))
        rows = np.array([5, 0, 40, 5, 3])
        part = operator.on_rows(rows)
        check_operator(part, entries(X)[rows])
        np.testing.assert_array_equal(part.largest, operator.largest)
        np.testing.assert_array_equal(entries(operator._block(2, 7)), entries(X)[2:7])


def test_equal_rows_have_equal_scores(library):
    """Or ties are lost, wherever a library adds the last rows of a block in another order."""
    rng = np.random.default_rng(0)
    for n, p in ((1003, 17), (77, 5), (500, 64)):
        kind = rng.integers(0, 4, n)
        for dtype in (np.float64, np.float32):
            X = rng.standard_normal((4, p)).astype(dtype)[kind]
            for given in (X, sp.csr_matrix(X)):
                z = np.asarray(as_operator(sent(given, library)).matvec(rng.standard_normal(p)))
                assert len(np.unique(z)) == 4


def test_entries_that_occur_twice_are_summed_before_they_are_squared(library):
    values, columns = np.array([1.0, 1.0, 2.0, 0.5, 3.0, -2.0, 4.0]), np.array([0, 0, 0, 1, 0, 1, 0])
    X = sp.csr_matrix((values, columns, np.array([0, 2, 3, 4, 5, 7])), shape=(5, 2))
    host, operator = as_operator(X), as_operator(sent(X, library))
    for got, wanted in zip(operator.column_statistics(), host.column_statistics(), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-14)
    u = np.arange(1.0, 6.0)
    np.testing.assert_allclose(operator.square_rmatvec(u), host.square_rmatvec(u), rtol=1e-14)
    np.testing.assert_allclose(np.asarray(operator.row_norms()), host.row_norms(), rtol=1e-14)
    d = np.full(2, 100.0)
    got = np.asarray(operator.diagonal_leverages(d, u))
    np.testing.assert_allclose(got, host.diagonal_leverages(d, u), rtol=1e-14)
    np.testing.assert_array_equal(operator.largest, np.abs(X.toarray()).max(axis=0))
    np.testing.assert_allclose(operator.gram(u), host.gram(u), rtol=1e-14)
    unsorted = sp.csr_matrix((values[:2], np.array([1, 0]), np.array([0, 2])), shape=(1, 2))
    assert as_operator(sent(unsorted, library))._summed.values.shape == (2,)


def test_vectors_that_lie_apart_are_read_as_they_are(library):
    X, wide = dense(), np.random.default_rng(3).standard_normal((N, 3))
    column = sent(wide, library)[:, 1]  # entries that do not follow each other in memory
    operator = as_operator(sent(X, library))
    np.testing.assert_allclose(operator.rmatvec(column), X.T @ wide[:, 1], rtol=1e-12)
    part = as_operator(sent(X, library)[1:20, 2:])
    np.testing.assert_allclose(np.asarray(part.matvec(np.ones(P - 2))), X[1:20, 2:].sum(axis=1), rtol=1e-12)


@for_each("value", [np.nan, np.inf, -np.inf])
def test_nan_and_infinity_are_found(value, library):
    X = dense()
    X[17, 4] = value
    with pytest.raises(ValueError, match="row 17, column 4"):
        as_operator(sent(X, library))
    X[20, 1] = value  # a column before, a row after
    with pytest.raises(ValueError, match="row 17, column 4"):
        as_operator(sent(X, library))
    if library == "torch":
        S = sparse()
        S.data[11] = value
        row, column = np.argwhere(~np.isfinite(S.toarray()))[0]
        with pytest.raises(ValueError, match=f"row {row}, column {column}"):
            as_operator(sent(S, library))


def test_what_is_no_matrix_of_numbers_is_refused(library):
    for X, words in (
        (np.zeros(3), "1 dimension"),
        (np.zeros((2, 2, 2)), "3 dimension"),
        (np.zeros((0, 3)), "0 sample"),
        (np.zeros((3, 0)), "0 feature"),
        (np.zeros((3, 2), dtype=complex), "Complex data"),
    ):
        with pytest.raises(ValueError, match=words):
            as_operator(sent(X, library))
    operator = as_operator(sent(dense(), library))
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        operator.aligned(np.zeros(N + 1))
    with pytest.raises(TypeError, match="single rows on the host"):
        operator.row_arrays(0, 2)


def test_other_types_become_floats(library):
    X = np.arange(12).reshape(4, 3)
    for dtype in (np.int32, np.int64, np.uint8, bool):
        given = X.astype(dtype)
        check_operator(as_operator(sent(given, library)), given.astype(float))
    if library == "torch":
        import torch

        for dtype in (torch.float16, torch.bfloat16):
            operator = as_operator(torch.from_numpy(X.astype(np.float32)).to(dtype))
            assert operator._X.dtype == torch.float32
            check_operator(operator, X)
        check_operator(as_operator(torch.from_numpy(dense()).requires_grad_()), dense())


def test_results_can_be_written_to_where_the_library_lends_read_only(library, monkeypatch):
    """NumPy before 2.1 reads arrays of other libraries without leave to write."""
    operator = as_operator(sent(dense(), library))
    plain = operator.backend.host

    def lent(x):
        found = plain(x)
        found.flags.writeable = False
        return found

    monkeypatch.setattr(type(operator.backend), "host", lambda self, x: lent(x))
    u = np.ones(N)
    for found in (operator.rmatvec(u), operator.gram(u), operator.square_rmatvec(u)):
        assert found.flags.writeable


@pytest.mark.skipif("torch" not in LIBRARIES, reason="device= moves data by PyTorch or CuPy")
@for_each("storage", STORAGES)
def test_host_data_move_block_by_block(storage):
    X = STORAGES[storage]()
    host = as_operator(X)
    operator = device_convert.moved(host, "cpu")
    check_operator(operator, entries(X))
    np.testing.assert_array_equal(operator.largest, host.largest)
    assert operator.backend.numpy_dtype(operator.values if sp.issparse(X) else operator._X) == X.dtype


@pytest.mark.skipif("torch" not in LIBRARIES, reason="device= moves data by PyTorch or CuPy")
def test_folders_of_disk_and_sparse_layouts_move(tmp_path):
    import torch

    X, y = sparse(), np.where(np.arange(N) % 2, 1, -1)
    convert((X, y), tmp_path / "rows")
    check_operator(device_convert.moved(as_operator(open_mapped(tmp_path / "rows").X), "cpu"), X.toarray())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for made in (torch.tensor(X.toarray()).to_sparse_coo(), torch.tensor(X.toarray()).to_sparse_csc()):
            check_operator(as_operator(made), X.toarray())
    with pytest.raises(TypeError, match="Pass an array"):
        device_convert.moved(as_operator(aslinearoperator(X)), "cpu")
