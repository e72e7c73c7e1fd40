"""Every measure against scikit-learn or its literal formula, with weights and ties; every threshold against all thresholds."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics

from cases import for_each
from scoreline import CountMeasure, MeasureClassifier, MeasureClassifierCV
from scoreline.measures import AtKMeasure, all_measures, best_threshold, get_measure, get_scorer
from scoreline.measures.base import CountsBasedMeasure
from scoreline.report import ThresholdDisplay
from tiers import TIER, examples

COUNT_NAMES = [name for name, m in all_measures().items() if issubclass(m, CountsBasedMeasure)]


def rates(y, p, s):
    tpr = metrics.recall_score(y, p, sample_weight=s)
    return tpr, metrics.recall_score(1 - y, 1 - p, sample_weight=s)


def precision(y, p, s):
    return metrics.precision_score(y, p, sample_weight=s, zero_division=0)


REFERENCES = {
    "accuracy": lambda y, p, s: metrics.accuracy_score(y, p, sample_weight=s),
    "balanced_accuracy": lambda y, p, s: metrics.balanced_accuracy_score(y, p, sample_weight=s),
    "f1": lambda y, p, s: metrics.f1_score(y, p, sample_weight=s, zero_division=0),
    "fbeta": lambda y, p, s: metrics.fbeta_score(y, p, beta=1.0, sample_weight=s, zero_division=0),
    "jaccard": lambda y, p, s: metrics.jaccard_score(y, p, sample_weight=s, zero_division=0),
    "mcc": lambda y, p, s: metrics.matthews_corrcoef(y, p, sample_weight=s),
    "kappa": lambda y, p, s: metrics.cohen_kappa_score(y, p, sample_weight=s),
    "gmean": lambda y, p, s: np.sqrt(np.prod(rates(y, p, s))),
    "hmean": lambda y, p, s: 2 * np.prod(rates(y, p, s)) / sum(rates(y, p, s)) if sum(rates(y, p, s)) else 0.0,
    "qmean": lambda y, p, s: 1 - np.sqrt(np.mean((1 - np.array(rates(y, p, s))) ** 2)),
    "min_tpr_tnr": lambda y, p, s: min(rates(y, p, s)),
    "gower_legendre": lambda y, p, s: (a := REFERENCES["accuracy"](y, p, s)) / (a + 0.5 * (1 - a)),
    "recall_at_precision": lambda y, p, s: rates(y, p, s)[0] * (precision(y, p, s) >= 0.9),
    "precision_at_recall": lambda y, p, s: precision(y, p, s) * (rates(y, p, s)[0] >= 0.9),
    "tpr_at_fpr": lambda y, p, s: rates(y, p, s)[0] * (1 - rates(y, p, s)[1] <= 0.01),
    "recall_at_alarms": lambda y, p, s: rates(y, p, s)[0] * (np.average(p, weights=s) <= 0.01),
    "recall_at_cost": lambda y, p, s: rates(y, p, s)[0] * (np.average(p != y, weights=s) <= 0.1),
    "savings": lambda y, p, s: 1 - np.average(p != y, weights=s) / (a := np.average(y, weights=s), min(a, 1 - a))[1],
}


def problem(seed, n=60, levels=12):
    rng = np.random.default_rng(seed)
    y = np.r_[1, 0, rng.integers(0, 2, n - 2)]
    z = np.round(rng.standard_normal(n) + 0.8 * y, 1 if levels > 10 else 0)
    return y, z, rng.integers(1, 4, n).astype(float)


def test_there_is_a_reference_for_every_count_measure():
    assert set(REFERENCES) == set(COUNT_NAMES), "change REFERENCES in this file: see docs/extend.md"


@for_each("seed", range(2 if TIER == "quick" else 8))
@for_each("weighted", [False, True])
@for_each("name", COUNT_NAMES)
def test_count_measures(name, weighted, seed):
    y, z, s = problem(seed)
    weight = s if weighted else None
    for threshold in (-10.0, -0.5, 0.0, 0.45, 10.0):
        predicted = (z > threshold).astype(int)
        expected = REFERENCES[name](y, predicted, weight)
        # A handful of divisions and one root: a few units in the last place.
        assert get_measure(name).value(y, z - threshold, weight) == pytest.approx(expected, abs=1e-14)


@for_each("beta", [0.2, 0.5, 2.0, 7.0])
def test_fbeta_of_any_beta(beta):
    y, z, s = problem(1)
    expected = metrics.fbeta_score(y, z > 0, beta=beta, sample_weight=s)
    assert get_measure("fbeta", {"beta": beta}).value(y, z, s) == pytest.approx(expected, abs=1e-14)


@for_each("seed", range(5))
@for_each("weighted", [False, True])
def test_ranking_measures(weighted, seed):
    y, z, s = problem(seed)
    weight = s if weighted else None
    expected = metrics.average_precision_score(y, z, sample_weight=weight)
    assert get_measure("average_precision").value(y, z, weight) == pytest.approx(expected, abs=1e-14)
    for max_fpr in (0.05, 0.1, 0.6, 1.0):
        expected = metrics.roc_auc_score(y, z, sample_weight=weight, max_fpr=max_fpr)
        assert get_measure("partial_roc_auc", {"max_fpr": max_fpr}).value(y, z, weight) == pytest.approx(
            expected, abs=1e-14
        )


def top_share(y, z, k, orders=4000, seed=0):
    """Mean of the positives among the k highest over random orders of tied rows: what the tie rule promises."""
    rng = np.random.default_rng(seed)
    total = 0.0
    for _ in range(orders):
        order = np.lexsort([rng.random(len(z)), -z])
        total += y[order][:k].sum()
    return total / orders


@for_each("k", [1, 5, 17, 59])
def test_at_k_without_ties_counts_the_top(k):
    rng = np.random.default_rng(2)
    y, z = rng.integers(0, 2, 60), rng.standard_normal(60)
    top = y[np.argsort(-z)][:k].sum()
    assert get_measure("precision_at_k", {"k": k}).value(y, z) == pytest.approx(top / k, abs=1e-15)
    assert get_measure("recall_at_k", {"k": k}).value(y, z) == pytest.approx(top / y.sum(), abs=1e-15)


def test_at_k_with_ties_is_the_mean_over_their_orders():
    y, z, _ = problem(3, levels=5)
    for k in (3, 10, 25):
        # 4000 orders: a standard error below 0.02 rows of k.
        assert get_measure("precision_at_k", {"k": k}).value(y, z) * k == pytest.approx(top_share(y, z, k), abs=0.1)


def test_prbep_is_precision_at_n_positive_and_equals_recall():
    y, z, s = problem(4)
    for weight in (None, s):
        value = get_measure("prbep").value(y, z, weight)
        assert value == pytest.approx(get_measure("precision_at_k").value(y, z, weight), abs=1e-15)
        assert value == pytest.approx(get_measure("recall_at_k").value(y, z, weight), abs=1e-15)


def test_k_as_a_share_and_beyond_all_rows():
    y, z, _ = problem(5)
    assert get_measure("precision_at_k", {"k": 0.25}).value(y, z) == get_measure("precision_at_k", {"k": 15}).value(
        y, z
    )
    assert get_measure("recall_at_k", {"k": 1000}).value(y, z) == 1.0


@for_each("name", sorted(all_measures()))
def test_weights_are_repeats(name):
    y, z, s = problem(6)
    rows = np.repeat(np.arange(len(y)), s.astype(int))
    measure = get_measure(name)
    assert measure.value(y, z, s) == pytest.approx(measure.value(y[rows], z[rows]), abs=1e-13)


@for_each("name", sorted(all_measures()))
@examples(60)
@given(seed=st.integers(0, 10_000), n=st.integers(2, 40), digits=st.integers(0, 2), weighted=st.booleans())
def test_the_best_threshold_beats_every_other(name, seed, n, digits, weighted):
    rng = np.random.default_rng(seed)
    y = np.r_[1, 0, rng.integers(0, 2, n - 2)]
    z = np.round(rng.standard_normal(n), digits)
    s = rng.integers(0, 3, n).astype(float) if weighted else None
    if s is not None:
        s[:2] = 1.0
    measure = get_measure(name)
    tuned = best_threshold(y, z, measure, s)
    weight = np.ones(n) if s is None else s
    if isinstance(measure, AtKMeasure):
        # Not a choice: at least k rows lie above the threshold, and without the lowest level above it fewer.
        k = measure.weight_at_top(y, weight)
        above = z > tuned.threshold
        assert weight[above].sum() >= min(k, weight.sum())
        lowest = z[above & (weight > 0)].min()
        assert weight[z > lowest].sum() < k
        return
    levels = np.unique(z)
    candidates = np.r_[levels[0] - 1, (levels[1:] + levels[:-1]) / 2, levels[-1] + 1]

    def at(threshold):
        truth, predicted = y > 0, z > threshold
        counts = [
            weight[(truth == t) & (predicted == q)].sum()
            for t, q in ((True, True), (False, True), (True, False), (False, False))
        ]
        value_of = measure.threshold_objective if measure.uses_order else measure.from_counts
        return float(value_of(*(np.array([c]) for c in counts))[0])

    best = max(at(t) for t in candidates)
    assert tuned.value == pytest.approx(best, abs=1e-12)
    assert at(tuned.threshold) == pytest.approx(best, abs=1e-12)


def test_operating_points_say_the_best_reachable():
    y, z, _ = problem(7)
    measure = get_measure("recall_at_precision", {"precision": 0.8})
    best = max(measure.value(y, z - t) for t in np.r_[np.unique(z) - 0.05, 9.0])
    assert measure.on_scores(y, z) == pytest.approx(best, abs=1e-15)
    impossible = get_measure("recall_at_precision", {"precision": 1.0})
    assert impossible.on_scores(np.array([1, 0]), np.array([0.0, 1.0])) == 0.0
    assert "precision >= 0.8" in measure.constraint()


def test_count_measure_of_a_profit_matrix():
    profit = CountMeasure(lambda tp, fp, fn, tn: 50.0 * tp - 2.0 * fp, name="profit")
    rng = np.random.default_rng(8)
    X = rng.standard_normal((400, 3))
    y = (X[:, 0] + rng.standard_normal(400) > 1.5).astype(int)
    clf = MeasureClassifier(profit).fit(X, y)
    predicted = clf.predict(X)
    assert clf.score(X, y) == 50.0 * (y & predicted).sum() - 2.0 * ((1 - y) & predicted).sum()
    assert clf.score(X, y) > MeasureClassifier("accuracy").fit(X, y).score(X, y)
    assert get_scorer(profit)(clf, X, y) == clf.score(X, y)
    assert "profit" in repr(get_scorer(profit))


@for_each(
    "func, message",
    [
        (lambda tp, fp, fn: tp, "func failed on arrays"),
        (lambda tp, fp, fn, tn: 1.0 if tp > fp else 0.0, "vectorised"),
        (lambda tp, fp, fn, tn: tp.sum(), "returned shape"),
        (lambda tp, fp, fn, tn: tp * np.nan, "returned NaN"),
        ("f1", "must be a function"),
    ],
)
def test_count_measure_is_probed_at_construction(func, message):
    with pytest.raises(ValueError, match=message):
        CountMeasure(func, name="mine")


def odds_of_hits(tp, fp, fn, tn):
    """Use methods of arrays, divide by zero, and write to an argument: all of it is allowed."""
    fp += 0.0
    fp[:] = fp.clip(0.0, None)
    return tp.astype(np.float64) - np.minimum(1.0 / fp, 0.5) + 0.0 * (fn / tn).shape[0]


@pytest.mark.filterwarnings("error")
@for_each("rule", ["auto", "train", "holdout", "none"])
@for_each("solver", ["auto", "newton", "plugin"])
def test_count_measure_gets_arrays_everywhere(rule, solver):
    measure = CountMeasure(odds_of_hits, name="odds of hits")
    rng = np.random.default_rng(11)
    X = rng.standard_normal((300, 3))
    y = (X[:, 0] + 0.5 * rng.standard_normal(300) > 1.0).astype(int)
    clf = MeasureClassifier(measure, solver=solver, threshold=rule, risk="logistic").fit(X, y)
    tp, fp = np.sum(clf.predict(X) & y), np.sum(clf.predict(X) & (1 - y))
    assert clf.score(X, y) == pytest.approx(tp - (min(1.0 / fp, 0.5) if fp else 0.5))


@pytest.mark.filterwarnings("error::RuntimeWarning")
@for_each("func", [lambda tp, fp, fn, tn: 1.0 / fp, lambda tp, fp, fn, tn: np.log(tp) - np.log(fp)])
def test_count_measure_may_be_infinite_for_some_counts(func):
    measure = CountMeasure(func, name="infinite")
    rng = np.random.default_rng(12)
    X = rng.standard_normal((300, 3))
    y = (X[:, 0] + rng.standard_normal(300) > 1.0).astype(int)
    for rule in ("auto", "train", "holdout", "none"):
        MeasureClassifier(measure, threshold=rule).fit(X, y)
    clf = MeasureClassifierCV(measure, alphas=[1e-1, 1e-3]).fit(X, y)
    assert np.isfinite(clf.intercept_)
    display = ThresholdDisplay.from_estimator(clf, X, y).plot()
    assert np.isfinite(display.ax_.get_ylim()).all()


@pytest.mark.filterwarnings("error")
@for_each("shape", [(), (1,), (5,), (2, 3)])
def test_user_functions_of_counts_get_flat_float_arrays_of_their_own(shape):
    calls = []

    def recording(*counts):
        calls.append(counts)
        return counts[0] / counts[1] - 1.0 / counts[1]

    measure = CountMeasure(recording, name="noted")
    calls.clear()
    counts = [np.full(shape, k, dtype=int) for k in (1, 0, 3, 4)]
    value = measure.from_counts(*counts)
    assert value.shape == shape
    assert np.isnan(value).all()  # inf - inf
    for argument, own in zip(calls[0], counts, strict=True):
        assert argument.dtype == np.float64
        assert argument.shape == (own.size,)
        assert not np.shares_memory(argument, own)


@pytest.mark.filterwarnings("error")
def test_best_threshold_calls_a_function_like_a_count_measure():
    y, z = np.array([0, 0, 1, 0, 1, 1]), np.arange(6.0)
    assert (
        best_threshold(y, z, odds_of_hits).threshold
        == best_threshold(y, z, CountMeasure(odds_of_hits, "hits")).threshold
    )
    with pytest.raises(ValueError, match=r"returned shape \(\) for counts of shape \(7,\)"):
        best_threshold(y, z, lambda tp, fp, fn, tn: tp.sum())


@for_each(
    "name, params, message",
    [
        ("fbeta", {"beta": 0}, "beta=0"),
        ("gower_legendre", {"sigma": -1.0}, "sigma=-1.0"),
        ("partial_roc_auc", {"max_fpr": 1.5}, "at most 1"),
        ("precision_at_k", {"k": 0}, "k=0"),
        ("precision_at_k", {"k": 1.5}, "k=1.5"),
        ("recall_at_precision", {"precision": 1.2}, "at most 1"),
        ("tpr_at_fpr", {"fpr": "low"}, "fpr='low'"),
        ("fbeta", {"betta": 2.0}, r"takes \['beta'\]"),
    ],
)
def test_parameters_of_measures_are_checked(name, params, message):
    with pytest.raises(ValueError, match=message):
        get_measure(name, params)


@for_each("name", sorted(all_measures()))
def test_every_measure_can_be_trained(name):
    rng = np.random.default_rng(9)
    X = rng.standard_normal((300, 4))
    y = (X[:, 0] + 0.5 * rng.standard_normal(300) > 0.8).astype(int)
    clf = MeasureClassifier(name).fit(X, y)
    assert clf.status_ == "converged"
    low, high = get_measure(name).range
    assert low <= clf.score(X, y) <= high
    # The threshold on training scores is at least as good as predicting one class only.
    measure = get_measure(name)
    if not measure.uses_order:
        constant = max(measure.value(y, np.full(300, side)) for side in (-1.0, 1.0))
        assert clf.score(X, y) >= constant
