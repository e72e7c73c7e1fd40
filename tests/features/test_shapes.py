"""Reading an additive model: shape functions, importance, displays."""

import numpy as np
import pandas as pd
import pytest

from scoreline import MeasureClassifier
from scoreline.features import Pairs
from scoreline.report import ShapeDisplay


def fitted():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (800, 3))
    y = np.abs(X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * rng.standard_normal(800) > 1
    X[::20, 1] = np.nan
    frame = pd.DataFrame(X, columns=["dose", "age", "size"])
    frame["town"] = np.array(["Bonn", "Ulm"])[(X[:, 0] > 0).astype(int)]
    return MeasureClassifier("roc_auc", features=Pairs(max_bins=16, max_pairs=2), alpha=0.01).fit(frame, y), frame, y


def test_functions_add_up_to_the_score():
    clf, frame, _ = fitted()
    shapes = clf.shape_functions()
    assert sum(len(shape.columns) == 2 for shape in shapes) == len(clf.feature_map_.pairs)
    for shape in shapes:
        assert shape.counts.sum() == len(frame)
        assert shape.scores.shape == tuple(len(words) for words in shape.labels)
        assert abs((shape.counts * shape.scores).sum()) < 1e-9 * len(frame), "mean 0 over the training rows"
    operator = clf.feature_map_.operator(frame)
    total = float(clf.decision_function(frame).sum() - len(frame) * clf.intercept_[0])
    assert abs(total) < 1e-8 * len(frame)
    tables = clf.feature_map_.tables(clf.coef_[0])
    direct = sum(tables[j][operator.codes[j]] for j in range(4))
    for group, values in zip(clf.feature_map_.groups[4:], tables[4:], strict=True):
        one, other = (operator.codes[column] for column in group.columns)
        direct = direct + values[group.near[one] + group.far[other]]
    np.testing.assert_allclose(direct + clf.intercept_[0], clf.decision_function(frame), rtol=0, atol=1e-12)


def test_importance_is_the_drop_of_the_measure():
    clf, frame, y = fitted()
    shapes = clf.shape_functions(frame, y)
    assert [shape.importance for shape in shapes] == sorted((s.importance for s in shapes), reverse=True)
    assert {shapes[0].name, shapes[1].name} == {"dose", "age and size"}
    dose = next(shape for shape in shapes if shape.name == "dose")
    codes = clf.feature_map_.operator(frame).codes
    without = clf.decision_function(frame) - dose.scores[codes[0]]
    expected = clf.score(frame, y) - MeasureClassifier("roc_auc").fit(without[:, None], y).score(without[:, None], y)
    assert abs(dose.importance - expected) < 1e-4  # scores that are equal but for rounding are ranked either way


def test_displays_and_errors():
    clf, frame, y = fitted()
    shapes = clf.shape_functions()
    for k, shape in enumerate(shapes):
        display = ShapeDisplay.from_estimator(clf, k).plot()
        assert shape.columns[0] in display.describe()
    with pytest.raises(ValueError, match="features='additive' or 'pairs'"):
        MeasureClassifier().fit(np.nan_to_num(frame[["dose", "age"]]), y).shape_functions()
