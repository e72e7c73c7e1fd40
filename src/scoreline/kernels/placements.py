"""Placements: for every row, the share of the other class that lies on its right side."""

from scoreline.runtime.compile import kernel


@kernel
def place(order, scores, positive, weight, out, within):
    """out[i] = weight of the negatives below row i if it is positive, else of the positives above it; ties count half.

    within[i] = weight of the rows of its own class below row i, ties and the row itself counting half. `order` are the rows by
    rising score. Weights are 1 where `weight` is None. Returns the weights of both classes. O(n).
    """
    n = len(order)
    above, below = 0.0, 0.0
    for i in range(n):
        w = 1.0 if weight is None else weight[i]
        if positive[i]:
            above += w
        else:
            below += w
    done_positive, done_negative, first = 0.0, 0.0, 0
    while first < n:
        level, last, p, q = scores[order[first]], first, 0.0, 0.0
        while last < n and scores[order[last]] == level:
            i = order[last]
            w = 1.0 if weight is None else weight[i]
            if positive[i]:
                p += w
            else:
                q += w
            last += 1
        at_positive, at_negative = done_negative + 0.5 * q, above - done_positive - 0.5 * p
        for k in range(first, last):
            i = order[k]
            out[i] = at_positive if positive[i] else at_negative
            within[i] = done_positive + 0.5 * p if positive[i] else done_negative + 0.5 * q
        done_positive += p
        done_negative += q
        first = last
    return above, below


@kernel
def spread(high, low):
    """Return the mean placement of the rows with scores `high`, and the squares of the deviations of both classes from it.

    `high` are the sorted scores of the positives, `low` those of the negatives; a placement is a share of the other class.
    Neither is empty. O(n) after two sorts of numbers alone, which are faster than a sort of all rows.
    """
    m, n = len(high), len(low)
    twice, below, level = 0, 0, 0
    for i in range(m):  # `below` negatives lie below this positive, and those up to `level` are not above it
        while below < n and low[below] < high[i]:
            below += 1
        level = max(level, below)
        while level < n and low[level] == high[i]:
            level += 1
        twice += below + level
    area = 0.5 * twice / (float(m) * float(n))
    of_high, of_low, below, level = 0.0, 0.0, 0, 0
    for i in range(m):
        while below < n and low[below] < high[i]:
            below += 1
        level = max(level, below)
        while level < n and low[level] == high[i]:
            level += 1
        deviation = 0.5 * (below + level) / n - area
        of_high += deviation * deviation
    below, level = 0, 0
    for j in range(n):  # now of the positives, seen from a negative
        while below < m and high[below] < low[j]:
            below += 1
        level = max(level, below)
        while level < m and high[level] == low[j]:
            level += 1
        deviation = (m - 0.5 * (below + level)) / m - area
        of_low += deviation * deviation
    return area, of_high, of_low
