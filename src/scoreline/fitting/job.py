"""Everything that a fit path needs, in one record."""

from dataclasses import dataclass, replace
from typing import Any

from scoreline.fitting.checks import check_weights
from scoreline.fitting.interim import Interim
from scoreline.fitting.memory import check_memory
from scoreline.fitting.parameters import Parameters
from scoreline.fitting.plan import Plan
from scoreline.fitting.probabilities import check_enough_rows
from scoreline.fitting.rows import GivenRows, TrainingRows
from scoreline.fitting.validation_rows import ValidationRows, given_rows, held_rows, same_columns
from scoreline.operators import Operator
from scoreline.penalties import BoundedPenalty
from scoreline.runtime.types import FloatArray
from scoreline.runtime.vectors import room_module
from scoreline.solvers.common.loop import Control


@dataclass(frozen=True)
class Job:
    """A fit to be done.

    `penalty` is that of the coefficients of X. `solver` and `control` are those of the plan's solver; `validation` are the
    rows of early stopping; `start` is (coefficients, intercept) of an earlier fit to begin at, `earlier_model` whether the
    classifier has one. `interim` receives the best model so far.
    """

    parameters: Parameters
    plan: Plan
    rows: TrainingRows
    penalty: BoundedPenalty
    solver: Any
    control: Control
    seed: Any
    validation: ValidationRows | None
    start: tuple[FloatArray, float] | None
    earlier_model: bool
    interim: Interim

    @classmethod
    def of(
        cls,
        parameters: Parameters,
        plan: Plan,
        given: GivenRows,
        penalty: BoundedPenalty,
        interim: Interim,
        earlier: tuple[FloatArray, float] | None,
    ) -> "Job":
        """Make the solver, find the rows of early stopping, and weigh the others."""
        solver = parameters.make_solver(plan.solver)
        check_memory(solver, given.operator)
        control, seed = _resumed(solver.control(), plan, parameters.random_state)
        validation = None
        settings = getattr(solver, "early_stopping", None)
        if given.costs is not None and settings is not None:
            raise ValueError("early_stopping knows no costs by row: leave it out, or pass the costs as sample_weight.")
        if settings is not None and settings.share is None:
            if given.base_scores is not None:
                raise ValueError(
                    "early_stopping with validation rows of your own has no base_scores for them: "
                    "pass a share of the rows instead"
                )
            validation = given_rows(settings, given.classes, given.operator, plan.measure, parameters.device)
            same_columns(given.X, settings.validation[0])
            if control.journal is not None:
                solver = parameters.make_solver(plan.solver, early_stopping=settings.known_by(validation.fingerprint()))
                control = replace(control, journal=solver.control().journal)
        elif settings is not None:
            drawn = seed if control.journal is None else control.journal.seeded(solver, seed)
            validation = held_rows(settings, given, plan.measure, drawn)
            assert validation.held is not None
            given = given.without(validation.held)
        weights = check_weights(given.sample_weight, parameters.class_weight, given.classes, given.sign, given.costs)
        rows = TrainingRows(given.operator, given.sign, *weights, given.classes, given.base_scores, given.costs)
        if parameters.probability and validation is None:
            check_enough_rows(rows.sign, rows.copies)
        start = earlier if parameters.warm_start else None
        model = earlier is not None
        return cls(parameters, plan, rows, penalty, solver, control, seed, validation, start, model, interim)


def _resumed(control: Control, plan: Plan, random_state: Any) -> tuple[Control, Any]:
    """Return control and random_state, or the seed of a checkpoint that the fallback has left.

    The first method is then trained again, without a record.
    """
    journal = control.journal
    left = None if journal is None or plan.fallback is None else journal.left_by(plan.fallback.solver.name)
    if left is None:
        return control, random_state
    return replace(control, journal=None), random_state if left.get("seed") is None else left["seed"]


def on_device(operator: Operator, device: Any) -> Operator:
    """Return the operator on the device that solver_params asks for, if it does."""
    if device is None:
        return operator
    moved: Operator = room_module("device", "convert").moved(operator, device)
    return moved
