"""
Choose alpha by the measure itself
==================================

``alpha`` is the strength of the penalty. ``MeasureClassifierCV`` tries many values and evaluates each by the measure on
held-out rows. Then it trains the final model on all rows with the best value.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import train_test_split

from scoreline import MeasureClassifier, MeasureClassifierCV
from scoreline.io import make_imbalanced
from scoreline.report import plot_alpha_path
from scoreline.report.palette import BELOW

# %%
# Alpha matters on this data set: 1,500 training rows, 100 features, about a hundred positives, and some wrong labels. The
# other 18,500 rows are used to check the choice.

X, y = make_imbalanced(20_000, 100, tail=3.5, positive_share=0.05, label_noise=0.02, random_state=0)
X_train, X_test, y_train, y_test = train_test_split(X, y, train_size=1_500, stratify=y, random_state=0)

# %%
# One search
# ----------
# There are fifteen alphas and five folds. Each fit starts from the previous one, so the search takes far fewer passes than
# 75 separate fits.

alphas = np.logspace(2, -5, 15)
search = MeasureClassifierCV("roc_auc", alphas=alphas, scaling="standard").fit(X_train, y_train)
print(f"alpha {search.alpha_:.3g}, AUC on held-out rows {search.cv_results_['mean_test_score'].max():.4f}")

tests = [MeasureClassifier("roc_auc", alpha=a, scaling="standard").fit(X_train, y_train) for a in alphas]
tests = [clf.score(X_test, y_test) for clf in tests]
print(f"AUC on test rows: {search.score(X_test, y_test):.4f} chosen, {max(tests):.4f} best of all alphas, ", end="")
print(f"{min(tests):.4f} worst")

# %%
# The path
# --------
# Thin lines are single folds. They differ from each other far more than neighbouring alphas do, so only their mean is
# informative. It has the shape of the dotted line, the AUC on test rows, which a user would not have. Weak penalties (left)
# overfit, and the chosen alpha is near the top.

ax = plot_alpha_path(search, plt.subplots(figsize=(7.5, 4.4), layout="constrained")[1])
ax.plot(alphas, tests, color=BELOW, linestyle=":", linewidth=2.0, label="18,500 test rows")
ax.legend(frameon=False, fontsize=9)
plt.show()
