"""The curvature of J: the pairs of L-BFGS, and the factored Hessian in w that they improve."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from scoreline import kernels
from scoreline.objective import Objective
from scoreline.risks.base import Hessian
from scoreline.runtime import parallel
from scoreline.runtime.types import FloatArray, Scores

MAX_FEATURES = 1000  # beyond that the factor (p^3 / 3 flops, p^2 memory) costs more than it saves
LEAST_INTERVAL_PASSES = 12.0  # passes
NEGLIGIBLE_CURVATURE_SHARE = 0.01  # share of the sum of all curvatures that may be left out of the Hessian


class CurvatureMemory:
    """The last `size` pairs (s, y) and the product H g with the inverse Hessian they imply.

    Memory: 2 size vectors of length p. The arrays are plain, so that a solver's state can be saved. `initial` may hold a
    function v -> H0 v, an inverse Hessian that the pairs improve on; without it H0 is a multiple of the identity.
    """

    def __init__(self, p: int, size: int):
        self.steps = np.zeros((size, p))
        self.changes = np.zeros((size, p))
        self.inverse_products = np.zeros(size)
        self.newest = -1
        self.count = 0
        self.scale = 1.0
        self.initial: Callable[[FloatArray], FloatArray] | None = None
        self._weights = np.zeros(size)

    def add(self, s: FloatArray, y: FloatArray) -> bool:
        """Remember a pair, unless its curvature <s, y> is not safely positive; tells whether it was kept."""
        dot = kernels.vectors.dot
        product, length, change = dot(s, y), dot(s, s), dot(y, y)
        if not (product > 1e-10 * length and change > 0.0):
            return False
        self.newest = (self.newest + 1) % len(self.steps)
        self.steps[self.newest], self.changes[self.newest] = s, y
        self.inverse_products[self.newest] = 1.0 / product
        self.count = min(self.count + 1, len(self.steps))
        self.scale = product / change
        return True

    def record(self) -> dict[str, FloatArray]:
        """Return the pairs, oldest first, as arrays."""
        order = [(self.newest - back) % len(self.steps) for back in range(self.count)][::-1]
        return {"steps": self.steps[order].copy(), "changes": self.changes[order].copy()}

    def restore(self, record: Mapping[str, FloatArray]) -> None:
        """Take the pairs of a record, the newest ones if it has more than fit."""
        self.clear()
        for s, y in zip(record.get("steps", ()), record.get("changes", ()), strict=True):
            self.add(np.asarray(s, dtype=np.float64), np.asarray(y, dtype=np.float64))

    @property
    def empty(self) -> bool:
        """Whether nothing is known of the curvature."""
        return self.count == 0 and self.initial is None

    def clear(self) -> None:
        """Forget all pairs, and `initial`."""
        self.newest, self.count, self.scale, self.initial = -1, 0, 1.0, None

    def direction(self, gradient: FloatArray) -> FloatArray:
        """Return -H g; O(size p), and what `initial` costs."""
        pairs = (self.steps, self.changes, self.inverse_products, self.newest, self.count)
        q = -gradient
        kernels.vectors.newest_to_oldest(*pairs, q, self._weights)
        q = self.scale * q if self.initial is None else self.initial(q)
        kernels.vectors.oldest_to_newest(*pairs, q, self._weights)
        return q


class Preconditioner:
    """A factored Hessian as the starting matrix of L-BFGS.

    It is used for `patience` times the passes that its computation took, and for at least 12 passes.
    """

    def __init__(self, patience: float = 2.0) -> None:
        self.patience = patience
        self.factor: FloatArray | None = None  # lower triangle
        self.due = 0.0  # passes of the operator at which it is to be recomputed

    def renew(self, objective: Objective, curvature: CurvatureMemory, hessian: Callable[[], Hessian | None]) -> None:
        """Make the Hessian again if it is due, and hand it to the curvature memory, whose pairs it replaces."""
        operator = objective.operator
        if operator.n_passes < self.due:
            return
        factor = factored(objective, hessian())
        self.due = operator.n_passes + self.interval(objective)
        if factor is not None:
            self.factor = factor[0]
            curvature.clear()
            curvature.initial = self.solve

    def interval(self, objective: Objective) -> float:
        """Return the passes after which it is recomputed."""
        return max(LEAST_INTERVAL_PASSES, self.patience * objective.operator.gram_passes())

    def solve(self, v: FloatArray) -> FloatArray:
        """Return H^-1 v."""
        with parallel.one_blas_thread():
            return np.asarray(cho_solve((self.factor, True), v, check_finite=False))

    def record(self, objective: Objective) -> dict[str, Any]:
        """Return what is needed to go on with it."""
        left = max(0.0, self.due - objective.operator.n_passes)
        return {} if self.factor is None else {"factor": self.factor, "left": left}

    def restore(self, record: Mapping[str, Any], objective: Objective, curvature: CurvatureMemory) -> None:
        """Go on with a recorded one; `curvature` has its pairs already."""
        if record:
            self.factor = np.array(record["factor"], dtype=np.float64)
            self.due = objective.operator.n_passes + float(record["left"])
            curvature.initial = self.solve


def has_factor(objective: Objective) -> bool:
    """Tell whether the Hessian can be made and factored at a sensible cost."""
    return objective.n_features <= MAX_FEATURES and "row_blocks" in objective.operator.capabilities


def factored(objective: Objective, hessian: Hessian | None) -> tuple[FloatArray, bool] | None:
    """Return Cholesky's factor of X' H X + alpha I (eq. factored-hessian), as `cho_factor` does; None if there is none.

    With weights per feature these take the place of I.

    One pass with the work of a Gram matrix (two with a constant column), and one for each part of rank one.
    """
    matrix = hessian_matrix(objective, hessian)
    if matrix is None:
        return None
    try:
        with parallel.one_blas_thread():  # its threads take a thousand times as long where another core is busy
            factor, lower = cho_factor(matrix, lower=True, overwrite_a=True, check_finite=False)
    except np.linalg.LinAlgError:  # entries so large that alpha drowns
        return None
    return factor, lower


def hessian_matrix(objective: Objective, hessian: Hessian | None, penalised: bool = True) -> FloatArray | None:
    """Return X' H X, with the curvatures of the penalty unless told otherwise; None if it is not known or not finite."""
    if hessian is None:
        return None
    operator = objective.operator
    diagonal = hessian.diagonal
    if not hessian.rank_one:  # parts that are subtracted must be parts of what is there
        # Rows that are far on their right side are many and say next to nothing about the Hessian: a Gram matrix skips them.
        # They are compared by the curvature of one copy, so that weights equal repeated rows.
        diagonal = objective.space.significant(diagonal, objective.risk.labels, NEGLIGIBLE_CURVATURE_SHARE)
    matrix = operator.gram(diagonal)
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        for u, coefficient in hessian.rank_one:
            v = operator.rmatvec(u)
            matrix += coefficient * np.outer(v, v)
        if penalised:
            matrix[np.diag_indices_from(matrix)] += objective.penalty_curvature
    return matrix if np.isfinite(matrix).all() else None


def hessian_diagonal(objective: Objective, curvature: Scores) -> FloatArray:
    """Return the diagonal of X'DX plus the curvatures of the penalty; one pass."""
    return np.asarray(objective.operator.square_rmatvec(curvature) + objective.penalty_curvature)
