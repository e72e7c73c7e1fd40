"""Runs that are watched: objective, test measure, seconds and passes after every iteration, off the clock."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from scoreline.objective import Objective
from scoreline.runtime.types import FloatArray
from scoreline.solvers import Progress, Solver

POINTS = 200  # of a curve that are kept


def watched(
    solver: type[Solver], objective: Objective, options: dict[str, Any], test: Callable[[FloatArray], float] | None = None,
    target: float = -np.inf, limit: float = np.inf,
) -> dict[str, Any]:  # fmt: skip
    """Run a solver from zero, ending early at an objective of `target`, and return what happened as plain numbers.

    Seconds, and their limit, are processor time, which does not depend on what else the machine does.

    Returns
    -------
    dict
        `curve`: rows (seconds, passes, objective, test measure) of the iterations at which the objective fell, thinned to about
        200; `objective`, `lower_bound`, `seconds`, `passes`, `iterations`, `status` at the end.
    """
    rows: list[list[float]] = []
    begin, paused = time.process_time(), 0.0

    def look(now: Progress) -> bool:
        nonlocal paused
        since = time.process_time()
        seconds = since - begin - paused
        if not rows or now.objective < rows[-1][2]:
            rows.append([seconds, now.passes, now.objective, np.nan if test is None else test(now.w)])
        paused += time.process_time() - since
        return bool(now.objective <= target or seconds >= limit)

    result = solver(**options, init="zero", callbacks=[look]).solve(objective)
    seconds = time.process_time() - begin - paused
    points = (
        rows
        if len(rows) <= POINTS
        else [rows[k] for k in np.unique(np.geomspace(1, len(rows), POINTS).astype(int) - 1)]
    )
    return {
        "curve": [[None if np.isnan(value) else float(value) for value in row] for row in points],
        "objective": float(result.objective), "lower_bound": None if result.lower_bound is None else float(result.lower_bound),
        "seconds": seconds, "passes": float(result.n_passes), "iterations": int(result.n_iter),
        "status": result.status,
    }  # fmt: skip


def seconds_to(run: dict[str, Any], level: float) -> float | None:
    """Return the seconds after which the objective was at most `level`; None if it never was."""
    for seconds, _, objective, _ in run["curve"]:
        if objective <= level:
            return float(seconds)
    return None


def passes_to(run: dict[str, Any], level: float) -> float | None:
    """Return the passes after which the objective was at most `level`; None if it never was."""
    for _, passes, objective, _ in run["curve"]:
        if objective <= level:
            return float(passes)
    return None
