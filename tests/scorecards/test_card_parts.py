"""Bins, edges and integers of scorecards, against enumerations of all possibilities."""

import itertools

import numpy as np
import pytest

from scoreline.features.bins import number_bins
from scoreline.scorecards.bins import category_lines, digits, readable, readable_cuts, segments
from scoreline.scorecards.rounding import rounded_points


def cost_of(starts, values, weight, bin_cost, edge_costs):
    total = 0.0
    for part in np.split(np.arange(len(values)), starts[1:]):
        own = weight[part]
        mean = own @ values[part] / own.sum() if own.sum() > 0 else 0.0
        total += own @ (values[part] - mean) ** 2 + bin_cost
    return total + sum(edge_costs[start - 1] for start in starts[1:])


@pytest.mark.parametrize("seed", range(8))
def test_segments_are_the_best_of_all(seed):
    rng = np.random.default_rng(seed)
    m, most, least = 8, int(rng.integers(1, 6)), float(rng.uniform(0, 4))
    values, weight = np.sort(rng.normal(size=m)), rng.integers(0, 4, m).astype(float)
    edge_costs = rng.uniform(0, 0.3, m - 1)
    found = segments(values, weight, least=least, most=most, bin_cost=0.1, edge_costs=edge_costs)
    best = np.inf
    for k in range(1, most + 1):
        for inner in itertools.combinations(range(1, m), k - 1):
            starts = np.array([0, *inner])
            if all(part.sum() >= min(least, weight.sum()) for part in np.split(weight, starts[1:])):
                best = min(best, cost_of(starts, values, weight, 0.1, edge_costs))
    assert cost_of(found, values, weight, 0.1, edge_costs) == pytest.approx(best, abs=1e-9)


def test_readable_numbers_lie_in_their_interval_and_have_the_fewest_digits():
    assert readable(24.5, 25.6, 25.1) == 25.0
    assert readable(-0.3, 0.2, 0.1) == 0.0
    assert readable(9871.0, 10423.0, 10001.0) == 10000.0
    assert readable(0.0123, 0.0127, 0.0124) == 0.0125
    assert readable(1.0, 1.0, 1.0) == 1.0
    rng = np.random.default_rng(0)
    for _ in range(300):
        low = rng.normal() * 10.0 ** rng.integers(-8, 9)
        high = low + abs(low) * 10.0 ** rng.uniform(-6, 0)
        found = readable(low, high, rng.uniform(low, high))
        assert low <= found < high
        assert digits(found) <= digits(low) + 0.5
    assert [digits(x) for x in (0.0, 30.0, 25.0, 0.125, -1234.0)] == [0.0, 1.0, 1.5, 2.5, 4.0]


def test_thresholds_of_integers_stay_between_the_same_integers():
    found = readable_cuts(np.arange(20.5, 40.0), np.arange(20.0, 41.0))
    assert found.tolist() == np.arange(20.0, 40.0).tolist()
    cuts = np.sort(np.random.default_rng(0).lognormal(size=40))
    centers = np.concatenate([[0.0], 0.5 * (cuts[1:] + cuts[:-1]), [2.0 * cuts[-1]]])
    found = readable_cuts(cuts, centers)
    assert (np.diff(found) > 0).all()
    assert (found >= centers[:-1]).all()
    assert (found < centers[1:]).all()
    assert readable_cuts(np.empty(0), np.ones(1)).shape == (0,)


def test_readable_edges_leave_values_of_many_rows_in_their_bin():
    """Edges at 0.1 or 1 would be shorter, and would move the rows of a bin of one value to the bin below."""
    values = np.array([0.05, 0.07, 0.1, 0.3, 0.62, 0.97, 1.0])
    bins = number_bins("x", np.repeat(values, 50), np.ones(350), 128)
    found = readable_cuts(bins.values, bins.centers)
    assert np.searchsorted(found, values, side="left").tolist() == list(range(7))
    assert max(digits(edge) for edge in found) <= 2.0


def test_groups_of_categories_are_neighbours_in_value():
    values, counts = np.array([9.0, 0.0, 0.5, 0.01, 3.0, 0.0]), np.array([5.0, 10, 10, 10, 1, 0])
    found = category_lines(values, counts, least=3.0, most=4, bin_cost=0.1)
    assert sorted(code for group in found for code in group) == [1, 2, 3, 4]
    assert sorted(found) == [[1, 3], [2, 4]], "category 4 has too few rows to stand alone"


@pytest.mark.parametrize("seed", range(10))
def test_integers_are_near_the_best_of_all(seed):
    rng = np.random.default_rng(seed)
    m = 5
    root = rng.normal(size=(m, 3))
    curvature, target = root @ root.T + 0.05 * np.eye(m), rng.uniform(-3, 3, m)
    slope, chains = np.zeros(m), []
    if seed % 2:
        target = np.sort(target)
        chains = [(np.arange(m), 1)]

    def value(t):
        return 0.5 * (t - target) @ curvature @ (t - target)

    found = rounded_points(target, slope, curvature, chains)
    assert found.dtype == np.int64
    assert not chains or (np.diff(found) >= 0).all()
    near = [range(int(np.floor(t)) - 1, int(np.ceil(t)) + 2) for t in target]
    best = min(value(np.array(t)) for t in itertools.product(*near) if not chains or (np.diff(t) >= 0).all())
    plain = value(np.rint(target))
    assert value(found) <= plain + 1e-12
    if not chains:
        assert value(found) - best <= 0.3 * (plain - best) + 1e-12


def test_optimised_integers_beat_plain_rounding_where_errors_add_up():
    """Ten copies of one column, each with 0.4 points too much, are four points off when rounded one by one."""
    m = 10
    found = rounded_points(np.full(m, 0.4), np.zeros(m), np.ones((m, m)) + 1e-6 * np.eye(m), [])
    assert found.sum() == 4


def test_integers_without_curvature_are_rounded():
    assert rounded_points(np.array([1.6, -0.4]), np.zeros(2), np.diag([1.0, 0.0]), []).tolist() == [2, 0]
