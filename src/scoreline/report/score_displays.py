"""Displays of scores: curves over all thresholds, the scores of both classes, and the share of positives by score."""

import inspect
from abc import abstractmethod
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.stats import binomtest, norm

from scoreline.measures import CountsBasedMeasure, Measure, TunedThreshold, best_threshold, get_measure
from scoreline.measures.base import ratio
from scoreline.measures.intervals import RATES, interval_band
from scoreline.report.axes import HEIGHT, Display, LegendEntries, label, note, thin, tidy
from scoreline.report.palette import ABOVE, BELOW, DASHES, INK, MODELS, MUTED
from scoreline.report.wording import clean, count, joined, number, percent, rate, shorten
from scoreline.runtime.types import AnyArray, FloatArray

BAND_POINTS = 60  # per band, at most: its ends need many draws, and change slowly
BAND_ALPHA = 0.16
DRAWN_POINTS = 800  # per curve, at most: more cannot be seen and would make a page larger
MIN_HISTOGRAM_ROWS = 10  # the rows of a smaller class are drawn one by one


class ScoreDisplay(Display):
    """A display that is made from labels and decision values."""

    @abstractmethod
    def __init__(self, y_true: Any, scores: Any, **options: Any):
        """Compute the arrays that the figure shows."""

    @classmethod
    def from_predictions(cls, y_true: Any, scores: Any, **options: Any) -> Any:
        """Return the display of scores.

        Parameters
        ----------
        y_true, scores : array of n labels, array of n numbers
            The truth, and decision values, whose threshold is 0.
        **options : dict
            The other parameters of the class.

        Returns
        -------
        ScoreDisplay
            The display.
        """
        return cls(y_true, scores, **options)

    @classmethod
    def from_estimator(cls, clf: Any, X: Any, y: Any, **options: Any) -> Any:
        """Return the display of a fitted classifier on (X, y).

        Parameters
        ----------
        clf : classifier
            With decision_function and two classes_, the second of them positive.
        X, y : array of shape (n, p), array of n labels
            Rows and their classes.
        **options : dict
            The other parameters of the class; by default they are taken from the classifier.

        Returns
        -------
        ScoreDisplay
            The display.
        """
        scores = clf.decision_function(X)
        known = {
            "pos_label": clf.classes_[1],
            "name": type(clf).__name__,
            "class_names": tuple(clf.classes_),
            "measure": getattr(clf, "measure", "f1"),
            "measure_params": getattr(clf, "measure_params", None),
            "probabilities": clf.probability_of(scores) if hasattr(clf, "calibration_") else None,
        }
        parameters = inspect.signature(cls).parameters
        return cls(y, scores, **({name: value for name, value in known.items() if name in parameters} | options))


class CurveDisplay(ScoreDisplay):
    """One curve per model, and the point of its decision threshold."""

    title: ClassVar[str]
    area_name: ClassVar[str]
    area_label: ClassVar[str]
    axes_labels: ClassVar[tuple[str, str]]
    banded: ClassVar[str]  # the rate on the vertical axis, whose interval is drawn
    has_steps: ClassVar[bool] = False

    def __init__(self, y_true: Any, scores: Any, *, name: str | None = None, pos_label: Any = None):
        truth = check_truth(y_true, pos_label)
        self.positives = int(np.count_nonzero(truth))
        self.negatives = len(truth) - self.positives
        named = isinstance(scores, Mapping)
        if named and not scores:
            raise ValueError("scores must hold at least one model")
        self.curves: dict[str, tuple[FloatArray, FloatArray]] = {}
        self.areas: dict[str, float] = {}
        self.points: dict[str, tuple[float, float]] = {}
        self.bands: dict[str, tuple[FloatArray, FloatArray, FloatArray]] = {}
        for key, given in scores.items() if named else [(name or "model", scores)]:
            z = check_scores(given, len(truth), f"scores[{key!r}]" if named else "scores")
            at = levels_of(truth, z)
            x, y = self._rates(at.tp, at.fp)
            x, y = np.append(0.0, x), np.append(y[0] if self.has_steps else 0.0, y)
            self.curves[str(key)] = x, y
            keep = thin(DRAWN_POINTS, x[1:], y[1:])  # without the first point, where no row is called positive
            tp, fp = at.tp[keep], at.fp[keep]
            ends = interval_band(RATES[self.banded], tp, fp, self.positives - tp, self.negatives - fp)
            self.bands[str(key)] = x[1:][keep], *ends
            area = np.diff(x) @ y[1:] if self.has_steps else np.trapezoid(y, x)
            has_area = self.is_defined or (self.has_steps and self.positives)
            self.areas[str(key)] = float(area) if has_area else float("nan")
            across, up = self._rates(at.tp_at_threshold, at.fp_at_threshold)
            self.points[str(key)] = float(across), float(up)

    @abstractmethod
    def _rates(self, tp: Any, fp: Any) -> tuple[Any, Any]:
        """Return x and y of predictions with these counts."""

    @abstractmethod
    def _chance(self) -> tuple[float, float]:
        """Return the heights of the chance line at 0 and 1."""

    @abstractmethod
    def _point_words(self, name: str, x: float, y: float) -> str:
        """Return a sentence about the predictions of a model at its threshold."""

    @property
    def height(self) -> float:
        """Height of a new figure, in inches."""
        return HEIGHT + 0.18 * len(self.curves)

    @property
    def is_defined(self) -> bool:
        """Whether there are rows of both classes."""
        return self.positives > 0 and self.negatives > 0

    def describe(self) -> str:
        """Return a caption with the main numbers."""
        if not self.is_defined:
            return "There is no curve: these rows are all of one class."
        named = joined([f"{rate(area)} for {clean(name)}" for name, area in self.areas.items()])
        first, point = next(iter(self.points.items()))
        chance = f"chance: {rate(0.5 * sum(self._chance()))}"
        return f"{self.area_name}: {named}; {chance}. {self._point_words(clean(first), *point)}"

    def _draw(self, ax: Any) -> LegendEntries:
        if not self.is_defined:
            return note(ax, "no curve:\nall of these rows are of one class")
        (line,) = ax.plot([0.0, 1.0], self._chance(), color=MUTED, linewidth=1.0, dashes=(2.0, 2.0))
        entries = [(line, f"chance: {rate(0.5 * sum(self._chance()))}")]
        drawstyle = "steps-pre" if self.has_steps else "default"
        for k, (name, (x, y)) in reversed(list(enumerate(self.curves.items()))):  # the first model lies on top
            keep = thin(DRAWN_POINTS, x, y)
            # The seventh model has the first colour again, with other dashes.
            colour, dashes = MODELS[k % len(MODELS)], DASHES[(k + k // len(MODELS)) % len(DASHES)]
            style = {"color": colour, "linewidth": 2.0 if k == 0 else 1.4, "drawstyle": drawstyle}
            (line,) = ax.plot(x[keep], y[keep], **style, **({"dashes": dashes} if dashes else {}))
            entries.insert(0, (line, f"{shorten(name, 26)}, {self.area_label} {rate(self.areas[name])}"))
            ax.plot(*self.points[name], "o", markersize=6.0, color=colour, markeredgecolor="white", clip_on=False)
        look = {"color": MODELS[0], "alpha": BAND_ALPHA, "linewidth": 0.0}
        band = ax.fill_between(*next(iter(self.bands.values())), step="pre" if self.has_steps else None, **look)
        entries.insert(len(self.curves), (band, "95 % interval at each threshold"))
        handle = ax.plot([], [], "o", markersize=6.0, color=INK, markeredgecolor="white")[0]
        entries.append((handle, "the threshold: decision > 0"))
        # If positives are rare and hard to find, all precisions are close to 0, so the axis is stretched.
        highest = max(float(y.max()) for _, y in self.curves.values())
        ax.set(xlim=(-0.01, 1.0), ylim=(0.0, 1.02 if highest > 0.5 else 1.15 * highest))
        tidy(ax, "both")
        label(ax, *self.axes_labels)
        return entries


class RocDisplay(CurveDisplay):
    """ROC curves of several models, with area, chance line and the point of the threshold.

    Parameters
    ----------
    y_true : array of n labels
        The truth.
    scores : dict of str to array of n numbers, or one array
        Decision values of each model.
    name : str, optional
        Name of the model where `scores` is one array.
    pos_label : label, optional
        The positive class; None means y_true > 0.

    Attributes
    ----------
    curves : dict of str to (ndarray, ndarray)
        For each model the false and the true positive rates, from (0, 0) to (1, 1).
    areas : dict of str to float
        For each model the area under its curve.
    points : dict of str to (float, float)
        For each model the rates of its predictions, decision > 0.
    bands : dict of str to (ndarray, ndarray, ndarray)
        For each model some false positive rates, and the ends of the exact 95 % interval of the true positive rate at their
        thresholds.
    positives, negatives : int
        Rows of either class.
    """

    title = "ROC curve"
    area_name = "Area under the ROC curve"
    area_label = "area"
    axes_labels = ("false positive rate", "true positive rate")
    banded = "recall"

    def _rates(self, tp: Any, fp: Any) -> tuple[Any, Any]:
        return ratio(fp, self.negatives), ratio(tp, self.positives)

    def _chance(self) -> tuple[float, float]:
        return 0.0, 1.0

    def _point_words(self, name: str, x: float, y: float) -> str:
        return (
            f"At its threshold {name} finds {y * self.positives:,.0f} of {count(self.positives, 'positive')} ({percent(y)}) "
            f"and calls {x * self.negatives:,.0f} of {count(self.negatives, 'negative')} positive ({percent(x)})."
        )


class PrecisionRecallDisplay(CurveDisplay):
    """Precision-recall curves of several models, with average precision, base rate and the point of the threshold.

    Parameters are those of RocDisplay.

    Attributes
    ----------
    curves : dict of str to (ndarray, ndarray)
        For each model recall in rising order, and precision.
    areas : dict of str to float
        For each model its average precision.
    points : dict of str to (float, float)
        For each model recall and precision of its predictions, decision > 0.
    bands : dict of str to (ndarray, ndarray, ndarray)
        For each model some values of recall, and the ends of the exact 95 % interval of precision at their thresholds.
    positives, negatives : int
        Rows of either class.
    """

    title = "Precision-recall curve"
    area_name = "Average precision"
    area_label = "AP"
    axes_labels = ("recall", "precision")
    banded = "precision"
    has_steps = True

    def _rates(self, tp: Any, fp: Any) -> tuple[Any, Any]:
        return ratio(tp, self.positives), ratio(tp, tp + fp)

    def _chance(self) -> tuple[float, float]:
        share = self.positives / (self.positives + self.negatives)
        return share, share

    def _point_words(self, name: str, x: float, y: float) -> str:
        if x == 0.0 and y == 0.0:
            return f"At its threshold {name} finds none of {count(self.positives, 'positive')}."
        return (
            f"At its threshold {name} finds {x * self.positives:,.0f} of {count(self.positives, 'positive')} ({percent(x)}), "
            f"and {percent(y)} of the rows that it calls positive are."
        )


class ThresholdDisplay(ScoreDisplay):
    """A count-based measure as a function of the threshold; for ranking measures precision, recall and F1.

    The threshold of the classifier is at 0, since its intercept includes the threshold.

    Parameters
    ----------
    y_true, scores : array of n labels, array of n numbers
        The truth, and decision values, whose threshold is 0.
    measure : str or Measure
        A count-based measure; for any other, precision, recall and F1 are shown.
    measure_params : dict, optional
        Parameters of a measure given by name.
    pos_label : label, optional
        The positive class; None means y_true > 0.

    Attributes
    ----------
    thresholds : ndarray
        Rising; rows with a score above one are called positive. The first is below all scores.
    values : dict of str to ndarray
        Name and value at each threshold.
    at_threshold : dict of str to float
        The values at the threshold, 0.
    counts_at_threshold : tuple of float
        True positives, false positives, false negatives and true negatives at the threshold.
    best : TunedThreshold or None
        The best threshold for `main` on these rows, and its value.
    main : str
        The name in `values` that `best` belongs to.
    window : tuple of float
        The thresholds worth showing.
    band : tuple of ndarray
        Some of these thresholds, and the ends of the 95 % interval of `main` at each.
    """

    def __init__(
        self, y_true: Any, scores: Any, *, measure: str | Measure = "f1", measure_params: dict[str, Any] | None = None,
        pos_label: Any = None,
    ):  # fmt: skip
        truth = check_truth(y_true, pos_label)
        z = check_scores(scores, len(truth))
        counted = get_measure(measure, measure_params)
        shown: dict[str, CountsBasedMeasure] = {}
        if not isinstance(counted, CountsBasedMeasure):
            counted = get_measure("f1")
            shown = {name: RATES[name] for name in ("precision", "recall")}
        assert isinstance(counted, CountsBasedMeasure)
        shown[counted.name] = counted  # its curve, the last one, lies on top
        self.main = counted.name
        at = levels_of(truth, z)
        # A row is positive if its score is above the threshold, so each level has the rows above the next higher score.
        below = at.scores[-1] - max(1.0, float(np.ptp(at.scores)))
        self.thresholds = np.append(below, at.scores[::-1])
        # The counts at the threshold come last.
        tp, fp = (
            np.append(c[::-1], [0.0, at_threshold])
            for c, at_threshold in ((at.tp, at.tp_at_threshold), (at.fp, at.fp_at_threshold))
        )
        counts = tp, fp, at.positives - tp, at.negatives - fp
        self.counts_at_threshold = tuple(float(c[-1]) for c in counts)
        values = {name: np.asarray(each.from_counts(*counts), dtype=float) for name, each in shown.items()}
        self.values = {name: value[:-1] for name, value in values.items()}
        self.at_threshold = {name: float(value[-1]) for name, value in values.items()}
        self.best: TunedThreshold | None = None
        with suppress(ValueError):  # NaN at every threshold
            self.best = best_threshold(truth, z, counted)
        self.window = score_window(truth, z, (0.0,) if self.best is None else (0.0, self.best.threshold))
        inside = np.flatnonzero((self.thresholds > self.window[0]) & (self.thresholds < self.window[1]))
        picked = inside[thin(BAND_POINTS, self.thresholds[inside], tp[inside], fp[inside])] if len(inside) else inside
        at_picked = (counts[0][picked], counts[1][picked], counts[2][picked], counts[3][picked])
        ends = interval_band(counted, *at_picked) if len(picked) else (np.empty(0), np.empty(0))
        self.band = (self.thresholds[picked], *ends)

    def describe(self) -> str:
        """Return a caption with the main numbers."""
        shown = ", ".join(f"{clean(name)} {rate(value)}" for name, value in self.at_threshold.items())
        if self.best is None:
            return f"At the chosen threshold: {shown}. The measure is not defined on these rows."
        return (
            f"At the chosen threshold (0): {shown}. The best threshold for these rows, known only afterwards, is "
            f"{number(self.best.threshold)} with {clean(self.main)} {rate(self.best.value)}."
        )

    def _draw(self, ax: Any) -> LegendEntries:
        low, high = self.window
        inside = np.flatnonzero((self.thresholds > low) & (self.thresholds < high))
        # One more point on the left makes the curve reach the edge.
        first = max(0, (inside[0] if len(inside) else np.searchsorted(self.thresholds, high)) - 1)
        picked = np.append(first, inside[inside > first]).astype(np.intp)
        entries: LegendEntries = []
        heights: list[float] = []
        styles = ((MODELS[1], (5.0, 1.6)), (MODELS[2], (1.4, 1.4)), (MODELS[0], None))[-len(self.values) :]
        for (name, values), (colour, dashes) in zip(self.values.items(), styles, strict=True):
            x, y = np.maximum(self.thresholds[picked], low), values[picked]
            x, y = x[np.isfinite(y)], y[np.isfinite(y)]  # a user's own measure may be infinite
            if len(x) == 0:
                continue
            keep = thin(DRAWN_POINTS, x, y)
            x, y = np.append(x[keep], high), np.append(y[keep], y[-1])
            style = {"linewidth": 1.3, "dashes": dashes} if dashes else {"linewidth": 2.0}
            (line,) = ax.plot(x, y, drawstyle="steps-post", color=colour, **style)
            entries.append((line, clean(name)))
            heights += y.tolist()
        at, bottom, top = self.band
        finite = np.isfinite(bottom) & np.isfinite(top)
        if finite.any():
            look = {"color": MODELS[0], "alpha": BAND_ALPHA, "linewidth": 0.0}
            band = ax.fill_between(at[finite], bottom[finite], top[finite], **look)
            entries.append((band, "95 % interval at each threshold"))
            heights += [*bottom[finite].tolist(), *top[finite].tolist()]
        value, is_inside = self.at_threshold[self.main], low <= 0.0 <= high
        if is_inside:
            ax.axvline(0.0, color=INK, linewidth=1.0, dashes=(4.0, 2.0))
            heights.append(value)
        handle = ax.plot(0.0, value, "o", color=INK, markersize=5.5, markeredgecolor="white", zorder=5)[0]
        outside = "" if is_inside else " (outside the picture)"
        entries.append((handle, f"chosen threshold{outside}: {clean(self.main)} {rate(value)}"))
        if self.best is not None:
            place = self.best.threshold, self.best.value
            handle = ax.plot(*place, "D", color=MODELS[3], markersize=8.0, markeredgecolor="white", zorder=4)[0]
            entries.append((handle, f"best afterwards: {clean(self.main)} {rate(self.best.value)}"))
            heights.append(self.best.value)
        ax.set_xlim(low, high)
        heights = [height for height in heights if np.isfinite(height)]
        if heights:
            ax.set_ylim(*_height_limits(min(heights), max(heights)))
        else:
            ax.text(0.5, 0.5, "not defined on these rows", transform=ax.transAxes, ha="center", color=MUTED)
        tidy(ax)
        label(ax, "threshold (the chosen threshold is 0)", clean(self.main) if len(self.values) == 1 else "value")
        return entries


def _height_limits(low: float, high: float) -> tuple[float, float]:
    """Return 0 and 1 if the values use most of that range, and otherwise their own range."""
    if 0.0 <= low < 0.5 and 0.3 <= high <= 1.0:
        return 0.0, 1.04
    pad = 0.06 * (high - low) or max(0.05, 0.05 * abs(high))
    return low - pad, high + pad


class ScoreDistributionDisplay(ScoreDisplay):
    """Histograms of the scores of both classes with the same bins, as shares of the class.

    A class of fewer than ten rows is drawn row by row. `plot(normals=True)` adds the normal distribution with the mean and
    variance of each class, which `solver="moments"` assumes.

    Parameters
    ----------
    y_true, scores : array of n labels, array of n numbers
        The truth, and decision values, whose threshold is 0.
    pos_label : label, optional
        The positive class; None means y_true > 0.
    class_names : pair of str
        Names of the negative and the positive class.

    Attributes
    ----------
    positive_scores, negative_scores : ndarray
        Scores of either class.
    edges : ndarray
        Edges of the bins; scores beyond them are not drawn.
    class_names : tuple of str
        Names of the negative and the positive class.
    """

    def __init__(
        self, y_true: Any, scores: Any, *, pos_label: Any = None, class_names: Any = ("negative", "positive")
    ):  # fmt: skip
        truth = check_truth(y_true, pos_label)
        z = check_scores(scores, len(truth))
        low, high = score_window(truth, z, (0.0,))
        smaller, larger = sorted((int(np.count_nonzero(truth)), int(np.count_nonzero(~truth))))
        rows = smaller if smaller >= MIN_HISTOGRAM_ROWS else larger
        bins = int(np.clip(4.0 * rows ** (1.0 / 3.0), 12, 60))
        self.class_names = str(class_names[0]), str(class_names[1])
        self.positive_scores, self.negative_scores = z[truth], z[~truth]
        self.edges = np.linspace(low, high, bins + 1)

    def describe(self) -> str:
        """Return a caption with the main numbers."""
        parts = []
        for name, z in zip(self.class_names, (self.negative_scores, self.positive_scores), strict=True):
            named = shorten(name, 40)
            if len(z) == 0:
                parts.append(f"no row of class {named}")
                continue
            above = f"{np.count_nonzero(z > 0.0):,} of {count(len(z), 'row')} of class {named}"
            parts.append(f"{above} (median score {number(float(np.median(z)))})")
        text = f"Above the threshold: {joined(parts)}."
        everything = np.concatenate([self.negative_scores, self.positive_scores])
        hidden = int(np.count_nonzero((everything < self.edges[0]) | (everything > self.edges[-1])))
        tail = f" {count(hidden, 'row')} beyond the edges {'is' if hidden == 1 else 'are'} not drawn." if hidden else ""
        return text + tail

    def _draw(self, ax: Any, normals: bool = False) -> LegendEntries:
        entries, few = [], []
        sides = (self.negative_scores, BELOW), (self.positive_scores, ABOVE)
        for name, (z, colour) in zip(self.class_names, sides, strict=True):
            words = f"class {shorten(name, 24)} ({count(len(z), 'row')})"
            if len(z) >= MIN_HISTOGRAM_ROWS:
                share = 100.0 * np.histogram(z, self.edges)[0] / len(z)
                ax.stairs(share, self.edges, fill=True, color=colour, alpha=0.3, linewidth=0)
                entries.append((ax.stairs(share, self.edges, color=colour, linewidth=1.4), words))
                if normals and np.ptp(z) > 0.0:
                    x = np.linspace(self.edges[0], self.edges[-1], 400)
                    density = norm.pdf(x, z.mean(), z.std(ddof=1)) * (self.edges[1] - self.edges[0])
                    line = ax.plot(x, 100.0 * density, color=colour, linewidth=1.8, dashes=(4.0, 2.0))[0]
                    entries.append((line, f"normal distribution of class {shorten(name, 24)}"))
            elif len(z):
                few.append((z, colour, words))
        top = ax.get_ylim()[1] if len(few) < 2 else 1.0
        for k, (z, colour, words) in enumerate(few):
            # A few rows are not a distribution: each is a needle, whose height does not depend on the other class.
            height = (0.45 - 0.15 * k) * top
            z = z[(z >= self.edges[0]) & (z <= self.edges[-1])]
            ax.vlines(z, 0.0, height, color=colour, linewidth=1.4)
            handle = ax.plot(z, np.full(len(z), height), "o", color=colour, markersize=5.0)[0]
            entries.append((handle, f"{words}, one by one"))
        ax.set_ylim(0.0, 1.02 * top)
        if len(few) == 2:
            ax.set_yticks([])
        if self.edges[0] <= 0.0 <= self.edges[-1]:
            entries.append(
                (ax.axvline(0.0, color=INK, linewidth=1.0, dashes=(4.0, 2.0)), "the threshold: decision > 0")
            )
        ax.set_xlim(self.edges[0], self.edges[-1])
        tidy(ax)
        label(ax, "score (decision value)", "" if len(few) == 2 else "% of the class in a bin")
        return entries


class ReliabilityDisplay(ScoreDisplay):
    """Share of positives in bins of the score, from the lowest scores to the highest.

    Bins have about the same number of rows, and rows of equal score are in the same bin. Bars are Wilson's 95 % intervals.
    With probabilities (of a classifier trained with `probability=True`) each bin is drawn at the mean probability of its
    rows, and the bars should meet the diagonal. Scores alone are not probabilities; they show whether the share of positives
    rises with the score, and how large it is above the threshold.

    Parameters
    ----------
    y_true, scores : array of n labels, array of n numbers
        The truth, and decision values, whose threshold is 0.
    pos_label : label, optional
        The positive class; None means y_true > 0.
    n_bins : int
        Largest number of bins; there are fewer if there are few rows or few different scores.
    probabilities : array of n numbers, optional
        Probabilities of the positive class, which must rank the rows like the scores.

    Attributes
    ----------
    shares, lower, upper : ndarray
        Share of positives of each bin, with its interval.
    rows : ndarray
        Rows of each bin.
    above_threshold : ndarray
        Share of the rows of each bin that lie above the threshold.
    base : float
        Share of positives of all rows.
    predicted : ndarray or None
        Mean probability of the rows of each bin.
    """

    def __init__(
        self, y_true: Any, scores: Any, *, pos_label: Any = None, n_bins: int = 10, probabilities: Any = None
    ):  # fmt: skip
        truth = check_truth(y_true, pos_label)
        z = check_scores(scores, len(truth))
        at = levels_of(truth, z)
        rows_above = at.tp + at.fp
        bins = int(np.clip(len(z) // 5, 1, n_bins))
        # Bins end at the levels whose number of rows comes closest to the multiples of n / bins.
        ends = np.searchsorted(rows_above, np.arange(1, bins + 1) * (len(z) / bins) - 1e-9)
        ends = np.unique(np.minimum(ends, len(rows_above) - 1))
        tp, self.rows = (np.diff(c[ends], prepend=0.0)[::-1] for c in (at.tp, rows_above))
        self.shares, self.base = tp / self.rows, at.positives / len(z)
        begins = rows_above[ends][::-1] - self.rows
        self.above_threshold = np.clip((np.count_nonzero(z > 0.0) - begins) / self.rows, 0.0, 1.0)
        tests = [binomtest(int(positives), int(rows)) for positives, rows in zip(tp, self.rows, strict=True)]
        self.lower, self.upper = np.array([test.proportion_ci(0.95, "wilson") for test in tests]).T
        self.predicted: FloatArray | None = None
        if probabilities is not None:
            P = check_scores(probabilities, len(truth), "probabilities")
            if P.min() < 0.0 or P.max() > 1.0:
                raise ValueError(f"probabilities must lie between 0 and 1, got {P.min():g} to {P.max():g}")
            sums = np.cumsum(P[np.argsort(-z, kind="stable")])[rows_above[ends].astype(np.intp) - 1]
            self.predicted = np.diff(sums, prepend=0.0)[::-1] / self.rows

    @property
    def distance(self) -> float:
        """Mean distance of the predicted from the true share over all rows, by bins (expected calibration error)."""
        if self.predicted is None:
            raise ValueError("there are no probabilities here: train with probability=True, or pass probabilities=")
        return float((self.rows * np.abs(self.predicted - self.shares)).sum() / self.rows.sum())

    def describe(self) -> str:
        """Return a caption with the main numbers."""
        interval = f"(95 % interval {percent(self.lower[-1])} to {percent(self.upper[-1])})"
        if len(self.shares) == 1:
            rows = count(self.rows[0], "row")
            return f"All {rows} fall into one bin, with {percent(self.shares[0])} positives {interval}."
        text = (
            f"The share of positives goes from {percent(self.shares[0])} in the lowest of {len(self.shares)} bins to "
            f"{percent(self.shares[-1])} in the highest {interval}; over all rows it is {percent(self.base)}."
        )
        if self.predicted is None:
            return text
        off = 100.0 * self.distance
        return f"{text} Probabilities are off by {off:.2g} percentage points on average over the bins."

    def _draw(self, ax: Any) -> LegendEntries:
        """Draw the share of positives of each bin, at its place in the order or at its mean probability."""
        place = np.arange(1.0, len(self.shares) + 1.0) if self.predicted is None else 100.0 * self.predicted
        shares, colour = 100.0 * self.shares, MODELS[0]
        ends = np.maximum(100.0 * np.array([self.shares - self.lower, self.upper - self.shares]), 0.0)
        ax.errorbar(place, shares, ends, fmt="none", color=colour, ecolor=colour, elinewidth=1.4, capsize=3.0)
        handle = ax.plot(place, shares, "o", color=colour, markersize=5.5, clip_on=False, zorder=4)[0]
        entries = [(handle, "share of positives, 95 % interval")]
        if self.predicted is not None:
            end = min(100.0, 1.08 * max(float(place.max()), float(shares.max()), 1e-3))
            line = ax.plot([0.0, end], [0.0, end], color=MUTED, linewidth=1.0, dashes=(2.0, 2.0), zorder=1)[0]
            entries.append((line, "as predicted"))
            ax.set_xlim(0.0, end)
            ax.set_ylim(0.0, min(104.0, max(end, 104.0 * float(self.upper.max()))))
        else:
            line = ax.axhline(100.0 * self.base, color=MUTED, linewidth=1.0, dashes=(2.0, 2.0))
            entries.append((line, f"all rows: {percent(self.base)}"))
            boundary = len(place) + 0.5 - float(self.above_threshold.sum())
            line = ax.axvline(boundary, color=INK, linewidth=1.0, dashes=(4.0, 2.0))
            entries.append((line, "the threshold: called positive to the right"))
            ax.set_xticks(place, [str(int(p)) for p in place])
            ax.set_xlim(0.35, len(place) + 0.65)
            ax.set_ylim(0.0, min(104.0, 108.0 * float(self.upper.max())))
        tidy(ax)
        across = (
            "score bin, lowest to highest" if self.predicted is None else "predicted probability, mean of the bin, %"
        )
        label(ax, across, "share of positives, %")
        return entries


class Levels(NamedTuple):
    """The distinct scores in decreasing order, with the counts of positives and negatives at or above each score."""

    scores: FloatArray
    tp: FloatArray
    fp: FloatArray
    positives: int
    negatives: int
    tp_at_threshold: float
    fp_at_threshold: float


def levels_of(truth: AnyArray, scores: FloatArray) -> Levels:
    """Return the counts at every different score; one sort."""
    order = np.argsort(-scores, kind="stable")
    z = scores[order]
    last = np.append(np.flatnonzero(z[1:] != z[:-1]), len(z) - 1)  # of each run of equal scores
    tp = np.cumsum(truth[order], dtype=np.float64)[last]
    positives = int(np.count_nonzero(truth))
    tp_at_threshold, called = float(np.count_nonzero(truth & (scores > 0.0))), float(np.count_nonzero(scores > 0.0))
    return Levels(
        z[last], tp, last + 1.0 - tp, positives, len(truth) - positives, tp_at_threshold, called - tp_at_threshold
    )


def score_window(truth: AnyArray, scores: FloatArray, points: tuple[float, ...] = ()) -> tuple[float, float]:
    """Return the range of scores to draw: 98 % of each class, and the given points if they are near."""
    sides = [side for side in (scores[truth], scores[~truth]) if len(side)]
    ends = np.array([np.quantile(side, [0.01, 0.99]) for side in sides])
    low, high = float(ends[:, 0].min()), float(ends[:, 1].max())
    span = high - low if high > low else max(1.0, abs(low))
    near = [point for point in points if low - span <= point <= high + span]
    low, high = min(low, *near, low), max(high, *near, high)
    pad = 0.05 * (high - low) if high > low else 0.5 * span
    return low - pad, high + pad


def check_truth(y_true: Any, pos_label: Any = None) -> AnyArray:
    """Return which rows are positive: y_true == pos_label, or y_true > 0 if pos_label is None."""
    y = np.asarray(y_true)
    if y.ndim != 1 or len(y) == 0:
        raise ValueError(f"y_true must be a vector of at least one label, got shape {y.shape}")
    if pos_label is not None:
        return np.asarray(y == pos_label)
    if y.dtype.kind not in "buif":
        raise ValueError(f"y_true holds {y.dtype} labels: name the positive class with pos_label=...")
    return np.asarray(y > 0)


def check_scores(scores: Any, rows: int, name: str = "scores") -> FloatArray:
    """Return scores as a vector of `rows` finite floats."""
    z = np.asarray(scores, dtype=np.float64)
    if z.shape != (rows,):
        raise ValueError(f"{name} must be a vector of {rows} numbers like y_true, got shape {z.shape}")
    if not np.isfinite(z).all():
        row = int(np.flatnonzero(~np.isfinite(z))[0])
        raise ValueError(f"{name} must be finite, got {z[row]} in row {row}")
    return z
