"""Messages go to the logger "scoreline"; verbose sets its level during a call."""

import logging
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

logger = logging.getLogger("scoreline")


@contextmanager
def verbosity(verbose: int) -> Iterator[None]:
    """Show messages on standard error: 1 for steps, 2 and more for every iteration, 0 for the user's own settings."""
    if not verbose:
        yield
        return
    level = logger.level
    logger.setLevel(logging.INFO if verbose == 1 else logging.DEBUG)
    handler = None
    if not logger.hasHandlers():
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("[scoreline] %(message)s"))
        logger.addHandler(handler)
    try:
        yield
    finally:
        logger.setLevel(level)
        if handler is not None:
            logger.removeHandler(handler)


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn with the line of the user's code that called scoreline."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "scoreline":
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level + 1)
