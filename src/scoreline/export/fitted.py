"""What every export needs of a trained classifier: plain numbers, names and classes, checked once."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from scoreline.classifier import MeasureClassifier
from scoreline.io.encoding import Encoding
from scoreline.model_selection import MeasureClassifierCV
from scoreline.operators.column_maps import ColumnMap
from scoreline.runtime.types import FloatArray

ESTIMATORS = (MeasureClassifier, MeasureClassifierCV)
LARGEST = 2**63  # classes beyond are no integers for other programs


class Calibration(NamedTuple):
    """The probability of classes[1] is the sigmoid of slope * score + offset, with the score clipped to [low, high] first."""

    slope: float
    offset: float
    low: float = -math.inf
    high: float = math.inf


@dataclass(frozen=True)
class Fitted:
    """A trained classifier: score = coef . x + intercept, classes[1] where it is positive.

    `names` are those of the features, in order; `calibration` is None without probabilities; `encoding` says how columns of a
    table become the features, if it is known. `knots` has for
    each feature None, or points (x, y) with increasing x: the coefficient is then that of `np.interp(value, x, y)`.
    """

    coef: FloatArray
    intercept: float
    classes: tuple[Any, Any]
    names: list[str]
    calibration: Calibration | None
    encoding: Encoding | None
    measure: str
    knots: Sequence[tuple[FloatArray, FloatArray] | None] | None = None


def fitted(clf: Any, encoding: Encoding | None = None) -> Fitted:
    """Return what is exported of a classifier; anything else than one that is trained is an error.

    `encoding` is the one of its X, by default the one it has from its file.
    """
    if not isinstance(clf, ESTIMATORS):
        raise TypeError(
            f"clf is a {type(clf).__name__}, expected a trained MeasureClassifier or MeasureClassifierCV; for a Pipeline call "
            "register_with_skl2onnx() and then skl2onnx.to_onnx(pipeline, X[:1]), or export its last step, whose features "
            "are those that the steps before it make"
        )
    check_is_fitted(clf, "coef_")
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
    if getattr(clf, "calibration_", None) is not None:  # that of a classifier is for scores without the intercept
        slope, offset = clf.calibration_.tolist()
        ends = getattr(clf, "calibration_range_", np.array([-math.inf, math.inf])) + intercept
        calibration = Calibration(slope, offset - slope * intercept, *ends.tolist())
    coef, knots = _mapped(coef, getattr(clf, "column_map_", None), encoding)
    return Fitted(
        coef,
        intercept,
        plain_classes(clf.classes_),
        _names(clf, encoding),
        calibration,
        encoding,
        clf.measure if isinstance(clf.measure, str) else clf.measure.name,
        knots,
    )


def _mapped(coef: FloatArray, column_map: ColumnMap | None, encoding: Encoding | None) -> tuple[FloatArray, Any]:
    """Return coefficients and knots. Features of an encoding that are 0 or 1 need no knots: 0 is mapped to 0."""
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


def plain_classes(classes: Any) -> tuple[Any, Any]:
    """Return both classes as int, float, bool or str, or raise where other programs have no such value."""
    found = [value.item() if isinstance(value, np.generic) else value for value in classes]
    for value in found:
        if type(value) not in (int, float, bool, str) or (type(value) is int and not -LARGEST <= value < LARGEST):
            raise ValueError(
                f"classes_ holds {value!r:.100}, expected integers of 64 bits, floats, truth values or text; train with "
                "labels of these kinds"
            )
        if isinstance(value, str):
            check_text("classes_", value)
    return found[0], found[1]


def check_text(what: str, text: Any) -> None:
    """Raise unless text is a string that every program can hold: UTF-8, without the character NUL."""
    if not isinstance(text, str):
        raise ValueError(f"{what} holds {text!r:.100}, expected text")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{what} holds {text!r:.100}, which is no Unicode text; rename it") from None
    if "\0" in text:
        raise ValueError(f"{what} holds {text!r:.100} with the character NUL, which ends a text elsewhere; rename it")


def check_name(name: Any) -> None:
    """Raise unless a name is one that every program can hold, and not empty."""
    check_text("a name", name)
    if not name:
        raise ValueError("a name is empty, expected that of a table or of a column")


def _names(clf: Any, encoding: Encoding | None) -> list[str]:
    """Return the names of the features: those of the encoding, those of the frame, else x0, x1, ..."""
    if encoding is not None:
        return encoding.names
    known = getattr(clf, "feature_names_in_", None)
    return [f"x{k}" for k in range(clf.n_features_in_)] if known is None else [str(name) for name in known]
