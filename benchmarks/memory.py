"""Peak memory of `fit` beyond X, in score vectors."""

import sys

from common import SEED, Report, child, standalone

NAME, TITLE = "memory", "peak memory of MeasureClassifier.fit beyond X and y, 2,000,000 x 20 float64"
N, P = 2_000_000, 20
P_VECTORS = 2 * 10 + 10 + 16  # curvature pairs, a few of the solver's own, private accumulators of X'u
LIMIT = 12 + P_VECTORS * P / N

# The kernel's high-water mark of resident memory is set back just before `fit`, after everything that stays has been
# loaded: libraries, compiled code, thread pool, X and y. Where it cannot be set back, the mark so far is the baseline,
# and X is allocated last, so that the mark is near the present use.
CODE = """
import json, resource, sys
import numpy as np
from scoreline import MeasureClassifier

n, p, share, measure, seed = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), sys.argv[4], int(sys.argv[5])

def data(n):
    rng = np.random.default_rng(seed)
    X, y = np.empty((n, p)), np.where(rng.random(n) < share, 1, -1).astype(np.int8)
    y[:2] = 1, -1
    for start in range(0, n, 50_000):
        part = y[start:start + 50_000]
        X[start:start + 50_000] = rng.standard_normal((len(part), p)) + 0.3 * (part > 0)[:, None]
    return X, y

def kilobytes(field):
    return int(open("/proc/self/status").read().split(field + ":")[1].split()[0])

MeasureClassifier(measure=measure).fit(*data(20_000))
X, y = data(n)
try:
    open("/proc/self/clear_refs", "w").write("5")
    before, mark = kilobytes("VmRSS"), lambda: kilobytes("VmHWM")
except OSError:
    mark = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    before = mark()
clf = MeasureClassifier(measure=measure).fit(X, y)
print(json.dumps({"kilobytes": mark() - before, "iterations": int(clf.n_iter_), "status": clf.status_}))
"""


def main(report: Report) -> None:
    for measure in ("roc_auc", "accuracy"):
        for share in (0.05, 0.5):
            found = child(CODE, str(N), str(P), str(share), measure, str(SEED))
            vectors = found["kilobytes"] * 1024 / (8 * N)
            note = f"{found['kilobytes'] / 1024:.0f} MB, X is {8 * N * P >> 20} MB; {found['iterations']} iterations"
            label = f"{measure}, {100 * share:.0f} % positives, float64 vectors of n"
            report.add(label, vectors, "", f"<= {LIMIT:g}", note)


if __name__ == "__main__":
    standalone(sys.modules[__name__])
