"""The multivariate hinge smoothed by entropy: all labellings, its distance from the hinge, its solvers, its limits."""

import itertools
import warnings
from functools import partial

import numpy as np
import pytest
from scipy.special import logsumexp

from cases import for_each
from problems import linear_rows
from scoreline import CountMeasure, MeasureClassifier
from scoreline.measures import get_measure
from scoreline.objective import Objective
from scoreline.operators import as_operator
from scoreline.risks import ContingencyRisk, EntropyContingencyRisk
from scoreline.solvers import AcceleratedSolver, BundleOcasSolver, LbfgsSolver

SHARED = [name for name in ContingencyRisk.measures if not name.endswith("at_k")]
OWN = ["mcc", "kappa", "recall_at_precision"]


def rows(n, seed, share=0.4):
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(n) < share, 1, -1)
    y[:2] = 1, -1
    return rng.standard_normal(n) * 2.0, y


data = partial(linear_rows, 150, 5, seed=3, shift=1.0)


@for_each("name", [*SHARED, *OWN])
def test_it_is_the_soft_maximum_over_all_labellings(name):
    z, y = rows(9, seed=1)
    measure = get_measure(name)
    prepared = EntropyContingencyRisk(measure).prepare(y)
    labellings = np.array(list(itertools.product((-1, 1), repeat=len(y))))
    if name == "prbep":
        labellings = labellings[(labellings > 0).sum(axis=1) == (y > 0).sum()]
    loss = np.array([1.0 - measure.value(y, labelling.astype(float)) for labelling in labellings])
    exponents = (loss + (labellings - y) @ z / len(y)) / prepared.mu
    total = logsumexp(exponents)
    result = prepared.evaluate(z)
    # 512 terms in another order: the rounding of a few sums of numbers of the size of log Z.
    assert result.value == pytest.approx(prepared.mu * total, rel=1e-13)
    expected = np.exp(exponents - total) @ (labellings - y) / len(y)
    np.testing.assert_allclose(result.grad, expected, atol=1e-13)
    assert prepared.mu * np.log(len(labellings)) == pytest.approx(0.05, rel=1e-12)


@for_each("within", [0.5, 0.05, 1e-3])
@for_each("name", SHARED)
def test_it_lies_above_the_hinge_by_no_more_than_asked(name, within):
    for n, seed, size in ((2, 0, 1.0), (40, 1, 0.1), (40, 2, 30.0), (61, 3, 1.0)):
        z, y = rows(n, seed)
        hinge = ContingencyRisk(name).prepare(y).value(size * z)
        smooth = EntropyContingencyRisk(name, within=within).prepare(y).value(size * z)
        assert hinge - 1e-12 * max(1.0, hinge) <= smooth <= hinge + within + 1e-12 * max(1.0, hinge)
    # Without scores all labellings of equal loss count alike: the bound is nearly reached where all losses are equal.


@for_each("name", [*SHARED, *OWN])
def test_it_bounds_the_loss_of_the_predictions(name):
    measure = get_measure(name)
    for seed in range(20):
        z, y = rows(25, seed, share=0.2 + 0.6 * (seed % 2))
        if name == "prbep":
            z = z - np.sort(z)[-int((y > 0).sum()) - 1]  # as many predicted as there are
        assert EntropyContingencyRisk(measure).prepare(y).value(z) >= 1.0 - measure.value(y, z) - 1e-12


@for_each("solver", [LbfgsSolver, AcceleratedSolver])
@for_each("name", ["f1", "gmean", "mcc"])
def test_solvers_for_smooth_risks_prove_its_optimum(solver, name):
    X, y = data()
    objective = Objective(as_operator(X), EntropyContingencyRisk(name).prepare(y), 1e-2)
    result = solver(tol=1e-4).solve(objective)
    assert result.status == "converged"
    assert result.objective - result.lower_bound <= 1e-4 * result.lower_bound
    other = LbfgsSolver(tol=1e-7).solve(objective)
    assert result.lower_bound <= other.objective
    assert other.lower_bound <= result.objective


def test_its_optimum_is_near_that_of_the_hinge():
    """min J <= min J_smooth <= min J + within: the smoothed F1 brackets what cutting planes find."""
    X, y = data()
    hard = BundleOcasSolver(tol=1e-5).solve(Objective(as_operator(X), ContingencyRisk("f1").prepare(y), 1e-2))
    for within in (0.1, 0.01):
        risk = EntropyContingencyRisk("f1", within=within).prepare(y)
        smooth = LbfgsSolver(tol=1e-5).solve(Objective(as_operator(X), risk, 1e-2))
        assert hard.lower_bound <= smooth.objective
        assert smooth.lower_bound <= hard.objective + within
        # The minimiser of the smoothed risk is within that of the hinge, too.
        at_smooth = Objective(as_operator(X), ContingencyRisk("f1").prepare(y), 1e-2).value(smooth.w)
        assert at_smooth <= hard.objective + within + smooth.gap


def test_a_function_of_ones_own_is_trained_in_units_of_its_spread():
    X, y = data()
    wide, narrow = (
        CountMeasure(lambda tp, fp, fn, tn, a=a: a * (50.0 * tp - 10.0 * fp), name="profit") for a in (1.0, 1e6)
    )
    z = np.random.default_rng(0).standard_normal(len(y))
    values = [EntropyContingencyRisk(measure).prepare(y).value(z) for measure in (wide, narrow)]
    assert values[0] == pytest.approx(values[1], rel=1e-12)
    fitted = MeasureClassifier(wide, risk="contingency_entropy", alpha=1e-2).fit(X, y)
    assert fitted.solver_ == "lbfgs"
    assert fitted.status_ == "converged"
    assert fitted.score(X, y) > 0.5 * 50.0 * (y > 0).sum()


@for_each("solver", ["auto", "lbfgs", "accelerated"])
def test_the_estimator_trains_it(solver):
    X, y = data()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted = MeasureClassifier("f1", risk="contingency_entropy", solver=solver, alpha=1e-2).fit(X, y)
    assert fitted.risk_ == "contingency_entropy"
    assert fitted.objective(X, y) == pytest.approx(fitted.objective_, rel=1e-12)
    plain = MeasureClassifier("f1", risk="logistic", alpha=1e-2).fit(X, y)
    assert fitted.score(X, y) >= plain.score(X, y) - 0.05


def test_many_rows_are_refused_with_the_alternatives():
    n = EntropyContingencyRisk.most_rows + 1
    y = np.where(np.arange(n) < 3, 1, -1)
    with pytest.raises(ValueError, match=r"at most 5000 .* got 5001.*risk='auto'"):
        EntropyContingencyRisk("f1").prepare(y)
    with pytest.raises(ValueError, match=r"copies included.*got 6000"):
        EntropyContingencyRisk("f1").prepare([1, -1], [3000, 3000])


def test_measures_that_it_does_not_know_are_refused():
    for name in ("roc_auc", "precision_at_k", "average_precision"):
        with pytest.raises(ValueError, match=f"'{name}' is not one of confusion counts"):
            EntropyContingencyRisk(name)
    for within in (0.0, -1.0, np.nan, "x"):
        with pytest.raises(ValueError, match="within"):
            EntropyContingencyRisk("f1", within=within)


def test_a_function_that_is_not_finite_everywhere_is_refused():
    broken = CountMeasure(lambda tp, fp, fn, tn: np.log(np.maximum(tp, 0.0)), name="log_tp")
    with np.errstate(divide="ignore"), pytest.raises(ValueError, match="'log_tp' is not finite for some counts"):
        EntropyContingencyRisk(broken).prepare([1, 1, -1])


def test_large_scores_keep_the_plane_below():
    """Chances lose digits with the size of the scores; the plane gives way instead of lying above the risk."""
    rng = np.random.default_rng(5)
    for size in (1e3, 1e6, 1e9, 1e12):
        z, y = rows(30, seed=int(np.log10(size)))
        z = np.round(z) * size  # ties, so that chances are not all 0 or 1
        prepared = EntropyContingencyRisk("f1").prepare(y)
        result = prepared.evaluate(z)
        for other in (z, -z, np.zeros(len(z)), z + size * rng.standard_normal(len(z))):
            value = prepared.value(other)
            above = result.plane + float(result.grad @ other) - value
            assert above <= 1e-12 * max(abs(result.plane), value, size)
