"""Training from class moments: one pass, block by block if need be, and states that can be added."""

import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import validate_data

from scoreline import kernels
from scoreline._logging import verbosity
from scoreline._typing import AnyArray, FloatArray
from scoreline.estimators.catalog import choose
from scoreline.estimators.moments_report import diagnosed, report_of, warn_if_apart
from scoreline.estimators.validation import check_labels, check_sample_weight, check_truth, class_weights
from scoreline.measures import Measure, best_cut
from scoreline.moments import ClassMoments
from scoreline.operators import Operator, as_operator
from scoreline.operators.wrappers import scaled, standardising
from scoreline.solvers.moments import EXPLICIT, Direction, MomentsSolver


def _streams(estimator: Any) -> bool:
    """Tell whether the solver can learn block by block."""
    if estimator.solver != "moments":
        raise AttributeError(
            f"partial_fit and merge need solver='moments', got solver={estimator.solver!r}: others read all rows many times"
        )
    return True


class MomentsTraining:
    """The part of MeasureClassifier that trains from moments."""

    objective_: float | None
    lower_bound_: float | None
    gap_: float | None
    history_: dict[str, list[float]]
    _moments: ClassMoments | None

    @available_if(_streams)
    def partial_fit(self: Any, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Any:
        """Take in more rows, with solver="moments": the moments of all rows so far give the same model as one `fit`.

        Blocks may come in any order and size, and the model does not depend on it; memory is two p x p matrices. The cut and
        the predicted measure come from the model of normal scores (`fit` takes the cut from the scores themselves). `fit`
        begins anew, `partial_fit` goes on. A call costs one pass over its rows and a solve of order p^3.

        Parameters
        ----------
        X : as in `fit`, of shape (m, p)
            More examples, at most 4096 features.
        y : array of m labels
            Their classes; a block may have one class only, if `classes` was given.
        classes : array of the two classes, optional
            Needed with the first block unless it has both.
        sample_weight : array of m weights, optional
            Taken as numbers of rows.

        Returns
        -------
        MeasureClassifier
            The classifier; without `coef_` until both classes have been seen.
        """
        measure = self._check_parameters()
        if self.scaling == "maxabs":
            raise ValueError("scaling='maxabs' needs all rows at once; use scaling='standard' or None with partial_fit")
        if self.cut == "holdout":
            raise ValueError("cut='holdout' does not go with partial_fit; the cut comes from the model: use cut='auto'")
        first = getattr(self, "_moments", None) is None
        with verbosity(self.verbose), kernels.parallel.thread_limit(self.n_jobs):
            operator = as_operator(X)
            named = None if classes is None else check_labels(classes, len(classes))[0]
            if first:
                known = check_labels(y, operator.shape[0])[0] if named is None else named
            else:
                known = self.classes_
                if named is not None and not np.array_equal(named, known):
                    raise ValueError(f"classes={classes!r} differ from those of the first block: {known.tolist()}")
            validate_data(self, X, reset=first, skip_check_array=True)
            if operator.shape[1] > EXPLICIT or "row_blocks" not in operator.capabilities:
                raise ValueError(
                    f"partial_fit keeps two p x p matrices: X must have at most {EXPLICIT} columns and be readable in blocks, "
                    f"got {operator.shape[1]} columns of {type(operator).__name__}"
                )
            sign = np.where(check_truth(y, known, operator.shape[0]), 1, -1)
            weight = check_sample_weight(sample_weight, len(sign))
            _, solver_class = choose(measure, self.risk, self.solver)
            solver = self._make_solver(solver_class)
            added = operator.class_moments(sign, weight)
        added.check_finite()
        if first:
            if hasattr(self, "coef_"):
                del self.coef_  # of an earlier fit, which this begins anew
            self._moments, self.n_passes_ = ClassMoments.empty(operator.shape[1]), 0.0
            self.classes_, self.n_features_in_ = known, operator.shape[1]
        return self._take_in(added, 1.0, measure, solver)

    @available_if(_streams)
    def merge(self: Any, other: Any) -> Any:
        """Add the rows that another classifier has seen by `partial_fit`: the model of all rows, as if seen by one.

        Parameters
        ----------
        other : MeasureClassifier
            With solver="moments", the same classes and features. It is not changed.

        Returns
        -------
        MeasureClassifier
            This classifier.
        """
        for name, clf in (("this classifier", self), ("other", other)):
            if getattr(clf, "_moments", None) is None:
                raise ValueError(f"merge adds states of partial_fit, and {name} has none: call partial_fit first")
        if not np.array_equal(self.classes_, other.classes_) or self.n_features_in_ != other.n_features_in_:
            raise ValueError(
                f"merge needs the same classes and features: {self.classes_.tolist()} and {self.n_features_in_} here, "
                f"{other.classes_.tolist()} and {other.n_features_in_} there"
            )
        measure = self._check_parameters()
        return self._take_in(other._moments, other.n_passes_, measure, self._make_solver(MomentsSolver))

    def _take_in(self: Any, added: ClassMoments, passes: float, measure: Measure, solver: MomentsSolver) -> Any:
        """Add moments and set the model of all so far, if both classes have been seen; a solve that fails adds nothing."""
        state: ClassMoments = self._moments
        before = state.record() if solver.ridge == 0 else None  # otherwise the covariance cannot be singular
        state.merge(added)
        try:
            self._solve_moments(state, measure, solver)
        except ValueError:
            if before is not None:
                self._moments = ClassMoments.restored(before)
            raise
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
        before = operator.n_passes
        n = [float(np.count_nonzero(side) if copies is None else copies[side].sum()) for side in (sign > 0, sign < 0)]
        weights = class_weights(self.class_weight, classes, *n)
        scale, center = None, None
        if solver.explicit(operator):
            if self.scaling == "maxabs":
                scale = scaled(operator, "maxabs", copies).scale  # type: ignore[attr-defined]
            moments = operator.class_moments(sign, copies)
            if self.scaling == "standard":
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
        validate_data(self, X, skip_check_array=True)
        self.classes_, self.n_features_in_, self._moments = classes, operator.shape[1], None
        self.n_passes_ = operator.n_passes - before
        self._set_moments(direction, scale, center, measure, report)
        if threshold is not None:
            self.intercept_ = np.array([-threshold])
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
        self.solver_, self.risk_, self.cost_ = "moments", choose(measure, self.risk, self.solver)[0].name, 1.0
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
