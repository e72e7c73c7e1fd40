"""The order in which row-by-row methods read rows: blocks, shuffled among themselves, and rows within each."""

from collections.abc import Iterator
from typing import Any

import numpy as np

# Rows are shuffled within blocks of about this size as if dense, so that the order is the same for every storage (but for more
# than 8192 dense features), of so many rows at least, unless these take more memory.
BLOCK_BYTES, BLOCK_ROWS, LARGE_BLOCK = 8 << 20, 4096, 256 << 20
SEEDS = 1 << 62


def blocks(operator: Any) -> list[tuple[int, int]]:
    """Return (first row, one past the last row) of blocks that cover all rows."""
    n, p = operator.shape
    least = min(BLOCK_ROWS, LARGE_BLOCK / max(1.0, operator.row_bytes))
    size = int(max(1.0, min(n, max(least, BLOCK_BYTES / (8.0 * max(1, p))))))
    return [(start, min(start + size, n)) for start in range(0, n, size)]


def blocks_in_random_order(operator: Any, rng: np.random.Generator) -> Iterator[tuple[int, int, int]]:
    """Yield (first row, one past the last row, seed of the order within) of blocks that cover all rows."""
    there = blocks(operator)
    for k in rng.permutation(len(there)).tolist():
        yield *there[k], int(rng.integers(SEEDS))
