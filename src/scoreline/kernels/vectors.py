"""Sums and combinations of long vectors with the same bits for any number of threads, and L-BFGS's two loops.

BLAS is not used here: its dot product splits the sum by the number of threads.
"""

import numpy as np

from scoreline.runtime import parallel
from scoreline.runtime.compile import kernel
from scoreline.runtime.parallel import even_bounds, run_chunks
from scoreline.runtime.types import FloatArray

ONE, TWO, THREE, FOUR = (np.uint64(k) for k in range(1, 5))


def dot(x: FloatArray, y: FloatArray) -> float:
    """Return <x, y>; O(n)."""
    n = len(x)
    if n == len(y) and n < 2 * parallel.MIN_CHUNK_WORK:  # one chunk: a fast path for solvers on few rows
        return float(_dot_of_all(x, y))
    _check_lengths(x, y)
    bounds = even_bounds(n, 1)
    partial = np.empty(len(bounds) - 1)
    run_chunks(_dot, len(partial), x, y, partial, bounds)
    return float(partial.sum())


def combine(a: float, x: FloatArray, b: float, y: FloatArray, out: FloatArray) -> FloatArray:
    """Set out = a x + b y (out may be x or y); O(n)."""
    _check_lengths(x, y, out)
    bounds = even_bounds(len(x), 1)
    run_chunks(_combine, len(bounds) - 1, a, x, b, y, out, bounds)
    return out


def max_abs(x: FloatArray, weight: FloatArray | None = None) -> float:
    """Return max |x_i| over the rows of positive weight (0 if there are none); O(n)."""
    bounds = even_bounds(len(x), 1)
    partial = np.empty(len(bounds) - 1)
    run_chunks(_max_abs, len(partial), x, weight, partial, bounds)
    return float(partial.max())


def _check_lengths(*vectors: FloatArray) -> None:
    if any(len(v) != len(vectors[0]) for v in vectors):  # kernels would read past the end
        raise ValueError(f"vectors have different lengths: {[len(v) for v in vectors]}")


@kernel(reorder=True)
def _dot_of_range(x, y, start, stop):
    total = 0.0
    for i in range(start, stop):
        total += x[i] * y[i]
    return total


@kernel(reorder=True)
def _dot_of_all(x, y):
    # The range starts at 0, because loops over indices that could be negative are not vectorised.
    total = 0.0
    for i in range(len(x)):
        total += x[i] * y[i]
    return total


@kernel(reorder=True)
def _dot(x, y, partial, bounds, first, last):
    for c in range(first, last):
        partial[c] = _dot_of_range(x, y, bounds[c], bounds[c + 1])


@kernel
def _combine(a, x, b, y, out, bounds, first, last):
    for i in range(bounds[first], bounds[last]):
        out[i] = a * x[i] + b * y[i]


@kernel
def largest_magnitude(x, start, stop):
    """Return the largest |x[i]| in a range, 0 if it is empty: four at a time, because one maximum waits for the other."""
    a = b = c = d = 0.0
    in_fours = start + (stop - start) // FOUR * FOUR
    for i in range(start, in_fours, FOUR):
        first, second, third, fourth = abs(x[i]), abs(x[i + ONE]), abs(x[i + TWO]), abs(x[i + THREE])
        a = first if first > a else a
        b = second if second > b else b
        c = third if third > c else c
        d = fourth if fourth > d else d
    for i in range(in_fours, stop):
        a = max(a, abs(x[i]))
    return max(max(a, b), max(c, d))


@kernel
def _max_abs(x, weight, partial, bounds, first, last):
    for c in range(first, last):
        if weight is None:
            partial[c] = largest_magnitude(x, bounds[c], bounds[c + 1])
        else:
            top = 0.0
            for i in range(bounds[c], bounds[c + 1]):
                if weight[i] > 0.0:
                    top = max(top, abs(x[i]))
            partial[c] = top


@kernel(reorder=True)
def newest_to_oldest(steps, changes, inverse_products, newest, count, q, weights):
    """First loop of L-BFGS (Nocedal and Wright, Algorithm 7.4): q <- q - weights[r] y_r, weights[r] = <s_r, q> / <s_r, y_r>.

    `steps` and `changes` are rings of pairs (s, y), `newest` the position of the latest, `inverse_products` 1/<s, y>,
    `weights` scratch of ring length that the second loop reads. O(count * p).
    """
    ring, p = steps.shape
    for back in range(count):
        r = (newest - back + ring) % ring
        s, y = steps[r], changes[r]
        weights[r] = _dot_of_all(s, q) * inverse_products[r]
        for j in range(p):
            q[j] -= weights[r] * y[j]


@kernel(reorder=True)
def oldest_to_newest(steps, changes, inverse_products, newest, count, q, weights):
    """Second loop: q <- q + (weights[r] - <y_r, q> / <s_r, y_r>) s_r. O(count * p)."""
    ring, p = steps.shape
    for back in range(count - 1, -1, -1):
        r = (newest - back + ring) % ring
        s, y = steps[r], changes[r]
        factor = weights[r] - _dot_of_all(y, q) * inverse_products[r]
        for j in range(p):
            q[j] += factor * s[j]
