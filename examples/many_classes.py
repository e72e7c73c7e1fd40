"""Many classes and many labels: which classifier to put into OneVsRestClassifier, by what is to be reported."""

import numpy as np
from sklearn.datasets import load_digits, make_classification, make_multilabel_classification
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold, StratifiedKFold, cross_val_predict, cross_validate
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from scoreline import MeasureClassifier
from scoreline.measures import class_average, get_scorer

ALPHA = 1e-3
CLASS_SCORES = {
    "accuracy": "accuracy",
    "macro F1": get_scorer("f1", average="macro"),
    "macro AUC": get_scorer("roc_auc", average="macro"),
    "micro AUC": get_scorer("roc_auc", average="micro"),
}
LABEL_SCORES = {
    "macro F1": get_scorer("f1", average="macro"),
    "micro F1": get_scorer("f1", average="micro"),
    "recall at precision 0.6": get_scorer("recall_at_precision", average="macro", precision=0.6),
    "macro AUC": get_scorer("roc_auc", average="macro"),
}
INNER = {
    "logistic, no cut": {"measure": "accuracy", "risk": "logistic", "cut": "none"},
    "accuracy": {"measure": "accuracy"},
    "f1": {"measure": "f1"},
    "balanced_accuracy": {"measure": "balanced_accuracy"},
    "roc_auc": {"measure": "roc_auc"},
    "roc_auc, no cut": {"measure": "roc_auc", "cut": "none"},
}


def models(rows, more, softmax):
    """Return classifiers of one strength of the penalty, for `rows` training rows."""
    logistic = LogisticRegression(C=1 / (rows * ALPHA), solver="newton-cholesky")
    found = {"LogisticRegression": OneVsRestClassifier(make_pipeline(StandardScaler(), logistic))}
    for name, options in (INNER | more).items():
        inner = MeasureClassifier(alpha=ALPHA, scaling="standard", random_state=0, **options)
        found[name] = OneVsRestClassifier(inner)
    if softmax:  # one model of all classes
        found["(softmax, without)"] = make_pipeline(StandardScaler(), logistic)
    return found


def show(title, X, y, folds, scores, more=None):
    print(title)
    print(f"  {'in OneVsRestClassifier':<24}" + "".join(f"{name:>{len(name) + 2}}" for name in scores))
    for name, clf in models(len(X) * 2 // 3, more or {}, softmax=y.ndim == 1).items():
        found = cross_validate(clf, X, y, cv=folds, scoring=scores, error_score="raise")
        values = (f"{found[f'test_{score}'].mean():>{len(score) + 2}.3f}" for score in scores)
        print(f"  {name:<24}" + "".join(values))
    if y.ndim == 1:
        by_probability(X, y, folds)
    print()


def by_probability(X, y, folds):
    """Show what the largest of calibrated probabilities says, which can be compared where decision values cannot."""
    inner = MeasureClassifier("roc_auc", alpha=ALPHA, scaling="standard", random_state=0, probability=True)
    proba = cross_val_predict(OneVsRestClassifier(inner), X, y, cv=folds, method="predict_proba")
    predicted = np.unique(y)[proba.argmax(axis=1)]
    values = [
        class_average("f1", y, predicted, "micro"),
        class_average("f1", y, predicted, "macro"),
    ]  # micro F1 is accuracy
    values += [class_average("roc_auc", y, proba, "macro"), class_average("roc_auc", y, proba, "micro")]
    print(
        f"  {'roc_auc, probabilities':<24}"
        + "".join(f"{v:>{len(s) + 2}.3f}" for v, s in zip(values, CLASS_SCORES, strict=True))
    )


def main():
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    show("Ten digits, about 180 rows each", *load_digits(return_X_y=True), folds, CLASS_SCORES)
    X, y = make_classification(
        3000, 20, n_informative=8, n_redundant=4, n_classes=5, weights=[0.6, 0.2, 0.1, 0.06, 0.04], flip_y=0.05, random_state=0
    )  # fmt: skip
    show("Five classes of 1757 to 133 rows", X, y, folds, CLASS_SCORES)
    X, Y = make_multilabel_classification(4000, 30, n_classes=12, n_labels=2, length=40, random_state=0)
    point = {"recall_at_precision": {"measure": "recall_at_precision", "measure_params": {"precision": 0.6}}}
    show(
        "Twelve labels, each of 11 to 24 % of the rows",
        X,
        Y,
        KFold(3, shuffle=True, random_state=0),
        LABEL_SCORES,
        point,
    )


if __name__ == "__main__":
    main()
