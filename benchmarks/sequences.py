"""Features of sequences from one byte per letter, compared with the same features hashed into a CSR matrix.

    python benchmarks/sequences.py [--rows 1000000] [--disk-gb 2] [--parts products,fit,disk] [--folder scratch]

"products": time of Xw and X'u per row and letter, and bytes per letter, on a tenth of the rows, because the hashed matrix of
all of them does not fit. Columns of the rival are hashed to 2^22, as feature hashing does, and its kernels are scoreline's own.
"fit": generated DNA of 100 letters, a motif at a position and one anywhere; ROC area to a proved 1 %, and test rows.
"disk": sequences of 1000 letters, converted block by block, and trained from the disk in a process whose memory, page cache
included, is limited to half of the letters where a control group can be made.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
import types
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from joblib import Parallel, delayed

from common import OUTPUT, SEED, interleave, standalone
from mapped import control_group, empty_cache
from scoreline import MeasureClassifier
from scoreline.io import convert_sequences
from scoreline.operators import StringOperator, as_operator, strongest_motifs
from scoreline.runtime.parallel import available_threads

NAME, TITLE = "sequences", "string features computed during the products"
HASHED = 22  # bits of the rival's columns
HASH = np.uint64(0x9E3779B97F4A7C15)
CASES = (("weighted_degree", 4), ("weighted_degree", 6), ("weighted_degree", 8), ("spectrum", 4), ("spectrum", 8))
CHILD = """
import json, os, sys, threading, time
if sys.argv[3]:
    open(sys.argv[3], "w").write(str(os.getpid()))
from scoreline import MeasureClassifier
from scoreline.io import open_sequences
from scoreline.operators import StringOperator, strongest_motifs
data, options = open_sequences(sys.argv[1]), json.loads(sys.argv[2])
few = open_sequences(sys.argv[1], rows=(0, 2000))
MeasureClassifier("roc_auc", alpha=1e-3).fit(StringOperator(few.X, **options), few.y)  # compiled
peak, done = 0, False
def watch():
    global peak
    while not done:
        anonymous = int(open("/proc/self/status").read().split("RssAnon:")[1].split()[0]) * 1024
        peak = max(peak, anonymous); time.sleep(0.05)
thread = threading.Thread(target=watch); thread.start()
begin = time.perf_counter()
X = StringOperator(data.X, **options)
opened = time.perf_counter() - begin
clf = MeasureClassifier("roc_auc", alpha=1e-3).fit(X, data.y)
seconds = time.perf_counter() - begin
done = True; thread.join()
motif = strongest_motifs(clf, 1)[0]
print(json.dumps({"seconds": seconds, "opened": opened, "passes": clf.n_passes_, "status": clf.status_, "anonymous": peak,
                  "gap": clf.gap_ / clf.objective_, "motif": motif.letters, "auc": clf.score(X, data.y)}))
"""


def dna(rng, n, length, anywhere=0.5):
    """Return random rows and labels: of the positives, a share has a motif anywhere and the others one at a position."""
    letters = rng.integers(0, 4, size=(n, length), dtype=np.uint8)
    letters = np.frombuffer(b"ACGT", np.uint8)[letters]
    y = rng.random(n) < 0.2
    for motif, rows, places in (
        (b"GATTACAG", y & (rng.random(n) < anywhere), None),
        (b"TATAAT", y & (rng.random(n) >= anywhere), length // 2),
    ):
        rows = np.flatnonzero(rows)
        first = rng.integers(0, length - len(motif), size=len(rows)) if places is None else np.full(len(rows), places)
        for k, letter in enumerate(motif):
            readable = rng.random(len(rows)) < 0.95
            letters[rows[readable], first[readable] + k] = letter
    return letters.view(f"S{length}").ravel(), y


def hashed(rows, kind, degree):
    """Return the features of rows as CSR with hashed columns: sums where two features meet, as feature hashing has them."""
    letters = StringOperator(rows, degree=1).sequences.letters.reshape(len(rows), -1)
    columns, values, length = [], [], letters.shape[1]
    for k in range(1 if kind == "weighted_degree" else degree, degree + 1):
        codes = np.zeros((len(rows), length - k + 1), dtype=np.uint64)
        for j in range(k):
            codes = codes * np.uint64(4) + letters[:, j : length - k + 1 + j]
        place = np.arange(length - k + 1, dtype=np.uint64) if kind == "weighted_degree" else np.uint64(0)
        key = (codes + np.uint64(k << 40) + place * np.uint64(1 << 20)) * HASH
        columns.append((key >> np.uint64(64 - HASHED)).astype(np.int32))
        value = np.sqrt(2.0 * (degree - k + 1) / (degree * (degree + 1))) if kind == "weighted_degree" else 1.0
        values.append(np.full(codes.shape, value))
    columns, values = np.concatenate(columns, axis=1), np.concatenate(values, axis=1)
    starts = np.arange(0, columns.size + 1, columns.shape[1], dtype=np.int32)
    X = sp.csr_array((values.ravel(), columns.ravel(), starts), shape=(len(rows), 1 << HASHED))
    X.sum_duplicates()
    return X


def products(report, rng, n):
    rows, _ = dna(rng, n, 100)
    for kind, degree in CASES:
        begin = time.perf_counter()
        operator = StringOperator(rows, degree=degree, kind=kind)
        made = time.perf_counter() - begin
        begin = time.perf_counter()
        X = hashed(rows, kind, degree)
        built = time.perf_counter() - begin
        matrix = as_operator(X)
        u = rng.standard_normal(n)
        w, v = rng.standard_normal(operator.shape[1]), rng.standard_normal(X.shape[1])
        found = interleave(
            {
                "Xw": lambda w=w, o=operator: o.matvec(w), "CSR Xw": lambda v=v, o=matrix: o.matvec(v),
                "X'u": lambda u=u, o=operator: o.rmatvec(u), "CSR X'u": lambda u=u, o=matrix: o.rmatvec(u),
            },
            repeats=3,
        )  # fmt: skip
        per = {name: 1e9 * timing.best / (100 * n) for name, timing in found.items()}
        size = (X.data.nbytes + X.indices.nbytes + X.indptr.nbytes) / (100 * n)
        name = f"{kind}, degree {degree}"
        own = operator.__sizeof__() / (100 * n)
        report.say(
            f"{name}: {operator.shape[1]:,} features, {own:.2f} bytes per letter, CSR {size:.1f}; "
            f"made in {made:.2f} s, CSR {built:.2f} s"
        )
        for product in ("Xw", "X'u"):
            note = f"{per[product]:.2f} and {per['CSR ' + product]:.2f} ns per letter"
            report.add(f"{name}: {product}, hashed CSR / ours", per["CSR " + product] / per[product], "x", "", note)


def fit(report, rng, n):
    rows, y = dna(rng, n + n // 10, 100)
    train, test = slice(0, n), slice(n, None)
    for kind, degree in (("weighted_degree", 6), ("weighted_degree", 8), ("spectrum", 8)):
        begin = time.perf_counter()
        X = StringOperator(rows[train], degree=degree, kind=kind)
        made = time.perf_counter() - begin
        begin = time.perf_counter()
        clf = MeasureClassifier("roc_auc", alpha=1e-2).fit(X, y[train])
        seconds = time.perf_counter() - begin
        score = clf.score(StringOperator(rows[test], **clf.string_features_), y[test])
        motifs = ", ".join(f"{m.letters}@{m.position}" for m in strongest_motifs(clf, 2))
        note = f"made in {made:.1f} s, {clf.n_passes_:.0f} passes, {clf.status_}, gap {clf.gap_ / clf.objective_:.2%}, "
        note += f"{1e9 * seconds / (clf.n_passes_ * 100 * n):.1f} ns per letter and pass, test ROC area {score:.4f}; {motifs}"
        report.add(f"{n:,} rows, {kind}, degree {degree}: fit", seconds, "s", "", note)


def block(k, rows, length):
    return dna(np.random.default_rng([SEED, k]), rows, length, anywhere=1.0)


def blocks(count, rows, length, at_once=16):
    with Parallel(available_threads()) as pool:
        for first in range(0, count, at_once):
            yield from pool(delayed(block)(k, rows, length) for k in range(first, min(first + at_once, count)))


def disk(report, letters, scratch):
    length, step = 1000, 50_000
    n = letters // length // step * step
    with tempfile.TemporaryDirectory(dir=scratch) as name:
        begin = time.perf_counter()
        folder = convert_sequences(blocks(n // step, step, length), Path(name, "dna"))
        size = sum(path.stat().st_size for path in folder.iterdir())
        report.say(f"{n:,} rows of {length} letters, {size / 1e9:.2f} GB, made in {time.perf_counter() - begin:.0f} s")
        procs, group = control_group(size // 2)
        empty_cache(folder)
        options = json.dumps({"kind": "spectrum", "degree": 8, "norm": "l2"})
        done = subprocess.run(
            [sys.executable, "-c", CHILD, str(folder), options, str(procs or "")],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        if group is not None:
            group.rmdir()
        if done.returncode:
            raise RuntimeError(f"the fit failed ({done.returncode}):\n{done.stderr[-2000:]}")
        found = json.loads(done.stdout.splitlines()[-1])
        note = f"{found['passes']:.0f} passes, {found['status']}, gap {found['gap']:.2%}, ROC area {found['auc']:.4f}, "
        note += f"strongest {found['motif']}; rows looked through in {found['opened']:.0f} s; limit "
        note += f"{size / 2e9:.2f} GB by control group" if group is not None else "by nothing, only measured"
        report.add("from the disk, spectrum of degree 8: fit", found["seconds"], "s", "", note)
        report.add("letters / anonymous memory", size / found["anonymous"], "x", ">= 2", "")


def main(report, n=1_000_000, letters=2 * 10**9, parts=("products", "fit", "disk"), scratch=None):
    rng = np.random.default_rng(SEED)
    if "products" in parts:
        products(report, rng, n // 10)
    if "fit" in parts:
        fit(report, rng, n)
    if "disk" in parts:
        disk(report, letters, scratch)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--disk-gb", type=float, default=2.0)
    parser.add_argument("--parts", default="products,fit,disk")
    parser.add_argument("--folder", default=None, help="where to put the set on disk")
    given = parser.parse_args()
    run = lambda report: main(report, given.rows, int(given.disk_gb * 1e9), given.parts.split(","), given.folder)
    standalone(types.SimpleNamespace(NAME=NAME, TITLE=TITLE, main=run), out=OUTPUT / "sequences.json")
