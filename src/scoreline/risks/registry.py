"""Risks by name: every class with a `name` in this folder."""

from functools import cache

from scoreline import risks
from scoreline._registry import discover, unknown_name
from scoreline.risks.base import Risk


@cache
def all_risks() -> dict[str, type[Risk]]:
    """Return {name: class} of all risks."""
    return discover(risks, Risk)  # type: ignore[type-abstract]


def get_risk(name: str) -> Risk:
    """Return a new risk by name, or raise with the nearest names."""
    try:
        return all_risks()[name]()
    except (KeyError, TypeError):
        raise unknown_name("risk", name, ["auto", *all_risks()]) from None
