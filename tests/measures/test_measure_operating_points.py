"""Operating points: the chance to keep the constraint, confidence, and constraints that cannot be kept."""

import warnings

import numpy as np
import pytest

from cases import for_each
from scoreline import MeasureClassifier
from scoreline.measures import best_threshold, get_measure, robust_threshold

POINTS = {
    "recall_at_precision": ("precision", 0.8),
    "precision_at_recall": ("recall", 0.7),
    "tpr_at_fpr": ("fpr", 0.1),
}


def point(name, limit=None, confidence=None):
    key, usual = POINTS[name]
    return get_measure(name, {key: usual if limit is None else limit, "confidence": confidence})


def counts(name, successes, trials):
    """Return (tp, fp, fn, tn) in which the constrained rate is successes / trials."""
    misses = trials - successes
    return {
        "recall_at_precision": (successes, misses, 50.0, 900.0),
        "precision_at_recall": (successes, 40.0, misses, 900.0),
        "tpr_at_fpr": (50.0, misses, 20.0, successes),
    }[name]


def scores(seed=0, n=500, share=0.3, distance=1.5):
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(n) < share, 1, -1)
    return y, distance * (y > 0) + rng.standard_normal(n)


@for_each("name", list(POINTS))
def test_the_chance_is_that_of_a_second_sample(name):
    """The rate behind the first sample is unknown: drawn from what that sample says of it, then a second sample."""
    rng, measure, trials = np.random.default_rng(0), point(name), 400
    limit = 0.9 if name == "tpr_at_fpr" else POINTS[name][1]
    for deviations in (-2.0, -1.0, 0.0, 1.0, 2.0):
        successes = np.round(limit * trials + deviations * np.sqrt(limit * (1.0 - limit) * trials))
        rates = rng.beta(successes + 0.5, trials - successes + 0.5, 20000)
        frequency = np.mean(rng.binomial(trials, rates) >= limit * trials - 1e-9)
        # Counts are whole: half a count is 0.06 of the deviation of 8.5 and up to 0.025 of the chance; as much again for
        # the normal approximation and the draws.
        assert float(measure.chance(*counts(name, successes, trials))) == pytest.approx(frequency, abs=0.05)


@for_each("name", list(POINTS))
def test_the_chance_rises_with_successes_and_is_one_half_at_the_limit(name):
    measure, trials = point(name), 100.0
    successes = np.arange(50.0, 101.0)
    chances = measure.chance(*(np.broadcast_to(c, 51) for c in counts(name, successes, trials)))
    assert (np.diff(chances) > 0).all()
    limit = 0.9 if name == "tpr_at_fpr" else POINTS[name][1]
    # limit * trials carries the rounding of the limit, 1e-14, through a slope of 0.1.
    assert chances[round(100 * limit) - 50] == pytest.approx(0.5, abs=1e-13)


def test_the_chance_is_0_without_trials_and_certain_at_a_limit_of_1():
    nobody = np.zeros(1)
    assert point("recall_at_precision").chance(nobody, nobody, 5.0 + nobody, 7.0 + nobody) == 0.0
    strict = point("recall_at_precision", 1.0)
    tp, fp = np.array([10.0, 10.0]), np.array([0.0, 1.0])
    assert strict.chance(tp, fp, 3.0 + 0 * tp, 90.0 - fp).tolist() == [1.0, 0.0]


@for_each("name", list(POINTS))
def test_doubling_all_counts_makes_a_kept_constraint_safer(name):
    table = counts(name, 95.0, 100.0)
    measure = point(name)
    assert measure.is_met(*table)
    assert measure.chance(*(2.0 * c for c in table)) > measure.chance(*table)


@for_each("seed", range(5))
@for_each("find", [best_threshold, robust_threshold])
def test_higher_confidence_predicts_fewer_or_as_many_positives(find, seed):
    y, z = scores(seed)
    before = len(y)
    for confidence in (0.5, 0.6, 0.8, 0.9, 0.95, 0.99):
        found = find(y, z, point("recall_at_precision", 0.7, confidence))
        predicted = np.count_nonzero(z > found.threshold)
        assert 0 < predicted <= before
        before = predicted
    assert before < np.count_nonzero(z > find(y, z, point("recall_at_precision", 0.7, 0.5)).threshold)


@for_each("name", list(POINTS))
def test_confidence_is_kept_where_some_threshold_reaches_it(name):
    y, z = scores(1, n=2000, distance=2.0)
    for confidence in (0.6, 0.9, 0.99):
        measure = point(name, confidence=confidence)
        threshold = best_threshold(y, z, measure).threshold
        tp, fp = np.sum((z > threshold) & (y > 0)), np.sum((z > threshold) & (y < 0))
        at_threshold = tp, fp, np.sum(y > 0) - tp, np.sum(y < 0) - fp
        assert measure.chance(*at_threshold) >= confidence
        assert best_threshold(y, z, measure).value == measure.value(y, z - threshold) > 0.0


@for_each("name", list(POINTS))
def test_even_odds_are_the_plain_constraint_and_reports_ignore_confidence(name):
    y, z = scores(2)
    plain = point(name)
    assert best_threshold(y, z, point(name, confidence=0.5)) == best_threshold(y, z, plain)
    assert point(name, confidence=0.99).on_scores(y, z) == plain.on_scores(y, z) == best_threshold(y, z, plain).value
    assert point(name, confidence=0.99).value(y, z - 1.0) == plain.value(y, z - 1.0)


@for_each("name", list(POINTS))
def test_without_confidence_target_times_chance_is_maximised(name):
    y, z = scores(3)
    measure = point(name)
    tp = np.array([np.sum((z > t) & (y > 0)) for t in z], dtype=float)
    fp = np.array([np.sum((z > t) & (y < 0)) for t in z], dtype=float)
    at_rows = tp, fp, np.sum(y > 0) - tp, np.sum(y < 0) - fp
    np.testing.assert_array_equal(measure.robust_value(*at_rows), measure.target(*at_rows) * measure.chance(*at_rows))
    # The threshold looks at blurred counts and so misses what single rows make of the best: measured 1 to 6 % here.
    best = measure.robust_value(*at_rows).max()
    assert 0.9 * best < robust_threshold(y, z, measure).value <= best * (1.0 + 1e-12)


@for_each("name", list(POINTS))
@for_each("confidence", [0, -0.5, 1, 1.0, 95, np.nan, "high", True])
def test_bad_confidence_is_refused(name, confidence):
    with pytest.raises(ValueError, match=r"confidence=.* must be (below 1, or None|a finite number greater than 0)"):
        get_measure(name, {"confidence": confidence})
    with pytest.raises(ValueError, match="confidence="):
        MeasureClassifier(name, {"confidence": confidence}).fit(np.eye(4), [0, 1, 0, 1])


def hopeless():
    """Every score belongs to two negatives and a positive, but for the highest: one of each."""
    z = np.r_[np.repeat(np.arange(10.0), 3), 10.0, 10.0]
    y = np.r_[np.tile([1, -1, -1], 10), 1, -1]
    return y, z


@for_each("weighted", [False, True])
def test_a_constraint_out_of_reach_gets_the_closest_threshold(weighted):
    y, z = hopeless()
    measure = point("recall_at_precision", 0.6)
    tuned = best_threshold(y, z, measure, np.full(len(y), 2.0) if weighted else None)
    assert tuned == (9.5, 0.0)
    assert measure.value(y, z - tuned.threshold) == measure.on_scores(y, z) == 0.0
    feasible = best_threshold(y, z, point("recall_at_precision", 0.5))
    assert feasible == (9.5, 1.0 / 11.0)


def test_with_confidence_a_constraint_out_of_reach_gets_the_best_chance():
    y, z = hopeless()
    measure = point("recall_at_precision", 0.6, 0.9)
    levels = np.arange(-0.5, 10.0)
    tp = np.array([np.sum((z > t) & (y > 0)) for t in levels], dtype=float)
    fp = np.array([np.sum((z > t) & (y < 0)) for t in levels], dtype=float)
    best = levels[np.argmax(measure.chance(tp, fp, 11.0 - tp, 21.0 - fp))]
    assert best_threshold(y, z, measure) == (best, 0.0)


def test_unreached_names_the_constraint_and_the_best_rate():
    y, z = hopeless()
    assert point("recall_at_precision", 0.5).unreached(y, z) is None
    assert "with a chance of 0.9: the best has 0.5" in point("recall_at_precision", 0.5, 0.9).unreached(y, z)
    for confidence in (None, 0.9):
        message = point("recall_at_precision", 0.6, confidence).unreached(y, z)
        assert message == "no threshold keeps precision >= 0.6: the closest reaches 0.5"
    weight = np.where((z == 10.0) & (y > 0), 3.0, 1.0)
    assert point("recall_at_precision", 0.6).unreached(y, z, weight) is None
    assert "the closest reaches 0.75" in point("recall_at_precision", 0.8).unreached(y, z, weight)


@for_each("limit", [1e-9, 0.3, 1.0])
@for_each("name", ["precision_at_recall", "tpr_at_fpr"])
def test_recall_and_false_positive_rate_can_always_be_kept(name, limit):
    """Calling everything positive has recall 1, calling nothing positive no false positive."""
    y, z = hopeless()
    assert point(name, limit).unreached(y, z) is None
    assert best_threshold(y, z, point(name, limit)).value == point(name, limit).on_scores(y, z)


def twins():
    """Noise, and every row once with either label: no score has a precision above 1/2."""
    X = np.random.default_rng(4).standard_normal((100, 3))
    return np.r_[X, X], np.r_[np.ones(100, dtype=int), np.zeros(100, dtype=int)]


@for_each("rule", ["auto", "train", "holdout"])
def test_the_classifier_warns_of_a_constraint_out_of_reach(rule):
    X, y = twins()
    clf = MeasureClassifier("recall_at_precision", {"precision": 0.99}, threshold=rule, random_state=0)
    with pytest.warns(UserWarning, match=r"'recall_at_precision': no threshold keeps precision >= 0\.99"):
        clf.fit(X, y)
    assert clf.score(X, y) == 0.0
    with pytest.warns(UserWarning, match=r"precision >= 0\.99: the closest reaches 0\.5\."):
        clf.tune_threshold(X, y)
    with pytest.warns(UserWarning, match=r"precision >= 0\.7: the closest reaches 0\.5\."):
        clf.tune_threshold(X, y, "recall_at_precision", {"precision": 0.7})


def test_the_classifier_does_not_warn_where_the_constraint_is_kept():
    X, y = twins()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # That is the optimum here, unless rounding moves it a little.
        warnings.filterwarnings("ignore", "Degenerate fit: all rows have the same score")
        clf = MeasureClassifier("recall_at_precision", {"precision": 0.4}).fit(X, y)
        clf.tune_threshold(X, y).tune_threshold(X, y, "tpr_at_fpr", {"fpr": 0.01}).tune_threshold(
            X, y, "precision_at_recall"
        )
        MeasureClassifier("recall_at_precision", {"precision": 0.99}, threshold="none").fit(
            X, y
        )  # no threshold, nothing to miss


@pytest.mark.slow
@for_each(
    "name, limit, solver",
    [
        ("recall_at_precision", 0.7, "auto"),
        ("recall_at_precision", 0.7, "plugin"),
        ("precision_at_recall", 0.8, "plugin"),
        ("tpr_at_fpr", 0.1, "plugin"),
    ],
)
def test_the_default_threshold_keeps_the_constraint_more_often(name, limit, solver):
    def sample(rng, n=600):
        y = (rng.random(n) < 0.3).astype(int)
        return rng.standard_normal((n, 3)) + y[:, None] * np.array([1.2, 0.8, 0.0]), y

    met = {"auto": [], "train": []}
    for seed in range(30):
        rng = np.random.default_rng(seed)
        (X, y), (X_new, y_new) = sample(rng), sample(rng)
        for rule, outcomes in met.items():
            clf = MeasureClassifier(name, {POINTS[name][0]: limit}, threshold=rule, solver=solver).fit(X, y)
            outcomes.append(clf.score(X_new, y_new) > 0.0)
    # Measured 0.93 or more against 0.6 or less; the standard error of a share of 30 is at most 0.09.
    assert np.mean(met["auto"]) > np.mean(met["train"]) + 0.2


def test_limits_without_room_for_chance():
    free = get_measure("tpr_at_fpr", {"fpr": 1.0})
    assert free.chance(2.0, 5.0, 0.0, 0.0) == 1.0
    rng = np.random.default_rng(199)
    y = np.where(rng.random(300) < 0.3, 1, -1)
    z, w = y + rng.standard_normal(300), rng.uniform(0.1, 3, 300)
    full = get_measure("precision_at_recall", {"recall": 1.0})
    assert full.unreached(y, z, w) is None, "rounding of sums of weights must not break a limit of 1"
    assert best_threshold(y, z, full, w).value > 0.0


def test_a_confidence_out_of_reach_is_said():
    rng = np.random.default_rng(5)
    y = np.where(rng.random(60) < 0.5, 1, -1)
    z = y + 0.8 * rng.standard_normal(60)
    measure = get_measure("recall_at_precision", {"precision": 0.9, "confidence": 0.999})
    assert "with a chance of 0.999" in measure.unreached(y, z)
    assert get_measure("recall_at_precision", {"precision": 0.9}).unreached(y, z) is None


def test_the_warning_tells_the_threshold_that_predict_uses():
    rng = np.random.default_rng(6)
    half = rng.standard_normal((300, 3))
    X, y = np.vstack([half, half]), np.repeat([0, 1], 300)
    with pytest.warns(UserWarning, match="the closest reaches 0.5"):
        clf = MeasureClassifier("recall_at_precision", measure_params={"precision": 0.99}).fit(X, y)
    assert clf.predict(X).any()


def test_a_threshold_that_flags_nearly_nothing_is_explained():
    """Three of 1000 positives lie above all negatives; below, positives and negatives alternate."""
    y = np.concatenate([np.ones(3), np.tile([-1.0, 1.0], 997)])
    z = -np.arange(len(y), dtype=float)
    message = point("recall_at_precision", 0.9).scarce(y, z, None, -2.5)
    assert message.startswith(
        "the threshold that keeps precision >= 0.9 flags only 3 of 1,000 positives (recall 0.003)"
    )
    assert "at a recall of 0.1, the best possible is precision 0.5" in message
    assert "a false positive rate of 0.09" in point("tpr_at_fpr", 0.001).scarce(y, z, None, -2.5)
    assert point("recall_at_precision", 0.5).scarce(y, z, None, -100.0) is None
    assert point("recall_at_precision", 0.9).scarce(y[:20], z[:20], None, -2.5) is None  # 3 of few positives are enough
