"""Run a study cell by cell. Each result is stored as soon as it is there, so that an interrupted run can resume."""

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from scoreline.io.files import atomic_file
from studies.study import Findings, Study


def reproduce(
    study: Study,
    record: Any = None,
    fresh: bool = False,
    notify: Callable[[str], None] | None = None,
    minutes: float | None = None,
) -> tuple[Findings, dict[str, Any]]:
    """Compute the cells of a study that are not there yet, and return what they say.

    Parameters
    ----------
    study : Study
        What to run.
    record : path, optional
        File with one JSON line per finished cell. A run that finds it resumes from it. Without it, nothing is stored.
    fresh : bool
        Begin again, whatever the file holds.
    notify : callable, optional
        Called with the name of the next cell.
    minutes : float, optional
        Begin no further cell after so many minutes. The findings name the cells that are left, and are about the others.

    Returns
    -------
    tuple
        The findings, and the results of all cells.
    """
    results = {} if record is None else _begun(Path(record), study, fresh)
    cells = study.cells()
    twice = [cell.key for cell in cells if [other.key for other in cells].count(cell.key) > 1]
    if twice:
        raise ValueError(f"the study {study.name} has the cell {twice[0]!r} twice")
    first = time.perf_counter()
    for k, cell in enumerate(cells):
        if cell.key in results:
            continue
        if minutes is not None and time.perf_counter() - first >= 60.0 * minutes:
            break
        if notify is not None:
            notify(f"{k + 1} of {len(cells)}: {cell.key}")
        begin = time.perf_counter()
        result = json.loads(json.dumps(cell.run(), allow_nan=False))  # as it will be read again
        results[cell.key] = result
        if record is not None:
            _append(Path(record), {"key": cell.key, "seconds": time.perf_counter() - begin, "result": result})
    wanted = {cell.key: results[cell.key] for cell in cells if cell.key in results}
    findings = study.findings(wanted)
    findings.left = [cell.key for cell in cells if cell.key not in results]
    return findings, wanted


def _header(study: Study) -> dict[str, Any]:
    from scoreline import __version__

    return {"study": study.name, "quick": study.quick, "scoreline": __version__}


def _begun(path: Path, study: Study, fresh: bool) -> dict[str, Any]:
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
            f"{path} belongs to another run ({found}), this is {header}; delete it, or begin again with --fresh"
        )
    results, complete = {}, [lines[0]]
    for line in lines[1:]:
        try:
            entry = json.loads(line)
            results[entry["key"]] = entry["result"]
        except (ValueError, KeyError, TypeError):
            break
        complete.append(line)
    if len(complete) < len(lines):
        _write(path, complete)
    return results


def _write(path: Path, lines: list[str]) -> None:
    with atomic_file(path) as file:
        file.write(("\n".join(lines) + "\n").encode())


def _append(path: Path, entry: dict[str, Any]) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(entry) + "\n")
        file.flush()
        os.fsync(file.fileno())
