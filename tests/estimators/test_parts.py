"""Rows in parts: the same classifier for every measure and solver as with the rows in one memory."""

import gc
import tracemalloc
import warnings
from itertools import pairwise, product

import numpy as np
import pytest
import scipy.sparse as sp

from cases import fewer, for_each
from problems import overlapping_rows
from scoreline import MeasureClassifier, list_measures
from scoreline.distributed import Layout, Ref
from scoreline.distributed.cluster import InlineCluster, Placement
from scoreline.distributed.parts_operator import PartsOperator
from scoreline.distributed.score_space import Space as BlockSpace
from scoreline.measures import get_measure
from scoreline.objective import Objective
from scoreline.operators import as_operator
from scoreline.risks.registry import all_risks, get_risk
from scoreline.solvers import EarlyStopping
from scoreline.solvers.registry import all_solvers
from scoreline.solvers.smoothed import SmoothedSolver
from tiers import tiered


def in_parts(X, cuts, workers=2):
    """Rows cut at `cuts`, the last part first: parts need not come in the order of the rows."""
    cluster, edges = InlineCluster(), [0, *cuts, X.shape[0]]
    spans = list(pairwise(edges))[::-1]
    placements = [Placement(f"worker-{k % workers}", 1) for k in range(len(spans))]
    layout = Layout(cluster, placements, [(span,) for span in spans])
    parts = [
        Ref(cluster.submit(lambda rows: as_operator(rows, check_finite=False), X[a:b], placement=placement))
        for (a, b), placement in zip(spans, placements, strict=True)
    ]
    operator = PartsOperator(layout, parts)
    assert operator.inspect() is None
    return operator


def problem(n=900, p=8, seed=0):
    return overlapping_rows(n, p, seed, 4, 2, share=0.2, separation=0.7, flipped=0.05)


def same(a, b, digits=7):
    np.testing.assert_allclose(b.coef_, a.coef_, rtol=10.0**-digits, atol=1e-9 * np.abs(a.coef_).max())
    np.testing.assert_allclose(b.intercept_, a.intercept_, rtol=10.0**-digits, atol=1e-9)
    assert (a.solver_, a.risk_, a.n_iter_, a.cost_) == (b.solver_, b.risk_, b.n_iter_, pytest.approx(b.cost_))
    if a.gap_ is not None:
        assert b.objective_ == pytest.approx(a.objective_, rel=1e-9)
        assert b.lower_bound_ == pytest.approx(a.lower_bound_, rel=1e-6, abs=1e-9)


MEASURES = [info.name for info in list_measures()]


@for_each("measure, weighted", fewer(product(MEASURES, [False, True]), in_quick=[("roc_auc", True), ("f1", False)]))
def test_every_measure_trains_as_in_memory(measure, weighted):
    X, y = problem()
    weight = np.random.default_rng(0).integers(0, 3, len(y)).astype(float) if weighted else None
    options = {"scaling": "standard", "random_state": 0, "solver_params": None}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        here = MeasureClassifier(measure, **options).fit(X, y, weight)
        operator = in_parts(X, [100, 101, 500])
        there = MeasureClassifier(measure, **options).fit(operator, y, weight)
    same(here, there)
    assert there.history_["bytes"][-1] > 0.0
    assert there.score(operator, y, weight) == pytest.approx(here.score(X, y, weight), abs=1e-12)
    assert there.objective(operator, y, weight) == pytest.approx(here.objective(X, y, weight), rel=1e-9)
    np.testing.assert_allclose(there.decision_function(operator), here.decision_function(X), rtol=1e-6, atol=1e-8)
    np.testing.assert_array_equal(
        there.tune_threshold(operator, y).intercept_.round(9), here.tune_threshold(X, y).intercept_.round(9)
    )


PAIRS = [
    (solver.name, name)
    for solver in all_solvers().values()
    if solver.certified
    for name, risk in all_risks().items()
    if all(solver.serves(variant) for variant in risk.variants()[:1])
]


@for_each("solver, risk", tiered(PAIRS, strength=1))
def test_every_solver_trains_every_risk_as_in_memory(solver, risk):
    """Entropy over labellings costs O(n^2): few rows. Where runs end early, both end at the same place."""
    measure = next(m for m in MEASURES if risk in {i.name: i for i in list_measures()}[m].risks)
    if not all_solvers()[solver].trains(type(get_measure(measure))):
        measure = next(m for m in ("f1", "gmean", "roc_auc") if risk in {i.name: i for i in list_measures()}[m].risks)
    X, y = problem(60 if "entropy" in risk else 300, 6)
    options = {"risk": risk, "solver": solver, "max_iter": 12, "threshold": "train", "random_state": 0, "alpha": 1e-2}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        operator = in_parts(X, [10, 25, 30])
        if solver == "hybrid":
            with pytest.raises(TypeError, match="products restricted to rows"):
                MeasureClassifier(measure, **options).fit(operator, y)
            return
        here = MeasureClassifier(measure, **options).fit(X, y)
        there = MeasureClassifier(measure, **options).fit(operator, y)
    same(here, there)


@for_each(
    "measure, scaling",
    tiered(
        product(["roc_auc", "accuracy", "balanced_accuracy"], [None, "maxabs", "standard", "robust", "quantile"]),
        strength=1,
    ),
)
def test_moments_of_parts_are_those_of_all_rows(measure, scaling):
    X, y = problem()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        models = [
            MeasureClassifier(measure, solver="moments", scaling=scaling).fit(rows, y)
            for rows in (X, in_parts(X, [100, 101, 500]))
        ]
    same(*models, digits=5 if measure == "balanced_accuracy" else 7)  # a direction that a search along an arc finds
    here, there = (model.moments_report_ for model in models)
    assert there["empirical"] == pytest.approx(here["empirical"], abs=1e-12)
    # Shares and moments of scores change as much as the coefficients do, which `same` allows.
    assert there["positive"] == pytest.approx(
        here["positive"], rel=1e-4 if measure == "balanced_accuracy" else 1e-7, abs=1e-7
    )
    assert models[1].history_["bytes"][0] > 0.0


@pytest.mark.slow
def test_moments_of_many_columns_are_never_written_down():
    rng = np.random.default_rng(0)
    X = sp.random_array((300, 5000), density=0.01, random_state=rng, format="csr")
    y = np.where(np.asarray(X[:, :50].sum(axis=1)).ravel() + 0.1 * rng.standard_normal(300) > 0.5, 1, 0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        here, there = (MeasureClassifier(solver="moments").fit(rows, y) for rows in (X, in_parts(X, [100, 220])))
    np.testing.assert_allclose(there.coef_, here.coef_, rtol=1e-6, atol=1e-8 * np.abs(here.coef_).max())


@for_each(
    "measure", fewer(["qmean", "gmean", "hmean", "min_tpr_tnr", "f1", "jaccard", "gower_legendre"], in_quick=["qmean"])
)
def test_averaged_passes_come_close_to_passes_over_all_rows(measure):
    """A pass over parts is not one over all rows; its measure on the training rows may lose little."""
    X, y = problem(4000, 6)
    solver = "stamp" if measure in ("f1", "jaccard", "gower_legendre") else "spade"
    scores = []
    for rows in (X, in_parts(X, [1500, 2500]), in_parts(X, [])):
        clf = MeasureClassifier(measure, solver=solver, random_state=0, solver_params={"passes": 20}).fit(rows, y)
        trial_passes = (
            6 if solver == "stamp" and measure != "gower_legendre" else 0
        )  # a second start, for a fifth of the passes
        assert clf.n_passes_ == 20 + 2 + trial_passes  # units, passes, cut
        scores.append(clf.score(X, y))
    assert scores[1] >= scores[0] - 0.01
    assert scores[2] >= scores[0] - 0.01


@pytest.mark.slow
@for_each("risk", ["hinge", "roc_area", "prbep"])
def test_vectors_are_let_go_at_once(risk):
    """Peak memory in vectors of all rows, without help of the garbage collector: tasks must leave no cycles behind."""
    n = 200_000
    X = np.random.default_rng(0).standard_normal((n, 3))
    y = np.where(X[:, 0] + np.random.default_rng(1).standard_normal(n) > 2.5, 1, -1)
    operator = in_parts(X, [n // 2])
    objective = Objective(operator, get_risk(risk).prepare(operator.aligned(y), None, BlockSpace()), 1e-5)
    SmoothedSolver(init="zero", max_iter=2, precondition=False).solve(objective)
    gc.collect()
    gc.disable()
    tracemalloc.start()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            SmoothedSolver(init="zero", max_iter=12, precondition=False, tol=1e-9).solve(objective)
        peak = tracemalloc.get_traced_memory()[1] / (8.0 * n)
    finally:
        tracemalloc.stop()
        gc.enable()
    assert peak < 12.0


def test_one_weight_for_all_rows_changes_nothing():
    X, y = problem()
    plain = MeasureClassifier("f1", random_state=0).fit(X, y)
    same(plain, MeasureClassifier("f1", random_state=0).fit(in_parts(X, [300]), y, 1.0))


def test_streams_take_moments_of_parts_and_refuse_rows_one_by_one():
    X, y = problem()
    weight = np.full(len(y), 2.0)
    here = MeasureClassifier("roc_auc", solver="moments").partial_fit(X, y, [0, 1], weight)
    there = MeasureClassifier("roc_auc", solver="moments").partial_fit(in_parts(X, [100, 600]), y, [0, 1], weight)
    np.testing.assert_allclose(there.coef_, here.coef_, rtol=1e-9)
    with pytest.raises(TypeError, match="is on a cluster: use fit"):
        MeasureClassifier("gmean", solver="spade").partial_fit(in_parts(X, [100]), y, classes=[0, 1])


@pytest.mark.slow
@for_each("measure", ["roc_auc", "f1", "accuracy"])
def test_probabilities_and_early_stopping_as_in_memory(measure):
    X, y = problem()
    options = {"random_state": 0, "scaling": "standard", "tol": 1e-4}
    here = MeasureClassifier(measure, probability=True, **options).fit(X, y)
    there = MeasureClassifier(measure, probability=True, **options).fit(in_parts(X, [100, 500]), y)
    np.testing.assert_allclose(there.calibration_, here.calibration_, rtol=2e-3)  # f1: several fits, each to 1e-4
    params = {"early_stopping": EarlyStopping((X[::3], y[::3]), patience=3), "init": "zero"}
    here = MeasureClassifier(measure, solver_params=params, **options).fit(X, y)
    there = MeasureClassifier(measure, solver_params=params, **options).fit(in_parts(X, [100, 500]), y)
    np.testing.assert_allclose(there.history_["validation"], here.history_["validation"], atol=1e-6)
    with pytest.raises(TypeError, match="cannot be read row by row"):
        MeasureClassifier(measure, solver_params={"early_stopping": 0.1}).fit(in_parts(X, [100, 500]), y)
