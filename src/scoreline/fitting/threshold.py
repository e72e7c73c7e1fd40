"""Thresholds on scores of rows: the best one, with the margin of an operating point, and what to warn of."""

from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_random_state

from scoreline.measures import Measure, OperatingPoint, best_threshold
from scoreline.runtime.types import AnyArray, FloatArray
from scoreline.runtime.vectors import RemoteVector

HELD_OUT_SHARE = 0.2


class ScoredRows(NamedTuple):
    """Labels, scores and weights of the rows that a threshold is chosen on."""

    sign: AnyArray
    scores: Any
    weight: FloatArray | None


def threshold_with_margin(measure: Measure, rows: ScoredRows) -> float:
    """Return the best threshold on scores of rows that the model has not seen, for operating points with their margin."""
    value = measure.value_with_margin if isinstance(measure, OperatingPoint) else measure
    return best_threshold(rows.sign, rows.scores, value, rows.weight, rises=True).threshold


def has_guarantee(measure: Measure) -> bool:
    """Tell whether a threshold of the measure is to be proved on held-out rows."""
    return isinstance(measure, OperatingPoint) and measure.guarantee is not None


def target_missed(measure: Measure, rows: ScoredRows | None) -> str | None:
    """Return a warning if the measure is an operating point that no threshold of these scores reaches."""
    if rows is None or not isinstance(measure, OperatingPoint) or has_guarantee(measure):
        return None
    message = measure.unreached(rows.sign, rows.scores, rows.weight)
    if message is None:
        return None
    message = (
        f"measure {measure.name!r}: {message}. predict uses that threshold; lower the limit, change alpha or add "
        "features."
    )
    if measure.confidence is None:
        return message
    return f"{message} With guarantee in place of confidence, such a model flags nothing."


def few_flagged(measure: Measure, rows: ScoredRows | None, threshold: float) -> str | None:
    """Return a warning if the threshold of an operating point flags almost nothing."""
    if rows is None or not isinstance(measure, OperatingPoint) or has_guarantee(measure):
        return None
    message = measure.scarce(rows.sign, rows.scores, rows.weight, threshold)
    if message is None:
        return None
    return f"measure {measure.name!r}: {message}. Lower the limit, change alpha or add features."


def held_out_rows(
    sign: AnyArray, weight: FloatArray | None, random_state: Any, share: float = HELD_OUT_SHARE,
    option: str = "threshold='holdout'",
) -> AnyArray:  # fmt: skip
    """Return a mask of a stratified share of the rows of positive weight, at least one of each class on either side."""
    rng = check_random_state(random_state)
    held = np.zeros(len(sign), dtype=bool)
    for side in (-1, 1):
        rows = np.flatnonzero((sign == side) & (True if weight is None else weight > 0.0))
        if len(rows) < 2:
            raise ValueError(
                f"{option} needs two rows of each class, got {len(rows)}; leave it out for data as small as this"
            )
        chosen = rng.permutation(len(rows))[: max(1, int(share * len(rows)))]
        held[np.asarray(rows[chosen])] = True
    return sign.like(held) if isinstance(sign, RemoteVector) else held
