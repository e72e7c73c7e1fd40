"""
Train for the AUC, beside logistic regression
=============================================

Logistic regression minimises the log loss, whatever you report later. If you report the area under the ROC curve, you can
train for it. This example does both on the same rows and shows the two things that scoreline gives: a model, and a proof
of how good its training was.
"""

import matplotlib.pyplot as plt
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from scoreline import MeasureClassifier
from scoreline.io import make_imbalanced
from scoreline.report import ConvergenceDisplay, RocDisplay

# %%
# The data
# --------
# Made-up fraud: one row in a hundred is positive, and the features have rather heavy tails, as amounts of money do.

X, y = make_imbalanced(n_samples=60_000, n_features=40, tail=3.0, random_state=0)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, stratify=y, random_state=0)
print(f"{len(y_train):,} training rows, {y_train.sum()} of them positive")

# %%
# Three fits
# ----------
# Name the measure; everything else is as in scikit-learn. ``score`` is the measure itself. Logistic regression comes twice:
# plain, and with rare rows weighted up.

clf = MeasureClassifier("roc_auc", scaling="standard").fit(X_train, y_train)
plain = make_pipeline(StandardScaler(), LogisticRegression()).fit(X_train, y_train)
balanced = make_pipeline(StandardScaler(), LogisticRegression(class_weight="balanced")).fit(X_train, y_train)
print(f"AUC of new rows, trained for AUC: {clf.score(X_test, y_test):.4f}")

# %%
# New rows
# --------
# Curves of held-out rows. The model that was trained for AUC is a little ahead of both logistic regressions. The dots are
# where each model says "fraud": plain logistic regression, with its threshold at one half, finds next to nothing. Other sets
# leave more or less to gain: :doc:`does_it_pay` looks at several.

models = {"trained for AUC": clf, "logistic regression": plain, "logistic, balanced": balanced}
scores = {name: model.decision_function(X_test) for name, model in models.items()}
RocDisplay.from_predictions(y_test, scores).plot()
plt.show()

# %%
# The proof
# ---------
# Training minimises J, a bound on the share of pairs in the wrong order plus a penalty. Every fit ends with two numbers
# between which the smallest J of all linear models lies. The model found has the upper one. In the picture
# they close in on each other until less than 1 % is undecided.

print(f"{clf.lower_bound_:.5f} <= smallest J <= {clf.objective_:.5f}, after {clf.n_passes_:.0f} passes over the rows")
ConvergenceDisplay.from_estimator(clf).plot()
plt.show()
