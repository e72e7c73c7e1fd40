"""Several penalties on the same rows: every run starts at the end of the last one, with its lower bound."""

from collections.abc import Iterable, Iterator

import numpy as np

from scoreline.objective import Objective
from scoreline.runtime.types import FloatArray
from scoreline.solvers.common.base import Result, Solver
from scoreline.solvers.common.loop import Control


def alpha_max(objective: Objective) -> float:
    """Return the smallest alpha for which no feature is in the model, in closed form (eq. alpha-max).

    An intercept without penalty is at its best value there. Infinite for penalties that leave coefficients 0 at no alpha, like
    "l2". One pass.

    Parameters
    ----------
    objective : Objective
        Rows, risk and penalty; its own alpha is not used. Its risk must be smooth at w = 0, as all but PRBEP are.
    """
    w = np.zeros(objective.n_features)
    point = objective.centred(objective.at(w, objective.scores_at_start(w)))
    slope = objective.slope(point)
    constant = objective.free_intercept
    if constant is not None:
        slope[constant] = 0.0
    return objective.bounded_penalty.largest_alpha(slope)


def solve_path(
    objective: Objective,
    alphas: Iterable[float],
    solver: Solver,
    start: FloatArray | None = None,
    control: Control | None = None,
) -> Iterator[tuple[float, Result]]:
    """Minimise J for each alpha in turn; yield (alpha, result). From strong to weak is the fastest order.

    A plane R(Xw) >= c + <v, w> does not know alpha: the best mixture of planes of one run is a lower bound for the next from
    the start. Scores are handed on, too, so that a run which has nothing to improve costs two passes: one for its gradient, one
    for fresh scores of the proof.

    Parameters
    ----------
    objective : Objective
        Rows and risk; its own alpha is not used.
    alphas : iterable of float
        Penalties.
    solver : Solver
        Certified; `init` concerns the first alpha alone.
    start : array of p numbers, optional
        Where the first run begins: the coefficients of an alpha that is near.
    control : Control, optional
        Limits and watchers of each run; those of the solver's options by default.
    """
    before: tuple[float, Result] | None = None
    for alpha in alphas:
        if before is None:
            own = objective.with_alpha(alpha)
            result = solver.solve(own, start, control=control)
        else:
            last = before[1]
            own = objective.with_alpha(alpha, last.w, last.z)
            state = solver.onward(own, last.state, before[0])
            result = solver.solve(own, state=state, control=control)
        yield alpha, result
        if result.interruption is not None or result.z is None:
            return
        before = alpha, result
