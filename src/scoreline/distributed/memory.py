"""Memory of vectors that were let go, for those that come next: fresh pages cost more than what is written to them.

Tasks make several vectors of the length of their part in every iteration and drop as many. A fresh one of 20 MB took 6 ms more
than one whose pages are there already, four times as long as filling it.
"""

import os
import threading
from typing import Any

import numpy as np

from scoreline.runtime.types import FloatArray

LEAST = 1 << 15  # entries: smaller arrays come from memory that the process has anyway
MOST_BYTES = 1 << 28  # that wait to be used again

_lock = threading.Lock()
_free: list[FloatArray] = []


class _Held:
    """Owns the memory of an array; when the array and all views of it are gone, it waits for the next one."""

    def __init__(self, raw: FloatArray):
        self._raw = raw
        self.__array_interface__: Any = raw.__array_interface__

    def __del__(self) -> None:
        if _lock.acquire(blocking=False):  # collected while the lock is held here: let the memory go
            try:
                _free.append(self._raw)
                while sum(raw.nbytes for raw in _free) > MOST_BYTES:
                    _free.pop(0)
            finally:
                _lock.release()


def empty(n: int) -> FloatArray:
    """Return an uninitialised vector of n floats."""
    if n < LEAST:
        return np.empty(n)
    raw = None
    with _lock:
        for k, waiting in enumerate(_free):
            if len(waiting) == n:
                raw = _free.pop(k)
                break
    return np.asarray(_Held(np.empty(n) if raw is None else raw))


def _begin_in_child() -> None:
    """After fork the thread that holds the lock may not exist."""
    global _lock
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_in_child)
