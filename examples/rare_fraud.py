"""
Choose a threshold for rare fraud
=================================

Three payments in a hundred are fraud. A model gives each payment a score, and a threshold says which payments are stopped.
A model trained for F1 has a threshold for F1. Another requirement, "every second stop must be right", needs another threshold
and no new training.
"""

import copy

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import confusion_matrix
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from scoreline import MeasureClassifier
from scoreline.io import make_imbalanced
from scoreline.report import ThresholdDisplay
from scoreline.report.axes import label, tidy
from scoreline.report.palette import ABOVE, BELOW, INK, MODELS

X, y = make_imbalanced(40_000, 40, positive_share=0.03, tail=5.0, random_state=2)
X, X_test, y, y_test = train_test_split(X, y, test_size=15_000, stratify=y, random_state=0)
X_train, X_threshold, y_train, y_threshold = train_test_split(X, y, test_size=10_000, stratify=y, random_state=0)

# %%
# Three ways to decide
# --------------------
# ``tune_threshold`` moves the threshold of a trained model. Give it held-out rows: a threshold chosen on training rows is too
# optimistic. It keeps a margin, so that the precision is likely to hold on new rows.

PRECISION = 0.5
f1 = MeasureClassifier("f1", scaling="standard").fit(X_train, y_train)
floor = copy.deepcopy(f1).tune_threshold(X_threshold, y_threshold, "recall_at_precision", {"precision": PRECISION})
plain = make_pipeline(StandardScaler(), LogisticRegression()).fit(X_train, y_train)

print(f"{len(y_test):,} test payments, {y_test.sum()} of them fraud")
print(f"{'':<28}{'stopped':>8}{'caught':>8}{'missed':>8}{'precision':>11}{'recall':>8}{'F1':>7}")
models = {"logistic regression at 0.5": plain, "trained for F1": f1, f"the same, precision >= {PRECISION}": floor}
for name, model in models.items():
    tn, fp, fn, tp = confusion_matrix(y_test, model.predict(X_test)).ravel()
    rates = f"{tp / (tp + fp):>11.2f}{tp / (tp + fn):>8.2f}{2 * tp / (2 * tp + fp + fn):>7.2f}"
    print(f"{name:<28}{tp + fp:>8}{tp:>8}{fn:>8}{rates}")

# %%
# Every other threshold
# ---------------------
# The figure shows precision, recall and F1 of test payments against the threshold. The threshold for F1 is at 0 because it is
# part of the intercept. It is close to the best threshold of the test rows. The dotted line has a higher precision and a
# lower recall.

scores = f1.decision_function(X_test)
moved = float(f1.intercept_[0] - floor.intercept_[0])  # where the second threshold lies on the first model's scores
curves = ThresholdDisplay.from_predictions(y_test, scores, measure="roc_auc").plot()  # a ranking: precision, recall, F1
curves.ax_.axvline(moved, color=INK, linewidth=1.2, linestyle=":")
plt.show()

# %%
# The same in numbers of payments
# -------------------------------
# The dotted line stops less than half of the honest payments that the threshold for F1 stops. It also misses more than a
# third of the fraud that the threshold for F1 catches.

ax = plt.subplots(figsize=(7, 4.2), layout="constrained")[1]
thresholds = np.linspace(*curves.window, 400)
above = {side: (np.sort(scores[y_test == side])[:, None] > thresholds).sum(axis=0) for side in (0, 1)}
ax.plot(thresholds, above[1], color=MODELS[0], linewidth=2.0, label="fraud caught")
ax.plot(thresholds, y_test.sum() - above[1], color=ABOVE, linewidth=1.6, linestyle="--", label="fraud missed")
ax.plot(thresholds, above[0], color=BELOW, linewidth=1.6, linestyle="-.", label="honest payments stopped")
ax.axvline(0.0, color=INK, linewidth=1.0, dashes=(4.0, 2.0), label="threshold for F1")
ax.axvline(moved, color=INK, linewidth=1.2, linestyle=":", label=f"threshold for precision >= {PRECISION}")
ax.set(xlim=curves.window, yscale="log", ylim=(1, None))
tidy(ax)
label(ax, "threshold (the threshold for F1 is 0)", "payments, logarithmic")
ax.legend(frameon=False, fontsize=9, loc="upper center", bbox_to_anchor=(0.5, -0.15), ncols=3)
plt.show()
