"""The exact best threshold for scores on a device, which sorts them; the host receives counts at few thresholds."""

from collections.abc import Callable

import numpy as np

from scoreline.gpu import kernels as device_kernels
from scoreline.gpu.backend import Backend, DeviceArray
from scoreline.gpu.vector import DeviceVector
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
from scoreline.measures.ties import Ties, clearly_above, first_best
from scoreline.runtime.types import AnyArray, FloatArray

EDGES = 4096  # thresholds per round


def totals_of(sign: DeviceVector, z: DeviceVector, weight: DeviceVector | None) -> Totals:
    """Return the totals of all rows of positive weight."""
    return totals_of_rows(*_on_one_device(sign, z, weight)).checked()


def best_level(
    sign: DeviceVector,
    z: DeviceVector,
    weight: DeviceVector | None,
    totals: Totals,
    value_of: Callable[..., FloatArray],
) -> tuple[Level, float]:
    """Return the highest level with the largest value_of(tp, fp, fn, tn), which increases with tp and decreases with fp.

    Between two thresholds it is at most value_of(tp and fn of the lower one, fp and tn of the higher one). Ranges of thresholds
    that cannot reach the best value so far are dropped until few remain.
    """
    sign, z, weight = counted(*_on_one_device(sign, z, weight))
    backend, xp = z.backend, z.backend.xp
    order = xp.argsort(-z.array)
    scores = backend.take(z.array, order)
    s = backend.full((len(z),), 1.0) if weight is None else weight.array
    s, above = backend.take(s, order), backend.take(sign.array > 0, order)
    levels = _ends_of_ties(scores, ties_of(z, weight, totals), backend)
    nothing = totals.above_all()
    sums = _sums_at(levels, above, s, backend, below=weight is not None)

    def counts(places: AnyArray) -> FloatArray:
        """Return TP, FP, FN, TN of thresholds below the levels with these indices; -1 means above all scores."""
        rows = backend.array(np.maximum(places, 0))
        found = backend.host(xp.stack([backend.take(v, rows) for v in sums]))
        if weight is None:  # counts are integers, so subtracting them from the total is exact
            found = np.vstack([found, nothing[2:, None] - found])
        return np.where(places < 0, nothing[:, None], found)

    level, value = Level(np.inf, totals.high, nothing), float(value_of(*nothing[:, None])[0])
    for a, b in _ranges_within_reach(levels.shape[0], counts, value_of, value):
        for start in range(int(a) + 1, int(b) + 1, 1 << 20):
            places = np.arange(start, min(start + (1 << 20), int(b) + 1))
            at = counts(places)
            values = value_of(*at)
            k = first_best(values)
            if clearly_above(values[k], value):
                value, row = float(values[k]), int(levels[int(places[k])])
                below = float(scores[row + 1]) if row + 1 < len(z) else -np.inf
                level = Level(float(scores[row]), below, at[:, k])
    return level, value


def _ranges_within_reach(
    n_levels: int, counts: Callable[[AnyArray], FloatArray], value_of: Callable[..., FloatArray], best: float
) -> AnyArray:
    """Return ranges (after, up to) of levels that can contain the best threshold, split until few levels remain."""
    ranges, before = np.array([[-1, n_levels - 1]]), n_levels
    while True:
        sizes = ranges[:, 1] - ranges[:, 0]
        if sizes.sum() <= MAX_GATHERED_ROWS or (sizes <= 1).all():
            return ranges
        share = max(2, EDGES // len(ranges))
        edges = [np.unique(np.linspace(a, b, min(share, b - a) + 1).astype(np.int64)) for a, b in ranges]
        flat = np.concatenate(edges)
        at = counts(flat)
        best = max(best, float(np.max(value_of(*at))))
        # The last edge of a range does not begin a piece.
        inner = np.flatnonzero(np.concatenate([np.append(np.full(len(e) - 1, True), False) for e in edges]))
        high, low = at[:, inner], at[:, inner + 1]
        bounds = value_of(low[0], high[1], low[2], high[3])
        candidates = inner[bounds >= best * (1.0 - 1e-12 * np.sign(best))]
        ranges = np.stack([flat[candidates], flat[candidates + 1]], axis=1)
        left = int((ranges[:, 1] - ranges[:, 0]).sum())
        if left in (0, before):
            return ranges
        before = left


def _sums_at(
    levels: DeviceArray, above: DeviceArray, s: DeviceArray, backend: Backend, below: bool
) -> list[DeviceArray]:
    """Return the weights of positives and negatives down to each level, and with `below` also those under it.

    The latter are summed separately: subtracting from the total would lose light rows next to heavy ones.
    """
    xp, running_sums = backend.xp, device_kernels.on(backend).running_sums
    none = xp.zeros_like(s)
    sides = xp.where(above, s, none), xp.where(above, none, s)
    found = [backend.take(running_sums(backend, side), levels) for side in sides]
    for side in sides if below else ():
        rest = xp.flip(running_sums(backend, xp.flip(side)))
        found.append(backend.take(xp.concat([rest[1:], none[:1]]), levels))
    return found


def _ends_of_ties(scores: DeviceArray, ties: Ties, backend: Backend) -> DeviceArray:
    """Return the index of the lowest score of each group of tied scores; `scores` are in decreasing order."""
    xp = backend.xp
    last = xp.concat([~ties.tied(scores[:-1], scores[1:]), backend.full((1,), True, np.bool_)])
    return xp.nonzero(last)[0]


def below_ties(z: DeviceVector, weight: DeviceVector | None, level: float, totals: Totals) -> tuple[float, float]:
    """Return the lowest score that is tied with a level, and the next lower one (minus infinity if there is none)."""
    backend, xp = z.backend, z.backend.xp
    there = z.array if weight is None else z[weight > 0.0].array
    scores = -xp.sort(-there)
    ends = _ends_of_ties(scores, ties_of(z, weight, totals), backend)
    lowest = backend.host(backend.take(scores, ends))
    k = int(np.flatnonzero(lowest <= level)[0])
    return float(lowest[k]), float(scores[int(ends[k]) + 1]) if k + 1 < len(lowest) else -np.inf


def condensed(
    sign: DeviceVector, z: DeviceVector, weight: DeviceVector | None
) -> tuple[AnyArray, FloatArray, FloatArray | None]:
    """Return labels, scores and weights on the host: all rows of a small class, or else runs of neighbouring scores."""
    signs, scores, weights, is_exact = condensed_rows(*_on_one_device(sign, z, weight), _runs)
    return signs, scores, None if is_exact else weights


def _runs(z: DeviceVector, weight: DeviceVector | None) -> tuple[FloatArray, FloatArray | None]:
    """Return the means and weights of POINTS runs of neighbouring scores, or all scores if there are at most as many."""
    if len(z) <= POINTS:
        return np.asarray(z), None if weight is None else np.asarray(weight)
    backend, xp = z.backend, z.backend.xp
    order = xp.argsort(z.array)
    scores = backend.take(z.array, order)
    s = backend.full((len(z),), 1.0) if weight is None else backend.take(weight.array, order)
    middle = float(scores[len(z) // 2])
    ends = backend.array(np.linspace(0, len(z), POINTS + 1).astype(np.int64)[1:] - 1)
    running_sums = device_kernels.on(backend).running_sums
    sums = [backend.host(backend.take(running_sums(backend, v), ends)) for v in (s, s * (scores - middle))]
    weights, distances = (np.diff(v, prepend=0.0) for v in sums)
    return middle + distances / weights, weights


def _on_one_device(
    sign: DeviceVector, z: DeviceVector, weight: DeviceVector | None
) -> tuple[DeviceVector, DeviceVector, DeviceVector | None]:
    return z.like(sign), z, None if weight is None else z.like(weight)
