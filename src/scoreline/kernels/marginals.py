"""Marginals of p(y') ~ exp(c Delta(y', y) + sum_i a_i y'_i) over all labellings y', for losses of the counts: O(n^2).

A labelling is known by the rows that it flips. With b positives and k negatives flipped the loss is Delta(b, k), so the sum
over labellings is a sum over counts of products of two polynomials, in log space: E_b of prod_P (e^{a_i} + t e^{-a_i}) and
likewise for negatives. A backward sweep through the stored forward tables gives the chance of every single flip.
"""

import math

import numpy as np

from scoreline.kernels.compile import kernel


@kernel
def log_add(x, y):
    """Return log(e^x + e^y); -inf is log 0."""
    high, low = max(x, y), min(x, y)
    if low == -math.inf:
        return high
    return high + math.log1p(math.exp(low - high))


@kernel
def forward(keep, flip):
    """Return the table T of shape (n + 1, n + 1): T[i, k] = log of the weight of all ways to flip k of the first i rows."""
    n = len(keep)
    table = np.full((n + 1, n + 1), -np.inf)
    table[0, 0] = 0.0
    for i in range(n):
        for k in range(i + 2):
            stay = table[i, k] + keep[i] if k <= i else -np.inf
            move = table[i, k - 1] + flip[i] if k > 0 else -np.inf
            table[i + 1, k] = log_add(stay, move)
    return table


@kernel
def backward(table, keep, flip, rest, total, out):
    """out[i] = P(row i is flipped), given log weights `rest` of the number of flips by everything else and log Z = total."""
    n = len(keep)
    later = rest.copy()
    for i in range(n - 1, -1, -1):
        chance = 0.0
        for k in range(i + 1):
            chance += math.exp(table[i, k] + flip[i] + later[k + 1] - total)
        out[i] = min(1.0, chance)
        for k in range(i + 1):
            later[k] = log_add(keep[i] + later[k], flip[i] + later[k + 1])


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
