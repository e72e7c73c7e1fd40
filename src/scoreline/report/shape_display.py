"""Figures of the functions of an additive model: a step function of one column, or a heat map of a pair."""

from typing import Any

import numpy as np

from scoreline.features.shapes import ShapeFunction, spread
from scoreline.report.axes import Display, LegendEntries, label, tidy
from scoreline.report.palette import ABOVE, GRID, INK
from scoreline.report.wording import number, shorten

MOST_TICKS = 6
BAND_ERRORS = 2.0  # standard errors of the jackknife on either side


class ShapeDisplay(Display):
    """What a column, or a pair of columns, adds to the score of an additive model.

    Made by `from_estimator`; `plot` draws it. A column is drawn as a step function over its bins, in their order. Bars show
    the share of the training rows in each bin, and a band is two standard errors wide on either side, if these are known. A
    pair is drawn as a heat map of its cells.

    Parameters
    ----------
    shape : ShapeFunction
        The function.
    """

    def __init__(self, shape: ShapeFunction):
        self.shape = shape

    @classmethod
    def from_estimator(cls, clf: Any, column: int = 0, X: Any = None, y: Any = None) -> "ShapeDisplay":
        """Return the display of a fitted classifier with features="additive" or "pairs".

        Parameters
        ----------
        clf : MeasureClassifier
            The classifier.
        column : int
            Place in the list of `shape_functions()`: 0 is the most important function.
        X, y : training rows and their labels, optional
            With them the display has a band of two standard errors, by the jackknife of `shape_functions`.
        """
        return cls(clf.shape_functions(X, y, bands=X is not None)[column])

    def describe(self) -> str:
        """Return a caption with the main numbers."""
        shape = self.shape
        used = shape.scores[shape.counts > 0.0]
        low, high = float(used.min(initial=0.0)), float(used.max(initial=0.0))
        return (
            f"{shorten(shape.name, 60)} adds {number(low)} to {number(high)} to the score, with a standard deviation of "
            f"{number(spread(shape.scores, shape.counts))}. Values above 0 favour the positive class."
        )

    def _draw(self, ax: Any) -> LegendEntries:
        return self._draw_pair(ax) if len(self.shape.columns) == 2 else self._draw_column(ax)

    def _draw_column(self, ax: Any) -> LegendEntries:
        shape = self.shape
        shown = np.flatnonzero(shape.counts > 0.0)
        place = np.arange(len(shown))
        rows = ax.twinx()
        bars = rows.bar(place, shape.counts[shown] / shape.counts.sum(), width=1.0, color=GRID, linewidth=0)
        rows.set_ylim(0.0, 4.0 * float((shape.counts[shown] / shape.counts.sum()).max(initial=1e-9)))
        rows.set_axis_off()
        ax.set_zorder(rows.get_zorder() + 1)
        ax.patch.set_visible(False)
        line = ax.step(place, shape.scores[shown], where="mid", color=ABOVE, linewidth=1.8)[0]
        band = []
        if shape.errors is not None:
            reach = BAND_ERRORS * shape.errors[shown]
            low, high = shape.scores[shown] - reach, shape.scores[shown] + reach
            drawn = ax.fill_between(place, low, high, step="mid", color=ABOVE, alpha=0.2, linewidth=0)
            band = [(drawn, f"{BAND_ERRORS:.0f} standard errors")]
        ax.axhline(0.0, color=INK, linewidth=0.8)
        tidy(ax)
        ticks = np.unique(np.linspace(0, len(shown) - 1, min(MOST_TICKS, len(shown))).astype(int))
        words = [shorten(shape.labels[0][shown[k]], 16) for k in ticks]
        ax.set_xticks(ticks, words, rotation=20, ha="right", parse_math=False)
        label(ax, shorten(shape.name, 40), "added to the score")
        return [(line, "added to the score"), *band, (bars[0], "share of the rows")]

    def _draw_pair(self, ax: Any) -> LegendEntries:
        shape = self.shape
        reach = max(float(np.abs(shape.scores[shape.counts > 0.0]).max(initial=0.0)), 1e-300)
        values = np.where(shape.counts > 0.0, shape.scores, np.nan)
        image = ax.imshow(values, origin="lower", aspect="auto", cmap="RdBu", vmin=-reach, vmax=reach)
        ax.figure.colorbar(image, ax=ax, label="added to the score")
        for axis, words in ((ax.yaxis, shape.labels[0]), (ax.xaxis, shape.labels[1])):
            ticks = np.unique(np.linspace(0, len(words) - 1, min(MOST_TICKS, len(words))).astype(int))
            axis.set_ticks(ticks, [shorten(words[k], 14) for k in ticks], parse_math=False, fontsize=7)
        label(ax, shorten(shape.columns[1], 40), shorten(shape.columns[0], 40))
        return []
