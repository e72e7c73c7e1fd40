"""Train for AUC beside logistic regression on the same splits: a table, and a picture of the proof closing in."""

import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from scoreline import MeasureClassifier
from scoreline.data import make_imbalanced
from scoreline.measures import get_measure
from scoreline.report import plot_convergence

OUTPUT = Path("demo-output")
ALPHA = 1e-3
RESAMPLES = 500
WIDTHS = [8, 7, 10, 12, 7]  # of the columns after the interval


def data_sets():
    X, y = load_breast_cancer(return_X_y=True)
    yield "breast cancer", "malignant", X, 1 - y
    X, y = load_digits(return_X_y=True)
    yield "digits", "an 8", X, (y == 8).astype(int)
    yield "synthetic fraud", "made with heavy tails, so that training for AUC pays", *make_imbalanced(random_state=0)


def bootstrap(y, decisions, seed=0):
    """Return 95 % intervals of the test AUC of each model, and of the difference of the first two (paired)."""
    auc = get_measure("roc_auc")
    rng = np.random.default_rng(seed)
    classes = [np.flatnonzero(y == c) for c in (0, 1)]
    values = np.empty((RESAMPLES, len(decisions)))
    for r in range(RESAMPLES):
        weight = np.zeros(len(y))
        for rows in classes:  # within each class, so that every resample has both
            weight[rows] = np.bincount(rng.integers(0, len(rows), len(rows)), minlength=len(rows))
        values[r] = [auc.value(y, decision, weight) for decision in decisions]
    intervals = [np.quantile(column, [0.025, 0.975]) for column in values.T]
    return intervals, np.quantile(values[:, 0] - values[:, 1], [0.025, 0.975])


def timed(model, X, y):
    start = time.perf_counter()
    model.fit(X, y)
    return model, time.perf_counter() - start


def compile_kernels():
    """Fit once on a handful of rows, so that compilation is not counted as training."""
    start = time.perf_counter()
    clf = MeasureClassifier(max_iter=3, tol=1e-9)
    X = np.random.default_rng(0).standard_normal((100, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # three iterations do not converge, and need not
        for positives in (50, 2):  # balanced and imbalanced classes go different ways
            y = (np.arange(len(X)) < positives).astype(int)
            clf.fit(X, y).score(X, y)
    return time.perf_counter() - start


def main():
    print(f"Kernels compiled in {compile_kernels():.1f} s (once; later runs take them from the cache).\n")
    columns = ["seconds", "passes", "objective", "lower bound", "gap"]
    header = f"{'test AUC':>9}  {'95 % interval':<16} " + " ".join(
        f"{c:>{w}}" for c, w in zip(columns, WIDTHS, strict=True)
    )
    fits = []
    for name, what, X, y in data_sets():
        X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.4, stratify=y, random_state=0)
        scaler = StandardScaler().fit(X_train)
        X_train, X_test = scaler.transform(X_train), scaler.transform(X_test)
        ours, our_time = timed(MeasureClassifier("roc_auc", alpha=ALPHA), X_train, y_train)
        C = 1.0 / (len(y_train) * ALPHA)  # the same strength of penalty
        rival, rival_time = timed(LogisticRegression(C=C, max_iter=1000), X_train, y_train)
        decisions = [m.decision_function(X_test) for m in (ours, rival)]
        auc = [get_measure("roc_auc").value(y_test, d) for d in decisions]
        intervals, difference = bootstrap(y_test, decisions)

        n, p = X_train.shape
        print(f"{name}: {n} training rows, {p} features, {y_train.mean():.1%} positive: {what}")
        print(f"  {'':<24}{header}")
        relative_gap = f"{ours.gap_ / ours.lower_bound_:.2%}"
        proof = [f"{ours.n_passes_:.0f}", f"{ours.objective_:.5f}", f"{ours.lower_bound_:.5f}", relative_gap]
        for label, value, (low, high), seconds, rest in (
            ("scoreline, roc_auc", auc[0], intervals[0], our_time, proof),
            ("LogisticRegression", auc[1], intervals[1], rival_time, ["-"] * 4),
        ):
            cells = " ".join(f"{c:>{w}}" for c, w in zip([f"{seconds:.3f}", *rest], WIDTHS, strict=True))
            print(f"  {label:<24}{value:>9.4f}  [{low:.4f}, {high:.4f}] {cells}")
        low, high = difference
        verdict = (
            "scoreline is ahead"
            if low > 0
            else "logistic regression is ahead"
            if high < 0
            else "a tie on this test set"
        )
        print(f"  difference {auc[0] - auc[1]:+.4f}, 95 % interval [{low:+.4f}, {high:+.4f}]: {verdict}\n")
        fits.append((name, ours))

    OUTPUT.mkdir(exist_ok=True)
    path = OUTPUT / "convergence.png"
    draw(fits, path)
    print("The gap is a proof about the training objective: no linear model has a lower one than the lower bound.")
    print(f"Picture of objective and lower bound closing in on each other: {path}")


def draw(fits, path):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(
        2, len(fits), figsize=(4.2 * len(fits), 6.4), height_ratios=[2.2, 1], sharex="col", layout="constrained"
    )
    for (name, clf), (top, bottom) in zip(fits, axes.T, strict=True):
        plot_convergence(clf.history_, top, gap_ax=bottom)
        top.set_title(
            f"{name}: proved within {clf.gap_ / clf.lower_bound_:.2%} of the optimum", fontsize=10, loc="left"
        )
        bottom.axhline(100 * clf.tol, color="#888888", linewidth=0.9, linestyle=":")
        bottom.set_xlabel("passes over the data")
    axes[0, 0].set_ylabel("alpha/2 |w|² + pairwise hinge")
    axes[1, 0].set_ylabel("proved gap, %")
    place = axes[1, 0].get_yaxis_transform()
    axes[1, 0].text(0.02, 110 * fits[0][1].tol, "asked for", transform=place, va="bottom", fontsize=8, color="#666666")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
    figure.suptitle(
        "Training for AUC: the best model so far, and what no linear model can beat", fontsize=13, x=0.01, ha="left"
    )
    figure.savefig(path, dpi=130)


if __name__ == "__main__":
    main()
