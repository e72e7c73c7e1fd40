"""Projections onto the weights (a, b) for which a concave measure is the minimum of a TPR + b TNR - c (eq. conjugate)."""

import math

from scoreline.runtime.compile import kernel

MIN, HMEAN, QMEAN, GMEAN = range(4)
CLOSE = 1e-8  # a step this small is the last, because the error of Newton's method is about its square


@kernel
def project_dual(kind, a, b, cap):
    """Return the point of the dual region of a measure that is nearest to (a, b).

    MIN: a + b = 1, both >= 0. QMEAN: the quarter disc of radius 1/sqrt 2. HMEAN: sqrt a + sqrt b >= sqrt 2 within the
    quarter disc of radius 2. GMEAN: a b >= 1/4 with both at most `cap`.
    """
    if kind == MIN:
        x = min(1.0, max(0.0, 0.5 * (1.0 + a - b)))
        return x, 1.0 - x
    if kind == QMEAN:
        a, b = max(a, 0.0), max(b, 0.0)
        square = a * a + b * b
        if square <= 0.5:
            return a, b
        shrink = math.sqrt(0.5 / square)
        return a * shrink, b * shrink
    if kind == HMEAN:
        return _project_hmean(a, b)
    return _project_gmean(a, b, cap)


@kernel
def _project_hmean(a, b):
    """Return the projection for the H-mean: the inner curve is a = 2 s^2, b = 2 (1 - s)^2, the outer the circle of radius 2."""
    far = a * a + b * b > 4.0
    if a >= 0.0 and b >= 0.0 and not far:
        root_a, root_b = math.sqrt(a), math.sqrt(b)
        if root_a + root_b >= math.sqrt(2.0):
            return a, b
        return _on_hmean_curve(a, b, root_a / (root_a + root_b) if root_a + root_b > 0.0 else 0.5)
    best_a, best_b, best = 2.0, 0.0, (a - 2.0) ** 2 + b * b
    if a * a + (b - 2.0) ** 2 < best:
        best_a, best_b, best = 0.0, 2.0, a * a + (b - 2.0) ** 2
    x, y = max(a, 0.0), max(b, 0.0)
    length = math.sqrt(x * x + y * y)
    if length > 0.0:
        x, y = 2.0 * x / length, 2.0 * y / length
        if (a - x) ** 2 + (b - y) ** 2 < best:
            best_a, best_b, best = x, y, (a - x) ** 2 + (b - y) ** 2
    if (b - 2.0) * (2.0 - a) < 0.0:
        x, y = _on_hmean_curve(a, b, min(1.0, math.sqrt(0.5 * max(a, 0.0))))
        if (a - x) ** 2 + (b - y) ** 2 < best:
            best_a, best_b = x, y
    return best_a, best_b


@kernel
def _on_hmean_curve(a, b, s):
    """Return the point of the inner curve where the distance to (a, b) is stationary, from the start s.

    That is a root of a cubic between 0 and 1 (eq. hmean-cubic), found by Newton steps inside a bracket.
    """
    low, high = 0.0, 1.0
    for _ in range(60):
        value = ((4.0 * s - 6.0) * s + (6.0 - a - b)) * s + (b - 2.0)
        if value > 0.0:
            high = s
        else:
            low = s
        slope = (12.0 * s - 12.0) * s + (6.0 - a - b)
        new = s - value / slope if slope > 0.0 else -1.0
        inside = low <= new <= high
        new = new if inside else 0.5 * (low + high)
        step, s = abs(new - s), new
        if step <= (CLOSE if inside and slope >= 1.0 else 1e-15):
            break
    return 2.0 * s * s, 2.0 * (1.0 - s) ** 2


@kernel
def _project_gmean(a, b, cap):
    """Return the projection onto a b >= 1/4, a and b <= cap: the hyperbola between its corners, or an edge."""
    if a > 0.0 and b > 0.0 and a <= cap and b <= cap:
        short = 0.25 - a * b
        if short <= 0.0:
            return a, b
        x = _on_hyperbola(a, b, cap, a + short * b / (a * a + b * b))
        return x, 0.25 / x
    least = 0.25 / cap
    best_a, best_b = cap, min(max(b, least), cap)
    best = (a - best_a) ** 2 + (b - best_b) ** 2
    x = min(max(a, least), cap)
    if (a - x) ** 2 + (b - cap) ** 2 < best:
        best_a, best_b, best = x, cap, (a - x) ** 2 + (b - cap) ** 2
    x = _on_hyperbola(a, b, cap, a)
    if (a - x) ** 2 + (b - 0.25 / x) ** 2 < best:
        best_a, best_b = x, 0.25 / x
    return best_a, best_b


@kernel
def _on_hyperbola(a, b, cap, x):
    """Return x of the point (x, 1/(4x)) nearest to (a, b), from the start x.

    It solves x^3 (x - a) - (1/4 - b x) / 4 = 0 (eq. gmean-quartic) by Newton steps inside a bracket. For (a, b) below the
    hyperbola there is one root.
    """
    low, high = 0.25 / cap, cap
    x = min(max(x, low), high)
    for _ in range(100):
        cube = x * x * x
        value = cube * (x - a) + 0.25 * b * x - 0.0625
        if value > 0.0:
            high = x
        else:
            low = x
        slope = cube + 3.0 * x * x * (x - a) + 0.25 * b
        new = x - value / slope if slope > 0.0 else -1.0
        inside = low <= new <= high
        new = new if inside else math.sqrt(low * high)
        step, x = abs(new - x), new
        if step <= (CLOSE if inside and slope >= cube else 1e-15) * x:
            break
    return x
