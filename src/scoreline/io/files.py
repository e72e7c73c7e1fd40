"""Files that are there as a whole or not at all, and those that can be read without waiting."""

import errno
import glob
import itertools
import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

STALE_SECONDS = 3600.0
PART_NUMBERS = itertools.count()  # so that no two writers of a process meet


def check_plain(path: Path) -> None:
    """Raise unless a file is one: opening a pipe would wait for ever. Links to files are followed, as everywhere."""
    if not stat.S_ISREG(path.stat().st_mode):
        raise ValueError(f"{path.name} is no plain file")


@contextmanager
def whole_file(path: Any) -> Iterator[BinaryIO]:
    """Open a file to write that takes the place of `path` only when all of it is on the disk.

    Whatever ends the process before, kill -9 and a full disk included, leaves what was at `path` as it was; an exception also
    removes the part that was written. A symbolic link at `path` is followed and stays one: the file that it leads to is
    replaced. A file that may not be written to is not replaced either, though its folder would allow it. A new file has the
    mode that the umask gives, a replacement that of the old one.
    """
    path = Path(os.path.realpath(path))  # a link stays one
    if path.exists() and not os.access(path, os.W_OK):
        raise PermissionError(errno.EACCES, f"cannot write {path}: it is write-protected; choose another path")
    if path.exists() and not path.is_file() and not path.is_dir():  # /dev/null, a pipe: no name to be replaced
        with path.open("wb") as file:
            yield file
        return
    _remove_stale(path)
    try:
        part, file = _new_part(path)
    except OSError as error:
        raise OSError(
            error.errno, f"cannot write {path}: {error.strerror}; choose a folder that can be written to"
        ) from error
    try:
        with file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        with suppress(OSError):  # who may read the old one may read the new one
            part.chmod(path.stat().st_mode & 0o777)
        part.replace(path)
    except BaseException:
        with suppress(OSError):
            part.unlink()
        raise
    sync_folder(path.parent)


def _new_part(path: Path) -> tuple[Path, BinaryIO]:
    """Return the path of a file that was not there, and that file: nobody's link is followed, nobody's file written over."""
    while True:
        part = path.with_name(f".{path.name}.{os.getpid()}.{next(PART_NUMBERS)}.part")
        try:
            return part, part.open("xb")
        except FileExistsError:  # of a process that had this number before, or put there by somebody
            continue


def _remove_stale(path: Path) -> None:
    """Remove parts that processes which were killed an hour ago or more have left."""
    if os.name != "posix":  # elsewhere signal 0 is not a question
        return
    for part in path.parent.glob(f".{glob.escape(path.name)}.*.part"):
        with suppress(OSError, ValueError, IndexError):
            if time.time() - part.stat().st_mtime > STALE_SECONDS:
                try:
                    os.kill(int(part.name.split(".")[-3]), 0)
                except ProcessLookupError:
                    part.unlink()


def sync_folder(folder: Path) -> None:
    """Bring the names in a folder to the disk, where the system allows that."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
