"""Discovery of implementations in a package, and suggestions for unknown names."""

import difflib
import importlib
import inspect
import pkgutil
from collections.abc import Iterable, Mapping
from types import MappingProxyType, ModuleType
from typing import TypeVar

T = TypeVar("T")
NEARLY_AS_CLOSE = 0.85  # a second suggestion has at least this share of the similarity of the first


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
    near = [hints[word]] if word in hints else _nearest(str(got), names)
    hint = f" Did you mean {' or '.join(map(repr, near))}?" if near else ""
    return ValueError(f"{argument}={got!r} is unknown; expected one of {', '.join(map(repr, names))}.{hint}")


def _nearest(text: str, names: Iterable[str]) -> list[str]:
    """Return the name that is most similar to a text, and a second one if it is nearly as similar."""
    near = difflib.get_close_matches(text, names, n=2, cutoff=0.5)
    similarity = [difflib.SequenceMatcher(None, name, text).ratio() for name in near]
    return [name for name, own in zip(near, similarity, strict=True) if own >= NEARLY_AS_CLOSE * similarity[0]]
