"""Slow checks: peak memory at the size that the README talks about, and many proofs in exact arithmetic."""

import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest

from scoreline.objective import Objective
from scoreline.operators import as_operator
from scoreline.risks.registry import get_risk
from scoreline.solvers import LbfgsSolver, SmoothedSolver

pytestmark = pytest.mark.slow

MEASURE_PEAK = """
import re, sys
import numpy as np
from scoreline import MeasureClassifier

measure, share, n, p = sys.argv[1], float(sys.argv[2]), 2_000_000, 20


def memory(field):
    return 1024 * int(re.search(field + r":\\s+(\\d+)", open("/proc/self/status").read()).group(1))


rng = np.random.default_rng(0)
for rows in (500, 150_000):  # small and large data use different kernels: compiling them takes memory of its own
    MeasureClassifier(measure).fit(rng.standard_normal((rows, p)), np.arange(rows) % 2)
X = np.empty((n, p))
for start in range(0, n, 100_000):
    X[start : start + 100_000] = rng.standard_normal((100_000, p))
noisy = X @ rng.standard_normal(p) + 3.0 * rng.standard_normal(n)
y = (noisy > np.quantile(noisy, 1.0 - share)).astype(int)
del noisy
open("/proc/self/clear_refs", "w").write("5")  # forget the peak so far
before = memory("VmRSS")
MeasureClassifier(measure).fit(X, y)
print((memory("VmHWM") - before) / 8)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
@pytest.mark.parametrize("share", [0.05, 0.5])
@pytest.mark.parametrize("measure", ["roc_auc", "accuracy"])
def test_peak_memory_of_a_fit(measure, share):
    """At most 12 vectors of n and 2m + 10 + chunks vectors of p beyond X, with m = 10 pairs and 16 chunks."""
    done = subprocess.run([sys.executable, "-c", MEASURE_PEAK, measure, str(share)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) <= 12 * 2_000_000 + (2 * 10 + 10 + 16) * 20


def exact(X, y, s, w, alpha, risk):
    """J(w) in rational arithmetic."""
    w = [Fraction(float(v)) for v in w]
    z = [sum((Fraction(float(x)) * v for x, v in zip(row, w, strict=True)), Fraction(0)) for row in X]
    s = [Fraction(float(v)) for v in s]
    penalty = Fraction(float(alpha)) / 2 * sum(v * v for v in w)
    if risk == "roc_area":
        sides = [[(v, q) for v, q, label in zip(z, s, y, strict=True) if label == side] for side in (1, -1)]
        total = sum(p * q * max(Fraction(0), 1 - a + b) for a, p in sides[0] for b, q in sides[1])
        return penalty + total / (sum(p for _, p in sides[0]) * sum(q for _, q in sides[1]))
    losses = [max(Fraction(0), 1 - int(label) * v) for v, label in zip(z, y, strict=True)]
    if risk == "squared_hinge":
        losses = [m * m / 2 for m in losses]
    return penalty + sum(q * m for q, m in zip(s, losses, strict=True)) / sum(s)


@pytest.mark.parametrize("risk", ["hinge", "roc_area", "squared_hinge"])
@pytest.mark.parametrize("seed", range(100))
def test_bounds_are_proofs(risk, seed):
    """The bound lies below exact J at the solution and at other points, for data of all kinds."""
    rng = np.random.default_rng(seed)
    n, p = int(rng.integers(3, 25)), int(rng.integers(1, 6))
    X = rng.standard_normal((n, p)) * 10.0 ** rng.integers(-3, 4, p) + rng.choice([0.0, 1.0, 1e3, 1e6])
    if seed % 3 == 0:
        X = np.round(X)
    if seed % 4 == 0:
        X[:, 0] = 0.0
    X = X.astype(np.float32) if seed % 5 == 0 else X
    y = np.where(rng.random(n) < rng.uniform(0.1, 0.9), 1, -1)
    y[0], y[1] = 1, -1
    s = rng.integers(1, 4, n).astype(float) if seed % 2 else rng.random(n) + 0.1
    alpha = float(10.0 ** rng.uniform(-7, 2))
    objective = Objective(as_operator(X), get_risk(risk).prepare(y, s), alpha)
    solver = LbfgsSolver if get_risk(risk).smooth else SmoothedSolver
    result = solver(tol=10.0 ** rng.uniform(-12, -2), max_iter=400).solve(objective)
    bound = Fraction(result.lower_bound)
    assert bound <= exact(X, y, s, result.w, alpha, risk)
    for scale in (0.0, 0.9, 1.1):
        assert bound <= exact(X, y, s, scale * result.w, alpha, risk)
    value = exact(X, y, s, result.w, alpha, risk)
    # The reported objective is J of the returned w: the error is that of scores, magnified by nothing.
    spread = float(np.abs(X.astype(float)).max() * np.abs(result.w).sum())
    assert abs(float(value) - result.objective) <= 1e-14 * max(1.0, spread) * max(1.0, result.objective)
