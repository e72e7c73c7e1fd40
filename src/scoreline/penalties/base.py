"""The contract of a penalty: the terms of omega(w), which alpha multiplies."""

from abc import ABC, abstractmethod
from typing import Any, ClassVar, NamedTuple

import numpy as np

from scoreline.runtime.types import AnyArray, FloatArray


class Terms(NamedTuple):
    """The terms of omega(w) = sum_j (quadratic_j / 2 w_j^2 + absolute_j |w_j|) + sum_g norms_g |w_g| (eq. penalty-terms).

    `groups` is the number of the group of each feature, from 0 to len(norms) - 1; None where there are none.
    """

    quadratic: FloatArray
    absolute: FloatArray
    groups: AnyArray | None = None
    norms: FloatArray | None = None


class Penalty(ABC):
    """What `MeasureClassifier(penalty=...)` takes: parameters, and the terms they make for p features.

    A new penalty writes `terms`. `BoundedPenalty` makes of it what solvers and certificates use: the value, the proximal
    step, and the minimum of a line plus the penalty, all within bounds.

    Attributes
    ----------
    name : str
        The name used in `MeasureClassifier(penalty=...)`.
    formula : str
        What alpha multiplies, for tables.
    """

    name: ClassVar[str]
    formula: ClassVar[str]

    @abstractmethod
    def terms(self, p: int, names: Any = None) -> Terms:
        """Return the terms for p features; `names` are those of the columns, or None."""

    def __repr__(self) -> str:
        own = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"{type(self).__name__}({own})"


def feature_weights(weights: Any, p: int) -> FloatArray:
    """Return the weight of each feature: 1 for all by default."""
    if weights is None:
        return np.ones(p)
    try:
        array = np.array(weights, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"weights={weights!r:.100} must be {p} numbers, one for each feature") from None
    if array.shape != (p,):
        raise ValueError(f"weights have shape {array.shape}, expected ({p},): one number for each feature")
    wrong = np.flatnonzero(~(np.isfinite(array) & (array >= 0.0)))
    if len(wrong):
        raise ValueError(f"weights must be finite and at least 0, got {array[wrong[0]]!r} for feature {wrong[0]}")
    return array
