"""Labels, scores and weights as measures take them: looked at, and weights brought to where their sums stay in range."""

from typing import Any, NamedTuple

import numpy as np

from scoreline.runtime.types import FloatArray
from scoreline.runtime.vectors import RemoteVector, as_vector, tamed

LEAST_SHARE = 1e-290  # of a class in the largest weight: its counts keep their digits beside those of the other
MOST_WEIGHT = 1e300  # of all rows together, where the weights must stay as they are


class Rows(NamedTuple):
    """Which rows are positive, scores, weights (None for 1) times 2^exponent. Vectors that lie elsewhere stay as they are."""

    positive: Any
    scores: Any
    weight: Any
    exponent: int


def checked_rows(y: Any, scores: Any, sample_weight: Any, scale_free: bool = True) -> Rows:
    """Return the rows, or raise: vectors of one length, no NaN, weights finite and not negative.

    Weights far from 1 are multiplied by a power of two, which changes no digit, if the measure is one of ratios
    (`scale_free`); otherwise their sum must lie between LEAST_SHARE and MOST_WEIGHT. Vectors on workers or a device were
    looked at when they were brought there.
    """
    if any(isinstance(v, RemoteVector) for v in (y, scores, sample_weight)):
        weight = None if sample_weight is None else as_vector(sample_weight, np.float64)
        return Rows(as_vector(y) > 0, as_vector(scores), weight, 0)
    labels, z = as_vector(y), as_vector(scores)
    weight = None if sample_weight is None else as_vector(sample_weight, np.float64)
    if not (z.ndim == 1 and z.shape == labels.shape and (weight is None or weight.shape == z.shape)):
        shapes = (labels.shape, z.shape, None if weight is None else weight.shape)
        raise ValueError(f"y, scores and sample_weight must be vectors of one length, got shapes {shapes}")
    for name, values in (("y", labels), ("scores", z)):
        if values.dtype.kind == "f" and np.isnan(values).any():
            row = int(np.flatnonzero(np.isnan(values))[0])
            raise ValueError(f"{name} must be finite, got nan in row {row}; drop such rows or fill them in")
    positive = labels > 0
    if weight is None:
        return Rows(positive, z, None, 0)
    return Rows(positive, z, *_checked_weights(positive, weight, scale_free))


def check_total(weight: FloatArray) -> FloatArray:
    """Return weights whose sum is in the range that counts may have, or raise."""
    with np.errstate(over="ignore"):
        total = float(weight.sum())
    if total > MOST_WEIGHT or 0.0 < total < LEAST_SHARE:
        raise ValueError(
            f"sample_weight sums to {total:.3g}, expected between {LEAST_SHARE:g} and {MOST_WEIGHT:g}: counts would "
            "leave the range of floats. Divide all weights by one number."
        )
    return weight


def _checked_weights(positive: Any, weight: Any, scale_free: bool) -> tuple[Any, int]:
    if not (np.isfinite(weight).all() and (weight >= 0.0).all()):
        row = int(np.flatnonzero(~(np.isfinite(weight) & (weight >= 0.0)))[0])
        raise ValueError(
            f"sample_weight must be finite and non-negative, got {weight[row]} in row {row}; drop such rows or give them 0"
        )
    if not scale_free:
        return check_total(weight), 0
    tops = [float(weight[side].max(initial=0.0)) for side in (positive, ~positive)]
    if 0.0 < min(tops) < LEAST_SHARE * max(tops):
        raise ValueError(
            f"the largest sample_weight of the positive class is {tops[0]:.3g}, of the negative {tops[1]:.3g}: floats "
            f"cannot hold counts of both, expected a ratio of at most {1.0 / LEAST_SHARE:.0e}; use weights that differ less"
        )
    return tamed(weight)
