"""Random Fourier features computed on the fly: a kernel machine whose feature matrix never exists."""

import numpy as np

from scoreline.operators.blocks import BlockOperator
from scoreline.runtime.checks import check_number
from scoreline.runtime.types import AnyArray, BoundsArray, FloatArray


class RandomFourierFeatures(BlockOperator):
    """Features whose products approach a Gaussian kernel: phi(x) = sqrt(2/D) cos(Wx + b).

    W is normal with variance 2 gamma and b uniform on a circle, so that <phi(x), phi(x')> is about exp(-gamma |x - x'|^2)
    (Rahimi and Recht 2007). The n x D matrix is made block by block during each product, so memory is that of the raw
    rows plus one block. The same `random_state`, `n_features` and `gamma` give the same features, so new rows are scored
    by wrapping them in the same way.

    Parameters
    ----------
    X : array of shape (n, d)
        Raw rows, dense.
    n_features : int
        D, the number of features.
    gamma : float
        Width of the Gaussian kernel.
    random_state : int
        Seed of W and b.
    """

    def __init__(self, X: AnyArray, n_features: int = 1000, gamma: float = 1.0, random_state: int = 0):
        X = np.asarray(X)
        if X.ndim != 2:
            raise ValueError(f"X has {X.ndim} dimension(s), expected 2 (rows, columns)")
        check_number("n_features", n_features, least=1, integer=True)
        check_number("gamma", gamma, above=0)
        super().__init__((X.shape[0], n_features))
        rng = np.random.default_rng(random_state)
        self._rows = X
        self._directions: FloatArray = rng.standard_normal((X.shape[1], n_features)) * np.sqrt(2.0 * gamma)
        self._phases: FloatArray = rng.uniform(0.0, 2.0 * np.pi, n_features)
        self._height = float(np.sqrt(2.0 / n_features))

    def _block(self, start: int, stop: int) -> AnyArray:
        return self._features(self._rows[start:stop])

    def _listed(self, lines: BoundsArray) -> AnyArray:
        return self._features(self._rows[lines])

    def _features(self, rows: AnyArray) -> FloatArray:
        with np.errstate(over="ignore", invalid="ignore"):  # rows too large for an angle show as NaN
            angles = rows @ self._directions
            angles += self._phases
            np.cos(angles, out=angles)
            angles *= self._height
        return angles
