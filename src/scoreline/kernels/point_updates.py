"""SPADE and STAMP (Narasimhan, Kar and Jain 2015), which update the model after every row in time of its non-zeros.

Weights are w = scale * v, so that shrinking all of them is one product. The weighted sum of all iterates w,
sum_t o_t scale_t v_t, is stored as total * v - behind (eq. iterate-sum): a change d of v adds total * d to `behind`. Entry k of
row i is values[i row_step + k column_step], or for sparse rows values[k] in column indices[k], with k from starts[i] to
starts[i + 1]. A constant feature (0 for none) comes last.

The step size is "distance over gradients" (Ivgi, Hinder and Carmon 2023) (eq. spade-distance): the largest distance from the
start so far, divided by the root of the sum of squared gradients. Both are measured in features that are divided by the root
mean square of their non-zero entries, whose inverse square is the unit of the column. The ball for w uses the same units.
Therefore no step size has to be chosen, and multiplying a column by a number changes nothing.

After the first of several passes steps decrease linearly to 0, and later iterates have more weight in the mean, o_t = t^3.
This made the gap to the optimum several times smaller. The steps of the paper, 1/sqrt(t), do not decrease to 0; with them
o_t = 1, and all units are 1.
"""

import math

import numpy as np

from scoreline.kernels.dual_regions import GMEAN, QMEAN, project_dual
from scoreline.runtime.compile import kernel

FBETA, JACCARD, ERROR = 4, 5, 6  # measures of STAMP; those of SPADE are in `dual_regions`
# Indices of the state vector. ALPHA and BETA are the weights of the classes. TIME is the weight of the rows so far,
# POSITIVE and NEGATIVE that of either class (for STAMP in this epoch). TOTAL, WEIGHT and SCALE belong to the mean of w,
# and NORM2 is |w|^2 in units. REACH and SQUARES determine the step size, HORIZON and RAMP when and how fast steps reach
# 0. LEVEL, TP, FP and EPOCH are STAMP's level and the counts of its epoch.
ALPHA, BETA, TIME, POSITIVE, NEGATIVE, TOTAL, WEIGHT, SCALE, NORM2 = range(9)
REACH, SQUARES, HORIZON, RAMP, LEVEL, TP, FP, EPOCH = range(9, 17)
STATE = 17
FIRST_REACH = 1e-3  # initial value of the distance from the start, in scores
TINY_SCALE = 1e-6  # below this scale v would lose digits, so w is written out
ONE = np.uint64(1)


@kernel
def add_squares(values, indices, starts, row_step, column_step, first, last, weight, squares, counts):
    """Add the squares of the entries of the rows first..last to those of their columns, and count entries other than 0."""
    width = np.uint64(len(squares) - 1)
    for i in range(np.uint64(first), np.uint64(last)):
        s = 1.0 if weight is None else weight[i]
        if not s > 0.0:
            continue
        base, start, stop = i * row_step, np.uint64(0), width
        if starts is not None:
            start, stop = np.uint64(starts[i]), np.uint64(starts[i + ONE])
        for k in range(start, stop):
            if indices is None:
                x, j = 1.0 * values[base + k * column_step], k
            else:
                x, j = 1.0 * values[k], np.uint64(indices[k])
            squares[j] += s * x * x
            counts[j] += s if x != 0.0 else 0.0


@kernel
def _write_out(v, behind, total, scale):
    """Write w = scale v out as v, and the sum of iterates as -behind."""
    for j in range(len(v)):
        behind[j] -= total * v[j]
        v[j] *= scale


@kernel
def _level(kind, beta2, tp, fp, fn):
    """Return F-beta, or Jaccard, of the counts (eq. stamp-level), and 0 if the denominator is 0."""
    b = 1.0 if kind == JACCARD else beta2
    top = tp if kind == JACCARD else (1.0 + b) * tp
    bottom = top + b * fn + fp
    return top / bottom if bottom > 0.0 else 0.0


# One function for both methods, with inlined loops over a row's entries: a call with arrays inside the loop over rows makes
# Numba count references, which took as long as the work itself.
@kernel(reorder=True)
def process_rows(
    values, indices, starts, row_step, column_step, rows, sign, weight, base_scores, constant, kind, beta2, paper, radius, v,
    units, behind, state,
):  # fmt: skip
    """Process rows one by one: a step for w, weighted by the row's class, and then an update of the weights of the classes.

    In SPADE (`kind` is one of `dual_regions`) (eq. spade-step), the weights are the dual variables divided by the share of the
    class so far. A descent step in the reward min(1, y s), divided by that share, updates them, and they are projected. For
    the G-mean the reward is increased by 1/sqrt t.

    In STAMP the weights of positives and negatives depend on a level: 1 + beta^2 - level and level for FBETA, 1 and level for
    JACCARD. They are 1 and 1 for ERROR (Gower-Legendre, which increases with accuracy and needs no level). The level is the
    measure of the predictions of the last epoch, each made before its update. Epochs double in length.
    """
    last = np.uint64(len(v) - 1)
    alpha, beta, time, plus, minus = state[ALPHA], state[BETA], state[TIME], state[POSITIVE], state[NEGATIVE]
    total, mean_weight, scale, norm2 = state[TOTAL], state[WEIGHT], state[SCALE], state[NORM2]
    reach, squares, horizon, ramp = state[REACH], state[SQUARES], state[HORIZON], state[RAMP]
    level, tp, fp, epoch = state[LEVEL], state[TP], state[FP], state[EPOCH]
    dual, share = kind <= GMEAN, 1.0
    for i in rows:
        s = 1.0 if weight is None else weight[i]
        if not s > 0.0:
            continue

        # The score of the row, and its length in units.
        base, start, stop = i * row_step, np.uint64(0), last
        if starts is not None:
            start, stop = np.uint64(starts[i]), np.uint64(starts[i + ONE])
        score, length = constant * v[last], constant * constant * units[last]
        if indices is None:
            for k in range(start, stop):
                x = 1.0 * values[base + k * column_step]  # float32 becomes float64
                score += x * v[k]
                length += x * x * units[k]
        else:  # two sums at a time, because short rows are not vectorised and a single sum has to wait for each addition
            score_b = length_b = 0.0
            for k in range(start, stop - (stop - start & ONE), 2):
                x, j = 1.0 * values[k], np.uint64(indices[k])
                x_b, j_b = 1.0 * values[k + ONE], np.uint64(indices[k + ONE])
                score += x * v[j]
                score_b += x_b * v[j_b]
                length += x * x * units[j]
                length_b += x_b * x_b * units[j_b]
            if stop - start & ONE:
                x, j = 1.0 * values[stop - ONE], np.uint64(indices[stop - ONE])
                score += x * v[j]
                length += x * x * units[j]
            score += score_b
            length += length_b
        score *= scale
        full = score if base_scores is None else score + base_scores[i]

        # Its class and its weight.
        time += s
        positive = sign[i] > 0
        if positive:
            plus += s
            tp += s if full > 0.0 else 0.0
            margin, gain = full, s * alpha
        else:
            minus += s
            fp += s if full > 0.0 else 0.0
            margin, gain = -full, s * beta
        if dual:
            share = ((plus if positive else minus) + 1.0) / (time + 2.0)
            gain /= share

        # A step along the row, and back into the ball |w| <= radius, in units.
        if margin < 1.0 and gain > 0.0 and length > 0.0:
            step = gain if positive else -gain
            if paper:
                step /= math.sqrt(time)
            else:
                squares += gain * gain * length
                reach = max(reach, math.sqrt(max(norm2, 0.0)))
                step *= min(1.0, max(0.0, (horizon - time) * ramp)) * reach / math.sqrt(squares)
            norm2 += step * (2.0 * score + step * length)
            step /= scale
            d = step * constant * units[last]
            v[last] += d
            behind[last] += total * d
            for k in range(start, stop):
                if indices is None:
                    x, j = 1.0 * values[base + k * column_step], k
                else:
                    x, j = 1.0 * values[k], np.uint64(indices[k])
                d = step * x * units[j]
                v[j] += d
                behind[j] += total * d
            if norm2 > radius * radius:
                scale *= radius / math.sqrt(norm2)
                norm2 = radius * radius
                if scale < TINY_SCALE:
                    _write_out(v, behind, total, scale)
                    total, scale = 0.0, 1.0
        o = s if paper else s * time * time * time
        total += o * scale
        mean_weight += o

        # The weights of the classes.
        if dual:
            root = math.sqrt(time)
            # (eq. gmean-cap)
            cap, lift = (0.5 * math.sqrt(1.0 + root), 1.0 / root) if kind == GMEAN else (0.0, 0.0)
            down = s * (min(1.0, margin) + lift) / (share * root)
            up = s / root if kind == QMEAN else 0.0  # the gradient of the conjugate is (1, 1) for the Q-mean, else 0
            a, b = alpha + up, beta + up
            if positive:
                a -= down
            else:
                b -= down
            alpha, beta = project_dual(kind, a, b, cap)
        elif plus + minus >= epoch:
            level, epoch = _level(kind, beta2, tp, fp, plus - tp), 2.0 * epoch
            if kind == FBETA:
                alpha, beta = 1.0 + beta2 - level, level
            elif kind == JACCARD:
                beta = level
            plus = minus = tp = fp = 0.0
    state[ALPHA], state[BETA], state[TIME], state[POSITIVE], state[NEGATIVE] = alpha, beta, time, plus, minus
    state[TOTAL], state[WEIGHT], state[SCALE], state[NORM2] = total, mean_weight, scale, norm2
    state[REACH], state[SQUARES] = reach, squares
    state[LEVEL], state[TP], state[FP], state[EPOCH] = level, tp, fp, epoch
