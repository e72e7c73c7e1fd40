"""Additive features and pairs of rows on a cluster: codes stay there, sketches of columns and sums of cells come here."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from scoreline.distributed.dask_operator import Client, from_dask
from scoreline.distributed.parts_operator import PartsOperator
from scoreline.features import Additive, FittedFeatures, Pairs
from scoreline.features.additive import counting, learnt_features
from scoreline.features.bins import ColumnBins
from scoreline.features.columns import BlockColumns, ColumnSample, sampled_rows
from scoreline.features.fitted import table_codes, with_features
from scoreline.features.pairs import PairSample, compared_rows, with_grids, with_pair_bases, worthwhile_pairs
from scoreline.operators.base import Operator
from scoreline.operators.codes import CodesOperator, Group, PackedCodes
from scoreline.runtime.checks import column_signs
from scoreline.runtime.types import AnyArray, FloatArray

SKETCH_POINTS = 4096  # of a column; each stands for values of about equal weight


def learn(
    options: Additive, X: Any, weight: Any, monotone: Mapping[Any, int] | None, names: Any, client: Client = None
) -> PartsOperator:
    """Return the features of rows on a cluster: see `Additive.learn`.

    Each part sketches its columns, the sketches are merged in a tree, and the driver makes bins of the result. Columns of at
    most SKETCH_POINTS distinct values in at most SAMPLE_ROWS rows have the same bins as in one process.
    """
    table = X if isinstance(X, PartsOperator) else from_dask(X, client)
    p, layout = table.shape[1], table.layout
    known = [str(name) for name in X.columns] if hasattr(X, "columns") else None
    signs = column_signs(monotone, p, names or known)
    exact = options.declared(p, known)
    counted = table.aligned(1.0 if weight is None else weight, "sample_weight")
    sketches = layout.each(partial(_sketches, exact=exact), table.parts, counted)
    merged = layout.folded(sketches, partial(_merged, exact=exact), 16.0 * SKETCH_POINTS * p)
    bins = options.bins_of(layout.fetch([merged])[0], known, signs)
    counts = table.wrap_parts(partial(_counting, bins=bins))
    features = learnt_features(bins, counts.rmatvec(counted), signs)
    return _finished(counts.wrap_parts(partial(_coded, features=features)), features)


def coded(features: FittedFeatures, X: PartsOperator) -> PartsOperator:
    """Return the features of other rows on a cluster."""
    return _finished(X.wrap_parts(features.operator), features)


def recoded(operator: PartsOperator, features: FittedFeatures) -> PartsOperator:
    """Return other features of the same codes."""
    return _finished(operator.wrap_parts(partial(with_features, features=features)), features)


def _finished(operator: PartsOperator, features: FittedFeatures) -> PartsOperator:
    operator.feature_map, operator.tails_checked = features, True
    operator.inspect()  # takes the magnitudes that the parts know
    return operator


def with_pairs(options: Pairs, operator: PartsOperator, slopes: Any, weight: Any) -> PartsOperator:
    """Return the features of an operator with those of pairs: see `Pairs.with_pairs`."""
    features, layout = operator.feature_map, operator.layout
    counted = operator.aligned(1.0 if weight is None else weight, "sample_weight")
    chosen = options.listed_in(features)
    if chosen is None:
        own = partial(_compared, features=features, n=operator.shape[0])
        pieces = layout.gather(own, operator.parts, operator.aligned(slopes, "slopes"), counted)
        codes, u, mass = (np.concatenate(each, axis=-1) for each in zip(*pieces, strict=True))
        sample = PairSample(PackedCodes.plain(codes), np.arange(len(u), dtype=np.uint64), u, mass)
        chosen = worthwhile_pairs(features, sample, options.most)
    paired = with_grids(features, chosen, options.grid)
    groups = paired.groups[features.n_columns :]
    cells = sum(len(group.basis) for group in groups)
    sums = layout.total(8.0 * cells, partial(_cell_sums, groups=groups), operator.parts, counted)
    return recoded(operator, with_pair_bases(paired, sums))


def _sketches(part: Operator, weight: FloatArray, exact: set[int]) -> list[ColumnSample]:
    """Return a sketch of each column of a part: weighted values, at most SKETCH_POINTS of them and missing ones."""
    rows = sampled_rows(weight)
    if len(rows) == 0:
        return [ColumnSample(np.empty(0), np.empty(0))] * part.shape[1]
    own = weight[rows] * (weight.sum() / weight[rows].sum())  # rows that are left out count too
    return [_sketch(ColumnSample(values, own), j in exact) for j, values in enumerate(BlockColumns(part).sample(rows))]


def _merged(*parts: Sequence[ColumnSample], exact: set[int]) -> list[ColumnSample]:
    """Return one sketch of each column from those of several parts."""
    return [
        _sketch(ColumnSample(*(np.concatenate(each) for each in zip(*columns, strict=True))), j in exact)
        for j, columns in enumerate(zip(*parts, strict=True))
    ]


def _sketch(column: ColumnSample, is_category: bool) -> ColumnSample:
    """Return the distinct values of a column and their weight.

    Of too many numbers, neighbours of about equal weight together are joined into the last of them; of too many categories,
    the most frequent ones are kept.
    """
    known = ~np.isnan(column.values)
    values, place = np.unique(column.values[known], return_inverse=True)
    weight = np.bincount(place, column.weight[known], len(values)).astype(np.float64, copy=False)
    if len(values) > SKETCH_POINTS and is_category:
        frequent = np.sort(np.argsort(-weight, kind="stable")[:SKETCH_POINTS])
        values, weight = values[frequent], weight[frequent]
    elif len(values) > SKETCH_POINTS:
        upto = np.cumsum(weight)
        levels = upto[-1] * np.arange(1, SKETCH_POINTS) / SKETCH_POINTS
        last = np.unique(np.append(np.minimum(np.searchsorted(upto, levels), len(values) - 1), len(values) - 1))
        values, weight = values[last], np.diff(upto[last], prepend=0.0)
    missing = float(column.weight[~known].sum())
    if missing > 0.0:
        values, weight = np.append(values, np.nan), np.append(weight, missing)
    return ColumnSample(values, weight)


def _counting(part: Operator, bins: Sequence[ColumnBins]) -> CodesOperator:
    """Return the codes of a part with a function of each code."""
    return counting(table_codes(BlockColumns(part), bins), bins)


def _coded(part: CodesOperator, features: FittedFeatures) -> CodesOperator:
    """Return the features of a part whose codes are known."""
    return features.of_codes(PackedCodes.packed(part.packed.codes))


def _compared(
    part: CodesOperator, slopes: FloatArray, weight: FloatArray, features: FittedFeatures, n: int
) -> tuple[AnyArray, FloatArray, FloatArray]:
    """Return codes, slopes and weights of the rows of a part that pairs are compared on."""
    rows = compared_rows(features, weight, part.shape[0] / n)
    lines = part.row_numbers(rows)
    codes = np.stack([part.packed.column(j, lines) for j in range(features.n_columns)])
    return codes, slopes[rows], weight[rows]


def _cell_sums(part: CodesOperator, weight: FloatArray, groups: Sequence[Group]) -> FloatArray:
    return part.cell_sums(groups, weight)
