"""Messages go through the logger "scoreline"; verbose sets its level while a call lasts."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

logger = logging.getLogger("scoreline")


@contextmanager
def verbosity(verbose: int) -> Iterator[None]:
    """Show messages on standard error: 1 for what was done, 2 and more for every iteration, 0 for the user's settings."""
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
