"""The rows of a fit: X, labels +1 and -1, weights and classes, as all fit paths and folds take them."""

from typing import Any, NamedTuple

import numpy as np

from scoreline.fitting.checks import as_counts, check_base_scores, check_labels, check_sample_weight, column_names
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
    base_scores: Any = None
    costs: FloatArray | None = None

    @classmethod
    def of(cls, X: Any, operator: Operator, y: Any, sample_weight: Any, base_scores: Any = None) -> "GivenRows":
        """Check labels, weights and base scores, and bring them to where the rows are."""
        y, sample_weight = operator.aligned(y, "y"), operator.aligned(sample_weight, "sample_weight")
        classes, sign = check_labels(y, operator.shape[0])
        sign = operator.aligned(sign, "y")  # labels that were text
        check_sample_weight(sample_weight, operator.shape[0])
        base_scores = check_base_scores(operator.aligned(base_scores, "base_scores"), operator.shape[0])
        return cls(X, operator, y, classes, sign, sample_weight, base_scores)

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
    """All rows. `copies` is how often each is there, `weight` is what it weighs, class weights included; None for 1.

    `base_scores` are those of an existing model, to which the scores of a fit are added. `costs` is what an error on each row
    costs, which `weight` includes.
    """

    operator: Operator
    sign: AnyArray
    copies: FloatArray | None
    weight: FloatArray | None
    classes: AnyArray
    base_scores: Any = None
    costs: FloatArray | None = None

    def full_scores(self, z: Any) -> Any:
        """Return scores of all rows with the base scores added."""
        return z if self.base_scores is None else z + self.base_scores

    def base_of(self, rows: AnyArray) -> Any:
        """Return the base scores of some rows; None where there are none."""
        return None if self.base_scores is None else self.base_scores[rows]

    def costs_of(self, rows: AnyArray) -> FloatArray | None:
        """Return the costs of some rows; None where there are none."""
        return None if self.costs is None else self.costs[rows]

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
        costs = self.costs_of(rows)
        weight = costs if copies is None or costs is None else costs * copies
        return measure.value(self.sign[rows] > 0, decision, copies if weight is None else weight)
