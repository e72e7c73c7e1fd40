"""Checks of single arguments; the errors name the argument, its value and what is expected."""

import numbers
from collections.abc import Sequence
from typing import Any

import numpy as np

from scoreline.runtime.registry import unknown_name


def check_number(
    name: str, value: Any, *, above: float | None = None, least: float | None = None, integer: bool = False
) -> None:
    """Raise unless value is a finite real number (with `integer`, an integer) within the limit."""
    kind = numbers.Integral if integer else numbers.Real
    limit = f"greater than {above:g}" if above is not None else f"at least {least:g}"
    fits = isinstance(value, kind) and not isinstance(value, bool) and is_finite(value)
    if fits and ((above is not None and not value > above) or (least is not None and not value >= least)):
        fits = False
    if not fits:
        what = "an integer" if integer else "a finite number"
        raise ValueError(f"{name}={value!r} must be {what} {limit}")


def check_rate(name: str, value: Any) -> None:
    """Raise unless value is a number in (0, 1]."""
    check_number(name, value, above=0)
    if value > 1:
        raise ValueError(f"{name}={value!r} must be a rate of at most 1")


def check_level(level: Any, name: str = "level") -> None:
    """Raise unless level is a probability in (0, 1)."""
    check_number(name, level, above=0)
    if level >= 1:
        raise ValueError(f"{name}={level!r} must be below 1; 0.95 is usual.")


def check_bool(name: str, value: Any) -> None:
    """Raise unless value is True or False itself."""
    if not isinstance(value, bool):
        raise ValueError(f"{name}={value!r} must be True or False")


def is_finite(value: Any) -> bool:
    """Tell whether a real number is a finite float: not NaN, not infinity, not an integer that is too large."""
    try:
        return bool(np.isfinite(float(value)))
    except OverflowError:
        return False


def check_choice(name: str, value: Any, choices: tuple[Any, ...]) -> None:
    """Raise unless value is one of the choices, naming the nearest."""
    if not any(value is choice or (isinstance(value, str) and value == choice) for choice in choices):
        raise unknown_name(name, value, [str(choice) for choice in choices])


def check_callbacks(callbacks: Any) -> None:
    """Raise unless callbacks is a sequence of functions."""
    if not isinstance(callbacks, Sequence) or not all(callable(callback) for callback in callbacks):
        raise ValueError(f"callbacks={callbacks!r} must be a list of functions of a Progress")


def check_flag(name: str, value: Any) -> None:
    """Raise unless value is True or False, or a number that stands for one."""
    if not isinstance(value, (bool, np.bool_, int)):
        raise ValueError(f"{name}={value!r} must be True or False")
