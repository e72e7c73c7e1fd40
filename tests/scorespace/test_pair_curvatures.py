"""Curvatures of pairs are counts of pairs on a ramp: never negative, whatever the weights leave behind."""

import numpy as np

from cases import for_each
from scoreline.risks import RocAreaRisk
from scoreline.scores import space_for


@for_each("seed", range(40))
def test_weights_of_zero_leave_no_negative_curvature(seed):
    rng = np.random.default_rng(seed)
    n, width = 60, 0.5
    z, y = rng.standard_normal(n), np.where(rng.random(n) < 0.4, 1, -1)
    y[:2] = 1, -1
    weight = rng.random(n) * (rng.random(n) < 0.5)
    weight[:2] = 0.3
    labels = RocAreaRisk().prepare(y, weight).labels
    found = space_for("host").pair_curvatures(z, labels, width)
    assert found.min() >= 0.0
    t = 1.0 - np.subtract.outer(z[y > 0], z[y < 0])
    on = np.outer(weight[y > 0], weight[y < 0]) * ((t > 0.0) & (t <= width))
    expected = np.empty(n)
    expected[y > 0], expected[y < 0] = on.sum(axis=1), on.sum(axis=0)
    # Sums of 60 products of numbers below 1 come and go in a running sum.
    np.testing.assert_allclose(found, expected, rtol=0, atol=200 * np.finfo(float).eps * 10)


def test_a_nan_score_is_not_hidden():
    from scoreline.risks import PrbepRisk

    z, y = np.array([0.5, np.nan, -0.2, 0.1]), np.array([1, 1, -1, -1])
    assert np.isnan(PrbepRisk().prepare(y).value(z))
