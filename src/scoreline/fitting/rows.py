"""The rows of a fit: X, labels +1 and -1, weights and classes, as all fit paths and folds take them."""

from typing import Any, NamedTuple

import numpy as np

from scoreline.fitting.checks import as_counts, check_labels, check_sample_weight, column_names
from scoreline.fitting.plan import Shape
from scoreline.measures import Measure
from scoreline.operators import Operator
from scoreline.operators.column_maps import KINDS, heavy_tailed, with_mapped_columns
from scoreline.runtime.messages import warn_user
from scoreline.runtime.types import AnyArray, FloatArray


class GivenRows(NamedTuple):
    """Rows as they were passed to `fit`, checked: X as an operator, labels, sample weights."""

    X: Any
    operator: Operator
    y: Any
    classes: AnyArray
    sign: AnyArray
    sample_weight: Any

    @classmethod
    def of(cls, X: Any, operator: Operator, y: Any, sample_weight: Any) -> "GivenRows":
        """Check labels and weights, and bring them to where the rows are."""
        y, sample_weight = operator.aligned(y, "y"), operator.aligned(sample_weight, "sample_weight")
        classes, sign = check_labels(y, operator.shape[0])
        sign = operator.aligned(sign, "y")  # labels that were text
        check_sample_weight(sample_weight, operator.shape[0])
        return cls(X, operator, y, classes, sign, sample_weight)

    @property
    def copies(self) -> FloatArray | None:
        """How often each row is there; None for once."""
        return as_counts(check_sample_weight(self.sample_weight, self.operator.shape[0]))

    @property
    def shape(self) -> Shape:
        """The size of the data."""
        return Shape.of(self.sign, self.copies, self.operator.shape[1])

    def mapped(self, scaling: str | None, names: Any) -> "GivenRows":
        """Return the rows with the columns that the scaling maps; warn of heavy tails, once, if it maps none."""
        return self._replace(operator=mapped_columns(self.operator, scaling, self.copies, names))

    def without(self, held: AnyArray) -> "GivenRows":
        """Return the rows with those of a mask weighing nothing."""
        weight = np.where(held, 0.0, 1.0 if self.sample_weight is None else self.sample_weight)
        return self._replace(sample_weight=weight)


def mapped_columns(operator: Operator, scaling: str | None, weight: FloatArray | None, names: Any) -> Operator:
    """Return the operator with the columns that the scaling maps; warn of heavy tails, once, if it maps none."""
    if scaling not in KINDS and not operator.tails_checked:
        operator.tails_checked = True
        heavy = heavy_tailed(operator, weight)
        if len(heavy):
            warn_user(
                f"{column_names(names, heavy)} heavy tails: a few extreme values make up most of the variance, "
                "so the scaled values of all other rows are nearly equal. Use scaling='robust', which clips such "
                "values, or scaling='quantile', which replaces values by normal scores."
            )
    return with_mapped_columns(operator, scaling, weight)


class TrainingRows(NamedTuple):
    """All rows. `copies` is how often each is there, `weight` is what it weighs, class weights included; None for 1."""

    operator: Operator
    sign: AnyArray
    copies: FloatArray | None
    weight: FloatArray | None
    classes: AnyArray

    def counted(self, train: AnyArray) -> FloatArray:
        """Return how often rows are there, 0 for all but those listed."""
        counted = np.zeros(len(self.sign))
        counted[train] = 1.0 if self.copies is None else self.copies[train]
        return counted

    def value(self, measure: Measure, rows: AnyArray, decision: FloatArray) -> float:
        """Return the measure of decision values of some rows; NaN where these rows do not define it."""
        copies = None if self.copies is None else self.copies[rows]
        if copies is not None and not copies.any():
            return np.nan
        return measure.value(self.sign[rows] > 0, decision, copies)
