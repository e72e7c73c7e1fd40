"""partial_fit: what a stream of blocks learns row by row, what it keeps, and that nothing is lost where a block fails."""

import copy
import pickle
from itertools import product

import joblib
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.sparse.linalg import aslinearoperator
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from cases import fewer, for_each
from scoreline import MeasureClassifier, list_solvers
from scoreline.io import make_imbalanced
from scoreline.measures import best_threshold, get_measure, score_sketch
from scoreline.measures.score_sketch import RecentScores
from scoreline.solvers.common import row_state
from scoreline.solvers.common.row_method import RowMethod
from scoreline.solvers.registry import all_solvers

STREAMING = [name for name, solver in all_solvers().items() if solver.streams]
ROWS = [name for name in STREAMING if issubclass(all_solvers()[name], RowMethod)]
MEASURES = {info.name: info.measures for info in list_solvers() if info.name in STREAMING}
SOLVER = {measure: solver for solver in ROWS for measure in MEASURES[solver]}
FIRST = {name: "roc_auc" if name == "moments" else MEASURES[name][0] for name in STREAMING}

every_measure = for_each("measure", fewer(SOLVER, in_quick=["gmean", "f1", "gower_legendre"]))
one_of_each = for_each("measure", ["gmean", "f1"])
every_solver = for_each("solver", STREAMING)


def data(n=300, p=4, seed=0, share=0.3):
    rng = np.random.default_rng([seed, n, p])
    X = rng.standard_normal((n, p))
    s = X @ np.array([1.0, -0.7, 0.5, 0.2])[:p] + 0.6 * rng.standard_normal(n)
    y = (s > np.quantile(s, 1.0 - share)).astype(int)
    y[:2] = 1, 0
    return X, y


def classifier(measure, seed=0, **options):
    return MeasureClassifier(measure, solver=SOLVER[measure], random_state=seed, **options)


def streaming(solver, **options):
    return MeasureClassifier(FIRST[solver], solver=solver, random_state=0, **options)


def process_rows(clf, X, y, size=100, weight=None, **options):
    """Pass the rows in blocks."""
    for k in range(0, len(y), size):
        own = slice(k, k + size)
        clf.partial_fit(X[own], y[own], [0, 1], None if weight is None else weight[own], **options)
    return clf


def model(clf):
    return np.r_[clf.coef_[0], clf.trained_intercept_, clf.intercept_]


def assert_same(one, other):
    assert np.array_equal(model(one), model(other))


# ------------------------------------------------------------------------------------------------ seeds, blocks, storages


def test_the_registry_has_solvers_that_stream():
    assert {"moments", "spade", "stamp"} <= set(STREAMING)
    assert {"spade", "stamp"} == set(ROWS)
    assert len(SOLVER) >= 8


@every_measure
@for_each("step", ["adaptive", "paper"])
def test_a_seed_fixes_the_stream_and_another_changes_it(measure, step):
    X, y = data()
    seeds = (3, 3, np.random.RandomState(3), 4)
    one, same, again, other = (
        process_rows(classifier(measure, seed, solver_params={"step": step}), X, y) for seed in seeds
    )
    assert_same(one, same)
    assert_same(one, again)
    assert not np.array_equal(one.coef_, other.coef_)


@one_of_each
def test_the_seed_of_a_stream_is_drawn_once(measure):
    """Without a seed, too, a copy goes on as the original does; and a RandomState is not touched after the first block."""
    X, y = data()
    for seed in (None, np.random.RandomState(0)):
        one = classifier(measure, seed).partial_fit(X[:100], y[:100])
        state = None if seed is None else one.random_state.get_state()[1].copy()
        other = copy.deepcopy(one)
        assert_same(process_rows(one, X[100:], y[100:]), process_rows(other, X[100:], y[100:]))
        assert seed is None or np.array_equal(one.random_state.get_state()[1], state)
    changed = process_rows(classifier(measure, 1), X[:100], y[:100]).set_params(random_state=2)
    assert_same(process_rows(changed, X[100:], y[100:]), process_rows(classifier(measure, 1), X, y))


def orders_of(measure, monkeypatch, calls):
    """Return the rows of each kernel call, in the order that they were taken in."""
    orders, plain = [], RowMethod.process_rows

    def watched(self, rows, *others):
        orders.append(rows[5].astype(int).tolist())
        plain(self, rows, *others)

    monkeypatch.setattr(RowMethod, "process_rows", watched)
    clf = classifier(measure)
    for X, y in calls:
        clf.partial_fit(X, y, [0, 1])
    return orders


@one_of_each
def test_every_block_has_an_order_of_its_own(measure, monkeypatch):
    orders = orders_of(measure, monkeypatch, [data()] * 4)
    assert len({tuple(order) for order in orders}) == 4
    for order in orders:
        assert sorted(order) == list(range(300)), "every row once"
        assert order != sorted(order)


@one_of_each
def test_large_blocks_are_read_in_parts_in_random_order(measure, monkeypatch):
    monkeypatch.setattr(row_state, "BLOCK_ROWS", 30)
    monkeypatch.setattr(row_state, "BLOCK_BYTES", 8 * 4 * 30)
    orders = orders_of(measure, monkeypatch, [data()])
    assert [len(order) for order in orders] == [30] * 10
    starts = [min(order) for order in orders]
    assert sorted(starts) == list(range(0, 300, 30))
    assert starts != sorted(starts)


@every_measure
@for_each("options", [{}, {"step": "paper"}, "weights", "parts"])
def test_one_block_is_one_pass_of_fit_to_the_bit(measure, options, monkeypatch):
    """Same seeds, same updates; and as long as no score is compressed the same threshold."""
    X, y = data()
    weight = np.random.default_rng(1).integers(0, 4, len(y)).astype(float) if options == "weights" else None
    if options == "parts":
        monkeypatch.setattr(row_state, "BLOCK_ROWS", 30)
        monkeypatch.setattr(row_state, "BLOCK_BYTES", 8 * 4 * 30)
    params = options if isinstance(options, dict) else {}
    one = classifier(measure, solver_params=params).partial_fit(X, y, sample_weight=weight)
    fitted = classifier(measure, solver_params={**params, "passes": 1}).fit(X, y, sample_weight=weight)
    assert_same(one, fitted)
    assert one.n_passes_ == pytest.approx(fitted.n_passes_, rel=1e-12)  # a sum of shares
    assert one.objective(X, y, weight) == fitted.objective(X, y, weight)


@one_of_each
@for_each("step", fewer(["adaptive", "paper"], in_quick=["adaptive"]))
def test_storages_give_the_same_model(measure, step, tmp_path):
    X, y = data()
    X = X.astype(np.float32).astype(np.float64)
    X[np.abs(X) < 0.3] = 0.0
    mapped = np.memmap(tmp_path / "X", dtype=np.float64, mode="w+", shape=X.shape)
    mapped[...] = X
    stored = [np.asfortranarray(X), X.astype(np.float32), sp.csr_array(X), sp.csr_matrix(X), mapped]
    stored += [np.repeat(X, 2, axis=1)[:, ::2], X[:, ::-1][:, ::-1], sp.csr_array(X.astype(np.float32))]
    options = {"solver_params": {"step": step}}
    expected = process_rows(classifier(measure, **options), X, y)
    for other in stored:
        # Sums of 5 products, some hundred updates: 1e-9 is a million roundings.
        np.testing.assert_allclose(
            model(process_rows(classifier(measure, **options), other, y)), model(expected), rtol=1e-9, atol=1e-9
        )
    mixed = classifier(measure, **options)
    for k, block in enumerate((X, stored[2], mapped)):
        mixed.partial_fit(block[100 * k : 100 * k + 100], y[100 * k : 100 * k + 100])
    np.testing.assert_allclose(model(mixed), model(expected), rtol=1e-9, atol=1e-9)


@for_each(
    "measure, size",
    fewer([*product(SOLVER, (7, 1000)), ("gmean", 1), ("f1", 1)], in_quick=[("gmean", 7), ("f1", 1000)]),
)
def test_blocks_of_any_size_learn_about_the_same(measure, size):
    X, y = data(400)
    clf = process_rows(classifier(measure), X, y, size)
    fitted = classifier(measure, solver_params={"passes": 1}).fit(X, y)
    blocks = -(-400 // size)
    assert clf._stream.blocks == clf.n_iter_ == blocks
    assert clf.n_passes_ == pytest.approx(3.0 * blocks, rel=1e-12)  # a sum of shares
    # The threshold is that of 60 positives, each with the score of another model: two standard errors of a rate of 0.8 are 0.1.
    assert clf.score(X, y) >= fitted.score(X, y) - 0.12


@pytest.mark.slow
@every_measure
def test_a_stream_is_as_good_as_a_pass_over_all_rows(measure):
    """The mean of three streams: the worse of two rates, cut at the scores of 500 positives, has a standard error of 0.01."""
    below_fit, below_tuned = [], []
    for seed in range(3):
        X, y = data(20000, seed=seed, share=0.05)
        clf = process_rows(classifier(measure, seed), X, y, 1000)
        fitted = classifier(measure, seed, solver_params={"passes": 1}).fit(X, y)
        below_fit.append(fitted.score(X, y) - clf.score(X, y))
        below_tuned.append(copy.deepcopy(clf).tune_threshold(X, y).score(X, y) - clf.score(X, y))
        assert 0.0 < clf.threshold_rank_error_ < 0.001
    assert abs(np.mean(below_fit)) <= 0.02
    assert np.mean(below_tuned) <= 0.02
    assert min(below_tuned) >= -1e-12  # the best threshold of these rows; counts


@for_each("measure", MEASURES["stamp"])
def test_a_stream_of_stamp_weighs_rows_by_the_level_unless_told(measure):
    """weights="auto" has no second chance in a stream; Gower-Legendre has no level."""
    X, y = data()
    auto, level, equal = (
        process_rows(classifier(measure, solver_params={"weights": weights}), X, y)
        for weights in ("auto", "level", "equal")
    )
    assert_same(auto, level)
    assert np.array_equal(auto.coef_, equal.coef_) == (measure == "gower_legendre")


@pytest.mark.slow
def test_outliers_do_not_decide_what_a_stream_learns():
    """Features with heavy tails: units that follow the largest entries would make the steps of all rows jump."""
    X, y = make_imbalanced(n_samples=60_000, random_state=0)
    clf = process_rows(classifier("gmean"), X[:40_000], y[:40_000], 5000)
    best = MeasureClassifier("gmean").fit(X[:40_000], y[:40_000]).score(X[40_000:], y[40_000:])
    assert clf.score(X[40_000:], y[40_000:]) >= best - 0.05  # 200 positives: a standard error of 0.03


@every_measure
@for_each("alpha", [2.0, 2e2, 2e6])
def test_coefficients_stay_in_the_ball(measure, alpha):
    X, y = data()
    clf = process_rows(classifier(measure, alpha=alpha), X, y, len(y))  # one block: units change between blocks
    length = np.hypot(np.linalg.norm(np.sqrt((X**2).mean(axis=0)) * clf.coef_), clf.trained_intercept_)
    assert length <= np.sqrt(2.0 / alpha) * (1 + 1e-9)  # a mean of iterates in the ball, roundings of its sum
    assert_same(process_rows(classifier(measure, alpha=alpha), X, y, len(y)), clf)


# ------------------------------------------------------------------------------------------------ the threshold


def scores_in_sketch(clf, blocks):
    """Return the last of the blocks of (sign, scores) that the stream holds, joined."""
    weight, found = sum(sketch.weight for pair in clf._stream.scores.generations for sketch in pair), []
    while weight > 0.0:
        found.append(blocks[-1 - len(found)])
        weight -= len(found[-1][0])
    assert weight == 0.0
    return tuple(np.concatenate(column) for column in zip(*found, strict=True))


@every_measure
def test_the_threshold_is_the_best_for_the_recent_scores(measure):
    X, y = data(1000)
    clf, blocks, totals = classifier(measure), [], []
    for k in range(0, 1000, 50):
        own = slice(k, k + 50)
        clf.partial_fit(X[own], y[own])
        blocks.append((np.where(y[own] == 1, 1, -1), X[own] @ clf.coef_[0] + clf.trained_intercept_))
        sign, scores = scores_in_sketch(clf, blocks)
        totals.append(len(sign))
        expected = best_threshold(sign, scores, get_measure(measure)).threshold
        # Scores are products of 4 coefficients here and in the classifier: some roundings of numbers of size 1.
        assert clf.trained_intercept_ - clf.intercept_[0] == pytest.approx(expected, abs=1e-12)
        assert clf.threshold_rank_error_ == 0.0
    assert 500 <= totals[-1] <= 612.5  # half, a sixteenth and a block at most


@one_of_each
def test_a_compressed_threshold_says_how_far_off_it_may_be(measure, monkeypatch):
    X, y = data(3000)
    exact = process_rows(classifier(measure), X, y)
    monkeypatch.setattr(score_sketch, "SIZE", 16)
    clf = process_rows(classifier(measure), X, y)
    assert np.array_equal(clf.coef_, exact.coef_)
    assert exact.threshold_rank_error_ == 0.0
    assert clf.threshold_rank_error_ == clf._stream.scores.rank_error > 0.0
    assert 0.5 / 16 * 0.5 < clf.threshold_rank_error_ < 0.5 / 16 * (1 + np.log2(3000 / 16))
    assert clf.score(X, y) == pytest.approx(exact.score(X, y), abs=0.1)  # 16 points: a few percent of rank


@one_of_each
def test_no_threshold_keeps_the_trained_intercept(measure):
    X, y = data()
    tuned = process_rows(classifier(measure), X, y)
    untuned = process_rows(classifier(measure, threshold="none"), X, y)
    assert untuned.intercept_[0] == untuned.trained_intercept_ == tuned.trained_intercept_ != tuned.intercept_[0]
    assert np.array_equal(untuned.coef_, tuned.coef_)
    assert_same(process_rows(classifier(measure, threshold="train"), X, y), tuned)


@one_of_each
def test_the_threshold_may_be_asked_for_later(measure):
    """The scores are kept with threshold="none" too."""
    X, y = data()
    clf = process_rows(classifier(measure, threshold="none"), X[:200], y[:200]).set_params(threshold="auto")
    assert_same(process_rows(clf, X[200:], y[200:]), process_rows(classifier(measure), X, y))


@one_of_each
def test_a_tuned_threshold_holds_until_the_next_block(measure):
    X, y = data()
    clf = process_rows(classifier(measure), X[:200], y[:200])
    before = clf.intercept_.copy()
    clf.tune_threshold(X, y, "accuracy")
    assert clf.intercept_ != before
    assert_same(process_rows(clf, X[200:], y[200:]), process_rows(classifier(measure), X, y))


@one_of_each
def test_without_an_intercept_only_the_threshold_sets_one(measure):
    X, y = data()
    clf = process_rows(classifier(measure, fit_intercept=False), X, y)
    assert clf.trained_intercept_ == 0.0
    assert clf.intercept_[0] != 0.0
    assert_same(clf, process_rows(classifier(measure, fit_intercept=False, intercept_scaling=5.0), X, y))


@one_of_each
def test_a_class_that_came_early_only_is_not_forgotten(measure):
    X, y = data(2000)
    rows = np.r_[np.flatnonzero(y == 1)[:50], np.flatnonzero(y == 0)]
    clf = process_rows(classifier(measure), X[rows], y[rows], 50)
    assert sum(pair[1].weight for pair in clf._stream.scores.generations) == 50.0
    assert np.isfinite(model(clf)).all()


# ------------------------------------------------------------------------------------------------ weights


@every_measure
def test_rows_of_weight_zero_have_no_influence(measure):
    X, y = data()
    weight = np.ones(len(y))
    weight[5::4] = 0.0
    changed, flipped = X.copy(), y.copy()
    changed[5::4] *= -50.0
    flipped[5::4] = 1 - flipped[5::4]
    assert_same(
        process_rows(classifier(measure), X, y, weight=weight),
        process_rows(classifier(measure), changed, flipped, weight=weight),
    )


@every_solver
def test_a_class_of_weight_zero_has_not_been_seen(solver):
    X, y = data()
    clf = streaming(solver).partial_fit(X, y, sample_weight=(y == 0) * 1.0)
    assert not hasattr(clf, "coef_")
    assert hasattr(clf.partial_fit(X, y), "coef_")


@pytest.mark.slow
@one_of_each
@for_each("step", ["adaptive", "paper"])
def test_integer_weights_are_nearly_copies(measure, step):
    X, y = data(2000)
    weight, options = np.random.default_rng(1).integers(0, 4, len(y)), {"solver_params": {"step": step}}
    weighted = process_rows(classifier(measure, **options), X, y, weight=weight)
    copies = process_rows(classifier(measure, **options), np.repeat(X, weight, axis=0), np.repeat(y, weight), 150)
    cosine = np.vdot(weighted.coef_, copies.coef_) / np.linalg.norm(weighted.coef_) / np.linalg.norm(copies.coef_)
    # One long step is not several short ones: only what they lead to is alike.
    assert cosine > 0.98
    assert weighted.score(X, y, weight) == pytest.approx(copies.score(X, y, weight), abs=0.03)
    weights = [sum(s.weight for pair in clf._stream.scores.generations for s in pair) for clf in (weighted, copies)]
    assert min(weights) >= 0.5 * weight.sum()
    assert max(weights) <= 0.5625 * weight.sum() + 300  # a sixteenth and a block more


@one_of_each
def test_weights_of_one_are_no_weights(measure):
    X, y = data()
    assert_same(
        process_rows(classifier(measure), X, y), process_rows(classifier(measure), X, y, weight=np.ones(len(y)))
    )


@every_measure
@for_each("weighted", [False, True])
def test_class_weights_are_sample_weights_of_the_same_numbers(measure, weighted):
    X, y = data()
    weight = np.random.default_rng(2).integers(0, 3, len(y)) * 1.0 if weighted else np.ones(len(y))
    clf = process_rows(classifier(measure, class_weight={0: 0.5, 1: 3.0}), X, y, weight=weight)
    assert_same(clf, process_rows(classifier(measure), X, y, weight=weight * np.where(y == 1, 3.0, 0.5)))
    assert not np.array_equal(clf.coef_, process_rows(classifier(measure), X, y, weight=weight).coef_)
    one_named = process_rows(classifier(measure, class_weight={1: 3.0}), X, y, weight=weight)
    assert_same(one_named, process_rows(classifier(measure), X, y, weight=weight * np.where(y == 1, 3.0, 1.0)))
    assert clf._stream.class_totals == (weight[y == 1].sum(), weight[y == 0].sum()), (
        "numbers of rows, not what they weigh"
    )


# ------------------------------------------------------------------------------------------------ classes and features


@every_solver
def test_there_is_no_model_until_both_classes_were_seen(solver):
    X, y = data()
    clf = streaming(solver)
    with pytest.raises(ValueError, match="one class only"):
        clf.partial_fit(X[y == 0], y[y == 0])
    assert clf.partial_fit(X[y == 0][:50], y[y == 0][:50], classes=[1, 0]) is clf
    clf.partial_fit(X[y == 0][50:], y[y == 0][50:])
    assert clf.classes_.tolist() == [0, 1]
    assert not hasattr(clf, "coef_")
    for call in (clf.predict, clf.decision_function, lambda X: clf.score(X, y), lambda X: clf.tune_threshold(X, y)):
        with pytest.raises(NotFittedError):
            call(X)
    clf.partial_fit(X[y == 1], y[y == 1])
    assert clf.predict(X).shape == y.shape


@one_of_each
def test_rows_of_one_class_are_learnt_from_all_the_same(measure):
    """With the other class they give a model that knows them: order within a block is all that they lose."""
    X, y = data(2000)
    rows = np.argsort(y[:200], kind="stable")
    clf = process_rows(classifier(measure), X[rows], y[rows], 50)
    assert sum(clf._stream.class_totals) == 200.0
    clf = process_rows(clf, X[200:], y[200:])
    fitted = classifier(measure, solver_params={"passes": 1}).fit(X, y)
    assert clf.score(X, y) >= fitted.score(X, y) - 0.03  # 600 positives: a standard error of a rate is 0.02


@every_solver
def test_the_first_block_of_one_class_after_a_fit_leaves_no_model(solver):
    X, y = data()
    clf = streaming(solver).fit(X, y)
    clf.partial_fit(X[y == 0], y[y == 0], classes=[0, 1])
    assert not hasattr(clf, "coef_")


@for_each("solver", ROWS)
@for_each("labels", [np.array(["no", "yes"]), np.array([False, True]), np.array([-1.0, 1.0])])
def test_labels_of_other_kinds(solver, labels):
    X, y = data()
    clf = streaming(solver)
    for rows in (slice(100), slice(100, 300)):
        clf.partial_fit(X[rows], labels[y[rows]], classes=labels)
    expected = streaming(solver).partial_fit(X[:100], y[:100]).partial_fit(X[100:], y[100:])
    assert_same(clf, expected)
    assert np.array_equal(clf.predict(X), labels[expected.predict(X)])


@every_solver
def test_other_classes_and_features_are_refused(solver):
    X, y = data()
    clf = streaming(solver).partial_fit(X[:100], y[:100])
    for block, options, match in (
        ((X, y), {"classes": [0, 2]}, r"differ from those of the first block: \[0, 1\]"),
        ((X, y), {"classes": [0, 1, 2]}, "binary"),
        ((X, y + 1), {}, "expected the classes of the fit"),
        ((X[:, :3], y), {}, "features"),
        ((X, y[:-1]), {}, "labels"),
        ((X, y), {"sample_weight": np.ones(5)}, "sample_weight"),
    ):
        with pytest.raises(ValueError, match=match):
            clf.partial_fit(*block, **options)
    with pytest.raises(ValueError, match="expected the classes of the fit"):
        streaming(solver).partial_fit(X, y, classes=[1, 2])


@every_solver
def test_names_of_features_are_those_of_the_first_block(solver):
    X, y = data()
    frame = pd.DataFrame(X, columns=list("abcd"))
    clf = streaming(solver).partial_fit(frame[:100], y[:100])
    assert clf.feature_names_in_.tolist() == list("abcd")
    with pytest.raises(ValueError, match="feature names"):
        clf.partial_fit(frame.rename(columns={"d": "e"}), y)
    with pytest.raises(ValueError, match="feature names"):
        clf.partial_fit(frame[list("bacd")], y)
    clf.partial_fit(frame[100:], y[100:])
    # A frame lies column by column, and sums of products may be in another order: as in the test of storages.
    expected = model(streaming(solver).partial_fit(X[:100], y[:100]).partial_fit(X[100:], y[100:]))
    np.testing.assert_allclose(model(clf), expected, rtol=1e-9, atol=1e-9)


# ------------------------------------------------------------------------------------------------ what fails changes nothing

X_BAD, Y_BAD = data(60, seed=9)
BAD = {
    "NaN": (np.where(np.arange(60)[:, None] == 40, np.nan, X_BAD), Y_BAD, {}),
    "infinity": (np.where(np.arange(60)[:, None] == 40, np.inf, X_BAD), Y_BAD, {}),
    "sparse NaN": (sp.csr_array(np.where(np.arange(60)[:, None] == 40, np.nan, X_BAD)), Y_BAD, {}),
    "huge entry": (np.where(np.arange(240).reshape(60, 4) == 42, 1e155, X_BAD), Y_BAD, {}),  # NaN while training
    "overflow": (1e200 * X_BAD, Y_BAD, {}),
    "labels": (X_BAD, Y_BAD + 7, {}),
    "length": (X_BAD, Y_BAD[:-1], {}),
    "no labels": (X_BAD, None, {}),
    "columns": (X_BAD[:, :3], Y_BAD, {}),
    "names": (pd.DataFrame(X_BAD[:, :3], columns=list("abc")), Y_BAD, {}),
    "classes": (X_BAD, Y_BAD, {"classes": [0, 2]}),
    "weights": (X_BAD, Y_BAD, {"sample_weight": np.full(60, np.nan)}),
    "negative weights": (X_BAD, Y_BAD, {"sample_weight": -np.ones(60)}),
    "no weight": (X_BAD, Y_BAD, {"sample_weight": np.zeros(60)}),
}


def cases(faults):
    """Return all pairs of a solver that streams and a fault of a block."""
    return [(solver, fault) for solver in STREAMING for fault in faults]


@pytest.mark.filterwarnings("ignore:X has feature names")
@for_each(("solver", "fault"), cases(BAD))
def test_a_block_that_fails_leaves_the_stream_as_it_was(solver, fault):
    X, y = data()
    clf, other = (process_rows(streaming(solver), X[:200], y[:200]) for _ in range(2))
    bad, labels, options = BAD[fault]
    before = joblib.hash(clf.__dict__)
    with pytest.raises(ValueError):  # noqa: PT011 - messages are tested elsewhere
        clf.partial_fit(bad, labels, **options)
    assert joblib.hash(clf.__dict__) == before
    assert_same(process_rows(clf, X[200:], y[200:]), process_rows(other, X[200:], y[200:]))


# These are no faults of a first block.
FIRST_FAULTS = [fault for fault in BAD if fault not in ("labels", "columns", "names")]


@for_each(("solver", "fault"), cases(FIRST_FAULTS))
def test_a_first_block_that_fails_leaves_an_earlier_fit_as_it_was(solver, fault):
    X, y = data()
    clf = streaming(solver).fit(X, y)
    bad, labels, options = BAD[fault]
    before = joblib.hash(clf.__dict__)
    with pytest.raises(ValueError):  # noqa: PT011 - messages are tested elsewhere
        clf.partial_fit(bad, labels, **options)
    assert joblib.hash(clf.__dict__) == before


@every_solver
@for_each("fault", ["NaN", "labels", "weights"])
def test_a_bad_first_block_of_other_features_leaves_an_earlier_fit_alone(solver, fault):
    X, y = data()
    bad, labels, options = BAD[fault]
    options = {"classes": [0, 1], **options}
    names = list("abcd")
    for given, other in (
        (X, bad[:, :3]),
        (X, pd.DataFrame(bad, columns=names)),
        (pd.DataFrame(X, columns=names), bad),
        (pd.DataFrame(X, columns=names), pd.DataFrame(bad, columns=names[::-1])),
    ):
        clf = streaming(solver).fit(given, y)
        before, predicted = joblib.hash(clf.__dict__), clf.predict(given)
        with pytest.raises(ValueError):  # noqa: PT011 - messages are tested elsewhere
            clf.partial_fit(other, labels, **options)
        assert joblib.hash(clf.__dict__) == before
        assert np.array_equal(clf.predict(given), predicted)


@for_each("solver", ROWS)
@for_each("fault", ["NaN", "labels"])
def test_a_bad_block_for_moments_leaves_the_stream_of_rows_alone(solver, fault):
    """With the other solver it is a first block, which may have other columns."""
    X, y = data()
    clf = process_rows(streaming(solver), X[:200], y[:200])
    before = joblib.hash(clf.__dict__)
    bad, labels, _ = BAD[fault]
    with pytest.raises(ValueError, match=r"NaN|expected the classes"):
        clf.set_params(solver="moments", measure="roc_auc").partial_fit(bad[:, :3], labels, [0, 1])
    clf.set_params(solver=solver, measure=FIRST[solver])
    assert joblib.hash(clf.__dict__) == before
    assert_same(process_rows(clf, X[200:], y[200:]), process_rows(streaming(solver), X, y))


@for_each("solver", ROWS)
def test_an_option_refused_at_the_first_block_leaves_a_fit_alone(solver):
    X, y = data()
    clf = streaming(solver).fit(X, y)
    with pytest.raises(ValueError, match="needs all rows at once"):
        clf.set_params(scaling="standard").partial_fit(X[:, :3], y)
    assert clf.n_features_in_ == 4
    assert clf.predict(X).shape == y.shape


@for_each("solver", ROWS)
@for_each("size", [1e155, 1e200, 1e300])
def test_good_blocks_are_taken_in_after_one_that_overflows(solver, size):
    X, y = data()
    clf = process_rows(streaming(solver), X[:200], y[:200])
    with pytest.raises(ValueError, match="range of floats"):
        clf.partial_fit(size * X_BAD, Y_BAD)
    assert_same(process_rows(clf, X[200:], y[200:]), process_rows(streaming(solver), X, y))


def interrupted(self, *arguments, **options):
    raise KeyboardInterrupt


PLACES = [
    (RowMethod, "process_block"),
    (RowMethod, "process_rows"),
    (RecentScores, "add"),
    (RecentScores, "best_threshold"),
]


@one_of_each
@for_each(("owner", "name"), PLACES)
@for_each("blocks", [0, 2])
def test_an_interrupt_leaves_all_as_it_was(measure, owner, name, blocks, monkeypatch):
    X, y = data()
    start, rest = slice(100 * blocks), slice(100 * blocks, None)
    clf = process_rows(classifier(measure), X[start], y[start])
    before = joblib.hash(clf.__dict__)
    with monkeypatch.context() as patch:
        patch.setattr(owner, name, interrupted)
        with pytest.raises(KeyboardInterrupt):
            clf.partial_fit(X[rest], y[rest])
    if blocks:
        assert joblib.hash(clf.__dict__) == before
    else:
        assert not hasattr(clf, "coef_")
    assert_same(process_rows(clf, X[rest], y[rest]), process_rows(classifier(measure), X, y))


@one_of_each
def test_an_interrupt_halfway_through_a_block_leaves_all_as_it_was(measure, monkeypatch):
    """The state has been changed by then: by the rows of one of ten parts, or by all rows, before the scores."""
    X, y = data()
    clf = process_rows(classifier(measure), X[:200], y[:200])
    before, plain, calls = joblib.hash(clf.__dict__), RowMethod.process_rows, []

    def second_part_fails(self, *arguments):
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        plain(self, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(row_state, "BLOCK_ROWS", 10)
        patch.setattr(row_state, "BLOCK_BYTES", 8 * 4 * 10)
        patch.setattr(RowMethod, "process_rows", second_part_fails)
        with pytest.raises(KeyboardInterrupt):
            clf.partial_fit(X[200:], y[200:])
    assert len(calls) == 2
    assert joblib.hash(clf.__dict__) == before
    assert_same(process_rows(clf, X[200:], y[200:]), process_rows(classifier(measure), X, y))


@one_of_each
def test_an_interrupted_first_block_leaves_an_earlier_fit_as_it_was(measure, monkeypatch):
    X, y = data()
    clf = classifier(measure).fit(X, y)
    before = joblib.hash(clf.__dict__)
    monkeypatch.setattr(RecentScores, "add", interrupted)
    with pytest.raises(KeyboardInterrupt):
        clf.partial_fit(X[:, :3], y)
    assert joblib.hash(clf.__dict__) == before


# ------------------------------------------------------------------------------------------------ begin, go on, end


@every_solver
def test_fit_forgets_the_stream_and_partial_fit_begins_again(solver):
    X, y = data()
    clf = process_rows(streaming(solver), -X, y)
    assert_same(clf.fit(X, y), streaming(solver).fit(X, y))
    again = clf.partial_fit(X[:200], y[:200])
    assert_same(again, streaming(solver).partial_fit(X[:200], y[:200]))
    assert again.n_passes_ == streaming(solver).partial_fit(X[:200], y[:200]).n_passes_


@for_each("solver", ROWS)
def test_any_fit_ends_the_stream(solver):
    X, y = data()
    for other in ("lbfgs", "cost_search", solver):
        clf = process_rows(streaming(solver), -X, y)
        assert clf.threshold_rank_error_ == 0.0
        clf.set_params(solver=other).fit(X, y)
        assert not hasattr(clf, "threshold_rank_error_")
        clf.set_params(solver=solver)
        assert_same(process_rows(clf, X, y), process_rows(streaming(solver), X, y))


@every_solver
def test_a_fit_that_fails_does_not_end_the_stream(solver):
    X, y = data()
    clf = process_rows(streaming(solver), X[:200], y[:200])
    before = joblib.hash(clf.__dict__)
    with pytest.raises(ValueError, match=r"NaN|finite"):
        clf.fit(X * np.nan, y)
    assert joblib.hash(clf.__dict__) == before
    assert_same(process_rows(clf, X[200:], y[200:]), process_rows(streaming(solver), X, y))


CHANGES = [
    ("gmean", {"measure": "hmean"}),
    ("f1", {"measure": "fbeta"}),
    ("fbeta", {"measure_params": {"beta": 2.0}}),
    ("gower_legendre", {"measure_params": {"sigma": 2.0}}),
    ("gmean", {"solver": "stamp", "measure": "f1"}),
    ("f1", {"solver": "spade", "measure": "gmean"}),
    ("gmean", {"solver_params": {"step": "paper"}}),
    ("f1", {"solver_params": {"step": "paper"}}),
    ("gmean", {"fit_intercept": False}),
    ("f1", {"intercept_scaling": 10.0}),
    ("f1", {"solver_params": {"weights": "equal"}}),
    ("f1", {"solver_params": {"first_epoch": 7}}),
]


@for_each(("measure", "change"), CHANGES)
def test_what_is_learnt_cannot_change_halfway(measure, change):
    X, y = data()
    clf = process_rows(classifier(measure), X[:200], y[:200])
    before, own = joblib.hash(clf.__dict__), {name: clf.get_params()[name] for name in change}
    with pytest.raises(
        ValueError, match=r"the stream began with .* and this is .*: use another classifier, or fit"
    ) as error:
        clf.set_params(**change).partial_fit(X[200:], y[200:])
    began, now = str(error.value).split("and this is")
    assert measure in began
    for value in change.values():
        for name in value if isinstance(value, dict) else [value] if isinstance(value, str) else []:
            assert repr(name) in now
    assert_same(clf, process_rows(classifier(measure), X[:200], y[:200]))
    clf.set_params(**own)
    assert joblib.hash(clf.__dict__) == before
    assert_same(process_rows(clf, X[200:], y[200:]), process_rows(classifier(measure), X, y))
    clf.set_params(**change).fit(X, y)  # the way out
    assert hasattr(clf.partial_fit(X, y), "coef_")


@one_of_each
def test_what_may_change_halfway(measure):
    """The ball, the weights of the classes and the threshold are no part of what has been learnt."""
    X, y = data()
    clf = process_rows(classifier(measure), X[:200], y[:200])
    clf.set_params(alpha=1e-2, class_weight={1: 2.0}, threshold="none", n_jobs=1, max_iter=3)
    process_rows(clf, X[200:], y[200:])
    assert clf.n_iter_ == 3


@one_of_each
def test_another_kind_of_stream_begins_again(measure):
    X, y = data()
    rows = {"solver": SOLVER[measure], "measure": measure}
    clf = process_rows(classifier(measure), -X[:, :3], y)
    clf.set_params(solver="moments", measure="roc_auc").partial_fit(X, y)
    fresh = MeasureClassifier("roc_auc", solver="moments").partial_fit(X, y)
    assert_same(clf, fresh)
    assert clf.n_passes_ == fresh.n_passes_
    assert not hasattr(clf, "threshold_rank_error_")
    assert_same(process_rows(clf.set_params(**rows), X, y), process_rows(classifier(measure), X, y))
    assert not hasattr(clf, "moments_report_")
    with pytest.raises(ValueError, match="this classifier has none"):
        clf.set_params(solver="moments", measure="roc_auc").merge(fresh)


@every_measure
@for_each("blocks", [1, 2])
def test_a_stream_can_be_saved_and_copied(measure, blocks, monkeypatch):
    monkeypatch.setattr(score_sketch, "SIZE", 16)  # so that sketches have parts
    X, y = data()
    clf = process_rows(classifier(measure, None), X[: 100 * blocks], y[: 100 * blocks])
    before = model(clf)
    others = pickle.loads(pickle.dumps(clf)), copy.deepcopy(clf)
    process_rows(clf, X[100 * blocks :], y[100 * blocks :])
    for other in others:
        assert np.array_equal(model(other), before), "nothing is shared with the original"
        assert_same(process_rows(other, X[100 * blocks :], y[100 * blocks :]), clf)
        assert other.threshold_rank_error_ == clf.threshold_rank_error_


def test_a_stream_without_a_model_yet_can_be_saved():
    X, y = data()
    clf = classifier("gmean").partial_fit(X[y == 0], y[y == 0], classes=[0, 1])
    other = pickle.loads(pickle.dumps(clf))
    assert_same(other.partial_fit(X[y == 1], y[y == 1]), clf.partial_fit(X[y == 1], y[y == 1]))


@one_of_each
def test_a_clone_forgets_the_stream(measure):
    X, y = data()
    clf = process_rows(classifier(measure), -X, y)
    assert not hasattr(clone(clf), "classes_")
    assert_same(process_rows(clone(clf), X, y), process_rows(classifier(measure), X, y))


@one_of_each
def test_coefficients_are_not_those_of_the_state(measure):
    """What the user does to coef_ and intercept_ must not reach the stream, nor later blocks those of a copy."""
    X, y = data()
    clf = process_rows(classifier(measure), X[:200], y[:200])
    coef = clf.coef_
    before = coef.copy()
    process_rows(clf, X[200:], y[200:])
    assert np.array_equal(coef, before)
    clf = process_rows(classifier(measure), X[:200], y[:200])
    clf.coef_[:], clf.intercept_[:] = np.nan, np.nan
    assert_same(process_rows(clf, X[200:], y[200:]), process_rows(classifier(measure), X, y))


# ------------------------------------------------------------------------------------------------ attributes and memory


@every_measure
def test_attributes_say_what_was_done(measure):
    X, y = data()
    clf = classifier(measure).partial_fit(X[:100], y[:100]).partial_fit(X[100:], y[100:])
    assert (clf.solver_, clf.risk_, clf.cost_, clf.status_) == (SOLVER[measure], "hinge", 1.0, "max_iter")
    assert (clf.objective_, clf.lower_bound_, clf.gap_) == (None, None, None)
    assert clf.n_iter_ == 2
    assert clf.n_passes_ == pytest.approx(6.0, rel=1e-12)  # three for each block: units, steps and scores
    assert clf.history_ == {}
    assert clf.coef_.shape == (1, 4)
    assert clf.intercept_.shape == (1,)
    assert isinstance(clf.trained_intercept_, float)
    assert isinstance(clf.threshold_rank_error_, float)
    assert clf.n_features_in_ == 4
    assert clf.classes_.tolist() == [0, 1]
    assert not hasattr(clf, "moments_report_")
    assert not hasattr(clf, "feature_names_in_")
    assert np.isfinite(clf.objective(X, y))
    assert clf.score(X, y) > 0.5


@pytest.mark.slow
@one_of_each
def test_memory_does_not_grow_with_the_blocks(measure, monkeypatch):
    """12 generations of two sketches, each of 2 + log2(N / SIZE) parts of SIZE points and weights, at most; and vectors."""
    size, p = 64, 4
    monkeypatch.setattr(score_sketch, "SIZE", size)
    X, y = data(5000)
    clf, saved = classifier(measure), {}
    for k in range(200):
        rows = slice(500 * (k % 10), 500 * (k % 10) + 500)
        clf.partial_fit(X[rows], y[rows])
        saved[k + 1] = len(pickle.dumps(clf))
    for blocks in (10, 200):
        sketches = 12 * 2 * (2 + np.log2(500 * blocks / size)) * size * 2 * 8
        assert (
            saved[blocks] <= sketches + 4 * 8 * (p + 1) + 20_000
        )  # what pickle adds for 200 arrays and the parameters
    # Twenty times as many rows are log2(20) more levels in each of 2 x 9 sketches, half of them there on average.
    assert saved[200] - saved[10] <= 2 * 9 * np.log2(20) * size * 2 * 8
    assert max(saved.values()) <= 1.5 * max(saved[k] for k in range(100, 120))
    assert clf._stream.blocks == 200


# ------------------------------------------------------------------------------------------------ refusals


@for_each("solver", ["auto", *(name for name in all_solvers() if name not in STREAMING)])
def test_other_solvers_do_not_stream(solver):
    X, y = data()
    clf = MeasureClassifier(solver=solver)
    for name in ("partial_fit", "merge"):
        assert not hasattr(clf, name)
    with pytest.raises(AttributeError, match="partial_fit") as error:
        clf.partial_fit(X, y)
    cause = str(error.value)
    for name in STREAMING:
        assert repr(name) in cause
    assert repr(solver) in cause


@for_each("solver", ROWS)
def test_only_moments_can_be_added(solver):
    X, y = data()
    clf = process_rows(streaming(solver), X, y)
    assert hasattr(clf, "partial_fit")
    assert not hasattr(clf, "merge")
    with pytest.raises(AttributeError, match="merge") as error:
        clf.merge(clf)
    assert "solver='moments'" in str(error.value)
    with pytest.raises(ValueError, match="other has none"):
        streaming("moments").partial_fit(X, y).merge(clf)


@for_each("solver", ROWS)
@for_each(
    ("options", "match"),
    [
        ({"scaling": "standard"}, r"scaling='standard' needs all rows at once.*use scaling=None"),
        ({"scaling": "maxabs"}, r"scaling='maxabs' needs all rows at once.*use scaling=None"),
        ({"class_weight": "balanced"}, r"class_weight='balanced' needs all rows at once; give a dict of weights"),
        ({"threshold": "holdout"}, r"threshold='holdout' cannot be combined with partial_fit.*use threshold='auto'"),
        ({"class_weight": {2: 1.0}}, "names classes that y does not have"),
        ({"class_weight": {1: -1.0}}, "positive weight"),
        ({"class_weight": 3.0}, "class_weight"),
        ({"alpha": 0.0}, "alpha"),
        ({"measure": "accuracy"}, "does not train for measure 'accuracy'"),
        ({"risk": "logistic"}, "hinge"),
        ({"solver_params": {"step": "long"}}, "step"),
        ({"solver_params": {"ridge": 1.0}}, "ridge"),
    ],
)
def test_options_that_do_not_go_with_blocks_are_refused_with_the_way_out(solver, options, match):
    X, y = data()
    with pytest.raises(ValueError, match=match):
        streaming(solver).set_params(**options).partial_fit(X, y)
    clf = process_rows(streaming(solver), X[:200], y[:200])
    before, own = joblib.hash(clf.__dict__), {name: clf.get_params()[name] for name in options}
    with pytest.raises(ValueError, match=match):
        clf.set_params(**options).partial_fit(X[200:], y[200:])
    assert joblib.hash(clf.set_params(**own).__dict__) == before


@one_of_each
def test_storages_without_rows_are_refused(measure):
    X, y = data()
    with pytest.raises(ValueError, match=r"X\.tocsr\(\)"):
        classifier(measure).partial_fit(sp.csc_array(X), y)
    with pytest.raises((TypeError, ValueError), match="row"):
        classifier(measure).partial_fit(aslinearoperator(X), y)
