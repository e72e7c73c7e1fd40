"""Does direct training pay? solver="auto" and plugin compared with LogisticRegression with a tuned threshold, on paired splits.

For every data set, at most ROWS stratified rows, SPLITS stratified splits (30 % test). C and alpha = 1 / (n C) are chosen
once per split by AUC on one inner share, for all measures and methods; that time counts for neither side. The rival is
TunedThresholdClassifierCV(LogisticRegression, cv=5) with the measure as scoring (for recall_at_precision: recall where
precision is at least 0.9, else 0). Prints one line per data set and measure, and for each measure the mean difference over
data sets with a bootstrap interval over data sets, and the geometric mean of the ratio of times. solver="auto" takes
`cost_search` for these measures, and `amp` for F1 and Jaccard with at least a hundred rows per feature.

    SCORELINE_DATA=folder python benchmarks/tuned_threshold.py --jobs 2 [--sets a9a,letter] [--splits 10] [--out file.json]
"""

import argparse
import json
import lzma
import os
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed

SETS = (
    "a9a adult-raw ijcnn1 covtype mnist letter poker kddcup99 census-income cover-4v2 campaign page-blocks0 abalone19 "
    "yeast4 reuters-mfx sector hiva"
).split()
MEASURES = ["f1", "jaccard", "gmean", "min_tpr_tnr", "mcc", "recall_at_precision"]
TOO_FEW_FOR_PRECISION = {"abalone19", "yeast4"}
ROWS, CS = 50_000, [1e-3, 1e-1, 1e1]
METHODS = ["auto", "plugin"]


def load(name):
    from sklearn.datasets import load_svmlight_file
    from sklearn.model_selection import train_test_split
    from sklearn.preprocessing import MaxAbsScaler

    folder = Path(os.environ["SCORELINE_DATA"])
    packed = folder / f"{name}.svm.xz"
    with lzma.open(packed) if packed.exists() else open(folder / f"{name}.svm", "rb") as file:
        X, y = load_svmlight_file(file)
    X, y = MaxAbsScaler().fit_transform(X).tocsr(), (y > 0).astype(int)
    if len(y) > ROWS:
        X, _, y, _ = train_test_split(X, y, train_size=ROWS, stratify=y, random_state=0)
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    return X, y


def scorer(name):
    from scoreline.measures import get_scorer

    return get_scorer(name)


def compile_kernels():
    """Fit tiny data once in every process, so that no side pays for compilation."""
    if os.environ.get("COMPILED_BY") == str(os.getpid()):
        return
    os.environ["COMPILED_BY"] = str(os.getpid())
    from scipy.sparse import csr_matrix

    from scoreline import MeasureClassifier

    rng = np.random.default_rng(0)
    X, y = csr_matrix(rng.standard_normal((200, 3))), (rng.random(200) < 0.3).astype(int)
    for method in METHODS:
        MeasureClassifier("f1", solver=method, random_state=0).fit(X, y).predict(X)


def one_split(name, X, y, split, measures):
    """Return rows (measure, method, test value, seconds) of one split."""
    warnings.simplefilter("ignore")
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import roc_auc_score
    from sklearn.model_selection import TunedThresholdClassifierCV, train_test_split

    from scoreline import MeasureClassifier

    compile_kernels()
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.3, stratify=y, random_state=split)
    inner = train_test_split(X_train, y_train, test_size=0.25, stratify=y_train, random_state=split)
    auc = {}
    for C in CS:
        model = LogisticRegression(C=C, max_iter=300, tol=1e-3).fit(inner[0], inner[2])
        auc[C] = roc_auc_score(inner[3], model.decision_function(inner[1]))
    C = max(auc, key=auc.get)
    alpha = 1.0 / (len(y_train) * C)
    rows = []
    for measure in measures:
        score = scorer(measure)
        models = {method: MeasureClassifier(measure, solver=method, alpha=alpha, random_state=0) for method in METHODS}
        models["rival"] = TunedThresholdClassifierCV(LogisticRegression(C=C, max_iter=1000), scoring=score, cv=5)
        for method, model in models.items():
            start = time.perf_counter()
            model.fit(X_train, y_train)
            seconds = time.perf_counter() - start
            predicted, truth = model.predict(X_test) > 0, y_test > 0
            counts = [int(((truth == t) & (predicted == q)).sum()) for t, q in ((1, 1), (0, 1), (1, 0), (0, 0))]
            rows.append((measure, method, float(score(model, X_test, y_test)), seconds, counts))
    return {"set": name, "split": split, "C": C, "rows": rows}


def summarise(results):
    """Print the table per data set and measure, then per measure with intervals, then times."""
    values, seconds, points = {}, {}, {}
    for result in results:
        for measure, method, value, time_, counts in result["rows"]:
            key = measure, result["set"], method
            values.setdefault(key, []).append(value)
            seconds.setdefault(key, []).append(time_)
            points.setdefault(key, []).append(counts)
    sets = sorted({key[1] for key in values})
    rng = np.random.default_rng(0)
    for measure in [m for m in MEASURES if any(key[0] == m for key in values)]:
        print(f"\n{measure}: mean test value over splits, difference to the rival with its standard error")
        differences = {method: [] for method in METHODS}
        for name in sets:
            if (measure, name, "rival") not in values:
                continue
            rival = np.array(values[measure, name, "rival"])
            line = f"  {name:<14} rival {rival.mean():.4f}"
            for method in METHODS:
                d = np.array(values[measure, name, method]) - rival
                differences[method].append(d.mean())
                line += f"   {method} {d.mean():+.4f} ± {d.std(ddof=1) / np.sqrt(len(d)):.4f}"
            print(line)
        for method in METHODS:
            d = np.array(differences[method])
            means = [d[rng.integers(0, len(d), len(d))].mean() for _ in range(10_000)]
            low, high = np.quantile(means, [0.025, 0.975])
            wins, losses = int((d > 0.002).sum()), int((d < -0.002).sum())
            print(
                f"  {method:<12} mean {d.mean():+.4f}, 95 % interval [{low:+.4f}, {high:+.4f}], better by more than 0.002 on "
                f"{wins} sets, worse on {losses}; {speed(seconds, method, measure=measure):.1f} times the speed"
            )
        if measure == "recall_at_precision":
            print("  test recall and test precision (mean over splits), splits that keep precision >= 0.9")
            for name in sets:
                if (measure, name, "rival") in points:
                    print(
                        f"  {name:<14}"
                        + "   ".join(operating(points[measure, name, m], m) for m in (*METHODS, "rival"))
                    )
    print("\ntimes: seconds of the rival (mean over measures and splits), speed of the others relative to it")
    for name in sets:
        mean = np.mean([s for key, all_ in seconds.items() if key[1:] == (name, "rival") for s in all_])
        print(f"  {name:<14} {mean:8.3f} s" + "".join(f"   {m} {speed(seconds, m, name=name):5.1f}" for m in METHODS))
    print("  geometric mean over all   " + "   ".join(f"{m} {speed(seconds, m):.1f}" for m in METHODS))


def speed(seconds, method, measure=None, name=None):
    """Return the geometric mean of the rival's time over the method's, of one measure or one data set if given."""
    pairs = [
        (rival, own)
        for key, times in seconds.items()
        if key[2] == "rival" and measure in (None, key[0]) and name in (None, key[1])
        for rival, own in zip(times, seconds[key[0], key[1], method], strict=True)
    ]
    return float(np.exp(np.mean([np.log(rival / own) for rival, own in pairs])))


def operating(points, method):
    """Return mean recall and precision of one method in words."""
    tp, fp, fn, _ = np.array(points, dtype=float).T
    precision = np.where(tp + fp > 0, tp / np.maximum(tp + fp, 1), 0.0)
    n_met = int((precision >= 0.9).sum())
    return f"{method} {np.mean(tp / (tp + fn)):.3f} {precision.mean():.3f} {n_met}/{len(tp)}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--measures", default=",".join(MEASURES))
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--max-seconds", type=float, default=None, help="start no further split after this time")
    parser.add_argument("--out", default="bench-output/tuned_threshold.json")
    options = parser.parse_args()
    if "SCORELINE_DATA" not in os.environ:
        sys.exit("set SCORELINE_DATA to a folder with NAME.svm or NAME.svm.xz; docs/datasets.md says how to make them")
    begin = time.perf_counter()
    wanted = options.sets.split(",")
    folder = Path(os.environ["SCORELINE_DATA"])
    missing = [n for n in wanted if not any((folder / f"{n}{end}").exists() for end in (".svm", ".svm.xz"))]
    if missing:
        print(f"missing in {folder}: {', '.join(missing)}")
    there = [n for n in wanted if n not in missing]
    data = dict(zip(there, Parallel(options.jobs)(delayed(load)(n) for n in there), strict=True))
    Path(options.out).parent.mkdir(exist_ok=True)

    def timely(name, X, y, split, measures):
        if options.max_seconds is not None and time.perf_counter() - begin > options.max_seconds:
            return None
        return one_split(name, X, y, split, measures)

    jobs = []
    for split in range(options.splits):
        for name, (X, y) in data.items():
            measures = [
                m
                for m in options.measures.split(",")
                if m != "recall_at_precision" or name not in TOO_FEW_FOR_PRECISION
            ]
            jobs.append((name, X, y, split, measures))
    results = []
    for result in Parallel(options.jobs, return_as="generator_unordered")(delayed(timely)(*job) for job in jobs):
        if result is not None:
            results.append(result)
            Path(options.out).write_text(json.dumps(results))
    print(f"{len(results)} of {len(jobs)} splits in {time.perf_counter() - begin:.0f} s, {options.jobs} jobs")
    summarise(results)


if __name__ == "__main__":
    main()
