"""Arrays of every device library that is installed: array-api-strict always, PyTorch if it is there."""

import importlib.util
import warnings

import array_api_strict
import numpy as np
import scipy.sparse as sp

from scoreline.gpu.backend import backend_of
from scoreline.gpu.csr_operator import CsrDeviceOperator
from scoreline.gpu.vector import DeviceVector

# Not its first device: arrays that are made without naming one would meet those of another.
STRICT = array_api_strict.Device("device1")
LIBRARIES = ["array-api-strict"] + (["torch"] if importlib.util.find_spec("torch") else [])


def sent(X, library):
    """Return an array, or a CSR matrix, as one of a library; the order of memory survives."""
    if library == "torch":
        import torch

        if sp.issparse(X):
            parts = [torch.from_numpy(np.array(a)) for a in (X.indptr, X.indices, X.data)]
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # sparse tensors are called a beta version
                return torch.sparse_csr_tensor(*parts, size=X.shape)
        if X.ndim == 2 and X.flags.f_contiguous and not X.flags.c_contiguous:
            return torch.from_numpy(np.array(X.T)).T
        return torch.from_numpy(np.array(X))
    if sp.issparse(X):  # the standard has no sparse arrays: the operator itself
        parts = [array_api_strict.asarray(np.array(a), device=STRICT) for a in (X.data, X.indices, X.indptr)]
        operator = CsrDeviceOperator(*parts, X.shape, backend_of(parts[0]))
        assert operator.inspect() is None
        return operator
    return array_api_strict.asarray(np.array(X), device=STRICT)


def vector(x, library):
    return None if x is None else DeviceVector(sent(np.asarray(x), library))
