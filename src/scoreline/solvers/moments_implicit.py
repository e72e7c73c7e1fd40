"""The direction of `solver="moments"` where the covariance is too large to write down: conjugate gradients on products."""

import math

import numpy as np
from scipy.sparse.linalg import LinearOperator, cg

from scoreline.operators.linear_map import LinearMap
from scoreline.runtime.types import AnyArray, FloatArray
from scoreline.solvers.common.shrinkage import effective_rows, shrinkage
from scoreline.solvers.normal_model import Projected

PROBES = 8  # random vectors that estimate the sum of squares of the correlations: two passes each
ACCURACY = 1e-6  # of the linear system, relative


class ImplicitCovariance:
    """S+ + S-, multiplied without being made: S v = X'(Xv), centred between the two products so that no digits are lost.

    u = (Xv - mean'v) s / (n - 1) class by class, then X'u - sum_c mean_c sum(u_c). Two passes a product; X stays sparse.
    """

    def __init__(self, operator: LinearMap, sign: AnyArray, copies: FloatArray | None):
        self.operator = operator
        s = 1.0 if copies is None else copies
        self.sides = [np.where(sign == side, s, 0.0) for side in (1, -1)]
        self.n = (float(self.sides[0].sum()), float(self.sides[1].sum()))
        self.means = [operator.rmatvec(s) / n for s, n in zip(self.sides, self.n, strict=True)]
        self.factors = [1.0 / (n - 1.0) if n > 1.0 else 0.0 for n in self.n]

    def variances(self) -> list[FloatArray]:
        """Return the diagonals of both covariances; two passes."""
        if "statistics" in self.operator.capabilities:  # merged around the means
            parts = [self.operator.column_statistics(s).variance for s in self.sides]
            return [n * factor * part for n, factor, part in zip(self.n, self.factors, parts, strict=True)]
        found = []
        for s, n, mean, factor in zip(self.sides, self.n, self.means, self.factors, strict=True):
            squares = self.operator.square_rmatvec(s)
            rest = squares - n * mean**2
            found.append(factor * np.where(rest > 1e-12 * squares, rest, 0.0))
        return found

    def product(self, v: FloatArray) -> FloatArray:
        """Return (S+ + S-) v (eq. implicit-covariance)."""
        z = self.operator.matvec(v)
        own = [
            factor * s * (z - mean @ v) for s, mean, factor in zip(self.sides, self.means, self.factors, strict=True)
        ]
        back = sum(mean * u.sum() for mean, u in zip(self.means, own, strict=True))
        return np.asarray(self.operator.rmatvec(own[0] + own[1]) - back)

    def projected(self, w: FloatArray) -> Projected:
        """Return mean and deviation of the scores of both classes; one pass."""
        z = self.operator.matvec(w)
        means = [float(s @ z) / n for s, n in zip(self.sides, self.n, strict=True)]
        spreads = [
            math.sqrt(max(0.0, factor * float(s @ (z - mean) ** 2)))
            for s, mean, factor in zip(self.sides, means, self.factors, strict=True)
        ]
        return Projected(*means, *spreads)


def implicit_direction(
    operator: LinearMap, sign: AnyArray, copies: FloatArray | None, ridge: float | str, max_iter: int
) -> tuple[FloatArray, float, Projected, tuple[float, float], int, bool]:
    """Return w ~ (S+ + S- + ridge)^-1 (mu+ - mu-), the ridge, moments of its scores, weights of the classes, iterations.

    And whether the linear system was solved to ACCURACY.
    """
    S = ImplicitCovariance(operator, sign, copies)
    if operator.capabilities & {"statistics", "row_blocks"}:
        variances = S.variances()
    elif ridge == "auto":
        raise ValueError(
            f"solver='moments' with ridge='auto' needs the variances of columns, and {type(operator).__name__} has products "
            "only; give solver_params={'ridge': number}"
        )
    else:  # they serve the preconditioner alone
        variances = [np.ones(operator.shape[1])] * 2
    diagonal = variances[0] + variances[1]
    live = diagonal > 0.0
    safe = np.where(live, diagonal, 1.0)
    if ridge == "auto":
        scale, rng, square = 1.0 / np.sqrt(safe), np.random.default_rng(0), 0.0
        for _ in range(PROBES):
            probe = np.where(live, rng.choice([-1.0, 1.0], size=len(safe)), 0.0)
            square += float(np.sum((scale * S.product(scale * probe)) ** 2)) / PROBES
        shares = [float((v / safe).mean()) for v in variances]
        columns = max(1, int(live.sum()))  # constant ones do not count
        added = shrinkage(columns, square, float(columns), effective_rows(shares, S.n))
        extra = added * safe
    else:
        added = float(ridge)
        extra = np.full(len(safe), added)
    extra = np.where(live, extra, np.maximum(extra, 1e-8))
    iterations = 0

    def count(_: FloatArray) -> None:
        nonlocal iterations
        iterations += 1

    p = len(safe)
    system = LinearOperator((p, p), matvec=lambda v: S.product(np.ravel(v)) + extra * np.ravel(v), dtype=np.float64)
    jacobi = LinearOperator((p, p), matvec=lambda v: np.ravel(v) / (safe + extra), dtype=np.float64)
    w, info = cg(system, S.means[0] - S.means[1], rtol=ACCURACY, maxiter=max_iter, M=jacobi, callback=count)
    return w, added, S.projected(w), S.n, iterations, info == 0
