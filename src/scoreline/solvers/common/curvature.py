"""L-BFGS's memory of the last steps and what the gradient did over them."""

from collections.abc import Callable, Mapping

import numpy as np

from scoreline import kernels
from scoreline.runtime.types import FloatArray


class CurvatureMemory:
    """The last `size` pairs (s, y) and the product H g with the inverse Hessian they imply.

    Memory: 2 size vectors of length p. The arrays are plain, so that a solver's state can be saved. `initial` may hold a
    function v -> H0 v, an inverse Hessian that the pairs improve on; without it H0 is a multiple of the identity.
    """

    def __init__(self, p: int, size: int):
        self.steps = np.zeros((size, p))
        self.changes = np.zeros((size, p))
        self.inverse_products = np.zeros(size)
        self.newest = -1
        self.count = 0
        self.scale = 1.0
        self.initial: Callable[[FloatArray], FloatArray] | None = None
        self._weights = np.zeros(size)

    def add(self, s: FloatArray, y: FloatArray) -> bool:
        """Remember a pair, unless its curvature <s, y> is not safely positive; tells whether it was kept."""
        dot = kernels.vectors.dot
        product, length, change = dot(s, y), dot(s, s), dot(y, y)
        if not (product > 1e-10 * length and change > 0.0):
            return False
        self.newest = (self.newest + 1) % len(self.steps)
        self.steps[self.newest], self.changes[self.newest] = s, y
        self.inverse_products[self.newest] = 1.0 / product
        self.count = min(self.count + 1, len(self.steps))
        self.scale = product / change
        return True

    def record(self) -> dict[str, FloatArray]:
        """Return the pairs, oldest first, as arrays."""
        order = [(self.newest - back) % len(self.steps) for back in range(self.count)][::-1]
        return {"steps": self.steps[order].copy(), "changes": self.changes[order].copy()}

    def restore(self, record: Mapping[str, FloatArray]) -> None:
        """Take the pairs of a record, the newest ones if it has more than fit."""
        self.clear()
        for s, y in zip(record.get("steps", ()), record.get("changes", ()), strict=True):
            self.add(np.asarray(s, dtype=np.float64), np.asarray(y, dtype=np.float64))

    @property
    def empty(self) -> bool:
        """Whether nothing is known of the curvature."""
        return self.count == 0 and self.initial is None

    def clear(self) -> None:
        """Forget all pairs, and `initial`."""
        self.newest, self.count, self.scale, self.initial = -1, 0, 1.0, None

    def direction(self, gradient: FloatArray) -> FloatArray:
        """Return -H g; O(size p), and what `initial` costs."""
        pairs = (self.steps, self.changes, self.inverse_products, self.newest, self.count)
        q = -gradient
        kernels.vectors.newest_to_oldest(*pairs, q, self._weights)
        q = self.scale * q if self.initial is None else self.initial(q)
        kernels.vectors.oldest_to_newest(*pairs, q, self._weights)
        return q
