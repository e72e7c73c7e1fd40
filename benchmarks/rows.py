"""Training row by row (spade, stamp) compared with batch methods and 1PMB: test measure against seconds; rows per second.

    SCORELINE_DATA=folder python benchmarks/rows.py [--parts table,speed,figures] [--sets ijcnn1,covtype] [--measures f1,qmean]
        [--methods stamp,plugin] [--alphas 1e-4,1e-6] [--passes 25] [--cap 120] [--raw] [--rows 0] [--jobs 1] [--resume]
        [--out bench-output/rows.json] [--from FILE | --join FILE ...] [--to folder]

table: every set, measure and method (rivals_rows.py says what they are). Tested is on NAME.t, else on a stratified 30 % of the
rows. All methods get the same features, each divided by its largest magnitude among the training rows before the clock starts,
dense above a density of 0.3 and CSR below, so that none suffers from raw units (--raw leaves them as they are). Each chooses
alpha, and 1PMB its step, too, by the measure on a fifth of the training rows, off the clock: a favour to 1PMB, which could not
do without. Then it trains on all training rows with the clock, --cap seconds at most (scikit-learn: 1000 iterations), with the
threads of the process and everything compiled; a short fit three times, the least time of every point counting. Every point of
its curve gets the threshold that is best on the training scores, off the clock, and the measure on the test rows counts.

A row method is "within" if after the last pass it is at most 0.01 below the best end of a batch method. Times are those until a
method first is where that begins. A method that shows itself at its end alone can only be as fast as its whole fit. Steps of
the row methods depend on the number of passes: the point after pass 3 is one on the way to 25, not what passes=3 gives. The
best batch method is that on the test rows, of up to five: that favours the batch side. There is one split: differences below
the noise of the test rows mean nothing.

speed: rows per second with one thread, five passes over CSR, beside SGDClassifier with and without averaging. figures
(rows_figures.py): test measure against seconds, from the curves.

Curves go to the file beside --out that ends in -curves.json after every run, and --resume keeps what is there; the tables to
-table.md. --jobs trains so many sets at a time in processes of their own; --join makes one of the curve files of several
processes, --from tables and figures of one without running anything. Full run: benchmarks/README.md.
"""

import argparse
import json
import subprocess
import sys
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import issparse
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import MaxAbsScaler
from threadpoolctl import threadpool_limits

from common import OUTPUT, SEED, SPIN, Neighbours, header, interleave, standalone
from default_risk import load
from rivals_rows import METHODS, SPADE, Run, Settings, methods_for, missing
from rows_figures import MEASURES, SETS, WITHIN, compare, draw_all, end_lines, grouped, table_lines
from scoreline import MeasureClassifier
from scoreline.measures import best_threshold, get_measure
from smoothing_data import VARIABLE, narrow
from studies.mini_batch import ETAS

NAME, TITLE = "rows", "row by row compared with batch methods: test measure against seconds; rows per second"
PARTS = ("table", "speed", "figures")
SPEED_SETS, SPEED_PASSES, SPEED_ALPHA = ("a9a", "mnist", "census-income"), 5, 1e-6
DENSE = 0.3
REPEATS, SHORT = 3, 2.0  # the fit with the clock is done so often, or until this many seconds have passed


class Data(NamedTuple):
    """Training and test rows; labels 1 and 0."""

    X: Any
    y: np.ndarray
    X_test: Any
    y_test: np.ndarray


def prepared(name, raw=False, rows=0, dense=True):
    """Return the data set as all methods get it, or None if there is no such file."""
    found = load(name)
    if found is None:
        return None
    X, y, X_test, y_test = found
    if X_test is None:
        X, X_test, y, y_test = train_test_split(X, y, test_size=0.3, stratify=y, random_state=SEED)
    if 0 < rows < len(y):
        X, _, y, _ = train_test_split(X, y, train_size=rows, stratify=y, random_state=SEED)
    if not raw:
        scaler = MaxAbsScaler().fit(X)
        X, X_test = scaler.transform(X), scaler.transform(X_test)
    if dense and X.nnz > DENSE * X.shape[0] * X.shape[1]:
        return Data(X.toarray(), y, X_test.toarray(), y_test)
    return Data(narrow(X), y, narrow(X_test), y_test)


def reached(measure, w, data):
    """Return the measure on the test rows with the threshold that is best on the training rows."""
    p = data.X.shape[1]  # a risk without an intercept leaves no more coefficients than that
    z, z_test = (X @ w[:p] + w[p:].sum() for X in (data.X, data.X_test))
    return float(get_measure(measure).value(data.y_test, z_test - best_threshold(data.y, z, measure).threshold))


def chosen(method, measure, data, settings, alphas):
    """Return the settings whose model is best on a fifth of the training rows, and the value of each."""
    candidates = [settings._replace(alpha=a, eta=e) for a in alphas for e in (ETAS if method == "1pmb" else (1.0,))]
    if len(candidates) == 1:
        return candidates[0], {}
    X, X_out, y, y_out = train_test_split(data.X, data.y, test_size=0.2, stratify=data.y, random_state=SEED)
    parts = Data(*((narrow(X), y, narrow(X_out), y_out) if issparse(X) else (X, y, X_out, y_out)))
    values = {c: reached(measure, METHODS[method](parts.X, y, measure, c).points[-1][1], parts) for c in candidates}
    words = {f"alpha {c.alpha:g}" + (f", eta {c.eta:g}" if method == "1pmb" else ""): v for c, v in values.items()}
    return max(values, key=values.get), words


def few_rows(data):
    """Return some rows of either class, to compile with."""
    rows = np.sort(np.concatenate([np.flatnonzero(data.y == side)[:150] for side in (0, 1)]))
    return data.X[rows], data.y[rows]


def timed(method, measure, data, settings):
    """Return the run with the clock, the least seconds of every point over repeats, and how busy others kept the machine."""
    runs, begin, neighbours = [], time.perf_counter(), Neighbours()
    while not runs or (len(runs) < REPEATS and time.perf_counter() - begin < SHORT):
        time.sleep(SPIN)
        runs.append(METHODS[method](data.X, data.y, measure, settings))
    busy = neighbours.cores()
    same = [run for run in runs if len(run.points) == len(runs[0].points)]  # the same coefficients, in other time
    points = [(min(run.points[k][0] for run in same), w) for k, (_, w) in enumerate(runs[0].points)]
    return Run(points, runs[0].status), busy


def one_run(name, method, measure, data, options):
    """Return what the JSON holds of one method on one set for one measure."""
    settings = Settings(options.alphas[0], options.passes, options.cap, SEED)
    METHODS[method](*few_rows(data), measure, settings._replace(passes=1, cap=5.0))
    begin = time.perf_counter()
    settings, validation = chosen(method, measure, data, settings, options.alphas)
    choice = time.perf_counter() - begin
    run, busy = timed(method, measure, data, settings)
    return {
        "set": name, "measure": measure, "method": method, "alpha": settings.alpha, "eta": settings.eta,
        "curve": [(seconds, reached(measure, w, data)) for seconds, w in run.points], "status": run.status,
        "choice_seconds": choice, "validation": validation, "others_busy": busy, "rows": len(data.y),
        "features": data.X.shape[1], "positives": int(data.y.sum()), "dense": not issparse(data.X),
        "options": settings_of(options),
    }  # fmt: skip


def settings_of(options):
    """Return the options that a curve depends on: one made with others is not kept by --resume."""
    return {key: getattr(options, key) for key in ("alphas", "passes", "cap", "raw", "rows")}


class Store:
    """The curve file: written after every run."""

    def __init__(self, path, earlier=()):
        self.path, self.heads, self.runs, self.speed = path, [], {}, {}
        for file in earlier:
            found = json.loads(Path(file).read_text())
            self.heads += found["heads"]
            self.runs |= {key: run for key, run in found["runs"].items() if "failed" not in run or key not in self.runs}
            self.speed |= found["speed"]

    def has(self, key, options):
        run = self.runs.get(key)
        return run is not None and "failed" not in run and run["options"] == settings_of(options)

    def write(self):
        self.path.parent.mkdir(parents=True, exist_ok=True)
        held = {"heads": self.heads, "runs": self.runs, "speed": self.speed}
        partial = self.path.with_suffix(".partial")
        partial.write_text(json.dumps(held, indent=1) + "\n")
        partial.replace(self.path)  # at once, so that an interruption leaves a whole file


def train_all(report, store, options):
    """Train what the store does not have yet."""
    absent = missing()
    for method in sorted(set(absent) & set(options.methods)):
        report.say(f"{method} is left out: this version of the package has no solver of that name")
    for name in options.sets:
        wanted = [(measure, method) for measure in options.measures for method in methods_for(measure)]
        wanted = [(m, method) for m, method in wanted if method in options.methods and method not in absent]
        wanted = [(m, method) for m, method in wanted if not store.has(f"{name} {m} {method}", options)]
        if not wanted:
            continue
        data = prepared(name, options.raw, options.rows)
        if data is None:
            report.say(f"{name} is MISSING: neither {name}.svm nor {name}.svm.xz in the folder that {VARIABLE} names")
            continue
        for measure, method in wanted:
            key = f"{name} {measure} {method}"
            try:
                run = one_run(name, method, measure, data, options)
                seconds, value = run["curve"][-1]
                words = f"{value:.4f} after {seconds:.3g} s, alpha {run['alpha']:g}, {run['status']}"
            except Exception as error:  # the others still run, and --resume tries again
                run = {"set": name, "measure": measure, "method": method, "failed": repr(error)}
                words = f"FAILED: {error!r}"
            print(f"  {key}: {words}", flush=True)
            store.runs[key] = run
            store.write()


def summarise(report, store, options):
    """Add every pair of set and measure, and the shares of them, to the report; write the tables."""
    for run in store.runs.values():
        if "failed" in run:
            report.say(f"{run['set']} {run['measure']} {run['method']} FAILED: {run['failed']}")
    if len({json.dumps(run["options"], sort_keys=True) for run in store.runs.values() if "options" in run}) > 1:
        report.say("the curves were made with more than one choice of options")
    groups = grouped(store.runs)
    pairs = [row for row in (compare(runs, options.passes) for runs in groups.values()) if row is not None]
    for r in pairs:
        at = "never" if r["at"] is None else f"{r['at']:.3g} s{'' if r['stays'] else ' (not for good)'}"
        note = f"{r['mine']} {r['end']:.4f}, {r['batch']} {r['best']:.4f}; to {r['best'] - WITHIN:.4f} in {at}, "
        note += f"{r['other']} in {r['other_at']:.3g} s; {r['verdict']}"
        report.add(f"{r['set']} {r['measure']}: {r['mine']} - best batch", r["end"] - r["best"], "", "", note)
    if pairs:
        inside = [r for r in pairs if r["within"]]
        note = f"{len(inside)} of {len(pairs)}; not: {listed([r for r in pairs if not r['within']])}"
        report.add(f"share within {WITHIN:g} of the best batch", len(inside) / len(pairs), "", ">= 0.8", note)
        slower = [r for r in inside if not r["fastest"]]
        share = (len(inside) - len(slower)) / len(inside) if inside else None
        report.add("share of these where ours is fastest", share, "", "", f"not: {listed(slower)}")
        path = store.path.with_name(store.path.name.replace("-curves.json", "-table.md"))
        path.write_text("\n".join([*table_lines(pairs), "", *end_lines(groups)]) + "\n")
        report.say(f"tables: {path}")


def listed(rows):
    return ", ".join(f"{r['set']} {r['measure']}" for r in rows) or "none"


def speed(report, store, options):
    """Measure rows per second with one thread, taking turns."""
    common = {"alpha": SPEED_ALPHA, "random_state": SEED}
    for name in options.speed_sets:
        data = prepared(name, options.raw, dense=False)
        if data is None:
            report.say(f"{name} is MISSING: neither {name}.svm nor {name}.svm.xz in the folder that {VARIABLE} names")
            continue
        X, y = data.X, data.y
        params = {"solver_params": {"passes": SPEED_PASSES}, "threshold": "none", "n_jobs": 1} | common
        models = {f"spade {m}": MeasureClassifier(m, solver="spade", **params) for m in SPADE}
        models["stamp f1"] = MeasureClassifier("f1", solver="stamp", **params)
        for label, average in (("SGD averaged", True), ("SGD", False)):
            models[label] = SGDClassifier("hinge", tol=None, max_iter=SPEED_PASSES, average=average, **common)
        with threadpool_limits(1):
            taken = interleave({label: (lambda m: lambda: m.fit(X, y))(m) for label, m in models.items()}, 5)
        store.speed[name] = {
            "rows": len(y), "non-zeros per row": X.nnz / len(y), "rows per second": {
                label: SPEED_PASSES * len(y) / seconds.best for label, seconds in taken.items()
            },
        }  # fmt: skip
        store.write()


def report_speed(report, store):
    for name, found in store.speed.items():
        rates = found["rows per second"]
        report.add(
            f"{name}: SGD averaged", rates["SGD averaged"] / 1e6, "M/s", "", f"not averaged {rates['SGD'] / 1e6:.3g}"
        )
        for label in (label for label in rates if not label.startswith("SGD")):
            note = f"{rates[label] / 1e6:.3g} million rows per second; / SGD not averaged {rates[label] / rates['SGD']:.2f}"
            report.add(f"{name}: {label} / SGD averaged", rates[label] / rates["SGD averaged"], "x", ">= 1", note)


def in_processes(options):
    """Train every set in a process of its own, so many at a time; return the curve files."""

    def own(name):
        out = options.out.with_name(f"{options.out.stem}-{name}.json")
        command = [sys.executable, __file__, *forwarded(options), "--sets", name, "--out", str(out)]
        subprocess.run(command, check=False)  # what failed is in its output, and missing from its file
        return curves_file(out)

    with ThreadPoolExecutor(options.jobs) as pool:
        return [path for path in pool.map(own, options.sets) if path.exists()]


def forwarded(options):
    """Return the options that a process for one set gets."""
    words = ["--parts", "table", "--measures", ",".join(options.measures), "--methods", ",".join(options.methods)]
    words += [
        "--alphas",
        ",".join(map(str, options.alphas)),
        "--passes",
        str(options.passes),
        "--cap",
        str(options.cap),
    ]
    return words + ["--rows", str(options.rows)] + ["--raw"] * options.raw + ["--resume"] * options.resume


def curves_file(out):
    return out.with_name(f"{out.stem}-curves.json")


def main(report, options):
    warnings.simplefilter("ignore")  # a fit that ends at the cap says so in its status
    path = curves_file(options.out)
    given = options.join or ([options.source] if options.source else [])
    running = not given
    earlier = given or ([path] if options.resume and path.exists() else [])
    if running and options.jobs > 1 and "table" in options.parts:
        earlier += in_processes(options)
    store = Store(path, earlier)
    if running:
        store.heads.append(header())
        if "table" in options.parts and options.jobs == 1:
            train_all(report, store, options)
        if "speed" in options.parts:
            speed(report, store, options)
    if running or options.join:
        store.write()
    if "table" in options.parts:
        summarise(report, store, options)
    if "speed" in options.parts:
        report_speed(report, store)
    if "figures" in options.parts:
        for figure in draw_all(store.runs, options.to):
            report.say(f"figure: {figure}")


def parsed(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = lambda text: text.split(",")
    parser.add_argument("--parts", type=names, default=["table", "speed"])
    parser.add_argument("--sets", type=names, default=list(SETS))
    parser.add_argument("--speed-sets", type=names, default=list(SPEED_SETS))
    parser.add_argument("--measures", type=names, default=list(MEASURES))
    parser.add_argument("--methods", type=names, default=list(METHODS))
    parser.add_argument("--alphas", type=lambda text: [float(a) for a in text.split(",")], default=[1e-4, 1e-6])
    parser.add_argument("--passes", type=int, default=25, help="passes of the row methods and of 1PMB")
    parser.add_argument("--cap", type=float, default=120.0, help="seconds a fit at most")
    parser.add_argument("--raw", action="store_true", help="features as they are; 1PMB is not made for that")
    parser.add_argument("--rows", type=int, default=0, help="training rows at most, 0 for all")
    parser.add_argument(
        "--jobs", type=int, default=1, help="sets trained at a time; more than one disturb each other's times"
    )
    parser.add_argument("--resume", action="store_true", help="keep the curves that the file has")
    parser.add_argument("--out", type=Path, default=OUTPUT / "rows.json")
    parser.add_argument("--from", dest="source", type=Path, help="curve file: tables and figures without running")
    parser.add_argument("--join", type=Path, nargs="+", help="curve files to make one of, without running")
    parser.add_argument("--to", type=Path, default=OUTPUT, help="folder of the figures")
    options = parser.parse_args(arguments)
    for requested, known in ((options.parts, PARTS), (options.measures, MEASURES), (options.methods, METHODS)):
        if unknown := sorted(set(requested) - set(known)):
            parser.error(f"unknown {unknown}; there are {list(known)}")
    return options


if __name__ == "__main__":
    requested = parsed()
    standalone(SimpleNamespace(NAME=NAME, TITLE=TITLE, main=lambda report: main(report, requested)), out=requested.out)
