"""Training row by row: a few passes of SPADE or STAMP, then the exact cut."""

from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from scoreline import kernels
from scoreline._typing import AnyArray, FloatArray
from scoreline.measures import Measure, best_cut
from scoreline.moments import ClassMoments
from scoreline.operators import Operator
from scoreline.operators.wrappers import scaled
from scoreline.solvers.row_method import RowMethod


class RowTraining:
    """The part of MeasureClassifier that trains row by row."""

    objective_: float | None
    lower_bound_: float | None
    gap_: float | None
    history_: dict[str, list[float]]
    _moments: ClassMoments | None

    def _fit_rows(
        self: Any, X: Any, operator: Operator, classes: AnyArray, sign: AnyArray, copies: FloatArray | None, measure: Measure,
        solver: RowMethod, weight: FloatArray | None,
    ) -> Any:  # fmt: skip
        """Train by passes over the rows; one more pass for the cut."""
        if self.cut == "holdout":
            raise ValueError(f"cut='holdout' does not go with solver={solver.name!r}; use cut='train' or cut='none'")
        before = operator.n_passes
        wrapped = scaled(operator, self.scaling, copies)
        constant = self.intercept_scaling if self.fit_intercept else 0.0
        run = solver.train(wrapped, sign, weight, measure, self.alpha, constant, self.random_state)
        coef, intercept = run.w[:-1], constant * float(run.w[-1])
        if self.scaling is not None:
            coef, intercept = wrapped.unwrap(coef, intercept)  # type: ignore[attr-defined]
        threshold = 0.0
        if self.cut != "none" and run.interruption is None:
            z = operator.matvec(coef) + intercept
            if not np.isfinite(z).all():
                raise ValueError("Xw is not finite: X has NaN or infinite entries, or overflows; scale it first")
            threshold = best_cut(sign, z, self._cut_measure(measure), weight).threshold
        validate_data(self, X, skip_check_array=True)
        self.classes_, self.n_features_in_, self._moments = classes, operator.shape[1], None
        self.solver_, self.risk_, self.cost_ = solver.name, "hinge", 1.0
        self.coef_, self.trained_intercept_ = np.array(coef).reshape(1, -1), intercept
        self.intercept_ = np.array([intercept - threshold])
        self._penalty = 0.5 * self.alpha * kernels.vectors.dot(run.w, run.w)
        self.n_iter_, self.n_passes_ = run.passes, round(operator.n_passes - before, 9)  # a sum of shares
        count = np.arange(1.0, run.passes + 1.0).tolist()
        self.history_ = {"iteration": count, "seconds": run.seconds, "passes": list(count)}
        self.status_ = run.status
        self.objective_ = self.lower_bound_ = self.gap_ = None
        if run.interruption is not None:
            raise run.interruption
        return self
