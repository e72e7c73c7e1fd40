"""The exact threshold against brute force over all thresholds."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from cases import for_each
from scoreline.measures import best_threshold, get_measure
from tiers import examples


def counts_at(y, z, weight, threshold):
    predicted, truth = z > threshold, y > 0
    return tuple(
        weight[a & b].sum()
        for a, b in ((truth, predicted), (~truth, predicted), (truth, ~predicted), (~truth, ~predicted))
    )


def brute_force(y, z, weight, function):
    """Return the best value over one threshold in every place that matters: not between tied scores (eq. ties)."""
    there = np.repeat(z, np.rint(2 * weight).astype(int))  # weights are multiples of 1/2
    m = np.sort(np.abs(there))[(len(there) - 1) // 2]
    span = there.max() - there.min()
    t = 2.0**-46
    if m > 0 and span > t * m:
        with np.errstate(over="ignore"):
            t = min(t, span / m / (4 * np.count_nonzero(weight)))
    levels = np.unique(z[weight > 0])
    thresholds = [-np.inf, levels[-1]]  # score > threshold: at a level means between it and the next
    thresholds += [a for a, b in pairwise(levels) if b - a > t * max(abs(a), abs(b), m)]
    return max(float(function(*counts_at(y, z, weight, t))) for t in thresholds)


def f1(tp, fp, fn, tn):
    return 2 * tp / np.maximum(2 * tp + fp + fn, 1e-300)


def gmean(tp, fp, fn, tn):
    return np.sqrt(tp / (tp + fn) * (tn / (tn + fp)))


def cost(tp, fp, fn, tn):
    return -(5.0 * fn + fp)


def bumpy(tp, fp, fn, tn):
    """Neither concave nor monotone: only a full scan finds its best."""
    return np.sin(3.0 * tp) + np.cos(2.0 * fp) + 0.01 * tn


FUNCTIONS = {
    "f1": f1,
    "gmean": gmean,
    "cost": cost,
    "bumpy": bumpy,
    "accuracy": get_measure("accuracy").threshold_objective,
    "balanced_accuracy": get_measure("roc_auc").threshold_objective,
}

ADJACENT = [1.0, np.nextafter(1.0, 2.0), np.nextafter(np.nextafter(1.0, 2.0), 2.0), np.nextafter(1.0, 0.0)]
LEVELS = st.one_of(
    st.integers(-3, 3).map(float),
    st.floats(-1e9, 1e9),
    st.sampled_from(ADJACENT),
    st.sampled_from([0.0, -0.0, 5e-324, -5e-324]),
)


@st.composite
def rows(draw, min_size=2):
    n = draw(st.integers(min_size, 20))
    y = np.array(draw(st.lists(st.booleans(), min_size=n, max_size=n)))
    assume(y.any() and not y.all())
    z = np.array(draw(st.lists(LEVELS, min_size=n, max_size=n)))
    weight = np.array(draw(st.lists(st.sampled_from([0.0, 0.5, 1.0, 1.0, 3.0]), min_size=n, max_size=n)))
    assume(weight[y].any() and weight[~y].any())
    return np.where(y, 1, -1), z, weight


@examples(400)
@given(rows(), st.sampled_from(sorted(FUNCTIONS)), st.booleans())
def test_the_threshold_is_the_best_of_all(case, name, weighted):
    y, z, weight = case
    function = FUNCTIONS[name]
    s = weight if weighted else np.ones(len(y))
    tuned = best_threshold(y, z, function, weight if weighted else None)
    # Weights are multiples of 1/2, so counts are exact: the same function of the same counts, to its own last digit.
    assert tuned.value == pytest.approx(brute_force(y, z, s, function), rel=1e-14, abs=1e-14)
    # ... and the threshold reaches it: strictly above, strictly below.
    assert float(function(*counts_at(y, z, s, tuned.threshold))) == pytest.approx(tuned.value, rel=1e-14, abs=1e-14)
    assert np.isfinite(tuned.threshold)


@examples(100)
@given(rows(), st.sampled_from(sorted(FUNCTIONS)))
def test_rows_without_weight_do_not_matter(case, name):
    y, z, weight = case
    present = weight > 0
    assert best_threshold(y, z, FUNCTIONS[name], weight) == best_threshold(
        y[present], z[present], FUNCTIONS[name], weight[present]
    )


@examples(100)
@given(rows(), st.sampled_from(sorted(FUNCTIONS)), st.integers(0, 2**16))
def test_the_order_of_rows_does_not_matter(case, name, seed):
    y, z, weight = case
    order = np.random.default_rng(seed).permutation(len(y))
    assert best_threshold(y, z, FUNCTIONS[name], weight) == best_threshold(
        y[order], z[order], FUNCTIONS[name], weight[order]
    )


@examples(60)
@given(rows())
def test_integer_weights_are_repeats(case):
    y, z, weight = case
    repeats = np.ceil(weight).astype(int)
    index = np.repeat(np.arange(len(y)), repeats)
    for function in FUNCTIONS.values():
        assert best_threshold(y, z, function, repeats.astype(float)) == best_threshold(y[index], z[index], function)


def test_among_equals_fewer_positives_win():
    y, z = np.array([1, -1, 1, -1]), np.array([4.0, 3.0, 2.0, 1.0])
    # accuracy is 3/4 with one and with three predicted positive
    tuned = best_threshold(y, z, "accuracy")
    assert tuned.value == 0.75
    assert tuned.threshold == 3.5


def test_midpoints():
    tuned = best_threshold(np.array([1, 1, -1]), np.array([10.0, 7.0, 2.0]), "accuracy")
    assert tuned == (4.5, 1.0)


@for_each("level", [0.0, 1.0, -3.5, 1e300, -1e300, 5e-324, 1e-310])
@for_each("positives", [1, 4])
def test_all_scores_equal(level, positives):
    y = np.where(np.arange(5) < positives, 1, -1)
    z = np.full(5, level)
    tuned = best_threshold(y, z, "accuracy")
    assert tuned.value == 0.8
    assert ((z > tuned.threshold) == (positives == 4)).all()


@for_each("scale", [1e-320, 1e-300, 1e-8, 1.0, 1e8, 1e150, 1e300])
def test_the_ends_are_beyond_the_scores(scale):
    z = scale * np.array([3.0, 2.0, 1.0, -2.0])
    everything = best_threshold(np.array([1, -1, 1, 1]), z, lambda tp, fp, fn, tn: tp)
    nothing = best_threshold(np.array([1, -1, 1, 1]), z, lambda tp, fp, fn, tn: tn)
    assert everything.threshold < z.min()
    assert nothing.threshold >= z.max()
    assert np.isfinite([everything.threshold, nothing.threshold]).all()


def test_nan_values_of_a_measure_are_passed_over():
    with np.errstate(invalid="ignore"):
        tuned = best_threshold(
            np.array([1, -1, 1]), np.array([3.0, 2.0, 1.0]), lambda tp, fp, fn, tn: tp / (tp + fp)
        )  # 0/0 at first
    assert tuned == (2.5, 1.0)


def test_labels_and_inputs_of_every_kind():
    z = [0.5, 2.0, -1.0]
    expected = best_threshold(np.array([-1, 1, -1]), np.array(z), "accuracy")
    for y in ([0, 1, 0], np.array([False, True, False]), [-1.0, 1.0, -1.0]):
        assert best_threshold(y, z, "accuracy") == expected
        assert best_threshold(y, np.array(z, dtype=np.float32), get_measure("accuracy"), [1, 1, 1]) == expected


def test_named_measures_use_their_threshold_objective():
    y = np.array([1, -1, -1, -1, -1, -1])
    z = np.array([1.0, 2.0, 0.0, -1.0, -2.0, -3.0])
    assert best_threshold(y, z, "accuracy").value == pytest.approx(5 / 6, abs=1e-15)
    assert best_threshold(y, z, "roc_auc").value == pytest.approx((1 + 4 / 5) / 2, abs=1e-15)
    with pytest.raises(ValueError, match="Did you mean 'accuracy'"):
        best_threshold(y, z, "acuracy")


def test_thresholds_beyond_the_ends_ignore_repeats_and_weightless_rows():
    def nothing(tp, fp, fn, tn):
        return tn - fp

    y, z = np.array([1, -1]), np.array([-1.0, 0.0])
    once = best_threshold(y, z, nothing)
    assert once.threshold == best_threshold(np.repeat(y, 4), np.repeat(z, 4), nothing).threshold
    assert once == best_threshold(np.r_[y, 1, 1], np.r_[z, 1e6, -1e6], nothing, np.array([1.0, 1.0, 0.0, 0.0]))


@for_each("block", [1, 2, 3, 7])
@for_each("weighted", [False, True])
def test_the_size_of_blocks_does_not_matter(monkeypatch, block, weighted):
    rng = np.random.default_rng(block)
    for _ in range(20):
        n = int(rng.integers(2, 25))
        y, z = np.where(rng.random(n) < 0.4, 1, -1), np.round(rng.standard_normal(n), 1)
        y[:2] = 1, -1
        weight = rng.integers(0, 3, n).astype(float) if weighted else np.ones(n)
        weight[:2] = 1.0
        for function in FUNCTIONS.values():
            with monkeypatch.context() as patch:
                patch.setattr("scoreline.measures.thresholds.CANDIDATES_AT_A_TIME", block)
                tuned = best_threshold(y, z, function, weight if weighted else None)
            assert tuned == best_threshold(y, z, function, weight if weighted else None)
            # counts are integers: the same function of the same numbers
            assert tuned.value == pytest.approx(brute_force(y, z, weight, function), rel=1e-14, abs=1e-14)
