"""Plots of how a fit went."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from scoreline._optional import require

INK, ABOVE, BELOW, BAND = "#222222", "#c0392b", "#1f6fb2", "#e8e2d4"


def plot_convergence(
    history: Mapping[str, Sequence[float]], ax: Any = None, *, gap_ax: Any = None, x: str = "passes"
) -> Any:
    """Draw the objective and the lower bound closing in on each other, on a logarithmic scale.

    Parameters
    ----------
    history : dict
        `history_` of a fitted classifier.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.
    gap_ax : matplotlib Axes, optional
        Where to draw the proved gap in percent of the lower bound; left out by default.
    x : {"passes", "seconds", "iteration"}
        Horizontal axis.

    Returns
    -------
    matplotlib Axes
        The axes drawn on.
    """
    if ax is None:
        ax = require("matplotlib.pyplot", "plot", "plot_convergence").subplots(figsize=(6, 4))[1]
    across, above, below = (np.asarray(history[name], dtype=float) for name in (x, "objective", "lower_bound"))
    # One more point, so that the last step has a length.
    end = across[-1] + 0.04 * max(across[-1] - across[0], 1e-9)
    across, above, below = (np.append(a, last) for a, last in ((across, end), (above, above[-1]), (below, below[-1])))
    ax.fill_between(across, below, above, color=BAND, step="post", linewidth=0, label="not yet decided")
    ax.step(across, above, where="post", color=ABOVE, linewidth=1.8, label="objective of the best model so far")
    ax.step(across, below, where="post", color=BELOW, linewidth=1.8, label="proved: no linear model is below")
    ax.set_yscale("log")
    ax.set_ylim(max(below[-1] / 20.0, 1e-3 * above[-1]), 1.3 * above.max())
    ax.set_xlim(across[0], across[-1])
    _tidy(ax)
    if gap_ax is not None:
        proved = below > 0.0
        gap_ax.step(
            across[proved], 100.0 * (above - below)[proved] / below[proved], where="post", color=INK, linewidth=1.6
        )
        gap_ax.set_yscale("log")
        gap_ax.set_xlim(across[0], across[-1])
        _tidy(gap_ax)
    return ax


def _tidy(ax: Any) -> None:
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(colors=INK, labelsize=9)
    ax.grid(axis="y", color="#dddddd", linewidth=0.6)
    ax.set_axisbelow(True)
