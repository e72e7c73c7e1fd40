"""What serves what: the tables behind `list_measures`, `list_solvers` and the choice of "auto"."""

import logging
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from scoreline.measures import Measure, all_measures
from scoreline.risks.base import Risk
from scoreline.risks.registry import all_risks, get_risk
from scoreline.runtime.types import FloatArray
from scoreline.solvers.common.hessian import MAX_FEATURES
from scoreline.solvers.common.method import Method
from scoreline.solvers.registry import all_solvers, get_solver

logger = logging.getLogger("scoreline")

AMPLE = 100  # rows a feature


class MeasureInfo(NamedTuple):
    """A measure: name, what it is, its range, the risks and solvers that train it, whether it is for research only."""

    name: str
    summary: str
    range: tuple[float, float]
    risks: tuple[str, ...]
    solvers: tuple[str, ...]
    research: bool


class SolverInfo(NamedTuple):
    """A solver: name, what it does, the risks and measures it serves, what alpha means, whether it is for research only."""

    name: str
    summary: str
    risks: tuple[str, ...]
    measures: tuple[str, ...]
    alpha: str
    research: bool


def list_measures() -> list[MeasureInfo]:
    """Return what can be trained for.

    Returns
    -------
    list of MeasureInfo
        One per measure.

    Examples
    --------
    >>> from scoreline import list_measures
    >>> [info.name for info in list_measures()][:3]
    ['accuracy', 'average_precision', 'balanced_accuracy']
    """
    return [
        MeasureInfo(m.name, m.summary, m.range, m.risks, _solvers_for(m.risks, m), m.research)
        for m in all_measures().values()
    ]


def list_solvers() -> list[SolverInfo]:
    """Return how it can be trained.

    Returns
    -------
    list of SolverInfo
        One per solver.

    Examples
    --------
    >>> from scoreline import list_solvers
    >>> [info.name for info in list_solvers()][:5]
    ['accelerated', 'amp', 'bundle', 'bundle_ls', 'bundle_ocas']
    """
    table = []
    for solver in all_solvers().values():
        risks = tuple(name for name, risk in all_risks().items() if solver.serves(risk))
        measures = tuple(m.name for m in all_measures().values() if set(m.risks) & set(risks) and solver.trains(m))
        summary = (solver.__doc__ or "").strip().splitlines()[0]
        table.append(SolverInfo(solver.name, summary, risks, measures, solver.alpha_means, solver.research))
    return table


def choose(measure: Measure, risk: str, solver: str, shape: tuple[float, int]) -> tuple[Risk, type[Method]]:
    """Return the risk and the solver for a measure, either of which may be "auto".

    `shape` is the number of rows, each counted as often as its weight says (`counted_rows`), and of features.

    With both "auto": for F-beta and Jaccard `amp` if there are at least a hundred rows a feature (docs/choose.md has the
    evidence). Otherwise the measure's first risk, and `cost_search` for measures of counts whose first risk it serves (all but
    accuracy), because over 17 data sets it was ahead of a tuned threshold in every measure
    (benchmarks/results/tuned_threshold.md). Otherwise the first solver that serves the risk: `newton` for the logistic loss and
    the squared hinge below a thousand features, `lbfgs` for smooth risks, `smoothed` for those that can be smoothed,
    `bundle_ocas` for the others. With one of the two given, the other is the first that fits; cutting planes take the risk that
    was made for the measure before others.
    """
    solver_class = None if solver == "auto" else get_solver(solver)
    if solver_class is not None and not solver_class.trains(measure):
        raise ValueError(
            f"solver={solver!r} does not train for measure {measure.name!r}: it needs {solver_class.trains_for}. "
            f"Use solver='auto' or one of {list(_solvers_for(measure.risks, measure))}."
        )
    if risk == solver == "auto" and shape[0] >= AMPLE * shape[1]:
        for each in all_solvers().values():
            if measure.name in each.ample:
                served = next(name for name in measure.risks if each.serves(get_risk(name, measure)))
                logger.info(
                    "solver='auto': %s with risk %s for measure %s: %s", each.name, served, measure.name, each.reason
                )
                return get_risk(served, measure), each
    candidates = list(measure.risks) if risk == "auto" else [risk]
    if solver_class is not None and risk == "auto":
        candidates.sort(key=lambda name: name not in solver_class.prefers or get_risk(name, measure).shift == "linear")
    for name in candidates:
        chosen = get_risk(name, measure)
        if solver_class is None:
            return _taken(chosen, _solver_for(chosen, measure, shape[1], risk == "auto"), measure)
        if solver_class.serves(chosen):
            return chosen, solver_class
    minimised = [name for name, r in all_risks().items() if solver_class is not None and solver_class.serves(r)]
    raise ValueError(
        f"solver={solver!r} does not minimise risk={candidates[0]!r}; it serves {minimised}. "
        f"For that risk use solver='auto' or {list(_solvers_for(tuple(candidates)))}."
    )


class Alternative(NamedTuple):
    """What "auto" may train as well: where the first fit is degenerate, and with `rival` also where it has found little."""

    risk: Risk
    solver: type[Method]
    rival: bool


def alternative(
    measure: Measure,
    risk: str | Sequence[str],
    solver: str,
    options: Iterable[str],
    first: tuple[Risk, type[Method]],
    p: int,
) -> Alternative | None:
    """Return what risk="auto" and solver="auto" train beside `first`: the first smooth risk of the measure.

    A hinge, over rows or pairs, can have a constant score as its optimum although features carry information, above all
    where one class is rare. The logistic loss then finds it. Where `first` was taken for ample rows, neither is always ahead:
    they are rivals, and the measure on held-out rows decides. None where the user has named the risk or the solver, or given
    options that the other solver does not have, or where `first` has that risk already.
    """
    served = next((get_risk(name, measure) for name in measure.risks if get_risk(name, measure).curved), None)
    if risk != "auto" or solver != "auto" or served is None or served.name == first[0].name:
        return None
    other = _solver_for(served, measure, p, True)
    if not set(options) <= {"device", *other.options()}:
        return None
    return Alternative(served, other, measure.name in first[1].ample)


def counted_rows(n: int, weight: FloatArray | None) -> float:
    """Return the number of rows, each counted as often as its weight says: weights equal repeated rows."""
    return float(n if weight is None else weight.sum())


def _solver_for(risk: Risk, measure: Measure, p: int, any_risk: bool) -> type[Method]:
    """Return the solver that "auto" takes for a risk and p features; `any_risk`: the risk was not named by the user."""
    narrow = p < MAX_FEATURES  # a constant feature may come
    allowed = ("measure",) * any_risk + ("narrow",) * narrow + ("always", "otherwise")
    fitting = [s for s in all_solvers().values() if s.serves(risk) and s.trains(measure)]
    return min((s for s in fitting if s.automatic in allowed), key=lambda s: allowed.index(s.automatic))


def _taken(risk: Risk, solver: type[Method], measure: Measure) -> tuple[Risk, type[Method]]:
    logger.info(
        "solver='auto': %s with risk %s for measure %s: %s", solver.name, risk.name, measure.name, solver.reason
    )
    return risk, solver


def _solvers_for(risks: tuple[str, ...], measure: Any = None) -> tuple[str, ...]:
    """Return the solvers that serve one of the risks (and train for the measure, if one is given)."""
    return tuple(
        name
        for name, solver in all_solvers().items()
        if any(solver.serves(all_risks()[risk]) for risk in risks) and (measure is None or solver.trains(measure))
    )
