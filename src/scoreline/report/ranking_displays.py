"""ROC and precision-recall curves of several models in one figure."""

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np

from scoreline.measures.base import ratio
from scoreline.report.axes import HEIGHT, label, note, tidy
from scoreline.report.curves import POINTS, above_zero, check_models, check_truth, levels_of, thin
from scoreline.report.display import Display
from scoreline.report.palette import DASHES, INK, MODELS, MUTED
from scoreline.report.wording import clean, count, joined, percent, rate, shorten
from scoreline.runtime.types import AnyArray, FloatArray


class _CurveDisplay(Display):
    """One curve for each model, and the point where its decision values are cut.

    Parameters
    ----------
    curves : dict of str to (ndarray, ndarray)
        For each model the curve: x and y.
    areas : dict of str to float
        For each model the area under it.
    points : dict of str to (float, float)
        For each model the x and y of its predictions, decision > 0.
    positives, negatives : int
        Rows of either class.
    """

    title: ClassVar[str]
    area_name: ClassVar[str]
    short: ClassVar[str]
    drawstyle: ClassVar[str] = "default"
    axes_labels: ClassVar[tuple[str, str]]

    def __init__(
        self,
        curves: dict[str, tuple[FloatArray, FloatArray]],
        areas: dict[str, float],
        points: dict[str, tuple[float, float]],
        positives: int,
        negatives: int,
    ):
        self.curves, self.areas, self.points = curves, areas, points
        self.positives, self.negatives = positives, negatives

    @classmethod
    def from_predictions(cls, y_true: Any, scores: Any, *, name: str | None = None, pos_label: Any = None) -> Any:
        """Return the display of scores.

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

        Returns
        -------
        RocDisplay or PrecisionRecallDisplay
            The display.
        """
        truth = check_truth(y_true, pos_label)
        models = check_models(scores, len(truth), name)
        positives = int(np.count_nonzero(truth))
        curves, areas, points = {}, {}, {}
        for key, z in models.items():
            curves[key], areas[key], points[key] = cls._curve(truth, z)
        return cls(curves, areas, points, positives, len(truth) - positives)

    @classmethod
    def from_estimator(cls, clf: Any, X: Any, y: Any, *, name: str | None = None) -> Any:
        """Return the display of a fitted classifier on (X, y).

        Parameters
        ----------
        clf : classifier
            With decision_function and two classes_.
        X : array of shape (n, p)
            Rows.
        y : array of n labels
            Their classes.
        name : str, optional
            What to call it; the name of its class by default.

        Returns
        -------
        RocDisplay or PrecisionRecallDisplay
            The display.
        """
        name = name or type(clf).__name__
        return cls.from_predictions(y, clf.decision_function(X), name=name, pos_label=clf.classes_[1])

    @staticmethod
    @abstractmethod
    def _curve(truth: AnyArray, scores: FloatArray) -> tuple[tuple[FloatArray, FloatArray], float, tuple[float, float]]:
        """Return the curve of a model, its area, and the point of its cut."""

    @abstractmethod
    def _chance(self) -> tuple[tuple[float, float], str]:
        """Return the heights of the chance line at 0 and 1, and its name."""

    def _top(self) -> float:
        """Return the height of the axes."""
        return 1.02

    @property
    def height(self) -> float:
        """Inches that a figure of it needs."""
        return HEIGHT + 0.18 * (len(self.curves) - 1)

    @property
    def is_defined(self) -> bool:
        """Whether both classes are there."""
        return self.positives > 0 and self.negatives > 0

    def describe(self) -> str:
        """Return what the figure shows, in numbers."""
        if not self.is_defined:
            return "There is no curve: these rows are all of one class."
        named = joined([f"{rate(area)} for {clean(name)}" for name, area in self.areas.items()])
        first = next(iter(self.points))
        title = self.area_name[0].upper() + self.area_name[1:]
        return f"{title}: {named}; {self._chance()[1]}. {self._point_words(clean(first), first)}"

    @abstractmethod
    def _point_words(self, name: str, key: str) -> str:
        """Return what the cut of a model means, in words."""

    def _draw(self, ax: Any) -> list[tuple[Any, str]]:
        """Draw the curves."""
        if not self.is_defined:
            note(ax, "no curve:\nall of these rows are of one class")
            return []
        heights, chance = self._chance()
        (line,) = ax.plot([0.0, 1.0], heights, color=MUTED, linewidth=1.0, dashes=(2.0, 2.0))
        entries = [(line, chance)]
        for k, (name, (x, y)) in reversed(list(enumerate(self.curves.items()))):  # the first model lies on top
            keep = thin(POINTS, x, y)
            # The seventh model has the first colour again, but not its dashes.
            colour, dashes = MODELS[k % len(MODELS)], DASHES[(k + k // len(MODELS)) % len(DASHES)]
            style = {"color": colour, "linewidth": 2.0 if k == 0 else 1.4, "drawstyle": self.drawstyle}
            (line,) = ax.plot(x[keep], y[keep], **style, **({"dashes": dashes} if dashes else {}))
            entries.insert(0, (line, f"{shorten(name, 26)}, {self.short} {rate(self.areas[name])}"))
            ax.plot(*self.points[name], "o", markersize=6.0, color=colour, markeredgecolor="white", clip_on=False)
        handle = ax.plot([], [], "o", markersize=6.0, color=INK, markeredgecolor="white")[0]
        entries.append((handle, "the cut: decision > 0"))
        ax.set(xlim=(-0.01, 1.0), ylim=(0.0, self._top()))
        tidy(ax, "both")
        label(ax, *self.axes_labels)
        return entries


class RocDisplay(_CurveDisplay):
    """ROC curves of several models, with area, chance line and the point of the cut.

    Made by `from_predictions` or `from_estimator`; `plot` draws it.

    Parameters
    ----------
    curves : dict of str to (ndarray, ndarray)
        For each model the false and the true positive rates, from (0, 0) to (1, 1).
    areas : dict of str to float
        For each model the area under its curve.
    points : dict of str to (float, float)
        For each model the rates of its predictions, decision > 0.
    positives, negatives : int
        Rows of either class.
    """

    title = "ROC curve"
    area_name = "area under the ROC curve"
    short = "area"
    axes_labels = ("false positive rate", "true positive rate")

    @staticmethod
    def _curve(truth: AnyArray, scores: FloatArray) -> tuple[tuple[FloatArray, FloatArray], float, tuple[float, float]]:
        at = levels_of(truth, scores)
        x, y = (np.append(0.0, ratio(c, total)) for c, total in ((at.fp, at.negatives), (at.tp, at.positives)))
        tp, fp = above_zero(truth, scores)
        area = float(np.trapezoid(y, x)) if at.positives and at.negatives else float("nan")
        return (x, y), area, (float(ratio(fp, at.negatives)), float(ratio(tp, at.positives)))

    def _chance(self) -> tuple[tuple[float, float], str]:
        return (0.0, 1.0), "chance: 0.500"

    def _point_words(self, name: str, key: str) -> str:
        x, y = self.points[key]
        return (
            f"At its cut {name} finds {y * self.positives:,.0f} of {count(self.positives, 'positive')} ({percent(y)}) and "
            f"calls {x * self.negatives:,.0f} of {count(self.negatives, 'negative')} positive ({percent(x)})."
        )


class PrecisionRecallDisplay(_CurveDisplay):
    """Precision-recall curves of several models, with average precision, base rate and the point of the cut.

    Made by `from_predictions` or `from_estimator`; `plot` draws it.

    Parameters
    ----------
    curves : dict of str to (ndarray, ndarray)
        For each model recall in rising order, and precision.
    areas : dict of str to float
        For each model its average precision.
    points : dict of str to (float, float)
        For each model recall and precision of its predictions, decision > 0.
    positives, negatives : int
        Rows of either class.
    """

    title = "Precision-recall curve"
    area_name = "average precision"
    short = "AP"
    drawstyle = "steps-pre"
    axes_labels = ("recall", "precision")

    @staticmethod
    def _curve(truth: AnyArray, scores: FloatArray) -> tuple[tuple[FloatArray, FloatArray], float, tuple[float, float]]:
        at = levels_of(truth, scores)
        recall, precision = ratio(at.tp, at.positives), at.tp / (at.tp + at.fp)
        area = float(np.diff(recall, prepend=0.0) @ precision) if at.positives else float("nan")
        tp, fp = above_zero(truth, scores)
        point = float(ratio(tp, at.positives)), float(ratio(tp, tp + fp))
        return (np.append(0.0, recall), np.append(precision[0], precision)), area, point

    def _top(self) -> float:
        # Where positives are rare and hard to find, all curves would lie on the axis.
        highest = max(float(y.max()) for _, y in self.curves.values())
        return 1.02 if highest > 0.5 else 1.15 * highest

    def _chance(self) -> tuple[tuple[float, float], str]:
        share = self.positives / (self.positives + self.negatives)
        return (share, share), f"chance: {rate(share)}"

    def _point_words(self, name: str, key: str) -> str:
        x, y = self.points[key]
        if x == 0.0 and y == 0.0:
            return f"At its cut {name} finds none of {count(self.positives, 'positive')}."
        return (
            f"At its cut {name} finds {x * self.positives:,.0f} of {count(self.positives, 'positive')} ({percent(x)}), and "
            f"{percent(y)} of what it calls positive is."
        )
