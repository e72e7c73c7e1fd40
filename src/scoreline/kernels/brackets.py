"""One pass over the rows of a block: sums below, inside and above a bracket of scores or of a bias."""

from scoreline.runtime.compile import kernel


@kernel
def inside(values, weight, low, high, room, own):
    """Copy the entries in (low, high] to `room`, and their weights to `own`; returns their number and the weight up to low.

    It has no branch: the next entry overwrites one outside of the bracket.
    """
    count = 0
    before = 0.0
    for i in range(len(values)):
        x = values[i]
        s = 1.0 if weight is None else weight[i]
        room[count] = x
        if weight is not None:
            own[count] = s
        count += low < x and x <= high
        before += s if x <= low else 0.0
    return count, before


@kernel
def excess_on(z, sign, weight, offset, base, width, low, high, places, changes, sums, moments):
    """Describe the excess sum_P s beta - sum_N s beta for shifts in [low, high] of a bias base + shift (see `balance.py`).

    Returns its value and slope at `low`, and the number of kinks in between. The first kinks are written to `places` and
    `changes` (of the slope), as many as fit. All of them are added to intervals of equal length: `sums` of the changes, and
    `moments`, the changes times the distance from the left end of the interval.

    A positive at distance d = place - base has beta = clip((d - shift) / width, 0, 1), which decreases from d - width to d. The
    term of a negative, -clip((shift - d) / width, 0, 1), decreases from d to d + width.
    """
    n_intervals, room = len(sums), len(places)
    step = (high - low) / n_intervals
    inverse = 1.0 / step if step > 0.0 else 0.0
    value = slope = 0.0
    count = 0
    for i in range(len(z)):
        s = 1.0 if weight is None else weight[i]
        positive = sign[i] > 0
        d = ((offset if positive else 0.0) - z[i]) - base
        start = d - width if positive else d
        if start >= high:
            value += s if positive else 0.0
            continue
        fallen = min(1.0, max(0.0, (low - start) / width))
        value += s * ((1.0 if positive else 0.0) - fallen)
        if start <= low - width:
            continue
        rate = s / width
        if start <= low:
            slope -= rate
        for end in range(2):
            x, change = (start, -rate) if end == 0 else (start + width, rate)
            if low < x and x < high:
                if count < room:
                    places[count], changes[count] = x, change
                count += 1
                k = min(n_intervals - 1, int((x - low) * inverse))
                sums[k] += change
                moments[k] += change * ((x - low) - k * step)
    return value, slope, count


@kernel(reorder=True)
def class_dot(x, sign, y):
    """Return sums of x_i y_i over the positive and over the negative rows."""
    above = below = 0.0
    for i in range(len(x)):
        product = x[i] * y[i]
        above += product if sign[i] > 0 else 0.0
        below += product if sign[i] < 0 else 0.0
    return above, below
