"""Few bins of a column: the segments of its function that lose least of it, with edges that are easy to read."""

import math
from collections.abc import Sequence

import numpy as np

from scoreline.features.bins import ColumnBins
from scoreline.runtime.types import FloatArray, IntArray

DIGIT_COST = 0.05  # of the cost of one more bin, for each digit of an edge
MEAN_ERROR = 1e-9  # of the distance from an edge to the mean above it, which may be the only value of its bin


def segments(
    values: FloatArray, weight: FloatArray, *, least: float, most: int, bin_cost: float, edge_costs: FloatArray
) -> IntArray:
    """Return the first bin of each segment of neighbouring bins; the first segment begins at 0.

    A segment costs sum weight (value - mean)^2 over its bins, `bin_cost`, and the cost of the edge before it. The
    segmentation with the smallest sum is found by dynamic programming over at most `most` segments (eq. card-bins).

    Parameters
    ----------
    values, weight : array of m numbers
        Value of the function in each bin, and the weight of its rows.
    least : float
        Least weight of a segment; if all rows together weigh less, there is one segment.
    most : int
        Largest number of segments.
    bin_cost : float
        Cost of a segment.
    edge_costs : array of m - 1 numbers
        Cost of an edge before bin 1, 2, ...
    """
    m = len(values)
    sums = np.concatenate([[0.0], np.cumsum(weight)])
    firsts = np.concatenate([[0.0], np.cumsum(weight * values)])
    seconds = np.concatenate([[0.0], np.cumsum(weight * values**2)])
    own = sums[None, :] - sums[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        square = np.where(own > 0.0, (firsts[None, :] - firsts[:, None]) ** 2 / own, 0.0)
    cost = np.maximum(seconds[None, :] - seconds[:, None] - square, 0.0) + bin_cost
    cost[own < min(least, sums[-1]) * (1.0 - 1e-12)] = np.inf
    cost[np.tril_indices(m + 1)] = np.inf  # a segment has one bin or more
    cost[1:m] += edge_costs[:, None]
    best, before = cost[0].copy(), []
    totals = [best[m]]
    for _ in range(1, min(most, m)):
        all_costs = best[:, None] + cost
        before.append(all_costs.argmin(axis=0))
        best = all_costs.min(axis=0)
        totals.append(best[m])
    starts, end = [], m
    for k in range(int(np.argmin(totals)), 0, -1):
        end = int(before[k - 1][end])
        starts.append(end)
    return np.array([0, *starts[::-1]])


def digits(value: float) -> float:
    """Return how many digits a number has but for zeros at either end; a 5 at the end counts half."""
    if value == 0.0 or not math.isfinite(value):
        return 0.0
    text = f"{abs(value):.15e}".partition("e")[0].replace(".", "").rstrip("0")
    return len(text) - 0.5 * text.endswith("5")


def readable(low: float, high: float, near: float) -> float:
    """Return the number with the fewest digits in [low, high); of several, the one nearest to `near`."""
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        return near
    if low <= 0.0 < high:
        return 0.0
    power = math.floor(math.log10(max(abs(low), abs(high))))
    for exponent in range(power, power - 17, -1):
        for unit in (1, 5):  # tens, then fives of the next digit
            at = exponent if unit == 1 else exponent - 1
            step = unit * 10.0**at
            multiple = round(near / step)
            multiple = min(max(multiple, math.ceil(low / step)), math.ceil(high / step) - 1)
            found = float(f"{multiple * step:.{max(0, -at)}f}")
            if low <= found < high:
                return found
    return near


def readable_cuts(cuts: FloatArray, centers: FloatArray) -> FloatArray:
    """Return for every cut point the most readable number between the mean values of the bins below and above it.

    An edge belongs to the bin below it, so that 24.5 becomes 24 between integers. The bins of the first fit are fine, and the
    part between an edge and a mean holds few rows. A bin of one value, which may hold many, stays whole.

    Parameters
    ----------
    cuts : array of m numbers
        The cut points, increasing.
    centers : array of m + 1 numbers
        The mean value of each bin.
    """
    low, above = centers[:-1], centers[1:]
    high = above - MEAN_ERROR * (above - cuts)
    found = np.array([readable(*each) for each in zip(low.tolist(), high.tolist(), cuts.tolist(), strict=True)])
    return np.where((found >= low) & (found < high), found, cuts) if len(cuts) else cuts.copy()


def number_edges(
    bins: ColumnBins, values: FloatArray, counts: FloatArray, *, least: float, most: int, bin_cost: float
) -> FloatArray:
    """Return readable edges for a column of numbers; `values` and `counts` have an entry for each code, missing ones first."""
    cuts = readable_cuts(bins.values, bins.centers)
    costs = bin_cost * DIGIT_COST * np.array([digits(edge) for edge in cuts.tolist()])
    starts = segments(values[1:], counts[1:], least=least, most=most, bin_cost=bin_cost, edge_costs=costs)
    return np.unique(cuts[starts[1:] - 1])


def category_lines(
    values: FloatArray, counts: FloatArray, *, least: float, most: int, bin_cost: float
) -> list[list[int]]:
    """Return the codes of categories in groups of similar value; code 0, missing, is in none."""
    present = 1 + np.flatnonzero(counts[1:] > 0.0)
    if len(present) == 0:
        return []
    order = present[np.argsort(values[present], kind="stable")]
    starts = segments(
        values[order], counts[order], least=least, most=most, bin_cost=bin_cost, edge_costs=np.zeros(len(order) - 1)
    )
    return [sorted(part.tolist()) for part in np.split(order, starts[1:])]


def checked_edges(name: str, edges: Sequence[float]) -> FloatArray:
    """Return edges that the user gives for a column, or raise."""
    try:
        found = np.array(edges, dtype=np.float64)
    except (TypeError, ValueError):
        found = np.array([np.nan])
    if found.ndim != 1 or len(found) > 250 or not np.isfinite(found).all() or (np.diff(found) <= 0.0).any():
        raise ValueError(f"edges[{name!r}]={edges!r:.100} must be increasing finite numbers, at most 250")
    return found
