"""The held-out rows of a promise: drawn before anything is learnt, and asked for the threshold when the model is there."""

from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from scoreline.fitting.checks import check_sample_weight
from scoreline.fitting.parameters import Parameters
from scoreline.fitting.rows import GivenRows
from scoreline.fitting.threshold import ScoredRows, has_guarantee
from scoreline.measures import Measure, OperatingPoint, promised_threshold
from scoreline.runtime.messages import warn_user
from scoreline.runtime.types import AnyArray
from scoreline.runtime.vectors import RemoteVector

PROMISE_SHARE = 0.5  # of the rows, see benchmarks/promises.py
FAR = 1e300  # an intercept that no score changes the sign of


def no_guarantee(measure: Measure, where: str) -> None:
    """Raise if the measure has a guarantee, which this way of training cannot give."""
    if has_guarantee(measure):
        raise ValueError(
            f"{where} cannot give a guarantee: it has no held-out rows of its own. Train without it, and call "
            "tune_threshold with the guarantee on rows that the model has not seen."
        )


def rows_of_promise(parameters: Parameters, given: GivenRows) -> AnyArray | None:
    """Return a mask of a random share of the rows if the measure has a guarantee.

    Labels have no part in the draw: rows that are stratified by class are no random sample.
    """
    if not has_guarantee(parameters.measure):
        return None
    if parameters.threshold != "auto":
        raise ValueError(f"threshold={parameters.threshold!r} does not go with a guarantee; leave threshold='auto'.")
    if isinstance(given.sign, RemoteVector):
        raise TypeError(
            "a guarantee needs rows in the memory of this process. Train without it, and call tune_threshold with the "
            "guarantee on rows that the model has not seen."
        )
    order = check_random_state(parameters.random_state).permutation(len(given.sign))
    held = np.zeros(len(given.sign), dtype=bool)
    held[order[: int(PROMISE_SHARE * len(order))]] = True
    weight = check_sample_weight(given.sample_weight, len(held))
    rest = ~held if weight is None else ~held & (weight > 0.0)
    if not ((given.sign[rest] > 0).any() and (given.sign[rest] < 0).any()):
        raise ValueError(
            f"a guarantee holds out {held.sum()} of {len(held)} rows, and the others are of one class; give more rows."
        )
    return held


def promised(
    measure: OperatingPoint, rows: ScoredRows, trained_intercept: float, design: ScoredRows | None = None
) -> dict[str, Any]:
    """Return the attributes `intercept_` and `promise_`; warn where nothing can be promised."""
    host = (np.asarray(rows.sign), np.asarray(rows.scores), rows.weight)
    threshold, promise = promised_threshold(measure, *host, design=design)
    if not promise.holds:
        warn_user(f"measure {measure.name!r}: {promise}")
    intercept = trained_intercept - threshold if np.isfinite(threshold) else -np.sign(threshold) * FAR
    return {"intercept_": np.array([intercept]), "promise_": promise}
