"""The fit path of "spade" and "stamp": passes over the rows, then the exact threshold; or a stream, with a sketch of scores."""

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from scoreline import kernels
from scoreline.fitting.checks import class_totals, class_weights
from scoreline.fitting.job import Job
from scoreline.fitting.model import Model
from scoreline.fitting.parameters import Parameters
from scoreline.fitting.plan import ThresholdRule
from scoreline.fitting.threshold import ScoredRows, held_out_rows, threshold_with_margin
from scoreline.measures import best_threshold
from scoreline.measures.score_sketch import RecentScores
from scoreline.operators import Operator
from scoreline.operators.wrappers import scaled
from scoreline.runtime.types import AnyArray, FloatArray
from scoreline.runtime.vectors import room_module
from scoreline.solvers.common.early_stopping import STOPPED
from scoreline.solvers.common.loop import Control, Timer
from scoreline.solvers.common.row_method import RowMethod, RowRun
from scoreline.solvers.common.row_passes import SEEDS, RowProblem, blocks_in_random_order
from scoreline.solvers.common.row_state import RowState


class RowFit:
    """Trains by passes over the rows; one more pass for the threshold, or a run without a fifth of the rows before."""

    def __init__(self, job: Job):
        self.job, self.operator = job, job.rows.operator
        if self.operator.scores == "blocks" and job.rows.base_scores is not None:
            raise TypeError(
                f"base_scores with solver={job.solver.name!r} need rows of this process, and X is on a cluster: use another "
                "solver (solver='auto')"
            )
        if self.operator.scores == "device":
            raise TypeError(room_module("device", "operator").ON_DEVICE.format(solver=job.solver.name))
        self.scaled_rows: Any = scaled(self.operator, job.parameters.scaling, job.rows.copies)
        self.constant = job.parameters.intercept_scaling if job.parameters.fit_intercept else 0.0

    def fit(self) -> Model:
        """Return the model of averaged coefficients."""
        job, rows, rule = self.job, self.job.rows, self.job.plan.threshold
        seed = job.seed
        if job.control.journal is not None:
            seed = job.control.journal.seeded(job.solver, seed)
        control = replace(job.control, latest=job.interim)
        job.interim.begin(self._unwrap, solver_=job.solver.name, risk_=job.plan.risk.name)
        if job.validation is not None and job.solver.early_stopping is not None:
            control = replace(control, watch=job.validation.watch(job.solver.early_stopping, self._unwrap))
        threshold, timer = None, Timer(control.max_time)
        if rule is ThresholdRule.HELD_OUT_ROWS:
            held = held_out_rows(rows.sign, rows.weight, seed)
            left = timer.left()
            rest = np.where(held, 0.0, 1.0 if rows.weight is None else rows.weight)
            part = self._run(rest, seed, control.within(None if left is None else 0.5 * left))
            job.interim.see(part.w)
            if part.interruption is not None:
                raise part.interruption
            z = rows.full_scores(_finite(self.scaled_rows.matvec(part.w[:-1]) + self.constant * float(part.w[-1])))
            own = None if rows.weight is None else rows.weight[held]
            threshold = threshold_with_margin(job.plan.threshold_measure, ScoredRows(rows.sign[held], z[held], own))
        run = self._run(rows.weight, seed, control.within(timer.left()))
        if run.interruption is not None and run.rows == 0.0 and (job.interim.ready or job.earlier_model):
            raise run.interruption  # nothing learnt: the run without the held-out rows, or the earlier model, stays
        job.interim.see(run.w)
        coef, intercept = self._unwrap(run.w)
        if threshold is None and not rule.is_set_later and run.interruption is None:
            z = rows.full_scores(_finite(self.operator.matvec(coef) + intercept))
            threshold = best_threshold(rows.sign, z, job.plan.threshold_measure, rows.weight).threshold
        penalty = 0.5 * job.parameters.alpha * kernels.vectors.dot(run.w, run.w)
        model = Model(
            coef, intercept, intercept - (threshold or 0.0), job.solver.name, job.plan.risk.name, penalty, run.iteration,
            run.status, run.history, interruption=run.interruption,
        )  # fmt: skip

        def finish() -> None:
            if control.journal is not None and run.status in ("max_iter", STOPPED):
                control.journal.remove()

        model.finish = finish
        return model

    def _unwrap(self, w: FloatArray) -> tuple[FloatArray, float]:
        """Return coefficients and intercept in the units of X; the last of w is that of the constant feature."""
        coef, intercept = w[:-1], self.constant * float(w[-1])
        if self.job.parameters.scaling is None:
            return coef, intercept
        unwrapped: tuple[FloatArray, float] = self.scaled_rows.unwrap(coef, intercept)
        return unwrapped

    def _run(self, weight: FloatArray | None, seed: Any, control: Control) -> RowRun:
        """Train with these weights."""
        job, sign = self.job, self.job.rows.sign

        def judge(w: FloatArray) -> float:
            z = job.rows.full_scores(_finite(self.scaled_rows.matvec(w[:-1])))
            return best_threshold(sign, z, job.plan.threshold_measure, weight).value

        relative = None
        if weight is not None:  # steps of the class weights follow the size of weights: a mean of 1
            relative = weight / weight[weight > 0.0].mean()
        alpha, measure = job.parameters.alpha, job.plan.measure
        problem = RowProblem(self.scaled_rows, sign, relative, measure, alpha, self.constant, job.rows.base_scores)
        own = None if job.plan.threshold.is_set_later else judge
        run: RowRun = job.solver.train(problem, seed, own, control)
        return run


@dataclass
class RowStream:
    """The state of a stream: the state of the method, scores for the threshold, and the weight of each class so far.

    `problem` describes what is trained, which must not change between blocks. Weights are divided by `unit`, the mean weight of
    the rows of the first block.
    """

    state: RowState
    problem: dict[str, Any]
    seed: int
    scores: RecentScores = field(default_factory=RecentScores)
    class_totals: tuple[float, float] = (0.0, 0.0)  # "seen" in model files
    blocks: int = 0
    unit: float = 1.0

    def record(self) -> dict[str, Any]:
        """Return a copy as a dict of arrays, numbers and text."""
        own = {name: copy.copy(getattr(self, name)) for name in ("problem", "seed", "blocks", "unit")}
        return own | {"seen": self.class_totals, "state": self.state.record(), "scores": self.scores.record()}

    @classmethod
    def restored(cls, record: Mapping[str, Any], p: int) -> "RowStream":
        """Return the stream that `record` described, for p features."""
        parts = {"state": RowState.restored(record["state"], p), "scores": RecentScores.restored(record["scores"])}
        own = {name: value for name, value in record.items() if name != "seen"}
        return cls(**{**own, **parts, "class_totals": record["seen"]})


class RowStreaming:
    """Processes blocks of a stream, row by row."""

    def __init__(self, parameters: Parameters, solver: RowMethod, risk: str, classes: AnyArray):
        if parameters.scaling is not None:
            raise ValueError(
                f"scaling={parameters.scaling!r} needs all rows at once, and solver={solver.name!r} no scaling: "
                "use scaling=None"
            )
        if isinstance(parameters.class_weight, str):
            raise ValueError(f"class_weight={parameters.class_weight!r} needs all rows at once; give a dict of weights")
        self.parameters, self.solver, self.risk, self.classes = parameters, solver, risk, classes
        self.constant = parameters.intercept_scaling if parameters.fit_intercept else 0.0

    def process_rows(
        self, earlier: RowStream | None, operator: Operator, sign: AnyArray, weight: FloatArray | None,
        base_scores: FloatArray | None = None,
    ) -> tuple[RowStream, Model | None]:  # fmt: skip
        """Return the stream after one more block, and its model, or None before both classes have occurred.

        The block is read once row by row and once for the scores. `earlier` is not changed.
        """
        parameters, measure = self.parameters, self.parameters.measure
        stream = self._stream(earlier, operator.shape[1])
        rng = np.random.default_rng([stream.seed, stream.blocks])
        counts = class_totals(sign, weight)
        if parameters.class_weight is not None:
            of_class = class_weights(parameters.class_weight, self.classes, *counts)
            weight = np.where(sign > 0, *of_class) * (1.0 if weight is None else weight)
        if earlier is None and weight is not None:
            stream.unit = float(weight[weight > 0.0].mean())
        relative = weight
        if stream.unit != 1.0:
            relative = np.full(len(sign), 1.0 / stream.unit) if weight is None else weight / stream.unit
        labels = np.ascontiguousarray(sign, dtype=np.int8)
        problem = RowProblem(operator, labels, relative, measure, parameters.alpha, self.constant, base_scores)
        stream.state.learn_units(operator, relative, self.constant)
        for block in blocks_in_random_order(operator, rng):
            self.solver.process_block(problem, block, stream.state)
        stream.state.check()
        w = stream.state.average()
        intercept = self.constant * float(w[-1])
        z = _finite(operator.matvec(w[:-1]) + intercept)
        stream.scores.add(sign, z if base_scores is None else z + base_scores, weight)
        stream.class_totals = stream.class_totals[0] + counts[0], stream.class_totals[1] + counts[1]
        stream.blocks += 1
        if min(stream.class_totals) == 0.0:
            return stream, None
        threshold = 0.0
        if parameters.threshold != "none":
            threshold = stream.scores.best_threshold(parameters.threshold_measure).threshold
        penalty = 0.5 * parameters.alpha * kernels.vectors.dot(w, w)
        model = Model(
            w[:-1], intercept, intercept - threshold, self.solver.name, self.risk, penalty, stream.blocks, "max_iter", {},
            extra={"threshold_rank_error_": stream.scores.rank_error},
        )  # fmt: skip
        return stream, model

    def _stream(self, earlier: RowStream | None, p: int) -> RowStream:
        """Return a copy of the stream so far, or a new one."""
        measure = self.parameters.measure
        own = {"solver": self.solver.name, "measure": measure.name, **vars(measure), "constant": self.constant}
        problem = own | self.solver.rules()
        if earlier is None:
            seed = int(check_random_state(self.parameters.random_state).randint(SEEDS, dtype=np.int64))
            return RowStream(self.solver.starts(p, measure)[0], problem, seed)
        if earlier.problem != problem:
            raise ValueError(
                f"the stream began with {earlier.problem}, and this is {problem}: use another classifier, or fit"
            )
        return copy.deepcopy(earlier)


def _finite(z: FloatArray) -> FloatArray:
    if not np.isfinite(z).all():
        raise ValueError("Xw is not finite: X has NaN or infinite entries, or overflows; scale it first")
    return z
