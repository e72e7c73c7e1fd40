"""Kernels on several cores: chunks that depend on the data only, a pool of Python threads, no shared accumulators.

A kernel is a serial function that releases the GIL and works on chunks ``first <= c < last``. Chunk boundaries depend only on
the shape of the data, and every chunk writes to its own place, so results have the same bits for any number of threads.
Python threads have three advantages over ``prange``: kernels compile several times faster, a forked child can make a new
pool, and several Python threads can call kernels at once. `benchmarks/parallel.py` measures both.
"""

import os
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import copy_context
from functools import lru_cache
from queue import SimpleQueue
from typing import Any
from weakref import WeakSet

import numpy as np

from scoreline.runtime.types import BoundsArray

# Scalar operations below which a chunk is not worth a hand-over to another thread, which takes about 0.1 ms.
MIN_CHUNK_WORK = 1 << 19
MAX_CHUNKS = 64

_lock = threading.RLock()  # reentrant, because a signal handler may run on the thread that holds it
_local = threading.local()
_pool: "_Pool | None" = None
_blas: tuple[list[Any], list[Any]] | None = None  # the BLAS libraries, after the first search
_blas_before: list[tuple[Any, int]] = []  # the libraries that were limited, with their previous number of threads
_blas_claims: WeakSet["_Claim"] = (
    WeakSet()
)  # weak, so that a claim ends with its frame even if Ctrl-C skips the release


def available_threads() -> int:
    """Return how many threads this process may use, within the limits of affinity, cgroup, loky, OpenMP and Numba.

    A variable that is not a positive integer is ignored with a warning. A daemonic process is a worker of a pool
    (`multiprocessing.Pool`, joblib's "multiprocessing") that shares the machine with the others, so it uses one thread unless
    a variable sets a number.
    """
    from joblib import cpu_count  # includes affinity, cgroups and LOKY_MAX_CPU_COUNT

    try:
        limit, is_set = int(cpu_count()), False
    except ValueError:  # loky cannot read its variable
        _warn_of_limit("LOKY_MAX_CPU_COUNT", os.environ.get("LOKY_MAX_CPU_COUNT", ""))
        limit, is_set = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1, False
    for variable in ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS"):
        value = os.environ.get(variable, "").split(",")[0].strip()
        if value.isdecimal() and int(value) > 0:
            limit, is_set = min(limit, int(value)), True
        elif value:
            _warn_of_limit(variable, os.environ[variable])
    return 1 if not is_set and _in_a_pool() else max(1, limit)


@lru_cache(maxsize=16)  # one warning per value, although every fit counts threads
def _warn_of_limit(variable: str, value: str) -> None:
    warnings.warn(
        f"The environment variable {variable} is {value!r:.100}, expected a positive whole number. It is ignored; correct or "
        "unset it.",
        UserWarning,
        stacklevel=3,
    )


def _in_a_pool() -> bool:
    processes = sys.modules.get("multiprocessing.process")  # imported in every worker of a pool
    return processes is not None and bool(processes.current_process().daemon)


@contextmanager
def thread_limit(n_jobs: int | None) -> Iterator[None]:
    """Let kernels called from this Python thread use `n_jobs` threads (None for all; negative numbers as in joblib).

    BLAS uses one thread meanwhile, because its results depend on the number of threads (`one_blas_thread`).
    """
    previous = getattr(_local, "threads", None)
    if n_jobs is None:
        threads = available_threads()
    elif n_jobs < 0:
        threads = max(1, available_threads() + 1 + n_jobs)
    else:
        threads = n_jobs
    try:
        _local.threads = threads
        with one_blas_thread():
            yield
    finally:
        _local.threads = previous


def current_threads() -> int:
    """Return the number of threads that kernels called from this Python thread may use."""
    threads = getattr(_local, "threads", None)
    if threads is None:
        threads = getattr(_local, "default", None)
    if threads is None:
        threads = _local.default = available_threads()
    return int(threads)


def even_bounds(n: int, work_per_item: float, max_chunks: int = MAX_CHUNKS) -> BoundsArray:
    """Return chunk boundaries ``0 = b_0 < ... < b_C = n`` of nearly equal length, from the amount of work alone."""
    return _bounds(n, int(min(max_chunks, max(1, n * work_per_item // MIN_CHUNK_WORK), max(1, n))))


@lru_cache(maxsize=256)
def _bounds(n: int, chunks: int) -> BoundsArray:
    """Return the boundaries, cached because computing them would dominate a solver on small data."""
    return np.linspace(0, n, chunks + 1).astype(np.uint64)


def run_chunks(kernel: Callable[..., Any], n_chunks: int, *args: Any) -> None:
    """Call ``kernel(*args, first, last)`` so that every chunk is covered once, on as many threads as allowed.

    When it returns or raises, no thread works on the chunks any more, so their arrays can be used again.
    """
    nested = getattr(_local, "inside", False)  # threads of one pool must not wait for each other
    workers = 1 if n_chunks == 1 or nested else min(current_threads(), n_chunks)
    if workers <= 1:
        kernel(*args, 0, n_chunks)
        return
    # With a few tasks per worker, a core that is busy for a moment does not delay the call.
    tasks = min(n_chunks, 4 * workers)
    call = _Call(kernel, args, [n_chunks * t // tasks for t in range(tasks + 1)])
    error: BaseException | None = None
    try:
        try:
            pool = _get_pool(workers - 1)
            for _ in range(workers - 1):
                # In a copy of the caller's context, which includes NumPy's handling of overflow.
                pool.submit(copy_context().run, call.help)
        except RuntimeError:
            pass  # no more threads are available, or Python is about to exit: the existing threads do all tasks
        call.work()
    except BaseException as caught:
        error = caught
    try:
        error = call.end(error)
        if error is not None:
            raise error
    finally:
        error = None  # breaks a reference cycle with this frame, which would keep the arrays alive


class _Call:
    """A call of `run_chunks`: tasks that threads take one by one, and the number of threads at work."""

    def __init__(self, kernel: Callable[..., Any], args: tuple[Any, ...], edges: list[int]):
        self.kernel: Any = kernel
        self.args, self.edges = args, edges
        self.tasks = iter(range(len(edges) - 1))  # next() on it is atomic
        self.gate, self.quiet = threading.Lock(), threading.Event()
        self.helpers, self.over = 0, False
        self.limited = bool(getattr(_local, "blas", ()))
        self.error: BaseException | None = None

    def work(self) -> None:
        """Do tasks until none is left."""
        try:
            _local.inside = True
            for t in self.tasks:
                self.kernel(*self.args, self.edges[t], self.edges[t + 1])
        finally:
            _local.inside = False

    def help(self) -> None:
        """Do tasks on a thread of the pool, unless the call is already over."""
        with self.gate:
            if self.over:
                return
            self.helpers += 1
        before: list[tuple[Any, int]] = []
        try:
            if self.limited:
                _limit_to_one(_libraries()[1], before)
            self.work()
        except BaseException as error:
            self.error = error
        finally:
            _restore_threads(before)
            with self.gate:
                self.helpers -= 1
                if self.over and self.helpers == 0:
                    self.quiet.set()

    def end(self, error: BaseException | None) -> BaseException | None:
        """Wait for the helpers that have begun, and return the first error, of this thread or else of a helper."""
        while True:
            try:
                if error is not None:
                    for _ in self.tasks:  # use up the tasks, so that no helper begins another
                        pass
                with self.gate:
                    self.over = True
                    alone = self.helpers == 0
                if not alone:
                    self.quiet.wait()
                break
            except BaseException as caught:  # after Ctrl-C the helpers still write to the caller's arrays: wait again
                error = error or caught
        error, self.error = error or self.error, None
        self.kernel, self.args = None, ()  # a late helper in the queue of the pool must not keep the arrays alive
        return error


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit BLAS to one thread in the whole process until the last of these contexts ends.

    The number of its threads changes the bits of sums, and spinning threads would compete with those of the kernels.
    """
    shared, own = _libraries()
    claim, claims = _Claim(), _local.__dict__.setdefault("blas", WeakSet())
    try:
        with _lock:
            _limit_to_one(shared, _blas_before)  # in every context, because other code may have set them meanwhile
            _blas_claims.add(claim)
            if not claims:
                _limit_to_one(own, _local.__dict__.setdefault("blas_before", []))
            claims.add(claim)
        yield
    finally:
        with _lock:
            _blas_claims.discard(claim)
            claims.discard(claim)
            if not claims:
                _restore_threads(_local.__dict__.setdefault("blas_before", []))
            if not _blas_claims:
                _restore_threads(_blas_before)


class _Claim:
    """A running context that limits BLAS to one thread."""


def _libraries() -> tuple[list[Any], list[Any]]:
    """Return the BLAS libraries whose threads are shared by the process, and those with threads per caller (OpenMP)."""
    global _blas
    if _blas is None:
        import scipy.linalg  # noqa: F401 - SciPy's own BLAS can be found only after it is loaded
        from threadpoolctl import ThreadpoolController  # comes with scikit-learn

        found = [each for each in ThreadpoolController().lib_controllers if each.user_api == "blas"]
        own = [each for each in found if getattr(each, "threading_layer", None) == "openmp"]
        _blas = [each for each in found if each not in own], own
    return _blas


def _limit_to_one(libraries: list[Any], before: list[tuple[Any, int]]) -> None:
    """Set their threads to one, and append those that had more to `before`."""
    known = [library for library, _ in before]
    for library in libraries:
        if (library.num_threads or 1) > 1:
            if library not in known:
                before.append((library, library.num_threads))
            _set_threads(library, 1)


def _restore_threads(before: list[tuple[Any, int]]) -> None:
    for library, threads in before:
        _set_threads(library, threads)
    before.clear()


def _set_threads(library: Any, threads: int) -> None:
    """Set the threads, bypassing `threadpoolctl`, which silently lets only one Python thread set them."""
    getattr(library, "_real_set_num_threads", library.set_num_threads)(threads)


class _Pool:
    """Threads that wait for calls, and end when the pool is garbage collected.

    A pool of `concurrent.futures` accepts no work after the main thread has ended, although other threads and functions
    registered with `atexit` still run. It would also deadlock in a signal handler that interrupts a submission.
    """

    def __init__(self, size: int):
        self.calls: SimpleQueue[Any] = SimpleQueue()
        self.threads = 0
        for k in range(size):
            threading.Thread(target=_run_calls, args=(self.calls,), name=f"scoreline_{k}", daemon=True).start()
            self.threads += 1

    def submit(self, function: Callable[..., Any], *args: Any) -> None:
        """Queue a call for one of the threads."""
        self.calls.put((function, args))

    def __del__(self) -> None:
        for _ in range(self.threads):
            self.calls.put(None)


def _run_calls(calls: Any) -> None:
    while True:
        call = calls.get()
        if call is None:
            return
        call[0](*call[1])
        del call  # or it would keep its arguments alive while waiting for the next call


def _get_pool(size: int) -> _Pool:
    global _pool
    pool = _pool
    if pool is None or pool.threads < size:
        larger = _Pool(size)  # outside of the lock, which the threads of a signal handler may need now
        with _lock:
            if _pool is None or _pool.threads < size:
                # The smaller pool ends with its last caller: another thread may be about to submit to it.
                _pool = larger
            pool = _pool
    return pool


def _forget_pool() -> None:
    global _pool
    _pool = None


def _begin_in_child() -> None:
    """Start without a pool and without claims of other threads, which do not exist in a forked child."""
    global _lock, _blas_claims
    _lock = threading.RLock()
    _forget_pool()
    _local.default = None  # the child of a pool may use fewer threads
    _local.inside = False
    _blas_claims = WeakSet(getattr(_local, "blas", ()))
    if not _blas_claims:
        _restore_threads(_blas_before)


if hasattr(os, "register_at_fork"):
    # Holding the lock during a fork keeps the copied state consistent.
    os.register_at_fork(
        before=lambda: _lock.acquire(), after_in_parent=lambda: _lock.release(), after_in_child=_begin_in_child
    )
