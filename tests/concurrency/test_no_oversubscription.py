"""No more threads than allowed, whoever calls from however many threads and processes."""

import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from fitted_bits import SMALL_CHUNKS, fit, problem, run_script
from joblib import Parallel, cpu_count, delayed

from cases import for_each
from scoreline import MeasureClassifier
from scoreline.runtime import parallel

linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")


@pytest.fixture(autouse=True)
def own_pool(monkeypatch):
    """Small chunks, and a pool that no other test has made larger."""
    monkeypatch.setattr(parallel, "MIN_CHUNK_WORK", SMALL_CHUNKS)
    parallel._forget_pool()
    yield
    parallel._forget_pool()


class Watched:
    """How many threads are inside kernels at once, and which."""

    def __init__(self, monkeypatch):
        self.now, self.most, self.names, self.lock = 0, 0, set(), threading.Lock()
        inner = parallel._Call.work

        def work(call):
            with self.lock:
                self.now += 1
                self.most = max(self.most, self.now)
                self.names.add(threading.current_thread().name)
            try:
                inner(call)
            finally:
                with self.lock:
                    self.now -= 1

        monkeypatch.setattr(parallel._Call, "work", work)

    @property
    def helpers(self):
        return {name for name in self.names if name.startswith("scoreline")}


@for_each("threads", [1, 2, 5])
def test_a_fit_uses_as_many_threads_as_it_is_given(threads, monkeypatch):
    with monkeypatch.context() as patch:
        watched = Watched(patch)
        fit(*problem(), n_jobs=threads)
    assert watched.most <= threads
    assert len(watched.helpers) <= threads - 1
    assert (watched.most > 0) == (threads > 1)


@pytest.mark.slow
def test_fifty_callers_share_one_pool(monkeypatch):
    """Callers are the user's threads; of our own there are as many as the largest of them asked for, not fifty times that."""
    watched = Watched(monkeypatch)
    X, y = problem(400)
    before = threading.active_count()
    with ThreadPoolExecutor(50) as callers:
        list(callers.map(lambda k: fit(X, y, n_jobs=2 + k % 3), range(100)))
        assert len(ours()) <= 3 + 2 + 1  # and smaller pools
        assert watched.most <= 50 + 6
    assert watched.helpers
    assert threading.active_count() <= before + 6


def test_a_pool_that_a_larger_one_replaces_ends_its_threads():
    import time

    X, y = problem(400)
    for threads in (2, 3, 4, 5, 6, 7):
        fit(X, y, n_jobs=threads)
    deadline = time.monotonic() + 600
    while len(ours()) > 6 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert len(ours()) <= 6


def ours():
    return [t for t in threading.enumerate() if t.name.startswith("scoreline")]


def test_threads_of_joblib_add_only_one_pool(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.delenv("NUMBA_NUM_THREADS", raising=False)
    watched = Watched(monkeypatch)
    X, y = problem(400)
    Parallel(n_jobs=4, backend="threading")(delayed(fit)(X, y) for _ in range(12))
    assert len(watched.helpers) <= parallel.available_threads() - 1
    assert watched.most <= 4 + parallel.available_threads() - 1


def test_chunks_within_chunks_add_no_threads(monkeypatch):
    watched = Watched(monkeypatch)

    def outer(first, last):
        for _ in range(first, last):
            parallel.run_chunks(lambda a, b: None, 16)

    with parallel.thread_limit(3):
        parallel.run_chunks(outer, 12)
    assert watched.most <= 3


def test_folds_side_by_side_share_the_threads(monkeypatch):
    """Three folds on four threads: none of them starts four of its own."""
    from scoreline import MeasureClassifierCV

    watched = Watched(monkeypatch)
    limits, inner = [], parallel.current_threads

    def recording():
        found = inner()
        limits.append((threading.current_thread() is threading.main_thread(), found))
        return found

    monkeypatch.setattr(parallel, "current_threads", recording)
    X, y = problem(400)
    MeasureClassifierCV("roc_auc", alphas=[0.1, 0.01], cv=3, max_iter=4, n_jobs=4).fit(X, y)
    pool_limits = [found for main, found in limits if not main]
    assert pool_limits, "no fold ran on a thread of its own"
    assert set(pool_limits) == {1}
    assert watched.most <= 4


THREADS_OF_A_FIT = """
import os, threading
def threads_of_a_fit(*_):
    from fitted_bits import fit, problem
    from scoreline.runtime import parallel
    parallel.MIN_CHUNK_WORK = 512
    fit(*problem(400))
    ours = [t for t in threading.enumerate() if t.name.startswith("scoreline")]
    return parallel.available_threads(), len(ours)
"""


@pytest.mark.slow
def test_processes_of_loky_divide_the_machine(tmp_path):
    """loky tells its workers how many threads they may have: the cores by the workers, or inner_max_num_threads."""
    script = (
        THREADS_OF_A_FIT
        + """
if __name__ == "__main__":
    from joblib import Parallel, delayed, cpu_count, parallel_config
    found = Parallel(n_jobs=2, backend="loky")(delayed(threads_of_a_fit)() for _ in range(4))
    allowed = max(1, cpu_count() // 2)
    print(all(given == allowed and ours <= allowed - 1 for given, ours in found), found)
    with parallel_config(backend="loky", inner_max_num_threads=1):
        print(set(Parallel(n_jobs=3)(delayed(threads_of_a_fit)() for _ in range(4))))
"""
    )
    lines = run_script(script, tmp_path).stdout.splitlines()
    assert lines[0].startswith("True")
    assert lines[1] == "{(1, 0)}"


@pytest.mark.slow
@pytest.mark.parametrize("how", ["multiprocessing.Pool", "joblib multiprocessing", "GridSearchCV", "Dask"])
def test_workers_of_pools_have_one_thread_each(how, tmp_path):
    """Daemonic processes are workers of a pool, of which there may be one for every core; a variable may allow more.

    A task of Dask has one thread too, because Dask sets OMP_NUM_THREADS=1 for its workers and runs a task on each of their
    threads; `fit` on a Dask array takes all of a worker's threads for the rows that lie there.
    """
    script = (
        THREADS_OF_A_FIT
        + f"""
HOW = {how!r}
if __name__ == "__main__":
    if HOW == "multiprocessing.Pool":
        from multiprocessing import get_context
        found = []
        for method in ("fork", "spawn"):
            if method == "fork":
                threads_of_a_fit()  # the parent knows how many threads it has, and has a pool
            with get_context(method).Pool(2) as pool:
                found += pool.map(threads_of_a_fit, range(2))
    elif HOW == "joblib multiprocessing":
        from joblib import Parallel, delayed
        found = Parallel(n_jobs=2, backend="multiprocessing")(delayed(threads_of_a_fit)() for _ in range(2))
    elif HOW == "GridSearchCV":
        from fitted_bits import problem
        from sklearn.model_selection import GridSearchCV
        from scoreline import MeasureClassifier
        from scoreline.runtime import parallel
        from joblib import cpu_count, parallel_config
        def told(clf, X, y):
            return parallel.available_threads()
        with parallel_config(backend="loky", inner_max_num_threads=1):
            search = GridSearchCV(MeasureClassifier(max_iter=9999), {{"alpha": [1.0, 0.1]}}, cv=2, n_jobs=2, scoring=told)
            values = search.fit(*problem(400)).cv_results_["mean_test_score"]
        found = [(int(value), 0) for value in values]
    else:
        import distributed
        with distributed.LocalCluster(n_workers=1, threads_per_worker=2, dashboard_address=None, silence_logs=50) as cluster:
            with distributed.Client(cluster) as client:
                found = client.gather([client.submit(threads_of_a_fit, k, pure=False) for k in range(2)])
    print(set(found))
"""
    )
    assert run_script(script, tmp_path).stdout.strip() == "{(1, 0)}"


def test_a_daemonic_process_may_be_told_that_it_has_more(monkeypatch):
    from multiprocessing import process

    monkeypatch.delenv("NUMBA_NUM_THREADS", raising=False)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.delenv("LOKY_MAX_CPU_COUNT", raising=False)
    all_of_them = parallel.available_threads()
    monkeypatch.setitem(process.current_process()._config, "daemon", True)
    assert parallel.available_threads() == 1
    with parallel.thread_limit(5):
        assert parallel.current_threads() == 5
    monkeypatch.setenv("OMP_NUM_THREADS", "64")
    assert parallel.available_threads() == all_of_them == cpu_count()


@linux
def test_a_fit_with_one_thread_starts_none(tmp_path):
    """Counted by the system, so that threads of BLAS and others are seen too: those of a product with BLAS at most."""
    X, y = problem(3000, 40)
    MeasureClassifier(n_jobs=1, max_iter=3).fit(X, y)
    before = len(os.listdir("/proc/self/task"))
    for solver in ("auto", "moments", "bundle_ocas"):
        fit(X, y, n_jobs=1, solver=solver)
    assert len(os.listdir("/proc/self/task")) <= before


BUSY_THREADS = """
import os, threading, time
from pathlib import Path
from fitted_bits import fit, problem


def others():
    # The processor time of the other threads, and whether one of them runs.
    own, total, running = threading.get_native_id(), 0, False
    for task in os.listdir("/proc/self/task"):
        if int(task) != own:
            fields = Path(f"/proc/self/task/{task}/stat").read_text().rpartition(")")[2].split()
            total += int(fields[11]) + int(fields[12])
            running = running or fields[0] == "R"
    return total, running


X, y = problem(20_000, 60)
fit(X, y, n_jobs=1, solver="moments")
while others()[1]:  # threads of BLAS spin for a while after they were started
    time.sleep(0.01)
before = others()[0]
for _ in range(3):
    fit(X, y, n_jobs=1, solver="moments")
print(others()[0] - before)
"""


@pytest.mark.slow
@linux
def test_the_threads_of_blas_do_not_run_during_a_fit(tmp_path):
    """Processor time of all threads but the main one, which a fit on one thread must not use: BLAS's would spin."""
    if parallel.available_threads() < 2:
        pytest.skip("BLAS has one thread here")
    ticks = int(run_script(BUSY_THREADS, tmp_path).stdout)
    assert ticks <= 5  # of 10 ms: threads that spin take as many as the fits, dozens


def test_blas_raised_between_two_claims_is_kept_to_one_thread():
    """The second claim lowers it again; at the end it has the threads that it had before the first."""
    libraries = parallel._libraries()[0]
    before = [library.num_threads for library in libraries]
    try:
        for library in libraries:
            parallel._set_threads(library, 3)
        raised = [library.num_threads for library in libraries]
        with parallel.one_blas_thread():
            for library in libraries:
                parallel._set_threads(library, 2)
            with parallel.one_blas_thread():
                assert all(library.num_threads == 1 for library in libraries)
        assert [library.num_threads for library in libraries] == raised
    finally:
        for library, threads in zip(libraries, before, strict=True):
            parallel._set_threads(library, threads)
