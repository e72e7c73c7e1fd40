"""A concave quadratic over the simplex, by an active set: max <c, t> - t'Gt / 2 over t >= 0, sum t = 1.

The planes with weight (the support) carry a Cholesky factor of G + spread 1 1' restricted to them, which is positive definite
where G is so along the simplex; a plane that enters or leaves costs O(s^2) for s in the support, a step O(s^2 + k s) for k
planes. Steps are Newton's on the support, exactly as long as the quadratic says, and end where a weight becomes 0.
Neither equal planes nor a singular G stop it: along a direction without curvature weight moves until a plane has none.
"""

import math

import numpy as np

from scoreline.runtime.compile import kernel

SINGULAR = 1e-12  # share of its own square that a plane must add to the span of the others to count as independent


@kernel(reorder=True)
def _dot(x, y, n):
    total = 0.0
    for i in range(n):
        total += x[i] * y[i]
    return total


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
def _enter(gram, spread, g, t, support, size, factor, y, plane):
    """Append a plane to the support and a row to the factor; returns the new size of the support.

    A plane that depends on the support is a mixture y of it, up to rounding: weight is moved from the mixture to the plane, or
    back, whichever is better (the quadratic does not change, so it is the constants that decide), until one of them has none.
    """
    while True:
        row = factor[size]
        for a in range(size):
            row[a] = (gram[plane, support[a]] + spread - _dot(row, factor[a], a)) / factor[a, a]
        own = gram[plane, plane] + spread
        rest = own - _dot(row, row, size)
        if rest > SINGULAR * own or size == 0:
            row[size] = math.sqrt(rest)
            support[size] = plane
            return size + 1
        level = g[support[0]]  # y sums to 1 up to rounding, which large g would magnify
        slope = g[plane] - level
        for a in range(size - 1, -1, -1):  # y solves factor' y = row
            y[a] = row[a]
            for b in range(a + 1, size):
                y[a] -= factor[b, a] * y[b]
            y[a] /= factor[a, a]
            slope -= y[a] * (g[support[a]] - level)
        direction = 1.0 if slope > 0.0 else -1.0
        step, place = np.inf, -1
        if direction < 0.0:
            step = t[plane]
        for a in range(size):
            if direction * y[a] > 0.0 and t[support[a]] < step * direction * y[a]:
                step, place = t[support[a]] / (direction * y[a]), a
        if step == np.inf:
            return size
        t[plane] = max(0.0, t[plane] + direction * step)
        for a in range(size):
            t[support[a]] = max(0.0, t[support[a]] - direction * step * y[a])
        if place < 0:
            t[plane] = 0.0
            return size
        t[support[place]] = 0.0
        size = _leave(support, size, factor, place)


@kernel
def _gradient(gram, c, t, g):
    """Set g = c - Gt."""
    for i in range(len(c)):
        g[i] = c[i]
    for a in range(len(c)):
        if t[a] > 0.0:
            for i in range(len(c)):
                g[i] -= t[a] * gram[a, i]


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
    _gradient(gram, c, t, g)
    size = 0
    for i in range(k):
        if t[i] > 0.0:
            size = _enter(gram, spread, g, t, support, size, factor, d, i)
    changes, fresh, refined, entering, gap = 0, 0, 0, -1, np.inf
    while True:
        _gradient(gram, c, t, g)
        # Newton on the support, until a step is not cut short.
        while size > 1:
            level = 0.0
            for a in range(size):
                level += t[support[a]] * g[support[a]]
            apart = 0.0
            for a in range(size):
                d[a], ones[a] = g[support[a]] - level, 1.0
                apart = max(apart, abs(d[a]))
            if apart <= 0.5 * tolerance:
                break
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
                slope += (g[support[a]] - level) * d[a]
                row = 0.0
                for b in range(size):
                    row += gram[support[a], support[b]] * d[b]
                curve += d[a] * row
            if not slope > 0.0:
                break
            step = slope / curve if curve > 0.0 else np.inf
            place = -1
            for a in range(size):
                if d[a] < 0.0 and step * d[a] <= -t[support[a]]:
                    step, place = -t[support[a]] / d[a], a
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
        for a in range(size - 1, -1, -1):  # a plane that is back at 0 may come again, so it must not be there
            if t[support[a]] == 0.0:
                blocked[support[a]] |= support[a] == entering
                size = _leave(support, size, factor, a)
        total = mean = gap = 0.0
        for a in range(size):
            total += t[support[a]]
        for a in range(size):
            t[support[a]] /= total
        if total != 1.0:  # planes that are nearly one have moved the sum: take the slopes of what it is now
            _gradient(gram, c, t, g)
        for a in range(size):
            mean += t[support[a]] * g[support[a]]
        top, entering = mean, -1
        for i in range(k):
            gap = max(gap, g[i] - mean)
            if t[i] == 0.0 and g[i] > top and not blocked[i]:
                top, entering = g[i], i
        if gap <= tolerance or changes >= most_changes or (entering < 0 and refined == 3):
            return gap
        if entering < 0:  # no plane is missing: the mixture of these is not the best yet, by rounding
            refined += 1
            continue
        if fresh >= 40:  # the factor has been changed often: make it anew
            fresh, size = 0, 0
            for i in range(k):
                if t[i] > 0.0:
                    size = _enter(gram, spread, g, t, support, size, factor, d, i)
        size = _enter(gram, spread, g, t, support, size, factor, d, entering)
        if support[size - 1] != entering:
            blocked[entering] = True
        changes += 1
        fresh += 1
