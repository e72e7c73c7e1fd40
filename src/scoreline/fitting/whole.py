"""A fit's attributes all at once: whoever looks, at any moment and after Ctrl-C too, finds the old model or the new one."""

import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
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
    except BaseException as error:
        estimator.__dict__ = before
        _let_go(error)
        raise


@contextmanager
def interruption_noted(estimator: Any, keep: Callable[[], None]) -> Iterator[None]:
    """Give a model that was set before Ctrl-C came, or because of it, the status "interrupted"; errors leave all as it was.

    Where none was set yet, `keep` sets the best so far, if there is one. An error may come when the model is set already: of a
    fold that probabilities are learnt from, say.
    """
    before = dict(estimator.__dict__)
    try:
        yield
    except KeyboardInterrupt as signal:
        if estimator.__dict__.get("coef_") is before.get("coef_"):
            keep()
        if estimator.__dict__.get("coef_") is not before.get("coef_"):
            estimator.status_ = "interrupted"
        else:
            estimator.__dict__ = before
        _let_go(signal)
        raise
    except Exception:
        estimator.__dict__ = before
        raise


def _let_go(error: BaseException) -> None:
    """Empty the frames that Ctrl-C has left behind.

    Solvers keep it while they put the best model together, and it keeps their frames, and these X: a circle that Python finds
    only when it looks for such, perhaps long after the user has let go of X. The traceback still says where Ctrl-C came.
    Errors keep what is in their frames, for debuggers.
    """
    if not isinstance(error, KeyboardInterrupt):
        return
    for frame, _ in traceback.walk_tb(error.__traceback__):
        caller: FrameType | None = frame  # one that caught it and went on is not in the traceback
        with suppress(RuntimeError):  # that of a frame which still runs
            while caller is not None:
                caller.clear()
                caller = caller.f_back
