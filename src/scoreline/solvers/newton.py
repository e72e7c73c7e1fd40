"""Newton's method for separable smooth risks, its Hessian used for as long as it cost to make."""

from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from scoreline._typing import FloatArray, Scores
from scoreline.objective import Objective
from scoreline.solvers.base import State
from scoreline.solvers.lbfgs import LbfgsSolver, LbfgsState

MAX_FEATURES = 1000  # beyond that the factor (p^3 / 3 flops, p^2 memory) costs more than it saves
NEGLIGIBLE = 0.01  # share of the sum of all curvatures that may be left out of the Hessian
DIAGONAL_PASSES = 10  # passes between two diagonals


class NewtonSolver(LbfgsSolver):
    """Newton steps by Cholesky's method where features are few, improved by L-BFGS pairs; certified as `lbfgs`.

    The Hessian X'DX + alpha I, D = diag(d2R/dz2), is made at the start and again whenever the iterations since then have
    cost as many passes as it did; in between, pairs of L-BFGS correct it. With more than 1000 features its diagonal stands
    in for it, which evens out columns of different size; an operator that cannot be read in blocks gets plain L-BFGS.

    Parameters
    ----------
    **options
        memory, tol, max_iter, max_time, abs_tol, callbacks: see LbfgsSolver and Solver.
    """

    name = "newton"
    automatic = "never"
    least_iterations = 3  # with a strong penalty the start, a constant, is within a few per cent of the minimum of J

    @classmethod
    def serves(cls, risk: Any) -> bool:
        """Tell whether the risk has a diagonal Hessian in the scores."""
        return bool(risk.curved)

    def start(self, objective: Objective, w0: FloatArray) -> LbfgsState:
        """Return the state at w0; in place of w0 = 0, at the best model without features."""
        if not w0.any():
            w0 = objective.operator.shifted(w0, objective.risk.best_constant())
        return super().start(objective, w0)

    def resume(self, objective: Objective, state: State) -> None:
        """Compute scores and gradient at state.w; the Hessian follows in the first step."""
        super().resume(objective, state)
        self._hessian_due = 0.0

    def adjust(self, objective: Objective, state: LbfgsState) -> None:
        """Make the Hessian, or its diagonal, anew if it is due."""
        operator = objective.operator
        if operator.n_passes < self._hessian_due or "row_blocks" not in operator.capabilities:
            return
        if has_factor(objective):
            factor = hessian_factor(objective, self._point.z)
            self._hessian_due = operator.n_passes + operator.gram_passes()
            if factor is not None:
                self._curvature.clear()
                self._curvature.initial = lambda v: np.asarray(cho_solve(factor, v, check_finite=False))
        else:
            diagonal = hessian_diagonal(objective, objective.risk.curvature(self._point.z))
            self._hessian_due = operator.n_passes + DIAGONAL_PASSES
            if np.isfinite(diagonal).all():
                self._curvature.initial = lambda v: v / diagonal


def has_factor(objective: Objective) -> bool:
    """Tell whether the Hessian can be made and factored at a sensible cost."""
    return objective.n_features <= MAX_FEATURES and "row_blocks" in objective.operator.capabilities


def hessian_factor(objective: Objective, z: Scores) -> tuple[FloatArray, bool] | None:
    """Return Cholesky's factor of X'DX + alpha I at the scores z, as `scipy.linalg.cho_factor` does; None if it has none."""
    hessian = objective.operator.gram(_significant(objective.risk.curvature(z), objective.risk.labels.weight))
    hessian[np.diag_indices_from(hessian)] += objective.alpha
    if not np.isfinite(hessian).all():
        return None
    try:
        factor, lower = cho_factor(hessian, lower=True, overwrite_a=True, check_finite=False)
    except np.linalg.LinAlgError:  # entries so large that alpha drowns
        return None
    return factor, lower


def _significant(curvature: FloatArray, weight: FloatArray | None) -> FloatArray:
    """Return the curvatures with the smallest of them, 1 % of their sum together, set to 0: a Gram matrix skips those rows.

    Rows that are far on their right side are many and say next to nothing about the Hessian. Rows are compared by the
    curvature of one copy, so that weights equal repeated rows.
    """
    single = curvature if weight is None else curvature / np.where(weight > 0.0, weight, 1.0)
    order = np.argsort(single)
    last = int(np.searchsorted(np.cumsum(curvature[order]), NEGLIGIBLE * curvature.sum()))
    return np.where(single < single[order[min(last, len(order) - 1)]], 0.0, curvature)


def hessian_diagonal(objective: Objective, curvature: Scores) -> FloatArray:
    """Return the diagonal of X'DX + alpha I; one pass."""
    return np.asarray(objective.operator.square_rmatvec(curvature) + objective.alpha)
