"""Approximate leave-one-out scores from one fit: the score that each row would get from a model trained without it.

At the optimum of J(w) = alpha/2 |w|^2 + sum_i l_i(x_i'w), taking row i away moves w by one Newton step,
H_i^-1 g_i x_i with g_i = l_i' and H_i = H - d_i x_i x_i', d_i = l_i''. Its own score moves by g_i h_i / (1 - d_i h_i),
h_i = x_i' H^-1 x_i (Beirami and others 2017; Rad and Maleki 2020) (eq. left-out-plain). Two things are different here:

- The rows that stay in the class of row i are weighed up to the weight of the w_of_all_rows class, as in a stratified split.
  Otherwise every left-out positive lowers the share of positives and with it its own score, and where the features say
  little, that shift is all there is.
- With more than 1000 features q_i = h_i / (1 - d_i h_i), the leverage in the model without row i, comes from the diagonal
  of H without row i, times one factor for each class that random probes give.

One Newton step is wrong for a row that holds the model in place: other rows cross the kink of the squared hinge or leave the
range of the quadratic model, or 1 - d_i h_i is lost to rounding. Such rows have a leverage d_i h_i near 1 or a predicted move
beyond the margin. They are scored by a refit without them if the data is small enough.
"""

import logging
import math
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import brentq
from sklearn.utils import check_random_state

from scoreline import kernels
from scoreline.objective import Objective
from scoreline.runtime import parallel
from scoreline.runtime.types import AnyArray, FloatArray
from scoreline.runtime.vectors import visible
from scoreline.solvers.common.hessian import factored, has_factor, hessian_diagonal

logger = logging.getLogger("scoreline")

PROBES_PER_CLASS = 2
CONJUGATE_GRADIENT_STEPS = 8  # the error of the quadratic form that is sought is the square of the solution's
# A row is refitted beyond this leverage d_i h_i, or beyond this move of its score in units of the margin. On 240 problems with
# 20 to 200 rows, 3 of the 16,384 rows within both limits had an error above a quarter of the spread of the scores.
MOST_LEVERAGE, MOST_MOVE = 0.7, 1.0
# Multiplications that all refits together may take (about a third of a second), and what a refit costs besides its Hessians.
REFIT_BUDGET, REFIT_OVERHEAD = 3e8, 1e7
MOST_COPIED_ENTRIES = 1_000_000  # of a dense copy of X (8 MB), made where there are more features than rows
LEAST_GROUPS = 5  # as many as in five-fold cross-validation: fewer refits would miss too many rows
REFIT_STEPS, REFIT_TOLERANCE = 50, 1e-4  # Newton steps at most; error of the coefficients, relative to their length


@visible  # what is not finite is not used
def leave_one_out(
    objective: Objective, z: FloatArray, copies: FloatArray | None = None, random_state: Any = None
) -> FloatArray:
    """Return the leave-one-out scores at the optimum with scores z = Xw of all rows; base scores are added to them.

    Parameters
    ----------
    objective : Objective
        Its risk must be `curved`.
    z : array of n scores
        Those of the minimum; the further from it, the rougher the result.
    copies : array of n weights, optional
        How often each row counts. One copy is left out of a row that counts more than once, so that weights equal repeated
        rows; the w_of_all_rows row if it counts less.
    random_state : int, RandomState or None
        Of the probes; with up to 1000 features there are none.

    Returns
    -------
    array of n scores
        Rows of weight 0 keep theirs. Costs 6 passes, of which two as `Operator.gram`, and a Cholesky factor with its inverse;
        with more than 1000 features about 50 to 100 passes. Rows for which one Newton step is unreliable are refitted where
        that takes about a second at most, in groups if they are many; otherwise a message is logged.
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
    model_exists: Any = False  # there is no model without the only row of a class: it keeps its score
    for side, total in ((-1, labels.negative), (1, labels.positive)):
        rows = labels.sign == side
        rest = total - share * weight
        some_left = rest > 1e-12 * total
        up = total / np.where(some_left, rest, total)
        common = operator.matvec(solve(operator.rmatvec(objective.space.select(gradient, labels, side))))
        moved = up * share * gradient * leverage - (up - 1.0) * common
        change = np.where(rows & some_left, moved, change)
        model_exists = model_exists | (rows & some_left)
    left = 1.0 - share * curvature * leverage  # in (0, 1] but for rounding
    unseen = z + change / np.maximum(left, 1e-6)
    usable = np.isfinite(unseen) & (leverage >= 0.0) & (left > -1e-6)
    scores = np.where(usable & (weight > 0.0), unseen, z)
    reliable = usable & (left >= 1.0 - MOST_LEVERAGE) & (np.abs(unseen - z) <= MOST_MOVE)
    unreliable = ~reliable & model_exists & (weight > 0.0)
    found: FloatArray = objective.risk.full_scores(_refit_unreliable(objective, z, scores, share, unreliable))
    return found


def _refit_unreliable(
    objective: Objective, z: FloatArray, scores: FloatArray, share: float | FloatArray, unreliable: AnyArray
) -> FloatArray:
    """Return the scores with those of unreliable rows from refits without them, if these are affordable."""
    # A row is refitted alone, or in a group of unreliable rows of both classes where single refits would take too long.
    count = int(np.count_nonzero(unreliable))
    if count == 0:
        return scores
    n, p = objective.operator.shape
    affordable = int(REFIT_BUDGET / (float(n) * min(n, p) ** 2 + REFIT_OVERHEAD))
    possible = isinstance(z, np.ndarray) and "row_blocks" in objective.operator.capabilities
    possible = possible and (p <= n or n * p <= MOST_COPIED_ENTRIES)
    if not possible or affordable < min(count, LEAST_GROUPS):
        logger.log(
            logging.WARNING if count > 0.1 * n else logging.INFO,
            "leave-one-out: the scores of %d of %d rows are unreliable, and refits without them are not possible or would take "
            "too long. A threshold or probabilities that use them may be wrong; use a larger alpha, or threshold='holdout'.",
            count, n,
        )  # fmt: skip
        return scores
    if n < p:
        objective = objective.compact()
    labels = objective.risk.labels
    shares = np.broadcast_to(share, z.shape)
    weight = np.ones(n) if labels.weight is None else np.asarray(labels.weight)
    rows = np.flatnonzero(unreliable)
    rows = rows[np.argsort(labels.sign[rows], kind="stable")]  # so that every group has its part of either class
    groups = min(count, affordable)
    logger.info("leave-one-out: %d of %d rows are refitted in %d groups", count, n, groups)
    start = _coefficients(objective, z)
    if not (np.isfinite(start).all() and objective.value(start) < objective.risk.value_at_zero()):
        start = np.zeros_like(start)
    w_of_all_rows = _minimum(objective, np.ones(n), start)
    if w_of_all_rows is None:
        return scores
    scores = scores.copy()
    for group in (rows[k::groups] for k in range(groups)):
        factor = np.ones(n)
        factor[group] -= shares[group]
        for side, total in ((-1, labels.negative), (1, labels.positive)):
            own = labels.sign == side
            factor[own] *= total / float(factor[own] @ weight[own])
        w = _minimum(objective, factor, w_of_all_rows)
        if w is not None:
            scores[group] = objective.scores(w)[group]
    return scores


def _coefficients(objective: Objective, z: FloatArray) -> FloatArray:
    """Return w at the optimum with the scores z; free coefficients as the first step from their best constant."""
    cost = np.asarray(objective.penalty_curvature) * np.ones(objective.n_features)
    v = objective.operator.rmatvec(objective.risk.value_grad(z)[1])
    w = np.divide(-v, cost, out=np.zeros_like(v), where=cost > 0.0)
    if (cost > 0.0).all():
        return w
    return objective.centred(objective.at(w, objective.scores(w))).w


def _minimum(objective: Objective, factor: FloatArray, w: FloatArray) -> FloatArray | None:
    """Return the minimum of J with the loss of every row times its factor, by Newton's method from w; None if it fails."""
    # Unlike `NewtonSolver`, it makes a Hessian in every step. That needs the fewest steps, and a Hessian costs little here.
    operator, risk, alpha = objective.operator, objective.risk, objective.penalty_curvature
    dot = kernels.vectors.dot
    z = operator.matvec(w)
    for _ in range(REFIT_STEPS):
        gradient = operator.rmatvec(factor * risk.value_grad(z)[1]) + alpha * w
        if math.sqrt(dot(gradient, gradient)) <= REFIT_TOLERANCE * objective.alpha * math.sqrt(dot(w, w)):
            break
        hessian = operator.gram(factor * risk.curvature(z))
        hessian[np.diag_indices_from(hessian)] += alpha
        try:
            with parallel.one_blas_thread():
                d = -cho_solve(cho_factor(hessian, lower=True, check_finite=False), gradient, check_finite=False)
        except np.linalg.LinAlgError:
            return None
        z_d = operator.matvec(d)
        if not np.isfinite(z_d).all():
            return None

        def slope(a: float, w: FloatArray = w, d: FloatArray = d, z: FloatArray = z, z_d: FloatArray = z_d) -> float:
            return float(dot(alpha * (w + a * d), d) + dot(factor * risk.value_grad(z + a * z_d)[1], z_d))

        at_start, at_end = slope(0.0), slope(1.0)
        if not at_start < 0.0:  # nothing but rounding is left
            break
        if not np.isfinite(at_end):
            return None
        # A row that becomes active can end the descent after a tiny part of the step.
        step = 1.0 if at_end <= 0.0 else float(brentq(slope, 0.0, 1.0, xtol=1e-12, rtol=0.01))
        w, z = w + step * d, z + step * z_d
    return w


class _System:
    """H v = b with H = X'DX + alpha I, by a few conjugate gradients; two passes per step."""

    def __init__(self, objective: Objective, curvature: FloatArray, diagonal: FloatArray | None):
        self.objective, self.curvature, self.diagonal = objective, curvature, diagonal

    def solve(self, b: FloatArray, enough: float = 0.02) -> tuple[FloatArray, float]:
        """Return about v and b'v, which only grows from step to step, until a step adds less than this share."""
        operator, alpha = self.objective.operator, self.objective.penalty_curvature
        preconditioner = 1.0 if self.diagonal is None else 1.0 / self.diagonal
        v, r, form = np.zeros_like(b), b.copy(), 0.0
        s = preconditioner * r
        d, rs = s.copy(), float(r @ s)
        for _ in range(CONJUGATE_GRADIENT_STEPS):
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


def _probed(system: _System, own: FloatArray, rng: np.random.RandomState) -> FloatArray:
    """Return leverages h from q, those without the row, times a factor for each class (eq. left-out-diagonal)."""
    # With A = D^1/2 X H^-1 X' D^1/2 and random signs r on the rows of a class, r'Ar has the mean sum_i A_ii = sum_i d_i h_i.
    # The factor c makes h_i = c q_i / (1 + d_i c q_i) have that sum, which rises with c.
    operator, sign, curvature = system.objective.operator, system.objective.risk.labels.sign, system.curvature
    scaled = own
    for side in (-1, 1):
        rows = sign == side
        d, q = np.where(rows, curvature, 0.0), np.where(rows, own, 0.0)
        sums = []
        for _ in range(PROBES_PER_CLASS):
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
