"""The robust threshold against brute force over blurred counts, and what it is for: new rows."""

import numpy as np
import pytest
from scipy.stats import norm

from cases import for_each
from scoreline.measures import CountMeasure, best_threshold, get_measure, robust_threshold

MEASURES = {
    "f1": get_measure("f1"),
    "gmean": get_measure("gmean"),
    "mcc": get_measure("mcc"),
    "accuracy": get_measure("accuracy"),
    "recall_at_precision": get_measure("recall_at_precision", {"precision": 0.6}),
    "tpr_at_fpr": get_measure("tpr_at_fpr", {"fpr": 0.1}),
    "cost": CountMeasure(lambda tp, fp, fn, tn: -(3.0 * fn + fp), name="cost"),
}


def quantile(z, w, q):
    """Return the first score (in rising order) with more than the share q of the weight at or below it."""
    order = np.argsort(z)
    k = np.searchsorted(np.cumsum(w[order]), q * w.sum(), side="right")
    return z[order][min(k, len(z) - 1)]


def half_width(z, w):
    """Return 3 spreads over the cube root of the weight; the quartiles give the spread if they are closer."""
    mean = w @ z / w.sum()
    deviation = np.sqrt(w @ (z - mean) ** 2 / w.sum())
    between = (quantile(z, w, 0.75) - quantile(z, w, 0.25)) / 1.349
    return 3.0 * (min(deviation, between) if between > 0 else deviation) * w.sum() ** (-1.0 / 3.0)


def blurred_above(z, w, thresholds):
    half = half_width(z, w)
    if half < 1e-12:  # all scores equal, but for rounding of their mean
        return plain_above(z, w, thresholds)
    return (w * np.clip((z - thresholds[:, None] + half) / (2.0 * half), 0.0, 1.0)).sum(axis=1)


def plain_above(z, w, thresholds):
    return (w * (z > thresholds[:, None])).sum(axis=1)


def values_at(y, z, w, measure, thresholds, above=blurred_above):
    """Return the measure at each threshold; beyond the ends no row or every row counts whole."""
    t = np.array(thresholds)
    sides = [(z[side], w[side]) for side in (y > 0, y < 0)]
    outside = (t >= z.max()) | (t < z.min())
    tp, fp = (np.where(outside, plain_above(*side, t), above(*side, t)) for side in sides)
    return measure.robust_value(tp, fp, sides[0][1].sum() - tp, sides[1][1].sum() - fp)


def candidates(z):
    levels = np.unique(z)
    return [levels[0] - 1.0, *(0.5 * levels[:-1] + 0.5 * levels[1:]), levels[-1] + 1.0]


def rows(seed, ties):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(4, 60))
    y = np.where(rng.random(n) < 0.4, 1, -1)
    y[:2] = 1, -1
    z = 0.8 * y + 1.5 * rng.standard_normal(n)
    return y, np.round(2.0 * z) / 2.0 if ties else z, rng


def weights(kind, rng, n):
    if kind is None:
        return None
    w = rng.integers(0, 4, n).astype(float) if kind == "integer" else rng.uniform(0.05, 3.0, n)
    w[:2] = 1.0  # one row of either class is there
    return w


@for_each("ties", [False, True])
@for_each("kind", [None, "integer", "real"])
@for_each("measure", MEASURES.values(), labels=MEASURES)
def test_the_threshold_is_the_best_of_blurred_counts(measure, kind, ties):
    for seed in range(20):
        y, z, rng = rows(seed, ties)
        given = weights(kind, rng, len(y))
        tuned = robust_threshold(y, z, measure, given)
        w = np.ones(len(y)) if given is None else given
        y, z, w = y[w > 0], z[w > 0], w[w > 0]
        best = values_at(y, z, w, measure, candidates(z)).max()
        # Running sums of up to 60 weights against direct ones, through a measure of slope 1 or so (3 and 60 rows for cost).
        assert values_at(y, z, w, measure, [tuned.threshold]) == pytest.approx(best, rel=1e-11, abs=1e-11)
        # The value is the one of whole rows, from the same sums of a few weights.
        exact = values_at(y, z, w, measure, [tuned.threshold], plain_above)
        assert tuned.value == pytest.approx(exact[0], rel=1e-12, abs=1e-12)


@for_each("block", [1, 2, 7])
@for_each("kind", [None, "real"])
def test_the_size_of_blocks_does_not_matter(monkeypatch, block, kind):
    for seed in range(10):
        y, z, rng = rows(seed, ties=seed % 2 == 0)
        w = weights(kind, rng, len(y))
        for measure in MEASURES.values():
            with monkeypatch.context() as patch:
                patch.setattr("scoreline.measures.thresholds.CANDIDATES_AT_A_TIME", block)
                tuned = robust_threshold(y, z, measure, w)
            assert tuned == robust_threshold(y, z, measure, w)


@for_each("ties", [False, True])
@for_each("measure", MEASURES.values(), labels=MEASURES)
def test_whole_weights_are_repeats_and_weight_zero_is_no_row(measure, ties):
    for seed in range(15):
        y, z, rng = rows(seed, ties)
        w = weights("integer", rng, len(y))
        again = np.repeat(np.arange(len(y)), w.astype(int))
        weighted, repeated = robust_threshold(y, z, measure, w), robust_threshold(y[again], z[again], measure)
        # Another order of summation may decide between two thresholds that are equally good but for rounding.
        values = values_at(y[again], z[again], np.ones(len(again)), measure, [weighted.threshold, repeated.threshold])
        assert values[0] == pytest.approx(values[1], rel=1e-11, abs=1e-11)
        if not ties:
            assert weighted.threshold == pytest.approx(repeated.threshold, rel=1e-13)  # midpoints of the same scores
        present = w > 0
        assert weighted == robust_threshold(y[present], z[present], measure, w[present])


def test_the_order_of_rows_does_not_matter():
    for seed in range(15):
        y, z, rng = rows(seed, ties=False)
        order = rng.permutation(len(y))
        for measure in MEASURES.values():
            assert robust_threshold(y, z, measure) == robust_threshold(y[order], z[order], measure)


@for_each("measure", MEASURES.values(), labels=MEASURES)
def test_the_threshold_moves_and_grows_with_the_scores(measure):
    rng = np.random.default_rng(3)
    y = np.where(rng.random(300) < 0.2, 1, -1)
    z = y + 1.2 * rng.standard_normal(300)
    tuned = robust_threshold(y, z, measure)
    for factor, shift in ((1e-6, 0.0), (1e3, 0.0), (1e100, 0.0), (2.0, -7.0), (1.0, 1e3), (5.0, 1e6), (1.0, -1e9)):
        moved = robust_threshold(y, factor * z + shift, measure)
        # Rounding of scores near the shift, a few digits of it.
        accuracy = 1e-12 * factor + 4.0 * np.spacing(abs(shift))
        assert moved.threshold == pytest.approx(factor * tuned.threshold + shift, abs=accuracy)
        assert moved.value == tuned.value


@for_each("offset", [1e9, -1e9])
@for_each("spread", [1.0, 1e-3])
def test_scores_far_from_zero_compared_with_their_spread(offset, spread):
    rng = np.random.default_rng(4)
    y = np.where(rng.random(400) < 0.3, 1, -1)
    z = spread * (1.5 * y + rng.standard_normal(400))
    far = robust_threshold(y, z + offset, MEASURES["f1"])
    assert z.min() < far.threshold - offset < z.max()
    # With or without the blur (it is left out where rounding would drown it): at most the best, and nearly as good.
    best = best_threshold(y, z, "f1").value
    assert 0.97 * best <= far.value <= best + 1e-12


@for_each("level", [0.0, 1.0, -3.5, 1e6, 1e-10])
@for_each("positives", [1, 4])
def test_all_scores_equal(level, positives):
    y, z = np.where(np.arange(5) < positives, 1, -1), np.full(5, level)
    tuned = robust_threshold(y, z, MEASURES["accuracy"])
    assert tuned.value == 0.8
    assert ((z > tuned.threshold) == (positives == 4)).all()
    everything = robust_threshold(y, z, MEASURES["f1"])
    assert (z > everything.threshold).all()


@for_each("weighted", [False, True])
def test_one_row_of_each_class(weighted):
    y, w = np.array([1, -1]), np.array([2.0, 0.5]) if weighted else None
    right = robust_threshold(y, np.array([2.0, 1.0]), MEASURES["accuracy"], w)
    assert right == (1.5, 1.0)
    wrong = robust_threshold(y, np.array([1.0, 2.0]), MEASURES["f1"], w)
    assert wrong.threshold < 1.0, "F1 is best with both of them"
    tied = robust_threshold(y, np.array([1.0, 1.0]), MEASURES["f1"], w)
    assert tied.threshold < 1.0


def test_one_class_of_equal_scores_counts_whole():
    """Half of the rows share a score: no spread to blur by; the other class has one."""
    y = np.array([1] * 4 + [-1] * 6)
    z = np.array([2.0, 2.0, 2.0, 2.0, 0.0, 0.5, 1.0, 1.2, 1.6, 1.9])
    tuned = robust_threshold(y, z, MEASURES["f1"])
    assert tuned == (pytest.approx(1.95, abs=1e-15), 1.0)  # a midpoint


def test_robust_thresholds_of_repeated_samples_vary_less():
    robust, best = [], []
    for seed in range(100):
        rng = np.random.default_rng(seed)
        y = np.where(np.arange(500) < 50, 1, -1)
        z = y + rng.standard_normal(500)
        robust.append(robust_threshold(y, z, MEASURES["f1"]).threshold)
        best.append(best_threshold(y, z, "f1").threshold)
    # Measured 0.62; the ratio of two deviations of 100 draws is known to about 0.1.
    assert np.std(robust) < 0.85 * np.std(best)


@for_each("distance", [1.5, 2.0, 3.0])
def test_held_out_rows_get_a_better_f1_than_with_the_best_threshold(distance):
    def true_f1(threshold):
        tp, fp = 0.1 * norm.sf(threshold - distance), 0.9 * norm.sf(threshold)
        return 2.0 * tp / (tp + fp + 0.1)

    gains = []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        y = np.where(rng.random(400) < 0.1, 1, -1)
        z = np.where(y > 0, distance, 0.0) + rng.standard_normal(400)
        gains.append(
            true_f1(robust_threshold(y, z, MEASURES["f1"]).threshold) - true_f1(best_threshold(y, z, "f1").threshold)
        )
    # Two standard errors; measured 0.005 to 0.007 with an error of 0.001.
    assert np.mean(gains) > 2.0 * np.std(gains) / np.sqrt(len(gains))


def test_bad_input_is_refused():
    y, z = np.array([1, -1, 1]), np.array([1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="scores must be finite, got nan in row 1"):
        robust_threshold(y, np.array([1.0, np.nan, 2.0]), MEASURES["f1"])
    with pytest.raises(ValueError, match="vectors of one length"):
        robust_threshold(y, z[:2], MEASURES["f1"])
    with pytest.raises(ValueError, match="at least one row of positive weight"):
        robust_threshold(y, z, MEASURES["f1"], np.zeros(3))
    never = CountMeasure(lambda tp, fp, fn, tn: np.where(tn >= 5.0, 1.0, np.nan), name="never")
    with pytest.raises(ValueError, match="is NaN at every threshold"):
        robust_threshold(y, z, never)


@for_each("scale", [1e-300, 1e-15, 1e200])
def test_scores_of_any_size_give_the_same_predictions(scale):
    rng = np.random.default_rng(3)
    y = np.where(rng.random(200) < 0.3, 1, -1)
    z = y + rng.standard_normal(200)
    unit = robust_threshold(y, z, get_measure("f1"))
    other = robust_threshold(y, z * scale, get_measure("f1"))
    assert other.value == unit.value
    assert np.array_equal(z * scale > other.threshold, z > unit.threshold)


def test_scores_without_room_between_them():
    e = np.finfo(float).eps
    distinct, tied = np.array([1 + 128 * e, 1 + e]), np.array([1 + 2 * e, 1 + e])
    assert robust_threshold(np.array([1, -1]), distinct, get_measure("accuracy")).value == 1.0
    assert robust_threshold(np.array([1, -1]), tied, get_measure("accuracy")).value == 0.5
    assert robust_threshold(np.array([1, 1, 1, -1]), np.full(4, 1e16), get_measure("accuracy")).value == 0.75
