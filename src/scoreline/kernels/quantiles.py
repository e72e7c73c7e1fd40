"""Weighted quantiles of columns, and piecewise linear maps of their values.

Columns are those of a compressed sparse matrix (CSC) with the entries of each column in increasing order; rows without a stored
entry have the value 0. A quantile is the smallest value with at least the given share of the weight at or below it, so a weight
equals that many copies of the row.
"""

import numpy as np

from scoreline.runtime.compile import kernel


@kernel
def distinct(data, rows, weight, total):
    """Return the distinct values of a column in increasing order, and the weight of the values up to each of them.

    `weight` has one positive entry per row, and `total` is their sum.
    """
    zeros = 0.0
    if len(data) < len(weight):
        zeros = total
        for k in range(len(data)):
            zeros -= weight[rows[k]]
    values, upto = np.empty(len(data) + 1), np.empty(len(data) + 1)
    count, sum_ = 0, 0.0
    placed = zeros <= 0.0
    for k in range(len(data) + 1):
        at_end = k == len(data)
        if not placed and (at_end or data[k] >= 0.0):
            placed = True
            sum_ += zeros
            values[count], upto[count] = 0.0, sum_
            count += 1
        if at_end:
            break
        value = data[k]
        sum_ += weight[rows[k]]
        if count > 0 and values[count - 1] == value:
            upto[count - 1] = sum_
        else:
            values[count], upto[count] = value, sum_
            count += 1
    return values[:count], upto[:count]


@kernel
def place(upto, target):
    """Return the position of the first value with at least `target` weight at or below it."""
    return min(int(np.searchsorted(upto, target)), len(upto) - 1)


@kernel
def quantiles(data, rows, starts, weight, total, levels, found, middle, bounds, first, last):
    """Write the quantiles of the columns of each chunk, and the share of the weight below them plus half of their own."""
    for c in range(first, last):
        for j in range(bounds[c], bounds[c + 1]):
            own = slice(starts[j], starts[j + 1])
            values, upto = distinct(data[own], rows[own], weight, total)
            for k in range(len(levels)):
                at = place(upto, levels[k] * upto[-1])
                below = upto[at - 1] if at > 0 else 0.0
                found[j, k] = values[at]
                middle[j, k] = 0.5 * (below + upto[at]) / upto[-1]


@kernel
def limits(data, rows, starts, weight, total, reach, low, high, bounds, first, last):
    """Write the limits of the columns of each chunk: the median plus and minus `reach` times the spread on that side.

    The spread above is the median distance of the values above the median, so that a column of mostly equal values has one.
    """
    for c in range(first, last):
        for j in range(bounds[c], bounds[c + 1]):
            own = slice(starts[j], starts[j + 1])
            values, upto = distinct(data[own], rows[own], weight, total)
            middle = place(upto, 0.5 * upto[-1])
            median = values[middle]
            low[j] = high[j] = median
            if middle > 0:
                spread = median - values[place(upto, 0.5 * upto[middle - 1])]
                low[j] = max(median - reach * spread, values[0])
            if middle < len(upto) - 1:
                spread = values[place(upto, 0.5 * (upto[middle] + upto[-1]))] - median
                high[j] = min(median + reach * spread, values[-1])


@kernel
def interpolate(value, x, y, first, last):
    """Return the piecewise linear function through the knots (x, y), constant beyond them; NaN for NaN and infinity."""
    if not np.isfinite(value):
        return np.nan
    if value <= x[first]:
        return y[first]
    if value >= x[last]:
        return y[last]
    low, high = first, last
    while high - low > 1:
        middle = (low + high) // 2
        if value < x[middle]:
            high = middle
        else:
            low = middle
    return y[low] + (value - x[low]) * ((y[high] - y[low]) / (x[high] - x[low]))


@kernel
def map_rows(block, starts, x, y, out, bounds, first, last):
    """Write the mapped values of the rows of each chunk."""
    for c in range(first, last):
        for i in range(bounds[c], bounds[c + 1]):
            for j in range(block.shape[1]):
                out[i, j] = interpolate(float(block[i, j]), x, y, starts[j], starts[j + 1] - 1)


@kernel
def map_entries(data, indices, starts, x, y, out, bounds, first, last):
    """Write the mapped values of the stored entries of each chunk."""
    for c in range(first, last):
        for k in range(bounds[c], bounds[c + 1]):
            j = indices[k]
            out[k] = interpolate(float(data[k]), x, y, starts[j], starts[j + 1] - 1)
