"""Columns as they come: types for categories, missing values of every library, values out of range, nothing to learn from."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from scoreline import MeasureClassifier
from scoreline.features import Additive
from scoreline.features.bins import number_bins


def rows(n=240):
    rng = np.random.default_rng(0)
    x = rng.uniform(-2, 2, n)
    return x, np.abs(x) > 1


def kinds(frame, y):
    clf = MeasureClassifier(features="additive", alpha=0.01).fit(frame, y)
    assert np.isfinite(clf.decision_function(frame)).all()
    return [column.kind for column in clf.feature_map_.columns]


def test_types_for_categories_and_missing_values_of_pandas():
    x, y = rows()
    frame = pd.DataFrame(
        {"x": x, "whole": pd.Categorical(np.arange(240) % 7), "text": pd.Categorical(["a", "b"] * 120)}
    )
    frame["flag"] = pd.array(x > 0, dtype="boolean")
    frame["word"] = pd.array(["a", "b", "c"] * 80, dtype="string")
    frame["count"] = pd.array(np.arange(240) % 5, dtype="Int64")
    frame["late"] = [None] * 239 + ["x"]
    frame.loc[::9, ["whole", "text", "flag", "word", "count"]] = pd.NA
    expected = ["number", "category", "category", "number", "category", "number", "category"]
    assert kinds(frame, y) == expected
    codes = Additive().learn(frame).codes
    for name in ("whole", "text", "flag", "word", "count"):
        assert np.array_equal(codes[list(frame).index(name)] == 0, frame[name].isna()), name


def test_types_for_categories_and_missing_values_of_polars_and_pyarrow():
    x, y = rows()
    holes = [None if i % 9 == 0 else float(value) for i, value in enumerate(x)]
    frame = pl.DataFrame({
        "x": x, "c": pl.Series(["a", "b", None] * 80, dtype=pl.Categorical), "holes": holes,
        "flag": [None if v is None else v > 0 for v in holes], "word": ["a", None] * 120, "nothing": [None] * 240,
    })  # fmt: skip
    expected = ["number", "category", "number", "number", "category", "number"]
    assert kinds(frame, y) == expected
    enum = frame.with_columns(pl.Series("c", ["a", "b"] * 120, dtype=pl.Enum(["a", "b"])))
    assert kinds(enum, y) == expected
    assert kinds(frame.to_arrow(), y) == expected
    if int(pa.__version__.split(".")[0]) >= 17:  # pandas cannot make an array of such categories with pyarrow 16
        assert kinds(frame.to_pandas(use_pyarrow_extension_array=True), y) == expected


def test_categories_that_are_numbers_are_matched_by_value():
    x, y = rows()
    zips = np.arange(240) % 7
    frame = pd.DataFrame({"x": x, "zip": pd.Categorical(zips)})
    clf = MeasureClassifier(features="additive", alpha=0.01).fit(frame, y)
    plain = frame.assign(zip=zips.astype(float))
    assert np.array_equal(clf.decision_function(plain), clf.decision_function(frame))
    unseen = frame.assign(zip=99.0)
    assert np.isfinite(clf.decision_function(unseen)).all()


def test_texts_in_a_column_of_numbers_are_an_error():
    x, y = rows()
    clf = MeasureClassifier(features="additive", alpha=0.01).fit(pd.DataFrame({"x": x}), y)
    with pytest.raises(ValueError, match=r"column 'x' holds texts, but it held numbers in the training rows"):
        clf.predict(pd.DataFrame({"x": ["a"] * 3}))


def test_values_at_the_ends_of_the_range_have_finite_bins():
    for values in (np.array([1e308, -1e308, 1.5e308, 1.7e308] * 30), np.linspace(1e-310, 9e-310, 120)):
        bins = number_bins("x", values, np.full(120, 5.0), 8)
        assert np.isfinite(bins.centers).all()
        assert (bins.centers[1:] > bins.centers[:-1]).all()


@pytest.mark.parametrize("dtype", [np.int64, np.uint64, np.int8, np.float32, np.float16, np.longdouble, bool, object])
def test_types_of_arrays(dtype):
    x, y = rows()
    X = np.column_stack([x > 0, np.abs(x) > 1]).astype(dtype)
    clf = MeasureClassifier(features="additive", alpha=0.01).fit(X, y)
    assert clf.score(X, y) == 1.0


@pytest.mark.parametrize("value", [np.nan, 3.0])
def test_nothing_to_learn_from_is_an_error(value):
    _, y = rows()
    with pytest.raises(ValueError, match="Every column of X is constant or missing"):
        MeasureClassifier(features="additive").fit(np.full((240, 2), value), y)
