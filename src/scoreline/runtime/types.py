"""Names of the array types in signatures."""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.intp]
# Chunk boundaries are unsigned, so that Numba need not test for negative indices.
BoundsArray: TypeAlias = NDArray[np.uint64]
AnyArray: TypeAlias = NDArray[Any]
# Scores live in a score space (host array, device array, blocks on workers): opaque to solvers.
Scores: TypeAlias = Any
# Rows of X: a dense array, a SciPy CSR matrix, or `CsrRows`. SciPy has no types.
Block: TypeAlias = Any
# Entries of a confusion matrix, or a measure of them: for one threshold, or for an array of thresholds.
Counts: TypeAlias = float | FloatArray
