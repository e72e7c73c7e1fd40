"""Probabilities of a classifier trained for AUC: a sigmoid keeps the ranking, isotonic regression makes ties.

python examples/probabilities.py [--rows 20000]
"""

import argparse

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.metrics import brier_score_loss, log_loss, roc_auc_score

from scoreline import MeasureClassifier
from scoreline.data import make_imbalanced
from scoreline.report import ReliabilityDisplay


def tied_pairs(y: np.ndarray, values: np.ndarray) -> float:
    """Return the share of pairs of a positive and a negative row whose values are equal: AUC counts them as halves."""
    levels, place = np.unique(values, return_inverse=True)
    positive, negative = (np.bincount(place[y == side], minlength=len(levels)).astype(float) for side in (1, 0))
    return float((positive * negative).sum() / (positive.sum() * negative.sum()))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=20_000)
    rows = parser.parse_args().rows
    X, y = make_imbalanced(n_samples=2 * rows, positive_share=0.1, random_state=0)
    X, y, Xt, yt = X[:rows], y[:rows], X[rows:], y[rows:]

    clf = MeasureClassifier("roc_auc", scaling="standard", probability=True, random_state=0).fit(X, y)
    plain = MeasureClassifier("roc_auc", scaling="standard", random_state=0)
    isotonic = CalibratedClassifierCV(plain, method="isotonic", ensemble=False).fit(X, y)
    scores = clf.decision_function(Xt)
    print(f"AUC of the scores {roc_auc_score(yt, scores):.5f}, {len(np.unique(scores)):,} different ones")
    for name, P in (("sigmoid", clf.predict_proba(Xt)[:, 1]), ("isotonic", isotonic.predict_proba(Xt)[:, 1])):
        off = ReliabilityDisplay.from_predictions(yt, P, pos_label=1, probabilities=P).distance
        print(
            f"{name:<8}  AUC {roc_auc_score(yt, P):.5f}, {len(np.unique(P)):,} different values, "
            f"{100 * tied_pairs(yt, P):.2f} % of the pairs tied; log loss {log_loss(yt, P):.4f}, "
            f"Brier {brier_score_loss(yt, P):.4f}, off by {100 * off:.2f} points"
        )
    try:
        ReliabilityDisplay.from_estimator(clf, Xt, yt).plot().figure_.savefig("reliability.png", dpi=120)
    except ImportError as error:
        print(error)
    else:
        print("reliability.png written")


if __name__ == "__main__":
    main()
