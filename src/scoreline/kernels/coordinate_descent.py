"""Coordinate descent on a quadratic model with a Gram matrix: the step of proximal Newton methods."""

import numpy as np

from scoreline.kernels.penalties import _coordinate
from scoreline.runtime.compile import kernel


@kernel
def improve(matrix, slope, u, quadratic, absolute, lower, upper, sweeps, enough):
    """Lower <g, u> + u'Hu/2 + sum quadratic/2 u^2 + absolute |u| within bounds, one coordinate after another.

    `slope` is the gradient of the smooth part at u but for `quadratic`; u and slope are changed. Sweeps over all coordinates
    alternate with sweeps over those that are not 0. Returns whether a sweep over all has changed the model by at most `enough`
    in each coordinate. O(p) for a coordinate that moves, O(1) for the others.
    """
    p = len(u)
    active = np.empty(p, np.int64)
    count = p
    for j in range(p):
        active[j] = j
    all_coordinates = True
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
            if all_coordinates:
                return True
            all_coordinates, count = True, p
            for j in range(p):
                active[j] = j
        elif all_coordinates:
            all_coordinates, count = False, 0
            for j in range(p):
                if u[j] != 0.0:
                    active[count] = j
                    count += 1
    return False
