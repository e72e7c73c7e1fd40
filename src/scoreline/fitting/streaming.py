"""Learning from a stream, block by block, and merging streams."""

from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from scoreline.features.registry import is_linear
from scoreline.fitting.checks import (
    check_base_scores,
    check_labels,
    check_same_use,
    check_sample_weight,
    check_string_features,
    check_truth,
)
from scoreline.fitting.model import Model, end_stream
from scoreline.fitting.moments import MomentsStream
from scoreline.fitting.parameters import Parameters
from scoreline.fitting.plan import Request, Shape, plan
from scoreline.fitting.row_by_row import RowStreaming
from scoreline.operators import Operator, as_operator
from scoreline.operators.moments import ClassMoments
from scoreline.runtime import parallel
from scoreline.runtime.array_types import on_host
from scoreline.runtime.memory import memory_advice
from scoreline.runtime.messages import verbosity
from scoreline.runtime.types import AnyArray
from scoreline.solvers.registry import all_solvers


def can_stream(estimator: Any) -> None:
    """Raise unless the solver can learn block by block."""
    streaming = [name for name, solver in all_solvers().items() if solver.streams]
    if estimator.solver not in streaming:
        raise AttributeError(
            f"partial_fit needs a solver that learns block by block, one of {streaming}, got solver={estimator.solver!r}: "
            "others read all rows many times. list_solvers() says which measures each of them trains for"
        )


def can_merge(estimator: Any) -> None:
    """Raise unless what the solver has learnt of two streams can be added."""
    if estimator.solver != "moments":
        raise AttributeError(
            f"merge needs solver='moments', got solver={estimator.solver!r}: other models cannot be added"
        )


def process_rows(clf: Any, X: Any, y: Any, classes: Any, sample_weight: Any, base_scores: Any = None) -> None:
    """Learn from a block of rows, and set the model of all blocks so far."""
    parameters = Parameters.of(clf)
    if not is_linear(parameters.features):
        raise ValueError(
            f"partial_fit needs features='linear', got features={parameters.features!r}: bins are learnt from all rows. "
            "Use fit."
        )
    _check_options(parameters)
    by_moments = parameters.solver == "moments"
    first = getattr(clf, "_moments" if by_moments else "_stream", None) is None
    with verbosity(clf.verbose), parallel.thread_limit(clf.n_jobs), memory_advice():
        operator = as_operator(X)
        if operator.scores != "host" and not by_moments:
            where = "a cluster: use fit, which goes through all parts at once"
            where = where if operator.scores == "blocks" else "a device: pass X as a NumPy array or SciPy matrix"
            raise TypeError(
                f"partial_fit with solver={parameters.solver!r} takes in rows of this process, and X is on {where}, or use "
                "solver='moments'"
            )
        y, sample_weight = operator.aligned(y, "y"), operator.aligned(sample_weight, "sample_weight")
        known = _known_classes(clf, on_host(classes), y, operator.shape[0], first)
        if not first:
            check_string_features(clf, X)
        validate_data(clf, X, reset=first, skip_check_array=True)
        sign = np.where(check_truth(y, known, operator.shape[0]), 1, -1)
        weight = check_sample_weight(sample_weight, len(sign))
        base = check_base_scores(operator.aligned(base_scores, "base_scores"), operator.shape[0])
        if not first:
            check_same_use(clf.uses_base_scores_, base)
        penalty = parameters.penalty_for(operator, clf._names_of(X))
        decided = plan(parameters.request(penalty, base), parameters.measure, Shape(*operator.shape))
        for option, instead in (
            ("checkpoint", "save() keeps what partial_fit has learnt"),
            ("device", "pass blocks that are on the device to partial_fit"),
        ):
            if parameters.options.get(option) is not None:
                raise ValueError(f"solver_params: {option} works only with fit; {instead}")
        solver, risk, before = parameters.make_solver(decided.solver), decided.risk.name, operator.n_passes
        if by_moments:
            moments = MomentsStream(parameters, solver, risk, known)
            added = moments.moments_of(operator, sign, weight)
            if first:
                _begin_stream(clf, known, operator)
                clf._moments = ClassMoments.empty(operator.shape[1])
            clf._moments, model = moments.added(clf._moments, added)
            passes = 1.0
        else:
            stream = None if first else clf._stream
            streaming = RowStreaming(parameters, solver, risk, known)
            stream, model = streaming.process_rows(stream, operator, sign, weight, base)
            if first:
                _begin_stream(clf, known, operator, base is not None)
            clf._stream = stream
            passes = operator.n_passes - before
        _set_stream_model(clf, model, passes, str(decided))


def merge(clf: Any, other: Any) -> None:
    """Add the moments that another classifier has seen."""
    for name, each in (("this classifier", clf), ("other", other)):
        if getattr(each, "_moments", None) is None:
            raise ValueError(f"merge adds states of partial_fit, and {name} has none: call partial_fit first")
    if not np.array_equal(clf.classes_, other.classes_) or clf.n_features_in_ != other.n_features_in_:
        raise ValueError(
            f"merge needs the same classes and features: {clf.classes_.tolist()} and {clf.n_features_in_} here, "
            f"{other.classes_.tolist()} and {other.n_features_in_} there"
        )
    parameters = Parameters.of(clf)
    request = Request(parameters.risk, "moments", parameters.threshold, parameters.options)
    decided = plan(request, parameters.measure, Shape(0, clf.n_features_in_))
    stream = MomentsStream(parameters, parameters.make_solver(decided.solver), decided.risk.name, clf.classes_)
    clf._moments, model = stream.added(clf._moments, other._moments)
    _set_stream_model(clf, model, other.n_passes_, str(decided))


def _check_options(parameters: Parameters) -> None:
    if parameters.threshold == "holdout":
        raise ValueError(
            "threshold='holdout' cannot be combined with partial_fit; the threshold comes from the model: use threshold='auto'"
        )
    if parameters.probability:
        raise ValueError(
            "probability=True needs the scores of held-out rows, which a stream does not have: use fit, or probability=False"
        )
    if parameters.options.get("early_stopping"):
        raise ValueError(
            "early_stopping is for fit, which passes over the rows many times; leave it out of solver_params"
        )


def _known_classes(clf: Any, classes: Any, y: Any, n: int, first: bool) -> AnyArray:
    """Return the two classes: those that are given, of the first block, or of the stream so far."""
    if np.ndim(classes) != (0 if classes is None else 1):
        raise ValueError(f"classes={classes!r} must be a list of the two classes")
    named = None if classes is None else check_labels(classes, len(classes))[0]
    if first:
        return check_labels(y, n)[0] if named is None else named
    known: AnyArray = clf.classes_
    if named is not None and not np.array_equal(named, known):
        raise ValueError(f"classes={classes!r} differ from those of the first block: {known.tolist()}")
    return known


def _begin_stream(clf: Any, classes: AnyArray, operator: Operator, uses_base_scores: bool = False) -> None:
    """Forget an earlier fit or stream."""
    if hasattr(clf, "coef_"):
        del clf.coef_
    end_stream(clf)
    clf.classes_, clf.n_features_in_, clf.n_passes_, clf.column_map_ = classes, operator.shape[1], 0.0, None
    clf.string_features_, clf.uses_base_scores_ = operator.string_features, uses_base_scores


def _set_stream_model(clf: Any, model: Model | None, passes: float, decided: str) -> None:
    """Count the passes and set the model, if both classes have been seen."""
    clf.n_passes_ += passes
    if model is not None:
        clf.__dict__.update(model.attributes(), plan_=decided)
