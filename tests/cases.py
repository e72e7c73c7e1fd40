"""Cases of one test: a loop over them costs far less than a test for each."""

import shutil
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


def copies(folder, names):
    """Yield each name of a case with a copy of the folder, which may be damaged."""
    for number, name in enumerate(names):
        yield name, shutil.copytree(folder, folder.with_name(f"{folder.name} {number}"))
