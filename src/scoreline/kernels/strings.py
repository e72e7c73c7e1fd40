"""Products with features of sequences that are computed from their letters, one byte each, and never stored.

A feature is a k-mer: k letters in a row, at a position (weighted degree) or anywhere (spectrum), k from `lowest` to `degree`.
At the end position e of a row, `run` known letters end, at most `degree` of them, and `code` is their number in base A.
The k-mers that end there are the last k of these letters, for every k up to `run`: one entry of a table that has their sum
serves them all. `offsets[k]` and `strides[k]` say where the table of k-mers begins and how far its positions are apart.
A letter that is not below A is unknown, and no k-mer contains it.

All numbers are unsigned, which spares a test for negative indices. The three kernels have the same inner loop; Numba has no
generators that cost nothing, and a function for the step would have to return two numbers per letter.
"""

import numpy as np

from scoreline.runtime.compile import kernel


@kernel
def gather(
    letters, starts, length, lines, alphabet, degree, lowest, offsets, strides, table, spans, tile, out, bounds, first, last
):  # fmt: skip
    """out[r] = sum over the end positions e of row r (or row lines[r]) of the table's entry there (eq. kmer-score).

    Rows are taken `tile` at a time, and for each tile the positions span by span: the tables of a span stay in the cache.
    """
    one, zero = np.uint64(1), np.uint64(0)
    top = alphabet**degree
    begin, end = bounds[first], bounds[last]
    out[begin:end] = 0.0
    while begin < end:
        stop = min(begin + tile, end)
        for s in range(len(spans) - 1):
            for r in range(begin, stop):
                i = r
                if lines is not None:
                    i = lines[r]
                if starts is None:
                    base, size = i * length, length
                else:
                    base, size = starts[i], starts[i + one] - starts[i]
                low, high = spans[s], min(spans[s + 1], size)
                e = low - min(low, degree - one)
                run, code, total = zero, zero, 0.0
                while e < high:
                    letter = np.uint64(letters[base + e])
                    if letter >= alphabet:
                        run, code = zero, zero
                    else:
                        code = code * alphabet + letter
                        if run < degree:
                            run += one
                        else:
                            code -= np.uint64(letters[base + e - degree]) * top
                        if e >= low and run >= lowest:
                            total += table[offsets[run] + (e + one - run) * strides[run] + code]
                    e += one
                out[r] += total
        begin = stop


@kernel
def scatter(
    letters, starts, length, lines, alphabet, degree, lowest, offsets, strides, u, tables, tasks, first, last
):  # fmt: skip
    """tables[slot] += u[r] at the entry of every end position of row r (or row lines[r]), for the rows and positions of a task.

    A task is (slot, first row, one past the last, first position, one past the last); u[r] = 0 is not read.
    """
    one, zero = np.uint64(1), np.uint64(0)
    top = alphabet**degree
    for t in range(first, last):
        table = tables[tasks[t, 0]]
        for r in range(tasks[t, 1], tasks[t, 2]):
            ur = u[r]
            if ur == 0.0:
                continue
            i = r
            if lines is not None:
                i = lines[r]
            if starts is None:
                base, size = i * length, length
            else:
                base, size = starts[i], starts[i + one] - starts[i]
            low, high = tasks[t, 3], min(tasks[t, 4], size)
            e = low - min(low, degree - one)
            run, code = zero, zero
            while e < high:
                letter = np.uint64(letters[base + e])
                if letter >= alphabet:
                    run, code = zero, zero
                else:
                    code = code * alphabet + letter
                    if run < degree:
                        run += one
                    else:
                        code -= np.uint64(letters[base + e - degree]) * top
                    if e >= low and run >= lowest:
                        table[offsets[run] + (e + one - run) * strides[run] + code] += ur
                e += one


@kernel
def entries(
    letters, starts, length, lines, alphabet, degree, lowest, offsets, strides, powers, values, place, columns, counts,
    lengths, room, bounds, first, last,
):  # fmt: skip
    """columns, counts = the distinct features of each row, in order of appearance, and the sum of `values` over them.

    Chunk c writes one row after another from room[c] on; lengths[r] is the number of features of row r. `place` has a line
    of zeros for each chunk, with an entry for each column, or is None where no feature comes twice in a row.
    """
    one, zero = np.uint64(1), np.uint64(0)
    top = alphabet**degree
    for c in range(first, last):
        end = room[c]
        for r in range(bounds[c], bounds[c + 1]):
            begin = end
            i = r
            if lines is not None:
                i = lines[r]
            if starts is None:
                base, size = i * length, length
            else:
                base, size = starts[i], starts[i + one] - starts[i]
            run, code, e = zero, zero, zero
            while e < size:
                letter = np.uint64(letters[base + e])
                if letter >= alphabet:
                    run, code = zero, zero
                else:
                    code = code * alphabet + letter
                    if run < degree:
                        run += one
                    else:
                        code -= np.uint64(letters[base + e - degree]) * top
                    for k in range(lowest, run + one):
                        column = offsets[k] + (e + one - k) * strides[k] + code % powers[k]
                        if place is not None and place[c, column] > 0:
                            counts[begin + np.uint64(place[c, column] - 1)] += values[k]
                            continue
                        columns[end] = column
                        counts[end] = values[k]
                        end += one
                        if place is not None:
                            place[c, column] = end - begin
                e += one
            lengths[r] = end - begin
            if place is not None:
                for k in range(begin, end):
                    place[c, columns[k]] = 0
