"""Load: 100 million rows through partial_fit, ten thousand fits in one process, a hundred fits at once.

python benchmarks/load.py [--rows 100000000] [--fits 10000] writes benchmarks/results/load.md.
"""

import argparse
import types
from pathlib import Path

from common import SEED, Report, child, standalone

NAME, TITLE = "load", "memory and speed under load; every part in a process of its own"
RESULTS = Path(__file__).resolve().parent / "results"

SHARED = """
import hashlib, json, os, sys, threading, time, warnings
import numpy as np
from scoreline import MeasureClassifier

seed, count = int(sys.argv[1]), int(sys.argv[2])

def megabytes(field="VmRSS"):
    return int(open("/proc/self/status").read().split(field + ":")[1].split()[0]) / 1024

def small_fit(k=0, rows=2000, **options):
    rng = np.random.default_rng([seed, k])
    X = rng.standard_normal((rows, 10))
    y = X[:, 0] + rng.standard_normal(rows) > 0.8
    return MeasureClassifier(**options).fit(X, y)

def bits(clf):
    return hashlib.sha256(clf.coef_.tobytes() + clf.intercept_.tobytes()).hexdigest()
"""

# Batches are made on the fly, in arrays that are used again: what grows is the library's, or nothing.
STREAM = """
from sklearn.metrics import roc_auc_score

solver, measure = sys.argv[3:5]
m, p = 1_000_000, 20
weights = np.random.default_rng(seed).standard_normal(p)
X, noisy = np.empty((m, p), dtype=np.float32), np.empty(m)

def batch(k):
    rng = np.random.default_rng([seed, k])
    rng.standard_normal(dtype=np.float32, out=X)
    np.dot(X, weights, out=noisy)
    noisy[:] += 3.0 * rng.standard_normal(m)
    return (noisy > 6.0).astype(np.int8)

clf = MeasureClassifier(measure, solver=solver, random_state=0)
seconds, n_rows, marks = 0.0, 0, {}
for k in range(count // m):
    y = batch(k + 1)
    start = time.perf_counter()
    clf.partial_fit(X, y, classes=[0, 1])
    seconds += time.perf_counter() - start
    n_rows += m
    if n_rows in (10**6, 10**7, 10**8, count):
        marks[f"{n_rows:g}"] = megabytes()
peak = megabytes("VmHWM")
y = batch(0)
found, best = (roc_auc_score(y[:200_000], z[:200_000]) for z in (clf.decision_function(X), X @ weights))
print(json.dumps({"rate": n_rows / seconds, "marks": marks, "peak": peak, "auc": found, "best": best,
                  "batch": (X.nbytes + noisy.nbytes) / 2**20}))
"""

LOOP = """
def counts():
    return len(os.listdir("/proc/self/fd")), threading.active_count()

marks, start = {}, time.perf_counter()
expected = bits(small_fit())
for k in range(1, count + 1):
    same = bits(small_fit()) == expected
    assert same, k
    if k in (count // 100, count // 10, count):
        marks[k] = (megabytes(), *counts())
print(json.dumps({"marks": marks, "each": (time.perf_counter() - start) / count}))
"""

AT_ONCE = """
how = sys.argv[3]
expected, rows = bits(small_fit(n_jobs=1)), 2000
before, start = megabytes(), time.perf_counter()
if how == "threads":
    from concurrent.futures import ThreadPoolExecutor
    barrier = threading.Barrier(count)
    def one(k):
        barrier.wait()
        return bits(small_fit(n_jobs=1 + k % 3))
    with ThreadPoolExecutor(count) as pool:
        found = list(pool.map(one, range(count)))
elif how == "loky":
    from joblib import Parallel, delayed
    found = Parallel(n_jobs=4, backend="loky")(delayed(lambda: bits(small_fit()))() for _ in range(count))
else:
    children = []
    for k in range(count):
        reading, writing = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.write(writing, bits(small_fit(n_jobs=1 + k % 3)).encode())
            os._exit(0)
        os.close(writing)
        children.append((pid, reading))
    found = []
    for pid, reading in children:
        found.append(os.read(reading, 100).decode())
        os.close(reading)
        assert os.waitpid(pid, 0)[1] == 0
print(json.dumps({"seconds": time.perf_counter() - start, "same": sum(f == expected for f in found),
                  "grown": megabytes() - before}))
"""


def main(report: Report, rows: int, fits: int) -> None:
    for solver, measure in (("moments", "roc_auc"), ("stamp", "f1")):
        found = child(SHARED + STREAM, str(SEED), str(rows), solver, measure)
        label = f"partial_fit, {solver} for {measure}, {rows:g} x 20 float32"
        note = f"{found['batch']:.0f} MB of them a batch of 1e6 rows and what it is made of"
        for n_rows, value in found["marks"].items():
            report.add(f"{label}: memory after {n_rows} rows", value, "MB", note=note if n_rows == "1e+06" else "")
        values = list(found["marks"].values())
        report.add(f"{label}: growth from the first mark to the last", values[-1] - values[0], "MB", "< 50")
        report.add(f"{label}: peak", found["peak"], "MB")
        report.add(f"{label}: rows per second", found["rate"], "1/s", note="of partial_fit alone")
        report.add(f"{label}: AUC of new rows", found["auc"], "", note=f"{found['best']:.4g} with the true weights")
    found = child(SHARED + LOOP, str(SEED), str(fits))
    marks = list(found["marks"].items())
    for done, (memory, files, threads) in marks:
        report.add(f"{done} fits of 2000 x 10: memory", memory, "MB", note=f"{files} open files, {threads} threads")
    report.add("growth over the last nine tenths of the fits", marks[-1][1][0] - marks[-2][1][0], "MB", "< 5")
    report.add("a fit of the loop, data included", 1000.0 * found["each"], "ms", note="all gave the same bits")
    for how in ("threads", "loky", "forks"):
        found = child(SHARED + AT_ONCE, str(SEED), "100", how)
        words = "100 tasks on 4 workers of loky" if how == "loky" else f"100 {how} at once"
        report.add(f"{words}: fits with the bits of one alone", found["same"], "", ">= 100")
        report.add(
            f"{words}: all done after", found["seconds"], "s", note=f"{found['grown']:.0f} MB more in this process"
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10**8)
    parser.add_argument("--fits", type=int, default=10**4)
    given = parser.parse_args()
    part = types.SimpleNamespace(NAME=NAME, TITLE=TITLE, main=lambda report: main(report, given.rows, given.fits))
    standalone(part, out=RESULTS / "load.json")
    (RESULTS / "load.json").unlink()
