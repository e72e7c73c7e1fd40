"""
Train sparse and signed models
==============================

An elastic net keeps few features, bounds keep signs, and a model can be added to one that you have. All of them are
certified: the gap says how close to the best possible model of its kind each is.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split

from scoreline import MeasureClassifier, MeasureClassifierCV
from scoreline.report.palette import BELOW

# %%
# Sixty columns, of which the first eight carry the signal. A thousand rows are for training.

X, y = make_classification(6_000, 60, n_informative=8, n_redundant=0, weights=[0.9], shuffle=False, random_state=0)
X_train, X_test, y_train, y_test = train_test_split(X, y, train_size=1_000, stratify=y, random_state=0)

# %%
# Few features
# ------------
# The grid of alphas begins where the first feature enters the model. ``l1_ratios`` are chosen by the same folds.

search = MeasureClassifierCV("roc_auc", penalty="elastic_net", l1_ratios=[0.5, 1.0], scaling="standard", cv=3)
search.fit(X_train, y_train)
n_used = np.count_nonzero(search.coef_)
print(f"alpha {search.alpha_:.3g}, l1_ratio {search.l1_ratio_:g}: {n_used} of 60 features")
dense = MeasureClassifierCV("roc_auc", scaling="standard", cv=3).fit(X_train, y_train)
print(
    f"AUC on test rows: {search.score(X_test, y_test):.4f} sparse, {dense.score(X_test, y_test):.4f} with all features"
)

# %%
# Each alpha has a proof of its own. The number of features falls to 0 at the largest alpha.

alphas = search.cv_results_["alpha"][search.cv_results_["l1_ratio"] == search.l1_ratio_]
options = {"penalty": "elastic_net", "penalty_params": {"l1_ratio": search.l1_ratio_}, "scaling": "standard"}
path = [MeasureClassifier("roc_auc", alpha=alpha, **options).fit(X_train, y_train) for alpha in alphas]
figure, axes = plt.subplots()
axes.plot(alphas, [np.count_nonzero(clf.coef_) for clf in path], color=BELOW, marker="o")
axes.set(xscale="log", xlabel="alpha", ylabel="features in the model")
plt.show()

# %%
# Signs
# -----
# ``bounds`` keep the sign that is known of a column, exactly, and the lower bound is that of all models with these signs.

signed = MeasureClassifier("roc_auc", bounds=(0, None), scaling="standard").fit(X_train, y_train)
print(f"smallest coefficient {signed.coef_.min():.3g}, gap {signed.gap_ / signed.objective_:.1e} of the objective")

# %%
# Add to an existing model
# ------------------------
# The old model knows four columns. ``base_scores`` are its scores, and the new model learns what they lack.

old = MeasureClassifier("roc_auc", scaling="standard").fit(X_train[:, :4], y_train)
new = MeasureClassifier("roc_auc", penalty="elastic_net", alpha=1e-2, scaling="standard")
new.fit(X_train, y_train, base_scores=old.decision_function(X_train[:, :4]))
after = new.score(X_test, y_test, base_scores=old.decision_function(X_test[:, :4]))
print(f"AUC on test rows: {old.score(X_test[:, :4], y_test):.4f} before, {after:.4f} after")
