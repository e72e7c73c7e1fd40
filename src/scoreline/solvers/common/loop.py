"""The loop of all iterative methods: clock, time limit, callbacks, interruption, checkpoint, history, early stopping."""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

from scoreline.runtime.types import FloatArray
from scoreline.solvers.common.checkpoint import Journal
from scoreline.solvers.common.early_stopping import STOPPED, Watch

SHORTEST_LIMIT = 1e-9  # seconds: a limit that is over must still be a positive number


class Progress(NamedTuple):
    """The argument of a callback after each iteration; `w` is the best point so far (do not change it)."""

    iteration: int
    seconds: float
    passes: float
    objective: float
    lower_bound: float
    w: FloatArray


class Latest(Protocol):
    """Receives the best point of a run after every iteration, for a model in case of an interruption."""

    def see(self, w: FloatArray) -> None:
        """Store the best coefficients so far; they are not changed afterwards."""


@dataclass(frozen=True)
class Control:
    """Limits and observers of a run, which do not change its iterates: time limit, callbacks, checkpoint, validation rows."""

    max_time: float | None = None
    callbacks: Sequence[Callable[[Progress], Any]] = ()
    journal: Journal | None = None
    watch: Watch | None = None
    latest: Latest | None = None

    def within(self, seconds: float | None) -> "Control":
        """Return the same control with another time limit; one that is over becomes the shortest."""
        return replace(self, max_time=None if seconds is None else max(SHORTEST_LIMIT, seconds))


class Timer:
    """How much of a time limit is left, for methods that make several runs."""

    def __init__(self, max_time: float | None):
        self.max_time, self._begin = max_time, time.perf_counter()

    def left(self) -> float | None:
        """Return the seconds that are left, at least the shortest limit; None without a limit."""
        if self.max_time is None:
            return None
        return max(SHORTEST_LIMIT, self.max_time - (time.perf_counter() - self._begin))

    @property
    def over(self) -> bool:
        """Whether no time is left."""
        return self.left() == SHORTEST_LIMIT


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


class Standing(Protocol):
    """The progress of a run: iterations, seconds, history, and the state of early stopping."""

    iteration: int
    seconds: float
    history: dict[str, list[float]]
    validated: dict[str, Any]


class Steps(ABC):
    """An algorithm at work, as the loop sees it; `state` may be another object after `save`."""

    state: Standing

    def begin(self) -> bool:
        """Get ready for the first step; return whether the start is a row of the history."""
        return True

    @abstractmethod
    def ended(self) -> str | None:
        """Return the status if the run is over before another step, else None."""

    @abstractmethod
    def step(self) -> str | None:
        """Do one iteration and return None; "stalled" if none follows; "max_time" if time was up before its end."""

    @abstractmethod
    def note(self) -> tuple[FloatArray, float]:
        """Add a row to the history; return the best point, and what tells it from other points."""

    @abstractmethod
    def progress(self) -> Progress:
        """Return what callbacks see."""

    @abstractmethod
    def save(self, journal: Journal) -> None:
        """Hand the state to the checkpoint if this iteration ends with a record."""

    def traffic(self) -> float | None:
        """Return the bytes moved over the network so far; None where there is no network."""
        return None


def drive(steps: Steps, control: Control, clock: Clock) -> tuple[str, BaseException | None]:
    """Run the steps to their end and return the status and Ctrl-C, if it was pressed.

    A run ends when `steps` says so, at the time limit, when a callback returns True, or when the measure on validation rows has
    not increased for some time. The checkpoint is written in any case.
    """
    try:
        if steps.begin():
            _note(steps, control, clock)
        while True:
            status = steps.ended()
            if status is not None:
                return status, None
            if control.max_time is not None and steps.state.seconds >= control.max_time:
                return "max_time", None
            outcome = steps.step()
            if outcome == "max_time":
                return outcome, None
            steps.state.iteration += 1
            _note(steps, control, clock)
            if outcome is None and control.journal is not None:
                steps.save(control.journal)
            if _stopped_by_callback(steps, control, clock):
                return "interrupted", None
            if control.watch is not None and control.watch.over(steps.state.validated):
                return STOPPED, None
            if outcome is not None:
                return outcome, None
    except KeyboardInterrupt as signal:
        return "interrupted", signal
    finally:
        if control.journal is not None:
            control.journal.flush()


def _note(steps: Steps, control: Control, clock: Clock) -> None:
    """Record the progress of the run after an iteration."""
    state = steps.state
    state.seconds = clock.elapsed()
    w, value = steps.note()
    if control.latest is not None:
        control.latest.see(w)
    traffic = steps.traffic()
    if traffic is not None:
        state.history.setdefault("bytes", []).append(traffic)
    if control.watch is not None:
        with clock.stopped():
            state.validated = control.watch.see(state.validated, w, value)
        state.history.setdefault("validation", []).append(state.validated["value"])


def _stopped_by_callback(steps: Steps, control: Control, clock: Clock) -> bool:
    """Show the progress to the callbacks with the clock stopped; True if one of them asks to stop."""
    if not control.callbacks:
        return False
    with clock.stopped():
        progress = steps.progress()
        answers = [callback(progress) for callback in control.callbacks]  # every callback sees every iteration
        return any(answer is True for answer in answers)
