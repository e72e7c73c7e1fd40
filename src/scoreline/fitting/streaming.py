"""Learning from a stream: `partial_fit` takes in a block of rows, and what it has learnt of blocks can be added up."""

from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from scoreline.fitting.available import available_if
from scoreline.fitting.catalog import choose
from scoreline.fitting.probabilities import CALIBRATION
from scoreline.fitting.row_training import RowStream
from scoreline.fitting.validation import check_labels, check_sample_weight, check_truth
from scoreline.fitting.whole import unchanged_on_error
from scoreline.operators import as_operator
from scoreline.operators.moments import ClassMoments
from scoreline.runtime import parallel
from scoreline.runtime.array_types import on_host
from scoreline.runtime.memory import memory_advice
from scoreline.runtime.messages import verbosity
from scoreline.runtime.types import AnyArray
from scoreline.solvers.moments import MomentsSolver
from scoreline.solvers.registry import all_solvers


def _streams(estimator: Any) -> None:
    """Raise unless the solver can learn block by block."""
    streaming = [name for name, solver in all_solvers().items() if solver.streams]
    if estimator.solver not in streaming:
        raise AttributeError(
            f"partial_fit needs a solver that learns block by block, one of {streaming}, got solver={estimator.solver!r}: "
            "others read all rows many times. list_solvers() says which measures each of them trains for"
        )


def _merges(estimator: Any) -> None:
    """Raise unless what the solver has learnt of two streams can be added."""
    if estimator.solver != "moments":
        raise AttributeError(
            f"merge needs solver='moments', got solver={estimator.solver!r}: other models cannot be added"
        )


class Streaming:
    """The part of MeasureClassifier that learns from a stream of blocks."""

    _moments: ClassMoments | None
    _stream: RowStream | None

    @available_if(_streams)
    def partial_fit(self: Any, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Any:
        """Take in more rows, with a solver that learns from a stream: "moments", "spade" or "stamp". `fit` begins anew.

        "moments": the moments of all rows so far give the same model as one `fit`, in any order of the blocks; memory is two
        p x p matrices. The cut and the predicted measure come from the model of normal scores. A call costs one pass over its
        rows and a solve of order p^3.

        "spade" and "stamp": one step for every row, in random order within the block, fixed by random_state. Shares of the
        classes and units of the features are those met so far; steps do not fade. The cut is that of the scores of the later
        half of the stream, each of the model after its block, kept in sketches, which put its rank off by at most a share of
        `cut_rank_error_` of a class, below 0.5 % up to a billion rows. Memory is five vectors of p and the sketches, 10 MB
        at most. A call costs three passes over its rows and the cut, a few milliseconds: blocks of thousands of rows are best.

        Parameters
        ----------
        X : as in `fit`, of shape (m, p)
            More examples; for "moments" at most 4096 features.
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
        with unchanged_on_error(self):  # a block that fails, or Ctrl-C: as if it had not come
            return self._take_in(X, y, classes, sample_weight)

    def _take_in(self: Any, X: Any, y: Any, classes: Any, sample_weight: Any) -> Any:
        measure = self._check_parameters()
        if self.cut == "holdout":
            raise ValueError("cut='holdout' does not go with partial_fit; the cut comes from the model: use cut='auto'")
        if self.probability:
            raise ValueError(
                "probability=True needs scores of rows left out of a fit, which a stream has not: use fit, or probability=False"
            )
        if self._options().get("early_stopping"):
            raise ValueError(
                "early_stopping is for fit, which passes over the rows many times; leave it out of solver_params"
            )
        by_moments = self.solver == "moments"
        first = getattr(self, "_moments" if by_moments else "_stream", None) is None
        with verbosity(self.verbose), parallel.thread_limit(self.n_jobs), memory_advice():
            operator = as_operator(X)
            if operator.scores != "host" and not by_moments:
                where = "a cluster: use fit, which goes through all parts at once"
                where = where if operator.scores == "blocks" else "a device: pass X as a NumPy array or SciPy matrix"
                raise TypeError(
                    f"partial_fit with solver={self.solver!r} takes in rows of this process, and X lies on {where}, or use "
                    "solver='moments'"
                )
            y, sample_weight = operator.aligned(y, "y"), operator.aligned(sample_weight, "sample_weight")
            classes = on_host(classes)
            if np.ndim(classes) != (0 if classes is None else 1):
                raise ValueError(f"classes={classes!r} must be a list of the two classes")
            named = None if classes is None else check_labels(classes, len(classes))[0]
            if first:
                known = check_labels(y, operator.shape[0])[0] if named is None else named
            else:
                known = self.classes_
                if named is not None and not np.array_equal(named, known):
                    raise ValueError(f"classes={classes!r} differ from those of the first block: {known.tolist()}")
            validate_data(self, X, reset=first, skip_check_array=True)
            sign = np.where(check_truth(y, known, operator.shape[0]), 1, -1)
            weight = check_sample_weight(sample_weight, len(sign))
            _, solver_class = choose(measure, self.risk, self.solver, operator.shape)
            if (self.solver_params or {}).get("checkpoint") is not None:
                raise ValueError("solver_params: checkpoint goes with fit; save() keeps what partial_fit has learnt")
            if (self.solver_params or {}).get("device") is not None:
                raise ValueError(
                    "solver_params: device goes with fit; pass blocks that are on the device to partial_fit"
                )
            take_in = self._take_in_moments if by_moments else self._take_in_rows
            return take_in(operator, known, sign, weight, measure, self._make_solver(solver_class), first)

    @available_if(_merges)
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
        return self._add_moments(other._moments, other.n_passes_, measure, self._make_solver(MomentsSolver))

    def _begin_stream(self: Any, classes: AnyArray, p: int) -> None:
        """Forget an earlier fit or stream."""
        if hasattr(self, "coef_"):
            del self.coef_
        self._end_stream()
        self.classes_, self.n_features_in_, self.n_passes_, self.column_map_ = classes, p, 0.0, None

    def _end_stream(self: Any) -> None:
        """Forget a stream, and what only some solvers leave behind."""
        self._moments = self._stream = None
        for name in ("levels_", "level_bound_", "cut_rank_error_", "moments_report_", *CALIBRATION):
            self.__dict__.pop(name, None)
