"""Atomic writing: a file appears complete or not at all."""

import errno
import glob
import itertools
import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, BinaryIO

STALE_SECONDS = 3600.0
PART_NUMBERS = itertools.count()  # distinct names for the writers of one process


def check_plain(path: Path) -> None:
    """Raise unless the path is a regular file or a link to one: opening a pipe would wait for ever."""
    if not stat.S_ISREG(path.stat().st_mode):
        raise ValueError(f"{path.name} is not a regular file")


@contextmanager
def atomic_file(path: Any) -> Iterator[BinaryIO]:
    """Open a temporary file that replaces `path` once it is completely on the disk.

    If the process ends before that, even by kill -9 or because the disk is full, the old content of `path` is unchanged.
    An exception removes the temporary file. A symbolic link is followed, and the file that it points to is replaced. A
    write-protected file is an error, even if its folder would allow the replacement. A replacement gets the mode of the old
    file.
    """
    path = Path(os.path.realpath(path))
    if path.exists() and not os.access(path, os.W_OK):
        raise PermissionError(errno.EACCES, f"cannot write {path}: it is write-protected; choose another path")
    if path.exists() and not path.is_file() and not path.is_dir():  # /dev/null or a pipe cannot be replaced
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
        with suppress(OSError):  # the same users may read the new file
            part.chmod(path.stat().st_mode & 0o777)
        part.replace(path)
    except BaseException:
        with suppress(OSError):
            part.unlink()
        raise
    sync_folder(path.parent)


def _new_part(path: Path) -> tuple[Path, BinaryIO]:
    """Create a temporary file next to `path` and return it with its path; an existing file is never opened."""
    while True:
        part = path.with_name(f".{path.name}.{os.getpid()}.{next(PART_NUMBERS)}.part")
        try:
            return part, part.open("xb")
        except FileExistsError:  # an earlier process had the same number
            continue


def _remove_stale(path: Path) -> None:
    """Remove the temporary files of processes that were killed an hour ago or earlier."""
    if os.name != "posix":  # on Windows signal 0 would end the process
        return
    for part in path.parent.glob(f".{glob.escape(path.name)}.*.part"):
        with suppress(OSError, ValueError, IndexError):
            if time.time() - part.stat().st_mtime > STALE_SECONDS:
                try:
                    os.kill(int(part.name.split(".")[-3]), 0)
                except ProcessLookupError:
                    part.unlink()


def lock_file(file: IO[Any]) -> None:
    """Lock an open file for this process until it is closed; raise BlockingIOError if another process has locked it."""
    try:
        import fcntl
    except ImportError:  # Windows
        import msvcrt

        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined, unused-ignore]  # Windows only
        except OSError as error:
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN)) from error
    else:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def sync_folder(folder: Path) -> None:
    """Flush the names in a folder to the disk, where the system supports it."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
