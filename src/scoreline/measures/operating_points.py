"""Measures with a constraint: the best value of one rate subject to a limit on another."""

import copy
from abc import abstractmethod

import numpy as np
from scipy.special import ndtr

from scoreline.measures.base import CountsBasedMeasure, ratio
from scoreline.measures.counts import COUNT_RISKS
from scoreline.measures.thresholds import best_threshold
from scoreline.runtime.checks import check_number, check_rate
from scoreline.runtime.types import AnyArray, Counts, FloatArray

ROUNDING = 1e-13  # relative error of sums of weights
SCARCE_RECALL = 0.01  # a threshold with a lower recall flags almost nothing
SCARCE_ROWS, ENOUGH_POSITIVES = (
    5,
    50,
)  # so does one that flags fewer positives than the first, of at least the second number
USEFUL_RECALL = 0.1  # recall of the alternative that the warning names


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

    def __init__(self, confidence: float | None = None, guarantee: float | None = None):
        if confidence is not None:
            check_number("confidence", confidence, above=0)
            if confidence >= 1:
                raise ValueError(f"confidence={confidence!r} must be below 1, or None for the best expected value")
        if guarantee is not None:
            check_number("guarantee", guarantee, above=0)
            if guarantee >= 1:
                raise ValueError(f"guarantee={guarantee!r} must be below 1; 0.95 is usual.")
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


class RecallAtPrecision(OperatingPoint):
    """Recall, subject to a minimum precision."""

    name = "recall_at_precision"
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

    def constraint(self) -> str:
        return f"false positive rate <= {self.fpr:g}"

    def limited_rate(self, rate: float) -> str:
        """Return the false positive rate that belongs to a true negative rate, in words."""
        return f"a false positive rate of {1.0 - rate:.3g}"

    @property
    def label(self) -> str:
        return f"tpr at fpr <= {self.fpr:g}"
