"""
Train for the AUC, and compare with logistic regression
=======================================================

Logistic regression minimises the log loss, whatever you report later. If you report the area under the ROC curve, you can
train for it. This example does both on the same rows. It also shows the certificate, which says how good the training was.
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
# Generated fraud: one row in a hundred is positive, and the features have heavy tails, as amounts of money do.

X, y = make_imbalanced(n_samples=60_000, n_features=40, tail=3.0, random_state=0)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, stratify=y, random_state=0)
print(f"{len(y_train):,} training rows, {y_train.sum()} of them positive")

# %%
# Three fits
# ----------
# Name the measure. Everything else is as in scikit-learn, and ``score`` returns the measure itself. Logistic regression is
# trained twice: plain, and with class weights.

clf = MeasureClassifier("roc_auc", scaling="standard").fit(X_train, y_train)
plain = make_pipeline(StandardScaler(), LogisticRegression()).fit(X_train, y_train)
balanced = make_pipeline(StandardScaler(), LogisticRegression(class_weight="balanced")).fit(X_train, y_train)
print(f"AUC on test rows, trained for AUC: {clf.score(X_test, y_test):.4f}")

# %%
# Test rows
# ---------
# The model that was trained for AUC is slightly ahead of both logistic regressions. The dots show the thresholds. Plain
# logistic regression, whose threshold is a probability of one half, finds almost no fraud. Other data sets leave more or
# less to gain: :doc:`does_it_pay` compares several.

models = {"trained for AUC": clf, "logistic regression": plain, "logistic, balanced": balanced}
scores = {name: model.decision_function(X_test) for name, model in models.items()}
RocDisplay.from_predictions(y_test, scores).plot()
plt.show()

# %%
# The certificate
# ---------------
# Training minimises the objective J: a bound on the share of pairs in the wrong order, plus a penalty. The smallest J of all
# linear models lies between the two numbers below. The upper one is the objective of this model. In the figure the two
# approach each other until they are less than 1 % apart.

print(f"{clf.lower_bound_:.5f} <= smallest J <= {clf.objective_:.5f}, after {clf.n_passes_:.0f} passes over the rows")
ConvergenceDisplay.from_estimator(clf).plot()
plt.show()
