"""The Hessian of J in w, factored: Newton's directions, the starting matrix of L-BFGS, leave-one-out."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from scoreline.objective import Objective
from scoreline.risks.base import Hessian
from scoreline.runtime import parallel
from scoreline.runtime.types import FloatArray, Scores
from scoreline.solvers.common.curvature import CurvatureMemory

MAX_FEATURES = 1000  # beyond that the factor (p^3 / 3 flops, p^2 memory) costs more than it saves
LEAST_INTERVAL = 12.0  # passes
NEGLIGIBLE = 0.01  # share of the sum of all curvatures that may be left out of the Hessian


class Preconditioner:
    """A factored Hessian as the starting matrix of L-BFGS, used for `patience` times the passes that it cost to make.

    And for at least 12 passes: fewer iterations would hardly use it.
    """

    def __init__(self, patience: float = 2.0) -> None:
        self.patience = patience
        self.factor: FloatArray | None = None  # lower triangle
        self.due = 0.0  # passes of the operator at which it is to be made anew

    def renew(self, objective: Objective, curvature: CurvatureMemory, hessian: Callable[[], Hessian | None]) -> None:
        """Make the Hessian anew if it is due, and hand it to the curvature memory, whose pairs it replaces."""
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
        """Return the passes after which it is made anew."""
        return max(LEAST_INTERVAL, self.patience * objective.operator.gram_passes())

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

    One pass with the work of a Gram matrix (two with a constant column), and one for each part of rank one.
    """
    if hessian is None:
        return None
    operator = objective.operator
    diagonal = hessian.diagonal
    if not hessian.rank_one:  # parts that are subtracted must be parts of what is there
        # Rows that are far on their right side are many and say next to nothing about the Hessian: a Gram matrix skips them.
        # They are compared by the curvature of one copy, so that weights equal repeated rows.
        diagonal = objective.space.significant(diagonal, objective.risk.labels, NEGLIGIBLE)
    matrix = operator.gram(diagonal)
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        for u, coefficient in hessian.rank_one:
            v = operator.rmatvec(u)
            matrix += coefficient * np.outer(v, v)
        matrix[np.diag_indices_from(matrix)] += objective.alpha
    if not np.isfinite(matrix).all():
        return None
    try:
        with parallel.one_blas_thread():  # its threads take a thousand times as long where another core is busy
            factor, lower = cho_factor(matrix, lower=True, overwrite_a=True, check_finite=False)
    except np.linalg.LinAlgError:  # entries so large that alpha drowns
        return None
    return factor, lower


def hessian_diagonal(objective: Objective, curvature: Scores) -> FloatArray:
    """Return the diagonal of X'DX + alpha I; one pass."""
    return np.asarray(objective.operator.square_rmatvec(curvature) + objective.alpha)
