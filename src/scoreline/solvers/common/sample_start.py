"""A starting point: the optimum on growing samples of the rows, which costs a fraction of a pass."""

import copy
import logging
from typing import Any, NamedTuple

import numpy as np

from scoreline.objective import Objective
from scoreline.runtime.types import FloatArray
from scoreline.solvers.common.loop import Control, Timer

logger = logging.getLogger("scoreline")

# J at the optimum of m rows is about 2 p / m above that of all, relative (a9a, ijcnn1, covtype, ROC area and PRBEP). The
# samples end where that is about one per cent: from there the steps on all rows are those of a Hessian that fits. More samples
# (growth 4 or 8), or up to n / 4 rows, took longer on covtype, ijcnn1, cod-rna and letter.
EXCESS, ENOUGH = 2.0, 0.0125
FIRST, GROWTH = 20.0, 16.0  # rows per feature of the first sample, and the growth factor of the next samples
LEAST = 1000  # least rows of a sample
LARGEST = 0.25  # largest sample as a share of all rows; a larger one saves little
AMPLE = 16.0  # init="auto" uses samples from this multiple of the rows of the first sample on
ITERATIONS = 8  # on a sample; more would fit its noise. 5 and 12 took 10 % longer
# alpha of a sample of m rows is at least 1 / m, because directions of less curvature are noise in it. Without this
# limit half of all runs at alpha 1e-6 took longer than from 0 (up to 1.8 times); with 0.3 or 3 in place of 1 a few did.
PENALTY = 1.0


class Sampled(NamedTuple):
    """The end of a run on a sample: w, the solver's state, the scale of its ramps, and what interrupted it."""

    w: FloatArray
    state: Any
    ramp_scale: float
    interruption: BaseException | None = None


def sizes(n: int, p: int) -> list[int]:
    """Return the sizes of the samples of n rows with p features; none if n is not many times p."""
    found, m = [], max(LEAST, FIRST * p)
    while m <= LARGEST * n:
        found.append(int(m))
        if EXCESS * p / m <= ENOUGH:
            break
        m *= GROWTH
    return found


def samples_save_time(objective: Objective) -> bool:
    """Tell whether to begin on samples without being asked: with fewer rows, as on a9a, that takes longer as often as not."""
    n, p = objective.operator.shape
    return n >= AMPLE * max(LEAST, FIRST * p)


class Samples:
    """Nested stratified samples of the rows: prefixes of one random order of either class, made once.

    Both classes have equally many rows in a sample as long as there are so many, and weights restore their shares: the form of
    every risk stays, ROC area and PRBEP included, and a rare class is not lost. A risk that takes only whole weights gets
    samples in proportion instead.
    """

    def __init__(self, objective: Objective, most: int, seed: int = 0):
        labels, rng = objective.risk.labels, np.random.default_rng(seed)
        self.objective, self.labels = objective, labels
        counted = True if labels.weight is None else labels.weight > 0.0
        self.orders, self.available = [], []
        for side in (1, -1):
            rows = np.flatnonzero((labels.sign == side) & counted)
            self.available.append(len(rows))
            self.orders.append(rows[rng.choice(len(rows), min(most, len(rows)), replace=False)])

    def of(self, m: int) -> Objective:
        """Return the objective of m rows."""
        objective, labels, available = self.objective, self.labels, self.available
        if objective.risk.real_weights:
            first = min(available[0], max(m // 2, m - available[1]))
        else:
            first = min(available[0], m - 1, max(1, round(m * available[0] / sum(available))))
        taken = [order[:k] for order, k in zip(self.orders, (first, min(available[1], m - first)), strict=True)]
        rows = np.sort(np.concatenate(taken))  # in the order of memory
        weight = None if labels.weight is None else labels.weight[rows]
        if objective.risk.real_weights:
            share = np.array([a / len(t) for a, t in zip(available, taken, strict=True)])
            weight = share[(labels.sign[rows] < 0).astype(np.intp)] * (1.0 if weight is None else weight)
        risk = objective.risk.on_rows(rows).prepare(labels.sign[rows], weight, objective.space)
        return Objective(objective.operator.on_rows(rows), risk, max(objective.alpha, PENALTY / m), objective.penalty)


def sample_start(objective: Objective, solver: Any, control: Control | None = None) -> Sampled | None:
    """Minimise the objective on growing samples by copies of `solver`, a few iterations on each, from the end of the last.

    None where that does not pay: rows that cannot be read one by one, or not many times as many as features. The passes of
    samples count as the fractions of a pass that they are. What is proved for a sample says nothing of all rows and is dropped.
    """
    control = solver.control() if control is None else control
    operator = objective.operator
    n, p = operator.shape
    steps = sizes(n, p) if operator.scores != "blocks" and operator.cheap_rows and objective.risk.samples else []
    if not steps:
        return None
    timer, found, samples = Timer(control.max_time), None, Samples(objective, steps[-1])
    for m in steps:
        own = copy.copy(solver)
        own.tol, own.init = max(solver.tol, 0.5 * EXCESS * p / m), "zero"
        own.log_level = logging.DEBUG
        own.max_iter, own.eager = min(solver.max_iter, ITERATIONS), True
        part = samples.of(m)
        limits = Control(timer.left(), latest=control.latest)
        result = own.solve(part, None if found is None else found.w, control=limits)
        operator._count(part.operator.n_passes * part.operator.shape[0] / n)
        found = Sampled(result.w, result.state, part.risk.ramp_scale, result.interruption)
        logger.info("start on %d of %d rows: %d iterations, J %.6g there", m, n, result.n_iter, result.objective)
        if result.status in ("interrupted", "max_time"):
            break
    return found
