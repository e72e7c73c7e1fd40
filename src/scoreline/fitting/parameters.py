"""The parameters of MeasureClassifier, checked: what the fit paths take in place of the estimator."""

from typing import Any, NamedTuple

import numpy as np

from scoreline.features.registry import check_features, is_linear
from scoreline.fitting.plan import Request, measure_of_threshold
from scoreline.fitting.threshold import has_guarantee
from scoreline.measures import Measure, get_measure
from scoreline.operators import Operator
from scoreline.operators.column_maps import KINDS
from scoreline.penalties import BoundedPenalty, Penalty
from scoreline.penalties.bounded import signed_bounds
from scoreline.penalties.registry import get_penalty
from scoreline.runtime.checks import check_choice, check_flag, check_number, column_signs
from scoreline.runtime.registry import unknown_name
from scoreline.solvers.common.method import BASE_SCORES, Method

OWN_LIMITS = {"tol", "max_iter", "max_time"}  # parameters of the classifier that solvers take too


class Parameters(NamedTuple):
    """The parameters of a classifier; `measure` and `penalty` are objects, `options` are solver_params as a dict."""

    measure: Measure
    penalty: Penalty
    options: dict[str, Any]
    risk: str
    solver: str
    alpha: float
    bounds: Any
    monotone: Any
    fit_intercept: bool
    intercept_scaling: float
    scaling: str | None
    features: Any
    threshold: str
    class_weight: Any
    tol: float
    max_iter: int
    max_time: float | None
    warm_start: bool
    random_state: Any
    probability: bool

    @classmethod
    def of(cls, clf: Any) -> "Parameters":
        """Check the parameters of a classifier, and return them."""
        check_number("alpha", clf.alpha, above=0)
        check_number("tol", clf.tol, above=0)
        check_number("max_iter", clf.max_iter, least=1, integer=True)
        if clf.max_time is not None:
            check_number("max_time", clf.max_time, above=0)
        check_number("intercept_scaling", clf.intercept_scaling, above=0)
        if not 1e-50 <= clf.intercept_scaling <= 1e50:
            raise ValueError(f"intercept_scaling={clf.intercept_scaling!r} must lie between 1e-50 and 1e50")
        for name in ("fit_intercept", "warm_start", "probability"):
            check_flag(name, getattr(clf, name))
        check_number("verbose", int(clf.verbose) if isinstance(clf.verbose, bool) else clf.verbose, least=0)
        check_choice("scaling", clf.scaling, (None, "maxabs", "standard", *KINDS))
        check_features(clf.features)
        check_choice("threshold", clf.threshold, ("auto", "train", "holdout", "none"))
        if clf.n_jobs is not None and (not isinstance(clf.n_jobs, (int, np.integer)) or clf.n_jobs == 0):
            raise ValueError(f"n_jobs={clf.n_jobs!r} must be None, a positive number of threads, or -1 for all")
        measure = get_measure(clf.measure, clf.measure_params)
        if clf.solver_params is not None and not isinstance(clf.solver_params, dict):
            raise ValueError(f"solver_params={clf.solver_params!r} must be a dict of options of the solver, or None")
        if not is_linear(clf.features):
            _check_features_alone(clf)
        penalty = get_penalty(clf.penalty, clf.penalty_params)
        same = {name: getattr(clf, name) for name in cls._fields if name not in ("measure", "penalty", "options")}
        return cls(measure, penalty, dict(clf.solver_params or {}), **same)

    def penalty_for(self, operator: Operator, names: Any = None) -> BoundedPenalty:
        """Return penalty and bounds of the coefficients of an operator, whose columns have these names."""
        p, features = operator.shape[1], operator.feature_map
        bounds = self.bounds if features is None else features.bounds()
        if features is None and self.monotone is not None:
            bounds = signed_bounds(bounds, column_signs(self.monotone, p, names), names)
        return BoundedPenalty.of(self.penalty, p, names if features is None else None, bounds)

    def request(self, penalty: BoundedPenalty, base_scores: Any = None) -> Request:
        """Return what the plan of a fit with this penalty, and perhaps with base scores, is made of."""
        traits = penalty.traits if base_scores is None else penalty.traits | {BASE_SCORES}
        return Request(self.risk, self.solver, self.threshold, self.options, self.class_weight, traits)

    @property
    def threshold_measure(self) -> Measure:
        """The measure that the threshold is tuned for."""
        return measure_of_threshold(self.measure, self.class_weight)

    @property
    def device(self) -> Any:
        """Where X is to be moved, None to leave it where it is."""
        return self.options.get("device")

    def make_solver(self, solver: type[Method], **changed: Any) -> Any:
        """Return the solver with the options of the user, some of them changed."""
        params = {name: value for name, value in self.options.items() if name != "device"}  # which is about X
        own = OWN_LIMITS & set(params)
        if own:
            raise ValueError(
                f"solver_params={params!r} sets {sorted(own)}, which are parameters of MeasureClassifier itself"
            )
        known = solver.options()
        for name in params:
            if name not in known:
                hint = unknown_name("key", name, known)
                raise ValueError(f"solver_params={params!r} does not fit solver {solver.name!r}: {hint}")
        try:
            limits: dict[str, Any] = {"tol": self.tol, "max_iter": self.max_iter, "max_time": self.max_time}
            return solver(**limits, **params | changed)
        except TypeError as error:
            raise ValueError(f"solver_params={params!r} does not fit solver {solver.name!r}: {error}") from None


def _check_features_alone(clf: Any) -> None:
    """Raise where options that concern X itself come with features that are made of its bins."""
    if clf.scaling is not None:
        raise ValueError(
            f"scaling={clf.scaling!r} works only with features='linear', got features={clf.features!r}: binned "
            "features need no scaling. Leave scaling=None."
        )
    if clf.penalty != "l2" or clf.penalty_params or clf.bounds is not None:
        raise ValueError(
            f"features={clf.features!r} works only with penalty='l2', without penalty_params and bounds, got "
            f"penalty={clf.penalty!r}, penalty_params={clf.penalty_params!r} and bounds={clf.bounds!r:.100}: "
            "these concern columns of X. Leave them out, or use features='linear'."
        )
    if has_guarantee(get_measure(clf.measure, clf.measure_params)):
        raise ValueError(
            f"guarantee works only with features='linear', got features={clf.features!r}: bins are learnt from all rows, and "
            "the proof needs rows that the model has not seen. Use ThresholdClassifier(clf, measure, measure_params) for it."
        )
