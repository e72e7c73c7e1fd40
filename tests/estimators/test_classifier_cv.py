"""alpha by cross-validation: the fits of folds are fits of copies of their rows, and the choice is what it says."""

import warnings
from itertools import product

import array_api_strict
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GroupKFold, KFold, PredefinedSplit, StratifiedKFold, cross_val_score

from cases import fewer, for_each
from problems import overlapping_rows
from scoreline import MeasureClassifier, MeasureClassifierCV, load_model
from scoreline.measures import best_threshold, get_measure, robust_threshold
from scoreline.measures.registry import all_measures
from scoreline.model_selection.folds import Candidate
from scoreline.model_selection.search import ALPHAS as ALPHAS_BY_DEFAULT
from scoreline.model_selection.search import Search, further

ALPHAS = [1e-3, 1.0, 1e-1, 1e-2, 1e-4]
SPLITTER = StratifiedKFold(3)


def problem(n=600, p=6, seed=0):
    X, y = overlapping_rows(n, p, seed)
    return 10.0 ** np.arange(-1, p - 1) * X, y


def searched(X, y, measure="roc_auc", weight=None, groups=None, **options):
    options = {"alphas": ALPHAS, "cv": SPLITTER, "scaling": "standard", "random_state": 0, **options}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return MeasureClassifierCV(measure, **options).fit(X, y, weight, groups)


FOLDS = list(product(["roc_auc", "prbep", "accuracy", "average_precision"], [False, True], [False, True]))


@for_each("measure, weighted, sparse", fewer(FOLDS, in_quick=[("roc_auc", True, True)]))
def test_folds_are_fits_of_copies_of_their_rows(measure, weighted, sparse):
    """Both are proved within 1e-4 of their optimum, so their measures on 200 rows hardly differ."""
    X, y = problem()
    weight = np.random.default_rng(0).integers(1, 4, len(y)).astype(float) if weighted else None
    rows = sp.csr_matrix(X) if sparse else X
    clf = searched(rows, y, measure, weight, tol=1e-4)
    for k, alpha in enumerate(ALPHAS):
        for f, (train, test) in enumerate(SPLITTER.split(X, y)):
            s = (None, None) if weight is None else (weight[train], weight[test])
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                own = MeasureClassifier(
                    measure, alpha=alpha, scaling="standard", tol=1e-4, risk=str(clf.cv_results_["risk"][k])
                ).fit(X[train], y[train], s[0])
            if measure == "accuracy":  # which depends on the threshold, too
                continue
            assert clf.cv_results_[f"split{f}_test_score"][k] == pytest.approx(
                own.score(X[test], y[test], s[1]), abs=5e-3
            )


def test_the_table_and_the_choice():
    X, y = problem()
    clf = searched(X, y)
    table = clf.cv_results_
    assert table["alpha"].tolist() == ALPHAS
    splits = np.stack([table[f"split{f}_test_score"] for f in range(3)], axis=1)
    np.testing.assert_allclose(table["mean_test_score"], splits.mean(axis=1))
    np.testing.assert_allclose(table["std_test_score"], splits.std(axis=1, ddof=1))
    best = int(np.argmax(table["mean_test_score"]))
    assert clf.alpha_ == ALPHAS[best]
    assert table["rank_test_score"][best] == 1
    assert sorted(table) == sorted(
        [
            "alpha",
            "cost",
            "features",
            "l1_ratio",
            "mean_test_score",
            "std_test_score",
            "rank_test_score",
            "risk",
            *(f"split{f}_test_score" for f in range(3)),
        ]
    )
    conservative = searched(X, y, selection="one_standard_error")
    near = table["mean_test_score"] >= table["mean_test_score"][best] - table["std_test_score"][best] / np.sqrt(3)
    assert conservative.alpha_ == max(np.array(ALPHAS)[near])
    assert clf.gap_ is not None
    assert clf.lower_bound_ <= clf.objective_
    plain = MeasureClassifier(alpha=clf.alpha_, scaling="standard", random_state=0).fit(X, y)
    np.testing.assert_allclose(clf.coef_, plain.coef_)
    assert clf.alpha == clf.alpha_
    assert clf.cv_passes_ > 0.0


def test_one_standard_error_is_that_of_the_mean():
    values = np.array([[0.80] * 4, [0.825] * 4, [0.79, 0.81, 0.89, 0.91]])  # from the strongest penalty to the weakest
    assert values[2].std(ddof=1) == pytest.approx(0.0589, abs=1e-3)  # half of it is the error of a mean of four
    candidate = Candidate(None, "smoothed", True, [], [], values)
    for selection, expected in (("best", 2), ("one_standard_error", 1)):
        search = Search(MeasureClassifierCV(selection=selection), None, None, None, [], None)
        assert search.chosen_alpha(candidate) == expected


def test_paired_errors_are_those_of_the_differences():
    best = np.array([0.7, 0.8, 0.9, 0.8])  # folds differ much, but alphas on the same folds differ little
    values = np.array([best - 0.01, best - np.array([0.002, -0.002, 0.001, 0.0]), best])
    paired = Candidate(None, "smoothed", True, [], [], values)
    search = Search(MeasureClassifierCV(selection="paired"), None, None, None, [], None)
    assert search.chosen_alpha(paired) == 1, "the first is worse in every fold, the second in some"


def test_held_out_rows_do_not_choose_the_threshold_they_are_scored_at():
    """With 30 held-out rows, a threshold of their own would be several rows better."""
    X, y = problem(90)
    options = {"measure": "accuracy", "solver": "lbfgs", "risk": "logistic", "scaling": "standard", "tol": 1e-8}
    clf = searched(X, y, alphas=[1e-2], **options)
    folds, scores, sign = list(SPLITTER.split(X, y)), np.empty(len(y)), np.where(y, 1, -1)
    for train, test in folds:
        own = MeasureClassifier(alpha=1e-2, threshold="none", **options).fit(X[train], y[train])
        scores[test] = own.decision_function(X[test])
    measure, own_cuts = get_measure("accuracy"), []
    for f, (train, test) in enumerate(folds):  # the training rows of a fold are those that the others leave out
        threshold = robust_threshold(sign[train], scores[train], measure).threshold
        wanted = measure.value(sign[test], scores[test] - threshold)
        assert clf.cv_results_[f"split{f}_test_score"][0] == pytest.approx(wanted, abs=1e-12)
        everything = robust_threshold(sign, scores, measure).threshold
        own_cuts.append(measure.value(sign[test], scores[test] - everything) != wanted)
    assert any(own_cuts)


@for_each("measure", ["accuracy", "balanced_accuracy", "roc_auc"])
def test_the_threshold_comes_from_rows_that_were_left_out(measure):
    X, y = problem()
    options = {"balanced_accuracy": {"solver": "lbfgs", "risk": "logistic"}, "accuracy": {"risk": "hinge"}}.get(
        measure, {}
    )
    clf = searched(X, y, measure, tol=1e-6, **options)
    scores = np.empty(len(y))
    for train, test in SPLITTER.split(X, y):
        own = MeasureClassifier(
            measure, alpha=clf.alpha_, scaling="standard", tol=1e-6, threshold="none", **options
        ).fit(X[train], y[train])
        scores[test] = own.decision_function(X[test])
    made = get_measure(measure)
    tuned = (best_threshold if measure == "roc_auc" else robust_threshold)(np.where(y, 1, -1), scores, made)
    assert clf.trained_intercept_ - clf.intercept_[0] == pytest.approx(tuned.threshold, abs=0.02)
    trained = searched(X, y, measure, threshold="train", **options)
    plain = MeasureClassifier(measure, alpha=trained.alpha_, scaling="standard", threshold="train", **options).fit(X, y)
    np.testing.assert_allclose(trained.intercept_, plain.intercept_, rtol=1e-6)


@for_each(
    ("measure", "solver"),
    fewer([("f1", "amp"), ("recall_at_precision", "cost_search"), ("gmean", "spade")], in_quick=[("f1", "amp")]),
)
def test_methods_with_levels_and_operating_points_are_whole_fits(measure, solver):
    X, y = problem(400)
    params = {"precision": 0.4} if measure == "recall_at_precision" else None  # 0.5 is the best at a recall of 0.1
    clf = searched(X, y, measure, alphas=[1e-1, 1e-3], solver=solver, measure_params=params)
    for k, alpha in enumerate([1e-1, 1e-3]):
        own = MeasureClassifier(measure, params, alpha=alpha, scaling="standard", solver=solver, random_state=0)
        scores = cross_val_score(own, X, y, cv=SPLITTER)
        assert clf.cv_results_["mean_test_score"][k] == pytest.approx(scores.mean(), abs=0.03)
    assert clf.score(X, y) > 0.2


def test_scaling_knows_the_training_rows_only():
    """A row of 1e6 in the held-out rows must not change what the fold is trained on."""
    X, y = problem()
    fold = PredefinedSplit(np.where(np.arange(len(y)) % 4 == 0, 0, -1))
    clean = searched(X, y, cv=fold)
    spoilt = X.copy()
    spoilt[0] = 1e6  # left out
    other = searched(spoilt, y, cv=fold, selection="best")
    train = np.arange(len(y)) % 4 != 0
    test = ~train
    own = MeasureClassifier(alpha=1e-2, scaling="standard").fit(X[train], y[train])
    assert other.cv_results_["split0_test_score"][3] == pytest.approx(own.score(spoilt[test], y[test]), abs=5e-3)
    assert clean.cv_results_["split0_test_score"][3] == pytest.approx(own.score(X[test], y[test]), abs=5e-3)


def test_weights_are_copies_where_the_folds_are_the_same():
    X, y = problem(300)
    weight = np.random.default_rng(1).integers(1, 4, len(y))
    fold = np.arange(len(y)) % 3
    rows = np.repeat(np.arange(len(y)), weight)
    a = searched(X, y, weight=weight, cv=PredefinedSplit(fold), tol=1e-5)
    b = searched(X[rows], y[rows], cv=PredefinedSplit(fold[rows]), tol=1e-5)
    np.testing.assert_allclose(a.cv_results_["mean_test_score"], b.cv_results_["mean_test_score"], atol=2e-3)


def test_the_same_bits_for_any_number_of_threads_and_storage(tmp_path):
    X, y = problem()
    one = searched(X, y, n_jobs=1)
    for jobs in (2, 3):
        other = searched(X, y, n_jobs=jobs)
        np.testing.assert_array_equal(one.coef_, other.coef_)
        np.testing.assert_array_equal(one.cv_results_["mean_test_score"], other.cv_results_["mean_test_score"])
    one.save(tmp_path / "model.npz")
    loaded = load_model(tmp_path / "model.npz")
    assert isinstance(loaded, MeasureClassifier)
    assert loaded.alpha == one.alpha_
    np.testing.assert_array_equal(loaded.decision_function(X), one.decision_function(X))


@pytest.mark.slow
def test_fewer_passes_than_cold_fits():
    X, y = problem(3000)
    alphas = np.logspace(0, -6, 12)
    clf = searched(X, y, alphas=alphas, cv=StratifiedKFold(3))
    cold = 0.0
    for train, _ in StratifiedKFold(3).split(X, y):
        for alpha in alphas:
            cold += 2 / 3 * MeasureClassifier(alpha=alpha, scaling="standard").fit(X[train], y[train]).n_passes_
    assert clf.cv_passes_ <= 0.5 * cold


def text_rows(n=400, p=1200, seed=0):
    """Rows like texts: few words each, frequent words first, a tenth of the words more frequent among positives."""
    rng = np.random.default_rng(seed)
    frequency = 1.0 / np.arange(1.0, p + 1.0)
    tilted = frequency * np.where(rng.random(p) < 0.1, 4.0, 1.0)
    y = (rng.random(n) < 0.25).astype(int)
    words = [rng.choice(p, 40, p=own / own.sum()) for own in (tilted if each else frequency for each in y)]
    X = sp.csr_matrix((np.ones(40 * n), (np.repeat(np.arange(n), 40), np.concatenate(words))), shape=(n, p))
    return X, y


@pytest.mark.slow
def test_count_measures_on_wide_rows_take_few_passes():
    """Held-out rows of the folds choose the cost: leave-one-out scores would take dozens of passes for each fit."""
    X, y = text_rows()
    alphas = np.logspace(0, -4, 6)
    clf = searched(X, y, "f1", alphas=alphas, cv=StratifiedKFold(3), scaling="maxabs")
    full_passes = 0.0
    for train, _ in StratifiedKFold(3).split(X, y):
        for alpha in alphas:
            full_passes += (
                2 / 3 * MeasureClassifier("f1", alpha=alpha, scaling="maxabs").fit(X[train], y[train]).n_passes_
            )
    assert clf.cv_passes_ <= 0.7 * full_passes
    assert clf.n_passes_ <= 100
    assert (clf.solver_, clf.status_) == ("cost_search", "converged")
    assert clf.gap_ <= clf.tol * clf.lower_bound_
    assert clf.cv_results_["mean_test_score"].shape == (18,)  # three costs
    assert np.isfinite(clf.cv_results_["mean_test_score"]).all()


@pytest.mark.slow
def test_folds_of_wide_rows_choose_the_cost():
    """5 % positives of two kinds on opposite sides: only a fit with heavier positives finds the rarer kind."""
    rng = np.random.default_rng(0)
    n, p = 3000, 1000
    X = rng.standard_normal((n, 2))
    y = (rng.random(n) < 0.05).astype(int)
    rare = rng.random(n) < 0.4
    X[(y == 1) & ~rare, 0] += 2.5
    X[(y == 1) & rare] += [-1.0, 1.5]
    wide = sp.csr_matrix(sp.hstack([sp.csr_matrix(X), sp.csr_matrix((n, p - 2))]))
    options = {"alphas": [1e-1, 1e-2, 1e-3, 1e-5], "scaling": None, "probability": True}
    clf = searched(wide, y, "gmean", **options)
    assert clf.cost_ > 1.0
    assert clf.solver_params is None
    assert clf.score(wide, y) > searched(wide, y, "gmean", solver="plugin", **options).score(wide, y)
    given = searched(wide, y, "gmean", solver="cost_search", solver_params={"cost": clf.cost_}, **options)
    assert (given.cost_, given.alpha_) == (clf.cost_, clf.alpha_)
    np.testing.assert_allclose(given.predict_proba(wide), clf.predict_proba(wide))
    assert given.cv_passes_ < clf.cv_passes_


@pytest.mark.slow
def test_arrays_of_a_device():
    X, y = problem()
    there = array_api_strict.asarray(X, device=array_api_strict.Device("device1"))
    for measure in ("roc_auc", "f1"):
        here, other = searched(X, y, measure, alphas=[1e-1, 1e-3]), searched(there, y, measure, alphas=[1e-1, 1e-3])
        assert other.alpha_ == here.alpha_
        np.testing.assert_allclose(other.cv_results_["mean_test_score"], here.cv_results_["mean_test_score"], atol=2e-3)


def test_ctrl_c_ends_all_folds():
    X, y = problem()
    iterations = []

    def press(progress):
        iterations.append(progress.iteration)
        if len(iterations) > 5:
            raise KeyboardInterrupt

    clf = MeasureClassifierCV(
        alphas=np.logspace(0, -8, 60), tol=1e-9, cv=4, n_jobs=2, solver_params={"callbacks": [press]}
    )
    with pytest.raises(KeyboardInterrupt):
        clf.fit(X, y)
    assert len(iterations) < 60
    assert clf.status_ == "interrupted"
    assert clf.alpha_ in clf.alphas
    assert clf.score(X, y) > 0.6
    assert not hasattr(clf, "cv_results_")


def test_groups_and_iterables_of_folds():
    X, y = problem()
    groups = np.arange(len(y)) // 10
    clf = searched(X, y, cv=GroupKFold(4), groups=groups)
    assert "split3_test_score" in clf.cv_results_
    given = searched(X, y, cv=[(np.arange(300), np.arange(300, 600))])
    assert given.cv_results_["std_test_score"].tolist() == [0.0] * 5
    assert clone(clf).alphas == ALPHAS


def test_wrong_use_is_explained():
    X, y = problem(200)
    for options, words in (
        ({"alphas": []}, "one or more positive numbers"),
        ({"alphas": [1.0, -1.0]}, "alphas"),
        ({"alphas": [1.0, 1]}, "twice"),
        ({"selection": "median"}, "selection"),
        ({"tol": -1.0}, "tol"),
        ({"solver_params": {"checkpoint": "run.ckpt"}}, "checkpoint belongs to one fit"),
    ):
        with pytest.raises(ValueError, match=words):
            searched(X, y, **options)
    rare = np.zeros(200, dtype=int)
    rare[:1] = 1
    with pytest.raises(ValueError, match="no rows of class 1 to train on"):
        MeasureClassifierCV(cv=[(np.arange(1, 200), np.arange(1))]).fit(X, rare)
    with pytest.warns(ConvergenceWarning, match="fits of the folds stopped before they converged"):
        MeasureClassifierCV(alphas=[1e-6, 1e-7], max_iter=1, tol=1e-6, cv=2).fit(X, y)


def contended():
    return [name for name, kind in all_measures().items() if kind.contenders]


@for_each("measure", contended())
def test_the_risk_is_chosen_by_the_same_folds(measure):
    """As two searches with one risk each, of which the better one is taken."""
    X, y = problem()
    clf = searched(X, y, measure)
    risks = all_measures()[measure].contenders
    assert clf.cv_results_["risk"].tolist() == [risk for risk in risks for _ in ALPHAS]
    assert clf.cv_results_["alpha"].tolist() == ALPHAS * len(risks)
    alone = [searched(X, y, measure, risk=risk) for risk in risks]
    np.testing.assert_array_equal(
        clf.cv_results_["mean_test_score"], np.concatenate([each.cv_results_["mean_test_score"] for each in alone])
    )
    best = max(alone, key=lambda each: each.cv_results_["mean_test_score"].max())
    assert (clf.risk_, clf.alpha_) == (best.risk_, best.alpha_)
    np.testing.assert_array_equal(clf.coef_, best.coef_)
    np.testing.assert_array_equal(clf.intercept_, best.intercept_)
    assert clf.cv_passes_ == pytest.approx(sum(each.cv_passes_ for each in alone))
    swapped = searched(X, y, measure, risk=risks[::-1])
    best = max(reversed(alone), key=lambda each: each.cv_results_["mean_test_score"].max())  # the first of equal ones
    assert (swapped.risk_, swapped.alpha_) == (best.risk_, best.alpha_)


@for_each("measure", ["gmean", "f1", "average_precision"])
def test_later_candidates_begin_around_the_best_alpha_so_far(measure):
    X, y = problem(600)
    found = MeasureClassifierCV(measure, cv=3).fit(X, y).cv_results_
    candidates = list(dict.fromkeys(zip(found["risk"], map(str, found["cost"]), strict=True)))
    assert len(candidates) > 1
    rows = [
        (found["risk"] == risk) & (found["cost"].astype(str) == cost) if cost != "nan" else found["risk"] == risk
        for risk, cost in candidates
    ]
    first = found["alpha"][rows[0]]
    assert set(ALPHAS_BY_DEFAULT) <= set(first)
    for k, own in enumerate(rows[1:], start=1):
        before, alphas = np.any(rows[:k], axis=0), found["alpha"][own]
        best = found["alpha"][before][np.argmax(found["mean_test_score"][before])]
        assert best in alphas
        assert len(alphas) < len(first)
        assert len(set(np.round(2 * np.log10(alphas)))) == len(alphas)  # on one grid


@for_each(
    ("edge", "stronger", "expected"),
    [
        (3.16e-4, True, [1e-3, 3.16e-3]),
        (1e-6, False, [3.16e-7, 1e-7]),
        (0.0123, True, [0.0389, 0.123]),
    ],
)
def test_a_grid_is_widened_along_its_own_steps(edge, stronger, expected):
    assert further(edge, stronger) == expected


def test_risks_by_name(tmp_path):
    X, y = problem()
    clf = searched(X, y, "f1", risk=["logistic", "hinge", "squared_hinge"], alphas=[1e-1, 1e-3], probability=True)
    assert set(clf.cv_results_["risk"]) == {"logistic", "hinge", "squared_hinge"}
    clf.save(tmp_path / "model.npz")
    again = load_model(tmp_path / "model.npz")
    assert (again.risk, again.risk_) == (clf.risk_, clf.risk_)
    np.testing.assert_array_equal(again.predict_proba(X), clf.predict_proba(X))
    given = searched(X, y, "average_precision", solver="bundle_ocas", tol=0.5)  # takes the risk made for the measure
    assert set(given.cv_results_["risk"]) == {"average_precision"}
    assert set(searched(X, y, "average_precision", solver="smoothed").cv_results_["risk"]) == {"roc_area"}
    for wrong in ([], ["logistic", "logistic"]):
        with pytest.raises(ValueError, match="a list of one or more different names"):
            searched(X, y, risk=wrong)
    with pytest.raises(ValueError, match="logistc"):
        searched(X, y, risk=["roc_area", "logistc"])


def test_folds_that_do_not_define_the_measure_are_left_out_and_named():
    X, y = problem(300)
    groups = np.repeat(np.arange(10), 30)
    y = np.where(groups == 3, 0, y)
    with pytest.warns(UserWarning, match="roc_auc is not defined on the held-out rows of fold ."):
        clf = MeasureClassifierCV("roc_auc", alphas=[100.0, 1.0, 1e-2], cv=GroupKFold(10), scaling="standard").fit(
            X, y, groups=groups
        )
    table = clf.cv_results_
    splits = np.array([table[f"split{k}_test_score"] for k in range(10)])
    assert np.isnan(splits).all(axis=1).sum() == 1
    np.testing.assert_allclose(table["mean_test_score"], np.nanmean(splits, axis=0))
    assert clf.alpha_ == table["alpha"][np.argmax(table["mean_test_score"])]
    weight = np.where(groups == 4, 0.0, 1.0)
    with pytest.warns(UserWarning, match="is not defined"):
        MeasureClassifierCV("accuracy", alphas=[1.0, 1e-2], cv=GroupKFold(10), scaling="standard").fit(
            X, y, weight, groups
        )
    one_class = [(np.arange(200), np.flatnonzero(groups == 3))]
    with pytest.raises(ValueError, match="not defined on the held-out rows of any fold"):
        MeasureClassifierCV("roc_auc", alphas=[1.0], cv=one_class).fit(X, y)


def test_a_fold_without_weight_of_a_class_is_named():
    X, y = problem(60)
    labels, weight = np.where(y > 0, "yes", "no"), (np.arange(60) < 20).astype(float)
    with pytest.raises(ValueError, match=r"fold 0 of cv=KFold.* only rows of weight 0 of class 'no' to train on"):
        searched(X, labels, weight=weight, cv=KFold(3))
    with pytest.raises(ValueError, match=r"fold 0 of cv=KFold.* no rows of class 'yes' to train on"):
        searched(X, np.sort(labels)[::-1], cv=KFold(2))
    with pytest.raises(ValueError, match="holds no rows out"):
        searched(X, labels, cv=[(np.arange(60), np.arange(0))])


def test_a_number_of_folds_splits_the_rows_of_positive_weight():
    X, y = problem(200)
    weight = (np.arange(200) < 80).astype(float)
    all_rows = searched(X, y, weight=weight, cv=4, scaling=None)
    part = searched(X[:80], y[:80], cv=4, scaling=None)
    for f in range(4):
        scores = (each.cv_results_[f"split{f}_test_score"] for each in (all_rows, part))
        np.testing.assert_allclose(*scores, atol=0.02)  # the fits end where their gap is proved, not at the same point
    few = np.where(np.arange(200) < 80, weight, 0.0) * (np.cumsum(y) * y <= 3)
    with pytest.raises(
        ValueError, match=r"cv=200 cannot split \d+ rows of positive weight, 3 of them of the rarer class"
    ):
        searched(X, y, weight=few, cv=200)


def test_folds_as_masks_and_from_the_end():
    X, y = problem(100)
    half = np.arange(100) % 2 == 0
    lists = searched(X, y, cv=[(np.flatnonzero(half), np.flatnonzero(~half))])
    masks = searched(X, y, cv=[(half, ~half)])
    ends = searched(X, y, cv=[(np.flatnonzero(half) - 100, np.flatnonzero(~half) - 100)])
    for other in (masks, ends):
        np.testing.assert_array_equal(other.cv_results_["mean_test_score"], lists.cv_results_["mean_test_score"])
    with pytest.raises(ValueError, match="needs two folds"):
        searched(X, y, cv=[(half, ~half)], selection="one_standard_error")


def small_signals(*scales, n=900):
    """A large feature that says little, and small ones that say more: only a weak penalty uses them."""
    rng = np.random.default_rng(0)
    y = rng.random(n) < 0.4
    X = rng.standard_normal((n, 1 + len(scales))) + np.outer(y, [0.4, *(1.2 for _ in scales)])
    return (X - X.mean(axis=0)) * [1.0, *scales], y


@for_each("measure", fewer(["roc_auc", "f1"], in_quick=["roc_auc"]))
def test_the_grid_is_widened_while_the_best_alpha_is_at_its_edge(measure):
    """f1 is trained by whole fits in each fold, roc_auc along a path."""
    X, y = small_signals(5e-4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        clf = MeasureClassifierCV(measure, cv=3, random_state=0).fit(X, y)
        old = MeasureClassifierCV(measure, alphas=list(ALPHAS_BY_DEFAULT), cv=3, random_state=0).fit(X, y)
    table = clf.cv_results_
    candidates = {(risk, str(cost)) for risk, cost in zip(table["risk"], table["cost"], strict=True)}
    for risk, cost in candidates:
        own = (table["risk"] == risk) & (table["cost"].astype(str) == cost)
        assert (np.diff(table["alpha"][own]) < 0.0).all()
    assert clf.alpha_ == table["alpha"][np.argmax(table["mean_test_score"])] < 1e-6
    np.testing.assert_allclose(np.diff(np.log10(np.unique(table["alpha"]))), 0.5, atol=0.01)
    assert table["mean_test_score"].max() > old.cv_results_["mean_test_score"].max()
    # The first candidate tries all alphas of the grid, the others begin near its best one.
    own = np.flatnonzero(table["alpha"] == 1e-2)
    np.testing.assert_array_equal(table["mean_test_score"][own], mean_at(old, 1e-2)[: len(own)])


def mean_at(clf, alpha):
    return clf.cv_results_["mean_test_score"][clf.cv_results_["alpha"] == alpha]


@pytest.mark.slow
def test_the_grid_is_widened_to_strong_penalties_too():
    """Twelve copies of noise per row: a strong penalty is the mean of the class, which is the best there is."""
    rng = np.random.default_rng(0)
    y = rng.random(60) < 0.5
    X = 10.0 * rng.standard_normal((60, 200)) + 2.0 * np.outer(y, np.ones(200))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        clf = MeasureClassifierCV("accuracy", risk="squared_hinge", cv=3, random_state=0).fit(X, y)
    alphas = clf.cv_results_["alpha"]
    assert (np.diff(alphas) < 0.0).all()
    assert len(alphas) == len(clf.cv_results_["mean_test_score"]) == len(np.unique(alphas))


def test_the_limit_of_the_grid_gives_a_warning_that_names_the_alpha():
    X, y = small_signals(*np.logspace(-3, -5, 9))
    with pytest.warns(UserWarning, match="The best alpha, 1e-09, is the smallest .*scaling='standard'") as caught:
        clf = MeasureClassifierCV("roc_auc", risk="logistic", cv=3, random_state=0).fit(X, y)
    assert clf.alpha_ == clf.cv_results_["alpha"].min() == 1e-9
    assert all(w.filename == __file__ for w in caught)


def test_alphas_of_the_user_are_not_widened(caplog):
    X, y = small_signals(1e-3)
    with caplog.at_level("INFO", logger="scoreline"), warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        clf = MeasureClassifierCV("accuracy", risk="logistic", alphas=[1e-7, 1.0, 1e-3], cv=3, random_state=0).fit(X, y)
    assert clf.cv_results_["alpha"].tolist() == [1e-7, 1.0, 1e-3]
    assert "the best alpha, 1e-07, is the smallest of alphas" in caplog.text
    caplog.clear()
    with caplog.at_level("INFO", logger="scoreline"):
        MeasureClassifierCV("accuracy", risk="logistic", alphas=[1e-7], cv=3).fit(X, y)
    assert "of alphas" not in caplog.text


def test_a_refit_without_probabilities_forgets_them():
    X, y = problem()
    clf = searched(X, y, probability=True)
    assert not hasattr(clf.set_params(probability=False).fit(X, y), "calibration_")


@pytest.mark.slow
def test_ctrl_c_in_the_first_fit_of_a_widened_grid_stays_ctrl_c(monkeypatch):
    X, y = problem()
    calls = []

    def fit(self, *arguments):
        calls.append(self)
        if hasattr(self, "coef_") and not hasattr(self, "solver_"):
            raise KeyboardInterrupt
        return original(self, *arguments)

    original = MeasureClassifier.fit
    monkeypatch.setattr(MeasureClassifier, "fit", fit)
    monkeypatch.setattr("scoreline.model_selection.folds.Candidate.open_edge", lambda self, decade: "weak")
    with pytest.raises(KeyboardInterrupt):
        MeasureClassifierCV("f1", cv=2, solver="amp").fit(X, y)
    assert len(calls) > 1


def test_a_saved_search_keeps_the_cost_that_the_folds_chose(tmp_path):
    X, y = text_rows()
    clf = searched(X, y, "gmean", alphas=[1e-1, 1e-2], cv=StratifiedKFold(2), scaling="maxabs")
    clf.save(tmp_path / "model.npz")
    loaded = load_model(tmp_path / "model.npz")
    assert loaded.solver_params == {"cost": clf.cost_}
    assert loaded.fit(X, y).cost_ == clf.cost_
