"""Sums over all pairs of a ramp of the score difference, without visiting the pairs.

Two groups of scores: *keys* k_i (the smaller class) and *queries* q_j (the other). With t = q_j - k_i and ramp width h,

    hard(t) = max(0, t),   smooth(t) = 0 | t^2 / (2h) | t - h/2   for t <= 0 | 0 < t < h | t >= h,   ramp(t) = clip(t/h, 0, 1).

As a function of q, sum_i s_i smooth(q - k_i) is a quadratic spline with knots (*edges*) at k_i and k_i + h. `build_spline`
makes its table from the sorted keys. `look_up` finds the place of every row and the sum of every query, and sums the queries
between the edges in bins. With many edges, the rows are first sorted into parts by their scores, and `look_up_parts` does the
same. `finish_keys` sweeps the bins once for the sum of each key, and `give_keys` writes it to the rows. Only the smaller
class is sorted. All sums are over differences between neighbouring edges, never over the scores
themselves, so large scores and narrow ramps lose no digits.

h = 0 is the hard hinge: one edge per key, ramp(t) = 1 for t > 0.
"""

import numpy as np

from scoreline.runtime.compile import kernel

ONE, TWO, THREE, FOUR = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)
PADDING = 4  # buckets are bisected down to this many edges, and as many infinities follow the last edge


@kernel
def key_of(f, key_sign, shift):
    """Return f - shift for positive keys and -f for negative ones, so that t = query - key = shift - f_P + f_N.

    If f is so large that rounding loses the shift, the result is the next number, so that pairs of equal scores still count as
    wrong.
    """
    if key_sign < 0:
        return -f
    key = f - shift
    return key if key != f or shift == 0.0 else np.nextafter(f, -np.inf)


@kernel
def query_of(f, key_sign, shift):
    """Return the query of a row outside the key class: f_N against positive keys, shift - f_P against negative ones."""
    if key_sign > 0:
        return f
    query = shift - f
    return query if query != -f or shift == 0.0 else np.nextafter(query, np.inf)


@kernel
def lift(z, sign, base, offset, lifted, lift):
    """Set lifted = z - base, minus 1 and at least `offset` for positives, and lift = the increase by that limit."""
    for i in range(len(z)):
        x = z[i] - base
        lift[i] = 0.0
        if sign[i] > 0:
            x = key_of(x, 1, 1.0)
            if x < offset:
                lift[i] = offset - x
                x = offset
        lifted[i] = x


@kernel
def collect_keys(z, sign, weight, key_sign, shift, keys, weights):
    """Copy the keys of the key class (and their weights) in row order; the arrays need room for one more."""
    count = 0
    for i in range(len(z)):
        keys[count] = key_of(z[i], key_sign, shift)
        if weight is not None:
            weights[count] = weight[i]
        count += sign[i] == key_sign  # no branch: with balanced classes half of the predictions would be wrong


@kernel
def build_spline(keys, weights, width, edges, spline):
    """Fill `edges` and, per edge, `spline` = (sum of smooth, of ramp, slope of that) of all keys (eq. roc-spline)."""
    n = len(keys)
    ended = active = 0.0  # weight of the ramps that have ended, and of those that have not
    under_way = 0
    linear = first = second = 0.0  # sums of t - h/2 over ended, of t and t^2 over active ramps, at the current edge
    start = end = 0
    x = keys[0] if n > 0 else 0.0
    inverse = 1.0 / width if width > 0.0 else 0.0
    for e in range(len(spline)):
        # Starts come before ends at the same place, because a ramp starts before it ends.
        # "not greater" keeps `end` behind `start` even for NaN.
        starts = start < n and (width == 0.0 or not keys[start] > keys[end] + width)
        here = keys[start] if starts else keys[end] + width
        gap = here - x
        second += gap * (2.0 * first + active * gap)
        first += active * gap
        linear += ended * gap
        x = here
        edges[e] = here
        if starts:
            s = 1.0 if weights is None else weights[start]
            start += 1
            if width == 0.0:
                ended += s
            else:
                active += s
                under_way += 1
        else:
            s = 1.0 if weights is None else weights[end]
            t = here - keys[end]  # the width after rounding
            end += 1
            under_way -= 1
            ended += s
            linear += s * (t - 0.5 * width)
            if under_way == 0:
                active = first = second = 0.0
            else:
                active -= s
                first -= s * t
                second -= s * t * t
        spline[e, 0] = linear + 0.5 * second * inverse
        spline[e, 1] = ended + min(active, max(0.0, first * inverse))
        spline[e, 2] = active * inverse
    edges[len(spline) :] = np.inf


@kernel
def bucket_of(x, low, inverse, n_buckets):
    """Return the bucket of x: non-decreasing in x, 0 for NaN."""
    place = (x - low) * inverse
    if not place > 0.0:
        return np.uint64(0)
    if place >= n_buckets:
        return np.uint64(n_buckets - 1)
    return np.uint64(place)


@kernel
def fill_buckets(edges, low, inverse, starts):
    """starts[b] = number of edges in buckets before b, so that bucket b holds edges starts[b] .. starts[b + 1]."""
    n_buckets = len(starts) - 1
    starts[:] = 0
    for e in range(len(edges) - PADDING):
        starts[bucket_of(edges[e], low, inverse, n_buckets) + ONE] += np.uint32(1)
    for b in range(n_buckets):
        starts[b + 1] += starts[b]


@kernel
def edges_below(x, edges, low, inverse, starts):
    """Return the number of edges smaller than x, by a search inside of one bucket."""
    b = bucket_of(x, low, inverse, len(starts) - 1)
    lo, hi = np.uint64(starts[b]), np.uint64(starts[b + ONE])
    while hi - lo > FOUR:
        middle = (lo + hi) >> ONE
        if edges[middle] < x:
            lo = middle + ONE
        else:
            hi = middle
    # Four comparisons without a branch: edges of later buckets are larger than x, so they add nothing.
    below = np.uint64(edges[lo] < x) + np.uint64(edges[lo + ONE] < x)
    return lo + below + np.uint64(edges[lo + TWO] < x) + np.uint64(edges[lo + THREE] < x)


@kernel
def look_up(
    z, sign, weight, key_sign, shift, counting, edges, spline, low, inverse, starts, scale, curved, grad, places, bins,
    partial, bounds, first, last,
):  # fmt: skip
    """Find the place of every row; queries get grad = scale * s * (sum of ramp) and are added to the sums of the chunk.

    places[i] is the number of edges below the query, or n_edges + 1 + the first edge that equals the key. partial[c] has the
    weighted sums of (smooth, ramp). `scale` has the sign of the class of the queries. `counting` says that the ramp is hard and
    unweighted: the sum of ramps is then the number of edges, and the table is not needed. If `curved` > 0 it is the width, and
    the weight of the keys on a ramp replaces the sum of ramps. bins[c, b] = (weight, weighted sum of q - edge b-1) of the
    queries of the chunk with b edges below.
    """
    keys_from = len(spline) + 1
    for c in range(first, last):
        value = ramps = 0.0
        bins[c] = 0.0
        for i in range(bounds[c], bounds[c + 1]):
            if z[i] != z[i]:  # NaN has no place, so the sums become NaN
                value = ramps = np.nan
            if sign[i] == key_sign:
                k = key_of(z[i], key_sign, shift)
                places[i] = keys_from + np.int64(edges_below(k, edges, low, inverse, starts))
                continue
            s = 1.0 if weight is None else weight[i]
            q = query_of(z[i], key_sign, shift)
            b = edges_below(q, edges, low, inverse, starts)
            places[i] = b
            ramp = 0.0
            if b > np.uint64(0):
                e = b - ONE
                d = q - edges[e]
                if counting:
                    ramp = float(b)
                else:
                    ramp = spline[e, 1] + spline[e, 2] * d
                    value += s * (spline[e, 0] + d * (spline[e, 1] + 0.5 * spline[e, 2] * d))
                ramps += s * ramp
                bins[c, b, 0] += s
                bins[c, b, 1] += s * d
                if curved > 0.0:
                    ramp = curved * max(0.0, spline[e, 2])  # rounding may have made it negative
            if grad is not None:
                grad[i] = scale * s * ramp
        partial[c, 0], partial[c, 1] = value, ramps


@kernel
def assign_parts(
    z, sign, key_sign, shift, low, inverse, n_buckets, group, part_of_group, parts, counts, missing, bounds, first, last
):
    """Set parts[i] = 2 * part of the row + 1 for keys, and count the rows of each in every chunk.

    A part is a range of edges, so that rows of higher parts are larger. 2^group buckets share an entry of `part_of_group`.
    """
    for c in range(first, last):
        counts[c] = 0
        missing[c] = False
        for i in range(bounds[c], bounds[c + 1]):
            if z[i] != z[i]:
                missing[c] = True
            is_key = sign[i] == key_sign
            x = key_of(z[i], key_sign, shift) if is_key else query_of(z[i], key_sign, shift)
            part = part_of_group[bucket_of(x, low, inverse, n_buckets) >> group]
            part = np.uint16(2 * part + np.uint16(is_key))
            parts[i] = part
            counts[c, part] += np.uint64(1)


@kernel
def spread_rows(z, sign, weight, key_sign, shift, parts, places, spread, spread_weight, bounds, first, last):
    """Copy keys and queries to their parts, in the order of the rows; places[c, part] is where the next row goes."""
    for c in range(first, last):
        for i in range(bounds[c], bounds[c + 1]):
            at = places[c, parts[i]]
            places[c, parts[i]] += ONE
            is_key = sign[i] == key_sign
            spread[at] = key_of(z[i], key_sign, shift) if is_key else query_of(z[i], key_sign, shift)
            if weight is not None:
                spread_weight[at] = weight[i]


@kernel
def look_up_parts(
    spread, weight, counting, edges, spline, low, inverse, starts, scale, curved, begins, edges_from, bins, partial,
    first, last,
):  # fmt: skip
    """Do what `look_up` does, part by part, so that edges, spline and bins of a part stay in the cache.

    `spread` holds the queries of each part, then its keys. A query is replaced by its gradient, and a key by its edge. The
    bins of part p begin at edges_from[p] + p: a bin between two parts has one place in each.
    """
    for p in range(first, last):
        value = ramps = 0.0
        own = np.uint64(p)
        bins[edges_from[p] + own : edges_from[p + 1] + own + ONE] = 0.0
        for r in range(begins[2 * p], begins[2 * p + 1]):
            s = 1.0 if weight is None else weight[r]
            q = spread[r]
            b = edges_below(q, edges, low, inverse, starts)
            ramp = 0.0
            if b > np.uint64(0):
                e = b - ONE
                d = q - edges[e]
                if counting:
                    ramp = float(b)
                else:
                    ramp = spline[e, 1] + spline[e, 2] * d
                    value += s * (spline[e, 0] + d * (spline[e, 1] + 0.5 * spline[e, 2] * d))
                ramps += s * ramp
                bins[b + own, 0] += s
                bins[b + own, 1] += s * d
                if curved > 0.0:
                    ramp = curved * max(0.0, spline[e, 2])
            spread[r] = scale * s * ramp
        for r in range(begins[2 * p + 1], begins[2 * p + 2]):
            spread[r] = float(edges_below(spread[r], edges, low, inverse, starts))
        partial[p, 0], partial[p, 1] = value, ramps


@kernel
def join_bins(bins, edges_from):
    """Move the bins of all parts together, and add those that two parts share."""
    for p in range(1, len(edges_from) - 1):
        lo, hi = edges_from[p], edges_from[p + 1]
        own = np.uint64(p)
        for k in range(2):
            bins[lo, k] += bins[lo + own, k]
        for b in range(lo + ONE, hi + ONE):
            for k in range(2):
                bins[b, k] = bins[b + own, k]


@kernel
def collect_rows(spread, parts, next_place, keys_from, grad, places, bounds, first, last):
    """Bring gradients of queries and places of keys back to the order of the rows."""
    for c in range(first, last):
        for i in range(bounds[c], bounds[c + 1]):
            at = next_place[c, parts[i]]
            next_place[c, parts[i]] += ONE
            grad[i] = spread[at]  # of keys too, because a branch would be predicted wrongly; `give_keys` replaces it
            places[i] = np.uint32(keys_from + spread[at]) if parts[i] & np.uint16(1) else np.uint32(0)


@kernel
def finish_keys(keys, weights, width, edges, slopes, bins, curved, sums):
    """Sweep the bins from the right: sums[e] = sum_j s_j ramp(q_j - k) at the first edge e that equals the key k.

    With `curved` the weight of the queries on the ramp replaces that sum. Returns the weighted sum over all pairs of hard(t).
    Edges of equal value are one step. `slopes` is the last column of the spline, which is 0 if no ramp crosses the bin to the
    right of an edge. No query to the right of such a bin can be in the window of a key to its left, so the window is reset
    there. Distant scores therefore never enter its sums and cannot cost digits.
    """
    n_edges = len(edges) - PADDING
    inverse = 1.0 / width if width > 0.0 else 0.0
    right = total = 0.0  # weight of the queries right of x, and their weighted sum of q - x
    inside = offset = 0.0  # the same for the queries in the window (x, x + h) only
    beyond = 0.0  # weight of the queries right of the window
    window = n_edges  # the rightmost bin that is still in the window; bin b lies right of edge b - 1
    hard = 0.0
    start = len(keys) - 1
    above = n_edges
    while above > 0:
        e = above - 1
        x = edges[e]
        while e > 0 and edges[e - 1] == x:
            e -= 1
        gap = edges[above] - x if above < n_edges else 0.0
        weight, distance = bins[above, 0], bins[above, 1]
        total += right * gap + distance
        right += weight
        if slopes[above - 1] == 0.0:
            inside = offset = 0.0
            beyond = right
            window = above - 1
        else:
            offset += inside * gap + distance
            inside += weight
        if start >= 0 and keys[start] == x:
            limit = x + width
            while window >= above and edges[window - 1] >= limit:
                weight, distance = bins[window, 0], bins[window, 1]
                inside -= weight
                offset -= weight * (edges[window - 1] - x) + distance
                beyond += weight
                window -= 1
            if window < above:  # the window is empty, so only rounding is left in its sums
                inside = offset = 0.0
            if curved:
                key_sum = max(0.0, inside)
            else:
                key_sum = beyond + min(inside, max(0.0, offset * inverse))  # rounding must not leave [0, weight]
            sums[e] = key_sum
            while start >= 0 and keys[start] == x:
                s = 1.0 if weights is None else weights[start]
                hard += s * total
                start -= 1
        above = e
    return hard


@kernel
def give_keys(sign, weight, key_sign, places, sums, scale, grad, bounds, first, last):
    """grad = scale * s * (sum of ramp) for every row of the key class; `scale` is signed by that class."""
    keys_from = len(sums) + 1
    for i in range(bounds[first], bounds[last]):
        if sign[i] == key_sign:
            s = 1.0 if weight is None else weight[i]
            grad[i] = scale * s * sums[places[i] - keys_from]
