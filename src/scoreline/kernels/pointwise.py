"""Losses of the margin m = y f, one example at a time: value, slope, and their weighted sums over all rows."""

import math

from scoreline.kernels.compile import kernel

HINGE, SQUARED_HINGE, LOGISTIC = 0, 1, 2


@kernel
def loss(kind, m, width):
    """Return (smoothed loss, its derivative in m, loss without smoothing) at margin m; `width` is the hinge's ramp.

    hinge          max(0, t), t = 1 - m; smoothed: 0 | t^2 / (2 width) | t - width / 2 for t <= 0 | 0..width | >= width
    squared hinge  1/2 max(0, t)^2
    logistic       log(1 + exp(-m)), by whichever form does not overflow
    """
    if kind == LOGISTIC:
        if m > 0.0:
            e = math.exp(-m)
            value = math.log1p(e)
            return value, -e / (1.0 + e), value
        e = math.exp(m)
        value = math.log1p(e) - m
        return value, -1.0 / (1.0 + e), value
    t = 1.0 - m
    if t <= 0.0:
        return 0.0, 0.0, 0.0
    if kind == SQUARED_HINGE:
        return 0.5 * t * t, -t, 0.5 * t * t
    if t < width:
        return 0.5 * t * (t / width), -t / width, t
    return t - 0.5 * width, -1.0, t


@kernel
def margin_sums(kind, width, z, sign, weight, scale, grad, partial, bounds, first, last):
    """partial[c] = sums over chunk c of s * (smoothed loss, -slope, loss); grad[i] = scale * s_i * y_i * slope.

    `weight` None means 1 for every row; `grad` None leaves the gradient out.
    """
    for c in range(first, last):
        smooth = slopes = hard = 0.0
        for i in range(bounds[c], bounds[c + 1]):
            y = float(sign[i])
            value, slope, full = loss(kind, y * z[i], width)
            if weight is not None:
                value, slope, full = value * weight[i], slope * weight[i], full * weight[i]
            smooth += value
            slopes -= slope
            hard += full
            if grad is not None:
                grad[i] = scale * y * slope
        partial[c, 0], partial[c, 1], partial[c, 2] = smooth, slopes, hard
