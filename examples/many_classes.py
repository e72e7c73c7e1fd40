"""
Train for many classes and many labels
======================================

``MeasureClassifier`` separates two classes. scikit-learn's ``OneVsRestClassifier`` trains one of them per class. Which measure
to put inside depends on what you report. This example tries several on ten even classes, five uneven ones and twelve labels.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits, make_classification, make_multilabel_classification
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold, StratifiedKFold, cross_val_predict, cross_validate
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from scoreline import MeasureClassifier
from scoreline.measures import class_average, get_scorer
from scoreline.report.axes import label, tidy
from scoreline.report.palette import MODELS

ALPHA = 1e-3
INNER = {
    "logistic, no threshold": {"measure": "accuracy", "risk": "logistic", "threshold": "none"},
    "accuracy": {"measure": "accuracy"},
    "f1": {"measure": "f1"},
    "balanced_accuracy": {"measure": "balanced_accuracy"},
    "roc_auc": {"measure": "roc_auc"},
    "roc_auc, no threshold": {"measure": "roc_auc", "threshold": "none"},
}


def models(rows, more, softmax):
    """Return classifiers of one strength of the penalty, for `rows` training rows."""
    logistic = LogisticRegression(C=1 / (rows * ALPHA), solver="newton-cholesky")
    found = {"LogisticRegression": OneVsRestClassifier(make_pipeline(StandardScaler(), logistic))}
    for name, options in (INNER | more).items():
        found[name] = OneVsRestClassifier(MeasureClassifier(alpha=ALPHA, scaling="standard", random_state=0, **options))
    if softmax:  # one model of all classes
        found["(softmax, without)"] = make_pipeline(StandardScaler(), logistic)
    return found


def show(title, X, y, folds, scores, more=None):
    """Print and return the mean of each score over the folds, for each model."""
    print(f"{title}\n  {'in OneVsRestClassifier':<24}" + "".join(f"{name:>{len(name) + 2}}" for name in scores))
    table = {}
    for name, clf in models(len(X) * 2 // 3, more or {}, softmax=y.ndim == 1).items():
        found = cross_validate(clf, X, y, cv=folds, scoring=scores, error_score="raise")
        table[name] = [found[f"test_{score}"].mean() for score in scores]
    if y.ndim == 1:
        table["roc_auc, probabilities"] = by_probability(X, y, folds)
    for name, values in table.items():
        print(f"  {name:<24}" + "".join(f"{v:>{len(s) + 2}.3f}" for v, s in zip(values, scores, strict=True)))
    return table


def by_probability(X, y, folds):
    """Return what the largest of calibrated probabilities says, which can be compared where decision values cannot."""
    inner = MeasureClassifier("roc_auc", alpha=ALPHA, scaling="standard", random_state=0, probability=True)
    proba = cross_val_predict(OneVsRestClassifier(inner), X, y, cv=folds, method="predict_proba")
    predicted = np.unique(y)[proba.argmax(axis=1)]
    values = [class_average("f1", y, predicted, average) for average in ("micro", "macro")]  # micro F1 is accuracy
    return values + [class_average("roc_auc", y, proba, average) for average in ("macro", "micro")]


# %%
# Ten digits, about 180 rows each; five classes of 1757 to 133 rows
# -----------------------------------------------------------------
folds = StratifiedKFold(3, shuffle=True, random_state=0)
class_scores = {"accuracy": "accuracy", "macro F1": get_scorer("f1", average="macro")}
class_scores |= {f"{average} AUC": get_scorer("roc_auc", average=average) for average in ("macro", "micro")}
show("Ten digits", *load_digits(return_X_y=True), folds, class_scores)

X, y = make_classification(
    3000, 20, n_informative=8, n_redundant=4, n_classes=5, weights=[0.6, 0.2, 0.1, 0.06, 0.04], flip_y=0.05, random_state=0
)  # fmt: skip
uneven = show("Five uneven classes", X, y, folds, class_scores)

# %%
# Twelve labels, each of 11 to 24 % of the rows
# ---------------------------------------------

X, Y = make_multilabel_classification(4000, 30, n_classes=12, n_labels=2, length=40, random_state=0)
label_scores = {f"{average} F1": get_scorer("f1", average=average) for average in ("macro", "micro")}
label_scores["recall at precision 0.6"] = get_scorer("recall_at_precision", average="macro", precision=0.6)
label_scores["macro AUC"] = get_scorer("roc_auc", average="macro")
point = {"recall_at_precision": {"measure": "recall_at_precision", "measure_params": {"precision": 0.6}}}
labels = show("Twelve labels", X, Y, KFold(3, shuffle=True, random_state=0), label_scores, point)

# %%
# Train what you report
# ---------------------
# Left: where classes are uneven, "f1" and "balanced_accuracy" have a higher macro F1 than logistic regression and a lower
# accuracy. One softmax model of all classes is ahead of them in both.
#
# Right: labels are separate problems, and the measure that is trained is the one that gains. "f1" is far ahead in F1.
# "recall_at_precision" is slightly ahead in recall at a precision of 0.6, where "f1" is poor.

figure, axes = plt.subplots(1, 2, figsize=(11, 4.4), layout="constrained")
for ax, table, names, words in (
    (axes[0], uneven, list(class_scores)[:2], "Five uneven classes"),
    (axes[1], labels, list(label_scores)[:3], "Twelve labels"),
):
    for k, name in enumerate(names):
        ax.plot(
            [values[k] for values in table.values()],
            range(len(table)),
            "osD"[k],
            color=MODELS[k],
            markersize=8,
            label=name,
        )
    ax.set_yticks(range(len(table)), list(table))
    ax.invert_yaxis()
    tidy(ax, "both")
    label(ax, "mean of three folds", "")
    ax.set_title(words, loc="left")
    ax.legend(frameon=False, fontsize=9, loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=3)
plt.show()
