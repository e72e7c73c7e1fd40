"""How the proof closed in: objective, lower bound and gap."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from scoreline.report.axes import axes_for, label, legend, note, plain_log_ticks, tidy
from scoreline.report.curves import thin
from scoreline.report.palette import ABOVE, BAND, BELOW
from scoreline.report.plots import plot_convergence
from scoreline.report.wording import apart, clean, count, joined, number, percent
from scoreline.runtime.types import FloatArray

STEPS = 300  # of a history that are drawn, at most
ACROSS = {"passes": "passes over the data", "seconds": "seconds", "iteration": "iterations"}


class ConvergenceDisplay:
    """Objective and lower bound of a fit against passes or seconds.

    Parameters
    ----------
    history : dict of lists
        `history_` of a fitted classifier: iteration, seconds, passes, objective, lower_bound. May be empty.
    solver : str
        Name of the solver, for the sentence that says why there is no certificate.

    Attributes
    ----------
    history : dict of ndarray
        The history as arrays.
    has_certificate : bool
        False where the solver proves nothing, or nothing that can be drawn: then `plot` says so.
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn.
    """

    def __init__(self, history: Mapping[str, Sequence[float]], solver: str = ""):
        self.history: dict[str, FloatArray] = {
            name: np.asarray(values, dtype=float) for name, values in history.items()
        }
        self.solver = clean(solver)
        above = self.history.get("objective", np.empty(0))
        below = self.history.get("lower_bound", np.empty(0))
        # A logarithmic axis needs objectives above 0.
        self.has_certificate = bool(
            len(above) and len(above) == len(below) and (np.isfinite(above) & (above > 0.0)).all()
        )

    @classmethod
    def from_estimator(cls, clf: Any) -> "ConvergenceDisplay":
        """Return the display of a fitted classifier.

        Parameters
        ----------
        clf : MeasureClassifier
            A fitted classifier.

        Returns
        -------
        ConvergenceDisplay
            The display, also where the solver gives no certificate.
        """
        proved = getattr(clf, "objective_", None) is not None
        return cls(getattr(clf, "history_", {}) if proved else {}, getattr(clf, "solver_", ""))

    @property
    def gap(self) -> FloatArray:
        """The proved gap as a share of the lower bound; infinite where nothing is proved yet."""
        return _relative(self.history)

    def describe(self) -> str:
        """Return what the figure shows, in numbers."""
        if len(self.history.get("objective", ())) and not self.has_certificate:
            return "The objective went down to 0, or was not finite: a logarithmic axis cannot show it."
        if not self.has_certificate:
            which = f"The solver {self.solver}" if self.solver else "This solver"
            return f"{which} gives no certificate: it does not minimise one objective, so there is no gap to show."
        above, below, passes = (self.history[name] for name in ("objective", "lower_bound", "passes"))
        low, high = apart(float(below[-1]), float(above[-1]))
        text = (
            f"After {count(passes[-1], 'pass', 'passes')} over the data the objective fell from {number(above[0])} to "
            f"{high} and the lower bound rose to {low}"
        )
        last = self.gap[-1]
        return f"{text}: a gap of {percent(last)}." if np.isfinite(last) else f"{text}: nothing above 0 is proved."

    def plot(self, ax: Any = None, *, x: str = "passes", legend_at: str | None = None) -> "ConvergenceDisplay":
        """Draw objective and lower bound.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        x : {"passes", "seconds", "iteration"}
            Horizontal axis.
        legend_at : {"below", "best", "none"}, optional
            Place of the legend: below a figure of its own, else the best place in the axes.

        Returns
        -------
        ConvergenceDisplay
            The display, with ax_ and figure_.
        """
        given = ax is not None
        self._begin(ax, x)
        if not self.has_certificate:
            empty = len(self.history.get("objective", ())) == 0
            note(
                self.ax_,
                "no certificate:\nthis solver bounds no objective" if empty else "no picture:\nthe objective is 0",
            )
            return self
        history = self._thinned(x)
        history["lower_bound"] = np.maximum(history["lower_bound"], 1e-300)  # what is not above 0 is below the picture
        plot_convergence(history, self.ax_, x=x)  # type: ignore[arg-type]
        tidy(self.ax_)
        plain_log_ticks(self.ax_.yaxis, *self.ax_.get_ylim())
        label(self.ax_, ACROSS[x], "objective J, logarithmic")
        words = {ABOVE: "best model so far", BELOW: "proved: no linear model is below", BAND: "not yet decided"}
        entries = [(line, words[str(line.get_color())]) for line in self.ax_.get_lines()]
        entries.append((self.ax_.collections[0], words[BAND]))
        legend(self.ax_, entries, legend_at, given)
        return self

    def describe_gap(self) -> str:
        """Return what the figure of the gap shows, in numbers."""
        known = np.flatnonzero(np.isfinite(self.gap)) if self.has_certificate else np.empty(0, dtype=int)
        if len(known) == 0:
            return "No lower bound above 0 was proved, so there is no gap to show."
        reached = [f"{100.0 * share:g} % after {self._passes_to(share)}" for share in (1.0, 0.1, 0.01, 0.001)
                   if self._passes_to(share)]  # fmt: skip
        text = f"The gap in percent of the lower bound ended at {percent(self.gap[-1])}"
        return f"{text}; it was below {joined(reached)}." if reached else f"{text}."

    def _passes_to(self, share: float) -> str:
        there = np.flatnonzero(self.gap <= share)
        return count(self.history["passes"][there[0]], "pass", "passes") if len(there) else ""

    def plot_gap(
        self, ax: Any = None, *, x: str = "passes", tol: float | None = None, legend_at: str | None = None
    ) -> "ConvergenceDisplay":
        """Draw the proved gap in percent of the lower bound.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        x : {"passes", "seconds", "iteration"}
            Horizontal axis.
        tol : float, optional
            The gap that was asked for, drawn as a line.
        legend_at : {"below", "best", "none"}, optional
            Place of the legend: below a figure of its own, else the best place in the axes.

        Returns
        -------
        ConvergenceDisplay
            The display, with ax_ and figure_.
        """
        given = ax is not None
        self._begin(ax, x)
        if not (self.has_certificate and np.isfinite(self.gap).any()):
            note(self.ax_, "no gap to show:\nno lower bound above 0")
            return self
        history = self._thinned(x)
        across, gap = history[x], 100.0 * _relative(history)
        shown = np.isfinite(gap)
        # A gap of exactly 0 has no place on a logarithmic axis: it stays at the bottom.
        across, gap = across[shown], np.maximum(gap[shown], 1e-10)
        end = across[-1] + (0.04 * (across[-1] - history[x][0]) or max(1.0, across[-1]))
        (line,) = self.ax_.step(
            np.append(across, end), np.append(gap, gap[-1]), where="post", color=BELOW, linewidth=1.8
        )
        entries = [(line, "proved: J may fall by no more than this")]
        # Millions of percent at the beginning say nothing: the picture ends at ten times the bound.
        low, high = float(gap.min()), min(float(gap.max()), max(1000.0, 10.0 * float(gap[-1])))
        if tol is not None:
            line = self.ax_.axhline(100.0 * tol, color=ABOVE, linewidth=1.2, dashes=(4.0, 2.0))
            entries.append((line, f"asked for: {100.0 * tol:g} %"))
            low, high = min(low, 100.0 * tol), max(high, 100.0 * tol)
        self.ax_.set_yscale("log")
        self.ax_.set_ylim(low / 2.0, high * 2.0)
        self.ax_.set_xlim(history[x][0], end)
        tidy(self.ax_)
        plain_log_ticks(self.ax_.yaxis, low / 2.0, high * 2.0)
        label(self.ax_, ACROSS[x], "gap in % of the bound, logarithmic")
        legend(self.ax_, entries, legend_at, given)
        return self

    def _begin(self, ax: Any, x: str) -> None:
        if x not in ACROSS:
            raise ValueError(f"x={x!r} must be one of {list(ACROSS)}")
        self.ax_ = axes_for(ax, "ConvergenceDisplay")
        self.figure_ = self.ax_.figure

    def _thinned(self, x: str) -> dict[str, FloatArray]:
        above = np.log(self.history["objective"])
        below = np.log(np.maximum(self.history["lower_bound"], 1e-3 * self.history["objective"][-1]))
        places = thin(STEPS, self.history[x], above, below)
        return {name: values[places] for name, values in self.history.items() if len(values) == len(above)}


def _relative(history: dict[str, FloatArray]) -> FloatArray:
    above, below = history["objective"], history["lower_bound"]
    gap = np.full(len(above), np.inf)
    return np.divide(np.maximum(above - below, 0.0), below, out=gap, where=below > 0.0)
