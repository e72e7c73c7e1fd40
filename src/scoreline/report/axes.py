"""What all figures share: axes, ticks, legends and notes."""

from collections.abc import Sequence
from typing import Any

from scoreline.report.palette import GRID, INK, MUTED
from scoreline.runtime.optional import require

SIZE = 9.5  # of letters
WIDTH, HEIGHT = 4.3, 3.5  # inches; no wider, so that letters can be read where a phone shows the whole width


def axes_for(ax: Any, purpose: str, height: float = HEIGHT) -> Any:
    """Return the axes to draw on: those given, or those of a new figure."""
    if ax is not None:
        return ax
    pyplot = require("matplotlib.pyplot", "plot", purpose)
    return pyplot.subplots(figsize=(WIDTH, height), layout="constrained")[1]


def tidy(ax: Any, grid: str = "y") -> None:
    """Take away what does not inform: two spines, the grid of the other direction, heavy ticks."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(MUTED)
    ax.spines[["left", "bottom"]].set_linewidth(0.8)
    ax.tick_params(colors=INK, labelsize=SIZE - 0.5, length=3.0, width=0.8)
    ax.grid(False)
    ax.grid(axis=grid, color=GRID, linewidth=0.6)
    ax.set_axisbelow(True)


def label(ax: Any, across: str, up: str) -> None:
    """Name both axes; a dollar sign in a name is no formula."""
    for text in (ax.set_xlabel(across), ax.set_ylabel(up)):
        text.set(fontsize=SIZE, color=INK, parse_math=False)


def legend(ax: Any, entries: Sequence[tuple[Any, str]], where: str | None, given: bool) -> None:
    """Draw a legend: "below" the figure (the default for a figure of our own), "best" place in the axes, or "none"."""
    where = where or ("best" if given else "below")
    if where not in ("below", "best", "none"):
        raise ValueError(f"legend={where!r} must be 'below', 'best' or 'none'")
    if where == "none" or not entries:
        return
    handles = [handle for handle, _ in entries]
    blank = ["x"] * len(entries)  # set below: matplotlib leaves out labels that begin with an underscore
    look = {"frameon": False, "fontsize": SIZE - 0.5, "labelcolor": INK, "handlelength": 2.2, "borderaxespad": 0.4}
    if where == "below":
        drawn = ax.figure.legend(handles, blank, loc="outside lower left", **look)
    else:
        drawn = ax.legend(handles, blank, loc="best", **look)
    for text, (_, words) in zip(drawn.get_texts(), entries, strict=True):
        text.set(text=words, parse_math=False)


def note(ax: Any, words: str) -> None:
    """Say in the axes why there is nothing to draw."""
    ax.set_axis_off()
    ax.text(
        0.5, 0.5, words, transform=ax.transAxes, ha="center", va="center", color=MUTED, fontsize=SIZE + 1, parse_math=False
    )  # fmt: skip


def plain_log_ticks(axis: Any, low: float, high: float) -> None:
    """Label a logarithmic axis with plain numbers: 1, 2, 5 within few decades, else powers of ten."""
    ticker = require("matplotlib.ticker", "plot", "a logarithmic axis")
    few = high / low < 1000.0
    axis.set_major_locator(ticker.LogLocator(base=10.0, subs=(1.0, 2.0, 5.0) if few else (1.0,), numticks=8))
    axis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_locator(ticker.NullLocator())
