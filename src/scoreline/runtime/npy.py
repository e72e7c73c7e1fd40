"""Headers of .npy files, and memory-mapped arrays.

NumPy's reader parses a header as Python code, which CPython 3.11 cannot do on several threads at once. If the garbage collector
runs a finalizer during that, another thread may parse too, and the first one fails with `SystemError: AST constructor
recursion depth mismatch`. This module therefore reads the three entries of a header with a pattern. It does not support
arrays of records.
"""

import math
import re
import struct
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np

from scoreline.runtime.types import AnyArray

MAGIC = b"\x93NUMPY"
LENGTHS = {1: "<H", 2: "<I", 3: "<I"}  # the type of the header's length in each version of the format
MAX_HEADER_LENGTH = 10_000  # characters, as in NumPy
ENTRY = re.compile(
    r"""\s*(?P<mark>['"])(?P<name>descr|fortran_order|shape)(?P=mark)\s*:\s*"""
    r"""(?:(?P<quote>['"])(?P<type>[<>|=]?(?:\?|[A-Za-z]+[0-9]*)(?:\[\w+\])?)(?P=quote)"""
    r"""|(?P<flag>True|False)"""
    r"""|\(\s*(?P<sides>(?:(?:[0-9]+L?\s*,\s*)+(?:[0-9]+L?\s*)?)?)\))"""  # L is the suffix of long integers in Python 2
    r"""\s*(?:,|(?=\}))"""
)
VALUE_GROUPS = {
    "descr": "type",
    "fortran_order": "flag",
    "shape": "sides",
}  # the group of ENTRY with the value of a name

Shape = tuple[int, ...]


def read_header(file: IO[bytes]) -> tuple[Shape, bool, np.dtype[Any]]:
    """Read the header and return the array's shape, whether it is in Fortran order, and its type."""
    start = file.read(len(MAGIC) + 2)
    if len(start) < len(MAGIC) + 2 or not start.startswith(MAGIC):
        raise ValueError("it does not begin as .npy files do")
    form = LENGTHS.get(start[-2])
    if form is None or start[-1]:
        raise ValueError(f"it has version {start[-2]}.{start[-1]} of the format, expected 1.0, 2.0 or 3.0")
    size = file.read(struct.calcsize(form))
    length = struct.unpack(form, size)[0] if len(size) == struct.calcsize(form) else 0
    if length > MAX_HEADER_LENGTH:
        raise ValueError(f"its header has {length} characters, expected at most {MAX_HEADER_LENGTH}")
    raw = file.read(length)
    text = raw.decode("latin1" if start[-2] < 3 else "utf8").strip()
    if len(raw) < length or not text:
        raise ValueError("it ends within its header")
    return _parsed(text)


def map_array(path: Path, mode: Literal["r", "r+"] = "r") -> AnyArray:
    """Return the memory-mapped array of a file; with mode "r+" changes are written to the file."""
    with path.open("rb") as file:
        (shape, fortran, dtype), offset = read_header(file), file.tell()
        size = file.seek(0, 2)
    if dtype.hasobject:
        raise ValueError("it holds Python objects, expected numbers or text")
    needed = offset + math.prod(shape) * dtype.itemsize
    if needed > size:
        raise ValueError(f"it has {size} bytes, its header asks for {needed}")
    return np.memmap(path, dtype=dtype, mode=mode, offset=offset, shape=shape, order="F" if fortran else "C")


def _parsed(text: str) -> tuple[Shape, bool, np.dtype[Any]]:
    found: dict[str, str] = {}
    place = 1
    while text[0] == "{" and (entry := ENTRY.match(text, place)):
        value = entry[VALUE_GROUPS[entry["name"]]]
        if value is None or entry["name"] in found:
            break
        found[entry["name"]], place = value, entry.end()
    if len(found) < len(VALUE_GROUPS) or text[place:].strip() != "}":
        raise ValueError(f"its header is {text[:200]!r}, expected type, order and shape of an array without fields")
    try:
        dtype = np.dtype(found["descr"])
    except (TypeError, OverflowError) as error:
        raise ValueError(f"its header says that it holds {found['descr']!r}, which NumPy does not support") from error
    shape = tuple(int(side) for side in re.findall("[0-9]+", found["shape"]))
    if math.prod(max(1, side) for side in shape) > np.iinfo(np.intp).max:
        raise ValueError(f"its header has shape {found['shape'][:100]}, larger than any array")
    return shape, found["fortran_order"] == "True", dtype
