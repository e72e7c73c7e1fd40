"""Sketches of columns, from which bins of rows on a cluster are made."""

import numpy as np

from scoreline.distributed.coded_rows import SKETCH_POINTS, _merged, _sketches
from scoreline.features.bins import category_bins, number_bins
from scoreline.operators import as_operator

rng = np.random.default_rng(0)


def merged_sketch(values, weight, exact=frozenset(), pieces=5):
    """Return the sketch of a column that is sketched in pieces."""
    parts = [
        _sketches(as_operator(own[:, None], check_finite=False), mass, exact)
        for own, mass in zip(np.array_split(values, pieces), np.array_split(weight, pieces), strict=True)
    ]
    while len(parts) > 1:
        parts = [_merged(*parts[:2], exact=exact), *parts[2:]]
    return parts[0][0]


def test_few_distinct_values_give_the_bins_of_all_rows():
    values, weight = rng.integers(0, 3000, 20_000).astype(float), rng.integers(0, 3, 20_000).astype(float)
    values[rng.random(20_000) < 0.1] = np.nan
    sketch = merged_sketch(values, weight)
    counted = weight > 0
    direct, sketched = number_bins("x", values[counted], weight[counted], 64), number_bins("x", *sketch, 64)
    np.testing.assert_array_equal(sketched.values, direct.values)
    np.testing.assert_allclose(sketched.centers, direct.centers)
    assert sketch.weight.sum() == weight.sum()
    assert sketch.weight[-1] == weight[np.isnan(values)].sum(), "missing values come last"


def test_the_ranks_of_many_values_are_nearly_kept():
    values, weight = rng.standard_normal(60_000), rng.uniform(0.5, 2.0, 60_000)
    pieces = 5
    sketch = merged_sketch(values, weight, pieces=pieces)
    assert len(sketch.values) <= SKETCH_POINTS
    np.testing.assert_allclose(sketch.weight.sum(), weight.sum())
    below = np.array([weight[values <= each].sum() for each in sketch.values]) / weight.sum()
    # Each merge, and the first sketch, moves a rank by at most the weight of one point.
    assert np.abs(np.cumsum(sketch.weight) / weight.sum() - below).max() <= pieces / SKETCH_POINTS


def test_the_most_frequent_categories_are_kept():
    values = np.concatenate([np.repeat([7.0, 9.0], 3000), np.arange(100, 100 + 2 * SKETCH_POINTS)])
    sketch = merged_sketch(rng.permutation(values), np.ones(len(values)), exact=frozenset({0}))
    bins = category_bins("x", *sketch, None, most=2)
    np.testing.assert_array_equal(bins.values, [7.0, 9.0])


def test_rows_without_weight_have_an_empty_sketch():
    sketch = merged_sketch(np.arange(10.0), np.zeros(10))
    assert len(sketch.values) == 0
