"""
Train on features that are never stored
=======================================

Two spirals are interleaved, and 5 % of the rows are positive. A linear model of the two raw features ranks them poorly. Random
Fourier features turn the linear model into a kernel machine. They are computed block by block during the products, so the
matrix never exists.
"""

import matplotlib.pyplot as plt
import numpy as np

from scoreline import MeasureClassifier
from scoreline.operators import RandomFourierFeatures
from scoreline.report.palette import ABOVE, INK


def spirals(n, seed):
    """Return rows and labels of two spirals."""
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < 0.05).astype(int)
    radius = rng.uniform(0.5, 3.0, n)
    angle = 2.0 * radius + np.pi * y
    return np.c_[radius * np.cos(angle), radius * np.sin(angle)] + 0.3 * rng.standard_normal((n, 2)), y


def features(rows):
    """Return the features of rows: the same seed, width and gamma give the same features for new rows."""
    return RandomFourierFeatures(rows, n_features=300, gamma=2.0, random_state=0)


# %%
# With and without
# ----------------

(X, y), (X_test, y_test) = spirals(10_000, 0), spirals(5_000, 1)
linear = MeasureClassifier("roc_auc").fit(X, y)
kernel = MeasureClassifier("roc_auc", alpha=1e-4).fit(features(X), y)
aucs = linear.score(X_test, y_test), kernel.score(features(X_test), y_test)
print(f"test AUC on the raw features {aucs[0]:.3f}, on 300 computed ones {aucs[1]:.3f}")
print(f"{kernel.n_passes_:.0f} passes, gap {kernel.gap_ / kernel.lower_bound_:.1%}")
print(f"the matrix of {8 * len(y) * 300 / 1e6:.0f} MB was never stored")

# %%
# What each model ranks high
# --------------------------
# The colour shows the rank of the score at each place, dark for the lowest. The dots are positives among the test rows. The raw
# features allow straight bands only. The computed features follow the spiral.

side = np.linspace(-3.6, 3.6, 120)
places = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
figure, axes = plt.subplots(1, 2, figsize=(9, 4.6), layout="constrained", sharey=True)
for ax, model, given, auc, words in (
    (axes[0], linear, places, aucs[0], "two raw features"),
    (axes[1], kernel, features(places), aucs[1], "300 computed features"),
):
    rank = np.argsort(np.argsort(model.decision_function(given))).reshape(len(side), len(side))
    ax.pcolormesh(side, side, rank, cmap="bone", rasterized=True)
    ax.plot(*X_test[y_test == 1].T, "o", color=ABOVE, markersize=3.5, markeredgecolor="white", markeredgewidth=0.4)
    ax.set(aspect="equal", xticks=[], yticks=[], xlim=side[[0, -1]], ylim=side[[0, -1]])
    ax.set_title(f"{words}: test AUC {auc:.3f}", fontsize=11, loc="left", color=INK)
plt.show()
