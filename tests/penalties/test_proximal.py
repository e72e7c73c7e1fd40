"""Sparse, grouped and bounded models: optima of cvxpy, bounds that are proofs, working sets, and where the classifier goes."""

import warnings
from fractions import Fraction
from itertools import product

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp

from cases import for_each
from problems import linear_rows
from scoreline import MeasureClassifier, MeasureClassifierCV, list_solvers, load_model
from scoreline.objective import Objective
from scoreline.operators import InterceptOperator, as_operator
from scoreline.penalties import BoundedPenalty, ElasticNetPenalty, GroupPenalty, L2Penalty
from scoreline.risks.contingency_entropy import EntropyContingencyRisk
from scoreline.risks.registry import all_risks, get_risk
from scoreline.solvers import ProximalSolver
from scoreline.solvers import proximal as module
from scoreline.solvers.common.path import alpha_max
from tiers import TIER

GROUPS = [[0, 1], [2, 3], [4, 5]]
PENALTIES = {
    "elastic_net": (ElasticNetPenalty(0.5), None),
    "weighted": (ElasticNetPenalty(0.5, [1, 2, 0.5, 1, 3, 0.1]), {3: (0, None)}),
    "signs": (L2Penalty(), (0.0, None)),
    "box": (ElasticNetPenalty(0.3), (-0.1, 0.2)),
    "group": (GroupPenalty(GROUPS, 0.5), None),
    "group_signs": (GroupPenalty(GROUPS, 0.5), (0.0, None)),
    "no_zero": (L2Penalty(), {0: (None, -0.5), 3: (0.2, None)}),
    "elastic_net_no_zero": (ElasticNetPenalty(0.5), {0: (None, -0.5), 3: (0.2, 0.3)}),
    "group_no_zero": (GroupPenalty(GROUPS, 0.5), {0: (None, -0.5), 3: (0.2, None)}),
}
COUNTS = (1, 1), (-1, 1), (1, -1), (-1, -1)  # label and prediction of tp, fp, fn, tn
ENTROPY = EntropyContingencyRisk("f1", within=0.5)  # sharper ones are beyond Clarabel
SUPPORTED = sorted(name for name, risk in all_risks().items() if ProximalSolver.serves(risk))


def problem(seed=0, n=60, p=6):
    return linear_rows(n, p, seed, noise=1.5, shift=0.5)


def objective(X, y, risk, alpha, penalty, bounds=None, intercept=True):
    prepared = BoundedPenalty.of(penalty, X.shape[1], None, bounds)
    operator, kind = as_operator(X), get_risk(risk) if isinstance(risk, str) else risk
    if kind.shift == "needed" and intercept:
        operator, prepared = InterceptOperator(operator), prepared.with_constant(0.0)
    return Objective(operator, kind.prepare(y), alpha, prepared)


def modelled(risk, X, y, w, b):
    """Return the risk of scores Xw (+ b where it needs an intercept) as an expression of cvxpy, from its definition."""
    n, above, below = len(y), X[y > 0] @ w, X[y < 0] @ w
    plus, minus = int((y > 0).sum()), int((y < 0).sum())
    if risk in ("hinge", "logistic", "squared_hinge"):
        m = cp.multiply(y, X @ w + b)
        loss = {"hinge": cp.pos(1 - m), "logistic": cp.logistic(-m), "squared_hinge": 0.5 * cp.square(cp.pos(1 - m))}
        return cp.sum(loss[risk]) / n
    if risk in ("hinge_free_intercept", "prbep"):  # the bias is part of the risk
        offset, scale = (2.0, 1.0 / n) if risk == "hinge_free_intercept" else (0.5 * n / plus, 2.0 / n)
        return scale * (cp.sum(cp.pos(offset - above - b)) + cp.sum(cp.pos(below + b)))
    if risk == "contingency_entropy":
        kind = ENTROPY
        labellings = np.array(list(product((1, -1), repeat=n)))
        counts = [[float(np.sum((y == t) & (row == q))) for t, q in COUNTS] for row in labellings]
        losses = np.array([1.0 - kind.measure.from_counts(*each) for each in counts])
        mu = kind.within / (n * np.log(2.0))
        return mu * cp.log_sum_exp((losses + (labellings - y) @ (X @ w + b) / n) / mu)
    excess = cp.pos(1.0 - cp.reshape(above, (plus, 1), "C") @ np.ones((1, minus)) + np.ones((plus, 1)) @ cp.reshape(
        below, (1, minus), "C"
    ))  # fmt: skip
    if risk == "partial_roc":  # the negatives of the highest scores, with all positives
        top = max(1, int(get_risk(risk).max_fpr * minus + 1e-9))
        return cp.sum_largest(cp.sum(excess, axis=0), top) / (plus * top)
    return {"roc_area": cp.sum(excess), "roc_area_squared": 0.5 * cp.sum(cp.square(excess))}[risk] / (plus * minus)


def optimum(X, y, risk, alpha, penalty, bounds):
    """Return min J by Clarabel, from the definitions."""
    p, terms = X.shape[1], penalty.terms(X.shape[1])
    w, b = cp.Variable(p), cp.Variable()
    R = modelled(risk, X, y, w, b)
    omega = 0.5 * cp.sum(cp.multiply(terms.quadratic, cp.square(w))) + cp.sum(cp.multiply(terms.absolute, cp.abs(w)))
    if terms.norms is not None:
        omega += sum(norm * cp.norm(w[np.flatnonzero(terms.groups == g)]) for g, norm in enumerate(terms.norms))
    prepared = BoundedPenalty.of(penalty, p, None, bounds)
    limits = []
    for j in range(p):
        limits += [w[j] >= prepared.lower[j]] if np.isfinite(prepared.lower[j]) else []
        limits += [w[j] <= prepared.upper[j]] if np.isfinite(prepared.upper[j]) else []
    task = cp.Problem(cp.Minimize(alpha * omega + R), limits)
    task.solve(solver=cp.CLARABEL)
    return task.value


@for_each("kind", sorted(PENALTIES))
@for_each("risk", SUPPORTED)
def test_optima_are_those_of_cvxpy(risk, kind):
    penalty, bounds = PENALTIES[kind]
    X, y = problem(n=9 if risk == "contingency_entropy" else 60)
    for alpha in (0.1,) if TIER == "quick" else (0.3, 0.1, 0.01):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            trained = ENTROPY if risk == "contingency_entropy" else risk
            result = ProximalSolver(tol=5e-7, max_iter=400).solve(objective(X, y, trained, alpha, penalty, bounds))
        best = optimum(X, y, risk, alpha, penalty, bounds)
        assert result.objective == pytest.approx(best, rel=1e-6)
        assert result.lower_bound <= best * (1.0 + 1e-7)  # Clarabel's error
        assert result.gap <= 1e-5 * best


@for_each("kind", sorted(PENALTIES))
@for_each("risk", SUPPORTED)
def test_bounds_lie_below_j_everywhere(risk, kind):
    """Every risk that the solver serves; J at points around the best one, within the bounds."""
    penalty, bounds = PENALTIES[kind]
    rng = np.random.default_rng(7)
    n = 16 if risk == "contingency_entropy" else 40
    X, y = problem(3, n)
    J = objective(X, y, risk, float(10.0 ** rng.uniform(-4, 0)), penalty, bounds)
    runs = [ProximalSolver(tol=tol, max_iter=30).solve(J) for tol in (1e-1, 1e-8)]
    best = runs[-1].w
    for k in range(6):
        w = J.nearest(best + 10.0**-k * rng.standard_normal(len(best)))
        assert all(run.lower_bound <= J.value(w) * (1.0 + 1e-12) for run in runs)
    assert runs[-1].lower_bound > 0.5 * runs[-1].objective, "otherwise it proves little"
    assert (np.diff(runs[-1].history["objective"]) <= 0.0).all()


@for_each("kind", sorted(name for name in PENALTIES if name.endswith("no_zero")))
@for_each("risk", SUPPORTED)
def test_zero_outside_the_bounds_is_never_the_answer(risk, kind):
    """J(0) was returned with w = 0, below J of every point within the bounds, where alpha made these worse than w = 0."""
    penalty, bounds = PENALTIES[kind]
    n = 16 if risk == "contingency_entropy" else 40
    X, y = problem(3, n)
    for intercept in (True, False):
        for alpha, init in ((30.0, "auto"), (30.0, "moments"), (1e-2, "zero")):
            J = objective(X, y, risk, alpha, penalty, bounds, intercept)
            result = ProximalSolver(tol=1e-3, max_iter=30, init=init).solve(J)
            assert np.array_equal(J.nearest(result.w), result.w)
            assert result.objective == pytest.approx(J.value(result.w), rel=1e-12)
            assert result.lower_bound > 0.9 * result.objective
            if alpha > 1.0:
                assert result.objective > J.risk.value_at_zero()


def test_samples_start_within_the_bounds(monkeypatch):
    """Enough rows for samples; the point before them, and that of an interruption between them, was w = 0."""
    X, y = problem(4, 8000, 3)
    J = objective(X, y, "roc_area", 1.0, L2Penalty(), {0: (None, -0.5)})
    result = ProximalSolver(init="samples", max_iter=1).solve(J)
    assert result.history["objective"][0] == pytest.approx(J.value(J.nearest(np.zeros(3))))
    assert result.w[0] <= -0.5

    def press_ctrl_c(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr("scoreline.solvers.common.sample_start.sample_start", press_ctrl_c)
    result = ProximalSolver(init="samples").solve(J)
    assert result.status == "interrupted"
    assert result.w[0] <= -0.5


def test_bounds_are_proofs_in_exact_arithmetic():
    """Hinge with elastic nets and bounds, J in fractions at the best points known."""
    rng = np.random.default_rng(8)
    for seed in range(4 if TIER == "quick" else 100):
        X, y = problem(seed, 12, 2)
        X = X + float(rng.choice([0.0, 50.0]))
        ratio, alpha = float(rng.choice([0.3, 1.0])), float(10.0 ** rng.uniform(-4, 0))
        bounds = None if seed % 2 else {0: (0.0, 0.5)}
        J = objective(X, y, "hinge", alpha, ElasticNetPenalty(ratio), bounds)
        loose, tight = (ProximalSolver(tol=tol, max_iter=60).solve(J) for tol in (1e-2, 1e-9))
        penalty = J.bounded_penalty
        for w in (tight.w, loose.w):
            exact = [Fraction(float(v)) for v in w]
            omega = sum(
                Fraction(float(q)) * v * v / 2 + Fraction(float(a)) * abs(v)
                for q, a, v in zip(penalty.quadratic, penalty.absolute, exact, strict=True)
            )
            risk = Fraction(0)
            for row, s in zip(X, y, strict=True):
                z = sum(Fraction(float(x)) * v for x, v in zip(row, exact[:2], strict=True)) + exact[2]
                risk += max(Fraction(0), 1 - int(s) * z)
            value = Fraction(alpha) * omega + risk / len(y)
            assert all(Fraction(run.lower_bound) <= value for run in (loose, tight))


@for_each("curvature", [0.0, 1e-300])
def test_a_model_without_curvature_has_a_finite_end(curvature):
    """Of groups: a hinge far from its kink, penalised by norms alone. Steps overflowed, with warnings."""
    model = module._Model()
    model.matrix = curvature * np.eye(6)
    penalty = BoundedPenalty.of(GroupPenalty(GROUPS, 1.0), 6)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        target = model._minimum(penalty, 1e-3, np.zeros(6), np.ones(6), 1e-12)
    assert np.isfinite(target).all()


def test_a_target_beyond_the_range_of_squares_is_not_taken():
    X, y = problem()
    J = objective(X, y, "roc_area_squared", 1e-3, GroupPenalty(GROUPS, 1.0))
    w = np.zeros(6)
    point = J.at(w, J.scores(w))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert module._searched(J, point, J.slope(point), np.full(6, 1e200)) is None


def wide(seed=1, n=150, p=1400):
    rng = np.random.default_rng(seed)
    X = sp.random(n, p, density=0.03, random_state=seed, format="csr", data_rvs=rng.standard_normal)
    X = sp.hstack([rng.standard_normal((n, 3)), X[:, 3:]], format="csr")
    y = (X[:, :3].toarray() @ np.array([2.0, -1.5, 1.0]) + 0.5 * rng.standard_normal(n) > 0.3).astype(int)
    return sp.csr_matrix(X), y


@for_each("risk", ["logistic", "roc_area"])
def test_working_sets_and_lbfgs_find_the_same(risk, monkeypatch):
    X, y = wide()
    J = objective(X, np.where(y == 1, 1, -1), risk, 0.02, ElasticNetPenalty(0.8))
    on_sets = ProximalSolver(tol=1e-4).solve(J)
    assert on_sets.n_passes < 40
    monkeypatch.setattr(ProximalSolver, "_working_set", lambda *arguments: None)
    without = ProximalSolver(tol=1e-3, max_iter=400).solve(J)
    for result in (on_sets, without):
        assert result.status == "converged"
        assert 0 < np.count_nonzero(result.w) < 100
    assert on_sets.lower_bound <= without.objective
    assert without.lower_bound <= on_sets.objective


@for_each("risk", ["prbep", "roc_area", "roc_area_squared"])
def test_an_empty_working_set_ends_the_run(risk):
    """No feature violates optimality at w = 0 and a large alpha; the columns of none were copied."""
    X, y = wide()
    J = objective(X, np.where(y == 1, 1, -1), risk, 10.0, ElasticNetPenalty(1.0))
    for start in (None, np.full(X.shape[1], 1e-3)):
        result = ProximalSolver(tol=1e-12, max_iter=60).solve(J, start)
        assert not result.w.any()
        assert result.gap <= 1e-3 * result.objective


def test_groups_in_working_sets():
    X, y = wide()
    groups = [[j, j + 1] for j in range(0, X.shape[1], 2)]
    result = ProximalSolver(tol=1e-4).solve(
        objective(X, np.where(y == 1, 1, -1), "logistic", 0.02, GroupPenalty(groups, 0.8))
    )
    assert result.status == "converged"
    chosen = (result.w[:-1].reshape(-1, 2) != 0.0).sum(axis=1)
    assert set(chosen) == {0, 2}, "a group is in the model or it is not"


@for_each("kind", ["elastic_net", "group", "group_signs"])
@for_each("risk", ["logistic", "squared_hinge", "roc_area"])
def test_above_the_largest_alpha_no_feature_is_in_the_model(risk, kind):
    X, y = problem(9)
    penalty, bounds = PENALTIES[kind]
    limit = alpha_max(objective(X, y, risk, 1.0, penalty, bounds))
    assert 0.0 < limit < np.inf
    for factor, empty in ((1.001, True), (0.98, False)):
        w = ProximalSolver(tol=1e-7, max_iter=300).solve(objective(X, y, risk, factor * limit, penalty, bounds)).w[:6]
        assert (not w.any()) == empty
    assert alpha_max(objective(X, y, risk, 1.0, L2Penalty())) == np.inf


def test_the_record_goes_on_and_limits_are_kept():
    X, y = problem(5)
    J = objective(X, y, "roc_area", 0.01, ElasticNetPenalty(0.5))
    first = ProximalSolver(max_iter=3, tol=1e-9).solve(J)
    assert first.status == "max_iter"
    rest = ProximalSolver(tol=1e-5).solve(J, state=first.state.record())
    assert rest.status == "converged"
    assert rest.lower_bound <= ProximalSolver(tol=1e-5).solve(J).objective

    def press_ctrl_c(progress):
        raise KeyboardInterrupt

    assert ProximalSolver(callbacks=[press_ctrl_c], tol=1e-9).solve(J).status == "interrupted"
    assert ProximalSolver(max_time=1e-9, tol=1e-9).solve(J).status == "max_time"


def test_the_classifier_goes_everywhere(tmp_path):
    X, y = wide(p=60)
    options = {"penalty": "elastic_net", "penalty_params": {"l1_ratio": 0.9}, "alpha": 0.02}
    for measure in ("roc_auc", "f1", "average_precision", "accuracy"):
        clf = MeasureClassifier(measure, **options).fit(X, y)
        assert (clf.solver_, clf.status_) == ("proximal", "converged")
        assert 0 < np.count_nonzero(clf.coef_) < 60
        assert clf.objective(X, y) == pytest.approx(clf.objective_, rel=1e-10)
        dense = MeasureClassifier(measure, **options).fit(X.toarray(), y)
        # Both are within tol of one minimum.
        assert abs(dense.objective_ - clf.objective_) <= dense.gap_ + clf.gap_
    clf.save(tmp_path / "model.npz")
    assert np.array_equal(load_model(tmp_path / "model.npz").decision_function(X), clf.decision_function(X))
    chosen = MeasureClassifierCV(
        "roc_auc", alphas=[0.1, 0.01], cv=3, **{k: options[k] for k in ("penalty", "penalty_params")}
    )
    assert chosen.fit(X, y).alpha_ in (0.1, 0.01)
    with_probability = MeasureClassifier("accuracy", risk="logistic", probability=True, **options).fit(X, y)
    assert with_probability.predict_proba(X).shape == (len(y), 2)


@for_each("scaling", [None, "maxabs", "standard"])
def test_bounds_hold_exactly_in_the_units_of_coef(scaling):
    X, y = problem(6, 200)
    X = X * [1.0, 10.0, 0.1, 1.0, 3.0, 7.0] + 5.0
    bounds = {0: (0.0, 0.3), 1: (None, 0.0), 2: (-0.1, None), 5: (0.01, 0.011)}
    for measure in ("roc_auc", "accuracy"):
        coef = MeasureClassifier(measure, scaling=scaling, bounds=bounds, alpha=1e-3).fit(X, y).coef_[0]
        for j, (low, high) in bounds.items():
            assert low is None or coef[j] >= low
            assert high is None or coef[j] <= high
        assert 0.01 <= coef[5] <= 0.011


def test_bounds_by_name_and_constant_columns():
    pd = pytest.importorskip("pandas")
    X, y = problem(6)
    frame = pd.DataFrame(X, columns=list("abcdef"))
    one = MeasureClassifier(bounds={"b": (0, None), "e": (None, 0)}).fit(frame, y)
    other = MeasureClassifier(bounds={1: (0, None), 4: (None, 0)}).fit(X, y)
    np.testing.assert_allclose(one.coef_, other.coef_, rtol=1e-8)  # columns in another layout: sums in another order
    frame["b"] = 1.0
    with pytest.raises(ValueError, match=r"exclude 0 for column 1, which is constant"):
        MeasureClassifier(scaling="standard", bounds={"b": (0.5, None)}).fit(frame, y)


def test_the_lists_say_who_serves_what():
    table = {info.name: info.penalties for info in list_solvers()}
    assert table["proximal"] == ("l2", "weights", "elastic_net", "group", "bounds")
    assert table["newton"] == ("l2", "weights")
    assert table["bundle_ocas"] == ("l2",)
    assert module.ProximalSolver.takes({"group", "bounds"})
