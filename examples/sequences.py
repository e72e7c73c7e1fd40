"""
Motifs in sequences
===================

Generated DNA with two kinds of positives: some have the word TATAAT at one position, the others GATTACAG anywhere. k-mers at
positions find the first, counts of k-mers find the second. Neither feature matrix is ever made: each letter takes one byte.
"""

import matplotlib.pyplot as plt
import numpy as np

from scoreline import MeasureClassifier
from scoreline.operators import StringOperator, strongest_motifs
from scoreline.report.palette import ABOVE, INK


def reads(n, motif, place, seed):
    """Return n random rows of 80 letters and labels: a fifth has the motif, at `place` or anywhere (None)."""
    rng = np.random.default_rng(seed)
    letters = rng.choice(np.frombuffer(b"ACGT", np.uint8), size=(n, 80))
    y = rng.random(n) < 0.2
    for row in np.flatnonzero(y):
        first = rng.integers(0, 80 - len(motif)) if place is None else place
        letters[row, first : first + len(motif)] = np.frombuffer(motif, np.uint8)
    return letters.view("S80").ravel(), y


# %%
# Each kind of feature on each kind of motif
# ------------------------------------------

places = {"a motif at position 30": (b"TATAAT", 30), "a motif anywhere": (b"GATTACAG", None)}
options = {"k-mers at positions": {"degree": 4}, "counts of k-mers": {"degree": 6, "kind": "spectrum"}}
models = {}
for motif, (word, place) in places.items():
    (rows, y), (test_rows, y_test) = reads(6000, word, place, 0), reads(3000, word, place, 1)
    for kind, chosen in options.items():
        clf = models[motif, kind] = MeasureClassifier("roc_auc", alpha=1e-2).fit(StringOperator(rows, **chosen), y)
        auc = clf.score(StringOperator(test_rows, **clf.string_features_), y_test)
        print(f"{motif}, {kind}: test AUC {auc:.3f}, duality gap {clf.gap_ / clf.lower_bound_:.1%}")

# %%
# What a model has learnt
# -----------------------
# The strongest k-mers are parts of the motif that was planted. Bars are what one occurrence adds to the score.

figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
for ax, (motif, kind) in zip(
    axes, [("a motif at position 30", "k-mers at positions"), ("a motif anywhere", "counts of k-mers")], strict=True
):
    found = strongest_motifs(models[motif, kind], 8)[::-1]
    names = [m.letters if m.position is None else f"{m.letters} at {m.position}" for m in found]
    ax.barh(names, [m.weight for m in found], color=ABOVE)
    ax.set_title(f"{motif}: {kind}", fontsize=11, loc="left", color=INK)
plt.show()
