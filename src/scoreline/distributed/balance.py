"""The bias that balances two classes, for scores in blocks: a selection and a root, both by k-section.

For rows in one memory `kernels/balance.py` uses a selection and Newton's method. On a cluster every evaluation is a round, so a
round evaluates about a thousand places, and the exact result comes from the few rows that remain.
"""

from typing import NamedTuple

import numpy as np

from scoreline import kernels
from scoreline.distributed.blocks import BlockVector
from scoreline.distributed.selection import INTERVALS, MOST_ROUNDS, intervals, smallest_reaching
from scoreline.distributed.tasks import PartRows, Rows
from scoreline.kernels.balance import Balance
from scoreline.runtime.types import FloatArray

MAX_SENT_KINKS = 2048  # a part with more kinks sends sums instead


class Kinks(NamedTuple):
    """The excess of positives over negatives on an interval of the bias, from the rows of a part.

    `excess` and `slope` are those at the left end. `changes` are the changes of the slope at `places`; if `places` is
    None, they are sums per interval, and `moments` are the sums of changes times their distance from the left end of
    the interval.
    """

    excess: float
    slope: float
    places: FloatArray | None
    changes: FloatArray
    moments: FloatArray


def base_of(rows: Rows[BlockVector], offset: float, positive: float) -> float:
    """Return the balancing bias at width 0, the place up to which the rows have the weight of all positives."""
    places = rows.z.layout.vector(kernels.balance.places_of, rows.z, rows.sign, offset)
    return smallest_reaching(places, rows.weight, positive if rows.weight is None else positive * (1.0 - 1e-15))


def balance(rows: Rows[BlockVector], offset: float, width: float, positive: float) -> Balance:
    """Return the balancing bias as `kernels.balance.balance` does, but without its sums of s beta."""
    base = base_of(rows, offset, positive)
    if width > 0.0:
        return Balance(base, _shift(rows, offset, base, width), (0.0, 0.0), np.nan, np.nan)
    above, below, *tied = np.sum(rows.z.layout.gather(_tied, rows, offset, base), axis=0)
    moved = max(above, below)
    parts = [
        min(1.0, (moved - side) / tie) if tie > 0.0 else 0.0 for side, tie in zip((above, below), tied, strict=True)
    ]
    return Balance(base, 0.0, (parts[0], parts[1]), np.nan, np.nan)


def _shift(rows: Rows[BlockVector], offset: float, base: float, width: float) -> float:
    """Return the shift in [-width, width] at which the excess, which is piecewise linear and decreasing, is 0."""
    low, high = -width, width
    for _ in range(MOST_ROUNDS):
        parts: list[Kinks] = rows.z.layout.gather(_kinks, rows, offset, base, width, low, high)
        excess, slope = sum(part.excess for part in parts), sum(part.slope for part in parts)
        if not excess > 0.0:
            return low
        exact = [part.places for part in parts if part.places is not None]
        if len(exact) == len(parts):
            places = np.concatenate(exact)
            order = np.argsort(places, kind="stable")
            return _root(low, high, excess, slope, places[order], np.concatenate([p.changes for p in parts])[order])
        edges = intervals(low, high)
        sums = [_summed(part, edges) for part in parts]
        changes, moments = (np.sum([getattr(p, name) for p in sums], axis=0) for name in ("changes", "moments"))
        values = _values(edges, excess, slope, changes, moments)
        place = int(np.searchsorted(-values[1:], 0.0))  # the first interval at whose end the excess is not positive
        if place == INTERVALS:
            return high
        narrower = float(edges[place]), float(edges[place + 1])
        if narrower == (low, high):  # no float lies between them
            return high
        low, high = narrower
    return high


def _values(edges: FloatArray, excess: float, slope: float, changes: FloatArray, moments: FloatArray) -> FloatArray:
    """Return the excess at the ends of the intervals, from its slope and the kinks inside of them."""
    steps = np.diff(edges)
    slopes = slope + np.append(0.0, np.cumsum(changes)[:-1])  # at the left ends
    return excess + np.append(0.0, np.cumsum(slopes * steps + changes * steps - moments))


def _root(low: float, high: float, excess: float, slope: float, places: FloatArray, changes: FloatArray) -> float:
    """Return the root of a decreasing, piecewise linear function with kinks at `places`."""
    slopes = slope + np.append(0.0, np.cumsum(changes))
    ends, starts = np.append(places, high), np.append(low, places)
    values = excess + np.append(0.0, np.cumsum(slopes * (ends - starts)))
    piece = min(int(np.searchsorted(-values[1:], 0.0)), len(slopes) - 1)
    if slopes[piece] < 0.0:
        return float(min(max(starts[piece] - values[piece] / slopes[piece], starts[piece]), ends[piece]))
    return float(ends[piece])


def _tied(rows: PartRows, offset: float, base: float) -> list[float]:
    """Return the weights of the positives and negatives beyond the bias, and of those tied with it."""
    places, positive = kernels.balance.places_of(rows.z, rows.sign, offset), rows.sign > 0
    masks = (
        positive & (places > base),
        ~positive & (places < base),
        positive & (places == base),
        ~positive & (places == base),
    )
    return [float(np.count_nonzero(mask) if rows.weight is None else rows.weight[mask].sum()) for mask in masks]


def _kinks(rows: PartRows, offset: float, base: float, width: float, low: float, high: float) -> Kinks:
    """Return sum_P s beta - sum_N s beta as a function of the shift in [low, high], in one pass over the rows."""
    places, changes = np.empty(MAX_SENT_KINKS), np.empty(MAX_SENT_KINKS)
    sums, moments = np.zeros(INTERVALS), np.zeros(INTERVALS)
    ramp = offset, base, width, low, high
    value, slope, count = kernels.brackets.excess_on(*rows, *ramp, places, changes, sums, moments)
    if count <= MAX_SENT_KINKS:
        return Kinks(value, slope, places[:count], changes[:count], np.empty(0))
    return Kinks(value, slope, None, sums, moments)


def _summed(kinks: Kinks, edges: FloatArray) -> Kinks:
    """Return kinks as sums per interval [edge, next edge)."""
    if kinks.places is None:
        return kinks
    place = np.clip(np.searchsorted(edges, kinks.places, side="right") - 1, 0, INTERVALS - 1)
    changes = np.bincount(place, kinks.changes, INTERVALS).astype(np.float64)
    moments = np.bincount(place, kinks.changes * (kinks.places - edges[place]), INTERVALS).astype(np.float64)
    return kinks._replace(places=None, changes=changes, moments=moments)
