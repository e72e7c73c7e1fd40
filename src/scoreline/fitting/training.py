"""From a problem to coefficients and a cut: the order of search, held-out fit, fit and cut."""

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_random_state

from scoreline.measures import CountsBasedMeasure, Measure, OperatingPoint, best_cut, steady_cut
from scoreline.runtime.types import AnyArray, FloatArray
from scoreline.runtime.vectors import RemoteVector
from scoreline.solvers import Result, Solver
from scoreline.solvers.common.early_stopping import STOPPED
from scoreline.solvers.common.leave_one_out import leave_one_out
from scoreline.solvers.common.run_warnings import is_degenerate, warn_if_degenerate
from scoreline.solvers.cost_search import CostMethod, Problem, paired_gain

logger = logging.getLogger("scoreline")
# Share of J at the best constant score. Over 27 data sets and two alphas (docs/choose.md), cost_search was ahead of amp by more
# than 0.003 in F1 only where the hinge of amp had stayed above 0.84 of that, on made data above 0.75.
DOUBTFUL = 0.7
FEWEST_HELD = 25  # rows of a class from which on two methods are compared on a fifth of them


class Judged(NamedTuple):
    """Labels, scores and weights of the rows that a cut was chosen on."""

    sign: AnyArray
    scores: Any
    weight: FloatArray | None


class Trained(NamedTuple):
    """What came out: the run, the cost of positives, the cut, Ctrl-C if it was pressed, a constraint that was missed, and more.

    `levels` are those of `amp`; `intercept` is what the risk itself adds to scores; `unseen` are leave-one-out scores, where
    they were asked for and cost no further fit; `degenerate` says that all rows have the same score; `left_out_positive` are
    the predictions of a cost search for each row, by a model without it.
    """

    result: Result
    cost: float
    threshold: float
    interruption: BaseException | None
    missed: str | None
    levels: dict[str, Any]
    intercept: float
    unseen: Any = None
    degenerate: bool = False
    left_out_positive: AnyArray | None = None

    def interrupted(self, signal: BaseException | None) -> "Trained":
        """Return the same model, after which Ctrl-C or a callback has ended the fit."""
        self.result.status = "interrupted"
        return self._replace(interruption=signal)


def train(
    problem: Problem, solver: Solver, cut: str, random_state: Any, w0: FloatArray | None, left_out: bool = False,
    has_fallback: bool = False,
) -> Trained:  # fmt: skip
    """Train and cut.

    For cut="holdout", a fit without a fifth of the rows comes first. A cost search brings its own threshold. Otherwise
    cut="auto" takes it, for count-based measures, from leave-one-out scores where the risk has them (`leave_one_out`), or from
    a fifth held out where there are fewer than ten rows per feature (`training_scores_mislead`). In all other cases, and for
    ranking measures, it takes it from the training scores. With `left_out`, leave-one-out scores are kept where the risk has
    them. With `has_fallback`, a degenerate fit will be refitted, so it gives no warning.
    """
    if solver.journal is not None:
        random_state = solver.journal.seeded(solver, random_state)
    if (
        cut == "auto"
        and not problem.risk.curved
        and training_scores_mislead(problem.operator.shape[1], problem.sign, problem.copies, problem.cut_measure)
    ):
        cut = "holdout"
    cost, threshold, given_cut, interruption, judged = 1.0, 0.0, None, None, None
    levels: dict[str, Any] = {}
    unseen: Any = None
    left_out_positive = None
    if isinstance(solver, CostMethod):
        with half_of_the_time(solver) if cut == "holdout" else nullcontext():
            trial = solver.search(problem, random_state, w0)
        cost, result, interruption, w0 = trial.cost, trial.result, trial.interruption, trial.result.w
        left_out_positive = trial.positive
        if trial.levels is not None:
            levels = {"levels_": trial.levels, "level_bound_": trial.level_bound}
        if cut == "auto" and trial.cut is not None:
            given_cut = trial.cut.threshold
            judged = None if trial.unseen is None else Judged(problem.sign, trial.unseen, problem.weight)
    weight = with_cost(problem.weight, problem.sign, cost)
    if cut == "holdout" and interruption is None:
        held = held_out_rows(problem.sign, weight, random_state)
        with half_of_the_time(solver):
            part = solver.solve(problem.objective(np.where(held, 0.0, 1.0 if weight is None else weight)), w0)
        if part.interruption is None:
            judged = Judged(problem.sign[held], part.z[held], None if problem.weight is None else problem.weight[held])
            given_cut = cut_on(problem.cut_measure, judged)
            w0 = part.w
        elif isinstance(solver, CostMethod):
            interruption = part.interruption  # the search has left a model to keep
        else:
            raise part.interruption  # the caller keeps the model of the other rows (`Interim`)
    objective = problem.objective(weight)
    if not isinstance(solver, CostMethod):
        result = solver.solve(objective, w0)
        interruption = result.interruption
    intercept = 0.0 if result.z is None else objective.risk.intercept(result.z)
    degenerate = is_degenerate(result, objective)
    if degenerate and cut != "none":
        given_cut, judged = None, None  # leave-one-out scores would only say which class is the rarer one
    try:
        if given_cut is not None:
            threshold = given_cut
        elif cut == "none" or result.z is None:
            threshold = -intercept
        elif (
            cut == "auto"
            and not degenerate
            and problem.risk.curved
            and isinstance(problem.cut_measure, CountsBasedMeasure)
        ):
            unseen = leave_one_out(objective, result.z, problem.copies, random_state)
            judged = Judged(problem.sign, unseen, problem.weight)
            threshold = steady_cut(problem.sign, unseen, problem.cut_measure, problem.weight).threshold
        else:
            judged = Judged(problem.sign, result.z, problem.weight)
            threshold = best_cut(problem.sign, result.z, problem.cut_measure, problem.weight).threshold
        if left_out and unseen is None and result.z is not None and _near_optimum(problem.risk, result):
            unseen = leave_one_out(objective, result.z, problem.copies, random_state)
        missed = unreached(problem.cut_measure, judged)
        if missed is not None:
            assert judged is not None
            threshold = best_cut(judged.sign, judged.scores, problem.cut_measure, judged.weight).threshold
        else:
            missed = flags_little(problem.cut_measure, judged, threshold)
    except KeyboardInterrupt as signal:
        interruption, missed = signal, None
    if result.z is not None and interruption is None:
        if not has_fallback:
            warn_if_degenerate(result, objective)
        if solver.journal is not None and result.status in ("converged", "stalled", STOPPED):
            solver.journal.remove()
    return Trained(
        result,
        cost,
        threshold,
        interruption,
        missed,
        levels,
        intercept,
        unseen if left_out and _near_optimum(problem.risk, result) else None,
        degenerate,
        left_out_positive,
    )


def is_doubtful(problem: Problem, trained: Trained) -> bool:
    """Tell whether a fit has found so little that another method may serve the measure better."""
    objective = problem.objective(with_cost(problem.weight, problem.sign, trained.cost))
    _, constant = objective.best_constant(trained.result.z)
    return trained.result.objective > DOUBTFUL * constant


def is_better(problem: Problem, solver: Solver, first: Trained, second: Trained, random_state: Any) -> bool:
    """Tell whether the second model serves the measure better than the first one of `solver`, on rows that neither has seen.

    The second is a cost search, which has predictions for each row by a model without it. For the first, one more fit holds
    a fifth of the rows out. On these the second must be ahead by more than the standard error of the difference.
    """
    sign, weight, kinds = problem.sign, problem.weight, (problem.sign > 0).astype(np.int8)
    rows = np.bincount(kinds, problem.copies, 2)
    different = np.bincount(kinds, None if weight is None else (weight > 0.0).astype(np.int8), 2)
    if second.left_out_positive is None or second.degenerate or min(rows) < FEWEST_HELD or min(different) < 2:
        return False
    assert isinstance(problem.measure, CountsBasedMeasure)
    # The fit is internal, and so is the choice of rows: without a seed from the user, it is the same in every run.
    held = held_out_rows(sign, weight, random_state if isinstance(random_state, (int, np.integer)) else 0)
    rest = np.where(held, 0.0, 1.0 if weight is None else weight)
    solver.journal = solver.watch = solver.latest = None
    solver.callbacks = ()
    part = solver.solve(problem.objective(with_cost(rest, sign, first.cost)))
    if part.interruption is not None:
        raise part.interruption
    if part.status == "max_time":
        return False
    positive = part.z > best_cut(sign, part.z, problem.cut_measure, rest).threshold
    gain, error = paired_gain(
        problem.measure, sign[held], None if weight is None else weight[held], second.left_out_positive[held], positive[held]
    )  # fmt: skip
    logger.info("the cost search is ahead by %.4g on held-out rows, standard error %.4g", gain, error)
    return gain > error


def _near_optimum(risk: Any, result: Result) -> bool:
    """Tell whether leave-one-out scores can be trusted: a curved risk, proved within a tenth of its minimum.

    A fit that ended by J(0)/1000 where the minimum is far smaller may still be far from it.
    """
    return bool(risk.curved and result.gap is not None and result.gap <= 0.1 * (result.lower_bound or 0.0))


@contextmanager
def half_of_the_time(solver: Any) -> Iterator[None]:
    """Give what is done within half of the solver's time, and what follows the rest."""
    asked, begin = solver.max_time, time.perf_counter()
    if asked is not None:
        solver.max_time = 0.5 * asked
    try:
        yield
    finally:
        if asked is not None:
            solver.max_time = max(1e-9, asked - (time.perf_counter() - begin))


def cut_on(measure: Measure, judged: Judged) -> float:
    """Return the best cut on scores of rows that the model has not seen, for operating points with their margin."""
    value = measure.careful_value if isinstance(measure, OperatingPoint) else measure
    return best_cut(judged.sign, judged.scores, value, judged.weight, rises=True).threshold


def unreached(measure: Measure, judged: Judged | None) -> str | None:
    """Return what to warn of if the measure is an operating point that no threshold of these scores reaches."""
    if judged is None or not isinstance(measure, OperatingPoint):
        return None
    message = measure.unreached(judged.sign, judged.scores, judged.weight)
    if message is None:
        return None
    return f"measure {measure.name!r}: {message}. predict uses that threshold; lower the limit, change alpha or add features."


def flags_little(measure: Measure, judged: Judged | None, threshold: float) -> str | None:
    """Return what to warn of if the threshold of an operating point flags nearly nothing."""
    if judged is None or not isinstance(measure, OperatingPoint):
        return None
    message = measure.scarce(judged.sign, judged.scores, judged.weight, threshold)
    return (
        None
        if message is None
        else f"measure {measure.name!r}: {message}. Lower the limit, change alpha or add features."
    )


def with_cost(weight: FloatArray | None, sign: AnyArray, cost: float) -> FloatArray | None:
    """Return the weights with those of positives multiplied by the cost."""
    if cost == 1.0:
        return weight
    return np.where(sign > 0, cost, 1.0) * (1.0 if weight is None else weight)


def training_scores_mislead(p: int, sign: AnyArray, weight: FloatArray | None, measure: Measure) -> bool:
    """Tell whether cut="auto" should hold rows out: a count-based measure, and fewer than ten rows per feature.

    A model with many features gives rows that it was trained on far better scores than held-out rows, and a threshold between
    those calls few held-out rows positive: on reuters-mfx (5439 rows, 8315 features) the Q-mean of `spade` was 0.67 so, and
    0.96 with a threshold from held-out rows. With fewer than fifty rows of a class, there would be too few to hold out.
    Rows count as often as their weight says.
    """
    rows = np.bincount((sign > 0).astype(np.int8), weight, 2)
    return isinstance(measure, CountsBasedMeasure) and rows.sum() < 10 * p and min(rows) >= 50


def held_out_rows(
    sign: AnyArray, weight: FloatArray | None, random_state: Any, share: float = 0.2, asked: str = "cut='holdout'"
) -> AnyArray:
    """Return a mask of a stratified share of the rows of positive weight, at least one of each class on either side."""
    rng = check_random_state(random_state)
    held = np.zeros(len(sign), dtype=bool)
    for side in (-1, 1):
        rows = np.flatnonzero((sign == side) & (True if weight is None else weight > 0.0))
        if len(rows) < 2:
            raise ValueError(
                f"{asked} needs two rows of each class, got {len(rows)}; leave it out for data as small as this"
            )
        chosen = rng.permutation(len(rows))[: max(1, int(share * len(rows)))]
        held[np.asarray(rows[chosen])] = True
    return sign.like(held) if isinstance(sign, RemoteVector) else held
