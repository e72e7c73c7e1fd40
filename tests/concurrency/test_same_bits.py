"""The same bits for any number of threads, of ours or of BLAS, in memory or on disk, in any process, in any order."""

import itertools
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse as sp
from fitted_bits import CASES, SMALL_CHUNKS, SOME, STORAGES, THREADS, bits, digest, fit, problem, run_script
from threadpoolctl import ThreadpoolController, threadpool_limits

from cases import for_each
from scoreline import MeasureClassifier, MeasureClassifierCV
from scoreline.io import convert, open_mapped
from scoreline.objective import Objective
from scoreline.operators import as_operator
from scoreline.risks.registry import all_risks
from scoreline.runtime import parallel
from scoreline.solvers.common.base import Solver
from scoreline.solvers.registry import all_solvers
from tiers import TIER, tiered

KINDS = list(STORAGES)
SOLVED = tiered(
    [
        (name, risk, storage)
        for name, solver in all_solvers().items()
        if issubclass(solver, Solver)
        for risk in sorted(all_risks())
        if solver.serves(all_risks()[risk])
        for storage in KINDS
    ]
)
STREAMS = [case for case, options in CASES.items() if all_solvers()[options.get("solver", "newton")].streams]


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    """Cut small problems into many chunks, and see to it that several threads really get some."""
    handed = []
    inner = parallel._Call.__init__

    def recording(call, *args):
        handed.append(1)
        inner(call, *args)

    monkeypatch.setattr(parallel, "MIN_CHUNK_WORK", SMALL_CHUNKS)
    monkeypatch.setattr(parallel._Call, "__init__", recording)
    return handed


def solved(solver, risk, storage, threads):
    """Return w, objective, bound and history of a few iterations as bytes."""
    X, y = problem(300, 6)
    with parallel.thread_limit(threads):
        prepared = all_risks()[risk]().prepare(np.where(y, 1, -1))
        objective = Objective(as_operator(STORAGES[storage](X)), prepared, 1e-2)
        result = all_solvers()[solver](tol=1e-9, max_iter=6).solve(objective)
    history = [result.history[name] for name in ("iteration", "passes", "objective", "lower_bound")]
    numbers = [result.objective, np.nan if result.lower_bound is None else result.lower_bound]
    return b"".join(np.asarray(part, dtype=float).tobytes() for part in (result.w, numbers, *history))


@pytest.mark.parametrize("kind", KINDS)
def test_every_solver_and_risk_on_any_number_of_threads(kind, small_chunks):
    for solver, risk, storage in SOLVED:
        if storage != kind:
            continue
        small_chunks.clear()
        expected = solved(solver, risk, storage, 1)
        assert not small_chunks, f"{solver}, {risk}: one thread hands nothing over"
        for threads in THREADS[1:]:
            assert solved(solver, risk, storage, threads) == expected, f"{solver}, {risk}, {threads} threads"
        assert small_chunks, f"{solver}, {risk}: several threads had nothing to do"


@for_each("case", SOME)
def test_every_measure_and_solver_of_the_estimator(case, small_chunks):
    small_chunks.clear()
    X, y = problem(700)
    kinds = [kind for kind in KINDS if case not in STREAMS or "csc" not in kind]  # whose rows cannot be read one by one
    X = STORAGES[kinds[list(CASES).index(case) % len(kinds)]](X)
    found = {threads: bits(fit(X, y, n_jobs=threads, **CASES[case])) for threads in THREADS}
    assert len(set(found.values())) == 1, {threads: hash(one) for threads, one in found.items()}
    assert small_chunks


@for_each("measure", ["f1"] if TIER == "quick" else ["roc_auc", "f1", "accuracy"])
def test_probabilities_and_cross_validation(measure):
    X, y = problem(500)
    for options in ({"probability": True}, {"threshold": "holdout", "class_weight": "balanced", "scaling": "standard"}):
        fits = [fit(X, y, measure=measure, n_jobs=threads, **options) for threads in THREADS]
        assert len({bits(clf) for clf in fits}) == 1
        if options.get("probability"):
            assert len({clf.predict_proba(X).tobytes() for clf in fits}) == 1
    searches = [
        MeasureClassifierCV(measure, alphas=[0.1, 0.01], cv=3, max_iter=6, random_state=0, n_jobs=threads).fit(X, y)
        for threads in THREADS
    ]
    assert len({bits(search) for search in searches}) == 1
    assert len({search.cv_results_["mean_test_score"].tobytes() for search in searches}) == 1


@for_each(("case", "storage"), tiered(itertools.product(STREAMS, ["C", "csr_float32"]), strength=1))
def test_streams(case, storage):
    X, y = problem(900)
    X = STORAGES[storage](X)
    found = set()
    for threads in THREADS:
        clf = MeasureClassifier(random_state=0, n_jobs=threads, **CASES[case])
        for start in range(0, 900, 300):
            clf.partial_fit(X[start : start + 300], y[start : start + 300], classes=[0, 1])
        found.add(bits(clf))
    assert len(found) == 1


@pytest.mark.parametrize("storage", ["C", "csr", "float32", "csr_float32"])
def test_mapped_as_in_memory(storage, tmp_path):
    X, y = problem(700)
    X = STORAGES[storage](X)
    dtype = "float32" if X.dtype == np.float32 else "float64"
    data = open_mapped(convert((X, y), tmp_path / "set", dtype=dtype))
    for case in SOME[KINDS.index(storage) % 4 :: 4] if TIER == "quick" else SOME:
        check_mapped(case, X, y, data)


def check_mapped(case, X, y, data):
    expected = bits(fit(sp.csr_array(X) if sp.issparse(X) else np.ascontiguousarray(X), y, n_jobs=1, **CASES[case]))
    for threads in (1, 2, 7):
        assert bits(fit(data.X, data.y, n_jobs=threads, **CASES[case])) == expected, f"{case}, {threads} threads"


@pytest.mark.slow
def test_cross_validation_on_a_folder_as_in_memory(tmp_path):
    """Folds side by side read lists of rows of one folder at once."""
    X, y = problem(500)
    data = open_mapped(convert((X, y), tmp_path / "set"))
    search = MeasureClassifierCV("roc_auc", alphas=[0.1, 0.01], cv=3, max_iter=6, n_jobs=1)
    expected = bits(search.fit(X, y))
    for threads in (1, 3, 6):
        assert bits(search.set_params(n_jobs=threads).fit(data.X, data.y)) == expected


SCRIPT = """
from fitted_bits import CASES, work
cases = list(CASES)
for case in (cases[::-1] if ORDER else cases):
    print(case, work(case, THREADS, n=400))
"""


def printed(order, threads, tmp_path, **environment):
    script = SCRIPT.replace("ORDER", str(order)).replace("THREADS", str(threads))
    return dict(line.split() for line in run_script(script, tmp_path, **environment).stdout.splitlines())


@pytest.mark.slow
def test_other_processes_other_hashes_another_order(tmp_path):
    """Names are hashed differently in every process; fits come in the other order; BLAS is told other numbers of threads."""
    first = printed(False, 1, tmp_path, PYTHONHASHSEED="1", OPENBLAS_NUM_THREADS="1")
    assert set(first) == set(CASES)
    for k, threads in enumerate((2, 7)):
        other = printed(True, threads, tmp_path, PYTHONHASHSEED=str(100 + k), OPENBLAS_NUM_THREADS=str(2 + k))
        assert other == first
    X, y = problem(400)
    assert {case: digest(fit(X, y, n_jobs=3, **options)) for case, options in CASES.items()} == first


@pytest.mark.slow
def test_the_order_of_calls_does_not_matter():
    """One estimator used again and again, others in between, caches warm or cold."""
    problems = [problem(n, p, seed) for n, p, seed in ((300, 5, 1), (500, 9, 2), (400, 7, 3))]
    some = list(CASES)[::5]
    alone = {(case, k): bits(fit(*problems[k], **CASES[case])) for case in some for k in range(3)}
    for k in (2, 0, 1, 0):
        for case in reversed(some):
            clf = MeasureClassifier(**{"max_iter": 8, "random_state": 0} | CASES[case])
            for j in (k, (k + 1) % 3, k):
                clf.fit(*problems[j])
                assert bits(clf) == alone[case, j], (case, j)


# Long and wide enough for OpenBLAS to share out sums (from 10,000 entries), products and factorisations.
WIDE = {"C": (12_000, 100), "csr": (12_000, 100)}


def check_blas(case, storage):
    X, y = problem(*WIDE[storage])
    X = STORAGES[storage](X)
    found = []
    for threads in (1, 2, 4):
        with threadpool_limits(threads, user_api="blas"):
            found.append(bits(fit(X, y, n_jobs=2, **CASES[case] | {"max_iter": 4})))
            assert blas_threads() == {threads}, "the threads of BLAS are given back"
    assert found[1:] == found[:-1], case


def blas_threads():
    """Of NumPy and SciPy; other packages may bring a BLAS that knows one thread only."""
    found = (library for library in ThreadpoolController().lib_controllers if library.user_api == "blas")
    return {library.num_threads for library in found if "numpy" in library.filepath or "scipy" in library.filepath}


def test_moments_do_not_depend_on_the_threads_of_blas():
    """They did: eigenvectors and quadratic forms of p x p matrices came from as many threads as BLAS had."""
    check_blas(next(case for case in CASES if case.startswith("moments")), "C")


@pytest.mark.slow
@pytest.mark.parametrize("storage", WIDE)
def test_nothing_depends_on_the_threads_of_blas(storage):
    for case in CASES:
        check_blas(case, storage)


def test_claims_on_blas_that_overlap_end_with_the_last():
    """Two threads, A in, B in, A out, B out: BLAS was left with one thread for good, and had several while B computed."""
    steps, observed = [threading.Event() for _ in range(3)], {}

    def a():
        with parallel.one_blas_thread():
            steps[0].set()
            steps[1].wait(600)
        observed["b still in"] = blas_threads()
        steps[2].set()

    def b():
        steps[0].wait(600)
        with parallel.one_blas_thread():
            steps[1].set()
            steps[2].wait(600)

    with threadpool_limits(2, user_api="blas"):
        with ThreadPoolExecutor(2) as pool:
            for claim in [pool.submit(a), pool.submit(b)]:
                claim.result()
        assert blas_threads() == {2}
    assert observed["b still in"] == {1}


def test_blas_is_limited_by_a_thread_that_does_not_control_it():
    """threadpoolctl listens to one Python thread only: with limits of the main thread, those of a fit were ignored."""
    X, y = problem(*WIDE["C"])
    options = CASES[next(case for case in CASES if case.startswith("moments"))]
    expected = bits(fit(X, y, **options))
    observed = []

    def on_a_thread():
        with parallel.thread_limit(2):
            observed.append(blas_threads())
        return bits(fit(X, y, **options))

    with threadpool_limits(2, user_api="blas"), ThreadPoolExecutor(1) as pool:
        assert pool.submit(on_a_thread).result() == expected
        assert blas_threads() == {2}
    assert observed == [{1}]


def test_libraries_with_threads_per_caller_are_limited_on_every_thread(monkeypatch):
    """OpenMP keeps limits by thread: those of the pool need their own."""

    class Library:
        threading_layer = "openmp"

        def __init__(self):
            self.own = threading.local()

        @property
        def num_threads(self):
            return getattr(self.own, "threads", 4)

        def set_num_threads(self, threads):
            self.own.threads = threads

    library, observed = Library(), []
    monkeypatch.setattr(parallel, "_blas", ([], [library]))
    barrier = threading.Barrier(3)

    def kernel(first, last):
        barrier.wait(600)
        observed.append((threading.current_thread().name, library.num_threads))
        barrier.wait(600)

    with parallel.thread_limit(3):
        parallel.run_chunks(kernel, 3)
    assert len(dict(observed)) == 3
    assert {threads for _, threads in observed} == {1}
    assert library.num_threads == 4


def test_overflow_is_as_silent_on_other_threads_as_on_this_one():
    """What NumPy does about overflow belongs to a thread: those of the pool warned where the caller's did not."""
    X = np.full((40_000, 30), 1e200)
    operator = as_operator(X, check_finite=False)
    for threads in THREADS:
        with parallel.thread_limit(threads), np.errstate(all="raise"):
            assert np.isinf(operator.gram(np.ones(len(X)))).all()
