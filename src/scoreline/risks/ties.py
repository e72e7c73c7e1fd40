"""The tie rule of the papers' counter-examples, which chooses the least informative of all worst labellings.

A cutting plane at a kink may be any subgradient. The lower bounds on cutting planes (Zhang, Saha and Vishwanathan 2010, 2012)
are proved for a special oracle. If the true labelling is one of the worst, a plane of slope 0 would end the run, so the oracle
returns the smallest change of the true labelling instead: `ties="smallest"`. Scores that differ by less than TIED_WITHIN are
equal, because points of the counter-examples such as sqrt(2)/4 are not floats; rows of equal score keep their order. The
default, `ties="any"`, returns the labelling that is fastest to compute. The rule is for experiments: it runs on the host only,
in O(n+ n-) for pairs and counts.
"""

from typing import TYPE_CHECKING

import numpy as np

from scoreline.risks.base import Evaluation, Risk
from scoreline.runtime.checks import check_choice
from scoreline.runtime.types import AnyArray, FloatArray

if TYPE_CHECKING:
    from scoreline.risks.contingency import ContingencyRisk

TIED_WITHIN = 1e-9


def check_ties(ties: str) -> str:
    """Return the name of the rule, or raise."""
    check_choice("ties", ties, ("any", "smallest"))
    return ties


def smallest_change_of_rows(risk: Risk, z: FloatArray, out: FloatArray | None) -> Evaluation:
    """Return the hinge's value and subgradient: rows with t = 1 - y z > 0, or if there are none the first with t = 0."""
    labels = risk.labels
    s = np.ones(len(z)) if labels.weight is None else labels.weight
    t = np.where(s > 0.0, 1.0 - labels.sign * z, -np.inf)  # ignores rows of weight 0
    counted = t > TIED_WITHIN
    if not counted.any():
        counted[np.flatnonzero(t >= -TIED_WITHIN)[:1]] = True
    s = np.where(counted, s, 0.0)
    plane = float(s.sum() / labels.total)
    value = risk.value(z)
    return Evaluation(value, _written(-labels.sign * s / labels.total, out), value, plane, plane)


def smallest_change_of_pairs(risk: Risk, z: FloatArray, out: FloatArray | None) -> Evaluation:
    """Return ROC area and subgradient: pairs with t = 1 - z_i + z_j > 0, or if there are none the first with t = 0."""
    labels = risk.labels
    above, below = np.flatnonzero(labels.sign > 0), np.flatnonzero(labels.sign < 0)
    s = np.ones(len(z)) if labels.weight is None else labels.weight
    weight = np.outer(s[above], s[below])
    t = np.where(weight > 0.0, 1.0 - z[above][:, None] + z[below][None, :], -np.inf)
    counted = t > TIED_WITHIN
    if not counted.any():
        counted.flat[np.flatnonzero(t >= -TIED_WITHIN)[:1]] = True
    pairs = counted * weight / (labels.positive * labels.negative)
    grad = np.zeros(len(z))
    grad[above], grad[below] = -pairs.sum(axis=1), pairs.sum(axis=0)
    plane, value = float(pairs.sum()), risk.value(z)
    return Evaluation(value, _written(grad, out), value, plane, 2.0 * plane)


def smallest_change_of_counts(risk: "ContingencyRisk", z: FloatArray, out: FloatArray | None) -> Evaluation:
    """Return value and subgradient of the labelling with the fewest flips, at least one, among the worst ones."""
    labels = risk.labels
    if labels.weight is not None:
        raise ValueError("ties='smallest' takes no sample weights")
    h = 2.0 / labels.total
    above, below = (_in_order(z, labels.sign == side, side) for side in (1, -1))
    loss, table = risk.values_of_all_counts(z[above], z[below])
    worst = np.argwhere(table >= table.max() - TIED_WITHIN)
    changes = worst[worst.sum(axis=1) > 0]
    i, j = min(changes.tolist(), key=lambda pair: (sum(pair), pair)) if len(changes) else (0, 0)
    grad = np.zeros(len(z))
    grad[above[:i]], grad[below[:j]] = -h, h
    value = float(table.max())
    if risk.shift == "linear" and value <= 0.0:
        return Evaluation(0.0, _written(np.zeros(len(z)), out), 0.0, 0.0, 0.0)
    return Evaluation(value, _written(grad, out), value, float(loss[i, j]), h * (i + j))


def _in_order(z: FloatArray, rows: AnyArray, side: int) -> AnyArray:
    """Return the rows of a class by increasing (positives) or decreasing score, and tied neighbours by index."""
    index = np.flatnonzero(rows)
    index = index[np.argsort(side * z[index], kind="stable")]
    group = np.cumsum(np.append(0, np.diff(side * z[index]) > TIED_WITHIN))
    return index[np.lexsort((index, group))]


def _written(grad: FloatArray, out: FloatArray | None) -> FloatArray:
    if out is None:
        return grad
    out[:] = grad
    return out
