"""The multivariate hinge of any count-based measure, smoothed by entropy, for solvers that need a gradient."""

import math
import zlib
from typing import Any, ClassVar, Self

import numpy as np
from scipy.special import gammaln, logsumexp

from scoreline.measures import Measure, get_measure
from scoreline.measures.ranking import AtKMeasure
from scoreline.risks.base import Evaluation, Reference, Risk, copied_rows
from scoreline.risks.marginals import loss_table
from scoreline.runtime.checks import check_number
from scoreline.runtime.types import AnyArray, FloatArray, Scores
from scoreline.scores import ScoreSpace


class EntropyContingencyRisk(Risk):
    """R(z) = mu log sum over labellings z' of exp((loss(z', y) + (1/n) sum_i z_i (z'_i - y_i)) / mu), loss = 1 - measure.

    The largest of the terms is the multivariate hinge of `ContingencyRisk` (eq. entropy-risk). R exceeds it by at most
    `within`, which is mu times the log of the number of labellings. R is smooth, convex, and still an upper bound of the loss
    of the predictions z > 0. Its gradient is -(2/n) y_i P(row i is flipped), from the marginals of `label_marginals`. It takes
    O(n^2) time and memory, so it is limited to a few thousand rows. It supports any function of the counts, even if no method
    is known to find the worst labelling: MCC, kappa, recall at a minimum precision, a `CountMeasure` (whose loss is measured
    in units of its spread over all counts).

    Parameters
    ----------
    measure : str or Measure
        A measure of the confusion counts, or "prbep".
    measure_params : dict, optional
        Its parameters, as for `MeasureClassifier`.
    within : float
        Largest distance from the risk without smoothing.
    """

    name = "contingency_entropy"
    research = True
    smooth = True
    real_weights = False
    most_rows: ClassVar[int] = 5000

    mu: float
    exponents: FloatArray  # loss / mu of b positives and k negatives flipped

    def __init__(
        self, measure: str | Measure = "f1", measure_params: dict[str, Any] | None = None, within: float = 0.05
    ) -> None:
        self.measure = get_measure(measure, measure_params)
        loss_table(self.measure, 1, 1)  # raises for a measure that is not count-based
        check_number("within", within, above=0)
        self.within = float(within)
        if isinstance(self.measure, AtKMeasure):
            self.shift = "invariant"

    @classmethod
    def for_measure(cls, measure: Measure) -> Self:
        """Return the risk of that measure."""
        return cls(measure)

    @classmethod
    def variants(cls) -> list[Risk]:
        """Return one risk for a separable loss, a mean of rates, ratios, a loss beyond 1 and one of fixed size."""
        return [cls(name) for name in ("accuracy", "f1", "gmean", "mcc", "prbep")]

    @property
    def steepness(self) -> float:
        """Change of the log-odds of a flip with the score: 2 / (n mu)."""
        return 2.0 * math.log(2.0) / self.within

    def prepare(self, y: Any, sample_weight: Any = None, space: ScoreSpace | None = None) -> Self:
        """Return a copy that holds labels, weights (of_all_rows numbers) and the loss of every pair of counts."""
        prepared = super().prepare(y, sample_weight, space)
        labels = prepared.labels
        if labels.total > self.most_rows:
            raise ValueError(
                f"risk {self.name!r} compares all pairs of rows and takes at most {self.most_rows} (copies included), got "
                f"{labels.total:g}. Train on a sample, or use risk='auto' (or risk='contingency' for the measures it knows)."
            )
        positive, negative = int(labels.positive), int(labels.negative)
        labellings = labels.total * math.log(2.0)
        if isinstance(self.measure, AtKMeasure):
            labellings = float(gammaln(labels.total + 1) - gammaln(positive + 1) - gammaln(negative + 1))
        prepared.mu = self.within / labellings
        prepared.exponents = self._loss(positive, negative) / prepared.mu
        return prepared

    def fingerprint(self) -> float:
        """Return a checksum that includes the loss of all counts, and so a user's own function."""
        return super().fingerprint() + float(zlib.crc32(self.exponents.tobytes()))

    def _loss(self, positive: int, negative: int) -> FloatArray:
        """Return the loss of every pair of counts; 0 for the true labelling, so that R is never negative."""
        loss = loss_table(self.measure, positive, negative)
        known = loss[~np.isneginf(loss)] if isinstance(self.measure, AtKMeasure) else loss
        if not np.isfinite(known).all():
            raise ValueError(
                f"measure {self.measure.name!r} is not finite for some counts of {positive} positives and {negative} "
                f"negatives, which risk {self.name!r} needs; define it there, or use risk='logistic'"
            )
        loss = loss - loss[0, 0]
        spread = float(known.max() - known.min())
        return np.asarray(loss / spread) if np.isinf(self.measure.range).any() and spread > 0.0 else loss

    def evaluate(self, z: Scores, mu: float = 0.0, out: Scores | None = None, grad: bool = True) -> Evaluation:
        """Return value, gradient (eq. entropy-gradient) and tangent plane, in O(n^2)."""
        scale = 2.0 / self.labels.total
        flips = self.space.flip_chances(z, self.labels, self.exponents, scale / self.mu, scale, out, grad)
        value = self.mu * flips.log_z
        if not grad:
            return Evaluation(value, None, value, np.nan, np.nan)
        # With large scores probabilities lose digits, so the plane is lowered by the rounding error.
        plane = value - self.space.dot(flips.grad, z) - flips.rounding_error
        return Evaluation(value, flips.grad, value, plane, flips.mass)

    def reference(
        self, z: FloatArray, y: AnyArray, sample_weight: FloatArray | None = None, mu: float = 0.0
    ) -> Reference:
        """Return (R, gradient, c) from the sums with and without the flip of each row, in more than O(n^3)."""
        prepared = self.prepare(y, sample_weight)
        rows = copied_rows(len(z), sample_weight)
        positive = np.asarray(y)[rows] > 0
        gains = np.where(positive, -2.0, 2.0) * z[rows] / (len(rows) * prepared.mu)

        def sums(mask: AnyArray) -> FloatArray:
            """Return the log of the total weight of flipping k of these rows, for every k."""
            logs = np.zeros(1)
            for gain in gains[mask]:
                logs = np.logaddexp(np.append(logs, -np.inf), np.append(-np.inf, logs + gain))
            return logs

        def log_z(above: FloatArray, below: FloatArray, table: FloatArray) -> float:
            return float(logsumexp(table + above[:, None] + below[None, :]))

        table = prepared.exponents
        of_all_rows = sums(positive), sums(~positive)
        total = log_z(*of_all_rows, table)
        grad = np.zeros(len(z))
        for i, row in enumerate(rows):
            others = np.arange(len(rows)) != i
            if positive[i]:
                flipped = gains[i] + log_z(sums(positive & others), of_all_rows[1], table[1:])
                grad[row] -= 2.0 / len(rows) * math.exp(flipped - total)
            else:
                flipped = gains[i] + log_z(of_all_rows[0], sums(~positive & others), table[:, 1:])
                grad[row] += 2.0 / len(rows) * math.exp(flipped - total)
        value = prepared.mu * total
        return value, grad, value - float(grad @ z)
