"""Which defaults of scaling, alpha and risk give the best test measure? Every candidate on the same splits of 31 data sets.

For each data set and split: at most ROWS stratified training rows, at most TEST_ROWS of the others for testing, values as in
the file. Ranking measures share their fits: each risk is trained once per scaling and alpha, and evaluated by all of them.
Count-based measures are fitted one by one with the default solver. "C=1" is alpha = 1 / n, scikit-learn's default, and is
skipped where it is within a factor of 1.5 of 1e-4.

The cells, one data set, split and group of measures each, run in order of value. Every finished cell is a line of --out; after
--limit seconds no fit begins. Table: for each measure and candidate the mean difference to today's default over data sets, an
interval over data sets, data sets better and worse by more than 0.002, the worst data set, and the ratio of fit times.

    SCORELINE_DATA=folder python benchmarks/defaults.py --jobs 16 --limit 480 --out bench-output/defaults.jsonl
    python benchmarks/defaults.py --join bench-output/defaults.jsonl
"""

import argparse
import json
import os
import sys
import time
import warnings
from collections import defaultdict
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed

SETS = (
    "letter page-blocks0 magic04 adult-raw ijcnn1 campaign covtype cod-rna poker satimage abalone19 yeast4 annthyroid shuttle "
    "kddcup99 cover-4v2 w8a svmguide1 segment german.numer diabetes sonar fourclass colon-cancer pcmac reuters-mfx sylva hiva "
    "mnist sector census-income"
).split()
ROWS, TEST_ROWS, SPLITS = 10_000, 30_000, 5
DENSE_SHARE = 0.3  # of non-zero values from which on rows are stored dense
MAX_TIME = 3.0  # seconds of one fit
SCALINGS = (None, "standard", "maxabs")
RANKINGS = ("roc_auc", "average_precision", "prbep", "partial_roc_auc", "precision_at_k", "recall_at_k")
DEFAULT_RISKS = dict(zip(RANKINGS, ("roc_area", "roc_area", "prbep", "roc_area", "logistic", "logistic"), strict=True))
RISKS = {  # of rankings: the measure to fit and its risk; the first two are what these measures take by default
    "roc_area": ("roc_auc", "auto"),
    "prbep": ("prbep", "auto"),
    "logistic": ("roc_auc", "logistic"),
    "average_precision": ("average_precision", "average_precision"),
}
TODAY = (None, 1e-4)
NOTABLE = 0.002
MEASURE_PARAMS = {"fbeta": {"beta": 2.0}, "precision_at_k": {"k": 0.05}, "recall_at_k": {"k": 0.05}}


def read(name):
    """Return at most ROWS + TEST_ROWS rows of a data set, dense or CSR as their share of non-zero values says."""
    from sklearn.model_selection import train_test_split

    from scoreline.io import read_data

    folder = Path(os.environ["SCORELINE_DATA"])
    found = read_data(next(p for p in (folder / f"{name}.svm.xz", folder / f"{name}.svm") if p.exists()))
    X, y = found.X, (found.y > 0).astype(int)
    if len(y) > ROWS + TEST_ROWS:
        X, _, y, _ = train_test_split(X, y, train_size=ROWS + TEST_ROWS, stratify=y, random_state=0)
    return (X.toarray() if X.nnz > DENSE_SHARE * np.prod(X.shape) else X), y


def split_rows(X, y, split):
    """Return training and test rows, 70 % and 30 % or at most ROWS and TEST_ROWS."""
    from sklearn.model_selection import train_test_split

    train = min(ROWS, int(0.7 * len(y)))
    X_train, X_test, y_train, y_test = train_test_split(X, y, train_size=train, stratify=y, random_state=split)
    return X_train, y_train, X_test, y_test


def alphas(n):
    """Return the alphas that are tried for n rows by name, today's first."""
    named = {"1e-4": 1e-4, "C=1": 1.0 / n, "1e-3": 1e-3, "1e-5": 1e-5, "1e-2": 1e-2}
    return {name: alpha for name, alpha in named.items() if name != "C=1" or abs(np.log(1e-4 * n)) > np.log(1.5)}


def count_measures():
    from scoreline.measures import CountsBasedMeasure
    from scoreline.measures.registry import all_measures

    first = ("f1", "gmean", "mcc", "recall_at_precision", "accuracy", "balanced_accuracy")
    names = [name for name, kind in all_measures().items() if issubclass(kind, CountsBasedMeasure)]
    return [*first, *(name for name in names if name not in first)]


def fit_one(measure, risk, X, y, **options):
    """Return a fitted model, its seconds and what there is to say of it."""
    from scoreline import MeasureClassifier

    options |= {"measure_params": MEASURE_PARAMS.get(measure), "max_time": MAX_TIME, "random_state": 0, "n_jobs": 1}
    model = MeasureClassifier(measure, risk=risk, **options)
    begin = time.perf_counter()
    model.fit(X, y)
    seconds = time.perf_counter() - begin
    return model, {"seconds": seconds, "status": model.status_, "constant": not model.coef_.any()}


def candidates(group, n):
    """Yield (scaling, alpha's name, alpha, risk) of a group of measures, the most valuable first."""
    for name, alpha in alphas(n).items():
        for scaling in SCALINGS:
            if group == "ranking":
                yield from ((scaling, name, alpha, risk) for risk in RISKS)
            elif name != "1e-2":
                yield scaling, name, alpha, "auto"


def run_cell(name, X, y, split, group, deadline):
    """Return the lines of one data set, split and group of measures."""
    from scoreline.measures import get_measure

    warnings.simplefilter("ignore")
    X_train, y_train, X_test, y_test = split_rows(X, y, split)
    lines = []
    for scaling, alpha_name, alpha, risk in candidates(group, len(y_train)):
        if time.time() > deadline:
            break
        head = {"set": name, "split": split, "scaling": scaling, "alpha": alpha_name, "risk": risk}
        try:
            model, facts = fit_one(*RISKS.get(risk, (group, risk)), X_train, y_train, scaling=scaling, alpha=alpha)
            scores = model.decision_function(X_test)
        except Exception as error:  # a candidate that fails is a finding, not the end of the run
            lines.append(head | {"measure": group, "error": f"{type(error).__name__}: {error}"[:200]})
            continue
        for each in RANKINGS if group == "ranking" else (group,):
            value = get_measure(each, MEASURE_PARAMS.get(each)).value(y_test, scores)
            lines.append(head | facts | {"measure": each, "value": float(value)})
    return lines


def compile_kernels(dense, groups):
    """Fit tiny data, so that no cell pays for compilation: kernels are cached on disk."""
    from scipy.sparse import csr_array

    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((300, 4)), (rng.random(300) < 0.3).astype(int)
    rows = X if dense else csr_array(X * (rng.random(X.shape) < 0.3))
    for group in groups:
        run_cell("none", rows, y, 0, group, np.inf)


def cells(sets, groups, data, splits):
    """Return (set, split, group) in order of value: first splits first, and rankings and popular measures before others."""
    rank = {group: i for i, group in enumerate(groups)}
    every = [(name, split, group) for split in range(splits) for group in groups for name in sets if name in data]
    return sorted(every, key=lambda cell: (cell[1] + 2 * (rank[cell[2]] > 6), rank[cell[2]]))


def run(options):
    sets, groups = options.sets.split(","), ["ranking", *count_measures()]
    if options.groups:
        groups = [group for group in groups if group in options.groups.split(",")]
    begin = time.time()
    warm = [delayed(compile_kernels)(dense, groups[i::4]) for dense in (True, False) for i in range(4)]
    pool = Parallel(options.jobs)
    data = dict(zip(sets, pool([*warm, *(delayed(read)(name) for name in sets)])[len(warm) :], strict=True))
    print(f"read and compiled in {time.time() - begin:.0f} s", file=sys.stderr, flush=True)
    deadline = begin + options.limit
    jobs = cells(sets, groups, data, options.splits)
    Path(options.out).parent.mkdir(exist_ok=True, parents=True)
    stream = Parallel(options.jobs, return_as="generator_unordered")
    tasks = (delayed(run_cell)(name, *data[name], split, group, deadline) for name, split, group in jobs)
    with open(options.out, "a") as file:
        for lines in stream(tasks):
            file.writelines(json.dumps(line) + "\n" for line in lines)
            file.flush()
    print(f"{time.time() - begin:.0f} s, {options.jobs} processes", file=sys.stderr)


def table(path):
    """Print, for each measure and candidate, the difference to today's default in pairs of data set and split."""
    lines = [json.loads(line) for line in Path(path).read_text().splitlines()]
    errors = [line for line in lines if "error" in line]
    values, seconds = defaultdict(dict), defaultdict(dict)
    constant = defaultdict(int)
    for line in lines:
        if "error" not in line:
            key = line["measure"], (line["scaling"], line["alpha"], line["risk"])
            values[key][line["set"], line["split"]] = line["value"]
            seconds[key][line["set"], line["split"]] = line["seconds"]
            constant[key] += line["constant"]
    rng = np.random.default_rng(0)
    for measure in dict.fromkeys(key[0] for key in values):
        today = (None, "1e-4", DEFAULT_RISKS.get(measure, "auto"))
        base, base_seconds = values[measure, today], seconds[measure, today]
        splits = {split for _, split in base}
        print(f"\n{measure}: today {today[2]}, mean {np.mean(list(base.values())):.4f}, {len(splits)} splits")
        for candidate in [c for m, c in values if m == measure and c != today]:
            own = filled(values, measure, candidate)
            own_seconds = filled(seconds, measure, candidate)
            by_set = defaultdict(list)
            for key in own.keys() & base.keys():
                by_set[key[0]].append(own[key] - base[key])
            if not by_set:
                continue
            means = {name: float(np.mean(d)) for name, d in by_set.items()}
            d = np.array(list(means.values()))
            low, high = np.quantile(d[rng.integers(0, len(d), (4000, len(d)))].mean(axis=1), [0.025, 0.975])
            ratio = np.exp(np.mean([np.log(own_seconds[k] / base_seconds[k]) for k in own.keys() & base.keys()]))
            worst, best = min(means, key=means.get), max(means, key=means.get)
            print(
                f"  {candidate[0]!s:<9}{candidate[1]:<5} {candidate[2]:<18}{d.mean():+.4f} [{low:+.4f}, {high:+.4f}] median "
                f"{np.median(d):+.4f}, {int((d > NOTABLE).sum()):>2} / {int((d < -NOTABLE).sum()):<2} of {len(d)}; "
                f"worst {worst} {means[worst]:+.3f}, best {best} {means[best]:+.3f}; time {ratio:.2f}; "
                f"constant {constant[measure, candidate]}"
            )
    for line in errors[:20]:
        print("ERROR", line)


def filled(found, measure, candidate):
    """Return the results of a candidate; for C=1 those of alpha 1e-4 where the two are the same (ROWS rows)."""
    scaling, alpha, risk = candidate
    own = found[measure, candidate]
    return found[measure, (scaling, "1e-4", risk)] | own if alpha == "C=1" else own


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--groups", default="", help='"ranking" and count-based measures; default: all')
    parser.add_argument("--splits", type=int, default=SPLITS)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--limit", type=float, default=np.inf, help="begin no fit after this many seconds")
    parser.add_argument("--out", default="bench-output/defaults.jsonl")
    parser.add_argument("--join", help="print the table of such a file")
    options = parser.parse_args()
    table(options.join) if options.join else run(options)


if __name__ == "__main__":
    main()
