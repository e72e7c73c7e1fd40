"""Rows in parts on workers, and vectors with an entry for every row beside them.

A `BlockVector` is either there (a future for each part) or described (a function of other vectors). What is only described is
computed inside the first task that reads it, and kept by the next task that leaves vectors behind, so that a chain of
elementwise steps costs no rounds of its own: a round takes milliseconds whatever it does.
"""

from scoreline.distributed.blocks import BlockVector, Every, Layout, Parts, Ref
from scoreline.distributed.mapped_parts import open_on_workers
from scoreline.distributed.tasks import added

__all__ = ["BlockVector", "Every", "Layout", "Parts", "Ref", "added", "open_on_workers"]
