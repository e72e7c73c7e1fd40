"""Can the normal model of `solver="moments"` be trusted: its prediction beside the scores themselves."""

import math
import warnings
from typing import Any

import numpy as np
from scipy.special import ndtr

from scoreline._typing import AnyArray, FloatArray
from scoreline.measures import Measure
from scoreline.solvers.moments import Direction

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
    for name, side in (("positive", sign > 0), ("negative", sign < 0)):
        report[name] = _shape(z[side], None if copies is None else copies[side])
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


def _shape(z: FloatArray, weight: FloatArray | None) -> dict[str, float]:
    """Return weight, mean, std, skewness, excess kurtosis and Kolmogorov-Smirnov distance of weighted scores."""
    s = np.ones(len(z)) if weight is None else weight
    total = float(s.sum())
    mean = float(s @ z) / total
    centred = z - mean
    second, third, fourth = (float(s @ centred**k) / total for k in (2, 3, 4))
    std = math.sqrt(second * total / (total - 1.0)) if total > 1.0 else 0.0
    skewness = third / second**1.5 if second > 0.0 else 0.0
    kurtosis = fourth / second**2 - 3.0 if second > 0.0 else 0.0
    order = np.argsort(z)
    after = np.cumsum(s[order]) / total
    expected = ndtr(centred[order] / std) if std > 0.0 else np.full(len(z), 0.5)
    # Equal scores are one step of the distribution function.
    last = np.append(z[order][1:] != z[order][:-1], True)
    steps, at = after[last], expected[last]
    distance = max(float(np.max(np.abs(steps - at))), float(np.max(np.abs(np.append(0.0, steps[:-1]) - at))))
    return {"weight": total, "mean": mean, "std": std, "skewness": skewness, "kurtosis": kurtosis, "ks": distance}
