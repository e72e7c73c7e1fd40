"""The common input of all exports: a classifier as checked numbers, names and classes, and its score as a sum of terms."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from scoreline.classifier import MeasureClassifier
from scoreline.io.columns import SHORTER
from scoreline.io.encoding import Encoding
from scoreline.model_selection import MeasureClassifierCV, ThresholdClassifier
from scoreline.operators.column_maps import ColumnMap
from scoreline.runtime.types import FloatArray

BASE_SCORES = "base_scores"  # the input of scores that a model was trained on
ESTIMATORS = (MeasureClassifier, MeasureClassifierCV)
NULL_TEXTS = ("", "None", "nan", "<NA>")  # onnxruntime in Python turns None, NaN and pandas.NA into the last three

Knots = tuple[FloatArray, FloatArray]


class Calibration(NamedTuple):
    """The probability of classes[1] is the sigmoid of slope * score + offset, with the score clipped to [low, high] first."""

    slope: float
    offset: float
    low: float = -math.inf
    high: float = math.inf


@dataclass(frozen=True)
class LinearModel:
    """A trained classifier: score = coef . x + intercept, classes[1] where it is positive.

    `names` are the names of the features. `calibration` is None without probabilities. `encoding` says how columns of a table
    become features, if known. `knots` has for each feature None, or points (x, y) with increasing x; the coefficient then
    multiplies `np.interp(value, x, y)`.
    """

    coef: FloatArray
    intercept: float
    classes: tuple[Any, Any]
    names: list[str]
    calibration: Calibration | None
    encoding: Encoding | None
    measure: str
    knots: Sequence[Knots | None] | None = None


def linear_model(clf: Any, encoding: Encoding | None = None) -> LinearModel:
    """Return a trained classifier as a LinearModel; `encoding` is by default the one that it was saved with."""
    if isinstance(clf, ThresholdClassifier):
        raise TypeError(
            "clf is a ThresholdClassifier, which only to_onnx exports. Export clf.estimator_, and compare its "
            f"{getattr(clf, 'response_method_', 'response')} with clf.best_threshold_ in your program."
        )
    if not isinstance(clf, ESTIMATORS):
        raise TypeError(
            f"clf is a {type(clf).__name__}, expected a trained MeasureClassifier or MeasureClassifierCV; for a Pipeline call "
            "register_with_skl2onnx() and then skl2onnx.to_onnx(pipeline, X[:1]), or export its last step, whose features "
            "are those that the steps before it make"
        )
    check_is_fitted(clf, "coef_")
    if getattr(clf, "feature_map_", None) is not None:
        raise ValueError(
            "the classifier was trained with features other than 'linear', whose bins the exports to ONNX, SQL and JSON do not "
            "hold. Use save() and load_model, or train with features='linear'."
        )
    if getattr(clf, "string_features_", None) is not None:
        raise ValueError(
            "clf was trained on a StringOperator, whose features are computed from letters: an export has no such features. "
            "Use save and load_model, or read the motifs with strongest_motifs(clf)."
        )
    coef = np.asarray(clf.coef_, dtype=np.float64).reshape(-1)
    encoding = getattr(clf, "encoding_", None) if encoding is None else encoding
    if encoding is not None and not isinstance(encoding, Encoding):
        raise TypeError(
            f"encoding is a {type(encoding).__name__}, expected an Encoding: read_data(...).encoding has the one of its X"
        )
    if encoding is not None and encoding.n_features != len(coef):
        raise ValueError(
            f"encoding has {encoding.n_features} features, the classifier {len(coef)}: pass the one of its X"
        )
    intercept, calibration = float(clf.intercept_[0]), None
    if getattr(clf, "calibration_", None) is not None:  # calibration_ is for scores without the intercept
        slope, offset = clf.calibration_.tolist()
        ends = getattr(clf, "calibration_range_", np.array([-math.inf, math.inf])) + intercept
        calibration = Calibration(slope, offset - slope * intercept, *ends.tolist())
    coef, knots = _mapped(coef, getattr(clf, "column_map_", None), encoding)
    known = getattr(clf, "feature_names_in_", None) if encoding is None else encoding.names
    names = [f"x{k}" for k in range(clf.n_features_in_)] if known is None else [str(name) for name in known]
    measure = clf.measure if isinstance(clf.measure, str) else clf.measure.name
    if getattr(clf, "uses_base_scores_", False):  # one more input, which counts as it is
        if encoding is not None:
            raise ValueError(
                "the classifier was trained on base_scores, which no column of its encoding holds: train with bounds of (1, 1) "
                "and weight 0 for a column that holds them (docs/base_scores.md)"
            )
        coef, names = np.append(coef, 1.0), [*names, BASE_SCORES]
        knots = None if knots is None else [*knots, None]
    return LinearModel(coef, intercept, _plain_classes(clf.classes_), names, calibration, encoding, measure, knots)


def _mapped(coef: FloatArray, column_map: ColumnMap | None, encoding: Encoding | None) -> tuple[FloatArray, Any]:
    """Return coefficients and knots; features that are 0 or 1 need no knots, because 0 is mapped to 0."""
    if column_map is None:
        return coef, None
    knots: list[Any] = [column_map.knots(k) for k in range(len(coef))]
    if encoding is not None:
        numbers = {start for c, start in zip(encoding.columns, encoding.starts, strict=False) if c.kind == "number"}
        of_one = column_map.transform(np.ones((1, len(coef))))[0]
        truth = np.array([k not in numbers for k in range(len(coef))])
        coef = np.where(truth, coef * of_one, coef)
        knots = [None if flag else found for flag, found in zip(truth.tolist(), knots, strict=True)]
    return coef, knots


def _plain_classes(classes: Any) -> tuple[Any, Any]:
    """Return both classes as int, float, bool or str; other kinds of labels cannot be exported."""
    found = [value.item() if isinstance(value, np.generic) else value for value in classes]
    for value in found:
        if type(value) not in (int, float, bool, str) or (type(value) is int and not -(2**63) <= value < 2**63):
            raise ValueError(
                f"classes_ holds {value!r:.100}, expected integers of 64 bits, floats, truth values or text; train with "
                "labels of these kinds"
            )
        if isinstance(value, str):
            check_text("classes_", value)
    return found[0], found[1]


def check_text(what: str, text: Any) -> None:
    """Raise unless text is valid Unicode without the character NUL."""
    if not isinstance(text, str):
        raise ValueError(f"{what} holds {text!r:.100}, expected text")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{what} holds {text!r:.100}, which is not valid Unicode text; rename it") from None
    if "\0" in text:
        raise ValueError(
            f"{what} holds {text!r:.100} with the character NUL, which ends a text in other programs; rename it"
        )


def check_name(name: Any) -> None:
    """Raise unless a name is valid Unicode and not empty."""
    check_text("a name", name)
    if not name:
        raise ValueError("a name is empty, expected that of a table or of a column")


@dataclass(frozen=True)
class NumberTerm:
    """The term of a number column: coefficient * value, or `missing` if the value is missing.

    `fill` replaces a missing value, which is an error if `fill` is None; `indicator` is then added. With `knots` the value is
    first mapped by linear interpolation between these points, and is constant outside of them.
    """

    name: str
    coefficient: float
    fill: float | None = None
    indicator: float = 0.0
    knots: Knots | None = None

    def at(self, value: float) -> float:
        """Return the term of a value."""
        return self.coefficient * (value if self.knots is None else float(np.interp(value, *self.knots)))

    @property
    def missing(self) -> float | None:
        """The term of a missing value, None if that is an error."""
        return None if self.fill is None else self.at(self.fill) + self.indicator

    @property
    def used(self) -> bool:
        """Whether the column can change the score."""
        return self.coefficient != 0.0 or self.indicator != 0.0


@dataclass(frozen=True)
class CategoryTerm:
    """The term of a category column: the coefficient of its text.

    `other` is the term of a text without a coefficient, and `missing` that of a missing value, None if that is an error. If
    `canonical`, texts are first written in the shortest way, 3.0 as 3 and True as true. `fill` is the category of missing
    values.
    """

    name: str
    coefficients: dict[str, float]
    other: float
    missing: float | None
    canonical: bool
    fill: str | None = None

    @property
    def used(self) -> bool:
        """Whether the column can change the score."""
        return self.other != 0.0 or any(self.coefficients.values())


def feature_terms(model: LinearModel) -> list[NumberTerm]:
    """Return the terms of a model's features, one per feature."""
    knots = model.knots or [None] * len(model.coef)
    triples = zip(model.names, model.coef.tolist(), knots, strict=True)
    return [NumberTerm(name, coefficient, knots=points) for name, coefficient, points in triples]


def column_terms(model: LinearModel) -> list[NumberTerm | CategoryTerm]:
    """Return the terms of the columns of a model's encoding, one per column."""
    assert model.encoding is not None
    knots = model.knots or [None] * len(model.coef)
    # If no value was missing in training, there is no feature for it: the term is 0, or an error without imputation.
    never_missing = None if model.encoding.impute is None else 0.0
    terms: list[NumberTerm | CategoryTerm] = []
    for column, start in zip(model.encoding.columns, model.encoding.starts, strict=False):
        coef = model.coef[start : start + column.width].tolist()
        if column.kind == "number":
            fill = None if column.fill is None else float(column.fill)
            terms.append(NumberTerm(column.name, coef[0], fill, coef[1] if column.indicator else 0.0, knots[start]))
            continue
        coefficients = dict(zip(column.categories, coef, strict=False))
        text = None if column.fill is None else str(column.fill)
        missing = never_missing if text is None else coefficients[text]
        other = coef[-1] if column.other else 0.0
        terms.append(CategoryTerm(column.name, coefficients, other, missing, column.plain, text))
    return terms


def text_coefficients(term: CategoryTerm, missing_texts: Sequence[str]) -> dict[str, float]:
    """Return the terms of all known texts, for a program that has neither null nor regular expressions.

    The texts of NULL_TEXTS are missing values unless they are categories. The term of a missing value is NaN if it is an
    error. If texts are canonical, the common spellings of numbers and truth values are included.
    """
    missing = math.nan if term.missing is None else term.missing
    known = term.coefficients
    if term.canonical:
        known = {spelling: value for text, value in known.items() for spelling in _spellings(text)}
    return {**dict.fromkeys(NULL_TEXTS, missing), **known, **dict.fromkeys(missing_texts, missing)}


def _spellings(text: str) -> list[str]:
    """Return the common spellings of a number or a truth value: 3, 3.0 and 3.00; true, True and TRUE."""
    spellings = [text, text.capitalize(), text.upper(), *(text + zeros for zeros in ("0", ".0", ".00"))]
    if text == "0":
        spellings += [f"-{spelling}" for spelling in spellings]
    return [spelling for spelling in dict.fromkeys(spellings) if _shortest(spelling) == text]


def _shortest(text: str) -> str:
    """Return the canonical text, as in the encoding."""
    for pattern, replacement in SHORTER:
        text = re.sub(pattern, replacement, text)
    return text
