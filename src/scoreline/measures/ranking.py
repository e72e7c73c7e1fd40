"""Measures of the order of the scores."""

import numpy as np

from scoreline._typing import AnyArray, FloatArray
from scoreline.measures.base import RankingMeasure


class RocAuc(RankingMeasure):
    """Share of (positive, negative) pairs in the right order, ties counting half; pairs weighted by both weights."""

    name = "roc_auc"
    summary = "area under the ROC curve: share of (positive, negative) pairs in the right order"
    risks = ("roc_area", "logistic")

    def value(self, y: AnyArray, decision: FloatArray, sample_weight: FloatArray | None = None) -> float:
        """Return the area; O(n log n), NaN if a class is missing."""
        weight = np.ones(len(decision)) if sample_weight is None else np.asarray(sample_weight, dtype=float)
        order = np.argsort(decision, kind="stable")
        z, positive = np.asarray(decision)[order], (np.asarray(y) > 0)[order]
        ends = np.append(np.flatnonzero(z[1:] != z[:-1]), len(z) - 1)  # last row of each group of equal scores
        p, n = (
            np.diff(np.cumsum(np.where(side, weight[order], 0.0))[ends], prepend=0.0) for side in (positive, ~positive)
        )
        below = np.cumsum(n) - n
        pairs = p.sum() * n.sum()
        return float((p * (below + 0.5 * n)).sum() / pairs) if pairs > 0 else float("nan")
