"""AUC from one pass over blocks of rows: two streams learnt apart, added, checked by eye."""

from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from scoreline import MeasureClassifier
from scoreline.data import make_imbalanced
from scoreline.report import plot_score_distributions

OUTPUT = Path("moments-output")


def main():
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    X, y = make_imbalanced(120_000, 40, positive_share=0.03, tail=5.0, random_state=0)
    X_test, y_test = X[80_000:], y[80_000:]
    # Two machines see 40,000 rows each, 5,000 at a time, in any order.
    streams = [MeasureClassifier("roc_auc", solver="moments", scaling="standard") for _ in range(2)]
    for k, stream in enumerate(streams):
        for start in range(40_000 * k, 40_000 * (k + 1), 5_000):
            rows = slice(start, start + 5_000)
            stream.partial_fit(X[rows], y[rows], classes=[0, 1])
    joined = streams[0].merge(streams[1])
    whole = MeasureClassifier("roc_auc", solver="moments", scaling="standard").fit(X[:80_000], y[:80_000])
    difference = np.abs(joined.coef_ - whole.coef_).max() / np.abs(whole.coef_).max()
    print(f"two streams of eight blocks, added, beside one fit: coefficients differ by {difference:.0e}")

    report = whole.moments_report_
    print(f"AUC predicted by the moments {report['predicted']:.4f}, of the training scores {report['empirical']:.4f}")
    for side in ("positive", "negative"):
        shape = report[side]
        print(f"  {side} scores: skewness {shape['skewness']:+.2f}, excess kurtosis {shape['kurtosis']:+.2f}, ", end="")
        print(f"distance to the normal distribution {shape['ks']:.3f}")
    rival = LogisticRegression(max_iter=1000).fit(X[:80_000], y[:80_000])
    print(f"test AUC {joined.score(X_test, y_test):.4f}, ", end="")
    print(f"LogisticRegression {roc_auc_score(y_test, rival.decision_function(X_test)):.4f}")

    OUTPUT.mkdir(exist_ok=True)
    figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
    plot_score_distributions(joined.decision_function(X_test), y_test, ax)
    ax.set_title("Scores of test rows, and the normal distributions that the moments assume", fontsize=11, loc="left")
    figure.savefig(OUTPUT / "scores.png", dpi=110)
    print(f"Figure: {OUTPUT / 'scores.png'}")


if __name__ == "__main__":
    main()
