"""
Search alpha by the measure itself
==================================

``alpha`` is the strength of the penalty. ``MeasureClassifierCV`` tries many, judges each by the measure on held-out rows of
training, and trains the final model on all rows with the best one.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import train_test_split

from scoreline import MeasureClassifier, MeasureClassifierCV
from scoreline.io import make_imbalanced
from scoreline.report import plot_alpha_path
from scoreline.report.palette import BELOW

# %%
# A set on which alpha matters: 1,500 training rows, 100 features, about a hundred positives, and some wrong labels. The other
# 18,500 rows are kept to check the choice.

X, y = make_imbalanced(20_000, 100, tail=3.5, positive_share=0.05, label_noise=0.02, random_state=0)
X_train, X_test, y_train, y_test = train_test_split(X, y, train_size=1_500, stratify=y, random_state=0)

# %%
# One search
# ----------
# Fifteen alphas and five folds. Each fit begins where the last one ended, so the search takes far fewer passes than 75 fits
# from nothing.

alphas = np.logspace(2, -5, 15)
search = MeasureClassifierCV("roc_auc", alphas=alphas, scaling="standard").fit(X_train, y_train)
print(f"alpha {search.alpha_:.3g}, AUC of held-out rows {search.cv_results_['mean_test_score'].max():.4f}")

tests = [MeasureClassifier("roc_auc", alpha=a, scaling="standard").fit(X_train, y_train) for a in alphas]
tests = [clf.score(X_test, y_test) for clf in tests]
print(f"AUC of new rows: {search.score(X_test, y_test):.4f} chosen, {max(tests):.4f} best of all alphas, ", end="")
print(f"{min(tests):.4f} worst")

# %%
# The path
# --------
# Thin lines are single folds: they differ from each other far more than one alpha does from the next, so only their mean
# says anything. Its shape is that of the dotted line, the AUC of new rows, which a user would not have: weak penalties
# (left) overfit, and the choice is near the top.

ax = plot_alpha_path(search, plt.subplots(figsize=(7.5, 4.4), layout="constrained")[1])
ax.plot(alphas, tests, color=BELOW, linestyle=":", linewidth=2.0, label="18,500 new rows")
ax.legend(frameon=False, fontsize=9)
plt.show()
