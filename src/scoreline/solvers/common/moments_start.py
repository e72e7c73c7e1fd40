"""A starting point: the direction from the moments of the classes, with the length that minimises J."""

import math

import numpy as np
from scipy.optimize import brentq

from scoreline.objective import Objective
from scoreline.runtime.types import FloatArray
from scoreline.solvers.moments import MomentsSolver
from scoreline.solvers.normal_model import best_intercept

ACCURACY = 1e-3  # of the length, relative
MOST_DOUBLINGS = 60


def moments_start(objective: Objective) -> FloatArray:
    """Return w = a d, d from the class moments and a > 0 the minimum of J along it; 0 where d does not lead down.

    One pass for the moments, one for Xd; the search for a runs on scores alone (J is convex, so its derivative has one root).
    Where the risk needs an intercept, the one that the moments predict is part of d.
    """
    labels, operator = objective.risk.labels, objective.operator
    found = MomentsSolver().train(operator, labels.sign, labels.weight, "roc_auc", (1.0, 1.0))
    d = found.w
    if objective.risk.shift == "needed":
        b = best_intercept(found.scores, labels.positive / labels.total)
        if not math.isfinite(b):  # one class for all rows would be the best prediction, but leads nowhere
            b = -0.5 * (found.scores.mean_positive + found.scores.mean_negative)
        d = operator.shifted(d, b)
    if not np.isfinite(d).all():
        return np.zeros(objective.n_features)
    start = objective.at(np.zeros(len(d)), objective.space.zeros(labels))
    line = objective.line(start, d)

    def slope(a: float) -> float:
        return line(a)[1]

    if slope(0.0) >= 0.0:
        return np.zeros(len(d))
    high = 1.0
    for _ in range(MOST_DOUBLINGS):
        if slope(high) > 0.0:
            low = 0.0 if high == 1.0 else 0.5 * high
            return np.asarray(brentq(slope, low, high, xtol=1e-12 * high, rtol=ACCURACY)) * d
        high *= 2.0
    return high * d
