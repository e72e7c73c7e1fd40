"""Checks that an operator satisfies the contract of `operators/base.py`."""

from typing import Any

import numpy as np
import scipy.sparse as sp

from scoreline.operators import Operator
from scoreline.runtime import parallel
from scoreline.runtime.types import FloatArray


def check_operator(operator: Operator, dense: Any, *, rtol: float = 1e-12, seed: int = 0, subsets: bool = True) -> None:
    """Check an operator against the dense matrix that it represents.

    The checks cover both products, adjointness, the count of passes, independence of the number of threads, errors for wrong
    lengths, and every capability that the operator declares. Remote scores are brought to the host for comparison.

    Parameters
    ----------
    operator : Operator
        The operator to check, with a few passes.
    dense : array of shape (n, p)
        The same matrix, converted to float64.
    rtol : float
        Allowed relative error; the default allows for another order of summation in float64.
    seed : int
        Seed of the random vectors.
    subsets : bool
        Check some of the rows as an operator, too.
    """
    dense = np.asarray(dense, dtype=np.float64)
    rng = np.random.default_rng(seed)
    n, p = operator.shape
    assert (n, p) == dense.shape, f"shape {operator.shape}, expected {dense.shape}"
    w, u = rng.standard_normal(p), rng.standard_normal(n)
    u[rng.random(n) < 0.3] = 0.0

    before = operator.n_passes
    z, g = np.asarray(operator.matvec(w)), operator.rmatvec(u)
    assert operator.n_passes == before + 2, "matvec and rmatvec must count one pass each"
    _close(z, dense @ w, np.abs(dense) @ np.abs(w), rtol, "matvec")
    _close(g, dense.T @ u, np.abs(dense).T @ np.abs(u), rtol, "rmatvec")
    size = float(np.abs(u) @ np.abs(dense) @ np.abs(w))
    assert abs(float(u @ z) - float(g @ w)) <= rtol * size, "<u, Xw> and <X'u, w> differ: not adjoint"
    assert z.dtype == np.float64, "scores must be float64"
    assert g.dtype == np.float64, "X'u must be float64"
    for threads in (1, 2, 3):
        with parallel.thread_limit(threads):
            assert np.array_equal(np.asarray(operator.matvec(w)), z), f"matvec changes bits with {threads} threads"
            assert np.array_equal(operator.rmatvec(u), g), f"rmatvec changes bits with {threads} threads"
    assert not operator.rmatvec(np.zeros(n)).any(), "X'0 must be 0"
    assert not np.asarray(operator.matvec(np.zeros(p))).any(), "X0 must be 0"
    for call, length in ((operator.matvec, p), (operator.rmatvec, n)):
        try:
            call(np.zeros(length + 1))
        except ValueError:
            continue
        raise AssertionError(f"{call.__name__} accepted a vector of length {length + 1}, expected {length}")

    if "rows" in operator.capabilities:
        _check_rows(operator, dense, w, rtol, rng)
        if subsets:
            rows = rng.integers(0, n, size=n // 2 + 1)
            before = operator.n_passes
            check_operator(operator.on_rows(rows), dense[rows], rtol=rtol, seed=seed, subsets=False)
            assert operator.n_passes == before, "rows as an operator count their own passes"
    if "row_blocks" in operator.capabilities:
        _check_blocks(operator, dense, rtol)
        _check_second_order(operator, dense, rtol, rng)
    if "statistics" in operator.capabilities:
        _check_statistics(operator, dense, rng)


def _check_rows(operator: Operator, dense: FloatArray, w: FloatArray, rtol: float, rng: Any) -> None:
    n = len(dense)
    for rows in (np.arange(0), rng.integers(0, n, size=n // 2 + 1), np.arange(n)):
        before = operator.n_passes
        u = rng.standard_normal(len(rows))
        z, g = operator.matvec_rows(w, rows), operator.rmatvec_rows(u, rows)
        assert abs(operator.n_passes - before - 2 * len(rows) / n) < 1e-9, "row products count fractions of a pass"
        _close(z, dense[rows] @ w, np.abs(dense[rows]) @ np.abs(w), rtol, "matvec_rows")
        _close(g, dense[rows].T @ u, np.abs(dense[rows]).T @ np.abs(u), rtol, "rmatvec_rows")


def _check_blocks(operator: Operator, dense: FloatArray, rtol: float) -> None:
    n = len(dense)
    for size in (max(1, n // 1000), max(1, n // 3), n, 2 * n, None):  # thousands of blocks of one row take seconds
        blocks = list(operator.row_blocks(size))
        assert [b.start for b in blocks] == [0, *(b.stop for b in blocks[:-1])], "blocks must follow one another"
        assert blocks[-1].stop == n, "blocks must cover all rows"
        joined = np.vstack([b.data.toarray() if sp.issparse(b.data) else b.data for b in blocks])
        np.testing.assert_allclose(joined, dense, rtol=rtol, atol=rtol * np.abs(dense).max(initial=0.0))


def _check_second_order(operator: Operator, dense: FloatArray, rtol: float, rng: Any) -> None:
    n, p = dense.shape
    weight, root = rng.integers(0, 3, size=n).astype(float), rng.standard_normal((p, p))
    matrix, size = root @ root.T, np.abs(dense)
    # Centred wrappers work with X itself, so rounding is relative to its magnitude, which `largest` bounds.
    size = np.maximum(size, 0.0 if operator.largest is None else operator.largest)
    if size.max(initial=0.0) > 1e100:
        return  # squares overflow
    with np.errstate(under="ignore"):
        # Well above a row's own contribution, so that rounding errors are small.
        diagonal = (size**2).T @ weight + (size**2).max() + 1.0
        own = (dense**2 / (diagonal - weight[:, None] * dense**2)).sum(axis=1)
        pairs = (
            ("gram", operator.gram(weight), (dense.T * weight) @ dense, (size.T * weight) @ size),
            ("quadratics", operator.quadratics(matrix), (dense @ matrix * dense).sum(axis=1),
             (size @ np.abs(matrix) * size).sum(axis=1)),
            ("diagonal_leverages", operator.diagonal_leverages(diagonal, weight), own, own),
            ("square_rmatvec", operator.square_rmatvec(weight), (dense**2).T @ weight, (size**2).T @ weight),
        )  # fmt: skip
    for name, got, expected, magnitude in pairs:
        _close(np.asarray(got), expected, magnitude + np.finfo(float).tiny, 8 * rtol, name)


def _check_statistics(operator: Operator, dense: FloatArray, rng: Any) -> None:
    n = len(dense)
    weights = rng.integers(0, 4, size=n).astype(float)
    weights[0] = 1.0
    for weight in (None, weights):
        got = operator.column_statistics(weight)
        s = np.ones(n) if weight is None else weight
        mean = s @ dense / s.sum()
        spread = np.abs(dense - mean).max(axis=0)
        np.testing.assert_allclose(got.weight, np.full(dense.shape[1], s.sum()), rtol=1e-12)
        np.testing.assert_allclose(got.mean, mean, rtol=1e-10, atol=1e-13 * np.abs(dense).max())
        noise = (4.0 * np.finfo(float).eps * np.abs(dense).max()) ** 2  # a constant column's, in the reference too
        np.testing.assert_allclose(
            got.variance, s @ (dense - mean) ** 2 / s.sum(), rtol=1e-8, atol=noise + 1e-12 * (spread**2).max()
        )
        largest = np.abs(dense[s > 0]).max(axis=0)
        # Wrappers that centre may only bound the largest magnitude.
        assert (got.max_abs >= largest * (1 - 1e-12)).all(), "max_abs is below the largest magnitude"


def _close(got: FloatArray, expected: FloatArray, size: FloatArray, rtol: float, what: str) -> None:
    """Compare sums with an error relative to the sum of magnitudes, which bounds the rounding error."""
    excess = np.abs(got - expected) - rtol * size
    assert got.shape == expected.shape, f"{what}: shape {got.shape}, expected {expected.shape}"
    assert not (excess > 0).any(), f"{what}: off by {np.abs(got - expected).max():.3g}"
