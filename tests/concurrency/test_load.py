"""Load: a hundred fits at once, thousands in a loop, and nothing left behind, also by fits that fail."""

import gc
import logging
import os
import sys
import threading
import tracemalloc
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse as sp
from fitted_bits import CASES, SMALL_CHUNKS, digest, fit, problem, run_script, work

from cases import for_each
from scoreline import MeasureClassifier, MeasureClassifierCV, kernels, load_model
from scoreline.io import convert, open_mapped
from scoreline.operators import DenseOperator, as_operator
from scoreline.runtime import parallel
from tiers import TIER

linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
FEW = [case for case in ("roc_auc", "f1", "accuracy", "moments-roc_auc", "stamp-f1") if case in CASES]


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    monkeypatch.setattr(parallel, "MIN_CHUNK_WORK", SMALL_CHUNKS)


@pytest.fixture(autouse=True)
def older_objects_are_left_alone():
    """Leave what other tests have imported and made out of every collection: looking through it takes half a second."""
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.mark.slow
def test_a_hundred_fits_on_a_hundred_threads():
    expected = {case: work(case, 1, n=400) for case in FEW}
    together = threading.Barrier(100)

    def one(k):
        together.wait(600)
        case = FEW[k % len(FEW)]
        return work(case, 1 + k % 4, n=400) == expected[case]

    with ThreadPoolExecutor(100) as pool:
        assert sum(pool.map(one, range(100))) == 100


@pytest.mark.slow
def test_a_hundred_tasks_on_three_workers(tmp_path):
    script = f"""
from cases import for_each
from tiers import TIER
from fitted_bits import work
FEW = {FEW!r}
if __name__ == "__main__":
    from joblib import Parallel, delayed
    expected = {{case: work(case, 1, n=400) for case in FEW}}
    cases = [FEW[k % len(FEW)] for k in range(100)]
    found = Parallel(n_jobs=3, backend="loky")(delayed(work)(case, 1 + k % 3, n=400) for k, case in enumerate(cases))
    print(sum(expected[case] == bits for case, bits in zip(cases, found)))
"""
    assert run_script(script, tmp_path).stdout.strip() == "100"


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_hundred_processes_at_once(tmp_path):
    script = f"""
import os
from cases import for_each
from tiers import TIER
from fitted_bits import work
FEW = {FEW!r}
expected = {{case: work(case, 2, n=400) for case in FEW}}
children = []
reading, writing = os.pipe()
for k in range(100):
    child = os.fork()
    if child == 0:
        os.close(writing)
        os.read(reading, 1)  # until all are there
        code = 3
        try:
            code = 0 if work(FEW[k % len(FEW)], 1 + k % 3, n=400) == expected[FEW[k % len(FEW)]] else 2
        finally:
            os._exit(code)
    children.append(child)
os.close(writing)
print([os.waitpid(child, 0)[1] for child in children].count(0))
"""
    assert run_script(script, tmp_path).stdout.strip() == "100"


def resident():
    """Return megabytes."""
    return int(open("/proc/self/status").read().split("VmRSS:")[1].split()[0]) / 1024


def open_files():
    return len(os.listdir("/proc/self/fd"))


def loops(tmp_path):
    """Return what is done again and again: calls that leave nothing behind."""
    X, y = problem(200, 5)
    dense, sparse = np.ascontiguousarray(X), sp.csr_array(X)
    folder = convert((X, y), tmp_path / "rows")
    model = fit(X, y, probability=True)
    stream = MeasureClassifier(solver="moments")
    rows = MeasureClassifier("f1", solver="stamp", random_state=0)

    def stored():
        model.save(tmp_path / "model.scoreline")
        load_model(tmp_path / "model.scoreline").predict(X)

    def mapped():
        data = open_mapped(folder)
        fit(data.X, data.y, max_iter=2)

    def with_checkpoint():
        fit(X, y, max_iter=3, solver_params={"checkpoint": tmp_path / "run"})
        for path in tmp_path.glob("run*"):
            path.unlink()

    def failing():
        with pytest.raises(ValueError, match="class"):
            fit(X, np.ones(len(y)))
        with pytest.raises(ValueError, match="NaN"):
            fit(np.where(X > 2.5, np.nan, X), y)

    def failing_inside():
        def callback(_):
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            fit(X, y, solver_params={"callbacks": [callback]})

    return {
        "fit": lambda: fit(dense, y, max_iter=3, n_jobs=2),
        "fit_sparse": lambda: fit(sparse, y, measure="f1", max_iter=3),
        "fit_probability": lambda: fit(dense, y, measure="accuracy", max_iter=3, probability=True),
        "search": lambda: MeasureClassifierCV(alphas=[1.0, 0.1], cv=2, max_iter=3).fit(dense, y),
        "moments": lambda: stream.partial_fit(dense, y),
        "rows": lambda: rows.partial_fit(dense, y),
        "predict": lambda: model.predict_proba(dense),
        "save_and_load": stored,
        "mapped": mapped,
        "checkpoint": with_checkpoint,
        "failing": failing,
        "failing_inside": failing_inside,
    }


LOOPS = (
    "fit", "fit_sparse", "fit_probability", "search", "moments", "rows", "predict", "save_and_load", "mapped", "checkpoint",
    "failing", "failing_inside",
)  # fmt: skip


@pytest.mark.slow
def test_all_loops_are_run(tmp_path):
    assert set(loops(tmp_path)) == set(LOOPS)


@linux
@for_each("name", ("fit", "failing_inside") if TIER == "quick" else LOOPS)
@pytest.mark.filterwarnings("ignore")
def test_nothing_is_left_behind(name, tmp_path, caplog):
    """Live Python objects, open files, threads and files on disk are as many after seventy calls as after ten."""
    caplog.set_level(logging.CRITICAL, logger="scoreline")  # pytest keeps the records of a test
    tmp_path = tmp_path / name
    tmp_path.mkdir()
    call = loops(tmp_path)[name]

    def state():
        gc.collect()
        return {
            "objects": len(gc.get_objects()), "open files": open_files(), "threads": threading.active_count(),
            "files": len(list(tmp_path.rglob("*"))),
        }  # fmt: skip

    for _ in range(10):
        call()
    state()
    states = [state()]
    for _ in range(3):
        for _ in range(20):
            call()
        states.append(state())
    # A sketch of scores keeps a logarithm of the rows it was given; a leak of one object per call would be twenty and more in
    # every round. Messages of pytest-xdist that arrive during a round are objects, too.
    objects = [each.pop("objects") for each in states]
    assert min(np.diff(objects)) < 20, objects
    assert states[-1] == states[0]


@linux
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_two_thousand_fits_take_the_memory_of_two_hundred(tmp_path):
    """The benchmark has 1e4 (benchmarks/load.py). An X of 200 x 5 that stays would be 8 kB a fit, 14 MB in all."""
    call = loops(tmp_path)["fit"]
    for _ in range(200):
        call()
    gc.collect()
    memory, files, threads = resident(), open_files(), threading.active_count()
    for _ in range(1800):
        call()
    gc.collect()
    assert resident() - memory < 4.0
    assert (open_files(), threading.active_count()) == (files, threads)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@for_each("name", LOOPS)
def test_bytes_do_not_grow_in_loops(name, tmp_path):
    """Less than half a vector of n = 200 for every call; what Python and NumPy keep of small objects fills up at first.

    A stream of rows keeps scores for its threshold: of the later half of the stream, thinned out, so their number grows like a
    logarithm once there are many, and like the rows (16 bytes each) before that.
    """
    tmp_path = tmp_path / name
    tmp_path.mkdir()
    call = loops(tmp_path)[name]
    call()
    tracemalloc.start()
    try:
        for _ in range(50):
            call()
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(50):
            call()
        gc.collect()
        assert tracemalloc.get_traced_memory()[0] - before < 50 * (200 * 16 if name == "rows" else 200 * 4)
    finally:
        tracemalloc.stop()


@for_each("threads", [1, 3])
@for_each("how", ["well", "labels", "callback", "interrupted", "kernel"])
def test_x_is_let_go_at_once(how, threads, monkeypatch):
    """No cache, no pool and no cycle of a traceback keeps X: it goes with the last name for it, without Python's collector."""
    fit(*problem(300, 5), n_jobs=threads)  # what it loads and compiles is not of interest
    X, y = problem(300, 5)
    operator = DenseOperator(X)
    alive, rows = weakref.ref(operator), weakref.ref(X)
    del X
    options = {"n_jobs": threads}

    def callback(_):
        raise KeyboardInterrupt if how == "interrupted" else ZeroDivisionError

    if how in ("callback", "interrupted"):
        options["solver_params"] = {"callbacks": [callback]}
    if how == "labels":
        y = np.ones(300)
    gc.collect()
    gc.disable()
    try:
        try:
            with monkeypatch.context() as patch:
                if how == "kernel":
                    patch.setattr(kernels.dense, "line_dots", failing_kernel)
                fit(operator, y, **options)
        except (ValueError, ZeroDivisionError, KeyboardInterrupt):
            assert how != "well"
        else:
            assert how == "well"
        del operator
        if how == "interrupted":
            gc.collect()  # the result of the run has the exception, and frames of its traceback have the result
        assert alive() is None
        assert rows() is None
    finally:
        gc.enable()


def failing_kernel(*args):
    raise ZeroDivisionError


def test_partial_fit_keeps_nothing_of_a_block_that_fails():
    X, y = problem(300, 5)
    clf = MeasureClassifier(solver="moments").partial_fit(X, y)
    before = digest(clf)
    bad = np.where(np.arange(300)[:, None] == 7, np.nan, X)
    alive = weakref.ref(bad)
    gc.disable()
    try:
        with pytest.raises(ValueError, match="NaN"):
            clf.partial_fit(bad, y)
        del bad
        assert alive() is None
    finally:
        gc.enable()
    assert digest(clf) == before


@linux
@pytest.mark.slow
def test_a_long_stream_takes_no_more_memory_than_a_short_one():
    """The benchmark has 1e8 rows (benchmarks/load.py); here 2e6, after 2e5."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50_000, 10)).astype(np.float32)
    streams = [MeasureClassifier(solver="moments"), MeasureClassifier("gmean", solver="spade", random_state=0)]

    def block(k):
        rng = np.random.default_rng(k)
        rng.standard_normal(dtype=np.float32, out=X)
        y = X[:, 0] + rng.standard_normal(len(X)) > 1
        for clf in streams:
            clf.partial_fit(X, y, classes=[False, True])

    for k in range(4):
        block(k)
    before = resident()
    for k in range(4, 40):
        block(k)
    assert resident() - before < 4.0  # a block has 2 MB


def test_an_operator_counts_every_pass_of_every_thread_or_none():
    """Rows of one operator as operators of their own: each counts its passes, whatever others do with it meanwhile."""
    X, _ = problem(400, 5)
    operator = as_operator(X)

    def count(k):
        own = operator.on_rows(np.arange(k, 400))
        for _ in range(50):
            own.matvec(np.ones(5))
        return own.n_passes

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(count, range(8))) == {50.0}
