"""Ties: scores that differ by rounding only never have a threshold between them, wherever they lie."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import for_each
from scoreline.measures import best_threshold, get_measure, robust_threshold
from scoreline.measures.registry import all_measures
from scoreline.measures.ties import TIE, clearly_above, first_best
from tiers import examples

EPS = np.finfo(float).eps
COUNTS = sorted(name for name, measure in all_measures().items() if not measure.uses_order)


def rounded(z, seed, roundings=8):
    """Return the scores as another order of additions might give them."""
    noise = np.random.default_rng(seed).integers(-roundings, roundings + 1, len(z))
    return z + noise * EPS * np.maximum(np.abs(z), np.median(np.abs(z)))


def few_levels(seed, n=200, levels=12):
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(n) < 0.3, 1, -1)
    y[:2] = 1, -1
    return y, np.round(rng.standard_normal(n) + 0.5 * y, 1)[rng.integers(0, n, n)] + rng.choice([0.0, 3.0, -1e3])


@for_each("name", COUNTS)
@for_each("find", [best_threshold, robust_threshold])
def test_rounding_of_scores_moves_no_threshold(name, find):
    measure = get_measure(name)
    for seed in range(6):
        y, z = few_levels(seed)
        exact = find(y, z, measure)
        for noise in range(5):
            other = find(y, rounded(z, noise), measure)
            assert other.value == pytest.approx(exact.value, rel=1e-12, abs=1e-12)
            # Between the same two levels: the middle of them, but for the rounding of the scores.
            assert other.threshold == pytest.approx(exact.threshold, rel=1e-12, abs=1e-12)
            assert np.array_equal(rounded(z, noise) > other.threshold, z > exact.threshold)


@for_each("base", [1.0, -1.0, 1e-300, 1e300, 3e7])
def test_neighbouring_floats_are_tied(base):
    z = np.array([np.nextafter(base, np.inf), base])
    assert best_threshold(np.array([1, -1]), z, "accuracy").value == 0.5
    z[0] += 2.0 * TIE * abs(base)
    tuned = best_threshold(np.array([1, -1]), z, "accuracy")
    assert tuned.value == 1.0
    assert (z > tuned.threshold).tolist() == [True, False]


def test_one_huge_score_ties_no_others():
    y = np.array([1, 1, -1, -1, -1])
    assert best_threshold(y, np.array([1e300, 3.0, 2.0, 1.0, 0.5]), "accuracy").value == 1.0


def test_scores_that_lie_close_are_not_all_tied_in_a_row():
    """A large constant and little else: neighbours are nearer than 64 roundings, and yet their order says something."""
    rng = np.random.default_rng(0)
    y = np.where(rng.random(20_000) < 0.5, 1, -1)
    z = 1e6 + 1e-6 * (rng.standard_normal(20_000) + 2.0 * y)
    assert np.median(np.diff(np.unique(z))) < TIE * 1e6
    assert best_threshold(y, z, "accuracy").value > 0.95


def test_scores_that_are_one_number_and_rounding_are_all_tied():
    rng = np.random.default_rng(1)
    y = np.where(rng.random(500) < 0.1, 1, -1)
    z = -1.0 + 4.0 * EPS * rng.standard_normal(500)
    predicted = z > best_threshold(y, z, "f1").threshold
    assert predicted.all()


@examples(50)
@given(st.integers(0, 1000), st.sampled_from([-300, -30, 0, 30, 300]))
def test_the_rule_does_not_depend_on_the_scale(seed, exponent):
    y, z = few_levels(seed)
    z = rounded(z, seed, roundings=200)  # some tied, some not
    assert best_threshold(y, np.ldexp(z, exponent), "f1").value == best_threshold(y, z, "f1").value


def test_values_that_differ_by_rounding_are_equal():
    assert first_best(np.array([0.5, 1.0 - EPS, 1.0, 0.7])) == 1
    assert first_best(np.array([-np.inf, -np.inf])) == 0
    assert first_best(np.array([0.0, np.inf])) == 1
    assert not clearly_above(1.0 + EPS, 1.0)
    assert clearly_above(1.0 + 4.0 * TIE, 1.0)
    assert clearly_above(0.0, -np.inf)


@for_each("heavy", [1e14, 1e18])
def test_heavy_weights_do_not_switch_the_rule_off(heavy):
    y, z = few_levels(0)
    weight = np.full(len(y), heavy)
    assert best_threshold(y, rounded(z, 1), "accuracy", weight).value == best_threshold(y, z, "accuracy", weight).value
    weight = np.ones(len(y))
    weight[5] = heavy
    exact, other = (best_threshold(y, scores, "f1", weight) for scores in (z, rounded(z, 1)))
    assert other.threshold == pytest.approx(exact.threshold, rel=1e-12)
