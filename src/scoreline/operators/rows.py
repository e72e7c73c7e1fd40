"""Some rows of a matrix as an operator of its own: products read those rows where they lie, nothing is copied."""

from typing import Any

import numpy as np

from scoreline.operators.base import Operator, default_block_rows
from scoreline.operators.second_order import block_gram, gram_of_blocks
from scoreline.operators.statistics import ColumnStatistics
from scoreline.runtime.types import AnyArray, BoundsArray, FloatArray, Scores


class RowsOperator(Operator):
    """X[rows]: row-restricted products of X. Its passes are passes over its own rows; `inner` does not count them.

    Blocks of rows, which Gram matrices need, are copied one at a time.
    """

    def __init__(self, inner: Operator, rows: AnyArray):
        inner.require("rows", "products restricted to rows")
        lines = inner._row_list(rows)
        super().__init__((len(lines), inner.shape[1]))
        self.inner, self.rows = inner, lines
        self.capabilities = inner.capabilities  # type: ignore[misc]
        self.scores = inner.scores  # type: ignore[misc]
        self.largest = inner.largest  # of all rows: not less than of these
        self.column_map, self.tails_checked = inner.column_map, True  # a fit of some rows is part of another one

    def _matvec(self, w: FloatArray) -> Scores:
        return self.inner._matvec_rows(w, self.rows)

    def _rmatvec(self, u: Scores) -> FloatArray:
        return self.inner._rmatvec_rows(u, self.rows)

    def _matvec_rows(self, w: FloatArray, lines: BoundsArray) -> Scores:
        return self.inner._matvec_rows(w, self.rows[lines])

    def _rmatvec_rows(self, u: Scores, lines: BoundsArray) -> FloatArray:
        return self.inner._rmatvec_rows(u, self.rows[lines])

    def _listed(self, lines: BoundsArray) -> Any:
        return self.inner._listed(self.rows[lines])

    def _block(self, start: int, stop: int) -> Any:
        return self.inner._listed(self.rows[start:stop])

    def _gram(self, weight: FloatArray) -> FloatArray:
        if not self.inner.stores_zeros:  # the kernel for sparse blocks has threads of its own
            step = default_block_rows(*self.shape)
            total = np.zeros((self.shape[1],) * 2)
            for start in range(0, self.shape[0], step):
                rows = np.uint64(start) + np.flatnonzero(weight[start : start + step]).astype(np.uint64)
                total += block_gram(self._listed(rows), weight[rows])
            return total
        return gram_of_blocks(self._block, self.shape, weight)

    def _column_statistics(self, weight: Scores | None) -> ColumnStatistics:
        """Return those of all rows with the weight of these; a row that is listed twice counts twice."""
        full = np.bincount(self.rows.astype(np.intp), weight, self.inner.shape[0]).astype(np.float64)
        return self.inner._column_statistics(full)

    def gram_passes(self) -> float:
        """Return about how many products a call of `gram` costs; the rows are copied first."""
        return self.inner.gram_passes() + 3.0

    @property
    def row_bytes(self) -> float:
        """Bytes of a row as `row_arrays` holds it, on average."""
        return self.inner.row_bytes

    @property
    def stores_zeros(self) -> bool:
        """Whether blocks are dense."""
        return self.inner.stores_zeros

    @property
    def cheap_rows(self) -> bool:
        """Whether some rows cost their share of a product."""
        return self.inner.cheap_rows
