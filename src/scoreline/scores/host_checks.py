"""What kernels may rely on: arrays as they read and write them."""

import numpy as np

from scoreline.runtime.types import FloatArray
from scoreline.scores.base import Labels


def checked(z: FloatArray, labels: Labels) -> FloatArray:
    """Return z as kernels read it; they do not look whether it is long enough."""
    z = np.ascontiguousarray(z, dtype=np.float64)
    if z.shape != labels.sign.shape:
        raise ValueError(f"scores have shape {z.shape}, expected {labels.sign.shape}, one for each label")
    return z


def checked_out(out: FloatArray | None, labels: Labels, grad: bool) -> FloatArray | None:
    """Return where the gradient goes: `out` if kernels can write there, new memory if it is None."""
    if not grad:
        return None
    if out is None:
        return np.empty(labels.sign.shape)
    if (
        out.shape != labels.sign.shape
        or out.dtype != np.float64
        or not (out.flags.c_contiguous and out.flags.writeable)
    ):
        raise ValueError(
            f"out must be a writable float64 array of shape {labels.sign.shape}, got {out.dtype} {out.shape}"
        )
    return out
