"""Checkpoints: a file from which a fit that was killed resumes, to the same bits.

A fit may consist of several runs (a search over costs, a fit without held-out rows). The file has the results of finished runs,
and the last record of the current run. Every `every` iterations a run converts its state to a record and continues from that
record, as a resumed run does. Both therefore take the same steps, even if a solver has data outside of its state, and it does
not matter when records are written to the disk.
"""

import numbers
import os
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from scoreline.io.model_archive import read_archive, write_archive
from scoreline.operators.linear_map import LinearMap
from scoreline.runtime.checks import check_number
from scoreline.runtime.types import FloatArray
from scoreline.scores import space_for

KIND, VERSION = "scoreline checkpoint", 1
FREE = ("callbacks", "checkpoint", "max_iter", "max_time")  # options that may differ when a run is continued
RUNNING = "running"
NEAR = 1e-9


@dataclass(frozen=True)
class Checkpoint:
    """The file and frequency of checkpoints: `solver_params={"checkpoint": Checkpoint(path)}`, or the path alone.

    A fit that finds the file resumes from it, and gives the same coefficients as one that was never interrupted. It must have
    the same data and parameters (max_iter and max_time may differ), or an error says what differs. The file is removed when
    the fit has converged. A record costs as much as a start at given coefficients, two passes over X for most solvers. Every
    run needs one more pass to identify its data. The coefficients may differ in their last digits from those of a fit without
    checkpoints.

    Parameters
    ----------
    path : path
        The file; its folder must exist.
    every : int
        Iterations between two records.
    seconds : float
        Least time between two writes to the disk.
    """

    path: Any
    every: int = 20
    seconds: float = 10.0

    def __post_init__(self) -> None:
        if not isinstance(self.path, (str, Path)):
            raise ValueError(f"checkpoint={self.path!r} must be the path of a file, or a Checkpoint")
        check_number("every", self.every, least=1, integer=True)
        check_number("seconds", self.seconds, least=0)
        if not Path(self.path).absolute().parent.is_dir():
            raise ValueError(f"checkpoint={str(self.path)!r} is in a folder that does not exist; create it first")


@dataclass(frozen=True)
class SavedRun:
    """A run in the file: its status (RUNNING until it ends), the record of its state, and after its end the record before.

    A run that ended by max_iter continues from the record before its end, as a run with more iterations would have done.
    """

    status: str
    record: Mapping[str, Any]
    before: Mapping[str, Any] | None = None

    def running(self) -> "SavedRun | None":
        """Return the run as it was before its end, or None if it had no record then."""
        return None if self.before is None else SavedRun(RUNNING, self.before)


class Journal:
    """The runs of one fit, and their file."""

    def __init__(self, settings: Checkpoint):
        self.settings, self.path = settings, Path(settings.path)
        self._runs: list[SavedRun] | None = None  # not read yet
        self._number = -1  # of the run under way
        self._seed: int | None = None
        self._header: dict[str, Any] = {}
        self._written, self._unwritten = -np.inf, False

    @classmethod
    def of(cls, checkpoint: Any) -> "Journal | None":
        """Return the journal of an option `checkpoint`: a Checkpoint, a path, or None."""
        if checkpoint is None:
            return None
        return cls(checkpoint if isinstance(checkpoint, Checkpoint) else Checkpoint(checkpoint))

    def left_by(self, solver_name: str) -> dict[str, Any] | None:
        """Return the content of the file if it is there, and was left by a solver of that name."""
        content = read_archive(self.path, KIND, VERSION) if self.path.exists() else {}
        return content if content.get("solver") == solver_name else None

    def begin(self, solver: Any) -> SavedRun | None:
        """Return the next run of this solver from the file, or None."""
        runs = self._read(solver)
        self._number += 1
        return runs[self._number] if self._number < len(runs) else None

    def due(self, iteration: int) -> bool:
        """Tell whether an iteration ends with a record."""
        return iteration % self.settings.every == 0

    def keep(self, record: Mapping[str, Any], status: str = RUNNING) -> None:
        """Store the state of the run, and write it if the last write is long enough ago or the run is over."""
        assert self._runs is not None
        last = self._runs[self._number] if self._number < len(self._runs) else SavedRun(RUNNING, {}, None)
        before = None if status == RUNNING else (last.record or None) if last.status == RUNNING else last.before
        del self._runs[self._number :]
        self._runs.append(SavedRun(status, record, before))
        self._unwritten = True
        if status != RUNNING or time.perf_counter() - self._written >= self.settings.seconds:
            self.flush()

    def flush(self) -> None:
        """Write the stored runs; a full disk causes a warning and does not end the fit."""
        if self._unwritten and self._runs is not None:
            runs = [{"status": run.status, "state": run.record, "before": run.before} for run in self._runs]
            try:
                write_archive(self.path, KIND, VERSION, self._header | {"seed": self._seed, "runs": runs})
            except OSError as error:
                warnings.warn(f"checkpoint not written: {error}. The fit continues", UserWarning, stacklevel=2)
            self._written, self._unwritten = time.perf_counter(), False

    def seeded(self, solver: Any, random_state: Any) -> int:
        """Return the seed that the fit began with: random_state if it is a number, else drawn from it at the beginning."""
        self._read(solver)
        given = int(random_state) if isinstance(random_state, numbers.Integral) else None
        if self._seed is None:
            self._seed = int(check_random_state(random_state).randint(2**31 - 1)) if given is None else given
        if given is not None and given != self._seed:
            raise self.mismatch(f"belongs to a fit with random_state={self._seed}, this one has {given}")
        return self._seed

    def remove(self) -> None:
        """Remove the file: the fit is over. A symbolic link stays, so that the next fit writes to the same place."""
        Path(os.path.realpath(self.path)).unlink(missing_ok=True)
        self._unwritten = False

    def mismatch(self, what: str) -> ValueError:
        """Return the error for a file that does not belong to this fit."""
        return ValueError(f"checkpoint {str(self.path)!r} {what}; delete it to start again, or give another path")

    @contextmanager
    def complete(self) -> Iterator[None]:
        """Say that the file is not complete where what is done with its content fails."""
        try:
            yield
        except (KeyError, TypeError, AttributeError, IndexError, OverflowError) as error:
            raise self.mismatch(f"is not complete ({type(error).__name__}: {error})") from error

    def _read(self, solver: Any) -> list[SavedRun]:
        if self._runs is not None:
            return self._runs
        self._header = {"solver": solver.name, "options": _options(solver)}
        self._runs = []
        if self.path.exists():
            content = read_archive(self.path, KIND, VERSION)
            with self.complete():
                before = {"solver": content["solver"], **content["options"]}
                seed, runs = (
                    content["seed"],
                    [SavedRun(run["status"], run["state"], run["before"]) for run in content["runs"]],
                )
                damage = _damage(seed, runs)
            if damage:
                raise self.mismatch(f"is damaged: {damage}")
            if not all(isinstance(value, str) for value in before.values()):
                raise self.mismatch("is damaged: an option of its solver is not text")
            now = {"solver": solver.name, **self._header["options"]}
            names = sorted({*before, *now}, key=lambda name: (name != "solver", name))
            differing = [name for name in names if before.get(name) != now.get(name)]
            if differing:
                name = differing[0]
                raise self.mismatch(
                    f"belongs to a fit with {name}={before.get(name)!r}, this one has {now.get(name)!r}"
                )
            self._seed, self._runs = seed, runs
        return self._runs


def _damage(seed: Any, runs: list[SavedRun]) -> str:
    """Return what is wrong with the common parts of all records, or an empty text."""
    if not (seed is None or (type(seed) is int and 0 <= seed < 2**63)):
        return f"its seed is {seed!r:.100}"
    for run in runs:
        if type(run.status) is not str:
            return f"the status of a run is {run.status!r:.100}"
        for record in (run.record, {} if run.before is None else run.before):
            if not isinstance(record, dict) or not all(isinstance(name, str) for name in record):
                return "a run is not a set of named values"
            wrong = next((name for name, fits in PARTS.items() if name in record and not fits(record[name])), None)
            if wrong is not None:
                return f"{wrong} of a run is {record[wrong]!r:.100}"
            if "w" in record and np.shape(record["w"]) != np.shape(record["best_w"]):
                return "w and best_w of a run have different lengths"
            best = record.get("best_objective", np.inf)
            if record.get("lower_bound", -np.inf) > best + NEAR * max(1.0, abs(best)):  # but for rounding
                return "the lower bound of a run is above its objective"
    return ""


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and not np.isnan(float(value))


def _is_vector(value: Any) -> bool:
    return (
        isinstance(value, np.ndarray)
        and value.dtype == np.float64
        and value.ndim == 1
        and bool(np.isfinite(value).all())
    )


def _is_history(value: Any) -> bool:
    lists = isinstance(value, dict) and all(isinstance(column, list) for column in value.values())
    return lists and all(_is_number(number) for column in value.values() for number in column)


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < 2**62


PARTS: dict[str, Callable[[Any], bool]] = {
    "w": _is_vector, "best_w": _is_vector, "best_objective": _is_number, "lower_bound": _is_number, "iteration": _is_count,
    "seconds": lambda value: all(map(_is_number, value)) if isinstance(value, list) else _is_number(value),
    "passes": _is_number, "problem": lambda value: isinstance(value, dict), "history": _is_history,
    "validated": lambda value: isinstance(value, dict),
}  # fmt: skip


def checked_entries(operator: LinearMap) -> list[float]:
    """Return two numbers that change with any entry of X: |z|^2 and <z, c> / |z| |c| for the scores z of fixed coefficients.

    c differs between rows, so that exchanged rows and changed signs are detected too. One pass.
    """
    space, (n, p) = space_for(operator.scores), operator.shape
    z = operator.matvec(np.cos(np.arange(p)))
    square = float(space.dot(z, z))
    if square == 0.0:
        return [square, 0.0]
    if operator.scores == "blocks":
        from scoreline.distributed import Parts

        c = z.layout.vector(_cosines, Parts(z.layout.spans))
    else:
        c = operator.aligned(np.cos(np.arange(n)), "c")
    return [square, float(z @ c) / float(np.sqrt(square * n))]


def _cosines(spans: Any) -> FloatArray:
    cosines: FloatArray = np.cos(np.concatenate([np.arange(start, stop) for start, stop in spans]))
    return cosines


def same_problem(saved: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
    """Tell whether two descriptions are of one problem; entries may differ by the rounding of another machine."""
    if set(saved) != set(now):
        return False
    for name, value in now.items():
        if name != "entries":
            if saved[name] != value:
                return False
        elif not np.allclose(saved[name][:1], value[:1], rtol=NEAR, atol=0.0) or abs(saved[name][1] - value[1]) > NEAR:
            return False
    return True


def _options(solver: Any) -> dict[str, Any]:
    """Return the options of a solver that its iterates depend on, as text."""
    names = [name for name in solver.options() if name not in FREE and name in vars(solver)]
    values = {name: getattr(solver, name) for name in names}
    return {name: repr(value.item() if isinstance(value, np.generic) else value) for name, value in values.items()}
