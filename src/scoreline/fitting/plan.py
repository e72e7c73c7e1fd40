"""The plan of a fit, decided once: measure, risk, solver, fallback and threshold rule, with the reason in one sentence.

`fit`, cross-validation and its folds, `partial_fit`, probabilities, the command line and `compare` all ask `plan`.
"""

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, NamedTuple

import numpy as np

from scoreline.measures import AtKMeasure, CountsBasedMeasure, Measure, RankingMeasure, get_measure
from scoreline.objective import PLAIN
from scoreline.risks.base import Risk
from scoreline.risks.registry import all_risks, get_risk
from scoreline.runtime.types import AnyArray, FloatArray
from scoreline.solvers.common.cost_method import CostMethod
from scoreline.solvers.common.hessian import MAX_FEATURES
from scoreline.solvers.common.method import BASE_SCORES, Method, When
from scoreline.solvers.registry import all_solvers, get_solver

AMPLE_ROWS_PER_FEATURE = 100  # from here on "auto" takes the solver that is made for F-beta and Jaccard
FEW_ROWS_PER_FEATURE = 10  # below, training scores say too little about held-out rows
FEWEST_ROWS_TO_HOLD_OUT = 50  # of the rarer class, before a fifth of them
SMOOTH_TRAITS = frozenset({"l2", "weights", BASE_SCORES})  # of penalties that have a gradient everywhere


class Shape(NamedTuple):
    """The size of the data: rows, each counted as often as its weight says, features, and rows of the rarer class."""

    rows: float
    features: int
    rarer: float = 0.0

    @classmethod
    def of(cls, sign: AnyArray, weight: FloatArray | None, features: int) -> "Shape":
        """Return the shape of labels +1 and -1 with their weights as counts."""
        counts = np.bincount((sign > 0).astype(np.int8), weight, 2)
        return cls(float(len(sign) if weight is None else weight.sum()), features, float(min(counts)))


class ThresholdRule(Enum):
    """Where the decision threshold of a fit comes from."""

    NONE = "the threshold stays that of the trained intercept"
    TRAINING_SCORES = "the threshold is the best one on the training scores"
    HELD_OUT_ROWS = "the threshold comes from a fifth of the rows, held out of a first fit"
    LEAVE_ONE_OUT = "the threshold comes from leave-one-out scores"
    VALIDATION_ROWS = "the threshold comes from the validation rows of early stopping"
    ALL_FOLDS = "the threshold comes from the held-out rows of all folds"

    @property
    def is_set_later(self) -> bool:
        """Whether the fit itself keeps the trained intercept."""
        return self in (ThresholdRule.NONE, ThresholdRule.ALL_FOLDS)


class Training(Enum):
    """What it means that a model is trained for its measure (docs/direct_training.md)."""

    DIRECT = "a direct surrogate"
    COST_AND_THRESHOLD = "cost and threshold"
    THRESHOLD = "the threshold alone"
    RANKING = "a ranking surrogate"

    @classmethod
    def of(cls, measure: Measure, risk: Risk, solver: type[Method]) -> "Training":
        """Return how a risk and a solver train for a measure."""
        if solver.direct or risk.name in measure.direct_risks:
            return cls.DIRECT
        if isinstance(measure, RankingMeasure):
            return cls.RANKING
        return cls.COST_AND_THRESHOLD if issubclass(solver, CostMethod) else cls.THRESHOLD


class Request(NamedTuple):
    """What the user asked for: names of risk and solver or "auto", `threshold`, options of the solver, class weights.

    `traits` are those of the penalty (`BoundedPenalty.traits`), and "base_scores" where these are given.
    """

    risk: str = "auto"
    solver: str = "auto"
    threshold: str = "auto"
    options: Mapping[str, Any] = {}
    class_weight: Any = None
    traits: frozenset[str] = PLAIN

    @property
    def smooth(self) -> bool:
        """Whether the penalty has a gradient everywhere."""
        return self.traits <= SMOOTH_TRAITS


class Choice(NamedTuple):
    """A risk and the solver that minimises it."""

    risk: Risk
    solver: type[Method]


class Plan(NamedTuple):
    """What will be trained.

    The threshold is chosen for `threshold_measure`. `fallback` is trained if the first fit is degenerate, and with `rival` also
    if it has found little; the better of the two on held-out rows is kept.
    """

    measure: Measure
    threshold_measure: Measure
    risk: Risk
    solver: type[Method]
    threshold: ThresholdRule
    fallback: Choice | None
    rival: bool
    reason: str

    @property
    def training(self) -> Training:
        """How the measure enters the training."""
        return Training.of(self.measure, self.risk, self.solver)

    def __str__(self) -> str:
        certified = "minimises" if self.solver.certified else "trains"
        text = f"{self.measure.name}: {self.solver.name} {certified} the {self.risk.name} risk because {self.reason}; "
        text += f"the measure is trained by {self.training.value}; {self.threshold.value}"
        if self.fallback is not None:
            case = "is weak or degenerate" if self.rival else "is degenerate"
            text += f"; if that fit {case}, {self.fallback.solver.name} also trains the {self.fallback.risk.name} risk"
        return text


def plan(request: Request, measure: Measure, shape: Shape) -> Plan:
    """Return what is trained for a measure on data of some shape.

    With risk and solver "auto": for F-beta and Jaccard `amp` if there are at least a hundred rows per feature (the evidence
    is in docs/direct_training.md). Otherwise the measure's first risk, and `cost_search` for count-based measures whose first
    risk it serves (all but accuracy), because over 17 data sets it was ahead of a tuned threshold in every measure
    (benchmarks/results/tuned_threshold.md). Otherwise the first solver that serves the risk: `newton` for the logistic loss and
    the squared hinge below a thousand features, `lbfgs` for smooth risks, `smoothed` for those that can be smoothed,
    `bundle_ocas` for the others. With one of the two given, the other is the first that fits; cutting planes take the risk that
    was made for the measure before others.
    """
    choice = _choice(request, measure, shape)
    threshold_measure = measure_of_threshold(measure, request.class_weight)
    fallback = _fallback(request, measure, choice, shape.features)
    rival = fallback is not None and measure.name in choice.solver.ample
    reason = "it was requested" if request.solver != "auto" else choice.solver.reason
    rule = _threshold_rule(request, choice, threshold_measure, shape)
    return Plan(measure, threshold_measure, choice.risk, choice.solver, rule, fallback, rival, reason)


def contenders(request: Request, risks: Sequence[str] | None, measure: Measure, shape: Shape) -> list[Plan]:
    """Return the plans that cross-validation compares: those of the risks that the user lists, or what "auto" may take.

    A fallback that is no rival stays in the first plan, for the case that the best of all is degenerate.
    """
    if risks is not None:
        if not risks or len(set(risks)) < len(risks):
            raise ValueError(f"risk={list(risks)!r} must be a name, or a list of one or more different names")
        return [plan(request._replace(risk=name), measure, shape)._replace(fallback=None) for name in risks]
    first = plan(request, measure, shape)
    if request.risk != "auto":
        return [first._replace(fallback=None)]
    if first.risk.name in measure.contenders:
        others = [get_risk(name, measure) for name in measure.contenders if name != first.risk.name]
        minimised = [each for each in others if request.solver == "auto" or first.solver.serves(each)]
        plans = [first, *(plan(request._replace(risk=each.name), measure, shape) for each in minimised)]
        return [each._replace(fallback=None) for each in plans]
    if first.fallback is not None and first.rival:
        second = first._replace(risk=first.fallback.risk, solver=first.fallback.solver, fallback=None)
        return [first._replace(fallback=None), second]
    return [first]


def measure_of_threshold(measure: Measure, class_weight: Any) -> Measure:
    """Return the measure of the threshold: class-weighted accuracy for rankings with class weights, else the own one."""
    if class_weight is None or not isinstance(measure, RankingMeasure) or isinstance(measure, AtKMeasure):
        return measure
    return get_measure("accuracy")


def solvers_for(risks: tuple[str, ...], measure: Measure | type[Measure] | None = None) -> tuple[str, ...]:
    """Return the solvers that support one of the risks, and train for the measure if one is given."""
    return tuple(
        name
        for name, solver in all_solvers().items()
        if any(solver.serves(all_risks()[risk]) for risk in risks) and (measure is None or solver.trains(measure))
    )


def _choice(request: Request, measure: Measure, shape: Shape) -> Choice:
    """Return risk and solver, either of which may be asked for by name."""
    risk, solver = request.risk, request.solver
    named = None if solver == "auto" else get_solver(solver)
    if named is not None and not named.takes(request.traits):
        unknown = " and ".join(repr(trait) for trait in sorted(request.traits) if not named.takes({trait}))
        raise ValueError(
            f"solver={solver!r} does not support {unknown}. Use solver='auto' or one of "
            f"{[name for name, each in all_solvers().items() if each.takes(request.traits)]}."
        )
    if named is not None and not named.trains(measure):
        raise ValueError(
            f"solver={solver!r} does not train for measure {measure.name!r}: it needs {named.trains_for}. "
            f"Use solver='auto' or one of {list(solvers_for(measure.risks, measure))}."
        )
    if risk == solver == "auto" and request.smooth and shape.rows >= AMPLE_ROWS_PER_FEATURE * shape.features:
        for each in all_solvers().values():
            if measure.name in each.ample:
                name = next(name for name in measure.risks if each.serves(get_risk(name, measure)))
                return Choice(get_risk(name, measure), each)
    candidates = list(measure.risks) if risk == "auto" else [risk]
    if named is not None and risk == "auto":
        candidates.sort(key=lambda name: name not in named.prefers or get_risk(name, measure).shift == "linear")
    for name in candidates:
        chosen = get_risk(name, measure)
        if named is None:
            found = _solver_for(chosen, measure, shape.features, risk == "auto", request.traits)
            if found is not None:
                return Choice(chosen, found)
        elif named.serves(chosen):
            return Choice(chosen, named)
    if named is None:
        kinds = [each for each in all_solvers().values() if each.takes(request.traits)]
        possible = [name for name, each in all_risks().items() if any(kind.serves(each) for kind in kinds)]
        raise ValueError(
            f"no solver minimises risk={candidates[0]!r} with {' and '.join(sorted(request.traits))}; solvers for such "
            f"penalties minimise {possible}. Use one of these risks, or penalty='l2' without bounds."
        )
    minimised = [name for name, r in all_risks().items() if named is not None and named.serves(r)]
    raise ValueError(
        f"solver={solver!r} does not minimise risk={candidates[0]!r}; it minimises {minimised}. "
        f"For that risk use solver='auto' or {list(solvers_for(tuple(candidates)))}."
    )


def _fallback(request: Request, measure: Measure, first: Choice, features: int) -> Choice | None:
    """Return what risk="auto" and solver="auto" train in addition to `first`: the first smooth risk of the measure.

    A hinge, over rows or pairs, can have a constant score as its optimum although features carry information, above all
    where one class is rare. The logistic loss then finds it. None where the user has named the risk or the solver, or given
    options that the other solver does not have, or where `first` has that risk already.
    """
    curved = next((get_risk(name, measure) for name in measure.risks if get_risk(name, measure).curved), None)
    if request.risk != "auto" or request.solver != "auto" or curved is None or curved.name == first.risk.name:
        return None
    other = _solver_for(curved, measure, features, True, request.traits)
    if other is None:
        return None
    return Choice(curved, other) if set(request.options) <= {"device", *other.options()} else None


def _solver_for(
    risk: Risk, measure: Measure, features: int, any_risk: bool, traits: frozenset[str]
) -> type[Method] | None:
    """Return the solver that "auto" takes for a risk and a penalty, None if there is none.

    `any_risk`: the risk was not named by the user.
    """
    order: list[str] = [When.PER_MEASURE] * any_risk
    order += [When.FEW_FEATURES] * (features < MAX_FEATURES)  # a constant feature may come
    order += [When.ALWAYS, When.FALLBACK]
    fitting = [s for s in all_solvers().values() if s.serves(risk) and s.trains(measure) and s.takes(traits)]
    return min((s for s in fitting if s.automatic in order), key=lambda s: order.index(s.automatic), default=None)


def _threshold_rule(request: Request, choice: Choice, measure: Measure, shape: Shape) -> ThresholdRule:
    """Return the source of the threshold.

    A model with many features gives its training rows far better scores than held-out rows. A threshold for training scores
    then calls too few held-out rows positive. On reuters-mfx (5439 rows, 8315 features) the Q-mean of `spade` was 0.67 with
    such a threshold, and 0.96 with one from held-out rows. A class with few rows has too few to hold out.
    """
    if request.threshold != "auto":
        rules = {"none": ThresholdRule.NONE, "holdout": ThresholdRule.HELD_OUT_ROWS}
        return rules.get(request.threshold, ThresholdRule.TRAINING_SCORES)
    counts = isinstance(measure, CountsBasedMeasure)
    if request.options.get("early_stopping"):
        return ThresholdRule.VALIDATION_ROWS if counts else ThresholdRule.TRAINING_SCORES
    if not counts or choice.solver.name == "moments":
        return ThresholdRule.TRAINING_SCORES
    if choice.solver.certified and choice.risk.curved and request.smooth:
        return ThresholdRule.LEAVE_ONE_OUT
    few_rows = shape.rows < FEW_ROWS_PER_FEATURE * shape.features
    if few_rows and shape.rarer >= FEWEST_ROWS_TO_HOLD_OUT:
        return ThresholdRule.HELD_OUT_ROWS
    return ThresholdRule.TRAINING_SCORES
