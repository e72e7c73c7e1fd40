"""The score each row would get from a model that has not seen it, from one fit: approximate leave-one-out.

At the optimum of J(w) = alpha/2 |w|^2 + sum_i l_i(x_i'w), taking row i away moves w by one Newton step,
H_i^-1 g_i x_i with g_i = l_i' and H_i = H - d_i x_i x_i', d_i = l_i''. Its own score moves by g_i h_i / (1 - d_i h_i),
h_i = x_i' H^-1 x_i (Beirami and others 2017; Rad and Maleki 2020) (eq. left-out-plain). Two things are different here:

- The rows that stay in the class of row i are weighed up to the weight of the whole class, as in a stratified split.
  Otherwise every left-out positive lowers the share of positives and with it its own score, and where the features say
  little, that shift is all there is.
- With more than 1000 features q_i = h_i / (1 - d_i h_i), the leverage in the model without row i, comes from the diagonal
  of H without row i, times one factor for each class that random probes give.
"""

from typing import Any

import numpy as np
from scipy.linalg import cho_solve
from scipy.optimize import brentq
from sklearn.utils import check_random_state

from scoreline._typing import FloatArray
from scoreline._vectors import visible
from scoreline.objective import Objective
from scoreline.solvers.hessian import factored, has_factor, hessian_diagonal

PROBES = 2  # for each class
STEPS = 8  # of conjugate gradients; the error of the quadratic form that is sought is the square of the solution's


@visible  # what is not finite is not used
def leave_one_out(
    objective: Objective, z: FloatArray, copies: FloatArray | None = None, random_state: Any = None
) -> FloatArray:
    """Return the scores of rows that their model has not seen, at the optimum with scores z = Xw of all rows.

    Parameters
    ----------
    objective : Objective
        Its risk must be `curved`.
    z : array of n scores
        Those of the minimum; the further from it, the rougher the result.
    copies : array of n weights, optional
        How often each row counts. One copy is left out of a row that counts more than once, so that weights equal repeated
        rows; the whole row if it counts less.
    random_state : int, RandomState or None
        Of the probes; with up to 1000 features there are none.

    Returns
    -------
    array of n scores
        Rows of weight 0 keep theirs. Costs 6 passes, of which two as `Operator.gram`, and a Cholesky factor with its inverse;
        with more than 1000 features about 50 to 100 passes.
    """
    # (eq. left-out)
    operator, labels = objective.operator, objective.risk.labels
    share = 1.0 if copies is None else np.minimum(1.0, copies) / np.where(copies > 0.0, copies, 1.0)
    gradient, curvature = objective.risk.value_grad(z)[1], objective.risk.curvature(z)
    weight = 1.0 if labels.weight is None else labels.weight

    factor = factored(objective, objective.risk.hessian(z)) if has_factor(objective) else None
    if factor is not None:
        inverse = cho_solve(factor, np.eye(objective.n_features), check_finite=False)
        leverage = operator.quadratics(0.5 * (inverse + inverse.T))

        def solve(v: FloatArray) -> FloatArray:
            return np.asarray(inverse @ v)

    else:
        diagonal = hessian_diagonal(objective, curvature) if "row_blocks" in operator.capabilities else None
        system = _System(objective, curvature, diagonal)
        leverage = np.ones_like(z) if diagonal is None else operator.diagonal_leverages(diagonal, curvature)
        # Probes are a numerical device: without a seed asked for, they are the same in every run.
        leverage = _probed(system, leverage, check_random_state(0 if random_state is None else random_state))

        def solve(v: FloatArray) -> FloatArray:
            return system.solve(v, enough=0.1)[0]

    change: Any = 0.0
    for side, total in ((-1, labels.negative), (1, labels.positive)):
        rows = labels.sign == side
        rest = total - share * weight
        some_left = rest > 1e-12 * total  # there is no model without the only row of a class: it keeps its score
        up = total / np.where(some_left, rest, total)
        common = operator.matvec(solve(operator.rmatvec(objective.space.select(gradient, labels, side))))
        moved = up * share * gradient * leverage - (up - 1.0) * common
        change = np.where(rows & some_left, moved, change)
    left = 1.0 - share * curvature * leverage  # in (0, 1] but for rounding
    unseen = z + change / np.maximum(left, 1e-6)
    return np.where(np.isfinite(unseen) & (leverage >= 0.0) & (left > -1e-6) & (weight > 0.0), unseen, z)


class _System:
    """H v = b with H = X'DX + alpha I, by a few conjugate gradients; two passes a step."""

    def __init__(self, objective: Objective, curvature: FloatArray, diagonal: FloatArray | None):
        self.objective, self.curvature, self.diagonal = objective, curvature, diagonal

    def solve(self, b: FloatArray, enough: float = 0.02) -> tuple[FloatArray, float]:
        """Return about v and b'v, which only grows from step to step, until a step adds less than this share."""
        operator, alpha = self.objective.operator, self.objective.alpha
        preconditioner = 1.0 if self.diagonal is None else 1.0 / self.diagonal
        v, r, form = np.zeros_like(b), b.copy(), 0.0
        s = preconditioner * r
        d, rs = s.copy(), float(r @ s)
        for _ in range(STEPS):
            if not rs > 0.0:
                break
            product = operator.rmatvec(self.curvature * operator.matvec(d)) + alpha * d
            step = rs / float(d @ product)
            v += step * d
            gain = step * rs
            form += gain
            if gain < enough * form:
                break
            r -= step * product
            s = preconditioner * r
            rs, before = float(r @ s), rs
            d = s + (rs / before) * d
        return v, form


def _probed(system: _System, own: FloatArray, rng: Any) -> FloatArray:
    """Return leverages h from q, those without the row, times a factor for each class (eq. left-out-diagonal).

    With A = D^1/2 X H^-1 X' D^1/2 and random signs r on the rows of a class, r'Ar has the mean sum_i A_ii = sum_i d_i h_i. The
    factor c makes h_i = c q_i / (1 + d_i c q_i) have that sum, which rises with c.
    """
    operator, sign, curvature = system.objective.operator, system.objective.risk.labels.sign, system.curvature
    scaled = own
    for side in (-1, 1):
        rows = sign == side
        d, q = np.where(rows, curvature, 0.0), np.where(rows, own, 0.0)
        sums = []
        for _ in range(PROBES):
            probe = np.where(rows, rng.choice(np.array([-1, 1], dtype=np.int8), size=len(sign)), 0.0)
            sums.append(system.solve(operator.rmatvec(np.sqrt(curvature) * probe))[1])
        wanted = min(float(np.mean(sums)), 0.999 * float(np.count_nonzero(d * q)))

        def excess(log_factor: float, d: FloatArray = d, q: FloatArray = q, wanted: float = wanted) -> float:
            x = np.exp(log_factor) * d * q
            return float((x / (1.0 + x)).sum()) - wanted

        low, high = -40.0, 40.0
        if wanted > 0.0 and excess(low) < 0.0 < excess(high):
            scaled = np.where(rows, np.exp(brentq(excess, low, high, xtol=1e-3)) * q, scaled)
    return scaled / (1.0 + curvature * scaled)
