"""Measures of the confusion counts."""

from typing import Any

from scoreline.measures.base import CountsBasedMeasure


class Accuracy(CountsBasedMeasure):
    """Share of rows predicted right."""

    name = "accuracy"
    summary = "share of rows predicted right"
    risks = ("hinge", "logistic")

    def from_counts(self, tp: Any, fp: Any, fn: Any, tn: Any) -> Any:
        """Return (TP + TN) / (TP + FP + FN + TN)."""
        return (tp + tn) / (tp + fp + fn + tn)
