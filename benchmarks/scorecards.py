"""Test AUC and seconds of scorecards: scoreline, optbinning with LogisticRegression, FasterRisk, and EBM without interactions.

For every data set: at most ROWS rows, stratified splits with 30 % test rows. Every side has one thread. Its time is the
processor time of its fit, compilation excluded, so that other work on the machine does not count. `--jobs` cells run at once.

- "card" is what `scoreline scorecard` makes: MeasureClassifierCV("roc_auc", features="additive", selection="paired") with five
  folds (three from 20,000 rows on), and its scorecard with default options. "rounding" is the test AUC of a card of the same
  bins with 1000 times finer points, less that of the card. "edges" is the test AUC of such a fine card whose edges are not
  rounded to readable numbers, less that of the fine card with readable edges.
- "card10" is the same with max_features=10.
- "monotone" is "card" with a direction for every column of numbers, taken from its rank correlation with the label in the
  training rows. "violations" counts neighbouring bins whose points are in the wrong order.
- "optbinning" is BinningProcess, LogisticRegression and Scorecard with whole points, scaled like our card. "violations" counts
  columns whose coefficient has the wrong sign, so that their points contradict the event rates of the bins.
- "fasterrisk" is RiskScoreOptimizer with 10 conditions and points from -5 to 5, on thresholds chosen by its BinBinarizer.
- "ebm" is ExplainableBoostingClassifier(interactions=0).

Rivals that are not installed are left out. Every cell is a line of the output file, which is read again so that a run can be
continued.

    SCORELINE_DATA=folder python benchmarks/scorecards.py [--sets diabetes] [--splits 5] [--rows 60000] [--jobs 1]
        [--methods card,ebm] [--limit SECONDS] [--out FILE.jsonl]
    python benchmarks/scorecards.py --join FILE.jsonl
"""

import argparse
import contextlib
import inspect
import io
import json
import lzma
import multiprocessing
import os
import time
import warnings
from pathlib import Path
from unittest import mock

import numpy as np

SETS = ("german.numer", "diabetes", "campaign", "adult-raw", "census-income")
METHODS = ("card", "ebm", "optbinning", "fasterrisk", "monotone", "card10")
SCALE = {"points": 600.0, "pdo": 20.0, "base": 50.0}
FINER = 1000.0  # of the points that show what rounding costs
CONDITIONS = 10  # of a FasterRisk card
tables = {}  # of the sets, shared with the workers
warmed = set()


def load(name, rows):
    """Return columns and labels 0 and 1 of a data set, at most so many rows."""
    from sklearn.datasets import load_svmlight_file
    from sklearn.model_selection import train_test_split

    with lzma.open(Path(os.environ["SCORELINE_DATA"]) / f"{name}.svm.xz") as file:
        X, y = load_svmlight_file(file)
    if len(y) > rows:
        X, _, y, _ = train_test_split(X, y, train_size=rows, stratify=y, random_state=0)
    return X.toarray(), (y > 0).astype(int)


def read(path):
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def split_of(name, split):
    from sklearn.model_selection import train_test_split

    X, y = tables[name]
    return train_test_split(X, y, test_size=0.3, stratify=y, random_state=split)


def directions(X, y):
    """Return a direction for each column of numbers, from its rank correlation with the label."""
    from scipy.stats import rankdata

    found = {}
    for j in range(X.shape[1]):
        if len(np.unique(X[:, j])) > 2:
            found[j] = 1 if np.corrcoef(rankdata(X[:, j]), y)[0, 1] >= 0 else -1
    return found


def card(X, y, X_test, **options):
    """Return the test scores of a scorecard, its seconds, and facts."""
    from scoreline import MeasureClassifierCV
    from scoreline.cli.scorecard import search_options
    from scoreline.scorecards import bins

    if "card" not in warmed:  # the compiler is not on the clock
        warmed.add("card")
        few = np.random.default_rng(0).normal(size=(300, 3))
        for given in ({}, {"monotone": {0: 1}}):
            small = MeasureClassifierCV("roc_auc", features="additive", cv=2, alphas=[1.0, 0.1], n_jobs=1, **given)
            small.fit(few, few[:, 0] > 0.3).scorecard(few, few[:, 0] > 0.3)
    begin = time.process_time()
    limits = {name: options.pop(name) for name in ("max_features",) if name in options}
    clf = MeasureClassifierCV("roc_auc", features="additive", n_jobs=1, **search_options(len(y)), **options).fit(X, y)
    found = clf.scorecard(X, y, **SCALE, **limits)
    seconds = time.process_time() - begin
    loss = found.loss
    finer = clf.scorecard(X, y, **SCALE | {"pdo": SCALE["pdo"] * FINER}, **limits)
    with mock.patch.multiple(bins, readable=lambda low, high, near: near, digits=lambda value: 0.0):
        exact = clf.scorecard(X, y, **SCALE | {"pdo": SCALE["pdo"] * FINER}, **limits)
    wrong = sum(
        int((np.diff(column.points[1:]) * -sign < 0).sum())
        for column in found.columns
        for sign in [(options.get("monotone") or {}).get(column.position, 0)]
    )
    facts = {
        "alpha": clf.alpha_, "columns_used": len(found.columns), "lines": sum(len(each.lines) for each in found.columns),
        "train": loss["measure"], "gap": loss["objective"]["card"] - loss["lower_bound"],
        "finer": -finer.predict(X_test), "exact": -exact.predict(X_test), "violations": wrong,
        "model": clf.decision_function(X_test),
    }  # fmt: skip
    return -found.predict(X_test), seconds, facts


def optbinning(X, y, X_test):
    import pandas as pd
    from optbinning import BinningProcess, Scorecard
    from sklearn.linear_model import LogisticRegression

    names = [f"x{j}" for j in range(X.shape[1])]
    rows = pd.DataFrame(X, columns=names)
    begin = time.process_time()
    process = BinningProcess(names)
    scaling = {"pdo": SCALE["pdo"], "odds": SCALE["base"], "scorecard_points": SCALE["points"]}
    made = Scorecard(
        process,
        LogisticRegression(max_iter=1000),
        scaling_method="pdo_odds",
        scaling_method_params=scaling,
        rounding=True,
    ).fit(rows, y)
    seconds = time.process_time() - begin
    coef = made.estimator_.coef_[0]
    table = made.table()
    facts = {
        "columns_used": int(table["Variable"].nunique()), "lines": len(table), "violations": int((coef > 0).sum()),
    }  # fmt: skip
    return -made.score(pd.DataFrame(X_test, columns=names)), seconds, facts


def fasterrisk(X, y, X_test):
    import pandas as pd
    from fasterrisk import rounding
    from fasterrisk.binarization_util import BinBinarizer

    source = inspect.getsource(rounding).replace(".tostring()", ".tobytes()")  # which NumPy 2 does not have
    exec(compile(source, rounding.__file__, "exec"), rounding.__dict__)
    from fasterrisk.fasterrisk import RiskScoreOptimizer

    names = [f"x{j}" for j in range(X.shape[1])]
    begin = time.process_time()
    binarizer = BinBinarizer()
    binarizer.fit(pd.DataFrame(X, columns=names))

    def binary(rows):
        return np.asarray(binarizer.transform(pd.DataFrame(rows, columns=names))[0], dtype=np.float64)

    found = RiskScoreOptimizer(binary(X), np.where(y > 0, 1.0, -1.0), k=CONDITIONS)
    found.optimize()
    _, _, coefs = found.get_models()
    seconds = time.process_time() - begin
    return binary(X_test) @ coefs[0], seconds, {"lines": int(np.count_nonzero(coefs[0]))}


def ebm(X, y, X_test):
    from interpret.glassbox import ExplainableBoostingClassifier

    begin = time.process_time()
    model = ExplainableBoostingClassifier(interactions=0, n_jobs=1).fit(X, y)
    seconds = time.process_time() - begin
    return model.predict_proba(X_test)[:, 1], seconds, {}


def scored(method, X, y, X_test):
    if method == "card":
        return card(X, y, X_test)
    if method == "card10":
        return card(X, y, X_test, max_features=10)
    if method == "monotone":
        return card(X, y, X_test, monotone=directions(X, y))
    return {"optbinning": optbinning, "fasterrisk": fasterrisk, "ebm": ebm}[method](X, y, X_test)


def cell(which):
    """Return the result of a set, a split and a method; None where the method is not installed."""
    from sklearn.metrics import roc_auc_score
    from threadpoolctl import threadpool_limits

    name, split, method = which
    X, X_test, y, y_test = split_of(name, split)
    warnings.simplefilter("ignore")
    try:
        with contextlib.redirect_stdout(io.StringIO()), threadpool_limits(1):
            scores, seconds, facts = scored(method, X, y, X_test)
    except ImportError as error:
        return {"set": name, "split": split, "method": method, "failed": f"not installed: {error}"}
    except Exception as error:  # a rival that fails is a finding
        return {"set": name, "split": split, "method": method, "failed": f"{type(error).__name__}: {error}"[:300]}
    auc = float(roc_auc_score(y_test, scores))
    for key in ("finer", "exact", "model"):
        if key in facts:
            facts[key] = float(roc_auc_score(y_test, facts[key]))
    return {
        "set": name, "split": split, "method": method, "rows": len(tables[name][1]), "columns": X.shape[1], "auc": auc,
        "seconds": round(seconds, 3), **facts,
    }  # fmt: skip


def run(options):
    out, begin = Path(options.out), time.monotonic()
    out.parent.mkdir(parents=True, exist_ok=True)
    done = {(r["set"], r["split"], r["method"]) for r in read(out)}
    names = options.sets.split(",")
    methods = options.methods.split(",")
    slow = [("census-income", split, "ebm") for split in range(options.splits)]  # they would be the last to end
    cells = [(name, split, method) for split in range(options.splits) for name in names for method in methods]
    cells = [each for each in dict.fromkeys([*slow, *cells]) if each in set(cells) - done]
    for name in dict.fromkeys(each[0] for each in cells):
        tables[name] = load(name, options.rows)
    print(f"{len(cells)} cells, data read in {time.monotonic() - begin:.0f} s", flush=True)
    with multiprocessing.get_context("fork").Pool(options.jobs) as pool:
        results = pool.imap_unordered(cell, cells)
        for _ in cells:
            try:
                found = results.next(timeout=max(0.0, options.limit - (time.monotonic() - begin)))
            except multiprocessing.TimeoutError:
                print(f"stopped after {options.limit:g} s", flush=True)
                break
            with out.open("a") as file:
                file.write(json.dumps(found) + "\n")
            shown = found.get("failed") or f"{found['auc']:.4f} {found['seconds']:.2f} s"
            print(
                f"{time.monotonic() - begin:5.0f} s {found['set']:14s} {found['split']} {found['method']:10s} {shown}",
                flush=True,
            )
        pool.terminate()


def join(path):
    """Print the means per set, and the differences that the targets are about, in Markdown."""
    rows = read(Path(path))
    for each in rows:
        if "failed" in each:
            print(f"{each['set']} {each['split']} {each['method']}: {each['failed']}\n")
    rows = [each for each in rows if "failed" not in each]
    sets = [name for name in SETS if any(row["set"] == name for row in rows)]
    methods = [method for method in METHODS if any(row["method"] == method for row in rows)]

    def values(name, method, what="auc"):
        return {r["split"]: r[what] for r in rows if r["set"] == name and r["method"] == method}

    def mean(found):
        return np.mean(list(found.values())) if found else np.nan

    def grid(what, digits):
        print(f"| set | rows | columns | {' | '.join(methods)} |\n" + "|" + " --- |" * (len(methods) + 3))
        for name in sets:
            first = next(r for r in rows if r["set"] == name)
            cells = [f"{mean(values(name, m, what)):.{digits}f}".replace("nan", "-") for m in methods]
            print(f"| {name} | {first['rows']} | {first['columns']} | {' | '.join(cells)} |")
        print()

    print("Mean test AUC:\n")
    grid("auc", 4)
    print("Mean seconds, one thread:\n")
    grid("seconds", 2)
    for rival in [method for method in methods if method not in ("card", "card10", "monotone")]:
        found, ratios = {}, []
        for name in sets:
            ours, theirs = values(name, "card"), values(name, rival)
            both = sorted(set(ours) & set(theirs))
            if both:
                found[name] = float(np.mean([ours[s] - theirs[s] for s in both]))
                times = values(name, "card", "seconds"), values(name, rival, "seconds")
                ratios.append(sum(times[1][s] for s in both) / sum(times[0][s] for s in both))
        if found:
            parts = ", ".join(f"{name} {value:+.4f}" for name, value in found.items())
            print(f"- card less {rival}, same splits: mean {np.mean(list(found.values())):+.4f} ({parts}); "
                  f"{rival} takes {', '.join(f'{r:.1f}' for r in ratios)} times the seconds of the card")  # fmt: skip
    for method in [m for m in methods if m in ("card", "card10", "monotone")]:
        own = [r for r in rows if r["method"] == method]
        costs, fits = [r["finer"] - r["auc"] for r in own], [r["train"]["bins"] - r["train"]["card"] for r in own]
        models, edges = [r["auc"] - r["model"] for r in own], [r["exact"] - r["finer"] for r in own]
        lines = ", ".join(f"{name} {mean(values(name, method, 'lines')):.0f} in "
                          f"{mean(values(name, method, 'columns_used')):.0f} columns" for name in sets)  # fmt: skip
        print(f"- {method}: rounding costs {np.mean(costs):+.5f} in the mean on test rows (largest {max(costs):+.5f}), "
              f"{np.mean(fits):+.5f} on training rows (largest {max(fits):+.5f}); readable edges cost "
              f"{np.mean(edges):+.5f} on test rows (standard error {np.std(edges) / len(edges) ** 0.5:.5f}); the card less its "
              f"model {np.mean(models):+.5f} on test rows; bins in the wrong order "
              f"{sum(r['violations'] for r in own)}; lines: {lines}")  # fmt: skip
    own = [r for r in rows if r["method"] == "optbinning"]
    if own:
        print(f"- optbinning: {sum(r['violations'] for r in own)} of {sum(r['columns_used'] for r in own)} columns have a "
              "coefficient of the wrong sign")  # fmt: skip


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--rows", type=int, default=60_000)
    parser.add_argument("--jobs", type=int, default=1, help="processes of one thread each")
    parser.add_argument("--limit", type=float, default=3600.0, help="seconds after which the run stops")
    parser.add_argument("--out", default="bench-output/scorecards.jsonl")
    parser.add_argument("--join")
    given = parser.parse_args()
    if given.join:
        join(given.join)
    else:
        run(given)
