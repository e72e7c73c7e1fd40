"""Every hot kernel compared with what the machine allows: time, floor, ratio, which limit binds, memory beyond the arguments.

    python benchmarks/kernels.py [--cases "risk;DenseOperator"] [--scores 1000000]

The floor of a case is the longest of three times; the last is what NumPy reaches, not a limit that nothing could undercut:

memory      bytes that must be read and written, over the bandwidth of a plain read or of a triad a = b + c (the faster) of
            as many bytes (or of the memory that they are spread over), with the same threads, taking turns with the case:
            caches help both alike
arithmetic  flops over those of BLAS's matrix product, with the same threads
order       what np.sort, np.argsort or np.partition takes for the same keys

The cases, with their bytes, are in `kernel_cases.py`. Whole fits have no floor and are timed by `revisions.py` alone.
"""

import argparse
import ctypes
import gc
import re
import time
import traceback
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numba
import numpy as np
from threadpoolctl import threadpool_limits

from common import OUTPUT, SPIN, Report, interleave, standalone
from kernel_cases import Work, cases
from products import read_sum, straight_sum
from scoreline.runtime.parallel import current_threads, even_bounds, run_chunks

NAME, TITLE = "kernels", "time of every kernel over the least the machine allows: memory, arithmetic or order"
SCORES = 1_000_000
BUDGET, LEAST, MOST = 0.5, 5, 40  # seconds for the repeats of a case, and how many there are
SMALLEST = 1 << 16  # bytes: less than that is not worth a bandwidth of its own
TRIAD = 3  # vectors of a triad
FAR = 5.0
PRODUCT = 384  # size of the matrices whose product gives the flops

# Why a case is further than FAR from its floor, by a pattern of its name, the first that fits; from timings and profiles of
# float64 cases; relatives of a case (float32, wrappers) are taken to be alike.
WAITS = "rows here and there: the next cannot be foreseen, so reads wait for memory; as many rows in a run take"
REASONS = {
    "risk roc_area.*": "every row looks itself up among the keys, at a place that its score decides: 3/4 of it, smoothed 1/2",
    "risk partial_roc, smoothed": "1/3 of it is two look-ups of every row, 1/6 the same partition of the negatives twice",
    "risk contingency_entropy": "exp and log1p come from the mathematical library, one number at a time",
    "risk squared_hinge": "4/5 of it is the dot product for the plane: see there",
    "gram CSR": "2/3 of it is the sum of a p x p matrix and its transpose in NumPy, against the order of memory",
    "partial_fit (spade|stamp).*": "1/3 is updates, each waiting for the one before, 1/3 the score sketch for the threshold",
    "vector dot": "below 2^20 rows its bounds are signed: not vectorised; with unsigned bounds it takes a tenth",
    "vector max_abs": "the compiler does not vectorise the maximum",
    "RandomFourierFeatures .*": "4/5 of it is np.cos",
    "DenseOperator F .* on rows": "9/10 of it is NumPy's copy of the rows, which touches a column after the other",
    "DenseOperator F .* statistics": "walks rows first, across the columns that are contiguous: columns first take 2/5 of it",
    ".*(CSR|Csr).* on rows": f"{WAITS} a fifth, and all rows two thirds",
    ".*(CSR|Csr).* statistics": "six sums of its column are read and written for each entry: side by side they take 2/3",
    "(DenseOperator C|MappedDense|.* dense,).* on rows|RowsOperator .*, (Xw|X'u).*": f"{WAITS} a third",
}


class Measured(NamedTuple):
    """Seconds of the best repeat and of the floor, which limit that is, and bytes beyond the arguments (None: unknown)."""

    seconds: float
    floor: float
    limit: str
    extra: float | None

    @property
    def ratio(self) -> float:
        return self.seconds / self.floor


@numba.njit(nogil=True)
def add_into(a, b, c, bounds, first, last):
    """a = b + 3 c, the triad."""
    for i in range(bounds[first], bounds[last]):
        a[i] = b[i] + 3.0 * c[i]


def best_seconds(sides: dict[str, Any], repeats: int) -> dict[str, float]:
    """Return the best repeat of each side, taking turns: on one thread its processor time, which others do not add to."""
    if current_threads() > 1:
        return {name: timing.best for name, timing in interleave(sides, repeats).items()}
    best = dict.fromkeys(sides, float("inf"))
    for turn in range(repeats + 1):
        for name, side in sides.items():
            start = time.process_time()
            side()
            if turn > 0:  # the first compiles
                best[name] = min(best[name], time.process_time() - start)
    return best


class Machine:
    """The limits: plain reads and triads of any size, and flops."""

    def __init__(self):
        self._read, self._triad = np.ones(0), np.ones(0)
        rng = np.random.default_rng(0)
        a, b = rng.random((2, PRODUCT, PRODUCT))
        with threadpool_limits(current_threads(), user_api="blas"):
            seconds = best_seconds({"product": lambda: a @ b}, MOST)["product"]
        time.sleep(SPIN)
        self.flops = 2.0 * PRODUCT**3 / seconds

    def movers(self, size: float) -> tuple[dict[str, Any], int]:
        """Return ways to move `size` bytes, and how many they really move; either has memory of its own."""
        count = max(SMALLEST, int(size)) // TRIAD // 8
        if TRIAD * count > len(self._read):
            self._read, self._triad = np.ones(TRIAD * count), np.ones(TRIAD * count)
        flat, (a, b, c) = self._read[: TRIAD * count], self._triad[: TRIAD * count].reshape(TRIAD, count)
        bounds, thirds = even_bounds(len(flat), 1), even_bounds(count, 1)
        partial = np.empty(len(bounds) - 1)
        ways = {
            "read: 8 streams": lambda: run_chunks(read_sum, len(partial), flat, partial, bounds),
            "read: straight": lambda: run_chunks(straight_sum, len(partial), flat, partial, bounds),
            "triad": lambda: run_chunks(add_into, len(thirds) - 1, a, b, c, thirds),
        }
        return ways, flat.nbytes


def measured(work: Work, machine: Machine) -> Measured:
    """Time a case, taking turns with what bounds it."""
    moved = work.read + work.written
    movers, size = machine.movers(max(moved, work.span))
    sides: dict[str, Any] = {"case": work.run} | movers
    if work.order is not None:
        sides["order"] = work.order
    once = sum(best_seconds(sides, 1).values())
    times = best_seconds(sides, min(MOST, max(LEAST, int(BUDGET / once))))
    bandwidth = size / min(times[name] for name in movers)
    floors = {
        f"memory, {bandwidth / 1e9:.1f} GB/s": moved / bandwidth,
        f"arithmetic, {machine.flops / 1e9:.0f} Gflop/s": work.flops / machine.flops,
    }
    if work.order is not None:
        floors[work.order_name] = times["order"]
    limit = max(floors, key=lambda name: floors[name])
    return Measured(times["case"], floors[limit], limit, extra_bytes(work.run))


def extra_bytes(run: Any) -> float | None:
    """Return how far a call raises the memory in use at its peak; None where the system does not tell."""
    gc.collect()
    try:
        ctypes.CDLL(None).malloc_trim(0)  # else a call would be given memory that an earlier one has left
        Path("/proc/self/clear_refs").write_text("5")  # the high-water mark starts anew
        before = _status("VmRSS")
        run()
        return max(0.0, _status("VmHWM") - before)
    except (OSError, AttributeError):
        return None


def _status(field: str) -> float:
    return 1024.0 * int(Path("/proc/self/status").read_text().split(f"{field}:")[1].split()[0])


def reason(name: str) -> str:
    """Return why a case is far from its floor, if that is known."""
    return next((text for pattern, text in REASONS.items() if re.fullmatch(pattern, name)), "the reason is not known")


def main(report: Report, options: Any = None) -> None:
    options = options or parsed([])
    warnings.simplefilter("ignore")  # of fits that stop early: only their time counts here
    machine, threads = Machine(), current_threads()
    report.say(f"{threads} threads, {'wall-clock' if threads > 1 else 'processor'} time, {options.scores} scores")
    report.data, far = [], []
    chosen = {k: make for k, make in cases(options.scores).items() if any(part in k for part in options.cases)}
    for name, make in chosen.items():
        try:
            work = make()
            if not (work.read or work.flops or work.order):
                continue
            found = measured(work, machine)
        except Exception:  # one storage that cannot be made must not hide the others
            report.say(f"{name}: NOT measured: {traceback.format_exc(limit=-1).splitlines()[-1]}")
            continue
        extra = "" if found.extra is None else f"; {found.extra / 1e6:.1f} MB extra"
        note = f"{1e3 * found.seconds:.2f} ms, floor {1e3 * found.floor:.2f} ms by {found.limit}{extra}"
        report.add(name, found.ratio, "x", "", note)
        report.data.append({"case": name, "ratio": found.ratio, **found._asdict()})
        if found.ratio > FAR:
            far.append((found.ratio, name))
        del work
    for ratio, name in sorted(far, reverse=True):
        report.say(f"{name} takes {ratio:.1f} times its floor: {reason(name)}")


def parsed(arguments: list[str] | None = None) -> Any:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=lambda text: text.split(";"), default=[""], help="parts of names, apart by ;")
    parser.add_argument("--scores", type=int, default=SCORES, help="scores; matrices have a fifth as many rows")
    parser.add_argument("--out", type=Path, default=OUTPUT / "kernels.json")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    chosen_options = parsed()
    module = SimpleNamespace(NAME=NAME, TITLE=TITLE, main=lambda report: main(report, chosen_options))
    standalone(module, out=chosen_options.out)
