"""Bytes as decisions: what to change in valid content, so that an input of a few bytes reaches far behind a checksum."""

import copy
import json
import math
import random
from collections.abc import Sequence
from typing import Any

import numpy as np

ODD_NUMBERS = (
    0, 1, -1, 2, 3, 127, 128, 255, -128, 2**15, 2**31 - 1, 2**31, -(2**31), 2**32, 2**53, 2**62, 2**63 - 1, 2**63, -(2**63),
    2**64, 10**30, 10**400, 0.5, -0.0, 1e-320, 1e308, -1e308, math.inf, -math.inf, math.nan, True, False,
)  # fmt: skip
ODD_TEXTS = (
    "", "a", "0", "-1", "nan", "é→😀", "\ud800", "\x00", "\x1b[2J", "../../x", "/etc/passwd", "a" * 3000, "%s%n",
    "$array", "=1+1", "x\ny", "'; --",
)  # fmt: skip
ODD_KEYS = ("coef_", "shape", "$array", "$sparse", "", "é", "__class__", "n_features_in_")


class Draw:
    """Takes decisions from bytes, one or two at a time; when they are used up, every decision is 0."""

    def __init__(self, raw: bytes):
        self.raw, self.at = raw, 0

    def number(self, below: int) -> int:
        """Return a number from 0 to below - 1."""
        width = 1 if below <= 256 else 2 if below <= 65536 else 4
        part = self.raw[self.at : self.at + width]
        self.at += width
        return int.from_bytes(part, "little") % max(1, below)

    def pick(self, choices: Sequence[Any]) -> Any:
        """Return one of the choices."""
        return choices[self.number(len(choices))]

    def text(self) -> str:
        """Return a text: an odd one, or the bytes that follow."""
        if self.number(2):
            return str(self.pick(ODD_TEXTS))
        length = self.number(24)
        part = self.raw[self.at : self.at + length]
        self.at += length
        return part.decode("utf-8", "surrogateescape")

    def rest(self) -> bytes:
        """Return all bytes that are left."""
        part, self.at = self.raw[self.at :], len(self.raw)
        return part


def odd_value(draw: Draw, old: Any) -> Any:
    """Return a value to put in the place of an old one."""
    kind = draw.number(7)
    if kind == 0:
        return draw.pick(ODD_NUMBERS)
    if kind == 1:
        return draw.text()
    if kind == 2:
        return draw.pick((None, [], {}, (), [[]], {"a": 1}, [1, "a", None]))
    if kind == 3:
        return [copy.deepcopy(old)] * draw.number(4)
    if isinstance(old, np.ndarray) and kind < 6:
        return odd_array(draw, old)
    if isinstance(old, (int, float)) and not isinstance(old, bool):
        try:
            return old + draw.pick((1, -1, 0.5, 2**31, 2**63))
        except OverflowError:
            return -1
    return np.zeros(draw.number(9)) if kind == 5 else draw.pick(ODD_NUMBERS)


def odd_array(draw: Draw, old: Any) -> Any:
    """Return an array like the old one, but of another length, shape or type, or with another entry."""
    kind = draw.number(7)
    if kind == 0:
        return old[: draw.number(len(old) + 1)].copy() if old.ndim else old.reshape(1)
    if kind == 1:
        return np.concatenate([old.ravel(), old.ravel()])
    if kind == 2:
        return old.reshape(-1, 1) if draw.number(2) else old.ravel()
    if kind == 3:
        with np.errstate(all="ignore"):
            return (
                old.astype(draw.pick(("f4", "i8", "i4", "u1", "U3", "?", ">f8"))) if old.dtype.kind in "biuf" else old
            )
    if kind == 4:
        return old.tolist()
    new = old.copy()
    if new.size and new.dtype.kind in "iuf":
        flat = new.reshape(-1)
        entry = draw.pick([x for x in ODD_NUMBERS if not isinstance(x, bool)])
        with np.errstate(all="ignore"):
            if new.dtype.kind == "f":
                flat[draw.number(len(flat))] = np.float64(float(min(entry, 10**300)))
            else:
                limits = np.iinfo(new.dtype)
                fits = entry if isinstance(entry, int) else 0
                flat[draw.number(len(flat))] = max(limits.min, min(limits.max, fits))
    return new


def changed(draw: Draw, content: Any, most: int = 3) -> Any:
    """Return a copy of nested dicts, lists and tuples in which a few values, keys or lengths are others."""
    content = copy.deepcopy(content)
    for _ in range(1 + draw.number(most)):
        content = _change(draw, content)
    return content


def _change(draw: Draw, node: Any, depth: int = 0) -> Any:
    """Go down to a place, and put something else there."""
    if isinstance(node, tuple):
        new = _change(draw, list(node), depth)
        return tuple(new) if isinstance(new, list) else new
    stop = depth and draw.number(4) == 0
    if isinstance(node, dict) and node and not stop:
        key = draw.pick(list(node))
        action = draw.number(12)
        if action == 0:
            del node[key]
        elif action == 1:
            node[draw.pick(ODD_KEYS)] = odd_value(draw, node[key])
        else:
            node[key] = _change(draw, node[key], depth + 1)
        return node
    if isinstance(node, list) and node and not stop:
        place, action = draw.number(len(node)), draw.number(12)
        if action == 0:
            del node[place]
        elif action == 1:
            node.append(copy.deepcopy(node[place]))
        else:
            node[place] = _change(draw, node[place], depth + 1)
        return node
    return odd_value(draw, node)


def changed_bytes(draw: Draw, raw: bytes, most: int = 4) -> bytes:
    """Return bytes of which a few stretches are others, gone, or there twice."""
    for _ in range(1 + draw.number(most)):
        at, kind, length = draw.number(max(1, len(raw))), draw.number(5), 1 + draw.number(16)
        if kind == 0:
            raw = raw[:at] + bytes([draw.number(256)]) + raw[at + 1 :]
        elif kind == 1:
            raw = raw[:at] + raw[at + length :]
        elif kind == 2:
            raw = raw[: at + length] + raw[at:]
        elif kind == 3:
            number = draw.pick([x for x in ODD_NUMBERS if isinstance(x, int) and not isinstance(x, bool)])
            width = draw.pick((1, 2, 4, 8))
            raw = raw[:at] + (number % (1 << 8 * width)).to_bytes(width, "little") + raw[at + width :]
        else:
            raw = raw[:at] if draw.number(3) == 0 else raw[:at] + draw.text().encode("utf-8", "replace") + raw[at:]
    return raw


def as_json(content: Any) -> bytes:
    """Return JSON bytes of any content, arrays as lists, what JSON has not as Python's dialect has it."""

    def plain(value: Any) -> Any:
        return value.tolist() if isinstance(value, np.ndarray) else str(value)

    return json.dumps(content, default=plain).encode("utf-8", "surrogatepass")


def mutations(seeds: Sequence[bytes], number: int) -> bytes:
    """Return a seed that was changed as `number` says: what is tried where atheris is not installed."""
    rng = random.Random(number)
    if not seeds or rng.random() < 0.1:
        return rng.randbytes(rng.randrange(80))
    raw = rng.choice(seeds)
    if rng.random() < 0.1:  # the head of one, the tail of another
        other = rng.choice(seeds)
        raw = raw[: rng.randrange(len(raw) + 1)] + other[rng.randrange(len(other) + 1) :]
    return changed_bytes(Draw(rng.randbytes(80)), raw)
