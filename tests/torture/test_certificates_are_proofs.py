"""Certificates are proofs: lower bound <= minimum <= objective, J computed without rounding, for every risk and solver.

benchmarks/certificates.py does the same ten thousand times; a number that fails there can be given to `run` here.
"""

import warnings
from fractions import Fraction
from itertools import product

import certificate_trials as trials
import numpy as np
import penalty_trials
import pytest
from exact_objectives import FORMULAS, exact_features, exact_objective, exact_risk, fraction
from sklearn.exceptions import ConvergenceWarning

from cases import for_each
from scoreline import MeasureClassifier
from scoreline import objective as objective_module
from scoreline.objective import Objective, summation_error
from scoreline.operators import InterceptOperator, as_operator
from scoreline.operators.wrappers import scaled
from scoreline.penalties import BoundedPenalty, L2Penalty
from scoreline.risks.registry import all_risks, get_risk
from scoreline.solvers import EarlyStopping
from scoreline.solvers.registry import all_solvers
from tiers import TIER, tiered

ESTIMATED = ["roc_auc", "f1", "prbep", "accuracy", "average_precision", "partial_roc_auc"]
FOUND = [6705]  # problems of benchmarks/certificates.py that were violations once
FOUND_WITH_PENALTIES = [157, 173, 275, 277, 299]  # the same, with --penalties
ROUNDS = {"quick": 1, "all": 5, "soak": 50}[TIER]  # a round has one problem per solver and risk


def test_every_risk_has_an_exact_formula():
    assert set(FORMULAS) == set(all_risks()), "write the definition of a new risk into exact_objectives.py"


@for_each("name", sorted(all_risks()))
def test_exact_risks_agree_with_the_reference(name):
    """The second writing of every definition is that of the risk: both are compared at random and at tied scores."""
    rng = np.random.default_rng(5)
    for risk in all_risks()[name].variants():
        for draw in range(3):
            z = rng.standard_normal(11) if draw else rng.integers(-2, 3, 11) / 2.0
            y = np.where(np.arange(11) % 3 == 0, 1, -1)
            is_integer = draw == 1 or not risk.real_weights
            weight = None if draw == 0 else rng.integers(1, 4, 11).astype(float) if is_integer else rng.random(11) + 0.1
            value = float(exact_risk(risk, z, y, weight))
            # References add 11 to 121 numbers of size 1 in double precision.
            assert risk.reference(z, y, weight)[0] == pytest.approx(value, rel=1e-12, abs=1e-14)


@for_each("number", [*range(ROUNDS * len(trials.PAIRS)), *FOUND])
def test_bounds_are_proofs(number):
    assert not trials.run(number).wrong


@for_each("number", [*range(0, 324, 9), *range(324 * (ROUNDS - 1)), *FOUND_WITH_PENALTIES])
def test_bounds_with_penalties_are_proofs(number):
    assert not penalty_trials.run(number).wrong


def test_planes_of_many_equal_rows():
    """A partial ROC area weighs tied rows by one share, and 25,000 of those round to the same side.

    The plane at w = 0 lay 6.0e-13 above R(0) = 1, and an allowance of 8 eps sqrt(n) took off 5.6e-13.
    """
    n = 25_000
    y = np.where(np.random.default_rng(4).random(n) < 0.01, 1, -1)
    objective = Objective(
        as_operator(np.repeat([[0.1], [-0.9]], n // 2, axis=0)), get_risk("partial_roc").prepare(y), 1.0
    )
    for width in (0.0, 1e-6, 0.03, 1.0):
        point = objective.at(np.zeros(1), np.zeros(n), width / objective.risk.ramp_scale)
        allowance = summation_error(n) * objective.plane_size(point)
        assert abs(point.risk.plane - 1.0) <= allowance
        assert abs(point.objective - 1.0) <= allowance


def test_summation_error_covers_the_worst_sums():
    """Of n equal numbers added one by one, and of n numbers whose roundings all go up."""
    for n in (3, 10, 100, 1000, 10_000, 100_000):
        for value in (0.1, 1 / 3, 0.7, 1.0 + 2.0**-52):
            total = np.cumsum(np.full(n, value))[-1]  # cumsum adds one by one
            exact = n * Fraction(value)
            assert abs(fraction(total) - exact) <= exact * fraction(summation_error(n))
        numbers = np.append(1.0, np.full(n - 1, 1.5 * 2.0**-53))  # each is rounded up to an eps
        total, exact = np.cumsum(numbers)[-1], sum(map(Fraction, numbers.tolist()), Fraction(0))
        assert abs(fraction(total) - exact) <= exact * fraction(summation_error(n))


def test_the_check_can_fail(monkeypatch):
    """Without an allowance some bounds of these problems do lie above J: the comparison is sharp enough to see it."""
    monkeypatch.setattr(objective_module, "summation_error", lambda n: -1e-13)
    assert any(trials.run(number).wrong for number in range(0, len(trials.PAIRS), 3))


def wide_problem(n, p):
    rng = np.random.default_rng(p)
    return rng.standard_normal((n, p)) * 10.0 ** rng.integers(-2, 3, p), np.where(np.arange(n) % 2, 1, -1)


@for_each("n, p", [(2, 300), (3, 4000)])
@for_each("risk", ["logistic", "hinge", "roc_area_squared"])
def test_far_more_features_than_rows(n, p, risk):
    """|v|^2 is a sum of p squares: its rounding is not that of n rows."""
    X, y = wide_problem(n, p)
    kind = get_risk(risk)
    objective = Objective(as_operator(X), kind.prepare(y), 100.0)
    name = "lbfgs" if kind.smooth else "smoothed"
    result = all_solvers()[name](tol=1e-14, max_iter=100).solve(objective)
    assert fraction(result.lower_bound) <= exact_objective(kind, exact_features(None, X), y, None, result.w, 100.0)


# What an estimator reports is about the scaled problem: J of w in the units of scaled features.
def small_rows(seed=0, n=24, p=3):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) * [1.0, 30.0, 0.01] + [0.0, 200.0, 5.0]
    y = np.where(X @ [1.0, 0.03, 50.0] + rng.standard_normal(n) > np.median(X @ [1.0, 0.03, 50.0]), 1, -1)
    return X, y


def coefficients_in_units(clf, X, weight, needs_intercept):
    """Return the operator that the fit was about, and its w: coef_ and trained_intercept_ in those units, exactly computed."""
    operator = scaled(as_operator(X), clf.scaling, weight)
    if needs_intercept:
        operator = InterceptOperator(operator, clf.intercept_scaling)
    return operator


@for_each("measure, scaling", tiered(product(ESTIMATED, [None, "maxabs", "standard"]), strength=1))
def test_estimators_report_proofs_of_the_scaled_problem(measure, scaling):
    X, y = small_rows()
    clf = MeasureClassifier(measure, scaling=scaling, alpha=1e-3, tol=1e-9, solver="auto", risk="auto", max_iter=300)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        clf.fit(X, y)
    risk = get_risk(clf.risk_, trials_measure(clf))
    weight = None if clf.cost_ == 1.0 else np.where(y > 0, clf.cost_, 1.0)
    operator = coefficients_in_units(clf, X, None, risk.shift == "needed")
    # An intercept has no penalty, where the solver leaves it out.
    free = risk.shift == "needed" and all_solvers()[clf.solver_].takes(("weights",))
    penalty = BoundedPenalty.of(L2Penalty(), X.shape[1]).with_constant(0.0) if free else None
    objective = Objective(operator, risk.prepare(y, weight), clf.alpha, penalty)
    best = all_solvers()[
        "bundle_ocas" if not (risk.smooth or risk.smoothable) else "lbfgs" if risk.smooth else "smoothed"
    ](tol=1e-13, max_iter=400).solve(objective)
    rows = exact_features(operator, X)
    least = exact_objective(risk, rows, y, weight, best.w, clf.alpha)
    if free:
        least -= fraction(clf.alpha) / 2 * fraction(best.w[-1]) ** 2
    assert fraction(clf.lower_bound_) <= least
    assert clf.objective_ >= best.lower_bound
    # J of the coefficients in original units, times the penalty of the scaled ones: a different order of the same sums.
    assert clf.objective(X, y) == pytest.approx(clf.objective_, rel=1e-9)
    assert clf.gap_ == clf.objective_ - clf.lower_bound_


def trials_measure(clf):
    from scoreline.measures import get_measure

    return get_measure(clf.measure, clf.measure_params)


def test_warm_starts_and_early_stopping_report_proofs():
    X, y = small_rows(1, 60)
    risk = get_risk("roc_area")
    clf = MeasureClassifier(scaling="standard", alpha=1e-3, tol=1e-6, warm_start=True)
    for alpha in (1.0, 1e-3, 1e-5, 1e-1):
        clf.set_params(alpha=alpha).fit(X, y)
        operator = scaled(as_operator(X), "standard", None)
        best = all_solvers()["bundle"](tol=1e-10).solve(Objective(operator, risk.prepare(y), alpha))
        assert fraction(clf.lower_bound_) <= exact_objective(risk, exact_features(operator, X), y, None, best.w, alpha)
        assert clf.objective_ >= best.lower_bound
    validation = small_rows(2, 40)
    stopped = MeasureClassifier(
        scaling="standard",
        alpha=1e-5,
        tol=1e-9,
        solver_params={"early_stopping": EarlyStopping(validation=validation, patience=1)},
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        stopped.fit(X, y)
    best = all_solvers()["smoothed"](tol=1e-10).solve(Objective(operator, risk.prepare(y), 1e-5))
    assert stopped.lower_bound_ <= best.objective
    assert stopped.objective_ >= best.lower_bound
