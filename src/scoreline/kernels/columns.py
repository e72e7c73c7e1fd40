"""Per-column sums in one pass, for dense and compressed matrices; `operators/statistics.py` merges them.

For each chunk c and column j, `counts` is the weight of the entries, `shift` the first of them, `sums` and `squares` are the
weighted sums of (x - shift) and (x - shift)^2, and `largest` is the largest |x|. The shift comes from the data, so that a
column with |mean| >> std keeps an accurate variance.
"""

from scoreline.runtime.compile import kernel


@kernel
def dense_sums(x, row_stride, column_stride, p, weight, counts, shift, sums, squares, largest, bounds, first, last):
    """Add the rows of each chunk; rows of weight 0 are ignored."""
    for c in range(first, last):
        counts[c], sums[c], squares[c], largest[c] = 0.0, 0.0, 0.0, 0.0
        for r in range(bounds[c], bounds[c + 1]):
            s = 1.0
            if weight is not None:
                s = weight[r]
                if s == 0.0:
                    continue
            base = r * row_stride
            fresh = counts[c, 0] == 0.0
            for j in range(p):
                value = float(x[base + j * column_stride])
                if fresh:
                    shift[c, j] = value
                d = value - shift[c, j]
                counts[c, j] += s
                sums[c, j] += s * d
                squares[c, j] += s * d * d
                largest[c, j] = max(largest[c, j], abs(value))


@kernel
def compressed_sums(
    data, indices, indptr, by_row, weight, entries, counts, shift, sums, squares, largest, bounds, first, last
):
    """Add the stored entries of the lines of each chunk; the arrays must start at zero.

    `by_row` tells whether lines are rows (CSR: each chunk has its own sums) or columns (CSC: all chunks share the first).
    Duplicate entries must have been summed before. `entries` counts entries without weights.
    """
    for chunk in range(first, last):
        c = chunk if by_row else 0
        for line in range(bounds[chunk], bounds[chunk + 1]):
            for k in range(indptr[line], indptr[line + 1]):
                if by_row:
                    row, j = int(line), int(indices[k])
                else:
                    row, j = int(indices[k]), int(line)
                s = 1.0
                if weight is not None:
                    s = weight[row]
                    if s == 0.0:
                        continue
                value = float(data[k])
                if counts[c, j] == 0.0:
                    shift[c, j] = value
                d = value - shift[c, j]
                entries[c, j] += 1
                counts[c, j] += s
                sums[c, j] += s * d
                squares[c, j] += s * d * d
                largest[c, j] = max(largest[c, j], abs(value))
