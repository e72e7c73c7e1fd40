"""Checks that a solver satisfies the contract of `solvers/common/base.py`."""

import contextlib
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from scoreline.objective import Objective
from scoreline.operators import as_operator
from scoreline.risks.base import Risk
from scoreline.risks.registry import all_risks
from scoreline.runtime import parallel
from scoreline.runtime.types import FloatArray
from scoreline.solvers.common.base import Result, Solver
from scoreline.solvers.common.checkpoint import Checkpoint
from scoreline.solvers.common.loop import Progress


def check_solver(solver_class: type[Solver], *, seed: int = 0, **params: Any) -> None:
    """Check a solver on small problems for every risk that it supports.

    The solver must converge. The lower bound must never exceed the objective and may only improve, and the reported objective
    must be J of the returned w. All columns of the history must have the same length. A saved and restored state must lead to
    the same certificate, and a run that resumes from its checkpoint to the same bits. Callbacks, max_iter and Ctrl-C must end a
    run with the right status and the best point so far. Two threads must give the same bits as one.

    Parameters
    ----------
    solver_class : type
        The class.
    seed : int
        Seed of the random problems.
    **params
        Options for the solver.
    """
    risks = [risk for kind in all_risks().values() for risk in kind.variants() if solver_class.serves(risk)]
    assert risks, f"{solver_class.name} supports no risk"
    params = {"tol": 0.05 if solver_class.slow else 1e-4} | params
    for risk in risks:
        X, y = _problem(seed)
        name = risk.name

        def objective(X: FloatArray = X, y: Any = y, risk: Risk = risk) -> Objective:
            return Objective(as_operator(X), risk.prepare(y), 0.1 if solver_class.slow else 1e-3)

        result = solver_class(**params).solve(objective())
        assert result.status == "converged", f"{solver_class.name} on {name}: {result.status}, gap {result.gap}"
        assert result.lower_bound is not None
        assert result.lower_bound <= result.objective, f"{name}: lower bound above the objective"
        again = objective()
        np.testing.assert_allclose(again.value(result.w), result.objective, rtol=1e-12)
        np.testing.assert_allclose(again.at(result.w, result.z, grad=False).objective, result.objective, rtol=1e-14)
        _check_history(result.history, result.n_iter)
        _check_repeatable(solver_class, objective, result, params)
        _check_endings(solver_class, objective, params)
        _check_resume(solver_class, objective, result.objective, result.lower_bound, params)
        _check_checkpoint(solver_class, objective, params)


def _problem(seed: int) -> tuple[FloatArray, Any]:
    rng = np.random.default_rng(seed)
    n, p = 120, 6
    X = rng.standard_normal((n, p))
    y = np.where(X @ rng.standard_normal(p) + rng.standard_normal(n) > 0.7, 1, -1)
    return X, y


def _check_history(history: dict[str, list[float]], n_iter: int) -> None:
    lengths = {len(column) for column in history.values()}
    assert len(lengths) == 1, f"history columns of different lengths: { {k: len(v) for k, v in history.items()} }"
    assert history["iteration"] == sorted(history["iteration"])
    assert history["iteration"][-1] == n_iter
    assert (np.diff(history["objective"]) <= 0).all(), "the best objective must not rise"
    assert (np.diff(history["lower_bound"]) >= 0).all(), "the best bound must not fall"
    assert (np.diff(history["seconds"]) >= 0).all()
    assert (np.diff(history["passes"]) >= 0).all()


def _check_repeatable(
    solver_class: type[Solver], objective: Callable[[], Objective], result: Result, params: dict[str, Any]
) -> None:

    for threads in (1, 2):
        with parallel.thread_limit(threads):
            again = solver_class(**params).solve(objective())
        assert np.array_equal(again.w, result.w), f"w changes bits with {threads} threads"
        assert again.lower_bound == result.lower_bound


def _check_endings(solver_class: type[Solver], objective: Callable[[], Objective], params: dict[str, Any]) -> None:
    few = solver_class(**params | {"tol": 1e-12, "max_iter": 2}).solve(objective())
    assert few.status in ("max_iter", "converged")
    assert few.n_iter <= 2
    timed = solver_class(**params | {"tol": 1e-14, "max_time": 1e-9}).solve(objective())
    assert timed.status in ("max_time", "converged")

    progresses: list[Progress] = []

    def stop_at_second(progress: Progress) -> bool:
        progresses.append(progress)
        return progress.iteration >= 2

    stopped = solver_class(**params | {"tol": 1e-12, "callbacks": [stop_at_second]}).solve(objective())
    assert stopped.status in ("interrupted", "converged")
    assert [p.iteration for p in progresses] == list(range(1, stopped.n_iter + 1))

    def press_ctrl_c(progress: Progress) -> None:
        raise KeyboardInterrupt

    pressed = solver_class(**params | {"tol": 1e-12, "callbacks": [press_ctrl_c]}).solve(objective())
    assert pressed.status == "interrupted"
    assert isinstance(pressed.interruption, KeyboardInterrupt)
    assert pressed.objective <= objective().value(np.zeros_like(pressed.w)) * (1 + 1e-12), "best-so-far must be kept"


def _check_resume(
    solver_class: type[Solver], objective: Callable[[], Objective], value: float, bound: float, params: dict[str, Any]
) -> None:
    first = solver_class(max_iter=3, **params).solve(objective())
    record = first.state.record()
    assert all(_is_plain(entry) for entry in record.values()), "a state's record must be plain arrays and numbers"
    rest = solver_class(**params).solve(objective(), state=record)
    assert rest.status == "converged"
    assert rest.lower_bound is not None
    # Both runs bracket the same minimum.
    assert rest.objective >= bound
    assert value >= rest.lower_bound
    assert rest.n_passes >= first.n_passes, "passes must go on counting"


def _check_checkpoint(solver_class: type[Solver], objective: Callable[[], Objective], params: dict[str, Any]) -> None:
    class DiedError(Exception):
        pass

    def die(progress: Progress) -> None:
        if progress.iteration == 5:
            raise DiedError

    with tempfile.TemporaryDirectory() as folder:
        uninterrupted = solver_class(**params, checkpoint=Checkpoint(Path(folder, "uninterrupted"), 2, 0.0)).solve(
            objective()
        )
        own = Checkpoint(Path(folder, "own"), 2, 0.0)
        with contextlib.suppress(DiedError):
            solver_class(**params, checkpoint=own, callbacks=[die]).solve(objective())
        rest = solver_class(**params, checkpoint=own).solve(objective())
        again = solver_class(**params, checkpoint=own).solve(objective())
    for name in ("w", "z", "objective", "lower_bound", "n_iter", "status"):
        for other in (rest, again):
            same = np.array_equal(getattr(other, name), getattr(uninterrupted, name))
            assert same, f"{name} after a checkpoint is not that of a run that was not interrupted"
    for name in set(uninterrupted.history) - {"seconds"}:
        assert rest.history[name] == uninterrupted.history[name], f"history[{name!r}] is not that of one run"


def _is_plain(value: Any) -> bool:
    if isinstance(value, dict):
        return all(_is_plain(v) for v in value.values())
    if isinstance(value, list):
        return all(_is_plain(v) for v in value)
    return isinstance(value, (int, float, str, np.ndarray, np.generic))
