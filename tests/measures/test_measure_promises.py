"""Promises: exact binomial tails by enumeration, the theorems by all outcomes of small samples, and what is out of reach."""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import binom

from scoreline.measures import PrecisionAtRecall, RecallAtPrecision, TprAtFpr, best_threshold, promised_threshold
from scoreline.measures.promises import FIXED_SEQUENCE, _design_rows, allowed_errors


def binomial_cdf(c, n, p):
    return sum(math.comb(n, k) * p**k * (1.0 - p) ** (n - k) for k in range(c + 1))


def test_allowed_errors_have_exact_tails():
    for rows, rate, level in itertools.product((1, 7, 58, 59, 200), (0.01, 0.05, 0.3, 0.9), (0.5, 0.9, 0.95)):
        c = allowed_errors(rows, rate, level)
        assert c < 0 or binomial_cdf(c, rows, rate) <= (1.0 - level) * (1.0 + 1e-12), (rows, rate, level)
        assert binomial_cdf(c + 1, rows, rate) > 1.0 - level, (rows, rate, level)
        assert binomial_cdf(max(c, 0), rows, rate) == pytest.approx(binom.cdf(max(c, 0), rows, rate), rel=1e-10)
    assert allowed_errors(58, 0.05, 0.95) == -1  # 0.95^58 = 0.051
    assert allowed_errors(59, 0.05, 0.95) == 0


def test_the_order_statistic_keeps_its_level_over_all_outcomes():
    """Scores take one of four values: every sample of six rows of the class is tried, with its exact probability."""
    chances, values, rows, level = np.array([0.5, 0.3, 0.15, 0.05]), np.arange(4.0), 6, 0.8
    for kind, limit in ((TprAtFpr, 0.3), (TprAtFpr, 0.6), (PrecisionAtRecall, 0.5), (PrecisionAtRecall, 0.7)):
        measure, broken = kind(limit, guarantee=level), 0.0
        of_recall = kind is PrecisionAtRecall
        own, other = (1, -1) if of_recall else (-1, 1)
        for sample in itertools.combinations_with_replacement(range(4), rows):
            numbers = np.bincount(sample, minlength=4)
            chance = math.factorial(rows) * math.prod(chances**numbers / [math.factorial(k) for k in numbers])
            y = np.append(np.full(rows, own), [other] * 3)
            found = promised_threshold(measure, y, np.append(values[list(sample)], [0.0, 1.5, 3.0]))
            above = chances[values > found.threshold].sum()
            broken += chance * (above < limit - 1e-12 if of_recall else above > limit + 1e-12)
        assert broken <= 1.0 - level + 1e-12, (kind, limit)


def test_precision_keeps_its_level_over_all_outcomes():
    """With the design rows given, each of six test rows has one of three scores and a label: all samples are tried."""
    shares, precisions, values = np.array([0.4, 0.3, 0.3]), np.array([0.2, 0.65, 0.95]), np.array([0.0, 1.0, 2.0])
    floor, level = 0.7, 0.6
    design = _design_rows(np.zeros(8, dtype=bool), 0)
    chances = np.concatenate(
        [shares * (1.0 - precisions), shares * precisions]
    )  # of a negative and of a positive per score
    used = set()
    for design_rows in ((5, 4), (5, 3), (5, 5), (2, 4)):
        broken = 0.0
        for sample in itertools.combinations_with_replacement(range(6), 6):
            numbers = np.bincount(sample, minlength=6)
            chance = math.factorial(6) * math.prod(chances**numbers / [math.factorial(k) for k in numbers])
            rows = np.empty(8, dtype=int)
            rows[design], rows[~design] = design_rows, sample
            y, z = np.where(rows > 2, 1, -1), values[rows % 3]
            found = promised_threshold(RecallAtPrecision(floor, guarantee=level), y, z, random_state=0)
            above = values > found.threshold
            used.add(found.promise.holds)
            assert found.promise.holds == np.isfinite(found.threshold)
            if above.any():
                broken += chance * (shares[above] @ precisions[above] / shares[above].sum() < floor)
        assert broken <= 1.0 - level + 1e-12, design_rows
    assert used == {True, False}


def test_a_test_of_precision_has_the_exact_tail():
    rng = np.random.default_rng(0)
    y = np.where(rng.random(4000) < 0.3, 1, -1)
    z = rng.standard_normal(4000) + 1.5 * y
    measure = RecallAtPrecision(0.9, guarantee=0.95)
    found = promised_threshold(measure, y, z)
    rest = ~_design_rows(y > 0, 0)
    flagged = rest & (z > found.threshold)
    trials, true = int(flagged.sum()), int((flagged & (y > 0)).sum())
    assert found.promise.holds
    assert found.promise.rows == trials
    assert found.promise.theorem == FIXED_SEQUENCE
    assert 1.0 - binomial_cdf(true - 1, trials, 0.9) <= 0.05
    # No threshold is far less strict than one that has the floor on these rows.
    assert found.threshold > best_threshold(y, z, RecallAtPrecision(0.9)).threshold - 0.1
    assert true > 100


def test_whole_weights_are_rows():
    rng = np.random.default_rng(1)
    y = np.where(rng.random(300) < 0.4, 1, -1)
    z, weight = np.round(rng.standard_normal(300) + y, 1), rng.integers(0, 4, 300)
    rows = np.repeat(np.arange(300), weight)
    for measure in (TprAtFpr(0.1, guarantee=0.9), PrecisionAtRecall(0.8, guarantee=0.9)):
        weighted, repeated = promised_threshold(measure, y, z, weight), promised_threshold(measure, y[rows], z[rows])
        assert weighted == repeated
        assert weighted.promise.holds
    with pytest.raises(ValueError, match="must be whole numbers"):
        promised_threshold(TprAtFpr(0.1, guarantee=0.9), y, z, weight + 0.5)


def test_out_of_reach_flags_nothing_and_says_what_is_needed():
    rng = np.random.default_rng(2)
    y = np.repeat([1, -1], [20, 40])
    z = rng.standard_normal(60)
    for measure, words, threshold in (
        (TprAtFpr(0.05, guarantee=0.95), "at least 59 held-out negatives", np.inf),
        (PrecisionAtRecall(0.95, guarantee=0.95), "at least 59 held-out positives. All rows", -np.inf),
        (RecallAtPrecision(0.9, guarantee=0.95), "No row is flagged", np.inf),
        (RecallAtPrecision(1.0, guarantee=0.95), "No number of rows proves a precision of 1", np.inf),
    ):
        found = promised_threshold(measure, y, z)
        assert not found.promise.holds
        assert words in str(found.promise)
        assert found.threshold == threshold


def test_guarantees_are_checked():
    for message, call in {
        "must be below 1": lambda: TprAtFpr(0.1, guarantee=1.0),
        "greater than 0": lambda: TprAtFpr(0.1, guarantee=0.0),
        "exclude each other": lambda: RecallAtPrecision(0.9, 0.9, 0.9),
        "has no guarantee": lambda: promised_threshold(TprAtFpr(), [1, -1], [0.0, 1.0]),
    }.items():
        with pytest.raises(ValueError, match=message):
            call()
