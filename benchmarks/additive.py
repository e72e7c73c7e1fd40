"""Test AUC and seconds of linear, additive and pair features against LightGBM, XGBoost and EBM, on the same splits.

For every data set: at most ROWS rows, stratified splits with 30 % test rows. "linear" is MeasureClassifierCV with
scaling="standard", "auto" is features="auto", both with three folds. "additive" and "pairs" are fits on all training rows with
the alphas that the folds of "auto" found best for them. LightGBM and XGBoost stop early on a fifth of the training rows (at
most 2000 rounds, learning rate 0.05, otherwise their defaults). EBM has its defaults. Rivals that are not installed are left
out. Every result is a line of the output file, which is read again so that a run can be continued.

With --measures, scoreline is trained for each measure with features="auto", and LightGBM, stopped early as before, gets the
threshold that is best on the rows it was stopped on; the value on the test rows is in the column "value". `cpu` are the seconds
of the processor, which other work on the machine changes less than `seconds`.

    SCORELINE_DATA=folder python benchmarks/additive.py [--sets magic04,poker] [--splits 2] [--rows 20000] [--jobs 1]
        [--ebm magic04] [--measures f1,average_precision,min_tpr_tnr] [--out FILE.jsonl]
    python benchmarks/additive.py --table FILE.jsonl
    python benchmarks/additive.py --passes
"""

import argparse
import json
import lzma
import os
import time
import warnings
from pathlib import Path

import numpy as np

SETS = (
    "diabetes german.numer svmguide3 yeast4 svmguide1 satimage page-blocks0 annthyroid abalone19 magic04 letter poker cod-rna "
    "ijcnn1 shuttle skin cover-4v2 campaign adult-raw covtype sylva census-income"
).split()
ROUNDS, PATIENCE, RATE = 2000, 50, 0.05
OURS, RIVALS = ("linear", "additive", "pairs", "auto"), ("lightgbm", "xgboost", "ebm")


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


class Stopwatch:
    """Seconds since it was made: `seconds` on the clock, `cpu` of the processor."""

    def __init__(self):
        self.start = time.perf_counter(), time.process_time()

    def __call__(self):
        return {
            "seconds": round(time.perf_counter() - self.start[0], 3),
            "cpu": round(time.process_time() - self.start[1], 3),
        }


def ours(X, y, X_test, jobs):
    """Yield (method, scores of the test rows, facts)."""
    from scoreline import MeasureClassifier, MeasureClassifierCV

    watch = Stopwatch()
    clf = MeasureClassifierCV("roc_auc", scaling="standard", cv=3, n_jobs=jobs).fit(X, y)
    yield "linear", clf.decision_function(X_test), {**watch(), "alpha": clf.alpha_}
    watch = Stopwatch()
    auto = MeasureClassifierCV("roc_auc", features="auto", cv=3, n_jobs=jobs).fit(X, y)
    facts = {**watch(), "alpha": auto.alpha_, "features": auto.features_, "gap": gap_share(auto)}
    yield "auto", auto.decision_function(X_test), facts
    table = auto.cv_results_
    for kind in ("additive", "pairs"):
        watch = Stopwatch()
        own = np.flatnonzero(table["features"] == kind)
        alpha = float(table["alpha"][own[np.argmax(table["mean_test_score"][own])]])
        clf = MeasureClassifier("roc_auc", features=kind, alpha=alpha, n_jobs=jobs).fit(X, y)
        facts = {**watch(), "alpha": alpha, "gap": gap_share(clf), "pairs": len(clf.feature_map_.pairs)}
        yield kind, clf.decision_function(X_test), facts


def rivals(X, y, X_test, jobs, with_ebm):
    """Yield the same for the rivals that are installed."""
    from sklearn.model_selection import train_test_split

    inner = train_test_split(X, y, test_size=0.2, stratify=y, random_state=0)
    try:
        import lightgbm

        watch = Stopwatch()
        model = lightgbm.LGBMClassifier(n_estimators=ROUNDS, learning_rate=RATE, verbose=-1, n_jobs=jobs)
        stop = lightgbm.early_stopping(PATIENCE, verbose=False)
        model.fit(inner[0], inner[2], eval_set=[(inner[1], inner[3])], eval_metric="auc", callbacks=[stop])
        facts = {**watch(), "rounds": model.best_iteration_}
        yield "lightgbm", model.predict_proba(X_test)[:, 1], facts
    except ImportError:
        pass
    try:
        import xgboost

        watch = Stopwatch()
        model = xgboost.XGBClassifier(
            n_estimators=ROUNDS, learning_rate=RATE, early_stopping_rounds=PATIENCE, eval_metric="auc", n_jobs=jobs
        )
        model.fit(inner[0], inner[2], eval_set=[(inner[1], inner[3])], verbose=False)
        facts = {**watch(), "rounds": model.best_iteration}
        yield "xgboost", model.predict_proba(X_test)[:, 1], facts
    except ImportError:
        pass
    if with_ebm:
        from interpret.glassbox import ExplainableBoostingClassifier

        watch = Stopwatch()
        model = ExplainableBoostingClassifier(n_jobs=jobs).fit(X, y)
        yield "ebm", model.predict_proba(X_test)[:, 1], watch()


def for_measure(name, X, y, X_test, y_test, jobs):
    """Yield (method, value of the measure on the test rows, facts) for scoreline and for LightGBM with a tuned threshold."""
    import lightgbm
    from sklearn.model_selection import train_test_split

    from scoreline import MeasureClassifierCV
    from scoreline.measures import best_threshold, get_measure

    measure, watch = get_measure(name), Stopwatch()
    clf = MeasureClassifierCV(name, features="auto", cv=3, n_jobs=jobs).fit(X, y)
    facts = {**watch(), "alpha": clf.alpha_, "features": clf.features_}
    yield "auto", measure.value(y_test > 0, clf.decision_function(X_test)), facts
    X_fit, X_stop, y_fit, y_stop = train_test_split(X, y, test_size=0.2, stratify=y, random_state=0)
    watch = Stopwatch()
    model = lightgbm.LGBMClassifier(n_estimators=ROUNDS, learning_rate=RATE, verbose=-1, n_jobs=jobs)
    stop = lightgbm.early_stopping(PATIENCE, verbose=False)
    model.fit(X_fit, y_fit, eval_set=[(X_stop, y_stop)], eval_metric="auc", callbacks=[stop])
    threshold = best_threshold(y_stop, model.predict_proba(X_stop)[:, 1], measure).threshold
    yield "lightgbm", measure.value(y_test > 0, model.predict_proba(X_test)[:, 1] - threshold), watch()


def run(options):
    from sklearn.metrics import roc_auc_score
    from sklearn.model_selection import train_test_split

    warnings.simplefilter("ignore")
    out = Path(options.out)
    done = {(r["set"], r["split"]) for r in read(out)}
    ebm = set(options.ebm.split(",")) if options.ebm else set()
    for name in options.sets.split(",") if options.sets else SETS:
        X, y = load(name, options.rows)
        for split in range(options.splits):
            if (name, split) in done:
                continue
            X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.3, stratify=y, random_state=split)
            found = []
            for measure in options.measures.split(",") if options.measures else ():
                for method, value, facts in for_measure(measure, X_train, y_train, X_test, y_test, options.jobs):
                    found.append({"set": name, "split": split, "rows": len(y), "columns": X.shape[1], "method": method,
                                  "measure": measure, "value": float(value), **facts})  # fmt: skip
                    print(f"{name:14s} {split} {method:9s} {measure} {value:.4f}", facts, flush=True)
            for make in (
                ()
                if options.measures
                else (
                    ours(X_train, y_train, X_test, options.jobs),
                    rivals(X_train, y_train, X_test, options.jobs, name in ebm and split == 0),
                )
            ):
                for method, scores, facts in make:
                    auc = float(roc_auc_score(y_test, scores))
                    found.append({"set": name, "split": split, "rows": len(y), "columns": X.shape[1], "method": method,
                                  "auc": auc, **facts})  # fmt: skip
                    print(f"{name:14s} {split} {method:9s} {auc:.4f}", facts, flush=True)
            with out.open("a") as file:
                file.writelines(json.dumps(each) + "\n" for each in found)


def read(path):
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def table(path):
    """Print one line per set and the mean differences, in Markdown."""
    rows = read(Path(path))
    sets = list(dict.fromkeys(row["set"] for row in rows))
    methods = [*OURS, *RIVALS]

    def mean(name, method, what="auc", splits=None):
        found = [r[what] for r in rows if r["set"] == name and r["method"] == method
                 and (splits is None or r["split"] in splits)]  # fmt: skip
        return float(np.mean(found)) if found else np.nan

    print(f"| set | rows | columns | {' | '.join(methods)} | auto took | seconds: auto, lightgbm, xgboost, ebm |")
    print("|" + " --- |" * (len(methods) + 5))
    for name in sets:
        first = next(r for r in rows if r["set"] == name)
        kinds = [r["features"] for r in rows if r["set"] == name and r["method"] == "auto"]
        cells = [f"{mean(name, m):.4f}" for m in methods]
        times = ", ".join(f"{mean(name, m, 'seconds'):.1f}" for m in ("auto", "lightgbm", "xgboost", "ebm"))
        chosen = ", ".join(dict.fromkeys(kinds))
        print(
            f"| {name} | {first['rows']} | {first['columns']} | {' | '.join(cells)} | {chosen} | {times} |".replace(
                "nan", "-"
            )
        )
    auto = np.array([mean(name, "auto") for name in sets])
    trees = np.array([np.nanmax([mean(name, m) for m in ("lightgbm", "xgboost")]) for name in sets])
    pairs = {"linear": np.array([mean(name, "linear") for name in sets]), "the better of LightGBM and XGBoost": trees}
    small = np.array([next(r for r in rows if r["set"] == name)["rows"] < 5000 for name in sets])
    print()
    for label, other in pairs.items():
        d = auto - other
        worst = sets[int(np.nanargmin(d))]
        print(f"- auto less {label}: mean {np.nanmean(d):+.4f}, median {np.nanmedian(d):+.4f}, lowest {np.nanmin(d):+.4f} "
              f"({worst}); below 5,000 rows {np.nanmean(d[small]) if small.any() else np.nan:+.4f}")  # fmt: skip
    with_ebm = [name for name in sets if not np.isnan(mean(name, "ebm"))]
    if with_ebm:
        d = [mean(name, "auto", splits={0}) - mean(name, "ebm") for name in with_ebm]
        ratio = [mean(name, "ebm", "seconds") / mean(name, "auto", "seconds", {0}) for name in with_ebm]
        print(f"- auto less EBM, {len(d)} sets, one split: mean {np.mean(d):+.4f}; ratio of seconds, EBM to auto: "
              f"{np.exp(np.mean(np.log(ratio))):.1f} (geometric mean)")  # fmt: skip
    gaps = [r["gap"] for r in rows if "gap" in r]
    if gaps:
        print(f"- largest duality gap of a fit, relative to what tol is relative to: {max(gaps):.4f}")


def passes():
    """Print the seconds of products with codes and with a dense float64 array of the same shape, in turn."""
    from common import interleave
    from scoreline.features import Additive
    from scoreline.operators import as_operator

    rng = np.random.default_rng(0)
    for n, p in ((1_000_000, 50), (200_000, 200)):
        X = rng.standard_normal((n, p))
        codes, dense = Additive().learn(X), as_operator(X)
        w, v, u = rng.standard_normal(codes.shape[1]), rng.standard_normal(p), rng.standard_normal(n)
        found = interleave({
            "codes Xw": lambda c=codes, w=w: c.matvec(w), "dense Xw": lambda d=dense, v=v: d.matvec(v),
            "codes X'u": lambda c=codes, u=u: c.rmatvec(u), "dense X'u": lambda d=dense, u=u: d.rmatvec(u),
        })  # fmt: skip
        for name, timing in found.items():
            print(
                f"{n} x {p}, {codes.shape[1]} features: {name} best {1e3 * timing.best:.1f} ms, "
                f"median {1e3 * timing.median:.1f} ms"
            )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets")
    parser.add_argument("--splits", type=int, default=2)
    parser.add_argument("--rows", type=int, default=60_000)
    parser.add_argument("--jobs", type=int, default=2, help="threads of every side")
    parser.add_argument("--ebm", default="")
    parser.add_argument("--measures", default="", help="in place of AUC: names with commas")
    parser.add_argument("--out", default="bench-output/additive.jsonl")
    parser.add_argument("--table")
    parser.add_argument("--passes", action="store_true")
    given = parser.parse_args()
    if given.passes:
        passes()
    elif given.table:
        table(given.table)
    else:
        Path(given.out).parent.mkdir(parents=True, exist_ok=True)
        run(given)
