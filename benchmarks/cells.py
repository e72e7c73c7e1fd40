"""Many small measurements on many cores: one process of one thread per job, a hard limit of time, and a file that grows.

Every benchmark that uses it has the same options. `--jobs N` sets the number of processes. `--limit SECONDS` ends the run, also
in the middle of a cell, and keeps the cells that are done. `--out FILE` gets a line of JSON per cell, and cells that it has
already are not run again. `--join FILE` makes the table of such a file and runs nothing.
"""

import argparse
import json
import multiprocessing
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
DATA: dict[str, Any] = {}  # filled before the processes are forked, so that they share its memory


def _one_thread() -> None:
    """Give this process one thread, in libraries that are loaded and in those to come."""
    for name in ONE_THREAD:
        os.environ[name] = "1"
    threadpool_limits(1)


def add_options(parser: argparse.ArgumentParser, name: str) -> None:
    """Add the options that all these benchmarks share."""
    parser.add_argument("--jobs", type=int, default=1, help="processes of one thread each")
    parser.add_argument("--limit", type=float, default=None, help="seconds after which the run ends")
    parser.add_argument("--out", type=Path, default=Path("bench-output") / f"{name}.jsonl")
    parser.add_argument("--join", type=Path, nargs="*", default=None, help="make the table of these files, run nothing")


def read(files: list[Path]) -> list[dict[str, Any]]:
    """Return the cells of some files; of two with the same key the later one."""
    found = {}
    for file in files:
        for line in file.read_text().splitlines():
            each = json.loads(line)
            found[json.dumps(each["cell"])] = each
    return list(found.values())


def run(
    options: argparse.Namespace, cells: list[Any], work: Callable[[Any], Any], load: Callable[[str], Any] | None = None,
    names: list[str] = [],  # noqa: B006 - never changed
) -> list[dict[str, Any]]:  # fmt: skip
    """Return {"cell", "found"} of every cell that was measured within the limit, in the order given.

    `work` returns what JSON can hold. `load(name)` reads a data set into `DATA`.
    """
    if options.join is not None:
        return read(options.join)
    begin = time.perf_counter()
    options.out.parent.mkdir(parents=True, exist_ok=True)
    done = read([options.out]) if options.out.exists() else []
    known = {json.dumps(each["cell"]) for each in done}
    waiting = [cell for cell in cells if json.dumps(cell) not in known]
    context = multiprocessing.get_context("fork")
    if load is not None:
        with context.Pool(min(options.jobs, max(len(names), 1))) as pool:
            DATA.update(zip(names, pool.map(load, names, chunksize=1), strict=True))
        print(f"read {len(names)} data sets in {time.perf_counter() - begin:.0f} s", file=sys.stderr, flush=True)
    with context.Pool(options.jobs, _one_thread) as pool, options.out.open("a") as file:
        results = pool.imap_unordered(_Measured(work), waiting, chunksize=1)
        for _ in waiting:
            left = None if options.limit is None else options.limit - (time.perf_counter() - begin)
            try:
                each = results.next(None if left is None else max(left, 0.0))
            except multiprocessing.TimeoutError:
                break
            done.append(each)
            file.write(json.dumps(each) + "\n")
            file.flush()
        pool.terminate()
    seconds = time.perf_counter() - begin
    print(f"{len(done)} of {len(cells)} cells, {seconds:.0f} s, {options.jobs} processes", file=sys.stderr, flush=True)
    return done


class _Measured:
    """A cell with what was found; an error is kept in the place of a result and told at the end."""

    def __init__(self, work: Callable[[Any], Any]):
        self.work = work

    def __call__(self, cell: Any) -> dict[str, Any]:
        try:
            return {"cell": cell, "found": self.work(cell)}
        except Exception as error:  # other cells still run
            return {"cell": cell, "found": None, "error": f"{type(error).__name__}: {error}"[:500]}
