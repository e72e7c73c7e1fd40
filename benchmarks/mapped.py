"""Training from disk: the same bits as in memory, the time compared with it, and a set of four times a memory limit.

    python benchmarks/mapped.py [--folder scratch] [--limit-mb 512]

A synthetic set of four times the limit, dense and sparse, is converted block by block. Each solver trains it from arrays in
memory, from the folder while the page cache holds it, and from the folder in a control group (v1 or v2) whose memory, page
cache included, is limited: the page cache is emptied first, so the set has to come from the disk on every pass. Where no
control group can be made, only the peak of anonymous memory is measured.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import types
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from common import OUTPUT, standalone
from scoreline.io import convert
from scoreline.io.sources import Source

NAME, TITLE = "mapped", "training from disk compared with training from memory"
SOLVERS = {
    "smoothed": {"measure": "roc_auc", "solver": "smoothed", "alpha": 1e-2},
    "moments": {"measure": "roc_auc", "solver": "moments"},
    "spade": {
        "measure": "qmean",
        "solver": "spade",
        "random_state": 0,
        "solver_params": {"passes": 3},
        "threshold": "train",
    },
    "hybrid": {"measure": "accuracy", "solver": "hybrid", "alpha": 1e-3},
}
CHILD = """
import hashlib, json, os, sys, threading, time, warnings
group = sys.argv[3]
if group:
    open(group, "w").write(str(os.getpid()))
import numpy as np, scipy.sparse as sp
from scoreline import MeasureClassifier
from scoreline.io import make_imbalanced, open_mapped
warnings.simplefilter("ignore")
params, folder = json.loads(sys.argv[1]), sys.argv[2]
clf = MeasureClassifier(**params)
data = open_mapped(folder)
X, y = data.X, data.y
if sys.argv[4] == "memory":
    load = lambda name: np.load(f"{folder}/{name}.npy")
    sparse = os.path.exists(f"{folder}/indptr.npy")
    X = sp.csr_array((load("data"), load("indices"), load("indptr")), shape=X.shape) if sparse else load("X")
small = X[:3000] if sys.argv[4] == "memory" else X.on_rows(np.arange(3000))
if params["solver"] != "spade" or sys.argv[4] == "memory":
    clf.fit(small, y[:3000])  # compiled
peak, done = 0, False
def anonymous():
    return int(open("/proc/self/status").read().split("RssAnon:")[1].split()[0]) * 1024
def watch():
    global peak
    while not done:
        peak = max(peak, anonymous()); time.sleep(0.01)
seconds = []
for _ in range(int(sys.argv[5])):
    thread = threading.Thread(target=watch); done = False; thread.start()
    begin = time.perf_counter(); clf.fit(X, y); seconds.append(time.perf_counter() - begin)
    done = True; thread.join()
bits = hashlib.sha256(clf.coef_.tobytes() + clf.intercept_.tobytes()).hexdigest()
print(json.dumps({"seconds": min(seconds), "bits": bits, "anonymous": peak, "passes": clf.n_passes_}))
"""


def make(folder, size, storage):
    """Convert random rows of so many bytes, a block at a time; return the folder."""
    rng = np.random.default_rng(0)
    w = rng.standard_normal(256 if storage == "dense" else 5000)
    rows = size // (256 * 8) if storage == "dense" else size // (100 * 12)

    class Rows(Source):
        name = "random rows"

        def blocks(self):
            for start in range(0, rows, 20_000):
                n = min(20_000, rows - start)
                if storage == "dense":
                    X = rng.standard_normal((n, 256))
                else:
                    columns = np.sort(rng.integers(0, 5000, (n, 100)), axis=1)
                    X = sp.csr_array(
                        (rng.standard_normal(100 * n), columns.ravel(), np.arange(0, 100 * n + 1, 100)), shape=(n, 5000)
                    )
                    X.sum_duplicates()
                yield (
                    X,
                    np.where(
                        X @ w / np.sqrt(256.0 if storage == "dense" else 100.0) + rng.standard_normal(n) > 1.5, 1, -1
                    ),
                )

        def width(self):
            return len(w), 0

    return convert(Rows(), folder / storage)


def control_group(limit):
    """Return (file to write a process to, folder) of a control group with that limit, or (None, None)."""
    for parent, name in (
        (Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes"),
        (Path("/sys/fs/cgroup"), "memory.max"),
    ):
        group = parent / f"scoreline-{os.getpid()}"
        try:
            group.mkdir()
            (group / name).write_text(str(limit))
            return group / "cgroup.procs", group
        except OSError:
            if group.is_dir():
                group.rmdir()
    return None, None


def empty_cache(folder):
    """Let the page cache forget the files, so that what is read counts for the control group that reads it."""
    for path in folder.iterdir():
        with path.open("rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def run(params, folder, group, mode, repeats):
    done = subprocess.run(
        [sys.executable, "-c", CHILD, json.dumps(params), str(folder), str(group or ""), mode, str(repeats)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(f"{mode} failed ({done.returncode}):\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def main(report, scratch, limit):
    with tempfile.TemporaryDirectory(dir=scratch) as name:
        for storage in ("dense", "sparse"):
            begin = time.perf_counter()
            folder = make(Path(name), 4 * limit, storage)
            size = sum(path.stat().st_size for path in folder.iterdir())
            report.say(
                f"{storage}: {size / 1e6:.0f} MB converted in {time.perf_counter() - begin:.0f} s, limit {limit / 1e6:.0f} MB"
            )
            for solver, params in SOLVERS.items():
                memory, mapped = (run(params, folder, None, mode, 2) for mode in ("memory", "mapped"))
                same = memory["bits"] == mapped["bits"]
                note = (
                    f"{memory['seconds']:.2f} and {mapped['seconds']:.2f} s, {'same bits' if same else 'BITS DIFFER'}"
                )
                report.add(
                    f"{storage}, {solver}: from page cache / in memory",
                    mapped["seconds"] / memory["seconds"],
                    "x",
                    "<= 1.5",
                    note,
                )
                procs, group = control_group(limit)
                if group is not None:
                    empty_cache(folder)
                limited = run(params, folder, procs, "limited", 1)
                if group is not None:
                    group.rmdir()
                same = memory["bits"] == limited["bits"]
                note = f"{limited['seconds']:.1f} s, {limited['passes']:.0f} passes, {'same bits' if same else 'BITS DIFFER'}"
                note += f"; limit by {'control group' if group is not None else 'nothing: only measured'}"
                report.add(
                    f"{storage}, {solver}: set / anonymous memory", size / limited["anonymous"], "x", ">= 4", note
                )
            shutil.rmtree(folder)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", default=None, help="where to put the set, four times the limit")
    parser.add_argument("--limit-mb", type=int, default=512)
    options = parser.parse_args()
    own = lambda report: main(report, options.folder, options.limit_mb << 20)
    standalone(types.SimpleNamespace(NAME=NAME, TITLE=TITLE, main=own), out=OUTPUT / "mapped.json")
