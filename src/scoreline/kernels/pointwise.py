"""Losses of the margin m = y f, one example at a time: value, slope, and their weighted sums over all rows."""

from scoreline.kernels.exponential import exp_of_negative, log1p_of_share
from scoreline.runtime.compile import kernel

HINGE, SQUARED_HINGE, LOGISTIC = 0, 1, 2


@kernel
def loss(kind, m, width):
    """Return (smoothed loss, its derivative in m, loss without smoothing) at margin m; `width` is the hinge's ramp.

    hinge          max(0, t), t = 1 - m; smoothed: 0 | t^2 / (2 width) | t - width / 2 for t <= 0 | 0..width | >= width
                   (eq. ramp)
    squared hinge  1/2 max(0, t)^2

    The logistic loss has a loop of its own, `logistic_sums`.
    """
    t = 1.0 - m
    if t <= 0.0:
        return 0.0, 0.0, 0.0
    if kind == SQUARED_HINGE:
        return 0.5 * t * t, -t, 0.5 * t * t
    if t < width:
        return 0.5 * t * (t / width), -t / width, t
    return t - 0.5 * width, -1.0, t


@kernel(reorder=True)
def margin_sums(kind, width, z, sign, weight, scale, grad, partial, bounds, first, last):
    """partial[c] = sums over chunk c of s * (smoothed loss, -slope, loss); grad[i] = scale * s_i * y_i * slope.

    If `weight` is None, every weight is 1. If `grad` is None, the gradient is not computed.
    """
    for c in range(first, last):
        smooth = slopes = hard = 0.0
        for i in range(bounds[c], bounds[c + 1]):
            y = float(sign[i])
            value, slope, full = loss(kind, y * z[i], width)
            s = 1.0 if weight is None else weight[i]
            smooth += s * value
            slopes -= s * slope
            hard += s * full
            if grad is not None:
                grad[i] = scale * y * slope * s
        partial[c, 0], partial[c, 1], partial[c, 2] = smooth, slopes, hard


@kernel(reorder=True)
def logistic_sums(z, sign, weight, scale, grad, partial, bounds, first, last):
    """`margin_sums` of the logistic loss log(1 + exp(-m)), written so that the compiler vectorises it."""
    for c in range(first, last):
        total = slopes = 0.0
        for i in range(bounds[c], bounds[c + 1]):
            y = float(sign[i])
            m = y * z[i]
            e = exp_of_negative(-abs(m))
            inverse = 1.0 / (1.0 + e)
            value = log1p_of_share(e) + (0.0 if m > 0.0 else -m)  # in this order NaN stays NaN
            slope = -(e * inverse if m > 0.0 else inverse)
            s = 1.0 if weight is None else weight[i]
            total += s * value
            slopes -= s * slope
            if grad is not None:
                grad[i] = scale * y * slope * s
        partial[c, 0], partial[c, 1], partial[c, 2] = total, slopes, total


@kernel
def curvature(kind, m, width):
    """Return the second derivative of the loss at margin m (eq. margin-curvature).

    Logistic e^-m / (1 + e^-m)^2; squared hinge 1 below margin 1; hinge 1 / width on its ramp.
    """
    if kind == LOGISTIC:
        e = exp_of_negative(-abs(m))
        return e / ((1.0 + e) * (1.0 + e))
    if kind == SQUARED_HINGE:
        return 1.0 if m < 1.0 else 0.0
    return 1.0 / width if 0.0 < 1.0 - m < width else 0.0


@kernel
def curvatures(kind, width, z, sign, weight, scale, out, bounds, first, last):
    """out[i] = scale * s_i * second derivative of the loss at y_i z_i; `weight` None means 1 for every row."""
    for i in range(bounds[first], bounds[last]):
        value = scale * curvature(kind, float(sign[i]) * z[i], width)
        out[i] = value if weight is None else value * weight[i]
