"""The operations on scores that risks and solvers may use; each score space implements them."""

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from scoreline.runtime.types import FloatArray, Scores


@dataclass(frozen=True)
class Labels:
    """Labels and weights in the storage of their score space, with the totals that every risk needs.

    `sign` is +1 or -1 per row, `weight` the sample weights or None (1 for every row). `total`, `positive` and `negative`
    are sums of weights; `n_positive` and `n_negative` count rows.
    """

    sign: Any
    weight: Any
    total: float
    positive: float
    negative: float
    n_positive: int
    n_negative: int


class PointSums(NamedTuple):
    """Weighted sums over rows of a loss of the margin, and the gradient of `smooth` times the requested scale."""

    smooth: float
    slopes: float
    hard: float
    grad: Scores


class PairSums(NamedTuple):
    """Weighted sums over all (positive, negative) pairs, and the gradient of `smooth` times the requested scale."""

    smooth: float
    ramps: float
    hard: float
    grad: Scores


class BalanceSums(NamedTuple):
    """Sums over rows at the bias that balances the classes: ramps, hinges at their own bias, moved weight, the gradient."""

    smooth: float
    hard: float
    moved: float
    grad: Scores


class Moved(NamedTuple):
    """Weights of the rows of either class that change sides, sums of weight times score over them, the gradient."""

    above: float
    below: float
    above_sum: float
    below_sum: float
    grad: Scores


class WorstRanking(NamedTuple):
    """Average precision of the worst ranking, sum of |grad|, and the gradient of its cost times the requested scale."""

    precision: float
    mass: float
    grad: Scores


class Flips(NamedTuple):
    """Log of the sum over labellings, sum of |grad|, bound of the rounding error of <grad, z>, flip probabilities."""

    log_z: float
    mass: float
    rounding_error: float
    grad: Scores


class ScoreSpace(Protocol):
    """The interface of a score space. Only these operations access the scores."""

    def labels(self, y: Any, sample_weight: Any = None) -> Labels:
        """Bring labels +1/-1 and weights into this space."""

    def combine(self, a: float, x: Scores, b: float, y: Scores, out: Scores | None = None) -> Scores:
        """Return a x + b y, in `out` if given."""

    def zeros(self, labels: Labels) -> Scores:
        """Return the scores of w = 0."""

    def fingerprint(self, labels: Labels) -> float:
        """Return a checksum of the labels and weights."""

    def dot(self, x: Scores, y: Scores) -> float:
        """Return <x, y>, the same bits for any number of threads."""

    def max_abs(self, x: Scores, labels: Labels) -> float:
        """Return the largest magnitude among rows of positive weight."""

    def span(self, x: Scores, labels: Labels) -> float:
        """Return the distance from the smallest to the largest among rows of positive weight."""

    def is_finite(self, x: Scores) -> bool:
        """Tell whether all entries are finite."""

    def point_sums(
        self, loss: str, z: Scores, labels: Labels, width: float, scale: float, out: Scores | None, grad: bool
    ) -> PointSums:
        """Sum a named loss of the margins y z over the rows; `grad` asks for scale * s * y * slope."""

    def point_curvatures(self, loss: str, z: Scores, labels: Labels, scale: float, width: float = 0.0) -> Scores:
        """Return scale * s * second derivative of a named loss (of its ramp) at the margins y z, row by row."""

    def pair_curvatures(self, z: Scores, labels: Labels, width: float, margin: float = 1.0) -> Scores:
        """Return for every row s times the weight of the rows of the other class for which 0 < t <= width."""

    def balance_curvatures(self, z: Scores, labels: Labels, offset: float, width: float) -> Scores:
        """Return the weight of every row that is on the ramp at the balancing bias, 0 for the others."""

    def significant(self, x: Scores, labels: Labels, negligible: float) -> Scores:
        """Return x >= 0 with the smallest entries per unit of weight, in total a share `negligible` of the sum, set to 0."""

    def select(self, x: Scores, labels: Labels, side: int) -> Scores:
        """Return x on the rows of one class (+1 or -1), 0 on the others."""

    def total(self, x: Scores) -> float:
        """Return the sum of all rows."""

    def pair_sums(
        self, z: Scores, labels: Labels, width: float, scale: float, out: Scores | None, grad: bool, margin: float = 1.0
    ) -> PairSums:
        """Sum the ramp of t = margin - z_i + z_j over all pairs of a positive i and a negative j, in O(n log n)."""

    def balance_sums(
        self, z: Scores, labels: Labels, offset: float, width: float, scale: float, out: Scores | None, grad: bool
    ) -> BalanceSums:
        """Sum ramps of t = offset - z - tau (positives) and t = z + tau (negatives) at the tau that balances the classes."""

    def weighted(self, x: Scores, labels: Labels) -> Scores:
        """Return s_i x_i."""

    def per_weight(self, x: Scores, labels: Labels) -> Scores:
        """Return x_i / s_i, 0 for rows of weight 0."""

    def balancing_bias(self, z: Scores, labels: Labels, offset: float) -> float:
        """Return the tau of `balance_sums` at width 0."""

    def class_scores(self, z: Scores, labels: Labels) -> tuple[FloatArray, FloatArray]:
        """Return the scores of positives and of negatives in increasing order, each repeated as often as its weight."""

    def change_sides(
        self,
        z: Scores,
        labels: Labels,
        low: float,
        low_ties: float,
        high: float,
        high_ties: float,
        scale: float,
        out: Scores | None,
        grad: bool,
    ) -> Moved:
        """Move positives below `low`, negatives above `high`, and the given weight of the rows equal to these limits.

        With `grad`, also return -scale (positives) or +scale (negatives) times the moved weight of each row.
        """

    def worst_ranking(self, z: Scores, labels: Labels, scale: float, out: Scores | None) -> WorstRanking:
        """Find the ranking that maximises 1 - AP - scale * sum of z_i - z_j over its wrong pairs; weights are copies."""

    def flip_chances(
        self,
        z: Scores,
        labels: Labels,
        exponents: FloatArray,
        price: float,
        scale: float,
        out: Scores | None,
        grad: bool,
    ) -> Flips:
        """Sum exp(exponents[b, k] - price * sum of y z over flipped rows) over all flips; the gradient is -scale y P(flip)."""

    def top_share(self, z: Scores, labels: Labels, side: int, amount: float) -> Scores:
        """Return the share of each row of a class in the top `amount` of weight, equal for ties; 1 for other rows."""

    def reweighted(self, labels: Labels, share: Scores) -> Labels:
        """Return the labels with every weight times a share."""

    def soft_threshold(self, z: Scores, labels: Labels, side: int, amount: float, width: float) -> tuple[float, float]:
        """Return theta as (base, offset), at which the sum of s clip((z - theta) / width, 0, 1) over a class is `amount`."""

    def lifted(self, z: Scores, labels: Labels, threshold: tuple[float, float]) -> tuple[Scores, Scores]:
        """Return z - base, where positives are at least 1 + offset, and the amount by which they were lifted."""
