"""Features of pairs of columns: which pairs, and functions of the cells of a grid that no function of one column has."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import chi2

from scoreline import kernels
from scoreline.features.additive import Additive
from scoreline.features.basis import pair_basis, pair_grid
from scoreline.features.fitted import FittedFeatures
from scoreline.operators.codes import CODES, CodesOperator, Group, PackedCodes
from scoreline.runtime import parallel
from scoreline.runtime.checks import check_number
from scoreline.runtime.types import AnyArray, BoundsArray, FloatArray, IntArray

logger = logging.getLogger("scoreline")

SCORED_CELLS = 8  # of a column, when pairs are compared
MOST_PAIRS = 60  # by default
MOST_UPDATES = 2e8  # of sums over the cells of all pairs that are compared; beyond, a sample of the rows
LEAST_SAMPLE = 5000  # rows
BLOCK_COLUMNS = 32  # whose cells are summed together: the sums of two such blocks stay in the cache


@dataclass(frozen=True)
class Pairs(Additive):
    """A smooth function of each column, and functions of pairs of columns.

    An additive model is trained first. The slopes of the risk at its optimum, summed over the cells of a grid for each pair of
    columns, tell how much a function of the pair can lower the objective beyond functions of its columns. Pairs that gain more
    than noise would are taken, the best first, up to `max_pairs`. Then all are trained together.

    Parameters
    ----------
    max_bins, categories : as in Additive
        Functions of single columns.
    max_pairs : int, default=None
        Largest number of pairs; None for 60.
    grid : int, default=13
        Cells of a column on the grid of a pair, at most.

    Examples
    --------
    >>> from scoreline import MeasureClassifier
    >>> import numpy as np
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(3000, 3))
    >>> clf = MeasureClassifier("roc_auc", features="pairs", alpha=0.01).fit(X, X[:, 0] * X[:, 2] > 0)
    >>> clf.feature_map_.pairs[0]
    (0, 2)
    """

    max_pairs: int | None = None
    grid: int = 13

    kind = "pairs"

    def check(self) -> None:
        """Raise an error if a parameter is invalid."""
        super().check()
        if self.max_pairs is not None:
            check_number("max_pairs", self.max_pairs, least=0, integer=True)
        check_number("grid", self.grid, least=2, integer=True)
        if self.grid > 64:
            raise ValueError(f"grid={self.grid} must be at most 64 cells per column")

    def with_pairs(self, operator: CodesOperator, slopes: FloatArray, weight: Any = None) -> CodesOperator:
        """Return the additive features of an operator together with those of the pairs that can lower the objective.

        Parameters
        ----------
        operator : CodesOperator
            Additive features.
        slopes : array of n numbers
            dR/dz at the additive optimum.
        weight : array of n weights, optional
            How often each row counts.
        """
        counted = np.ones(operator.shape[0]) if weight is None else np.asarray(weight, dtype=np.float64)
        most = MOST_PAIRS if self.max_pairs is None else self.max_pairs
        chosen = best_pairs(operator, np.asarray(slopes), counted, most)
        return add_pairs(operator, chosen, self.grid, counted)


def best_pairs(operator: CodesOperator, slopes: FloatArray, weight: FloatArray, most: int) -> list[tuple[int, int]]:
    """Return the pairs of columns whose cells explain more of the slopes than cells of any pair explain of noise.

    All p (p - 1) / 2 pairs are compared (eq. pair-gain), on a sample of the rows where these are many. Slopes are divided by
    the weight of their row, so that a weight is as many copies. The limit is what noise of the same variance exceeds in one of
    all pairs together (eq. pair-noise).
    """
    features: FittedFeatures = operator.feature_map
    p = features.n_columns
    rows = np.flatnonzero(weight > 0.0)
    if p < 2 or most == 0:
        return []
    own_counts = features.cell_counts()[:p]
    listed = sum(1.0 - float(each.max()) / max(float(each.sum()), 1e-300) for each in own_counts)  # cells of a row
    sample = int(max(LEAST_SAMPLE, MOST_UPDATES / max(0.5 * listed**2, 1.0)))
    if len(rows) > sample:
        rows = rows[np.linspace(0, len(rows) - 1, sample).astype(np.intp)]
    grids = [
        pair_grid(column, counts, SCORED_CELLS) for column, counts in zip(features.columns, own_counts, strict=True)
    ]
    cells = np.array([int(each.max()) + 1 for each in grids])
    lines = rows if operator.lines is None else operator.lines[rows]
    own, u = weight[rows], slopes[rows]
    gains = pair_gains(operator.packed, lines.astype(np.uint64), grids, u, own)
    one, other = np.triu_indices(p, 1)
    variance = max(float(np.square(u) @ (1.0 / own) / own.sum() - (u.sum() / own.sum()) ** 2), 0.0)
    limit = variance * chi2.isf(1.0 / len(one), np.maximum(1.0, (cells[one] - 1.0) * (cells[other] - 1.0)))
    found = gains[one, other]
    free = np.array(features.signs) == 0  # a function of a pair would not keep a column monotone
    significant = (found > np.maximum(limit, 0.0)) & free[one] & free[other]
    order = np.argsort(-np.where(significant, found, -np.inf), kind="stable")[
        : min(most, int(np.count_nonzero(significant)))
    ]
    logger.info(
        "pairs: %d of %d gain more than noise, %d are taken", np.count_nonzero(significant), len(one), len(order)
    )
    return [(int(one[t]), int(other[t])) for t in order]


def pair_gains(
    codes: PackedCodes, lines: BoundsArray, grids: list[AnyArray], u: FloatArray, weight: FloatArray
) -> FloatArray:
    """Return the gain of every pair of columns on the listed rows, in the upper triangle of a matrix (eq. pair-gain).

    Rows are summed over cells other than the most frequent one of a column, whose sums follow from those of all rows. So a
    pair of columns that are rarely apart from one value, as indicators are, costs next to nothing.
    """
    p = len(grids)
    gains = np.zeros((p, p))
    blocks = [slice(k, min(k + BLOCK_COLUMNS, p)) for k in range(0, p, BLOCK_COLUMNS)]
    listed = [BlockCells.of(codes, range(p)[block], grids, lines, u, weight) for block in blocks]
    tiles = [(g, h) for g in range(len(blocks)) for h in range(g, len(blocks))]

    def work(first: int, last: int) -> None:
        for g, h in tiles[first:last]:
            one, other = listed[g], listed[h]
            sums = np.zeros((one.starts[-1], other.starts[-1], 2))
            kernels.codes.joint_sums(one.counts, one.cells, other.counts, other.cells, u, weight, sums)
            kernels.codes.block_interactions(
                sums, one.sums, other.sums, one.starts, other.starts, one.frequent, other.frequent, g == h,
                gains[blocks[g], blocks[h]],
            )  # fmt: skip

    parallel.run_chunks(work, len(tiles))
    return gains


class BlockCells(NamedTuple):
    """The cells of a block of columns: where those of each column start, and which of them each row lists.

    `frequent` is the most frequent cell of each column, which is not listed; `sums` are those of (u, weight) over all cells.
    """

    starts: IntArray
    frequent: IntArray
    counts: AnyArray
    cells: AnyArray
    sums: FloatArray

    @classmethod
    def of(
        cls,
        codes: PackedCodes,
        columns: Sequence[int],
        grids: list[AnyArray],
        lines: BoundsArray,
        u: FloatArray,
        weight: FloatArray,
    ) -> "BlockCells":
        """List the cells of the rows."""
        sizes = [int(grids[j].max()) + 1 for j in columns]
        starts = np.concatenate([[0], np.cumsum(sizes)])
        sums, frequent = np.zeros((starts[-1], 2)), np.zeros(len(columns), dtype=np.int64)
        counts = np.zeros(len(lines), dtype=np.uint8)
        cells = np.empty((len(lines), len(columns) + 1), dtype=np.uint16)
        for k, (j, size) in enumerate(zip(columns, sizes, strict=True)):
            cell = grids[j][codes.column(j, lines)]
            own = sums[starts[k] : starts[k + 1]]
            own[:, 0], own[:, 1] = np.bincount(cell, u, size), np.bincount(cell, weight, size)
            frequent[k] = int(np.argmax(own[:, 1]))
            kernels.codes.list_other_cells(cell, frequent[k], starts[k], counts, cells)
        return cls(starts, frequent, counts, cells, sums)


def add_pairs(operator: CodesOperator, pairs: list[tuple[int, int]], grid: int, weight: FloatArray) -> CodesOperator:
    """Return the features of an operator together with those of pairs of its columns."""
    features: FittedFeatures = operator.feature_map
    p = features.n_columns
    grids = [
        pair_grid(column, counts, grid)
        for column, counts in zip(features.columns, features.cell_counts(), strict=False)
    ]
    cells = [int(each.max()) + 1 for each in grids]
    groups, counts = list(features.groups[:p]), [features.counts[: sum(len(g.basis) for g in features.groups[:p])]]
    packed, lines = operator.packed, operator.lines
    for j, k in pairs:
        near, far = _padded(grids[j]) * np.uint32(cells[k]), _padded(grids[k])
        cell = near[packed.column(j, lines)] + far[packed.column(k, lines)]
        own = np.bincount(cell, weight, cells[j] * cells[k]).astype(np.float64)
        counts.append(own)
        kinds = features.columns[j].kind, features.columns[k].kind
        missing = tuple(bool(features.cell_counts()[column][0] > 0.0) for column in (j, k))
        basis = pair_basis(own.reshape(cells[j], cells[k]), kinds, missing)
        groups.append(Group((j, k), near, far, basis))
    return FittedFeatures("pairs", features.columns, groups, np.concatenate(counts), features.signs).of_codes(
        packed, lines
    )


def _padded(grid: AnyArray) -> AnyArray:
    """Return the cells of all 256 codes."""
    return np.concatenate([grid, np.zeros(CODES - len(grid), dtype=np.uint32)])
