"""What the first use costs: import time, and compile time with an empty and with a filled cache."""

import sys
import tempfile

from common import Report, child, standalone

NAME, TITLE = "startup", "import and first call"
REPEATS = 5

IMPORT = """
import json, sys, time
if sys.argv[1] == "both":
    import sklearn.base, sklearn.utils.validation
start = time.perf_counter()
__import__(sys.argv[2])
print(json.dumps(time.perf_counter() - start))
"""

# Time of the first fit minus the second, for each of the listed fits; a later one finds what an earlier one compiled.
FIT = """
import json, sys, time
import numpy as np, scipy.sparse as sp
from scoreline import MeasureClassifier

rng = np.random.default_rng(0)
X = rng.standard_normal((300, 5))
y = np.where(X[:, 0] + rng.standard_normal(300) > 1, 1, -1)
found = {}
for name in sys.argv[1:]:
    storage, measure = name.split(":")
    data = sp.csr_array(X) if storage == "csr" else X
    seconds = []
    for _ in range(2):
        start = time.perf_counter()
        MeasureClassifier(measure=measure).fit(data, y)
        seconds.append(time.perf_counter() - start)
    found[name] = seconds[0] - seconds[1]
print(json.dumps(found))
"""

CASES = (["dense:roc_auc"], ["csr:roc_auc"], ["dense:accuracy"], ["dense:roc_auc", "dense:accuracy"])


def imports(report: Report) -> None:
    beyond = min(child(IMPORT, "both", "scoreline") for _ in range(REPEATS))
    alone = min(child(IMPORT, "alone", "scoreline") for _ in range(REPEATS))
    report.add(
        "import scoreline beyond scikit-learn", beyond, "s", "< 0.5", f"without scikit-learn loaded {alone:.2f} s"
    )


def compilation(report: Report) -> None:
    for names in CASES:
        with tempfile.TemporaryDirectory() as cache:
            cold, warm = (sum(child(FIT, *names, NUMBA_CACHE_DIR=cache).values()) for _ in range(2))
        both = len(names) > 1
        target = "< 15" if both else ""
        report.add(f"compile: fit {' + '.join(names)}", cold, "s", target, f"from the cache {warm:.2f} s")


def main(report: Report) -> None:
    imports(report)
    compilation(report)


if __name__ == "__main__":
    standalone(sys.modules[__name__])
