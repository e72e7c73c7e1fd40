"""Count-based measures, each a vectorised function of tp, fp, fn, tn."""

from collections.abc import Callable
from typing import Any

import numpy as np

from scoreline.measures.base import CountsBasedMeasure, ratio
from scoreline.runtime.checks import check_number
from scoreline.runtime.types import Counts, FloatArray

COUNT_RISKS = ("logistic", "squared_hinge", "hinge", "hinge_free_intercept", "contingency_entropy")
ALL_RISKS = (*COUNT_RISKS, "contingency")  # measures whose worst labelling is known


def near_one(*counts: Counts) -> list[FloatArray]:
    """Return counts times a power of two that brings their sum to about 1, so that products do not overflow."""
    exponent = -np.frexp(sum(counts))[1]
    with np.errstate(under="ignore"):
        return [np.ldexp(np.asarray(count, dtype=np.float64), exponent) for count in counts]


class ShapeError(ValueError):
    """A function of counts did not return one value per set of counts."""


def values_of_counts(func: Callable[..., Any], name: str, *counts: Any) -> FloatArray:
    """Call a user's function of tp, fp, fn, tn; errors refer to it by `name`.

    The function always receives one-dimensional float64 arrays, even for a single set of counts. They are copies, because the
    originals may be buffers that are used again. The result has the shape of the counts.
    """
    arrays = np.broadcast_arrays(*counts)
    shape = arrays[0].shape
    with np.errstate(all="ignore"):
        values = np.asarray(func(*(np.array(each, dtype=np.float64).ravel() for each in arrays)), dtype=np.float64)
    if values.shape != (arrays[0].size,):
        raise ShapeError(
            f"{name} returned shape {values.shape} for counts of shape {(arrays[0].size,)}, expected one value per set of "
            "counts. Use NumPy functions that work element by element."
        )
    return values.reshape(shape)


class Accuracy(CountsBasedMeasure):
    """Share of rows predicted right."""

    name = "accuracy"
    summary = "share of rows predicted correctly"
    risks = ("hinge", "logistic", "hinge_free_intercept", "contingency", "contingency_entropy")
    direct_risks = ("hinge", "hinge_free_intercept", "contingency", "contingency_entropy")

    def from_counts(self, tp: Counts, fp: Counts, fn: Counts, tn: Counts) -> Counts:
        """Return (TP + TN) / (TP + FP + FN + TN) (eq. accuracy)."""
        return ratio(tp + tn, tp + fp + fn + tn)


class BalancedAccuracy(CountsBasedMeasure):
    """Mean of the two rates TPR and TNR."""

    name = "balanced_accuracy"
    summary = "mean of the true positive and the true negative rate"
    risks = ALL_RISKS

    def from_counts(self, tp: Counts, fp: Counts, fn: Counts, tn: Counts) -> Counts:
        """Return (TPR + TNR) / 2 (eq. min-and-balanced)."""
        return 0.5 * (ratio(tp, tp + fn) + ratio(tn, tn + fp))


class FBeta(CountsBasedMeasure):
    """F-beta: harmonic mean of precision and recall, recall counting beta^2 times."""

    name = "fbeta"
    summary = "F-beta: harmonic mean of precision and recall, where recall has the weight beta²"
    risks = ALL_RISKS

    def __init__(self, beta: float = 1.0):
        check_number("beta", beta, above=0)
        self.beta = beta

    def from_counts(self, tp: Counts, fp: Counts, fn: Counts, tn: Counts) -> Counts:
        """Return (1 + B) TP / ((1 + B) TP + B FN + FP), B = beta^2 (eq. fbeta); 0 where the denominator is 0.

        Both terms are divided by 1 + B, so that nothing overflows for any beta.
        """
        of_fp = 1.0 / (1.0 + self.beta * self.beta)
        of_fn = 1.0 / (1.0 + 1.0 / self.beta / self.beta)
        return ratio(tp, tp + of_fn * fn + of_fp * fp)


class F1(FBeta):
    """F1: harmonic mean of precision and recall."""

    name = "f1"
    summary = "F1: harmonic mean of precision and recall"

    def __init__(self) -> None:
        super().__init__(beta=1.0)


class Jaccard(CountsBasedMeasure):
    """Jaccard index of the true and the predicted positives."""

    name = "jaccard"
    summary = "Jaccard: true positives divided by all rows that are positive or predicted positive"
    risks = ALL_RISKS

    def from_counts(self, tp: Counts, fp: Counts, fn: Counts, tn: Counts) -> Counts:
        """Return TP / (TP + FP + FN) (eq. jaccard)."""
        return ratio(tp, tp + fp + fn)


class GowerLegendre(CountsBasedMeasure):
    """Gower-Legendre: accuracy with errors counted sigma times.

    Parameters
    ----------
    sigma : float
        Weight of an error; positive.
    """

    name = "gower_legendre"
    research = True
    summary = "Gower-Legendre: correct predictions divided by correct plus sigma times wrong ones"
    risks = ALL_RISKS

    def __init__(self, sigma: float = 0.5):
        check_number("sigma", sigma, above=0)
        self.sigma = sigma

    def from_counts(self, tp: Counts, fp: Counts, fn: Counts, tn: Counts) -> Counts:
        """Return (TP + TN) / (TP + TN + sigma (FP + FN)) (eq. gower-legendre)."""
        with np.errstate(over="ignore"):  # for a huge sigma the result is 0
            return ratio(tp + tn, tp + tn + self.sigma * (fp + fn))


class GMean(CountsBasedMeasure):
    """Geometric mean of the two rates."""

    name = "gmean"
    summary = "G-mean: geometric mean of the true positive and the true negative rate"
    risks = ALL_RISKS

    def from_counts(self, tp: Counts, fp: Counts, fn: Counts, tn: Counts) -> Counts:
        """Return sqrt(TPR TNR) (eq. rate-means)."""
        return np.sqrt(ratio(tp, tp + fn) * ratio(tn, tn + fp))


class HMean(CountsBasedMeasure):
    """Harmonic mean of the two rates."""

    name = "hmean"
    summary = "H-mean: harmonic mean of the true positive and the true negative rate"
    risks = ALL_RISKS

    def from_counts(self, tp: Counts, fp: Counts, fn: Counts, tn: Counts) -> Counts:
        """Return 2 TPR TNR / (TPR + TNR), 0 where both are 0."""
        p, n = ratio(tp, tp + fn), ratio(tn, tn + fp)
        return ratio(2.0 * p * n, p + n)


class QMean(CountsBasedMeasure):
    """One minus the quadratic mean of the two error rates."""

    name = "qmean"
    summary = "Q-mean: one minus the quadratic mean of the two error rates"
    risks = ALL_RISKS

    def from_counts(self, tp: Counts, fp: Counts, fn: Counts, tn: Counts) -> Counts:
        """Return 1 - sqrt(((1 - TPR)^2 + (1 - TNR)^2) / 2)."""
        p, n = ratio(tp, tp + fn), ratio(tn, tn + fp)
        return 1.0 - np.sqrt(0.5 * ((1.0 - p) ** 2 + (1.0 - n) ** 2))


class MinTprTnr(CountsBasedMeasure):
    """The worse of the two rates."""

    name = "min_tpr_tnr"
    summary = "the smaller of the true positive and the true negative rate"
    risks = ALL_RISKS

    def from_counts(self, tp: Counts, fp: Counts, fn: Counts, tn: Counts) -> Counts:
        """Return min(TPR, TNR)."""
        return np.minimum(ratio(tp, tp + fn), ratio(tn, tn + fp))


class Mcc(CountsBasedMeasure):
    """Matthews' correlation of truth and prediction."""

    name = "mcc"
    summary = "Matthews correlation coefficient"
    range = (-1.0, 1.0)
    risks = COUNT_RISKS

    def from_counts(self, tp: Counts, fp: Counts, fn: Counts, tn: Counts) -> Counts:
        """Return (TP TN - FP FN) / sqrt((TP+FP)(TP+FN)(TN+FP)(TN+FN)) (eq. mcc), 0 where a factor is 0."""
        tp, fp, fn, tn = near_one(tp, fp, fn, tn)
        # Two square roots, because the product of all four sums may overflow.
        scale = np.sqrt((tp + fp) * (tn + fn)) * np.sqrt((tp + fn) * (tn + fp))
        return np.clip(ratio(tp * tn - fp * fn, scale), -1.0, 1.0)  # the roots are rounded


class Kappa(CountsBasedMeasure):
    """Cohen's kappa: agreement beyond chance."""

    name = "kappa"
    summary = "Cohen's kappa: agreement beyond chance"
    range = (-1.0, 1.0)
    risks = COUNT_RISKS

    def from_counts(self, tp: Counts, fp: Counts, fn: Counts, tn: Counts) -> Counts:
        """Return 2 (TP TN - FP FN) / ((TP+FP)(FP+TN) + (TP+FN)(FN+TN)) (eq. kappa), 0 where the denominator is 0."""
        tp, fp, fn, tn = near_one(tp, fp, fn, tn)
        return ratio(2.0 * (tp * tn - fp * fn), (tp + fp) * (fp + tn) + (tp + fn) * (fn + tn))


class Savings(CountsBasedMeasure):
    """Share of the cost saved, compared with the cheaper of flagging no row and flagging all rows.

    Costs that differ by row are weights of the rows: that of a negative is its cost as a false positive, that of a positive its
    cost if it is missed (`row_costs`).

    Parameters
    ----------
    cost_fp, cost_fn : float
        Cost of a false positive and of a missed positive.
    """

    name = "savings"
    summary = "share of the cost saved, compared with flagging no row, or all rows if that is cheaper"
    range = (-np.inf, 1.0)
    risks = COUNT_RISKS

    def __init__(self, cost_fp: float = 1.0, cost_fn: float = 1.0):
        check_number("cost_fp", cost_fp, above=0)
        check_number("cost_fn", cost_fn, above=0)
        self.cost_fp, self.cost_fn = cost_fp, cost_fn

    def from_counts(self, tp: Counts, fp: Counts, fn: Counts, tn: Counts) -> Counts:
        """Return 1 - cost / min(cost of flagging nothing, cost of flagging all) (eq. savings), 0 where that is 0."""
        cost = self.cost_fp * fp + self.cost_fn * fn
        base = np.minimum(self.cost_fn * (tp + fn), self.cost_fp * (fp + tn))
        return np.where(np.asarray(base) > 0.0, 1.0 - ratio(cost, base), 0.0)


class CountMeasure(CountsBasedMeasure):
    """Any vectorised function of the counts as a measure: a profit matrix, a cost, your own measure.

    Parameters
    ----------
    func : callable
        Maps tp, fp, fn, tn to one value per set of counts; larger is better. The arguments are always one-dimensional
        float64 arrays of equal length (of length 1 for a single set of counts), and they are copies. Division by zero
        gives inf or NaN without a warning; a threshold whose value is NaN is never chosen. The function is called once at
        construction on a few counts, so that an unsuitable function fails early.
    name : str
        Its name in reports.

    Examples
    --------
    >>> from scoreline import CountMeasure, MeasureClassifier
    >>> profit = CountMeasure(lambda tp, fp, fn, tn: 50.0 * tp - 2.0 * fp, name="profit")
    >>> clf = MeasureClassifier(profit)
    """

    summary = "a function of the counts, given by the user"
    range = (-np.inf, np.inf)
    risks = COUNT_RISKS
    rises = False  # nothing is known about the user's function
    scale_free = False

    def __init__(self, func: Callable[..., Any], name: str):
        if not callable(func):
            raise ValueError(f"func={func!r} must be a function of arrays tp, fp, fn, tn")
        if not isinstance(name, str) or not name:
            raise ValueError(f"name={name!r} must be a non-empty string")
        self.func = func
        self.name = name  # type: ignore[misc]  # of its own, where others have that of the class
        self._probe()

    def _probe(self) -> None:
        counts = np.array([[3.0, 0.0, 5.0], [1.0, 0.0, 2.0], [2.0, 5.0, 0.0], [7.0, 8.0, 6.0]])
        try:
            values = self.from_counts(*counts)
        except ShapeError:
            raise
        except Exception as error:
            raise ValueError(
                f"CountMeasure {self.name!r}: func failed on arrays tp, fp, fn, tn ({type(error).__name__}: {error}). It must "
                "be vectorised: use NumPy functions and np.where instead of if."
            ) from error
        if np.isnan(values).all():
            raise ValueError(f"CountMeasure {self.name!r}: func returned NaN for all counts it was tried on")

    def from_counts(self, tp: Counts, fp: Counts, fn: Counts, tn: Counts) -> Counts:
        """Return func(tp, fp, fn, tn)."""
        return values_of_counts(self.func, f"CountMeasure {self.name!r}: func", tp, fp, fn, tn)
