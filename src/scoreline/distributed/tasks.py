"""What a worker does: it runs the program of a task, and keeps memory for the vectors that tasks make."""

import os
import threading
from collections.abc import Callable, Sequence
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

import numpy as np

from scoreline.runtime import parallel
from scoreline.runtime.types import AnyArray, FloatArray
from scoreline.scores.base import Labels

LEAST_ENTRIES = 1 << 15  # of arrays whose memory waits: smaller ones come from memory that the process has anyway
MOST_BYTES = 1 << 28  # that wait to be used again


V = TypeVar("V")


class Rows(NamedTuple, Generic[V]):
    """Scores, labels and weights (or None) of the same rows: vectors in blocks on the driver, arrays of a part on a worker."""

    z: V
    sign: V
    weight: V | None


PartRows: TypeAlias = Rows[AnyArray]


def labels_of(rows: PartRows) -> Labels:
    """Return the labels of a part as operations on rows need them: without totals."""
    return Labels(rows.sign, rows.weight, np.nan, np.nan, np.nan, -1, -1)


class Input(NamedTuple):
    """An input of the task, or an item within it."""

    number: int
    path: tuple[int, ...]


class Call(NamedTuple):
    """The result of a function of other nodes; a task computes each slot once."""

    slot: int
    function: Callable[..., Any]
    nodes: "list[Node]"


class Listed(NamedTuple):
    """A list of other nodes."""

    nodes: "list[Node]"


class Value(NamedTuple):
    """A value that travels with the task."""

    value: Any


Node: TypeAlias = Input | Call | Listed | Value


class Program(NamedTuple):
    """A function to call on nodes, nodes whose values are returned as well, and the threads that the part has."""

    function: Callable[..., Any]
    nodes: list[Node]
    kept: list[Node]
    threads: int


def run(program: Program, *inputs: Any) -> Any:
    """Run a program on the inputs of its task."""
    made: dict[int, Any] = {}
    with np.errstate(all="ignore"), parallel.thread_limit(program.threads):
        result = program.function(*[_value(node, inputs, made) for node in program.nodes])
        return (result, *[_value(node, inputs, made) for node in program.kept]) if program.kept else result


def _value(node: Node, inputs: Sequence[Any], made: dict[int, Any]) -> Any:
    """Return what a node stands for; not a closure, which would hold the inputs until Python looks for cycles."""
    if isinstance(node, Input):
        return pick(inputs[node.number], node.path)
    if isinstance(node, Listed):
        return [_value(each, inputs, made) for each in node.nodes]
    if isinstance(node, Call):
        if node.slot not in made:
            made[node.slot] = node.function(*[_value(each, inputs, made) for each in node.nodes])
        return made[node.slot]
    return node.value


def added(*arrays: AnyArray) -> AnyArray:
    """Return the sum of arrays, from the first to the last."""
    total = arrays[0].copy()
    for array in arrays[1:]:
        total += array
    return total


def pick(value: Any, path: tuple[int, ...]) -> Any:
    """Return an item of a value, one within another."""
    for k in path:
        value = value[k]
    return value


def same(value: Any, *beside: Any) -> Any:
    """Return the value: it then lies on the worker that has what it is put beside."""
    return value


# Memory of vectors that were let go, for those that come next. Tasks make several vectors of the length of their part in every
# iteration and drop as many. A fresh one of 20 MB took 6 ms more than one whose pages are there already, four times as long as
# filling it.
_lock = threading.Lock()
_free: list[FloatArray] = []


class _Held:
    """Owns the memory of an array; when the array and all views of it are gone, it waits for the next one."""

    def __init__(self, raw: FloatArray):
        self._raw = raw
        self.__array_interface__ = raw.__array_interface__

    def __del__(self) -> None:
        if _lock.acquire(blocking=False):  # collected while this thread holds the lock: let the memory go
            try:
                _free.append(self._raw)
                while sum(raw.nbytes for raw in _free) > MOST_BYTES:
                    _free.pop(0)
            finally:
                _lock.release()


def empty(n: int) -> FloatArray:
    """Return an uninitialised vector of n floats."""
    if n < LEAST_ENTRIES:
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
