"""Which kernels serve a device, and arrays that are lent to another library's kernels by DLPack."""

import logging
import sys
from dataclasses import replace
from types import ModuleType, SimpleNamespace

import array_api_compat
import array_api_strict
import numpy as np
import pytest
import scipy.sparse as sp

from cases import for_each
from scoreline.gpu import kernels, kernels_generic
from scoreline.gpu.backend import Backend, backend_of
from scoreline.gpu.csr_operator import CsrDeviceOperator
from scoreline.gpu.kernels import DlpackKernels, DlpackLibrary, PairRows, Ramp, Ranked, Segments
from scoreline.gpu.operator import DenseDeviceOperator
from scoreline.gpu.score_space import Space
from scoreline.gpu.vector import DeviceVector
from scoreline.risks.registry import get_risk
from scoreline.testing import check_operator

CUDA, CPU = SimpleNamespace(type="cuda"), SimpleNamespace(type="cpu")
STRICT = type(array_api_strict.zeros(1))


@pytest.fixture
def installed(monkeypatch):
    """Return a function that makes libraries importable, with a CUDA device or without; the others are missing."""

    def install(*names, cuda=True):
        kernels._has_triton.cache_clear()
        for name in ("torch", "triton", "cupy"):
            monkeypatch.setitem(sys.modules, name, ModuleType(name) if name in names else None)
        if "torch" in names:
            sys.modules["torch"].cuda = SimpleNamespace(is_available=lambda: cuda)
            sys.modules["torch"].Tensor, sys.modules["torch"].from_dlpack = STRICT, array_api_strict.from_dlpack
        if "cupy" in names:
            sys.modules["cupy"].ndarray, sys.modules["cupy"].from_dlpack = np.ndarray, np.from_dlpack
        # The kernels themselves: any module will do.
        monkeypatch.setitem(sys.modules, "scoreline.gpu.kernels_triton", kernels_generic)

    yield install
    kernels._has_triton.cache_clear()


def test_tensors_on_cuda_use_triton_and_others_generic_functions(installed):
    marker = ModuleType("kernels_triton")
    installed("torch", "triton")
    sys.modules["scoreline.gpu.kernels_triton"] = marker
    assert kernels.on(Backend("torch", None, CUDA)) is marker
    assert kernels.on(Backend("torch", None, CPU)) is kernels_generic
    assert kernels.on(Backend("array_api", array_api_strict, None)) is kernels_generic


def test_arrays_of_cupy_are_lent_to_triton(installed):
    installed("torch", "triton", "cupy")
    found = kernels.on(Backend("cupy", None, None))
    assert isinstance(found, DlpackKernels)
    assert found.kernels is kernels_generic  # which stands for those of Triton here
    assert (found.own.array, found.theirs.array) == (np.ndarray, STRICT)


@for_each("library", ["cupy", "torch"])
@for_each(["names", "cuda"], [(("cupy",), True), (("cupy", "torch"), True), (("cupy", "torch", "triton"), False)])
def test_without_triton_the_generic_functions_are_used_and_logged(library, names, cuda, installed, caplog):
    """For tensors of PyTorch and arrays of CuPy alike, with one line in the log."""
    installed(*names, cuda=cuda)
    caplog.clear()
    with caplog.at_level(logging.INFO, logger="scoreline"):
        for _ in range(2):
            assert kernels.on(Backend(library, None, CUDA)) is kernels_generic
    assert [record.message.partition(":")[0] for record in caplog.records] == [
        "PyTorch with CUDA and Triton is not installed"
    ]


lends_all_arrays = pytest.mark.skipif(
    np.lib.NumpyVersion(np.__version__) < "2.1.0",
    reason="NumPy, which stands for CuPy here, lends read-only and boolean arrays from version 2.1 on",
)


@pytest.fixture
def lent():
    """Return kernels that compute with array-api-strict and are called with NumPy arrays, and their backend."""
    own, theirs = DlpackLibrary(np.ndarray, np.from_dlpack), DlpackLibrary(STRICT, array_api_strict.from_dlpack)
    return DlpackKernels(kernels_generic, own, theirs), backend_of(array_api_strict.zeros(1))


def test_lent_products_are_right_and_come_back_as_arrays_of_the_lender(lent):
    own, backend = lent
    rng = np.random.default_rng(0)
    for X in (rng.standard_normal((31, 5)), np.asfortranarray(rng.standard_normal((31, 5)))[::2].astype(np.float32)):
        w, u = rng.standard_normal(5), rng.standard_normal(len(X))
        for got, wanted in (
            (own.row_dots(backend, X, w), X @ w),
            (own.column_sums(backend, X, u), X.T @ u),
            (own.column_largest(backend, X), np.abs(X).max(axis=0)),
            (own.running_sums(backend, u), np.cumsum(u)),
        ):
            assert type(got) is np.ndarray
            np.testing.assert_allclose(got, wanted, rtol=1e-13, atol=1e-14)
    X = sp.random(20, 9, 0.4, format="csr", random_state=1)
    starts = X.indptr.astype(np.int64)
    segments = Segments(backend, starts[:-1], starts[1:], X.data, X.indices.astype(np.int64))
    got = own.segment_dots(segments, np.arange(9.0))
    assert type(got) is np.ndarray
    np.testing.assert_allclose(got, X @ np.arange(9.0), rtol=1e-13)


@lends_all_arrays
@for_each("weighted", [False, True])
def test_lent_look_ups_are_right(weighted, lent):
    """Records of arrays go there and back too: all pairs, one by one."""
    own, backend = lent
    rng = np.random.default_rng(1)
    z, y = rng.standard_normal(40), np.where(rng.random(40) < 0.4, 1, -1)
    s = rng.integers(1, 4, 40).astype(float) if weighted else None
    centre = np.mean(z)[...]
    rows = PairRows(z, s, np.flatnonzero(y > 0), np.flatnonzero(y < 0))
    sides = [
        own.ranked(backend, own.class_keys(backend, z, r, margin), s, r, centre)
        for r, margin in ((rows.positive_rows, 1.0), (rows.negative_rows, 0.0))
    ]
    assert all(isinstance(side, Ranked) and type(side.sums) is np.ndarray for side in sides)
    result, sums = own.look_up(backend, rows, *sides, Ramp(1.0, 0.5, centre, (-1.0, 1.0), True, False))
    assert type(result) is np.ndarray
    t = 1.0 - z[y > 0][:, None] + z[y < 0][None, :]
    pairs = np.ones(t.shape) if s is None else np.outer(s[y > 0], s[y < 0])
    beta = np.clip(t / 0.5, 0.0, 1.0)
    wanted = np.empty(40)
    wanted[y > 0], wanted[y < 0] = -(pairs * beta).sum(axis=1), (pairs * beta).sum(axis=0)
    np.testing.assert_allclose(result, wanted, rtol=1e-10, atol=1e-10)
    smooth = (pairs * beta * (t - 0.25 * beta)).sum()
    np.testing.assert_allclose(sums, [smooth, (pairs * beta).sum(), (pairs * np.maximum(t, 0.0)).sum()], rtol=1e-12)


@lends_all_arrays
def test_what_is_lent_is_not_copied():
    x = np.arange(6.0).reshape(2, 3)
    taken = []
    keeper = SimpleNamespace(look=lambda X: taken.append(X) or X)
    own, theirs = DlpackLibrary(np.ndarray, np.from_dlpack), DlpackLibrary(STRICT, array_api_strict.from_dlpack)
    back = DlpackKernels(keeper, own, theirs).look(x[:, 1:])
    assert array_api_compat.is_array_api_obj(taken[0])
    assert type(taken[0]) is STRICT
    assert back.shape == (2, 2)
    x[1, 1] = -1.0
    assert back[1, 0] == -1.0


class StrictKernels:
    """Stand for the kernels of Triton: they take arrays of array-api-strict and nothing else."""

    def __getattr__(self, name):
        function, strict = getattr(kernels_generic, name), backend_of(array_api_strict.zeros(1))

        def call(first, *rest):
            assert not any(isinstance(a, np.ndarray) for a in rest)
            return function(strict if isinstance(first, Backend) else replace(first, backend=strict), *rest)

        return call


@pytest.fixture
def lender(monkeypatch):
    """Return a backend of NumPy arrays whose kernels are those of array-api-strict, as CuPy's are those of Triton."""
    own, theirs = DlpackLibrary(np.ndarray, np.from_dlpack), DlpackLibrary(STRICT, array_api_strict.from_dlpack)
    monkeypatch.setattr(kernels, "on", lambda backend: DlpackKernels(StrictKernels(), own, theirs))
    cupy = ModuleType("cupy")
    cupy.ndarray = type("NoArray", (), {})  # NumPy's arrays are those of the host, too
    cupy.ascontiguousarray, cupy.zeros, cupy.add, cupy.maximum = np.ascontiguousarray, np.zeros, np.add, np.maximum
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    xp = SimpleNamespace(**vars(array_api_compat.array_namespace(np.zeros(1))))
    xp.mean = lambda x, **options: np.asarray(np.mean(x, **options))  # CuPy has arrays where NumPy has scalars
    return Backend("cupy", xp, "cpu")


@lends_all_arrays
def test_operators_whose_arrays_are_lent_keep_the_contract(lender):
    rng = np.random.default_rng(2)
    X = rng.standard_normal((23, 6))
    check_operator(DenseDeviceOperator(X, lender), X)
    S = sp.csr_matrix(np.where(np.abs(X) > 0.7, X, 0.0))
    check_operator(CsrDeviceOperator(S.data, S.indices, S.indptr, S.shape, lender), S.toarray())


@lends_all_arrays
@for_each("name", ["roc_area", "roc_area_squared", "prbep", "logistic"])
@for_each("weighted", [False, True])
def test_risks_of_lent_scores_are_those_of_the_host(name, weighted, lender):
    rng = np.random.default_rng(3)
    z, y = rng.standard_normal(50), np.where(rng.random(50) < 0.3, 1, -1)
    s = rng.integers(1, 4, 50).astype(float) if weighted else None
    weight = None if s is None else DeviceVector(s, lender)
    here, there = get_risk(name).prepare(y, s), get_risk(name).prepare(DeviceVector(y, lender), weight, Space())
    mu = 0.1 / here.ramp_scale if here.smoothable else 0.0
    a, b = here.evaluate(z, mu), there.evaluate(DeviceVector(z, lender), mu)
    assert (b.value, b.hard) == pytest.approx((a.value, a.hard), rel=1e-12)
    np.testing.assert_allclose(np.asarray(b.grad), a.grad, rtol=1e-9, atol=1e-13)
