"""Products and look-ups on a device by functions of the Array API standard, for any library and without compilation."""

from scoreline.gpu.backend import Backend, DeviceArray
from scoreline.gpu.kernels import PairRows, Ramp, Ranked, Segments, host_floats
from scoreline.runtime.types import FloatArray

BLOCK = 1 << 23  # entries of X that are converted to float64 at once


def row_dots(backend: Backend, X: DeviceArray, w: DeviceArray) -> DeviceArray:
    """Return Xw in float64, a block of rows at a time.

    It sums each row separately: a matrix product could add the last rows of a block in another order, and equal rows must have
    equal scores.
    """
    xp = backend.xp
    return xp.concat([xp.sum(xp.astype(X[a:b, :], xp.float64) * w[None, :], axis=1) for a, b in _blocks(X)])


def column_sums(backend: Backend, X: DeviceArray, u: DeviceArray) -> DeviceArray:
    """Return X'u in float64."""
    xp = backend.xp
    if X.dtype == xp.float64:
        return xp.matmul(X.T, u)
    total = backend.full((X.shape[1],), 0.0)
    for a, b in _blocks(X):
        total = total + xp.matmul(xp.astype(X[a:b, :], xp.float64).T, u[a:b])
    return total


def column_largest(backend: Backend, X: DeviceArray) -> DeviceArray:
    """Return the largest magnitude of each column, which is not finite if an entry is not."""
    xp = backend.xp
    return xp.max(xp.stack([xp.max(xp.abs(X[a:b, :]), axis=0) for a, b in _blocks(X)]), axis=0)


def _blocks(X: DeviceArray) -> list[tuple[int, int]]:
    step = max(1, BLOCK // max(1, X.shape[1]))
    return [(a, min(a + step, X.shape[0])) for a in range(0, X.shape[0], step)]


def segment_dots(segments: Segments, vector: DeviceArray) -> DeviceArray:
    """Return the sum of values times vector[indices] over each segment, by tables of segments of similar length."""
    backend, xp = segments.backend, segments.backend.xp
    if segments.values.shape[0] == 0:
        return backend.full((len(segments),), 0.0)
    groups, places = segments.tables
    parts = []
    for rows, length in groups:
        starts, stops = backend.take(segments.starts, rows), backend.take(segments.stops, rows)
        entries = starts[:, None] + backend.arange(length)[None, :]
        there = entries < stops[:, None]
        flat = xp.reshape(xp.where(there, entries, xp.zeros_like(entries)), (-1,))
        products = xp.astype(backend.take(segments.values, flat), xp.float64)
        if segments.indices is not None:
            products = products * backend.take(vector, backend.take(segments.indices, flat))
        products = xp.reshape(products, there.shape)
        parts.append(xp.sum(xp.where(there, products, xp.zeros_like(products)), axis=1))
    return backend.take(xp.concat(parts), places)


def running_sums(backend: Backend, x: DeviceArray) -> DeviceArray:
    """Return the sums of the first 1, 2, ... entries."""
    return backend.xp.cumulative_sum(x)


def ranked(
    backend: Backend, scores: DeviceArray, weight: DeviceArray | None, rows: DeviceArray, centre: DeviceArray
) -> Ranked:
    """Return the sorted scores of a class with cumulative sums; `weight` is that of all rows, `rows` are those of the class."""
    xp = backend.xp
    if weight is None:
        ordered = xp.sort(scores)
        return Ranked(ordered, None, running_sums(backend, ordered - centre))
    order = xp.argsort(scores)
    ordered, s = backend.take(scores, order), backend.take(backend.take(weight, rows), order)
    return Ranked(ordered, running_sums(backend, s), running_sums(backend, s * (ordered - centre)))


def look_up(
    backend: Backend, rows: PairRows, positives: Ranked, negatives: Ranked | None, ramp: Ramp
) -> tuple[DeviceArray | None, FloatArray]:
    """Look up every row among the sorted scores of the other class; return a result for every row, and three sums.

    With keys p = z_i - margin (positives, sorted), queries q = z_j and t = q - p:

        F(x) = sum over p < x of s (x - p)                            hard sum of a query: F(q)
        B(q) = sum of s ramp(q - p) = (F(q) - F(q - width)) / width   derivative of its smooth sum
        A(p) = the same for a key, over queries

    The smooth sum over all pairs is 1/2 (sum_j s q B(q) - sum_i s p A(p)) + 1/2 sum_j s F(q - width). It follows from
    smooth = t ramp / 2 for a pair on its ramp, and smooth = t - width / 2 beyond the ramp. Scores are replaced by their
    distances from `ramp.centre`, which keeps the sums small.
    """
    xp = backend.xp
    q = backend.take(rows.z, rows.negative_rows)
    weight = None if rows.weight is None else backend.take(rows.weight, rows.negative_rows)
    upper, upper_sum = _below(backend, positives, q, "left")
    distance = q - ramp.centre
    hard = distance * upper - upper_sum
    if ramp.width > 0.0:
        lower, lower_sum = _below(backend, positives, q - ramp.width, "left")
        on = upper - lower
        part = (distance * on - (upper_sum - lower_sum)) / ramp.width
        result = lower + xp.minimum(xp.maximum(part, xp.zeros_like(part)), on)
        beyond = (distance - ramp.width) * lower - lower_sum
    else:
        on, result, beyond = xp.zeros_like(upper), upper, None
    if weight is not None:
        hard, beyond, result, on = (None if x is None else x * weight for x in (hard, beyond, result, on))
    sums = [xp.sum(hard), xp.sum(result), xp.sum(hard)]
    if beyond is not None:
        sums[0] = 0.5 * (xp.vecdot(distance, result) + xp.sum(beyond))
    scaled = ramp.scales[1] * (on if ramp.curved else result)
    if not ramp.both or negatives is None:
        return None, host_floats(backend, xp.stack(sums))

    p = class_keys(backend, rows.z, rows.positive_rows, ramp.margin)
    weight = None if rows.weight is None else backend.take(rows.weight, rows.positive_rows)
    lower, lower_sum = _below(backend, negatives, p, "right")
    distance = p - ramp.centre
    every = float(len(negatives)) if negatives.weights is None else negatives.weights[-1]
    if ramp.width > 0.0:
        upper, upper_sum = _below(backend, negatives, p + ramp.width, "right")
        on = upper - lower
        part = ((upper_sum - lower_sum) - distance * on) / ramp.width
        result = (every - upper) + xp.minimum(xp.maximum(part, xp.zeros_like(part)), on)
    else:
        on, result = xp.zeros_like(lower), every - lower
    if weight is not None:
        result, on = result * weight, on * weight
    if ramp.width > 0.0:
        sums[0] = sums[0] - 0.5 * xp.vecdot(distance, result)
    if rows.places is None:
        rows.places = xp.argsort(xp.concat([rows.positive_rows, rows.negative_rows]))
    given = ramp.scales[0] * (on if ramp.curved else result)
    return backend.take(xp.concat([given, scaled]), rows.places), host_floats(backend, xp.stack(sums))


def _below(backend: Backend, ranked: Ranked, x: DeviceArray, side: str) -> tuple[DeviceArray, DeviceArray]:
    """Return the weight and the sum of weight * distance of the sorted scores below each x, or up to x for side "right"."""
    xp = backend.xp
    place = xp.searchsorted(ranked.scores, x, side=side)
    last = xp.maximum(place - 1, xp.zeros_like(place))
    none = place == 0
    sums = backend.take(ranked.sums, last)
    if ranked.weights is None:
        weights = xp.astype(place, xp.float64)
    else:
        weights = backend.take(ranked.weights, last)
        weights = xp.where(none, xp.zeros_like(weights), weights)
    return weights, xp.where(none, xp.zeros_like(sums), sums)


def class_keys(backend: Backend, z: DeviceArray, rows: DeviceArray, margin: float) -> DeviceArray:
    """Return the scores of some rows minus the margin, or the next lower number if rounding loses the margin.

    Otherwise pairs of equal scores would count as correctly ranked.
    """
    xp, scores = backend.xp, backend.take(z, rows)
    if margin == 0.0:
        return scores
    keys = scores - margin
    return xp.where(keys == scores, xp.nextafter(scores, xp.full_like(scores, float("-inf"))), keys)
