"""ONNX says what the classifier says: labels by the threshold, scores in double, probabilities."""

import json

import numpy as np
import onnx
import scipy.sparse as sp
from export_models import LABELS, made, probability, rows, run_onnx, size, trained

from cases import for_each
from scoreline import MeasureClassifier
from scoreline.export import to_onnx
from scoreline.io import Encoding, read_data

MEASURES = ["roc_auc", "accuracy", "f1", "gmean", "mcc", "prbep", "average_precision", "partial_roc_auc"]
MEASURES += [("precision_at_k", {"k": 20}), ("recall_at_precision", {"precision": 0.8})]


def check(clf, X, model):
    """Labels and scores of `model` are those of `clf`, but for scores that are 0 within rounding."""
    found, score = run_onnx(model, X), clf.decision_function(X)
    rounding = 1e-14 * size(clf, X)
    np.testing.assert_allclose(found["score"], score, rtol=0, atol=rounding)
    assert found["label"].shape == score.shape
    sure = np.abs(score) > rounding
    assert sure.sum() > 0.9 * len(score)
    assert np.array_equal(found["label"][sure], clf.predict(X)[sure])
    assert np.array_equal(found["label"], clf.classes_[(found["score"] > 0).astype(int)])
    assert found["valid"].all()
    return found


@for_each("dtype", ["float32", "float64"])
@for_each("measure", MEASURES)
def test_every_family_of_measures(measure, dtype):
    name, params = measure if isinstance(measure, tuple) else (measure, None)
    clf, X = trained(name, **(params or {}))
    found = check(clf, X.astype(dtype), to_onnx(clf, dtype=dtype))
    assert found.keys() == {"label", "score", "valid"}


@for_each("calibrated", [False, True])
@for_each(("labels", "search"), [*((name, False) for name in LABELS), ("text", True), ("bool", True)])
def test_labels_of_every_kind(labels, search, calibrated):
    clf, X = trained("f1", labels, search, calibrated)
    found = check(clf, X, to_onnx(clf, dtype="float64"))
    assert found["label"].dtype.kind == {"b": "b", "U": "O", "f": "f"}.get(clf.classes_.dtype.kind, "i")
    if calibrated:
        np.testing.assert_allclose(found["probabilities"][:, 1], probability(clf, X), rtol=1e-12, atol=0)
        np.testing.assert_allclose(found["probabilities"].sum(axis=1), 1.0, rtol=0, atol=1e-15)


def test_labels_that_are_objects():
    clf = made([1.0], classes=np.array(["a", "b"], dtype=object))
    assert run_onnx(to_onnx(clf), np.array([[1.0], [-1.0]], np.float32))["label"].tolist() == ["b", "a"]


def test_a_classifier_trained_on_sparse_rows():
    X, y = rows()
    X[np.abs(X) < 1.0] = 0.0
    clf = MeasureClassifier("accuracy", scaling="maxabs").fit(sp.csr_array(X), y)
    check(clf, X, to_onnx(clf, dtype="float64"))


def test_a_score_of_zero_is_the_first_class():
    clf = made([2.0, -0.5], 1.0, ("no", "yes"))
    X = np.array([[0.0, 2.0], [0.0, np.nextafter(2.0, 0.0)], [-0.5, 0.0], [-0.0, 2.0]])
    assert (
        run_onnx(to_onnx(clf, dtype="float64"), X)["label"].tolist()
        == clf.predict(X).tolist()
        == ["no", "yes", "no", "no"]
    )


def test_rows_of_float32_are_summed_in_double():
    rng = np.random.default_rng(0)
    clf = made(rng.standard_normal(5000) * 1e3, -1e3)
    X = (1e3 + rng.standard_normal((50, 5000))).astype(np.float32)
    score, exact = run_onnx(to_onnx(clf), X)["score"], X.astype(np.float64) @ clf.coef_[0] + clf.intercept_[0]
    assert score.dtype == np.float64
    np.testing.assert_allclose(score, exact, rtol=0, atol=1e-14 * size(clf, X))
    singles = X @ clf.coef_[0].astype(np.float32) + np.float32(-1e3)
    assert np.abs(singles - exact).max() > 1e4 * np.abs(score - exact).max()


def test_probabilities_do_not_overflow_and_keep_the_digits_of_small_ones():
    clf = made([1.0], 0.0, calibration=[2.0, 0.0])
    X = np.array([[-1e4], [-300.0], [-20.0], [0.0], [20.0], [300.0], [1e4]])
    found = run_onnx(to_onnx(clf, dtype="float64"), X)["probabilities"]
    np.testing.assert_allclose(found[:, 1], [0.0, np.exp(-600.0), np.exp(-40.0), 0.5, 1.0, 1.0, 1.0], rtol=1e-14)
    assert np.array_equal(found[:, 0], found[::-1, 1])


def test_predict_proba():
    """Of a model that learnt its probabilities, as of all others here."""
    X, y = rows()
    clf = MeasureClassifier("f1", scaling="standard", probability=True, random_state=0).fit(X, y)
    found = check(clf, X, to_onnx(clf, dtype="float64"))
    np.testing.assert_allclose(found["probabilities"], clf.predict_proba(X), rtol=1e-12, atol=1e-300)


def test_no_rows():
    clf, X = trained(calibrated=True)
    found = run_onnx(to_onnx(clf), X[:0].astype(np.float32))
    assert {name: value.shape for name, value in found.items()} == {
        "label": (0,),
        "score": (0,),
        "probabilities": (0, 2),
        "valid": (0,),
    }


def test_file_and_metadata(tmp_path):
    frame = {"größe": [1.0, 2.0, 3.0, 4.0], "color": ["red", "blue", "red", "green"], "y": [0, 1, 0, 1]}
    import pandas as pd

    data = read_data(pd.DataFrame(frame), "y")
    clf = MeasureClassifier("f1").fit(data.X, data.y)
    to_onnx(clf, tmp_path / "m.onnx", dtype="float64", encoding=data.encoding, inputs="features")
    model = onnx.load(tmp_path / "m.onnx")
    onnx.checker.check_model(model, full_check=True)
    properties = {each.key: each.value for each in model.metadata_props}
    assert json.loads(properties["features"]) == ["größe", "color=blue", "color=green", "color=red"]
    assert Encoding.from_json(properties["encoding"]) == data.encoding
    assert properties["measure"] == "f1"
    check(clf, data.X, str(tmp_path / "m.onnx"))
    named = MeasureClassifier().fit(pd.DataFrame(frame)[["größe"]], frame["y"])
    assert json.loads(to_onnx(named).metadata_props[1].value) == ["größe"]


def test_a_classifier_that_was_saved_and_loaded(tmp_path):
    from scoreline import load_model

    clf, X = trained(search=True)
    clf.save(tmp_path / "m.npz")
    assert to_onnx(load_model(tmp_path / "m.npz")).graph == to_onnx(clf).graph
    check(clf, X, to_onnx(load_model(tmp_path / "m.npz"), dtype="float64"))
