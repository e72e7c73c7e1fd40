"""Base scores: the optimum of cvxpy and of a column with a fixed coefficient, proofs, storages, folds, streams, exports."""

import sqlite3
import warnings
from fractions import Fraction

import cvxpy as cp
import numpy as np
import onnxruntime
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.model_selection import cross_val_score

from cases import crossed, fewer, for_each
from scoreline import MeasureClassifier, MeasureClassifierCV, load_model
from scoreline.export import to_json, to_onnx, to_sql
from scoreline.io import convert, open_mapped
from scoreline.objective import Objective
from scoreline.operators import InterceptOperator, as_operator
from scoreline.penalties import BoundedPenalty, ElasticNetPenalty, L2Penalty
from scoreline.risks.on_base_scores import RiskOnBaseScores, on_base_scores
from scoreline.risks.registry import all_risks, get_risk
from scoreline.solvers import EarlyStopping
from scoreline.solvers.registry import all_solvers
from scoreline.testing import check_risk
from tiers import TIER, tiered

P = 5


def problem(n=200, seed=0, scale=1.0):
    """Return rows, labels and base scores that know half of what there is to know."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, P))
    base = 2.0 * X[:, 0] - 0.5 + rng.standard_normal(n)
    y = (base + 1.5 * X[:, 1] + rng.standard_normal(n) > 0.0).astype(int)
    y[:2] = 0, 1
    return X, y, scale * base


def fitted(measure="roc_auc", X=None, y=None, base=None, weight=None, kind=MeasureClassifier, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        own = {"random_state": 0, "alpha": 1e-2} if kind is MeasureClassifier else {"random_state": 0}
        return kind(measure, **{**own, **options}).fit(X, y, weight, base_scores=base)


def optimum(X, y, base, risk, alpha, l1_ratio):
    w, b = cp.Variable(P), cp.Variable()
    sign = np.where(y == 1, 1, -1)
    if risk == "roc_area":
        positive, negative = np.flatnonzero(y == 1), np.flatnonzero(y == 0)
        pairs = (X[positive][:, None, :] - X[negative][None, :, :]).reshape(-1, P)
        gaps = (base[positive][:, None] - base[negative][None, :]).ravel()
        R = cp.sum(cp.pos(1 - gaps - pairs @ w)) / len(pairs)
    else:
        m = cp.multiply(sign, base + X @ w + b)
        losses = {
            "hinge": cp.pos(1 - m), "squared_hinge": 0.5 * cp.square(cp.pos(1 - m)), "logistic": cp.logistic(-m),
        }  # fmt: skip
        R = cp.sum(losses[risk]) / len(y)
    omega = 0.5 * (1.0 - l1_ratio) * cp.sum_squares(w) + l1_ratio * cp.norm1(w)
    task = cp.Problem(cp.Minimize(alpha * omega + R))
    task.solve(solver=cp.CLARABEL)
    return task.value


@for_each(
    "risk, penalty", crossed(["logistic", "squared_hinge", "hinge", "roc_area"], ["l2", "elastic_net"], strength=1)
)
def test_optima_are_those_of_cvxpy(risk, penalty):
    X, y, base = problem(60)
    measure = "roc_auc" if risk == "roc_area" else "accuracy"
    clf = fitted(measure, X, y, base, risk=risk, penalty=penalty, alpha=0.05, tol=5e-7, max_iter=400)
    best = optimum(X, y, base, risk, 0.05, 0.0 if penalty == "l2" else 0.5)
    assert clf.objective_ == pytest.approx(best, rel=1e-6)
    assert clf.lower_bound_ <= best * (1.0 + 1e-7)  # Clarabel's error
    assert clf.objective(X, y, base_scores=base) == pytest.approx(clf.objective_, rel=1e-12)


def cases():
    for name, solver in all_solvers().items():
        if solver.certified and solver.takes_base_scores and not hasattr(solver, "search"):
            yield from ((name, risk) for risk, kind in all_risks().items() if solver.serves(kind))


@for_each("solver, risk", tiered(cases(), 1))
def test_every_solver_finds_the_optimum_of_a_fixed_column(solver, risk):
    """A column with weight 0 and bounds of (1, 1) is another way to the same problem; cutting planes bound it, too."""
    n = 14 if risk.startswith("contingency") else 60
    X, y, base = problem(n, 1)
    sign, kind, penalty = np.where(y == 1, 1, -1), get_risk(risk), BoundedPenalty.of(L2Penalty(), P)
    operator = as_operator(X)
    if kind.shift == "needed":
        operator = InterceptOperator(operator)
        penalty = penalty.with_constant(0.0 if all_solvers()[solver].takes(("weights",)) else 1.0)
    J = Objective(operator, on_base_scores(kind, base).prepare(sign), 0.05, penalty)
    tol = 0.05 if all_solvers()[solver].slow else 1e-3
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = all_solvers()[solver](tol=tol, max_iter=3000).solve(J)
    assert result.status == "converged"
    rng = np.random.default_rng(2)
    for k in range(5):
        w = result.w + 10.0**-k * rng.standard_normal(len(result.w))
        assert result.lower_bound <= J.value(w) * (1.0 + 1e-12)
    if kind.smooth or kind.smoothable:
        column = BoundedPenalty.of(L2Penalty([1.0] * P + [0.0]), P + 1, None, {P: (1.0, 1.0)})
        other = as_operator(np.column_stack([X, base]))
        if kind.shift == "needed":
            other = InterceptOperator(other)
            column = column.with_constant(float(penalty.quadratic[-1]))
        found = all_solvers()["proximal"](tol=1e-3, max_iter=300).solve(
            Objective(other, kind.prepare(sign), 0.05, column)
        )
        assert found.w[P] == 1.0
        assert result.lower_bound <= found.objective
        assert found.lower_bound <= result.objective


def test_a_risk_on_base_scores_keeps_the_contract():
    """Values, slopes, planes and Hessians are those of the risk at the sum, for every risk."""
    rng = np.random.default_rng(3)
    for risk in all_risks():
        n = 12 if risk.startswith("contingency") else 30
        y = np.where(np.arange(n) % 3 == 0, 1, -1)
        base, z = 3.0 * rng.standard_normal(n), rng.standard_normal(n)
        inner = get_risk(risk).prepare(y)
        outer = RiskOnBaseScores(get_risk(risk), base).prepare(y)
        mu = 0.1 / inner.ramp_scale if inner.ramp_scale > 0.0 else 0.0
        own, there = outer.evaluate(z, mu), inner.evaluate(z + base, mu)
        assert (own.value, own.hard) == (there.value, there.hard)
        assert np.array_equal(own.grad, there.grad)
        for _ in range(5):
            other = z + rng.standard_normal(n)
            assert own.plane + own.grad @ other <= outer.value(other) + 1e-12
        assert outer.reference(z, y, None, mu)[0] == pytest.approx(own.value, rel=1e-6)
        assert outer.fingerprint() != inner.fingerprint()
        assert outer.full_scores(z) == pytest.approx(z + base)
    check_risk(get_risk("logistic"))


def test_bounds_are_proofs_in_exact_arithmetic():
    """Hinge with base scores of very different sizes, J in fractions at the best points known."""
    rng = np.random.default_rng(4)
    for seed in range(6 if TIER == "quick" else 100):
        X, y, base = problem(12, seed, scale=float(rng.choice([1.0, 1e3, 1e7])))
        penalty = BoundedPenalty.of(ElasticNetPenalty(0.5) if seed % 2 else L2Penalty(), P).with_constant(0.0)
        sign, alpha = np.where(y == 1, 1, -1), float(10.0 ** rng.uniform(-4, 0))
        J = Objective(
            InterceptOperator(as_operator(X)), on_base_scores(get_risk("hinge"), base).prepare(sign), alpha, penalty
        )
        solver = all_solvers()["proximal" if seed % 2 else "smoothed"]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            runs = [solver(tol=tol, max_iter=100).solve(J) for tol in (1e-2, 1e-9)]
        for w in (run.w for run in runs):
            exact = [Fraction(float(v)) for v in w]
            omega = sum(
                Fraction(float(q)) * v * v / 2 + Fraction(float(a)) * abs(v)
                for q, a, v in zip(penalty.quadratic, penalty.absolute, exact, strict=True)
            )
            loss = Fraction(0)
            for row, s, b in zip(X, sign, base, strict=True):
                z = sum(Fraction(float(x)) * v for x, v in zip(row, exact[:P], strict=True)) + exact[P]
                loss += max(Fraction(0), 1 - int(s) * (z + Fraction(float(b))))
            value = Fraction(alpha) * omega + loss / len(y)
            assert all(Fraction(run.lower_bound) <= value for run in runs)


@for_each("penalty", ["l2", "elastic_net"])
def test_storages_agree(penalty, tmp_path):
    array_api_strict = pytest.importorskip("array_api_strict")
    X, y, base = problem(300)
    convert((X, y), tmp_path / "rows")
    storages = {
        "csr": sp.csr_array(X), "columns": np.asfortranarray(X), "mapped": open_mapped(tmp_path / "rows").X,
        "strict": array_api_strict.asarray(X),
    }  # fmt: skip
    for measure in ("roc_auc", "f1"):
        own = fitted(measure, X, y, base, penalty=penalty, tol=1e-4)
        for name, other in storages.items():
            clf = fitted(measure, other, y, base, penalty=penalty, tol=1e-4)
            assert abs(clf.objective_ - own.objective_) <= clf.gap_ + own.gap_, name
            z = np.asarray(clf.decision_function(other, base_scores=base))
            np.testing.assert_allclose(z, X @ clf.coef_[0] + base + clf.intercept_[0], rtol=1e-9, atol=1e-9)
            assert clf.score(other, y, base_scores=base) == pytest.approx(own.score(X, y, base_scores=base), abs=0.02)


def test_weights_are_repeated_rows():
    X, y, base = problem(80)
    copies = np.random.default_rng(5).integers(0, 4, len(y))
    rows = np.repeat(np.arange(len(y)), copies)
    for measure in fewer(("roc_auc", "f1", "accuracy"), ("roc_auc",)):
        one = fitted(measure, X, y, base, copies, tol=1e-6)
        other = fitted(measure, X[rows], y[rows], base[rows], tol=1e-6)
        assert one.objective_ == pytest.approx(other.objective_, rel=1e-5)
        assert one.intercept_[0] == pytest.approx(other.intercept_[0], abs=1e-2)


def test_base_scores_of_zero_change_nothing_and_good_ones_help():
    X, y, base = problem(400)
    all_options = [
        {"probability": True}, {"solver_params": {"early_stopping": 0.2}}, {}, {"threshold": "holdout"},
        {"features": "additive"}, {"features": "pairs"}, {"solver": "bundle_ocas"},
    ]  # fmt: skip
    for options in fewer(all_options, all_options[:2]):
        for measure in fewer(("f1", "roc_auc"), ("f1",)):
            plain, zero = (fitted(measure, X, y, b, **options) for b in (None, np.zeros(len(y))))
            np.testing.assert_allclose(zero.coef_, plain.coef_, rtol=1e-6, atol=1e-9)
            assert zero.intercept_ == pytest.approx(plain.intercept_, rel=1e-6)
            clf = fitted(measure, X, y, base, **options)
            assert clf.score(X, y, base_scores=base) > plain.score(X, y) - 0.02
    proba = fitted("accuracy", X, y, base, probability=True, risk="logistic").predict_proba(X, base_scores=base)
    assert -np.log(proba[np.arange(len(y)), y]).mean() < 0.45


@for_each("measure", fewer(("roc_auc", "f1", "accuracy"), ("f1",)))
def test_folds_have_their_own_base_scores(measure):
    X, y, base = problem(300)
    options = {"kind": MeasureClassifierCV, "alphas": [0.1, 0.01], "cv": 3}
    plain, zero, clf = (fitted(measure, X, y, b, **options) for b in (None, np.zeros(len(y)), base))
    np.testing.assert_allclose(zero.cv_results_["mean_test_score"], plain.cv_results_["mean_test_score"], atol=1e-6)
    noise = fitted(measure, np.random.default_rng(6).standard_normal(X.shape), y, base, **options)
    alone = fitted(measure, np.random.default_rng(6).standard_normal(X.shape), y, None, **options)
    assert noise.cv_results_["mean_test_score"].max() > alone.cv_results_["mean_test_score"].max() + 0.1
    assert clf.cv_results_["mean_test_score"].max() > noise.cv_results_["mean_test_score"].max()
    assert clf.uses_base_scores_
    with sklearn.config_context(enable_metadata_routing=True):
        estimator = MeasureClassifier(measure, alpha=0.01)
        estimator.set_fit_request(base_scores=True).set_score_request(base_scores=True)
        assert cross_val_score(estimator, X, y, cv=3, params={"base_scores": base}).mean() > 0.7


def test_guarantees_and_thresholds_count_base_scores():
    X, y, base = problem(2000)
    params = {"precision": 0.7, "guarantee": 0.9}
    clf = fitted("recall_at_precision", X, y, base, measure_params=params)
    assert clf.promise_.holds
    positive = clf.predict(X, base_scores=base) == 1
    assert y[positive].mean() >= 0.7
    before = clf.intercept_.copy()
    clf.tune_threshold(X, y, "recall_at_precision", {"precision": 0.95}, base_scores=base)
    assert clf.intercept_ < before


@for_each("measure, solver", fewer((("min_tpr_tnr", "spade"), ("f1", "stamp")), (("f1", "stamp"),)))
def test_streams(measure, solver, tmp_path):
    X, y, base = problem(3000)

    def stream(b):
        clf = MeasureClassifier(measure, solver=solver, random_state=0)
        for rows in np.array_split(np.arange(len(y)), 3):
            clf.partial_fit(X[rows], y[rows], base_scores=None if b is None else b[rows])
        return clf

    plain, zero, clf = stream(None), stream(np.zeros(len(y))), stream(base)
    assert np.array_equal(zero.coef_, plain.coef_)
    assert clf.score(X, y, base_scores=base) > plain.score(X, y)
    assert abs(clf.coef_[0, 1]) > abs(clf.coef_[0, 0]), "the base scores know column 0"
    clf.save(tmp_path / "model.npz")
    again = load_model(tmp_path / "model.npz").partial_fit(X, y, base_scores=base)
    assert np.array_equal(again.coef_, clf.partial_fit(X, y, base_scores=base).coef_)
    with pytest.raises(ValueError, match="pass base_scores of these rows"):
        clf.partial_fit(X, y)
    with pytest.raises(ValueError, match="trained without them"):
        plain.partial_fit(X, y, base_scores=base)
    assert fitted(measure, X, y, base, solver=solver).score(X, y, base_scores=base) > plain.score(X, y)


def test_exports_have_one_more_input(tmp_path):
    X, y, base = problem(100)
    clf = fitted("f1", X, y, base, probability=True, scaling="standard")
    score = clf.decision_function(X, base_scores=base)
    clf.save(tmp_path / "model.npz")
    assert np.array_equal(load_model(tmp_path / "model.npz").decision_function(X, base_scores=base), score)
    document = to_json(clf)
    assert document["features"][-1] == {"name": "base_scores", "coefficient": 1.0}
    table = np.column_stack([X, base])
    terms = np.array([feature["coefficient"] for feature in document["features"]])
    np.testing.assert_allclose(table @ terms + document["intercept"], score, rtol=1e-12, atol=1e-12)
    session = onnxruntime.InferenceSession(to_onnx(clf, dtype="float64").SerializeToString())
    label, there, probability = session.run(["label", "score", "probabilities"], {"X": table})
    np.testing.assert_allclose(there, score, rtol=1e-12, atol=1e-12)
    assert np.array_equal(label, clf.predict(X, base_scores=base))
    np.testing.assert_allclose(probability, clf.predict_proba(X, base_scores=base), rtol=1e-9)
    database = sqlite3.connect(":memory:")
    names = [*(f"x{k}" for k in range(P)), "base_scores"]
    database.execute(f"CREATE TABLE t ({', '.join(names)})")
    database.executemany(f"INSERT INTO t VALUES ({', '.join('?' * len(names))})", table.tolist())
    found = [row[-1] for row in database.execute(f"SELECT score FROM ({to_sql(clf, 't')})")]
    np.testing.assert_allclose(found, score, rtol=1e-9, atol=1e-9)


@for_each(
    ("base", "options", "words"),
    [
        (np.zeros(7), {}, ["shape (7,)", "(20,)"]),
        (3.0, {}, ["shape ()", "(20,)"]),
        (["a"] * 20, {}, ["base_scores must be numbers"]),
        (np.full(20, np.nan), {}, ["NaN or infinity"]),
        (np.zeros(20), {"solver": "moments"}, ["'base_scores'", "solver='auto'", "smoothed"]),
        (np.zeros(20), {"solver": "hybrid", "measure": "accuracy"}, ["'base_scores'", "newton"]),
        (
            np.zeros(20),
            {"solver_params": {"early_stopping": EarlyStopping((np.eye(20)[:, :P], np.arange(20) % 2))}},
            ["early_stopping", "a share"],
        ),
    ],
)
def test_wrong_use_is_an_error_before_the_first_pass(base, options, words):
    X, y = np.random.default_rng(0).standard_normal((20, P)), np.arange(20) % 2
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the words are checked below
        MeasureClassifier(**options).fit(X, y, base_scores=base)
    assert all(word in str(caught.value) for word in words), str(caught.value)


def test_models_say_when_base_scores_are_missing():
    X, y, base = problem(100)
    on_base, plain = fitted("f1", X, y, base), fitted("f1", X, y)
    for call in ("decision_function", "predict"):
        with pytest.raises(ValueError, match="pass base_scores of these rows"):
            getattr(on_base, call)(X)
        with pytest.raises(ValueError, match="trained without them"):
            getattr(plain, call)(X, base_scores=base)
    for call in ("score", "objective", "tune_threshold"):
        with pytest.raises(ValueError, match="pass base_scores of these rows"):
            getattr(on_base, call)(X, y)
    assert not fitted("f1", X, y).uses_base_scores_


@pytest.mark.slow
def test_on_a_cluster():
    distributed = pytest.importorskip("distributed")
    import dask.array as da

    X, y, base = problem(400)
    with distributed.Client(processes=False, n_workers=2, threads_per_worker=1, dashboard_address=None):
        rows, there = da.from_array(X, chunks=(90, P)), da.from_array(base, chunks=70)
        for measure, penalty in (("roc_auc", "l2"), ("f1", "elastic_net"), ("accuracy", "elastic_net")):
            own, clf = (fitted(measure, *data, penalty=penalty, tol=1e-4) for data in ((X, y, base), (rows, y, there)))
            assert abs(clf.objective_ - own.objective_) <= clf.gap_ + own.gap_
            z = np.asarray(clf.decision_function(rows, base_scores=there))
            np.testing.assert_allclose(z, X @ clf.coef_[0] + base + clf.intercept_[0], rtol=1e-9, atol=1e-9)
            assert clf.score(rows, y, base_scores=there) == pytest.approx(clf.score(X, y, base_scores=base))
        with pytest.raises(TypeError, match="base_scores with solver='spade'"):
            MeasureClassifier("qmean", solver="spade").fit(rows, y, base_scores=base)
