"""How far SPADE and STAMP are from the optimum after so many rows (theorems 4 and 9 of Narasimhan, Kar and Jain 2015).

Theorem 9 is about algorithm 3 with the level of the rewards. The paper's experiments and the solver take that of the
predictions, which leads near the optimum of the rewards and not to it.
"""

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.optimize import minimize

from scoreline.classifier import MeasureClassifier
from scoreline.runtime.types import AnyArray, FloatArray
from studies.datasets import SEED

ROWS, COLUMNS, RADIUS = 400, 3, 2.0  # of the distribution, and of the ball of coefficients
SHARE, FIRST_EPOCH = 0.5, 100  # of positives, and rows of either stage of the first epoch
SOLVERS = {"min_tpr_tnr": "spade", "f1": "stamp"}


def distribution() -> tuple[FloatArray, AnyArray]:
    """Return the rows, all as likely, and their classes, half of them positive."""
    rng = np.random.default_rng(SEED)
    y = np.where(np.arange(ROWS) % 2 == 0, 1, -1)
    X = rng.standard_normal((ROWS, COLUMNS)) + 0.8 * y[:, None]
    return X / (2.0 * np.abs(X).max()), y


def rewarded(measure: str, X: FloatArray, y: AnyArray, w: FloatArray) -> float:
    """Return the measure of rewards min(1, y s) in place of the rates; the intercept is the last coefficient."""
    reward = np.minimum(1.0, y * (X @ w[:-1] + w[-1]))
    P, N = float(reward[y > 0].mean()), float(reward[y < 0].mean())
    return min(P, N) if measure == "min_tpr_tnr" else 2.0 * P / (2.0 + P - N)


def best(measure: str) -> float:
    """Return the largest value within the ball: both measures have no local maxima beside it."""
    X, y = distribution()
    rng = np.random.default_rng(SEED)
    inside = {"type": "ineq", "fun": lambda w: RADIUS**2 - w @ w}
    found = [
        minimize(lambda w: -rewarded(measure, X, y, w), start, method="SLSQP", constraints=inside, options={"maxiter": 1000})
        for start in 0.5 * rng.standard_normal((10, COLUMNS + 1))
    ]  # fmt: skip
    return float(max(-each.fun for each in found))


def gaps(measure: str, sizes: Sequence[int], draws: int) -> list[float]:
    """Return mean distances to the optimum by the number of independent rows, of one pass with steps of 1/sqrt(t).

    The default steps are in other units, in which the ball is another one.
    """
    (X, y), top, found = distribution(), best(measure), []
    options: dict[str, Any] = {"step": "paper", "passes": 1}
    if measure == "f1":
        options["weights"] = "level"
    for T in sizes:
        own = []
        for draw in range(draws):
            chosen = np.random.default_rng([SEED, draw]).integers(0, ROWS, T)
            model = MeasureClassifier(
                measure, solver=SOLVERS[measure], alpha=2.0 / RADIUS**2, threshold="none", random_state=draw,
                solver_params=options,
            )  # fmt: skip
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model.fit(X[chosen], y[chosen])
            own.append(top - rewarded(measure, X, y, np.append(model.coef_, model.trained_intercept_)))
        found.append(float(np.mean(own)))
    return found


def by_epoch(epochs: int, draws: int) -> tuple[list[int], list[float]]:
    """Return rows and mean distances to the optimum after every epoch of algorithm 3 for F1, whose epochs double from 100 rows.

    As printed it keeps the last iterate of an epoch, and steps begin anew with 1/sqrt(1). Rewards are averaged over the rows of
    the second stage, where the paper prints sums. All draws are trained at once.
    """
    (X, y), top, rng = distribution(), best("f1"), np.random.default_rng(SEED)
    rows = np.column_stack([X, np.ones(ROWS)])
    w, level, length, used = np.zeros((draws, COLUMNS + 1)), np.zeros(draws), FIRST_EPOCH, 0
    observed, found = [], []
    for _ in range(epochs):
        for t, chosen in enumerate(rng.integers(0, ROWS, (length, draws)), start=1):
            x, sign = rows[chosen], y[chosen]
            inside = sign * np.einsum("ij,ij->i", x, w) < 1.0
            weight = inside * np.where(sign > 0, 1.0 - 0.5 * level, 0.5 * level) / SHARE
            w = w + (weight * sign / np.sqrt(t))[:, None] * x
            w *= np.minimum(1.0, RADIUS / np.maximum(np.linalg.norm(w, axis=1), 1e-12))[:, None]
        chosen = rng.integers(0, ROWS, (length, draws))
        reward = np.minimum(1.0, y[chosen] * np.einsum("ijk,jk->ij", rows[chosen], w)) / SHARE
        P, N = ((reward * (y[chosen] == sign)).mean(axis=0) for sign in (1, -1))
        level, used, length = 2.0 * P / (2.0 + P - N), used + 2 * length, 2 * length
        observed.append(used)
        found.append(float(np.mean([top - rewarded("f1", X, y, own) for own in w])))
    return observed, found
