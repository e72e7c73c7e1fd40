"""Promises: exact binomial tails by enumeration, the theorems by all outcomes of small samples, and what is out of reach."""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import binom

from scoreline.measures import (
    PrecisionAtRecall,
    RecallAtAlarms,
    RecallAtCost,
    RecallAtPrecision,
    TprAtFpr,
    best_threshold,
    check_counts,
    promised_threshold,
)
from scoreline.measures.promises import FIXED_SEQUENCE, _design_rows, allowed_errors


def binomial_cdf(c, n, p):
    return sum(math.comb(n, k) * p**k * (1.0 - p) ** (n - k) for k in range(c + 1))


def test_allowed_errors_have_exact_tails():
    for rows, rate, level in itertools.product((1, 7, 58, 59, 200), (0.01, 0.05, 0.3, 0.9), (0.5, 0.9, 0.95)):
        c = allowed_errors(TprAtFpr(rate, guarantee=level), rows, level)
        assert c == allowed_errors(PrecisionAtRecall(1.0 - rate, guarantee=level), rows, level)
        assert c < 0 or binomial_cdf(c, rows, rate) <= (1.0 - level) * (1.0 + 1e-12), (rows, rate, level)
        assert binomial_cdf(c + 1, rows, rate) > 1.0 - level, (rows, rate, level)
        assert binomial_cdf(max(c, 0), rows, rate) == pytest.approx(binom.cdf(max(c, 0), rows, rate), rel=1e-10)
    assert allowed_errors(TprAtFpr(0.05, guarantee=0.95), 58, 0.95) == -1  # 0.95^58 = 0.051
    assert allowed_errors(TprAtFpr(0.05, guarantee=0.95), 59, 0.95) == 0
    assert TprAtFpr(0.05).rows_for_proof(0.95) == pytest.approx(58.4, abs=0.05)


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
        (RecallAtPrecision(1.0, guarantee=0.95), "No number of rows proves precision >= 1", np.inf),
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


def test_alarms_among_the_next_rows_keep_their_level_over_all_orders():
    """Scores of held-out and next rows are ranks in random order: the chance of too many alarms is counted over all sets."""
    held, after = 9, 4
    for most in (0, 1, 2):
        measure = RecallAtAlarms(most, after, guarantee=0.7)
        broken, total = 0, 0
        for places in itertools.combinations(range(held + after), after):  # ranks of the next rows
            new = np.array(places, dtype=float)
            own = np.setdiff1d(np.arange(held + after), places).astype(float)
            found = promised_threshold(measure, np.full(held, -1), own)
            if not found.promise.holds:
                continue
            broken += np.count_nonzero(new > found.threshold) > most
            total += 1
        assert total in (0, math.comb(held + after, after))
        if total:
            assert broken / total <= 0.3 + 1e-12
            more = allowed_errors(measure, held, 0.7) + 1
            assert measure.proof(0, more, 0, held - more) > 0.3
    assert RecallAtAlarms(2, 4, guarantee=0.7).rows_for_proof(0.7) <= held


def test_the_test_of_a_mean_cost_keeps_its_level_over_all_counts():
    """The chance of a small p-value is summed over all multinomial counts, for means at and above the limit."""
    rows = 25
    for fp, fn in ((1.0, 4.0), (2.0, 1.0), (1.0, 1.0), (0.0, 3.0)):
        measure = RecallAtCost(0.5, fp, fn, guarantee=0.8)
        for share_fn in (0.0, 0.05, 0.1, 0.125):
            share_fp = (0.5 - fn * share_fn) / fp if fp else 0.0
            mean = fp * share_fp + fn * share_fn
            if share_fp + share_fn > 1.0 or share_fp < 0.0:
                continue
            small = {"proof": 0.0, "p_value_if_met": 0.0}
            for a in range(rows + 1):
                for b in range(rows + 1 - a):
                    ways = math.comb(rows, a) * math.comb(rows - a, b)
                    chance = ways * share_fp**a * share_fn**b * (1.0 - share_fp - share_fn) ** (rows - a - b)
                    for name in small:
                        small[name] += chance * (getattr(measure, name)(3.0, a, b, rows - a - b - 3.0) <= 0.2)
            if mean >= 0.5 - 1e-12:
                assert small["proof"] <= 0.2 + 1e-12, (fp, fn, share_fn)
            if mean <= 0.5 + 1e-12:
                assert small["p_value_if_met"] <= 0.2 + 1e-12, (fp, fn, share_fn)


def test_alarms_and_costs_are_promised_or_explained():
    rng = np.random.default_rng(3)
    y = np.where(rng.random(2000) < 0.2, 1, -1)
    z = rng.standard_normal(2000) + 1.5 * y
    for measure in (
        RecallAtAlarms(0.1, guarantee=0.95),
        RecallAtAlarms(30, 200, guarantee=0.95),
        RecallAtCost(0.2, 1.0, 1.0, guarantee=0.95),
        RecallAtCost(0.4, 1.0, 5.0, guarantee=0.95),
    ):
        found = promised_threshold(measure, y, z)
        assert found.promise.holds, measure.name
        tp, fp = (int(np.count_nonzero((z > found.threshold) & (y == side))) for side in (1, -1))
        counts = (tp, fp, int((y > 0).sum()) - tp, int((y < 0).sum()) - fp)
        assert measure.is_met(*counts)
        assert 0 < tp < (y > 0).sum()
        assert not check_counts(found.promise, *counts).broken
        assert check_counts(found.promise, 0, 400, 400, 0).broken
    for measure, words in (
        (RecallAtAlarms(0.001, guarantee=0.95), "at least 2,995 held-out rows"),
        (RecallAtAlarms(0, 2000, guarantee=0.95), "held-out rows"),
        (RecallAtCost(0.01, 1.0, 5.0, guarantee=0.95), "Raise the limit above"),
    ):
        found = promised_threshold(measure, y, z)
        assert not found.promise.holds
        assert words in found.promise.reason
        assert found.threshold == np.inf


def test_new_operating_points_check_their_parameters():
    for call, message in (
        (lambda: RecallAtAlarms(1.5), "at most 1"),
        (lambda: RecallAtAlarms(0.5, 10), "an integer"),
        (lambda: RecallAtAlarms(11, 10), "at most rows=10"),
        (lambda: RecallAtCost(2.0, 1.0, 1.0), "no row costs more"),
        (lambda: RecallAtCost(0.0), "greater than 0"),
    ):
        with pytest.raises(ValueError, match=message):
            call()
    assert RecallAtAlarms(50, 10_000).label == "recall with at most 50 alarms in 10,000 rows"
    assert RecallAtAlarms(0.01).value([1, -1, -1], np.array([1.0, -1.0, -1.0])) == 0.0
    assert RecallAtCost(0.4).value([1, 1, -1], np.array([1.0, -1.0, -1.0])) == 0.5


def test_a_check_is_an_exact_test():
    promise = promised_threshold(RecallAtPrecision(0.9, guarantee=0.95), *_many_rows()).promise
    found = check_counts(promise, 80, 20, 30, 500)
    assert found.rows == 100
    assert found.value == 0.8
    assert found.p_value == pytest.approx(binomial_cdf(80, 100, 0.9), rel=1e-10)
    assert found.broken
    assert "broken" in str(found)
    assert not check_counts(promise, 88, 12, 30, 500).broken
    nothing = check_counts(promise, 0, 0, 30, 500)
    assert not nothing.broken
    assert "no row to test it on" in str(nothing)
    rate = promised_threshold(TprAtFpr(0.05, guarantee=0.95), *_many_rows()).promise
    assert check_counts(rate, 0, 12, 0, 88).p_value == pytest.approx(1.0 - binomial_cdf(11, 100, 0.05), rel=1e-9)


def test_a_check_of_alarms_keeps_its_level_over_all_orders():
    """The alarms among the next rows are those above an order statistic of the held-out ones."""
    n, rows, most, level = 40, 30, 6, 0.8
    measure = RecallAtAlarms(most, rows, guarantee=level)
    rng = np.random.default_rng(0)
    promise = promised_threshold(measure, np.ones(n), rng.standard_normal(n)).promise
    allowed = allowed_errors(measure, n, level)
    assert promise.holds
    chances = chances_of_alarms(n, allowed, 20)
    broken = [check_counts(promise, a, 0, 20 - a, 0, level=0.9).broken for a in range(21)]
    assert sum(chance for chance, flag in zip(chances, broken, strict=True) if flag) <= 0.1
    # A rate of 6 in 30 is not what was promised: the threshold was chosen with a margin below it.
    first = broken.index(True)
    assert first <= next(a for a in range(21) if 1.0 - binomial_cdf(a - 1, 20, most / rows) <= 0.1)
    assert sum(chances[first - 1 :]) > 0.1
    refused = promised_threshold(RecallAtAlarms(0, 10_000, guarantee=0.95), np.ones(n), rng.standard_normal(n)).promise
    assert not refused.holds
    assert not check_counts(refused, 0, 0, 5, 20).broken


def chances_of_alarms(n, allowed, rows):
    """Return the chance of 0, 1, ... of the next rows above the (allowed + 1)-th largest of n, by orders of all scores."""
    total = math.comb(n + rows, rows)
    return [
        math.comb(a + allowed, a) * math.comb(rows - a + n - allowed - 1, rows - a) / total for a in range(rows + 1)
    ]


def _many_rows():
    rng = np.random.default_rng(0)
    y = np.where(rng.random(4000) < 0.3, 1, -1)
    return y, rng.standard_normal(4000) + 1.5 * y
