"""A sigmoid that turns scores of left-out rows into probabilities (Platt 1999, with the targets of that paper)."""

from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize, minimize_scalar
from scipy.special import expit, log_expit

from scoreline._typing import AnyArray, FloatArray

LEAST_SLOPE = 1e-3  # a standard deviation of the scores: a thousandth of a unit of log-odds


class Sigmoid(NamedTuple):
    """P(positive) = 1 / (1 + exp(-(slope z + offset))) of a score z; slope > 0, so that probabilities rank as scores do."""

    slope: float
    offset: float
    ranks: bool = True  # False: higher scores were not more often positive, and the slope is the least one

    def probability(self, z: FloatArray) -> FloatArray:
        """Return P(negative), P(positive) of each score, of shape (n, 2); both are exact near 0."""
        odds, both = self.slope * z + self.offset, np.empty((len(z), 2))
        expit(odds, out=both[:, 1])
        expit(np.negative(odds, out=odds), out=both[:, 0])
        return both

    def log_probability(self, z: FloatArray) -> FloatArray:
        """Return their logarithms, of shape (n, 2), which differ also where probabilities round to 1."""
        odds = self.slope * z + self.offset
        return np.column_stack([log_expit(-odds), log_expit(odds)])


def fit_sigmoid(sign: AnyArray, z: FloatArray, weight: FloatArray | None = None) -> Sigmoid:
    """Return the sigmoid of the largest likelihood, with targets (n+ + 1) / (n+ + 2) and 1 / (n- + 2) in place of 1 and 0.

    These targets keep the slope finite where the scores separate the classes. Newton's method on two numbers; each of its
    about ten steps reads the n scores once.

    Parameters
    ----------
    sign : array of n labels
        +1 and -1.
    z : array of n scores
        Of rows that their model has not seen.
    weight : array of n weights, optional
        How often each row counts.

    Returns
    -------
    Sigmoid
        Its slope is at least a thousandth of the inverse of the scores' standard deviation.
    """
    positive = sign > 0
    if weight is not None:
        counted = weight > 0.0
        positive, z, weight = positive[counted], z[counted], weight[counted]
    share: FloatArray | float = 1.0 / len(z) if weight is None else weight / weight.sum()
    n_positive = float(positive.sum() if weight is None else weight[positive].sum())
    n_negative = float(len(z) if weight is None else weight.sum()) - n_positive
    target = np.where(positive, (n_positive + 1.0) / (n_positive + 2.0), 1.0 / (n_negative + 2.0))
    mean, unit = _center_and_unit(z, share)
    u = (z - mean) / unit

    def loss(ab: FloatArray) -> tuple[float, FloatArray]:
        odds = ab[0] * u + ab[1]
        wrong = share * (expit(odds) - target)
        value = float((share * (target * log_expit(odds) + (1.0 - target) * log_expit(-odds))).sum())
        return -value, np.array([float((wrong * u).sum()), float(wrong.sum())])

    def curvature(ab: FloatArray) -> FloatArray:
        odds = ab[0] * u + ab[1]
        d = share * expit(odds) * expit(-odds)
        cross = float((d * u).sum())
        return np.array([[float((d * u * u).sum()), cross], [cross, float(np.sum(d))]])

    base = float(np.log((n_positive + 1.0) / (n_negative + 1.0)))
    found = minimize(
        loss, np.array([0.0, base]), jac=True, hess=curvature, method="trust-exact", options={"gtol": 1e-10}
    ).x
    a, b, ranks = float(found[0]), float(found[1]), True
    if not (np.isfinite(found).all() and a >= LEAST_SLOPE):
        a, ranks = LEAST_SLOPE, False
        b = float(minimize_scalar(lambda b: loss(np.array([a, b]))[0], bracket=(base - 1.0, base + 1.0)).x)
    return Sigmoid(a / unit, b - a * mean / unit, ranks)


def _center_and_unit(z: FloatArray, share: FloatArray | float) -> tuple[float, float]:
    """Return mean and standard deviation of the scores, without overflow of squares; 1 in place of a deviation of 0."""
    low, high = float(z.min()), float(z.max())
    size = 0.5 * high - 0.5 * low
    if size <= 0.0:
        return low, 1.0
    v = (z - low) / size
    mean = float((share * v).sum())
    return low + size * mean, size * float(np.sqrt((share * (v - mean) ** 2).sum()))
