"""Which library an array belongs to, found without importing any of them."""

import sys
from typing import Any

import numpy as np


def library_of(X: Any) -> str | None:
    """Return "torch", "cupy" or "array_api" for an array of such a library, and None for anything else."""
    torch, cupy = sys.modules.get("torch"), sys.modules.get("cupy")
    if torch is not None and isinstance(X, torch.Tensor):
        return "torch"
    if cupy is not None and (isinstance(X, cupy.ndarray) or type(X).__module__.startswith("cupyx.scipy.sparse")):
        return "cupy"
    other = hasattr(type(X), "__array_namespace__") and not isinstance(X, (np.ndarray, np.generic))
    return "array_api" if other and hasattr(X, "device") else None


def on_host(rows: Any) -> Any:
    """Copy an array on a device to the host; return anything else unchanged."""
    library = library_of(rows)
    if library is None:
        return rows
    if library == "torch":
        return rows.detach().cpu().numpy()
    if library == "cupy":
        return rows.get()
    from scoreline.gpu.backend import backend_of

    return backend_of(rows).host(rows)


def is_dask(X: Any) -> bool:
    """Tell whether X is a Dask collection, without importing Dask."""
    return type(X).__module__.partition(".")[0] in ("dask", "dask_expr") and hasattr(X, "__dask_graph__")


def is_out_of_memory(error: BaseException) -> bool:
    """Tell whether an exception says that a device has no memory left."""
    return type(error).__name__ in ("OutOfMemoryError", "CUDARuntimeError") and "memory" in str(error).lower()
