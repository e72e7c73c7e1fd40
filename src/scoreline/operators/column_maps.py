"""Monotone maps of columns for heavy-tailed features: values are clipped, or replaced by normal scores.

`scaling="robust"` clips every column to limits around its median, and `scaling="quantile"` replaces values by the normal scores
of their ranks. Both are piecewise linear functions through a few knots that are learnt from X alone. A map leaves 0 at 0, so a
sparse matrix stays sparse; the constant that is lost is part of the intercept.
"""

import logging
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.special import ndtr, ndtri

from scoreline import kernels
from scoreline.operators.base import Operator
from scoreline.operators.block_sums import block_spans
from scoreline.operators.convert import as_operator
from scoreline.operators.mapped import FewRows
from scoreline.operators.statistics import ColumnStatistics, merge
from scoreline.operators.wrappers import Wrapper
from scoreline.runtime import parallel
from scoreline.runtime.types import AnyArray, Block, BoundsArray, FloatArray, IntArray, Scores

logger = logging.getLogger("scoreline")

KINDS = ("robust", "quantile")
CLIP_SPREADS = 6.0  # spreads of a side, from the median to the limit: 4 standard deviations of a normal column
KNOT_SCORES = np.linspace(-3.0, 3.0, 19)  # normal scores of the knots, besides the smallest and largest value
MOST_NORMAL_SCORE = 4.0  # normal score of the smallest and the largest value, at most
SAMPLE_BYTES = 1 << 24  # of rows that knots are learnt from
SAMPLE_SPANS = 64  # runs of consecutive rows that a sample consists of
UNKNOWN_LARGEST = 1e150  # stands for a largest magnitude that is not known: its double and its ratios are finite
HEAVY_TAIL_RATIO = 2.0  # of the standard deviations of a column before and after clipping, at least
LEAST_NONZERO_SHARE = 0.1  # of a column whose tail is judged: rare words have no typical count
LEAST_TAIL_ROWS = 200  # of a sample that is judged: among 60 rows of many columns, one looks heavy-tailed by chance
TAIL_BYTES = 1 << 18  # of rows that are searched for heavy tails: milliseconds, while a fit takes at least as many
MOST_TAIL_BYTES = 1 << 21  # of the fewest rows, or of one number per column: wider data are not judged


class ColumnMap(NamedTuple):
    """A piecewise linear function for each column: through the knots (x, y), constant beyond the first and the last.

    The knots of column j are those from starts[j] to starts[j + 1]; x increases, y does not decrease, and 0 is mapped to 0.
    """

    kind: str
    starts: IntArray
    x: FloatArray
    y: FloatArray

    @classmethod
    def learn(cls, operator: Operator, kind: str, weight: Any = None) -> "ColumnMap":
        """Learn the knots of every column from the rows of positive weight, or from a sample of 16 MiB of them.

        Cost: one sort of every column of the sample.
        """
        sample = Sample.of(operator, weight, f"scaling={kind!r}")
        if kind == "robust":
            x = np.stack(sample.limits(), axis=1)
            return cls._of(kind, x, x - np.clip(0.0, x[:, :1], x[:, 1:]))._with_constants(operator)
        x, middle = sample.quantiles(np.concatenate([[0.0], ndtr(KNOT_SCORES), [1.0]]))
        y = np.clip(ndtri(middle), -MOST_NORMAL_SCORE, MOST_NORMAL_SCORE)
        zero = np.zeros((1, operator.shape[1]))
        at_zero = cls._of(kind, x, y).transform(zero).T
        x, y = np.hstack([x, np.clip(zero.T, x[:, :1], x[:, -1:])]), np.hstack([y, at_zero]) - at_zero
        order = np.argsort(x, axis=1, kind="stable")
        x, y = (np.take_along_axis(each, order, axis=1) for each in (x, y))
        y = np.maximum.accumulate(y, axis=1)  # rounding may have put the value at 0 above the next knot
        return cls._of(kind, x, y)._with_constants(operator)

    def _with_constants(self, operator: Operator) -> "ColumnMap":
        """Return the map that leaves columns as they are where the sample has one value only: other rows may have others."""
        sizes = np.diff(self.starts)
        alone = sizes == 1
        if not alone.any():
            return self
        known = np.full(len(sizes), np.inf) if operator.largest is None else operator.largest
        largest = np.clip(known, 1.0, UNKNOWN_LARGEST)
        twice = 1 + np.repeat(alone, sizes)
        starts = np.concatenate([[0], np.cumsum(sizes + alone)])
        x, y = np.repeat(self.x, twice), np.repeat(self.y, twice)
        first = starts[:-1][alone]
        for place, sign in ((first, -1.0), (first + 1, 1.0)):
            x[place] = y[place] = sign * largest[alone]
        return self._replace(starts=starts, x=x, y=y)

    @classmethod
    def _of(cls, kind: str, x: FloatArray, y: FloatArray) -> "ColumnMap":
        """Return the map with one row of knots per column, without repeated knots."""
        increasing = np.hstack([np.ones((len(x), 1), dtype=bool), x[:, 1:] > x[:, :-1]])
        return cls(kind, np.concatenate([[0], np.cumsum(increasing.sum(axis=1))]), x[increasing], y[increasing])

    def knots(self, column: int) -> tuple[FloatArray, FloatArray]:
        """Return the knots (x, y) of a column."""
        own = slice(int(self.starts[column]), int(self.starts[column + 1]))
        return self.x[own], self.y[own]

    def transform(self, block: Block) -> Block:
        """Return the mapped rows as a new float64 array or CSR matrix; NaN and infinity become NaN."""
        run = parallel.run_chunks
        if sp.issparse(block):
            block = block.tocsr()
            if not block.has_canonical_format:  # entries that name the same place are one value
                block = block.copy()
                block.sum_duplicates()
            out = np.empty(len(block.data))
            bounds = parallel.even_bounds(len(out), 8.0)
            arguments = block.data, block.indices, self.starts, self.x, self.y, out, bounds
            run(kernels.quantiles.map_entries, len(bounds) - 1, *arguments)
            return sp.csr_array((out, block.indices, block.indptr), shape=block.shape)
        out = np.empty(block.shape)
        bounds = parallel.even_bounds(len(out), 8.0 * block.shape[1])
        run(kernels.quantiles.map_rows, len(bounds) - 1, block, self.starts, self.x, self.y, out, bounds)
        return out

    def applied(self, operator: Operator) -> Operator:
        """Return the mapped columns as an operator that knows this map.

        A matrix in memory is mapped once, into a copy; rows on disk are mapped whenever they are read.
        """
        if operator.scores == "blocks":
            mapped = operator.wrap_parts(self.applied)
        elif isinstance(operator, FewRows):
            mapped = ColumnMapOperator(operator, self)
        else:
            logger.info("copied X once: scaling=%r maps its columns", self.kind)
            mapped = as_operator(self.transform(operator._block(0, operator.shape[0])))
        mapped.column_map = self
        return mapped

    def record(self) -> dict[str, Any]:
        """Return plain values from which `restored` makes the same map."""
        return self._asdict()

    @classmethod
    def restored(cls, record: Any, n_features: int) -> "ColumnMap":
        """Return the map of a record; anything else is an error."""
        found = cls(**record)
        starts, x, y = (np.asarray(part) for part in found[1:])
        sizes = np.diff(starts)
        inner = np.ones(len(x), dtype=bool)
        fits = (
            found.kind in KINDS
            and starts.dtype == np.int64
            and len(sizes) == n_features
            and starts[0] == 0
            and starts[-1] == len(x) == len(y)
            and bool((sizes >= 1).all())
            and x.dtype == y.dtype == np.float64
            and bool(np.isfinite(x).all() and np.isfinite(y).all())
        )
        if fits:
            inner[starts[:-1]] = False  # a first knot has none before it
            fits = bool((np.diff(x, prepend=-np.inf)[inner] > 0.0).all())
        if not fits:
            raise ValueError(f"column_map_ does not hold increasing knots for each of {n_features} features")
        return found


class Sample(NamedTuple):
    """Rows of positive weight by columns (CSC), with the entries of each column in increasing order."""

    data: FloatArray
    rows: IntArray
    starts: IntArray
    columns: IntArray  # that each entry belongs to
    weight: FloatArray

    @classmethod
    def of(cls, operator: Operator, weight: Any, purpose: str, most_bytes: int = SAMPLE_BYTES) -> "Sample":
        """Return all rows, or evenly spread runs of consecutive rows of `most_bytes` in all."""
        if operator.scores == "device":
            raise TypeError(f"{purpose} is not supported for X on a device: scale X before, or leave it on the host")
        operator.require("row_blocks", purpose)
        n, p = operator.shape
        every = np.ones(n) if weight is None else np.asarray(weight, dtype=np.float64)
        length = int(max(1.0, most_bytes / max(8.0, operator.row_bytes) / SAMPLE_SPANS))
        spans = [(0, n)] if length * SAMPLE_SPANS >= n else _spans(np.flatnonzero(every > 0.0), length, n)
        blocks = [operator._block(first, last) for first, last in spans]
        own = np.concatenate([every[first:last] for first, last in spans])
        own, counted = own[own > 0.0], own > 0.0
        if not sp.issparse(blocks[0]):
            dense = np.concatenate([np.asarray(block, dtype=np.float64) for block in blocks])[counted].T.copy()
            order = np.argsort(dense, axis=1)
            starts, columns = np.arange(p + 1) * len(own), np.repeat(np.arange(p), len(own))
            return cls(np.take_along_axis(dense, order, axis=1).ravel(), order.ravel(), starts, columns, own)
        stacked = sp.csr_array(sp.vstack(blocks, format="csr")[counted])
        stacked.sum_duplicates()
        rows = np.repeat(np.arange(len(own)), np.diff(stacked.indptr))
        order = np.lexsort((stacked.data, stacked.indices))
        columns = stacked.indices[order].astype(np.int64)
        starts = np.searchsorted(columns, np.arange(p + 1))
        return cls(np.asarray(stacked.data[order], dtype=np.float64), rows[order], starts, columns, own)

    def _run(self, kernel: Any, *arguments: Any) -> None:
        p = len(self.starts) - 1
        bounds = parallel.even_bounds(p, 8.0 * max(1.0, len(self.data) / p))
        matrix = self.data, self.rows, self.starts, self.weight, float(self.weight.sum())
        parallel.run_chunks(kernel, len(bounds) - 1, *matrix, *arguments, bounds)

    def quantiles(self, levels: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the quantiles of each column, and their mid-ranks as shares of the weight (eq. normal-score)."""
        found, middle = (np.empty((len(self.starts) - 1, len(levels))) for _ in range(2))
        self._run(kernels.quantiles.quantiles, levels, found, middle)
        return found, middle

    def limits(self) -> tuple[FloatArray, FloatArray]:
        """Return the lower and the upper limit of each column: the median -+ CLIP_SPREADS spreads (eq. clip-limits)."""
        low, high = (np.empty(len(self.starts) - 1) for _ in range(2))
        self._run(kernels.quantiles.limits, CLIP_SPREADS, low, high)
        return low, high

    def moments(self, data: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return mean and standard deviation of each column, with other values for its entries."""
        p, own, total = len(self.starts) - 1, self.weight[self.rows], self.weight.sum()
        stored = np.bincount(self.columns, own, p)
        mean = np.bincount(self.columns, own * data, p) / total
        square = np.bincount(self.columns, own * (data - mean[self.columns]) ** 2, p)
        return mean, np.sqrt((square + np.maximum(total - stored, 0.0) * mean**2) / total)


def _spans(counted: AnyArray, length: int, n: int) -> list[tuple[int, int]]:
    """Return runs of consecutive rows that begin at evenly spread rows of positive weight and do not overlap."""
    spans: list[tuple[int, int]] = []
    for first in counted[np.linspace(0, len(counted) - 1, SAMPLE_SPANS).astype(np.intp)].tolist():
        start = max(first, spans[-1][1]) if spans else first
        if start < min(first + length, n):
            spans.append((start, min(first + length, n)))
    return spans


class ColumnMapOperator(Wrapper):
    """Mapped columns of a matrix whose rows are mapped whenever they are read, in blocks of about 8 MB."""

    def __init__(self, inner: Operator, column_map: ColumnMap):
        super().__init__(inner, inner.shape)
        inner.require("row_blocks", f"scaling={column_map.kind!r}")
        self.column_map = column_map
        columns = np.repeat(np.arange(inner.shape[1]), np.diff(column_map.starts))
        self.largest = np.zeros(inner.shape[1])
        np.maximum.at(self.largest, columns, np.abs(column_map.y))

    def _wrap(self, block: Block) -> Block:
        return self.column_map.transform(block)

    def _parts(self) -> Iterator[tuple[slice, Operator]]:
        """Yield the mapped blocks of all rows, and which rows they are."""
        self.inner._count(1.0)
        for b in self.inner.row_blocks():
            yield slice(b.start, b.stop), as_operator(self._wrap(b.data), check_finite=False)

    def _listed_parts(self, lines: BoundsArray) -> Iterator[tuple[slice, Operator]]:
        """Yield the mapped blocks of listed rows, and which places of the list they are."""
        self.inner._count(len(lines) / self.shape[0])
        for own in (slice(*span) for span in block_spans(len(lines), self.shape[1])):
            yield own, as_operator(self._listed(lines[own]), check_finite=False)

    def _matvec(self, w: FloatArray) -> Scores:
        return np.concatenate([part._matvec(w) for _, part in self._parts()])

    def _rmatvec(self, u: Scores) -> FloatArray:
        return np.asarray(np.sum([part._rmatvec(u[own]) for own, part in self._parts()], axis=0))

    def _matvec_rows(self, w: FloatArray, lines: BoundsArray) -> Scores:
        return np.concatenate([np.empty(0), *(part._matvec(w) for _, part in self._listed_parts(lines))])

    def _rmatvec_rows(self, u: Scores, lines: BoundsArray) -> FloatArray:
        total = np.zeros(self.shape[1])
        for own, part in self._listed_parts(lines):
            total += part._rmatvec(u[own])
        return total

    def _column_statistics(self, weight: Scores | None) -> ColumnStatistics:
        return merge([part._column_statistics(None if weight is None else weight[own]) for own, part in self._parts()])

    def inspect(self) -> tuple[int, int] | None:
        return self.inner.inspect()

    def on_rows(self, rows: AnyArray) -> "ColumnMapOperator":
        part = ColumnMapOperator(self.inner.on_rows(rows), self.column_map)
        part.tails_checked = True
        return part

    @property
    def reads_all(self) -> bool:
        return self.inner.reads_all

    @property
    def row_bytes(self) -> float:
        return self.inner.row_bytes

    def unwrap(self, w: FloatArray, b: float) -> tuple[FloatArray, float]:
        """Return coefficients and intercept as they are: those of a model are per unit of the mapped values."""
        return w, b

    def wrap(self, w: FloatArray, b: float) -> tuple[FloatArray, float]:
        return w, b


def with_mapped_columns(operator: Operator, scaling: str | None, weight: Any = None) -> Operator:
    """Return the operator with the columns that scaling="robust" or "quantile" maps, or as it is.

    An operator whose columns are mapped stays as it is: folds and refits use the map of the whole fit.
    """
    if scaling not in KINDS or operator.column_map is not None:
        return operator
    return ColumnMap.learn(operator, scaling, weight).applied(operator)


def mapped_like(operator: Operator, column_map: ColumnMap | None) -> Operator:
    """Return other rows with the columns mapped as those of the training rows; each block is mapped when it is read."""
    if column_map is None or operator.column_map is not None:
        return operator
    if operator.scores == "blocks":
        return operator.wrap_parts(partial(mapped_like, column_map=column_map))
    if operator.scores == "device":
        raise TypeError(
            f"the model was trained with scaling={column_map.kind!r}, which is not supported for X on a device: pass X on the "
            "host"
        )
    return ColumnMapOperator(operator, column_map)


def heavy_tailed(operator: Operator, weight: Any = None) -> AnyArray:
    """Return the columns whose standard deviation is at least twice that of their values clipped to the robust limits.

    A sample of the rows is looked at. Rare extreme values outside of it show in the largest magnitude of the column, where that
    is known: one row of n with the value v makes the variance at least (v - mean)^2 / n. Nothing is clipped of a column that
    holds only 0 and 1, however rare the ones are.
    """
    if "row_blocks" not in operator.capabilities or operator.scores == "device":
        return np.empty(0, dtype=np.intp)
    least = LEAST_TAIL_ROWS * operator.row_bytes
    if max(least, 8.0 * operator.shape[1]) > MOST_TAIL_BYTES:
        return np.empty(0, dtype=np.intp)
    sample = Sample.of(operator, weight, "looking for heavy tails", int(max(TAIL_BYTES, 1.5 * least)))
    if len(sample.weight) < LEAST_TAIL_ROWS:
        return np.empty(0, dtype=np.intp)
    low, high = sample.limits()
    at_zero = np.clip(0.0, low, high)
    clipped = np.clip(sample.data, low[sample.columns], high[sample.columns]) - at_zero[sample.columns]
    with np.errstate(over="ignore", invalid="ignore"):
        mean, deviation = sample.moments(sample.data)
        if operator.largest is not None:
            rare = np.maximum(operator.largest - np.abs(mean), 0.0) / np.sqrt(operator.shape[0])
            deviation = np.maximum(deviation, rare)
        normal = sample.moments(clipped)[1]
        often = np.bincount(sample.columns, sample.data != 0.0, operator.shape[1]) >= LEAST_NONZERO_SHARE * len(
            sample.weight
        )
        return np.flatnonzero(often & (normal > 0.0) & (deviation >= HEAVY_TAIL_RATIO * normal))
