"""The storages that `kernel_cases.py` times: every operator of the package whose scores lie here, in the layouts it is for.

An operator that nobody has written a recipe for is made of a plain array, or of CSR, so that it has its cases at once.
"""

import importlib
import inspect
import pkgutil
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

SEED = 20240
COLUMNS, SPARSE_COLUMNS, PER_ROW = 50, 2_000, 20
SOME = 0.25  # of the rows in products restricted to rows
LINE = 64  # bytes that memory gives at a time
VECTOR = 8  # bytes of an entry of a float64 vector
COSINE = 35  # flops, those of an exp by a polynomial of the same length


class Matrix(NamedTuple):
    """An operator, the bytes that reading all of it takes, the same for some rows, and flops of making its entries.

    `span` are the bytes of its memory, where that is more than `total_bytes`; `keep` must live as long as it does.
    """

    operator: Any
    total_bytes: float
    some: float
    flops: float = 0.0
    span: float = 0.0
    keep: Any = None


def host_operators() -> dict[str, type]:
    """Return the concrete operators of the package whose scores lie here."""
    from scoreline import operators
    from scoreline.operators import Operator

    found = {}
    for info in pkgutil.iter_modules(operators.__path__):
        module = importlib.import_module(f"scoreline.operators.{info.name}")
        for name, kind in inspect.getmembers(module, inspect.isclass):
            own = issubclass(kind, Operator) and kind.__module__ == module.__name__
            if own and kind.scores == "host" and not inspect.isabstract(kind):
                found[name] = kind
    return dict(sorted(found.items()))


def recipes() -> dict[str, dict[str, Callable[[int], Matrix]]]:
    """Return for each operator the layouts that it is measured in."""
    return {
        "DenseOperator": {
            f"{order} {dtype}": partial(dense, order=order, dtype=dtype) for order in "CF" for dtype in ("float64", "float32")
        },
        "CompressedOperator": {
            f"{form} {dtype}": partial(compressed, form=form, dtype=dtype)
            for form, dtype in (("CSR", "float64"), ("CSR", "float32"), ("CSC", "float64"))
        },
        "StridedOperator": {"every third column": _strided},
        "MappedDense": {"float64": _mapped_dense},
        "MappedCsr": {"float64": _mapped_csr},
        "StackedOperator": {"two pieces": _stacked},
        "RowsOperator": {"a quarter of the rows": _listed_rows},
        "InterceptOperator": {"dense": partial(_intercept, dense), "CSR": partial(_intercept, compressed)},
        "ScaledOperator": {
            f"{scaling} {kind}": partial(_scaled, inner, scaling)
            for scaling in ("standard", "maxabs") for kind, inner in (("dense", dense), ("CSR", compressed))
        },
        "RandomFourierFeatures": {f"of {COLUMNS} columns": _fourier},
        "LinearMapOperator": {"of an array": _linear},
    }  # fmt: skip


def gaussian_rows(n: int) -> np.ndarray:
    return np.random.default_rng(SEED).standard_normal((n, COLUMNS))


def sparse_rows(n: int) -> sp.csr_array:
    rng = np.random.default_rng(SEED)
    indices = np.sort(rng.integers(0, SPARSE_COLUMNS // PER_ROW, (n, PER_ROW), dtype=np.int32), axis=1)
    indices += np.arange(PER_ROW, dtype=np.int32) * np.int32(SPARSE_COLUMNS // PER_ROW)  # sorted, none named twice
    indptr = np.arange(n + 1, dtype=np.int32) * np.int32(PER_ROW)
    return sp.csr_array((rng.standard_normal(n * PER_ROW), indices.ravel(), indptr), shape=(n, SPARSE_COLUMNS))


def dense(n: int, order: str = "C", dtype: str = "float64") -> Matrix:
    """Rows that lie apart are read in lines of 64 bytes: of columns all lines but those that no listed row touches."""
    from scoreline.operators import as_operator

    X = np.asarray(gaussian_rows(n), dtype=dtype, order=order)
    lines = SOME if order == "C" else 1.0 - (1.0 - SOME) ** (LINE // X.itemsize)
    return Matrix(as_operator(X, check_finite=False), X.nbytes, lines * X.nbytes)


def compressed(n: int, form: str = "CSR", dtype: str = "float64") -> Matrix:
    """Data, indices and indptr; to find rows among columns (CSC) all indices must be read, and the lines of their data."""
    from scoreline.operators import as_operator

    X = sparse_rows(n).astype(dtype)
    X = X if form == "CSR" else X.tocsc()
    total_bytes = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
    some = (
        SOME * total_bytes
        if form == "CSR"
        else total_bytes - X.data.nbytes * (1.0 - SOME) ** (LINE // X.dtype.itemsize)
    )
    return Matrix(as_operator(X, check_finite=False), total_bytes, some)


def _strided(n: int) -> Matrix:
    """Every third of the columns is in every line of 64 bytes, so all of them are read."""
    from scoreline.operators import as_operator

    wide = np.random.default_rng(SEED).standard_normal((n, 3 * COLUMNS // 2))
    return Matrix(as_operator(wide[:, ::3], check_finite=False), wide.nbytes, SOME * wide.nbytes)


def _mapped_dense(n: int) -> Matrix:
    from scoreline.operators.mapped import MappedDense

    X, folder = gaussian_rows(n), tempfile.TemporaryDirectory()
    np.save(Path(folder.name) / "X.npy", X)
    return Matrix(MappedDense(Path(folder.name)), X.nbytes, SOME * X.nbytes, keep=folder)


def _mapped_csr(n: int) -> Matrix:
    from scoreline.operators.mapped import MappedCsr

    X, folder = sparse_rows(n), tempfile.TemporaryDirectory()
    for name in ("data", "indices", "indptr"):
        np.save(Path(folder.name) / f"{name}.npy", getattr(X, name))
    total_bytes = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
    return Matrix(MappedCsr(Path(folder.name), X.shape), total_bytes, SOME * total_bytes, keep=folder)


def _stacked(n: int) -> Matrix:
    from scoreline.operators.stacked import StackedOperator

    halves = [dense(n // 2), dense(n - n // 2)]
    total_bytes = sum(half.total_bytes for half in halves)
    return Matrix(StackedOperator([half.operator for half in halves]), total_bytes, SOME * total_bytes)


def _listed_rows(n: int) -> Matrix:
    """The listed rows of a matrix, and 8 bytes for each number of a row."""
    inner = dense(n)
    rows = np.sort(np.random.default_rng(SEED).choice(n, int(SOME * n), replace=False))
    total_bytes = inner.some + VECTOR * len(rows)
    return Matrix(inner.operator.on_rows(rows), total_bytes, SOME * total_bytes, span=inner.total_bytes)


def _intercept(make: Callable[[int], Matrix], n: int) -> Matrix:
    from scoreline.operators import InterceptOperator

    inner = make(n)
    return inner._replace(operator=InterceptOperator(inner.operator))


def _scaled(make: Callable[[int], Matrix], scaling: str, n: int) -> Matrix:
    from scoreline.operators.wrappers import scaled

    inner = make(n)
    return inner._replace(operator=scaled(inner.operator, scaling))


def _fourier(n: int) -> Matrix:
    """Raw rows are read; 2 d flops and a cosine (as costly as an exp) for every feature. A tenth of the rows: it computes."""
    from scoreline.operators import RandomFourierFeatures

    X, features = gaussian_rows(n // 10), 200
    flops = (2.0 * COLUMNS + COSINE) * len(X) * features
    return Matrix(RandomFourierFeatures(X, features), X.nbytes, SOME * X.nbytes, flops)


def _linear(n: int) -> Matrix:
    from scipy.sparse.linalg import aslinearoperator

    from scoreline.operators import as_operator

    X = gaussian_rows(n)
    return Matrix(as_operator(aslinearoperator(X)), X.nbytes, SOME * X.nbytes)


def without_recipe(kind: type, n: int) -> Matrix:
    """Return an operator that nobody has written a recipe for, made of an array, or of CSR."""
    X: Any = gaussian_rows(n)
    try:
        return Matrix(kind(X), X.nbytes, SOME * X.nbytes)
    except (TypeError, ValueError, AttributeError, IndexError):
        X = sparse_rows(n)
        total_bytes = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
        return Matrix(kind(X), total_bytes, SOME * total_bytes)
