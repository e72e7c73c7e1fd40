"""Products with a dense matrix that is contiguous along one axis; see `operators/dense.py` for who calls what.

The matrix comes as a flat 1-D view `x` plus the distance `stride` between consecutive lines (rows of a C-like matrix,
columns of an F-like one), so sliced arrays need no copy. Sums are float64 whatever the type of `x`. `lines` is None for
all lines, or the list of lines that the product is restricted to. All sizes are unsigned: Numba then leaves out the
test for negative indices, which would keep the loops from being vectorised.
"""

import numpy as np

from scoreline.kernels.compile import kernel

ONE, TWO, THREE, FOUR = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)
TILE = np.uint64(2048)  # rows of an F-like matrix handled together: their scores stay in the first-level cache


@kernel(reorder=True)
def line_dots(x, stride, length, lines, v, out, bounds, first, last):
    """out[r] = <line r, v> (or line lines[r]) for the entries r of the chunks.

    Four lines at a time keep more loads in flight. The last group repeats its last line, so that every line goes
    through the same arithmetic: equal rows get equal scores, to the bit.
    """
    for c in range(first, last):
        for r0 in range(bounds[c], bounds[c + 1], FOUR):
            end = bounds[c + 1] - ONE
            r1, r2, r3 = min(r0 + ONE, end), min(r0 + TWO, end), min(r0 + THREE, end)
            if lines is None:
                b0, b1, b2, b3 = r0 * stride, r1 * stride, r2 * stride, r3 * stride
            else:
                b0, b1, b2, b3 = lines[r0] * stride, lines[r1] * stride, lines[r2] * stride, lines[r3] * stride
            t0 = t1 = t2 = t3 = 0.0
            for j in range(length):
                vj = v[j]
                t0 += x[b0 + j] * vj
                t1 += x[b1 + j] * vj
                t2 += x[b2 + j] * vj
                t3 += x[b3 + j] * vj
            out[r0], out[r1], out[r2], out[r3] = t0, t1, t2, t3


@kernel(reorder=True)
def line_sums(x, stride, length, lines, u, partial, bounds, first, last):
    """partial[c] = sum over the entries r of chunk c of u[r] * line r (or line lines[r]); u[r] = 0 is not read.

    Four lines are added at a time: the accumulator is then read and written a quarter as often.
    """
    for c in range(first, last):
        acc = partial[c]
        acc[:] = 0.0
        pending = 0
        b0 = b1 = b2 = np.uint64(0)
        u0 = u1 = u2 = 0.0
        for r in range(bounds[c], bounds[c + 1]):
            ur = u[r]
            if ur == 0.0:
                continue
            base = r * stride
            if lines is not None:
                base = lines[r] * stride
            if pending == 0:
                b0, u0, pending = base, ur, 1
            elif pending == 1:
                b1, u1, pending = base, ur, 2
            elif pending == 2:
                b2, u2, pending = base, ur, 3
            else:
                for j in range(length):
                    acc[j] += (u0 * x[b0 + j] + u1 * x[b1 + j]) + (u2 * x[b2 + j] + ur * x[base + j])
                pending = 0
        if pending > 0:
            for j in range(length):
                acc[j] += u0 * x[b0 + j]
        if pending > 1:
            for j in range(length):
                acc[j] += u1 * x[b1 + j]
        if pending > 2:
            for j in range(length):
                acc[j] += u2 * x[b2 + j]


@kernel(reorder=True)
def tile_axpys(x, stride, n_lines, v, out, bounds, first, last):
    """out[i] = sum_j v[j] * line_j[i] for the positions i of the chunks (F-like matvec), four lines at a time."""
    for start in range(bounds[first], bounds[last], TILE):
        stop = min(start + TILE, bounds[last])
        for i in range(start, stop):
            out[i] = 0.0
        whole = n_lines - n_lines % FOUR
        for j in range(np.uint64(0), whole, FOUR):
            b0 = j * stride
            b1, b2, b3 = b0 + stride, b0 + TWO * stride, b0 + THREE * stride
            v0, v1, v2, v3 = v[j], v[j + ONE], v[j + TWO], v[j + THREE]
            for i in range(start, stop):
                out[i] += (v0 * x[b0 + i] + v1 * x[b1 + i]) + (v2 * x[b2 + i] + v3 * x[b3 + i])
        for j in range(whole, n_lines):
            base, vj = j * stride, v[j]
            for i in range(start, stop):
                out[i] += vj * x[base + i]


@kernel(reorder=True)
def tile_dots(x, stride, n_lines, u, partial, bounds, first, last):
    """partial[c, j] = sum over the positions i of chunk c of line_j[i] * u[i] (F-like rmatvec)."""
    for c in range(first, last):
        acc = partial[c]
        acc[:] = 0.0
        for start in range(bounds[c], bounds[c + 1], TILE):
            stop = min(start + TILE, bounds[c + 1])
            idle = True
            for i in range(start, stop):
                if u[i] != 0.0:
                    idle = False
                    break
            if idle:
                continue
            for j in range(n_lines):
                base = j * stride
                total = 0.0
                for i in range(start, stop):
                    total += x[base + i] * u[i]
                acc[j] += total


@kernel(reorder=True)
def find_nonfinite(x, stride, length, found, bounds, first, last):
    """found[c] = the first line of chunk c that holds a NaN or an infinity, or one past the chunk's last line."""
    for c in range(first, last):
        found[c] = bounds[c + 1]
        for r in range(bounds[c], bounds[c + 1]):
            base = r * stride
            # 0 * x is 0 for a finite number and NaN otherwise: one vectorised sum decides about the whole line.
            total = 0.0
            for j in range(length):
                total += x[base + j] * 0.0
            if total != 0.0:
                found[c] = r
                break
