"""The bound is a bound in floating point, checked in exact rational arithmetic; nothing hangs or overflows."""

import warnings
from fractions import Fraction

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from cases import crossed, for_each, seeds
from scoreline import MeasureClassifier
from scoreline.measures import get_measure
from scoreline.objective import Objective
from scoreline.operators import InterceptOperator, as_operator
from scoreline.risks.registry import all_risks, get_risk
from scoreline.solvers import AcceleratedSolver, BundleLineSearchSolver, LbfgsSolver, SmoothedSolver, lbfgs
from scoreline.solvers.common import base


def exact_objective(X, y, w, alpha, risk, weight=None):
    """J(w) as a fraction, with all floats taken literally (risks that are piecewise polynomial)."""
    w = [Fraction(float(v)) for v in w]
    z = [sum(Fraction(float(x)) * v for x, v in zip(row, w, strict=True)) for row in X]
    s = [Fraction(1)] * len(z) if weight is None else [Fraction(float(v)) for v in weight]
    penalty = Fraction(float(alpha)) / 2 * sum(v * v for v in w)
    if risk == "roc_area":
        above, below = [[(v, q) for v, q, t in zip(z, s, y, strict=True) if t == side] for side in (1, -1)]
        total = sum(p * q * max(Fraction(0), 1 - a + b) for a, p in above for b, q in below)
        return penalty + total / (sum(p for _, p in above) * sum(q for _, q in below))
    losses = [max(Fraction(0), 1 - int(t) * v) for v, t in zip(z, y, strict=True)]
    if risk == "squared_hinge":
        losses = [m * m / 2 for m in losses]
    return penalty + sum(q * m for q, m in zip(s, losses, strict=True)) / sum(s)


@for_each(
    "risk, offset, alpha",
    crossed(["hinge", "roc_area", "squared_hinge"], [0.0, 1e4, 1e8, 1e12], [1e-8, 1e-3, 1e3], strength=1),
)
def test_the_bound_stays_below_the_exact_objective(risk, offset, alpha):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((30, 3)) + offset
    y = np.where(rng.random(30) < 0.4, 1, -1)
    objective = Objective(as_operator(X), get_risk(risk).prepare(y), alpha)
    solver = LbfgsSolver if get_risk(risk).smooth else SmoothedSolver
    result = solver(tol=1e-13, max_iter=300).solve(objective)
    exact = exact_objective(X, y, result.w, alpha, risk)
    assert Fraction(result.lower_bound) <= exact
    assert result.lower_bound <= result.objective
    # The allowance must not eat the proof where nothing cancels.
    if offset == 0.0 and alpha == 1e-3:
        assert result.gap <= 1e-9 * result.objective


@for_each("risk", ["hinge", "roc_area", "squared_hinge"])
@for_each("seed", seeds(100))
def test_bounds_are_proofs(risk, seed):
    """The bound lies below exact J at the solution and at other points, for data of all kinds."""
    rng = np.random.default_rng(seed)
    n, p = int(rng.integers(3, 25)), int(rng.integers(1, 6))
    X = rng.standard_normal((n, p)) * 10.0 ** rng.integers(-3, 4, p) + rng.choice([0.0, 1.0, 1e3, 1e6])
    if seed % 3 == 0:
        X = np.round(X)
    if seed % 4 == 0:
        X[:, 0] = 0.0
    X = X.astype(np.float32) if seed % 5 == 0 else X
    y = np.where(rng.random(n) < rng.uniform(0.1, 0.9), 1, -1)
    y[0], y[1] = 1, -1
    s = rng.integers(1, 4, n).astype(float) if seed % 2 else rng.random(n) + 0.1
    alpha = float(10.0 ** rng.uniform(-7, 2))
    objective = Objective(as_operator(X), get_risk(risk).prepare(y, s), alpha)
    solver = LbfgsSolver if get_risk(risk).smooth else SmoothedSolver
    result = solver(tol=10.0 ** rng.uniform(-12, -2), max_iter=400).solve(objective)
    bound = Fraction(result.lower_bound)
    assert bound <= exact_objective(X, y, result.w, alpha, risk, s)
    for scale in (0.0, 0.9, 1.1):
        assert bound <= exact_objective(X, y, scale * result.w, alpha, risk, s)
    value = exact_objective(X, y, result.w, alpha, risk, s)
    # The reported objective is J of the returned w: the error is that of scores, magnified by nothing.
    spread = float(np.abs(X.astype(float)).max() * np.abs(result.w).sum())
    assert abs(float(value) - result.objective) <= 1e-14 * max(1.0, spread) * max(1.0, result.objective)


def test_the_final_value_comes_from_fresh_scores(monkeypatch):
    """Let the scores that the run carries along drift visibly: the result must not show it."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 4)), np.where(rng.random(60) < 0.5, 1, -1)
    objective = Objective(as_operator(X), get_risk("logistic").prepare(y), 1e-2)
    combine = objective.space.combine
    drift = 1e-6 * rng.standard_normal(60)
    monkeypatch.setattr(objective.space, "combine", lambda a, x, b, y, out=None: combine(a, x, b, y, out) + drift)
    result = LbfgsSolver(tol=1e-3).solve(objective)
    truth = Objective(as_operator(X), get_risk("logistic").prepare(y), 1e-2).value(result.w)
    assert result.objective == pytest.approx(truth, rel=1e-14)
    assert result.history["objective"][-1] != pytest.approx(truth, rel=1e-10), "the drift was to be seen in the history"


def test_scores_are_refreshed_against_drift(monkeypatch):
    monkeypatch.setattr(lbfgs, "REFRESH_ITERATIONS", 3)
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 4)), np.where(rng.random(60) < 0.5, 1, -1)
    objective = Objective(as_operator(X), get_risk("logistic").prepare(y), 1e-2)
    refreshes = []
    at = objective.at

    def spy(w, z, mu=0.0, out=None, grad=True):
        refreshes.append((w.copy(), z.copy()))
        return at(w, z, mu, out, grad)

    monkeypatch.setattr(objective, "at", spy)
    LbfgsSolver(tol=1e-12, max_iter=7).solve(objective)
    refreshed = refreshes[1:-1]  # neither the start nor the final proof
    assert len(refreshed) == 2
    for w, z in refreshed:
        assert np.array_equal(z, as_operator(X).matvec(w)), "a refresh must take z = Xw, to the bit"


def test_a_state_goes_on_with_less_memory():
    rng = np.random.default_rng(1)
    X, y = rng.standard_normal((80, 12)), np.where(rng.random(80) < 0.5, 1, -1)

    def objective():
        return Objective(as_operator(X), get_risk("logistic").prepare(y), 1e-4)

    record = LbfgsSolver(memory=10, tol=1e-12, max_iter=12).solve(objective()).state.record()
    rest = LbfgsSolver(memory=2, tol=1e-6).solve(objective(), state=record)
    assert rest.status == "converged"
    longer = LbfgsSolver(memory=20, tol=1e-6).solve(objective(), state=record)
    assert longer.status == "converged"


@for_each("change", ["alpha", "rows", "features", "weights"])
def test_a_state_is_not_continued_on_another_problem(change):
    rng = np.random.default_rng(1)
    X, y = rng.standard_normal((40, 3)), np.where(rng.random(40) < 0.5, 1, -1)
    first = Objective(as_operator(X), get_risk("logistic").prepare(y), 1.0)
    record = LbfgsSolver(max_iter=2, tol=1e-9).solve(first).state.record()
    other = {
        "alpha": lambda: Objective(as_operator(X), get_risk("logistic").prepare(y), 1e-9),
        "rows": lambda: Objective(as_operator(X[:-1]), get_risk("logistic").prepare(y[:-1]), 1.0),
        "features": lambda: Objective(InterceptOperator(as_operator(X)), get_risk("logistic").prepare(y), 1.0),
        "weights": lambda: Objective(as_operator(X), get_risk("squared_hinge").prepare(y), 1.0),
    }[change]()
    with pytest.raises(ValueError, match="belongs to another problem"):
        LbfgsSolver().solve(other, state=record)


@for_each("p", [2, 4])
def test_a_state_whose_point_has_another_length_is_refused(p):
    """Though it names the same problem: a file that was damaged, or put together by hand."""
    rng = np.random.default_rng(1)
    X, y = rng.standard_normal((40, 3)), np.where(rng.random(40) < 0.5, 1, -1)
    objective = Objective(as_operator(X), get_risk("logistic").prepare(y), 1.0)
    record = LbfgsSolver(max_iter=2, tol=1e-9).solve(objective).state.record()
    with pytest.raises(ValueError, match="belongs to another problem"):
        LbfgsSolver().solve(objective, state=record | {"w": np.ones(p)})


@for_each("tol", [1e-15, 1e-19])
@for_each("measure", ["accuracy", "roc_auc"])
def test_a_warm_start_with_an_impossible_tolerance_ends(tol, measure):
    rng = np.random.default_rng(10)
    X, y = rng.standard_normal((150, 3)), np.where(rng.random(150) < 0.5, 1, -1)
    clf = MeasureClassifier(measure, tol=tol, max_iter=100, warm_start=True)
    for _ in range(2):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            clf.fit(X, y)
    assert clf.status_ in ("stalled", "max_iter")


@for_each(
    "factor, measure, scaling",
    crossed([1e-300, 1e-200, 1e-110, 1e110, 1e200, 1e300], ["accuracy", "roc_auc"], [None, "standard"], strength=1),
)
def test_only_ratios_of_weights_matter(factor, measure, scaling):
    rng = np.random.default_rng(2)
    X, y = rng.standard_normal((60, 3)), np.where(rng.random(60) < 0.4, 1, -1)
    weight = rng.integers(1, 4, 60).astype(float)
    reference = MeasureClassifier(measure, scaling=scaling).fit(X, y, weight)
    scaled = MeasureClassifier(measure, scaling=scaling).fit(X, y, factor * weight)
    # Weights times a power of ten are rounded to 1e-16 once; 20 to 60 iterations magnify that.
    assert scaled.objective_ == pytest.approx(reference.objective_, rel=1e-6)
    assert scaled.status_ == "converged"


@for_each("scale", [1e-300, 1e-200, 1e150, 1e200, 1e300])
@for_each("risk", sorted(all_risks()))
def test_huge_and_tiny_features_give_a_result_or_a_clear_error(scale, risk):
    """No RuntimeWarning, no NaN: either J <= J(0) with a bound below it, or a ValueError that says what to do."""
    rng = np.random.default_rng(4)
    X, y = scale * rng.standard_normal((40, 3)), np.where(rng.random(40) < 0.4, 1, -1)
    for scaling in (None, "maxabs", "standard"):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", ConvergenceWarning)
            warnings.filterwarnings("ignore", "Degenerate fit: all rows have the same score")
            measure = "f1" if risk.startswith("contingency") else "roc_auc"
            clf = MeasureClassifier(measure, risk=risk, scaling=scaling, max_iter=50)
            if scaling == "standard" and not 1e-140 < scale < 1e140:
                with pytest.raises(ValueError, match=r"cannot scale column 0.*Multiply it"):
                    clf.fit(X, y)
                continue
            clf.fit(X, y)
        assert np.isfinite(clf.coef_).all()
        at_zero = get_risk(risk, get_measure(measure)).prepare(y).value_at_zero()
        assert clf.lower_bound_ <= clf.objective_ <= at_zero * (1.0 + 1e-12)
        if scaling == "maxabs":
            assert clf.status_ == "converged"


def test_an_operator_that_returns_nan_is_refused():
    from scipy.sparse.linalg import aslinearoperator

    rng = np.random.default_rng(5)
    X, y = rng.standard_normal((30, 3)), np.where(rng.random(30) < 0.5, 1, -1)
    X[7, 1] = np.nan
    for measure in ("roc_auc", "accuracy"):
        with pytest.raises(ValueError, match="not finite"):
            MeasureClassifier(measure).fit(aslinearoperator(X), y)


def test_ctrl_c_in_the_final_proof_keeps_the_model(monkeypatch):
    rng = np.random.default_rng(6)
    X, y = rng.standard_normal((50, 3)), np.where(rng.random(50) < 0.5, 1, -1)

    def pressed(self, w):
        raise KeyboardInterrupt

    def release_and_press(self):
        monkeypatch.setattr(Objective, "scores", pressed)

    monkeypatch.setattr(SmoothedSolver, "release", release_and_press)
    clf = MeasureClassifier()
    with pytest.raises(KeyboardInterrupt):
        clf.fit(X, y)
    assert clf.status_ == "interrupted"
    assert clf.objective_ < 1.0
    assert clf.predict(X).shape == (50,)


def test_ctrl_c_while_the_threshold_is_tuned_keeps_the_model(monkeypatch):
    from scoreline.fitting import certified

    rng = np.random.default_rng(6)
    X, y = rng.standard_normal((50, 3)), np.where(rng.random(50) < 0.5, 1, -1)

    def pressed(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(certified, "best_threshold", pressed)
    clf = MeasureClassifier()
    with pytest.raises(KeyboardInterrupt):
        clf.fit(X, y)
    assert clf.status_ == "interrupted"
    assert clf.intercept_[0] == clf.trained_intercept_
    assert clf.predict(X).shape == (50,)


def test_a_failed_refit_leaves_the_old_model():
    rng = np.random.default_rng(7)
    X, y = rng.standard_normal((50, 4)), np.where(rng.random(50) < 0.5, 1, -1)
    clf = MeasureClassifier().fit(X, y)
    before = clf.decision_function(X)

    def broken(progress):
        raise RuntimeError("a callback failed")

    with pytest.raises(RuntimeError):
        clf.set_params(solver_params={"callbacks": [broken]}).fit(np.hstack([X, X]), y)
    assert clf.n_features_in_ == 4
    assert np.array_equal(clf.decision_function(X), before)


def test_a_warm_start_maps_coefficients_into_the_new_scaling():
    rng = np.random.default_rng(8)
    X = rng.standard_normal((200, 4)) * [1.0, 10.0, 100.0, 1e3] + [0.0, 5.0, 0.0, -30.0]
    y = np.where(X @ [1.0, 0.1, -0.01, 0.001] + 0.3 * rng.standard_normal(200) > 0, 1, -1)
    for measure in ("roc_auc", "accuracy"):
        clf = MeasureClassifier(measure, warm_start=True, scaling="maxabs", alpha=1e-5).fit(X, y)
        standard = clf.set_params(scaling="standard", solver_params={"callbacks": [lambda p: True]}).fit(X, y)
        cold = MeasureClassifier(measure, scaling="standard", alpha=1e-5, solver_params={"callbacks": [lambda p: True]})
        cold.fit(X, y)
        assert standard.history_["objective"][0] < cold.history_["objective"][0], "the start must be the old model"


def test_the_gap_is_not_clamped():
    state = base.State(w=np.zeros(1), best_w=np.zeros(1))
    assert base.Result(np.zeros(1), None, 1.0, 1.5, 0, 0.0, {}, "converged", state).gap == -0.5


@for_each("solver, risk", [(BundleLineSearchSolver, "roc_area"), (AcceleratedSolver, "hinge")])
def test_mixtures_of_many_planes_are_allowed_the_rounding_of_many_sums(monkeypatch, solver, risk):
    """Their planes are added one after the other, so the k-th mixture has been rounded k times: more than rows are few."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((40, 5)), np.where(rng.random(40) < 0.5, 1, -1)
    objective = Objective(as_operator(X), get_risk(risk).prepare(y), 1e-4)
    plain, counts = Objective.mixture_allowance, []

    def recorded(self, slope, size, mass, terms=1):
        counts.append(terms)
        return plain(self, slope, size, mass, terms)

    monkeypatch.setattr(Objective, "mixture_allowance", recorded)
    solver(tol=1e-12, max_iter=50).solve(objective)
    assert max(counts) >= 50
    few, many = (plain(objective, np.ones(5), 1.0, 1.0, terms) for terms in (1, 100_000))
    assert many > 500 * few
