"""Lines of LIBSVM text, `label index:value index:value ... # comment`: count them, then read them into CSR arrays.

Chunks of whole lines are independent of each other. A line may have `qid:number` after its label, which is skipped.

Small functions take bytes where they can, not the text: one that takes an array and is not inlined counts references
to it, by atomic operations on a number that all threads share. With few branches the compiler sees that it need not:
hence & and | in conditions.
"""

import math

import numpy as np

from scoreline.io.decimal_kernels import (
    NEW_LINE,
    NOT_A_NUMBER,
    ONE,
    UNSURE,
    append_digits,
    byte_at,
    byte_of,
    bytes_below,
    decimal,
    eight_bytes,
    lowest_bit,
    no_digits,
    number_below,
    short_decimal,
)
from scoreline.runtime.compile import kernel

FINE, BAD_LABEL, BAD_INDEX, BAD_VALUE, WIDE_INDEX, CHANGED = 0, 1, 2, 3, 4, 5
# Columns of `info`, one row a chunk: how it ended and where, numbers that are unsure, smallest and largest index, qids skipped.
CODE, PLACE, UNSURES, LOWEST, HIGHEST, QIDS = 0, 1, 2, 3, 4, 5
HASH, COLON, SMALL_Q = 35, 58, 113
MAY_WRAP = 2.0**62  # an index beyond, of more than 18 digits, may not be what its integer says


@kernel
def is_blank(c):
    """Tell whether a byte separates words: space, tab, carriage return."""
    return (c == 32) | (c == 9) | (c == 13)


@kernel
def is_qid(text, i):
    """Tell whether the colon at i ends the word "qid"."""
    return i >= 3 and text[i - 1] == 100 and text[i - 2] == 105 and text[i - 3] == 113


@kernel
def count_chunks(text, edges, counts, first, last):
    """counts[c] = (rows, entries) of the lines in text[edges[c]:edges[c + 1]]: an upper bound if they are malformed."""
    for c in range(first, last):
        rows, entries, plain = count_plain_lines(text, edges[c], edges[c + 1])
        if not plain:
            rows, entries = count_lines(text, edges[c], edges[c + 1])
        counts[c, 0], counts[c, 1] = rows, entries


@kernel
def count_plain_lines(text, i, stop):
    """Return (rows, entries, True), or False if there may be a comment, a qid, or a line that is empty or begins blank.

    Without them every line is a row and every colon an entry: a loop without branches, for many bytes at once.
    """
    rows, entries, unusual = 1, int(text[i] == COLON), int(is_unusual(True, text[i]))
    for k in range(np.uint64(i), np.uint64(stop - 1)):  # no signs: see `eight_bytes`
        begins, byte = text[k] == NEW_LINE, text[k + ONE]
        rows += begins
        entries += byte == COLON
        unusual += is_unusual(begins, byte)
    return rows, entries, unusual == 0


@kernel
def is_unusual(begins, byte):
    """Tell whether a byte needs `count_lines`: # or q, or a blank or no byte at all where a line begins."""
    return (byte == HASH) | (byte == SMALL_Q) | (begins & (byte <= 32))


@kernel
def count_lines(text, i, stop):
    """Return (rows, entries) of any lines."""
    rows = entries = 0
    begun = comment = False
    for k in range(i, stop):
        byte = text[k]
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
            if byte == COLON and not is_qid(text, k):
                entries += 1
    return rows, entries


@kernel
def read_chunks(text, edges, starts, counts, labels, indptr, indices, data, tables, unsure, info, most, first, last):
    """Read chunks into the arrays from row starts[c, 0] and entry starts[c, 1] on, at most counts[c] of them.

    More can only come where another process changes the text after it was counted: it is a mapped file. They are not written.
    unsure[c] takes (entry or -1 - row, first byte, one past the last) of numbers that need another look, as many as fit;
    `most` is the largest index that fits.
    """
    for c in range(first, last):
        info[c, :] = 0
        code, place = read_lines(
            text, edges[c], edges[c + 1], starts[c, 0], starts[c, 1], counts[c, 0], counts[c, 1], labels, indptr, indices, data,
            tables, unsure[c], info[c], most,
        )  # fmt: skip
        info[c, CODE], info[c, PLACE] = code, place


@kernel
def read_lines(text, i, stop, row, entry, rows, entries, labels, indptr, indices, data, tables, unsure, info, most):
    """Read whole lines, at most so many rows and entries; return (FINE, stop), or what is wrong and where."""
    bits = np.empty(1, dtype=np.uint64)
    row_end, entry_end = row + rows, entry + entries
    low, high = np.int64(np.iinfo(np.int64).max), np.int64(-1)
    while i < stop:
        byte = text[i]
        if byte == NEW_LINE or is_blank(byte):
            i += 1
            continue
        if byte == HASH:
            i = end_of_line(text, i, stop)
            continue
        value, end, fine = short_decimal(text, i, stop)
        if not fine:
            value, end, state = decimal(text, i, stop, tables, bits)
            if state == NOT_A_NUMBER or not math.isfinite(value):
                return BAD_LABEL, i
            if state == UNSURE:
                note(unsure, info, -1 - row, i, end)
        if not ends_word(byte_at(text, end, stop)):
            return BAD_LABEL, i
        if row >= row_end:
            return CHANGED, i
        labels[row], i = value, end
        begin = end_of_blanks(text, i, stop)
        if byte_at(text, begin, stop) == SMALL_Q:
            i = end_of_qid(text, begin, stop)
            if i == begin:
                return BAD_INDEX, i
            info[QIDS] += 1
        while True:
            while i + 9 <= stop and entry < entry_end and is_blank(text[np.uint64(i)]):
                index, number, length = short_entry(eight_bytes(text, i + 1))
                if length == 0:
                    break
                indices[np.uint64(entry)], data[np.uint64(entry)] = index, number
                low, high = min(low, index), max(high, index)
                entry, i = entry + 1, i + 1 + length
            i = end_of_blanks(text, i, stop)
            byte = byte_at(text, i, stop)
            if byte == NEW_LINE:
                break
            if byte == HASH:
                i = end_of_line(text, i, stop)
                break
            index, end = append_digits(np.int64(0), text, i, stop)
            if end == i or byte_at(text, end, stop) != COLON:
                return BAD_INDEX, i
            if index > most or (end - i > 18 and decimal(text, i, end, tables, bits)[0] > MAY_WRAP):
                return WIDE_INDEX, i
            i = end + 1
            value, end, fine = short_decimal(text, i, stop)
            if not fine:
                value, end, state = decimal(text, i, stop, tables, bits)
                if state == NOT_A_NUMBER or not math.isfinite(value):
                    return BAD_VALUE, i
                if state == UNSURE:
                    note(unsure, info, entry, i, end)
            if not ends_word(byte_at(text, end, stop)):
                return BAD_VALUE, i
            if entry >= entry_end:
                return CHANGED, i
            indices[entry], data[entry] = index, value
            low, high = min(low, index), max(high, index)
            entry, i = entry + 1, end
        row += 1
        indptr[row] = entry
    if row != row_end or entry != entry_end:  # fewer: the ends of the arrays would be what memory held before
        return CHANGED, stop - 1
    info[LOWEST], info[HIGHEST] = low, high
    return FINE, stop


@kernel
def short_entry(word):
    """Read index:value of whole numbers that, with what ends it, is within the `eight_bytes`.

    Return (index, value, length), length 0 if it is another. There is no loop over digits: how many there are is hard
    to predict, and a branch predicted wrongly costs more than all of this.
    """
    marks = no_digits(word)
    colon = lowest_bit(marks)
    end = lowest_bit(marks ^ colon)
    digits, length = bytes_below(colon), bytes_below(end)
    if end == np.uint64(0) or digits == np.uint64(0) or length == digits + ONE or byte_of(word, digits) != COLON:
        return 0, 0, 0
    if not ends_word(byte_of(word, length)):
        return 0, 0, 0
    up_to_colon = (colon << ONE) - ONE
    return number_below(word, digits), number_below(word & ~up_to_colon, length), np.int64(length)


@kernel
def ends_word(c):
    """Tell whether a byte ends a word."""
    return (c == NEW_LINE) | (c == HASH) | is_blank(c)


@kernel
def end_of_blanks(text, i, stop):
    """Return where the blanks end."""
    while is_blank(byte_at(text, i, stop)):
        i += 1
    return i


@kernel
def end_of_qid(text, i, stop):
    """Return where the word qid:number ends, or i if there is another."""
    if byte_at(text, i + 3, stop) != COLON or not is_qid(text, i + 3):
        return i
    _, end = append_digits(np.int64(0), text, i + 4, stop)
    return end if end > i + 4 and ends_word(byte_at(text, end, stop)) else i


@kernel
def end_of_line(text, i, stop):
    """Return where the line ends."""
    while byte_at(text, i, stop) != NEW_LINE:
        i += 1
    return i


@kernel
def note(unsure, info, target, begin, end):
    """Remember a number for another look."""
    k = info[UNSURES]
    if k < len(unsure):
        unsure[k, 0], unsure[k, 1], unsure[k, 2] = target, begin, end
    info[UNSURES] = k + 1
