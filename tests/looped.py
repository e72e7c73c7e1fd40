"""`each`: parametrize a test without a node per case. Collecting a node takes longer than most cases run."""

import functools
import inspect

import pytest


def each(names, cases):
    """Return a decorator that runs a test for every case within one node; a failure names its case.

    It is called like `pytest.mark.parametrize`. If `cases` is a dictionary, its keys name the cases. Fixtures are set up
    once for all cases.
    """
    names = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    labels, values = (list(cases), list(cases.values())) if isinstance(cases, dict) else (None, list(cases))
    rows = [(value,) if len(names) == 1 else tuple(value) for value in values]

    def decorate(test):
        @functools.wraps(test)
        def looped(*args, **kwargs):
            for index, row in enumerate(rows):
                given = dict(zip(names, row, strict=True))
                try:
                    test(*args, **given, **kwargs)
                except (Exception, pytest.fail.Exception) as error:
                    label = ", ".join(f"{k}={v!r}" for k, v in given.items()) if labels is None else labels[index]
                    error.add_note(f"The case: {label}")
                    raise

        signature = inspect.signature(test)
        kept = [parameter for name, parameter in signature.parameters.items() if name not in names]
        looped.__signature__ = signature.replace(parameters=kept)
        return looped

    return decorate
