"""ONNX of a ThresholdClassifier: the label is by its threshold, whoever trained the estimator."""

import numpy as np
import pytest
import skl2onnx
from export_models import run_onnx
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from cases import for_each
from scoreline import MeasureClassifier, ThresholdClassifier
from scoreline.export import register_with_skl2onnx, to_json, to_onnx

RNG = np.random.default_rng(0)
X = RNG.standard_normal((400, 5)).astype(np.float32)
SIGN = np.where(X[:, 0] + X[:, 1] + RNG.standard_normal(400) > 1.2, 1, -1)
ESTIMATORS = {
    "logistic": lambda: LogisticRegression(),
    "decision function": lambda: LogisticRegression(),
    "pipeline": lambda: make_pipeline(StandardScaler(), LogisticRegression()),
    "trees": lambda: GradientBoostingClassifier(n_estimators=5, random_state=0),
    "support vectors": lambda: LinearSVC(),
    "ours": lambda: MeasureClassifier("roc_auc"),
    "our probabilities": lambda: MeasureClassifier("roc_auc", probability=True),
    "our pipeline": lambda: make_pipeline(StandardScaler(), MeasureClassifier("roc_auc")),
}


@for_each("labels", ["numbers", "text"])
@for_each("kind", list(ESTIMATORS))
def test_labels_are_by_the_threshold(kind, labels, tmp_path):
    y = np.where(SIGN > 0, "yes", "no") if labels == "text" else SIGN
    method = "decision_function" if kind == "decision function" else "auto"
    clf = ThresholdClassifier(ESTIMATORS[kind](), "f1", cv=3, response_method=method).fit(X, y)
    model = to_onnx(clf, tmp_path / "model.onnx", dtype="float64" if kind.startswith("our") else None)
    rows = X.astype(np.float64) if kind.startswith("our") else X
    found = run_onnx(model, rows)
    response = getattr(clf.estimator_, clf.response_method_)(rows)
    response = response[:, 1] if response.ndim == 2 else response
    sure = np.abs(response - clf.best_threshold_) > 1e-5
    assert sure.mean() > 0.95
    assert np.array_equal(found["label"][sure], clf.predict(rows)[sure])
    assert (clf.predict(X) != clf.estimator_.predict(X)).any() or kind.startswith("our")
    assert (tmp_path / "model.onnx").stat().st_size > 0
    if "probabilities" in found:
        expected = clf.predict_proba(rows)[:, 1] if clf.response_method_ == "predict_proba" else response
        np.testing.assert_allclose(found["probabilities"][:, 1], expected, atol=1e-5, rtol=1e-5)


def test_it_is_a_step_of_a_pipeline_for_skl2onnx():
    register_with_skl2onnx()
    clf = make_pipeline(StandardScaler(), ThresholdClassifier(LogisticRegression(), "gmean", cv=3)).fit(X, SIGN)
    found = run_onnx(skl2onnx.to_onnx(clf, X[:1], options={"zipmap": False}), X)
    sure = np.abs(clf.predict_proba(X)[:, 1] - clf[-1].best_threshold_) > 1e-5
    assert np.array_equal(found["label"][sure], clf.predict(X)[sure])


def test_a_promise_that_is_not_given_flags_nothing_in_onnx_too():
    params = {"precision": 0.999, "guarantee": 0.95}
    with pytest.warns(UserWarning, match="not promised"):
        clf = ThresholdClassifier(LogisticRegression(), "recall_at_precision", params, random_state=0).fit(X, SIGN)
    assert (run_onnx(to_onnx(clf), X)["label"] == -1).all()


def test_what_cannot_be_exported_says_so():
    clf = ThresholdClassifier(LogisticRegression(), "f1", cv=3).fit(X, SIGN)
    with pytest.raises(TypeError, match=r"compare its predict_proba with clf\.best_threshold_"):
        to_json(clf)
    with pytest.raises(ValueError, match="inputs are features"):
        to_onnx(clf, inputs="columns")
    with pytest.raises(ValueError, match="is not fitted"):
        to_onnx(ThresholdClassifier(MeasureClassifier("f1")))
