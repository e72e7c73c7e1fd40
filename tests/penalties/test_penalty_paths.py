"""Cross-validation over alpha and l1_ratio: grids below the largest alpha, warm starts, and what is refused."""

import warnings

import numpy as np
import pytest

from cases import for_each
from scoreline import MeasureClassifier, MeasureClassifierCV, load_model
from scoreline.objective import Objective
from scoreline.operators import as_operator
from scoreline.penalties import BoundedPenalty, ElasticNetPenalty
from scoreline.risks.registry import get_risk
from scoreline.solvers import ProximalSolver
from scoreline.solvers.common.path import alpha_max, solve_path


def sparse_truth(n=200, p=30, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    return X, (X[:, :3] @ np.array([2.0, -1.5, 1.0]) + rng.standard_normal(n) > 0.5).astype(int)


def searched(measure, X, y, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return MeasureClassifierCV(measure, cv=3, **options).fit(X, y)


def test_l1_ratios_are_chosen_by_the_folds(tmp_path):
    X, y = sparse_truth()
    alphas = [0.1, 0.03]
    clf = searched("roc_auc", X, y, penalty="elastic_net", l1_ratios=[0.0, 0.5, 1.0], alphas=alphas)
    table = clf.cv_results_
    assert sorted(set(table["l1_ratio"])) == [0.0, 0.5, 1.0]
    assert len(table["alpha"]) == 6
    best = int(np.argmax(table["mean_test_score"]))
    assert (clf.alpha_, clf.l1_ratio_) == (table["alpha"][best], table["l1_ratio"][best])
    for ratio in (0.5, 1.0):  # each share has the values that it has alone
        alone = searched("roc_auc", X, y, penalty="elastic_net", penalty_params={"l1_ratio": ratio}, alphas=alphas)
        assert alone.l1_ratio_ == ratio
        own = table["mean_test_score"][table["l1_ratio"] == ratio]
        np.testing.assert_allclose(own, alone.cv_results_["mean_test_score"], atol=1e-12)
    clf.save(tmp_path / "model.npz")
    again = load_model(tmp_path / "model.npz")
    assert again.penalty_params == {"l1_ratio": clf.l1_ratio_}
    assert again.objective(X, y) == pytest.approx(clf.objective_, rel=1e-10)
    plain = MeasureClassifier("roc_auc", penalty="elastic_net", penalty_params={"l1_ratio": clf.l1_ratio_})
    plain.set_params(alpha=clf.alpha_, risk=clf.risk_, solver=clf.solver_).fit(X, y)
    np.testing.assert_array_equal(plain.coef_, clf.coef_)


@for_each("options", [{"penalty": "elastic_net"}, {"penalty": "group", "scaling": "standard"}])
def test_the_grid_begins_at_the_largest_alpha(options):
    X, y = sparse_truth()
    if options["penalty"] == "group":
        options = {**options, "penalty_params": {"groups": np.arange(30).reshape(-1, 3).tolist()}}
    clf = searched("roc_auc", X, y, **options)
    alphas = clf.cv_results_["alpha"]
    assert len(alphas) >= 7
    assert (np.diff(alphas) < 0.0).all()
    for factor, empty in ((1.01, True), (0.98, False)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fit = MeasureClassifier("roc_auc", alpha=factor * alphas[0] / 0.999, tol=1e-6, **options).fit(X, y)
        assert (not fit.coef_.any()) == empty
    assert np.count_nonzero(clf.coef_) < 30
    assert clf.cv_results_["mean_test_score"].max() > 0.9
    assert searched("roc_auc", X, y).cv_results_["alpha"][0] >= 1.0, "the squared norm keeps its grid"


def test_warm_starts_take_fewer_passes():
    X, y = sparse_truth(400, 60)
    penalty = BoundedPenalty.of(ElasticNetPenalty(0.9), 60)
    for risk in ("logistic", "roc_area"):
        J = Objective(as_operator(X), get_risk(risk).prepare(np.where(y == 1, 1, -1)), 1.0, penalty)
        alphas = alpha_max(J) * 10.0 ** -np.linspace(0.1, 2.0, 8)
        warm, passes = [], J.n_passes
        for _, result in solve_path(J, alphas, ProximalSolver(tol=1e-3)):
            warm.append(result)
        passes = J.n_passes - passes
        cold = [ProximalSolver(tol=1e-3).solve(J.with_alpha(alpha)) for alpha in alphas]
        assert passes < 0.8 * sum(result.n_passes for result in cold)
        for one, other in zip(warm, cold, strict=True):
            assert one.lower_bound <= other.objective
            assert other.lower_bound <= one.objective


@for_each(
    ("options", "words"),
    [
        ({"l1_ratios": []}, ["l1_ratios=[]", "one or more"]),
        ({"l1_ratios": [0.5, 0.5], "penalty": "elastic_net"}, ["different"]),
        ({"l1_ratios": [0.5]}, ["'elastic_net'", "penalty='l2'"]),
        ({"l1_ratios": [0.5], "penalty": ElasticNetPenalty(0.1)}, ["a penalty by name"]),
        ({"l1_ratios": [0.5, 2.0], "penalty": "elastic_net"}, ["l1_ratio=2.0", "at most 1"]),
    ],
)
def test_wrong_use_is_an_error_before_the_first_pass(options, words):
    X, y = sparse_truth(20, 3)
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the words are checked below
        MeasureClassifierCV(**options).fit(X, y)
    assert all(word in str(caught.value) for word in words), str(caught.value)
