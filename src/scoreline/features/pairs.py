"""Features of pairs of columns: which pairs, and functions of the cells of a grid that no function of one column has."""

import logging
from dataclasses import dataclass
from typing import Any

import numpy as np

from scoreline import kernels
from scoreline.features.additive import Additive
from scoreline.features.basis import pair_basis, pair_grid
from scoreline.features.fitted import FittedFeatures
from scoreline.operators.codes import CODES, CodesOperator, Group
from scoreline.runtime import parallel
from scoreline.runtime.checks import check_number
from scoreline.runtime.types import AnyArray, FloatArray, IntArray

logger = logging.getLogger("scoreline")

SCORED_CELLS = 8  # of a column, when pairs are compared
MOST_PAIRS = 60  # by default
MOST_LOOKUPS = 1e9  # of all pairs that are compared; beyond, a sample of the rows
LEAST_SAMPLE = 5000  # rows


@dataclass(frozen=True)
class Pairs(Additive):
    """A smooth function of each column, and functions of pairs of columns.

    An additive model is trained first. The slopes of the risk at its optimum, summed over the cells of a grid for each pair of
    columns, tell how much a function of the pair can lower the objective beyond functions of its columns. Pairs that gain more
    than any pair does for shuffled slopes are taken, the best first, up to `max_pairs`. Then all are trained together.

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
        """Raise unless the parameters make sense."""
        super().check()
        if self.max_pairs is not None:
            check_number("max_pairs", self.max_pairs, least=0, integer=True)
        check_number("grid", self.grid, least=2, integer=True)
        if self.grid > 64:
            raise ValueError(f"grid={self.grid} must be at most 64 cells per column")

    def with_pairs(self, operator: CodesOperator, slopes: FloatArray, weight: Any = None) -> CodesOperator:
        """Return the additive features of an operator together with those of the pairs that are worth it.

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
    """Return the pairs of columns whose cells explain more of the slopes than those of any pair explain of shuffled ones.

    All p (p - 1) / 2 pairs are compared, each by one walk over two columns of bytes (eq. pair-gain). Slopes are divided by the
    weight of their row, so that a weight is as many copies.
    """
    features: FittedFeatures = operator.feature_map
    p = features.n_columns
    rows = np.flatnonzero(weight > 0.0)
    free = [j for j in range(p) if not features.signs[j]]  # a function of a pair would not keep a column monotone
    pairs = np.array([(j, k) for j in free for k in free if k < j], dtype=np.int64).reshape(-1, 2)[:, ::-1]
    sample = int(max(LEAST_SAMPLE, MOST_LOOKUPS / max(1, len(pairs))))
    if len(rows) > sample:
        rows = rows[np.linspace(0, len(rows) - 1, sample).astype(np.intp)]
    codes = np.ascontiguousarray(operator.codes[:, rows if operator.lines is None else operator.lines[rows]])
    grids = [
        pair_grid(column, counts, SCORED_CELLS)
        for column, counts in zip(features.columns, features.cell_counts(), strict=False)
    ]
    own, u = weight[rows], slopes[rows]
    gains = _gains(codes, grids, pairs, u, own)
    shuffled = np.random.default_rng(0).permutation(len(rows))
    noise = _gains(codes, grids, pairs, (u / own)[shuffled] * own, own)
    order = np.argsort(-gains, kind="stable")
    limit = noise.max(initial=0.0)
    chosen = [(int(pairs[t, 0]), int(pairs[t, 1])) for t in order[:most] if gains[t] > limit]
    logger.info(
        "pairs: %d of %d gain more than noise, %d are taken", np.count_nonzero(gains > limit), len(pairs), len(chosen)
    )
    return chosen


def _gains(codes: AnyArray, grids: list[AnyArray], pairs: IntArray, u: FloatArray, weight: FloatArray) -> FloatArray:
    gains = np.zeros(len(pairs))
    if len(pairs):
        grid = np.stack([_padded(each) for each in grids])
        cells = np.array([int(each.max()) + 1 for each in grids])
        bounds = parallel.even_bounds(len(pairs), 4.0 * len(u))
        arguments = (codes, grid, cells, pairs, u, weight, gains, bounds)
        parallel.run_chunks(kernels.codes.interactions, len(bounds) - 1, *arguments)
    return gains


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
    counting = [Group.of_column(j, np.zeros((column.size, 0))) for j, column in enumerate(features.columns)]
    shapes = [(cells[j], cells[k]) for j, k in pairs]
    joint = [
        Group((j, k), _padded(grids[j]) * np.uint32(cells[k]), _padded(grids[k]), np.eye(cells[j] * cells[k]))
        for j, k in pairs
    ]
    for group, shape in zip(joint, shapes, strict=True):
        own = CodesOperator(operator.codes, [*counting, group], operator.lines).rmatvec(weight)
        counts.append(own)
        kinds = tuple(features.columns[column].kind for column in group.columns)
        missing = tuple(bool(features.cell_counts()[column][0] > 0.0) for column in group.columns)
        groups.append(group._replace(basis=pair_basis(own.reshape(shape), kinds, missing)))
    return FittedFeatures("pairs", features.columns, groups, np.concatenate(counts), features.signs).of_codes(
        operator.codes, operator.lines
    )


def _padded(grid: AnyArray) -> AnyArray:
    """Return the cells of all 256 codes."""
    return np.concatenate([grid, np.zeros(CODES - len(grid), dtype=np.uint32)])
