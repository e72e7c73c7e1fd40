"""The interface of a measure: a number from labels and decision values, and the objective of its threshold."""

import inspect
from abc import ABC, abstractmethod
from typing import Any, ClassVar, NamedTuple

import numpy as np

from scoreline.runtime.types import AnyArray, Counts, FloatArray
from scoreline.runtime.vectors import RemoteVector, as_vector, scaled_to_safe_range

MIN_WEIGHT_RATIO = 1e-290  # least ratio of the largest weights of the two classes at which counts keep their digits
MAX_TOTAL_WEIGHT = 1e300  # largest sum of weights that must not be rescaled


class Measure(ABC):
    """A score that people report; larger is better.

    Attributes
    ----------
    name : str
        The name used in `MeasureClassifier(measure=...)`.
    summary : str
        A description in one line.
    range : tuple of float
        Smallest and largest possible value.
    risks : tuple of str
        Risks that can be trained for it, the preferred one first.
    direct_risks : tuple of str
        Those of them that are surrogates of this very measure.
    contenders : tuple of str
        Risks among which MeasureClassifierCV chooses with risk="auto"; if empty, it uses the preferred one.
    uses_order : bool
        True if only the order of the decision values matters, False if only their sign does.
    rises : bool
        Whether the objective of its threshold never decreases with true positives and never increases with false ones.
    scale_free : bool
        Whether only ratios of weights matter to it and to its threshold, so that weights can be rescaled.
    research : bool
        Whether it is only of scientific interest; lists show such measures last.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    risks: ClassVar[tuple[str, ...]]
    direct_risks: ClassVar[tuple[str, ...]] = ()
    contenders: ClassVar[tuple[str, ...]] = ()
    uses_order: ClassVar[bool]
    rises: ClassVar[bool] = True
    scale_free: bool = True
    research: ClassVar[bool] = False

    @property
    def label(self) -> str:
        """Its name in reports, with its parameters if it has any."""
        given = [(name, getattr(self, name, None)) for name in inspect.signature(type(self)).parameters]
        words = [f"{name}={value:g}" for name, value in given if isinstance(value, (int, float))]
        return f"{self.name} ({', '.join(words)})" if words else self.name

    @abstractmethod
    def value(self, y: AnyArray, decision: FloatArray, sample_weight: FloatArray | None = None) -> float:
        """Return the measure for labels y (positive where y > 0) and decision values (positive above 0)."""

    @abstractmethod
    def threshold_objective(self, tp: Counts, fp: Counts, fn: Counts, tn: Counts) -> Counts:
        """Return the objective of the threshold, vectorised over arrays of weighted counts."""


class RankingMeasure(Measure):
    """A measure of the order of the scores; its threshold maximises balanced accuracy."""

    uses_order = True

    def threshold_objective(self, tp: Counts, fp: Counts, fn: Counts, tn: Counts) -> Counts:
        return 0.5 * (ratio(tp, tp + fn) + ratio(tn, tn + fp))

    def from_levels(self, positive: FloatArray, negative: FloatArray) -> FloatArray:
        """Return the values of b samples from their weights at each of L scores, arrays of shape (b, L), highest score first.

        Intervals call it for many resamples at once. A measure that does not override it is evaluated sample by sample.
        """
        scores = -np.tile(np.arange(positive.shape[1], dtype=np.float64), 2)
        y = np.repeat([1, -1], positive.shape[1])
        return np.array([self.value(y, scores, np.concatenate(pair)) for pair in zip(positive, negative, strict=True)])


class CountsBasedMeasure(Measure):
    """A measure of the confusion counts at the threshold."""

    direct_risks: ClassVar[tuple[str, ...]] = ("contingency", "contingency_entropy")
    uses_order = False

    @abstractmethod
    def from_counts(self, tp: Counts, fp: Counts, fn: Counts, tn: Counts) -> Counts:
        """Return the measure from weighted counts, vectorised."""

    def value(self, y: AnyArray, decision: FloatArray, sample_weight: FloatArray | None = None) -> float:
        """Return the measure of the predictions decision > 0."""
        rows = checked_rows(y, decision, sample_weight, self.scale_free)
        kind = 2 * rows.positive.astype(np.int8) + (rows.scores > 0)
        tn, fp, fn, tp = np.bincount(kind, rows.weight, 4).astype(np.float64)
        return float(self.from_counts(tp, fp, fn, tn))

    def threshold_objective(self, tp: Counts, fp: Counts, fn: Counts, tn: Counts) -> Counts:
        return self.from_counts(tp, fp, fn, tn)

    def robust_value(self, tp: Counts, fp: Counts, fn: Counts, tn: Counts) -> Counts:
        """Return the objective of a robust threshold (`robust_threshold`): the measure itself."""
        return self.from_counts(tp, fp, fn, tn)


def ratio(numerator: Counts, denominator: Counts) -> FloatArray:
    """Return numerator / denominator, 0 where the denominator is 0."""
    out = np.zeros(np.broadcast(numerator, denominator).shape)
    return np.divide(numerator, denominator, out=out, where=np.asarray(denominator) > 0)


class Rows(NamedTuple):
    """Which rows are positive, scores, and weights (None for 1) times 2^exponent; remote vectors stay where they are."""

    positive: Any
    scores: Any
    weight: Any
    exponent: int


def checked_rows(y: Any, scores: Any, sample_weight: Any, scale_free: bool = True) -> Rows:
    """Return the rows, or raise unless they are vectors of equal length without NaN, and weights are finite and not negative.

    If only ratios of weights matter (`scale_free`), weights far from 1 are multiplied by a power of two, which does not change
    their digits. Otherwise their sum must lie between MIN_WEIGHT_RATIO and MAX_TOTAL_WEIGHT. Remote vectors were checked when
    they were made.
    """
    if any(isinstance(v, RemoteVector) for v in (y, scores, sample_weight)):
        weight = None if sample_weight is None else as_vector(sample_weight, np.float64)
        return Rows(as_vector(y) > 0, as_vector(scores), weight, 0)
    labels, z = as_vector(y), as_vector(scores)
    weight = None if sample_weight is None else as_vector(sample_weight, np.float64)
    if not (z.ndim == 1 and z.shape == labels.shape and (weight is None or weight.shape == z.shape)):
        shapes = (labels.shape, z.shape, None if weight is None else weight.shape)
        raise ValueError(f"y, scores and sample_weight must be vectors of one length, got shapes {shapes}")
    for name, values in (("y", labels), ("scores", z)):
        if values.dtype.kind == "f" and np.isnan(values).any():
            row = int(np.flatnonzero(np.isnan(values))[0])
            raise ValueError(f"{name} must be finite, got nan in row {row}; drop such rows or fill them in")
    positive = labels > 0
    if weight is None:
        return Rows(positive, z, None, 0)
    return Rows(positive, z, *_checked_weights(positive, weight, scale_free))


def check_total(weight: FloatArray) -> FloatArray:
    """Return the weights, or raise if their sum is out of the range of counts."""
    with np.errstate(over="ignore"):
        total = float(weight.sum())
    if total > MAX_TOTAL_WEIGHT or 0.0 < total < MIN_WEIGHT_RATIO:
        raise ValueError(
            f"sample_weight sums to {total:.3g}, expected between {MIN_WEIGHT_RATIO:g} and {MAX_TOTAL_WEIGHT:g}: counts would "
            "leave the range of floats. Divide all weights by one number."
        )
    return weight


def _checked_weights(positive: Any, weight: Any, scale_free: bool) -> tuple[Any, int]:
    if not (np.isfinite(weight).all() and (weight >= 0.0).all()):
        row = int(np.flatnonzero(~(np.isfinite(weight) & (weight >= 0.0)))[0])
        raise ValueError(
            f"sample_weight must be finite and non-negative, got {weight[row]} in row {row}; drop such rows or give them 0"
        )
    if not scale_free:
        return check_total(weight), 0
    tops = [float(weight[side].max(initial=0.0)) for side in (positive, ~positive)]
    if 0.0 < min(tops) < MIN_WEIGHT_RATIO * max(tops):
        raise ValueError(
            f"the largest sample_weight of the positive class is {tops[0]:.3g}, of the negative {tops[1]:.3g}: floats "
            f"cannot hold counts of both, expected a ratio of at most {1.0 / MIN_WEIGHT_RATIO:.0e}; use weights that "
            "differ less"
        )
    return scaled_to_safe_range(weight)
