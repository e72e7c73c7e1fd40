"""The base of certified solvers: state, stopping rule, start, best point and final certificate; the loop is in `loop.py`."""

import copy
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

import numpy as np

from scoreline.objective import Objective, summation_error
from scoreline.risks.base import Risk
from scoreline.runtime.checks import check_callbacks, check_choice, check_number
from scoreline.runtime.types import FloatArray, Scores
from scoreline.solvers.common.checkpoint import RUNNING, Journal, SavedRun, checked_entries, same_problem
from scoreline.solvers.common.early_stopping import STOPPED, EarlyStopping
from scoreline.solvers.common.loop import Clock, Control, Progress, Steps, drive
from scoreline.solvers.common.method import Method

logger = logging.getLogger("scoreline")

HISTORY = ("iteration", "seconds", "passes", "objective", "lower_bound")
# Iterations before w = 0 is taken for an answer: it ranks nothing, and may still be within tol of the minimum.
LEAVING_ZERO = 3


@dataclass
class State:
    """The state of a solver as plain arrays and numbers: `record` can be saved, `restored` continues from it.

    best_w and best_objective belong to the best point so far; lower_bound is -inf while nothing is proved. `problem` describes
    the problem, so that the state is not continued on another one, where its bound would be false. `validated` is the state
    of early stopping.
    """

    w: FloatArray
    best_w: FloatArray
    best_objective: float = np.inf
    lower_bound: float = -np.inf
    iteration: int = 0
    seconds: float = 0.0
    passes: float = 0.0
    problem: dict[str, Any] = field(default_factory=dict)
    history: dict[str, list[float]] = field(default_factory=lambda: {name: [] for name in HISTORY})
    validated: dict[str, Any] = field(default_factory=dict)

    def improve(self, w: FloatArray, objective: float) -> None:
        """Keep w as the best point if J is lower there."""
        if objective < self.best_objective:
            self.best_objective, self.best_w = objective, w

    def record(self) -> dict[str, Any]:
        """Return a copy of the state as a dict of arrays, numbers and lists."""
        return {f.name: copy.deepcopy(getattr(self, f.name)) for f in fields(self)}

    @classmethod
    def restored(cls, record: Mapping[str, Any]) -> "State":
        """Return the state that `record` described."""
        return cls(**copy.deepcopy(dict(record)))


@dataclass
class Result:
    """The end of a run: the best point w with fresh scores z = Xw (None if interrupted there), its proof, its history.

    `lower_bound` is a number for every certified solver, 0 or more: no risk is negative. It is None for the others.
    """

    w: FloatArray
    z: Scores
    objective: float
    lower_bound: float | None
    n_iter: int
    n_passes: float
    history: dict[str, list[float]]
    status: str
    state: State
    interruption: BaseException | None = None

    @property
    def gap(self) -> float | None:
        """Objective minus lower bound, or None without a certificate."""
        return None if self.lower_bound is None else self.objective - self.lower_bound


class Solver(Method, ABC):
    """An algorithm that lowers J step by step.

    A subclass writes `start` (state at w0), `step` (one iteration) and declares what it needs of the risk. This class
    runs it until the proof is good enough: gap <= tol * max(lower bound, 1e-3 J(0)), or gap <= abs_tol if that is given.

    Attributes
    ----------
    needs : str
        Trait that the risk must have: "smooth", "smoothable" or "convex" (all are).
    slow : bool
        Iterations grow like 1/eps even on small problems: `check_solver` asks for less.
    """

    needs: ClassVar[str]
    slow: ClassVar[bool] = False
    least_iterations: ClassVar[int] = 0  # also where the start is good enough already
    state_class: ClassVar[type[State]] = State
    log_level = logging.INFO  # of the line at the end of a run
    starts_on_samples: ClassVar[bool] = False  # init="auto": begin on samples of the rows where that pays
    ready = False  # between `resume` and `release`: there is something to store

    def __init__(
        self,
        tol: float = 1e-2,
        max_iter: int = 5000,
        max_time: float | None = None,
        abs_tol: float | None = None,
        callbacks: Sequence[Callable[[Progress], Any]] = (),
        init: str = "auto",
        checkpoint: Any = None,
        early_stopping: Any = None,
    ):
        super().__init__(tol, max_iter, max_time)
        self.early_stopping = EarlyStopping.of(early_stopping)
        self.journal = Journal.of(checkpoint)
        if abs_tol is not None:
            check_number("abs_tol", abs_tol, above=0)
        check_choice("init", init, ("auto", "zero", "moments", "samples"))
        self.init = init
        check_callbacks(callbacks)
        self.abs_tol, self.callbacks = abs_tol, callbacks

    @classmethod
    def serves(cls, risk: Risk | type[Risk]) -> bool:
        """Tell whether this solver can minimise that risk (class or object)."""
        return bool(getattr(risk, cls.needs))

    @abstractmethod
    def start(self, objective: Objective, w0: FloatArray) -> State:
        """Return the state at w0."""

    @abstractmethod
    def resume(self, objective: Objective, state: State) -> None:
        """Rebuild what `step` needs beyond the state (scores, gradients), after `start` or a restored state."""

    @abstractmethod
    def step(self, objective: Objective, state: State) -> bool:
        """Do one iteration, update best point and lower bound; False if no further progress is possible."""

    def store(self, state: State) -> None:
        """Put into the state what `resume` needs and `step` does not keep there."""

    def release(self) -> None:
        """Free score vectors and other working memory: all attributes whose names begin with an underscore."""
        for name in [name for name in vars(self) if name.startswith("_")]:
            delattr(self, name)

    def iterates(self, objective: Objective, w0: FloatArray) -> Iterator[State]:
        """Yield the state after every step from w0 while there is progress: w_1, w_2, ... for theorems and figures.

        It is one state that changes: copy what you need.
        """
        self._check_risk(objective)
        state = self.start(objective, _checked_start(objective, w0))
        try:
            self.resume(objective, state)
            moved = True
            while moved:
                moved = self.step(objective, state)
                state.iteration += 1
                yield state
        finally:
            self.release()

    def _check_risk(self, objective: Objective) -> None:
        if not self.serves(objective.risk):
            raise TypeError(f"solver {self.name!r} needs a {self.needs} risk, {objective.risk.name!r} is not")
        if not self.takes(objective.traits):
            raise TypeError(
                f"solver {self.name!r} does not know {' and '.join(sorted(objective.traits - set(self.penalties)))}; it takes "
                f"penalties of {', '.join(self.penalties)}"
            )

    def control(self) -> Control:
        """Return the control of a run that the options ask for; early stopping needs rows, which the caller knows."""
        return Control(self.max_time, self.callbacks, self.journal)

    def solve(
        self,
        objective: Objective,
        w0: FloatArray | None = None,
        state: State | Mapping[str, Any] | None = None,
        control: Control | None = None,
    ) -> Result:
        """Minimise the objective from w0 (zero by default), or go on from a state or its record.

        Ctrl-C ends the run with status "interrupted" and the best point so far; the exception is in
        `result.interruption`, for the caller to raise again. A callback that returns True ends it the same way,
        without an exception. `control` is that of the options by default.
        """
        self._check_risk(objective)
        clock, control = Clock(), self.control() if control is None else control
        journal = control.journal
        problem = _fingerprint(objective, journal is not None)
        passes_before = objective.n_passes
        saved = None if journal is None else journal.begin(self)
        if saved is not None and not self._over(saved):
            saved = saved.running()
        if state is not None:
            saved = None
        with nullcontext() if saved is None or journal is None else journal.complete():
            given = self._checked_state(state if saved is None else saved.record)
        now, interruption = self._begin(objective, w0, control) if given is None else (given, None)
        described = problem if saved is not None else {name: problem[name] for name in now.problem if name in problem}
        fits = now.w.shape == (objective.n_features,)
        if not fits or (
            now.problem and not same_problem({name: now.problem.get(name) for name in described}, described)
        ):
            what = f"belongs to another problem: it has {now.problem}, this objective {problem}"
            raise ValueError(f"the state {what}") if saved is None or journal is None else journal.mismatch(what)
        now.problem = problem
        clock.add(now.seconds)
        run = _Run(self, objective, now, passes_before - now.passes)
        run.fresh, run.has_history = state is None, given is not None and bool(now.history["iteration"])
        run.interruption = interruption
        if saved is not None and saved.status != RUNNING:
            return self._finish(run, saved.status, None)
        result = self._finish(run, *drive(run, control, clock))
        if journal is not None and result.status not in ("interrupted", "max_time"):
            journal.keep(result.state.record(), result.status)
        return result

    def _checked_state(self, state: State | Mapping[str, Any] | None) -> State | None:
        """Return the state that a record describes, or raise if it is not one of this solver."""
        if isinstance(state, Mapping):
            unknown = sorted(set(state) - {f.name for f in fields(self.state_class)})
            if unknown:
                raise ValueError(
                    f"the record is not one of solver {self.name!r}, which knows no {', '.join(unknown)}; continue with the "
                    "solver and the version that made it"
                )
            return self.state_class.restored(state)
        if state is not None and not isinstance(state, self.state_class):
            raise ValueError(
                f"the state is a {type(state).__name__}, solver {self.name!r} needs {self.state_class.__name__}"
            )
        return state

    def _resumed(self, objective: Objective, state: State) -> None:
        """Resume, and know when that is done: Ctrl-C on the way leaves nothing to store."""
        self.ready = False
        self.resume(objective, state)
        self.ready = True

    def _released(self) -> None:
        self.ready = False
        self.release()

    def _over(self, saved: SavedRun) -> bool:
        """Tell whether a run that a checkpoint has is over: also by max_iter, unless that has been raised."""
        return saved.status != "max_iter" or int(saved.record.get("iteration", 0)) >= self.max_iter

    def _begin(
        self, objective: Objective, w0: FloatArray | None, control: Control
    ) -> tuple[State, BaseException | None]:
        """Return the state at w0, or where `init` says, and what interrupted the way there."""
        if w0 is None and self.init == "moments":
            from scoreline.solvers.common.moments_start import moments_start

            w0 = moments_start(objective)
        if w0 is None and (self.init == "samples" or (self.init == "auto" and self.starts_on_samples)):
            from scoreline.solvers.common.sample_start import sample_start, samples_save_time

            if self.init == "auto" and not samples_save_time(objective):
                return self.start(objective, _checked_start(objective, None)), None
            try:
                found = sample_start(objective, self, control)
            except KeyboardInterrupt as signal:  # between two samples
                return self.start(objective, _checked_start(objective, None)), signal
            if found is not None:
                state = self.continued(objective, found)
                # The start was there before: a run that ends at once, or samples that mislead, leave no worse a point.
                w = _checked_start(objective, None)
                state.best_w = w
                state.best_objective = objective.value(w) if w.any() else objective.risk.value_at_zero()
                for name, value in zip(HISTORY, (0, 0.0, 0.0, state.best_objective, 0.0), strict=True):
                    state.history[name].append(value)
                return state, found.interruption
        return self.start(objective, _checked_start(objective, w0)), None

    def onward(self, objective: Objective, state: State, alpha: float) -> State:
        """Return the state that begins at the end of a run on the same rows and risk with the penalty `alpha` (`path.py`)."""
        return self.start(objective, state.best_w)

    def continued(self, objective: Objective, sampled: Any) -> State:
        """Return the state that goes on from the end of a run on a sample (`sample_start.Sampled`)."""
        return self.start(objective, sampled.w)

    def _finish(self, run: "_Run", status: str, interruption: BaseException | None) -> Result:
        """Prove the best point with fresh scores: what `step` carried along has drifted by rounding."""
        objective, state = run.objective, run.state
        try:
            if self.ready:
                self.store(state)
        except KeyboardInterrupt as signal:
            status, interruption = "interrupted", signal
        self._released()
        if state.validated and state.validated["objective"] != state.best_objective:
            state.best_w, state.best_objective = state.validated["w"], state.validated["objective"]
            status = STOPPED if status in ("converged", "stalled", "max_iter") else status
        value, z = state.best_objective, None
        try:
            z = objective.scores(state.best_w)
            value = objective.at(state.best_w, z, grad=False).objective
        except KeyboardInterrupt as signal:  # keep the point all the same, with the value that was carried along
            status, interruption = "interrupted", signal
        if not np.isfinite(value) or (z is not None and not objective.space.is_finite(z)):
            raise ValueError(
                f"Xw is not finite (J = {value}): X has NaN or infinite entries, or overflows; scale it first"
            )
        w = state.best_w
        if z is not None and status in ("converged", "stalled"):
            w, value, z = _at_least_a_constant(objective, w, value, z)
        bound = min(max(0.0, state.lower_bound), value)  # no risk is negative, so J >= 0 is proved from the start
        if status in ("converged", "stalled"):
            status = "converged" if self._proved(value, bound, run.floor) else "stalled"
        state.passes = objective.n_passes - run.passes_before
        result = Result(w, z, value, bound, state.iteration, state.passes, state.history, status, state, interruption)
        logger.log(
            self.log_level,
            "%s: %s after %d iterations and %.1f passes, objective %.6g, duality gap %s",
            self.name, status, state.iteration, state.passes, value, "unknown" if result.gap is None else f"{result.gap:.3g}",
        )  # fmt: skip
        return result

    def _proved(self, objective: float, lower_bound: float, floor: float) -> bool:
        # (eq. stopping)
        gap = objective - lower_bound
        if self.abs_tol is not None:
            return gap <= self.abs_tol
        return gap <= self.tol * max(lower_bound, floor)


class _Run(Steps):
    """A certified run as the loop sees it."""

    state: State

    def __init__(self, solver: Solver, objective: Objective, state: State, passes_before: float):
        self.solver, self.objective, self.state, self.passes_before = solver, objective, state, passes_before
        self.floor = 1e-3 * state.problem["value_at_zero"]
        self.interruption: BaseException | None = None  # on the way to the start
        self.fresh = self.has_history = False  # begun by this call; the history has its start already
        traffic = objective.operator.traffic
        if traffic is not None and state.history.get("bytes"):
            traffic -= state.history["bytes"][-1]
        self.traffic_before = traffic

    def begin(self) -> bool:
        """Rebuild what the steps need beyond the state."""
        self.solver._resumed(self.objective, self.state)
        return not self.has_history

    def ended(self) -> str | None:
        """Tell whether the proof is good enough, or the iterations are used up."""
        if self.interruption is not None:
            raise self.interruption
        solver, state = self.solver, self.state
        proved = solver._proved(state.best_objective, state.lower_bound, self.floor)
        at_zero = self.fresh and not self.objective.has_features(state.best_w)
        least = max(solver.least_iterations, LEAVING_ZERO) if at_zero else solver.least_iterations
        if proved and state.iteration >= min(least, solver.max_iter):
            return "converged"
        return "max_iter" if state.iteration >= solver.max_iter else None

    def step(self) -> str | None:
        """Do one iteration."""
        return None if self.solver.step(self.objective, self.state) else "stalled"

    def note(self) -> tuple[FloatArray, float]:
        """Add a row to the history."""
        state = self.state
        state.passes = self.objective.n_passes - self.passes_before
        row = (state.iteration, state.seconds, state.passes, state.best_objective, state.lower_bound)
        for name, value in zip(HISTORY, row, strict=True):
            state.history[name].append(value)
        logger.debug(
            "%s iteration %d: objective %.8g, lower bound %.8g, %.1f passes",
            self.solver.name, row[0], row[3], row[4], row[2],
        )  # fmt: skip
        return state.best_w, state.best_objective

    def progress(self) -> Progress:
        """Return the argument of callbacks."""
        s = self.state
        return Progress(s.iteration, s.seconds, s.passes, s.best_objective, s.lower_bound, s.best_w)

    def save(self, journal: Journal) -> None:
        """Put the state into a record for the checkpoint, and go on from the record, as a run that was killed will."""
        if not journal.due(self.state.iteration):
            return
        self.solver.store(self.state)
        self.solver._released()
        self.state.passes = self.objective.n_passes - self.passes_before
        record = self.state.record()
        journal.keep(record)
        self.state = self.solver.state_class.restored(record)
        self.solver._resumed(self.objective, self.state)

    def traffic(self) -> float | None:
        """Return the bytes moved so far, those of earlier runs included."""
        moved = self.objective.operator.traffic
        return None if moved is None or self.traffic_before is None else moved - self.traffic_before


def _at_least_a_constant(
    objective: Objective, w: FloatArray, value: float, z: Scores
) -> tuple[FloatArray, float, Scores]:
    """Return w, J(w) and scores; those of the best constant score in their place if J is no lower there.

    Where a constant is optimal, the scores of a fit that comes close to it are rounding noise. They would look like a ranking,
    another one on every processor.
    """
    constant_w, constant = objective.best_constant(z)
    if value < constant * (1.0 - summation_error(objective.operator.shape[0])):
        return w, value, z
    return constant_w, constant, objective.scores_at_start(constant_w)


def _checked_start(objective: Objective, w0: FloatArray | None) -> FloatArray:
    """Return w0, or zero if there is none, as a vector of its own; the nearest one that the bounds allow."""
    w = np.zeros(objective.n_features) if w0 is None else np.array(w0, dtype=np.float64)
    if w.shape != (objective.n_features,):
        raise ValueError(f"w0 has shape {w.shape}, expected ({objective.n_features},)")
    return objective.nearest(w)


def _fingerprint(objective: Objective, entries: bool) -> dict[str, Any]:
    """Return what tells one problem from another: shape, alpha, magnitudes if known, the risk and its rows.

    With `entries` also a number that changes with any entry of X, which takes a pass.
    """
    (n, p), risk, largest = objective.operator.shape, objective.risk, objective.operator.largest
    return {
        "rows": n, "features": p, "alpha": objective.alpha, "magnitudes": -1.0 if largest is None else float(largest.sum()),
        "value_at_zero": risk.value_at_zero(), "risk": risk.fingerprint(),
        **({} if objective.penalty is None else {"penalty": objective.penalty.fingerprint()}),
    } | ({"entries": checked_entries(objective.operator)} if entries else {})  # fmt: skip
