"""What the proof of optimality says, and how to choose tol and alpha by it: two figures and a table."""

from pathlib import Path

import numpy as np
from sklearn.model_selection import train_test_split

from scoreline import MeasureClassifier
from scoreline.data import make_imbalanced
from scoreline.report import plot_convergence

OUTPUT = Path("certificate-output")
TOLS = np.logspace(0, -4, 9)
ALPHAS = np.logspace(2, -5, 8)
ALPHA = 1e-2


def split():
    """Return 1,500 training rows with 100 features (100 positives, some labels wrong) and 18,500 test rows."""
    X, y = make_imbalanced(20_000, 100, tail=2.5, positive_share=0.05, label_noise=0.02, random_state=0)
    return train_test_split(X, y, train_size=1_500, stratify=y, random_state=0)


def fits(name, values, X, y, X_test, y_test):
    """Return one row (value, proved gap, passes, training AUC, test AUC) for each value of the option `name`."""
    rows = []
    for value in values:
        options = {"alpha": ALPHA, "scaling": "standard", "max_iter": 20_000} | {name: value}
        clf = MeasureClassifier("roc_auc", **options).fit(X, y)
        rows.append((value, clf.gap_ / clf.objective_, clf.n_passes_, clf.score(X, y), clf.score(X_test, y_test)))
    return np.array(rows)


def show(title, rows):
    print(title)
    print(f"  {'value':>9}  {'proved gap':>10}  {'passes':>6}  {'train AUC':>9}  {'test AUC':>8}")
    for value, gap, passes, train, test in rows:
        print(f"  {value:>9.0e}  {gap:>10.1e}  {passes:>6.0f}  {train:>9.4f}  {test:>8.4f}")
    print()


def draw_tol(rows, history, path):
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(10.5, 4.2), layout="constrained")
    plot_convergence(history, left)
    left.set(xlabel="passes over the data", ylabel="alpha/2 |w|² + pairwise hinge")
    left.legend(frameon=False, fontsize=9)
    left.set_title("The proof: the optimum lies in the band", fontsize=11, loc="left")
    right.plot(rows[:, 0], rows[:, 3], "o-", color="#888888", label="training rows")
    right.plot(rows[:, 0], rows[:, 4], "o-", color="#c0392b", label="test rows")
    right.set(xscale="log", xlabel="tol", ylabel="AUC")
    right.invert_xaxis()
    right.axvline(1e-2, color="#888888", linewidth=0.9, linestyle=":")
    right.text(1e-2, right.get_ylim()[0], " default", fontsize=8, color="#666666", va="bottom")
    right.legend(frameon=False, fontsize=9)
    right.set_title("What a tighter proof is worth", fontsize=11, loc="left")
    right.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=110)


def draw_alpha(rows, path):
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(10.5, 4.2), layout="constrained")
    left.plot(rows[:, 0], rows[:, 3], "o-", color="#888888", label="training rows")
    left.plot(rows[:, 0], rows[:, 4], "o-", color="#c0392b", label="test rows")
    left.set(xscale="log", xlabel="alpha", ylabel="AUC")
    left.legend(frameon=False, fontsize=9)
    left.set_title("The measure", fontsize=11, loc="left")
    right.plot(rows[:, 0], rows[:, 2], "o-", color="#1f6fb2")
    right.set(xscale="log", xlabel="alpha", ylabel="passes to a proof of 1 %", ylim=(0, None))
    right.set_title("The cost", fontsize=11, loc="left")
    for ax in (left, right):
        ax.invert_xaxis()
        ax.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=110)


def main():
    import matplotlib

    matplotlib.use("Agg")
    X, X_test, y, y_test = split()
    OUTPUT.mkdir(exist_ok=True)
    by_tol = fits("tol", TOLS, X, y, X_test, y_test)
    show(f"tol, at alpha {ALPHA:g}", by_tol)
    clf = MeasureClassifier("roc_auc", alpha=ALPHA, scaling="standard", tol=1e-3).fit(X, y)
    draw_tol(by_tol, clf.history_, OUTPUT / "tol.png")
    by_alpha = fits("alpha", ALPHAS, X, y, X_test, y_test)
    show("alpha, at tol 0.01", by_alpha)
    draw_alpha(by_alpha, OUTPUT / "alpha.png")
    print(f"Figures: {OUTPUT / 'tol.png'} and {OUTPUT / 'alpha.png'}")


if __name__ == "__main__":
    main()
