"""The peak memory of a fit, at the size that the README talks about."""

import subprocess
import sys

import pytest

from cases import for_each

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
@for_each("share", [0.05, 0.5])
@for_each("measure", ["roc_auc", "accuracy"])
def test_peak_memory_of_a_fit(measure, share):
    """At most 12.25 vectors of n and 2m + 10 + chunks vectors of p beyond X, with m = 10 pairs and 16 chunks.

    The quarter is the part of each row where the ROC area of many scores is computed part by part: two bytes per row.
    """
    done = subprocess.run([sys.executable, "-c", MEASURE_PEAK, measure, str(share)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) <= 12.25 * 2_000_000 + (2 * 10 + 10 + 16) * 20
