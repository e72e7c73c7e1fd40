"""Decimal numbers in text as the nearest float64, exactly: digits by integer arithmetic, powers of ten by a table of 128 bits.

A number is w 10^q with an integer w of at most 19 digits. Up to 2^53 and |q| <= 22 both are floats, and one product or quotient
rounds correctly (Clinger 1990). Beyond, w is multiplied with the first 128 bits of 5^q: enough to round correctly but for rare
cases, which are recognised (Lemire 2021). Those, and numbers of more than 19 digits that do not round alike from below and
above, are left to the caller.
"""

import numpy as np

from scoreline.runtime.compile import kernel

SMALLEST, LARGEST = -342, 308  # powers of ten beyond which every number of 19 digits is 0 or infinite
POWERS = np.array([10.0**k for k in range(23)])  # exact
NOT_A_NUMBER, UNSURE, EXACT = -1, 0, 1
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
    """Return (w 10^q rounded to the nearest float64, whether that is sure); bits: room for one uint64 to make floats from."""
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
    """Return text[i], and the end of a line beyond the end of the text, so that every loop finds one."""
    return text[np.uint64(i)] if i < stop else np.uint8(NEW_LINE)


@kernel
def is_digit(c):
    """Tell whether a byte is a digit."""
    return (c >= 48) & (c <= 57)


@kernel
def eight_bytes(text, i):
    """Return text[i : i + 8] as one number, the first byte lowest, xor the digit 0: a single load when compiled."""
    word = np.uint64(0)
    for k in range(np.uint64(8)):  # without signs: no index needs a look whether it counts from the end
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
    """Read a number of at most 15 digits without exponent, most of what there is: (value, end, whether it is one).

    It has few branches: with more Numba counts the references to `text` at every call, which takes as long as the rest.
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
    """Read the number at text[i:stop]; return (value, where it ends, EXACT or UNSURE or NOT_A_NUMBER)."""
    negative = False
    if i < stop and (text[i] == 45 or text[i] == 43):
        negative, i = text[i] == 45, i + 1
    w, digits, q, seen, dropped = np.uint64(0), 0, 0, False, False
    point = False
    while i < stop:
        c = text[i]
        if c == 46 and not point:
            point = True
        elif 48 <= c <= 57:
            seen = True
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
    if not seen:
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
    return (-value if negative else value), i, EXACT if sure else UNSURE
