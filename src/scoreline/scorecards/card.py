"""Scorecard: integer points per bin of each column, as an object that scores rows and can be read and written."""

import csv
import io
import json
import math
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from scoreline.features.bins import ColumnBins
from scoreline.features.columns import columns_of
from scoreline.features.fitted import table_codes
from scoreline.io.files import atomic_file
from scoreline.monitoring.reference import Drift, counts_between
from scoreline.monitoring.stability import population_stability
from scoreline.operators.convert import is_frame
from scoreline.runtime.optional import require
from scoreline.runtime.types import AnyArray, FloatArray, IntArray

FORMAT, VERSION = "scoreline scorecard", 1
UNREAD = ColumnBins("", "number", np.empty(0), np.zeros(1), None)  # a column that the card does not read


@dataclass(frozen=True)
class Line:
    """A line of a scorecard: a bin of a column, or several neighbours with equal points.

    Attributes
    ----------
    label : str
        The bin in words. Bins of numbers contain their upper edge: "25 to 30" is 25 < value <= 30.
    codes : tuple of int
        The codes of the column that the line stands for.
    points : int
        What the line adds to the points of a row.
    rows, share, event_rate : float
        Weight of the rows in the bin, its share of all rows, and the share of the positive class among them (NaN without rows).
    """

    label: str
    codes: tuple[int, ...]
    points: int
    rows: float
    share: float
    event_rate: float


@dataclass(frozen=True)
class CardColumn:
    """A column of a scorecard: how its values become codes, the points of each code, and its lines."""

    name: str
    position: int
    bins: ColumnBins
    points: IntArray
    lines: tuple[Line, ...]


@dataclass(frozen=True)
class Scorecard:
    """Integer points per bin of each column: the sum of `base_points` and of one line per column scores a row.

    `MeasureClassifier.scorecard` makes one. With `pdo` > 0 more points mean a lower risk of the positive class, as in credit;
    with `pdo` < 0 a higher one.

    Attributes
    ----------
    columns : tuple of CardColumn
        The columns, the widest range of points first.
    base_points : int
        Points of every row, to which those of the lines are added.
    cutoff : int
        `predict_class` says classes[1] up to this number of points for `pdo` > 0, and from it on for `pdo` < 0.
    classes : tuple
        The two classes; classes[1] is positive.
    points, pdo, base : float
        The scale: `points` at odds of `base` negatives to one positive, and `pdo` points more where these odds double.
    n_columns : int
        Columns of the X that it was made of.
    measure, measure_params : str, dict
        The measure that the model was trained for.
    rows, event_rate : float
        Weight of the training rows, and the share of the positive class among them.
    loss : dict
        What bins and rounding cost on the training rows: "measure" and "objective" of the "model", of the refit on the card's
        "bins", and of the "card"; "lower_bound" of the objective on these bins; "naive", the objective with each number rounded
        on its own.
    path : tuple of dict
        With `max_features`, the certified fits that chose the columns: "alpha", "columns", "objective", "lower_bound", and
        "measure" on the training rows. Their objective has a penalty on whole columns. Empty without `max_features`.
    reference : dict
        For `drift`: "edges" between ten bins of points and the "counts" of rows in them, "measure" on rows that the card was
        evaluated on, with the ends of its interval, and what these rows were ("evaluated_on").

    Examples
    --------
    >>> import numpy as np
    >>> from scoreline import MeasureClassifier
    >>> X = np.random.default_rng(0).normal(size=(2000, 2))
    >>> y = X[:, 0] - X[:, 1] > 1
    >>> card = MeasureClassifier("roc_auc", features="additive", alpha=0.01).fit(X, y).scorecard(X, y)
    >>> card.predict(X).dtype.kind, len(card.columns)
    ('i', 2)
    """

    columns: tuple[CardColumn, ...]
    base_points: int
    cutoff: int
    classes: tuple[Any, Any]
    points: float
    pdo: float
    base: float
    n_columns: int
    measure: str
    rows: float
    event_rate: float
    named: bool = False
    loss: dict[str, Any] = field(default_factory=dict)
    path: tuple[dict[str, Any], ...] = ()
    reference: dict[str, Any] = field(default_factory=dict)
    measure_params: dict[str, Any] | None = None

    def predict(self, X: Any) -> IntArray:
        """Return the points of each row, whole numbers.

        Parameters
        ----------
        X : array, frame or sparse matrix of shape (m, p)
            A frame needs the columns of the card only; an array all columns of the training rows, in their order.

        Returns
        -------
        ndarray of shape (m,) of int64
            The points. Missing values and categories that the training rows did not have get the points of their own lines.
        """
        codes = self.codes(X)
        total = np.full(codes.shape[1], self.base_points, dtype=np.int64)
        for column, own in zip(self.columns, codes, strict=True):
            total += column.points[own]
        return total

    def codes(self, X: Any) -> AnyArray:
        """Return the bin of every value that the card reads, one line per column of the card."""
        if self.named and is_frame(X):
            X = _selected(X, [column.name for column in self.columns])
            bins, places = [column.bins for column in self.columns], list(range(len(self.columns)))
        else:
            bins, places = [UNREAD] * self.n_columns, [column.position for column in self.columns]
            for column in self.columns:
                bins[column.position] = column.bins
        table = columns_of(X, [each.texts for each in bins])
        if table.shape[1] != len(bins):
            raise ValueError(f"X has {table.shape[1]} columns, the card was made of {self.n_columns}")
        return table_codes(table, bins)[places]

    def predict_class(self, X: Any) -> AnyArray:
        """Return the class of each row, by its points and `cutoff`."""
        return np.array(self.classes)[(self.decision(self.predict(X)) > 0.0).astype(np.intp)]

    def decision(self, points: Any) -> FloatArray:
        """Return scores that are above 0 for the points of classes[1] and larger for a higher risk, as measures need them."""
        beyond = np.asarray(points, dtype=np.float64) - self.cutoff
        return 0.5 - beyond if self.pdo > 0 else beyond + 0.5

    def evaluated(self, measure: Sequence[float], evaluated_on: str) -> "Scorecard":
        """Return the card with another measure for `reference`: the value and the ends of its interval."""
        return replace(self, reference={**self.reference, "measure": list(measure), "evaluated_on": evaluated_on})

    def with_classes(self, names: Sequence[Any]) -> "Scorecard":
        """Return the card with other names of the two classes."""
        return replace(self, classes=tuple(names))

    def probability(self, points: Any) -> FloatArray:
        """Return the probability of classes[1] that the scale gives to these points."""
        log_odds = math.log(self.base) + (np.asarray(points, dtype=np.float64) - self.points) * math.log(2.0) / self.pdo
        return np.asarray(1.0 / (1.0 + np.exp(np.clip(log_odds, -700.0, 700.0))))

    def drift(self, X: Any) -> Drift:
        """Return how far new rows are from the training rows: the population stability index of columns and points.

        The bins of a column are the lines of the card. Below 0.1 nothing changed, above 0.25 much did (eq. stability).

        Parameters
        ----------
        X : as in `predict`
            The new rows.
        """
        codes, found = self.codes(X), {}
        for column, own in zip(self.columns, codes, strict=True):
            counts = np.bincount(own, minlength=column.bins.size)
            pairs = [(line.rows, float(counts[list(line.codes)].sum())) for line in column.lines]
            expected, actual = zip(*(pair for pair in pairs if any(pair)), strict=True)
            found[column.name] = population_stability(expected, actual)
        points = counts_between(np.asarray(self.reference["edges"]), self.predict(X).astype(np.float64))
        index = population_stability(self.reference["counts"], points)
        return Drift.of(found, index, codes.shape[1], round(self.rows))

    def to_rows(self) -> list[dict[str, Any]]:
        """Return the table as a list of dicts: column, bin, points, rows, share, event_rate."""
        return [
            {
                "column": column.name, "bin": line.label, "points": line.points, "rows": line.rows, "share": line.share,
                "event_rate": line.event_rate,
            }
            for column in self.columns
            for line in column.lines
        ]  # fmt: skip

    def to_frame(self) -> Any:
        """Return the table as a pandas DataFrame."""
        return require("pandas", "pandas", "Scorecard.to_frame").DataFrame(self.to_rows())

    def to_csv(self, path: Any = None) -> str:
        """Return the table as CSV, and write it to a file if a path is given."""
        text = io.StringIO()
        rows = self.to_rows()
        writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(
            {**row, "event_rate": "" if math.isnan(row["event_rate"]) else row["event_rate"]} for row in rows
        )
        return _written(text.getvalue(), path)

    def to_html(self, path: Any = None, title: str = "Scorecard") -> str:
        """Return a page that prints on one sheet, and write it to a file if a path is given."""
        from scoreline.scorecards.pages import html_page

        return _written(html_page(self, title), path)

    def to_markdown(self, path: Any = None) -> str:
        """Return the table as Markdown, and write it to a file if a path is given."""
        from scoreline.scorecards.pages import markdown_table

        return _written(markdown_table(self), path)

    def to_latex(self, path: Any = None) -> str:
        """Return the table as a LaTeX tabular, and write it to a file if a path is given."""
        from scoreline.scorecards.pages import latex_table

        return _written(latex_table(self), path)

    def to_json(self, path: Any = None) -> dict[str, Any]:
        """Return the card as dicts, lists, texts and numbers, and write it to a file if a path is given."""
        columns = [
            {
                "name": column.name, "position": column.position, "kind": column.bins.kind,
                "values": column.bins.values.tolist(),
                "texts": None if column.bins.texts is None else list(column.bins.texts),
                "points": column.points.tolist(),
                "lines": [_plain_line(line) for line in column.lines],
            }
            for column in self.columns
        ]  # fmt: skip
        plain = {
            name: getattr(self, name)
            for name in (
                "base_points", "cutoff", "points", "pdo", "base", "n_columns", "measure", "measure_params", "rows",
                "event_rate", "named", "loss", "reference",
            )
        }  # fmt: skip
        document = {
            "format": FORMAT, "version": VERSION, **plain,
            "classes": [value.item() if isinstance(value, np.generic) else value for value in self.classes],
            "path": list(self.path),
            "columns": columns,
            "formula": "points of a row = base_points + the points of one code per column. Code 0: the value is missing. "
            "Numbers: 1 + how many of values are below it. Categories: 1 + its place among values, or the last code for "
            "others; where texts are given, values are places among them.",
        }  # fmt: skip
        _written(json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n", path)
        return document

    @classmethod
    def from_json(cls, document: Any) -> "Scorecard":
        """Return the card of a document of `to_json`, or of the path of such a file."""
        if not isinstance(document, dict):
            with open(document, encoding="utf-8") as file:
                document = json.load(file)
        if document.get("format") != FORMAT or document.get("version") != VERSION:
            raise ValueError(
                f"the document has format {document.get('format')!r} and version {document.get('version')!r}, expected "
                f"{FORMAT!r} and {VERSION}"
            )
        columns = []
        for each in document["columns"]:
            texts = None if each["texts"] is None else tuple(each["texts"])
            values = np.array(each["values"], dtype=np.float64)
            bins = ColumnBins(each["name"], each["kind"], values, np.zeros(len(values) + 1), texts)
            points = np.array(each["points"], dtype=np.int64)
            if len(points) != bins.size:
                raise ValueError(f"column {each['name']!r} has {len(points)} points, expected {bins.size}")
            lines = [
                Line(**{**line, "codes": tuple(line["codes"]), "event_rate": _nan(line["event_rate"])})
                for line in each["lines"]
            ]
            columns.append(CardColumn(each["name"], each["position"], bins, points, tuple(lines)))
        own = {name: document[name] for name in cls.__dataclass_fields__ if name not in ("columns", "classes", "path")}
        return cls(tuple(columns), classes=tuple(document["classes"]), path=tuple(document["path"]), **own)

    def _repr_html_(self) -> str:
        from scoreline.scorecards.pages import html_tables

        return html_tables(self)

    def __str__(self) -> str:
        return self.to_markdown()


def lines_of(
    bins: ColumnBins, points: IntArray, rows: FloatArray, events: FloatArray, total: float
) -> tuple[Line, ...]:
    """Return the lines of a column: neighbouring bins with equal points are one, categories with equal points too.

    The last ones are those of missing values and, for categories, of all that are not named.
    """
    groups: list[list[int]] = []
    if bins.kind == "number":
        for code in range(1, bins.size):
            if groups and points[groups[-1][0]] == points[code]:
                groups[-1].append(code)
            else:
                groups.append([code])
    else:
        known = range(1, bins.size - 1)
        groups += [[code for code in known if points[code] == value] for value in sorted(set(points[1:-1].tolist()))]
        groups.append([bins.size - 1])
    groups.append([0])
    found = []
    for codes in groups:
        weight, positive = float(rows[codes].sum()), float(events[codes].sum())
        share, rate = weight / total, positive / weight if weight > 0.0 else math.nan
        found.append(Line(_label(bins, codes), tuple(codes), int(points[codes[0]]), weight, share, rate))
    return tuple(found)


def _label(bins: ColumnBins, codes: list[int]) -> str:
    if codes == [0]:
        return "missing"
    if bins.kind == "category":
        words = bins.labels()
        return "all others" if codes == [bins.size - 1] else ", ".join(words[code] for code in codes)
    low, high = codes[0] - 2, codes[-1] - 1
    if low < 0 and high >= len(bins.values):
        return "all values"
    if low < 0:
        return f"up to {bins.values[high]:.10g}"
    if high >= len(bins.values):
        return f"above {bins.values[low]:.10g}"
    return f"{bins.values[low]:.10g} to {bins.values[high]:.10g}"


def _selected(X: Any, names: list[str]) -> Any:
    """Return some columns of a frame, or raise if one is not there."""
    known = [str(name) for name in (X.column_names if hasattr(X, "column_names") else X.columns)]
    absent = [name for name in names if name not in known]
    if absent:
        raise ValueError(f"X has no column {absent[0]!r}, which the card reads; its columns are {known[:10]}")
    return X.select(names) if hasattr(X, "select") else X[names]


def _plain_line(line: Line) -> dict[str, Any]:
    rate = None if math.isnan(line.event_rate) else line.event_rate
    return {**asdict(line), "codes": list(line.codes), "event_rate": rate}


def _nan(value: float | None) -> float:
    return math.nan if value is None else value


def _written(text: str, path: Any) -> str:
    if path is not None:
        with atomic_file(os.fspath(path)) as file:
            file.write(text.encode())
    return text
