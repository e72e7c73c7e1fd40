"""Test values and seconds of linear, additive and pair features against LightGBM, XGBoost and EBM, on the same splits.

    SCORELINE_DATA=folder python benchmarks/additive.py [--sets magic04,poker] [--splits 5] [--rows 20000] [--jobs 16]
        [--what ours,trees,ebm] [--limit 540] [--out FILE.jsonl]
    python benchmarks/additive.py --join FILE.jsonl [FILE.jsonl ...]
    python benchmarks/additive.py --passes
    python benchmarks/additive.py --bases [--sets ...] [--splits 2]
    python benchmarks/additive.py --large [--threads 2] [--rows 1000000] [--columns 50]

For every data set: at most ROWS rows, stratified splits with 30 % test rows. A cell is what is trained on a split:

- ours: "linear" is MeasureClassifierCV with scaling="standard", "auto" is features="auto", both with three folds.
  "additive" and "pairs" are fits on all training rows with the alphas that the folds of "auto" found best for them.
- trees: LightGBM and XGBoost stop early on a fifth of the training rows (at most 2000 rounds, learning rate 0.05, otherwise
  their defaults).
- ebm: ExplainableBoostingClassifier of interpret-core with its defaults.
- f1, average_precision, min_tpr_tnr: scoreline is trained for the measure with features="auto", and LightGBM, stopped
  early as before, gets the threshold that is best on the rows it was stopped on.

Cells are worked on split by split in the order of `--what`, those of EBM last, by `--jobs` processes of one thread each.
After `--limit` seconds all of them are stopped. Each finished cell adds its lines to the output file, which is read again so
that a run can be continued. Rivals that are not installed are left out. `cpu` are the seconds of the processor, which other
work on the machine changes less than `seconds`.

`--bases` compares the basis of numeric columns with all directions of it, and with steps without the linear function. Each
has its own search over alpha.

`--large` is the whole path of alphas of an additive model of a table that is made, its bins included, against 500 rounds of
LightGBM, on the same threads. Run it with `taskset` on as many cores.
"""

import argparse
import json
import lzma
import multiprocessing
import os
import time
import traceback
import warnings
from pathlib import Path

import numpy as np

# In the order in which they are trained: the ones that take longest first, so that no process is left alone at the end.
SETS = (
    "census-income adult-raw magic04 ijcnn1 page-blocks0 covtype sylva satimage cod-rna campaign skin svmguide3 annthyroid "
    "shuttle abalone19 letter poker cover-4v2 yeast4 svmguide1 diabetes german.numer"
).split()
MEASURES = ("f1", "average_precision", "min_tpr_tnr")
BASES_SETS = ("diabetes", "german.numer", "page-blocks0", "annthyroid", "satimage", "magic04")
PASSES_REPEATS = 40
WHAT = ("ours", "trees", "ebm", *MEASURES)
ROUNDS, PATIENCE, RATE = 2000, 50, 0.05
METHODS = ("linear", "additive", "pairs", "auto", "lightgbm", "xgboost", "ebm")
LARGE_ROUNDS, LARGE_ALPHAS = 500, 11  # as many alphas as the widest path of additive features, from 10 to 1e-4


def load(name, rows):
    from sklearn.datasets import load_svmlight_file
    from sklearn.model_selection import train_test_split

    folder = Path(os.environ["SCORELINE_DATA"])
    packed = folder / f"{name}.svm.xz"
    with lzma.open(packed) if packed.exists() else open(folder / f"{name}.svm", "rb") as file:
        X, y = load_svmlight_file(file)
    y = (y > 0).astype(int)
    if len(y) > rows:
        X, _, y, _ = train_test_split(X, y, train_size=rows, stratify=y, random_state=0)
    return X.toarray(), y


def gap_share(clf):
    """Return the duality gap relative to what tol is relative to; J(0) of the ROC area risk is 1."""
    return clf.gap_ / max(clf.lower_bound_, 1e-3)


def proof(clf):
    """Return what is proved of a fit, as facts."""
    return {"gap": gap_share(clf), "lower_bound": clf.lower_bound_}


class Stopwatch:
    """Seconds since it was made: `seconds` on the clock, `cpu` of the processor."""

    def __init__(self):
        self.start = time.perf_counter(), time.process_time()

    def __call__(self):
        return {
            "seconds": round(time.perf_counter() - self.start[0], 3),
            "cpu": round(time.process_time() - self.start[1], 3),
        }


def ours(X, y, X_test):
    """Yield (method, scores of the test rows, facts)."""
    from scoreline import MeasureClassifier, MeasureClassifierCV

    watch = Stopwatch()
    clf = MeasureClassifierCV("roc_auc", scaling="standard", cv=3).fit(X, y)
    facts = {**watch(), "alpha": clf.alpha_, **proof(clf)}
    yield "linear", clf.decision_function(X_test), facts
    watch = Stopwatch()
    auto = MeasureClassifierCV("roc_auc", features="auto", cv=3).fit(X, y)
    facts = {**watch(), "alpha": auto.alpha_, "features": auto.features_, **proof(auto)}
    yield "auto", auto.decision_function(X_test), facts
    table = auto.cv_results_
    for kind in ("additive", "pairs"):
        watch = Stopwatch()
        own = np.flatnonzero(table["features"] == kind)
        alpha = float(table["alpha"][own[np.argmax(table["mean_test_score"][own])]])
        clf = MeasureClassifier("roc_auc", features=kind, alpha=alpha).fit(X, y)
        facts = {**watch(), "alpha": alpha, **proof(clf), "pairs": len(clf.feature_map_.pairs)}
        yield kind, clf.decision_function(X_test), facts


def lightgbm_model(X, y):
    """Return LightGBM stopped early, and the rows it was stopped on with their labels."""
    import lightgbm
    from sklearn.model_selection import train_test_split

    X_fit, X_stop, y_fit, y_stop = train_test_split(X, y, test_size=0.2, stratify=y, random_state=0)
    model = lightgbm.LGBMClassifier(n_estimators=ROUNDS, learning_rate=RATE, verbose=-1, n_jobs=1)
    stop = lightgbm.early_stopping(PATIENCE, verbose=False)
    model.fit(X_fit, y_fit, eval_set=[(X_stop, y_stop)], eval_metric="auc", callbacks=[stop])
    return model, X_stop, y_stop


def trees(X, y, X_test):
    """Yield the same for the boosted trees that are installed."""
    from sklearn.model_selection import train_test_split

    try:
        watch = Stopwatch()
        model = lightgbm_model(X, y)[0]
        facts = {**watch(), "rounds": model.best_iteration_}
        yield "lightgbm", model.predict_proba(X_test)[:, 1], facts
    except ImportError:
        pass
    try:
        import xgboost

        X_fit, X_stop, y_fit, y_stop = train_test_split(X, y, test_size=0.2, stratify=y, random_state=0)
        watch = Stopwatch()
        model = xgboost.XGBClassifier(
            n_estimators=ROUNDS, learning_rate=RATE, early_stopping_rounds=PATIENCE, eval_metric="auc", n_jobs=1
        )
        model.fit(X_fit, y_fit, eval_set=[(X_stop, y_stop)], verbose=False)
        facts = {**watch(), "rounds": model.best_iteration}
        yield "xgboost", model.predict_proba(X_test)[:, 1], facts
    except ImportError:
        pass


def ebm(X, y, X_test):
    """Yield the same for EBM, if it is installed."""
    try:
        from interpret.glassbox import ExplainableBoostingClassifier
    except ImportError:
        return
    watch = Stopwatch()
    model = ExplainableBoostingClassifier(n_jobs=1).fit(X, y)
    yield "ebm", model.predict_proba(X_test)[:, 1], watch()


def for_measure(name, X, y, X_test):
    """Yield the same for scoreline trained for a measure, and for LightGBM with a tuned threshold: scores less thresholds."""
    from scoreline import MeasureClassifierCV
    from scoreline.measures import best_threshold, get_measure

    watch = Stopwatch()
    clf = MeasureClassifierCV(name, features="auto", cv=3).fit(X, y)
    facts = {**watch(), "alpha": clf.alpha_, "features": clf.features_}
    yield "auto", clf.decision_function(X_test), facts
    try:
        watch = Stopwatch()
        model, X_stop, y_stop = lightgbm_model(X, y)
    except ImportError:
        return
    threshold = best_threshold(y_stop, model.predict_proba(X_stop)[:, 1], get_measure(name)).threshold
    yield "lightgbm", model.predict_proba(X_test)[:, 1] - threshold, watch()


def lines_of(cell, rows):
    """Train what a cell names, and return a line per method."""
    from sklearn.model_selection import train_test_split

    from scoreline.measures import get_measure

    what, name, split = cell
    X, y = load(name, rows)
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.3, stratify=y, random_state=split)
    measure = what if what in MEASURES else "roc_auc"
    make = {"ours": ours, "trees": trees, "ebm": ebm}
    results = for_measure(what, X_train, y_train, X_test) if what in MEASURES else make[what](X_train, y_train, X_test)
    facts = {"what": what, "set": name, "split": split, "rows": len(y), "columns": X.shape[1], "measure": measure}
    return [
        {**facts, "method": method, "value": float(get_measure(measure).value(y_test > 0, np.asarray(scores))), **own}
        for method, scores, own in results
    ]


def work(cells, taken, out, rows):
    """Take cells until none is left, and add their lines to the file."""
    warnings.simplefilter("ignore")
    warm_up()
    while True:
        with taken.get_lock():
            k, taken.value = taken.value, taken.value + 1
        if k >= len(cells):
            return
        try:
            found = lines_of(cells[k], rows)
        except Exception:  # the other cells are still worth their time
            print(f"{cells[k]} failed:\n{traceback.format_exc()}", flush=True)
            continue
        with open(out, "a") as file:  # one write, so that lines of processes do not mix
            file.write("".join(json.dumps(each) + "\n" for each in found))
        for each in found:
            print(f"{each['set']:14s} {each['split']} {each['measure']} {each['method']:9s} {each['value']:.4f} "
                  f"{each['seconds']:.1f} s", flush=True)  # fmt: skip


def warm_up():
    """Compile kernels, so that no time includes it."""
    from scoreline import MeasureClassifierCV

    rng = np.random.default_rng(0)
    X = rng.standard_normal((600, 4))
    for measure in ("roc_auc", *MEASURES):
        MeasureClassifierCV(measure, features="auto", alphas=[0.1, 0.01], cv=3).fit(X, X[:, 0] * X[:, 1] > 0)
    MeasureClassifierCV("roc_auc", scaling="standard", alphas=[0.1], cv=3).fit(X, X[:, 0] > 0)


def run(options):
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
        os.environ[name] = "1"  # of the processes that are started below
    start, out = time.monotonic(), Path(options.out)
    out.parent.mkdir(parents=True, exist_ok=True)
    done = {(r["what"], r["set"], r["split"]) for r in read([out])}
    sets = options.sets.split(",") if options.sets else SETS
    # Of EBM, as many cells as there is time for, small sets first.
    last = [what for what in options.what.split(",") if what == "ebm"]
    first = [what for what in options.what.split(",") if what != "ebm"]
    splits = range(options.splits)
    cells = [(what, name, split) for split in splits for what in first for name in sets]
    cells += [(what, name, split) for split in splits for what in last for name in sets[::-1]]
    cells = [cell for cell in cells if cell not in done]
    warm_up()  # kernels are compiled once, and the other processes read them from the cache
    context = multiprocessing.get_context("spawn")
    taken = context.Value("i", 0)
    jobs = [context.Process(target=work, args=(cells, taken, out, options.rows)) for _ in range(options.jobs)]
    for job in jobs:
        job.start()
    for job in jobs:
        job.join(max(0.0, options.limit - (time.monotonic() - start)))
    for job in jobs:
        if job.is_alive():
            job.kill()
            job.join()
    finished = {(r["what"], r["set"], r["split"]) for r in read([out])}
    print(f"{len(finished & set(cells))} of {len(cells)} cells in {time.monotonic() - start:.0f} s")


def read(paths):
    return [json.loads(line) for path in paths if Path(path).exists() for line in Path(path).read_text().splitlines()]


class Results:
    """The lines of files, by measure, set and method."""

    def __init__(self, paths):
        self.rows = read(paths)
        self.sets = [name for name in SETS[::-1] if any(r["set"] == name for r in self.rows)]

    def by_split(self, name, method, measure="roc_auc", key="value"):
        """Return {split: entry} of a method on a set."""
        return {
            r["split"]: r[key]
            for r in self.rows
            if (r["set"], r["method"], r["measure"]) == (name, method, measure) and key in r
        }

    def mean(self, name, method, measure="roc_auc", key="value"):
        found = list(self.by_split(name, method, measure, key).values())
        return float(np.mean(found)) if found else np.nan

    def difference(self, name, one, others, measure="roc_auc"):
        """Return the mean over splits of one method less the best of others (by its mean over the same splits)."""
        mine = self.by_split(name, one, measure)
        theirs = [self.by_split(name, other, measure) for other in others]
        common = set(mine).intersection(*[each for each in theirs if each])
        theirs = [each for each in theirs if each]
        if not common or not theirs:
            return np.nan
        best = max(np.mean([each[s] for s in common]) for each in theirs)
        return float(np.mean([mine[s] for s in common]) - best)


def join(paths):
    """Print one line per set and the mean differences, in Markdown."""
    found = Results(paths)
    sizes = {r["set"]: (r["rows"], r["columns"]) for r in found.rows}
    print(f"| set | rows | columns | {' | '.join(METHODS)} | auto took | seconds: auto, lightgbm, xgboost, ebm |")
    print("|" + " --- |" * (len(METHODS) + 5))
    for name in found.sets:
        cells = [f"{found.mean(name, method):.4f}" for method in METHODS]
        times = ", ".join(
            f"{found.mean(name, method, key='seconds'):.1f}" for method in ("auto", "lightgbm", "xgboost", "ebm")
        )
        took = ", ".join(dict.fromkeys(found.by_split(name, "auto", key="features").values()))
        rows, columns = sizes[name]
        print(f"| {name} | {rows} | {columns} | {' | '.join(cells)} | {took} | {times} |".replace("nan", "-"))
    print()
    for title, others in (
        ("linear", ["linear"]), ("EBM", ["ebm"]), ("LightGBM", ["lightgbm"]),
        ("the better of LightGBM and XGBoost", ["lightgbm", "xgboost"]),
    ):  # fmt: skip
        print_differences(f"auto less {title}", found, others, "roc_auc", sizes)
    for measure in MEASURES:
        print_differences(f"{measure}: auto less LightGBM with a tuned threshold", found, ["lightgbm"], measure, sizes)
    ratios = [
        seconds / auto[split]
        for name in found.sets
        for auto in [found.by_split(name, "auto", key="seconds")]
        for split, seconds in found.by_split(name, "ebm", key="seconds").items()
        if split in auto
    ]
    if ratios:
        print(f"- seconds of EBM over those of auto, {len(ratios)} fits: {np.exp(np.mean(np.log(ratios))):.1f} (geometric "
              f"mean), lowest {min(ratios):.1f}, median {np.median(ratios):.1f}")  # fmt: skip
    gaps = [r["gap"] for r in found.rows if "gap" in r]
    if gaps:
        print(f"- largest duality gap of {len(gaps)} fits, relative to what tol is relative to: {max(gaps):.4f}")
    small = [r for r in found.rows if r.get("lower_bound", 1.0) < 1e-3]
    of_bound = [r["gap"] * 1e-3 / max(r["lower_bound"], 1e-300) for r in small]
    if small:
        print(f"- lower bound below J(0) / 1000, which tol is relative to there: {len(small)} fits on "
              f"{', '.join(sorted({r['set'] for r in small}))}; of their own bound the gap is more than 1 % in "
              f"{sum(share > 0.01 for share in of_bound)}, at most {max(of_bound):.0%}")  # fmt: skip


def print_differences(title, found, others, measure, sizes):
    """Print the mean, median and extremes of the differences of sets."""
    each = {name: found.difference(name, "auto", others, measure) for name in found.sets}
    each = {name: value for name, value in each.items() if not np.isnan(value)}
    if not each:
        return
    d = np.array(list(each.values()))
    small = [value for name, value in each.items() if sizes[name][0] < 5000]
    worst = ", ".join(f"{name} {each[name]:+.4f}" for name in sorted(each, key=each.get)[:3])
    below = f"; below 5,000 rows {np.mean(small):+.4f}" if small else ""
    print(f"- {title}, {len(d)} sets: mean {d.mean():+.4f}, median {np.median(d):+.4f}, higher on {(d > 0.002).sum()}, lower "
          f"on {(d < -0.002).sum()}; lowest {worst}{below}")  # fmt: skip


def passes():
    """Print the processor time of products with codes and with a dense float64 array of the same shape, in turn."""
    from scoreline.features import Additive
    from scoreline.operators import as_operator

    rng = np.random.default_rng(0)
    for n, p in ((1_000_000, 50), (200_000, 200)):
        X = rng.standard_normal((n, p))
        codes, dense = Additive().learn(X), as_operator(X)
        w, v, u = rng.standard_normal(codes.shape[1]), rng.standard_normal(p), rng.standard_normal(n)
        products = {
            "codes Xw": lambda c=codes, w=w: c.matvec(w), "dense Xw": lambda d=dense, v=v: d.matvec(v),
            "codes X'u": lambda c=codes, u=u: c.rmatvec(u), "dense X'u": lambda d=dense, u=u: d.rmatvec(u),
        }  # fmt: skip
        found = {name: [] for name in products}
        for _ in range(PASSES_REPEATS):
            for name, product in products.items():
                start = time.process_time()
                product()
                found[name].append(1e3 * (time.process_time() - start))
        for name, spent in found.items():
            say(
                f"{n} x {p}, {codes.shape[1]} features: {name} best {min(spent):.1f} ms, median {np.median(spent):.1f} ms"
            )
        say(f"bytes per value: {codes.packed.codes.nbytes / (n * p):.2f}")


def bases(options):
    """Print the test AUC of additive models and their features per column, for several bases of numeric columns."""
    from functools import partial

    from sklearn.model_selection import train_test_split

    from scoreline import MeasureClassifierCV
    from scoreline.features import basis

    warnings.simplefilter("ignore")
    used = basis.rotated
    changes = {
        "in use": {}, "all directions": {"rotated": partial(used, least=1e-12)}, "steps only": {"LINEAR_WEIGHT": 0.0},
    }  # fmt: skip
    names = options.sets.split(",") if options.sets else BASES_SETS
    print(f"| set | {' | '.join(changes)} | features per column |")
    print("|" + " --- |" * (len(changes) + 2))
    for name in names:
        X, y = load(name, options.rows)
        values, sizes = {each: [] for each in changes}, {}
        for split in range(options.splits):
            X_fit, X_test, y_fit, y_test = train_test_split(X, y, test_size=0.3, stratify=y, random_state=split)
            for each, change in changes.items():
                before = {key: getattr(basis, key) for key in change}
                vars(basis).update(change)
                clf = MeasureClassifierCV("roc_auc", features="additive", cv=3).fit(X_fit, y_fit)
                vars(basis).update(before)
                values[each].append(clf.score(X_test, y_test))
                sizes[each] = clf.feature_map_.n_features / X.shape[1]
        cells = " | ".join(f"{np.mean(found):.4f}" for found in values.values())
        say(f"| {name} | {cells} | {', '.join(f'{size:.0f}' for size in sizes.values())} |")


def large_table(n, p, rng):
    """Return a table whose classes depend on curves of ten columns, two products and noise; a tenth of the rows is positive."""
    X = rng.standard_normal((n, p), dtype=np.float32).astype(np.float64)
    risk = np.abs(X[:, 0]) - X[:, 1] ** 2 + np.sin(3.0 * X[:, 2]) + X[:, 3]
    risk += 0.5 * X[:, 4] * X[:, 5] + X[:, 6] * X[:, 7] + sum(np.tanh(3.0 * X[:, j]) for j in (8, 9, 10))
    risk += rng.logistic(0.0, 1.0, n)
    return X, risk > np.quantile(risk, 0.9)


def large(options):
    """Print seconds and test AUC of the whole path of alphas of an additive model, and of LightGBM."""
    from scoreline import MeasureClassifier, MeasureClassifierCV
    from scoreline.features import Additive
    from scoreline.measures import get_measure

    auc = get_measure("roc_auc").value
    n, rng = options.rows or 1_000_000, np.random.default_rng(0)
    X, y = large_table(n, options.columns, rng)
    X_test, y_test = large_table(n // 5, options.columns, rng)
    warnings.simplefilter("ignore")
    warm_up()
    watch = Stopwatch()
    operator = Additive().learn(X)
    say(f"additive: bins of {n} x {options.columns} in {watch()['seconds']:.1f} s, {operator.shape[1]} features")
    clf, fits = MeasureClassifier("roc_auc", warm_start=True, n_jobs=options.threads), []
    for alpha in np.logspace(1, -4, LARGE_ALPHAS):
        clf.set_params(alpha=float(alpha)).fit(operator, y)
        fits.append((clf.n_passes_, clf.coef_[0]))
        gap, spent = gap_share(clf), watch()
        seconds = spent["seconds"]
        say(f"  alpha {alpha:.1e}: {clf.n_passes_:.0f} passes, gap {gap:.4f}, {seconds:.1f} s so far")
    features = clf.feature_map_.operator(X_test)
    values = [auc(y_test, features.matvec(coef)) for _, coef in fits]
    say(
        f"additive: whole path of {LARGE_ALPHAS} alphas {seconds:.1f} s ({spent['cpu']:.1f} s of the processor), "
        f"{sum(count for count, _ in fits):.0f} passes, best test AUC {max(values):.4f}"
    )
    watch = Stopwatch()
    split = [(np.arange(n // 5, n), np.arange(n // 5))]
    cv = MeasureClassifierCV("roc_auc", features="additive", cv=split, n_jobs=options.threads).fit(X, y)
    seconds, value = watch()["seconds"], auc(y_test, cv.decision_function(X_test))
    say(
        f"additive: search on one split and a fit on all rows {seconds:.1f} s, alpha {cv.alpha_:g}, test AUC {value:.4f}"
    )
    import lightgbm

    watch = Stopwatch()
    model = lightgbm.LGBMClassifier(n_estimators=LARGE_ROUNDS, learning_rate=RATE, verbose=-1, n_jobs=options.threads)
    model.fit(X, y)
    spent, value = watch(), auc(y_test, model.predict_proba(X_test)[:, 1])
    say(f"LightGBM {lightgbm.__version__}: {LARGE_ROUNDS} rounds {spent['seconds']:.1f} s ({spent['cpu']:.1f} s of the "
        f"processor), test AUC {value:.4f}")  # fmt: skip


def say(text):
    print(text, flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets")
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument(
        "--rows", type=int, help="at most as many of a set (20,000); of the table of --large (1,000,000)"
    )
    parser.add_argument("--columns", type=int, default=50, help="of the table of --large")
    parser.add_argument("--jobs", type=int, default=2, help="processes of one thread each")
    parser.add_argument("--threads", type=int, default=2, help="of both sides of --large")
    parser.add_argument("--what", default="ours,trees,ebm", help=f"of {', '.join(WHAT)}")
    parser.add_argument("--limit", type=float, default=1e9, help="seconds after which everything is stopped")
    parser.add_argument("--out", default="bench-output/additive.jsonl")
    parser.add_argument("--join", nargs="+")
    parser.add_argument("--passes", action="store_true")
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--bases", action="store_true")
    given = parser.parse_args()
    if given.passes:
        passes()
    elif given.bases:
        given.rows = given.rows or 20_000
        bases(given)
    elif given.large:
        large(given)
    elif given.join:
        join(given.join)
    else:
        given.rows = given.rows or 20_000
        run(given)
