"""Operators on a device, from arrays of a device library or from host data and the name of a device."""

import logging

import numpy as np

from scoreline.gpu.backend import Backend, DeviceArray, backend_of, named_device
from scoreline.gpu.codes_operator import CodesDeviceOperator
from scoreline.gpu.csr_operator import CsrDeviceOperator
from scoreline.gpu.operator import DenseDeviceOperator, DeviceOperator
from scoreline.operators.base import Operator
from scoreline.operators.codes import CodesOperator

logger = logging.getLogger("scoreline")

MOVED_BYTES = 1 << 28  # of a block that is copied to the device


def from_device(X: DeviceArray) -> DeviceOperator:
    """Return a dense or sparse array of PyTorch, CuPy or another Array API library as an operator on its device."""
    backend = backend_of(X)
    if backend.full((1,), 0.0).dtype != backend.dtype(np.float64):
        raise ValueError(
            f"{backend.xp.__name__} makes no float64 arrays on {backend.device}, which sums need: enable them (JAX: the "
            "option jax_enable_x64), or pass X as a NumPy array"
        )
    if len(X.shape) != 2:
        raise ValueError(
            f"X has {len(X.shape)} dimension(s) (shape={tuple(X.shape)}), expected 2D array (rows, columns). Reshape your data "
            "using X.reshape(-1, 1) if it is one feature, X.reshape(1, -1) if it is one row."
        )
    sparse = _compressed(X, backend)
    if sparse is not None:
        values, indices, starts = sparse
        return CsrDeviceOperator(_floats(values, backend), indices, starts, tuple(X.shape), backend)
    return DenseDeviceOperator(_floats(X.detach() if backend.library == "torch" else X, backend), backend)


def _compressed(X: DeviceArray, backend: Backend) -> tuple[DeviceArray, DeviceArray, DeviceArray] | None:
    """Return (values, columns, row starts) of a sparse array, None for a dense one."""
    if backend.library == "torch":
        layout = str(X.layout).rpartition(".")[2]
        if layout == "strided":
            return None
        if layout != "sparse_csr":
            logger.info("copied X once: %s to CSR", layout)
            try:
                X = X.detach().to_sparse_csr()
            except RuntimeError as error:
                raise ValueError(
                    f"X has layout {layout}, which PyTorch does not turn into CSR ({error}); expected strided, CSR, CSC or COO"
                ) from None
        return X.values().detach(), X.col_indices(), X.crow_indices()
    if backend.library == "cupy" and hasattr(X, "tocsr"):
        if X.format != "csr":
            logger.info("copied X once: %s to CSR", X.format)
            X = X.tocsr()
        return X.data, X.indices, X.indptr
    return None


def _floats(X: DeviceArray, backend: Backend) -> DeviceArray:
    """Return entries as float32 or float64: half precision becomes float32, integers float64."""
    name = str(X.dtype).rpartition(".")[2]
    if name in ("float32", "float64"):
        return X
    if "complex" in name:
        raise ValueError(f"Complex data not supported: X has dtype {name}, expected float; pass its real part")
    to = np.float32 if name in ("float16", "bfloat16") else np.float64
    logger.info("copied X once: %s to %s", name, np.dtype(to).name)
    return backend.xp.astype(X, backend.dtype(to))


def moved(operator: Operator, device: str) -> DeviceOperator:
    """Copy a host operator's matrix to a device, in blocks of 256 MB, so that neither side holds a second copy."""
    backend = named_device(device)
    if isinstance(operator, DeviceOperator) and operator.backend == backend:
        return operator
    if operator.scores != "host":
        where = "on a cluster" if operator.scores == "blocks" else "on another device"
        raise TypeError(f"device={device!r} moves data of this process, and X is {where}: leave device= out")
    operator.require("row_blocks", f"moving X to device={device!r}")
    if isinstance(operator, CodesOperator) and operator.feature_map is not None:
        return _codes(operator, backend)
    needed, free = (1 if operator.stores_zeros else 2) * operator.shape[0] * operator.row_bytes, backend.free_bytes()
    if free is not None and needed > free:
        twice = "" if operator.stores_zeros else ", twice, as CSR is kept"
        raise MemoryError(
            f"X takes {needed / 1e9:.3g} GB on device={device!r}{twice}, and {free / 1e9:.3g} GB are free there. Pass X as "
            "float32, free other arrays of the device, use fewer rows, or train on the host, without device="
        )
    rows = max(1, int(MOVED_BYTES / max(1.0, operator.row_bytes)))
    copied: DeviceOperator = (_dense if operator.stores_zeros else _csr)(operator, rows, backend)
    copied.largest = operator.largest
    logger.info("moved X (%d x %d) to %s", *operator.shape, backend.device)
    return copied


def _codes(operator: CodesOperator, backend: Backend) -> CodesDeviceOperator:
    columns = range(operator.feature_map.n_columns)
    lines = [backend.array(operator.packed.column(j, operator.lines)) for j in columns]
    made = CodesDeviceOperator(backend.xp.stack(lines), operator.feature_map.groups, backend)
    made.feature_map = operator.feature_map
    return made


def _dense(operator: Operator, rows: int, backend: Backend) -> DenseDeviceOperator:
    X = None
    for block in operator.row_blocks(rows):
        if X is None:
            X = backend.xp.empty(operator.shape, dtype=backend.dtype(block.data.dtype), device=backend.device)
        X[block.start : block.stop, :] = backend.array(block.data)
    return DenseDeviceOperator(X, backend)


def _csr(operator: Operator, rows: int, backend: Backend) -> CsrDeviceOperator:
    """Fill the three arrays after a first pass over the blocks that counts entries and finds their type."""
    xp, (n, p) = backend.xp, operator.shape
    starts, dtype = [np.zeros(1, dtype=np.int64)], np.dtype(np.float64)
    for block in operator.row_blocks(rows):
        starts.append(starts[-1][-1] + block.data.indptr[1:].astype(np.int64))
        dtype = block.data.dtype
    size = int(starts[-1][-1])
    values = xp.empty((size,), dtype=backend.dtype(dtype), device=backend.device)
    indices = xp.empty((size,), dtype=xp.int64 if p >= 2**31 else xp.int32, device=backend.device)
    done = 0
    for block in operator.row_blocks(rows):
        end = done + int(block.data.indptr[-1])
        values[done:end] = backend.array(block.data.data)
        indices[done:end] = backend.array(block.data.indices, np.int64 if p >= 2**31 else np.int32)
        done = end
    return CsrDeviceOperator(values, indices, backend.array(np.concatenate(starts)), (n, p), backend)
