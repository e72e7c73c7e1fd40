"""Displays of a fitted model: convergence and gap, the largest weights, and the choice of alpha."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from scoreline.report.axes import Display, LegendEntries, label, note, plain_log_ticks, thin, tidy
from scoreline.report.palette import ABOVE, BAND, BELOW, GRID, INK, MUTED
from scoreline.report.wording import clean, count, distinct_digits, joined, number, percent, shorten
from scoreline.runtime.optional import require
from scoreline.runtime.types import FloatArray

DRAWN_STEPS = 300  # at most; more cannot be told apart
X_LABELS = {"passes": "passes over the data", "seconds": "seconds", "iteration": "iterations"}


class ConvergenceDisplay(Display):
    """Objective and lower bound of a fit.

    `plot(x="passes")` draws them against passes over the data; x may also be "seconds" or "iteration".

    Parameters
    ----------
    history : dict of lists
        `history_` of a fitted classifier: iteration, seconds, passes, objective, lower_bound. May be empty.
    solver : str
        Name of the solver, for the sentence that says why there is no certificate.
    tol : float, optional
        The requested gap, as a share of the lower bound.

    Attributes
    ----------
    history : dict of ndarray
        The history as arrays.
    gap : ndarray
        The duality gap as a share of the lower bound; infinite as long as nothing is proved.
    has_certificate : bool
        Whether there is a certificate that can be drawn; without one, `plot` shows a note.
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn.
    """

    def __init__(self, history: Mapping[str, Sequence[float]], solver: str = "", tol: float | None = None):
        self.history = {name: np.asarray(values, dtype=float) for name, values in history.items()}
        self.solver, self.tol = clean(solver), tol
        above, below = (self.history.get(name, np.empty(0)) for name in ("objective", "lower_bound"))
        # A logarithmic axis needs objectives above 0.
        drawable = len(above) == len(below) and bool((np.isfinite(above) & (above > 0.0)).all())
        self.has_certificate = drawable and len(above) > 0
        gap = np.full(len(above), np.inf)
        self.gap = np.divide(above - below, below, out=gap, where=below > 0.0).clip(min=0.0) if drawable else gap

    @classmethod
    def from_estimator(cls, clf: Any) -> Any:
        """Return the display of a fitted classifier.

        Parameters
        ----------
        clf : MeasureClassifier
            A fitted classifier.

        Returns
        -------
        ConvergenceDisplay or GapDisplay
            The display, even if the solver gives no certificate.
        """
        proved = getattr(clf, "objective_", None) is not None
        return cls(
            getattr(clf, "history_", {}) if proved else {}, getattr(clf, "solver_", ""), getattr(clf, "tol", None)
        )

    def describe(self) -> str:
        """Return a caption with the main numbers."""
        if not self.has_certificate and len(self.gap):
            return "The objective went down to 0, or was not finite: a logarithmic axis cannot show it."
        if not self.has_certificate:
            which = f"The solver {self.solver}" if self.solver else "This solver"
            return f"{which} gives no certificate: it does not minimise one objective, so there is no gap to show."
        above, below, passes = (self.history[name] for name in ("objective", "lower_bound", "passes"))
        low, high = distinct_digits(float(below[-1]), float(above[-1]))
        text = (
            f"After {count(passes[-1], 'pass', 'passes')} over the data the objective fell from {number(above[0])} to "
            f"{high} and the lower bound rose to {low}"
        )
        last = self.gap[-1]
        return f"{text}: a gap of {percent(last)}." if np.isfinite(last) else f"{text}: nothing above 0 is proved."

    def _draw(self, ax: Any, x: str = "passes") -> LegendEntries:
        if not self.has_certificate:
            empty = len(self.gap) == 0
            return note(
                ax, "no certificate:\nthis solver gives no lower bound" if empty else "no plot:\nthe objective is 0"
            )
        across, above, below, _ = self._steps(x)
        below = np.maximum(below, 1e-300)  # a logarithmic axis has no place for 0
        band = ax.fill_between(across, below, above, color=BAND, step="post", linewidth=0)
        (best,) = ax.step(across, above, where="post", color=ABOVE, linewidth=1.8)
        (bound,) = ax.step(across, below, where="post", color=BELOW, linewidth=1.8)
        limits = max(below[-1] / 20.0, 1e-3 * above[-1]), 1.3 * above.max()
        _set_axes(ax, x, (across[0], across[-1]), limits, "objective J, logarithmic")
        return [(best, "best model so far"), (bound, "proved: no linear model is below"), (band, "not yet decided")]

    def _steps(self, x: str) -> list[FloatArray]:
        """Return x, objective, lower bound and gap of the steps to draw; the last value is repeated to give it a length."""
        if x not in X_LABELS:
            raise ValueError(f"x={x!r} must be one of {list(X_LABELS)}")
        across, above, below = (self.history[name] for name in (x, "objective", "lower_bound"))
        keep = thin(DRAWN_STEPS, across, np.log(above), np.log(np.maximum(below, 1e-3 * above[-1])))
        end = across[-1] + (0.04 * (across[-1] - across[0]) or max(1.0, across[-1]))
        steps = (across, end), (above, above[-1]), (below, below[-1]), (self.gap, self.gap[-1])
        return [np.append(values[keep], last) for values, last in steps]


class GapDisplay(ConvergenceDisplay):
    """The duality gap of a fit in percent of the lower bound, and the requested gap.

    Parameters, attributes and the option `x` of `plot` are those of ConvergenceDisplay.
    """

    def describe(self) -> str:
        """Return a caption with the main numbers."""
        if not (self.has_certificate and np.isfinite(self.gap).any()):
            return "No lower bound above 0 was proved, so there is no gap to show."
        reached = []
        for share in (1.0, 0.1, 0.01, 0.001):
            steps = np.flatnonzero(self.gap <= share)
            if len(steps):
                reached.append(f"{100.0 * share:g} % after {count(self.history['passes'][steps[0]], 'pass', 'passes')}")
        text = f"The gap in percent of the lower bound ended at {percent(self.gap[-1])}"
        return f"{text}; it was below {joined(reached)}." if reached else f"{text}."

    def _draw(self, ax: Any, x: str = "passes") -> LegendEntries:
        if not (self.has_certificate and np.isfinite(self.gap).any()):
            return note(ax, "no gap to show:\nno lower bound above 0")
        across, _, _, gap = self._steps(x)
        sides = across[0], across[-1]
        # A gap of exactly 0 is drawn at the bottom of the logarithmic axis.
        across, gap = across[np.isfinite(gap)], np.maximum(100.0 * gap[np.isfinite(gap)], 1e-10)
        (line,) = ax.step(across, gap, where="post", color=BELOW, linewidth=1.8)
        entries = [(line, "proved: J may fall by no more than this")]
        # A gap of millions of percent at the beginning is cut off at ten times the bound.
        low, high = float(gap.min()), min(float(gap.max()), max(1000.0, 10.0 * float(gap[-1])))
        if self.tol is not None:
            wanted = 100.0 * self.tol
            line = ax.axhline(wanted, color=ABOVE, linewidth=1.2, dashes=(4.0, 2.0))
            entries.append((line, f"requested: {wanted:g} %"))
            low, high = min(low, wanted), max(high, wanted)
        _set_axes(ax, x, sides, (low / 2.0, high * 2.0), "gap in % of the bound, logarithmic")
        return entries


def _set_axes(ax: Any, x: str, sides: tuple[float, float], limits: tuple[float, float], up: str) -> None:
    ax.set_yscale("log")
    ax.set_ylim(*limits)
    ax.set_xlim(*sides)
    tidy(ax)
    plain_log_ticks(ax.yaxis, *limits)
    label(ax, X_LABELS[x], up)


class WeightsDisplay(Display):
    """The largest weights of a linear model, with the names of their features.

    Made by `from_estimator`; `plot` draws it.

    Parameters
    ----------
    weights : ndarray
        Weights in decreasing order of size.
    names : list of str
        Names of their features.
    total : int
        Features of the model.
    scaled : bool
        Whether weights are per standard deviation of the column, which makes them comparable.
    """

    def __init__(self, weights: FloatArray, names: Sequence[str], total: int, scaled: bool):
        if len(weights) != len(names):
            raise ValueError(f"{len(weights)} weights have {len(names)} names")
        self.weights, self.names = np.asarray(weights, dtype=float), [str(name) for name in names]
        self.total, self.scaled = total, scaled

    @classmethod
    def from_estimator(
        cls, clf: Any, *, names: Sequence[str] | None = None, column_scale: Any = None, k: int = 15
    ) -> "WeightsDisplay":
        """Return the display of a fitted linear classifier.

        Parameters
        ----------
        clf : classifier
            With coef_ of shape (1, p).
        names : sequence of p str, optional
            Names of the features; by default `feature_names_in_`, or x0, x1 and so on.
        column_scale : array of p numbers, optional
            Standard deviations of the columns, which weights are multiplied by.
        k : int
            Largest number of weights; weights of 0 are never shown.

        Returns
        -------
        WeightsDisplay
            The display.
        """
        weights = np.asarray(clf.coef_, dtype=float).ravel()
        if column_scale is not None:
            scale = np.asarray(column_scale, dtype=float).ravel()
            if scale.shape != weights.shape:
                raise ValueError(f"column_scale has {scale.size} numbers for {weights.size} features")
            weights = weights * scale
        if names is None:
            names = getattr(clf, "feature_names_in_", None)
        if names is not None and len(names) != len(weights):
            raise ValueError(f"names has {len(names)} names for {len(weights)} features")
        top = np.argsort(-np.abs(weights), kind="stable")[:k]
        top = top[weights[top] != 0.0]
        labels = [f"x{j}" if names is None else str(names[j]) for j in top]
        return cls(weights[top], labels, len(weights), column_scale is not None)

    @property
    def height(self) -> float:
        """Height of a new figure, in inches."""
        return 1.3 + 0.23 * max(4, len(self.weights))

    def describe(self) -> str:
        """Return a caption with the main numbers."""
        if len(self.weights) == 0:
            return f"All {count(self.total, 'weight')} are 0: the model gives every row the same score."
        unit = " per standard deviation of the column" if self.scaled else ""
        first = [f"{shorten(n, 60)} ({number(w)})" for n, w in zip(self.names[:3], self.weights[:3], strict=True)]
        which = "The only weight" if self.total == 1 else f"Of {count(self.total, 'weight')} the largest"
        verb = "is" if len(first) == 1 else "are"
        return f"{which}{unit} {verb} {joined(first)}. A positive weight favours the positive class."

    def _draw(self, ax: Any) -> LegendEntries:
        if len(self.weights) == 0:
            return note(ax, "all weights are 0:\nevery row has the same score")
        place, positive = np.arange(len(self.weights)), self.weights > 0.0
        colours = np.where(positive, ABOVE, BELOW)
        bars = ax.barh(place, self.weights, height=0.66, color=colours, alpha=0.85, linewidth=0)
        # A dollar sign in a name does not start a formula.
        ax.set_yticks(place, [shorten(name, 24) for name in self.names], parse_math=False)
        room = max(0.0, 0.5 * (4 - len(place)))  # the height of a bar does not depend on their number
        ax.set_ylim(len(place) - 0.4 + room, -0.6 - room)
        ax.axvline(0.0, color=INK, linewidth=0.8)
        tidy(ax, "x")
        ax.tick_params(axis="y", length=0.0)
        ax.locator_params(axis="x", nbins=5)
        label(ax, "weight times std. deviation" if self.scaled else "weight, in units of the column", "")
        sides = (positive, "for the positive class"), (~positive, "against it")
        return [(bars[int(np.argmax(side))], words) for side, words in sides if side.any()]


def plot_alpha_path(clf: Any, ax: Any = None) -> Any:
    """Draw the measure on held-out rows against alpha: the mean with its standard error, the folds, and the chosen alpha.

    Parameters
    ----------
    clf : MeasureClassifierCV
        A fitted search.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib Axes
        The axes drawn on.
    """
    if ax is None:
        ax = require("matplotlib.pyplot", "plot", "plot_alpha_path").subplots(figsize=(6, 4))[1]
    table = clf.cv_results_
    by_alpha = np.argsort(table["alpha"], kind="stable")
    several = len(set(table["risk"])) > 1
    for name in sorted(set(table["risk"]) - {clf.risk_}) if several else ():
        places = by_alpha[table["risk"][by_alpha] == name]
        style = {"color": MUTED, "linewidth": 1.2, "linestyle": "--", "zorder": 2}
        ax.plot(table["alpha"][places], table["mean_test_score"][places], label=f"risk {name}", **style)
    places = by_alpha[table["risk"][by_alpha] == clf.risk_] if several else by_alpha
    alphas, means = table["alpha"][places], table["mean_test_score"][places]
    folds = [table[name][places] for name in sorted(table) if name.startswith("split")]
    errors = table["std_test_score"][places] / np.sqrt(len(folds))
    for values in folds:
        ax.plot(alphas, values, color=GRID, linewidth=1.0, zorder=1)
    words = "one standard error of the mean"
    ax.fill_between(alphas, means - errors, means + errors, color=BAND, linewidth=0, zorder=0, label=words)
    words = f"mean of {len(folds)} folds" + (f", risk {clf.risk_}" if several else "")
    ax.plot(alphas, means, color=ABOVE, linewidth=1.8, marker="o", markersize=4, label=words)
    ax.axvline(clf.alpha_, color=INK, linewidth=0.8, linestyle="--")
    chosen = clf.alpha_, means[np.flatnonzero(alphas == clf.alpha_)[0]]
    ax.annotate(f"alpha {clf.alpha_:.3g}", chosen, (4, 6), textcoords="offset points", color=INK, fontsize=9)
    ax.set_xscale("log")
    measure = clf.measure if isinstance(clf.measure, str) else clf.measure.name
    label(ax, "alpha, the strength of the penalty", f"{measure} of held-out rows")
    ax.legend(frameon=False, fontsize=9)
    tidy(ax)
    return ax
