"""L-BFGS on growing batches: skipped rows change no digit, batches and passes are as documented, the end is proved."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize
from scipy.sparse.linalg import aslinearoperator

from cases import crossed, for_each
from problems import made_objective
from scoreline import MeasureClassifier
from scoreline.objective import Objective
from scoreline.operators import InterceptOperator, ScaledOperator, as_operator
from scoreline.operators.base import Operator
from scoreline.risks.registry import get_risk
from scoreline.solvers.common.hessian import CurvatureMemory
from scoreline.solvers.common.sample_start import PENALTY
from scoreline.solvers.hybrid import Batches, HybridSolver
from scoreline.solvers.shrinking import SHRINKINGS, PathShrinking, SumShrinking, safe_distance

N = 4001  # a prime: no batch is a round share of the rows
STORAGES = {
    "dense": as_operator,
    "csr": lambda X: as_operator(sp.csr_array(X)),
    "float32": lambda X: as_operator(X.astype(np.float32)),
    "csc": lambda X: as_operator(sp.csc_array(X)),
    "fortran": lambda X: as_operator(np.asfortranarray(X)),
    "linear": lambda X: as_operator(aslinearoperator(X)),
    "intercept": lambda X: InterceptOperator(as_operator(X), 2.0),
    "scaled": lambda X: InterceptOperator(
        ScaledOperator(as_operator(sp.csr_array(X)), np.linspace(0.5, 2.0, X.shape[1]), X.mean(axis=0))
    ),
}


def data(n=N, p=8, seed=0, signal=3.0):
    rng = np.random.default_rng([seed, n, p])
    X = rng.standard_normal((n, p))
    X[rng.random((n, p)) < 0.3] = 0.0
    score = signal * X @ rng.standard_normal(p) / np.sqrt(p) + 0.5 * rng.standard_normal(n) + 0.3
    return X, np.where(score > 0.0, 1, -1)


def problem(storage="dense", alpha=1e-3, weighted=False, risk="squared_hinge", **options):
    X, y = data(**options)
    weight = np.random.default_rng(1).integers(0, 3, len(y)).astype(float) if weighted else None
    return made_objective(X, y, risk, alpha, weight, storage=STORAGES[storage])


def heavy(storage="dense"):
    """Return a problem of columns of many sizes with heavy tails, and a start far beyond the margin but for 3 % of the rows."""
    rng, size = np.random.default_rng(0), 10.0 ** np.linspace(-1, 1, 8)
    X, w = rng.standard_t(2, (N, 8)), rng.standard_normal(8)
    y = np.where((X @ w > 0.0) == (rng.random(N) < 0.97), 1, -1)
    objective = Objective(STORAGES[storage](X * size), get_risk("squared_hinge").prepare(y), 1e-3)
    return objective, np.append(30.0 * w / size, np.ones(objective.n_features - 8))


def matrix_of(objective):
    """Return X as a dense array, by products that are not counted."""
    return np.column_stack([objective.operator.on_rows(np.arange(N)).matvec(e) for e in np.eye(objective.n_features)])


def loss_slope(X, labels, rows, w, risk="squared_hinge"):
    """Return R and X' dR/dz on the rows, by NumPy."""
    y, s = labels.sign[rows], np.ones(len(rows)) if labels.weight is None else labels.weight[rows]
    m = y * (X[rows] @ w)
    t = np.maximum(0.0, 1.0 - m)
    loss, slope = (t**2 / 2.0, -t) if risk == "squared_hinge" else (np.logaddexp(0.0, -m), -1.0 / (1.0 + np.exp(m)))
    return s @ loss / s.sum(), (s * y * slope) @ X[rows] / s.sum()


def trace(objective, shrink, steps=30, w0=0.0, **options):
    """Return w, the best objective and the rows of the batch after each of the first steps, and the shares skipped."""
    solver = HybridSolver(shrink=shrink, **options)
    found = [
        (state.w.copy(), state.best_objective, state.rows, state.history["skipped"][-1])
        for state in itertools.islice(solver.iterates(objective, np.full(objective.n_features, w0)), steps)
    ]
    return tuple(zip(*found, strict=True))


def check_equal(make, **options):
    """Check that the three ways of shrinking agree in every bit; return the shares that "sum" and "path" skipped."""
    none, *others = (trace(make(), shrink, **options) for shrink in SHRINKINGS)
    assert max(none[3]) == 0.0
    for other in others:
        assert len(other[0]) == len(none[0])
        equal = [np.array_equal(v, w) for v, w in zip(none[0], other[0], strict=True)]
        assert all(equal), f"the iterates differ from step {equal.index(False) + 1} of {len(equal)} on"
        assert other[1:3] == none[1:3]
    return [np.array(other[3]) for other in others]


PLANS = {"variance": {"growth": "variance", "first_rows": 50}, "paper": {"growth": "paper", "first_rows": 5}}


@for_each(
    "precondition, plan, weighted, storage",
    crossed([True, False], PLANS, [False, True], ["dense", "csr", "float32", "intercept", "scaled"], strength=1),
)
def test_skipping_changes_no_bit_of_any_iterate(storage, weighted, plan, precondition):
    skipped = []
    for k, alpha in enumerate((1e-1, 1e-3, 1e-5)):
        shares = {"p": (5, 8, 20)[k], "n": (3001, N, 5003)[k], "seed": k}
        # 70 steps of "paper" end on all rows. The first 15 have 31 points at most, so that "path" has forgotten none.
        options = {"steps": 70 if plan == "paper" else 30, "precondition": precondition, **PLANS[plan]}
        add, path = check_equal(
            lambda alpha=alpha, shares=shares: problem(storage, alpha, weighted, **shares), **options
        )
        skipped.append((add.max(), path.max()))
        # The same history of evaluations only until the first row is skipped by one alone; in sum path is ahead all the same.
        early = slice(0, 15)
        assert path[early].sum() >= add[early].sum()
    assert np.max(skipped, axis=0).min() > 0.2, "without which this says nothing"


def test_path_skips_more_than_sum():
    skipped = [check_equal(lambda s=s: problem(seed=s), precondition=False, **PLANS["paper"]) for s in range(3)]
    assert sum(path.sum() for _, path in skipped) > 1.01 * sum(add.sum() for add, _ in skipped)


def test_distances_start_where_a_row_was_last_evaluated():
    norms, margins = np.array([1.0, 2.0, 1.0, 0.0]), np.array([3.0, 3.0, 0.5, 5.0])
    start, out = np.zeros(2), np.array([1.5, 0.0])
    for shrinking in (SumShrinking(norms), PathShrinking(norms)):
        shrinking.update(None, start, margins)
        assert shrinking.needed(np.array([0.9, 0.0]), 0.9).tolist() == [False, False, True, True]
        assert shrinking.needed(out, 1.5).tolist() == [False, True, True, True]
        shrinking.moved(1.5)
        shrinking.update(np.array([False, True, True, True]), out, np.array([9.0, 3.0, 2.0, 5.0]))
        # Back at the start: 3 of way, no distance. Row 0 was seen there, the others at `out`, 1.5 away.
        back = shrinking.needed(start, 1.5).tolist()
        assert back == ([True] if isinstance(shrinking, SumShrinking) else [False]) + [True, True, True]
        assert shrinking.needed(out, 0.0).tolist() == [False, False, False, True]
        shrinking.grown(np.array([4, 0, 1, 2]), np.ones(5))
        assert shrinking.needed(out, 0.0).tolist() == [False, False, True, True, False]


@for_each("kind", [SumShrinking, PathShrinking])
def test_the_bound_holds_after_a_way_so_long_that_it_rounds(kind):
    shrinking, w = kind(np.ones(1)), np.array([1.0])
    shrinking.update(None, np.array([1e9]), np.array([-5.0]))
    shrinking.moved(1e9)  # from far away; the sum has steps of 1e-7 from here on
    shrinking.update(None, w, np.array([1.0 + 1e-8]))
    assert shrinking.needed(w - 5e-8, 5e-8).all(), "the margin may be 1 - 4e-8 there"


@for_each(
    "shrink, storage, weighted, plan",
    crossed(["sum", "path"], [("dense", False), ("csr", True), ("scaled", True)], PLANS, strength=1),
)
def test_rows_that_are_skipped_have_no_loss_at_any_point_that_is_evaluated(
    monkeypatch, shrink, storage, weighted, plan
):
    check_skipped(monkeypatch, problem(storage, 1e-4, weighted), shrink, steps=70, **PLANS[plan])


@for_each("shrink, storage, first_rows", crossed(["sum", "path"], ["dense", "intercept"], [50, 500, N], strength=1))
def test_rows_that_are_skipped_have_no_loss_at_trial_points_either(monkeypatch, shrink, storage, first_rows):
    objective, w0 = heavy(storage)
    options = {"first_rows": first_rows, "precondition": False, "w0": w0, "steps": 60}
    assert check_skipped(monkeypatch, objective, shrink, **options) > 2 * 60 + 4


def check_skipped(monkeypatch, objective, shrink, w0=0.0, steps=30, **options):
    """Check the margins of skipped rows by NumPy wherever the search asks or evaluates; return how often that was."""
    checked, hidden = [], []
    X, y = matrix_of(objective), objective.risk.labels.sign
    order = Batches(objective, HybridSolver(**options).sizes(objective), 0, norms=False).order
    needed, at, search = SHRINKINGS[shrink].needed, Objective.at, HybridSolver._search

    def check(w):
        rows = hidden[-1]
        assert (y[rows] * (X[rows] @ w) >= 1.0).all()  # with no tolerance: 1e-9 was allowed for when they were skipped
        checked.append(len(rows))

    def spy_needed(self, w, step):
        mask = needed(self, w, step)
        rows = order[: len(mask)] if len(mask) < N else np.arange(N)
        hidden.append(rows[~mask])
        check(w)
        return mask

    def spy_at(self, w, z, *arguments, **options):
        if hidden:
            check(w)
        return at(self, w, z, *arguments, **options)

    def spy_search(self, *arguments):
        found = search(self, *arguments)
        hidden.clear()
        return found

    monkeypatch.setattr(SHRINKINGS[shrink], "needed", spy_needed)
    monkeypatch.setattr(Objective, "at", spy_at)
    monkeypatch.setattr(HybridSolver, "_search", spy_search)
    trace(objective, shrink, w0=w0, steps=steps, **options)
    assert max(checked) > 0.2 * N
    return len(checked)


@for_each("first_rows, storage", crossed([50, 500, N], ["dense", "csr", "intercept"], strength=1))
def test_backtracking_changes_no_bit_and_j_of_a_batch_never_rises(monkeypatch, storage, first_rows):
    (objective, w0), search, backtracked, before = heavy(storage), HybridSolver._search, [], {}
    options = {"precondition": False, "first_rows": first_rows}
    add, path = check_equal(lambda: heavy(storage)[0], w0=w0, steps=60, **options)
    assert min(add.max(), path.max()) > 0.2

    def spy(self, part, gradient, d):
        hidden, end = self._exact is not None, self._point.w + d
        found = search(self, part, gradient, d)
        if found[0] is not None and not np.array_equal(found[0].w, end):
            backtracked.append(hidden)
        return found

    monkeypatch.setattr(HybridSolver, "_search", spy)
    solver = HybridSolver(shrink="path", **options)
    for state in itertools.islice(solver.iterates(objective, w0), 60):
        z = solver._part.scores(state.w)
        known = slice(None) if solver._exact is None else solver._exact
        assert np.array_equal(solver._point.z[known], z[known]), "no mixtures of scores are kept"
        value = solver._part.at(state.w, z).value
        if state.rows in before:  # up to the rounding of sums of 4000 terms of one sign
            assert value <= before[state.rows] * (1.0 + 1e-14)
        before[state.rows] = value
    assert len(backtracked) >= 3
    assert sum(backtracked) >= 2, "from where rows had been skipped"


@for_each(
    "risk, weighted, storage",
    crossed(["squared_hinge", "logistic"], [False, True], ["dense", "csr", "intercept", "scaled"], strength=1),
)
def test_objective_and_bound_enclose_the_optimum_of_another_method(storage, weighted, risk):
    objective, rows = problem(storage, 1e-3, weighted, risk), np.arange(N)
    X = matrix_of(objective)

    def J(w):
        value, slope = loss_slope(X, objective.risk.labels, rows, w, risk)
        return value + 5e-4 * w @ w, slope + 1e-3 * w

    best = minimize(J, np.zeros(X.shape[1]), jac=True, method="L-BFGS-B", options={"ftol": 1e-16, "gtol": 1e-10}).fun
    for shrink in SHRINKINGS if risk == "squared_hinge" else ["none"]:
        for growth in ("variance", "paper"):
            result = HybridSolver(shrink=shrink, growth=growth, tol=1e-6).solve(problem(storage, 1e-3, weighted, risk))
            assert result.status == "converged"
            # A gradient of 1e-10 leaves J 1e-20 / (2 alpha) above the optimum; sums of 4000 terms round by 1e-13 at most.
            assert result.lower_bound <= best * (1.0 + 1e-13)
            assert best * (1.0 - 1e-13) <= result.objective <= best + 1e-6 * best
            assert result.objective == pytest.approx(J(result.w)[0], rel=1e-13)


def test_batches_have_the_documented_sizes():
    paper = HybridSolver(growth="paper", first_rows=1).sizes(problem())
    assert paper[:11] == [1, 3, 5, 7, 9, 11, 14, 17, 20, 23, 27]
    assert all(b == int(np.ceil(1.1 * a + 1.0)) for a, b in itertools.pairwise(paper[:-1]))
    assert paper[-1] == N <= np.ceil(1.1 * paper[-2] + 1.0)
    assert HybridSolver(first_rows=3).sizes(problem()) == [3, 12, 48, 192, 768, N]
    assert HybridSolver(first_rows=1999).sizes(problem()) == [1999, N]
    assert HybridSolver(first_rows=2000).sizes(problem()) == HybridSolver(first_rows=10**6).sizes(problem()) == [N]
    assert HybridSolver().sizes(problem()) == [500, N]
    assert HybridSolver().sizes(problem(n=20_001, p=60)) == [600, 2400, 9600, 20_001]


@for_each("weighted", [False, True])
@for_each("storage", ["dense", "scaled"])
def test_batches_are_nested_and_sorted_and_the_last_is_the_objective(storage, weighted):
    objective, sizes = problem(storage, 1e-3, weighted), [20, 160, 1280, N]
    batches, labels = Batches(objective, sizes, 0, norms=True), objective.risk.labels
    X, w = matrix_of(objective), np.linspace(-1.0, 1.0, objective.n_features)
    assert sorted(batches.order) == list(range(N))
    assert batches.of(N) is objective
    for start, m in itertools.pairwise([0, *sizes]):
        rows = batches.order[:m]
        assert (np.diff(rows[start:]) > 0).all()
        assert weighted is False or m == N or (labels.weight[rows] > 0.0).all()
        part = batches.of(m, PENALTY)
        assert part.alpha == (1e-3 if m == N else max(1e-3, PENALTY / m))
        rows = np.arange(N) if m == N else rows
        assert np.array_equal(part.risk.labels.sign, labels.sign[rows])
        assert np.array_equal(batches.places(start, m, m), np.arange(start, m) if m < N else batches.order[start:])
        # Sums of 9 and of 4000 terms in another order.
        np.testing.assert_allclose(part.scores(w), X[rows] @ w, rtol=0.0, atol=1e-13)
        np.testing.assert_allclose(batches.norms(m), np.linalg.norm(X[rows], axis=1), rtol=1e-13)
        assert np.array_equal(batches.margins(part.scores(w)), labels.sign[rows] * part.scores(w))
        assert part.value(w) == pytest.approx(loss_slope(X, labels, rows, w)[0] + 0.5 * part.alpha * w @ w, rel=1e-13)
    assert not np.array_equal(batches.order, Batches(objective, sizes, 1, norms=False).order)


def test_rows_of_no_weight_come_last_also_when_they_are_most():
    X, y = data()
    weight = np.zeros(N)
    weight[::5] = 1.0
    objective = Objective(as_operator(X), get_risk("squared_hinge").prepare(y, weight), 1e-3)
    order = Batches(objective, [100, 1500, N], 0, norms=False).order
    assert sorted(order) == list(range(N))
    assert (order[:801] % 5 == 0).all()
    result = HybridSolver(tol=1e-6, first_rows=100, shrink="path").solve(objective)
    alone = HybridSolver(tol=1e-6).solve(
        Objective(as_operator(X[::5]), get_risk("squared_hinge").prepare(y[::5]), 1e-3)
    )
    assert result.objective == pytest.approx(alone.objective, rel=1e-6)  # both are proved to 1e-6


@for_each(
    "shrink, plan, storage, weighted", crossed(SHRINKINGS, PLANS, [("dense", False), ("scaled", True)], strength=1)
)
def test_gradients_and_pairs_are_those_of_the_batch(monkeypatch, storage, weighted, plan, shrink):
    objective = problem(storage, 1e-3, weighted)
    X, labels, solver = matrix_of(objective), objective.risk.labels, HybridSolver(shrink=shrink, **PLANS[plan])
    add, step, pairs, before, n_rows = CurvatureMemory.add, HybridSolver.step, [], {}, []

    def fresh(w, m):
        """Return the gradient on the first m rows of the permutation, and what its rounding is relative to."""
        rows = np.arange(N) if m == N else solver._batches.order[:m]
        alpha = max(1e-3, 0.0 if plan == "paper" or m == N else PENALTY / m)
        slope = loss_slope(X, labels, rows, w)[1]
        return slope, alpha * w + slope, 1.0 + np.abs(alpha * w).max()

    def spy_step(self, objective, state):
        before.update(w=state.w.copy(), rows=state.rows)
        return step(self, objective, state)

    def spy_add(self, s, y):
        pairs.append((s.copy(), y.copy(), dict(before)))
        return add(self, s, y)

    monkeypatch.setattr(HybridSolver, "step", spy_step)
    monkeypatch.setattr(CurvatureMemory, "add", spy_add)
    for state in itertools.islice(solver.iterates(objective, np.zeros(objective.n_features)), 75):
        n_rows.append(state.rows)
        assert solver._part.operator.shape[0] == state.rows == len(solver._point.z)
        assert np.array_equal(solver._point.w, state.w)
        slope, _, size = fresh(state.w, state.rows)
        np.testing.assert_allclose(solver._slope, slope, rtol=0.0, atol=1e-12 * size)
        if pairs:
            s, y, then = pairs.pop()
            assert np.array_equal(s, state.w - then["w"])
            (_, old, _), (_, new, size) = (fresh(w, then["rows"]) for w in (then["w"], state.w))
            np.testing.assert_allclose(y, new - old, rtol=0.0, atol=1e-12 * size)  # terms of size 1, 4000 of them
    assert n_rows == sorted(n_rows)
    assert n_rows[-1] == N
    assert len(set(n_rows)) == (
        len(solver.sizes(objective)) - (plan == "paper")
    )  # "paper" leaves the first after a step


def counted(name, touched):
    """Return a method of operators that notes the share of the N rows it touches."""
    original = getattr(Operator, name)

    def spy(self, *arguments):
        touched.append((len(arguments[1]) if name.endswith("_rows") else self.shape[0]) / N)
        return original(self, *arguments)

    return spy


@for_each("shrink", SHRINKINGS)
@for_each("plan", PLANS)
def test_passes_are_the_shares_of_the_rows_that_products_touch(monkeypatch, plan, shrink):
    touched, objective = [], problem()
    for name in ("matvec", "rmatvec", "gram", "row_norms", "matvec_rows", "rmatvec_rows"):
        monkeypatch.setattr(Operator, name, counted(name, touched))
    passes = []
    solver = HybridSolver(shrink=shrink, tol=1e-8, callbacks=[lambda p: passes.append(sum(touched))], **PLANS[plan])
    result = solver.solve(objective)
    # Sums of hundreds of terms in another order.
    np.testing.assert_allclose(result.history["passes"][1:], passes, rtol=1e-12)
    assert result.n_passes == pytest.approx(sum(touched), rel=1e-12)
    assert result.n_passes == objective.n_passes
    assert result.history["passes"][1] < (1.5 if shrink == "none" else 2.5), "batches are fractions, lengths one pass"


def test_shrinking_saves_passes_where_most_rows_lie_beyond_the_margin():
    passes = {s: HybridSolver(shrink=s, tol=1e-10).solve(problem(alpha=1e-5, signal=20.0)).n_passes for s in SHRINKINGS}
    assert passes["path"] < 0.95 * passes["none"]
    assert passes["sum"] < 0.95 * passes["none"]


def test_the_history_of_shares_is_as_long_as_the_others():
    first = HybridSolver(shrink="path", tol=1e-9, max_iter=4).solve(problem())
    assert {len(v) for v in first.history.values()} == {5}
    assert first.history["skipped"][0] == 0.0
    again = HybridSolver(shrink="path", tol=1e-9).solve(problem(), state=first.state.record())
    assert len({len(v) for v in again.history.values()}) == 1


def test_the_classifier_takes_it_and_keeps_the_shares():
    X, y = data()
    fits = [
        MeasureClassifier("accuracy", risk="squared_hinge", solver="hybrid", solver_params={"shrink": s}).fit(X, y)
        for s in ("path", "none")
    ]
    assert {len(v) for v in fits[0].history_.values()} == {len(fits[0].history_["skipped"])}
    assert fits[0].score(X, y) > 0.9
    assert np.array_equal(fits[0].coef_, fits[1].coef_)


STEPS = 12  # after which a run with a Hessian has only rounding left, and ends


@for_each(
    "when, shrink, precondition",
    crossed(["within a batch", "just grown", "on all rows"], ["none", "path"], [True, False], strength=1),
)
def test_a_recorded_state_goes_on_as_if_nothing_had_happened(precondition, shrink, when):
    options = {"shrink": shrink, "tol": 1e-15, "first_rows": 50, "precondition": precondition}
    uninterrupted = HybridSolver(max_iter=STEPS, **options).solve(problem("csr", weighted=True))
    rows = [50, *trace(problem("csr", weighted=True), steps=STEPS, **options)[2]]
    kinds = {
        "within a batch": [k for k in range(1, STEPS) if rows[k - 1] == rows[k] < N],
        "just grown": [k for k in range(1, STEPS) if rows[k - 1] < rows[k]],
        "on all rows": [k for k in range(1, STEPS) if rows[k - 1] == N],
    }
    assert kinds[when]
    differ = []
    for k in kinds[when]:
        record = HybridSolver(max_iter=k, **options).solve(problem("csr", weighted=True)).state.record()
        assert record["rows"] == rows[k]
        again = HybridSolver(max_iter=STEPS, **options).solve(problem("csr", weighted=True), state=record)
        if not np.array_equal(again.state.w, uninterrupted.state.w) or again.objective != uninterrupted.objective:
            differ.append(k)
    assert not differ, f"stops after steps {differ} of {kinds[when]} change the run"


@for_each("plan", PLANS)
@for_each("storage", ["dense", "scaled"])
def test_an_end_on_a_batch_returns_j_of_all_rows(storage, plan):
    signal = KeyboardInterrupt()

    def interrupt(progress):
        if progress.iteration == 2:
            raise signal

    at_zero = problem(storage).risk.value_at_zero()
    for ending in ({"max_iter": 1}, {"max_time": 1e-9}, {"callbacks": [interrupt]}, {"callbacks": [lambda p: True]}):
        result = HybridSolver(tol=1e-9, shrink="sum", **PLANS[plan], **ending).solve(problem(storage))
        assert result.state.rows < N
        assert result.objective == problem(storage).value(result.w) <= at_zero  # the same products in the same order
        assert result.lower_bound == 0.0  # a batch proves nothing, but no risk is negative
        assert result.status == {"max_iter": "max_iter", "max_time": "max_time"}.get(next(iter(ending)), "interrupted")
        assert (result.interruption is signal) == (result.n_iter == 2)
        assert (
            result.w.any() or plan == "paper" or result.n_iter == 0
        )  # a batch of 50 finds better than 0; one of 5 may not


def test_ctrl_c_on_all_rows_keeps_the_best():
    def interrupt(progress):
        if np.isfinite(progress.lower_bound):
            raise KeyboardInterrupt

    result = HybridSolver(tol=1e-12, callbacks=[interrupt]).solve(problem())
    assert result.status == "interrupted"
    assert result.lower_bound <= result.objective == problem().value(result.w)


def test_wrong_options_are_refused():
    for name, value in {"shrink": "all", "growth": "fast", "first_rows": 0, "seed": -1, "precondition": "yes"}.items():
        with pytest.raises(ValueError, match=name):
            HybridSolver(**{name: value})
    for shrink in ("sum", "path"):
        with pytest.raises(ValueError, match=r"shrink.*squared_hinge"):
            HybridSolver(shrink=shrink).solve(problem(risk="logistic"))
    with pytest.raises(TypeError, match="curved"):
        HybridSolver().solve(problem(risk="hinge"))


@for_each("storage", ["csc", "fortran", "linear"])
def test_all_rows_are_there_from_the_start_where_rows_are_not_cheap(storage):
    for plan in PLANS.values():
        assert HybridSolver(**plan).sizes(problem(storage)) == [N]
    result, dense = (HybridSolver(tol=1e-6).solve(problem(s)) for s in (storage, "dense"))
    assert result.status == "converged"
    assert abs(result.objective - dense.objective) <= max(result.gap, dense.gap)
    with pytest.raises(TypeError, match=r"shrink='path' reads single rows.*C-ordered array or a CSR matrix"):
        HybridSolver(shrink="path").solve(problem(storage))


def test_a_batch_grows_on_noise_and_not_while_it_has_much_to_tell():
    for seed in range(5):
        X, y = data(n=20_001, seed=seed, signal=10.0)
        noise = np.random.default_rng(seed).choice([-1, 1], len(y))
        grown = []
        for sign in (noise, y):
            objective = Objective(as_operator(X), get_risk("squared_hinge").prepare(sign), 1e-3)
            grown.append(trace(objective, "none", steps=2, first_rows=500)[2])
        assert grown[0][1] > 500, "the second step on noise promises noise"
        assert grown[1][0] == 500


@for_each("risk", ["squared_hinge", "logistic"])
def test_it_ends_where_rounding_is_all_that_is_left(risk):
    result = HybridSolver(tol=1e-16, max_iter=500).solve(problem(risk=risk))
    assert result.status == "stalled"
    assert result.n_iter < 100


def test_a_warm_start_goes_on_from_where_it_is():
    near = HybridSolver(tol=1e-6).solve(problem())
    again = HybridSolver(tol=1e-12, max_iter=1).solve(problem(), near.w)
    assert again.state.rows == N
    assert again.objective <= near.objective
    assert again.lower_bound is not None


def test_a_state_of_other_batches_resumes_on_all_rows():
    record = HybridSolver(max_iter=2, first_rows=50, tol=1e-9).solve(problem()).state.record()
    other = HybridSolver(first_rows=50, seed=1, tol=1e-6).solve(problem(), state=record)
    assert other.status == "converged"
    stopped = HybridSolver(first_rows=50, seed=1, max_iter=2, tol=1e-9).solve(problem(), state=record)
    assert record["rows"] < N
    assert stopped.state.rows == N  # before any step
    same = HybridSolver(first_rows=50, max_iter=2, tol=1e-9).solve(problem(), state=record)
    assert same.state.rows == record["rows"]
    record = HybridSolver(max_iter=2, first_rows=50, tol=1e-9).solve(problem(risk="logistic")).state.record()
    with pytest.raises(ValueError, match=r"shrink.*risk='squared_hinge'"):
        HybridSolver(first_rows=50, shrink="sum").solve(problem(risk="logistic"), state=record)


def test_a_state_of_another_solver_is_refused_by_name():
    from scoreline.solvers import NewtonSolver

    state = NewtonSolver(max_iter=1, tol=1e-9).solve(problem(risk="logistic")).state
    with pytest.raises(ValueError, match="LbfgsState, solver 'hybrid' needs HybridState"):
        HybridSolver().solve(problem(risk="logistic"), state=state)
    with pytest.raises(ValueError, match="not one of solver 'hybrid', which knows no mu"):
        HybridSolver().solve(problem(risk="logistic"), state=state.record())


def test_ctrl_c_in_the_last_pass_keeps_the_run(monkeypatch):
    def press(self, w):
        raise KeyboardInterrupt

    monkeypatch.setattr(Objective, "value", press)
    result = HybridSolver(max_iter=1, first_rows=50, tol=1e-9).solve(problem())
    assert result.status == "interrupted"
    assert isinstance(result.interruption, KeyboardInterrupt)
    assert np.isfinite(result.w).all()


def test_a_margin_that_rounding_could_have_made_is_not_safe():
    margins, norms = np.array([1.0, 1.0 + 1e-10, 1.0 + 1e-6, 1e6 + 1.0]), np.ones(4)
    distance = safe_distance(margins, norms)
    assert np.isneginf(distance[:2]).all()
    assert 0.0 < distance[2] < 1e-6 - 1e-9
    assert 1e6 - 2e-3 < distance[3] < 1e6 - 9e-4  # 1e-9 of the margin
