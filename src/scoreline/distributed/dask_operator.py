"""Dask arrays and dataframes as operators; blocks stay on the workers that have them.

Every block function is a pure Dask task, so Dask itself recomputes results that are lost with a worker. Tasks run where
their inputs are, because those are large. No task is bound to a worker, which might be gone when the result is needed again.
"""

from collections.abc import Callable, Sequence
from itertools import count, pairwise
from typing import Any, TypeAlias
from uuid import uuid4

import numpy as np

from scoreline.distributed.blocks import BlockVector, Layout, Ref
from scoreline.distributed.cluster import Cluster, ClusterError, Future, Placement
from scoreline.distributed.parts_operator import PartsOperator, stacked
from scoreline.distributed.tasks import run, same
from scoreline.features.fitted import FittedFeatures
from scoreline.operators.base import Operator
from scoreline.operators.column_maps import ColumnMap
from scoreline.runtime.array_types import is_dask
from scoreline.runtime.optional import require
from scoreline.runtime.types import AnyArray

# For a task that fails by itself. Dask gives up a task after three workers have died while they ran it.
RETRIES = 3
# The least size of a part, and the most parts per worker. Several parts can be spread over other workers if one dies.
PART_BYTES, MAX_PARTS = 1 << 28, 4
PURPOSE = "training on a cluster"

Client: TypeAlias = Any  # distributed.Client
Collection: TypeAlias = Any  # a Dask array or dataframe
Block: TypeAlias = Any  # of a collection: an array, a sparse matrix or a frame


class DaskCluster(Cluster):
    """The workers of a Dask client.

    Parameters
    ----------
    client : distributed.Client, optional
        By default the active client.
    """

    def __init__(self, client: Client = None):
        super().__init__()
        distributed = require("distributed", "dask", PURPOSE)
        if client is None:
            try:
                client = distributed.get_client()
            except ValueError:
                raise ValueError(
                    "X is a Dask collection, but no Dask client is connected. Start one first, with "
                    "`from distributed import Client; client = Client()` on this machine or Client('ADDRESS') on a cluster"
                ) from None
        self.client, self._numbers, self._name = client, count(), uuid4().hex[:8]

    @property
    def threads(self) -> dict[str, int]:
        """Workers and their threads."""
        found = dict(self.client.nthreads())
        if not found:
            raise ClusterError("the Dask cluster has no workers; start some, or wait: client.wait_for_workers(1)")
        return found

    def call(self, function: Callable[..., Any], *arguments: Any) -> Future:
        """Submit a call that may run on any worker."""
        return self.client.submit(function, *arguments, pure=False)

    def submit(self, function: Callable[..., Any], *arguments: Any, placement: Placement) -> Future:
        """Submit a call; it runs where its arguments are, which is `placement` as long as that worker is alive."""
        called = arguments[0].function if function is run else function
        name = getattr(called, "__name__", "call").strip("_")
        # With a tuple as its key, every task is its own group. Dask takes large groups for sources of data and spreads
        # them over the workers, away from their inputs.
        key = f"scoreline-{name}-{self._name}-{next(self._numbers)}", 0
        try:
            return self.client.submit(function, *arguments, key=key, pure=False, retries=RETRIES)
        except Exception as error:
            if self.client.status == "running":
                raise
            raise _lost(error) from error

    def collect(self, futures: Sequence[Future]) -> list[Any]:
        """Wait for results; errors of Dask get an explanation."""
        distributed = require("distributed", "dask", PURPOSE)
        try:
            return list(self.client.gather(list(futures)))
        except distributed.KilledWorker as error:
            raise ClusterError(
                f"Dask gave up on a block because several workers died while computing it ({error}). "
                "The usual cause is memory: use smaller blocks (X.rechunk), more workers, or float32"
            ) from error
        except ModuleNotFoundError as error:
            raise ClusterError(f"{error} on a worker: scoreline must be installed on all workers") from error
        except Exception as error:
            lost = isinstance(error, (distributed.CancelledError, distributed.comm.CommClosedError))
            if not lost and self.client.status == "running":
                raise
            raise _lost(error) from error


def _lost(error: BaseException) -> ClusterError:
    return ClusterError(
        f"lost the Dask cluster ({type(error).__name__}: {error}). This fit is lost, unless it had a checkpoint, "
        "solver_params={'checkpoint': PATH}, from which the next fit resumes"
    )


class DaskOperator(PartsOperator):
    """A Dask array, or dataframe of numbers, in blocks of rows. `chunks[k]` are the indices of the blocks in part k."""

    def __init__(self, layout: Layout, refs: Sequence[Ref], chunks: Sequence[Sequence[int]], lengths: Sequence[int]):
        super().__init__(layout, refs)
        self.chunks, self.chunk_lengths = chunks, list(lengths)

    def _of_parts(self, refs: Sequence[Ref]) -> "DaskOperator":
        return DaskOperator(self.layout, refs, self.chunks, self.chunk_lengths)

    def aligned(self, rows: Any, name: str = "y") -> Any:
        """Return labels or weights in the blocks of X, whatever their own blocks are."""
        if not is_dask(rows):
            return super().aligned(rows, name)
        cluster = self.layout.cluster
        assert isinstance(cluster, DaskCluster)
        chunks, sizes = _blocks(cluster, rows)
        pieces, lengths = [cluster.call(_as_column, chunk, name) for chunk in chunks], [n for n, _ in sizes]
        if sum(lengths) != self.shape[0]:
            raise ValueError(
                f"{name} has {sum(lengths)} entries, expected {self.shape[0]}, one for each row of X: inconsistent numbers of "
                "samples"
            )
        if lengths != self.chunk_lengths:
            pieces = _rechunked(cluster, pieces, lengths, self.chunk_lengths)
        refs = [
            Ref(cluster.submit(_joined, part.future, *[pieces[k] for k in own], placement=placement))
            for part, own, placement in zip(self.parts, self.chunks, self.layout.placements, strict=True)
        ]
        return BlockVector(self.layout, refs)


def from_dask(X: Collection, client: Client = None) -> DaskOperator:
    """Return a Dask array or dataframe as an operator; its blocks are computed once and stay in the workers' memory.

    Parameters
    ----------
    X : dask array or dataframe
        Rows in blocks of dense arrays, SciPy sparse matrices or frames; sizes need not be known, and blocks may be empty.
    client : distributed.Client, optional
        By default the active client.

    Returns
    -------
    DaskOperator
        The operator.
    """
    if len(X.shape) != 2:
        raise ValueError(
            f"X has {len(X.shape)} dimension(s), expected 2 (rows, columns): X.reshape(-1, 1) for one feature"
        )
    _check_columns(X)
    cluster = DaskCluster(client)
    cluster.threads  # noqa: B018 - raises if there are no workers, before anything waits for them
    return operator_of_chunks(cluster, *_blocks(cluster, X), X.shape[1])


def distribute(X: Any, client: Client = None) -> DaskOperator:
    """Distribute an array or a CSR matrix evenly over the workers and return it as an operator.

    The scheduler keeps a copy, so that rows that a worker loses can be sent again.
    """
    cluster = DaskCluster(client)
    workers = len(cluster.threads)
    spans = pairwise(X.shape[0] * k // workers for k in range(workers + 1))
    chunks = [cluster.call(same, X[a:b]) for a, b in spans if a < b]
    sizes = cluster.collect([cluster.call(_measured, chunk) for chunk in chunks])
    cluster.count(sum(size for _, size in sizes))
    operator = operator_of_chunks(cluster, chunks, sizes, X.shape[1])
    place = operator.inspect()
    assert place is None, "rows that were read are finite"
    return operator


def operator_of_chunks(
    cluster: DaskCluster, chunks: list[Future], sizes: list[tuple[int, float]], p: int
) -> DaskOperator:
    """Return blocks on the workers as an operator; the blocks of a worker are combined into parts."""
    lengths = [rows for rows, _ in sizes]
    if sum(lengths) == 0:
        raise ValueError(f"X has 0 sample(s) (shape={(0, p)}) while a minimum of 1 is required.")
    threads, where = cluster.threads, cluster.client.who_has(chunks)
    placements = [next((w for w in where.get(chunk.key, ()) if w in threads), next(iter(threads))) for chunk in chunks]
    groups, layout = arranged(cluster, lengths, [size for _, size in sizes], placements, threads)
    refs = [
        Ref(cluster.submit(_part, *[chunks[k] for k in group], placement=placement))
        for group, placement in zip(groups, layout.placements, strict=True)
    ]
    return DaskOperator(layout, refs, groups, lengths)


def lazy_scores(
    X: Collection,
    coef: AnyArray,
    intercept: float,
    column_map: ColumnMap | None = None,
    features: FittedFeatures | None = None,
) -> Collection:
    """Return X coef + intercept as a lazy Dask array; the columns of X are mapped or coded first."""
    rows = X.to_dask_array() if hasattr(X, "columns") else X
    _check_columns(rows)
    return rows.map_blocks(_scores, coef, intercept, column_map, features, dtype=np.float64, drop_axis=1)


def lazy_classes(decision: Collection, classes: AnyArray) -> Collection:
    """Return the class of each score as a lazy Dask array."""
    return decision.map_blocks(_classes, classes, dtype=classes.dtype)


def arranged(
    cluster: Cluster, lengths: Sequence[int], sizes: Sequence[float], workers: Sequence[str], threads: dict[str, int]
) -> tuple[list[list[int]], Layout]:
    """Group blocks on the same worker into parts, and return the groups with the layout of their rows.

    A round needs a few tasks per part, so parts are few and large. A worker with much data has several parts, so that several
    other workers can take over if it dies.
    """
    starts = np.concatenate([[0], np.cumsum(lengths)]).tolist()
    groups, placements, spans = [], [], []
    for worker in dict.fromkeys(workers):
        own = [k for k, w in enumerate(workers) if w == worker and lengths[k] > 0]
        total = sum(sizes[k] for k in own)
        count = int(max(1, min(MAX_PARTS, len(own), total // PART_BYTES)))
        middles = np.cumsum([sizes[k] for k in own]) - 0.5 * np.array([sizes[k] for k in own])
        # A block belongs to the part that contains its middle.
        edges = np.searchsorted(middles, [total * c / count for c in range(1, count)])
        shared = [group.tolist() for group in np.split(np.array(own, dtype=int), edges) if len(group)]
        for group in shared:
            groups.append(group)
            placements.append(Placement(worker, max(1, threads.get(worker, 1) // len(shared))))
            spans.append(tuple((starts[k], starts[k + 1]) for k in group))
    return groups, Layout(cluster, placements, spans)


def _check_columns(X: Collection) -> None:
    if getattr(X, "numblocks", (1, 1))[1:] != (1,) and not hasattr(X, "columns"):
        raise ValueError(
            f"X has {X.numblocks[1]} blocks of columns, expected blocks of complete rows; call X.rechunk({{1: -1}}) first"
        )


def _scores(
    block: Block, coef: AnyArray, intercept: float, column_map: ColumnMap | None, features: FittedFeatures | None
) -> AnyArray:
    if block.shape[0] == 0:
        return np.empty(0)
    if features is not None:
        return np.asarray(features.operator(_part(block)).matvec(coef)) + intercept
    if column_map is not None:
        block = column_map.transform(_part(block)._block(0, block.shape[0]))
    return np.asarray(_part(block).matvec(coef)) + intercept


def _classes(decision: AnyArray, classes: AnyArray) -> AnyArray:
    return np.asarray(classes[(decision > 0).astype(np.intp)])


def _blocks(cluster: DaskCluster, X: Collection) -> tuple[list[Future], list[tuple[int, float]]]:
    """Return futures of the blocks of a collection, and the rows and bytes of each."""
    delayed = np.ravel(np.array(X.to_delayed(), dtype=object)).tolist()
    chunks = cluster.client.compute(delayed)
    return chunks, cluster.collect([cluster.call(_measured, chunk) for chunk in chunks])


def _rechunked(
    cluster: DaskCluster, pieces: Sequence[Future], lengths: Sequence[int], wanted: Sequence[int]
) -> list[Future]:
    """Return a vector in the blocks of X: each new piece is joined from the pieces that it overlaps."""
    starts, ends = np.cumsum([0, *lengths]), np.cumsum([0, *wanted])
    rechunked = []
    for low, high in pairwise(ends.tolist()):
        first, last = np.searchsorted(starts, [low, high], side="right")
        overlapping = [k for k in range(max(0, first - 1), min(len(pieces), last)) if lengths[k]]
        slices = [(max(0, low - starts[k]), min(lengths[k], high - starts[k])) for k in overlapping]
        rechunked.append(cluster.call(_joined_slices, slices, *[pieces[k] for k in overlapping]))
    return rechunked


def _measured(block: Block) -> tuple[int, float]:
    size = getattr(block, "nbytes", None)
    if size is None and hasattr(block, "data") and hasattr(block, "indices"):
        size = block.data.nbytes + block.indices.nbytes
    return int(block.shape[0]), float(np.sum(block.memory_usage()) if hasattr(block, "memory_usage") else size or 0)


def _part(*blocks: Block) -> Operator:
    """Return blocks as one operator; blocks of the package `sparse` become CSR."""
    from scoreline.operators.convert import as_operator

    return stacked(
        [as_operator(b.to_scipy_sparse() if hasattr(b, "to_scipy_sparse") else b, check_finite=False) for b in blocks]
    )


def _as_column(block: Block, name: str) -> AnyArray:
    array = np.asarray(block)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array.ravel()
    if array.ndim != 1:
        raise ValueError(f"{name} has blocks of shape {array.shape}, expected one entry per row")
    return array


def _joined(part: Operator, *pieces: AnyArray) -> AnyArray:
    """Return pieces as one vector; the argument `part` makes Dask run this on the worker that has the part."""
    return pieces[0] if len(pieces) == 1 else np.concatenate(pieces)


def _joined_slices(slices: Sequence[tuple[int, int]], *pieces: AnyArray) -> AnyArray:
    return np.concatenate([p[a:b] for (a, b), p in zip(slices, pieces, strict=True)]) if pieces else np.empty(0)
