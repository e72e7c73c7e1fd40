"""Objectives of scoreline in LightGBM against its own, and Blend against its members, on the same splits of 18 data sets.

    SCORELINE_DATA=folder python benchmarks/objectives.py [--sets diabetes,yeast4] [--splits 5] [--rows 10000]
        [--what objectives,blend] [--out FILE.jsonl]
    python benchmarks/objectives.py --join FILE.jsonl

For every data set: at most ROWS rows, stratified splits with 30 % test rows. One process, one thread.

- objectives: LightGBM with five objectives: its own ("plain"), its own with `is_unbalance`, and three of
  `lightgbm_objective`. At most ROUNDS rounds, learning rate RATE, otherwise the defaults. Three folds of the training rows
  give a curve of AUC and one of average precision over the rounds. The best mean of a curve chooses the number of rounds
  of each objective, and the objective. Each objective is then trained again on all training rows.
- blend: `Blend` of a linear model, an additive model (each by MeasureClassifierCV, three folds) and LightGBM with 100
  rounds, for AUC. Its rivals are its members, and the mean of their scores with equal weights, each score divided by its
  standard deviation over the test rows.

Splits are worked on one after another, each with the small sets first. A finished cell adds its lines to the output file,
which is read again so that a run can be continued.
"""

import argparse
import json
import os
import time
import warnings
from functools import cache
from pathlib import Path
from statistics import fmean as mean
from statistics import median

# In the order in which they are trained.
SETS = (
    "vowel diabetes german.numer svmguide3 yeast4 yeast6 svmguide1 abalone19 satimage page-blocks0 annthyroid letter "
    "cod-rna magic04 cover-4v2 poker ijcnn1 campaign"
).split()
OBJECTIVES = {
    "plain": None,
    "is_unbalance": None,
    "pairs": ("roc_auc", "roc_area_squared"),
    "hinge pairs": ("roc_auc", "roc_area"),
    "average precision": ("average_precision", "average_precision"),
}
LIBRARY = ("plain", "is_unbalance")
MEASURES = {"auc": "roc_auc", "ap": "average_precision"}
ROUNDS, RATE, FOLDS = 200, 0.1, 3
BLEND_ROUNDS, BLEND_ALPHAS = 100, (10.0, 1.0, 0.1, 0.01, 0.001)
MEMBERS = ("linear", "additive", "lightgbm")
FEW = 60  # positives of a training set: fewer are listed on a line of their own


@cache
def load(name, rows):
    from additive import load

    return load(name, rows)


def values(y, scores):
    """Return AUC and average precision."""
    from scoreline.measures import get_measure

    return {key: float(get_measure(name).value(y > 0, scores)) for key, name in MEASURES.items()}


def lightgbm_model(objective, rounds):
    import lightgbm

    from scoreline.objectives import lightgbm_objective

    options = {"n_estimators": rounds, "learning_rate": RATE, "verbose": -1, "n_jobs": 1}
    if objective in LIBRARY:
        return lightgbm.LGBMClassifier(is_unbalance=objective == "is_unbalance", **options)
    measure, risk = OBJECTIVES[objective]
    return lightgbm.LGBMClassifier(objective=lightgbm_objective(measure, risk=risk), **options)


def curves(objective, X, y, splits):
    """Return the mean over folds of AUC and average precision after each round."""
    import numpy as np

    total = {}
    for train, held in splits:
        found = {}
        model = lightgbm_model(objective, ROUNDS).set_params(metric=["auc", "average_precision"])
        model.fit(X[train], y[train], eval_set=[(X[held], y[held])], callbacks=[recorded(found)])
        for key, name in {"auc": "auc", "ap": "average_precision"}.items():
            total[key] = total.get(key, 0.0) + np.array(found["valid_0"][name]) / len(splits)
    return total


def recorded(found):
    import lightgbm

    return lightgbm.record_evaluation(found)


def objectives(X, y, X_test, y_test):
    """Yield a line per objective: values on the test rows, and the best means over the folds, which choose."""
    from sklearn.model_selection import StratifiedKFold

    splits = list(StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(X, y))
    for objective in OBJECTIVES:
        start = time.process_time()
        found = curves(objective, X, y, splits)
        rounds = {key: int(curve.argmax()) + 1 for key, curve in found.items()}
        model = lightgbm_model(objective, max(rounds.values())).fit(X, y)
        line = {"method": objective}
        for key, count in rounds.items():
            scores = model.predict(X_test, raw_score=True, num_iteration=count)
            line |= {key: values(y_test, scores)[key], f"{key}_held": float(found[key].max()), f"{key}_rounds": count}
        yield line | {"cpu": round(time.process_time() - start, 2)}


def blend(X, y, X_test, y_test):
    """Yield a line for the blend, one for each member, and one for equal weights."""
    from scoreline import Blend, MeasureClassifierCV

    start = time.process_time()
    members = [
        ("linear", MeasureClassifierCV("roc_auc", scaling="standard", alphas=BLEND_ALPHAS, cv=3)),
        ("additive", MeasureClassifierCV("roc_auc", features="additive", alphas=BLEND_ALPHAS, cv=3)),
        ("lightgbm", lightgbm_model("plain", BLEND_ROUNDS)),
    ]
    clf = Blend(members, "roc_auc").fit(X, y)
    scores = clf.member_scores(X_test)
    yield {
        "method": "blend", **values(y_test, clf.decision_function(X_test)), "weights": clf.weights_.round(3).tolist(),
        "alpha": clf.alpha_, "gap": clf.gap_, "cpu": round(time.process_time() - start, 2),
    }  # fmt: skip
    for name, own in zip(MEMBERS, scores.T, strict=True):
        yield {"method": name, **values(y_test, own)}
    yield {"method": "equal weights", **values(y_test, (scores / scores.std(axis=0)).mean(axis=1))}


def run(options):
    from sklearn.model_selection import train_test_split

    warnings.simplefilter("ignore")
    out = Path(options.out)
    out.parent.mkdir(parents=True, exist_ok=True)
    done = {(line["what"], line["set"], line["split"]) for line in read(out)}
    work = {"objectives": objectives, "blend": blend}
    for split in range(options.splits):
        for name in options.sets.split(",") if options.sets else SETS:
            for what in options.what.split(","):
                if (what, name, split) in done:
                    continue
                X, y = load(name, options.rows)
                X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.3, stratify=y, random_state=split)
                facts = {
                    "what": what, "set": name, "split": split, "rows": len(y), "columns": X.shape[1],
                    "positives": int(y_train.sum()),
                }  # fmt: skip
                lines = [facts | line for line in work[what](X_train, y_train, X_test, y_test)]
                with out.open("a") as file:  # one write: a cell is there as a whole, or not at all
                    file.write("".join(json.dumps(line) + "\n" for line in lines))
                shown = ", ".join(f"{line['method']} {line['auc']:.4f}" for line in lines)
                print(f"{what} {name} {split}: {shown}", flush=True)


def join(lines):
    """Print the tables in Markdown: means over splits, and differences from the best rival of each set."""
    sets = [name for name in SETS if any(line["set"] == name for line in lines)]
    cells = {}
    for line in lines:
        cells.setdefault((line["what"], line["set"]), {}).setdefault(line["split"], {})[line["method"]] = line
    for key, measure in MEASURES.items():
        print(f"\n### Objectives, {measure}\n")
        print(
            f"| set | positives | {' | '.join(OBJECTIVES)} | chosen | against the better of two | chosen objectives |"
        )
        print("|" + " --- |" * (len(OBJECTIVES) + 5))
        differences, few = [], []
        for name in sets:
            splits = list(cells["objectives", name].values())
            chosen = [max(found.values(), key=lambda line: line[f"{key}_held"]) for found in splits]
            means = {method: mean(found[method][key] for found in splits) for method in OBJECTIVES}
            best = max(means[method] for method in LIBRARY)
            value, positives = mean(line[key] for line in chosen), splits[0]["plain"]["positives"]
            differences.append(value - best)
            few += [value - best] if positives < FEW else []
            names = [line["method"] for line in chosen]
            counts = ", ".join(f"{names.count(each)} {each}" for each in OBJECTIVES if each in names)
            shown = " | ".join(f"{each:.4f}" for each in means.values())
            print(f"| {name} | {positives} | {shown} | {value:.4f} | {value - best:+.4f} | {counts} |")
        print(
            f"\nMean over sets {mean(differences):+.4f}, median {median(differences):+.4f}; "
            f"with less than {FEW} positives {mean(few):+.4f} ({len(few)} sets)."
        )
    for key, measure in MEASURES.items():
        print(f"\n### Blend, {measure}\n")
        print(
            f"| set | {' | '.join(MEMBERS)} | equal weights | blend | against the best member | against equal weights |"
        )
        print("|" + " --- |" * (len(MEMBERS) + 5))
        best_member, equal = [], []
        for name in sets:
            splits = list(cells["blend", name].values())
            means = {m: mean(found[m][key] for found in splits) for m in (*MEMBERS, "equal weights", "blend")}
            best_member.append(means["blend"] - max(means[member] for member in MEMBERS))
            equal.append(means["blend"] - means["equal weights"])
            shown = " | ".join(f"{each:.4f}" for each in means.values())
            print(f"| {name} | {shown} | {best_member[-1]:+.4f} | {equal[-1]:+.4f} |")
        print(
            f"\nMean over sets against the best member {mean(best_member):+.4f}, against equal weights {mean(equal):+.4f}. "
            f"Ahead of equal weights on {sum(each > 0.0 for each in equal)} of {len(sets)} sets, more than 0.001 below "
            f"the best member on {sum(each < -0.001 for each in best_member)}."
        )


def read(path):
    return [json.loads(line) for line in Path(path).read_text().splitlines()] if Path(path).exists() else []


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets")
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--rows", type=int, default=10_000, help="at most as many of a set")
    parser.add_argument("--what", default="objectives,blend")
    parser.add_argument("--out", default="bench-output/objectives.jsonl")
    parser.add_argument("--join", metavar="FILE")
    given = parser.parse_args()
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
        os.environ[name] = "1"
    if given.join:
        join(read(given.join))
    else:
        run(given)
