"""A sigmoid that turns scores of held-out rows into probabilities (Platt 1999, with the targets of that paper)."""

from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize, minimize_scalar
from scipy.special import expit, log_expit

from scoreline.runtime.types import AnyArray, FloatArray

LEAST_SLOPE = 1e-3  # a standard deviation of the scores: a thousandth of a unit of log-odds
OUTLYING = 5.0  # quartile distances from the median: a normal distribution has one score in 10^11 beyond
WIDTHS = (1.0, 2.0, 4.0)  # quartile distances from the median at which outlying scores may be clipped
FOLDS = 5  # of the held-out rows, for the comparison with a constant
MOST_ROWS = 100_000  # of the held-out rows that this comparison reads


EXTREMES = np.errstate(over="ignore", divide="ignore", invalid="ignore")  # infinite losses are looked for


class Sigmoid(NamedTuple):
    """P(positive) = 1 / (1 + exp(-(slope z + offset))) of a score z that is clipped to [low, high] first; slope > 0."""

    slope: float
    offset: float
    ranks: bool = True  # False: higher scores were not more often positive, and the slope is the least one
    low: float = -np.inf
    high: float = np.inf

    def probability(self, z: FloatArray) -> FloatArray:
        """Return P(negative), P(positive) of each score, of shape (n, 2); both are exact near 0."""
        odds, both = self._odds(z), np.empty((len(z), 2))
        expit(odds, out=both[:, 1])
        expit(np.negative(odds, out=odds), out=both[:, 0])
        return both

    def log_probability(self, z: FloatArray) -> FloatArray:
        """Return their logarithms, of shape (n, 2), which differ also where probabilities round to 1."""
        odds = self._odds(z)
        return np.column_stack([log_expit(-odds), log_expit(odds)])

    def _odds(self, z: FloatArray) -> FloatArray:
        return self.slope * np.clip(z, self.low, self.high) + self.offset

    def losses(self, positive: AnyArray, z: FloatArray) -> FloatArray:
        """Return the log loss of each row."""
        losses: FloatArray = -log_expit(np.where(positive, 1.0, -1.0) * self._odds(z))
        return losses


@EXTREMES
def fit_robust_sigmoid(sign: AnyArray, z: FloatArray, weight: FloatArray | None = None) -> Sigmoid:
    """Return the sigmoid of scores that are clipped where outlying ones would flatten it.

    A score far from all others makes a steep sigmoid very costly if its row has the other label, so it flattens the sigmoid
    for all rows. Where scores lie more than 5 quartile distances from the median, the sigmoid is fitted to scores clipped at
    1, 2 and 4 of them, too. The best of these replaces the plain one if its log loss is lower by more than the standard error.
    Parameters are those of `fit_sigmoid`.
    """
    if weight is not None:
        counted = weight > 0.0
        sign, z, weight = sign[counted], z[counted], weight[counted]
    plain = best = fit_sigmoid(sign, z, weight)
    low, median, high = _quartiles(z, weight)
    between = high - low
    if not 0.0 < between < np.inf or max(z.max() - median, median - z.min()) <= OUTLYING * between:
        return plain
    losses, least = plain.losses(sign > 0, z), np.inf
    for width in WIDTHS:
        ends = median - width * between, median + width * between
        slope, offset, ranks, *_ = fit_sigmoid(sign, np.clip(z, *ends), weight)
        clipped = Sigmoid(slope, offset, ranks, *ends)
        own = clipped.losses(sign > 0, z)
        gain, error = _mean_and_error(losses - own, weight)
        if gain > error and -gain < least:
            best, least = clipped, -gain
    return best


@EXTREMES
def gain_over_constant(
    sign: AnyArray, z: FloatArray, weight: FloatArray | None, found: Sigmoid
) -> tuple[float, float, float]:
    """Return by how much the log loss of a sigmoid is below that of the share of positives, the standard error, and that loss.

    Each fifth of the rows is judged by the sigmoid and the share of the others, so neither has seen them.
    """
    if weight is not None:
        counted = weight > 0.0
        sign, z, weight = sign[counted], z[counted], weight[counted]
    order = np.argsort(sign, kind="stable")[:: -(-len(z) // MOST_ROWS)]  # by class, so that each fold has its share
    positive, z = sign[order] > 0, np.clip(z[order], found.low, found.high)
    weight = None if weight is None else weight[order]
    fold = np.arange(len(z)) % FOLDS
    gains, constants = np.empty(len(z)), np.empty(len(z))
    for k in range(FOLDS):
        rest, own = fold != k, fold == k
        training = positive[rest]
        if not own.any() or training.all() or not training.any():
            gains[own] = constants[own] = 0.0
            continue
        counts = None if weight is None else weight[rest]
        sigmoid = fit_sigmoid(np.where(training, 1, -1), z[rest], counts)
        share = float(np.average(training, weights=counts))
        constants[own] = -np.log(np.where(positive[own], share, 1.0 - share))
        gains[own] = constants[own] - sigmoid.losses(positive[own], z[own])
    if not (np.isfinite(gains).all() and np.isfinite(constants).all()):  # scores or weights at the limits of floats
        return 0.0, 0.0, 0.0
    return *_mean_and_error(gains, weight), float(np.average(constants, weights=weight))


def _mean_and_error(values: FloatArray, weight: FloatArray | None) -> tuple[float, float]:
    """Return the mean and its standard error."""
    mean = float(np.average(values, weights=weight))
    share = np.full(len(values), 1.0 / len(values)) if weight is None else weight / weight.sum()
    return mean, float(np.sqrt((share * share * (values - mean) ** 2).sum()))


def _quartiles(z: FloatArray, weight: FloatArray | None) -> tuple[float, float, float]:
    """Return the lower quartile, the median and the upper quartile."""
    if weight is None:
        low, median, high = np.quantile(z, [0.25, 0.5, 0.75]).tolist()
        return low, median, high
    order = np.argsort(z)
    sums = np.cumsum(weight[order])
    places = np.searchsorted(sums, sums[-1] * np.array([0.25, 0.5, 0.75]))
    low, median, high = z[order][np.minimum(places, len(z) - 1)].tolist()
    return low, median, high


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
