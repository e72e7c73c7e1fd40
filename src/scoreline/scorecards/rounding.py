"""Integer points: the whole numbers with the smallest loss, by coordinate descent on its quadratic model."""

import numpy as np

from scoreline.runtime.types import AnyArray, FloatArray, IntArray

MOST_SWEEPS = 50
MOST_PAIR_MOVES = 100
MOST_PAIRED = 400  # integers: beyond, moves of two are not worth their time
CANDIDATE_MOVES = 20  # moves of two, the best first, until one keeps the order


def rounded_points(
    target: FloatArray, slope: FloatArray, curvature: FloatArray, chains: list[tuple[AnyArray, int]]
) -> IntArray:
    """Return integers t with a small value of slope'd + 1/2 d'Cd, d = t - target (eq. card-rounding).

    The start is each target rounded on its own. Sweeps then set one integer at a time to the best one, given all others, and
    last moves of two integers by one each are tried, until none lowers the value.

    Parameters
    ----------
    target : array of m numbers
        The points of the optimum, which are no integers.
    slope, curvature : arrays of shape (m,) and (m, m)
        The loss around the optimum, per point.
    chains : list of (indices, sign)
        Lists of points that may not fall (sign 1), or not rise (sign -1), from one to the next.
    """
    t = np.rint(target)
    below, above = _neighbours(len(t), chains)
    gradient = slope + curvature @ (t - target)
    diagonal = np.diag(curvature)
    movable = np.flatnonzero(diagonal > 1e-12 * max(float(diagonal.max(initial=0.0)), 1e-300))
    for _ in range(MOST_SWEEPS):
        changed = False
        for b in movable.tolist():
            best = np.rint(t[b] - gradient[b] / diagonal[b])
            best = min(max(best, t[below[b]] if below[b] >= 0 else -np.inf), t[above[b]] if above[b] >= 0 else np.inf)
            change = best - t[b]
            if change and change * gradient[b] + 0.5 * change**2 * diagonal[b] < 0.0:
                t[b] = best
                gradient += change * curvature[:, b]
                changed = True
        if not changed:
            break
    if 1 < len(movable) <= MOST_PAIRED:
        _move_pairs(t, gradient, curvature, movable, below, above)
    return t.astype(np.int64)


def _move_pairs(
    t: FloatArray, gradient: FloatArray, curvature: FloatArray, movable: AnyArray, below: IntArray, above: IntArray
) -> None:
    """Move two integers by one each, the best two first, as long as that lowers the value."""
    own = curvature[np.ix_(movable, movable)]
    half = 0.5 * np.diag(own)
    enough = 1e-12 * float(np.abs(half).max(initial=0.0))
    for _ in range(MOST_PAIR_MOVES):
        least, move = -enough, None
        for first in (1.0, -1.0):
            one = first * gradient[movable] + half
            for second in (1.0, -1.0):
                other = second * gradient[movable] + half
                gain = one[:, None] + other[None, :] + first * second * own
                np.fill_diagonal(gain, np.inf)
                few = np.argpartition(gain, min(CANDIDATE_MOVES, gain.size - 1), axis=None)[:CANDIDATE_MOVES]
                few = few[np.argsort(gain.ravel()[few])]
                for i, j in zip(*(side.tolist() for side in np.unravel_index(few, gain.shape)), strict=True):
                    a, b = int(movable[i]), int(movable[j])
                    if gain[i, j] >= least:
                        break
                    moved = t.copy()
                    moved[a] += first
                    moved[b] += second
                    if all(_in_order(moved, each, below, above) for each in (a, b)):
                        least, move = float(gain[i, j]), (a, first, b, second)
                        break
        if move is None:
            return
        a, first, b, second = move
        t[a] += first
        t[b] += second
        gradient += first * curvature[:, a] + second * curvature[:, b]


def _in_order(t: FloatArray, b: int, below: IntArray, above: IntArray) -> bool:
    return bool((below[b] < 0 or t[below[b]] <= t[b]) and (above[b] < 0 or t[b] <= t[above[b]]))


def _neighbours(m: int, chains: list[tuple[AnyArray, int]]) -> tuple[IntArray, IntArray]:
    """Return for each point the one that it may not be below, and the one that it may not be above; -1 for none."""
    below, above = np.full(m, -1), np.full(m, -1)
    for indices, sign in chains:
        ordered = np.asarray(indices)[::sign]
        below[ordered[1:]] = ordered[:-1]
        above[ordered[:-1]] = ordered[1:]
    return below, above
