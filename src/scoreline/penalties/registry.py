"""Penalties by name: every class with a `name` in this folder."""

import inspect
from functools import cache
from typing import Any

from scoreline import penalties
from scoreline.penalties.base import Penalty
from scoreline.runtime.registry import discover, unknown_name


@cache
def all_penalties() -> dict[str, type[Penalty]]:
    """Return {name: class} of all penalties."""
    return discover(penalties, Penalty)  # type: ignore[type-abstract]  # only its concrete subclasses are made


def get_penalty(penalty: str | Penalty, params: dict[str, Any] | None = None) -> Penalty:
    """Return the penalty of that name with its parameters; a Penalty is returned as it is."""
    if isinstance(penalty, Penalty):
        if params:
            raise ValueError(
                f"penalty_params={params!r} belongs to a penalty that is given by name; {penalty!r} has its own"
            )
        return penalty
    try:
        kind = all_penalties()[penalty]
    except (KeyError, TypeError):
        raise unknown_name("penalty", penalty, all_penalties()) from None
    if params is not None and not isinstance(params, dict):
        raise ValueError(f"penalty_params={params!r} must be a dict of parameters of the penalty, or None")
    known = list(inspect.signature(kind).parameters)
    for name in params or {}:
        if name not in known:
            raise ValueError(
                f"penalty_params={params!r} does not fit penalty {penalty!r}: {unknown_name('key', name, known)}"
            )
    missing = [
        name
        for name, parameter in inspect.signature(kind).parameters.items()
        if parameter.default is parameter.empty and name not in (params or {})
    ]
    if missing:
        raise ValueError(f"penalty={penalty!r} needs penalty_params with {', '.join(map(repr, missing))}")
    return kind(**(params or {}))
