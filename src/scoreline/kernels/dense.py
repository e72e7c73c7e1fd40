"""Products with a dense matrix that is contiguous along one axis, called by `operators/dense.py`.

The matrix comes as a flat 1-D view `x` plus the distance `stride` between consecutive lines (rows of a C-like matrix,
columns of an F-like one), so sliced arrays need no copy. Sums are float64 for all types of `x`. `lines` is None for all lines,
or a list of lines to which the product is restricted. All sizes are unsigned, so that Numba need not test for negative
indices, which would prevent vectorised loops.
"""

import numpy as np

from scoreline.runtime.compile import kernel

ONE, TWO, THREE, FOUR, FIVE, SIX, SEVEN, EIGHT = (np.uint64(k) for k in range(1, 9))
LISTED = 2048  # rows that `line_sums` lists at once
TILE = np.uint64(2048)  # rows of an F-like matrix that are processed together, with scores in the first-level cache


@kernel(reorder=True)
def line_dots(x, stride, length, lines, v, out, bounds, first, last):
    """out[r] = <line r, v> (or line lines[r]) for the entries r of the chunks.

    It processes eight lines at a time, from eight distant places of the chunk. The processor then prefetches eight streams
    instead of one, which doubles the speed for float32 data. Places past the end repeat the last line, so that every line has
    the same arithmetic and equal rows get the same bits.
    """
    for c in range(first, last):
        start, end = bounds[c], bounds[c + 1] - ONE
        step = (bounds[c + 1] - start + SEVEN) // EIGHT
        for r0 in range(start, start + step):
            r1, r2, r3 = min(r0 + step, end), min(r0 + TWO * step, end), min(r0 + THREE * step, end)
            r4, r5 = min(r0 + FOUR * step, end), min(r0 + FIVE * step, end)
            r6, r7 = min(r0 + SIX * step, end), min(r0 + SEVEN * step, end)
            if lines is None:
                b0, b1, b2, b3 = r0 * stride, r1 * stride, r2 * stride, r3 * stride
                b4, b5, b6, b7 = r4 * stride, r5 * stride, r6 * stride, r7 * stride
            else:
                b0, b1, b2, b3 = lines[r0] * stride, lines[r1] * stride, lines[r2] * stride, lines[r3] * stride
                b4, b5, b6, b7 = lines[r4] * stride, lines[r5] * stride, lines[r6] * stride, lines[r7] * stride
            t0 = t1 = t2 = t3 = t4 = t5 = t6 = t7 = 0.0
            for j in range(length):
                vj = v[j]
                t0 += x[b0 + j] * vj
                t1 += x[b1 + j] * vj
                t2 += x[b2 + j] * vj
                t3 += x[b3 + j] * vj
                t4 += x[b4 + j] * vj
                t5 += x[b5 + j] * vj
                t6 += x[b6 + j] * vj
                t7 += x[b7 + j] * vj
            out[r0], out[r1], out[r2], out[r3] = t0, t1, t2, t3
            out[r4], out[r5], out[r6], out[r7] = t4, t5, t6, t7


@kernel(reorder=True)
def line_sums(x, stride, length, lines, u, partial, scratch, bounds, first, last):
    """partial[c] = sum over the entries r of chunk c of u[r] * line r (or line lines[r]); u[r] = 0 is not read.

    The entries with u[r] != 0 are listed in `scratch` (one row per chunk) and added eight at a time, from eight places of the
    list. This needs fewer reads and writes of the accumulator, and the processor prefetches eight streams.
    """
    for c in range(first, last):
        acc, listed = partial[c], scratch[c]
        acc[:] = 0.0
        room = np.uint64(len(listed) - 1)
        r = bounds[c]
        while r < bounds[c + 1]:
            count = np.uint64(0)
            while r < bounds[c + 1] and count < room:
                listed[count] = r
                count += np.uint64(u[r] != 0.0)
                r += ONE
            step = count // EIGHT
            for k in range(step):
                r0, r1, r2, r3 = listed[k], listed[k + step], listed[k + TWO * step], listed[k + THREE * step]
                r4, r5 = listed[k + FOUR * step], listed[k + FIVE * step]
                r6, r7 = listed[k + SIX * step], listed[k + SEVEN * step]
                u0, u1, u2, u3, u4, u5, u6, u7 = u[r0], u[r1], u[r2], u[r3], u[r4], u[r5], u[r6], u[r7]
                if lines is not None:
                    r0, r1, r2, r3 = lines[r0], lines[r1], lines[r2], lines[r3]
                    r4, r5, r6, r7 = lines[r4], lines[r5], lines[r6], lines[r7]
                b0, b1, b2, b3 = r0 * stride, r1 * stride, r2 * stride, r3 * stride
                b4, b5, b6, b7 = r4 * stride, r5 * stride, r6 * stride, r7 * stride
                for j in range(length):
                    low = (u0 * x[b0 + j] + u1 * x[b1 + j]) + (u2 * x[b2 + j] + u3 * x[b3 + j])
                    high = (u4 * x[b4 + j] + u5 * x[b5 + j]) + (u6 * x[b6 + j] + u7 * x[b7 + j])
                    acc[j] += low + high
            for k in range(EIGHT * step, count):
                r0 = listed[k]
                u0 = u[r0]
                if lines is not None:
                    r0 = lines[r0]
                b0 = r0 * stride
                for j in range(length):
                    acc[j] += u0 * x[b0 + j]


@kernel(reorder=True)
def tile_axpys(x, stride, n_lines, v, out, bounds, first, last):
    """out[i] = sum_j v[j] * line_j[i] for the positions i of the chunks (F-like matvec), four lines at a time."""
    for start in range(bounds[first], bounds[last], TILE):
        stop = min(start + TILE, bounds[last])
        for i in range(start, stop):
            out[i] = 0.0
        in_fours = n_lines - n_lines % FOUR
        for j in range(np.uint64(0), in_fours, FOUR):
            b0 = j * stride
            b1, b2, b3 = b0 + stride, b0 + TWO * stride, b0 + THREE * stride
            v0, v1, v2, v3 = v[j], v[j + ONE], v[j + TWO], v[j + THREE]
            for i in range(start, stop):
                out[i] += (v0 * x[b0 + i] + v1 * x[b1 + i]) + (v2 * x[b2 + i] + v3 * x[b3 + i])
        for j in range(in_fours, n_lines):
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
            in_fours = n_lines - n_lines % FOUR
            for j in range(np.uint64(0), in_fours, FOUR):
                b0 = j * stride
                b1, b2, b3 = b0 + stride, b0 + TWO * stride, b0 + THREE * stride
                t0 = t1 = t2 = t3 = 0.0
                for i in range(start, stop):
                    ui = u[i]
                    t0 += x[b0 + i] * ui
                    t1 += x[b1 + i] * ui
                    t2 += x[b2 + i] * ui
                    t3 += x[b3 + i] * ui
                acc[j] += t0
                acc[j + ONE] += t1
                acc[j + TWO] += t2
                acc[j + THREE] += t3
            for j in range(in_fours, n_lines):
                base = j * stride
                total = 0.0
                for i in range(start, stop):
                    total += x[base + i] * u[i]
                acc[j] += total


@kernel(reorder=True)
def inspect_lines(x, stride, length, by_row, largest, found, bounds, first, last):
    """largest = largest |x| of each column; found[c] = the first line of chunk c with a NaN or infinity, or its end.

    Lines are rows (each chunk has its own row of `largest`) or columns (all share the first). `largest` starts at zero.
    """
    for c in range(first, last):
        found[c] = bounds[c + 1]
        for r in range(bounds[c], bounds[c + 1]):
            base = r * stride
            # 0 * x is 0 for a finite number and NaN otherwise: one vectorised sum checks the complete line.
            total = top = 0.0
            if by_row:
                for j in range(length):
                    value = float(x[base + j])
                    total += value * 0.0
                    largest[c, j] = abs(value) if abs(value) > largest[c, j] else largest[c, j]
            else:
                for j in range(length):
                    value = float(x[base + j])
                    total += value * 0.0
                    top = abs(value) if abs(value) > top else top
                largest[0, r] = top
            if total != 0.0:
                found[c] = r
                break
