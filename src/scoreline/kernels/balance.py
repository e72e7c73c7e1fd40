"""A bias that balances two classes: the projection onto a box with one equality, and PRBEP's dual variables.

With t = offset - z - tau for positives, t = z + tau for negatives, and tau = base + shift, let beta = clip(t / width,
0, 1). The weight of positives, sum s beta, decreases with tau, and that of negatives increases. At the tau where they
are equal, beta is the Euclidean projection of the unclipped values onto {0 <= beta <= 1, sum_P s beta = sum_N s beta}.
That tau minimises sum s phi(t), where phi is the hinge with a ramp.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from scoreline.runtime.compile import kernel
from scoreline.runtime.parallel import even_bounds, run_chunks
from scoreline.runtime.types import AnyArray, FloatArray

MOST_STEPS = 200
EPS = float(np.finfo(float).eps)


class Balance(NamedTuple):
    """The bias tau = base + shift, beta of tied rows of either class at width 0, and the sums of s beta of both classes.

    The two parts of the bias are stored separately, because a ramp may be narrower than the rounding of their sum.
    """

    base: float
    shift: float
    parts: tuple[float, float]
    above: float
    below: float


def balance(z: FloatArray, sign: AnyArray, weight: FloatArray | None, offset: float, width: float) -> Balance:
    """Return the balancing bias: `base` at width 0, and the `shift` that a ramp adds.

    At width 0 the bias is a quantile of the places where rows change sides, found by one selection (with weights one sort) in
    O(n). A ramp moves it by at most its width, so rows further than two widths from `base` are decided. For the other rows,
    Newton's method with a bracket finds the exact root of a piecewise linear function after a few passes.
    """
    places, bounds = places_of(z, sign, offset), even_bounds(len(z), 4)
    base = _quantile(places, sign, weight)
    if width == 0.0:
        parts, sides = _tied(places, sign, weight, base)
        return Balance(base, 0.0, parts, *sides)
    near, decided = _undecided(places, sign, weight, base, width, bounds)
    # A smaller imbalance is rounding: equal terms are added one after another in about eight lanes.
    rounding = EPS * max(32.0, len(near[0]) / 64.0)

    def at(shift: float) -> tuple[float, float, float]:
        above, below, active = _sides(*near, shift, width)
        return float(above + decided[0]), float(below + decided[1]), float(active)

    shift, above, below = root(at, width, rounding)
    return Balance(base, shift, (0.0, 0.0), above, below)


def root(
    sides: Callable[[float], tuple[float, float, float]], width: float, rounding: float
) -> tuple[float, float, float]:
    """Return the shift in [-width, width] that balances both sides, and both sides, by Newton's method with a bracket.

    `sides` returns sum_P s beta, sum_N s beta and the weight on the ramp.
    """
    low, high, shift = -width, width, 0.0
    low_is_point = high_is_point = False
    for _ in range(MOST_STEPS):
        above, below, active = sides(shift)
        excess = above - below  # decreases with the bias
        if abs(excess) <= rounding * max(above, below):
            break
        if excess > 0.0:
            low, low_is_point = shift, True
        else:
            high, high_is_point = shift, True
        step = shift + excess * width / active if active > 0.0 else float(np.copysign(np.inf, excess))
        if step >= high and not high_is_point:  # the root may lie on an end of the first bracket
            step = high
        elif step <= low and not low_is_point:
            step = low
        elif not low < step < high:
            step = 0.5 * low + 0.5 * high
            if step in (low, high):  # no float lies between them
                break
        if step == shift:
            break
        shift = step
    else:  # for weights over hundreds of decades, return the sums of the last bias
        above, below, _ = sides(shift)
    return shift, above, below


def places_of(z: FloatArray, sign: AnyArray, offset: float) -> FloatArray:
    """Return the bias at which each row changes sides."""
    places, bounds = np.empty(len(z)), even_bounds(len(z), 4)
    run_chunks(_places, len(bounds) - 1, z, sign, offset, places, bounds)
    return places


def sums(
    z: FloatArray,
    sign: AnyArray,
    weight: FloatArray | None,
    offset: float,
    width: float,
    found: Balance,
    scales: tuple[float, float] = (0.0, 0.0),
    grad: FloatArray | None = None,
) -> tuple[float, float]:
    """Return sum s phi at the bias `found`, and the same at width 0; grad = scale of the class * s * beta."""
    bounds = even_bounds(len(z), 4)
    partial = np.empty((len(bounds) - 1, 2))
    arguments = (*found.parts, *scales, grad, partial, bounds)
    run_chunks(_ramp_sums, len(partial), z, sign, weight, offset, found.base, found.shift, width, *arguments)
    smooth, hard = partial.sum(axis=0)
    return float(hard if width == 0.0 else smooth), float(hard)


def _quantile(places: FloatArray, sign: AnyArray, weight: FloatArray | None) -> float:
    """Return the tau up to which the rows have the weight of all positives."""
    if weight is None:
        count = int(np.count_nonzero(sign > 0))
        return float(np.partition(places, count - 1)[count - 1])
    order = np.argsort(places)
    running = np.cumsum(weight[order])
    place = int(np.searchsorted(running, float(weight[sign > 0].sum()) * (1.0 - 1e-15)))
    return float(places[order[min(place, len(order) - 1)]])


def _tied(
    places: FloatArray, sign: AnyArray, weight: FloatArray | None, tau: float
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return beta of the positives and of the negatives with t = 0 that balances the classes, and the sums of s beta.

    The moved weight is as small as possible.
    """

    def total(rows: AnyArray) -> float:
        return float(np.count_nonzero(rows) if weight is None else weight[rows].sum())

    positive = sign > 0
    sides = total(positive & (places > tau)), total(~positive & (places < tau))
    tied = places == tau
    ties = total(positive & tied), total(~positive & tied)
    moved = max(sides)
    parts = [min(1.0, (moved - side) / tie) if tie > 0.0 else 0.0 for side, tie in zip(sides, ties, strict=True)]
    return (parts[0], parts[1]), (sides[0] + parts[0] * ties[0], sides[1] + parts[1] * ties[1])


def _undecided(
    places: FloatArray, sign: AnyArray, weight: FloatArray | None, base: float, width: float, bounds: AnyArray
) -> tuple[tuple[FloatArray, FloatArray], FloatArray]:
    """Return (place - base, signed weight) of the rows within two widths, and the decided weight of either class.

    Extra memory: two vectors of these rows, or four if several chunks are joined.
    """
    chunks = len(bounds) - 1
    room = np.empty((2, len(places)))  # the system allocates only the pages that are used
    counts, partial = np.empty(chunks, dtype=np.int64), np.empty((chunks, 2))
    run_chunks(_collect, chunks, places, sign, weight, base, 2.0 * width, room, counts, partial, bounds)
    pieces = [room[:, int(b) : int(b) + int(k)] for b, k in zip(bounds, counts, strict=False)]
    near = pieces[0] if chunks == 1 else np.concatenate(pieces, axis=1)
    return (near[0], near[1]), partial.sum(axis=0)


def _sides(distance: FloatArray, signed: FloatArray, shift: float, width: float) -> FloatArray:
    """Return (sum_P s beta, sum_N s beta, weight on the ramp) of the undecided rows."""
    bounds = even_bounds(len(distance), 4)
    partial = np.empty((len(bounds) - 1, 3))
    run_chunks(_side_sums, len(partial), distance, signed, shift, width, partial, bounds)
    return np.asarray(partial.sum(axis=0))


@kernel
def _places(z, sign, offset, places, bounds, first, last):
    """places = the bias at which a row changes sides, offset - z or -z."""
    for i in range(bounds[first], bounds[last]):
        places[i] = (offset if sign[i] > 0 else 0.0) - z[i]


@kernel
def _collect(places, sign, weight, base, reach, room, counts, partial, bounds, first, last):
    """room[:, bounds[c] :] = (place - base, signed weight) of the rows of chunk c within `reach`; the rest, summed."""
    for c in range(first, last):
        above = below = 0.0
        end = start = bounds[c]
        for i in range(bounds[c], bounds[c + 1]):
            s = 1.0 if weight is None else weight[i]
            distance = places[i] - base
            positive = sign[i] > 0
            room[0, end] = distance
            room[1, end] = s if positive else -s
            if abs(distance) <= reach:
                end += np.uint64(1)
            above += s if positive and distance > reach else 0.0
            below += s if not positive and distance < -reach else 0.0
        counts[c] = end - start
        partial[c, 0], partial[c, 1] = above, below


@kernel(reorder=True)
def _side_sums(distance, signed, shift, width, partial, bounds, first, last):
    """partial[c] = (sum_P s beta, sum_N s beta, weight on the ramp) over chunk c of the undecided rows."""
    inverse = 1.0 / width
    for c in range(first, last):
        above = below = active = 0.0
        for i in range(bounds[c], bounds[c + 1]):
            s = signed[i]
            t = distance[i] - shift if s > 0.0 else shift - distance[i]
            beta = t * inverse
            beta = 0.0 if beta < 0.0 else (1.0 if beta > 1.0 else beta)
            above += s * beta if s > 0.0 else 0.0
            below -= s * beta if s < 0.0 else 0.0
            active += abs(s) if 0.0 < t < width else 0.0
        partial[c, 0], partial[c, 1], partial[c, 2] = above, below, active


@kernel(reorder=True)
def _ramp_sums(
    z, sign, weight, offset, base, shift, width, part_p, part_n, above, below, grad, partial, bounds, first, last
):
    """partial[c] = (sum s phi, sum s max(0, t) without the shift) of chunk c.

    At width 0 a row with t = 0 counts `part_p` or `part_n`. phi = 0 | t^2 / (2 width) | t - width / 2.
    """
    inverse = 1.0 / width if width > 0.0 else 0.0
    for c in range(first, last):
        value = hard = 0.0
        for i in range(bounds[c], bounds[c + 1]):
            s = 1.0 if weight is None else weight[i]
            positive = sign[i] > 0
            t = (offset - z[i]) - base if positive else z[i] + base
            hard += s * (0.0 if t <= 0.0 else t)  # in this order NaN stays NaN
            if width > 0.0:
                t = t - shift if positive else t + shift
                beta = t * inverse
                beta = 0.0 if beta < 0.0 else (1.0 if beta > 1.0 else beta)
                value += s * beta * (t - 0.5 * width * beta)
            else:
                beta = 1.0 if t > 0.0 else 0.0
                if t == 0.0:
                    beta = part_p if positive else part_n
            if grad is not None:
                grad[i] = (above if positive else below) * s * beta
        partial[c, 0], partial[c, 1] = value, hard
