"""Pages for the tests: an easy data set, a hard one, and one with a single positive among the test rows."""

import functools
import warnings

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from scoreline import MeasureClassifier
from scoreline.io import make_imbalanced
from scoreline.report import PageContent

NASTY = "<script>alert('x')</script> & \"$\\frac$\" _name\x00\u202e"


# Verdicts, differences and seconds are made up: what is tested is how they are shown.
def content_of(*made_of, **changes):
    return PageContent(**(parts_of(*made_of) | changes))


def parts_of(clf, rival, data, title, kind, verdict):
    X, y, X_test, y_test, names = data
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        clf.fit(X, y)
        decisions = {f"scoreline ({clf.measure})": clf.decision_function(X_test)}
        for name, model in rival.items():
            decisions[name] = model.fit(X, y).decision_function(X_test)
    truth = np.asarray(y_test) == clf.classes_[1]
    called = {name: z > 0 for name, z in decisions.items()}
    table = [
        {
            "model": name,
            "recall": f"{called[name][truth].mean() if truth.any() else 0.0:.3f}",
            "precision": f"{truth[called[name]].mean() if called[name].any() else 0.0:.3f}",
            "difference": "–" if k == 0 else "0.021 (0.010 to 0.042)",  # noqa: RUF001 - as pages print it
            "seconds": f"{0.31 * (k + 1):.2f}",
        }
        for k, name in enumerate(decisions)
    ]
    return {
        "title": title,
        "verdict": verdict,
        "verdict_kind": kind,
        "table": table,
        "classifier": clf,
        "y_true": truth,
        "decisions": decisions,
        "evaluated_on": f"{len(truth):,} test rows that no model has seen, {truth.sum():,} of them positive",
        "names": names,
        "facts": [
            ("file", "/data/payments/2024/some-rather-long-folder-name/payments-with-outcome.csv"),
            ("training rows", f"{len(y):,}, {np.mean(np.asarray(y) == clf.classes_[1]):.2%} positive"),
            ("columns", f"{X.shape[1]}, all of them numbers"),
        ],
        "warnings": ["3 columns are constant and were left out: a, b, c."],
        "commands": [
            "pip install 'scoreline[plot]'",
            "scoreline compare payments.csv --label outcome --positive fraud --measure roc_auc --report report.html",
        ],
        "column_scale": np.asarray(X).std(axis=0),
        "created": "2024-05-01 12:00 UTC, scoreline 0.1",
    }


def logistic(**params):
    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000, **params))


@functools.cache
def easy_parts():
    X, y, names = *load_breast_cancer(return_X_y=True), [str(n) for n in load_breast_cancer().feature_names]
    X, X_test, y, y_test = train_test_split(X, y, stratify=y, random_state=0)
    label = np.array(["malignant", "benign"])  # as scikit-learn codes them; the larger name is positive
    return parts_of(
        MeasureClassifier("f1", scaling="standard"),
        {"LogisticRegression": logistic(), "LogisticRegression, balanced": logistic(class_weight="balanced")},
        (X, label[y], X_test, label[y_test], names),
        "breast-cancer.csv: malignant or benign",
        "tie",
        "Training for F1 makes no difference here: 0.958 against 0.953 for logistic regression, with a 95 % interval of the "
        "difference from -0.02 to 0.03.",
    )


@functools.cache
def hard_parts():
    X, y = make_imbalanced(20_000, random_state=0)
    X, X_test, y, y_test = train_test_split(X, y, stratify=y, random_state=0)
    return parts_of(
        MeasureClassifier("roc_auc", alpha=1e-3, scaling="standard"),
        {"LogisticRegression": logistic()},
        (X, y, X_test, y_test, None),
        "payments.csv: fraud",
        "pays",
        "Training for the ROC area gains 2.6 points over logistic regression, with a 95 % interval of 1.0 to 4.2.",
    )


@functools.cache
def degenerate_parts():
    """One positive among the test rows, one feature with a name of a stranger, a rival with one score for all."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 1))
    y = (X[:, 0] + rng.standard_normal(60) > 1.4).astype(int)
    X_test, y_test = rng.standard_normal((12, 1)), np.arange(12) == 0

    class Constant:
        def fit(self, X, y):
            return self

        def decision_function(self, X):
            return np.full(len(X), -1.0)

    long = "a name of a model that is as long as names of files of strangers may be, 80 letters"
    names = [NASTY + " and then some more letters until there are eighty of them or a few more"]
    return parts_of(
        MeasureClassifier("mcc", scaling="standard"),
        {long: Constant(), NASTY: Constant()},
        (X, y, X_test, y_test.astype(int), names),
        f"tiny.csv {NASTY}",
        "loses",
        f"One positive row is not enough to compare anything {NASTY}.",
    )


def easy(**changes):
    return PageContent(**(easy_parts() | changes))


def hard():
    return PageContent(**hard_parts())


def degenerate(**changes):
    return PageContent(**(degenerate_parts() | changes))


EXAMPLES = {"easy": easy, "hard": hard, "degenerate": degenerate}
