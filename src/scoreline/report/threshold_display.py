"""The measure against the threshold: what another cut would have given."""

from typing import Any

import numpy as np

from scoreline.measures import CountsBasedMeasure, Cut, Measure, best_cut, get_measure
from scoreline.measures.base import ratio
from scoreline.report.axes import label, tidy
from scoreline.report.curves import POINTS, above_zero, check_scores, check_truth, levels_of, score_window, thin
from scoreline.report.display import Display
from scoreline.report.palette import INK, MODELS, MUTED
from scoreline.report.wording import clean, number, rate
from scoreline.runtime.types import FloatArray


class ThresholdDisplay(Display):
    """A measure of counts as a function of the threshold; for rankings precision, recall and F1.

    Made by `from_predictions` or `from_estimator`; `plot` draws it. The classifier's own cut is at 0, since its intercept
    holds the threshold.

    Parameters
    ----------
    thresholds : ndarray
        Rising; rows with a score above one are called positive. The first is below all scores.
    values : dict of str to ndarray
        Name and value at each threshold.
    at_cut : dict of str to float
        The values at the cut, 0.
    best : Cut or None
        The best threshold for `main` on these rows, and its value.
    main : str
        The name in `values` that `best` belongs to.
    window : tuple of float
        The thresholds worth showing.
    """

    def __init__(
        self,
        thresholds: FloatArray,
        values: dict[str, FloatArray],
        at_cut: dict[str, float],
        best: Cut | None,
        main: str,
        window: tuple[float, float],
    ):
        self.thresholds, self.values, self.at_cut = thresholds, values, at_cut
        self.best, self.main, self.window = best, main, window

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        scores: Any,
        *,
        measure: str | Measure = "f1",
        measure_params: dict[str, Any] | None = None,
        pos_label: Any = None,
    ) -> "ThresholdDisplay":
        """Return the display of scores; one sort, and one evaluation of the counts at all different scores.

        Parameters
        ----------
        y_true : array of n labels
            The truth.
        scores : array of n numbers
            Decision values, cut at 0.
        measure : str or Measure
            A measure of counts; for any other, precision, recall and F1 are shown.
        measure_params : dict, optional
            Parameters of a measure given by name.
        pos_label : label, optional
            The positive class; None means y_true > 0.

        Returns
        -------
        ThresholdDisplay
            The display.
        """
        truth = check_truth(y_true, pos_label)
        z = check_scores(scores, len(truth))
        chosen = get_measure(measure, measure_params)
        judged: Measure = chosen if isinstance(chosen, CountsBasedMeasure) else get_measure("f1")
        at = levels_of(truth, z)
        # A threshold at a score leaves that score out: each level holds the rows above the next higher one.
        tp, fp = (np.append(c[::-1], 0.0) for c in (at.tp, at.fp))
        below = at.scores[-1] - max(1.0, float(np.ptp(at.scores)))
        thresholds = np.append(below, at.scores[::-1])
        curves = _functions(judged, isinstance(chosen, CountsBasedMeasure))
        counts = tp, fp, at.positives - tp, at.negatives - fp
        zero = above_zero(truth, z)
        at_zero = tuple(np.array([c]) for c in (*zero, at.positives - zero[0], at.negatives - zero[1]))
        values = {name: np.asarray(function(*counts), dtype=float) for name, function in curves.items()}
        at_cut = {name: float(np.asarray(function(*at_zero))[0]) for name, function in curves.items()}
        try:
            best = best_cut(truth, z, judged)
        except ValueError:  # NaN at every threshold
            best = None
        window = score_window(truth, z, (0.0,) if best is None else (0.0, best.threshold))
        return cls(thresholds, values, at_cut, best, next(reversed(values)), window)

    @classmethod
    def from_estimator(cls, clf: Any, X: Any, y: Any) -> "ThresholdDisplay":
        """Return the display of a fitted classifier on (X, y), for its own measure.

        Parameters
        ----------
        clf : MeasureClassifier
            A fitted classifier.
        X : array of shape (n, p)
            Rows.
        y : array of n labels
            Their classes.

        Returns
        -------
        ThresholdDisplay
            The display.
        """
        return cls.from_predictions(
            y, clf.decision_function(X), measure=clf.measure, measure_params=clf.measure_params, pos_label=clf.classes_[1]
        )  # fmt: skip

    def describe(self) -> str:
        """Return what the figure shows, in numbers."""
        shown = ", ".join(f"{clean(name)} {rate(value)}" for name, value in self.at_cut.items())
        if self.best is None:
            return f"At the chosen cut: {shown}. No threshold has a value on these rows."
        return (
            f"At the chosen cut (0): {shown}. The best threshold for these rows, known only afterwards, is "
            f"{number(self.best.threshold)} with {clean(self.main)} {rate(self.best.value)}."
        )

    def _draw(self, ax: Any) -> list[tuple[Any, str]]:
        """Draw the values against the threshold."""
        low, high = self.window
        inside = np.flatnonzero((self.thresholds > low) & (self.thresholds < high))
        # One more on the left, so that the curve reaches the edge; the right edge is the end of the last step.
        first = max(0, (inside[0] if len(inside) else np.searchsorted(self.thresholds, high)) - 1)
        picked = np.append(first, inside[inside > first]).astype(np.intp)
        entries, drawn = [], []
        colours = (MODELS[0],) if len(self.values) == 1 else (MODELS[1], MODELS[2], MODELS[0])
        for (name, values), colour in zip(self.values.items(), colours, strict=True):
            x, y = np.maximum(self.thresholds[picked], low), values[picked]
            x, y = x[np.isfinite(y)], y[np.isfinite(y)]
            if len(x) == 0:
                continue
            keep = thin(POINTS, x, y)
            x, y = np.append(x[keep], high), np.append(y[keep], y[-1])
            width = 2.0 if name == self.main else 1.3
            dashes = {} if name == self.main else {"dashes": (5.0, 1.6) if colour == MODELS[1] else (1.4, 1.4)}
            (line,) = ax.plot(x, y, drawstyle="steps-post", color=colour, linewidth=width, **dashes)
            entries.append((line, clean(name)))
            drawn.append(y)
        self._mark(ax, entries, drawn)
        ax.set_xlim(low, high)
        _set_height(ax, drawn)
        tidy(ax)
        label(ax, "threshold (the chosen cut is 0)", clean(self.main) if len(self.values) == 1 else "value")
        return entries

    def _mark(self, ax: Any, entries: list[tuple[Any, str]], drawn: list[FloatArray]) -> None:
        value = self.at_cut[self.main]
        if self.window[0] <= 0.0 <= self.window[1]:
            ax.axvline(0.0, color=INK, linewidth=1.0, dashes=(4.0, 2.0))
        handle = ax.plot(0.0, value, "o", color=INK, markersize=5.5, markeredgecolor="white", zorder=5)[0]
        outside = "" if self.window[0] <= 0.0 <= self.window[1] else " (outside the picture)"
        entries.append((handle, f"chosen cut{outside}: {clean(self.main)} {rate(value)}"))
        drawn.append(np.array([value] if np.isfinite(value) and not outside else []))
        if self.best is not None:
            place = self.best.threshold, self.best.value
            handle = ax.plot(*place, "D", color=MODELS[3], markersize=8.0, markeredgecolor="white", zorder=4)[0]
            entries.append((handle, f"best afterwards: {clean(self.main)} {rate(self.best.value)}"))
            drawn.append(np.array([self.best.value]))
        if not any(len(y) for y in drawn):
            ax.text(0.5, 0.5, "not defined on these rows", transform=ax.transAxes, ha="center", color=MUTED)


def _functions(measure: Any, alone: bool) -> dict[str, Any]:
    """Return what is drawn, the main one last: it lies on top."""
    if alone:
        return {measure.name: measure.from_counts}
    return {
        "precision": lambda tp, fp, fn, tn: ratio(tp, tp + fp),
        "recall": lambda tp, fp, fn, tn: ratio(tp, tp + fn),
        "f1": measure.from_counts,
    }


def _set_height(ax: Any, drawn: list[FloatArray]) -> None:
    """Show the whole of 0 to 1 where values use it, else what they use."""
    values = np.concatenate(drawn) if drawn else np.empty(0)
    values = values[np.isfinite(values)]  # a function of the user's may be infinite
    if len(values) == 0:
        return
    low, high = float(values.min()), float(values.max())
    if 0.0 <= low < 0.5 and 0.3 <= high <= 1.0:
        ax.set_ylim(0.0, 1.04)
        return
    pad = 0.06 * (high - low) or max(0.05, 0.05 * abs(high))
    ax.set_ylim(low - pad, high + pad)
