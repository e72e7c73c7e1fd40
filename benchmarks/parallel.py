"""Chunks on Python threads against Numba's prange: run time and compile time of the same two products."""

import sys
import time

import numba
import numpy as np

from common import SEED, Report, interleave, standalone
from scoreline import kernels
from scoreline.runtime import parallel
from scoreline.runtime.compile import REORDER

NAME, TITLE = "parallel", "our chunks on Python threads against numba.prange, 2 threads"
THREADS, REPEATS = 2, 15
OPTIONS = {"nogil": True, "error_model": "numpy", "fastmath": REORDER}  # those of our own kernels


def pranged(kernel):
    """Return a kernel over chunks as one function that runs the chunks in a prange; nothing cached."""
    chunk = numba.njit(**OPTIONS)(kernel)

    def loop(a, b, c, d, e, f, bounds):
        for k in numba.prange(len(bounds) - 1):
            chunk(a, b, c, d, e, f, bounds, k, k + 1)

    return numba.njit(parallel=True, **OPTIONS)(loop)


def compile_seconds(compiled, arguments) -> float:
    start = time.perf_counter()
    compiled.compile(tuple(numba.typeof(a) for a in arguments))
    return time.perf_counter() - start


def compare(report: Report, title: str, kernel, arguments) -> None:
    """Time both ways on the same kernel and chunks; the last arguments are the output and the bounds of the chunks."""
    result, n_chunks = arguments[-2], len(arguments[-1]) - 1
    chunks, prange = numba.njit(**OPTIONS)(kernel.py_func), pranged(kernel.py_func)
    compiling = {
        "chunks": compile_seconds(chunks, (*arguments, 0, n_chunks)),
        "prange": compile_seconds(prange, arguments),
    }
    prange(*arguments)
    reference = np.array(result)
    parallel.run_chunks(chunks, n_chunks, *arguments)
    if not np.array_equal(result, reference):
        raise RuntimeError(f"{title}: the two ways differ")
    sides = {
        "chunks": lambda: parallel.run_chunks(chunks, n_chunks, *arguments),
        "prange": lambda: prange(*arguments),
    }
    times = interleave(sides, REPEATS, spinning=("prange",))
    for name, t in times.items():
        report.add(
            f"{title}, {name}, run", 1e3 * t.best, "ms", "", f"median {1e3 * t.median:.3g} ms, {n_chunks} chunks"
        )
    for name, seconds in compiling.items():
        report.add(f"{title}, {name}, compile", seconds, "s")


def dense(n: int, p: int):
    """Return the arguments of the dense Xw kernel, as DenseOperator calls it."""
    rng = np.random.default_rng(SEED)
    bounds = parallel.even_bounds(n, p)
    return rng.standard_normal(n * p), np.uint64(p), np.uint64(p), None, rng.standard_normal(p), np.empty(n), bounds


def compressed(n: int, p: int, per_row: int):
    """Return the arguments of the CSR Xw kernel, as CompressedOperator calls it."""
    rng = np.random.default_rng(SEED)
    indices = np.sort(rng.integers(0, p, size=(n, per_row), dtype=np.uint32), axis=1).ravel()
    indptr = np.arange(n + 1, dtype=np.uint32) * np.uint32(per_row)
    bounds = parallel.even_bounds(n, 4 * per_row)
    return rng.standard_normal(len(indices)), indices, indptr, None, rng.standard_normal(p), np.empty(n), bounds


def main(report: Report) -> None:
    numba.set_num_threads(min(THREADS, numba.config.NUMBA_NUM_THREADS))
    for threaded in (False, True):  # the compiler itself takes a second to get going
        compile_seconds(numba.njit(parallel=threaded)(lambda x: x.sum()), (np.zeros(4),))
    with parallel.thread_limit(THREADS):
        for n in (200_000, 3_000):
            compare(report, f"dense Xw {n}x100", kernels.dense.line_dots, dense(n, 100))
            compare(report, f"CSR Xw {n}x10000, 50 a row", kernels.csr.gather, compressed(n, 10_000, 50))
    report.say(f"prange runs on Numba's threading layer {numba.threading_layer()!r}")


if __name__ == "__main__":
    standalone(sys.modules[__name__])
