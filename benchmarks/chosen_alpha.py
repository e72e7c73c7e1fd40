"""MeasureClassifierCV compared with LogisticRegressionCV and GridSearchCV(LinearSVC): the test measure of what each chooses.

For every data set at most ROWS stratified rows, SPLITS stratified splits (30 % test), features divided by their largest
magnitude. All sides have the same strengths (alpha = 1 / (n C)), the same five folds, and choose by the measure itself. Prints
one line a data set and measure, then for each measure and rival the mean difference over data sets with a bootstrap interval
over data sets.

    SCORELINE_DATA=folder python benchmarks/chosen_alpha.py --jobs 2 [--sets a9a,letter] [--splits 3] [--out file.json]
"""

import argparse
import json
import os
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed

from tuned_threshold import SETS, load, scorer

MEASURES = ["roc_auc", "average_precision", "f1", "gmean", "min_tpr_tnr", "mcc"]
RIVALS = ["logistic", "svc"]
ROWS, CS, FOLDS = 20_000, [1e-3, 1e-2, 1e-1, 1.0, 1e1, 1e2], 5


def models(measure, n, split):
    from sklearn.linear_model import LogisticRegressionCV
    from sklearn.model_selection import GridSearchCV, StratifiedKFold
    from sklearn.svm import LinearSVC

    from scoreline import MeasureClassifierCV

    cv = StratifiedKFold(FOLDS, shuffle=True, random_state=split)
    own = n * (FOLDS - 1) // FOLDS  # rows of a fold's fit, where C is chosen
    # No intercept has a penalty: that of LinearSVC next to none, by a constant feature of 100.
    return {
        "scoreline": MeasureClassifierCV(
            measure, alphas=[1.0 / (own * C) for C in CS], cv=cv, random_state=0, n_jobs=1
        ),
        "logistic": LogisticRegressionCV(
            Cs=CS, cv=cv, scoring=scorer(measure), max_iter=300, use_legacy_attributes=False, l1_ratios=(0.0,)
        ),
        "svc": GridSearchCV(
            LinearSVC(intercept_scaling=100.0, random_state=0), {"C": CS}, scoring=scorer(measure), cv=cv
        ),
    }


def one_split(name, X, y, split, measures):
    """Return rows (measure, method, test value, seconds) of one split."""
    warnings.simplefilter("ignore")
    from sklearn.model_selection import train_test_split

    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.3, stratify=y, random_state=split)
    rows = []
    for measure in measures:
        for method, model in models(measure, len(y_train), split).items():
            begin = time.perf_counter()
            model.fit(X_train, y_train)
            seconds = time.perf_counter() - begin
            rows.append((measure, method, float(scorer(measure)(model, X_test, y_test)), seconds))
    return {"set": name, "split": split, "rows": rows}


def small(name):
    from sklearn.model_selection import train_test_split

    X, y = load(name)
    if len(y) > ROWS:
        X, _, y, _ = train_test_split(X, y, train_size=ROWS, stratify=y, random_state=0)
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    return X, y


def summarise(results):
    values, seconds = {}, {}
    for result in results:
        for measure, method, value, time_ in result["rows"]:
            values.setdefault((measure, result["set"], method), []).append(value)
            seconds.setdefault((measure, result["set"], method), []).append(time_)
    sets, rng = sorted({key[1] for key in values}), np.random.default_rng(0)
    for measure in [m for m in MEASURES if any(key[0] == m for key in values)]:
        print(f"\n{measure}: mean test value of MeasureClassifierCV, its lead over the rivals with the standard error")
        leads = {rival: [] for rival in RIVALS}
        for name in sets:
            own = np.array(values[measure, name, "scoreline"])
            line = f"  {name:<14} {own.mean():.4f}"
            for rival in RIVALS:
                d = own - np.array(values[measure, name, rival])
                leads[rival].append(d.mean())
                line += f"   {rival} {d.mean():+.4f} ± {d.std(ddof=1) / np.sqrt(len(d)) if len(d) > 1 else np.nan:.4f}"
            print(line)
        for rival in RIVALS:
            d = np.array(leads[rival])
            low, high = np.quantile([d[rng.integers(0, len(d), len(d))].mean() for _ in range(10_000)], [0.025, 0.975])
            ratio = np.exp(
                np.mean(
                    [
                        np.log(np.sum(seconds[measure, n, rival]) / np.sum(seconds[measure, n, "scoreline"]))
                        for n in sets
                    ]
                )
            )
            print(
                f"  over {rival:<9} mean {d.mean():+.4f}, 95 % interval [{low:+.4f}, {high:+.4f}], lower end at least -0.005: "
                f"{'yes' if low >= -0.005 else 'NO'}; better by more than 0.002 on {int((d > 0.002).sum())} sets, worse on "
                f"{int((d < -0.002).sum())}; {ratio:.1f} times the speed"
            )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--measures", default=",".join(MEASURES))
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--max-seconds", type=float, default=None, help="start no further split after this time")
    parser.add_argument("--out", default="bench-output/chosen_alpha.json")
    options = parser.parse_args()
    if "SCORELINE_DATA" not in os.environ:
        sys.exit("set SCORELINE_DATA to a folder with NAME.svm or NAME.svm.xz; docs/datasets.md says how to make them")
    begin, folder, wanted = time.perf_counter(), Path(os.environ["SCORELINE_DATA"]), options.sets.split(",")
    missing = [n for n in wanted if not any((folder / f"{n}{end}").exists() for end in (".svm", ".svm.xz"))]
    if missing:
        print(f"missing in {folder}: {', '.join(missing)}")
    there = [n for n in wanted if n not in missing]
    data = dict(zip(there, Parallel(options.jobs)(delayed(small)(n) for n in there), strict=True))
    Path(options.out).parent.mkdir(exist_ok=True)

    def timely(name, split):
        if options.max_seconds is not None and time.perf_counter() - begin > options.max_seconds:
            return None
        return one_split(name, *data[name], split, options.measures.split(","))

    # The largest first, so that no core waits for one at the end.
    jobs = [(n, s) for s in range(options.splits) for n in sorted(data, key=lambda n: -data[n][0].nnz)]
    results = []
    for result in Parallel(options.jobs, return_as="generator_unordered")(delayed(timely)(*job) for job in jobs):
        if result is not None:
            results.append(result)
            Path(options.out).write_text(json.dumps(results))
            took = sum(row[3] for row in result["rows"])
            print(f"{result['set']} split {result['split']}: {took:.0f} s", file=sys.stderr, flush=True)
    print(f"{len(results)} of {len(jobs)} splits in {time.perf_counter() - begin:.0f} s, {options.jobs} jobs")
    summarise(results)


if __name__ == "__main__":
    main()
