"""A concave quadratic over the simplex, by an active set: max <c, t> - t'Gt / 2 over t >= 0, sum t = 1.

The support consists of the planes with positive weight. It has a Cholesky factor of G + spread 1 1' restricted to it, which is
positive definite if G is so along the simplex. For s planes in the support of k planes, adding or removing a plane costs
O(s^2), and a step O(s^2 + k s). Steps are exact Newton steps on the support, cut off where a weight becomes 0. Equal planes and
a singular G are allowed: along a direction without curvature, weight moves until a plane has none.
"""

import math

import numpy as np

from scoreline.runtime.compile import kernel

SINGULAR = (
    1e-12  # a plane is independent of the others if more than this share of its squared length is outside their span
)


@kernel(reorder=True)
def _dot(x, y, n):
    total = 0.0
    for i in range(n):
        total += x[i] * y[i]
    return total


@kernel
def _leave(support, size, factor, place):
    """Remove the plane at `place` from the support, and its row from the factor by rotations of columns."""
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

    A dependent plane is a mixture y of the support, up to rounding. Weight then moves from the mixture to the plane, or back,
    until one of them has none. The quadratic does not change, so the constants decide the direction.
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
    """Improve t in place until no point of the simplex is better by more than `tolerance`; returns the gap.

    gram (k, k), c (k,), t (k,) in the simplex. The gap max_i g_i - <t, g> with g = c - Gt bounds the possible improvement.
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
        # Newton steps on the support until one is not cut off.
        while size > 1:
            level = 0.0
            for a in range(size):
                level += t[support[a]] * g[support[a]]
            spread_of_slopes = 0.0
            for a in range(size):
                d[a], ones[a] = g[support[a]] - level, 1.0
                spread_of_slopes = max(spread_of_slopes, abs(d[a]))
            if spread_of_slopes <= 0.5 * tolerance:
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
                blocked[out] = True  # because of rounding it would enter and leave for ever
            size = _leave(support, size, factor, place)
            changes += 1
            fresh += 1
        for a in range(size - 1, -1, -1):  # remove planes with weight 0, so that they can enter again
            if t[support[a]] == 0.0:
                blocked[support[a]] |= support[a] == entering
                size = _leave(support, size, factor, a)
        total = mean = gap = 0.0
        for a in range(size):
            total += t[support[a]]
        for a in range(size):
            t[support[a]] /= total
        if total != 1.0:  # rounding of nearly dependent planes has changed the sum, so compute the slopes again
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
        if entering < 0:  # no plane can enter, but because of rounding the mixture is not the best yet
            refined += 1
            continue
        if fresh >= 40:  # after many changes compute the factor again, which removes accumulated rounding
            fresh, size = 0, 0
            for i in range(k):
                if t[i] > 0.0:
                    size = _enter(gram, spread, g, t, support, size, factor, d, i)
        size = _enter(gram, spread, g, t, support, size, factor, d, entering)
        if support[size - 1] != entering:
            blocked[entering] = True
        changes += 1
        fresh += 1
