"""SPADE and STAMP through the classifier: seeds, storages, weights, units, attributes, ends, refusals, and their optima."""

import itertools
import pickle
import time
import warnings

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from cases import crossed, for_each, seeds
from scoreline import MeasureClassifier, list_solvers
from scoreline.fitting.threshold import held_out_rows
from scoreline.kernels import point_updates
from scoreline.measures import best_threshold, get_measure
from scoreline.operators import as_operator
from scoreline.solvers import SpadeSolver, StampSolver
from scoreline.solvers.common import row_method, row_state

SPADE = ("gmean", "hmean", "min_tpr_tnr", "qmean")
STAMP = ("f1", "fbeta", "gower_legendre", "jaccard")
SOLVER = dict.fromkeys(SPADE, "spade") | dict.fromkeys(STAMP, "stamp")
CLASS = {"spade": SpadeSolver, "stamp": StampSolver}
every_measure = for_each("measure", SOLVER)
one_of_each = for_each("measure", ["gmean", "f1"])


def data(n=120, p=4, seed=0):
    rng = np.random.default_rng([seed, n, p])
    X = rng.standard_normal((n, p))
    y = (X @ rng.standard_normal(p) + 0.5 * rng.standard_normal(n) > 0.8).astype(int)
    y[:2] = 1, 0
    return X, y


def classifier(measure, passes=4, seed=0, step="adaptive", **options):
    params = {"passes": passes, "step": step, **options.pop("solver_params", {})}
    return MeasureClassifier(measure, solver=SOLVER[measure], solver_params=params, random_state=seed, **options)


def decisions(measure, X, y, weight=None, **options):
    return classifier(measure, **options).fit(X, y, sample_weight=weight).decision_function(X)


# ------------------------------------------------------------------------------------------------ seeds and storages


@every_measure
@for_each("step", ["adaptive", "paper"])
def test_a_seed_fixes_the_result_and_another_changes_it(measure, step):
    X, y = data()
    one, same, other = (classifier(measure, step=step, seed=s).fit(X, y) for s in (3, 3, 4))
    assert np.array_equal(one.coef_, same.coef_)
    assert np.array_equal(one.intercept_, same.intercept_)
    assert not np.array_equal(one.coef_, other.coef_)
    again = classifier(measure, step=step, seed=np.random.RandomState(3)).fit(X, y)
    assert np.array_equal(one.coef_, again.coef_)


@one_of_each
@for_each("step", ["adaptive", "paper"])
def test_storages_give_the_same_scores(measure, step, tmp_path):
    X, y = data()
    X[np.abs(X) < 0.3] = 0.0
    mapped = np.memmap(tmp_path / "X", dtype=np.float64, mode="w+", shape=X.shape)
    mapped[...] = X
    stored = [np.asfortranarray(X), sp.csr_array(X), sp.csr_matrix(X), mapped, X[:, ::-1][:, ::-1], sp.coo_array(X)]
    stored += [np.repeat(X, 2, axis=0)[::2], np.repeat(X, 2, axis=1)[:, ::2]]
    expected = decisions(measure, X, y, step=step)
    for other in stored:
        # Sums of 5 products in the same order, some hundred updates: 1e-9 is a million roundings.
        np.testing.assert_allclose(decisions(measure, other, y, step=step), expected, rtol=1e-9, atol=1e-9)


def with_entries_in_halves(X):
    """Return a CSR matrix that names every place twice, with half of its value each time."""
    n, p = X.shape
    halves = (np.repeat(0.5 * X, 2, axis=1).ravel(), np.tile(np.repeat(np.arange(p), 2), n), 2 * p * np.arange(n + 1))
    return sp.csr_array(halves, shape=X.shape)


@one_of_each
@for_each("step", ["adaptive", "paper"])
def test_entries_named_twice_count_as_their_sum(measure, step):
    X, y = data()
    expected = decisions(measure, X, y, step=step)
    # As in the test of storages above.
    np.testing.assert_allclose(
        decisions(measure, with_entries_in_halves(X), y, step=step), expected, rtol=1e-9, atol=1e-9
    )


@one_of_each
def test_float32_gives_nearly_the_scores_of_its_float64_values(measure):
    X, y = data()
    X = X.astype(np.float32)
    expected = decisions(measure, X.astype(np.float64), y)
    # The same numbers: all that may differ is the order of sums, some hundred updates of 1e-16 each.
    np.testing.assert_allclose(decisions(measure, X, y), expected, rtol=1e-9, atol=1e-9)


@every_measure
def test_units_of_columns_do_not_matter_for_adaptive_steps(measure):
    X, y = data()
    # alpha is that small because the ball is in units of the coefficients, and must not be met.
    expected = decisions(measure, X, y, alpha=1e-30)
    for powers in ([3, 0, -2, 1], [-4, 6, 0, 2]):
        got = decisions(measure, X * 10.0 ** np.array(powers), y, alpha=1e-30)
        np.testing.assert_allclose(got, expected, rtol=1e-6, atol=1e-6)  # products with 10^k are rounded, updates too


@one_of_each
def test_blocks_of_rows_take_in_every_row_once_per_pass(measure, monkeypatch):
    X, y = data(n=100)
    monkeypatch.setattr(row_state, "BLOCK_ROWS", 7)
    monkeypatch.setattr(row_state, "BLOCK_BYTES", 8 * 4 * 7)  # 7 rows
    solver, order_of_rows = CLASS[SOLVER[measure]], []
    process_rows = solver.process_rows

    def watched(self, rows, *others):
        values, row_step, order = rows[0], int(rows[3]), rows[5].astype(int)
        assert len(order) <= 7
        order_of_rows.extend(float(values[i * row_step]) for i in order)
        process_rows(self, rows, *others)

    monkeypatch.setattr(solver, "process_rows", watched)
    for stored in (X, X[:, ::-1]):  # as it lies in memory, and block by block
        order_of_rows.clear()
        fitted = classifier(measure, passes=3).fit(stored, y)
        assert fitted.n_passes_ == pytest.approx(5.0, rel=1e-12)
        for part in np.split(np.array(order_of_rows), 3):
            assert np.array_equal(np.sort(part), np.sort(stored[:, 0]))
        assert not np.array_equal(order_of_rows[:100], order_of_rows[100:200])


@one_of_each
def test_small_blocks_give_the_same_result_for_every_storage(measure, monkeypatch):
    X, y = data(n=100)
    monkeypatch.setattr(row_state, "BLOCK_ROWS", 7)
    monkeypatch.setattr(row_state, "BLOCK_BYTES", 8 * 4 * 7)
    weight = np.arange(100.0) % 3
    expected = decisions(measure, X, y, weight)
    for other in (sp.csr_array(X), np.asfortranarray(X), np.repeat(X, 2, axis=1)[:, ::2]):
        # As in the test of storages above.
        np.testing.assert_allclose(decisions(measure, other, y, weight), expected, rtol=1e-9, atol=1e-9)


# ------------------------------------------------------------------------------------------------ weights


@every_measure
def test_rows_of_weight_zero_have_no_influence(measure):
    X, y = data()
    weight = np.ones(len(y))
    weight[5::4] = 0.0
    one = classifier(measure).fit(X, y, sample_weight=weight)
    changed, flipped = X.copy(), y.copy()
    changed[5::4] *= -50.0
    flipped[5::4] = 1 - flipped[5::4]
    other = classifier(measure).fit(changed, flipped, sample_weight=weight)
    assert np.array_equal(one.coef_, other.coef_)
    assert np.array_equal(one.intercept_, other.intercept_)


@for_each("measure, step", crossed(SOLVER, ["adaptive", "paper"], strength=1))
def test_integer_weights_give_finite_results_near_those_of_copies(measure, step):
    X, y = data()
    weight = np.random.default_rng(1).integers(0, 4, len(y))
    weighted = classifier(measure, passes=40, step=step).fit(X, y, sample_weight=weight)
    copies = classifier(measure, passes=40, step=step).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    assert np.isfinite(weighted.coef_).all()
    cosine = np.vdot(weighted.coef_, copies.coef_) / np.linalg.norm(weighted.coef_) / np.linalg.norm(copies.coef_)
    # One long step is not several short ones: only what they lead to is alike.
    assert cosine > 0.9


def test_weights_of_one_are_no_weights():
    X, y = data()
    assert np.array_equal(decisions("qmean", X, y), decisions("qmean", X, y, np.ones(len(y))))


# ------------------------------------------------------------------------------------------------ attributes and ends


def trial_passes(measure, passes):
    """Return the passes that go into the choice of weights: a fifth, and two for scores."""
    return passes // 5 + 2 if measure in ("f1", "fbeta", "jaccard") else 0


@for_each("measure", ["f1", "fbeta", "jaccard"])
def test_stamp_keeps_the_weights_that_lead_after_a_fifth_of_the_passes(measure):
    chosen = set()
    for seed in range(12):
        X, y = data(n=200, seed=seed)
        options = {"passes": 10, "seed": seed, "alpha": 1e-3}
        fits = {
            w: classifier(measure, solver_params={"weights": w}, **options).fit(X, y)
            for w in ("level", "equal", "auto")
        }
        assert not np.array_equal(fits["level"].coef_, fits["equal"].coef_)
        watched = {}
        for weights in ("level", "equal"):  # the same two passes of ten, seen from outside
            visited = []
            params = {
                "weights": weights,
                "callbacks": [lambda progress, visited=visited: visited.append(progress.w.copy())],
            }
            classifier(measure, solver_params=params, **options).fit(X, y)
            watched[weights] = best_threshold(y, X @ visited[1][:-1], get_measure(measure)).value
        better = "equal" if watched["equal"] > watched["level"] else "level"
        np.testing.assert_array_equal(fits["auto"].coef_, fits[better].coef_)
        chosen.add(better)
    assert chosen == {"level", "equal"}, "the seeds do not tell"


def test_weights_of_the_level_stay_without_threshold_or_with_few_passes():
    X, y = data()
    for options in ({"passes": 10, "threshold": "none"}, {"passes": 4}):
        own = [
            classifier("f1", solver_params={"weights": w}, **options).fit(X, y).coef_
            for w in ("auto", "level", "equal")
        ]
        np.testing.assert_array_equal(own[0], own[1])
        assert not np.array_equal(own[0], own[2])


@one_of_each
def test_callbacks_see_the_mean_after_every_pass_and_can_end_the_run(measure):
    X, y = data()
    progresses = []

    def watch(progress):
        progresses.append(progress)
        progress.w[:] += 0.0  # a copy: the run does not use it
        return len(progresses) == 3

    fitted = classifier(measure, passes=7, threshold="none", solver_params={"callbacks": [watch]}).fit(X, y)
    assert [p.iteration for p in progresses] == [1, 2, 3]
    assert fitted.status_ == "interrupted"
    assert fitted.n_iter_ == 3
    np.testing.assert_array_equal(np.append(fitted.coef_, fitted.trained_intercept_), progresses[-1].w)
    assert all(np.isnan(p.objective) and p.lower_bound == -np.inf for p in progresses)


@every_measure
def test_attributes_say_what_was_done(measure):
    X, y = data()
    fitted = classifier(measure, passes=6).fit(X, y)
    assert fitted.solver_ == SOLVER[measure]
    assert fitted.objective_ is None
    assert fitted.lower_bound_ is None
    assert fitted.gap_ is None
    assert fitted.n_iter_ == 6
    assert fitted.n_passes_ == pytest.approx(
        8.0 + trial_passes(measure, 6), rel=1e-12
    )  # one for the units, one for the threshold
    assert fitted.history_["iteration"] == fitted.history_["passes"] == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    assert {len(column) for column in fitted.history_.values()} == {6}
    assert (np.diff(fitted.history_["seconds"]) >= 0.0).all()
    assert fitted.status_ == "max_iter"
    assert fitted.coef_.shape == (1, 4)
    assert fitted.score(X, y) > 0.6


@one_of_each
@for_each("scaling", ["maxabs", "standard"])
def test_scaling_works_and_its_passes_count(measure, scaling):
    X, y = data()
    X = X * 10.0 ** np.array([3, 0, -2, 1]) + (5.0 if scaling == "standard" else 0.0)
    fitted = classifier(measure, passes=10, scaling=scaling).fit(X, y)
    assert fitted.score(X, y) > 0.7
    sparse = classifier(measure, passes=10, scaling=scaling).fit(sp.csr_array(X), y)
    np.testing.assert_allclose(sparse.decision_function(X), fitted.decision_function(X), rtol=1e-8, atol=1e-8)
    # Statistics, ten passes, the threshold.
    assert fitted.n_passes_ == pytest.approx(13.0 + trial_passes(measure, 10), rel=1e-12)


@one_of_each
def test_without_a_threshold_the_trained_intercept_stays(measure):
    X, y = data()
    untuned, tuned = (classifier(measure, threshold=c).fit(X, y) for c in ("none", "train"))
    assert untuned.intercept_[0] == untuned.trained_intercept_ == tuned.trained_intercept_
    assert np.array_equal(untuned.coef_, tuned.coef_)
    assert untuned.n_passes_ == pytest.approx(5.0, rel=1e-12)
    assert tuned.score(X, y) >= untuned.score(X, y)


@one_of_each
def test_without_an_intercept_only_the_threshold_sets_one(measure):
    X, y = data()
    assert classifier(measure, fit_intercept=False, threshold="none").fit(X, y).intercept_[0] == 0.0
    fitted = classifier(measure, fit_intercept=False).fit(X, y)
    assert fitted.trained_intercept_ == 0.0
    assert fitted.intercept_[0] != 0.0


def lengths(X, step):
    """Return what coefficients are multiplied with before their length is bounded: the root mean squares of the columns."""
    return np.append(np.sqrt((X**2).mean(axis=0)), 1.0) if step == "adaptive" else np.ones(X.shape[1] + 1)


@for_each("measure, step", crossed(SOLVER, ["adaptive", "paper"], strength=1))
def test_coefficients_stay_in_the_ball(measure, step):
    X, y = data()
    for alpha in (1e-4, 2.0, 2e2, 2e6):
        fitted = classifier(measure, step=step, alpha=alpha, passes=30).fit(X, y)
        length = np.linalg.norm(lengths(X, step) * np.append(fitted.coef_, fitted.trained_intercept_))
        assert length <= np.sqrt(2.0 / alpha) * (1 + 1e-9)  # a mean of iterates in the ball, roundings of its sum
        assert np.isfinite(fitted.decision_function(X)).all()


@one_of_each
def test_time_ends_a_run(measure):
    X, y = data()
    fitted = classifier(measure, passes=10**6, max_time=1e-9).fit(X, y)
    assert fitted.status_ == "max_time"
    assert fitted.n_iter_ == 0
    assert {len(column) for column in fitted.history_.values()} == {0}
    assert np.isfinite(fitted.decision_function(X)).all()
    assert fitted.coef_.any(), "the block at hand is taken in"


@one_of_each
@for_each("after", [0, 1])
def test_an_interrupt_leaves_a_fitted_classifier(measure, after, monkeypatch):
    X, y = data()
    solver, calls = CLASS[SOLVER[measure]], []
    process_rows = solver.process_rows

    def interrupted(self, *arguments):
        if len(calls) == after:
            raise KeyboardInterrupt
        calls.append(1)
        process_rows(self, *arguments)

    monkeypatch.setattr(solver, "process_rows", interrupted)
    stopped = classifier(measure, passes=9)
    with pytest.raises(KeyboardInterrupt):
        stopped.fit(X, y)
    assert stopped.status_ == "interrupted"
    assert stopped.n_iter_ == after
    assert {len(column) for column in stopped.history_.values()} == {after}
    assert stopped.predict(X).shape == y.shape
    monkeypatch.undo()
    if after:  # steps do not fade in the first pass
        assert np.array_equal(stopped.coef_, classifier(measure, passes=after).fit(X, y).coef_)


@one_of_each
def test_an_interrupt_before_the_first_row_leaves_an_earlier_model(measure, monkeypatch):
    X, y = data()
    fitted = classifier(measure).fit(X, y)
    coef = fitted.coef_.copy()

    def pressed(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(CLASS[SOLVER[measure]], "process_rows", pressed)
    with pytest.raises(KeyboardInterrupt):
        fitted.fit(X[:50], y[:50])
    np.testing.assert_array_equal(fitted.coef_, coef)


@one_of_each
def test_time_is_that_of_the_held_out_run_and_of_the_other(measure, monkeypatch):
    """The clock moves a second with every reading; compared with those of the runs, which end at the limit, there are few."""
    readings = itertools.count()
    monkeypatch.setattr(time, "perf_counter", lambda: float(next(readings)))
    X, y = data(n=300)
    fitted = classifier(measure, passes=10**6, threshold="holdout", max_time=400.0).fit(X, y)
    assert fitted.status_ == "max_time"
    assert 400.0 < next(readings) < 440.0


@for_each("measure, factor", crossed(SOLVER, [1e-90, 1e-6, 1e6, 1e90], strength=1))
def test_the_scale_of_weights_does_not_matter(measure, factor):
    X, y = data()
    weight = 1.0 + np.arange(len(y)) % 3
    expected = decisions(measure, X, y, weight)
    np.testing.assert_allclose(
        decisions(measure, X, y, factor * weight), expected, rtol=1e-6, atol=1e-6
    )  # rounded weights


@one_of_each
@for_each("factor", [1e-170, 1e160])
def test_columns_whose_squares_leave_the_range_of_floats_are_refused(measure, factor):
    X, y = data()
    with pytest.raises(ValueError, match="divide its columns"):
        classifier(measure).fit(X * [factor, 1.0, 1.0, 1.0], y)


@every_measure
def test_clones_and_pickles_are_the_same(measure):
    X, y = data()
    fitted = classifier(measure).fit(X, y)
    assert np.array_equal(pickle.loads(pickle.dumps(fitted)).decision_function(X), fitted.decision_function(X))
    assert np.array_equal(clone(fitted).fit(X, y).coef_, fitted.coef_)


def test_a_fit_forgets_the_one_before():
    X, y = data()
    fitted = classifier("gmean").fit(X, y)
    first = fitted.coef_.copy()
    assert np.array_equal(fitted.fit(X, y).coef_, first)
    fitted.set_params(solver="auto", solver_params=None).fit(X, y)
    assert fitted.gap_ is not None


# ------------------------------------------------------------------------------------------------ refusals


@for_each("solver, needs", [("spade", r"G-mean, H-mean, Q-mean"), ("stamp", r"F-beta, Jaccard")])
def test_other_measures_are_refused_with_what_is_needed(solver, needs):
    X, y = data()
    supported = {info.name: info.measures for info in list_solvers()}[solver]
    assert set(supported) == set(SPADE if solver == "spade" else STAMP)
    for measure in ("roc_auc", "accuracy", "f1" if solver == "spade" else "gmean"):
        with pytest.raises(ValueError, match=needs):
            MeasureClassifier(measure, solver=solver).fit(X, y)


@one_of_each
def test_columns_are_refused_with_the_way_out(measure):
    X, y = data()
    with pytest.raises(ValueError, match=r"X\.tocsr\(\)"):
        classifier(measure).fit(sp.csc_array(X), y)


@one_of_each
def test_a_holdout_threshold_is_the_best_on_held_out_rows(measure):
    X, y = data(n=300)
    held = held_out_rows(np.where(y == 1, 1, -1), None, 0)
    first = classifier(measure, threshold="train").fit(X, y, sample_weight=np.where(held, 0.0, 1.0))
    scores = X[held] @ first.coef_[0] + first.trained_intercept_
    threshold = best_threshold(y[held], scores, get_measure(measure)).threshold
    fitted, plain = classifier(measure, threshold="holdout").fit(X, y), classifier(measure, threshold="none").fit(X, y)
    assert fitted.intercept_[0] == pytest.approx(fitted.trained_intercept_ - threshold, rel=1e-12)
    np.testing.assert_array_equal(fitted.coef_, plain.coef_)  # four passes: no weights are tried
    assert fitted.n_passes_ == pytest.approx(5.0 + 5.0 + 1.0, rel=1e-12)


@one_of_each
@for_each("n, p, holds_out", [(300, 40, True), (300, 30, False), (90, 40, False)])
def test_rows_are_held_out_below_ten_per_feature_unless_too_few(measure, n, p, holds_out):
    X, y = data(n=n, p=p)
    assert (min(np.bincount(y)) >= 50) == (n == 300)
    same = [classifier(measure, threshold=rule).fit(X, y).intercept_[0] for rule in ("auto", "holdout", "train")]
    assert same[0] == same[1 if holds_out else 2]
    assert same[1] != same[2]


@for_each(
    "n, p, passes", [(100, 2, 25), (300, 3, 1000), (4000, 40, 500), (4000, 41, 25), (10**5, 3, 25), (10**7, 3, 25)]
)
def test_small_data_with_few_features_get_more_passes(n, p, passes):
    assert row_method.default_passes(n, p) == passes


@for_each(
    "measure, params, match",
    [
        ("gmean", {"passes": 0}, "passes"),
        ("gmean", {"passes": 2.5}, "passes"),
        ("f1", {"passes": -1}, "passes"),
        ("gmean", {"step": "long"}, "step"),
        ("f1", {"step": 0.1}, "step"),
        ("f1", {"first_epoch": 0}, "first_epoch"),
        ("f1", {"first_epoch": 1.5}, "first_epoch"),
        ("gmean", {"first_epoch": 100}, "first_epoch"),
    ],
)
def test_wrong_options_are_refused_by_name(measure, params, match):
    X, y = data()
    with pytest.raises((ValueError, TypeError), match=match):
        classifier(measure, solver_params=params).fit(X, y)


@one_of_each
@for_each("bad", [np.nan, np.inf])
def test_numbers_that_are_none_are_refused(measure, bad):
    X, y = data()
    X[7, 2] = bad
    with pytest.raises(ValueError, match=r"NaN|nan|infin|finite"):
        classifier(measure).fit(X, y)


def test_other_risks_are_refused():
    X, y = data()
    with pytest.raises(ValueError, match="hinge"):
        classifier("gmean", risk="logistic").fit(X, y)


# ------------------------------------------------------------------------------------------------ optima


PASSES = 5000  # over 120 rows; about 0.1 s


def rates(w, A, y):
    """Return the mean rewards min(1, y s) of both classes."""
    s = A @ w
    return np.minimum(1.0, s[y == 1]).mean(), np.minimum(1.0, -s[y == 0]).mean()


def value(measure, w, A, y):
    """Return the concave measure of the mean rewards.

    For the G- and the H-mean SPADE's problem is the least value of a u + b v over their dual regions, which is the measure
    itself where both means are positive.
    """
    u, v = rates(w, A, y)
    if measure == "min_tpr_tnr":
        return min(u, v)
    if measure == "qmean":
        return 1.0 - np.sqrt(((1.0 - u) ** 2 + (1.0 - v) ** 2) / 2.0)
    assert min(u, v) > 0.0
    return np.sqrt(u * v) if measure == "gmean" else 2.0 * u * v / (u + v)


def solve(task):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        task.solve(solver=cp.CLARABEL)
    return task.value


def optimum(measure, A, y, units, radius):
    """Return the largest value within the ball |units w| <= radius, and coefficients that have it."""
    w, r = cp.Variable(A.shape[1]), cp.Variable(2)
    s = A @ w
    errors = [cp.sum(cp.pos(1.0 - t)) / t.shape[0] for t in (s[np.flatnonzero(y == 1)], -s[np.flatnonzero(y == 0)])]
    concave = {"min_tpr_tnr": cp.min, "hmean": cp.harmonic_mean, "gmean": cp.geo_mean}
    best = 1.0 - cp.norm(1.0 - r) / np.sqrt(2.0) if measure == "qmean" else concave[measure](r)
    return solve(
        cp.Problem(
            cp.Maximize(best), [cp.norm(cp.multiply(units, w)) <= radius, *(r[k] <= 1.0 - errors[k] for k in (0, 1))]
        )
    ), w.value


def trained(measure, X, y, alpha, seed, step="adaptive", **options):
    fitted = classifier(measure, passes=PASSES, step=step, alpha=alpha, threshold="none", seed=seed, **options).fit(
        X, y
    )
    return np.append(fitted.coef_[0], fitted.trained_intercept_)


@for_each(
    "seed, measure, alpha, step",
    crossed(seeds(5), SPADE, [(5e-2, "adaptive"), (1e-3, "adaptive"), (0.5, "paper")], strength=1),
)
def test_spade_comes_within_a_thousandth_of_the_optimum_of_its_own_problem(measure, seed, alpha, step):
    """In 5000 passes. With the first and the last alpha the optimum lies on the ball, with 1e-3 inside (mostly)."""
    X, y = data(seed=seed)
    if step == "adaptive":
        X = X * [10.0, 0.1, 1.0, 1.0]  # units do not matter
    A = np.hstack([X, np.ones((len(y), 1))])
    best, best_w = optimum(measure, A, y, lengths(X, step), np.sqrt(2.0 / alpha))
    assert min(rates(best_w, A, y)) > 0.5, "there the G- and the H-mean are their own concave extensions"
    got = value(measure, trained(measure, X, y, alpha, seed, step), A, y)
    assert got <= best + 1e-6  # what cvxpy may lie below the maximum
    # The worst of these seeds: 5.4e-4 for the minimum, whose dual weights jump most, 2.0e-4 for the others; of the paper's
    # steps, which do not fade, 1.3e-3 and 1.3e-4.
    assert got >= best - (2e-3 if (measure, step) == ("min_tpr_tnr", "paper") else 1e-3)


def class_weights(monkeypatch):
    """Return a list that will hold the weights of both classes after every block of a run of STAMP."""
    process_rows, weight_history = StampSolver.process_rows, []

    def watched(self, rows, measure, radius, state):
        process_rows(self, rows, measure, radius, state)
        weight_history.append(state.numbers[[point_updates.ALPHA, point_updates.BETA, point_updates.LEVEL]].tolist())

    monkeypatch.setattr(StampSolver, "process_rows", watched)
    return weight_history


@for_each(
    "seed, measure, alpha, step",
    crossed(
        seeds(5),
        ["f1", "f2", "jaccard", "gower_legendre"],
        [(5e-2, "adaptive"), (1e-3, "adaptive"), (0.5, "paper")],
        strength=1,
    ),
)
def test_stamp_comes_within_a_thousandth_of_the_optimum_at_its_last_level(measure, seed, alpha, step, monkeypatch):
    """In 5000 passes: the mean hinge with the weights that the run holds at its end, normalised to a mean of 1 per row."""
    X, y = data(seed=seed)
    if step == "adaptive":
        X = X * [10.0, 0.1, 1.0, 1.0]  # units do not matter
    A, sign, class_state = np.hstack([X, np.ones((len(y), 1))]), np.where(y == 1, 1.0, -1.0), class_weights(monkeypatch)
    named = ("fbeta", {"measure_params": {"beta": 2.0}}) if measure == "f2" else (measure, {})
    got = trained(named[0], X, y, alpha, seed, step, **named[1])
    positive, negative, level = class_state[-1]
    assert 0.5 < level < 1.0
    expected = {"f1": (2.0 - level, level), "f2": (5.0 - level, level), "jaccard": (1.0, level)}
    assert (positive, negative) == pytest.approx(expected.get(measure, (1.0, 1.0)), rel=1e-15)
    if measure != "gower_legendre":  # which needs no level
        score = get_measure(named[0], named[1].get("measure_params"))
        # The level is of single iterates of the last epoch; F1 and Jaccard differ by 0.045 and more here.
        assert level == pytest.approx(score.value(y, A @ got), abs=0.03)
    weight = np.where(y == 1, positive, negative)
    weight /= weight.sum()
    w = cp.Variable(A.shape[1])
    loss = weight @ cp.pos(1.0 - cp.multiply(sign, A @ w))
    best = solve(cp.Problem(cp.Minimize(loss), [cp.norm(cp.multiply(lengths(X, step), w)) <= np.sqrt(2.0 / alpha)]))
    loss_of_mean = weight @ np.maximum(0.0, 1.0 - sign * (A @ got))
    assert loss_of_mean >= best - 1e-6  # what cvxpy may lie above the minimum
    # The worst of these seeds: 4.2e-4, of the paper's steps 6.1e-4. The level moves with every epoch, so that the mean lags.
    assert loss_of_mean <= best + 1e-3


@for_each("seed", seeds(5))
def test_the_level_of_stamp_is_close_to_the_measure_of_its_predictions(seed, monkeypatch):
    X, y = data(n=400, seed=seed)
    process_rows, states = StampSolver.process_rows, []

    def watched(self, rows, measure, radius, state):
        states.append(state)
        process_rows(self, rows, measure, radius, state)

    monkeypatch.setattr(StampSolver, "process_rows", watched)
    fitted = classifier("f1", passes=60, threshold="none", seed=seed).fit(X, y)
    level = states[-1].numbers[point_updates.LEVEL]
    assert states[-1].numbers[point_updates.EPOCH] >= 100 * 2**7
    # The level is of single iterates over half of the rows met, not of their mean: it lags behind.
    assert abs(level - fitted.score(X, y)) <= 0.1


def test_operators_of_the_caller_are_trained_on_as_well():
    X, y = data()
    assert np.array_equal(classifier("gmean").fit(as_operator(X), y).coef_, classifier("gmean").fit(X, y).coef_)
