"""Details of thresholds and operating points: how far beyond the ends, weights, the careful threshold."""

import numpy as np
import pytest

from cases import for_each
from scoreline.distributed import BlockVector, Layout
from scoreline.distributed.cluster import InlineCluster, Placement
from scoreline.measures import best_threshold, get_measure
from scoreline.measures.operating_points import OperatingPoint
from scoreline.measures.registry import all_measures

POINTS = sorted(name for name, measure in all_measures().items() if issubclass(measure, OperatingPoint))


def in_blocks(*vectors):
    n = len(vectors[0])
    layout = Layout(
        InlineCluster(), [Placement("worker-0", 1), Placement("worker-1", 1)], [((0, n // 2),), ((n // 2, n),)]
    )
    return [None if v is None else BlockVector.of(layout, np.asarray(v)) for v in vectors]


def drawn(seed, n=60):
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(n) < 0.4, 1, -1)
    y[:2] = 1, -1
    z = np.round(rng.standard_normal(n) + 0.8 * y, 1)
    return y, z, rng.integers(0, 4, n).astype(float) + (np.arange(n) < 2)


@for_each("in_parts", [False, True])
@for_each("want, side", [("all", -1), ("none", 1)])
def test_beyond_the_ends_a_threshold_is_half_a_mean_distance_away(want, side, in_parts):
    """Five scores from 1 to 9: two units apart in the mean, so one unit beyond."""
    z, y = np.array([1.0, 2.0, 4.0, 8.0, 9.0]), np.array([1, -1, 1, -1, 1])

    def value(tp, fp, fn, tn):
        return tp + fp if want == "all" else -(tp + fp)

    sign, scores = in_blocks(y, z) if in_parts else (y, z)
    tuned = best_threshold(sign, scores, value)
    assert tuned.threshold == pytest.approx(0.0 if side < 0 else 10.0)
    assert tuned.value == (5.0 if want == "all" else 0.0)


def test_equal_scores_get_a_threshold_one_below_or_above():
    z, y = np.full(4, 3.0), np.array([1, -1, 1, -1])
    assert best_threshold(y, z, lambda tp, fp, fn, tn: tp + fp).threshold == 2.0
    assert best_threshold(y, z, lambda tp, fp, fn, tn: fn + tn).threshold == 4.0


@for_each("seed", range(5))
@for_each("name", POINTS)
def test_operating_points_of_weighted_rows_are_those_of_repeated_ones(name, seed):
    y, z, weight = drawn(seed)
    rows = np.repeat(np.arange(len(y)), weight.astype(int))
    measure = get_measure(name)
    assert measure.on_scores(y, z, weight) == pytest.approx(measure.on_scores(y[rows], z[rows]), abs=1e-12)
    for confidence in (None, 0.5, 0.999):
        own = get_measure(name, {"confidence": confidence})
        assert own.unreached(y, z, weight) == own.unreached(y[rows], z[rows])


@for_each("name", POINTS)
def test_a_point_that_no_threshold_reaches_says_how_near_the_best_comes(name):
    """Scores the wrong way round: the words hold the closest rate, or the chance, of all thresholds."""
    y, z, _ = drawn(0)
    measure = get_measure(name, {"confidence": 0.9999999})
    message = measure.unreached(y, z)
    above = z >= np.append(np.unique(z), np.inf)[:, None]
    cells = above & (y > 0), above & (y < 0), ~above & (y > 0), ~above & (y < 0)
    counts = [np.count_nonzero(cell, axis=1).astype(float) for cell in cells]
    if np.asarray(measure.is_met(*counts)).any():
        best = np.max(measure.chance(*counts))
        assert message is None if best >= measure.confidence else f"the best has {best:.3g}" in message
    else:
        assert f"the closest reaches {np.max(measure.rate(*counts)):.3g}" in message


@for_each("confidence", [None, 0.8])
@for_each("name", POINTS)
def test_the_careful_value_puts_kept_thresholds_first(name, confidence):
    """With a confidence it is the robust value; without, any threshold that keeps the limit is above any that does not."""
    measure = get_measure(name, {"confidence": confidence})
    rng = np.random.default_rng(0)
    tp, fp = rng.integers(0, 30, 200).astype(float), rng.integers(0, 30, 200).astype(float)
    counts = tp, fp, 30.0 - tp, 30.0 - fp
    with_margin, robust = np.asarray(measure.value_with_margin(*counts)), np.asarray(measure.robust_value(*counts))
    if confidence is not None:
        assert np.array_equal(with_margin, robust)
        return
    met = np.asarray(measure.is_met(*counts), dtype=bool)
    assert met.any()
    assert not met.all()
    assert with_margin[met].min() >= with_margin[~met].max()
    np.testing.assert_array_equal(with_margin[met], 1.0 + robust[met])
    np.testing.assert_array_equal(with_margin[~met], np.asarray(measure.rate(*counts))[~met])
