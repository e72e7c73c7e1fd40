"""Bands around the functions of an additive model: how far they move where groups of rows are left out (eq. jackknife)."""

import numpy as np
from scipy.optimize import minimize

from scoreline.fitting.parameters import Parameters
from scoreline.fitting.penalty import trained_penalty
from scoreline.objective import Objective
from scoreline.operators import InterceptOperator, Operator
from scoreline.operators.linear_map import LinearMap
from scoreline.operators.wrappers import rewrapped, unwrapped
from scoreline.risks.base import Risk
from scoreline.runtime.types import AnyArray, FloatArray
from scoreline.scores import HostSpace
from scoreline.solvers.common.cost_method import Problem
from scoreline.solvers.common.method import Method

GROUPS = 30  # of rows that are left out together; the standard error of a band is then about 13 % of it
RAMP = 0.2  # width of the ramp of a risk with kinks, in units of the margin
MOST_STEPS = 200  # of L-BFGS for each group
GRADIENT_SHARE = 1e-5  # of the gradient at w = 0, below which a refit ends


def shape_errors(
    parameters: Parameters,
    operator: Operator,
    sign: AnyArray,
    weight: FloatArray | None,
    model: tuple[FloatArray, float, Risk, type[Method]],
    groups: int = GROUPS,
) -> list[FloatArray]:
    """Return the standard error of every cell of each function of an additive model, from its training rows.

    Parameters
    ----------
    parameters : Parameters
        Those of the classifier.
    operator : Operator
        The features of the training rows, on the host.
    sign : array of n labels
        +1 and -1.
    weight : array of n weights or None
        What each row weighs in the objective.
    model : tuple
        Coefficients, trained intercept, risk with base scores, and class of the solver.
    groups : int
        Number of groups of rows that are left out in turn, at most.
    """
    coef, intercept, risk, solver = model
    if operator.scores != "host":
        raise TypeError("bands need rows on the host, got rows on a cluster or on a device. Pass a sample of them.")
    if not (risk.smooth or risk.smoothable):
        raise ValueError(f"bands are not available for {risk.title()}, which cannot be smoothed. Leave bands out.")
    outer: LinearMap = operator
    if parameters.fit_intercept and risk.shift == "needed":
        outer = InterceptOperator(operator, parameters.intercept_scaling)
    penalty = trained_penalty(parameters.penalty_for(operator), outer, operator, solver)
    measures = parameters.measure, parameters.threshold_measure
    problem = Problem(outer, HostSpace(), sign, weight, None, risk, parameters.alpha, *measures, penalty)
    found = left_out_coefficients(problem, rewrapped(coef, intercept, outer, operator), groups)
    tables = [operator.feature_map.tables(unwrapped(w, outer, operator)[0]) for w in found]
    return [jackknife_errors(np.array(values)) for values in zip(*tables, strict=True)]


def row_groups(sign: AnyArray, weight: FloatArray, groups: int) -> list[AnyArray]:
    """Return disjoint groups of the rows of positive weight, each with its part of either class."""
    rows = np.flatnonzero(weight > 0.0)
    rows = rows[np.argsort(sign[rows], kind="stable")]
    return [rows[k::groups] for k in range(min(groups, len(rows)))]


def left_out_coefficients(problem: Problem, w: FloatArray, groups: int) -> FloatArray:
    """Return the coefficients of models trained without each group of rows in turn, one line per group.

    With as many groups as rows these are the leave-one-out models. A group that holds all rows of a class is skipped. Risks
    with kinks are smoothed by a ramp of `RAMP`: without it a refit could not tell the effect of a few rows from its own
    tolerance.

    Parameters
    ----------
    problem : Problem
        Rows on the host; its risk must be smooth or smoothable.
    w : array of p numbers
        The coefficients of the model of all rows.
    groups : int
        Number of groups, at most.
    """
    weight = np.ones(len(problem.sign)) if problem.weight is None else np.asarray(problem.weight)
    start = _minimum(problem.objective(weight), w)
    found = []
    for group in row_groups(problem.sign, weight, groups):
        rest = weight.copy()
        rest[group] = 0.0
        if all((rest[problem.sign == side] > 0.0).any() for side in (-1, 1)):
            found.append(_minimum(problem.objective(rest), start))
    return np.array(found).reshape(-1, len(w))


def jackknife_errors(values: FloatArray) -> FloatArray:
    """Return the standard error of each value from its values without each group of rows, one line per group."""
    groups = len(values)
    if groups < 2:
        return np.full(values.shape[1:], np.nan)
    variance = (groups - 1.0) / groups * np.square(values - values.mean(axis=0)).sum(axis=0)
    return np.asarray(np.sqrt(variance))


def _minimum(objective: Objective, w: FloatArray) -> FloatArray:
    """Return the minimum of J, smoothed where it has kinks, within the bounds of the coefficients."""
    risk, penalty = objective.risk, objective.bounded_penalty
    mu = 0.0 if risk.smooth else RAMP / risk.ramp_scale
    bounds = list(zip(penalty.lower, penalty.upper, strict=True)) if penalty.bounded else None
    least = GRADIENT_SHARE * float(np.abs(objective.value_grad(np.zeros_like(w), mu)[1]).max(initial=0.0))
    options = {"maxiter": MOST_STEPS, "gtol": least, "ftol": 0.0}
    return np.asarray(minimize(objective.value_grad, w, (mu,), "L-BFGS-B", True, bounds=bounds, options=options).x)
