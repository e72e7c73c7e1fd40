"""Running a study: every cell is kept as soon as it is done, so that a run which was killed resumes."""

import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from joblib import Parallel, delayed, parallel_config

from scoreline.io.files import atomic_file
from studies.study import Cell, Findings, Study


class Done(NamedTuple):
    """A cell that was computed: what it returned, and how long it took."""

    key: str
    seconds: float
    result: Any


def reproduce(
    study: Study,
    record: Any = None,
    fresh: bool = False,
    announce: Callable[[str], None] | None = None,
    minutes: float | None = None,
    jobs: int = 1,
) -> tuple[Findings, dict[str, Any]]:
    """Compute the cells of a study that are not there yet, and return what they say.

    Parameters
    ----------
    study : Study
        What to run.
    record : path, optional
        File (JSON, one line per cell) that keeps cells; a run that finds it resumes from there. Without it nothing is kept.
    fresh : bool
        Begin anew, whatever the file holds.
    announce : callable, optional
        Is called with the text of the cell that is next.
    minutes : float, optional
        Begin no further cell after so many minutes. The findings name the cells that are left, and are about the others.
    jobs : int
        Compute so many cells at a time, in processes of one thread each.

    Returns
    -------
    tuple
        The findings, and the results of all cells.
    """
    done = {} if record is None else _begun(Path(record), study, fresh)
    cells = study.cells()
    twice = [cell.key for cell in cells if [other.key for other in cells].count(cell.key) > 1]
    if twice:
        raise ValueError(f"the study {study.name} has the cell {twice[0]!r} twice")
    left = [cell for cell in cells if cell.key not in done]
    with parallel_config("loky", n_jobs=jobs, inner_max_num_threads=1):
        begun = _until(left, announce, minutes)
        for cell in Parallel(return_as="generator_unordered", pre_dispatch="n_jobs", batch_size=1)(
            map(delayed(_run), begun)
        ):
            done[cell.key] = cell
            if record is not None:
                _append(Path(record), cell._asdict())
    wanted = {cell.key: done[cell.key].result for cell in cells if cell.key in done}
    findings = study.findings(wanted)
    findings.left = [cell.key for cell in cells if cell.key not in done]
    findings.seconds = sum(done[key].seconds for key in wanted)
    return findings, wanted


def _until(cells: Sequence[Cell], announce: Callable[[str], None] | None, minutes: float | None) -> Iterator[Cell]:
    """Yield cells until so many minutes have passed."""
    first = time.perf_counter()
    for k, cell in enumerate(cells):
        if minutes is not None and time.perf_counter() - first >= 60.0 * minutes:
            return
        if announce is not None:
            announce(f"{k + 1} of {len(cells)}: {cell.key}")
        yield cell


def _run(cell: Cell) -> Done:
    begin = time.perf_counter()
    result = json.loads(json.dumps(cell.run(), allow_nan=False))  # as it will be read again
    return Done(cell.key, time.perf_counter() - begin, result)


def _header(study: Study) -> dict[str, Any]:
    from scoreline import __version__

    limit = {} if study.limit is None else {"limit": study.limit}
    return {"study": study.name, "quick": study.quick, "scoreline": __version__, **limit}


def _begun(path: Path, study: Study, fresh: bool) -> dict[str, Done]:
    """Return the cells of a file, which is begun if it is not there; a line that was cut off does not count."""
    header = _header(study)
    if fresh or not path.exists():
        _write(path, [json.dumps(header)])
        return {}
    lines = path.read_text(encoding="utf-8").splitlines()
    try:
        found = json.loads(lines[0])
    except (ValueError, IndexError):
        found = None
    if found != header:
        raise ValueError(
            f"{path} belongs to another run ({found}), this is {header}; delete it, or begin anew with --fresh"
        )
    done, complete = {}, [lines[0]]
    for line in lines[1:]:
        try:
            entry = Done(**json.loads(line))
        except (ValueError, KeyError, TypeError):
            break
        done[entry.key] = entry
        complete.append(line)
    if len(complete) < len(lines):
        _write(path, complete)
    return done


def _write(path: Path, lines: list[str]) -> None:
    with atomic_file(path) as file:
        file.write(("\n".join(lines) + "\n").encode())


def _append(path: Path, entry: dict[str, Any]) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(entry) + "\n")
        file.flush()
        os.fsync(file.fileno())
