"""The score as a sum of terms, one per column: what every format of export writes in its own language."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from scoreline.export.fitted import Fitted
from scoreline.io.columns import SHORTER, Column
from scoreline.runtime.types import FloatArray

NULL_TEXTS = ("", "None", "nan", "<NA>")  # the last three: onnxruntime in Python makes them of None, NaN and pandas.NA

Knots = tuple[FloatArray, FloatArray]


@dataclass(frozen=True)
class NumberTerm:
    """The term of a column of numbers: coefficient * value, or `missing` where there is no value.

    `fill` replaces a missing value, None: it is an error. `indicator` is added where the value is missing. With `knots`
    the value is first mapped by linear interpolation between these points, and is constant outside of them.
    """

    name: str
    coefficient: float
    fill: float | None = None
    indicator: float = 0.0
    knots: Knots | None = None

    def at(self, value: float) -> float:
        """Return what a value adds to the score."""
        return self.coefficient * (value if self.knots is None else float(np.interp(value, *self.knots)))

    @property
    def missing(self) -> float | None:
        """What a missing value adds to the score, None where it is an error."""
        return None if self.fill is None else self.at(self.fill) + self.indicator

    @property
    def used(self) -> bool:
        """Whether the column can change the score."""
        return self.coefficient != 0.0 or self.indicator != 0.0


@dataclass(frozen=True)
class CategoryTerm:
    """The term of a column of categories: the coefficient of its text.

    `other` is the term of a text that has no coefficient, and `missing` that of a missing value, None where it is an error.
    `canonical`: texts are first written in the shortest way, 3.0 as 3 and True as true. `fill` is the text that stands for
    missing values among the categories.
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


def feature_terms(model: Fitted) -> list[NumberTerm]:
    """Return the terms of a model's features, one per feature."""
    triples = zip(model.names, model.coef.tolist(), _knots(model), strict=True)
    return [NumberTerm(name, coefficient, knots=knots) for name, coefficient, knots in triples]


def column_terms(model: Fitted) -> list[NumberTerm | CategoryTerm]:
    """Return the terms of the columns of a model's encoding, one per column."""
    assert model.encoding is not None
    coef, knots, impute = model.coef.tolist(), _knots(model), model.encoding.impute
    return [
        _number(column, coef[start : start + column.width], knots[start])
        if column.kind == "number"
        else _category(column, coef[start : start + column.width], impute)
        for column, start in zip(model.encoding.columns, model.encoding.starts, strict=False)
    ]


def _knots(model: Fitted) -> Sequence[Knots | None]:
    return [None] * len(model.coef) if model.knots is None else model.knots


def _number(column: Column, coef: list[float], knots: Knots | None) -> NumberTerm:
    fill = None if column.fill is None else float(column.fill)
    return NumberTerm(column.name, coef[0], fill, coef[1] if column.indicator else 0.0, knots)


def _category(column: Column, coef: list[float], impute: str | None) -> CategoryTerm:
    coefficients = dict(zip(column.categories, coef, strict=False))
    other = coef[-1] if column.other else 0.0
    if column.fill is not None:
        return CategoryTerm(
            column.name, coefficients, other, coefficients[str(column.fill)], column.plain, str(column.fill)
        )
    # Without a missing value in training there is no feature for it: it adds nothing, or is an error without imputation.
    return CategoryTerm(column.name, coefficients, other, None if impute is None else 0.0, column.plain)


def text_coefficients(term: CategoryTerm, missing_texts: Sequence[str]) -> dict[str, float]:
    """Return the terms of all texts but other ones, for a program that has neither null nor regular expressions.

    The texts of NULL_TEXTS are missing values unless they are categories. The term of a missing value is NaN where it is an
    error. Where texts are canonical, the common spellings of numbers and truth values are listed too.
    """
    missing = math.nan if term.missing is None else term.missing
    known = term.coefficients
    if term.canonical:
        known = {spelling: value for text, value in known.items() for spelling in _spellings(text)}
    return {**dict.fromkeys(NULL_TEXTS, missing), **known, **dict.fromkeys(missing_texts, missing)}


def _spellings(text: str) -> list[str]:
    """Return the common spellings of a number or a truth value: 3, 3.0 and 3.00; true, True and TRUE."""
    tried = [text, text.capitalize(), text.upper(), *(text + zeros for zeros in ("0", ".0", ".00"))]
    if text == "0":
        tried += [f"-{spelling}" for spelling in tried]
    return [spelling for spelling in dict.fromkeys(tried) if _shortest(spelling) == text]


def _shortest(text: str) -> str:
    """Return the canonical text, as the encoding has it."""
    for pattern, replacement in SHORTER:
        text = re.sub(pattern, replacement, text)
    return text
