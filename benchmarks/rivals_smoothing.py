"""What benchmarks/smoothing.py races against: L-BFGS-B on a fixed smoothing (the paper's way), and plain cutting planes.

The smoothed risks are vectorised NumPy: ROC area by two sorts, searchsorted and prefix sums, PRBEP by the sorted kinks of
its balance function. `check` compares them with scoreline's own before any clock starts.
"""

import contextlib
import time

import numpy as np
from numba import njit
from scipy.optimize import minimize
from threadpoolctl import ThreadpoolController

from scoreline.runtime.parallel import available_threads

BLAS, THREADS = ThreadpoolController(), available_threads()
EPS, C_MU = 1e-3, 10.0  # Zhang, Saha and Vishwanathan (2012), section 5.4: mu = 10 eps / D


def paper_mu(risk, n_positive, n_negative, c_mu=C_MU):
    """Return mu = c_mu eps / D with the paper's D: n / 2 for PRBEP, n+ n- / 2 for ROC area."""
    D = 0.5 * (n_positive + n_negative) if risk == "prbep" else 0.5 * n_positive * n_negative
    return c_mu * EPS / D


def _ramps(t0, sums, first, last, width, sign):
    """Return sums over rows first..last of sign (s - t0) / width and of its square, from prefix sums of s and s^2."""
    count = last - first
    one = sums[0][last] - sums[0][first]
    two = sums[1][last] - sums[1][first]
    return sign * (one - count * t0) / width, (two - 2.0 * t0 * one + count * t0**2) / width**2


def roc_area(z, positive, mu):
    """Return R_mu and its gradient: sum over pairs of the ramp of t = v_j - u_i, u = z - 1 on positives."""
    z = z - z.mean()  # prefix sums of squares cancel less
    order_u, order_v = np.argsort(z[positive]), np.argsort(z[~positive])
    u, v = z[positive][order_u] - 1.0, z[~positive][order_v]
    pairs = len(u) * len(v)
    width = mu * pairs
    sums_u, sums_v = ([np.concatenate([[0.0], np.cumsum(s**k)]) for k in (1, 2)] for s in (u, v))
    above, full = np.searchsorted(v, u, "right"), np.searchsorted(v, u + width, "left")
    ramp, square = _ramps(u, sums_v, above, full, width, 1.0)
    n_full = len(v) - full
    value = 0.5 * width * square.sum() + (sums_v[0][-1] - sums_v[0][full] - n_full * (u + 0.5 * width)).sum()
    below, full_u = np.searchsorted(u, v, "left"), np.searchsorted(u, v - width, "right")
    beta_u = ramp + n_full
    beta_v = _ramps(v, sums_u, full_u, below, width, -1.0)[0] + full_u
    grad, part = np.empty(len(z)), np.empty(len(u))
    part[order_u] = -beta_u / pairs
    grad[positive] = part
    part = np.empty(len(v))
    part[order_v] = beta_v / pairs
    grad[~positive] = part
    return value / pairs, grad


def prbep(z, positive, mu):
    """Return R_mu and its gradient: the bias tau that balances both classes, from the 2n sorted kinks.

    No dot products of n numbers here: OpenBLAS does them in threads, and takes 15 ms instead of 1 where a core is busy.
    """
    n, n_positive = len(z), int(positive.sum())
    width, sign = 0.5 * n * mu, np.where(positive, 1.0, -1.0)
    t0 = np.where(positive, 0.5 * n / n_positive - z, z)
    starts = np.sort(np.where(positive, t0 - width, -t0))  # a row's ramp in tau; it ends one width later
    kinks = np.concatenate([starts, starts + width])
    order = np.argsort(kinks, kind="stable")  # two sorted runs: a merge
    kinks = kinks[order]
    slope = np.cumsum(np.where(order < n, -1.0, 1.0)) / width
    balance = n_positive + np.concatenate([[0.0], np.cumsum(slope[:-1] * np.diff(kinks))])
    k = max(1, int(np.argmax(balance <= 0.0)))
    drop = balance[k - 1] - balance[k]
    tau = kinks[k - 1] + (kinks[k] - kinks[k - 1]) * (balance[k - 1] / drop if drop > 0.0 else 0.0)
    t = t0 - sign * tau
    active, full = (t > 0.0) & (t < width), t >= width
    if active.any():  # exactly, from the rows on their ramp
        tau = ((sign * t0)[active].sum() + width * sign[full].sum()) / active.sum()
        t = t0 - sign * tau
    beta = np.clip(t / width, 0.0, 1.0)
    return 2.0 / n * float((beta * (t - 0.5 * width * beta)).sum()), -2.0 / n * sign * beta


RISKS = {"roc_area": roc_area, "prbep": prbep}


def check(name, prepared, y, seed):
    """Raise unless the NumPy risk agrees with scoreline's (values to 1e-9, gradients too, relative to their largest)."""
    rng, positive = np.random.default_rng(seed), y > 0
    for c_mu in (1000.0, 100.0, 10.0):
        mu = paper_mu(name, positive.sum(), (~positive).sum(), c_mu)
        for scale in (0.0, 0.1, 1.0, 10.0):
            z = scale * (rng.standard_normal(len(y)) + 0.5 * positive)
            value, grad = RISKS[name](z, positive, mu)
            own = prepared.evaluate(z, mu)
            np.testing.assert_allclose(value, own.value, rtol=1e-9, err_msg=f"{name} c_mu={c_mu} scale={scale}")
            np.testing.assert_allclose(grad, own.grad, rtol=1e-9, atol=1e-9 * np.abs(own.grad).max())


class Track:
    """A clock that stops while J is looked at, and the rows (seconds, passes, J) it saw."""

    def __init__(self, value, target, cap, look=None):
        self.value, self.target, self.cap, self.look = value, target, cap, look
        self.rows, self.begin = [], time.perf_counter()

    def see(self, w, passes):
        """Note J(w) off the clock; True when it is low enough or the time is up."""
        now = time.perf_counter()
        self.rows.append((now - self.begin, passes, self.value(w)))
        if self.look is not None:
            self.look(self.rows[-1], w)
        done = self.rows[-1][2] <= self.target or now - self.begin >= self.cap
        self.begin += time.perf_counter() - now
        return done


def paper_style(X, y, risk, alpha, track, make_operator=None, c_mu=C_MU):
    """Minimise J_mu for the paper's fixed mu by L-BFGS-B; SciPy or NumPy products, or those of make_operator(X).

    BLAS gets one thread, but for products with a dense X: inside L-BFGS-B its threads only wait for each other, which makes
    the whole run five times as slow on two cores of which one is busy.
    """
    positive = y > 0
    mu = paper_mu(risk, int(positive.sum()), int((~positive).sum()), c_mu)
    if make_operator is None:
        across = X.T
        times, back = (lambda w: X @ w), (lambda u: across @ u)
        if isinstance(X, np.ndarray):
            times, back = (
                BLAS.wrap(limits=THREADS, user_api="blas")(times),
                BLAS.wrap(limits=THREADS, user_api="blas")(back),
            )
    else:
        operator = make_operator(X)
        times, back = operator.matvec, operator.rmatvec
    smooth, passes = RISKS[risk], 0

    def fun(w):
        nonlocal passes
        value, grad = smooth(times(w), positive, mu)
        gradient = alpha * w + back(grad)
        passes += 2
        if passes == 2 and track.see(w, passes):
            raise StopIteration
        if time.perf_counter() - track.begin > track.cap:
            raise StopIteration
        return value + 0.5 * alpha * (w @ w), gradient

    def callback(w):
        if track.see(w, passes):
            raise StopIteration

    options = {"maxcor": 10, "maxiter": 10**6, "maxfun": 10**6, "ftol": 1e-15, "gtol": 1e-12}
    with contextlib.suppress(StopIteration), BLAS.limit(limits=1, user_api="blas"):
        minimize(fun, np.zeros(X.shape[1]), jac=True, method="L-BFGS-B", callback=callback, options=options)
    return track.rows


@njit(cache=True)
def _simplex_qp(gram, b, alpha, weight, tol, most):
    """Maximise <b, t> - t'Gt / (2 alpha) over the simplex from `weight`, in place, by pairs of coordinates."""
    k = len(b)
    slope = b - gram @ weight / alpha
    for _ in range(most):
        up = np.argmax(slope)
        down, gain, worst = -1, 0.0, 0.0
        for j in range(k):
            if weight[j] > 0.0 and slope[up] > slope[j]:
                curve = max((gram[up, up] - 2.0 * gram[up, j] + gram[j, j]) / alpha, 1e-300)
                worst = max(worst, slope[up] - slope[j])
                if (slope[up] - slope[j]) ** 2 / curve > gain:
                    down, gain = j, (slope[up] - slope[j]) ** 2 / curve
        if down < 0 or worst <= tol:
            break
        curve = max((gram[up, up] - 2.0 * gram[up, down] + gram[down, down]) / alpha, 1e-300)
        step = min(weight[down], (slope[up] - slope[down]) / curve)
        weight[up] += step
        weight[down] = 0.0 if step == weight[down] else weight[down] - step
        slope -= step / alpha * (gram[up, :k] - gram[down, :k])


def cutting_planes(objective, target, cap):
    """Run BMRM on J itself, with scoreline's risk and products; rows (seconds, passes, best J).

    Its small dual problem is solved to a twentieth of the gap, or 20,000 steps, warm-started.
    """
    _simplex_qp(np.eye(1), np.zeros(1), 1.0, np.ones(1), 0.0, 1)  # compile
    begin, alpha, best, rows = time.perf_counter(), objective.alpha, np.inf, []
    w = np.zeros(objective.n_features)
    planes, constants, weight = np.empty((64, len(w))), np.empty(64), np.zeros(0)
    gram, k, lower = np.empty((64, 64)), 0, -np.inf
    while True:
        point = objective.at(w, objective.scores(w))
        best = min(best, point.objective)
        rows.append((time.perf_counter() - begin, 2.0 * k + 1.0, best))
        if best <= target or rows[-1][0] >= cap:
            return rows
        a = objective.slope(point)
        if k == len(constants):
            planes, constants = np.vstack([planes, np.empty_like(planes)]), np.append(constants, np.empty(k))
            gram = np.pad(gram, (0, k))
        planes[k], constants[k] = a, point.risk.hard - a @ w
        gram[k, : k + 1] = gram[: k + 1, k] = planes[: k + 1] @ a
        k += 1
        weight = np.append(weight, 1.0 if k == 1 else 0.0)
        inner = gram[:k, :k].copy()
        gap = best - lower if np.isfinite(lower) else best
        _simplex_qp(inner, constants[:k], alpha, weight, 0.05 * gap, 20_000)
        mixed = weight @ planes[:k]
        lower = max(lower, constants[:k] @ weight - mixed @ mixed / (2.0 * alpha))
        w = -mixed / alpha
