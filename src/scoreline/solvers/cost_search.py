"""Search over the cost of the two errors: the measure chooses how much a missed positive weighs."""

from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_random_state

from scoreline._typing import AnyArray, FloatArray
from scoreline.measures import CountsBasedMeasure, best_cut
from scoreline.objective import Objective
from scoreline.risks.base import Risk
from scoreline.scorespace import ScoreSpace
from scoreline.solvers.lbfgs import LbfgsSolver

FOLDS = 3
RESAMPLES = 200
THIN = 2 * FOLDS  # with fewer rows in a class there is no evidence to choose by


class Choice(NamedTuple):
    """The outcome of a search: cost of a positive, the cut found on held-out scores (None if none), coefficients."""

    cost: float
    threshold: float | None
    w: FloatArray


class CostSearchSolver(LbfgsSolver):
    """Cost-sensitive fits along a path of costs, the cost and the cut chosen on held-out scores, then one refit.

    Positives weigh c = r^e, r = S- / S+ being the ratio of the classes: e = 0 is the plain fit, e = 1 the balanced one.
    Every row is scored by a model of three that has not seen it (rows are left out by weight 0, X is not copied); for
    e = 0, 1/2, 1 and the two neighbours of the best, the exact cut on those scores gives the value of the cost. The best
    replaces e = 0 only if its gain is larger than its standard error over 200 paired resamples; otherwise, or where a
    class has fewer than 6 rows, the plain fit stays. All fits of a fold start from the one before.

    Parameters
    ----------
    **options
        memory, tol, max_iter, max_time, abs_tol, callbacks: see LbfgsSolver and Solver; they apply to every fit.
    """

    name = "cost_search"
    automatic = False
    alpha_means = "penalty alpha/2 |w|^2, against the cost-weighted mean loss"

    @classmethod
    def trains(cls, measure: Any) -> bool:
        """Tell whether the measure is one of predictions at a cut."""
        return issubclass(measure if isinstance(measure, type) else type(measure), CountsBasedMeasure)

    def search(
        self,
        operator: Any,
        risk: Risk,
        sign: AnyArray,
        weight: FloatArray | None,
        alpha: float,
        space: ScoreSpace,
        measure: CountsBasedMeasure,
        random_state: Any = None,
        w0: FloatArray | None = None,
    ) -> Choice:
        """Return the cost of positives and the cut that held-out scores favour, and coefficients to start from."""
        base = np.ones(len(sign)) if weight is None else weight
        rows = [np.flatnonzero((sign == side) & (base > 0.0)) for side in (-1, 1)]

        def fit(weights: FloatArray, start: FloatArray | None) -> Any:
            result = self.solve(Objective(operator, risk.prepare(sign, weights, space), alpha), start)
            if result.interruption is not None:
                raise result.interruption
            return result

        plain = fit(base, w0).w
        if min(map(len, rows)) < THIN:
            return Choice(1.0, None, plain)
        ratio = float(base[rows[0]].sum() / base[rows[1]].sum())
        fold = np.zeros(len(sign), dtype=np.intp)
        rng = check_random_state(random_state)
        for side in rows:
            fold[rng.permutation(side)] = np.arange(len(side)) % FOLDS
        starts = [plain] * FOLDS
        tried: dict[float, tuple[float, float, FloatArray]] = {}

        def try_exponent(exponent: float) -> None:
            costs = np.where(sign > 0, ratio**exponent, 1.0) * base
            scores = np.zeros(len(sign))
            for f in range(FOLDS):
                result = fit(np.where(fold == f, 0.0, costs), starts[f])
                starts[f] = result.w
                scores[fold == f] = result.z[fold == f]
            cut = best_cut(sign, scores, measure, base)
            tried[exponent] = (cut.value, cut.threshold, scores - cut.threshold)

        for exponent in (0.0, 0.5, 1.0):
            try_exponent(exponent)
        best = max(tried, key=lambda e: tried[e][0])
        for exponent in (best - 0.25, best + 0.25):
            try_exponent(exponent)
        best = max(tried, key=lambda e: tried[e][0])
        if best != 0.0 and not _gain_is_clear(measure, sign, base, tried[best][2], tried[0.0][2], rng):
            best = 0.0
        return Choice(ratio**best, tried[best][1], plain)


def _gain_is_clear(
    measure: CountsBasedMeasure, sign: AnyArray, weight: FloatArray, new: FloatArray, old: FloatArray, rng: Any
) -> bool:
    """Tell whether the mean gain of the new predictions exceeds its standard error over paired resamples.

    A row matters only through its class and its two predictions, so resampling rows is resampling eight cells.
    """
    cell = 4 * (sign > 0) + 2 * (new > 0) + (old > 0)
    counted = weight > 0.0
    rows = np.bincount(cell[counted], minlength=8).astype(float)
    mean_weight = np.bincount(cell, weights=weight, minlength=8) / np.maximum(rows, 1.0)
    drawn = rng.multinomial(int(rows.sum()), rows / rows.sum(), size=RESAMPLES) * mean_weight

    def value(bit: int) -> Any:
        def total(positive: int, predicted: int) -> Any:
            return sum(drawn[:, c] for c in range(8) if c >> 2 == positive and (c >> bit) & 1 == predicted)

        return np.asarray(measure.from_counts(total(1, 1), total(0, 1), total(1, 0), total(0, 0)), dtype=float)

    gain = value(1) - value(0)
    gain = gain[np.isfinite(gain)]
    return len(gain) > 0 and bool(gain.mean() > gain.std())
