"""Memory: told before a fit begins, refused where it can never be had, and advice where it runs out all the same."""

import logging
import math
import os
import subprocess
import sys
import warnings

import numpy as np
import pytest

import scoreline.runtime.memory as own
from cases import for_each
from scoreline import MeasureClassifier, MeasureClassifierCV
from scoreline.fitting import memory
from scoreline.fitting.plan import Request, Shape, plan
from scoreline.measures.registry import get_measure
from scoreline.operators import as_operator
from scoreline.solvers import SmoothedSolver
from scoreline.solvers.registry import all_solvers


def rows(n=60, p=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    return X, (X[:, 0] + rng.standard_normal(n) > 0).astype(int)


# ------------------------------------------------------------------------------------------------------- what the machine has

MEMINFO = "MemTotal:       1000 kB\nMemAvailable:    400 kB\nSwapTotal:       100 kB\nSwapFree:         50 kB\n"


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A machine of 1000 kB and 100 kB of swap, whose files can be written."""
    monkeypatch.setattr(own, "PROC", tmp_path / "proc")
    monkeypatch.setattr(own, "GROUP", tmp_path / "group")
    monkeypatch.setattr(own, "_address_space", lambda: (math.inf, 0.0))
    for folder in ("proc", "group/memory"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "proc/meminfo").write_text(MEMINFO)
    return tmp_path


def test_the_machine_alone(machine):
    assert own.memory_limit() == 1100 * 1024
    assert own.memory_left() == 450 * 1024


def test_a_container_counts_pages_of_files_as_free(machine):
    (machine / "group/memory.max").write_text("500000\n")
    (machine / "group/memory.current").write_text("300000\n")
    (machine / "group/memory.stat").write_text("anon 5\ninactive_file 100000\nactive_file 3\n")
    assert own.memory_limit() == 500_000
    assert own.memory_left() == 300_000


def test_a_container_of_the_first_version(machine):
    (machine / "group/memory/memory.limit_in_bytes").write_text("400000\n")
    (machine / "group/memory/memory.usage_in_bytes").write_text("390000\n")
    assert own.memory_limit() == 400_000
    assert own.memory_left() == 10_000


@for_each(("name", "text"), [("memory.max", "max"), ("memory/memory.limit_in_bytes", str(2**63 - 4096))])
def test_a_container_without_limit(machine, name, text):
    (machine / "group" / name).write_text(text + "\n")
    assert own.memory_limit() == 1100 * 1024


def test_a_container_that_says_nothing_of_its_use(machine):
    (machine / "group/memory.max").write_text("400000\n")
    assert own.memory_left() == 400_000


def test_a_limit_of_the_address_space(machine, monkeypatch):
    monkeypatch.undo()
    monkeypatch.setattr(own, "PROC", machine / "proc")
    resource = pytest.importorskip("resource")
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (10**6, 10**6))
    assert own._address_space() == (10**6, 0.0)
    (machine / "proc/self").mkdir()
    (machine / "proc/self/statm").write_text("100 50 3\n")
    assert own._address_space() == (10**6, 100 * own.os.sysconf("SC_PAGE_SIZE"))


def test_a_machine_that_says_nothing(machine, monkeypatch):
    (machine / "proc/meminfo").unlink()
    monkeypatch.setattr(own.os, "sysconf", lambda name: 1000)
    assert own.memory_limit() == 1e6
    assert own.memory_left() == math.inf

    def refused(name):
        raise OSError

    monkeypatch.setattr(own.os, "sysconf", refused)
    assert own.memory_limit() == math.inf


@for_each(("size", "words"), [(2.5e9, "2.5 GB"), (1e6, "1 MB"), (999.0, "0.999 kB")])
def test_sizes_in_words(size, words):
    assert own.in_words(size) == words


# ------------------------------------------------------------------------------------------------------------ before the fit


@pytest.fixture
def short(monkeypatch):
    """Set what a process can have, and what is left of it."""

    def given(limit, left):
        monkeypatch.setattr(memory, "SMALL", 0)
        monkeypatch.setattr(memory, "memory_limit", lambda: limit)
        monkeypatch.setattr(memory, "memory_left", lambda: left)

    return given


@for_each("name", sorted(all_solvers()))
def test_a_fit_that_can_never_be_is_refused(name, short):
    """For every solver: before anything is computed, and the classifier stays as it was."""
    short(100.0, 50.0)
    solver = all_solvers()[name]
    measure = next(m for m in ("roc_auc", "accuracy", "f1", "qmean") if _trains(m, solver))
    clf = MeasureClassifier(measure, solver=name)
    operator = as_operator(rows()[0])
    with pytest.raises(MemoryError, match=rf"a fit by '{name}' on 60 rows and 3 features takes about .* partial_fit"):
        clf.fit(operator, rows()[1])
    assert not hasattr(clf, "coef_")
    assert operator.n_passes == 0


def _trains(measure, solver):
    try:
        return plan(Request(solver=solver.name), get_measure(measure), Shape(1000, 3)).solver is solver
    except ValueError:
        return False


def test_a_fit_for_which_memory_is_short_now_warns(short):
    short(1e12, 100.0)
    with pytest.warns(UserWarning, match=r"100.* are left: it may fail, or be killed|0\.1 kB are left: it may fail"):
        clf = MeasureClassifier().fit(*rows())
    assert clf.status_ == "converged"


def test_enough_memory_is_only_logged(short, caplog):
    short(1e12, 1e12)
    with caplog.at_level(logging.INFO, "scoreline"), warnings.catch_warnings():
        warnings.simplefilter("error")
        MeasureClassifier().fit(*rows())
    assert any("beyond X, 1e+03 GB are left" in line for line in caplog.messages)


def test_small_fits_do_not_look(monkeypatch):
    monkeypatch.setattr(memory, "memory_limit", lambda: pytest.fail("looked"))
    MeasureClassifier().fit(*rows())


def test_estimates_grow_with_rows_and_features():
    for solver in all_solvers().values():
        made = solver()
        assert made.working_bytes(10**6, 10) >= 1e6 * 8
        assert made.working_bytes(10, 10**6) >= 1e6 * 8
        assert made.working_bytes(2 * 10**6, 10) > made.working_bytes(10**6, 10)


PEAK = """
import re, sys, warnings
import numpy as np
from scoreline import MeasureClassifier
from scoreline.solvers.registry import all_solvers
warnings.simplefilter("ignore")
name, measure = sys.argv[1:]


def memory(field):
    return 1024 * int(re.search(field + r":\\s+(\\d+)", open("/proc/self/status").read()).group(1))


rng = np.random.default_rng(0)


def fit(n, p):
    X = rng.standard_normal((n, p))
    y = X[:, 0] + rng.standard_normal(n) > 1.5
    y[:2] = True, False
    clf = MeasureClassifier(measure, solver=name, max_iter=20)
    open("/proc/self/clear_refs", "w").write("5")
    before = memory("VmRSS")
    clf.fit(X, y)
    return memory("VmHWM") - before


SHAPES = (600_000, 6), (40, 200_000)
for shape in SHAPES:  # compiling takes memory of its own, and many rows have kernels of their own
    fit(*shape)
for shape in SHAPES:
    print(fit(*shape), all_solvers()[name]().working_bytes(*shape))
"""


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
@pytest.mark.parametrize("name", sorted(all_solvers()))
def test_estimates_are_those_of_real_fits(name):
    """Never less than was used and a fifth for holes of the heap, at most six times as much (bundles may hold more planes).

    Arrays are given back at once by `MALLOC_MMAP_THRESHOLD_`: how full the heap gets else depends on what was there before.
    """
    measure = next(m for m in ("roc_auc", "accuracy", "f1", "qmean") if _trains(m, all_solvers()[name]))
    line = [sys.executable, "-c", PEAK, name, measure]
    exact = os.environ | {"MALLOC_MMAP_THRESHOLD_": "65536"}
    done = subprocess.run(line, capture_output=True, text=True, check=False, env=exact)
    assert done.returncode == 0, done.stderr
    for k, pair in enumerate(done.stdout.splitlines()):
        used, estimate = map(float, pair.split())
        assert 1.2 * used <= estimate, f"used {used:.3g}, estimated {estimate:.3g}"
        if k == 0:  # the second has pages of the first
            assert estimate <= 6.0 * used, f"used {used:.3g}, estimated {estimate:.3g}"


# ------------------------------------------------------------------------------------------------------------ it runs out


@for_each("make", [MeasureClassifier, lambda: MeasureClassifierCV(alphas=[1e-3, 1e-2], cv=2)])
def test_a_memory_error_becomes_advice_once(make, monkeypatch):
    X, y = rows()
    clf = make().fit(X, y)
    before = clf.coef_.copy()

    def full(*args, **options):
        raise np._core._exceptions._ArrayMemoryError((10**9,), np.dtype(float))

    message = r"Unable to allocate 7.45 GiB.* are left\. Pass X as float32.*convert"
    with monkeypatch.context() as patch:
        patch.setattr(SmoothedSolver, "step", full)
        with pytest.raises(MemoryError, match=message) as caught:
            clf.fit(X + 1.0, y)
    assert str(caught.value).count("Pass X as float32") == 1
    assert np.array_equal(clf.coef_, before)


def test_a_memory_error_without_words():
    with pytest.raises(MemoryError, match=r"^not enough memory; .* are left"), own.memory_advice():
        raise MemoryError


def test_a_full_device_and_other_errors():
    class OutOfMemoryError(RuntimeError):
        pass

    with pytest.raises(MemoryError, match="the device has no memory left"), own.memory_advice():
        raise OutOfMemoryError("CUDA out of memory\nmore")
    with pytest.raises(OutOfMemoryError), own.memory_advice():
        raise OutOfMemoryError("something else")
    with pytest.raises(KeyError), own.memory_advice():
        raise KeyError("x")


LIMITED = """
import resource, sys
import numpy as np
from scoreline import MeasureClassifier
from scoreline.runtime.memory import memory_left
rng = np.random.default_rng(0)
for n in (500, 200_000):
    MeasureClassifier(sys.argv[1]).fit(rng.standard_normal((n, 2)), np.arange(n) % 2)
X, y = rng.standard_normal((3_000_000, 2)), np.arange(3_000_000) % 2
size = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (size + int(sys.argv[2]), resource.RLIM_INFINITY))
try:
    MeasureClassifier(sys.argv[1]).fit(X, y)
except MemoryError as error:
    resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    print("advice" if "partial_fit" in str(error) else error)
    clf = MeasureClassifier(sys.argv[1]).fit(X, y)  # the process is as good as before
    print(clf.status_)
else:
    print("fitted")
"""


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits the address space")
@for_each("room", [10**6, 10**8])
@pytest.mark.parametrize("measure", ["roc_auc", "f1", "accuracy"])
def test_a_process_with_too_little_memory_says_so_and_goes_on(measure, room):
    line = [sys.executable, "-c", LIMITED, measure, str(room)]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.split("\n")[:-1] in (["advice", "converged"], ["fitted"])
    if room == 10**6:
        assert "advice" in done.stdout
