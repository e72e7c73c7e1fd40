"""Error and ranking error of a linear classifier whose scores are normal within either class, from moments alone.

Ghanbari and Scheinberg (2018). With projected moments m = mu'w, s^2 = w'Sw of both classes, intercept b and priors P,

    error    F_n01(w, b) = P+ Phi(-(m+ + b) / s+) + P- Phi((m- + b) / s-)
    ranking  F_nrank(w)  = Phi((m- - m+) / sqrt(s+^2 + s-^2))  =  1 - AUC.

Both do not change when (w, b) is multiplied by a positive number. The ranking error has a closed-form minimum and the error,
with its intercept, is a search over one angle; the derivatives serve the paper's own procedure.
"""

import math
from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np
from scipy.linalg import cho_factor, cho_solve, eigh, solve_triangular
from scipy.optimize import minimize, minimize_scalar
from scipy.special import ndtr

from scoreline.runtime.types import FloatArray

GRID_ANGLES = 2048
PAPER_TOLERANCE = 1e-4  # norm of the gradient where the paper stops
REFINED_ANGLES = 8  # of the best angles of the grid, and their neighbours


class Projected(NamedTuple):
    """Mean and standard deviation of the scores of either class (eq. projected-moments)."""

    mean_positive: float
    mean_negative: float
    std_positive: float
    std_negative: float


def ratio_cdf(mean: float, std: float) -> float:
    """Return Phi(mean / std), at std = 0 its limit: 0, 1/2 or 1 by the sign of the mean."""
    if std > 0.0:
        return float(ndtr(mean / std))
    return 0.5 * (1.0 + math.copysign(1.0, mean)) if mean != 0.0 else 0.5


def ranking_error(scores: Projected) -> float:
    """Return F_nrank, which is 1 - AUC for normal scores (eq. normal-ranking)."""
    spread = math.hypot(scores.std_positive, scores.std_negative)
    return ratio_cdf(scores.mean_negative - scores.mean_positive, spread)


def error(scores: Projected, intercept: float, prior: float) -> float:
    """Return F_n01 at this intercept (eq. normal-error); `prior` is P+."""
    missed = ratio_cdf(-(scores.mean_positive + intercept), scores.std_positive)
    return prior * missed + (1.0 - prior) * ratio_cdf(scores.mean_negative + intercept, scores.std_negative)


def best_intercept(scores: Projected, prior: float) -> float:
    """Return the intercept with the least F_n01: a root of a quadratic, or plus or minus infinity (one class for all)."""
    a, b, c, d = (np.array([v]) for v in scores)
    return float(_best_intercepts(a, b, c, d, prior)[0][0])


def _best_intercepts(
    m_pos: FloatArray, m_neg: FloatArray, s_pos: FloatArray, s_neg: FloatArray, prior: float
) -> tuple[FloatArray, FloatArray]:
    """Return the best intercept and its F_n01 for many projections at once (eq. normal-intercept)."""
    # Where the two weighted densities cross: b^2 (1/s-^2 - 1/s+^2) + 2b (m-/s-^2 - m+/s+^2) + m-^2/s-^2 - m+^2/s+^2
    # + 2 log(P+ s- / (P- s+)) = 0.
    with np.errstate(all="ignore"):
        # A class of one row has no deviation; what rounding leaves of it must not decide either.
        floor = (
            1e-9 * (np.abs(m_pos - m_neg) + np.maximum(s_pos, s_neg)) + 1e-15 * (np.abs(m_pos) + np.abs(m_neg)) + 1e-300
        )
        s_pos, s_neg = np.maximum(s_pos, floor), np.maximum(s_neg, floor)
        i_pos, i_neg = 1.0 / s_pos**2, 1.0 / s_neg**2
        # Around the middle of the means, so that means far from 0 do not drown the difference.
        middle = 0.5 * (m_pos + m_neg)
        a_pos, a_neg = m_pos - middle, m_neg - middle
        quadratic, linear = i_neg - i_pos, a_neg * i_neg - a_pos * i_pos
        odds = 2.0 * np.log(prior * s_neg / ((1.0 - prior) * s_pos))
        constant = a_neg**2 * i_neg - a_pos**2 * i_pos + odds
        # linear^2 - quadratic constant, without the squares that cancel
        root = np.sqrt(np.maximum(i_pos * i_neg * (a_pos - a_neg) ** 2 - quadratic * odds, 0.0))
        q = -(linear + np.copysign(root, linear))
        candidates = np.array([q / quadratic, constant / q, np.full_like(q, np.inf), np.full_like(q, -np.inf)])
        values = prior * ndtr(-(a_pos + candidates) / s_pos) + (1.0 - prior) * ndtr((a_neg + candidates) / s_neg)
    values = np.where(np.isnan(values), np.inf, values)
    best = np.argmin(values, axis=0)
    columns = np.arange(values.shape[1])
    return candidates[best, columns] - middle, values[best, columns]


def best_ranking_direction(delta: FloatArray, covariance: FloatArray) -> FloatArray:
    """Return w ~ S^-1 delta, the global minimum of F_nrank for S = S+ + S-, delta = mu+ - mu- (eq. best-ranking)."""
    factor = cho_factor(covariance, lower=True, check_finite=False)
    if (np.diag(factor[0]) ** 2 <= 4 * len(delta) * np.finfo(float).eps * np.diag(covariance)).any():
        raise np.linalg.LinAlgError("singular to rounding")  # which let it through
    return np.asarray(cho_solve(factor, delta, check_finite=False))


def best_error_direction(
    mean_positive: FloatArray, mean_negative: FloatArray, positive: FloatArray, negative: FloatArray, prior: float
) -> tuple[FloatArray, float, float]:
    """Return (w, b, F_n01): the global minimum over directions and intercepts. One eigendecomposition, O(p^3).

    Stationary points are w = (cos a S+ + sin a S-)^-1 delta with any signs (eq. error-direction). With S- = LL' and
    L^-1 S+ L^-T = U diag(e) U' every angle a costs O(p): a grid, then a local search around the best. The intercept is
    the closed form at every angle.
    """
    lower = np.linalg.cholesky(negative)
    inner = solve_triangular(lower, solve_triangular(lower, positive, lower=True).T, lower=True)
    eigenvalues, U = eigh(0.5 * (inner + inner.T), check_finite=False)
    eigenvalues = np.maximum(eigenvalues, 0.0)
    means = U.T @ solve_triangular(lower, np.column_stack([mean_positive, mean_negative]), lower=True)
    delta = means[:, 0] - means[:, 1]

    # Where delta has no part along an eigenvector the optimum may still lie on it: a little of it opens the way there. Not
    # where the variances are equal, as those of constant columns are: nothing is gained there.
    least = 1e-6 * max(1.0, float(np.abs(delta).max()))
    pushed = np.where((np.abs(delta) < least) & (np.abs(eigenvalues - 1.0) > 1e-6), np.copysign(least, delta), delta)
    pushed = np.ldexp(pushed, -int(np.frexp(np.abs(pushed).max())[1]))  # of any length, which must not overflow

    def look(angles: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        weights = np.outer(np.cos(angles), eigenvalues) + np.sin(angles)[:, None]
        v = pushed / np.where(np.abs(weights) < 1e-300, 1e-300, weights)
        v /= np.maximum(np.abs(v).max(axis=1, keepdims=True), 1e-300)
        spread = np.sqrt(v**2 @ eigenvalues), np.sqrt((v**2).sum(axis=1))
        b, value = _best_intercepts(v @ means[:, 0], v @ means[:, 1], *spread, prior)
        return v, b, value

    angles = _grid(eigenvalues)
    values = np.concatenate(
        [look(part)[2] for part in np.array_split(angles, max(1, len(angles) * len(delta) // 2**22))]
    )
    best_angle, best = float(angles[np.argmin(values)]), float(values.min())
    for k in np.argsort(values)[:REFINED_ANGLES]:
        low, high = angles[k - 1] if k else angles[-1] - 2.0 * np.pi, angles[(k + 1) % len(angles)]
        high = high if high > angles[k] else high + 2.0 * np.pi
        found = minimize_scalar(
            lambda a: float(look(np.array([a]))[2][0]), bounds=(low, high), method="bounded", options={"xatol": 1e-12}
        )
        if found.fun < best:
            best_angle, best = float(found.x), float(found.fun)
    v, b, value = look(np.array([best_angle]))
    w = solve_triangular(lower, U @ v[0], lower=True, trans="T")
    return w, float(b[0]), float(value[0])


def _grid(eigenvalues: FloatArray) -> FloatArray:
    """Return angles: evenly spaced, and more on either side of where an eigenvalue makes the matrix singular."""
    even = np.linspace(0.0, 2.0 * np.pi, GRID_ANGLES, endpoint=False)
    # cos a e + sin a = 0 at a = -arctan(e) and half a turn on.
    chosen = eigenvalues if len(eigenvalues) <= 64 else np.quantile(eigenvalues, np.linspace(0.0, 1.0, 64))
    poles = np.concatenate([-np.arctan(chosen), np.pi - np.arctan(chosen)])
    neighbours = np.outer([-1.0, 1.0], 10.0 ** -np.arange(1.5, 8.0)).ravel()
    return np.unique(np.mod(np.concatenate([even, (poles[:, None] + neighbours).ravel()]), 2.0 * np.pi))


def shape_of_scores(z: FloatArray, weight: FloatArray | None) -> dict[str, float]:
    """Return weight, mean, std, skewness, excess kurtosis and Kolmogorov-Smirnov distance of weighted scores."""
    s = np.ones(len(z)) if weight is None else weight
    total = float(s.sum())
    mean = float(s @ z) / total
    centred = z - mean
    second, third, fourth = (float(s @ centred**k) / total for k in (2, 3, 4))
    std = math.sqrt(second * total / (total - 1.0)) if total > 1.0 else 0.0
    skewness = third / second**1.5 if second > 0.0 else 0.0
    kurtosis = fourth / second**2 - 3.0 if second > 0.0 else 0.0
    order = np.argsort(z)
    after = np.cumsum(s[order]) / total
    expected = ndtr(centred[order] / std) if std > 0.0 else np.full(len(z), 0.5)
    # Equal scores are one step of the distribution function.
    last = np.append(z[order][1:] != z[order][:-1], True)
    steps, at = after[last], expected[last]
    distance = max(float(np.max(np.abs(steps - at))), float(np.max(np.abs(np.append(0.0, steps[:-1]) - at))))
    return {"weight": total, "mean": mean, "std": std, "skewness": skewness, "kurtosis": kurtosis, "ks": distance}


class Covariance(Protocol):
    """What can be multiplied by a vector: a matrix, or the product of X' and X that stands for it."""

    def __matmul__(self, v: FloatArray, /) -> FloatArray: ...


class Term:
    """T(w) = Phi(mu'w / sqrt(w'Sw)) with its gradient: what F_n01 and F_nrank are made of."""

    def __init__(self, mean: FloatArray, covariance: Covariance):
        self.mean, self.covariance = mean, covariance

    def value_grad(self, w: FloatArray) -> tuple[float, FloatArray]:
        """Return T and its gradient phi(g) (mu / s - M h / s^3), M = mu'w, h = Sw, g = M / s (eq. term-gradient)."""
        h = self.covariance @ w
        s, M = math.sqrt(max(float(w @ h), 1e-300)), float(self.mean @ w)
        return float(ndtr(M / s)), _density(M / s) * (self.mean / s - (M / s**3) * h)


def _density(x: float) -> float:
    return math.exp(-0.5 * x * x) / math.sqrt(2.0 * math.pi)


class Penalised:
    """sum of weighted terms + penalty (1 - |w|^2)^2 (eq. length-penalty): what the paper minimises by L-BFGS.

    The sum does not change with the length of w, so the penalty does not move the direction of a minimum; it sets |w| = 1.
    """

    def __init__(self, terms: list[tuple[float, Term]], penalty: float):
        self.terms, self.penalty = terms, penalty

    def value_grad(self, w: FloatArray) -> tuple[float, FloatArray]:
        """Return value and gradient."""
        excess = 1.0 - float(w @ w)
        value, grad = self.penalty * excess**2, -4.0 * self.penalty * excess * w
        for weight, term in self.terms:
            own, slope = term.value_grad(w)
            value, grad = value + weight * own, grad + weight * slope
        return value, grad


def paper_start(mean_positive: FloatArray, mean_negative: FloatArray) -> FloatArray:
    """Return the paper's start mu+ - (mu-.mu+ / |mu-|^2) mu- (eq. paper-start), of length 1; mu+ - mu- if it is 0."""
    square = float(mean_negative @ mean_negative)
    start = mean_positive - (float(mean_negative @ mean_positive) / square if square > 0.0 else 0.0) * mean_negative
    if np.linalg.norm(start) <= 1e-12 * np.linalg.norm(mean_positive):
        start = mean_positive - mean_negative
    size = float(np.linalg.norm(start))
    return start / size if size > 0.0 else np.full(len(start), 1.0 / math.sqrt(len(start)))


def paper_lbfgs(
    value_grad: Callable[[FloatArray], tuple[float, FloatArray]], start: FloatArray, order: float = 2.0
) -> tuple[FloatArray, int]:
    """Return where L-BFGS ends by the settings of section 4 of the paper, and its iterations.

    20 pairs, at most 500 iterations, until a norm of the gradient is at most 1e-4. The paper does not say which norm: `order`
    is 2, or infinity for the largest component.
    """
    norm = math.inf

    def watched(x: FloatArray) -> tuple[float, FloatArray]:
        nonlocal norm
        value, grad = value_grad(x)
        norm = float(np.linalg.norm(grad, order))
        return value, grad

    def look(_: FloatArray) -> None:  # the line search ends with the point that it accepts
        if norm <= PAPER_TOLERANCE:
            raise StopIteration

    found = minimize(
        watched, start, jac=True, method="L-BFGS-B", callback=look,
        options={"maxcor": 20, "gtol": 0.0, "ftol": 0.0, "maxiter": 500, "maxfun": 5000},
    )  # fmt: skip
    return found.x, int(found.nit)
