"""How kernels use several cores: chunks fixed by the data, a pool of Python threads, no shared accumulators.

A kernel is a serial function that releases the GIL and works on chunks ``first <= c < last``. Chunk boundaries depend on
the shape of the data only, and every chunk writes to its own place, so results have the same bits for any number of
threads. Python threads were chosen over ``prange`` because they compile several times faster, survive a fork (the pool
is simply made anew) and need no lock when several Python threads call at once; `benchmarks/parallel.py` measures both.
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

# A chunk below this many scalar operations is not worth handing to another thread (a hand-over costs about 0.1 ms).
MIN_CHUNK_WORK = 1 << 19
MAX_CHUNKS = 64

_lock = threading.RLock()  # a signal handler may come back here on the thread that has it
_local = threading.local()
_pool: "_Pool | None" = None
_blas: tuple[list[Any], list[Any]] | None = None  # the BLAS libraries, once they have been looked for
_blas_before: list[tuple[Any, int]] = []  # those that were limited, and their threads before
_blas_claims: WeakSet["_Claim"] = WeakSet()  # a claim that Ctrl-C kept from being given back ends with its frame


def available_threads() -> int:
    """Return how many threads this process may use: affinity, cgroup, loky, OpenMP and Numba limits respected.

    A variable that is not a positive whole number is ignored, with a warning that names it. One thread in a daemonic process
    where no variable says otherwise: that is a worker of a pool (`multiprocessing.Pool`, joblib's "multiprocessing"), and all
    of them share the machine.
    """
    from joblib import cpu_count  # loky's count knows affinity, cgroups and LOKY_MAX_CPU_COUNT

    try:
        limit, told = int(cpu_count()), False
    except ValueError:  # loky cannot read its variable
        _warn_of_limit("LOKY_MAX_CPU_COUNT", os.environ.get("LOKY_MAX_CPU_COUNT", ""))
        limit, told = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1, False
    for variable in ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS"):
        value = os.environ.get(variable, "").split(",")[0].strip()
        if value.isdecimal() and int(value) > 0:
            limit, told = min(limit, int(value)), True
        elif value:
            _warn_of_limit(variable, os.environ[variable])
    return 1 if not told and _in_a_pool() else max(1, limit)


@lru_cache(maxsize=16)  # one warning per value: every fit counts threads
def _warn_of_limit(variable: str, value: str) -> None:
    warnings.warn(
        f"The environment variable {variable} is {value!r:.100}, expected a positive whole number. It is ignored; correct or "
        "unset it.",
        UserWarning,
        stacklevel=3,
    )


def _in_a_pool() -> bool:
    processes = sys.modules.get("multiprocessing.process")  # who has not imported it is not one of its workers
    return processes is not None and bool(processes.current_process().daemon)


@contextmanager
def thread_limit(n_jobs: int | None) -> Iterator[None]:
    """Let kernels called from this Python thread use `n_jobs` threads (None: all; negative: as joblib counts).

    BLAS has one thread meanwhile, because its results depend on how many it has (`one_blas_thread`).
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
    """Return the boundaries; made once, because a solver on little data would spend its time here. Nobody writes to them."""
    return np.linspace(0, n, chunks + 1).astype(np.uint64)


def run_chunks(kernel: Callable[..., Any], n_chunks: int, *args: Any) -> None:
    """Call ``kernel(*args, first, last)`` so that every chunk is covered once, on as many threads as allowed.

    When it returns or raises, no thread works on the chunks any more: what they write to can be used again.
    """
    nested = getattr(_local, "inside", False)  # threads of one pool that wait for each other would wait for ever
    workers = 1 if n_chunks == 1 or nested else min(current_threads(), n_chunks)
    if workers <= 1:
        kernel(*args, 0, n_chunks)
        return
    # A few tasks per worker even out a core that the machine takes away for a moment.
    tasks = min(n_chunks, 4 * workers)
    call = _Call(kernel, args, [n_chunks * t // tasks for t in range(tasks + 1)])
    error: BaseException | None = None
    try:
        try:
            pool = _get_pool(workers - 1)
            for _ in range(workers - 1):
                # Each in a copy of the caller's context: what NumPy does about overflow is a part of it.
                pool.submit(copy_context().run, call.help)
        except RuntimeError:
            pass  # no more threads to be had, or Python is about to end: those that there are do it all
        call.work()
    except BaseException as caught:
        error = caught
    try:
        error = call.end(error)
        if error is not None:
            raise error
    finally:
        error = None  # its traceback has this frame, which would keep the arrays until Python looks for cycles


class _Call:
    """A call of `run_chunks`: tasks that threads take one by one, and how many threads are still at it."""

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
        """Do tasks on a thread of the pool, unless it comes too late."""
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
        """Wait for the helpers that have begun, forget the others, return what went wrong: here first, then at a helper."""
        while True:
            try:
                if error is not None:
                    for _ in self.tasks:  # none is to be begun any more
                        pass
                with self.gate:
                    self.over = True
                    alone = self.helpers == 0
                if not alone:
                    self.quiet.wait()
                break
            except BaseException as caught:  # Ctrl-C: the helpers still write to arrays that the caller may go on with
                error = error or caught
        error, self.error = error or self.error, None
        self.kernel, self.args = None, ()  # a helper that comes too late may wait in the pool for long
        return error


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Keep BLAS to one thread, in the whole process, until the last of those who ask for it is done.

    Its threads decide about bits: a sum is cut into as many parts. They also spin, and fight over cores that ours use.
    """
    shared, own = _libraries()
    claim, claims = _Claim(), _local.__dict__.setdefault("blas", WeakSet())
    try:
        with _lock:
            _limit_to_one(shared, _blas_before)  # also where others have asked before: they may have been set meanwhile
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
    """Somebody who wants BLAS to have one thread."""


def _libraries() -> tuple[list[Any], list[Any]]:
    """Return the BLAS libraries whose threads belong to the process, and those with threads for every caller (OpenMP)."""
    global _blas
    if _blas is None:
        import scipy.linalg  # noqa: F401 - SciPy has a BLAS of its own, which is found only once it is loaded
        from threadpoolctl import ThreadpoolController  # comes with scikit-learn

        found = [each for each in ThreadpoolController().lib_controllers if each.user_api == "blas"]
        own = [each for each in found if getattr(each, "threading_layer", None) == "openmp"]
        _blas = [each for each in found if each not in own], own
    return _blas


def _limit_to_one(libraries: list[Any], before: list[tuple[Any, int]]) -> None:
    """Set their threads to one, and take note of those that had more."""
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
    """Set them also where `threadpoolctl` lets only one Python thread do so, and says nothing to the others."""
    getattr(library, "_real_set_num_threads", library.set_num_threads)(threads)


class _Pool:
    """Threads that wait for calls, and end when it is gone.

    Not one of `concurrent.futures`, which takes no work once the main thread has ended, though other threads and what is
    registered with `atexit` still run, and which a signal handler that comes while work is handed over would wait for for ever.
    """

    def __init__(self, size: int):
        self.calls: SimpleQueue[Any] = SimpleQueue()
        self.threads = 0
        for k in range(size):
            threading.Thread(target=_run_calls, args=(self.calls,), name=f"scoreline_{k}", daemon=True).start()
            self.threads += 1

    def submit(self, function: Callable[..., Any], *args: Any) -> None:
        """Have the function called by one of the threads."""
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
        del call  # keeps nothing while it waits for the next


def _get_pool(size: int) -> _Pool:
    global _pool
    pool = _pool
    if pool is None or pool.threads < size:
        made = _Pool(size)  # not under the lock: a signal handler that comes now may need threads that need the lock
        with _lock:
            if _pool is None or _pool.threads < size:
                # A smaller one ends when the last caller has let it go: another thread may be about to submit to it.
                _pool = made
            pool = _pool
    return pool


def _forget_pool() -> None:
    global _pool
    _pool = None


def _begin_in_child() -> None:
    """After fork the threads of the parent do not exist, nor do their claims on BLAS: start over in the child."""
    global _lock, _blas_claims
    _lock = threading.RLock()
    _forget_pool()
    _local.default = None  # the child of a pool may use less
    _local.inside = False
    _blas_claims = WeakSet(getattr(_local, "blas", ()))
    if not _blas_claims:
        _restore_threads(_blas_before)


if hasattr(os, "register_at_fork"):
    # Nobody else is between two steps of what the lock protects when the process is copied.
    os.register_at_fork(
        before=lambda: _lock.acquire(), after_in_parent=lambda: _lock.release(), after_in_child=_begin_in_child
    )
