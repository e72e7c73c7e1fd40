"""The contract of an operator: shape, two products, a count of passes, and declared extras."""

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeVar

import numpy as np
import scipy.sparse as sp

from scoreline.operators import block_sums
from scoreline.operators.moments import ClassMoments
from scoreline.operators.statistics import ColumnStatistics
from scoreline.runtime.array_types import on_host
from scoreline.runtime.types import AnyArray, Block, BoundsArray, FloatArray, Scores
from scoreline.runtime.vectors import as_vector, scaled_to_safe_range, visible

T = TypeVar("T")
ROW_VECTORS = ("u", "weight", "sign")  # arguments with an entry for every row


class RowBlock(NamedTuple):
    """Rows start..stop of the matrix, as a dense or CSR block."""

    start: int
    stop: int
    data: Block


class RowArrays(NamedTuple):
    """Rows as they lie in memory, for kernels that take them one by one.

    Entry k of row i is values[(i - first) row_step + k column_step]; of a sparse row values[k] in column indices[k], with k
    from starts[i - first] to starts[i - first + 1].
    """

    values: AnyArray
    indices: AnyArray | None
    starts: AnyArray | None
    row_step: np.uint64
    column_step: np.uint64
    first: int


class Operator(ABC):
    """A matrix X with n rows and p columns that is only ever multiplied.

    Subclasses write `_matvec` and `_rmatvec` (and what they declare in `capabilities`); this class checks lengths and
    counts passes: one for each product with all rows, a fraction for products restricted to a list of rows.

    Attributes
    ----------
    shape : tuple of int
        Rows and columns.
    n_passes : float
        Passes over the rows of X so far.
    capabilities : frozenset of str
        Extras beyond the two products: "row_blocks", "rows" (products restricted to rows), "statistics".
    scores : str
        Name of the score space that `matvec` returns scores in. Besides the operations of that space, scores must
        support `z += number` and `u.sum()`, which the wrappers use.
    largest : ndarray of shape (p,) or None
        Largest magnitude of each column, if `inspect` has learnt it; rounding allowances rest on it.
    column_map : ColumnMap or None
        The map that made the columns of this matrix from those of the user's (`scaling="robust"` or "quantile").
    feature_map : FittedFeatures or None
        What made the columns of this matrix from those of the user's (`features="additive"` or "pairs").
    tails_checked : bool
        Whether a fit has looked for heavy tails already, so that its folds and refits need not.
    string_features : dict or None
        What the columns of a StringOperator are: a model must not be used on other ones.
    """

    capabilities: frozenset[str] = frozenset()
    scores: str = "host"

    def __init__(self, shape: tuple[int, int]):
        self.shape = (int(shape[0]), int(shape[1]))
        self.n_passes = 0.0
        self.largest: FloatArray | None = None
        self.column_map: Any = None
        self.feature_map: Any = None
        self.tails_checked = False
        self.string_features: dict[str, Any] | None = None

    @visible
    def matvec(self, w: FloatArray) -> Scores:
        """Return z = Xw: z_i = sum_j X_ij w_j, float64 of length n. One pass."""
        w = self._vector(w, self.shape[1], "w")
        self.n_passes += 1.0
        return self._matvec(w)

    @visible
    def rmatvec(self, u: Scores) -> FloatArray:
        """Return X'u: sum_i u_i X_ij, float64 of length p. One pass; rows with u_i = 0 are skipped where possible."""
        if self.scores == "host":
            u = self._vector(u, self.shape[0], "u")
        self.n_passes += 1.0
        return self._rmatvec(u)

    @visible
    def matvec_rows(self, w: FloatArray, rows: AnyArray) -> Scores:
        """Return the scores of the listed rows only. A pass of len(rows) / n."""
        self.require("rows", "products restricted to rows")
        lines = self._row_list(rows)
        w = self._vector(w, self.shape[1], "w")
        self.n_passes += len(lines) / self.shape[0]
        return self._matvec_rows(w, lines)

    @visible
    def rmatvec_rows(self, u: Scores, rows: AnyArray) -> FloatArray:
        """Return sum_r u_r X[rows[r]]. A pass of len(rows) / n."""
        self.require("rows", "products restricted to rows")
        lines = self._row_list(rows)
        u = self._vector(u, len(lines), "u")
        self.n_passes += len(lines) / self.shape[0]
        return self._rmatvec_rows(u, lines)

    def aligned(self, rows: Any, name: str = "y") -> Any:
        """Move labels or weights, one per row, to where the rows are; here they stay as they are."""
        return on_host(rows)

    @property
    def traffic(self) -> float | None:
        """Bytes moved so far between the machines that hold X; None where there is one."""
        return None

    def with_own_passes(self) -> "Operator":
        """Return the same matrix, not copied, with its own count of passes, for fits that run at the same time."""
        own = copy.copy(self)
        own.n_passes = 0.0
        inner, pieces = vars(self).get("inner"), vars(self).get("pieces")  # these have counts, too
        if inner is not None:
            own.inner = inner.with_own_passes()  # type: ignore[attr-defined]  # of wrappers
        if pieces is not None:
            own.pieces = type(pieces)(piece.with_own_passes() for piece in pieces)  # type: ignore[attr-defined]  # of stacks
        return own

    def wrap_parts(self, wrap: Callable[["Operator"], "Operator"]) -> "Operator":
        """Return the matrix with a wrapper around it, or around each of its parts if these are on workers."""
        return wrap(self)

    def on_rows(self, rows: AnyArray) -> "Operator":
        """Return the listed rows as an operator of its own, which reads them where they lie and counts its own passes."""
        from scoreline.operators.wrappers import RowsOperator

        return RowsOperator(self, rows)

    @property
    def reads_all(self) -> bool:
        """Whether Xw reads every entry, also those of coefficient 0: then NaN in X shows in Xw."""
        return True

    @property
    def cheap_rows(self) -> bool:
        """Whether a product restricted to some rows costs their share of a product with all."""
        return "rows" in self.capabilities

    @property
    def stores_zeros(self) -> bool:
        """Whether blocks of rows are dense arrays."""
        return True

    def row_blocks(self, size: int | None = None) -> Iterator[RowBlock]:
        """Yield consecutive blocks of at most `size` rows (by default about 8 MB), without copying where possible."""
        self.require("row_blocks", "reading blocks of rows")
        step = block_sums.default_block_rows(*self.shape) if size is None else int(size)
        if step < 1:
            raise ValueError(f"size={size!r} is not a number of rows; pass an integer of 1 or more")
        return self._row_blocks(step)

    def _row_blocks(self, step: int) -> Iterator[RowBlock]:
        for start in range(0, self.shape[0], step):
            stop = min(start + step, self.shape[0])
            yield RowBlock(start, stop, self._block(start, stop))

    def _sum_blocks(self) -> Iterator[RowBlock]:
        """Yield the blocks of rows that second-order sums go through."""
        return self.row_blocks()

    def row_arrays(self, start: int, stop: int) -> RowArrays:
        """Return the arrays that hold rows start..stop: the matrix itself if it is stored by rows, otherwise a block."""
        self.require("row_blocks", "reading row by row")
        self._count((stop - start) / self.shape[0])
        return self._row_arrays(start, stop)

    @property
    def row_bytes(self) -> float:
        """Bytes of a row as `row_arrays` holds it, on average."""
        return 8.0 * self.shape[1]

    def _count(self, passes: float) -> None:
        self.n_passes += passes

    def _second_order(self, product: Callable[..., T], *arguments: Any) -> T:
        self.n_passes += 1.0
        return product(*arguments)

    def _row_arrays(self, start: int, stop: int) -> RowArrays:
        block, zero = self._block(start, stop), np.uint64(0)
        if sp.issparse(block):
            return RowArrays(*block_sums.csr_arrays(block.tocsr()), zero, zero, start)
        flat = np.ascontiguousarray(block).ravel()
        return RowArrays(block_sums.read_only(flat), None, None, np.uint64(block.shape[1]), np.uint64(1), start)

    @visible
    def column_statistics(self, weight: FloatArray | None = None) -> ColumnStatistics:
        """Return weight, mean, variance and largest magnitude of each column. One pass."""
        self.require("statistics", "column statistics")
        exponent = 0
        if weight is not None:
            weight = self._vector(weight, self.shape[0], "weight")
            if self.scores == "host":
                if not (np.isfinite(weight).all() and (weight >= 0.0).all()):
                    raise ValueError("weight must hold finite numbers of at least 0, one for each row")
                weight, exponent = scaled_to_safe_range(weight)
        self.n_passes += 1.0
        found = self._column_statistics(weight)
        return found._replace(weight=np.ldexp(found.weight, -exponent)) if exponent else found

    @visible
    def gram(self, weight: FloatArray) -> FloatArray:
        """Return X'DX, p x p, with D = diag(weight), weight >= 0. One pass, and p (dense) or row-length times its work."""
        self.require("row_blocks", "sums of outer products")
        return self._second_order(self._gram, self._vector(weight, self.shape[0], "weight"))

    @visible
    def class_moments(self, sign: AnyArray, weight: FloatArray | None = None) -> ClassMoments:
        """Return weight, mean and scatter of the positive and of the negative rows. One pass, with the work of `gram`."""
        self.require("row_blocks", "moments of the classes")
        if weight is not None:
            weight = self._vector(weight, self.shape[0], "weight")
        if np.shape(sign) != (self.shape[0],):
            raise ValueError(f"sign has shape {np.shape(sign)}, expected ({self.shape[0]},), one for each row")
        self.n_passes += 1.0
        return self._class_moments(as_vector(sign), weight)

    def gram_passes(self) -> float:
        """Return about how many products a call of `gram` costs and factoring it; BLAS does 13 flops in a pass's time."""
        n, p = self.shape
        return p / 13.0 + (p * p / (30.0 * n) if n > p else 0.0)

    @visible
    def quadratics(self, matrix: FloatArray) -> Scores:
        """Return x_i' M x_i for every row i, M symmetric p x p. One pass, as costly as `gram`."""
        self.require("row_blocks", "quadratic forms of rows")
        matrix, p = np.ascontiguousarray(matrix, dtype=np.float64), self.shape[1]
        if matrix.shape != (p, p):  # kernels do not look
            raise ValueError(
                f"matrix has shape {matrix.shape}, expected ({p}, {p}) for a matrix X of shape {self.shape}"
            )
        return self._second_order(self._quadratics, matrix)

    @visible
    def diagonal_leverages(self, diagonal: FloatArray, weight: Scores) -> Scores:
        """Return sum_j X_ij^2 / (diagonal_j - weight_i X_ij^2) for every row i. One pass.

        With diagonal >= sum_i weight_i X_ij^2, these are quadratic forms in the inverse diagonal without the row's own part.
        """
        self.require("row_blocks", "sums of squares in rows")
        diagonal = self._vector(diagonal, self.shape[1], "diagonal")
        return self._second_order(self._diagonal_leverages, diagonal, self._vector(weight, self.shape[0], "weight"))

    @visible
    def square_rmatvec(self, u: FloatArray) -> FloatArray:
        """Return sum_i u_i X_ij^2 for every column j. One pass."""
        self.require("row_blocks", "products with squares")
        return self._second_order(self._square_rmatvec, self._vector(u, self.shape[0], "u"))

    @visible
    def row_norms(self) -> FloatArray:
        """Return the Euclidean length of every row. One pass."""
        self.require("row_blocks", "lengths of rows")
        self._count(1.0)
        return np.concatenate([block_sums.block_norms(b.data) for b in self.row_blocks()])

    def shifted(self, w: FloatArray, by: float) -> FloatArray:
        """Return coefficients whose scores are those of w plus a constant, or w itself where no column is constant."""
        return w

    def inspect(self) -> tuple[int, int] | None:
        """Return (row, column) of a NaN or an infinity, or None, and learn `largest`; one read, not counted as a pass.

        Operators that compute their entries learn nothing and return None.
        """
        return None

    def require(self, capability: str, purpose: str) -> None:
        """Raise TypeError if this operator lacks `capability`, before any pass is spent."""
        if capability not in self.capabilities:
            raise TypeError(
                f"{type(self).__name__} cannot do {purpose}: it has only {sorted(self.capabilities) or 'products'}. "
                "Pass an array, a sparse matrix or a BlockOperator instead."
            )

    @abstractmethod
    def _matvec(self, w: FloatArray) -> Scores: ...

    @abstractmethod
    def _rmatvec(self, u: Scores) -> FloatArray: ...

    def _matvec_rows(self, w: FloatArray, lines: BoundsArray) -> Scores:
        raise NotImplementedError

    def _rmatvec_rows(self, u: Scores, lines: BoundsArray) -> FloatArray:
        raise NotImplementedError

    def _block(self, start: int, stop: int) -> Block:
        raise NotImplementedError

    def _listed(self, lines: BoundsArray) -> Block:
        """Return the listed rows as a block, a copy; a subclass that can find single rows at once should do so."""
        return np.concatenate([self._block(int(r), int(r) + 1) for r in lines])

    def _column_statistics(self, weight: Scores | None) -> ColumnStatistics:
        raise NotImplementedError

    def _class_moments(self, sign: AnyArray, weight: FloatArray | None) -> ClassMoments:
        if self.stores_zeros:
            return block_sums.moments_of_blocks(self._block, self.shape, sign, weight)
        total = ClassMoments.empty(self.shape[1])
        for b in self._sum_blocks():
            own = slice(b.start, b.stop)
            total.merge(block_sums.moments_of_sparse(b.data, sign[own], None if weight is None else weight[own]))
        return total

    def _gram(self, weight: Scores) -> FloatArray:
        return block_sums.gram_of_blocks(self._block, self.shape, weight)

    def _quadratics(self, matrix: FloatArray) -> Scores:
        return block_sums.quadratics_of_blocks(self._block, self.shape, matrix)

    def _diagonal_leverages(self, diagonal: FloatArray, weight: Scores) -> Scores:
        return np.concatenate(
            [block_sums.block_leverages(b.data, diagonal, weight[b.start : b.stop]) for b in self._sum_blocks()]
        )

    def _square_rmatvec(self, u: Scores) -> FloatArray:
        total = np.zeros(self.shape[1])
        for b in self.row_blocks():
            own, rows = u[b.start : b.stop], np.flatnonzero(u[b.start : b.stop])
            if len(rows):  # rows of weight 0 are not there, also where their squares leave the range of floats
                block = b.data if len(rows) == len(own) else b.data[rows]
                total += block_sums.block_squares(block).T @ own[rows]
        return total

    def _vector(self, v: Any, length: int, name: str) -> FloatArray:
        vector = np.ascontiguousarray(v, dtype=np.float64)
        if vector.shape != (length,):
            raise ValueError(
                f"{name} has shape {vector.shape}, expected ({length},) for a matrix of shape {self.shape}"
            )
        return vector

    def _row_list(self, rows: AnyArray) -> BoundsArray:
        """Return the row numbers as the unsigned array that kernels index with."""
        lines = np.asarray(rows)
        if lines.ndim != 1 or (lines.size and lines.dtype.kind not in "iu"):
            raise ValueError(f"rows must be a 1-D array of row numbers, got {lines.dtype} of shape {lines.shape}")
        if lines.size and (lines.min() < 0 or lines.max() >= self.shape[0]):
            raise IndexError(f"rows must lie in 0..{self.shape[0] - 1}, got {lines.min()}..{lines.max()}")
        return lines.astype(np.uint64)

    def __sizeof__(self) -> int:
        """Return about the bytes of the matrix: what schedulers take moving it for, and so leave it where it is."""
        return object.__sizeof__(self) + int(self.shape[0] * self.row_bytes)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(shape={self.shape}, n_passes={self.n_passes:g})"
