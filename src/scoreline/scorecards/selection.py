"""A few columns for a card: a path of certified fits with a penalty on each column as a whole."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from scoreline.features.fitted import FittedFeatures
from scoreline.fitting.penalty import trained_penalty
from scoreline.objective import Objective
from scoreline.operators import InterceptOperator
from scoreline.operators.codes import CodesOperator
from scoreline.penalties import BoundedPenalty, GroupPenalty
from scoreline.risks.base import Risk
from scoreline.runtime.types import FloatArray
from scoreline.solvers.common.path import alpha_max, solve_path
from scoreline.solvers.proximal import ProximalSolver

STEP = 0.8  # from one alpha to the next
WEAKEST = 1e-4  # of the largest alpha, where the path ends in any case
L1_RATIO = 0.95  # the rest is a squared norm, so that columns that say the same share their effect
LEAST_WEIGHT = 1e-6  # of a function of hardly any variance


def columns_on_path(
    operator: CodesOperator, risk: Risk, most: int, tol: float, fit_intercept: bool
) -> tuple[list[int], list[dict[str, Any]]]:
    """Return the columns that enter first as the penalty on columns falls, and the certified fits that show it.

    The penalty is alpha times the sum over columns of |w_g| sqrt(trace of the covariance of their functions) (eq. card-path),
    so that a column enters by how much of the risk it explains, and not by the number of its bins. Of columns that enter in
    the same fit, those with the larger effect come first.

    Parameters
    ----------
    operator : CodesOperator
        The features of the bins of all columns; signs are kept.
    risk : Risk
        Prepared with the labels of its rows.
    most : int
        Largest number of columns.
    tol : float
        As in `MeasureClassifier`.
    fit_intercept : bool
        Whether an intercept without penalty is trained where the risk needs one.

    Returns
    -------
    columns : list of int
        Places among the columns of the operator, in the order in which they enter; at most `most`.
    steps : list of dict
        For each fit "alpha", "columns", "objective", "lower_bound", and "scores".
    """
    objective = _problem(operator, risk, fit_intercept)
    features: FittedFeatures = operator.feature_map
    ends = np.cumsum([group.basis.shape[1] for group in features.groups])
    tables = [
        np.sqrt(counts / max(float(counts.sum()), 1e-300))[:, None] * group.basis
        for group, counts in zip(features.groups, features.cell_counts(), strict=True)
    ]
    order: list[int] = []
    steps: list[dict[str, Any]] = []

    def alphas() -> Iterator[float]:
        alpha = largest = alpha_max(objective)
        while alpha > WEAKEST * largest and len(order) < most:
            alpha *= STEP
            yield alpha

    for alpha, result in solve_path(objective, alphas(), ProximalSolver(tol=tol)):
        effects = [
            float(np.linalg.norm(own @ part))
            for own, part in zip(tables, np.split(result.w[: ends[-1]], ends[:-1]), strict=True)
        ]
        entered = [k for k, effect in enumerate(effects) if effect > 0.0]
        order = [k for k in order if k in entered]
        order += sorted(set(entered) - set(order), key=lambda k: -effects[k])
        steps.append(
            {
                "alpha": alpha,
                "columns": list(order),
                "objective": float(result.objective),
                "lower_bound": float(result.lower_bound or 0.0),
                "scores": np.asarray(result.z),
            }
        )
    return order[:most], steps


def _problem(operator: CodesOperator, risk: Risk, fit_intercept: bool) -> Objective:
    """Return the objective of the path; its alpha is set later."""
    features: FittedFeatures = operator.feature_map
    groups, start = [], 0
    variances: list[FloatArray] = []
    for group, counts in zip(features.groups, features.cell_counts(), strict=True):
        size = group.basis.shape[1]
        if size:
            groups.append(range(start, start + size))
        start += size
        share = counts / max(float(counts.sum()), 1e-300)
        variances.append(share @ np.square(group.basis - share @ group.basis))
    weights = np.maximum(np.concatenate(variances), LEAST_WEIGHT)
    penalty = BoundedPenalty.of(GroupPenalty(groups, L1_RATIO, weights), start, None, features.bounds())
    trained: Any = operator
    if fit_intercept and risk.shift == "needed":
        trained = InterceptOperator(operator)
        penalty = trained_penalty(penalty, trained, operator, ProximalSolver)
    return Objective(trained, risk, 1.0, penalty)
