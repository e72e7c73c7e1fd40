"""Discovery of implementations in a package, and suggestions for unknown names."""

import difflib
import importlib
import inspect
import pkgutil
from collections.abc import Iterable, Mapping
from types import MappingProxyType, ModuleType
from typing import TypeVar

T = TypeVar("T")


def discover(package: ModuleType, base: type[T]) -> dict[str, type[T]]:
    """Return {name: class} of the concrete subclasses of `base` with a `name` in the modules of `package`, sorted."""
    found: dict[str, type[T]] = {}
    for info in pkgutil.iter_modules(package.__path__):
        module = importlib.import_module(f"{package.__name__}.{info.name}")
        for _, candidate in inspect.getmembers(module, inspect.isclass):
            if issubclass(candidate, base) and candidate.__module__ == module.__name__:
                name = candidate.__dict__.get("name")
                if name and not inspect.isabstract(candidate):
                    found[name] = candidate
    return dict(sorted(found.items()))


def unknown_name(
    argument: str, got: object, choices: Iterable[str], hints: Mapping[str, str] = MappingProxyType({})
) -> ValueError:
    """Return the error for a name that is not in `choices`, with the choice in `hints`, or else with the nearest ones."""
    names = list(choices)
    word = str(got).lower().partition("=")[0]
    near = [hints[word]] if word in hints else difflib.get_close_matches(str(got), names, n=2, cutoff=0.5)
    hint = f" Did you mean {' or '.join(map(repr, near))}?" if near else ""
    return ValueError(f"{argument}={got!r} is unknown; expected one of {', '.join(map(repr, names))}.{hint}")
