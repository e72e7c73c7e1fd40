"""Are promises kept, and what do they cost? Violations and recall of guarantee, confidence and MAPIE over random splits.

For every set and split, ROWS random rows are training rows and the others stand for the distribution: the constraint is broken
if precision among the flagged ones of them is below the floor. `guarantee` and `confidence` are those of MeasureClassifier at
0.95. MAPIE (optional: pip install mapie) has logistic regression on 60 % of the same rows and calibrates on the other 40 %.
With --thresholds, ThresholdClassifier is compared with scikit-learn's TunedThresholdClassifierCV on F1, MCC and G-mean, both
with the same estimator and five folds, in turn.

    SCORELINE_DATA=folder python benchmarks/promises.py [--splits 20] [--sets adult-raw,campaign] [--thresholds]
"""

import argparse
import time
import warnings

import numpy as np
from scipy.stats import binomtest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import TunedThresholdClassifierCV, train_test_split

from scoreline import MeasureClassifier, ThresholdClassifier
from scoreline.measures import get_scorer
from tuned_threshold import load

CASES = {"adult-raw": (4000, 0.85), "campaign": (4000, 0.7), "page-blocks0": (1500, 0.9), "a9a": (4000, 0.8)}
LEVEL, MEASURES, ALPHA = 0.95, ("f1", "mcc", "gmean"), 1e-4


def is_met_and_recall(predicted, y, floor):
    """Return whether precision has the floor (nothing flagged breaks nothing), and the recall."""
    flagged = predicted.sum()
    return bool(flagged == 0 or y[predicted].mean() >= floor), float(predicted[y].mean())


def by_mapie(X, y, X_test, floor, seed):
    """Return the predictions of MAPIE's risk control, nothing flagged if it finds no threshold; None where it is not there."""
    try:
        from mapie.risk_control import BinaryClassificationController
    except ImportError:
        return None
    X_fit, X_hold, y_fit, y_hold = train_test_split(X, y, test_size=0.4, random_state=seed, stratify=y)
    model = LogisticRegression(max_iter=2000).fit(X_fit, y_fit)
    control = BinaryClassificationController(
        model.predict_proba, risk="precision", target_level=floor, confidence_level=LEVEL,
        best_predict_param_choice="recall",
    )  # fmt: skip
    try:
        control.calibrate(X_hold, y_hold)
        return np.asarray(control.predict(X_test)) > 0
    except ValueError:
        return np.zeros(X_test.shape[0], dtype=bool)


def promises(names, splits):
    """Print violations and mean recall for every set and method."""
    for name in names:
        rows, floor = CASES[name]
        X, y = load(name)
        found = {}
        for seed in range(splits):
            X_train, X_test, y_train, y_test = train_test_split(X, y, train_size=rows, random_state=seed)
            for kind in ("guarantee", "confidence"):
                params = {"precision": floor, kind: LEVEL}
                clf = MeasureClassifier("recall_at_precision", params, alpha=ALPHA, random_state=seed)
                predicted = clf.fit(X_train, y_train).predict(X_test) > 0
                found.setdefault(kind, []).append(is_met_and_recall(predicted, y_test > 0, floor))
            predicted = by_mapie(X_train, y_train, X_test, floor, seed)
            if predicted is not None:
                found.setdefault("MAPIE", []).append(is_met_and_recall(predicted, y_test > 0, floor))
        for kind, results in found.items():
            broken = sum(not is_met for is_met, _ in results)
            excess = binomtest(broken, splits, 1.0 - LEVEL, alternative="greater").pvalue if broken else 1.0
            recall = np.mean([recall for _, recall in results])
            silent = np.mean([recall == 0.0 for _, recall in results])
            print(
                f"| {name}, {rows}, {floor} | {kind} | {broken} of {splits} (p = {excess:.2g}) | {recall:.3f} | {silent:.0%} |",
                flush=True,
            )


def thresholds(names, splits):
    """Print the mean difference to TunedThresholdClassifierCV, and the ratio of times."""
    for name in names:
        X, y = load(name)
        rows = min(CASES[name][0], X.shape[0] // 2)
        for measure in MEASURES:
            gains, ratios = [], []
            for seed in range(splits):
                X_train, X_test, y_train, y_test = train_test_split(
                    X, y, train_size=rows, random_state=seed, stratify=y
                )
                model, scorer = LogisticRegression(C=10.0, max_iter=2000), get_scorer(measure)
                values, seconds = [], []
                for clf in (
                    TunedThresholdClassifierCV(model, scoring=scorer, cv=5),
                    ThresholdClassifier(model, measure, cv=5),
                ):
                    start = time.perf_counter()
                    clf.fit(X_train, y_train)
                    seconds.append(time.perf_counter() - start)
                    values.append(scorer._score_func(y_test, clf.predict(X_test)))
                gains.append(values[1] - values[0])
                ratios.append(seconds[0] / seconds[1])
            error = 1.96 * np.std(gains, ddof=1) / np.sqrt(splits)
            print(
                f"| {name}, {rows} | {measure} | {np.mean(gains):+.4f} ± {error:.4f} | {np.median(ratios):.2f} times faster |",
                flush=True,
            )


def main():
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--splits", type=int, default=20)
    parser.add_argument("--sets", default=",".join(CASES))
    parser.add_argument("--thresholds", action="store_true")
    options = parser.parse_args()
    (thresholds if options.thresholds else promises)(options.sets.split(","), options.splits)


if __name__ == "__main__":
    main()
