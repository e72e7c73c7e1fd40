"""The entry of a vector in blocks at which the cumulative weight reaches a target, exactly, without gathering the entries."""

from typing import NamedTuple

import numpy as np

from scoreline import kernels
from scoreline.distributed.blocks import BlockVector
from scoreline.runtime.types import AnyArray, FloatArray

SAMPLE = 4096  # entries of all parts that determine the first bracket
INTERVALS = 1024  # per round
MAX_SENT_ENTRIES = 1024  # a part with more distinct entries sends counts instead
EVEN_ROUNDS = 4  # with intervals of equal width; after these, intervals have equally many floats
MOST_ROUNDS = 40  # more than enough: after the even rounds, 7 rounds divide 64 bits by INTERVALS


class Inside(NamedTuple):
    """A part's entries in a bracket (low, high]: the weight up to low, and distinct entries with weights, or only counts."""

    before: float
    entries: FloatArray | None
    weights: FloatArray


def smallest_reaching(values: BlockVector, weight: BlockVector | None, target: float) -> float:
    """Return the smallest entry v such that entries up to v have at least the weight `target`, or else the largest entry.

    A sample gives a first bracket. In each round of k-section every part counts the weight in INTERVALS of the bracket, or
    sends its distinct entries there if these are few. Usually there are three rounds, of a few kB per part.
    """
    layout = values.layout
    ends, samples = zip(*layout.gather(_sample, values, weight, max(16, SAMPLE // layout.n_parts)), strict=True)
    lowest, highest = float(np.min([e[0] for e in ends])), float(np.max([e[1] for e in ends]))
    if not lowest <= highest:
        return float("nan")
    if target <= 0.0:
        return lowest
    floor = float(np.nextafter(lowest, -np.inf))
    low, high = _first_bracket(np.concatenate(samples, axis=1), target / max(sum(e[2] for e in ends), 1e-300))
    low, high = max(low, floor), min(high, highest)
    # Rounds add in different orders. The weight below the bracket is kept, or rounding could reverse an earlier decision.
    known, reached = None, False
    for done in range(MOST_ROUNDS):
        even = done < EVEN_ROUNDS
        parts = layout.gather(_inside, values, weight, low, high, even)
        before = sum(part.before for part in parts) if known is None else known
        if before >= target and low > floor:  # the sample gave a wrong bracket
            low, high, known, reached = floor, low, 0.0, True
            continue
        edges = intervals(low, high, even)
        exact = all(part.entries is not None for part in parts)
        if exact:
            entries = np.concatenate([part.entries for part in parts])
            order = np.argsort(entries, kind="stable")
            weights = np.concatenate([part.weights for part in parts])[order]
        else:
            counts = [p.weights if p.entries is None else _counted(p.entries, p.weights, edges) for p in parts]
            weights = np.sum(counts, axis=0)
        running = before + np.cumsum(weights)
        place = int(np.searchsorted(running, target))
        if place == len(running) and reached:  # because of rounding: take the last entry with weight
            place = int(np.flatnonzero(weights)[-1])
        if place == len(running):
            if high >= highest:
                return highest
            low, high, known = high, highest, float(running[-1]) if len(running) else before
        elif exact:
            return float(entries[order[place]])
        else:
            known, reached = float(running[place - 1]) if place else before, True
            low, high = float(edges[place]), float(edges[place + 1])
    raise AssertionError("k-section must end: intervals shrink to single floats")


def intervals(low: float, high: float, even: bool = True) -> FloatArray:
    """Return the ends of INTERVALS intervals: of equal width, or with equally many floats."""
    if not even:
        first, last = _ranks(np.array([low, high])).tolist()
        return _ranks(np.array([first + (last - first) * k // INTERVALS for k in range(INTERVALS + 1)])).view(
            np.float64
        )
    return divided(low, high, INTERVALS)


def divided(low: float, high: float, count: int) -> FloatArray:
    """Return the ends of intervals of equal width, without overflow and within [low, high]."""
    t = np.arange(count + 1) / count
    edges = low * (1.0 - t) + high * t
    edges[0], edges[-1] = low, high
    return np.maximum.accumulate(edges)


def _ranks(x: AnyArray) -> AnyArray:
    """Map floats to integers in the same order, and such integers back to the bits of the floats."""
    bits = x.view(np.int64)
    return np.where(bits < 0, np.iinfo(np.int64).min - bits, bits)


def _first_bracket(sample: FloatArray, share: float) -> tuple[float, float]:
    """Return a bracket that contains the quantile with high probability: four standard deviations of a sampled share."""
    values, weights = sample[:, np.argsort(sample[0])]
    top = float(weights.max(initial=0.0))
    if not 0.0 < top < np.inf:
        return -np.inf, np.inf
    weights = weights / top  # so that squares do not overflow
    total = float(weights.sum())
    running = np.cumsum(weights) / total
    effective = total**2 / float((weights**2).sum())
    share = min(1.0, max(0.0, share))
    reach = 4.0 * float(np.sqrt(max(share * (1.0 - share), 1.0 / effective) / effective))
    first, last = np.searchsorted(running, (share - reach, share + reach))
    low = -np.inf if share <= reach else float(np.nextafter(values[max(0, first - 1)], -np.inf))
    return low, np.inf if last >= len(values) - 1 else float(values[last + 1])


def _sample(values: FloatArray, weight: FloatArray | None, count: int) -> tuple[tuple[float, float, float], FloatArray]:
    """Return the smallest and largest entry, the total weight, and a sample of `count` entries with weights."""
    if len(values) == 0:
        return (np.inf, -np.inf, 0.0), np.empty((2, 0))
    step = max(1, len(values) // count)
    sampled = np.ones(len(values[::step])) if weight is None else weight[::step]
    total = float(len(values)) if weight is None else float(weight.sum())
    return (float(values.min()), float(values.max()), total), np.stack([values[::step], sampled])


def _inside(values: FloatArray, weight: FloatArray | None, low: float, high: float, even: bool) -> Inside:
    room, own = np.empty(len(values) + 1), None if weight is None else np.empty(len(values) + 1)
    count, before = kernels.brackets.inside(values, weight, low, high, room, own)
    entries, own = room[:count], None if own is None else own[:count]
    if len(entries) == 0 or entries.min() == entries.max():
        distinct = entries[:1]
    else:
        distinct = np.unique(entries) if len(entries) <= 64 * MAX_SENT_ENTRIES else entries
    if len(distinct) <= MAX_SENT_ENTRIES:
        place = np.searchsorted(distinct, entries)
        return Inside(before, distinct, np.bincount(place, own, len(distinct)).astype(np.float64))
    return Inside(before, None, _counted(entries, own, intervals(low, high, even)))


def _counted(entries: FloatArray, weight: FloatArray | None, edges: FloatArray) -> AnyArray:
    """Return the weight of entries in each interval (edge, next edge]; the index is computed, then checked by comparing."""
    width = float(edges[-1] / INTERVALS - edges[0] / INTERVALS)
    place = np.clip((entries - edges[0]) / width, 0, INTERVALS - 1).astype(np.intp) if 0.0 < width < np.inf else None
    if place is None or not ((entries > edges[place]) & (entries <= edges[place + 1])).all():
        place = np.clip(np.searchsorted(edges, entries) - 1, 0, INTERVALS - 1)
    return np.bincount(place, weight, INTERVALS).astype(np.float64)
