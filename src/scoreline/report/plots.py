"""Plots of how a fit went, and of its scores."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from scoreline.report.palette import ABOVE, BAND, BELOW, GRID, INK, MUTED
from scoreline.runtime.optional import require


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
    # One more point, so that the last step has a length; a fit that took no step has nothing else.
    end = across[-1] + (0.04 * (across[-1] - across[0]) or max(1.0, across[-1]))
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


def plot_alpha_path(clf: Any, ax: Any = None) -> Any:
    """Draw the measure of left-out rows against alpha: means with a standard error either way, folds, and the choice.

    Parameters
    ----------
    clf : MeasureClassifierCV
        Fitted.
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
    several = len(set(table["risk"])) > 1
    for name in sorted(set(table["risk"]) - {clf.risk_}) if several else ():
        there = np.flatnonzero(table["risk"] == name)
        there = there[np.argsort(table["alpha"][there])]
        style = {"color": MUTED, "linewidth": 1.2, "linestyle": "--", "zorder": 2}
        ax.plot(table["alpha"][there], table["mean_test_score"][there], label=f"risk {name}", **style)
    own = np.flatnonzero(table["risk"] == clf.risk_) if several else np.arange(len(table["alpha"]))
    order = own[np.argsort(table["alpha"][own])]
    alphas, means = table["alpha"][order], table["mean_test_score"][order]
    folds = [table[name][order] for name in sorted(table) if name.startswith("split")]
    errors = table["std_test_score"][order] / np.sqrt(len(folds))
    for values in folds:
        ax.plot(alphas, values, color=GRID, linewidth=1.0, zorder=1)
    ax.fill_between(
        alphas,
        means - errors,
        means + errors,
        color=BAND,
        linewidth=0,
        zorder=0,
        label="one standard error of the mean",
    )
    label = f"mean of {len(folds)} folds" + (f", risk {clf.risk_}" if several else "")
    ax.plot(alphas, means, color=ABOVE, linewidth=1.8, marker="o", markersize=4, label=label)
    chosen = int(np.flatnonzero(alphas == clf.alpha_)[0])
    ax.axvline(clf.alpha_, color=INK, linewidth=0.8, linestyle="--")
    ax.annotate(
        f"alpha {clf.alpha_:.3g}",
        (clf.alpha_, means[chosen]),
        (4, 6),
        textcoords="offset points",
        color=INK,
        fontsize=9,
    )
    ax.set_xscale("log")
    ax.set_xlabel("alpha, the strength of the penalty", color=INK)
    measure = clf.measure if isinstance(clf.measure, str) else clf.measure.name
    ax.set_ylabel(f"{measure} of rows left out", color=INK)
    ax.legend(frameon=False, fontsize=9)
    _tidy(ax)
    return ax


def _tidy(ax: Any) -> None:
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(colors=INK, labelsize=9)
    ax.grid(axis="y", color=GRID, linewidth=0.6)
    ax.set_axisbelow(True)


def plot_score_distributions(scores: Any, y: Any, ax: Any = None, *, positive: Any = 1, bins: int = 80) -> Any:
    """Draw the distribution of the scores of both classes, each with the normal distribution of its mean and variance.

    What `solver="moments"` rests on: it sees means and variances alone.

    Parameters
    ----------
    scores : array of n numbers
        `decision_function(X)`.
    y : array of n labels
        Classes.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.
    positive : label
        The positive class.
    bins : int
        Bars of the histograms.

    Returns
    -------
    matplotlib Axes
        The axes drawn on.
    """
    if ax is None:
        ax = require("matplotlib.pyplot", "plot", "plot_score_distributions").subplots(figsize=(6, 4))[1]
    scores, is_positive = np.asarray(scores, dtype=float), np.asarray(y) == positive
    if scores.shape != is_positive.shape or not is_positive.any() or is_positive.all():
        raise ValueError(f"scores of shape {scores.shape} and y of shape {is_positive.shape} must be of both classes")
    ends = np.array([np.quantile(scores[side], [0.001, 0.999]) for side in (is_positive, ~is_positive)])
    low, high = ends[:, 0].min(), ends[:, 1].max()
    edges = np.linspace(low, high, bins + 1)
    across = np.linspace(low, high, 400)
    for label, side, colour in (("negative", ~is_positive, BELOW), ("positive", is_positive, ABOVE)):
        own = scores[side]
        ax.hist(own, edges, density=True, color=colour, alpha=0.35, linewidth=0, label=f"{label} rows")
        deviation = own.std(ddof=1) if len(own) > 1 else 0.0
        if deviation > 0.0:
            density = np.exp(-0.5 * ((across - own.mean()) / deviation) ** 2) / (deviation * np.sqrt(2.0 * np.pi))
            ax.plot(across, density, color=colour, linewidth=1.8, label=f"normal of the {label}")
    ax.set(xlabel="score", ylabel="density")
    ax.legend(frameon=False, fontsize=9)
    _tidy(ax)
    return ax
