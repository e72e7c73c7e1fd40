"""Training row by row: a few passes of SPADE or STAMP, then the exact cut; or a stream, with a cut from a sketch."""

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import validate_data

from scoreline import kernels
from scoreline.fitting.early_stopping import ValidationRows
from scoreline.fitting.interim import Interim
from scoreline.fitting.training import Judged, cut_on, half_of_the_time, held_out_rows, training_scores_mislead
from scoreline.fitting.validation import class_weights, seen
from scoreline.fitting.whole import all_at_once
from scoreline.measures import Measure, best_cut
from scoreline.measures.score_sketch import RecentScores
from scoreline.operators import Operator
from scoreline.operators.wrappers import scaled
from scoreline.runtime.types import AnyArray, FloatArray
from scoreline.solvers.common.early_stopping import STOPPED
from scoreline.solvers.common.row_blocks import SEEDS, blocks_in_random_order
from scoreline.solvers.common.row_method import RowMethod, RowRun
from scoreline.solvers.common.row_state import RowState


@dataclass
class RowStream:
    """What has been learnt of a stream: the state of the method, the scores for the cut, and how often each class was seen.

    `problem` says what is learnt, so that it does not change halfway; `unit` is the mean weight of the first block's rows,
    which weights are divided by.
    """

    state: RowState
    problem: dict[str, Any]
    seed: int
    scores: RecentScores = field(default_factory=RecentScores)
    seen: tuple[float, float] = (0.0, 0.0)
    blocks: int = 0
    unit: float = 1.0

    def record(self) -> dict[str, Any]:
        """Return a copy as a dict of arrays, numbers and text."""
        own = {name: copy.copy(getattr(self, name)) for name in ("problem", "seed", "seen", "blocks", "unit")}
        return own | {"state": self.state.record(), "scores": self.scores.record()}

    @classmethod
    def restored(cls, record: Mapping[str, Any], p: int) -> "RowStream":
        """Return the stream that `record` described, for p features."""
        parts = {"state": RowState.restored(record["state"], p), "scores": RecentScores.restored(record["scores"])}
        return cls(**{**record, **parts})


class RowTraining:
    """The part of MeasureClassifier that trains row by row."""

    objective_: float | None
    lower_bound_: float | None
    gap_: float | None
    history_: dict[str, list[float]]
    _stream: RowStream | None

    def _fit_rows(
        self: Any, X: Any, operator: Operator, classes: AnyArray, sign: AnyArray, copies: FloatArray | None, measure: Measure,
        solver: RowMethod, weight: FloatArray | None, validation: ValidationRows | None, interim: Interim,
    ) -> Any:  # fmt: skip
        """Train by passes over the rows; one more pass for the cut, or a run without a fifth of the rows before (`train`)."""
        before, random_state = operator.n_passes, self.random_state
        if solver.journal is not None:
            random_state = solver.journal.seeded(solver, random_state)
        wrapped = scaled(operator, self.scaling, copies)
        constant = self.intercept_scaling if self.fit_intercept else 0.0
        served, cut = self._cut_measure(measure), self._own_cut(validation)

        def unwrap(w: FloatArray) -> tuple[FloatArray, float]:
            coef, intercept = w[:-1], constant * float(w[-1])
            return (coef, intercept) if self.scaling is None else wrapped.unwrap(coef, intercept)  # type: ignore[attr-defined]

        solver.latest = interim
        interim.begin(unwrap, solver_=solver.name, risk_="hinge")
        if validation is not None and solver.early_stopping is not None:
            solver.watch = validation.watch(solver.early_stopping, unwrap)

        def trained(weights: FloatArray | None) -> RowRun:
            def judge(w: FloatArray) -> float:
                return best_cut(sign, _finite(wrapped.matvec(w[:-1])), served, weights).value

            own, relative = None if cut == "none" else judge, None
            if weights is not None:  # steps of the class weights follow the size of weights: a mean of 1
                relative = weights / weights[weights > 0.0].mean()
            return solver.train(wrapped, sign, relative, measure, self.alpha, constant, random_state, own)

        threshold, given_cut = 0.0, None
        few = training_scores_mislead(operator.shape[1], sign, copies, served)
        if cut == "holdout" or (cut == "auto" and few):
            held = held_out_rows(sign, weight, random_state)
            with half_of_the_time(solver):
                part = trained(np.where(held, 0.0, 1.0 if weight is None else weight))
            interim.see(part.w)
            if part.interruption is not None:
                raise part.interruption
            z = _finite(wrapped.matvec(part.w[:-1]) + constant * float(part.w[-1]))
            given_cut = cut_on(served, Judged(sign[held], z[held], None if weight is None else weight[held]))
        run = trained(weight)
        if run.interruption is not None and run.rows == 0.0 and (interim.ready or hasattr(self, "coef_")):
            raise run.interruption  # nothing learnt: the run without the held-out rows, or the earlier model, stays
        interim.see(run.w)
        coef, intercept = unwrap(run.w)
        if given_cut is not None:
            threshold = given_cut
        elif cut != "none" and run.interruption is None:
            z = _finite(operator.matvec(coef) + intercept)
            threshold = best_cut(sign, z, served, weight).threshold
        count = np.arange(1.0, run.passes + 1.0).tolist()
        history = {"iteration": count, "seconds": run.seconds, "passes": list(count)}
        if run.traffic:
            history["bytes"] = run.traffic
        if run.validation:
            history["validation"] = run.validation
        with all_at_once(self) as new:
            validate_data(new, seen(X), skip_check_array=True)
            new._end_stream()
            new.classes_, new.n_features_in_, new.column_map_ = classes, operator.shape[1], operator.column_map
            new._set_rows(solver, np.array(coef), intercept, threshold, run.w)
            new.n_iter_, new.n_passes_ = run.passes, round(operator.n_passes - before, 9)  # a sum of shares
            new.history_, new.status_ = history, run.status
        if run.interruption is not None:
            raise run.interruption
        if solver.journal is not None and run.status in ("max_iter", STOPPED):
            solver.journal.remove()
        return self

    def _take_in_rows(
        self: Any, operator: Operator, classes: AnyArray, sign: AnyArray, weight: FloatArray | None, measure: Measure,
        solver: RowMethod, first: bool,
    ) -> Any:  # fmt: skip
        """Take in a block of a stream: once row by row, once for the scores. What fails halfway leaves all as it was."""
        if self.scaling is not None:
            raise ValueError(
                f"scaling={self.scaling!r} needs all rows at once, and solver={solver.name!r} no scaling: use scaling=None"
            )
        if isinstance(self.class_weight, str):
            raise ValueError(f"class_weight={self.class_weight!r} needs all rows at once; give a dict of weights")
        constant = self.intercept_scaling if self.fit_intercept else 0.0
        problem = {
            "solver": solver.name,
            "measure": measure.name,
            **vars(measure),
            "constant": constant,
            **solver.rules(),
        }
        if first:
            seed = int(check_random_state(self.random_state).randint(SEEDS, dtype=np.int64))
            stream = RowStream(solver.starts(operator.shape[1], measure)[0], problem, seed)
        else:
            stream = copy.deepcopy(self._stream)
            if stream.problem != problem:
                raise ValueError(
                    f"the stream began with {stream.problem}, and this is {problem}: use another classifier, or fit"
                )
        before, rng = operator.n_passes, np.random.default_rng([stream.seed, stream.blocks])
        counts = [
            float(np.count_nonzero(sign == side) if weight is None else weight[sign == side].sum()) for side in (1, -1)
        ]
        if self.class_weight is not None:
            of_class = class_weights(self.class_weight, classes, *counts)
            weight = np.where(sign > 0, *of_class) * (1.0 if weight is None else weight)
        if first and weight is not None:
            stream.unit = float(weight[weight > 0.0].mean())
        relative = weight
        if stream.unit != 1.0:
            relative = np.full(len(sign), 1.0 / stream.unit) if weight is None else weight / stream.unit
        labels = np.ascontiguousarray(sign, dtype=np.int8)
        stream.state.learn_units(operator, relative, constant)
        for start, stop, seed in blocks_in_random_order(operator, rng):
            solver.take_in_block(
                operator, start, stop, labels, relative, measure, self.alpha, constant, seed, stream.state
            )
        stream.state.check()
        w = stream.state.average()
        intercept = constant * float(w[-1])
        stream.scores.add(sign, _finite(operator.matvec(w[:-1]) + intercept), weight)
        stream.seen = stream.seen[0] + counts[0], stream.seen[1] + counts[1]
        stream.blocks += 1
        threshold = None
        if min(stream.seen) > 0.0:
            threshold = 0.0 if self.cut == "none" else stream.scores.cut(self._cut_measure(measure)).threshold
        if first:
            self._begin_stream(classes, operator.shape[1])
        self._stream = stream
        self.n_passes_ += operator.n_passes - before
        if threshold is not None:
            self._set_rows(solver, w[:-1], intercept, threshold, w)
            self.n_iter_, self.history_, self.status_ = stream.blocks, {}, "max_iter"
            self.cut_rank_error_ = stream.scores.rank_error
        return self

    def _set_rows(
        self: Any, solver: RowMethod, coef: FloatArray, intercept: float, threshold: float, w: FloatArray
    ) -> None:
        self.solver_, self.risk_, self.cost_, self.rejected_ = solver.name, "hinge", 1.0, None
        self.coef_, self.trained_intercept_ = coef.reshape(1, -1), intercept
        self.intercept_ = np.array([intercept - threshold])
        self._penalty = 0.5 * self.alpha * kernels.vectors.dot(w, w)
        self.objective_ = self.lower_bound_ = self.gap_ = None


def _finite(z: FloatArray) -> FloatArray:
    if not np.isfinite(z).all():
        raise ValueError("Xw is not finite: X has NaN or infinite entries, or overflows; scale it first")
    return z
