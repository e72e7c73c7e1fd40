"""What a fit will take beyond X, told before it begins: a refusal is better than a process that the system kills."""

import logging
import warnings
from typing import Any

from scoreline.runtime.memory import ADVICE, AdvisedMemoryError, in_words, memory_left, memory_limit

logger = logging.getLogger("scoreline")

SMALL = 1 << 26  # bytes below which nobody need look at what the machine has


def check_memory(solver: Any, operator: Any) -> None:
    """Tell what a fit takes beyond X; raise if this process can never have it, warn if it is not there now.

    Parameters
    ----------
    solver : Method
        Knows what it takes (`Method.working_bytes`).
    operator : Operator
        The rows; those of clusters and devices have limits of their own, which are not looked at here.
    """
    if operator.scores != "host":
        return
    n, p = operator.shape
    needed = solver.working_bytes(n, p)
    if needed < SMALL:
        return
    limit, left = memory_limit(), memory_left()
    what = f"a fit by {solver.name!r} on {n:,} rows and {p:,} features takes about {in_words(needed)} beyond X"
    logger.info("%s, %s are left", what, in_words(left))
    if needed > limit:
        raise AdvisedMemoryError(f"{what}, and this process can have {in_words(limit)} at most. {ADVICE}")
    if needed > left:
        warnings.warn(
            f"{what}, and {in_words(left)} are left: it may fail, or be killed. {ADVICE}", UserWarning, stacklevel=4
        )
