"""
Promise a precision
===================

Every second alarm must be right. A threshold that reaches this on held-out rows breaks it on about every second set of new
rows. A threshold with ``guarantee`` breaks it with a chance of at most 5 %, for every number of rows and every distribution.
This page trains a model with such a promise, tests it on new rows, and repeats the choice of a threshold 400 times.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import norm
from sklearn.model_selection import train_test_split

from scoreline import MeasureClassifier, check_promise
from scoreline.io import make_imbalanced
from scoreline.measures import RecallAtPrecision, best_threshold, promised_threshold
from scoreline.report.axes import label, tidy
from scoreline.report.palette import INK, MODELS

PRECISION = 0.5
X, y = make_imbalanced(30_000, 20, positive_share=0.05, tail=5.0, random_state=2)
X, X_new, y, y_new = train_test_split(X, y, test_size=10_000, random_state=0)

# %%
# A model with a promise
# ----------------------
# Half of the rows are held out to prove the promise. ``promise_`` says what holds, and ``check_promise`` tests it on labelled
# new rows.

params = {"precision": PRECISION, "guarantee": 0.95}
clf = MeasureClassifier("recall_at_precision", params, scaling="standard", random_state=0).fit(X, y)
print(clf.promise_)
print(check_promise(clf, X_new, y_new))

# %%
# If labels change, the test says so: here, half of the new positives are labelled as negatives.

changed = np.where(np.random.default_rng(0).random(len(y_new)) < 0.5, y_new, y.min())
print(check_promise(clf, X_new, changed))

# %%
# Out of reach
# ------------
# From 3,000 rows, a precision of 0.8 cannot be proved. The model flags nothing, and says what would be needed.

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # the warning has the same words
    few = MeasureClassifier("recall_at_precision", {"precision": 0.8, "guarantee": 0.95}, random_state=0)
    few.fit(X[:3000], y[:3000])
print(few.promise_)

# %%
# Are promises kept?
# ------------------
# Scores come from two normal distributions, so the precision of every threshold is known. Each of 400 samples of held-out rows
# chooses a threshold in three ways: the best one on these rows, ``confidence=0.95`` (an approximation), and ``guarantee=0.95``
# (a proof). The table has the share of samples whose threshold has a precision below the floor, and the mean recall.

SHARE, SHIFT, SAMPLES = 0.05, 2.0, 400
WAYS = {
    "best": RecallAtPrecision(PRECISION),
    "confidence": RecallAtPrecision(PRECISION, confidence=0.95),
    "guarantee": RecallAtPrecision(PRECISION, guarantee=0.95),
}


def rates(threshold):
    """Return the recall and the precision of a threshold in the distribution."""
    recall, fpr = norm.sf(threshold - SHIFT), norm.sf(threshold)
    flagged = SHARE * recall + (1.0 - SHARE) * fpr
    return recall, SHARE * recall / flagged if flagged > 0 else 1.0  # nothing flagged breaks no floor


def chosen(way, rows, rng):
    """Return the rates of a threshold that is chosen on a sample."""
    truth = rng.random(rows) < SHARE
    scores = rng.standard_normal(rows) + SHIFT * truth
    measure = WAYS[way]
    if measure.guarantee is not None:
        return rates(promised_threshold(measure, truth, scores).threshold)
    return rates(best_threshold(truth, scores, measure).threshold)


print(f"{'rows':>7}" + "".join(f"{way + ': broken':>20}{'recall':>8}" for way in WAYS))
found = {}
for rows in (500, 1000, 2000, 5000, 20_000):
    line = f"{rows:>7,}"
    for way in WAYS:
        rng = np.random.default_rng(rows)
        recall, precision = np.array([chosen(way, rows, rng) for _ in range(SAMPLES)]).T
        found[way, rows] = precision
        line += f"{np.mean(precision < PRECISION):>20.1%}{recall.mean():>8.2f}"
    print(line)

# %%
# The precision of the thresholds from 2,000 rows: a promise keeps at least 95 % of them on the right of the floor. At 1 are the
# samples that promise nothing and flag nothing.

ax = plt.subplots(layout="constrained")[1]
bins = np.linspace(0.3, 1.0, 36)
for k, way in enumerate(WAYS):
    ax.hist(found[way, 2000], bins, histtype="step", color=MODELS[k], linewidth=1.8, label=way)
ax.axvline(PRECISION, color=INK, linestyle=":", linewidth=1.2)
ax.legend(frameon=False)
tidy(ax)
label(ax, "precision of the threshold on all rows", "samples")
plt.show()
