"""Additive features and pairs of arrays on a device: values are coded there, samples and sums of cells come to the host."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from scoreline.features import Additive, FittedFeatures, Pairs
from scoreline.features.additive import counting_groups, learnt_features
from scoreline.features.bins import ColumnBins
from scoreline.features.columns import ColumnSample, sampled_rows
from scoreline.features.pairs import PairSample, compared_rows, with_grids, with_pair_bases, worthwhile_pairs
from scoreline.gpu.backend import DeviceArray
from scoreline.gpu.codes_operator import CodesDeviceOperator
from scoreline.gpu.convert import from_device
from scoreline.gpu.operator import DenseDeviceOperator
from scoreline.operators.codes import PackedCodes
from scoreline.runtime.array_types import on_host
from scoreline.runtime.checks import column_signs
from scoreline.runtime.types import FloatArray


def learn(
    options: Additive, X: Any, weight: Any, monotone: Mapping[Any, int] | None, names: Any
) -> CodesDeviceOperator:
    """Return the features of an array on a device, with bins from a sample of the rows: see `Additive.learn`."""
    dense = _dense(X)
    n, p = dense.shape
    signs, backend = column_signs(monotone, p, names), dense.backend
    counted = _host_weight(weight, n)
    rows = sampled_rows(counted)
    values = backend.host(backend.take(dense._X, backend.array(rows.astype(np.int64)))).astype(np.float64)
    bins = options.bins_of([ColumnSample(column, counted[rows]) for column in values.T], None, signs)
    codes = _codes(dense, bins)
    counting = CodesDeviceOperator(codes, counting_groups(bins), backend)
    features = learnt_features(bins, counting._rmatvec(counting.aligned(counted, "sample_weight")), signs)
    return recoded(counting, features)


def coded(features: FittedFeatures, X: Any) -> CodesDeviceOperator:
    """Return the features of other rows on a device."""
    dense = _dense(X)
    if dense.shape[1] != features.n_columns:
        raise ValueError(
            f"X has {dense.shape[1]} columns, but the classifier was trained with {features.n_columns} features"
        )
    made = CodesDeviceOperator(_codes(dense, features.columns), features.groups, dense.backend)
    made.feature_map = features
    return made


def with_pairs(options: Pairs, operator: CodesDeviceOperator, slopes: Any, weight: Any) -> Any:
    """Return the features of an operator with those of pairs: see `Pairs.with_pairs`."""
    features: FittedFeatures = operator.feature_map
    counted = _host_weight(weight, operator.shape[0])
    chosen = options.listed_in(features)
    if chosen is None:
        rows = compared_rows(features, counted)
        lines = np.arange(len(rows), dtype=np.uint64)
        sample = PairSample(
            PackedCodes.plain(operator.host_codes(rows)), lines, np.asarray(slopes)[rows], counted[rows]
        )
        chosen = worthwhile_pairs(features, sample, options.most)
    paired = with_grids(features, chosen, options.grid)
    grids = operator.with_groups(paired.groups)
    sums = grids.cell_sums(
        range(paired.n_columns, len(paired.groups)), operator.aligned(counted, "sample_weight").array
    )
    return recoded(operator, with_pair_bases(paired, np.concatenate([np.zeros(0), *sums])))


def recoded(operator: CodesDeviceOperator, features: FittedFeatures) -> CodesDeviceOperator:
    """Return other features of the same codes."""
    made = operator.with_groups(features.groups)
    made.feature_map = features
    return made


def _host_weight(weight: Any, n: int) -> FloatArray:
    """Return the weight of each row on the host, whether it was given there, on the device, or not at all."""
    own = np.asarray(1.0 if weight is None else on_host(weight), dtype=np.float64)
    return np.broadcast_to(own, (n,))


def _dense(X: Any) -> DenseDeviceOperator:
    """Return a dense array on a device as an operator, or raise."""
    operator = X if isinstance(X, DenseDeviceOperator) else from_device(X)
    if not isinstance(operator, DenseDeviceOperator):
        raise TypeError(
            "features='additive' and 'pairs' need a dense array on the device, got a sparse one. Pass X on the host with "
            "solver_params={'device': ...}, which moves its codes."
        )
    return operator


def _codes(dense: DenseDeviceOperator, bins: Sequence[ColumnBins]) -> DeviceArray:
    """Return the code of every value (see `kernels.codes.code_rows`), one line per column."""
    backend, xp, lines = dense.backend, dense.backend.xp, []
    zero = backend.full((dense.shape[0],), 0, np.int64)
    for j, column in enumerate(bins):
        x = backend.contiguous(xp.astype(dense._X[:, j], xp.float64))
        missing, below = xp.isnan(x), zero
        if len(column.values):
            cuts = backend.array(column.values)
            below = xp.astype(xp.searchsorted(cuts, xp.where(missing, cuts[0], x)), xp.int64)
        if column.kind == "category":
            beyond = np.append(column.values, np.nan)  # equal to no value
            known = backend.take(backend.array(beyond), below) == x
            below = xp.where(known, below, zero + len(column.values))
        lines.append(xp.astype(xp.where(missing, zero, below + 1), xp.uint8))
    return xp.stack(lines)
