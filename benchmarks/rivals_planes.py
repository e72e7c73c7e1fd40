"""What benchmarks/cutting_planes.py races and checks against: tables of all counts, and a plain bundle method in NumPy.

The losses are written out here once more, so that a slip in scoreline's own would show.
"""

import time

import numpy as np
import scipy.sparse as sp
from numba import njit
from threadpoolctl import threadpool_limits

BLOCK = 16  # positives a block of the table of counts: 16 x n- numbers stay in the cache
PATIENCE = 50  # a plane without weight goes after so many iterations, as in SVM-perf
CLEAR = 1e-6  # weights below this are none: an interior-point solver has no zeros
AT_K = ("prbep", "precision_at_k", "recall_at_k")


def called_positive(name, params, n_above, n):
    """Return how many rows the measure wants called positive, or 0 if it leaves that open."""
    if name not in AT_K:
        return 0
    k = params.get("k")
    return n_above if k is None else max(1, round(k * n)) if isinstance(k, float) else k


def loss_table(name, params, n_above, n_below, k=0):
    """Return 1 - measure for all b = 0..n+ (rows) and c = 0..n- (columns); -inf where k excludes the counts."""
    b, c = np.arange(n_above + 1.0)[:, None], np.arange(n_below + 1.0)[None, :]
    p, q = 1.0 - b / n_above, 1.0 - c / n_below
    wrong, n = b + c, n_above + n_below
    if name in ("f1", "fbeta"):
        square = params.get("beta", 1.0) ** 2
        return 1.0 - (1.0 + square) * (n_above - b) / ((1.0 + square) * n_above - b + c)
    if name in AT_K:
        loss = 1.0 - (n_above - b) / k if name == "precision_at_k" else b / n_above
        return np.where(n_above - b + c == k, loss, -np.inf)
    with np.errstate(invalid="ignore"):
        return {
            "accuracy": wrong / n,
            "balanced_accuracy": 1.0 - 0.5 * (p + q),
            "min_tpr_tnr": 1.0 - np.minimum(p, q),
            "jaccard": wrong / (n_above + c),
            "gower_legendre": 1.0 - (n - wrong) / (n - wrong + params.get("sigma", 0.5) * wrong),
            "gmean": 1.0 - np.sqrt(p * q),
            "hmean": np.where(p + q > 0.0, 1.0 - 2.0 * p * q / (p + q), 1.0),
            "qmean": np.sqrt(0.5 * ((1.0 - p) ** 2 + (1.0 - q) ** 2)),
        }[name]


def tables(loss, z, positive):
    """Return V[problem, b, c] for the scores z[problem, row] of problems with the same labels."""
    n, first = z.shape[1], np.zeros((len(z), 1))
    above = np.hstack([first, -2.0 / n * np.cumsum(np.sort(z[:, positive], axis=1), axis=1)])
    below = np.hstack([first, 2.0 / n * np.cumsum(-np.sort(-z[:, ~positive], axis=1), axis=1)])
    return loss[None] + above[:, :, None] + below[:, None, :]


@njit(cache=True)
def by_falling_c(V):
    """Return for each table the maximum that a divide and conquer over b finds if the best c is taken not to rise with b.

    Method 2 of the formula sheet: right for losses with a mixed difference of at most 0, wrong for F-beta with beta < 1.
    """
    problems, rows, columns = V.shape
    found, stack = np.empty(problems), np.empty((2 * rows + 2, 4), dtype=np.int64)
    for k in range(problems):
        best, size = -np.inf, 1
        stack[0] = 0, rows - 1, 0, columns - 1
        while size > 0:
            size -= 1
            first, last, low, high = stack[size]
            middle = (first + last) // 2
            at = low
            for c in range(low, high + 1):
                if V[k, middle, c] > V[k, middle, at]:
                    at = c
            best = max(best, V[k, middle, at])
            if first < middle:
                stack[size] = first, middle - 1, at, high
                size += 1
            if middle < last:
                stack[size] = middle + 1, last, low, at
                size += 1
        found[k] = best
    return found


class F1Table:
    """The F1 oracle by the table of all counts: O(n+ n-) a call, in blocks; the losses are computed once."""

    def __init__(self, y):
        self.above, self.below = np.flatnonzero(y > 0), np.flatnonzero(y < 0)
        n_above, n_below = len(self.above), len(self.below)
        b, c = np.arange(n_above + 1.0)[:, None], np.arange(n_below + 1.0)[None, :]
        self.loss = 2.0 * n_above - b + c  # in place from here: at 200 MB a temporary costs as much as the rest
        np.divide(2.0 * (b - n_above), self.loss, out=self.loss)
        self.loss += 1.0
        self.buffer = np.empty((BLOCK, n_below + 1))

    def __call__(self, z):
        """Return R(z) and a subgradient."""
        h = 2.0 / len(z)
        above, below = self.above[np.argsort(z[self.above])], self.below[np.argsort(-z[self.below])]
        gain_above = np.append(0.0, -h * np.cumsum(z[above]))
        gain_below = np.append(0.0, h * np.cumsum(z[below]))
        best, at = -np.inf, (0, 0)
        for first in range(0, len(gain_above), BLOCK):
            rows = self.loss[first : first + BLOCK]
            sums = np.add(rows, gain_below, out=self.buffer[: len(rows)])
            values = sums.max(axis=1) + gain_above[first : first + BLOCK]
            b = int(np.argmax(values))
            if values[b] > best:
                best, at = values[b], (first + b, int(np.argmax(sums[b])))
        grad = np.zeros(len(z))
        grad[above[: at[0]]], grad[below[: at[1]]] = -h, h
        return float(best), grad


def small_problem(slopes, constants, alpha):
    """Return the weights t in the simplex that maximise <c, t> - |V't|^2 / (2 alpha), by Clarabel."""
    import clarabel  # comes with cvxpy, which the extra "test" installs

    settings = clarabel.DefaultSettings()
    settings.verbose = False
    k = len(constants)
    G = sp.csc_matrix(np.triu(slopes @ slopes.T / alpha))
    A = sp.vstack([np.ones((1, k)), -sp.identity(k)], format="csc")
    cones = [clarabel.ZeroConeT(1), clarabel.NonnegativeConeT(k)]
    solution = clarabel.DefaultSolver(G, -constants, A, np.append(1.0, np.zeros(k)), cones, settings).solve()
    t = np.maximum(solution.x, 0.0)
    return t / t.sum()


def plain_bundle(X, y, alpha, gap, cap):
    """Minimise alpha/2 |w|^2 + R(Xw) for F1; rows (seconds, J of the best point, lower bound) until the gap or the cap.

    BLAS gets one thread: what it multiplies here is small, and its threads would wait for each other.
    """
    begin = time.perf_counter()
    with threadpool_limits(1, user_api="blas"):
        oracle, across, w = F1Table(y), X.T.tocsr(), np.zeros(X.shape[1])
        slopes, constants, idle = np.zeros((1, len(w))), np.zeros(1), np.zeros(1, dtype=int)  # the plane R >= 0
        rows, best, bound = [], np.inf, 0.0
        while True:
            risk, grad = oracle(X @ w)
            best = min(best, risk + 0.5 * alpha * (w @ w))
            rows.append((time.perf_counter() - begin, best, bound))
            if best - bound <= gap or rows[-1][0] >= cap:
                return rows
            slope = across @ grad
            slopes, constants = np.vstack([slopes, slope]), np.append(constants, risk - slope @ w)
            t = small_problem(slopes, constants, alpha)
            mixed = t @ slopes
            bound = max(bound, float(t @ constants - mixed @ mixed / (2.0 * alpha)))
            w = -mixed / alpha
            idle = np.where(t > CLEAR, 0, np.append(idle, 0) + 1)
            keep = idle <= PATIENCE
            slopes, constants, idle = slopes[keep], constants[keep], idle[keep]
