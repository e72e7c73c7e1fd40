"""Plain JSON: the numbers of a classifier and what they mean, for any language."""

import json
import os
from typing import Any

from scoreline._files import whole_file
from scoreline.data.columns import Column
from scoreline.data.encoding import Encoding
from scoreline.export.fitted import Fitted, fitted

FORMAT, VERSION = "scoreline linear classifier", 1
FORMULA = {
    "features": "score = intercept + sum over features of coefficient * value",
    "columns": "score = intercept + sum over columns of a term. A number: coefficient * value. A category: "
    "coefficients[text], other if the text is not among them; where canonical is true, texts are first written in the shortest "
    "way: 3.0 as 3, 1.50 as 1.5, -0 as 0, True as true. A missing value (null, or one of missing_texts): the term is missing, "
    "an error if that is null.",
    "predict": "classes[1] if score > 0, else classes[0]",
    "probability": "of classes[1]: 1 / (1 + exp(-(slope * (score - intercept) + offset))), with calibration's slope and offset",
}


def to_json(clf: Any, path: Any = None, *, encoding: Encoding | None = None) -> dict[str, Any]:
    """Return a trained classifier as dicts, lists, texts and numbers, and write them to a file if a path is given.

    Numbers are written so that they read back to the same double. The document says in words how it is to be used
    (`formula`).

    Parameters
    ----------
    clf : MeasureClassifier or MeasureClassifierCV
        A trained classifier.
    path : path, optional
        The file to write, "model.json", say.
    encoding : Encoding, optional
        How columns of a table became features, by default the one the classifier has from its file; with one, the document has
        `columns` of the table in place of `features`.

    Returns
    -------
    dict
        The document: format, version, measure, classes, intercept, features or columns, calibration (None without
        probabilities), formula.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from scoreline import MeasureClassifier
    >>> from scoreline.export import to_json
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> document = to_json(MeasureClassifier("f1", scaling="standard").fit(X, y))
    >>> document["classes"], document["features"][0]["name"]
    ([0, 1], 'mean radius')
    """
    model = fitted(clf, encoding)
    slope, offset = (None, None) if model.calibration is None else model.calibration
    document: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "measure": model.measure,
        "classes": list(model.classes),
        "intercept": model.intercept,
        "calibration": None if model.calibration is None else {"slope": slope, "offset": offset},
    }
    words = ["predict"] if model.calibration is None else ["predict", "probability"]
    if model.encoding is None:
        document["features"] = [
            {"name": name, "coefficient": value} for name, value in zip(model.names, model.coef.tolist(), strict=True)
        ]
    else:
        document["columns"] = _columns(model, model.encoding)
        document["missing_texts"] = list(model.encoding.missing)
    score = "features" if model.encoding is None else "columns"
    document["formula"] = {"score": FORMULA[score], **{word: FORMULA[word] for word in words}}
    if path is not None:
        with whole_file(os.fspath(path)) as file:
            file.write((json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode())
    return document


def _columns(model: Fitted, encoding: Encoding) -> list[dict[str, Any]]:
    """Return the columns of the table, each with its coefficients."""
    pairs = zip(encoding.columns, encoding.starts, strict=False)
    return [
        _column(column, model.coef[start : start + column.width].tolist(), encoding.impute) for column, start in pairs
    ]


def _column(column: Column, coef: list[float], impute: str | None) -> dict[str, Any]:
    """Return a column: `missing` is what a missing value adds to the score, None where it is an error."""
    if column.kind == "number":
        return {"name": column.name, "kind": "number", "coefficient": coef[0], "missing": missing_number(column, coef)}
    coefficients, other = category_coefficients(column, coef)
    return {
        "name": column.name,
        "kind": "category",
        "coefficients": coefficients,
        "other": other,
        "canonical": column.plain,
        "missing": missing_category(column, coef, impute),
    }


def missing_number(column: Column, coef: list[float]) -> float | None:
    """Return what a missing number adds to the score: its fill and its indicator, None where it is an error."""
    return None if column.fill is None else coef[0] * float(column.fill) + (coef[1] if column.indicator else 0.0)


def category_coefficients(column: Column, coef: list[float]) -> tuple[dict[str, float], float]:
    """Return the coefficient of each category, and what all other texts add to the score."""
    known = dict(zip(column.categories, coef, strict=False))  # the feature for other texts follows the categories
    return known, coef[-1] if column.other else 0.0


def missing_category(column: Column, coef: list[float], impute: str | None) -> float | None:
    """Return what a missing value of a category adds to the score: that of its fill, 0 like an unseen text, or an error."""
    if column.fill is not None:
        return coef[column.categories.index(str(column.fill))]
    return None if impute is None else 0.0
