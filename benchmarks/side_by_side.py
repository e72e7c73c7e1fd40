"""Rivals side by side: the same splits, scaling and choice of alpha; final measure, and time to the same test measure.

Every data set, split and rival is a process of its own with one thread; what is done is kept in OUT.jsonl, so that a run
which was killed goes on, with the same rows, limit and measures. Rivals that are not installed are skipped by name, as are
data sets that are missing. The protocol is in rivals/protocol.py, the tables are in rivals/summary.py, the adapters in the
other files of rivals/.

    SCORELINE_DATA=folder python benchmarks/side_by_side.py [--sets a9a,letter] [--measures roc_auc] [--rivals scoreline,glum]
        [--splits 3] [--rows 200000] [--limit 120] [--jobs 1] [--out bench-output/rivals]
"""

import argparse
import json
import multiprocessing
import os
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # studies/ is not installed

from common import OUTPUT, header
from rivals.base import MEASURES
from rivals.protocol import Rows, split_of, work
from rivals.registry import all_rivals
from rivals.summary import markdown
from studies.datasets import Datasets

SETS = (
    "a9a ijcnn1 covtype mnist letter poker shuttle adult-raw kddcup99 kdd99-http cover-4v2 census-income campaign hiva sylva "
    "skin cod-rna reuters-mfx sector farm-ads basehock"
).split()  # all that have more than 100,000 non-zeros

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


def job(files, shape, name, measures, limit, pipe):
    """Do one job in its own process: read the rows, tell findings through the pipe, then None."""
    import numpy as np
    from scipy.sparse import csr_matrix

    try:
        with np.load(files) as f:
            X, X_test = (csr_matrix((f[f"data{k}"], f[f"indices{k}"], f[f"indptr{k}"]), shape=shape[k]) for k in "01")
            rows = Rows(X, f["y0"], X_test, f["y1"])
        work(rows, all_rivals()[name], measures, limit, pipe.send)
    except Exception as error:
        pipe.send({"kind": "failed", "why": f"{type(error).__name__}: {error}"[:300]})
    pipe.send(None)


def run_job(files, shape, name, measures, limit):
    """Return the findings of one job, whatever it managed within its limit (preparing rows may take as long again)."""
    context = multiprocessing.get_context("spawn")
    mine, its = context.Pipe(duplex=False)
    process = context.Process(target=job, args=(files, shape, name, measures, limit, its), daemon=True)
    process.start()
    its.close()
    findings, end = [], time.monotonic() + 2.0 * limit
    try:
        while True:
            if not mine.poll(max(0.0, end - time.monotonic())):
                findings.append({"kind": "failed", "why": f"stopped after {2 * limit:g} s"})
                break
            finding = mine.recv()
            if finding is None:
                break
            if finding["kind"] == "tuned":  # from here on, fits on all rows
                end = time.monotonic() + limit
            findings.append(finding)
    except EOFError:
        findings.append({"kind": "failed", "why": "its process died"})
    process.kill()
    process.join()
    return findings


def save(rows, path):
    import numpy as np

    parts = {}
    for k, X, y in (("0", rows.X, rows.y), ("1", rows.X_test, rows.y_test)):
        parts |= {f"data{k}": X.data, f"indices{k}": X.indices, f"indptr{k}": X.indptr, f"y{k}": y}
    np.savez(path, **parts)
    return {"0": rows.X.shape, "1": rows.X_test.shape}


def done_before(path):
    """Return the protocol and the entries of an earlier run, without a last line that was cut off."""
    lines = []
    for line in path.read_text().splitlines() if path.exists() else ():
        try:
            lines.append(json.loads(line))
        except ValueError:
            break
    return next((line for line in lines if "protocol" in line), None), [line for line in lines if "set" in line]


def begun(log, protocol):
    """Return the entries of a run that goes on; end the program if it was of another protocol."""
    found, entries = done_before(log)
    if entries and found != protocol:
        sys.exit(f"{log} is of another run ({found}), this is {protocol}; give another --out, or remove it")
    log.write_text("".join(json.dumps(line) + "\n" for line in [protocol, *entries]))
    return entries


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--measures", default=",".join(MEASURES))
    parser.add_argument("--rivals", default="", help="names or beginnings of names; all by default")
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument(
        "--limit", type=float, default=120.0, help="seconds of a job: choosing alpha, and again all efforts"
    )
    parser.add_argument("--jobs", type=int, default=1, help="more than 1 disturbs the times")
    parser.add_argument("--out", default=str(OUTPUT / "rivals"))
    options = parser.parse_args()
    for name in THREADS:
        os.environ.setdefault(name, "1")  # for the processes of the jobs: some rivals know one thread only
    data, measures = Datasets(), options.measures.split(",")
    sets = [name for name in options.sets.split(",") if data.has(name)]
    absent = [name for name in options.sets.split(",") if name not in sets]
    if absent:
        print(
            f"no data for {', '.join(absent)}: set SCORELINE_DATA to a folder with NAME.svm or NAME.svm.xz (docs/datasets.md)"
        )
    requested = tuple(filter(None, options.rivals.split(",")))
    chosen = {n: r for n, r in all_rivals().items() if not requested or n.startswith(requested)}
    skipped = {name: why for name, rival in chosen.items() if (why := rival.missing()) is not None}
    for name, why in skipped.items():
        print(f"skipped {name}: {why}")
    there = {name: rival for name, rival in chosen.items() if name not in skipped}
    if not sets or not there:
        sys.exit("nothing to do")
    out = Path(options.out)
    out.parent.mkdir(parents=True, exist_ok=True)
    log = out.with_suffix(".jsonl")
    protocol = {"protocol": 1, "rows": options.rows, "limit": options.limit, "measures": measures}
    entries = begun(log, protocol)
    known = {(e["set"], e["split"], e["rival"]) for e in entries}
    head = header() | {
        "rivals": "; ".join(sorted({r.version() for r in there.values()})),
        "rows at most": str(options.rows),
    }
    begin, tasks = time.perf_counter(), [(n, s) for s in range(options.splits) for n in sets]
    for k, (name, split) in enumerate(tasks):
        left = [r for r in there.values() if (name, split, r.name) not in known]
        if not left:
            continue
        with tempfile.TemporaryDirectory(prefix="rivals-") as folder:
            rows = split_of(*data.raw(name), split, options.rows)
            files = f"{folder}/rows.npz"
            shape = save(rows, files)

            def one(rival, rows=rows, files=files, shape=shape, name=name, split=split):
                wanted = [m for m in rival.measures if m in measures]
                entry = {
                    "set": name,
                    "split": split,
                    "rival": rival.name,
                    "non_zeros": int(rows.X.nnz),
                    "rows": len(rows.y),
                }
                why = rival.refuses(*rows.X.shape)
                if not wanted or why:
                    return entry | {"findings": [{"kind": "failed", "why": why}] if why else []}
                return entry | {"findings": run_job(files, shape, rival.name, wanted, options.limit)}

            with ThreadPoolExecutor(options.jobs) as pool:
                for entry in pool.map(one, left):
                    entries.append(entry)
                    with log.open("a") as file:
                        file.write(json.dumps(entry) + "\n")
                    failed = [f["why"] for f in entry["findings"] if f["kind"] == "failed"]
                    note = f" ({failed[0]})" if failed else ""
                    took = time.perf_counter() - begin
                    print(
                        f"{took:6.0f} s, {k + 1} of {len(tasks)}: {name}, split {split}, {entry['rival']}{note}",
                        flush=True,
                    )
    names = [n for n in there if any(e["rival"] == n for e in entries)]
    text = markdown(head, [e for e in entries if e["rival"] in names], measures, skipped)
    out.with_suffix(".md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
