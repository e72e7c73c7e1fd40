"""Zhang, Saha and Vishwanathan (2010): cutting planes need of the order of 1/eps iterations, and other methods do not."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from scoreline.io import hard_for_cutting_planes
from scoreline.report.palette import ABOVE, BELOW, INK, MODELS, MUTED
from studies.lower_bounds import PLANES, SMOOTHING, LowerBoundCase, gaps_of, proved
from studies.study import Cell, Claim, Findings, Study, Table

STYLES = {  # colour and width: curves of cutting planes lie upon each other, the wider ones below
    "bundle": ("#f1b5ae", 5.0), "bundle_ls": (ABOVE, 2.4), "bundle_ocas": (MODELS[2], 1.4), "smoothed": (BELOW, 1.8),
    "accelerated": (MODELS[0], 1.4),
}  # fmt: skip


class Zhang2010(Study):
    """The lower bounds of the paper, and of the later one with ROC area and break-even point."""

    name = "zhang2010"
    paper = "Zhang, Saha and Vishwanathan 2010, Lower bounds on rate of convergence of cutting plane methods"
    claim = "cutting planes need of the order of 1/eps iterations"

    @property
    def _n(self) -> int:
        return 30 if self.quick else 100

    @property
    def _eps(self) -> float:
        return 1e-2 if self.quick else 1e-3

    def cells(self) -> list[Cell]:
        """Return one cell for each theorem and solver."""
        most, found = 10 * self._n, []
        for example in hard_for_cutting_planes(self._n):
            for solver in (*PLANES, *SMOOTHING):
                key = f"{LowerBoundCase(example, {}, proved(example, most)).title}, {solver}"
                found.append(Cell(key, partial(_gaps, example, solver, most)))
        return found

    def findings(self, results: Mapping[str, Any]) -> Findings:
        """Return iterations to eps beside those that are proved, and the curves."""
        solvers, most, eps = [*PLANES, *SMOOTHING], 10 * self._n, self._eps
        rows, claims, cases = [], [], []
        for example in hard_for_cutting_planes(self._n):
            case = LowerBoundCase(example, {}, proved(example, most))
            gaps = {
                s: None if results[f"{case.title}, {s}"] is None else np.array(results[f"{case.title}, {s}"])
                for s in solvers
            }
            case = LowerBoundCase(example, gaps, case.proved)
            cases.append(case)
            least, needed = case.least(eps), {s: case.needed(s, eps) for s in solvers}
            cells = ["-" if gaps[s] is None else str(k) if k is not None else f"> {most}" for s, k in needed.items()]
            word = "about" if example.objective is None else ">="  # a limit, or a bound of every iterate
            bound = f"{word} {least}" if least else f"> {int(case.proved[0][-1])}"
            rows.append((case.title, bound, *cells))
            own = needed[example.solver]
            claims.append(
                Claim(
                    f"{case.title}: {example.solver} {'tends to' if example.objective is None else 'stays above'} its bound",
                    bound,
                    f"{own if own is not None else f'> {most}'} iterations",
                    case.holds,
                )
            )
        title = f"Iterations to a gap of {eps:g}, {self._n} rows (-: the risk has no smoothed version)"
        table = Table(title, ("theorem", "proved", *solvers), rows)
        return Findings([table], claims, {"curves": lambda figure: _curves(figure, cases)})


def _gaps(example: Any, solver: str, most: int) -> Any:
    gaps = gaps_of(example, solver, most)
    return None if gaps is None else gaps.tolist()


def _curves(figure: Any, cases: list[LowerBoundCase]) -> None:
    """Draw the gap of every solver against iterations, and the bound."""
    figure.set_size_inches(3.6 * len(cases), 3.4)
    for ax, case in zip(np.atleast_1d(figure.subplots(1, len(cases))), cases, strict=True):
        for solver, gaps in case.gaps.items():
            if gaps is not None:
                k = np.arange(1, len(gaps) + 1)
                colour, width = STYLES[solver]
                ax.plot(k, np.maximum(gaps, 1e-12), color=colour, linewidth=width, label=solver)
        ax.plot(*case.proved, color=INK, linewidth=1.0, linestyle=":", label="proved: not below")
        ax.set(xscale="log", yscale="log")
        ax.set_title(case.title.replace(": ", "\n"), fontsize=9)
        ax.set_xlabel("iteration", color=MUTED)
        ax.grid(color="#dddddd", linewidth=0.5)
    figure.axes[0].set_ylabel("J(w) - min J", color=MUTED)
    figure.axes[0].legend(frameon=False, fontsize=8)
