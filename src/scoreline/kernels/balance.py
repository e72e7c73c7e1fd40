"""One bias that balances two classes: the projection onto a box with one equality, and PRBEP's dual variables.

With t = offset - z - tau for positives and t = z + tau for negatives, tau = base + shift, let beta = clip(t / width, 0, 1). The
weight of positives, sum s beta, falls with tau and that of negatives rises; where they meet, beta is the Euclidean
projection of the unclipped values onto {0 <= beta <= 1, sum_P s beta = sum_N s beta}, and tau minimises sum s phi(t), phi being
the hinge with a ramp.
"""

import numpy as np

from scoreline._typing import AnyArray, FloatArray
from scoreline.kernels.compile import kernel
from scoreline.kernels.parallel import even_bounds, run_chunks

MOST_STEPS = 200


def balance(
    z: FloatArray, sign: AnyArray, weight: FloatArray | None, offset: float, width: float
) -> tuple[float, float, tuple[float, float]]:
    """Return (base, shift, parts): the balancing bias at width 0, what a ramp adds, and what tied rows of a class count at 0.

    The two parts stay apart, because a narrow ramp is finer than the digits of their sum. At width 0 the bias is a quantile of
    the places where rows change sides: one selection (with weights one sort), O(n). A ramp moves it by at most its width;
    there Newton's method on a piecewise linear function, kept in a bracket, ends on the exact piece after a few reads of z.
    """
    places = np.where(sign > 0, offset, 0.0) - z
    base = _quantile(places, sign, weight)
    parts = _tied_parts(places, sign, weight, base)
    if width == 0.0:
        return base, 0.0, parts
    low, high, shift = -width, width, 0.0
    low_seen = high_seen = False
    for _ in range(MOST_STEPS):
        above, below, _, active = sums(z, sign, weight, offset, base, shift, width)
        excess = above - below  # falls with the bias
        if excess == 0.0:
            break
        if excess > 0.0:
            low, low_seen = shift, True
        else:
            high, high_seen = shift, True
        step = shift + excess * width / active if active > 0.0 else np.copysign(np.inf, excess)
        if step >= high and not high_seen:  # the root may lie on an end of the first bracket
            step = high
        elif step <= low and not low_seen:
            step = low
        elif not low < step < high:
            step = 0.5 * low + 0.5 * high
            if step in (low, high):  # no float between: the exact piece is reached
                break
        shift = step
    return base, float(shift), parts


def sums(
    z: FloatArray,
    sign: AnyArray,
    weight: FloatArray | None,
    offset: float,
    base: float,
    shift: float,
    width: float,
    parts: tuple[float, float] = (0.0, 0.0),
    scales: tuple[float, float] = (0.0, 0.0),
    grad: FloatArray | None = None,
) -> tuple[float, float, float, float]:
    """Return sum_P s beta, sum_N s beta, sum s phi and the weight on the ramp; grad = scale of its class * s * beta."""
    bounds = even_bounds(len(z), 4)
    partial = np.empty((len(bounds) - 1, 4))
    above, below = scales
    arguments = (z, sign, weight, offset, base, shift, width, *parts, above, below, grad, partial, bounds)
    run_chunks(_ramp_sums, len(partial), *arguments)
    total = partial.sum(axis=0)
    return float(total[0]), float(total[1]), float(total[2]), float(total[3])


def _quantile(places: FloatArray, sign: AnyArray, weight: FloatArray | None) -> float:
    """Return tau such that the rows below it weigh at most as much as all positives, and those at or below it as much."""
    if weight is None:
        count = int(np.count_nonzero(sign > 0))
        return float(np.partition(places, count - 1)[count - 1])
    order = np.argsort(places)
    running = np.cumsum(weight[order])
    place = int(np.searchsorted(running, float(weight[sign > 0].sum()) * (1.0 - 1e-15)))
    return float(places[order[min(place, len(order) - 1)]])


def _tied_parts(places: FloatArray, sign: AnyArray, weight: FloatArray | None, tau: float) -> tuple[float, float]:
    """Return what positives and negatives with t = 0 count, so that as little as possible moves and the classes balance."""

    def total(rows: AnyArray) -> float:
        return float(np.count_nonzero(rows) if weight is None else weight[rows].sum())

    positive = sign > 0
    above, below = total(positive & (places > tau)), total(~positive & (places < tau))
    tied = places == tau
    ties = total(positive & tied), total(~positive & tied)
    moved = max(above, below)
    parts = [
        min(1.0, (moved - side) / tie) if tie > 0.0 else 0.0 for side, tie in zip((above, below), ties, strict=True)
    ]
    return parts[0], parts[1]


@kernel(reorder=True)
def _ramp_sums(
    z, sign, weight, offset, base, shift, width, part_p, part_n, above, below, grad, partial, bounds, first, last
):
    """partial[c] = (sum_P s beta, sum_N s beta, sum s phi, weight on the ramp) of chunk c.

    At width 0 a row with t = 0 counts `part_p` or `part_n`. phi = 0 | t^2 / (2 width) | t - width / 2.
    """
    inverse = 1.0 / width if width > 0.0 else 0.0
    for c in range(first, last):
        positive = negative = value = active = 0.0
        for i in range(bounds[c], bounds[c + 1]):
            s = 1.0 if weight is None else weight[i]
            is_positive = sign[i] > 0
            t = ((offset - z[i]) - base) - shift if is_positive else (z[i] + base) + shift
            if width > 0.0:
                beta = min(max(t * inverse, 0.0), 1.0)
                value += s * beta * (t - 0.5 * width * beta)
                if 0.0 < t < width:
                    active += s
            else:
                beta = 1.0 if t > 0.0 else 0.0
                if t == 0.0:
                    beta = part_p if is_positive else part_n
                value += s * max(t, 0.0)
            if is_positive:
                positive += s * beta
            else:
                negative += s * beta
            if grad is not None:
                grad[i] = (above if is_positive else below) * s * beta
        partial[c, 0], partial[c, 1], partial[c, 2], partial[c, 3] = positive, negative, value, active
