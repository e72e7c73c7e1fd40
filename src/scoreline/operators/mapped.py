"""Matrices that stay on disk: arrays are mapped into memory and read by the kernels of those that lie in it."""

import mmap
from contextlib import suppress
from pathlib import Path

import numpy as np

from scoreline._typing import AnyArray
from scoreline.operators.base import Operator
from scoreline.operators.csr_rows import CsrRows
from scoreline.operators.dense import DenseOperator
from scoreline.operators.sparse import CompressedOperator


def mapped_array(path: Path) -> AnyArray:
    """Return the array of an .npy file, read from the disk when its entries are; the system is told to read ahead."""
    array = np.load(path, mmap_mode="r", allow_pickle=False)
    # Products walk each part of an array from its beginning to its end, so what comes next may be read already and what is
    # past may go. Not all systems know the advice.
    with suppress(AttributeError, ValueError, OSError):
        array.base.madvise(mmap.MADV_SEQUENTIAL)
    return np.asarray(array)


def mapped_csr(folder: Path, shape: tuple[int, int]) -> Operator:
    """Return the operator of data.npy, indices.npy and indptr.npy in a folder; rows sorted, no column twice.

    One read of the indices: those out of range would lead kernels out of memory.
    """
    data, indices, indptr = (mapped_array(folder / f"{name}.npy") for name in ("data", "indices", "indptr"))
    return CompressedOperator(CsrRows(data, indices, indptr, shape))


def mapped_dense(folder: Path) -> Operator:
    """Return the operator of X.npy in a folder."""
    return DenseOperator(mapped_array(folder / "X.npy"))
