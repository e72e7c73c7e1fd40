"""Rows in parts on workers, and vectors with an entry for every row beside them.

A `BlockVector` is either there (a future for each part) or described (a function of other vectors). What is only described is
computed inside the first task that reads it, and kept by the next task that leaves vectors behind, so that a chain of
elementwise steps costs no rounds of its own: a round takes milliseconds whatever it does.
"""

from scoreline._blocks.layout import Layout
from scoreline._blocks.tasks import Every, Parts, Ref, added
from scoreline._blocks.vector import BlockVector

__all__ = ["BlockVector", "Every", "Layout", "Parts", "Ref", "added"]
