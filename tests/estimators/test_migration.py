"""What docs/migrate.md says of other tools' C: the same coefficients for the same problem."""

from functools import partial

import numpy as np
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.svm import LinearSVC

from cases import for_each
from problems import overlapping_rows
from scoreline import MeasureClassifier

C, N = 0.3, 400


problem = partial(overlapping_rows, N, 5, share=0.5, separation=1.0)


def ours(risk, alpha, X, **options):
    return MeasureClassifier(
        "accuracy", risk=risk, alpha=alpha, tol=1e-9, threshold="none", max_iter=20_000, **options
    ).fit(X, problem()[1])


@for_each(
    ("rival", "risk", "alpha", "constant"),
    [
        (LogisticRegression(C=C, tol=1e-10, max_iter=1000, fit_intercept=False), "logistic", 1 / (N * C), False),
        (LogisticRegression(C=C, tol=1e-10, max_iter=1000), "logistic", 1 / (N * C), None),
        (LinearSVC(C=C, tol=1e-10, max_iter=100_000), "squared_hinge", 1 / (2 * N * C), True),
        (LinearSVC(C=C, loss="hinge", tol=1e-8, max_iter=1_000_000), "hinge", 1 / (N * C), True),
    ],
)
def test_coefficients_are_the_same(rival, risk, alpha, constant):
    X, y = problem()
    rival.fit(X, y)
    theirs = np.append(rival.coef_, rival.intercept_)
    if constant:  # LIBLINEAR penalises the intercept: ours is then the coefficient of a column of ones
        X = np.column_stack([X, np.ones(N)])
    clf = ours(risk, alpha, X, fit_intercept=constant is None)
    found = clf.coef_[0] if constant else np.append(clf.coef_, clf.trained_intercept_)
    np.testing.assert_allclose(found, theirs, atol=1e-4)


@for_each(
    ("loss", "risk", "factor", "eta0"),
    [("log_loss", "logistic", 1.0, 0.5), ("squared_hinge", "squared_hinge", 0.5, 0.01)],
)
def test_alpha_of_stochastic_gradient(loss, risk, factor, eta0):
    """Stochastic gradient ends near the optimum only: the objective is compared, which would be off by a factor of 2."""
    X, y = problem()
    steps = {"learning_rate": "invscaling", "eta0": eta0, "max_iter": 2000, "tol": None, "average": True}
    rival = SGDClassifier(loss, alpha=1e-2, fit_intercept=False, random_state=0, **steps).fit(X, y)
    clf = MeasureClassifier(
        "accuracy", risk=risk, alpha=factor * 1e-2, tol=1e-8, threshold="none", fit_intercept=False
    ).fit(X, y)
    np.testing.assert_allclose(rival.coef_, clf.coef_, atol=2e-2 * np.abs(clf.coef_).max())
