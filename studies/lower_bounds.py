"""The lower bounds of Zhang, Saha and Vishwanathan (2010, 2012): how many iterations cutting planes need, and others do not."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from scoreline.io import HardExample
from scoreline.objective import Objective
from scoreline.operators import as_operator
from scoreline.risks import ContingencyRisk, HingeRisk, PrbepRisk, RocAreaRisk
from scoreline.runtime.types import FloatArray
from scoreline.solvers import AcceleratedSolver, BundleLineSearchSolver, BundleOcasSolver, BundleSolver, SmoothedSolver

PLANES: dict[str, Any] = {"bundle": BundleSolver, "bundle_ls": BundleLineSearchSolver, "bundle_ocas": BundleOcasSolver}
SMOOTHING: dict[str, Any] = {"smoothed": SmoothedSolver, "accelerated": AcceleratedSolver}
RISKS: dict[str, Any] = {"prbep": PrbepRisk, "roc_area": RocAreaRisk, "hinge": HingeRisk}
WORDS = {"prbep": "break-even point", "roc_area": "ROC area", "hinge": "hinge", "contingency": "F1"}
NEAR = 0.05  # a limit is reached up to this share
LEAST = 1e-12  # a gap below this counts as none
LINE_SEARCH_RATE = 1.0 / 8.0  # k times the gap of bundle_ls tends to it; the paper prints 1/4


@dataclass(frozen=True)
class LowerBoundCase:
    """One counter-example: the gaps of every solver after each iteration (None where it cannot), and what is proved."""

    example: HardExample
    gaps: dict[str, FloatArray | None]
    proved: tuple[FloatArray, FloatArray]

    @property
    def title(self) -> str:
        """What is minimised, and where the theorem is."""
        kind = "line search, " if self.example.solver == "bundle_ls" else ""
        return f"{kind}{WORDS[self.example.risk]}: {self.example.name}"

    def least(self, eps: float) -> int | None:
        """Return the iterations that the theorem says are needed for a gap of eps; None: more than it speaks of."""
        k, gap = self.proved
        arrived = k[gap <= eps]
        return int(arrived[0]) if len(arrived) else None

    def needed(self, solver: str, eps: float) -> int | None:
        """Return the iterations that a solver took to a gap of eps; None: it was not run, or did not get there."""
        found = self.gaps[solver]
        arrived = np.flatnonzero(found <= eps) if found is not None else np.zeros(0)
        return int(arrived[0]) + 1 if len(arrived) else None

    @property
    def holds(self) -> bool:
        """Whether the solver that the theorem is about stays above its bound in every iteration, or tends to its limit."""
        found, (k, gap) = self.gaps[self.example.solver], self.proved
        assert found is not None
        if self.example.objective is None:
            return bool(abs(len(found) * found[-1] / LINE_SEARCH_RATE - 1.0) < NEAR)
        within = k[k <= len(found)]
        return bool(np.all(found[within - 1] >= (1.0 - 1e-6) * gap[: len(within)] - LEAST))


def risk_of(example: HardExample, name: str) -> Any:
    """Return the risk of an example: for cutting planes with the ties of the theorem, for others as it is."""
    if name in SMOOTHING:
        return RISKS[example.risk]()
    if example.measure:
        return ContingencyRisk(example.measure, ties="smallest")
    return RISKS[example.risk](ties="smallest")


def gaps_of(example: HardExample, name: str, most: int) -> FloatArray | None:
    """Return the smallest J(w_1..k) - min J after each iteration k, or None if the solver cannot minimise this risk.

    Step by step, because the history of `Solver.solve` has the start w_0 among the best: on two of the examples that is
    better than all that follow. `bundle_ocas` never leaves its best point, w_0 included.
    """
    if name in SMOOTHING and example.risk not in RISKS:
        return None
    options = {"zero_plane": False} if name in ("bundle", "bundle_ocas") else {}
    solver = (PLANES | SMOOTHING)[name](**options)
    objective = Objective(as_operator(example.X), risk_of(example, name).prepare(example.y), example.alpha)
    found = []
    for state in solver.iterates(objective, example.w0):
        w = state.best_w if name == "bundle_ocas" else state.w
        found.append(objective.value(w) - example.optimum)
        if found[-1] <= LEAST or len(found) >= most:
            break
    return np.minimum.accumulate(found)


def proved(example: HardExample, most: int) -> tuple[Any, Any]:
    """Return iterations and the gap that the theorem proves for them; for the line search it is a limit, from k = 4 on."""
    if example.objective is None:
        k = np.arange(4, most + 1)
        return k, LINE_SEARCH_RATE / k
    k = np.arange(1, example.steps + 1)
    return k, np.array([example.objective(int(i)) for i in k]) - example.optimum
