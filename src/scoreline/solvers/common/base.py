"""What all solvers share: the loop, the clock, stopping, history, interruption, best-so-far, the final proof."""

import copy
import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np

from scoreline.objective import Objective, summation_error
from scoreline.runtime.checks import check_callbacks, check_choice, check_number
from scoreline.runtime.types import FloatArray, Scores
from scoreline.solvers.common.checkpoint import RUNNING, Journal, Kept, checked_entries, same_problem
from scoreline.solvers.common.early_stopping import STOPPED, EarlyStopping, Watch
from scoreline.solvers.common.method import Method

logger = logging.getLogger("scoreline")

HISTORY = ("iteration", "seconds", "passes", "objective", "lower_bound")
LEAVING_ZERO = (
    3  # iterations before w = 0 is taken for an answer: it ranks nothing, and may still be within tol of the minimum
)


@dataclass
class State:
    """Where a solver stands, as plain arrays and numbers: `record` can be saved, `restored` continues from it.

    best_w and best_objective belong to the best point seen; lower_bound is -inf while nothing is proved. `problem` says
    what the state belongs to, so that it is not continued on another problem, where its bound would be false. `validated` is
    what early stopping has seen.
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

    def record(self) -> dict[str, Any]:
        """Return a copy of the state as a dict of arrays, numbers and lists."""
        return {f.name: copy.deepcopy(getattr(self, f.name)) for f in fields(self)}

    @classmethod
    def restored(cls, record: Mapping[str, Any]) -> "State":
        """Return the state that `record` described."""
        return cls(**copy.deepcopy(dict(record)))


class Progress(NamedTuple):
    """What a callback sees after each iteration; `w` is the best point so far (do not change it)."""

    iteration: int
    seconds: float
    passes: float
    objective: float
    lower_bound: float
    w: FloatArray


class Latest(Protocol):
    """Receives the best point of a run after every iteration, for a model in case of an interruption."""

    def see(self, w: FloatArray) -> None:
        """Take in the best coefficients so far; they are not changed afterwards."""


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
    latest: Latest | None = None  # set by who keeps a model at Ctrl-C
    watch: Watch | None = None  # of `early_stopping`, set by who knows the measure and the validation rows

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
    def serves(cls, risk: Any) -> bool:
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
        """Put into the state what `resume` needs and `step` keeps elsewhere."""

    @abstractmethod
    def release(self) -> None:
        """Let go of score vectors and other working memory; the state keeps what matters."""

    def iterates(self, objective: Objective, w0: FloatArray) -> Iterator[State]:
        """Yield the state after every step from w0 while there is progress: w_1, w_2, ... for theorems and figures.

        It is one state that changes: copy what is to be kept.
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

    def solve(
        self, objective: Objective, w0: FloatArray | None = None, state: State | Mapping[str, Any] | None = None
    ) -> Result:
        """Minimise the objective from w0 (zero by default), or go on from a state or its record.

        Ctrl-C ends the run with status "interrupted" and the best point so far; the exception is in
        `result.interruption`, for the caller to raise again. A callback that returns True ends it the same way,
        without an exception.
        """
        self._check_risk(objective)
        clock, journal = Clock(), self.journal
        problem = _fingerprint(objective, journal is not None)
        passes_before = objective.n_passes
        kept = None if journal is None else journal.begin(self)
        if kept is not None and not self._over(kept):
            kept = kept.running()
        if state is not None:
            kept = None
        with nullcontext() if kept is None or journal is None else journal.complete():
            given = self._checked_state(state if kept is None else kept.record)
        now, interruption = self._begin(objective, w0) if given is None else (given, None)
        described = problem if kept is not None else {name: problem[name] for name in now.problem if name in problem}
        fits = now.w.shape == (objective.n_features,)
        if not fits or (
            now.problem and not same_problem({name: now.problem.get(name) for name in described}, described)
        ):
            what = f"belongs to another problem: it has {now.problem}, this objective {problem}"
            raise ValueError(f"the state {what}") if kept is None or journal is None else journal.mismatch(what)
        now.problem = problem
        status = "max_iter"
        seconds_before, passes_before = now.seconds, passes_before - now.passes
        floor = 1e-3 * problem["value_at_zero"]
        if kept is not None and kept.status != RUNNING:
            return self._finish(objective, now, kept.status, None, passes_before, floor)

        traffic = objective.operator.traffic
        if traffic is not None and now.history.get("bytes"):
            traffic -= now.history["bytes"][-1]

        def record() -> None:
            now.seconds = seconds_before + clock.elapsed()
            now.passes = objective.n_passes - passes_before
            row = (now.iteration, now.seconds, now.passes, now.best_objective, now.lower_bound)
            for name, value in zip(HISTORY, row, strict=True):
                now.history[name].append(value)
            if self.latest is not None:
                self.latest.see(now.best_w)
            moved = objective.operator.traffic
            if moved is not None and traffic is not None:
                now.history.setdefault("bytes", []).append(moved - traffic)
            if self.watch is not None:
                with clock.stopped():
                    now.validated = self.watch.see(now.validated, now.best_w, now.best_objective)
                now.history.setdefault("validation", []).append(now.validated["value"])
            logger.debug("%s iteration %d: objective %.8g, lower bound %.8g, %.1f passes", self.name, *_log_row(row))

        try:
            self._resumed(objective, now)
            if given is None or not now.history["iteration"]:
                record()
            if interruption is not None:
                raise interruption
            while True:
                proved = self._proved(now.best_objective, now.lower_bound, floor)
                fresh = state is None and not now.best_w.any()
                least = max(self.least_iterations, LEAVING_ZERO) if fresh else self.least_iterations
                if proved and now.iteration >= min(least, self.max_iter):
                    status = "converged"
                    break
                if now.iteration >= self.max_iter:
                    break
                if self.max_time is not None and now.seconds >= self.max_time:
                    status = "max_time"
                    break
                moved = self.step(objective, now)
                now.iteration += 1
                record()
                if moved and journal is not None and journal.due(now.iteration):
                    now = self._written(objective, now, passes_before)
                if self._call_back(now, clock):
                    status = "interrupted"
                    break
                if self.watch is not None and self.watch.over(now.validated):
                    status = STOPPED
                    break
                if not moved:
                    status = "stalled"
                    break
        except KeyboardInterrupt as signal:
            status, interruption = "interrupted", signal
        finally:
            if journal is not None:
                journal.flush()
        result = self._finish(objective, now, status, interruption, passes_before, floor)
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

    def _written(self, objective: Objective, state: State, passes_before: float) -> State:
        """Put the state into a record for the checkpoint, and go on from the record, as a run that was killed will."""
        assert self.journal is not None
        self.store(state)
        self._released()
        state.passes = objective.n_passes - passes_before
        record = state.record()
        self.journal.keep(record)
        state = self.state_class.restored(record)
        self._resumed(objective, state)
        return state

    def _resumed(self, objective: Objective, state: State) -> None:
        """Resume, and know when that is done: Ctrl-C on the way leaves nothing to store."""
        self.ready = False
        self.resume(objective, state)
        self.ready = True

    def _released(self) -> None:
        self.ready = False
        self.release()

    def _over(self, kept: Kept) -> bool:
        """Tell whether a run that a checkpoint has is over: also by max_iter, unless that has been raised."""
        return kept.status != "max_iter" or int(kept.record.get("iteration", 0)) >= self.max_iter

    def _begin(self, objective: Objective, w0: FloatArray | None) -> tuple[State, BaseException | None]:
        """Return the state at w0, or where `init` says, and what interrupted the way there."""
        if w0 is None and self.init == "moments":
            from scoreline.solvers.common.moments_start import moments_start

            w0 = moments_start(objective)
        if w0 is None and (self.init == "samples" or (self.init == "auto" and self.starts_on_samples)):
            from scoreline.solvers.common.sample_start import pays, sample_start

            if self.init == "auto" and not pays(objective):
                return self.start(objective, _checked_start(objective, None)), None
            try:
                found = sample_start(objective, self)
            except KeyboardInterrupt as signal:  # between two samples
                return self.start(objective, np.zeros(objective.n_features)), signal
            if found is not None:
                state = self.continued(objective, found)
                # w = 0 was there before: a run that ends at once, or samples that mislead, leave no worse a point.
                state.best_w, state.best_objective = np.zeros(objective.n_features), objective.risk.value_at_zero()
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

    def _finish(
        self,
        objective: Objective,
        state: State,
        status: str,
        interruption: BaseException | None,
        passes_before: float,
        floor: float,
    ) -> Result:
        """Prove the best point with fresh scores: what `step` carried along has drifted by rounding."""
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
            value = objective.at(state.best_w, z, grad=False).hard
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
            status = "converged" if self._proved(value, bound, floor) else "stalled"
        state.passes = objective.n_passes - passes_before
        result = Result(w, z, value, bound, state.iteration, state.passes, state.history, status, state, interruption)
        logger.log(
            self.log_level,
            "%s: %s after %d iterations and %.1f passes, objective %.8g, proved gap %s",
            self.name, status, state.iteration, state.passes, value, result.gap,
        )  # fmt: skip
        return result

    def _proved(self, objective: float, lower_bound: float, floor: float) -> bool:
        # (eq. stopping)
        gap = objective - lower_bound
        if self.abs_tol is not None:
            return gap <= self.abs_tol
        return gap <= self.tol * max(lower_bound, floor)

    def _call_back(self, state: State, clock: "Clock") -> bool:
        """Show the progress to the callbacks with the clock stopped; True if one of them asks to stop."""
        if not self.callbacks:
            return False
        with clock.stopped():
            progress = Progress(
                state.iteration, state.seconds, state.passes, state.best_objective, state.lower_bound, state.best_w
            )
            answers = [callback(progress) for callback in self.callbacks]  # every callback sees every iteration
            return any(answer is True for answer in answers)


class Clock:
    """Seconds since the start, without the time spent in callbacks."""

    def __init__(self) -> None:
        self._start = time.perf_counter()

    def elapsed(self) -> float:
        """Return the seconds so far."""
        return time.perf_counter() - self._start

    def add(self, seconds: float) -> None:
        """Count seconds of an earlier run too."""
        self._start -= seconds

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Do not count the time within."""
        since = time.perf_counter()
        yield
        self._start += time.perf_counter() - since


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
    """Return w0 as a vector of its own, zero if there is none."""
    w = np.zeros(objective.n_features) if w0 is None else np.array(w0, dtype=np.float64)
    if w.shape != (objective.n_features,):
        raise ValueError(f"w0 has shape {w.shape}, expected ({objective.n_features},)")
    return w


def _fingerprint(objective: Objective, entries: bool) -> dict[str, Any]:
    """Return what tells one problem from another: shape, alpha, magnitudes if known, the risk and its rows.

    With `entries` also a number that changes with any entry of X, which takes a pass.
    """
    (n, p), risk, largest = objective.operator.shape, objective.risk, objective.operator.largest
    return {
        "rows": n, "features": p, "alpha": objective.alpha, "magnitudes": -1.0 if largest is None else float(largest.sum()),
        "value_at_zero": risk.value_at_zero(), "risk": risk.fingerprint(),
    } | ({"entries": checked_entries(objective.operator)} if entries else {})  # fmt: skip


def _log_row(row: tuple[float, ...]) -> tuple[Any, ...]:
    return int(row[0]), row[3], row[4], row[2]
