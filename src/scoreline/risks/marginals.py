"""Marginals of labellings under a loss of the counts, with which F1 is smoothed by entropy."""

from typing import Any, NamedTuple

import numpy as np

from scoreline import kernels
from scoreline.measures import Measure, get_measure
from scoreline.measures.base import CountsBasedMeasure
from scoreline.measures.ranking import AtKMeasure
from scoreline.runtime.checks import check_number
from scoreline.runtime.types import AnyArray, FloatArray


class Marginals(NamedTuple):
    """Marginals of the labellings: log Z, the probability that a row is flipped, and its expected label."""

    log_z: float
    flipped: FloatArray
    label: FloatArray


def label_marginals(
    scores: Any, y: Any, measure: str | Measure = "f1", measure_params: dict[str, Any] | None = None, c: float = 1.0
) -> Marginals:
    """Return the marginals of p(y') ~ exp(c loss(y', y) + sum_i scores_i y'_i) over all labellings y' in {-1, 1}^n.

    loss = 1 - measure of the labelling y', taken as the prediction for y (eq. label-marginals). For `prbep` only
    labellings with as many positives as y count, whatever c is. O(n^2) time and memory, in log space: finite for scores
    of any size.

    Parameters
    ----------
    scores : array of n numbers
        a_i in the formula.
    y : array of n labels
        +1 and -1, or 1 and 0, or booleans.
    measure : str or Measure
        A measure of the confusion counts, or "prbep".
    measure_params : dict, optional
        Its parameters.
    c : float
        Weight of the loss, at least 0.

    Returns
    -------
    Marginals
        log_z, flipped (P(y'_i != y_i)) and label (E[y'_i]).
    """
    a, positive = np.asarray(scores, dtype=np.float64), np.asarray(y) > 0
    if a.ndim != 1 or a.shape != positive.shape or not np.isfinite(a).all():
        raise ValueError(
            f"scores and y must be vectors of one length, scores finite, got shapes {a.shape} and {positive.shape}"
        )
    check_number("c", c, least=0)
    loss = loss_table(get_measure(measure, measure_params), int(positive.sum()), int((~positive).sum()))
    exponents = np.where(np.isneginf(loss), -np.inf, c * np.where(np.isneginf(loss), 0.0, loss))
    sign, chances = np.where(positive, 1.0, -1.0), np.empty(len(a))
    with np.errstate(over="ignore"):
        gains, flipped = -2.0 * sign * a, np.empty(len(a))
        if not float(np.abs(gains).sum()) < np.inf:
            raise ValueError(
                f"sums of the scores leave the range of floats (largest {np.abs(a).max():.3g}); divide them"
            )
    log_z = kernels.marginals.flip_chances(exponents, gains[positive], gains[~positive], chances, True)
    flipped[positive], flipped[~positive] = np.split(chances, [int(positive.sum())])
    return Marginals(float(log_z) + float(sign @ a), flipped, sign * (1.0 - 2.0 * flipped))


def loss_table(measure: Measure, positive: int, negative: int) -> FloatArray:
    """Return loss[b, k] for b flipped positives and k flipped negatives; -inf if the measure excludes such labellings."""
    b, k = np.meshgrid(np.arange(positive + 1.0), np.arange(negative + 1.0), indexing="ij")
    if isinstance(measure, AtKMeasure) and measure.name == "prbep":
        return np.where(b == k, b / max(positive, 1), -np.inf)
    if not isinstance(measure, CountsBasedMeasure):
        raise ValueError(f"measure {measure.name!r} is not one of confusion counts; use one of those, or 'prbep'")
    values: AnyArray = np.asarray(measure.from_counts(positive - b, k, b, negative - k), dtype=np.float64)
    return 1.0 - values
