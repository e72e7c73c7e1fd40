"""Matrices on top of each other: rows in several pieces, each read where it lies."""

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import numpy as np
import scipy.sparse as sp

from scoreline.operators.base import Operator
from scoreline.operators.moments import ClassMoments
from scoreline.operators.statistics import ColumnStatistics, merge
from scoreline.runtime.types import AnyArray, Block, BoundsArray, FloatArray, Scores


class StackedOperator(Operator):
    """The rows of several operators, one after another; nothing is copied but blocks that reach over a border."""

    def __init__(self, pieces: Sequence[Operator]):
        widths = {piece.shape[1] for piece in pieces}
        if len(widths) != 1:
            raise ValueError(f"pieces of X have {sorted(widths)} columns, expected the same number in all of them")
        super().__init__((sum(piece.shape[0] for piece in pieces), widths.pop()))
        self.pieces = tuple(pieces)
        self.starts = [0, *accumulate(piece.shape[0] for piece in pieces)]
        self.capabilities = frozenset.intersection(*(p.capabilities for p in pieces)) - {"rows"}
        self.largest = self._known_largest()

    def _known_largest(self) -> FloatArray | None:
        known = [piece.largest for piece in self.pieces if piece.largest is not None]
        return np.asarray(np.max(known, axis=0)) if len(known) == len(self.pieces) else None

    def _split_rows(self, rows: Any) -> list[Any]:
        return [rows[a:b] for a, b in zip(self.starts[:-1], self.starts[1:], strict=True)]

    def _paired(self, rows: Any) -> Any:
        parts = [None] * len(self.pieces) if rows is None else self._split_rows(rows)
        return zip(self.pieces, parts, strict=True)

    def _matvec(self, w: FloatArray) -> Scores:
        return np.concatenate([piece._matvec(w) for piece in self.pieces])

    def _rmatvec(self, u: Scores) -> FloatArray:
        return np.asarray(sum(piece._rmatvec(part) for piece, part in self._paired(u)))

    def _block(self, start: int, stop: int) -> Block:
        found = []
        for piece, first in zip(self.pieces, self.starts, strict=False):
            low, high = max(start, first) - first, min(stop, first + piece.shape[0]) - first
            if low < high:
                found.append(piece._block(low, high))
        if len(found) == 1:
            return found[0]
        return sp.vstack(found, format="csr") if any(map(sp.issparse, found)) else np.concatenate(found)

    def _listed(self, lines: BoundsArray) -> Block:
        owner = np.searchsorted(self.starts, lines, side="right") - 1
        order = np.argsort(owner, kind="stable")
        found = [
            self.pieces[k]._listed(lines[owner == k] - np.uint64(self.starts[k])) for k in np.unique(owner).tolist()
        ]
        rows = sp.vstack(found, format="csr") if any(map(sp.issparse, found)) else np.concatenate(found)
        return rows[np.argsort(order)]

    def _gram(self, weight: FloatArray) -> FloatArray:
        return np.asarray(sum(piece._gram(part) for piece, part in self._paired(weight)))

    def _square_rmatvec(self, u: FloatArray) -> FloatArray:
        return np.asarray(sum(piece._square_rmatvec(part) for piece, part in self._paired(u)))

    def _quadratics(self, matrix: FloatArray) -> FloatArray:
        return np.concatenate([piece._quadratics(matrix) for piece in self.pieces])

    def _diagonal_leverages(self, diagonal: FloatArray, weight: FloatArray) -> FloatArray:
        return np.concatenate([piece._diagonal_leverages(diagonal, part) for piece, part in self._paired(weight)])

    def _column_statistics(self, weight: FloatArray | None) -> ColumnStatistics:
        return merge([piece._column_statistics(part) for piece, part in self._paired(weight)])

    def _class_moments(self, sign: AnyArray, weight: FloatArray | None) -> ClassMoments:
        total = ClassMoments.empty(self.shape[1])
        for (piece, own), (_, part) in zip(self._paired(sign), self._paired(weight), strict=True):
            total.merge(piece._class_moments(own, part))
        return total

    def gram_passes(self) -> float:
        return sum(piece.gram_passes() * piece.shape[0] for piece in self.pieces) / self.shape[0]

    @property
    def row_bytes(self) -> float:
        return sum(piece.row_bytes * piece.shape[0] for piece in self.pieces) / self.shape[0]

    @property
    def stores_zeros(self) -> bool:
        return all(piece.stores_zeros for piece in self.pieces)

    def inspect(self) -> tuple[int, int] | None:
        for piece, first in zip(self.pieces, self.starts, strict=False):
            place = piece.inspect()
            if place is not None:
                return first + place[0], place[1]
        self.largest = self._known_largest()
        return None
