"""How a run ends: tolerances, time, callbacks, interruption, saved states, warnings."""

import time
import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from cases import for_each
from problems import linear_rows, made_objective
from scoreline.objective import Objective
from scoreline.operators import as_operator
from scoreline.risks.registry import get_risk
from scoreline.solvers import LbfgsSolver, SmoothedSolver, lbfgs
from scoreline.solvers.common import loop as solver_loop
from scoreline.solvers.common.base import Result, State
from scoreline.solvers.common.run_warnings import warn_if_not_converged

CASES = [
    (SmoothedSolver, "hinge"),
    (SmoothedSolver, "roc_area"),
    (LbfgsSolver, "logistic"),
    (LbfgsSolver, "squared_hinge"),
]


def problem(risk, alpha=1e-3):
    return made_objective(*linear_rows(80, 6, seed=2, shift=0.5), risk, alpha)


@for_each("solver_class, risk", CASES)
def test_tol_is_relative_to_the_bound_and_its_floor(solver_class, risk):
    for tol in (0.5, 1e-2, 1e-6):
        objective = problem(risk)
        result = solver_class(tol=tol).solve(objective)
        floor = 1e-3 * objective.risk.value_at_zero()
        gaps = np.subtract(result.history["objective"], result.history["lower_bound"])
        allowed = tol * np.maximum(result.history["lower_bound"], floor)
        assert result.status == "converged"
        assert gaps[-1] <= allowed[-1]
        assert (gaps[:-1] > allowed[:-1]).all(), "it must stop at the first iteration that is good enough"


@for_each("solver_class, risk", CASES)
def test_abs_tol_replaces_tol(solver_class, risk):
    for abs_tol in (0.1, 1e-3, 1e-6):
        result = solver_class(tol=1e-15, abs_tol=abs_tol).solve(problem(risk))
        gaps = np.subtract(result.history["objective"], result.history["lower_bound"])
        assert result.status == "converged"
        assert result.gap <= abs_tol
        assert gaps[-1] <= abs_tol
        assert (gaps[:-1] > abs_tol).all()


def test_the_floor_lets_separable_data_end():
    X = np.array([[1.0], [2.0], [-1.0], [-2.0]])
    objective = Objective(as_operator(X), get_risk("hinge").prepare(np.array([1, 1, -1, -1])), 1e-9)
    result = SmoothedSolver(tol=1e-2).solve(objective)
    assert result.status == "converged"
    assert result.gap <= 1e-2 * 1e-3  # J(0) = 1
    assert result.lower_bound < 1e-3


@for_each("solver_class, risk", CASES)
def test_max_time_before_the_first_iteration(solver_class, risk):
    result = solver_class(tol=1e-12, max_time=1e-12).solve(problem(risk))
    assert (result.status, result.n_iter) == ("max_time", 0)
    assert not result.w.any()
    assert result.objective == pytest.approx(problem(risk).risk.value_at_zero(), rel=1e-15)
    assert result.lower_bound is not None  # the gradient at zero proves something already
    assert len(result.history["iteration"]) == 1


class FakeTime:
    """A clock that moves one second with every reading, and by hand."""

    def __init__(self):
        self.now = 0.0

    def perf_counter(self):
        self.now += 1.0
        return self.now


def test_max_time_stops_the_run_and_does_not_count_callbacks(monkeypatch):
    clock = FakeTime()
    monkeypatch.setattr(solver_loop, "time", clock)

    def slow(progress):
        clock.now += 1000.0

    result = LbfgsSolver(tol=1e-15, max_time=9.5, callbacks=[slow]).solve(problem("logistic"))
    assert result.status == "max_time"
    seconds = result.history["seconds"]
    assert seconds[-1] >= 9.5
    assert (np.array(seconds[:-1]) < 9.5).all()
    assert seconds[-1] < 1000.0
    assert result.n_iter >= 2


def test_time_is_measured_with_a_monotonic_clock():
    assert solver_loop.time is time


@for_each("risk", ["hinge", "roc_area"])
def test_fixed_mu_stays_and_keeps_the_papers_guarantee(risk):
    objective = problem(risk)
    width = 1e-2
    mu = width / objective.risk.ramp_scale
    # R - width/2 <= R_mu: the gap at the minimum of J_mu is at most width/2, so width is reachable.
    result = SmoothedSolver(mu=mu, abs_tol=width).solve(objective)
    assert result.status == "converged"
    assert result.gap <= width
    assert result.state.mu == mu
    tight = SmoothedSolver(tol=1e-6).solve(problem(risk))
    assert result.lower_bound <= tight.objective
    assert tight.state.mu < mu


def test_a_fixed_mu_that_is_too_wide_stalls_with_a_true_bound():
    objective = problem("hinge")
    result = SmoothedSolver(mu=5.0 / objective.risk.ramp_scale, tol=1e-6, max_iter=500).solve(objective)
    assert result.status in ("stalled", "max_iter")
    tight = SmoothedSolver(tol=1e-6).solve(problem("hinge"))
    assert result.lower_bound <= tight.objective
    assert result.objective >= tight.lower_bound
    assert result.gap > 1e-6 * result.lower_bound


def test_rounding_ends_a_run_as_stalled_not_for_ever():
    result = LbfgsSolver(tol=1e-300, max_iter=2000).solve(problem("logistic"))
    assert result.status == "stalled"
    assert result.gap <= 1e-10 * result.objective  # the allowance for rounding is of this order


@for_each("solver_class, risk", CASES)
def test_callbacks_see_the_best_so_far(solver_class, risk):
    progresses = []
    objective = problem(risk)
    result = solver_class(tol=1e-6, callbacks=[progresses.append, lambda progress: None]).solve(objective)
    assert len(progresses) == result.n_iter
    assert [p.objective for p in progresses] == result.history["objective"][1:]
    assert [p.passes for p in progresses] == result.history["passes"][1:]
    for progress in progresses[:: max(1, len(progresses) // 5)]:
        # carried scores z + a z_d drift by rounding only
        assert problem(risk).value(progress.w) == pytest.approx(progress.objective, rel=1e-12)


def test_a_callback_that_answers_one_or_an_array_does_not_stop_the_run():
    result = LbfgsSolver(tol=1e-4, callbacks=[lambda progress: 1, lambda progress: np.ones(3)]).solve(
        problem("logistic")
    )
    assert result.status == "converged"


def test_every_callback_is_called_even_when_the_first_stops():
    calls = []
    LbfgsSolver(tol=1e-12, callbacks=[lambda progress: True, lambda progress: calls.append(1)]).solve(
        problem("logistic")
    )
    assert calls == [1]


@for_each("at_product", [1, 2, 5, 8])
@for_each("name", ["matvec", "rmatvec"])
def test_ctrl_c_inside_a_product_keeps_the_best_point(monkeypatch, name, at_product):
    objective = problem("roc_area")
    original, calls = getattr(objective.operator, name), []

    def interrupted(vector):
        calls.append(1)
        if len(calls) == at_product:
            raise KeyboardInterrupt
        return original(vector)

    monkeypatch.setattr(objective.operator, name, interrupted)
    result = SmoothedSolver(tol=1e-12).solve(objective)
    assert result.status == "interrupted"
    assert isinstance(result.interruption, KeyboardInterrupt)
    assert problem("roc_area").value(result.w) == pytest.approx(result.objective, rel=1e-12)  # fresh scores, rounding
    assert result.objective <= 1.0 + 1e-12  # J(0) = 1: never worse than the start
    if result.history["objective"]:
        assert result.objective <= result.history["objective"][0] * (1 + 1e-12)


def test_a_state_interrupted_in_mid_iteration_does_not_lose_its_bound(monkeypatch):
    """The bound proved by the last gradient must survive a Ctrl-C right after it, and a saved and restored state."""
    solver = SmoothedSolver(tol=1e-12)
    original, calls = lbfgs.CurvatureMemory.add, []

    def interrupted(memory, s, y):
        calls.append(1)
        if len(calls) == 9:
            raise KeyboardInterrupt
        return original(memory, s, y)

    monkeypatch.setattr(lbfgs.CurvatureMemory, "add", interrupted)
    first = solver.solve(problem("roc_area"))
    assert first.status == "interrupted"
    proved = first.lower_bound
    rest = SmoothedSolver(tol=1e-12, max_iter=first.n_iter + 1).solve(problem("roc_area"), state=first.state.record())
    # The last plane is made again from fresh scores: the same up to rounding.
    assert rest.history["lower_bound"][-1] >= proved * (1 - 1e-12)


def flatten(record, prefix=""):
    for key, value in record.items():
        if isinstance(value, dict):
            yield from flatten(value, f"{prefix}{key}/")
        else:
            yield prefix + key, value


def unflatten(archive):
    record = {}
    for path, array in archive.items():
        *parents, key = path.split("/")
        target = record
        for parent in parents:
            target = target.setdefault(parent, {})
        if parents == ["history"]:
            target[key] = array.tolist()
        else:
            target[key] = array.item() if array.ndim == 0 else array
    return record


@for_each("solver_class, risk", CASES)
def test_a_state_from_an_npz_file_resumes_as_if_nothing_had_happened(tmp_path, solver_class, risk):
    first = solver_class(tol=1e-14, max_iter=7).solve(problem(risk))
    np.savez(tmp_path / "state.npz", **dict(flatten(first.state.record())))
    with np.load(tmp_path / "state.npz", allow_pickle=False) as archive:
        record = unflatten(archive)
    record.setdefault("memory", {})
    resumed = solver_class(tol=1e-14, max_iter=12).solve(problem(risk), state=record)
    straight = solver_class(tol=1e-14, max_iter=12).solve(problem(risk))
    assert resumed.n_iter == straight.n_iter == 12
    assert resumed.state.mu == straight.state.mu
    # Fresh scores instead of carried ones: rounding, magnified by 5 iterations. A lost memory shows in the first digits.
    np.testing.assert_allclose(resumed.w, straight.w, rtol=1e-7, atol=1e-10)
    assert resumed.lower_bound == pytest.approx(straight.lower_bound, rel=1e-7)
    assert resumed.history["iteration"] == [*range(13)]
    assert resumed.history["objective"][:8] == first.history["objective"][:8]


@for_each("solver_class, risk", CASES)
def test_resuming_changes_neither_the_record_nor_the_first_result(solver_class, risk):
    first = solver_class(tol=1e-14, max_iter=4).solve(problem(risk))
    record = first.state.record()
    w, slope, steps = first.w.copy(), record["plane"]["slope"].copy(), record["memory"]["steps"].copy()
    solver_class(tol=1e-14, max_iter=9).solve(problem(risk), state=record)
    assert np.array_equal(first.w, w)
    assert np.array_equal(record["plane"]["slope"], slope)
    assert np.array_equal(record["memory"]["steps"], steps)
    assert record["iteration"] == 4
    assert first.history["iteration"] == [0, 1, 2, 3, 4]
    assert record["history"]["iteration"] == [0, 1, 2, 3, 4]


def result_of(status, lower_bound=0.25):
    state = State(w=np.zeros(1), best_w=np.zeros(1))
    return Result(np.zeros(1), np.zeros(2), 0.5, lower_bound, 17, 36.0, {}, status, state)


@for_each(
    "status, reason, advice",
    [
        ("max_iter", "Stopped by max_iter", "Raise max_iter"),
        ("max_time", "Stopped by max_time", "Raise max_time"),
        ("stalled", "No further progress", "scaling='maxabs'"),
    ],
)
def test_the_warning_says_how_far_and_what_to_do(status, reason, advice):
    with pytest.warns(ConvergenceWarning) as caught:
        warn_if_not_converged(result_of(status), LbfgsSolver(tol=0.01))
    text = str(caught[0].message)
    for part in (reason, "17 iterations", "gap 0.25", "objective 0.5", "tol=0.01", advice):
        assert part in text


def test_the_warning_names_the_tolerance_that_was_in_force():
    with pytest.warns(ConvergenceWarning, match="requested abs_tol=1e-09"):
        warn_if_not_converged(result_of("max_iter"), LbfgsSolver(abs_tol=1e-9))


def test_the_warning_without_a_certificate():
    with pytest.warns(ConvergenceWarning, match="gap unknown"):
        warn_if_not_converged(result_of("max_iter", None), LbfgsSolver(tol=0.01))
    assert result_of("max_iter", None).gap is None


@for_each("status", ["converged", "interrupted"])
def test_no_warning_where_nothing_went_wrong(status):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_if_not_converged(result_of(status), LbfgsSolver(tol=0.01))


@for_each("risk", ["hinge", "roc_area", "prbep"])
def test_the_papers_fixed_smoothing(risk):
    """mu = c_mu eps / D; with c_mu = 1/2 a minimum of J_mu to eps/2 is one of J to eps."""
    objective = problem(risk)
    eps = 0.02
    result = SmoothedSolver(c_mu=0.5, abs_tol=eps).solve(objective)
    assert result.status == "converged"
    assert result.gap <= eps
    labels = objective.risk.labels
    size = {"hinge": labels.total / 2, "roc_area": labels.positive * labels.negative / 2, "prbep": labels.total / 2}[
        risk
    ]
    assert result.state.mu == pytest.approx(0.5 * eps / size, rel=1e-15)


@for_each("options", [{}, {"abs_tol": 0.1, "mu": 1.0}])
def test_the_papers_smoothing_needs_its_epsilon_and_nothing_else(options):
    with pytest.raises(ValueError, match=r"c_mu=10.0 fixes mu = c_mu \* abs_tol / D"):
        SmoothedSolver(c_mu=10.0, **options)
