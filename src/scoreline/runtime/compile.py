"""The one decorator that turns a Python function into a compiled kernel."""

import hashlib
import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

try:
    import numba
except ValueError as error:  # Numba reads NUMBA_NUM_THREADS when it is imported
    raise ValueError(
        f"Numba could not be imported: {error} The environment variable NUMBA_NUM_THREADS is "
        f"{os.environ.get('NUMBA_NUM_THREADS')!r:.100}, expected a positive whole number; correct it or unset it."
    ) from error
from numba.core.compiler_lock import global_compiler_lock

logger = logging.getLogger("scoreline")

# The compiler may reorder sums inside one kernel call and fuse a*b+c, but NaN, infinity and signed zero keep their meaning.
# It fixes the order at compile time, so the same chunk gives the same bits on every thread.
REORDER = {"reassoc", "contract"}


def kernel(function: Callable[..., Any] | None = None, *, reorder: bool = False) -> Any:
    """Compile `function` with Numba: without the GIL, with NumPy's rules for division, cached on disk if possible.

    Parameters
    ----------
    function : callable
        Serial function over a range of chunks; its last two arguments are the first and one past the last chunk.
    reorder : bool
        Allow the compiler to reorder sums (needed to vectorise dot products).

    Returns
    -------
    callable
        The compiled function. Compilation happens at the first call with each combination of array types.
    """
    if function is None:
        return lambda f: kernel(f, reorder=reorder)
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": REORDER if reorder else False}
    try:
        return _guarded(numba.njit(cache=True, **options)(function))
    except RuntimeError as error:  # without a directory for the cache each process compiles again
        logger.debug("kernel %s is not cached: %s", function.__name__, error)
        return numba.njit(**options)(function)


def _guarded(compiled: Any) -> Any:
    """Make a kernel survive a cache that cannot be read or written, or that was written by several processes at once."""
    # Numba's cache is not public. In a version where it has changed, the kernel is returned as it is.
    cache = getattr(compiled, "_cache", None)
    files, load, save = (getattr(cache, name, None) for name in ("_cache_file", "load_overload", "save_overload"))
    if files is None or load is None or save is None:
        return compiled

    def load_if_possible(*args: Any) -> Any:
        try:
            return load(*args)
        except Exception as error:  # a truncated file or one of another version can raise any error
            logger.debug("kernel %s: its cache is not used: %s", compiled.__name__, error)
            return None

    def save_if_possible(*args: Any) -> None:
        try:
            save(*args)
        except OSError as error:
            logger.debug("kernel %s is not cached: %s", compiled.__name__, error)

    cache.load_overload, cache.save_overload = load_if_possible, save_if_possible  # type: ignore[union-attr]  # checked above
    needed = ("_index_path", "_source_stamp", "_data_name", "_data_path", "_load_index", "_save_index", "_save_data")
    if all(hasattr(files, name) for name in needed):
        files.save = lambda key, data: _save(files, key, data)
    return compiled


def _save(files: Any, key: Any, data: Any) -> None:
    """Write code to a file whose name is a hash of its signature, then add that name to the index."""
    # Numba numbers the files and writes the index first. Two processes that fill the same cache could then use the same
    # number for array types that differ, and one would run the code of the other. So could a process that was killed in
    # between.
    number = int.from_bytes(hashlib.sha256(repr((files._source_stamp, key)).encode()).digest()[:7], "big")
    name = files._data_name(number)
    files._save_data(name, data)
    try:
        known = dict(files._load_index())
    except Exception as error:  # a damaged index is replaced
        logger.debug("the index %s is not used: %s", files._index_path, error)
        known = {}
    if not known:  # files of an earlier version are useless, and a process that misses one compiles again
        index = Path(files._index_path)
        for old in index.parent.glob(f"{index.stem}.*.nbc"):
            if old.name != name:
                old.unlink(missing_ok=True)
    known[key] = name
    files._save_index(known)


if hasattr(os, "register_at_fork"):
    # A child that is forked while another thread compiles would wait for ever for that thread, which it does not have.
    os.register_at_fork(
        before=global_compiler_lock.acquire,
        after_in_parent=global_compiler_lock.release,
        after_in_child=global_compiler_lock.release,
    )
