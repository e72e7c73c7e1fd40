"""Marginals of p(y') ~ exp(c Delta(y', y) + sum_i a_i y'_i) over all labellings y', for losses of the counts: O(n^2).

A labelling is described by the rows that it flips, each with a gain of -2 y_i a_i over the true labelling. With b flipped
positives and k flipped negatives the loss is Delta(b, k). The sum over labellings is therefore a sum over counts of products
of two coefficients, in log space: that of t^b in prod_P (1 + t e^gain), and likewise for negatives (eq. entropy-counts). A
backward sweep through the stored forward tables gives the probability of every single flip.
"""

import math

import numpy as np

from scoreline.runtime.compile import kernel


@kernel
def log_add(x, y):
    """Return log(e^x + e^y); -inf is log 0."""
    high, low = max(x, y), min(x, y)
    if low == -math.inf:
        return high
    return high + math.log1p(math.exp(low - high))


@kernel
def forward(gains, table):
    """Fill T of shape (n + 1, n + 1): T[i, k] is the log of the weight of all ways to flip k of the first i rows.

    The weight of a flip is e^gain. A table with a single row is overwritten in every step and ends as the last row.
    """
    n, single = len(gains), len(table) == 1
    table[:] = -np.inf
    table[0, 0] = 0.0
    for i in range(n):
        old, new = (0, 0) if single else (i, i + 1)
        for k in range(i + 1, 0, -1):
            table[new, k] = log_add(table[old, k], table[old, k - 1] + gains[i])
        table[new, 0] = 0.0


@kernel
def backward(table, gains, rest, total, out):
    """out[i] = P(row i is flipped), given log weights `rest` of flips of other rows, log Z = total (eq. flip-chances)."""
    n = len(gains)
    later = rest.copy()
    for i in range(n - 1, -1, -1):
        chance = 0.0
        for k in range(i + 1):
            chance += math.exp(table[i, k] + gains[i] + later[k + 1] - total)
        out[i] = min(1.0, chance)
        for k in range(i + 1):
            later[k] = log_add(later[k], gains[i] + later[k + 1])


@kernel
def weigh(exponents, above, below, over_above, over_below):
    """Return log Z = log sum_{b,k} exp(exponents[b, k] + above[b] + below[k]); fill log sums over either count alone.

    over_above[b] = log sum_k exp(exponents[b, k] + below[k]), over_below[k] = log sum_b exp(exponents[b, k] + above[b]).
    """
    total = -np.inf
    over_below[:] = -np.inf
    for b in range(len(above)):
        row = -np.inf
        for k in range(len(below)):
            row = log_add(row, exponents[b, k] + below[k])
            over_below[k] = log_add(over_below[k], exponents[b, k] + above[b])
        over_above[b] = row
        total = log_add(total, row + above[b])
    return total


@kernel
def flip_chances(exponents, above, below, chances, grad):
    """Return log Z, where Z sums exp(exponents[b, k] + sum of gains) over all sets of flips; fill the flip probabilities.

    above, below : gains of flipping each of the rows of either class
    chances : probabilities of all rows, those of `above` first; unchanged if not grad
    """
    up, down = len(above) + 1, len(below) + 1
    over, under = np.empty((up if grad else 1, up)), np.empty((down if grad else 1, down))
    forward(above, over)
    forward(below, under)
    over_above, over_below = np.empty(up), np.empty(down)
    total = weigh(exponents, over[-1], under[-1], over_above, over_below)
    if grad:
        backward(over, above, over_above, total, chances[: len(above)])
        backward(under, below, over_below, total, chances[len(above) :])
    return total
