"""The rows that early stopping judges a fit by: held out of the training rows, or the user's own."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from scoreline.fitting.checks import check_sample_weight, check_truth, feature_source
from scoreline.fitting.rows import GivenRows
from scoreline.fitting.threshold import held_out_rows
from scoreline.measures import Measure, RankingMeasure, best_threshold
from scoreline.operators import Operator, as_operator
from scoreline.operators.column_maps import mapped_like
from scoreline.runtime.types import AnyArray, FloatArray
from scoreline.runtime.vectors import room_module
from scoreline.solvers.common.checkpoint import checked_entries
from scoreline.solvers.common.early_stopping import EarlyStopping, Watch


class ValidationRows(NamedTuple):
    """Rows that are not trained on, and the measure they are judged by."""

    operator: Operator
    sign: AnyArray
    weight: FloatArray | None
    measure: Measure
    held: AnyArray | None = None  # mask of the training rows that these are; None for rows of the user
    base_scores: Any = None

    def scores(self, coef: FloatArray, intercept: float) -> Any:
        """Return the scores of these coefficients."""
        z = self.operator.matvec(coef) + intercept
        return z if self.base_scores is None else z + self.base_scores

    def value(self, coef: FloatArray, intercept: float) -> float:
        """Return the measure; that of counts at the best threshold, so that the intercept need not be right yet."""
        z = self.scores(coef, intercept)
        if isinstance(self.measure, RankingMeasure):
            return self.measure.value(self.sign > 0, z, self.weight)
        return best_threshold(self.sign, z, self.measure, self.weight).value

    def watch(self, settings: EarlyStopping, unwrap: Callable[[FloatArray], tuple[FloatArray, float]]) -> Watch:
        """Return what a solver asks after every step; `unwrap` turns its w into coefficients of X and an intercept."""
        return Watch(settings, lambda w: self.value(*unwrap(w)))

    def fingerprint(self) -> str:
        """Return what tells these rows from others, for a checkpoint; one pass."""
        entries = checked_entries(self.operator)
        labels = float((np.asarray(self.sign) * np.cos(np.arange(len(self.sign)))).sum())
        weights = (
            0.0 if self.weight is None else float((np.asarray(self.weight) * np.cos(np.arange(len(self.sign)))).sum())
        )
        return " ".join(f"{number:.9e}" for number in (*entries, labels, weights))

    @property
    def rows_read(self) -> float:
        """Rows read so far, each as often as it was."""
        return self.operator.n_passes * self.operator.shape[0]


def same_columns(X: Any, X_validation: Any) -> None:
    """Raise where both are frames, and their columns differ in name or order."""
    looker = BaseEstimator()
    validate_data(looker, feature_source(X), skip_check_array=True)
    validate_data(looker, feature_source(X_validation), reset=False, skip_check_array=True)


def given_rows(
    settings: EarlyStopping, classes: AnyArray, trained_on: Operator, measure: Measure, device: Any
) -> ValidationRows:
    """Return the validation rows that the user gave, on the device of the fit and with its map of columns."""
    X, y, *rest = settings.validation
    features = trained_on.feature_map
    operator, p = as_operator(X) if features is None else features.operator(X), trained_on.shape[1]
    if operator.string_features != trained_on.string_features:
        raise ValueError(
            "early_stopping: the validation rows must be a StringOperator with the options of X, or neither"
        )
    if device is not None:
        operator = room_module("device", "convert").moved(operator, device)
    if operator.shape[1] != p:
        raise ValueError(f"early_stopping: the validation rows have {operator.shape[1]} features, X has {p}")
    operator = mapped_like(operator, trained_on.column_map)
    truth = check_truth(operator.aligned(y, "y"), classes, operator.shape[0])
    sign = operator.aligned(np.where(truth, 1, -1).astype(np.int8), "y")
    weight = check_sample_weight(operator.aligned(rest[0], "sample_weight") if rest else None, operator.shape[0])
    counted = sign if weight is None else sign[weight > 0.0]
    if not ((counted > 0).any() and (counted < 0).any()):
        raise ValueError("early_stopping: the validation rows are of one class, expected both: choose other rows")
    return ValidationRows(operator, sign, weight, measure)


def held_rows(settings: EarlyStopping, given: GivenRows, measure: Measure, random_state: Any) -> ValidationRows:
    """Return a stratified share of the training rows; they must not weigh anything in the fit."""
    assert settings.share is not None
    operator, sign = given.operator, given.sign
    weight = check_sample_weight(given.sample_weight, operator.shape[0])
    if "rows" not in operator.capabilities:
        raise TypeError(
            f"early_stopping={settings.share:g} holds rows of X out, and X ({type(operator).__name__}) cannot be read row by "
            "row: pass validation rows of your own, EarlyStopping((X, y))"
        )
    held = held_out_rows(sign, weight, random_state, settings.share, "early_stopping")
    rows = np.flatnonzero(np.asarray(held))
    part = operator.on_rows(rows)
    own = part.aligned(np.asarray(sign)[rows], "y")
    counted = None if weight is None else part.aligned(np.asarray(weight)[rows], "sample_weight")
    base = None if given.base_scores is None else part.aligned(np.asarray(given.base_scores)[rows], "base_scores")
    return ValidationRows(part, own, counted, measure, held, base)
