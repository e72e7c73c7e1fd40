"""How much to add to the diagonal of a covariance that was estimated from few rows."""

LEAST_RIDGE = 1e-10  # relative to the variances: what keeps a singular covariance solvable


def shrinkage(p: int, square: float, trace: float, n: float) -> float:
    """Return rho / (1 - rho), rho the oracle approximating shrinkage of a covariance with that trace and sum of squares.

    rho = ((1 - 2/p) tr(S^2) + tr(S)^2) / ((n + 1 - 2/p) (tr(S^2) - tr(S)^2 / p)), at most 1 (eq. oracle-shrinkage).
    Chen et al. (2010), (23).
    """
    rest = square - trace**2 / p
    if rest <= 1e-12 * square or p == 1:  # uncorrelated columns: nothing to shrink
        return LEAST_RIDGE
    rho = ((1.0 - 2.0 / p) * square + trace**2) / ((n + 1.0 - 2.0 / p) * rest)
    return max(LEAST_RIDGE, rho / (1.0 - rho)) if rho < 0.999 else 999.0


def effective_rows(shares: list[float], n: tuple[float, float]) -> float:
    """Return how many rows one covariance would need to be as certain as the sum of the two: 1 / sum share^2 / n."""
    total = sum(shares)
    if total <= 0.0:
        return 1.0
    return 1.0 / sum((share / total) ** 2 / max(1.0, rows - 1.0) for share, rows in zip(shares, n, strict=True))
