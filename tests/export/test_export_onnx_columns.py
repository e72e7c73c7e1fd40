"""ONNX models of tables take the columns as they are, and say what the classifier says of the features."""

import numpy as np
import onnx
import pandas as pd
import pytest
from export_models import encoded, made, onnx_columns, probability, run_onnx

from cases import for_each
from scoreline import MeasureClassifier
from scoreline.export import to_onnx
from scoreline.io import Encoding, read_data
from scoreline.io.columns import Column

SMALLEST = -(2**63)
COLUMNS = [
    Column("size", "number", (), 2.5, indicator=True),
    Column("color", "category", ("blue", "it's", "red", "?"), "?", other=True),
    Column("kind", "category", ("a", "b")),
]
COEF = [1.5, -0.7, 0.7, -0.1, 0.9, 2.0, 0.3, -3.0, 4.0]
ROWS = [(1.0, "red", "a"), (None, "it's", "b"), (3.0, None, None), (4.0, "green", "c"), (5.0, "?", "A")]


def run_columns(clf, values, **options):
    """Return the outputs of the model of columns for rows of values."""
    return run_onnx(to_onnx(clf, **options), onnx_columns(clf.encoding_.columns, values))


def test_numbers_and_categories():
    encoding = Encoding(COLUMNS, impute="mean", missing=("none",))
    clf = made(COEF, 0.3, ("no", "yes"), calibration=[0.7, 0.1], encoding_=encoding)
    X = encoded(encoding, ROWS)
    found = run_columns(clf, ROWS)
    np.testing.assert_allclose(found["score"], clf.decision_function(X), rtol=0, atol=1e-14)
    np.testing.assert_allclose(found["probabilities"][:, 1], probability(clf, X), rtol=1e-13)
    assert found["label"].tolist() == clf.predict(X).tolist()
    assert found["valid"].all()
    marked = run_columns(clf, [(1.0, "none", "none"), (1.0, None, None)])
    assert marked["score"][0] == marked["score"][1]


def test_a_table_that_was_read(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.normal(40, 9, 300), "night": rng.random(300) < 0.5})
    frame["land"] = rng.choice(["DE", "AT", None], 300)
    frame["code"] = rng.choice([1, 2, 7], 300)
    frame.loc[::7, "age"] = np.nan
    frame["y"] = (frame["code"] == 7) | (rng.random(300) < 0.2)
    data = read_data(frame, "y", impute="mean", categories=["code"])
    clf = MeasureClassifier("f1", scaling="standard", probability=True, random_state=0).fit(data.X, data.y)
    to_onnx(clf, tmp_path / "m.onnx", encoding=data.encoding)
    onnx.checker.check_model(onnx.load(tmp_path / "m.onnx"), full_check=True)
    inputs = {name: frame[[name]].to_numpy(dtype=object) for name in ("land", "code")}
    inputs |= {name: frame[[name]].to_numpy(dtype=np.float64) for name in ("age", "night")}
    found = run_onnx(str(tmp_path / "m.onnx"), inputs)
    score = clf.decision_function(data.X)
    np.testing.assert_allclose(found["score"], score, rtol=0, atol=1e-13 * np.abs(score).max())
    np.testing.assert_allclose(found["probabilities"], clf.predict_proba(data.X), rtol=1e-11)
    assert np.array_equal(found["label"], clf.predict(data.X))


def test_many_categories_are_one_lookup():
    names = tuple(f"c{k}" for k in range(13_000))
    clf = made(np.arange(1.0, 13_002.0), encoding_=Encoding([Column("id", "category", names, other=True)]))
    model = to_onnx(clf)
    values = [("c0",), ("c12999",), ("new",)]
    assert run_columns(clf, values)["score"].tolist() == [1.0, 13_000.0, 13_001.0]
    assert max(np.prod(each.dims, initial=1) for each in model.graph.initializer) < 13_010
    assert [(each.name, each.type.tensor_type.elem_type) for each in model.graph.input] == [("id", 8)]


def test_many_columns():
    columns = [Column(f"n{k}", "number", (), 1.0) for k in range(300)]
    columns += [Column(f"c{k}", "category", ("a", "b")) for k in range(300)]
    encoding, rng = Encoding(columns, impute="mean"), np.random.default_rng(0)
    clf = made(rng.standard_normal(900), encoding_=encoding)
    values = [[*rng.standard_normal(300).tolist(), *rng.choice(["a", "b", "c"], 300).tolist()] for _ in range(5)]
    expected = clf.decision_function(encoded(encoding, values))
    np.testing.assert_allclose(run_columns(clf, values)["score"], expected, rtol=0, atol=1e-12)


def test_columns_that_cannot_change_the_score_are_no_inputs():
    clf = made([0.0] * 2 + COEF[2:6] + [0.0] + COEF[7:], encoding_=Encoding(COLUMNS, impute="mean"))
    assert [each.name for each in to_onnx(clf).graph.input] == ["color", "kind"]
    clf = made([0.0, *COEF[1:]], encoding_=Encoding(COLUMNS, impute="mean"))
    assert [each.name for each in to_onnx(clf).graph.input] == ["size", "color", "kind"]
    clf = made([0.0] * 9, 1.0, encoding_=Encoding(COLUMNS, impute="mean"))
    assert run_columns(clf, ROWS)["score"].tolist() == [1.0] * 5


@for_each("dtype", ["float32", "float64"])
def test_types_of_numbers(dtype):
    clf = made([1.0], encoding_=Encoding([Column("a", "number")]))
    found = run_onnx(to_onnx(clf, dtype=dtype), {"a": np.array([[16_777_217.0]], dtype=dtype)})
    assert found["score"] == [float(np.dtype(dtype).type(16_777_217.0))]
    assert to_onnx(clf).graph.input[0].type.tensor_type.elem_type == 11


def test_missing_texts():
    """The empty text, and what onnxruntime makes of None, NaN and pandas.NA, unless it is a category."""
    columns = [Column("a", "category", ("x", "?"), "?"), Column("b", "category", ("", "nan", "?"), "?")]
    clf = made([1.0, 2.0, 10.0, 20.0, 40.0], encoding_=Encoding(columns, impute="mean"))
    nothing = np.array([[""], [None], [np.nan], [pd.NA], ["None"]], dtype=object)
    found = run_onnx(to_onnx(clf), {"a": nothing, "b": nothing})
    assert found["score"].tolist() == [12.0, 42.0, 22.0, 42.0, 42.0]


def test_spellings_of_numbers_and_truth_values():
    columns = [Column("code", "category", ("0", "3", "1.5", "1e5")), Column("flag", "category", ("false", "true"))]
    encoding = Encoding(columns, impute="mean")
    clf = made([1.0, 2.0, 4.0, 8.0, 16.0, 32.0], encoding_=encoding)
    codes = ["0", "-0", "0.0", "-0.0", "3", "3.0", "3.00", "1.5", "1.50", "1e5", "03", "30", "1e50", "+3", "3."]
    flags = ["true", "True", "TRUE", "false", "False", "FALSE", "1", "0", "t", "true ", "2", "x", "yes", "no", "trueE"]
    values = list(zip(codes, flags, strict=True))
    expected = clf.decision_function(encoded(encoding, values))
    assert run_columns(clf, values)["score"].tolist() == expected.tolist()


def test_a_column_with_the_name_of_an_output():
    columns = [Column("score", "number"), Column("label", "category", ("a",)), Column("cast", "number")]
    model = to_onnx(made([1.0, 2.0, 4.0], encoding_=Encoding(columns)))
    assert [each.name for each in model.graph.output] == ["label_", "score_", "valid"]
    found = run_onnx(model, onnx_columns(columns, [(1.0, "a", 1.0)]))
    assert found["score_"].tolist() == [7.0]
    with pytest.raises(ValueError, match="a name is empty"):
        to_onnx(made([1.0], encoding_=Encoding([Column("", "number")])))


def test_inputs_are_columns_or_features():
    clf = made(COEF, encoding_=Encoding(COLUMNS, impute="mean"))
    features = to_onnx(clf, inputs="features")
    assert [each.name for each in features.graph.input] == ["X"]
    X = encoded(clf.encoding_, ROWS).astype(np.float32)
    np.testing.assert_allclose(run_onnx(features, X)["score"], clf.decision_function(X), rtol=1e-14)
    assert to_onnx(clf, inputs="columns").graph == to_onnx(clf).graph
    with pytest.raises(ValueError, match=r"inputs='columns' needs to know .* pass encoding="):
        to_onnx(made([1.0]), inputs="columns")
    with pytest.raises(ValueError, match="Did you mean 'columns'"):
        to_onnx(clf, inputs="column")


@for_each(
    ("classes", "label"),
    [(("no", "yes"), ""), ((0, 1), SMALLEST), ((0.0, 1.0), np.nan), ((False, True), False)],
)
@for_each("value", [np.nan, np.inf, -np.inf])
def test_rows_that_predict_refuses_have_no_label(classes, label, value):
    clf = made([1.0, -2.0], 0.5, classes, calibration=[1.0, 0.0])
    X = np.array([[1.0, 2.0], [value, 1.0], [2.0, 1.0]])
    with pytest.raises(ValueError, match=r"NaN|infinity"):
        clf.predict(X)
    found = run_onnx(to_onnx(clf, dtype="float64"), X)
    assert found["valid"].tolist() == [True, False, True]
    assert found["label"][[0, 2]].tolist() == clf.predict(X[[0, 2]]).tolist()
    assert np.array_equal([found["label"][1]], [label], equal_nan=isinstance(label, float))
    assert np.isnan(found["score"][1])
    assert np.isnan(found["probabilities"][1]).all()
    assert np.isfinite(found["probabilities"][[0, 2]]).all()


def test_missing_values_that_were_an_error_have_no_label():
    encoding = Encoding([Column("size", "number"), Column("color", "category", ("blue", "red"))], missing=("none",))
    clf = made([1.0, 2.0, 3.0], classes=("no", "yes"), encoding_=encoding)
    values = [(1.0, "red"), (None, "red"), (1.0, None), (1.0, "none"), (np.inf, "red"), (1.0, "green")]
    found = run_columns(clf, values)
    assert found["valid"].tolist() == [True, False, False, False, False, True]
    assert found["label"].tolist() == ["yes", "", "", "", "", "yes"]
    np.testing.assert_array_equal(found["score"], [4.0, np.nan, np.nan, np.nan, np.nan, 1.0])
