"""Matrices that stay on disk: arrays are mapped into memory and read by the kernels of those that lie in it."""

import mmap
import os
import weakref
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from scoreline.operators.base import Operator
from scoreline.operators.block_sums import CsrRows, read_only
from scoreline.operators.codes import CodesOperator, Group
from scoreline.operators.dense import DenseOperator
from scoreline.operators.sequences import Sequences
from scoreline.operators.sparse import CompressedOperator
from scoreline.operators.statistics import ColumnStatistics
from scoreline.runtime.npy import map_array
from scoreline.runtime.types import AnyArray, Block, BoundsArray, FloatArray, Scores

# Share of the rows up to which single ones are read without those after them: where page reads at random (100 MB/s) take as
# long as reading all rows (1.4 GB/s), for rows of half a page.
SCATTERED_SHARE = 1 / 32
REPEATED_LIST_BYTES = 1 << 28  # of rows that are asked for again and again


def advised_array(path: Path, advice: str = "MADV_SEQUENTIAL") -> AnyArray:
    """Return the array of an .npy file, read from the disk when its entries are; the system is told how they will be read.

    Products walk each part of an array from its beginning to its end, so what comes next may be read already and what is past
    may go: the default. Not all systems know the advice.
    """
    array = map_array(path)
    with suppress(AttributeError, ValueError, OSError):
        array.base.madvise(getattr(mmap, advice))  # type: ignore[union-attr]  # no map: suppressed
    return np.asarray(array)


class OpenFiles:
    """The files of an operator, held open to see whether they are still what they were.

    Kernels follow indices without checking them, which was done when the files were opened, and the end of a file that became
    shorter ends the process. The check costs microseconds per pass and does not see changes during a pass. Replacing the
    folder is safe: existing mappings stay valid.
    """

    def __init__(self, paths: list[Path]):
        self.paths, self.handles = paths, [os.open(path, os.O_RDONLY) for path in paths]
        for handle in self.handles:
            weakref.finalize(self, os.close, handle)
        self.known = [self._size_and_time(handle) for handle in self.handles]

    def check(self) -> None:
        """Raise if one has changed."""
        for path, handle, known in zip(self.paths, self.handles, self.known, strict=True):
            if self._size_and_time(handle) != known:
                raise ValueError(
                    f"{path} was changed while it was open; open the folder again when nothing writes to it, and convert the "
                    "data again if they do not open"
                )

    @staticmethod
    def _size_and_time(handle: int) -> tuple[int, int]:
        found = os.fstat(handle)
        return found.st_size, found.st_mtime_ns


class FewRows(Operator):
    """Reads lists of rows, which are scattered over the file, as disks like it.

    Short lists go through `scattered`, the same operator over a second mapping of the same files, where the system is told not
    to read on; both share the pages in memory. A list that comes again (a sample that is trained on) is copied into memory if
    it takes at most REPEATED_LIST_BYTES, and let go with the list.
    """

    scattered: Any

    def __init__(self, files: OpenFiles, *arguments: Any):
        self._files, self._passes = files, 0.0
        super().__init__(*arguments)
        self._last_list: dict[str, Any] = {}

    @property
    def n_passes(self) -> float:
        """Passes over X so far. All that reads rows counts them first, so this is where files are looked at."""
        return self._passes

    @n_passes.setter
    def n_passes(self, passes: float) -> None:
        self._files.check()
        self._passes = passes

    def __copy__(self) -> Any:
        """Return the same files, neither opened nor looked through again: what a fit makes of an operator of the user's."""
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__, _last_list={})
        return twin

    def __sizeof__(self) -> int:
        """Return the bytes of the object: its matrix lies on a disk, and another process opens it there."""
        return object.__sizeof__(self)

    def _copied(self, lines: BoundsArray) -> Operator:
        """Return an operator of the listed rows in memory, with the same bits in its products."""
        raise NotImplementedError

    def _read(self, product: str, vector: Any, lines: BoundsArray) -> Any:
        self._files.check()  # an operator of some rows comes here without counting a pass
        again = self._last_list  # one read: another thread may come with another list
        if again.get("lines", lambda: None)() is not lines:
            again.clear()  # its copy goes now, not when Python looks for cycles
            again = {}
            again["lines"] = weakref.ref(lines, lambda _: again.clear())
            self._last_list = again
        elif len(lines) * self.row_bytes <= REPEATED_LIST_BYTES:
            copy = again.get("copy")  # held here: another thread may clear what it comes from at any time
            if copy is None:
                copy = again["copy"] = self._copied(lines), np.arange(len(lines), dtype=np.uint64)
            return getattr(copy[0], product)(vector, copy[1])
        return getattr(self._reader(lines), product)(vector, lines)

    def _reader(self, lines: BoundsArray) -> Any:
        return self.scattered if len(lines) <= SCATTERED_SHARE * self.shape[0] else super()

    def _matvec_rows(self, w: FloatArray, lines: BoundsArray) -> Scores:
        return self._read("_matvec_rows", w, lines)

    def _rmatvec_rows(self, u: Scores, lines: BoundsArray) -> FloatArray:
        return np.asarray(self._read("_rmatvec_rows", u, lines))

    def _block(self, start: int, stop: int) -> Block:
        self._files.check()
        return super()._block(start, stop)

    def _column_statistics(self, weight: Scores | None) -> ColumnStatistics:
        self._files.check()
        return super()._column_statistics(weight)

    def inspect(self) -> tuple[int, int] | None:
        self._files.check()
        return super().inspect()

    def _listed(self, lines: BoundsArray) -> Block:
        self._files.check()
        return self._reader(lines)._listed(lines)


class MappedSequences(Sequences):
    """The letters of a folder, or of some consecutive rows of it."""

    def __init__(self, folder: Path, alphabet: str, length: int | None, start: int, stop: int):
        self.alphabet, self.folder, self.span = alphabet, folder, (start, stop)
        names = ["letters"] if length is not None else ["letters", "starts"]
        self._files = OpenFiles([folder / f"{name}.npy" for name in names])
        own, starts = slice(None), None
        if length is None:
            starts = np.array(advised_array(folder / "starts.npy")[start : stop + 1])
        else:
            own = slice(start * length, stop * length)
        self._take(advised_array(folder / "letters.npy")[own], starts, length, stop - start)
        self._scattered = read_only(advised_array(folder / "letters.npy", "MADV_RANDOM")[own])
        if starts is not None and (np.any(starts[1:] < starts[:-1]) or starts[-1] > len(self.letters)):
            raise ValueError("starts.npy must rise, up to the number of letters")
        if length is not None and len(self.letters) != self.n_letters:
            raise ValueError(f"letters.npy has {len(self.letters)} letters, expected {self.n_letters}")

    def letters_for(self, lines: BoundsArray | None) -> AnyArray:
        """Return the letters, through a mapping that does not read on where the rows are few and not a block."""
        self._files.check()
        if lines is None or len(lines) > SCATTERED_SHARE * len(self):
            return self.letters
        is_block = len(lines) > 0 and int(lines[-1]) - int(lines[0]) == len(lines) - 1
        return self.letters if is_block else self._scattered

    def __sizeof__(self) -> int:
        """Return the bytes of the object: its letters lie on a disk, and another process opens them there."""
        return object.__sizeof__(self)

    def __reduce__(self) -> Any:
        return type(self), (self.folder, self.alphabet, self.length, *self.span)


class MappedDense(FewRows, DenseOperator):
    """The array X.npy of a folder, or some consecutive rows of it."""

    def __init__(self, folder: Path, start: int = 0, stop: int | None = None):
        files = OpenFiles([folder / "X.npy"])
        super().__init__(files, advised_array(folder / "X.npy")[start:stop])
        self.folder, self.span = folder, (start, stop)
        self.scattered = DenseOperator(advised_array(folder / "X.npy", "MADV_RANDOM")[start:stop])

    def _copied(self, lines: BoundsArray) -> Operator:
        return DenseOperator(self._listed(lines))

    def __reduce__(self) -> Any:  # other processes open the files themselves
        return type(self), (self.folder, *self.span), {"largest": self.largest}


class MappedCodes(CodesOperator):
    """The codes of a folder, or of some consecutive rows of it: a byte per value, one line per column."""

    def __init__(self, folder: Path, groups: Sequence[Group], start: int = 0, stop: int | None = None):
        self._files = OpenFiles([folder / "codes.npy"])
        codes, self._passes = advised_array(folder / "codes.npy"), 0.0
        lines = None if start == 0 and stop is None else np.arange(start, stop or codes.shape[1], dtype=np.uint64)
        for column, (line, group) in enumerate(zip(codes, groups, strict=False)):
            if int(line.max(initial=0)) >= len(group.basis):  # kernels follow codes without checking them
                raise ValueError(f"column {column} has the code {int(line.max())}, and {len(group.basis)} bins")
        super().__init__(codes, groups, lines)

    @property
    def n_passes(self) -> float:
        """Passes over X so far. All that reads rows counts them first, so this is where the file is looked at."""
        return self._passes

    @n_passes.setter
    def n_passes(self, passes: float) -> None:
        self._files.check()
        self._passes = passes

    def __sizeof__(self) -> int:
        """Return the bytes of the object: its codes lie on a disk."""
        return object.__sizeof__(self)


class MappedCsr(FewRows, CompressedOperator):
    """The arrays data.npy, indices.npy and indptr.npy of a folder; rows are sorted and name no column twice.

    Or some consecutive rows of them. Opening it reads their indices once: those out of range would lead kernels out of memory.
    """

    def __init__(self, folder: Path, shape: tuple[int, int], start: int = 0, stop: int | None = None):
        self.folder, self.span = folder, (start, stop)
        files = OpenFiles([folder / f"{name}.npy" for name in ("data", "indices", "indptr")])
        starts = advised_array(folder / "indptr.npy")
        own = slice(None)
        if start > 0 or stop is not None:
            starts = np.array(starts[start : None if stop is None else stop + 1])
            own = slice(int(starts[0]), int(starts[-1]))
            starts -= starts[0]
        data, indices = (advised_array(folder / f"{name}.npy")[own] for name in ("data", "indices"))
        super().__init__(files, CsrRows(data, indices, starts, shape))
        data, indices = (advised_array(folder / f"{name}.npy", "MADV_RANDOM")[own] for name in ("data", "indices"))
        # Not a new operator: the indices have been looked through.
        scattered = object.__new__(CompressedOperator)
        scattered.__dict__.update(self.__dict__, n_passes=0.0)
        scattered._X = CsrRows(data, indices, starts, shape)
        scattered._data, scattered._indices = read_only(data), read_only(indices.view(self._indices.dtype))
        self.scattered = scattered

    def _copied(self, lines: BoundsArray) -> Operator:
        copied = CompressedOperator(self._listed(lines))
        copied._line_work = self._line_work  # which decides where chunks end, and so about bits
        return copied

    def __reduce__(self) -> Any:
        return type(self), (self.folder, self.shape, *self.span), {"largest": self.largest}
