"""Additive features and pairs of rows on a cluster: the bins, the pairs and the model of one process."""

import numpy as np
import pandas as pd
import pytest

from cases import for_each
from scoreline import MeasureClassifier
from scoreline.distributed import open_on_workers
from scoreline.features import Additive, Pairs
from scoreline.io import convert

da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
pytestmark = pytest.mark.slow

N = 1600


def table():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.uniform(-1, 1, (N, 3)), rng.integers(0, 5, N)])
    X[rng.random(N) < 0.1, 1] = np.nan
    score = X[:, 0] * X[:, 2] + 0.5 * np.abs(np.nan_to_num(X[:, 1])) + 0.3 * (X[:, 3] == 2)
    return X, score + rng.normal(0, 0.2, N) > 0.3, rng.integers(0, 3, N).astype(float)


@for_each("features", [Additive(categories=[3]), Pairs(categories=[3])])
def test_the_model_is_that_of_one_process(features, client):
    X, y, weight = table()
    blocks = da.from_array(X, chunks=(500, 4))
    clf = MeasureClassifier("roc_auc", features=features, alpha=0.01)
    one = clf.fit(X, y, weight)
    expected, objective, pairs = one.feature_map_, one.objective_, one.feature_map_.pairs
    coef, z = one.coef_, one.decision_function(X)
    clf.fit(blocks, da.from_array(y, chunks=700), da.from_array(weight, chunks=300))
    assert clf.feature_map_.has_bins_of(expected)
    assert clf.feature_map_.pairs == pairs
    np.testing.assert_allclose(clf.objective_, objective, rtol=1e-7)  # sums in another order
    np.testing.assert_allclose(clf.coef_, coef, atol=1e-5 * np.abs(coef).max())
    lazy = clf.decision_function(blocks)
    np.testing.assert_array_equal(lazy.compute(), clf.decision_function(X))
    np.testing.assert_allclose(lazy.compute(), z, atol=1e-4)
    np.testing.assert_allclose(clf.score(blocks, y), clf.score(X, y), rtol=1e-12)


def test_frames_have_names_and_monotone_columns(client):
    X, y, _ = table()
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    blocks = dd.from_pandas(frame, npartitions=3)
    clf = MeasureClassifier("roc_auc", features=Additive(categories=["d"]), monotone={"b": 1}, alpha=0.01).fit(
        blocks, y
    )
    assert [each.name for each in clf.feature_map_.columns] == ["a", "b", "c", "d"]
    assert clf.feature_map_.columns[3].kind == "category"
    rising = next(shape for shape in clf.shape_functions() if shape.name == "b")
    assert (np.diff(rising.scores[1:]) >= 0.0).all()
    np.testing.assert_array_equal(np.asarray(clf.predict(blocks)), clf.predict(frame))


def test_folders_are_opened_by_the_workers(client, tmp_path):
    X, y, _ = table()
    X = np.nan_to_num(X)
    data = open_on_workers(convert((X, y), tmp_path / "rows"))
    clf = MeasureClassifier("roc_auc", features="additive", alpha=0.01).fit(data.X, data.y)
    own = MeasureClassifier("roc_auc", features="additive", alpha=0.01).fit(X, y)
    np.testing.assert_allclose(clf.objective_, own.objective_, rtol=1e-7)
    np.testing.assert_allclose(clf.score(data.X, data.y), own.score(X, y), rtol=1e-7)


def test_folders_of_codes_are_refused(client, tmp_path):
    X, y, _ = table()
    folder = convert((np.nan_to_num(X), y), tmp_path / "coded", features="additive")
    with pytest.raises(ValueError, match="Convert the rows without features"):
        open_on_workers(folder)
