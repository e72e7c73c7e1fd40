"""Probabilities: our sigmoid compared with scikit-learn's calibrations of the same classifier, and logistic regression.

    SCORELINE_DATA=folder python benchmarks/probabilities.py [--sets a9a,letter] [--measures roc_auc,f1] [--alpha 1e-4]

At most 20,000 stratified rows, half of them for testing, features divided by their largest magnitude. Prints log loss, the
mean distance of probabilities from the share of positives in ten bins, the change of AUC against the scores, the share of
pairs of a positive and a negative row that the probabilities make equal, and seconds of fit and calibration together.
"""

import argparse
import os
import sys
import time
import warnings

import numpy as np

from chosen_alpha import small
from scoreline import MeasureClassifier
from scoreline.report import ReliabilityDisplay

SETS = "a9a,ijcnn1,letter,census-income,page-blocks0,campaign"


def tied_pairs(y, values):
    """Return the share of pairs of a positive and a negative row whose values are equal."""
    levels, place = np.unique(values, return_inverse=True)
    positive, negative = (np.bincount(place[y == side], minlength=len(levels)).astype(float) for side in (1, 0))
    return float((positive * negative).sum() / (positive.sum() * negative.sum()))


def main():
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import log_loss, roc_auc_score
    from sklearn.model_selection import train_test_split

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", default=SETS)
    parser.add_argument("--measures", default="roc_auc,f1")
    parser.add_argument("--alpha", type=float, default=1e-4)
    options = parser.parse_args()
    if "SCORELINE_DATA" not in os.environ:
        sys.exit("set SCORELINE_DATA to a folder with NAME.svm or NAME.svm.xz; docs/datasets.md says how to make them")
    warnings.simplefilter("ignore")
    print("| data | trained for | probabilities | log loss | distance | change of AUC | pairs tied | seconds |")
    print("| --- | --- | --- | ---: | ---: | ---: | ---: | ---: |")
    for name in options.sets.split(","):
        X, y = small(name)
        A, B, a, b = train_test_split(X, y, test_size=0.5, stratify=y, random_state=0)

        def show(trained_for, kind, model, name=name, A=A, a=a, B=B, b=b):
            begin = time.perf_counter()
            model.fit(A, a)
            seconds = time.perf_counter() - begin
            P = model.predict_proba(B)[:, 1]
            inner = model.calibrated_classifiers_[0].estimator if hasattr(model, "calibrated_classifiers_") else model
            z = inner.decision_function(B)
            display = ReliabilityDisplay.from_predictions(b, P, pos_label=1, probabilities=P)
            change = roc_auc_score(b, P) - roc_auc_score(b, z)
            print(
                f"| {name} | {trained_for} | {kind} | {log_loss(b, P):.4f} | {display.distance:.4f} | {change:+.5f} | "
                f"{tied_pairs(b, P) - tied_pairs(b, z):.5f} | {seconds:.2f} |",
                flush=True,
            )

        for measure in options.measures.split(","):
            plain = {"measure": measure, "alpha": options.alpha, "random_state": 0}
            MeasureClassifier(**plain, probability=True).fit(A[:2000], a[:2000])  # compiled
            show(measure, "probability=True", MeasureClassifier(**plain, probability=True))
            for method in ("sigmoid", "isotonic"):
                around = CalibratedClassifierCV(MeasureClassifier(**plain), method=method, cv=5, ensemble=False)
                show(measure, f"scikit-learn, {method}", around)
        show("log loss", "logistic regression", LogisticRegression(C=1.0 / (len(a) * options.alpha), max_iter=1000))


if __name__ == "__main__":
    main()
