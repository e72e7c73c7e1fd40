"""The exact best threshold for scores in blocks, found by branch and bound without gathering the scores.

Counts at about a thousand thresholds split the scores into ranges. Within a range, a measure that increases with true
positives and decreases with false ones is at most value(all positives of the range, none of its negatives). Ranges that
cannot reach the best value so far are dropped, and the others are split again. When few rows remain, the driver examines them
one by one. A measure without this monotonicity needs all scores.
"""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np

from scoreline.distributed.blocks import BlockVector
from scoreline.distributed.selection import divided
from scoreline.distributed.tasks import PartRows, Rows
from scoreline.measures.remote_threshold import (
    MAX_GATHERED_ROWS,
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

EDGES = 1024  # thresholds per round
SAMPLE = 4096  # scores of all parts from which the first thresholds are taken
MOST_ROUNDS = 30

ValueOf: TypeAlias = Callable[..., FloatArray]  # of arrays tp, fp, fn, tn


class Range(NamedTuple):
    """Scores in (low, high]: the number of rows, and the counts TP, FP, FN, TN of thresholds at both ends.

    Counts below a threshold are summed separately: subtracting from the total would lose light rows next to heavy ones.
    `lowest` and `highest` are the extreme scores inside, and `below` is the highest score that is not above `low`.
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
    """Return the totals of all rows, in one round."""
    parts = [part for part in z.layout.gather(totals_of_rows, sign, z, weight) if part.rows]
    if not parts:
        return Totals(np.inf, -np.inf, 0, 0.0, 0.0).checked()
    sums = np.sum([p[2:] for p in parts], axis=0)
    low, high = np.min([p.low for p in parts]), np.max([p.high for p in parts])  # NaN stays NaN
    return Totals(float(low), float(high), int(sums[0]), float(sums[1]), float(sums[2])).checked()


def best_level(
    sign: BlockVector, z: BlockVector, weight: BlockVector | None, totals: Totals, value_of: ValueOf
) -> tuple[Level, float]:
    """Return the highest level with the largest value_of(tp, fp, fn, tn), which increases with tp and decreases with fp."""
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
        narrower, best = _narrowed(ranges, edges, counts, ends, best, value_of, ties)
        found = _within_reach([*settled, *narrower], best, value_of)
        settled = [r for r in found if ties.tied(r.lowest, r.highest)]  # no threshold lies between its scores
        ranges = [r for r in found if not ties.tied(r.lowest, r.highest)]
        if sum(r.rows for r in ranges) <= MAX_GATHERED_ROWS:
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
    for outer, own in zip(ranges, edges, strict=True):
        columns = slice(start + 1, start + len(own))  # scores up to its first edge belong to no range
        inside, lowest, highest = counts[:, columns], ends[0][columns], ends[1][columns]
        start += len(own)
        at = _at_edges(inside[1:], outer)
        below = np.maximum.accumulate(np.append(outer.below, highest))[:-1]
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


def _at_edges(inside: FloatArray, outer: Range) -> FloatArray:
    """Return TP, FP, FN, TN (rows) at the increasing edges (columns) of a range, from the weight of each class between them."""
    none = np.zeros((2, 1))
    above = np.hstack([np.cumsum(inside[:, ::-1], axis=1)[:, ::-1], none])
    below = np.hstack([none, np.cumsum(inside, axis=1)])
    return np.vstack([outer.at_high[:2, None] + above, outer.at_low[2:, None] + below])


def _best_of_rows(
    rows: Rows[BlockVector], settled: list[Range], ranges: list[Range], totals: Totals, value_of: ValueOf, ties: Ties
) -> tuple[Level, float]:
    """Examine the rows of the ranges one by one, from the highest score down; a settled range has one threshold below it."""
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
        # From the top down: a threshold lies just below its score, unless the next lower score is tied with it.
        values = np.where(ties.tied(below, levels), -np.inf, value_of(*at))[::-1]
        k = first_best(values)
        if clearly_above(values[k], value):
            best, value = Level(float(levels[-1 - k]), float(below[-1 - k]), at[:, -1 - k]), float(values[k])
    return best, value


def _sample(z: FloatArray, weight: FloatArray | None, count: int) -> FloatArray:
    there = z if weight is None else z[weight > 0.0]
    return there[:: max(1, len(there) // count)]


def _counts(rows: PartRows, edges: FloatArray) -> FloatArray:
    """Return rows, weight of positives and negatives, lowest and highest score in each (previous edge, edge]."""
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
    """Return the lowest score that is tied with a level, and the next lower one (minus infinity if there is none)."""
    ties, low = ties_of(z, weight, totals), level
    while True:  # ties are transitive: a score is tied with the level, or with another such score
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
    gaps = np.flatnonzero(~ties.tied(run[:-1], run[1:]))
    return float(run[gaps[0] if len(gaps) else -1])


def condensed(
    sign: BlockVector, z: BlockVector, weight: BlockVector | None
) -> tuple[AnyArray, FloatArray, FloatArray | None]:
    """Return labels, scores and weights on the driver, where runs of similar scores may be merged.

    A part sends at most POINTS rows per class. If it has more, a run of scores becomes one row with the mean of the scores and
    the sum of the weights. The rank of a threshold is then off by less than a share of 1 / POINTS.
    """
    parts = z.layout.gather(condensed_rows, sign, z, weight, _runs)
    signs, scores, weights = (np.concatenate([p[k] for p in parts]) for k in range(3))
    is_exact = weight is None and all(p[3] for p in parts)
    return signs, scores, None if is_exact else weights


def _runs(z: FloatArray, weight: FloatArray | None) -> tuple[FloatArray, FloatArray | None]:
    if len(z) <= POINTS:
        return z, weight
    order, s = np.argsort(z), np.ones(len(z)) if weight is None else weight
    starts = np.linspace(0, len(z), POINTS + 1).astype(np.intp)[:-1]
    sums = np.add.reduceat(s[order], starts)
    return np.add.reduceat((s * z)[order], starts) / sums, sums
