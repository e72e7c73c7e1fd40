"""Intervals of measures: against the literal formulas, exact tails, repeated rows and, in the slow tier, their coverage."""

import numpy as np
import pytest
from scipy.stats import binom, binomtest, norm

from scoreline import CountMeasure
from scoreline.kernels import placements
from scoreline.measures import RankingMeasure, all_measures, compare_scores, interval
from scoreline.measures.intervals import _Cells, _placements, _Sample, _values, _variance


def scored(n=40, positives=12, seed=0, ties=True):
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.repeat([1, -1], [positives, n - positives]))
    z = rng.standard_normal(n) + 0.6 * y
    return y, np.round(2.0 * z) / 2.0 if ties else z, rng


def delong(y, columns):
    """Return areas and their covariance by the O(n^2) formula of DeLong, DeLong and Clarke-Pearson."""
    psi = [(z[y > 0][:, None] > z[y < 0]) + 0.5 * (z[y > 0][:, None] == z[y < 0]) for z in columns]
    above = np.cov([each.mean(axis=1) for each in psi]) / psi[0].shape[0]
    below = np.cov([each.mean(axis=0) for each in psi]) / psi[0].shape[1]
    return [each.mean() for each in psi], np.atleast_2d(above + below)


def test_variances_are_those_of_delong():
    for seed in range(20):
        y, a, rng = scored(seed=seed, ties=seed % 2 > 0)
        b = a + rng.integers(-2, 3, len(y)) / 2.0
        for weight in (None, rng.integers(1, 4, len(y))):
            repeated = np.repeat(np.arange(len(y)), 1 if weight is None else weight)
            areas, covariance = delong(y[repeated], [a[repeated], b[repeated]])
            sample = _Sample(y, [a, b], weight, None)
            placed = [_placements(sample, k) for k in range(2)]
            assert [each.area for each in placed] == pytest.approx(areas, abs=1e-13), seed
            expected = [covariance[0, 0], covariance[1, 1], covariance.sum() - 4.0 * covariance[0, 1]]
            parts = [placed[0].parts, placed[1].parts, placed[1].parts - placed[0].parts]
            found = [_variance(sample, each)[0] for each in parts]
            assert found == pytest.approx(expected, rel=1e-10, abs=1e-15), (seed, weight is None)


def test_the_spread_of_one_model_is_that_of_delong():
    """The interval without weights sorts the classes alone: the same sums as from the placements of rows."""
    for seed in range(20):
        y, z, _ = scored(n=int(20 + 10 * seed), positives=int(3 + seed), seed=seed, ties=seed % 2 > 0)
        (area,), covariance = delong(y, [z])
        m, n = (y > 0).sum(), (y < 0).sum()
        found, high, low = placements.spread(np.sort(z[y > 0]), np.sort(z[y < 0]))
        assert found == pytest.approx(area, abs=1e-13)
        assert high / (m * (m - 1)) + low / (n * (n - 1)) == pytest.approx(covariance[0, 0], rel=1e-10, abs=1e-15)
        one, other = interval("roc_auc", y, z), interval("roc_auc", y, z, sample_weight=np.ones(len(y)))
        assert one[:3] == pytest.approx(other[:3], rel=1e-12)


def test_levels_give_the_values_of_the_measures():
    rng = np.random.default_rng(1)
    positive, negative = rng.integers(0, 3, (2, 5, 30)).astype(float)
    y, z = np.repeat([1, -1], 30), -np.tile(np.arange(30.0), 2)
    cases = [(name, {}) for name, kind in all_measures().items() if issubclass(kind, RankingMeasure)]
    cases += [("partial_roc_auc", {"max_fpr": f}) for f in (0.03, 0.5, 1.0)]
    cases += [(name, {"k": k}) for name in ("precision_at_k", "recall_at_k") for k in (1, 7, 0.3)]
    for name, params in cases:
        measure = all_measures()[name](**params)
        expected = [measure.value(y, z, np.concatenate(pair)) for pair in zip(positive, negative, strict=True)]
        np.testing.assert_allclose(measure.from_levels(positive, negative), expected, rtol=1e-12, err_msg=name)


def test_rates_have_exact_tails():
    for successes, trials in ((0, 5), (3, 5), (5, 5), (28, 30), (1, 200)):
        y = np.ones(trials + 2)
        y[trials:] = -1
        z = np.where(np.arange(trials + 2) < successes, 1.0, -1.0)
        found = interval("recall", y, z, level=0.9)
        ends = binomtest(successes, trials).proportion_ci(0.9, "exact")
        assert (found.low, found.high) == pytest.approx((ends.low, ends.high), rel=1e-9)
        if successes:
            assert binom.sf(successes - 1, trials, found.low) == pytest.approx(0.05, rel=1e-9)
        if successes < trials:
            assert binom.cdf(successes, trials, found.high) == pytest.approx(0.05, rel=1e-9)
        assert found.value == successes / trials
        assert found.method == "exact"


def test_whole_weights_are_repeated_rows_for_every_measure():
    y, z, rng = scored()
    weight = rng.integers(0, 4, len(y))
    rows = np.repeat(np.arange(len(y)), weight)
    for name in [*all_measures(), "precision", "recall", "true_negative_rate"]:
        weighted = interval(name, y, z, sample_weight=weight, replicates=100)
        repeated = interval(name, y[rows], z[rows], replicates=100)
        assert weighted[:4] == pytest.approx(repeated[:4], rel=1e-10), name
        assert weighted.low <= weighted.value <= weighted.high, name
        assert weighted.method == repeated.method


def test_copies_of_groups_change_nothing():
    """Every row twice in one group is the same sample of groups as every row once."""
    y, z, _ = scored()
    twice = np.repeat(np.arange(len(y)), 2)
    for name in [*all_measures(), "recall"]:
        if name in ("precision_at_k", "recall_at_k", "prbep"):
            continue  # k counts rows
        once = interval(name, y, z, groups=np.arange(len(y)), replicates=100)
        copied = interval(name, y[twice], z[twice], groups=twice, replicates=100)
        assert once[:4] == pytest.approx(copied[:4], rel=1e-6), name
        assert once.method.endswith("clustered")


def test_importance_weights_have_no_size():
    y, z, rng = scored()
    weight = rng.random(len(y)) + 0.5
    for name in ("roc_auc", "f1", "average_precision", "recall"):
        one = interval(name, y, z, sample_weight=weight, replicates=100)
        other = interval(name, y, z, sample_weight=1024.0 * weight, replicates=100)
        assert one[:4] == pytest.approx(other[:4], rel=1e-10), name


def test_dependent_rows_widen_the_interval():
    rng = np.random.default_rng(3)
    groups = np.repeat(np.arange(60), 10)
    y = np.where(rng.random(600) < 0.4, 1, -1)
    z = rng.standard_normal(600) + y + 2.0 * rng.standard_normal(60)[groups]
    for name in ("roc_auc", "average_precision", "f1"):
        plain, clustered = interval(name, y, z), interval(name, y, z, groups=groups)
        assert clustered.high - clustered.low > 1.3 * (plain.high - plain.low), name


def test_a_perfect_ranking_has_an_interval():
    """Of m disjoint pairs all are in order with the chance area^m: a lower end above 0.025^(1/m) would be too good."""
    for m in (2, 7, 30, 200):
        y = np.repeat([1, -1], [m, 500])
        found = interval("roc_auc", y, y.astype(float))
        assert found.high == found.value == 1.0
        assert found.low < 0.025 ** (1.0 / m), m
        assert interval("roc_auc", y, -y.astype(float)).high == pytest.approx(1.0 - found.low)


def test_a_perfect_ranking_has_an_interval_for_every_measure():
    y = np.repeat([1, -1], [7, 50])
    groups = np.arange(57)
    for name, kind in all_measures().items():
        if issubclass(kind, RankingMeasure):
            for given in (None, groups):
                found = interval(name, y, y.astype(float), groups=given)
                assert found.high == found.value == 1.0
                assert found.low < 0.96, (name, given is None)


def test_differences_of_few_perfect_rows_prove_nothing():
    """Two positives above two negatives or below them: of six orders of the labels, two are as extreme."""
    y, a = np.array([1, 1, 0, 0]), np.array([1.5, 0.5, -0.5, -1.5])
    swapped = a[[1, 0, 3, 2]]
    for name in [*all_measures(), "precision"]:
        for given in (None, np.arange(4)):
            found = compare_scores(y, a, -a, name, groups=given)
            assert found.p_value > 0.1, (name, given is None)
            assert found.low <= 0.0 <= found.high, name
            other = compare_scores(y, a, swapped, name, groups=given)
            assert (other.difference, other.p_value) == (0.0, pytest.approx(1.0)), name
            if given is None and name not in ("recall_at_alarms", "recall_at_cost"):  # both are 0 for these few rows
                assert other.low < other.high, name
    many = np.repeat([1, 0], 40)
    z = np.where(many > 0, 1.0, -1.0) + 0.01 * np.arange(80)
    found = compare_scores(many, z, -z)
    assert found.p_value < 1e-6
    assert found.low == -1.0
    assert found.high < -0.9


def test_groups_of_scores_hardly_change_a_measure():
    y, z, _ = scored(20_000, 400, ties=False)
    sample = _Sample(y, [z], None, None)
    cells = _Cells(sample, counted=False)
    assert cells.grouped
    for name, kind in all_measures().items():
        if issubclass(kind, RankingMeasure):
            found = _values(kind(), *cells.levels(cells.weight[None, :], 0))[0]
            assert found == pytest.approx(kind().value(y, z), rel=0.01), name


def test_paired_bootstrap_has_the_variance_of_paired_counts():
    """Accuracy: within a class the difference per row is -1, 0 or 1, so its variance is known."""
    y, a, rng = scored(400, 150)
    b = a + rng.standard_normal(400)
    found = compare_scores(y, a, b, "accuracy", replicates=4000)
    gain = ((b > 0) == (y > 0)).astype(float) - ((a > 0) == (y > 0))
    variance = sum(gain[side].var() * side.sum() for side in (y > 0, y < 0)) / 400**2 * 150 / 149
    assert found.difference == pytest.approx(gain.mean(), abs=1e-14)
    reach = norm.ppf(0.975) * np.sqrt(variance)  # t with 149 degrees of freedom is 0.8 % wider
    # The deviation of 4000 replicates is known within 4 / sqrt(2 * 4000) = 4.5 %.
    assert 0.5 * (found.high - found.low) == pytest.approx(reach, rel=0.06)


def test_differences_agree_with_their_p_values():
    y, a, rng = scored(300, 100)
    for name in ("roc_auc", "average_precision", "f1", "precision"):
        for noise in (0.0, 0.3, 3.0):
            b = a + noise * rng.standard_normal(300)
            found = compare_scores(y, a, b, name, level=0.9, replicates=200)
            back = compare_scores(y, b, a, name, level=0.9, replicates=200)
            assert back.difference == -found.difference
            assert (found.p_value < 0.1) == (not found.low <= 0.0 <= found.high), (name, noise)
    same = compare_scores(y, a, a)
    assert (same.difference, same.p_value) == (0.0, 1.0)
    assert "p = 1" in str(same)


def test_a_measure_of_the_user_is_resampled():
    class AboveMedian(RankingMeasure):
        name = "above_median"

        def value(self, y, decision, sample_weight=None):
            weight = np.ones(len(y)) if sample_weight is None else sample_weight
            return float(np.average(decision[y > 0] > np.median(decision), weights=weight[y > 0]))

    y, z, _ = scored()
    found = interval(AboveMedian(), y, z, replicates=100)
    assert found.low < found.value < found.high
    profit = CountMeasure(lambda tp, fp, fn, tn: 5.0 * tp - fp, name="profit")
    found = interval(profit, y, z)
    assert found.low < found.value < found.high


def test_intervals_refuse_what_they_cannot_use():
    y, z, _ = scored()
    for message, call in {
        "at least two rows of each class, got 1": lambda: interval("f1", [1, -1, -1], [1.0, 2.0, 3.0]),
        "level=1.5 must be below 1": lambda: interval("f1", y, z, level=1.5),
        "must be finite, got inf": lambda: interval("roc_auc", y, np.where(z > 1, np.inf, z)),
        "groups has shape": lambda: interval("roc_auc", y, z, groups=[1, 2]),
        "'recal' is unknown": lambda: interval("recal", y, z),
        "replicates=7": lambda: interval("f1", y, z, replicates=7),
        "two groups of each class": lambda: interval("f1", y, z, groups=np.zeros(len(y))),
    }.items():
        with pytest.raises(ValueError, match=message):
            call()


@pytest.mark.slow
def test_intervals_cover_the_true_value():
    """30 positives and 300 negatives of two normal distributions; the share of 1000 intervals is known within 2 %."""
    rng, shift, threshold = np.random.default_rng(0), 1.5, 1.0
    y = np.repeat([1, -1], [30, 300])
    tpr, fpr = norm.sf(threshold - shift), norm.sf(threshold)
    true = {"roc_auc": norm.cdf(shift / np.sqrt(2.0)), "f1": 60 * tpr / (30 * tpr + 300 * fpr + 30)}
    covered = dict.fromkeys(true, 0)
    for _ in range(1000):
        z = rng.standard_normal(330) + shift * (y > 0) - threshold
        for name, value in true.items():
            found = interval(name, y, z)
            covered[name] += found.low <= value <= found.high
    for name, hits in covered.items():
        assert 930 <= hits <= 975, (name, hits)


@pytest.mark.slow
def test_intervals_of_a_nearly_perfect_ranking_cover_the_true_value():
    """30 positives, 4 deviations above 300 negatives: without the added rows, 80 % of the intervals cover."""
    rng, shift = np.random.default_rng(0), 4.0
    y = np.repeat([1, -1], [30, 300])
    t = np.linspace(-10.0, 14.0, 20_001)
    tpr, fpr = norm.sf(t - shift), norm.sf(t)
    true = np.trapezoid(30 * tpr / np.maximum(30 * tpr + 300 * fpr, 1e-300) * norm.pdf(t - shift), t)
    found = [interval("average_precision", y, rng.standard_normal(330) + shift * (y > 0)) for _ in range(300)]
    assert np.mean([each.low <= true <= each.high for each in found]) > 0.93
