"""The threshold of scores on a device: that of the host, for every measure."""

import numpy as np
import pytest
from device_arrays import LIBRARIES, vector

from cases import for_each
from scoreline import list_measures
from scoreline.gpu import best_threshold as device_threshold
from scoreline.measures import best_threshold, get_measure, robust_threshold
from scoreline.measures.base import CountsBasedMeasure

MEASURES = [info.name for info in list_measures()]


def rows(seed, n=3000, kind=0):
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(n) < 0.2, 1, -1)
    z = rng.standard_normal(n) + (y > 0)
    z = (z, np.round(z, 1), np.full(n, 2.0))[kind]
    weight = rng.integers(0, 4, n).astype(float)
    return y, z, weight


@pytest.mark.parametrize("library", LIBRARIES)
@for_each("measure", MEASURES)
def test_thresholds_and_values_are_those_of_the_host(measure, library, monkeypatch):
    monkeypatch.setattr(device_threshold, "MAX_GATHERED_ROWS", 50)
    monkeypatch.setattr(device_threshold, "EDGES", 32)
    for kind in (0, 1, 2):
        y, z, s = rows(kind, kind=kind)
        for weight in (None, s):
            sign, there, w = vector(y, library), vector(z, library), vector(weight, library)
            here, other = best_threshold(y, z, measure, weight), best_threshold(sign, there, measure, w)
            assert other.value == pytest.approx(here.value, rel=1e-12)
            np.testing.assert_array_equal(z > other.threshold, z > here.threshold)
            own = get_measure(measure)
            value = own.value(y > 0, z - 0.5, weight)
            assert own.value(sign > 0, there - 0.5, w) == pytest.approx(value, rel=1e-12, abs=1e-12)
            if isinstance(own, CountsBasedMeasure):
                robust = robust_threshold(y, z, own, weight), robust_threshold(sign, there, own, w)
                assert robust[1].threshold == pytest.approx(robust[0].threshold, abs=1e-9)


@pytest.mark.parametrize("library", LIBRARIES)
@for_each("measure", MEASURES)
def test_light_rows_do_not_drown_in_heavy_ones(measure, library, monkeypatch):
    """Weights over twenty decades: what lies below a threshold is no difference of two sums."""
    monkeypatch.setattr(device_threshold, "MAX_GATHERED_ROWS", 5)
    monkeypatch.setattr(device_threshold, "EDGES", 8)
    for seed in range(4):
        y, z, _ = rows(seed, n=60, kind=seed % 2)
        weight = 10.0 ** np.random.default_rng(seed).integers(-10, 11, len(y))
        here = best_threshold(y, z, measure, weight)
        there = best_threshold(vector(y, library), vector(z, library), measure, vector(weight, library))
        assert there.value == pytest.approx(here.value, rel=1e-12)


@pytest.mark.parametrize("library", LIBRARIES)
def test_many_rows_are_condensed_to_means_of_neighbours(library, monkeypatch):
    monkeypatch.setattr(device_threshold, "POINTS", 200)
    y, z, s = rows(0)
    for weight in (None, s):
        sign, scores, weights = device_threshold.condensed(
            vector(y, library), vector(z, library), vector(weight, library)
        )
        counted = np.ones(len(z)) if weight is None else weight
        for side in (1, -1):
            assert weights[sign == side].sum() == pytest.approx(counted[y == side].sum())
            mean = np.average(z[y == side], weights=counted[y == side])
            assert np.average(scores[sign == side], weights=weights[sign == side]) == pytest.approx(mean, rel=1e-12)
            assert (sign == side).sum() == 200
            assert (np.diff(scores[sign == side]) >= 0).all()


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_function_of_counts_that_may_fall_is_judged_at_every_threshold(library):
    y, z, _ = rows(3, 200)

    def odd(tp, fp, fn, tn):
        return np.sin(tp) + np.cos(3 * fp)

    here, there = best_threshold(y, z, odd), best_threshold(vector(y, library), vector(z, library), odd)
    assert there == pytest.approx(here)
    with pytest.raises(ValueError, match="finite"):
        best_threshold(vector(y, library), vector(np.full(200, np.nan), library), "f1")


@pytest.mark.parametrize("library", LIBRARIES)
@for_each("name", ["f1", "precision_at_k", "roc_auc"])
def test_ties_are_those_in_memory(library, name):
    for seed in range(3):
        rng = np.random.default_rng(seed)
        y = np.where(rng.random(400) < 0.3, 1, -1)
        z = np.round(rng.standard_normal(400) + 0.5 * y, 1) + (0.0, 3.0, -1e3)[seed]
        z += np.finfo(float).eps * rng.integers(-8, 9, 400) * np.abs(z)
        here, there = best_threshold(y, z, name), best_threshold(vector(y, library), vector(z, library), name)
        assert there.value == pytest.approx(here.value, rel=5e-14)  # a sum of at most 400 terms, in another order
        assert np.array_equal(z > there.threshold, z > here.threshold)
