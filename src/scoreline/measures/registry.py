"""Measures by name: every class with a `name` in this folder."""

import inspect
from functools import cache
from typing import Any

from scoreline import measures
from scoreline.measures.base import Measure
from scoreline.runtime.registry import discover, unknown_name

# What users of other libraries call a measure, or the name that a bare rate most likely stands for.
OTHER_NAMES = {
    "ap": "average_precision",
    "auc": "roc_auc",
    "aucpr": "average_precision",
    "auroc": "roc_auc",
    "f1_score": "f1",
    "matthews_corrcoef": "mcc",
    "pr_auc": "average_precision",
    "precision": "recall_at_precision",
    "recall": "precision_at_recall",
    "sensitivity": "precision_at_recall",
    "specificity": "tpr_at_fpr",
}


@cache
def all_measures() -> dict[str, type[Measure]]:
    """Return {name: class} of all measures."""
    return discover(measures, Measure)  # type: ignore[type-abstract]  # the base class only tells what to look for


def get_measure(measure: str | Measure, params: dict[str, Any] | None = None) -> Measure:
    """Return a measure from its name and parameters; a Measure object is returned unchanged.

    Parameters
    ----------
    measure : str or Measure
        Name or object.
    params : dict, optional
        Parameters of a measure given by name.

    Returns
    -------
    Measure
        The measure.
    """
    if isinstance(measure, Measure):
        if params:
            raise ValueError(
                f"measure_params={params!r} is only for a measure given by name; a Measure object has its own parameters"
            )
        return measure
    try:
        factory = all_measures()[measure]
    except (KeyError, TypeError):
        raise unknown_name("measure", measure, all_measures(), OTHER_NAMES) from None
    try:
        return factory(**(params or {}))
    except TypeError:
        known = list(inspect.signature(factory).parameters)
        raise ValueError(
            f"measure_params={params!r} does not fit measure {measure!r}, which takes {known or 'none'}"
        ) from None
