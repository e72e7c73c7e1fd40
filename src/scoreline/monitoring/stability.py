"""The population stability index of two samples in the same bins."""

from typing import Any

import numpy as np

HALF_ROW = 0.5  # added to every bin of both samples, so that an empty bin does not make the index infinite


def population_stability(expected: Any, actual: Any) -> float:
    """Return the population stability index sum (a - e) ln(a / e) of two samples, from their counts per bin (eq. stability).

    Below 0.1 the samples are usually called stable, above 0.25 they differ much. Two samples of m rows each differ by about
    2 (bins - 1) / m by chance alone.

    Parameters
    ----------
    expected, actual : array of k counts
        Rows of each sample in each bin; half a row is added to every bin.

    Returns
    -------
    float
        The index, 0 for equal shares.

    Examples
    --------
    >>> from scoreline.monitoring import population_stability
    >>> population_stability([50, 50], [500, 500])
    0.0
    >>> round(population_stability([500, 500], [800, 200]), 2)
    0.41
    """
    counts = [np.asarray(each, dtype=np.float64) for each in (expected, actual)]
    if counts[0].ndim != 1 or counts[0].shape != counts[1].shape or len(counts[0]) == 0:
        raise ValueError(
            f"expected and actual must have a count for each bin, got shapes {counts[0].shape} and {counts[1].shape}"
        )
    if not all((np.isfinite(each) & (each >= 0.0)).all() for each in counts):
        raise ValueError("counts must be finite and at least 0")
    e, a = ((each + HALF_ROW) / (each.sum() + HALF_ROW * len(each)) for each in counts)
    if np.allclose(e, a, rtol=0.0, atol=1e-15):
        return 0.0
    return float(((a - e) * np.log(a / e)).sum())
