"""Plain JSON: the numbers of a classifier and what they mean, for any language."""

import json
import math
import os
from typing import Any

from scoreline.export.model import CategoryTerm, NumberTerm, column_terms, feature_terms, linear_model
from scoreline.io.encoding import Encoding
from scoreline.io.files import atomic_file
from scoreline.scorecards import Scorecard

FORMAT, VERSION = "scoreline linear classifier", 2  # version 1 had another calibration offset, and no `other`
FORMULA = {
    "features": "score = intercept + sum over features of coefficient * value. Missing values are an error.",
    "columns": "score = intercept + sum over columns of a term. A number: coefficient * value. A category: "
    "coefficients[text], or other if the text is not among them. Where canonical is true, the text is first written in the "
    "shortest way: 3.0 as 3, 1.50 as 1.5, -0 as 0, True as true. A missing value (null, NaN, or one of missing_texts): the "
    "term is missing, and an error if that is null.",
    "knots": "Where there are knots, a list of points [x, y] with increasing x, the value is first replaced by linear "
    "interpolation between them: the first y below the first x, the last y above the last x.",
    "predict": "classes[1] if score > 0, classes[0] if score <= 0. A score that is NaN or infinite is an error.",
    "probability": "of classes[1]: 1 / (1 + exp(-(slope * score + offset))), with calibration's slope and offset; the score is "
    "first clipped to calibration's low and high where these are not null",
}


def to_json(clf: Any, path: Any = None, *, encoding: Encoding | None = None) -> dict[str, Any]:
    """Return a trained classifier as dicts, lists, texts and numbers, and write them to a file if a path is given.

    Numbers read back to the same double. The entry `formula` explains in words how to compute a score.

    Parameters
    ----------
    clf : MeasureClassifier, MeasureClassifierCV or Scorecard
        A trained classifier, or its scorecard, whose `to_json` is then called.
    path : path, optional
        The file to write, for example "model.json".
    encoding : Encoding, optional
        How columns of a table became features; by default the encoding that the classifier was saved with. With an encoding,
        the document has the `columns` of the table in place of `features`.

    Returns
    -------
    dict
        The document: format, version, measure, classes, intercept, features or columns, calibration (slope and offset of
        the score, None without probabilities), formula.

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
    if isinstance(clf, Scorecard):
        return clf.to_json(path)
    model = linear_model(clf, encoding)
    kind, terms = ("features", feature_terms(model)) if model.encoding is None else ("columns", column_terms(model))
    document: dict[str, Any] = {
        "format": FORMAT, "version": VERSION, "measure": model.measure, "classes": list(model.classes),
        "intercept": model.intercept, "calibration": None, kind: [_term(term, kind) for term in terms],
    }  # fmt: skip
    words = ["predict"]
    if model.encoding is not None:
        document["missing_texts"] = list(model.encoding.missing)
    if model.knots is not None:
        words.append("knots")
    if model.calibration is not None:
        limits = model.calibration._asdict().items()
        document["calibration"] = {name: value if math.isfinite(value) else None for name, value in limits}
        words.append("probability")
    document["formula"] = {"score": FORMULA[kind], **{word: FORMULA[word] for word in words}}
    if path is not None:
        with atomic_file(os.fspath(path)) as file:
            file.write((json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode())
    return document


def _term(term: NumberTerm | CategoryTerm, kind: str) -> dict[str, Any]:
    """Return a feature or a column; `missing` is the term of a missing value, None if that is an error."""
    if isinstance(term, CategoryTerm):
        return {
            "name": term.name, "kind": "category", "coefficients": term.coefficients, "other": term.other,
            "canonical": term.canonical, "missing": term.missing,
        }  # fmt: skip
    found: dict[str, Any] = {"name": term.name, "coefficient": term.coefficient}
    if kind == "columns":
        found = {"name": term.name, "kind": "number", "coefficient": term.coefficient, "missing": term.missing}
    if term.knots is not None:
        found["knots"] = [list(point) for point in zip(*(side.tolist() for side in term.knots), strict=True)]
    return found
