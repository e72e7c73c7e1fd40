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
from scoreline.runtime.checks import check_number, column_index
from scoreline.runtime.types import AnyArray, BoundsArray, FloatArray, IntArray
from scoreline.runtime.vectors import room_module

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
    pairs : sequence of pairs of columns, default=None
        The pairs to take, by names or numbers, if you know them or others are forbidden: [("age", "income")]. By default the
        rows choose them.

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
    pairs: Sequence[tuple[str | int, str | int]] | None = None

    kind = "pairs"

    def check(self) -> None:
        """Raise an error if a parameter is invalid."""
        super().check()
        if self.max_pairs is not None:
            check_number("max_pairs", self.max_pairs, least=0, integer=True)
        check_number("grid", self.grid, least=2, integer=True)
        if self.grid > 64:
            raise ValueError(f"grid={self.grid} must be at most 64 cells per column")
        listed = self.pairs is None or (isinstance(self.pairs, Sequence) and not isinstance(self.pairs, str))
        if not listed or any(isinstance(each, str) or len(each) != 2 for each in self.pairs or ()):
            raise ValueError(
                f"pairs={self.pairs!r:.100} must be a list of pairs of columns, such as [('age', 'income')]"
            )
        if self.pairs is not None and self.max_pairs is not None:
            raise ValueError(f"pairs lists the pairs, and max_pairs={self.max_pairs} limits a choice; leave one out")

    def with_pairs(self, operator: Any, slopes: Any, weight: Any = None) -> Any:
        """Return the additive features of an operator with those of the listed pairs, or of those that lower the objective.

        Parameters
        ----------
        operator : CodesOperator
            Additive features, on the host, on a cluster or on a device.
        slopes : array of n numbers
            dR/dz at the additive optimum.
        weight : array of n weights, optional
            How often each row counts.
        """
        if operator.scores != "host":
            return room_module(operator.scores, "coded_rows").with_pairs(self, operator, slopes, weight)
        counted = np.ones(operator.shape[0]) if weight is None else np.asarray(weight, dtype=np.float64)
        chosen = self.listed_in(operator.feature_map)
        if chosen is None:
            chosen = best_pairs(operator, np.asarray(slopes), counted, self.most)
        return add_pairs(operator, chosen, self.grid, counted)

    @property
    def most(self) -> int:
        """Largest number of pairs."""
        return MOST_PAIRS if self.max_pairs is None else self.max_pairs

    def listed_in(self, features: FittedFeatures) -> list[tuple[int, int]] | None:
        """Return the numbers of the columns of the pairs that the user lists, or None if the pairs are to be chosen."""
        if self.pairs is None:
            return None
        names, found = [column.name for column in features.columns], []
        for each in self.pairs:
            one, other = sorted(column_index(column, features.n_columns, names, "pairs") for column in each)
            if one == other:
                raise ValueError(f"pairs lists {tuple(each)!r}, which is one column twice")
            for k in (one, other):
                if features.signs[k]:
                    raise ValueError(
                        f"pairs lists column {names[k]!r} of monotone, which a pair would not keep monotone"
                    )
            found.append((one, other))
        return list(dict.fromkeys(found))


class PairSample(NamedTuple):
    """Rows that pairs are compared on: codes, which lines of them, slopes and weights."""

    codes: PackedCodes
    lines: BoundsArray
    slopes: FloatArray
    weight: FloatArray


def compared_rows(features: FittedFeatures, weight: FloatArray, share: float = 1.0) -> AnyArray:
    """Return the rows that pairs are compared on: all of positive weight, or a sample, evenly spread, where these are many.

    `share` is that of these rows among all.
    """
    rows = np.flatnonzero(weight > 0.0)
    own_counts = features.cell_counts()[: features.n_columns]
    listed = sum(1.0 - float(each.max()) / max(float(each.sum()), 1e-300) for each in own_counts)  # cells of a row
    sample = int(max(LEAST_SAMPLE, MOST_UPDATES / max(0.5 * listed**2, 1.0)) * share) + 1
    return rows if len(rows) <= sample else rows[np.linspace(0, len(rows) - 1, sample).astype(np.intp)]


def best_pairs(operator: CodesOperator, slopes: FloatArray, weight: FloatArray, most: int) -> list[tuple[int, int]]:
    """Return the pairs of columns of an operator that are worth functions of their own."""
    features: FittedFeatures = operator.feature_map
    rows = compared_rows(features, weight)
    sample = PairSample(operator.packed, operator.row_numbers(rows), slopes[rows], weight[rows])
    return worthwhile_pairs(features, sample, most)


def worthwhile_pairs(features: FittedFeatures, sample: PairSample, most: int) -> list[tuple[int, int]]:
    """Return the pairs of columns whose cells explain more of the slopes than cells of any pair explain of noise.

    All p (p - 1) / 2 pairs are compared (eq. pair-gain). Slopes are divided by the weight of their row, so that a weight
    is as many copies. The limit is what noise of the same variance exceeds in one of all pairs together (eq. pair-noise).
    """
    p = features.n_columns
    if p < 2 or most == 0:
        return []
    grids = [
        pair_grid(column, counts, SCORED_CELLS)
        for column, counts in zip(features.columns, features.cell_counts()[:p], strict=True)
    ]
    cells = np.array([int(each.max()) + 1 for each in grids])
    codes, lines, u, own = sample
    gains = pair_gains(codes, lines, grids, u, own)
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


def add_pairs(
    operator: CodesOperator, pairs: Sequence[tuple[int, int]], grid: int, weight: FloatArray
) -> CodesOperator:
    """Return the features of an operator together with those of pairs of its columns."""
    paired = with_grids(operator.feature_map, pairs, grid)
    sums = operator.cell_sums(paired.groups[paired.n_columns :], weight)
    return with_pair_bases(paired, sums).of_codes(operator.packed, operator.lines)


def with_grids(features: FittedFeatures, pairs: Sequence[tuple[int, int]], grid: int) -> FittedFeatures:
    """Return the features of columns with a group for each pair: the cells of its grid, without functions of them."""
    p = features.n_columns
    grids = [
        pair_grid(column, counts, grid)
        for column, counts in zip(features.columns, features.cell_counts(), strict=False)
    ]
    sizes = [int(each.max()) + 1 for each in grids]
    groups = list(features.groups[:p])
    for j, k in pairs:
        near, far = _padded(grids[j]) * np.uint32(sizes[k]), _padded(grids[k])
        groups.append(Group((j, k), near, far, np.zeros((sizes[j] * sizes[k], 0))))
    counts = features.counts[: sum(len(group.basis) for group in groups[:p])]
    return FittedFeatures("pairs", features.columns, groups, counts, features.signs)


def with_pair_bases(features: FittedFeatures, sums: FloatArray) -> FittedFeatures:
    """Return the features with functions of the cells of pairs, from the weight of each cell, one pair after another."""
    p = features.n_columns
    groups, own_counts, start = list(features.groups[:p]), features.cell_counts(), 0
    for group in features.groups[p:]:
        j, k = group.columns
        width = int(group.far.max()) + 1
        counts = sums[start : start + len(group.basis)]
        start += len(counts)
        kinds = features.columns[j].kind, features.columns[k].kind
        missing = tuple(bool(own_counts[column][0] > 0.0) for column in (j, k))
        groups.append(group._replace(basis=pair_basis(counts.reshape(-1, width), kinds, missing)))
    return FittedFeatures("pairs", features.columns, groups, np.concatenate([features.counts, sums]), features.signs)


def _padded(grid: AnyArray) -> AnyArray:
    """Return the cells of all 256 codes."""
    return np.concatenate([grid, np.zeros(CODES - len(grid), dtype=np.uint32)])
