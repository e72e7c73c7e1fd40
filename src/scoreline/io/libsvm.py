"""LIBSVM (SVMlight) text: read by all threads, decimals converted exactly, errors with file, line and column."""

import bz2
import gzip
import itertools
import logging
import lzma
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from scoreline.runtime import parallel
from scoreline.runtime.checks import check_choice, check_number
from scoreline.runtime.memory import memory_limit
from scoreline.runtime.types import AnyArray, FloatArray

logger = logging.getLogger("scoreline")

OPENERS = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
CHUNK_BYTES = 1 << 20  # text per task
NEW_LINE = 10
PIECE_BYTES = 1 << 26  # compressed text per read
MAX_LINE_BYTES = 1 << 28  # limit for compressed text, where a few kilobytes can unpack to an endless line
MAX_COLUMNS = 2**33  # coefficients alone would take 64 GB
INT32_MAX = 2**31 - 1
EXPECTED = (  # (what was expected, how to repair it) for each error code of `libsvm_kernels.py`
    ("", ""),
    ("a label, a number like 1 or -1, followed by a space", "labels must be numbers"),
    ("index:value with a whole index, like 3:0.25, or qid:7 after the label", "separate entries by spaces"),
    ("a finite number after the colon, like 0.25 or 1e-3", "missing values must be left out"),
    ("an index below 2^60", "number the features from 0 or 1"),
    ("what was there a moment ago", "the file was changed while it was read: read it again when nothing writes to it"),
)


class Piece(NamedTuple):
    """The rows of a piece of text in CSR form, with the range of the indices as written and the number of qids."""

    labels: FloatArray
    indptr: AnyArray
    indices: AnyArray
    data: FloatArray
    lowest: int
    highest: int
    qids: int


def read_libsvm(path: Any, *, zero_based: bool | str = "auto", n_features: int | None = None) -> tuple[Any, FloatArray]:
    r"""Read a file of lines `label index:value ...`, plain or compressed (.gz, .bz2, .xz), by all threads.

    Plain text is memory-mapped and never copied, so reading needs little memory beyond the arrays that are returned.
    Compressed text is read piece by piece. Comments after # are skipped, and so are qid:... entries, with a log message.

    Parameters
    ----------
    path : path
        The file.
    zero_based : bool or "auto"
        Whether the first feature has index 0. With "auto" it does if index 0 occurs.
    n_features : int, optional
        Columns of X; by default as many as the largest index needs. For a test set, pass those of its training set.

    Returns
    -------
    tuple
        X, a `scipy.sparse.csr_array` of float64 (rows as in the file, entries in their order), and the labels as they are.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from scoreline.io import read_libsvm
    >>> path = pathlib.Path(tempfile.mkdtemp(), "tiny.svm")
    >>> _ = path.write_text("+1 1:0.5 3:2 # first\n-1 2:1e-3\n")
    >>> X, y = read_libsvm(path)
    >>> X.toarray().tolist(), y.tolist()
    ([[0.5, 0.0, 2.0], [0.0, 0.001, 0.0]], [1.0, -1.0])
    """
    check_indices(zero_based, n_features)
    path, pieces, room = Path(path), [], 0.5 * memory_limit()
    for piece in _pieces(path, sys.maxsize):
        pieces.append(piece)
        room -= sum(array.nbytes for array in piece[:4])
        if room < 0 and len(pieces) > 1:  # joining several pieces copies them
            raise MemoryError(f"{path} unpacks to more rows than half of the memory holds")
    _check_rows(path, sum(len(piece.labels) for piece in pieces), sum(piece.qids for piece in pieces))
    rows = pieces[0] if len(pieces) == 1 else _joined(pieces)
    first, width = index_columns(path, rows.lowest, rows.highest, zero_based, n_features)
    indices = rows.indices
    if first:
        indices -= 1
    return sp.csr_array((rows.data, indices, rows.indptr), shape=(len(rows.labels), width)), rows.labels


def as_integers(labels: AnyArray) -> AnyArray:
    """Return labels as int64 if all of them are integers: 1, not 1.0."""
    are_integers = len(labels) > 0 and np.abs(labels).max() < 2**53 and np.array_equal(labels, np.rint(labels))
    return labels.astype(np.int64) if are_integers else labels


def check_indices(zero_based: bool | str, n_features: int | None) -> None:
    """Raise unless the two options of readers are valid."""
    if not isinstance(zero_based, bool):
        check_choice("zero_based", zero_based, ("auto",))
    if n_features is not None:
        check_number("n_features", n_features, least=1, integer=True)


def libsvm_pieces(path: Path, n_features: int | None = None, zero_based: bool | str = "auto") -> Iterator[Piece]:
    """Yield a file in pieces of about PIECE_BYTES of text, with indices as written, to keep memory small.

    `lowest` and `highest` of a piece cover all rows up to its end.
    """
    rows, qids, lowest, highest = 0, 0, 2**62, -1
    for piece in _pieces(path, PIECE_BYTES):
        rows, qids = rows + len(piece.labels), qids + piece.qids
        lowest, highest = min(lowest, piece.lowest), max(highest, piece.highest)
        if highest >= (MAX_COLUMNS if n_features is None else n_features + 1):
            index_columns(path, min(lowest, 1), highest, zero_based, MAX_COLUMNS if n_features is None else n_features)
        yield piece._replace(lowest=lowest, highest=highest)
    _check_rows(path, rows, qids)
    index_columns(path, lowest, highest, zero_based, n_features)


def _check_rows(path: Path, rows: int, qids: int) -> None:
    """Raise if there are no rows; say how many qids were skipped."""
    if not rows:
        raise ValueError(f"{path} holds no rows, expected lines like '+1 1:0.5 3:2'")
    if qids:
        logger.info("%s: %d qid:... were skipped; ranking by groups is not supported", path, qids)


def index_columns(
    path: Path, lowest: int, highest: int, zero_based: bool | str, n_features: int | None
) -> tuple[int, int]:
    """Return the index of the first feature and the number of features."""
    first = int(lowest > 0) if zero_based == "auto" else int(not zero_based)
    if lowest < first:
        raise ValueError(
            f"{path} has a feature with index 0, which zero_based=False does not allow; pass zero_based='auto'"
        )
    needed = highest + 1 - first
    width = max(1, needed) if n_features is None else n_features
    if width < needed:
        raise ValueError(f"{path} has a feature with index {highest}, n_features={n_features} is too small for it")
    return first, width


def _pieces(path: Path, size: int) -> Iterator[Piece]:
    """Yield the rows of a file, read from about `size` bytes of text at a time."""
    for line, text in _texts(path):
        for start, stop in itertools.pairwise(_edges(text, 0, len(text), size)):
            yield _read_text(text, _edges(text, start, stop, CHUNK_BYTES), path, line)


def _texts(path: Path) -> Iterator[tuple[int, AnyArray]]:
    """Yield (number of the first line, text of complete lines): the memory-mapped file, or pieces of unpacked text."""
    opener: Any = OPENERS.get(path.suffix.lower())
    if opener is None:
        yield 1, np.memmap(path, dtype=np.uint8, mode="r") if path.stat().st_size else np.empty(0, dtype=np.uint8)
        return
    with opener(path, "rb") as file:
        rest, line, block = b"", 1, b" "
        while block:
            try:
                block = file.read(PIECE_BYTES)
            except (OSError, EOFError, lzma.LZMAError, zlib.error) as error:
                raise ValueError(
                    f"{path} cannot be unpacked ({error}); it is damaged or not what its name says"
                ) from error
            line_end = block.rfind(b"\n") + 1
            if block and not line_end:
                rest += block
                if len(rest) > MAX_LINE_BYTES:
                    raise ValueError(
                        f"{path}, line {line} is longer than {MAX_LINE_BYTES} bytes; unpack the file if that is meant"
                    )
                continue
            text = np.frombuffer(rest + block[:line_end], dtype=np.uint8)
            yield line, text
            line += int(np.count_nonzero(text == NEW_LINE))
            rest = block[line_end:]


def _read_text(text: AnyArray, edges: AnyArray, path: Path, line: int) -> Piece:
    """Read the chunks of complete lines between the edges; the text begins with line number `line` of the file."""
    from scoreline.io import libsvm_kernels as module  # which imports Numba

    chunks = len(edges) - 1
    counts = np.zeros((chunks, 2), dtype=np.int64)
    parallel.run_chunks(module.count_chunks, chunks, text, edges, counts)
    rows, entries = (int(k) for k in counts.sum(axis=0))
    starts = np.cumsum(counts, axis=0) - counts
    labels, data = np.empty(rows), np.empty(entries)
    indptr = np.zeros(rows + 1, dtype=np.int32 if entries <= INT32_MAX else np.int64)
    info, room = np.zeros((chunks, 6), dtype=np.int64), 64
    kind: Any = np.int32
    while True:
        indices, inexact = np.empty(entries, dtype=kind), np.empty((chunks, room, 3), dtype=np.int64)
        most = INT32_MAX if kind is np.int32 else 2**60 - 1
        arrays = (labels, indptr, indices, data, module.FIVE_POWERS, inexact, info, most)
        parallel.run_chunks(module.read_chunks, chunks, text, edges, starts, counts, *arrays)
        failed = np.flatnonzero(info[:, module.CODE])
        if len(failed) and info[failed[0], module.CODE] == module.WIDE_INDEX and kind is np.int32:
            kind = np.int64
            continue
        if len(failed):
            raise ValueError(_message(text, path, line, *map(int, info[failed[0], : module.PLACE + 1])))
        if info[:, module.INEXACTS].max(initial=0) <= room:
            break
        room = int(info[:, module.INEXACTS].max())
    for c in range(chunks):  # Python converts numbers that the kernel could not round: one in a thousand of 20 digits
        for target, begin, end in inexact[c, : info[c, module.INEXACTS]]:
            value = float(bytes(text[begin:end]))
            if not np.isfinite(value):
                code = module.BAD_VALUE if target >= 0 else module.BAD_LABEL
                raise ValueError(_message(text, path, line, code, int(begin)))
            if target >= 0:
                data[target] = value
            else:
                labels[-1 - target] = value
    low, high = info[:, module.LOWEST].min(initial=np.iinfo(np.int64).max), info[:, module.HIGHEST].max(initial=-1)
    return Piece(labels, indptr, indices, data, int(low), int(high), int(info[:, module.QIDS].sum()))


def _edges(text: AnyArray, start: int, stop: int, size: int) -> AnyArray:
    """Return the bounds of chunks of about `size` bytes, each at the end of a line."""
    edges = [start]
    while edges[-1] < stop:
        at = edges[-1] + size
        while at < stop:
            found = np.flatnonzero(text[at : min(at + 65536, stop)] == NEW_LINE)
            if len(found):
                at += int(found[0]) + 1
                break
            at += 65536
        edges.append(min(at, stop))
    return np.array(edges, dtype=np.int64)


def _message(text: AnyArray, path: Path, line: int, code: int, place: int) -> str:
    """Return a message with the place of an error, the text found there, and the expected text."""
    before = np.flatnonzero(text[:place] == NEW_LINE)
    begin = int(before[-1]) + 1 if len(before) else 0
    words = bytes(text[place : place + 40]).split(b"\n")[0].split()
    got = words[0].decode("utf-8", "replace") if words else "the end of the line"
    expected, repair = EXPECTED[code]
    return f"{path}, line {line + len(before)}, column {place - begin + 1}: got {got!r}, expected {expected}; {repair}"


def _joined(pieces: list[Piece]) -> Piece:
    """Concatenate pieces."""
    entries = sum(len(p.data) for p in pieces)
    indptr = np.zeros(sum(len(p.labels) for p in pieces) + 1, dtype=np.int32 if entries <= INT32_MAX else np.int64)
    row = entry = 0
    for p in pieces:
        indptr[row : row + len(p.labels) + 1] = p.indptr + indptr.dtype.type(entry)
        row, entry = row + len(p.labels), entry + len(p.data)
    labels, indices, data = (
        np.concatenate([getattr(p, name) for p in pieces]) for name in ("labels", "indices", "data")
    )
    low, high = min(p.lowest for p in pieces), max(p.highest for p in pieces)
    return Piece(labels, indptr, indices, data, low, high, sum(p.qids for p in pieces))
