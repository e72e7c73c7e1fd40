"""LIBSVM text, `label index:value index:value ... # comment`: count its lines, then read them into CSR arrays.

Chunks of complete lines are independent of each other. A line may have `qid:number` after its label, which is skipped.

Decimal numbers become the nearest float64, exactly. A number is w 10^q with an integer w of at most 19 digits. If w is at
most 2^53 and |q| <= 22, both w and 10^|q| are floats, and one product or quotient rounds correctly (Clinger 1990).
Otherwise w is multiplied by the first 128 bits of 5^q, which rounds correctly except in rare cases that can be recognised
(Lemire 2021). The caller converts these cases. It also converts numbers of more than 19 digits whose lower and upper
bounds round to different floats.

Small functions take single bytes rather than the text where they can. Numba counts the references to an array argument of
a function that is not inlined, with atomic operations on a counter that all threads share. Functions with few branches
avoid this, hence & and | in conditions.
"""

import math

import numpy as np

from scoreline.runtime.compile import kernel

FINE, BAD_LABEL, BAD_INDEX, BAD_VALUE, WIDE_INDEX, CHANGED = 0, 1, 2, 3, 4, 5
# Columns of `info`, which has one row per chunk: the error code and its place, the count of numbers that the caller converts,
# the smallest and largest index, and the count of skipped qids.
CODE, PLACE, INEXACTS, LOWEST, HIGHEST, QIDS = 0, 1, 2, 3, 4, 5
HASH, COLON, SMALL_Q = 35, 58, 113
MAY_WRAP = 2.0**62  # an index beyond this, of more than 18 digits, may have overflowed its integer
SMALLEST, LARGEST = -342, 308  # powers of ten beyond which every number of 19 digits is 0 or infinite
POWERS = np.array([10.0**k for k in range(23)])  # exact
NOT_A_NUMBER, INEXACT, EXACT = -1, 0, 1
ALL_ONES = np.uint64(0xFFFFFFFFFFFFFFFF)
LOW = np.uint64(0xFFFFFFFF)
EXACT_INTEGERS = np.uint64(1 << 53)
NEW_LINE, PLUS, MINUS, POINT, SMALL_E = 10, 43, 45, 46, 101
ONE = np.uint64(1)
BYTE = np.uint64(8)  # bits
ONES = np.uint64(0x0101010101010101)  # a one in each of eight bytes
TOPS = np.uint64(0x8080808080808080)  # the top bit of each of eight bytes
ZEROS = np.uint64(0x3030303030303030)  # the digit 0 eight times
ABOVE_NINE = np.uint64(0x7676767676767676)  # added to eight bytes below 128, it sets the top bits of those above 9


def _five_powers() -> np.ndarray:
    """Return the 128 leading bits of 5^q for every q, as pairs (high, low): truncated for q >= 0, rounded up below."""
    table = np.empty((LARGEST - SMALLEST + 1, 2), dtype=np.uint64)
    for q in range(SMALLEST, LARGEST + 1):
        power = 5 ** abs(q)
        if q >= 0:
            shift = 128 - power.bit_length()
            bits = power << shift if shift >= 0 else power >> -shift
        else:
            bits = (1 << (power.bit_length() + 127)) // power + 1
            bits >>= max(0, bits.bit_length() - 128)
        table[q - SMALLEST] = bits >> 64, bits & ((1 << 64) - 1)
    return table


FIVE_POWERS = _five_powers()


@kernel
def multiply(a, b):
    """Return the 128 bits of a b as (high, low)."""
    a0, a1, b0, b1 = a & LOW, a >> np.uint64(32), b & LOW, b >> np.uint64(32)
    low, middle, cross, high = a0 * b0, a1 * b0, a0 * b1, a1 * b1
    carry = (low >> np.uint64(32)) + (middle & LOW) + cross
    return high + (middle >> np.uint64(32)) + (carry >> np.uint64(32)), (carry << np.uint64(32)) | (low & LOW)


@kernel
def leading_zeros(w):
    """Return the number of zero bits above the highest one of w > 0."""
    count = 0
    for step in (32, 16, 8, 4, 2, 1):
        if w >> np.uint64(64 - step) == np.uint64(0):
            w <<= np.uint64(step)
            count += step
    return count


@kernel
def scaled(w, q, tables, bits):
    """Return (w 10^q rounded to the nearest float64, whether that is certain); `bits` is scratch space for one uint64."""
    if q < SMALLEST:
        return 0.0, True
    if q > LARGEST:
        return np.inf, True
    lead = leading_zeros(w)
    w <<= np.uint64(lead)
    high, low = multiply(w, tables[q - SMALLEST, 0])
    if high & np.uint64(0x1FF) == np.uint64(0x1FF):  # the bits that decide are all ones: the rest of the power matters
        more, _ = multiply(w, tables[q - SMALLEST, 1])
        low += more
        if more > low:
            high += np.uint64(1)
        if low == ALL_ONES and not -27 <= q <= 55:
            return 0.0, False
    top = high >> np.uint64(63)
    mantissa = high >> (top + np.uint64(9))
    exponent = (((152170 + 65536) * q) >> 16) + 63 + np.int64(top) - lead + 1023
    if exponent <= 0:  # subnormal
        if 1 - exponent >= 64:
            return 0.0, True
        mantissa >>= np.uint64(1 - exponent)
        mantissa = (mantissa + (mantissa & np.uint64(1))) >> np.uint64(1)
        bits[0] = mantissa  # 2^52 becomes the smallest normal number by itself
        return bits.view(np.float64)[0], True
    # A tie of 53 bits exactly is rounded to even; it can only be one for small powers.
    if (
        low <= np.uint64(1)
        and -4 <= q <= 23
        and mantissa & np.uint64(3) == np.uint64(1)
        and (mantissa << (top + np.uint64(9))) == high
    ):
        mantissa &= ~np.uint64(1)
    mantissa = (mantissa + (mantissa & np.uint64(1))) >> np.uint64(1)
    if mantissa >= EXACT_INTEGERS:
        mantissa = np.uint64(1 << 52)
        exponent += 1
    if exponent >= 0x7FF:
        return np.inf, True
    bits[0] = (mantissa & np.uint64((1 << 52) - 1)) | (np.uint64(exponent) << np.uint64(52))
    return bits.view(np.float64)[0], True


@kernel
def byte_at(text, i, stop):
    """Return text[i], or a line end beyond the end of the text, so that every loop terminates."""
    return text[np.uint64(i)] if i < stop else np.uint8(NEW_LINE)


@kernel
def is_digit(c):
    """Tell whether a byte is a digit."""
    return (c >= 48) & (c <= 57)


@kernel
def eight_bytes(text, i):
    """Return text[i : i + 8] as one number, the first byte lowest, xor the digit 0: a single load when compiled."""
    word = np.uint64(0)
    for k in range(np.uint64(8)):  # unsigned: Numba need not check for indices that count from the end
        word |= np.uint64(text[np.uint64(i) + k]) << (k * BYTE)
    return word ^ ZEROS


@kernel
def no_digits(word):
    """Return the top bits of those of the eight bytes that are no digits."""
    return (((word & ~TOPS) + ABOVE_NINE) | word) & TOPS


@kernel
def lowest_bit(marks):
    """Return the lowest bit alone; 0 if there is none."""
    return marks & (~marks + ONE)


@kernel
def bytes_below(mark):
    """Return the number of bytes below the one whose top bit is given; 8 for 0."""
    return ((((mark >> np.uint64(7)) - ONE) & ONES) * ONES) >> np.uint64(56)


@kernel
def byte_of(word, k):
    """Return byte k of the `eight_bytes`, as it was in the text."""
    return np.uint8((word >> (k * BYTE)) ^ ZEROS)


@kernel
def number_below(word, count):
    """Return the number that the lowest `count` of eight bytes spell: digits in pairs, these in pairs, both halves."""
    half = np.uint64(4) * (BYTE - count)
    word = word << half << half  # a shift of 64 bits at once would be undefined
    word = (word * np.uint64(10) + (word >> np.uint64(8))) & np.uint64(0x00FF00FF00FF00FF)
    word = (word * np.uint64(100) + (word >> np.uint64(16))) & np.uint64(0x0000FFFF0000FFFF)
    return np.int64((word * np.uint64(10000) + (word >> np.uint64(32))) & LOW)


@kernel
def append_digits(w, text, i, stop):
    """Append the digits from text[i] on to the integer w; return (that integer, modulo 2^64, where they end)."""
    c = byte_at(text, i, stop)
    while is_digit(c):
        w, i = 10 * w + (np.int64(c) - 48), i + 1
        c = byte_at(text, i, stop)
    return w, i


@kernel
def short_decimal(text, i, stop):
    """Read a number of at most 15 digits without an exponent, the usual case: (value, end, whether it is one).

    It has few branches, because with more of them Numba counts the references to `text` at every call.
    """
    c = byte_at(text, i, stop)
    begin = i + np.int64((c == MINUS) | (c == PLUS))
    w, i = append_digits(np.int64(0), text, begin, stop)
    digits, behind = i - begin, 0
    if byte_at(text, i, stop) == POINT:
        begin = i + 1
        w, i = append_digits(w, text, begin, stop)
        behind = i - begin
    digits += behind
    fine = (digits > 0) & (digits < 16) & ((byte_at(text, i, stop) | 32) != SMALL_E)
    value = np.float64(w) / POWERS[min(behind, 22)]
    return (-value if c == MINUS else value), i, fine


@kernel
def decimal(text, i, stop, tables, bits):
    """Read the number at text[i:stop]; return (value, where it ends, EXACT or INEXACT or NOT_A_NUMBER)."""
    negative = False
    if i < stop and (text[i] == 45 or text[i] == 43):
        negative, i = text[i] == 45, i + 1
    w, digits, q, has_digits, dropped = np.uint64(0), 0, 0, False, False
    point = False
    while i < stop:
        c = text[i]
        if c == 46 and not point:
            point = True
        elif 48 <= c <= 57:
            has_digits = True
            if digits < 19:
                w = w * np.uint64(10) + np.uint64(c - 48)
                digits += 1 if w > np.uint64(0) else 0
                q -= 1 if point else 0
            else:
                dropped = dropped or c != 48
                q += 0 if point else 1
        else:
            break
        i += 1
    if not has_digits:
        return 0.0, i, NOT_A_NUMBER
    if i < stop and (text[i] == 101 or text[i] == 69):
        j, below, power = i + 1, False, 0
        if j < stop and (text[j] == 45 or text[j] == 43):
            below, j = text[j] == 45, j + 1
        if j >= stop or not 48 <= text[j] <= 57:
            return 0.0, j, NOT_A_NUMBER
        while j < stop and 48 <= text[j] <= 57:
            power = min(100_000, 10 * power + np.int64(text[j] - 48))
            j += 1
        q, i = q + (-power if below else power), j
    if w == np.uint64(0):
        return (-0.0 if negative else 0.0), i, EXACT
    if not dropped and w <= EXACT_INTEGERS and -22 <= q <= 22:
        value = np.float64(w) * POWERS[q] if q >= 0 else np.float64(w) / POWERS[-q]
        return (-value if negative else value), i, EXACT
    value, sure = scaled(w, q, tables, bits)
    if sure and dropped:
        above, sure = scaled(w + np.uint64(1), q, tables, bits)
        sure = sure and above == value
    return (-value if negative else value), i, EXACT if sure else INEXACT


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
def read_chunks(text, edges, starts, counts, labels, indptr, indices, data, tables, inexact, info, most, first, last):
    """Read chunks into the arrays from row starts[c, 0] and entry starts[c, 1] on, at most counts[c] rows and entries.

    There can be more only if another process changes the memory-mapped file after it was counted; they are not written.
    inexact[c] receives (entry or -1 - row, first byte, one past the last) of numbers that the caller converts, as many as
    fit. `most` is the largest allowed index.
    """
    for c in range(first, last):
        info[c, :] = 0
        code, place = read_lines(
            text, edges[c], edges[c + 1], starts[c, 0], starts[c, 1], counts[c, 0], counts[c, 1], labels, indptr, indices, data,
            tables, inexact[c], info[c], most,
        )  # fmt: skip
        info[c, CODE], info[c, PLACE] = code, place


@kernel
def read_lines(text, i, stop, row, entry, rows, entries, labels, indptr, indices, data, tables, inexact, info, most):
    """Read complete lines, at most `rows` rows and `entries` entries; return (FINE, stop), or an error code and its place."""
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
            if state == INEXACT:
                note(inexact, info, -1 - row, i, end)
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
                if state == INEXACT:
                    note(inexact, info, entry, i, end)
            if not ends_word(byte_at(text, end, stop)):
                return BAD_VALUE, i
            if entry >= entry_end:
                return CHANGED, i
            indices[entry], data[entry] = index, value
            low, high = min(low, index), max(high, index)
            entry, i = entry + 1, end
        row += 1
        indptr[row] = entry
    if row != row_end or entry != entry_end:  # with fewer, the ends of the arrays would be uninitialised memory
        return CHANGED, stop - 1
    info[LOWEST], info[HIGHEST] = low, high
    return FINE, stop


@kernel
def short_entry(word):
    """Read an index:value pair of integers that, with its separator, fits into the `eight_bytes`.

    Return (index, value, length), with length 0 if it does not fit. There is no loop over digits: their number is hard to
    predict, and a mispredicted branch would cost more than the rest.
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
    """Return where the word qid:number ends, or i if it is another word."""
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
def note(inexact, info, target, begin, end):
    """Leave the conversion of a number to the caller."""
    k = info[INEXACTS]
    if k < len(inexact):
        inexact[k, 0], inexact[k, 1], inexact[k, 2] = target, begin, end
    info[INEXACTS] = k + 1
