"""Drawing of figures: axes, ticks, legends, notes, and `Display`, the base class of all figures."""

from abc import ABC, abstractmethod
from typing import Any, TypeAlias

import numpy as np

from scoreline.report.palette import GRID, INK, MUTED
from scoreline.runtime.optional import require
from scoreline.runtime.types import AnyArray, IntArray

FONT_SIZE = 9.5
WIDTH, HEIGHT = 4.3, 3.5  # inches; narrow enough to be readable on a phone
LegendEntries: TypeAlias = list[tuple[Any, str]]  # (artist, label)


class Display(ABC):
    """A figure with the arrays that it shows; a subclass implements `_draw` and `describe`.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn last.
    """

    ax_: Any
    figure_: Any

    @property
    def height(self) -> float:
        """Height of a new figure, in inches."""
        return HEIGHT

    @abstractmethod
    def describe(self) -> str:
        """Return a caption with the main numbers of the figure."""

    @abstractmethod
    def _draw(self, ax: Any, *args: Any, **options: Any) -> LegendEntries:
        """Draw, and return the entries of the legend."""

    def plot(self, ax: Any = None, *, legend_at: str | None = None, **options: Any) -> Any:
        """Draw the figure.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        legend_at : {"below", "best", "none"}, optional
            Place of the legend. By default it is below a new figure, and at the best place in given axes.
        **options : dict
            Options of the class.

        Returns
        -------
        Display
            The display itself, with ax_ and figure_.
        """
        place = legend_at or ("below" if ax is None else "best")
        if ax is None:
            pyplot = require("matplotlib.pyplot", "plot", type(self).__name__)
            ax = pyplot.subplots(figsize=(WIDTH, self.height), layout="constrained")[1]
        self.ax_, self.figure_ = ax, ax.figure
        legend(ax, self._draw(ax, **options), place)
        return self


def tidy(ax: Any, grid: str = "y") -> None:
    """Remove clutter: two spines, the grid of the other direction, heavy ticks."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set(color=MUTED, linewidth=0.8)
    ax.tick_params(colors=INK, labelsize=FONT_SIZE - 0.5, length=3.0, width=0.8)
    ax.grid(False)
    ax.grid(axis=grid, color=GRID, linewidth=0.6)
    ax.set_axisbelow(True)


def label(ax: Any, across: str, up: str) -> None:
    """Label both axes; a dollar sign in a label does not start a formula."""
    for text in (ax.set_xlabel(across), ax.set_ylabel(up)):
        text.set(fontsize=FONT_SIZE, color=INK, parse_math=False)


def legend(ax: Any, entries: LegendEntries, where: str) -> None:
    """Draw a legend "below" the figure or at the "best" place in the axes, or "none"."""
    if where not in ("below", "best", "none"):
        raise ValueError(f"legend={where!r} must be 'below', 'best' or 'none'")
    if where == "none" or not entries:
        return
    handles = [handle for handle, _ in entries]
    blank = ["x"] * len(entries)  # replaced below, because matplotlib ignores labels that begin with an underscore
    look = {"frameon": False, "fontsize": FONT_SIZE - 0.5, "labelcolor": INK, "handlelength": 2.2, "borderaxespad": 0.4}
    if where == "below":
        drawn = ax.figure.legend(handles, blank, loc="outside lower left", **look)
    else:
        drawn = ax.legend(handles, blank, loc="best", **look)
    for text, (_, words) in zip(drawn.get_texts(), entries, strict=True):
        text.set(text=words, parse_math=False)


def note(ax: Any, words: str) -> LegendEntries:
    """Write into the axes why there is nothing to draw; return an empty legend."""
    ax.set_axis_off()
    look = {"ha": "center", "va": "center", "color": MUTED, "fontsize": FONT_SIZE + 1, "parse_math": False}
    ax.text(0.5, 0.5, words, transform=ax.transAxes, **look)
    return []


def plain_log_ticks(axis: Any, low: float, high: float) -> None:
    """Label a logarithmic axis with plain numbers: 1, 2, 5 within few decades, else powers of ten."""
    ticker = require("matplotlib.ticker", "plot", "a logarithmic axis")
    few = high / low < 1000.0
    axis.set_major_locator(ticker.LogLocator(base=10.0, subs=(1.0, 2.0, 5.0) if few else (1.0,), numticks=8))
    axis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_locator(ticker.NullLocator())


def thin(limit: int, *columns: AnyArray) -> IntArray:
    """Return at most limit + 2 places of a curve, evenly spaced along its length, with both ends."""
    n = len(columns[0])
    if n <= limit:
        return np.arange(n)
    length = np.zeros(n)
    for column in columns:
        span = float(np.ptp(column))
        if span > 0.0:
            length[1:] += np.cumsum(np.abs(np.diff(column)) / span)
    places = np.searchsorted(length, np.linspace(0.0, length[-1], limit))
    return np.unique(np.concatenate([[0], np.minimum(places, n - 1), [n - 1]]))
