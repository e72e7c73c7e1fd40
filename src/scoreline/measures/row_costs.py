"""Costs that differ by row, as the weights that losses, thresholds and measures take."""

import numbers
from typing import Any

import numpy as np

from scoreline.runtime.types import AnyArray, FloatArray
from scoreline.runtime.vectors import as_vector


def row_costs(y: Any, cost_fp: Any = None, cost_fn: Any = None) -> FloatArray:
    """Return what an error on each row costs: as weights of the rows, they turn counts of errors into costs.

    A row costs something only if it is on the wrong side. So one number per row is enough: `cost_fp` of a negative and
    `cost_fn` of a positive. Pass it as `sample_weight` to `interval`, `get_scorer("savings")` or another library. The `fit` of
    MeasureClassifier takes `cost_fp` and `cost_fn` themselves.

    Parameters
    ----------
    y : array of n labels
        Positive where y > 0.
    cost_fp, cost_fn : float or array of n floats, optional
        Cost of flagging a negative and of missing a positive, finite and at least 0; 1 by default.

    Returns
    -------
    ndarray of n floats
        The cost of an error on each row.

    Examples
    --------
    >>> import numpy as np
    >>> from scoreline.measures import get_measure, row_costs
    >>> y, amount = np.array([1, 1, 0, 0]), np.array([500.0, 20.0, 90.0, 35.0])
    >>> costs = row_costs(y, cost_fp=5.0, cost_fn=amount)
    >>> costs.tolist()
    [500.0, 20.0, 5.0, 5.0]
    >>> float(get_measure("savings").value(y, np.array([1.0, -1.0, 1.0, -1.0]), costs))  # 1 - (20 + 5) / 10
    -1.5
    """
    positive = as_vector(y) > 0
    n = len(positive)
    costs = np.where(positive, _checked(cost_fn, "cost_fn", n), _checked(cost_fp, "cost_fp", n))
    if any(side.any() and not costs[side].any() for side in (positive, ~positive)):
        raise ValueError(
            "the costs of all rows of a class are 0; expected an error of either kind that costs something."
        )
    found: FloatArray = costs
    return found


def _checked(cost: Any, name: str, n: int) -> AnyArray | float:
    """Return costs as finite floats of at least 0: one for each row, or one for all."""
    if cost is None:
        return 1.0
    try:
        found = np.float64(cost) if isinstance(cost, numbers.Real) else as_vector(cost, np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be a number, or one per row ({error}).") from None
    if not isinstance(cost, numbers.Real) and found.shape != (n,):
        raise ValueError(f"{name} has shape {found.shape}, expected ({n},): one cost per row.")
    if not np.isfinite(found).all():
        raise ValueError(f"{name} has NaN or infinity; expected finite costs of at least 0.")
    if found.min() < 0.0:
        raise ValueError(f"{name} has negative costs (smallest {float(found.min()):g}); expected costs of at least 0.")
    return found
