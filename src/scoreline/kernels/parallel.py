"""How kernels use several cores: chunks fixed by the data, a pool of Python threads, no shared accumulators.

A kernel is a serial function that releases the GIL and works on chunks ``first <= c < last``. Chunk boundaries depend on
the shape of the data only, and every chunk writes to its own place, so results have the same bits for any number of
threads. Python threads were chosen over ``prange`` because they compile several times faster, survive a fork (the pool
is simply made anew) and need no lock when several Python threads call at once; `benchmarks/parallel.py` measures both.
"""

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import numpy as np

from scoreline._typing import BoundsArray

# A chunk below this many scalar operations is not worth handing to another thread (a hand-over costs about 0.1 ms).
MIN_CHUNK_WORK = 1 << 19
MAX_CHUNKS = 64

_lock = threading.Lock()
_local = threading.local()
_pool: ThreadPoolExecutor | None = None
_pool_size = 0
_blas: Any = None


def available_threads() -> int:
    """Return how many threads this process may use: affinity, cgroup, loky, OpenMP and Numba limits respected."""
    from joblib import cpu_count  # loky's count knows affinity, cgroups and LOKY_MAX_CPU_COUNT

    limit = int(cpu_count())
    for variable in ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS"):
        value = os.environ.get(variable, "").split(",")[0].strip()
        if value.isdigit() and int(value) > 0:
            limit = min(limit, int(value))
    return max(1, limit)


@contextmanager
def thread_limit(n_jobs: int | None) -> Iterator[None]:
    """Let kernels called from this Python thread use `n_jobs` threads (None: all; negative: as joblib counts)."""
    previous = getattr(_local, "threads", None)
    if n_jobs is None:
        _local.threads = available_threads()
    elif n_jobs < 0:
        _local.threads = max(1, available_threads() + 1 + n_jobs)
    else:
        _local.threads = n_jobs
    try:
        yield
    finally:
        _local.threads = previous


def current_threads() -> int:
    """Return the number of threads that kernels called from this Python thread may use."""
    threads = getattr(_local, "threads", None)
    if threads is None:
        threads = _local.threads = available_threads()
    return int(threads)


def even_bounds(n: int, work_per_item: float, max_chunks: int = MAX_CHUNKS) -> BoundsArray:
    """Return chunk boundaries ``0 = b_0 < ... < b_C = n`` of nearly equal length, from the amount of work alone."""
    return _bounds(n, int(min(max_chunks, max(1, n * work_per_item // MIN_CHUNK_WORK), max(1, n))))


@lru_cache(maxsize=256)
def _bounds(n: int, chunks: int) -> BoundsArray:
    """Return the boundaries; made once, because a solver on little data would spend its time here. Nobody writes to them."""
    return np.linspace(0, n, chunks + 1).astype(np.uint64)


def run_chunks(kernel: Callable[..., Any], n_chunks: int, *args: Any) -> None:
    """Call ``kernel(*args, first, last)`` so that every chunk is covered once, on as many threads as allowed."""
    nested = getattr(_local, "inside", False)  # threads of one pool that wait for each other would wait for ever
    workers = 1 if n_chunks == 1 or nested else min(current_threads(), n_chunks)
    if workers <= 1:
        kernel(*args, 0, n_chunks)
        return
    # A few tasks per worker even out a core that the machine takes away for a moment.
    tasks = min(n_chunks, 4 * workers)
    edges = [n_chunks * t // tasks for t in range(tasks + 1)]
    counter = iter(range(tasks))  # next() on it is atomic

    def work() -> None:
        _local.inside = True
        try:
            for t in counter:
                kernel(*args, edges[t], edges[t + 1])
        finally:
            _local.inside = False

    pool = _get_pool(workers - 1)
    futures = [pool.submit(work) for _ in range(workers - 1)]
    try:
        work()
    finally:
        for future in futures:
            future.result()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Keep BLAS to one thread while chunks run on ours: its own threads spin, and fight over cores that others use."""
    global _blas
    if _blas is None:
        from threadpoolctl import ThreadpoolController  # comes with scikit-learn

        _blas = ThreadpoolController()
    with _blas.limit(limits=1, user_api="blas"):
        yield


def _get_pool(size: int) -> ThreadPoolExecutor:
    global _pool, _pool_size
    with _lock:
        if _pool is None or _pool_size < size:
            # A smaller pool is not shut down: another thread may be about to submit to it. Its threads end with it.
            _pool = ThreadPoolExecutor(max_workers=size, thread_name_prefix="scoreline")
            _pool_size = size
        return _pool


def _forget_pool() -> None:
    """After fork the threads of the parent do not exist: start over in the child."""
    global _pool, _pool_size, _lock
    _lock = threading.Lock()
    _pool, _pool_size = None, 0


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pool)
