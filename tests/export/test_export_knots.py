"""Numbers that are mapped by linear interpolation between knots, in every format."""

import json
from itertools import pairwise

import numpy as np
from databases import DATABASES
from export_models import encoded, made, onnx_columns, run_onnx

from cases import for_each
from scoreline.export import to_json, to_onnx, to_sql
from scoreline.io import Encoding
from scoreline.io.columns import Column

CLIP = np.array([-1.0, 2.5]), np.array([-1.0, 2.5])
CURVE = np.array([-2.0, 0.0, 0.5, 7.0]), np.array([-3.0, -1.0, 0.1, 0.1])
COLUMNS = [
    Column("a", "number", (), 0.25, indicator=True),
    Column("b", "number"),
    Column("c", "category", ("x", "y")),
    Column("d", "number", (), 9.0),
]
KNOTS = [CURVE, None, CLIP, None, None, None]  # of a, whether it is missing, b, c=x, c=y, d
COEF = [1.5, -0.7, 2.0, 0.3, -0.4, 0.9]
CELLS = [-1e6, -2.0, -1.0, -0.5, 0.0, 0.3, 0.5, 2.5, 3.0, 7.0, 1e6]
ROWS = [(a, b, "x", 1.0) for a in [*CELLS, None] for b in CELLS] + [(1.0, 2.0, None, None)]


class Maps:
    """Stands for the `column_map_` of a classifier, with knots of our own."""

    def __init__(self, knots):
        self.of_features = knots

    def knots(self, k):
        return self.of_features[k]

    def transform(self, X):
        maps = zip(X.T, self.of_features, strict=True)
        return np.column_stack([x if knots is None else np.interp(x, *knots) for x, knots in maps])


def model():
    maps = Maps(KNOTS)
    clf = made(COEF, 0.1, ("no", "yes"), encoding_=Encoding(COLUMNS, impute="mean"), column_map_=maps)
    return clf, maps.transform(encoded(clf.encoding_, ROWS)) @ COEF + 0.1


def interpolated(knots, value):
    """Return the value that the words of the document describe."""
    if value <= knots[0][0]:
        return knots[0][1]
    for (x, y), (next_x, next_y) in pairwise(knots):
        if value <= next_x:
            return y + (next_y - y) * (value - x) / (next_x - x)
    return knots[-1][1]


def test_json():
    fit, expected = model()
    document = json.loads(json.dumps(to_json(fit)))
    assert "linear interpolation" in document["formula"]["knots"]
    assert ["knots" in column for column in document["columns"]] == [True, True, False, False]
    found = []
    for row in ROWS:
        total = document["intercept"]
        for column, value in zip(document["columns"], row, strict=True):
            if value is None:
                total += column["missing"]
            elif column["kind"] == "number":
                total += column["coefficient"] * (interpolated(column["knots"], value) if "knots" in column else value)
            else:
                total += column["coefficients"].get(value, column["other"])
        found.append(total)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-14)


@for_each("database", DATABASES)
def test_sql(database):
    fit, expected = model()
    types = ["DOUBLE PRECISION", "DOUBLE PRECISION", "TEXT", "DOUBLE PRECISION"]
    found = database(to_sql(fit, "t", keep=[]), "t", ["a", "b", "c", "d"], ROWS, types)
    np.testing.assert_allclose(found["score"], expected, rtol=0, atol=1e-14)
    odd = [(1.0, value, "x", 1.0) for value in (None, np.nan, np.inf, -np.inf)]
    found = database(to_sql(fit, "t", keep=[]), "t", ["a", "b", "c", "d"], odd, types)
    assert found["prediction"] == [None] * 4


def test_onnx_columns():
    fit, expected = model()
    found = run_onnx(to_onnx(fit), onnx_columns(COLUMNS, ROWS))
    np.testing.assert_allclose(found["score"], expected, rtol=0, atol=1e-14)
    odd = [(1.0, value, "x", 1.0) for value in (None, np.inf, -np.inf)] + [(np.inf, 1.0, "x", 1.0)]
    found = run_onnx(to_onnx(fit), onnx_columns(COLUMNS, odd))
    assert not found["valid"].any()


@for_each("count", [2, 3, 200])
def test_onnx_features(count):
    """Also a curve of many quantiles, where errors could add up."""
    rng = np.random.default_rng(0)
    knots = np.sort(rng.lognormal(0.0, 2.0, count)), np.linspace(-3.0, 3.0, count)
    X = rng.lognormal(0.0, 2.0, (500, 3))
    maps = Maps([knots, None, knots])
    found = run_onnx(to_onnx(made([2.0, -1.0, 0.5], column_map_=maps), dtype="float64"), X)
    np.testing.assert_allclose(
        found["score"], maps.transform(X) @ [2.0, -1.0, 0.5], rtol=0, atol=1e-13 * np.abs(X).max()
    )
