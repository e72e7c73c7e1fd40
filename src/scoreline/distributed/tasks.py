"""What a task of one part is made of: its inputs, and a program that says what to compute of them."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from scoreline.distributed.cluster import silent
from scoreline.runtime import parallel


class Ref(NamedTuple):
    """A part of a task's result: its future, and which items to take of it, one within another."""

    future: Any
    path: tuple[int, ...] = ()


class Parts(list[Any]):
    """One value or Ref for every part."""


class Every(list[Ref]):
    """Refs of which every part gets all: what workers send each other."""


class Vector:
    """A vector in blocks as tasks see it: parts that are there, or how to make them (`BlockVector`)."""

    layout: Any
    refs: list[Ref] | None
    recipe: Any


class Task:
    """The inputs of a task of one part, and its arguments as nodes that say how to make them of the inputs."""

    def __init__(self, part: int):
        self.part = part
        self.inputs: list[Any] = []
        self._numbers: dict[int, int] = {}
        self._slots: dict[int, tuple[Any, ...]] = {}

    def node(self, value: Any) -> tuple[Any, ...]:
        """Return the node of an argument."""
        if isinstance(value, Vector):
            if value.refs is not None:
                return self.node(value.refs[self.part])
            if id(value) not in self._slots:
                assert value.recipe is not None
                function, arguments = value.recipe
                nodes = [self.node(a) for a in arguments]  # first: they take slots too
                self._slots[id(value)] = ("call", len(self._slots), function, nodes)
            return self._slots[id(value)]
        if isinstance(value, Ref):
            number = self._numbers.setdefault(id(value.future), len(self.inputs))
            if number == len(self.inputs):
                self.inputs.append(value.future)
            return "input", number, value.path
        if isinstance(value, Every):
            return "list", [self.node(ref) for ref in value]
        if isinstance(value, Parts):
            return self.node(value[self.part])
        return "value", value


def run(program: Any, *inputs: Any) -> Any:
    """Call the function of a program on what its nodes say, on the threads that the part has."""
    function, nodes, kept, threads = program
    made: dict[int, Any] = {}
    with silent(), parallel.thread_limit(threads):
        result = function(*[_value(node, inputs, made) for node in nodes])
        return (result, *[_value(node, inputs, made) for node in kept]) if kept else result


def _value(node: tuple[Any, ...], inputs: Sequence[Any], made: dict[int, Any]) -> Any:
    """Return what a node stands for; not a closure, which would hold the inputs until Python looks for cycles."""
    kind = node[0]
    if kind == "input":
        return pick(inputs[node[1]], node[2])
    if kind == "list":
        return [_value(each, inputs, made) for each in node[1]]
    if kind == "call":
        if node[1] not in made:
            made[node[1]] = node[2](*[_value(each, inputs, made) for each in node[3]])
        return made[node[1]]
    return node[1]


def added(*arrays: Any) -> Any:
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
    """Return what it is given: a value that lies on a worker, the one that has what it is put beside."""
    return value
