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
        return numba.njit(cache=True, **options)(function)
    except RuntimeError as error:  # no directory to cache in: compile in each process instead
        logger.debug("kernel %s is not cached: %s", function.__name__, error)
        return numba.njit(**options)(function)
