"""The scores of both classes: where they lie, and what share of positives they stand for."""

from typing import Any

import numpy as np

from scoreline.report.axes import label, tidy
from scoreline.report.curves import check_scores, check_truth, levels_of, score_window, wilson
from scoreline.report.display import Display
from scoreline.report.palette import ABOVE, BELOW, INK, MODELS, MUTED
from scoreline.report.wording import count, joined, number, percent, shorten
from scoreline.runtime.types import FloatArray

FEW = 10  # rows of a class that are drawn one by one


class ScoreDistributionDisplay(Display):
    """Histograms of the scores of both classes, on the same bins, each as shares of its class.

    Made by `from_predictions` or `from_estimator`; `plot` draws it. A class of fewer than ten rows is drawn row by row.

    Parameters
    ----------
    positive_scores, negative_scores : ndarray
        Scores of either class.
    edges : ndarray
        Edges of the bins; scores beyond them are not drawn.
    class_names : tuple of str
        Names of the negative and the positive class.
    """

    def __init__(
        self,
        positive_scores: FloatArray,
        negative_scores: FloatArray,
        edges: FloatArray,
        class_names: tuple[str, str] = ("negative", "positive"),
    ):
        self.positive_scores, self.negative_scores, self.edges = positive_scores, negative_scores, edges
        self.class_names = class_names

    @classmethod
    def from_predictions(
        cls, y_true: Any, scores: Any, *, pos_label: Any = None, class_names: Any = ("negative", "positive")
    ) -> "ScoreDistributionDisplay":
        """Return the display of scores.

        Parameters
        ----------
        y_true : array of n labels
            The truth.
        scores : array of n numbers
            Decision values, cut at 0.
        pos_label : label, optional
            The positive class; None means y_true > 0.
        class_names : pair of str
            Names of the negative and the positive class.

        Returns
        -------
        ScoreDistributionDisplay
            The display.
        """
        truth = check_truth(y_true, pos_label)
        z = check_scores(scores, len(truth))
        low, high = score_window(truth, z, (0.0,))
        smaller, larger = sorted((int(np.count_nonzero(truth)), int(np.count_nonzero(~truth))))
        bins = int(np.clip(4.0 * (smaller if smaller >= FEW else larger) ** (1.0 / 3.0), 12, 60))
        names = str(class_names[0]), str(class_names[1])
        return cls(z[truth], z[~truth], np.linspace(low, high, bins + 1), names)

    @classmethod
    def from_estimator(cls, clf: Any, X: Any, y: Any) -> "ScoreDistributionDisplay":
        """Return the display of a fitted classifier on (X, y).

        Parameters
        ----------
        clf : classifier
            With decision_function and two classes_.
        X : array of shape (n, p)
            Rows.
        y : array of n labels
            Their classes.

        Returns
        -------
        ScoreDistributionDisplay
            The display.
        """
        return cls.from_predictions(
            y, clf.decision_function(X), pos_label=clf.classes_[1], class_names=tuple(clf.classes_)
        )

    def describe(self) -> str:
        """Return what the figure shows, in numbers."""
        parts = []
        for name, z in zip(self.class_names, (self.negative_scores, self.positive_scores), strict=True):
            named = shorten(name, 40)
            if len(z) == 0:
                parts.append(f"no row of class {named}")
                continue
            above = f"{np.count_nonzero(z > 0.0):,} of {count(len(z), 'row')} of class {named}"
            parts.append(f"{above} (median score {number(float(np.median(z)))})")
        text = f"Above the cut: {joined(parts)}."
        everything = np.concatenate([self.negative_scores, self.positive_scores])
        hidden = int(np.count_nonzero((everything < self.edges[0]) | (everything > self.edges[-1])))
        tail = f" {count(hidden, 'row')} beyond the edges {'is' if hidden == 1 else 'are'} not drawn." if hidden else ""
        return text + tail

    def _draw(self, ax: Any) -> list[tuple[Any, str]]:
        """Draw the histograms and the cut."""
        entries = []
        rugs = []
        sides = (self.negative_scores, BELOW), (self.positive_scores, ABOVE)
        for name, (z, colour) in zip(self.class_names, sides, strict=True):
            words = f"class {shorten(name, 24)} ({count(len(z), 'row')})"
            if len(z) >= FEW:
                share = 100.0 * np.histogram(z, self.edges)[0] / len(z)
                ax.stairs(share, self.edges, fill=True, color=colour, alpha=0.3, linewidth=0)
                handle = ax.stairs(share, self.edges, color=colour, linewidth=1.4)
                entries.append((handle, words))
            elif len(z):
                rugs.append((z, colour, words))
        top = ax.get_ylim()[1] if len(rugs) < 2 else 1.0
        for k, (z, colour, words) in enumerate(rugs):
            # One row is no distribution: a needle with a head for each, whatever the height of the other class.
            height = (0.45 - 0.15 * k) * top
            z = z[(z >= self.edges[0]) & (z <= self.edges[-1])]
            ax.vlines(z, 0.0, height, color=colour, linewidth=1.4)
            handle = ax.plot(z, np.full(len(z), height), "o", color=colour, markersize=5.0)[0]
            entries.append((handle, f"{words}, one by one"))
        ax.set_ylim(0.0, 1.02 * top)
        if len(rugs) == 2:
            ax.set_yticks([])
        if self.edges[0] <= 0.0 <= self.edges[-1]:
            entries.append((ax.axvline(0.0, color=INK, linewidth=1.0, dashes=(4.0, 2.0)), "the cut: decision > 0"))
        ax.set_xlim(self.edges[0], self.edges[-1])
        tidy(ax)
        label(ax, "score (decision value)", "" if len(rugs) == 2 else "% of the class in a bin")
        return entries


class ReliabilityDisplay(Display):
    """Share of positives in bins of the score, from the lowest rows to the highest.

    Made by `from_predictions` or `from_estimator`; `plot` draws it. Bins hold about the same number of rows, rows of equal
    score staying together; bars are Wilson's 95 % intervals. With probabilities (of a classifier trained with
    `probability=True`) each bin stands at the mean probability of its rows, and bars should meet the diagonal. Scores alone are
    no probabilities: what can be read is whether the share rises with the score, and what share bins above the cut stand for.

    Parameters
    ----------
    shares, lower, upper : ndarray
        Share of positives of each bin, with its interval.
    rows : ndarray
        Rows of each bin.
    above_cut : ndarray
        Share of the rows of each bin that lie above the cut.
    base : float
        Share of positives of all rows.
    predicted : ndarray, optional
        Mean probability of the rows of each bin.
    """

    def __init__(
        self, shares: FloatArray, lower: FloatArray, upper: FloatArray, rows: FloatArray, above_cut: FloatArray, base: float,
        predicted: FloatArray | None = None,
    ):  # fmt: skip
        self.shares, self.lower, self.upper = shares, lower, upper
        self.rows, self.above_cut, self.base, self.predicted = rows, above_cut, base, predicted

    @classmethod
    def from_predictions(
        cls, y_true: Any, scores: Any, *, pos_label: Any = None, n_bins: int = 10, probabilities: Any = None
    ) -> "ReliabilityDisplay":
        """Return the display of scores.

        Parameters
        ----------
        y_true : array of n labels
            The truth.
        scores : array of n numbers
            Decision values, cut at 0.
        pos_label : label, optional
            The positive class; None means y_true > 0.
        n_bins : int
            Bins at most; fewer where there are few rows or few different scores.
        probabilities : array of n numbers, optional
            Probabilities of the positive class, which rank as the scores do.

        Returns
        -------
        ReliabilityDisplay
            The display.
        """
        truth = check_truth(y_true, pos_label)
        z = check_scores(scores, len(truth))
        at = levels_of(truth, z)
        rows_above = at.tp + at.fp
        bins = int(np.clip(len(z) // 5, 1, n_bins))
        # The level whose rows above come closest to each multiple of n / bins ends a bin.
        ends = np.searchsorted(rows_above, np.arange(1, bins + 1) * (len(z) / bins) - 1e-9)
        ends = np.unique(np.minimum(ends, len(rows_above) - 1))
        tp, rows = (np.diff(c[ends], prepend=0.0)[::-1] for c in (at.tp, rows_above))
        called = float(np.count_nonzero(z > 0.0))
        begins = rows_above[ends] - rows[::-1]
        above = np.clip((called - begins) / rows[::-1], 0.0, 1.0)[::-1]
        lower, upper = wilson(tp, rows)
        predicted = None
        if probabilities is not None:
            P = check_scores(probabilities, len(truth), "probabilities")
            if P.min() < 0.0 or P.max() > 1.0:
                raise ValueError(f"probabilities must lie between 0 and 1, got {P.min():g} to {P.max():g}")
            sums = np.cumsum(P[np.argsort(-z, kind="stable")])[rows_above[ends].astype(np.intp) - 1]
            predicted = np.diff(sums, prepend=0.0)[::-1] / rows
        return cls(tp / rows, lower, upper, rows, above, at.positives / len(z), predicted)

    @classmethod
    def from_estimator(cls, clf: Any, X: Any, y: Any, *, n_bins: int = 10) -> "ReliabilityDisplay":
        """Return the display of a fitted classifier on (X, y).

        Parameters
        ----------
        clf : classifier
            With decision_function and two classes_; its probabilities are taken if it was trained with `probability=True`.
        X : array of shape (n, p)
            Rows.
        y : array of n labels
            Their classes.
        n_bins : int
            Bins at most.

        Returns
        -------
        ReliabilityDisplay
            The display.
        """
        scores = clf.decision_function(X)
        likely = clf.probability_of(scores) if hasattr(clf, "calibration_") else None
        return cls.from_predictions(y, scores, pos_label=clf.classes_[1], n_bins=n_bins, probabilities=likely)

    @property
    def distance(self) -> float:
        """Mean distance of the predicted from the true share over all rows, by bins (expected calibration error)."""
        if self.predicted is None:
            raise ValueError("there are no probabilities here: train with probability=True, or pass probabilities=")
        return float((self.rows * np.abs(self.predicted - self.shares)).sum() / self.rows.sum())

    def describe(self) -> str:
        """Return what the figure shows, in numbers."""
        if len(self.shares) == 1:
            return (
                f"All {count(self.rows[0], 'row')} fall into one bin, with {percent(self.shares[0])} positives "
                f"(95 % interval {percent(self.lower[0])} to {percent(self.upper[0])})."
            )
        text = (
            f"The share of positives goes from {percent(self.shares[0])} in the lowest of {len(self.shares)} bins to "
            f"{percent(self.shares[-1])} in the highest (95 % interval {percent(self.lower[-1])} to "
            f"{percent(self.upper[-1])}); over all rows it is {percent(self.base)}."
        )
        if self.predicted is None:
            return text
        off = 100.0 * self.distance
        return f"{text} Probabilities are off by {off:.2g} percentage points on average over the bins."

    def _draw(self, ax: Any) -> list[tuple[Any, str]]:
        """Draw the share of positives of each bin, at its place in the order or at its mean probability."""
        place = np.arange(1.0, len(self.shares) + 1.0) if self.predicted is None else 100.0 * self.predicted
        ends = 100.0 * np.array([self.shares - self.lower, self.upper - self.shares])
        ax.errorbar(
            place,
            100.0 * self.shares,
            np.maximum(ends, 0.0),
            fmt="none",
            color=MODELS[0],
            ecolor=MODELS[0],
            elinewidth=1.4,
            capsize=3.0,
        )
        handle = ax.plot(place, 100.0 * self.shares, "o", color=MODELS[0], markersize=5.5, clip_on=False, zorder=4)[0]
        entries = [(handle, "share of positives, 95 % interval")]
        if self.predicted is not None:
            end = min(100.0, 1.08 * max(float(place.max()), 100.0 * float(self.shares.max()), 1e-3))
            line = ax.plot([0.0, end], [0.0, end], color=MUTED, linewidth=1.0, dashes=(2.0, 2.0), zorder=1)[0]
            ax.set_xlim(0.0, end)
            ax.set_ylim(0.0, min(104.0, max(end, 104.0 * float(self.upper.max()))))
            tidy(ax)
            label(ax, "predicted probability, mean of the bin, %", "share of positives, %")
            return [*entries, (line, "as predicted")]
        line = ax.axhline(100.0 * self.base, color=MUTED, linewidth=1.0, dashes=(2.0, 2.0))
        entries.append((line, f"all rows: {percent(self.base)}"))
        cut = len(place) + 0.5 - float(self.above_cut.sum())
        line = ax.axvline(cut, color=INK, linewidth=1.0, dashes=(4.0, 2.0))
        entries.append((line, "the cut: called positive to the right"))
        ax.set_xticks(place, [str(int(p)) for p in place])
        ax.set_xlim(0.35, len(place) + 0.65)
        ax.set_ylim(0.0, min(104.0, 108.0 * float(self.upper.max())))
        tidy(ax)
        label(ax, "score bin, lowest to highest", "share of positives, %")
        return entries
