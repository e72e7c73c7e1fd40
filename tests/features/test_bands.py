"""Bands of shape functions: the jackknife equals refits without rows, and measures how far the functions scatter."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from cases import for_each
from scoreline import MeasureClassifier, MeasureClassifierCV
from scoreline.features import Additive, Pairs
from scoreline.fitting.bands import jackknife_errors, row_groups, shape_errors
from scoreline.fitting.parameters import Parameters
from scoreline.report import ShapeDisplay
from scoreline.risks.registry import get_risk
from scoreline.solvers.registry import get_solver


def rows(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (n, 2))
    return X, np.abs(X[:, 0]) + 0.5 * X[:, 1] + 0.5 * rng.standard_normal(n) > 1


def errors_of(clf, X, y, groups):
    operator, sign = clf.feature_map_.operator(X), np.where(y, 1, -1)
    model = clf.coef_[0], clf.trained_intercept_, get_risk(clf.risk_), get_solver(clf.solver_)
    return shape_errors(Parameters.of(clf), operator, sign, None, model, groups)


@for_each("risk", ["logistic", "squared_hinge", "roc_area_squared"])
@for_each("monotone", [None, {1: 1}])
def test_the_jackknife_is_that_of_brute_force_refits(risk, monotone):
    X, y = rows(40)
    options = {"risk": risk, "alpha": 0.1, "tol": 1e-9, "threshold": "none", "monotone": monotone}
    clf = MeasureClassifier("roc_auc", features=Additive(max_bins=6), **options).fit(X, y)
    operator, tables = clf.feature_map_.operator(X), []
    for i in range(len(y)):
        rest = np.delete(np.arange(len(y)), i)
        refit = clone(clf).fit(operator.on_rows(rest), y[rest])
        tables.append(clf.feature_map_.tables(refit.coef_[0]))
    for own, expected in zip(errors_of(clf, X, y, len(y)), map(np.array, zip(*tables, strict=True)), strict=True):
        expected = jackknife_errors(expected)
        np.testing.assert_allclose(own, expected, rtol=0.02, atol=0.01 * expected.max())


def test_bands_are_as_wide_as_functions_of_other_rows_scatter():
    """The default risk has kinks, which are smoothed; functions of 30 independent tables tell how far they really scatter."""
    features = Additive(max_bins=8)
    X, y = rows(400)
    clf = MeasureClassifier("roc_auc", features=features, alpha=0.1, tol=1e-3).fit(X, y)
    assert clf.risk_ == "roc_area"
    scattered = []
    for seed in range(1, 31):
        more, truth = rows(400, seed)
        other = clone(clf).fit(clf.feature_map_.operator(more), truth)
        scattered.append(clf.feature_map_.tables(other.coef_[0]))
    for own, each in zip(errors_of(clf, X, y, 30), zip(*scattered, strict=True), strict=True):
        real = np.std(each, axis=0, ddof=1)[1:]
        assert 0.5 < np.mean(own[1:]) / np.mean(real) < 2.0


def test_shape_functions_have_errors_and_are_tables():
    X, y = rows(300)
    frame = pd.DataFrame(X, columns=["dose", "age"])
    clf = MeasureClassifier("roc_auc", features=Pairs(pairs=[("dose", "age")], max_bins=8), alpha=0.05).fit(frame, y)
    plain = clf.shape_functions()
    assert all(shape.errors is None for shape in plain)
    shapes = clf.shape_functions(frame, y, bands=True)
    for shape in shapes:
        assert shape.errors.shape == shape.scores.shape
        assert (shape.errors[shape.counts > 0.0] > 0.0).all()
    table = pd.concat([shape.to_frame() for shape in shapes])
    assert list(table.columns) == ["function", "bin", "other_bin", "score", "rows", "error"]
    assert len(table) == sum(shape.scores.size for shape in shapes)
    pair = next(shape for shape in shapes if len(shape.columns) == 2)
    cell = pair.to_frame().set_index(["bin", "other_bin"]).loc[(pair.labels[0][2], pair.labels[1][3])]
    assert cell["score"] == pair.scores[2, 3]
    assert cell["error"] == pair.errors[2, 3]
    assert plain[0].to_frame()["error"].isna().all()
    with pytest.raises(ValueError, match="pass X and y"):
        clf.shape_functions(bands=True)


@for_each("measure", ["roc_auc", "f1"])
def test_searches_and_displays_have_bands(measure):
    X, y = rows(300)
    clf = MeasureClassifierCV(measure, features="auto", alphas=[0.1], cv=3).fit(X, y)
    display = ShapeDisplay.from_estimator(clf, 0, X, y)
    figure = display.plot().figure_
    assert "2 standard errors" in [text.get_text() for each in figure.legends + [ax.get_legend() for ax in figure.axes]
                                   if each is not None for text in each.get_texts()]  # fmt: skip


def test_weights_are_copies_but_for_the_groups():
    X, y = rows(60)
    copies = np.tile([1.0, 0.0, 2.0], 20)
    clf = MeasureClassifier("roc_auc", features="additive", alpha=0.1).fit(X, y, copies)
    shapes = clf.shape_functions(X, y, copies, bands=True)
    assert all(np.isfinite(shape.errors).all() for shape in shapes)
    sign = np.where(y, 1, -1)
    groups = row_groups(sign, copies, 7)
    together = np.sort(np.concatenate(groups))
    np.testing.assert_array_equal(together, np.flatnonzero(copies))
    share = [np.mean(sign[group] > 0) for group in groups]
    assert np.ptp(share) < 0.35
