"""Products with a compressed sparse matrix, rows compressed (CSR) or columns compressed (CSC): two kernels serve both.

Index arrays are unsigned views, so that Numba need not test for negative indices, which makes these loops three times slower.
`lines` is None for all lines, or a list of lines to which the product is restricted. Numba compiles the two cases separately,
so the test is free.
"""

import numpy as np

from scoreline.kernels.prefetch import AHEAD, MOST_ENTRIES, PER_LINE, fetch_soon
from scoreline.runtime.compile import kernel

ONE = np.uint64(1)


@kernel(reorder=True)
def gather(data, indices, indptr, lines, v, out, bounds, first, last):
    """out[r] = sum_k data[k] * v[indices[k]] over line r (or line lines[r]): the product along the compressed axis."""
    for r in range(bounds[first], bounds[last]):
        i = r
        if lines is not None:
            i = lines[r]
            if r + AHEAD < bounds[last]:
                ahead = lines[r + AHEAD]
                start = np.uint64(indptr[ahead])
                for k in range(start, min(np.uint64(indptr[ahead + ONE]), start + MOST_ENTRIES), PER_LINE):
                    fetch_soon(data, k)
                    fetch_soon(indices, k)
        total = 0.0
        for k in range(indptr[i], indptr[i + 1]):
            total += data[k] * v[indices[k]]
        out[r] = total


@kernel
def scatter(data, indices, indptr, lines, u, partial, bounds, first, last):
    """partial[c] = sum over the lines r of chunk c of u[r] * line r (or line lines[r]); u[r] = 0 is not read."""
    for c in range(first, last):
        acc = partial[c]
        acc[:] = 0.0
        for r in range(bounds[c], bounds[c + 1]):
            ur = u[r]
            if ur == 0.0:
                continue
            i = r
            if lines is not None:
                i = lines[r]
                if r + AHEAD < bounds[last]:
                    ahead = lines[r + AHEAD]
                    start = np.uint64(indptr[ahead])
                    for k in range(start, min(np.uint64(indptr[ahead + ONE]), start + MOST_ENTRIES), PER_LINE):
                        fetch_soon(data, k)
                        fetch_soon(indices, k)
            for k in range(indptr[i], indptr[i + 1]):
                acc[indices[k]] += ur * data[k]


@kernel
def inspect_entries(data, indices, indptr, by_row, add, largest, found, bounds, first, last):
    """largest = largest |x| of each column (sum of |x| if `add`); found[c] = first NaN or infinity of chunk c, or -1.

    Like `dense.inspect_lines`, for lines that are rows (CSR) or columns (CSC). With `add` the result also bounds sums of
    duplicate entries.
    """
    for c in range(first, last):
        found[c] = -1
        for line in range(bounds[c], bounds[c + 1]):
            for k in range(indptr[line], indptr[line + 1]):
                value = abs(float(data[k]))
                if not value < np.inf and found[c] < 0:
                    found[c] = k
                if by_row:
                    so_far = largest[c, indices[k]]
                    largest[c, indices[k]] = so_far + value if add else max(so_far, value)
                else:
                    so_far = largest[0, line]
                    largest[0, line] = so_far + value if add else max(so_far, value)
