"""Row after row: SPADE and STAMP (Narasimhan, Kar and Jain 2015), every update in time of the row's non-zeros.

Weights are w = scale * v, so that shrinking all of them is one product. The sum of all w met, sum_t scale_t v_t, is kept as
total * v - behind: a change d of v adds total * d to `behind`. Rows are those of a matrix as it lies in memory: entry k of
row i is values[i row_step + k column_step], or for sparse rows values[k] in column indices[k], k from starts[i] to
starts[i + 1]. A constant feature (0 for none) comes last.

The step is that of "distance over gradients" (Ivgi, Hinder and Carmon 2023): the largest distance from the start so far over
the root of the sum of squared gradients, both in features divided by the largest magnitude met in their column. So no step
size has to be chosen, and multiplying a column by a number changes nothing while |w| stays within the ball.
"""

import math

from scoreline.kernels.compile import kernel

MIN, HMEAN, QMEAN, GMEAN = 0, 1, 2, 3
FBETA, JACCARD, ERROR = 0, 1, 2
# Places in the state vector.
ALPHA, BETA, TIME, POSITIVE, NEGATIVE, TOTAL, SCALE, NORM2, FAR2, REACH, SQUARES = range(11)
LEVEL, TP, FP, FN, TN, EPOCH = range(11, 17)
STATE = 17
FIRST_REACH = 1e-3  # distance from the start that the first step takes as known, in scores
TINY_SCALE = 1e-6  # below, w is written out anew: v would lose digits


@kernel
def project_dual(kind, a, b, cap):
    """Return the point of the dual region of a measure that is nearest to (a, b).

    MIN: a + b = 1, both >= 0. QMEAN: the quarter disc of radius 1/sqrt 2. HMEAN: sqrt a + sqrt b >= sqrt 2 within the
    quarter disc of radius 2. GMEAN: a b >= 1/4 with both at most `cap`.
    """
    if kind == MIN:
        x = min(1.0, max(0.0, 0.5 * (1.0 + a - b)))
        return x, 1.0 - x
    if kind == QMEAN:
        a, b = max(a, 0.0), max(b, 0.0)
        square = a * a + b * b
        if square <= 0.5:
            return a, b
        shrink = math.sqrt(0.5 / square)
        return a * shrink, b * shrink
    if kind == HMEAN:
        return _project_hmean(a, b)
    return _project_gmean(a, b, cap)


@kernel
def _project_hmean(a, b):
    """Return the projection for the H-mean: the inner curve is a = 2 s^2, b = 2 (1 - s)^2, the outer the circle of radius 2."""
    if a >= 0.0 and b >= 0.0 and a + b + 2.0 * math.sqrt(a * b) >= 2.0 and a * a + b * b <= 4.0:
        return a, b
    best_a, best_b, best = 2.0, 0.0, (a - 2.0) ** 2 + b * b
    if a * a + (b - 2.0) ** 2 < best:
        best_a, best_b, best = 0.0, 2.0, a * a + (b - 2.0) ** 2
    x, y = max(a, 0.0), max(b, 0.0)
    length = math.sqrt(x * x + y * y)
    if length > 0.0:
        x, y = 2.0 * x / length, 2.0 * y / length
        if (a - x) ** 2 + (b - y) ** 2 < best:
            best_a, best_b, best = x, y, (a - x) ** 2 + (b - y) ** 2
    # A stationary point of the distance to the inner curve: a root of a cubic, by bisection and Newton steps.
    low, high, s = 0.0, 1.0, min(1.0, math.sqrt(0.5 * max(a, 0.0)))  # where the curve has this a
    if (b - 2.0) * (2.0 - a) < 0.0:
        for _ in range(60):
            value = ((4.0 * s - 6.0) * s + (6.0 - a - b)) * s + (b - 2.0)
            if value > 0.0:
                high = s
            else:
                low = s
            slope = (12.0 * s - 12.0) * s + (6.0 - a - b)
            step = s - value / slope if slope > 0.0 else -1.0
            new = step if low < step < high else 0.5 * (low + high)
            if abs(new - s) <= 1e-15:
                break
            s = new
        x, y = 2.0 * s * s, 2.0 * (1.0 - s) ** 2
        if (a - x) ** 2 + (b - y) ** 2 < best:
            best_a, best_b = x, y
    return best_a, best_b


@kernel
def _project_gmean(a, b, cap):
    """Return the projection onto a b >= 1/4, a and b <= cap: the hyperbola between its corners, or an edge."""
    if a > 0.0 and b > 0.0 and a * b >= 0.25 and a <= cap and b <= cap:
        return a, b
    least = 0.25 / cap
    best_a, best_b = cap, min(max(b, least), cap)
    best = (a - best_a) ** 2 + (b - best_b) ** 2
    x = min(max(a, least), cap)
    if (a - x) ** 2 + (b - cap) ** 2 < best:
        best_a, best_b, best = x, cap, (a - x) ** 2 + (b - cap) ** 2
    # On the hyperbola (x, 1/(4x)): x - a - (1/(4x) - b) / (4 x^2) rises through 0 once where the point lies below it.
    low, high = least, cap
    x = min(max(a, least), cap)
    for _ in range(100):
        inverse = 0.25 / x
        value = x - a - (inverse - b) * inverse / x
        if value > 0.0:
            high = x
        else:
            low = x
        slope = 1.0 + (3.0 * inverse - 2.0 * b) * inverse / (x * x)
        new = x - value / slope if slope > 0.0 else -1.0
        if not low < new < high:
            new = math.sqrt(low * high)
        if abs(new - x) <= 1e-15 * x:
            break
        x = new
    if (a - x) ** 2 + (b - 0.25 / x) ** 2 < best:
        best_a, best_b = x, 0.25 / x
    return best_a, best_b


@kernel(reorder=True)
def _score(values, indices, base, column_step, start, stop, constant, v):
    """Return <x, v> with the constant feature."""
    total = constant * v[len(v) - 1]
    if indices is None:
        for k in range(stop):
            total += values[base + k * column_step] * v[k]
    else:
        for k in range(start, stop):
            total += values[k] * v[indices[k]]
    return total


@kernel
def _grown(x, j, v, units, state):
    """Take in an entry that is the largest of its column so far: its unit, and the length of w in the new units."""
    unit = 1.0 / (x * x)
    if units[j] > 0.0:
        state[FAR2] += (state[SCALE] * v[j]) ** 2 * (1.0 / unit - 1.0 / units[j])
    units[j] = unit


@kernel
def _length(values, indices, base, column_step, start, stop, constant, v, units, state):
    """Return |x|^2 in units of the largest magnitudes, taking in those of this row; `units` are their inverse squares."""
    last, total = len(v) - 1, 0.0
    if constant != 0.0:
        if not constant * constant * units[last] <= 1.0 or units[last] == 0.0:
            _grown(constant, last, v, units, state)
        total = constant * constant * units[last]
    if indices is None:
        for k in range(stop):
            x = 1.0 * values[base + k * column_step]  # float32 becomes float64
            if x * x * units[k] > 1.0 or (units[k] == 0.0 and x != 0.0):
                _grown(x, k, v, units, state)
            total += x * x * units[k]
    else:
        for k in range(start, stop):
            x, j = 1.0 * values[k], indices[k]
            if x * x * units[j] > 1.0 or (units[j] == 0.0 and x != 0.0):
                _grown(x, j, v, units, state)
            total += x * x * units[j]
    return total


@kernel
def _move(values, indices, base, column_step, start, stop, constant, step, paper, v, units, behind, state):
    """Add step * x (in units) to w, and return by how much that raises |w|^2."""
    last, scale, total = len(v) - 1, state[SCALE], state[TOTAL]
    step /= scale
    d = step * constant * (1.0 if paper else units[last])
    cross, square = v[last] * d, d * d
    v[last] += d
    behind[last] += total * d
    if indices is None:
        for k in range(stop):
            d = step * values[base + k * column_step] * (1.0 if paper else units[k])
            cross += v[k] * d
            square += d * d
            v[k] += d
            behind[k] += total * d
    else:
        for k in range(start, stop):
            j = indices[k]
            d = step * values[k] * (1.0 if paper else units[j])
            cross += v[j] * d
            square += d * d
            v[j] += d
            behind[j] += total * d
    return scale * scale * (2.0 * cross + square)


@kernel
def _step(
    values, indices, base, column_step, start, stop, constant, slope, score, paper, radius, v, units, behind, state
):
    """Move w along slope * x by one step, and back into the ball |w| <= radius."""
    if paper:
        step = slope / math.sqrt(state[TIME])
    else:
        length = _length(values, indices, base, column_step, start, stop, constant, v, units, state)
        if length == 0.0:
            return
        state[SQUARES] += slope * slope * length
        state[REACH] = max(state[REACH], math.sqrt(max(state[FAR2], 0.0)))
        step = slope * state[REACH] / math.sqrt(state[SQUARES])
        state[FAR2] += step * (2.0 * score + step * length)
    state[NORM2] += _move(
        values, indices, base, column_step, start, stop, constant, step, paper, v, units, behind, state
    )
    if state[NORM2] > radius * radius:
        shrink = radius / math.sqrt(state[NORM2])
        state[SCALE] *= shrink
        state[NORM2] = radius * radius
        state[FAR2] *= shrink * shrink
        if state[SCALE] < TINY_SCALE:
            for j in range(len(v)):
                behind[j] -= state[TOTAL] * v[j]
                v[j] *= state[SCALE]
            state[TOTAL], state[SCALE] = 0.0, 1.0


@kernel
def spade_rows(
    values,
    indices,
    starts,
    row_step,
    column_step,
    rows,
    sign,
    weight,
    constant,
    kind,
    paper,
    radius,
    v,
    units,
    behind,
    state,
):
    """Take in rows one after the other: a primal step with the dual weight of its class, then a dual step.

    The reward of a row is min(1, y s), divided by the share of its class so far; for the G-mean it is lifted by 1/sqrt t.
    """
    width = len(v) - 1
    for i in rows:
        s = 1.0 if weight is None else weight[i]
        if not s > 0.0:
            continue
        start, stop = (0, width) if starts is None else (starts[i], starts[i + 1])
        row = values, indices, i * row_step, column_step, start, stop, constant
        positive = sign[i] > 0
        own = POSITIVE if positive else NEGATIVE
        state[TIME] += s
        state[own] += s
        t = state[TIME]
        score = state[SCALE] * _score(*row, v)
        margin = score if positive else -score
        share = (state[own] + 1.0) / (t + 2.0)
        dual = state[ALPHA if positive else BETA]
        if margin < 1.0 and dual > 0.0:
            slope = s * dual / share * (1.0 if positive else -1.0)
            _step(*row, slope, score, paper, radius, v, units, behind, state)
        state[TOTAL] += s * state[SCALE]
        lift = 1.0 / math.sqrt(t) if kind == GMEAN else 0.0
        step, reward = s / math.sqrt(t), (min(1.0, margin) + lift) / share
        # The gradient of the conjugate is (1, 1) for the Q-mean and 0 for the others.
        a = state[ALPHA] + (step if kind == QMEAN else 0.0) - (step * reward if positive else 0.0)
        b = state[BETA] + (step if kind == QMEAN else 0.0) - (0.0 if positive else step * reward)
        cap = 0.5 * math.sqrt((1.0 + lift) / lift) if kind == GMEAN else 0.0
        state[ALPHA], state[BETA] = project_dual(kind, a, b, cap)


@kernel
def stamp_rows(
    values, indices, starts, row_step, column_step, rows, sign, weight, constant, kind, beta2, first, paper, radius, v,
    units, behind, state,
):  # fmt: skip
    """Take in rows one after the other: steps with the class weights of the level, and a new level at the end of an epoch.

    FBETA: positives weigh 1 + beta^2 - level, negatives level; JACCARD: 1 and level; ERROR: 1 and 1 (Gower-Legendre, which
    rises with accuracy and needs no level). The level is the measure of the predictions made in the epoch, each before its
    update; epochs double, from `first` rows.
    """
    width = len(v) - 1
    for i in rows:
        s = 1.0 if weight is None else weight[i]
        if not s > 0.0:
            continue
        start, stop = (0, width) if starts is None else (starts[i], starts[i + 1])
        row = values, indices, i * row_step, column_step, start, stop, constant
        positive = sign[i] > 0
        state[TIME] += s
        score = state[SCALE] * _score(*row, v)
        gain = 1.0
        if positive:
            state[TP if score > 0.0 else FN] += s
            gain = 1.0 + beta2 - state[LEVEL] if kind == FBETA else 1.0
        else:
            state[FP if score > 0.0 else TN] += s
            gain = 1.0 if kind == ERROR else state[LEVEL]
        if (score if positive else -score) < 1.0 and gain > 0.0:
            slope = s * gain if positive else -s * gain
            _step(*row, slope, score, paper, radius, v, units, behind, state)
        state[TOTAL] += s * state[SCALE]
        if state[TP] + state[FP] + state[FN] + state[TN] >= first * 2.0 ** state[EPOCH]:
            b = 1.0 if kind == JACCARD else beta2
            top = state[TP] if kind == JACCARD else (1.0 + b) * state[TP]
            bottom = top + b * state[FN] + state[FP]
            state[LEVEL] = top / bottom if bottom > 0.0 else 0.0
            state[EPOCH] += 1.0
            state[TP], state[FP], state[FN], state[TN] = 0.0, 0.0, 0.0, 0.0
