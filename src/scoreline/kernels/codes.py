"""Products with features that are functions of one-byte codes: look-ups in tables, and histograms.

`codes` has one line of n bytes per column. Group g of features is a function of one column or of a pair of columns: entry
cells[g] + code of a row in the concatenated tables, or cells[g] + near[g, code] + far[g, other code]. `lines` is None for all
rows, or the list of rows that a product is restricted to. Rows are handled in tiles, whose scores and codes stay in the cache.
"""

import numpy as np

from scoreline.runtime.compile import kernel

ONE, TWO, THREE, FOUR = (np.uint64(k) for k in range(1, 5))
TILE = np.uint64(2048)  # rows that are handled together
BACKFITTING_STEPS = 8  # of rows and columns of a grid; the errors fall geometrically


@kernel
def look_up(codes, cells, tables, lines, out, bounds, first, last):
    """out[r] = sum over the columns j of tables[cells[j] + codes[j, row r]], four columns at a time."""
    p = np.uint64(len(codes))
    fours = p - p % FOUR
    for start in range(bounds[first], bounds[last], TILE):
        stop = min(start + TILE, bounds[last])
        for r in range(start, stop):
            out[r] = 0.0
        for j in range(np.uint64(0), fours, FOUR):
            c0, c1, c2, c3 = codes[j], codes[j + ONE], codes[j + TWO], codes[j + THREE]
            t0, t1 = tables[cells[j] :], tables[cells[j + ONE] :]
            t2, t3 = tables[cells[j + TWO] :], tables[cells[j + THREE] :]
            if lines is None:
                for r in range(start, stop):
                    out[r] += (t0[c0[r]] + t1[c1[r]]) + (t2[c2[r]] + t3[c3[r]])
            else:
                for r in range(start, stop):
                    i = lines[r]
                    out[r] += (t0[c0[i]] + t1[c1[i]]) + (t2[c2[i]] + t3[c3[i]])
        for j in range(fours, p):
            c0, t0 = codes[j], tables[cells[j] :]
            for r in range(start, stop):
                i = r if lines is None else lines[r]
                out[r] += t0[c0[i]]


@kernel
def look_up_pairs(codes, columns, near, far, cells, tables, lines, out, bounds, first, last):
    """out[r] += sum over the pairs q of tables[cells[q] + near[q, code] + far[q, other code]]."""
    for start in range(bounds[first], bounds[last], TILE):
        stop = min(start + TILE, bounds[last])
        for q in range(np.uint64(len(columns))):
            a, b = codes[np.uint64(columns[q, 0])], codes[np.uint64(columns[q, 1])]
            here, there, table = near[q], far[q], tables[cells[q] :]
            if lines is None:
                for r in range(start, stop):
                    out[r] += table[here[a[r]] + there[b[r]]]
            else:
                for r in range(start, stop):
                    i = lines[r]
                    out[r] += table[here[a[i]] + there[b[i]]]


@kernel
def list_rows(u, lines, start, stop, rows, values):
    """List the rows of a tile with u != 0 and their u; return how many there are."""
    count = np.uint64(0)
    for r in range(start, stop):
        rows[count] = r if lines is None else lines[r]
        values[count] = u[r]
        count += np.uint64(u[r] != 0.0)
    return count


@kernel
def is_mostly_nonzero(u, start, stop):
    """Tell whether at least three quarters of a tile are not 0: adding the zeros, too, then costs less than a list of rows."""
    count = 0
    for r in range(start, stop):
        count += u[r] != 0.0
    return 4 * count >= 3 * (stop - start)


@kernel
def add_tile(codes, cells, u, own, start, stop):
    """own[cells[j] + k] += sum of u over the rows of a tile whose code of column j is k, four columns at a time."""
    p = np.uint64(len(codes))
    fours = p - p % FOUR
    for j in range(np.uint64(0), fours, FOUR):
        c0, c1, c2, c3 = codes[j], codes[j + ONE], codes[j + TWO], codes[j + THREE]
        h0, h1, h2, h3 = own[cells[j] :], own[cells[j + ONE] :], own[cells[j + TWO] :], own[cells[j + THREE] :]
        for i in range(start, stop):
            value = u[i]
            h0[c0[i]] += value
            h1[c1[i]] += value
            h2[c2[i]] += value
            h3[c3[i]] += value
    for j in range(fours, p):
        c0, h0 = codes[j], own[cells[j] :]
        for i in range(start, stop):
            h0[c0[i]] += u[i]


@kernel
def add_rows(codes, cells, rows, values, count, own):
    """own[cells[j] + k] += sum of the values of the listed rows whose code of column j is k, four columns at a time."""
    p = np.uint64(len(codes))
    fours = p - p % FOUR
    for j in range(np.uint64(0), fours, FOUR):
        c0, c1, c2, c3 = codes[j], codes[j + ONE], codes[j + TWO], codes[j + THREE]
        h0, h1, h2, h3 = own[cells[j] :], own[cells[j + ONE] :], own[cells[j + TWO] :], own[cells[j + THREE] :]
        for k in range(count):
            i, value = rows[k], values[k]
            h0[c0[i]] += value
            h1[c1[i]] += value
            h2[c2[i]] += value
            h3[c3[i]] += value
    for j in range(fours, p):
        c0, h0 = codes[j], own[cells[j] :]
        for k in range(count):
            h0[c0[rows[k]]] += values[k]


@kernel
def histograms(codes, cells, lines, u, partial, bounds, first, last):
    """partial[c, cells[j] + k] = sum of u over the rows of chunk c whose code of column j is k."""
    rows, values = np.empty(TILE + ONE, dtype=np.uint64), np.empty(TILE + ONE)
    for c in range(first, last):
        for start in range(bounds[c], bounds[c + 1], TILE):
            stop = min(start + TILE, bounds[c + 1])
            if lines is None and is_mostly_nonzero(u, start, stop):
                add_tile(codes, cells, u, partial[c], start, stop)
            else:
                count = list_rows(u, lines, start, stop, rows, values)
                add_rows(codes, cells, rows, values, count, partial[c])


@kernel
def pair_histograms(codes, columns, near, far, cells, lines, u, partial, bounds, first, last):
    """partial[c, cells[q] + near + far] = sum of u over the rows of chunk c in that cell of pair q."""
    rows, values = np.empty(TILE + ONE, dtype=np.uint64), np.empty(TILE + ONE)
    for c in range(first, last):
        for start in range(bounds[c], bounds[c + 1], TILE):
            stop = min(start + TILE, bounds[c + 1])
            consecutive = lines is None and is_mostly_nonzero(u, start, stop)
            count = np.uint64(0) if consecutive else list_rows(u, lines, start, stop, rows, values)
            for q in range(np.uint64(len(columns))):
                a, b = codes[np.uint64(columns[q, 0])], codes[np.uint64(columns[q, 1])]
                here, there, own = near[q], far[q], partial[c, cells[q] :]
                if consecutive:
                    for i in range(start, stop):
                        own[here[a[i]] + there[b[i]]] += u[i]
                else:
                    for k in range(count):
                        i = rows[k]
                        own[here[a[i]] + there[b[i]]] += values[k]


@kernel(reorder=True)
def tables_of(basis, basis_starts, cells, features, w, tables, bounds, first, last):
    """Write the table of each group of the chunks: its basis (one row per cell) times its part of w."""
    for g in range(bounds[first], bounds[last]):
        start, width = features[g], features[g + ONE] - features[g]
        place = basis_starts[g]
        for cell in range(cells[g], cells[g + ONE]):
            total = 0.0
            for k in range(width):
                total += basis[place + k] * w[start + k]
            tables[cell] = total
            place += width


@kernel(reorder=True)
def sums_of(basis, basis_starts, cells, features, sums, out, bounds, first, last):
    """Write the entries of each group of the chunks: its basis transposed times the sums of its cells."""
    for g in range(bounds[first], bounds[last]):
        start, width = features[g], features[g + ONE] - features[g]
        place = basis_starts[g]
        for k in range(width):
            out[start + k] = 0.0
        for cell in range(cells[g], cells[g + ONE]):
            value = sums[cell]
            if value != 0.0:
                for k in range(width):
                    out[start + k] += value * basis[place + k]
            place += width


@kernel
def cells_of(codes, group, columns, near, far, rows, count, out):
    """Write the cells of the listed rows in the table of a group; the second column of a group of one column is negative."""
    a, here = codes[np.uint64(columns[group, 0])], near[group]
    if columns[group, 1] < 0:
        for k in range(count):
            out[k] = here[a[rows[k]]]
        return
    b, there = codes[np.uint64(columns[group, 1])], far[group]
    for k in range(count):
        out[k] = here[a[rows[k]]] + there[b[rows[k]]]


@kernel
def joint_histogram(codes, columns, near, far, g, h, lines, weight, out):
    """out[k, l] += weight of the rows in cell k of group g and in cell l of group h."""
    rows, values = np.empty(TILE + ONE, dtype=np.uint64), np.empty(TILE + ONE)
    a, b = np.empty(TILE, dtype=np.uint32), np.empty(TILE, dtype=np.uint32)
    n = np.uint64(len(weight))
    for start in range(np.uint64(0), n, TILE):
        count = list_rows(weight, lines, start, min(start + TILE, n), rows, values)
        cells_of(codes, g, columns, near, far, rows, count, a)
        cells_of(codes, h, columns, near, far, rows, count, b)
        for k in range(count):
            out[a[k], b[k]] += values[k]


@kernel
def look_up_joint(codes, columns, near, far, g, h, table, lines, out, bounds, first, last):
    """out[r] += table[cell of group g, cell of group h]."""
    rows = np.empty(TILE, dtype=np.uint64)
    a, b = np.empty(TILE, dtype=np.uint32), np.empty(TILE, dtype=np.uint32)
    for start in range(bounds[first], bounds[last], TILE):
        stop = min(start + TILE, bounds[last])
        for r in range(start, stop):
            rows[r - start] = r if lines is None else lines[r]
        cells_of(codes, g, columns, near, far, rows, stop - start, a)
        cells_of(codes, h, columns, near, far, rows, stop - start, b)
        for r in range(start, stop):
            out[r] += table[a[r - start], b[r - start]]


@kernel
def expand(codes, columns, near, far, basis, basis_starts, features, lines, out, bounds, first, last):
    """out[r] = all features of the row: the line of each group's basis at the cell of the row."""
    rows, cell = np.empty(1, dtype=np.uint64), np.empty(1, dtype=np.uint32)
    for r in range(bounds[first], bounds[last]):
        rows[0] = lines[r]
        for g in range(np.uint64(len(columns))):
            cells_of(codes, g, columns, near, far, rows, ONE, cell)
            start, width = features[g], features[g + ONE] - features[g]
            place = basis_starts[g] + cell[0] * width
            for k in range(width):
                out[r, start + k] = basis[place + k]


@kernel
def code_rows(X, values, starts, exact, out, bounds, first, last):
    """Write the code of every entry of the rows of the chunks: 0 for NaN, else 1 + the number of values below it.

    `values` holds the sorted cut points of each column, or its categories where `exact` says so: an entry that is none of
    them gets the code after the last.
    """
    for c in range(first, last):
        for begin in range(bounds[c], bounds[c + 1], TILE):
            stop = min(begin + TILE, bounds[c + 1])
            for j in range(X.shape[1]):
                own, line = values[starts[j] : starts[j + 1]], out[j]
                for i in range(begin, stop):
                    value = float(X[i, j])
                    if np.isnan(value):
                        line[i] = 0
                        continue
                    low, high = 0, len(own)
                    while low < high:
                        middle = (low + high) >> 1
                        if own[middle] < value:
                            low = middle + 1
                        else:
                            high = middle
                    if exact[j] and (low == len(own) or own[low] != value):
                        low = len(own)
                    line[i] = low + 1


@kernel
def list_other_cells(cell, frequent, start, counts, cells):
    """Add the cell of a column, plus start, to the list of each row in which it is not the most frequent one.

    Row r has counts[r] entries in cells[r], which has room for one more.
    """
    for r in range(np.uint64(len(cell))):
        cells[r, np.uint64(counts[r])] = start + cell[r]
        counts[r] += cell[r] != frequent


@kernel
def joint_sums(counts, cells, other_counts, other_cells, u, weight, sums):
    """sums[a, b] += (u, weight) of the rows that list cell a in one block of columns and cell b in the other."""
    for r in range(np.uint64(len(u))):
        value, own = u[r], weight[r]
        for k in range(np.uint64(counts[r])):
            line = sums[np.uint64(cells[r, k])]
            for m in range(np.uint64(other_counts[r])):
                place = line[np.uint64(other_cells[r, m])]
                place[0] += value
                place[1] += own


@kernel
def interaction(sums, weights, rows, columns):
    """Return what the cells of a pair explain of u beyond rows and columns of its grid.

    `sums` and `weights` are the sums U of u and N of the weight over the cells. Effects a and b of rows and columns are fitted
    to U / N by backfitting. The gain is the sum of (U - N (a + b))^2 / (N + 1).
    """
    height, width = sums.shape
    rows[:height], columns[:width] = 0.0, 0.0
    for _ in range(BACKFITTING_STEPS):
        for a in range(height):
            total, mass = 0.0, 1e-300
            for b in range(width):
                total += sums[a, b] - weights[a, b] * columns[b]
                mass += weights[a, b]
            rows[a] = total / mass
        for b in range(width):
            total, mass = 0.0, 1e-300
            for a in range(height):
                total += sums[a, b] - weights[a, b] * rows[a]
                mass += weights[a, b]
            columns[b] = total / mass
    gain = 0.0
    for a in range(height):
        for b in range(width):
            left = sums[a, b] - weights[a, b] * (rows[a] + columns[b])
            gain += left * left / (weights[a, b] + 1.0)
    return gain


@kernel
def block_interactions(sums, own, other, starts, other_starts, frequent, other_frequent, same, gains):
    """gains[j, k] = the interaction of column j of one block and column k of the other, from the sums of their cells.

    `own[j, a]` and `other[k, b]` are the sums of (u, weight) over the rows of a cell; with them the sums of the most frequent
    cells, which no row lists, are what is left. Of a block with itself (`same`) only j < k is computed.
    """
    most = 0
    for j in range(len(starts) - 1):
        most = max(most, starts[j + 1] - starts[j])
    for k in range(len(other_starts) - 1):
        most = max(most, other_starts[k + 1] - other_starts[k])
    u, weight, rows, columns = np.empty((most, most)), np.empty((most, most)), np.empty(most), np.empty(most)
    for j in range(len(starts) - 1):
        for k in range(j + 1 if same else 0, len(other_starts) - 1):
            height, width = starts[j + 1] - starts[j], other_starts[k + 1] - other_starts[k]
            top, left = frequent[j], other_frequent[k]
            tile = sums[starts[j] : starts[j + 1], other_starts[k] : other_starts[k + 1]]
            for entry, table in ((0, u), (1, weight)):
                for b in range(width):
                    table[top, b] = other[other_starts[k] + b, entry]
                for a in range(height):
                    if a == top:
                        continue
                    rest = own[starts[j] + a, entry]
                    for b in range(width):
                        if b != left:
                            table[a, b] = tile[a, b, entry]
                            table[top, b] -= table[a, b]
                            rest -= table[a, b]
                    table[a, left] = rest
                    table[top, left] -= rest
            gains[j, k] = interaction(u[:height, :width], weight[:height, :width], rows, columns)
