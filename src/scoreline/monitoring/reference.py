"""What the rows of a training looked like, in a few bins of each column and of the scores."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from scoreline.features.bins import ColumnBins, category_bins, number_bins
from scoreline.features.columns import MOST_COLUMNS, columns_of
from scoreline.features.fitted import table_codes
from scoreline.monitoring.stability import population_stability
from scoreline.runtime.types import FloatArray

BINS = 10  # of a column of numbers and of the scores
SAMPLE_ROWS = 20_000  # that the reference is made of


class Drift(NamedTuple):
    """How far new rows are from the reference.

    Attributes
    ----------
    columns : dict
        The population stability index of each column, the largest first.
    scores : float
        That of the scores.
    rows, reference_rows : int
        How many rows were compared.
    """

    columns: dict[str, float]
    scores: float
    rows: int
    reference_rows: int

    @classmethod
    def of(cls, columns: dict[str, float], scores: float, rows: int, reference_rows: int) -> "Drift":
        """Return the drift with its columns in order."""
        return cls(dict(sorted(columns.items(), key=lambda each: -each[1])), scores, rows, reference_rows)


class Reference:
    """Counts of rows in ten bins of each column and of the scores, saved with a model as `clf.reference_`.

    `scoreline train` sets it for tables. In Python, `clf.reference_ = Reference.of(X, clf.decision_function(X))` before `save`.

    Parameters
    ----------
    columns : sequence of ColumnBins
        Bins of each column; none where X has too many columns.
    counts : sequence of arrays
        Rows in each bin of each column, missing values first.
    score_edges, score_counts : array
        Edges between bins of the scores, and the rows in each.
    measure : list of float, optional
        The measure and its interval on rows that the model was evaluated on: value, low, high.
    evaluated_on : str, optional
        What these rows were, in words.
    """

    def __init__(
        self,
        columns: Sequence[ColumnBins],
        counts: Sequence[FloatArray],
        score_edges: FloatArray,
        score_counts: FloatArray,
        measure: Sequence[float] | None = None,
        evaluated_on: str = "",
    ):
        self.columns, self.counts = tuple(columns), tuple(counts)
        self.score_edges, self.score_counts = score_edges, score_counts
        self.measure = None if measure is None else [float(value) for value in measure]
        self.evaluated_on = evaluated_on

    @classmethod
    def of(cls, X: Any, scores: Any, names: Sequence[str] | None = None, categories: Sequence[int] = ()) -> "Reference":
        """Return the reference of some rows and their scores.

        Parameters
        ----------
        X : array, frame, sparse matrix or mapped folder of shape (n, p)
            The rows; of more than 20,000 a sample is taken. Beyond 5000 columns only scores are kept.
        scores : array of n numbers
            What `decision_function` returns for them.
        names : list of str, optional
            Names of the columns, where X has none.
        categories : sequence of int, default=()
            Columns of numbers that are categories.
        """
        scores = np.asarray(scores, dtype=np.float64)
        rows = np.linspace(0, len(scores) - 1, min(len(scores), SAMPLE_ROWS)).astype(np.intp)
        columns, counts = [], []
        if _width(X) <= MOST_COLUMNS:
            table = columns_of(X)
            known = list(names or table.names or [f"x{j}" for j in range(table.shape[1])])
            for j, values in enumerate(table.sample(rows)):
                texts, ones = table.texts(j), np.ones(len(rows))
                if texts is not None or j in categories:
                    bins = category_bins(known[j], values, ones, texts)
                    exact = np.searchsorted(bins.values, values)
                    inside = exact < len(bins.values)
                    inside[inside] = bins.values[exact[inside]] == values[inside]
                    codes = np.where(inside, 1 + exact, bins.size - 1)
                else:
                    bins = number_bins(known[j], values, ones, BINS)
                    codes = 1 + np.searchsorted(bins.values, values)
                codes = np.where(np.isnan(values), 0, codes)
                columns.append(bins)
                counts.append(np.bincount(codes, minlength=bins.size).astype(np.float64))
        return cls(columns, counts, *score_bins(scores[rows]))

    def drift(self, X: Any, scores: Any) -> Drift:
        """Return how far rows and their scores are from the reference; all rows are read."""
        scores, found = np.asarray(scores, dtype=np.float64), {}
        if self.columns:
            table = columns_of(X, [column.texts for column in self.columns])
            if table.shape[1] != len(self.columns):
                raise ValueError(f"X has {table.shape[1]} columns, the reference has {len(self.columns)}")
            for column, own, codes in zip(self.columns, self.counts, table_codes(table, self.columns), strict=True):
                counts = np.bincount(codes, minlength=column.size).astype(np.float64)
                occurs = (own > 0.0) | (counts > 0.0)
                found[column.name] = population_stability(own[occurs], counts[occurs])
        index = population_stability(self.score_counts, counts_between(self.score_edges, scores))
        return Drift.of(found, index, len(scores), int(self.score_counts.sum()))

    def record(self) -> dict[str, Any]:
        """Return plain values from which `restored` makes the same."""
        return {
            "columns": [column._asdict() for column in self.columns],
            "counts": list(self.counts),
            "score_edges": self.score_edges,
            "score_counts": self.score_counts,
            "measure": self.measure,
            "evaluated_on": self.evaluated_on,
        }

    @classmethod
    def restored(cls, record: Any) -> "Reference":
        """Return the reference of a record, or raise."""
        found = cls(
            [ColumnBins(**column) for column in record["columns"]],
            record["counts"], record["score_edges"], record["score_counts"], record["measure"],
            str(record.get("evaluated_on", "")),
        )  # fmt: skip
        arrays = [*found.counts, found.score_edges, found.score_counts, *(column.values for column in found.columns)]
        sizes = [len(column.values) + 2 for column in found.columns]
        fits = all(isinstance(each, np.ndarray) and each.dtype == np.float64 and each.ndim == 1 for each in arrays)
        if not (
            fits
            and [len(each) for each in found.counts] == sizes
            and len(found.score_counts) == len(found.score_edges) + 1
            and (found.measure is None or len(found.measure) == 3)
        ):
            raise ValueError("reference_ does not hold a count for each bin")
        return found


def score_bins(scores: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return edges that cut scores into ten bins of about equal size, and the rows in each bin."""
    edges = np.unique(np.quantile(scores, np.arange(1, BINS) / BINS))
    return edges, counts_between(edges, scores)


def counts_between(edges: FloatArray, scores: FloatArray) -> FloatArray:
    """Return how many scores are in each bin; a bin contains its upper edge."""
    return np.bincount(np.searchsorted(edges, scores), minlength=len(edges) + 1).astype(np.float64)


def _width(X: Any) -> int:
    shape = getattr(X, "shape", None)
    return len(X.columns) if shape is None or len(shape) < 2 else int(shape[1])
