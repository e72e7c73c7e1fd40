"""Measures of the k highest scores."""

import math
from typing import Any, ClassVar

import numpy as np

from scoreline.measures.base import RankingMeasure, checked_rows, ratio
from scoreline.runtime.types import AnyArray, FloatArray
from scoreline.runtime.vectors import RemoteVector, as_vector
from scoreline.scores import smallest_reaching


class AtKMeasure(RankingMeasure):
    """A measure of the positives among the k highest scores.

    k is an integer (a number of rows, or of weight where there are weights), a share of the rows in (0, 1), or None: the
    number of positives of the data at hand. Rows tied at the k-th score count in part, each as much as any other: the
    value is the mean over all orders of the tied rows, so it does not depend on the order of the rows.
    """

    def __init__(self, k: float | None = None):
        if k is not None:
            whole = isinstance(k, (int, np.integer)) and not isinstance(k, bool) and k >= 1
            share = isinstance(k, (float, np.floating)) and 0.0 < k < 1.0
            if not (whole or share):
                raise ValueError(f"k={k!r} must be None, an integer of at least 1, or a share between 0 and 1")
        self.k = k

    def weight_at_top(self, y: AnyArray, sample_weight: FloatArray | None, exponent: int = 0) -> float:
        """Return k as a weight of rows for these labels; `exponent` is that of the power of two in the weights."""
        positive = as_vector(y) > 0
        weight = None if sample_weight is None else as_vector(sample_weight, np.float64)
        if self.k is None:
            return float(np.count_nonzero(positive) if weight is None else weight[positive].sum())
        if isinstance(self.k, (float, np.floating)):
            return float(self.k * (len(positive) if weight is None else weight.sum()))
        return math.ldexp(float(self.k), exponent)

    def true_at_top(
        self, y: AnyArray, decision: FloatArray, sample_weight: FloatArray | None
    ) -> tuple[float, float, float]:
        """Return the weight of positives among the k highest scores (eq. at-k-ties), k, and that of all positives."""
        if isinstance(decision, RemoteVector):
            return self._elsewhere(y, decision, sample_weight)
        positive, scores, weight, exponent = checked_rows(y, decision, sample_weight)
        weight = np.ones(len(scores)) if weight is None else weight
        k = self.weight_at_top(positive, weight, exponent)
        levels, place = np.unique(-np.asarray(scores, dtype=float), return_inverse=True)  # the highest score first
        all_rows = np.asarray(np.bincount(place, weights=weight, minlength=len(levels)), dtype=np.float64)
        true_rows = np.bincount(place, weights=weight * positive, minlength=len(levels))
        above = np.cumsum(all_rows) - all_rows
        share = ratio(np.clip(k - above, 0.0, all_rows), all_rows)  # of each group of equal scores that is in the top
        return float(share @ true_rows), k, float(true_rows.sum())

    def _elsewhere(self, y: Any, decision: Any, sample_weight: Any) -> tuple[float, float, float]:
        """Return the same of scores that lie elsewhere: the k-th score by selection, then sums above it and at it."""
        k, positive = self.weight_at_top(y, sample_weight), (y > 0).astype(np.int8)
        level = -smallest_reaching(-decision, sample_weight, k)
        kind = positive + 2 * (decision == level).astype(np.int8) + 4 * (decision > level).astype(np.int8)
        sums = np.bincount(kind, sample_weight, 8).astype(np.float64)
        share = float(np.clip(ratio(k - (sums[4] + sums[5]), sums[2] + sums[3]), 0.0, 1.0))
        return float(sums[5] + share * sums[3]), k, float(sums[1::2].sum())


class PrecisionAtK(AtKMeasure):
    """Share of positives among the k highest scores."""

    name = "precision_at_k"
    summary = "precision among the k highest scores"
    risks: ClassVar[tuple[str, ...]] = ("logistic", "roc_area", "contingency")

    def value(self, y: AnyArray, decision: FloatArray, sample_weight: FloatArray | None = None) -> float:
        """Return positives at the top over k (eq. at-k)."""
        true, k, _ = self.true_at_top(y, decision, sample_weight)
        return float(ratio(true, k))


class RecallAtK(AtKMeasure):
    """Share of all positives that are among the k highest scores."""

    name = "recall_at_k"
    summary = "recall of the k highest scores"
    risks = ("logistic", "roc_area", "contingency")

    def value(self, y: AnyArray, decision: FloatArray, sample_weight: FloatArray | None = None) -> float:
        """Return positives at the top over all positives."""
        true, _, positives = self.true_at_top(y, decision, sample_weight)
        return float(ratio(true, positives))


class Prbep(PrecisionAtK):
    """Precision/recall break-even: precision among the n+ highest scores, where precision equals recall (eq. prbep)."""

    name = "prbep"
    summary = "precision/recall break-even point: precision among the n+ highest scores"
    risks = ("prbep", "logistic", "roc_area", "contingency", "contingency_entropy")
    contenders = ("prbep", "logistic", "squared_hinge")

    def __init__(self) -> None:
        super().__init__(k=None)
