"""How many products with X a run costs: exactly 2 an iteration, and exactly the stated extras."""

import numpy as np
import pytest

from cases import for_each
from scoreline.objective import Objective
from scoreline.operators import as_operator
from scoreline.risks.registry import get_risk
from scoreline.solvers import LbfgsSolver, lbfgs
from scoreline.solvers import SmoothedSolver as Preconditioned

REFRESH = 50


class SmoothedSolver(Preconditioned):
    """Without the Hessian, whose passes depend on when it is due."""

    def __init__(self, **options):
        super().__init__(precondition=False, **options)


class Tally:
    """Counts products, changes of mu, moves and line-search trials of one run."""

    def __init__(self, monkeypatch, solver, operator):
        self.matvec = self.rmatvec = self.mu_changes = self.moves = self.trials = 0
        self.order = []
        self._count(monkeypatch, operator, "matvec")
        self._count(monkeypatch, operator, "rmatvec")
        adjust, move, search = solver.adjust, type(solver)._move, lbfgs.strong_wolfe

        def counted_adjust(objective, state):
            mu = state.mu
            adjust(objective, state)
            self.mu_changes += state.mu != mu

        def counted_move(own, objective, state):
            self.moves += 1
            return move(own, objective, state)

        def counted_search(line, *args):
            def counted_line(a):
                self.trials += 1
                return line(a)

            return search(counted_line, *args)

        monkeypatch.setattr(solver, "adjust", counted_adjust)
        monkeypatch.setattr(type(solver), "_move", counted_move)
        monkeypatch.setattr(lbfgs, "strong_wolfe", counted_search)

    def _count(self, monkeypatch, operator, name):
        original = getattr(operator, name)

        def counted(vector):
            setattr(self, name, getattr(self, name) + 1)
            self.order.append(name)
            return original(vector)

        monkeypatch.setattr(operator, name, counted)


def problem(risk, n=150, p=12, alpha=None):
    """Return a problem on which the solver is still busy after 120 iterations (badly scaled for the smooth risks)."""
    smooth = get_risk(risk).smooth
    rng = np.random.default_rng(0)
    size = np.logspace(0, 1.5 if smooth else 0.5, p)
    X = rng.standard_normal((n, p)) * size
    y = np.where(X @ (rng.standard_normal(p) / size) + 2 * rng.standard_normal(n) > 0.5, 1, -1)
    alpha = (1e-4 if smooth else 1e-3) if alpha is None else alpha
    return Objective(as_operator(X), get_risk(risk).prepare(y), alpha)


CASES = [
    (SmoothedSolver, "hinge"),
    (SmoothedSolver, "roc_area"),
    (LbfgsSolver, "logistic"),
    (LbfgsSolver, "squared_hinge"),
]


@for_each("max_iter", [1, 7, 49, 50, 51, 120])
@for_each("solver_class, risk", CASES)
def test_the_count_is_exact(monkeypatch, solver_class, risk, max_iter):
    objective = problem(risk)
    solver = solver_class(tol=1e-13, max_iter=max_iter)
    tally = Tally(monkeypatch, solver, objective.operator)
    result = solver.solve(objective)
    if tally.moves != result.n_iter:
        pytest.fail(f"{tally.moves} moves in {result.n_iter} iterations: the problem must not need a restart")
    n = result.n_iter
    refreshes = n // REFRESH
    assert tally.rmatvec == 1 + n + tally.mu_changes  # start, one an iteration, one for each new mu
    assert tally.matvec == n + refreshes + 1  # one an iteration, refreshes, the final proof; none at w0 = 0
    assert result.n_passes == tally.matvec + tally.rmatvec == 2 * n + 2 + tally.mu_changes + refreshes
    assert objective.n_passes == result.n_passes
    assert tally.order[0] == "rmatvec"
    assert tally.order[-1] == "matvec"
    if max_iter >= 50:
        assert result.status == "max_iter" or n < max_iter
        assert tally.trials > n, "some line search must have needed more than one trial"
    if solver_class is SmoothedSolver and max_iter >= 49:
        assert tally.mu_changes >= 1  # or the count above would not have met one


def test_refreshes_do_happen(monkeypatch):
    objective = problem("logistic", p=30, n=400, alpha=1e-7)
    solver = LbfgsSolver(tol=1e-13, max_iter=101)
    tally = Tally(monkeypatch, solver, objective.operator)
    result = solver.solve(objective)
    assert result.n_iter == 101, "choose a harder problem"
    assert tally.matvec == 101 + 2 + 1


@for_each("solver_class, risk", CASES)
def test_the_line_search_costs_nothing(monkeypatch, solver_class, risk):
    """A search that looks at seven more points, the last of them not the accepted one, costs the same passes."""
    search = lbfgs.strong_wolfe

    def curious(line, value, slope, step):
        a = search(line, value, slope, step)
        for factor in (0.1, 0.5, 2.0, 3.0, 10.0, 0.3, 0.7):
            line(factor * a)
        return a

    plain = solver_class(tol=1e-12, max_iter=20).solve(problem(risk))
    monkeypatch.setattr(lbfgs, "strong_wolfe", curious)
    again = solver_class(tol=1e-12, max_iter=20).solve(problem(risk))
    assert again.n_iter == plain.n_iter
    assert again.n_passes == plain.n_passes
    assert np.array_equal(again.w, plain.w)
    assert again.lower_bound == plain.lower_bound


@for_each("solver_class, risk", CASES)
def test_history_shows_the_passes_of_each_iteration(monkeypatch, solver_class, risk):
    objective = problem(risk)
    solver = solver_class(tol=1e-13, max_iter=60)
    mus = []
    step = solver.step

    def watched(objective, state):
        before = state.mu
        moved = step(objective, state)
        mus.append(state.mu != before)
        return moved

    monkeypatch.setattr(solver, "step", watched)
    result = solver.solve(objective)
    passes = result.history["passes"]
    assert passes[0] == 1.0  # w0 = 0 costs only the rmatvec
    expected = [2 + changed + ((k + 1) % REFRESH == 0) for k, changed in enumerate(mus)]
    assert np.diff(passes).tolist() == expected
    assert result.n_passes == passes[-1] + 1


def test_another_start_costs_one_matvec_more(monkeypatch):
    objective = problem("logistic")
    solver = LbfgsSolver(tol=1e-13, max_iter=3)
    tally = Tally(monkeypatch, solver, objective.operator)
    result = solver.solve(objective, np.full(objective.n_features, 0.01))
    assert tally.order[:2] == ["matvec", "rmatvec"]
    assert (tally.matvec, tally.rmatvec) == (1 + result.n_iter + 1, 1 + result.n_iter)


@for_each("solver_class, risk", CASES)
def test_a_resumed_run_goes_on_counting(monkeypatch, solver_class, risk):
    objective = problem(risk)
    first = solver_class(tol=1e-13, max_iter=6).solve(objective)
    assert first.n_passes == objective.n_passes
    other = problem(risk)
    solver = solver_class(tol=1e-13, max_iter=10)
    tally = Tally(monkeypatch, solver, other.operator)
    record = {**first.state.record(), "history": {k: list(v) for k, v in first.history.items()}}
    rest = solver.solve(other, state=record)
    # scores and gradient at the old point, 4 iterations, the final proof
    assert tally.matvec + tally.rmatvec == 2 + 2 * 4 + tally.mu_changes + 1
    assert rest.n_passes == first.n_passes + tally.matvec + tally.rmatvec


def test_a_fixed_mu_never_costs_an_extra_product(monkeypatch):
    objective = problem("hinge")
    solver = SmoothedSolver(tol=1e-13, max_iter=30, mu=0.01 / objective.risk.ramp_scale)
    tally = Tally(monkeypatch, solver, objective.operator)
    result = solver.solve(objective)
    assert tally.mu_changes == 0
    if tally.moves == result.n_iter:
        assert result.n_passes == 2 * result.n_iter + 2


def test_zero_iterations_cost_start_and_proof():
    """From given coefficients, that is: w = 0 ranks nothing, and is left before it counts as an answer."""
    objective = problem("logistic")
    result = LbfgsSolver(tol=1e9).solve(objective, np.full(objective.n_features, 0.1))
    assert (result.n_iter, result.n_passes, result.status) == (0, 3.0, "converged")
    result = LbfgsSolver(tol=1e9).solve(problem("logistic"))
    assert (result.n_iter, result.n_passes, result.status) == (1, 4.0, "converged")
    assert result.w.any()


def test_a_search_that_finds_nothing_costs_one_matvec_and_a_restart(monkeypatch):
    search, calls = lbfgs.strong_wolfe, []

    def fails_once(line, *args):
        calls.append(1)
        line(1e-3)  # trials overwrite the gradient's memory: it must be made again
        return 0.0 if len(calls) == 6 else search(line, *args)

    monkeypatch.setattr(lbfgs, "strong_wolfe", fails_once)
    result = LbfgsSolver(tol=1e-13, max_iter=9).solve(problem("logistic"))
    assert result.n_iter == 9
    assert result.n_passes == 2 * 9 + 2 + 1
    assert np.diff(result.history["passes"]).tolist() == [2, 2, 2, 2, 2, 3, 2, 2, 2]
    assert (np.diff(result.history["objective"]) < 0).all(), "it goes on descending after the restart"


def test_two_searches_in_a_row_that_find_nothing_end_the_run(monkeypatch):
    search, calls = lbfgs.strong_wolfe, []

    def fails_from_the_sixth_on(line, *args):
        calls.append(1)
        return 0.0 if len(calls) >= 6 else search(line, *args)

    monkeypatch.setattr(lbfgs, "strong_wolfe", fails_from_the_sixth_on)
    result = LbfgsSolver(tol=1e-13).solve(problem("logistic"))
    assert result.status == "stalled"
    assert len(calls) == 7
    assert result.objective == pytest.approx(result.history["objective"][5], rel=1e-12)  # fresh scores: rounding
