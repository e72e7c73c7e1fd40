"""Can the normal model of `solver="moments"` be trusted: its prediction beside the scores themselves."""

import math
import warnings
from typing import Any

from scoreline.measures import Measure
from scoreline.measures.cut import condensed
from scoreline.runtime.types import AnyArray, FloatArray
from scoreline.runtime.vectors import RemoteVector
from scoreline.solvers.moments import Direction
from scoreline.solvers.normal_model import shape_of_scores

APART = 0.02  # prediction and measurement that differ by more than this, and by more than chance, are worth a warning


def report_of(direction: Direction, measure: Measure) -> dict[str, Any]:
    """Return what is known without a look at the scores."""
    scores = direction.scores
    return {
        "measure": measure.name,
        "predicted": direction.predicted,
        "empirical": None,
        "ridge": direction.ridge,
        "positive": {"mean": scores.mean_positive, "std": scores.std_positive},
        "negative": {"mean": scores.mean_negative, "std": scores.std_negative},
    }


def diagnosed(
    report: dict[str, Any],
    measure: Measure,
    z: FloatArray,
    intercept: float,
    sign: AnyArray,
    copies: FloatArray | None,
    weight: FloatArray | None,
) -> dict[str, Any]:
    """Return the report with the empirical measure and, for each class, the shape of its scores.

    `z` are the scores without intercept, `intercept` that of the model. Skewness and excess kurtosis are 0 for a normal
    distribution; the Kolmogorov-Smirnov distance is the largest difference to the normal distribution function. The measure
    counts class weights (`weight`), the shapes do not (`copies`).
    """
    report = {**report, "empirical": measure.value(sign > 0, z + intercept, weight)}
    if isinstance(z, RemoteVector):
        sign, z, copies = condensed(sign, z, copies)
    for name, side in (("positive", sign > 0), ("negative", sign < 0)):
        report[name] = shape_of_scores(z[side], None if copies is None else copies[side])
    return report


def warn_if_apart(report: dict[str, Any], n_least: float) -> None:
    """Warn if prediction and measurement part by more than 0.02 and three standard errors of the smaller class."""
    predicted, empirical = report["predicted"], report["empirical"]
    chance = 3.0 * math.sqrt(max(0.0, empirical * (1.0 - empirical)) / max(1.0, n_least))
    if abs(predicted - empirical) > max(APART, chance):
        warnings.warn(
            f"solver='moments' predicts {report['measure']} {predicted:.4f}, the training scores have {empirical:.4f}: they "
            "are not normal within the classes (moments_report_ has skewness, kurtosis and distance). Compare with "
            "solver='auto' on held-out rows, or transform the features.",
            UserWarning,
            stacklevel=4,
        )
