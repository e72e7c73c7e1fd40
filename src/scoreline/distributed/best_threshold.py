"""The exact threshold of scores in blocks: by bounds on what a range of thresholds can reach, without gathering the scores.

Counts at about a thousand thresholds split the scores into ranges. A measure that rises with true positives and falls with
false ones is at most value(all of the range's positives, none of its negatives) within a range: ranges that cannot reach the
best value seen are left out, the others are split again, until so few rows are left that the driver can look at them one by
one. A measure that is not known to rise so needs all scores.
"""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np

from scoreline.distributed.blocks import BlockVector
from scoreline.distributed.selection import divided
from scoreline.distributed.tasks import PartRows, Rows
from scoreline.measures.remote_threshold import (
    FEW,
    POINTS,
    Level,
    Totals,
    condensed_rows,
    counted,
    ties_of,
    totals_of_rows,
)
from scoreline.measures.ties import TIE, Ties, clearly_above, first_best
from scoreline.runtime.types import AnyArray, FloatArray

EDGES = 1024  # thresholds of a round
SAMPLE = 4096  # scores of all parts that the first thresholds are taken from
MOST_ROUNDS = 30

ValueOf: TypeAlias = Callable[..., FloatArray]  # of arrays tp, fp, fn, tn


class Range(NamedTuple):
    """Scores in (low, high]: rows there, and the counts TP, FP, FN, TN of thresholds at its two ends.

    What lies below a threshold is a sum of its own, not what is left of the total: that would drown light rows in heavy ones.
    `lowest` and `highest` are the ends of the scores inside, `below` is the highest score that is not above `low`.
    """

    low: float
    high: float
    rows: int
    at_low: FloatArray
    at_high: FloatArray
    lowest: float
    highest: float
    below: float


def totals_of(sign: BlockVector, z: BlockVector, weight: BlockVector | None) -> Totals:
    """Return what all rows have together: one round."""
    parts = [part for part in z.layout.gather(totals_of_rows, sign, z, weight) if part.rows]
    if not parts:
        return Totals(np.inf, -np.inf, 0, 0.0, 0.0).checked()
    sums = np.sum([p[2:] for p in parts], axis=0)
    low, high = np.min([p.low for p in parts]), np.max([p.high for p in parts])  # NaN stays NaN
    return Totals(float(low), float(high), int(sums[0]), float(sums[1]), float(sums[2])).checked()


def best_level(
    sign: BlockVector, z: BlockVector, weight: BlockVector | None, totals: Totals, value_of: ValueOf
) -> tuple[Level, float]:
    """Return where value_of(tp, fp, fn, tn), which rises with tp and falls with fp, is largest; the highest of equal ones."""
    layout, rows = z.layout, Rows(z, sign, weight)
    samples = layout.gather(_sample, z, weight, max(16, SAMPLE // layout.n_parts))
    floor = float(np.nextafter(totals.low, -np.inf))
    first = np.unique(np.concatenate([*samples, [totals.high]]))
    first = np.append(floor, first[:: max(1, len(first) // EDGES)])
    first[-1] = totals.high
    nothing = totals.above_all()
    best = float(value_of(*nothing[:, None])[0])
    ties = ties_of(z, weight, totals)
    ranges = [Range(floor, totals.high, totals.rows, np.roll(nothing, 2), nothing, totals.low, totals.high, -np.inf)]
    edges: list[FloatArray] = [first]
    settled: list[Range] = []
    for _ in range(MOST_ROUNDS):
        parts = layout.gather(_counts, rows, np.concatenate(edges))
        counts = np.sum([part[:3] for part in parts], axis=0)
        ends = np.min([part[3] for part in parts], axis=0), np.max([part[4] for part in parts], axis=0)
        made, best = _narrowed(ranges, edges, counts, ends, best, value_of, ties)
        found = _within_reach([*settled, *made], best, value_of)
        settled = [r for r in found if ties.tied(r.lowest, r.highest)]  # no threshold lies between its scores
        ranges = [r for r in found if not ties.tied(r.lowest, r.highest)]
        if sum(r.rows for r in ranges) <= FEW:
            break
        share = max(2, EDGES // len(ranges))
        edges = [divided(r.low, r.high, share) for r in ranges]
    return _best_of_rows(rows, settled, ranges, totals, value_of, ties)


def _narrowed(
    ranges: list[Range], edges: list[FloatArray], counts: FloatArray, ends: tuple[FloatArray, FloatArray], best: float,
    value_of: ValueOf, ties: Ties,
) -> tuple[list[Range], float]:  # fmt: skip
    """Return the ranges between the edges, given counts and ends of the scores there, and the best value at an edge."""
    found: list[Range] = []
    start = 0
    for whole, own in zip(ranges, edges, strict=True):
        here = slice(start + 1, start + len(own))  # what lies up to its first edge belongs to no range
        inside, lowest, highest = counts[:, here], ends[0][here], ends[1][here]
        start += len(own)
        at = _at_edges(inside[1:], whole)
        below = np.maximum.accumulate(np.append(whole.below, highest))[:-1]
        above = np.minimum.accumulate(lowest[::-1])[::-1]
        free = np.isfinite(above) & ~ties.tied(below, above)
        if free.any():
            best = max(best, float(np.max(value_of(*at[:, :-1][:, free]))))
        found.extend(
            Range(
                float(own[k]), float(own[k + 1]), int(inside[0, k]), at[:, k], at[:, k + 1], float(lowest[k]),
                float(highest[k]), float(below[k]),
            )
            for k in np.flatnonzero(inside[0])
        )  # fmt: skip
    return found, best


def _within_reach(ranges: list[Range], best: float, value_of: ValueOf) -> list[Range]:
    """Return the ranges that can hold the best threshold."""
    if not ranges:
        return []
    low, high = (np.stack([getattr(r, end) for r in ranges], axis=1) for end in ("at_low", "at_high"))
    bounds = value_of(low[0], high[1], low[2], high[3])
    return [r for r, bound in zip(ranges, bounds, strict=True) if bound >= best * (1.0 - TIE * np.sign(best))]


def _at_edges(inside: FloatArray, whole: Range) -> FloatArray:
    """Return TP, FP, FN, TN (rows) at the rising edges (columns) of the pieces of a range; `inside`: weight of either class."""
    none = np.zeros((2, 1))
    above = np.hstack([np.cumsum(inside[:, ::-1], axis=1)[:, ::-1], none])
    below = np.hstack([none, np.cumsum(inside, axis=1)])
    return np.vstack([whole.at_high[:2, None] + above, whole.at_low[2:, None] + below])


def _best_of_rows(
    rows: Rows[BlockVector], settled: list[Range], ranges: list[Range], totals: Totals, value_of: ValueOf, ties: Ties
) -> tuple[Level, float]:
    """Look at the rows of the ranges one by one, from the highest score down; a settled one has one threshold, below it."""
    bounds = np.array([(r.low, r.high) for r in ranges]).reshape(-1, 2)
    parts = rows.z.layout.gather(_rows_within, rows, bounds)
    scores, positive, weights = (np.concatenate([p[k] for p in parts]) for k in range(3))
    nothing = totals.above_all()
    best, value = Level(np.inf, totals.high, nothing), float(value_of(*nothing[:, None])[0])
    for r in sorted([*settled, *ranges], key=lambda r: r.high, reverse=True):
        if ties.tied(r.lowest, r.highest):
            levels, at = np.array([r.lowest]), r.at_low[:, None]
        else:
            own = (scores > r.low) & (scores <= r.high)
            levels, place = np.unique(scores[own], return_inverse=True)
            sides = (positive[own], ~positive[own])
            at = _at_edges(np.stack([np.bincount(place, weights[own] * side, len(levels)) for side in sides]), r)
            at = at[:, :-1]
        below = np.append(r.below, levels[:-1])
        # From the top down: a threshold lies just below its score, unless the next lower one is tied to it.
        values = np.where(ties.tied(below, levels), -np.inf, value_of(*at))[::-1]
        k = first_best(values)
        if clearly_above(values[k], value):
            best, value = Level(float(levels[-1 - k]), float(below[-1 - k]), at[:, -1 - k]), float(values[k])
    return best, value


def _sample(z: FloatArray, weight: FloatArray | None, count: int) -> FloatArray:
    there = z if weight is None else z[weight > 0.0]
    return there[:: max(1, len(there) // count)]


def _counts(rows: PartRows, edges: FloatArray) -> FloatArray:
    """Return what lies in (edge before, edge], and beyond the ends.

    Rows, weight of positives, weight of negatives, lowest and highest score.
    """
    sign, z, weight = counted(rows.sign, rows.z, rows.weight)
    place, positive = np.searchsorted(edges, z), sign > 0
    ones = np.ones(len(z))
    s = ones if weight is None else weight
    lowest, highest = np.full(len(edges) + 1, np.inf), np.full(len(edges) + 1, -np.inf)
    np.minimum.at(lowest, place, z)
    np.maximum.at(highest, place, z)
    sums = [np.bincount(place, v, len(edges) + 1) for v in (ones, s * positive, s * ~positive)]
    return np.stack([*sums, lowest, highest])


def _rows_within(rows: PartRows, bounds: FloatArray) -> tuple[FloatArray, AnyArray, FloatArray]:
    sign, z, weight = counted(rows.sign, rows.z, rows.weight)
    inside = np.zeros(len(z), dtype=bool)
    for low, high in bounds:
        inside |= (z > low) & (z <= high)
    scores = z[inside]
    return scores, sign[inside] > 0, np.ones(len(scores)) if weight is None else weight[inside]


def below_ties(z: BlockVector, weight: BlockVector | None, level: float, totals: Totals) -> tuple[float, float]:
    """Return the lowest score that is tied to a level, and the next lower one (minus infinity if there is none)."""
    ties, low = ties_of(z, weight, totals), level
    while True:  # a score is tied to a level, or to another that is
        end = float(min(z.layout.gather(_tied_run, z, weight, low, ties)))
        if end == low:
            return low, float(max(z.layout.gather(_highest_below, z, weight, low)))
        low = end


def _highest_below(z: FloatArray, weight: FloatArray | None, level: float) -> float:
    there = z if weight is None else z[weight > 0.0]
    return float(there[there < level].max(initial=-np.inf))


def _tied_run(z: FloatArray, weight: FloatArray | None, level: float, ties: Ties) -> float:
    """Return how far down one part continues the ties from a level on."""
    there = z if weight is None else z[weight > 0.0]
    run = np.append(level, np.sort(there[there < level])[::-1])
    apart = np.flatnonzero(~ties.tied(run[:-1], run[1:]))
    return float(run[apart[0] if len(apart) else -1])


def condensed(
    sign: BlockVector, z: BlockVector, weight: BlockVector | None
) -> tuple[AnyArray, FloatArray, FloatArray | None]:
    """Return labels, scores and weights on the driver: all rows of a class if a part has few, else runs of near scores.

    A run is one row with the mean of its scores and the sum of its weights, so a part sends at most POINTS rows of a class. The
    rank of a threshold is then off by less than a share of 1 / POINTS. Rows of a class come sorted by part.
    """
    parts = z.layout.gather(condensed_rows, sign, z, weight, _runs)
    signs, scores, weights = (np.concatenate([p[k] for p in parts]) for k in range(3))
    whole = weight is None and all(p[3] for p in parts)
    return signs, scores, None if whole else weights


def _runs(z: FloatArray, weight: FloatArray | None) -> tuple[FloatArray, FloatArray | None]:
    if len(z) <= POINTS:
        return z, weight
    order, s = np.argsort(z), np.ones(len(z)) if weight is None else weight
    starts = np.linspace(0, len(z), POINTS + 1).astype(np.intp)[:-1]
    sums = np.add.reduceat(s[order], starts)
    return np.add.reduceat((s * z)[order], starts) / sums, sums
