"""Newton's method for separable smooth risks, its Hessian used for twice as long as it cost to make."""

import numpy as np

from scoreline.objective import Objective
from scoreline.risks import Risk
from scoreline.runtime.types import FloatArray
from scoreline.solvers.common.hessian import has_factor, hessian_diagonal
from scoreline.solvers.lbfgs import LbfgsSolver, LbfgsState

DIAGONAL_INTERVAL_PASSES = 10  # passes between two diagonals


class NewtonSolver(LbfgsSolver):
    """Newton steps by Cholesky's method where features are few, improved by L-BFGS pairs; certified as `lbfgs`.

    The Hessian X'DX + alpha I, D = diag(d2R/dz2) (eq. newton-hessian), is made at the start and again whenever the
    iterations since then have cost twice as many passes as it did; in between, pairs of L-BFGS correct it. With more
    than 1000 features its diagonal stands in for it, which evens out columns of different size; an operator that cannot
    be read in blocks gets plain L-BFGS.

    Parameters
    ----------
    **options
        memory, tol, max_iter, max_time, abs_tol, callbacks: see LbfgsSolver and Solver.
    """

    name = "newton"
    automatic = "few_features"
    reason = "a Hessian of few features costs little and saves most of the passes"
    least_iterations = 3  # with a strong penalty the start, a constant, is within a few per cent of the minimum of J

    @classmethod
    def serves(cls, risk: Risk | type[Risk]) -> bool:
        return bool(risk.curved)

    def start(self, objective: Objective, w0: FloatArray) -> LbfgsState:
        """Return the state at w0; in place of w0 = 0, at the best model without features."""
        if not w0.any():
            w0 = objective.operator.shifted(w0, objective.risk.best_constant())
        return super().start(objective, w0)

    def adjust(self, objective: Objective, state: LbfgsState) -> None:
        """Make the Hessian, or its diagonal, again if it is due."""
        operator, risk = objective.operator, objective.risk
        if "row_blocks" not in operator.capabilities:
            return
        if has_factor(objective):
            self._preconditioner.renew(objective, self._curvature, lambda: risk.hessian(self._point.z))
        elif operator.n_passes >= self._preconditioner.due:
            diagonal = hessian_diagonal(objective, risk.curvature(self._point.z))
            self._preconditioner.due = operator.n_passes + DIAGONAL_INTERVAL_PASSES
            if np.isfinite(diagonal).all():
                self._curvature.initial = lambda v: v / diagonal
