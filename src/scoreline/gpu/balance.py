"""The bias that balances two classes, on a device: `kernels/balance.py` by functions of the Array API."""

from typing import Any

from scoreline import kernels
from scoreline.gpu import kernels as device_kernels
from scoreline.gpu.backend import Backend
from scoreline.gpu.selection import selected


def balance(backend: Backend, z: Any, positive: Any, weight: Any, offset: float, width: float, target: float) -> Any:
    """Return the balancing bias, as `kernels.balance.balance` does; `target` is the weight of all positives."""
    xp, own = backend.xp, kernels.balance
    places = xp.where(positive, offset - z, -z)
    counted = places if weight is None else places[weight > 0.0]
    base = selected(backend, counted, None if weight is None else weight[weight > 0.0], target)
    if width == 0.0:
        return own.Balance(base, 0.0, *_tied(backend, places, positive, weight, base))
    distance = places - base
    near = xp.abs(distance) <= 2.0 * width
    decided = (
        _total(backend, positive & (distance > 2.0 * width), weight),
        _total(backend, ~positive & (distance < -2.0 * width), weight),
    )
    distance, above_row = distance[near], positive[near]
    s = None if weight is None else weight[near]
    rounding = own.EPS * max(32.0, distance.shape[0] / 64.0)
    none, one = backend.full((), 0.0), backend.full((), 1.0)

    def sides(shift: float) -> tuple[float, float, float]:
        t = xp.where(above_row, distance - shift, shift - distance)
        beta = xp.minimum(xp.maximum(t / width, none), one)
        active = xp.astype((t > 0.0) & (t < width), xp.float64)
        beta, active = (beta, active) if s is None else (beta * s, active * s)
        sums = xp.stack([xp.sum(xp.where(above_row, beta, none)), xp.sum(beta), xp.sum(active)])
        above, both, weight_on = device_kernels.host_floats(backend, sums).tolist()
        return above + decided[0], (both - above) + decided[1], weight_on

    shift, above, below = own.root(sides, width, rounding)
    return own.Balance(base, shift, (0.0, 0.0), above, below)


def _tied(backend: Backend, places: Any, positive: Any, weight: Any, tau: float) -> Any:
    """Return what rows of either class at the bias count, and the sums of s beta: as little as possible moves."""
    above, below = (
        _total(backend, positive & (places > tau), weight),
        _total(backend, ~positive & (places < tau), weight),
    )
    tied = places == tau
    ties = _total(backend, positive & tied, weight), _total(backend, ~positive & tied, weight)
    moved = max(above, below)
    parts = [
        min(1.0, (moved - side) / tie) if tie > 0.0 else 0.0 for side, tie in zip((above, below), ties, strict=True)
    ]
    return (parts[0], parts[1]), above + parts[0] * ties[0], below + parts[1] * ties[1]


def sums(
    backend: Backend,
    z: Any,
    positive: Any,
    weight: Any,
    offset: float,
    width: float,
    found: Any,
    scales: tuple[float, float],
) -> tuple[float, float, Any]:
    """Return sum s phi at the bias, the same at width 0, and scale of its class * s * beta for every row."""
    xp, none, one = backend.xp, backend.full((), 0.0), backend.full((), 1.0)
    t = xp.where(positive, (offset - z) - found.base, z + found.base)
    hard = xp.maximum(t, none)
    if width > 0.0:
        t = xp.where(positive, t - found.shift, t + found.shift)
        beta = xp.minimum(xp.maximum(t / width, none), one)
        value = beta * (t - 0.5 * width * beta)
    else:
        value, part = hard, xp.where(positive, found.parts[0] * one, found.parts[1] * one)
        beta = xp.where(t > 0.0, one, xp.where(t == 0.0, part, none))
    if weight is not None:
        value, hard, beta = value * weight, hard * weight, beta * weight
    both = device_kernels.host_floats(backend, xp.stack([xp.sum(value), xp.sum(hard)]))
    return float(both[0]), float(both[1]), beta * xp.where(positive, scales[0] * one, scales[1] * one)


def on_ramp(backend: Backend, z: Any, positive: Any, weight: Any, offset: float, width: float, found: Any) -> Any:
    """Return the weight of every row that is on the ramp at a bias, 0 for the others."""
    xp = backend.xp
    t = xp.where(positive, ((offset - z) - found.base) - found.shift, (z + found.base) + found.shift)
    active = xp.astype((t > 0.0) & (t < width), xp.float64)
    return active if weight is None else active * weight


def _total(backend: Backend, mask: Any, weight: Any) -> float:
    xp = backend.xp
    if weight is None:
        return float(xp.count_nonzero(mask))
    return float(xp.sum(xp.where(mask, weight, backend.full((), 0.0))))
