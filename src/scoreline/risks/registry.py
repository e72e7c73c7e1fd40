"""Risks by name: every class with a `name` in this folder."""

from functools import cache

from scoreline import risks
from scoreline.measures import Measure
from scoreline.risks.base import Risk
from scoreline.runtime.registry import discover, unknown_name


@cache
def all_risks() -> dict[str, type[Risk]]:
    """Return {name: class} of all risks."""
    return discover(risks, Risk)  # type: ignore[type-abstract]  # the base class only tells what to look for


def get_risk(name: str, measure: Measure | None = None) -> Risk:
    """Return a new risk by name, for the measure if the risk depends on it, or raise with the nearest names."""
    try:
        risk = all_risks()[name]
    except (KeyError, TypeError):
        raise unknown_name("risk", name, ["auto", *all_risks()]) from None
    return risk() if measure is None else risk.for_measure(measure)
