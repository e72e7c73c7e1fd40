"""Placements: for every row, the share of the other class that lies on its right side."""

from scoreline.runtime.compile import kernel


@kernel
def place(order, scores, positive, weight, out):
    """out[i] = weight of the negatives below row i if it is positive, else of the positives above it; ties count half.

    `order` are the rows by rising score. Weights are 1 where `weight` is None. Returns the weights of both classes. O(n).
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
        done_positive += p
        done_negative += q
        first = last
    return above, below
