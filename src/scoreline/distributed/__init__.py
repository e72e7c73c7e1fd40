"""Rows in parts on workers, and vectors with one entry per row next to them.

A `BlockVector` is either stored (one future per part) or lazy (a function of other vectors). A lazy vector is computed inside
the first task that reads it, and stored by the next task that stores vectors. A chain of elementwise steps therefore needs
no rounds of its own; a round takes milliseconds even for little work.
"""

from scoreline.distributed.blocks import BlockVector, Every, Layout, Parts, Ref
from scoreline.distributed.mapped_parts import open_on_workers
from scoreline.distributed.tasks import added

__all__ = ["BlockVector", "Every", "Layout", "Parts", "Ref", "added", "open_on_workers"]
