"""Which defaults of scaling, alpha and risk give the best test measure? Every candidate on the same splits of 25 data sets.

For each data set and split: at most --rows stratified training rows, at most --test-rows of the others for testing, values as
in the file. Ranking measures share their fits: each risk is trained once per scaling and alpha, and evaluated by all of them.
Count-based measures are fitted one by one with the default solver. The scaling "auto" is "standard" for dense rows and "maxabs"
for sparse ones. "C=1" is alpha = 1 / n, scikit-learn's default, and is skipped where it is within a factor of 1.5 of 1e-4.

The cells, one data set, split, group of measures and alpha each, run in order of value. Every finished cell adds its lines to
--out, and a second run skips the cells that are there; after --limit seconds no cell begins. Times are processor times. Table:
for each measure and candidate the mean difference to the first candidate over data sets, an interval over data sets, data
sets better and worse by more than 0.002, the worst data set, and the ratio of fit times.

    SCORELINE_DATA=folder python benchmarks/defaults.py --out bench-output/defaults.jsonl
    python benchmarks/defaults.py --join bench-output/defaults.jsonl
"""

import argparse
import itertools
import json
import os
import sys
import time
import warnings
from collections import defaultdict
from pathlib import Path

import numpy as np

SETS = (
    "letter page-blocks0 magic04 adult-raw ijcnn1 campaign cod-rna poker satimage abalone19 yeast4 annthyroid shuttle kddcup99 "
    "w8a svmguide1 segment german.numer diabetes sonar fourclass colon-cancer pcmac reuters-mfx hiva"
).split()
ROWS, TEST_ROWS, SPLITS = 3_000, 10_000, 3
DENSE_SHARE = 0.3  # of non-zero values from which on rows are stored dense
MAX_TIME = 60.0  # seconds of one fit
SCALINGS = (None, "auto")
RANKINGS = ("roc_auc", "average_precision", "prbep", "partial_roc_auc", "precision_at_k", "recall_at_k")
DEFAULT_RISKS = dict(
    zip(RANKINGS, ("roc_area", "roc_area", "prbep, fallback", "roc_area", "logistic", "logistic"), strict=True)
)
RISKS = {  # of rankings: the measure to fit and its risk; "auto" trains the logistic risk where that of prbep is degenerate
    "roc_area": ("roc_auc", "roc_area"),
    "prbep": ("prbep", "prbep"),
    "prbep, fallback": ("prbep", "auto"),
    "logistic": ("roc_auc", "logistic"),
    "average_precision": ("average_precision", "average_precision"),
}
THRESHOLDS = {"threshold train": "train", "threshold holdout": "holdout"}  # of count-based measures, with --thresholds
NOTABLE = 0.002
MEASURE_PARAMS = {"fbeta": {"beta": 2.0}, "precision_at_k": {"k": 0.05}, "recall_at_k": {"k": 0.05}}


def read(name, most):
    """Return at most so many rows of a data set, dense or CSR as their share of non-zero values says."""
    from sklearn.model_selection import train_test_split

    from scoreline.io import read_data

    folder = Path(os.environ["SCORELINE_DATA"])
    found = read_data(next(p for p in (folder / f"{name}.svm.xz", folder / f"{name}.svm") if p.exists()))
    X, y = found.X, (found.y > 0).astype(int)
    if len(y) > most:
        X, _, y, _ = train_test_split(X, y, train_size=most, stratify=y, random_state=0)
    return (X.toarray() if X.nnz > DENSE_SHARE * np.prod(X.shape) else X), y


def split_rows(X, y, split, rows):
    """Return training and test rows, 70 % and 30 % or at most `rows` for training."""
    from sklearn.model_selection import train_test_split

    train = min(rows, int(0.7 * len(y)))
    X_train, X_test, y_train, y_test = train_test_split(X, y, train_size=train, stratify=y, random_state=split)
    return X_train, y_train, X_test, y_test


def alphas(n):
    """Return the alphas that are tried for n rows by name."""
    named = {"1e-4": 1e-4, "C=1": 1.0 / n, "1e-3": 1e-3}
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
    begin = time.process_time()
    model.fit(X, y)
    seconds = time.process_time() - begin
    return model, {"seconds": seconds, "status": model.status_, "constant": not model.coef_.any(), "plan": model.plan_}


def run_cell(name, X, y, split, group, alpha_name, rows, thresholds=()):
    """Return the lines of one data set, split, group of measures and alpha."""
    from scoreline.measures import get_measure

    warnings.simplefilter("ignore")
    X_train, y_train, X_test, y_test = split_rows(X, y, split, rows)
    lines = []
    if alpha_name not in alphas(len(y_train)):
        return [{"set": name, "split": split, "alpha": alpha_name, "group": group, "skipped": True}]
    alpha = alphas(len(y_train))[alpha_name]
    for scaling, risk in itertools.product(SCALINGS, RISKS if group == "ranking" else ("auto", *thresholds)):
        head = {"set": name, "split": split, "alpha": alpha_name, "group": group, "scaling": scaling, "risk": risk}
        kind = {None: None, "auto": "standard" if isinstance(X, np.ndarray) else "maxabs"}[scaling]
        try:
            options = {"scaling": kind, "alpha": alpha, "threshold": THRESHOLDS.get(risk, "auto")}
            own = (group, "auto") if risk in THRESHOLDS else RISKS.get(risk, (group, risk))
            model, facts = fit_one(*own, X_train, y_train, **options)
            scores = model.decision_function(X_test)
        except Exception as error:  # a candidate that fails is a finding, not the end of the run
            lines.append(head | {"measure": group, "error": f"{type(error).__name__}: {error}"[:200]})
            continue
        for each in RANKINGS if group == "ranking" else (group,):
            value = get_measure(each, MEASURE_PARAMS.get(each)).value(y_test, scores)
            lines.append(head | facts | {"measure": each, "value": float(value)})
    return lines


def cells(sets, groups, splits, named):
    """Return (set, split, group, alpha) in order of value: today's alpha, first splits, rankings and popular measures first."""
    rank = {group: i for i, group in enumerate(groups)}
    every = itertools.product(sets, range(splits), groups, named)

    def value(cell):
        _, split, group, alpha = cell
        return split + 2 * (rank[group] > 6) + 3 * (alpha != "1e-4") * (1 + (group != "ranking")), rank[group]

    return sorted(every, key=value)


def finished(path):
    """Return the cells that a file has."""
    lines = [json.loads(line) for line in Path(path).read_text().splitlines()] if Path(path).exists() else []
    return {tuple(line[key] for key in ("set", "split", "group", "alpha")) for line in lines}


def run(options):
    sets, groups = options.sets.split(","), ["ranking", *count_measures()]
    if options.groups:
        groups = [group for group in groups if group in options.groups.split(",")]
    begin, known = time.time(), finished(options.out)
    data = {name: read(name, options.rows + options.test_rows) for name in sets}
    print(f"read in {time.time() - begin:.0f} s", file=sys.stderr, flush=True)
    Path(options.out).parent.mkdir(exist_ok=True, parents=True)
    compiled = set()
    for cell in cells(sets, groups, options.splits, options.alphas.split(",")):
        if time.time() - begin > options.limit or cell in known:
            continue
        name, split, group, alpha = cell
        kind = group, isinstance(data[name][0], np.ndarray)
        if kind not in compiled:  # no cell pays for compilation
            compiled.add(kind)
            run_cell(name, *data[name], split, group, alpha, 300)
        extra = THRESHOLDS if options.thresholds else ()
        lines = run_cell(name, *data[name], split, group, alpha, options.rows, extra)
        with open(options.out, "a") as file:
            file.writelines(json.dumps(line) + "\n" for line in lines)
    print(f"{time.time() - begin:.0f} s", file=sys.stderr)


def table(path):
    """Print, for each measure and candidate, the difference to today's default in pairs of data set and split."""
    lines = [json.loads(line) for line in Path(path).read_text().splitlines()]
    errors = [line for line in lines if "error" in line]
    lines = [line for line in lines if "skipped" not in line]
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
    """Return the results of a candidate; for C=1 those of alpha 1e-4 where the two are about the same."""
    scaling, alpha, risk = candidate
    own = found[measure, candidate]
    return found[measure, (scaling, "1e-4", risk)] | own if alpha == "C=1" else own


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--groups", default="", help='"ranking" and count-based measures; default: all')
    parser.add_argument("--alphas", default=",".join(alphas(1)), help="by name")
    parser.add_argument("--splits", type=int, default=SPLITS)
    parser.add_argument("--thresholds", action="store_true", help="other rules of the threshold, too")
    parser.add_argument("--rows", type=int, default=ROWS, help="training rows at most")
    parser.add_argument("--test-rows", type=int, default=TEST_ROWS, help="test rows at most")
    parser.add_argument("--limit", type=float, default=np.inf, help="begin no cell after this many seconds")
    parser.add_argument("--out", default="bench-output/defaults.jsonl")
    parser.add_argument("--join", help="print the table of such a file")
    options = parser.parse_args()
    table(options.join) if options.join else run(options)


if __name__ == "__main__":
    main()
