"""Threads, forks, spawned processes, loky and Dask at once; forks at bad moments; the end of Python; first compilations."""

import itertools
import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from fitted_bits import CASES, SMALL_CHUNKS, problem, run_script, work

from cases import for_each
from scoreline.io import convert, open_mapped
from scoreline.operators import DenseOperator, as_operator
from scoreline.runtime import parallel

forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
FEW = [case for case in ("roc_auc", "f1", "moments-roc_auc", "bundle_ocas-roc_auc", "hybrid-roc_auc") if case in CASES]

# How a process fits in a forked child and tells whether the bits are right.
FORKED = f"""
import os, sys, threading, time
from fitted_bits import work
CASES = {FEW!r}
expected = {{case: work(case, 1) for case in CASES}}

def all_right(threads=2):
    return all(work(case, threads) == expected[case] for case in CASES)

def in_a_fork(then=all_right, patience=600):
    child = os.fork()
    if child == 0:
        code = 3
        try:
            code = 0 if then() else 2
        finally:
            os._exit(code)
    end = time.monotonic() + patience
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(child, 9)
    os.waitpid(child, 0)
    return "it hung"
"""


@pytest.fixture
def small_chunks(monkeypatch):
    monkeypatch.setattr(parallel, "MIN_CHUNK_WORK", SMALL_CHUNKS)


EVERYTHING = """
import sys, threading, warnings
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import get_context
from fitted_bits import work

CASES_ = FEW_CASES
JOBS = [(case, threads, 500) for case in CASES_ for threads in (1, 3)]

def call(job):
    return job[0], work(*job)

if __name__ == "__main__":
    import distributed
    from joblib import Parallel, delayed

    expected = {case: work(case, 1, 500) for case in CASES_}
    found, errors = {}, []
    start = threading.Barrier(6)

    def apart(name, function):
        def run():
            try:
                start.wait(600)
                found[name] = function()
            except BaseException as error:
                errors.append((name, repr(error)))
        return threading.Thread(target=run)

    def by_threads():
        with ThreadPoolExecutor(6) as pool:
            return list(pool.map(call, JOBS))

    def by_pool(method):
        with get_context(method).Pool(2) as pool:
            return pool.map(call, JOBS)

    def by_loky():
        return Parallel(n_jobs=2, backend="loky")(delayed(call)(job) for job in JOBS)

    def by_joblib_threads():
        return Parallel(n_jobs=3, backend="threading")(delayed(call)(job) for job in JOBS)

    with distributed.LocalCluster(n_workers=1, threads_per_worker=3, dashboard_address=None, silence_logs=50) as cluster:
        with distributed.Client(cluster) as client:
            threads = [
                apart("threads", by_threads), apart("fork", lambda: by_pool("fork")),
                apart("spawn", lambda: by_pool("spawn")), apart("loky", by_loky),
                apart("joblib threads", by_joblib_threads),
                apart("dask", lambda: client.gather(client.map(call, JOBS, pure=False))),
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(1200)
    assert not errors, errors
    for name, results in sorted(found.items()):
        assert len(results) == len(JOBS)
        assert all(bits == expected[case] for case, bits in results), name
    print(len(found), "ways")
"""


@pytest.mark.slow
@forks
def test_all_kinds_of_workers_in_one_process_at_once(tmp_path):
    done = run_script(EVERYTHING.replace("FEW_CASES", repr(FEW)), tmp_path)
    assert done.stdout.strip().splitlines()[-1] == "6 ways", done.stderr[-3000:]


WHILE_THREADS_WORK = """
stop = threading.Event()
wrong = []

def busy(threads):
    while not stop.is_set():
        if not all_right(threads):
            wrong.append(threads)

callers = [threading.Thread(target=busy, args=(threads,)) for threads in (1, 2, 3)]
for caller in callers:
    caller.start()
codes = [in_a_fork() for _ in range(8)]
stop.set()
for caller in callers:
    caller.join()
print(codes, wrong)
"""


@pytest.mark.slow
@forks
def test_forks_while_other_threads_are_inside_kernels(tmp_path):
    assert run_script(FORKED + WHILE_THREADS_WORK, tmp_path).stdout.strip() == f"{[0] * 8} []"


@pytest.mark.slow
@forks
def test_a_fork_in_a_thread_and_a_fork_of_a_fork_and_pools_afterwards(tmp_path):
    script = """
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import get_context
from scoreline.runtime import parallel

def of_a_fork():
    return in_a_fork() == 0 and all_right(3) and in_a_fork() == 0

def right(_):
    return all_right(2)

def of_the_pool():
    codes = []
    def kernel(first, last):  # runs on this thread and on those of the pool
        codes.append(in_a_fork())
    with parallel.thread_limit(3):
        parallel.run_chunks(kernel, 3)
    return codes

with ThreadPoolExecutor(2) as pool:
    print([fork.result() for fork in [pool.submit(in_a_fork), pool.submit(in_a_fork, of_a_fork)]])
print(of_the_pool())
with get_context("fork").Pool(3) as pool:
    print(pool.map(right, range(4)))
print(in_a_fork(of_a_fork), all_right(3))
"""
    expected = ["[0, 0]", "[0, 0, 0]", "[True, True, True, True]", "0 True"]
    assert run_script(FORKED + script, tmp_path).stdout.splitlines() == expected


@pytest.mark.slow
@pytest.mark.slow
@forks
def test_a_fork_while_another_thread_compiles(tmp_path):
    """The child waited for ever for the compiler's lock, which a thread of its parent had."""
    script = """
import numpy as np, numba
from numba.core.compiler_lock import global_compiler_lock
from scoreline import kernels
held, go = threading.Event(), threading.Event()

def compiles():
    with global_compiler_lock:
        held.set()
        go.wait(1.0)  # the fork below waits for this

def fresh():  # types that nobody has compiled for
    out = kernels.vectors.dot(np.arange(5.0), np.arange(5.0))
    made = numba.njit(lambda x: x + 1)
    return out == 30.0 and made(1) == 2

thread = threading.Thread(target=compiles)
thread.start()
held.wait()
print(in_a_fork(fresh))
thread.join()
"""
    assert run_script(FORKED + script, tmp_path).stdout.strip() == "0"


@pytest.mark.slow
@forks
def test_a_fork_amid_a_claim_on_blas_gives_the_child_its_threads_back(tmp_path):
    script = """
import os, threading
from threadpoolctl import ThreadpoolController, threadpool_limits
from scoreline.runtime import parallel
import scipy.linalg

def blas():
    found = (each for each in ThreadpoolController().lib_controllers if each.user_api == "blas")
    return {each.num_threads for each in found if "numpy" in each.filepath or "scipy" in each.filepath}

held, go = threading.Event(), threading.Event()

def other():
    with parallel.one_blas_thread():
        held.set()
        go.wait(600)

with threadpool_limits(2, user_api="blas"):
    thread = threading.Thread(target=other)
    thread.start()
    held.wait()
    child = os.fork()
    if child == 0:
        free = blas() == {2}
        with parallel.thread_limit(1):
            inside = blas() == {1}
        os._exit(0 if free and inside and blas() == {2} else 1)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    parent = blas()
    go.set()
    thread.join()
    print(code, parent, blas())
"""
    assert run_script(script, tmp_path).stdout.strip() == "0 {1} {2}"


@pytest.mark.slow
def test_sixteen_threads_call_kernels(small_chunks):
    expected = {case: work(case, 1) for case in FEW}
    jobs = [(case, threads) for threads in (1, 2, 3, 7) for case in FEW] * 2
    with ThreadPoolExecutor(16) as pool:
        for (case, _), found in zip(jobs, pool.map(lambda job: work(*job), jobs), strict=True):
            assert found == expected[case]


DATA = """
import atexit, os, signal, sys, threading, time, warnings
warnings.simplefilter("ignore")
import numpy as np
from scoreline import MeasureClassifier
from scoreline.runtime import parallel
parallel.MIN_CHUNK_WORK = 512
rng = np.random.default_rng(0)
X = rng.standard_normal((5_000, 10))
y = X[:, 0] + rng.standard_normal(5_000) > 1

def fit(threads=2):
    return MeasureClassifier(tol=1e-3, n_jobs=threads).fit(X, y)

expected = fit(1).coef_.tobytes()

def right(threads=2):
    return fit(threads).coef_.tobytes() == expected
"""


def ended(script, tmp_path, **options):
    """Return what a script printed; it must end well, without a word on stderr."""
    done = run_script(DATA + script, tmp_path, **options)
    assert done.stderr == ""
    return done.stdout.strip()


@pytest.mark.slow
def test_a_thread_that_goes_on_after_the_main_thread_has_ended(tmp_path):
    """It raised "cannot schedule new futures after shutdown"."""
    script = """
def later():
    threading.main_thread().join()
    print(right())
fit(2)
threading.Thread(target=later).start()
"""
    assert ended(script, tmp_path) == "True"


@pytest.mark.slow
@for_each("used", [False, True])
def test_a_fit_when_python_is_about_to_end(used, tmp_path):
    assert ended(f"atexit.register(lambda: print(right()))\nif {used}:\n    fit(2)\n", tmp_path) == "True"


@pytest.mark.slow
def test_a_fit_when_the_pools_of_python_have_ended(tmp_path):
    script = """
import concurrent.futures.thread as pools
fit(2)
threading._threading_atexits.insert(0, lambda: print(pools._shutdown, right()))  # the last to be called
"""
    assert ended(script, tmp_path) == "True True"


@pytest.mark.slow
@for_each("threads", [1, 2])
def test_python_ends_while_daemons_are_inside_kernels(threads, tmp_path):
    """They wrote tracebacks about pools that take no work any more."""
    script = f"""
begun = threading.Barrier(4)
def daemon():
    fit({threads})
    begun.wait(600)
    while True:
        fit({threads})
for _ in range(3):
    threading.Thread(target=daemon, daemon=True).start()
begun.wait(600)
time.sleep(0.1)  # so that some of them are inside a kernel
"""
    for _ in range(2):
        assert ended(script, tmp_path) == ""


def test_no_thread_works_on_after_an_interruption():
    """Whoever catches Ctrl-C goes on with arrays that threads of the pool must not write to any more."""
    running, both = set(), threading.Barrier(2)

    def kernel(first, last):
        running.add(threading.get_ident())
        both.wait(600)  # so that each of the two threads has one
        if threading.current_thread() is threading.main_thread():
            signal.raise_signal(signal.SIGINT)
        time.sleep(0.2)
        running.discard(threading.get_ident())

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have set it to be ignored
    try:
        with parallel.thread_limit(2):
            with pytest.raises(KeyboardInterrupt):
                parallel.run_chunks(kernel, 2)
            assert running == {threading.get_ident()}, "only the call that was interrupted did not come to its end"
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="a signal cannot be sent to one thread here")
def test_an_interruption_while_waiting_for_other_threads_waits_for_them():
    """Ctrl-C left run_chunks while threads of the pool still wrote to arrays that the caller goes on with."""
    done, pressed, both = [], threading.Event(), threading.Barrier(2)

    def kernel(first, last):
        both.wait(600)
        if threading.current_thread() is not threading.main_thread():
            # Again and again: a signal just before the main thread begins to wait does not end that wait.
            while not pressed.wait(0.1):
                signal.pthread_kill(threading.main_thread().ident, signal.SIGALRM)
            time.sleep(0.2)  # a caller that does not wait for this thread is gone by now
            done.append(first)

    def interrupt(*_):
        if not pressed.is_set():
            pressed.set()
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        with parallel.thread_limit(2), pytest.raises(KeyboardInterrupt):
            parallel.run_chunks(kernel, 2)
        assert len(done) == 1
    finally:
        signal.signal(signal.SIGALRM, before)


@pytest.mark.slow
def test_a_handler_of_signals_that_fits(tmp_path):
    """A timer comes again and again while kernels run on several threads; its handler runs kernels itself."""
    script = """
seen = []
def handler(*_):
    seen.append(right(2))
    if len(seen) < 10:
        signal.setitimer(signal.ITIMER_REAL, 0.001 * len(seen))
signal.signal(signal.SIGALRM, handler)
signal.setitimer(signal.ITIMER_REAL, 0.001)
results = []
while len(results) < 6 or len(seen) < 10:
    results.append(right(2 + len(results) % 2))
print(all(results), all(seen), len(seen))
"""
    assert ended(script, tmp_path) == "True True 10"


def test_all_helpers_are_waited_for_when_one_of_them_fails():
    """The first error left run_chunks, the other threads worked on."""
    all_three, done, failed = threading.Barrier(3), [], threading.Event()
    helpers = itertools.count()

    def kernel(first, last):
        all_three.wait(600)
        if threading.current_thread() is threading.main_thread():
            return
        if next(helpers) == 0:
            done.append("failed")
            failed.set()
            raise ZeroDivisionError
        failed.wait(600)
        time.sleep(0.3)  # a caller that does not wait for this thread is gone by now
        done.append("ended")

    with parallel.thread_limit(3), pytest.raises(ZeroDivisionError):
        parallel.run_chunks(kernel, 3)
    assert done == ["failed", "ended"]


def test_a_machine_without_threads_to_spare_computes_on_one(monkeypatch):
    class Refusing:
        def submit(self, *_):
            raise RuntimeError("can't start new thread")

    monkeypatch.setattr(parallel, "_get_pool", lambda size: Refusing())
    done = []
    with parallel.thread_limit(4):
        parallel.run_chunks(lambda first, last: done.extend(range(first, last)), 10)
    assert done == list(range(10))


def test_a_helper_that_comes_too_late_does_nothing_and_keeps_nothing(monkeypatch):
    """A full pool takes it up when the caller is gone: the arrays may be in use for something else."""
    import weakref

    waiting = []

    class Slow:
        def submit(self, function, *args):
            waiting.append((function, args))

    monkeypatch.setattr(parallel, "_get_pool", lambda size: Slow())
    array, done = np.zeros(8), []

    def kernel(array, first, last):
        done.append((first, last))

    with parallel.thread_limit(2):
        parallel.run_chunks(kernel, 8, array)
    alive = weakref.ref(array)
    del array
    assert alive() is None
    expected = list(done)
    for function, args in waiting:
        function(*args)
    assert waiting
    assert done == expected


def test_two_lists_of_rows_of_one_folder_at_once(tmp_path, monkeypatch):
    """Another thread's list cleared what this one was about to read its copied rows from: KeyError in folds side by side."""
    X, y = problem(500, 5)
    operator, w = open_mapped(convert((X, y), tmp_path / "rows")).X, np.arange(5.0)
    this, other = operator.on_rows(np.arange(300)), operator.on_rows(np.arange(200, 500))

    class Meddled(DenseOperator):
        def __getattribute__(self, name):
            if name == "_matvec_rows":
                other.matvec(w)  # between two steps of this thread
            return super().__getattribute__(name)

    monkeypatch.setattr(type(operator), "_copied", lambda self, lines: Meddled(self._listed(lines)))
    for _ in range(3):
        assert np.array_equal(this.matvec(w), as_operator(X[:300]).matvec(w))


@pytest.mark.slow
def test_many_lists_of_rows_of_one_folder_from_many_threads(tmp_path):
    X, y = problem(2000, 5)
    operator, in_memory = open_mapped(convert((X, y), tmp_path / "rows")).X, as_operator(X)

    def products(k):
        rows, rng = np.arange(k, 2000, 3), np.random.default_rng(k)
        here, there = operator.on_rows(rows), in_memory.on_rows(rows)
        for _ in range(60):
            w, u = rng.standard_normal(5), rng.standard_normal(len(rows))
            assert np.array_equal(here.matvec(w), there.matvec(w))
            assert np.array_equal(here.rmatvec(u), there.rmatvec(u))
        return True

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(products, range(16)))


@forks
def test_a_fork_while_another_thread_has_the_lock_of_the_vectors():
    """`distributed.tasks` hands vectors of tasks out again; its lock stayed locked in a child for ever."""
    from scoreline.distributed import tasks

    held, go = threading.Event(), threading.Event()

    def other():
        with tasks._lock:
            held.set()
            go.wait(600)

    thread = threading.Thread(target=other)
    thread.start()
    held.wait(600)
    child = os.fork()
    if child == 0:
        signal.alarm(600)  # kills it if it waits
        os._exit(0 if len(tasks.empty(1 << 16)) == 1 << 16 else 1)
    status = os.waitpid(child, 0)[1]
    go.set()
    thread.join()
    assert os.waitstatus_to_exitcode(status) == 0


COLD = """
import hashlib, threading
import numpy as np
from fitted_bits import STORAGES, problem
from scoreline.runtime import parallel
from scoreline.operators import as_operator
parallel.MIN_CHUNK_WORK = 512
X = STORAGES["KIND"](problem(300, 5)[0])
found = []

def products():
    with parallel.thread_limit(2):
        operator = as_operator(X)
        z = operator.matvec(np.arange(5.0))
        u = operator.rmatvec(z)
    found.append(hashlib.sha256(z.tobytes() + u.tobytes()).hexdigest())

threads = [threading.Thread(target=products) for _ in range(3)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(len(found), set(found))
"""


@pytest.mark.slow
def test_eight_processes_fill_one_empty_cache(tmp_path):
    """Each from three threads, with arrays of four kinds, so that different code goes into the same cache; then from it."""
    kinds = ("C", "float32", "csr", "csr_float32")

    def cold(k, cache="cache"):
        own = tmp_path / f"{cache}{k}"
        own.mkdir()
        done = run_script(COLD.replace("KIND", kinds[k % 4]), own, NUMBA_CACHE_DIR=str(tmp_path / cache))
        assert done.stderr == ""
        return done.stdout

    expected = [cold(k, "apart") for k in range(4)]
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(cold, range(8)))
    assert all(line.startswith("3 {") and line.count(",") == 0 for line in expected)
    assert together == expected * 2
    assert [cold(8 + k) for k in range(4)] == expected
