"""Which risks and solvers support a measure: the tables of `list_measures` and `list_solvers`."""

from typing import NamedTuple

from scoreline.fitting.plan import solvers_for
from scoreline.measures import all_measures
from scoreline.risks.registry import all_risks
from scoreline.solvers.registry import all_solvers


class MeasureInfo(NamedTuple):
    """A measure: name, what it is, its range, the risks and solvers that train it, whether it is for research only."""

    name: str
    summary: str
    range: tuple[float, float]
    risks: tuple[str, ...]
    solvers: tuple[str, ...]
    research: bool


class SolverInfo(NamedTuple):
    """A solver: name, what it does, the risks, measures and penalties it supports, and what alpha means.

    `penalties`: "l2", "weights" (per feature, and an intercept without penalty), "elastic_net", "group", "bounds".
    """

    name: str
    summary: str
    risks: tuple[str, ...]
    measures: tuple[str, ...]
    alpha: str
    penalties: tuple[str, ...]
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
        MeasureInfo(m.name, m.summary, m.range, m.risks, solvers_for(m.risks, m), m.research)
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
        table.append(
            SolverInfo(solver.name, summary, risks, measures, solver.alpha_means, solver.penalties, solver.research)
        )
    return table
