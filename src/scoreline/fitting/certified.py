"""The certified fit path: minimise J with a proof, set the threshold, and go on to the fallback where that is called for."""

import logging
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from scoreline.fitting.job import Job
from scoreline.fitting.memory import check_memory
from scoreline.fitting.model import Model
from scoreline.fitting.penalty import trained_penalty
from scoreline.fitting.plan import Choice, ThresholdRule
from scoreline.fitting.threshold import (
    ScoredRows,
    few_flagged,
    has_guarantee,
    held_out_rows,
    target_missed,
    threshold_with_margin,
)
from scoreline.measures import CountsBasedMeasure, best_threshold, robust_threshold
from scoreline.objective import Objective
from scoreline.operators import InterceptOperator
from scoreline.operators.wrappers import linear_scaling, rewrapped, scaled, unwrapped
from scoreline.risks.base import Risk
from scoreline.risks.on_base_scores import on_base_scores
from scoreline.runtime.messages import warn_user
from scoreline.runtime.types import AnyArray, FloatArray
from scoreline.scores import space_for
from scoreline.solvers import Result, Solver
from scoreline.solvers.common.cost_method import CostMethod, Problem, Trial, paired_gain
from scoreline.solvers.common.early_stopping import STOPPED
from scoreline.solvers.common.leave_one_out import leave_one_out
from scoreline.solvers.common.loop import Control, Timer
from scoreline.solvers.common.run_warnings import is_degenerate, warn_if_degenerate, warn_if_not_converged

logger = logging.getLogger("scoreline")
# Share of J at the best constant score. Over 27 data sets and two alphas (docs/direct_training.md), cost_search was better than
# amp by more than 0.003 in F1 only if the hinge of amp had stayed above 0.84 of that J. On generated data the limit was 0.75.
WEAK_SHARE_OF_CONSTANT = 0.7
FEWEST_ROWS_TO_COMPARE = 25  # of a class: from here on two methods are compared on a fifth of them


class Trained(NamedTuple):
    """The end of one method: what it was, its result, its threshold, and what the choice between two methods needs.

    `intercept` is what the risk itself adds to scores. `loo_scores` are leave-one-out scores where they were asked for and cost
    no further fit, `loo_positive` the predictions of a cost search for each row by a model without it. `missed` is what to
    warn of an operating point.
    """

    problem: Problem
    solver: Solver
    control: Control
    result: Result
    threshold: float
    intercept: float
    cost: float = 1.0
    levels: dict[str, Any] | None = None
    interruption: BaseException | None = None
    missed: str | None = None
    loo_scores: Any = None
    loo_positive: AnyArray | None = None
    degenerate: bool = False

    def interrupted(self, signal: BaseException | None) -> "Trained":
        """Return the same model, after which Ctrl-C or a callback has ended the fit."""
        self.result.status = "interrupted"
        return self._replace(interruption=signal)

    @property
    def ended(self) -> bool:
        """Whether nothing may follow: Ctrl-C, a callback, or no time left."""
        return self.interruption is not None or self.result.status in ("interrupted", "max_time")


class MethodFit:
    """One method: a search for its cost, a fit without held-out rows, the fit, the threshold; in this order, each if needed.

    What it has found so far are its attributes, so that Ctrl-C in a later step loses nothing. `scored` are the rows that the
    threshold was chosen on.
    """

    def __init__(
        self, problem: Problem, solver: Solver, control: Control, seed: Any, rule: ThresholdRule, needs_loo_scores: bool
    ):
        self.problem, self.solver, self.control, self.seed = problem, solver, control, seed
        self.rule, self.needs_loo_scores = rule, needs_loo_scores
        self.timer = Timer(control.max_time)
        self.search: Trial | None = None
        self.interruption: BaseException | None = None
        self.threshold: float | None = None
        self.scored: ScoredRows | None = None
        self.loo_scores: Any = None
        self.missed: str | None = None

    def run(self, w0: FloatArray | None, has_fallback: bool) -> Trained:
        """Return the trained method. With a fallback, a degenerate fit will be refitted, so it gives no warning."""
        problem, solver, control = self.problem, self.solver, self.control
        if isinstance(solver, CostMethod):
            w0 = self._search_cost(solver, w0)
        cost = 1.0 if self.search is None else self.search.cost
        weight = with_cost(problem.weight, problem.sign, cost)
        if self.rule is ThresholdRule.HELD_OUT_ROWS and self.interruption is None:
            w0 = self._fit_without_held_out_rows(weight, w0)
        objective = problem.objective(weight)
        if self.search is None:
            result = solver.solve(objective, w0, control=control.within(self.timer.left()))
            self.interruption = result.interruption
        else:
            result = self.search.result
        intercept = 0.0 if result.z is None else objective.risk.intercept(result.z)
        degenerate = is_degenerate(result, objective)
        if degenerate and not self.rule.is_set_later:
            # Leave-one-out scores would only say which class is the rarer one.
            self.threshold, self.scored = None, None
        near = _near_optimum(problem, result)
        try:
            if self.threshold is None:
                self._choose_threshold(objective, result, intercept, degenerate)
            if self.needs_loo_scores and self.loo_scores is None and result.z is not None and near:
                self.loo_scores = leave_one_out(objective, result.z, problem.copies, self.seed)
            self._check_operating_point()
        except KeyboardInterrupt as signal:
            self.interruption, self.missed = signal, None
        if result.z is not None and self.interruption is None:
            if not has_fallback:
                warn_if_degenerate(result, objective)
            if control.journal is not None and result.status in ("converged", "stalled", STOPPED):
                control.journal.remove()
        search = self.search
        return Trained(
            problem, solver, control, result, 0.0 if self.threshold is None else self.threshold, intercept, cost,
            None if search is None or search.levels is None
            else {"levels_": search.levels, "level_bound_": search.level_bound},
            self.interruption, self.missed, self.loo_scores if self.needs_loo_scores and near else None,
            None if search is None else search.positive, degenerate,
        )  # fmt: skip

    def _search_cost(self, solver: CostMethod, w0: FloatArray | None) -> FloatArray:
        """Search for the cost, and keep the threshold that was tuned on the way; return the coefficients found."""
        problem = self.problem
        share = 0.5 if self.rule is ThresholdRule.HELD_OUT_ROWS else 1.0
        search = self.search = solver.search(problem, self.seed, w0, self._within_share(share))
        self.interruption = search.interruption
        if self.rule is ThresholdRule.LEAVE_ONE_OUT and search.tuned is not None:
            self.threshold = search.tuned.threshold
            if search.unseen is not None:
                self.scored = ScoredRows(problem.sign, search.unseen, problem.weight)
        return search.result.w

    def _fit_without_held_out_rows(self, weight: FloatArray | None, w0: FloatArray | None) -> FloatArray | None:
        """Take the threshold from held-out rows; return the coefficients of the fit without them, to start from."""
        problem = self.problem
        held = held_out_rows(problem.sign, weight, self.seed)
        rest = np.where(held, 0.0, 1.0 if weight is None else weight)
        part = self.solver.solve(problem.objective(rest), w0, control=self._within_share(0.5))
        if part.interruption is not None:
            if self.search is None:
                raise part.interruption  # the caller keeps the model of the other rows (`Interim`)
            self.interruption = part.interruption  # the search has left a model to keep
            return w0
        held_weight = None if problem.weight is None else problem.weight[held]
        self.scored = ScoredRows(problem.sign[held], problem.risk.full_scores(part.z)[held], held_weight)
        self.threshold = threshold_with_margin(problem.threshold_measure, self.scored)
        return part.w

    def _choose_threshold(self, objective: Objective, result: Result, intercept: float, degenerate: bool) -> None:
        """Take the threshold from leave-one-out scores or training scores; without a rule it is that of the objective."""
        problem, measure = self.problem, self.problem.threshold_measure
        if self.rule.is_set_later or result.z is None:
            self.threshold = -intercept
        elif self.rule is ThresholdRule.LEAVE_ONE_OUT and not degenerate:
            assert isinstance(measure, CountsBasedMeasure)
            self.loo_scores = leave_one_out(objective, result.z, problem.copies, self.seed)
            self.scored = ScoredRows(problem.sign, self.loo_scores, problem.weight)
            self.threshold = robust_threshold(problem.sign, self.loo_scores, measure, problem.weight).threshold
        else:
            self.scored = ScoredRows(problem.sign, problem.risk.full_scores(result.z), problem.weight)
            self.threshold = best_threshold(*self.scored[:2], measure, problem.weight).threshold

    def _check_operating_point(self) -> None:
        """Record whether the target is missed, and choose the threshold that comes closest to it if it is."""
        measure, scored = self.problem.threshold_measure, self.scored
        self.missed = target_missed(measure, scored)
        if self.missed is not None:
            assert scored is not None
            self.threshold = best_threshold(scored.sign, scored.scores, measure, scored.weight).threshold
        else:
            assert self.threshold is not None
            self.missed = few_flagged(measure, scored, self.threshold)

    def _within_share(self, share: float) -> Control:
        """Return the control of a run that may take a share of the time left."""
        left = self.timer.left()
        return self.control.within(None if left is None else share * left)


class CertifiedFit:
    """Trains by a solver that proves how close to optimal it is."""

    def __init__(self, job: Job):
        self.job, self.operator = job, job.rows.operator
        self.timer = Timer(job.parameters.max_time)
        self.base = scaled(self.operator, job.parameters.scaling, job.rows.copies)

    def fit(self) -> Model:
        """Return the model of the plan's method, or of its fallback."""
        job, plan = self.job, self.job.plan
        if plan.risk.shift == "linear" and linear_scaling(self.operator, job.parameters.scaling) != "standard":
            warn_user(
                f"risk {plan.risk.name!r} for measure {plan.measure.name!r} is unbounded under a common "
                "shift of all scores. Centre the features with scaling='standard', or use risk='logistic'."
            )
        trained = self._train(plan.risk, job.solver, job.control, job.seed, plan.fallback is not None)
        rejected = None
        if plan.fallback is not None and not trained.ended and self._needs_fallback(trained):
            trained, rejected = self._with_fallback(trained, plan.fallback)
        return self._model(trained, rejected)

    def _train(self, risk: Risk, solver: Solver, control: Control, seed: Any, has_fallback: bool) -> Trained:
        """Train one method and set its threshold."""
        job, operator = self.job, self.base
        if job.parameters.fit_intercept and risk.shift == "needed":
            operator = InterceptOperator(self.base, job.parameters.intercept_scaling)

        def unwrap(w: FloatArray) -> tuple[FloatArray, float]:
            return unwrapped(w, operator, self.operator)

        control = replace(control.within(self.timer.left()), latest=job.interim)
        if job.validation is not None and solver.early_stopping is not None:
            control = replace(control, watch=job.validation.watch(solver.early_stopping, unwrap))
        job.interim.begin(unwrap, solver_=solver.name, risk_=risk.name)
        rows = job.rows
        problem = Problem(
            operator, space_for(self.operator.scores), rows.sign, rows.weight, rows.copies,
            on_base_scores(risk, rows.base_scores), job.parameters.alpha,
            job.plan.measure, job.plan.threshold_measure, trained_penalty(job.penalty, operator, self.operator, solver),
        )  # fmt: skip
        w0 = None if job.start is None else rewrapped(*job.start, operator, self.operator)
        if control.journal is not None:
            seed = control.journal.seeded(solver, seed)
        wanted = job.parameters.probability or has_guarantee(job.parameters.measure)
        needs_loo_scores = wanted and job.validation is None
        return MethodFit(problem, solver, control, seed, self._rule(risk), needs_loo_scores).run(w0, has_fallback)

    def _rule(self, risk: Risk) -> ThresholdRule:
        """Return the plan's rule for its own risk; a fallback has a curved risk, whose leave-one-out scores it takes."""
        rule, measure = self.job.plan.threshold, self.job.plan.threshold_measure
        if rule is ThresholdRule.VALIDATION_ROWS:
            return ThresholdRule.TRAINING_SCORES  # until the validation rows replace it
        own = (
            rule in (ThresholdRule.HELD_OUT_ROWS, ThresholdRule.TRAINING_SCORES)
            and self.job.parameters.threshold == "auto"
        )
        curved = risk.curved and self.job.penalty.smooth
        if own and self.job.validation is None and curved and isinstance(measure, CountsBasedMeasure):
            return ThresholdRule.LEAVE_ONE_OUT
        return rule

    def _needs_fallback(self, trained: Trained) -> bool:
        """Tell whether a fit is degenerate, or has found so little that its rival may be better for the measure."""
        return trained.degenerate or (self.job.plan.rival and is_weak(trained))

    def _with_fallback(self, first: Trained, fallback: Choice) -> tuple[Trained, str | None]:
        """Train the fallback too; return the method to keep, and why the first one is not kept if it is not."""
        job, seed = self.job, self.job.seed
        if first.control.journal is not None:
            seed = first.control.journal.seeded(first.solver, seed)
            first.control.journal.remove()  # also where it ended by max_iter: the fallback has a record of its own
        solver = job.parameters.make_solver(fallback.solver, early_stopping=first.solver.early_stopping)
        check_memory(solver, self.operator)
        control = solver.control()
        second = self._train(fallback.risk, solver, control, seed, not first.degenerate)
        rejected = None
        name = f"{first.solver.name} with risk {first.problem.risk.name}"
        if first.degenerate:
            rejected = f"{name} gave all rows the same score (a degenerate fit)"
        elif second.interruption is not None or second.result.status == "interrupted":
            first = first.interrupted(second.interruption)
        elif not self.timer.over:
            try:
                if self._is_better(first, second):
                    rejected = f"{name} had a lower {job.plan.measure.name} on held-out rows"
            except KeyboardInterrupt as signal:
                first = first.interrupted(signal)
        if rejected is not None:
            logger.info("%s: %s with risk %s is kept", rejected, solver.name, fallback.risk.name)
            return second, rejected
        if control.journal is not None and first.interruption is None:
            control.journal.remove()
        return first, None

    def _is_better(self, first: Trained, second: Trained) -> bool:
        """Tell whether the second model is better for the measure than the first, on rows that neither was trained on.

        Early stopping has such rows. Otherwise the second is a cost search, which has predictions for each row by a model
        without it; for the first, one more fit holds a fifth of the rows out. On these the second must be ahead by more than
        the standard error of the difference.
        """
        if self.job.validation is not None:
            one, other = (max(each.result.history["validation"], default=-np.inf) for each in (first, second))
            return bool(other > one)
        problem = first.problem
        sign, weight, kinds = problem.sign, problem.weight, (problem.sign > 0).astype(np.int8)
        rows = np.bincount(kinds, problem.copies, 2)
        different = np.bincount(kinds, None if weight is None else (weight > 0.0).astype(np.int8), 2)
        few = min(rows) < FEWEST_ROWS_TO_COMPARE or min(different) < 2
        if second.loo_positive is None or second.degenerate or few:
            return False
        assert isinstance(problem.measure, CountsBasedMeasure)
        # The fit is internal, and so is the choice of rows: without a seed from the user, it is the same in every run.
        seed = self.job.parameters.random_state
        held = held_out_rows(sign, weight, seed if isinstance(seed, (int, np.integer)) else 0)
        rest = np.where(held, 0.0, 1.0 if weight is None else weight)
        part = first.solver.solve(_weighted(problem, rest, first.cost), control=Control(self.timer.left()))
        if part.interruption is not None:
            raise part.interruption
        if part.status == "max_time":
            return False
        z = problem.risk.full_scores(part.z)
        positive = z > best_threshold(sign, z, problem.threshold_measure, rest).threshold
        own = None if weight is None else weight[held]
        gain, error = paired_gain(problem.measure, sign[held], own, second.loo_positive[held], positive[held])
        logger.info("the cost search is ahead by %.4g on held-out rows, standard error %.4g", gain, error)
        return gain > error

    def _model(self, trained: Trained, rejected: str | None) -> Model:
        result, interim = trained.result, self.job.interim
        coef, intercept = unwrapped(result.w, trained.problem.operator, self.operator)
        coef = self.job.penalty.nearest(coef)  # bounds are divided by scales and multiplied by them, which rounds
        if trained.interruption is not None and not np.any(coef) and interim.ready:
            raise trained.interruption  # a run before, on a sample of the rows perhaps, has a model that tells rows apart

        def finish() -> None:
            warn_if_not_converged(result, trained.solver)
            if trained.missed is not None:
                warn_user(trained.missed)

        loo_scores = None if trained.loo_scores is None else trained.loo_scores + trained.intercept
        return Model(
            coef, float(intercept) + trained.intercept, float(intercept) - trained.threshold, trained.solver.name,
            trained.problem.risk.name, trained.problem.objective(None).penalty_value(result.w),
            result.n_iter, result.status, result.history, trained.cost, rejected, result.objective, result.lower_bound,
            result.gap, trained.levels or {}, loo_scores, trained.interruption, finish,
        )  # fmt: skip


def with_cost(weight: FloatArray | None, sign: AnyArray, cost: float) -> FloatArray | None:
    """Return the weights with those of positives multiplied by the cost."""
    if cost == 1.0:
        return weight
    return np.where(sign > 0, cost, 1.0) * (1.0 if weight is None else weight)


def is_weak(trained: Trained) -> bool:
    """Tell whether a fit has found so little that another method may be better for the measure."""
    objective = _weighted(trained.problem, trained.problem.weight, trained.cost)
    _, constant = objective.best_constant(trained.result.z)
    return trained.result.objective > WEAK_SHARE_OF_CONSTANT * constant


def _weighted(problem: Problem, weight: FloatArray | None, cost: float) -> Objective:
    return problem.objective(with_cost(weight, problem.sign, cost))


def _near_optimum(problem: Problem, result: Result) -> bool:
    """Tell whether leave-one-out scores can be trusted: a curved J, proved within a tenth of its minimum.

    A fit that ended by J(0)/1000 where the minimum is far smaller may still be far from it.
    """
    curved = problem.risk.curved and (problem.penalty is None or problem.penalty.smooth)
    return bool(curved and result.gap is not None and result.gap <= 0.1 * (result.lower_bound or 0.0))
