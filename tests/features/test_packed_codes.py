"""Columns whose codes occur in few combinations share a line of bytes: same features, same products."""

import numpy as np
import pytest

from scoreline import MeasureClassifier
from scoreline.features import Additive
from scoreline.features.pairs import add_pairs
from scoreline.operators.codes import CodesOperator, PackedCodes
from scoreline.testing import check_operator


def table(n=1200, seed=0):
    """Return a category as indicators, numbers of few and of many values, flags that overlap; labels."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, 9, n)
    X = np.column_stack([
        (kind[:, None] == np.arange(9)).astype(float), rng.integers(0, 4, n), rng.standard_normal((n, 2)),
        rng.random((n, 4)) < 0.2,
    ])  # fmt: skip
    X[rng.random(n) < 0.1, 9] = np.nan
    return X, (kind % 2) + X[:, 10] ** 2 + rng.standard_normal(n) > 1.5


def test_codes_come_back_and_products_are_those_of_one_line_per_column():
    X, _ = table()
    operator = Additive(max_bins=16).learn(X)
    codes = operator.feature_map.codes(X)
    assert np.array_equal(operator.codes, codes)
    assert len(operator.packed.codes) <= 6 < X.shape[1]
    plain = CodesOperator(codes, operator.feature_map.groups)
    rng = np.random.default_rng(1)
    w, u, rows = rng.standard_normal(plain.shape[1]), rng.standard_normal(len(X)), np.arange(0, 1200, 7)
    np.testing.assert_allclose(operator.matvec(w), plain.matvec(w), rtol=0, atol=1e-12)
    np.testing.assert_allclose(operator.rmatvec(u), plain.rmatvec(u), rtol=0, atol=1e-10)
    np.testing.assert_allclose(
        operator.on_rows(rows).gram(u[rows] ** 2), plain.on_rows(rows).gram(u[rows] ** 2), atol=1e-9
    )
    np.testing.assert_allclose(operator.row_norms(), plain.row_norms(), rtol=1e-12)
    pairs = [(0, 9), (9, 10), (12, 13), (2, 3)]
    paired, expected = (
        add_pairs(each, pairs, 5, np.ones(172))
        for each in (operator.on_rows(rows), plain_features(plain, operator, rows))
    )
    dense = np.vstack([block.data for block in expected.row_blocks()])
    check_operator(paired, dense, rtol=1e-10)


def plain_features(plain, operator, rows):
    """Return the rows of an operator with one line per column, as one that knows its features."""
    return operator.feature_map.of_codes(plain.packed, rows.astype(np.uint64))


def test_few_rows_and_many_values_are_not_packed():
    rng = np.random.default_rng(2)
    assert len(PackedCodes.packed(rng.integers(0, 9, (5, 40)).astype(np.uint8)).codes) == 5
    numbers = rng.integers(0, 100, (4, 3000)).astype(np.uint8)
    assert PackedCodes.packed(numbers).codes is numbers
    constant = PackedCodes.packed(np.zeros((3, 50), dtype=np.uint8))
    assert len(constant.codes) == 1
    assert np.array_equal(constant.column(2), np.zeros(50))


@pytest.mark.parametrize("features", ["additive", "pairs"])
def test_training_scores_are_those_of_new_rows(features):
    X, y = table()
    clf = MeasureClassifier("f1", features=features, alpha=0.01).fit(X, y)
    tables, codes = clf.feature_map_.tables(clf.coef_[0]), clf.feature_map_.codes(X)
    direct = sum(own[line] for own, line in zip(tables, codes, strict=False)) + clf.intercept_[0]
    if features == "additive":
        np.testing.assert_allclose(clf.decision_function(X), direct, atol=1e-10)
    assert clf.status_ == "converged"
    assert clf.gap_ <= 0.01 * clf.lower_bound_
    assert abs(clf.objective(X, y) - clf.objective_) < 1e-9
