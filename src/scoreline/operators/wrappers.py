"""Operators made of others: a constant feature, scaled features, some of the rows, SciPy's LinearOperator. X is not copied."""

import math
from abc import abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from scoreline.operators.base import ROW_VECTORS, Operator, T
from scoreline.operators.block_sums import block_gram, block_spans, gram_of_blocks
from scoreline.operators.linear_map import LinearMap
from scoreline.operators.moments import ClassMoments, Moments
from scoreline.operators.statistics import ColumnStatistics
from scoreline.runtime.types import AnyArray, Block, BoundsArray, FloatArray, Scores

LEAST_FLOAT = np.finfo(float).tiny
ENTRY_BYTES = 12.0  # of a stored entry: its value and the number of its column
CENTRE_FIRST_ABOVE = 1e3  # deviations: beyond, the difference of squares has lost six digits


class Wrapper(Operator):
    """An operator made of another; passes count on both."""

    def __init__(self, inner: Operator, shape: tuple[int, int]):
        super().__init__(shape)
        self.inner = inner
        self.capabilities = inner.capabilities
        self.scores = inner.scores

    def _second_order(self, product: Callable[..., T], *arguments: Any) -> T:
        """Count here what it costs inside: products come with it."""
        own, inner = self.n_passes, self.inner.n_passes
        result = product(*arguments)
        if self.inner.n_passes == inner:  # read block by block
            self.inner.n_passes += 1.0
        self.n_passes = own + (self.inner.n_passes - inner)
        return result

    def _vector(self, v: Any, length: int, name: str) -> Any:
        if self.scores != "host" and name in ROW_VECTORS:
            return self.inner._vector(v, length, name)
        return super()._vector(v, length, name)

    def aligned(self, rows: Any, name: str = "y") -> Any:
        return self.inner.aligned(rows, name)

    @property
    def traffic(self) -> float | None:
        return self.inner.traffic

    def gram_passes(self) -> float:
        return self.inner.gram_passes()

    def _count(self, passes: float) -> None:
        super()._count(passes)
        self.inner._count(passes)

    def _block(self, start: int, stop: int) -> Block:
        return self._wrap(self.inner._block(start, stop))  # a copy

    def _listed(self, lines: BoundsArray) -> Block:
        return self._wrap(self.inner._listed(lines))

    @property
    def cheap_rows(self) -> bool:
        return self.inner.cheap_rows

    @property
    def stores_zeros(self) -> bool:
        return self.inner.stores_zeros

    @abstractmethod
    def on_rows(self, rows: AnyArray) -> Operator:
        """Return the listed rows, wrapped alike; scaling and constant are those of all rows."""

    @abstractmethod
    def _wrap(self, block: Block) -> Block: ...

    @abstractmethod
    def unwrap(self, w: FloatArray, b: float) -> tuple[FloatArray, float]:
        """Return coefficients and intercept for the wrapped matrix that give the same scores as (w, b)."""

    @abstractmethod
    def wrap(self, w: FloatArray, b: float) -> tuple[FloatArray, float]:
        """Return coefficients and intercept here that give the scores of (w, b) there: the inverse of `unwrap`."""


class InterceptOperator(Wrapper):
    """[X, value]: one more column, constant. Its coefficient is the intercept divided by `value`."""

    def __init__(self, inner: Operator, value: float = 1.0):
        super().__init__(inner, (inner.shape[0], inner.shape[1] + 1))
        self.value = float(value)
        if inner.largest is not None:
            self.largest = np.append(inner.largest, abs(self.value))

    def _matvec(self, w: FloatArray) -> Scores:
        return _shifted(self.inner.matvec(w[:-1]), self.value * w[-1])

    def _rmatvec(self, u: Scores) -> FloatArray:
        return np.append(self.inner.rmatvec(u), self.value * u.sum())

    def _matvec_rows(self, w: FloatArray, lines: BoundsArray) -> Scores:
        return _shifted(self.inner.matvec_rows(w[:-1], lines), self.value * w[-1])

    def _rmatvec_rows(self, u: Scores, lines: BoundsArray) -> FloatArray:
        return np.append(self.inner.rmatvec_rows(u, lines), self.value * u.sum())

    def _column_statistics(self, weight: FloatArray | None) -> ColumnStatistics:
        inner = self.inner.column_statistics(weight)
        constant = (inner.weight[0], self.value, 0.0, abs(self.value))
        return ColumnStatistics(*(np.append(a, v) for a, v in zip(inner, constant, strict=True)))

    def _class_moments(self, sign: AnyArray, weight: FloatArray | None) -> ClassMoments:
        inner = self.inner.class_moments(sign, weight)
        parts = [
            Moments(m.weight, np.append(m.mean, self.value if m.weight > 0.0 else 0.0), np.pad(m.scatter, (0, 1)))
            for m in (inner.positive, inner.negative)
        ]
        return ClassMoments(*parts)

    def _gram(self, weight: FloatArray) -> FloatArray:
        border = self.value * self.inner.rmatvec(weight)
        corner = np.array([[self.value**2 * weight.sum()]])
        return np.block([[self.inner.gram(weight), border[:, None]], [border[None, :], corner]])

    def _quadratics(self, matrix: FloatArray) -> Scores:
        border, corner = self.value * matrix[:-1, -1], self.value**2 * matrix[-1, -1]
        return self.inner.quadratics(matrix[:-1, :-1]) + 2.0 * self.inner.matvec(border) + corner

    def _diagonal_leverages(self, diagonal: FloatArray, weight: Scores) -> Scores:
        square = self.value**2
        return self.inner.diagonal_leverages(diagonal[:-1], weight) + square / (diagonal[-1] - weight * square)

    def _square_rmatvec(self, u: FloatArray) -> FloatArray:
        return np.append(self.inner.square_rmatvec(u), self.value**2 * u.sum())

    def _wrap(self, block: Block) -> Block:
        column = np.full((block.shape[0], 1), self.value)
        if sp.issparse(block):
            return sp.hstack([block, sp.csr_matrix(column)], format="csr")
        return np.hstack([block, column])

    @property
    def row_bytes(self) -> float:
        return super().row_bytes if self.stores_zeros else self.inner.row_bytes + ENTRY_BYTES

    def on_rows(self, rows: AnyArray) -> "InterceptOperator":
        return InterceptOperator(self.inner.on_rows(rows), self.value)

    def shifted(self, w: FloatArray, by: float) -> FloatArray:
        moved = w.copy()
        moved[-1] += by / self.value
        return moved

    def unwrap(self, w: FloatArray, b: float) -> tuple[FloatArray, float]:
        """Split the last coefficient off as intercept."""
        return w[:-1], b + self.value * float(w[-1])

    def wrap(self, w: FloatArray, b: float) -> tuple[FloatArray, float]:
        """Append the intercept as the coefficient of the constant column."""
        return np.append(w, b / self.value), 0.0


class ScaledOperator(Wrapper):
    """(X - 1 c') diag(s): columns centred at c and multiplied by s; sparse X stays sparse.

    Xs w = X (s w) - <c, s w> and Xs' u = s (X'u - c sum(u)), so neither product touches X itself.
    """

    def __init__(self, inner: Operator, scale: FloatArray, center: FloatArray | None = None):
        super().__init__(inner, inner.shape)
        self.scale = np.asarray(scale, dtype=np.float64)
        self.center = None if center is None else np.asarray(center, dtype=np.float64)
        if inner.largest is not None:
            # Rounding is that of X (s w) and <c, s w>, so the centre adds to the magnitude.
            distance = 0.0 if self.center is None else np.abs(self.center)
            with np.errstate(over="ignore"):
                self.largest = np.abs(self.scale) * (inner.largest + distance)

    def _matvec(self, w: FloatArray) -> Scores:
        v = self.scale * w
        return _shifted(self.inner.matvec(v), self._offset(v))

    def _rmatvec(self, u: Scores) -> FloatArray:
        return self._scaled(self.inner.rmatvec(u), u)

    def _matvec_rows(self, w: FloatArray, lines: BoundsArray) -> Scores:
        v = self.scale * w
        return _shifted(self.inner.matvec_rows(v, lines), self._offset(v))

    def _rmatvec_rows(self, u: Scores, lines: BoundsArray) -> FloatArray:
        return self._scaled(self.inner.rmatvec_rows(u, lines), u)

    def _offset(self, v: FloatArray) -> float:
        return 0.0 if self.center is None else -float(np.sum(self.center * v))

    def _scaled(self, product: FloatArray, u: Scores) -> FloatArray:
        if self.center is not None:
            product = product - self.center * u.sum()
        return self.scale * product

    def _column_statistics(self, weight: FloatArray | None) -> ColumnStatistics:
        inner = self.inner.column_statistics(weight)
        center = 0.0 if self.center is None else self.center
        # After centring the largest magnitude is not known from one pass; it is bounded by |x| + |c|.
        return ColumnStatistics(
            inner.weight,
            self.scale * (inner.mean - center),
            self.scale**2 * inner.variance,
            np.abs(self.scale) * (inner.max_abs + np.abs(center)),
        )

    @property
    def _far(self) -> bool:
        """Whether columns lie so far from 0 that squares must be taken after centring, block by block."""
        return self.center is not None and float(np.abs(self.center * self.scale).max(initial=0.0)) > CENTRE_FIRST_ABOVE

    def _class_moments(self, sign: AnyArray, weight: FloatArray | None) -> ClassMoments:
        return self.inner.class_moments(sign, weight).scaled(self.scale, self.center)

    def _gram(self, weight: FloatArray) -> FloatArray:
        if self._far:
            return np.asarray(self._block_by_block("_gram", weight))
        inner = self.inner.gram(weight)
        if self.center is not None:
            cross = np.outer(self.inner.rmatvec(weight), self.center)
            inner = inner - cross - cross.T + weight.sum() * np.outer(self.center, self.center)
        return self.scale[:, None] * inner * self.scale

    def _quadratics(self, matrix: FloatArray) -> Scores:
        if self._far:
            return self._block_by_block("_quadratics", matrix)
        inner = self.scale[:, None] * matrix * self.scale
        values = self.inner.quadratics(inner)
        if self.center is None:
            return values
        moved = inner @ self.center
        return values - 2.0 * self.inner.matvec(moved) + float(self.center @ moved)

    def _diagonal_leverages(self, diagonal: FloatArray, weight: Scores) -> Scores:
        if self.center is not None:
            return self._block_by_block("_diagonal_leverages", diagonal, weight)
        return self.inner.diagonal_leverages(diagonal / self.scale**2, weight)  # scale 0: infinite diagonal, no part

    def _square_rmatvec(self, u: FloatArray) -> FloatArray:
        if self._far:
            return np.asarray(self._block_by_block("_square_rmatvec", u))
        squares = self.inner.square_rmatvec(u)
        if self.center is not None:
            squares = squares - 2.0 * self.center * self.inner.rmatvec(u) + self.center**2 * u.sum()
        return self.scale**2 * squares

    def in_parts(self) -> Operator:
        """Return the scaled matrix with its parts scaled where they are."""
        return self.inner.wrap_parts(partial(ScaledOperator, scale=self.scale, center=self.center))

    def _block_by_block(self, name: str, *arguments: Any) -> Any:
        """Call a second-order method of rows that are centred first, where the rows are."""
        if self.inner.scores == "blocks":
            return getattr(self.in_parts(), name)(*arguments)
        if self.inner.scores == "device":
            inner: Any = self.inner
            return getattr(inner.rescaled(self.scale, self.center), name)(*arguments)
        return getattr(super(), name)(*arguments)

    def _wrap(self, block: Block) -> Block:
        if sp.issparse(block) and self.center is None:
            return (block @ sp.diags_array(self.scale)).tocsr()
        dense = block.toarray() if sp.issparse(block) else block
        return (dense - (0.0 if self.center is None else self.center)) * self.scale

    def on_rows(self, rows: AnyArray) -> "ScaledOperator":
        return ScaledOperator(self.inner.on_rows(rows), self.scale, self.center)

    @property
    def stores_zeros(self) -> bool:
        """Whether blocks of rows are dense arrays: rows that are centred have no zeros left."""
        return self.center is not None or self.inner.stores_zeros

    @property
    def row_bytes(self) -> float:
        return self.inner.row_bytes if self.center is None else 8.0 * self.shape[1]

    def unwrap(self, w: FloatArray, b: float) -> tuple[FloatArray, float]:
        """Return coefficients in original units; the centre moves into the intercept."""
        with np.errstate(over="ignore", invalid="ignore"):
            coef = self.scale * w
            intercept = b + self._offset(coef)
            lost = ~np.isfinite(coef if self.center is None else coef * self.center)
        if (lost.any() or not math.isfinite(intercept)) and np.isfinite(w).all():
            column = int(np.argmax(lost))
            raise ValueError(
                f"the coefficient of column {column} leaves the range of floats in the units of X (its scale is "
                f"{self.scale[column]:.3g}); multiply the column by a power of ten"
            )
        return coef, intercept

    def wrap(self, w: FloatArray, b: float) -> tuple[FloatArray, float]:
        """Return coefficients of scaled features; columns of scale 0 get 0."""
        coef = np.divide(w, self.scale, out=np.zeros_like(w), where=self.scale != 0.0)
        return coef, b - self._offset(self.scale * coef)


def scaled(operator: Operator, scaling: str | None, weight: FloatArray | None = None) -> Operator:
    """Return the operator with scaled columns: None, "maxabs" (x / max|x|) or "standard" ((x - mean) / std). One pass.

    Columns that "robust" or "quantile" has mapped are standardised if X is dense, and divided by max|x| if it is sparse.

    Columns that are constant zero ("maxabs") or constant ("standard") keep scale 1 and 0: they carry no information,
    and division by zero would. Columns so large or small that their squares leave the range of floats are refused.
    """
    requested, scaling = scaling, linear_scaling(operator, scaling)
    if scaling is None:
        return operator
    operator.require("statistics", f"scaling={scaling!r}")
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        statistics = operator.column_statistics(weight)
    low, high = (LEAST_FLOAT, np.inf) if scaling == "maxabs" else (1e-140, 1e140)
    outside = np.flatnonzero((statistics.max_abs > 0.0) & ~((statistics.max_abs > low) & (statistics.max_abs < high)))
    if len(outside):
        raise ValueError(
            f"scaling={requested!r} cannot scale column {outside[0]}: its largest magnitude is "
            f"{statistics.max_abs[outside[0]]:.3g}, expected between {low:.3g} and {high:.3g}. Multiply it by a power of ten."
        )
    if scaling == "maxabs":
        return ScaledOperator(operator, _reciprocal(statistics.max_abs, 1.0))
    return ScaledOperator(operator, *standardising(statistics.mean, statistics.variance))


def linear_scaling(operator: Operator, scaling: str | None) -> str | None:
    """Return the scaling of columns that are mapped already, where the map is a part of the scaling."""
    if scaling in (None, "maxabs", "standard"):
        return scaling
    return "standard" if operator.stores_zeros else "maxabs"


def standardising(mean: FloatArray, variance: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return (scale, center) that bring columns of this mean and variance to 0 and 1, constant ones to 0."""
    deviation = np.sqrt(variance)
    # Below this the deviation is rounding of a constant column, not information.
    deviation[deviation <= 8 * np.finfo(float).eps * np.abs(mean)] = 0.0
    return _reciprocal(deviation, 0.0), mean


def _reciprocal(x: FloatArray, for_zero: float) -> FloatArray:
    return np.divide(1.0, x, out=np.full_like(x, for_zero), where=x > 0.0)


def _shifted(z: Scores, offset: float) -> Scores:
    if offset != 0.0:
        z += offset
    return z


class RowsOperator(Operator):
    """X[rows]: row-restricted products of X. Its passes are passes over its own rows; `inner` does not count them.

    Blocks of rows, which Gram matrices need, are copied one at a time.
    """

    def __init__(self, inner: Operator, rows: AnyArray):
        inner.require("rows", "products restricted to rows")
        lines = inner._row_list(rows)
        super().__init__((len(lines), inner.shape[1]))
        self.inner, self.rows = inner, lines
        self.capabilities = inner.capabilities
        self.scores = inner.scores
        self.largest = inner.largest  # of all rows: not less than of these
        self.column_map, self.tails_checked = inner.column_map, True  # a fit of some rows is part of another one
        self.string_features = inner.string_features

    def _matvec(self, w: FloatArray) -> Scores:
        return self.inner._matvec_rows(w, self.rows)

    def _rmatvec(self, u: Scores) -> FloatArray:
        return self.inner._rmatvec_rows(u, self.rows)

    def _matvec_rows(self, w: FloatArray, lines: BoundsArray) -> Scores:
        return self.inner._matvec_rows(w, self.rows[lines])

    def _rmatvec_rows(self, u: Scores, lines: BoundsArray) -> FloatArray:
        return self.inner._rmatvec_rows(u, self.rows[lines])

    def _listed(self, lines: BoundsArray) -> Block:
        return self.inner._listed(self.rows[lines])

    def _block(self, start: int, stop: int) -> Block:
        return self.inner._listed(self.rows[start:stop])

    def _gram(self, weight: FloatArray) -> FloatArray:
        if not self.inner.stores_zeros:  # the kernel for sparse blocks has threads of its own
            total = np.zeros((self.shape[1],) * 2)
            for start, stop in block_spans(*self.shape):
                rows = np.uint64(start) + np.flatnonzero(weight[start:stop]).astype(np.uint64)
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
        return self.inner.row_bytes

    @property
    def stores_zeros(self) -> bool:
        return self.inner.stores_zeros

    @property
    def cheap_rows(self) -> bool:
        return self.inner.cheap_rows


class LinearMapOperator(Operator):
    """A SciPy LinearOperator with `matvec` and `rmatvec`; nothing beyond the two products."""

    def __init__(self, linear: Any):
        super().__init__(linear.shape)
        self._linear = linear

    def _matvec(self, w: FloatArray) -> FloatArray:
        return np.ascontiguousarray(self._linear.matvec(w), dtype=np.float64).reshape(-1)

    def _rmatvec(self, u: FloatArray) -> FloatArray:
        return np.ascontiguousarray(self._linear.rmatvec(u), dtype=np.float64).reshape(-1)


def unwrapped(w: FloatArray, outer: LinearMap, operator: LinearMap) -> tuple[FloatArray, float]:
    """Return coefficients of X and the intercept from the coefficients w of the wrapped features."""
    coef, intercept = w, 0.0
    for wrapper in wrappers(outer, operator):
        coef, intercept = wrapper.unwrap(coef, intercept)
    return coef, intercept


def rewrapped(coef: FloatArray, intercept: float, outer: LinearMap, operator: LinearMap) -> FloatArray:
    """Return coefficients of the wrapped features from coefficients and intercept of X."""
    for wrapper in reversed(wrappers(outer, operator)):
        coef, intercept = wrapper.wrap(coef, intercept)
    return coef


def wrappers(outer: LinearMap, operator: LinearMap) -> list[Any]:
    """Return the wrappers around `operator`, the outermost first."""
    found: list[Any] = []
    while outer is not operator:
        found.append(outer)
        outer = outer.inner  # type: ignore[attr-defined]  # of wrappers
    return found
