"""
Train on a stream
=================

Rows arrive in blocks of 5,000. Each row is used once. Before the model learns from a block, the model and its threshold are
evaluated on it. The measure is the G-mean, the geometric mean of the true positive and the true negative rate.
"""

import matplotlib.pyplot as plt

from scoreline import MeasureClassifier
from scoreline.io import make_imbalanced
from scoreline.report.axes import label, tidy
from scoreline.report.palette import MODELS, MUTED

BLOCKS, ROWS = 20, 5_000
X, y = make_imbalanced(n_samples=BLOCKS * ROWS, random_state=0)

# %%
# Evaluate, then learn
# --------------------
# ``solver="spade"`` takes a step after every row. ``partial_fit`` keeps a summary of the scores of both classes, and tunes the
# threshold on it.

clf = MeasureClassifier("gmean", solver="spade", random_state=0)
n_rows, values = [], []
for k in range(BLOCKS):
    part = slice(k * ROWS, (k + 1) * ROWS)
    if k > 0:  # rows that the model has not seen
        n_rows.append(k * ROWS)
        values.append(clf.score(X[part], y[part]))
    clf.partial_fit(X[part], y[part], classes=[0, 1])
print(f"G-mean of the first block evaluated {values[0]:.3f}, of the last five {sum(values[-5:]) / 5:.3f}")
print(f"rank error of the threshold at most {100 * clf.threshold_rank_error_:.2f} % of a class")

# %%
# The model improves
# ------------------
# A block has about fifty positives, so single points are noisy. The line is the mean of five blocks. It rises until about
# 75,000 rows.

figure, ax = plt.subplots(figsize=(7.5, 4.2), layout="constrained")
ax.plot(n_rows, values, "o", color=MUTED, markersize=5, label="the next 5,000 rows")
means = [sum(values[k - 4 : k + 1]) / 5 for k in range(4, len(values))]
ax.plot(n_rows[4:], means, color=MODELS[0], linewidth=2.2, label="mean of five blocks")
tidy(ax)
label(ax, "rows learnt from", "G-mean of new rows")
ax.xaxis.set_major_formatter("{x:,.0f}")
ax.legend(frameon=False, loc="lower right")
plt.show()
