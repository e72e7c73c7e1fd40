"""The bias that balances two classes, of scores in blocks: a selection and a root, both by k-section.

With rows in one memory `kernels/balance.py` does the same by one selection and Newton's method. Here every look at the rows is
a round, so a round looks at about a thousand places at once, and the exact answer comes from the few rows that are left.
"""

from typing import Any, NamedTuple

import numpy as np

from scoreline import kernels
from scoreline.distributed.blocks import BlockVector
from scoreline.distributed.selection import INTERVALS, MOST_ROUNDS, intervals, smallest_reaching
from scoreline.runtime.types import AnyArray, FloatArray

FEW = 2048  # kinks of a part that are sent instead of sums


class Kinks(NamedTuple):
    """The excess of positives over negatives on an interval of the bias, from the rows of a part.

    Its value and slope at the left end, and how the slope changes: at single places, or per interval (changes, and changes
    times their distance from its left end).
    """

    excess: float
    slope: float
    places: FloatArray | None
    changes: FloatArray
    moments: FloatArray


def base_of(z: BlockVector, sign: BlockVector, weight: BlockVector | None, offset: float, positive: float) -> float:
    """Return the balancing bias at width 0: the place up to which rows weigh as much as all positives."""
    places = z.layout.vector(_places, z, sign, offset)
    return smallest_reaching(places, weight, positive if weight is None else positive * (1.0 - 1e-15))


def balance(
    z: BlockVector, sign: BlockVector, weight: BlockVector | None, offset: float, width: float, positive: float
) -> Any:
    """Return the balancing bias as `kernels.balance.balance` does; its sums of s beta are left to whoever uses it."""
    base = base_of(z, sign, weight, offset, positive)
    if width == 0.0:
        sums = np.sum(z.layout.gather(_tied, z, sign, weight, offset, base), axis=0)
        moved = max(sums[0], sums[1])
        parts = [
            min(1.0, (moved - side) / tie) if tie > 0.0 else 0.0 for side, tie in zip(sums[:2], sums[2:], strict=True)
        ]
        return kernels.balance.Balance(base, 0.0, (parts[0], parts[1]), np.nan, np.nan)
    return kernels.balance.Balance(base, _shift(z, sign, weight, offset, base, width), (0.0, 0.0), np.nan, np.nan)


def _shift(
    z: BlockVector, sign: BlockVector, weight: BlockVector | None, offset: float, base: float, width: float
) -> float:
    """Return the shift in [-width, width] at which the excess, piecewise linear and falling, is 0."""
    low, high = -width, width
    for _ in range(MOST_ROUNDS):
        parts = z.layout.gather(_kinks, z, sign, weight, offset, base, width, low, high)
        excess, slope = sum(part.excess for part in parts), sum(part.slope for part in parts)
        if not excess > 0.0:
            return low
        exact = all(part.places is not None for part in parts)
        if exact:
            places = np.concatenate([part.places for part in parts])
            order = np.argsort(places, kind="stable")
            return _root(low, high, excess, slope, places[order], np.concatenate([p.changes for p in parts])[order])
        edges = intervals(low, high)
        sums = [part if part.places is None else _summed(part, edges) for part in parts]
        values = _values(
            edges, excess, slope, np.sum([p.changes for p in sums], axis=0), np.sum([p.moments for p in sums], axis=0)
        )
        place = int(np.searchsorted(-values[1:], 0.0))  # the first interval at whose end the excess is not positive
        if place == INTERVALS:
            return high
        narrower = float(edges[place]), float(edges[place + 1])
        if narrower == (low, high):  # single floats
            return high
        low, high = narrower
    return high


def _values(edges: FloatArray, excess: float, slope: float, changes: FloatArray, moments: FloatArray) -> FloatArray:
    """Return the excess at the ends of the intervals: within one it changes by slope, and by each kink from its place on."""
    steps = np.diff(edges)
    slopes = slope + np.append(0.0, np.cumsum(changes)[:-1])  # at the left ends
    return excess + np.append(0.0, np.cumsum(slopes * steps + changes * steps - moments))


def _root(low: float, high: float, excess: float, slope: float, places: FloatArray, changes: FloatArray) -> float:
    """Return the root of a falling, piecewise linear function with its kinks at `places`."""
    slopes = slope + np.append(0.0, np.cumsum(changes))
    ends, starts = np.append(places, high), np.append(low, places)
    values = excess + np.append(0.0, np.cumsum(slopes * (ends - starts)))
    piece = min(int(np.searchsorted(-values[1:], 0.0)), len(slopes) - 1)
    if slopes[piece] < 0.0:
        return float(min(max(starts[piece] - values[piece] / slopes[piece], starts[piece]), ends[piece]))
    return float(ends[piece])


def _places(z: FloatArray, sign: AnyArray, offset: float) -> FloatArray:
    return kernels.balance.places_of(z, sign, offset)


def _tied(z: FloatArray, sign: AnyArray, weight: FloatArray | None, offset: float, base: float) -> list[float]:
    """Return the weights of positives and negatives that move, and of those that are tied."""
    places, positive = _places(z, sign, offset), sign > 0
    rows = (
        positive & (places > base),
        ~positive & (places < base),
        positive & (places == base),
        ~positive & (places == base),
    )
    return [float(np.count_nonzero(r) if weight is None else weight[r].sum()) for r in rows]


def _kinks(
    z: FloatArray,
    sign: AnyArray,
    weight: FloatArray | None,
    offset: float,
    base: float,
    width: float,
    low: float,
    high: float,
) -> Kinks:
    """Return sum_P s beta - sum_N s beta as a function of the shift in [low, high]: one read of the rows."""
    places, changes = np.empty(FEW), np.empty(FEW)
    sums, moments = np.zeros(INTERVALS), np.zeros(INTERVALS)
    rows = z, sign, weight, offset, base, width, low, high
    value, slope, count = kernels.brackets.excess_on(*rows, places, changes, sums, moments)
    if count <= FEW:
        return Kinks(value, slope, places[:count], changes[:count], np.empty(0))
    return Kinks(value, slope, None, sums, moments)


def _summed(kinks: Kinks, edges: FloatArray) -> Kinks:
    """Return kinks as sums per interval [edge, next edge)."""
    assert kinks.places is not None
    place = np.clip(np.searchsorted(edges, kinks.places, side="right") - 1, 0, INTERVALS - 1)
    changes = np.bincount(place, kinks.changes, INTERVALS).astype(np.float64)
    moments = np.bincount(place, kinks.changes * (kinks.places - edges[place]), INTERVALS).astype(np.float64)
    return kinks._replace(places=None, changes=changes, moments=moments)
