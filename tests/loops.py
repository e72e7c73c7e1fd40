"""Tests that run many cases as one node: collecting thousands of nodes takes longer than running them."""

import functools
import inspect
import itertools

import pytest

from tiers import QUICK_SHARE, TIER, tiered


def for_each(names, cases):
    """Return a decorator that calls a test once per case, as `pytest.mark.parametrize` does, but within one node.

    A failure names its case in a note. What a case changes with `monkeypatch` is undone before the next one.
    """
    names = [name.strip() for name in names.split(",")]
    cases = [tuple(case) if len(names) > 1 else (case,) for case in cases]
    assert cases, f"there is no case of {', '.join(names)}"

    def decorate(test):
        signature = inspect.signature(test)
        fixtures = [parameter for name, parameter in signature.parameters.items() if name not in names]

        @functools.wraps(test)
        def run(**given):
            for case in cases:
                values = dict(zip(names, case, strict=True))
                with pytest.MonkeyPatch.context() as patch:
                    own = {"monkeypatch": patch} if "monkeypatch" in given else {}
                    try:
                        test(**(given | own | values))
                    except BaseException as error:
                        error.add_note("case: " + ", ".join(f"{name}={shown(values[name])}" for name in names))
                        raise

        run.__signature__ = signature.replace(parameters=fixtures)
        return run

    return decorate


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
    return tiered([sum(case, ()) for case in itertools.product(*parts)], strength)


def seeds(number):
    """Return the seeds of this tier: `number` of them, in `quick` a tenth, but at least two."""
    return range(max(2, number // QUICK_SHARE) if TIER == "quick" else number)
