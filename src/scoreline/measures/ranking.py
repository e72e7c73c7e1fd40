"""Ranking measures, of all rows or of the k highest scores."""

import math
from typing import Any, ClassVar

import numpy as np

from scoreline.measures.base import RankingMeasure, checked_rows, ratio
from scoreline.runtime.checks import check_rate
from scoreline.runtime.types import AnyArray, FloatArray
from scoreline.runtime.vectors import RemoteVector, as_vector
from scoreline.scores import smallest_reaching, space_of


class RocAuc(RankingMeasure):
    """Share of (positive, negative) pairs in the right order; ties count half, and pairs have the product of both weights."""

    name = "roc_auc"
    summary = "area under the ROC curve: share of (positive, negative) pairs in the right order"
    risks = ("roc_area", "roc_area_squared", "logistic")
    direct_risks = ("roc_area", "roc_area_squared")

    def value(self, y: AnyArray, decision: FloatArray, sample_weight: FloatArray | None = None) -> float:
        """Return the area (eq. auc) in O(n log n), NaN if a class is missing."""
        if isinstance(decision, RemoteVector):
            _check_finite(decision)
            return _remote_area(y, decision, sample_weight)
        positive, z, weight, _ = checked_rows(y, decision, sample_weight)
        _check_finite(z)
        if len(z) == 0:
            return float("nan")
        weight = np.ones(len(z)) if weight is None else weight
        order = np.argsort(z, kind="stable")
        z, positive = z[order], positive[order]
        ends = np.append(np.flatnonzero(z[1:] != z[:-1]), len(z) - 1)  # last row of each group of equal scores
        p, n = (
            np.diff(np.cumsum(np.where(side, weight[order], 0.0))[ends], prepend=0.0) for side in (positive, ~positive)
        )
        below = np.cumsum(n) - n
        above, all_below = float(p.sum()), float(n.sum())
        if not (above > 0.0 and all_below > 0.0):
            return float("nan")
        return float(((p / above) * ((below + 0.5 * n) / all_below)).sum())


class PartialRocAuc(RankingMeasure):
    """ROC area up to a false positive rate, standardised by McClish as scikit-learn's roc_auc_score does."""

    name = "partial_roc_auc"
    summary = "area under the ROC curve up to false positive rate max_fpr, rescaled so that chance is 0.5"
    risks = ("roc_area", "partial_roc", "roc_area_squared", "logistic")
    direct_risks = ("partial_roc",)
    contenders = ("roc_area", "logistic", "squared_hinge")

    def __init__(self, max_fpr: float = 0.1):
        check_rate("max_fpr", max_fpr)
        self.max_fpr = max_fpr

    def value(self, y: AnyArray, decision: FloatArray, sample_weight: FloatArray | None = None) -> float:
        """Return scikit-learn's roc_auc_score with this max_fpr (eq. pauc), NaN if a class is missing."""
        truth, z, weight = _ranked(y, decision, sample_weight)
        if truth.all() or not truth.any():
            return float("nan")
        from sklearn.metrics import roc_auc_score

        return float(roc_auc_score(truth, z, sample_weight=weight, max_fpr=self.max_fpr))

    def from_levels(self, positive: FloatArray, negative: FloatArray) -> FloatArray:
        """Return the values of many samples: trapezoids up to max_fpr, the last one in part."""
        true, false = positive.sum(axis=1), negative.sum(axis=1)
        limit = self.max_fpr
        before = np.cumsum(negative, axis=1) - negative
        inside = np.clip(limit * false[:, None] - before, 0.0, negative)  # of the negatives of each level
        height = np.cumsum(positive, axis=1) - positive + 0.5 * positive * ratio(inside, negative)
        area = ratio((inside * height).sum(axis=1), true * false)
        least = 0.5 * limit * limit
        return np.where(true * false > 0.0, 0.5 * (1.0 + (area - least) / (limit - least)), np.nan)


class AveragePrecision(RankingMeasure):
    """Mean over the positives of the precision at their place, the same for tied rows."""

    name = "average_precision"
    summary = "average precision: mean of the precision at the rank of each positive"
    risks = ("logistic", "roc_area", "roc_area_squared", "average_precision")
    direct_risks = ("average_precision",)
    contenders = ("logistic", "roc_area", "squared_hinge")

    def value(self, y: AnyArray, decision: FloatArray, sample_weight: FloatArray | None = None) -> float:
        """Return scikit-learn's average_precision_score (eq. average-precision), NaN if there is no positive."""
        truth, z, weight = _ranked(y, decision, sample_weight)
        if not truth.any():
            return float("nan")
        from sklearn.metrics import average_precision_score

        return float(average_precision_score(truth, z, sample_weight=weight))

    def from_levels(self, positive: FloatArray, negative: FloatArray) -> FloatArray:
        """Return the values of many samples."""
        above, total = np.cumsum(positive, axis=1), positive.sum(axis=1)
        precision = ratio(above, above + np.cumsum(negative, axis=1))
        return np.where(total > 0.0, ratio((positive * precision).sum(axis=1), total), np.nan)


class AtKMeasure(RankingMeasure):
    """A measure of the positives among the k highest scores.

    k is an integer (a number of rows, or with weights an amount of weight), a share of the rows in (0, 1), or None for the
    number of positives in the data. Rows tied at the k-th score count equally and in part: the value is the mean over all
    orders of the tied rows, so it does not depend on the order of the rows.
    """

    direct_risks: ClassVar[tuple[str, ...]] = ("contingency",)

    def __init__(self, k: float | None = None):
        if k is not None:
            is_count = isinstance(k, (int, np.integer)) and not isinstance(k, bool) and k >= 1
            is_share = isinstance(k, (float, np.floating)) and 0.0 < k < 1.0
            if not (is_count or is_share):
                raise ValueError(f"k={k!r} must be None, an integer of at least 1, or a share between 0 and 1")
        self.k = k

    def weight_at_top(self, y: AnyArray, sample_weight: FloatArray | None, exponent: int = 0) -> float:
        """Return k as a weight of rows for these labels; the weights were multiplied by 2^exponent."""
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
            return self._remote_true_at_top(y, decision, sample_weight)
        positive, scores, weight, exponent = checked_rows(y, decision, sample_weight)
        weight = np.ones(len(scores)) if weight is None else weight
        k = self.weight_at_top(positive, weight, exponent)
        levels, place = np.unique(-np.asarray(scores, dtype=float), return_inverse=True)  # the highest score first
        all_rows = np.asarray(np.bincount(place, weights=weight, minlength=len(levels)), dtype=np.float64)
        true_rows = np.bincount(place, weights=weight * positive, minlength=len(levels))
        above = np.cumsum(all_rows) - all_rows
        share = ratio(np.clip(k - above, 0.0, all_rows), all_rows)  # the part of each group of equal scores in the top
        return float(share @ true_rows), k, float(true_rows.sum())

    def levels_at_top(self, positive: FloatArray, negative: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the weight of positives among the k highest scores, and k, for many samples as `from_levels` takes them."""
        rows = positive + negative
        if self.k is None:
            k = positive.sum(axis=1)
        else:
            k = np.full(len(rows), float(self.k)) if self.k >= 1 else self.k * rows.sum(axis=1)
        share = ratio(np.clip(k[:, None] - (np.cumsum(rows, axis=1) - rows), 0.0, rows), rows)
        return (share * positive).sum(axis=1), k

    def _remote_true_at_top(self, y: Any, decision: Any, sample_weight: Any) -> tuple[float, float, float]:
        """Return the same for remote scores: the k-th score by selection, then sums above it and at it."""
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

    def from_levels(self, positive: FloatArray, negative: FloatArray) -> FloatArray:
        """Return the values of many samples."""
        return ratio(*self.levels_at_top(positive, negative))


class RecallAtK(AtKMeasure):
    """Share of all positives that are among the k highest scores."""

    name = "recall_at_k"
    summary = "recall of the k highest scores"
    risks = ("logistic", "roc_area", "contingency")

    def value(self, y: AnyArray, decision: FloatArray, sample_weight: FloatArray | None = None) -> float:
        """Return positives at the top over all positives."""
        true, _, positives = self.true_at_top(y, decision, sample_weight)
        return float(ratio(true, positives))

    def from_levels(self, positive: FloatArray, negative: FloatArray) -> FloatArray:
        """Return the values of many samples."""
        return ratio(self.levels_at_top(positive, negative)[0], positive.sum(axis=1))


class Prbep(PrecisionAtK):
    """Precision/recall break-even: precision among the n+ highest scores, where precision equals recall (eq. prbep)."""

    name = "prbep"
    summary = "precision/recall break-even point: precision among the n+ highest scores"
    risks = ("prbep", "logistic", "roc_area", "contingency", "contingency_entropy")
    direct_risks = ("prbep", "contingency", "contingency_entropy")
    contenders = ("prbep", "logistic", "squared_hinge")

    def __init__(self) -> None:
        super().__init__(k=None)


def _check_finite(decision: Any) -> None:
    if not np.isfinite(decision).all():
        raise ValueError("scores must be finite to be ranked; they hold NaN or infinity")


def _ranked(y: Any, decision: Any, sample_weight: Any) -> tuple[AnyArray, AnyArray, AnyArray | None]:
    """Return truth, scores and weights of the rows of positive weight for scikit-learn's functions."""
    # These subtract scores from each other, so scores whose differences would overflow are replaced by their ranks.
    rows = (y, decision, sample_weight)
    y, decision, sample_weight = (np.asarray(v) if isinstance(v, RemoteVector) else v for v in rows)  # to the host
    truth, z, weight, _ = checked_rows(y, decision, sample_weight)
    _check_finite(z)
    if weight is not None:
        there = weight > 0.0
        truth, z, weight = truth[there], z[there], weight[there]
    if z.dtype.kind == "f" and len(z) and float(np.abs(z).max()) > 0.5 * np.finfo(z.dtype).max:
        z = np.unique(z, return_inverse=True)[1]
    return truth, z, weight


def _remote_area(y: RemoteVector, decision: RemoteVector, weight: RemoteVector | None) -> float:
    """Return the ROC area of remote scores from the pairs in the wrong order, in the right order, and tied."""
    space = space_of(decision)
    sign = decision.like(2 * (y > 0).astype(np.int8) - 1)
    labels = space.labels(sign, None if weight is None else as_vector(weight))
    pairs = labels.positive * labels.negative
    if not pairs > 0:
        return float("nan")
    wrong, right = (
        space.pair_sums(z, labels, 0.0, 1.0, None, grad=False, margin=0.0).ramps for z in (decision, -decision)
    )
    return float(0.5 + 0.5 * (right - wrong) / pairs)
