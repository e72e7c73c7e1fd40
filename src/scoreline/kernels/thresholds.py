"""The thresholds of two sorted classes, one block at a time."""

import numpy as np

from scoreline.runtime.compile import kernel


@kernel
def next_candidates(
    above, above_weight, above_sums, below, below_weight, below_sums, tie, size, state, lows, highs, tp, fp, fn, tn
):
    """Fill the next block of candidates, from the highest threshold down; returns how many (0 at the end).

    `above` and `below` are the scores of positives and negatives in increasing order. A candidate lies between the
    score `lows` and the next higher one `highs` (minus or plus infinity at the ends). It has the weights `tp` and `fp`
    above it, and `fn` and `tn` below it, which are summed separately, because subtraction would lose light rows next to
    heavy ones. Rows that are tied with the row above them (within `tie` of their size, or of `size` if that is larger)
    move together with it. `above_sums` and `below_sums` are cumulative weights with a leading 0 (None for weights of
    1). `state` has the remaining rows of either class, the weights above the last candidate, and the lowest score above
    it (NaN at the end).
    """
    i, j, true, false, lowest = int(state[0]), int(state[1]), state[2], state[3], state[4]
    if np.isnan(lowest):
        return 0
    count = 0
    while count < len(lows):
        level = -np.inf
        if i > 0:
            level = above[i - 1]
        if j > 0:
            level = max(level, below[j - 1])
        lows[count], highs[count], tp[count], fp[count] = level, lowest, true, false
        fn[count] = float(i) if above_sums is None else above_sums[i]
        tn[count] = float(j) if below_sums is None else below_sums[j]
        count += 1
        if i == 0 and j == 0:
            lowest = np.nan
            break
        lowest = level
        while i > 0 or j > 0:
            positive = j == 0 or (i > 0 and above[i - 1] >= below[j - 1])
            score = above[i - 1] if positive else below[j - 1]
            if lowest - score > tie * max(max(abs(lowest), abs(score)), size):
                break
            lowest = score
            if positive:
                i -= 1
                true += 1.0 if above_weight is None else above_weight[i]
            else:
                j -= 1
                false += 1.0 if below_weight is None else below_weight[j]
    state[0], state[1], state[2], state[3], state[4] = i, j, true, false, lowest
    return count


@kernel
def window_counts(scores, weight_sums, score_sums, thresholds, half, state, out):
    """out[t] = sum_i w_i clip((z_i - t + half) / (2 half), 0, 1): the weight above a blurred threshold.

    The blur is +-half (eq. robust-threshold). `scores` increase and `thresholds` decrease. `weight_sums` and `score_sums` are
    cumulative sums of w and w z with a leading 0 (None and w = 1 without weights). `state` has the two ends of the window, with
    which the next block continues.
    """
    low, high, n = int(state[0]), int(state[1]), len(scores)
    for t in range(len(thresholds)):
        bottom, top = thresholds[t] - half, thresholds[t] + half
        while low > 0 and scores[low - 1] > bottom:
            low -= 1
        while high > 0 and scores[high - 1] >= top:
            high -= 1
        if weight_sums is None:
            above, inside = float(n - high), float(high - low)
        else:
            above, inside = weight_sums[n] - weight_sums[high], weight_sums[high] - weight_sums[low]
        within = score_sums[high] - score_sums[low] - inside * bottom
        out[t] = above + min(max(within / (2.0 * half), 0.0), inside)
    state[0], state[1] = low, high
