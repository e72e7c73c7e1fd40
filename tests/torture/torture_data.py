"""Hypothesis strategies for the data that break numerical code: extreme scales, degenerate shapes, odd storages.

Import from tests in this folder: `from torture_data import matrices, problems, as_float64`.

- `matrices()`            a dense array or a SciPy sparse matrix, any dtype, layout and scale
- `dense_matrices()`, `sparse_matrices()`  only those; `float_matrices()` only plain float64, C order
- `as_float64(X)`         the same entries as a new dense float64 array (what the library must act on)
- `labels(n)`             +1 and -1, both occur: balanced, one positive, one negative, first half, random
- `weights(n)`            None or n weights >= 0: ones, zeros among them, huge, tiny, subnormal, very uneven, whole numbers
- `scores(n)`             n finite float64: tied, two values, huge, tiny, subnormal, signed zeros, adjacent, mixed scales
- `alphas()`              penalties, 1e-300 to 1e300
- `problems()`            Problem(X, y, weight, alpha, kind), kind one of KINDS

All values are finite. Shapes include n = 2, p = 1 and p > n. Structure (shape, dtype, recipe of every column) is drawn by
Hypothesis and shrinks; the digits come from a seeded generator that is drawn too.
"""

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from tiers import examples

TINY = 5e-324  # the smallest positive float64
LARGEST = np.finfo(np.float64).max

FLOATS = (np.float64, np.float32, np.float16)
INTEGERS = (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64, np.bool_)
DTYPES = FLOATS + INTEGERS
EXPONENTS = (
    0,
    0,
    0,
    -8,
    8,
    -100,
    100,
    -154,
    154,
    -200,
    200,
    -300,
    300,
    -308,
    -320,
)  # powers of ten of a column's scale

COLUMNS = ("normal", "normal", "constant", "zero", "duplicate", "twins", "signs", "spike", "offset", "integers")
LAYOUTS = ("c", "f", "strided", "reversed", "transposed", "slice", "read_only", "big_endian", "broadcast")
FORMATS = ("csr_matrix", "csr_array", "csc_matrix", "csc_array", "coo_matrix", "coo_array", "lil_matrix", "dia_array")
TWISTS = ("plain", "int64", "unsorted", "duplicates", "explicit_zeros", "empty_lines", "read_only")
KINDS = ("random", "separable", "inverted", "tied", "noise", "one_positive", "one_negative")


def slowly_drawn(number):
    """Return `examples(number)` for problems, which Hypothesis takes long to draw and often rejects."""
    return settings(examples(number), suppress_health_check=list(HealthCheck))


class Problem(NamedTuple):
    """X (dense or sparse), y of +1 and -1 (int8), weight (float64 or None), alpha > 0 and the kind of the problem."""

    X: Any
    y: np.ndarray
    weight: np.ndarray | None
    alpha: float
    kind: str


def as_float64(X: Any) -> np.ndarray:
    """Return the entries of a dense or sparse matrix as a new C-ordered float64 array; entries named twice are added."""
    if sp.issparse(X):
        coo = X.tocoo()
        out = np.zeros(coo.shape)
        with np.errstate(over="ignore"):
            np.add.at(out, (coo.row, coo.col), coo.data.astype(np.float64))
        return out
    return np.array(X, dtype=np.float64, order="C")


def generators() -> st.SearchStrategy[np.random.Generator]:
    """Draw a seeded NumPy generator."""
    return st.integers(0, 2**32 - 1).map(np.random.default_rng)


@st.composite
def shapes(draw: Any, max_rows: int = 24, max_columns: int = 8, min_rows: int = 2) -> tuple[int, int]:
    """Draw (n, p): general ones, n = 2, p = 1 and p > n."""
    n, p = draw(st.integers(min_rows, max_rows)), draw(st.integers(1, max_columns))
    special = draw(st.sampled_from(["general", "general", "few_rows", "one_column", "wide"]))
    if special == "few_rows":
        n = min_rows
    elif special == "one_column":
        p = 1
    elif special == "wide":
        n, p = min(n, max(min_rows, 4)), max_columns
    return n, p


def _column(recipe: str, exponent: int, rng: np.random.Generator, before: list[np.ndarray], n: int) -> np.ndarray:
    unit = rng.standard_normal(n)
    if recipe == "constant":
        unit = np.full(n, rng.choice([0.1, 1.0, -3.0, 1 / 3]))
    elif recipe == "zero":
        unit = np.zeros(n)
    elif recipe == "duplicate" and before:
        return before[-1].copy()
    elif recipe == "twins" and before:  # another column but for the last digits
        return np.clip(before[-1] * (1.0 + 1e-15 * rng.integers(-2, 3, n)), -LARGEST, LARGEST)
    elif recipe == "signs":
        unit = rng.choice([-1.0, 1.0, 0.0, -0.0], n)
    elif recipe == "spike":  # one entry among zeros
        unit = np.where(np.arange(n) == rng.integers(n), 1.5, 0.0)
    elif recipe == "offset":  # a mean far larger than the spread
        unit = 1.0 + 1e-12 * unit
    elif recipe == "integers":
        unit = rng.integers(-5, 6, n).astype(np.float64)
    with np.errstate(under="ignore"):
        return (
            np.clip(unit, -100.0, 100.0) * 10.0**exponent
            if exponent > -308
            else unit * 1e-160 * 10.0 ** (exponent + 160)
        )


@st.composite
def float_matrices(draw: Any, shape: Any = None, exponents: Any = EXPONENTS) -> np.ndarray:
    """Draw a finite float64 array in C order; `shape` is a tuple or a strategy, each column has its own recipe and scale.

    Parameters
    ----------
    shape : tuple, strategy or None
        Rows and columns; None draws `shapes()`.
    exponents : sequence of int
        Powers of ten from which each column's scale is drawn.
    """
    n, p = shape if isinstance(shape, tuple) else draw(shapes() if shape is None else shape)
    rng = draw(generators())
    same = draw(st.sampled_from([None, None, *exponents]))  # one scale for all columns, or one for each
    columns: list[np.ndarray] = []
    for _ in range(p):
        exponent = draw(st.sampled_from(exponents)) if same is None else same
        columns.append(_column(draw(st.sampled_from(COLUMNS)), exponent, rng, columns, n))
    X = np.column_stack(columns)
    if draw(st.integers(0, 3)) == 0:
        X[rng.random(n) < 0.5] = 0.0
    return X


def _cast(X: np.ndarray, dtype: Any, rng: np.random.Generator) -> np.ndarray:
    """Return X in another dtype: floats within its range, integers up to both ends of theirs."""
    dtype = np.dtype(dtype)
    if dtype == np.float64:
        return X
    if dtype.kind == "f":
        top = float(np.finfo(dtype).max)
        with np.errstate(all="ignore"):
            return np.clip(X, -top, top).astype(dtype)
    if dtype.kind == "b":
        return X > 0
    info = np.iinfo(dtype)
    out = np.clip(np.rint(X), -100, 100).astype(np.int64).clip(max(int(info.min), -100), 100).astype(dtype)
    if rng.random() < 0.5:
        out[rng.integers(X.shape[0]), rng.integers(X.shape[1])] = info.max if rng.random() < 0.5 else info.min
    return out


def _lay_out(X: np.ndarray, layout: str) -> np.ndarray:
    """Return the same entries elsewhere in memory."""
    if layout == "f":
        return np.asfortranarray(X)
    if layout == "strided":
        return np.repeat(np.repeat(X, 2, axis=0), 2, axis=1)[::2, ::2]
    if layout == "reversed":
        return X[::-1, ::-1].copy()[::-1, ::-1]
    if layout == "transposed":
        return X.T.copy().T
    if layout == "slice":
        return np.hstack([X, X])[:, : X.shape[1]]
    if layout == "big_endian":
        return X.astype(X.dtype.newbyteorder(">"))
    if layout == "broadcast":  # all rows are the first one, in one place
        return np.broadcast_to(X[:1], X.shape)
    if layout == "read_only":
        X = X.copy()
        X.flags.writeable = False
    return X


@st.composite
def dense_matrices(draw: Any, shape: Any = None, dtypes: Any = DTYPES, exponents: Any = EXPONENTS) -> np.ndarray:
    """Draw a dense array: as `float_matrices`, in any of `dtypes` and any layout (read-only and negative strides too)."""
    X = draw(float_matrices(shape, exponents))
    dtype = draw(st.sampled_from(dtypes))
    return _lay_out(_cast(X, dtype, draw(generators())), draw(st.sampled_from(LAYOUTS)))


def _twisted(X: Any, twist: str, rng: np.random.Generator) -> Any:
    """Return a compressed matrix with the same sums of entries, in a form that is not canonical."""
    if X.format not in ("csr", "csc"):
        return X
    if twist == "int64":
        X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    elif twist == "unsorted":
        for lo, hi in zip(X.indptr[:-1], X.indptr[1:], strict=True):
            order = rng.permutation(hi - lo) + lo
            X.data[lo:hi], X.indices[lo:hi] = X.data[order], X.indices[order]
        X.has_sorted_indices = False
    elif twist == "duplicates" and X.dtype.kind == "f":  # every entry in two halves, which are exact but for subnormals
        with np.errstate(under="ignore"):
            half = X.data / 2
        X = type(X)((np.repeat(half, 2), np.repeat(X.indices, 2), 2 * X.indptr), shape=X.shape)
    elif twist == "explicit_zeros" and X.nnz:
        X.data[rng.random(X.nnz) < 0.3] = 0
    elif twist == "read_only":
        for array in (X.data, X.indices, X.indptr):
            array.flags.writeable = False
    return X


@st.composite
def sparse_matrices(draw: Any, shape: Any = None, dtypes: Any = DTYPES, exponents: Any = EXPONENTS) -> Any:
    """Draw a SciPy sparse matrix: several formats, 64-bit or unsorted indices, duplicates, explicit zeros, empty lines."""
    X = draw(float_matrices(shape, exponents))
    rng = draw(generators())
    X = _cast(X, draw(st.sampled_from([d for d in dtypes if d != np.float16] or dtypes)), rng)  # SciPy has no float16
    keep = rng.random(X.shape) < draw(st.sampled_from([0.0, 0.3, 0.7, 1.0]))
    twist = draw(st.sampled_from(TWISTS))
    if twist == "empty_lines":
        keep[rng.random(X.shape[0]) < 0.5] = False
        keep[:, rng.random(X.shape[1]) < 0.3] = False
    X = np.where(keep, X, np.zeros((), dtype=X.dtype))
    return _twisted(getattr(sp, draw(st.sampled_from(FORMATS)))(X), twist, rng)


def matrices(shape: Any = None, dtypes: Any = DTYPES, exponents: Any = EXPONENTS) -> st.SearchStrategy[Any]:
    """Draw a dense or a sparse matrix; arguments as in `float_matrices`, and the dtypes to draw from."""
    return st.one_of(dense_matrices(shape, dtypes, exponents), sparse_matrices(shape, dtypes, exponents))


@st.composite
def labels(draw: Any, n: int) -> np.ndarray:
    """Draw n labels +1 and -1 (int8), both of which occur (n >= 2)."""
    kind = draw(st.sampled_from(["random", "random", "one_positive", "one_negative", "first_half", "alternating"]))
    rng = draw(generators())
    y = np.where(rng.random(n) < 0.5, 1, -1).astype(np.int8)
    place = int(rng.integers(n))
    if kind == "one_positive":
        y[:] = -1
    elif kind == "one_negative":
        y[:] = 1
    elif kind == "first_half":
        y = np.where(np.arange(n) < (n + 1) // 2, 1, -1).astype(np.int8)
    elif kind == "alternating":
        y = np.where(np.arange(n) % 2 == 0, 1, -1).astype(np.int8)
    if kind == "one_positive" or (y < 0).all():
        y[place] = 1
    elif kind == "one_negative" or (y > 0).all():
        y[place] = -1
    return y


WEIGHTS = ("ones", "zeros_among", "whole", "huge", "tiny", "subnormal", "uneven", "one_dominates", "uniform", "largest")


@st.composite
def weights(
    draw: Any, n: int, kinds: Any = ("none", "none", *WEIGHTS), y: np.ndarray | None = None
) -> np.ndarray | None:
    """Draw None or n finite weights >= 0, not all zero; with labels `y`, each class has a positive weight.

    Parameters
    ----------
    n : int
        Rows.
    kinds : sequence of str
        From WEIGHTS, and "none"; ("whole",) are copies of rows (0 to 4).
    y : array of n labels, optional
        Labels whose classes must both keep a positive weight.
    """
    kind, rng = draw(st.sampled_from(kinds)), draw(generators())
    if kind == "none":
        return None
    w = {
        "ones": lambda: np.ones(n),
        "zeros_among": lambda: np.where(rng.random(n) < 0.5, 0.0, rng.random(n)),
        "whole": lambda: rng.integers(0, 5, n).astype(np.float64),
        "huge": lambda: 1e300 * (0.5 + rng.random(n)),
        "tiny": lambda: 1e-300 * (0.5 + rng.random(n)),
        "subnormal": lambda: TINY * rng.integers(1, 5, n),
        "uneven": lambda: 10.0 ** rng.uniform(-300, 300, n),
        "one_dominates": lambda: np.where(np.arange(n) == rng.integers(n), 1e20, 1.0),
        "uniform": lambda: 0.5 + rng.random(n),
        "largest": lambda: np.full(n, LARGEST),
    }[kind]()
    groups = [np.ones(n, dtype=bool)] if y is None else [y > 0, y <= 0]
    for group in groups:
        if not w[group].any():
            w[rng.choice(np.flatnonzero(group))] = 1.0
    return w


SCORES = (
    "normal", "tied", "tied_zero", "two_values", "few_values", "huge", "largest", "tiny", "subnormal", "signed_zeros",
    "adjacent", "adjacent_huge", "mixed", "offset", "margin",
)  # fmt: skip


@st.composite
def scores(draw: Any, n: int, kinds: Any = SCORES) -> np.ndarray:
    """Draw n finite float64 scores of one of the kinds in SCORES."""
    kind, rng = draw(st.sampled_from(kinds)), draw(generators())
    normal = rng.standard_normal(n)
    made = {
        "normal": lambda: normal,
        "tied": lambda: np.full(n, normal[0]),
        "tied_zero": lambda: np.zeros(n),
        "two_values": lambda: np.where(normal > 0, 0.75, -0.25),
        "few_values": lambda: rng.integers(-2, 3, n) / 2.0,
        "huge": lambda: 1e300 * normal,
        "largest": lambda: np.where(normal > 0, LARGEST, -LARGEST),
        "tiny": lambda: 1e-300 * normal,
        "subnormal": lambda: TINY * rng.integers(-3, 4, n),
        "signed_zeros": lambda: np.where(normal > 0, 0.0, -0.0),
        "adjacent": lambda: np.where(normal > 0, 1.0, np.nextafter(1.0, 2.0)),
        "adjacent_huge": lambda: np.where(normal > 0, LARGEST, np.nextafter(LARGEST, 0.0)),
        "mixed": lambda: np.sign(normal) * 10.0 ** rng.uniform(-320, 308, n),
        "offset": lambda: 1e15 + np.rint(4 * normal),
        "margin": lambda: rng.choice([-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0], n),  # on the kinks of hinges
    }
    return np.asarray(made[kind](), dtype=np.float64)


def alphas() -> st.SearchStrategy[float]:
    """Draw a penalty alpha > 0: usual ones, and down to 1e-300 and up to 1e300."""
    return st.sampled_from([1e-3, 1.0, 1e-3, 1.0, 1e-8, 1e8, 1e-100, 1e100, 1e-300, 1e300])


@st.composite
def problems(
    draw: Any,
    max_rows: int = 24,
    max_columns: int = 8,
    dtypes: Any = DTYPES,
    exponents: Any = EXPONENTS,
    weight_kinds: Any = ("none", "none", *WEIGHTS),
    kinds: Any = KINDS,
) -> Problem:
    """Draw a training problem (X, y, weight, alpha, kind).

    Kinds: "random" labels have nothing to do with X; "separable" labels are the sign of one column about its median,
    "inverted" the opposite sign of the column's mean split (so a positive coefficient is wrong everywhere); "tied" rows
    are all the same; "noise" has both labels on every distinct row; "one_positive" and "one_negative" as they say.
    """
    kind = draw(st.sampled_from(kinds))
    X = draw(matrices(shapes(max_rows, max_columns), dtypes, exponents))
    n = X.shape[0]
    y = draw(labels(n))
    rng = draw(generators())
    if kind in ("separable", "inverted"):
        A = as_float64(X)
        column = A[:, int(np.argmax([len(np.unique(A[:, j])) for j in range(A.shape[1])]))]
        order = np.sort(column)
        positive = column > order[(n - 1) // 2] if order[0] < order[-1] else y > 0
        if not positive.any():
            positive = column > order[0]
        y = np.where(positive ^ (kind == "inverted"), 1, -1).astype(np.int8)
        if len(np.unique(y)) < 2:
            y[0] = -y[0]
    elif kind in ("tied", "noise"):
        rows = np.zeros(n, dtype=int) if kind == "tied" else np.arange(n) // 2
        X = X.tocsr()[rows] if sp.issparse(X) else X[rows]
        if kind == "noise":
            y = np.where(np.arange(n) % 2 == 0, 1, -1).astype(np.int8)
    elif kind in ("one_positive", "one_negative"):
        y = np.full(n, -1 if kind == "one_positive" else 1, dtype=np.int8)
        y[int(rng.integers(n))] *= -1
    return Problem(X, y, draw(weights(n, weight_kinds, y)), draw(alphas()), kind)
