"""The features that move the score most."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from scoreline.report.axes import label, note, tidy
from scoreline.report.display import Display
from scoreline.report.palette import ABOVE, BELOW, INK
from scoreline.report.wording import count, joined, number, shorten
from scoreline.runtime.types import FloatArray


class WeightsDisplay(Display):
    """The largest weights of a linear model, with the names of their features.

    Made by `from_estimator`; `plot` draws it.

    Parameters
    ----------
    weights : ndarray
        Weights by falling size.
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
            Weights at most; those that are 0 are left out.

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
        size = np.abs(weights)
        top = np.argpartition(-size, k - 1)[:k] if len(size) > k else np.arange(len(size))
        top = top[np.lexsort((top, -size[top]))]  # among equals the first column first
        top = top[size[top] > 0.0]
        labels = [f"x{j}" if names is None else str(names[j]) for j in top]
        return cls(weights[top], labels, len(weights), column_scale is not None)

    def describe(self) -> str:
        """Return what the figure shows, in numbers."""
        if len(self.weights) == 0:
            return f"All {count(self.total, 'weight')} are 0: the model gives every row the same score."
        unit = " per standard deviation of the column" if self.scaled else ""
        first = [f"{shorten(n, 60)} ({number(w)})" for n, w in zip(self.names[:3], self.weights[:3], strict=True)]
        which = "The only weight" if self.total == 1 else f"Of {count(self.total, 'weight')} the largest"
        verb = "is" if len(first) == 1 else "are"
        return f"{which}{unit} {verb} {joined(first)}. A positive weight speaks for the positive class."

    def _draw(self, ax: Any) -> list[tuple[Any, str]]:
        """Draw the weights as bars."""
        if len(self.weights) == 0:
            note(ax, "all weights are 0:\nevery row has the same score")
            return []
        place = np.arange(len(self.weights))
        colours = np.where(self.weights > 0.0, ABOVE, BELOW)
        bars = ax.barh(place, self.weights, height=0.66, color=colours, alpha=0.85, linewidth=0)
        # A dollar sign in a name is no formula.
        ax.set_yticks(place, [shorten(name, 24) for name in self.names], parse_math=False)
        room = max(0.0, 0.5 * (4 - len(place)))  # bars of one height, however few
        ax.set_ylim(len(place) - 0.4 + room, -0.6 - room)
        ax.axvline(0.0, color=INK, linewidth=0.8)
        tidy(ax, "x")
        ax.tick_params(axis="y", length=0.0)
        ax.locator_params(axis="x", nbins=5)
        label(ax, "weight times std. deviation" if self.scaled else "weight, in units of the column", "")
        words = ((True, "for the positive class"), (False, "against it"))
        entries = [(bars[int(np.argmax((self.weights > 0.0) == up))], text) for up, text in words
                   if ((self.weights > 0.0) == up).any()]  # fmt: skip
        return entries

    @property
    def height(self) -> float:
        """Inches that a figure of it needs."""
        return 1.3 + 0.23 * max(4, len(self.weights))
