"""Warnings at the end of a run: the gap is too large, or the fit is degenerate."""

from sklearn.exceptions import ConvergenceWarning

from scoreline.measures.ties import TIE
from scoreline.objective import Objective
from scoreline.runtime.messages import warn_user
from scoreline.solvers.common.base import Result, Solver


def warn_if_not_converged(result: Result, solver: Solver) -> None:
    """Warn with the gap and what to do, unless the run converged or was stopped on purpose."""
    advice = {
        "max_iter": "Raise max_iter, raise tol or alpha, or scale the features (scaling='maxabs').",
        "max_time": "Raise max_time, raise tol or alpha, or scale the features (scaling='maxabs').",
        "stalled": "Rounding limits the accuracy here: scale the features (scaling='maxabs'), raise tol or alpha.",
    }
    if result.status not in advice:
        return
    stopped = "No further progress" if result.status == "stalled" else f"Stopped by {result.status}"
    gap = "unknown" if result.gap is None else f"{result.gap:.3g}"
    goal = (
        f"tol={solver.tol:g} of the lower bound (or of J(0)/1000)"
        if solver.abs_tol is None
        else f"abs_tol={solver.abs_tol:g}"
    )
    warn_user(
        f"{stopped} after {result.n_iter} iterations: objective {result.objective:.6g}, duality gap {gap}, "
        f"requested {goal}. {advice[result.status]}",
        ConvergenceWarning,
    )


def is_degenerate(result: Result, objective: Objective) -> bool:
    """Tell whether a run ended with a model that gives all rows the same score, up to rounding (eq. ties)."""
    if result.z is None:
        return False
    labels, space, z = objective.risk.labels, objective.space, objective.risk.full_scores(result.z)
    return space.span(z, labels) <= TIE * space.max_abs(z, labels)


def warn_if_degenerate(result: Result, objective: Objective) -> None:
    """Warn if a proved result gives all rows the same score: a model that ranks nothing should not look like a success."""
    if result.status != "converged" or not is_degenerate(result, objective):
        return
    warn_user(
        f"Degenerate fit: all rows have the same score. For risk {objective.risk.name!r} and alpha={objective.alpha:g} no "
        f"better model was found within the duality gap of {result.gap:.3g} (objective {result.objective:.6g}). Lower tol or "
        "alpha, scale the features, or choose another risk, such as risk='logistic'."
    )
