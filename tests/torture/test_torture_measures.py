"""Every measure and its thresholds at scores and weights of any size, against fractions and against all thresholds one by one.

The slow path takes the floats literally: counts are sums of fractions, formulas are those of docs/math written a second time.
A measure may refuse weights that no sum of floats can hold, in words; it may not return NaN, warn, or be wrong.
"""

import itertools
import warnings
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, roc_auc_score
from torture_data import LARGEST, TINY, labels, scores, weights

from cases import for_each
from scoreline.measures import CountMeasure, all_measures, best_threshold, class_average, get_measure, robust_threshold
from scoreline.measures.base import CountsBasedMeasure, checked_rows
from scoreline.measures.ranking import AtKMeasure
from scoreline.measures.score_sketch import RecentScores, ScoreSketch
from scoreline.measures.ties import Ties, median_size
from tiers import examples

EPS = float(np.finfo(float).eps)
NAMES = sorted(all_measures())
COUNTS = [name for name in NAMES if not get_measure(name).uses_order]
REFUSALS = ("sample_weight", "end of the range of floats")


def root(value):
    """Return the square root of a fraction to 40 digits."""
    with mpmath.workdps(40):
        return mpmath.sqrt(mpmath.mpf(value.numerator) / value.denominator)


def share(part, total):
    """Return part / whole, 0 where there is no whole."""
    return part / total if total else Fraction(0)


def rates(tp, fp, fn, tn):
    return share(tp, tp + fn), share(tn, tn + fp)


def mcc(tp, fp, fn, tn):
    product = (tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)
    with mpmath.workdps(40):
        return (
            (tp * tn - fp * fn).numerator / mpmath.mpf((tp * tn - fp * fn).denominator) / root(product)
            if product
            else 0
        )


def hmean(tp, fp, fn, tn):
    p, n = rates(tp, fp, fn, tn)
    return share(2 * p * n, p + n)


def qmean(tp, fp, fn, tn):
    p, n = rates(tp, fp, fn, tn)
    return 1 - root(((1 - p) ** 2 + (1 - n) ** 2) / 2)


def rate_if_met(target, successes, trials, limit):
    """Return the target where successes / trials >= limit; the rounding of sums of weights may decide ties."""
    return target if trials and successes >= Fraction(limit) * trials else Fraction(0)


FORMULAS = {
    "accuracy": lambda tp, fp, fn, tn: share(tp + tn, tp + fp + fn + tn),
    "balanced_accuracy": lambda tp, fp, fn, tn: sum(rates(tp, fp, fn, tn)) / 2,
    "f1": lambda tp, fp, fn, tn: share(2 * tp, 2 * tp + fn + fp),
    "fbeta": lambda tp, fp, fn, tn: share(2 * tp, 2 * tp + fn + fp),
    "gmean": lambda tp, fp, fn, tn: root(rates(tp, fp, fn, tn)[0] * rates(tp, fp, fn, tn)[1]),
    "gower_legendre": lambda tp, fp, fn, tn: share(tp + tn, tp + tn + (fp + fn) / 2),
    "hmean": hmean,
    "jaccard": lambda tp, fp, fn, tn: share(tp, tp + fp + fn),
    "kappa": lambda tp, fp, fn, tn: share(2 * (tp * tn - fp * fn), (tp + fp) * (fp + tn) + (tp + fn) * (fn + tn)),
    "mcc": mcc,
    "min_tpr_tnr": lambda tp, fp, fn, tn: min(rates(tp, fp, fn, tn)),
    "qmean": qmean,
    "precision_at_recall": lambda tp, fp, fn, tn: rate_if_met(share(tp, tp + fp), tp, tp + fn, 0.9),
    "recall_at_precision": lambda tp, fp, fn, tn: rate_if_met(share(tp, tp + fn), tp, tp + fp, 0.9),
    "recall_at_alarms": lambda tp, fp, fn, tn: (
        share(tp, tp + fn) if tp + fp <= Fraction(0.01) * (tp + fp + fn + tn) else Fraction(0)
    ),
    "recall_at_cost": lambda tp, fp, fn, tn: (
        share(tp, tp + fn) if fp + fn <= Fraction(0.1) * (tp + fp + fn + tn) else Fraction(0)
    ),
    "savings": lambda tp, fp, fn, tn: 1 - share(fp + fn, low) if (low := min(tp + fn, fp + tn)) else Fraction(0),
    "tpr_at_fpr": lambda tp, fp, fn, tn: share(tp, tp + fn) if fp <= Fraction(0.01) * (fp + tn) else Fraction(0),
}


def exact_rows(y, z, weight):
    """Return [(score, weight, positive)] as fractions, rows of weight 0 left out."""
    s = np.ones(len(z)) if weight is None else weight
    return [(Fraction(a), Fraction(b), c > 0) for a, b, c in zip(z.tolist(), s.tolist(), y.tolist(), strict=True) if b]


def exact_counts(rows, threshold):
    """Return tp, fp, fn, tn of calling scores above the threshold positive."""
    threshold = Fraction(threshold)
    cells = [
        sum((s for z, s, p in rows if (p, z > threshold) == cell), Fraction(0))
        for cell in itertools.product((1, 0), (1, 0))
    ]
    tp, fn, fp, tn = cells
    return tp, fp, fn, tn


def exact_auc(rows):
    pairs = [(a - b, p * q) for a, p, up in rows if up for b, q, above in rows if not above]
    total = sum((w for _, w in pairs), Fraction(0))
    right = sum((w if d > 0 else w / 2 for d, w in pairs if d >= 0), Fraction(0))
    return right / total if total else None


def exact_at_top(measure, rows):
    """Return the positives among the k highest over k or over all: tied rows in part."""
    above, total = sum((s for _, s, p in rows if p), Fraction(0)), sum((s for _, s, _ in rows), Fraction(0))
    k = above if measure.k is None else Fraction(measure.k) * (total if isinstance(measure.k, float) else 1)
    left, true = k, Fraction(0)
    for level in sorted({z for z, _, _ in rows}, reverse=True):
        group = [(s, p) for z, s, p in rows if z == level]
        taken = min(Fraction(1), max(Fraction(0), left) / sum(s for s, _ in group))
        true += taken * sum((s for s, p in group if p), Fraction(0))
        left -= sum(s for s, _ in group)
    return share(true, above if measure.name == "recall_at_k" else k)


def exact_average_precision(rows):
    """Return the sum over levels of (recall gained) times precision; None without a positive."""
    above = sum((s for _, s, p in rows if p), Fraction(0))
    total, before = Fraction(0), Fraction(0)
    for level in sorted({z for z, _, _ in rows}, reverse=True):
        tp = sum((s for z, s, p in rows if p and z >= level), Fraction(0))
        total += (tp - before) * share(tp, sum((s for z, s, _ in rows if z >= level), Fraction(0)))
        before = tp
    return total / above if above else None


def exact_value(measure, y, z, weight):
    """Return the measure of decision values z, or None where it is not written down a second time."""
    rows = exact_rows(y, z, weight)
    if isinstance(measure, AtKMeasure):
        return exact_at_top(measure, rows)
    if measure.name in ("roc_auc", "average_precision"):
        return (exact_auc if measure.name == "roc_auc" else exact_average_precision)(rows)
    return FORMULAS[measure.name](*exact_counts(rows, 0.0)) if measure.name in FORMULAS else None


def quiet(call, *arguments):
    """Return what a call returns, or None if it refuses in words; warnings are errors."""
    words = ""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            return call(*arguments)
        except ValueError as error:
            words = str(error)
    assert any(part in words for part in REFUSALS), words
    return None


@st.composite
def rows_of(draw, most=8, kinds=None):
    n = draw(st.integers(2, most))
    y = draw(labels(n))
    return y, draw(scores(n)), draw(weights(n, y=y) if kinds is None else weights(n, kinds, y=y))


def at_limit(measure, rows, threshold):
    """Tell whether the counts lie so close to a constraint that rounding of the sums of weights may decide."""
    if not hasattr(measure, "trials"):
        return False
    counts = exact_counts(rows, threshold)
    size = max(counts)
    counts = [each / size for each in counts]  # costs are floats, and weights may be larger
    successes, trials, limit = (Fraction(each) for each in measure.trials(*counts))
    return abs(successes - Fraction(limit) * trials) <= Fraction(1e-12) * trials


def check_value(name, y, z, weight):
    measure = get_measure(name)
    got = quiet(measure.value, y, z, weight)
    if got is None:
        assert weight is not None
        return
    assert np.isfinite(got)
    expected = exact_value(measure, y, z, weight)
    if expected is not None and not at_limit(measure, exact_rows(y, z, weight), 0.0):
        # Sums of n weights are right to n roundings, and so are ratios of them; a root takes the root of what is lost near 0.
        assert abs(got - float(expected)) <= 8 * len(z) * EPS ** (0.5 if name in ("qmean", "gmean") else 1.0)


def candidates(z, weight):
    """Return one threshold below all scores, one at each of them that is not tied to the next higher one."""
    levels = np.unique(z)
    with np.errstate(over="ignore"):
        below = float(np.nextafter(levels[0], -np.inf))
        ties = Ties.of(median_size(z, weight), levels[0], levels[-1], len(z))
        free = [a for a, b in itertools.pairwise(levels.tolist()) if not ties.tied(a, b)]
    return [t for t in (below, *free, float(levels[-1])) if np.isfinite(t)]


def check_threshold(name, y, z, weight):
    measure = get_measure(name)
    tuned = quiet(best_threshold, y, z, measure, weight)
    if tuned is None:
        return
    rows = exact_rows(y, z, weight)
    assert np.isfinite(tuned.threshold)
    if isinstance(measure, AtKMeasure):
        assert abs(tuned.value - float(exact_at_top(measure, rows))) <= 8 * len(z) * EPS
        return
    formula = FORMULAS.get(name, FORMULAS["balanced_accuracy"])
    scale_free = measure.scale_free and getattr(measure, "confidence", None) is None
    with np.errstate(under="ignore"):
        counted = checked_rows(y, z, weight, scale_free).weight  # those hundreds of decades below the largest become 0
    there = slice(None) if counted is None else counted > 0.0
    levels = candidates(z[there], None if counted is None else counted[there])
    reachable = [t for t in levels if not at_limit(measure, rows, t)]
    best = max((float(formula(*exact_counts(rows, t))) for t in reachable), default=0.0)
    slack = 8 * len(z) * EPS ** (0.5 if name in ("qmean", "gmean") else 1.0)
    assert tuned.value >= best - slack
    if not at_limit(measure, rows, tuned.threshold):
        assert abs(tuned.value - float(formula(*exact_counts(rows, tuned.threshold)))) <= slack


def check_robust(name, y, z, weight):
    measure = get_measure(name)
    tuned = quiet(robust_threshold, y, z, measure, weight)
    if tuned is None:
        return
    assert np.isfinite(tuned.threshold)
    assert np.isfinite(tuned.value)
    if name in FORMULAS and not hasattr(measure, "trials"):
        expected = FORMULAS[name](*exact_counts(exact_rows(y, z, weight), tuned.threshold))
        assert abs(tuned.value - float(expected)) <= 8 * len(z) * EPS ** (0.5 if name in ("qmean", "gmean") else 1.0)


@for_each("name", NAMES)
@examples(100)
@given(case=rows_of())
def test_values_at_any_scale(name, case):
    check_value(name, *case)


@for_each("name", NAMES)
@examples(100)
@given(case=rows_of())
def test_thresholds_at_any_scale(name, case):
    check_threshold(name, *case)


@for_each("name", COUNTS)
@examples(100)
@given(case=rows_of())
def test_robust_thresholds_at_any_scale(name, case):
    check_robust(name, *case)


@examples(60)
@given(case=rows_of(kinds=("none", "whole", "uniform", "zeros_among", "one_dominates")))
def test_average_precision_and_partial_area_are_those_of_scikit_learn(case):
    """At scores that scikit-learn can subtract from each other; ranks stand for the others, which changes nothing."""
    y, z, weight = case
    ranks = np.unique(z, return_inverse=True)[1]
    there = np.ones(len(z), dtype=bool) if weight is None else weight > 0.0
    own = None if weight is None else weight[there]
    for name, literal in (("average_precision", average_precision_score), ("partial_roc_auc", roc_auc_score)):
        extra = {"max_fpr": 0.1} if name == "partial_roc_auc" else {}
        expected = literal(y[there] > 0, ranks[there], sample_weight=own, **extra)
        assert abs(quiet(get_measure(name).value, y, z, weight) - expected) <= 8 * EPS


@for_each("name", NAMES)
@examples(60)
@given(case=rows_of(kinds=("whole",)))
def test_whole_weights_are_repeated_rows_at_any_score(name, case):
    y, z, weight = case
    rows = np.repeat(np.arange(len(z)), weight.astype(int))
    measure = get_measure(name)
    assert abs(measure.value(y, z, weight) - measure.value(y[rows], z[rows])) <= 8 * len(rows) * EPS


@for_each("name", NAMES)
@for_each("factor", [2.0**-1040, 2.0**-900, 2.0**900, 2.0**1020])
def test_powers_of_two_in_the_weights_change_no_bit(name, factor):
    """Weights of 1e-300 and of 1e300 gave NaN, 0 or infinity, with warnings."""
    y, z = np.array([1, -1, 1, -1, -1, 1]), np.array([0.5, 0.25, -1.0, -2.0, 0.5, 3.0])
    weight = np.array([1.0, 2.0, 3.0, 1.0, 5.0, 2.0])
    for measure in (get_measure(name), *([get_measure(name, {"k": 0.5})] if name.endswith("_at_k") else [])):
        assert quiet(measure.value, y, z, factor * weight) == measure.value(y, z, weight)
        tuned = quiet(best_threshold, y, z, measure, factor * weight)
        assert tuned == best_threshold(y, z, measure, weight)


@for_each("name", ["precision_at_k", "recall_at_k"])
def test_a_whole_k_is_a_number_of_rows_with_weights_of_any_size(name):
    y, z = np.array([1, -1, 1, -1]), np.array([4.0, 3.0, 2.0, 1.0])
    measure = get_measure(name, {"k": 2})
    huge, tiny = measure.value(y, z, np.full(4, 1e300)), measure.value(y, z, np.full(4, 1e-300))
    # Two rows of 4e300 are nothing: the share of the best row counts. All of 4e-300 lies within two rows.
    assert huge == (1.0 if name == "precision_at_k" else pytest.approx(1e-300))
    assert tiny == (pytest.approx(1e-300) if name == "precision_at_k" else 1.0)


@for_each("average", ["macro", "weighted", "micro"])
@for_each("name", NAMES)
def test_averages_over_classes_take_weights_of_any_size(name, average):
    rng = np.random.default_rng(1)
    y, scores, weight = np.arange(12) % 3, rng.standard_normal((12, 3)), rng.integers(1, 4, 12).astype(float)
    given = scores if get_measure(name).uses_order else scores.argmax(axis=1)
    expected = class_average(name, y, given, average, sample_weight=weight)
    for factor in (2.0**-1040, 2.0**1020):
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            assert class_average(name, y, given, average, sample_weight=factor * weight) == expected
    with pytest.raises(ValueError, match="use weights that differ less"):
        class_average(name, y, given, average, sample_weight=np.where(y == 0, 1e-300, 1e300))


@for_each("name", ["mcc", "kappa"])
def test_light_rows_do_not_drown_in_heavy_ones(name):
    """The weight below the threshold was a difference of two sums: of 1e20 + 1 and 1e20, which left 0."""
    y, z, weight = np.array([-1, 1, 1]), np.array([0.1, -0.1, 0.6]), np.array([1.0, 1.0, 1e20])
    expected = float(FORMULAS[name](Fraction(10**20), Fraction(0), Fraction(1), Fraction(1)))
    assert abs(best_threshold(y, z, name, weight).value - expected) <= 8 * EPS
    assert abs(get_measure(name).value(y, z - 0.3, weight) - expected) <= 8 * EPS


SCALE_FREE = [name for name, m in all_measures().items() if issubclass(m, CountsBasedMeasure) and m.scale_free]


@for_each("scale", [2.0**-900, 2.0**-500, 2.0**500, 2.0**900])
@for_each("name", SCALE_FREE)
def test_counts_of_any_size_give_the_value_of_their_shares(name, scale):
    """Products of four sums leave the range of floats; powers of two change no digit of what is right."""
    measure = get_measure(name)
    for counts in ((3.0, 2.0, 1.0, 4.0), (1.0, 0.0, 5.0, 7.0), (0.5, 9.0, 0.25, 1.0)):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert measure.from_counts(*(scale * c for c in counts)) == measure.from_counts(*counts)


@for_each("beta", [1e-200, 1e-3, 0.5, 3.0, 1e100, 1e200])
def test_fbeta_of_any_beta(beta):
    """A beta of 1e200 made infinity divided by infinity."""
    measure, (tp, fp, fn, tn) = get_measure("fbeta", {"beta": beta}), (3, 2, 5, 7)
    square = Fraction(beta) ** 2
    expected = (1 + square) * tp / ((1 + square) * tp + square * fn + fp)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert abs(float(measure.from_counts(tp, fp, fn, tn)) - float(expected)) <= 8 * EPS
        assert float(measure.from_counts(0.0, 0.0, 0.0, 4.0)) == 0.0


def test_gower_legendre_of_any_sigma():
    for sigma in (1e-300, 1e300):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            value = float(get_measure("gower_legendre", {"sigma": sigma}).from_counts(3e20, 2e20, 1e20, 4e20))
        assert abs(value - (1.0 if sigma < 1 else 0.0)) <= 8 * EPS


NOT_ROWS = {
    "nan_score": ([1, -1], [0.5, np.nan], None, "scores must be finite, got nan in row 1"),
    "nan_label": ([1.0, np.nan], [0.5, 0.1], None, "y must be finite, got nan in row 1"),
    "nan_weight": (
        [1, -1],
        [0.5, 0.1],
        [1.0, np.nan],
        "sample_weight must be finite and non-negative, got nan in row 1",
    ),
    "negative_weight": ([1, -1], [0.5, 0.1], [-1.0, 1.0], "got -1.0 in row 0"),
    "infinite_weight": ([1, -1], [0.5, 0.1], [np.inf, 1.0], "got inf in row 0"),
    "one_label_for_all": ([1], [0.5, 0.1], None, "vectors of one length"),
    "one_score_for_all": ([1, -1], [0.5], None, "vectors of one length"),
    "short_weight": ([1, -1], [0.5, 0.1], [1.0], "vectors of one length"),
    "matrix": ([[1], [-1]], [[0.5], [0.1]], None, "vectors of one length"),
    "one_number": (1, 0.5, None, "vectors of one length"),
    "class_lost": ([1, -1], [0.5, 0.1], [1e-300, 1e300], "use weights that differ less"),
}


@for_each("name", NAMES)
@for_each("y, z, weight, message", NOT_ROWS.values(), labels=NOT_ROWS)
def test_rows_that_are_malformed_are_refused(name, y, z, weight, message):
    """NaN counted as a negative prediction, rows of weight NaN or below 0 were left out, one label stood for all rows."""
    for call in (get_measure(name).value, lambda *rows: best_threshold(rows[0], rows[1], name, rows[2])):
        with pytest.raises(ValueError, match=message):
            call(np.array(y), np.array(z), None if weight is None else np.array(weight))


@for_each("name", NAMES)
@for_each("place", [0, 1, 2])
def test_masked_arrays_are_refused(name, place):
    """NumPy gives the numbers below the mask."""
    rows = [np.array([1, -1, -1, 1]), np.array([0.5, 0.1, 0.7, 0.2]), np.array([1.0, 2.0, 1.0, 3.0])]
    rows[place] = np.ma.masked_array(rows[place], mask=[0, 1, 0, 0])
    with pytest.raises(ValueError, match="masked"):
        get_measure(name).value(*rows)
    with pytest.raises(ValueError, match="masked"):
        best_threshold(rows[0], rows[1], name, rows[2])


@for_each("name", ["roc_auc", "average_precision", "partial_roc_auc"])
def test_infinite_scores_cannot_be_ranked(name):
    with pytest.raises(ValueError, match="finite"):
        get_measure(name).value(np.array([1, -1]), np.array([np.inf, 0.0]))


def test_sums_of_weights_out_of_range_are_refused_where_size_matters():
    profit = CountMeasure(lambda tp, fp, fn, tn: 50.0 * tp - 2.0 * fp, name="profit")
    y, z = np.array([1, -1]), np.array([1.0, -1.0])
    for call in (profit.value, lambda *rows: best_threshold(rows[0], rows[1], profit, rows[2])):
        for size in (LARGEST, TINY):
            with pytest.raises(ValueError, match=r"sample_weight sums to .* expected between"):
                quiet_error(call, y, z, np.full(2, size))
    assert profit.value(y, z, np.full(2, 1e290)) == 50.0 * 1e290


def quiet_error(call, *arguments):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return call(*arguments)


def test_a_threshold_below_the_end_of_the_range_is_refused():
    """It was the lowest score itself, which it should have called positive."""
    y, z = np.array([1, -1]), np.array([-LARGEST, LARGEST])
    with pytest.raises(ValueError, match="divide the scores by 2"):
        quiet_error(best_threshold, y, z, "f1")
    assert quiet_error(best_threshold, y, z / 2, "f1").value == pytest.approx(2 / 3)
    with pytest.raises(ValueError, match="divide the scores by 2"):
        quiet_error(robust_threshold, y, z, get_measure("f1"))


def test_a_threshold_above_the_end_of_the_range_is_the_end():
    y, z = np.array([-1, 1]), np.array([LARGEST, -LARGEST])
    for tuned in (
        quiet_error(best_threshold, y, z, "accuracy"),
        quiet_error(robust_threshold, y, z, get_measure("accuracy")),
    ):
        assert tuned.threshold == LARGEST
        assert tuned.value == 0.5


def test_a_robust_threshold_has_the_value_of_the_unscaled_scores():
    """Scaled to at most 1, scores of 1e-320 compared with 1e300 are 0, and lie on another side of a threshold of 0."""
    y, z = np.array([1, -1, 1, -1]), np.array([1e-320, -1e-320, 1e300, -1e300])
    tuned = quiet_error(robust_threshold, y, z, get_measure("accuracy"))
    assert tuned.value == np.mean((z > tuned.threshold) == (y > 0))


def test_nothing_is_no_row():
    nothing = np.zeros(0)
    for name in NAMES:
        value = quiet(get_measure(name).value, nothing, nothing)
        assert np.isnan(value) or value == 0.0
        with pytest.raises(ValueError, match="at least one row"):
            quiet_error(best_threshold, nothing, nothing, name)


@examples(60)
@given(case=rows_of(most=30), size=st.sampled_from([1.0, 1e-300, 1e290]))
def test_sketches_of_few_scores_have_the_threshold_of_the_scores(case, size):
    y, z, _ = case
    weight = size * (1.0 + np.arange(len(z)) % 3)
    recent, sketch = RecentScores(), ScoreSketch()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        recent.add(y, z, weight)
        sketch.add(z, weight)
    assert recent.rank_error == sketch.rank_error == 0.0
    assert np.array_equal(np.sort(sketch.points()[0]), np.sort(z))
    found, expected = quiet(recent.best_threshold, get_measure("f1")), quiet(best_threshold, y, z, "f1", weight)
    if found is None or expected is None:  # both refuse scores at the ends of the range of floats
        assert found is expected
        return
    assert found.threshold == expected.threshold
    # The sketch adds up to 30 weights in another order, each with a rounding of 1.1e-16.
    assert found.value == pytest.approx(expected.value, rel=30 * 1.2e-16)


def test_a_stream_refuses_weights_out_of_range_and_keeps_its_scores():
    recent = RecentScores()
    recent.add(np.array([1, -1]), np.array([1.0, 0.0]), np.full(2, 1e299))
    with pytest.raises(ValueError, match="sample weights seen so far"):
        quiet_error(recent.add, np.array([1, -1]), np.array([1.0, 0.0]), np.full(2, LARGEST))
    assert recent.total == 2e299
    assert len(recent.generations) == 1
    assert recent.best_threshold(get_measure("f1")).value == 1.0


@pytest.mark.slow
def test_one_positive_among_a_million():
    rng = np.random.default_rng(0)
    n = 10**6
    z, y = rng.standard_normal(n), np.full(n, -1, dtype=np.int8)
    y[123] = 1
    z[123] = np.partition(z, -11)[-11] + 1e-12  # ten negatives lie above
    above = int(np.count_nonzero(z[y < 0] > z[123]))
    assert get_measure("roc_auc").value(y, z) == pytest.approx(1 - above / (n - 1), abs=4 * EPS)
    assert get_measure("average_precision").value(y, z) == pytest.approx(1 / (above + 1), abs=4 * EPS)
    for name, best in (("f1", 2 / (2 + above)), ("recall_at_precision", 0.0), ("tpr_at_fpr", 1.0)):
        tuned = best_threshold(y, z, name)
        assert tuned.value == pytest.approx(best, abs=4 * EPS)
        assert get_measure(name).value(y, z - tuned.threshold) == pytest.approx(tuned.value, abs=4 * EPS)


def test_there_is_a_second_formula_for_every_count_based_measure():
    assert set(FORMULAS) == set(COUNTS), "change FORMULAS in this file: see docs/extend.md"
