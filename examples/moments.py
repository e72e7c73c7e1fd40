"""
Train for AUC in one pass over blocks of rows
=============================================

If scores are normal within each class, AUC depends only on the means and covariances of the features. These can be added: two
machines each read their half of the rows once, and their models are combined afterwards.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from scoreline import MeasureClassifier
from scoreline.io import make_imbalanced
from scoreline.report import ScoreDistributionDisplay

X, y = make_imbalanced(120_000, 40, positive_share=0.03, tail=5.0, random_state=0)
X_train, y_train, X_test, y_test = X[:80_000], y[:80_000], X[80_000:], y[80_000:]

# %%
# Combine two streams
# -------------------
# Each stream has 40,000 rows in blocks of 5,000. The combined model has the coefficients of one fit to all rows.

streams = [MeasureClassifier("roc_auc", solver="moments", scaling="standard") for _ in range(2)]
for k, stream in enumerate(streams):
    for start in range(40_000 * k, 40_000 * (k + 1), 5_000):
        rows = slice(start, start + 5_000)
        stream.partial_fit(X_train[rows], y_train[rows], classes=[0, 1])
joined = streams[0].merge(streams[1])
in_one_pass = MeasureClassifier("roc_auc", solver="moments", scaling="standard").fit(X_train, y_train)
difference = np.abs(joined.coef_ - in_one_pass.coef_).max() / np.abs(in_one_pass.coef_).max()
print(f"two streams of eight blocks against one fit: coefficients differ by {difference:.0e}")

# %%
# Check the assumption
# --------------------
# This solver has no certificate. Instead the model reports what it assumes and what it measures.

report = in_one_pass.moments_report_
print(f"AUC predicted by the moments {report['predicted']:.4f}, of the training scores {report['empirical']:.4f}")
for side in ("positive", "negative"):
    shape = report[side]
    print(f"  {side} scores: skewness {shape['skewness']:+.2f}, excess kurtosis {shape['kurtosis']:+.2f}, ", end="")
    print(f"distance to the normal distribution {shape['ks']:.3f}")
rival = LogisticRegression(max_iter=1000).fit(X_train, y_train)
print(f"test AUC {joined.score(X_test, y_test):.4f}, ", end="")
print(f"LogisticRegression {roc_auc_score(y_test, rival.decision_function(X_test)):.4f}")

# %%
# The features have heavy tails, but a score is a sum of forty of them and is close to the normal distribution that the method
# assumes. The positives, which are of several kinds, deviate slightly more.

figure, ax = plt.subplots(figsize=(7, 4.8), layout="constrained")
ScoreDistributionDisplay.from_estimator(joined, X_test, y_test).plot(ax, normals=True, legend_at="below")
ax.set_title("Scores of test rows, and the normal distributions that the moments assume", fontsize=11, loc="left")
plt.show()
