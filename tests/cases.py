"""Cases of one test: a loop over them costs far less than a test for each."""

from contextlib import contextmanager

import pytest


@contextmanager
def case(name):
    """Name the case in whatever fails within the block."""
    try:
        yield
    except (Exception, pytest.fail.Exception) as error:
        error.add_note(f"in the case {name!r}")
        raise
