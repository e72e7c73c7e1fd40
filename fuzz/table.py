"""The table of targets, and what counts as a failure."""

import contextlib
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock


@dataclass(frozen=True)
class Target:
    """A function of bytes, and inputs to begin with."""

    run: Callable[[bytes], None]
    seeds: Callable[[], Sequence[bytes]]


TARGETS: dict[str, Target] = {}
MEMORY = float(1 << 31)  # bytes that targets believe to have, so that what asks for a share of them takes little
READERS = ("io.model_archive", "io.libsvm", "io.mapped_folder", "io.sources")


@contextlib.contextmanager
def little_memory(size: float = MEMORY) -> Iterator[None]:
    """Let readers believe that the machine has so much memory."""
    with contextlib.ExitStack() as stack:
        for module in READERS:
            stack.enter_context(mock.patch(f"scoreline.{module}.memory_limit", return_value=size))
        yield


def target(begin: Callable[[], Sequence[bytes]]) -> Callable[[Any], Any]:
    """Register a function of (bytes, empty folder); after it the folder must hold no hidden file: those are temporary."""

    def register(function: Callable[[bytes, Path], None]) -> Callable[[bytes], None]:
        def run(raw: bytes) -> None:
            with tempfile.TemporaryDirectory(prefix="fuzz") as name, warnings.catch_warnings(), little_memory():
                warnings.simplefilter("ignore")
                function(raw, Path(name))
                left = list(Path(name).rglob(".*"))
                assert not left, f"left behind: {left}"

        TARGETS[function.__name__] = Target(run, begin)
        return run

    return register


@contextlib.contextmanager
def refused(place: Any, *others: type[Exception]) -> Iterator[None]:
    """Let a ValueError pass that names the place."""
    try:
        yield
    except others:
        pass
    except ValueError as error:
        if str(place) not in str(error):
            raise AssertionError(f"the message does not name {place}: {type(error).__name__}: {error}") from error
