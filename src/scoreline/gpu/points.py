"""Losses of the margin on a device: `kernels/pointwise.py` by functions of the Array API."""

from typing import Any

from scoreline.gpu import kernels as device_kernels
from scoreline.gpu.backend import Backend


def sums(
    loss: str, backend: Backend, z: Any, sign: Any, weight: Any, width: float, scale: float, grad: bool
) -> tuple[list[float], Any]:
    """Return the weighted sums of (smoothed loss, -slope, loss) over the rows, and scale * s * y * slope, or None."""
    xp = backend.xp
    y = xp.astype(sign, xp.float64)
    smooth, falling, hard = _losses(loss, backend, y * z, width)
    if weight is not None:
        smooth, falling, hard = smooth * weight, falling * weight, None if hard is None else hard * weight
    totals = [xp.sum(smooth), xp.sum(falling)]
    totals.append(totals[0] if hard is None else xp.sum(hard))
    made = (-scale * y) * falling if grad else None
    return device_kernels.host_floats(backend, xp.stack(totals)).tolist(), made


def _losses(loss: str, backend: Backend, m: Any, width: float) -> tuple[Any, Any, Any]:
    """Return the smoothed loss, minus its slope, and the loss itself where it is another one."""
    xp, none, one = backend.xp, backend.full((), 0.0), backend.full((), 1.0)
    if loss == "logistic":
        e = xp.exp(-xp.abs(m))
        return xp.log1p(e) + xp.maximum(-m, none), xp.where(m > 0.0, e, one) / (1.0 + e), None
    t = xp.maximum(1.0 - m, none)
    if loss == "squared_hinge":
        return 0.5 * t * t, t, None
    if width > 0.0:
        beta = xp.minimum(t / width, one)
        return beta * (t - 0.5 * width * beta), beta, t
    return t, xp.astype(t > 0.0, xp.float64), None


def curvatures(loss: str, backend: Backend, z: Any, sign: Any, weight: Any, scale: float, width: float) -> Any:
    """Return scale * s * second derivative of the loss, or of its ramp, at every margin."""
    xp = backend.xp
    m = xp.astype(sign, xp.float64) * z
    if loss == "logistic":
        e = xp.exp(-xp.abs(m))
        second = e / ((1.0 + e) * (1.0 + e))
    elif loss == "squared_hinge":
        second = xp.astype(m < 1.0, xp.float64)
    else:
        t = 1.0 - m
        second = xp.astype((t > 0.0) & (t < width), xp.float64) * (1.0 / width)
    return scale * second if weight is None else scale * second * weight
