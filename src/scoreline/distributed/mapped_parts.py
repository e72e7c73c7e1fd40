"""Memory-mapped folders as one data set on a cluster: every worker opens its own rows, and the driver reads none."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from scoreline.distributed.blocks import BlockVector, Ref
from scoreline.distributed.dask_operator import Client, DaskCluster, arranged
from scoreline.distributed.parts_operator import PartsOperator, stacked
from scoreline.io.mapped_folder import holds_sequences, n_rows, open_mapped, open_sequences
from scoreline.io.sources import Dataset
from scoreline.operators import StringOperator
from scoreline.operators.base import Operator
from scoreline.runtime.types import AnyArray


class FolderFacts(NamedTuple):
    """Rows and bytes of a folder, and the facts that must agree between folders."""

    rows: int
    bytes: float
    features: int
    names: Sequence[str] | None
    encoding: dict[str, Any] | None
    classes: str | None
    string_features: dict[str, Any] | None


def open_on_workers(folders: str | Path | Sequence[str | Path], client: Client = None, **features: Any) -> Dataset:
    """Open folders that `convert` or `convert_sequences` has written as one data set on the workers of a Dask cluster.

    The rows of the folders are concatenated and distributed evenly, so one folder is enough for many workers. All workers must
    be able to read the folders under the same paths, as on a shared file system. They read rows when they need them, and
    memory holds only what the operating system caches.

    Parameters
    ----------
    folders : path or sequence of paths
        Folders with the same features and classes.
    client : distributed.Client, optional
        By default the active client.
    **features
        For folders of sequences: the options of `StringOperator`.

    Returns
    -------
    Dataset
        X as an Operator and y, both on the workers. Feature names, encoding and class names are those of the first folder.

    Raises
    ------
    ValueError
        If a folder was not written by `convert`, or the folders have different features or classes.
    """
    paths = [str(Path(f).absolute()) for f in ([folders] if isinstance(folders, (str, Path)) else folders)]
    if not paths:
        raise ValueError("folders is empty; give at least one folder written by convert")
    cluster = DaskCluster(client)
    threads = cluster.threads
    facts: list[FolderFacts] = cluster.collect([cluster.call(_facts, path, features) for path in paths])
    for path, fact in zip(paths, facts, strict=True):
        for what, own, first in zip(FolderFacts._fields, fact, facts[0], strict=True):
            if what not in ("rows", "bytes") and own != first:
                raise ValueError(
                    f"folders differ in their {what}: {path} has {own!r:.200}, {paths[0]} {first!r:.200}; convert all files "
                    "with the same options"
                )
    pieces = shared_out(paths, [f.rows for f in facts], len(threads))
    size = sum(f.bytes for f in facts) / max(1, sum(f.rows for f in facts))
    lengths = [stop - start for _, start, stop, _ in pieces]
    workers = [sorted(threads)[worker] for *_, worker in pieces]
    groups, layout = arranged(cluster, lengths, [size * n for n in lengths], workers, threads)
    owned = [[pieces[k][:3] for k in group] for group in groups]

    def on_workers(function: Callable[..., Any], *options: Any) -> list[Ref]:
        submit = cluster.submit
        return [
            Ref(submit(function, own, *options, placement=placement))
            for own, placement in zip(owned, layout.placements, strict=True)
        ]

    operator = PartsOperator(layout, on_workers(_rows, features))
    operator.inspect()  # reads the largest magnitudes from the folders
    operator.string_features = facts[0].string_features
    y = None if facts[0].classes is None else BlockVector(layout, on_workers(_labels))
    names, encoding, class_names = cluster.collect(
        [cluster.submit(_described, paths[0], placement=layout.placements[0])]
    )[0]
    return Dataset(operator, y, names, encoding, class_names)  # type: ignore[arg-type]  # y is a vector in blocks


def shared_out(paths: list[str], lengths: list[int], workers: int) -> list[tuple[str, int, int, int]]:
    """Return (folder, first row, one past the last, worker) of pieces in the order of the rows, the same share per worker."""
    total, begin, pieces = sum(lengths), 0, []
    edges = [total * k // workers for k in range(workers + 1)]
    for path, length in zip(paths, lengths, strict=True):
        for worker in range(workers):
            start, stop = max(begin, edges[worker]), min(begin + length, edges[worker + 1])
            if start < stop:
                pieces.append((path, start - begin, stop - begin, worker))
        begin += length
    return pieces


def _opened(path: str, rows: tuple[int, int], features: dict[str, Any] | None) -> Dataset:
    """Return some rows of a folder; sequences become features, or stay as they are without options."""
    if not holds_sequences(path):
        if features:
            raise ValueError(f"{path} holds no sequences, and {sorted(features)} are options of StringOperator")
        data = open_mapped(path, rows=rows)
        if data.X.feature_map is not None:
            raise ValueError(
                f"{path} holds codes of additive features, which a cluster does not train from. Convert the rows without "
                "features: the workers code them in memory."
            )
        return data
    data = open_sequences(path, rows=rows)
    return data if features is None else data._replace(X=StringOperator(data.X, **features))


def _facts(path: str, features: dict[str, Any]) -> FolderFacts:
    """Return the facts about a folder."""
    data, n = _opened(path, (0, 1), features), n_rows(path)
    encoding = None if data.encoding is None else data.encoding.to_json()
    kind = None if data.y is None else data.y.dtype.kind
    X = data.X
    return FolderFacts(n, n * X.row_bytes, X.shape[1], data.names, encoding, kind, X.string_features)


def _rows(pieces: list[tuple[str, int, int]], features: dict[str, Any]) -> Operator:
    return stacked([_opened(path, (start, stop), features).X for path, start, stop in pieces])


def _labels(pieces: list[tuple[str, int, int]]) -> AnyArray:
    return np.concatenate([np.asarray(_opened(path, (start, stop), None).y) for path, start, stop in pieces])


def _described(path: str) -> tuple[Any, ...]:
    data = _opened(path, (0, 1), None)
    return data.names, data.encoding, data.class_names
