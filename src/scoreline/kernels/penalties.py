"""Sums over coefficients for penalties: minima of a line plus the penalty within bounds, alone and in groups."""

import math

import numpy as np

from scoreline.runtime.compile import kernel

HALVINGS = 100  # of the length of a group: more than a float has digits


@kernel
def _coordinate(v, quadratic, absolute, lower, upper):
    """Return argmin over lower <= w <= upper of v w + quadratic/2 w^2 + absolute |w|; infinite where there is none."""
    if v > absolute:
        pull = absolute - v
    elif v < -absolute:
        pull = -absolute - v
    else:
        pull = 0.0
    if pull == 0.0:
        w = 0.0
    elif quadratic > 0.0:
        w = pull / quadratic
    else:
        w = math.copysign(math.inf, pull)
    return min(max(w, lower), upper)


@kernel
def _term(v, w, quadratic, absolute):
    """Return v w + quadratic/2 w^2 + absolute |w|, and the sum of the magnitudes."""
    if w == 0.0:
        return 0.0, 0.0
    square, size = 0.5 * quadratic * w * w, absolute * abs(w)
    return v * w + square + size, abs(v * w) + square + size


@kernel
def minimum(v, quadratic, absolute, lower, upper, out):
    """Set out to the w within bounds that minimises <v, w> + sum quadratic/2 w^2 + absolute |w|. O(p)."""
    for j in range(len(v)):
        out[j] = _coordinate(v[j], quadratic[j], absolute[j], lower[j], upper[j])


@kernel
def least(v, uncertainty, quadratic, absolute, lower, upper):
    """Return the sum of least terms for slopes anywhere in v +- uncertainty, and the sum of magnitudes. O(p).

    The least of a coordinate is concave in its slope, so it is smallest at an end of the interval.
    """
    total, size = 0.0, 0.0
    for j in range(len(v)):
        first = v[j] - uncertainty[j]
        value, magnitude = _term(
            first, _coordinate(first, quadratic[j], absolute[j], lower[j], upper[j]), quadratic[j], absolute[j]
        )
        if uncertainty[j] > 0.0:
            second = v[j] + uncertainty[j]
            other, its_magnitude = _term(
                second, _coordinate(second, quadratic[j], absolute[j], lower[j], upper[j]), quadratic[j], absolute[j]
            )
            value, magnitude = min(value, other), max(magnitude, its_magnitude)
        total += value
        size += magnitude
    return total, size


@kernel
def _length(v, quadratic, norm, lower, upper, members, length, out):
    """Set out to the minimum where the norm is replaced by its tangent at this length, and return its length."""
    square = 0.0
    for j in members:
        curvature = quadratic[j] + norm / length
        w = min(max(-v[j] / curvature, lower[j]), upper[j])
        out[j] = w
        square += w * w
    return math.sqrt(square)


@kernel
def group_minimum(v, quadratic, norms, lower, upper, order, starts, out):
    """Set out to the w within bounds that minimises <v, w> + sum quadratic/2 w^2 + sum_g norm_g |w_g|. O(100 p) at most.

    The length s of a group solves |w(s)| = s with w(s) = clip(-v / (quadratic + norm / s)); s - |w(s)| changes sign once.
    Groups without a norm are coordinates. `order` lists features by group, `starts` where each group begins.
    """
    for g in range(len(norms)):
        members, norm = order[starts[g] : starts[g + 1]], norms[g]
        if norm == 0.0:
            for j in members:
                out[j] = _coordinate(v[j], quadratic[j], 0.0, lower[j], upper[j])
            continue
        square, holds_zero, far = 0.0, True, 0.0
        for j in members:
            holds_zero = holds_zero and lower[j] <= 0.0 <= upper[j]
            end = _coordinate(v[j], quadratic[j], 0.0, lower[j], upper[j])
            far += end * end
            if not ((v[j] > 0.0 and lower[j] == 0.0) or (v[j] < 0.0 and upper[j] == 0.0)):
                square += v[j] * v[j]
        if holds_zero and math.sqrt(square) <= norm:
            for j in members:
                out[j] = 0.0
            continue
        low, high = 0.0, math.sqrt(far)
        if not high < math.inf:
            for j in members:
                out[j] = _coordinate(v[j], quadratic[j], 0.0, lower[j], upper[j])
            continue
        for _ in range(HALVINGS):
            middle = 0.5 * (low + high)
            if not low < middle < high:
                break
            if _length(v, quadratic, norm, lower, upper, members, middle, out) >= middle:
                low = middle
            else:
                high = middle
        if high > 0.0:
            _length(v, quadratic, norm, lower, upper, members, high, out)
        else:
            for j in members:
                out[j] = min(max(0.0, lower[j]), upper[j])


@kernel
def group_slopes(v, w, norms, lower, upper, order, starts, out):
    """Set out to v + norm_g q_g with |q_g| <= 1 for which the least of the coordinates is largest; w is the minimum. O(p).

    |w_g| is the largest <q, w_g>, so every such q gives a lower bound; that of the minimum is q = w_g / |w_g|.
    """
    for g in range(len(norms)):
        members, norm = order[starts[g] : starts[g + 1]], norms[g]
        square = 0.0
        for j in members:
            square += w[j] * w[j]
        length = math.sqrt(square)
        if norm == 0.0:
            for j in members:
                out[j] = v[j]
        elif length > 0.0 and length < math.inf:
            scale = norm / length * (1.0 - 4.0 * np.finfo(np.float64).eps * (len(members) + 4))
            for j in members:
                out[j] = v[j] + scale * w[j]
        else:
            square = 0.0
            for j in members:
                if not ((v[j] > 0.0 and lower[j] == 0.0) or (v[j] < 0.0 and upper[j] == 0.0)):
                    square += v[j] * v[j]
            length = math.sqrt(square)
            share = 1.0 if length <= norm else norm / length
            share *= 1.0 - 4.0 * np.finfo(np.float64).eps * (len(members) + 4) if length > norm * 0.999 else 1.0
            for j in members:
                inside = (v[j] > 0.0 and lower[j] == 0.0) or (v[j] < 0.0 and upper[j] == 0.0)
                out[j] = v[j] if inside else v[j] - share * v[j]
