"""The contract of a measure: a number from labels and decision values, and what its cut maximises."""

import inspect
from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np

from scoreline.measures.rows import checked_rows
from scoreline.runtime.types import AnyArray, FloatArray


class Measure(ABC):
    """A score that people report; larger is better.

    Attributes
    ----------
    name : str
        The name used in `MeasureClassifier(measure=...)`.
    summary : str
        One line: what it is.
    range : tuple of float
        Smallest and largest possible value.
    risks : tuple of str
        Risks that are trained for it, the preferred one first.
    contenders : tuple of str
        Risks that MeasureClassifierCV chooses among with risk="auto"; empty: it takes the preferred one.
    uses_order : bool
        True if only the order of the decision values matters, False if only their sign does.
    rises : bool
        What its cut maximises never falls with true positives nor rises with false ones.
    scale_free : bool
        Only ratios of weights matter to it and to its cut: all of them times one number change nothing.
    research : bool
        Whether it is only of scientific interest: lists show it last.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    risks: ClassVar[tuple[str, ...]]
    contenders: ClassVar[tuple[str, ...]] = ()
    uses_order: ClassVar[bool]
    rises: ClassVar[bool] = True
    scale_free: bool = True
    research: ClassVar[bool] = False

    @property
    def label(self) -> str:
        """What reports call it: its name, and its parameters if it has any."""
        given = [(name, getattr(self, name, None)) for name in inspect.signature(type(self)).parameters]
        words = [f"{name}={value:g}" for name, value in given if isinstance(value, (int, float))]
        return f"{self.name} ({', '.join(words)})" if words else self.name

    @abstractmethod
    def value(self, y: AnyArray, decision: FloatArray, sample_weight: FloatArray | None = None) -> float:
        """Return the measure for labels y (positive where y > 0) and decision values (positive above 0)."""

    @abstractmethod
    def cut_value(self, tp: Any, fp: Any, fn: Any, tn: Any) -> Any:
        """Return what the cut maximises, vectorised over arrays of weighted counts."""


class RankingMeasure(Measure):
    """A measure of the order of the scores; its cut maximises balanced accuracy."""

    uses_order = True

    def cut_value(self, tp: Any, fp: Any, fn: Any, tn: Any) -> Any:
        """Return balanced accuracy, (TPR + TNR) / 2."""
        return 0.5 * (ratio(tp, tp + fn) + ratio(tn, tn + fp))


class CountsBasedMeasure(Measure):
    """A measure of the confusion counts at the cut."""

    uses_order = False

    @abstractmethod
    def from_counts(self, tp: Any, fp: Any, fn: Any, tn: Any) -> Any:
        """Return the measure from weighted counts, vectorised."""

    def value(self, y: AnyArray, decision: FloatArray, sample_weight: FloatArray | None = None) -> float:
        """Return the measure of the predictions decision > 0."""
        rows = checked_rows(y, decision, sample_weight, self.scale_free)
        kind = 2 * rows.positive.astype(np.int8) + (rows.scores > 0)
        tn, fp, fn, tp = np.bincount(kind, rows.weight, 4).astype(np.float64)
        return float(self.from_counts(tp, fp, fn, tn))

    def cut_value(self, tp: Any, fp: Any, fn: Any, tn: Any) -> Any:
        """Return the measure itself."""
        return self.from_counts(tp, fp, fn, tn)

    def steady_value(self, tp: Any, fp: Any, fn: Any, tn: Any) -> Any:
        """Return what a cut for new rows maximises (`steady_cut`): the measure itself."""
        return self.from_counts(tp, fp, fn, tn)


def ratio(numerator: Any, denominator: Any) -> Any:
    """Return numerator / denominator, 0 where the denominator is 0."""
    out = np.zeros(np.broadcast(numerator, denominator).shape)
    return np.divide(numerator, denominator, out=out, where=np.asarray(denominator) > 0)
