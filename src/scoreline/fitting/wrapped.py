"""Coefficients of X and of the features that a solver sees: scaled, centred, with a constant one."""

from typing import Any

from scoreline.operators.linear_map import LinearMap
from scoreline.runtime.types import FloatArray


def unwrapped(w: FloatArray, wrapped: LinearMap, operator: LinearMap) -> tuple[FloatArray, float]:
    """Return coefficients of X and the intercept of w, which is one of the wrapped features."""
    coef, intercept = w, 0.0
    for wrapper in _wrappers(wrapped, operator):
        coef, intercept = wrapper.unwrap(coef, intercept)
    return coef, intercept


def wrapped_again(coef: FloatArray, intercept: float, wrapped: LinearMap, operator: LinearMap) -> FloatArray:
    """Return coefficients and intercept of X as coefficients of the wrapped features."""
    for wrapper in reversed(_wrappers(wrapped, operator)):
        coef, intercept = wrapper.wrap(coef, intercept)
    return coef


def _wrappers(wrapped: LinearMap, operator: LinearMap) -> list[Any]:
    """Return the wrappers around `operator`, the outermost first."""
    found: list[Any] = []
    while wrapped is not operator:
        found.append(wrapped)
        wrapped = wrapped.inner  # type: ignore[attr-defined]
    return found
