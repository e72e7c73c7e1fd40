"""A fit's attributes all at once: whoever looks, at any moment and after Ctrl-C too, finds the old model or the new one."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def all_at_once(estimator: Any) -> Iterator[Any]:
    """Yield a copy to write to; what it has becomes the estimator's in one step, unless an exception comes first."""
    draft = object.__new__(type(estimator))
    draft.__dict__.update(estimator.__dict__)
    yield draft
    estimator.__dict__ = draft.__dict__


@contextmanager
def unchanged_on_error(estimator: Any) -> Iterator[None]:
    """Leave the estimator as it was if anything fails, Ctrl-C included."""
    before = dict(estimator.__dict__)
    try:
        yield
    except BaseException:
        estimator.__dict__ = before
        raise


@contextmanager
def interruption_noted(estimator: Any) -> Iterator[None]:
    """Give a model that was set before Ctrl-C came, or because of it, the status "interrupted"; errors leave all as it was.

    An error may come when the model is set already: of a fold that probabilities are learnt from, say.
    """
    before = dict(estimator.__dict__)
    try:
        yield
    except KeyboardInterrupt:
        if estimator.__dict__.get("coef_") is not before.get("coef_"):
            estimator.status_ = "interrupted"
        raise
    except Exception:
        estimator.__dict__ = before
        raise
