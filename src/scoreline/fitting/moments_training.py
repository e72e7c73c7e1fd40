"""Training from class moments: one pass, block by block if need be."""

import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import validate_data

from scoreline import kernels
from scoreline.fitting.catalog import choose
from scoreline.fitting.moments_report import diagnosed, report_of, warn_if_apart
from scoreline.fitting.validation import class_weights, seen
from scoreline.fitting.whole import all_at_once
from scoreline.measures import Measure, best_cut
from scoreline.operators import Operator
from scoreline.operators.moments import ClassMoments
from scoreline.operators.wrappers import linear_scaling, scaled, standardising
from scoreline.runtime.types import AnyArray, FloatArray
from scoreline.solvers.moments import EXPLICIT, Direction, MomentsSolver


class MomentsTraining:
    """The part of MeasureClassifier that trains from moments."""

    objective_: float | None
    lower_bound_: float | None
    gap_: float | None
    history_: dict[str, list[float]]
    _moments: ClassMoments | None

    def _take_in_moments(
        self: Any, operator: Operator, classes: AnyArray, sign: AnyArray, weight: FloatArray | None, measure: Measure,
        solver: MomentsSolver, first: bool,
    ) -> Any:  # fmt: skip
        """Add the moments of a block of a stream."""
        if self.scaling not in (None, "standard"):
            raise ValueError(
                f"scaling={self.scaling!r} needs all rows at once; use scaling='standard' or None with partial_fit"
            )
        if operator.shape[1] > EXPLICIT or "row_blocks" not in operator.capabilities:
            raise ValueError(
                f"partial_fit keeps two p x p matrices: X must have at most {EXPLICIT} columns and be readable in blocks, "
                f"got {operator.shape[1]} columns of {type(operator).__name__}"
            )
        added = operator.class_moments(sign, weight)
        added.check_finite()
        if first:
            self._begin_stream(classes, operator.shape[1])
            self._moments = ClassMoments.empty(operator.shape[1])
        return self._add_moments(added, 1.0, measure, solver)

    def _add_moments(self: Any, added: ClassMoments, passes: float, measure: Measure, solver: MomentsSolver) -> Any:
        """Add moments and set the model of all so far, if both classes have been seen; a solve that fails adds nothing."""
        # A copy: a solve that fails, or Ctrl-C, leaves all as it was.
        state = ClassMoments.restored(self._moments.record())
        state.merge(added)
        self._solve_moments(state, measure, solver)
        self._moments = state
        self.n_passes_ += passes
        return self

    def _solve_moments(self: Any, state: ClassMoments, measure: Measure, solver: MomentsSolver) -> None:
        """Set the model of the moments, if both classes have been seen."""
        if state.positive.weight > 0.0 and state.negative.weight > 0.0:
            scale, center = None, None
            if self.scaling == "standard":
                scale, center = standardising(*state.columns())
            n = state.positive.weight, state.negative.weight
            weights = class_weights(self.class_weight, self.classes_, *n)
            direction = _solved(solver, state, measure, weights, scale, center)
            self._set_moments(direction, scale, center, measure, report_of(direction, measure))

    def _fit_moments(
        self: Any, X: Any, operator: Operator, classes: AnyArray, sign: AnyArray, copies: FloatArray | None, measure: Measure,
        solver: MomentsSolver, weight: FloatArray | None,
    ) -> Any:  # fmt: skip
        """Train on all rows at once: one pass, one more for cut and diagnostics."""
        if self.cut == "holdout":
            raise ValueError("cut='holdout' does not go with solver='moments'; use cut='train' or cut='none'")
        before, traffic = operator.n_passes, operator.traffic
        n = [float(np.count_nonzero(side) if copies is None else copies[side].sum()) for side in (sign > 0, sign < 0)]
        weights = class_weights(self.class_weight, classes, *n)
        scale, center = None, None
        if solver.explicit(operator):
            scaling = linear_scaling(operator, self.scaling)
            if scaling == "maxabs":
                scale = scaled(operator, "maxabs", copies).scale  # type: ignore[attr-defined]
            moments = operator.class_moments(sign, copies)
            if scaling == "standard":
                scale, center = standardising(*moments.columns())
            direction = _solved(solver, moments, measure, weights, scale, center)
            del moments
        else:
            wrapped = scaled(operator, self.scaling, copies)
            direction = solver.train(wrapped, sign, copies, measure.name, weights)
            if self.scaling is not None:
                scale, center = wrapped.scale, wrapped.center  # type: ignore[attr-defined]
        report, threshold = report_of(direction, measure), None
        if solver.diagnostics:
            coef = direction.w if scale is None else direction.w * scale
            z = operator.matvec(coef)
            offset = 0.0 if center is None else float(coef @ center)
            report = diagnosed(report, measure, z - offset, direction.intercept, sign, copies, weight)
            if self.cut != "none":
                threshold = best_cut(sign, z, self._cut_measure(measure), weight).threshold
        with all_at_once(self) as new:
            validate_data(new, seen(X), skip_check_array=True)
            new._end_stream()
            new.classes_, new.n_features_in_, new.column_map_ = classes, operator.shape[1], operator.column_map
            new.n_passes_ = operator.n_passes - before
            new._set_moments(direction, scale, center, measure, report)
            moved = operator.traffic
            if moved is not None and traffic is not None:
                new.history_ = {"bytes": [moved - traffic]}
            if threshold is not None:
                new.intercept_ = np.array([-threshold])
        if not direction.solved:
            warnings.warn(
                f"solver='moments' stopped by max_iter after {direction.n_iter} conjugate gradients: the direction is not "
                "exact. Raise max_iter or the ridge, or scale the features.",
                ConvergenceWarning,
                stacklevel=3,
            )
        if solver.diagnostics:
            warn_if_apart(report, min(n))
        return self

    def _set_moments(
        self: Any,
        direction: Direction,
        scale: FloatArray | None,
        center: FloatArray | None,
        measure: Measure,
        report: Any,
    ) -> None:
        coef = direction.w if scale is None else direction.w * scale
        intercept = direction.intercept - (0.0 if center is None else float(coef @ center))
        self.coef_, self.trained_intercept_ = coef.reshape(1, -1).copy(), intercept
        self.intercept_ = np.array([intercept])
        risk, _ = choose(measure, self.risk, self.solver, (0, len(coef)))  # the solver is named: rows do not matter
        self.solver_, self.risk_, self.cost_, self.rejected_ = "moments", risk.name, 1.0, None
        self._penalty = 0.5 * self.alpha * kernels.vectors.dot(direction.w, direction.w)
        self.n_iter_, self.history_ = direction.n_iter, {}
        self.status_ = "converged" if direction.solved else "max_iter"
        self.objective_ = self.lower_bound_ = self.gap_ = None
        self.moments_report_ = report


def _solved(
    solver: MomentsSolver,
    moments: ClassMoments,
    measure: Measure,
    weights: tuple[float, float],
    scale: FloatArray | None,
    center: FloatArray | None,
) -> Direction:
    """Return the classifier of scaled columns."""
    used = moments if scale is None else moments.scaled(scale, center)
    return solver.from_moments(used, measure.name, weights)
