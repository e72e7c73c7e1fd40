"""Drift of rows and scores against a reference that is kept with the model."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from scoreline import MeasureClassifier, load_model
from scoreline.monitoring import Reference, population_stability


def rows_of(n, seed, shift=0.0, share=0.3):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"a": rng.normal(shift, 1, n), "b": rng.normal(size=n), "c": rng.choice(list("xyz"), n)})
    frame.loc[rng.random(n) < share, "b"] = np.nan
    return frame


def test_the_index_is_its_formula_and_symmetric():
    expected, actual = np.array([10.0, 30, 60]), np.array([300.0, 300, 400])
    e, a = (expected + 0.5) / 101.5, (actual + 0.5) / 1001.5
    assert population_stability(expected, actual) == pytest.approx(np.sum((a - e) * np.log(a / e)))
    assert population_stability(actual, expected) == pytest.approx(population_stability(expected, actual))
    assert population_stability([5, 0], [0, 5]) < np.inf
    for wrong in (([1, 2], [1]), ([], []), ([-1, 2], [1, 2])):
        with pytest.raises(ValueError, match="count"):
            population_stability(*wrong)


def test_drift_names_the_column_that_moved(tmp_path):
    old, new = rows_of(3000, 0), rows_of(2000, 1, shift=1.0)
    clf = MeasureClassifier("roc_auc", features="additive", alpha=0.01).fit(old, old["a"] > 0)
    clf.reference_ = Reference.of(old, clf.decision_function(old))
    clf.save(tmp_path / "model.npz")
    read = load_model(tmp_path / "model.npz")
    drift = read.reference_.drift(new, read.decision_function(new))
    assert drift == clf.reference_.drift(new, clf.decision_function(new))
    assert next(iter(drift.columns)) == "a"
    assert drift.columns["a"] > 0.5
    assert drift.scores > 0.5
    assert max(drift.columns["b"], drift.columns["c"]) < 0.02
    assert (drift.rows, drift.reference_rows) == (2000, 3000)
    same = clf.reference_.drift(old, clf.decision_function(old))
    assert max(*same.columns.values(), same.scores) == 0.0


def test_missing_and_unseen_values_count():
    old = rows_of(1000, 0)
    reference = Reference.of(old, old["a"])
    assert reference.drift(rows_of(1000, 1, share=0.9), old["a"]).columns["b"] > 0.5
    assert reference.drift(rows_of(1000, 1).replace({"c": {"x": "new"}}), old["a"]).columns["c"] > 0.5


def test_arrays_and_sparse_matrices_have_a_reference():
    X = np.random.default_rng(0).integers(0, 3, size=(500, 3)).astype(float)
    dense, sparse = Reference.of(X, X[:, 0]), Reference.of(sp.csr_matrix(X), X[:, 0])
    assert dense.drift(X + 1, X[:, 0]) == sparse.drift(sp.csr_matrix(X + 1), X[:, 0])
    with pytest.raises(ValueError, match="X has 2 columns, the reference has 3"):
        dense.drift(X[:, :2], X[:, 0])
    with pytest.raises(ValueError, match="count for each bin"):
        Reference.restored({**dense.record(), "score_counts": np.ones(3)})
