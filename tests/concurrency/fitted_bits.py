"""Problems cut into many chunks, and what a fit leaves behind as bytes: what threads and processes must agree on."""

import hashlib
import os
import struct
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from scoreline import MeasureClassifier
from scoreline.measures.registry import all_measures
from scoreline.runtime import parallel
from scoreline.solvers.registry import all_solvers
from tiers import TIER

THREADS = (1, 3) if TIER == "quick" else (1, 2, 3, 7)
SMALL_CHUNKS = 1 << 9  # scalar operations: a few hundred rows make a dozen chunks
LIMITS = ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS", "LOKY_MAX_CPU_COUNT", "OPENBLAS_NUM_THREADS", "PYTHONHASHSEED")

STORAGES = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "csr": sp.csr_array,
    "csc": sp.csc_array,
    "float32": lambda X: X.astype(np.float32),
    "csr_float32": lambda X: sp.csr_array(X.astype(np.float32)),
}


def problem(n=1500, p=8, seed=0):
    """Return a matrix with zeros in it, and labels 0 and 1."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) * (rng.random((n, p)) < 0.8)
    y = (X @ np.cos(np.arange(p)) + rng.standard_normal(n) > 0.8).astype(int)
    return X, y


def bits(clf):
    """Return all that a fit has learnt, but for seconds, as bytes."""
    parts = [clf.coef_, clf.intercept_, clf.n_passes_, clf.n_iter_]
    parts += [
        getattr(clf, name, None)
        for name in ("objective_", "lower_bound_", "trained_intercept_", "alpha_", "calibration_")
    ]
    history = getattr(clf, "history_", {}) or {}
    parts += [value for name, value in sorted(history.items()) if name != "seconds"]
    return b"|".join(_packed(part) for part in parts) + str(getattr(clf, "status_", "")).encode()


def _packed(value):
    if value is None:
        return b"None"
    if isinstance(value, float | int):
        return struct.pack("d", value)
    return np.asarray(value, dtype=np.float64).tobytes()


def digest(clf):
    """Return the bits as a short text, for other processes to print."""
    return hashlib.sha256(bits(clf)).hexdigest()


def fit(X, y, **options):
    """Fit without a word about too few iterations."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return MeasureClassifier(**{"max_iter": 8, "random_state": 0} | options).fit(X, y)


def cases():
    """Yield options for every measure with its own choice of solver, and for every solver with a measure that it trains."""
    for name in all_measures():
        yield f"{name}", {"measure": name}
    for name, solver in all_solvers().items():
        measure = next(m for m in ("roc_auc", *all_measures()) if solver.trains(all_measures()[m]) and trains(name, m))
        yield f"{name}-{measure}", {"measure": measure, "solver": name}


def trains(solver, measure):
    """Tell whether a solver and a measure have a risk in common."""
    from scoreline.fitting.plan import Request, Shape, plan
    from scoreline.measures.registry import get_measure

    try:
        plan(Request(solver=solver), get_measure(measure), Shape(1000, 3))
    except ValueError:
        return False
    return True


CASES = dict(cases())
SOME = list(CASES)[:: 4 if TIER == "quick" else 1]  # of every kind of solver a few


def work(case, threads, n=1500, storage="C", seed=0):
    """Return the bits of a case, for other processes and threads; chunks are small there too."""
    parallel.MIN_CHUNK_WORK = SMALL_CHUNKS
    X, y = problem(n, seed=seed)
    return digest(fit(STORAGES[storage](X), y, n_jobs=threads, **CASES[case]))


def run_script(script, tmp_path, check=True, **environment):
    """Run a script that may import this module, in a fresh process with only the given limits; return the process.

    The time-out only ends a script that hangs: to compile the kernels takes minutes on a slow machine.
    """
    path = tmp_path / "script.py"
    folders = [str(Path(__file__).parent), str(Path(__file__).parents[1])]
    path.write_text(f"import sys\nsys.path[:0] = {folders!r}\n" + script)
    clean = {k: v for k, v in os.environ.items() if k not in LIMITS}
    done = subprocess.run(
        [sys.executable, str(path)], env=clean | environment, capture_output=True, text=True, timeout=1800
    )
    if check:
        assert done.returncode == 0, (done.returncode, done.stderr[-3000:])
    return done
