"""init="samples": runs that begin at the optimum of growing samples of the rows prove the same, for a fraction of a pass."""

import logging
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.linalg import aslinearoperator

from cases import crossed, for_each
from problems import made_objective
from scoreline import MeasureClassifier
from scoreline.objective import Objective
from scoreline.operators import BlockOperator, InterceptOperator, ScaledOperator, as_operator
from scoreline.risks import ContingencyRisk, PartialRocRisk
from scoreline.risks.registry import all_risks, get_risk
from scoreline.runtime import parallel
from scoreline.solvers.common import sample_start as sample_start_module
from scoreline.solvers.common.sample_start import ENOUGH, EXCESS, Samples, sample_start, sizes
from scoreline.solvers.lbfgs import LbfgsSolver
from scoreline.solvers.registry import all_solvers

N = 6007  # a prime: a product with 1000 rows is a fraction of a pass, and six of them are not one pass
CERTIFIED = {name: solver for name, solver in all_solvers().items() if solver.certified}
SOLVERS = {name: solver for name, solver in CERTIFIED.items() if solver.starts_on_samples}
# contingency_entropy takes 5000 rows at most; the other risks have no such limit.
PAIRS = [
    (s, r) for s in SOLVERS for r in all_risks() if SOLVERS[s].serves(all_risks()[r]) and r != "contingency_entropy"
]
STORAGES = {
    "dense": as_operator,
    "csr": lambda X: as_operator(sp.csr_array(X)),
    "csc": lambda X: as_operator(sp.csc_array(X)),
    "fortran": lambda X: as_operator(np.asfortranarray(X)),
    "linear": lambda X: as_operator(aslinearoperator(X)),
    "scaled": lambda X: ScaledOperator(as_operator(X), np.arange(1.0, X.shape[1] + 1.0), X.mean(axis=0)),
}


@pytest.fixture(autouse=True)
def few_rows_are_ample(monkeypatch):
    """Let init="auto" take samples from 4000 rows on, as init="samples" does: small problems show as much."""
    monkeypatch.setattr(sample_start_module, "AMPLE", 4.0)


def data(n=N, p=4, positive=0.3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) + 0.5
    X[rng.random((n, p)) < 0.2] = 0.0
    score = X @ rng.standard_normal(p) + rng.standard_normal(n)
    return X, np.where(score > np.quantile(score, 1.0 - positive), 1, -1)


def problem(risk, storage="dense", alpha=1e-3, weight=None, intercept=None, **options):
    return made_objective(*data(**options), risk, alpha, weight, intercept, STORAGES[storage])


def rows_of(objective):
    operator = objective.operator
    while not hasattr(operator, "rows"):
        operator = operator.inner
    return operator.rows.astype(np.intp)


@for_each("p", [1, 4, 50, 51, 100, 1000])
def test_there_are_no_samples_unless_rows_are_many_times_the_features(p):
    least = max(4000, 80 * p)
    assert sizes(least - 1, p) == []
    assert sizes(least, p) == [max(1000, 20 * p)]


@for_each("p", [1, 6, 7, 20, 54, 300])
@for_each("n", [4000, 10_000, 63_999, 64_000, 600_000, 10**8])
def test_samples_grow_until_accurate_enough_or_a_quarter_of_the_rows(n, p):
    found = sizes(n, p)
    assert found == sorted(set(found))
    assert all(type(m) is int and max(1000, 20 * p) <= m <= n / 4 for m in found)
    assert all(EXCESS * p / m > ENOUGH for m in found[:-1]), "a smaller sample would have been enough"
    if found:
        assert EXCESS * p / found[-1] <= ENOUGH or 16 * found[-1] > n / 4, "a larger sample would have fitted"


@for_each("positive", [0.3, 0.5, 0.02, 0.98])
@for_each("risk", ["hinge", "prbep", "average_precision", "contingency"])
def test_samples_are_nested_and_hold_distinct_rows_of_positive_weight(risk, positive):
    weight = np.random.default_rng(1).integers(0, 3, N).astype(float)
    samples = Samples(problem(risk, weight=weight, positive=positive), 3000)
    smaller = np.array([], dtype=int)
    for m in (1000, 1001, 2500, 3000):
        rows = rows_of(samples.of(m))
        assert len(np.unique(rows)) == len(rows) == m
        assert np.isin(smaller, rows).all()
        assert (weight[rows] > 0.0).all()
        smaller = rows


@for_each("storage, weighted", [("dense", False), ("csr", True), ("scaled", True)])
@for_each("positive", [0.3, 0.02, 0.98])
def test_both_classes_have_equally_many_rows_as_long_as_there_are_so_many(positive, storage, weighted):
    weight = np.random.default_rng(1).choice([0.0, 0.5, 1.7], N) if weighted else np.ones(N)
    objective = problem("roc_area", storage, weight=weight if weighted else None, positive=positive, intercept=True)
    w = np.arange(1.0, 6.0)
    sign, z = objective.risk.labels.sign, objective.scores(w)
    available = {side: int(((sign == side) & (weight > 0.0)).sum()) for side in (1, -1)}
    rare = min(available.values())
    for m in (1000, 1001):
        part = Samples(objective, m).of(m)
        rows, labels = rows_of(part), part.risk.labels
        assert part.operator.shape == (m, 5)
        assert np.array_equal(labels.sign, sign[rows])
        # The products of the sample are those of its rows, up to the order of sums of five terms.
        np.testing.assert_allclose(part.scores(w), z[rows], rtol=1e-13, atol=1e-13)
        taken = sorted(int((labels.sign == side).sum()) for side in (1, -1))
        assert taken == sorted([min(rare, m // 2), m - min(rare, m // 2)]), "all rows of a class rarer than half of m"
        for side in (1, -1):  # up to the rounding of a sum of 1000 weights
            own = labels.sign == side
            expected = available[side] * weight[rows[own]].mean()
            assert labels.weight[own].sum() == pytest.approx(expected, rel=1e-13)


@for_each("weighted", [False, True])
@for_each("risk", ["average_precision", "contingency", "contingency_entropy"])
def test_samples_for_integer_weights_draw_rows_in_proportion(risk, weighted):
    weight = np.random.default_rng(1).integers(0, 2, 4800).astype(float) if weighted else None
    objective = problem(risk, weight=weight, n=4800)
    assert not objective.risk.real_weights
    part, sign = Samples(objective, 1000).of(1000), objective.risk.labels.sign
    rows, labels = rows_of(part), part.risk.labels
    assert (labels.weight is None) == (weight is None)
    assert weight is None or np.array_equal(labels.weight, weight[rows])
    counted = np.full(4800, True) if weight is None else weight > 0.0
    share = np.count_nonzero(counted & (sign > 0)) / np.count_nonzero(counted)
    assert abs(np.count_nonzero(labels.sign > 0) - 1000 * share) <= 0.5  # the nearest whole number


@for_each("rare", [1, -1])
@for_each("risk", ["hinge", "prbep", "average_precision", "contingency"])
def test_the_only_row_of_a_class_is_in_every_sample(risk, rare):
    X, _ = data()
    y = np.full(N, -rare)
    y[77] = rare
    part = Samples(Objective(as_operator(X), get_risk(risk).prepare(y), 1e-3), 1000).of(1000)
    assert 77 in rows_of(part)
    assert part.operator.shape[0] == 1000


def test_alpha_is_at_least_one_over_the_rows_of_the_sample():
    for alpha, expected in ((1e-6, 1e-3), (1e-3, 1e-3), (0.1, 0.1)):
        assert Samples(problem("hinge", alpha=alpha), 1000).of(1000).alpha == expected


@for_each("weighted", [False, True])
@for_each("risk", ["hinge", "roc_area", "prbep"])
def test_the_mean_of_j_over_samples_is_j(risk, weighted):
    weight = np.random.default_rng(1).uniform(0.0, 2.0, N) if weighted else None
    objective = problem(risk, weight=weight, alpha=1e-2, positive=0.1, intercept=True)
    w = np.array([0.5, -1.0, 0.3, 0.8, -0.2])
    values = np.array([Samples(objective, 1000, seed=k).of(1000).value(w) for k in range(60)])
    # The bias of PRBEP and of weights, O(1 / m), is 0.3 and 0.1 of this error at most (from 3000 seeds): 4 leave room for it.
    error = values.std(ddof=1) / np.sqrt(len(values))
    assert abs(values.mean() - objective.value(w)) <= 4.0 * error
    assert error < 0.01 * objective.value(w), "without which this says nothing"


@for_each("storage", ["dense", "csr", "csc", "fortran", "scaled"])
def test_an_operator_on_rows_multiplies_and_counts_its_own_passes(storage):
    X, _ = data(n=500)
    operator = InterceptOperator(STORAGES[storage](X))
    dense = np.column_stack([operator.matvec(e) for e in np.eye(5)])
    rows, before = np.array([499, 3, 3, 77, 0]), operator.n_passes
    part = operator.on_rows(rows)
    w, u = np.arange(5.0), np.array([1.0, -2.0, 0.5, 0.0, 3.0])
    # Sums of five terms of size 10, in another order.
    np.testing.assert_allclose(part.matvec(w), dense[rows] @ w, rtol=1e-13, atol=1e-12)
    np.testing.assert_allclose(part.rmatvec(u), u @ dense[rows], rtol=1e-13, atol=1e-12)
    np.testing.assert_allclose(part.gram(abs(u)), dense[rows].T * abs(u) @ dense[rows], rtol=1e-12, atol=1e-11)
    assert part.n_passes >= 3.0
    assert operator.n_passes == operator.inner.n_passes == before
    assert part.cheap_rows == operator.cheap_rows == (storage not in ("csc", "fortran"))
    assert not STORAGES["linear"](X).cheap_rows


@for_each("storage, solver, risk", crossed(["dense", "csr"], PAIRS, strength=1))
def test_it_proves_the_same_optimum_for_every_solver_and_risk(solver, risk, storage):
    check_same_optimum(solver, lambda: problem(risk, storage))


@for_each("positive", [0.3, 0.001, 0.999])
@for_each("solver, risk", [("smoothed", "prbep"), ("smoothed", "hinge"), ("newton", "logistic")])
def test_it_proves_the_same_optimum_with_wrappers_and_weights(solver, risk, positive):
    weight = np.random.default_rng(1).choice([0.5, 2.0], N)
    check_same_optimum(solver, lambda: problem(risk, "scaled", weight=weight, positive=positive, intercept=True))


def check_same_optimum(solver, make):
    results = [SOLVERS[solver](tol=1e-3, init=init).solve(make()) for init in ("zero", "samples")]
    assert [r.status for r in results] == ["converged", "converged"]
    for one, other in (results, results[::-1]):
        assert one.lower_bound <= other.objective
    history = results[1].history
    passes = history["passes"]
    # The first row is w = 0, which costs nothing, the second the point that the samples have found.
    assert passes[0] == 0.0
    assert history["objective"][0] == make().risk.value_at_zero()
    assert passes[1] > 1.0
    assert passes[1] != round(passes[1])  # products with 1000 of N rows
    assert (np.diff(history["objective"]) <= 0.0).all()
    assert results[1].n_passes >= passes[-1]
    assert len(passes) == results[1].n_iter + 2


@for_each("solver", sorted(set(CERTIFIED) - set(SOLVERS)))
def test_solvers_that_do_not_begin_so_by_themselves_can(solver):
    supported = (
        r for r in ("hinge", "hinge_free_intercept", "squared_hinge") if CERTIFIED[solver].serves(all_risks()[r])
    )
    risk = next(supported)
    auto, zero, sampled = (
        CERTIFIED[solver](max_iter=100, init=init).solve(problem(risk)) for init in ("auto", "zero", "samples")
    )
    assert np.array_equal(auto.w, zero.w)
    assert auto.history["passes"] == zero.history["passes"]
    assert sampled.history["passes"][1] > zero.history["passes"][0]
    assert (np.diff(sampled.history["objective"]) <= 0.0).all()
    assert len({len(column) for column in sampled.history.values()}) == 1
    assert sampled.lower_bound <= zero.objective
    assert zero.lower_bound <= sampled.objective


@for_each("storage", ["dense", "csr", "scaled"])
@for_each("solver, risk", [("smoothed", "prbep"), ("lbfgs", "logistic"), ("newton", "squared_hinge")])
def test_auto_means_samples_where_they_pay(solver, risk, storage):
    auto, sampled = (SOLVERS[solver](init=init).solve(problem(risk, storage)) for init in ("auto", "samples"))
    zero = SOLVERS[solver](init="zero").solve(problem(risk, storage))
    assert np.array_equal(auto.w, sampled.w)
    assert auto.history["passes"] == sampled.history["passes"]
    assert not np.array_equal(auto.w, zero.w)


@for_each("storage, n", [("dense", 3999), ("csc", N), ("fortran", N), ("linear", N)])
@for_each("init", ["auto", "samples"])
def test_it_begins_at_zero_where_samples_do_not_pay(init, storage, n):
    assert sample_start(problem("roc_area", storage, n=n), SOLVERS["smoothed"]()) is None
    result, zero = (SOLVERS["smoothed"](init=i).solve(problem("roc_area", storage, n=n)) for i in (init, "zero"))
    assert np.array_equal(result.w, zero.w)
    assert result.n_passes == zero.n_passes


class Blocks(BlockOperator):
    """What a user writes for rows in a file: blocks, and no way to single rows but blocks of one row."""

    def __init__(self, X):
        super().__init__(X.shape)
        self.X, self.read = X, 0

    def _block(self, start, stop):
        self.read += 1
        return self.X[start:stop]


def test_auto_does_not_make_a_block_for_every_row_of_a_sample():
    X, y = data()
    read = {}
    for init in ("zero", "auto"):
        operator = Blocks(X)
        SOLVERS["smoothed"](init=init).solve(Objective(operator, get_risk("roc_area").prepare(y), 1e-3))
        read[init] = operator.read
    assert read["auto"] <= 2 * read["zero"]  # a start that pays


@for_each("storage", ["dense", "csr"])
@for_each("solver, risk", [("smoothed", "roc_area"), ("smoothed", "prbep"), ("lbfgs", "logistic")])
def test_threads_and_repetition_change_no_bit(monkeypatch, solver, risk, storage):
    monkeypatch.setattr(parallel, "MIN_CHUNK_WORK", 500)  # so that samples are several chunks, too
    runs = []
    for threads in (1, 2, 2):
        with parallel.thread_limit(threads):
            runs.append(SOLVERS[solver](tol=1e-3, init="samples").solve(problem(risk, storage)))
    assert all(np.array_equal(r.w, runs[0].w) for r in runs)
    assert all(
        (r.objective, r.lower_bound, r.n_passes) == (runs[0].objective, runs[0].lower_bound, runs[0].n_passes)
        for r in runs
    )


def test_a_second_sample_continues_the_first_and_both_count_passes(caplog):
    options = {"n": 64_000, "p": 7}
    assert sizes(64_000, 7) == [1000, 16_000]
    caplog.set_level(logging.INFO, logger="scoreline")
    objective = problem("logistic", **options)
    found = sample_start(objective, LbfgsSolver())
    texts = [r.getMessage() for r in caplog.records if r.getMessage().startswith("start on")]
    assert [t.split(":")[0] for t in texts] == ["start on 1000 of 64000 rows", "start on 16000 of 64000 rows"]
    assert 0.0 < objective.n_passes < 8.0  # 8 iterations of two products and some more, on a quarter of the rows
    # J(w) is about 2 p / m = 0.1 % above the optimum (0.04 % here), J(0) 109 % above; the tolerance is ten times the former.
    assert objective.value(found.w) <= 1.01 * LbfgsSolver(tol=1e-4, init="zero").solve(objective).objective


def test_callbacks_see_the_run_on_all_rows_only():
    progresses = []
    result = LbfgsSolver(tol=1e-6, callbacks=[progresses.append]).solve(problem("logistic"))
    assert [p.iteration for p in progresses] == list(range(1, result.n_iter + 1))
    assert [p.passes for p in progresses] == result.history["passes"][2:]  # after w = 0 and the end of the samples


@for_each("solver, risk", [("smoothed", "roc_area"), ("lbfgs", "logistic")])
def test_a_given_start_or_state_means_no_samples(solver, risk):
    objective = problem(risk)
    w0 = np.full(objective.n_features, 0.1)
    sampled, zero = (SOLVERS[solver](init=init).solve(problem(risk), w0) for init in ("samples", "zero"))
    assert np.array_equal(sampled.w, zero.w)
    assert sampled.n_passes == zero.n_passes == round(zero.n_passes)
    record = SOLVERS[solver](init="zero", max_iter=2, tol=1e-6).solve(problem(risk)).state.record()
    sampled, zero = (
        SOLVERS[solver](init=init, tol=1e-6).solve(problem(risk), state=record) for init in ("samples", "zero")
    )
    assert np.array_equal(sampled.w, zero.w)
    assert sampled.n_passes == zero.n_passes == round(zero.n_passes)


@for_each("how", ["mu", "c_mu"])
@for_each("risk", ["hinge", "roc_area"])
@for_each("init", ["auto", "samples"])
def test_a_fixed_smoothing_stays_that_of_all_rows(init, risk, how):
    mu = 0.5e-2 / problem(risk).risk.prox_bound  # R - R_mu is at most half of abs_tol: that gap can be reached
    fixed = {"mu": mu} if how == "mu" else {"c_mu": 0.5}
    result = SOLVERS["smoothed"](abs_tol=1e-2, init=init, **fixed).solve(problem(risk))
    assert result.status == "converged"
    assert result.gap <= 1e-2
    assert result.state.mu == pytest.approx(mu, rel=1e-15)  # c_mu: the same product in another order


@for_each("at_step", [1, 3])
@for_each("solver, risk", [("smoothed", "roc_area"), ("lbfgs", "logistic")])
def test_ctrl_c_on_a_sample_keeps_a_point_and_its_value(monkeypatch, solver, risk, at_step):
    original, calls, signal = LbfgsSolver.step, [], KeyboardInterrupt()

    def interrupted(self, objective, state):
        if objective.operator.shape[0] < N:
            calls.append(1)
            if len(calls) == at_step:
                raise signal
        return original(self, objective, state)

    monkeypatch.setattr(LbfgsSolver, "step", interrupted)
    result = SOLVERS[solver](tol=1e-9).solve(problem(risk))
    assert (result.status, result.n_iter) == ("interrupted", 0)
    assert result.interruption is signal
    assert len(calls) == at_step
    assert np.isfinite(result.w).all()
    assert result.w.any() == (at_step > 1)
    assert result.objective == problem(risk).value(result.w)  # the same products in the same order


@for_each("solver, risk", PAIRS)
def test_no_time_is_no_error(solver, risk):
    result = SOLVERS[solver](tol=1e-9, max_time=1e-9).solve(problem(risk))
    assert result.status in ("max_time", "converged")
    assert np.isfinite(result.objective)
    assert result.n_iter == 0


def test_other_words_are_refused_with_those_that_are_not():
    with pytest.raises(ValueError, match="init") as caught:
        LbfgsSolver(init="sample")
    assert all(f"{word!r}" in str(caught.value) for word in ("auto", "zero", "moments", "samples"))


@for_each(
    "weights, measure", crossed(["plain", "whole", "balanced"], ["roc_auc", "f1", "prbep", "accuracy"], strength=1)
)
def test_the_classifier_finds_the_same_from_samples_and_from_zero(measure, weights):
    X, y = data()
    sample_weight = np.random.default_rng(1).integers(0, 3, N) if weights == "whole" else None
    class_weight = "balanced" if weights == "balanced" else None
    risk = "hinge" if measure == "f1" else "auto"  # one fit, not a search that may end at another cost
    fits = [
        MeasureClassifier(
            measure, risk=risk, class_weight=class_weight, solver_params={"init": init}, random_state=0
        ).fit(X, y, sample_weight=sample_weight)
        for init in ("samples", "zero")
    ]
    sampled, zero = fits
    assert abs(sampled.objective_ - zero.objective_) <= sampled.gap_ + zero.gap_
    assert not np.array_equal(sampled.coef_, zero.coef_)


def peak(call):
    """Return the largest memory of a second call in MB: the first compiles kernels and fills caches."""
    call()
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1] / 1e6
    finally:
        tracemalloc.stop()


@for_each("storage", ["dense", "csr"])
def test_x_is_not_copied_for_samples(storage):
    X, y = data(n=40_000, p=20)
    assert X.nbytes == 6_400_000
    objective = Objective(STORAGES[storage](X), get_risk("roc_area").prepare(y), 1e-3)
    # 0.5 MB: the numbers of the rows of a class (0.22 MB), their random order and, for the Gram matrix, 1000 rows (0.16 MB).
    assert peak(lambda: sample_start(objective, SOLVERS["smoothed"]())) <= 1.0
    # With a Hessian of all rows, 8.4 MB for dense X, a copy would not show; without, 2.8 MB of scores from either start.
    zero, sampled = (
        peak(lambda init=init: SOLVERS["smoothed"](init=init, precondition=False).solve(objective))
        for init in ("zero", "samples")
    )
    assert sampled <= zero + 0.5


def test_samples_that_mislead_are_forgotten():
    """One row of a million times the size: samples without it lead far beyond J(0), and the run begins again."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20_000, 15))
    y = np.where(X[:, 0] + rng.standard_normal(len(X)) > 0.5, 1, -1)
    X[7] *= 1e6
    for solver, risk in (("smoothed", "roc_area"), ("newton", "logistic"), ("lbfgs", "logistic")):
        auto, zero = (
            SOLVERS[solver](init=init, max_iter=300).solve(Objective(as_operator(X), get_risk(risk).prepare(y), 1e-2))
            for init in ("auto", "zero")
        )
        assert auto.lower_bound <= zero.objective
        assert zero.lower_bound <= auto.objective
        assert auto.n_passes <= zero.n_passes + 12.0  # a sample of 1000 rows, and the look at its end


def test_a_risk_that_counts_rows_does_not_begin_on_samples():
    X, y = data()
    risk = ContingencyRisk("precision_at_k", {"k": 2000}).prepare(y)
    sampled, zero = (
        CERTIFIED["bundle_ocas"](init=init, max_iter=20).solve(Objective(as_operator(X), risk, 1e-2))
        for init in ("samples", "zero")
    )
    assert np.array_equal(sampled.w, zero.w)


@for_each("n, p, expected", [(15_999, 4, False), (16_000, 4, True), (31_999, 100, False), (32_000, 100, True)])
def test_auto_wants_sixteen_times_the_rows_of_the_first_sample(monkeypatch, n, p, expected):
    monkeypatch.setattr(sample_start_module, "AMPLE", 16.0)
    y = np.where(np.arange(n) % 3 == 0, 1, -1)
    objective = Objective(as_operator(sp.csr_array((n, p))), get_risk("hinge").prepare(y), 1e-2)
    assert sample_start_module.samples_save_time(objective) is expected


@for_each("solver, risk", [("smoothed", "roc_area"), ("lbfgs", "logistic"), ("newton", "logistic")])
def test_a_point_worse_than_zero_is_given_up_for_zero(monkeypatch, solver, risk):
    def misled(objective, own, control=None):
        found = sample_start(objective, own, control)
        return found._replace(w=-1e3 * found.w)

    zero = SOLVERS[solver](init="zero").solve(problem(risk))
    monkeypatch.setattr(sample_start_module, "sample_start", misled)
    begun = SOLVERS[solver](init="samples").solve(problem(risk))
    assert begun.status == "converged"
    assert begun.n_iter == zero.n_iter
    assert np.array_equal(begun.w, zero.w)  # nothing of the samples is left


def test_the_fingerprint_of_a_risk_knows_its_parameters_and_its_rows():
    y = np.where(np.arange(30) % 3 == 0, 1, -1)
    risks = [get_risk("hinge"), get_risk("logistic"), PartialRocRisk(0.1), PartialRocRisk(0.3)]
    risks += [ContingencyRisk("fbeta", {"beta": b}, ties=t) for b in (0.5, 2.0) for t in ("any", "smallest")]
    found = [risk.prepare(y).fingerprint() for risk in risks]
    found += [risks[0].prepare(-y).fingerprint(), risks[0].prepare(y, np.arange(1.0, 31.0)).fingerprint()]
    assert len(set(found)) == len(found)
    assert risks[0].prepare(y).fingerprint() == found[0]
