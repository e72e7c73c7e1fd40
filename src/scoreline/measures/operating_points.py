"""Measures with a constraint: the best value of one rate subject to a limit on another."""

import copy
import inspect
from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np
from scipy.special import betainc, logsumexp, ndtr
from scipy.stats import betabinom

from scoreline.measures.base import CountsBasedMeasure, ratio
from scoreline.measures.counts import COUNT_RISKS
from scoreline.measures.thresholds import best_threshold
from scoreline.runtime.checks import check_level, check_number, check_rate
from scoreline.runtime.types import AnyArray, Counts, FloatArray

ROUNDING = 1e-13  # relative error of sums of weights
SCARCE_RECALL = 0.01  # a threshold with a lower recall flags almost nothing
SCARCE_ROWS, ENOUGH_POSITIVES = (
    5,
    50,
)  # so does one that flags fewer positives than the first, of at least the second number
USEFUL_RECALL = 0.1  # recall of the alternative that the warning names
BETS = 2.0 ** (-0.5 * np.arange(16))  # shares of the largest bet that the test of a mean cost averages over


class OperatingPoint(CountsBasedMeasure):
    """A target rate, or 0 if the constraint is not met; evaluated on the predictions at the threshold.

    `on_scores` is the best value of all thresholds. A constraint that is barely met on the given rows is missed on every second
    sample of held-out rows, so a robust threshold keeps a margin. The chance to meet the constraint on another sample of the
    same size is approximated by Phi(excess / sd). Here `excess` is how far the counts exceed the constraint, and the variance
    2 r (1 - r) m is that of m trials at the limit r, in both samples. Without `confidence` the threshold maximises target
    times chance, the expected value. With it, the threshold maximises the target among thresholds that reach this chance.
    With `guarantee`, classifiers take a threshold from held-out rows that is proved to keep the constraint with that
    probability (`promised_threshold`).
    """

    risks = COUNT_RISKS
    confidence: float | None
    guarantee: float | None
    proved_on: ClassVar[str] = "rows"  # whose rate is limited: "rows", "positives", "negatives" or "flagged rows"
    ordered: ClassVar[bool] = False  # whether the limited rate moves in one direction as the threshold rises

    def __init__(self, confidence: float | None = None, guarantee: float | None = None):
        if confidence is not None:
            check_number("confidence", confidence, above=0)
            if confidence >= 1:
                raise ValueError(f"confidence={confidence!r} must be below 1, or None for the best expected value")
        if guarantee is not None:
            check_level(guarantee, "guarantee")
            if confidence is not None:
                raise ValueError(
                    "confidence and guarantee exclude each other: the second is the exact form of the first."
                )
        self.confidence = confidence
        self.guarantee = guarantee

    @abstractmethod
    def target(self, tp: Counts, fp: Counts, fn: Counts, tn: Counts) -> Counts:
        """Return the rate to be maximised."""

    @abstractmethod
    def trials(self, tp: Counts, fp: Counts, fn: Counts, tn: Counts) -> tuple[Counts, Counts, float]:
        """Return the constraint as `successes >= limit * trials`: these three."""

    @abstractmethod
    def constraint(self) -> str:
        """Return the constraint in words."""

    @property
    def limit(self) -> float:
        """The limit of the constraint."""
        return float(self.trials(0.0, 0.0, 0.0, 0.0)[2])

    def limited(self, tp: Counts, fp: Counts, fn: Counts, tn: Counts) -> Counts:
        """Return the quantity that the constraint limits, as the constraint names it; NaN without a trial."""
        successes, trials, _ = self.trials(tp, fp, fn, tn)
        return np.where(np.asarray(trials) > 0, ratio(successes, trials), np.nan)

    def errors(self, tp: Counts, fp: Counts, fn: Counts, tn: Counts) -> Counts:
        """Return the trials without success, the whole number that an order statistic limits."""
        successes, trials, _ = self.trials(tp, fp, fn, tn)
        return np.asarray(np.asarray(trials) - np.asarray(successes))

    def proof(self, tp: Counts, fp: Counts, fn: Counts, tn: Counts) -> Counts:
        """Return the p-value of the hypothesis that the constraint is broken: small means that the counts prove it."""
        return binomial_tail(*self.trials(tp, fp, fn, tn))

    def p_value_if_met(self, tp: Counts, fp: Counts, fn: Counts, tn: Counts) -> Counts:
        """Return the p-value of the hypothesis that the constraint holds: small means that the counts refute it."""
        successes, trials, limit = self.trials(tp, fp, fn, tn)
        return binomial_tail(np.asarray(trials) - np.asarray(successes), trials, 1.0 - limit)

    def rows_for_proof(self, level: float) -> float:
        """Return the least number of trials that can prove the constraint, all of them successes."""
        limit = self.limit
        return float(np.log1p(-level) / np.log(limit)) if 0.0 < limit < 1.0 else np.inf

    def parameters(self) -> dict[str, Any]:
        """Return the parameters that make the same operating point."""
        return {name: getattr(self, name) for name in inspect.signature(type(self)).parameters}

    def scarce(self, y: AnyArray, z: FloatArray, sample_weight: FloatArray | None, threshold: float) -> str | None:
        """Return a warning if a threshold of the scores z flags almost none of the positives, else None."""
        kind = 2 * (y > 0).astype(np.int8) + (z > threshold).astype(np.int8)
        rows, counts = np.bincount(kind, None, 4), np.bincount(kind, sample_weight, 4)
        recall = float(ratio(counts[3], counts[2] + counts[3]))
        few = rows[3] < SCARCE_ROWS and rows[2] + rows[3] >= ENOUGH_POSITIVES
        if recall >= SCARCE_RECALL and not few:
            return None

        def rate_at_useful_recall(tp: Counts, fp: Counts, fn: Counts, tn: Counts) -> Counts:
            return np.where(ratio(tp, tp + fn) >= USEFUL_RECALL, self.rate(tp, fp, fn, tn), -1.0)

        reached = best_threshold(y, z, rate_at_useful_recall, sample_weight).value
        return (
            f"the threshold that keeps {self.constraint()} flags only {rows[3]:,} of {rows[2] + rows[3]:,} positives "
            f"(recall {recall:.2g}); at a recall of {USEFUL_RECALL:g}, the best possible is {self.limited_rate(reached)}"
        )

    def limited_rate(self, rate: float) -> str:
        """Return a value of the rate that the constraint limits, in words."""
        return f"{self.constraint().split(' >= ')[0]} {rate:.3g}"

    def is_met(self, tp: Counts, fp: Counts, fn: Counts, tn: Counts) -> bool | AnyArray:
        """Tell where the constraint is met, up to the rounding of sums of weights; without a trial it is not."""
        successes, trials, limit = self.trials(tp, fp, fn, tn)
        return (trials > 0) & (successes >= limit * trials * (1.0 - ROUNDING))

    def rate(self, tp: Counts, fp: Counts, fn: Counts, tn: Counts) -> Counts:
        """Return the rate that the constraint limits."""
        successes, trials, _ = self.trials(tp, fp, fn, tn)
        return ratio(successes, trials)

    def chance(self, tp: Counts, fp: Counts, fn: Counts, tn: Counts) -> Counts:
        """Return the chance that another sample of this size meets the constraint (eq. limit-chance)."""
        successes, trials, limit = self.trials(tp, fp, fn, tn)
        deviation = np.sqrt(2.0 * limit * (1.0 - limit) * np.maximum(trials, 1.0))
        excess = successes - limit * trials
        if limit in (0.0, 1.0):  # the variance is 0
            return np.where(self.is_met(tp, fp, fn, tn), 1.0, 0.0)
        # Without a success on these rows, none is expected on others.
        return np.asarray(ndtr(excess / deviation) * (np.asarray(successes) > 0))

    def from_counts(self, tp: Counts, fp: Counts, fn: Counts, tn: Counts) -> Counts:
        """Return the target where the constraint is met, else 0 (eq. operating-points)."""
        return np.where(self.is_met(tp, fp, fn, tn), self.target(tp, fp, fn, tn), 0.0)

    def threshold_objective(self, tp: Counts, fp: Counts, fn: Counts, tn: Counts) -> Counts:
        """Return 1 + target where the constraint is met (with `confidence` if given), else how close it is."""
        if self.confidence is not None:
            return self.robust_value(tp, fp, fn, tn)
        return np.where(self.is_met(tp, fp, fn, tn), 1.0 + self.target(tp, fp, fn, tn), self.rate(tp, fp, fn, tn))

    def robust_value(self, tp: Counts, fp: Counts, fn: Counts, tn: Counts) -> Counts:
        """Return target times chance, or with `confidence` 1 + target where the chance reaches it, else the chance."""
        target, chance = self.target(tp, fp, fn, tn), self.chance(tp, fp, fn, tn)
        if self.confidence is None:
            return target * chance
        return np.where(chance >= self.confidence, 1.0 + target, chance)

    def value_with_margin(self, tp: Counts, fp: Counts, fn: Counts, tn: Counts) -> Counts:
        """Return the objective of a threshold on held-out rows: `robust_value` where the constraint is met."""
        if self.confidence is not None:
            return self.robust_value(tp, fp, fn, tn)
        met = self.is_met(tp, fp, fn, tn)
        return np.where(met, 1.0 + self.robust_value(tp, fp, fn, tn), self.rate(tp, fp, fn, tn))

    def unreached(self, y: AnyArray, z: FloatArray, sample_weight: FloatArray | None = None) -> str | None:
        """Return a warning if no threshold of the scores z meets the constraint, else None."""

        def closest(tp: Counts, fp: Counts, fn: Counts, tn: Counts) -> Counts:
            return np.where(self.is_met(tp, fp, fn, tn), 2.0, self.rate(tp, fp, fn, tn))

        value = best_threshold(y, z, closest, sample_weight, rises=True).value
        if value < 2.0:
            return f"no threshold keeps {self.constraint()}: the closest reaches {value:.3g}"
        if self.confidence is None:
            return None
        chance = best_threshold(y, z, self.chance, sample_weight, rises=True).value
        if chance >= self.confidence:
            return None
        return (
            f"no threshold keeps {self.constraint()} on held-out rows with a chance of {self.confidence:g}: "
            f"the best has {chance:.3g}"
        )

    def on_scores(self, y: AnyArray, z: FloatArray, sample_weight: FloatArray | None = None) -> float:
        """Return the best value over all thresholds of the scores z (0 if none meets the constraint)."""
        plain = copy.copy(self)
        plain.confidence = None
        return best_threshold(y, z, plain, sample_weight).value


def binomial_tail(successes: Counts, trials: Counts, rate: float) -> FloatArray:
    """Return P(Bin(trials, rate) >= successes), continuous in both counts; 1 without a success (eq. precision-test)."""
    s, m = np.broadcast_arrays(np.asarray(successes, dtype=np.float64), np.asarray(trials, dtype=np.float64))
    inside = (s > 0.0) & (s <= m)
    tail = np.where(s > 0.0, 0.0, 1.0)
    tail[inside] = betainc(s[inside], m[inside] - s[inside] + 1.0, rate)
    return tail


class RecallAtPrecision(OperatingPoint):
    """Recall, subject to a minimum precision."""

    name = "recall_at_precision"
    proved_on = "flagged rows"
    summary = "recall where precision is at least `precision`, else 0"

    def __init__(self, precision: float = 0.9, confidence: float | None = None, guarantee: float | None = None):
        check_rate("precision", precision)
        super().__init__(confidence, guarantee)
        self.precision = precision

    def target(self, tp: Counts, fp: Counts, fn: Counts, tn: Counts) -> Counts:
        return ratio(tp, tp + fn)

    def trials(self, tp: Counts, fp: Counts, fn: Counts, tn: Counts) -> tuple[Counts, Counts, float]:
        """Return true positives among all that are called positive."""
        return tp, tp + fp, self.precision

    def constraint(self) -> str:
        return f"precision >= {self.precision:g}"

    @property
    def label(self) -> str:
        return f"recall at {self.constraint()}"


class PrecisionAtRecall(OperatingPoint):
    """Precision, subject to a minimum recall."""

    name = "precision_at_recall"
    proved_on = "positives"
    ordered = True
    summary = "precision where recall is at least `recall`, else 0"

    def __init__(self, recall: float = 0.9, confidence: float | None = None, guarantee: float | None = None):
        check_rate("recall", recall)
        super().__init__(confidence, guarantee)
        self.recall = recall

    def target(self, tp: Counts, fp: Counts, fn: Counts, tn: Counts) -> Counts:
        return ratio(tp, tp + fp)

    def trials(self, tp: Counts, fp: Counts, fn: Counts, tn: Counts) -> tuple[Counts, Counts, float]:
        """Return true positives among all positives."""
        return tp, tp + fn, self.recall

    def constraint(self) -> str:
        return f"recall >= {self.recall:g}"

    @property
    def label(self) -> str:
        return f"precision at {self.constraint()}"


class TprAtFpr(OperatingPoint):
    """True positive rate, subject to a maximum false positive rate."""

    name = "tpr_at_fpr"
    proved_on = "negatives"
    ordered = True
    summary = "true positive rate where the false positive rate is at most `fpr`, else 0"

    def __init__(self, fpr: float = 0.01, confidence: float | None = None, guarantee: float | None = None):
        check_rate("fpr", fpr)
        super().__init__(confidence, guarantee)
        self.fpr = fpr

    def target(self, tp: Counts, fp: Counts, fn: Counts, tn: Counts) -> Counts:
        return ratio(tp, tp + fn)

    def trials(self, tp: Counts, fp: Counts, fn: Counts, tn: Counts) -> tuple[Counts, Counts, float]:
        """Return true negatives among all negatives: their share must be at least 1 - fpr."""
        return tn, fp + tn, 1.0 - self.fpr

    def is_met(self, tp: Counts, fp: Counts, fn: Counts, tn: Counts) -> bool | AnyArray:
        """Tell where the false positive rate is at most fpr, without the rounding of 1 - fpr."""
        return fp <= self.fpr * (fp + tn) * (1.0 + ROUNDING)

    @property
    def limit(self) -> float:
        return self.fpr

    def limited(self, tp: Counts, fp: Counts, fn: Counts, tn: Counts) -> Counts:
        return 1.0 - super().limited(tp, fp, fn, tn)

    def rows_for_proof(self, level: float) -> float:
        return float(np.log1p(-level) / np.log1p(-self.fpr)) if 0.0 < self.fpr < 1.0 else np.inf

    def constraint(self) -> str:
        return f"false positive rate <= {self.fpr:g}"

    def limited_rate(self, rate: float) -> str:
        """Return the false positive rate that belongs to a true negative rate, in words."""
        return f"a false positive rate of {1.0 - rate:.3g}"

    @property
    def label(self) -> str:
        return f"tpr at fpr <= {self.fpr:g}"


class RecallAtAlarms(OperatingPoint):
    """Recall, subject to a maximum number of alarms: a share of all rows, or a number in so many rows.

    Parameters
    ----------
    alarms : float or int
        Largest share of the rows that may be flagged; with `rows`, the largest number of them.
    rows : int, optional
        In how many rows: "at most 50 alarms in 10,000 rows". A guarantee is then about the next so many rows themselves.
    confidence, guarantee : float, optional
        As for all operating points.
    """

    name = "recall_at_alarms"
    summary = "recall where at most `alarms` of the rows are flagged, else 0"
    ordered = True
    rises = False  # a true positive is an alarm, too

    def __init__(
        self,
        alarms: float = 0.01,
        rows: int | None = None,
        confidence: float | None = None,
        guarantee: float | None = None,
    ):
        if rows is None:
            check_rate("alarms", alarms)
        else:
            check_number("rows", rows, least=1, integer=True)
            check_number("alarms", alarms, least=0, integer=True)
            if alarms > rows:
                raise ValueError(f"alarms={alarms!r} must be at most rows={rows!r}.")
        super().__init__(confidence, guarantee)
        self.alarms, self.rows = alarms, rows

    @property
    def limit(self) -> float:
        """The largest share of flagged rows."""
        return float(self.alarms if self.rows is None else self.alarms / self.rows)

    def target(self, tp: Counts, fp: Counts, fn: Counts, tn: Counts) -> Counts:
        return ratio(tp, tp + fn)

    def trials(self, tp: Counts, fp: Counts, fn: Counts, tn: Counts) -> tuple[Counts, Counts, float]:
        """Return the rows that are not flagged among all: their share must be at least 1 - limit."""
        return fn + tn, tp + fp + fn + tn, 1.0 - self.limit

    def is_met(self, tp: Counts, fp: Counts, fn: Counts, tn: Counts) -> bool | AnyArray:
        """Tell where the share of flagged rows is at most the limit, without the rounding of 1 - limit."""
        return tp + fp <= self.limit * (tp + fp + fn + tn) * (1.0 + ROUNDING)

    def limited(self, tp: Counts, fp: Counts, fn: Counts, tn: Counts) -> Counts:
        return 1.0 - super().limited(tp, fp, fn, tn)

    def proof(self, tp: Counts, fp: Counts, fn: Counts, tn: Counts) -> Counts:
        """Return the p-value of too many alarms; with `rows` the chance of more than `alarms` in them (eq. next-alarms)."""
        if self.rows is None:
            return super().proof(tp, fp, fn, tn)
        flagged, rest = np.asarray(tp + fp), np.asarray(fn + tn)
        return np.where(rest > 0, betabinom.sf(self.alarms, self.rows, flagged + 1.0, np.maximum(rest, 1.0)), 1.0)

    def rows_for_proof(self, level: float) -> float:
        if self.rows is None or self.limit == 0.0:
            return float(np.log1p(-level) / np.log1p(-self.limit)) if 0.0 < self.limit < 1.0 else np.inf
        count = 1.0
        while betabinom.sf(self.alarms, self.rows, 1.0, count) > 1.0 - level:
            count *= 1.01
        return count

    def constraint(self) -> str:
        if self.rows is None:
            return f"share of alarms <= {self.alarms:g}"
        return f"at most {self.alarms:,} alarms in {self.rows:,} rows"

    def limited_rate(self, rate: float) -> str:
        """Return the share of alarms that belongs to a share of rows without, in words."""
        return f"a share of alarms of {1.0 - rate:.3g}"

    @property
    def label(self) -> str:
        return f"recall with {self.constraint()}"


class RecallAtCost(OperatingPoint):
    """Recall, subject to a maximum mean cost per row.

    Parameters
    ----------
    cost : float
        Largest mean cost per row.
    cost_fp, cost_fn : float
        Cost of a false positive and of a missed positive.
    confidence, guarantee : float, optional
        As for all operating points.
    """

    name = "recall_at_cost"
    summary = "recall where the mean cost per row is at most `cost`, else 0"

    def __init__(
        self,
        cost: float = 0.1,
        cost_fp: float = 1.0,
        cost_fn: float = 1.0,
        confidence: float | None = None,
        guarantee: float | None = None,
    ):
        check_number("cost", cost, above=0)
        check_number("cost_fp", cost_fp, least=0)
        check_number("cost_fn", cost_fn, least=0)
        if cost >= max(cost_fp, cost_fn):
            raise ValueError(
                f"cost={cost!r} must be below the larger of cost_fp={cost_fp!r} and cost_fn={cost_fn!r}: no row costs more."
            )
        super().__init__(confidence, guarantee)
        self.cost, self.cost_fp, self.cost_fn = cost, cost_fp, cost_fn

    @property
    def limit(self) -> float:
        """The largest mean cost."""
        return self.cost

    def target(self, tp: Counts, fp: Counts, fn: Counts, tn: Counts) -> Counts:
        return ratio(tp, tp + fn)

    def trials(self, tp: Counts, fp: Counts, fn: Counts, tn: Counts) -> tuple[Counts, Counts, float]:
        """Return rows less their cost, in units of the larger cost, and the share of it that must be left."""
        largest = max(self.cost_fp, self.cost_fn)
        rows = tp + fp + fn + tn
        return rows - (self.cost_fp * fp + self.cost_fn * fn) / largest, rows, 1.0 - self.cost / largest

    def limited(self, tp: Counts, fp: Counts, fn: Counts, tn: Counts) -> Counts:
        """Return the mean cost per row."""
        return max(self.cost_fp, self.cost_fn) * (1.0 - super().limited(tp, fp, fn, tn))

    def proof(self, tp: Counts, fp: Counts, fn: Counts, tn: Counts) -> Counts:
        """Return the p-value of a mean cost above the limit (eq. cost-test)."""
        if self.one_cost:
            return super().proof(tp, fp, fn, tn)
        return self._bet(1.0, fp, fn, tp + tn)

    def p_value_if_met(self, tp: Counts, fp: Counts, fn: Counts, tn: Counts) -> Counts:
        """Return the p-value of a mean cost within the limit (eq. cost-test)."""
        if self.one_cost:
            return super().p_value_if_met(tp, fp, fn, tn)
        return self._bet(-1.0, fp, fn, tp + tn)

    @property
    def one_cost(self) -> bool:
        """Whether the cost of a row has two values only, so that the binomial tail is exact."""
        return min(self.cost_fp, self.cost_fn) in (0.0, max(self.cost_fp, self.cost_fn))

    def _bet(self, side: float, fp: Counts, fn: Counts, right: Counts) -> FloatArray:
        """Return 1 over the mean wealth of bets on a mean below the limit (side 1) or above it (side -1)."""
        largest = max(self.cost_fp, self.cost_fn)
        limit = self.cost / largest
        most = 1.0 / (1.0 - limit) if side > 0.0 else 1.0 / limit
        wealth = np.zeros(np.broadcast(fp, fn, right).shape)
        logs = []
        for bet in most * BETS * (1.0 - 1e-12):
            terms = ((fp, self.cost_fp), (fn, self.cost_fn), (right, 0.0))
            logs.append(wealth + sum(np.asarray(n) * np.log1p(bet * side * (limit - c / largest)) for n, c in terms))
        return np.asarray(np.minimum(np.exp(np.log(len(BETS)) - logsumexp(logs, axis=0)), 1.0))

    def constraint(self) -> str:
        return f"mean cost per row <= {self.cost:g}"

    def limited_rate(self, rate: float) -> str:
        """Return the mean cost that belongs to a share of the largest cost that is left, in words."""
        return f"a mean cost of {max(self.cost_fp, self.cost_fn) * (1.0 - rate):.3g}"

    @property
    def label(self) -> str:
        return f"recall at {self.constraint()}"
