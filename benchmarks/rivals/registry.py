"""All rivals: every module of this folder that has a tuple RIVALS."""

import importlib
import pkgutil

import rivals
from rivals.base import Rival


def all_rivals() -> dict[str, Rival]:
    """Return the rivals by name, ours first."""
    names = sorted(module.name for module in pkgutil.iter_modules(rivals.__path__))
    modules = [importlib.import_module(f"rivals.{name}") for name in names]
    found = [rival for module in modules for rival in getattr(module, "RIVALS", ())]
    twice = {rival.name for rival in found if [other.name for other in found].count(rival.name) > 1}
    if twice:
        raise ValueError(f"two rivals of the name {min(twice)!r}")
    return {rival.name: rival for rival in sorted(found, key=lambda r: not r.name.startswith("scoreline"))}
