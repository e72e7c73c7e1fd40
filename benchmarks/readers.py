"""Readers of files compared with scikit-learn's: seconds, megabytes per second, memory beyond the arrays returned.

    SCORELINE_DATA=folder python benchmarks/readers.py [--sets covtype,mnist]

The files are unpacked to plain LIBSVM text first, in a temporary folder. Both sides read them from the page cache; ours must
give the same arrays, bit for bit. Peak memory is that of a fresh process, beyond what it has after its imports.
"""

import argparse
import lzma
import shutil
import tempfile
import time
import types
from pathlib import Path

import numpy as np
from sklearn.datasets import load_svmlight_file

from common import OUTPUT, child, standalone
from scoreline.io import read_libsvm
from smoothing_data import VARIABLE, path_of

NAME, TITLE = "readers", "read_libsvm compared with scikit-learn's load_svmlight_file"
PEAK = """
import json, resource, sys
from scoreline.io import read_libsvm
from pathlib import Path
def anonymous():
    return next(int(l.split()[1]) for l in Path("/proc/self/status").read_text().splitlines() if l.startswith("RssAnon")) * 1024
tiny = Path(sys.argv[2]); tiny.write_text("1 1:1\\n-1 2:0.5\\n"); read_libsvm(tiny)
import threading, time
before, peak, done = anonymous(), 0, False
def watch():
    global peak
    while not done:
        peak = max(peak, anonymous()); time.sleep(0.001)
thread = threading.Thread(target=watch); thread.start()
X, y = read_libsvm(sys.argv[1]); peak = max(peak, anonymous()); done = True; thread.join()
arrays = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes + y.nbytes
print(json.dumps({"peak": peak - before, "arrays": arrays}))
"""


def plain(name, folder):
    """Return the path of the set as plain text, unpacked into the folder if need be; None where it is missing."""
    source = path_of(name)
    if source is None or source.suffix != ".xz":
        return source
    target = Path(folder, source.stem)
    with lzma.open(source) as packed, target.open("wb") as out:
        shutil.copyfileobj(packed, out)
    return target


def best(call, repeats):
    """Return (least seconds, last result)."""
    seconds = []
    for _ in range(repeats):
        begin = time.perf_counter()
        result = call()
        seconds.append(time.perf_counter() - begin)
    return min(seconds), result


def main(report, sets):
    with tempfile.TemporaryDirectory() as folder:
        for name in sets:
            path = plain(name, folder)
            if path is None:
                print(f"  {name} is MISSING: neither {name}.svm nor {name}.svm.xz in the folder that {VARIABLE} names")
                continue
            size = path.stat().st_size / 1e6
            read_libsvm(path)  # compiled, and the page cache filled
            own, (X, y) = best(lambda path=path: read_libsvm(path), 5)
            other, (expected, labels) = best(lambda path=path: load_svmlight_file(str(path)), 2)
            pairs = ((X.data, expected.data), (X.indices, expected.indices), (X.indptr, expected.indptr), (y, labels))
            same = all(np.array_equal(a, b) for a, b in pairs)
            note = f"{size:.0f} MB: {size / own:.0f} and {size / other:.0f} MB/s; {'same arrays' if same else 'ARRAYS DIFFER'}"
            report.add(f"{name}: scikit-learn / ours", other / own, "x", ">= 15", note)
            memory = child(PEAK, str(path), str(Path(folder, "tiny.svm")))
            note = f"arrays of {memory['arrays'] / 1e6:.0f} MB"
            report.add(f"{name}: peak memory / arrays", memory["peak"] / memory["arrays"], "x", "<= 1.3", note)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", type=lambda text: text.split(","), default=["covtype", "mnist"])
    options = parser.parse_args()
    run = lambda report: main(report, options.sets)
    standalone(types.SimpleNamespace(NAME=NAME, TITLE=TITLE, main=run), out=OUTPUT / "readers.json")
