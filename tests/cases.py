"""Many cases in one test: collecting thousands of nodes takes longer than running them."""

import functools
import inspect
import itertools
import shutil
from contextlib import contextmanager

import pytest

from tiers import QUICK_SHARE, TIER, tiered

# pytest.raises and pytest.warns fail by a BaseException; a loop within a loop raises a group.
FAILURES = (Exception, pytest.fail.Exception, BaseExceptionGroup)


def for_each(names, cases, labels=None):
    """Return a decorator that runs a test once per case and reports every case that failed, by its values.

    The arguments are those of `pytest.mark.parametrize`: names ("solver, measure" or a tuple of names) and the cases, one
    value or one tuple each. `labels` name the cases where their values do not. Decorators may be stacked. Each case has an
    empty `tmp_path`, an empty `caplog` and a `monkeypatch` of its own.
    """
    names = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    labels = None if labels is None else list(labels)
    cases = [tuple(values) if len(names) > 1 else (values,) for values in cases]
    assert cases, f"there is no case of {', '.join(names)}"

    def decorate(test):
        @functools.wraps(test)
        def run(*args, **fixtures):
            failures = []
            for number, values in enumerate(cases):
                own = dict(zip(names, values, strict=True))
                label = labels[number] if labels else ", ".join(f"{name}={shown(value)}" for name, value in own.items())
                try:
                    with case(label):
                        _run(test, args, dict(fixtures), own, number)
                except FAILURES as failure:
                    failures.append(failure)
            if len(failures) == 1:
                raise failures[0]
            if failures:
                raise BaseExceptionGroup(f"{len(failures)} of {len(cases)} cases failed", failures)

        signature = inspect.signature(test)
        fixtures = [parameter for name, parameter in signature.parameters.items() if name not in names]
        run.__signature__ = signature.replace(parameters=fixtures)
        return run

    return decorate


def _run(test, args, fixtures, own, number):
    if "tmp_path" in fixtures:
        fixtures["tmp_path"] /= f"case{number}"
        fixtures["tmp_path"].mkdir()
    if "caplog" in fixtures:
        fixtures["caplog"].clear()
    if "monkeypatch" in fixtures:
        with fixtures["monkeypatch"].context() as fixtures["monkeypatch"]:
            test(*args, **fixtures, **own)
    else:
        test(*args, **fixtures, **own)


@contextmanager
def case(name):
    """Name the case in whatever fails within the block."""
    try:
        yield
    except FAILURES as error:
        error.add_note(f"case: {name}")
        raise


def copies(folder, names):
    """Yield each name of a case with a copy of the folder, which may be damaged."""
    for number, name in enumerate(names):
        yield name, shutil.copytree(folder, folder.with_name(f"{folder.name} {number}"))


def shown(value):
    """Return a text that tells a value of a case from the others."""
    if type(value).__repr__ is object.__repr__:
        return f"{type(value).__name__}({vars(value)})"
    return getattr(value, "__name__", None) or repr(value)[:200]


def crossed(*lists, strength=2):
    """Return the product of lists of cases; in the tier `quick` only enough to cover every combination of `strength` values.

    A case of a list may be a tuple, whose values take as many places of the result.
    """
    parts = [[part if isinstance(part, tuple) else (part,) for part in cases] for cases in lists]
    return tiered([sum(combination, ()) for combination in itertools.product(*parts)], strength)


def fewer(cases, in_quick):
    """Return the cases; in the tier `quick` only those that stand for the others."""
    return in_quick if TIER == "quick" else list(cases)


def seeds(number):
    """Return the seeds of this tier: `number` of them, in `quick` a tenth, but at least two."""
    return range(max(2, number // QUICK_SHARE) if TIER == "quick" else number)
