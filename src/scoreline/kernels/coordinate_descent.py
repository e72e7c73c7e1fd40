"""Coordinate descent on a quadratic model with a Gram matrix: the step of proximal Newton methods."""

import numpy as np

from scoreline.kernels.penalties import _coordinate
from scoreline.runtime.compile import kernel


@kernel
def model_minimum(matrix, gradient, w, quadratic, absolute, lower, upper, sweeps, enough):
    """Return u that nearly minimises <g, u - w> + (u - w)'H(u - w)/2 + sum quadratic/2 u^2 + absolute |u| within bounds.

    Sweeps over all coordinates alternate with sweeps over those that have moved or are not 0, until no coordinate changes the
    model by more than `enough`. O(p) for each coordinate that moves, O(1) for the others.
    """
    p = len(w)
    u = w.copy()
    slope = gradient.copy()  # of the smooth part without the penalty's own: g + H (u - w)
    active = np.empty(p, np.int64)
    count = p
    for j in range(p):
        active[j] = j
    whole = True
    for _ in range(sweeps):
        largest = 0.0
        for k in range(count):
            j = active[k]
            curvature = matrix[j, j]
            if not curvature + quadratic[j] > 0.0:
                continue
            new = _coordinate(slope[j] - curvature * u[j], curvature + quadratic[j], absolute[j], lower[j], upper[j])
            step = new - u[j]
            if step != 0.0:
                u[j] = new
                row = matrix[j]
                for i in range(p):
                    slope[i] += step * row[i]
                largest = max(largest, step * step * (curvature + quadratic[j]))
        if largest <= enough:
            if whole:
                break
            whole, count = True, p
            for j in range(p):
                active[j] = j
        elif whole:
            whole, count = False, 0
            for j in range(p):
                if u[j] != 0.0 or w[j] != 0.0:
                    active[count] = j
                    count += 1
    return u
