"""Xw and X'u against the speed of memory and against NumPy and SciPy."""

import sys

import numba
import numpy as np
import scipy.sparse as sp

from common import SEED, Report, interleave, standalone
from scoreline.operators import as_operator
from scoreline.runtime.parallel import even_bounds, run_chunks, thread_limit

NAME, TITLE = "products", "products with X: share of the read bandwidth, and ratio to NumPy and SciPy"
SHAPES = ((200_000, 200), (2_000_000, 20), (20_000, 2_000))  # float64: 320 MB each
STORED, COLUMNS = 25_000_000, 10_000
SPARSE_TARGETS = {14: 1.25, 50: 1.4, 100: 1.4}
THREADS = 2
REPEATS = 11


@numba.njit(nogil=True, fastmath={"reassoc", "contract"})
def read_sum(x, partial, bounds, first, last):
    """Add up everything, in eight places at a time: the plainest way to read memory."""
    for c in range(first, last):
        lo, hi = bounds[c], bounds[c + 1]
        eighth = (hi - lo) // np.uint64(8)
        t0 = t1 = t2 = t3 = t4 = t5 = t6 = t7 = 0.0
        for k in range(lo, lo + eighth):
            t0 += x[k]
            t1 += x[k + eighth]
            t2 += x[k + np.uint64(2) * eighth]
            t3 += x[k + np.uint64(3) * eighth]
            t4 += x[k + np.uint64(4) * eighth]
            t5 += x[k + np.uint64(5) * eighth]
            t6 += x[k + np.uint64(6) * eighth]
            t7 += x[k + np.uint64(7) * eighth]
        for k in range(lo + np.uint64(8) * eighth, hi):
            t0 += x[k]
        partial[c] = (t0 + t1 + t2 + t3) + (t4 + t5 + t6 + t7)


@numba.njit(nogil=True, fastmath={"reassoc", "contract"})
def straight_sum(x, partial, bounds, first, last):
    """Add up everything from one end to the other."""
    for c in range(first, last):
        total = 0.0
        for k in range(bounds[c], bounds[c + 1]):
            total += x[k]
        partial[c] = total


def readers(flat):
    """Return ways to read all of a float64 array; the fastest of them is what we call the bandwidth."""
    bounds = even_bounds(len(flat), 1)
    partial = np.empty(len(bounds) - 1)
    return {
        "read: 8 streams": lambda: run_chunks(read_sum, len(partial), flat, partial, bounds),
        "read: straight": lambda: run_chunks(straight_sum, len(partial), flat, partial, bounds),
        "read: numpy sum": lambda: flat.sum(),
    }


def dense(report: Report, memory, n: int, p: int, dtype, order: str, targets: bool) -> float:
    """Measure one matrix that lies in `memory` (all of which is read); return the bandwidth in GB/s."""
    X = memory.view(dtype).reshape((n, p) if order == "C" else (p, n))
    X = X if order == "C" else X.T
    rng = np.random.default_rng(SEED)
    w, u = rng.standard_normal(p).astype(dtype), rng.standard_normal(n).astype(dtype)
    w64, u64 = w.astype(float), u.astype(float)  # the operator's vectors are float64, NumPy's have the matrix's type
    operator = as_operator(X, check_finite=False)
    sides = {
        **readers(memory),
        "Xw": lambda: operator.matvec(w64),
        "numpy Xw": lambda: X @ w,
        "X'u": lambda: operator.rmatvec(u64),
        "numpy X'u": lambda: X.T @ u,
    }
    times = interleave(sides, REPEATS, spinning=("numpy Xw", "numpy X'u"))
    speed = {name: memory.nbytes / t.best / 1e9 for name, t in times.items()}
    bandwidth = max(speed[name] for name in readers(memory))
    title = f"{np.dtype(dtype).name} {order} {n}x{p}"
    for product, share in (("Xw", 75), ("X'u", 55)):
        ratio = times[f"numpy {product}"].best / times[product].best
        note = f"{speed[product]:.1f} of {bandwidth:.1f} GB/s, median {times[product].median * 1e3:.1f} ms"
        limit = f">= {share}" if targets else ""
        report.add(f"{title} {product}, share of bandwidth", 100 * speed[product] / bandwidth, "%", limit, note)
        rival = f"numpy {times[f'numpy {product}'].best * 1e3:.1f} ms"
        report.add(f"{title} {product}, numpy / ours", ratio, "x", ">= 1.0" if targets else "", rival)
    return bandwidth


def sparse(report: Report, per_row: int, target: float) -> None:
    rng = np.random.default_rng(SEED)
    n = STORED // per_row
    indices = rng.integers(0, COLUMNS, size=(n, per_row), dtype=np.int32)
    indices.sort(axis=1)
    indptr = np.arange(n + 1, dtype=np.int32) * np.int32(per_row)
    A = sp.csr_array((rng.standard_normal(n * per_row), indices.ravel(), indptr), shape=(n, COLUMNS))
    w, u = rng.standard_normal(COLUMNS), rng.standard_normal(n)
    operator = as_operator(A, check_finite=False)
    sides = {
        "Xw": lambda: operator.matvec(w),
        "scipy Xw": lambda: A @ w,
        "X'u": lambda: operator.rmatvec(u),
        "scipy X'u": lambda: A.T @ u,
    }
    times = interleave(sides, REPEATS)
    for product in ("Xw", "X'u"):
        ours, rival = times[product].best, times[f"scipy {product}"].best
        note = f"{ours / A.nnz * 1e9:.2f} ns a non-zero, scipy {rival / A.nnz * 1e9:.2f}"
        report.add(f"CSR {per_row} a row, {product}, scipy / ours", rival / ours, "x", f">= {target}", note)


def main(report: Report) -> None:
    memory = np.random.default_rng(SEED).random(SHAPES[0][0] * SHAPES[0][1], dtype=np.float32)
    memory = memory.astype(np.float64)
    single = np.random.default_rng(SEED).random(2 * len(memory), dtype=np.float32).view(np.float64)
    bandwidths = []
    with thread_limit(THREADS):
        for n, p in SHAPES:
            bandwidths.append(dense(report, memory, n, p, np.float64, "C", True))
            bandwidths.append(dense(report, single, 2 * n, p, np.float32, "C", True))
        n, p = SHAPES[0]
        dense(report, memory, n, p, np.float64, "F", False)
        dense(report, single, 2 * n, p, np.float32, "F", False)
        report.add("read bandwidth, best of all", max(bandwidths), "GB/s", "", f"{THREADS} threads, {memory.nbytes} B")
        del memory, single
        for per_row, target in SPARSE_TARGETS.items():
            sparse(report, per_row, target)


if __name__ == "__main__":
    standalone(sys.modules[__name__])
