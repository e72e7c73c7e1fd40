"""Sequences that live in Dask as string features: letters are coded on the workers, and stay there."""

from typing import Any

import numpy as np

from scoreline.distributed.dask_operator import Client, DaskCluster, DaskOperator, operator_of_chunks
from scoreline.operators import StringOperator
from scoreline.runtime.array_types import is_dask


def from_dask(sequences: Any, client: Client = None, **options: Any) -> DaskOperator:
    """Return the features of sequences in Dask: see `StringOperator.from_dask`."""
    if not is_dask(sequences) or len(getattr(sequences, "shape", (0,))) != 1:
        raise ValueError(
            "sequences must be a Dask array of one dimension, a Dask series or a bag, with one sequence per row"
        )
    cluster = DaskCluster(client)
    cluster.threads  # noqa: B018 - raises where there are no workers, before anything waits for them
    delayed = np.ravel(np.array(sequences.to_delayed(), dtype=object)).tolist()
    coded = [cluster.call(_features, block, options) for block in cluster.client.compute(delayed)]
    facts = cluster.collect([cluster.call(_facts, each) for each in coded])
    records = [record for *_, record in facts if record is not None]
    if any(record != records[0] for record in records):
        lengths = sorted({record["length"] for record in records})
        raise ValueError(
            f"blocks of sequences have lengths {lengths}, expected one: kind='weighted_degree' compares positions. "
            "Cut or align the sequences, or use kind='spectrum'."
        )
    operator = operator_of_chunks(cluster, coded, [(rows, size) for rows, size, _ in facts], 1)
    operator.inspect()  # takes the magnitudes that the parts know
    operator.string_features = records[0]
    return operator


def _features(block: Any, options: dict[str, Any]) -> StringOperator | None:
    """Return the features of a block, None for one without rows."""
    rows = block if hasattr(block, "dtype") else list(block)
    return StringOperator(rows, **options) if len(rows) else None


def _facts(part: StringOperator | None) -> tuple[int, float, dict[str, Any] | None]:
    return (0, 0.0, None) if part is None else (part.shape[0], float(part.__sizeof__()), part.string_features)
