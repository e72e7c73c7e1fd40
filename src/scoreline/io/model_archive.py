"""Models and checkpoints in one file: an uncompressed .npz with a JSON header, without pickle. `np.load(path)` opens it too.

Besides the values of JSON there can be arrays, tuples, dicts with keys of any kind, and numbers that are not finite. They
are written as {"$array": name} and the like. Reading runs no code: arrays hold numbers or text, and nothing names a class.
"""

import io
import json
import math
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from scoreline.io.files import atomic_file
from scoreline.runtime.memory import memory_limit
from scoreline.runtime.npy import read_header
from scoreline.runtime.types import AnyArray

HEADER = "header.json"
SPARSE_SIZE, SPARSE_SHARE = (
    1000,
    0.25,
)  # arrays of this length with a smaller share of non-zeros are stored as non-zeros
# The zeros of sparse arrays may take this many bytes plus this multiple of the file's size, so that a tiny file cannot fill
# the memory. The writer stores an array beyond the limit densely.
SPARSE_ROOM, SPARSE_FACTOR = 1 << 30, 64
DATE = (1980, 1, 1, 0, 0, 0)  # the same content gives the same bytes


class DamagedError(ValueError):
    """The file is damaged or of another kind."""


class _Arrays(dict[str, AnyArray]):
    """Arrays by name, and the number of bytes that the zeros of sparse arrays may still take."""

    room: float

    def reserve(self, n_bytes: float) -> bool:
        """Reserve memory and return True, or return False if there is not enough left."""
        if n_bytes > self.room:
            return False
        self.room -= max(0.0, n_bytes)
        return True


def write_archive(path: Any, kind: str, version: int, content: Mapping[str, Any]) -> None:
    """Write a file of this kind and version atomically.

    `content` consists of dicts, lists, tuples, arrays, numbers, text and None. `read_archive` refuses newer versions.
    """
    arrays = _Arrays()
    arrays.room = SPARSE_ROOM
    header = {"format": kind, "version": version, "content": _packed(content, arrays, "")}
    text = json.dumps(header, allow_nan=False, ensure_ascii=False, indent=1).encode()
    with atomic_file(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(zipfile.ZipInfo(HEADER, DATE), text)
        for name, array in arrays.items():
            with archive.open(zipfile.ZipInfo(f"{name}.npy", DATE), "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)


def read_archive(path: Any, kind: str, version: int) -> dict[str, Any]:
    """Return the content of a file of this kind, written by this version or an older one."""
    path = Path(path)
    file = path.open("rb")  # outside of the try, because a missing file is not a damaged one
    try:
        with file, zipfile.ZipFile(file) as archive:
            return _read(path, archive, kind, version)
    except DamagedError as error:
        raise ValueError(f"{path}: {error}") from error.__cause__
    except MemoryError as error:
        raise ValueError(
            f"{path} needs more memory than is available. It is damaged, or was written on a larger machine."
        ) from error
    except Exception as error:  # zipfile, json and NumPy can fail in many ways on damaged bytes
        raise ValueError(
            f"{path} is not a {kind} file, or it is damaged ({type(error).__name__}: {error!s:.200}); write it again, or "
            "use an intact copy"
        ) from error


def _read(path: Path, archive: zipfile.ZipFile, kind: str, version: int) -> dict[str, Any]:
    size, members = path.stat().st_size, archive.infolist()
    if len({member.filename for member in members}) < len(members) or HEADER not in archive.namelist():
        raise DamagedError(f"this is not a {kind} file: it has no {HEADER}")
    left = size
    for member in members:  # their sizes add up to at most the file's, even if they overlap
        left -= member.file_size
        if member.compress_type != zipfile.ZIP_STORED or left < 0:
            raise DamagedError(
                f"its part {member.filename!r} is compressed or has a wrong size; {kind} files are not compressed"
            )
    header = read_json(archive.read(HEADER))
    if not isinstance(header, dict) or header.get("format") != kind:
        found = header.get("format") if isinstance(header, dict) else None
        raise DamagedError(f"expected a {kind} file, got {found!r}")
    if type(header.get("version")) is not int or header["version"] < 1:
        raise DamagedError(f"its format version is {header.get('version')!r}, expected a whole number")
    if header["version"] > version:
        raise DamagedError(
            f"it was written by a newer scoreline (format {header['version']}, this one reads up to {version}); upgrade "
            "scoreline to read it"
        )
    arrays = _Arrays(
        (member.filename, read_npy(archive.read(member))) for member in members if member.filename != HEADER
    )
    arrays.room = min(SPARSE_ROOM + SPARSE_FACTOR * float(size), memory_limit())
    content = _unpacked(header["content"], arrays)
    if not isinstance(content, dict):
        raise DamagedError("its content is not a set of named values")
    return content


def read_json(raw: bytes) -> Any:
    """Return the value of strict JSON: duplicate members and NaN are errors."""
    return json.loads(raw, object_pairs_hook=_distinct, parse_constant=_no_constant)


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise DamagedError("an object of its header names a member twice")
    return found


def _no_constant(text: str) -> Any:
    raise DamagedError(f"its header holds {text}, which is not JSON")


def read_npy(raw: bytes, kinds: str = "biufU") -> AnyArray:
    """Return the array of .npy bytes; the size in its header is checked before memory is allocated."""
    file = io.BytesIO(raw)
    shape, fortran, dtype = read_header(file)
    if dtype.hasobject or dtype.kind not in kinds:
        raise DamagedError(f"it holds an array of {dtype}, expected numbers or text")
    if math.prod(shape) * dtype.itemsize != len(raw) - file.tell():
        raise DamagedError("the size of an array is not what its header says")
    flat = np.frombuffer(raw, dtype=dtype, offset=file.tell()) if len(raw) > file.tell() else np.empty(0, dtype=dtype)
    return flat.reshape(shape, order="F" if fortran else "C").copy(order="A")


def _packed(value: Any, arrays: _Arrays, place: str) -> Any:
    """Return a value as JSON, with its arrays moved to `arrays`."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"$float": repr(value)}
    if isinstance(value, np.ndarray):
        return _packed_array(value, arrays, place)
    if isinstance(value, (list, tuple)):
        items = [_packed(item, arrays, f"{place}[{k}]") for k, item in enumerate(value)]
        return items if isinstance(value, list) else {"$tuple": items}
    if isinstance(value, Mapping):
        if all(isinstance(key, str) and not key.startswith("$") for key in value):
            return {key: _packed(item, arrays, f"{place}.{key}") for key, item in value.items()}
        pairs = [[_packed(key, arrays, place), _packed(item, arrays, f"{place}.{key}")] for key, item in value.items()]
        return {"$dict": pairs}
    raise TypeError(f"{place.lstrip('.')} is a {type(value).__name__}, which a file without code cannot hold")


def _packed_array(value: AnyArray, arrays: _Arrays, place: str) -> Any:
    if value.dtype == object:  # names of columns, labels
        return {
            "$objects": [_packed(item, arrays, place) for item in value.ravel().tolist()],
            "shape": list(value.shape),
        }
    if value.dtype.kind not in "biufU" or isinstance(value, np.ma.MaskedArray):
        raise TypeError(f"{place.lstrip('.')} is an array of {value.dtype}, expected numbers or text, none masked")
    if value.dtype == np.float64 and value.size >= SPARSE_SIZE:
        flat = np.ascontiguousarray(value).reshape(-1)
        places = np.flatnonzero(flat.view(np.uint64))  # by bits: -0.0 is kept
        few = len(places) < SPARSE_SHARE * len(flat)
        if few and arrays.reserve(8.0 * len(flat) - SPARSE_FACTOR * 16.0 * len(places)):
            names = [_put(part, arrays) for part in (places, flat[places])]
            return {"$sparse": names, "shape": list(value.shape)}
    return {"$array": _put(value, arrays)}


def _put(array: AnyArray, arrays: _Arrays) -> str:
    name = f"array{len(arrays)}"
    arrays[name] = array
    return name


def _unpacked(value: Any, arrays: _Arrays) -> Any:
    """Return the value that `_packed` was given."""
    if isinstance(value, list):
        return [_unpacked(item, arrays) for item in value]
    if not isinstance(value, dict):
        return value
    if "$array" in value:
        return arrays[f"{value['$array']}.npy"]
    if "$float" in value:
        return {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}[value["$float"]]
    if "$tuple" in value:
        return tuple(_unpacked(item, arrays) for item in value["$tuple"])
    if "$dict" in value:
        return {_unpacked(key, arrays): _unpacked(item, arrays) for key, item in value["$dict"]}
    if "$objects" in value:
        items = [_unpacked(item, arrays) for item in value["$objects"]]
        out = np.empty(len(items), dtype=object)
        out[:] = items
        return out.reshape(value["shape"])
    if "$sparse" in value:
        places, entries = (arrays[f"{name}.npy"] for name in value["$sparse"])
        size = math.prod(value["shape"])
        if not arrays.reserve(8.0 * size):
            raise DamagedError(
                f"its sparse arrays need more memory than a file of its size allows ({arrays.room:.3g} bytes are left, the "
                f"next has shape {value['shape']!r:.60}); it is damaged, or was made by another program"
            )
        fits = size >= 0 and places.ndim == 1 and len(places) == len(entries) and places.dtype.kind == "i"
        if not fits or np.any((places < 0) | (places >= size)):
            raise DamagedError("a sparse array does not fit its shape")
        flat = np.zeros(size)
        flat[places] = entries
        return flat.reshape(value["shape"])
    return {key: _unpacked(item, arrays) for key, item in value.items()}
