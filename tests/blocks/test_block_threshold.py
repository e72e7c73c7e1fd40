"""The threshold of scores in blocks is the threshold of the same scores in memory."""

from itertools import product

import block_layouts
import numpy as np
import pytest

from cases import for_each
from scoreline import CountMeasure
from scoreline.distributed import best_threshold as module
from scoreline.measures import OperatingPoint, best_threshold, get_measure, robust_threshold
from scoreline.measures.base import CountsBasedMeasure
from scoreline.measures.registry import all_measures
from tiers import tiered

MEASURES = sorted(all_measures())


def in_blocks(*vectors, parts=3, seed=0):
    n = len(vectors[0])
    cuts = np.sort(np.random.default_rng(seed).integers(0, n + 1, parts - 1)).tolist()
    layout = block_layouts.layout_of(block_layouts.between(sorted({0, *cuts, n})))
    return [block_layouts.in_blocks(layout, v) for v in vectors]


def problem(seed, n=400):
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(n) < (0.5, 0.05, 0.9)[seed % 3], 1, -1)
    y[:2] = 1, -1
    z = rng.standard_normal(n) + 0.7 * y
    if seed % 4 == 1:
        z = np.round(2.0 * z)
    if seed % 4 == 2:
        z = np.sign(z) * np.abs(z) ** 25  # over many decades
    if seed == 7:
        z = np.zeros(n)
    weight = rng.integers(0, 4, n).astype(float) if seed % 2 else None
    if weight is not None:
        weight[:2] = 1.0
    return y, z, weight


FEW, EDGES, SAMPLE = (4, module.MAX_GATHERED_ROWS), module.EDGES, module.SAMPLE


def room_for(few, monkeypatch):
    """Let the driver look at few rows one by one, at few thresholds in a round."""
    monkeypatch.setattr(module, "MAX_GATHERED_ROWS", few)
    monkeypatch.setattr(module, "EDGES", 16 if few == 4 else EDGES)


@for_each(["few", "name"], tiered(product(FEW, MEASURES), strength=1))
def test_light_rows_do_not_drown_in_heavy_ones(few, name, monkeypatch):
    """Weights over twenty decades: what lies below a threshold is no difference of two sums."""
    room_for(few, monkeypatch)
    measure = get_measure(name)
    for seed in range(6):
        y, z, _ = problem(seed, n=60)
        weight = 10.0 ** np.random.default_rng(seed).integers(-10, 11, len(y))
        here = best_threshold(y, z, measure, weight)
        there = best_threshold(*in_blocks(y, z), measure, in_blocks(weight)[0])
        assert there.value == pytest.approx(here.value, rel=1e-12)


@for_each(["few", "name"], tiered(product(FEW, MEASURES), strength=1))
def test_the_threshold_is_that_in_memory(few, name, monkeypatch):
    """With room for four rows only, ranges are split again and again."""
    room_for(few, monkeypatch)
    monkeypatch.setattr(module, "SAMPLE", 16 if few == 4 else SAMPLE)
    measure = get_measure(name)
    for seed in range(9):
        y, z, weight = problem(seed)
        here = best_threshold(y, z, measure, weight)
        sign, scores, weights = in_blocks(y, z, weight, seed=seed)
        there = best_threshold(sign, scores, measure, weights)
        assert there.value == pytest.approx(here.value, abs=1e-12)
        levels = np.unique(z if weight is None else z[weight > 0])
        if levels[0] <= here.threshold <= levels[-1]:
            assert there.threshold == here.threshold
        else:  # beyond the ends only the side matters
            assert (there.threshold > levels[-1]) == (here.threshold > levels[-1])
            assert not levels[0] <= there.threshold <= levels[-1] or len(levels) == 1


@for_each("name", [n for n in MEASURES if issubclass(all_measures()[n], CountsBasedMeasure)])
def test_a_robust_threshold_of_few_rows_is_that_in_memory(name):
    measure = get_measure(name)
    for seed in range(6):
        y, z, weight = problem(seed)
        sign, scores, weights = in_blocks(y, z, weight, seed=seed)
        here, there = robust_threshold(y, z, measure, weight), robust_threshold(sign, scores, measure, weights)
        assert there.value == pytest.approx(here.value, abs=1e-9)
        assert there.threshold == pytest.approx(here.threshold, rel=1e-9, abs=1e-12)


def test_a_robust_threshold_of_many_rows_sends_few(monkeypatch):
    monkeypatch.setattr(module, "POINTS", 500)
    y, z, _ = problem(0, 60_000)
    sign, scores = in_blocks(y, z)
    before = scores.layout.cluster.bytes
    measure = get_measure("f1")
    here, there = robust_threshold(y, z, measure), robust_threshold(sign, scores, measure)
    assert scores.layout.cluster.bytes - before <= 3 * (2 * 500 * 17 + 8)
    assert there.threshold == pytest.approx(
        here.threshold, abs=0.02
    )  # a rank of 1 / 500, where there are 10,000 rows a unit
    assert there.value == pytest.approx(here.value, abs=2e-3)


@for_each("name", MEASURES)
def test_measures_of_scores_in_blocks(name):
    measure = get_measure(name)
    for seed in range(9):
        y, z, weight = problem(seed)
        sign, scores, weights = in_blocks(y, z - 0.3, weight, seed=seed)
        value = measure.value(y > 0, z - 0.3, weight)
        assert measure.value(sign > 0, scores, weights) == pytest.approx(value, abs=1e-12)


def functions_of(name):
    measure = get_measure(name)
    yield measure.threshold_objective
    if isinstance(measure, OperatingPoint):
        yield measure.value_with_margin
        yield measure.chance
        for confidence in (0.5, 0.95):
            yield type(measure)(confidence=confidence).threshold_objective


@for_each("name", [n for n in MEASURES if all_measures()[n].rises])
def test_objectives_rise_with_true_and_fall_with_false_positives(name):
    """`rises` is what bounds rest on: all counts of up to seven positives and nine negatives, and large ones."""
    for plus, minus in ((1, 1), (7, 9), (1, 12), (12, 1), (1000, 30)):
        steps = [np.unique(np.linspace(0, m, 13).astype(int)).astype(float) for m in (plus, minus)]
        for value in functions_of(name):
            table = np.array(
                [[value(tp, fp, plus - tp, minus - fp) for fp in steps[1]] for tp in steps[0]], dtype=float
            )
            assert (np.diff(table, axis=0) >= -1e-12).all()
            assert (np.diff(table, axis=1) <= 1e-12).all()


def test_a_function_that_is_not_known_to_rise_sees_all_thresholds():
    odd = CountMeasure(lambda tp, fp, fn, tn: -np.abs(fp - 3.0), name="three false")
    y, z, _ = problem(0)
    sign, scores = in_blocks(y, z)
    here, there = best_threshold(y, z, odd), best_threshold(sign, scores, odd)
    assert here == there


def test_scores_without_a_threshold():
    y, z, _ = problem(0)
    for wrong in (np.nan, np.inf):
        broken = z.copy()
        broken[17] = wrong
        sign, scores = in_blocks(y, broken)
        with pytest.raises(ValueError, match="finite"):
            best_threshold(sign, scores, "f1")
    sign, scores, weight = in_blocks(y, z, np.zeros(len(y)))
    with pytest.raises(ValueError, match="positive weight"):
        best_threshold(sign, scores, "f1", weight)


def test_many_rows_move_little():
    """A million scores: a few rounds of counts, and some rows at the end."""
    y, z, _ = problem(4, 300_000)
    for name, rest in product(("f1", "gmean", "recall_at_precision", "prbep"), (3, 9)):
        sign, scores = in_blocks(y, z, parts=rest)
        before = scores.layout.cluster.bytes
        there = best_threshold(sign, scores, name)
        assert there == pytest.approx(best_threshold(y, z, name), abs=1e-12)
        assert scores.layout.cluster.bytes - before < 8 * len(z) / 2


@for_each(["few", "name"], list(product(FEW, ["f1", "precision_at_k", "roc_auc"])))
def test_ties_are_those_in_memory(few, name, monkeypatch):
    """Levels with roundings around them: no threshold among the scores of a level, whichever parts they are in."""
    monkeypatch.setattr(module, "MAX_GATHERED_ROWS", few)
    for seed in range(6):
        rng = np.random.default_rng(seed)
        y = np.where(rng.random(400) < 0.3, 1, -1)
        z = np.round(rng.standard_normal(400) + 0.5 * y, 1) + (0.0, 3.0, -1e3)[seed % 3]
        z += np.finfo(float).eps * rng.integers(-8, 9, 400) * np.abs(z)
        here, there = best_threshold(y, z, name), best_threshold(*in_blocks(y, z, seed=seed), name)
        assert there.value == pytest.approx(here.value, rel=5e-14)  # a sum of at most 400 terms, in another order
        assert np.array_equal(z > there.threshold, z > here.threshold)


def test_scores_that_are_nearly_one_number_are_tied_as_in_memory():
    for seed in range(40):
        rng = np.random.default_rng(seed)
        y, z = np.where(rng.random(40) < 0.5, 1, -1), 1.0 + rng.integers(0, 120, 40) * 2.0**-52
        here, there = best_threshold(y, z, "f1"), best_threshold(*in_blocks(y, z, seed=seed), "f1")
        assert there.value == pytest.approx(here.value, rel=5e-14)  # a sum of at most 400 terms, in another order
        assert np.array_equal(z > there.threshold, z > here.threshold)
