"""Names and numbers as a reader sees them."""

from typing import Any

import numpy as np


def clean(text: Any) -> str:
    """Return text without control characters, marks that turn the direction of writing, and runs of spaces.

    Names come from files of strangers: what cannot be printed has no place in a figure or a page.
    """
    return " ".join("".join(c if c.isprintable() else " " for c in str(text)).split())


def shorten(text: Any, length: int) -> str:
    """Return the cleaned text in at most `length` characters, the middle left out: names differ at both ends."""
    text = clean(text)
    if len(text) <= length:
        return text
    head = length // 2
    return f"{text[:head].rstrip()}…{text[len(text) - (length - 1 - head) :].lstrip()}"


def rate(value: float) -> str:
    """Return a number between 0 and 1 with three digits, more where they would read 0 or 1 and it is neither."""
    if not np.isfinite(value):
        return "not defined"
    text = f"{value:.3f}"
    if text == "1.000" and value < 1.0:
        return f"{value:.5f}" if value < 0.999995 else "above 0.99999"
    if text in ("0.000", "-0.000"):
        return "0.000" if value == 0.0 else f"{value:.2g}"
    return text


def number(value: float) -> str:
    """Return a number with four significant digits."""
    if not np.isfinite(value):
        return "not defined"
    return f"{value:.4g}"


def apart(low: float, high: float) -> tuple[str, str]:
    """Return two numbers with as many digits as tell them apart, four at least."""
    for digits in range(4, 13):
        texts = f"{low:.{digits}g}", f"{high:.{digits}g}"
        if texts[0] != texts[1]:
            break
    return texts


def percent(share: float) -> str:
    """Return a share in percent with the digits that matter."""
    if not np.isfinite(share):
        return "not defined"
    hundred = 100.0 * share
    if 0.0 < hundred < 0.001:
        return "less than 0.001 %"
    if hundred == 0.0 or abs(hundred) >= 99.95:
        return f"{hundred:.3g} %" if hundred in (0.0, 100.0) else f"{hundred:.2f} %"
    return f"{hundred:.1f} %" if abs(hundred) >= 1.0 else f"{hundred:.2g} %"


def count(value: float, noun: str, plural: str | None = None) -> str:
    """Return "1 row", "12,000 rows"."""
    return f"{value:,.0f} {noun if value == 1 else plural or noun + 's'}"


def sentence(text: str) -> str:
    """Return text with a capital at the beginning and a period at the end."""
    text = text.strip()
    return text if not text else text[0].upper() + text[1:] + ("" if text[-1] in ".!?" else ".")


def joined(parts: list[str]) -> str:
    """Return "a", "a and b", "a, b and c"."""
    return parts[0] if len(parts) == 1 else ", ".join(parts[:-1]) + " and " + parts[-1]
