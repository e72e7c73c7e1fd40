"""Maps of columns (scaling="robust" and "quantile"): quantiles and knots against plain Python, and the operator's contract."""

import statistics

import hypothesis.strategies as st
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from scipy.special import ndtr, ndtri

from cases import for_each
from scoreline.operators import as_operator
from scoreline.operators.column_maps import (
    CLIP_SPREADS,
    KNOT_SCORES,
    MOST_NORMAL_SCORE,
    UNKNOWN_LARGEST,
    ColumnMap,
    ColumnMapOperator,
    Sample,
    _spans,
    heavy_tailed,
    with_mapped_columns,
)
from scoreline.testing import check_operator
from tiers import examples

VALUES = st.sampled_from([-1e300, -7.0, -1.5, -0.0, 0.0, 1e-300, 0.25, 1.0, 3.0, 1e6, 1e300])
TABLES = st.integers(1, 12).flatmap(
    lambda n: st.tuples(
        st.lists(st.lists(VALUES, min_size=2, max_size=2), min_size=n, max_size=n),
        st.lists(st.integers(0, 3), min_size=n, max_size=n).filter(any),
    )
)


def quantile(values, level):
    """Return the smallest value with at least that share of the values at or below it."""
    ordered = sorted(values)
    return next(v for v in ordered if sum(u <= v for u in ordered) >= level * len(ordered))


def limits(values):
    """Return the limits of `scaling="robust"`, by definition."""
    middle = quantile(values, 0.5)
    below, above = [v for v in values if v < middle], [v for v in values if v > middle]
    low = max(middle - CLIP_SPREADS * (middle - quantile(below, 0.5)), min(values)) if below else middle
    high = min(middle + CLIP_SPREADS * (quantile(above, 0.5) - middle), max(values)) if above else middle
    return low, high


def share(values, value):
    """Return the share of the values below one, plus half of those equal to it."""
    return (sum(v < value for v in values) + 0.5 * sum(v == value for v in values)) / len(values)


@for_each("storage", ["dense", "csr", "csc"])
@given(table=TABLES)
@examples(100)
def test_limits_and_quantiles_are_those_of_repeated_rows(storage, table):
    rows, weight = np.array(table[0]), np.array(table[1], dtype=float)
    X = {"dense": lambda: rows, "csr": lambda: sp.csr_array(rows), "csc": lambda: sp.csc_array(rows)}[storage]()
    levels = np.array([0.0, 0.2, 0.5, 0.9, 1.0])
    sample = Sample.of(as_operator(X), weight, "a test")
    low, high = sample.limits()
    found, middle = sample.quantiles(levels)
    for j in range(2):
        values = np.repeat(rows[:, j], weight.astype(int)).tolist()
        assert (low[j], high[j]) == limits(values)
        assert found[j].tolist() == [quantile(values, max(level, 1e-9)) for level in levels]
        np.testing.assert_allclose(middle[j], [share(values, v) for v in found[j]], rtol=1e-14)  # one division


@for_each("kind", ["robust", "quantile"])
@given(table=TABLES)
@examples(100)
def test_maps_are_piecewise_linear_monotone_and_keep_zero(kind, table):
    rows, weight = np.array(table[0]), np.array(table[1], dtype=float)
    column_map = ColumnMap.learn(as_operator(rows), kind, weight)
    for j in range(2):
        x, y = column_map.knots(j)
        values = np.repeat(rows[:, j], weight.astype(int))
        assert (np.diff(x) > 0.0).all()
        assert (np.diff(y) >= 0.0).all()
        if len(set(values.tolist())) == 1:  # a constant column keeps its values, whatever new rows have
            assert x.tolist() == y.tolist() == [-x[-1], x[-1]]
            assert x[-1] >= min(abs(rows[:, j]).max(), UNKNOWN_LARGEST)
        elif kind == "robust":
            assert (x[0], x[-1]) == limits(values.tolist())
            at_zero = np.clip(0.0, x[0], x[-1])
            np.testing.assert_array_equal(y, x - at_zero)
        else:
            wanted = [0.0, *ndtr(KNOT_SCORES), 1.0]
            quantiles = sorted({quantile(values.tolist(), max(level, 1e-9)) + 0.0 for level in wanted})
            assert x.tolist() == sorted({*quantiles, np.clip(0.0, quantiles[0], quantiles[-1])})
            scores = np.clip(
                ndtri([share(values.tolist(), v) for v in quantiles]), -MOST_NORMAL_SCORE, MOST_NORMAL_SCORE
            )
            # 1e-12: the share is rounded, and the normal score has a slope of up to 1e4 at 0.9999.
            np.testing.assert_allclose(np.diff(np.interp(quantiles, x, y)), np.diff(scores), rtol=1e-9, atol=1e-12)
    new = np.array([[0.0, 0.0], [2.0, -3.0], [1e305, -1e305], *rows.tolist()])
    expected = np.column_stack([np.interp(new[:, j], *column_map.knots(j)) for j in range(2)])
    mapped = column_map.transform(new)
    np.testing.assert_allclose(mapped, expected, rtol=1e-12, atol=1e-12 * np.abs(expected).max())
    assert (mapped[0] == 0.0).all()
    np.testing.assert_array_equal(column_map.transform(sp.csr_array(new)).toarray(), mapped)


def test_what_is_not_finite_becomes_nan():
    column_map = ColumnMap.learn(as_operator(np.arange(8.0).reshape(4, 2)), "robust")
    assert np.isnan(column_map.transform(np.array([[np.nan, np.inf], [-np.inf, 1.0]]))).tolist() == [[1, 1], [1, 0]]


@for_each("kind", ["robust", "quantile"])
@for_each("storage", ["dense", "csr", "float32"])
def test_the_operator_keeps_the_contract(storage, kind):
    rng = np.random.default_rng(0)
    X = np.where(rng.random((40, 7)) < 0.6, rng.standard_cauchy((40, 7)), 0.0)
    X = X.astype(np.float32).astype(np.float64)
    stored = {"dense": X, "csr": sp.csr_array(X), "float32": X.astype(np.float32)}[storage]
    inner = as_operator(stored)
    column_map = ColumnMap.learn(inner, kind)
    check_operator(ColumnMapOperator(inner, column_map), column_map.transform(X))
    copied = column_map.applied(as_operator(stored))
    assert copied.column_map is column_map
    assert with_mapped_columns(copied, kind) is copied


def test_a_sample_of_many_rows_gives_nearly_the_same_knots(monkeypatch):
    X = np.random.default_rng(0).standard_normal((20_000, 3)) ** 3
    all_rows = ColumnMap.learn(as_operator(X), "quantile")
    monkeypatch.setattr("scoreline.operators.column_maps.Sample.of.__func__.__defaults__", (1 << 17,))
    part = ColumnMap.learn(as_operator(X), "quantile")
    assert not np.array_equal(part.x, all_rows.x)
    inside = np.abs(X) < 8.0  # two standard deviations before the cube
    # 5,461 rows: a share of the rows is off by less than 0.03 with overwhelming probability, a normal score by 0.15 at two.
    assert np.abs(part.transform(X) - all_rows.transform(X))[inside].max() < 0.3


def test_heavy_tails_are_recognised_and_rare_ones_are_not():
    rng = np.random.default_rng(0)
    n = 3000
    X = np.column_stack(
        [
            rng.standard_normal(n), rng.random(n) < 0.002, np.ones(n), rng.exponential(size=n), rng.standard_cauchy(n),
            np.exp(3.0 * rng.standard_normal(n)), np.where(rng.random(n) < 0.8, 0.0, np.exp(3.0 * rng.standard_normal(n))),
            np.where(np.arange(n) == 1234, 1e6, rng.standard_normal(n)),
        ]
    )  # fmt: skip
    for stored in (X, sp.csr_array(X), X.astype(np.float32), np.asfortranarray(X)):
        assert heavy_tailed(as_operator(stored)).tolist() == [4, 5, 6, 7]
    # One extreme value in a million rows is not in the sample, but it is the largest one.
    many = rng.standard_normal((200_000, 2))
    many[77_777, 1] = 1e5
    assert heavy_tailed(as_operator(many)).tolist() == [1]


def test_rows_of_weight_zero_have_no_tails():
    X = np.random.default_rng(0).standard_normal((400, 1))
    X[7] = 1e9
    weight = np.ones(400)
    assert heavy_tailed(as_operator(X), weight).tolist() == [0]
    weight[7] = 0.0
    operator = as_operator(X, check_finite=False)  # without the largest value, which is that of all rows
    assert heavy_tailed(operator, weight).tolist() == []


def test_the_median_spread_of_a_symmetric_column_is_its_quartile():
    values = np.arange(-50.0, 51.0)
    low, high = Sample.of(as_operator(values[:, None]), None, "a test").limits()
    assert statistics.median(v for v in values if v > 0) == pytest.approx(25.5)
    assert (low[0], high[0]) == (-50.0, 50.0)  # six times 25 lies beyond the range, which is the limit then


@for_each("kind", ["robust", "quantile"])
def test_features_that_no_sampled_row_has_are_kept(kind, monkeypatch):
    """5,000 rare words in one row each, of which most are not in a sample of 512 rows."""
    monkeypatch.setattr("scoreline.operators.column_maps.Sample.of.__func__.__defaults__", (1 << 10,))
    X = sp.csr_array((np.full(5000, 3.0), (np.arange(5000), np.arange(5000))), shape=(5000, 5000))
    mapped = ColumnMap.learn(as_operator(X), kind).transform(X)
    assert (mapped.diagonal() > 0.0).all()
    dense = np.zeros((5000, 2))
    dense[4321, 0], dense[:, 1] = -7.0, 5.0
    assert (ColumnMap.learn(as_operator(dense), kind).transform(dense) == dense).all()


@for_each("kind", ["robust", "quantile"])
def test_the_sample_is_of_rows_with_weight(kind, monkeypatch):
    monkeypatch.setattr("scoreline.operators.column_maps.Sample.of.__func__.__defaults__", (1 << 10,))
    X = np.random.default_rng(0).standard_normal((60_000, 3))
    weight = np.zeros(60_000)
    weight[340:930] = 1.0
    found = ColumnMap.learn(as_operator(X), kind, weight).transform(X[340:930])
    assert (found.std(axis=0) > 0.5).all()
    assert all(340 <= first < last for first, last in _spans(np.flatnonzero(weight), 8, len(weight)))


@for_each("kind", ["robust", "quantile"])
def test_entries_that_name_the_same_place_are_one_value(kind):
    X = np.random.default_rng(0).standard_cauchy((50, 4))
    column_map = ColumnMap.learn(as_operator(X), kind)
    canonical = sp.csr_array(X)
    parts = np.repeat(canonical.data / 2.0, 2), np.repeat(canonical.indices, 2), 2 * canonical.indptr
    split = sp.csr_array(parts, shape=X.shape)
    np.testing.assert_array_equal(column_map.transform(split).toarray(), column_map.transform(canonical).toarray())
    assert split.nnz == 2 * canonical.nnz  # the matrix of the user stays as it is


def test_listed_rows_are_read_in_blocks(monkeypatch):
    """A fold of data on disk: mapping its rows at once took the memory of all of them."""
    X = np.random.default_rng(0).standard_cauchy((100, 3))
    inner = as_operator(X)
    mapped = ColumnMapOperator(inner, ColumnMap.learn(inner, "robust"))
    rows, w, u = np.arange(0, 100, 2), np.array([1.0, -2.0, 0.5]), np.linspace(-1.0, 1.0, 50)
    expected = mapped.column_map.transform(X[rows])
    read = []
    listed = inner._listed
    monkeypatch.setattr(inner, "_listed", lambda lines: read.append(len(lines)) or listed(lines))
    monkeypatch.setattr("scoreline.operators.block_sums.default_block_rows", lambda n, p: 8)
    np.testing.assert_allclose(mapped._matvec_rows(w, rows), expected @ w, rtol=1e-14, atol=1e-14)
    np.testing.assert_allclose(mapped._rmatvec_rows(u, rows), expected.T @ u, rtol=1e-14, atol=1e-14)
    assert sum(read) == 100
    assert max(read) == 8
