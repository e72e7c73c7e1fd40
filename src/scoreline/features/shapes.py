"""The functions of an additive model, to be read: one value per bin of a column, or per cell of a pair."""

from typing import Any, NamedTuple

import numpy as np

from scoreline.features.fitted import FittedFeatures
from scoreline.runtime.optional import require
from scoreline.runtime.types import AnyArray, FloatArray


class ShapeFunction(NamedTuple):
    """What a column, or a pair of columns, adds to the score.

    Its mean over the training rows is 0: a positive value favours the positive class.
    """

    columns: tuple[str, ...]  # one name, or two
    labels: tuple[list[str], ...]  # of the bins of each column, in words
    scores: FloatArray  # one entry per bin, or a table with a row per cell of the first column
    counts: FloatArray  # weight of the training rows, of the same shape
    importance: float
    errors: FloatArray | None = None  # standard errors of the scores, of the same shape

    @property
    def name(self) -> str:
        """The names of the columns."""
        return " and ".join(self.columns)

    def to_frame(self) -> Any:
        """Return a pandas data frame with a row per bin, or per cell of a pair.

        Its columns are `function`, `bin`, `other_bin` (of the second column of a pair, else None), `score`, `rows` and
        `error` (NaN where the function was made without bands), so frames of several functions can be concatenated.
        """
        pandas = require("pandas", "pandas", "ShapeFunction.to_frame")
        first, second = self.labels if len(self.labels) == 2 else (self.labels[0], [None])
        cells = self.scores.size
        return pandas.DataFrame(
            {
                "function": [self.name] * cells,
                "bin": [word for word in first for _ in second],
                "other_bin": [word for _ in first for word in second],
                "score": self.scores.ravel(),
                "rows": self.counts.ravel(),
                "error": np.full(cells, np.nan) if self.errors is None else self.errors.ravel(),
            }
        )


def spread(scores: FloatArray, counts: FloatArray) -> float:
    """Return the standard deviation of a function over the training rows."""
    share = counts / max(float(counts.sum()), 1e-300)
    return float(np.sqrt(max(0.0, float((share * np.square(scores - (share * scores).sum())).sum()))))


def shape_functions(features: FittedFeatures, coef: FloatArray, names: list[str]) -> list[ShapeFunction]:
    """Return the function of each column and of each pair; importance is the standard deviation over the training rows."""
    found = []
    for group, table, counts in zip(features.groups, features.tables(coef), features.cell_counts(), strict=True):
        one, other = group.columns
        if other < 0:
            labels: tuple[list[str], ...] = (features.columns[one].labels(),)
            columns: tuple[str, ...] = (names[one],)
        else:
            width = int(group.far.max()) + 1
            table, counts = table.reshape(-1, width), counts.reshape(-1, width)
            lines = group.near // width, group.far
            columns = names[one], names[other]
            labels = tuple(
                _cell_labels(features, column, line, size)
                for column, line, size in zip(group.columns, lines, table.shape, strict=True)
            )
        found.append(ShapeFunction(columns, labels, table, counts, spread(table, counts)))
    return found


def _cell_labels(features: FittedFeatures, column: int, grid: AnyArray, cells: int) -> list[str]:
    """Return what each cell of a column of a pair stands for: the bins from the first to the last, or categories."""
    bins = features.columns[column]
    words, found = bins.labels(), []
    for cell in range(cells):
        own = [int(code) for code in np.flatnonzero(grid[: bins.size] == cell)]
        if own == [0]:
            found.append("missing")
        elif bins.kind == "category":
            found.append(words[own[0]] if len(own) == 1 else "others")
        else:
            codes = [code for code in own if code > 0]
            low, high = (bins.values[k] if 0 <= k < len(bins.values) else None for k in (codes[0] - 2, codes[-1] - 1))
            ends = (
                f"up to {high:.6g}" if low is None and high is not None else f"above {low:.6g}" if high is None else ""
            )
            found.append("all values" if low is high is None else ends or f"{low:.6g} to {high:.6g}")
    return found
