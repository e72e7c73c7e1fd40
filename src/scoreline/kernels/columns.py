"""Per-column sums in one pass, for dense and compressed matrices; `operators/statistics.py` merges them.

For each chunk c and column j, `counts` is the weight of the entries, `shift` the first of them, `sums` and `squares` are the
weighted sums of (x - shift) and (x - shift)^2, and `largest` is the largest |x|. The shift comes from the data, so that a
column with |mean| >> std keeps an accurate variance.
"""

import numpy as np

from scoreline.kernels.vectors import largest_magnitude
from scoreline.runtime.compile import kernel

ONE = np.uint64(1)
COUNT, SHIFT, SUM, SQUARE, LARGEST = (np.uint64(k) for k in range(5))  # places in a table of sums


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


@kernel(reorder=True)
def dense_column_sums(x, column_stride, p, weight, counts, shift, sums, squares, largest, bounds, first, last):
    """Do as `dense_sums`, column by column: for a matrix whose columns are contiguous."""
    for c in range(first, last):
        start, stop = bounds[c], bounds[c + 1]
        total = float(stop - start)
        if weight is not None:
            while start < stop and weight[start] == 0.0:
                start += ONE
            total = 0.0
            for r in range(start, stop):
                total += weight[r]
        for j in range(p):
            base = j * column_stride
            own_shift = 0.0
            if start < stop:
                own_shift = float(x[base + start])
            total_distance = total_square = 0.0
            if weight is None:
                for r in range(base + start, base + stop):
                    d = float(x[r]) - own_shift
                    total_distance += d
                    total_square += d * d
                top = largest_magnitude(x, base + start, base + stop)
            else:
                top = 0.0
                for r in range(start, stop):
                    s, value = weight[r], float(x[base + r])
                    d = value - own_shift if s != 0.0 else 0.0
                    size = abs(value) if s != 0.0 else 0.0
                    total_distance += s * d
                    total_square += s * d * d
                    top = size if size > top else top
            counts[c, j], shift[c, j], sums[c, j], squares[c, j] = total, own_shift, total_distance, total_square
            largest[c, j] = top


@kernel
def row_sums(data, indices, indptr, weight, entries, table, bounds, first, last):
    """Add the stored entries of the rows of each chunk of a CSR matrix; the arrays must start at zero.

    `table` has the five sums of a column side by side, in one or two lines of the cache. `entries` counts entries without
    weights. Duplicate entries must have been summed before.
    """
    for c in range(first, last):
        own, count = table[c], entries[c]
        for row in range(bounds[c], bounds[c + 1]):
            s = 1.0
            if weight is not None:
                s = weight[row]
                if s == 0.0:
                    continue
            for k in range(indptr[row], indptr[row + 1]):
                j, value = indices[k], float(data[k])
                if own[j, COUNT] == 0.0:
                    own[j, SHIFT] = value
                d = value - own[j, SHIFT]
                own[j, COUNT] += s
                own[j, SUM] += s * d
                own[j, SQUARE] += s * d * d
                own[j, LARGEST] = max(own[j, LARGEST], abs(value))
                if weight is not None:
                    count[j] += 1


@kernel
def stored_column_sums(data, indices, indptr, weight, entries, table, bounds, first, last):
    """Do as `row_sums` for a CSC matrix, whose lines are columns: all chunks share the first line of the arrays."""
    for c in range(first, last):
        for j in range(bounds[c], bounds[c + 1]):
            number = count = shift = total = square = top = 0.0
            for k in range(indptr[j], indptr[j + 1]):
                s = 1.0
                if weight is not None:
                    s = weight[indices[k]]
                    if s == 0.0:
                        continue
                value = float(data[k])
                if number == 0.0:
                    shift = value
                d = value - shift
                number += 1.0
                count += s
                total += s * d
                square += s * d * d
                top = max(top, abs(value))
            entries[0, j] = int(number)
            table[0, j, COUNT], table[0, j, SHIFT], table[0, j, SUM] = count, shift, total
            table[0, j, SQUARE], table[0, j, LARGEST] = square, top
