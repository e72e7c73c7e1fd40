"""NumPy's functions on vectors of a device: what they give on arrays of this process, of the same type."""

import numpy as np
import pytest
from device_arrays import LIBRARIES, vector

from cases import for_each
from scoreline.gpu.vector import DeviceVector
from scoreline.runtime.vectors import as_vector

X = np.array([3.0, -1.0, 0.0, 2.5, 3.0])
K = np.array([1, -1, -1, 1, 1], dtype=np.int8)

ELEMENTWISE = {
    "arithmetic": lambda x, k: 2 * x - 1 / (x + 10.0) + k,
    "power and magnitude": lambda x, k: np.abs(x) ** 2 + np.sqrt(np.abs(x)),
    "comparison": lambda x, k: (x > 0.0) & (k != -1) | ~(x <= 2.5),
    "where numbers": lambda x, k: np.where(k > 0, 1, -1),
    "where mixed": lambda x, k: np.where(x > 0, x, 0.0),
    "small integers stay small": lambda x, k: 4 * (k > 0).astype(np.int8) + 2 * (x > 0).astype(np.int8),
    "integers divided": lambda x, k: k / 2,
    "clip": lambda x, k: np.clip(x, 0.0, 2.75),
    "maximum": lambda x, k: np.maximum(x, 0.5) + np.minimum(1.0, x),
    "finite": lambda x, k: np.isfinite(x),
    "scaled by a power of two": lambda x, k: np.ldexp(x, -3),
    "logical": lambda x, k: np.logical_and(x > 0, k > 0),
    "rint": lambda x, k: np.rint(x),
    "zeros and ones": lambda x, k: np.zeros_like(x) + np.ones_like(x) + np.full_like(x, 2.0),
    "array of this process": lambda x, k: x + np.arange(5.0),
    "masked": lambda x, k: x[k > 0],
    "listed": lambda x, k: x[np.array([3, 0])],
    "sliced": lambda x, k: x[1:4:2],
    "places": lambda x, k: np.flatnonzero(k > 0),
    "cumsum, which it has not": lambda x, k: np.cumsum(x),
    "minus and plus zero": lambda x, k: -x,
}


@pytest.mark.parametrize("library", LIBRARIES)
@for_each("name", ELEMENTWISE)
def test_functions_of_entries(name, library):
    wanted = ELEMENTWISE[name](X, K)
    got = ELEMENTWISE[name](vector(X, library), vector(K, library))
    np.testing.assert_array_equal(np.asarray(got), wanted)
    assert np.asarray(got).dtype == wanted.dtype
    assert isinstance(got, DeviceVector) or "has not" in name


@pytest.mark.parametrize("library", LIBRARIES)
def test_numbers(library):
    x, k = vector(X, library), vector(K, library)
    assert (x.sum(), x.mean(), x.min(), x.max(), k.sum(), x @ x) == (7.5, 1.5, -1.0, 3.0, 1, X @ X)
    assert (len(x), x.shape, np.shape(x), np.ndim(x), x.size) == (5, (5,), (5,), 1, 5)
    assert (np.count_nonzero(k > 0), (k > 5).any(), (k < 5).all(), x.any(), x.all()) == (3, False, True, True, False)
    assert x[3] == 2.5
    assert x[np.zeros(5, dtype=bool)].max(initial=-np.inf) == -np.inf
    np.testing.assert_array_equal(np.bincount((k > 0).astype(np.int8), x, 4), [-1.0, 8.5, 0.0, 0.0])
    np.testing.assert_array_equal(np.bincount((k > 0).astype(np.int8), None, 3), [2, 3, 0])
    np.testing.assert_array_equal(np.unique(x), [-1.0, 0.0, 2.5, 3.0])
    np.testing.assert_array_equal(k.distinct(), [-1, 1])
    half = vector(X.astype(np.float32), library)
    assert half.dtype == np.float32
    assert (half + 1.0).dtype == np.float32  # a plain number is no type of its own
    assert (half + x).dtype == np.float64


@pytest.mark.parametrize("library", LIBRARIES)
def test_it_stays_what_and_where_it_is(library):
    x = vector(X, library)
    y = x
    y += 1.0
    np.testing.assert_array_equal(np.asarray(x), X)
    np.testing.assert_array_equal(np.asarray(y), X + 1.0)
    with pytest.raises(TypeError, match="cannot be changed in place"):
        x[0] = 1.0
    with pytest.raises(TypeError, match="do not fit into a host array"):
        np.add(x, 1.0, out=np.empty(5))
    with pytest.raises(TypeError, match="indexed by a mask"):
        x[np.array([1.5])]
    assert as_vector(x) is x
    assert as_vector(x, np.float64) is x
    assert as_vector(x, np.int8).dtype == np.int8
    assert x.like(x) is x
    assert x.like(K).backend == x.backend
    assert "5 entries of float64" in repr(x)
    assert x.astype(np.float64) is x
    assert x.copy() is x
