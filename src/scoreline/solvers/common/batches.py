"""Nested random batches of rows: prefixes of one permutation, read where they lie."""

import copy
from collections.abc import Sequence

import numpy as np

from scoreline.objective import Objective
from scoreline.runtime.types import AnyArray, FloatArray


class Batches:
    """Batches of the rows of an objective, of given sizes; that of all rows is the objective itself, in its own order.

    What a batch has more than the one before it is a random sample of the rows left, in the order of memory: reading rows at
    random takes ten times as long as one after the other. Rows of weight 0 come last. `norms` asks for the length of every
    row, one pass.
    """

    def __init__(self, objective: Objective, sizes: Sequence[int], seed: int, norms: bool):
        labels = objective.risk.labels
        self.objective = objective
        self.n = len(labels.sign)
        counted = np.arange(self.n) if labels.weight is None else np.flatnonzero(labels.weight > 0.0)
        edges = [min(m, len(counted)) for m in sizes if m < self.n]
        drawn = counted[np.random.default_rng(seed).choice(len(counted), max(edges, default=0), replace=False)]
        left = np.ones(self.n, dtype=bool)
        left[drawn] = False
        parts = [np.sort(drawn[a:b]) for a, b in zip([0, *edges], edges, strict=False)]
        self.order = np.concatenate([*parts, np.flatnonzero(left)])
        self._sign = labels.sign[self.order]
        self._weight = None if labels.weight is None else labels.weight[self.order]
        self._norms = objective.operator.row_norms() if norms else np.zeros(self.n)

    def of(self, m: int, penalty: float = 0.0) -> Objective:
        """Return the objective of the first m rows of the permutation, its alpha at least penalty / m."""
        if m == self.n:
            return self.objective
        objective = self.objective
        risk = copy.copy(objective.risk)
        risk.labels = objective.space.labels(self._sign[:m], None if self._weight is None else self._weight[:m])
        return Objective(objective.operator.on_rows(self.order[:m]), risk, max(objective.alpha, penalty / m))

    def places(self, first: int, last: int, m: int) -> AnyArray:
        """Return where the rows first..last of the permutation stand in the batch of m rows."""
        return np.arange(first, last) if m < self.n else self.order[first:last]

    def norms(self, m: int) -> FloatArray:
        """Return the lengths of the rows of the batch."""
        return self._norms[self.order[:m]] if m < self.n else self._norms

    def margins(self, z: FloatArray) -> FloatArray:
        """Return y_i z_i of the rows of a batch."""
        sign = self._sign[: len(z)] if len(z) < self.n else self.objective.risk.labels.sign
        return np.asarray(sign * z)
