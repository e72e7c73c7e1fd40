"""Rows in parts of one process: layouts that count the rounds made on them, and labels on the host and in blocks."""

from itertools import pairwise

import numpy as np

from scoreline.distributed import BlockVector, Layout
from scoreline.distributed.cluster import InlineCluster, Placement
from scoreline.distributed.score_space import Space as BlockSpace
from scoreline.scores import HostSpace


class CountingCluster(InlineCluster):
    """Counts rounds: every one brings results to the driver once."""

    rounds = 0

    def collect(self, futures):
        self.rounds += 1
        return super().collect(futures)


def layout_of(spans, workers=2):
    return Layout(CountingCluster(), [Placement(f"worker-{k % workers}", 1) for k in range(len(spans))], spans)


def between(edges):
    """Return the spans of one part per pair of neighbouring edges."""
    return [((a, b),) for a, b in pairwise(edges)]


def even_spans(n, parts):
    return between(np.linspace(0, n, parts + 1).astype(int).tolist())


def in_blocks(layout, vector):
    return None if vector is None else BlockVector.of(layout, vector)


def both_spaces(y, weight, layout):
    """Return (space, labels) of the host and in blocks."""
    host, blocks = HostSpace(), BlockSpace()
    return (host, host.labels(y, weight)), (blocks, blocks.labels(in_blocks(layout, y), in_blocks(layout, weight)))
