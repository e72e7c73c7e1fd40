"""`each`: many cases in one test."""

import functools
import inspect


def each(names, cases):
    """Return a decorator that calls a test once per case, as `pytest.mark.parametrize` does, but as one test.

    Thousands of tests take longer to collect than to run. A failure names its case. Decorators may be stacked; fixtures are
    those of the one test, so tests that change theirs (`tmp_path`, `monkeypatch`) for one case must undo it.
    """
    names = [names] if isinstance(names, str) else list(names)

    def decorate(test):
        @functools.wraps(test)
        def every_case(**fixtures):
            for case in cases:
                values = dict(zip(names, (case,) if len(names) == 1 else case, strict=True))
                try:
                    test(**fixtures, **values)
                except BaseException as error:  # pytest.fail() is no Exception
                    error.add_note(f"case: {values}")
                    raise

        signature = inspect.signature(test)
        left = [parameter for name, parameter in signature.parameters.items() if name not in names]
        every_case.__signature__ = signature.replace(parameters=left)
        return every_case

    return decorate
