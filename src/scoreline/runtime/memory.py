"""Memory of this machine: the limit of this process, how much is left, and advice when it is not enough."""

import math
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from scoreline.runtime.array_types import is_out_of_memory

GROUP = Path("/sys/fs/cgroup")  # limits of a container: cgroup version 2, or version 1 in the subfolder memory
PROC = Path("/proc")
UNLIMITED = 1 << 60  # version 1 writes a number near 2^63 if there is no limit

ADVICE = (
    "Pass X as float32, train on fewer rows, convert the data to a folder that is trained from disk (scoreline.io.convert, "
    "`scoreline convert`), or learn from blocks by partial_fit (solver='spade', 'stamp' or 'moments')."
)


class AdvisedMemoryError(MemoryError):
    """Memory is not enough, and the message says what to do."""


def memory_limit() -> float:
    """Return the bytes that the machine, its container and `ulimit -v` allow this process; inf if unknown."""
    return min(_machine("MemTotal") + _machine("SwapTotal"), _group()[0], _address_space()[0])


def memory_left() -> float:
    """Return the bytes that this process can still allocate; inf if unknown."""
    group, used = _group()
    space, taken = _address_space()
    return max(0.0, min(_machine("MemAvailable") + _machine("SwapFree"), group - used, space - taken))


def in_words(size: float) -> str:
    """Return a number of bytes with a unit."""
    for unit, factor in (("GB", 1e9), ("MB", 1e6)):
        if size >= factor:
            return f"{size / factor:.3g} {unit}"
    return f"{size / 1e3:.3g} kB"


def _number(path: Path) -> float:
    try:
        value = float(path.read_text())
    except (OSError, ValueError):  # not there, or "max"
        return math.inf
    return math.inf if value >= UNLIMITED else value


def _machine(field: str) -> float:
    try:
        found = re.search(rf"^{field}:\s+(\d+) kB", (PROC / "meminfo").read_text(), re.MULTILINE)
    except OSError:
        found = None
    if found is not None:
        return 1024.0 * int(found.group(1))
    with suppress(AttributeError, ValueError, OSError):
        if field == "MemTotal":
            return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    return 0.0 if field.startswith("Swap") else math.inf


def _group() -> tuple[float, float]:
    """Return the limit of the container and its use, without cached file pages that the system can free."""
    for limit, current, statistics, idle in (
        ("memory.max", "memory.current", "memory.stat", "inactive_file"),
        ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes", "memory/memory.stat", "total_inactive_file"),
    ):
        most = _number(GROUP / limit)
        if math.isfinite(most):
            used = _number(GROUP / current)
            with suppress(OSError):
                found = re.search(rf"^{idle} (\d+)", (GROUP / statistics).read_text(), re.MULTILINE)
                used -= 0.0 if found is None else float(found.group(1))
            return most, used if math.isfinite(used) else 0.0
    return math.inf, 0.0


def _address_space() -> tuple[float, float]:
    """Return the limit of the address space (`ulimit -v`) and its use."""
    try:
        import resource
    except ImportError:  # not on Windows
        return math.inf, 0.0
    most = resource.getrlimit(resource.RLIMIT_AS)[0]
    if most == resource.RLIM_INFINITY:
        return math.inf, 0.0
    try:
        pages = int((PROC / "self" / "statm").read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return float(most), 0.0
    return float(most), float(pages * os.sysconf("SC_PAGE_SIZE"))


@contextmanager
def memory_advice() -> Iterator[None]:
    """Turn an out-of-memory error of the host or of a device into a MemoryError with advice."""
    try:
        yield
    except AdvisedMemoryError:
        raise
    except MemoryError as error:
        reason = f" ({error})" if str(error) else ""
        raise AdvisedMemoryError(f"not enough memory{reason}; {in_words(memory_left())} are left. {ADVICE}") from error
    except Exception as error:
        if not is_out_of_memory(error):
            raise
        first = str(error).strip().splitlines()[0]
        raise AdvisedMemoryError(
            f"the device has no memory left ({first}). A fit needs X and 12 to 26 vectors of float64 with one entry per row; "
            "a CSR matrix is stored twice. Pass X as float32, free other arrays on the device, or train on the host (NumPy or "
            "SciPy arrays, without device=)."
        ) from error
