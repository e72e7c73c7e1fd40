"""
What the certificate says
=========================

Every certified fit ends with two numbers: the objective of the model, and a lower bound that no linear model can go below.
This example shows how the two approach each other. It also shows what two options do to the AUC on test rows: ``tol``, how
small the gap must be, and ``alpha``, the strength of the penalty.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import train_test_split

from scoreline import MeasureClassifier
from scoreline.io import make_imbalanced
from scoreline.report import ConvergenceDisplay
from scoreline.report.axes import tidy
from scoreline.report.palette import ABOVE, BELOW, MUTED

ALPHA = 1e-2

# %%
# 1,500 training rows with 100 features, 100 of them positive, some labels wrong; 18,500 test rows.

X, y = make_imbalanced(20_000, 100, tail=3.5, positive_share=0.05, label_noise=0.02, random_state=0)
X, X_test, y, y_test = train_test_split(X, y, train_size=1_500, stratify=y, random_state=0)


def fits(name, values):
    """Print and return (value, gap over objective, passes, training AUC, test AUC) for each value of an option."""
    print(f"  {name:>9}  {'gap':>10}  {'passes':>6}  {'train AUC':>9}  {'test AUC':>8}")
    rows = []
    for value in values:
        options = {"alpha": ALPHA, "scaling": "standard", "max_iter": 20_000} | {name: value}
        clf = MeasureClassifier("roc_auc", **options).fit(X, y)
        rows.append((value, clf.gap_ / clf.objective_, clf.n_passes_, clf.score(X, y), clf.score(X_test, y_test)))
        print("  {:>9.0e}  {:>10.1e}  {:>6.0f}  {:>9.4f}  {:>8.4f}".format(*rows[-1]))
    return np.array(rows)


def draw_auc(ax, rows, name):
    """Draw the AUC of training and test rows against an option, from large to small."""
    ax.plot(rows[:, 0], rows[:, 3], "o--", color=MUTED, label="training rows")
    ax.plot(rows[:, 0], rows[:, 4], "o-", color=ABOVE, label="test rows")
    ax.set(xscale="log", xlabel=name, ylabel="AUC")
    ax.legend(frameon=False, fontsize=9)
    ax.invert_xaxis()
    tidy(ax)


# %%
# A smaller gap
# -------------
# Left: the smallest objective lies in the band, whatever the solver does. Right: from the default of 1 % on, a smaller gap
# hardly changes the AUC on test rows. The certificate answers one question, "is it the optimiser?". Here it is not.

by_tol = fits("tol", np.logspace(0, -4, 9))
clf = MeasureClassifier("roc_auc", alpha=ALPHA, scaling="standard", tol=1e-3).fit(X, y)
figure, (left, right) = plt.subplots(1, 2, figsize=(10.5, 4.2), layout="constrained")
ConvergenceDisplay.from_estimator(clf).plot(left)
left.set(ylabel="alpha/2 |w|² + pairwise hinge")
left.set_title("The certificate: the optimum lies in the band", fontsize=11, loc="left")
draw_auc(right, by_tol, "tol")
right.axvline(1e-2, color=MUTED, linewidth=0.9, linestyle=":")
right.text(1e-2, right.get_ylim()[0], " default", fontsize=8, color=MUTED, va="bottom")
right.set_title("What a smaller gap is worth", fontsize=11, loc="left")
plt.show()

# %%
# A weaker penalty
# ----------------
# All of these fits are certified to 1 %, and the AUC on test rows still falls as alpha shrinks: a hundred features are many
# for a hundred positives. No certificate about training rows can show that; :doc:`search_alpha` does.

by_alpha = fits("alpha", np.logspace(2, -5, 8))
figure, (left, right) = plt.subplots(1, 2, figsize=(10.5, 4.2), layout="constrained")
draw_auc(left, by_alpha, "alpha")
left.set_title("The measure", fontsize=11, loc="left")
right.plot(by_alpha[:, 0], by_alpha[:, 2], "o-", color=BELOW)
right.set(xscale="log", xlabel="alpha", ylabel="passes to a gap of 1 %", ylim=(0, None))
right.invert_xaxis()
tidy(right)
right.set_title("The cost", fontsize=11, loc="left")
plt.show()
