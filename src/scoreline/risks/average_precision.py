"""Average precision: the structural hinge over all rankings, an upper bound of 1 - AP."""

import numpy as np

from scoreline.risks.base import Evaluation, Reference, Risk, copied_rows
from scoreline.runtime.types import AnyArray, FloatArray, Scores


class AveragePrecisionRisk(Risk):
    """R(z) = max over rankings r of 1 - AP(r) - (2/m) sum of (z_i - z_j) over the pairs that r puts in the wrong order.

    i is positive, j negative, m = n+ n- (eq. ap-risk). The worst ranking keeps the order of scores within either class, and
    the place of each negative can be chosen separately (Yue, Finley, Radlinski and Joachims 2007, who try all n+ places of
    every negative). A negative of lower score is ranked above fewer positives, so divide and conquer finds all places in
    O((n+ + n-) log n-) after two sorts (`kernels/rankings.py`). Weights must be integers, the numbers of copies.

    Adding a constant to all scores changes nothing. Not smoothable; `solver="bundle_ocas"` minimises it.
    """

    name = "average_precision"
    shift = "invariant"
    real_weights = False

    def evaluate(self, z: Scores, mu: float = 0.0, out: Scores | None = None, grad: bool = True) -> Evaluation:
        """Return value, subgradient and plane of the worst ranking.

        grad_i = -(2/m) (negatives ranked above positive i), grad_j = (2/m) (positives ranked below negative j);
        c = 1 - AP(r) (eq. ap-gradient).
        """
        pairs = self.labels.positive * self.labels.negative
        worst = self.space.worst_ranking(z, self.labels, 2.0 / pairs, out)
        plane = 1.0 - worst.precision
        value = plane + self.space.dot(worst.grad, z)
        value = 0.0 if value < 0.0 else value  # the true ranking has 0, up to rounding; NaN stays NaN
        if not grad:
            return Evaluation(value, None, value, np.nan, np.nan)
        return Evaluation(value, worst.grad, value, plane, worst.mass)

    def reference(
        self, z: FloatArray, y: AnyArray, sample_weight: FloatArray | None = None, mu: float = 0.0
    ) -> Reference:
        """Return (R, subgradient, c) by a dynamic programme over all merges of the two orders: O(n+ n-).

        best[i][j] is the largest value of the remaining ranking after i positives and j negatives. The next row is a negative,
        or a positive with precision (i + 1) / (i + 1 + j) and a cost for each of the j negatives above it.
        """
        rows = copied_rows(len(z), sample_weight)
        scores, positive = z[rows], np.asarray(y)[rows] > 0
        above, below = (
            np.flatnonzero(side)[np.argsort(-scores[side], kind="stable")] for side in (positive, ~positive)
        )
        f, g = scores[above], scores[below]
        n, m = len(f), len(f) * len(g)
        passed = np.append(0.0, np.cumsum(g))
        best = np.full((n + 1, len(g) + 1), -np.inf)
        take = np.zeros(best.shape, dtype=bool)
        best[n] = 0.0
        for i in range(n - 1, -1, -1):
            for j in range(len(g), -1, -1):
                step = (1.0 - (i + 1) / (i + 1 + j)) / n - 2.0 / m * (j * f[i] - passed[j])
                best[i, j], take[i, j] = best[i + 1, j] + step, True
                if j < len(g) and best[i, j + 1] > best[i, j]:
                    best[i, j], take[i, j] = best[i, j + 1], False
        grad, i, j, plane = np.zeros(len(z)), 0, 0, 0.0
        while i < n:
            if take[i, j]:
                plane += (1.0 - (i + 1) / (i + 1 + j)) / n
                grad[rows[above[i]]] -= 2.0 / m * j
                np.add.at(grad, rows[below[:j]], 2.0 / m)
                i += 1
            else:
                j += 1
        return float(best[0, 0]), grad, plane
