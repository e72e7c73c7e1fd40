"""Sums over all (positive, negative) pairs in three steps: sort the keys, look up all rows, set the gradient of the keys.

`HostSpace` runs them for rows in memory. With rows in blocks, every block runs them with the keys of all blocks
(`distributed/pairs.py`).
"""

from typing import Any, NamedTuple

import numpy as np

from scoreline import kernels
from scoreline.runtime import parallel
from scoreline.runtime.types import AnyArray, BoundsArray, FloatArray

MAX_BUCKETS = 1 << 22
BINS_IN_CACHE = 1 << 16  # bins of 16 bytes that fit into a typical second-level cache
EDGES_PER_PART = 1 << 12  # edges, spline and bins of a part take 48 bytes each
MAX_PARTS = 512  # twice as many streams of memory are written, and read, at once
GROUP_BITS = 14  # 2^14 groups of buckets, whose parts stay in the first-level cache


class Keys(NamedTuple):
    """Keys of the smaller class in increasing order, with their weights (None for 1)."""

    scores: FloatArray
    weight: FloatArray | None


class PairLookup(NamedTuple):
    """Weighted sums over all pairs of (smooth, ramp, hard), sums over the queries for each key, and the places of the rows.

    sums[places[i] - len(sums) - 1] belongs to the key of row i; `places` are indices of `edges`.
    """

    smooth: float
    ramps: float
    hard: float
    sums: FloatArray
    edges: FloatArray
    places: AnyArray
    bounds: BoundsArray


def sorted_keys(
    z: FloatArray, sign: AnyArray, weight: FloatArray | None, key_sign: int, n_keys: int, shift: float
) -> Keys:
    """Return the sorted keys of the rows of one class, in O(n + k log k)."""
    keys = np.empty(n_keys + 1)
    weights = None if weight is None else np.empty(n_keys + 1)
    kernels.ramps.collect_keys(z, sign, weight, key_sign, shift, keys, weights)
    keys = keys[:n_keys]
    if weights is None:
        keys.sort()
        return Keys(keys, None)
    order = np.argsort(keys, kind="stable")
    return Keys(keys[order], weights[:n_keys][order])


def look_up(
    z: FloatArray,
    sign: AnyArray,
    weight: FloatArray | None,
    keys: Keys,
    key_sign: int,
    shift: float,
    width: float,
    scale: float,
    out: FloatArray | None,
    curved: bool,
) -> PairLookup:
    """Look up every row among the keys (`kernels/ramps.py`), and set out = scale * s * sum of ramps for queries.

    With `curved` the weight on a ramp replaces that sum. Extra memory for k keys: about 14 vectors of length k with a ramp, 8
    without, and half a vector of the rows; with many keys two vectors of the rows.
    """
    ramps = kernels.ramps
    n, n_keys = len(z), len(keys.scores)
    n_edges = 2 * n_keys if width > 0.0 else n_keys
    edges, spline = np.empty(n_edges + ramps.PADDING), np.empty((n_edges, 3))
    ramps.build_spline(keys.scores, keys.weight, width, edges, spline)
    # There is about one edge per bucket, so most searches end immediately.
    starts = np.empty(min(MAX_BUCKETS, max(16, n_edges)) + 1, dtype=np.uint32)
    low, span = edges[0], edges[n_edges - 1] - edges[0]
    inverse = (len(starts) - 1) / span if 0.0 < span < np.inf else 0.0
    ramps.fill_buckets(edges, low, inverse, starts)

    places = np.empty(n, dtype=np.uint32)
    table = (width == 0.0 and keys.weight is None, edges, spline, low, inverse, starts, scale, width if curved else 0.0)
    # If there are few bins, each chunk has a copy. All copies take at most half a score vector, or 1 MB.
    copies = max(n // 4, BINS_IN_CACHE) // (n_edges + 1)
    bounds = parallel.even_bounds(n, 16)
    # A copy or two for many rows would leave cores idle.
    if n_edges <= BINS_IN_CACHE and copies >= min(4, len(bounds) - 1):
        bounds = parallel.even_bounds(n, 16, max_chunks=min(16, copies))
        private, partial = np.empty((len(bounds) - 1, n_edges + 1, 2)), np.empty((len(bounds) - 1, 2))
        parallel.run_chunks(
            ramps.look_up, len(partial), z, sign, weight, key_sign, shift, *table, out, places, private, partial, bounds
        )
        bins = private[0] if len(private) == 1 else private.sum(axis=0)
    else:
        partial, bins = look_up_by_parts(z, sign, weight, key_sign, shift, table, out, places, bounds)
    smooth, query_ramps = partial.sum(axis=0)
    sums = spline[:, 0]  # the spline is no longer needed, and its memory is used for the sums of the keys
    hard = ramps.finish_keys(keys.scores, keys.weight, width, edges, spline[:, 2], bins, curved, sums)
    if np.isnan(query_ramps):
        smooth = hard = np.nan
    return PairLookup(
        float(hard if width == 0.0 else smooth), float(query_ramps), float(hard), sums, edges, places, bounds
    )


def look_up_by_parts(
    z: FloatArray,
    sign: AnyArray,
    weight: FloatArray | None,
    key_sign: int,
    shift: float,
    table: tuple[Any, ...],
    out: FloatArray | None,
    places: AnyArray,
    bounds: BoundsArray,
) -> tuple[FloatArray, FloatArray]:
    """Look up rows among many edges: bring the rows of a range of edges together first. Return partial sums and bins.

    Random access to edges, spline and bins takes most of the time if they are larger than the cache. Three passes over the
    rows in order, with a stream of memory per part, are faster. Parts and the order of their rows depend on the data only.
    """
    ramps, n, n_chunks = kernels.ramps, len(z), len(bounds) - 1
    _, _, spline, low, inverse, starts, _, _ = table
    n_edges, n_buckets = len(spline), len(starts) - 1
    n_parts = min(MAX_PARTS, n_edges // EDGES_PER_PART + 1)
    group = np.uint64(max(0, (n_buckets - 1).bit_length() - GROUP_BITS))
    firsts = starts[:-1][:: 1 << int(group)].astype(np.uint64)  # edges before each group of buckets
    part_of_group = (firsts * np.uint64(n_parts) // np.uint64(n_edges + 1)).astype(np.uint16)
    # Groups of buckets stay whole, so that a part has the edges from its first group to the next part's.
    group_from = np.searchsorted(part_of_group, np.arange(n_parts))
    edges_from = np.append(firsts, np.uint64(n_edges))[np.append(group_from, len(firsts))]

    parts, missing = np.empty(n, dtype=np.uint16), np.empty(n_chunks, dtype=bool)
    counts = np.empty((n_chunks, 2 * n_parts), dtype=np.uint64)
    arguments = (
        z,
        sign,
        key_sign,
        shift,
        low,
        inverse,
        n_buckets,
        group,
        part_of_group,
        parts,
        counts,
        missing,
        bounds,
    )
    parallel.run_chunks(ramps.assign_parts, n_chunks, *arguments)
    ends = np.cumsum(counts.T).reshape(counts.T.shape).T  # part by part, and in a part chunk by chunk
    next_place = np.ascontiguousarray(ends - counts)
    begins = np.append(next_place[0], np.uint64(n))
    spread, spread_weight = np.empty(n), None if weight is None else np.empty(n)
    rows = (z, sign, weight, key_sign, shift, parts, next_place.copy())
    parallel.run_chunks(ramps.spread_rows, n_chunks, *rows, spread, spread_weight, bounds)

    bins, partial = np.empty((n_edges + n_parts, 2)), np.empty((n_parts, 2))
    parallel.run_chunks(ramps.look_up_parts, n_parts, spread, spread_weight, *table, begins, edges_from, bins, partial)
    ramps.join_bins(bins, edges_from)
    if missing.any():  # NaN has no place
        partial[0] = np.nan
    if out is not None:
        found = (spread, parts, next_place, float(n_edges + 1))
        parallel.run_chunks(ramps.collect_rows, n_chunks, *found, out, places, bounds)
    return partial, bins[: n_edges + 1]


def give(
    sign: AnyArray, weight: FloatArray | None, key_sign: int, lookup: PairLookup, scale: float, out: FloatArray
) -> None:
    """Set out = scale * s * sum of ramps for the rows of the key class."""
    n_chunks = len(lookup.bounds) - 1
    parallel.run_chunks(
        kernels.ramps.give_keys, n_chunks, sign, weight, key_sign, lookup.places, lookup.sums, scale, out, lookup.bounds
    )
