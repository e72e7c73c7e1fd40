"""Other processes: limits from the environment, fork, spawn, loky, and caches of compiled kernels that cannot be used."""

import os
import subprocess
import sys

import joblib
import pytest

from cases import for_each
from scoreline.runtime import parallel

LIMITS = ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS", "LOKY_MAX_CPU_COUNT")
CPUS = joblib.cpu_count()

PROBLEM = """
import sys
import numpy as np
from scoreline import MeasureClassifier
from scoreline.runtime import parallel
from scoreline.operators import as_operator

def work(threads):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40_000, 30))
    y = X[:, 0] + rng.standard_normal(40_000) > 1
    clf = MeasureClassifier(tol=1e-2, alpha=1e-2, n_jobs=threads).fit(X, y)
    assert clf.status_ == "converged", clf.status_
    with parallel.thread_limit(threads):
        z = as_operator(X).matvec(np.arange(30.0))
    return clf.coef_.tobytes() + clf.intercept_.tobytes() + z.tobytes()
"""


def run(script, tmp_path, **environment):
    """Run a script in a fresh process with only the given limits set; return what it printed.

    The time-out only ends a script that hangs: compiling the kernels takes minutes on a slow machine.
    """
    path = tmp_path / "script.py"
    path.write_text(script)
    clean = {k: v for k, v in os.environ.items() if k not in LIMITS}
    done = subprocess.run(
        [sys.executable, str(path)], env=clean | environment, capture_output=True, text=True, timeout=1800
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.strip()


@pytest.mark.slow
def test_import_is_free_of_numba(tmp_path):
    script = "import sys, scoreline; print('numba' in sys.modules, 'scoreline' in sys.modules)"
    assert run(script, tmp_path) == "False True"


@pytest.mark.slow
@for_each("variable", LIMITS)
def test_limits_of_the_environment_are_respected(variable, tmp_path):
    script = "from scoreline.runtime import parallel; print(parallel.available_threads(), parallel.current_threads())"
    assert run(script, tmp_path, **{variable: "1"}) == "1 1"


@for_each(
    ("omp", "numba", "expected"),
    [
        ("", "", CPUS),
        ("1,4", "", 1),
        ("1000", "1", 1),
        ("1000", "1000", CPUS),
        ("many", "-1", CPUS),
        ("0", "0", CPUS),
        ("\u00b2", "", CPUS),
    ],
)
@pytest.mark.filterwarnings("ignore:The environment variable")
def test_limits_that_are_not_counts_are_ignored(omp, numba, expected, monkeypatch):
    monkeypatch.delenv("LOKY_MAX_CPU_COUNT", raising=False)
    monkeypatch.setenv("OMP_NUM_THREADS", omp)
    monkeypatch.setenv("NUMBA_NUM_THREADS", numba)
    assert parallel.available_threads() == expected


@for_each("variable", LIMITS)
def test_a_limit_that_is_ignored_is_named_once(variable, monkeypatch):
    for name in LIMITS:
        monkeypatch.delenv(name, raising=False)
    parallel._warn_of_limit.cache_clear()
    monkeypatch.setenv(variable, "four")
    with pytest.warns(UserWarning, match=f"environment variable {variable} is 'four'.* ignored") as caught:
        counts = [parallel.available_threads() for _ in range(3)]
    assert min(counts) == max(counts) >= CPUS  # without loky's count, limits of a container are not known
    assert len(caught) == 1


@pytest.mark.slow
def test_a_limit_that_numba_refuses_is_named():
    code = "import scoreline.kernels.dense"
    ended = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "NUMBA_NUM_THREADS": "0"}, capture_output=True, text=True
    )
    assert "The environment variable NUMBA_NUM_THREADS is '0'" in ended.stderr


@pytest.mark.slow
def test_a_forked_child_works_and_gives_the_same_bits(tmp_path):
    script = (
        PROBLEM
        + """
import os
expected = work(2)
assert parallel._pool is not None, "the parent must have used its pool"
child = os.fork()
if child == 0:
    code = 1
    try:
        code = 0 if work(2) == expected and work(3) == expected else 2
    finally:
        os._exit(code)
_, status = os.waitpid(child, 0)
assert work(3) == expected, "the parent must go on after the fork"
print(os.waitstatus_to_exitcode(status))
"""
    )
    assert run(script, tmp_path) == "0"


@pytest.mark.slow
@pytest.mark.parametrize("how", ["spawn", "loky"])
def test_workers_of_other_processes_give_the_same_bits(how, tmp_path):
    script = (
        PROBLEM
        + """
if __name__ == "__main__":
    expected = work(2)
    if HOW == "spawn":
        from multiprocessing import get_context
        with get_context("spawn").Pool(1) as pool:
            results = pool.map(work, [2])
    else:
        from joblib import Parallel, delayed
        results = Parallel(n_jobs=2, backend="loky")(delayed(work)(threads) for threads in (1, None))
    print([result == expected for result in results])
"""
    )
    assert run(script.replace("HOW", repr(how)), tmp_path) == ("[True]" if how == "spawn" else "[True, True]")


SMALL_FIT = """
import numpy as np
from scoreline import MeasureClassifier
rng = np.random.default_rng(0)
X = rng.standard_normal((200, 3))
y = X[:, 0] + rng.standard_normal(200) > 0
print(MeasureClassifier().fit(X, y).status_)
"""


@pytest.mark.slow
def test_a_cache_directory_that_cannot_be_made_is_not_needed(tmp_path):
    assert run(SMALL_FIT, tmp_path, NUMBA_CACHE_DIR="/proc/nowhere") == "converged"


@pytest.mark.slow
def test_a_file_system_without_any_writable_directory_is_enough(tmp_path):
    """Numba tries several directories; root may write to all of them, so the attempt itself is made to fail."""
    script = (
        """
import numba.core.caching as caching
def refuse(self):
    raise PermissionError(30, "Read-only file system", self.get_cache_path())
caching._CacheLocator.ensure_cache_path = refuse
"""
        + SMALL_FIT
        + """
from scoreline import kernels
print(type(kernels.vectors._dot._cache).__name__)
"""
    )
    assert run(script, tmp_path).split() == ["converged", "NullCache"]


@pytest.mark.slow
def test_a_full_disk_under_the_cache_does_not_stop_a_fit(tmp_path):
    """A directory that looks writable and then takes no bytes: files may not grow beyond 0 bytes in this process."""
    full = "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))\n"
    if subprocess.run([sys.executable, "-c", full + "import scipy.stats"], capture_output=True, check=False).returncode:
        pytest.skip("this SciPy writes a file when it is imported")
    script = full + SMALL_FIT
    assert run(script, tmp_path, NUMBA_CACHE_DIR=str(tmp_path / "cache"), PYTHONDONTWRITEBYTECODE="1") == "converged"


@pytest.mark.slow
def test_a_cache_that_becomes_read_only_after_import_does_not_stop_a_fit(tmp_path):
    script = (
        """
import pkgutil
import numba.core.caching as caching
from scoreline import kernels
for module in pkgutil.iter_modules(kernels.__path__):
    getattr(kernels, module.name)
def refuse(self):
    raise PermissionError(30, "Read-only file system", self.get_cache_path())
caching._CacheLocator.ensure_cache_path = refuse
"""
        + SMALL_FIT
    )
    assert run(script, tmp_path, NUMBA_CACHE_DIR=str(tmp_path / "cache")) == "converged"


@pytest.mark.slow
def test_a_cold_cache_is_filled_and_used(tmp_path):
    cache = tmp_path / "cache"
    assert run(SMALL_FIT, tmp_path, NUMBA_CACHE_DIR=str(cache)) == "converged"
    first = {path: path.stat().st_mtime_ns for path in cache.rglob("*.nbc")}
    assert first, "nothing was cached"
    assert run(SMALL_FIT, tmp_path, NUMBA_CACHE_DIR=str(cache)) == "converged"
    assert {path: path.stat().st_mtime_ns for path in cache.rglob("*.nbc")} == first
