"""Methods that an estimator has only with some parameters."""

from collections.abc import Callable
from functools import partial
from types import MethodType
from typing import Any


class _ConditionalMethod:
    """A method that raises the AttributeError of its check where it is not available."""

    def __init__(self, check: Callable[[Any], None], function: Callable[..., Any]):
        self.check, self.function = check, function
        self.__doc__ = function.__doc__

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return self.function
        self.check(instance)
        return MethodType(self.function, instance)


def available_if(check: Callable[[Any], None]) -> Callable[[Callable[..., Any]], Any]:
    """Return a decorator for a method that an estimator has unless `check` raises an AttributeError.

    scikit-learn's decorator of this name raises "has no attribute" and leaves the reason to the cause of the exception.
    """
    return partial(_ConditionalMethod, check)
