"""Solvers by name: every class with a `name` in this folder."""

from functools import cache

from scoreline import solvers
from scoreline.runtime.registry import discover, unknown_name
from scoreline.solvers.common.method import Method


@cache
def all_solvers() -> dict[str, type[Method]]:
    """Return {name: class} of all solvers."""
    return discover(solvers, Method)


def get_solver(name: str) -> type[Method]:
    """Return the solver class of that name, or raise with the nearest names."""
    try:
        return all_solvers()[name]
    except (KeyError, TypeError):
        raise unknown_name("solver", name, ["auto", *all_solvers()]) from None
