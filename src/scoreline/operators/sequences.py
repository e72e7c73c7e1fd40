"""Sequences of letters of a fixed alphabet, one byte each: what `StringOperator` computes its features from."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from scoreline.operators.block_sums import read_only
from scoreline.runtime.array_types import is_dask
from scoreline.runtime.messages import warn_user
from scoreline.runtime.types import AnyArray, BoundsArray

UNKNOWN = np.uint8(255)  # code of a letter outside the alphabet
MOST_LETTERS = 255
BLOCK_LETTERS = 1 << 22  # that are coded at a time
WORDS = "an array of bytes or text, or a list of str"


class Sequences:
    """Rows of letters, coded 0, 1, ... in the order of the alphabet; a letter outside of it is UNKNOWN.

    Parameters
    ----------
    rows : array of bytes ("S") or text ("U"), list of str or bytes, or a column of a frame
        One sequence per row. Memory beyond it is a byte per letter, and 8 bytes per row where lengths differ.
    alphabet : str
        The letters, all different and in the order of their codes. Case matters.

    Attributes
    ----------
    letters : ndarray of uint8
        The codes of all rows, one row after another.
    starts : ndarray of shape (n + 1,), or None
        Where each row begins, and the end of the last; None where all rows have the same length.
    length : int or None
        The length of every row, None where they differ.
    """

    def __init__(self, rows: Any, alphabet: str = "ACGT"):
        check_alphabet(alphabet)
        self.alphabet = alphabet
        given = _checked(rows)
        lengths = np.concatenate([[0], *(lengths for lengths, _ in _blocks(given, None))]).astype(np.uint64)
        starts = np.cumsum(lengths, dtype=np.uint64)
        letters = np.empty(int(starts[-1]), dtype=np.uint8)
        filled = 0
        for _, codes in _blocks(given, _table(alphabet)):
            letters[filled : filled + len(codes)] = codes
            filled += len(codes)
        if len(letters) and letters.min() == UNKNOWN:
            first = next(row for row in given if len(row))
            warn_user(
                f"No letter of the sequences is in the alphabet {alphabet!r}: the first sequence begins with "
                f"{first[:10]!r}, so all features are 0. Pass alphabet=..., or change the case of the letters."
            )
        same = len(given) > 0 and bool((lengths[1:] == lengths[1]).all())
        self._take(letters, None if same else starts, int(lengths[1]) if same else None, len(given))

    def _take(self, letters: AnyArray, starts: BoundsArray | None, length: int | None, n: int) -> None:
        self.letters, self.starts, self.length = read_only(letters), starts, length
        self._n = n

    @classmethod
    def coded(cls, letters: AnyArray, starts: BoundsArray | None, length: int | None, alphabet: str, n: int) -> Any:
        """Return sequences whose letters are coded already."""
        own = object.__new__(cls)
        own.alphabet = alphabet
        own._take(letters, starts, length, n)
        return own

    def __len__(self) -> int:
        """Return the number of rows."""
        return self._n

    @property
    def n_letters(self) -> int:
        """Letters of all rows together."""
        if self.length is not None:
            return self._n * self.length
        return int(self.starts[-1] - self.starts[0])  # type: ignore[index]  # there are starts where lengths differ

    def letters_for(self, lines: BoundsArray | None) -> AnyArray:
        """Return the letters as they are best read for these rows, in any order; None means all rows."""
        return self.letters

    def __sizeof__(self) -> int:
        """Return the bytes of letters and starts."""
        return object.__sizeof__(self) + self.letters.nbytes + (0 if self.starts is None else self.starts.nbytes)

    def __repr__(self) -> str:
        lengths = "different lengths" if self.length is None else f"length {self.length}"
        return f"{type(self).__name__}({len(self)} rows of {lengths}, alphabet={self.alphabet!r})"


def check_alphabet(alphabet: Any) -> None:
    """Raise unless the alphabet is a text of 2 to 255 different characters."""
    if not isinstance(alphabet, str) or not 2 <= len(alphabet) <= MOST_LETTERS or len(set(alphabet)) < len(alphabet):
        raise ValueError(f"alphabet={alphabet!r:.100} must be a text of 2 to {MOST_LETTERS} different letters")
    if "\0" in alphabet:
        raise ValueError(f"alphabet={alphabet!r:.100} holds the zero character, with which NumPy fills up short rows")


def _table(alphabet: str) -> AnyArray:
    """Return the code of every character up to the largest of the alphabet, and UNKNOWN for one more."""
    table = np.full(max(map(ord, alphabet)) + 2, UNKNOWN)
    table[[ord(letter) for letter in alphabet]] = np.arange(len(alphabet), dtype=np.uint8)
    return table


def _checked(rows: Any) -> Any:
    """Return rows as an array of bytes or text, or as a list of str or bytes."""
    if isinstance(rows, (str, bytes)):
        raise ValueError(f"sequences is one {type(rows).__name__}, expected {WORDS} with one sequence per row")
    if is_dask(rows):
        raise ValueError("sequences live in Dask; call StringOperator.from_dask(sequences, ...) instead")
    if not isinstance(rows, (list, tuple)):
        rows = np.asarray(rows)
        if rows.ndim != 1:
            raise ValueError(f"sequences have {rows.ndim} dimensions, expected {WORDS} with one sequence per row")
    if not len(rows):
        raise ValueError("there are 0 sequences while a minimum of 1 is required")
    if isinstance(rows, np.ndarray) and rows.dtype.kind in "SU":
        return np.ascontiguousarray(rows)
    if isinstance(rows, np.ndarray) and rows.dtype.kind not in "OT":
        raise ValueError(f"sequences have dtype {rows.dtype}, expected {WORDS}")
    listed = rows.tolist() if isinstance(rows, np.ndarray) else rows
    kind = bytes if isinstance(listed[0], bytes) else str
    for k, row in enumerate(listed):
        if not isinstance(row, kind):
            raise ValueError(
                f"sequence {k} is {row!r:.60} ({type(row).__name__}), expected {kind.__name__} as in the first row. "
                "Drop rows that are missing, or fill them with ''."
            )
    return listed


def _blocks(rows: Any, table: AnyArray | None) -> Iterator[tuple[AnyArray, AnyArray]]:
    """Yield the lengths of some rows and, with a table, their codes."""
    width = rows.dtype.itemsize if isinstance(rows, np.ndarray) else max(1, sum(map(len, rows)) // len(rows))
    step = max(1, BLOCK_LETTERS // max(1, width))
    for start in range(0, len(rows), step):
        block = rows[start : start + step]
        if isinstance(rows, np.ndarray):
            kind = np.uint8 if rows.dtype.kind == "S" else rows.dtype.byteorder.replace("|", "=") + "u4"
            characters = block.view(kind).reshape(len(block), -1)
            if characters.shape[1] == 0:
                yield np.zeros(len(block), dtype=np.uint64), np.empty(0, dtype=np.uint8)
                continue
            known = characters != 0
            lengths = np.where(known.any(axis=1), characters.shape[1] - known[:, ::-1].argmax(axis=1), 0)
            if lengths.min() < characters.shape[1]:
                characters = characters[np.arange(characters.shape[1]) < lengths[:, None]]
        else:
            lengths = np.fromiter(map(len, block), dtype=np.uint64, count=len(block))
            if table is None:
                characters = np.empty(0, dtype=np.uint8)
            elif isinstance(block[0], bytes):
                characters = np.frombuffer(b"".join(block), dtype=np.uint8)
            else:
                characters = np.frombuffer("".join(block).encode("utf-32-le", "surrogatepass"), dtype="<u4")
        codes = np.empty(0, np.uint8) if table is None else table[np.minimum(characters, len(table) - 1)].ravel()
        yield lengths, codes
