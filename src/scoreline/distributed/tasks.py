"""The worker's side: it runs the program of a task, and reuses memory for the vectors that tasks make."""

import os
import threading
from collections.abc import Callable, Sequence
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

import numpy as np

from scoreline.runtime import parallel
from scoreline.runtime.types import AnyArray, FloatArray
from scoreline.scores.base import Labels

MIN_REUSED_ENTRIES = 1 << 15  # memory of smaller arrays is not worth reusing
MAX_FREE_BYTES = 1 << 28  # memory that waits to be used again

V = TypeVar("V")


class Rows(NamedTuple, Generic[V]):
    """Scores, labels and weights (or None) of the same rows: block vectors on the driver, arrays on a worker."""

    z: V
    sign: V
    weight: V | None


PartRows: TypeAlias = Rows[AnyArray]


def labels_of(rows: PartRows) -> Labels:
    """Return the labels of a part, without totals, for operations on single rows."""
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
    """A function to call on nodes, further nodes to return the values of, and the number of threads of the part."""

    function: Callable[..., Any]
    nodes: list[Node]
    stored: list[Node]
    threads: int


def run(program: Program, *inputs: Any) -> Any:
    """Run a program on the inputs of its task."""
    values: dict[int, Any] = {}
    with np.errstate(all="ignore"), parallel.thread_limit(program.threads):
        result = program.function(*[_value(node, inputs, values) for node in program.nodes])
        return (result, *[_value(node, inputs, values) for node in program.stored]) if program.stored else result


def _value(node: Node, inputs: Sequence[Any], values: dict[int, Any]) -> Any:
    """Return the value of a node (a closure would keep the inputs alive until the garbage collector runs)."""
    if isinstance(node, Input):
        return pick(inputs[node.number], node.path)
    if isinstance(node, Listed):
        return [_value(each, inputs, values) for each in node.nodes]
    if isinstance(node, Call):
        if node.slot not in values:
            values[node.slot] = node.function(*[_value(each, inputs, values) for each in node.nodes])
        return values[node.slot]
    return node.value


def added(*arrays: AnyArray) -> AnyArray:
    """Return the sum of arrays, from the first to the last."""
    total = arrays[0].copy()
    for array in arrays[1:]:
        total += array
    return total


def pick(value: Any, path: tuple[int, ...]) -> Any:
    """Return the item of a nested value at the given indices."""
    for k in path:
        value = value[k]
    return value


def same(value: Any, *anchors: Any) -> Any:
    """Return the value; Dask places it on the worker that has the anchors."""
    return value


# Memory of freed vectors, for reuse. In every iteration tasks make and drop several vectors of the length of their part. A new
# vector of 20 MB took 6 ms longer than one with existing pages, four times as long as filling it.
_lock = threading.Lock()
_free: list[FloatArray] = []


class _ReusableMemory:
    """Owns the memory of an array, and offers it for reuse when the array and all of its views are gone."""

    def __init__(self, raw: FloatArray):
        self._raw = raw
        self.__array_interface__ = raw.__array_interface__

    def __del__(self) -> None:
        if _lock.acquire(blocking=False):  # if this thread holds the lock, the memory is simply freed
            try:
                _free.append(self._raw)
                while sum(raw.nbytes for raw in _free) > MAX_FREE_BYTES:
                    _free.pop(0)
            finally:
                _lock.release()


def empty(n: int) -> FloatArray:
    """Return an uninitialised vector of n floats."""
    if n < MIN_REUSED_ENTRIES:
        return np.empty(n)
    raw = None
    with _lock:
        for k, waiting in enumerate(_free):
            if len(waiting) == n:
                raw = _free.pop(k)
                break
    return np.asarray(_ReusableMemory(np.empty(n) if raw is None else raw))


def _begin_in_child() -> None:
    """Make a new lock, because the thread that holds it may not exist in a forked child."""
    global _lock
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_in_child)
