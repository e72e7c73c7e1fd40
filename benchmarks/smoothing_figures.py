"""The figures of benchmarks/smoothing.py."""

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

COLOURS = {"smoothed": "#c0392b", "accelerated": "#8e6fb8", "paper": "#1f6fb2", "paper + our products": "#7fb2d9"}
MEASURES = {"roc_area": "AUC", "prbep": "PRBEP"}


def _tidy(ax):
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(axis="y", color="#dddddd", linewidth=0.6)
    ax.set_axisbelow(True)


def draw_curves(curves, title, path):
    """curves[risk][side] = rows of (seconds, J, measure on test rows)."""
    fig, axes = plt.subplots(len(curves), 2, figsize=(10.5, 3.8 * len(curves)), squeeze=False, layout="constrained")
    for (left, right), (risk, sides) in zip(axes, curves.items(), strict=True):
        best = min(value for rows in sides.values() for _, value, _ in rows)
        for side, rows in sides.items():
            seconds, objective, test = np.array(rows).T
            above = np.minimum.accumulate(objective) / best - 1.0
            left.plot(seconds, np.maximum(above, 1e-6), color=COLOURS[side], label=side)
            right.plot(seconds, test, color=COLOURS[side], label=side)
        left.set(xscale="log", yscale="log", xlabel="seconds", ylabel="J / best J - 1", ylim=(1e-5, None))
        right.set(xscale="log", xlabel="seconds", ylabel=f"{MEASURES[risk]}, test rows")
        for level in (1e-2, 1e-3):
            left.axhline(level, color="#888888", linewidth=0.8, linestyle=":")
        for ax in (left, right):
            _tidy(ax)
        left.set_title(f"{MEASURES[risk]}: {title}", fontsize=11, loc="left")
    axes[0, 0].legend(frameon=False, fontsize=9)
    fig.savefig(path, dpi=110)
    plt.close(fig)


def draw_mu(curves, title, path):
    """curves[risk][c_mu or None] = rows of (seconds, J / J* - 1)."""
    fig, axes = plt.subplots(1, len(curves), figsize=(5.25 * len(curves), 4), squeeze=False, layout="constrained")
    for ax, (risk, runs) in zip(axes[0], curves.items(), strict=True):
        for c_mu, rows in runs.items():
            seconds, above = np.array(rows).T
            label = "automatic" if c_mu is None else f"mu = {c_mu:g} eps / D, fixed"
            ax.plot(seconds, np.maximum(above, 1e-6), label=label, linewidth=2.2 if c_mu is None else 1.2)
        ax.set(xscale="log", yscale="log", xlabel="seconds", ylabel="J / J* - 1", ylim=(1e-6, None))
        ax.set_title(f"{MEASURES[risk]}: {title}", fontsize=11, loc="left")
        _tidy(ax)
    axes[0, 0].legend(frameon=False, fontsize=9)
    fig.savefig(path, dpi=110)
    plt.close(fig)


def draw_growth(sizes, times, slopes, path):
    """times[risk] = seconds to the certificate for each number of rows; slopes[risk] = fitted exponent."""
    fig, ax = plt.subplots(figsize=(5.5, 4), layout="constrained")
    for risk, seconds in times.items():
        ax.plot(sizes, seconds, "o-", label=f"{MEASURES[risk]}: time grows as n^{slopes[risk]:.2f}")
    ax.set(xscale="log", yscale="log", xlabel="rows", ylabel="seconds to a proof of 1 %")
    ax.legend(frameon=False, fontsize=9)
    _tidy(ax)
    fig.savefig(path, dpi=110)
    plt.close(fig)
