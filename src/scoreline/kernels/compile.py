"""The one decorator that turns a Python function into a compiled kernel."""

import logging
from collections.abc import Callable
from typing import Any

import numba

logger = logging.getLogger("scoreline")

# Sums may be reordered inside one kernel call and a*b+c may be fused, nothing else: NaN, infinity and signed zero keep
# their meaning. The order chosen by the compiler is fixed, so the same chunk gives the same bits on every thread.
REORDER = {"reassoc", "contract"}


def kernel(function: Callable[..., Any] | None = None, *, reorder: bool = False) -> Callable[..., Any]:
    """Compile `function` with Numba: no GIL, NumPy's division rules, cached on disk where a disk allows it.

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
        return _forgiving(numba.njit(cache=True, **options)(function))
    except RuntimeError as error:  # no directory to cache in: compile in each process instead
        logger.debug("kernel %s is not cached: %s", function.__name__, error)
        return numba.njit(**options)(function)


def _forgiving(compiled: Any) -> Any:
    """Let a cache that cannot be written (full disk, directory turned read-only) cost a compilation, not the call."""
    cache = getattr(compiled, "_cache", None)  # not public in Numba: where it changes, writing errors show again
    save = getattr(cache, "save_overload", None)
    if save is None:
        return compiled

    def save_if_possible(*args: Any) -> None:
        try:
            save(*args)
        except OSError as error:
            logger.debug("kernel %s is not cached: %s", compiled.__name__, error)

    cache.save_overload = save_if_possible  # type: ignore[union-attr]
    return compiled
