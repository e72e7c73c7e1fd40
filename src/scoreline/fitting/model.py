"""A fitted model before it becomes attributes of a classifier, and how they are set: all at once."""

import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from scoreline.fitting.checks import feature_source
from scoreline.operators import Operator
from scoreline.runtime.types import FloatArray

CALIBRATION = ("calibration_", "calibration_range_", "calibration_gain_")  # what a fit with probability=True sets
OF_SOME_SOLVERS = ("levels_", "level_bound_", "threshold_rank_error_", "moments_report_", "promise_", *CALIBRATION)


@dataclass
class Model:
    """What a fit path returns.

    `trained_intercept` belongs to the objective, `intercept` to `predict`: the threshold is part of it. `penalty` is
    alpha/2 |w|^2 in the units that were trained. `loo_scores` are leave-one-out scores, where they cost no further
    fit. `interruption` is Ctrl-C, which the classifier raises again when the model is set. `finish` comes after that.
    """

    coef: FloatArray
    trained_intercept: float
    intercept: float
    solver: str
    risk: str
    penalty: float
    n_iter: int
    status: str
    history: dict[str, list[float]]
    cost: float = 1.0
    rejected: str | None = None
    objective: float | None = None
    lower_bound: float | None = None
    gap: float | None = None
    extra: dict[str, Any] = field(default_factory=dict)
    loo_scores: Any = None
    interruption: BaseException | None = None
    finish: Callable[[], None] | None = None  # warnings and files to remove, when the model is set

    def attributes(self) -> dict[str, Any]:
        """Return the fitted attributes."""
        return {
            "coef_": np.array(self.coef).reshape(1, -1), "trained_intercept_": float(self.trained_intercept),
            "intercept_": np.array([self.intercept]), "solver_": self.solver, "risk_": self.risk,
            "cost_": self.cost, "rejected_": self.rejected, "n_iter_": self.n_iter, "status_": self.status,
            "history_": self.history, "objective_": self.objective, "lower_bound_": self.lower_bound, "gap_": self.gap,
            "_penalty": self.penalty, **self.extra,
        }  # fmt: skip


def set_model(
    estimator: Any, X: Any, operator: Operator, attributes: dict[str, Any], uses_base_scores: bool = False
) -> None:
    """Set all attributes of a fit in one step; a stream and what only some solvers leave behind end with it."""
    with all_at_once(estimator) as new:
        validate_data(new, feature_source(X), skip_check_array=True)
        end_stream(new)
        features = operator.feature_map
        new.n_features_in_ = operator.shape[1] if features is None else features.n_columns
        new.column_map_, new.feature_map_ = operator.column_map, features
        new.string_features_, new.uses_base_scores_ = operator.string_features, uses_base_scores
        new.__dict__.update(attributes)


def end_stream(estimator: Any) -> None:
    """Forget a stream, and what only some solvers leave behind."""
    estimator._moments = estimator._stream = None
    for name in OF_SOME_SOLVERS:
        estimator.__dict__.pop(name, None)


@contextmanager
def all_at_once(estimator: Any) -> Iterator[Any]:
    """Yield a copy to write to; what it has becomes the estimator's in one step, unless an exception comes first."""
    draft = object.__new__(type(estimator))
    draft.__dict__.update(estimator.__dict__)
    yield draft
    estimator.__dict__ = draft.__dict__


@contextmanager
def unchanged_on_error(estimator: Any) -> Iterator[None]:
    """Leave the estimator as it was if anything fails, Ctrl-C included."""
    before = dict(estimator.__dict__)
    try:
        yield
    except BaseException as error:
        estimator.__dict__ = before
        _let_go(error)
        raise


@contextmanager
def interruption_recorded(estimator: Any, keep: Callable[[], None]) -> Iterator[None]:
    """Give a model that was set before Ctrl-C came, or because of it, the status "interrupted"; errors leave all as it was.

    Where none was set yet, `keep` sets the best so far, if there is one. An error may come when the model is set already: of a
    fold that probabilities are learnt from, say.
    """
    before = dict(estimator.__dict__)
    try:
        yield
    except KeyboardInterrupt as signal:
        if estimator.__dict__.get("coef_") is before.get("coef_"):
            keep()
        if estimator.__dict__.get("coef_") is not before.get("coef_"):
            estimator.status_ = "interrupted"
        else:
            estimator.__dict__ = before
        _let_go(signal)
        raise
    except Exception:
        estimator.__dict__ = before
        raise


def _let_go(error: BaseException) -> None:
    """Empty the frames that Ctrl-C has left behind.

    Solvers keep it while they put the best model together, and it keeps their frames, and these X: a circle that Python finds
    only when it looks for such, perhaps long after the user has let go of X. The traceback still says where Ctrl-C came.
    Errors keep what is in their frames, for debuggers.
    """
    if not isinstance(error, KeyboardInterrupt):
        return
    for frame, _ in traceback.walk_tb(error.__traceback__):
        caller: FrameType | None = frame  # one that caught it and went on is not in the traceback
        with suppress(RuntimeError):  # that of a frame which still runs
            while caller is not None:
                caller.clear()
                caller = caller.f_back
