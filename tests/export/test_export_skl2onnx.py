"""The classifiers as steps that skl2onnx converts."""

import numpy as np
import pandas as pd
import pytest
import skl2onnx
from export_models import CALIBRATION, LABELS, made, probability, run_onnx, size, trained
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.ensemble import BaggingClassifier, StackingClassifier, VotingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, StandardScaler

from cases import for_each
from scoreline import MeasureClassifier, MeasureClassifierCV
from scoreline.export import register_with_skl2onnx

pytestmark = pytest.mark.slow
PLAIN = {"zipmap": False}


@pytest.fixture(scope="module", autouse=True)
def registered():
    register_with_skl2onnx()
    register_with_skl2onnx()  # twice is no harm


def pairs(found):
    """Return both outputs."""
    label, table = found.values()
    return label, table


@for_each("dtype", ["float32", "float64"])
@for_each("calibrated", [False, True])
@for_each("labels", sorted(set(LABELS) - {"fraction"}))
def test_label_and_table(labels, calibrated, dtype):
    clf, X = trained("f1", labels, calibrated=calibrated)
    X = X.astype(dtype)
    label, table = pairs(run_onnx(skl2onnx.to_onnx(clf, X[:1], options=PLAIN), X))
    score = clf.decision_function(X)
    assert np.array_equal(label, clf.predict(X))
    assert table.dtype == dtype
    rounding = 1e-14 if dtype == "float64" else 1e-7
    expected = probability(clf, X) if calibrated else score
    np.testing.assert_allclose(table[:, 1], expected, rtol=0, atol=rounding * (1.0 if calibrated else size(clf, X)))
    np.testing.assert_allclose(table[:, 0] + table[:, 1], float(calibrated), rtol=0, atol=3e-7)


@for_each("calibrated", [False, True])
def test_options(calibrated):
    clf, X = trained("f1", "text", calibrated=calibrated)
    X = X.astype(np.float32)

    def outputs(**options):
        return run_onnx(skl2onnx.to_onnx(clf, X[:1], options={id(clf): options}), X)

    label, maps = pairs(outputs())
    second = probability(clf, X) if calibrated else clf.decision_function(X)
    assert np.array_equal(label, clf.predict(X))
    np.testing.assert_allclose([row[LABELS["text"][1]] for row in maps], second, rtol=1e-6, atol=1e-6)
    raw = pairs(outputs(zipmap=False, raw_scores=True))[1]
    np.testing.assert_allclose(raw, np.outer(clf.decision_function(X), [-1, 1]), rtol=1e-6, atol=1e-6)
    assert np.array_equal(pairs(outputs(zipmap=False, nocl=True))[0], clf.decision_function(X) > 0)
    assert len(outputs(zipmap="columns")) == 3
    assert list(outputs(zipmap=False, output_class_labels=True).values())[2].tolist() == list(LABELS["text"])


@for_each("dtype", [np.int64, np.int32, np.bool_])
def test_rows_that_are_no_floats(dtype):
    X = np.random.default_rng(0).integers(0, 2, (60, 4)).astype(dtype)
    clf = MeasureClassifier("f1").fit(X.astype(float), (X[:, 0] > 0) & (X[:, 1] > 0))
    label, table = pairs(run_onnx(skl2onnx.to_onnx(clf, X[:1], options=PLAIN), X))
    assert np.array_equal(label, clf.predict(X.astype(float)))
    assert table.dtype == np.float32


def test_labels_that_skl2onnx_has_not():
    clf, X = trained("f1", "fraction")
    with pytest.raises(ValueError, match=r"0\.5, 1\.5.*scoreline\.export\.to_onnx"):
        skl2onnx.to_onnx(clf, X[:1], options=PLAIN)


@for_each("make", [MeasureClassifier, lambda m: MeasureClassifierCV(m, alphas=[0.1, 0.01], cv=3)])
def test_pipeline(make):
    _, X = trained()
    y = np.where(X[:, 0] > 0, "b", "a")
    pipe = make_pipeline(StandardScaler(), MinMaxScaler(), make("f1")).fit(X, y)
    label, table = pairs(run_onnx(skl2onnx.to_onnx(pipe, X[:1], options=PLAIN), X))
    assert np.array_equal(label, pipe.predict(X))
    np.testing.assert_allclose(table[:, 1], pipe.decision_function(X), rtol=0, atol=1e-12)
    single = run_onnx(skl2onnx.to_onnx(pipe, X[:1].astype(np.float32)), X.astype(np.float32))
    assert np.mean(pairs(single)[0] == pipe.predict(X)) > 0.99


def test_columns_of_a_frame():
    _, X = trained()
    frame = pd.DataFrame({"amount": X[:, 0].astype(np.float32), "color": np.where(X[:, 1] > 0, "red", "blue")})
    y = X[:, 0] + (X[:, 1] > 0) > 0.5
    steps = make_column_transformer((StandardScaler(), ["amount"]), (OneHotEncoder(sparse_output=False), ["color"]))
    pipe = make_pipeline(steps, MeasureClassifier("f1")).fit(frame, y)
    model = skl2onnx.to_onnx(pipe, frame[:1], options=PLAIN)
    import onnxruntime

    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    feeds = {name: frame[[name]].to_numpy() for name in frame}
    label, table = session.run(None, feeds)
    assert np.array_equal(label, pipe.predict(frame))
    np.testing.assert_allclose(table[:, 1], pipe.decision_function(frame), rtol=1e-5, atol=1e-5)


def three_classes(X):
    return np.digitize(X[:, 0] * 10 + X[:, 1], [-1.0, 1.0])


def raw(wrapper):
    return {id(wrapper): {"raw_scores": True, "zipmap": False}}


WRAPPERS = {
    "one against the rest": (lambda: OneVsRestClassifier(MeasureClassifier("f1")), three_classes, raw),
    "one against one": (lambda: OneVsOneClassifier(MeasureClassifier("f1")), three_classes, lambda _: PLAIN),
    "several outputs": (
        lambda: MultiOutputClassifier(MeasureClassifier("f1")),
        lambda X: np.c_[X[:, 0] > 0.05, X[:, 1] > 0.3].astype(int),
        lambda _: PLAIN,
    ),
    "calibrated by scikit-learn": (
        lambda: CalibratedClassifierCV(MeasureClassifier("f1"), cv=3),
        lambda X: (X[:, 0] > 0.05).astype(int),
        lambda _: PLAIN,
    ),
    "hard votes": (
        lambda: VotingClassifier(
            [("f", MeasureClassifier("f1")), ("a", MeasureClassifier("roc_auc")), ("l", LogisticRegression())],
            flatten_transform=False,
        ),
        lambda X: (X[:, 0] > 0.05).astype(int),
        lambda _: PLAIN,
    ),
    "hard votes of models with probabilities": (
        lambda: VotingClassifier([("f", MeasureClassifier("f1", probability=True))], flatten_transform=False),
        lambda X: (X[:, 0] > 1.0).astype(int),
        lambda wrapper: {id(each): {"raw_scores": True} for each in wrapper.estimators_} | {id(wrapper): PLAIN},
    ),
    "stacked probabilities": (
        lambda: StackingClassifier(
            [("f", MeasureClassifier("f1", probability=True)), ("l", LogisticRegression())], cv=3
        ),
        lambda X: (X[:, 0] > 0.05).astype(int),
        lambda _: PLAIN,
    ),
    "bagged probabilities": (
        lambda: BaggingClassifier(MeasureClassifier("f1", probability=True), n_estimators=3, random_state=0),
        lambda X: (X[:, 0] > 0.05).astype(int),
        lambda _: PLAIN,
    ),
    "grid search": (
        lambda: GridSearchCV(MeasureClassifier("f1"), {"alpha": [1e-3, 1e-2]}, cv=3),
        lambda X: (X[:, 0] > 0.05).astype(int),
        lambda _: PLAIN,
    ),
}


@for_each("name", WRAPPERS)
@pytest.mark.filterwarnings("ignore")
def test_wrappers_of_scikit_learn(name):
    make, labels, options = WRAPPERS[name]
    X = (trained()[1] / np.logspace(-1, 2, 5)).astype(np.float32)
    wrapper = make().fit(X, labels(X))
    label, _ = pairs(run_onnx(skl2onnx.to_onnx(wrapper, X[:1], options=options(wrapper)), X))
    assert np.mean(np.asarray(label).reshape(-1) == wrapper.predict(X).reshape(-1)) > 0.995


def test_predict_proba():
    X = trained()[1].astype(np.float32)
    y = X[:, 0] > 0.05
    clf = MeasureClassifier("f1", scaling="standard", probability=True, random_state=0).fit(X, y)
    table = pairs(run_onnx(skl2onnx.to_onnx(clf, X[:1], options=PLAIN), X))[1]
    np.testing.assert_allclose(table, clf.predict_proba(X), rtol=1e-6)


@pytest.mark.filterwarnings("ignore")
def test_one_against_the_rest_of_probabilities_needs_raw_scores():
    """What docs/deploy.md warns of: skl2onnx would compare probabilities, scikit-learn compares scores."""
    X = (trained()[1] / np.logspace(-1, 2, 5)).astype(np.float32)
    wrapper = OneVsRestClassifier(MeasureClassifier("f1")).fit(X, three_classes(X))
    for k, clf in enumerate(wrapper.estimators_):
        clf.calibration_ = CALIBRATION * [1.0, 20.0 * (k == 1)]
    label, _ = pairs(run_onnx(skl2onnx.to_onnx(wrapper, X[:1], options=raw(wrapper)), X))
    assert np.array_equal(label, wrapper.predict(X))
    label, _ = pairs(run_onnx(skl2onnx.to_onnx(wrapper, X[:1], options=PLAIN), X))
    assert not np.array_equal(label, wrapper.predict(X))


def test_a_row_with_nan_has_no_label():
    """scikit-learn would refuse it; the label must not be that of the first class."""
    for classes, label in (((0, 1), -(2**63)), (("no", "yes"), "")):
        model = skl2onnx.to_onnx(made([1.0], classes=classes), np.zeros((1, 1)), options=PLAIN)
        found = run_onnx(model, np.array([[-1.0], [np.nan], [1.0]]))
        assert found["label"].tolist() == [classes[0], label, classes[1]]
        assert np.isnan(found["probabilities"][1]).all()
