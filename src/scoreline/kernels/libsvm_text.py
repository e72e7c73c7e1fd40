"""Lines of LIBSVM text, `label index:value index:value ... # comment`: count them, then read them into CSR arrays.

Chunks of whole lines are independent of each other. A line may have `qid:number` after its label, which is skipped.
"""

import math

import numpy as np

from scoreline.kernels.compile import kernel
from scoreline.kernels.decimals import NOT_A_NUMBER, UNSURE, decimal, short_decimal

FINE, BAD_LABEL, BAD_INDEX, BAD_VALUE, WIDE_INDEX = 0, 1, 2, 3, 4
# Columns of `info`, one row a chunk: how it ended and where, numbers that are unsure, smallest and largest index, qids skipped.
CODE, PLACE, UNSURES, LOWEST, HIGHEST, QIDS = 0, 1, 2, 3, 4, 5
NEW_LINE, HASH, COLON = 10, 35, 58


@kernel
def is_blank(c):
    """Tell whether a byte separates words: space, tab, carriage return."""
    return c == 32 or c == 9 or c == 13


@kernel
def is_qid(text, i):
    """Tell whether the colon at i ends the word "qid"."""
    return i >= 3 and text[i - 1] == 100 and text[i - 2] == 105 and text[i - 3] == 113


@kernel
def count_chunks(text, edges, counts, first, last):
    """counts[c] = (rows, entries) of the lines in text[edges[c]:edges[c + 1]]: an upper bound if they are malformed."""
    for c in range(first, last):
        rows = entries = 0
        begun = comment = False
        for i in range(edges[c], edges[c + 1]):
            byte = text[i]
            if byte == NEW_LINE:
                begun = comment = False
            elif comment or is_blank(byte):
                continue
            elif byte == HASH:
                comment = True
            else:
                if not begun:
                    begun = True
                    rows += 1
                if byte == COLON and not is_qid(text, i):
                    entries += 1
        counts[c, 0], counts[c, 1] = rows, entries


@kernel
def read_chunks(text, edges, starts, labels, indptr, indices, data, tables, unsure, info, most, first, last):
    """Read chunks into the arrays from row starts[c, 0] and entry starts[c, 1] on.

    unsure[c] takes (entry or -1 - row, first byte, one past the last) of numbers that need another look, as many as fit;
    `most` is the largest index that fits.
    """
    for c in range(first, last):
        info[c, :] = 0
        code, place = read_lines(
            text, edges[c], edges[c + 1], starts[c, 0], starts[c, 1], labels, indptr, indices, data, tables, unsure[c], info[c],
            most,
        )  # fmt: skip
        info[c, CODE], info[c, PLACE] = code, place


@kernel
def read_lines(text, i, stop, row, entry, labels, indptr, indices, data, tables, unsure, info, most):
    """Read whole lines; return (FINE, stop), or what is wrong and where."""
    bits = np.empty(1, dtype=np.uint64)
    low, high = np.int64(np.iinfo(np.int64).max), np.int64(-1)
    while i < stop:
        byte = text[i]
        if byte == NEW_LINE or is_blank(byte):
            i += 1
            continue
        if byte == HASH:
            i = end_of_line(text, i, stop)
            continue
        value, end, state = decimal(text, i, stop, tables, bits)
        if state == NOT_A_NUMBER or not ends_word(text, end, stop):
            return BAD_LABEL, i
        if state == UNSURE:
            note(unsure, info, -1 - row, i, end)
        labels[row], i = value, end
        while True:
            while i < stop and is_blank(text[i]):
                i += 1
            if i >= stop or text[i] == NEW_LINE:
                break
            if text[i] == HASH:
                i = end_of_line(text, i, stop)
                break
            begin, index = i, np.int64(0)
            if text[i] == 113 and i + 3 < stop and text[i + 3] == COLON and is_qid(text, i + 3):
                while i < stop and not ends_word(text, i, stop):
                    i += 1
                info[QIDS] += 1
                continue
            while i < stop and 48 <= text[i] <= 57:
                index = min(np.int64(1) << 60, 10 * index + np.int64(text[i] - 48))
                i += 1
            if i == begin or i >= stop or text[i] != COLON:
                return BAD_INDEX, begin
            if index > most:
                return WIDE_INDEX, begin
            value, end, fine = short_decimal(text, i + 1, stop)
            if not fine:
                value, end, state = decimal(text, i + 1, stop, tables, bits)
                if state == NOT_A_NUMBER or not math.isfinite(value):
                    return BAD_VALUE, i + 1
                if state == UNSURE:
                    note(unsure, info, entry, i + 1, end)
            if not ends_word(text, end, stop):
                return BAD_VALUE, i + 1
            indices[entry], data[entry] = index, value
            low, high = min(low, index), max(high, index)
            entry, i = entry + 1, end
        row += 1
        indptr[row] = entry
    info[LOWEST], info[HIGHEST] = low, high
    return FINE, stop


@kernel
def ends_word(text, i, stop):
    """Tell whether a word ends before i."""
    return i >= stop or text[i] == NEW_LINE or text[i] == HASH or is_blank(text[i])


@kernel
def end_of_line(text, i, stop):
    """Return where the line ends."""
    while i < stop and text[i] != NEW_LINE:
        i += 1
    return i


@kernel
def note(unsure, info, target, begin, end):
    """Remember a number for another look."""
    k = info[UNSURES]
    if k < len(unsure):
        unsure[k, 0], unsure[k, 1], unsure[k, 2] = target, begin, end
    info[UNSURES] = k + 1
