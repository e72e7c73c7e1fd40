"""Sums over all (positive, negative) pairs in three steps: sort the keys, look up all rows, set the gradient of the keys.

`HostSpace` runs them for rows in memory. With rows in blocks, every block runs them with the keys of all blocks
(`distributed/pairs.py`).
"""

from typing import NamedTuple

import numpy as np

from scoreline import kernels
from scoreline.runtime import parallel
from scoreline.runtime.types import AnyArray, BoundsArray, FloatArray

MAX_BUCKETS = 1 << 22
BINS_IN_CACHE = 1 << 17  # bins of 16 bytes that fit into a typical second-level cache


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
    without, and half a vector of the rows.
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
    # If there are few bins, each chunk has a copy, of at most half a score vector or 2 MB. Many bins are filled by ranges.
    copies = max(n // 4, BINS_IN_CACHE) // (n_edges + 1)
    bounds = parallel.even_bounds(n, 16)
    few = copies >= min(4, len(bounds) - 1)  # a copy or two for many rows would leave cores idle
    if few:
        bounds = parallel.even_bounds(n, 16, max_chunks=min(16, copies))
    private = np.empty((len(bounds) - 1, n_edges + 1, 2)) if few else None
    partial = np.empty((len(bounds) - 1, 2))
    parallel.run_chunks(
        ramps.look_up, len(partial), z, sign, weight, key_sign, shift, width == 0.0 and keys.weight is None, edges, spline,
        low, inverse, starts, scale, width if curved else 0.0, out, places, private, partial, bounds,
    )  # fmt: skip
    del starts  # frees its memory for the bins
    smooth, query_ramps = partial.sum(axis=0)
    sums = spline[:, 0]  # the spline is no longer needed, and its memory is used for the sums of the keys
    if private is not None:
        bins = private[0] if len(private) == 1 else private.sum(axis=0)
    else:
        bins = np.empty((n_edges + 1, 2))
        n_ranges = min(n_edges + 1, max(4, min(64, (n_edges + 1) // BINS_IN_CACHE)))
        ranges = np.linspace(0, n_edges + 1, n_ranges + 1).astype(np.uint64)
        arguments = (z, weight, key_sign, shift, edges, places, bins, ranges)
        parallel.run_chunks(ramps.fill_bins, n_ranges, *arguments)
    hard = ramps.finish_keys(keys.scores, keys.weight, width, edges, spline[:, 2], bins, curved, sums)
    if np.isnan(query_ramps):
        smooth = hard = np.nan
    return PairLookup(
        float(hard if width == 0.0 else smooth), float(query_ramps), float(hard), sums, edges, places, bounds
    )


def give(
    sign: AnyArray, weight: FloatArray | None, key_sign: int, lookup: PairLookup, scale: float, out: FloatArray
) -> None:
    """Set out = scale * s * sum of ramps for the rows of the key class."""
    n_chunks = len(lookup.bounds) - 1
    parallel.run_chunks(
        kernels.ramps.give_keys, n_chunks, sign, weight, key_sign, lookup.places, lookup.sums, scale, out, lookup.bounds
    )
