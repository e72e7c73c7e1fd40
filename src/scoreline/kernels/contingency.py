"""The worst labelling: the maximum over (b, c) of a loss of the counts plus the gains of the flips.

V(b, c) = loss(b, c) - h (sum of the b smallest scores of positives) + h (sum of the c largest scores of negatives),
h = 2 / n (eq. worst-counts).
Every function below takes the scores of either class in increasing order, visits O(n) pairs (b, c) that include the maximum,
and returns the best pair. Sums have the precision of two floats: a walk that starts with all rows on the wrong side would
otherwise lose the digits of small scores.
"""

import math

import numpy as np

from scoreline.runtime.compile import kernel

GMEAN, HMEAN, QMEAN = 0, 1, 2
FBETA, JACCARD = 0, 1


@kernel
def _add(high, low, x):
    """Return (high, low) + x with the rounding of the sum kept in `low` (Knuth's two-sum)."""
    total = high + x
    shadow = total - high
    return total, low + ((high - (total - shadow)) + (x - shadow))


@kernel
def _corner(kind, n_above, n_below, h, above, below, i, j):
    """Return where on the path the next positive i is flipped, and the next negative j is no longer flipped.

    The path follows the tangents of the loss, with increasing k_above and decreasing k_below, the slopes in the error rates
    (eq. mean-corners).
    """
    start = np.inf
    if i < n_above:
        x = n_above * h * above[i]
        if x <= 0.0:
            start = 0.0
        elif kind == GMEAN:  # slopes r/2 and 1/(2r)
            start = 2.0 * x
        elif kind == HMEAN:  # 2 s^2 and 2 (1 - s)^2
            start = math.sqrt(0.5 * x)
        else:  # q / sqrt 2 and sqrt(1 - q^2) / sqrt 2
            start = math.sqrt(2.0) * x
        if kind != GMEAN and start > 1.0:
            start = np.inf
    end = np.inf
    if j < n_below:
        y = -n_below * h * below[j]
        if y <= 0.0:
            end = np.inf if kind == GMEAN else 1.0
        elif kind == GMEAN:
            end = 0.5 / y
        elif kind == HMEAN:
            end = max(0.0, 1.0 - math.sqrt(0.5 * y))
        else:
            end = math.sqrt(max(0.0, 1.0 - 2.0 * y * y))
    return start, end


@kernel
def _rate_loss(kind, p, n):
    """Return the loss 1 - mean of the rates p (true positives) and n (true negatives)."""
    if kind == GMEAN:
        return 1.0 - math.sqrt(p * n)
    if kind == HMEAN:
        return 1.0 - 2.0 * p * n / (p + n) if p + n > 0.0 else 1.0
    return math.sqrt(0.5 * ((1.0 - p) ** 2 + (1.0 - n) ** 2))


@kernel
def rate_means(kind, above, below, h):
    """Return the best (b, c) for one minus a concave mean of the two rates; O(n) (eq. mean-tangents).

    Such a loss is the maximum of its tangents, and for a tangent the loss is separable. Along the tangents, from those that
    charge for negatives to those that charge for positives, b never decreases and c never increases, so there are n + 1
    corners. The best pair is one of them, because it is also the best pair for its own tangent.
    """
    n_above, n_below = len(above), len(below)
    i = j = 0  # positives flipped, negatives no longer flipped
    a_high = a_low = c_high = c_low = 0.0
    for k in range(n_below):
        c_high, c_low = _add(c_high, c_low, h * below[k])
    best, best_b, best_c = 0.0, 0, 0
    while True:
        loss = _rate_loss(kind, (n_above - i) / n_above, j / n_below)
        value = loss + ((a_high + c_high) + (a_low + c_low))
        if value > best:
            best, best_b, best_c = value, i, n_below - j
        start, end = _corner(kind, n_above, n_below, h, above, below, i, j)
        if i < n_above and start <= end and start < np.inf:
            a_high, a_low = _add(a_high, a_low, -h * above[i])
            i += 1
        elif j < n_below and below[j] < 0.0:
            c_high, c_low = _add(c_high, c_low, -h * below[j])
            j += 1
        else:
            return best_b, best_c


@kernel
def precision_means(kind, beta2, above, below, h):
    """Return the best (b, c) for F-beta or Jaccard; O(n) (eq. fbeta-walk).

    With m rows called positive and p of them correct, V is concave in p for every m. The best p does not decrease with m,
    because the loss and the gains of negatives are supermodular in (p, m). Therefore one walk over m finds every best p.
    """
    n_above, n_below = len(above), len(below)
    a_high = a_low = c_high = c_low = 0.0
    for k in range(n_above):  # m = 0: all positives are flipped
        a_high, a_low = _add(a_high, a_low, -h * above[n_above - 1 - k])
    best, best_b, best_c = 0.0, 0, 0
    p = 0
    for m in range(n_above + n_below + 1):
        if m > 0:
            if m - p <= n_below:
                c_high, c_low = _add(c_high, c_low, h * below[n_below - (m - p)])
            else:  # there are no more negatives, so the new row called positive is a positive
                a_high, a_low = _add(a_high, a_low, h * above[n_above - p - 1])
                p += 1
        while p < n_above and p < m:
            gain = h * above[n_above - p - 1] - h * below[n_below - (m - p)]
            if kind == FBETA:
                gain -= (1.0 + beta2) / (beta2 * n_above + m)
            else:
                k = float(n_above + m)
                gain -= k / ((k - p) * (k - p - 1.0))
            if not gain > 0.0:
                break
            a_high, a_low = _add(a_high, a_low, h * above[n_above - p - 1])
            c_high, c_low = _add(c_high, c_low, -h * below[n_below - (m - p)])
            p += 1
        if kind == FBETA:
            loss = 1.0 - (1.0 + beta2) * p / (beta2 * n_above + m)
        else:
            loss = 1.0 - p / (n_above + m - p)
        value = loss + ((a_high + c_high) + (a_low + c_low))
        if value > best:
            best, best_b, best_c = value, n_above - p, m - p
    return best_b, best_c


@kernel
def error_counts(sigma, above, below, h):
    """Return the best (b, c) for Gower-Legendre, which depends only on b + c, by merging the largest gains in O(n)."""
    n_above, n_below = len(above), len(below)
    n = float(n_above + n_below)
    high = low = 0.0
    best, best_b, best_c = 0.0, 0, 0
    b = c = 0
    while b < n_above or c < n_below:
        from_above = -above[b] if b < n_above else -np.inf
        from_below = below[n_below - 1 - c] if c < n_below else -np.inf
        high, low = _add(high, low, h * max(from_above, from_below))
        if c == n_below or (b < n_above and from_above >= from_below):
            b += 1
        else:
            c += 1
        right = n - b - c
        loss = 1.0 - right / (right + sigma * (b + c))
        value = loss + (high + low)
        if value > best:
            best, best_b, best_c = value, b, c
    return best_b, best_c


@kernel
def fixed_size(k, step, above, below, h):
    """Return the best (b, c) with k rows called positive and a loss that increases by `step` with b, in O(n).

    c = b + k - n+. V is concave in b (eq. at-k-walk), so the walk ends at the first pair of flips without a gain.
    """
    n_above, n_below = len(above), len(below)
    b = max(0, n_above - k)
    while b < n_above and b + k - n_above < n_below:
        c = b + k - n_above
        if not step + h * (below[n_below - 1 - c] - above[b]) > 0.0:
            break
        b += 1
    return b, b + k - n_above


@kernel
def split(z, sign, above, below):
    """Copy the scores of positives to `above` and of negatives to `below`; both need room for one more."""
    a = b = 0
    for i in range(len(z)):
        above[a] = below[b] = z[i]
        a += sign[i] > 0  # no branch: with balanced classes half of the predictions would be wrong
        b += sign[i] < 0


@kernel
def change_sides(z, sign, weight, low, high, scale, grad, partial, bounds, first, last):
    """Move positives below `low` and negatives above `high` to the other side; partial[c] has the sums of chunk c.

    These are the moved weight of either class, and the sum of s z of either class. `grad` (or None) receives -scale or +scale
    times the weight of every moved row, and 0 for other rows.
    """
    for c in range(first, last):
        above = below = above_sum = below_sum = 0.0
        for i in range(bounds[c], bounds[c + 1]):
            s = 1.0 if weight is None else weight[i]
            x = z[i]
            up = s if (sign[i] > 0) & (x < low) else 0.0  # "and" would be a branch that is hard to predict
            down = s if (sign[i] < 0) & (x > high) else 0.0
            above += up
            below += down
            above_sum += up * x
            below_sum += down * x
            if grad is not None:
                grad[i] = scale * (down - up)
        partial[c, 0], partial[c, 1], partial[c, 2], partial[c, 3] = above, below, above_sum, below_sum


@kernel
def change_ties(z, sign, weight, side, level, amount, scale, grad):
    """Move the weight `amount` of the rows of a class with score `level`, in their order."""
    for i in range(len(z)):
        if z[i] == level and sign[i] == side and amount > 0.0:
            moved = min(1.0 if weight is None else weight[i], amount)
            amount -= moved
            grad[i] = -side * scale * moved
