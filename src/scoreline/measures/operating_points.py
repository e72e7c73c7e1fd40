"""Measures with a constraint: the best of one rate where another keeps its limit."""

from abc import abstractmethod
from typing import Any

import numpy as np

from scoreline._checks import check_number
from scoreline._typing import AnyArray, FloatArray
from scoreline.measures.base import CountsBasedMeasure, ratio
from scoreline.measures.counts import COUNT_RISKS


class OperatingPoint(CountsBasedMeasure):
    """A target rate, or 0 where the constraint is missed; evaluated on the predictions at the cut.

    `on_scores` gives the best that any threshold reaches.
    """

    risks = COUNT_RISKS

    @abstractmethod
    def target(self, tp: Any, fp: Any, fn: Any, tn: Any) -> Any:
        """Return the rate to be maximised."""

    @abstractmethod
    def kept(self, tp: Any, fp: Any, fn: Any, tn: Any) -> Any:
        """Return where the constraint holds."""

    @abstractmethod
    def constraint(self) -> str:
        """Return the constraint in words."""

    def from_counts(self, tp: Any, fp: Any, fn: Any, tn: Any) -> Any:
        """Return the target where the constraint holds, else 0."""
        return np.where(self.kept(tp, fp, fn, tn), self.target(tp, fp, fn, tn), 0.0)

    def on_scores(self, y: AnyArray, z: FloatArray, sample_weight: FloatArray | None = None) -> float:
        """Return the best value over all thresholds of the scores z (0 if none keeps the constraint)."""
        from scoreline.measures.cut import best_cut  # cut.py knows measures

        return best_cut(y, z, self, sample_weight).value


class RecallAtPrecision(OperatingPoint):
    """Recall, where precision keeps a floor."""

    name = "recall_at_precision"
    summary = "recall where precision is at least `precision`, else 0"

    def __init__(self, precision: float = 0.9):
        _check_rate("precision", precision)
        self.precision = precision

    def target(self, tp: Any, fp: Any, fn: Any, tn: Any) -> Any:
        """Return recall."""
        return ratio(tp, tp + fn)

    def kept(self, tp: Any, fp: Any, fn: Any, tn: Any) -> Any:
        """Return where precision is high enough; it is not where nothing is called positive."""
        return (tp > 0) & (tp >= self.precision * (tp + fp))

    def constraint(self) -> str:
        """Return the constraint in words."""
        return f"precision >= {self.precision:g}"


class PrecisionAtRecall(OperatingPoint):
    """Precision, where recall keeps a floor."""

    name = "precision_at_recall"
    summary = "precision where recall is at least `recall`, else 0"

    def __init__(self, recall: float = 0.9):
        _check_rate("recall", recall)
        self.recall = recall

    def target(self, tp: Any, fp: Any, fn: Any, tn: Any) -> Any:
        """Return precision."""
        return ratio(tp, tp + fp)

    def kept(self, tp: Any, fp: Any, fn: Any, tn: Any) -> Any:
        """Return where recall is high enough."""
        return (tp > 0) & (tp >= self.recall * (tp + fn))

    def constraint(self) -> str:
        """Return the constraint in words."""
        return f"recall >= {self.recall:g}"


class TprAtFpr(OperatingPoint):
    """True positive rate, where the false positive rate keeps a ceiling."""

    name = "tpr_at_fpr"
    summary = "true positive rate where the false positive rate is at most `fpr`, else 0"

    def __init__(self, fpr: float = 0.01):
        _check_rate("fpr", fpr)
        self.fpr = fpr

    def target(self, tp: Any, fp: Any, fn: Any, tn: Any) -> Any:
        """Return the true positive rate."""
        return ratio(tp, tp + fn)

    def kept(self, tp: Any, fp: Any, fn: Any, tn: Any) -> Any:
        """Return where few enough negatives are called positive."""
        return fp <= self.fpr * (fp + tn)

    def constraint(self) -> str:
        """Return the constraint in words."""
        return f"false positive rate <= {self.fpr:g}"


def _check_rate(name: str, value: float) -> None:
    check_number(name, value, above=0)
    if value > 1:
        raise ValueError(f"{name}={value!r} must be a rate of at most 1")
