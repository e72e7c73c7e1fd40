"""The multivariate hinge of a count-based measure: the loss of the worst labelling minus the cost of its flips."""

from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from scoreline import kernels
from scoreline.measures import CountMeasure, Measure, get_measure
from scoreline.measures.base import CountsBasedMeasure
from scoreline.measures.ranking import AtKMeasure
from scoreline.risks.base import Evaluation, Reference, Risk, copied_rows
from scoreline.risks.ties import check_ties, smallest_change_of_counts
from scoreline.runtime.types import AnyArray, Counts, FloatArray, Scores
from scoreline.scores import ScoreSpace

LARGEST_SCORE = 2.0**1020  # sums of larger scores could overflow
Bounds = tuple[float, float, float, float]  # low, weight of ties with it, high, weight of ties with it


class Oracle(NamedTuple):
    """The method that finds the worst labelling: a kernel with its arguments, or fixed prices of an error in either class.

    `prices` are those of the separable losses: (price of a positive, of a negative) in shares of the class. With several
    pairs the loss is their maximum.
    """

    kernel: str = ""
    arguments: tuple[float, ...] = ()
    prices: tuple[tuple[float, float], ...] = ()


class ContingencyRisk(Risk):
    """R(z) = max over labellings z' of loss(z', y) + (1/n) sum_i z_i (z'_i - y_i), loss = 1 - measure.

    This is (eq. worst-labelling). The loss of a labelling depends only on its counts b (positives called negative) and c
    (negatives called positive), and the flipped rows are those of lowest and highest score. Therefore R(z) is the maximum over
    (b, c) of loss(b, c) - (2/n) (sum of the b smallest positives) + (2/n) (sum of the c largest negatives). After sorting the
    classes in O(n log n) it takes one walk over O(n) pairs (`kernels/contingency.py`). Accuracy, balanced accuracy and
    min(TPR, TNR) need no order and take O(n). Joachims (2005); Zhang, Saha and Vishwanathan (2012).

    R is at least 1 - measure of the predictions z > 0, except for precision and recall at k with k other than n+. Their
    labellings exclude the true one, so R is unbounded below under a common shift of all scores. Instead max(0, R) is trained;
    centre the features (scaling="standard") to prevent such shifts. Not smoothable; `solver="bundle_ocas"` minimises it.

    Parameters
    ----------
    measure : str or Measure
        accuracy, balanced_accuracy, f1, fbeta, jaccard, gower_legendre, gmean, hmean, qmean, min_tpr_tnr, prbep,
        precision_at_k, recall_at_k.
    measure_params : dict, optional
        beta, sigma or k, as for `MeasureClassifier`. A share k is rounded to a number of rows.
    ties : str
        "any", or "smallest": see `scoreline.risks.ties`.
    """

    name = "contingency"
    measures: ClassVar[tuple[str, ...]] = (
        "accuracy", "balanced_accuracy", "f1", "fbeta", "gmean", "gower_legendre", "hmean", "jaccard", "min_tpr_tnr", "prbep",
        "precision_at_k", "qmean", "recall_at_k",
    )  # fmt: skip
    k: int  # rows called positive, if the measure fixes their number
    oracle: Oracle
    separable: ClassVar[tuple[str, ...]] = ("accuracy", "balanced_accuracy", "min_tpr_tnr")  # every row decides alone

    def __init__(
        self, measure: str | Measure = "f1", measure_params: dict[str, Any] | None = None, ties: str = "any"
    ) -> None:
        self.measure = get_measure(measure, measure_params)
        if self.measure.name not in self.measures or isinstance(self.measure, CountMeasure):
            own = ", a function of your own" if isinstance(self.measure, CountMeasure) else ""
            raise ValueError(
                f"risk 'contingency' has no way to find the worst labelling for measure {self.measure.name!r}{own}; it knows "
                f"{', '.join(self.measures)}. Use risk='auto' or risk='logistic' with the threshold for this measure."
            )
        self.ties = check_ties(ties)
        if isinstance(self.measure, AtKMeasure):
            self.shift = "invariant" if self.measure.name == "prbep" else "linear"
            self.samples = self.measure.name == "prbep"
        self.real_weights = self.measure.name in self.separable

    @classmethod
    def for_measure(cls, measure: Measure) -> Self:
        """Return the risk of that measure."""
        return cls(measure)

    @classmethod
    def variants(cls) -> list[Risk]:
        """Return one risk for every measure, and for betas on either side of 1."""
        risks: list[Risk] = [cls(name) for name in cls.measures]
        risks += [cls("fbeta", {"beta": beta}) for beta in (0.2, 3.0)] + [cls("gower_legendre", {"sigma": 2.0})]
        return risks + [cls(name, {"k": k}) for name in ("precision_at_k", "recall_at_k") for k in (1, 0.8)]

    def prepare(self, y: Any, sample_weight: Any = None, space: ScoreSpace | None = None) -> Self:
        """Return a copy with labels and weights; weights must be integers except for separable losses."""
        prepared = super().prepare(y, sample_weight, space)
        labels = prepared.labels
        k = 0
        if isinstance(self.measure, AtKMeasure):
            k = max(1, round(self.measure.weight_at_top(np.asarray(y), sample_weight)))
            if k > labels.total:
                raise ValueError(
                    f"k={k} of measure {self.measure.name!r} exceeds the {labels.total:g} rows at hand (held-out rows are not "
                    "among them); give k as a share of the rows, like k=0.1, or use risk='logistic'"
                )
        prepared.k = k
        prepared.oracle = self._oracle(labels.positive, labels.negative, k)
        return prepared

    def title(self) -> str:
        return f"risk 'contingency' for measure {self.measure.name!r}"

    def _oracle(self, positive: float, negative: float, k: int) -> Oracle:
        """Return the method that is valid for the loss, see `kernels/contingency.py`."""
        measure, module = self.measure, kernels.contingency
        at_k = {"prbep": 1.0 / positive, "recall_at_k": 1.0 / positive, "precision_at_k": 1.0 / max(k, 1)}
        total = positive + negative
        oracles = {
            "accuracy": Oracle(prices=((positive / total, negative / total),)),
            "balanced_accuracy": Oracle(prices=((0.5, 0.5),)),
            "min_tpr_tnr": Oracle(prices=((1.0, 0.0), (0.0, 1.0))),
            "gmean": Oracle("rate_means", (module.GMEAN,)),
            "hmean": Oracle("rate_means", (module.HMEAN,)),
            "qmean": Oracle("rate_means", (module.QMEAN,)),
            "jaccard": Oracle("precision_means", (module.JACCARD, 1.0)),
            "gower_legendre": Oracle("error_counts", (float(getattr(measure, "sigma", 0.0)),)),
        }
        if measure.name in at_k:
            return Oracle("fixed_size", (k, at_k[measure.name]))
        if measure.name in ("f1", "fbeta"):
            return Oracle("precision_means", (module.FBETA, float(getattr(measure, "beta", 1.0)) ** 2))
        return oracles[measure.name]

    def loss(self, b: Counts, c: Counts) -> Counts:
        """Return 1 - measure with b positives and c negatives on the wrong side, vectorised (eq. fbeta-loss)."""
        plus, minus = self.labels.positive, self.labels.negative
        if isinstance(self.measure, AtKMeasure):
            return 1.0 - (plus - b) / (self.k if self.measure.name == "precision_at_k" else plus)
        assert isinstance(self.measure, CountsBasedMeasure)
        return 1.0 - self.measure.from_counts(plus - b, c, b, minus - c)

    def evaluate(self, z: Scores, mu: float = 0.0, out: Scores | None = None, grad: bool = True) -> Evaluation:
        """Return value, subgradient and plane of the worst labelling.

        grad_i = -2/n on flipped positives, +2/n on flipped negatives (times the flipped copies); c = its loss. Among
        equally bad labellings it is the first one found, with rows of equal score in their order.
        """
        labels, space = self.labels, self.space
        h = 2.0 / labels.total
        if self.ties == "smallest" and grad:
            return smallest_change_of_counts(self, z, out)
        if self.oracle.prices:
            best = max(self._separable(z, h, prices) for prices in self.oracle.prices)
            bounds = best[1]
        else:
            above, below = space.class_scores(z, labels)
            if max(abs(float(side[end])) for side in (above, below) for end in (0, -1)) > LARGEST_SCORE:
                return self._unknown(out, grad)
            b, c = getattr(kernels.contingency, self.oracle.kernel)(*self.oracle.arguments, above, below, h)
            bounds = *_lowest(above, b), *_highest(below, c)
        moved = space.change_sides(z, labels, *bounds, h, out, grad)
        plane = float(self.loss(moved.above, moved.below))
        value = plane + h * (moved.below_sum - moved.above_sum)
        # max(0, R) has the plane (0, 0) (eq. at-k-positive-part). For other measures rounding made a negative value.
        zero = value < 0.0 or (self.shift == "linear" and value == 0.0)
        if not grad:
            value = 0.0 if zero else value
            return Evaluation(value, None, value, np.nan, np.nan)
        if zero:
            moved = moved._replace(grad=space.combine(0.0, moved.grad, 0.0, moved.grad, moved.grad))
            return Evaluation(0.0, moved.grad, 0.0, 0.0, 0.0)
        return Evaluation(value, moved.grad, value, plane, h * (moved.above + moved.below))

    def _unknown(self, out: Scores | None, grad: bool) -> Evaluation:
        """Return NaN, because sums of such scores overflow and the worst labelling is unknown."""
        rows = self.space.zeros(self.labels)
        slope = self.space.combine(np.nan, rows, np.nan, rows, out) if grad else None
        return Evaluation(np.nan, slope, np.nan, np.nan, np.nan)

    def _separable(self, z: Scores, h: float, prices: tuple[float, float]) -> tuple[float, Bounds]:
        """Return the value of a loss with fixed prices (eq. fixed-prices), and the bounds beyond which rows flip."""
        labels = self.labels
        low, high = prices[0] / (labels.positive * h), -prices[1] / (labels.negative * h)
        moved = self.space.change_sides(z, labels, low, 0.0, high, 0.0, h, None, False)
        price = prices[0] * moved.above / labels.positive + prices[1] * moved.below / labels.negative
        return price + h * (moved.below_sum - moved.above_sum), (low, 0.0, high, 0.0)

    def reference(
        self, z: FloatArray, y: AnyArray, sample_weight: FloatArray | None = None, mu: float = 0.0
    ) -> Reference:
        """Return (R, subgradient, c) by trying every pair of counts: O(n+ n-), copies of rows one by one."""
        prepared = self.prepare(y, sample_weight)
        if sample_weight is not None and self.real_weights:
            return prepared._separable_reference(z, np.asarray(y) > 0, np.asarray(sample_weight, dtype=float))
        rows = copied_rows(len(z), sample_weight)
        scores, positive = z[rows], np.asarray(y)[rows] > 0
        above = np.flatnonzero(positive)[np.argsort(scores[positive], kind="stable")]
        below = np.flatnonzero(~positive)[np.argsort(-scores[~positive], kind="stable")]
        h = 2.0 / len(rows)
        loss, table = prepared.values_of_all_counts(scores[above], scores[below])
        i, j = np.unravel_index(np.argmax(table), table.shape)
        grad = np.zeros(len(z))
        if self.shift == "linear" and table[i, j] <= 0.0:
            return 0.0, grad, 0.0
        np.add.at(grad, rows[above[:i]], -h)
        np.add.at(grad, rows[below[:j]], h)
        return float(table[i, j]), grad, float(loss[i, j])

    def values_of_all_counts(self, above: FloatArray, below: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the loss of flipping the first b of the positives and c of the negatives, and that plus what scores gain."""
        h = 2.0 / self.labels.total
        gains = [np.append(0.0, np.cumsum(side * h * scores)) for side, scores in ((-1, above), (1, below))]
        b, c = (np.arange(len(g), dtype=float) for g in gains)
        loss = np.broadcast_to(self.loss(b[:, None], c[None, :]), (len(b), len(c)))
        if isinstance(self.measure, AtKMeasure):
            loss = np.where(c[None, :] == b[:, None] + self.k - len(above), loss, -np.inf)
        return loss, loss + gains[0][:, None] + gains[1][None, :]

    def _separable_reference(self, z: FloatArray, positive: AnyArray, s: FloatArray) -> Reference:
        """Return the largest over the prices of sum_i s_i max(0, gain of flipping row i)."""
        best: Reference | None = None
        for above, below in self.oracle.prices:
            price = np.where(positive, above / s[positive].sum(), below / s[~positive].sum())
            slope = np.where(positive, -2.0, 2.0) / s.sum()
            flipped = price + slope * z > 0.0
            value = float((s * (price + slope * z))[flipped].sum())
            if best is None or value > best[0]:
                best = value, s * slope * flipped, float((s * price)[flipped].sum())
        assert best is not None
        return best


def _lowest(scores: FloatArray, count: int) -> tuple[float, float]:
    """Return (bound, ties): the `count` lowest scores are those below the bound and `ties` of those equal to it."""
    if count == 0:
        return -np.inf, 0.0
    if count == len(scores):
        return np.inf, 0.0
    bound = float(scores[count])
    first = int(np.searchsorted(scores, bound, side="left"))
    return bound, float(count - first)


def _highest(scores: FloatArray, count: int) -> tuple[float, float]:
    """Return (bound, ties) for the `count` highest scores, which are above the bound."""
    if count == 0:
        return np.inf, 0.0
    if count == len(scores):
        return -np.inf, 0.0
    bound = float(scores[len(scores) - count - 1])
    last = int(np.searchsorted(scores, bound, side="right"))
    return bound, float(count - (len(scores) - last))
