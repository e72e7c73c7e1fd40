"""A concave quadratic over the simplex, by an active set: max <c, t> - t'Gt / 2 over t >= 0, sum t = 1.

The planes with weight (the support) carry a Cholesky factor of G + spread 1 1' restricted to them, which is positive definite
where G is so along the simplex; a plane that enters or leaves costs O(s^2) for s in the support, a step O(s^2 + k s) for k
planes. Steps are Newton's on the support, exactly as long as the quadratic says, and end where a weight becomes 0.
Neither equal planes nor a nearly singular G stop it: a direction without curvature is followed to the end.
"""

import math

import numpy as np

from scoreline.kernels.compile import kernel

SINGULAR = 1e-13  # share of its own square that a plane must add to the span of the others to count as independent


@kernel(reorder=True)
def _dot(x, y, n):
    total = 0.0
    for i in range(n):
        total += x[i] * y[i]
    return total


@kernel
def _enter(gram, spread, support, size, factor, plane):
    """Append a plane to the support and a row to the factor."""
    row = factor[size]
    for a in range(size):
        row[a] = (gram[plane, support[a]] + spread - _dot(row, factor[a], a)) / factor[a, a]
    own = gram[plane, plane] + spread
    rest = own - _dot(row, row, size)
    row[size] = math.sqrt(max(rest, SINGULAR * own, 1e-300))
    support[size] = plane
    return size + 1


@kernel
def _leave(support, size, factor, place):
    """Take the plane at `place` out of the support, and its row out of the factor by rotations of columns."""
    for a in range(place, size - 1):
        support[a] = support[a + 1]
        for b in range(a + 2):
            factor[a, b] = factor[a + 1, b]
    for a in range(place, size - 1):  # row a now reaches one beyond the diagonal: rotate columns a and a + 1
        x, y = factor[a, a], factor[a, a + 1]
        length = math.hypot(x, y)
        if length == 0.0:
            length = 1e-150
        cosine, sine = x / length, y / length
        factor[a, a], factor[a, a + 1] = length, 0.0
        for r in range(a + 1, size - 1):
            x, y = factor[r, a], factor[r, a + 1]
            factor[r, a], factor[r, a + 1] = cosine * x + sine * y, cosine * y - sine * x
    return size - 1


@kernel
def _solve(factor, size, x):
    """Solve factor factor' x = x in place."""
    for a in range(size):
        x[a] = (x[a] - _dot(factor[a], x, a)) / factor[a, a]
    for a in range(size - 1, -1, -1):
        x[a] /= factor[a, a]
        for b in range(a):
            x[b] -= factor[a, b] * x[a]


@kernel
def maximise(gram, c, t, tolerance, most_changes):
    """Improve t in place until no point of the simplex is better by more than `tolerance`; returns that gap.

    gram (k, k), c (k,), t (k,) in the simplex. The gap max_i g_i - <t, g>, g = c - Gt, bounds what is left to gain.
    """
    k = len(c)
    support, factor = np.empty(k, dtype=np.int64), np.empty((k, k))
    g, d, ones = np.empty(k), np.empty(k), np.empty(k)
    blocked = np.zeros(k, dtype=np.bool_)
    spread = 0.0
    for i in range(k):
        spread = max(spread, gram[i, i])
    if spread == 0.0:
        spread = 1.0
    size = 0
    for i in range(k):
        if t[i] > 0.0:
            size = _enter(gram, spread, support, size, factor, i)
    changes, fresh, entering, gap = 0, 0, -1, np.inf
    while True:
        for i in range(k):
            g[i] = c[i]
        for a in range(size):
            weight = t[support[a]]
            for i in range(k):
                g[i] -= weight * gram[support[a], i]
        # Newton on the support, until a step is not cut short.
        while True:
            for a in range(size):
                d[a], ones[a] = g[support[a]], 1.0
            _solve(factor, size, d)
            _solve(factor, size, ones)
            above = below = 0.0
            for a in range(size):
                above += d[a]
                below += ones[a]
            slope = curve = 0.0
            for a in range(size):
                d[a] -= above / below * ones[a]
            for a in range(size):
                slope += g[support[a]] * d[a]
                row = 0.0
                for b in range(size):
                    row += gram[support[a], support[b]] * d[b]
                curve += d[a] * row
            if not slope > 0.0:
                break
            step = slope / curve if curve > 0.0 else np.inf
            place = -1
            for a in range(size):
                if d[a] < 0.0 and step * d[a] < -t[support[a]]:
                    step, place = -t[support[a]] / d[a], a
                elif d[a] < 0.0 and step * d[a] == -t[support[a]]:
                    place = a
            if step == np.inf:
                break
            for a in range(size):
                t[support[a]] = max(0.0, t[support[a]] + step * d[a])
                weight = step * d[a]
                for i in range(k):
                    g[i] -= weight * gram[support[a], i]
            if place < 0:
                break
            out = support[place]
            t[out] = 0.0
            if out == entering and step == 0.0:
                blocked[out] = True  # rounding: it would come and go for ever
            size = _leave(support, size, factor, place)
            changes += 1
            fresh += 1
        total = 0.0
        for a in range(size):
            total += t[support[a]]
        mean = 0.0
        for a in range(size):
            t[support[a]] /= total
            mean += t[support[a]] * g[support[a]]
        top, entering = mean, -1
        gap = 0.0
        for i in range(k):
            gap = max(gap, g[i] - mean)
            if t[i] == 0.0 and g[i] > top and not blocked[i]:
                top, entering = g[i], i
        if gap <= tolerance or entering < 0 or changes >= most_changes:
            return gap
        if fresh >= 40:  # the factor has been changed often: make it anew
            fresh, count, size = 0, size, 0
            for a in range(count):
                size = _enter(gram, spread, support, size, factor, support[a])
        size = _enter(gram, spread, support, size, factor, entering)
        changes += 1
        fresh += 1
