"""The worst ranking for average precision: the positives below every negative."""

import numpy as np

from scoreline.runtime.compile import kernel


@kernel
def _gain(i, a, n_above, harmonic, tails, score, h):
    """Return the gain of ranking the negative that has `a` others above it above the positives i, i + 1, ..., n+ - 1.

    Placing negative number a + 1 above positive k (from 1) lowers the precision there from k/(k+a) to k/(k+a+1), a loss of
    k / ((k+a)(k+a+1)) / n+. Summed over k > i, with the harmonic numbers H, it is (eq. ap-gain)
    H(n+ + a + 1) - H(i + a + 1) - a (n+ - i) / ((n+ + a + 1)(i + a + 1)).
    Every pair costs h (f_k - f_j).
    """
    loss = harmonic[n_above + a + 1] - harmonic[i + a + 1]
    loss -= a * (n_above - i) / ((n_above + a + 1.0) * (i + a + 1.0))
    return loss / n_above - h * (tails[i] - (n_above - i) * score)


@kernel
def worst_ranking(above, below, harmonic, h, tails, starts):
    """Set starts[j]: negative j is ranked above the positives starts[j], ..., n+ - 1 (n+ for none). O((n+ + n-) log n-).

    Both classes are in decreasing order. The gain of a pair decreases with j, so the best start does not decrease with j. The
    middle negative tries all starts, and the negatives before and after it only those on their side. `tails` (n+ + 1) is
    scratch space.
    """
    n_above, n_below = len(above), len(below)
    tails[n_above] = 0.0
    for k in range(n_above - 1, -1, -1):
        tails[k] = tails[k + 1] + above[k]
    stack = np.empty((64, 4), dtype=np.int64)
    stack[0, 0], stack[0, 1], stack[0, 2], stack[0, 3] = 0, n_below, 0, n_above
    depth = 1
    while depth > 0:
        depth -= 1
        first, last, least, most = stack[depth, 0], stack[depth, 1], stack[depth, 2], stack[depth, 3]
        if first >= last:
            continue
        if least == most:
            for j in range(first, last):
                starts[j] = least
            continue
        j = (first + last) // 2
        best, start = -np.inf, most
        for i in range(most, least - 1, -1):  # prefers the last of equal gains: no pair is flipped without a gain
            gain = _gain(i, j, n_above, harmonic, tails, below[j], h)
            if gain > best:
                best, start = gain, i
        starts[j] = start
        stack[depth, 0], stack[depth, 1], stack[depth, 2], stack[depth, 3] = first, j, least, start
        depth += 1
        stack[depth, 0], stack[depth, 1], stack[depth, 2], stack[depth, 3] = j + 1, last, start, most
        depth += 1


@kernel
def ranks_of(starts, n_above, ranked_above):
    """Set ranked_above[k] to the number of negatives above positive k, and return the average precision of the ranking."""
    n_below, j, total = len(starts), 0, 0.0
    for k in range(n_above):
        while j < n_below and starts[j] <= k:
            j += 1
        ranked_above[k] = j
        total += (k + 1.0) / (k + 1.0 + j)
    return total / n_above
