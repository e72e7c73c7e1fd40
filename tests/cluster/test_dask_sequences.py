"""String features on a cluster: of Dask arrays, series and bags, and of folders that the workers open."""

import numpy as np
import pandas as pd
import pytest

from cases import for_each
from scoreline import MeasureClassifier
from scoreline.distributed import open_on_workers
from scoreline.io import convert, convert_sequences
from scoreline.operators import StringOperator

da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
db = pytest.importorskip("dask.bag")
pytestmark = pytest.mark.slow

N, LENGTH = 900, 24


def planted():
    rng = np.random.default_rng(0)
    letters = rng.choice(np.frombuffer(b"ACGT", np.uint8), size=(N, LENGTH))
    y = rng.random(N) < 0.4
    letters[y, 5:11] = np.frombuffer(b"GATTAC", np.uint8)
    return letters.view(f"S{LENGTH}").ravel(), y


def collection(kind, rows):
    text = rows.astype(str)
    if kind == "array":
        return da.from_array(rows, chunks=250)
    if kind == "series":
        return dd.from_pandas(pd.Series(text.astype(object)), npartitions=3)
    return db.from_sequence(text.tolist(), npartitions=4)


@for_each("kind", ["array", "series", "bag", "folders"])
def test_the_same_model_as_here(kind, client, tmp_path):
    rows, y = planted()
    options = {"degree": 4, "kind": "weighted_degree" if kind != "bag" else "spectrum"}
    labels = y
    if kind == "folders":
        folders = [convert_sequences((rows[a:b], y[a:b]), tmp_path / f"part-{a}") for a, b in ((0, 500), (500, N))]
        data = open_on_workers(folders, **options)
        X, labels = data.X, data.y
    else:
        X = StringOperator.from_dask(collection(kind, rows), **options)
    here = StringOperator(rows, **options)
    assert X.shape == here.shape
    rng = np.random.default_rng(1)
    w, u = rng.standard_normal(here.shape[1]), rng.standard_normal(N)
    # Sums of parts are added in another order: a few roundings of sums of 900 terms.
    np.testing.assert_allclose(np.asarray(X.matvec(w)), here.matvec(w), rtol=0, atol=1e-12)
    np.testing.assert_allclose(X.rmatvec(u), here.rmatvec(u), rtol=0, atol=1e-12)
    there = MeasureClassifier("roc_auc", alpha=0.1).fit(X, labels)
    local = MeasureClassifier("roc_auc", alpha=0.1).fit(here, y)
    assert abs(there.objective_ - local.objective_) <= there.gap_ + local.gap_
    assert there.string_features_ == local.string_features_
    again = StringOperator(rows[:50], **there.string_features_)
    np.testing.assert_allclose(np.asarray(there.decision_function(X))[:50], there.decision_function(again), atol=1e-12)


def test_wrong_use(client, tmp_path):
    rows, y = planted()
    with pytest.raises(ValueError, match=r"call StringOperator\.from_dask"):
        StringOperator(da.from_array(rows, chunks=250))
    with pytest.raises(ValueError, match="a Dask array of one dimension, a Dask series or a bag"):
        StringOperator.from_dask(rows)
    uneven = db.from_sequence(["ACGT", "ACGT", "ACG", "ACG"], npartitions=2)
    with pytest.raises(ValueError, match=r"blocks of sequences have lengths \[3, 4\], expected one"):
        StringOperator.from_dask(uneven, degree=2)
    numbers = convert((np.eye(4), [0, 1, 0, 1]), tmp_path / "numbers")
    with pytest.raises(ValueError, match="holds no sequences"):
        open_on_workers(numbers, degree=3)
    clf = MeasureClassifier("roc_auc").fit(StringOperator(rows, degree=2), y)
    with pytest.raises(ValueError, match="the model was trained with degree=2"):
        clf.predict(StringOperator.from_dask(da.from_array(rows, chunks=250), degree=3))
