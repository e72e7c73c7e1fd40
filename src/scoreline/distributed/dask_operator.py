"""Dask arrays and dataframes as operators: blocks stay on the workers that have them.

Every block function is a pure Dask task, so what is lost with a worker is made again by Dask itself, from the data on. Tasks
run where what they read lies, because that is large; none is tied to a worker, which might be gone when it is needed again.
"""

from collections.abc import Callable, Sequence
from itertools import count, pairwise
from typing import Any, TypeAlias
from uuid import uuid4

import numpy as np

from scoreline.distributed.blocks import BlockVector, Layout, Ref
from scoreline.distributed.cluster import Cluster, ClusterError, Future, Home
from scoreline.distributed.parts_operator import PartsOperator, stacked
from scoreline.distributed.tasks import run, same
from scoreline.operators.base import Operator
from scoreline.operators.column_maps import ColumnMap
from scoreline.runtime.array_types import is_dask
from scoreline.runtime.optional import require
from scoreline.runtime.types import AnyArray

# Of a task that fails by itself; one that workers die of is given up after three of them, which is Dask's own limit.
RETRIES = 3
# A part has this size at least, and a worker at most so many, to be spread over others when it dies.
PART_BYTES, MOST_PARTS = 1 << 28, 4
PURPOSE = "training on a cluster"

Client: TypeAlias = Any  # distributed.Client
Collection: TypeAlias = Any  # a Dask array or dataframe
Block: TypeAlias = Any  # of a collection: an array, a sparse matrix or a frame


class DaskCluster(Cluster):
    """The workers of a Dask client.

    Parameters
    ----------
    client : distributed.Client, optional
        By default the one that is active.
    """

    def __init__(self, client: Client = None):
        super().__init__()
        distributed = require("distributed", "dask", PURPOSE)
        if client is None:
            try:
                client = distributed.get_client()
            except ValueError:
                raise ValueError(
                    "X lives in Dask, and there is no Dask client to work on it: start one first, with "
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
        """Make a task of a call whose place does not matter."""
        return self.client.submit(function, *arguments, pure=False)

    def submit(self, function: Callable[..., Any], *arguments: Any, home: Home) -> Future:
        """Make a task of the call; it will run where its arguments are, which is `home` as long as that is alive."""
        called = arguments[0].function if function is run else function
        name = getattr(called, "__name__", "call").strip("_")
        # A tuple makes every task a group of its own: large groups look like sources of data to Dask, which then spreads them
        # over the workers, wherever what they read lies.
        key = f"scoreline-{name}-{self._name}-{next(self._numbers)}", 0
        try:
            return self.client.submit(function, *arguments, key=key, pure=False, retries=RETRIES)
        except Exception as error:
            if self.client.status == "running":
                raise
            raise _lost(error) from error

    def collect(self, futures: Sequence[Future]) -> list[Any]:
        """Wait for results; what Dask gives up on is explained."""
        distributed = require("distributed", "dask", PURPOSE)
        try:
            return list(self.client.gather(list(futures)))
        except distributed.KilledWorker as error:
            raise ClusterError(
                f"Dask gave up on a block after several workers died of it ({error}). Most often that is memory: use smaller "
                "blocks (X.rechunk), more workers, or float32"
            ) from error
        except ModuleNotFoundError as error:
            raise ClusterError(f"{error} on a worker: scoreline must be installed on all workers") from error
        except Exception as error:  # of a task, or of Dask itself
            lost = isinstance(error, (distributed.CancelledError, distributed.comm.CommClosedError))
            if not lost and self.client.status == "running":
                raise
            raise _lost(error) from error


def _lost(error: BaseException) -> ClusterError:
    return ClusterError(
        f"lost the Dask cluster ({type(error).__name__}: {error}). Nothing is kept of this fit, unless it had a checkpoint, "
        "solver_params={'checkpoint': PATH}, from which the next fit resumes"
    )


class DaskOperator(PartsOperator):
    """A Dask array, or dataframe of numbers, by rows. `chunks[k]` are the numbers of the blocks that make part k."""

    def __init__(self, layout: Layout, refs: Sequence[Ref], chunks: Sequence[Sequence[int]], lengths: Sequence[int]):
        super().__init__(layout, refs)
        self.chunks, self.chunk_lengths = chunks, list(lengths)

    def aligned(self, rows: Any, name: str = "y") -> Any:
        """Return labels or weights in the blocks of X, however they are cut."""
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
            Ref(cluster.submit(_joined, part.future, *[pieces[k] for k in own], home=home))
            for part, own, home in zip(self.parts, self.chunks, self.layout.homes, strict=True)
        ]
        return BlockVector(self.layout, refs)


def from_dask(X: Collection, client: Client = None) -> DaskOperator:
    """Return a Dask array or dataframe as an operator: its blocks are computed once and stay in the memory of the workers.

    Parameters
    ----------
    X : dask array or dataframe
        Rows in blocks of dense arrays, SciPy sparse matrices or frames; sizes need not be known, and blocks may be empty.
    client : distributed.Client, optional
        By default the one that is active.

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
    cluster.threads  # noqa: B018 - raises where there are no workers, before anything waits for them
    return operator_of_chunks(cluster, *_blocks(cluster, X), X.shape[1])


def sent(X: Any, client: Client = None) -> DaskOperator:
    """Return rows of the driver, an array or a CSR matrix, as an operator on the workers, evenly shared out.

    The scheduler keeps them too, so that what a worker loses can be sent again.
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
    """Return blocks that are on the workers as an operator, those of a worker put together."""
    lengths = [rows for rows, _ in sizes]
    if sum(lengths) == 0:
        raise ValueError(f"X has 0 sample(s) (shape={(0, p)}) while a minimum of 1 is required.")
    threads, where = cluster.threads, cluster.client.who_has(chunks)
    homes = [next((w for w in where.get(chunk.key, ()) if w in threads), next(iter(threads))) for chunk in chunks]
    groups, layout = arranged(cluster, lengths, [size for _, size in sizes], homes, threads)
    refs = [
        Ref(cluster.submit(_part, *[chunks[k] for k in group], home=home))
        for group, home in zip(groups, layout.homes, strict=True)
    ]
    return DaskOperator(layout, refs, groups, lengths)


def lazy_scores(X: Collection, coef: AnyArray, intercept: float, column_map: ColumnMap | None = None) -> Collection:
    """Return X coef + intercept as a Dask array, block by block, when it is computed; the columns of X are mapped first."""
    rows = X.to_dask_array() if hasattr(X, "columns") else X
    _check_columns(rows)
    return rows.map_blocks(_scores, coef, intercept, column_map, dtype=np.float64, drop_axis=1)


def lazy_classes(decision: Collection, classes: AnyArray) -> Collection:
    """Return the class of each score as a Dask array, when it is computed."""
    return decision.map_blocks(_classes, classes, dtype=classes.dtype)


def arranged(
    cluster: Cluster, lengths: Sequence[int], sizes: Sequence[float], workers: Sequence[str], threads: dict[str, int]
) -> tuple[list[list[int]], Layout]:
    """Group blocks that lie on the same worker into parts, and return the groups with the layout of their rows.

    A round costs a few tasks for every part, so parts are few and large; but not one for a worker where it holds much, so that
    after its death they can go to several others.
    """
    starts = np.concatenate([[0], np.cumsum(lengths)]).tolist()
    groups, homes, spans = [], [], []
    for worker in dict.fromkeys(workers):
        own = [k for k, w in enumerate(workers) if w == worker and lengths[k] > 0]
        total = sum(sizes[k] for k in own)
        count = int(max(1, min(MOST_PARTS, len(own), total // PART_BYTES)))
        middles = np.cumsum([sizes[k] for k in own]) - 0.5 * np.array([sizes[k] for k in own])
        # A block goes where its middle is.
        edges = np.searchsorted(middles, [total * c / count for c in range(1, count)])
        shared = [group.tolist() for group in np.split(np.array(own, dtype=int), edges) if len(group)]
        for group in shared:
            groups.append(group)
            homes.append(Home(worker, max(1, threads.get(worker, 1) // len(shared))))
            spans.append(tuple((starts[k], starts[k + 1]) for k in group))
    return groups, Layout(cluster, homes, spans)


def _check_columns(X: Collection) -> None:
    if getattr(X, "numblocks", (1, 1))[1:] != (1,) and not hasattr(X, "columns"):
        raise ValueError(
            f"X is cut into {X.numblocks[1]} blocks of columns, expected blocks of whole rows; call X.rechunk({{1: -1}}) first"
        )


def _scores(block: Block, coef: AnyArray, intercept: float, column_map: ColumnMap | None) -> AnyArray:
    if block.shape[0] == 0:
        return np.empty(0)
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
    """Return vectors cut like X: each new piece is made of those that it overlaps."""
    starts, ends = np.cumsum([0, *lengths]), np.cumsum([0, *wanted])
    made = []
    for low, high in pairwise(ends.tolist()):
        first, last = np.searchsorted(starts, [low, high], side="right")
        overlapping = [k for k in range(max(0, first - 1), min(len(pieces), last)) if lengths[k]]
        cuts = [(max(0, low - starts[k]), min(lengths[k], high - starts[k])) for k in overlapping]
        made.append(cluster.call(_cut_and_joined, cuts, *[pieces[k] for k in overlapping]))
    return made


def _measured(block: Block) -> tuple[int, float]:
    size = getattr(block, "nbytes", None)
    if size is None and hasattr(block, "data") and hasattr(block, "indices"):
        size = block.data.nbytes + block.indices.nbytes
    return int(block.shape[0]), float(np.sum(block.memory_usage()) if hasattr(block, "memory_usage") else size or 0)


def _part(*blocks: Block) -> Operator:
    """Return blocks as one operator; those of a sparse library of their own become CSR."""
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


def _joined(beside: Operator, *pieces: AnyArray) -> AnyArray:
    """Return pieces as one vector, on the worker that has the part it belongs to: reading that makes Dask run this there."""
    return pieces[0] if len(pieces) == 1 else np.concatenate(pieces)


def _cut_and_joined(cuts: Sequence[tuple[int, int]], *pieces: AnyArray) -> AnyArray:
    return np.concatenate([p[a:b] for (a, b), p in zip(cuts, pieces, strict=True)]) if pieces else np.empty(0)
