"""The rivals of Ghanbari, Li and Scheinberg (2018) as printed: L-BFGS on two convex losses from random starts, and Adam."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit

from scoreline.runtime.types import AnyArray, FloatArray
from scoreline.solvers.normal_model import paper_lbfgs

# Adam: the step and the decays that the paper gives, which are those of Kingma and Ba (2015).
ADAM_STEP, ADAM_DECAYS, ADAM_LEAST, EPOCHS = 1e-3, (0.9, 0.999), 1e-8, 500
BATCH, SMALL_BATCHES = 200, {"colon-cancer": 10, "vowel": 20, "sonar": 20}

Loss = Callable[[FloatArray, AnyArray], tuple[float, FloatArray]]


class Linear(NamedTuple):
    """A linear classifier, and the iterations that it took."""

    w: FloatArray
    intercept: float
    iterations: int

    def scores(self, X: Any) -> FloatArray:
        """Return the scores of rows."""
        return np.asarray(X @ self.w + self.intercept, dtype=float)


def logistic(z: FloatArray, y: AnyArray) -> tuple[float, FloatArray]:
    """Return the mean logistic loss (2.4) and its gradient in the scores."""
    return float(np.mean(np.logaddexp(0.0, -y * z))), -y * expit(-y * z) / len(z)


def pairwise_hinge(z: FloatArray, y: AnyArray) -> tuple[float, FloatArray]:
    """Return the mean over pairs of max(0, 1 - (z+ - z-)), which is (2.8), and a subgradient in the scores; O(n log n)."""
    plus, minus = z[y > 0], z[y < 0]
    high, low = np.sort(plus), np.sort(minus)
    sums = np.append(0.0, np.cumsum(low[::-1]))  # of the largest scores of negatives
    above = len(low) - np.searchsorted(low, plus - 1.0, side="right")  # negatives within 1 of a positive, or above it
    below = np.searchsorted(high, minus + 1.0, side="left")  # positives within 1 of a negative, or below it
    pairs = len(plus) * len(minus)
    grad = np.empty(len(z))
    grad[y > 0], grad[y < 0] = -above / pairs, below / pairs
    return float(above @ (1.0 - plus) + sums[above].sum()) / pairs, grad


LOSSES: dict[str, Loss] = {"accuracy": logistic, "roc_auc": pairwise_hinge}


def with_penalty(X: Any, y: AnyArray, measure: str, penalty: float) -> Callable[[FloatArray], tuple[float, FloatArray]]:
    """Return loss + penalty |w|^2 and its gradient as a function of w; for accuracy the intercept, free, comes last."""
    p, loss, back = X.shape[1], LOSSES[measure], X.T

    def value_grad(v: FloatArray) -> tuple[float, FloatArray]:
        w = v[:p]
        value, slope = loss(X @ w + v[p:].sum(), y)
        grad = back @ slope + 2.0 * penalty * w
        return value + penalty * float(w @ w), np.append(grad, slope.sum()) if len(v) > p else grad

    return value_grad


def random_start(X: Any, measure: str, length: float, rng: np.random.Generator) -> FloatArray:
    """Return normal numbers of deviation `length`: the paper generates "random starting points" and says no more."""
    return np.asarray(length * rng.standard_normal(X.shape[1] + (measure == "accuracy")), dtype=float)


def by_lbfgs(X: Any, y: AnyArray, measure: str, penalty: float, start: FloatArray, order: float = 2.0) -> Linear:
    """Return where the paper's L-BFGS ends on the convex loss, stopped by a norm of the gradient of this order."""
    v, iterations = paper_lbfgs(with_penalty(X, y, measure, penalty), start, order)
    return _linear(v, X.shape[1], iterations)


def by_adam(X: Any, y: AnyArray, penalty: float, batch: int, rng: np.random.Generator) -> Linear:
    """Return where Adam ends on the logistic loss after 500 epochs, from a random start; X is dense."""
    v = random_start(X, "accuracy", 1.0, rng)
    rows = np.column_stack([X, np.ones(len(y))])
    first, second, steps = np.zeros(len(v)), np.zeros(len(v)), 0
    weight = np.append(np.full(len(v) - 1, 2.0 * penalty), 0.0)
    for _ in range(EPOCHS):
        order = rng.permutation(len(y))
        for begin in range(0, len(y), batch):
            chosen = order[begin : begin + batch]
            Z, signs = rows[chosen], y[chosen]
            grad = (-signs * expit(-signs * (Z @ v)) / len(chosen)) @ Z + weight * v
            steps += 1
            first += (1.0 - ADAM_DECAYS[0]) * (grad - first)
            second += (1.0 - ADAM_DECAYS[1]) * (grad**2 - second)
            size = ADAM_STEP / (1.0 - ADAM_DECAYS[0] ** steps)
            v -= size * first / (np.sqrt(second / (1.0 - ADAM_DECAYS[1] ** steps)) + ADAM_LEAST)
    return _linear(v, X.shape[1], steps)


def _linear(v: FloatArray, p: int, iterations: int) -> Linear:
    return Linear(v[:p], float(v[p:].sum()), iterations)
