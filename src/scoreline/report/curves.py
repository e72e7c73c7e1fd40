"""The arrays behind the figures: counts at every threshold, fewer points, a window of scores, intervals."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from scoreline.runtime.types import AnyArray, FloatArray, IntArray

POINTS = 800  # of a curve, at most: more cannot be seen, and each costs bytes in a page
WILSON_Z = 1.959964  # 95 %


class Levels(NamedTuple):
    """The different scores from the top down, and the positive and negative rows at or above each."""

    scores: FloatArray
    tp: FloatArray
    fp: FloatArray
    positives: int
    negatives: int


def check_truth(y_true: Any, pos_label: Any = None) -> AnyArray:
    """Return which rows are positive: y_true == pos_label, or y_true > 0 where pos_label is None."""
    y = np.asarray(y_true)
    if y.ndim != 1 or len(y) == 0:
        raise ValueError(f"y_true must be a vector of at least one label, got shape {y.shape}")
    if pos_label is not None:
        return np.asarray(y == pos_label)
    if y.dtype.kind not in "buif":
        raise ValueError(f"y_true holds {y.dtype} labels: name the positive class with pos_label=...")
    return np.asarray(y > 0)


def check_scores(scores: Any, rows: int, name: str = "scores") -> FloatArray:
    """Return scores as a vector of finite floats of one length with the labels."""
    z = np.asarray(scores, dtype=np.float64)
    if z.shape != (rows,):
        raise ValueError(f"{name} must be a vector of {rows} numbers like y_true, got shape {z.shape}")
    if not np.isfinite(z).all():
        row = int(np.flatnonzero(~np.isfinite(z))[0])
        raise ValueError(f"{name} must be finite, got {z[row]} in row {row}")
    return z


def check_models(scores: Any, rows: int, name: str | None) -> dict[str, FloatArray]:
    """Return name -> scores from a dict, or from one vector."""
    if isinstance(scores, Mapping):
        if not scores:
            raise ValueError("scores must hold at least one model")
        return {str(key): check_scores(value, rows, f"scores[{key!r}]") for key, value in scores.items()}
    return {name or "model": check_scores(scores, rows)}


def levels_of(truth: AnyArray, scores: FloatArray) -> Levels:
    """Return the counts at every different score; one sort."""
    order = np.argsort(-scores, kind="stable")
    z = scores[order]
    last = np.append(np.flatnonzero(z[1:] != z[:-1]), len(z) - 1)  # rows of equal score move together
    tp = np.cumsum(truth[order], dtype=np.float64)[last]
    positives = int(np.count_nonzero(truth))
    return Levels(z[last], tp, last + 1.0 - tp, positives, len(truth) - positives)


def above_zero(truth: AnyArray, scores: FloatArray) -> tuple[float, float]:
    """Return how many positive and negative rows have decision values above 0."""
    called = scores > 0.0
    tp = float(np.count_nonzero(called & truth))
    return tp, float(np.count_nonzero(called)) - tp


def thin(limit: int, *columns: AnyArray) -> IntArray:
    """Return at most limit + 2 places of a curve, evenly spaced along its length, with both ends."""
    n = len(columns[0])
    if n <= limit:
        return np.arange(n)
    length = np.zeros(n)
    for column in columns:
        span = float(np.ptp(column))
        if span > 0.0:
            length[1:] += np.cumsum(np.abs(np.diff(column)) / span)
    places = np.searchsorted(length, np.linspace(0.0, length[-1], limit))
    return np.unique(np.concatenate([[0], np.minimum(places, n - 1), [n - 1]]))


def score_window(truth: AnyArray, scores: FloatArray, points: tuple[float, ...] = ()) -> tuple[float, float]:
    """Return the scores worth showing: 98 % of each class, and the points that are not far away from them."""
    sides = [side for side in (scores[truth], scores[~truth]) if len(side)]
    ends = np.array([np.quantile(side, [0.01, 0.99]) for side in sides])
    low, high = float(ends[:, 0].min()), float(ends[:, 1].max())
    span = high - low if high > low else max(1.0, abs(low))
    reach = low - span, high + span
    for point in points:
        if reach[0] <= point <= reach[1]:
            low, high = min(low, point), max(high, point)
    pad = 0.05 * (high - low) if high > low else 0.5 * span
    return low - pad, high + pad


def wilson(successes: FloatArray, trials: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return Wilson's 95 % interval of a share; 0 to 1 without a trial."""
    n = np.maximum(np.asarray(trials, dtype=float), 1e-300)
    share, z2 = np.asarray(successes, dtype=float) / n, WILSON_Z**2
    middle = (share + z2 / (2.0 * n)) / (1.0 + z2 / n)
    half = WILSON_Z * np.sqrt(share * (1.0 - share) / n + z2 / (4.0 * n**2)) / (1.0 + z2 / n)
    none = np.asarray(trials) <= 0
    return np.where(none, 0.0, np.clip(middle - half, 0.0, 1.0)), np.where(none, 1.0, np.clip(middle + half, 0.0, 1.0))
