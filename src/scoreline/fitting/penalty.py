"""The penalty of a fit: what the parameters say of columns of X, brought to the features that are trained."""

from typing import Any

from scoreline.operators import InterceptOperator
from scoreline.operators.linear_map import LinearMap
from scoreline.operators.wrappers import wrappers
from scoreline.penalties import BoundedPenalty
from scoreline.solvers.common.method import Method


def trained_penalty(
    penalty: BoundedPenalty, features: LinearMap, operator: LinearMap, solver: Method | type[Method]
) -> BoundedPenalty:
    """Return the penalty of the wrapped features: bounds in their units, and the intercept's coefficient.

    That has no penalty where the solver can prove what it finds without one.
    """
    for wrapper in reversed(wrappers(features, operator)):
        if isinstance(wrapper, InterceptOperator):
            penalty = penalty.with_constant(0.0 if solver.takes(("weights",)) else 1.0)
        else:
            penalty = penalty.scaled(wrapper.scale)
    return penalty


def names_of_columns(clf: Any) -> Any:
    """Return the names of the columns that a fitted or searching classifier knows, or None."""
    return getattr(clf, "_column_names", getattr(clf, "feature_names_in_", None))
