"""One test for many cases: the checks of `pytest.mark.parametrize` without a node per case, which costs time to collect."""

import functools
import inspect

import pytest

from tiers import TIER

# pytest.raises and pytest.warns fail by a BaseException; a test within a test raises a group.
FAILURES = (Exception, pytest.fail.Exception, BaseExceptionGroup)


def fewer(cases, in_quick):
    """Return the cases; in the tier `quick` only those that stand for the others."""
    return in_quick if TIER == "quick" else list(cases)


def for_each(names, cases):
    """Return a decorator that runs a test once per case and reports every case that failed, by name.

    The arguments are those of `pytest.mark.parametrize`: names ("solver, measure" or a tuple of names) and the cases, one
    value or one tuple each. Each case has an empty `tmp_path`, an empty `caplog` and a `monkeypatch` of its own.
    """
    names = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    cases = [case if len(names) > 1 else (case,) for case in cases]
    assert cases, "no cases"

    def decorate(test):
        @functools.wraps(test)
        def run(*args, **fixtures):
            failures = []
            for number, values in enumerate(cases):
                case = dict(zip(names, values, strict=True))
                try:
                    _run_case(test, args, fixtures, case, number)
                except FAILURES as failure:
                    failure.add_note("case: " + ", ".join(f"{name}={value!r:.200}" for name, value in case.items()))
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


def _run_case(test, args, fixtures, case, number):
    fixtures = dict(fixtures)
    if "tmp_path" in fixtures:
        fixtures["tmp_path"] /= f"case{number}"
        fixtures["tmp_path"].mkdir()
    if "caplog" in fixtures:
        fixtures["caplog"].clear()
    if "monkeypatch" in fixtures:
        with fixtures["monkeypatch"].context() as fixtures["monkeypatch"]:
            test(*args, **fixtures, **case)
    else:
        test(*args, **fixtures, **case)
