"""The fit path of solver="moments": class means and covariances in one pass, all rows at once or block by block."""

import math
from typing import Any, NamedTuple

from sklearn.exceptions import ConvergenceWarning

from scoreline import kernels
from scoreline.fitting.checks import class_totals, class_weights
from scoreline.fitting.job import Job
from scoreline.fitting.model import Model
from scoreline.fitting.parameters import Parameters
from scoreline.fitting.rows import TrainingRows
from scoreline.measures import Measure, best_threshold
from scoreline.measures.thresholds import condensed
from scoreline.operators import Operator
from scoreline.operators.moments import ClassMoments
from scoreline.operators.wrappers import linear_scaling, scaled, standardising
from scoreline.runtime.messages import warn_user
from scoreline.runtime.types import AnyArray, FloatArray
from scoreline.runtime.vectors import RemoteVector
from scoreline.solvers.moments import EXPLICIT, Direction, MomentsSolver
from scoreline.solvers.normal_model import shape_of_scores

NOTABLE_DIFFERENCE = 0.02  # difference of predicted and measured value, if it is also more than chance


class Scale(NamedTuple):
    """How columns are scaled: (x - center) * scale; None for columns as they are."""

    scale: FloatArray | None = None
    center: FloatArray | None = None

    def coefficients(self, direction: Direction) -> tuple[FloatArray, float]:
        """Return coefficients and intercept in the units of X."""
        coef = direction.w if self.scale is None else direction.w * self.scale
        return coef, direction.intercept - (0.0 if self.center is None else float(coef @ self.center))


class MomentsFit:
    """Trains on all rows at once: one pass, one more for the threshold and the diagnostics."""

    def __init__(self, job: Job):
        if job.parameters.threshold == "holdout":
            raise ValueError(
                "threshold='holdout' cannot be combined with solver='moments'; use threshold='train' or threshold='none'"
            )
        self.job, self.solver, self.operator = job, job.solver, job.rows.operator
        assert isinstance(self.solver, MomentsSolver)

    def fit(self) -> Model:
        """Return the model of the class moments."""
        job, operator, solver = self.job, self.operator, self.solver
        rows, measure, traffic = job.rows, job.plan.measure, operator.traffic
        sums = class_totals(rows.sign, rows.copies)
        weights = class_weights(job.parameters.class_weight, rows.classes, *sums)
        direction, scale = self._direction(weights)
        report, threshold = predicted_report(direction, measure), None
        coef, _ = scale.coefficients(direction)
        if solver.diagnostics:
            z = operator.matvec(coef)
            offset = 0.0 if scale.center is None else float(coef @ scale.center)
            report = measured_report(report, measure, z - offset, direction.intercept, rows)
            if not job.plan.threshold.is_set_later:
                threshold = best_threshold(rows.sign, z, job.plan.threshold_measure, rows.weight).threshold
        model = moments_model(direction, scale, job.parameters, job.plan.risk.name, report)
        if threshold is not None:
            model.intercept = -threshold
        if traffic is not None and operator.traffic is not None:
            model.history = {"bytes": [operator.traffic - traffic]}

        def finish() -> None:
            if not direction.solved:
                warn_user(
                    f"solver='moments' stopped by max_iter after {direction.n_iter} iterations: the direction is not exact. "
                    "Raise max_iter or the ridge, or scale the features.",
                    ConvergenceWarning,
                )
            if solver.diagnostics:
                warn_of_difference(report, min(sums))

        model.finish = finish
        return model

    def _direction(self, weights: tuple[float, float]) -> tuple[Direction, Scale]:
        """Return the direction of the columns as the scaling has them, and the scale."""
        job, operator, solver, rows = self.job, self.operator, self.solver, self.job.rows
        name, scaling = job.plan.measure.name, job.parameters.scaling
        if not solver.explicit(operator):
            scaled_rows: Any = scaled(operator, scaling, rows.copies)
            direction = solver.train(scaled_rows, rows.sign, rows.copies, name, weights)
            return direction, Scale() if scaling is None else Scale(scaled_rows.scale, scaled_rows.center)
        scaling, scale = linear_scaling(operator, scaling), Scale()
        if scaling == "maxabs":
            scaled_rows = scaled(operator, "maxabs", rows.copies)
            scale = Scale(scaled_rows.scale)
        moments = operator.class_moments(rows.sign, rows.copies)
        if scaling == "standard":
            scale = Scale(*standardising(*moments.columns()))
        return _solved(solver, moments, name, weights, scale), scale


class MomentsStream:
    """The class moments of a stream of blocks."""

    def __init__(self, parameters: Parameters, solver: MomentsSolver, risk: str, classes: AnyArray):
        self.parameters, self.solver, self.risk, self.classes = parameters, solver, risk, classes

    def moments_of(self, operator: Operator, sign: AnyArray, weight: FloatArray | None) -> ClassMoments:
        """Return the moments of a block."""
        scaling = self.parameters.scaling
        if scaling not in (None, "standard"):
            raise ValueError(
                f"scaling={scaling!r} needs all rows at once; use scaling='standard' or None with partial_fit"
            )
        if operator.shape[1] > EXPLICIT or "row_blocks" not in operator.capabilities:
            raise ValueError(
                f"partial_fit keeps two p x p matrices: X must have at most {EXPLICIT} columns and be readable in blocks, "
                f"got {operator.shape[1]} columns of {type(operator).__name__}"
            )
        added: ClassMoments = operator.class_moments(sign, weight)
        added.check_finite()
        return added

    def added(self, state: ClassMoments, more: ClassMoments) -> tuple[ClassMoments, Model | None]:
        """Return the sum of moments and its model, None before both classes have been seen; `state` stays as it is."""
        total = ClassMoments.restored(state.record())
        total.merge(more)
        if not (total.positive.weight > 0.0 and total.negative.weight > 0.0):
            return total, None
        scale = Scale()
        if self.parameters.scaling == "standard":
            scale = Scale(*standardising(*total.columns()))
        sums = total.positive.weight, total.negative.weight
        weights = class_weights(self.parameters.class_weight, self.classes, *sums)
        measure = self.parameters.measure
        direction = _solved(self.solver, total, measure.name, weights, scale)
        report = predicted_report(direction, measure)
        return total, moments_model(direction, scale, self.parameters, self.risk, report)


def moments_model(
    direction: Direction, scale: Scale, parameters: Parameters, risk: str, report: dict[str, Any]
) -> Model:
    """Return the model of a direction; it has no objective."""
    coef, intercept = scale.coefficients(direction)
    penalty = 0.5 * parameters.alpha * kernels.vectors.dot(direction.w, direction.w)
    status = "converged" if direction.solved else "max_iter"
    extra = {"moments_report_": report}
    return Model(coef, intercept, intercept, "moments", risk, penalty, direction.n_iter, status, {}, extra=extra)


def _solved(
    solver: MomentsSolver, moments: ClassMoments, measure: str, weights: tuple[float, float], scale: Scale
) -> Direction:
    used = moments if scale.scale is None else moments.scaled(scale.scale, scale.center)
    return solver.from_moments(used, measure, weights)


def predicted_report(direction: Direction, measure: Measure) -> dict[str, Any]:
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


def measured_report(
    report: dict[str, Any], measure: Measure, z: FloatArray, intercept: float, rows: TrainingRows
) -> dict[str, Any]:
    """Return the report with the empirical measure and, for each class, the shape of its scores.

    `z` are the scores without intercept, `intercept` that of the model. Skewness and excess kurtosis are 0 for a normal
    distribution; the Kolmogorov-Smirnov distance is the largest difference to the normal distribution function. The measure
    counts class weights, the shapes do not.
    """
    sign, copies = rows.sign, rows.copies
    report = {**report, "empirical": measure.value(sign > 0, z + intercept, rows.weight)}
    if isinstance(z, RemoteVector):
        sign, z, copies = condensed(sign, z, copies)
    for name, side in (("positive", sign > 0), ("negative", sign < 0)):
        report[name] = shape_of_scores(z[side], None if copies is None else copies[side])
    return report


def warn_of_difference(report: dict[str, Any], n_least: float) -> None:
    """Warn if prediction and measurement part by more than 0.02 and three standard errors of the smaller class."""
    predicted, empirical = report["predicted"], report["empirical"]
    chance = 3.0 * math.sqrt(max(0.0, empirical * (1.0 - empirical)) / max(1.0, n_least))
    if abs(predicted - empirical) > max(NOTABLE_DIFFERENCE, chance):
        warn_user(
            f"solver='moments' predicts {report['measure']} {predicted:.4f}, the training scores have {empirical:.4f}: they "
            "are not normal within the classes (moments_report_ has skewness, kurtosis and distance). Compare with "
            "solver='auto' on held-out rows, or transform the features."
        )
