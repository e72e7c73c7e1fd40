"""The exact cut of scores in blocks: by bounds on what a range of thresholds can reach, without bringing the scores here.

Counts at about a thousand thresholds split the scores into ranges. A measure that rises with true positives and falls with
false ones is at most value(all of the range's positives, none of its negatives) within a range: ranges that cannot reach the
best value seen are left out, the others are split again, until so few rows are left that they can be sent here and looked at
one by one. A measure that is not known to rise so needs all scores.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from scoreline._blocks import BlockVector
from scoreline._typing import AnyArray, FloatArray
from scoreline.scorespace.selection import divided

EDGES = 1024  # thresholds of a round
SAMPLE = 4096  # scores of all parts that the first thresholds are taken from
FEW = 1 << 14  # rows that are sent here
MOST_ROUNDS = 30
POINTS = 1 << 16  # of a class that a part sends for a steady cut


class Range(NamedTuple):
    """Scores in (low, high]: rows there, and the counts TP, FP, FN, TN of thresholds at its two ends.

    What lies below a threshold is a sum of its own, not what is left of the total: that would drown light rows in heavy ones.
    """

    low: float
    high: float
    rows: int
    at_low: FloatArray
    at_high: FloatArray


class Totals(NamedTuple):
    """Ends of the scores, number of rows of positive weight, weights of the classes."""

    low: float
    high: float
    rows: int
    positive: float
    negative: float

    def above_all(self) -> FloatArray:
        """Return the counts of a threshold above all scores."""
        return np.array([0.0, 0.0, self.positive, self.negative])


class Level(NamedTuple):
    """The best threshold: just below a score (infinity: above all), the next lower score, and the counts TP, FP, FN, TN."""

    score: float
    below: float
    counts: FloatArray


def totals_of(sign: BlockVector, z: BlockVector, weight: BlockVector | None) -> Totals:
    """Return what all rows have together: one round."""
    parts = z.layout.gather(_totals, sign, z, weight)
    low, high = min(p.low for p in parts), max(p.high for p in parts)
    if not np.isfinite([p.low for p in parts if p.rows] + [p.high for p in parts if p.rows]).all():
        raise ValueError("scores must be finite, and they hold NaN or infinity")
    sums = np.sum([p[2:] for p in parts], axis=0)
    if sums[0] == 0:
        raise ValueError("a cut needs at least one row of positive weight")
    return Totals(low, high, int(sums[0]), float(sums[1]), float(sums[2]))


def best_level(
    sign: BlockVector, z: BlockVector, weight: BlockVector | None, totals: Totals, value_of: Callable[..., Any]
) -> tuple[Level, float]:
    """Return where value_of(tp, fp, fn, tn), which rises with tp and falls with fp, is largest; the highest of equal ones."""
    layout = z.layout
    samples = layout.gather(_sample, z, weight, max(16, SAMPLE // layout.n_parts))
    floor = float(np.nextafter(totals.low, -np.inf))
    first = np.unique(np.concatenate([*samples, [totals.high]]))
    first = np.append(floor, first[:: max(1, len(first) // EDGES)])
    first[-1] = totals.high
    nothing = totals.above_all()
    best = float(value_of(*nothing[:, None])[0])
    ranges = [Range(floor, totals.high, totals.rows, np.roll(nothing, 2), nothing)]
    edges = [first]
    for _ in range(MOST_ROUNDS):
        counts = np.sum(layout.gather(_counts, sign, z, weight, np.concatenate(edges)), axis=0)
        ranges, best = _narrowed(ranges, edges, counts, best, value_of)
        if sum(r.rows for r in ranges) <= FEW or all(np.nextafter(r.low, np.inf) >= r.high for r in ranges):
            break
        share = max(2, EDGES // len(ranges))
        edges = [divided(r.low, r.high, share) for r in ranges]
    level, value = _best_of_rows(layout, sign, z, weight, ranges, nothing, value_of)
    if level.score == np.inf:
        return level._replace(below=totals.high), value
    return level._replace(below=next_lower(z, weight, level.score)), value


def _narrowed(
    ranges: list[Range], edges: list[FloatArray], counts: FloatArray, best: float, value_of: Callable[..., Any]
) -> tuple[list[Range], float]:
    """Return the parts of the ranges that can hold the best threshold, given counts between the edges, and the best seen."""
    found: list[Range] = []
    start = 0
    for whole, own in zip(ranges, edges, strict=True):
        inside = counts[:, start + 1 : start + len(own)]  # what lies up to its first edge belongs to no range
        start += len(own)
        at = _at_edges(inside[1:], whole)
        best = max(best, float(np.max(value_of(*at))))
        found.extend(
            Range(float(own[k]), float(own[k + 1]), int(inside[0, k]), at[:, k], at[:, k + 1])
            for k in np.flatnonzero(inside[0])
        )
    if found:
        low, high = (np.stack([getattr(r, end) for r in found], axis=1) for end in ("at_low", "at_high"))
        bounds = value_of(low[0], high[1], low[2], high[3])
        found = [r for r, bound in zip(found, bounds, strict=True) if bound >= best * (1.0 - 1e-12 * np.sign(best))]
    return found, best


def _at_edges(inside: FloatArray, whole: Range) -> FloatArray:
    """Return TP, FP, FN, TN (rows) at the rising edges (columns) of the pieces of a range; `inside`: weight of either class."""
    none = np.zeros((2, 1))
    above = np.hstack([np.cumsum(inside[:, ::-1], axis=1)[:, ::-1], none])
    below = np.hstack([none, np.cumsum(inside, axis=1)])
    return np.vstack([whole.at_high[:2, None] + above, whole.at_low[2:, None] + below])


def _best_of_rows(
    layout: Any,
    sign: BlockVector,
    z: BlockVector,
    weight: BlockVector | None,
    ranges: list[Range],
    nothing: FloatArray,
    value_of: Any,
) -> tuple[Level, float]:
    """Look at the rows of the ranges one by one, from the highest score down."""
    bounds = np.array([(r.low, r.high) for r in ranges]).reshape(-1, 2)
    parts = layout.gather(_rows_within, sign, z, weight, bounds)
    scores, positive, weights = (np.concatenate([p[k] for p in parts]) for k in range(3))
    best, value = Level(np.inf, np.nan, nothing), float(value_of(*nothing[:, None])[0])
    for r in sorted(ranges, key=lambda r: r.high, reverse=True):
        own = (scores > r.low) & (scores <= r.high)
        levels, place = np.unique(scores[own], return_inverse=True)
        if len(levels) == 0:
            continue
        sides = (positive[own], ~positive[own])
        at = _at_edges(np.stack([np.bincount(place, weights[own] * side, len(levels)) for side in sides]), r)
        at = at[:, -2::-1]  # from the top down: a threshold lies just below its score
        values = value_of(*at)
        k = int(np.argmax(values))
        if values[k] > value:
            best, value = Level(float(levels[-1 - k]), np.nan, at[:, k]), float(values[k])
    return best, value


def _totals(sign: AnyArray, z: FloatArray, weight: FloatArray | None) -> Totals:
    there = np.ones(len(z), dtype=bool) if weight is None else weight > 0.0
    if not there.any():
        return Totals(np.inf, -np.inf, 0, 0.0, 0.0)
    scores, positive = z[there], sign[there] > 0
    s = np.ones(len(scores)) if weight is None else weight[there]
    if not np.isfinite(scores).all():
        return Totals(np.nan, np.nan, len(scores), 0.0, 0.0)
    return Totals(
        float(scores.min()), float(scores.max()), len(scores), float(s[positive].sum()), float(s[~positive].sum())
    )


def _sample(z: FloatArray, weight: FloatArray | None, count: int) -> FloatArray:
    there = z if weight is None else z[weight > 0.0]
    return there[:: max(1, len(there) // count)]


def _counts(sign: AnyArray, z: FloatArray, weight: FloatArray | None, edges: FloatArray) -> FloatArray:
    """Return rows, weight of positives and weight of negatives in (edge before, edge], and beyond the ends."""
    place = np.searchsorted(edges, z)
    there = np.ones(len(z)) if weight is None else (weight > 0.0).astype(np.float64)
    s, positive = there if weight is None else weight, sign > 0
    return np.stack([np.bincount(place, v, len(edges) + 1) for v in (there, s * positive, s * ~positive)])


def _rows_within(
    sign: AnyArray, z: FloatArray, weight: FloatArray | None, bounds: FloatArray
) -> tuple[FloatArray, AnyArray, FloatArray]:
    inside = np.zeros(len(z), dtype=bool)
    for low, high in bounds:
        inside |= (z > low) & (z <= high)
    if weight is not None:
        inside &= weight > 0.0
    scores = z[inside]
    return scores, sign[inside] > 0, np.ones(len(scores)) if weight is None else weight[inside]


def next_lower(z: BlockVector, weight: BlockVector | None, level: float) -> float:
    """Return the highest score below a level, minus infinity if there is none."""
    return float(max(z.layout.gather(_highest_below, z, weight, level)))


def _highest_below(z: FloatArray, weight: FloatArray | None, level: float) -> float:
    lower = z[z < level] if weight is None else z[(z < level) & (weight > 0.0)]
    return float(lower.max()) if len(lower) else -np.inf


def condensed(
    sign: BlockVector, z: BlockVector, weight: BlockVector | None
) -> tuple[AnyArray, FloatArray, FloatArray | None]:
    """Return labels, scores and weights here: all rows where a part has few of a class, else runs of neighbouring scores.

    A run is one row with the mean of its scores and the sum of its weights, so a part sends at most POINTS rows of a class. The
    rank of a threshold is then off by less than a share of 1 / POINTS. Rows of a class come sorted by part.
    """
    parts = z.layout.gather(_condensed, sign, z, weight)
    signs, scores, weights = (np.concatenate([p[k] for p in parts]) for k in range(3))
    whole = weight is None and all(p[3] for p in parts)
    return signs, scores, None if whole else weights


def _condensed(
    sign: AnyArray, z: FloatArray, weight: FloatArray | None
) -> tuple[AnyArray, FloatArray, FloatArray, bool]:
    found, whole = [], True
    for side in (1, -1):
        rows = sign == side if weight is None else (sign == side) & (weight > 0.0)
        scores, s = z[rows], np.ones(np.count_nonzero(rows)) if weight is None else weight[rows]
        if len(scores) > POINTS:
            order = np.argsort(scores)
            starts = np.linspace(0, len(scores), POINTS + 1).astype(np.intp)[:-1]
            sums = np.add.reduceat(s[order], starts)
            scores, s, whole = np.add.reduceat((s * scores)[order], starts) / sums, sums, False
        found.append((np.full(len(scores), side, dtype=np.int8), scores, s))
    return *(np.concatenate([f[k] for f in found]) for k in range(3)), whole  # type: ignore[return-value]
