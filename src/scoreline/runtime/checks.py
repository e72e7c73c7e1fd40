"""Checks of single arguments; the errors name the argument, its value and what is expected."""

import numbers
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from scoreline.runtime.registry import unknown_name

PERCENT = 100  # a rate above 1 and up to this is probably meant in percent


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
        hint = f" Did you mean {value / 100:g}?" if value <= PERCENT else ""
        raise ValueError(f"{name} must be greater than 0 and at most 1, got {value!r}.{hint}")


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


def column_index(column: Any, p: int, names: Any, what: str) -> int:
    """Return the number of a column that is given by name or number, or raise; `what` begins the message."""
    known = None if names is None else [str(name) for name in names]
    if isinstance(column, str):
        if known is not None and column in known:
            return known.index(column)
        hint = "X has no column names; use numbers" if known is None else f"columns are {', '.join(known[:10])}"
        raise ValueError(f"{what} names column {column!r}, which X does not have: {hint}")
    if isinstance(column, (int, np.integer)) and not isinstance(column, bool) and 0 <= column < p:
        return int(column)
    raise ValueError(f"{what} names column {column!r}, expected a name or a number from 0 to {p - 1}")


def column_signs(monotone: Any, p: int, names: Any = None) -> tuple[int, ...]:
    """Return for each of p columns the sign that `monotone` asks for: 1, -1, or 0 for none."""
    signs = [0] * p
    if monotone is None:
        return tuple(signs)
    if not isinstance(monotone, Mapping):
        raise ValueError(f"monotone={monotone!r:.100} must be a dict of column to +1 or -1, or None")
    for column, sign in monotone.items():
        if isinstance(sign, bool) or sign not in (1, -1):
            raise ValueError(f"monotone[{column!r}]={sign!r} must be +1 (may not fall) or -1 (may not rise)")
        signs[column_index(column, p, names, "monotone")] = int(sign)
    return tuple(signs)
